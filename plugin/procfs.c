/* SPDX-License-Identifier: MIT */
#include "procfs-internal.h"
#include "prochost.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

int procfs_outcome(int err)
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

int procfs_list_numbers(struct procfs *fs, int dir_fd, pid_t **list, size_t *n,
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
	int r = procfs_list_numbers(fs, fs->root_fd, &fs->pid_list, &fs->n_pids,
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
