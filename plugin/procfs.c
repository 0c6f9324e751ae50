/* SPDX-License-Identifier: MIT */
#include "procfs.h"
#include "prochost.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>

enum {
	PATH_SIZE = 64, /* "4194304/task/4194304/smaps_rollup" and more */
};

static const char *const file_names[PROCFS_N_FILES] = {
    [PROCFS_STAT] = "stat",	[PROCFS_IO] = "io",
    [PROCFS_STATUS] = "status", [PROCFS_CGROUP] = "cgroup",
    [PROCFS_LIMITS] = "limits",
};

/* Negative errno of a failed call, or the outcome that it means. */
static int outcome(int err)
{
	switch (err) {
	case ENOENT:
	case ESRCH:
		return PROC_GONE;
	case EACCES:
	case EPERM:
		return PROC_DENIED;
	default:
		return -err;
	}
}

/* The number in a directory entry's name, or 0 if it is not a pid. */
static pid_t parse_pid(const char *s)
{
	uint32_t v = 0;

	if (*s < '1' || *s > '9')
		return 0;
	for (; *s >= '0' && *s <= '9'; s++) {
		v = v * 10 + (uint32_t)(*s - '0');
		if (v > INT32_MAX / 16)
			return 0;
	}
	return *s ? 0 : (pid_t)v;
}

/* Is "self" there what we call ourselves? Only then are PIDs the same. */
static bool self_is_us(int root_fd)
{
	char link[24];
	ssize_t n = readlinkat(root_fd, "self", link, sizeof(link) - 1);

	if (n <= 0)
		return false;
	link[n] = '\0';
	return parse_pid(link) == getpid();
}

static clockid_t clock_of(pid_t pid)
{
	/*
	 * What clock_getcpuclockid(3) computes, without its system call:
	 * the complement of the pid above three bits, of which CPUCLOCK_SCHED
	 * is 2. include/linux/posix-timers_types.h, Linux 6.18.
	 */
	return (clockid_t)((~(unsigned)pid << 3) | 2u);
}

static bool clocks_are_usable(void)
{
	clockid_t id;
	struct timespec ts;

	return clock_getcpuclockid(getpid(), &id) == 0 &&
	       id == clock_of(getpid()) && clock_gettime(id, &ts) == 0;
}

void procfs_init(struct procfs *fs)
{
	*fs = (struct procfs){.root_fd = -1};
	for (unsigned i = 0; i < PROCFS_N_HOST_FILES; i++)
		fs->host_fd[i] = -1;
}

int procfs_open(struct procfs *fs, const struct procfs_options *o)
{
	struct statfs sfs;
	struct stat st;

	procfs_init(fs);
	fs->scale = o->scale;
	if (fs->scale.ticks_per_second <= 0)
		fs->scale.ticks_per_second = sysconf(_SC_CLK_TCK);
	if (fs->scale.ticks_per_second <= 0)
		fs->scale.ticks_per_second = 100;
	if (fs->scale.page_size <= 0)
		fs->scale.page_size = sysconf(_SC_PAGESIZE);
	keptfd_init(&fs->kept, true, 0);

	fs->buf = malloc(PROCFS_BUF_SIZE + 1);
	if (!fs->buf)
		return -ENOMEM;
	fs->root_fd = open(o->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fs->root_fd < 0 || fstatfs(fs->root_fd, &sfs) < 0) {
		int r = -errno;

		procfs_close(fs);
		return r;
	}
	keptfd_park(&fs->root_fd);
	fs->is_procfs = sfs.f_type == PROC_SUPER_MAGIC;
	fs->same_pids = fs->is_procfs && self_is_us(fs->root_fd);
	fs->has_clocks = fs->same_pids && clocks_are_usable();
	/* The size of fd/: proc_fd_getattr(), fs/proc/fd.c, since Linux 6.2. */
	fs->fd_dir_has_size = fs->is_procfs &&
			      fstatat(fs->root_fd, "self/fd", &st, 0) == 0 &&
			      st.st_size > 0;
	prochost_open(fs);
	return 0;
}

bool procfs_is_own(const struct procfs *fs)
{
	return fs->same_pids;
}

int procfs_renew(struct procfs *fs)
{
	fs->guard = NULL;
	fs->buf = malloc(PROCFS_BUF_SIZE + 1);
	return fs->buf ? 0 : -ENOMEM;
}

void procfs_close(struct procfs *fs)
{
	base_closep(&fs->root_fd);
	prochost_close(fs);
	free(fs->buf);
	free(fs->pid_list);
	free(fs->task_list);
	procfs_init(fs);
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Procfs lists in ascending order; another file system need not. */
void procfs_sort_list(struct procfs *fs)
{
	size_t n = 0;

	for (size_t i = 1; i < fs->n_pids; i++) {
		if (fs->pid_list[i - 1] < fs->pid_list[i])
			continue;
		qsort(fs->pid_list, fs->n_pids, sizeof(pid_t), compare_pids);
		break;
	}
	for (size_t i = 0; i < fs->n_pids; i++)
		if (n == 0 || fs->pid_list[n - 1] != fs->pid_list[i])
			fs->pid_list[n++] = fs->pid_list[i];
	fs->n_pids = n;
}

/* Appends the numeric names of an open directory to *list. */
static int list_numbers(struct procfs *fs, int dir_fd, pid_t **list, size_t *n,
			size_t *cap)
{
	ssize_t got;
	int r;

	*n = 0;
	fs->counts.n_calls++;
	if (lseek(dir_fd, 0, SEEK_SET) < 0)
		return -errno;
	for (;;) {
		fs->counts.n_calls++;
		got = getdents64(dir_fd, fs->buf, PROCFS_BUF_SIZE);
		if (got <= 0)
			return got < 0 ? -errno : 0;
		for (ssize_t at = 0; at < got;) {
			struct dirent64 *e = (void *)(fs->buf + at);
			pid_t pid = parse_pid(e->d_name);

			at += e->d_reclen;
			if (!pid)
				continue;
			r = array_reserve(list, cap, *n + 1, sizeof(pid_t));
			if (r < 0)
				return r;
			(*list)[(*n)++] = pid;
		}
	}
}

int procfs_list(struct procfs *fs)
{
	uint64_t calls = fs->counts.n_calls;
	int r = list_numbers(fs, fs->root_fd, &fs->pid_list, &fs->n_pids,
			     &fs->pid_cap);

	fs->counts.n_listing += fs->counts.n_calls - calls;
	if (r == 0)
		procfs_sort_list(fs);
	return r;
}

/* The vDSO could only hand it on; this is the hottest call of all. */
static int read_clock(clockid_t id, struct timespec *ts)
{
#ifdef __LP64__
	return (int)syscall(SYS_clock_gettime, id, ts);
#else
	return clock_gettime(id, ts);
#endif
}

int procfs_clock(struct procfs *fs, pid_t pid, uint64_t *ret_ns)
{
	struct timespec ts;

	fs->counts.n_calls++;
	fs->counts.n_clocks++;
	if (read_clock(clock_of(pid), &ts) < 0)
		return PROC_GONE;
	*ret_ns = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
	return 0;
}

void procfs_pid_init(struct procfs_pid *p, pid_t pid)
{
	*p = (struct procfs_pid){.pid = pid, .dir_fd = -1};
	for (unsigned i = 0; i < PROCFS_N_KEPT; i++)
		p->fd[i] = -1;
}

void procfs_pid_close(struct procfs *fs, struct procfs_pid *p)
{
	for (unsigned i = 0; i < PROCFS_N_KEPT; i++)
		keptfd_close(&fs->kept, &p->fd[i]);
	if (p->dir_kept)
		keptfd_close(&fs->kept, &p->dir_fd);
	else
		base_closep(&p->dir_fd);
	p->dir_fd = -1;
	p->dir_kept = false;
}

bool procfs_pid_is_kept(const struct procfs_pid *p)
{
	for (unsigned i = 0; i < PROCFS_N_KEPT; i++)
		if (p->fd[i] >= 0)
			return true;
	return p->dir_kept;
}

static void number_text(char **at, pid_t v)
{
	char digit[12];
	unsigned n = 0;

	do {
		digit[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	while (n)
		*(*at)++ = digit[--n];
}

/* "PID/", "PID/task/TID/" or, below an open directory, the rest of it. */
static const char *path_of(char *buf, const struct procfs_pid *p, pid_t tid,
			   const char *name)
{
	char *at = buf;

	if (p->dir_fd < 0) {
		number_text(&at, p->pid);
		*at++ = '/';
	}
	if (tid) {
		at = stpcpy(at, "task/");
		number_text(&at, tid);
		*at++ = '/';
	}
	strcpy(at, name);
	return buf;
}

static int at_fd(const struct procfs *fs, const struct procfs_pid *p)
{
	return p->dir_fd >= 0 ? p->dir_fd : fs->root_fd;
}

int procfs_enter(struct procfs *fs, struct procfs_pid *p)
{
	char path[16], *at = path;

	if (p->dir_fd >= 0 ||
	    (p->fd[PROCFS_STAT] >= 0 && !(p->keep & PROCFS_KEEP_DIR)))
		return 0;
	number_text(&at, p->pid);
	*at = '\0';
	fs->counts.n_calls++;
	p->dir_fd =
	    openat(fs->root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dir_fd < 0)
		return outcome(errno);
	if (p->keep & PROCFS_KEEP_DIR && !fs->no_seek &&
	    keptfd_keep(&fs->kept, &p->dir_fd) == 0) {
		fs->counts.n_calls += 2;
		p->dir_kept = true;
	}
	return 0;
}

void procfs_leave(struct procfs *fs, struct procfs_pid *p)
{
	if (p->dir_fd < 0 || p->dir_kept)
		return;
	fs->counts.n_calls++;
	close(p->dir_fd);
	p->dir_fd = -1;
}

/*
 * Comes back from a guarded call; or, if it was given up meanwhile, takes
 * along what belongs to it alone and does not return.
 */
static void come_back(struct guard *g, char *buf, int own_fd)
{
	if (guard_leave(g))
		return;
	free(buf);
	base_closep(&own_fd);
	guard_quit(g);
}

/* read(2), or with at >= 0 pread(2), into the scratch buffer. */
static ssize_t read_guarded(struct procfs *fs, int fd, off_t at, int own_fd)
{
	struct guard *g = fs->guard;
	char *buf = fs->buf;
	ssize_t n;

	guard_enter(g);
	n = at < 0 ? read(fd, buf, PROCFS_BUF_SIZE)
		   : pread(fd, buf, PROCFS_BUF_SIZE, at);
	come_back(g, buf, own_fd);
	return n;
}

static int read_path(struct procfs *fs, struct procfs_pid *p, pid_t tid,
		     const char *name, int *keep_in, struct str *ret)
{
	char path[PATH_SIZE];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	fs->counts.n_calls += 3;
	fs->counts.n_reads++;
	fd = openat(at_fd(fs, p), path_of(path, p, tid, name),
		    O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return outcome(errno);
	n = read_guarded(fs, fd, -1, fd);
	if (n < 0)
		return outcome(errno);
	if (keep_in && !fs->no_seek && keptfd_keep(&fs->kept, &fd) == 0) {
		fs->counts.n_calls++;
		*keep_in = steal_fd(&fd);
	}
	fs->buf[n] = '\0';
	*ret = (struct str){fs->buf, (size_t)n};
	return 0;
}

int procfs_read(struct procfs *fs, struct procfs_pid *p, enum procfs_file file,
		struct str *ret)
{
	/* What a dead leader had its threads have; the rest is the process's.
	 */
	pid_t tid = file == PROCFS_STAT || file == PROCFS_IO ? 0 : p->live_tid;
	int *kept = file < PROCFS_N_KEPT && !tid ? &p->fd[file] : NULL;
	int *keep_in = kept && p->keep & PROCFS_KEEP(file) ? kept : NULL;
	ssize_t n;

	if (!kept || *kept < 0)
		return read_path(fs, p, tid, file_names[file], keep_in, ret);

	fs->counts.n_calls++;
	fs->counts.n_reads++;
	n = read_guarded(fs, *kept, 0, -1);
	if (n < 0 && errno == ESPIPE) {
		fs->no_seek = true;
		keptfd_close(&fs->kept, kept);
		return read_path(fs, p, tid, file_names[file], NULL, ret);
	}
	if (n < 0)
		return outcome(errno);
	fs->buf[n] = '\0';
	*ret = (struct str){fs->buf, (size_t)n};
	return 0;
}

/* The second of the four numbers of "Uid:" or "Gid:". */
static bool effective_id(struct str text, struct str key, uint32_t *ret)
{
	const char *line = text.s, *end = text.s + text.n;

	while (line < end) {
		const char *eol = memchr(line, '\n', (size_t)(end - line));
		const char *at = line + key.n;
		uint64_t id = 0;
		unsigned n = 0;

		eol = eol ? eol : end;
		if (!str_begins((struct str){line, (size_t)(eol - line)},
				key)) {
			line = eol + 1;
			continue;
		}
		for (; n < 2; n++) {
			at += strspn(at, "\t ");
			if (!proctext_number(&at, eol, &id))
				break;
		}
		*ret = (uint32_t)id;
		return n == 2 && id <= UINT32_MAX;
	}
	return false;
}

static int parse_owner(struct str text, uint32_t *ret_uid, uint32_t *ret_gid)
{
	uint32_t uid, gid;

	if (!effective_id(text, STR("Uid:"), &uid) ||
	    !effective_id(text, STR("Gid:"), &gid))
		return PROC_ABSENT;
	*ret_uid = uid;
	*ret_gid = gid;
	return 0;
}

int procfs_owner(struct procfs *fs, struct procfs_pid *p, uint32_t *ret_uid,
		 uint32_t *ret_gid)
{
	char path[16], *at = path;
	struct stat st;
	struct str text;
	int r;

	if (!fs->is_procfs) {
		r = procfs_read(fs, p, PROCFS_STATUS, &text);
		return r ? r : parse_owner(text, ret_uid, ret_gid);
	}
	/*
	 * The directory belongs to the effective ids even where the process
	 * is not dumpable: task_dump_owner(), fs/proc/base.c, Linux 6.18.
	 */
	fs->counts.n_calls++;
	if (p->dir_fd >= 0) {
		r = fstat(p->dir_fd, &st);
	} else {
		number_text(&at, p->pid);
		*at = '\0';
		r = fstatat(fs->root_fd, path, &st, 0);
	}
	if (r < 0)
		return outcome(errno);
	*ret_uid = st.st_uid;
	*ret_gid = st.st_gid;
	return 0;
}

/* Counts the entries of an open directory but "." and "..". */
static int count_entries(struct procfs *fs, int fd, uint64_t *ret)
{
	uint64_t n = 0;

	for (;;) {
		ssize_t got = getdents64(fd, fs->buf, PROCFS_BUF_SIZE);

		fs->counts.n_calls++;
		if (got < 0)
			return outcome(errno);
		if (got == 0)
			break;
		for (ssize_t at = 0; at < got;) {
			struct dirent64 *e = (void *)(fs->buf + at);

			at += e->d_reclen;
			n += e->d_name[0] != '.';
		}
	}
	*ret = n;
	return 0;
}

/*
 * Nothing is asked of the directory but its attributes, so that O_PATH does,
 * which needs no right on it.
 */
static bool keep_fd_dir(struct procfs *fs, struct procfs_pid *p,
			const char *path)
{
	int fd;

	if (p->live_tid || !(p->keep & PROCFS_KEEP(PROCFS_FD_DIR)) ||
	    !keptfd_has_room(&fs->kept))
		return false;
	fs->counts.n_calls++;
	fd = openat(at_fd(fs, p), path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	fs->counts.n_calls += 2;
	if (keptfd_keep(&fs->kept, &fd) == 0) {
		p->fd[PROCFS_FD_DIR] = fd;
		return true;
	}
	close(fd);
	return false;
}

/* The number of descriptors is the size of their directory. */
static int size_of_fd_dir(struct procfs *fs, struct procfs_pid *p,
			  const char *path, uint64_t *ret)
{
	struct stat st;
	int r;

	fs->counts.n_calls++;
	if ((p->fd[PROCFS_FD_DIR] >= 0 && !p->live_tid) ||
	    keep_fd_dir(fs, p, path))
		r = fstat(p->fd[PROCFS_FD_DIR], &st);
	else
		r = fstatat(at_fd(fs, p), path, &st, 0);
	if (r < 0)
		return outcome(errno);
	*ret = (uint64_t)st.st_size;
	return 0;
}

int procfs_count_fds(struct procfs *fs, struct procfs_pid *p, uint64_t *ret)
{
	char path[PATH_SIZE];
	_cleanup_close_ int fd = -1;

	path_of(path, p, p->live_tid, "fd");
	fs->counts.n_reads++;
	if (fs->fd_dir_has_size)
		return size_of_fd_dir(fs, p, path, ret);
	fs->counts.n_calls += 2;
	fd = openat(at_fd(fs, p), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return outcome(errno);
	return count_entries(fs, fd, ret);
}

int procfs_exe(struct procfs *fs, struct procfs_pid *p, struct str *ret)
{
	static const char suffix[] = " (deleted)";
	const size_t cut = sizeof(suffix) - 1;
	char path[PATH_SIZE];
	struct statx stx;
	struct guard *g = fs->guard;
	char *buf = fs->buf;
	ssize_t n;

	path_of(path, p, p->live_tid, "exe");
	fs->counts.n_calls++;
	guard_enter(g);
	n = readlinkat(at_fd(fs, p), path, buf, PROCFS_BUF_SIZE);
	come_back(g, buf, -1);
	if (n < 0)
		return outcome(errno);
	*ret = (struct str){fs->buf, (size_t)n};
	if (!str_ends(*ret, (struct str){suffix, cut}))
		return 0;
	/*
	 * A file may really be called so. The link count is taken from what
	 * is cached: nothing is asked of a file system that may not answer.
	 */
	fs->counts.n_calls++;
	if (statx(at_fd(fs, p), path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		  STATX_NLINK, &stx) < 0 ||
	    stx.stx_nlink == 0)
		ret->n -= cut;
	return 0;
}

int procfs_exe_file(struct procfs *fs, struct procfs_pid *p, uint64_t *ret_dev,
		    uint64_t *ret_inode)
{
	struct guard *g = fs->guard;
	int fd = at_fd(fs, p), r;
	char path[PATH_SIZE];
	char *buf = fs->buf;
	struct statx stx;

	path_of(path, p, p->live_tid, "exe");
	fs->counts.n_calls++;
	guard_enter(g);
	r = statx(fd, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO,
		  &stx);
	come_back(g, buf, -1);
	if (r < 0)
		return outcome(errno);
	if (!(stx.stx_mask & STATX_INO))
		return PROC_ABSENT;
	*ret_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	*ret_inode = stx.stx_ino;
	return 0;
}

/* Lists the threads of a process into task_list. */
static int list_tasks(struct procfs *fs, struct procfs_pid *p)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_SIZE];
	int r;

	fs->counts.n_calls++;
	fd = openat(at_fd(fs, p), path_of(path, p, 0, "task"),
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return outcome(errno);
	r = list_numbers(fs, fd, &fs->task_list, &fs->n_tasks, &fs->task_cap);
	return r < 0 ? outcome(-r) : 0;
}

int procfs_each_task(struct procfs *fs, struct procfs_pid *p,
		     procfs_task_fn *fn, void *arg)
{
	struct str text;
	int r;

	r = list_tasks(fs, p);
	if (r)
		return r;
	for (size_t i = 0; i < fs->n_tasks; i++) {
		pid_t tid = fs->task_list[i];

		r = read_path(fs, p, tid, "status", NULL, &text);
		if (r == 0)
			fn(arg, tid, text);
		else if (r < 0 || r == PROC_DENIED)
			return r;
	}
	return 0;
}

int procfs_find_live_task(struct procfs *fs, struct procfs_pid *p,
			  pid_t *ret_tid)
{
	struct proc_stat st;
	struct str text;
	int r;

	r = list_tasks(fs, p);
	if (r)
		return r;
	for (size_t i = 0; i < fs->n_tasks; i++) {
		pid_t tid = fs->task_list[i];

		if (read_path(fs, p, tid, "stat", NULL, &text) == 0 &&
		    proctext_parse_stat(text, &st) == 0 && st.state != 'Z' &&
		    st.state != 'X') {
			*ret_tid = tid;
			return 0;
		}
	}
	return PROC_ABSENT;
}

int procfs_read_live_stat(struct procfs *fs, struct procfs_pid *p,
			  struct str *ret)
{
	return read_path(fs, p, p->live_tid, "stat", NULL, ret);
}

int procfs_read_cmdline(int root_fd, pid_t pid, pid_t live_tid, char *buf,
			size_t size, size_t *ret_n)
{
	struct procfs_pid p = {.pid = pid, .dir_fd = -1};
	char path[PATH_SIZE];
	_cleanup_close_ int fd = -1;
	size_t n = 0;

	fd = openat(root_fd, path_of(path, &p, live_tid, "cmdline"),
		    O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return outcome(errno);
	/* The kernel gives it page by page: a short read is not its end. */
	while (n < size) {
		ssize_t got = read(fd, buf + n, size - n);

		if (got < 0)
			return outcome(errno);
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret_n = n;
	return 0;
}
