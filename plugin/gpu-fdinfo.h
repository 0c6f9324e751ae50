/* SPDX-License-Identifier: MIT */
/*
 * Parses the text of /proc/PID/fdinfo/FD of a DRM or accel device, as
 * Documentation/gpu/drm-usage-stats.rst of the kernel says and as drivers
 * write it. Pure text work: it decides by the keys that it finds and knows no
 * driver, no version and no descriptor. Only amdgpu before Linux 5.19 has words
 * of its own.
 *
 * Invariant: no byte outside the text is looked at, and a line that is not
 * what it should be counts for nothing and spoils no other.
 */
#pragma once

#include "gpu.h"

enum {
	GPU_NO_CLIENT = 1, /* the text is of no client that tells its use */
	/* A text that fills this may have been cut off. */
	GPU_FDINFO_SIZE = 16 * 1024,
};

/*
 * Returns 0 or GPU_NO_CLIENT. Texts in *ret point into `text`. Without
 * "drm-pdev" (devices of a platform) ret->device is empty.
 */
int gpu_fdinfo_parse(struct str text, struct gpu_reading *ret);
