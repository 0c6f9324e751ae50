/* SPDX-License-Identifier: MIT */
/* Name templates, what they refuse, and names that every writer keeps. */
#include "name.h"
#include "suggest.h"
#include "tap.h"

#include <locale.h>

static char *captures[] = {(char *)"role", (char *)"jar", (char *)"x"};

static struct subject known(void)
{
	return (struct subject){
	    .have = SUBJECT_BIT(SUBJECT_N) - 1,
	    .pid = 4242,
	    .start_time = 1700000000,
	    .comm = STR("Java"),
	    .uid = 501,
	    .user = STR("joe"),
	    .cgroup = STR("/system.slice/app.service"),
	    .unit = STR("app.service"),
	    .slice = STR("system.slice"),
	    .container = STR("web01"),
	    .exe_path = STR("/usr/lib/jvm/bin/java"),
	    .cmdline = STR("/usr/bin/JAVA -jar /srv/shop.jar"),
	    .argv0 = STR("/usr/bin/JAVA"),
	    .exe = STR("JAVA"),
	};
}

static struct name *compile(const char *text)
{
	struct name *n = NULL;
	struct diag d;

	diag_init(&d, "rules.yaml");
	check_int(name_compile(str_of(text), captures, ARRAY_SIZE(captures), &d,
			       1, 1, &n),
		  0);
	if (d.n_msgs)
		printf("# %s: %s\n", text, d.msg[0].text);
	diag_done(&d);
	return n;
}

static struct name_result expand(const char *text, struct subject s)
{
	const struct rule_verdict v = {
	    .capture = {{STR("role"), STR("walwriter")},
			{STR("jar"), STR("/srv/My Shop.jar")},
			{STR("x"), STR("")}},
	    .n_captures = 3,
	};
	struct name_result r = {.text = "nothing"};
	struct name *n = compile(text);

	if (n)
		name_expand(n, &s, &v, &r);
	name_free(n);
	return r;
}

static void check_name(const char *text, const char *want)
{
	struct name_result r = expand(text, known());

	check_text(r.text, want);
}

static void tokens(void)
{
	check_name("plain", "plain");
	check_name("a{{.Comm}}b", "aJavab");
	check_name("{{.ExeBase}}", "JAVA");
	check_name("{{.ExeFull}}", "x_usr_bin_JAVA");
	check_name("{{.ExePath}}", "x_usr_lib_jvm_bin_java");
	check_name("{{.Username}}-{{.UID}}", "joe-501");
	check_name("{{.Unit}}", "app.service");
	check_name("{{.Slice}}", "system.slice");
	check_name("{{.Container}}", "web01");
	check_name("{{.Cgroup}}", "x_system.slice_app.service");
	check_name("p{{.PID}}-{{.StartTime}}", "p4242-1700000000");
	check_name("pg-{{.Matches.role}}", "pg-walwriter");
	check_name("{{.Comm}}{{.Comm}}", "JavaJava");
	check_name("{ {x} }", "x___x___");
	check_name("a}}b{c", "a__b_c");
}

static void filters(void)
{
	check_name("{{.ExePath|base}}", "java");
	check_name("{{.Cgroup|base}}", "app.service");
	check_name("{{.Comm|base}}", "Java");
	check_name("{{.Comm|lower}}", "java");
	check_name("{{.Comm|trunc:2}}", "Ja");
	check_name("{{.Comm|trunc:200}}", "Java");
	check_name("{{.Matches.x|default:none}}", "none");
	check_name("{{.Matches.role|default:none}}", "walwriter");
	check_name("{{.Matches.jar|base|lower|trunc:7}}", "my_shop");
	check_name("{{.Matches.x|lower|default:None}}", "None");
	check_name("{{.Matches.x|default:None|lower}}", "none");
	check_name("{{.Matches.x|default:abc|trunc:2}}", "ab");
	check_name("{{ .Comm }}", "Java");
	check_name("{{ .Comm | lower | trunc: 2 }}", "ja");
	check_name("{{.Matches.x | default: no name }}", "no_name");
	check_name("{{.Matches.x|default:a:b}}", "a_b");
	check_name("{{.Matches.x|default:_self}}", "x_self");
}

static void absent(void)
{
	struct subject s = known();
	struct name *n;
	struct name_result r;

	s.have = 0;
	check_text(expand("{{.Comm}}", s).text, "unknown");
	check_text(expand("u-{{.Unit}}", s).text, "u-");
	check_text(expand("{{.UID|default:nobody}}", s).text, "nobody");
	check_text(expand("{{.ExeBase}}", s).text, "unknown");
	s.have = SUBJECT_BIT(SUBJECT_STAT);
	s.pending = SUBJECT_BIT(SUBJECT_CMDLINE);
	check_text(expand("{{.ExeBase}}", s).text, "Java");

	/* `other` is expanded without captures. */
	n = compile("{{.Matches.role|default:none}}");
	name_expand(n, &s, NULL, &r);
	check_text(r.text, "none");
	name_free(n);
}

static void no_cmdline(void)
{
	struct subject s = known();

	s.comm = STR("kthreadd");
	s.cmdline = s.exe = s.argv0 = STR("");
	check_text(expand("{{.ExeBase}}", s).text, "kthreadd");
	check_text(expand("{{.ExeFull}}", s).text, "kthreadd");
}

static void fetch(struct subject *s, enum subject_source source)
{
	struct subject all = known();
	unsigned *asked = s->arg;

	asked[source]++;
	all.have = s->have | SUBJECT_BIT(source);
	all.arg = s->arg;
	all.fetch = s->fetch;
	*s = all;
}

static void asks(void)
{
	unsigned asked[SUBJECT_N] = {0};
	struct subject s = {.fetch = fetch, .arg = asked};

	check_text(expand("{{.Unit}}-{{.Slice}}", s).text,
		   "app.service-system.slice");
	check_u64(asked[SUBJECT_CGROUP], 1);
	check_u64(asked[SUBJECT_STAT], 0);
	check_u64(asked[SUBJECT_CMDLINE], 0);
	check_text(expand("{{.ExeBase}}", s).text, "JAVA");
	check_u64(asked[SUBJECT_CMDLINE], 1);
	check_u64(asked[SUBJECT_STAT], 0);
}

static void properties(void)
{
	static const struct {
		const char *text;
		unsigned sources;
		bool is_static, per_process;
	} t[] = {
	    {"plain", 0, true, false},
	    {"{{.Comm}}", SUBJECT_BIT(SUBJECT_STAT), false, false},
	    {"{{.ExeBase}}",
	     SUBJECT_BIT(SUBJECT_STAT) | SUBJECT_BIT(SUBJECT_CMDLINE), false,
	     false},
	    {"{{.ExePath}}{{.UID}}",
	     SUBJECT_BIT(SUBJECT_EXE) | SUBJECT_BIT(SUBJECT_OWNER), false,
	     false},
	    {"{{.Unit}}", SUBJECT_BIT(SUBJECT_CGROUP), false, false},
	    {"{{.PID}}", 0, false, true},
	    {"{{.StartTime}}", 0, false, false},
	    {"{{.Matches.role}}", 0, false, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct name *n = compile(t[i].text);

		check_u64(name_sources(n), t[i].sources);
		check(name_is_static(n) == t[i].is_static);
		check(name_is_per_process(n) == t[i].per_process);
		name_free(n);
	}
	name_free(NULL);
}

static void check_refused(const char *text, unsigned n_captures,
			  const char *want)
{
	struct name *n = (struct name *)&captures;
	struct diag d;

	diag_init(&d, "rules.yaml");
	check_int(
	    name_compile(str_of(text), captures, n_captures, &d, 3, 5, &n),
	    -EINVAL);
	check(n == (struct name *)&captures);
	check_u64(d.n_errors, 1);
	if (d.n_msgs == 1) {
		check_text(d.msg[0].text, want);
		check_u64(d.msg[0].line, 3);
		check_u64(d.msg[0].column, 5);
	}
	diag_done(&d);
}

#define OTHER_TOKENS                                                           \
	"; there are Comm, ExeBase, ExeFull, Script, ExePath, Username, UID, " \
	"Groupname, Unit, Slice, Container, Pod, Cgroup, Ancestor, PID, "      \
	"StartTime and Matches"
#define OTHER_FILTERS "; there are base, lower, trunc and default"

static void mistakes(void)
{
	check_refused("", 3, "empty name");
	check_refused("_self", 3,
		      "name \"_self\": names that begin with \"_\" are "
		      "proctally's own");
	check_refused("{{.Com}}", 3,
		      "unknown token \"Com\" (did you mean \"Comm\"?)");
	check_refused("{{.comm}}", 3,
		      "unknown token \"comm\" (did you mean \"Comm\"?)");
	check_refused("{{.Zzzzzz}}", 3,
		      "unknown token \"Zzzzzz\"" OTHER_TOKENS);
	check_refused("{{.}}", 3, "unknown token \"\"" OTHER_TOKENS);
	check_refused("{{Comm}}", 3,
		      "\"{{Comm}}\" is no token: one begins with a dot, as "
		      "{{.Comm}}");
	check_refused("{{}}", 3,
		      "\"{{}}\" is no token: one begins with a dot, as "
		      "{{.Comm}}");
	check_refused("{{.Comm", 3, "\"{{.Comm\" lacks its \"}}\"");
	check_refused("a{{.Comm}", 3, "\"{{.Comm}\" lacks its \"}}\"");
	check_refused("{{.Comm|lowr}}", 3,
		      "unknown filter \"lowr\" (did you mean \"lower\"?)");
	check_refused("{{.Comm|}}", 3, "unknown filter \"\"" OTHER_FILTERS);
	check_refused("{{.Comm|lower|}}", 3,
		      "unknown filter \"\"" OTHER_FILTERS);
	check_refused("{{.Comm|lower:x}}", 3, "filter lower takes no argument");
	check_refused("{{.Comm|trunc}}", 3,
		      "filter trunc needs a number of bytes, as trunc:20");
	check_refused("{{.Comm|trunc:0}}", 3,
		      "filter trunc needs a number of bytes, as trunc:20");
	check_refused("{{.Comm|trunc:9999999999999999999}}", 3,
		      "filter trunc needs a number of bytes, as trunc:20");
	check_refused("{{.Comm|default: }}", 3,
		      "filter default needs a text, as default:none");
	check_refused("{{.Matches}}", 3,
		      "{{.Matches}} needs the name of a capture, as "
		      "{{.Matches.x}}");
	check_refused("{{.Matches.}}", 3,
		      "{{.Matches}} needs the name of a capture, as "
		      "{{.Matches.x}}");
	check_refused("{{.Matches.rol}}", 3,
		      "unknown capture \"rol\" (did you mean \"role\"?)");
	check_refused("{{.Matches.role}}", 0,
		      "unknown capture \"role\": no pattern of this rule "
		      "captures anything by name, as (?P<x>...) does; what "
		      "stands below \"not\" captures nothing");
}

static struct name_result clean(struct str text)
{
	struct name_result r;

	name_clean(text, &r);
	return r;
}

static void cleaning(void)
{
	static const struct {
		const char *text, *clean;
	} t[] = {
	    {"web: worker 1", "web__worker_1"},
	    {"node.js", "node.js"},
	    {"kworker/0:1H-kblockd", "kworker_0_1H-kblockd"},
	    {"(sd-pam)", "x_sd-pam_"},
	    {"svc@app:8080", "svc_app_8080"},
	    {"\"quoted\"", "x_quoted_"},
	    {"a\\b", "a_b"},
	    {"50%", "50_"},
	    {"A=B;C=D", "A_B_C_D"},
	    {"~tilde", "x_tilde"},
	    {"app{env=prod}", "app_env_prod_"},
	    {"comma,equal=", "comma_equal_"},
	    {"*glob?[x]", "x_glob__x_"},
	    {"sleep 10;\necho two", "sleep_10__echo_two"},
	    {"JOBS - \xe8\xa1\x8c\xe8\xa1", "JOBS_-______"},
	    {"dev-.lxd\\x2dmounts.mount", "dev-.lxd_x2dmounts.mount"},
	    {"_self", "x_self"},
	    {"__", "x__"},
	    {"x_self", "x_self"},
	    {"", "unknown"},
	    {".", "x."},
	    {"..", "x.."},
	    {".hidden", ".hidden"},
	    {"a~b", "a_b"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct name_result r = clean(str_of(t[i].text));

		check_text(r.text, t[i].clean);
		check(r.cleaned == !!strcmp(t[i].text, t[i].clean));
		check(!r.cut);
		check_u64(r.raw_hash, hash_bytes(str_of(t[i].text)));
	}
	check_text(clean((struct str){"a\0b", 3}).text, "a_b");
}

/* Names that clean to the same text are told apart by the raw hash. */
static void raw_hash(void)
{
	struct name_result a = clean(STR("a b")), b = clean(STR("a_b"));

	check_text(a.text, b.text);
	check(a.raw_hash != b.raw_hash);
	a = expand("a{{.Comm|lower}}", known());
	check_u64(a.raw_hash, hash_bytes(STR("ajava")));
}

static void check_cut(struct str whole_clean, struct str text)
{
	struct name_result r = clean(text);
	uint64_t h = hash_bytes(whole_clean);
	char want[NAME_MAX_LEN + 1];

	snprintf(want, sizeof(want), "%.*s~%08x", NAME_KEEP_LEN, whole_clean.s,
		 (unsigned)((h >> 32) ^ (h & UINT32_MAX)));
	check(r.cut);
	check_u64(strlen(r.text), NAME_MAX_LEN);
	check_text(r.text, want);
}

static void cutting(void)
{
	static char text[100001];
	struct name_result a, b;

	memset(text, 'x', sizeof(text));
	memcpy(text, "pool-", 5);
	a = clean((struct str){text, NAME_MAX_LEN});
	check(!a.cut);
	check_u64(strlen(a.text), NAME_MAX_LEN);
	check_cut((struct str){text, 64}, (struct str){text, 64});
	check_cut((struct str){text, 100000}, (struct str){text, 100000});

	text[145] = '1';
	a = clean((struct str){text, 146});
	text[145] = '2';
	b = clean((struct str){text, 146});
	check(strcmp(a.text, b.text));
	check_int(strncmp(a.text, b.text, NAME_KEEP_LEN), 0);

	/* The x in front counts, for the length and for the hash. */
	memset(text, 'a', 64);
	memcpy(text, "x_", 2);
	check_cut((struct str){text, 64}, (struct str){text + 1, 63});
	memset(text, '.', 65);
	text[0] = 'x';
	check_cut((struct str){text, 64}, (struct str){text + 1, 63});
	check_cut((struct str){text, 65}, (struct str){text + 1, 64});
	check_u64(strlen(clean((struct str){text + 1, 62}).text), 63);
}

static void long_values(void)
{
	static char text[65536];
	struct subject s = known();
	struct name_result r;

	memset(text, 'a', sizeof(text));
	s.comm = (struct str){text, sizeof(text)};
	r = expand("{{.Comm}}-{{.Comm}}", s);
	check(r.cut);
	check_u64(strlen(r.text), NAME_MAX_LEN);
	r = expand("{{.Comm|trunc:10}}", s);
	check_text(r.text, "aaaaaaaaaa");
}

static void locales(void)
{
	const char *const names[] = {"C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		setlocale(LC_ALL, names[i]);
		check_text(clean(STR("caf\xc3\xa9 1,5")).text, "caf___1_5");
		check_text(expand("{{.Comm|lower}}I", known()).text, "javaI");
	}
	setlocale(LC_ALL, "C");
}

static void suggestions(void)
{
	static const char *const words[] = {"comm",	   "cmdline", "cgroup",
					    "cmdline_all", "user",    "uid"};
	static const struct {
		const char *word, *closest;
	} t[] = {
	    {"cmdlin", "cmdline"},
	    {"cmdlien", "cmdline"},
	    {"comand", NULL},
	    {"com", "comm"},
	    {"CGROUP", "cgroup"},
	    {"cmdlineall", "cmdline_all"},
	    {"usr", "user"},
	    {"udi", "uid"},
	    {"ui", "uid"},
	    {"x", NULL},
	    {"", NULL},
	    {"name", NULL},
	    {"comm", "comm"},
	    {"a-very-long-word-of-more-than-40-bytes-x", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		const char *got = suggest_closest(str_of(t[i].word), words,
						  ARRAY_SIZE(words));

		if (t[i].closest)
			check_text(got, t[i].closest);
		else if (got)
			printf("# %s: %s\n", t[i].word, got);
		check(!got == !t[i].closest);
	}
	check(!suggest_closest(STR("comm"), words, 0));
}

static bool is_finished(const struct name_result *r)
{
	size_t n = strlen(r->text);
	const char *set = "abcdefghijklmnopqrstuvwxyz"
			  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

	if (n < 1 || n > NAME_MAX_LEN || r->text[0] == '_' ||
	    !strcmp(r->text, ".") || !strcmp(r->text, ".."))
		return false;
	if (!r->cut)
		return strspn(r->text, set) == n;
	return n == NAME_MAX_LEN && strspn(r->text, set) == NAME_KEEP_LEN &&
	       r->text[NAME_KEEP_LEN] == '~' &&
	       strspn(r->text + NAME_KEEP_LEN + 1, "0123456789abcdef") == 8;
}

static void random_texts(void)
{
	uint64_t seed = 5;

	for (unsigned round = 0; round < 20000; round++) {
		struct name_result r;
		size_t n = round % 80;
		char *text = malloc(n + !n);

		for (size_t i = 0; i < n; i++) {
			seed = seed * 6364136223846793005u + 1;
			text[i] = (char)(seed >> 40);
			if (round % 7 == 0)
				text[i] = "._a"[(seed >> 33) % 3];
		}
		name_clean((struct str){text, n}, &r);
		check(is_finished(&r));
		free(text);
	}
}

static void random_templates(void)
{
	static const char *const pieces[] = {
	    "{{",    "}}",   ".Comm",	"|", "lower",	  "trunc:",
	    "3",     "base", "default", ":", ".Matches.", "role",
	    ".Unit", " ",    "a",	"{", "}",	  ".",
	    "\xff",  "_",    "{{.PID}}"};
	unsigned n_compiled = 0;
	uint64_t seed = 9;

	for (unsigned round = 0; round < 20000; round++) {
		char text[256] = "";
		struct name *n = NULL;
		struct name_result r;
		struct subject s = known();
		struct diag d;
		char *exact;

		for (unsigned i = 0; i < 1 + round % 10; i++) {
			seed = seed * 6364136223846793005u + 1;
			strcat(text, pieces[(seed >> 33) % ARRAY_SIZE(pieces)]);
		}
		exact = malloc(strlen(text));
		memcpy(exact, text, strlen(text));
		diag_init(&d, "rules.yaml");
		if (name_compile((struct str){exact, strlen(text)}, captures,
				 ARRAY_SIZE(captures), &d, 1, 1, &n)) {
			check_u64(d.n_errors, 1);
			check(!n);
		} else {
			n_compiled++;
			check_u64(d.n_errors, 0);
			name_expand(n, &s, NULL, &r);
			check(is_finished(&r));
		}
		name_free(n);
		diag_done(&d);
		free(exact);
	}
	check(n_compiled > 1000);
}

/* The bytes as they come, and "{SOURCE=VALUE}" after those of a token. */
static void note_byte(void *arg, char c)
{
	sprintf((char *)arg + strlen(arg), "%c", c);
}

static void note_part(void *arg, const struct name_part *part)
{
	if (part->is_token)
		sprintf((char *)arg + strlen(arg), "{%.*s=%.*s}",
			(int)part->source.n, part->source.s, (int)part->value.n,
			part->value.s ? part->value.s : "");
}

static void parts(void)
{
	const char *template = "a b-{{.ExeFull|base|lower}}.{{ .UID }}"
			       "{{.Pod|default:none}}z";
	struct subject s = known();
	struct name *n = compile(template);
	char text[256] = "";
	struct name_teller teller = {note_byte, note_part, text};
	struct name_result told, r;

	check_str(name_template(n), template);
	name_expand_told(n, &s, NULL, &teller, &told);
	check_text(text, "a b-java{{{.ExeFull|base|lower}}=/usr/bin/JAVA}."
			 "501{{{ .UID }}=501}none{{{.Pod|default:none}}=}z");
	name_expand(n, &s, NULL, &r);
	check_text(told.text, r.text);
	check(told.cleaned && told.raw_hash == r.raw_hash);
	name_free(n);
}

int main(void)
{
	TEST("each token yields its value", tokens);
	TEST("filters apply from left to right", filters);
	TEST("what is not there is empty", absent);
	TEST("parts tell what stands in a template and what it becomes", parts);
	TEST("without a command line comm stands for the program", no_cmdline);
	TEST("a source is asked for when its token is expanded", asks);
	TEST("a template knows its sources and what it is", properties);
	TEST("mistakes in a template are told, with a suggestion", mistakes);
	TEST("names from the field become clean", cleaning);
	TEST("names that become equal by cleaning can be told apart", raw_hash);
	TEST("a long name is cut and ends in a hash of the whole", cutting);
	TEST("a value of 64 KiB fits into a name", long_values);
	TEST("the locale changes nothing", locales);
	TEST("the closest word is suggested, and no far one", suggestions);
	TEST("random bytes become finished names", random_texts);
	TEST("random templates compile or are refused", random_templates);
	return tap_done();
}
