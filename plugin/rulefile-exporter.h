/* SPDX-License-Identifier: MIT */
/* Inside rulefile: `process_names`, the rules of process-exporter. */
#pragma once

#include "base.h"
#include "rulefile-keys.h"
#include "yamltree.h"

/* The list as rules of the view "app"; `into` is the rule set. */
int process_names_load(struct loader *l, void *into,
		       const struct yaml_node *key,
		       const struct yaml_node *value);
