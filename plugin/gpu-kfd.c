/* SPDX-License-Identifier: MIT */
#include "gpu-kfd.h"
#include "gpu-sys.h"
#include "keptfd.h"
#include "proctext.h"

#include <fcntl.h>
#include <stdio.h>

#define NODES "class/kfd/kfd/topology/nodes"

enum {
	PATH_SIZE = 320,
};

/* What one process has on one GPU. */
struct use {
	bool is_there, has_evicted, has_queue;
	uint64_t vram, evicted_ms;
};

/* One process that is being read. */
struct visit {
	const struct gpu_kfd *k;
	struct use use[GPU_KFD_NODES_MAX];
};

void gpu_kfd_open(struct gpu_kfd *k, const struct gpu_kfd_options *o)
{
	*k = (struct gpu_kfd){.opt = *o, .proc_fd = -1};
}

void gpu_kfd_close(struct gpu_kfd *k)
{
	base_closep(&k->proc_fd);
	*k = (struct gpu_kfd){.proc_fd = -1};
}

static bool parse_number(const char *s, uint64_t *ret)
{
	const char *at = s, *end = s + strlen(s);

	return proctext_number(&at, end, ret) && at == end;
}

/* "properties" has lines of a name and a number. */
static bool find_property(const char *text, const char *name, uint64_t *ret)
{
	size_t n = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *at;

		line += *line == '\n';
		at = line + n + 1;
		if (strncmp(line, name, n) == 0 && line[n] == ' ')
			return proctext_number(&at, text + strlen(text), ret);
	}
	return false;
}

static bool is_pci_device(int sys_fd, const char *name)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "bus/pci/devices/%s", name);
	return faccessat(sys_fd, path, F_OK, 0) == 0;
}

/*
 * location_id is bus and function; of a partition the function's place holds
 * the partition's number (kfd_topology.c, Linux 6.18).
 */
static void name_node(const struct gpu_kfd *k, const char *dir,
		      struct gpu_kfd_node *node)
{
	char path[PATH_SIZE], text[8192];
	uint64_t domain = 0, location;
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), NODES "/%s/properties", dir);
	fd = openat(k->opt.sys_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	text[n] = '\0';
	if (!find_property(text, "location_id", &location))
		return;
	find_property(text, "domain", &domain);
	for (unsigned mask = 7;; mask = 0) {
		snprintf(node->name, sizeof(node->name), "%04x:%02x:%02x.%x",
			 (unsigned)domain, (unsigned)(location >> 8) & 0xff,
			 (unsigned)(location >> 3) & 0x1f,
			 (unsigned)location & mask);
		if (mask == 0 || is_pci_device(k->opt.sys_fd, node->name))
			return;
	}
}

static void take_node(void *arg, int dir_fd, const char *name)
{
	struct gpu_kfd *k = arg;
	char path[PATH_SIZE];
	struct gpu_kfd_node node = {0};

	snprintf(path, sizeof(path), "%s/gpu_id", name);
	/* A processor has number 0. */
	if (gpu_sys_number(dir_fd, path, &node.gpu_id) < 0 || !node.gpu_id)
		return;
	name_node(k, name, &node);
	if (k->n_nodes == GPU_KFD_NODES_MAX)
		k->n_refused++;
	else
		k->node[k->n_nodes++] = node;
}

void gpu_kfd_begin(struct gpu_kfd *k, const struct moment *now)
{
	_cleanup_close_ int nodes_fd = -1;

	k->now_ns = now->mono_ns;
	if (k->opt.sys_fd < 0 || !k->opt.first_pids ||
	    (k->is_listed && now->mono_ns - k->listed_ns < GPU_KFD_TABLE_NS))
		return;
	k->is_listed = true;
	k->listed_ns = now->mono_ns;
	base_closep(&k->proc_fd);
	k->proc_fd = gpu_sys_open_dir(k->opt.sys_fd, "class/kfd/kfd/proc");
	keptfd_park(&k->proc_fd);
	k->n_nodes = 0;
	k->n_refused = 0;
	if (k->proc_fd < 0)
		return;
	nodes_fd = gpu_sys_open_dir(k->opt.sys_fd, NODES);
	gpu_sys_each(nodes_fd, take_node, k);
}

static struct use *use_of(struct visit *v, const char *gpu_id)
{
	uint64_t id;

	if (!parse_number(gpu_id, &id))
		return NULL;
	for (size_t i = 0; i < v->k->n_nodes; i++)
		if (v->k->node[i].gpu_id == id) {
			v->use[i].is_there = true;
			return &v->use[i];
		}
	return NULL;
}

static void take_queue(void *arg, int dir_fd, const char *name)
{
	struct visit *v = arg;
	char path[PATH_SIZE], gpu_id[32];
	struct use *u;

	snprintf(path, sizeof(path), "%s/gpuid", name);
	if (gpu_sys_read(dir_fd, path, gpu_id, sizeof(gpu_id)) <= 0)
		return;
	u = use_of(v, gpu_id);
	if (u)
		u->has_queue = true;
}

static void take_vram(struct visit *v, int dir_fd, const char *name)
{
	struct use *u = use_of(v, name + strlen("vram_"));
	uint64_t bytes;

	if (u && gpu_sys_number(dir_fd, name, &bytes) == 0)
		u->vram += bytes;
}

static void take_stats(struct visit *v, int dir_fd, const char *name)
{
	struct use *u = use_of(v, name + strlen("stats_"));
	char path[PATH_SIZE];
	uint64_t ms;

	snprintf(path, sizeof(path), "%s/evicted_ms", name);
	if (!u || gpu_sys_number(dir_fd, path, &ms) < 0)
		return;
	u->has_evicted = true;
	u->evicted_ms += ms;
}

/*
 * An entry of a process or of one of its further contexts (Linux 7.1). Reading
 * "sdma_*" would wait for the GPU's queues and fault in memory of the process.
 */
static void take_entry(void *arg, int dir_fd, const char *name)
{
	struct visit *v = arg;
	struct str s = str_of(name);

	if (str_begins(s, STR("vram_"))) {
		take_vram(v, dir_fd, name);
	} else if (str_begins(s, STR("stats_"))) {
		take_stats(v, dir_fd, name);
	} else if (str_eq(s, STR("queues"))) {
		_cleanup_close_ int fd = gpu_sys_open_dir(dir_fd, name);

		gpu_sys_each(fd, take_queue, v);
	}
}

static void take_process_entry(void *arg, int dir_fd, const char *name)
{
	if (str_begins(str_of(name), STR("context_"))) {
		_cleanup_close_ int fd = gpu_sys_open_dir(dir_fd, name);

		gpu_sys_each(fd, take_entry, arg);
	} else {
		take_entry(arg, dir_fd, name);
	}
}

/* What one process has on one GPU, as a client of its own. */
static void tell_use(const struct gpu_kfd *k, struct gpu *g,
		     const struct gpu_holder *h,
		     const struct gpu_kfd_node *node, const struct use *u)
{
	struct gpu_reading r = {
	    .driver = STR("kfd"),
	    .device = str_of(node->name),
	    .kind = GPU_ID_KFD,
	    .id = gpu_process_id(h),
	    .read_ns = k->now_ns,
	    .only_if_alone = true,
	    .has_unseen = u->has_queue,
	    .n_engines = u->has_evicted,
	    .n_regions = 1,
	};
	int client;

	r.engine[0] = (struct gpu_engine){
	    .name = STR("evicted"),
	    .has = GPU_BUSY,
	    .capacity = 1,
	};
	if (__builtin_mul_overflow(u->evicted_ms, NSEC_PER_MSEC,
				   &r.engine[0].busy_ns))
		r.n_engines = 0;
	r.region[0] = (struct gpu_region){
	    .name = STR("vram"),
	    .has = 1u << GPU_SIZE_RESIDENT,
	};
	r.region[0].bytes[GPU_SIZE_RESIDENT] = u->vram;
	client = gpu_take(g, -1, &r, 0);
	if (client >= 0)
		gpu_hold(g, client, h);
}

/* Partitions of one GPU are one device here, as elsewhere. */
static void join_partitions(struct visit *v)
{
	const struct gpu_kfd *k = v->k;

	for (size_t i = 1; i < k->n_nodes; i++) {
		struct use *from = &v->use[i], *to = NULL;

		for (size_t j = 0; j < i && !to; j++)
			if (strcmp(k->node[j].name, k->node[i].name) == 0)
				to = &v->use[j];
		if (!to || !from->is_there)
			continue;
		to->is_there = true;
		to->vram += from->vram;
		to->evicted_ms += from->evicted_ms;
		to->has_evicted |= from->has_evicted;
		to->has_queue |= from->has_queue;
		from->is_there = false;
	}
}

struct round {
	struct gpu_kfd *k;
	struct gpu *g;
};

static void take_process(void *arg, int dir_fd, const char *name)
{
	const struct round *round = arg;
	struct gpu_kfd *k = round->k;
	struct visit v = {.k = k};
	_cleanup_close_ int fd = -1;
	struct gpu_holder h;
	bool has_any = false;
	uint64_t pid;

	if (!parse_number(name, &pid) || pid > INT32_MAX ||
	    !k->opt.find(k->opt.find_arg, (pid_t)pid, &h))
		return;
	fd = gpu_sys_open_dir(dir_fd, name);
	gpu_sys_each(fd, take_process_entry, &v);
	join_partitions(&v);
	for (size_t i = 0; i < k->n_nodes; i++) {
		const struct use *u = &v.use[i];

		/* It stays listed when /dev/kfd was closed long ago. */
		if (!u->is_there || (!u->vram && !u->has_queue) ||
		    !k->node[i].name[0])
			continue;
		tell_use(k, round->g, &h, &k->node[i], u);
		has_any = true;
	}
	k->n_processes += has_any;
}

void gpu_kfd_finish(struct gpu_kfd *k, struct gpu *g)
{
	struct round round = {k, g};

	k->n_processes = 0;
	if (k->proc_fd < 0 || lseek(k->proc_fd, 0, SEEK_SET) < 0)
		return;
	gpu_sys_each(k->proc_fd, take_process, &round);
}

enum gpu_state gpu_kfd_state(const struct gpu_kfd *k)
{
	if (k->proc_fd < 0)
		return GPU_STATE_MISSING;
	/* The control group of the unit may deny the devices. */
	for (size_t i = 0; i < k->n_nodes; i++)
		if (!k->node[i].name[0])
			return GPU_STATE_DENIED;
	return k->n_nodes ? GPU_STATE_OK : GPU_STATE_DENIED;
}
