# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# TAP for test scripts, which read this first:
#
#	# shellcheck source=tests/tap.sh
#	. "${top_srcdir:-.}/tests/tap.sh"
#
# It gives $src and $build (the top of the sources and of the build), $command,
# the C locale, and the functions below. A script ends with plan.

src=${top_srcdir:-.}
build=${top_builddir:-$src}
# shellcheck disable=SC1007
src=$(CDPATH= cd "$src" && pwd) build=$(CDPATH= cd "$build" && pwd)
# shellcheck disable=SC2034
command=$build/proctally
LC_ALL=C
export LC_ALL
unset COLLECTD_HOSTNAME COLLECTD_INTERVAL

n=0
# point NAME FINDINGS: one TAP point, failed if there is any finding.
point() {
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		printf '%s\n' "$2" | head -n 40 | sed 's/^/# /'
	fi
}

# leave_out NAME REASON: what cannot be here, and is no failure.
leave_out() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

# skip NAME REASON: what is missing is a failure where CI=true, unless the reason
# is that something "has none", as a distribution may not have it.
skip() {
	if [ "${CI:-}" = true ] && [ "$2" = "${2% has none}" ]; then
		point "$1" "$2, and CI=true"
	else
		leave_out "$1" "$2"
	fi
}

plan() {
	echo "1..$n"
}
