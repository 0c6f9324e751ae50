#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Not a test: what the tests of stores have in common. A collectd with the
# plugin and the shipped configuration of a store feeds that store and collectd's
# csv plugin at once, and what the store gives back is compared with the rows
# there, value by value. How a store names a value is for its own test to say.
#
# Rows are "NAME TIME VALUE", separated by tabs, with milliseconds since 1970.
# shellcheck disable=SC2034,SC2154
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/servers.sh
. "$src/tests/servers.sh"

# need NAME PROGRAM...: without one of them the script ends here, with a skip.
need() {
	name=$1
	shift
	if [ ! -f "$build/.libs/proctally.so" ] &&
		[ "${SANITIZERS:-no}" != no ]; then
		echo '1..0 # SKIP no plugin in this build'
		exit 0
	fi
	reason=
	for wanted in "$COLLECTD" curl jq "$@"; do
		find_program "$wanted" || reason=${reason:-$(missing "$wanted")}
	done
	[ -f "$build/.libs/proctally.so" ] || reason='no plugin'
	[ -n "$reason" ] || return 0
	skip "$name" "$reason"
	plan
	exit 0
}

# has_plugin NAME: collectd has it, and all that it links.
has_plugin() {
	plugin=$("$COLLECTD" -h | sed -n 's/^ *Plugin directory  *//p')/$1.so
	[ -f "$plugin" ] && ! (service ldd "$plugin") 2>/dev/null |
		grep -q 'not found'
}

# --- Processes, by names of ours ---

work='' id=$$
# shellcheck disable=SC2317,SC2329
finish() {
	trap - EXIT HUP INT TERM
	servers_done
	exec 8>&-
	[ -z "$work" ] || rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM
work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-store.XXXXXX")
chmod 755 "$work"
mkfifo "$work/hold"
exec 8<>"$work/hold"
for name in idle burn many; do
	ln -s "$(command -v sh)" "$work/$name$id"
done

# hold N: so many processes that wait until fd 8 is closed.
hold() {
	for _ in $(seq "$1"); do
		"$work/idle$id" -c 'read -r x' <"$work/hold" >/dev/null 2>&1 \
			8>&- &
		pids="$pids $!"
	done
}

# burn: a processor is busy until kill $burner, or for a minute.
burn() {
	"$work/burn$id" -c 'ulimit -t 60; while :; do :; done' 8>&- &
	burner=$!
	pids="$pids $burner"
}

# crowd N: as many processes, of one name, until the script ends.
crowd() {
	# shellcheck disable=SC2016
	"$work/many$id" -c '
		i=1
		while [ $i -lt "$1" ]; do
			read -r x <&3 &
			i=$((i + 1))
		done
		: >"$2"
		read -r x <&3
		wait' many "$1" "$work/there" 3<"$work/hold" >/dev/null 2>&1 8>&- &
	await 60 [ -e "$work/there" ]
}

# All that can be collected, by the table of the source; PSS of a few processes
# only, so that it is read at once.
rules() {
	cat <<END
defaults:
  collect:
$(sed -nE 's/^ *\[COLLECT_[A-Z_]+\] = \{"([a-z_]+)".*/    \1: true/p' \
		"$src/plugin/metric.c" | sed 's/pss: true/pss: false/')
rules:
- {name: idle.three, comm: idle$id, collect: {pss: {every: 1s}}}
- {name: burn, comm: burn$id}
- {name: "a b/c", comm: nobody$id}
- {name: rest, any: true}
END
}

# A group for each process of a crowd.
crowd_rules() {
	cat <<END
limits: {groups: 2000}
defaults: {collect: {pss: false}}
rules:
- {name: "m-{{.PID}}", comm: many$id, max_groups: 1500}
END
}

# --- Rows ---

# reference DATA: rows of collectd's csv plugin below that directory of a host,
# as "GROUP TYPE INSTANCE DS TIME VALUE N KIND", with the number of data sources
# of the type, and GAUGE or DERIVE.
reference() {
	find "$1" -path '*/proctally-*' -name '*-2[0-9][0-9][0-9]-[01][0-9]-*' \
		-exec awk -F, '
	NR == FNR {
		n = split($0, word, /[ \t,]+/)
		for (i = 2; i <= n; i++) {
			split(word[i], part, ":")
			kind[word[1], part[1]] = part[2]
		}
		next
	}
	FNR == 1 {
		n = split(FILENAME, path, "/")
		group = substr(path[n - 1], length("proctally-") + 1)
		type = substr(path[n], 1, length(path[n]) - length("-YYYY-MM-DD"))
		instance = ""
		if ((at = index(type, "-"))) {
			instance = substr(type, at + 1)
			type = substr(type, 1, at - 1)
		}
		split($0, ds)
		next
	}
	{
		# Exact, as a number of that size has too few bits for it.
		time = $1
		sub(/\./, "", time)
		for (i = 2; i <= NF; i++)
			printf "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", group,
				type, instance, ds[i], time, $i, NF - 1,
				kind[type, ds[i]]
	}' "$(types_db)" {} +
}

# rates: of rows of the reference that are in the order of time; what a counter
# grew by in a second is as exact as its times are.
rates() {
	awk -F '\t' -v OFS='\t' '
	$8 == "GAUGE" { print $0 }
	$8 == "DERIVE" {
		key = $1 FS $2 FS $3 FS $4
		value = $6
		if (key in last) {
			seconds = ($5 - at[key]) / 1000
			$6 = sprintf("%.9g", (value - last[key]) / seconds)
			print
		}
		last[key] = value
		at[key] = $5
	}'
}

# agree WANT GOT SLACK [holes]: findings unless both have the same names, and
# each row of GOT is one of WANT, SLACK milliseconds sooner or later at most,
# where a row of WANT may have a fourth column: what part of the value it may be
# off. Unless holes are allowed, all of WANT that is between two of GOT is there.
agree() {
	[ -s "$1" ] && [ -s "$2" ] || echo 'no rows'
	awk -F '\t' -v slack="$3" -v holes="${4:-}" '
	function differs(a, b, off) {
		off = off * (a < 0 ? -a : a) + 6e-7
		return a - b > off || b - a > off
	}
	NR == FNR {
		wanted[$1] = wanted[$1] " " $2
		n = ++n_at[$1, $2]
		value[$1, $2, n] = $3
		off[$1] = $4
		if (first == "" || $2 < first)
			first = $2
		next
	}
	{
		got[$1]
		if (!($1 in wanted)) {
			if (!($1 in strange))
				print "strange: " $1
			strange[$1]
			next
		}
		at = ""
		for (i = -slack; i <= slack && at == ""; i++)
			if (($1, sprintf("%.0f", $2 + i)) in n_at)
				at = sprintf("%.0f", $2 + i)
		if (at == "") {
			if ($2 >= first)
				print $1 " at " $2 ": nobody sent it"
			next
		}
		equal = 0
		for (i = 1; i <= n_at[$1, at]; i++)
			if (!differs($3, value[$1, at, i], off[$1]))
				equal = 1
		if (!equal)
			print $1 " at " at ": want " value[$1, at, 1] ", got " $3
		seen[$1, at]
		n_seen[$1]++
		if (!($1 in low) || at < low[$1])
			low[$1] = at
		if (!($1 in high) || at > high[$1])
			high[$1] = at
	}
	END {
		for (name in wanted) {
			if (!(name in got)) {
				print "missing: " name
				continue
			}
			if (n_seen[name] < 3 && wanted[name] ~ / .* .* .* /)
				print name ": only " n_seen[name] + 0 " rows"
			n = split(wanted[name], time, " ")
			for (i = 1; i <= n && holes == ""; i++)
				if (time[i] > low[name] && time[i] < high[name] &&
				    !((name, time[i]) in seen))
					print name " at " time[i] ": lost"
		}
	}' "$1" "$2" | sort
}

# expected: what must be among the names of the group that has three members,
# as the command tells it, "TYPE INSTANCE DS".
expected() {
	"$command" dump --rules "$work/rules.yaml" --format influx \
		--count 1 2>/dev/null | awk '
	/,group=idle\.three,/ {
		type = $1
		sub(/,.*/, "", type)
		sub(/^proctally_/, "", type)
		instance = $1
		if (!sub(/.*,instance=/, "", instance))
			instance = ""
		n = split($2, field, ",")
		for (i = 1; i <= n; i++) {
			sub(/=.*/, "", field[i])
			print type "\t" instance "\t" field[i]
		}
	}
	# By now they have been read there, here they have not.
	END {
		print "memory\tpss\tvalue\nmemory\tuss\tvalue"
		print "memory\tswap_pss\tvalue\ncount\tpss_read\tvalue"
	}' | sort -u
}

# all_sent ROWS: findings unless the reference has each of these.
all_sent() {
	expected >"$work/expected"
	[ "$(wc -l <"$work/expected")" -ge 35 ] ||
		echo "only $(wc -l <"$work/expected") values are expected"
	awk -F '\t' '$1 == "idle.three" { print $2 "\t" $3 "\t" $4 }' "$1" |
		sort -u | comm -23 "$work/expected" - | sed 's/^/not sent: /'
}

# csv DIR: the shipped configuration of the csv plugin, writing there.
csv() {
	shipped csv/collectd.conf "DataDir=\"$1\""
}

# ticks NAME N: collectd has written so many rows of the group of three.
ticks() {
	rows=$(cat "$work/$1/csv"/*/proctally-idle.three/memory-pss-* \
		2>/dev/null | grep -vc epoch || true)
	[ "${rows:-0}" -ge "$2" ]
}

# --- Graphite, for two tests ---

# graphite_names HOST: rows of the reference by the documented names. Times are whole
# seconds there; what had one of its own in the same second is one of two.
graphite_names() {
	awk -F '\t' -v host="$1" '{
		gsub(/\./, "_", host)
		gsub(/\./, "_", $1)
		name = host ".proctally-" $1 "." $2
		if ($3 != "")
			name = name "-" $3
		if ($7 > 1)
			name = name "." $4
		printf "%s\t%.0f000\t%s\n", name, int(($5 + 500) / 1000), $6
	}'
}

# graphite_rows TARGET...: as graphite-web gives them.
graphite_rows() {
	for target; do
		graphite_render raw "$target" from=-10min
	done | awk -F '|' '
	NF == 2 {
		n = split($1, head, ",")
		name = head[1]
		split($2, value, ",")
		for (i = 1; i in value; i++)
			if (value[i] != "None" && value[i] != "")
				printf "%s\t%.0f000\t%s\n", name,
					head[n - 2] + (i - 1) * head[n],
					value[i]
	}'
}
