#!/bin/sh
# SPDX-License-Identifier: MIT
#
# C as clang-format writes it, scripts as shellcheck wants them, manual pages
# without errors. A missing tool is a skip, but not where CI=true.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
cd "$src"

# holds NAME COMMAND...: one TAP point, failed if the command fails.
holds() {
	name=$1
	shift
	if command -v "$1" >/dev/null; then
		point "$name" "$("$@" 2>&1 || echo "$1: status $?")"
	else
		skip "$name" "no $1"
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

holds 'C is formatted' clang-format --dry-run -Werror \
	plugin/*.[ch] tests/*.[ch] tests/fuzz/*.[ch]
holds 'the completion is clean' shellcheck -s bash contrib/completion/proctally.bash
# shellcheck disable=SC2086
holds 'scripts are clean' shellcheck -x $scripts
holds 'manual pages are well-formed' \
	mandoc -T lint -W error config/proctally.1 config/proctally.5

plan
