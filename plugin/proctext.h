/* SPDX-License-Identifier: MIT */
/*
 * Parses the texts below /proc. Pure text work: it opens nothing and works in
 * place, on bytes, without a locale. It knows metric rows, no process.
 *
 * Invariant: no byte outside the given text is looked at, and a text that is
 * not what it should be gives an error, never a value.
 */
#pragma once

#include "base.h"
#include "metric.h"

/* Outcomes that callers handle; a process that ended is no error. */
enum {
	PROC_GONE = 1,	 /* ENOENT or ESRCH: ended, or no such file for it */
	PROC_DENIED = 2, /* EACCES or EPERM */
	PROC_ABSENT = 3, /* readable, but it holds no such value */
};

/*
 * Digits at *s, at most up to `end`, as a number; moves *s behind them. False
 * if there are none or the number does not fit into 64 bits.
 */
bool proctext_number(const char **s, const char *end, uint64_t *ret);

/* The fields of stat up to this number are parsed. */
enum {
	STAT_FIELD_STATE = 3,
	STAT_FIELD_PPID = 4,
	STAT_FIELD_FLAGS = 9,
	STAT_FIELD_MINFLT = 10,
	STAT_FIELD_MAJFLT = 12,
	STAT_FIELD_UTIME = 14,
	STAT_FIELD_STIME = 15,
	STAT_FIELD_CUTIME = 16,
	STAT_FIELD_THREADS = 20,
	STAT_FIELD_START = 22,
	STAT_FIELD_VSIZE = 23,
	STAT_FIELD_RSS = 24,
	STAT_FIELD_STACK = 28, /* where the stack begins: at random */
	STAT_FIELD_LAST = STAT_FIELD_STACK,
};

/* Task flags of include/linux/sched.h, Linux 6.18. */
#define STAT_FLAG_EXITING UINT64_C(0x4)
#define STAT_FLAG_WQ_WORKER UINT64_C(0x20)
#define STAT_FLAG_KTHREAD UINT64_C(0x200000)

struct proc_stat {
	struct str comm; /* any byte, blanks and parentheses included */
	char state;
	uint64_t field[STAT_FIELD_LAST + 1]; /* index as in proc(5) */
};

/*
 * Parses a stat line. Fields behind RSS may be missing (0) or odd (0); that of
 * the stack is 0 for who may not see it.
 * Returns 0 or -EBADMSG.
 */
int proctext_parse_stat(struct str text, struct proc_stat *ret);

/*
 * Finds the wanted rows of a "Key: number" text, comparing whole keys at
 * line starts only. Returns the rows that were found.
 */
metric_mask proctext_parse_keys(enum metric_source source, struct str text,
				metric_mask wanted, uint64_t *value);

/* Soft limit of "Max open files"; PROC_ABSENT if unlimited or missing. */
int proctext_parse_fd_limit(struct str text, uint64_t *ret);
