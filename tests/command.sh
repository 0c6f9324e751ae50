#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The command line: what each call prints, where it prints it and with which
# status it ends.
set -eu

# By itself if that can be: others' hanging processes are told on stderr.
if [ -z "${OWN_PIDS-}" ] && unshare -pf --mount-proc true 2>/dev/null; then
	export OWN_PIDS=1
	exec unshare -pf --kill-child --mount-proc "$0"
fi

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-command.XXXXXX")
child=
# shellcheck disable=SC2317,SC2329
finish() {
	trap - EXIT HUP INT TERM
	[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# run ARGUMENT...: its output is in out and err, its status in $status.
run() {
	status=0
	timeout -k 5 60 "$command" "$@" >"$work/out" 2>"$work/err" </dev/null ||
		status=$?
}

# ends STATUS ARGUMENT...: runs it; findings if it ends in another way.
ends() {
	want=$1
	shift
	run "$@"
	[ "$status" = "$want" ] || {
		echo "$*: want status $want, got $status"
		cat "$work/err"
	}
}

# What cannot be read of some processes may be told.
silent() {
	! grep -v ' unreadable for ' "$work/$1" >"$work/noise" || {
		echo "on standard $1:"
		cat "$work/noise"
	}
}

says() {
	grep -qE -e "$2" "$work/$1" || {
		echo "not on standard $1: $2"
		cat "$work/$1"
	}
}

cat >"$work/good.yaml" <<'END'
rules:
- {name: kernel, kernel: true}
- {name: all, any: true}
END
printf 'rules:\n- {name: a, comn: x}\n- {name: b}\n' >"$work/bad.yaml"

# --- Help ---

point 'the version is printed' "$(
	ends 0 --version
	silent err
	says out '^proctally [0-9][0-9.]*'
	[ "$(wc -l <"$work/out")" = 1 ] || echo 'more than one line'
	ends 0 -V)"
point 'help is printed' "$(
	ends 0 --help
	silent err
	says out '^Usage: proctally'
	ends 0 -h
	ends 0 dump --help
	says out '^Usage: proctally')"

# The calls and options of the manual page's synopsis, and those of --help.
run --help
sed -nE 's/^  ([a-z][a-z-]*) .*/\1/p' "$work/out" | sort -u >"$work/help.calls"
sed -nE 's/^  (--[a-z]+).*/\1/p' "$work/out" | sort -u >"$work/help.options"
sed '/^\.Sh DESCRIPTION/q' "$src/config/proctally.1" >"$work/synopsis"
sed -nE 's/^\.Cm ([a-z-]+)$/\1/p' "$work/synopsis" | sort -u >"$work/man.calls"
sed -nE 's/^\.(Op )?Fl -([a-z]+).*/--\2/p' "$work/synopsis" | sort -u \
	>"$work/man.options"
point 'help and manual page know the same calls and options' "$(
	for what in calls options; do
		[ -s "$work/help.$what" ] || echo "no $what"
		diff "$work/man.$what" "$work/help.$what" || true
	done)"
sed -n 's/^  --format NAME  *//p' "$work/out" | tr -d ',' | tr ' ' '\n' |
	sort >"$work/help.formats"
sed -n '/^\.It Fl -format/,/^\.El$/s/^\.It Cm //p' "$src/config/proctally.1" |
	sort >"$work/man.formats"
sed -n "s/.*compgen -W '\([a-z ]*putval[a-z ]*\)'.*/\1/p" \
	"$src/contrib/completion/proctally.bash" | tr ' ' '\n' |
	sort >"$work/completion.formats"
point 'help, manual page and completion know the same formats' "$(
	[ -s "$work/help.formats" ] || echo 'no formats'
	diff "$work/help.formats" "$work/man.formats" || true
	diff "$work/help.formats" "$work/completion.formats" || true)"
point 'the completion knows the same calls and options' "$(
	while read -r word; do
		grep -qE -e "['= ]${word}[' )]" \
			"$src/contrib/completion/proctally.bash" ||
			echo "$word is missing"
	done <<-END
		$(cat "$work/help.calls" "$work/help.options")
	END
)"

# --- Usage ---

point 'what makes no sense is told, with status 2' "$(
	ends 2
	silent out
	says err '^Usage: '
	ends 2 nonsense
	silent out
	says err 'unknown call "nonsense"'
	ends 2 --nonsense
	silent out
	says err 'nonsense'
	ends 2 check
	says err 'file'
	ends 2 dump surplus
	says err 'not a number of seconds: surplus'
	ends 2 dump 1 2
	says err 'too many arguments'
	ends 2 dump --format netdata --output "$work/file"
	says err 'netdata does not fit into a file'
	ends 2 dump --residual --format putval
	says err '--residual is a table of its own'
	ends 2 dump --residual --count 1
	says err 'takes two readings'
	ends 2 match --residual
	says err 'does not take'
	ends 2 bench surplus
	says err 'no arguments'
	ends 2 dump --rules
	says err 'requires an argument'
	ends 2 dump --format nonsense
	says err 'unknown format "nonsense"'
	ends 2 check --count 1 "$work/good.yaml"
	says err 'does not take'
	ends 2 bench --output file
	says err 'does not take'
	ends 2 bench --format putval
	says err 'does not take')"
point 'numbers that are none are told, with status 2' "$(
	for count in 0 -1 x 1x '' 1.5 99999999999999999999; do
		ends 2 dump --count "$count"
		silent out
		says err 'not a usable value'
	done
	for interval in 0 -1 x 1x '' nan inf 1e9; do
		ends 2 dump --interval "$interval"
		silent out
		says err 'not a usable value'
	done)"

# --- check ---

point 'check of a good file says how many rules it has' "$(
	ends 0 check "$work/good.yaml"
	silent err
	says out 'good\.yaml: 2 rules, no errors$')"
point 'check of a wrong file tells all mistakes with line and column' "$(
	ends 1 check "$work/bad.yaml"
	silent out
	says err 'bad\.yaml:2:13: error: unknown key "comn"'
	says err 'bad\.yaml:3:[0-9]+: error: '
	grep -vE '^[^:]+:[0-9]+:[0-9]+: (error|warning|note): ' "$work/err" ||
		true)"
point 'check of several files fails if one of them is wrong' "$(
	ends 1 check "$work/good.yaml" "$work/bad.yaml"
	says out 'good\.yaml'
	says err 'bad\.yaml'
	ends 1 check "$work/bad.yaml" "$work/good.yaml"
	says out 'good\.yaml'
	ends 0 check "$work/good.yaml" "$work/good.yaml")"
point 'check of a file that is not there or cannot be one fails' "$(
	ends 1 check "$work/none.yaml"
	says err 'none\.yaml.*No such file'
	ends 1 check "$work"
	says err '[Dd]irectory|regular'
	ends 1 check /dev/null
	[ -s "$work/err" ] || echo 'an empty file is not told')"
point 'the rules that are installed are good' "$(
	ends 0 check "$src/config/proctally.yaml"
	silent err)"

# --- dump ---

putval='^PUTVAL "[^"/ ]+/proctally-[A-Za-z0-9_.~-]+/[a-z_]+(-[A-Za-z0-9_-]+)?" interval=[0-9]+\.[0-9]{3} [0-9]{9,}\.[0-9]{3}(:-?[0-9][0-9.e+-]*){1,2}$'

# field FILE IDENTIFIER N: the N-th value of that line.
field() {
	sed -nE "s|^PUTVAL \"[^/]*/$2\" [^ ]+ [0-9.]+:(.*)|\1|p" "$1" |
		tail -n 1 | cut -d: -f"$3"
}

point 'dump prints one line for each value list' "$(
	ends 0 dump --rules "$work/good.yaml" --count 1
	silent err
	[ -s "$work/out" ] || echo 'nothing'
	grep -vE "$putval" "$work/out" || true
	cut -d' ' -f2 "$work/out" | sort | uniq -d | sed 's/$/ twice/'
	says out "/proctally-all/ps_cputime\" interval=10\.000 "
	says out '/proctally-_self/')"
point 'what it prints is plausible' "$(
	processes=$(field "$work/out" proctally-all/ps_count 1)
	threads=$(field "$work/out" proctally-all/ps_count 2)
	rss=$(field "$work/out" proctally-all/ps_rss 1)
	vm=$(field "$work/out" proctally-all/ps_vm 1)
	memory=$(awk '$1 == "MemTotal:" { printf "%.0f", $2 * 1024 }' \
		/proc/meminfo)
	awk -v p="$processes" -v t="$threads" -v r="$rss" -v v="$vm" \
		-v memory="$memory" '
	BEGIN {
		if (p < 2 || p > 4194304)
			print p " processes"
		if (t < p)
			print t " threads of " p " processes"
		if (r < 100000 || r > 10 * memory)
			print r " bytes resident"
		if (v < r)
			print v " bytes of address space"
	}')"
point 'host and interval come from collectd, or from the options' "$(
	COLLECTD_HOSTNAME=somewhere COLLECTD_INTERVAL=0.25
	export COLLECTD_HOSTNAME COLLECTD_INTERVAL
	ends 0 dump --rules "$work/good.yaml" --count 2
	says out '^PUTVAL "somewhere/proctally-all/ps_rss" interval=0\.250 '
	ends 0 dump --rules "$work/good.yaml" --count 1 --interval 7
	says out 'interval=7\.000 '
	ends 0 dump --rules "$work/good.yaml" --count 1 3
	says out 'interval=3\.000 '
	ends 0 dump 3 --rules "$work/good.yaml" --count 1 --interval 7
	says out 'interval=7\.000 ')"
point 'ticks come as often as they should, and no counter steps back' "$(
	start=$(date +%s%N)
	ends 0 dump --rules "$work/good.yaml" --count 6 --interval 0.2
	took=$((($(date +%s%N) - start) / 1000000))
	[ "$took" -ge 1000 ] || echo "6 ticks in $took ms"
	[ "$took" -le 10000 ] || echo "6 ticks in $took ms"
	[ "$(grep -c '/proctally-all/ps_cputime"' "$work/out")" = 6 ] ||
		echo 'not 6 of them'
	sed -nE 's|.*/proctally-all/ps_cputime" [^ ]+ ([0-9.]+):(.*):(.*)|\1 \2 \3|p' \
		"$work/out" | awk '
		NR > 1 && ($1 <= t || $2 < u || $3 < s) { print "after " t, u, s ": " $0 }
		{ t = $1; u = $2; s = $3 }')"
# Real processes, of which some end and some use CPU time.
cat >"$work/sum.yaml" <<'END'
rules:
- {name: awk, comm: [awk, gawk, mawk], per_process: {by: slot}}
- {name: "x-{{.Comm}}", comm: "glob:[a-m]*"}
views: {user: {by: user}}
END
point 'the sum over the groups is what _self says, to the microsecond' "$(
	for _ in 1 2 3; do
		awk 'BEGIN { for (i = 0; i < 3e6; i++) s += i }' </dev/null
	done >/dev/null 2>&1 &
	# Those may fall between two ticks, and not everywhere are there records.
	timeout 60 awk 'BEGIN { while (1) i++ }' </dev/null >/dev/null 2>&1 &
	busy=$!
	ends 0 dump --rules "$work/sum.yaml" --count 4 --interval 0.3
	kill "$busy"
	wait
	awk -F '[/" ]+' '
	$4 != "ps_cputime" && $4 != "ps_cputime-groups" { next }
	{ n = split($NF, v, ":"); id = $3; sub(/^proctally-/, "", id) }
	id ~ /^user\./ || id ~ /^awk\.[0-9]/ { next }
	$4 == "ps_cputime" { u += v[2]; s += v[3] }
	$4 == "ps_cputime-groups" {
		if (u "" != v[2] "" || s "" != v[3] "")
			print "sum " u, s " but _self says " v[2], v[3]
		total = u + s
		u = s = 0
		ticks++
	}
	END {
		if (ticks != 4 || !total)
			print ticks " ticks, " total " microseconds"
	}' "$work/out")"
point 'the residual is printed as a table that adds up' "$(
	ends 0 dump --residual --rules "$work/good.yaml" --count 3 --interval 0.5
	silent err
	awk '
	$1 == "host" { for (i = 2; i <= 7; i++) host[i] = $i; tables++ }
	$1 == "groups" { for (i = 2; i <= 7; i++) groups[i] = $i }
	$1 == "residual" {
		for (i = 2; i <= 7; i++) {
			rest = host[i] - groups[i] - $i
			if (NF != 7 || rest > 0.011 || rest < -0.011)
				print "column " i ": " host[i], groups[i], $i
		}
	}
	$1 == "percent" || $1 == "interrupts" || $1 == "steal" { others++ }
	END {
		if (tables != 2 || others != 6)
			print tables " tables, " others " other lines"
	}' "$work/out")"
point 'without rules dump says so and prints what it knows of itself' "$(
	ends 0 dump --rules "$work/none.yaml" --count 1
	says err 'none\.yaml'
	says out '/proctally-_self/'
	grep -vE '/proctally-_self/' "$work/out" || true)"
point 'a /proc that is not there is an error' "$(
	ends 1 dump --rules "$work/good.yaml" --proc "$work/none" --count 1
	silent out
	says err 'none.*No such file')"

# in_background COMMAND...: its pid is $child.
in_background() {
	rm -f "$work/out"
	"$@" >"$work/out" 2>"$work/err" </dev/null &
	child=$!
}

has_printed() {
	[ -s "$work/out" ]
}

# await SECONDS COMMAND...: until it succeeds, or fails.
await() {
	rounds=$(($1 * 10))
	shift
	while ! "$@"; do
		rounds=$((rounds - 1))
		[ "$rounds" -gt 0 ] || return 1
		sleep 0.1
	done
}

has_ended() {
	[ ! -d "/proc/$child" ] || grep -qs '^State:.Z' "/proc/$child/status"
}

for signal in TERM INT HUP; do
	# A background job of a script ignores INT; env sets it back.
	in_background env --default-signal=INT "$command" dump \
		--rules "$work/good.yaml" --interval 60
	findings=
	await 20 has_printed || findings='nothing was printed'
	kill "-$signal" "$child"
	await 5 has_ended || {
		findings="$findings
it goes on"
		kill -KILL "$child"
	}
	status=0
	wait "$child" || status=$?
	child=
	[ "$status" = 0 ] || findings="$findings
status $status"
	findings="$findings$(silent err)"
	point "SIG$signal ends dump with status 0" "$findings"
done

point 'a reader that went away ends dump with status 0' "$(
	{
		status=0
		timeout -k 5 20 "$command" dump --rules "$work/good.yaml" \
			--interval 0.05 2>"$work/err" || status=$?
		echo "$status" >"$work/status"
	} | head -n 1 >"$work/out"
	[ "$(cat "$work/status")" = 0 ] || echo "status $(cat "$work/status")"
	silent err
	says out "$putval")"
point 'where nothing can be written dump fails' "$(
	status=0
	timeout -k 5 20 "$command" dump --rules "$work/good.yaml" --count 1 \
		>/dev/full 2>"$work/err" || status=$?
	[ "$status" = 1 ] || echo "full disk: status $status"
	says err 'No space left'
	status=0
	timeout -k 5 20 "$command" dump --rules "$work/good.yaml" --count 1 \
		>&- 2>"$work/err" || status=$?
	[ "$status" = 1 ] || echo "closed output: status $status"
	says err 'Bad file descriptor')"

# --- bench ---

point 'bench prints names and numbers' "$(
	ends 0 bench --count 5 --interval 0.05
	silent err
	grep -vE '^[a-z_]+ ([0-9.]+|on|off)$' "$work/out" || true
	for name in processes active tick_cpu_us_per_process ratio \
		syscalls_per_idle_process heap_allocations_per_tick; do
		says out "^$name "
	done)"
point 'what it measures is plausible' "$(
	awk '
	{ v[$1] = $2 }
	END {
		if (v["processes"] < 2)
			print "processes " v["processes"]
		if (!(v["tick_cpu_us_per_process"] > 0.05))
			print "CPU per process " v["tick_cpu_us_per_process"]
		if (!(v["ratio"] > 0.1 && v["ratio"] < 50))
			print "ratio " v["ratio"]
		if (!(v["syscalls_per_idle_process"] < 5))
			print "calls " v["syscalls_per_idle_process"]
	}' "$work/out")"
point 'bench takes rules, and fails without /proc' "$(
	ends 0 bench --count 2 --interval 0.05 --rules "$work/good.yaml"
	says out '^groups [1-9]'
	ends 1 bench --count 1 --proc "$work/none"
	[ -s "$work/err" ] || echo 'nothing is told')"
point 'bench tells what PSS costs' "$(
	[ -e /proc/self/smaps_rollup ] || exit
	ends 0 bench --pss --count 5 --interval 0.2
	silent err
	grep -vE '^[a-z_]+ [0-9.]+$' "$work/out" || true
	awk '
	{ v[$1] = $2 }
	END {
		if (!(v["readings"] >= 2 && v["processes"] >= v["read"]))
			print "read " v["readings"] " of " v["processes"]
		if (!(v["cpu_us_per_process"] > 1))
			print "CPU per process " v["cpu_us_per_process"]
		if (!(v["cpu_us_per_gib"] > 100))
			print "CPU per GiB " v["cpu_us_per_gib"]
		if (v["budget_percent"] != 0.5)
			print "budget " v["budget_percent"]
	}' "$work/out")"

plan
