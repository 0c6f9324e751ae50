/* SPDX-License-Identifier: MIT */
#include "gpu-internal.h"

/*
 * Words of the drivers for engines of one class. Some words stand for
 * themselves: "enc" of amdgpu also decodes where the hardware has one queue
 * for both (VCN 4; include/uapi/drm/amdgpu_drm.h), "bin" is one half of what
 * v3d calls rendering.
 */
static const struct {
	const char *engine, *class;
} classes[] = {
    {"gfx", "render"},
    {"render", "render"},
    {"rcs", "render"},
    {"fragment", "render"},
    {"gpu", "render"},
    {"panthor", "render"},
    {"compute", "compute"},
    {"ccs", "compute"},
    {"csd", "compute"},
    {"dma", "copy"},
    {"copy", "copy"},
    {"bcs", "copy"},
    {"tfu", "copy"},
    {"dec", "decode"},
    {"jpeg", "decode"},
    {"enc_1", "encode"},
    {"video", "video"},
    {"vcs", "video"},
    {"video-enhance", "video-enhance"},
    {"vecs", "video-enhance"},
    {"vpe", "video-enhance"},
    {"amdxdna_accel_driver", "npu"},
};

struct str gpu_engine_class(struct str engine)
{
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		if (str_eq(engine, str_of(classes[i].engine)))
			return str_of(classes[i].class);
	return str_begins(engine, STR("npu-")) ? STR("npu") : engine;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

enum gpu_region_class gpu_region_class(struct str region)
{
	static const struct {
		const char *name;
		enum gpu_region_class class;
	} regions[] = {
	    {"vram", GPU_REGION_DEVICE},
	    {"local", GPU_REGION_DEVICE},
	    {"stolen", GPU_REGION_DEVICE},
	    {"stolen-local", GPU_REGION_DEVICE},
	    {"system", GPU_REGION_SYSTEM},
	    {"gtt", GPU_REGION_SYSTEM},
	    {"cpu", GPU_REGION_SYSTEM},
	    {"memory", GPU_REGION_SYSTEM},
	    {"stolen-system", GPU_REGION_SYSTEM},
	    /* A page for each unit of hardware (amdgpu_object.c). */
	    {"gds", GPU_REGION_NONE},
	    {"gws", GPU_REGION_NONE},
	    {"oa", GPU_REGION_NONE},
	    {"doorbell", GPU_REGION_NONE},
	    {"mmioremap", GPU_REGION_NONE},
	};
	struct str stem = region;

	/* Where there are several of a kind they are numbered. */
	while (stem.n && is_digit(stem.s[stem.n - 1]))
		stem.n--;
	for (size_t i = 0; i < ARRAY_SIZE(regions); i++)
		if (str_eq(stem, str_of(regions[i].name)))
			return regions[i].class;
	return GPU_REGION_OTHER;
}

bool gpu_is_broker(struct str comm)
{
	static const char *const brokers[] = {
	    "systemd", "systemd-logind", "elogind", "elogind-daemon", "seatd",
	};

	for (size_t i = 0; i < ARRAY_SIZE(brokers); i++)
		if (str_eq(comm, str_of(brokers[i])))
			return true;
	return false;
}

const char *gpu_state_name(enum gpu_state state)
{
	static const char *const names[GPU_N_STATES] = {
	    [GPU_STATE_MISSING] = "missing",
	    [GPU_STATE_OK] = "ok",
	    [GPU_STATE_DENIED] = "denied",
	    [GPU_STATE_STUCK] = "stuck",
	    [GPU_STATE_OFF] = "profiling off",
	    [GPU_STATE_MISMATCH] = "version mismatch",
	    [GPU_STATE_LOST] = "lost",
	    [GPU_STATE_RESTING] = "resting",
	    [GPU_STATE_FAILED] = "failed",
	};

	return names[state];
}

static bool is_text(const char *have, struct str want)
{
	return strlen(have) == want.n && memcmp(have, want.s, want.n) == 0;
}

static void copy_text(char *to, struct str from)
{
	memcpy(to, from.s, from.n);
	to[from.n] = '\0';
}

int gpu_device_number(struct gpu *g, struct str driver, struct str name)
{
	struct gpu_device *d;
	int r;

	for (size_t i = 0; i < g->n_devices; i++)
		if (is_text(g->device[i].name, name) &&
		    is_text(g->device[i].driver, driver))
			return (int)i;
	if (g->n_devices == GPU_DEVICES_MAX || name.n == 0 ||
	    name.n >= sizeof(d->name) || driver.n >= sizeof(d->driver))
		return -ENOSPC;
	r = array_reserve(&g->device, &g->device_cap, g->n_devices + 1,
			  sizeof(*d));
	if (r < 0)
		return r;
	d = &g->device[g->n_devices];
	*d = (struct gpu_device){0};
	copy_text(d->driver, driver);
	copy_text(d->name, name);
	return (int)g->n_devices++;
}

int gpu_word_number(struct gpu *g, struct str word)
{
	int r;

	for (size_t i = 0; i < g->n_words; i++)
		if (is_text(g->word[i].text, word))
			return (int)i;
	if (g->n_words == GPU_WORDS_MAX || word.n >= GPU_WORD_SIZE)
		return -ENOSPC;
	r = array_reserve(&g->word, &g->word_cap, g->n_words + 1,
			  sizeof(*g->word));
	if (r < 0)
		return r;
	copy_text(g->word[g->n_words].text, word);
	return (int)g->n_words++;
}

static void clean(char *s)
{
	for (; *s; s++)
		if (!is_digit(*s) && !(*s >= 'a' && *s <= 'z') &&
		    !(*s >= 'A' && *s <= 'Z') && !strchr("_.-", *s))
			*s = '_';
}

/* Two drivers of one device, one after the other, share its series. */
int gpu_series_number(struct gpu *g, enum gpu_kind kind, unsigned device,
		      struct str name)
{
	const char *label = g->device[device].name;
	char text[GPU_WORD_SIZE];
	struct gpu_series *s;
	int r;

	if (name.n >= sizeof(text))
		return GPU_NO_SERIES;
	copy_text(text, name);
	clean(text);
	for (size_t i = 0; i < g->n_series; i++) {
		s = &g->series[i];
		if (s->kind == kind && strcmp(s->name, text) == 0 &&
		    strcmp(s->device, label) == 0)
			return (int)i;
	}
	r = g->n_series < GPU_SERIES_MAX
		? array_reserve(&g->series, &g->series_cap, g->n_series + 1,
				sizeof(*s))
		: -ENOSPC;
	if (r < 0) {
		g->counts.n_refused++;
		return GPU_NO_SERIES;
	}
	s = &g->series[g->n_series];
	s->kind = kind;
	strcpy(s->device, label);
	strcpy(s->name, text);
	return (int)g->n_series++;
}
