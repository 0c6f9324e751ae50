/* SPDX-License-Identifier: MIT */
/*
 * The pump without a kernel that tells of exits: records with running numbers
 * come out of a drain of ours, in the caller's thread and in the pump's. None
 * may be missing, come twice or before another, and what there was no room for
 * is counted. Built with --enable-sanitizers=thread it shows whether all that
 * two threads touch is locked.
 */
#include "exits-pump.h"

#include <stdatomic.h>
#include <unistd.h>

#include "clocks.h"
#include "tap.h"

enum {
	IN_A_DRAIN = 50,
	PUMPED = 5,	  /* so often the thread comes */
	TAKES_MS = 20000, /* in which it has to */
	PAUSE_US = 1000,
};

static struct {
	exits_fn *fn;
	void *arg;
	uint32_t n_told;
	unsigned n_drains, n_lost;
	atomic_uint n_pumped;
	pthread_t caller;
} kernel;

int __wrap_exits_open(struct exits *x, const struct exits_options *o,
		      exits_fn *fn, void *arg);
int __wrap_exits_open(struct exits *x, const struct exits_options *o,
		      exits_fn *fn, void *arg)
{
	exits_init(x);
	x->fd = dup(STDIN_FILENO);
	x->buffer = x->buffer_max = o->buffer;
	kernel.fn = fn;
	kernel.arg = arg;
	kernel.n_told = 0;
	kernel.n_drains = 0;
	kernel.n_pumped = 0;
	kernel.caller = pthread_self();
	return x->fd < 0 ? -errno : 0;
}

void __wrap_exits_close(struct exits *x);
void __wrap_exits_close(struct exits *x)
{
	if (x->fd >= 0)
		close(x->fd);
	exits_init(x);
}

/* Called with the lock held. In the pump's thread more come each time. */
int __wrap_exits_drain(struct exits *x);
int __wrap_exits_drain(struct exits *x)
{
	bool is_pump = !pthread_equal(pthread_self(), kernel.caller);
	unsigned n = IN_A_DRAIN;

	kernel.n_drains++;
	if (is_pump)
		n *= 20 * ++kernel.n_pumped;
	x->n_lost += kernel.n_lost;
	kernel.n_lost = 0;
	for (unsigned i = 0; i < n; i++) {
		struct exitrec r = {.pid = ++kernel.n_told};

		kernel.fn(kernel.arg, &r);
	}
	return 0;
}

static void two_threads(void)
{
	const struct exits_options o = {.buffer = 64 * 1024};
	const struct exitrec *record;
	uint64_t end = clocks_read(CLOCK_MONOTONIC) + TAKES_MS * NSEC_PER_MSEC;
	unsigned n_takes = 0, n_wrong = 0;
	uint32_t last = 0;
	struct pump p;
	size_t n;

	check_int(pump_open(&p, &o), 0);
	check(!pump_look(&p).has_thread);
	kernel.n_lost = 1;
	while (kernel.n_pumped < PUMPED && clocks_read(CLOCK_MONOTONIC) < end) {
		check_int(pump_take(&p, &record, &n), 0);
		n_takes++;
		check(n >= IN_A_DRAIN);
		for (size_t i = 0; i < n; i++)
			n_wrong += record[i].pid != ++last;
		usleep(PAUSE_US);
	}
	check_u64(n_wrong, 0);
	check(pump_look(&p).has_thread);
	check_u64(pump_look(&p).n_lost, 1);
	pump_close(&p);
	printf("# %u takes, %u drains\n", n_takes, kernel.n_drains);
	check(kernel.n_pumped >= PUMPED);
}

static void no_room(void)
{
	const struct exits_options o = {.buffer = 64 * 1024};
	const struct exitrec *record;
	struct pump p;
	size_t n;

	check_int(pump_open(&p, &o), 0);
	p.records_max = 20;
	for (unsigned i = 1; i < 10; i++) {
		check_int(pump_take(&p, &record, &n), 0);
		check_u64(n, 20);
		check_u64(pump_look(&p).n_lost, i * (IN_A_DRAIN - 20));
	}
	pump_close(&p);
}

int main(void)
{
	TEST("two threads take the same records, each once and in order",
	     two_threads);
	TEST("what there is no room for is counted as lost", no_room);
	return tap_done();
}
