/* SPDX-License-Identifier: MIT */
#include "smaps.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
	PATH_SIZE = 64, /* "4194304/task/4194304/smaps_rollup" and more */
};

/*
 * With the colon: Pss_Dirty, Pss_Anon and more of the kind came later. Several
 * keys of one value are added.
 */
static const struct smaps_key {
	struct str key;
	enum smaps_value value;
} smaps_keys[SMAPS_N_KEYS] = {
    {{"Rss:", 4}, SMAPS_RSS},
    {{"Pss:", 4}, SMAPS_PSS},
    {{"Private_Clean:", 14}, SMAPS_USS},
    {{"Private_Dirty:", 14}, SMAPS_USS},
    {{"SwapPss:", 8}, SMAPS_SWAP_PSS}, /* since Linux 4.3 */
};

static const char *const file_names[] = {
    [SMAPS_ROLLUP] = "smaps_rollup",
    [SMAPS_FULL] = "smaps",
    [SMAPS_MAPS] = "maps",
};

void smaps_begin(struct smaps_parser *p)
{
	*p = (struct smaps_parser){0};
}

static bool skip_hex(const char **at, const char *end)
{
	const char *begin = *at;

	while (*at < end &&
	       ((**at >= '0' && **at <= '9') || (**at >= 'a' && **at <= 'f')))
		(*at)++;
	return *at > begin;
}

/*
 * "55d0a0000000-55d0a0021000 rw-p ...". Keys begin with a capital, and a line
 * feed in a file's name is escaped (show_map_vma(), fs/proc/task_mmu.c, Linux
 * 6.18), so that a name cannot pass for a line.
 */
static bool is_mapping(struct str line)
{
	const char *at = line.s, *end = line.s + line.n;

	return skip_hex(&at, end) && at < end && *at++ == '-' &&
	       skip_hex(&at, end) && at < end && *at == ' ';
}

/* "     1024 kB" behind a key. */
static bool parse_kib(struct str rest, uint64_t *ret)
{
	const char *at = rest.s, *end = rest.s + rest.n;

	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return proctext_number(&at, end, ret) &&
	       str_eq((struct str){at, (size_t)(end - at)}, STR(" kB"));
}

static void take_line(struct smaps_parser *p, struct str line)
{
	if (is_mapping(line)) {
		p->n_mappings++;
		return;
	}
	for (unsigned i = 0; i < SMAPS_N_KEYS; i++) {
		struct str key = smaps_keys[i].key;
		uint64_t kib;

		if (!str_begins(line, key))
			continue;
		if (!parse_kib((struct str){line.s + key.n, line.n - key.n},
			       &kib) ||
		    __builtin_add_overflow(p->kib[i], kib, &p->kib[i]))
			p->bad |= (uint8_t)(1u << i);
		p->seen |= (uint8_t)(1u << i);
		return;
	}
}

/* Keeps the beginning of a line whose end is in another piece. */
static void keep(struct smaps_parser *p, struct str part)
{
	size_t n = MIN(part.n, sizeof(p->line) - p->n_line);

	memcpy(p->line + p->n_line, part.s, n);
	p->n_line += n;
}

void smaps_feed(struct smaps_parser *p, struct str piece)
{
	const char *at = piece.s, *end = piece.s + piece.n;

	while (at < end) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));
		struct str line = {at, (size_t)((eol ? eol : end) - at)};

		if (!eol || p->n_line)
			keep(p, line);
		if (!eol)
			return;
		if (p->n_line)
			line = (struct str){p->line, p->n_line};
		/* Cut alike whether it was kept or not. */
		line.n = MIN(line.n, (size_t)SMAPS_LINE_MAX);
		take_line(p, line);
		p->n_line = 0;
		at = eol + 1;
	}
}

int smaps_end(const struct smaps_parser *p, struct smaps *ret)
{
	struct smaps out = {.n_mappings = p->n_mappings};
	unsigned absent = 0;

	if (p->n_line)
		return -EBADMSG;
	for (unsigned i = 0; i < SMAPS_N_KEYS; i++) {
		uint64_t *value = &out.value[smaps_keys[i].value];
		uint64_t bytes;

		if (!(p->seen & 1u << i) || p->bad & 1u << i ||
		    __builtin_mul_overflow(p->kib[i], 1024, &bytes) ||
		    __builtin_add_overflow(*value, bytes, value))
			absent |= SMAPS_BIT(smaps_keys[i].value);
	}
	out.have = (SMAPS_BIT(SMAPS_N_VALUES) - 1) & ~absent;
	for (unsigned i = 0; i < SMAPS_N_VALUES; i++)
		if (absent & SMAPS_BIT(i))
			out.value[i] = 0;
	*ret = out;
	return 0;
}

int smaps_parse(struct str text, struct smaps *ret)
{
	struct smaps_parser p;

	smaps_begin(&p);
	smaps_feed(&p, text);
	return smaps_end(&p, ret);
}

static bool there_is(int root_fd, const char *path)
{
	struct stat st;

	return fstatat(root_fd, path, &st, 0) == 0;
}

void smaps_host_probe(struct smaps_host *h, int root_fd)
{
	/* "self" leads nowhere if we have no number in that PID namespace. */
	const char *who = there_is(root_fd, "self/stat") ? "self" : "1";
	char path[PATH_SIZE];

	*h = (struct smaps_host){.file = SMAPS_ROLLUP};
	snprintf(path, sizeof(path), "%s/stat", who);
	if (!there_is(root_fd, path))
		return;
	h->sure = true;
	for (; h->file <= SMAPS_FULL; h->file++) {
		snprintf(path, sizeof(path), "%s/%s", who, file_names[h->file]);
		if (there_is(root_fd, path))
			return;
	}
	h->file = SMAPS_NONE;
}

void smaps_host_learn(struct smaps_host *h, enum smaps_file file, int r)
{
	if (h->sure || file != h->file)
		return;
	if (r == 0)
		h->sure = true;
	else if (r == SMAPS_NO_FILE)
		h->file = file == SMAPS_ROLLUP ? SMAPS_FULL : SMAPS_NONE;
}

/*
 * Three things can be wrong at once with a number of which we get ENOENT or
 * ESRCH: the process ended; it has no memory; the kernel has no such file.
 * While its stat is there it has not ended.
 */
static int outcome(const struct smaps_ask *ask, int err)
{
	char path[PATH_SIZE];

	if (err == EACCES || err == EPERM)
		return PROC_DENIED;
	if (err != ENOENT && err != ESRCH)
		return -err;
	snprintf(path, sizeof(path), "%d/stat", (int)ask->pid);
	if (!there_is(ask->root_fd, path))
		return PROC_GONE;
	return err == ENOENT ? SMAPS_NO_FILE : SMAPS_NO_MEMORY;
}

/*
 * smaps ends early, and without an error, when the process ends or calls
 * exec: m_start() finds no user of the memory any more. What was read then is
 * a part only. Read anew from its beginning the file tells: it is empty.
 * (fs/proc/task_mmu.c; seen on Linux 6.18.)
 */
static bool was_cut(int fd, char *buf)
{
	return pread(fd, buf, 1, 0) == 0;
}

static int read_pieces(const struct smaps_ask *ask, int fd,
		       struct smaps_parser *p)
{
	uint64_t sum = 0;

	for (;;) {
		ssize_t n = read(fd, ask->buf, ask->size);

		if (n < 0)
			return outcome(ask, errno);
		if (n == 0 && sum == 0)
			return outcome(ask, ESRCH);
		if (n == 0)
			break;
		sum += (uint64_t)n;
		if (ask->max_bytes && sum > ask->max_bytes)
			return SMAPS_TOO_LONG;
		smaps_feed(p, (struct str){ask->buf, (size_t)n});
		/* One record, which the kernel gives whole if it fits. */
		if (ask->file == SMAPS_ROLLUP && (size_t)n < ask->size)
			return 0;
	}
	if (ask->file != SMAPS_ROLLUP && was_cut(fd, ask->buf))
		return outcome(ask, ESRCH);
	return 0;
}

/* *ret_opened also if it fails afterwards. */
static int read_once(const struct smaps_ask *ask, struct smaps *ret,
		     bool *ret_opened)
{
	struct smaps_parser p;
	struct smaps out;
	char path[PATH_SIZE];
	_cleanup_close_ int fd = -1;
	int r;

	if (ask->live_tid)
		snprintf(path, sizeof(path), "%d/task/%d/%s", (int)ask->pid,
			 (int)ask->live_tid, file_names[ask->file]);
	else
		snprintf(path, sizeof(path), "%d/%s", (int)ask->pid,
			 file_names[ask->file]);
	fd = openat(ask->root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return outcome(ask, errno);
	*ret_opened = true;
	smaps_begin(&p);
	r = read_pieces(ask, fd, &p);
	if (r)
		return r;
	r = smaps_end(&p, &out);
	if (r < 0)
		return r;
	if (ask->file == SMAPS_MAPS ? !out.n_mappings
				    : !(out.have & SMAPS_BIT(SMAPS_PSS)))
		return PROC_ABSENT;
	*ret = out;
	return 0;
}

int smaps_read(const struct smaps_ask *ask, struct smaps *ret)
{
	bool opened = false;
	int r;

	if (ask->file == SMAPS_NONE)
		return SMAPS_NO_FILE;
	r = read_once(ask, ret, &opened);
	/*
	 * A kernel thread or a zombie has no memory: ESRCH at open() (Linux
	 * 6.18), at read() (before), or an empty smaps. But one that was
	 * opened may only have called exec meanwhile: the descriptor is of the
	 * memory it had (proc_mem_open(), fs/proc/base.c), a new one will do.
	 */
	if (r == SMAPS_NO_MEMORY && opened)
		r = read_once(ask, ret, &opened);
	return r;
}
