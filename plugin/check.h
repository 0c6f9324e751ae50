/* SPDX-License-Identifier: MIT */
/*
 * `proctally check`: loads rule files and says what is wrong with them.
 */
#pragma once

/* Messages go to stderr as a compiler's do. Returns 0, or 1 on any error. */
int check_run(char *const *files, int n_files);
