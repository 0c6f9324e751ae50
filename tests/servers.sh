#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Not a test: what scripts source that start stores and a collectd that feeds
# them. Each server runs on free ports of the loopback interface, with data and
# a configuration of its own below $work, which is what contrib/stores/ has with
# other ports and directories. It knows no metric and no test.
#
# The caller sets $src and $build, and $work to a directory that it removes; it
# calls servers_done before it ends. Servers that are not installed may be
# unpacked below $SERVICES, see contrib/unpack; what a distribution does not
# have is in $LACKING. What start_SERVER starts has its pid in $daemon.
# shellcheck disable=SC2034,SC2154

: "${SERVICES:=}" "${LACKING:=}" "${COLLECTD:=collectd}"
PATH=$PATH:/usr/sbin:/opt/collectd/sbin
unset COLLECTD_HOSTNAME COLLECTD_INTERVAL

# find_program NAME: sets $program to its path; fails if there is none.
find_program() {
	program=$(command -v "$1" || true)
	for bin in bin sbin; do
		[ -n "$program" ] || [ ! -x "$SERVICES/usr/$bin/$1" ] ||
			program=$SERVICES/usr/$bin/$1
	done
	[ -n "$program" ]
}

# missing NAME: why there is none.
missing() {
	case " $LACKING " in
	*" $1 "*) echo "no $1: the distribution has none" ;;
	*) echo "no $1" ;;
	esac
}

# service COMMAND...: with the libraries that were unpacked along with it.
service() {
	if [ -n "$SERVICES" ]; then
		libraries=
		for lib in "$SERVICES"/lib/*-linux-gnu* \
			"$SERVICES"/usr/lib/*-linux-gnu*; do
			[ ! -d "$lib" ] || libraries=$libraries:$lib
		done
		set -- "PYTHONPATH=$SERVICES/usr/lib/python3/dist-packages" \
			"LD_LIBRARY_PATH=${libraries#:}" "$@"
	fi
	exec env "$@"
}

# --- Processes ---

pids=

# start NAME COMMAND...: in the background, with its output in $work/NAME.log
# and its pid in $daemon.
start() {
	log=$work/$1.log
	shift
	"$@" >"$log" 2>&1 </dev/null 7>&- 8>&- 9>&- &
	daemon=$!
	pids="$pids $daemon"
}

# await SECONDS COMMAND...: until it succeeds, or fails.
await() {
	until=$(($(date +%s) + $1)) pause=0.1 rounds=0
	shift
	while ! "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$until" ] || return 1
		rounds=$((rounds + 1))
		[ "$rounds" -lt 50 ] || pause=1
		sleep "$pause"
	done
}

# has_ended PID: nobody has waited for it, so it is a zombie at least.
has_ended() {
	[ ! -d "/proc/$1" ] || grep -qs '^State:.Z' "/proc/$1/status"
}

# stop PID...: whatever is left of them. What a signal ended is no failure.
stop() {
	for pid; do
		kill -TERM "$pid" 2>/dev/null || true
	done
	for pid; do
		await 20 has_ended "$pid" || kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
}

# servers_done: ends all that start() began.
servers_done() {
	for pid in $pids; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	for pid in $pids; do
		wait "$pid" 2>/dev/null || true
	done
	pids=
}

# --- Ports ---

# is_free PORT: nobody listens there.
is_free() {
	! awk -v port="$(printf '%04X' "$1")" '
		($4 == "0A" || FILENAME ~ /udp/) && $2 ~ ":" port "$" { found = 1 }
		END { exit !found }' /proc/net/tcp /proc/net/tcp6 /proc/net/udp \
		/proc/net/udp6 2>/dev/null
}

listens() {
	! is_free "$1"
}

# free_port: sets $port, each time to another one, below the ephemeral ones.
port=$((20000 + $$ % 10000))
free_port() {
	port=$((port + 1))
	while ! is_free "$port"; do
		port=$((port + 1))
	done
}

# --- Configurations ---

# shipped FILE KEY=VALUE...: prints that file of contrib/stores/ with other
# values; fails if it has no such key.
shipped() {
	file=$src/contrib/stores/$1
	shift
	awk '
	BEGIN {
		for (i = 2; i < ARGC; i++) {
			at = index(ARGV[i], "=")
			value[substr(ARGV[i], 1, at - 1)] = substr(ARGV[i], at + 1)
			ARGV[i] = ""
		}
	}
	match($0, /^[ \t]*(- )?[A-Za-z_-]+( =|:)? /) {
		head = key = substr($0, 1, RLENGTH)
		sub(/^[ \t]*(- )?/, "", key)
		sub(/( =|:)? $/, "", key)
		if (key in value) {
			seen[key]
			print head value[key]
			next
		}
	}
	{ print }
	END {
		for (key in value)
			if (!(key in seen)) {
				print FILENAME ": no " key | "cat >&2"
				bad = 1
			}
		exit bad
	}' "$file" "$@"
}

# --- collectd ---

# types_db: collectd's own.
types_db() {
	for db in /usr/share/collectd/types.db \
		/opt/collectd/share/collectd/types.db; do
		[ ! -f "$db" ] || {
			echo "$db"
			return
		}
	done
}

# configure_collectd NAME HOSTNAME INTERVAL: writes $work/NAME/collectd.conf;
# plugins are added from standard input.
configure_collectd() {
	dir=$work/$1
	mkdir -p "$dir"
	{
		cat <<END
Hostname "$2"
FQDNLookup false
BaseDir "$dir"
PIDFile "$dir/collectd.pid"
Interval $3
TypesDB "$(types_db)"
PluginDir "$("$COLLECTD" -h | sed -n 's/^ *Plugin directory  *//p')"
LoadPlugin logfile
<Plugin logfile>
	LogLevel info
	File "$dir/log"
</Plugin>
END
		cat
	} >"$dir/collectd.conf"
}

# load_proctally RULES: the lines that load the plugin of this build.
load_proctally() {
	# collectd takes regular files for plugins only.
	mkdir -p "$work/plugins"
	[ -e "$work/plugins/proctally.so" ] ||
		cp "$build/.libs/proctally.so" "$work/plugins/proctally.so"
	cat <<END
PluginDir "$work/plugins"
LoadPlugin proctally
<Plugin proctally>
	Rules "$1"
</Plugin>
END
}

# start_collectd NAME [COMMAND...]: by its configuration; it runs until
# stop $daemon.
start_collectd() {
	name=$1
	shift
	start "$name" service "$@" "$COLLECTD" -f \
		-C "$work/$name/collectd.conf"
}

# --- Graphite ---

# start_carbon RETENTIONS: sets $carbon_port, where it takes lines, and $whisper,
# its directory.
start_carbon() {
	find_program carbon-cache || return 1
	dir=$work/carbon whisper=$work/carbon/whisper
	mkdir -p "$dir/conf" "$dir/log" "$dir/run" "$whisper"
	free_port
	carbon_query_port=$port
	free_port
	carbon_port=$port
	shipped graphite/carbon.conf "STORAGE_DIR=$dir" \
		"LOCAL_DATA_DIR=$whisper" "CONF_DIR=$dir/conf" \
		"LOG_DIR=$dir/log" "PID_DIR=$dir/run" USER= \
		"LINE_RECEIVER_PORT=$carbon_port" PICKLE_RECEIVER_PORT=0 \
		"CACHE_QUERY_PORT=$carbon_query_port" \
		>"$dir/conf/carbon.conf" || return 1
	shipped graphite/storage-schemas.conf "retentions=$1" \
		>"$dir/conf/storage-schemas.conf" || return 1
	shipped graphite/storage-aggregation.conf \
		>"$dir/conf/storage-aggregation.conf" || return 1
	start carbon service "$program" --config="$dir/conf/carbon.conf" \
		--nodaemon start
	await 60 listens "$carbon_port"
}

# start_graphite_web: on the files of carbon; sets $graphite_url. What Debian
# installs is a WSGI application without a server.
start_graphite_web() {
	dir=$work/graphite
	mkdir -p "$dir/log"
	free_port
	graphite_url=http://127.0.0.1:$port
	cat >"$dir/proctally_settings.py" <<END
SECRET_KEY = "of one run"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
LOG_DIR = "$dir/log"
LOG_ROTATION = False
STORAGE_DIR = "$dir"
INDEX_FILE = "$dir/index"
STANDARD_DIRS = ["$whisper"]
FIND_TIMEOUT = FETCH_TIMEOUT = 120
CARBONLINK_HOSTS = ["127.0.0.1:$carbon_query_port"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3",
    "NAME": "$dir/db"}}
END
	cat >"$dir/serve.py" <<END
import os, socketserver, sys
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

sys.path.insert(0, "$dir")
os.environ["GRAPHITE_SETTINGS_MODULE"] = "proctally_settings"
os.environ["DJANGO_SETTINGS_MODULE"] = "graphite.settings"
from graphite.wsgi import application


class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64

    def server_bind(self):  # without a look at DNS
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address
        self.setup_environ()


server = Server(("127.0.0.1", $port), WSGIRequestHandler)
server.set_app(application)
server.serve_forever()
END
	python=/usr/bin/python3
	[ -x "$python" ] || python=python3
	start graphite-web service "$python" "$dir/serve.py"
	await 60 curl -sSf -m 10 "$graphite_url/render?format=json"
}

# graphite_render FORMAT TARGET [PARAMETER=VALUE...]
graphite_render() {
	format=$1 target=$2
	shift 2
	for parameter; do
		set -- "$@" --data-urlencode "$parameter"
		shift
	done
	curl -sS -m 120 -G "$graphite_url/render" -d "format=$format" \
		--data-urlencode "target=$target" "$@"
}

# --- InfluxDB ---

# start_influxd MODE: split or join, which is how it keeps what the network
# plugin sends; sets $influx_url, and $influx_port and $influx_udp_port of the
# listeners. The databases are collectd and collectd_udp.
start_influxd() {
	find_program influxd || return 1
	dir=$work/influxdb-$1
	mkdir -p "$dir"
	free_port
	rpc=$port
	free_port
	influx_port=$port
	free_port
	influx_udp_port=$port
	free_port
	influx_url=http://127.0.0.1:$port
	{
		cat <<END
reporting-disabled = true
bind-address = "127.0.0.1:$rpc"
[meta]
  dir = "$dir/meta"
[data]
  dir = "$dir/data"
  wal-dir = "$dir/wal"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:$port"
END
		shipped influxdb/influxdb.conf \
			"bind-address=\"127.0.0.1:$influx_port\"" \
			"typesdb=\"$(types_db)\"" \
			"parse-multivalue-plugin=\"$1\"" &&
			shipped influxdb/influxdb-udp.conf \
				"bind-address=\"127.0.0.1:$influx_udp_port\""
	} >"$dir/influxdb.conf" || return 1
	start "influxdb-$1" service "$program" -config "$dir/influxdb.conf"
	await 60 curl -sSf -m 10 "$influx_url/ping"
}

# influx_query DATABASE QUERY [CURL OPTION...]: as CSV, times in nanoseconds.
influx_query() {
	database=$1 query=$2
	shift 2
	curl -sS -m 120 -G -H 'Accept: application/csv' "$@" \
		"$influx_url/query" -d "db=$database" --data-urlencode "q=$query"
}

# --- Prometheus ---

# start_prometheus SECONDS PORT...: scrapes what collectds serve at those ports;
# sets $prometheus_url.
start_prometheus() {
	find_program prometheus || return 1
	dir=$work/prometheus
	mkdir -p "$dir"
	every=$1
	shift
	targets=
	for port; do
		targets="$targets, \"127.0.0.1:$port\""
	done
	shipped prometheus/prometheus.yml "scrape_interval=${every}s" \
		"targets=[${targets#, }]" >"$dir/prometheus.yml" || return 1
	free_port
	prometheus_url=http://127.0.0.1:$port
	start prometheus service "$program" \
		--config.file="$dir/prometheus.yml" \
		--storage.tsdb.path="$dir/data" \
		--web.listen-address="127.0.0.1:$port"
	await 60 curl -sSf -m 10 "$prometheus_url/-/ready"
}

# prometheus_query QUERY: as JSON.
prometheus_query() {
	curl -sS -m 120 -G "$prometheus_url/api/v1/query" \
		--data-urlencode "query=$1"
}
