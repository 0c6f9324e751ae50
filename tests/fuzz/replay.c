/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target on its corpus, or on the files that are named on the
 * command line. One point; what an input must not do ends the program, and
 * the last name on standard error says which it was.
 */
#include "../tap.h"
#include "fuzz.h"

#include <dirent.h>

static char **input;
static int n_inputs;

static void run_input(const char *path)
{
	FILE *f = fopen(path, "re");
	_cleanup_free_ uint8_t *data = NULL;
	long size = -1;

	fprintf(stderr, "%s\n", path);
	if (f && fseek(f, 0, SEEK_END) == 0)
		size = ftell(f);
	if (size >= 0) {
		rewind(f);
		/* No byte more: sanitizers see who reads beyond the end. */
		data = malloc((size_t)size);
	}
	check(size == 0 || (data && fread(data, (size_t)size, 1, f) == 1));
	if (data && !tap.failed)
		check_int(LLVMFuzzerTestOneInput(data, (size_t)size), 0);
	if (f)
		fclose(f);
}

static void run_all(void)
{
	check(n_inputs > 0);
	for (int i = 0; i < n_inputs; i++)
		run_input(input[i]);
}

static int is_input(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void list_corpus(void)
{
	const char *srcdir = getenv("srcdir");
	struct dirent **entry;
	char dir[768];
	int n;

	snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus/%s",
		 srcdir ? srcdir : ".", fuzz_target);
	n = scandir(dir, &entry, is_input, alphasort);
	if (n < 0)
		return;
	input = calloc((size_t)n + 1, sizeof(*input));
	for (int i = 0; i < n; i++) {
		if (input && asprintf(&input[n_inputs], "%s/%s", dir,
				      entry[i]->d_name) >= 0)
			n_inputs++;
		free(entry[i]);
	}
	free(entry);
}

int main(int argc, char **argv)
{
	char name[128];

	if (argc > 1) {
		input = argv + 1;
		n_inputs = argc - 1;
	} else {
		list_corpus();
	}
	snprintf(name, sizeof(name), "%s holds for %d inputs", fuzz_target,
		 n_inputs);
	TEST(name, run_all);
	if (argc == 1) {
		for (int i = 0; i < n_inputs; i++)
			free(input[i]);
		free(input);
	}
	return tap_done();
}
