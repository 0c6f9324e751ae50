/* SPDX-License-Identifier: MIT */
#include "board.h"
#include "selfstat.h"

enum kind {
	KIND_GAUGE,   /* the sum of the data sources */
	KIND_LARGEST, /* gauge: the largest of several instances */
	KIND_RATE,    /* growth per second of the sum of the data sources */
};

/* Where a value comes from. */
struct source {
	enum board_value value;
	enum kind kind;
	const char *type, *instance; /* one that ends in "-" begins so */
	unsigned ds;		     /* bit per data source */
	double scale;
};

static const struct source sources[] = {
    {BOARD_CPU, KIND_RATE, "ps_cputime", NULL, 3, 1e-4},
    {BOARD_RSS, KIND_GAUGE, "ps_rss", NULL, 1, 1},
    {BOARD_PSS, KIND_GAUGE, "memory", "pss", 1, 1},
    {BOARD_SWAP, KIND_GAUGE, "memory", "swap", 1, 1},
    {BOARD_PROCESSES, KIND_GAUGE, "ps_count", NULL, 1, 1},
    {BOARD_THREADS, KIND_GAUGE, "ps_count", NULL, 2, 1},
    {BOARD_READ, KIND_RATE, "disk_octets", NULL, 1, 1},
    {BOARD_WRITE, KIND_RATE, "disk_octets", NULL, 2, 1},
    {BOARD_IO, KIND_RATE, "disk_octets", NULL, 3, 1},
    {BOARD_FAULTS, KIND_RATE, "ps_pagefaults", NULL, 3, 1},
    {BOARD_FDS, KIND_GAUGE, "file_handles", NULL, 1, 1},
    {BOARD_AGE, KIND_GAUGE, "uptime", "oldest", 1, 1},
    {BOARD_GPU, KIND_LARGEST, "percent", "gpu-", 1, 1},
};

void board_init(struct board *b)
{
	*b = (struct board){0};
}

void board_done(struct board *b)
{
	for (size_t i = 0; i < b->n_rows; i++)
		free(b->row[i].name);
	free(b->row);
	free(b->order);
	*b = (struct board){0};
}

void board_begin(struct board *b, uint64_t mono_ns)
{
	b->last_ns = b->now_ns;
	b->now_ns = mono_ns;
	b->at = 0;
	b->error = 0;
	for (size_t i = 0; i < b->n_rows; i++) {
		struct board_row *row = &b->row[i];

		row->told = false;
		row->have = 0;
		row->was_counted = row->counted;
		row->counted = 0;
		memcpy(row->last, row->count, sizeof(row->last));
	}
}

/*
 * The row of a group, made if there is none; NULL if out of memory. Groups
 * are told in the same order each time, so the search is short.
 */
static struct board_row *row_of(struct board *b, const char *name)
{
	struct board_row *row;

	for (size_t i = 0; i < b->n_rows; i++) {
		size_t at = (b->at + i) % b->n_rows;

		if (strcmp(b->row[at].name, name) == 0) {
			b->at = at;
			return &b->row[at];
		}
	}
	if (array_reserve(&b->row, &b->cap, b->n_rows + 1, sizeof(*b->row)) < 0)
		return NULL;
	row = &b->row[b->n_rows];
	*row = (struct board_row){.name = strdup(name)};
	if (!row->name)
		return NULL;
	b->at = b->n_rows++;
	return row;
}

static bool is_from(const struct source *s, const struct value_out *v)
{
	size_t n = s->instance ? strlen(s->instance) : 0;

	if (strcmp(s->type, v->type) != 0 || !s->instance != !v->instance)
		return false;
	if (n && s->instance[n - 1] == '-')
		return strncmp(s->instance, v->instance, n) == 0;
	return !n || strcmp(s->instance, v->instance) == 0;
}

static void take_count(struct board_row *row, const struct source *s,
		       const struct value_out *v)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < v->n; i++)
		if (s->ds & 1u << i)
			sum += v->u[i];
	row->count[s->value] = sum;
	row->counted |= 1u << s->value;
}

static void take_gauge(struct board_row *row, const struct source *s,
		       const struct value_out *v)
{
	bool had = board_has(row, s->value);
	double sum = 0;

	for (unsigned i = 0; i < v->n; i++)
		if (s->ds & 1u << i)
			sum += v->d[i] * s->scale;
	if (had && s->kind == KIND_LARGEST)
		sum = MAX(sum, row->value[s->value]);
	row->value[s->value] = sum;
	row->have |= 1u << s->value;
}

void board_take(void *arg, const struct value_out *v)
{
	struct board *b = arg;
	struct board_row *row;

	if (strcmp(v->group, SELF_GROUP) == 0)
		return;
	row = row_of(b, v->group);
	if (!row) {
		b->error = -ENOMEM;
		return;
	}
	row->told = true;
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		const struct source *s = &sources[i];

		if (!is_from(s, v) || s->ds >> v->n ||
		    v->derive != (s->kind == KIND_RATE))
			continue;
		if (v->derive)
			take_count(row, s, v);
		else
			take_gauge(row, s, v);
	}
}

static void find_rates(const struct board *b, struct board_row *row)
{
	double passed_s = (double)(b->now_ns - b->last_ns) / 1e9;

	if (b->now_ns <= b->last_ns)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		const struct source *s = &sources[i];
		uint64_t now = row->count[s->value];
		uint64_t last = row->last[s->value];

		if (!(row->counted & row->was_counted & 1u << s->value) ||
		    now < last)
			continue;
		row->value[s->value] =
		    (double)(now - last) * s->scale / passed_s;
		row->have |= 1u << s->value;
	}
}

int board_end(struct board *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n_rows; i++) {
		if (!b->row[i].told) {
			free(b->row[i].name);
			continue;
		}
		b->row[n] = b->row[i];
		find_rates(b, &b->row[n++]);
	}
	b->n_rows = n;
	if (b->error == 0)
		b->error = array_reserve(&b->order, &b->order_cap, n,
					 sizeof(*b->order));
	if (b->error < 0)
		return b->error;
	for (size_t i = 0; i < n; i++)
		b->order[i] = i;
	return 0;
}

bool board_tells(const struct board *b, enum board_value v)
{
	for (size_t i = 0; i < b->n_rows; i++)
		if (board_has(&b->row[i], v))
			return true;
	return false;
}

bool board_is_inhabited(const struct board_row *row)
{
	return !board_has(row, BOARD_PROCESSES) ||
	       row->value[BOARD_PROCESSES] > 0;
}

/* Larger first, and those without the value last whatever the direction. */
static int compare_value(const struct board_row *x, const struct board_row *y,
			 enum board_value v, bool reverse)
{
	double a = x->value[v], b = y->value[v];

	if (!board_has(x, v) || !board_has(y, v))
		return board_has(y, v) - board_has(x, v);
	return reverse ? (a > b) - (a < b) : (b > a) - (b < a);
}

struct sorting {
	const struct board *board;
	const struct board_order *order;
};

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct sorting *s = arg;
	const struct board_row *x = &s->board->row[*(const size_t *)a];
	const struct board_row *y = &s->board->row[*(const size_t *)b];
	int names = strcmp(x->name, y->name);
	int r;

	if (s->order->by == BOARD_NAME)
		return s->order->reverse ? -names : names;
	r = board_is_inhabited(y) - board_is_inhabited(x);
	if (r == 0)
		r = compare_value(x, y, s->order->by, s->order->reverse);
	if (r == 0)
		r = compare_value(x, y, BOARD_CPU, false);
	if (r == 0)
		r = compare_value(x, y, BOARD_RSS, false);
	return r ? r : names;
}

void board_sort(struct board *b, const struct board_order *o)
{
	struct sorting s = {b, o};

	if (b->n_rows)
		qsort_r(b->order, b->n_rows, sizeof(*b->order), compare_rows,
			&s);
}
