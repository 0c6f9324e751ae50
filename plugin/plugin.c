/* SPDX-License-Identifier: MIT */
/*
 * The collectd plugin: options in, value lists and log lines out. The only
 * file that knows collectd, and the only one of the plugin that logs. All
 * state is in the user data of the read callback; collectd frees it after its
 * read threads have ended (destroy_read_heap(), src/daemon/plugin.c, 5.12).
 *
 * Invariant: whatever our options or our rule file say, collectd starts, and
 * the read callback returns 0 unless /proc itself is unusable.
 */
#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>

#include "base.h"
#include "clocks.h"
#include "monitor.h"
#include "procfs.h"
#include "selfstat.h"

#define PLUGIN_NAME "proctally"
#define LOG_PREFIX PLUGIN_NAME " plugin: "

#define TEXT_OF(x) #x
#define TEXT_OF_VALUE(x) TEXT_OF(x)

/* For strings(1): what this file was built against. */
static const char build_info[] _unused_ __attribute__((used)) =
    "proctally " PROCTALLY_VERSION
    " DATA_MAX_NAME_LEN=" TEXT_OF_VALUE(DATA_MAX_NAME_LEN);

enum {
	TYPES_MAX = 32,
};

/* Is a type that we use what we take it for in this daemon? */
struct type_state {
	const char *type;
	bool usable;
};

struct instance {
	char *rules, *proc_path, *sys_path;
	struct monitor *monitor;     /* NULL until the first read */
	bool told_unusable;	     /* /proc */
	bool types_checked, foreign; /* another DATA_MAX_NAME_LEN */
	struct type_state type[TYPES_MAX];
	size_t n_types;
	cdtime_t time; /* one stamp for all values of a tick */
};

static void instance_free(void *p)
{
	struct instance *in = p;

	if (!in)
		return;
	monitor_free(in->monitor);
	free(in->rules);
	free(in->proc_path);
	free(in->sys_path);
	free(in);
}

static struct instance *instance_new(void)
{
	struct instance *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	in->rules = strdup(PROCTALLY_RULES);
	in->proc_path = strdup("/proc");
	in->sys_path = strdup("/sys");
	if (in->rules && in->proc_path && in->sys_path)
		return in;
	instance_free(in);
	return NULL;
}

/* Does the daemon know the type with just these data sources? */
static bool is_type_as_wanted(const data_set_t *ds, const char *const *names,
			      unsigned n)
{
	if (!ds || ds->ds_num != n)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (strcmp(ds->ds[i].name, names[i]) != 0)
			return false;
	return true;
}

static bool *type_slot(struct instance *in, const char *type)
{
	for (size_t i = 0; i < in->n_types; i++)
		if (strcmp(in->type[i].type, type) == 0)
			return &in->type[i].usable;
	return NULL;
}

static void check_type(struct instance *in, const char *type,
		       const char *const *names, unsigned n)
{
	bool usable;

	if (type_slot(in, type) || in->n_types == TYPES_MAX)
		return;
	usable = is_type_as_wanted(plugin_get_ds(type), names, n);
	in->type[in->n_types++] = (struct type_state){type, usable};
	if (!usable)
		plugin_log(LOG_WARNING,
			   LOG_PREFIX "type \"%s\" is missing in types.db or "
				      "differs from the stock one: its values "
				      "are not sent",
			   type);
}

/*
 * A daemon built for names of another length has its structures laid out in
 * another way, and there is no version to ask for. Its data sets tell: read
 * with the wrong length, a stock type is not what it should be.
 */
static bool is_foreign_daemon(void)
{
	static const char *const names[] = {"user", "syst"};
	const data_set_t *ds = plugin_get_ds("ps_cputime");

	return ds && strcmp(ds->type, "ps_cputime") == 0 &&
	       !(ds->ds_num == 2 && is_type_as_wanted(ds, names, 2));
}

static void check_types(struct instance *in)
{
	in->types_checked = true;
	in->foreign = is_foreign_daemon();
	if (in->foreign) {
		plugin_log(LOG_ERR,
			   LOG_PREFIX "this collectd does not have names of %d "
				      "bytes, or not the stock ps_cputime: the "
				      "plugin must be built for it; nothing is "
				      "collected",
			   DATA_MAX_NAME_LEN);
		return;
	}
	for (unsigned row = 0, n; row < METRIC_N; row += n) {
		const char *names[VALUE_LIST_MAX];

		n = metric_list_length(row);
		for (unsigned i = 0; i < n; i++)
			names[i] = metrics[row + i].ds;
		check_type(in, metrics[row].type, names, n);
	}
	for (size_t i = 0; selfstat_types[i].type; i++)
		check_type(in, selfstat_types[i].type, &selfstat_types[i].ds,
			   1);
}

static void copy_name(char *to, const char *from)
{
	size_t n = strnlen(from, DATA_MAX_NAME_LEN - 1);

	memcpy(to, from, n);
	to[n] = '\0';
}

static void on_value(void *arg, const struct value_out *v)
{
	struct instance *in = arg;
	const bool *usable = type_slot(in, v->type);
	value_list_t vl = VALUE_LIST_INIT;
	value_t values[VALUE_LIST_MAX];

	if (!usable || !*usable)
		return;
	for (unsigned i = 0; i < v->n; i++) {
		if (v->derive)
			values[i].derive =
			    (derive_t)MIN(v->u[i], (uint64_t)INT64_MAX);
		else
			values[i].gauge = v->d[i];
	}
	vl.values = values;
	vl.values_len = v->n;
	vl.time = in->time;
	copy_name(vl.plugin, PLUGIN_NAME);
	copy_name(vl.plugin_instance, v->group);
	copy_name(vl.type, v->type);
	if (v->instance)
		copy_name(vl.type_instance, v->instance);
	plugin_dispatch_values(&vl);
}

static void log_events(struct monitor *m)
{
	static const int levels[] = {
	    [MONITOR_INFO] = LOG_INFO,
	    [MONITOR_WARNING] = LOG_WARNING,
	    [MONITOR_ERROR] = LOG_ERR,
	};
	struct monitor_event e;

	while (monitor_take_event(m, &e))
		plugin_log(levels[e.level], LOG_PREFIX "%s", e.text);
}

/*
 * collectd asks one whose callback fails less and less often. What the host is
 * short of it may have again in the next interval; that says nothing of /proc.
 */
static int outcome(int r)
{
	return r < 0 && !procfs_is_transient(r) ? -1 : 0;
}

static int open_monitor(struct instance *in)
{
	struct monitor_options o = {
	    .rules_path = in->rules,
	    .proc_path = in->proc_path,
	    .sys_path = in->sys_path,
	};
	int r = monitor_open(&o, &in->monitor);

	if (r < 0 && !in->told_unusable)
		plugin_log(LOG_ERR,
			   procfs_is_transient(r)
			       ? LOG_PREFIX "cannot begin to read %s yet: %s"
			       : LOG_PREFIX "%s is unusable: %s",
			   in->proc_path, strerror(-r));
	in->told_unusable = r < 0;
	return r;
}

static int on_read(user_data_t *ud)
{
	struct instance *in = ud->data;
	struct moment now = clocks_now();
	uint64_t cpu = clocks_thread_cpu();
	struct monitor_cost cost;
	int r;

	if (!in->types_checked)
		check_types(in);
	if (in->foreign)
		return 0;
	r = in->monitor ? 0 : open_monitor(in);
	if (r < 0)
		return outcome(r);
	in->time = cdtime();
	r = monitor_tick(in->monitor, &now, on_value, in);
	log_events(in->monitor);
	if (r < 0 && !in->told_unusable)
		plugin_log(LOG_ERR,
			   LOG_PREFIX "cannot list the processes in %s: %s",
			   in->proc_path, strerror(-r));
	in->told_unusable = r < 0;
	cost.wall_ns = clocks_now().mono_ns - now.mono_ns;
	cost.cpu_ns = clocks_thread_cpu() - cpu;
	monitor_set_cost(in->monitor, &cost);
	return outcome(r);
}

static int register_read(const char *name, struct instance *in)
{
	user_data_t ud = {.data = in, .free_func = instance_free};

	/* collectd owns the instance from here on, even if this fails. */
	return plugin_register_complex_read(PLUGIN_NAME, name, on_read, 0, &ud);
}

static void take_option(struct instance *in, const oconfig_item_t *ci)
{
	const struct {
		const char *key;
		char **value;
	} options[] = {
	    {"Rules", &in->rules},
	    {"ProcPath", &in->proc_path},
	    {"SysPath", &in->sys_path},
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		char *copy;

		if (strcasecmp(ci->key, options[i].key) != 0)
			continue;
		if (ci->values_num != 1 ||
		    ci->values[0].type != OCONFIG_TYPE_STRING) {
			plugin_log(LOG_ERR,
				   LOG_PREFIX "option %s takes one text; it "
					      "stays \"%s\"",
				   options[i].key, *options[i].value);
			return;
		}
		copy = strdup(ci->values[0].value.string);
		if (copy) {
			free(*options[i].value);
			*options[i].value = copy;
		}
		return;
	}
	plugin_log(LOG_ERR, LOG_PREFIX "unknown option \"%s\" is ignored",
		   ci->key);
}

/* Never fails: a non-zero return would keep collectd from starting. */
static int on_config(oconfig_item_t *ci)
{
	struct instance *in = instance_new();

	if (!in)
		return 0;
	for (int i = 0; i < ci->children_num; i++)
		take_option(in, &ci->children[i]);
	if (register_read(PLUGIN_NAME, in) == 0)
		plugin_unregister_read(PLUGIN_NAME "/default");
	else
		plugin_log(LOG_ERR, LOG_PREFIX "a further <Plugin " PLUGIN_NAME
					       "> block is ignored");
	return 0;
}

/* Without a <Plugin> block the defaults hold; a block replaces them. */
void module_register(void)
{
	struct instance *in = instance_new();

	if (in)
		register_read(PLUGIN_NAME "/default", in);
	plugin_register_complex_config(PLUGIN_NAME, on_config);
}
