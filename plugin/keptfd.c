/* SPDX-License-Identifier: MIT */
#include "keptfd.h"

#include <fcntl.h>
#include <sys/resource.h>

enum {
	RESERVE = 256, /* low numbers that stay free for everybody else */
	BASE_LEAST = 64,
};

void keptfd_init(struct keptfd *k, bool automatic, unsigned wanted)
{
	*k = (struct keptfd){
	    .automatic = automatic,
	    .budget_wanted = wanted,
	    .base = KEPTFD_BASE,
	};
}

void keptfd_want(struct keptfd *k, bool automatic, unsigned wanted)
{
	if (k->automatic == automatic && k->budget_wanted == wanted)
		return;
	k->automatic = automatic;
	k->budget_wanted = wanted;
	k->n_processes = 0;
}

/* The smallest of 2 x processes, a quarter of the hard limit, and 4096. */
static unsigned wanted_budget(const struct keptfd *k, unsigned n_processes,
			      rlim_t hard)
{
	unsigned n;

	if (!k->automatic)
		return k->budget_wanted;
	n = MIN(2 * n_processes, (unsigned)KEPTFD_BUDGET_MAX);
	return hard / 4 < n ? (unsigned)(hard / 4) : n;
}

/* Grows the descriptor table in one step by using its last number once. */
static bool grow_table(int base, unsigned budget)
{
	int last = base + (int)budget - 1, null, fd;

	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0)
		return false;
	fd = fcntl(null, F_DUPFD_CLOEXEC, last);
	if (fd >= 0)
		close(fd);
	close(null);
	return fd >= 0;
}

void keptfd_provide(struct keptfd *k, unsigned n_processes)
{
	struct rlimit rl;
	unsigned budget;
	rlim_t need;

	/* Round up, so that a few processes more change nothing. */
	n_processes = (n_processes + 255) / 256 * 256;
	if (n_processes <= k->n_processes)
		return;
	if (getrlimit(RLIMIT_NOFILE, &rl) < 0)
		return;
	budget = wanted_budget(k, n_processes, rl.rlim_max);
	if (budget <= k->budget) {
		k->budget = budget;
		k->n_processes = n_processes;
		return;
	}

	/* Numbers, once given out, are not moved: the base is set once. */
	if (k->n_kept == 0) {
		k->base = KEPTFD_BASE;
		if (rl.rlim_max < (rlim_t)k->base + budget) {
			if (rl.rlim_max > RESERVE + budget)
				k->base = (int)(rl.rlim_max - budget);
			else
				k->base = (int)MIN(rl.rlim_max, RESERVE);
		}
	}
	if (rl.rlim_max < (rlim_t)k->base + budget)
		budget = rl.rlim_max > (rlim_t)k->base
			     ? (unsigned)(rl.rlim_max - (rlim_t)k->base)
			     : 0;
	if (k->base < BASE_LEAST || budget <= k->budget) {
		k->n_processes = n_processes; /* there is no more to be had */
		return;
	}
	need = (rlim_t)k->base + budget;
	if (rl.rlim_cur < need) {
		rl.rlim_cur = need;
		if (setrlimit(RLIMIT_NOFILE, &rl) < 0)
			return;
	}
	if (grow_table(k->base, budget)) {
		k->budget = budget;
		k->n_processes = n_processes;
	}
}

void keptfd_park(int *fd)
{
	struct rlimit rl;
	int high;

	if (*fd < 0 || getrlimit(RLIMIT_NOFILE, &rl) < 0)
		return;
	if (rl.rlim_cur < KEPTFD_BASE + RESERVE &&
	    rl.rlim_max >= KEPTFD_BASE + RESERVE) {
		rl.rlim_cur = KEPTFD_BASE + RESERVE;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	high = fcntl(*fd, F_DUPFD_CLOEXEC, KEPTFD_BASE);
	if (high < 0)
		return;
	close(*fd);
	*fd = high;
}

bool keptfd_has_room(struct keptfd *k)
{
	if (k->n_kept < k->budget)
		return true;
	k->full = true;
	return false;
}

int keptfd_keep(struct keptfd *k, int *fd)
{
	int high;

	if (!keptfd_has_room(k))
		return -ENOSPC;
	high = fcntl(*fd, F_DUPFD_CLOEXEC, k->base);
	if (high < 0)
		return -errno;
	close(*fd);
	*fd = high;
	k->n_kept++;
	return 0;
}

void keptfd_close(struct keptfd *k, int *fd)
{
	if (*fd < 0)
		return;
	close(*fd);
	*fd = -1;
	k->n_kept--;
}
