#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tables of groups that are printed: `proctally match`, and `proctally top`
# where there is no terminal. Below a /proc of our own, and on this host.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
LC_ALL=C.UTF-8
export LC_ALL

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-match.XXXXXX")
child=
# shellcheck disable=SC2317,SC2329
finish() {
	trap - EXIT HUP INT TERM
	[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# ends STATUS ARGUMENT...: runs it; its output is in out and err. Findings if
# it ends in another way.
ends() {
	want=$1
	shift
	status=0
	timeout -k 5 60 "$command" "$@" >"$work/out" 2>"$work/err" </dev/null ||
		status=$?
	[ "$status" = "$want" ] || {
		echo "$*: want status $want, got $status"
		cat "$work/err"
	}
}

# match RULES ARGUMENT...: below our own /proc.
match() {
	rules=$1
	shift
	ends 0 match --rules "$work/$rules" --proc "$work/proc" \
		--interval 0.05 "$@"
}

silent() {
	[ ! -s "$work/$1" ] || {
		echo "on standard $1:"
		cat "$work/$1"
	}
}

says() {
	grep -qE -e "$2" "$work/$1" || {
		echo "not on standard $1: $2"
		cat "$work/$1"
	}
}

# is: findings unless standard input is exactly what was printed.
is() {
	diff - "$work/out" || true
}

# task PID COMM UTIME PAGES STATE: puts a process below our own /proc.
task() {
	mkdir -p "$work/proc/$1"
	# shellcheck disable=SC2059
	comm=$(printf "$2")
	printf '%s (%s) %s 1 1 1 0 -1 0 0 0 0 0 %s 0 0 0 20 0 1 0 500 4096 %s%s\n' \
		"$1" "$comm" "$5" "$3" "$4" \
		"$(printf ' 0%.0s' $(seq 25 52))" >"$work/proc/$1/stat"
}

name63=a-name-that-is-as-long-as-a-name-of-a-group-can-be-0123456789ab
cat >"$work/rules.yaml" <<END
defaults: {collect: {uptime: false}}
rules:
- {name: down, comm: no-such-comm}
- {action: drop, comm: hidden}
- {name: $name63, comm: long}
- {name: "{{.Comm}}", comm: [web, db]}
END
{
	cat "$work/rules.yaml"
	echo 'other: {action: drop}'
} >"$work/dropped.yaml"
{
	cat "$work/rules.yaml"
	echo 'other: {name: "rest-{{.Comm}}"}'
} >"$work/tokens.yaml"
cat >"$work/views.yaml" <<'END'
views:
  app:
    rules:
    - {name: ev, comm: 'glob:ev*'}
    - {action: drop, comm: stray}
  kind:
    rules: [{name: site, comm: [web, db]}]
    other: {action: drop}
END
printf 'rules:\n- {name: a, comn: x}\n' >"$work/bad.yaml"

mkdir "$work/proc"
task 10 web 0 256 S
task 11 web 0 256 S
task 12 db 0 1024 S
task 13 hidden 0 9999 S
task 14 hidden 0 9999 S
task 15 long 0 1 S
task 16 stray 0 90 S
task 17 stray 0 90 S
task 18 'ev\033[2Jil\377\nx\303\244' 0 50 S
task 19 zed 0 0 Z

# --- match below a /proc of our own ---

# row NAME CELL...: one row of the table.
row() {
	# shellcheck disable=SC2059
	printf '%-63s %6s %6s %6s %6s %7s %6s %6s %7s %6s %7s\n' "$@"
}

groups() {
	row GROUP CPU% RSS PROCS READ/s WRITE/s FDS SWAP FAULT/s THRDS AGE
	row db 0.0 4.0M 1 - - - - 0 1 -
	row web 0.0 2.0M 2 - - - - 0 2 -
}

# others SUFFIX: whom no rule takes.
others() {
	echo "other: 4 processes that no rule takes${1:-}"
	cat <<-END
		  COMM              PROCS   CPU%    RSS
		  stray                 2    0.0   720K
		  ev?[2Jil??xä          1    0.0   200K
		  zed                   1    0.0      -

		dropped: 2 processes
	END
}

point 'match prints groups, what fell to other, and how many are dropped' "$(
	match rules.yaml
	silent err
	is <<-END
		$(groups)
		$(row other 0.0 920K 4 - - - - 0 4 -)
		$(row "$name63" 0.0 4.0K 1 - - - - 0 1 -)
		$(row down 0.0 - 0 - - - - 0 0 -)

		$(others)
	END
)"
point 'where what no rule takes is dropped that is said' "$(
	match dropped.yaml
	silent err
	is <<-END
		$(groups)
		$(row "$name63" 0.0 4.0K 1 - - - - 0 1 -)
		$(row down 0.0 - 0 - - - - 0 0 -)

		$(others ', counted nowhere')
	END
)"
point 'where other has several groups they are listed together' "$(
	match tokens.yaml
	silent err
	says out '^rest-stray +0\.0 +720K +2 '
	sed -n '/^other:/,$p' "$work/out" >"$work/list"
	mv "$work/list" "$work/out"
	others | is)"
point 'each view has its list' "$(
	match views.yaml
	silent err
	sed '/^$/,$d' "$work/out" | awk '{ print $1, $2 }' >"$work/names"
	diff - "$work/names" <<-END || true
		VIEW GROUP
		app other
		app ev
		kind kind.site
	END
	says out '^kind kind\.site +0\.0 +6\.0M +3 '
	sed -n '/^$/,$p' "$work/out" >"$work/list"
	mv "$work/list" "$work/out"
	is <<-END

		app: other: 7 processes that no rule takes
		  COMM              PROCS   CPU%    RSS
		  hidden                2    0.0  78.1M
		  db                    1    0.0   4.0M
		  web                   2    0.0   2.0M
		  long                  1    0.0   4.0K
		  zed                   1    0.0      -

		app: dropped: 2 processes

		kind: other: 7 processes that no rule takes, counted nowhere
		  COMM              PROCS   CPU%    RSS
		  hidden                2    0.0  78.1M
		  stray                 2    0.0   720K
		  ev?[2Jil??xä          1    0.0   200K
		  long                  1    0.0   4.0K
		  zed                   1    0.0      -

		kind: dropped: 0 processes
	END
)"
point 'without a locale names are ASCII' "$(
	LC_ALL=C match rules.yaml
	says out '^  ev\?\[2Jil\?\?x\?\? +1 ')"

point 'of what fell to other 20 names are listed' "$(
	for i in $(seq 1 24); do
		task "$((100 + i))" "one$i" 0 "$i" S
	done
	match rules.yaml
	says out '^other: 28 processes that no rule takes$'
	sed '1,/^other:/d' "$work/out" >"$work/list"
	[ "$(grep -cE '^  [a-z].*K$' "$work/list")" = 20 ] || cat "$work/list"
	[ "$(sed -n 4p "$work/list" | tr -s ' ')" = ' one24 1 0.0 96.0K' ] ||
		cat "$work/list"
	says out '^  and 7 more$'
	rm -rf "$work"/proc/1[0-9][0-9])"

# Growth between the two ticks; what a group used goes before what it has.
point 'CPU is what was used between the two ticks' "$(
	timeout -k 5 60 "$command" match --rules "$work/rules.yaml" \
		--proc "$work/proc" --interval 2 >"$work/out" 2>"$work/err" &
	# The first tick is over by then, the second is not.
	sleep 1
	task 11 web 100 256 S
	wait $!
	silent err
	awk '
	$1 == "web" { cpu = $2; row = NR }
	$1 == "db" && $2 != "0.0" { print "db " $2 }
	END {
		if (row != 2)
			print "web is in line " row
		# 100 ticks in 2 s, or a little more on a busy host.
		if (!(cpu > 10 && cpu <= 60))
			print "CPU " cpu
	}' "$work/out"
	task 11 web 0 256 S)"

# --- match of this host ---

# A process with a name that nobody else has, and that does not end.
nap=nap$$
mkfifo "$work/never"
printf '#!/bin/sh\nread -r _ <%s\n' "'$work/never'" >"$work/$nap"
chmod +x "$work/$nap"
"$work/$nap" &
child=$!
# The shell has to become it first.
for _ in $(seq 100); do
	! grep -qsF "($nap)" "/proc/$child/stat" || break
	sleep 0.1
done
point 'match of this host finds a process of ours' "$(
	cat >"$work/host.yaml" <<-END
		defaults: {collect: {pss: off}}
		rules:
		- {name: kernel, kernel: true}
		- {name: nappers, comm: $nap}
		other: {name: rest}
	END
	ends 0 match --rules "$work/host.yaml" --interval 0.2
	says out '^nappers +[0-9.]+ +[0-9.]+[KM] +1 .* [0-9]+s$'
	says out '^rest +[0-9.]+ '
	says out '^dropped: 0 processes$'
	# What is listed is what the group has.
	group=$(awk '$1 == "rest" { print $4 }' "$work/out")
	listed=$(sed -nE 's/^other: ([0-9]+) processes that .*/\1/p' "$work/out")
	[ "$group" = "$listed" ] || echo "rest has $group, listed are $listed"
	[ "$(sed '/^$/,$d' "$work/out" | awk '{ print length }' |
		sort -u | wc -l)" = 1 ] || cat "$work/out")"
point 'match of this host finds a process that no rule takes' "$(
	cat >"$work/host.yaml" <<-END
		rules:
		- name: all
		  any: true
		  kernel: any
		  children: none
		  not: {comm: $nap}
	END
	ends 0 match --rules "$work/host.yaml" --interval 0.2
	says out '^other: 1 process that no rule takes$'
	says out "^  $nap +1 +[0-9.]+ +[0-9.]+[KM]\$"
	says out '^dropped: 0 processes$')"
kill "$child"
child=

# --- What goes wrong ---

point 'rules that cannot be loaded are told with line and column, status 1' "$(
	ends 1 match --rules "$work/bad.yaml"
	silent out
	says err 'bad\.yaml:2:13: error: unknown key "comn"'
	ends 1 match --rules "$work/none.yaml"
	silent out
	says err 'none\.yaml.*No such file'
	ends 1 top --count 1 --rules "$work/bad.yaml"
	silent out
	says err 'bad\.yaml:2:13: error: ')"
point 'a /proc that is not there is an error' "$(
	for call in 'match' 'top --count 1'; do
		# shellcheck disable=SC2086
		ends 1 $call --rules "$work/rules.yaml" --proc "$work/none"
		silent out
		says err 'none.*No such file'
	done)"
point 'what makes no sense is told, with status 2' "$(
	ends 2 match surplus
	says err 'no arguments'
	ends 2 match --count 2
	says err 'does not take'
	ends 2 top surplus
	says err 'no arguments'
	ends 2 top --format putval
	says err 'does not take'
	ends 2 top --rules "$work/rules.yaml"
	silent out
	says err 'no terminal.*--count')"
point 'where nothing can be written they fail' "$(
	for call in match 'top --count 1'; do
		status=0
		# shellcheck disable=SC2086
		timeout -k 5 60 "$command" $call --rules "$work/rules.yaml" \
			--interval 0.05 >/dev/full 2>"$work/err" </dev/null ||
			status=$?
		[ "$status" = 1 ] || echo "$call: status $status"
		says err 'No space left'
	done)"
point 'a reader that went away is no failure' "$(
	{
		status=0
		timeout -k 5 60 "$command" top --rules "$work/rules.yaml" \
			--proc "$work/proc" --count 1000 --interval 0.05 \
			2>"$work/err" </dev/null || status=$?
		echo "$status" >"$work/status"
	} | head -n 1 >"$work/out"
	[ "$(cat "$work/status")" = 0 ] || echo "status $(cat "$work/status")"
	silent err)"

# --- top without a terminal ---

point 'top prints as many tables as it is told, without escapes' "$(
	ends 0 top --rules "$work/rules.yaml" --proc "$work/proc" --count 3 \
		--interval 0.1
	silent err
	[ "$(grep -c '^GROUP ' "$work/out")" = 3 ] || cat "$work/out"
	[ "$(grep -cE '  10 processes  5 groups  CPU 0\.0%  tick [0-9.]+ ms$' \
		"$work/out")" = 3 ] || cat "$work/out"
	grep -q "$(printf '\033')" "$work/out" && echo 'escapes'
	sed '1d; /^$/,$d' "$work/out" >"$work/table"
	mv "$work/table" "$work/out"
	is <<-END
		$(groups)
		$(row other 0.0 920K 4 - - - - 0 4 -)
		$(row "$name63" 0.0 4.0K 1 - - - - 0 1 -)
		$(row down 0.0 - 0 - - - - 0 0 -)
	END
)"
for signal in TERM INT HUP; do
	# A background job of a script ignores INT; env sets it back.
	rm -f "$work/out"
	env --default-signal=INT "$command" top --rules "$work/rules.yaml" \
		--count 100000 --interval 0.2 >"$work/out" 2>"$work/err" \
		</dev/null &
	child=$!
	for _ in $(seq 100); do
		[ ! -s "$work/out" ] || break
		sleep 0.1
	done
	kill "-$signal" "$child"
	status=0
	wait "$child" || status=$?
	child=
	point "SIG$signal ends it with status 0" "$(
		[ "$status" = 0 ] || echo "status $status"
		says out '^GROUP ')"
done

plan
