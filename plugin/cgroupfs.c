/* SPDX-License-Identifier: MIT */
#include "cgroupfs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cgroupfs-text.h"
#include "proctext.h"

enum {
	/* io.stat has a line of some 90 bytes for each device. */
	TEXT_SIZE = 16 * 1024,
	KEYS_MAX = 5,
};

struct key {
	const char *name;
	uint8_t value;
	uint16_t divisor; /* 0: as it is */
};

typedef bool parse_fn(struct str text, const char *key, uint64_t *ret);

struct file {
	enum cgroupfs_tree tree;
	const char *name;
	parse_fn *parse;
	struct key key[KEYS_MAX]; /* to the first without a name */
};

static bool parse_number(struct str text, _unused_ const char *key,
			 uint64_t *ret)
{
	return cgroupfs_parse_number(text, ret);
}

static bool parse_regions(struct str text, _unused_ const char *key,
			  uint64_t *ret)
{
	return cgroupfs_parse_regions(text, ret);
}

#define PRESSURE(what, WHAT)                                                   \
	{                                                                      \
		CGROUPFS_UNIFIED, what ".pressure", cgroupfs_parse_pressure,   \
		{                                                              \
			{"some", CGROUPFS_##WHAT##_SOME_US, 0},                \
			{                                                      \
				"full", CGROUPFS_##WHAT##_FULL_US, 0           \
			}                                                      \
		}                                                              \
	}

static const struct file files[CGROUPFS_N_FILES] = {
    {CGROUPFS_UNIFIED,
     "memory.current",
     parse_number,
     {{"", CGROUPFS_MEMORY, 0}}},
    {CGROUPFS_UNIFIED,
     "memory.swap.current",
     parse_number,
     {{"", CGROUPFS_SWAP, 0}}},
    {CGROUPFS_UNIFIED,
     "cpu.stat",
     cgroupfs_parse_key,
     {{"usage_usec", CGROUPFS_CPU_US, 0},
      {"nr_periods", CGROUPFS_PERIODS, 0},
      {"nr_throttled", CGROUPFS_THROTTLED, 0},
      {"throttled_usec", CGROUPFS_THROTTLED_US, 0}}},
    {CGROUPFS_UNIFIED, "pids.current", parse_number, {{"", CGROUPFS_PIDS, 0}}},
    {CGROUPFS_UNIFIED,
     "io.stat",
     cgroupfs_parse_io,
     {{"rbytes", CGROUPFS_READ_BYTES, 0},
      {"wbytes", CGROUPFS_WRITE_BYTES, 0},
      {"rios", CGROUPFS_READ_OPS, 0},
      {"wios", CGROUPFS_WRITE_OPS, 0}}},
    {CGROUPFS_UNIFIED, "dmem.current", parse_regions, {{"", CGROUPFS_DMEM, 0}}},
    PRESSURE("cpu", CPU),
    PRESSURE("memory", MEMORY),
    PRESSURE("io", IO),
    {CGROUPFS_V1_MEMORY,
     "memory.usage_in_bytes",
     parse_number,
     {{"", CGROUPFS_MEMORY, 0}}},
    {CGROUPFS_V1_MEMORY,
     "memory.stat",
     cgroupfs_parse_key,
     {{"total_swap", CGROUPFS_SWAP, 0}}},
    {CGROUPFS_V1_CPU,
     "cpu.stat",
     cgroupfs_parse_key,
     {{"nr_periods", CGROUPFS_PERIODS, 0},
      {"nr_throttled", CGROUPFS_THROTTLED, 0},
      {"throttled_time", CGROUPFS_THROTTLED_US, 1000}}},
    {CGROUPFS_V1_CPUACCT,
     "cpuacct.usage",
     parse_number,
     {{"", CGROUPFS_CPU_US, 1000}}},
    {CGROUPFS_V1_PIDS, "pids.current", parse_number, {{"", CGROUPFS_PIDS, 0}}},
};

static const struct {
	const char *dir, *controller;
} trees[CGROUPFS_N_TREES] = {
    [CGROUPFS_UNIFIED] = {"unified", ""},
    [CGROUPFS_V1_MEMORY] = {"memory", "memory"},
    [CGROUPFS_V1_CPU] = {"cpu", "cpu"},
    [CGROUPFS_V1_CPUACCT] = {"cpuacct", "cpuacct"},
    [CGROUPFS_V1_PIDS] = {"pids", "pids"},
};

static int open_dir(int at, const char *path)
{
	int fd = openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	keptfd_park(&fd);
	return fd;
}

int cgroupfs_open(struct cgroupfs *fs, const char *root, struct keptfd *kept)
{
	_cleanup_close_ int fd = open_dir(AT_FDCWD, root);
	bool any = false;

	*fs = (struct cgroupfs){.kept = kept};
	for (unsigned i = 0; i < CGROUPFS_N_TREES; i++)
		fs->tree_fd[i] = -1;
	if (fd < 0)
		return PROC_ABSENT;
	/* Only a hierarchy of version 2 has this. */
	if (faccessat(fd, "cgroup.controllers", F_OK, 0) == 0) {
		fs->tree_fd[CGROUPFS_UNIFIED] = steal_fd(&fd);
		return 0;
	}
	for (unsigned i = 0; i < CGROUPFS_N_TREES; i++) {
		fs->tree_fd[i] = open_dir(fd, trees[i].dir);
		any |= fs->tree_fd[i] >= 0;
	}
	return any ? 0 : PROC_ABSENT;
}

void cgroupfs_close(struct cgroupfs *fs)
{
	for (unsigned i = 0; i < CGROUPFS_N_TREES; i++)
		if (fs->tree_fd[i] >= 0)
			close(fs->tree_fd[i]);
	*fs = (struct cgroupfs){.tree_fd = {-1, -1, -1, -1, -1}};
}

static void close_file(struct cgroupfs *fs, int *fd)
{
	if (fs->kept)
		keptfd_close(fs->kept, fd);
	else if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool is_empty(const struct cgroupfs_group *g)
{
	for (unsigned i = 0; i < CGROUPFS_N_TREES; i++)
		if (g->path[i])
			return false;
	return true;
}

void cgroupfs_leave(struct cgroupfs *fs, struct cgroupfs_group *g)
{
	/* Descriptor 0 of one that was never entered is not ours. */
	for (unsigned i = 0; i < CGROUPFS_N_FILES && !is_empty(g); i++)
		close_file(fs, &g->fd[i]);
	for (unsigned i = 0; i < CGROUPFS_N_TREES; i++)
		free(g->path[i]);
	*g = (struct cgroupfs_group){0};
}

/*
 * The root stands for the whole host and lacks this file, unless it is that
 * of a cgroup namespace. In version 1 one cannot tell.
 */
static bool is_host(const struct cgroupfs *fs, unsigned tree, struct str path)
{
	return path.n == 1 &&
	       (tree != CGROUPFS_UNIFIED ||
		faccessat(fs->tree_fd[tree], "cgroup.events", F_OK, 0) < 0);
}

/* From a guarded call; who was given up meanwhile leaves nothing open. */
static void come_back(struct guard *g, int own_fd)
{
	if (guard_leave(g))
		return;
	if (own_fd >= 0)
		close(own_fd);
	guard_quit(g);
}

/* Of inode numbers, which the kernel does not use again; 0 if one is gone. */
static uint64_t id_of(const struct cgroupfs *fs, const struct cgroupfs_group *g)
{
	struct guard *guard = fs->guard;
	uint64_t id = HASH_NOTHING;

	for (unsigned i = 0; i < CGROUPFS_N_TREES; i++) {
		char path[PATH_MAX];
		struct stat st;
		int r;

		if (!g->path[i])
			continue;
		snprintf(path, sizeof(path), ".%s", g->path[i]);
		guard_enter(guard);
		r = fstatat(fs->tree_fd[i], path, &st, 0);
		come_back(guard, -1);
		if (r < 0)
			return 0;
		id = hash_more(id, (struct str){(const char *)&st.st_ino,
						sizeof(st.st_ino)});
	}
	return id;
}

int cgroupfs_enter(struct cgroupfs *fs, struct cgroupfs_group *g,
		   struct str proc_cgroup)
{
	*g = (struct cgroupfs_group){0};
	for (unsigned i = 0; i < CGROUPFS_N_FILES; i++)
		g->fd[i] = -1;
	for (unsigned i = 0; i < CGROUPFS_N_TREES; i++) {
		struct str path;

		if (fs->tree_fd[i] < 0 ||
		    !cgroupfs_parse_path(proc_cgroup, trees[i].controller,
					 &path) ||
		    is_host(fs, i, path))
			continue;
		g->path[i] = strndup(path.s, path.n);
		if (!g->path[i]) {
			cgroupfs_leave(fs, g);
			return -ENOMEM;
		}
	}
	if (is_empty(g))
		return PROC_ABSENT;
	g->id = id_of(fs, g);
	return 0;
}

/* Opens a file of the cgroup, for good if there is room. */
static int open_file(struct cgroupfs *fs, struct cgroupfs_group *g,
		     unsigned file, int *ret_fd)
{
	const struct file *f = &files[file];
	struct guard *guard = fs->guard;
	char path[PATH_MAX];
	int n, fd;

	n = snprintf(path, sizeof(path), ".%s/%s", g->path[f->tree], f->name);
	if (n < 0 || n >= (int)sizeof(path))
		return -ENAMETOOLONG;
	guard_enter(guard);
	fd = openat(fs->tree_fd[f->tree], path, O_RDONLY | O_CLOEXEC);
	come_back(guard, fd);
	if (fd < 0)
		return -errno;
	if (!fs->kept || keptfd_keep(fs->kept, &fd) == 0)
		g->fd[file] = fd;
	*ret_fd = fd;
	return 0;
}

/* Cuts a line off that may go on behind the buffer. */
static struct str whole_lines(const char *text, size_t n, size_t size)
{
	const char *end = n == size ? memrchr(text, '\n', n) : NULL;

	return (struct str){text, end ? (size_t)(end - text) + 1 : n};
}

static void take(const struct file *f, struct str text, uint32_t wanted,
		 struct cgroupfs_values *v)
{
	for (unsigned i = 0; i < KEYS_MAX && f->key[i].name; i++) {
		const struct key *k = &f->key[i];
		uint64_t value;

		if (!(wanted & CGROUPFS_BIT(k->value)) ||
		    !f->parse(text, k->name, &value))
			continue;
		v->value[k->value] = k->divisor ? value / k->divisor : value;
		v->have |= CGROUPFS_BIT(k->value);
	}
}

static int read_file(struct cgroupfs *fs, struct cgroupfs_group *g,
		     unsigned file, uint32_t wanted, struct cgroupfs_values *v)
{
	struct guard *guard = fs->guard;
	int fd = g->fd[file], r = 0;
	char text[TEXT_SIZE];
	bool is_own;
	ssize_t n;

	if (fd < 0)
		r = open_file(fs, g, file, &fd);
	if (r < 0)
		return r;
	is_own = g->fd[file] < 0;
	guard_enter(guard);
	n = pread(fd, text, sizeof(text), 0);
	come_back(guard, is_own ? fd : -1);
	if (n < 0)
		r = -errno;
	else
		take(&files[file], whole_lines(text, (size_t)n, sizeof(text)),
		     wanted, v);
	if (is_own)
		close(fd);
	else if (r < 0)
		close_file(fs, &g->fd[file]);
	return r;
}

static uint32_t values_of(const struct file *f)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < KEYS_MAX && f->key[i].name; i++)
		mask |= CGROUPFS_BIT(f->key[i].value);
	return mask;
}

/* A controller is in version 1 or in version 2; the other one has no value. */
static bool is_to_be_read(const struct cgroupfs_group *g, unsigned file,
			  uint32_t wanted, uint32_t have)
{
	return g->path[files[file].tree] &&
	       !(g->missing & UINT32_C(1) << file) &&
	       values_of(&files[file]) & wanted & ~have;
}

/* Is its directory there? Files of what is not switched on are missing, too. */
static bool is_gone(const struct cgroupfs *fs, const struct cgroupfs_group *g,
		    unsigned tree)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), ".%s", g->path[tree]);

	return n > 0 && n < (int)sizeof(path) &&
	       faccessat(fs->tree_fd[tree], path, F_OK, 0) < 0 &&
	       errno == ENOENT;
}

/* A kept descriptor tells when its cgroup goes; a name does not. */
static bool is_by_name(const struct cgroupfs_group *g, uint32_t wanted)
{
	for (unsigned i = 0; i < CGROUPFS_N_FILES; i++)
		if (is_to_be_read(g, i, wanted, 0) && g->fd[i] < 0)
			return true;
	return false;
}

int cgroupfs_read(struct cgroupfs *fs, struct cgroupfs_group *g,
		  uint32_t wanted, struct cgroupfs_values *ret)
{
	struct cgroupfs_values v = {.have = 0};

	if (is_by_name(g, wanted) && id_of(fs, g) != g->id)
		return PROC_GONE;
	/* From the last to the first: what version 1 has comes first. */
	for (unsigned i = CGROUPFS_N_FILES; i-- > 0;) {
		int r;

		if (!is_to_be_read(g, i, wanted, v.have))
			continue;
		r = read_file(fs, g, i, wanted & ~v.have, &v);
		if (r == -ENODEV ||
		    (r == -ENOENT && is_gone(fs, g, files[i].tree)))
			return PROC_GONE;
		if (r == -ENOENT || r == -EOPNOTSUPP || r == -ENAMETOOLONG)
			g->missing |= UINT32_C(1) << i;
		else if (r < 0)
			return r;
	}
	*ret = v;
	return 0;
}
