/* SPDX-License-Identifier: MIT */
/* All backends together, as the monitor calls them. */
#include "tap.h"

#include "fakenvml.h"
#include "gpu-host.h"
#include "gpuroot.h"

#include <dlfcn.h>

#define WAIT_NS (2 * NSEC_PER_SEC)

enum {
	FAKES_MAX = 128,
};

static struct fake_nvml *fakes[FAKES_MAX];
static size_t n_fakes;

struct fixture {
	struct gpuroot root;
	struct gpu_host h;
	struct keptfd kept;
	struct fake_nvml *fake;
	struct gpu_mark mark[GPUROOT_PROCESSES_MAX];
	char library[512];
};

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

static void setup(struct fixture *f)
{
	const char *builddir = getenv("top_builddir");
	struct gpu_host_options o;
	void *handle;

	memset(f, 0, sizeof(*f));
	snprintf(f->library, sizeof(f->library), "%s/tests/.libs/fakenvml2.so",
		 builddir ? builddir : ".");
	handle = dlopen(f->library, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		printf("Bail out! %s\n", dlerror());
		exit(1);
	}
	f->fake = new_fake(handle);
	gpuroot_begin(&f->root);
	keptfd_init(&f->kept, false, 64);
	keptfd_provide(&f->kept, 16);
	o = (struct gpu_host_options){
	    .proc_fd = f->root.proc_fd,
	    .sys_fd = f->root.sys_fd,
	    .kept = &f->kept,
	    .nvml = f->library,
	    .find = gpuroot_find,
	    .find_arg = &f->root,
	};
	check_int(gpu_host_open(&f->h, &o), 0);
}

static void teardown(struct fixture *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(f->mark); i++)
		gpu_drm_forget(&f->h.drm, &f->mark[i]);
	check(gpu_host_close(&f->h));
	gpuroot_end(&f->root);
}

/* As the monitor does it: those that ran, those whose turn it is, the rest. */
static void tick(struct fixture *f)
{
	struct moment now = gpuroot_now(&f->root);
	struct gpu_host *h = &f->h;
	struct gpu_turn turn;

	gpu_host_begin(h, &now);
	for (size_t i = 0; i < f->root.n_processes; i++) {
		struct gpu_who who = {
		    .holder = f->root.process[i],
		    .n_fds = 3,
		    .n_threads = 1,
		};

		if (gpu_drm_ran(&h->drm, &f->mark[i], &who))
			gpu_drm_look(&h->drm, &f->mark[i], &who, NULL, NULL);
	}
	while (gpu_drm_next(&h->drm, &turn))
		for (size_t i = 0; i < f->root.n_processes; i++) {
			struct gpu_who who = {
			    .holder = f->root.process[i],
			    .n_fds = 3,
			    .n_threads = 1,
			};

			if (turn.pid == who.holder.pid &&
			    turn.start == who.holder.start)
				gpu_drm_look(&h->drm, &f->mark[i], &who, &turn,
					     NULL);
		}
	gpu_host_read(h);
	check_int(gpu_host_finish(h, WAIT_NS), 0);
	f->root.now_s += 10;
}

static enum gpu_state state_of(const struct fixture *f, const char *backend)
{
	struct gpu_health health;

	for (size_t i = 0; gpu_host_health(&f->h, i, &health); i++)
		if (strcmp(health.backend, backend) == 0)
			return health.state;
	return GPU_N_STATES;
}

static void nothing(void)
{
	struct fixture f;

	setup(&f);
	gpuroot_process(&f.root, 500, 10, false);
	tick(&f);
	check_int(state_of(&f, "drm"), GPU_STATE_MISSING);
	check_int(state_of(&f, "nvml"), GPU_STATE_MISSING);
	check_int(state_of(&f, "kfd"), GPU_STATE_MISSING);
	check_u64(f.h.use.n_processes, 0);
	check_u64(f.h.drm.counts.n_calls, 0);
	teardown(&f);
}

/* A process that computes on an AMD and an NVIDIA GPU. */
static void together(void)
{
	const struct gpu_process *p;
	const struct gpu_use *u;
	struct fixture f;

	setup(&f);
	gpuroot_device(&f.root, "drm/card0", GPUROOT_NULL, "0000:03:00.0",
		       "amdgpu");
	gpuroot_write(&f.root, "sys/class/kfd/kfd/topology/nodes/1/gpu_id",
		      "51234\n");
	gpuroot_write(&f.root, "sys/class/kfd/kfd/topology/nodes/1/properties",
		      "location_id 768\ndomain 0\n");
	gpuroot_dir(&f.root, "sys/bus/pci/devices/0000:03:00.0");
	gpuroot_write(&f.root, "sys/bus/pci/devices/0000:0b:00.0/vendor", "");
	gpuroot_link(&f.root, "sys/bus/pci/drivers/nvidia/0000:0b:00.0",
		     "../../devices/0000:0b:00.0");
	gpuroot_write(&f.root, "proc/driver/nvidia/version", "595\n");
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_fd(&f.root, 500, 3, "null",
		   "drm-driver:\tamdgpu\ndrm-client-id:\t7\n"
		   "drm-pdev:\t0000:03:00.0\ndrm-engine-gfx:\t5 ns\n"
		   "drm-resident-vram:\t1000\n");
	gpuroot_write(&f.root, "sys/class/kfd/kfd/proc/500/vram_51234",
		      "900\n");
	gpuroot_write(&f.root,
		      "sys/class/kfd/kfd/proc/500/stats_51234/evicted_ms",
		      "1\n");
	gpuroot_write(&f.root, "sys/class/kfd/kfd/proc/500/queues/0/gpuid",
		      "51234\n");
	f.fake->n_devices = 1;
	strcpy(f.fake->device[0].bus_id, "0000:0b:00.0");
	f.fake->device[0].utilization_result = 6;
	f.fake->device[0].list[0].n = 1;
	f.fake->device[0].list[0].process[0] =
	    (struct fake_process){500, 4096, UINT32_MAX};
	for (int i = 0; i < 4; i++)
		tick(&f);
	check_int(state_of(&f, "drm"), GPU_STATE_OK);
	check_int(state_of(&f, "nvml"), GPU_STATE_OK);
	check_int(state_of(&f, "kfd"), GPU_STATE_OK);
	check_u64(f.h.use.n_processes, 1);
	p = gpuroot_result(&f.h.use, 500);
	if (p) {
		check_u64(p->n_clients, 2); /* KFD's is the other one's */
		check(p->has_unseen);
		check_u64(p->n_memories, 2);
		check_u64(p->memory[0].resident + p->memory[1].resident,
			  1000 + 4096);
	}
	u = gpuroot_use(&f.h.use, 500, "sm");
	check(u && u->has_percent && u->percent == 0);
	u = gpuroot_use(&f.h.use, 500, "render");
	check(u && u->has_percent && u->percent == 0);
	check(gpuroot_use(&f.h.use, 500, "evicted") != NULL);
	teardown(&f);
}

int main(void)
{
	TEST("a host without a GPU has nothing to tell", nothing);
	TEST("what three backends tell of one process adds up once", together);
	return tap_done();
}
