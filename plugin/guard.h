/* SPDX-License-Identifier: MIT */
/*
 * A system call that may never return, and a watcher who gives up on it. The
 * thread says when it enters such a call and when it is back; the watcher may
 * abandon it in between. Who was abandoned must touch nothing any more but
 * what is its own, and leaves by guard_quit(). It does not know what is called
 * or what for.
 *
 * Invariant: of "is back" and "is abandoned" just one happens to a call.
 */
#pragma once

#include <setjmp.h>
#include <stdatomic.h>

#include "base.h"

enum guard_state {
	GUARD_RUNS,
	GUARD_CALLS,
	GUARD_ABANDONED,
};

struct guard {
	atomic_uint state;
	atomic_uint n_calls; /* so that one call is told from the next */
	jmp_buf env;	     /* where guard_quit() goes; set by the thread */
};

static inline void guard_enter(struct guard *g)
{
	if (!g)
		return;
	atomic_fetch_add_explicit(&g->n_calls, 1, memory_order_relaxed);
	atomic_store_explicit(&g->state, GUARD_CALLS, memory_order_release);
}

/* Returns false if the thread was abandoned meanwhile. Keeps errno. */
static inline bool guard_leave(struct guard *g)
{
	unsigned calls = GUARD_CALLS;

	return !g ||
	       atomic_compare_exchange_strong(&g->state, &calls, GUARD_RUNS);
}

/* Unwinds to the beginning of the thread's work; nothing is cleaned up. */
static inline _Noreturn void guard_quit(struct guard *g)
{
	longjmp(g->env, 1);
}

/* For the watcher: gives up on the call. False if it is back already. */
static inline bool guard_abandon(struct guard *g)
{
	unsigned calls = GUARD_CALLS;

	return atomic_compare_exchange_strong(&g->state, &calls,
					      GUARD_ABANDONED);
}

/* For the watcher: the number of the call that is under way, or 0. */
static inline unsigned guard_call(struct guard *g)
{
	return atomic_load_explicit(&g->state, memory_order_acquire) ==
		       GUARD_CALLS
		   ? atomic_load_explicit(&g->n_calls, memory_order_relaxed)
		   : 0;
}
