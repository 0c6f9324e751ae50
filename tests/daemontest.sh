# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Not a test: what scripts read that run the plugin in a real collectd, whose
# values they take from its CSV files. Each daemon has its own configuration and
# data below one temporary directory, $work; no installed one is looked at or
# touched. Processes of a test end when the write end of a pipe is closed, so
# that none is left whatever happens to the script. One without collectd, or
# without the plugin, ends here.
#
# The caller defines rules(), which prints its rule file; processes have names
# with $id in them.
# shellcheck disable=SC2034,SC2154

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/servers.sh
. "$src/tests/servers.sh"
plugin=$build/.libs/proctally.so

have() {
	command -v "$1" >/dev/null
}

if ! have "$COLLECTD" || [ ! -f "$plugin" ]; then
	if [ ! -f "$plugin" ] && [ "${SANITIZERS:-no}" != no ]; then
		echo '1..0 # SKIP no plugin in this build'
	else
		skip 'collectd and the plugin are there' 'no collectd, or no plugin'
		plan
	fi
	exit 0
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-daemon.XXXXXX")
# shellcheck disable=SC2317,SC2329
finish() {
	trap - EXIT HUP INT TERM
	for pid in $pids; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	exec 7>&- 8>&-
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# --- Processes, by names of ours ---

id=$$
mkfifo "$work/hold"
exec 8<>"$work/hold"
sh=$(command -v sh)

# name_processes NAME...: what they run is the shell.
name_processes() {
	for name; do
		ln -s "$sh" "$work/$name$id"
	done
}

# hold NAME N [ARGUMENT]: N processes that wait until fd 8 is closed.
hold() {
	count=$2
	while [ "$count" -gt 0 ]; do
		"$work/$1$id" -c 'read -r x' "${3:-$1}" <"$work/hold" \
			>/dev/null 2>&1 7>&- 8>&- &
		pids="$pids $!"
		count=$((count - 1))
	done
}

# --- Daemons ---

# collectd looks for plugins in one directory after another.
mkdir "$work/plugins"
cp "$plugin" "$work/plugins/proctally.so"
[ ! -f "$build/tests/.libs/selectuser.so" ] ||
	cp "$build/tests/.libs/selectuser.so" "$work/plugins/"
system_plugins=$("$COLLECTD" -h | sed -n 's/^ *Plugin directory  *//p')
types_db=
for file in /usr/share/collectd/types.db /opt/collectd/share/collectd/types.db; do
	[ ! -f "$file" ] || types_db=${types_db:-$file}
done

# prepare NAME: a configuration; what is read from standard input is added.
# With $types another types.db than the system's, with $extra other plugins.
types='' extra=''
prepare() {
	dir=$work/$1
	mkdir -p "$dir/data"
	rules >"$dir/rules.yaml"
	{
		cat <<END
Hostname "localhost"
FQDNLookup false
BaseDir "$dir"
PIDFile "$dir/collectd.pid"
Interval 1
TypesDB "${types:-$types_db}"
PluginDir "$system_plugins"
LoadPlugin logfile
<Plugin logfile>
	LogLevel info
	File "$dir/log"
</Plugin>
LoadPlugin csv
<Plugin csv>
	DataDir "$dir/data"
	StoreRates false
</Plugin>
PluginDir "$work/plugins"
$extra
LoadPlugin proctally
END
		cat
	} >"$dir/collectd.conf"
}

# block LINES: the plugin's own.
block() {
	printf '<Plugin proctally>\n%s\n</Plugin>\n' "$1"
}

# rules_of NAME: the line with the rule file of that daemon.
rules_of() {
	echo "Rules \"$work/$1/rules.yaml\""
}

# run NAME [COMMAND...]: starts it; its pid is in $daemon.
run() {
	dir=$work/$1
	shift
	"$@" "$COLLECTD" -f -C "$dir/collectd.conf" >"$dir/output" 2>&1 \
		</dev/null 7>&- 8>&- &
	daemon=$!
	pids="$pids $daemon"
}

ended() {
	has_ended "$daemon"
}

runs() {
	! ended || echo 'collectd has ended'
}

# stop SECONDS: $stopped is what there is to say if it does not end in that
# time, or not well.
stop() {
	stopped='' status=0
	kill -TERM "$daemon" 2>/dev/null || true
	if ! await "$1" ended; then
		stopped="
collectd did not end within $1 s"
		kill -KILL "$daemon" 2>/dev/null || true
	fi
	wait "$daemon" 2>/dev/null || status=$?
	[ "$status" = 0 ] || stopped="$stopped
collectd ended with status $status"
}

# rows GROUP FILE: all rows of a type in the order of time.
rows() {
	cat "$dir/data/localhost/proctally-$1/$2"-2[0-9][0-9][0-9]-[0-9]* \
		2>/dev/null | grep -v '^epoch' || true
}

# value GROUP FILE FIELD: of the newest row, as an integer.
value() {
	rows "$1" "$2" | tail -n 1 | awk -F, -v field="$3" '
		NF > field { printf "%.0f", $(field + 1) }'
}

is() {
	[ "$(value "$1" "$2" "$3")" = "$4" ]
}

# want GROUP FILE FIELD VALUE: a finding if it does not come.
want() {
	await 15 is "$@" ||
		echo "$1/$2 field $3: want $4, got $(value "$1" "$2" "$3")"
}

logged() {
	grep -qE "$1" "$dir/log"
}

say_log() {
	await 10 logged "$1" || {
		echo "not in the log: $1"
		tail -n 20 "$dir/log"
	}
}

# log_times N PATTERN
log_times() {
	times=$(grep -cE "$2" "$dir/log" || true)
	[ "$times" = "$1" ] || echo "$times times in the log: $2"
}

n_rows() {
	rows "$1" "$2" | wc -l
}

more_rows_than() {
	[ "$(n_rows "$2" "$3")" -gt "$1" ]
}

# goes_on GROUP FILE: two more rows come.
goes_on() {
	await 10 more_rows_than "$(($(n_rows "$1" "$2") + 1))" "$1" "$2" ||
		echo "no new rows of $1/$2"
}
