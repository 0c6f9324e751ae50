/* SPDX-License-Identifier: MIT */
/*
 * Between the files of the ledger: ledger.c knows single processes,
 * ledger-parents.c what they did for their parents. Nobody else includes it.
 *
 * Invariant: of a parent's sum nothing is handed out that one of its children
 * was paid for by itself.
 */
#pragma once

#include "ledger.h"

enum {
	PARENT_SHARES = 8,
};

struct share {
	uint32_t account;
	uint64_t cpu_ns;
};

/*
 * One that has children which ended: the kernel's sum of them less ours, and
 * what our sum may lack.
 */
struct parent {
	uint32_t pid;
	uint32_t owes_since; /* tick in which our sum became the larger one */
	uint32_t last_tick;
	uint32_t n_shares;
	int64_t user_ns, system_ns;
	uint64_t open_ns, was_open_ns; /* by records of this tick, the last */
	struct share share[PARENT_SHARES]; /* of this tick */
};

void parents_settle(struct ledger *l, ledger_give_fn *give, void *arg);
