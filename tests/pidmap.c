/* SPDX-License-Identifier: MIT */
/* Tests of plugin/pidmap.c against a plain array. */
#include "pidmap.h"

#include "tap.h"

struct entry {
	uint32_t pid;
	uint64_t value;
};

enum {
	N_PIDS = 5000,
};

static uint32_t random_next(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

static void empty(void)
{
	struct pidmap m;
	uint32_t pid = 7;

	pidmap_init(&m, sizeof(struct entry), 10);
	check(!pidmap_find(&m, pid));
	check(!pidmap_add(&m, 0));
	check_u64(m.n, 0);
	pidmap_done(&m);
	pidmap_done(&m);
}

static void new_is_zero(void)
{
	struct pidmap m;
	struct entry *e;

	pidmap_init(&m, sizeof(struct entry), 10);
	e = pidmap_add(&m, 12);
	e->value = 99;
	check(pidmap_add(&m, 12) == e);
	check_u64(m.n, 1);
	pidmap_remove(&m, e);
	e = pidmap_add(&m, 12);
	check_u64(e->value, 0);
	check_u64(e->pid, 12);
	pidmap_done(&m);
}

static void bounded(void)
{
	struct pidmap m;

	pidmap_init(&m, sizeof(struct entry), 100);
	for (uint32_t pid = 1; pid <= 100; pid++)
		check(pidmap_add(&m, pid) != NULL);
	check(!pidmap_add(&m, 101));
	check(pidmap_add(&m, 50) != NULL);
	pidmap_remove(&m, pidmap_find(&m, 50));
	check(pidmap_add(&m, 101) != NULL);
	check_u64(m.n, 100);
	pidmap_done(&m);
}

/* Values are taken from `want`: 0 is none. */
static void compare(const struct pidmap *m, const uint64_t *want)
{
	size_t n = 0;

	for (uint32_t pid = 1; pid < N_PIDS; pid++) {
		const struct entry *e = pidmap_find(m, pid);

		if ((e ? e->value : 0) != want[pid]) {
			check_u64(e ? e->value : 0, want[pid]);
			return;
		}
		n += want[pid] != 0;
	}
	check_u64(m->n, n);
}

static void like_an_array(void)
{
	static uint64_t want[N_PIDS];
	struct pidmap m;
	uint32_t state = 1;

	memset(want, 0, sizeof(want));
	pidmap_init(&m, sizeof(struct entry), N_PIDS);
	for (unsigned i = 1; i <= 60000; i++) {
		uint32_t pid = 1 + random_next(&state) % (N_PIDS - 1);
		bool adding = i % 20000 < 12000 ? random_next(&state) % 4 != 0
						: random_next(&state) % 4 == 0;
		struct entry *e = pidmap_find(&m, pid);

		if (adding) {
			e = pidmap_add(&m, pid);
			e->value = want[pid] = i;
		} else if (e) {
			pidmap_remove(&m, e);
			want[pid] = 0;
		}
		if (i % 1000 == 0)
			compare(&m, want);
	}
	pidmap_done(&m);
}

struct sweep {
	uint8_t n_seen[N_PIDS];
	uint64_t *want;
};

static bool keep_odd(void *arg, void *entry)
{
	struct sweep *s = arg;
	const struct entry *e = entry;

	s->n_seen[e->pid]++;
	if (e->value % 2)
		return true;
	s->want[e->pid] = 0;
	return false;
}

static void swept(void)
{
	static uint64_t want[N_PIDS];
	static struct sweep s;
	struct pidmap m;
	uint32_t state = 5;

	memset(want, 0, sizeof(want));
	memset(&s, 0, sizeof(s));
	s.want = want;
	pidmap_init(&m, sizeof(struct entry), N_PIDS);
	for (unsigned i = 1; i < 3000; i++) {
		uint32_t pid = 1 + random_next(&state) % (N_PIDS - 1);
		struct entry *e = pidmap_add(&m, pid);

		e->value = want[pid] = i;
	}
	pidmap_sweep(&m, keep_odd, &s);
	compare(&m, want);
	for (uint32_t pid = 1; pid < N_PIDS; pid++)
		if (s.n_seen[pid] > 2 || (want[pid] && !s.n_seen[pid]))
			check_int(s.n_seen[pid], 1);
	pidmap_done(&m);
}

static bool keep_few(_unused_ void *arg, void *entry)
{
	const struct entry *e = entry;

	return e->pid % 100 == 0;
}

static void shrunk(void)
{
	struct pidmap m;
	size_t most;

	pidmap_init(&m, sizeof(struct entry), 100000);
	for (uint32_t pid = 1; pid <= 20000; pid++)
		((struct entry *)pidmap_add(&m, pid))->value = 7 * pid;
	most = m.cap;
	pidmap_sweep(&m, keep_few, NULL);
	/* Not yet: the next storm may come at once. */
	pidmap_sweep(&m, keep_few, NULL);
	check_u64(m.cap, most);
	for (unsigned i = 0; i < 1000; i++)
		pidmap_sweep(&m, keep_few, NULL);
	check(m.cap <= 4096);
	check_u64(m.n, 200);
	for (uint32_t pid = 100; pid <= 20000; pid += 100) {
		const struct entry *e = pidmap_find(&m, pid);

		check(e && e->value == 7 * pid);
	}
	pidmap_done(&m);
}

int main(void)
{
	TEST("an empty table has nothing, and takes no number 0", empty);
	TEST("a new entry is zero but for its number", new_is_zero);
	TEST("there are never more entries than allowed", bounded);
	TEST("it holds what an array would hold", like_an_array);
	TEST("after a storm a table becomes as small as it has to be", shrunk);
	TEST("a sweep shows each entry and leaves those to keep", swept);
	return tap_done();
}
