/* SPDX-License-Identifier: MIT */
/*
 * Makes processes that hang while they hold their mmap lock, for tests:
 *
 *	stuckfs N SECONDS [vfork]
 *
 * A FUSE file system, mounted where nobody else sees it, never answers a
 * write. Each of N processes "stuck0", "stuck1", ... maps a file of it, writes
 * to the mapping and lets one thread put another mapping in its place: that
 * has to write the page back first, and waits for ever. Another thread goes on
 * using CPU, or with "vfork" starts a child "stuckexec" that hangs in execve()
 * because the memory is not its own yet.
 *
 * Prints "PID" for each, with "vfork" "PID CHILD", and then "ready". The first
 * byte of standard input releases them all, its end ends them. Nothing is
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

#define MOUNTPOINT "/tmp" /* of our own mount namespace */

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
	    .st_mode =
		ino == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644,
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

/* The point of it all. */
static void fs_write(fuse_req_t req, fuse_ino_t ino, const char *buf,
		     size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)req;
	(void)ino;
	(void)buf;
	(void)size;
	(void)off;
	(void)fi;
}

static void serve(void)
{
	static const struct fuse_lowlevel_ops ops = {
	    .lookup = fs_lookup,
	    .getattr = fs_getattr,
	    .open = fs_open,
	    .read = fs_read,
	    .write = fs_write,
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

static void *get_stuck(void *arg)
{
	(void)arg;
	/* fuse_vma_close(), fs/fuse/file.c, Linux 6.18: writes back. */
	mmap(mapping, FILE_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
	     -1, 0);
	return NULL;
}

static char *map_dirty_file(unsigned number)
{
	char path[sizeof(MOUNTPOINT) + 8];
	char *p;
	int fd = -1;

	snprintf(path, sizeof(path), MOUNTPOINT "/%u", number);
	for (unsigned ms = 0; fd < 0 && ms < PATIENCE_MS; ms += 10) {
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			pause_ms(10);
	}
	p = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || p == MAP_FAILED)
		_exit(1);
	close(fd); /* would write back, too */
	memset(p, 1, FILE_SIZE);
	return p;
}

/* About a tenth of one processor, and no page that is not there yet. */
static void use_cpu(void)
{
	for (;;) {
		struct timespec ts;
		long until;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		until = ts.tv_nsec + 2000000;
		do
			clock_gettime(CLOCK_MONOTONIC, &ts);
		while (ts.tv_nsec < until && ts.tv_nsec + 4000000 > until);
		pause_ms(18);
	}
}

/*
 * True if a thread waits for something that no signal ends. From status,
 * because stat itself may hang (exec_update_lock).
 */
static bool has_blocked_thread(pid_t pid, pid_t tid)
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

static volatile pid_t stuck_tid;

static void *run_stuck(void *arg)
{
	stuck_tid = gettid();
	return get_stuck(arg);
}

static void start_child(int out)
{
	char *const argv[] = {(char[]){"true"}, NULL};
	pid_t child = vfork();

	if (child == 0) {
		pid_t me = getpid();

		prctl(PR_SET_NAME, "stuckexec");
		if (write(out, &me, sizeof(me)) < 0)
			_exit(1);
		execv("/bin/true", argv);
		_exit(1);
	}
}

/* Tells over `out`: its child's pid, or 0. */
static void be_stuck(unsigned number, int out, bool with_child)
{
	char name[16];
	pthread_t thread;
	pid_t none = 0;

	snprintf(name, sizeof(name), "stuck%u", number);
	prctl(PR_SET_NAME, name);
	mapping = map_dirty_file(number);
	if (pthread_create(&thread, NULL, run_stuck, NULL) != 0)
		_exit(1);
	while (!stuck_tid || !has_blocked_thread(getpid(), stuck_tid))
		pause_ms(5);
	if (with_child)
		start_child(out);
	else if (write(out, &none, sizeof(none)) < 0)
		_exit(1);
	use_cpu();
}

/* Whoever starts and ends all that. */

static pid_t server, stuck[STUCK_MAX], child_of[STUCK_MAX];

static bool start_stuck(unsigned number, bool with_child)
{
	pid_t parent = getpid();
	struct pollfd pfd;
	int fds[2];
	bool told;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	stuck[number] = fork();
	if (stuck[number] == 0) {
		die_with_parent(parent);
		close(STDIN_FILENO);
		close(STDOUT_FILENO);
		be_stuck(number, fds[1], with_child);
	}
	close(fds[1]);
	pfd = (struct pollfd){.fd = fds[0], .events = POLLIN};
	told = poll(&pfd, 1, PATIENCE_MS) == 1 &&
	       read(fds[0], &child_of[number], sizeof(pid_t)) == sizeof(pid_t);
	close(fds[0]);
	for (unsigned ms = 0; told && with_child && ms < PATIENCE_MS; ms += 10) {
		pid_t child = child_of[number];

		if (has_blocked_thread(child, child))
			return true;
		pause_ms(10);
	}
	return told && !with_child;
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

static bool in_own_mount_namespace(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	int seconds = argc > 2 ? atoi(argv[2]) : 0;
	bool with_child = argc > 3 && strcmp(argv[3], "vfork") == 0;
	struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
	pid_t parent = getpid();
	bool ok = true;
	char byte;

	if (n < 1 || n > STUCK_MAX || seconds < 1) {
		fprintf(stderr, "usage: stuckfs N SECONDS [vfork]\n");
		return 2;
	}
	if (access("/dev/fuse", R_OK | W_OK) < 0 || !in_own_mount_namespace()) {
		fprintf(stderr, "stuckfs: no FUSE, or not root\n");
		return EXIT_NO_FUSE;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	server = fork();
	if (server == 0) {
		die_with_parent(parent);
		close(STDIN_FILENO);
		close(STDOUT_FILENO);
		serve();
	}
	for (unsigned i = 0; ok && i < n; i++) {
		ok = start_stuck(i, with_child);
		if (ok && with_child)
			printf("%d %d\n", (int)stuck[i], (int)child_of[i]);
		else if (ok)
			printf("%d\n", (int)stuck[i]);
	}
	if (!ok) {
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
