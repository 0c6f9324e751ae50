#!/bin/sh
# SPDX-License-Identifier: MIT
#
# contrib/plot: what it draws of files that are made up here, and of those that
# a collectd with the plugin writes. What stands in a picture is asked of
# rrdtool itself, which can tell the texts of a legend.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/servers.sh
. "$src/tests/servers.sh"

plot=$src/contrib/plot
find_program rrdtool || {
	skip 'contrib/plot' "$(missing rrdtool)"
	plan
	exit 0
}
rrdtool=$program

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-plot.XXXXXX")
# shellcheck disable=SC2317,SC2329
finish() {
	trap - EXIT HUP INT TERM
	servers_done
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# Says in $work/legend what rrdtool writes below each picture.
mkdir "$work/bin"
cat >"$work/bin/rrdtool" <<END
#!/bin/sh
if [ "\$1" = graph ] && [ "\$2" != /dev/null ]; then
	file=\${2##*/}
	shift 2
	"$rrdtool" graphv - "\$@" 2>/dev/null |
		grep -a '^legend\[' >"$work/legend.\$file"
	set -- graph "$work/out/\$file" "\$@"
fi
exec "$rrdtool" "\$@"
END
chmod 755 "$work/bin/rrdtool"
mkdir "$work/out"

# draw ARGUMENT...: its pictures in $work/out, $status and $work/err.
draw() {
	rm -f "$work"/out/* "$work"/legend.*
	status=0
	PATH=$work/bin:$PATH timeout 120 "$plot" --output "$work/out" "$@" \
		>"$work/said" 2>"$work/err" </dev/null || status=$?
}

# legend FILE: its lines, with single blanks.
legend() {
	sed 's/^legend\[[0-9]*\] = "//; s/"$//; s/\\l$//' "$work/legend.$1" |
		awk '!/^ *-?[0-9a-z.]+ [kMGmu ]?[%B] *$/ { printf "\n" }
			{ printf "%s ", $0 }
			END { print "" }' |
		tr -s ' ' | sed 's/^ //; s/ $//; /^$/d'
}

# has FILE LINE
has() {
	legend "$1" | grep -qxF -e "$2" || {
		echo "$1 has no \"$2\":"
		legend "$1"
	}
}

# pictures FILE...: findings unless these were said, and are pictures.
pictures() {
	for file; do
		echo "$work/out/$file"
	done | diff - "$work/said" || true
	for file; do
		[ "$(head -c 4 "$work/out/$file" | tail -c 3)" = PNG ] ||
			echo "$file is no picture"
	done
	[ "$status" = 0 ] || echo "status $status"
	cat "$work/err"
}

# --- Made up ---

# A minute of rows, two seconds apart.
now=$(($(date +%s) / 60 * 60))
from=$((now - 60))

# series HOST GROUP FILE KIND STEP [DS...]: counters that grow by STEP in a
# second, or gauges of that value.
series() {
	file=$work/$data/$1/proctally-$2/$3.rrd kind=$4 value=$5
	shift 5
	mkdir -p "${file%/*}"
	n_ds=$#
	for ds; do
		set -- "$@" "DS:$ds:$kind:10:U:U"
		shift
	done
	"$rrdtool" create "$file" --start $((from - 4)) --step 2 "$@" \
		RRA:AVERAGE:0.9:1:60 >/dev/null
	awk -v t=$((from - 2)) -v end="$now" -v step="$value" -v n="$n_ds" \
		-v counter="$([ "$kind" = GAUGE ] || echo 1)" 'BEGIN {
		for (; t <= end; t += 2) {
			v = counter ? (t - (end - 62)) * step : step
			row = t
			for (i = 0; i < n; i++)
				row = row ":" sprintf("%.0f", v)
			print row
		}
	}' | xargs "$rrdtool" update "$file"
}

# A blank and a colon are special to rrdtool.
data='data of: all'
series h _self count-processes GAUGE 90 value
series h _self ps_cputime-host DERIVE 500000 user syst
series h _self ps_cputime-groups DERIVE 350000 user syst
for group in 'a.b-c~1234567f' web db; do
	case $group in
	db) cpu=250000 rss=3145728 ;;
	web) cpu=75000 rss=5242880 ;;
	*) cpu=25000 rss=1048576 ;;
	esac
	series h "$group" ps_cputime DERIVE $cpu user syst
	series h "$group" ps_rss GAUGE $rss value
	series h "$group" memory-pss GAUGE $((rss / 2)) value
	series h "$group" disk_octets DERIVE $((rss / 1024)) read write
done
times="--start $from --end $now"

# shellcheck disable=SC2086
draw $times "$work/$data"
point 'four pictures of a host' "$(pictures cpu.png rss.png pss.png io.png)"
point 'groups are in the order of what they use, in the right units' "$(
	has cpu.png 'db 50.0 % 50.0 %'
	has cpu.png 'web 15.0 % 15.0 %'
	has cpu.png 'a.b-c~1234567f 5.0 % 5.0 %'
	has rss.png 'web 5.0 MB 5.0 MB'
	has pss.png 'db 1.5 MB 1.5 MB'
	has io.png 'db 3.0 kB 3.0 kB 3.0 kB 3.0 kB'
	legend cpu.png | grep '%' | cut -d' ' -f1 | tr '\n' ' ' >"$work/order"
	grep -qx 'db web a.b-c~1234567f (in (host) ' "$work/order" ||
		cat "$work/order"
	legend rss.png | sed -n 2p | grep -q '^web' || legend rss.png)"
point 'the residual is beside, and the host above all' "$(
	has cpu.png '(in no group) 30.0 % 30.0 %'
	has cpu.png '(host) 100.0 % 100.0 %')"

# shellcheck disable=SC2086
draw $times --leave-out 'w.*' "$work/$data"
point 'groups can be left out' "$(
	pictures cpu.png rss.png pss.png io.png
	has cpu.png 'db 50.0 % 50.0 %'
	! legend cpu.png | grep -E '^web|host')"

# shellcheck disable=SC2086
draw $times --group db "$work/$data"
point 'one group alone' "$(
	pictures db-cpu.png db-memory.png db-io.png
	has db-cpu.png 'user 25.0 % 25.0 %'
	has db-cpu.png 'system 25.0 % 25.0 %'
	has db-memory.png 'rss 3.0 MB 3.0 MB'
	has db-memory.png 'pss 1.5 MB 1.5 MB'
	has db-io.png 'read from disk 3.0 kB 3.0 kB')"

for i in $(seq 18); do
	series h "small-$i" ps_cputime DERIVE 1000 user syst
done
# shellcheck disable=SC2086
draw $times --groups 3 "$work/$data"
point 'what is left of many groups is summed up' "$(
	pictures cpu.png rss.png pss.png io.png
	has cpu.png '18 more 3.6 % 3.6 %'
	! legend cpu.png | grep small)"
# shellcheck disable=SC2086
draw $times --groups=20 "$work/$data"
point 'one that is left has its name' "$(
	has cpu.png 'small-9 0.2 % 0.2 %'
	! legend cpu.png | grep more)"

# --- Mistakes ---

# refuses STATUS TEXT ARGUMENT...
refuses() {
	want=$1 text=$2
	shift 2
	draw "$@"
	[ "$status" = "$want" ] || echo "$*: status $status"
	grep -q -e "$text" "$work/err" || {
		echo "$*: does not say \"$text\""
		cat "$work/err"
	}
	[ ! -s "$work/said" ] || cat "$work/said"
}

point 'mistakes are told' "$(
	refuses 2 'which directory'
	refuses 2 'no option --colour' --colour=red "$work/$data"
	refuses 2 '--start needs a value' "$work/$data" --start
	refuses 2 'not a number' --groups 0 "$work/$data"
	refuses 2 'one directory only' "$work/$data" "$work"
	refuses 1 'is no directory' "$work/none"
	refuses 1 'no values of proctally' "$work/bin"
	refuses 1 'no values of other' --host other "$work/$data"
	refuses 1 'has no group nil' --group nil "$work/$data"
	refuses 1 'rrdtool: ' --start nonsense "$work/$data"
	refuses 1 'no group of h is left' --leave-out '.*' "$work/$data"
	refuses 1 'cannot write' --output "$work/none" "$work/$data"
	series second web ps_cputime DERIVE 1000 user syst
	refuses 2 'must be one of: h second' "$work/$data")"
point '--help tells all options' "$(
	"$plot" --help >"$work/help" || echo "status $?"
	sed -n 's/^	\(--[a-z-]*\)) .*/\1/p' "$plot" >"$work/options"
	[ -s "$work/options" ] || echo 'no options'
	while read -r option; do
		grep -q -e "^  $option " "$work/help" || echo "not $option"
	done <"$work/options")"

# --- What collectd writes ---

recorded() {
	"$rrdtool" lastupdate \
		"$work/rrd/here/proctally-rest/ps_cputime.rrd" >"$work/last" &&
		start=$(stat -c %Y "$work/rules.yaml") &&
		[ "$(sed -n '$s/:.*//p' "$work/last")" -gt $((start + 8)) ]
}

if [ ! -f "$build/.libs/proctally.so" ] || ! find_program "$COLLECTD"; then
	[ "${SANITIZERS:-no}" != no ] ||
		skip 'of a collectd' 'no collectd, or no plugin'
	plan
	exit 0
fi
printf 'rules: [{name: kernel, kernel: true}, {name: rest, any: true}]\n' \
	>"$work/rules.yaml"
configure_collectd collectd here 1 <<END
$(shipped rrd/collectd.conf "DataDir=\"$work/rrd\"" CacheTimeout=0 \
	WritesPerSecond=1000)
$(load_proctally "$work/rules.yaml")
END
start_collectd collectd
point 'pictures of what a collectd recorded' "$(
	await 60 recorded || cat "$work/collectd/log"
	draw --start end-1min "$work/rrd"
	pictures cpu.png rss.png pss.png io.png
	for file in cpu.png rss.png io.png; do
		legend "$file" | grep -qE '^rest [0-9]' || legend "$file"
	done
	has_residual='^\(host\) [0-9]+\.[0-9] %'
	legend cpu.png | grep -qE "$has_residual" || legend cpu.png)"
plan
