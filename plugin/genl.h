/* SPDX-License-Identifier: MIT */
/*
 * Questions to a family of generic netlink, and the kernel's answers: one
 * attribute there, any number back. It knows no family and never waits: the
 * kernel has answered before send(2) returns (genetlink(7)).
 *
 * Invariant: an answer is of the question with the same number; what else
 * comes on the socket meanwhile is passed over, up to a bound.
 */
#pragma once

#include "base.h"

enum {
	GENL_MESSAGE_SIZE = 4096, /* none that is asked for here is as large */
	GENL_PAYLOAD_MAX = 512,
};

/* What is asked: a command with one attribute. */
struct genl_question {
	unsigned family;
	uint8_t command;
	uint16_t attribute, flags; /* NLM_F_ACK or 0 */
	struct str value;
};

/*
 * Sends it by that number and takes the answer. Returns 0, then *ret is the
 * attributes in it, in `buf` of GENL_MESSAGE_SIZE bytes; the error that the
 * kernel answers; or another negative errno, -EAGAIN if no answer came.
 */
int genl_ask(int fd, uint32_t seq, const struct genl_question *q, char *buf,
	     struct str *ret);

/* Sends it and takes no answer. Returns 0 or a negative errno. */
int genl_tell(int fd, uint32_t seq, const struct genl_question *q);

/* Returns 0, -ENOENT if the kernel has no such family, or another errno. */
int genl_find_family(int fd, uint32_t seq, const char *name,
		     unsigned *ret_family);

/* Takes the next attribute off `rest`. False at its end. */
bool genl_next_attribute(struct str *rest, unsigned *ret_type,
			 struct str *ret_payload);

/* The first attribute of that type; false if there is none. */
bool genl_attribute(struct str attributes, unsigned type, struct str *ret);
