/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as each of the texts that are read beside the rule file: those
 * below /proc, a passwd and a group file, a pidfile. Most of them can be
 * written by whoever runs a process.
 */
#include "fuzz.h"

#include "cgroup.h"
#include "pidfile.h"
#include "proctext.h"
#include "smaps.h"
#include "subject.h"
#include "users.h"

#include <fcntl.h>
#include <sys/mman.h>

const char fuzz_target[] = "proctext";

static void try_stat(struct str text)
{
	struct proc_stat st;

	if (proctext_parse_stat(text, &st))
		return;
	fuzz_check(fuzz_is_within(st.comm, text));
	/* It stands between the parentheses. */
	fuzz_check(st.comm.s > text.s && st.comm.s[-1] == '(');
	fuzz_check(st.comm.s[st.comm.n] == ')');
	for (unsigned worker = 0; worker < 2; worker++) {
		struct str stable = subject_stable_comm(st.comm, worker);

		fuzz_check(stable.s == st.comm.s && stable.n <= st.comm.n);
		fuzz_check(worker || stable.n == st.comm.n);
	}
}

static void try_keys(struct str text)
{
	static const enum metric_source sources[] = {SOURCE_STATUS, SOURCE_IO,
						     SOURCE_TASKS};

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		enum metric_source source = sources[i];
		metric_mask wanted = metric_rows(source), found;
		uint64_t value[METRIC_N_STORED] = {0};

		found = proctext_parse_keys(source, text, wanted, value);
		fuzz_check(!(found & ~wanted));
		/* Asked for one alone, it is the same. */
		for (metric_mask m = found; m; m &= m - 1) {
			unsigned row = (unsigned)__builtin_ctzll(m);
			uint64_t one[METRIC_N_STORED] = {0};

			fuzz_check(proctext_parse_keys(source, text,
						       METRIC_BIT(row),
						       one) == METRIC_BIT(row));
			fuzz_check(one[row] == value[row]);
		}
	}
}

/* However the text comes, it says the same. */
static void try_smaps(struct str text, size_t step)
{
	struct smaps whole = {0}, parts = {0};
	struct smaps_parser p;
	int r = smaps_parse(text, &whole);

	smaps_begin(&p);
	for (size_t i = 0; i < text.n; i += step)
		smaps_feed(&p, (struct str){text.s + i, MIN(step, text.n - i)});
	fuzz_check(smaps_end(&p, &parts) == r);
	fuzz_check(r == 0 || r == -EBADMSG);
	fuzz_check(parts.have == whole.have);
	fuzz_check(parts.n_mappings == whole.n_mappings);
	for (unsigned i = 0; i < SMAPS_N_VALUES; i++)
		if (whole.have & SMAPS_BIT(i))
			fuzz_check(parts.value[i] == whole.value[i]);
}

static void try_limits(struct str text)
{
	uint64_t n;
	int r = proctext_parse_fd_limit(text, &n);

	fuzz_check(r == 0 || r == PROC_ABSENT);
}

static void try_cgroup(struct str text)
{
	struct cgroup_names names;
	const struct str *all[] = {&names.path, &names.unit, &names.slice,
				   &names.container, &names.pod};

	if (cgroup_parse(text, &names))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		fuzz_check(fuzz_is_within(*all[i], text));
		fuzz_check(i == 0 || fuzz_is_within(*all[i], names.path));
		fuzz_check(!all[i]->n || !memchr(all[i]->s, '\n', all[i]->n));
		if (i > 0)
			fuzz_check(!all[i]->n ||
				   !memchr(all[i]->s, '/', all[i]->n));
	}
}

static void try_cmdline(struct str text, size_t argv0_size)
{
	_cleanup_free_ char *raw = malloc(text.n), *argv0 = malloc(argv0_size);
	struct str in_raw = {raw, text.n}, in_argv0 = {argv0, argv0_size};
	struct subject s = {0};

	if (!raw || !argv0)
		return;
	if (text.n)
		memcpy(raw, text.s, text.n);
	subject_set_cmdline(&s, raw, text.n, argv0, argv0_size);
	fuzz_check(fuzz_is_within(s.cmdline, in_raw));
	fuzz_check(fuzz_is_within(s.argv0, in_argv0));
	fuzz_check(fuzz_is_within(s.exe, in_argv0) ||
		   fuzz_is_within(s.exe, in_raw));
	fuzz_check(fuzz_is_within(s.script, in_raw));
	fuzz_check(!s.script.n || !memchr(s.script.s, '/', s.script.n));
	for (size_t i = 0; i < s.cmdline.n; i++)
		fuzz_check((unsigned char)s.cmdline.s[i] >= 0x20 &&
			   s.cmdline.s[i] != 0x7f);
}

/* A file without a name that holds the text; -1 if there can be none. */
static int make_file(struct str text, char *path, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	if (text.n && write(fd, text.s, text.n) != (ssize_t)text.n) {
		close(fd);
		return -1;
	}
	snprintf(path, size, "/proc/self/fd/%d", fd);
	return fd;
}

static void try_users(enum users_kind kind, const char *path)
{
	struct users *u = users_new(kind, AT_FDCWD, path);
	char buf[16];

	if (!u)
		return;
	fuzz_check(users_refresh(u) == 1);
	fuzz_check(users_refresh(u) == 0);
	for (uint32_t i = 0; i < 4; i++) {
		static const uint32_t ids[] = {0, 1, 1000, UINT32_MAX};
		struct str name = users_name(u, ids[i], buf, sizeof(buf));

		fuzz_check(name.n > 0);
		fuzz_check(!memchr(name.s, ':', name.n));
		fuzz_check(name.s[0] != '+' && name.s[0] != '-');
	}
	users_free(u);
}

static void try_pidfile(const char *path)
{
	struct file_seen seen = {0};
	_cleanup_close_ int root = open("/proc", O_PATH | O_CLOEXEC);
	pid_t pid = 0;

	/* What it puts in front of the path leads to the root from there. */
	pidfile_refresh(root, path, &seen, &pid, NULL);
	fuzz_check(seen.exists);
	fuzz_check(pid >= 0 && pid <= 4194304);
	fuzz_check(!pidfile_refresh(root, path, &seen, &pid, NULL));
}

static void try_files(struct str text)
{
	char path[64];
	_cleanup_close_ int fd = make_file(text, path, sizeof(path));

	if (fd < 0)
		return;
	try_users(USERS_PASSWD, path);
	try_users(USERS_GROUP, path);
	try_pidfile(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};

	try_stat(text);
	try_keys(text);
	try_smaps(text, 1);
	try_smaps(text, 7);
	try_limits(text);
	try_cgroup(text);
	try_cmdline(text, 16);
	try_cmdline(text, size + 1);
	try_files(text);
	return 0;
}
