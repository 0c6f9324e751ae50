/* SPDX-License-Identifier: MIT */
/*
 * Services on a real kernel whose children come and go between two ticks: what
 * a monitor counts in their groups is what the kernel says that these children
 * used. Nothing here depends on how fast the host is.
 */
#include "clocks.h"
#include "exits.h"
#include "monitor.h"
#include "tap.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

enum {
	N_SERVICES = 3,
	TICK_MS = 500,
	TICKS_MAX = 1000,
};

static const char *const kinds[N_SERVICES] = {"program", "fork", "shell"};

struct service {
	char name[32];
	uint64_t children_us, self_us, n;
	/* As the monitor has it. */
	uint64_t cpu_us, starts, before_us, faults, exited_us;
};

static struct {
	char dir[64], rules[96];
	struct monitor *monitor;
	struct service service[N_SERVICES];
	uint64_t user_cpu_us, has_records, n_lost;
	pid_t pid;
	FILE *in, *out;
} t;

static void write_rules(const char *text)
{
	FILE *f;

	strcpy(t.dir, "/tmp/proctally-shortlives-XXXXXX");
	if (!mkdtemp(t.dir))
		return;
	snprintf(t.rules, sizeof(t.rules), "%s/rules.yaml", t.dir);
	f = fopen(t.rules, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static bool is_value(const struct value_out *v, const char *group,
		     const char *type, const char *instance)
{
	return strcmp(v->group, group) == 0 && strcmp(v->type, type) == 0 &&
	       strcmp(v->instance ? v->instance : "", instance) == 0;
}

static void take(_unused_ void *arg, const struct value_out *v)
{
	for (unsigned i = 0; i < N_SERVICES; i++) {
		struct service *s = &t.service[i];

		if (is_value(v, s->name, "ps_cputime", ""))
			s->cpu_us = v->u[0] + v->u[1];
		if (is_value(v, s->name, "ps_cputime", "exited"))
			s->exited_us = v->u[0] + v->u[1];
		if (is_value(v, s->name, "total_operations", "starts"))
			s->starts = v->u[0];
		if (is_value(v, s->name, "ps_pagefaults", ""))
			s->faults = v->u[0];
	}
	if (is_value(v, "all.all", "ps_cputime", ""))
		t.user_cpu_us = v->u[0] + v->u[1];
	if (is_value(v, "_self", "gauge", "exit_records"))
		t.has_records = (uint64_t)v->d[0];
	if (is_value(v, "_self", "total_operations", "exits_lost"))
		t.n_lost = v->u[0];
}

static void tick(void)
{
	struct moment now = clocks_now();

	check_int(monitor_tick(t.monitor, &now, take, NULL), 0);
}

static void pause_ms(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

/* Begins the services, which wait for our word. */
static bool begin_storm(const char *rate, const char *seconds)
{
	const char *top = getenv("top_builddir");
	char path[512], line[64];
	int to[2], from[2];

	snprintf(path, sizeof(path), "%s/tests/storm", top ? top : ".");
	if (pipe(to) < 0 || pipe(from) < 0)
		return false;
	t.pid = fork();
	if (t.pid == 0) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		execl(path, path, rate, seconds, NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	t.in = fdopen(from[0], "r");
	t.out = fdopen(to[1], "w");
	setvbuf(t.in, NULL, _IONBF, 0); /* what was read is not to be polled */
	return t.in && t.out && fgets(line, sizeof(line), t.in);
}

static struct service *service_of(const char *name)
{
	for (unsigned i = 0; i < N_SERVICES; i++)
		if (strcmp(t.service[i].name, name) == 0)
			return &t.service[i];
	return NULL;
}

/* Ticks until there is something to read, or nothing comes any more. */
static void tick_meanwhile(void)
{
	struct pollfd p = {.fd = fileno(t.in), .events = POLLIN};

	for (unsigned i = 0; i < TICKS_MAX && poll(&p, 1, TICK_MS) == 0; i++)
		tick();
}

static bool read_results(void)
{
	for (unsigned i = 0; i < N_SERVICES; i++) {
		tick_meanwhile();
		char line[128], name[32];
		uint64_t v[5];
		struct service *s;

		if (!fgets(line, sizeof(line), t.in) ||
		    sscanf(line,
			   "%31s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %" SCNu64,
			   name, &v[0], &v[1], &v[2], &v[3], &v[4]) != 6)
			return false;
		s = service_of(name);
		if (!s)
			return false;
		s->children_us = v[0] + v[1];
		s->self_us = v[2] + v[3];
		s->n = v[4];
	}
	return true;
}

static void end_storm(void)
{
	if (t.out)
		fclose(t.out);
	if (t.in)
		fclose(t.in);
	if (t.pid > 0)
		waitpid(t.pid, NULL, 0);
	t.in = t.out = NULL;
}

static void check_near(const char *what, uint64_t got, uint64_t want)
{
	double ratio = want ? (double)got / (double)want : 0;

	printf("# %s: %.4f of %" PRIu64 " us\n", what, ratio, want);
	if (ratio < 0.95 || ratio > 1.05)
		tap_fail(__FILE__, __LINE__,
			 "%s: %" PRIu64 " us, but it used %" PRIu64 " us", what,
			 got, want);
}

static void compare(void)
{
	for (unsigned i = 0; i < N_SERVICES; i++) {
		const struct service *s = &t.service[i];

		check_near(s->name, s->cpu_us - s->before_us,
			   s->children_us + s->self_us);
		check_near("of its children", s->exited_us, s->children_us);
		check(s->faults > 10 * s->n);
		if (strcmp(kinds[i], "shell") == 0)
			check_u64(s->starts, 2 * s->n);
		else
			check_u64(s->starts, s->n);
	}
}

static bool open_monitor(void)
{
	struct monitor_options o = {.rules_path = t.rules};

	char rules[1024];
	int n = snprintf(rules, sizeof(rules),
			 "defaults: {collect: {exited: true, pss: false}}\n"
			 "views:\n"
			 "  all: {rules: [{name: all, any: true, "
			 "kernel: any}]}\n"
			 "rules:\n");

	for (unsigned i = 0; i < N_SERVICES; i++) {
		struct service *s = &t.service[i];

		snprintf(s->name, sizeof(s->name), "%d-%s", (int)t.pid,
			 kinds[i]);
		n += snprintf(rules + n, sizeof(rules) - (size_t)n,
			      "  - {name: %s, comm: %s}\n", s->name, s->name);
	}
	write_rules(rules);
	return monitor_open(&o, &t.monitor) == 0;
}

static void cover(void)
{
	uint64_t sum = 0, all_before;

	if (!begin_storm("450", "10") || !open_monitor()) {
		check(!"begun");
		return;
	}
	tick();
	pause_ms(TICK_MS);
	tick();
	for (unsigned i = 0; i < N_SERVICES; i++)
		t.service[i].before_us = t.service[i].cpu_us;
	all_before = t.user_cpu_us;
	fputs("go\n", t.out);
	fflush(t.out);
	check(read_results());
	tick();
	tick();
	check_u64(t.has_records, 1);
	check_u64(t.n_lost, 0);
	compare();
	for (unsigned i = 0; i < N_SERVICES; i++)
		sum += t.service[i].cpu_us - t.service[i].before_us;
	check(t.user_cpu_us - all_before >= sum);
}

static void ignore(_unused_ void *arg, _unused_ const struct exitrec *r)
{
}

static bool has_records(void)
{
	struct exits_options usual = {0};
	struct exits x;
	int r = exits_open(&x, &usual, ignore, NULL);

	exits_close(&x);
	return r == 0;
}

static void services(void)
{
	if (!has_records()) {
		tap_skip("no exit records here");
		return;
	}
	cover();
	end_storm();
	monitor_free(t.monitor);
	unlink(t.rules);
	rmdir(t.dir);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	TEST("groups of services get what their children used", services);
	return tap_done();
}
