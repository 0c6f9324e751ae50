/* SPDX-License-Identifier: MIT */
/*
 * Tests of plugin/exits.c, and of plugin/ledger.c with it, on this kernel with
 * children of our own. What they used is what wait4(2) and getrusage(2) say.
 * Without the right to listen all points are skipped.
 */
#include "exits-pump.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "bulk.h"
#include "clocks.h"
#include "ledger.h"
#include "proctext.h"
#include "tap.h"

#define MS NSEC_PER_MSEC

enum {
	N_SERVICES = 3,
	N_KNOWN = 6,
	STORM_MS = 3000,
	N_STORM = 20000,
	NOBODY = 65534,
};

/* Records of children of this process. */
static struct {
	struct exitrec r[256];
	unsigned n;
} got;

static void note(void *arg, const struct exitrec *r)
{
	if (arg && r->ppid != (uint32_t)getpid())
		return;
	if (got.n < ARRAY_SIZE(got.r))
		got.r[got.n] = *r;
	got.n++;
}

/* False if there are no records here. */
static bool listen_to(struct exits *x, const struct exits_options *o)
{
	int r = exits_open(x, o, note, x);

	got.n = 0;
	if (r == 0)
		return true;
	tap_skip("exits_open() says %d", r);
	return false;
}

static void burn(unsigned ms)
{
	uint64_t end = clocks_thread_cpu() + ms * MS;

	while (clocks_thread_cpu() < end)
		;
}

static void *burn_10(_unused_ void *arg)
{
	burn(10);
	return NULL;
}

static void *burn_for_ever(_unused_ void *arg)
{
	for (;;)
		burn(1000);
	return NULL;
}

static void *run_true(_unused_ void *arg)
{
	burn(10);
	execl("/bin/true", "true", (char *)NULL);
	return NULL;
}

static uint64_t cpu_of(const struct rusage *r)
{
	return ((uint64_t)r->ru_utime.tv_sec + (uint64_t)r->ru_stime.tv_sec) *
		   NSEC_PER_SEC +
	       ((uint64_t)r->ru_utime.tv_usec + (uint64_t)r->ru_stime.tv_usec) *
		   1000;
}

/* Waits for it, and takes its record. */
static struct exitrec end_of(struct exits *x, pid_t pid, struct rusage *ret)
{
	check_int(wait4(pid, NULL, 0, ret), pid);
	got.n = 0;
	check_int(exits_drain(x), 0);
	check_u64(got.n, 1);
	check_u64(got.r[0].pid, (uint64_t)pid);
	check(got.r[0].flags & EXIT_LAST);
	return got.r[0];
}

/*
 * The record is from before the end, and what ran last is estimated; a busy
 * host disturbs that by some 100 us.
 */
static void check_cpu(const struct exitrec *r, const struct rusage *ru)
{
	uint64_t cpu = cpu_of(ru);

	printf("# %s: used %" PRIu64 " us, record %" PRIu64 " to %" PRIu64
	       ", at most %" PRIu64 "\n",
	       r->comm, cpu / 1000, r->run_ns / 1000, r->cpu_ns / 1000,
	       r->cpu_max_ns / 1000);
	check(r->run_ns <= cpu + MS / 10);
	check(r->cpu_ns <= cpu + MS);
	check(r->cpu_max_ns + MS >= cpu);
	check(r->cpu_ns + 10 * MS * r->n_threads + cpu / 20 >= cpu);
}

static void single(void)
{
	struct exits_options o = {0};
	struct exitrec r;
	struct rusage ru;
	struct exits x;
	time_t now;
	pid_t pid;

	if (!listen_to(&x, &o))
		return;
	pid = fork();
	if (pid == 0) {
		burn(30);
		_exit(3);
	}
	r = end_of(&x, pid, &ru);
	check_u64(r.exit_code, 0x300);
	check_u64(r.n_threads, 1);
	check(r.flags & EXIT_FORKED);
	check(!(r.flags & EXIT_KILLED));
	check_u64(r.uid, getuid());
	check_u64(r.gid, getgid());
	now = time(NULL);
	check(r.began_s >= (uint64_t)now - 60 && r.began_s <= (uint64_t)now);
	check(r.elapsed_us >= 30000 && r.elapsed_us < 60000000);
	check_cpu(&r, &ru);
	/* Its last faults come when the record is made. */
	check(r.value[EXIT_MINFLT] <= (uint64_t)ru.ru_minflt &&
	      r.value[EXIT_MINFLT] + 8 >= (uint64_t)ru.ru_minflt);
	check(r.value[EXIT_NIVCSW] <= (uint64_t)ru.ru_nivcsw);
	exits_close(&x);
}

static void executed(void)
{
	struct exits_options o = {0};
	struct exitrec r;
	struct rusage ru;
	struct exits x;
	struct stat st;
	pid_t pid;

	if (!listen_to(&x, &o))
		return;
	pid = fork();
	if (pid == 0) {
		if (setgid(NOBODY) == 0 && setuid(NOBODY) == 0)
			execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	r = end_of(&x, pid, &ru);
	check_text(r.comm, "true");
	check_u64(r.exit_code, 0);
	check(!(r.flags & EXIT_FORKED));
	check_u64(r.uid, NOBODY);
	check_u64(r.gid, NOBODY);
	check_cpu(&r, &ru);
	if (r.flags & EXIT_HAS_EXE && stat("/bin/true", &st) == 0) {
		check_u64(r.exe_inode, st.st_ino);
		check_u64(r.exe_dev, st.st_dev);
	}
	exits_close(&x);
}

static void killed(void)
{
	struct exits_options o = {0};
	struct exitrec r;
	struct rusage ru;
	struct exits x;
	pid_t pid;

	if (!listen_to(&x, &o))
		return;
	pid = fork();
	if (pid == 0) {
		burn(20);
		for (;;)
			pause();
	}
	usleep(100000);
	kill(pid, SIGKILL);
	r = end_of(&x, pid, &ru);
	check(r.flags & EXIT_KILLED);
	check_u64(r.exit_code, SIGKILL);
	check_cpu(&r, &ru);
	exits_close(&x);
}

static void threads_before(void)
{
	struct exits_options o = {0};
	struct exitrec r;
	struct rusage ru;
	struct exits x;
	pid_t pid;

	if (!listen_to(&x, &o))
		return;
	pid = fork();
	if (pid == 0) {
		pthread_t t;

		for (unsigned i = 0; i < 5; i++)
			if (pthread_create(&t, NULL, burn_10, NULL) == 0)
				pthread_join(t, NULL);
		_exit(0);
	}
	r = end_of(&x, pid, &ru);
	if (r.flags & EXIT_HAS_TGID) {
		check_u64(r.n_threads, 6);
		check(!(r.flags & EXIT_PARTIAL));
		check(r.value[EXIT_MINFLT] + 16 >= (uint64_t)ru.ru_minflt);
	}
	check(r.cpu_ns >= 50 * MS);
	check_cpu(&r, &ru);
	exits_close(&x);
}

/* The kernel tells of them in any order. */
static void threads_at_once(void)
{
	struct exits_options o = {0};
	struct exits x;

	if (!listen_to(&x, &o))
		return;
	for (unsigned i = 0; i < 40; i++) {
		struct exitrec r;
		struct rusage ru;
		pid_t pid = fork();

		if (pid == 0) {
			pthread_t t;

			for (unsigned k = 0; k < 7; k++)
				pthread_create(&t, NULL, burn_for_ever, NULL);
			usleep(5000);
			_exit(0);
		}
		r = end_of(&x, pid, &ru);
		if (r.flags & EXIT_HAS_TGID)
			check_u64(r.n_threads, 8);
		check(r.cpu_ns + 10 * MS >= cpu_of(&ru) * 8 / 10);
		check(!pidmap_find(&x.gather.processes, (uint32_t)pid));
	}
	exits_close(&x);
}

static void thread_executes(void)
{
	struct exits_options o = {0};
	struct exitrec r;
	struct rusage ru;
	struct exits x;
	pid_t pid;

	if (!listen_to(&x, &o))
		return;
	pid = fork();
	if (pid == 0) {
		pthread_t t;

		burn(10);
		pthread_create(&t, NULL, run_true, NULL);
		for (;;)
			pause();
	}
	r = end_of(&x, pid, &ru);
	check_text(r.comm, "true");
	check_u64(r.exit_code, 0);
	check(r.cpu_ns >= 20 * MS);
	check_cpu(&r, &ru);
	exits_close(&x);
}

static void input_output(void)
{
	struct exits_options o = {0};
	struct exitrec r;
	struct rusage ru;
	struct exits x;
	pid_t pid;

	if (!listen_to(&x, &o))
		return;
	pid = fork();
	if (pid == 0) {
		static char text[400];
		int fd = open("/dev/null", O_WRONLY);

		for (unsigned i = 0; i < 2500; i++)
			if (write(fd, text, sizeof(text)) < 0)
				_exit(1);
		_exit(0);
	}
	r = end_of(&x, pid, &ru);
	check_u64(r.exit_code, 0);
	check_u64(r.value[EXIT_WRITE_CHARS],
		  2500 * 400 / EXIT_ROUNDING * EXIT_ROUNDING);
	check_u64(r.value[EXIT_WRITE_CALLS],
		  2500 / EXIT_ROUNDING * EXIT_ROUNDING);
	check_u64(r.value[EXIT_WRITE_BYTES], 0);
	exits_close(&x);
}

static void end_one(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
}

/* As fast as can be; returns how long it took, ms. */
static uint64_t storm(unsigned n)
{
	uint64_t begin = clocks_read(CLOCK_MONOTONIC);

	for (unsigned i = 0; i < n; i++)
		end_one();
	return (clocks_read(CLOCK_MONOTONIC) - begin) / MS;
}

static void fast_storm(void)
{
	struct exits_options o = {0};
	uint64_t ms, cpu;
	struct exits x;

	if (!listen_to(&x, &o))
		return;
	ms = storm(N_STORM);
	cpu = clocks_thread_cpu();
	check_int(exits_drain(&x), 0);
	cpu = clocks_thread_cpu() - cpu;
	printf("# %u ends in %" PRIu64 " ms: %u told of, %" PRIu64
	       " messages lost, %" PRIu64 " ns for each of %" PRIu64
	       "; the buffer is %zu now\n",
	       N_STORM, ms, got.n, x.n_lost,
	       cpu / MAX(x.gather.counts.n_tasks, UINT64_C(1)),
	       x.gather.counts.n_tasks, x.buffer);
	check(got.n + x.n_lost >= N_STORM);
	check(got.n <= N_STORM);
	check(got.n >= 5000);
	check_u64(x.gather.counts.n_bad, 0);
	if (x.has_drops && x.n_lost)
		check(x.buffer > EXITS_BUFFER);

	/* Drained often enough nothing is lost. */
	got.n = 0;
	x.n_lost = 0;
	for (unsigned i = 0; i < 20; i++) {
		storm(N_STORM / 20);
		check_int(exits_drain(&x), 0);
	}
	check_u64(got.n, N_STORM);
	check_u64(x.n_lost, 0);
	exits_close(&x);
}

static void small_buffer(void)
{
	struct exits_options o = {.buffer = 64 * 1024, .buffer_max = 64 * 1024};
	struct exits x;

	if (!listen_to(&x, &o))
		return;
	check_u64(x.buffer, 64 * 1024);
	storm(1000);
	check_int(exits_drain(&x), 0);
	check(got.n < 1000);
	check(x.n_lost > 0);
	if (x.has_drops) {
		/* Others of the host end, too. */
		check(got.n + x.n_lost >= 1000);
		check_u64(x.buffer, 64 * 1024);
	}
	/* And then it goes on. */
	got.n = 0;
	storm(10);
	check_int(exits_drain(&x), 0);
	check_u64(got.n, 10);
	exits_close(&x);
}

/* In so many steps, with a rest after each. */
static void slow_storm(unsigned n_steps, unsigned n)
{
	for (unsigned i = 0; i < n_steps; i++) {
		storm(n);
		usleep(20000);
	}
}

/* Takes; returns how many of ours were told of. */
static unsigned take(struct pump *p)
{
	const struct exitrec *record;
	size_t n;

	got.n = 0;
	check_int(pump_take(p, &record, &n), 0);
	for (size_t i = 0; i < n; i++)
		note(p, &record[i]);
	return got.n;
}

static void pumped(void)
{
	struct exits_options o = {.buffer = 4 << 20, .buffer_max = 4 << 20};
	unsigned room = (4 << 20) / EXITS_RECORD_COST, n;
	struct pump p;
	int r = pump_open(&p, &o);

	if (r != 0) {
		tap_skip("pump_open() says %d", r);
		return;
	}
	storm(100);
	check_u64(take(&p), 100);
	check(!pump_look(&p).has_thread);
	storm(2 * room);
	n = take(&p);
	check(n <= room + 10 && n >= room / 2);
	check(pump_look(&p).n_lost + n >= 2 * room);
	check(pump_look(&p).has_thread);
	/* Now it takes more than the socket does. */
	slow_storm(40, 200);
	n = take(&p);
	printf("# 8000 in 40 steps: %u told of\n", n);
	check(n > room * 3 / 2);
	if (pump_look(&p).n_lost == 0)
		check_u64(n, 8000);
	/* It is not needed any more. */
	for (unsigned i = 0; i < 40; i++)
		take(&p);
	check(!pump_look(&p).has_thread);
	storm(10);
	check_u64(take(&p), 10);

	/* Nor is the room of a storm. */
	check_int(bulk_reserve(&p.record, &p.cap, PUMP_RECORDS_MAX,
			       sizeof(*p.record)),
		  0);
	check_int(bulk_reserve(&p.taken, &p.taken_cap, PUMP_RECORDS_MAX,
			       sizeof(*p.taken)),
		  0);
	for (unsigned i = 0; i < 15; i++)
		take(&p);
	check(p.cap < 2000 && p.taken_cap < 2000);
	storm(10);
	check_u64(take(&p), 10);

	p.records_max = 5;
	storm(10);
	check(take(&p) <= 5);
	check(pump_look(&p).n_lost >= 5);
	pump_close(&p);
	pump_close(&p);
}

static void closed_while_pumping(void)
{
	struct exits_options o = {.buffer = 64 * 1024, .buffer_max = 64 * 1024};
	struct pump p;
	int r = pump_open(&p, &o);
	uint64_t begin;

	if (r != 0) {
		tap_skip("pump_open() says %d", r);
		return;
	}
	storm(1000);
	take(&p);
	check(pump_look(&p).has_thread);
	begin = clocks_read(CLOCK_MONOTONIC);
	pump_close(&p);
	check(clocks_read(CLOCK_MONOTONIC) - begin < NSEC_PER_SEC);
}

/* What exits_open() says in a child that changed itself. */
static int open_in_child(void (*change)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct exits_options o = {0};
		struct exits x;

		change();
		_exit(exits_open(&x, &o, note, NULL));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void become_nobody(void)
{
	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		_exit(100);
}

static void leave_network(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		_exit(100);
}

static void outcomes(void)
{
	struct exits_options o = {0}, nowhere = {.cpus = "0-100000"};
	struct exits x;

	if (!listen_to(&x, &o))
		return;
	exits_close(&x);
	exits_close(&x);
	check_int(open_in_child(become_nobody), EXITS_DENIED);
	check_int(open_in_child(leave_network), EXITS_INSIDE);
	check(exits_open(&x, &nowhere, note, NULL) != 0);
	check_int(x.fd, -1);
}

static unsigned n_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 10000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void closed(void)
{
	unsigned before = n_descriptors();
	struct exits_options o = {0};
	struct exits x;

	for (unsigned i = 0; i < 3; i++) {
		if (!listen_to(&x, &o))
			return;
		check(x.fd >= 4096 || x.fd < 1024);
		check_u64(n_descriptors(), before + 1);
		exits_close(&x);
	}
	check_u64(n_descriptors(), before);
}

/* Services that do nothing but run short processes; each has its user. */
struct service {
	pid_t pid;
	int told; /* what it says at its end */
	uint64_t counted, given, n_wholes;
	uint64_t reaped_user, reaped_system;
};

struct told {
	uint64_t cpu, n;
};

static struct {
	struct ledger ledger;
	struct service service[N_SERVICES];
} town;

static uid_t user_of(unsigned service)
{
	return 54321 + service;
}

static void run_child(unsigned kind)
{
	switch (kind) {
	case 0:
		burn(1);
		break;
	case 1:
		execl("/bin/true", "true", (char *)NULL);
		break;
	default:
		execl("/bin/sh", "sh", "-c",
		      "i=0; while [ $i -lt 50 ]; do i=$((i+1)); done;"
		      "/bin/true; ls / | wc -l >/dev/null",
		      (char *)NULL);
	}
	_exit(0);
}

static void run_service(unsigned kind, int tell)
{
	uint64_t end = clocks_read(CLOCK_MONOTONIC) + STORM_MS * MS;
	struct told told = {0};
	struct rusage r;

	if (setuid(user_of(kind)) < 0)
		_exit(1);
	for (; clocks_read(CLOCK_MONOTONIC) < end; told.n++) {
		pid_t pid = fork();

		if (pid == 0)
			run_child(kind);
		waitpid(pid, NULL, 0);
		usleep(4000);
	}
	getrusage(RUSAGE_CHILDREN, &r);
	told.cpu = cpu_of(&r);
	if (write(tell, &told, sizeof(told)) != sizeof(told))
		_exit(1);
	for (;;)
		pause();
}

static void count(_unused_ void *arg, const struct exitrec *r)
{
	struct ledger_slice s;
	uint32_t account = r->uid - user_of(0);

	ledger_take(&town.ledger, r, NULL, &s);
	if (account < N_SERVICES && s.kind == LEDGER_WHOLE_LIFE) {
		town.service[account].counted += s.user_ns + s.system_ns;
		town.service[account].n_wholes++;
	}
	ledger_charge(&town.ledger, r, &s, account);
}

static void give(_unused_ void *arg, uint32_t account, uint64_t user_ns,
		 uint64_t system_ns)
{
	if (account < N_SERVICES)
		town.service[account].given += user_ns + system_ns;
}

static uint64_t in_ns(uint64_t ticks)
{
	return ticks * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

static bool read_stat(pid_t pid, struct proc_stat *ret)
{
	char path[64], text[1024];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	close(fd);
	return n > 0 &&
	       proctext_parse_stat((struct str){text, (size_t)n}, ret) == 0;
}

static void look_at_reaped(struct service *s)
{
	struct proc_stat st;
	uint64_t user, system;

	if (!read_stat(s->pid, &st))
		return;
	user = in_ns(st.field[16]);
	system = in_ns(st.field[17]);
	ledger_reaped(&town.ledger, (uint32_t)s->pid, user - s->reaped_user,
		      system - s->reaped_system);
	s->reaped_user = user;
	s->reaped_system = system;
}

static void tick(struct exits *x)
{
	struct moment now = clocks_now();

	ledger_begin(&town.ledger, &now);
	for (unsigned i = 0; i < N_SERVICES; i++)
		if (town.service[i].pid > 0)
			look_at_reaped(&town.service[i]);
	check_int(exits_drain(x), 0);
	ledger_end(&town.ledger, give, NULL);
}

static void start_services(void)
{
	for (unsigned i = 0; i < N_SERVICES; i++) {
		struct service *s = &town.service[i];
		int fd[2];

		if (pipe2(fd, O_CLOEXEC) < 0)
			abort();
		s->pid = fork();
		if (s->pid == 0)
			run_service(i, fd[1]);
		close(fd[1]);
		s->told = fd[0];
	}
}

static void stop_service(struct service *s, struct told *ret)
{
	check_u64((uint64_t)read(s->told, ret, sizeof(*ret)), sizeof(*ret));
	close(s->told);
}

static void check_service(const struct service *s, const struct told *told)
{
	uint64_t all = s->counted + s->given;

	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	printf("# %" PRIu64 " children used %" PRIu64 " us; records say %.3f "
	       "of it, what was reaped makes it %.3f\n",
	       told->n, told->cpu / 1000,
	       (double)s->counted / (double)told->cpu,
	       (double)all / (double)told->cpu);
	check(s->n_wholes >= told->n);
	/* cutime and cstime of stat are up to 10 ms short each. */
	check(all <= told->cpu + told->cpu / 50);
	check(all + told->cpu / 20 + 20 * MS >= told->cpu);
}

static void services(void)
{
	struct told told[N_SERVICES] = {{0}};
	struct exits_options o = {0};
	struct exits x;
	int r = exits_open(&x, &o, count, NULL);

	if (r != 0) {
		tap_skip("exits_open() says %d", r);
		return;
	}
	ledger_init(&town.ledger, NULL, NULL);
	tick(&x);
	start_services();
	for (unsigned i = 0; i < STORM_MS / 200; i++) {
		usleep(200000);
		tick(&x);
	}
	for (unsigned i = 0; i < N_SERVICES; i++)
		stop_service(&town.service[i], &told[i]);
	tick(&x);
	for (unsigned i = 0; i < N_SERVICES; i++)
		check_service(&town.service[i], &told[i]);
	check_u64(x.n_lost, 0);
	ledger_done(&town.ledger);
	exits_close(&x);
}

/* Children that are sampled as long as they live. */
static struct {
	struct ledger ledger;
	struct ledger_process p[N_KNOWN];
	bool ended[N_KNOWN];
	uint64_t counted[N_KNOWN], n_slices[N_KNOWN];
} flock;

static void run_known(unsigned i)
{
	for (unsigned k = 0; k < 4 + 3 * i; k++) {
		burn(3 + i);
		usleep(10000);
	}
	burn(i);
	_exit(0);
}

static void sample_known(unsigned i)
{
	struct ledger_process *p = &flock.p[i];
	uint64_t was = p->user_ns + p->system_ns;
	struct timespec clock;
	struct proc_stat st;
	clockid_t id;

	if (flock.ended[i] || clock_getcpuclockid((pid_t)p->pid, &id) != 0 ||
	    clock_gettime(id, &clock) < 0 || !read_stat((pid_t)p->pid, &st))
		return;
	p->clock_ns =
	    (uint64_t)clock.tv_sec * NSEC_PER_SEC + (uint64_t)clock.tv_nsec;
	p->start_ns = in_ns(st.field[STAT_FIELD_START]);
	p->n_threads = (uint32_t)st.field[STAT_FIELD_THREADS];
	p->user_ns = in_ns(st.field[14]);
	p->system_ns = in_ns(st.field[15]);
	p->value[EXIT_MINFLT] = st.field[10];
	p->have = EXIT_BIT(EXIT_MINFLT);
	flock.counted[i] += p->user_ns + p->system_ns - was;
}

static void take_known(_unused_ void *arg, const struct exitrec *r)
{
	struct ledger_slice s;

	for (unsigned i = 0; i < N_KNOWN; i++) {
		if (flock.p[i].pid != r->pid)
			continue;
		ledger_take(&flock.ledger, r, &flock.p[i], &s);
		check_int(s.kind, LEDGER_LAST_SLICE);
		flock.counted[i] += s.user_ns + s.system_ns;
		flock.n_slices[i]++;
		flock.ended[i] = true;
	}
}

static unsigned n_ended(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N_KNOWN; i++)
		n += flock.ended[i];
	return n;
}

static void check_known(unsigned i)
{
	struct rusage ru;
	uint64_t cpu, counted = flock.counted[i];

	check_int(wait4((pid_t)flock.p[i].pid, NULL, 0, &ru),
		  (int)flock.p[i].pid);
	cpu = cpu_of(&ru);
	printf("# used %" PRIu64 " us, counted %" PRIu64 "\n", cpu / 1000,
	       counted / 1000);
	check_u64(flock.n_slices[i], 1);
	check(counted <= cpu + MS);
	check(counted + 10 * MS >= cpu);
}

static void known(void)
{
	struct exits_options o = {0};
	struct exits x;
	int r = exits_open(&x, &o, take_known, NULL);

	if (r != 0) {
		tap_skip("exits_open() says %d", r);
		return;
	}
	ledger_init(&flock.ledger, NULL, NULL);
	for (unsigned i = 0; i < N_KNOWN; i++) {
		pid_t pid = fork();

		if (pid == 0)
			run_known(i);
		flock.p[i].pid = (uint32_t)pid;
	}
	/* Nobody waits for them: they go on being seen, as zombies. */
	for (unsigned k = 0; k < 300 && n_ended() < N_KNOWN; k++) {
		struct moment now = clocks_now();

		ledger_begin(&flock.ledger, &now);
		for (unsigned i = 0; i < N_KNOWN; i++)
			sample_known(i);
		check_int(exits_drain(&x), 0);
		ledger_end(&flock.ledger, give, NULL);
		usleep(100000);
	}
	for (unsigned i = 0; i < N_KNOWN; i++)
		check_known(i);
	check_u64(flock.ledger.counts.n_anomalies, 0);
	ledger_done(&flock.ledger);
	exits_close(&x);
}

int main(void)
{
	TEST("a child that ended is told of", single);
	TEST("so is one that executed a file, with file and user", executed);
	TEST("so is one that was killed", killed);
	TEST("threads that ended before are in the sum", threads_before);
	TEST("threads that end at once are in the sum", threads_at_once);
	TEST("a thread that executes a file takes the process over",
	     thread_executes);
	TEST("I/O is told of", input_output);
	TEST("20,000 ends are told of or counted as lost", fast_storm);
	TEST("a buffer that is too small loses, and counts what", small_buffer);
	TEST("a thread helps out where the buffer is too small", pumped);
	TEST("it ends when all is closed", closed_while_pumping);
	TEST("where there are no records one is told why", outcomes);
	TEST("closing leaves nothing open", closed);
	TEST("of a known process the last slice is what was not counted",
	     known);
	TEST("short processes of services are counted within 5 %", services);
	return tap_done();
}
