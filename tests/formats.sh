#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What dump prints, read by those who are meant to read it: collectd's exec
# plugin, InfluxDB, promtool, node_exporter, Graphite's carbon and Netdata. Each
# is started with a configuration and data of its own below one temporary
# directory, on free ports of the loopback interface; no installed one is looked
# at or touched. Below $SERVICES may be what is not installed, see contrib/test.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/servers.sh
. "$src/tests/servers.sh"

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-formats.XXXXXX")
# shellcheck disable=SC2317,SC2329
finish() {
	trap - EXIT HUP INT TERM
	servers_done
	exec 8>&-
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# What is run as nobody must be found there.
chmod 755 "$work"
cp "$build/proctally" "$work/proctally"
command=$work/proctally

# --- Processes, by names of ours ---

id=$$
mkfifo "$work/hold"
exec 8<>"$work/hold"
sh=$(command -v sh)
for name in idle burn; do
	ln -s "$sh" "$work/$name$id"
done
for _ in 1 2 3; do
	"$work/idle$id" -c 'read -r x' <"$work/hold" >/dev/null 2>&1 8>&- &
	pids="$pids $!"
done

# All that can be collected, by the table of the source; but for PSS, which is
# there when there was time to read it, and for delays, of which it depends on
# the kernel and on rights what there is.
cat >"$work/rules.yaml" <<END
defaults:
  collect:
$(sed -nE 's/^ *\[COLLECT_[A-Z_]+\] = \{"([a-z_]+)".*/    \1: true/p' \
	"$src/plugin/metric.c" |
	sed 's/pss: true/pss: false/; s/gpu: true/gpu: auto/; /delay:/d')
rules:
- {name: idle.three, comm: idle$id}
- {name: burn, comm: burn$id}
- {name: rest, any: true}
END

# burn: a processor is busy until kill $burner, or for a minute.
burn() {
	"$work/burn$id" -c 'ulimit -t 60; while :; do :; done' 8>&- &
	burner=$!
	pids="$pids $burner"
}

# dump FORMAT ARGUMENT...: $work/err is what it says.
dump() {
	format=$1
	shift
	timeout -k 5 60 "$command" dump --rules "$work/rules.yaml" \
		--format "$format" "$@" 2>"$work/err" </dev/null 8>&-
}

# What cannot be read of some processes may be told.
silent() {
	! grep -v ' unreadable for ' "$work/err" || echo '(on standard error)'
}

# --- All of them ---

formats=$("$command" --help | sed -n 's/^  --format NAME *//p' | tr -d ,)

point 'a reader that went away ends every format with status 0' "$(
	[ "$(echo "$formats" | wc -w)" -ge 5 ] || echo "only $formats"
	for format in $formats; do
		{
			status=0
			dump "$format" --interval 0.05 || status=$?
			echo "$status" >"$work/status"
		} | head -n 1 >"$work/out"
		[ "$(cat "$work/status")" = 0 ] ||
			echo "$format: status $(cat "$work/status")"
		[ -s "$work/out" ] || echo "$format: nothing"
		silent
	done)"

# names FORMAT: what its values are told apart by.
names() {
	case $1 in
	putval) sed 's/ interval=.*//' ;;
	influx) sed -E 's/ [^ ]*$//; s/=-?[0-9][0-9.e+-]*i?(,|$)/\1/g' ;;
	prometheus) sed -n 's/^\([^# ].*\) .*/\1/p' ;;
	graphite) cut -d' ' -f1 ;;
	netdata) awk '$1 == "BEGIN" { chart = $2 } $1 == "SET" { print chart, $2 }' ;;
	esac | sort
}

point 'what comes in a tick comes in the next one, by the same name' "$(
	for format in $formats; do
		dump "$format" --count 1 | names "$format" >"$work/once"
		dump "$format" --count 2 --interval 0.2 | names "$format" |
			uniq -d >"$work/twice"
		[ -s "$work/once" ] || echo "$format: nothing"
		diff "$work/once" "$work/twice" | sed "s/^/$format: /" || true
	done)"

# --- A file ---

file=$work/textfile/proctally.prom
mkdir "$work/textfile"

# leftovers: what is beside the file.
leftovers() {
	find "$work/textfile" ! -path "$file" ! -path "$work/textfile" |
		sed 's/$/ is left over/'
}

point 'a file is written with the rights of any new file' "$(
	(umask 027 && dump prometheus --count 1 --output "$file") ||
		echo "status $?"
	silent
	[ "$(stat -c %a "$file")" = 640 ] || stat -c %a "$file"
	grep -q '^proctally_processes{group="idle.three"} 3$' "$file" ||
		echo 'the value is not there'
	leftovers)"
point 'in the directory of the call too' "$(
	cd "$work/textfile" && rm -f "$file" &&
		dump prometheus --count 1 --output proctally.prom
	[ -s "$file" ] || echo 'nothing'
	leftovers)"

last='^proctally_self_tick_cpu_seconds '
timeout 60 "$command" dump --rules "$work/rules.yaml" --format prometheus \
	--interval 0.02 --output "$file" 2>/dev/null 8>&- &
writer=$!
pids="$pids $writer"
findings='' versions=''
for _ in $(seq 300); do
	[ -s "$file" ] || continue
	{
		stat -L -c '%i %y' /dev/fd/3 >"$work/version"
		grep -q "$last" <&3 || findings='half of a file was seen'
	} 3<"$file"
	versions="$versions
$(cat "$work/version")"
done
kill "$writer"
wait "$writer" 2>/dev/null || true
[ "$(echo "$versions" | sort -u | wc -l)" -gt 3 ] || findings="$findings
it was not replaced"
point 'who reads the file never sees half of it' "$findings$(leftovers)"

point 'where there is no space the old file stays' "$(
	dump prometheus --count 1 --output "$file"
	cp "$file" "$work/before"
	status=0
	(
		trap '' XFSZ
		ulimit -f 1
		dump prometheus --count 1 --output "$file"
	) || status=$?
	[ "$status" = 1 ] || echo "status $status"
	grep -q 'proctally\.prom: File too large' "$work/err" || cat "$work/err"
	cmp "$file" "$work/before"
	leftovers)"
point 'what is not a regular file is not replaced' "$(
	ln -sf "$file" "$work/link"
	mkdir -p "$work/directory"
	mkfifo "$work/fifo"
	for other in "$work/link" "$work/directory" "$work/fifo"; do
		status=0
		dump prometheus --count 1 --output "$other" || status=$?
		[ "$status" = 1 ] || echo "$other: status $status"
		grep -q 'not a regular file' "$work/err" || cat "$work/err"
	done
	[ -L "$work/link" ] && [ -p "$work/fifo" ] || echo 'it was')"
point 'a file in a directory that is not there is an error' "$(
	status=0
	dump influx --count 1 --output "$work/none/file" || status=$?
	[ "$status" = 1 ] || echo "status $status"
	grep -q 'none/file: No such file' "$work/err" || cat "$work/err")"

# --- promtool and node_exporter ---

name='promtool has no complaint'
if find_program promtool; then
	point "$name" "$(
		dump prometheus --count 1 >"$work/out"
		grep -q '^proctally_cpu_seconds_total{group="rest",mode="user"} ' \
			"$work/out" || echo 'no CPU time'
		service "$program" check metrics <"$work/out" 2>&1 ||
			echo "status $?"
		service "$program" check metrics <"$file" 2>&1 ||
			echo "status $?")"
else
	skip "$name" "$(missing promtool)"
fi

# exported: families and numbers of samples, as they are scraped.
exported() {
	sed -n 's/^\(proctally_[a-z_]*\).*/\1/p' | sort | uniq -c
}

test_exporter() {
	free_port
	url=http://127.0.0.1:$port/metrics
	start exporter service "$program" --collector.disable-defaults \
		--collector.textfile \
		--collector.textfile.directory="$work/textfile" \
		--web.listen-address="127.0.0.1:$port"
	point 'node_exporter hands on what is in the file' "$(
		await 30 curl -sSf -m 5 "$url" || tail -n 20 "$work/exporter.log"
		dump prometheus --count 1 --output "$file"
		curl -sSf -m 10 "$url" >"$work/out"
		grep -qx 'node_textfile_scrape_error 0' "$work/out" ||
			tail -n 20 "$work/exporter.log"
		grep -qx 'proctally_processes{group="idle.three"} 3' "$work/out" ||
			echo 'the value is not there'
		exported <"$file" >"$work/want"
		exported <"$work/out" | diff "$work/want" - || true)"
	stop "$daemon"
}

if ! find_program curl; then
	skip 'node_exporter' "$(missing curl)"
elif ! find_program prometheus-node-exporter; then
	skip 'node_exporter' "$(missing prometheus-node-exporter)"
else
	test_exporter
fi

# --- InfluxDB ---

# influx_query QUERY: as CSV.
influx_query() {
	curl -sS -m 10 -G -H 'Accept: application/csv' "$url/query?db=p" \
		--data-urlencode "q=$1"
}

test_influx() {
	mkdir "$work/influx"
	free_port
	rpc=$port
	free_port
	url=http://127.0.0.1:$port
	cat >"$work/influx/conf" <<END
reporting-disabled = true
bind-address = "127.0.0.1:$rpc"
[meta]
dir = "$work/influx/meta"
[data]
dir = "$work/influx/data"
wal-dir = "$work/influx/wal"
[monitor]
store-enabled = false
[http]
bind-address = "127.0.0.1:$port"
END
	start influxd service "$program" -config "$work/influx/conf"
	point 'InfluxDB starts' "$(
		await 30 curl -sSf -m 5 "$url/ping" ||
			tail -n 20 "$work/influxd.log")"
	curl -sS -m 10 -o "$work/out" -XPOST "$url/query" \
		--data-urlencode 'q=CREATE DATABASE p' || true
	burn
	COLLECTD_HOSTNAME='a b,c=d'
	export COLLECTD_HOSTNAME
	dump influx --count 3 --interval 0.5 >"$work/lines" || true
	unset COLLECTD_HOSTNAME
	kill "$burner"
	point 'InfluxDB takes every line' "$(
		[ -s "$work/lines" ] || echo 'nothing'
		curl -sS -m 20 -w '%{http_code}' --data-binary "@$work/lines" \
			"$url/write?db=p" | grep -vx 204 || true)"
	point 'none of its values is lost' "$(
		sed -E 's/([^\\]) .*/\1/' "$work/lines" | sort -u | wc -l \
			>"$work/want"
		influx_query 'SHOW SERIES' | sed 1d | wc -l >"$work/got"
		diff "$work/want" "$work/got" || true)"
	point 'what InfluxDB gives back is what was sent' "$(
		influx_query "SELECT processes, threads, host FROM
			proctally_ps_count WHERE \"group\" = 'idle.three'" \
			>"$work/out"
		[ "$(grep -c ',3,3,"a b,c=d"$' "$work/out")" = 3 ] ||
			cat "$work/out"
		influx_query "SELECT spread(\"user\") + spread(syst) FROM
			proctally_ps_cputime WHERE \"group\" = 'burn'
			AND instance = ''" |
			sed -n '$s/.*,//p' >"$work/got"
		sed -nE '/,instance=/d
			s/.*,group=burn,.* user=([0-9]+)i,syst=([0-9]+)i .*/\1 \2/p' \
			"$work/lines" | awk '{ last = $1 + $2 }
				NR == 1 { first = last }
				END { print last - first }' >"$work/want"
		diff "$work/want" "$work/got" || true
		grep -qx '[1-9][0-9]*' "$work/got" || echo 'nothing was burnt')"
	point 'counters are integers there, gauges are not' "$(
		influx_query 'SHOW FIELD KEYS' >"$work/out"
		for field in ps_cputime,,syst,integer disk_octets,,read,integer \
			ps_rss,,value,float ps_count,,threads,float; do
			grep -qx "proctally_$field" "$work/out" ||
				echo "not $field"
		done)"
	stop "$daemon"
}

if ! find_program curl; then
	skip 'InfluxDB' "$(missing curl)"
elif ! find_program influxd; then
	skip 'InfluxDB' "$(missing influxd)"
else
	test_influx
fi

# --- carbon, and collectd's exec plugin ---

# Graphite's tree of what a host has sent.
whisper_tree() {
	(cd "$whisper/$1" 2>/dev/null && find . -name '*.wsp' | sort)
}

# to_carbon COMMAND...: its standard output is the connection.
to_carbon() {
	bash -c 'exec >/dev/tcp/127.0.0.1/$0 && exec "$@"' "$carbon_port" "$@"
}

has_tree() {
	[ "$(whisper_tree "$1" | wc -l)" = "$2" ]
}

# graphite_is HOST PATH VALUE: the newest one.
graphite_is() {
	[ "$(graphite_value "$1" "$2")" = "$3" ]
}

graphite_value() {
	find_program whisper-fetch &&
		(service "$program" --from=$(($(date +%s) - 60)) \
			"$whisper/$1/$2.wsp") |
		awk '$2 != "None" { v = $2 } END { printf "%.0f", v }'
}

test_carbon() {
	findings=
	start_carbon 1s:1h || findings=$(tail -n 20 "$work/carbon.log")
	carbon=$daemon
	point 'carbon starts' "$findings"
	COLLECTD_HOSTNAME='alone.in (the) dark'
	export COLLECTD_HOSTNAME
	point 'carbon takes every line' "$(
		dump graphite --count 2 --interval 1 | tee "$work/lines" |
			to_carbon cat || echo "status $?"
		[ -s "$work/lines" ] || echo 'nothing'
		await 10 has_tree alone_in__the__dark \
			"$(cut -d' ' -f1 "$work/lines" | sort -u | wc -l)" ||
			whisper_tree alone_in__the__dark | wc -l
		! grep -i 'invalid' "$work/carbon.log")"
	point 'what Graphite keeps is what was sent' "$(
		while read -r path value; do
			await 10 graphite_is alone_in__the__dark "$path" \
				"$value" ||
				echo "$path: want $value, got $(graphite_value \
					alone_in__the__dark "$path")"
		done <<-END
			proctally-idle_three/ps_count/processes 3
			proctally-rest/ps_vm $(sed -n \
				's/^.*\.proctally-rest\.ps_vm \([^ ]*\) .*/\1/p' \
				"$work/lines" | tail -n 1)
		END
	)"
	unset COLLECTD_HOSTNAME
}

# collectd runs nothing as root.
as=nobody
[ "$(id -u)" = 0 ] || as=$(id -un)

start_collectd() {
	mkdir -p "$work/collectd/data" "$work/collectd/out"
	chmod 777 "$work/collectd/out"
	cat >"$work/collectd/both" <<END
#!/bin/sh
COLLECTD_HOSTNAME=by.us "$work/proctally" dump --rules "$work/rules.yaml" \
	--format graphite --count 2 --interval 1 >"$work/collectd/out/lines"
exec "$work/proctally" dump --rules "$work/rules.yaml"
END
	chmod 755 "$work/collectd/both"
	types_db=
	for db in /usr/share/collectd/types.db \
		/opt/collectd/share/collectd/types.db; do
		[ ! -f "$db" ] || types_db=${types_db:-$db}
	done
	cat >"$work/collectd/conf" <<END
Hostname "by.collectd"
FQDNLookup false
BaseDir "$work/collectd"
PIDFile "$work/collectd/pid"
Interval 1
TypesDB "$types_db"
LoadPlugin logfile
<Plugin logfile>
	LogLevel info
	File "$work/collectd/log"
</Plugin>
LoadPlugin csv
<Plugin csv>
	DataDir "$work/collectd/data"
	StoreRates false
</Plugin>
$1
LoadPlugin exec
<Plugin exec>
	Exec "$as" "$work/collectd/both"
</Plugin>
END
	start collectd "$COLLECTD" -f -C "$work/collectd/conf"
}

csv_value() {
	tail -q -n 1 "$work/collectd/data/by.collectd/proctally-idle.three/$1"-2* \
		2>/dev/null | cut -d, -f"$2"
}

csv_is() {
	[ "$(csv_value "$1" "$2")" = "$3" ]
}

# What collectd's own writer sends is asked for where there is a carbon.
write_graphite() {
	[ -n "$carbon" ] || return 0
	cat <<END
LoadPlugin write_graphite
<Plugin write_graphite>
	<Node "carbon">
		Host "127.0.0.1"
		Port "$carbon_port"
		Protocol "tcp"
		StoreRates false
	</Node>
</Plugin>
END
}

test_collectd() {
	start_collectd "$(write_graphite)"
	point "collectd's exec plugin takes putval" "$(
		await 20 csv_is ps_count 2 3.000000 ||
			echo "processes: $(csv_value ps_count 2)"
		await 5 csv_is ps_state-sleeping 2 3.000000 ||
			echo "sleeping: $(csv_value ps_state-sleeping 2)"
		sleep 2
		has_ended "$daemon" && echo 'collectd has ended'
		grep -i 'exec plugin' "$work/collectd/log" |
			grep -vE ' unreadable for |CAP_SETUID' || true)"
	stop "$daemon"
}

same_tree() {
	whisper_tree by_us >"$work/ours" && [ -s "$work/ours" ] &&
		whisper_tree by_collectd | cmp -s - "$work/ours"
}

carbon=
if find_program carbon-cache; then
	test_carbon
else
	skip 'carbon' "$(missing carbon-cache)"
fi
if find_program "$COLLECTD"; then
	test_collectd
	if [ -n "$carbon" ]; then
		point "Graphite has the names that collectd's writer gives" "$(
			to_carbon cat "$work/collectd/out/lines"
			await 10 same_tree || {
				whisper_tree by_us >"$work/ours"
				whisper_tree by_collectd | diff - "$work/ours"
			})"
	fi
else
	skip "collectd's exec plugin" "$(missing "$COLLECTD")"
fi
if [ -n "$carbon" ]; then
	stop "$carbon"
fi

# --- Netdata ---

start_netdata() {
	dir=$work/netdata
	mkdir "$dir" "$dir/conf" "$dir/plugins" "$dir/stock" "$dir/web" \
		"$dir/cache" "$dir/lib" "$dir/log"
	touch "$dir/conf/.opt-out-from-anonymous-statistics"
	cat >"$dir/plugins/proctally.plugin" <<END
#!/bin/sh
echo "\$*" >"$dir/arguments"
echo "\$\$" >"$dir/plugin"
exec "$work/proctally" dump --format netdata --rules "$work/rules.yaml" "\$@"
END
	chmod 755 "$dir/plugins/proctally.plugin"
	free_port
	url=http://127.0.0.1:$port/api/v1
	cat >"$dir/conf/netdata.conf" <<END
[global]
	run as user = $(id -un)
	hostname = here
[db]
	mode = ram
	update every = 1
[directories]
	config = $dir/conf
	stock config = $dir/stock
	log = $dir/log
	web = $dir/web
	cache = $dir/cache
	lib = $dir/lib
	home = $dir
	plugins = "$dir/plugins"
[logs]
	error = $dir/log/error.log
	access = none
[web]
	bind to = 127.0.0.1:$port
	web server threads = 1
[plugins]
	enable running new plugins = no
	proctally = yes
$(for plugin in timex idlejitter 'netdata monitoring' tc diskspace proc \
	cgroups statsd slabinfo profile; do
	printf '\t%s = no\n' "$plugin"
done)
[health]
	enabled = no
[ml]
	enabled = no
[statsd]
	enabled = no
[registry]
	enabled = no
[cloud]
	enabled = no
END
	start netdata service "NETDATA_PIPENAME=$dir/pipe" DO_NOT_TRACK=1 \
		"$program" -D -c "$dir/conf/netdata.conf" -P "$dir/pid"
}

# netdata_data CHART: rows of the last seconds, the newest first.
netdata_data() {
	curl -sf -m 5 "$url/data?chart=proctally.$1&format=csv&after=-15" |
		tr -d '\r' | sed 1d | grep -v null
}

# netdata_has CHART ROWS
netdata_has() {
	[ "$(netdata_data "$1" | wc -l)" -ge "$2" ]
}

charts() {
	curl -sSf -m 5 "$url/charts" |
		sed -n 's/^\t*"id": "\(proctally\.[^"]*\)",$/\1/p' | sort
}

netdata_is_busy() {
	netdata_data burn.ps_cputime | awk -F, '
		{ sum += $2 + $3 }
		END { exit !(NR && sum / NR > 5 && sum / NR < 120) }'
}

test_netdata() {
	start_netdata
	burn
	point 'Netdata runs it as a plugin' "$(
		await 30 netdata_has idle.three.ps_count 3 ||
			tail -n 20 "$work/netdata.log" "$dir/log/error.log"
		[ "$(cat "$dir/arguments")" = 1 ] || cat "$dir/arguments")"
	point 'Netdata has a chart for each group and type' "$(
		dump netdata --count 1 | awk '$1 == "CHART" { print $2 }' |
			sort >"$work/want"
		[ -s "$work/want" ] || echo 'nothing'
		charts | diff "$work/want" - || true)"
	point 'what Netdata shows is what was sent' "$(
		netdata_data idle.three.ps_count | cut -d, -f2- |
			grep -vx '3,3' || true
		await 5 netdata_is_busy || netdata_data burn.ps_cputime
		netdata_data _self.duration | awk -F, '
			{ sum += $2 }
			END { if (!(sum > 0 && sum < 5 * NR))
				print NR " ticks took " sum " s" }')"
	kill "$burner"
	point 'it ends with Netdata' "$(
		plugin=$(cat "$dir/plugin")
		[ "$(cat "/proc/$plugin/comm")" = proctally ] ||
			echo 'it was not there'
		stop "$daemon"
		await 10 [ ! -d "/proc/$plugin" ] || echo "$plugin is left")"
}

if ! find_program curl; then
	skip 'Netdata' "$(missing curl)"
elif ! find_program netdata; then
	skip 'Netdata' "$(missing netdata)"
else
	test_netdata
fi

plan
