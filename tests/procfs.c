/* SPDX-License-Identifier: MIT */
/*
 * Reading /proc: of this very host, with real children, and below a root that
 * is only a directory.
 */
#include "procfs.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/* A child that does what it is told, and else sleeps in read(2). */
struct child {
	pid_t pid;
	int to, from;
};

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void spin(void)
{
	uint64_t end = cpu_ns() + 20 * NSEC_PER_MSEC;

	while (cpu_ns() < end)
		;
}

static void *sleep_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void start_threads(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, sleep_for_ever, NULL);
	}
}

/* The first thread ends, another one answers. */
static void *go_on(void *arg)
{
	const int *out = arg;
	char text[64], state = '?';

	while (state != 'Z') {
		FILE *f = fopen("/proc/self/stat", "r");

		if (f && fgets(text, sizeof(text), f) && strrchr(text, ')'))
			state = strrchr(text, ')')[2];
		if (f)
			fclose(f);
	}
	if (write(*out, "d", 1) != 1)
		_exit(1);
	return sleep_for_ever(arg);
}

static void obey(int in, int out)
{
	char what;

	while (read(in, &what, 1) == 1) {
		static int answer_to;
		pthread_t thread;

		switch (what) {
		case 's':
			spin();
			break;
		case 'o':
			for (unsigned i = 0; i < 10; i++)
				open("/dev/null", O_RDONLY);
			break;
		case 't':
			start_threads(3);
			break;
		case 'u':
			if (setresgid(65534, 65534, 65534) ||
			    setresuid(65534, 65534, 65534))
				_exit(1);
			break;
		case 'd':
			answer_to = out;
			pthread_create(&thread, NULL, go_on, &answer_to);
			syscall(SYS_exit, 0);
		}
		if (write(out, &what, 1) != 1)
			break;
	}
	_exit(0);
}

static void child_start(struct child *c)
{
	int to[2] = {-1, -1}, from[2] = {-1, -1};

	check(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
	fflush(stdout);
	c->pid = fork();
	if (c->pid == 0) {
		close(to[1]);
		close(from[0]);
		obey(to[0], from[1]);
	}
	check(c->pid > 0);
	close(to[0]);
	close(from[1]);
	c->to = to[1];
	c->from = from[0];
}

static void child_do(const struct child *c, char what)
{
	char answer = 0;

	check(write(c->to, &what, 1) == 1);
	check(read(c->from, &answer, 1) == 1);
	check_int(answer, what);
}

static void child_stop(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->to);
	close(c->from);
}

static bool open_live(struct procfs *fs)
{
	struct procfs_options o = {.root = "/proc"};

	check_int(procfs_open(fs, &o), 0);
	if (fs->same_pids)
		return true;
	tap_skip("/proc is not of our own PID namespace");
	procfs_close(fs);
	return false;
}

static char root[64];

static void make_root(void)
{
	strcpy(root, "/tmp/proctally-procfs-XXXXXX");
	check(mkdtemp(root) != NULL);
}

static void make_dir(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	check_int(mkdir(path, 0755), 0);
}

static void make_file(const char *name, const char *text, size_t n)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	check(fd >= 0 && write(fd, text, n) == (ssize_t)n);
	close(fd);
}

static void make_text(const char *name, const char *text)
{
	make_file(name, text, strlen(text));
}

static int remove_entry(const char *path, _unused_ const struct stat *st,
			_unused_ int type, _unused_ struct FTW *ftw)
{
	return remove(path);
}

static void open_root(struct procfs *fs)
{
	struct procfs_options o = {.root = root};

	check_int(procfs_open(fs, &o), 0);
}

static void close_root(struct procfs *fs)
{
	procfs_close(fs);
	nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static bool is_listed(const struct procfs *fs, pid_t pid)
{
	for (size_t i = 0; i < fs->n_pids; i++)
		if (fs->pid_list[i] == pid)
			return true;
	return false;
}

static void live_list(void)
{
	struct procfs fs;
	struct child c;

	if (!open_live(&fs))
		return;
	check(fs.is_procfs);
	child_start(&c);
	check_int(procfs_list(&fs), 0);
	check(is_listed(&fs, getpid()));
	check(is_listed(&fs, c.pid));
	for (size_t i = 1; i < fs.n_pids; i++)
		check(fs.pid_list[i - 1] < fs.pid_list[i]);
	child_stop(&c);
	check_int(procfs_list(&fs), 0);
	check(is_listed(&fs, getpid()));
	check(!is_listed(&fs, c.pid));
	procfs_close(&fs);
}

static void fake_list(void)
{
	static const char *const names[] = {
	    "100000", "9", "10", "2", "1", "4194303", "65537", "99", "100",
	};
	static const char *const others[] = {
	    "0",
	    "007",
	    "-1",
	    "1x",
	    "x1",
	    "1.5",
	    "self",
	    "net",
	    "+5",
	    "99999999999",
	    "18446744073709551617",
	};
	static const pid_t want[] = {1,	  2,	 9,	 10,	 99,
				     100, 65537, 100000, 4194303};
	struct procfs fs;

	make_root();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		make_dir(names[i]);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		make_dir(others[i]);
	open_root(&fs);
	check(!fs.is_procfs && !fs.same_pids && !fs.has_clocks);
	for (unsigned k = 0; k < 2; k++) {
		check_int(procfs_list(&fs), 0);
		check_u64(fs.n_pids, ARRAY_SIZE(want));
		for (size_t i = 0; i < MIN(fs.n_pids, ARRAY_SIZE(want)); i++)
			check_int(fs.pid_list[i], want[i]);
	}
	close_root(&fs);
}

static void long_list(void)
{
	struct procfs fs;
	char name[16];

	make_root();
	for (unsigned i = 5000; i > 0; i--) {
		snprintf(name, sizeof(name), "%u", i * 7);
		make_dir(name);
	}
	open_root(&fs);
	check_int(procfs_list(&fs), 0);
	check_u64(fs.n_pids, 5000);
	for (size_t i = 0; i < fs.n_pids; i++)
		check_int(fs.pid_list[i], (pid_t)(i + 1) * 7);
	close_root(&fs);
}

static void sorted_list(void)
{
	static const struct {
		size_t n, want_n;
		pid_t pid[6], want[6];
	} rows[] = {
	    {0, 0, {0}, {0}},
	    {1, 1, {5}, {5}},
	    {3, 3, {1, 2, 3}, {1, 2, 3}},
	    {3, 3, {3, 2, 1}, {1, 2, 3}},
	    {4, 2, {7, 7, 9, 9}, {7, 9}},
	    {6, 3, {3, 1, 3, 2, 1, 3}, {1, 2, 3}},
	    {2, 1, {4194303, 4194303}, {4194303}},
	};
	struct procfs fs;

	make_root();
	open_root(&fs);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		check_int(
		    array_reserve(&fs.pid_list, &fs.pid_cap, 6, sizeof(pid_t)),
		    0);
		memcpy(fs.pid_list, rows[i].pid, sizeof(rows[i].pid));
		fs.n_pids = rows[i].n;
		procfs_sort_list(&fs);
		check_u64(fs.n_pids, rows[i].want_n);
		for (size_t k = 0; k < rows[i].want_n; k++)
			check_int(fs.pid_list[k], rows[i].want[k]);
	}
	close_root(&fs);
}

static void unusable_roots(void)
{
	struct procfs_options o = {.root = "/nowhere/at/all"};
	struct procfs fs;

	check_int(procfs_open(&fs, &o), -ENOENT);
	procfs_close(&fs);
	o.root = "/dev/null";
	check_int(procfs_open(&fs, &o), -ENOTDIR);
	procfs_close(&fs);
	procfs_close(&fs);
}

static uint64_t clock_of(struct procfs *fs, pid_t pid)
{
	uint64_t ns = 0;

	check_int(procfs_clock(fs, pid, &ns), 0);
	return ns;
}

/* Until the process sleeps: then the clock stands still for a while. */
static uint64_t still_clock_of(struct procfs *fs, pid_t pid)
{
	struct timespec ts = {.tv_nsec = 50 * NSEC_PER_MSEC};
	uint64_t ns = clock_of(fs, pid);
	unsigned n_still = 0;

	for (unsigned i = 0; i < 200 && n_still < 3; i++) {
		uint64_t now;

		nanosleep(&ts, NULL);
		now = clock_of(fs, pid);
		n_still = now == ns ? n_still + 1 : 0;
		ns = now;
	}
	check_u64(n_still, 3);
	return ns;
}

static void clock_moves(void)
{
	struct procfs fs;
	struct child c;
	uint64_t ns;

	if (!open_live(&fs))
		return;
	if (!fs.has_clocks) {
		tap_skip("no clocks of other processes");
		procfs_close(&fs);
		return;
	}
	child_start(&c);
	child_do(&c, 'n');
	ns = still_clock_of(&fs, c.pid);
	check(ns > 0);
	child_do(&c, 'n');
	check(clock_of(&fs, c.pid) > ns);
	ns = still_clock_of(&fs, c.pid);
	child_do(&c, 's');
	check(clock_of(&fs, c.pid) >= ns + 20 * NSEC_PER_MSEC);
	check(clock_of(&fs, c.pid) < ns + 10 * NSEC_PER_SEC);

	/* It counts for all threads, also if one of them has ended. */
	ns = still_clock_of(&fs, c.pid);
	child_do(&c, 'd');
	check(clock_of(&fs, c.pid) > ns);
	ns = still_clock_of(&fs, c.pid);
	check(ns > 0);
	child_stop(&c);
	check_int(procfs_clock(&fs, c.pid, &ns), PROC_GONE);
	procfs_close(&fs);
}

static const enum procfs_file files[] = {PROCFS_STAT, PROCFS_IO, PROCFS_STATUS,
					 PROCFS_CGROUP, PROCFS_LIMITS};

static struct procfs_pid at_pid(pid_t pid)
{
	struct procfs_pid p;

	procfs_pid_init(&p, pid);
	return p;
}

static int read_stat(struct procfs *fs, struct procfs_pid *p,
		     struct proc_stat *ret)
{
	struct str text;
	int r = procfs_read(fs, p, PROCFS_STAT, &text);

	return r ? r : proctext_parse_stat(text, ret);
}

static void live_files(void)
{
	struct procfs fs;
	struct procfs_pid p = at_pid(getpid());
	struct proc_stat st;
	struct str text;
	uint64_t v[METRIC_N_STORED], limit;
	uint32_t uid = 1, gid = 1;
	struct rlimit rl;

	if (!open_live(&fs))
		return;
	check_int(procfs_enter(&fs, &p), 0);
	check_int(read_stat(&fs, &p, &st), 0);
	check_u64(st.field[STAT_FIELD_PPID], (uint64_t)getppid());
	check_int(st.state, 'R');
	check(st.field[STAT_FIELD_RSS] > 0 && st.field[STAT_FIELD_VSIZE] > 0);
	check_int(procfs_read(&fs, &p, PROCFS_STATUS, &text), 0);
	check_u64(text.s[text.n], 0);
	check_u64(proctext_parse_keys(SOURCE_STATUS, text,
				      metric_rows(SOURCE_STATUS), v),
		  metric_rows(SOURCE_STATUS));
	check_u64(proctext_parse_keys(SOURCE_TASKS, text,
				      metric_rows(SOURCE_TASKS), v),
		  metric_rows(SOURCE_TASKS));
	if (procfs_read(&fs, &p, PROCFS_IO, &text) == 0)
		check_u64(proctext_parse_keys(SOURCE_IO, text,
					      metric_rows(SOURCE_IO), v),
			  metric_rows(SOURCE_IO));
	check_int(procfs_read(&fs, &p, PROCFS_LIMITS, &text), 0);
	check_int(getrlimit(RLIMIT_NOFILE, &rl), 0);
	if (rl.rlim_cur != RLIM_INFINITY) {
		check_int(proctext_parse_fd_limit(text, &limit), 0);
		check_u64(limit, rl.rlim_cur);
	}
	check_int(procfs_owner(&fs, &p, &uid, &gid), 0);
	check_u64(uid, geteuid());
	check_u64(gid, getegid());
	procfs_leave(&fs, &p);
	check_int(p.dir_fd, -1);
	check_u64(fs.kept.n_kept, 0);
	procfs_close(&fs);
}

/* Also of one that may not be read otherwise. */
static void effective_owner(void)
{
	uint32_t uid = 1, gid = 1;
	struct procfs_pid p;
	struct procfs fs;
	struct child c;

	if (geteuid() != 0) {
		tap_skip("only root can become somebody else");
		return;
	}
	if (!open_live(&fs))
		return;
	child_start(&c);
	child_do(&c, 'u');
	p = at_pid(c.pid);
	for (unsigned entered = 0; entered < 2; entered++) {
		if (entered)
			check_int(procfs_enter(&fs, &p), 0);
		check_int(procfs_owner(&fs, &p, &uid, &gid), 0);
		check_u64(uid, 65534);
		check_u64(gid, 65534);
	}
	procfs_pid_close(&fs, &p);
	child_stop(&c);
	procfs_close(&fs);
}

/* What a directory listing gives. */
static uint64_t list_fds(pid_t pid)
{
	char path[64];
	const struct dirent *e;
	uint64_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		n += e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

static void fd_counts(void)
{
	struct procfs_pid p;
	struct procfs fs;
	struct child c;
	uint64_t n, before = 0;

	if (!open_live(&fs))
		return;
	child_start(&c);
	child_do(&c, 'n');
	p = at_pid(c.pid);
	for (unsigned round = 0; round < 2; round++) {
		bool has_size = fs.fd_dir_has_size;

		for (unsigned listed = 0; listed < 2; listed++) {
			fs.fd_dir_has_size = listed ? false : has_size;
			for (unsigned entered = 0; entered < 2; entered++) {
				if (entered)
					check_int(procfs_enter(&fs, &p), 0);
				check_int(procfs_count_fds(&fs, &p, &n), 0);
				check_u64(n, list_fds(c.pid));
				procfs_pid_close(&fs, &p);
			}
		}
		fs.fd_dir_has_size = has_size;
		if (round)
			check_u64(n, before + 10);
		before = n;
		child_do(&c, 'o');
	}
	child_stop(&c);
	check_int(procfs_count_fds(&fs, &p, &n), PROC_GONE);
	procfs_close(&fs);
}

static void fake_fd_counts(void)
{
	struct procfs_pid p = at_pid(5);
	struct procfs fs;
	char name[32];
	uint64_t n = 77;

	make_root();
	make_dir("5");
	open_root(&fs);
	check_int(procfs_count_fds(&fs, &p, &n), PROC_GONE);
	check_u64(n, 77);
	make_dir("5/fd");
	check_int(procfs_count_fds(&fs, &p, &n), 0);
	check_u64(n, 0);
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "5/fd/%u", i);
		make_text(name, "");
	}
	check_int(procfs_count_fds(&fs, &p, &n), 0);
	check_u64(n, 3000);
	close_root(&fs);
}

/* A program of its own, so that it can be unlinked. */
static bool run_copy(const char *name, struct child *c)
{
	char path[128], buf[64 * 1024];
	int ready[2] = {-1, -1};
	int from = open("/bin/sleep", O_RDONLY | O_CLOEXEC), to;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		check(write(to, buf, (size_t)n) == n);
	close(from);
	close(to);
	check(pipe2(ready, O_CLOEXEC) == 0);
	fflush(stdout);
	c->pid = fork();
	c->to = c->from = -1;
	if (c->pid == 0) {
		execl(path, path, "1000", "2000", (char *)NULL);
		n = write(ready[1], "x", 1);
		_exit(n == 1 ? 0 : 1);
	}
	close(ready[1]);
	n = read(ready[0], buf, 1);
	close(ready[0]);
	/* The other end is closed by its exec. */
	return n == 0;
}

static void check_exe(struct procfs *fs, pid_t pid, const char *name)
{
	struct procfs_pid p = at_pid(pid);
	char want[128];
	struct str exe = STR("");

	snprintf(want, sizeof(want), "%s/%s", root, name);
	for (unsigned entered = 0; entered < 2; entered++) {
		if (entered)
			check_int(procfs_enter(fs, &p), 0);
		check_int(procfs_exe(fs, &p, &exe), 0);
		check_str(exe, want);
		exe = STR("");
	}
	procfs_pid_close(fs, &p);
}

static void exes(void)
{
	struct procfs_pid p;
	struct procfs fs;
	struct child a, b;
	struct str exe;
	char path[128];

	if (!open_live(&fs))
		return;
	make_root();
	if (!run_copy("prog", &a) || !run_copy("prog (deleted)", &b)) {
		tap_skip("nothing can be executed in /tmp");
		close_root(&fs);
		return;
	}
	check_exe(&fs, a.pid, "prog");
	check_exe(&fs, b.pid, "prog (deleted)");
	snprintf(path, sizeof(path), "%s/prog", root);
	check_int(unlink(path), 0);
	check_exe(&fs, a.pid, "prog");
	/* A new file under the old name changes nothing. */
	make_text("prog", "another");
	check_exe(&fs, a.pid, "prog");
	snprintf(path, sizeof(path), "%s/prog (deleted)", root);
	check_int(unlink(path), 0);
	check_exe(&fs, b.pid, "prog (deleted)");
	child_stop(&a);
	child_stop(&b);
	p = at_pid(a.pid);
	check_int(procfs_exe(&fs, &p, &exe), PROC_GONE);
	close_root(&fs);
}

static void cmdlines(void)
{
	char buf[256], want[128];
	struct procfs fs;
	struct child c;
	size_t n = 0, whole;

	if (!open_live(&fs))
		return;
	make_root();
	if (!run_copy("prog", &c)) {
		tap_skip("nothing can be executed in /tmp");
		close_root(&fs);
		return;
	}
	whole = (size_t)snprintf(want, sizeof(want), "%s/prog", root) + 1;
	memcpy(want + whole, "1000\0002000", 10);
	whole += 10;
	check_int(
	    procfs_read_cmdline(fs.root_fd, c.pid, 0, buf, sizeof(buf), &n), 0);
	check_u64(n, whole);
	check(memcmp(buf, want, whole) == 0);
	check_int(
	    procfs_read_cmdline(fs.root_fd, c.pid, c.pid, buf, sizeof(buf), &n),
	    0);
	check_u64(n, whole);
	for (size_t size = 0; size <= whole; size++) {
		memset(buf, '?', sizeof(buf));
		check_int(
		    procfs_read_cmdline(fs.root_fd, c.pid, 0, buf, size, &n),
		    0);
		check_u64(n, size);
		check(memcmp(buf, want, size) == 0 && buf[size] == '?');
	}
	kill(c.pid, SIGKILL);
	waitpid(c.pid, NULL, 0);
	n = 5;
	check_int(
	    procfs_read_cmdline(fs.root_fd, c.pid, 0, buf, sizeof(buf), &n),
	    PROC_GONE);
	check_u64(n, 5);
	close_root(&fs);
}

static void kept_descriptors(void)
{
	struct procfs_pid p;
	struct proc_stat st;
	struct procfs fs;
	struct child c;
	struct str text;
	siginfo_t info;
	int was;

	if (!open_live(&fs))
		return;
	keptfd_provide(&fs.kept, 100);
	if (fs.kept.budget < 10 || fs.kept.base != KEPTFD_BASE) {
		tap_skip("too few descriptors are allowed");
		procfs_close(&fs);
		return;
	}
	child_start(&c);
	p = at_pid(c.pid);
	p.keep = 0xff;
	check_int(procfs_enter(&fs, &p), 0);
	check_int(read_stat(&fs, &p, &st), 0);
	check_int(procfs_read(&fs, &p, PROCFS_IO, &text), 0);
	check_int(procfs_read(&fs, &p, PROCFS_STATUS, &text), 0);
	procfs_leave(&fs, &p);
	check(procfs_pid_is_kept(&p));
	check(p.fd[PROCFS_STAT] >= KEPTFD_BASE);
	check(p.fd[PROCFS_IO] >= KEPTFD_BASE);
	check(p.fd[PROCFS_STATUS] >= KEPTFD_BASE);
	check(p.dir_fd == -1 || p.dir_fd >= KEPTFD_BASE);
	check(fs.kept.n_kept >= 3);
	check(fcntl(p.fd[PROCFS_STAT], F_GETFD) & FD_CLOEXEC);

	was = p.fd[PROCFS_STAT];
	child_do(&c, 's');
	child_do(&c, 's');
	check_int(read_stat(&fs, &p, &st), 0);
	check_int(p.fd[PROCFS_STAT], was);
	check(st.field[14] + st.field[15] >= 2);

	/* Dead, but not reaped: it is still the same process. */
	kill(c.pid, SIGKILL);
	check_int(waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT), 0);
	check_int(read_stat(&fs, &p, &st), 0);
	check_int(st.state, 'Z');
	child_stop(&c);
	check_int(read_stat(&fs, &p, &st), PROC_GONE);
	check_int(procfs_read(&fs, &p, PROCFS_IO, &text), PROC_GONE);
	check_int(procfs_read(&fs, &p, PROCFS_STATUS, &text), PROC_GONE);
	procfs_pid_close(&fs, &p);
	check(!procfs_pid_is_kept(&p));
	check_u64(fs.kept.n_kept, 0);
	check(fcntl(was, F_GETFD) < 0);
	procfs_close(&fs);
}

static void nothing_to_keep(void)
{
	struct procfs_pid p = at_pid(getpid());
	struct proc_stat st;
	struct procfs fs;

	if (!open_live(&fs))
		return;
	keptfd_want(&fs.kept, false, 0);
	keptfd_provide(&fs.kept, 100);
	p.keep = 0xff;
	for (unsigned i = 0; i < 3; i++) {
		check_int(procfs_enter(&fs, &p), 0);
		check_int(read_stat(&fs, &p, &st), 0);
		procfs_leave(&fs, &p);
		check(!procfs_pid_is_kept(&p));
		check_int(p.dir_fd, -1);
		check_u64(fs.kept.n_kept, 0);
	}
	procfs_close(&fs);
}

struct seen_tasks {
	unsigned n;
	pid_t tid[16];
};

static void see_task(void *arg, pid_t tid, struct str status)
{
	struct seen_tasks *seen = arg;
	uint64_t v[METRIC_N_STORED];

	check_u64(proctext_parse_keys(SOURCE_TASKS, status,
				      metric_rows(SOURCE_TASKS), v),
		  metric_rows(SOURCE_TASKS));
	if (seen->n < ARRAY_SIZE(seen->tid))
		seen->tid[seen->n++] = tid;
}

static void tasks(void)
{
	struct seen_tasks seen = {0};
	struct procfs_pid p;
	struct procfs fs;
	struct child c;
	pid_t tid = 0;

	if (!open_live(&fs))
		return;
	child_start(&c);
	child_do(&c, 't');
	p = at_pid(c.pid);
	check_int(procfs_each_task(&fs, &p, see_task, &seen), 0);
	check_u64(seen.n, 4);
	check_int(seen.tid[0], c.pid);
	check_int(procfs_find_live_task(&fs, &p, &tid), 0);
	check_int(tid, c.pid);
	kill(c.pid, SIGKILL);
	waitpid(c.pid, NULL, 0);
	check_int(procfs_each_task(&fs, &p, see_task, &seen), PROC_GONE);
	close(c.to);
	close(c.from);
	procfs_close(&fs);
}

static void dead_leader(void)
{
	char buf[256];
	struct procfs_pid p;
	struct proc_stat st;
	struct procfs fs;
	struct child c;
	struct str text;
	uint64_t n_fds = 0;
	size_t n = 0;

	if (!open_live(&fs))
		return;
	child_start(&c);
	child_do(&c, 'd');
	p = at_pid(c.pid);
	check_int(read_stat(&fs, &p, &st), 0);
	check_int(st.state, 'Z');
	check(st.field[STAT_FIELD_THREADS] > 1);
	check_u64(st.field[STAT_FIELD_RSS], 0);
	check_int(procfs_find_live_task(&fs, &p, &p.live_tid), 0);
	check(p.live_tid != c.pid);
	check_int(procfs_read_live_stat(&fs, &p, &text), 0);
	check_int(proctext_parse_stat(text, &st), 0);
	check(st.state != 'Z');
	check(st.field[STAT_FIELD_RSS] > 0);
	check_int(procfs_count_fds(&fs, &p, &n_fds), 0);
	check(n_fds > 0);
	check_int(procfs_exe(&fs, &p, &text), 0);
	check(text.n > 0);
	check_int(procfs_read_cmdline(fs.root_fd, c.pid, p.live_tid, buf,
				      sizeof(buf), &n),
		  0);
	check(n > 0);
	check_int(
	    procfs_read_cmdline(fs.root_fd, c.pid, 0, buf, sizeof(buf), &n), 0);
	check_u64(n, 0);
	procfs_pid_close(&fs, &p);
	child_stop(&c);
	procfs_close(&fs);
}

static void gone_pid(void)
{
	struct procfs_pid p;
	struct procfs fs;
	struct child c;
	struct str text;
	uint32_t uid = 5, gid = 5;
	uint64_t n = 5;

	if (!open_live(&fs))
		return;
	child_start(&c);
	p = at_pid(c.pid);
	check_int(procfs_enter(&fs, &p), 0);
	child_stop(&c);
	/* The directory is of the process that ended, whoever comes next. */
	check_int(procfs_read(&fs, &p, PROCFS_STAT, &text), PROC_GONE);
	check_int(procfs_count_fds(&fs, &p, &n), PROC_GONE);
	procfs_leave(&fs, &p);
	check_int(procfs_enter(&fs, &p), PROC_GONE);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		check_int(procfs_read(&fs, &p, files[i], &text), PROC_GONE);
	check_int(procfs_owner(&fs, &p, &uid, &gid), PROC_GONE);
	check_int(procfs_exe(&fs, &p, &text), PROC_GONE);
	check_u64(n, 5);
	check_u64(uid, 5);
	procfs_close(&fs);
}

static void whole_files(void)
{
	static char text[3 * PROCFS_BUF_SIZE];
	static const size_t sizes[] = {0,
				       1,
				       4096,
				       PROCFS_BUF_SIZE - 1,
				       PROCFS_BUF_SIZE,
				       PROCFS_BUF_SIZE + 1,
				       sizeof(text)};
	struct procfs_pid p = at_pid(5);
	struct procfs fs;
	struct str got;

	memset(text, 'x', sizeof(text));
	make_root();
	make_dir("5");
	open_root(&fs);
	check_int(procfs_read(&fs, &p, PROCFS_STATUS, &got), PROC_GONE);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		make_file("5/status", text, sizes[i]);
		check_int(procfs_read(&fs, &p, PROCFS_STATUS, &got), 0);
		check_u64(got.n, MIN(sizes[i], (size_t)PROCFS_BUF_SIZE));
		check_u64(strlen(got.s), got.n);
	}
	check_int(procfs_enter(&fs, &p), 0);
	make_text("5/cgroup", "0::/x\n");
	check_int(procfs_read(&fs, &p, PROCFS_CGROUP, &got), 0);
	check_str(got, "0::/x\n");
	procfs_leave(&fs, &p);
	close_root(&fs);
}

static void fake_owners(void)
{
	static const struct {
		const char *status;
		int r;
		uint32_t uid, gid;
	} rows[] = {
	    {"Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n", 0, 2, 6},
	    {"Name:\tUid:\t0\t0\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8", 0, 2, 6},
	    {"Gid:\t5\t6\t7\t8\nUid:\t1\t4294967295\t3\t4\n", 0, 4294967295u,
	     6},
	    {"Uid:\t1\t2\t3\t4\n", PROC_ABSENT, 0, 0},
	    {"Gid:\t1\t2\t3\t4\n", PROC_ABSENT, 0, 0},
	    {"XUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n", PROC_ABSENT, 0, 0},
	    {"Uid:\t1\nGid:\t5\t6\t7\t8\n", PROC_ABSENT, 0, 0},
	    {"Uid:\t1\n2\t3\nGid:\t5\t6\t7\t8\n", PROC_ABSENT, 0, 0},
	    {"Uid:\t1\t-2\t3\t4\nGid:\t5\t6\t7\t8\n", PROC_ABSENT, 0, 0},
	    {"Uid:\t1\t4294967296\t3\t4\nGid:\t5\t6\t7\t8\n", PROC_ABSENT, 0,
	     0},
	    {"", PROC_ABSENT, 0, 0},
	};
	struct procfs_pid p = at_pid(5);
	struct procfs fs;

	make_root();
	make_dir("5");
	open_root(&fs);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t uid = 77, gid = 77;
		int r;

		make_text("5/status", rows[i].status);
		r = procfs_owner(&fs, &p, &uid, &gid);
		if (r != rows[i].r)
			tap_fail(__FILE__, __LINE__, "%s: want %d, got %d",
				 rows[i].status, rows[i].r, r);
		if (r || rows[i].r)
			continue;
		check_u64(uid, rows[i].uid);
		check_u64(gid, rows[i].gid);
	}
	close_root(&fs);
}

static void swap_devices(void)
{
	static const char title[] =
	    "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
	struct procfs fs;

	make_root();
	open_root(&fs);
	check(procfs_has_swap(&fs));
	procfs_close(&fs);
	make_text("swaps", title);
	open_root(&fs);
	check(!procfs_has_swap(&fs));
	make_text("swaps", "Filename\tType\n/dev/sda2 partition 1 0 -2\n");
	check(procfs_has_swap(&fs));
	make_text("swaps", "");
	check(procfs_has_swap(&fs));
	close_root(&fs);
}

static void reclaim_counts(void)
{
	struct procfs fs;
	uint64_t n = 7;

	make_root();
	open_root(&fs);
	check_int(procfs_reclaim_count(&fs, &n), PROC_ABSENT);
	procfs_close(&fs);
	make_text("vmstat",
		  "nr_free_pages 9\npgsteal_anon 1\npgsteal_file 10\n"
		  "pgsteal_anon_x 5000\npswpin 100\npswpout 1000\n"
		  "thp_collapse_alloc 10000\nthp_collapse_alloc_failed 7\n");
	open_root(&fs);
	check_int(procfs_reclaim_count(&fs, &n), 0);
	check_u64(n, 11111);
	make_text("vmstat",
		  "pgsteal_anon 1\npgsteal_file 10\npswpin 100\npswpout 1\n");
	check_int(procfs_reclaim_count(&fs, &n), 0);
	check_u64(n, 112);
	make_text("vmstat", "pgsteal_anon 1\npgsteal_file 10\npswpin 100\n");
	check_int(procfs_reclaim_count(&fs, &n), PROC_ABSENT);
	make_text("vmstat", "");
	check_int(procfs_reclaim_count(&fs, &n), PROC_ABSENT);
	check_u64(n, 112);
	close_root(&fs);
}

static void no_leaks(void)
{
	struct procfs fs;
	uint64_t before = list_fds(getpid());

	for (unsigned i = 0; i < 20; i++) {
		struct procfs_pid p = at_pid(getpid());
		struct str text;
		uint64_t n;

		if (!open_live(&fs))
			return;
		keptfd_provide(&fs.kept, 100);
		p.keep = 0xff;
		procfs_enter(&fs, &p);
		for (size_t k = 0; k < ARRAY_SIZE(files); k++)
			procfs_read(&fs, &p, files[k], &text);
		procfs_count_fds(&fs, &p, &n);
		procfs_leave(&fs, &p);
		procfs_pid_close(&fs, &p);
		procfs_close(&fs);
	}
	check_u64(list_fds(getpid()), before);
}

int main(void)
{
	TEST("the processes of this host are listed in order", live_list);
	TEST("only what is a PID is listed, in order", fake_list);
	TEST("a list of thousands is whole", long_list);
	TEST("a list is sorted and holds nobody twice", sorted_list);
	TEST("a root that is no directory is refused", unusable_roots);
	TEST("a clock moves if and only if its process ran", clock_moves);
	TEST("the files of a process say what it says of itself", live_files);
	TEST("the owner is the effective one", effective_owner);
	TEST("descriptors are as many as are listed", fd_counts);
	TEST("descriptors below another root are counted", fake_fd_counts);
	TEST("an unlinked program keeps its path", exes);
	TEST("a command line is read as far as it fits", cmdlines);
	TEST("kept descriptors are high and tell when their process is gone",
	     kept_descriptors);
	TEST("without kept descriptors everything can be read",
	     nothing_to_keep);
	TEST("every thread is seen", tasks);
	TEST("a process whose first thread ended is read through another",
	     dead_leader);
	TEST("a process that ended is gone, and nothing of it is told",
	     gone_pid);
	TEST("a file is read up to the size of the buffer", whole_files);
	TEST("below another root the owner is in status", fake_owners);
	TEST("whether there is a swap device is looked up each time",
	     swap_devices);
	TEST("what was reclaimed is counted where the kernel tells",
	     reclaim_counts);
	TEST("no descriptor is left open", no_leaks);
	return tap_done();
}
