/* SPDX-License-Identifier: MIT */
/*
 * Paths of executables by device and inode: what living processes ran is known
 * of those that came and went between two ticks, too. It reads nothing; a file
 * system may number its files otherwise in a record than in stat(2) (btrfs,
 * overlayfs), so an inode whose path ends in the process's name will do.
 *
 * Invariant: never more than EXEPATH_MAX paths are held; those that nobody
 * asked for longest go first.
 */
#pragma once

#include "base.h"

enum {
	EXEPATH_MAX = 4096,
	EXEPATH_COMM = 15, /* execve() cuts the name off behind that */
};

struct exepath {
	struct exepath_half *young, *old; /* of half as many each */
};

/* Returns 0 or -ENOMEM; exepath_done() is safe in any case. */
int exepath_init(struct exepath *x);
void exepath_done(struct exepath *x);

/*
 * Learns a path, instead of another one that this file had. Longer ones than
 * PATH_MAX are not learned. Returns 0 or -ENOMEM: then nothing is known of it.
 */
int exepath_learn(struct exepath *x, uint64_t dev, uint64_t inode,
		  struct str path);

/*
 * The path of that file: it is right if it has that name, too, and else may
 * be. NULL if it is not known. Lives until the next call.
 */
const char *exepath_find(struct exepath *x, uint64_t dev, uint64_t inode,
			 const char *comm);
