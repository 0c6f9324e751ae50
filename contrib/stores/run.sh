#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What contrib/run does with a store, and sourced there: it starts the store and
# a collectd that feeds it, keeps a processor busy for a while, and asks the
# store for the CPU time of groups until that shows. tests/servers.sh knows how
# a server is started; here is what to ask it.
# shellcheck disable=SC2154

# The program that is looked for, its package, and what else is wanted.
store_programs() {
	case $1 in
	graphite) echo carbon-cache=graphite-carbon graphite-manage=graphite-web ;;
	influxdb) echo influxd=influxdb ;;
	prometheus) echo prometheus=prometheus ;;
	esac
}

# store_packages STORE: to be installed: none has a service.
store_packages() {
	echo curl jq
	case $1 in
	# The latter loads libraries by names that ldconfig must know.
	graphite) echo python3 python3-cairocffi ;;
	prometheus)
		# What this plugin links, which collectd's package only suggests.
		[ -n "$(find /var/lib/apt/lists -name '*_Packages*' \
			2>/dev/null)" ] || [ "$(id -u)" != 0 ] ||
			apt-get -q update </dev/null >/dev/null 2>&1 || true
		apt-cache show --no-all-versions collectd-core 2>/dev/null |
			grep '^Suggests:' |
			grep -oE 'lib(microhttpd|protobuf-c)[0-9][0-9a-z]*' || true
		;;
	esac
}

# busy_rules FILE: its rules with one for our own process before the others, if
# they are written one below the other.
busy_rules() {
	awk '
	{ line = $0 }
	inside && match(line, /^ *- /) {
		sub(/-.*/, "", line)
		print line "- {name: busy, comm: proctally-busy}"
		inside = 0
	}
	inside && line !~ /^ *(#.*)?$/ { inside = 0 }
	/^rules:[ \t]*(#.*)?$/ { inside = 1 }
	{ print $0 }' "$1"
}

# start_store STORE: and collectd, which feeds it.
start_store() {
	case $1 in
	graphite)
		start_carbon "${interval}s:1h" && start_graphite_web || return 1
		writer=$(shipped graphite/collectd.conf 'Host="127.0.0.1"' \
			"Port=\"$carbon_port\"") || return 1
		;;
	influxdb)
		start_influxd split || return 1
		writer=$(shipped influxdb/collectd.conf \
			"Server=\"127.0.0.1\" \"$influx_port\"") || return 1
		;;
	prometheus)
		free_port
		prometheus_port=$port
		start_prometheus "$interval" "$prometheus_port" || return 1
		writer=$(shipped prometheus/collectd.conf \
			"Port=\"$prometheus_port\"") || return 1
		;;
	esac
	{
		echo "$writer"
		load_proctally "$work/rules.yaml"
	} | configure_collectd collectd localhost "$interval"
	start_collectd collectd
}

# store_query STORE: sets $query to what asks for the CPU time of each group, in
# percent of one processor, and $look to where else to look.
store_query() {
	span=$((interval * 5))
	case $1 in
	graphite)
		query='aliasByNode(scale(perSecond(sumSeriesWithWildcards(localhost.proctally-*.ps_cputime.*, 3)), 0.0001), 1)'
		look="$graphite_url/render?from=-5min&width=800&height=400&lineMode=connected&target=$(
			printf %s "$query" | jq -sRr @uri)"
		;;
	influxdb)
		query="SELECT non_negative_derivative(last(value), 1s) / 10000 AS percent FROM proctally_user, proctally_syst WHERE type = 'ps_cputime' AND type_instance = '' AND time > now() - ${span}s GROUP BY instance, time(${interval}s)"
		look="curl -G $influx_url/query -d db=collectd --data-urlencode 'q=SHOW SERIES'"
		;;
	prometheus)
		sum='sum by (proctally) (rate(collectd_proctally_ps_cputime_%s_total{type=""}['$span's]))'
		# shellcheck disable=SC2059
		query="($(printf "$sum" user) + $(printf "$sum" syst)) / 10000"
		look="$prometheus_url/graph?g0.range_input=5m&g0.tab=0&g0.expr=$(
			printf %s "$query" | jq -sRr @uri)"
		;;
	esac
}

# store_answer STORE: "PERCENT GROUP" of each group, the busiest first.
store_answer() {
	case $1 in
	graphite)
		graphite_render json "$query" "from=-${span}s" | jq -r '.[] |
			[([.datapoints[][0] | numbers] | last), .target] |
			select(.[0]) | @tsv' | sed 's/proctally-//'
		;;
	influxdb)
		influx_query collectd "$query" | awk -F, -v OFS='\t' '
			$2 ~ /^instance=/ && $4 != "" { last[$1, $2] = $4 }
			END {
				for (key in last) {
					split(key, part, SUBSEP)
					sub(/^instance=/, "", part[2])
					sum[part[2]] += last[key]
				}
				for (group in sum)
					print sum[group], group
			}'
		;;
	prometheus)
		prometheus_query "$query" | jq -r '.data.result[] |
			[.value[1], .metric.proctally] | @tsv'
		;;
	esac 2>/dev/null | LC_ALL=C sort -k1,1gr
}

# shows GROUP: in $work/answer, with 5 percent at least.
shows() {
	awk -v group="$1" '$2 == group && $1 >= 5 { found = 1 }
		END { exit !found }' "$work/answer"
}

# draw PID: a picture of that process, from before it began until after it ended.
draw() {
	picture=$build/graphite.png
	nap $((interval * 5))
	kill "$1"
	nap $((interval * 3))
	graphite_render png "$query" "from=-$(($(date +%s) - started))s" \
		width=800 height=300 lineMode=connected >"$picture" &&
		printf '\nThe picture of it is in %s\n' "$picture"
}

# run_store STORE SECONDS: until so many seconds are over, or for ever.
run_store() {
	busy_rules "$rules" >"$work/rules.yaml"
	./proctally check "$work/rules.yaml" >/dev/null 2>&1 ||
		cp "$rules" "$work/rules.yaml"
	echo "Starting $1 and collectd ..."
	start_store "$1" || {
		tail -n 20 "$work"/*.log >&2
		fail "$1 does not start"
	}
	store_query "$1"
	ln -s "$(command -v sh)" "$work/proctally-busy"
	start busy "$work/proctally-busy" -c 'ulimit -t 60; while :; do :; done'
	group=$(./proctally explain --rules "$work/rules.yaml" "$daemon" \
		2>/dev/null | sed -n 's/^group: //p')
	echo "Asking for a process that is busy, in the group \"$group\" ..."
	rounds=0
	while store_answer "$1" >"$work/answer" && ! shows "$group"; do
		rounds=$((rounds + 1))
		[ "$rounds" -lt 120 ] || {
			tail -n 20 "$work"/*.log "$work/collectd/log" >&2
			fail "$1 shows nothing of it"
		}
		nap 0.5
	done
	printf '\n%s\n\n' "$query"
	awk 'BEGIN { printf "%7s  %s\n", "CPU %", "GROUP" }
		NR <= 10 { printf "%7.1f  %s\n", $1, $2 }' "$work/answer"
	[ "$1" != graphite ] || draw "$daemon"
	kill "$daemon" 2>/dev/null || true
	printf '\nLook at\n  %s\n' "$look"
	echo 'until Ctrl-C, which ends all of it.'
	while [ -z "$2" ] || [ $(($(date +%s) - started)) -lt "$2" ]; do
		nap 1
	done
}
