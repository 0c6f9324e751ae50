/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a rule file: it loads, or there is an error with its place.
 */
#include "fuzz.h"

#include "name.h"
#include "rulefile.h"

#include <inttypes.h>

const char fuzz_target[] = "rulefile";

static void check_message(const struct diag *d, size_t i, unsigned n_lines)
{
	const struct diag_msg *m = &d->msg[i];
	char buf[2048], small[16];
	int n = diag_format(d, i, buf, sizeof(buf));

	fuzz_check(n > 0);
	fuzz_check(diag_format(d, i, small, sizeof(small)) == n);
	fuzz_check(!strncmp(buf, small, sizeof(small) - 1));
	for (const char *c = m->text; *c; c++)
		fuzz_check((unsigned char)*c >= 0x20 && *c != 0x7f);

	/* The end of a file may be told as the line behind its last one. */
	fuzz_check(m->line >= 1 && m->line <= n_lines + 1);
	fuzz_check(m->column >= 1 || m->level != DIAG_ERROR);
	if (i > 0)
		fuzz_check(m->line > m[-1].line || (m->line == m[-1].line &&
						    m->column >= m[-1].column));
}

/* As YAML 1.1 breaks lines: CR, CRLF, LF, NEL, LS and PS. */
static unsigned count_lines(struct str text)
{
	unsigned n = 1;

	for (size_t i = 0; i < text.n; i++) {
		struct str rest = {text.s + i, text.n - i};

		n += text.s[i] == '\n' || text.s[i] == '\r' ||
		     str_begins(rest, STR("\xc2\x85")) ||
		     str_begins(rest, STR("\xe2\x80\xa8")) ||
		     str_begins(rest, STR("\xe2\x80\xa9"));
	}
	return n;
}

static void check_messages(const struct diag *d, struct str text)
{
	unsigned n_lines = count_lines(text);
	size_t n_errors = 0;

	fuzz_check(d->n_msgs <= DIAG_MSG_MAX);
	for (size_t i = 0; i < d->n_msgs; i++) {
		check_message(d, i, n_lines);
		n_errors += d->msg[i].level == DIAG_ERROR;
	}
	fuzz_check(n_errors <= d->n_errors);
	fuzz_check(n_errors == d->n_errors || d->n_dropped > 0);
}

static void check_terms(const struct ruleset *rs, const struct rule_terms *t,
			bool exporter)
{
	fuzz_check(t->n_terms || t->any || t->kernel != KERNEL_EITHER);
	for (size_t i = 0; i < t->n_terms; i++) {
		enum rule_key key = t->term[i].key;

		fuzz_check(key < RULE_KEY_N);
		fuzz_check(rs->sources & SUBJECT_BIT(rule_keys[key].source));
		fuzz_check(i == 0 || rule_keys[t->term[i - 1].key].source <=
					 rule_keys[key].source);
		if (rule_keys[key].item == ITEM_KIN)
			fuzz_check(t->term[i].kin &&
				   (rs->n_kin == RULE_KIN_MAX ||
				    !(t->term[i].kin >> rs->n_kin)));
		else
			fuzz_check(t->term[i].n_items > 0 || exporter);
	}
}

static void check_rule(const struct ruleset *rs, const struct rule *rule)
{
	check_terms(rs, &rule->terms, rule->exporter);
	for (size_t i = 0; i < rule->n_not; i++)
		check_terms(rs, &rule->not [i], false);
	fuzz_check(!rule->name == (rule->action != ACTION_GROUP));
	fuzz_check(rule->line >= 1 && rule->column >= 1);
	fuzz_check(rule->max_groups >= 1);
	fuzz_check(rule->n_captures <= RULE_CAPTURES_MAX);
	if (rule->overflow)
		fuzz_check(name_is_static(rule->overflow));
	else
		fuzz_check(!rule->name || name_is_static(rule->name));
}

static void check_rules(const struct ruleset *rs)
{
	fuzz_check(rs->scratch);
	fuzz_check(rs->n_views >= 1 && rs->n_views <= RULE_VIEWS_MAX);
	fuzz_check(rs->n_kin <= RULE_KIN_MAX);
	for (size_t i = 0; i < rs->n_views; i++)
		fuzz_check(rs->view[i].first + rs->view[i].n_rules <=
			   rs->n_rules);
	for (size_t i = 0; i < rs->n_kin; i++)
		check_terms(rs, &rs->kin[i].terms, false);
	for (size_t i = 0; i < rs->n_rules; i++)
		check_rule(rs, &rs->rule[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	struct ruleset *rs = NULL;
	struct diag d;
	int r;

	diag_init(&d, "rules.yaml");
	r = rulefile_parse(text, &d, &rs);
	fuzz_check(r == 0 || r == -EINVAL);
	fuzz_check((r == 0) == (d.n_errors == 0));
	fuzz_check((r == 0) == (rs != NULL));
	check_messages(&d, text);
	if (rs)
		check_rules(rs);
	ruleset_free(rs);
	diag_done(&d);
	return 0;
}
