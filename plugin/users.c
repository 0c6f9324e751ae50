/* SPDX-License-Identifier: MIT */
/*
 * A passwd or group file as a table sorted by id. The lines are glibc's
 * business (fgetpwent_r(3), fgetgrent_r(3)), which reads a stream and asks no
 * name service. A file is
 * taken as a whole or not at all: while it cannot be read the names of before
 * stand.
 */
#include "users.h"

#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
	FILE_SIZE_MAX = 16 * 1024 * 1024,
	LINE_SIZE_MAX = 64 * 1024, /* longer lines are passed over */
};

struct user {
	uint32_t uid;
	uint32_t line; /* the first line of a uid counts */
	size_t name;   /* offset in names */
};

struct table {
	struct user *user; /* by uid */
	size_t n, cap;
	char *names; /* one after the other, each with its NUL */
	size_t names_len, names_cap;
};

struct users {
	enum users_kind kind;
	int dirfd;
	const char *path;
	struct table table;
	struct stat seen; /* of the file that the table was read from */
	bool exists;
};

static void table_done(struct table *t)
{
	free(t->user);
	free(t->names);
	*t = (struct table){0};
}

static void stream_close(FILE **f)
{
	if (*f)
		fclose(*f);
}

struct users *users_new(enum users_kind kind, int dirfd, const char *path)
{
	struct users *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->kind = kind;
	u->dirfd = dirfd;
	u->path = path;
	return u;
}

void users_free(struct users *u)
{
	if (!u)
		return;
	table_done(&u->table);
	free(u);
}

static int table_add(struct table *t, uint32_t uid, const char *name)
{
	size_t n = strlen(name) + 1;

	if (array_reserve(&t->user, &t->cap, t->n + 1, sizeof(t->user[0])) ||
	    array_reserve(&t->names, &t->names_cap, t->names_len + n, 1))
		return -ENOMEM;
	memcpy(t->names + t->names_len, name, n);
	t->user[t->n] = (struct user){uid, (uint32_t)t->n, t->names_len};
	t->n++;
	t->names_len += n;
	return 0;
}

/* "+" and "-" begin lines that tell a name service whom to add or leave. */
static bool is_entry(const char *name, uint32_t id)
{
	return name && name[0] && name[0] != '+' && name[0] != '-' &&
	       id != UINT32_MAX;
}

/* The next line's name and id. Returns 0 or an errno, as glibc does. */
static int read_line(enum users_kind kind, FILE *f, char *buf,
		     const char **name, uint32_t *id)
{
	struct passwd pw, *user;
	struct group gr, *group;
	int r;

	if (kind == USERS_GROUP) {
		r = fgetgrent_r(f, &gr, buf, LINE_SIZE_MAX, &group);
		if (r == 0) {
			*name = gr.gr_name;
			*id = gr.gr_gid;
		}
		return r;
	}
	r = fgetpwent_r(f, &pw, buf, LINE_SIZE_MAX, &user);
	if (r == 0) {
		*name = pw.pw_name;
		*id = pw.pw_uid;
	}
	return r;
}

/*
 * A line that does not fit is left unread by glibc 2.32 and later and read in
 * part by older ones; either way it ends with the next line feed.
 */
static void skip_line(FILE *f)
{
	int c;

	do
		c = getc_unlocked(f);
	while (c != EOF && c != '\n');
}

static int read_lines(enum users_kind kind, FILE *f, struct table *t)
{
	_cleanup_free_ char *buf = malloc(LINE_SIZE_MAX);

	if (!buf)
		return -ENOMEM;
	for (;;) {
		const char *name = NULL;
		uint32_t id = UINT32_MAX;
		int r = read_line(kind, f, buf, &name, &id);

		if (ftello(f) > FILE_SIZE_MAX)
			return -EFBIG;
		switch (r) {
		case 0:
			break;
		case ERANGE:
			skip_line(f);
			continue;
		case ENOENT: /* the end */
			return ferror(f) ? -EIO : 0;
		default:
			return -r;
		}
		if (is_entry(name, id) && table_add(t, id, name))
			return -ENOMEM;
	}
}

static int by_uid(const void *pa, const void *pb)
{
	const struct user *a = pa, *b = pb;

	if (a->uid != b->uid)
		return a->uid < b->uid ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

static void table_sort(struct table *t)
{
	size_t kept = 0;

	if (t->n == 0)
		return;
	qsort(t->user, t->n, sizeof(t->user[0]), by_uid);
	for (size_t i = 1; i < t->n; i++)
		if (t->user[i].uid != t->user[kept].uid)
			t->user[++kept] = t->user[i];
	t->n = kept + 1;
}

/* Returns 0 with the table and what the open file is; or a negative errno. */
static int read_file(const struct users *u, struct table *ret,
		     struct stat *ret_stat)
{
	_cleanup_close_ int fd = -1;
	_cleanup_(stream_close) FILE *f = NULL;
	struct table t = {0};
	struct stat st;
	int r;

	fd = openat(u->dirfd, u->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > FILE_SIZE_MAX)
		return -EFBIG;
	f = fdopen(fd, "r");
	if (!f)
		return -errno;
	steal_fd(&fd);

	r = read_lines(u->kind, f, &t);
	if (r) {
		table_done(&t);
		return r;
	}
	table_sort(&t);
	*ret = t;
	*ret_stat = st;
	return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_size == b->st_size && a->st_ino == b->st_ino;
}

static bool is_missing(int error)
{
	return error == -ENOENT || error == -ENOTDIR;
}

int users_refresh(struct users *u)
{
	struct table t = {0};
	struct stat st = {0};
	int r;

	if (fstatat(u->dirfd, u->path, &st, 0) < 0)
		r = -errno;
	else if (is_same(&st, &u->seen))
		return 0;
	else
		r = read_file(u, &t, &st);
	if (r && !is_missing(r))
		return r;

	if (r && !u->exists)
		return 0;
	table_done(&u->table);
	u->table = t;
	u->exists = !r;
	u->seen = st;
	return 1;
}

struct str users_name(const struct users *u, uint32_t uid, char *buf,
		      size_t size)
{
	const struct user *user = u->table.user;
	size_t low = 0, high = u->table.n;
	int n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (user[middle].uid < uid)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < u->table.n && user[low].uid == uid)
		return str_of(u->table.names + user[low].name);
	n = snprintf(buf, size, "%" PRIu32, uid);
	return (struct str){buf, (size_t)n < size ? (size_t)n : 0};
}
