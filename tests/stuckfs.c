/* SPDX-License-Identifier: MIT */
/*
 * Makes processes that hang in the kernel, for tests:
 *
 *	stuckfs N SECONDS [mmap|vfork|exec]
 *
 * A FUSE file system, mounted where nobody else sees it, never answers a
 * write or a flush. Each of N processes "stuckI.PID", with I from 0 on and our
 * PID, opens a file of it.
 *
 * mmap: one thread puts another mapping in the place of a dirty one of the
 * file. That has to be written back first, with the mmap lock held. Another
 * thread goes on using CPU.
 * vfork: the same, and a child "childI.PID" hangs in execve(), where it waits
 * for that lock with its own exec_update_lock held.
 * exec: the file is to be closed in execve(); there the flush is waited for,
 * with the exec_update_lock held.
 *
 * Prints "PID" of each, with vfork that of the child, too; and then "ready".
 * A byte on standard input releases them all, its end ends them. Nothing is
 * left behind whatever happens: SECONDS are the limit, and who dies takes the
 * others along. Whoever reads a command line of theirs meanwhile (ps, pgrep)
 * hangs, too. Exits with 77 if there is no FUSE here.
 */
#define FUSE_USE_VERSION 31
#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Always there, and below a mount: what is no mount cannot be made private. */
#define MOUNTPOINT "/proc/fs"

enum how {
	MMAP,
	VFORK,
	EXEC,
};

enum {
	EXIT_NO_FUSE = 77,
	FILE_SIZE = 16384,
	STUCK_MAX = 16,
	PATIENCE_MS = 5000,
};

static void pause_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000,
			      .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

static void die_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

/* The file system: files "0" to "15" in one directory. */

static struct stat stat_of(fuse_ino_t ino)
{
	struct stat st = {
	    .st_ino = ino,
	    .st_nlink = 1,
	    .st_mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644,
	    .st_size = ino == FUSE_ROOT_ID ? 0 : FILE_SIZE,
	};

	return st;
}

static void fs_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = {.attr_timeout = 60, .entry_timeout = 60};

	if (parent != FUSE_ROOT_ID || *name < '0' || *name > '9') {
		fuse_reply_err(req, ENOENT);
		return;
	}
	e.ino = FUSE_ROOT_ID + 1 + strtoul(name, NULL, 10);
	e.attr = stat_of(e.ino);
	fuse_reply_entry(req, &e);
}

static void fs_getattr(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	struct stat st = stat_of(ino);

	(void)fi;
	fuse_reply_attr(req, &st, 60);
}

static void fs_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fuse_reply_open(req, fi);
}

static void fs_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	static const char zeros[FILE_SIZE];
	size_t n = off < FILE_SIZE ? (size_t)(FILE_SIZE - off) : 0;

	(void)ino;
	(void)fi;
	fuse_reply_buf(req, zeros, n < size ? n : size);
}

/* The point of it all: no answer; but whoever started us is told. */
static void keep_waiting(void)
{
	if (write(STDOUT_FILENO, "", 1) < 0)
		_exit(1);
}

static void fs_write(fuse_req_t req, fuse_ino_t ino, const char *buf,
		     size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)req;
	(void)ino;
	(void)buf;
	(void)size;
	(void)off;
	(void)fi;
	keep_waiting();
}

static void fs_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)req;
	(void)ino;
	(void)fi;
	keep_waiting();
}

static void serve(bool flushes)
{
	const struct fuse_lowlevel_ops ops = {
	    .lookup = fs_lookup,
	    .getattr = fs_getattr,
	    .open = fs_open,
	    .read = fs_read,
	    .write = fs_write,
	    .flush = flushes ? fs_flush : NULL,
	};
	char name[] = "stuckfs";
	char *argv[] = {name, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	struct fuse_session *se =
	    fuse_session_new(&args, &ops, sizeof(ops), NULL);

	if (!se || fuse_session_mount(se, MOUNTPOINT) != 0)
		_exit(EXIT_NO_FUSE);
	fuse_session_loop(se);
	_exit(0);
}

/* What hangs. */

static char *mapping;
static volatile pid_t *child_of; /* shared by all */
static volatile pid_t stuck_tid;

static void *get_stuck(void *arg)
{
	(void)arg;
	stuck_tid = gettid();
	/* fuse_vma_close(), fs/fuse/file.c, Linux 6.18: writes back. */
	mmap(mapping, FILE_SIZE, PROT_READ,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return NULL;
}

static int open_file(unsigned number)
{
	char path[sizeof(MOUNTPOINT) + 8];
	int fd = -1;

	snprintf(path, sizeof(path), MOUNTPOINT "/%u", number);
	for (unsigned ms = 0; fd < 0 && ms < PATIENCE_MS; ms += 10) {
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			pause_ms(10);
	}
	if (fd < 0)
		_exit(1);
	return fd;
}

static char *map_dirty_file(unsigned number)
{
	int fd = open_file(number);
	char *p =
	    mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		_exit(1);
	close(fd); /* would write back, too */
	p[0] = 1;
	return p;
}

/* About a tenth of one processor, so many times or for ever. */
static void use_cpu(unsigned times)
{
	for (unsigned i = 0; !times || i < times; i++) {
		struct timespec ts;
		long long now, until = 0;

		do {
			clock_gettime(CLOCK_MONOTONIC, &ts);
			now = ts.tv_sec * 1000000000ll + ts.tv_nsec;
			if (!until)
				until = now + 2000000;
		} while (now < until);
		pause_ms(18);
	}
}

/*
 * True if a thread waits for something that no signal ends. From status,
 * because stat itself may hang (exec_update_lock).
 */
static bool is_blocked(pid_t pid, pid_t tid)
{
	char path[64], text[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid,
		 (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return strstr(text, "\nState:\tD") != NULL;
}

static void become_true(void)
{
	char *const argv[] = {(char[]){"true"}, NULL};

	execv("/bin/true", argv);
	_exit(1);
}

static void start_child(unsigned number)
{
	char name[16];

	snprintf(name, sizeof(name), "child%u.%d", number, (int)getppid());
	if (vfork() == 0) {
		prctl(PR_SET_NAME, name);
		child_of[number] = getpid();
		become_true();
	}
}

static void be_stuck(unsigned number, enum how how)
{
	char name[16];
	pthread_t thread;

	snprintf(name, sizeof(name), "stuck%u.%d", number, (int)getppid());
	prctl(PR_SET_NAME, name);
	if (how == EXEC) {
		open_file(number);
		become_true();
	}
	mapping = map_dirty_file(number);
	use_cpu(1); /* all pages that it needs are there from now on */
	if (pthread_create(&thread, NULL, get_stuck, NULL) != 0)
		_exit(1);
	while (!stuck_tid || !is_blocked(getpid(), stuck_tid))
		pause_ms(5);
	if (how == VFORK)
		start_child(number);
	use_cpu(0);
}

/* Whoever starts and ends all that. */

static pid_t server, stuck[STUCK_MAX];

static void start_server(bool flushes, int *ret_out)
{
	pid_t parent = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		exit(1);
	server = fork();
	if (server == 0) {
		die_with_parent(parent);
		if (dup3(fds[1], STDOUT_FILENO, O_CLOEXEC) < 0)
			_exit(1);
		serve(flushes);
	}
	close(fds[1]);
	*ret_out = fds[0];
}

static bool wait_blocked(const volatile pid_t *pid)
{
	for (unsigned ms = 0; ms < PATIENCE_MS; ms += 10) {
		if (*pid && is_blocked(*pid, *pid))
			return true;
		pause_ms(10);
	}
	return false;
}

static bool start_stuck(unsigned number, enum how how, int server_out)
{
	struct pollfd pfd = {.fd = server_out, .events = POLLIN};
	pid_t parent = getpid();
	char byte;

	stuck[number] = fork();
	if (stuck[number] == 0) {
		die_with_parent(parent);
		be_stuck(number, how);
	}
	return poll(&pfd, 1, PATIENCE_MS) == 1 &&
	       read(server_out, &byte, 1) == 1 &&
	       (how != VFORK || wait_blocked(&child_of[number]));
}

static void end_all(unsigned n)
{
	kill(server, SIGKILL); /* which lets those go that hang */
	for (unsigned i = 0; i < n; i++)
		if (stuck[i] > 0)
			kill(stuck[i], SIGKILL);
	while (wait(NULL) > 0)
		;
}

/* What is mounted below /proc is ours alone; in a chroot / may be no mount. */
static bool in_own_mount_namespace(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/proc", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static bool parse_how(const char *text, enum how *ret)
{
	static const char *const names[] = {"mmap", "vfork", "exec"};

	for (unsigned i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*ret = (enum how)i;
		return true;
	}
	return false;
}

static bool start_all(unsigned n, enum how how)
{
	int server_out;

	child_of = mmap(NULL, STUCK_MAX * sizeof(pid_t), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (child_of == MAP_FAILED)
		return false;
	start_server(how == EXEC, &server_out);
	for (unsigned i = 0; i < n; i++) {
		if (!start_stuck(i, how, server_out))
			return false;
		printf("%d", (int)stuck[i]);
		if (how == VFORK)
			printf(" %d", (int)child_of[i]);
		printf("\n");
	}
	return true;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	int seconds = argc > 2 ? atoi(argv[2]) : 0;
	struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
	enum how how = MMAP;
	char byte;

	if (n < 1 || n > STUCK_MAX || seconds < 1 ||
	    (argc > 3 && !parse_how(argv[3], &how))) {
		fprintf(stderr, "usage: stuckfs N SECONDS [mmap|vfork|exec]\n");
		return 2;
	}
	if (access("/dev/fuse", R_OK | W_OK) < 0 || !in_own_mount_namespace()) {
		fprintf(stderr, "stuckfs: no FUSE, or not root: %s\n",
			strerror(errno));
		return EXIT_NO_FUSE;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!start_all(n, how)) {
		fprintf(stderr, "stuckfs: nothing hangs here\n");
		end_all(n);
		return EXIT_NO_FUSE;
	}
	printf("ready\n");
	fflush(stdout);
	if (poll(&pfd, 1, seconds * 1000) == 1 &&
	    read(STDIN_FILENO, &byte, 1) == 1) {
		kill(server, SIGKILL);
		poll(&pfd, 1, seconds * 1000);
	}
	end_all(n);
	return 0;
}
