/* SPDX-License-Identifier: MIT */
/*
 * Any rules, asked about any process. An input is a rule file, a line "%%" and
 * lines about a process ("comm sshd", see process.c); after each further "%%"
 * come those about its parent.
 *
 * What is asked twice, first while some sources are late: an answer that is
 * not pending must be the one that is given when they are there.
 */
#include "fuzz.h"

#include "name.h"
#include "process.h"
#include "rulefile.h"

#include <time.h>

const char fuzz_target[] = "match";

enum {
	/* More patterns than this cost time and find nothing new. */
	PATTERNS_MAX = 60,
	/* CPU time of one pattern on one text; it is cut off far earlier. */
	PATTERN_NS_MAX = 250 * 1000 * 1000,
	/* A trait, a verdict and its reason; early and in the end. */
	ASKS_MAX = 6,
};

/* What the rules said of one process. */
struct said {
	const struct rule *rule[RULE_VIEWS_MAX];
	bool pending[RULE_VIEWS_MAX];
	struct rule_traits traits;
};

static size_t count_patterns(const struct matcher *m, size_t n)
{
	size_t patterns = 0;

	for (size_t i = 0; i < n; i++)
		patterns += m[i].code != NULL;
	return patterns;
}

static size_t count_terms(const struct rule_terms *terms, size_t n)
{
	size_t patterns = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < terms[i].n_terms; j++)
			patterns += count_patterns(terms[i].term[j].item,
						   terms[i].term[j].n_items);
	return patterns;
}

static size_t count_all(const struct ruleset *rs)
{
	size_t n = count_patterns(rs->manager, rs->n_managers) +
		   count_patterns(rs->interpreter, rs->n_interpreters);

	for (size_t i = 0; i < rs->n_rules; i++)
		n += count_terms(&rs->rule[i].terms, 1) +
		     count_terms(rs->rule[i].not, rs->rule[i].n_not);
	for (size_t i = 0; i < rs->n_kin; i++)
		n += count_terms(&rs->kin[i].terms, 1) +
		     count_terms(rs->kin[i].not, rs->kin[i].n_not);
	return n;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

/* The promise of name.h. */
static void check_name(const struct name_result *name)
{
	size_t n = strnlen(name->text, sizeof(name->text));
	size_t kept = name->cut ? (size_t)NAME_KEEP_LEN : n;
	struct name_result again;

	fuzz_check(n >= 1 && n <= NAME_MAX_LEN);
	fuzz_check(name->text[0] != '_');
	fuzz_check(strspn(name->text, ".") < n);
	for (size_t i = 0; i < kept; i++)
		fuzz_check(is_name_char(name->text[i]));
	if (name->cut) {
		fuzz_check(n == NAME_KEEP_LEN + 9);
		fuzz_check(name->text[kept] == '~');
		fuzz_check(strspn(name->text + kept + 1, "0123456789abcdef") ==
			   8);
		return;
	}
	name_clean(str_of(name->text), &again);
	fuzz_check(!strcmp(again.text, name->text));
	fuzz_check(!again.cleaned && !again.cut);
}

static void expand(const struct name *name, const struct rule_view *view,
		   struct subject *s, const struct rule_verdict *v)
{
	struct name_result result, again;

	if (!name)
		return;
	name_expand(name, s, v, &result);
	check_name(&result);
	name_expand(name, s, v, &again);
	fuzz_check(!memcmp(again.text, result.text, strlen(result.text) + 1));
	fuzz_check(again.raw_hash == result.raw_hash);
	if (view->name) {
		size_t n = strlen(view->name);

		fuzz_check(!strncmp(result.text, view->name, n));
		fuzz_check(result.text[n] == '.');
	}
}

static void check_captures(const struct process *p,
			   const struct rule_verdict *v)
{
	fuzz_check(v->n_captures <= RULE_CAPTURES_MAX);
	fuzz_check(!v->ancestor.n || process_has_text(p, v->ancestor));
	for (unsigned i = 0; i < v->n_captures; i++) {
		struct str name = v->capture[i].name;
		bool known = v->rule->exporter && !name.n;

		fuzz_check(!v->capture[i].value.n ||
			   process_has_text(p, v->capture[i].value));
		for (unsigned j = 0; j < v->rule->n_captures; j++)
			known |= str_eq(str_of(v->rule->capture[j]), name);
		fuzz_check(known);
		for (unsigned j = 0; j < i; j++)
			fuzz_check(!str_eq(v->capture[j].name, name));
	}
}

/* Rule by rule, as the call explain asks; the first that holds is taken. */
static void check_reasons(struct ruleset *rs, const struct rule_view *view,
			  struct subject *s, const struct rule_verdict *v)
{
	for (size_t i = 0; i < view->n_rules; i++) {
		struct rule *rule = &rs->rule[view->first + i];
		struct rule_reason why;

		ruleset_explain(rs, rule, s, &why);
		fuzz_check((why.truth == HOLDS) == (rule == v->rule));
		fuzz_check(why.truth != HOLDS_MAYBE || v->pending);
		fuzz_check(!why.excepted || rule->n_not);
		if (why.absent)
			fuzz_check(s->absent &
				   SUBJECT_BIT(rule_keys[why.key].source));
		if (rule == v->rule)
			return;
	}
	fuzz_check(!v->rule);
}

static void ask_view(struct ruleset *rs, size_t i, struct process *p,
		     struct said *said)
{
	const struct rule_view *view = &rs->view[i];
	struct subject *s = &p->subject;
	struct rule_verdict v;

	ruleset_match(rs, i, s, &v);
	fuzz_check(!v.pending || s->pending);
	check_reasons(rs, view, s, &v);
	if (v.rule) {
		size_t at = (size_t)(v.rule - rs->rule);

		fuzz_check(at >= view->first &&
			   at < view->first + view->n_rules);
		fuzz_check(v.action == v.rule->action);
		expand(v.rule->name, view, s, &v);
		expand(v.rule->overflow, view, s, NULL);
	} else {
		fuzz_check(v.action == ACTION_LEAVE && !v.n_captures);
	}
	check_captures(p, &v);
	expand(view->other, view, s, NULL);
	said->rule[i] = v.rule;
	said->pending[i] = v.pending;
}

static void ask(struct ruleset *rs, struct process *p, unsigned late,
		struct said *ret)
{
	struct subject *s = &p->subject;
	uint64_t known =
	    rs->n_kin < 64 ? (UINT64_C(1) << rs->n_kin) - 1 : UINT64_MAX;

	process_begin(p, late);
	ruleset_traits(rs, s, &ret->traits);
	fuzz_check(!((ret->traits.holds | ret->traits.pending) & ~known));
	fuzz_check(!(ret->traits.holds & ret->traits.pending) || s->pending);
	fuzz_check(ret->traits.n_captures <= RULE_CAPTURES_MAX);
	for (unsigned i = 0; i < ret->traits.n_captures; i++)
		fuzz_check(ret->traits.holds >> ret->traits.capture[i].trait &
			   1);
	for (size_t i = 0; i < rs->n_views; i++)
		ask_view(rs, i, p, ret);
	fuzz_check(!((s->have | s->absent | s->pending) & ~rs->sources &
		     ~SUBJECT_BIT(SUBJECT_STAT)));
	fuzz_check(!(s->have & s->absent) && !(s->have & s->pending) &&
		   !(s->absent & s->pending));
}

static void check_both(const struct ruleset *rs, const struct said *early,
		       const struct said *final)
{
	uint64_t sure = ~early->traits.pending;

	fuzz_check((early->traits.holds & sure) ==
		   (final->traits.holds & sure));
	fuzz_check(!final->traits.pending);
	for (size_t i = 0; i < rs->n_views; i++) {
		fuzz_check(early->pending[i] ||
			   early->rule[i] == final->rule[i]);
		fuzz_check(!final->pending[i]);
	}
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* From the oldest on, as traits are handed down. */
static void ask_family(struct ruleset *rs, struct family *f)
{
	uint64_t n_asks = (count_all(rs) + 1) * ASKS_MAX * f->n;
	uint64_t begin = cpu_ns();

	for (size_t i = f->n; i-- > 0;) {
		struct process *p = &f->line[i];
		struct said early = {0}, final = {0};

		family_hand_down(f, i, rs);
		ask(rs, p, p->late, &early);
		ask(rs, p, 0, &final);
		check_both(rs, &early, &final);
		process_set_traits(p, &final.traits);
		for (size_t k = 0; p->is_in_pidfile && k < rs->n_pidfiles; k++)
			rs->pidfile[k].pid = p->subject.pid;
	}
	fuzz_check(cpu_ns() - begin <= n_asks * PATTERN_NS_MAX);
}

/* Cuts the processes off; without any there is one that nothing is known of. */
static struct str cut_processes(struct str *rules)
{
	const struct str mark = STR("\n%%\n");
	const char *end = rules->s + rules->n;
	const char *at = memmem(rules->s, rules->n, mark.s, mark.n);

	if (!at)
		return STR("");
	rules->n = (size_t)(at + 1 - rules->s);
	at += mark.n;
	return (struct str){at, (size_t)(end - at)};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rules = {size ? (const char *)data : "", size};
	struct str processes = cut_processes(&rules);
	struct ruleset *rs = NULL;
	struct family f;
	struct diag d;
	int r;

	diag_init(&d, "rules.yaml");
	r = rulefile_parse(rules, &d, &rs);
	diag_done(&d);
	if (r)
		return 0;
	family_init(&f, processes);
	if (count_all(rs) <= PATTERNS_MAX)
		ask_family(rs, &f);
	family_done(&f);
	ruleset_free(rs);
	return 0;
}
