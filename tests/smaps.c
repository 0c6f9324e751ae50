/* SPDX-License-Identifier: MIT */
/*
 * smaps_rollup, smaps and maps: as texts, of this very host with real
 * children, and below a root that is only a directory.
 *
 * Each piece of a text is parsed from a buffer of its very size, so that a
 * sanitizer sees a look behind its end.
 */
#include "inject.h"
#include "smaps.h"
#include "tap.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define KIB UINT64_C(1024)
#define ALL (SMAPS_BIT(SMAPS_N_VALUES) - 1)

static const char rollup_text[] =
    "55d0a0000000-7ffd10000000 ---p 00000000 00:00 0                  "
    "[rollup]\n"
    "Rss:                1500 kB\nPss:                1000 kB\n"
    "Pss_Dirty:           800 kB\nPss_Anon:            700 kB\n"
    "Pss_File:            250 kB\nPss_Shmem:            50 kB\n"
    "Shared_Clean:        500 kB\nShared_Dirty:          0 kB\n"
    "Private_Clean:       300 kB\nPrivate_Dirty:       600 kB\n"
    "Referenced:         1500 kB\nAnonymous:          1000 kB\n"
    "Shared_Hugetlb:     2048 kB\nPrivate_Hugetlb:    4096 kB\n"
    "Swap:                 70 kB\nSwapPss:              64 kB\n"
    "Locked:                0 kB\n";

static const char full_text[] =
    "00400000-00452000 r-xp 00000000 08:02 173521                 /bin/Pss: 1 "
    "kB"
    "\nSize:                328 kB\nRss:                 240 kB\n"
    "Pss:                 120 kB\nShared_Clean:        240 kB\n"
    "Private_Clean:        11 kB\nPrivate_Dirty:         0 kB\n"
    "Swap:                  0 kB\nSwapPss:               0 kB\n"
    "VmFlags: rd ex mr mw me dw \n"
    "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"
    "Size:                132 kB\nRss:                   8 kB\n"
    "Pss:                   8 kB\nShared_Clean:          0 kB\n"
    "Private_Clean:         0 kB\nPrivate_Dirty:         8 kB\n"
    "Swap:                  4 kB\nSwapPss:               4 kB\n"
    "VmFlags: rd wr mr mw me nr \n"
    "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0              [vdso]\n"
    "Size:                  8 kB\nRss:                   4 kB\n"
    "Pss:                   0 kB\nVmFlags: rd ex mr mw me de \n";

static void feed(struct smaps_parser *p, const char *s, size_t n)
{
	char *copy = malloc(n ? n : 1);

	copy = realloc(copy, n ? n : 1);
	memcpy(copy, s, n);
	smaps_feed(p, (struct str){copy, n});
	free(copy);
}

/* In pieces of that size; 0: in one. */
static int parse_in(const char *s, size_t n, size_t piece, struct smaps *ret)
{
	struct smaps_parser p;

	smaps_begin(&p);
	for (size_t at = 0; at < n;) {
		size_t step = piece ? MIN(piece, n - at) : n;

		feed(&p, s + at, step);
		at += step;
	}
	return smaps_end(&p, ret);
}

static struct smaps parse(const char *text)
{
	struct smaps s = {0};

	check_int(parse_in(text, strlen(text), 0, &s), 0);
	return s;
}

static bool same(const struct smaps *a, const struct smaps *b)
{
	for (unsigned i = 0; i < SMAPS_N_VALUES; i++)
		if (a->value[i] != b->value[i])
			return false;
	return a->have == b->have && a->n_mappings == b->n_mappings;
}

static void rollup_values(void)
{
	struct smaps s;

	check_int(smaps_parse(str_of(rollup_text), &s), 0);
	check_int(s.have, ALL);
	check_u64(s.value[SMAPS_RSS], 1500 * KIB);
	check_u64(s.value[SMAPS_PSS], 1000 * KIB);
	check_u64(s.value[SMAPS_USS], 900 * KIB);
	check_u64(s.value[SMAPS_SWAP_PSS], 64 * KIB);
	check_u64(s.n_mappings, 1);
}

static void full_values(void)
{
	struct smaps s = parse(full_text);

	check_int(s.have, ALL);
	check_u64(s.value[SMAPS_RSS], 252 * KIB);
	check_u64(s.value[SMAPS_PSS], 128 * KIB);
	check_u64(s.value[SMAPS_USS], 19 * KIB);
	check_u64(s.value[SMAPS_SWAP_PSS], 4 * KIB);
	check_u64(s.n_mappings, 3);
}

static void exact_keys(void)
{
	struct smaps s = parse("Pss_Dirty: 1 kB\n Pss: 2 kB\nxPss: 4 kB\n"
			       "Pss: 8 kB\nPSS: 16 kB\nPss : 32 kB\n"
			       "SwapPss_x: 64 kB\nPs: 128 kB\n");

	check_int(s.have, SMAPS_BIT(SMAPS_PSS));
	check_u64(s.value[SMAPS_PSS], 8 * KIB);
}

static void missing_keys(void)
{
	struct smaps s = parse("Rss: 5 kB\nPrivate_Dirty: 1 kB\n");

	check_int(s.have, SMAPS_BIT(SMAPS_RSS));
	check_u64(s.value[SMAPS_USS], 0);
	s = parse("Pss: 0 kB\n");
	check_int(s.have, SMAPS_BIT(SMAPS_PSS));
	s = parse("");
	check_int(s.have, 0);
	check_u64(s.n_mappings, 0);
}

static void odd_values(void)
{
	static const char *const odd[] = {
	    "Pss:",
	    "Pss: ",
	    "Pss: kB",
	    "Pss: 12",
	    "Pss: 12kB",
	    "Pss: -1 kB",
	    "Pss: 12 MB",
	    "Pss: 12 kB ",
	    "Pss: 1.5 kB",
	    "Pss: 1 2 kB",
	    "Pss: 18446744073709551616 kB",
	    /* Fits, but not as bytes; or not in sum. */
	    "Pss: 18014398509481984 kB",
	    "Pss: 18446744073709551615 kB\nPss: 1 kB",
	};
	char text[160];
	struct smaps s;

	for (unsigned i = 0; i < ARRAY_SIZE(odd); i++) {
		bool none;

		snprintf(text, sizeof(text),
			 "Pss: 7 kB\n%s\nPss: 7 kB\nRss: 3 kB\n", odd[i]);
		s = parse(text);
		none =
		    s.have == SMAPS_BIT(SMAPS_RSS) && s.value[SMAPS_PSS] == 0;
		if (!none)
			tap_fail(__FILE__, __LINE__, "taken: %s", odd[i]);
	}
	s = parse("Pss: 18014398509481983 kB\n");
	check_u64(s.value[SMAPS_PSS], UINT64_MAX - 1023);
	/* The rest of a line that is too long is not looked at. */
	snprintf(text, sizeof(text), "%-62s12 kB\nRss: 3 kB\n", "Pss:");
	s = parse(text);
	check_int(s.have, SMAPS_BIT(SMAPS_RSS));
	s = parse("Private_Clean: 10000000000000000 kB\n"
		  "Private_Dirty: 10000000000000000 kB\n");
	check_int(s.have, 0);
}

static void cut_off(void)
{
	for (size_t n = 0; n < strlen(full_text); n++) {
		struct smaps s = {.have = 77};
		bool whole = n == 0 || full_text[n - 1] == '\n';
		int r = parse_in(full_text, n, 0, &s);

		check_int(r, whole ? 0 : -EBADMSG);
		if (!whole)
			check_int(s.have, 77);
	}
}

static void any_split(void)
{
	struct smaps whole = parse(full_text), s;
	size_t n = strlen(full_text);

	for (size_t piece = 1; piece < n; piece++) {
		check_int(parse_in(full_text, n, piece, &s), 0);
		check(same(&s, &whole));
	}
	for (size_t at = 0; at <= n; at++) {
		struct smaps_parser p;

		smaps_begin(&p);
		feed(&p, full_text, at);
		feed(&p, full_text + at, n - at);
		check_int(smaps_end(&p, &s), 0);
		check(same(&s, &whole));
	}
}

static void long_names(void)
{
	char text[8192], *at = text;
	struct smaps s;

	at += sprintf(at, "00400000-00452000 r-xp 00000000 08:02 1 /");
	for (unsigned i = 0; i < 4000; i++)
		*at++ = "Pss: 1 kB "[i % 10];
	strcpy(at, "\nPss: 3 kB\n");
	for (size_t piece = 0; piece < 130; piece++) {
		check_int(parse_in(text, strlen(text), piece, &s), 0);
		check_u64(s.n_mappings, 1);
		check_u64(s.value[SMAPS_PSS], 3 * KIB);
	}
}

/* What a slow and simple reader makes of it; false if it was cut off. */
static bool reference(const char *s, size_t n, struct smaps *ret)
{
	static const char *const key[] = {
	    "Rss:", "Pss:", "Private_Clean:", "Private_Dirty:", "SwapPss:"};
	__uint128_t sum[5] = {0};
	bool seen[5] = {0}, bad[5] = {0}, has[5];

	*ret = (struct smaps){0};
	if (n && s[n - 1] != '\n')
		return false;
	while (n) {
		char line[65] = "", hex[2][65], more;
		size_t len = (size_t)((char *)memchr(s, '\n', n) - s);

		memcpy(line, s, MIN(len, (size_t)64));
		s += len + 1;
		n -= len + 1;
		if (sscanf(line, "%64[0-9a-f]-%64[0-9a-f]%c", hex[0], hex[1],
			   &more) == 3 &&
		    more == ' ' && strlen(line) == MIN(len, (size_t)64))
			ret->n_mappings++;
		for (unsigned i = 0; i < 5; i++) {
			unsigned long long kib;
			size_t k = strlen(key[i]);
			int end = -1;

			if (strncmp(line, key[i], k))
				continue;
			seen[i] = true;
			k += strspn(line + k, " \t");
			errno = 0;
			sscanf(line + k, "%*[0-9]%n", &end);
			kib = strtoull(line + k, NULL, 10);
			if (end < 0 || errno || strcmp(line + k + end, " kB") ||
			    strlen(line) != MIN(len, (size_t)64))
				bad[i] = true;
			else
				sum[i] += kib;
		}
	}
	for (unsigned i = 0; i < 5; i++) {
		sum[i] *= 1024;
		has[i] = seen[i] && !bad[i] && sum[i] >> 64 == 0;
	}
	for (unsigned v = 0; v < SMAPS_N_VALUES; v++) {
		unsigned i = v < 3 ? v : 4;
		__uint128_t x = sum[i] + (v == SMAPS_USS ? sum[3] : 0);

		if (!has[i] || (v == SMAPS_USS && !has[3]) || x >> 64)
			continue;
		ret->have |= SMAPS_BIT(v);
		ret->value[v] = (uint64_t)x;
	}
	return true;
}

static unsigned random_below(unsigned *seed, unsigned n)
{
	return (unsigned)(((uint64_t)(unsigned)rand_r(seed) * n) >> 31);
}

/* Lines as they should be, fragments of them, and now and then any byte. */
static size_t random_text(unsigned *seed, char *buf, size_t size)
{
	enum { LINES = 6 };
	static const char *const part[] = {
	    "Pss: 12 kB\n",
	    "Rss:  1 kB\n",
	    "Private_Clean: 2 kB\n",
	    "Private_Dirty:\t3 kB\n",
	    "SwapPss: 4 kB\n",
	    "7f-80 \n",
	    "Pss:",
	    "SwapPss: ",
	    "Pss_X:",
	    " kB\n",
	    "\n",
	    " ",
	    "1024",
	    "18446744073709551615",
	    "99999999999999999",
	    "00400000-",
	    "                                                      ",
	};
	size_t n = 0, max = random_below(seed, 400);
	unsigned oddity = 1 + random_below(seed, 30);

	while (n < max) {
		unsigned odd = random_below(seed, 100) < oddity;
		unsigned from = odd ? ARRAY_SIZE(part) : LINES;
		const char *s = part[random_below(seed, from)];
		size_t len = strlen(s);

		if (odd && random_below(seed, 4) == 0) {
			buf[n++] = (char)random_below(seed, 256);
			continue;
		}
		if (n + len >= size)
			break;
		memcpy(buf + n, s, len);
		n += len;
	}
	if (random_below(seed, 4))
		buf[n++] = '\n';
	return n;
}

static void random_bytes(void)
{
	unsigned seed = 1, n_whole = 0, n_pss = 0;
	char buf[1024];

	for (unsigned i = 0; i < 40000 && !tap.failed; i++) {
		size_t n = random_text(&seed, buf, sizeof(buf));
		struct smaps want, got;
		struct smaps_parser p;
		bool whole = reference(buf, n, &want);
		int r;

		smaps_begin(&p);
		for (size_t at = 0; at < n;) {
			size_t step = random_below(&seed, 40);

			step = MIN(n - at, step);
			feed(&p, buf + at, step);
			at += step;
		}
		r = smaps_end(&p, &got);
		check_int(r, whole ? 0 : -EBADMSG);
		if (whole && !same(&got, &want))
			tap_fail(__FILE__, __LINE__, "differs: %.*s", (int)n,
				 buf);
		n_whole += whole;
		n_pss += whole && want.have & SMAPS_BIT(SMAPS_PSS);
	}
	/* The texts have to be worth it. */
	check(n_whole > 4000);
	check(n_pss > 1000);
}

/* Reading. */

static int proc_fd = -1;
static char piece_buf[4096];

static struct smaps_ask ask_for(pid_t pid, enum smaps_file file)
{
	return (struct smaps_ask){
	    .root_fd = proc_fd,
	    .pid = pid,
	    .file = file,
	    .buf = piece_buf,
	    .size = sizeof(piece_buf),
	};
}

static int read_file(pid_t pid, enum smaps_file file)
{
	struct smaps_ask ask = ask_for(pid, file);
	struct smaps s;

	return smaps_read(&ask, &s);
}

struct child {
	pid_t pid;
	int to, from;
};

static char state_of(const char *who)
{
	char path[64], text[512];
	const char *end;
	int fd, n;

	snprintf(path, sizeof(path), "/proc/%s/stat", who);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : (int)read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[MAX(n, 0)] = '\0';
	end = strrchr(text, ')');
	return end ? end[2] : '?';
}

/*
 * A child that waits in read(2) and then ends, or calls exec. It has
 * n_mappings mappings more.
 */
static void start_child(struct child *c, unsigned n_mappings, bool exec)
{
	int to[2], from[2];
	char x, who[16];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		abort();
	c->pid = fork();
	if (c->pid == 0) {
		close(to[1]);
		for (unsigned i = 0; i < n_mappings; i++)
			mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (write(from[1], "x", 1) != 1 || read(to[0], &x, 1) < 0)
			_exit(1);
		if (exec)
			execlp("sleep", "sleep", "60", (char *)NULL);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	c->to = to[1];
	c->from = from[0];
	if (read(c->from, &x, 1) != 1)
		abort();
	/* Until it sleeps it may touch another page. */
	snprintf(who, sizeof(who), "%d", (int)c->pid);
	while (state_of(who) != 'S')
		sched_yield();
}

static void end_child(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->to);
	close(c->from);
}

static void own_files(void)
{
	struct smaps_host host;
	struct smaps one, sum, maps;
	struct smaps_ask ask;
	struct child c;

	smaps_host_probe(&host, proc_fd);
	check(host.sure);
	if (host.file != SMAPS_ROLLUP) {
		tap_skip("no smaps_rollup here");
		return;
	}
	start_child(&c, 100, false);
	ask = ask_for(c.pid, SMAPS_ROLLUP);
	check_int(smaps_read(&ask, &one), 0);
	check_int(one.have, ALL);
	check(one.value[SMAPS_USS] <= one.value[SMAPS_PSS]);
	check(one.value[SMAPS_PSS] <= one.value[SMAPS_RSS]);
	check(one.value[SMAPS_USS] > 0);
	ask.file = SMAPS_FULL;
	check_int(smaps_read(&ask, &sum), 0);
	check_int(sum.have, ALL);
	check_u64(sum.value[SMAPS_RSS], one.value[SMAPS_RSS]);
	/* What we write to meanwhile is not shared with the child any more. */
	check(sum.value[SMAPS_PSS] >= one.value[SMAPS_PSS] / 2);
	check(sum.value[SMAPS_PSS] <= one.value[SMAPS_PSS] * 2);
	check(sum.n_mappings > 100);
	ask.file = SMAPS_MAPS;
	check_int(smaps_read(&ask, &maps), 0);
	check_u64(maps.n_mappings, sum.n_mappings);
	check_int(maps.have, 0);
	ask.file = SMAPS_FULL;
	ask.max_bytes = 20000;
	check_int(smaps_read(&ask, &one), SMAPS_TOO_LONG);
	ask.max_bytes = 1000 * 1000;
	check_int(smaps_read(&ask, &one), 0);
	end_child(&c);
}

static void small_buffers(void)
{
	struct child c;
	struct smaps whole, s;
	struct smaps_ask ask;

	start_child(&c, 0, false);
	for (unsigned f = SMAPS_ROLLUP; f <= SMAPS_MAPS; f++) {
		ask = ask_for(c.pid, f);
		check_int(smaps_read(&ask, &whole), 0);
		for (ask.size = 1; ask.size < 1000; ask.size += 37) {
			check_int(smaps_read(&ask, &s), 0);
			check_int(s.have, whole.have);
			check_u64(s.value[SMAPS_RSS], whole.value[SMAPS_RSS]);
			check_u64(s.n_mappings, whole.n_mappings);
		}
	}
	end_child(&c);
}

static void without_memory(void)
{
	struct child c;
	siginfo_t info;
	char stat[512], path[32];
	unsigned long flags = 0;
	int fd, n;

	start_child(&c, 0, false);
	close(c.to);
	waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT);
	for (unsigned f = SMAPS_ROLLUP; f <= SMAPS_MAPS; f++)
		check_int(read_file(c.pid, f), SMAPS_NO_MEMORY);
	c.to = dup(c.from);
	end_child(&c);
	for (unsigned f = SMAPS_ROLLUP; f <= SMAPS_MAPS; f++)
		check_int(read_file(c.pid, f), PROC_GONE);

	snprintf(path, sizeof(path), "2/stat");
	fd = openat(proc_fd, path, O_RDONLY);
	n = fd < 0 ? 0 : (int)read(fd, stat, sizeof(stat) - 1);
	close(fd);
	stat[MAX(n, 0)] = '\0';
	if (!strrchr(stat, ')') ||
	    sscanf(strrchr(stat, ')') + 2, "%*c %*d %*d %*d %*d %*d %lu",
		   &flags) != 1 ||
	    !(flags & STAT_FLAG_KTHREAD))
		return; /* in a PID namespace of our own */
	for (unsigned f = SMAPS_ROLLUP; f <= SMAPS_MAPS; f++)
		check_int(read_file(2, f), SMAPS_NO_MEMORY);
}

static void *wait_and_stay(void *arg)
{
	char text[64];

	while (state_of("self") != 'Z')
		sched_yield();
	snprintf(text, sizeof(text), "%d", (int)gettid());
	if (write(*(int *)arg, text, sizeof(text)) < 0)
		_exit(1);
	for (;;)
		pause();
}

static void dead_leader(void)
{
	struct smaps_ask ask;
	struct smaps s;
	char tid[64] = "";
	int from[2];
	pid_t pid;

	if (pipe(from))
		abort();
	pid = fork();
	if (pid == 0) {
		pthread_t thread;

		pthread_create(&thread, NULL, wait_and_stay, &from[1]);
		syscall(SYS_exit, 0);
	}
	check(read(from[0], tid, sizeof(tid)) > 0);
	for (unsigned f = SMAPS_ROLLUP; f <= SMAPS_MAPS; f++) {
		ask = ask_for(pid, f);
		check_int(smaps_read(&ask, &s), SMAPS_NO_MEMORY);
		ask.live_tid = atoi(tid);
		check_int(smaps_read(&ask, &s), 0);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(from[0]);
	close(from[1]);
}

static void *let_go(void *arg)
{
	struct child *c = arg;
	struct timespec ts = {.tv_nsec = 3000000};

	nanosleep(&ts, NULL);
	close(c->to);
	return NULL;
}

/* Each of them in the midst of a text of some thousand mappings. */
static void exec_meanwhile(void)
{
	enum { MANY = 30000 };
	unsigned n_before = 0, n_after = 0, n_part = 0;

	for (unsigned i = 0; i < 20; i++) {
		bool exec = i % 2;
		struct smaps s = {0};
		struct smaps_ask ask;
		struct child c;
		pthread_t thread;
		int r;

		start_child(&c, MANY, exec);
		ask = ask_for(c.pid, i % 4 < 2 ? SMAPS_FULL : SMAPS_MAPS);
		pthread_create(&thread, NULL, let_go, &c);
		r = smaps_read(&ask, &s);
		pthread_join(thread, NULL);
		c.to = dup(c.from);
		if (r == 0 && s.n_mappings >= MANY)
			n_before++;
		else if (r == 0 && exec && s.n_mappings < 200)
			n_after++;
		else if (r == 0)
			n_part++;
		else
			check_int(r, SMAPS_NO_MEMORY);
		end_child(&c);
	}
	check_int(n_part, 0);
	/* It has to have happened. */
	check(n_before < 20);
	printf("# %u before, %u after exec\n", n_before, n_after);
}

/* Files below a directory of our own. */

static char fake[] = "/tmp/smaps.XXXXXX";

static void put(const char *path, const char *text)
{
	char full[128];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", fake, path);
	for (char *at = full + strlen(fake) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(full, 0755);
		*at = '/';
	}
	f = fopen(full, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
}

static int remove_entry(const char *path, const struct stat *st, int type,
			struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void clear(void)
{
	int real = proc_fd;

	nftw(fake, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	mkdir(fake, 0755);
	close(real);
	proc_fd = open(fake, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static struct smaps_host probed(void)
{
	struct smaps_host h;

	smaps_host_probe(&h, proc_fd);
	return h;
}

static void what_host_has(void)
{
	struct smaps_host h;

	clear();
	put("1/stat", "");
	put("1/smaps", "");
	put("1/smaps_rollup", "");
	check_int(probed().file, SMAPS_ROLLUP);
	check(probed().sure);
	put("self/stat", "");
	check_int(probed().file, SMAPS_NONE);
	check(probed().sure);
	put("self/smaps", "");
	check_int(probed().file, SMAPS_FULL);
	put("self/smaps_rollup", "");
	check_int(probed().file, SMAPS_ROLLUP);
	h = probed();
	smaps_host_learn(&h, SMAPS_ROLLUP, SMAPS_NO_FILE);
	check_int(h.file, SMAPS_ROLLUP);

	clear();
	h = probed();
	check(!h.sure);
	smaps_host_learn(&h, SMAPS_ROLLUP, PROC_GONE);
	smaps_host_learn(&h, SMAPS_ROLLUP, PROC_DENIED);
	smaps_host_learn(&h, SMAPS_ROLLUP, SMAPS_NO_MEMORY);
	smaps_host_learn(&h, SMAPS_MAPS, SMAPS_NO_FILE);
	check_int(h.file, SMAPS_ROLLUP);
	smaps_host_learn(&h, SMAPS_ROLLUP, SMAPS_NO_FILE);
	check_int(h.file, SMAPS_FULL);
	/* An answer that was on its way. */
	smaps_host_learn(&h, SMAPS_ROLLUP, SMAPS_NO_FILE);
	check_int(h.file, SMAPS_FULL);
	smaps_host_learn(&h, SMAPS_FULL, SMAPS_NO_FILE);
	check_int(h.file, SMAPS_NONE);
	check_int(read_file(1, SMAPS_NONE), SMAPS_NO_FILE);

	h = probed();
	smaps_host_learn(&h, SMAPS_ROLLUP, 0);
	smaps_host_learn(&h, SMAPS_ROLLUP, SMAPS_NO_FILE);
	check_int(h.file, SMAPS_ROLLUP);
}

static void fallback(void)
{
	struct smaps_host h;
	struct smaps_ask ask;
	struct smaps s;

	clear();
	put("8204/stat", "");
	put("8204/smaps", full_text);
	put("8210/smaps", full_text);
	h = probed();
	/* 8210 has no stat: it has ended. */
	check_int(read_file(8210, h.file), PROC_GONE);
	ask = ask_for(8204, h.file);
	smaps_host_learn(&h, h.file, smaps_read(&ask, &s));
	check_int(h.file, SMAPS_FULL);
	ask.file = h.file;
	check_int(smaps_read(&ask, &s), 0);
	check_u64(s.value[SMAPS_PSS], 128 * KIB);
	put("8204/smaps", "00400000-00452000 r-xp\nRss: 1 kB\n");
	check_int(smaps_read(&ask, &s), PROC_ABSENT);
	put("8204/smaps", "Pss: 1 kB\nPss: 1");
	check_int(smaps_read(&ask, &s), -EBADMSG);
}

static void failures(void)
{
	static const struct {
		const char *call;
		int err, want;
	} f[] = {
	    {"open", EACCES, PROC_DENIED},    {"open", EPERM, PROC_DENIED},
	    {"open", ESRCH, SMAPS_NO_MEMORY}, {"read", ESRCH, SMAPS_NO_MEMORY},
	    {"read", 0, SMAPS_NO_MEMORY},     {"open", EMFILE, -EMFILE},
	    {"read", EINTR, -EINTR},	      {"read", EACCES, PROC_DENIED},
	    {"open", ENOENT, SMAPS_NO_FILE},
	};

	clear();
	put("2/stat", "");
	put("2/smaps_rollup", rollup_text);
	put("3/smaps_rollup", rollup_text);
	for (unsigned i = 0; i < ARRAY_SIZE(f); i++) {
		inject_add("2/smaps_rollup", f[i].call, f[i].err, 0);
		check_int(read_file(2, SMAPS_ROLLUP), f[i].want);
		inject_clear();
	}
	inject_add("3/smaps_rollup", "open", ESRCH, 0);
	check_int(read_file(3, SMAPS_ROLLUP), PROC_GONE);
	inject_clear();
	inject_add("3/smaps_rollup", "read", ESRCH, 0);
	check_int(read_file(3, SMAPS_ROLLUP), PROC_GONE);
	inject_clear();
	/* As exec does to a descriptor: the next one is good. */
	inject_add("2/smaps_rollup", "read", ESRCH, 1);
	check_int(read_file(2, SMAPS_ROLLUP), 0);
	inject_clear();
	/* The usual reading is one read, without a second one for its end. */
	inject_forget();
	check_int(read_file(2, SMAPS_ROLLUP), 0);
	check_int(inject_calls("2/smaps_rollup", "open"), 1);
	check_int(inject_calls("2/smaps_rollup", "read"), 1);
	check_int(inject_calls("2/stat", "stat"), 0);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!mkdtemp(fake))
		return 1;
	TEST("smaps_rollup gives RSS, PSS, USS and the share in swap",
	     rollup_values);
	TEST("smaps is summed over its mappings", full_values);
	TEST("a key counts whole and at the start of a line only", exact_keys);
	TEST("a value without its key is absent", missing_keys);
	TEST("a value with an odd or too large part is absent", odd_values);
	TEST("a text that was cut off gives nothing", cut_off);
	TEST("a text may be cut anywhere into pieces", any_split);
	TEST("a name may be long and look like a value", long_names);
	TEST("random texts in random pieces give what a simple reader sees",
	     random_bytes);
	TEST("rollup, smaps and maps of a process agree", own_files);
	TEST("the buffer may be of any size", small_buffers);
	TEST("kernel threads and zombies live without memory, the rest is gone",
	     without_memory);
	TEST("a process whose first thread ended is read through another",
	     dead_leader);
	TEST("exec and end in the midst of a text never give a part of it",
	     exec_meanwhile);
	TEST("the host decides once which file there is", what_host_has);
	TEST("without smaps_rollup smaps is read", fallback);
	TEST("every failure has its own outcome", failures);
	clear();
	rmdir(fake);
	return tap_done();
}
