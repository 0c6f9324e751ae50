/* SPDX-License-Identifier: MIT */
#include "rulefile-where.h"

#include "metric.h"
#include "rule.h"

#define TOP_LEVEL "at the top level of the file"
#define DEFAULTS "under \"defaults\""
#define LIMITS "under \"limits\""
#define PER_PROCESS "under \"per_process\""
#define TEST "in a test, outside of its \"parent\""
#define PSS "under \"pss\", which stands under \"collect\""

static const struct {
	const char *key, *where;
} places[] = {
    {"version", TOP_LEVEL},
    {"defaults", TOP_LEVEL},
    {"limits", TOP_LEVEL},
    {"sampling", TOP_LEVEL},
    {"managers", TOP_LEVEL},
    {"interpreters", TOP_LEVEL},
    {"process_names", TOP_LEVEL},
    {"rules", TOP_LEVEL " or in a view"},
    {"views", TOP_LEVEL},
    {"other", TOP_LEVEL " or in a view"},
    {"tests", TOP_LEVEL},
    {"idle_timeout", DEFAULTS},
    {"recheck", DEFAULTS},
    {"refresh", DEFAULTS},
    {"groups", LIMITS},
    {"kept_fds", LIMITS},
    {"gate", "under \"sampling\""},
    {"name", "in a rule or under \"other\""},
    {"action", "in a rule or under \"other\""},
    {"not", "in a rule, \"parent\" or \"ancestor\""},
    {"children", "in a rule or under \"defaults\""},
    {"collect", "in a rule, in a view or under \"defaults\""},
    {"max_groups", "in a rule or in a view"},
    {"overflow", "in a rule"},
    {"per_process", "in a rule"},
    {"top", PER_PROCESS},
    {"min_rss", PER_PROCESS},
    {"min_cpu", PER_PROCESS},
    {"min_age", PER_PROCESS},
    {"n", "under \"top\", which stands under \"per_process\""},
    {"by", "in a view, under \"per_process\" or under \"top\""},
    {"every", PSS},
    {"max_age", PSS},
    {"max_rss", PSS},
    {"budget", PSS " of \"defaults\""},
    {"view", TEST},
    {"expect", TEST},
    {"pid", "in a test"},
    {"start_time", "in a test"},
};

const char *where_key_belongs(struct str key)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (str_eq(key, str_of(places[i].key)))
			return places[i].where;
	for (size_t i = 0; i < RULE_KEY_N; i++)
		if (str_eq(key, str_of(rule_keys[i].name)))
			return "in a rule";
	for (size_t i = 0; i < COLLECT_N; i++)
		if (str_eq(key, str_of(collect_defs[i].name)))
			return "under \"collect\"";
	return NULL;
}
