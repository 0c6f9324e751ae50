/* SPDX-License-Identifier: MIT */
#include "fakeexits.h"

#include <inttypes.h>
#include <stdio.h>

#include "exits-pump.h"
#include "procfs.h"

enum {
	RECORDS_MAX = 4096, /* in a tick */
	TICK_MS = 10,	    /* of start= and end= */
	REST_US = 5000,	    /* that the end of the end may take */
};

static struct {
	bool on;
	struct exitrec record[RECORDS_MAX], taken[RECORDS_MAX];
	size_t n;
	uint64_t n_lost;
} fake;

static const struct {
	const char *key;
	enum exit_value value;
} values[] = {
    {"user", EXIT_UTIME_US},	       {"sys", EXIT_STIME_US},
    {"minflt", EXIT_MINFLT},	       {"majflt", EXIT_MAJFLT},
    {"rchar", EXIT_READ_CHARS},	       {"wchar", EXIT_WRITE_CHARS},
    {"syscr", EXIT_READ_CALLS},	       {"syscw", EXIT_WRITE_CALLS},
    {"read_bytes", EXIT_READ_BYTES},   {"nvcsw", EXIT_NVCSW},
    {"write_bytes", EXIT_WRITE_BYTES}, {"nivcsw", EXIT_NIVCSW},
};

struct line {
	uint64_t start, end; /* ticks since boot; 0: not said */
	uint64_t forked, max_us;
};

static bool take_key(const char *key, uint64_t v, struct line *line,
		     struct exitrec *r)
{
	const struct {
		const char *key;
		uint32_t *to;
	} numbers[] = {
	    {"ppid", &r->ppid},
	    {"uid", &r->uid},
	    {"gid", &r->gid},
	    {"threads", &r->n_threads},
	};
	const struct {
		const char *key;
		uint64_t *to;
	} more[] = {
	    {"start", &line->start},   {"end", &line->end},
	    {"forked", &line->forked}, {"max", &line->max_us},
	    {"exe", &r->exe_inode},    {"dev", &r->exe_dev},
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (strcmp(key, numbers[i].key) == 0) {
			*numbers[i].to = (uint32_t)v;
			return true;
		}
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (strcmp(key, more[i].key) == 0) {
			*more[i].to = v;
			return true;
		}
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		if (strcmp(key, values[i].key) == 0) {
			r->value[values[i].value] = v;
			return true;
		}
	return false;
}

static void finish(struct exitrec *r, const struct line *line,
		   const struct moment *now)
{
	uint64_t ms = NSEC_PER_MSEC;
	uint64_t start = line->start * TICK_MS * ms;
	uint64_t end = line->end ? line->end * TICK_MS * ms : now->boot_ns;

	r->elapsed_us = (end - start) / 1000;
	r->began_s = (start + now->real_ns - now->boot_ns) / NSEC_PER_SEC;
	r->cpu_ns = (r->value[EXIT_UTIME_US] + r->value[EXIT_STIME_US]) * 1000;
	r->run_ns = r->cpu_ns;
	r->cpu_max_ns = r->cpu_ns + REST_US * 1000;
	if (line->max_us)
		r->cpu_max_ns = line->max_us * 1000;
	if (line->forked)
		r->flags |= EXIT_FORKED;
	if (r->exe_inode)
		r->flags |= EXIT_HAS_EXE;
}

bool fakeexits_add(const char *text, const struct moment *now)
{
	struct exitrec r = {
	    .n_threads = 1,
	    .version = 16,
	    .flags = EXIT_HAS_TGID | EXIT_LAST | EXIT_LEADER,
	    .have = EXIT_BIT(EXIT_N_VALUES) - 1,
	};
	struct line line = {0};
	char comm[EXIT_COMM_SIZE], key[16];
	uint64_t v;
	int n;

	if (sscanf(text, "%u \"%15[^\"]\"%n", &r.pid, comm, &n) != 2 ||
	    fake.n == RECORDS_MAX)
		return false;
	strcpy(r.comm, comm);
	r.tid = r.pid;
	for (text += n;
	     sscanf(text, " %15[a-z_]=%" SCNu64 "%n", key, &v, &n) == 2;
	     text += n)
		if (!take_key(key, v, &line, &r))
			return false;
	if (!line.start || text[strspn(text, " ")])
		return false;
	finish(&r, &line, now);
	fake.record[fake.n++] = r;
	return true;
}

void fakeexits_on(void)
{
	fake.on = true;
	fake.n = 0;
	fake.n_lost = 0;
}

void fakeexits_off(void)
{
	fake.on = false;
}

void fakeexits_lose(unsigned n)
{
	fake.n_lost += n;
}

bool __wrap_procfs_is_own(const struct procfs *fs);
int __wrap_pump_open(struct pump *p, const struct exits_options *o);
int __wrap_pump_take(struct pump *p, const struct exitrec **ret_record,
		     size_t *ret_n);
struct pump_state __wrap_pump_look(struct pump *p);
void __wrap_pump_sweep(struct pump *p, gather_lives_fn *lives, void *arg);
void __wrap_pump_close(struct pump *p);

bool __wrap_procfs_is_own(_unused_ const struct procfs *fs)
{
	return fake.on;
}

int __wrap_pump_open(_unused_ struct pump *p,
		     _unused_ const struct exits_options *o)
{
	return 0;
}

int __wrap_pump_take(_unused_ struct pump *p, const struct exitrec **ret_record,
		     size_t *ret_n)
{
	memcpy(fake.taken, fake.record, sizeof(fake.taken));
	*ret_record = fake.taken;
	*ret_n = fake.n;
	fake.n = 0;
	return 0;
}

struct pump_state __wrap_pump_look(_unused_ struct pump *p)
{
	return (struct pump_state){.n_lost = fake.n_lost};
}

void __wrap_pump_sweep(_unused_ struct pump *p, _unused_ gather_lives_fn *lives,
		       _unused_ void *arg)
{
}

void __wrap_pump_close(_unused_ struct pump *p)
{
}
