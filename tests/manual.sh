#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The examples of proctally(5): each is a rule file, or becomes one by a line
# or two around it, and loads without any message.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-manual.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# One file for each line of ".Dl" and each block of ".Bd", by number.
awk -v dir="$work" '
function plain(s) {
	gsub(/\\\(dq/, "\"", s)
	gsub(/\\e/, "\\", s)
	gsub(/\\&/, "", s)
	return s
}
function example(s) {
	if (s ~ /LoadPlugin/ || s ~ /^name: /)
		return
	if (s ~ /^\{/)
		s = "- " s
	if (s ~ /^- /)
		s = "rules:\n" s
	else if (s ~ /^tests:\n/)
		s = "views: {user: {by: user}}\nrules:\n" \
			"- {name: \"pg-{{.Matches.r}}\", comm: postgres, " \
			"cmdline: \"postgres: (?P<r>.*)\"}\n" \
			"- {name: nginx, comm: nginx}\n" s
	else if (s ~ /^tests:/)
		s = "rules: [{name: ssh, comm: sshd}]\n" s
	else if (s !~ /(^|\n)(rules|process_names):/)
		s = s "\nrules: [{name: a, any: true}]"
	file = sprintf("%s/%03d.yaml", dir, ++n)
	print s >file
	close(file)
}
/^\.Dl "/ {
	sub(/^\.Dl "/, "")
	sub(/"$/, "")
	example(plain($0))
}
/^\.Bd / { inside = 1; text = ""; next }
/^\.Ed/ { inside = 0; example(plain(text)) }
inside { text = text (text == "" ? "" : "\n") $0 }
' "$src/config/proctally.5"

examples=0 findings=
for file in "$work"/*.yaml; do
	examples=$((examples + 1))
	"$command" check "$file" >/dev/null 2>"$work/err" && [ ! -s "$work/err" ] ||
		findings="$findings$(cat "$file" "$work/err")
"
done
[ "$examples" -gt 50 ] || findings="only $examples examples were found"
point "all $examples examples of proctally(5) load" "$findings"
plan
