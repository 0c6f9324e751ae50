/* SPDX-License-Identifier: MIT */
/*
 * Says in words why a process is in its groups: what is known of it, which
 * key of which rule did not hold on which value, whom it could inherit from,
 * and how its name came about. It is to be asked after a tick. Lines leave
 * through a callback; it knows no terminal.
 *
 * Invariant: the group that it tells is the one that the monitor counts the
 * process in. The reasons are of now, and if these would lead elsewhere,
 * because the process changed since the tick, that is said.
 */
#pragma once

#include "monitor.h"

/* Outcomes beside 0 and negative errnos. */
enum {
	EXPLAIN_NO_RULES = 1,	/* none are in use */
	EXPLAIN_NO_PROCESS = 2, /* none of that number */
	EXPLAIN_HIDDEN = 3,	/* there is one, but /proc does not show it */
	EXPLAIN_DENIED = 4,	/* its files cannot be read */
};

struct explain_options {
	pid_t pid;	  /* of a process, or of one of its threads */
	const char *view; /* NULL: all of them; else one that there is */
	bool brief;	  /* the results alone, and nothing is read */
};

/* Takes one line, without a line feed. */
typedef void explain_fn(void *arg, const char *line);

/* False while a process waits for an answer that may still change its group. */
bool monitor_is_settled(const struct monitor *m);

/*
 * Explains one process. Each view's result and its cause stand in the first
 * lines, for people; what led to it follows. The last line of each view is
 * "group: NAME", or "group VIEW: NAME" of others than "app", with (dropped) for
 * a process that is counted nowhere and (undecided) for one that could not be
 * looked at. Does not wait for longer than a second.
 */
int monitor_explain(struct monitor *m, const struct explain_options *o,
		    explain_fn *fn, void *arg);
