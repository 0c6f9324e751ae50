/* SPDX-License-Identifier: MIT */
/*
 * The accounting of GPU clients. Each test is a story in lines:
 *
 *	at S				a tick begins, at S seconds
 *	read NAME [WORD=VALUE...]	a client is read; words see read_words[]
 *	text SAMPLE [since=S]		the same, from tests/gpu-samples/fdinfo
 *	hold NAME PID START [broker]	somebody holds it
 *	stands NAME			it was not read, and its memory stands
 *	end				the tick ends
 *	use PID ENGINE NS PERCENT	what that process must have got; "-" is
 *	load PID ENGINE PERCENT		no percentage
 *	memory PID REGION BYTES [SHARED]
 *	clients PID N SHARED
 *	unseen PID
 *	nothing PID			it has no result, or one without uses
 *	fell N				counters that fell so far
 *
 * What is not mentioned after "end" is not looked at.
 */
#include "gpu-fdinfo.h"
#include "tap.h"

#include <math.h>

enum {
	LABELS_MAX = 64,
	WORDS_MAX = 24,
};

struct story {
	struct gpu g;
	uint64_t now_ns;
	struct label {
		char name[64];
		int client;
	} label[LABELS_MAX];
	size_t n_labels;
	unsigned line;
	char *word[WORDS_MAX];
	size_t n_words;
};

static const char *story_name, *story_text;

static void complain(const struct story *s, const char *what)
{
	tap_fail(__FILE__, __LINE__, "%s: line %u: %s", story_name, s->line,
		 what);
}

static int *client_of(struct story *s, const char *name)
{
	struct label *l;

	for (size_t i = 0; i < s->n_labels; i++)
		if (strcmp(s->label[i].name, name) == 0)
			return &s->label[i].client;
	l = &s->label[s->n_labels++];
	snprintf(l->name, sizeof(l->name), "%s", name);
	l->client = -1;
	return &l->client;
}

/* No story begins when the host did. */
static uint64_t seconds(const char *s)
{
	return (uint64_t)((1000 + strtod(s, NULL)) * 1e9 + 0.5);
}

static struct gpu_engine *engine_of(struct gpu_reading *r, const char *name)
{
	for (unsigned i = 0; i < r->n_engines; i++)
		if (str_eq(r->engine[i].name, str_of(name)))
			return &r->engine[i];
	r->engine[r->n_engines] =
	    (struct gpu_engine){.name = str_of(name), .capacity = 1};
	return &r->engine[r->n_engines++];
}

static struct gpu_region *region_of(struct gpu_reading *r, const char *name)
{
	for (unsigned i = 0; i < r->n_regions; i++)
		if (str_eq(r->region[i].name, str_of(name)))
			return &r->region[i];
	r->region[r->n_regions] = (struct gpu_region){.name = str_of(name)};
	return &r->region[r->n_regions++];
}

static void set_busy(struct gpu_reading *r, const char *name, uint64_t a,
		     uint64_t b _unused_)
{
	struct gpu_engine *e = engine_of(r, name);

	e->has |= GPU_BUSY;
	e->busy_ns = a;
}

static void set_capacity(struct gpu_reading *r, const char *name, uint64_t a,
			 uint64_t b _unused_)
{
	engine_of(r, name)->capacity = a;
}

static void set_ratio(struct gpu_reading *r, const char *name, uint64_t a,
		      uint64_t b)
{
	struct gpu_engine *e = engine_of(r, name);

	e->has |= GPU_CYCLES | GPU_TOTAL;
	e->cycles = a;
	e->total_cycles = b;
}

static void set_cycles(struct gpu_reading *r, const char *name, uint64_t a,
		       uint64_t b)
{
	struct gpu_engine *e = engine_of(r, name);

	e->has |= GPU_CYCLES | GPU_MAXFREQ;
	e->cycles = a;
	e->maxfreq_hz = b;
}

static void set_maxfreq(struct gpu_reading *r, const char *name, uint64_t a,
			uint64_t b _unused_)
{
	struct gpu_engine *e = engine_of(r, name);

	e->has |= GPU_MAXFREQ;
	e->maxfreq_hz = a;
}

static void set_grown(struct gpu_reading *r, const char *name, uint64_t a,
		      uint64_t b)
{
	struct gpu_engine *e = engine_of(r, name);

	e->has |= GPU_GROWN;
	e->busy_ns = a;
	e->window_ns = b;
}

static void set_resident(struct gpu_reading *r, const char *name, uint64_t a,
			 uint64_t b _unused_)
{
	struct gpu_region *m = region_of(r, name);

	m->has |= 1u << GPU_SIZE_RESIDENT;
	m->bytes[GPU_SIZE_RESIDENT] = a;
}

static void set_memory(struct gpu_reading *r, const char *name, uint64_t a,
		       uint64_t b _unused_)
{
	struct gpu_region *m = region_of(r, name);

	m->has |= 1u << GPU_SIZE_MEMORY;
	m->bytes[GPU_SIZE_MEMORY] = a;
}

static void set_total(struct gpu_reading *r, const char *name, uint64_t a,
		      uint64_t b)
{
	struct gpu_region *m = region_of(r, name);

	m->has |= 1u << GPU_SIZE_TOTAL | 1u << GPU_SIZE_SHARED;
	m->bytes[GPU_SIZE_TOTAL] = a;
	m->bytes[GPU_SIZE_SHARED] = b;
}

/* WORD:NAME=A or WORD:NAME=A/B */
static const struct {
	const char *word;
	void (*set)(struct gpu_reading *r, const char *name, uint64_t a,
		    uint64_t b);
} read_words[] = {
    {"busy", set_busy},		/* ns */
    {"capacity", set_capacity}, /* engines */
    {"ratio", set_ratio},	/* cycles/total cycles */
    {"cycles", set_cycles},	/* cycles/highest frequency */
    {"maxfreq", set_maxfreq},	/* Hz, and nothing else */
    {"grown", set_grown},	/* ns/window ns */
    {"resident", set_resident}, /* bytes */
    {"memory", set_memory},	/* bytes, older word */
    {"total", set_total},	/* bytes/shared bytes */
};

static bool set_word(struct gpu_reading *r, char *word, char *value)
{
	char *name = strchr(word, ':'), *slash = strchr(value, '/');

	if (!name)
		return false;
	*name++ = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(read_words); i++)
		if (strcmp(word, read_words[i].word) == 0) {
			read_words[i].set(r, name, strtoull(value, NULL, 10),
					  slash ? strtoull(slash + 1, NULL, 10)
						: 0);
			return true;
		}
	return false;
}

static enum gpu_id_kind kind_of(const char *s)
{
	return strcmp(s, "pasid") == 0	? GPU_ID_PASID
	       : strcmp(s, "nvml") == 0 ? GPU_ID_NVML
	       : strcmp(s, "kfd") == 0	? GPU_ID_KFD
					: GPU_ID_CLIENT;
}

static void do_read(struct story *s)
{
	struct gpu_reading r = {
	    .driver = STR("amdgpu"),
	    .device = STR("0000:03:00.0"),
	    .id = hash_bytes(str_of(s->word[1])),
	    .read_ns = s->now_ns,
	};
	int *client = client_of(s, s->word[1]);
	uint64_t since_ns = 0;

	for (size_t i = 2; i < s->n_words; i++) {
		char *word = s->word[i], *value = strchr(word, '=');

		if (value)
			*value++ = '\0';
		if (strcmp(word, "alone") == 0)
			r.only_if_alone = true;
		else if (strcmp(word, "unseen") == 0)
			r.has_unseen = true;
		else if (!value)
			complain(s, "a word without a value");
		else if (strcmp(word, "driver") == 0)
			r.driver = str_of(value);
		else if (strcmp(word, "device") == 0)
			r.device = str_of(value);
		else if (strcmp(word, "kind") == 0)
			r.kind = kind_of(value);
		else if (strcmp(word, "id") == 0)
			r.id = strtoull(value, NULL, 10);
		else if (strcmp(word, "since") == 0)
			since_ns = seconds(value);
		else if (strcmp(word, "at") == 0)
			r.read_ns = seconds(value);
		else if (!set_word(&r, word, value))
			complain(s, "an unknown word");
	}
	*client = gpu_take(&s->g, *client, &r, since_ns);
	if (*client < 0)
		complain(s, "the client was not taken");
}

static void do_text(struct story *s)
{
	const char *srcdir = getenv("srcdir");
	int *client = client_of(s, s->word[1]);
	uint64_t since_ns = 0;
	char path[1024], text[8192];
	struct gpu_reading r;
	size_t n;
	FILE *f;

	if (s->n_words > 2)
		since_ns = seconds(s->word[2] + strlen("since="));
	snprintf(path, sizeof(path), "%s/tests/gpu-samples/fdinfo/%s.txt",
		 srcdir ? srcdir : ".", s->word[1]);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof(text), f) : 0;
	if (f)
		fclose(f);
	if (gpu_fdinfo_parse((struct str){text, n}, &r)) {
		*client = -1; /* it is of no client: nobody can hold it */
		return;
	}
	if (!r.device.n)
		r.device = STR("platform");
	r.read_ns = s->now_ns;
	*client = gpu_take(&s->g, *client, &r, since_ns);
}

static void do_hold(struct story *s)
{
	struct gpu_holder h = {
	    .pid = atoi(s->word[2]),
	    .start = strtoull(s->word[3], NULL, 10),
	    .is_broker = s->n_words > 4,
	};
	int client = *client_of(s, s->word[1]);

	if (client >= 0)
		gpu_hold(&s->g, client, &h);
}

static const struct gpu_process *process_of(const struct story *s)
{
	pid_t pid = atoi(s->word[1]);

	for (size_t i = 0; i < s->g.n_processes; i++)
		if (s->g.process[i].pid == pid)
			return &s->g.process[i];
	return NULL;
}

static const struct gpu_use *use_of(const struct story *s, enum gpu_kind kind)
{
	const struct gpu_process *p = process_of(s);

	for (size_t i = 0; p && i < p->n_uses; i++) {
		const struct gpu_series *se = &s->g.series[p->use[i].series];

		if ((se->kind == kind ||
		     (kind == GPU_KIND_BUSY && se->kind == GPU_KIND_EVICTED)) &&
		    strcmp(se->name, s->word[2]) == 0)
			return &p->use[i];
	}
	return NULL;
}

static bool is_percent(const struct gpu_use *u, const char *want)
{
	if (strcmp(want, "-") == 0)
		return !u->has_percent;
	return u->has_percent && fabs(u->percent - strtod(want, NULL)) < 1e-9;
}

static void want_use(struct story *s)
{
	const struct gpu_use *u = use_of(s, GPU_KIND_BUSY);

	if (!u) {
		complain(s, "no such use");
		return;
	}
	if (u->grown_ns != strtoull(s->word[3], NULL, 10) ||
	    !is_percent(u, s->word[4])) {
		complain(s, "another use:");
		printf("# %" PRIu64 " ns, %s%.12g %%\n", u->grown_ns,
		       u->has_percent ? "" : "not ", u->percent);
	}
}

static void want_load(struct story *s)
{
	const struct gpu_use *u = use_of(s, GPU_KIND_LOAD);

	if (!u || u->grown_ns || !is_percent(u, s->word[3])) {
		complain(s, "another load, or none:");
		printf("# %.12g %%\n", u ? u->percent : -1);
	}
}

static void want_memory(struct story *s)
{
	const struct gpu_process *p = process_of(s);
	const struct gpu_memory *m = NULL;
	bool has_shared = s->n_words > 4;

	for (size_t i = 0; p && i < p->n_memories && !m; i++)
		if (strcmp(s->g.series[p->memory[i].series].name, s->word[2]) ==
		    0)
			m = &p->memory[i];
	if (strcmp(s->word[3], "-") == 0) {
		if (m)
			complain(s, "there is memory");
		return;
	}
	if (!m) {
		complain(s, "no such memory");
		return;
	}
	if (m->resident != strtoull(s->word[3], NULL, 10) ||
	    m->has_shared != has_shared ||
	    (has_shared && m->shared != strtoull(s->word[4], NULL, 10))) {
		complain(s, "other memory:");
		printf("# %" PRIu64 ", shared %" PRIu64 "\n", m->resident,
		       m->shared);
	}
}

static void want_clients(struct story *s)
{
	const struct gpu_process *p = process_of(s);

	if ((p ? p->n_clients : 0) != (unsigned)atoi(s->word[2]) ||
	    (p ? p->n_shared : 0) != (unsigned)atoi(s->word[3]))
		complain(s, "another number of clients");
}

static void want_unseen(struct story *s)
{
	const struct gpu_process *p = process_of(s);

	if (!p || !p->has_unseen)
		complain(s, "all is seen");
}

static void want_nothing(struct story *s)
{
	const struct gpu_process *p = process_of(s);

	if (p && p->n_uses)
		complain(s, "it has uses");
}

static void want_off(struct story *s)
{
	if (gpu_is_profiling_off(&s->g) != (strcmp(s->word[1], "yes") == 0))
		complain(s, "profiling is on or off");
}

static void do_at(struct story *s)
{
	s->now_ns = seconds(s->word[1]);
	gpu_begin(&s->g);
}

static void do_stands(struct story *s)
{
	gpu_stands(&s->g, *client_of(s, s->word[1]));
}

static void do_end(struct story *s)
{
	if (gpu_end(&s->g) < 0)
		complain(s, "no results");
}

static void want_fell(struct story *s)
{
	if (s->g.counts.n_fell != strtoull(s->word[1], NULL, 10))
		complain(s, "another number of counters fell");
}

static const struct {
	const char *word;
	size_t n_words; /* at least */
	void (*fn)(struct story *s);
} commands[] = {
    {"at", 2, do_at},
    {"read", 2, do_read},
    {"text", 2, do_text},
    {"hold", 4, do_hold},
    {"stands", 2, do_stands},
    {"end", 1, do_end},
    {"use", 5, want_use},
    {"load", 4, want_load},
    {"memory", 4, want_memory},
    {"clients", 4, want_clients},
    {"unseen", 2, want_unseen},
    {"nothing", 2, want_nothing},
    {"profiling-off", 2, want_off},
    {"fell", 2, want_fell},
};

static void run_line(struct story *s, char *line)
{
	char *at;

	s->n_words = 0;
	for (char *w = strtok_r(line, " ", &at); w && s->n_words < WORDS_MAX;
	     w = strtok_r(NULL, " ", &at))
		s->word[s->n_words++] = w;
	if (!s->n_words)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(s->word[0], commands[i].word) == 0 &&
		    s->n_words >= commands[i].n_words) {
			commands[i].fn(s);
			return;
		}
	complain(s, "an unknown line");
}

static void run_story(void)
{
	struct story *s = calloc(1, sizeof(*s));
	char *text = strdup(story_text), *at;

	gpu_init(&s->g);
	for (char *line = text; line; line = at) {
		at = strchr(line, '\n');
		if (at)
			*at++ = '\0';
		s->line++;
		run_line(s, line);
	}
	gpu_done(&s->g);
	free(text);
	free(s);
}

static const struct {
	const char *name, *text;
} stories[] = {
    {"a client in many descriptors and processes counts once",
     "at 0\n"
     "read a busy:gfx=5000000000 resident:vram=1024\n"
     "read a busy:gfx=5000000000 resident:vram=1024\n"
     "hold a 500 10\nhold a 500 10\nhold a 501 20\n"
     "end\n"
     "use 500 render 0 -\nmemory 500 device 1024\nclients 500 1 1\n"
     "nothing 501\nclients 501 0 0\n"
     "at 10\n"
     "read a busy:gfx=7000000000 resident:vram=1024\n"
     "read a busy:gfx=7500000000 resident:vram=2048\n"
     "hold a 500 10\nhold a 501 20\n"
     "end\n"
     "use 500 render 2500000000 25\nmemory 500 device 2048\n"},
    {"clients of two devices with the same number are two",
     "at 0\n"
     "read a id=7 device=0000:03:00.0 busy:gfx=0 resident:vram=1\n"
     "read b id=7 device=0000:04:00.0 busy:gfx=0 resident:vram=2\n"
     "read c id=7 driver=i915 device=0000:03:00.0 busy:render=0\n"
     "read d id=7 kind=pasid device=0000:03:00.0 busy:gfx=0\n"
     "hold a 500 10\nhold b 500 10\nhold c 500 10\nhold d 500 10\n"
     "end\n"
     "clients 500 4 0\n"},
    {"what was used before we looked is a baseline",
     "at 100\nread a busy:gfx=90000000000\nhold a 500 10\nend\n"
     "use 500 render 0 -\n"
     "at 110\nread a busy:gfx=93000000000\nhold a 500 10\nend\n"
     "use 500 render 3000000000 30\n"},
    {"who was born before our eyes counts whole",
     "at 100\nread a since=96 busy:gfx=3000000000\nhold a 500 10\nend\n"
     "use 500 render 3000000000 75\n"},
    {"no client can have been busy for longer than it can be there",
     "at 100\n"
     "read a since=96 busy:gfx=30000000000 busy:video=30000000000 "
     "capacity:video=2\n"
     "hold a 500 10\nend\n"
     "use 500 render 4000000000 100\nuse 500 video 8000000000 100\n"
     "at 110\nread a busy:gfx=31000000000 busy:video=30000000000 "
     "capacity:video=2\n"
     "hold a 500 10\nend\n"
     "use 500 render 1000000000 10\nuse 500 video 0 0\n"},
    {"an engine that a known client did not have begins at 0",
     "at 0\nread a busy:gfx=1\nhold a 500 10\nend\n"
     "at 10\nread a busy:gfx=1 busy:jpeg=1500000\nhold a 500 10\nend\n"
     "use 500 decode 1500000 0.015\n"},
    {"an engine whose counting was switched on begins where it is",
     "at 0\nread a maxfreq:fragment=800000000\nhold a 500 10\nend\n"
     "nothing 500\nprofiling-off yes\n"
     "at 10\nread a maxfreq:fragment=800000000 busy:fragment=99000000000\n"
     "hold a 500 10\nend\n"
     "use 500 render 0 -\nprofiling-off no\n"
     "at 20\nread a maxfreq:fragment=800000000 busy:fragment=99500000000\n"
     "hold a 500 10\nend\n"
     "use 500 render 500000000 5\n"
     "at 30\nread a maxfreq:fragment=800000000\nhold a 500 10\nend\n"
     "nothing 500\nprofiling-off yes\n"
     "at 40\nread a maxfreq:fragment=800000000 busy:fragment=99500000000\n"
     "hold a 500 10\nend\n"
     "use 500 render 0 0\n"},
    {"a counter that falls counts 0 until it has caught up",
     "at 0\nread a busy:gfx=4000000000\nhold a 500 10\nend\n"
     "at 10\nread a busy:gfx=3999990000\nhold a 500 10\nend\n"
     "use 500 render 0 0\nfell 1\n"
     "at 20\nread a busy:gfx=3999999999\nhold a 500 10\nend\n"
     "use 500 render 0 0\nfell 2\n"
     "at 30\nread a busy:gfx=4000000100\nhold a 500 10\nend\n"
     "use 500 render 100 0.000001\nfell 2\n"},
    {"a counter that stays low has begun anew",
     "at 0\nread a busy:gfx=4000000000\nhold a 500 10\nend\n"
     "at 10\nread a busy:gfx=100\nhold a 500 10\nend\n"
     "at 20\nread a busy:gfx=200\nhold a 500 10\nend\n"
     "at 30\nread a busy:gfx=300\nhold a 500 10\nend\n"
     "use 500 render 0 0\n"
     "at 40\nread a busy:gfx=400\nhold a 500 10\nend\n"
     "use 500 render 0 0\nfell 4\n"
     "at 50\nread a busy:gfx=1000000400\nhold a 500 10\nend\n"
     "use 500 render 1000000000 10\nfell 4\n"},
    {"descriptors of one client read apart do not make it low",
     "at 0\nread a busy:gfx=900\nhold a 500 10\nend\n"
     "at 10\nread a busy:gfx=800\nread a busy:gfx=801\nread a busy:gfx=802\n"
     "read a busy:gfx=803\nread a busy:gfx=804\nhold a 500 10\nend\n"
     "fell 1\n"
     "at 20\nread a busy:gfx=1000\nhold a 500 10\nend\n"
     "use 500 render 100 0.000001\n"},
    {"a session manager's client is that of who got it",
     "at 0\nread a busy:gfx=0 resident:vram=5\n"
     "hold a 1 1 broker\nhold a 700 900 broker\nhold a 1200 5000\nend\n"
     "clients 1 0 0\nclients 700 0 0\nclients 1200 1 1\n"
     "memory 1200 device 5\n"},
    {"a session manager that holds it alone has it, until somebody else does",
     "at 0\nread a busy:gfx=0\nhold a 700 900 broker\nend\n"
     "clients 700 1 0\n"
     "at 10\nread a busy:gfx=1000000000\n"
     "hold a 700 900 broker\nhold a 1200 5000\nend\n"
     "clients 700 0 0\nuse 1200 render 1000000000 10\n"},
    {"the oldest holder is the owner, then the lowest number",
     "at 0\nread a busy:gfx=0\nread b busy:gfx=0\n"
     "hold a 1310 6100\nhold a 1300 6000\nhold a 1320 6200\n"
     "hold b 1311 6100\nhold b 1310 6100\n"
     "end\n"
     "clients 1300 1 1\nclients 1310 1 1\nclients 1311 0 0\n"},
    {"the owner stays who it was while it holds the client",
     "at 0\nread a busy:gfx=0\nhold a 1310 6100\nend\n"
     "at 10\nread a busy:gfx=1000000000\n"
     "hold a 1300 6000\nhold a 1310 6100\nend\n"
     "use 1310 render 1000000000 10\nclients 1300 0 0\n"},
    {"a client that changes hands makes no spike",
     "at 0\nread a busy:gfx=50000000000\nhold a 1300 6000\n"
     "hold a 1310 6100\nend\n"
     "at 10\nread a busy:gfx=51000000000\nhold a 1310 6100\nend\n"
     "use 1310 render 1000000000 10\nclients 1300 0 0\n"
     "at 20\nread a busy:gfx=51500000000\nhold a 1400 9000\nend\n"
     "use 1400 render 500000000 5\n"},
    {"a reused number of a process is not its owner",
     "at 0\nread a busy:gfx=0\nhold a 500 10\nend\n"
     "at 10\nread a busy:gfx=1000000000\nhold a 500 99\nhold a 490 50\nend\n"
     "use 490 render 1000000000 10\n"},
    {"a client that is closed leaves no negative growth",
     "at 0\nread a busy:gfx=9000000000\nread b busy:gfx=100\n"
     "hold a 500 10\nhold b 500 10\nend\n"
     "at 10\nread b busy:gfx=200\nhold b 500 10\nend\n"
     "use 500 render 100 0.000001\nclients 500 1 0\n"},
    {"a client that was on its way for a while is not new",
     "at 0\nread a busy:gfx=50000000000\nhold a 500 10\nend\n"
     "at 10\nend\nclients 500 0 0\n"
     "at 20\nend\n"
     "at 30\nread a since=25 busy:gfx=51000000000\nhold a 600 99\nend\n"
     "use 600 render 1000000000 3.3333333333333\n"},
    {"a client that nobody held for long is forgotten",
     "at 0\nread a busy:gfx=50000000000\nhold a 500 10\nend\n"
     "at 1\nend\nat 2\nend\nat 3\nend\nat 4\nend\nat 5\nend\nat 6\nend\n"
     "at 7\nend\nat 8\nend\nat 9\nend\nat 10\nend\n"
     "at 20\nread a since=19 busy:gfx=51000000000\nhold a 600 99\nend\n"
     "use 600 render 1000000000 100\n"},
    {"what nobody held when it was read goes to who holds it next",
     "at 0\nread a busy:gfx=0\nhold a 500 10\nend\n"
     "at 10\nread a busy:gfx=1000000000\nend\n"
     "at 20\nread a busy:gfx=3000000000\nhold a 600 99\nend\n"
     "use 600 render 3000000000 20\n"},
    {"work that ends late is counted whole and makes more than 100 %",
     "at 0\nread a driver=msm busy:gpu=0\nhold a 500 10\nend\n"
     "at 10\nread a driver=msm busy:gpu=0\nhold a 500 10\nend\n"
     "use 500 render 0 0\n"
     "at 20\nread a driver=msm busy:gpu=30000000000\nhold a 500 10\nend\n"
     "use 500 render 30000000000 300\n"},
    {"a class of several engines is as busy as the busiest of them",
     "at 0\nread a busy:dec=0 busy:jpeg=0 busy:enc=0 busy:enc_1=0\n"
     "hold a 500 10\nend\n"
     "at 10\nread a busy:dec=9000000000 busy:jpeg=8000000000 "
     "busy:enc=1000000000 busy:enc_1=2000000000\n"
     "hold a 500 10\nend\n"
     "use 500 decode 17000000000 90\n"
     "use 500 enc 1000000000 10\nuse 500 encode 2000000000 20\n"},
    {"clients of one process add up",
     "at 0\nread a busy:gfx=0\nread b busy:gfx=0\nhold a 500 10\n"
     "hold b 500 10\nend\n"
     "at 10\nread a busy:gfx=9000000000\nread b busy:gfx=8000000000\n"
     "hold a 500 10\nhold b 500 10\nend\n"
     "use 500 render 17000000000 170\n"},
    {"each reading has a time of its own",
     "at 0\nread a at=0.5 busy:gfx=0\nhold a 500 10\nend\n"
     "at 10\nread a at=13 busy:gfx=10000000000\nhold a 500 10\nend\n"
     "use 500 render 10000000000 80\n"},
    {"a client that was not read has no use and no percentage",
     "at 0\nread a busy:gfx=0 resident:vram=5\nhold a 500 10\nend\n"
     "at 10\nhold a 500 10\nend\n"
     "nothing 500\nclients 500 1 0\nmemory 500 device 5\n"
     "at 20\nhold a 500 10\nend\n"
     "memory 500 device -\n"
     "at 30\nread a busy:gfx=3000000000 resident:vram=6\nhold a 500 10\n"
     "end\n"
     "use 500 render 3000000000 10\nmemory 500 device 6\n"},
    {"what a sleeping device holds stands",
     "at 0\nread a busy:gfx=0 resident:vram=5\nhold a 500 10\nend\n"
     "at 10\nhold a 500 10\nstands a\nend\n"
     "at 20\nhold a 500 10\nstands a\nend\n"
     "at 30\nhold a 500 10\nstands a\nend\n"
     "memory 500 device 5\nnothing 500\n"},
    {"cycles are measured by their own clock",
     "at 0\nread a driver=xe ratio:ccs=1000000/9120447810 capacity:ccs=4\n"
     "hold a 500 10\nend\n"
     "use 500 compute 0 -\n"
     "at 10\nread a driver=xe ratio:ccs=577000000/9312447810 "
     "capacity:ccs=4\n"
     "hold a 500 10\nend\n"
     "use 500 compute 30000000000 75\n"},
    {"a clock of cycles that stands still divides nothing",
     "at 0\nread a driver=xe ratio:rcs=10/1000\nhold a 500 10\nend\n"
     "at 10\nread a driver=xe ratio:rcs=10/1000\nhold a 500 10\nend\n"
     "nothing 500\n"
     "at 20\nread a driver=xe ratio:rcs=60/1100\nhold a 500 10\nend\n"
     "use 500 render 10000000000 50\n"},
    {"a clock of cycles that begins anew gives no value",
     "at 0\nread a driver=xe ratio:rcs=500/100000\nhold a 500 10\nend\n"
     "at 10\nread a driver=xe ratio:rcs=600/100\nhold a 500 10\nend\n"
     "nothing 500\n"
     "at 20\nread a driver=xe ratio:rcs=700/300\nhold a 500 10\nend\n"
     "use 500 render 5000000000 50\n"},
    {"first cycles wait until the speed of their clock is known",
     "at 10\nread a driver=xe since=5 ratio:rcs=100/1000\nhold a 500 10\n"
     "end\n"
     "use 500 render 0 -\n"
     "at 20\nread a driver=xe ratio:rcs=200/2000\nhold a 500 10\nend\n"
     "use 500 render 2000000000 13.333333333333\n"
     "at 30\nread a driver=xe ratio:rcs=300/3000\n"
     "read b driver=xe since=28 ratio:rcs=50/3000\n"
     "hold a 500 10\nhold b 600 99\nend\n"
     "use 500 render 1000000000 10\nuse 600 render 500000000 25\n"},
    {"first cycles count no longer than the client can be there",
     "at 10\nread a driver=xe ratio:rcs=0/1000\nhold a 500 10\nend\n"
     "at 20\nread a driver=xe ratio:rcs=0/2000\n"
     "read b driver=xe since=19 ratio:rcs=900/2000\n"
     "hold a 500 10\nhold b 600 99\nend\n"
     "use 600 render 1000000000 100\n"},
    {"cycles beyond all bounds are bounded",
     "at 0\nread a driver=xe ratio:rcs=0/1000\nhold a 500 10\nend\n"
     "at 10\nread a driver=xe ratio:rcs=9000000000000000000/1001\n"
     "read a driver=xe ratio:rcs=9100000000000000000/1002 at=11\n"
     "hold a 500 10\nend\n"
     "use 500 render 18446744073709551615 4.55e20\n"},
    {"cycles against a frequency are a load and no time",
     "at 0\nread a driver=panthor cycles:panthor=1000/1000000000\n"
     "hold a 500 10\nend\n"
     "nothing 500\nprofiling-off yes\n"
     "at 10\nread a driver=panthor cycles:panthor=2500001000/1000000000\n"
     "hold a 500 10\nend\n"
     "load 500 render 25\n"},
    {"time and cycles beside each other are not added",
     "at 0\nread a driver=msm busy:gpu=0 cycles:gpu=0/1000000000\n"
     "hold a 500 10\nend\n"
     "at 10\nread a driver=msm busy:gpu=8000000000 "
     "cycles:gpu=4000000000/1000000000\n"
     "hold a 500 10\nend\n"
     "use 500 render 8000000000 80\nload 500 render 40\n"
     "profiling-off no\n"},
    {"growth that is told as such counts at once",
     "at 10\nread a kind=nvml grown:sm=3000000000/10000000000 "
     "resident:vram=77\n"
     "hold a 500 10\nend\n"
     "use 500 sm 3000000000 30\nmemory 500 device 77\n"
     "at 20\nread a kind=nvml grown:sm=0/10000000000\nhold a 500 10\nend\n"
     "use 500 sm 0 0\nmemory 500 device -\n"},
    {"memory is told by device and system, and what is none is not",
     "at 0\n"
     "read a resident:vram=1 resident:vram1=2 resident:local0=4 "
     "resident:stolen=8 resident:stolen-local0=16 resident:system=32 "
     "resident:system0=64 resident:gtt=128 resident:cpu=256 "
     "resident:memory=512 resident:stolen-system0=1024 resident:gds=2048 "
     "resident:gws=1 resident:oa=1 resident:doorbell=1\n"
     "read b resident:mmioremap=1 resident:hbm2e=5 resident:vramish=6\n"
     "hold a 500 10\nhold b 500 10\nend\n"
     "memory 500 device 31\nmemory 500 system 2016\n"
     "memory 500 hbm2e 5\nmemory 500 vramish 6\nmemory 500 gds -\n"
     "memory 500 mmioremap -\n"},
    {"resident memory is not added to its older name",
     "at 0\nread a resident:vram=5 memory:vram=6 memory:gtt=7\n"
     "hold a 500 10\nend\n"
     "memory 500 device 5\nmemory 500 system 7\n"},
    {"memory without a line for what is resident has nothing there",
     "at 0\nread a total:vram=100/10 total:gtt=30/4 resident:gtt=20\n"
     "hold a 500 10\nend\n"
     "memory 500 device 0 10\nmemory 500 system 20 4\n"},
    {"a client without figures is a client and nothing else",
     "at 0\nread a driver=i915\nhold a 500 10\nend\n"
     "clients 500 1 0\nnothing 500\nmemory 500 device -\n"},
    {"memory that two backends tell counts once",
     "at 0\nread a resident:vram=1000\n"
     "read k kind=kfd driver=kfd alone unseen resident:vram=900\n"
     "read o kind=kfd driver=kfd device=0000:04:00.0 alone "
     "resident:vram=50\n"
     "hold a 500 10\nhold k 500 10\nhold o 500 10\nend\n"
     "memory 500 device 1000\nclients 500 2 0\nunseen 500\n"
     "at 10\n"
     "read k kind=kfd driver=kfd alone unseen resident:vram=900\n"
     "hold k 500 10\nend\n"
     "memory 500 device 900\nclients 500 1 0\n"},
    {"the time that memory was elsewhere is no busy time",
     "at 0\nread k kind=kfd driver=kfd alone busy:evicted=1000000\n"
     "hold k 500 10\nend\n"
     "at 10\nread k kind=kfd driver=kfd alone busy:evicted=5000000\n"
     "hold k 500 10\nend\n"
     "use 500 evicted 4000000 0.04\n"},
    {"sample i915-6.1-execlists",
     "at 0\ntext i915-6.1-execlists-t0\nhold i915-6.1-execlists-t0 500 10\n"
     "end\n"
     "at 10\ntext i915-6.1-execlists-t1\nhold i915-6.1-execlists-t1 500 10\n"
     "end\n"
     "use 500 render 5000000000 50\nuse 500 copy 0 0\n"
     "use 500 video 15000000000 75\nuse 500 video-enhance 0 0\n"
     "clients 500 1 0\n"},
    {"sample amdgpu-6.18-full",
     "at 0\ntext amdgpu-6.18-full-t0\nhold amdgpu-6.18-full-t0 500 10\nend\n"
     "at 10\ntext amdgpu-6.18-full-t1\nhold amdgpu-6.18-full-t1 500 10\nend\n"
     "use 500 render 0 0\nuse 500 compute 9500000000 95\nuse 500 copy 0 0\n"
     "use 500 decode 1500000 0.015\nclients 500 1 0\n"
     "memory 500 device 5476352 1572864\n"
     "memory 500 system 25872584704 12582912\n"},
    {"sample xe-6.12-dg2",
     "at 0\ntext xe-6.12-dg2-t0\nhold xe-6.12-dg2-t0 500 10\nend\n"
     "at 10\ntext xe-6.12-dg2-t1\nhold xe-6.12-dg2-t1 500 10\nend\n"
     "use 500 render 5000000000 50\nuse 500 video 1000000000 5\n"
     "use 500 video-enhance 0 0\nuse 500 copy 0 0\n"
     "use 500 compute 30000000000 75\nclients 500 1 0\n"},
    {"five clients in six processes",
     "at 0\n"
     "text i915-6.8-dg2-memory\ntext xe-6.12-dg2-t0\n"
     "text xe-6.8-memory-only\ntext amdgpu-6.12-shared\n"
     "text amdgpu-6.18-full-t0\ntext none-dmabuf\ntext nvidia-none\n"
     "hold i915-6.8-dg2-memory 700 900 broker\n"
     "hold i915-6.8-dg2-memory 1200 5000\n"
     "hold i915-6.8-dg2-memory 1200 5000\n"
     "hold xe-6.12-dg2-t0 1200 5000\n"
     "hold xe-6.8-memory-only 1300 6000\n"
     "hold xe-6.8-memory-only 1310 6100\n"
     "hold xe-6.8-memory-only 1320 6200\n"
     "hold amdgpu-6.12-shared 2000 9000\n"
     "hold amdgpu-6.18-full-t0 2000 9000\n"
     "hold none-dmabuf 2000 9000\nhold nvidia-none 2000 9000\n"
     "end\n"
     "clients 700 0 0\nclients 1200 2 1\nclients 1300 1 1\n"
     "clients 1310 0 0\nclients 1320 0 0\nclients 2000 2 0\n"
     "memory 1200 device 3489726464 33554432\n"
     "memory 1300 device 32006144 16777216\n"},
    {"case gpu-01: a duplicate that is read later counts its larger value",
     "at 10\ntext case-01-fd-7 since=5\ntext case-01-fd-8 since=5\n"
     "text case-01-fd-9 since=5\n"
     "hold case-01-fd-7 500 10\nhold case-01-fd-8 500 10\n"
     "hold case-01-fd-9 500 10\nend\n"
     "use 500 render 1000503000 20.01006\nmemory 500 device 2113536\n"
     "clients 500 2 0\n"},
    {"case gpu-04: cycles instead of time",
     "at 0\ntext case-04-t0\nhold case-04-t0 530 10\nend\n"
     "at 10\ntext case-04-t1\nhold case-04-t1 530 10\nend\n"
     "use 530 render 3000000000 30\nuse 530 compute 0 0\n"
     "at 20\ntext case-04-t1\nhold case-04-t1 530 10\nend\n"
     "nothing 530\n"},
    {"case gpu-05: engines in groups",
     "at 0\ntext case-05-t0\nhold case-05-t0 540 10\nend\n"
     "at 10\ntext case-05-t1\nhold case-05-t1 540 10\nend\n"
     "use 540 video 12000000000 60\n"},
    {"case gpu-06: each line has a unit of its own",
     "at 0\ntext case-06\nhold case-06 550 10\nend\n"
     "memory 550 device 4096\nmemory 550 system 5242880\nnothing 550\n"},
    {"case gpu-11: engines nobody has heard of",
     "at 10\ntext case-11 since=5\nhold case-11 580 10\nend\n"
     "use 580 render 3706467 0.07412934\nuse 580 compute 101456 "
     "0.00202912\nuse 580 npu 5 0.0000001\n"},
};

/* A series is a device and a class, in names that anybody can keep. */
static void names(void)
{
	static const struct {
		const char *engine, *class;
	} want[] = {
	    {"gfx", "render"},
	    {"rcs", "render"},
	    {"fragment", "render"},
	    {"gpu", "render"},
	    {"panthor", "render"},
	    {"ccs", "compute"},
	    {"csd", "compute"},
	    {"dma", "copy"},
	    {"bcs", "copy"},
	    {"tfu", "copy"},
	    {"dec", "decode"},
	    {"jpeg", "decode"},
	    {"enc", "enc"},
	    {"enc_1", "encode"},
	    {"vcs", "video"},
	    {"video", "video"},
	    {"vecs", "video-enhance"},
	    {"video-enhance", "video-enhance"},
	    {"vpe", "video-enhance"},
	    {"npu-amdxdna", "npu"},
	    {"amdxdna_accel_driver", "npu"},
	    {"bin", "bin"},
	    {"vertex-tiler", "vertex-tiler"},
	    {"cache_clean", "cache_clean"},
	    {"other", "other"},
	    {"npu", "npu"},
	};
	struct gpu_reading r = {
	    .driver = STR("shiny"),
	    .device = STR("0000:03:00.0"),
	};
	struct gpu g;

	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		check_str(gpu_engine_class(str_of(want[i].engine)),
			  want[i].class);
	gpu_init(&g);
	gpu_begin(&g);
	set_busy(&r, "a b/c\xff", 1, 0);
	check(gpu_take(&g, -1, &r, 0) >= 0);
	check_u64(g.n_series, 1);
	if (g.n_series) {
		check_text(g.series[0].device, "0000:03:00.0");
		check_text(g.series[0].name, "a_b_c_");
	}
	gpu_done(&g);
}

/* What is beyond the bounds is refused and counted, and does no harm. */
static void bounds(void)
{
	struct gpu_holder h = {.pid = 500, .start = 10};
	struct gpu_reading r = {
	    .driver = STR("shiny"),
	    .device = STR("d"),
	    .read_ns = 1,
	};
	char name[32];
	struct gpu g;
	int client;

	gpu_init(&g);
	for (uint64_t tick = 0; tick < 3; tick++) {
		gpu_begin(&g);
		r.n_engines = 0;
		for (unsigned i = 0; i < GPU_CLIENTS_MAX + 10; i++) {
			r.id = i;
			client = gpu_take(&g, -1, &r, 0);
			check_int(client,
				  i < GPU_CLIENTS_MAX ? (int)i : -ENOSPC);
			if (client >= 0)
				gpu_hold(&g, client, &h);
		}
		check_int(gpu_end(&g), 0);
		check_u64(g.n_processes, 1);
		check_u64(g.counts.n_refused, 10 * (tick + 1));
	}
	/* A client with ever new engines. */
	r.id = 0;
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		r.n_engines = 0;
		set_busy(&r, name, 1, 0);
		check_int(gpu_take(&g, 0, &r, 0), 0);
	}
	check(g.n_series <= GPU_SERIES_MAX);
	/* Ever new devices. */
	r.n_engines = 0;
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		r.device = str_of(name);
		client = gpu_take(&g, -1, &r, 0);
		check(client == -ENOSPC || client >= 0);
	}
	check_u64(g.n_devices, GPU_DEVICES_MAX);
	gpu_done(&g);
}

/* One place of a client is enough to read. */
static void claims(void)
{
	struct gpu_holder owner = {.pid = 500, .start = 10},
			  other = {.pid = 501, .start = 20};
	struct gpu_reading r = {.driver = STR("x"), .device = STR("d")};
	struct gpu g;
	int client;

	gpu_init(&g);
	gpu_begin(&g);
	client = gpu_take(&g, -1, &r, 0);
	gpu_hold(&g, client, &other);
	gpu_hold(&g, client, &owner);
	check_int(gpu_end(&g), 0);
	gpu_begin(&g);
	check(!gpu_claim(&g, client, &other, true));
	check(gpu_claim(&g, client, &owner, true));
	check(!gpu_claim(&g, client, &owner, true));
	check(!gpu_claim(&g, client, &other, false));
	gpu_unclaim(&g, client);
	check(gpu_claim(&g, client, &other, false));
	gpu_begin(&g);
	check(gpu_claim(&g, client, &other, false));
	gpu_done(&g);
}

/* A kind percentage is never more than 100, a counter is what it is. */
static void clamp(void)
{
	check(gpu_clamp(300) == 100);
	check(gpu_clamp(99.5) == 99.5);
	check(gpu_clamp(0) == 0);
}

static void brokers(void)
{
	check(gpu_is_broker(STR("systemd")));
	check(gpu_is_broker(STR("systemd-logind")));
	check(gpu_is_broker(STR("elogind")));
	check(gpu_is_broker(STR("seatd")));
	check(!gpu_is_broker(STR("systemd-resolve")));
	check(!gpu_is_broker(STR("sway")));
	check(!gpu_is_broker(STR("")));
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
		story_name = stories[i].name;
		story_text = stories[i].text;
		TEST(story_name, run_story);
	}
	TEST("engines have a class or their own, cleaned, name", names);
	TEST("clients, engines and devices are bounded", bounds);
	TEST("a client is read in one place, its owner's first", claims);
	TEST("a percentage is cut off at 100 in the gauge alone", clamp);
	TEST("session managers are known by their names", brokers);
	return tap_done();
}
