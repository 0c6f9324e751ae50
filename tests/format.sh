#!/bin/sh
# SPDX-License-Identifier: MIT
#
# C as clang-format writes it, scripts as shellcheck wants them, manual pages
# without errors. A missing tool is a skip, but not where CI=true.
set -eu

cd "${top_srcdir:-.}"

n=0
# point NAME COMMAND...: one TAP point that holds if the command succeeds.
point() {
	n=$((n + 1))
	name=$1
	shift
	if ! command -v "$1" >/dev/null && [ "${CI:-}" != true ]; then
		echo "ok $n - $name # SKIP no $1"
	elif output=$("$@" 2>&1); then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		printf '%s\n' "$output" | sed 's/^/# /'
	fi
}

# Scripts are known by their first line, whatever their name is.
scripts=
for file in autogen.sh .ci/run contrib/* contrib/stores/* tests/* tests/fuzz/*; do
	[ -f "$file" ] || continue
	if head -n 1 "$file" | grep -aqE '^#!.*[/ ](ba)?sh$'; then
		scripts="$scripts $file"
	fi
done

point 'C is formatted' clang-format --dry-run -Werror \
	plugin/*.[ch] tests/*.[ch] tests/fuzz/*.[ch]
point 'the completion is clean' shellcheck -s bash contrib/completion/proctally.bash
# shellcheck disable=SC2086
point 'scripts are clean' shellcheck -x $scripts
point 'manual pages are well-formed' \
	mandoc -T lint -W error config/proctally.1 config/proctally.5

echo "1..$n"
