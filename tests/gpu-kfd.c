/* SPDX-License-Identifier: MIT */
/* The KFD backend below a fake /sys. */
#include "tap.h"

#include "gpu-kfd.h"
#include "gpuroot.h"

#define KFD "sys/class/kfd/kfd/"

struct fixture {
	struct gpuroot root;
	struct gpu g;
	struct gpu_kfd k;
};

static void node(struct fixture *f, const char *name, const char *gpu_id,
		 const char *properties)
{
	char path[128];

	snprintf(path, sizeof(path), KFD "topology/nodes/%s/gpu_id", name);
	gpuroot_write(&f->root, path, gpu_id);
	if (!properties)
		return;
	snprintf(path, sizeof(path), KFD "topology/nodes/%s/properties", name);
	gpuroot_write(&f->root, path, properties);
}

static void put(struct fixture *f, pid_t pid, const char *file,
		const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), KFD "proc/%d/%s", (int)pid, file);
	gpuroot_write(&f->root, path, text);
}

static void setup(struct fixture *f, bool first_pids)
{
	struct gpu_kfd_options o;

	memset(f, 0, sizeof(*f));
	gpuroot_begin(&f->root);
	gpu_init(&f->g);
	o = (struct gpu_kfd_options){
	    .sys_fd = f->root.sys_fd,
	    .first_pids = first_pids,
	    .find = gpuroot_find,
	    .find_arg = &f->root,
	};
	gpu_kfd_open(&f->k, &o);
}

/* A processor and two GPUs. */
static void setup_nodes(struct fixture *f)
{
	setup(f, true);
	node(f, "0", "0\n", "cpu_cores_count 16\nlocation_id 0\ndomain 0\n");
	node(f, "1", "51234\n",
	     "simd_count 256\nlocation_id 768\ndomain 0\n"
	     "drm_render_minor 128\n");
	node(f, "2", "7\n", "location_idx 5\nlocation_id 2816\ndomain 1\n");
	gpuroot_dir(&f->root, "sys/bus/pci/devices/0000:03:00.0");
	gpuroot_dir(&f->root, "sys/bus/pci/devices/0001:0b:00.0");
	gpuroot_dir(&f->root, KFD "proc");
}

static void teardown(struct fixture *f)
{
	gpu_kfd_close(&f->k);
	gpu_done(&f->g);
	gpuroot_end(&f->root);
}

static void tick(struct fixture *f)
{
	struct moment now = gpuroot_now(&f->root);

	gpu_begin(&f->g);
	gpu_kfd_begin(&f->k, &now);
	gpu_kfd_finish(&f->k, &f->g);
	check_int(gpu_end(&f->g), 0);
	f->root.now_s += 10;
}

/* UINT64_MAX: there is none. */
static uint64_t memory_of(const struct fixture *f, pid_t pid,
			  const char *device)
{
	const struct gpu_process *p = gpuroot_result(&f->g, pid);

	for (size_t i = 0; p && i < p->n_memories; i++) {
		const struct gpu_series *s = &f->g.series[p->memory[i].series];

		if (strcmp(s->device, device) == 0 &&
		    strcmp(s->name, "device") == 0)
			return p->memory[i].resident;
	}
	return UINT64_MAX;
}

static void missing(void)
{
	struct fixture f;

	setup(&f, true);
	tick(&f);
	check_int(gpu_kfd_state(&f.k), GPU_STATE_MISSING);
	check_u64(f.g.n_processes, 0);
	/* It is looked for now and then. */
	node(&f, "1", "51234\n", "location_id 768\ndomain 0\n");
	gpuroot_process(&f.root, 500, 10, false);
	put(&f, 500, "vram_51234", "4096\n");
	tick(&f);
	check_u64(f.g.n_processes, 0);
	for (int i = 0; i < 6; i++)
		tick(&f);
	check_int(gpu_kfd_state(&f.k), GPU_STATE_OK);
	check_u64(gpuroot_memory(&f.g, 500, "device"), 4096);
	teardown(&f);
}

static void memory(void)
{
	struct fixture f;

	setup_nodes(&f);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_process(&f.root, 501, 10, false);
	put(&f, 500, "vram_51234", "1073741824\n");
	put(&f, 500, "vram_7", "4096\n");
	put(&f, 500, "pasid", "0\n");
	put(&f, 500, "sdma_51234", "99\n");
	put(&f, 500, "counters_51234/faults", "7\n");
	put(&f, 500, "something_new_51234", "7\n");
	put(&f, 501, "vram_51234", "5\n");
	put(&f, 501, "vram_99", "5\n"); /* of no GPU that is known */
	put(&f, 501, "vram_x", "5\n");
	put(&f, 501, "vram_", "5\n");
	gpuroot_dir(&f.root, KFD "proc/not-a-number");
	gpuroot_dir(&f.root, KFD "proc/99999999999999");
	tick(&f);
	check_int(gpu_kfd_state(&f.k), GPU_STATE_OK);
	check_u64(f.g.n_processes, 2);
	check_u64(f.k.n_processes, 2);
	check_u64(gpuroot_result(&f.g, 500)->n_memories, 2);
	check_u64(memory_of(&f, 500, "0000:03:00.0"), 1073741824);
	check_u64(memory_of(&f, 500, "0001:0b:00.0"), 4096);
	check_u64(f.g.n_series, 2);
	check_u64(gpuroot_memory(&f.g, 501, "device"), 5);
	teardown(&f);
}

/* Who closed it stays listed, with nothing. */
static void without_use(void)
{
	struct fixture f;

	setup_nodes(&f);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_process(&f.root, 501, 10, false);
	put(&f, 500, "vram_51234", "0\n");
	put(&f, 501, "vram_51234", "0\n");
	put(&f, 501, "vram_7", "0\n");
	put(&f, 501, "queues/3/gpuid", "7\n");
	put(&f, 501, "queues/3/size", "65536\n");
	put(&f, 502, "vram_51234", "5\n"); /* there is no such process */
	tick(&f);
	check_u64(f.g.n_processes, 1);
	check(gpuroot_result(&f.g, 500) == NULL);
	check_u64(gpuroot_memory(&f.g, 501, "device"), 0);
	check_u64(f.g.n_series, 1);
	check_text(f.g.series[0].device, "0001:0b:00.0");
	teardown(&f);
}

/* How busy it is nobody tells; that is said, and no 0. */
static void busy(void)
{
	struct fixture f;

	setup_nodes(&f);
	gpuroot_process(&f.root, 500, 10, false);
	gpuroot_process(&f.root, 501, 10, false);
	put(&f, 500, "vram_51234", "5\n");
	put(&f, 500, "queues/0/gpuid", "51234\n");
	put(&f, 501, "vram_51234", "5\n");
	tick(&f);
	check(gpuroot_result(&f.g, 500)->has_unseen);
	check(!gpuroot_result(&f.g, 501)->has_unseen);
	check_u64(gpuroot_result(&f.g, 500)->n_uses, 0);
	teardown(&f);
}

static void evicted(void)
{
	const struct gpu_use *u;
	struct fixture f;

	setup_nodes(&f);
	gpuroot_process(&f.root, 500, 10, false);
	put(&f, 500, "vram_51234", "5\n");
	put(&f, 500, "stats_51234/evicted_ms", "1000\n");
	put(&f, 500, "stats_51234/cu_occupancy", "12\n");
	tick(&f);
	u = gpuroot_use(&f.g, 500, "evicted");
	check(u && u->grown_ns == 0);
	check_int(f.g.series[u->series].kind, GPU_KIND_EVICTED);
	put(&f, 500, "stats_51234/evicted_ms", "1250\n");
	tick(&f);
	u = gpuroot_use(&f.g, 500, "evicted");
	check(u && u->grown_ns == 250000000);

	/* The number of a process is given to another one. */
	gpuroot_exit(&f.root, 500);
	gpuroot_process(&f.root, 500, 99, false);
	put(&f, 500, "stats_51234/evicted_ms", "9000\n");
	tick(&f);
	u = gpuroot_use(&f.g, 500, "evicted");
	check(u && u->grown_ns == 0);
	teardown(&f);
}

/* Further contexts are directories of their own (Linux 7.1). */
static void contexts(void)
{
	const struct gpu_use *u;
	struct fixture f;

	setup_nodes(&f);
	gpuroot_process(&f.root, 500, 10, false);
	put(&f, 500, "vram_51234", "1000\n");
	put(&f, 500, "stats_51234/evicted_ms", "10\n");
	put(&f, 500, "context_1/vram_51234", "200\n");
	put(&f, 500, "context_1/stats_51234/evicted_ms", "5\n");
	put(&f, 500, "context_2/vram_51234", "30\n");
	put(&f, 500, "context_2/queues/0/gpuid", "51234\n");
	tick(&f);
	check_u64(gpuroot_memory(&f.g, 500, "device"), 1230);
	check(gpuroot_result(&f.g, 500)->has_unseen);
	put(&f, 500, "context_1/stats_51234/evicted_ms", "8\n");
	tick(&f);
	u = gpuroot_use(&f.g, 500, "evicted");
	check(u && u->grown_ns == 3000000);
	teardown(&f);
}

/* A partition's number stands where its function would. */
static void partitions(void)
{
	struct fixture f;

	setup(&f, true);
	node(&f, "1", "10\n", "location_id 768\ndomain 0\n");
	node(&f, "2", "11\n", "location_id 769\ndomain 0\n");
	node(&f, "3", "12\n", "location_id 1025\ndomain 0\n");
	gpuroot_dir(&f.root, "sys/bus/pci/devices/0000:03:00.0");
	gpuroot_dir(&f.root, "sys/bus/pci/devices/0000:04:00.1");
	gpuroot_process(&f.root, 500, 10, false);
	put(&f, 500, "vram_10", "1\n");
	put(&f, 500, "vram_11", "2\n");
	put(&f, 500, "vram_12", "4\n");
	tick(&f);
	check_u64(f.g.n_series, 2);
	check_u64(memory_of(&f, 500, "0000:03:00.0"), 3);
	check_u64(memory_of(&f, 500, "0000:04:00.1"), 4);
	teardown(&f);
}

/* The control group of the unit may hide which GPU is which. */
static void denied(void)
{
	struct fixture f;

	setup(&f, true);
	node(&f, "1", "10\n", NULL);
	gpuroot_process(&f.root, 500, 10, false);
	put(&f, 500, "vram_10", "1\n");
	tick(&f);
	check_int(gpu_kfd_state(&f.k), GPU_STATE_DENIED);
	check_u64(f.g.n_processes, 0);
	check_u64(f.k.n_processes, 0);
	check_u64(f.g.counts.n_refused, 0);
	teardown(&f);
}

/* In another namespace the numbers are somebody else's. */
static void namespace(void)
{
	struct fixture f;

	setup(&f, false);
	node(&f, "1", "10\n", "location_id 768\ndomain 0\n");
	gpuroot_process(&f.root, 500, 10, false);
	put(&f, 500, "vram_10", "1\n");
	tick(&f);
	check_int(gpu_kfd_state(&f.k), GPU_STATE_MISSING);
	check_u64(f.g.n_processes, 0);
	teardown(&f);
}

int main(void)
{
	TEST("without KFD there is nothing, until there is one", missing);
	TEST("memory is told by process and GPU", memory);
	TEST("who has neither memory nor queues is not told of", without_use);
	TEST("that its being busy cannot be measured is told", busy);
	TEST("the time that memory was elsewhere is counted", evicted);
	TEST("further contexts of a process are added", contexts);
	TEST("partitions belong to their GPU", partitions);
	TEST("which GPU it is may be hidden", denied);
	TEST("PIDs of another namespace are not believed", namespace);
	return tap_done();
}
