/* SPDX-License-Identifier: MIT */
/*
 * The NVML backend with a library that does what it is told, in all versions
 * of its structures, and which hangs wherever it can.
 */
#include "tap.h"

#include "fakenvml.h"
#include "gpu-nvml.h"
#include "gpuroot.h"

#include "alloccount.h"

#include <dlfcn.h>
#include <time.h>

#define GIB (UINT64_C(1) << 30)
#define WAIT_NS (2 * NSEC_PER_SEC)

enum {
	NO_DEVICES = 1 << 0, /* /sys does not list them */
	NO_DRIVER = 1 << 1,  /* nor is there a driver */
	FOREIGN_PIDS = 1 << 2,
};

enum {
	FAKES_MAX = 128,
};

static struct fake_nvml *fakes[FAKES_MAX];
static size_t n_fakes;

struct fixture {
	struct gpuroot root;
	struct gpu g;
	struct gpu_nvml n;
	struct fake_nvml *fake;
	int pipe[2];
	char library[512];
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000,
			      .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

static void add_gpu(struct fixture *f, unsigned i, const char *bus_id)
{
	char name[128], target[128];

	snprintf(f->fake->device[i].bus_id, sizeof(f->fake->device[i].bus_id),
		 "%s", bus_id);
	f->fake->device[i].utilization_result = 6; /* NOT_FOUND: idle */
	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/vendor", bus_id);
	gpuroot_write(&f->root, name, "0x10de\n");
	snprintf(name, sizeof(name), "sys/bus/pci/drivers/nvidia/%s", bus_id);
	snprintf(target, sizeof(target), "../../devices/%s", bus_id);
	gpuroot_link(&f->root, name, target);
}

static void set_power(struct fixture *f, const char *bus_id, const char *file,
		      const char *text)
{
	char name[128];

	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/power/%s", bus_id,
		 file);
	gpuroot_write(&f->root, name, text);
}

/* Threads that hang in the library may be with it for longer than we. */
static struct fake_nvml *new_fake(void *handle)
{
	fake_nvml_pointer *pointer = dlsym(handle, "fake_nvml");

	if (n_fakes == FAKES_MAX)
		abort();
	fakes[n_fakes] = calloc(1, sizeof(*fakes[0]));
	atomic_store(pointer, fakes[n_fakes]);
	return fakes[n_fakes++];
}

static void setup(struct fixture *f, unsigned version, unsigned flags)
{
	const char *builddir = getenv("top_builddir");
	struct gpu_nvml_options o;
	void *handle;

	memset(f, 0, sizeof(*f));
	snprintf(f->library, sizeof(f->library), "%s/tests/.libs/fakenvml%u.so",
		 builddir ? builddir : ".", version);
	handle = dlopen(f->library, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		printf("Bail out! %s\n", dlerror());
		exit(1);
	}
	f->fake = new_fake(handle);
	check_int(pipe2(f->pipe, O_CLOEXEC), 0);
	f->fake->hang_fd = f->pipe[0];
	f->fake->hang_device = -1;
	f->fake->n_devices = 2;
	gpuroot_begin(&f->root);
	if (!(flags & NO_DRIVER))
		gpuroot_write(&f->root, "proc/driver/nvidia/version", "595\n");
	add_gpu(f, 0, "0000:0b:00.0");
	add_gpu(f, 1, "0000:0c:00.0");
	gpuroot_write(&f->root, "sys/bus/pci/drivers/nvidia/bind", "");
	gpu_init(&f->g);
	o = (struct gpu_nvml_options){
	    .library = f->library,
	    .proc_fd = f->root.proc_fd,
	    .sys_fd = flags & NO_DEVICES ? -1 : f->root.sys_fd,
	    .first_pids = !(flags & FOREIGN_PIDS),
	    .find = gpuroot_find,
	    .find_arg = &f->root,
	};
	check_int(gpu_nvml_open(&f->n, &o), 0);
}

static void let_go(struct fixture *f)
{
	f->fake->hang = NULL;
	close(f->pipe[1]);
	f->pipe[1] = -1;
	while (atomic_load(&f->fake->n_hanging))
		pause_ms(1);
}

static void teardown(struct fixture *f)
{
	if (f->pipe[1] >= 0)
		let_go(f);
	gpu_nvml_close(&f->n);
	/* Threads that came back are through with the job they had. */
	pause_ms(5);
	close(f->pipe[0]);
	gpu_done(&f->g);
	gpuroot_end(&f->root);
}

static void tick_wait(struct fixture *f, uint64_t wait_ns)
{
	struct moment now = gpuroot_now(&f->root);

	gpu_begin(&f->g);
	gpu_nvml_begin(&f->n, &now);
	gpu_nvml_finish(&f->n, &f->g, wait_ns);
	check_int(gpu_end(&f->g), 0);
	f->root.now_s += 10;
}

static void tick(struct fixture *f)
{
	tick_wait(f, WAIT_NS);
}

static void ticks(struct fixture *f, int n)
{
	while (n-- > 0)
		tick(f);
}

static enum gpu_state state(struct fixture *f)
{
	char what[64];

	return gpu_nvml_state(&f->n, what, sizeof(what));
}

static void list(struct fixture *f, unsigned device, unsigned kind,
		 unsigned pid, uint64_t bytes)
{
	struct fake_list *l = &f->fake->device[device].list[kind];

	l->process[l->n++] = (struct fake_process){pid, bytes, UINT32_MAX};
}

/* A sample at a second of the tests' time. */
static void sample(struct fixture *f, unsigned device, unsigned pid,
		   uint64_t at_s, unsigned sm)
{
	struct fake_device *v = &f->fake->device[device];

	v->utilization_result = 0;
	v->sample[v->n_samples++] = (struct fake_sample){
	    .pid = pid,
	    .time_us = at_s * 1000000,
	    .sm = sm,
	};
}

static void missing(void)
{
	struct fixture f;

	/* Not even the library is looked for. */
	setup(&f, 2, NO_DRIVER);
	ticks(&f, 3);
	check_int(state(&f), GPU_STATE_MISSING);
	check_u64(atomic_load(&f.fake->n_calls), 0);
	gpuroot_write(&f.root, "proc/driver/nvidia/version", "595\n");
	ticks(&f, 10);
	check_int(state(&f), GPU_STATE_OK);
	teardown(&f);

	setup(&f, 2, 0);
	f.n.opt.library = "/nowhere/libnvidia-ml.so.1";
	ticks(&f, 3);
	check_int(state(&f), GPU_STATE_MISSING);
	teardown(&f);
}

/* The same processes in each version of the structure. */
static void memory_in(unsigned version, bool long_rows)
{
	struct fixture f;

	setup(&f, version, 0);
	f.fake->long_rows = long_rows;
	for (unsigned i = 0; i < 5; i++)
		gpuroot_process(&f.root, (pid_t)(7000 + i), 10, false);
	list(&f, 0, 0, 7000, GIB);
	list(&f, 0, 0, 7001, 2 * GIB);
	list(&f, 0, 1, 7002, 3 * GIB);
	list(&f, 0, 2, 7003, 4 * GIB);
	list(&f, 1, 0, 7004, 5 * GIB);
	ticks(&f, 3);
	check_int(state(&f), GPU_STATE_OK);
	check_u64(f.g.n_processes, 5);
	for (unsigned i = 0; i < 5; i++)
		check_u64(gpuroot_memory(&f.g, (pid_t)(7000 + i), "device"),
			  (i + 1) * GIB);
	teardown(&f);
}

static void memory_v1(void)
{
	memory_in(1, false);
}

static void memory_v2(void)
{
	memory_in(2, false);
}

static void memory_v3(void)
{
	memory_in(3, false);
}

static void memory_v3_long(void)
{
	memory_in(3, true);
}

/* More than there is room for at first. */
static void many(void)
{
	for (unsigned version = 1; version <= 4; version++) {
		struct fixture f;
		unsigned n = 0;

		setup(&f, MIN(version, 3u), 0);
		f.fake->long_rows = version == 4;
		for (unsigned i = 0; i < 300; i++)
			list(&f, 0, 0, 8000 + i, (i + 1) * 4096);
		for (unsigned i = 0; i < GPUROOT_PROCESSES_MAX; i++)
			gpuroot_process(&f.root, (pid_t)(8000 + i * 4), 10,
					false);
		ticks(&f, 2);
		for (unsigned i = 0; i < GPUROOT_PROCESSES_MAX; i++)
			n += gpuroot_memory(&f.g, (pid_t)(8000 + i * 4),
					    "device") == (i * 4 + 1) * 4096;
		check_u64(n, GPUROOT_PROCESSES_MAX);
		teardown(&f);
	}
}

/* Who computes and draws is in two lists, with one memory. */
static void merged(void)
{
	struct fixture f;

	setup(&f, 2, 0);
	gpuroot_process(&f.root, 7000, 10, false);
	gpuroot_process(&f.root, 7001, 10, false);
	list(&f, 0, 0, 7000, GIB);
	list(&f, 0, 1, 7000, GIB);
	list(&f, 1, 0, 7000, 2 * GIB);
	list(&f, 0, 0, 7001, UINT64_MAX); /* WDDM: it cannot be told */
	ticks(&f, 2);
	check_u64(gpuroot_result(&f.g, 7000)->n_memories, 2);
	/* One after the other in whichever order /sys lists them. */
	const struct gpu_memory *m = gpuroot_result(&f.g, 7000)->memory;

	check_u64(m[0].resident + m[1].resident, 3 * GIB);
	check(m[0].resident == GIB || m[1].resident == GIB);
	check_u64(gpuroot_result(&f.g, 7001)->n_clients, 1);
	check_u64(gpuroot_memory(&f.g, 7001, "device"), UINT64_MAX);
	teardown(&f);
}

static void utilization(void)
{
	const struct gpu_use *u;
	struct fixture f;

	setup(&f, 2, 0);
	gpuroot_process(&f.root, 7000, 10, false);
	gpuroot_process(&f.root, 7001, 10, false);
	list(&f, 0, 0, 7000, GIB);
	list(&f, 0, 0, 7001, GIB);
	/* What was there before us is of an unknown time. */
	sample(&f, 0, 7000, 998, 90);
	f.root.now_s += 10;
	tick(&f); /* begins, and asks for the first time */
	check(gpuroot_use(&f.g, 7000, "sm") == NULL);
	check_u64(f.fake->device[0].since_us, 0);

	sample(&f, 0, 7000, 1015, 30);
	sample(&f, 0, 7000, 1018, 50);
	f.fake->device[0].sample[2].decoder = 20;
	f.fake->device[0].sample[2].encoder = 10;
	tick(&f); /* at 1020 */
	u = gpuroot_use(&f.g, 7000, "sm");
	check(u && u->grown_ns == 4000000000 && u->percent == 40);
	u = gpuroot_use(&f.g, 7000, "decode");
	check(u && u->grown_ns == 1000000000 && u->percent == 10);
	u = gpuroot_use(&f.g, 7000, "encode");
	check(u && u->grown_ns == 500000000 && u->percent == 5);
	u = gpuroot_use(&f.g, 7001, "sm");
	check(u && u->grown_ns == 0 && u->percent == 0);

	/* The next question is about what came after the youngest. */
	f.fake->device[0].n_samples = 0;
	sample(&f, 0, 7001, 1024, 100);
	tick(&f);
	check_u64(f.fake->device[0].since_us, 1018000000);
	u = gpuroot_use(&f.g, 7001, "sm");
	check(u && u->grown_ns == 10000000000 && u->percent == 100);
	u = gpuroot_use(&f.g, 7000, "sm");
	check(u && u->grown_ns == 0);

	/* Nobody used it: 0 for all, and the question stays the same. */
	f.fake->device[0].utilization_result = 6;
	tick(&f);
	check_int(state(&f), GPU_STATE_OK);
	u = gpuroot_use(&f.g, 7001, "sm");
	check(u && u->grown_ns == 0 && u->percent == 0);
	tick(&f);
	check_u64(f.fake->device[0].since_us, 1024000000);

	/* Where it cannot be told it is not 0. */
	f.fake->device[0].utilization_result = 3;
	tick(&f);
	check(gpuroot_use(&f.g, 7001, "sm") == NULL);
	check_u64(gpuroot_memory(&f.g, 7001, "device"), GIB);
	teardown(&f);
}

/* Rows that cannot be true. */
static void garbage(void)
{
	const struct gpu_use *u;
	struct fixture f;

	setup(&f, 2, 0);
	for (pid_t pid = 7000; pid < 7008; pid++)
		if (pid != 7004)
			gpuroot_process(&f.root, pid, 10, false);
	ticks(&f, 2);
	f.fake->says_hundred = true; /* and the rest is what was there */
	sample(&f, 0, 7000, 1015, 20);
	sample(&f, 0, 7001, 1015, 37100);
	sample(&f, 0, 7002, 0, 50);
	sample(&f, 0, 0, 1015, 50);
	sample(&f, 0, 7003, 9000, 50); /* in two hours */
	sample(&f, 0, 7004, 1015, 50); /* there is no such process */
	sample(&f, 0, 7005, 1015, 50);
	f.fake->device[0].sample[6].decoder = 4294967295;
	tick(&f);
	u = gpuroot_use(&f.g, 7000, "sm");
	check(u && u->percent == 20);
	check_u64(f.g.n_processes, 1);
	check_u64(f.n.counts.n_unknown, 1);
	/* The one from the future moved no mark. */
	f.fake->device[0].n_samples = 0;
	sample(&f, 0, 7000, 1025, 10);
	tick(&f);
	u = gpuroot_use(&f.g, 7000, "sm");
	check(u && u->percent == 10);
	teardown(&f);
}

static size_t read_rows(const char *name, char (*word)[3][32], size_t max)
{
	const char *srcdir = getenv("srcdir");
	char path[768], line[256];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/gpu-samples/nvml/%s",
		 srcdir ? srcdir : ".", name);
	f = fopen(path, "re");
	check(f != NULL);
	while (f && n < max && fgets(line, sizeof(line), f)) {
		memset(word[n], 0, sizeof(word[n]));
		if (sscanf(line, "%31s %31s %31s", word[n][0], word[n][1],
			   word[n][2]) >= 2 &&
		    strcmp(word[n][0], "pid") != 0)
			n++;
	}
	if (f)
		fclose(f);
	return n;
}

/* Rows as they were seen in the field; what was seen last is 1000000. */
static void case_09(void)
{
	const struct gpu_use *u;
	char word[16][3][32];
	struct fixture f;
	size_t n;

	setup(&f, 2, 0);
	f.root.now_s = 0;
	for (pid_t pid = 7001; pid < 7004; pid++)
		gpuroot_process(&f.root, pid, 10, false);
	ticks(&f, 2);
	f.root.now_s = 2;
	for (size_t i = 0; i < f.n.n_devices; i++) {
		f.n.device[i].since_us = 1000000;
		f.n.device[i].asked_ns = NSEC_PER_SEC;
	}
	n = read_rows("case-09.tsv", word, ARRAY_SIZE(word));
	check_u64(n, 5);
	for (size_t i = 0; i < n; i++) {
		sample(&f, 0, (unsigned)atoi(word[i][0]), 0,
		       (unsigned)strtoul(word[i][2], NULL, 10));
		f.fake->device[0].sample[i].time_us =
		    strtoull(word[i][1], NULL, 10);
	}
	tick(&f);
	check_u64(f.g.n_processes, 1);
	u = gpuroot_use(&f.g, 7003, "sm");
	check(u && u->percent == 37);
	teardown(&f);
}

/* Sentinels and errors are no values; what else there is goes on. */
static void case_10(void)
{
	char word[16][3][32];
	struct fixture f;
	size_t n;

	setup(&f, 2, 0);
	ticks(&f, 2);
	n = read_rows("case-10.tsv", word, ARRAY_SIZE(word));
	check_u64(n, 4);
	for (size_t i = 0; i < n; i++) {
		unsigned pid = (unsigned)atoi(word[i][0]);

		gpuroot_process(&f.root, (pid_t)pid, 10, false);
		if (strcmp(word[i][1], "ERROR_NOT_SUPPORTED") == 0)
			continue; /* it is in no row */
		list(&f, 0, 0, pid, strtoull(word[i][1], NULL, 10));
		sample(&f, 0, pid, 1015,
		       (unsigned)MIN(strtoull(word[i][1], NULL, 10),
				     (unsigned long long)UINT32_MAX));
	}
	tick(&f);
	/* 9223372036854775807 bytes are no bytes; nor is it a percentage. */
	check_u64(gpuroot_memory(&f.g, 7101, "device"), UINT64_MAX);
	check_u64(gpuroot_result(&f.g, 7101)->n_clients, 1);
	check_u64(gpuroot_use(&f.g, 7101, "sm")->grown_ns, 0);
	check_u64(gpuroot_use(&f.g, 7102, "sm")->grown_ns, 0);
	check(gpuroot_result(&f.g, 7103) == NULL);
	check(gpuroot_use(&f.g, 7104, "sm")->percent == 12);
	check_u64(gpuroot_memory(&f.g, 7104, "device"), 12);
	teardown(&f);
}

/* A device in parts tells memory by part, and nothing of its being busy. */
static void mig(void)
{
	struct fixture f;
	struct fake_device *v;

	setup(&f, 2, 0);
	v = &f.fake->device[0];
	gpuroot_process(&f.root, 7000, 10, false);
	gpuroot_process(&f.root, 7001, 10, false);
	v->is_mig = true;
	v->n_parts = 2;
	v->part[0].n = 2;
	v->part[0].process[0] = (struct fake_process){7000, GIB, 1};
	v->part[0].process[1] = (struct fake_process){7001, 2 * GIB, 1};
	v->part[1].n = 1;
	v->part[1].process[0] = (struct fake_process){7000, 4 * GIB, 2};
	/* The whole tells them as well; that is not added. */
	list(&f, 0, 0, 7000, 5 * GIB);
	ticks(&f, 3);
	check_int(state(&f), GPU_STATE_OK);
	check_u64(gpuroot_memory(&f.g, 7000, "device"), 5 * GIB);
	check_u64(gpuroot_memory(&f.g, 7001, "device"), 2 * GIB);
	check(gpuroot_use(&f.g, 7000, "sm") == NULL);

	/* Without the right to the parts, by way of the whole. */
	v->part_result = 4;
	v->list[0].n = 0;
	v->list[0].process[v->list[0].n++] =
	    (struct fake_process){7000, GIB, 1};
	v->list[0].process[v->list[0].n++] =
	    (struct fake_process){7000, 2 * GIB, 2};
	tick(&f);
	check_u64(gpuroot_memory(&f.g, 7000, "device"), 3 * GIB);

	/* It can be divided, and is not. */
	v->is_mig = false;
	v->list[0].n = 0;
	list(&f, 0, 0, 7001, GIB);
	sample(&f, 0, 7001, f.root.now_s - 3, 60);
	tick(&f);
	check_u64(gpuroot_memory(&f.g, 7001, "device"), GIB);
	check(gpuroot_use(&f.g, 7001, "sm") != NULL);
	teardown(&f);
}

static void init_errors(void)
{
	static const struct {
		int result;
		enum gpu_state state;
	} want[] = {
	    {18, GPU_STATE_MISMATCH}, {999, GPU_STATE_DENIED},
	    {4, GPU_STATE_DENIED},    {9, GPU_STATE_MISSING},
	    {15, GPU_STATE_LOST},     {12, GPU_STATE_FAILED},
	};

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct fixture f;
		unsigned n_calls;

		setup(&f, 2, 0);
		f.fake->init_result = want[i].result;
		tick(&f);
		check_int(state(&f), want[i].state);
		n_calls = atomic_load(&f.fake->n_calls);
		ticks(&f, 5); /* 60 s: not yet again */
		check_u64(atomic_load(&f.fake->n_calls), n_calls);
		f.fake->init_result = 0;
		ticks(&f, 2);
		check_int(state(&f), GPU_STATE_OK);
		teardown(&f);
	}
}

/* One device is lost; the other one is not. */
static void lost(void)
{
	struct fixture f;
	unsigned n_calls;
	char what[64];

	setup(&f, 2, 0);
	gpuroot_process(&f.root, 7000, 10, false);
	gpuroot_process(&f.root, 7001, 10, false);
	list(&f, 0, 0, 7000, GIB);
	list(&f, 1, 0, 7001, GIB);
	ticks(&f, 3);
	f.fake->device[0].result = 15;
	ticks(&f, 3);
	check_int(gpu_nvml_state(&f.n, what, sizeof(what)), GPU_STATE_LOST);
	check_text(what, "0000:0b:00.0");
	check_u64(gpuroot_memory(&f.g, 7000, "device"), UINT64_MAX);
	check_u64(gpuroot_memory(&f.g, 7001, "device"), GIB);
	n_calls = atomic_load(&f.fake->device[0].n_calls);
	ticks(&f, 2);
	check_u64(atomic_load(&f.fake->device[0].n_calls), n_calls);
	f.fake->device[0].result = 0;
	ticks(&f, 6);
	check_int(state(&f), GPU_STATE_OK);
	check_u64(gpuroot_memory(&f.g, 7000, "device"), GIB);
	teardown(&f);
}

/* Somebody else in the process shut it down. */
static void uninitialized(void)
{
	struct fixture f;

	setup(&f, 2, 0);
	gpuroot_process(&f.root, 7000, 10, false);
	list(&f, 0, 0, 7000, GIB);
	ticks(&f, 3);
	atomic_store(&f.fake->n_shutdown, atomic_load(&f.fake->n_init));
	ticks(&f, 2);
	check_int(state(&f), GPU_STATE_FAILED);
	ticks(&f, 8);
	check_int(state(&f), GPU_STATE_OK);
	check_u64(gpuroot_memory(&f.g, 7000, "device"), GIB);
	teardown(&f);
}

/* Every call that there is, hanging for ever. */
static void hangs(void)
{
	static const struct {
		const char *call;
		bool of_all; /* nobody can be asked any more */
		unsigned flags;
		bool is_mig;
	} calls[] = {
	    {"nvmlInit_v2", true, 0, false},
	    {"nvmlDeviceGetCount_v2", true, NO_DEVICES, false},
	    {"nvmlDeviceGetHandleByIndex_v2", false, NO_DEVICES, false},
	    {"nvmlDeviceGetPciInfo_v3", false, NO_DEVICES, false},
	    {"nvmlDeviceGetHandleByPciBusId_v2", false, 0, false},
	    {"nvmlDeviceGetMigMode", false, 0, false},
	    {"nvmlDeviceGetMaxMigDeviceCount", false, 0, true},
	    {"nvmlDeviceGetMigDeviceHandleByIndex", false, 0, true},
	    {"nvmlDeviceGetComputeRunningProcesses", false, 0, false},
	    {"nvmlDeviceGetGraphicsRunningProcesses", false, 0, false},
	    {"nvmlDeviceGetMPSComputeRunningProcesses", false, 0, false},
	    {"nvmlDeviceGetProcessUtilization", false, 0, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		struct fixture f;
		uint64_t start, longest = 0;
		char what[64];

		setup(&f, 2, calls[i].flags);
		gpuroot_process(&f.root, 7000, 10, false);
		gpuroot_process(&f.root, 7001, 10, false);
		list(&f, 0, 0, 7000, GIB);
		list(&f, 1, 0, 7001, GIB);
		f.fake->device[0].is_mig = calls[i].is_mig;
		f.fake->device[0].n_parts = calls[i].is_mig;
		f.fake->hang = calls[i].call;
		f.fake->hang_device = calls[i].of_all ? -1 : 0;
		for (int k = 0; k < 30; k++) {
			start = now_ms();
			tick_wait(&f, 20 * NSEC_PER_MSEC);
			longest = MAX(longest, now_ms() - start);
			pause_ms(45);
		}
		check(longest < 1000);
		check_int(atomic_load(&f.fake->n_hanging), 1);
		check_int(gpu_nvml_state(&f.n, what, sizeof(what)),
			  GPU_STATE_STUCK);
		check_u64(f.n.counts.n_stalls, 1);
		if (calls[i].of_all) {
			check_u64(f.g.n_processes, 0);
			check_text(what, "");
		} else {
			/* The other one goes on. */
			check_u64(gpuroot_memory(&f.g, 7001, "device"), GIB);
			check(gpuroot_result(&f.g, 7000) == NULL);
			check_text(what, calls[i].flags & NO_DEVICES
					     ? ""
					     : "0000:0b:00.0");
		}
		start = now_ms();
		check(!gpu_nvml_close(&f.n));
		check(now_ms() - start < 1000);
		gpu_nvml_open(&f.n, &f.n.opt); /* for teardown() */
		if (tap.failed)
			printf("# %s\n", calls[i].call);
		teardown(&f);
	}
}

/* And what hung may come back. */
static void comes_back(void)
{
	struct fixture f;
	char byte = 0;

	setup(&f, 2, 0);
	gpuroot_process(&f.root, 7000, 10, false);
	list(&f, 0, 0, 7000, GIB);
	ticks(&f, 3);
	f.fake->hang = "nvmlDeviceGetMigMode";
	f.fake->hang_device = 0;
	tick_wait(&f, 10 * NSEC_PER_MSEC);
	pause_ms(1050);
	ticks(&f, 2);
	check_int(state(&f), GPU_STATE_STUCK);
	check_u64(gpuroot_memory(&f.g, 7000, "device"), UINT64_MAX);
	f.fake->hang = NULL;
	check_int(write(f.pipe[1], &byte, 1), 1);
	while (atomic_load(&f.fake->n_hanging))
		pause_ms(1);
	pause_ms(5);
	ticks(&f, 2);
	check_int(state(&f), GPU_STATE_OK);
	check_u64(gpuroot_memory(&f.g, 7000, "device"), GIB);
	teardown(&f);
}

/* An answer that is a little late is no gap; one that is later is. */
static void late(void)
{
	struct fixture f;
	char byte = 0;

	setup(&f, 2, 0);
	gpuroot_process(&f.root, 7000, 10, false);
	list(&f, 0, 0, 7000, GIB);
	ticks(&f, 3);
	f.fake->hang = "nvmlDeviceGetMigMode";
	f.fake->hang_device = 0;
	tick_wait(&f, 1);
	check_u64(gpuroot_memory(&f.g, 7000, "device"), GIB);
	tick_wait(&f, 1);
	check_u64(gpuroot_memory(&f.g, 7000, "device"), UINT64_MAX);
	f.fake->hang = NULL;
	check_int(write(f.pipe[1], &byte, 1), 1);
	ticks(&f, 2);
	check_u64(gpuroot_memory(&f.g, 7000, "device"), GIB);
	check_int(state(&f), GPU_STATE_OK);
	teardown(&f);
}

/* In a namespace of its own it sees some of the host's numbers. */
static void namespace(void)
{
	struct fixture f;

	setup(&f, 2, FOREIGN_PIDS);
	gpuroot_process(&f.root, 70, 10, false);
	gpuroot_process(&f.root, 7000, 10, false);
	gpuroot_process(&f.root, 80, 10, false);
	list(&f, 0, 0, 70, GIB); /* its own number, from the list */
	list(&f, 0, 0, 80, GIB);
	ticks(&f, 2);
	sample(&f, 0, 7000, 1015, 50); /* a host's number, from samples */
	sample(&f, 0, 80, 1015, 50);
	tick(&f);
	check(gpuroot_result(&f.g, 7000) == NULL);
	check(gpuroot_result(&f.g, 70) == NULL);
	check_u64(gpuroot_memory(&f.g, 80, "device"), GIB);
	teardown(&f);
}

/* Without /sys the library lists the devices. */
static void by_index(void)
{
	struct fixture f;

	setup(&f, 2, NO_DEVICES);
	gpuroot_process(&f.root, 7000, 10, false);
	list(&f, 1, 0, 7000, GIB);
	ticks(&f, 10);
	check_int(state(&f), GPU_STATE_OK);
	check_u64(f.n.n_devices, 2);
	check_text(f.n.device[0].name, "0000:0b:00.0");
	check_text(f.n.device[1].name, "0000:0c:00.0");
	check_u64(gpuroot_memory(&f.g, 7000, "device"), GIB);
	check_text(f.g.series[0].device, "0000:0c:00.0");
	teardown(&f);
}

/* A suspended device is asked nothing: that would wake it. */
static void suspended(void)
{
	struct fixture f;
	unsigned n_calls;

	setup(&f, 2, 0);
	set_power(&f, "0000:0b:00.0", "runtime_status", "suspended\n");
	set_power(&f, "0000:0c:00.0", "runtime_status", "suspended\n");
	ticks(&f, 20);
	/* Not even the library is initialized. */
	check_u64(atomic_load(&f.fake->n_calls), 0);
	check_int(state(&f), GPU_STATE_RESTING);
	set_power(&f, "0000:0c:00.0", "runtime_status", "active\n");
	gpuroot_process(&f.root, 7000, 10, false);
	list(&f, 1, 0, 7000, GIB);
	ticks(&f, 3);
	check_u64(gpuroot_memory(&f.g, 7000, "device"), GIB);
	check_u64(atomic_load(&f.fake->device[0].n_calls), 0);
	n_calls = atomic_load(&f.fake->device[1].n_calls);
	set_power(&f, "0000:0c:00.0", "runtime_status", "suspended\n");
	ticks(&f, 3);
	check_u64(atomic_load(&f.fake->device[1].n_calls), n_calls);
	/* What it holds stands. */
	check_u64(gpuroot_memory(&f.g, 7000, "device"), GIB);
	teardown(&f);
}

/* An open library alone keeps a device awake: it is closed. */
static void rests(void)
{
	struct fixture f;
	unsigned n_calls;

	setup(&f, 2, 0);
	set_power(&f, "0000:0b:00.0", "runtime_status", "active\n");
	set_power(&f, "0000:0b:00.0", "control", "auto\n");
	set_power(&f, "0000:0c:00.0", "runtime_status", "suspended\n");
	gpuroot_process(&f.root, 7000, 10, false);
	list(&f, 0, 0, 7000, GIB);
	sample(&f, 0, 7000, 1015, 50);
	ticks(&f, 3);
	check_u64(atomic_load(&f.fake->n_init), 1);
	f.fake->device[0].n_samples = 0;
	f.fake->device[0].utilization_result = 6;
	ticks(&f, GPU_NVML_IDLE_TICKS + 2);
	check_u64(atomic_load(&f.fake->n_shutdown), 1);
	check_int(state(&f), GPU_STATE_RESTING);
	set_power(&f, "0000:0b:00.0", "runtime_status", "suspended\n");
	n_calls = atomic_load(&f.fake->n_calls);
	ticks(&f, 30);
	check_u64(atomic_load(&f.fake->n_calls), n_calls);
	check_u64(gpuroot_memory(&f.g, 7000, "device"), GIB);
	gpuroot_exit(&f.root, 7000);
	gpuroot_process(&f.root, 7000, 99, false);
	tick(&f);
	check_u64(f.g.n_processes, 0);
	/* Somebody woke it. */
	set_power(&f, "0000:0b:00.0", "runtime_status", "active\n");
	ticks(&f, 3);
	check_u64(atomic_load(&f.fake->n_init), 2);
	check_u64(gpuroot_memory(&f.g, 7000, "device"), GIB);
	teardown(&f);
}

/* Where it does not fall asleep it need not be left alone. */
static void never_rests(void)
{
	struct fixture f;

	setup(&f, 2, 0);
	set_power(&f, "0000:0b:00.0", "control", "auto\n");
	ticks(&f, GPU_NVML_IDLE_TICKS + 4);
	check_u64(atomic_load(&f.fake->n_shutdown), 1);
	ticks(&f, 10);
	check_u64(atomic_load(&f.fake->n_init), 2);
	ticks(&f, 50);
	check_u64(atomic_load(&f.fake->n_init), 2);
	check_u64(atomic_load(&f.fake->n_shutdown), 1);
	check_int(state(&f), GPU_STATE_OK);
	teardown(&f);

	/* And where the kernel may not suspend it, it never is. */
	setup(&f, 2, 0);
	set_power(&f, "0000:0b:00.0", "control", "on\n");
	ticks(&f, 50);
	check_u64(atomic_load(&f.fake->n_shutdown), 0);
	teardown(&f);
}

static void hangs_at_the_end(void)
{
	struct fixture f;

	setup(&f, 2, 0);
	set_power(&f, "0000:0b:00.0", "control", "auto\n");
	f.fake->hang = "nvmlShutdown";
	ticks(&f, 2);
	for (int i = 0; i < GPU_NVML_IDLE_TICKS + 4; i++)
		tick_wait(&f, 10 * NSEC_PER_MSEC);
	pause_ms(1050);
	ticks(&f, 2);
	check_int(atomic_load(&f.fake->n_hanging), 1);
	check_int(state(&f), GPU_STATE_STUCK);
	uint64_t start = now_ms();

	check(!gpu_nvml_close(&f.n));
	check(now_ms() - start < 1000);
	gpu_nvml_open(&f.n, &f.n.opt);
	teardown(&f);
}

static void no_allocation(void)
{
	struct fixture f;
	uint64_t before;

	setup(&f, 3, 0);
	for (unsigned i = 0; i < 60; i++) {
		gpuroot_process(&f.root, (pid_t)(7000 + i), 10, false);
		list(&f, i % 2, i % 3, 7000 + i, GIB);
	}
	ticks(&f, 10);
	before = alloccount_calls();
	ticks(&f, 20);
	if (!before)
		tap_skip("allocations are not counted");
	check_u64(alloccount_calls() - before, 0);
	check_u64(f.g.n_processes, 60);
	teardown(&f);
}

int main(void)
{
	TEST("without a driver or a library nothing is called", missing);
	TEST("processes are listed in the first version", memory_v1);
	TEST("processes are listed in the second version", memory_v2);
	TEST("processes are listed in the third version", memory_v3);
	TEST("processes are listed in the third version of drivers 535.43 on",
	     memory_v3_long);
	TEST("as many processes as there are are listed", many);
	TEST("a process in two lists has one memory, and perhaps none", merged);
	TEST("being busy is told from samples, each once", utilization);
	TEST("samples that cannot be true are not believed", garbage);
	TEST("case gpu-09: stale and senseless samples", case_09);
	TEST("case gpu-10: values that are none", case_10);
	TEST("a device in parts tells memory alone", mig);
	TEST("a library that refuses is asked again after a while",
	     init_errors);
	TEST("a lost device is asked again after a while", lost);
	TEST("a library that was shut down is initialized again",
	     uninitialized);
	TEST("a call that hangs stops its device and nothing else", hangs);
	TEST("a call that comes back is forgiven", comes_back);
	TEST("an answer that is late is no gap", late);
	TEST("in a namespace only what both lists say is believed", namespace);
	TEST("without /sys the library says which devices there are", by_index);
	TEST("a suspended device is not woken", suspended);
	TEST("idle devices are let fall asleep", rests);
	TEST("if they do not fall asleep it is not tried again", never_rests);
	TEST("an end that hangs keeps nobody", hangs_at_the_end);
	TEST("a steady tick allocates nothing", no_allocation);
	return tap_done();
}
