#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The plugin in a real collectd: what arrives, what is said about mistakes, and
# whether the daemon and its other plugins stay well.
set -eu

# shellcheck source=tests/daemontest.sh
. "${top_srcdir:-.}/tests/daemontest.sh"
name_processes idle burn mark many

rules() {
	cat <<END
rules:
- {name: idle, comm: idle$id}
- {name: burn, comm: burn$id}
- {name: mark, cmdline: ' mark-$id$'}
- {name: many, comm: many$id}
END
}

# --- The file itself ---

point 'module_register alone is exported' "$(
	nm -D --defined-only "$plugin" | awk '$NF != "module_register"'
	nm -D --defined-only "$plugin" | grep -q ' T module_register$' ||
		echo 'it is not')"

theirs=$(command -v "$COLLECTD")
point "of collectd's symbols only those of the plugin interface are used" "$(
	nm -D --defined-only "$theirs" | awk '{ print $NF }' | sort -u \
		>"$work/theirs"
	nm -D --undefined-only "$plugin" | awk '{ print $NF }' | sort -u \
		>"$work/wanted"
	[ -s "$work/theirs" ] || echo "$theirs exports nothing"
	comm -12 "$work/theirs" "$work/wanted" |
		grep -vxE 'plugin_(log|dispatch_values|get_ds|register_(complex_read|complex_config|shutdown|init)|unregister_read)|cdtime' || true)"

name='built with static libraries it needs the C library alone'
if [ "${STATIC_LIBS:-no}" = yes ]; then
	point "$name" "$(ldd "$plugin" | awk '{ print $1 }' |
		grep -vE '^(linux-vdso|linux-gate|libc|libpthread|ld-linux[^.]*|/.*/ld-linux[^.]*)\.so' || true)"
else
	leave_out "$name" 'built without --with-static-libs'
fi

# --- Values ---

page=$(getconf PAGESIZE)
hz=$(getconf CLK_TCK)
hold idle 3
idle_pids=$(echo "$pids" | awk '{ print $(NF - 2), $(NF - 1), $NF }')
hold mark 2 "mark-$id"
block "$(rules_of values)" | prepare values
run values

# rss_of PID...: bytes that they have now, by stat; statm of later kernels adds
# up what stat leaves in counters of single processors.
rss_of() {
	for pid; do
		sed 's/.*) //' "/proc/$pid/stat"
	done | awk -v page="$page" '{ sum += $22 * page } END { print sum }'
}

point 'processes are counted by comm and by command line' "$(
	want idle ps_count 1 3
	want idle ps_count 2 3
	want mark ps_count 1 2
	want burn ps_count 1 0
	want idle ps_state-sleeping 1 3
	want _self gauge-rules_ok 1 1)"

# A process that has just begun grows until it is seen again.
rss_fits() {
	# shellcheck disable=SC2086
	rss=$(rss_of $idle_pids)
	got=$(value idle ps_rss 1)
	[ "${got:-0}" -ge $((rss * 9 / 10)) ] &&
		[ "${got:-0}" -le $((rss * 11 / 10)) ]
}

point 'resident memory is what the kernel says' "$(
	await 15 rss_fits || echo "want about $rss, got ${got:-nothing}")"

"$work/burn$id" -c 'while :; do :; done' 7>&- 8>&- &
burner=$!
pids="$pids $burner"
# Sets $burnt to its CPU time, in microseconds.
burns_enough() {
	burnt=$(sed 's/.*) //' "/proc/$burner/stat" |
		awk -v hz="$hz" '{ printf "%.0f", ($12 + $13) * 1000000 / hz }')
	[ "$burnt" -ge 300000 ]
}
await 60 burns_enough || true
kill -STOP "$burner"
sleep 0.1
burns_enough || true

has_burnt() {
	user=$(value burn ps_cputime 1) syst=$(value burn ps_cputime 2)
	[ "$((${user:-0} + ${syst:-0}))" = "$burnt" ]
}

point 'the CPU time of a process that started meanwhile is there, whole' "$(
	[ "$burnt" -ge 300000 ] || echo "it burnt only $burnt us"
	await 10 has_burnt || {
		echo "want $burnt us"
		rows burn ps_cputime
	}
	want burn total_operations-starts 1 1
	want burn ps_state-stopped 1 1)"

# Where there are exit records the fractions of its ticks come, too: less than
# one for each value, and what the end itself takes.
has_kept() {
	user=$(value burn ps_cputime 1) syst=$(value burn ps_cputime 2)
	[ "$((${user:-0} + ${syst:-0}))" -ge "$burnt" ] &&
		[ "$((${user:-0} + ${syst:-0}))" -le "$((burnt + 30000))" ]
}

kill -KILL "$burner"
wait "$burner" 2>/dev/null || true
point 'when it ends its group keeps what it used' "$(
	want burn ps_count 1 0
	has_kept || echo "$user + $syst us, and not $burnt"
	goes_on burn ps_cputime
	has_kept || echo "$user + $syst us, and not $burnt")"

# Only whole ticks: of the last one a part may be written.
point 'values of a tick have one time, and no value comes twice' "$(
	for file in ps_count ps_rss ps_cputime file_handles ps_pagefaults; do
		rows idle "$file" | cut -d, -f1 >"$work/times.$file"
		[ -s "$work/times.$file" ] || echo "no rows of $file"
		uniq -d "$work/times.$file" | sed "s/^/$file twice: /"
	done
	for file in ps_rss ps_cputime file_handles ps_pagefaults; do
		head -n 5 "$work/times.ps_count" >"$work/a"
		head -n 5 "$work/times.$file" >"$work/b"
		cmp "$work/a" "$work/b"
	done 2>&1)"
stop 5
point 'it ends when it is told to' "$stopped"

# --- Rules ---

block "$(rules_of rules)" | prepare rules
rm "$work/rules/rules.yaml"
run rules
point 'without rules the daemon runs, and says so once' "$(
	say_log 'rules.yaml.*(cannot|No such file|not used)'
	want _self gauge-rules_ok 1 0
	goes_on _self gauge-rules_ok
	log_times 1 'rules\.yaml: not used'
	runs)"
point 'wrong rules are told with line and column' "$(
	printf 'rules:\n- {name: a, comn: x}\n' >"$dir/rules.yaml"
	say_log 'rules\.yaml:2:13: error: unknown key "comn"'
	goes_on _self gauge-rules_ok
	log_times 1 'unknown key'
	runs)"
point 'good rules are used while it runs' "$(
	rules >"$dir/rules.yaml"
	want idle ps_count 1 3
	want _self gauge-rules_ok 1 1)"
findings=$(
	printf 'rules: [\n' >"$dir/rules.yaml"
	want _self gauge-rules_ok 1 0
	goes_on idle ps_count
	is idle ps_count 1 3 || echo 'other values than before'
	say_log 'the rules before it go on')
stop 5
point 'wrong rules do not replace good ones' "$findings$stopped"

# --- Options ---

block "
	$(rules_of options)
	Nonsense \"x\"
	ProcPath 5
	SysPath \"a\" \"b\"
	<Block>
		Key true
	</Block>" | prepare options
block 'Rules "/nonexistent"' >>"$work/options/collectd.conf"
run options
findings=$(
	want idle ps_count 1 3
	say_log 'unknown option "Nonsense"'
	say_log 'unknown option "Block"'
	say_log 'option ProcPath takes'
	say_log 'option SysPath takes'
	say_log '(further|second) <Plugin proctally> block'
	runs)
stop 5
point 'wrong options and a second block are told, and the first one holds' \
	"$findings$stopped"

prepare bare </dev/null
run bare
findings=$(
	await 10 more_rows_than 1 _self count-processes ||
		echo 'no values of _self'
	[ -e /etc/proctally.yaml ] || say_log '/etc/proctally.yaml'
	runs)
stop 5
point 'without a <Plugin> block it runs with the defaults' \
	"$findings$stopped"

# --- Types ---

grep -v '^ps_pagefaults' "$types_db" >"$work/types.less"
types=$work/types.less
block "$(rules_of less)" | prepare less
run less
findings=$(
	want idle ps_count 1 3
	goes_on idle ps_cputime
	log_times 1 'ps_pagefaults'
	log_times 0 '(Unknown|dataset|data set|ds_num).*ps_cputime'
	[ -z "$(rows idle ps_pagefaults)" ] || echo 'values of it'
	runs)
stop 5
point 'a type that is missing costs its values alone, and one warning' \
	"$findings$stopped"

sed 's/^ps_cputime.*/ps_cputime value:DERIVE:0:U/' "$types_db" \
	>"$work/types.other"
types=$work/types.other
block "$(rules_of other)" | prepare other
run other
findings=$(
	say_log 'ps_cputime'
	sleep 2
	log_times 1 'proctally.*ps_cputime'
	[ -z "$(rows idle ps_cputime)" ] || echo 'values of it'
	runs)
stop 5
point 'another ps_cputime is told, and nothing wrong is sent' \
	"$findings$stopped"
types=

# --- Another /proc ---

block "$(rules_of proc)
	ProcPath \"/nonexistent\"" | prepare proc
run proc
findings=$(
	say_log '/nonexistent.*(unusable|No such file)'
	sleep 2
	log_times 1 'proctally plugin: /nonexistent'
	runs)
stop 5
point 'a /proc that is not there is told, and the daemon runs' \
	"$findings$stopped"

# --- A neighbour that uses select() ---

# Limits of processes, each with what counts towards it now: of the kernel, of
# each control group that we are in, and of our user, which holds not for root.
# Each takes less than 200 kB, and what memory there is, is a limit as well.
pid_limits() {
	awk '/^MemAvailable:/ { print "memory for", int($2 / 200), 0 }' \
		/proc/meminfo
	tasks=$(sed 's/.*\/\([0-9]*\) .*/\1/' /proc/loadavg)
	for file in pid_max threads-max; do
		[ ! -r "/proc/sys/kernel/$file" ] ||
			echo "kernel.$file $(cat "/proc/sys/kernel/$file") $tasks"
	done
	[ "$(id -u)" = 0 ] || awk -v tasks="$tasks" '
		/^Max processes/ { print "RLIMIT_NPROC", $3, tasks }' \
		/proc/self/limits
	sed -n 's,^[0-9]*:pids:,/pids,p; s,^0::,,p' /proc/self/cgroup |
		while read -r group; do
			while :; do
				in=/sys/fs/cgroup$group
				[ ! -r "$in/pids.max" ] ||
					echo "pids.max $(cat "$in/pids.max")" \
						"$(cat "$in/pids.current")"
				case $group in
				*/*) group=${group%/*} ;;
				*) break ;;
				esac
			done
		done
}

# What else is to run beside the crowd: collectd, this script, the machine.
spare=500
crowd=5000
limit=$(pid_limits | awk -v spare="$spare" '
	$(NF - 1) !~ /^[0-9]+$/ { next }
	n == "" || $(NF - 1) - $NF - spare < n {
		n = $(NF - 1) - $NF - spare
		by = substr($0, 1, length($0) - length($NF) - 1)
	}
	END { if (n != "") print (n < 0 ? 0 : n), by }')

crowd_is_there() {
	[ -e "$work/crowd.there" ]
}

crowd_is_gone() {
	! kill -0 "$crowd_pid" || grep -qs '^State:.Z' "/proc/$crowd_pid/status"
}

name="beside 5,000 processes a plugin that uses select() works"
if [ -n "$limit" ] && [ "${limit%% *}" -lt "$crowd" ]; then
	crowd=${limit%% *}
	leave_out "$name" "${limit#* } allows $crowd only"
	name="beside $crowd processes a plugin that uses select() works"
fi
if [ ! -f "$work/plugins/selectuser.so" ]; then
	skip "$name" 'selectuser is not built'
elif [ "$crowd" -gt 0 ]; then
	mkfifo "$work/crowd"
	exec 7<>"$work/crowd"
	# They end with fd 7, and their parent, who counts as well, waits for them.
	# shellcheck disable=SC2016
	"$work/many$id" -c '
		i=1
		while [ $i -lt "$1" ]; do
			read -r x <&3 &
			i=$((i + 1))
		done
		: >"$2"
		read -r x <&3
		wait' many "$crowd" "$work/crowd.there" 3<"$work/crowd" \
		>/dev/null 2>&1 7>&- 8>&- &
	crowd_pid=$!
	pids="$pids $crowd_pid"
	findings=
	await 60 crowd_is_there || findings="they did not come within 60 s
"
	extra='LoadPlugin selectuser'
	block "$(rules_of select)" | prepare select
	echo 'sampling: {gate: off}' >>"$work/select/rules.yaml"
	run select
	point "$name" "$findings$(
		want many ps_count 1 "$crowd"
		goes_on many ps_count
		goes_on many ps_count
		kept=$(value _self file_handles-kept 1)
		[ "${kept:-0}" -ge 500 ] || [ "$crowd" -lt 500 ] ||
			echo "only $kept descriptors kept"
		grep 'selectuser: fd' "$dir/log" >"$work/numbers" ||
			echo 'it says nothing'
		grep -vE 'selectuser: fd [1-6]?[0-9] select 1' "$work/numbers"
		grep 'no use' "$dir/log"
		runs)"
	stop 5
	point 'with that many it ends in time, too' "$stopped"
	extra=
	exec 7>&-
	await 30 crowd_is_gone || true
fi

# --- A process that hangs ---

name='beside a process that hangs its reader it keeps its interval'
stuck_in=$work/stuck.in
mkfifo "$stuck_in"
if [ -x "$build/tests/stuckfs" ]; then
	"$build/tests/stuckfs" 1 30 mmap <"$stuck_in" >"$work/stuck" 2>&1 7>&- 8>&- &
	stuckfs=$!
	exec 7>"$stuck_in"
	await 10 grep -q ready "$work/stuck" || true
fi
if grep -qs ready "$work/stuck"; then
	stuck=$(head -n 1 "$work/stuck")
	block "$(rules_of stall)" | prepare stall
	cat >>"$work/stall/rules.yaml" <<END
- {name: stuck, comm: stuck0.$stuckfs}
END
	run stall
	point "$name" "$(
		want idle ps_count 1 3
		want mark ps_count 1 2
		want stuck ps_count 1 1
		before=$(n_rows idle ps_cputime)
		used=$(value stuck ps_cputime 1)
		sleep 4
		after=$(n_rows idle ps_cputime)
		[ $((after - before)) -ge 3 ] ||
			echo "$((after - before)) intervals in 4 s"
		[ "$(value stuck ps_cputime 1)" -gt "$used" ] ||
			echo 'its CPU time stands still'
		log_times 1 "process $stuck "
		runs)"
	stop 2
	point 'with it there the daemon ends within 2 s' "$stopped"
	exec 7>&-
	wait "$stuckfs" || true
else
	exec 7>&-
	skip "$name" 'no FUSE, or not root'
fi

# --- Memory ---

name='under valgrind it makes no mistake and loses no memory'
if have valgrind; then
	block "$(rules_of valgrind)" | prepare valgrind
	cat >>"$work/valgrind/rules.yaml" <<END
- {name: "x-{{.Comm}}", cmdline: '.*', collect: {ctx: true, rss_split: true}}
END
	run valgrind valgrind --log-file="$work/valgrind/report" \
		--leak-check=full --show-leak-kinds=definite,possible \
		--num-callers=30 --keep-debuginfo=yes --fullpath-after=
	await 40 is idle ps_count 1 3 || true
	first=$(n_rows idle ps_count)
	while [ $(($(n_rows idle ps_count) - first)) -lt 20 ]; do
		! ended || break
		# Somebody comes, changes and goes.
		for i in 1 2 3 4 5; do
			(
				sleep "0.$i"
				exec sleep "0.$i"
			) &
		done
		"$sh" -c 'read -r x' "churn-$i" </dev/null || true
		touch "$dir/rules.yaml"
		wait_for=$(n_rows idle ps_count)
		await 10 more_rows_than "$wait_for" idle ps_count || break
	done
	intervals=$(($(n_rows idle ps_count) - first))
	stop 60
	point "$name" "$(
		echo "$stopped" | sed '/^$/d'
		[ "$intervals" -ge 20 ] || echo "only $intervals intervals"
		grep -q 'ERROR SUMMARY' "$work/valgrind/report" ||
			echo 'valgrind came to no end'
		# Its records are separated by lines with nothing but its mark.
		sed 's/^==[0-9]*== \{0,1\}//' "$work/valgrind/report" |
			awk -v RS= '
				# On a slow host a thread may be about to end.
				/possibly lost/ && /allocate_stack/ { next }
				/plugin\/[a-z-]+\.c:[0-9]+|proctally\.so/')"
else
	skip "$name" 'no valgrind'
fi

plan
