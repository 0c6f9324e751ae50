/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "diag.h"
#include "messages.h"
#include "rulefile.h"

#include <stdio.h>

static int check_file(const char *path)
{
	struct ruleset *rs = NULL;
	struct diag d;
	int r;

	diag_init(&d, path);
	r = rulefile_load(path, &d, &rs);
	messages_print(&d);
	if (r == 0)
		printf("%s: %zu rules, no errors\n", path, rs->n_rules);
	else if (r == -ENOMEM)
		fprintf(stderr, "%s: out of memory\n", path);
	diag_done(&d);
	ruleset_free(rs);
	return r < 0;
}

int check_run(char *const *files, int n_files)
{
	int failed = 0;

	for (int i = 0; i < n_files; i++)
		failed |= check_file(files[i]);
	return failed;
}
