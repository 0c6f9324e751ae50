/* SPDX-License-Identifier: MIT */
/*
 * What a process has in memory, from its smaps_rollup or, on kernels without
 * that, from its smaps; and the number of mappings, from smaps or maps. One
 * parser does for all of them: it takes the text in pieces cut anywhere and
 * keeps no more of it than one line. It does not know when a process is worth
 * reading, nor whose process it is.
 *
 * Invariant: a value is the sum over the whole text, or it is absent.
 */
#pragma once

#include "base.h"
#include "proctext.h"

enum smaps_value {
	SMAPS_RSS,
	SMAPS_PSS,
	/*
	 * Private_Clean and Private_Dirty. Private_Hugetlb is left out: the
	 * kernel counts huge pages of hugetlbfs neither into Rss nor into Pss
	 * (smaps_hugetlb_range(), fs/proc/task_mmu.c, Linux 6.18), and with it
	 * the part could be more than the whole. (psutil's uss counts it.)
	 */
	SMAPS_USS,
	SMAPS_SWAP_PSS,
	SMAPS_N_VALUES,
};

#define SMAPS_BIT(value) (1u << (value))

struct smaps {
	uint64_t value[SMAPS_N_VALUES]; /* bytes */
	unsigned have;			/* SMAPS_BIT()s */
	uint64_t n_mappings;		/* smaps_rollup is one */
};

enum {
	SMAPS_LINE_MAX = 64, /* a line's bytes behind these are not looked at */
	SMAPS_N_KEYS = 5,
};

struct smaps_parser {
	uint64_t kib[SMAPS_N_KEYS];
	uint8_t seen, bad; /* bit per key */
	uint64_t n_mappings;
	char line[SMAPS_LINE_MAX]; /* one whose end has not come yet */
	size_t n_line;
};

/* Any number of pieces between begin and end. */
void smaps_begin(struct smaps_parser *p);
void smaps_feed(struct smaps_parser *p, struct str piece);

/*
 * A value has to have all its keys in the text, and none may be odd or too
 * large for 64 bits. Returns 0, or -EBADMSG if the text was cut off.
 */
int smaps_end(const struct smaps_parser *p, struct smaps *ret);

/* All of that for a text in one piece. */
int smaps_parse(struct str text, struct smaps *ret);

/* Which file to read. */
enum smaps_file {
	SMAPS_NONE,   /* the kernel gives neither of the next two */
	SMAPS_ROLLUP, /* since Linux 4.14 */
	SMAPS_FULL,
	SMAPS_MAPS, /* has mappings, but no values */
};

/* Outcomes beyond those of proctext.h. */
enum {
	SMAPS_NO_MEMORY = 4, /* it lives, but has no memory of its own */
	SMAPS_NO_FILE = 5,   /* it lives, but the kernel has no such file */
	SMAPS_TOO_LONG = 6,  /* longer than max_bytes */
};

/* The file of values that this host has: one decision for all processes. */
struct smaps_host {
	enum smaps_file file;
	bool sure;
};

/* Asks our own files below that root, or else those of process 1. */
void smaps_host_probe(struct smaps_host *h, int root_fd);

/*
 * Takes what smaps_read() said of `file`. Only where the probe found nothing
 * to look at may a process decide.
 */
void smaps_host_learn(struct smaps_host *h, enum smaps_file file, int r);

struct smaps_ask {
	int root_fd; /* of /proc */
	pid_t pid;
	pid_t live_tid; /* a living thread if the leader is dead; else 0 */
	enum smaps_file file;
	char *buf; /* for pieces of the text; the kernel fills 4 KiB at most */
	size_t size;
	uint64_t max_bytes; /* 0: no limit */
};

/*
 * MAY BLOCK for as long as the target holds its mmap lock; thread safe.
 * Returns 0; PROC_GONE, PROC_DENIED, one of the outcomes above; PROC_ABSENT
 * if the text holds no Pss (for maps: if it is empty); -EBADMSG if it was
 * cut off; or another negative errno (-EMFILE and the like say nothing about
 * the process).
 */
int smaps_read(const struct smaps_ask *ask, struct smaps *ret);
