#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The plugin in a real collectd while calls that it makes fail, each n-th of
# them with one errno after the other (see faults.h): the daemon goes on, its
# other plugins notice nothing, no counter steps back, the log stays short, and
# as soon as the calls succeed again all values are right. What each value has
# to be meanwhile hostile.t tests, which lets every call fail in its turn, but
# has no daemon around it.
set -eu

# shellcheck source=tests/daemontest.sh
. "${top_srcdir:-.}/tests/daemontest.sh"
name_processes idle burn

rules() {
	cat <<END
defaults: {collect: {ctx: on, rss_split: on, fd_limit: on, delay: on,
                     exited: on, reaped: on, pss: {every: 1s}}}
rules:
- {name: idle, cmdline: 'read', comm: idle$id}
- {name: burn, exe_path: "glob:/**", comm: burn$id}
- {name: "by-{{.Username}}", any: true, kernel: any}
views:
  unit: {by: unit}
END
}

preload=$build/tests/.libs/faults.so
if [ ! -f "$preload" ]; then
	skip 'calls of the plugin fail in collectd' 'tests/faults.la is not built'
	plan
	exit 0
fi

control=$work/control
printf '%-31s\n%-31s\n' 0 0 >"$control"
# fail_each N | "N ERRNO": from now on each n-th call fails, or of these those
# that may fail so; with 0 none.
fail_each() {
	printf '%-31s\n' "$1" | dd of="$control" conv=notrunc status=none
}

n_failed() {
	sed -n '2s/ *$//p' "$control"
}

# Prints its CPU time in microseconds.
burner_cpu() {
	sed 's/.*) //' "/proc/$burner/stat" |
		awk -v hz="$(getconf CLK_TCK)" '
			{ printf "%.0f", ($12 + $13) * 1000000 / hz }'
}

group_cpu() {
	echo "$(($(value burn ps_cputime 1) + $(value burn ps_cputime 2)))"
}

# burn: lets the burner burn for a while; it stands still afterwards.
burn() {
	kill -CONT "$burner"
	sleep 1
	kill -STOP "$burner"
	sleep 0.1
}

# Does the group have what the burner used since then?
has_all() {
	[ "$(($(group_cpu) - was))" = "$(($(burner_cpu) - cpu))" ]
}

hold idle 3
"$work/burn$id" -c 'while :; do :; done' 7>&- 8>&- &
burner=$!
pids="$pids $burner"
await 5 grep -q "^burn$id$" "/proc/$burner/comm" || true
kill -STOP "$burner"

extra="PluginDir \"$system_plugins\"
LoadPlugin uptime
PluginDir \"$work/plugins\""
block "$(rules_of faults)" | prepare faults
run faults env "PROCTALLY_FAULTS=$control" "LD_PRELOAD=$preload"

point 'with the library that makes calls fail all is well at first' "$(
	want idle ps_count 1 3
	goes_on idle memory-pss
	want burn ps_state-stopped 1 1
	[ "$(n_failed)" = 0 ] || echo 'calls have failed')"

# Reloads, births and ends are what calls are made for.
# bother N: for that many seconds.
bother() {
	rounds=$1
	while [ "$rounds" -gt 0 ]; do
		rules >"$dir/rules.new"
		echo "# $rounds" >>"$dir/rules.new"
		mv "$dir/rules.new" "$dir/rules.yaml"
		burn
		"$sh" -c : &
		wait $!
		rounds=$((rounds - 1))
	done
}

# suffer CALLS N: N seconds in which these calls fail.
suffer() {
	before=$(n_failed)
	fail_each "$1"
	bother "$2"
	fail_each 0
	failed=$(($(n_failed) - before))
}

some_failed() {
	[ "$failed" -ge 3 ] || echo "only $failed calls failed"
}

n_uptimes() {
	cat "$dir/data/localhost/uptime/"uptime-2* | grep -vc '^epoch'
}

for each in 31 7 3 1; do
	uptimes=$(n_uptimes)
	suffer "$each" 8
	point "where of $each calls one fails collectd goes on" "$(
		some_failed
		uptimes=$(($(n_uptimes) - uptimes))
		[ "$uptimes" -ge 6 ] ||
			echo "of another plugin $uptimes values came in 8 s"
		runs)"
	point "where of $each calls one failed all is right afterwards" "$(
		# Who was said to be gone is found when all are listed anew.
		await 75 is idle ps_count 1 3 || true
		want idle ps_count 1 3
		want idle ps_state-sleeping 1 3
		await 75 is burn ps_count 1 1 || true
		want burn ps_count 1 1
		want _self gauge-rules_ok 1 1
		goes_on burn ps_cputime
		goes_on idle memory-pss
		was=$(group_cpu) cpu=$(burner_cpu)
		burn
		await 10 has_all || {
			echo "the group has $(($(group_cpu) - was)) us more,"
			echo "its process $(($(burner_cpu) - cpu))"
		})"
done

# What the host is short of says nothing of /proc: collectd would ask later and
# later, and not for each interval.
n_said=$(log_times 0 'Will suspend')
for err in ENOMEM EMFILE; do
	suffer "1 $err" 4
	point "with $err for each call that may say so collectd goes on asking" "$(
		some_failed
		[ "$(log_times 0 'Will suspend')" = "$n_said" ] ||
			grep 'Will suspend' "$dir/log" | tail -n 3
		await 75 is idle ps_count 1 3 || true
		want idle ps_count 1 3
		goes_on burn ps_cputime)"
done

counters='ps_cputime|ps_pagefaults|octets|disk_ops|contextswitch|total_'
point 'no counter stepped back, and no value is negative' "$(
	find "$dir/data/localhost" -path '*/proctally-*' -type f |
		while read -r file; do
			awk -F, -v file="${file##*/localhost/}" \
				-v counters="$counters" '
			/^epoch/ { next }
			{
				for (i = 2; i <= NF; i++) {
					if ($i < 0 && file !~ /residual/)
						print file ": " $0
					if (file !~ counters)
						continue
					if ($i != "nan" && $i + 0 < last[i])
						print file ": " $0 " after " last[i]
					if ($i != "nan")
						last[i] = $i + 0
				}
			}' "$file"
		done)"

point 'no more processes were counted than there are' "$(
	for group in idle burn; do
		most=3
		[ "$group" = idle ] || most=1
		rows "$group" ps_count | awk -F, -v most="$most" '
			$2 > most || $2 < 0' | sed "s/^/$group: /"
	done)"

point 'the log stays short' "$(
	grep -c 'proctally plugin:' "$dir/log" | awk '$1 > 200 {
		print $1 " lines" }'
	# Each rule file is told of, whether it could be used or not.
	sed -n 's/.*proctally plugin: //p' "$dir/log" |
		grep -v '/rules\.yaml' | sed 's/[0-9][0-9]*/N/g' | sort |
		uniq -c | awk '$1 > 8')"

stop 5
point 'it ends as it should' "$stopped"

plan
