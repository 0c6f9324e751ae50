#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Why a process is in its group, in words: on a /proc of our own making, where
# every sentence is known in advance, and on that of this host, where the group
# must be the one that dump counts.
set -eu

# shellcheck source=tests/tap.sh
. "${top_srcdir:-.}/tests/tap.sh"
LC_ALL=C TZ=UTC0
export LC_ALL TZ

work=$(mktemp -d "${TMPDIR:-/tmp}/proctally-explain.XXXXXX")
children=
# shellcheck disable=SC2317,SC2329
finish() {
	trap - EXIT HUP INT TERM
	for child in $children; do
		kill -KILL "$child" 2>/dev/null || true
	done
	[ ! -d "$work/mnt" ] || umount "$work/mnt" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# run ARGUMENT...: its output is in out and err, its status in $status. What
# is in $who is put in front of the command.
who=
run() {
	status=0
	# shellcheck disable=SC2086
	timeout -k 5 60 $who "$command" "$@" >"$work/out" 2>"$work/err" \
		</dev/null || status=$?
}

# ends STATUS ARGUMENT...: runs it; findings if it ends in another way.
ends() {
	want=$1
	shift
	run "$@"
	[ "$status" = "$want" ] || {
		echo "$*: want status $want, got $status"
		cat "$work/err"
	}
}

# line TEXT: one whole line of the output.
line() {
	grep -qxF -e "$1" "$work/out" || {
		echo "no line: $1"
		cat "$work/out"
	}
}

# no_line PATTERN: no line has it in it.
no_line() {
	! grep -e "$1" "$work/out" || echo "a line with: $1"
}

# last TEXT: the last line.
last() {
	[ "$(tail -n 1 "$work/out")" = "$1" ] || {
		echo "the last line is not: $1"
		cat "$work/out"
	}
}

# first TEXT: the first line.
first() {
	[ "$(head -n 1 "$work/out")" = "$1" ] || {
		echo "the first line is not: $1"
		head -n 1 "$work/out"
	}
}

# But for what lint says of rules that were made to be passed over, and for the
# smaps that a made-up /proc does not have.
silent() {
	! grep -v -e ': warning: ' -e ': pss has no values$' "$work/err" \
		>"$work/noise" || {
		echo 'on standard error:'
		cat "$work/noise"
	}
}

says() {
	grep -qE -e "$2" "$work/$1" || {
		echo "not on standard $1: $2"
		cat "$work/$1"
	}
}

# --- A /proc of our own making ---

host=$work/host proc=$work/host/proc
mkdir -p "$proc" "$host/etc" "$host/run"
printf 'root:x:0:0::/:/bin/sh\nann:x:1000:100::/:/bin/sh\nbob:x:1001:100::/:/bin/sh\n' \
	>"$host/etc/passwd"
printf 'root:x:0:\nusers:x:100:\n' >"$host/etc/group"

# process PID PPID COMM [STATE [FLAGS]]: owned by ann, with a cgroup file; its
# command line is what printf makes of standard input.
process() {
	mkdir "$proc/$1"
	printf '%d (%b) %s %d %d %d 0 -1 %d 0 0 0 0 1 1 0 0 20 0 1 0 100 10000 10 18446744073709551615\n' \
		"$1" "$3" "${4:-S}" "$2" "$1" "$1" "${5:-4194304}" \
		>"$proc/$1/stat"
	printf 'Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\n' \
		>"$proc/$1/status"
	echo "${cgroup:-0::/user.slice/user-1000.slice/session-3.scope}" \
		>"$proc/$1/cgroup"
	read -r text || true
	# shellcheck disable=SC2059
	printf "$text" >"$proc/$1/cmdline"
	echo 'rchar: 0' >"$proc/$1/io"
}

process 1 0 systemd <<'END'
/sbin/init\0
END
process 10 1 bash <<'END'
/usr/bin/bash\0-l\0
END
ln -s /usr/bin/bash "$proc/10/exe"
echo 11 >"$host/run/other.pid"

cat >"$work/keys.yaml" <<'END'
rules:
- {name: r2, kernel: true}
- {name: r3, comm: nginx}
- {name: r4, comm: [nginx, "glob:apache*"]}
- {name: r5, uid: 33}
- {name: r6, uid: [33, 34]}
- {name: r7, user: bob}
- {name: r8, gid: 0}
- {name: r9, group: [root, "iglob:ADM*"]}
- {name: r10, cgroup: '^/system'}
- {name: r11, unit: "glob:*.service"}
- {name: r12, slice: system.slice}
- {name: r13, container: "glob:?*"}
- {name: r14, pod: ["glob:a*", "glob:b*"]}
- {name: r15, exe_path: "re:java$"}
- {name: r16, exe: java}
- {name: r17, exe: [java, "glob:/opt/*"]}
- {name: r18, cmdline: ['-jar', '-war']}
- {name: r19, cmdline_all: [bash, '-l', '-x', '-y']}
- {name: r20, pidfile: [/run/none.pid, /run/other.pid]}
- {name: r21, parent: {comm: init, not: {user: root}}}
- {name: r22, ancestor: {uid: 0, kernel: false, parent: {any: true}}}
- {name: r23, comm: bash, cmdline: '-l', not: [{user: root}, {uid: 1000, exe: [sh, bash]}]}
- {name: r24, comm: bash, cmdline: '-z'}
- name: "shell-{{.Username}}"
  comm: [sh, "glob:ba*", "glob:*sh"]
  uid: 1000
  cmdline_all: [bash, '-l']
  parent: {comm: systemd}
  not: {user: root}
- {name: r31, any: true}
- {name: r32, any: true}
END

ends 0 explain --rules "$work/keys.yaml" --proc "$proc" 10 >"$work/ended"
point 'what is known of a process is told first' "$(
	cat "$work/ended"
	silent
	first '10 (bash) is in "shell-ann": the rule of line 25, "shell-{{.Username}}"'
	sed -n 2p "$work/out" | grep -qx 'process 10 (bash)' || cat "$work/out"
	line '  parent     1 (systemd)'
	says out '^  started    [0-9]{4}-[0-9][0-9]-[0-9][0-9] [0-9:]{8}, [0-9]+ (seconds|minutes|hours|days) ago$'
	line '  kernel     false'
	line '  comm       "bash"'
	line '  uid        1000'
	line '  user       "ann"'
	line '  gid        100'
	line '  group      "users"'
	line '  cgroup     "/user.slice/user-1000.slice/session-3.scope"'
	line '  unit       "session-3.scope"'
	line '  slice      "user-1000.slice"'
	line '  container  (none)'
	line '  exe_path   "/usr/bin/bash"'
	line '  exe        "bash"'
	line '  cmdline    "/usr/bin/bash -l"'
	line '  argv[0]    "/usr/bin/bash"')"
point 'each key that fails is named with its value and its items' "$(
	line "view app, 26 rules of $work/keys.yaml"
	line '  line 2, "r2": kernel is false: it is no kernel thread'
	line '  line 3, "r3": comm "bash" does not match "nginx"'
	line '  line 4, "r4": comm "bash" matches none of "nginx", "glob:apache*"'
	line '  line 5, "r5": uid 1000 is not 33'
	line '  line 6, "r6": uid 1000 is none of 33, 34'
	line '  line 7, "r7": user "ann" does not match "bob"'
	line '  line 8, "r8": gid 100 is not 0'
	line '  line 9, "r9": group "users" matches none of "root", "iglob:ADM*"'
	line '  line 10, "r10": cgroup "/user.slice/user-1000.slice/session-3.scope" does not match "^/system"'
	line '  line 11, "r11": unit "session-3.scope" does not match "glob:*.service"'
	line '  line 12, "r12": slice "user-1000.slice" does not match "system.slice"'
	line '  line 13, "r13": it has no container to match "glob:?*"'
	line '  line 14, "r14": it has no pod to match "glob:a*", "glob:b*"'
	line '  line 15, "r15": exe_path "/usr/bin/bash" does not match "re:java$"'
	line '  line 16, "r16": exe "bash" does not match "java"'
	line '  line 17, "r17": exe "bash" (argv[0] "/usr/bin/bash") matches none of "java", "glob:/opt/*"'
	line '  line 18, "r18": cmdline "/usr/bin/bash -l" matches none of "-jar", "-war"'
	line '  line 19, "r19": cmdline_all "/usr/bin/bash -l" does not match "-x"'
	line '  line 20, "r20": pidfile "/run/none.pid" names no process, "/run/other.pid" names process 11'
	line '  line 21, "r21": parent 1 (systemd) is not {comm: "init", not: {user: "root"}}'
	line '  line 22, "r22": ancestor 1 (systemd): none is {kernel: false, parent: {any: true}, uid: 0}')"
point 'of several keys the first that fails is named, and what excepts' "$(
	line '  line 23, "r23": its keys hold, but it is excepted: not {uid: 1000, exe: ["sh", "bash"]}'
	line '  line 24, "r24": cmdline "/usr/bin/bash -l" does not match "-z"')"
point 'of the rule that holds each key is told, and that others are not asked' "$(
	line '  line 25, "shell-{{.Username}}": holds'
	line '    comm "bash" matches "glob:ba*"'
	line '    parent 1 (systemd) is {comm: "systemd"}'
	line '    uid 1000 is 1000'
	line '    cmdline_all "/usr/bin/bash -l" matches "bash", "-l"'
	line '    not {user: "root"} does not hold'
	line '  2 rules below are not reached'
	no_line 'r31'
	line '  name "shell-{{.Username}}"'
	line '    {{.Username}} is "ann"'
	last 'group: shell-ann')"

# --- Keys that cannot be asked ---

cgroup=none process 20 1 odd <<'END'

END
cat >"$work/absent.yaml" <<'END'
rules:
- {name: r2, cgroup: x}
- {name: r3, exe_path: "glob:*"}
- {name: r4, exe: "glob:*"}
- {name: r5, cmdline: '.'}
- {name: r6, ancestor: {comm: [a, b, c, d, e, f, g, h, i, j]}}
- {action: leave, any: true}
- {name: r8, any: true}
END
rm "$proc/20/cgroup" "$proc/20/status"
point 'what is missing is told, and matches nothing' "$(
	ends 0 explain --rules "$work/absent.yaml" --proc "$proc" 20
	silent
	line '  uid        (does not exist)'
	line '  cgroup     (does not exist)'
	line '  cmdline    (none)'
	line '  line 2, "r2": cgroup does not exist'
	line '  line 3, "r3": exe_path does not exist'
	line '  line 4, "r4": it has no exe to match "glob:*"'
	line '  line 5, "r5": it has no cmdline to match "."'
	line '  line 6, "r6": ancestor 1 (systemd): none is {comm: ["a", "b", "c", "d", "e", "f", "g", "h" and 2 more]}'
	line '  line 7, leave: holds: as if no rule did'
	line '    any process will do'
	line '  1 rule below is not reached'
	line '  from whom could it inherit?'
	last 'group: other')"

# As nobody; a file of ours that nobody may read is not enough for root.
name='what may not be read is told, and matches nothing'
chmod 755 "$work"
chmod 000 "$proc/10/cgroup" "$proc/10/cmdline"
installed=$command
command=$work/proctally
cp "$installed" "$command"
if [ "$(id -u)" = 0 ]; then
	as_nobody='setpriv --reuid 65534 --regid 65534 --clear-groups'
else
	as_nobody=
fi
# shellcheck disable=SC2086
if $as_nobody "$command" --version >/dev/null 2>&1; then
	who=$as_nobody
	point "$name" "$(
		ends 0 explain --rules "$work/absent.yaml" --proc "$proc" 10
		line '  cgroup     (cannot be read: Permission denied)'
		line '  unit       (cannot be read: Permission denied)'
		line '  cmdline    (cannot be read: Permission denied)'
		line '  exe_path   "/usr/bin/bash"'
		line '  line 2, "r2": cgroup cannot be read: Permission denied'
		line '  line 3, "r3": holds'
		last 'group: r3'
		rm "$proc/10/exe"
		ends 0 explain --rules "$work/absent.yaml" --proc "$proc" 10
		line '  line 5, "r5": cmdline cannot be read: Permission denied'
		ln -s /usr/bin/bash "$proc/10/exe")"
	who=
else
	skip "$name" 'no other user to be'
fi
chmod 644 "$proc/10/cgroup" "$proc/10/cmdline"
command=$installed

process 21 1 slow <<'END'

END
rm "$proc/21/cmdline"
mkfifo "$proc/21/cmdline"
point 'a command line that does not come is told, and waited for in vain' "$(
	start=$(date +%s)
	ends 0 explain --rules "$work/absent.yaml" --proc "$proc" 21
	[ "$(($(date +%s) - start))" -le 8 ] || echo 'it took too long'
	says out '^  cmdline    \((is not known yet|cannot be read: it keeps its readers waiting)\)$'
	says out '^  line 5, "r5": cmdline (is not known yet|cannot be read: it keeps its readers waiting)$'
	last 'group: other')"
rm -rf "$proc/21"

# --- Kernel threads, zombies, any bytes ---

process 30 0 kthreadd S 2097152 <<'END'

END
process 31 1 defunct Z 4 <<'END'

END
process 32 1 'a)\033[31m' <<'END'
caf\351\0\303\251\0--x=\033\0
END
cat >"$work/all.yaml" <<'END'
rules:
- {name: k, kernel: true}
- {name: "x{{.Comm}}", comm: 're:^a'}
- {name: never, comm: "re:^a\e\\n", kernel: any}
- {name: all, any: true}
END
point 'kernel threads and zombies are called so' "$(
	ends 0 explain --rules "$work/all.yaml" --proc "$proc" 30
	line '  It is a kernel thread: it has no program file and no command line.'
	line '  parent     (none)'
	line '  kernel     true'
	line '    it is a kernel thread'
	last 'group: k'
	ends 0 explain --rules "$work/all.yaml" --proc "$proc" 31
	line '  user       "ann"'
	line '  group      "users"'
	line '  It has ended and waits for its parent (a zombie): its program file and command line are gone.'
	last 'group: all')"
point 'control bytes and broken characters are shown in hex' "$(
	ends 0 explain --rules "$work/all.yaml" --proc "$proc" 32
	line 'process 32 (a)\x1b[31m)'
	line '  comm       "a)\x1b[31m"'
	printf '  cmdline    "caf\\xe9 \303\251 --x= "\n' >"$work/want"
	line "$(cat "$work/want")"
	line '    {{.Comm}} is "a)\x1b[31m"'
	line '    "xa)\x1b[31m" is made safe: "xa___31m"'
	! LC_ALL=C grep -n "$(printf '\033')" "$work/out"
	last 'group: xa___31m')"
point 'items of the rule file are shown in hex, too' "$(
	ends 0 explain --rules "$work/all.yaml" --proc "$proc" 10
	line '  line 4, "never": comm "bash" does not match "re:^a\x1b\n"')"

# --- Inheritance ---

process 40 1 boss <<'END'
boss\0
END
process 41 40 help <<'END'
help\0
END
process 42 41 help <<'END'
help\0
END
process 43 42 help <<'END'
help\0
END
process 50 1 loner <<'END'
loner\0
END
process 51 50 help <<'END'
help\0
END
process 60 1 hidden <<'END'
hidden\0
END
process 61 60 help <<'END'
help\0
END
process 62 61 help <<'END'
help\0
END
process 70 7000 help <<'END'
help\0
END
process 80 40 cron <<'END'
cron\0
END
process 81 80 help <<'END'
help\0
END
process 90 40 leaver <<'END'
leaver\0
END
cat >"$work/kin.yaml" <<'END'
rules:
- {name: boss, comm: boss, children: 2}
- {name: loner, comm: loner, children: none}
- {action: drop, comm: hidden}
- {action: leave, comm: leaver}
- {name: "x", any: true, not: {comm: [help, cron, systemd]}}
other: {name: others}
END
explained() {
	ends 0 explain --rules "$work/kin.yaml" --proc "$proc" "$1"
}
point 'who inherits is told from whom' "$(
	explained 41
	silent
	line '  no rule holds'
	line '  from whom could it inherit?'
	line '    40 (boss): "boss" by the rule of line 2; it hands this on'
	no_line ' 1 (systemd):'
	no_line '  name '
	last 'group: boss'
	explained 42
	line '    41 (help): "boss" by the rule of line 2, inherited over 1 generation; it hands this on'
	first '42 (help) is in "boss": inherited from 41, of the rule of line 2, "boss"'
	last 'group: boss')"
point 'who does not inherit is told why' "$(
	explained 43
	line '    42 (help): "boss" by the rule of line 2, inherited over 2 generations; children: 2, and this would be generation 3'
	line '    41 (help): "boss" by the rule of line 2, inherited over 1 generation; children: 2, and this would be generation 3'
	line '    40 (boss): "boss" by the rule of line 2; children: 2, and this would be generation 3'
	line '    1 (systemd): process 1 hands nothing on'
	line '  name "others"'
	first '43 (help) is in "others": no rule takes it'
	last 'group: others'
	explained 51
	line '    50 (loner): "loner" by the rule of line 3; children: none'
	last 'group: others'
	explained 81
	line '    80 (cron): a manager hands nothing on'
	no_line '(boss)'
	last 'group: others'
	explained 70
	line '  parent     7000 (it cannot be seen)'
	line '    7000, the next above, has ended or cannot be seen'
	last 'group: others'
	explained 1
	line '    there is nobody above'
	last 'group: others')"
point 'who is dropped is told by whom' "$(
	explained 60
	line '  line 4, drop: holds: it is counted nowhere'
	no_line 'from whom'
	first '60 (hidden) is counted nowhere: the rule of line 4'
	last 'group: (dropped)'
	explained 61
	line '    60 (hidden): dropped by the rule of line 4; and so is what is below it'
	last 'group: (dropped)'
	explained 62
	line '    61 (help): dropped by the rule of line 4, inherited over 1 generation; and so is what is below it'
	first '62 (help) is counted nowhere: inherited from 61, of the rule of line 4'
	last 'group: (dropped)')"
point 'a rule that leaves is followed by inheritance' "$(
	explained 90
	line '  line 5, leave: holds: as if no rule did'
	line '    comm "leaver" matches "leaver"'
	line '    40 (boss): "boss" by the rule of line 2; it hands this on'
	last 'group: boss')"
point 'what nobody takes may be dropped' "$(
	sed 's/^other:.*/other: {action: drop}/' "$work/kin.yaml" \
		>"$work/drop.yaml"
	ends 0 explain --rules "$work/drop.yaml" --proc "$proc" 51
	line '    50 (loner): "loner" by the rule of line 3; children: none'
	no_line '  name '
	first '51 (help) is counted nowhere: no rule takes it'
	last 'group: (dropped)'
	ends 0 explain --rules "$work/drop.yaml" --proc "$proc" 43 1
	line '    there is nobody above')"

# --- Names ---

process 100 1 postgres <<'END'
postgres: walwriter\0
END
process 101 100 postgres <<'END'
postgres: ann shop\0
END
process 102 1 'My App' <<'END'
/opt/My App/Run\0
END
long=aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg
process 103 1 long <<END
/x/$long\0
END
process 104 1 'user.z' <<'END'
x\0
END
process 105 1 job <<'END'
job\0
END
process 106 105 step <<'END'
step\0
END
cat >"$work/names.yaml" <<'END'
rules:
- name: "pg-{{.Matches.role|default:backend}}"
  comm: postgres
  cmdline: '^postgres: (?P<role>walwriter|checkpointer)?'
- {name: "{{.ExeFull|base|lower}} in {{.Comm}}", comm: My App}
- {name: "{{.ExeBase}}", comm: long}
- {name: "{{.Comm}}", comm: user.z}
- {name: "{{.Ancestor}}-{{.Matches.j}}", comm: step, ancestor: {comm: 're:^(?P<j>jo)b'}}
- {name: "{{.Pod}}", comm: job}
views:
  user: {by: user}
  unit:
    rules:
    - {name: "u {{.Unit}}", unit: "glob:*.scope"}
    other: {name: rest}
END
named() {
	ends 0 explain --rules "$work/names.yaml" --proc "$proc" "$@"
}
point 'each token of a name is told with its value' "$(
	named --view app 100
	silent
	line '  name "pg-{{.Matches.role|default:backend}}"'
	line '    {{.Matches.role|default:backend}} is "walwriter"'
	last 'group: pg-walwriter'
	named --view app 101
	line '    {{.Matches.role|default:backend}} is "backend", made of ""'
	last 'group: pg-backend'
	named --view app 106
	line '    ancestor 105 (job) is {comm: "re:^(?P<j>jo)b"}'
	line '    {{.Ancestor}} is "job"'
	line '    {{.Matches.j}} is "jo"'
	last 'group: job-jo')"
point 'what is replaced or cut in a name is told' "$(
	named --view app 102
	line '    {{.ExeFull|base|lower}} is "run", made of "/opt/My App/Run"'
	line '    "run in My App" is made safe: "run_in_My_App"'
	last 'group: run_in_My_App'
	named --view app 103
	cut=$(tail -n 1 "$work/out" | cut -d' ' -f2)
	line "    64 bytes are too many: 54 of them stay, and a hash of all: \"$cut\""
	last "group: $cut"
	[ "${#cut}" = 63 ] || echo "${#cut} bytes"
	named --view app 104
	line '    "user.z" would be a name of another view: "user_z"'
	last 'group: user_z'
	named --view app 105
	line '    {{.Pod}} is ""'
	line '    "" is made safe: "unknown"'
	last 'group: unknown')"
point 'all views are explained, or the one that is wanted' "$(
	named 100
	says out '^view app, 6 rules of '
	says out '^view user, 1 rule of '
	line '  line 11, "user.{{.Username}}": holds'
	line '    any process will do'
	line 'group user: user.ann'
	line 'view unit, 1 rule of '"$work/names.yaml"
	line '    {{.Unit}} is "session-3.scope"'
	line '    "unit.u session-3.scope" is made safe: "unit.u_session-3.scope"'
	last 'group unit: unit.u_session-3.scope'
	[ "$(grep -c '^group' "$work/out")" = 3 ] || echo 'not 3 results'
	sed -n '2p; 3p' "$work/out" | grep -c ' of the view u[sn]' | grep -qx 2 ||
		head -n 4 "$work/out"
	named --view user 100
	first '100 (postgres) is in "user.ann" of the view user: the rule of line 11, "user.{{.Username}}"'
	last 'group user: user.ann'
	[ "$(grep -c '^group' "$work/out")" = 1 ] || echo 'not 1 result'
	ends 2 explain --view none --rules "$work/names.yaml" --proc "$proc" 100
	says err 'unknown view "none" \(there are: app user unit\)'
	[ ! -s "$work/out" ] || cat "$work/out")"

cat >"$work/exporter.yaml" <<'END'
process_names:
- {name: a, exe: [/usr/bin/java, sh]}
- {name: b, cmdline: ['-l', '-jar']}
- {name: c, comm: []}
- {comm: [bash], cmdline: ['-(?P<x>l)'], name: "{{.Comm}} {{.Matches}}"}
END
point 'rules of process-exporter are told in their own words' "$(
	ends 0 explain --rules "$work/exporter.yaml" --proc "$proc" 10
	silent
	line '  line 2, "a": exe "bash" (argv[0] "/usr/bin/bash") matches none of "/usr/bin/java", "sh"'
	line '  line 3, "b": cmdline "/usr/bin/bash -l" does not match "-jar"'
	line '  line 4, "c": the list of comm is empty'
	line '    cmdline "/usr/bin/bash -l" matches "-(?P<x>l)"'
	line '    {{.Matches}} is "map[:-l x:l]"'
	line '    "bash map[:-l x:l]" is made safe: "bash_map__-l_x_l_"'
	last 'group: bash_map__-l_x_l_'
	ends 0 explain --rules "$work/exporter.yaml" --proc "$proc" 30
	line '  line 3, "b": cmdline "" does not match "-l"')"

cat >"$work/many.yaml" <<'END'
rules:
- {name: "h-{{.PID}}", comm: help, max_groups: 2, overflow: h-more}
- {name: single, comm: cron, per_process: {by: pid}}
END
cat >"$work/few.yaml" <<'END'
limits: {groups: 3}
rules: [{name: "s-{{.Comm}}", any: true}]
END
point 'a name that is one too many is told, and where it is counted' "$(
	ends 0 explain --rules "$work/many.yaml" --proc "$proc" 43
	line '    {{.PID}} is "43"'
	line '  this rule has its max_groups (2) groups already: "h-more"'
	line '  (a collectd that runs already may have made other groups first)'
	last 'group: h-more'
	ends 0 explain --rules "$work/many.yaml" --proc "$proc" 41
	no_line 'already'
	last 'group: h-41'
	ends 0 explain --rules "$work/few.yaml" --proc "$proc" 104
	line '  name "s-{{.Comm}}"'
	line '  there are limits.groups (3) groups already: "other"'
	last 'group: other')"
point 'a series of its own is told' "$(
	ends 0 explain --rules "$work/many.yaml" --proc "$proc" 80
	line '  it has a series of its own: "single.80"'
	last 'group: single')"

# --- The command ---

point 'several processes come one after the other, briefly in one line each' "$(
	named 100 101
	[ "$(grep -c '^process ' "$work/out")" = 2 ] || echo 'not 2 processes'
	[ "$(grep -c '^$' "$work/out")" = 1 ] || echo 'no line between'
	named --brief 100 102
	silent
	printf '%s\n' '100 group: pg-walwriter' '100 group user: user.ann' \
		'100 group unit: unit.u_session-3.scope' \
		'102 group: run_in_My_App' '102 group user: user.ann' \
		'102 group unit: unit.u_session-3.scope' >"$work/want"
	diff "$work/want" "$work/out"
	named --brief --view app 60 100
	printf '%s\n' '60 group: other' '100 group: pg-walwriter' >"$work/want"
	diff "$work/want" "$work/out")"
point 'a process that is not there is told, with status 1' "$(
	ends 1 explain --rules "$work/names.yaml" --proc "$proc" 999
	says err 'there is no process 999 in '
	[ ! -s "$work/out" ] || cat "$work/out"
	ends 1 explain --brief --rules "$work/names.yaml" --proc "$proc" 100 999 101
	says err 'there is no process 999 in '
	line '100 group: pg-walwriter'
	line '101 group: pg-backend')"
point 'what is no number of a process is told, with status 2' "$(
	for pid in 0 -1 x 1x 1.5 99999999999999999999 ''; do
		ends 2 explain --rules "$work/names.yaml" --proc "$proc" -- \
			100 "$pid"
		says err 'not the number of a process'
		[ ! -s "$work/out" ] || cat "$work/out"
	done
	ends 2 explain --rules "$work/names.yaml"
	says err 'which process'
	ends 2 explain --count 1 1
	says err 'does not take'
	ends 2 dump --brief
	says err 'does not take')"
point 'rules that are wrong are told with their places, with status 1' "$(
	printf 'rules:\n- {name: a, comn: x}\n' >"$work/wrong.yaml"
	ends 1 explain --rules "$work/wrong.yaml" --proc "$proc" 10
	says err 'wrong\.yaml:2:13: error: unknown key "comn"'
	[ ! -s "$work/out" ] || cat "$work/out"
	ends 1 explain --rules "$work/none.yaml" --proc "$proc" 10
	says err 'none\.yaml.*No such file'
	ends 1 explain --rules "$work/names.yaml" --proc "$work/none" 10
	says err 'none.*No such file')"
point 'where nothing can be written explain fails' "$(
	status=0
	timeout -k 5 20 "$command" explain --rules "$work/names.yaml" \
		--proc "$proc" 10 >/dev/full 2>"$work/err" || status=$?
	[ "$status" = 1 ] || echo "status $status"
	says err 'No space left')"

# --- This host ---

# start SECONDS NAME ARGUMENT...: a shell by another name that waits.
mkdir "$work/bin"
mkfifo "$work/never"
start() {
	cp /bin/sh "$work/bin/$1" 2>/dev/null || true
	name=$1
	shift
	"$work/bin/$name" -c 'read -r x' "$@" <>"$work/never" &
	children="$children $!"
}

start nginx
start nginx
start postgres
start redis-server
start java -jar /opt/shop.jar
start php-fpm
start Xorg
start slurmd
start munged
start kubelet
start containerd-shim
start my-own-thing

# Rules of others may ask for what this version does not collect yet.
rules() {
	if "$command" check "$1" >/dev/null 2>&1; then
		cp "$1" "$work/rules.yaml"
	else
		sed -E '/collect:/s/,? *(gpu: *[a-z]+|pss: *(\{[^}]*\}|[a-z]+))//g' \
			"$1" >"$work/rules.yaml"
	fi
	"$command" check "$work/rules.yaml" 2>&1 | grep -v 'no errors$' || true
}

# counts_of FILE: "GROUP N" of each group with members, from what dump printed.
counts_of() {
	sed -nE 's|^PUTVAL "[^/]*/proctally-([^/]*)/ps_count" [^ ]+ [0-9.]+:([0-9]+):.*|\1 \2|p' \
		"$1" | awk '$2 > 0' | sort
}

# counted FILE: the same of what explain printed. A group with a series for
# each member has that series beside it, which explain does not count.
counted() {
	awk '!/\((dropped|undecided)\)$/ { n[$NF]++ }
		END { for (g in n) print g, n[g] }' "$1" | sort
}

# snapshot: all processes of this host as a /proc that stands still.
snapshot() {
	mkdir -p "$work/still/proc" "$work/still/etc"
	cp /etc/passwd /etc/group "$work/still/etc"
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		mkdir "$work/still/proc/$pid"
		for file in stat status cgroup; do
			cat "$dir/$file" >"$work/still/proc/$pid/$file" \
				2>/dev/null || true
		done
		timeout 1 cat "$dir/cmdline" >"$work/still/proc/$pid/cmdline" \
			2>/dev/null || true
		ln -s "$(readlink "$dir/exe" 2>/dev/null || echo /none)" \
			"$work/still/proc/$pid/exe"
		[ -s "$work/still/proc/$pid/stat" ] ||
			rm -r "${work:?}/still/proc/$pid"
	done
}
snapshot

for file in "$src/config/proctally.yaml" "$src"/config/examples/*.yaml; do
	point "on a copy of this host, explain and dump agree: $(basename "$file")" "$(
		rules "$file"
		# Series of single processes would be counted beside groups.
		sed -i '/per_process:/d' "$work/rules.yaml"
		ends 0 dump --rules "$work/rules.yaml" --proc "$work/still/proc" \
			--count 1
		counts_of "$work/out" >"$work/dumped"
		# shellcheck disable=SC2046
		ends 0 explain --brief --rules "$work/rules.yaml" \
			--proc "$work/still/proc" $(ls "$work/still/proc")
		counted "$work/out" >"$work/explained"
		[ -s "$work/dumped" ] || echo 'nothing to compare'
		diff "$work/dumped" "$work/explained"
		cp "$work/out" "$work/brief"
		# The reasons lead to the same.
		# shellcheck disable=SC2046
		ends 0 explain --rules "$work/rules.yaml" \
			--proc "$work/still/proc" $(ls "$work/still/proc")
		awk '$1 == "process" { pid = $2 }
			/^group/ { print pid, $0 }' "$work/out" |
			diff "$work/brief" -
		no_line 'it has changed\|it is where it was\|it has no group')"
done

# compare_live FILE: one look at this host; findings, or what was compared.
compare_live() {
	run dump --rules "$work/rules.yaml" --count 1
	counts_of "$work/out" >"$work/before"
	# shellcheck disable=SC2086
	ends 0 explain --brief --rules "$work/rules.yaml" $children
	cp "$work/out" "$work/ours"
	counted "$work/ours" >"$work/ours.n"
	# shellcheck disable=SC2046
	run explain --brief --rules "$work/rules.yaml" \
		$(cd /proc && echo [0-9]*)
	counted "$work/out" >"$work/explained"
	run dump --rules "$work/rules.yaml" --count 1
	counts_of "$work/out" >"$work/after"
	awk '
	FILENAME ~ /before$/ { before[$1] = $2 }
	FILENAME ~ /after$/ { after[$1] = $2 }
	FILENAME ~ /ours.n$/ { ours[$1] = $2 }
	FILENAME ~ /explained$/ { all[$1] = $2 }
	END {
		# A group of children of ours alone: nobody comes and goes.
		for (g in ours) {
			if (ours[g] != all[g])
				continue
			exact++
			if (before[g] != ours[g] || after[g] != ours[g])
				print g ": dump has " before[g] " and " \
					after[g] ", explain " ours[g]
		}
		if (exact < 1)
			print "no group of our own"
		for (g in all) {
			least = before[g] < after[g] ? before[g] : after[g]
			most = before[g] > after[g] ? before[g] : after[g]
			if (all[g] < least - 10 || all[g] > most + 10)
				print g ": dump has " before[g] " and " \
					after[g] ", explain " all[g]
		}
	}' "$work/before" "$work/after" "$work/ours.n" "$work/explained"
}

for file in "$src/config/proctally.yaml" "$src"/config/examples/*.yaml; do
	point "on this host, explain and dump agree: $(basename "$file")" "$(
		rules "$file"
		sed -i '/per_process:/d' "$work/rules.yaml"
		for _ in 1 2 3 4 5; do
			findings=$(compare_live)
			[ -n "$findings" ] || break
		done
		printf '%s' "$findings")"
done

# A command of ours has threads beside its first one.
"$command" dump --rules "$work/all.yaml" --interval 60 >"$work/daemon" 2>&1 &
daemon=$!
children="$children $daemon"
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ -s "$work/daemon" ] || sleep 0.5
done
thread=
for task in "/proc/$daemon/task"/*; do
	[ "${task##*/}" = "$daemon" ] || thread=${task##*/}
done
point 'the number of a thread stands for its process' "$(
	[ -n "$thread" ] || echo 'no thread'
	ends 0 explain --rules "$work/all.yaml" "$thread"
	line "$thread is a thread of process $daemon."
	line "process $daemon (proctally)"
	last 'group: all'
	ends 0 explain --brief --rules "$work/all.yaml" "$thread"
	last "$thread group: all")"

name='a process that hidepid keeps from us is told so'
mkdir "$work/mnt"
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null &&
	unshare -m mount -t proc -o hidepid=2 proc "$work/mnt" 2>/dev/null; then
	# shellcheck disable=SC2086,SC2016
	point "$name" "$(
		# hide OPTION: as nobody, below a /proc with that hidepid.
		hide() {
			status=0
			unshare -m sh -c 'mount -t proc -o hidepid=$1 proc "$2" &&
				shift 2 && exec "$@"' sh "$1" "$work/mnt" \
				$as_nobody "$work/proctally" explain \
				--rules "$work/all.yaml" --proc "$work/mnt" \
				"$daemon" >"$work/out" 2>"$work/err" || status=$?
			[ "$status" = 1 ] || echo "hidepid=$1: status $status"
			[ ! -s "$work/out" ] || cat "$work/out"
		}
		hide 2
		says err "process $daemon is not shown in .*, which is mounted with hidepid"
		hide 1
		says err "the files of process $daemon in .* cannot be read")"
else
	skip "$name" 'no mounts here'
fi

# Processes that keep their readers waiting.
name='a process that hangs is explained as far as it goes'
if [ -x "$build/tests/stuckfs" ]; then
	mkfifo "$work/hold"
	"$build/tests/stuckfs" 1 60 exec <"$work/hold" >"$work/stuck" 2>&1 &
	children="$children $!"
	exec 9>"$work/hold"
	for _ in $(seq 100); do
		! grep -q ready "$work/stuck" || break
		sleep 0.1
	done
	if grep -q ready "$work/stuck"; then
		stuck=$(head -n 1 "$work/stuck")
		point "$name" "$(
			start=$(date +%s)
			ends 0 explain --rules "$work/all.yaml" "$stuck"
			[ "$(($(date +%s) - start))" -le 10 ] ||
				echo 'it took too long'
			says out "^$stuck .* is in no group yet: more has to"
			says out '^  It keeps whoever reads its files waiting'
			last 'group: (undecided)'
			ends 0 explain --brief --rules "$work/all.yaml" "$stuck"
			last "$stuck group: (undecided)")"
	else
		skip "$name" 'no FUSE here'
	fi
	exec 9>&-
else
	skip "$name" 'built without FUSE'
fi

plan
