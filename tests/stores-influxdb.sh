#!/bin/sh
# SPDX-License-Identifier: MIT
#
# InfluxDB 1.x: collectd's network plugin sends to InfluxDB's collectd listener,
# once as "split" and once as "join"; write_influxdb_udp, which later collectds
# have, sends InfluxDB's own lines.
# shellcheck source=tests/storetest.sh
. "${top_srcdir:-.}/tests/storetest.sh"

need 'InfluxDB' influxd

# influx_names [OFF]: rows of the reference as FIELD|INSTANCE|TYPE|TYPE_INSTANCE, with
# the field that they have under "join"; under "split" it is in the name of the
# measurement. OFF is for counters, see agree().
influx_names() {
	awk -F '\t' -v off="${1:-0}" '{
		print $4 "|" $1 "|" $2 "|" $3 "\t" $5 "\t" $6 "\t" \
			($8 == "DERIVE" ? off : 0)
	}'
}

# influx_rows URL DATABASE HOST MODE: all rows of a host, by the same names. A
# time has too many digits for a number.
influx_rows() {
	influx_url=$1
	mode=$4
	influx_query "$2" "SELECT * FROM /^proctally/ WHERE host = '$3'" |
		awk -F, -v mode="$mode" '
	function row(field, measurement, value,   at, inst) {
		if (mode == "split") {
			if (field != "value" || !sub(/^proctally_/, "",
			    measurement))
				measurement = "strange:" measurement "." field
			field = measurement
		} else if (measurement != "proctally")
			field = "strange:" measurement "." field
		at = substr($column["time"], 1, 13)
		if (substr($column["time"], 14, 1) >= 5)
			at = sprintf("%.0f", at + 1)
		inst = ""
		if ("type_instance" in column)
			inst = $column["type_instance"]
		print field "|" $column["instance"] "|" $column["type"] "|" \
			inst "\t" at "\t" value
	}
	/^name,tags,time,/ {
		for (name in column)
			delete column[name]
		for (i = 1; i <= NF; i++) {
			column[$i] = i
			title[i] = $i
		}
		next
	}
	NF > 3 {
		for (i = 4; i <= NF; i++)
			if ($i != "" &&
			    title[i] !~ /^(host|instance|type|type_instance)$/)
				row(title[i], $1, $i)
	}'
}

# feed NAME HOST RULES INTERVAL
feed() {
	{
		csv "$work/$1/csv"
		for port in $ports; do
			shipped influxdb/collectd.conf \
				"Server=\"127.0.0.1\" \"$port\""
		done
		[ -z "$lines" ] || shipped influxdb/collectd-udp.conf \
			"Server=\"127.0.0.1\" \"$udp_port\""
		load_proctally "$3"
	} | configure_collectd "$1" "$2" "$4"
	start_collectd "$1"
}

findings='' ports=''
start_influxd split || findings=$(tail -n 20 "$work/influxdb-split.log")
split=$influx_url split_daemon=$daemon ports=$influx_port
udp_port=$influx_udp_port
start_influxd join || findings=$findings$(tail -n 20 "$work/influxdb-join.log")
join=$influx_url join_daemon=$daemon ports="$ports $influx_port"
point 'InfluxDB starts' "$findings"
lines=
! has_plugin write_influxdb_udp || lines=yes

# --- Each value ---

hold 3
burn
rules >"$work/rules.yaml"
feed few db1.example.org "$work/rules.yaml" 1
few=$daemon
await 60 ticks few 8 || tail -n 20 "$work/few/log"
kill "$burner"

# has_rows URL DATABASE MODE N: those of the group of three have come.
has_rows() {
	influx_rows "$1" "$2" db1.example.org "$3" >"$work/got"
	[ "$(grep -c '^value|idle.three|memory|pss' "$work/got")" -ge "$4" ]
}

# fetch URL DATABASE MODE: rows from there, to $work/got.DATABASE.MODE.
fetch() {
	await 60 has_rows "$@" 4 || echo 'few rows come'
	mv "$work/got" "$work/got.$2.$3"
}

by_split=$(fetch "$split" collectd split)
by_join=$(fetch "$join" collectd join)
[ -z "$lines" ] || by_lines=$(fetch "$split" collectd_udp join)
# What the store has already, csv may be writing yet.
stop "$few"
reference "$work/few/csv/db1.example.org" >"$work/rows"
influx_names <"$work/rows" >"$work/want"
point 'all values that there are have been sent' "$(all_sent "$work/rows")"
point 'split: InfluxDB has each by the documented name, and each row of it' \
	"$by_split$(agree "$work/want" "$work/got.collectd.split" 1)"
point 'join: so it has' \
	"$by_join$(agree "$work/want" "$work/got.collectd.join" 1)"
name='write_influxdb_udp: so it has, with rates'
if [ -n "$lines" ]; then
	rates <"$work/rows" | influx_names 0.01 >"$work/want"
	point "$name" \
		"$by_lines$(agree "$work/want" "$work/got.collectd_udp.join" 1)"
else
	skip "$name" 'no write_influxdb_udp: this collectd has none'
fi
point 'it computes with counters' "$(
	influx_url=$split
	influx_query collectd "SELECT sum(us) FROM (SELECT
		non_negative_derivative(value, 1s) AS us FROM proctally_user
		WHERE instance = 'burn' AND type_instance = '')" >"$work/out"
	awk -F, 'END { exit !($NF > 1e5) }' "$work/out" || cat "$work/out")"
stop "$join_daemon"

# --- A thousand groups ---

crowd 1000
crowd_rules >"$work/crowd.yaml"
ports=${ports%% *} lines=
feed many db2 "$work/crowd.yaml" 10
many=$daemon
# missing_names: of what csv has, and the store has not. The last value of a
# reading waits in collectd for the first of the next one.
missing_names() {
	cut -f1 "$work/want" | sort -u >"$work/names"
	cut -f1 "$work/got" | sort -u | comm -3 "$work/names" -
}

# has_all: two readings of all.
has_all() {
	reference "$work/many/csv/db2" >"$work/rows"
	influx_names <"$work/rows" >"$work/want"
	grep '|m-[0-9]*|ps_count|' "$work/want" >"$work/counts"
	[ "$(wc -l <"$work/counts")" -ge 4000 ] &&
		influx_rows "$split" collectd db2 split >"$work/got" &&
		[ "$(grep -c '|m-[0-9]*|ps_count|' "$work/got")" -ge 4000 ] &&
		[ -z "$(missing_names)" ]
}
await 300 has_all || true
point 'of 1,000 groups every value arrives' "$(missing_names)"
# What the store has already, csv may be writing yet.
stop "$many"
# The last column counts packets that the kernel had no room for, which is so
# where net.core.rmem_max is small.
dropped=$(awk -v port="$(printf ':%04X' "${ports%% *}")" '
	$2 ~ port "$" { print $NF }' /proc/net/udp)
[ "$dropped" = 0 ] || echo "# $dropped packets were dropped"
point 'and no reading of them is lost but for packets that the kernel counts' "$(
	reference "$work/many/csv/db2" | influx_names >"$work/want"
	agree "$work/want" "$work/got" 1 >"$work/out"
	[ "$dropped" = 0 ] || sed -i '/: lost$/d' "$work/out"
	cat "$work/out")"
stop "$split_daemon"

plan
