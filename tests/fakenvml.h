/* SPDX-License-Identifier: MIT */
/*
 * A management library of NVIDIA that does what the test says, by way of the
 * variable fake_nvml. A call uses what that points to when it begins, so that
 * one that hangs does not meet the next test. Built several times, with the
 * lists of processes in one version each.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	FAKE_DEVICES = 4,
	FAKE_PARTS = 3,
	FAKE_PROCESSES = 400,
	FAKE_SAMPLES = 200,
	FAKE_LISTS = 3, /* compute, graphics, MPS */
};

struct fake_process {
	unsigned pid;
	unsigned long long bytes;
	unsigned instance; /* UINT32_MAX: the device is not divided */
};

struct fake_list {
	int result;
	unsigned n;
	struct fake_process process[FAKE_PROCESSES];
};

/* A time that stands for that of the question. */
#define FAKE_NOW UINT64_MAX

/* As nvmlProcessUtilizationSample. */
struct fake_sample {
	unsigned pid;
	unsigned long long time_us;
	unsigned sm, memory, encoder, decoder;
};

struct fake_device {
	char bus_id[32];
	int result; /* of all that is asked of it */
	bool is_mig;
	unsigned n_parts;
	int part_result; /* of lists of parts */
	struct fake_list list[FAKE_LISTS];
	struct fake_list part[FAKE_PARTS];
	int utilization_result;
	unsigned n_samples;
	struct fake_sample sample[FAKE_SAMPLES];
	unsigned long long since_us; /* that was asked for last */
	atomic_uint n_calls;
};

struct fake_nvml;

/* A device or a part of one, as the caller holds it. */
struct fake_handle {
	struct fake_nvml *fake;
	unsigned device;
	int part; /* -1: all of it */
};

struct fake_nvml {
	int init_result;
	unsigned n_devices;
	struct fake_device device[FAKE_DEVICES];
	bool long_rows;	   /* the third version as drivers 535.43 to 535.98 */
	bool says_hundred; /* 100 samples are said to be there, whatever is */

	/* A call that hangs until a byte can be read from hang_fd. */
	_Atomic(const char *) hang;
	int hang_device; /* -1: any */
	int hang_fd;
	atomic_int n_hanging;
	atomic_uint n_init, n_shutdown, n_calls;

	/* Its own. */
	struct fake_handle whole[FAKE_DEVICES];
	struct fake_handle part[FAKE_DEVICES][FAKE_PARTS];
};

typedef _Atomic(struct fake_nvml *) fake_nvml_pointer;
