/* SPDX-License-Identifier: MIT */
#include "gpu-fdinfo.h"
#include "proctext.h"

/* A text that is known when this is compiled, as a struct str. */
#define WORD(literal)                                                          \
	{                                                                      \
		literal, sizeof(literal) - 1                                   \
	}

enum units {
	UNITS_NONE,  /* a number and nothing else */
	UNITS_NS,    /* "ns" has to be there */
	UNITS_HZ,    /* Hz, KHz, MHz or nothing */
	UNITS_BYTES, /* KiB, MiB, or nothing for bytes; each line its own */
	UNITS_KB,    /* "kB" of 1024 bytes has to be there */
};

static const struct {
	enum units units;
	struct str name;
	uint64_t factor;
} unit_names[] = {
    {UNITS_NONE, WORD(""), 1},
    {UNITS_NS, WORD("ns"), 1},
    {UNITS_HZ, WORD(""), 1},
    {UNITS_HZ, WORD("Hz"), 1},
    {UNITS_HZ, WORD("KHz"), 1000},
    {UNITS_HZ, WORD("MHz"), 1000000},
    {UNITS_BYTES, WORD(""), 1},
    {UNITS_BYTES, WORD("KiB"), 1024},
    {UNITS_BYTES, WORD("MiB"), 1024 * 1024},
    {UNITS_KB, WORD("kB"), 1024},
};

/* Keys that end in the name of an engine; the first that fits is meant. */
static const struct {
	struct str prefix; /* behind "drm-" */
	enum units units;
	unsigned has;
	size_t offset; /* of a uint64_t in struct gpu_engine */
	bool adds;     /* two hardware blocks may go by one name */
} engine_keys[] = {
    {WORD("engine-capacity-"), UNITS_NONE, GPU_CAPACITY,
     offsetof(struct gpu_engine, capacity), false},
    {WORD("engine-"), UNITS_NS, GPU_BUSY, offsetof(struct gpu_engine, busy_ns),
     true},
    {WORD("total-cycles-"), UNITS_NONE, GPU_TOTAL,
     offsetof(struct gpu_engine, total_cycles), false},
    {WORD("cycles-"), UNITS_NONE, GPU_CYCLES,
     offsetof(struct gpu_engine, cycles), true},
    {WORD("maxfreq-"), UNITS_HZ, GPU_MAXFREQ,
     offsetof(struct gpu_engine, maxfreq_hz), false},
    {WORD("curfreq-"), UNITS_HZ, GPU_CURFREQ,
     offsetof(struct gpu_engine, curfreq_hz), false},
};

/* Keys that end in the name of a region; "total-cycles-" comes before. */
static const struct {
	struct str prefix; /* behind "drm-" */
	enum gpu_size size;
} region_keys[] = {
    {WORD("total-"), GPU_SIZE_TOTAL},
    {WORD("shared-"), GPU_SIZE_SHARED},
    {WORD("active-"), GPU_SIZE_ACTIVE},
    {WORD("resident-"), GPU_SIZE_RESIDENT},
    {WORD("purgeable-"), GPU_SIZE_PURGEABLE},
    {WORD("memory-"), GPU_SIZE_MEMORY},
};

/* Memory of amdgpu in Linux 5.14 to 5.18 (amdgpu_fdinfo.c). */
static const struct {
	const char *key, *region;
} old_keys[] = {
    {"vram mem", "vram"},
    {"gtt mem", "gtt"},
    {"cpu mem", "cpu"},
};

/* What identifies a client; of repeated lines the first counts. */
struct identity {
	struct str driver, pdev, old_pdev;
	bool has_id, has_pasid;
	uint64_t id, pasid;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct str trim(struct str s)
{
	while (s.n && is_blank(s.s[0]))
		s = (struct str){s.s + 1, s.n - 1};
	while (s.n && is_blank(s.s[s.n - 1]))
		s.n--;
	return s;
}

/* A number with one of the units that may stand behind it. */
static bool parse_value(struct str s, enum units units, uint64_t *ret)
{
	const char *at = s.s, *end = s.s + s.n;
	struct str unit;
	uint64_t v;

	if (!proctext_number(&at, end, &v) || (at < end && !is_blank(*at)))
		return false;
	unit = trim((struct str){at, (size_t)(end - at)});
	for (size_t i = 0; i < ARRAY_SIZE(unit_names); i++)
		if (unit_names[i].units == units &&
		    str_eq(unit, unit_names[i].name))
			return !__builtin_mul_overflow(v, unit_names[i].factor,
						       ret);
	return false;
}

/* Drivers, devices, engines and regions have names without blanks. */
static bool is_name(struct str s, size_t size)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.s[i] <= ' ')
			return false;
	return s.n > 0 && s.n < size;
}

static bool is_word(struct str s)
{
	return is_name(s, GPU_WORD_SIZE);
}

static struct gpu_engine *engine_of(struct gpu_reading *r, struct str name)
{
	struct gpu_engine *e;

	for (unsigned i = 0; i < r->n_engines; i++)
		if (str_eq(r->engine[i].name, name))
			return &r->engine[i];
	if (r->n_engines == GPU_ENGINES_MAX)
		return NULL;
	e = &r->engine[r->n_engines++];
	*e = (struct gpu_engine){.name = name, .capacity = 1};
	return e;
}

static struct gpu_region *region_of(struct gpu_reading *r, struct str name)
{
	struct gpu_region *m;

	for (unsigned i = 0; i < r->n_regions; i++)
		if (str_eq(r->region[i].name, name))
			return &r->region[i];
	if (r->n_regions == GPU_REGIONS_MAX)
		return NULL;
	m = &r->region[r->n_regions++];
	*m = (struct gpu_region){.name = name};
	return m;
}

static void set_size(struct gpu_reading *r, struct str name, enum gpu_size size,
		     uint64_t bytes)
{
	struct gpu_region *m = region_of(r, name);

	if (!m || m->has & 1u << size)
		return;
	m->has |= 1u << size;
	m->bytes[size] = bytes;
}

/* What is left of a key behind its prefix. */
static bool take_prefix(struct str key, struct str prefix, struct str *ret)
{
	if (!str_begins(key, prefix))
		return false;
	*ret = (struct str){key.s + prefix.n, key.n - prefix.n};
	return true;
}

/* True if the key is one of an engine, whatever its value is. */
static bool take_engine(struct gpu_reading *r, struct str key, struct str value)
{
	for (size_t i = 0; i < ARRAY_SIZE(engine_keys); i++) {
		struct gpu_engine *e;
		struct str name;
		uint64_t v, *field;

		if (!take_prefix(key, engine_keys[i].prefix, &name))
			continue;
		if (!is_word(name) ||
		    !parse_value(value, engine_keys[i].units, &v))
			return true;
		e = engine_of(r, name);
		if (!e)
			return true;
		field = (uint64_t *)((char *)e + engine_keys[i].offset);
		if (!(e->has & engine_keys[i].has))
			*field = v;
		else if (engine_keys[i].adds &&
			 __builtin_add_overflow(*field, v, field))
			*field = UINT64_MAX;
		e->has |= engine_keys[i].has;
		e->capacity = MAX(e->capacity, UINT64_C(1));
		return true;
	}
	return false;
}

static void take_region(struct gpu_reading *r, struct str key, struct str value)
{
	for (size_t i = 0; i < ARRAY_SIZE(region_keys); i++) {
		struct str name;
		uint64_t bytes;

		if (!take_prefix(key, region_keys[i].prefix, &name))
			continue;
		if (is_word(name) && parse_value(value, UNITS_BYTES, &bytes))
			set_size(r, name, region_keys[i].size, bytes);
		return;
	}
}

static void take_name(struct str *to, struct str value, size_t size)
{
	if (!to->n && is_name(value, size))
		*to = value;
}

static void take_number(bool *has, uint64_t *to, struct str value)
{
	uint64_t v;

	if (*has || !parse_value(value, UNITS_NONE, &v))
		return;
	*has = true;
	*to = v;
}

static bool take_identity(struct identity *id, struct gpu_reading *r,
			  struct str key, struct str value)
{
	if (str_eq(key, STR("driver")))
		take_name(&id->driver, value, GPU_WORD_SIZE);
	else if (str_eq(key, STR("client-id")))
		take_number(&id->has_id, &id->id, value);
	else if (str_eq(key, STR("client-name")))
		take_name(&r->client_name, value, SIZE_MAX);
	else if (str_eq(key, STR("pdev")))
		take_name(&id->pdev, value, GPU_NAME_SIZE);
	else
		return false;
	return true;
}

static void take_line(struct identity *id, struct gpu_reading *r,
		      struct str line)
{
	const char *colon = memchr(line.s, ':', line.n);
	struct str key, value;

	if (!colon)
		return;
	key = (struct str){line.s, (size_t)(colon - line.s)};
	value = trim((struct str){colon + 1, line.n - key.n - 1});
	if (str_eq(key, STR("pdev")))
		take_name(&id->old_pdev, value, GPU_NAME_SIZE);
	else if (str_eq(key, STR("pasid")))
		take_number(&id->has_pasid, &id->pasid, value);
	if (take_prefix(key, STR("drm-"), &key) &&
	    !take_identity(id, r, key, value) && !take_engine(r, key, value))
		take_region(r, key, value);
}

typedef void line_fn(struct identity *id, struct gpu_reading *r,
		     struct str line);

static void each_line(struct str text, line_fn *fn, struct identity *id,
		      struct gpu_reading *r)
{
	const char *end = text.s + text.n;

	for (const char *line = text.s; line < end;) {
		const char *eol = memchr(line, '\n', (size_t)(end - line));

		if (!eol)
			eol = end;
		if (eol > line)
			fn(id, r, (struct str){line, (size_t)(eol - line)});
		line = eol + 1;
	}
}

/*
 * The percentages of the old words are of an unknown time, and 5.05 is written
 * 5.5: they tell nothing.
 */
static void take_old_line(struct identity *id _unused_, struct gpu_reading *r,
			  struct str line)
{
	const char *colon = memchr(line.s, ':', line.n);
	struct str key, value;
	uint64_t bytes;

	if (!colon)
		return;
	key = (struct str){line.s, (size_t)(colon - line.s)};
	value = trim((struct str){colon + 1, line.n - key.n - 1});
	for (size_t i = 0; i < ARRAY_SIZE(old_keys); i++)
		if (str_eq(key, str_of(old_keys[i].key)) &&
		    parse_value(value, UNITS_KB, &bytes))
			set_size(r, str_of(old_keys[i].region), GPU_SIZE_MEMORY,
				 bytes);
}

int gpu_fdinfo_parse(struct str text, struct gpu_reading *ret)
{
	struct identity id = {0};

	ret->driver = ret->device = ret->client_name = (struct str){NULL, 0};
	ret->only_if_alone = ret->has_unseen = false;
	ret->n_engines = ret->n_regions = 0;
	each_line(text, take_line, &id, ret);
	if (!id.driver.n && id.old_pdev.n && id.has_pasid) {
		id.driver = STR("amdgpu");
		ret->n_engines = ret->n_regions = 0;
		each_line(text, take_old_line, &id, ret);
	}
	if (!id.pdev.n)
		id.pdev = id.old_pdev;
	if (!id.driver.n || (!id.has_id && !(id.has_pasid && id.pdev.n)))
		return GPU_NO_CLIENT;
	ret->driver = id.driver;
	ret->device = id.pdev;
	ret->kind = id.has_id ? GPU_ID_CLIENT : GPU_ID_PASID;
	ret->id = id.has_id ? id.id : id.pasid;
	return 0;
}
