#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Files without a server: collectd's csv plugin, beside what collectd itself
# says of its last values, and RRD files by its rrdtool plugin, read by rrdtool.
# shellcheck source=tests/storetest.sh
. "${top_srcdir:-.}/tests/storetest.sh"

need 'RRD and CSV files' rrdtool python3
if ! has_plugin rrdtool; then
	skip 'RRD and CSV files' 'no rrdtool plugin, or not all that it links'
	plan
	exit 0
fi

# feed NAME HOST RULES INTERVAL KEY=VALUE...: the latter of the rrdtool plugin.
feed() {
	feed=$1 host=$2 rules=$3 interval=$4
	shift 4
	{
		csv "$work/$feed/csv"
		shipped rrd/collectd.conf "DataDir=\"$work/$feed/rrd\"" "$@"
		cat <<END
LoadPlugin unixsock
<Plugin unixsock>
	SocketFile "$work/$feed/socket"
</Plugin>
END
		load_proctally "$rules"
	} | configure_collectd "$feed" "$host" "$interval"
	start_collectd "$feed"
}

# say NAME COMMAND...: what collectd answers at its socket; each command is one
# line, and the first line of an answer is the number of those that follow.
say() {
	socket=$work/$1/socket
	shift
	printf '%s\n' "$@" | python3 -c '
import socket, sys

s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect(sys.argv[1])
f = s.makefile("rw", encoding="ascii")
for command in sys.stdin:
    f.write(command)
    f.flush()
    status = f.readline().split(" ", 1)
    for i in range(max(0, int(status[0]))):
        print(command.split(" ", 1)[1].strip() if " " in command else "",
              f.readline().strip(), sep="\t")
' "$socket"
}

# rrd_names: rows of the reference by file and data source. Times are whole
# seconds there.
rrd_names() {
	awk -F '\t' '{
		printf "proctally-%s/%s%s.rrd|%s\t%.0f000\t%s\n", $1, $2,
			($3 == "" ? "" : "-" $3), $4, int(($5 + 500) / 1000), $6
	}'
}

# rrd_rows DIR: the last value that each file was given, as it was given.
rrd_rows() {
	(cd "$1" && find . -path './proctally-*' -name '*.rrd') |
		sed 's|^\./||' >"$work/files"
	(cd "$1" && sed 's|^|lastupdate |' "$work/files" | rrdtool -) | awk '
	NR == FNR { file[NR] = $0; next }
	FNR == 1 { i = 1 }
	/^OK/ { i++; next }
	/^ERROR/ { print file[i++] ": " $0; next }
	/^[0-9]+:/ {
		for (j = 2; j <= NF; j++)
			printf "%s|%s\t%.0f000\t%s\n", file[i], ds[j - 1], $1, $j
		next
	}
	NF { split($0, ds, " ") }' "$work/files" -
}

# rrd_rates FILE DS: its newest rows.
rrd_rates() {
	rrdtool fetch "$1" AVERAGE -r 1 -s -300 | awk -v want="$2" '
	/^ / { for (i = 1; i <= NF; i++) if ($i == want) column = i + 1 }
	/^[0-9]+:/ && tolower($column) !~ /nan/ {
		printf "%s\t%.0f000\t%s\n", want, $1, $column
	}'
}

# --- Each value ---

hold 3
burn
rules >"$work/rules.yaml"
feed few db1.example.org "$work/rules.yaml" 1 \
	CacheTimeout=0 CacheFlush=0 WritesPerSecond=0
few=$daemon
await 60 ticks few 8 || tail -n 20 "$work/few/log"

# The last row of each is in what csv has written until later.
say few LISTVAL | cut -f2 | sed -n 's|^[0-9.]* [^/]*/\(proctally-.*\)|\1|p' \
	>"$work/listed"
sed 's|.*|GETVAL "db1.example.org/&"|' "$work/listed" >"$work/commands"
(
	IFS='
'
	set -f
	# shellcheck disable=SC2046
	say few $(cat "$work/commands")
) | tr -d '"' | sed -E 's|^[^/]*/||; s|=|\t|' |
	awk -F '\t' '{ print $1 "|" $2 "\t0\t" $3 }' >"$work/got"
# Not sooner, or collectd forgets the gauges of the group. A file that is written
# is locked.
kill "$burner"
stop "$few"
rrd_rows "$work/few/rrd/db1.example.org" >"$work/rrd"
file=$work/few/rrd/db1.example.org/proctally-burn/ps_cputime.rrd
rrd_rates "$file" user >"$work/rates"
reference "$work/few/csv/db1.example.org" >"$work/rows"
point 'all values that there are have been sent' "$(all_sent "$work/rows")"
point 'CSV has each by the documented name, with the value that collectd has' "$(
	rates <"$work/rows" | awk -F '\t' '{
		print "proctally-" $1 "/" $2 ($3 == "" ? "" : "-" $3) "|" $4 \
			"\t0\t" $6 "\t" ($8 == "DERIVE" ? 0.01 : 1e-6)
	}' >"$work/want"
	agree "$work/want" "$work/got" 0 | grep -v ': only')"
point 'RRD has each by the documented name, and the last of its values' "$(
	rrd_names <"$work/rows" >"$work/want"
	agree "$work/want" "$work/rrd" 0 | grep -v ': only')"
point 'its rates are what a counter grew by in each second' "$(
	awk -F '\t' '$1 == "burn" && $2 == "ps_cputime" && $3 == "" &&
		$4 == "user" {
			t = int(($5 + 500) / 1000)
			n[t]++
			value[t] = $6
		}
		END {
			# Of two in one second, on a slow host, RRD takes one.
			for (t in value)
				if (n[t] == 1 && n[t - 1] == 1)
					printf "user\t%s000\t%s\t1e-9\n", t,
						value[t] - value[t - 1]
		}' "$work/rows" >"$work/want"
	agree "$work/want" "$work/rates" 0 | grep -v 'nobody sent')"

# --- A thousand groups ---

crowd 1000
crowd_rules >"$work/crowd.yaml"
feed many db2 "$work/crowd.yaml" 10 CacheTimeout=0 CacheFlush=0 \
	WritesPerSecond=0 RRARows=20
many=$daemon
has_all() {
	reference "$work/many/csv/db2" >"$work/rows"
	rrd_names <"$work/rows" | sed 's/|.*//' | sort -u >"$work/names"
	[ "$(grep -c '^proctally-m-.*/ps_count.rrd' "$work/names")" -ge 1000 ] &&
		(cd "$work/many/rrd/db2" && find . -path './proctally-*' \
			-name '*.rrd') | sed 's|^\./||' | sort |
		cmp -s - "$work/names"
}
findings=$(
	await 300 has_all || {
		wc -l <"$work/names"
		find "$work/many/rrd/db2" -name '*.rrd' | wc -l
	})
stop "$many"
point 'of 1,000 groups every value arrives' "$findings$(
	rrd_rows "$work/many/rrd/db2" >"$work/got"
	reference "$work/many/csv/db2" | rrd_names >"$work/want"
	agree "$work/want" "$work/got" 0 | grep -v ': only')"

plan
