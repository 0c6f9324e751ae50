#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The dashboards of contrib/grafana/ with the stores that they are for: one
# collectd feeds Graphite, InfluxDB and Prometheus, and every query of every
# panel has to find something. What a host without a GPU and without control
# groups has none of is handed to collectd by its socket.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/servers.sh
. "$src/tests/servers.sh"

# need NAME PROGRAM...: without one of them the script ends here.
need() {
	name=$1
	shift
	for wanted; do
		! find_program "$wanted" || continue
		skip "$name" "$(missing "$wanted")"
		plan
		exit 0
	done
}

dashboards=$src/contrib/grafana
need 'dashboards' python3
python=/usr/bin/python3
[ -x "$python" ] || python=python3

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-dashboards.XXXXXX")
# shellcheck disable=SC2317,SC2329
finish() {
	trap - EXIT HUP INT TERM
	servers_done
	exec 8>&-
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# --- Their form ---

point 'the dashboards are what contrib/grafana/generate writes' "$(
	mkdir "$work/json"
	"$python" "$dashboards/generate" --output "$work/json" 2>&1 ||
		echo "status $?"
	for file in "$work/json"/*.json; do
		diff -q "$file" "$dashboards/${file##*/}" || true
	done
	for file in "$dashboards"/*.json; do
		[ -f "$work/json/${file##*/}" ] || echo "nobody writes $file"
	done)"
point 'panels do not overlap, and variables are defined and used' "$(
	"$python" "$src/tests/dashboards.py" check "$dashboards"/*.json 2>&1 ||
		true)"

if [ ! -f "$build/.libs/proctally.so" ]; then
	[ "${SANITIZERS:-no}" != no ] || skip 'stores' 'no plugin'
	plan
	exit 0
fi

need 'stores' "$COLLECTD" curl carbon-cache graphite-manage influxd prometheus

# --- Processes, by names of ours ---

id=$$
mkfifo "$work/hold"
exec 8<>"$work/hold"
for name in idle burn; do
	ln -s "$(command -v sh)" "$work/$name$id"
done
for _ in 1 2 3; do
	"$work/idle$id" -c 'read -r x' <"$work/hold" >/dev/null 2>&1 8>&- &
	pids="$pids $!"
done
# shellcheck disable=SC2016
# Busy for some time of each tick, on two processors that others need, too.
"$work/burn$id" -c 'ulimit -t 60
	while :; do
		i=0
		while [ $i -lt 30000 ]; do i=$((i + 1)); done
		sleep 0.2
	done' >/dev/null 2>&1 8>&- &
pids="$pids $!"

cat >"$work/rules.yaml" <<END
defaults:
  collect:
    {reaped: true, exited: true, rss_split: true, fd_limit: true, ctx: true}
rules:
- {name: idle.three, comm: idle$id, collect: {pss: {every: 1s}}}
- {name: burn, comm: [burn$id, sleep]}
- {name: collectd, comm: collectd}
- {name: rest, any: true, kernel: any}
other: {action: drop}
END

# feed: what a GPU and a control group would add, each second; and exit records,
# where the kernel gives none, as in containers.
feed() {
	"$python" - "$work/socket" <<'END'
import socket, sys, time

# The socket is there a moment before collectd listens.
for _ in range(100):
    try:
        s = socket.socket(socket.AF_UNIX)
        s.connect(sys.argv[1])
        break
    except ConnectionRefusedError:
        time.sleep(0.1)

def put(name, value):
    s.sendall(f"PUTVAL here/proctally-{name} interval=1"
        f" {time.time():.3f}:{value}\n".encode())
    s.recv(4096)

def has_exit_records():
    while True:
        s.sendall(b"GETVAL here/proctally-_self/gauge-exit_records\n")
        answer = s.recv(4096).decode()
        if "value=" in answer:
            return float(answer.split("value=")[1]) == 1
        time.sleep(0.5)

exits = has_exit_records()
for n in range(300):
    if not exits:
        for name in "exits", "exits_lost", "exits_unsettled":
            put(f"_self/total_operations-{name}", n)
    for group in "idle.three", "burn":
        for name, value in (
            ("percent-gpu-0000_03_00.0-render", 42),
            ("total_time_in_ms-gpu-0000_03_00.0-render", 420 * n),
            ("memory-gpu-0000_03_00.0-device", 12345678),
            ("count-gpu_clients", 2),
            ("memory-cgroup", 23456789),
            ("total_time_in_ms-cgroup_cpu", 200 * n),
            ("total_time_in_ms-cgroup_io_some", 100 * n),
            ("disk_octets-cgroup", f"{4096 * n}:{8192 * n}"),
        ):
            put(f"{group}/{name}", value)
    time.sleep(1)
END
}

# --- Stores ---

start_all() {
	start_carbon 1s:1h || return 1
	start_graphite_web || return 1
	start_influxd split || return 1
	free_port
	scraped=$port
	start_prometheus 1 "$scraped" || return 1
	configure_collectd collectd here 1 <<END || return 1
LoadPlugin unixsock
<Plugin unixsock>
	SocketFile "$work/socket"
</Plugin>
$(shipped graphite/collectd.conf 'Host="127.0.0.1"' "Port=\"$carbon_port\"")
<Plugin write_graphite>
	<Node "prefixed">
		Host "127.0.0.1"
		Port "$carbon_port"
		Protocol "tcp"
		Prefix "servers.collectd."
		StoreRates false
	</Node>
</Plugin>
$(shipped influxdb/collectd.conf "Server=\"127.0.0.1\" \"$influx_port\"")
$(shipped prometheus/collectd.conf "Port=\"$scraped\"")
$(load_proctally "$work/rules.yaml")
END
	start_collectd collectd
	await 60 [ -S "$work/socket" ] || return 1
	start feed feed
}

findings=
start_all || findings=$(tail -n 20 "$work"/*.log)
point 'collectd feeds all stores' "$findings"

# shows STORE URL GROUP WHAT [TEXT=VALUE]: findings that last; there may be too
# few values yet.
shows() {
	tries=30
	until "$python" "$src/tests/dashboards.py" "$1" "$2" "$3" burn \
		"$dashboards/$1-$4.json" ${5+"$5"} >"$work/findings" 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || {
			cat "$work/findings"
			break
		}
		sleep 2
	done
}

for store in graphite influxdb prometheus; do
	group=idle.three
	case $store in
	graphite) url=$graphite_url group=idle_three ;;
	influxdb) url=$influx_url ;;
	*) url=$prometheus_url ;;
	esac
	for what in groups group cost; do
		[ "$what" != cost ] || group=collectd
		point "$store: every panel of $what shows what is there" \
			"$(shows "$store" "$url" "$group" "$what")"
	done
done
point 'graphite: names may have a prefix' "$(
	shows graphite "$graphite_url" idle_three groups \
		prefix=servers.collectd.)"

plan
