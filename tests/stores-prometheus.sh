#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Prometheus: it scrapes what collectd's write_prometheus serves, with the time
# that collectd gives each value, and answers queries.
# shellcheck source=tests/storetest.sh
. "${top_srcdir:-.}/tests/storetest.sh"

need 'Prometheus' prometheus
if ! has_plugin write_prometheus; then
	skip 'Prometheus' 'no write_prometheus, or not all that it links'
	plan
	exit 0
fi

# prometheus_names HOST: rows of the reference by the documented names.
prometheus_names() {
	awk -F '\t' -v host="$1" '{
		print "collectd_proctally_" $2 ($4 == "value" ? "" : "_" $4) \
			($8 == "DERIVE" ? "_total" : "") \
			"|" host "|" $1 "|" $3 "\t" $5 "\t" $6
	}'
}

# prometheus_rows SELECTOR: of the last minutes.
prometheus_rows() {
	prometheus_query "{__name__=~\"collectd_proctally_.*\",$1}[10m]" | jq -r '
		.data.result[] |
		(.metric | [.__name__, .instance, .proctally, .type // ""] |
			join("|")) as $name |
		.values[] | [$name, (.[0] * 1000 | round), .[1]] | @tsv'
}

# feed NAME HOST RULES INTERVAL PORT
feed() {
	{
		csv "$work/$1/csv"
		shipped prometheus/collectd.conf "Port=\"$5\""
		load_proctally "$3"
	} | configure_collectd "$1" "$2" "$4"
	start_collectd "$1"
}

free_port
few_port=$port
free_port
many_port=$port
findings=
start_prometheus 1 "$few_port" "$many_port" ||
	findings=$(tail -n 20 "$work/prometheus.log")
point 'Prometheus starts' "$findings"

# --- Each value ---

hold 3
burn
rules >"$work/rules.yaml"
feed few db1.example.org "$work/rules.yaml" 1 "$few_port"
few=$daemon
await 60 ticks few 8 || tail -n 20 "$work/few/log"
kill "$burner"

has_rows() {
	prometheus_rows 'instance="db1.example.org"' >"$work/got"
	[ "$(grep -c '_memory|db1.example.org|idle.three|pss' "$work/got")" -ge 4 ]
}

findings=$(await 60 has_rows || echo 'few rows come')
# What the store has already, csv may be writing yet.
stop "$few"
reference "$work/few/csv/db1.example.org" >"$work/rows"
prometheus_names db1.example.org <"$work/rows" >"$work/want"
point 'all values that there are have been sent' "$(all_sent "$work/rows")"
point 'Prometheus has each by the documented name, and each row is right' "$findings$(
	agree "$work/want" "$work/got" 1 holes)"
point 'it computes with counters' "$(
	prometheus_query 'sum by (proctally) (increase(
		collectd_proctally_ps_cputime_user_total{proctally="burn",type=""}[5m]
		))' >"$work/out"
	jq -e '.data.result[0] | .metric.proctally == "burn" and
		(.value[1] | tonumber) > 1e5' "$work/out" >/dev/null ||
		cat "$work/out")"

# --- A thousand groups ---

crowd 1000
crowd_rules >"$work/crowd.yaml"
feed many db2 "$work/crowd.yaml" 10 "$many_port"
many=$daemon
has_all() {
	reference "$work/many/csv/db2" >"$work/rows"
	prometheus_names db2 <"$work/rows" >"$work/want"
	cut -f1 "$work/want" | sort -u >"$work/names"
	[ "$(grep -c 'ps_count_processes|db2|m-' "$work/names")" -ge 1000 ] &&
		prometheus_rows 'instance="db2"' >"$work/got" &&
		cut -f1 "$work/got" | sort -u | cmp -s - "$work/names"
}
findings=$(await 300 has_all || {
		cut -f1 "$work/got" | sort -u >"$work/have"
		wc -l <"$work/have"
		comm -3 "$work/names" "$work/have" | head -n 10
	})
stop "$many"
point 'of 1,000 groups every value arrives' "$findings$(
	reference "$work/many/csv/db2" | prometheus_names db2 >"$work/want"
	agree "$work/want" "$work/got" 1 holes)"

plan
