/* SPDX-License-Identifier: MIT */
/*
 * What the kernel says of a process, or of one thread, that ends: reads struct
 * taskstats of every version from 8 on, by its own length, and adds threads
 * up. Pure work on bytes: it knows no socket, no group, no process table. The
 * layout is that of include/uapi/linux/taskstats.h of Linux 6.18 and written
 * down here, because headers between Linux 6.14 and 6.15 have another one.
 *
 * A record is made before the task gives back its memory and its files
 * (taskstats_exit() comes before exit_mm(), kernel/exit.c), so it is never all
 * that was used. Invariant: run_ns <= cpu_ns <= cpu_max_ns, and what is not in
 * `have` is zero.
 */
#pragma once

#include "base.h"

enum exit_value {
	/* As the timer interrupt charges it: right on average, never in one. */
	EXIT_UTIME_US,
	EXIT_STIME_US,
	EXIT_MINFLT,
	EXIT_MAJFLT,
	/*
	 * I/O of each thread is rounded down to 1024, calls too (KB_MASK in
	 * xacct_add_tsk(), kernel/tsacct.c).
	 */
	EXIT_READ_CHARS,
	EXIT_WRITE_CHARS,
	EXIT_READ_CALLS,
	EXIT_WRITE_CALLS,
	EXIT_READ_BYTES,
	EXIT_WRITE_BYTES,
	EXIT_NVCSW,
	EXIT_NIVCSW,
	EXIT_COREMEM, /* RSS by system time: MiB times microseconds */
	/* Delays in ns; all but the first only with kernel.task_delayacct. */
	EXIT_CPU_WAIT,
	EXIT_BLKIO_WAIT,
	EXIT_SWAPIN_WAIT,
	EXIT_RECLAIM_WAIT,
	EXIT_THRASHING_WAIT,
	EXIT_COMPACT_WAIT,
	EXIT_N_VALUES,
};

#define EXIT_BIT(value) (UINT32_C(1) << (value))

enum exit_flag {
	EXIT_FORKED = 1 << 0,	/* never called execve() since it was forked */
	EXIT_KILLED = 1 << 1,	/* by a signal */
	EXIT_LAST = 1 << 2,	/* no thread of the process is left */
	EXIT_LEADER = 1 << 3,	/* comm and exit_code are those of its leader */
	EXIT_HAS_TGID = 1 << 4, /* version 12: pid is the process's */
	EXIT_HAS_EXE = 1 << 5,	/* version 12 */

	/*
	 * Version 11 and older: may be but a thread of a process that goes on;
	 * pid is the thread's.
	 */
	EXIT_UNSURE = 1 << 6,
	EXIT_PARTIAL = 1 << 7, /* of some threads only the CPU time is in it */
};

enum {
	EXIT_COMM_SIZE = 16,
	EXIT_ROUNDING = 1024, /* of I/O, per thread */
};

struct exitrec {
	uint32_t pid; /* of the process, seen from the initial namespace */
	uint32_t tid; /* of the thread that said so last */
	uint32_t ppid;
	uint32_t uid, gid;  /* real, not effective */
	uint32_t exit_code; /* as of wait(2) */
	uint32_t flags;	    /* enum exit_flag */
	uint32_t have;	    /* EXIT_BIT()s */
	uint32_t n_threads;
	uint32_t version; /* of struct taskstats */
	char comm[EXIT_COMM_SIZE];
	uint64_t began_s; /* CLOCK_REALTIME of its start, less than 1 s off */
	uint64_t elapsed_us; /* since then, not while suspended */
	uint64_t value[EXIT_N_VALUES];
	uint64_t run_ns;      /* CPU time that is certain */
	uint64_t cpu_ns;      /* CPU time as well as can be told */
	uint64_t cpu_max_ns;  /* CPU time at most, the rest of its exit incl. */
	uint64_t hiwater_rss; /* bytes */
	uint64_t exe_dev;     /* as of stat(2) */
	uint64_t exe_inode;
};

/*
 * Reads one struct taskstats of a task. Returns 0, or -EBADMSG if it is older
 * than version 8 or shorter than its version says.
 */
int exitrec_parse(struct str bytes, struct exitrec *ret);

/* CPU time in the sum of all threads that ended, as the kernel added it up. */
struct exit_group {
	uint64_t run_ns, utime_us, stime_us;
};

/*
 * Reads one struct taskstats of a whole thread group. Many kernels leave its
 * version at 0: it is that of the task's beside it. As exitrec_parse().
 */
int exitrec_parse_group(struct str bytes, unsigned version,
			struct exit_group *ret);

/* Adds a thread to those that were added before; the first may be any. */
void exitrec_add(struct exitrec *sum, const struct exitrec *thread);

/*
 * Takes what the kernel added up, when all threads were added: if there were
 * others, of which nobody told us, the record becomes EXIT_PARTIAL.
 */
void exitrec_add_group(struct exitrec *sum, const struct exit_group *group);

/*
 * How CPU time is told as user and system time: as stat and getrusage(2) do
 * (cputime_adjust(), kernel/sched/cputime.c, Linux 6.18).
 */
void exitrec_split(const struct exitrec *r, uint64_t cpu_ns,
		   uint64_t *ret_user_ns, uint64_t *ret_system_ns);
