#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Graphite: collectd's write_graphite sends to carbon, which keeps whisper files,
# which graphite-web reads, computes with and draws.
# shellcheck source=tests/storetest.sh
. "${top_srcdir:-.}/tests/storetest.sh"

need 'Graphite' carbon-cache graphite-manage

# feed NAME HOST RULES INTERVAL
feed() {
	{
		csv "$work/$1/csv"
		shipped graphite/collectd.conf 'Host="127.0.0.1"' \
			"Port=\"$carbon_port\""
		load_proctally "$3"
	} | configure_collectd "$1" "$2" "$4"
	start_collectd "$1"
}

# files HOST: how many series of ours it has.
files() {
	find "$whisper/$1" -path '*/proctally-*' -name '*.wsp' | wc -l
}

findings=
start_carbon 1s:10m || findings=$(tail -n 20 "$work/carbon.log")
start_graphite_web || findings=$findings$(tail -n 20 "$work/graphite-web.log")
point 'carbon and graphite-web start' "$findings"

# --- Each value ---

hold 3
burn
rules >"$work/rules.yaml"
feed few db1.example.org "$work/rules.yaml" 1
few=$daemon
await 60 ticks few 8 || tail -n 20 "$work/few/log"
kill "$burner"
graphite_rows 'db1_example_org.*.*' 'db1_example_org.*.*.*' >"$work/got"
# What the store has already, csv may be writing yet.
stop "$few"
reference "$work/few/csv/db1.example.org" >"$work/rows"
graphite_names db1.example.org <"$work/rows" >"$work/want"
point 'all values that there are have been sent' "$(all_sent "$work/rows")"
point 'Graphite has each by the documented name, and each row of it' \
	"$(agree "$work/want" "$work/got" 0)"
point 'it computes with counters' "$(
	graphite_render json \
		'perSecond(db1_example_org.proctally-burn.ps_cputime.*)' \
		from=-5min >"$work/out"
	jq -e '[.[].datapoints[][0] | numbers] | length > 4 and
		(add > 1e5) and all(. >= 0)' "$work/out" >/dev/null ||
		head -c 2000 "$work/out")"
point 'it draws a picture of a group' "$(
	graphite_render png \
		'perSecond(db1_example_org.proctally-burn.ps_cputime.*)' \
		from=-5min width=400 height=200 >"$work/picture"
	head -c 4 "$work/picture" | grep -aq PNG || head -c 200 "$work/picture"
	graphite_render png 'no.such.name' from=-5min width=400 height=200 \
		>"$work/empty"
	[ "$(wc -c <"$work/picture")" -gt "$(wc -c <"$work/empty")" ] ||
		echo 'it is as small as one of nothing')"

# --- A thousand groups ---

crowd 1000
crowd_rules >"$work/crowd.yaml"
feed many db2 "$work/crowd.yaml" 10
many=$daemon
# has_all: as many names as collectd has sent, which go on from then on.
has_all() {
	reference "$work/many/csv/db2" >"$work/rows"
	graphite_names db2 <"$work/rows" >"$work/want"
	cut -f1 "$work/want" | sort -u >"$work/names"
	[ "$(cut -f1 "$work/rows" | sort -u | wc -l)" -ge 1000 ] &&
		[ "$(files db2)" -ge "$(wc -l <"$work/names")" ]
}
point 'of 1,000 groups every value arrives' "$(
	await 300 has_all ||
		echo "$(files db2) of $(wc -l <"$work/names") names"
	(cd "$whisper" && find db2 -path '*/proctally-*' -name '*.wsp') |
		sed 's/\.wsp$//' | tr / . | sort | comm -13 - "$work/names" |
		head -n 5
	graphite_rows 'db2.proctally-m-*.ps_count.processes' >"$work/got"
	[ "$(cut -f1 "$work/got" | sort -u | wc -l)" -ge 1000 ] ||
		echo "of $(cut -f1 "$work/got" | sort -u | wc -l) groups"
	awk -F '\t' '$3 != 1' "$work/got" | head -n 5)"
stop "$many"

plan
