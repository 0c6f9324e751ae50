/* SPDX-License-Identifier: MIT */
#include "births.h"

enum {
	/* Tasks attached since, whose numbers were given before. */
	IN_BETWEEN = 64,
};

enum births_answer births_look(struct births *b, struct procfs *fs,
			       uint64_t now_ns, unsigned enough,
			       pid_t *ret_first, pid_t *ret_last)
{
	struct births was = *b;
	uint64_t n_forks, span;

	b->known = procfs_forks(fs, &b->forks) == 0;
	if (b->known && was.known && b->forks == was.forks &&
	    now_ns - was.listed_ns < BIRTHS_TRUST_NS)
		return BIRTHS_NONE;
	b->known = b->known && procfs_last_pid(fs, &b->last_pid) == 0;
	b->last_pid_before = was.last_pid;
	if (!b->known || !was.known || !was.last_pid_before ||
	    now_ns - was.listed_ns >= BIRTHS_TRUST_NS) {
		b->listed_ns = now_ns;
		return BIRTHS_UNKNOWN;
	}
	n_forks = b->forks - was.forks;

	/* A cycle that began anew, or numbers that were not given in turn. */
	span = (uint64_t)(b->last_pid - was.last_pid_before);
	if (b->last_pid < was.last_pid || was.last_pid < was.last_pid_before ||
	    span > enough || n_forks > span + IN_BETWEEN) {
		b->listed_ns = now_ns;
		return BIRTHS_UNKNOWN;
	}
	*ret_first = was.last_pid_before + 1;
	*ret_last = b->last_pid;
	return BIRTHS_AMONG;
}
