/* SPDX-License-Identifier: MIT */
/*
 * A running monitor whose rule file changes a thousand times while processes
 * come, go, rename themselves and burn CPU: no counter steps back, no group
 * that has its name in the file is missing in any tick, and memory stays
 * where it is.
 *
 * The churn is one process group of our own, whose members end with us.
 */
#include "base.h"
#include "clocks.h"
#include "monitor.h"
#include "ownpids.h"
#include "tap.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	RELOADS = 1000,
	WARM_UP = 400,	 /* reloads until memory is as large as it gets */
	COUNTERS = 8192, /* of all groups that ever were */
	HEAP_SLACK = 192 * 1024, /* the host has more processes, or fewer */
};

static char path[] = "/tmp/proctally-reload.XXXXXX";

/* --- Rule files --- */

/*
 * All name the groups that must always be there; "@" is our pid, of which the
 * names of our processes are made.
 */
static const char first[] =
    "limits: {groups: 60}\n"
    "rules:\n"
    "  - {name: even, comm: [a@, c@]}\n"
    "  - {name: odd, comm: [b@, d@], per_process: {by: slot}}\n"
    "  - {name: rest, any: true}\n";

static const char second[] =
    "limits: {groups: 60}\n"
    "defaults: {children: none, recheck: 0s}\n"
    "rules:\n"
    "  - {name: odd, comm: 're:^[bd]@$'}\n"
    "  - {name: even, comm: 're:^[ac]@$'}\n"
    "  - {name: 'x-{{.Comm}}', comm: 'glob:[ef]@', max_groups: 1}\n"
    "  - {name: rest, any: true, kernel: any}\n"
    "views: {user: {by: user}}\n";

static const char third[] =
    "limits: {groups: 60}\n"
    "views: {two: {rules: [{name: all, any: true}]}, user: {by: user}}\n"
    "rules:\n"
    "  - {name: even, cmdline: 'reload', comm: [a@, c@]}\n"
    "  - {name: odd, ancestor: {comm: churn@}, comm: [b@, d@]}\n"
    "  - name: rest\n"
    "    any: true\n"
    "    per_process: {by: pid, top: {by: cpu, n: 3}}\n"
    "other: {action: drop}\n";

/* These are not used: what was before goes on. */
static const char wrong_key[] = "rules:\n  - {name: even, com: a@}\n";
static const char wrong_test[] = "rules:\n  - {name: even, comm: a@}\n"
				 "tests:\n  - {comm: a@, expect: odd}\n";

static const char *const files[] = {first, second, third, wrong_key,
				    wrong_test};

static void write_rules(const char *text)
{
	char next[sizeof(path) + 8];
	FILE *f;

	snprintf(next, sizeof(next), "%s.next", path);
	f = fopen(next, "we");
	for (; f && *text; text++)
		if (*text == '@')
			fprintf(f, "%d", (int)getpid() % 100000);
		else
			fputc(*text, f);
	check(f && fclose(f) == 0);
	check(rename(next, path) == 0);
}

/* --- Churn --- */

static void be_named(char letter, int owner)
{
	char name[16];

	snprintf(name, sizeof(name), "%c%d", letter, owner % 100000);
	prctl(PR_SET_NAME, name);
}

static void burn_us(unsigned long us)
{
	uint64_t until = clocks_read(CLOCK_PROCESS_CPUTIME_ID) + us * 1000;

	while (clocks_read(CLOCK_PROCESS_CPUTIME_ID) < until)
		;
}

static _Noreturn void live_shortly(unsigned seed, int owner)
{
	be_named((char)('a' + seed % 6), owner);
	burn_us(500 + seed % 7 * 500);
	if (seed % 3 == 0)
		be_named((char)('a' + seed / 3 % 6), owner);
	usleep(seed % 11 * 3000);
	burn_us(300);
	_exit(0);
}

static _Noreturn void churn(int owner)
{
	char name[16];

	snprintf(name, sizeof(name), "churn%d", owner % 100000);
	prctl(PR_SET_NAME, name);
	signal(SIGCHLD, SIG_IGN);
	for (unsigned seed = 0;; seed++) {
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			live_shortly(seed * 2654435761u >> 16, owner);
		}
		usleep(4000);
	}
}

static pid_t start_churn(void)
{
	int owner = getpid();
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != owner)
			_exit(1);
		churn(owner);
	}
	return pid;
}

/* --- What is told --- */

struct counter {
	uint64_t id; /* hash of group, type, instance and data source */
	uint64_t value;
};

static struct {
	struct counter counter[COUNTERS];
	unsigned n_counters, n_back, n_values;
	bool even, odd, rest;
} seen;

static uint64_t id_of(const struct value_out *v, unsigned i)
{
	const char *part[] = {v->group, v->type, v->instance ? v->instance : "",
			      v->ds[i]};
	uint64_t h = HASH_NOTHING;

	for (size_t k = 0; k < ARRAY_SIZE(part); k++)
		h = hash_more(h, (struct str){part[k], strlen(part[k]) + 1});
	return h;
}

static void compare(const struct value_out *v, unsigned i)
{
	uint64_t id = id_of(v, i);
	struct counter *c = seen.counter;
	struct counter *end = c + seen.n_counters;

	while (c < end && c->id != id)
		c++;
	if (c == end) {
		if (seen.n_counters == COUNTERS)
			return;
		seen.n_counters++;
		c->id = id;
	} else if (v->u[i] < c->value) {
		if (seen.n_back++ < 10)
			printf("# %s %s-%s %s fell from %" PRIu64 " to %" PRIu64
			       "\n",
			       v->group, v->type,
			       v->instance ? v->instance : "", v->ds[i],
			       c->value, v->u[i]);
	}
	c->value = v->u[i];
}

static void take(void *arg, const struct value_out *v)
{
	(void)arg;
	seen.n_values++;
	if (strcmp(v->type, "ps_count") == 0) {
		seen.even |= strcmp(v->group, "even") == 0;
		seen.odd |= strcmp(v->group, "odd") == 0;
		seen.rest |= strcmp(v->group, "rest") == 0;
	}
	for (unsigned i = 0; v->derive && i < v->n; i++)
		compare(v, i);
}

static unsigned drain(struct monitor *m)
{
	struct monitor_event e;
	unsigned n = 0;

	while (monitor_take_event(m, &e))
		n += e.level == MONITOR_ERROR;
	return n;
}

static size_t heap_used(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* The mean over half of the time, whenever the first file is in use. */
struct mean {
	size_t sum, n;
};

static void mean_add(struct mean *m)
{
	m->sum += heap_used();
	m->n++;
}

static void thousand_reloads(void)
{
	struct monitor_options o = {.rules_path = path};
	struct monitor *m = NULL;
	unsigned n_missing = 0, n_errors = 0, n_wrong = 0;
	struct mean before = {0}, after = {0};
	size_t heap, heap_after;
	pid_t pid;

	write_rules(files[0]);
	check_int(monitor_open(&o, &m), 0);
	pid = start_churn();
	for (unsigned i = 0; m && i < RELOADS; i++) {
		/* Every file after every other one. */
		unsigned k = (i * i + i / 5) % (unsigned)ARRAY_SIZE(files);
		struct moment now;

		write_rules(files[k]);
		n_wrong += k >= 3;
		seen.even = seen.odd = seen.rest = false;
		now = clocks_now();
		check_int(monitor_tick(m, &now, take, NULL), 0);
		n_missing += !seen.even || !seen.odd || !seen.rest;
		n_errors += drain(m) > 0;
		if (k == 0 && i >= WARM_UP)
			mean_add(i < (RELOADS + WARM_UP) / 2 ? &before
							     : &after);
	}
	heap = before.sum / MAX(before.n, (size_t)1);
	heap_after = after.sum / MAX(after.n, (size_t)1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	check_u64(seen.n_back, 0);
	check_u64(n_missing, 0);
	check_u64(n_errors, n_wrong);
	check(seen.n_values > RELOADS * 50);
	check(before.n > 20 && after.n > 20);
	printf("# %u counters, %u values, heap from %zu to %zu bytes\n",
	       seen.n_counters, seen.n_values, heap, heap_after);
	if (heap_after > heap + HEAP_SLACK)
		tap_fail(__FILE__, __LINE__, "heap grew from %zu to %zu", heap,
			 heap_after);
	monitor_free(m);
}

static int all(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	TEST("a thousand reloads under churn: no step back, no gap, no leak",
	     thousand_reloads);
	unlink(path);
	return tap_done();
}

/* What is taken for a leak may be other programs' processes. */
int main(void)
{
	int r = in_own_pids(all);

	return r == -EPERM ? all() : r < 0;
}
