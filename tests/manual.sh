#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The manual pages: each example of proctally(5) is a rule file, or becomes one
# by a line or two around it, and loads without any message; what the tables of
# the source have is described.
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

# described HEADING WORD: it stands below that heading of proctally(5).
described() {
	awk -v begin="$1" '/^\.S[hs] / { inside = $0 == begin } inside' \
		"$src/config/proctally.5" | tr -s ' ,' '[\n*]' | grep -qxF -e "$2"
}

point 'every key under collect is described' "$(
	sed -nE 's/^ *\[COLLECT_[A-Z_]+\] = \{"([a-z_]+)".*/\1/p' \
		"$src/plugin/metric.c" >"$work/keys"
	[ "$(wc -l <"$work/keys")" -ge 19 ] || cat "$work/keys"
	while read -r key; do
		grep -qx "\.It Cm $key" "$src/config/proctally.5" || echo "$key"
	done <"$work/keys")"
point 'every value of the group _self is described' "$(
	sed -nE -e 's/^ *GAUGE\(.*, "(.*)", "(.*)"\),$/\1-\2/p' \
		-e 's/^ *TOTAL\(.*, "(.*)"\),$/total_operations-\1/p' \
		-e 's/^ *SECONDS\(.*, "(.*)"\),$/duration-\1/p' \
		"$src/plugin/selfstat.c" >"$work/ids"
	[ "$(wc -l <"$work/ids")" -ge 34 ] || cat "$work/ids"
	while read -r id; do
		described '.Ss The group _self' "$id" ||
			described '.Ss The group _self' "${id#*-unreadable_}" ||
			echo "$id"
	done <"$work/ids")"
point 'every option of the command is described' "$(
	"$command" --help | sed -n 's/^  --\([a-z]*\) .*/\1/p' >"$work/options"
	[ "$(wc -l <"$work/options")" -ge 14 ] || cat "$work/options"
	while read -r option; do
		grep -qE "^\.(It )?Fl -$option( |\$)" \
			"$src/config/proctally.1" || echo "--$option"
	done <"$work/options")"
plan
