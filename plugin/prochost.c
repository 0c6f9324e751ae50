/* SPDX-License-Identifier: MIT */
#include "prochost.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

static const char *const names[PROCFS_N_HOST_FILES] = {
    [PROCFS_HOST_STAT] = "stat",
    [PROCFS_HOST_LOADAVG] = "loadavg",
    [PROCFS_HOST_VMSTAT] = "vmstat",
    [PROCFS_HOST_SWAPS] = "swaps",
};

/*
 * Containers may have such a file replaced by one of a FUSE server (lxcfs),
 * which may not answer: no other mount is entered. Kernels before 5.6 cannot
 * say so; there the file is missing, and whoever wants it does without.
 */
static int open_host_file(const struct procfs *fs, const char *name)
{
	struct open_how how = {
	    .flags = O_RDONLY | O_CLOEXEC,
	    .resolve = RESOLVE_NO_XDEV,
	};

	if (!fs->is_procfs)
		return openat(fs->root_fd, name, O_RDONLY | O_CLOEXEC);
	return (int)syscall(SYS_openat2, fs->root_fd, name, &how, sizeof(how));
}

void prochost_open(struct procfs *fs)
{
	for (unsigned i = 0; i < PROCFS_N_HOST_FILES; i++) {
		fs->host_fd[i] = open_host_file(fs, names[i]);
		keptfd_park(&fs->host_fd[i]);
	}
}

void prochost_close(struct procfs *fs)
{
	for (unsigned i = 0; i < PROCFS_N_HOST_FILES; i++) {
		base_closep(&fs->host_fd[i]);
		fs->host_fd[i] = -1;
	}
}

static bool read_host_file(struct procfs *fs, enum procfs_host_file file,
			   struct str *ret)
{
	int fd = fs->host_fd[file];
	ssize_t n;

	if (fd < 0)
		return false;
	fs->counts.n_calls++;
	n = pread(fd, fs->buf, PROCFS_BUF_SIZE, 0);
	if (n < 0)
		return false;
	fs->buf[n] = '\0';
	*ret = (struct str){fs->buf, (size_t)n};
	return true;
}

int procfs_reclaim_count(struct procfs *fs, uint64_t *ret)
{
	static const char *const keys[] = {
	    "pgsteal_anon ", "pgsteal_file ",	    "pswpin ",
	    "pswpout ",	     "thp_collapse_alloc ",
	};
	struct str text;
	uint64_t sum = 0;
	unsigned found = 0;

	if (!read_host_file(fs, PROCFS_HOST_VMSTAT, &text))
		return PROC_ABSENT;
	for (const char *line = text.s; *line;) {
		const char *eol = strchrnul(line, '\n');

		for (unsigned i = 0; i < ARRAY_SIZE(keys); i++) {
			const char *at = line + strlen(keys[i]);
			uint64_t v;

			if (strncmp(line, keys[i], strlen(keys[i])) == 0 &&
			    proctext_number(&at, eol, &v)) {
				sum += v;
				found |= 1u << i;
			}
		}
		line = *eol ? eol + 1 : eol;
	}
	/* Without huge pages there is no thp_collapse_alloc, and no need. */
	if ((found & 15) != 15)
		return PROC_ABSENT;
	*ret = sum;
	return 0;
}

bool procfs_has_swap(struct procfs *fs)
{
	struct str text;
	const char *eol;

	if (!read_host_file(fs, PROCFS_HOST_SWAPS, &text))
		return true;
	/* A title line, and then one line for each device. */
	eol = memchr(text.s, '\n', text.n);
	return !eol || eol + 1 < text.s + text.n;
}

/* The first line, see proc(5); the fields behind the fourth came with time. */
static bool parse_host_cpu(struct str text, struct procfs_host_cpu *ret)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, N };
	uint64_t v[N] = {0};
	const char *at = text.s + 4, *end = text.s + text.n;
	unsigned n = 0;

	if (!str_begins(text, STR("cpu ")))
		return false;
	for (; n < N && at < end; n++) {
		while (at < end && *at == ' ')
			at++;
		if (!proctext_number(&at, end, &v[n]))
			break;
	}
	if (n <= IDLE)
		return false;
	/* Guests run in user time, and are counted there. */
	*ret = (struct procfs_host_cpu){
	    .user = v[USER] + v[NICE],
	    .system = v[SYSTEM] + v[IRQ] + v[SOFTIRQ],
	    .interrupts = v[IRQ] + v[SOFTIRQ],
	    .steal = v[STEAL],
	};
	return true;
}

int procfs_host_cpu(struct procfs *fs, struct procfs_host_cpu *ret)
{
	struct str text;

	if (!fs->host_cpu_is_new) {
		if (!read_host_file(fs, PROCFS_HOST_STAT, &text) ||
		    !parse_host_cpu(text, &fs->host_cpu))
			return PROC_ABSENT;
	}
	fs->host_cpu_is_new = false;
	*ret = fs->host_cpu;
	return 0;
}

int procfs_forks(struct procfs *fs, uint64_t *ret)
{
	static const char key[] = "\nprocesses ";
	struct str text;
	const char *at;

	fs->host_cpu_is_new = false;
	if (!read_host_file(fs, PROCFS_HOST_STAT, &text))
		return PROC_ABSENT;
	fs->host_cpu_is_new = parse_host_cpu(text, &fs->host_cpu);
	at = memmem(text.s, text.n, key, sizeof(key) - 1);
	if (!at)
		return PROC_ABSENT;
	at += sizeof(key) - 1;
	return proctext_number(&at, text.s + text.n, ret) ? 0 : PROC_ABSENT;
}

int procfs_last_pid(struct procfs *fs, pid_t *ret)
{
	struct str text;
	const char *at;
	uint64_t pid;

	if (!read_host_file(fs, PROCFS_HOST_LOADAVG, &text))
		return PROC_ABSENT;
	at = memrchr(text.s, ' ', text.n);
	if (!at)
		return PROC_ABSENT;
	at++;
	if (!proctext_number(&at, text.s + text.n, &pid) || pid > INT32_MAX)
		return PROC_ABSENT;
	*ret = (pid_t)pid;
	return 0;
}
