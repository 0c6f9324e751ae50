#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Does a plugin that is built here fit the collectd of other releases? These
# functions and the layout of these structures stand in src/daemon/plugin.h of
# 5.12, of a release of about 5.8, and of collectd 6 before its release, which
# is all that was read; what else the plugin took would tie it to the release it
# was built for.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
plugin=$build/.libs/proctally.so

if [ ! -f "$plugin" ]; then
	if [ "${CI:-}" = true ] && [ "${SANITIZERS:-no}" = no ]; then
		point 'the plugin is there' 'it is not, and CI=true'
		plan
	else
		echo '1..0 # SKIP no plugin in this build'
	fi
	exit 0
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-versions.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# variable NAME: its value in the build's Makefile.
variable() {
	sed -n "s/^$1 = //p" "$build/Makefile" |
		sed "s|\$(abs_top_builddir)|$(cd "$build" && pwd)|g"
}

# try_c: compiles standard input with collectd's headers.
try_c() {
	# shellcheck disable=SC2046
	$(variable CC) -std=gnu11 -D_GNU_SOURCE $(variable COLLECTD_CPPFLAGS) \
		-fsyntax-only -x c - 2>&1 || echo 'it does not compile'
}

point 'of collectd it calls only what old and new releases have' "$(
	nm -D --undefined-only "$plugin" | sed 's/.* //; s/@.*//' |
		grep -E '^(plugin|cf|uc|meta|notification|daemon|parse|format)_|^cdtime|_g$' |
		grep -vx -e cdtime -e plugin_dispatch_values -e plugin_get_ds \
			-e plugin_log -e plugin_register_complex_config \
			-e plugin_register_complex_read \
			-e plugin_unregister_read || true)"
point 'it gives them the arguments that they take in both' "$(
	try_c <<'END'
#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>

#define IS(f, ...) \
	_Static_assert(_Generic(&(f), __VA_ARGS__: 1, default: 0), #f)

IS(cdtime, cdtime_t (*)(void));
IS(plugin_dispatch_values, int (*)(value_list_t const *));
IS(plugin_get_ds, const data_set_t *(*)(const char *));
IS(plugin_log, void (*)(int, const char *, ...));
IS(plugin_register_complex_config,
   int (*)(const char *, int (*)(oconfig_item_t *)));
IS(plugin_register_complex_read,
   int (*)(const char *, const char *, int (*)(user_data_t *), cdtime_t,
	   user_data_t const *));
IS(plugin_unregister_read, int (*)(const char *));
_Static_assert(_Generic((cdtime_t)0, uint64_t: 1, default: 0), "cdtime_t");
END
)"
point 'structures have the layout that they have in both' "$(
	try_c <<'END'
#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>
#include <stddef.h>

#define NAMES(n) ((n) * (size_t)DATA_MAX_NAME_LEN)
#define AT(type, member, offset) \
	_Static_assert(offsetof(type, member) == (offset), #type " " #member)

AT(value_list_t, values, 0);
AT(value_list_t, values_len, sizeof(void *));
AT(value_list_t, time, sizeof(void *) + sizeof(size_t));
AT(value_list_t, interval, sizeof(void *) + sizeof(size_t) + 8);
enum { HOST = sizeof(void *) + sizeof(size_t) + 16 };
AT(value_list_t, host, HOST);
AT(value_list_t, plugin, HOST + NAMES(1));
AT(value_list_t, plugin_instance, HOST + NAMES(2));
AT(value_list_t, type, HOST + NAMES(3));
AT(value_list_t, type_instance, HOST + NAMES(4));
AT(value_list_t, meta, HOST + NAMES(5));
_Static_assert(sizeof(value_t) == 8, "value_t");
AT(data_set_t, type, 0);
AT(data_set_t, ds_num, NAMES(1));
AT(data_set_t, ds, NAMES(1) + sizeof(size_t));
AT(data_source_t, name, 0);
struct source { char name[DATA_MAX_NAME_LEN]; int type; double range[2]; };
_Static_assert(sizeof(data_source_t) == sizeof(struct source), "stride");
AT(user_data_t, data, 0);
AT(user_data_t, free_func, sizeof(void *));
AT(oconfig_item_t, key, 0);
AT(oconfig_item_t, values, sizeof(void *));
AT(oconfig_item_t, values_num, 2 * sizeof(void *));
AT(oconfig_item_t, children, 4 * sizeof(void *));
AT(oconfig_item_t, children_num, 5 * sizeof(void *));
END
)"
plan
