#!/bin/sh
# SPDX-License-Identifier: MIT
#
# contrib/check-install with the collectd that is here, and with one thing at a
# time made wrong: the file, the daemon, types.db, the unit, /proc.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
plugin=$build/.libs/proctally.so
PATH=$PATH:/usr/sbin:/opt/collectd/sbin
: "${COLLECTD:=collectd}"

if ! command -v "$COLLECTD" >/dev/null || [ ! -f "$plugin" ]; then
	if [ "${CI:-}" = true ] && [ "${SANITIZERS:-no}" = no ]; then
		point 'collectd and the plugin are there' 'they are not, and CI=true'
		plan
	else
		echo '1..0 # SKIP no collectd, or no plugin'
	fi
	exit 0
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-check.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# As an installed collectd would have it; that of the host is not looked at.
mkdir "$work/etc" "$work/etc/more" "$work/units"
cat >"$work/etc/collectd.conf" <<END
LoadPlugin csv
<Include "$work/etc/more">
	Filter "*.conf"
</Include>
END
cp "$src/config/proctally.conf" "$work/etc/more/"
cat >"$work/units/collectd.service" <<'END'
[Unit]
Description=What stands here is no setting of the service
PrivateUsers=yes
[Service]
ExecStart=/usr/sbin/collectd
[Install]
WantedBy=multi-user.target
END

# check ARGUMENT...: its output is in out, its status in $status.
check() {
	status=0
	timeout -k 5 100 "$src/contrib/check-install" \
		--collectd "$(command -v "$COLLECTD")" \
		--config "$work/etc/collectd.conf" \
		--unit-path "$work/units" "$@" >"$work/out" 2>&1 </dev/null ||
		status=$?
}

# ends STATUS: findings if the last run of it did not.
ends() {
	[ "$status" = "$1" ] || {
		echo "want status $1, got $status"
		cat "$work/out"
	}
}

# says TEXT...: each of them must be in its output.
says() {
	for text; do
		grep -qF -e "$text" "$work/out" || {
			echo "not said: $text"
			cat "$work/out"
		}
	done
}

lacks() {
	! grep -F -e "$1" "$work/out" || echo '(unwanted)'
}

# --- As it should be ---

point 'where all is well it says so and ends with 0' "$(
	check "$plugin"
	ends 0
	says "ok     $plugin: proctally " 'ok     glibc ' \
		'ok     the configuration loads it' 'ok     types of ' \
		"ok     unit $work/units/collectd.service" \
		'a private collectd loaded it and took a reading' \
		'result: it works and sees everything')"
point 'quiet, it says the result alone' "$(
	check --quiet "$plugin"
	ends 0
	[ "$(wc -l <"$work/out")" = 1 ] || cat "$work/out")"
point 'wrong options end with 2' "$(
	check --frobnicate "$plugin"
	ends 2
	check --unit
	ends 2)"

# --- Types ---

point 'it knows the same types as the plugin' "$(
	: >"$work/empty.db"
	mkdir "$work/plugins"
	cp "$plugin" "$work/plugins/"
	cat >"$work/empty.conf" <<END
Hostname "localhost"
FQDNLookup false
BaseDir "$work"
PIDFile "$work/pid"
TypesDB "$work/empty.db"
PluginDir "$work/plugins"
LoadPlugin proctally
END
	timeout -k 5 60 "$COLLECTD" -T -f -C "$work/empty.conf" 2>&1 </dev/null |
		sed -n 's/.* type "\(.*\)" is missing .*/\1/p' | sort >"$work/want"
	[ -s "$work/want" ] || echo 'the plugin names none'
	sed -n '/^stock_types/,/^}/s/^\([a-z_]*\) [a-z]*:[A-Z]*:.*/\1/p' \
		"$src/contrib/check-install" | diff "$work/want" - || true)"
stock=$("$src/contrib/check-install" --config "$work/etc/collectd.conf" \
	--unit-path "$work/units" --no-trial "$plugin" |
	sed -n 's/^ok     types of \([^ ]*\).*/\1/p') || stock=
# typed TEXT...: with these lines for TypesDB.
typed() {
	cp "$work/etc/collectd.conf" "$work/etc/plain"
	printf '%s\n' "$@" >>"$work/etc/collectd.conf"
	check --no-trial "$plugin"
	mv "$work/etc/plain" "$work/etc/collectd.conf"
}
point 'a type that is missing is named, with its line' "$(
	grep -v '^ps_rss' "$stock" >"$work/types.db"
	typed "TypesDB \"$work/types.db\""
	ends 3
	says ": ps_rss " 'ps_rss	value:GAUGE:0:9223372036854775807'
	lacks 'ps_vm')"
point 'so is one with another source, kind or range' "$(
	sed 's/^percent.*/percent value:GAUGE:0:100/
		s/^disk_octets.*/disk_octets read:COUNTER:0:U, write:COUNTER:0:U/
		s/^duration.*/duration value:GAUGE:0:U/' "$stock" >"$work/types.db"
	typed "TypesDB \"$work/types.db\""
	ends 3
	says ': disk_octets duration percent ')"
point 'of several files the last word counts' "$(
	echo 'percent value:GAUGE:0:U' >"$work/own.db"
	typed "TypesDB \"$stock\"" "TypesDB \"$work/own.db\""
	ends 3
	says ': percent '
	typed "TypesDB \"$work/own.db\"" "TypesDB \"$stock\""
	ends 0)"
point 'types in another layout are the same types' "$(
	sed 's/[ 	][ 	]*/   /; s/, */,/g' "$stock" >"$work/types.db"
	typed "TypesDB \"$work/types.db\""
	ends 0)"
point 'a types file that is not there is in the way' "$(
	typed "TypesDB \"$work/none.db\""
	ends 1
	says "types file $work/none.db cannot be read")"

# --- The daemon ---

# daemon VERSION: one that only says what it is.
daemon() {
	cat >"$work/collectd" <<END
#!/bin/sh
cat <<'EOT'
  Config file       $work/etc/collectd.conf
  Plugin directory  $work/plugins

collectd $1, http://collectd.org/
EOT
END
	chmod +x "$work/collectd"
}
# It is a script and of no processor.
# shellcheck disable=SC2317,SC2329
with_daemon() {
	daemon "$1"
	check --collectd "$work/collectd" --no-trial "$plugin"
}
point 'versions other than 5.7 to 5.12 are not taken for good' "$(
	for version in 5.4.0 5.6.2.git 7.0.0 4.10.9; do
		with_daemon "$version"
		ends 1
		says "collectd $version: the plugin needs 5.7 to 5.12"
	done
	for version in 5.7.1 5.8.1.git 5.9 5.10.0 5.12.0; do
		with_daemon "$version"
		says "ok     collectd $version at "
	done
	with_daemon 5.13.0
	says 'note   collectd 5.13.0 is later than any'
	with_daemon 6.0.0
	says 'note   collectd 6.0.0 is later than any')"
point 'no collectd is in the way' "$(
	check --collectd "$work/none" "$plugin"
	ends 1
	says "no collectd at $work/none")"

# --- The file ---

point 'another file is not taken for the plugin' "$(
	cp "$build/proctally" "$work/other.so"
	check "$work/other.so"
	ends 1
	says 'is not the plugin proctally'
	check "$work/none.so"
	ends 1
	says "no file $work/none.so")"
point 'a later C library than the one here is in the way' "$(
	sed 's/GLIBC_2\.\([0-9][0-9]\)/GLIBC_9.\1/g' "$plugin" \
		>"$work/later.so"
	check "$work/later.so"
	ends 1
	says 'the plugin needs glibc 9.' \
		'ERROR  a private collectd could not load it')"
point 'so is a file for another processor' "$(
	{
		head -c 18 "$plugin"
		printf '\026\000'
		tail -c +21 "$plugin"
	} >"$work/s390.so"
	check --no-trial "$work/s390.so"
	ends 1
	says 'for another kind of processor')"
point 'a symbolic link in the plugin directory is in the way' "$(
	daemon 5.12.0
	ln -sf "$plugin" "$work/plugins/proctally.so"
	check --collectd "$work/collectd" --no-trial "$plugin"
	ends 1
	says 'is a symbolic link, which collectd refuses'
	rm "$work/plugins/proctally.so"
	check --collectd "$work/collectd" --no-trial "$plugin"
	lacks 'symbolic link')"

# variable NAME: its value in the build's Makefile.
variable() {
	sed -n "s/^$1 = //p" "$build/Makefile"
}

# build_for LENGTH: the plugin as it is for a collectd with names that long.
build_for() {
	headers=$build/collectd-headers/collectd
	[ -d "$headers" ] || headers=$(variable COLLECTD_CPPFLAGS |
		sed 's/.*-isystem \([^ ]*collectd\)\( .*\|$\)/\1/')
	rm -rf "$work/include"
	mkdir "$work/include"
	cp -RL "$headers" "$work/include/collectd"
	config=$work/include/collectd/core/config.h
	sed "/define DATA_MAX_NAME_LEN/d; 1i #define DATA_MAX_NAME_LEN $1" \
		"$config" >"$work/config.h"
	cp "$work/config.h" "$config"
	# shellcheck disable=SC2046
	$(variable CC) -std=gnu11 -fPIC -shared -o "$work/of$1.so" \
		-D_GNU_SOURCE -DHAVE_CONFIG_H=1 -DPROCTALLY_VERSION='"0"' \
		-DPROCTALLY_RULES='"/none"' -I "$src/plugin" \
		-isystem "$work/include/collectd" -isystem "$work/include" \
		"$src/plugin/plugin.c" "$build/.libs/libcore.a" \
		$(variable YAML_LIBS) $(variable PCRE2_LIBS) -pthread 2>&1
}
point 'names of another length are found out by the daemon itself' "$(
	for length in 64 256; do
		build_for "$length"
		check "$work/of$length.so"
		ends 1
		says "proctally 0 DATA_MAX_NAME_LEN=$length" \
			"another DATA_MAX_NAME_LEN than the plugin ($length)"
	done
	build_for 128
	check "$work/of128.so"
	ends 0)"

# --- The unit ---

# unit LINE...: with a drop-in that has these lines.
unit() {
	mkdir -p "$work/units/collectd.service.d"
	{
		echo '[Service]'
		printf '%s\n' "$@"
	} >"$work/units/collectd.service.d/hard.conf"
	check --no-trial "$plugin"
	rm -r "$work/units/collectd.service.d"
}
ptrace='without CAP_SYS_PTRACE' search='without CAP_DAC_READ_SEARCH'
admin='without CAP_NET_ADMIN'
point 'a unit without capabilities costs values, one line for each' "$(
	unit 'CapabilityBoundingSet='
	ends 3
	says "$ptrace" "$search" "$admin" \
		'CapabilityBoundingSet=CAP_SYS_PTRACE (contrib/systemd')"
point 'the drop-in gives back what it takes' "$(
	mkdir "$work/units/collectd.service.d"
	printf '[Service]\nCapabilityBoundingSet=\n' \
		>"$work/units/collectd.service.d/a.conf"
	cp "$src/contrib/systemd/proctally.conf" \
		"$work/units/collectd.service.d/"
	check --no-trial "$plugin"
	rm -r "$work/units/collectd.service.d"
	ends 0)"
point 'sets of capabilities are read as systemd reads them' "$(
	unit 'CapabilityBoundingSet=CAP_NET_RAW CAP_SYS_PTRACE'
	lacks "$ptrace"
	says "$search"
	unit 'CapabilityBoundingSet=~CAP_SYS_PTRACE'
	says "$ptrace"
	lacks "$search"
	unit 'CapabilityBoundingSet=CAP_NET_RAW' \
		'CapabilityBoundingSet=cap_sys_ptrace' \
		'CapabilityBoundingSet=CAP_DAC_READ_SEARCH' \
		'CapabilityBoundingSet=CAP_NET_ADMIN'
	ends 0
	unit 'CapabilityBoundingSet=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH' \
		'CapabilityBoundingSet='
	says "$ptrace" "$search")"
point 'another user than root needs them as ambient ones' "$(
	unit 'User=collectd'
	ends 3
	says "$ptrace" "$search" 'and AmbientCapabilities=CAP_SYS_PTRACE'
	unit 'User=collectd' \
		'AmbientCapabilities=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH' \
		'AmbientCapabilities=CAP_NET_ADMIN'
	ends 0)"
point 'settings that hide processes cost values' "$(
	for line in PrivateUsers=yes ProcSubset=pid PrivatePIDs=yes; do
		unit "$line"
		ends 3
		says "loss   $line: "
	done
	unit 'RestrictAddressFamilies=AF_UNIX AF_INET'
	ends 3
	says 'loss   RestrictAddressFamilies=AF_UNIX AF_INET: '
	unit PrivateUsers=no ProcSubset=all
	ends 0
	unit ProtectProc=invisible
	ends 0
	unit ProtectProc=invisible 'CapabilityBoundingSet=CAP_DAC_READ_SEARCH'
	says 'loss   ProtectProc=invisible: ')"
point 'what may stay is only told' "$(
	unit PrivateTmp=yes ProtectHome=yes PrivateDevices=yes \
		MemoryDenyWriteExecute=yes LimitNOFILE=1024 \
		'RestrictAddressFamilies=AF_UNIX AF_NETLINK'
	ends 0
	says 'note   PrivateTmp=yes: ' 'note   ProtectHome=yes: ' \
		'note   PrivateDevices=yes: ' 'note   LimitNOFILE=1024: ' \
		'note   MemoryDenyWriteExecute=yes: '
	lacks AF_NETLINK
	unit PrivateMounts=yes NoNewPrivileges=yes
	lacks PrivateMounts)"
point 'systemd is asked where it runs' "$(
	mkdir "$work/bin"
	cat >"$work/bin/systemctl" <<'END'
#!/bin/sh
echo LoadState=loaded
echo CapabilityBoundingSet=cap_chown cap_dac_read_search
echo User=
END
	chmod +x "$work/bin/systemctl"
	PATH=$work/bin:$PATH
	check --unit-path '' --no-trial "$plugin"
	ends 3
	says 'ok     unit collectd.service, as systemd has it' "$ptrace"
	lacks "$search")"

# --- What it leaves ---

# alone COMMAND...: with everything but one temporary directory read-only.
alone() {
	# shellcheck disable=SC2016
	unshare -m sh -c '
		mount --make-rprivate / && mount -t tmpfs none "$1" &&
			mount -o remount,bind,ro / || exit 77
		TMPDIR=$1
		export TMPDIR
		shift
		status=0
		"$@" || status=$?
		ls -A "$TMPDIR"
		exit "$status"' sh "$work/tmp" "$@"
}
# hidden COMMAND...: below a /proc that hides.
hidden() {
	# shellcheck disable=SC2016
	unshare -m sh -c '
		mount --make-rprivate / &&
			mount -t proc -o hidepid=2 proc /proc || exit 77
		exec "$@"' sh "$@"
}
mkdir "$work/tmp"
if [ "$(id -u)" = 0 ] && alone true >/dev/null 2>&1 && hidden true; then
	point 'it writes nothing but to a directory that it removes' "$(
		status=0
		alone "$src/contrib/check-install" --quiet --config \
			"$work/etc/collectd.conf" --unit-path "$work/units" \
			"$plugin" >"$work/out" 2>&1 </dev/null || status=$?
		ends 0
		[ "$(wc -l <"$work/out")" = 1 ] || cat "$work/out")"
	point 'hidepid costs values only without CAP_SYS_PTRACE' "$(
		for set in CAP_SYS_PTRACE CAP_DAC_READ_SEARCH; do
			mkdir -p "$work/units/collectd.service.d"
			printf '[Service]\nCapabilityBoundingSet=%s\n' "$set" \
				>"$work/units/collectd.service.d/a.conf"
			hidden "$src/contrib/check-install" --no-trial --config \
				"$work/etc/collectd.conf" --unit-path \
				"$work/units" "$plugin" >"$work/$set" 2>&1 || :
		done
		rm -r "$work/units/collectd.service.d"
		cd "$work"
		grep 'hidepid=.*sees through' CAP_SYS_PTRACE >/dev/null ||
			cat CAP_SYS_PTRACE
		grep '^loss .*hidepid=' CAP_DAC_READ_SEARCH >/dev/null ||
			cat CAP_DAC_READ_SEARCH)"
elif [ "${CI:-}" = true ]; then
	point 'it can be run with a view of its own' \
		'not root, or no mount namespaces, and CI=true'
fi
plan
