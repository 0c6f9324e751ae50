/* SPDX-License-Identifier: MIT */
/* What the text of /proc/PID/cgroup says. */
#include "cgroup.h"
#include "tap.h"

#define HEX16 "0123456789abcdef"
#define ID HEX16 HEX16 HEX16 HEX16
#define OTHER_ID "fedcba9876543210" HEX16 HEX16 HEX16

static struct cgroup_names parse(const char *text)
{
	struct cgroup_names names = {0};

	check_int(cgroup_parse(str_of(text), &names), 0);
	return names;
}

static void unified(void)
{
	struct cgroup_names n =
	    parse("0::/user.slice/user-1000.slice/session-3.scope\n");

	check_str(n.path, "/user.slice/user-1000.slice/session-3.scope");
	check_str(n.unit, "session-3.scope");
	check_str(n.slice, "user-1000.slice");
	check_str(n.container, "");
	check_str(n.pod, "");
}

static void root(void)
{
	struct cgroup_names n = parse("0::/\n");

	check_str(n.path, "/");
	check_str(n.unit, "");
	check_str(n.slice, "");
}

static void no_line_feed(void)
{
	check_str(parse("0::/a.slice/b.service").unit, "b.service");
}

static void unified_first(void)
{
	check_str(parse("4:memory:/m\n1:name=systemd:/s\n0::/u\n").path, "/u");
}

static void hybrid(void)
{
	check_str(parse("4:memory:/m\n1:name=systemd:/s\n0::/\n").path, "/s");
	check_str(parse("4:memory:/m\n1:xattr,name=systemd:/s\n0::/\n").path,
		  "/s");
}

static void legacy(void)
{
	check_str(
	    parse("9:cpu:/\n4:memory:/m\n3:pids:/p\n1:name=systemd:/\n").path,
	    "/m");
	check_str(parse("9:cpu:/\n1:name=systemd:/\n").path, "/");
	check_str(parse("1:name=systemdx:/x\n2:name=systemd:/s\n").path, "/s");
}

static void colons(void)
{
	struct cgroup_names n = parse(
	    "0::/system.slice/kubepods-burstable-pod11112222_3333_4444_5555_"
	    "666677778888.slice:cri-containerd:" ID "\n");

	check_str(n.path, "/system.slice/kubepods-burstable-pod11112222_3333_"
			  "4444_5555_666677778888.slice:cri-containerd:" ID);
	check_str(n.container, ID);
	check_str(n.pod, "11112222_3333_4444_5555_666677778888");
	check_str(n.slice, "system.slice");
	check_str(n.unit, "");
}

static void removed(void)
{
	struct cgroup_names n = parse("0::/system.slice/a.service (deleted)\n");

	check_str(n.path, "/system.slice/a.service");
	check_str(n.unit, "a.service");
}

static void units(void)
{
	static const struct {
		const char *path, *unit, *slice;
	} t[] = {
	    {"/system.slice/nginx.service", "nginx.service", "system.slice"},
	    {"/system.slice/system-getty.slice/getty@tty1.service",
	     "getty@tty1.service", "system-getty.slice"},
	    {"/system.slice/system-getty.slice/dev-.lxd\\x2dmounts.mount",
	     "dev-.lxd\\x2dmounts.mount", "system-getty.slice"},
	    {"/system.slice/postgresql@15-main.service",
	     "postgresql@15-main.service", "system.slice"},
	    {"/user.slice/user-1.slice/user@1.service/app.slice/x.scope",
	     "user@1.service", "user-1.slice"},
	    {"/a.slice/b.socket", "b.socket", "a.slice"},
	    {"/a.slice/b.swap/c.service", "b.swap", "a.slice"},
	    {"/b.timer", "b.timer", ""},
	    {"/b.path", "b.path", ""},
	    {"/b.target", "b.target", ""},
	    {"/b.device", "b.device", ""},
	    {"/b.automount", "b.automount", ""},
	    {"/init.scope", "init.scope", ""},
	    {"/_memory.slice/_cpu.service", "cpu.service", "memory.slice"},
	    {"/user.slice/user-1.slice", "", "user-1.slice"},
	    {"/.service/.slice", "", ""},
	    {"/nginx.services/x.sliced", "", ""},
	    {"//a.slice///b.service/", "b.service", "a.slice"},
	    {"/../../a.service", "a.service", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		char line[256];
		struct cgroup_names n;

		snprintf(line, sizeof(line), "0::%s\n", t[i].path);
		n = parse(line);
		check_str(n.unit, t[i].unit);
		check_str(n.slice, t[i].slice);
	}
}

static void containers(void)
{
	static const struct {
		const char *path, *container;
	} t[] = {
	    {"/docker/" ID, ID},
	    {"/system.slice/docker-" ID ".scope", ID},
	    {"/system.slice/docker-" ID ".scope/init.scope", ID},
	    {"/kubepods.slice/kubepods-burstable.slice/"
	     "kubepods-burstable-pod1_2.slice/cri-containerd-" ID ".scope",
	     ID},
	    {"/kubepods/burstable/pod1-2/" ID, ID},
	    {"/kubepods.slice/kubepods-pod9999.slice/crio-" ID ".scope", ID},
	    {"/kubepods/pod9/crio-" ID, ID},
	    {"/machine.slice/libpod-" ID ".scope/container", ID},
	    {"/user.slice/user-1.slice/user@1.service/user.slice/libpod-" ID
	     ".scope/container",
	     ID},
	    {"/a.service/libpod-payload-" ID, ID},
	    {"/libpod_parent/libpod-" ID, ID},
	    {"/docker/" OTHER_ID "/docker/" ID, ID},
	    {"/docker/" OTHER_ID "/init", OTHER_ID},
	    {"/lxc.payload.web01/system.slice/nginx.service", "web01"},
	    {"/lxc.payload/web02", "web02"},
	    {"/lxc/101/ns/init.scope", "101"},
	    {"/lxc.payload.web01/docker/" ID, ID},
	    /* helpers */
	    {"/kubepods.slice/kubepods-pod9999.slice/crio-conmon-" ID ".scope",
	     ""},
	    {"/machine.slice/libpod-conmon-" ID ".scope", ""},
	    {"/docker/" OTHER_ID "/libpod-conmon-" ID ".scope", OTHER_ID},
	    {"/lxc.monitor.web01", ""},
	    {"/lxc.monitor/web01", ""},
	    /* nothing of the kind */
	    {"/system.slice/nginx.service", ""},
	    {"/lxc.payload.", ""},
	    {"/docker/0" ID, ""},
	    {"/docker/" HEX16 HEX16 HEX16 "0123456789abcde", ""},
	    {"/docker/" HEX16 HEX16 HEX16 "0123456789abcdeg", ""},
	    {"/docker/" HEX16 HEX16 HEX16 "0123456789ABCDEF", ""},
	    {"/lxc", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		char line[512];

		snprintf(line, sizeof(line), "0::%s\n", t[i].path);
		check_str(parse(line).container, t[i].container);
	}
}

static void docker_v1(void)
{
	check_str(
	    parse("12:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "\n")
		.container,
	    ID);
	check_str(
	    parse("5:memory:/kubepods/burstable/pod1-2/" ID "\n").container,
	    ID);
}

static void pods(void)
{
	static const struct {
		const char *path, *pod;
	} t[] = {
	    {"/kubepods.slice/kubepods-pod1_2.slice/x", "1_2"},
	    {"/kubepods.slice/kubepods-burstable.slice/"
	     "kubepods-burstable-pod1_2.slice",
	     "1_2"},
	    {"/kubepods.slice/kubepods-besteffort.slice/"
	     "kubepods-besteffort-pod1_2.slice",
	     "1_2"},
	    {"/kubepods/burstable/pod1-2/" ID, "1-2"},
	    {"/kubepods/pod1-2", "1-2"},
	    {"/kubelet.slice/kubelet-kubepods.slice/"
	     "kubelet-kubepods-pod1_2.slice",
	     "1_2"},
	    {"/kubepods.slice/kubepods-burstable.slice", ""},
	    {"/kubepods.slice/kubepods-pod.slice", ""},
	    {"/kubepods/pod", ""},
	    {"/podman/podcast", ""},
	    {"/machine.slice/pod1-2.slice", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		char line[256];

		snprintf(line, sizeof(line), "0::%s\n", t[i].path);
		check_str(parse(line).pod, t[i].pod);
	}
}

static void malformed(void)
{
	static const char *const bad[] = {
	    "",	      "\n",	   "0",	      "0:",	 "0::",	   "::/a",
	    ":cpu:/", "x::/a",	   "0:/a",    "0::a",	 "-1::/a", "\n\n\n",
	    "0 ::/a", "0::\n1:a:", "garbage", "0:a b/c", " 0::/a", "/a/b",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct cgroup_names n = {.path = STR("untouched")};

		check_int(cgroup_parse(str_of(bad[i]), &n), -EBADMSG);
		check_str(n.path, "untouched");
	}
	check_str(parse("garbage\n\n0::/a\n1:").path, "/a");
}

static bool is_within(struct str part, const char *buf, size_t n)
{
	return part.s >= buf && part.s + part.n <= buf + n;
}

/* Pieces that the parser looks for, put together at random. */
static void random_text(void)
{
	static const char *const pieces[] = {
	    "0::",
	    "/",
	    "1:name=systemd:",
	    "\n",
	    ID,
	    ".slice",
	    ".scope",
	    "kubepods",
	    "-pod",
	    "pod",
	    ":",
	    "lxc",
	    "lxc.payload.",
	    "conmon",
	    "docker-",
	    "_",
	    ".",
	    "kubepods-besteffort-pod",
	    ".service",
	    "a",
	    ",",
	    " (deleted)",
	    "-burstable-pod",
	    "5:cpu:/",
	    "\xff",
	};
	uint64_t seed = 1;
	unsigned n_good = 0;

	for (unsigned round = 0; round < 20000; round++) {
		char text[1024];
		char *exact;
		size_t n = 0;
		struct cgroup_names names;

		for (unsigned i = 0; i < 1 + round % 12; i++) {
			const char *p;

			seed = seed * 6364136223846793005u + 1;
			p = pieces[(seed >> 33) % ARRAY_SIZE(pieces)];
			memcpy(text + n, p, strlen(p));
			n += strlen(p);
		}
		if (round % 5 == 0)
			text[(seed >> 40) % n] = (char)(seed >> 50);
		/* Of that very size, for the address sanitizer. */
		exact = malloc(n);
		memcpy(exact, text, n);
		if (!cgroup_parse((struct str){exact, n}, &names)) {
			n_good++;
			check(is_within(names.path, exact, n));
			check(is_within(names.unit, exact, n));
			check(is_within(names.slice, exact, n));
			check(is_within(names.container, exact, n));
			check(is_within(names.pod, exact, n));
			check(names.path.n > 0 && names.path.s[0] == '/');
		}
		free(exact);
	}
	check(n_good > 1000);
}

int main(void)
{
	TEST("the single line of version 2 is read", unified);
	TEST("the root has a path and no names", root);
	TEST("a last line without a line feed counts", no_line_feed);
	TEST("the unified hierarchy goes before the others", unified_first);
	TEST("on a hybrid host systemd's hierarchy counts", hybrid);
	TEST("else the first hierarchy that is not at its root counts", legacy);
	TEST("a path keeps its colons", colons);
	TEST("a removed cgroup keeps its name", removed);
	TEST("unit and slice are those that systemd sees", units);
	TEST("container ids are found in the forms of all runtimes",
	     containers);
	TEST("version 1 paths of docker and kubelet have their id", docker_v1);
	TEST("pod ids are found in both forms of Kubernetes", pods);
	TEST("malformed text is refused and leaves no trace", malformed);
	TEST("random text yields parts of itself or nothing", random_text);
	return tap_done();
}
