#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Several hosts: each of two network namespaces has a collectd that forwards by
# the network plugin to a third one, which writes all of it to Graphite. All
# three namespaces are ours, this script runs in the one of the third.
if [ -z "${PROCTALLY_NAMESPACE:-}" ]; then
	PROCTALLY_NAMESPACE=given
	export PROCTALLY_NAMESPACE
	for as in -n -rn; do
		! unshare "$as" true 2>/dev/null ||
			exec unshare "$as" "$0"
	done
	echo 'ok 1 - several hosts # SKIP no network namespace may be made here'
	echo '1..1'
	exit 0
fi
# shellcheck source=tests/storetest.sh
. "${top_srcdir:-.}/tests/storetest.sh"

need 'several hosts' carbon-cache graphite-manage ip unshare nsenter

# link N: a namespace with a process that holds it, whose pid is in $holder, and
# a link to it. It is 10.77.N.2 there and we are 10.77.N.1.
link() {
	unshare -nu sh -c 'read -r x' <"$work/hold" >/dev/null 2>&1 8>&- &
	holder=$!
	pids="$pids $holder"
	await 30 apart "$holder"
	ip link add "us$1" type veth peer name them netns "$holder"
	ip addr add "10.77.$1.1/24" dev "us$1"
	ip link set "us$1" up
	nsenter -n -t "$holder" ip link set lo up
	nsenter -n -t "$holder" ip addr add "10.77.$1.2/24" dev them
	nsenter -n -t "$holder" ip link set them up
	nsenter -u -t "$holder" hostname "web$1"
}

# apart PID: it is in a namespace of its own.
apart() {
	[ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ] &&
		[ "$(readlink "/proc/$1/ns/uts")" != \
			"$(readlink /proc/self/ns/uts)" ]
}

# sender NAME HOST N PATTERN: a host where the group "app" is what has such a
# name; without HOST it is for collectd to find out.
sender() {
	cat >"$work/$1.yaml" <<END
rules:
- {name: app, comm: $4, collect: {pss: {every: 1s}}}
- {name: rest, any: true, collect: {pss: false}}
END
	{
		csv "$work/$1/csv"
		shipped network/sender.conf "Server=\"10.77.$3.1\" \"25826\""
		load_proctally "$work/$1.yaml"
	} | configure_collectd "$1" "$2" 1
	[ -n "$2" ] || sed -i '/^Hostname/d' "$work/$1/collectd.conf"
	start_collectd "$1" nsenter -n -u -t "$holder"
}

ip link set lo up
findings=
start_carbon 1s:10m || findings=$(tail -n 20 "$work/carbon.log")
start_graphite_web || findings=$findings$(tail -n 20 "$work/graphite-web.log")
{
	csv "$work/store/csv"
	shipped network/receiver.conf 'Listen="0.0.0.0" "25826"'
	shipped graphite/collectd.conf 'Host="127.0.0.1"' "Port=\"$carbon_port\""
	cat >"$work/rules.yaml" <<END
rules:
- {name: app, comm: nobody$id}
END
	load_proctally "$work/rules.yaml"
} | configure_collectd store store.example.org 1
start_collectd store
store=$daemon
await 60 listens 25826 || findings=$findings$(tail -n 20 "$work/store/log")
point 'carbon, graphite-web and a collectd that listens start' "$findings"

hold 3
burn
link 1
sender one db1.example.org 1 "idle$id"
one=$daemon
link 2
sender two '' 2 "burn$id"
two=$daemon

# app_rows NAME HOST N: the group app of that host has been written so often.
app_rows() {
	[ "$(cat "$work/$1/csv/$2/proctally-app"/ps_count-* 2>/dev/null |
		grep -vc epoch)" -ge "$3" ]
}
findings=$(
	await 60 app_rows store db1.example.org 8 || tail -n 20 "$work/one/log"
	await 60 app_rows store web2 8 || tail -n 20 "$work/two/log"
	await 60 app_rows store store.example.org 8 || tail -n 20 "$work/store/log")
point 'each host arrives by its own name, be it set or found' "$findings$(
	find "$work/store/csv" -mindepth 1 -maxdepth 1 -type d |
		sed 's|.*/||' | sort | tr '\n' ' ' |
		grep -vx 'db1.example.org store.example.org web2 ')"

for host in db1_example_org web2; do
	graphite_rows "$host.*.*" "$host.*.*.*" >"$work/got.$host"
done
# What the store has already, the csv of a host may be writing yet.
stop "$one" "$two"
# arrives NAME HOST TARGET: what that host wrote itself is in Graphite.
arrives() {
	reference "$work/$1/csv/$2" | graphite_names "$2" >"$work/want"
	agree "$work/want" "$work/got.$3" 0
}
point 'Graphite has each row of the first host, and no other' \
	"$(arrives one db1.example.org db1_example_org)"
point 'and of the second one' "$(arrives two web2 web2)"
point 'groups of one name are apart' "$(
	for value in db1_example_org:3 web2:1 store_example_org:0; do
		host=${value%:*}
		graphite_rows "$host.proctally-app.ps_count.processes" |
			tail -n 1 >"$work/out"
		[ "$(cut -f3 "$work/out")" = "${value#*:}.0" ] ||
			cat "$work/out"
	done)"
kill "$burner"
stop "$store"

plan
