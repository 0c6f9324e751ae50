/* SPDX-License-Identifier: MIT */
/*
 * The path forms of systemd, the container runtimes and Kubernetes. They are
 * told apart component by component, from the root inwards; of several that
 * say the same kind of thing the innermost counts (a container in a
 * container), but for the unit, which is systemd's own only outermost.
 */
#include "cgroup.h"

enum {
	CONTAINER_ID_LEN = 64,
};

struct cgroup_line {
	struct str id, controllers, path;
};

static bool starts_path(struct str s)
{
	return s.n > 0 && s.s[0] == '/';
}

/* Splits "id:controllers:path"; the path may hold more colons. */
static bool parse_line(struct str line, struct cgroup_line *ret)
{
	const char *first, *second;
	const struct str dead = STR(" (deleted)");

	first = line.n ? memchr(line.s, ':', line.n) : NULL;
	if (!first || first == line.s)
		return false;
	ret->id = (struct str){line.s, (size_t)(first - line.s)};
	for (size_t i = 0; i < ret->id.n; i++)
		if (line.s[i] < '0' || line.s[i] > '9')
			return false;
	first++;
	second = memchr(first, ':', line.n - (size_t)(first - line.s));
	if (!second)
		return false;
	ret->controllers = (struct str){first, (size_t)(second - first)};
	second++;
	ret->path = (struct str){second, line.n - (size_t)(second - line.s)};
	/* proc_cgroup_show() in kernel/cgroup/cgroup.c, of removed ones */
	if (str_ends(ret->path, dead))
		ret->path.n -= dead.n;
	return starts_path(ret->path);
}

static bool list_has(struct str list, struct str word)
{
	while (list.n > 0) {
		const char *comma = memchr(list.s, ',', list.n);
		size_t n = comma ? (size_t)(comma - list.s) : list.n;

		if (str_eq((struct str){list.s, n}, word))
			return true;
		n = comma ? n + 1 : n;
		list = (struct str){list.s + n, list.n - n};
	}
	return false;
}

static bool is_root(struct str path)
{
	return path.n == 0 || str_eq(path, STR("/"));
}

/* Takes the next component off `path`; false at the end. */
static bool next_component(struct str *path, struct str *ret)
{
	const char *end;

	while (path->n > 0 && path->s[0] == '/')
		*path = (struct str){path->s + 1, path->n - 1};
	if (path->n == 0)
		return false;
	end = memchr(path->s, '/', path->n);
	ret->s = path->s;
	ret->n = end ? (size_t)(end - path->s) : path->n;
	path->s += ret->n;
	path->n -= ret->n;
	return true;
}

static bool has_suffix(struct str s, struct str suffix)
{
	return s.n > suffix.n && str_ends(s, suffix);
}

bool cgroup_is_slice(struct str component)
{
	return has_suffix(component, STR(".slice"));
}

bool cgroup_is_unit(struct str component)
{
	static const struct str suffixes[] = {
	    {".service", 8}, {".scope", 6},	 {".socket", 7}, {".mount", 6},
	    {".swap", 5},    {".timer", 6},	 {".path", 5},	 {".target", 7},
	    {".device", 7},  {".automount", 10},
	};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (has_suffix(component, suffixes[i]))
			return true;
	return false;
}

/*
 * systemd puts "_" before a name that the kernel could take for a file of its
 * own: cg_escape() in src/basic/cgroup-util.c, systemd 252.
 */
static struct str unescape(struct str component)
{
	if (component.n > 0 && component.s[0] == '_')
		return (struct str){component.s + 1, component.n - 1};
	return component;
}

static bool is_container_id(struct str s)
{
	if (s.n != CONTAINER_ID_LEN)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!(s.s[i] >= '0' && s.s[i] <= '9') &&
		    !(s.s[i] >= 'a' && s.s[i] <= 'f'))
			return false;
	return true;
}

/*
 * The forms are ID, RUNTIME-ID, RUNTIME-ID.scope and SLICE:RUNTIME:ID. The
 * runtime's name does not matter, but conmon is its helper and no part of the
 * container.
 */
static bool find_container_id(struct str component, struct str *ret)
{
	const struct str scope = STR(".scope");
	struct str id, prefix;

	if (str_ends(component, scope))
		component.n -= scope.n;
	if (component.n < CONTAINER_ID_LEN)
		return false;
	prefix = (struct str){component.s, component.n - CONTAINER_ID_LEN};
	id = (struct str){component.s + prefix.n, CONTAINER_ID_LEN};
	if (!is_container_id(id))
		return false;
	if (prefix.n > 0 && prefix.s[prefix.n - 1] != '-' &&
	    prefix.s[prefix.n - 1] != ':')
		return false;
	if (prefix.n > 0 && memmem(prefix.s, prefix.n, "conmon", 6))
		return false;
	*ret = id;
	return true;
}

/* "lxc.payload.NAME", or NAME below "lxc" or "lxc.payload". */
static bool find_lxc_guest(struct str above, struct str component,
			   struct str *ret)
{
	const struct str payload = STR("lxc.payload.");

	if (str_begins(component, payload)) {
		*ret = (struct str){component.s + payload.n,
				    component.n - payload.n};
		return ret->n > 0;
	}
	if (!str_eq(above, STR("lxc")) && !str_eq(above, STR("lxc.payload")))
		return false;
	*ret = component;
	return true;
}

/* "kubepods-burstable-podUID.slice", or "podUID" somewhere below "kubepods". */
static bool find_pod(bool below_kubepods, struct str component, struct str *ret)
{
	static const struct str qualities[] = {
	    {"-pod", 4},
	    {"-burstable-pod", 14},
	    {"-besteffort-pod", 15},
	};
	const struct str kubepods = STR("kubepods"), slice = STR(".slice");
	const char *colon = memchr(component.s, ':', component.n);
	const char *start;
	struct str rest;

	if (colon)
		component.n = (size_t)(colon - component.s);
	if (!str_ends(component, slice)) {
		if (!below_kubepods || component.n <= 3 ||
		    !str_begins(component, STR("pod")))
			return false;
		*ret = (struct str){component.s + 3, component.n - 3};
		return true;
	}
	component.n -= slice.n;
	start = memmem(component.s, component.n, kubepods.s, kubepods.n);
	if (!start)
		return false;
	rest.s = start + kubepods.n;
	rest.n = component.n - (size_t)(rest.s - component.s);
	for (size_t i = 0; i < ARRAY_SIZE(qualities); i++) {
		if (rest.n <= qualities[i].n || !str_begins(rest, qualities[i]))
			continue;
		*ret = (struct str){rest.s + qualities[i].n,
				    rest.n - qualities[i].n};
		return true;
	}
	return false;
}

static void read_path(struct cgroup_names *names)
{
	struct str path = names->path, component, above = STR("");
	bool below_kubepods = false;

	while (next_component(&path, &component)) {
		struct str found;

		if (!names->unit.n) {
			if (cgroup_is_slice(component))
				names->slice = unescape(component);
			else if (cgroup_is_unit(component))
				names->unit = unescape(component);
		}
		if (find_container_id(component, &found) ||
		    find_lxc_guest(above, component, &found))
			names->container = found;
		if (find_pod(below_kubepods, component, &found))
			names->pod = found;
		below_kubepods |= str_ends(component, STR("kubepods"));
		above = component;
	}
}

/* How much a line is worth; the first of the best is taken. */
static unsigned line_rank(const struct cgroup_line *line)
{
	if (is_root(line->path))
		return 1;
	if (str_eq(line->id, STR("0")) && line->controllers.n == 0)
		return 4;
	return list_has(line->controllers, STR("name=systemd")) ? 3 : 2;
}

int cgroup_parse(struct str text, struct cgroup_names *ret)
{
	struct cgroup_names names = {.path = STR("")};
	unsigned best = 0;

	while (text.n > 0) {
		const char *end = memchr(text.s, '\n', text.n);
		struct str s = {text.s, end ? (size_t)(end - text.s) : text.n};
		size_t used = end ? s.n + 1 : s.n;
		struct cgroup_line line;

		text = (struct str){text.s + used, text.n - used};
		if (!parse_line(s, &line) || line_rank(&line) <= best)
			continue;
		best = line_rank(&line);
		names.path = line.path;
	}
	if (!best)
		return -EBADMSG;
	names.unit = names.slice = names.container = names.pod =
	    (struct str){names.path.s, 0};
	read_path(&names);
	*ret = names;
	return 0;
}
