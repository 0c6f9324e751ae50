#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The same rule file, the same live processes: process-exporter and we have to
# count the same members in the same groups. bash, because it alone sets
# argv[0] ("exec -a").
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
# Below $SERVICES may be what is not installed, see contrib/test.
name=prometheus-process-exporter
PATH=$PATH${SERVICES:+:$SERVICES/usr/bin}
exporter=$(command -v "$name" || command -v process-exporter || true)
LC_ALL=C
export LC_ALL PATH

if [ -z "$exporter" ]; then
	lacks=false
	case " ${LACKING:-} " in *" $name "*) lacks=true ;; esac
	if [ "${CI:-}" = true ] && [ "$lacks" = false ]; then
		echo 'not ok 1 - process-exporter is installed, as CI=true'
	else
		echo 'ok 1 - both count the same # SKIP no process-exporter'
	fi
	echo 1..1
	exit 0
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-exporter.XXXXXX")
# Everything hangs on one pipe: whoever reads it sleeps until we end.
mkfifo "$work/hold"
exec 3<>"$work/hold"
children=()
finish() {
	trap - EXIT HUP INT TERM
	# A line for each that reads, those below our children among them.
	printf '%64s' '' | tr ' ' '\n' >&3
	[ ${#children[@]} = 0 ] || wait "${children[@]}" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# --- A population ---

# start ARGV0 ARGUMENT...: a shell that sleeps, with a name of its own. Its
# comm is the base name of the program, cut at 15 bytes.
start() {
	local argv0=$1
	local program=$work/${argv0##*/}
	shift
	[ -e "$program" ] || cp /bin/dash "$program"
	(exec -a "$argv0" "$program" -c 'read x <&3; :' "$@") \
		>/dev/null 2>&1 &
	children+=("$!")
}

# nest ARGV0 CHILD: one that has a child with another name.
nest() {
	local program=$work/${1##*/} inner=$work/$2
	[ -e "$program" ] || cp /bin/dash "$program"
	[ -e "$inner" ] || cp /bin/dash "$inner"
	(exec -a "$1" "$program" -c "'$inner' -c 'read x <&3; :' & read x <&3; :") \
		>/dev/null 2>&1 &
	children+=("$!")
}

# Names that no other process of the host has.
t=t$$
start "${t}web" --port=80
start "${t}web" --port=81
start "/opt/x/${t}api" --env=prod --id=1
start "/opt/x/${t}api" --env=prod --id=2
start "/opt/x/${t}api" --env=test
start "/opt/y/${t}api" --env=prod
start "${t}a-very-long-program-name" run
start "${t}db" -D '/data/with blank'
nest "${t}boss" "${t}hand"
nest "${t}boss" "${t}web"
nest "${t}nobody" "${t}lost"

cat >"$work/rules.yaml" <<END
process_names:
  - name: "{{.ExeBase}}-{{.Matches.env}}"
    exe: [/opt/x/${t}api]
    cmdline: ['--env=(?P<env>\w+)']
  - exe: [${t}api]
  - name: "${t}.long"
    comm: [$(printf '%.15s' "${t}a-very-long-program-name")]
  - name: "{{.Comm}}:{{.Username}}"
    comm: [${t}web, ${t}db]
  - name: "{{.Matches}}"
    cmdline: ['^${t}boss']
END

# --- Both of them ---

# What is in a name by our rules, of a process-exporter's own.
clean() {
	sed -e 's/[^A-Za-z0-9_.-]/_/g' -e 's/^_/x_/'
}

# scrape PORT: what it serves there.
scrape() {
	exec 4<>"/dev/tcp/127.0.0.1/$1" || return 1
	printf 'GET /metrics HTTP/1.0\r\n\r\n' >&4
	timeout 30 cat <&4
	exec 4>&-
}

# by_exporter RULES OPTION...: "GROUP MEMBERS" by process-exporter, sorted.
by_exporter() {
	local rules=$1 port pid
	shift
	for _ in 1 2 3 4 5; do
		port=$((20000 + RANDOM % 10000))
		"$exporter" -config.path "$rules" -gather-smaps=false \
			-web.listen-address "127.0.0.1:$port" "$@" \
			>/dev/null 2>"$work/err" </dev/null 3>&- &
		pid=$!
		for _ in $(seq 50); do
			sleep 0.1
			scrape "$port" >"$work/metrics" 2>/dev/null && break 2
			# The port was somebody else's.
			kill -0 "$pid" 2>/dev/null || break
		done
	done
	kill "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
	sed -n 's/^namedprocess_namegroup_num_procs{groupname="\(.*\)"} \([0-9]*\)\r*$/\1\t\2/p' \
		"$work/metrics" |
		while IFS="$(printf '\t')" read -r name n; do
			printf '%s %s\n' "$(printf '%s' "$name" | clean)" "$n"
		done | sort
}

# by_us RULES: the same by proctally, without "other".
by_us() {
	timeout 60 "$command" dump --rules "$1" --count 2 --interval 0.2 \
		2>"$work/err" >"$work/values"
	tac "$work/values" |
		sed -n 's|^PUTVAL "[^/]*/proctally-\([^"]*\)/ps_count" [^ ]* [^:]*:\([0-9]*\):.*|\1 \2|p' |
		awk '!seen[$1]++ && $1 != "other"' | sort
}

n=0
# compare NAME: TAP point for the files exporter and us.
compare() {
	n=$((n + 1))
	if [ -s "$work/exporter" ] && diff "$work/exporter" "$work/us" \
		>"$work/diff"; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		sed 's/^/# /' "$work/exporter" "$work/diff" | head -n 40
	fi
}

# Until all of them run under their names.
for _ in $(seq 50); do
	[ "$(by_us "$work/rules.yaml" |
		awk '{ n += $2 } END { print n + 0 }')" = 12 ] && break
done

by_exporter "$work/rules.yaml" >"$work/exporter"
by_us "$work/rules.yaml" >"$work/us"
compare 'process-exporter and proctally count the same members in the same groups'

by_exporter "$work/rules.yaml" -children=false >"$work/exporter"
sed 's/^process_names/defaults: {children: none}\n&/' "$work/rules.yaml" \
	>"$work/no-children.yaml"
by_us "$work/no-children.yaml" >"$work/us"
compare 'and so they do where children do not inherit'

# All of the host, by comm: others may come and go, ours may not.
cat >"$work/all.yaml" <<END
process_names:
  - name: "{{.Comm}}"
    cmdline: ['.+']
END
by_exporter "$work/all.yaml" | grep "^$t" >"$work/exporter" || true
by_us "$work/all.yaml" | grep "^$t" >"$work/us" || true
compare 'and with one group for each name of all processes'

plan
