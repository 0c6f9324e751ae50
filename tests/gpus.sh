#!/bin/sh
# SPDX-License-Identifier: MIT
#
# GPUs from end to end: the command, and a real collectd, on roots of /proc and
# /sys with an AMD GPU and two of NVIDIA, whose management library is a fake
# that any program can load.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/servers.sh
. "$src/tests/servers.sh"
fake=$build/tests/.libs/fakenvmlfile.so
plugin=$build/.libs/proctally.so

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-gpu.XXXXXX")
# shellcheck disable=SC2317,SC2329
finish() {
	trap - EXIT HUP INT TERM
	servers_done
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# --- The roots ---

# process PID COMM
process() {
	mkdir -p "$root/proc/$1/fd" "$root/proc/$1/fdinfo"
	printf '%s (%s) S 1 0 0 0 0 0 0 0 0 0 5 5 0 0 0 0 1 0 500 4096 1' \
		"$1" "$2" >"$root/proc/$1/stat"
	printf ' 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n' \
		>>"$root/proc/$1/stat"
}

# client PID MS: what it has had of the AMD GPU. In one write, of one length.
client() {
	printf 'drm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t%s\ndrm-engine-gfx:\t%020d ns\ndrm-resident-vram:\t512 KiB\n' \
		0000:03:00.0 "${2}000000" >"$work/text"
	dd if="$work/text" of="$root/proc/$1/fdinfo/3" bs=4096 conv=notrunc \
		2>/dev/null
	ln -sf /dev/null "$root/proc/$1/fd/3"
}

# roots NAME: in $root.
roots() {
	root=$work/$1
	mkdir -p "$root/proc/driver/nvidia" "$root/sys/class/drm/renderD128" \
		"$root/sys/devices/0000:03:00.0" "$root/sys/bus/pci/drivers/nvidia"
	echo 1:3 >"$root/sys/class/drm/renderD128/dev"
	ln -s ../../../devices/0000:03:00.0 \
		"$root/sys/class/drm/renderD128/device"
	ln -s ../../bus/pci/drivers/amdgpu \
		"$root/sys/devices/0000:03:00.0/driver"
	echo 0x030000 >"$root/sys/devices/0000:03:00.0/class"
	echo 595 >"$root/proc/driver/nvidia/version"
	for bus in 0000:0b:00.0 0000:0c:00.0; do
		mkdir -p "$root/sys/bus/pci/devices/$bus"
		echo 0x10de >"$root/sys/bus/pci/devices/$bus/vendor"
		ln -s "../../devices/$bus" \
			"$root/sys/bus/pci/drivers/nvidia/$bus"
	done
	process 100 game
	process 7000 train
	process 7001 infer
	client 100 5000
	cat >"$root/rules.yaml" <<END
defaults: {collect: {pss: false}}
rules:
- {name: game, comm: game}
- {name: train, comm: train}
- {name: infer, comm: infer}
END
	cat >"$root/nvml" <<END
device 0000:0b:00.0 ${2-}
process 7000 1073741824
sample 7000 40 0 10
device 0000:0c:00.0
process 7001 2147483648
sample 7001 70 0 0
END
}

mkdir "$work/lib"
cp "$fake" "$work/lib/libnvidia-ml.so.1"

# proctally CALL [ARGUMENT]...: with these roots and this library.
proctally() {
	call=$1
	shift
	exec env LD_LIBRARY_PATH="$work/lib" FAKE_NVML="$root/nvml" \
		"$command" "$call" --rules "$root/rules.yaml" \
		--proc "$root/proc" --sys "$root/sys" "$@"
}

# begin: values into $root/out, once or twice a second.
begin() {
	(proctally dump --interval 0.7) >"$root/out" 2>"$root/err" \
		</dev/null &
	dump=$!
	pids="$pids $dump"
}

# last IDENTIFIER: the newest value of it, to three digits.
last() {
	sed -n "s|^PUTVAL \"[^/]*/proctally-$1\" .*:||p" "$root/out" |
		tail -n 1 | awk '{
			v = sprintf("%.3f", $1)
			sub(/\.?0+$/, "", v)
			print v
		}'
}

is() {
	[ "$(last "$1")" = "$2" ]
}

# want IDENTIFIER VALUE: a finding if that does not come.
want() {
	await 60 is "$@" || echo "$1: want $2, got $(last "$1")"
}

# Nobody has waited for one that ended, so it is a zombie at least.
ended() {
	[ ! -d "/proc/$1" ] || grep -qs '^State:.Z' "/proc/$1/status"
}

# stop PID: a finding if it does not end. Quiet hosts see it within 2 s.
stop() {
	kill -TERM "$1" 2>/dev/null || true
	await 20 ended "$1" || {
		kill -KILL "$1" 2>/dev/null || true
		echo "it does not end"
	}
	wait "$1" 2>/dev/null || true
}

amd=gpu-0000_03_00.0 one=gpu-0000_0b_00.0 two=gpu-0000_0c_00.0

# --- All is well ---

roots well
begin
found=$(
	want "game/total_time_in_ms-$amd-render" 0
	want "game/memory-$amd-device" 524288
	want game/count-gpu_clients 1
	want "game/percent-$amd-render" 0
	want "train/memory-$one-device" 1073741824
	want "train/percent-$one-sm" 40
	want "train/percent-$one-decode" 10
	want "train/percent-$one-encode" 0
	want "infer/memory-$two-device" 2147483648
	want "infer/percent-$two-sm" 70
	want _self/gauge-gpu_drm 1
	want _self/gauge-gpu_nvml 1
	want _self/gauge-gpu_kfd 0
	want _self/count-gpu_clients 3
	client 100 5250
	want "game/total_time_in_ms-$amd-render" 250
	client 100 6250
	want "game/total_time_in_ms-$amd-render" 1250
)
point 'dump tells of GPUs of two vendors what their processes used' \
	"$found$(stop "$dump")$(cat "$root/err")"
# Of 40 % of the time there are 4 ms in 10 ms, whatever the interval was.
point 'busy time of NVIDIA grows by the share of the interval' "$(
	awk -v id="/proctally-train/total_time_in_ms-$one-sm\"" '
	index($2, id) {
		split($NF, v, ":")
		if (n++)
			ratio[n] = (v[2] - ms) / (v[1] - at) / 1000
		at = v[1]
		ms = v[2]
	}
	END {
		for (i in ratio)
			good += ratio[i] > 0.35 && ratio[i] < 0.45
		if (n < 3 || good < 1)
			print n + 0 " values, " good + 0 " of them by 40 %"
	}' "$root/out")"

# The headline of a column, and what is below it for a group.
# below HEAD GROUP FILE
below() {
	awk -v head="$1" -v group="$2" '
	$0 ~ head { at = index($0, head) + length(head) }
	$1 == group && at { s = substr($0, 1, at - 1); sub(/.* /, "", s); v = s }
	END { print v }' "$3"
}

(proctally match --interval 2) >"$root/match" 2>"$root/err" </dev/null
point 'match has a column for the busiest engine' "$(
	[ "$(below GPU% train "$root/match")" = 40.0 ] ||
		cat "$root/match" "$root/err")"
(proctally top --count 2 --interval 2) >"$root/top" 2>"$root/err" </dev/null
point 'top has a column for the busiest engine' "$(
	[ "$(below GPU% infer "$root/top")" = 70.0 ] ||
		cat "$root/top" "$root/err")"

# --- Each call hangs ---

# hangs CALL KIND [PARTS]: begins; with "all" no device can be asked then, and
# with "unlisted" they are not told of by /sys.
hangs() {
	roots "$1" "${3-}"
	case $2 in *unlisted*) rm -r "$root/sys/bus" ;; esac
	echo "hang $1 0" >>"$root/nvml"
	begin
	echo "$dump" >"$root/pid"
	echo "$2" >"$root/kind"
}

# hung CALL: how it went.
hung() {
	root=$work/$1
	want _self/gauge-gpu_nvml 3
	want _self/total_operations-gpu_stalls 1
	case $(cat "$root/kind") in
	*all*) ;;
	*) want "infer/memory-$two-device" 2147483648 ;;
	esac
	client 100 5500
	want "game/total_time_in_ms-$amd-render" 500
	[ "$(grep -c 'gpu: nvml.*does not answer' "$root/err")" = 1 ] || {
		echo 'not told once:'
		cat "$root/err"
	}
	stop "$(cat "$root/pid")"
}

hangs nvmlInit_v2 all
hangs nvmlDeviceGetCount_v2 all-unlisted
hangs nvmlDeviceGetHandleByIndex_v2 unlisted
hangs nvmlDeviceGetPciInfo_v3 unlisted
hangs nvmlDeviceGetHandleByPciBusId_v2 one
hangs nvmlDeviceGetMigMode one
hangs nvmlDeviceGetMaxMigDeviceCount one 1
hangs nvmlDeviceGetMigDeviceHandleByIndex one 1
hangs nvmlDeviceGetComputeRunningProcesses one
hangs nvmlDeviceGetGraphicsRunningProcesses one
hangs nvmlDeviceGetMPSComputeRunningProcesses one
hangs nvmlDeviceGetProcessUtilization one
for path in "$work"/nvml*; do
	point "${path##*/} may hang: the others go on, and it ends when told to" \
		"$(hung "${path##*/}")"
done

# --- In collectd ---

if ! command -v "$COLLECTD" >/dev/null || [ ! -f "$plugin" ]; then
	skip 'collectd has the values, and ends' 'no collectd, or no plugin'
	plan
	exit 0
fi

types_db=
for file in /usr/share/collectd/types.db /opt/collectd/share/collectd/types.db; do
	[ ! -f "$file" ] || types_db=${types_db:-$file}
done

# daemon NAME: its pid is in $daemon.
daemon() {
	cat >"$root/collectd.conf" <<END
Hostname "localhost"
FQDNLookup false
BaseDir "$root"
PIDFile "$root/collectd.pid"
Interval 1
TypesDB "$types_db"
PluginDir "$("$COLLECTD" -h | sed -n 's/^ *Plugin directory  *//p')"
LoadPlugin logfile
<Plugin logfile>
	LogLevel info
	File "$root/log"
</Plugin>
LoadPlugin csv
<Plugin csv>
	DataDir "$root/data"
	StoreRates false
</Plugin>
PluginDir "$work/plugins"
LoadPlugin proctally
<Plugin proctally>
	Rules "$root/rules.yaml"
	ProcPath "$root/proc"
	SysPath "$root/sys"
</Plugin>
END
	LD_LIBRARY_PATH="$work/lib" FAKE_NVML="$root/nvml" \
		"$COLLECTD" -f -C "$root/collectd.conf" >"$root/output" 2>&1 \
		</dev/null &
	daemon=$!
	pids="$pids $daemon"
}

# stored IDENTIFIER VALUE: a finding if that does not come.
stored() {
	await 60 newest_is "$@" || {
		echo "$1: want $2, got $(newest "$1")"
		tail -n 5 "$root/log" "$root/output"
	}
}

newest() {
	cat "$root/data/localhost/proctally-$1"-2[0-9][0-9][0-9]-[0-9]* \
		2>/dev/null | tail -n 1 | awk -F, '{ printf "%.0f", $2 }'
}

newest_is() {
	[ "$(newest "$1")" = "$2" ]
}

mkdir "$work/plugins"
cp "$plugin" "$work/plugins/"
roots collectd
daemon
found=$(
	stored "game/memory-$amd-device" 524288
	client 100 5250
	stored "game/total_time_in_ms-$amd-render" 250
	stored "train/percent-$one-sm" 40
	stored "infer/memory-$two-device" 2147483648
	stored _self/gauge-gpu_nvml 1
)
point 'collectd has the values, and ends' "$found$(stop "$daemon")"

roots stuck
echo 'hang nvmlDeviceGetComputeRunningProcesses 0' >>"$root/nvml"
daemon
found=$(
	stored _self/gauge-gpu_nvml 3
	stored "infer/memory-$two-device" 2147483648
	client 100 5500
	stored "game/total_time_in_ms-$amd-render" 500
	grep -q 'gpu: nvml: 0000:0b:00.0 does not answer' "$root/log" ||
		echo 'it is not told'
)
point 'a device that is stuck is told by its name, and collectd ends all the same' \
	"$found$(stop "$daemon")"

plan
