/* SPDX-License-Identifier: MIT */
/*
 * Tests of plugin/cgroupfs.c: on texts, on trees of files made here, and on
 * the cgroups of this host.
 */
#include "cgroupfs.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "cgroupfs-text.h"
#include "proctext.h"
#include "tap.h"

#define ALL (CGROUPFS_BIT(CGROUPFS_N_VALUES) - 1)

static uint64_t number_in(const char *text)
{
	uint64_t v = 77;

	return cgroupfs_parse_number(str_of(text), &v) ? v : 77;
}

static void numbers(void)
{
	check_u64(number_in("123\n"), 123);
	check_u64(number_in("0\n"), 0);
	check_u64(number_in("18446744073709551615\n"), UINT64_MAX);
	check_u64(number_in("18446744073709551616\n"), 77);
	check_u64(number_in("max\n"), 77);
	check_u64(number_in(""), 77);
	check_u64(number_in("\n"), 77);
	check_u64(number_in("12x\n"), 77);
	check_u64(number_in("-1\n"), 77);
}

static void keys(void)
{
	const struct str text = STR("usage_usec 20017765347\n"
				    "user_usec 12678957820\n"
				    "nr_periods 0\n"
				    "odd\n"
				    "limit max\n");
	uint64_t v = 77;

	check(cgroupfs_parse_key(text, "usage_usec", &v));
	check_u64(v, UINT64_C(20017765347));
	check(cgroupfs_parse_key(text, "nr_periods", &v));
	check_u64(v, 0);
	check(!cgroupfs_parse_key(text, "usec", &v));
	check(!cgroupfs_parse_key(text, "usage", &v));
	check(!cgroupfs_parse_key(text, "odd", &v));
	check(!cgroupfs_parse_key(text, "limit", &v));
	check_u64(v, 0);
}

static void devices(void)
{
	const struct str text =
	    STR("8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 "
		"dbytes=0 dios=0\n"
		"8:0 rbytes=100 wbytes=3 rios=2 wios=1 dbytes=5 dios=9\n"
		"254:0 \n"
		"7:0 cost.usage=17\n");
	uint64_t v = 77;

	check(cgroupfs_parse_io(text, "rbytes", &v));
	check_u64(v, 1459300);
	check(cgroupfs_parse_io(text, "wios", &v));
	check_u64(v, 354);
	check(!cgroupfs_parse_io(text, "bytes", &v));
	check(!cgroupfs_parse_io(STR(""), "rbytes", &v));
	check(!cgroupfs_parse_io(STR("254:0 \n"), "rbytes", &v));
	check_u64(v, 354);
}

static void regions(void)
{
	uint64_t v = 77;

	check(cgroupfs_parse_regions(STR("drm/0000:03:00.0/vram0 12550144\n"
					 "drm/0000:03:00.0/stolen 8650752\n"
					 "drm/0000:04:00.0/vram0 max\n"),
				     &v));
	check_u64(v, 21200896);
	check(!cgroupfs_parse_regions(STR(""), &v));
	check(cgroupfs_parse_regions(STR("a 18446744073709551615\nb 5\n"), &v));
	check_u64(v, UINT64_MAX);
}

static void pressures(void)
{
	const struct str text =
	    STR("some avg10=90.95 avg60=76.96 avg300=80.62 total=6953576265\n"
		"full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
	uint64_t v = 77;

	check(cgroupfs_parse_pressure(text, "some", &v));
	check_u64(v, UINT64_C(6953576265));
	check(cgroupfs_parse_pressure(text, "full", &v));
	check_u64(v, 5);
	check(!cgroupfs_parse_pressure(text, "none", &v));
	check(!cgroupfs_parse_pressure(STR("some avg10=1.0\n"), "some", &v));
}

static void path_is(const char *text, const char *controller, const char *want)
{
	struct str path = STR("none");

	cgroupfs_parse_path(str_of(text), controller, &path);
	check_str(path, want);
}

static void paths(void)
{
	const char *text = "10:name=rv:/\n"
			   "4:memory:/a/b:c\n"
			   "2:cpu,cpuacct:/cpu path\n"
			   "0::/unified\n";

	path_is(text, "", "/unified");
	path_is(text, "memory", "/a/b:c");
	path_is(text, "cpuacct", "/cpu path");
	path_is(text, "cpu", "/cpu path");
	path_is(text, "pids", "none");
	path_is(text, "name=rv", "/");
	path_is("0::/../../x\n", "", "none");
	path_is("0::/..\n", "", "none");
	path_is("0::/..x\n", "", "/..x");
	path_is("0::\n", "", "none");
	path_is("0:\n", "", "none");
	path_is("", "", "none");
}

static char root[64];

static int remove_one(const char *path, _unused_ const struct stat *st,
		      _unused_ int flag, _unused_ struct FTW *f)
{
	return remove(path);
}

static void make_root(void)
{
	snprintf(root, sizeof(root), "/tmp/proctally-cgroupfs-XXXXXX");
	if (!mkdtemp(root))
		abort();
}

static void remove_root(void)
{
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/%s", root, dir, name);
	f = fopen(path, "w");
	if (!f)
		abort();
	fputs(text, f);
	fclose(f);
}

static void check_value(const struct cgroupfs_values *v, unsigned i,
			uint64_t want)
{
	check(v->have & CGROUPFS_BIT(i));
	check_u64(v->value[i], want);
}

static void version_2(void)
{
	struct cgroupfs_values v;
	struct cgroupfs_group g;
	struct cgroupfs fs;

	make_root();
	write_file(".", "cgroup.controllers", "cpu io memory pids\n");
	write_file("a.slice", "memory.current", "4096\n");
	write_file("a.slice", "memory.swap.current", "max\n");
	write_file("a.slice", "pids.current", "7\n");
	write_file("a.slice", "cpu.stat",
		   "usage_usec 9\nnr_periods 3\nnr_throttled 2\n"
		   "throttled_usec 55\n");
	write_file("a.slice", "io.stat", "8:0 rbytes=5 wbytes=6 rios=7\n");
	write_file("a.slice", "memory.pressure",
		   "some avg10=0.00 total=11\nfull avg10=0.00 total=12\n");
	check_int(cgroupfs_open(&fs, root, NULL), 0);
	check_int(cgroupfs_enter(&fs, &g, STR("0::/a.slice\n")), 0);
	check_int(cgroupfs_read(&fs, &g, ALL, &v), 0);
	check_value(&v, CGROUPFS_MEMORY, 4096);
	check_value(&v, CGROUPFS_PIDS, 7);
	check_value(&v, CGROUPFS_CPU_US, 9);
	check_value(&v, CGROUPFS_PERIODS, 3);
	check_value(&v, CGROUPFS_THROTTLED, 2);
	check_value(&v, CGROUPFS_THROTTLED_US, 55);
	check_value(&v, CGROUPFS_READ_BYTES, 5);
	check_value(&v, CGROUPFS_WRITE_BYTES, 6);
	check_value(&v, CGROUPFS_READ_OPS, 7);
	check_value(&v, CGROUPFS_MEMORY_SOME_US, 11);
	check_value(&v, CGROUPFS_MEMORY_FULL_US, 12);
	check(!(v.have & CGROUPFS_BIT(CGROUPFS_WRITE_OPS)));
	check(!(v.have & CGROUPFS_BIT(CGROUPFS_SWAP)));
	check(!(v.have & CGROUPFS_BIT(CGROUPFS_DMEM)));
	check(!(v.have & CGROUPFS_BIT(CGROUPFS_IO_SOME_US)));

	/* Only what is asked for, through the descriptor that was kept. */
	write_file("a.slice", "memory.current", "8192\n");
	check_int(cgroupfs_read(&fs, &g, CGROUPFS_BIT(CGROUPFS_MEMORY), &v), 0);
	check_value(&v, CGROUPFS_MEMORY, 8192);
	check_u64(v.have, CGROUPFS_BIT(CGROUPFS_MEMORY));
	cgroupfs_leave(&fs, &g);
	cgroupfs_leave(&fs, &g);
	check_int(cgroupfs_enter(&fs, &g, STR("0::/\n")), PROC_ABSENT);
	check_int(cgroupfs_enter(&fs, &g, STR("0::/gone.slice\n")), 0);
	check_int(cgroupfs_read(&fs, &g, ALL, &v), PROC_GONE);
	cgroupfs_leave(&fs, &g);
	cgroupfs_close(&fs);
	remove_root();
}

static void namespace_root(void)
{
	struct cgroupfs_values v;
	struct cgroupfs_group g;
	struct cgroupfs fs;

	make_root();
	write_file(".", "cgroup.controllers", "memory\n");
	write_file(".", "cgroup.events", "populated 1\n");
	write_file(".", "memory.current", "4096\n");
	check_int(cgroupfs_open(&fs, root, NULL), 0);
	check_int(cgroupfs_enter(&fs, &g, STR("0::/\n")), 0);
	check_int(cgroupfs_read(&fs, &g, ALL, &v), 0);
	check_value(&v, CGROUPFS_MEMORY, 4096);
	cgroupfs_leave(&fs, &g);
	cgroupfs_close(&fs);
	remove_root();
}

static void version_1(void)
{
	struct cgroupfs_values v;
	struct cgroupfs_group g;
	struct cgroupfs fs;

	make_root();
	write_file("memory", "tasks", "");
	write_file("memory/x", "memory.usage_in_bytes", "4096\n");
	write_file("memory/x", "memory.stat", "swap 1\ntotal_swap 12288\n");
	write_file("cpu", "tasks", "");
	write_file("cpu/x", "cpu.stat",
		   "nr_periods 3\nnr_throttled 2\nthrottled_time 55999\n");
	write_file("cpuacct", "tasks", "");
	write_file("cpuacct/x", "cpuacct.usage", "9999999\n");
	write_file("pids", "tasks", "");
	write_file("pids/y", "pids.current", "7\n");
	/* Of a hybrid setup: no controllers, but CPU time and pressure. */
	write_file("unified", "cgroup.controllers", "");
	write_file("unified/z", "cpu.stat", "usage_usec 1\n");
	write_file("unified/z", "cpu.pressure", "some avg10=1.00 total=3\n");
	check_int(cgroupfs_open(&fs, root, NULL), 0);
	check_int(cgroupfs_enter(&fs, &g,
				 STR("5:pids:/y\n4:memory:/x\n"
				     "3:cpu,cpuacct:/x\n0::/z\n")),
		  0);
	check_int(cgroupfs_read(&fs, &g, ALL, &v), 0);
	check_value(&v, CGROUPFS_MEMORY, 4096);
	check_value(&v, CGROUPFS_SWAP, 12288);
	check_value(&v, CGROUPFS_CPU_US, 9999);
	check_value(&v, CGROUPFS_THROTTLED, 2);
	check_value(&v, CGROUPFS_THROTTLED_US, 55);
	check_value(&v, CGROUPFS_PIDS, 7);
	check_value(&v, CGROUPFS_CPU_SOME_US, 3);
	check(!(v.have & CGROUPFS_BIT(CGROUPFS_CPU_FULL_US)));
	cgroupfs_leave(&fs, &g);
	cgroupfs_close(&fs);
	remove_root();
}

static unsigned n_open(const struct cgroupfs_group *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CGROUPFS_N_FILES; i++)
		n += g->fd[i] >= 0;
	return n;
}

static void budget(void)
{
	struct cgroupfs_values v;
	struct cgroupfs_group g;
	struct keptfd kept;
	struct cgroupfs fs;

	make_root();
	write_file(".", "cgroup.controllers", "");
	write_file("a", "memory.current", "4096\n");
	write_file("a", "pids.current", "7\n");
	write_file("a", "cpu.stat", "usage_usec 9\n");
	keptfd_init(&kept, false, 2);
	keptfd_provide(&kept, 10);
	check_int(cgroupfs_open(&fs, root, &kept), 0);
	check_int(cgroupfs_enter(&fs, &g, STR("0::/a\n")), 0);
	for (unsigned i = 0; i < 3; i++) {
		check_int(cgroupfs_read(&fs, &g, ALL, &v), 0);
		check_value(&v, CGROUPFS_MEMORY, 4096);
		check_value(&v, CGROUPFS_PIDS, 7);
		check_value(&v, CGROUPFS_CPU_US, 9);
		check_u64(n_open(&g), 2);
		check_u64(kept.n_kept, 2);
	}
	cgroupfs_leave(&fs, &g);
	check_u64(kept.n_kept, 0);
	cgroupfs_close(&fs);
	remove_root();
}

/* On any file system: the old one is kept until the new one is there. */
static void made_anew(void)
{
	struct cgroupfs_values v;
	struct cgroupfs_group g;
	struct keptfd kept;
	struct cgroupfs fs;
	char old[600], new[600];
	uint64_t id;

	make_root();
	write_file(".", "cgroup.controllers", "");
	write_file("a", "memory.current", "1\n");
	write_file("b", "memory.current", "2\n");
	snprintf(old, sizeof(old), "%s/a", root);
	snprintf(new, sizeof(new), "%s/b", root);
	keptfd_init(&kept, false, 0);
	check_int(cgroupfs_open(&fs, root, &kept), 0);
	check_int(cgroupfs_enter(&fs, &g, STR("0::/a\n")), 0);
	check_int(cgroupfs_read(&fs, &g, ALL, &v), 0);
	check_int(renameat2(AT_FDCWD, old, AT_FDCWD, new, RENAME_EXCHANGE), 0);
	check_int(cgroupfs_read(&fs, &g, ALL, &v), PROC_GONE);
	check_value(&v, CGROUPFS_MEMORY, 1);
	id = g.id;
	cgroupfs_leave(&fs, &g);
	check_int(cgroupfs_enter(&fs, &g, STR("0::/a\n")), 0);
	check(g.id != id);
	check_int(cgroupfs_read(&fs, &g, ALL, &v), 0);
	check_value(&v, CGROUPFS_MEMORY, 2);
	cgroupfs_leave(&fs, &g);
	cgroupfs_close(&fs);
	remove_root();
}

static void read_many_devices(struct cgroupfs *fs, int shift)
{
	static char text[200000];
	struct cgroupfs_values v;
	struct cgroupfs_group g;
	size_t n = (size_t)snprintf(text, sizeof(text), "%0*d\n", shift, 0);

	for (unsigned i = 0; i < 1000; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "8:%u rbytes=1000 wbytes=1 rios=1\n", i);
	write_file("a", "io.stat", text);
	check_int(cgroupfs_enter(fs, &g, STR("0::/a\n")), 0);
	check_int(cgroupfs_read(fs, &g, ALL, &v), 0);
	check(v.value[CGROUPFS_READ_BYTES] > 400000);
	check_u64(v.value[CGROUPFS_READ_BYTES] % 1000, 0);
	check_u64(v.value[CGROUPFS_READ_OPS],
		  v.value[CGROUPFS_READ_BYTES] / 1000);
	cgroupfs_leave(fs, &g);
}

/* As many as fit, wherever the text is cut. */
static void many_devices(void)
{
	struct cgroupfs fs;

	make_root();
	write_file(".", "cgroup.controllers", "");
	check_int(cgroupfs_open(&fs, root, NULL), 0);
	for (int shift = 1; shift <= 40; shift++)
		read_many_devices(&fs, shift);
	cgroupfs_close(&fs);
	remove_root();
}

static void nothing_there(void)
{
	struct cgroupfs fs;

	make_root();
	check_int(cgroupfs_open(&fs, root, NULL), PROC_ABSENT);
	cgroupfs_close(&fs);
	check_int(cgroupfs_open(&fs, "/nonexistent", NULL), PROC_ABSENT);
	cgroupfs_close(&fs);
	remove_root();
}

/* A cgroup of our own on the host, in the trees where we may make one. */
struct own {
	char path[CGROUPFS_N_TREES][128];
	char text[256];
};

static bool join(struct own *o, unsigned tree, const char *mount,
		 const char *line, pid_t pid)
{
	char procs[160];
	FILE *f;

	snprintf(o->path[tree], sizeof(o->path[tree]), "%s/proctally-test-%d",
		 mount, (int)getpid());
	if (mkdir(o->path[tree], 0700) < 0) {
		o->path[tree][0] = '\0';
		return false;
	}
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", o->path[tree]);
	f = fopen(procs, "w");
	if (f) {
		fprintf(f, "%d\n", (int)pid);
		if (fclose(f) == 0)
			snprintf(o->text + strlen(o->text),
				 sizeof(o->text) - strlen(o->text),
				 "%s:/proctally-test-%d\n", line,
				 (int)getpid());
	}
	return true;
}

static void burn(uint64_t us)
{
	struct rusage r;

	do
		getrusage(RUSAGE_SELF, &r);
	while ((uint64_t)r.ru_utime.tv_sec * 1000000 +
		   (uint64_t)r.ru_utime.tv_usec +
		   (uint64_t)r.ru_stime.tv_sec * 1000000 +
		   (uint64_t)r.ru_stime.tv_usec <
	       us);
}

static pid_t start_child(const int *go)
{
	pid_t pid = fork();
	char c;

	if (pid == 0) {
		close(go[1]);
		while (read(go[0], &c, 1) < 0)
			;
		burn(120000);
		pause();
	}
	return pid;
}

static bool is_v2(void)
{
	return access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
}

/* Waits until the child has used that much, at most 20 s. */
static uint64_t cpu_of(struct cgroupfs *fs, struct cgroupfs_group *g,
		       struct cgroupfs_values *v)
{
	v->value[CGROUPFS_CPU_US] = 0;
	for (unsigned i = 0; i < 2000; i++) {
		if (cgroupfs_read(fs, g, ALL, v) != 0 ||
		    v->value[CGROUPFS_CPU_US] >= 100000)
			break;
		usleep(10000);
	}
	return v->value[CGROUPFS_CPU_US];
}

static void look_at_own(struct own *o, int *go, pid_t pid)
{
	struct cgroupfs_values v = {.have = 0};
	struct cgroupfs_group g;
	struct cgroupfs fs;

	check_int(cgroupfs_open(&fs, "/sys/fs/cgroup", NULL), 0);
	check_int(cgroupfs_enter(&fs, &g, str_of(o->text)), 0);
	check_int(cgroupfs_read(&fs, &g, ALL, &v), 0);
	check(v.value[CGROUPFS_CPU_US] < 100000);
	close(go[1]);
	go[1] = -1;
	check(cpu_of(&fs, &g, &v) >= 100000);
	if (v.have & CGROUPFS_BIT(CGROUPFS_PIDS))
		check_u64(v.value[CGROUPFS_PIDS], 1);
	for (unsigned i = 0; i < CGROUPFS_N_VALUES; i++)
		if (v.have & CGROUPFS_BIT(i))
			printf("# value %u is %" PRIu64 "\n", i, v.value[i]);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (unsigned i = 0; i < CGROUPFS_N_TREES; i++)
		for (unsigned k = 0; o->path[i][0] && k < 1000; k++)
			if (rmdir(o->path[i]) < 0 && errno == EBUSY)
				usleep(10000);
	check_int(cgroupfs_read(&fs, &g, ALL, &v), PROC_GONE);
	cgroupfs_leave(&fs, &g);
	cgroupfs_close(&fs);
}

static void own_on_host(void)
{
	struct own o = {.text = ""};
	int go[2];
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		abort();
	pid = start_child(go);
	if (is_v2()) {
		join(&o, CGROUPFS_UNIFIED, "/sys/fs/cgroup", "0:", pid);
	} else {
		join(&o, CGROUPFS_UNIFIED, "/sys/fs/cgroup/unified", "0:", pid);
		join(&o, CGROUPFS_V1_CPUACCT, "/sys/fs/cgroup/cpuacct",
		     "1:cpuacct", pid);
		join(&o, CGROUPFS_V1_PIDS, "/sys/fs/cgroup/pids", "2:pids",
		     pid);
	}
	if (o.text[0]) {
		look_at_own(&o, go, pid);
	} else {
		tap_skip("may not make a cgroup here");
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	close(go[0]);
	if (go[1] >= 0)
		close(go[1]);
}

static void our_own(void)
{
	struct cgroupfs_values v = {.have = 0};
	struct cgroupfs_group g;
	struct cgroupfs fs;
	char text[4096];
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	close(fd);
	if (n < 0 || cgroupfs_open(&fs, "/sys/fs/cgroup", NULL) != 0) {
		tap_skip("no cgroups here");
		return;
	}
	if (cgroupfs_enter(&fs, &g, (struct str){text, (size_t)n}) != 0) {
		tap_skip("we are in no cgroup");
	} else {
		check_int(cgroupfs_read(&fs, &g, ALL, &v), 0);
		check(v.have != 0);
		if (v.have & CGROUPFS_BIT(CGROUPFS_MEMORY))
			check(v.value[CGROUPFS_MEMORY] > 100000);
	}
	cgroupfs_leave(&fs, &g);
	cgroupfs_close(&fs);
}

int main(void)
{
	TEST("a number is the whole line, and max is none", numbers);
	TEST("a key is a whole word at the begin of a line", keys);
	TEST("I/O is summed over all devices", devices);
	TEST("regions of device memory are summed", regions);
	TEST("pressure is the total in microseconds", pressures);
	TEST("a path is that of its controller's line", paths);
	TEST("values of version 2, without those that are missing", version_2);
	TEST("the root is a cgroup only in a namespace", namespace_root);
	TEST("values of version 1, and of version 2 beside it", version_1);
	TEST("descriptors stay within their budget", budget);
	TEST("another cgroup of the same name is told by its name alone",
	     made_anew);
	TEST("with too many devices no number is cut in two", many_devices);
	TEST("a host without cgroups is told so", nothing_there);
	TEST("a cgroup of this host is read and seen to go", own_on_host);
	TEST("the cgroup that we are in has values", our_own);
	return tap_done();
}
