#!/bin/sh
# SPDX-License-Identifier: MIT
#
# proctally import-netdata: files of tests/apps_groups against the rules and the
# messages beside them, what becomes of processes under such rules, and how the
# call ends.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-netdata.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$src/tests/apps_groups"

# ends STATUS ARGUMENT...: findings if the call ends in another way; what it
# prints is in out and err.
ends() {
	want=$1 status=0
	shift
	timeout -k 5 60 "$command" import-netdata "$@" >"$work/out" \
		2>"$work/err" </dev/null || status=$?
	[ "$status" = "$want" ] || {
		echo "$*: want status $want, got $status"
		cat "$work/err"
	}
}

# told PATTERN...: findings unless the messages are these lines and no rule
# was printed.
told() {
	for pattern; do
		grep -qE -e "$pattern" "$work/err" || echo "not told: $pattern"
	done
	[ "$(wc -l <"$work/err")" = $# ] || cat "$work/err"
	[ ! -s "$work/out" ] || echo 'something was printed'
}

# --- The files ---

for conf in *.conf; do
	name=${conf%.conf}
	point "$conf becomes $name.yaml" "$(
		ends 0 "$conf"
		diff "$name.yaml" "$work/out" || true)"
	: >"$work/none"
	messages=$work/none
	[ ! -f "$name.messages" ] || messages=$name.messages
	point "what is told of $conf" "$(
		ends 0 "$conf"
		diff "$messages" "$work/err" || true)"
	point "$name.yaml is a rule file" "$(
		"$command" check "$name.yaml" 2>&1 >"$work/out" |
			grep -e ': error: ' -e 'as it stands' || true)"
done
point 'the directory of the file is not told in the rules' "$(
	ends 0 "$PWD/groups.conf"
	diff groups.yaml "$work/out" || true)"

# --- The processes ---

# Parent, pid, what it is (u: user process, k: kernel thread), comm, command
# line, and the group in which Netdata 2 has it; "other" stands for those that
# Netdata names after their topmost ancestor.
cat >"$work/processes" <<'END'
0	1	u	systemd	/sbin/init	other
0	2	k	kthreadd		kernel
2	3	k	kworker/0:1		kernel
2	4	k	kswapd0		swap
2	5	k	md127_raid		swap
2	6	k	md127_raid1		kernel
1	10	u	webd	/usr/sbin/webd -f /etc/webd	web
10	11	u	helper	/usr/lib/helper	web
11	12	u	sqlmaster-2	sqlmaster-2	sql
1	13	u	webd2	webd2	other
1	14	u	Webd	Webd	other
1	20	u	long-service-na	/usr/lib/long-service-name --x	web
1	21	u	long-service-na	/usr/bin/python3 /opt/long-service-name.py	web
1	22	u	long-service-na	long-service-name: idle	web
1	23	u	long-service-na	/usr/lib/long-service-name-2	other
1	24	u	long-service-na	/usr/lib/long-service-nanny	other
1	30	u	imapd	imapd	mail
1	31	u	a-long-name-of-	/usr/lib/a-long-name-of-an-imapd	mail
1	32	u	a-long-name-of-	/usr/lib/a-long-name-of-all imapd	other
1	33	u	mail-delivery-a	/usr/lib/mail-delivery-agent.2	mail
1	34	u	mail-delivery-a	/usr/lib/mail-delivery-aid	other
1	40	u	java	/usr/bin/java -cp x org.example.Store run	store
1	41	u	java	/usr/bin/java -cp x org.example.Other run	java
1	42	u	java	/usr/bin/java -cp x org-example.Store run	other
1	43	u	Blank Name Here	blank	java
1	50	u	jobrunner	jobrunner	jobs
50	51	u	task	task	other
END

# One thread more, twice as many: the sum says who is there.
place() {
	tab=$(printf '\t') threads=1
	while IFS= read -r line; do
		set -- "${line%%"$tab"*}" "${line#*"$tab"}"
		ppid=$1 line=$2
		pid=${line%%"$tab"*} line=${line#*"$tab"}
		kind=${line%%"$tab"*} line=${line#*"$tab"}
		comm=${line%%"$tab"*} line=${line#*"$tab"}
		cmdline=${line%%"$tab"*} group=${line#*"$tab"}
		flags=4194560
		[ "$kind" = u ] || flags=2129984
		mkdir -p "$work/proc/$pid"
		echo "$pid ($comm) S $ppid 0 0 0 -1 $flags 0 0 0 0 0 0 0 0" \
			"20 0 $threads 0 9 4096 1 0 0 0 0 0 0 0 0 0 0 0 0 17" \
			"0 0 0 0 0 0 0 0 0 0 0 0 0 0" >"$work/proc/$pid/stat"
		printf %s "$cmdline" | tr ' ' '\000' >"$work/proc/$pid/cmdline"
		echo "$group $threads"
		threads=$((threads * 2))
	done <"$work/processes"
}

place | awk '{ n[$1]++; t[$1] += $2 }
	END { for (g in n) print g, n[g] ":" t[g] }' | sort >"$work/want"
point 'processes are in the groups that Netdata has them in' "$(
	ends 0 groups.conf
	mv "$work/out" "$work/rules.yaml"
	timeout -k 5 20 "$command" dump --rules "$work/rules.yaml" \
		--proc "$work/proc" --count 1 2>&1 >"$work/out" |
		grep -v -e ' unreadable for ' -e ': pss has no values$' || true
	sed -nE 's|^PUTVAL "[^/]*/proctally-([^/]*)/ps_count" .*:([0-9]+:[0-9]+)$|\1 \2|p' \
		"$work/out" | grep -v '^_self ' | sort |
		diff "$work/want" - || true)"

# --- What is wrong ---

point 'without a file, or with two, it is told with status 2' "$(
	ends 2
	told 'import-netdata: which file'
	ends 2 groups.conf all.conf
	told 'import-netdata: one file'
	ends 2 --count 1 groups.conf
	told 'does not take')"
point 'a file that cannot be read is told' "$(
	ends 1 "$work/none.conf"
	told '/none\.conf: No such file'
	ends 1 "$work"
	told ': Is a directory'
	ends 1 /dev/null
	told '^/dev/null: error: there is no line')"
point 'a file of something else is told with line and column' "$(
	printf 'a: b\n: "c\n' >"$work/quote.conf"
	ends 1 "$work/quote.conf"
	told '/quote\.conf:2:3: error: this quote is not closed' \
		'/quote\.conf:2:3: warning: group "c" has no pattern'
	printf 'a: b\n\000ELF\n' >"$work/nul.conf"
	ends 1 "$work/nul.conf"
	told '/nul\.conf:2:1: error: a NUL byte' \
		'/nul\.conf:2:2: warning: group "ELF" has no pattern'
	head -c 1048577 /dev/zero | tr '\000' '\n' >"$work/large.conf"
	ends 1 "$work/large.conf"
	told '/large\.conf: error: larger than 1 MiB')"
point 'a file of one line of a mebibyte is read' "$(
	{
		printf 'a: b'
		head -c 1048572 /dev/zero | tr '\000' ' '
	} >"$work/long.conf"
	ends 0 "$work/long.conf"
	[ ! -s "$work/err" ] || cat "$work/err"
	grep -q "^    comm: 'b'\$" "$work/out" || echo 'no rule')"
point 'where nothing can be written it fails' "$(
	status=0
	"$command" import-netdata groups.conf >/dev/full 2>"$work/err" ||
		status=$?
	[ "$status" = 1 ] || echo "full disk: status $status"
	grep -q 'No space left' "$work/err" || cat "$work/err")"

plan
