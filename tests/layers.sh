#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Holds the source to its layers: who may include whom, who alone may know
# libyaml, PCRE2 and collectd, and that the core keeps no state of its own.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
cd "$src"

# Layer 0 is the lowest. A module includes modules of lower layers, or of its
# own. gpu-nvml.c belongs to the module gpu.
layers='
0 base bulk clocks diag guard outbuf suggest textline
1 genl metric gpusum cgroup cgroupsum rule matcher subject name inherit pss psscost pidmap exitrec exepath
2 procfs prochost pidfile births proctext smaps pssplan keptfd users yamltree rulefile rulelint ruletest group ledger cgroupfs delay
3 lane runner exits gpu proctab look sample
4 monitor cgroupread delayread exitread classify explain fold members notice place reload residual selfstat series pssread gpuread
5 plugin command check dump explaincmd bench alloccount events netdata format replace messages
5 board cell match roster screen table top view watch
'

# Prints "FILE LAYER" for every file of plugin/; layer -1 is unknown, -2 more
# than one.
file_layers() {
	for file in plugin/*.[ch]; do
		module=${file#plugin/}
		module=${module%.[ch]}
		echo "$file ${module%%-*}"
	done | layers="$layers" awk '
	BEGIN {
		rows = split(ENVIRON["layers"], row, "\n")
		for (i = 1; i <= rows; i++) {
			k = split(row[i], word, " ")
			for (j = 2; j <= k; j++) {
				twice = word[j] in layer
				layer[word[j]] = twice ? -2 : word[1]
			}
		}
	}
	{ print $1, ($2 in layer ? layer[$2] : -1) }'
}

# Prints "FILE HEADER" for every inclusion of a header of ours.
inclusions() {
	for file in plugin/*.[ch]; do
		sed -n 's|^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*"\([^"]*\)".*|'"$file"' plugin/\1|p' "$file"
	done
}

# only_in PATTERN NAMES: lines of plugin/ that include what PATTERN says,
# outside the files that NAMES (an alternation) allows.
only_in() {
	grep -nE "^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*[<\"]$1" plugin/*.[ch] |
		grep -vE "^plugin/($2):" || true
}

table=$(file_layers)
edges=$(inclusions)

point 'every file of plugin/ is in exactly one layer' "$(
	printf '%s\n' "$table" |
		awk '$2 == -1 { print $1 ": in no layer" }
		     $2 == -2 { print $1 ": in several layers" }')"

point 'a file includes headers of its own layer or of lower ones' "$(
	{ printf '%s\n' "$table"; echo --; printf '%s\n' "$edges"; } | awk '
	$1 == "--" { second = 1; next }
	!second { layer[$1] = $2; next }
	NF == 2 && !($2 in layer) { print $1 ": " $2 " does not exist"; next }
	NF == 2 && layer[$2] > layer[$1] {
		print $1 " (layer " layer[$1] ") includes " $2 \
			" (layer " layer[$2] ")"
	}')"

point 'headers do not include each other in a circle' "$(
	printf '%s\n' "$edges" | awk '
	function visit(h, path,   k, i, to) {
		if (state[h] == 2)
			return
		if (state[h] == 1) {
			print path
			return
		}
		state[h] = 1
		k = split(out[h], to, " ")
		for (i = 1; i <= k; i++)
			visit(to[i], path " -> " to[i])
		state[h] = 2
	}
	$1 ~ /\.h$/ { out[$1] = out[$1] " " $2 }
	END { for (h in out) visit(h, h) }')"

point 'libyaml is known in yamltree alone' \
	"$(only_in 'yaml\.h' 'yamltree(-[a-z]*)?\.[ch]')"
point 'PCRE2 is known in rule and matcher files alone' \
	"$(only_in 'pcre2' '(rule|matcher)(-[a-z]*)?\.[ch]')"
point 'collectd is known in plugin.c alone' \
	"$(only_in 'collectd/' 'plugin\.c')"

point 'ncurses is known in screen.c alone' \
	"$(only_in '(curses|term)\.h' 'screen\.c')"

# Written data sits in .data, .bss or a common block; constant data with
# addresses in it is .data.rel.ro. Sanitizers add variables of their own.
name='the core has no variable at file scope'
objects=
for file in plugin/*.c; do
	case " $(printf '%s\n' "$table" | sed -n "s|^$file ||p") " in
	*' 5 '*) continue ;;
	esac
	module=${file#plugin/}
	object=$build/plugin/.libs/${module%.c}.o
	[ ! -f "$object" ] || objects="$objects $object"
done
if [ -z "$objects" ] || [ "${SANITIZERS:-no}" != no ]; then
	n=$((n + 1))
	echo "ok $n - $name # SKIP no objects of a plain build"
else
	point "$name" "$(
		for object in $objects; do
			nm -f sysv "$object" | awk -F '|' -v object="$object" '
			{
				gsub(/ /, "", $1)
				gsub(/ /, "", $4)
				gsub(/ /, "", $7)
			}
			NF == 7 && ($4 == "OBJECT" || $4 == "TLS" || $7 == "*COM*") &&
			($7 ~ /^\.(data|bss|tdata|tbss)/ || $7 == "*COM*") &&
			$7 !~ /^\.data\.rel\.ro/ {
				sub(/.*\//, "", object)
				print object ": " $1 " in " $7
			}'
		done)"
fi

point 'every header says #pragma once' "$(
	grep -L '^#pragma once$' plugin/*.h tests/*.h tests/fuzz/*.h || true)"
point 'every C file and script names its licence' "$(
	for file in plugin/*.[ch] tests/*.[ch] tests/*.sh \
		tests/fuzz/*.[ch] tests/fuzz/run; do
		[ ! -f "$file" ] || head -n 3 "$file" |
			grep -q 'SPDX-License-Identifier: MIT' ||
			echo "$file: no SPDX line"
	done)"
point 'every file of plugin/ is built and shipped' "$(
	for file in plugin/*.[ch]; do
		grep -qwF "$file" Makefile.am || echo "$file: not in Makefile.am"
	done)"

# make would build a program of that name, wherever the source is newer.
point 'no script and no directory is named like a source without its suffix' "$(
	for file in tests/*.c tests/fuzz/*.c; do
		name=${file%.c}
		if [ -d "$name" ] ||
			[ "$(head -c 2 "$name" 2>/dev/null)" = '#!' ]; then
			echo "$name"
		fi
	done)"

plan
