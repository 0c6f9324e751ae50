/* SPDX-License-Identifier: MIT */
/*
 * Part of procfs.h: the texts and descriptors of one process. It does not know
 * what the texts mean, but for who owns it.
 *
 * Invariant: each kept descriptor is counted in the budget, once.
 */
#include "procfs-internal.h"

#include <fcntl.h>
#include <sys/stat.h>

static const char *const file_names[PROCFS_N_FILES] = {
    [PROCFS_STAT] = "stat",	[PROCFS_IO] = "io",
    [PROCFS_STATUS] = "status", [PROCFS_CGROUP] = "cgroup",
    [PROCFS_LIMITS] = "limits",
};

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

const char *procfs_path(char *buf, const struct procfs_pid *p, pid_t tid,
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

int procfs_at(const struct procfs *fs, const struct procfs_pid *p)
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
		return procfs_outcome(errno);
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

void procfs_come_back(struct guard *g, char *buf, int own_fd)
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
	procfs_come_back(g, buf, own_fd);
	return n;
}

int procfs_read_path(struct procfs *fs, struct procfs_pid *p, pid_t tid,
		     const char *name, int *keep_in, struct str *ret)
{
	char path[PROCFS_PATH_SIZE];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	fs->counts.n_calls += 3;
	fs->counts.n_reads++;
	fd = openat(procfs_at(fs, p), procfs_path(path, p, tid, name),
		    O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return procfs_outcome(errno);
	n = read_guarded(fs, fd, -1, fd);
	if (n < 0)
		return procfs_outcome(errno);
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
	/* Threads have what a dead leader had; the rest is the process's. */
	pid_t tid = file == PROCFS_STAT || file == PROCFS_IO ? 0 : p->live_tid;
	int *kept = file < PROCFS_N_KEPT && !tid ? &p->fd[file] : NULL;
	int *keep_in = kept && p->keep & PROCFS_KEEP(file) ? kept : NULL;
	ssize_t n;

	if (!kept || *kept < 0)
		return procfs_read_path(fs, p, tid, file_names[file], keep_in,
					ret);

	fs->counts.n_calls++;
	fs->counts.n_reads++;
	n = read_guarded(fs, *kept, 0, -1);
	if (n < 0 && errno == ESPIPE) {
		fs->no_seek = true;
		keptfd_close(&fs->kept, kept);
		return procfs_read_path(fs, p, tid, file_names[file], NULL,
					ret);
	}
	if (n < 0)
		return procfs_outcome(errno);
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
		return procfs_outcome(errno);
	*ret_uid = st.st_uid;
	*ret_gid = st.st_gid;
	return 0;
}

int procfs_read_cmdline(int root_fd, pid_t pid, pid_t live_tid, char *buf,
			size_t size, size_t *ret_n)
{
	struct procfs_pid p = {.pid = pid, .dir_fd = -1};
	char path[PROCFS_PATH_SIZE];
	_cleanup_close_ int fd = -1;
	size_t n = 0;

	fd = openat(root_fd, procfs_path(path, &p, live_tid, "cmdline"),
		    O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return procfs_outcome(errno);
	/* The kernel gives it page by page: a short read is not its end. */
	while (n < size) {
		ssize_t got = read(fd, buf + n, size - n);

		if (got < 0)
			return procfs_outcome(errno);
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret_n = n;
	return 0;
}
