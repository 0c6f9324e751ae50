/* SPDX-License-Identifier: MIT */
/*
 * Between a tick and the explanation of a process a lot may happen to it: it
 * ends, becomes another, loses its parent. The group must stay the one that
 * was counted, and what happened must be said. On a /proc of our own making.
 */
#include "clocks.h"
#include "explain.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static char dir[] = "/tmp/proctally-meanwhile.XXXXXX";
static char proc_path[64], rules_path[64];

static struct monitor *m;

/* What monitor_explain() said, line by line. */
static char said[16384];

static void sh(const char *fmt, ...) _printf_(1, 2);

static void sh(const char *fmt, ...)
{
	char command[1024];
	va_list ap;
	int n;

	n = snprintf(command, sizeof(command), "cd %s && ", dir);
	va_start(ap, fmt);
	vsnprintf(command + n, sizeof(command) - (size_t)n, fmt, ap);
	va_end(ap);
	check_int(system(command), 0);
}

static void process(int pid, int ppid, const char *comm, int start)
{
	sh("mkdir -p proc/%d && echo '%d (%s) S %d %d %d 0 -1 0 0 0 0 0 1 1 "
	   "0 0 20 0 1 0 %d 10000 10 0' >proc/%d/stat",
	   pid, pid, comm, ppid, pid, pid, start, pid);
	sh("printf '%s\\0' >proc/%d/cmdline", comm, pid);
	sh("echo 0::/a.slice/%s.service >proc/%d/cgroup", comm, pid);
	sh("printf 'Uid:\\t0\\t0\\t0\\t0\\nGid:\\t0\\t0\\t0\\t0\\n' "
	   ">proc/%d/status",
	   pid);
}

static void no_value(void *arg _unused_, const struct value_out *v _unused_)
{
}

static void tick(void)
{
	static uint64_t later;
	struct moment now = clocks_now();

	/* As often as collectd does it. */
	later += 10 * NSEC_PER_SEC;
	now.mono_ns += later;
	now.boot_ns += later;
	check_int(monitor_tick(m, &now, no_value, NULL), 0);
}

static void begin(const char *rules)
{
	struct monitor_options o = {
	    .rules_path = rules_path,
	    .proc_path = proc_path,
	};

	sh("rm -rf proc rules.yaml && mkdir proc");
	if (rules)
		sh("cat >rules.yaml <<'END'\n%s\nEND", rules);
	process(1, 0, "init", 1);
	check_int(monitor_open(&o, &m), 0);
}

static void end(void)
{
	monitor_free(m);
	m = NULL;
}

static void note(void *arg _unused_, const char *line)
{
	size_t n = strlen(said);

	snprintf(said + n, sizeof(said) - n, "%s\n", line);
}

static int explain(pid_t pid)
{
	struct explain_options o = {.pid = pid};

	said[0] = '\0';
	return monitor_explain(m, &o, note, NULL);
}

/* True if some whole line reads so. */
#define says(line) says_(__LINE__, line)
static void says_(int at, const char *line)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(said, whole))
		tap_fail(__FILE__, at, "no line \"%s\" in:\n%s", line, said);
}

static void ended(void)
{
	/* One that is kept open could still be read here. */
	begin("limits: {kept_fds: 0}\n"
	      "rules: [{name: web, comm: nginx}, {name: u, unit: x.service}]");
	process(10, 1, "nginx", 5);
	process(11, 1, "x", 5);
	tick();
	sh("rm -r proc/10 proc/11");
	check_int(explain(10), 0);
	says("  It has ended since it was placed: no more is known of it.");
	says("  unit       (cannot be read: it has ended)");
	says("    comm \"nginx\" matches \"nginx\"");
	says("group: web");
	/* Where the rest decides, the reasons lead elsewhere. */
	check_int(explain(11), 0);
	says("  line 2, \"u\": unit cannot be read: it has ended");
	says("group: u");
	says("  it is where it was when more was known of it");
	/* It was found out, so that from now on there is none. */
	check_int(explain(10), EXPLAIN_NO_PROCESS);
	tick();
	check_int(explain(11), EXPLAIN_NO_PROCESS);
	end();
}

static void number_reused(void)
{
	begin("rules: [{name: web, comm: nginx}]");
	process(10, 1, "nginx", 5);
	tick();
	process(10, 1, "other", 6);
	check_int(explain(10), 0);
	says("  It has ended since it was placed: no more is known of it.");
	says("group: web");
	tick();
	check_int(explain(10), 0);
	says("  comm       \"other\"");
	says("group: other");
	end();
}

static void changed(void)
{
	begin("rules: [{name: \"{{.Unit}}\", unit: \"glob:*.service\"}, "
	      "{action: drop, user: nobody}]");
	process(10, 1, "a", 5);
	tick();
	check_int(explain(10), 0);
	says("group: a.service");
	check(!strstr(said, "changed"));
	sh("echo 0::/a.slice/b.service >proc/10/cgroup");
	check_int(explain(10), 0);
	says("    {{.Unit}} is \"b.service\"");
	says("  it has changed since it was placed: what it is now leads to "
	     "\"b.service\"");
	says("group: a.service");
	sh("echo 0::/ >proc/10/cgroup");
	check_int(explain(10), 0);
	says("  it has changed since it was placed: what it is now leads to "
	     "\"other\"");
	says("group: a.service");
	end();
}

static void orphan(void)
{
	begin("rules: [{name: boss, comm: boss}]");
	process(10, 1, "boss", 5);
	process(11, 10, "help", 5);
	tick();
	sh("rm -r proc/10");
	process(11, 1, "help", 5);
	tick();
	check_int(explain(11), 0);
	says("    1 (init): process 1 hands nothing on");
	says("  it inherited from 10, which has ended or gone from it since: "
	     "it stays");
	says("group: boss");
	end();
}

static void late_answer(void)
{
	begin("rules: [{name: web, cmdline: shop}]");
	process(10, 1, "nginx", 5);
	sh("rm proc/10/cmdline && mkfifo proc/10/cmdline");
	check(monitor_is_settled(m)); /* nothing was asked yet */
	tick();
	check(!monitor_is_settled(m));
	check_int(explain(10), 0);
	says("  cmdline    (is not known yet)");
	says("  line 1, \"web\": cmdline is not known yet");
	says("group: other");
	/* It comes while it is waited for. */
	sh("(sleep 0.3; printf 'shop\\0' >proc/10/cmdline) &");
	check_int(explain(10), 0);
	says("  cmdline    \"shop\"");
	says("    cmdline \"shop\" matches \"shop\"");
	says("  it has changed since it was placed: what it is now leads to "
	     "\"web\"");
	says("group: other");
	sh("rm proc/10/cmdline && printf 'shop\\0' >proc/10/cmdline");
	tick();
	check_int(explain(10), 0);
	says("group: web");
	check(!strstr(said, "changed"));
	end();
}

static void no_rules(void)
{
	begin(NULL);
	process(10, 1, "nginx", 5);
	tick();
	check_int(explain(10), EXPLAIN_NO_RULES);
	check(!monitor_view_name(m, 0));
	end();
}

static void several_times(void)
{
	begin("rules: [{name: web, cmdline: nginx}]\n"
	      "views: {all: {rules: [{name: x, any: true}]}}");
	process(10, 1, "nginx", 5);
	for (unsigned i = 0; i < 3; i++) {
		tick();
		check_int(explain(10), 0);
		says("group: web");
		says("group all: all.x");
		check_int(explain(1), 0);
		says("group: other");
	}
	check_text(monitor_view_name(m, 0), "app");
	check_text(monitor_view_name(m, 1), "all");
	check(!monitor_view_name(m, 2));
	end();
}

int main(void)
{
	check(mkdtemp(dir) != NULL);
	snprintf(proc_path, sizeof(proc_path), "%s/proc", dir);
	snprintf(rules_path, sizeof(rules_path), "%s/rules.yaml", dir);

	TEST("one that ended is explained by what was known", ended);
	TEST("who has its number now is another process", number_reused);
	TEST("what changed leads elsewhere, and is counted as before", changed);
	TEST("one whose parent is gone stays where it inherited", orphan);
	TEST("a command line that comes late is waited for", late_answer);
	TEST("without rules there is nothing to explain", no_rules);
	TEST("explaining does no harm to the next tick", several_times);
	sh("cd / && rm -rf %s", dir);
	return tap_done();
}
