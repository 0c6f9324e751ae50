/* SPDX-License-Identifier: MIT */
/*
 * `proctally check`: loads rule files and says what is wrong with them. It
 * knows no process and no monitor.
 *
 * Invariant: it loads a file by the function by which the plugin does, so that
 * what is good here is good there.
 */
#pragma once

/* Messages go to stderr as a compiler's do. Returns 0, or 1 on any error. */
int check_run(char *const *files, int n_files);
