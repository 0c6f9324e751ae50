/* SPDX-License-Identifier: MIT */
/*
 * Texts of fdinfo and what is to be read in them: each
 * tests/gpu-samples/fdinfo/NAME.txt has its NAME.want, in words of our own.
 */
#include "gpu-fdinfo.h"
#include "tap.h"

#include <dirent.h>

enum {
	FILE_SIZE = 16 * 1024,
};

static const char *sample_dir;
static const char *sample; /* name of the one that is tested */

/* The text is at the end of its memory: sanitizers see who reads beyond. */
static char *read_file(const char *name, const char *suffix, size_t *ret_n)
{
	static char buf[FILE_SIZE];
	char path[1024];
	char *text;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s%s", sample_dir, name, suffix);
	f = fopen(path, "re");
	if (!f) {
		tap_fail(__FILE__, __LINE__, "cannot open %s", path);
		*ret_n = 0;
		return calloc(1, 1);
	}
	*ret_n = fread(buf, 1, sizeof(buf), f);
	check(*ret_n < sizeof(buf));
	fclose(f);
	text = malloc(*ret_n + !*ret_n);
	memcpy(text, buf, *ret_n);
	return text;
}

static void print_text(FILE *f, const char *what, struct str s)
{
	fprintf(f, "%s %.*s\n", what, s.n ? (int)s.n : 1, s.n ? s.s : "-");
}

static void print_engine(FILE *f, const struct gpu_engine *e)
{
	fprintf(f, "engine %.*s", (int)e->name.n, e->name.s);
	if (e->has & GPU_BUSY)
		fprintf(f, " busy=%" PRIu64, e->busy_ns);
	if (e->has & GPU_CYCLES)
		fprintf(f, " cycles=%" PRIu64, e->cycles);
	if (e->has & GPU_TOTAL)
		fprintf(f, " total=%" PRIu64, e->total_cycles);
	if (e->has & GPU_MAXFREQ)
		fprintf(f, " maxfreq=%" PRIu64, e->maxfreq_hz);
	if (e->has & GPU_CURFREQ)
		fprintf(f, " curfreq=%" PRIu64, e->curfreq_hz);
	fprintf(f, " capacity=%" PRIu64 "\n", e->capacity);
}

static void print_region(FILE *f, const struct gpu_region *m)
{
	static const struct {
		enum gpu_size size;
		const char *name;
	} sizes[] = {
	    {GPU_SIZE_TOTAL, "total"},	       {GPU_SIZE_SHARED, "shared"},
	    {GPU_SIZE_ACTIVE, "active"},       {GPU_SIZE_RESIDENT, "resident"},
	    {GPU_SIZE_PURGEABLE, "purgeable"},
	};

	fprintf(f, "region %.*s", (int)m->name.n, m->name.s);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		enum gpu_size size = sizes[i].size;

		/* The older word says the same. */
		if (size == GPU_SIZE_RESIDENT && !(m->has & 1u << size))
			size = GPU_SIZE_MEMORY;
		if (m->has & 1u << size)
			fprintf(f, " %s=%" PRIu64, sizes[i].name,
				m->bytes[size]);
	}
	fprintf(f, "\n");
}

/* Device and system memory, and whether its being busy is measured. */
static void print_sums(FILE *f, struct gpu_reading *r)
{
	struct gpu_holder h = {.pid = 700, .start = 1};
	uint64_t sum[2] = {0};
	bool is_busy = false;
	struct gpu g;
	int client;

	gpu_init(&g);
	gpu_begin(&g);
	if (!r->device.n)
		r->device = STR("platform");
	client = gpu_take(&g, -1, r, 0);
	check(client >= 0);
	if (client >= 0)
		gpu_hold(&g, client, &h);
	check_int(gpu_end(&g), 0);
	check_u64(g.n_processes, 1);
	for (size_t i = 0; i < g.n_memories; i++) {
		const char *name = g.series[g.memory[i].series].name;

		if (strcmp(name, "device") == 0)
			sum[0] += g.memory[i].resident;
		if (strcmp(name, "system") == 0)
			sum[1] += g.memory[i].resident;
	}
	for (size_t i = 0; i < g.n_uses; i++)
		is_busy |= g.series[g.use[i].series].kind == GPU_KIND_BUSY;
	if (r->n_regions)
		fprintf(f, "device %" PRIu64 "\nsystem %" PRIu64 "\n", sum[0],
			sum[1]);
	else
		fprintf(f, "device -\nsystem -\n");
	fprintf(f, "busy %s\n", is_busy ? "yes" : "no");
	gpu_done(&g);
}

static void print_reading(FILE *f, struct str text)
{
	struct gpu_reading r;
	int err = gpu_fdinfo_parse(text, &r);

	if (err) {
		check_int(err, GPU_NO_CLIENT);
		fprintf(f, "no client\n");
		return;
	}
	print_text(f, "driver", r.driver);
	print_text(f, "device", r.device);
	fprintf(f, "%s %" PRIu64 "\n",
		r.kind == GPU_ID_PASID ? "pasid" : "client", r.id);
	print_text(f, "name", r.client_name);
	for (unsigned i = 0; i < r.n_engines; i++)
		print_engine(f, &r.engine[i]);
	for (unsigned i = 0; i < r.n_regions; i++)
		print_region(f, &r.region[i]);
	print_sums(f, &r);
}

static void one_sample(void)
{
	_cleanup_free_ char *text = NULL, *want = NULL, *got = NULL;
	char *got_at, *want_at;
	size_t n, n_want, n_got;
	FILE *f;

	text = read_file(sample, ".txt", &n);
	want = read_file(sample, ".want", &n_want);
	f = open_memstream(&got, &n_got);
	print_reading(f, (struct str){text, n});
	fclose(f);
	if (n_got == n_want && memcmp(got, want, n_got) == 0)
		return;
	tap_fail(__FILE__, __LINE__, "it reads as:");
	for (char *line = strtok_r(got, "\n", &got_at); line;
	     line = strtok_r(NULL, "\n", &got_at))
		printf("#   %s\n", line);
	printf("# and should as:\n");
	want = realloc(want, n_want + 1);
	want[n_want] = '\0';
	for (char *line = strtok_r(want, "\n", &want_at); line;
	     line = strtok_r(NULL, "\n", &want_at))
		printf("#   %s\n", line);
}

/* Whatever is cut off: no byte beyond is looked at, and no line made up. */
static void cut_anywhere(void)
{
	_cleanup_free_ char *text = NULL;
	size_t n;

	text = read_file("xe-6.12-dg2-t1", ".txt", &n);
	for (size_t i = 0; i <= n; i++) {
		char *cut = malloc(i + !i);
		struct gpu_reading r;

		memcpy(cut, text, i);
		if (gpu_fdinfo_parse((struct str){cut, i}, &r) == 0) {
			check(r.n_engines <= 5);
			check(r.n_regions <= 4);
		}
		free(cut);
	}
}

static int is_text(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 4 && strcmp(e->d_name + n - 4, ".txt") == 0;
}

int main(void)
{
	const char *srcdir = getenv("srcdir");
	struct dirent **entry = NULL;
	char dir[768], name[512];
	int n;

	snprintf(dir, sizeof(dir), "%s/tests/gpu-samples/fdinfo",
		 srcdir ? srcdir : ".");
	sample_dir = dir;
	n = scandir(dir, &entry, is_text, alphasort);
	for (int i = 0; i < n; i++) {
		char *e = entry[i]->d_name;

		e[strlen(e) - 4] = '\0';
		sample = e;
		snprintf(name, sizeof(name), "%s reads as it should", e);
		TEST(name, one_sample);
		free(entry[i]);
	}
	free(entry);
	TEST("a text that was cut off is not read beyond", cut_anywhere);
	return tap_done();
}
