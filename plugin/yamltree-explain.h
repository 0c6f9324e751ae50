/* SPDX-License-Identifier: MIT */
/*
 * Inside yamltree: the words for what libyaml refuses. These two files are
 * the only ones that see <yaml.h>.
 */
#pragma once

#include "base.h"
#include "diag.h"

#include <yaml.h>

/* Says in d why the parser stopped at `text`; not for YAML_MEMORY_ERROR. */
void yamltree_explain(const yaml_parser_t *p, struct str text, struct diag *d);
