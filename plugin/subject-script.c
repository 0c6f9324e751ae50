/* SPDX-License-Identifier: MIT */
#include "subject-script.h"

/*
 * The options of one kind of interpreter; letters are those of short options,
 * which may stand together behind one dash.
 */
struct dialect {
	const char *names;    /* its base names begin with one of these */
	bool whole;	      /* or are one of these */
	const char *code;     /* letters: then there is no script */
	const char *next;     /* these take the next argument with them */
	const char *attached; /* these take what stands behind them */
	const char *module;   /* what these take is the script, as it is */
	const char *file;     /* the same, by its path */
	const char *words;    /* options that take the next argument */
	const char *commands; /* words that may stand before the script */
};

/* From their manual pages; an option that is in no list is a switch. */
static const struct dialect dialects[] = {
    {.names = "sh bash dash ash ksh mksh zsh",
     .whole = true,
     .code = "cs",
     .next = "oO",
     .words = "--rcfile --init-file"},
    {.names = "python pypy",
     .code = "c",
     .next = "WXQ",
     .module = "m",
     .words = "--check-hash-based-pycs"},
    {.names = "perl", .code = "eE", .next = "I", .attached = "CDFimMxV"},
    {.names = "ruby", .code = "e", .next = "rICEX", .attached = "FiKTWx"},
    {.names = "php",
     .code = "rRBE",
     .next = "cdgStz",
     .file = "fF",
     .words = "--php-ini --define --docroot --server"},
    {.names = "node",
     .code = "ep",
     .next = "rC",
     .words = "--require --import --loader --experimental-loader "
	      "--conditions --env-file --title",
     .commands = "inspect"},
    {.names = "bun",
     .code = "ep",
     .next = "rc",
     .words = "--preload --require --config --cwd --env-file",
     .commands = "run"},
    {.names = "deno",
     .next = "c",
     .words = "--config --import-map --env-file",
     .commands = "run serve"},
    {.names = "lua", .next = "elbj", .attached = "O"},
    {.names = "tclsh", .words = "-encoding"},
    {.names = "Rscript", .code = "e"},
    /* Any other. */
    {.names = "", .code = "ce"},
};

/* Is it a word of the list, or does it begin with one? */
static bool is_in(const char *list, struct str word, bool whole)
{
	while (list && *list) {
		struct str item = {list, strcspn(list, " ")};

		if (whole ? str_eq(word, item) : str_begins(word, item))
			return true;
		list += item.n + (list[item.n] == ' ');
	}
	return false;
}

static const struct dialect *dialect_of(struct str exe)
{
	const struct dialect *d = dialects;

	while (*d->names && !is_in(d->names, exe, d->whole))
		d++;
	return d;
}

static bool has_letter(const char *letters, char c)
{
	return letters && c && strchr(letters, c);
}

/* The base name of a path without what follows its last dot. */
static struct str stem(struct str path)
{
	const char *slash, *dot;

	while (path.n > 1 && path.s[path.n - 1] == '/')
		path.n--;
	slash = memrchr(path.s, '/', path.n);
	if (slash) {
		path.n -= (size_t)(slash + 1 - path.s);
		path.s = slash + 1;
	}
	dot = path.n ? memrchr(path.s, '.', path.n) : NULL;
	if (dot && dot > path.s)
		path.n = (size_t)(dot - path.s);
	return path;
}

enum expect {
	EXPECT_SCRIPT, /* or an option */
	EXPECT_VALUE,  /* of an option */
	EXPECT_MODULE,
	EXPECT_FILE,
	EXPECT_NOTHING, /* there is no script */
};

/* Short options; what stands behind a module's or a file's is its value. */
static enum expect read_letters(const struct dialect *d, struct str word,
				struct str *ret_value)
{
	/* It is not known which letters of others stand together. */
	if (!*d->names && word.n > 2)
		return EXPECT_SCRIPT;
	for (size_t i = 1; i < word.n; i++) {
		struct str behind = {word.s + i + 1, word.n - i - 1};
		char c = word.s[i];

		if (has_letter(d->code, c))
			return EXPECT_NOTHING;
		if (has_letter(d->next, c))
			return behind.n ? EXPECT_SCRIPT : EXPECT_VALUE;
		if (has_letter(d->attached, c))
			break;
		if (!has_letter(d->module, c) && !has_letter(d->file, c))
			continue;
		*ret_value = behind;
		return has_letter(d->module, c) ? EXPECT_MODULE : EXPECT_FILE;
	}
	return EXPECT_SCRIPT;
}

/* What comes after an option; *ret_value is what it has of that itself. */
static enum expect read_option(const struct dialect *d, struct str word,
			       struct str *ret_value)
{
	*ret_value = STR("");
	if (is_in(d->words, word, true))
		return EXPECT_VALUE;
	if (!str_begins(word, STR("--")))
		return read_letters(d, word, ret_value);
	if (has_letter(d->file, 'f') && str_eq(word, STR("--file")))
		return EXPECT_FILE;
	return str_eq(word, STR("--eval")) || str_eq(word, STR("--print"))
		   ? EXPECT_NOTHING
		   : EXPECT_SCRIPT;
}

/* "+o" switches off in a shell what "-o" switches on. */
static bool is_option(const struct dialect *d, struct str word)
{
	return word.n > 1 &&
	       (word.s[0] == '-' || (word.s[0] == '+' && d->whole));
}

struct str script_find(struct str exe, struct str rest)
{
	const struct dialect *d = dialect_of(exe);
	const char *commands = d->commands;
	enum expect expect = EXPECT_SCRIPT;
	bool options = true;

	while (rest.n > 0 && expect != EXPECT_NOTHING) {
		struct str word = {rest.s, strnlen(rest.s, rest.n)};
		size_t step = MIN(word.n + 1, rest.n);

		rest.s += step;
		rest.n -= step;
		if (expect == EXPECT_VALUE || word.n == 0) {
			expect = EXPECT_SCRIPT;
			continue;
		}
		if (expect == EXPECT_SCRIPT && options && is_option(d, word)) {
			options = !str_eq(word, STR("--"));
			expect = read_option(d, word, &word);
			if (!word.n)
				continue;
		}
		if (expect == EXPECT_MODULE)
			return word;
		if (expect != EXPECT_SCRIPT || !is_in(commands, word, true))
			return str_eq(word, STR("-")) ? STR("") : stem(word);
		commands = NULL;
	}
	return STR("");
}
