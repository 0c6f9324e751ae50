/* SPDX-License-Identifier: MIT */
/*
 * The part of procfs.h that reads files of the host, not of a process, is in
 * prochost.c; this is what procfs.c needs of it.
 */
#pragma once

#include "procfs.h"

void prochost_open(struct procfs *fs);
void prochost_close(struct procfs *fs);
