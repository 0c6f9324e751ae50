/* SPDX-License-Identifier: MIT */
#include "genl.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

enum {
	/* Records of taskstats, answers to questions that were given up. */
	PASSED_OVER_MAX = 4096,
};

struct request {
	struct nlmsghdr n;
	struct genlmsghdr g;
	char payload[GENL_PAYLOAD_MAX];
};

int genl_tell(int fd, uint32_t seq, const struct genl_question *q)
{
	struct request r = {
	    .n = {.nlmsg_type = (uint16_t)q->family,
		  .nlmsg_flags = NLM_F_REQUEST | q->flags,
		  .nlmsg_seq = seq},
	    .g = {.cmd = q->command, .version = 1},
	};
	struct nlattr a = {.nla_type = q->attribute};

	if (sizeof(a) + q->value.n > sizeof(r.payload))
		return -E2BIG;
	a.nla_len = (uint16_t)(sizeof(a) + q->value.n);
	memcpy(r.payload, &a, sizeof(a));
	memcpy(r.payload + sizeof(a), q->value.s, q->value.n);
	r.n.nlmsg_len =
	    (uint32_t)(NLMSG_HDRLEN + GENL_HDRLEN + NLA_ALIGN(a.nla_len));
	return send(fd, &r, r.n.nlmsg_len, 0) < 0 ? -errno : 0;
}

/* What the kernel sends unasked comes from port 0, by any number. */
static bool is_answer(const struct nlmsghdr *h, uint32_t seq)
{
	return h->nlmsg_seq == seq &&
	       (h->nlmsg_pid != 0 || h->nlmsg_type == NLMSG_ERROR);
}

static int read_message(const struct nlmsghdr *h, const char *buf,
			struct str *ret)
{
	size_t head =
	    NLMSG_HDRLEN + (h->nlmsg_type == NLMSG_ERROR ? 0 : GENL_HDRLEN);
	struct nlmsgerr e;

	*ret = (struct str){buf + head, 0};
	if (h->nlmsg_type != NLMSG_ERROR) {
		if (h->nlmsg_len < head)
			return -EBADMSG;
		ret->n = h->nlmsg_len - head;
		return 0;
	}
	if (h->nlmsg_len < head + sizeof(e.error))
		return -EBADMSG;
	memcpy(&e.error, buf + head, sizeof(e.error));
	return e.error;
}

static int take_answer(int fd, uint32_t seq, char *buf, struct str *ret)
{
	for (unsigned i = 0; i < PASSED_OVER_MAX; i++) {
		ssize_t n = recv(fd, buf, GENL_MESSAGE_SIZE, MSG_DONTWAIT);
		struct nlmsghdr h;

		if (n < 0 && (errno == EINTR || errno == ENOBUFS))
			continue;
		if (n < 0)
			return -errno;
		if ((size_t)n < sizeof(h))
			return -EBADMSG;
		memcpy(&h, buf, sizeof(h));
		if (h.nlmsg_len < NLMSG_HDRLEN || h.nlmsg_len > (size_t)n)
			return -EBADMSG;
		if (!is_answer(&h, seq))
			continue;
		return read_message(&h, buf, ret);
	}
	return -EAGAIN;
}

int genl_ask(int fd, uint32_t seq, const struct genl_question *q, char *buf,
	     struct str *ret)
{
	int r = genl_tell(fd, seq, q);

	return r < 0 ? r : take_answer(fd, seq, buf, ret);
}

bool genl_next_attribute(struct str *rest, unsigned *ret_type,
			 struct str *ret_payload)
{
	struct nlattr a;
	size_t step;

	if (rest->n < sizeof(a))
		return false;
	memcpy(&a, rest->s, sizeof(a));
	if (a.nla_len < sizeof(a) || a.nla_len > rest->n)
		return false;
	*ret_type = a.nla_type & NLA_TYPE_MASK;
	*ret_payload = (struct str){rest->s + sizeof(a), a.nla_len - sizeof(a)};
	step = MIN((size_t)NLA_ALIGN(a.nla_len), rest->n);
	rest->s += step;
	rest->n -= step;
	return true;
}

bool genl_attribute(struct str attributes, unsigned type, struct str *ret)
{
	struct str payload;
	unsigned is;

	while (genl_next_attribute(&attributes, &is, &payload))
		if (is == type) {
			*ret = payload;
			return true;
		}
	return false;
}

int genl_find_family(int fd, uint32_t seq, const char *name,
		     unsigned *ret_family)
{
	const struct genl_question q = {
	    .family = GENL_ID_CTRL,
	    .command = CTRL_CMD_GETFAMILY,
	    .attribute = CTRL_ATTR_FAMILY_NAME,
	    .value = {name, strlen(name) + 1},
	};
	char buf[GENL_MESSAGE_SIZE];
	struct str body, id;
	uint16_t family;
	int r = genl_ask(fd, seq, &q, buf, &body);

	if (r < 0)
		return r;
	if (!genl_attribute(body, CTRL_ATTR_FAMILY_ID, &id) ||
	    id.n != sizeof(family))
		return -EBADMSG;
	memcpy(&family, id.s, sizeof(family));
	*ret_family = family;
	return 0;
}
