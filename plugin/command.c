/* SPDX-License-Identifier: MIT */
/*
 * The command line: which call, with which options. It knows the calls by
 * name and nothing of what they do.
 */
#include <getopt.h>
#include <stdio.h>

#include "base.h"
#include "bench.h"
#include "check.h"
#include "dump.h"
#include "explaincmd.h"
#include "match.h"
#include "netdata.h"
#include "top.h"

enum {
	EXIT_USAGE = 2,
};

/* What all calls may be told; each uses what concerns it. */
struct options {
	const char *rules, *proc_path, *sys_path, *format, *output;
	bool pss, gpu, residual;
	double interval_s;   /* 0: not given */
	unsigned long count; /* 0: not given */
	const char *view;
	bool brief;
};

struct call {
	const char *name;
	const char *letters; /* of the options that it knows */
	const char *arguments;
	const char *help;
	int (*run)(const struct options *o, char **args, int n_args);
};

static struct monitor_options monitor_options(const struct options *o)
{
	return (struct monitor_options){
	    .rules_path = o->rules ? o->rules : PROCTALLY_RULES,
	    .proc_path = o->proc_path ? o->proc_path : "/proc",
	    .sys_path = o->sys_path ? o->sys_path : "/sys",
	};
}

static int run_check(_unused_ const struct options *o, char **args, int n_args)
{
	if (n_args == 0) {
		fprintf(stderr, "proctally check: which file?\n");
		return EXIT_USAGE;
	}
	return check_run(args, n_args);
}

static bool parse_seconds(const char *text, double *ret)
{
	char *end;
	double v = strtod(text, &end);

	if (*end || end == text || !(v >= 0.01) || v > 86400)
		return false;
	*ret = v;
	return true;
}

/* Netdata gives its plugins the seconds between two ticks as an argument. */
static bool dump_interval(const struct options *o, char **args, int n_args,
			  double *ret)
{
	const char *env = getenv("COLLECTD_INTERVAL");
	double s = 10;

	if (env)
		parse_seconds(env, &s);
	if (n_args && !parse_seconds(args[0], &s)) {
		fprintf(stderr, "proctally dump: not a number of seconds: %s\n",
			args[0]);
		return false;
	}
	*ret = o->interval_s > 0 ? o->interval_s : s;
	return true;
}

static int run_dump(const struct options *o, char **args, int n_args)
{
	struct dump_options d = {
	    .monitor = monitor_options(o),
	    .format = o->format ? format_find(o->format) : format_at(0),
	    .output = o->output,
	    .count = o->count,
	    .residual = o->residual,
	};

	if (n_args > 1) {
		fprintf(stderr, "proctally dump: too many arguments\n");
		return EXIT_USAGE;
	}
	if (!dump_interval(o, args, n_args, &d.interval_s))
		return EXIT_USAGE;
	if (!d.format) {
		fprintf(stderr, "proctally dump: unknown format \"%s\"\n",
			o->format);
		return EXIT_USAGE;
	}
	if (d.output && !format_stands_alone(d.format)) {
		fprintf(stderr, "proctally dump: %s does not fit into a file\n",
			o->format);
		return EXIT_USAGE;
	}
	if (d.residual && (o->format || o->output || o->count == 1)) {
		fprintf(stderr, "proctally dump: --residual is a table of its "
				"own, and takes two readings\n");
		return EXIT_USAGE;
	}
	return dump_run(&d);
}

static int run_bench(const struct options *o, _unused_ char **args, int n_args)
{
	struct bench_options b = {
	    .monitor = monitor_options(o),
	    .count = o->pss || o->gpu ? 60 : 20,
	    .pause_s = o->pss ? 1 : 0.2,
	};

	if (n_args) {
		fprintf(stderr, "proctally bench: takes no arguments\n");
		return EXIT_USAGE;
	}
	b.monitor.rules_path = o->rules;
	if (o->count)
		b.count = (unsigned)MIN(o->count, 1000ul);
	if (o->interval_s > 0)
		b.pause_s = o->interval_s;
	if (o->gpu) {
		b.monitor.sys_path = o->sys_path;
		return bench_gpu_run(&b);
	}
	return o->pss ? bench_pss_run(&b) : bench_run(&b);
}

static int run_import_netdata(_unused_ const struct options *o, char **args,
			      int n_args)
{
	if (n_args != 1) {
		fprintf(stderr, "proctally import-netdata: %s\n",
			n_args ? "one file at a time" : "which file?");
		return EXIT_USAGE;
	}
	return netdata_run(args[0]);
}

static int run_match(const struct options *o, _unused_ char **args, int n_args)
{
	struct match_options m = {
	    .monitor = monitor_options(o),
	    .interval_s = o->interval_s > 0 ? o->interval_s : 1,
	};

	if (n_args) {
		fprintf(stderr, "proctally match: takes no arguments\n");
		return EXIT_USAGE;
	}
	return match_run(&m);
}

static int run_top(const struct options *o, _unused_ char **args, int n_args)
{
	struct top_options t = {
	    .monitor = monitor_options(o),
	    .interval_s = o->interval_s > 0 ? o->interval_s : 2,
	    .count = o->count,
	};

	if (n_args) {
		fprintf(stderr, "proctally top: takes no arguments\n");
		return EXIT_USAGE;
	}
	return top_run(&t);
}

static int run_explain(const struct options *o, char **args, int n_args)
{
	struct explaincmd_options e = {
	    .monitor = monitor_options(o),
	    .view = o->view,
	    .brief = o->brief,
	};

	if (n_args == 0) {
		fprintf(stderr, "proctally explain: which process?\n");
		return EXIT_USAGE;
	}
	return explaincmd_run(&e, args, n_args);
}

static const struct call calls[] = {
    {"check", "", "FILE...", "say what is wrong with rule files", run_check},
    {"explain", "rpvb", "PID...", "say why a process is in its group",
     run_explain},
    {"dump", "rpsicfoR", "[S]", "print what collectd would get, every interval",
     run_dump},
    {"match", "rpsi", "", "print what each group uses, and whom no rule takes",
     run_match},
    {"top", "rpsic", "", "show what each group uses, live", run_top},
    {"bench", "rpsicPG", "", "measure what a tick costs, beside a bare loop",
     run_bench},
    {"import-netdata", "", "FILE", "print an apps_groups.conf as a rule file",
     run_import_netdata},
};

static const struct option long_options[] = {
    {"rules", required_argument, NULL, 'r'},
    {"proc", required_argument, NULL, 'p'},
    {"sys", required_argument, NULL, 's'},
    {"interval", required_argument, NULL, 'i'},
    {"count", required_argument, NULL, 'c'},
    {"format", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"view", required_argument, NULL, 'v'},
    {"brief", no_argument, NULL, 'b'},
    {"pss", no_argument, NULL, 'P'},
    {"gpu", no_argument, NULL, 'G'},
    {"residual", no_argument, NULL, 'R'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static const char *const option_help[][2] = {
    {"--rules FILE", "the rule file (" PROCTALLY_RULES ")"},
    {"--proc ROOT", "where procfs is mounted (/proc)"},
    {"--sys ROOT", "where sysfs is mounted (/sys)"},
    {"--interval S",
     "seconds between ticks (10; match: 1, top: 2, bench: 0.2)"},
    {"--count N", "ticks (for ever; bench: 20)"},
    {"--format NAME", NULL}, /* the names themselves */
    {"--output FILE", "replace this file with each tick"},
    {"--view NAME", "one view of the rule file (all)"},
    {"--brief", "the results alone"},
    {"--pss", "bench: what readings of PSS cost, in 60 ticks of 1 second"},
    {"--gpu", "bench: what looking for descriptors of GPUs costs"},
    {"--residual", "dump: CPU time of the host less that of all groups"},
    {"--help", "this text"},
    {"--version", "the version"},
};

static void print_formats(FILE *to)
{
	for (size_t i = 0; format_at(i); i++)
		fprintf(to, "%s%s", i ? ", " : "", format_name(format_at(i)));
	fprintf(to, "\n");
}

static void print_help(FILE *to)
{
	int width = 0;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		width = MAX(width, (int)(strlen(calls[i].name) +
					 strlen(calls[i].arguments)));
	fprintf(to, "Usage: proctally CALL [OPTION]... [ARGUMENT]...\n"
		    "What every process uses, by groups of your own.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		fprintf(to, "  %s %-*s  %s\n", calls[i].name,
			width - (int)strlen(calls[i].name), calls[i].arguments,
			calls[i].help);
	fprintf(to, "\n");
	for (size_t i = 0; i < ARRAY_SIZE(option_help); i++) {
		fprintf(to, "  %-15s ", option_help[i][0]);
		if (option_help[i][1])
			fprintf(to, "%s\n", option_help[i][1]);
		else
			print_formats(to);
	}
	fprintf(to, "\nSee proctally(1), and proctally(5) for rule files.\n");
}

static const struct call *find_call(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(calls); i++)
		if (strcmp(calls[i].name, name) == 0)
			return &calls[i];
	return NULL;
}

static bool parse_count(const char *text, unsigned long *ret)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*end || *text < '1' || *text > '9' || v > 1000000000)
		return false;
	*ret = v;
	return true;
}

/* Returns false if the value does not fit; getopt has said what else is. */
static bool take_option(struct options *o, int letter, const char *value)
{
	switch (letter) {
	case 'r':
		o->rules = value;
		return true;
	case 'p':
		o->proc_path = value;
		return true;
	case 's':
		o->sys_path = value;
		return true;
	case 'f':
		o->format = value;
		return true;
	case 'o':
		o->output = value;
		return true;
	case 'v':
		o->view = value;
		return true;
	case 'b':
		o->brief = true;
		return true;
	case 'P':
		o->pss = true;
		return true;
	case 'G':
		o->gpu = true;
		return true;
	case 'R':
		o->residual = true;
		return true;
	case 'i':
		return parse_seconds(value, &o->interval_s);
	case 'c':
		return parse_count(value, &o->count);
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	struct options o = {0};
	const struct call *call;
	char given[16];
	size_t n_given = 0;
	int letter;

	while ((letter = getopt_long(argc, argv, "hV", long_options, NULL)) !=
	       -1) {
		if (letter == 'h') {
			print_help(stdout);
			return 0;
		}
		if (letter == 'V') {
			printf("proctally %s\n", PROCTALLY_VERSION);
			return 0;
		}
		if (letter == '?')
			return EXIT_USAGE;
		if (n_given < sizeof(given))
			given[n_given++] = (char)letter;
		if (!take_option(&o, letter, optarg)) {
			fprintf(stderr, "proctally: not a usable value: %s\n",
				optarg);
			return EXIT_USAGE;
		}
	}
	call = find_call(argv[optind]);
	if (!call) {
		if (argv[optind])
			fprintf(stderr, "proctally: unknown call \"%s\"\n",
				argv[optind]);
		print_help(stderr);
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < n_given; i++) {
		if (strchr(call->letters, given[i]))
			continue;
		fprintf(stderr,
			"proctally %s: does not take one of these options: "
			"see proctally --help\n",
			call->name);
		return EXIT_USAGE;
	}
	return call->run(&o, argv + optind + 1, argc - optind - 1);
}
