/* SPDX-License-Identifier: MIT */
/*
 * Makes of the fake one that any program can load as libnvidia-ml.so.1: what
 * it does stands in the file that the environment names in FAKE_NVML.
 *
 *	device BUSID [PARTS]
 *	process PID BYTES		of the last device
 *	sample PID SM ENCODER DECODER	percent, at any time that is asked
 *	hang CALL [DEVICE]		for ever
 */
#include "fakenvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern fake_nvml_pointer fake_nvml;

static char hang[64];

static void take_process(struct fake_device *v, const char *line)
{
	struct fake_list *list = &v->list[0];
	struct fake_process *p = &list->process[list->n];

	p->instance = UINT32_MAX;
	if (list->n < FAKE_PROCESSES &&
	    sscanf(line, "process %u %llu", &p->pid, &p->bytes) == 2)
		list->n++;
}

static void take_sample(struct fake_device *v, const char *line)
{
	struct fake_sample *s = &v->sample[v->n_samples];

	s->time_us = FAKE_NOW;
	if (v->n_samples < FAKE_SAMPLES &&
	    sscanf(line, "sample %u %u %u %u", &s->pid, &s->sm, &s->encoder,
		   &s->decoder) == 4) {
		v->n_samples++;
		v->utilization_result = 0;
	}
}

static void take_line(struct fake_nvml *f, const char *line)
{
	struct fake_device *v = &f->device[f->n_devices];

	if (sscanf(line, "hang %63s %d", hang, &f->hang_device) >= 1) {
		atomic_store(&f->hang, hang);
	} else if (strncmp(line, "device ", 7) == 0) {
		if (f->n_devices == FAKE_DEVICES)
			return;
		sscanf(line, "device %31s %u", v->bus_id, &v->n_parts);
		v->is_mig = v->n_parts > 0;
		v->utilization_result = 6; /* NOT_FOUND: idle */
		f->n_devices++;
	} else if (f->n_devices) {
		take_process(v - 1, line);
		take_sample(v - 1, line);
	}
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAKE_NVML");
	FILE *in = path ? fopen(path, "re") : NULL;
	struct fake_nvml *f = calloc(1, sizeof(*f));
	int fds[2];
	char line[256];

	if (!f || pipe(fds) < 0)
		abort();
	f->hang_fd = fds[0];
	f->hang_device = -1;
	while (in && fgets(line, sizeof(line), in))
		take_line(f, line);
	if (in)
		fclose(in);
	atomic_store(&fake_nvml, f);
}
