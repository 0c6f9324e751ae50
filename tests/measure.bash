# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What tests/bench and contrib/bench-peers share: processes to measure on, and
# the CPU time of a daemon. The caller sets $dir, a directory of its own,
# $population and $collectd, and calls end_population and restore_pids at its
# end.
# shellcheck disable=SC2154

members=()
holds=()
old_pid_max=

# begin_population IDLE ACTIVE FDS [MIB [SECONDS]]; may be called repeatedly.
begin_population() {
	local hold
	mkfifo "$dir/hold"
	"$population" "$@" < "$dir/hold" > "$dir/ready" &
	members+=($!)
	exec {hold}> "$dir/hold"
	holds+=("$hold")
	rm "$dir/hold"
	until grep -q ready "$dir/ready"; do
		kill -0 "${members[-1]}" 2>/dev/null ||
			{ echo "no population"; exit 1; }
		sleep 0.2
	done
}

end_population() {
	local hold
	for hold in "${holds[@]}"; do
		exec {hold}>&-
	done
	[ ${#members[@]} = 0 ] || wait "${members[@]}"
	members=() holds=()
}

# need_pids N: raises the host's limit if it has to.
need_pids() {
	local have
	have=$(cat /proc/sys/kernel/pid_max)
	[ "$have" -ge "$1" ] && return 0
	echo "$1" 2>/dev/null > /proc/sys/kernel/pid_max || return 1
	old_pid_max=$have
}

restore_pids() {
	[ -z "$old_pid_max" ] ||
		echo "$old_pid_max" > /proc/sys/kernel/pid_max
}

# cpu_ns PID: CPU time of its threads so far.
cpu_ns() {
	cat "/proc/$1/task/"*/schedstat | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

# command_cost INTERVALS COMMAND...: CPU time in ns that it takes in so many
# seconds, after 5 s to begin with. It gets no descriptor of ours, or the
# processes would not end with us.
command_cost() {
	local seconds=$1 pid before after
	shift
	# Some end when their standard input does.
	[ -p "$dir/silence" ] || mkfifo "$dir/silence"
	(
		local hold
		for hold in "${holds[@]}"; do
			exec {hold}>&-
		done
		exec "$@"
	) > "$dir/output" 2>&1 <> "$dir/silence" &
	pid=$!
	sleep 5
	if [ ! -d "/proc/$pid" ]; then
		sed 's/^/# /' "$dir/output" >&2
		return 1
	fi
	before=$(cpu_ns "$pid")
	sleep "$seconds"
	after=$(cpu_ns "$pid")
	kill "$pid"
	wait "$pid" 2>/dev/null
	echo $((after - before))
}

# daemon_cost NAME INTERVALS: the same of a collectd with what stdin adds to
# its configuration. The chain ends the way of the values where a store would be
# called: without any, collectd writes a message for each of them.
daemon_cost() {
	local d=$dir/$1
	mkdir -p "$d"
	{
		echo "Hostname \"bench\""
		echo "Interval 1"
		echo "BaseDir \"$d\""
		echo "PIDFile \"$d/pid\""
		echo "TypesDB \"/usr/share/collectd/types.db\""
		echo "PostCacheChain \"PostCache\""
		printf '<Chain "PostCache">\n\tTarget "stop"\n</Chain>\n'
		cat
	} > "$d/conf"
	command_cost "$2" "$collectd" -f -C "$d/conf"
}
