#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Values of cgroups, on the real kernel: cgroups are made, used, removed and
# made anew; the command and a real collectd tell what their files say. Where
# no cgroup can be made nothing is tested.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"

plugin=$build/.libs/proctally.so
PATH=$PATH:/usr/sbin:/opt/collectd/sbin
: "${COLLECTD:=collectd}"

id=$$
name=cgr$id
other=other$id
work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-cgroups.XXXXXX")
fs=/sys/fs/cgroup
trees=
pids=

# wait_gone DIR: removes it once nobody is in it any more.
wait_gone() {
	rounds=100
	while [ -d "$1" ] && ! rmdir "$1" 2>/dev/null && [ "$rounds" -gt 0 ]; do
		rounds=$((rounds - 1))
		sleep 0.1
	done
}

remove_cgroups() {
	for tree in $trees; do
		wait_gone "$tree/$name"
		wait_gone "$tree/$other"
	done
}

# shellcheck disable=SC2317,SC2329
finish() {
	trap - EXIT HUP INT TERM
	exec 8>&- 9>&-
	for pid in $pids; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	remove_cgroups
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# await COMMAND...: until it succeeds, for a minute, or fails.
await() {
	rounds=600
	while ! "$@" >/dev/null 2>&1; do
		rounds=$((rounds - 1))
		[ "$rounds" -gt 0 ] || return 1
		sleep 0.1
	done
}

if [ -f "$fs/cgroup.controllers" ]; then
	trees=$fs
else
	for tree in unified memory cpuacct pids; do
		[ ! -d "$fs/$tree" ] || trees="$trees $fs/$tree"
	done
fi
make_cgroups() {
	for tree in $trees; do
		mkdir "$tree/$1" 2>"$work/err" || return 1
	done
}
if [ -z "$trees" ] || ! make_cgroups "$name" || ! make_cgroups "$other"; then
	echo '1..0 # SKIP may not make a cgroup here'
	exit 0
fi

# In microseconds; version 1 comes first, as in the plugin.
usage() {
	if [ -f "$fs/cpuacct/$name/cpuacct.usage" ]; then
		ns=$(cat "$fs/cpuacct/$name/cpuacct.usage")
		echo $((ns / 1000))
	else
		for tree in $trees; do
			sed -n 's/^usage_usec //p' "$tree/$name/cpu.stat"
		done 2>/dev/null | head -n 1
	fi
}

# --- Processes: each line that one reads is so many rounds of a loop. ---

ln -s "$(command -v sh)" "$work/$name"
mkfifo "$work/8" "$work/9"
exec 8<>"$work/8" 9<>"$work/9"

# start FD CGROUP: in that cgroup from its first instruction on.
start() {
	sh -c '
		for tree in $2; do
			echo $$ >"$tree/$3/cgroup.procs" || exit
		done
		exec "$1" -c "
			while read -r n; do
				while [ \$n -gt 0 ]; do n=\$((n - 1)); done
				echo >>$4
			done"' sh "$work/$name" "$trees" "$2" "$work/done" \
		<"$work/$1" >/dev/null 2>&1 8>&- 9>&- &
	child=$!
	pids="$pids $child"
}

runs() {
	[ "$(cat "/proc/$child/comm")" = "$name" ] &&
		grep -q '^State:.S' "/proc/$child/status"
}

# burn N: and waits until that is done.
burn() {
	: >"$work/done"
	echo "$1" >&8
	await test -s "$work/done" && await runs
}

cat >"$work/rules.yaml" <<END
rules:
- {name: $name, comm: $name, collect: {cgroup: true}}
- {name: rest, any: true}
END

# last TYPE [N]: the N-th value that the command printed last; nothing if the
# last reading has none.
last() {
	tac "$work/out" | awk -F '[ :]' -v id="/proctally-$name/$1\"" \
		-v n="${2:-1}" '
		/proctally-_self\/count-processes/ && ends++ { exit }
		index($2, id) { print $(4 + n); exit }'
}

is_last() {
	[ "$(last "$1")" = "$2" ]
}

start 8 "$name"
await runs || echo "# $name does not run"
base=$(usage)
"$command" dump --rules "$work/rules.yaml" --interval 0.3 >"$work/out" \
	2>"$work/err" </dev/null 8>&- 9>&- &
dump=$!
pids="$pids $dump"

cpu=total_time_in_ms-cgroup_cpu
point 'CPU time of a cgroup is what its file says, from the first reading on' "$(
	await is_last "$cpu" 0 || { echo 'no value'; cat "$work/err"; }
	burn 300000 || echo 'it did not burn'
	used=$((($(usage) - base) / 1000))
	[ "$used" -gt 10 ] || echo "it used $used ms"
	echo "$used" >"$work/used"
	await is_last "$cpu" "$used" ||
		echo "want $used ms, got $(last "$cpu")")"
point 'each file that is there has its value, each that is not has none' "$(
	# has TYPE FILE...: one of the files is there, or no value is.
	has() {
		there=
		type=$1
		shift
		for file; do
			for tree in $trees; do
				[ ! -f "$tree/$name/$file" ] ||
					[ -z "$(cat "$tree/$name/$file")" ] ||
					there=1
			done
		done
		[ -z "$there" ] || [ -n "$(last "$type")" ] ||
			echo "$type: no value"
		[ -n "$there" ] || [ -z "$(last "$type")" ] ||
			echo "$type: $(last "$type") of nothing"
	}
	has memory-cgroup memory.current memory.usage_in_bytes
	has count-cgroup_pids pids.current
	has memory-cgroup_dmem dmem.current
	for what in cpu memory io; do
		has "total_time_in_ms-cgroup_${what}_some" $what.pressure
		has "total_time_in_ms-cgroup_${what}_full" $what.pressure
	done
	[ -z "$(last count-cgroup_pids)" ] || is_last count-cgroup_pids 1 ||
		echo "$(last count-cgroup_pids) processes"
	! grep proctally-rest "$work/out" | grep -q cgroup ||
		echo 'values of a group that did not ask')"
point 'members in two cgroups have no values' "$(
	start 9 "$other"
	await runs || echo "the second one does not run"
	await is_last ps_count 2 || echo "not 2 members"
	await is_last "$cpu" '' || echo "they have $(last "$cpu")"
	kill -KILL "$child"
	await is_last ps_count 1 || echo "not 1 member"
	await is_last "$cpu" "$(cat "$work/used")" ||
		echo "it has $(last "$cpu")")"

before=$(last "$cpu")
kill -KILL "$child" 2>/dev/null || true
for tree in $trees; do
	wait_gone "$tree/$name"
done
make_cgroups "$name"
start 8 "$name"
await runs || echo "# the new $name does not run"
point 'a cgroup made anew adds to the counter of the one before' "$(
	burn 10000 || echo 'it did not burn'
	want=$((before + $(usage) / 1000))
	# shellcheck disable=SC2317,SC2329
	is_sum() {
		got=$(last "$cpu")
		[ "$got" -ge $((want - 1)) ] && [ "$got" -le $((want + 1)) ]
	}
	await is_sum || echo "want $want, got $(last "$cpu")")"
kill -TERM "$dump"
wait "$dump" || true
point 'no counter of a cgroup stepped back' "$(
	awk -F '[ :]' '
	!/cgroup/ || /\/(memory|count)-/ { next }
	{
		lines++
		for (i = 5; i <= NF; i++) {
			if ($i + 0 < was[$2, i] + 0)
				print $2 " fell from " was[$2, i] " to " $i
			was[$2, i] = $i
		}
	}
	END {
		if (lines < 10)
			print lines + 0 " lines"
	}' "$work/out")"

# In a PID namespace nobody else comes and goes.
cat >"$work/alone" <<END
for tree in $trees; do
	echo \$\$ >"\$tree/$name/cgroup.procs" || exit
done
"$work/$name" -c 'read -r x' <"$work/8" >/dev/null 2>&1 &
"$command" bench --rules "$work/rules.yaml" --count 8 >"$work/bench" 2>&1
sed 's/cgroup: true/cgroup: false/' "$work/rules.yaml" >"$work/without.yaml"
"$command" bench --rules "$work/without.yaml" --count 3 >"$work/less" 2>&1
END
values() {
	sed -n 's/^values //p' "$work/$1"
}
steady='in a steady reading nothing is allocated'
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	point "$steady" "$(
		timeout -k 5 60 unshare --pid --fork --kill-child --mount-proc \
			sh "$work/alone" >"$work/err" 2>&1 </dev/null || true
		grep -qx 'heap_allocations_per_tick 0' "$work/bench" ||
			cat "$work/err" "$work/bench"
		[ "$(values bench)" -gt "$(values less)" ] ||
			cat "$work/less" "$work/bench")"
else
	leave_out "$steady" 'no PID namespace'
fi

# --- collectd ---

if ! command -v "$COLLECTD" >/dev/null || [ ! -f "$plugin" ]; then
	skip 'collectd has the same values, and knows all types' \
		'no collectd, or no plugin'
	plan
	exit 0
fi
mkdir "$work/plugins"
cp "$plugin" "$work/plugins/proctally.so"
system_plugins=$("$COLLECTD" -h | sed -n 's/^ *Plugin directory  *//p')
types_db=
for file in /usr/share/collectd/types.db /opt/collectd/share/collectd/types.db; do
	[ ! -f "$file" ] || types_db=${types_db:-$file}
done
cat >"$work/collectd.conf" <<END
Hostname "localhost"
FQDNLookup false
BaseDir "$work"
PIDFile "$work/collectd.pid"
Interval 1
TypesDB "$types_db"
PluginDir "$system_plugins"
LoadPlugin logfile
<Plugin logfile>
	LogLevel info
	File "$work/log"
</Plugin>
LoadPlugin csv
<Plugin csv>
	DataDir "$work/data"
	StoreRates false
</Plugin>
PluginDir "$work/plugins"
LoadPlugin proctally
<Plugin proctally>
	Rules "$work/rules.yaml"
</Plugin>
END
"$COLLECTD" -f -C "$work/collectd.conf" >"$work/output" 2>&1 </dev/null \
	8>&- 9>&- &
daemon=$!
pids="$pids $daemon"
point 'collectd has the same values, and knows all types' "$(
	at=$work/data/localhost/proctally-$name
	# shellcheck disable=SC2317,SC2329
	has_rows() {
		[ "$(cat "$at/$1"-* | wc -l)" -ge 3 ]
	}
	await has_rows "$cpu" || { echo 'no CPU time'; ls "$at"; }
	used=$(usage)
	burn 300000 || echo 'it did not burn'
	used=$((($(usage) - used) / 1000))
	# shellcheck disable=SC2317,SC2329
	is_there() {
		[ "$(cat "$at/$cpu"-* | tail -n 1 | cut -d, -f2)" = "$used" ]
	}
	await is_there ||
		echo "want $used, got $(cat "$at/$cpu"-* | tail -n 1)"
	[ -z "$(find "$work/data/localhost/proctally-rest" -name '*cgroup*')" ] ||
		echo 'values of a group that did not ask'
	! grep -E 'types\.db|uc_update|dispatch' "$work/log" || true)"
kill -TERM "$daemon"
wait "$daemon" || true

plan
