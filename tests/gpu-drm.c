/* SPDX-License-Identifier: MIT */
/*
 * The DRM backend: below fake roots, where everything can be made to happen;
 * and with tables of descriptors of the real kernel, where /dev/null and
 * /dev/zero stand for devices.
 */
#include "tap.h"

#include "gpu-drm.h"
#include "gpuroot.h"
#include "proctext.h"
#include "runner.h"

#include "alloccount.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define WAIT_NS (2 * NSEC_PER_SEC)

/* Reads of files whose path ends so hang until they are let go, or fail. */
static struct {
	pthread_mutex_t lock;
	char hang[64], fail[64];
	int err;
	int pipe[2];
	atomic_int n_hanging;
} hook = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void hook_hang(const char *suffix)
{
	pthread_mutex_lock(&hook.lock);
	snprintf(hook.hang, sizeof(hook.hang), "%s", suffix);
	pthread_mutex_unlock(&hook.lock);
}

static void hook_fail(const char *suffix, int err)
{
	pthread_mutex_lock(&hook.lock);
	snprintf(hook.fail, sizeof(hook.fail), "%s", suffix);
	hook.err = err;
	pthread_mutex_unlock(&hook.lock);
}

extern ssize_t __real_pread64(int fd, void *buf, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t at);

static bool is_file(int fd, const char *hooked)
{
	char link[64], path[512], suffix[64];
	ssize_t n;

	pthread_mutex_lock(&hook.lock);
	strcpy(suffix, hooked);
	pthread_mutex_unlock(&hook.lock);
	if (!suffix[0] || suffix[0] == '*')
		return suffix[0] == '*';
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	return n > 0 && str_ends((struct str){path, (size_t)n}, str_of(suffix));
}

ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t at)
{
	char byte;

	if (is_file(fd, hook.hang)) {
		atomic_fetch_add(&hook.n_hanging, 1);
		while (read(hook.pipe[0], &byte, 1) < 0 && errno == EINTR)
			;
		atomic_fetch_sub(&hook.n_hanging, 1);
	}
	if (is_file(fd, hook.fail)) {
		errno = hook.err;
		return -1;
	}
	return __real_pread64(fd, buf, n, at);
}

extern int __real_statx(int fd, const char *name, int flags, unsigned mask,
			struct statx *sx);
int __wrap_statx(int fd, const char *name, int flags, unsigned mask,
		 struct statx *sx);

int __wrap_statx(int fd, const char *name, int flags, unsigned mask,
		 struct statx *sx)
{
	char byte;

	/* Whoever is asked for is not asked to look elsewhere for it. */
	if (flags != (AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT) ||
	    mask != STATX_TYPE)
		abort();
	if (is_file(fd, hook.hang)) {
		atomic_fetch_add(&hook.n_hanging, 1);
		while (read(hook.pipe[0], &byte, 1) < 0 && errno == EINTR)
			;
		atomic_fetch_sub(&hook.n_hanging, 1);
	}
	return __real_statx(fd, name, flags, mask, sx);
}

ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t at)
{
	return __wrap_pread64(fd, buf, n, at);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
	struct timespec ts = {.tv_nsec = ms * 1000000};

	nanosleep(&ts, NULL);
}

struct fixture {
	struct gpuroot root;
	struct gpu g;
	struct gpu_drm d;
	struct keptfd kept;
	struct gpu_mark mark[GPUROOT_PROCESSES_MAX];
};

static void setup_at(struct fixture *f, int proc_fd)
{
	struct gpu_drm_options o = {
	    .proc_fd = proc_fd,
	    .sys_fd = f->root.sys_fd,
	    .kept = &f->kept,
	    .same_pids = proc_fd != f->root.proc_fd,
	    .find = gpuroot_find,
	    .find_arg = &f->root,
	};

	hook_hang("");
	hook_fail("", 0);
	check_int(pipe2(hook.pipe, O_CLOEXEC), 0);
	keptfd_init(&f->kept, false, 64);
	keptfd_provide(&f->kept, 16);
	gpu_init(&f->g);
	check_int(gpu_drm_open(&f->d, &o), 0);
}

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	gpuroot_begin(&f->root);
	setup_at(f, f->root.proc_fd);
}

static void teardown(struct fixture *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(f->mark); i++)
		gpu_drm_forget(&f->d, &f->mark[i]);
	close(hook.pipe[1]); /* lets all go that hang */
	gpu_drm_close(&f->d);
	check_u64(f->kept.n_kept, 0);
	while (atomic_load(&hook.n_hanging))
		pause_ms(1);
	close(hook.pipe[0]);
	gpu_done(&f->g);
	gpuroot_end(&f->root);
}

static void begin(struct fixture *f)
{
	struct moment now = gpuroot_now(&f->root);

	gpu_begin(&f->g);
	gpu_drm_begin(&f->d, &now);
}

static void finish(struct fixture *f)
{
	gpu_drm_read(&f->d, &f->g);
	gpu_drm_finish(&f->d, &f->g, WAIT_NS);
	check_int(gpu_end(&f->g), 0);
	f->root.now_s += 10;
}

static struct gpu_who who_of(const struct fixture *f, size_t i, uint32_t n_fds,
			     uint64_t born_s)
{
	return (struct gpu_who){
	    .holder = f->root.process[i],
	    .born_ns = born_s * NSEC_PER_SEC,
	    .n_fds = n_fds,
	};
}

/* Looks at all processes, as the monitor does at its first tick. */
static void look_at_all(struct fixture *f)
{
	for (size_t i = 0; i < f->root.n_processes; i++) {
		struct gpu_who who = who_of(f, i, GPU_FDS_UNKNOWN, 0);

		if (gpu_drm_ran(&f->d, &f->mark[i], &who))
			gpu_drm_look(&f->d, &f->mark[i], &who, NULL, NULL);
	}
}

/* A whole tick in which every process ran. */
static void tick(struct fixture *f)
{
	begin(f);
	look_at_all(f);
	finish(f);
}

static char *client(char *buf, const char *driver, const char *pdev,
		    unsigned id, uint64_t busy_ns, uint64_t vram_kib)
{
	sprintf(
	    buf,
	    "pos:\t0\nflags:\t02100002\ndrm-driver:\t%s\ndrm-client-id:\t%u\n"
	    "%s%s%sdrm-engine-gfx:\t%" PRIu64
	    " ns\ndrm-resident-vram:\t%" PRIu64 " KiB\n",
	    driver, id, pdev[0] ? "drm-pdev:\t" : "", pdev, pdev[0] ? "\n" : "",
	    busy_ns, vram_kib);
	return buf;
}

static void amd(const struct gpuroot *r, const char *number)
{
	gpuroot_device(r, "drm/card0", number, "0000:03:00.0", "amdgpu");
}

static void table(void)
{
	struct fixture f;
	char what[64];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_device(&f.root, "drm/renderD128", GPUROOT_ZERO, "0000:03:00.0",
		       "amdgpu");
	gpuroot_device(&f.root, "drm/card1", GPUROOT_FULL, "0000:04:00.0",
		       "nouveau");
	gpuroot_device(&f.root, "accel/accel0", "261:0", "0000:00:0b.0",
		       "intel_vpu");
	gpuroot_device(&f.root, "drm/card2", "226:2", "1c00000.gpu", "msm");
	gpuroot_device(&f.root, "drm/card3", "226:3", "vkms", NULL);
	gpuroot_write(&f.root, "sys/class/drm/version", "drm 1.1.0\n");
	gpuroot_write(&f.root, "sys/class/drm/card0-HDMI-A-1/status", "on\n");
	gpuroot_device(&f.root, "drm/card4", "226:x", "0000:05:00.0", "xe");
	begin(&f);
	check(gpu_drm_is_capable(&f.d));
	check_u64(f.d.n_devices, 3);
	for (size_t i = 0; i < f.d.n_devices; i++) {
		const struct gpu_drm_device *v = &f.d.device[i];

		if (strcmp(v->driver, "amdgpu") == 0) {
			check_text(v->name, "0000:03:00.0");
			check_u64(v->n_nodes, 2);
		} else if (strcmp(v->driver, "msm") == 0) {
			check_text(v->name, "1c00000.gpu");
			check_u64(v->n_nodes, 1);
		} else {
			check_text(v->driver, "intel_vpu");
			check_text(v->name, "0000:00:0b.0");
		}
	}
	finish(&f);
	check_int(gpu_drm_state(&f.d, &f.g, what, sizeof(what)), GPU_STATE_OK);
	teardown(&f);
}

/* Nothing is asked of any process. */
static void no_driver(void)
{
	static const char *const drivers[] = {
	    "nvidia", "nouveau",
	    "radeon", "virtio_gpu",
	    "vmwgfx", "bochs-drm",
	    "ast",    "mgag200",
	    "lima",   "simple-framebuffer",
	};
	struct fixture f;
	char name[512], what[64];

	for (size_t i = 0; i <= ARRAY_SIZE(drivers); i++) {
		struct gpu_who who;

		setup(&f);
		if (i < ARRAY_SIZE(drivers))
			gpuroot_device(&f.root, "drm/card0", GPUROOT_NULL,
				       "0000:03:00.0", drivers[i]);
		gpuroot_process(&f.root, 500, 10, false);
		gpuroot_fd(&f.root, 500, 3, "null",
			   client(name, "x", "", 1, 5, 5));
		for (int k = 0; k < 3; k++) {
			begin(&f);
			who = who_of(&f, 0, 10 + (uint32_t)k, 0);
			check(!gpu_drm_ran(&f.d, &f.mark[0], &who));
			finish(&f);
		}
		check(!gpu_drm_is_capable(&f.d));
		check_u64(f.d.counts.n_calls, 0);
		check_u64(f.g.n_processes, 0);
		check_int(gpu_drm_state(&f.d, &f.g, what, sizeof(what)),
			  GPU_STATE_MISSING);
		teardown(&f);
	}
}

/* What is open on a device is found, by number, whatever it is called. */
static void finds(void)
{
	struct fixture f;
	char text[512];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_fd(&f.root, 500, 0, "null",
		   client(text, "amdgpu", "0000:03:00.0", 42, 1000, 2048));
	gpuroot_fd(&f.root, 500, 1, "full",
		   client(text, "amdgpu", "0000:03:00.0", 43, 1000, 2048));
	gpuroot_fd(&f.root, 500, 2, "does-not-exist",
		   client(text, "amdgpu", "0000:03:00.0", 44, 1000, 2048));
	gpuroot_write(&f.root, "proc/500/fd/3", "a regular file\n");
	gpuroot_write(&f.root, "proc/500/fdinfo/3",
		      client(text, "amdgpu", "0000:03:00.0", 45, 1000, 2048));
	tick(&f);
	check_u64(gpu_drm_count_slots(&f.d), 1);
	check_u64(gpuroot_memory(&f.g, 500, "device"), 2048 * 1024);
	gpuroot_write(
	    &f.root, "proc/500/fdinfo/0",
	    client(text, "amdgpu", "0000:03:00.0", 42, 2500001000, 4096));
	tick(&f);
	const struct gpu_use *u = gpuroot_use(&f.g, 500, "render");

	check(u && u->grown_ns == 2500000000 && u->percent == 25.0);
	check_u64(gpuroot_memory(&f.g, 500, "device"), 4096 * 1024);
	teardown(&f);
}

/* Devices of a platform have no address in their fdinfo. */
static void platform(void)
{
	struct fixture f;
	char text[512];

	setup(&f);
	gpuroot_device(&f.root, "drm/card0", GPUROOT_NULL, "1c00000.gpu",
		       "msm");
	gpuroot_device(&f.root, "drm/card1", GPUROOT_ZERO, "1d00000.gpu",
		       "msm");
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_fd(&f.root, 500, 3, "null", client(text, "msm", "", 7, 1, 1));
	gpuroot_fd(&f.root, 500, 4, "zero", client(text, "msm", "", 7, 1, 2));
	tick(&f);
	check_u64(f.g.n_processes, 1);
	if (f.g.n_processes) {
		check_u64(f.g.process[0].n_clients, 2);
		check_u64(f.g.process[0].n_memories, 2);
	}
	check_u64(f.g.n_series, 4);
	if (f.g.n_series == 4) {
		check_text(f.g.series[0].device, "1c00000.gpu");
		check_text(f.g.series[2].device, "1d00000.gpu");
	}
	teardown(&f);
}

/* One read per client and tick; a duplicate is asked now and then. */
static void reads_owner(void)
{
	struct fixture f;
	uint64_t before;
	char text[512];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	for (pid_t pid = 500; pid < 510; pid++) {
		gpuroot_process(&f.root, pid, (uint64_t)pid, false);
		gpuroot_fd(&f.root, pid, 3, "null",
			   client(text, "amdgpu", "0000:03:00.0", 42, 1, 1));
	}
	tick(&f);
	check_u64(f.d.counts.n_reads, 10);
	before = f.d.counts.n_reads;
	for (int i = 0; i < 8; i++)
		tick(&f);
	/* One for the owner each time, and each of the others once. */
	check_u64(f.d.counts.n_reads - before, 8 + 9);
	check_u64(f.g.n_processes, 1);
	if (f.g.n_processes)
		check_int(f.g.process[0].pid, 500);
	teardown(&f);
}

/* A session manager, its session and the programs in it. */
static void shared_clients(void)
{
	struct fixture f;
	char text[512];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 700, 900, true);
	gpuroot_process(&f.root, 1200, 5000, false);
	gpuroot_process(&f.root, 1300, 6000, false);
	gpuroot_process(&f.root, 1310, 6100, false);
	client(text, "amdgpu", "0000:03:00.0", 118, 0, 100);
	gpuroot_fd(&f.root, 700, 20, "null", text);
	gpuroot_fd(&f.root, 1200, 15, "null", text);
	gpuroot_fd(&f.root, 1200, 31, "null", text);
	client(text, "amdgpu", "0000:03:00.0", 3, 0, 7);
	gpuroot_fd(&f.root, 1300, 9, "null", text);
	gpuroot_fd(&f.root, 1310, 9, "null", text);
	tick(&f);
	check_u64(f.g.n_processes, 2);
	check_u64(gpuroot_memory(&f.g, 1200, "device"), 100 * 1024);
	check_u64(gpuroot_memory(&f.g, 1300, "device"), 7 * 1024);

	/* The owner ends: its child has it from then on. */
	gpuroot_exit(&f.root, 1300);
	client(text, "amdgpu", "0000:03:00.0", 3, 1000000000, 7);
	gpuroot_write(&f.root, "proc/1310/fdinfo/9", text);
	hook_fail("/1300/fdinfo/9", ESRCH);
	tick(&f);
	const struct gpu_use *u = gpuroot_use(&f.g, 1310, "render");

	/* In this very tick, though its own was not to be read. */
	check(u && u->grown_ns == 1000000000 && u->percent == 10.0);
	check_u64(gpuroot_memory(&f.g, 1310, "device"), 7 * 1024);
	check(gpuroot_result(&f.g, 1300) == NULL);
	teardown(&f);
}

/* When is a table looked at? In ticks in which the process ran. */
static void turns(void)
{
	struct fixture f;
	unsigned looks = 0, last = 0, longest = 0;

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_dir(&f.root, "proc/500/fd");
	for (unsigned i = 1; i <= 400; i++) {
		struct gpu_who who = who_of(&f, 0, 30, 0);
		struct gpu_turn turn;

		begin(&f);
		if (gpu_drm_ran(&f.d, &f.mark[0], &who))
			gpu_drm_look(&f.d, &f.mark[0], &who, NULL, NULL);
		while (gpu_drm_next(&f.d, &turn)) {
			check_int(turn.pid, 500);
			gpu_drm_look(&f.d, &f.mark[0], &who, &turn, NULL);
		}
		if (f.d.counts.n_looks != looks) {
			longest = MAX(longest, i - last);
			last = i;
		}
		looks = (unsigned)f.d.counts.n_looks;
		if (i == 1)
			check_u64(looks, 1); /* who is new, at once */
		if (i == 1 + 2 * GPU_DRM_TICKS)
			check_u64(looks, 2);
		finish(&f);
	}
	/* Now and then, though nothing calls for it. */
	check(longest <= 2 * GPU_DRM_TICKS_MAX);
	check(looks >= 400 / GPU_DRM_TICKS_MAX);
	check(looks <= 400 / GPU_DRM_TICKS_MAX + 6);
	check(f.d.n_turns <= 2);
	teardown(&f);
}

/* A look that came before its turn came makes up for that. */
static void turns_overtaken(void)
{
	struct gpu_turn turn;
	struct fixture f;
	struct gpu_who who;
	uint64_t looks;
	int n_turns = 0;

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_dir(&f.root, "proc/500/fd");
	for (uint32_t n_fds = 30; n_fds < 33; n_fds++) {
		begin(&f);
		who = who_of(&f, 0, n_fds == 31 ? 30 : n_fds, 0);
		check_int(gpu_drm_ran(&f.d, &f.mark[0], &who), n_fds != 31);
		if (n_fds != 31)
			gpu_drm_look(&f.d, &f.mark[0], &who, NULL, NULL);
		finish(&f);
	}
	check_u64(f.d.n_turns, 1);
	looks = f.d.counts.n_looks;
	check_u64(looks, 2);
	for (int i = 0; i < 100; i++) {
		begin(&f);
		while (gpu_drm_next(&f.d, &turn)) {
			n_turns++;
			gpu_drm_look(&f.d, &f.mark[0], &who, &turn, NULL);
		}
		finish(&f);
	}
	check_int(n_turns, 1);
	check_u64(f.d.counts.n_looks, looks);
	teardown(&f);
}

static void turns_of_changing(void)
{
	struct fixture f;
	char text[512];
	uint64_t looks;

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_dir(&f.root, "proc/500/fd");
	for (uint32_t i = 1; i <= 160; i++) {
		struct gpu_who who = who_of(&f, 0, 30 + i, 0);

		begin(&f);
		if (gpu_drm_ran(&f.d, &f.mark[0], &who))
			gpu_drm_look(&f.d, &f.mark[0], &who, NULL, NULL);
		finish(&f);
	}
	/* In vain: ever more seldom, but not too seldom. */
	looks = f.d.counts.n_looks;
	check(looks >= 160 / GPU_DRM_TICKS_CHANGED_MAX);
	check(looks <= 160 / GPU_DRM_TICKS_CHANGED_MAX + 8);
	/* Once it has one: at each change. */
	gpuroot_fd(&f.root, 500, 3, "null",
		   client(text, "amdgpu", "0000:03:00.0", 1, 1, 1));
	for (uint32_t i = 1; i <= 40; i++) {
		struct gpu_who who = who_of(&f, 0, 500 + i, 0);

		begin(&f);
		if (gpu_drm_ran(&f.d, &f.mark[0], &who))
			gpu_drm_look(&f.d, &f.mark[0], &who, NULL, NULL);
		finish(&f);
	}
	check(f.d.counts.n_looks - looks >= 40 - GPU_DRM_TICKS_CHANGED_MAX);
	check_u64(gpu_drm_count_slots(&f.d), 1);
	teardown(&f);
}

/* Looks that nothing calls for come one after the other, not all at once. */
static void turns_spread(void)
{
	enum { N = 48 };
	struct fixture f;
	uint64_t most = 0;

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	for (pid_t i = 0; i < N; i++) {
		char name[64];

		gpuroot_process(&f.root, 500 + i, 10, false);
		snprintf(name, sizeof(name), "proc/%d/fd", 500 + (int)i);
		gpuroot_dir(&f.root, name);
	}
	for (unsigned k = 1; k <= 300; k++) {
		uint64_t looks = f.d.counts.n_looks;
		struct gpu_turn turn;

		begin(&f);
		for (size_t i = 0; i < N; i++) {
			struct gpu_who who = who_of(&f, i, 30, 0);

			if (gpu_drm_ran(&f.d, &f.mark[i], &who))
				gpu_drm_look(&f.d, &f.mark[i], &who, NULL,
					     NULL);
		}
		while (gpu_drm_next(&f.d, &turn)) {
			size_t i = (size_t)(turn.pid - 500);
			struct gpu_who who = who_of(&f, i, 30, 0);

			gpu_drm_look(&f.d, &f.mark[i], &who, &turn, NULL);
		}
		if (k > 1)
			most = MAX(most, f.d.counts.n_looks - looks);
		finish(&f);
	}
	check(most <= N / GPU_DRM_TICKS);
	teardown(&f);
}

/* A tick that has looked at enough leaves the rest to the next ones. */
static void budget(void)
{
	struct fixture f;
	struct gpu_who who;
	unsigned ticks = 0;

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	for (pid_t i = 0; i < 20; i++) {
		char name[64];

		gpuroot_process(&f.root, 500 + i, 10, false);
		for (int fd = 0; fd < 3; fd++) {
			snprintf(name, sizeof(name), "proc/%d/fd/%d",
				 500 + (int)i, fd);
			gpuroot_link(&f.root, name, "/dev/full");
		}
	}
	begin(&f);
	f.d.budget = 10;
	for (size_t i = 0; i < 20; i++) {
		who = who_of(&f, i, 3, 0);
		if (gpu_drm_ran(&f.d, &f.mark[i], &who))
			gpu_drm_look(&f.d, &f.mark[i], &who, NULL, NULL);
	}
	check(f.d.counts.n_fds <= 10);
	check_u64(f.d.counts.n_put_off, 16);
	finish(&f);
	/* Nobody ran since; the others come all the same. */
	do {
		struct gpu_turn turn;

		begin(&f);
		f.d.budget = 10;
		while (gpu_drm_next(&f.d, &turn)) {
			size_t i = (size_t)(turn.pid - 500);

			who = who_of(&f, i, 3, 0);
			gpu_drm_look(&f.d, &f.mark[i], &who, &turn, NULL);
		}
		finish(&f);
	} while (f.d.n_turns && ++ticks < 50);
	check(ticks <= 8);
	for (size_t i = 0; i < 20; i++)
		check(f.mark[i].looked_tick != 0);
	teardown(&f);
}

/* Without room for kept descriptors it is the same, with more calls. */
static void no_room(void)
{
	struct fixture f;
	char text[512];

	setup(&f);
	keptfd_init(&f.kept, false, 0);
	keptfd_provide(&f.kept, 16);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_fd(&f.root, 500, 3, "null",
		   client(text, "amdgpu", "0000:03:00.0", 42, 0, 2048));
	tick(&f);
	check_u64(f.kept.n_kept, 0);
	gpuroot_write(
	    &f.root, "proc/500/fdinfo/3",
	    client(text, "amdgpu", "0000:03:00.0", 42, 1000000000, 4096));
	tick(&f);
	const struct gpu_use *u = gpuroot_use(&f.g, 500, "render");

	check(u && u->grown_ns == 1000000000);
	/* It is not there any more: that is no error. */
	gpuroot_unlink(&f.root, "proc/500/fdinfo/3");
	gpuroot_unlink(&f.root, "proc/500/fd/3");
	tick(&f);
	check_u64(gpu_drm_count_slots(&f.d), 0);
	check_u64(f.g.n_processes, 0);
	teardown(&f);
}

/* A kernel whose kept files cannot be read again from their beginning. */
static void no_seek(void)
{
	struct fixture f;
	char text[512];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_fd(&f.root, 500, 3, "null",
		   client(text, "amdgpu", "0000:03:00.0", 42, 0, 2048));
	hook_fail("/fdinfo/3", ESPIPE);
	tick(&f);
	check_u64(gpuroot_memory(&f.g, 500, "device"), 2048 * 1024);
	gpuroot_write(
	    &f.root, "proc/500/fdinfo/3",
	    client(text, "amdgpu", "0000:03:00.0", 42, 1000000000, 4096));
	for (int i = 0; i < 3; i++)
		tick(&f);
	check_u64(gpuroot_memory(&f.g, 500, "device"), 4096 * 1024);
	check_u64(f.kept.n_kept, 0);
	teardown(&f);
}

/* A device whose driver tells nothing is not looked for any more. */
static void mute(void)
{
	struct fixture f;

	setup(&f);
	gpuroot_device(&f.root, "drm/card0", GPUROOT_NULL, "0000:03:00.0",
		       "shiny");
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_fd(&f.root, 500, 3, "null", "pos:\t0\nflags:\t02\n");
	check(!gpu_drm_is_capable(&f.d));
	tick(&f);
	/* Once may be a mistake: the number may have been reused just now. */
	check(gpu_drm_is_capable(&f.d));
	for (int i = 0; i < 8 * GPU_DRM_SILENT_MAX; i++)
		tick(&f);
	check(!gpu_drm_is_capable(&f.d));
	check_u64(gpu_drm_count_slots(&f.d), 0);
	check_u64(f.d.counts.n_reads, GPU_DRM_SILENT_MAX);
	uint64_t calls = f.d.counts.n_calls;

	for (int i = 0; i < 20; i++)
		tick(&f);
	check_u64(f.d.counts.n_calls, calls);

	/* Its driver may be another one when it comes again. */
	gpuroot_unlink(&f.root, "sys/class/drm/card0/dev");
	for (int i = 0; i < 7; i++)
		tick(&f);
	gpuroot_device(&f.root, "drm/card0", GPUROOT_NULL, "0000:03:00.0",
		       "shiny");
	for (int i = 0; i < 6; i++) {
		begin(&f);
		finish(&f);
	}
	check(gpu_drm_is_capable(&f.d));
	teardown(&f);
}

/* One that did tell is not mute when a descriptor has nothing to say. */
static void unplugged(void)
{
	struct fixture f;
	char text[512];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_fd(&f.root, 500, 3, "null",
		   client(text, "amdgpu", "0000:03:00.0", 42, 0, 2048));
	tick(&f);
	gpuroot_write(&f.root, "proc/500/fdinfo/3", "pos:\t0\n");
	tick(&f);
	tick(&f);
	check(gpu_drm_is_capable(&f.d));
	check_u64(f.g.n_processes, 0);
	gpuroot_write(&f.root, "proc/500/fdinfo/3",
		      client(text, "amdgpu", "0000:03:00.0", 42, 0, 4096));
	for (int i = 0; i < 9; i++)
		tick(&f);
	check_u64(gpuroot_memory(&f.g, 500, "device"), 4096 * 1024);
	teardown(&f);
}

/* The number of a descriptor is reused for another client. */
static void reused_number(void)
{
	struct fixture f;
	char text[512];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_fd(&f.root, 500, 3, "null",
		   client(text, "amdgpu", "0000:03:00.0", 42, 9000000000, 1));
	tick(&f);
	gpuroot_write(
	    &f.root, "proc/500/fdinfo/3",
	    client(text, "amdgpu", "0000:03:00.0", 43, 1000000000, 1));
	tick(&f);
	/* It cannot be older than the last reading: it counts whole. */
	const struct gpu_use *u = gpuroot_use(&f.g, 500, "render");

	check(u && u->grown_ns == 1000000000);
	check_u64(f.d.n_turns, 1); /* others may be new, too */
	teardown(&f);
}

/* A suspended device is not read, and what it holds stands. */
static void asleep(void)
{
	struct fixture f;
	uint64_t reads;
	char text[512], what[64];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_power(&f.root, "0000:03:00.0", "active");
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_fd(&f.root, 500, 3, "null",
		   client(text, "amdgpu", "0000:03:00.0", 42, 0, 2048));
	tick(&f);
	reads = f.d.counts.n_reads;
	check(reads > 0);
	gpuroot_power(&f.root, "0000:03:00.0", "suspended");
	for (int i = 0; i < 10; i++)
		tick(&f);
	check_u64(f.d.counts.n_reads, reads);
	check_u64(gpuroot_memory(&f.g, 500, "device"), 2048 * 1024);
	check(gpuroot_use(&f.g, 500, "render") == NULL);
	check_int(gpu_drm_state(&f.d, &f.g, what, sizeof(what)),
		  GPU_STATE_RESTING);
	gpuroot_power(&f.root, "0000:03:00.0", "active");
	tick(&f);
	check_u64(f.d.counts.n_reads, reads + 1);
	check(gpuroot_use(&f.g, 500, "render") != NULL);
	teardown(&f);
}

/* The number of a process is given to another one. */
static void reused_pid(void)
{
	struct fixture f;
	char text[512];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_fd(&f.root, 500, 3, "null",
		   client(text, "amdgpu", "0000:03:00.0", 42, 0, 2048));
	tick(&f);
	check_u64(f.g.n_processes, 1);
	gpuroot_exit(&f.root, 500);
	gpuroot_process(&f.root, 500, 99, false);
	begin(&f);
	finish(&f);
	check_u64(gpu_drm_count_slots(&f.d), 0);
	check_u64(f.g.n_processes, 0);
	teardown(&f);
}

static void two_devices(struct fixture *f)
{
	char text[512];

	setup(f);
	amd(&f->root, GPUROOT_NULL);
	gpuroot_device(&f->root, "drm/card1", GPUROOT_ZERO, "0000:04:00.0",
		       "xe");
	gpuroot_process(&f->root, 500, 10, false);
	gpuroot_fd(&f->root, 500, 3, "null",
		   client(text, "amdgpu", "0000:03:00.0", 1, 0, 100));
	gpuroot_process(&f->root, 600, 10, false);
	gpuroot_fd(&f->root, 600, 4, "zero",
		   client(text, "xe", "0000:04:00.0", 1, 0, 200));
	tick(f);
	check_u64(f->g.n_processes, 2);
}

/* A descriptor of the same number may be of another device. */
static void other_device(void)
{
	struct fixture f;
	char text[512];

	two_devices(&f);
	gpuroot_power(&f.root, "0000:03:00.0", "suspended");
	gpuroot_fd(&f.root, 500, 3, "zero",
		   client(text, "xe", "0000:04:00.0", 2, 0, 300));
	for (int i = 0; i < 7; i++)
		tick(&f);
	gpuroot_write(&f.root, "proc/500/fdinfo/3",
		      client(text, "xe", "0000:04:00.0", 2, 0, 400));
	tick(&f);
	/* It is read, though the other one sleeps. */
	check_u64(gpuroot_memory(&f.g, 500, "device"), 400 * 1024);
	check_u64(gpu_drm_count_slots(&f.d), 2);
	teardown(&f);
}

/* A device that goes while it is read is not mute when it comes again. */
static void unplugged_while_read(void)
{
	struct fixture f;

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_fd(&f.root, 500, 3, "null", "pos:\t0\n");
	hook_hang("/500/fdinfo/3");
	begin(&f);
	look_at_all(&f);
	gpu_drm_read(&f.d, &f.g);
	gpu_drm_finish(&f.d, &f.g, 10 * NSEC_PER_MSEC);
	gpuroot_unlink(&f.root, "sys/class/drm/card0/dev");
	f.root.now_s += 60;
	begin(&f);
	finish(&f);
	check(!gpu_drm_is_capable(&f.d));
	hook_hang("");
	check_int(write(hook.pipe[1], "x", 1), 1);
	while (atomic_load(&hook.n_hanging))
		pause_ms(1);
	begin(&f);
	finish(&f);
	amd(&f.root, GPUROOT_NULL);
	f.root.now_s += 60;
	begin(&f);
	check(gpu_drm_is_capable(&f.d));
	check_u64(f.d.device[0].n_silent, 0);
	finish(&f);
	teardown(&f);
}

/* A driver that does not answer costs its own device alone. */
static void stuck(void)
{
	struct fixture f;
	uint64_t start, reads;
	char text[512], what[64];

	two_devices(&f);
	hook_hang("/500/fdinfo/3");
	gpuroot_write(&f.root, "proc/600/fdinfo/4",
		      client(text, "xe", "0000:04:00.0", 1, 1000000000, 300));
	begin(&f);
	gpu_drm_read(&f.d, &f.g);
	start = now_ms();
	gpu_drm_finish(&f.d, &f.g, 100 * NSEC_PER_MSEC);
	check(now_ms() - start < 1000);
	check_int(gpu_end(&f.g), 0);
	check_u64(gpuroot_memory(&f.g, 600, "device"), 300 * 1024);
	check(gpuroot_use(&f.g, 600, "render") != NULL);
	check(gpuroot_use(&f.g, 500, "render") == NULL);

	/* After a second it is called stuck, by its name. */
	pause_ms(999);
	pause_ms(150);
	f.root.now_s += 10;
	start = now_ms();
	tick(&f);
	check(now_ms() - start < 1000);
	check_int(gpu_drm_state(&f.d, &f.g, what, sizeof(what)),
		  GPU_STATE_STUCK);
	check_text(what, "0000:03:00.0");
	check_u64(f.d.counts.n_stalls, 1);

	/* Nothing more is asked of it; the other one goes on. */
	reads = f.d.counts.n_reads;
	for (int i = 0; i < 5; i++)
		tick(&f);
	check_int(atomic_load(&hook.n_hanging), 1);
	check_u64(f.d.counts.n_reads, reads + 5);
	check_u64(gpuroot_memory(&f.g, 500, "device"), UINT64_MAX);
	check_u64(f.d.counts.n_stalls, 1);

	/* It comes back, with what it did meanwhile. */
	gpuroot_write(
	    &f.root, "proc/500/fdinfo/3",
	    client(text, "amdgpu", "0000:03:00.0", 1, 5000000000, 100));
	hook_hang("");
	check_int(write(hook.pipe[1], "x", 1), 1);
	while (atomic_load(&hook.n_hanging))
		pause_ms(1);
	tick(&f);
	tick(&f);
	check_int(gpu_drm_state(&f.d, &f.g, what, sizeof(what)), GPU_STATE_OK);
	check_u64(gpuroot_memory(&f.g, 500, "device"), 100 * 1024);
	teardown(&f);
}

/* Nobody waits for a driver at the end either. */
static void close_while_stuck(void)
{
	struct fixture f;
	uint64_t start;

	two_devices(&f);
	hook_hang("/500/fdinfo/3");
	begin(&f);
	gpu_drm_read(&f.d, &f.g);
	gpu_drm_finish(&f.d, &f.g, 10 * NSEC_PER_MSEC);
	check_int(gpu_end(&f.g), 0);
	check_int(atomic_load(&hook.n_hanging), 1);
	for (size_t i = 0; i < ARRAY_SIZE(f.mark); i++)
		gpu_drm_forget(&f.d, &f.mark[i]);
	start = now_ms();
	check(!gpu_drm_close(&f.d));
	check(now_ms() - start < 1000);
	/* What is left belongs to the thread that comes back one day. */
	check_int(write(hook.pipe[1], "x", 1), 1);
	while (atomic_load(&hook.n_hanging))
		pause_ms(1);
	pause_ms(20);
	close(hook.pipe[0]);
	close(hook.pipe[1]);
	gpu_done(&f.g);
	gpuroot_end(&f.root);
}

/* A process that ends while its file is being read. */
static void gone_while_read(void)
{
	struct fixture f;
	unsigned n_kept;

	two_devices(&f);
	n_kept = f.kept.n_kept;
	check_u64(n_kept, 2);
	hook_hang("/500/fdinfo/3");
	begin(&f);
	gpu_drm_read(&f.d, &f.g);
	gpu_drm_finish(&f.d, &f.g, 10 * NSEC_PER_MSEC);
	gpuroot_exit(&f.root, 500);
	f.root.now_s += 10;
	tick(&f);
	/* The worker has the descriptor still: its number is not reused. */
	check_u64(f.kept.n_kept, n_kept);
	check_u64(gpu_drm_count_slots(&f.d), 1);
	hook_hang("");
	check_int(write(hook.pipe[1], "x", 1), 1);
	while (atomic_load(&hook.n_hanging))
		pause_ms(1);
	tick(&f);
	tick(&f);
	check_u64(f.kept.n_kept, n_kept - 1);
	check(gpuroot_result(&f.g, 500) == NULL);
	teardown(&f);
}

/* What fills the buffer may have been cut off: it counts for nothing. */
static void too_long(void)
{
	struct fixture f;
	char *text = malloc(40000);

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 500, 10, false);
	client(text, "amdgpu", "0000:03:00.0", 42, 0, 2048);
	while (strlen(text) < 20000)
		strcat(text, "amd-something-long:\t1\n");
	gpuroot_fd(&f.root, 500, 3, "null", text);
	tick(&f);
	check_u64(f.g.n_processes, 0);
	check_u64(f.d.counts.n_failed, 1);
	check(gpu_drm_is_capable(&f.d));
	free(text);
	teardown(&f);
}

/* Devices come and go. */
static void hotplug(void)
{
	struct fixture f;
	char text[512];

	setup(&f);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_fd(&f.root, 500, 3, "null",
		   client(text, "amdgpu", "0000:03:00.0", 42, 0, 2048));
	tick(&f);
	check(!gpu_drm_is_capable(&f.d));
	amd(&f.root, GPUROOT_NULL);
	for (int i = 0; i < 6; i++)
		tick(&f);
	check(gpu_drm_is_capable(&f.d));
	check_u64(gpu_drm_count_slots(&f.d), 1);
	gpuroot_unlink(&f.root, "sys/class/drm/card0/dev");
	for (int i = 0; i < 6; i++)
		tick(&f);
	check(!gpu_drm_is_capable(&f.d));
	check_u64(gpu_drm_count_slots(&f.d), 0);
	check_u64(f.kept.n_kept, 0);
	check_u64(f.g.n_processes, 0);
	amd(&f.root, GPUROOT_NULL);
	for (int i = 0; i < 16; i++)
		tick(&f);
	check_u64(gpu_drm_count_slots(&f.d), 1);
	check_u64(gpuroot_memory(&f.g, 500, "device"), 2048 * 1024);
	teardown(&f);
}

/* What a process used before we saw it, and since. */
static void first_sight(void)
{
	struct fixture f;
	struct gpu_who who;
	char text[512];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	client(text, "amdgpu", "0000:03:00.0", 42, 2000000000, 1);
	for (pid_t pid = 500; pid < 504; pid++) {
		gpuroot_process(&f.root, pid, 10, false);
		gpuroot_dir(&f.root, "proc/500/fd");
	}
	gpuroot_dir(&f.root, "proc/502/fd");
	gpuroot_fd(&f.root, 500, 3, "null", text);
	client(text, "amdgpu", "0000:03:00.0", 43, 2000000000, 1);
	gpuroot_fd(&f.root, 501, 3, "null", text);
	begin(&f);
	/* One is older than we are, one was born four seconds ago. */
	who = who_of(&f, 0, 1, 0);
	check_int(gpu_drm_look(&f.d, &f.mark[0], &who, NULL, NULL), 0);
	who = who_of(&f, 1, 1, 996);
	check_int(gpu_drm_look(&f.d, &f.mark[1], &who, NULL, NULL), 0);
	who = who_of(&f, 2, 1, 0);
	check_int(gpu_drm_look(&f.d, &f.mark[2], &who, NULL, NULL), 0);
	finish(&f);
	const struct gpu_use *u = gpuroot_use(&f.g, 500, "render");

	check(u && u->grown_ns == 0 && !u->has_percent);
	u = gpuroot_use(&f.g, 501, "render");
	check(u && u->grown_ns == 2000000000 && u->percent == 50.0);
	/* One was looked at before, and had nothing then. */
	client(text, "amdgpu", "0000:03:00.0", 44, 3000000000, 1);
	gpuroot_fd(&f.root, 502, 3, "null", text);
	begin(&f);
	who = who_of(&f, 2, 2, 0);
	check_int(gpu_drm_look(&f.d, &f.mark[2], &who, NULL, NULL), 0);
	finish(&f);
	u = gpuroot_use(&f.g, 502, "render");
	check(u && u->grown_ns == 3000000000 && u->percent == 30.0);
	teardown(&f);
}

/* Many descriptors that are closed at once call for one look. */
static void closed_at_once(void)
{
	struct fixture f;
	struct gpu_turn turn;
	uint64_t looks;
	char text[512];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_process(&f.root, 500, 10, false);
	for (int fd = 3; fd < 20; fd++)
		gpuroot_fd(
		    &f.root, 500, fd, "null",
		    client(text, "amdgpu", "0000:03:00.0", (unsigned)fd, 1, 1));
	tick(&f);
	check_u64(gpu_drm_count_slots(&f.d), 17);
	for (int fd = 3; fd < 20; fd++) {
		char name[64];

		snprintf(name, sizeof(name), "proc/500/fd/%d", fd);
		gpuroot_unlink(&f.root, name);
	}
	hook_fail("*", ENOENT);
	begin(&f);
	finish(&f);
	hook_fail("", 0);
	check_u64(gpu_drm_count_slots(&f.d), 0);
	looks = f.d.counts.n_looks;
	begin(&f);
	while (gpu_drm_next(&f.d, &turn)) {
		struct gpu_who who = who_of(&f, 0, 3, 0);

		gpu_drm_look(&f.d, &f.mark[0], &who, &turn, NULL);
	}
	finish(&f);
	check_u64(f.d.counts.n_looks, looks + 1);
	teardown(&f);
}

struct guarded {
	struct fixture *f;
	size_t at; /* of the process that is looked at next */
	unsigned n_stuck;
};

static void look_guarded(void *arg, struct guard *guard)
{
	struct guarded *w = arg;

	while (w->at < w->f->root.n_processes) {
		size_t i = w->at++;
		struct gpu_who who = who_of(w->f, i, 1, 0);

		if (gpu_drm_ran(&w->f->d, &w->f->mark[i], &who))
			gpu_drm_look(&w->f->d, &w->f->mark[i], &who, NULL,
				     guard);
	}
}

static bool count_stuck(void *arg)
{
	struct guarded *w = arg;

	w->n_stuck++;
	return true;
}

/* A thread that hangs in a look is abandoned; it touches nothing more. */
static void hangs_in_look(void)
{
	struct runner runner;
	struct guarded w;
	struct fixture f;
	char text[512];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	for (pid_t pid = 500; pid < 503; pid++) {
		gpuroot_process(&f.root, pid, 10, false);
		gpuroot_fd(&f.root, pid, 3, "null",
			   client(text, "amdgpu", "0000:03:00.0", (unsigned)pid,
				  1, 1));
	}
	check_int(runner_open(&runner, "test"), 0);
	hook_hang("/proc/501/fd");
	begin(&f);
	w = (struct guarded){.f = &f};
	check_int(runner_run(&runner, look_guarded, count_stuck, &w,
			     20 * NSEC_PER_MSEC),
		  0);
	check_u64(w.n_stuck, 1);
	check_int(atomic_load(&hook.n_hanging), 1);
	check_u64(gpu_drm_count_slots(&f.d), 2);
	hook_hang("");
	check_int(write(hook.pipe[1], "x", 1), 1);
	while (atomic_load(&hook.n_hanging))
		pause_ms(1);
	pause_ms(5);
	check_u64(gpu_drm_count_slots(&f.d), 2);
	finish(&f);
	/* When it runs again it is looked at again. */
	begin(&f);
	w = (struct guarded){.f = &f};
	check_int(
	    runner_run(&runner, look_guarded, count_stuck, &w, NSEC_PER_SEC),
	    0);
	check_u64(w.n_stuck, 0);
	check_u64(gpu_drm_count_slots(&f.d), 3);
	finish(&f);
	check_u64(f.g.n_processes, 3);
	check(runner_close(&runner));
	teardown(&f);
}

static void no_allocation(void)
{
	struct fixture f;
	uint64_t before;
	char text[512];

	setup(&f);
	amd(&f.root, GPUROOT_NULL);
	gpuroot_device(&f.root, "drm/card1", GPUROOT_ZERO, "0000:04:00.0",
		       "xe");
	for (pid_t pid = 500; pid < 530; pid++) {
		gpuroot_process(&f.root, pid, (uint64_t)pid, false);
		gpuroot_fd(&f.root, pid, 3, "null",
			   client(text, "amdgpu", "0000:03:00.0",
				  (unsigned)pid / 2, 1, 1));
		gpuroot_fd(
		    &f.root, pid, 4, "zero",
		    client(text, "xe", "0000:04:00.0", (unsigned)pid, 1, 1));
	}
	for (int i = 0; i < 20; i++)
		tick(&f);
	before = alloccount_calls();
	for (int i = 0; i < 20; i++)
		tick(&f);
	if (!before)
		tap_skip("allocations are not counted");
	check_u64(alloccount_calls() - before, 0);
	check_u64(f.g.n_processes, 30);
	teardown(&f);
}

/* ---- the kernel's own tables ---- */

static void setup_real(struct fixture *f)
{
	int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	memset(f, 0, sizeof(*f));
	gpuroot_begin(&f->root);
	setup_at(f, proc_fd);
	amd(&f->root, GPUROOT_ZERO);
	begin(f);
}

static void teardown_real(struct fixture *f)
{
	close(f->d.opt.proc_fd);
	teardown(f);
}

/* Looks at a process of the real kernel. */
static int look(struct fixture *f, pid_t pid, uint32_t n_fds,
		uint32_t n_threads)
{
	struct gpu_who who = {
	    .holder = {.pid = pid, .start = 1},
	    .n_fds = n_fds,
	    .n_threads = n_threads,
	};

	return gpu_drm_look(&f->d, &f->mark[0], &who, NULL, NULL);
}

static int open_zero(void)
{
	return open("/dev/zero", O_RDWR | O_CLOEXEC);
}

static void real_dup(void)
{
	int fd, copy, other = open("/dev/null", O_RDWR | O_CLOEXEC);
	int memory = memfd_create("x", MFD_CLOEXEC);
	struct fixture f;

	setup_real(&f);
	fd = open_zero();
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 900);
	check_int(look(&f, getpid(), 1, 1), 0);
	check_u64(gpu_drm_count_slots(&f.d), 2);
	close(copy);
	check_int(look(&f, getpid(), 2, 1), 0);
	check_u64(gpu_drm_count_slots(&f.d), 1);
	/* The number is reused for something else. */
	check_int(dup3(other, fd, O_CLOEXEC), fd);
	check_int(look(&f, getpid(), 3, 1), 0);
	check_u64(gpu_drm_count_slots(&f.d), 0);
	close(fd);
	close(other);
	close(memory);
	teardown_real(&f);
}

static void real_fork(void)
{
	struct fixture f;
	int fd, status;
	pid_t pid;

	setup_real(&f);
	fd = open_zero();
	pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	check_int(look(&f, getpid(), 1, 1), 0);
	check_u64(gpu_drm_count_slots(&f.d), 1);
	check_int(look(&f, pid, 1, 1), 0);
	check_u64(gpu_drm_count_slots(&f.d), 2);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	check_int(look(&f, pid, 1, 1), PROC_GONE);
	close(fd);
	teardown_real(&f);
}

/* A table that is larger than what one tick may look at. */
static void real_cut(void)
{
	int fd[40];
	struct gpu_turn turn;
	struct fixture f;
	unsigned ticks = 0;

	setup_real(&f);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = open_zero();
	f.d.budget = 7;
	check_int(look(&f, getpid(), 1, 1), 0);
	check(gpu_drm_count_slots(&f.d) < ARRAY_SIZE(fd));
	check_u64(f.mark[0].looked_tick, 0); /* it is not done */
	check_u64(f.d.n_turns, 1);
	while (f.d.n_turns && ticks++ < 50) {
		begin(&f);
		f.d.budget = 7;
		while (gpu_drm_next(&f.d, &turn)) {
			struct gpu_who who = {
			    .holder = {.pid = turn.pid, .start = turn.start},
			    .n_fds = 1,
			};

			check_int(
			    gpu_drm_look(&f.d, &f.mark[0], &who, &turn, NULL),
			    0);
		}
	}
	check_u64(gpu_drm_count_slots(&f.d), ARRAY_SIZE(fd));
	check(f.mark[0].looked_tick != 0);
	check(ticks >= ARRAY_SIZE(fd) / 7);
	/* What is closed in one part is noticed, and no more than that. */
	for (size_t i = 0; i < 10; i++)
		close(fd[i]);
	f.d.budget = 100000;
	check_int(look(&f, getpid(), 2, 1), 0);
	check_u64(gpu_drm_count_slots(&f.d), ARRAY_SIZE(fd) - 10);
	for (size_t i = 10; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	teardown_real(&f);
}

/* Threads that open a device, with a table of their own or without. */
struct threads {
	pthread_barrier_t ready, done;
	atomic_int n_fds;
};

static void *share(void *arg)
{
	struct threads *t = arg;
	int fd = open_zero();

	pthread_barrier_wait(&t->ready);
	pthread_barrier_wait(&t->done);
	close(fd);
	return NULL;
}

static void *stay(void *arg)
{
	struct threads *t = arg;

	pthread_barrier_wait(&t->ready);
	pthread_barrier_wait(&t->done);
	return NULL;
}

/* With a child that shares the table of its own. */
static void *unshare_files(void *arg)
{
	struct threads *t = arg;
	pthread_t child;
	int fd;

	check_int(unshare(CLONE_FILES), 0);
	fd = open_zero();
	pthread_create(&child, NULL, stay, t);
	pthread_barrier_wait(&t->ready);
	pthread_barrier_wait(&t->done);
	pthread_join(child, NULL);
	close(fd);
	return NULL;
}

static bool has_kcmp(void)
{
	return syscall(SYS_kcmp, getpid(), getpid(), 2L, 0L, 0L) == 0;
}

static void real_threads(void)
{
	pthread_t thread[4], late;
	struct threads t, t2;
	struct fixture f;
	uint64_t looks, asked;
	struct gpu_who who;

	if (!has_kcmp()) {
		tap_skip("no kcmp(2)");
		return;
	}
	setup_real(&f);
	pthread_barrier_init(&t.ready, NULL, 6);
	pthread_barrier_init(&t.done, NULL, 6);
	for (size_t i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, share, &t);
	pthread_create(&thread[3], NULL, unshare_files, &t);
	pthread_barrier_wait(&t.ready);

	/* Three in the common table, and its copies or not in the other. */
	check_int(look(&f, getpid(), 1, 6), 0);
	check_u64(f.d.counts.n_looks, 2); /* two tables, six threads */
	asked = f.d.counts.n_asked;
	check(asked >= 6);
	check(gpu_drm_count_slots(&f.d) >= 4);
	check(gpu_drm_count_slots(&f.d) <= 7);

	/* Nobody is asked again while there is nobody new. */
	looks = f.d.counts.n_looks;
	check_int(look(&f, getpid(), 2, 6), 0);
	check_u64(f.d.counts.n_asked, asked);
	check_u64(f.d.counts.n_looks, looks + 2);

	/* How many the other table has is not known: it is always looked at. */
	who = (struct gpu_who){
	    .holder = {.pid = getpid(), .start = 1},
	    .n_fds = 2,
	    .n_threads = 6,
	};
	begin(&f);
	check(gpu_drm_ran(&f.d, &f.mark[0], &who));

	/* Of a new one it is asked, and of no other. */
	pthread_barrier_init(&t2.ready, NULL, 2);
	pthread_barrier_init(&t2.done, NULL, 2);
	pthread_create(&late, NULL, share, &t2);
	pthread_barrier_wait(&t2.ready);
	check_int(look(&f, getpid(), 3, 7), 0);
	check_u64(f.d.counts.n_asked, asked + 1);
	pthread_barrier_wait(&t2.done);
	pthread_join(late, NULL);
	pthread_barrier_wait(&t.done);
	for (size_t i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	check_int(look(&f, getpid(), 4, 1), 0);
	check_u64(gpu_drm_count_slots(&f.d), 0);
	teardown_real(&f);
}

/* A thread may leave the common table after it was asked. */
static void *unshare_later(void *arg)
{
	struct threads *t = arg;
	int fd;

	pthread_barrier_wait(&t->ready);
	pthread_barrier_wait(&t->done);
	check_int(unshare(CLONE_FILES), 0);
	fd = open_zero();
	pthread_barrier_wait(&t->ready);
	pthread_barrier_wait(&t->done);
	close(fd);
	return NULL;
}

static void real_thread_leaves(void)
{
	struct threads t;
	struct fixture f;
	pthread_t thread;
	uint64_t asked;

	if (!has_kcmp()) {
		tap_skip("no kcmp(2)");
		return;
	}
	setup_real(&f);
	pthread_barrier_init(&t.ready, NULL, 2);
	pthread_barrier_init(&t.done, NULL, 2);
	pthread_create(&thread, NULL, unshare_later, &t);
	pthread_barrier_wait(&t.ready);
	check_int(look(&f, getpid(), 1, 2), 0);
	check_u64(gpu_drm_count_slots(&f.d), 0);
	pthread_barrier_wait(&t.done);
	pthread_barrier_wait(&t.ready);
	/* Nothing changed that can be seen; its turn comes. */
	asked = f.d.counts.n_asked;
	check_int(look(&f, getpid(), 1, 2), 0);
	check(f.d.counts.n_asked > asked);
	check_u64(gpu_drm_count_slots(&f.d), 1);
	/* That is asked once for each thread, not for ever. */
	asked = f.d.counts.n_asked;
	check_int(look(&f, getpid(), 1, 2), 0);
	check_u64(f.d.counts.n_asked, asked);
	pthread_barrier_wait(&t.done);
	pthread_join(thread, NULL);
	teardown_real(&f);
}

/* All that a thread of its own holds is its process's. */
static void real_thread_owner(void)
{
	struct threads t;
	struct fixture f;
	pthread_t thread;

	if (!has_kcmp()) {
		tap_skip("no kcmp(2)");
		return;
	}
	setup_real(&f);
	pthread_barrier_init(&t.ready, NULL, 3);
	pthread_barrier_init(&t.done, NULL, 3);
	pthread_create(&thread, NULL, unshare_files, &t);
	pthread_barrier_wait(&t.ready);
	/* Only the number of threads is another one: no table is looked at. */
	f.mark[0] = (struct gpu_mark){
	    .looked_tick = 1, .looked_s = 1, .n_fds = 7, .n_threads = 1};
	struct gpu_who who = {
	    .holder = {.pid = getpid(), .start = 1},
	    .n_fds = 7,
	    .n_threads = 2,
	};
	f.d.tick = 5;
	check(gpu_drm_ran(&f.d, &f.mark[0], &who));
	check_int(gpu_drm_look(&f.d, &f.mark[0], &who, NULL, NULL), 0);
	check_u64(f.d.counts.n_looks, 1); /* but for the thread's own */
	check_u64(gpu_drm_count_slots(&f.d), 1);
	check_u64(f.mark[0].n_threads, 2);
	pthread_barrier_wait(&t.done);
	pthread_join(thread, NULL);
	teardown_real(&f);
}

/* Without kcmp(2) all threads count as sharing. */
static void real_threads_unknown(void)
{
	struct threads t;
	struct fixture f;
	pthread_t thread;

	setup_real(&f);
	f.d.no_kcmp = true;
	pthread_barrier_init(&t.ready, NULL, 3);
	pthread_barrier_init(&t.done, NULL, 3);
	pthread_create(&thread, NULL, unshare_files, &t);
	pthread_barrier_wait(&t.ready);
	check_int(look(&f, getpid(), 1, 2), 0);
	check_u64(f.d.counts.n_looks, 1);
	check_u64(gpu_drm_count_slots(&f.d), 0);
	pthread_barrier_wait(&t.done);
	pthread_join(thread, NULL);
	teardown_real(&f);
}

/* Who may not look says so. */
static void real_denied(void)
{
	struct fixture f;
	char what[64];
	int status;
	pid_t pid;

	setup_real(&f);
	pid = fork();
	if (pid == 0) {
		/* A child of nobody looks at us. */
		if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(9);
		pid_t target = getuid() == 65534 ? getppid() : 1;

		if (look(&f, target, 1, 1) != PROC_DENIED)
			_exit(1);
		if (f.d.n_denied != 1)
			_exit(2);
		if (gpu_drm_state(&f.d, &f.g, what, sizeof(what)) !=
		    GPU_STATE_DENIED)
			_exit(3);
		/* What is new there later can be of any age. */
		if (f.mark[0].looked_s)
			_exit(4);
		gpu_drm_forget(&f.d, &f.mark[0]);
		_exit(f.d.n_denied == 0 ? 0 : 5);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 9)
		tap_skip("cannot be somebody else");
	else
		check_int(status, 0);
	teardown_real(&f);
}

/* What stands for a device tells nothing: it is found out. */
static void real_mute(void)
{
	struct fixture f;
	int fd = open_zero();

	setup_real(&f);
	gpuroot_process(&f.root, getpid(), 1, false);
	check_int(look(&f, getpid(), 1, 1), 0);
	check_u64(gpu_drm_count_slots(&f.d), 1);
	finish(&f);
	for (int i = 0; i < 8 * GPU_DRM_SILENT_MAX; i++) {
		begin(&f);
		finish(&f);
	}
	check(!gpu_drm_is_capable(&f.d));
	check_u64(gpu_drm_count_slots(&f.d), 0);
	close(fd);
	teardown_real(&f);
}

int main(void)
{
	TEST("devices are known by their numbers, drivers and addresses",
	     table);
	TEST("without a driver that can answer no call is made", no_driver);
	TEST("descriptors are found by the device they are open on", finds);
	TEST("a device of a platform goes by its name", platform);
	TEST("a client is read once, and its duplicates now and then",
	     reads_owner);
	TEST("clients that are shared go from owner to owner", shared_clients);
	TEST("a process whose descriptors do not change is looked at seldom",
	     turns);
	TEST("a look makes up for one that waits", turns_overtaken);
	TEST("one whose number of descriptors changes is looked at in vain "
	     "less and less often",
	     turns_of_changing);
	TEST("looks that nothing calls for are spread", turns_spread);
	TEST("a tick looks at so much, and the next ones at the rest", budget);
	TEST("without room to keep descriptors it works the same", no_room);
	TEST("without pread(2) on kept files it works the same", no_seek);
	TEST("a driver that tells nothing is left alone", mute);
	TEST("one that told once is asked again", unplugged);
	TEST("a number of a descriptor may be reused for another client",
	     reused_number);
	TEST("a number of a process may be reused, too", reused_pid);
	TEST("a number of a descriptor may be reused for another device",
	     other_device);
	TEST("a device may go while it is read", unplugged_while_read);
	TEST("a suspended device is not woken", asleep);
	TEST("a device that hangs is left alone while others go on", stuck);
	TEST("closing does not wait for a driver", close_while_stuck);
	TEST("a process may end while its file is read", gone_while_read);
	TEST("a text that may have been cut off counts for nothing", too_long);
	TEST("devices come and go", hotplug);
	TEST("what was used before we looked counts if it was born since",
	     first_sight);
	TEST("many descriptors that are closed at once call for one look",
	     closed_at_once);
	TEST("a look that hangs is given up", hangs_in_look);
	TEST("a steady tick allocates nothing", no_allocation);
	TEST("duplicated descriptors of the real kernel are found", real_dup);
	TEST("descriptors that a child inherited are found", real_fork);
	TEST("a large table is looked at in parts", real_cut);
	TEST("a thread with a table of its own is looked at, others are not",
	     real_threads);
	TEST("a thread that leaves the common table late is noticed",
	     real_thread_leaves);
	TEST("what such a thread holds is its process's", real_thread_owner);
	TEST("without kcmp(2) all threads count as sharing",
	     real_threads_unknown);
	TEST("who may not look says so", real_denied);
	TEST("a character device that is no GPU is found out", real_mute);
	return tap_done();
}
