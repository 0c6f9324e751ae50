/* SPDX-License-Identifier: MIT */
/*
 * Reads /proc below one root directory, and nowhere else: the list of
 * processes, the small files of a process, its CPU clock. Everything goes
 * through one root descriptor, kept descriptors and one scratch buffer. It
 * knows metric rows and text formats, but no process table, no group, no rule.
 *
 * Nothing here takes the target's mmap lock, but for procfs_read_cmdline(),
 * which is for lane workers. But stat, io and the exe link wait for a target
 * that hangs in execve() (its exec_update_lock; seen on Linux 6.18): reading
 * a process's file is a guarded call.
 * Invariant: what a read returns lives in the scratch buffer until the next.
 */
#pragma once

#include "base.h"
#include "guard.h"
#include "keptfd.h"
#include "metric.h"
#include "proctext.h"

/* Files of the host. */
enum procfs_host_file {
	PROCFS_HOST_STAT,
	PROCFS_HOST_LOADAVG,
	PROCFS_HOST_VMSTAT,
	PROCFS_HOST_SWAPS,
	PROCFS_N_HOST_FILES,
};

enum procfs_file {
	PROCFS_STAT,
	PROCFS_IO,
	PROCFS_STATUS,
	PROCFS_FD_DIR, /* a directory, for its size */
	PROCFS_N_KEPT, /* those above may be kept open */
	PROCFS_CGROUP = PROCFS_N_KEPT,
	PROCFS_LIMITS,
	PROCFS_N_FILES,
};

#define PROCFS_KEEP(file) ((uint8_t)(1u << (file)))
#define PROCFS_KEEP_DIR PROCFS_KEEP(PROCFS_N_KEPT)

/* The descriptors of one process; -1 where there is none. */
struct procfs_pid {
	pid_t pid;
	pid_t live_tid; /* a living thread if the leader is dead; else 0 */
	int dir_fd;
	int fd[PROCFS_N_KEPT];
	bool dir_kept;
	uint8_t keep; /* PROCFS_KEEP()s: these may be kept when opened next */
};

/*
 * True for a negative errno that says something of us and not of what was
 * read: out of descriptors, of memory, interrupted. Then a later try may do.
 */
static inline bool procfs_is_transient(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EAGAIN ||
	       r == -EINTR;
}

struct procfs_counts {
	uint64_t n_calls;   /* system calls made for processes */
	uint64_t n_listing; /* those of them that list /proc */
	uint64_t n_clocks;  /* those of them that read a clock */
	uint64_t n_reads;   /* reads of a process's files */
};

/* In ticks since boot. */
struct procfs_host_cpu {
	uint64_t user;	     /* with niced ones and guests, each once */
	uint64_t system;     /* with interrupts */
	uint64_t interrupts; /* hard and soft */
	uint64_t steal; /* taken by the hypervisor; in none of the others */
};

struct procfs_options {
	const char *root;	   /* "/proc" */
	struct metric_scale scale; /* zeros: ask sysconf(3) */
};

struct procfs {
	int root_fd;
	bool is_procfs;	      /* by fstatfs(2) magic */
	bool same_pids;	      /* PIDs there are those of our own namespace */
	bool has_clocks;      /* procfs_clock() can be trusted */
	bool no_seek;	      /* pread(2) on kept descriptors said ESPIPE */
	bool fd_dir_has_size; /* Linux 6.2+: st_size of fd/ is their number */
	struct metric_scale scale;
	struct keptfd kept;
	struct procfs_counts counts;
	int host_fd[PROCFS_N_HOST_FILES]; /* kept open; -1 where it is missing
					   */
	struct procfs_host_cpu host_cpu;
	bool host_cpu_is_new; /* it came with procfs_forks() */
	char *buf;	      /* scratch, PROCFS_BUF_SIZE bytes and a NUL */
	struct guard *guard;  /* of the thread that reads now; may be NULL */
	pid_t *pid_list;
	size_t n_pids, pid_cap;
	pid_t *task_list;
	size_t n_tasks, task_cap;
};

enum {
	PROCFS_BUF_SIZE = 64 * 1024,
};

/*
 * After a guarded read was given up: the thread keeps the scratch buffer that
 * it reads into, and we get another one. Returns 0 or -ENOMEM.
 */
int procfs_renew(struct procfs *fs);

/* Nothing open yet; procfs_close() is safe. */
void procfs_init(struct procfs *fs);

/* Returns 0 or a negative errno: then /proc there is unusable. */
int procfs_open(struct procfs *fs, const struct procfs_options *o);
void procfs_close(struct procfs *fs);

/* Is it a real one, in which numbers mean what they mean to us? */
bool procfs_is_own(const struct procfs *fs);

/*
 * Lists the processes into pid_list in ascending order, using
 * getdents64(2) and one buffer. Returns 0 or a negative errno.
 */
int procfs_list(struct procfs *fs);

/* Brings pid_list in ascending order without repetitions. */
void procfs_sort_list(struct procfs *fs);

/*
 * CPU time of all threads of a process, ended ones included, in ns: it moves
 * if and only if the process ran. Source: clock_getcpuclockid(3) and
 * kernel/time/posix-cpu-timers.c, Linux 6.18. Returns 0 or PROC_GONE.
 */
int procfs_clock(struct procfs *fs, pid_t pid, uint64_t *ret_ns);

void procfs_pid_init(struct procfs_pid *p, pid_t pid);

/* Closes everything; may be used again afterwards. */
void procfs_pid_close(struct procfs *fs, struct procfs_pid *p);

/* True if a descriptor of this process is kept. */
bool procfs_pid_is_kept(const struct procfs_pid *p);

/*
 * Opens the directory so that all reads up to procfs_leave() are of one
 * process even if its number is reused meanwhile. Not needed, and not done,
 * where stat is kept and the directory is not to be: reading stat first
 * tells that the number is still its own. Returns 0, PROC_GONE, PROC_DENIED
 * or a negative errno.
 */
int procfs_enter(struct procfs *fs, struct procfs_pid *p);
void procfs_leave(struct procfs *fs, struct procfs_pid *p);

/*
 * Reads one small file whole, with one read(2) and no second one for its end.
 * ret->s is terminated. Returns 0, PROC_GONE, PROC_DENIED or a negative
 * errno (-EMFILE and the like say nothing about the process).
 */
int procfs_read(struct procfs *fs, struct procfs_pid *p, enum procfs_file file,
		struct str *ret);

/* Effective uid and gid. Outcomes as above, or PROC_ABSENT. */
int procfs_owner(struct procfs *fs, struct procfs_pid *p, uint32_t *ret_uid,
		 uint32_t *ret_gid);

/* Number of open descriptors. Outcomes as for procfs_read(). */
int procfs_count_fds(struct procfs *fs, struct procfs_pid *p, uint64_t *ret);

/*
 * Target of the exe link in the scratch buffer, " (deleted)" cut off if the
 * file has no link left. PROC_GONE for a kernel thread.
 */
int procfs_exe(struct procfs *fs, struct procfs_pid *p, struct str *ret);

/*
 * That file, as it is cached: nothing is asked of a file system that may not
 * answer. Returns 0, PROC_ABSENT or another outcome.
 */
int procfs_exe_file(struct procfs *fs, struct procfs_pid *p, uint64_t *ret_dev,
		    uint64_t *ret_inode);

/* Takes the status text of one thread; for procfs_each_task(). */
typedef void procfs_task_fn(void *arg, pid_t tid, struct str status);

/* Calls fn with the status text of every thread. Outcomes as above. */
int procfs_each_task(struct procfs *fs, struct procfs_pid *p,
		     procfs_task_fn *fn, void *arg);

/* Some thread that is neither a zombie nor dead; PROC_ABSENT if none. */
int procfs_find_live_task(struct procfs *fs, struct procfs_pid *p,
			  pid_t *ret_tid);

/* stat of thread live_tid instead of the process's own. */
int procfs_read_live_stat(struct procfs *fs, struct procfs_pid *p,
			  struct str *ret);

/*
 * A number that changes when the host reclaimed, swapped or collapsed
 * memory: then RSS and swap of a process that did not run may have changed.
 * Returns 0; PROC_ABSENT on kernels that do not tell.
 */
int procfs_reclaim_count(struct procfs *fs, uint64_t *ret);

/* True unless /proc/swaps says that there is no swap device. */
bool procfs_has_swap(struct procfs *fs);

/* Tasks attached since boot. Returns 0 or PROC_ABSENT. */
int procfs_forks(struct procfs *fs, uint64_t *ret);

/*
 * CPU time of the host. If procfs_forks() was called since the last time, it
 * is what stood in the same text. Returns 0 or PROC_ABSENT.
 */
int procfs_host_cpu(struct procfs *fs, struct procfs_host_cpu *ret);

/* The number given last in our own namespace. Returns 0 or PROC_ABSENT. */
int procfs_last_pid(struct procfs *fs, pid_t *ret);

/*
 * Raw bytes of cmdline, up to `size`. MAY BLOCK for as long as the target
 * holds its mmap lock; needs no struct procfs and is thread safe. Outcomes
 * as for procfs_read().
 */
int procfs_read_cmdline(int root_fd, pid_t pid, pid_t live_tid, char *buf,
			size_t size, size_t *ret_n);
