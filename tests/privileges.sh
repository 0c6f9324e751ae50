#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What can be read with which capabilities, of processes of the same user, of
# another one, and of one that may more than we do; and below a process file
# system that hides them. What cannot be read is absent, and one line says what
# it takes.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"

give_up() {
	if [ "${CI:-}" = true ]; then
		echo "not ok 1 - CI=true, but $1"
		echo 1..1
	else
		echo "1..0 # SKIP $1"
	fi
	exit 0
}
[ "$(id -u)" = 0 ] || give_up 'not root'
for tool in setpriv unshare mount mkfifo; do
	command -v "$tool" >/dev/null || give_up "no $tool"
done
setpriv --bounding-set=-all,+sys_ptrace,+dac_read_search --inh-caps=-all \
	true 2>/dev/null || give_up 'no capabilities to take away'

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-privileges.XXXXXX")
chmod 755 "$work"
# shellcheck disable=SC2317,SC2329
finish() {
	trap - EXIT HUP INT TERM
	# Members wait for this to be closed, and end.
	exec 9>&-
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# Where the build is, others may not come.
cp "$build/proctally" "$work/proctally"
mkdir "$work/hidden"
mkfifo -m 644 "$work/hold"
exec 9<>"$work/hold"

# A member's name is that of its script: whose it is, and whose test it is of.
for member in plain mighty other; do
	# shellcheck disable=SC2016
	printf '#!/bin/sh\nread -r _ <"$1"\n' >"$work/$member$$"
	chmod 755 "$work/$member$$"
done
nobody='--reuid=65534 --regid=65534 --clear-groups'
# shellcheck disable=SC2086
{
	setpriv --bounding-set=-all --inh-caps=-all \
		"$work/plain$$" "$work/hold" 9>&- &
	"$work/mighty$$" "$work/hold" 9>&- &
	setpriv $nobody "$work/other$$" "$work/hold" 9>&- &
}
cat >"$work/rules.yaml" <<END
defaults: {collect: {fd_limit: on}}
rules:
- {name: plain, comm: plain$$}
- {name: mighty, comm: mighty$$}
- {name: other, comm: other$$}
other: {action: drop}
END
sleep 1

# dump AS...: what the command tells when it is run by "AS...", in out: of its
# last reading only; and in err. AS ends in an option for the command or not.
dump() {
	timeout -k 5 60 "$@" --rules "$work/rules.yaml" --interval 0.4 --count 5 \
		>"$work/all" 2>"$work/err" 9>&- </dev/null || echo "$*: status $?"
	sed -n 's|^PUTVAL "[^/]*/proctally-\([^"]*\)" [^:]*:|\1 |p' \
		"$work/all" >"$work/each"
	awk '{ last[$1] = $0; n[$1]++; most = n[$1] > most ? n[$1] : most }
	     END { for (id in last) if (n[id] >= most - 2) print last[id] }' \
		"$work/each" >"$work/out"
}

# with CAPABILITIES [OPTION]...: root with these and no others.
with() {
	capabilities=$1
	shift
	dump setpriv --bounding-set="$capabilities" --inh-caps=-all \
		"$work/proctally" dump "$@"
}

# has GROUP VALUE...: values that must be there and be more than 0.
has() {
	group=$1
	shift
	for value; do
		awk -v id="$group/$value" \
			'$1 == id && $2 + 0 > 0 { found = 1 } END { exit !found }' \
			"$work/out" || {
			echo "$group/$value: want a value"
			grep "^$group/" "$work/out" || echo "nothing of $group"
		}
	done
}

# lacks GROUP VALUE...: values that must not be there, not even as 0.
lacks() {
	group=$1
	shift
	for value; do
		! grep "^$group/$value " "$work/each" || echo '(unwanted)'
	done
}

is() {
	grep -qx "$1 $2" "$work/out" || {
		echo "want $1 $2"
		grep "^$1 " "$work/out" || true
	}
}

# tells TEXT: on standard error, in one line only.
tells() {
	[ "$(grep -cF "$1" "$work/err")" = 1 ] || {
		echo "not told once: $1"
		cat "$work/err"
	}
}

# That some process hangs is none of our business.
silent() {
	! grep -v ' waiting; ' "$work/err" || echo '(unwanted)'
}

always='ps_rss ps_vm ps_count'
pss='memory-pss memory-uss count-pss_read'

# shellcheck disable=SC2086
{
	point 'without capabilities what is as weak as we are is readable' "$(
		with -all
		has plain $always $pss file_handles)"
	point 'PSS of others is absent then, and their other values are not' "$(
		for group in mighty other; do
			has $group $always
			lacks $group memory-pss memory-uss memory-swap_pss
			is $group/count-pss_read 0
		done
		is _self/count-unreadable_pss 2)"
	point 'one line says for how many, and what it takes' "$(
		tells 'pss unreadable for 2 of 3 processes: needs CAP_SYS_PTRACE'
		grep -q 'io unreadable for 2 of ' "$work/err" ||
			cat "$work/err")"
	point 'PSS takes CAP_SYS_PTRACE alone' "$(
		with -all,+sys_ptrace
		for group in plain mighty other; do
			has $group $always $pss
		done
		is _self/count-unreadable_pss 0
		! grep pss "$work/err" || echo '(unwanted)')"
	point "other users' I/O and files take CAP_DAC_READ_SEARCH, too" "$(
		lacks other io_octets
		is _self/count-unreadable_io 1
		with -all,+dac_read_search
		lacks other memory-pss io_octets)"
	point 'what the drop-in for systemd gives is enough for everything' "$(
		with "-all$(sed -n 's/^CapabilityBoundingSet=CAP_/,+/p' \
			"$src/contrib/systemd/proctally.conf" |
			tr -d '\n' | tr '[:upper:]' '[:lower:]')"
		for group in plain mighty other; do
			has $group $always $pss file_handles percent-fd_limit
			grep -q "^$group/io_octets " "$work/out" ||
				echo "no I/O of $group"
		done
		is _self/count-unreadable_pss 0
		is _self/count-unreadable_io 0
		is _self/count-unreadable_fds 0
		silent)"
	point 'any user can read his own' "$(
		dump setpriv $nobody "$work/proctally" dump
		has other $always $pss file_handles
		lacks plain memory-pss
		lacks mighty memory-pss
		is _self/count-unreadable_pss 2
		tells 'pss unreadable for 2 of 3 processes: needs CAP_SYS_PTRACE')"
}

# hidden OPTIONS COMMAND...: runs it in a mount namespace of its own that has
# such a process file system; its last arguments say where.
hidden() {
	options=$1
	shift
	# shellcheck disable=SC2016
	dump unshare -m sh -c '
		mount --make-rprivate / &&
			mount -t proc -o "$1" proc "$2" || exit 77
		proc=$2
		shift 2
		exec "$@" --proc "$proc"' sh "$options" "$work/hidden" \
		"$@" "$work/proctally" dump
}

without=$(hidden hidepid=2)
if [ "${CI:-}" != true ] && [ -n "$without" ]; then
	n=$((n + 1))
	echo "ok $n - hidepid # SKIP no process file system can be mounted"
	plan
	exit 0
fi
# shellcheck disable=SC2086
{
	point 'hidepid hides nothing from all capabilities' "$(
		printf '%s' "$without"
		for group in plain mighty other; do
			has $group $always $pss
		done
		silent)"
	point 'with hidepid any user sees his own, and is told why' "$(
		hidden hidepid=2 setpriv $nobody
		has other $always $pss file_handles
		for group in plain mighty; do
			is $group/ps_count 0:0
			lacks $group ps_rss memory-pss
		done
		is _self/count-unreadable_pss 0
		tells 'does not show process 1: it is mounted with hidepid')"
	point 'the group that hidepid leaves out sees all, and may not read all' "$(
		hidden hidepid=2,gid=65533 setpriv --reuid=65534 \
			--regid=65534 --groups=65533
		has other $always $pss
		has plain $always
		lacks plain memory-pss
		is _self/count-unreadable_pss 2
		! grep 'not show' "$work/err" || echo '(unwanted)')"
	point 'CAP_SYS_PTRACE sees all in spite of hidepid' "$(
		hidden hidepid=2 setpriv --bounding-set=-all,+sys_ptrace \
			--inh-caps=-all
		for group in plain mighty other; do
			has $group $always $pss
		done
		! grep 'not show' "$work/err" || echo '(unwanted)')"
	point 'hidepid=1 shows who there is and hides what they use' "$(
		hidden hidepid=1 setpriv $nobody
		has other $always $pss
		lacks plain ps_rss memory-pss
		lacks mighty ps_rss memory-pss)"
}
plan
