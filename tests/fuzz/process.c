/* SPDX-License-Identifier: MIT */
#include "process.h"

#include "cgroup.h"
#include "fuzz.h"
#include "proctext.h"

enum {
	CMDLINE_MAX = 64 * 1024, /* what the rules look at unless told more */
	ARGV0_SIZE = 256,	 /* longer ones are cut */
	PID_FIRST = 1000,
};

static void append(char **text, size_t *n, struct str more)
{
	char *grown = realloc(*text, *n + more.n + 1);

	if (!grown)
		return;
	*text = grown;
	if (*n)
		grown[(*n)++] = '\n';
	if (more.n)
		memcpy(grown + *n, more.s, more.n);
	*n += more.n;
}

static void repeat(struct process *p, struct str times)
{
	const char *at = times.s;
	struct str once = {p->cmdline, p->cmdline_n};
	uint64_t n;
	char *grown;

	if (!once.n || !proctext_number(&at, times.s + times.n, &n))
		return;
	n = MIN(n, CMDLINE_MAX / once.n);
	if (n < 2)
		return;
	grown = malloc(n * once.n);
	if (!grown)
		return;
	for (uint64_t i = 0; i < n; i++)
		memcpy(grown + i * once.n, once.s, once.n);
	free(p->cmdline);
	p->cmdline = grown;
	p->cmdline_n = n * once.n;
}

static uint64_t number(struct str text)
{
	const char *at = text.s;
	uint64_t n = 0;

	proctext_number(&at, text.s + text.n, &n);
	return n;
}

static unsigned sources(struct str letters)
{
	static const char all[SUBJECT_N + 1] = {
	    [SUBJECT_STAT] = ' ',  [SUBJECT_KIN] = 'k',
	    [SUBJECT_OWNER] = 'o', [SUBJECT_CGROUP] = 'c',
	    [SUBJECT_EXE] = 'e',   [SUBJECT_CMDLINE] = 'a',
	};
	unsigned mask = 0;

	for (unsigned i = SUBJECT_KIN; i < SUBJECT_N; i++)
		if (letters.n && memchr(letters.s, all[i], letters.n))
			mask |= SUBJECT_BIT(i);
	return mask;
}

static void take_owner(struct process *p, struct str key, struct str value)
{
	if (str_eq(key, STR("user")))
		p->user = value;
	else if (str_eq(key, STR("group")))
		p->group = value;
	else if (str_eq(key, STR("uid")))
		p->uid = (uint32_t)number(value);
	else if (str_eq(key, STR("gid")))
		p->gid = (uint32_t)number(value);
	else
		return;
	p->given |= SUBJECT_BIT(SUBJECT_OWNER);
}

static void take_stat(struct process *p, struct str key, struct str value)
{
	if (str_eq(key, STR("comm")))
		p->comm = value;
	else if (str_eq(key, STR("kernel")))
		p->kernel = true;
	else if (str_eq(key, STR("pidfile")))
		p->is_in_pidfile = true;
	else if (str_eq(key, STR("pid")))
		p->pid = (uint32_t)number(value) & INT32_MAX;
	else if (str_eq(key, STR("start")))
		p->start_time = number(value);
	else if (str_eq(key, STR("late")))
		p->late = sources(value);
}

static void take_line(struct process *p, struct str line)
{
	const char *blank = line.n ? memchr(line.s, ' ', line.n) : NULL;
	size_t n = blank ? (size_t)(blank - line.s) : line.n;
	struct str key = {line.s, n}, value = {line.s + n, line.n - n};

	if (blank)
		value = (struct str){value.s + 1, value.n - 1};
	if (str_eq(key, STR("cmdline"))) {
		append(&p->cmdline, &p->cmdline_n, value);
		p->given |= SUBJECT_BIT(SUBJECT_CMDLINE);
	} else if (str_eq(key, STR("times"))) {
		repeat(p, value);
	} else if (str_eq(key, STR("cgroup"))) {
		append(&p->cgroup, &p->cgroup_n, value);
		p->given |= SUBJECT_BIT(SUBJECT_CGROUP);
	} else if (str_eq(key, STR("exe"))) {
		p->exe_path = value;
		p->given |= SUBJECT_BIT(SUBJECT_EXE);
	} else {
		take_owner(p, key, value);
		take_stat(p, key, value);
	}
}

static struct process *add_process(struct family *f)
{
	struct process *p = &f->line[f->n];

	p->family = f;
	p->pid = PID_FIRST - (uint32_t)f->n;
	p->given = SUBJECT_BIT(SUBJECT_STAT) | SUBJECT_BIT(SUBJECT_KIN);
	f->n++;
	return p;
}

void family_init(struct family *f, struct str text)
{
	struct process *p;

	*f = (struct family){0};
	p = add_process(f);
	while (text.n > 0) {
		const char *end = memchr(text.s, '\n', text.n);
		struct str line = {text.s,
				   end ? (size_t)(end - text.s) : text.n};
		size_t used = end ? line.n + 1 : line.n;

		text = (struct str){text.s + used, text.n - used};
		if (!str_eq(line, STR("%%")))
			take_line(p, line);
		else if (f->n < FAMILY_MAX)
			p = add_process(f);
	}
}

static void drop_copies(struct process *p)
{
	free(p->raw);
	free(p->argv0);
	p->raw = p->argv0 = NULL;
}

void family_done(struct family *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->line[i].cgroup);
		free(f->line[i].cmdline);
		drop_copies(&f->line[i]);
	}
}

void family_hand_down(struct family *f, size_t i, struct ruleset *rs)
{
	struct process *p = &f->line[i], *up = p + 1;

	f->rules = rs;
	if (i + 1 == f->n)
		return;
	p->parent_traits = p->ancestor_traits = up->traits;
	if (!ruleset_is_manager(rs, up->comm))
		p->ancestor_traits |= up->ancestor_traits;
}

void process_set_traits(struct process *p, const struct rule_traits *traits)
{
	p->traits = traits->holds;
	p->n_texts = traits->n_captures;
	for (unsigned i = 0; i < traits->n_captures; i++)
		p->text[i] = (struct kin_text){traits->capture[i].trait,
					       traits->capture[i].text.name,
					       traits->capture[i].text.value};
}

static bool find_kin(struct subject *s, bool parent, uint64_t traits,
		     struct subject_kin *ret)
{
	const struct process *p = s->arg;
	const struct family *f = p->family;

	for (p++; p < f->line + f->n; p++) {
		if (p->traits & traits) {
			*ret = (struct subject_kin){
			    .comm = p->comm,
			    .text = p->text,
			    .n_texts = p->n_texts,
			};
			return true;
		}
		if (parent)
			break;
	}
	return false;
}

static bool fetch_cgroup(const struct process *p, struct subject *s)
{
	struct cgroup_names names;

	if (cgroup_parse((struct str){p->cgroup, p->cgroup_n}, &names))
		return false;
	s->cgroup_file = (struct str){p->cgroup, p->cgroup_n};
	s->cgroup = names.path;
	s->unit = names.unit;
	s->slice = names.slice;
	s->container = names.container;
	s->pod = names.pod;
	return true;
}

static bool fetch_cmdline(struct process *p, struct subject *s)
{
	size_t n = MIN(p->cmdline_n, p->family->rules->limits.cmdline);

	drop_copies(p);
	p->raw = malloc(n);
	p->argv0 = malloc(ARGV0_SIZE);
	if ((n && !p->raw) || !p->argv0)
		return false;
	if (n)
		memcpy(p->raw, p->cmdline, n);
	subject_set_cmdline(s, p->raw, n, p->argv0, ARGV0_SIZE);
	ruleset_check_script(p->family->rules, s);
	return true;
}

static bool read_source(struct process *p, enum subject_source source)
{
	struct subject *s = &p->subject;

	switch (source) {
	case SUBJECT_KIN:
		s->parent_traits = p->parent_traits;
		s->ancestor_traits = p->ancestor_traits;
		return true;
	case SUBJECT_OWNER:
		s->uid = p->uid;
		s->gid = p->gid;
		s->user = p->user;
		s->group = p->group;
		return true;
	case SUBJECT_CGROUP:
		return fetch_cgroup(p, s);
	case SUBJECT_EXE:
		s->exe_path = p->exe_path;
		return true;
	case SUBJECT_CMDLINE:
		return fetch_cmdline(p, s);
	case SUBJECT_STAT:
	case SUBJECT_N:
		break;
	}
	return false;
}

static void fetch(struct subject *s, enum subject_source source)
{
	struct process *p = s->arg;
	unsigned bit = SUBJECT_BIT(source);

	fuzz_check(source > SUBJECT_STAT && source < SUBJECT_N);
	fuzz_check(!(p->fetched & bit));
	p->fetched |= bit;
	if (p->waits & bit)
		s->pending |= bit;
	else if (p->given & bit && read_source(p, source))
		s->have |= bit;
	else
		s->absent |= bit;
}

void process_begin(struct process *p, unsigned late)
{
	p->fetched = 0;
	p->waits = late;
	p->subject = (struct subject){
	    .have = SUBJECT_BIT(SUBJECT_STAT),
	    .fetch = fetch,
	    .arg = p,
	    .find_kin = find_kin,
	    .pid = (pid_t)p->pid,
	    .start_time = p->start_time,
	    .start_ns = (uint32_t)(p->start_time % NSEC_PER_SEC),
	    .comm = p->comm,
	    .kernel = p->kernel,
	};
}

bool process_has_text(const struct process *p, struct str text)
{
	const struct family *f = p->family;

	for (; p < f->line + f->n; p++) {
		const struct str texts[] = {
		    p->comm,
		    p->user,
		    p->group,
		    p->exe_path,
		    {p->cgroup, p->cgroup_n},
		    {p->raw, p->cmdline_n},
		    {p->argv0, ARGV0_SIZE},
		};

		for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
			if (texts[i].s && fuzz_is_within(text, texts[i]))
				return true;
	}
	return false;
}
