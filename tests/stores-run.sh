#!/bin/sh
# SPDX-License-Identifier: MIT
#
# contrib/run with each store: it ends with the CPU time that it has caused
# itself, as the store tells it, listens on no interface but that of the host
# itself, and leaves nothing behind.
# shellcheck source=tests/storetest.sh
. "${top_srcdir:-.}/tests/storetest.sh"

need 'contrib/run with stores' influxd prometheus carbon-cache graphite-manage ss
export SERVICES
TMPDIR=$work/tmp
export TMPDIR
mkdir "$TMPDIR"
if ! has_plugin write_prometheus; then
	skip 'contrib/run --prometheus' 'not all that write_prometheus links'
fi

# ours: pids of what has our directory in its command line.
printf '%s/' "$TMPDIR" >"$work/pattern"
ours() {
	grep -alFf "$work/pattern" /proc/[0-9]*/cmdline 2>/dev/null |
		sed 's|^/proc/||; s|/cmdline$||'
}

# left: findings if any process or file is.
left() {
	for pid in $(ours); do
		tr '\0' ' ' <"/proc/$pid/cmdline" || true
		echo 'is left'
	done
	find "$TMPDIR" -mindepth 1 -maxdepth 1
}

# open_to_others: what else than the loopback interface they listen on. collectd
# sends by UDP, and hears nothing by it.
open_to_others() {
	pids_of_it=$(ours)
	ss -tulnpH >"$work/sockets"
	for pid in $pids_of_it; do
		grep -w "pid=$pid" "$work/sockets" >>"$work/of_it" || true
	done
	[ -s "$work/of_it" ] || echo 'they do not listen at all'
	awk '$5 !~ /^127\.0\.0\.1:/ && !($1 == "udp" && /"collectd"/)' \
		"$work/of_it"
}

# run STORE ARGUMENT...: a shell that is started in the background ignores
# Ctrl-C, hence env.
run() {
	store=$1
	shift
	start run env --default-signal=INT,QUIT "$src/contrib/run" "--$store" \
		--build "$build" --interval 1 "$@"
}

stays() {
	grep -q '^until Ctrl-C' "$work/run.log"
}

for store in graphite influxdb prometheus; do
	[ "$store" != prometheus ] || has_plugin write_prometheus || continue
	point "contrib/run --$store shows the CPU time that it has caused" "$(
		run "$store" --seconds 1
		status=0
		wait "$daemon" || status=$?
		[ "$status" = 0 ] || echo "status $status"
		awk '$2 == "busy" && $1 >= 5 { found = 1 }
			END { exit !found }' "$work/run.log" ||
			tail -n 30 "$work/run.log"
		left)"
done

run influxdb
findings=
await 300 stays || findings=$(tail -n 30 "$work/run.log")
point 'without --seconds it stays, and is open to nobody else' "$findings$(
	! has_ended "$daemon" || echo 'it has ended'
	open_to_others)"
kill -INT "$daemon"
await 60 has_ended "$daemon" || kill "$daemon"
status=0
wait "$daemon" || status=$?
point 'Ctrl-C ends all of it' "$(
	[ "$status" = 0 ] || echo "status $status"
	left)"

plan
