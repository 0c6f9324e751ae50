#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The Debian and the RPM package: built from a release archive, looked at by
# lintian and rpmlint, and the Debian one installed, upgraded, removed and
# purged beside a real collectd. That is done in a copy of this system that
# lasts as long as this script, with no network and processes of its own; with
# PACKAGES_ROOT=fresh ("make check-packages") in a new one that mmdebstrap
# makes, where apt-get installs the package and what it depends on.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
PATH=$PATH:/usr/sbin:/sbin
: "${PACKAGES_ROOT:=copy}"

give_up() {
	if [ "${CI:-}" = true ]; then
		point 'all that packages take is there' "$1, and CI=true"
		plan
	else
		echo "1..0 # SKIP $1"
	fi
	exit 0
}

if [ "${SANITIZERS:-no}" != no ]; then
	echo '1..0 # SKIP packages are built without sanitizers'
	exit 0
fi
for tool in dpkg-buildpackage dh lintian rpmbuild rpmlint unshare; do
	command -v "$tool" >/dev/null || give_up "no $tool"
done
[ "$(id -u)" = 0 ] || give_up 'not root'
[ -f "$src/contrib/make-deb" ] || give_up 'no contrib/make-deb'

# Nothing that is mounted or started here outlives this.
if [ "${PACKAGES_INSIDE:-}" != yes ]; then
	unshare -m -p -f true 2>/dev/null || give_up 'no namespaces'
	PACKAGES_INSIDE=yes
	export PACKAGES_INSIDE
	exec unshare -m -p -f --kill-child --mount-proc "$0"
fi
mount --make-rprivate /

work=$(mktemp -d "${TMPDIR:-/var/tmp}/proctally-packages.XXXXXX")
root=$work/root
# shellcheck disable=SC2317,SC2329
finish() {
	trap - EXIT HUP INT TERM
	for mounted in "$root/dev" "$root/proc" "$root" "$work/layer"; do
		umount -R "$mounted" 2>/dev/null || true
	done
	# What is still mounted must not be emptied.
	rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# quietly COMMAND...: its output is a finding if it fails.
quietly() {
	timeout -k 10 600 "$@" >"$work/log" 2>&1 </dev/null || {
		echo "$* failed"
		tail -n 30 "$work/log"
	}
}

# await COMMAND...: until it succeeds, for a minute at most.
await() {
	rounds=600
	while ! "$@" >/dev/null 2>&1; do
		rounds=$((rounds - 1))
		[ "$rounds" -gt 0 ] || return 1
		sleep 0.1
	done
}

# --- Built ---

version=$(sed -n 's/^AC_INIT(\[proctally\], \[\(.*\)\])$/\1/p' \
	"$src/configure.ac")
point 'all packages have the version of the release' "$(
	[ -n "$version" ] || echo 'no version in configure.ac'
	head -n 1 "$src/contrib/debian/changelog" |
		grep -q "^proctally ($version-[0-9]*) " ||
		head -n 1 "$src/contrib/debian/changelog"
	grep -q "^Version: *$version\$" "$src/contrib/rpm/proctally.spec" ||
		grep '^Version:' "$src/contrib/rpm/proctally.spec"
	grep -q -- "> - $version-[0-9]*\$" "$src/contrib/rpm/proctally.spec" ||
		grep '^\*' "$src/contrib/rpm/proctally.spec")"
mkdir "$work/dist" "$work/debs"
point 'a checkout becomes a release archive' "$(
	quietly "$src/contrib/make-dist" --output "$work/dist"
	[ -f "$work/dist/proctally-$version.tar.xz" ] || ls "$work/dist")"
archive=$work/dist/proctally-$version.tar.xz
# Of what "make check" has just built once more, with less care for speed.
DEB_BUILD_OPTIONS="nocheck noddebs parallel=$(nproc)"
export DEB_BUILD_OPTIONS
point 'the archive becomes a Debian package' "$(
	quietly "$src/contrib/make-deb" --output "$work/debs" "$archive")"
deb=$(find "$work/debs" -name 'proctally_*.deb')
if [ -z "$deb" ]; then
	plan
	exit 0
fi
# An initial upload is asked for the bug of Debian that it closes.
point 'lintian has nothing against it' "$(
	timeout -k 10 300 lintian --allow-root --fail-on none \
		--suppress-tags initial-upload-closes-no-bugs \
		"$work"/debs/*.changes 2>&1 </dev/null || echo "status $?")"
point 'it has what it should, where Debian has it' "$(
	dpkg-deb -c "$deb" | awk '{ print $1, $6 }' >"$work/files"
	while read -r mode path; do
		grep -qx -e "$mode \./$path" "$work/files" ||
			echo "not there: $mode $path"
	done <<END
-rw-r--r-- usr/lib/collectd/proctally.so
-rwxr-xr-x usr/bin/proctally
-rw-r--r-- etc/proctally.yaml
-rw-r--r-- etc/collectd/collectd.conf.d/proctally.conf
-rw-r--r-- usr/share/man/man1/proctally.1.gz
-rw-r--r-- usr/share/man/man5/proctally.5.gz
-rw-r--r-- usr/share/bash-completion/completions/proctally
-rw-r--r-- usr/share/doc/proctally/README.gz
-rw-r--r-- usr/share/doc/proctally/examples/web.yaml
-rw-r--r-- usr/share/doc/proctally/examples/grafana/graphite-groups.json
-rw-r--r-- usr/share/doc/proctally/examples/stores/README
-rw-r--r-- usr/share/doc/proctally/examples/stores/influxdb/collectd.conf
-rw-r--r-- usr/share/doc/proctally/examples/systemd/proctally.conf
-rwxr-xr-x usr/share/doc/proctally/examples/check-install
END
	dpkg-deb -I "$deb" conffiles | sort >"$work/conffiles"
	printf '%s\n' /etc/collectd/collectd.conf.d/proctally.conf \
		/etc/proctally.yaml | diff - "$work/conffiles" || true)"

point 'the RPM package is described without a mistake' "$(
	rpmspec -P "$src/contrib/rpm/proctally.spec" 2>&1 >/dev/null ||
		echo "rpmspec: status $?"
	timeout 60 rpmlint "$src/contrib/rpm/proctally.spec" \
		>"$work/log" 2>&1 </dev/null || cat "$work/log"
	grep ': E: ' "$work/log" || true
	grep -q ' 0 errors, ' "$work/log" || cat "$work/log")"
point 'the archive becomes an RPM source package' "$(
	quietly rpmbuild -ts --nodeps --define "_topdir $work/rpm" "$archive"
	find "$work/rpm" -name 'proctally-*.src.rpm' | grep -q . ||
		echo 'no source package')"

# --- A root to install it in ---

# The same package once more, with another version and other defaults.
later() {
	rm -rf "$work/later"
	dpkg-deb -R "$deb" "$work/later"
	sed -i 's/^Version: .*/&.1/' "$work/later/DEBIAN/control"
	for file in etc/proctally.yaml \
		etc/collectd/collectd.conf.d/proctally.conf; do
		echo '# Other defaults.' >>"$work/later/$file"
	done
	dpkg-deb -b --root-owner-group "$work/later" "$work/later.deb"
}

# The system with a layer above that takes the changes.
copy_root() {
	mkdir -p "$root" "$work/layer"
	mount -t tmpfs none "$work/layer" &&
		mkdir "$work/layer/up" "$work/layer/work" &&
		mount -t overlay none "$root" \
			-o "lowerdir=/,upperdir=$work/layer/up,workdir=$work/layer/work" &&
		mount -t proc proc "$root/proc" &&
		mount --rbind /dev "$root/dev" &&
		mount -t tmpfs none "$root/run"
}

fresh_root() {
	# shellcheck disable=SC1091
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mmdebstrap --variant=minbase --include=collectd "$suite" "$root" &&
		cp /etc/resolv.conf "$root/etc/" &&
		mount -t proc proc "$root/proc" &&
		mount --rbind /dev "$root/dev"
}

in_root() {
	timeout -k 10 300 env -u TMPDIR -i PATH="$PATH" LC_ALL=C \
		DEBIAN_FRONTEND=noninteractive chroot "$root" "$@" </dev/null
}

# Whoever edited a file keeps it; the triggers of others, such as the index of
# all manuals, are not ours to try.
install() {
	if [ "$PACKAGES_ROOT" = fresh ]; then
		set -- apt-get -y -q -o Dpkg::Options::=--force-confdef \
			-o Dpkg::Options::=--force-confold install "$1"
	else
		set -- unshare -n dpkg --no-triggers \
			--force-confdef --force-confold -i "$1"
	fi
	in_root "$@" >"$work/log" 2>&1 || {
		echo "$* failed"
		cat "$work/log"
	}
}

away() {
	in_root dpkg --no-triggers "$1" proctally >"$work/log" 2>&1 || cat "$work/log"
}

later >"$work/log" 2>&1
"${PACKAGES_ROOT}_root" >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	give_up 'no root to install packages in'
}
# shellcheck disable=SC2016
in_root dpkg-query -W -f '${db:Status-Status}\n' collectd-core 2>/dev/null |
	grep -qx installed || give_up 'collectd-core is not installed'
cp "$deb" "$root/first.deb"
cp "$work/later.deb" "$root/later.deb"
conf=etc/collectd/collectd.conf.d/proctally.conf

# Debian's own, but for the network: it includes collectd.conf.d in this way.
mkdir -p "$root/etc/collectd"
cat >"$root/etc/collectd/collectd.conf" <<'END'
Hostname "localhost"
FQDNLookup false
Interval 1
LoadPlugin csv
<Plugin csv>
	DataDir "/csv"
</Plugin>
<Include "/etc/collectd/collectd.conf.d">
	Filter "proctally*.conf"
</Include>
END

# files: all there are, but for what a run and dpkg's own books leave; of a copy
# only what is in its own layer.
files() {
	tree=$root lower=/none
	[ "$PACKAGES_ROOT" = fresh ] || tree=$work/layer/up lower=/
	(cd "$tree" && find . -xdev \( -path ./proc -o -path ./dev -o \
		-path ./run -o -path ./tmp -o -path ./var/tmp -o -path ./csv -o \
		-path ./var/log -o -path ./var/cache -o -path ./var/lib/apt -o \
		-path ./var/lib/dpkg -o -path ./var/lib/collectd \) -prune -o \
		-print) | sort | while read -r file; do
		[ -d "$lower/$file" ] || echo "$file"
	done
}
# shellcheck disable=SC2016
packages() {
	in_root dpkg-query -W -f '${Package}\n'
}

# runs WANT: does the collectd of the root start, with values of groups or
# without any?
# shellcheck disable=SC2317,SC2329
has_values() {
	[ -n "$(find "$root/csv" -name "$1" 2>/dev/null)" ]
}
runs() {
	rm -rf "$root/csv"
	chroot "$root" collectd -f -P /collectd.pid >"$work/daemon" 2>&1 \
		</dev/null &
	daemon=$!
	await has_values "$1" || {
		echo "no values as $1"
		cat "$work/daemon"
	}
	kill "$daemon" 2>/dev/null || echo 'collectd has ended'
	wait "$daemon" || echo "collectd ended with status $?"
}

# static_file: the plugin as a release has it, where its libraries are not; the
# configuration of the new system names it, and check-install is happy.
static_file() {
	mkdir "$work/release"
	quietly "$src/contrib/make-release" --output "$work/release"
	cd "$work/release"
	quietly sha256sum -c SHA256SUMS
	mkdir "$root/static"
	tar -x -f proctally-*-linux-*.tar.xz -C "$root/static" \
		--strip-components=1
	for file in LICENSE LICENSE.libyaml LICENSE.pcre2 proctally.conf; do
		[ -s "$root/static/$file" ] || echo "no $file"
	done
	! ls "$root"/usr/lib/*/libyaml-0.so.* 2>/dev/null ||
		echo 'libyaml is there'
	in_root sh /static/check-install >"$work/log" 2>&1 || cat "$work/log"
	grep -qx 'result: it works and sees everything' "$work/log" ||
		cat "$work/log"
	rm -r "$root/static"
}

# What apt-get installs beside it stays.
if [ "$PACKAGES_ROOT" = fresh ]; then
	point 'the static file works where its libraries are not' \
		"$(static_file)"
	in_root sh -c 'apt-get -q update && apt-get -y -q install \
		--no-install-recommends libyaml-0-2 libpcre2-8-0 \
		libncursesw6' >"$work/log" 2>&1 || cat "$work/log" >&2
fi
files >"$work/before"
packages >"$work/packages-before"

# --- Installed, upgraded, removed ---

point 'it installs beside collectd' "$(
	install /first.deb
	in_root proctally check /etc/proctally.yaml >"$work/log" 2>&1 ||
		cat "$work/log")"
point 'collectd starts with it and has values of groups' "$(
	sed -i 's/#Interval 10/Interval 1/' "$root/$conf"
	runs 'ps_cputime-*'
	find "$root/csv/localhost" -name 'proctally-*' | grep -q . ||
		find "$root/csv")"
point 'check-install, as packaged, finds nothing' "$(
	in_root sh /usr/share/doc/proctally/examples/check-install --quiet 2>&1 |
		grep -vx 'result: it works and sees everything' || true)"
point 'an upgrade keeps what was edited and brings what was not' "$(
	cp "$root/$conf" "$work/edited"
	install /later.deb
	in_root dpkg-query -s proctally | grep -q '^Version: .*\.1$' ||
		echo 'not upgraded'
	cmp "$root/$conf" "$work/edited"
	grep -qx '# Other defaults.' "$root/etc/proctally.yaml" ||
		echo 'the new proctally.yaml did not come')"
point 'without it collectd starts, although its files of /etc are left' "$(
	echo 'rules: [{name: mine, any: true}]' >"$root/etc/proctally.yaml"
	away -r
	[ ! -e "$root/usr/lib/collectd/proctally.so" ] || echo 'still there'
	[ -e "$root/$conf.removed" ] || echo 'proctally.conf is not kept'
	[ ! -e "$root/$conf" ] || echo 'proctally.conf would be read'
	printf 'LoadPlugin load\n' \
		>"$root/etc/collectd/collectd.conf.d/proctally-not.conf"
	runs 'load-*'
	rm "$root/etc/collectd/collectd.conf.d/proctally-not.conf")"
point 'installed again, it finds its edited files' "$(
	install /first.deb
	cmp "$root/$conf" "$work/edited"
	[ ! -e "$root/$conf.removed" ] || echo 'two of them'
	grep -qx 'rules: \[{name: mine, any: true}\]' \
		"$root/etc/proctally.yaml" || echo 'the rules are lost'
	runs 'ps_cputime-*'
	find "$root/csv/localhost" -name 'proctally-mine' | grep -q . ||
		find "$root/csv")"
point 'who switched it off by hand finds it off' "$(
	rm "$root/$conf"
	install /later.deb
	[ ! -e "$root/$conf" ] || echo 'it is back')"
point 'purged, it leaves nothing' "$(
	cp "$work/edited" "$root/$conf"
	away -P
	files | diff "$work/before" -
	packages | diff "$work/packages-before" - || true)"
point 'purged after it was removed, it leaves nothing either' "$(
	install /first.deb
	echo '# Edited.' >>"$root/$conf"
	away -r
	away -P
	files | diff "$work/before" -
	packages | diff "$work/packages-before" - || true)"
plan
