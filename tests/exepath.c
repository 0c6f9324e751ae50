/* SPDX-License-Identifier: MIT */
/* Tests of plugin/exepath.c. */
#include "exepath.h"

#include <limits.h>
#include <stdio.h>

#include "tap.h"

static struct exepath cache;

static void learn(uint64_t dev, uint64_t inode, const char *path)
{
	check_int(exepath_learn(&cache, dev, inode, str_of(path)), 0);
}

static const char *find(uint64_t dev, uint64_t inode, const char *comm)
{
	const char *path = exepath_find(&cache, dev, inode, comm);

	return path ? path : "unknown";
}

static void by_number(void)
{
	check_int(exepath_init(&cache), 0);
	check_text(find(1, 2, "sh"), "unknown");
	learn(1, 2, "/bin/sh");
	learn(1, 3, "/bin/ls");
	learn(2, 2, "/opt/tool");
	check_text(find(1, 2, "renamed"), "/bin/sh");
	check_text(find(2, 2, "sh"), "/opt/tool");
	check_text(find(1, 3, ""), "/bin/ls");
	exepath_done(&cache);
}

static void replaced(void)
{
	check_int(exepath_init(&cache), 0);
	learn(1, 2, "/bin/sh");
	learn(1, 2, "/bin/sh");
	learn(1, 2, "/bin/dash");
	check_text(find(1, 2, "sh"), "/bin/dash");
	exepath_done(&cache);
}

static void by_name(void)
{
	check_int(exepath_init(&cache), 0);
	learn(1, 2, "/usr/bin/systemd-tmpfiles-setup");
	learn(3, 2, "/usr/bin/other");
	check_text(find(9, 2, "systemd-tmpfile"),
		   "/usr/bin/systemd-tmpfiles-setup");
	check_text(find(9, 2, "other"), "/usr/bin/other");
	check_text(find(9, 2, "oth"), "unknown");
	check_text(find(9, 4, "other"), "unknown");
	learn(1, 5, "no-directory");
	check_text(find(9, 5, "no-directory"), "no-directory");
	exepath_done(&cache);
}

static void bounded(void)
{
	char path[64];
	unsigned n = 0;

	check_int(exepath_init(&cache), 0);
	learn(1, 1, "/bin/busy");
	learn(1, 2, "/bin/busy-by-name");
	learn(1, 3, "/bin/idle");
	for (uint64_t i = 10; i < 10 + 4 * EXEPATH_MAX; i++) {
		snprintf(path, sizeof(path), "/bin/%" PRIu64, i);
		learn(1, i, path);
		check_text(find(1, 1, ""), "/bin/busy");
		check_text(find(7, 2, "busy-by-name"), "/bin/busy-by-name");
		check_text(find(1, i, ""), path);
	}
	check_text(find(1, 3, "idle"), "unknown");
	for (uint64_t i = 1; i < 10 + 4 * EXEPATH_MAX; i++)
		n += exepath_find(&cache, 1, i, "") != NULL;
	check(n <= EXEPATH_MAX && n >= EXEPATH_MAX / 2);
	exepath_done(&cache);
}

/* Of the old half, and another one's in the young one. */
static void outdated(void)
{
	char path[64];

	check_int(exepath_init(&cache), 0);
	learn(1, 2, "/bin/before");
	for (uint64_t i = 10; i < 10 + EXEPATH_MAX / 2; i++) {
		snprintf(path, sizeof(path), "/bin/%" PRIu64, i);
		learn(1, i, path);
	}
	learn(1, 2, "/bin/after");
	check_text(find(9, 2, "before"), "unknown");
	check_text(find(9, 2, "after"), "/bin/after");
	check_text(find(1, 2, "before"), "/bin/after");
	exepath_done(&cache);
}

static void long_path(void)
{
	static char path[PATH_MAX + 1];

	memset(path, 'x', PATH_MAX);
	check_int(exepath_init(&cache), 0);
	learn(1, 2, path);
	check_text(find(1, 2, "x"), "unknown");
	learn(1, 2, path + 1);
	check_text(find(1, 2, "x"), path + 1);
	exepath_done(&cache);
}

int main(void)
{
	TEST("a path is found by device and inode", by_number);
	TEST("a file that was replaced has its new path", replaced);
	TEST("another device will do if inode and name are right", by_name);
	TEST("paths are few, and those in use stay", bounded);
	TEST("a path that is another one's by now is not found", outdated);
	TEST("a path longer than any is not learned", long_path);
	return tap_done();
}
