/* SPDX-License-Identifier: MIT */
#include "delay.h"

#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <sys/socket.h>

#include "keptfd.h"
#include "proctext.h"

enum {
	MESSAGE_SIZE = 4096, /* an answer of Linux 6.18 has 596 bytes */
	PAYLOAD_SIZE = 32,
	STALE_MAX = 64, /* answers to questions that were given up */
};

struct request {
	struct nlmsghdr n;
	struct genlmsghdr g;
	char payload[PAYLOAD_SIZE];
};

/* What is asked: a command with one attribute. */
struct question {
	unsigned family;
	uint8_t command;
	uint16_t attribute;
	struct str value;
};

void delay_init(struct delay *d)
{
	*d = (struct delay){.fd = -1};
}

void delay_close(struct delay *d)
{
	base_closep(&d->fd);
	delay_init(d);
}

static int send_question(int fd, uint32_t seq, const struct question *q)
{
	struct request r = {
	    .n = {.nlmsg_type = (uint16_t)q->family,
		  .nlmsg_flags = NLM_F_REQUEST,
		  .nlmsg_seq = seq},
	    .g = {.cmd = q->command, .version = 1},
	};
	struct nlattr a = {
	    .nla_type = q->attribute,
	    .nla_len = (uint16_t)(sizeof(a) + q->value.n),
	};

	memcpy(r.payload, &a, sizeof(a));
	memcpy(r.payload + sizeof(a), q->value.s, q->value.n);
	r.n.nlmsg_len =
	    (uint32_t)(NLMSG_HDRLEN + GENL_HDRLEN + NLA_ALIGN(a.nla_len));
	return send(fd, &r, r.n.nlmsg_len, 0) < 0 ? -errno : 0;
}

/* The kernel has answered before send(2) returned. */
static int take_answer(int fd, uint32_t seq, char *buf, struct str *ret)
{
	for (unsigned i = 0; i < STALE_MAX; i++) {
		ssize_t n = recv(fd, buf, MESSAGE_SIZE, MSG_DONTWAIT);
		struct nlmsgerr e;
		struct nlmsghdr h;

		if (n < 0)
			return -errno;
		if ((size_t)n < sizeof(h))
			return -EBADMSG;
		memcpy(&h, buf, sizeof(h));
		if (h.nlmsg_len < NLMSG_HDRLEN || h.nlmsg_len > (size_t)n)
			return -EBADMSG;
		if (h.nlmsg_seq != seq)
			continue;
		*ret = (struct str){buf + NLMSG_HDRLEN,
				    h.nlmsg_len - NLMSG_HDRLEN};
		if (h.nlmsg_type != NLMSG_ERROR)
			return 0;
		if (ret->n < sizeof(e.error))
			return -EBADMSG;
		memcpy(&e.error, ret->s, sizeof(e.error));
		return e.error ? e.error : -EBADMSG;
	}
	return -EAGAIN;
}

/* An attribute of that type; of the two that have others in them, inside. */
static bool find_attribute(struct str body, size_t at, uint16_t type,
			   struct str *ret)
{
	while (at + sizeof(struct nlattr) <= body.n) {
		struct nlattr a;
		uint16_t is;

		memcpy(&a, body.s + at, sizeof(a));
		if (a.nla_len < sizeof(a) || at + a.nla_len > body.n)
			return false;
		is = a.nla_type & NLA_TYPE_MASK;
		if (is == type) {
			*ret = (struct str){body.s + at + sizeof(a),
					    a.nla_len - sizeof(a)};
			return true;
		}
		at += is == TASKSTATS_TYPE_AGGR_TGID &&
			      type == TASKSTATS_TYPE_STATS
			  ? sizeof(a)
			  : NLA_ALIGN(a.nla_len);
	}
	return false;
}

static int find_family(struct delay *d)
{
	const struct question q = {
	    .family = GENL_ID_CTRL,
	    .command = CTRL_CMD_GETFAMILY,
	    .attribute = CTRL_ATTR_FAMILY_NAME,
	    .value = {TASKSTATS_GENL_NAME, sizeof(TASKSTATS_GENL_NAME)},
	};
	char buf[MESSAGE_SIZE];
	struct str body, id;
	uint16_t family;
	int r = send_question(d->fd, ++d->seq, &q);

	if (r == 0)
		r = take_answer(d->fd, d->seq, buf, &body);
	if (r == -ENOENT)
		return DELAY_MISSING;
	if (r < 0)
		return r;
	if (!find_attribute(body, GENL_HDRLEN, CTRL_ATTR_FAMILY_ID, &id) ||
	    id.n != sizeof(family))
		return -EBADMSG;
	memcpy(&family, id.s, sizeof(family));
	d->family = family;
	return 0;
}

/* All that is needed has stood at the same place since the first version. */
static int ask(const struct delay *d, uint32_t seq, pid_t pid,
	       struct taskstats *ret)
{
	const uint32_t number = (uint32_t)pid;
	const struct question q = {
	    .family = d->family,
	    .command = TASKSTATS_CMD_GET,
	    .attribute = TASKSTATS_CMD_ATTR_TGID,
	    .value = {(const char *)&number, sizeof(number)},
	};
	const size_t needed = offsetof(struct taskstats, cpu_run_real_total);
	char buf[MESSAGE_SIZE];
	struct str body, stats;
	int r = send_question(d->fd, seq, &q);

	if (r == 0)
		r = take_answer(d->fd, seq, buf, &body);
	if (r < 0)
		return r;
	if (!find_attribute(body, GENL_HDRLEN, TASKSTATS_TYPE_STATS, &stats) ||
	    stats.n < needed)
		return -EBADMSG;
	memcpy(ret, stats.s, needed);
	return 0;
}

/* Older kernels have no such switch; there it is on. */
static bool is_switched_on(void)
{
	_cleanup_close_ int fd =
	    open("/proc/sys/kernel/task_delayacct", O_RDONLY | O_CLOEXEC);
	char c = '1';

	return fd < 0 || read(fd, &c, 1) != 1 || c != '0';
}

/* We have run ourselves: who does not know that counts nobody's turns. */
static int find_values(struct delay *d)
{
	struct taskstats own = {.version = 0};
	int r = ask(d, ++d->seq, getpid(), &own);

	if (r == -EPERM)
		return DELAY_DENIED;
	if (r == -ESRCH)
		return DELAY_MISSING;
	if (r < 0)
		return r;
	if (own.cpu_count)
		d->have |= 1u << DELAY_CPU;
	if (is_switched_on())
		d->have |= 1u << DELAY_BLKIO | 1u << DELAY_SWAPIN;
	return 0;
}

int delay_open(struct delay *d)
{
	int r;

	delay_init(d);
	d->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (d->fd < 0)
		return errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT
			   ? DELAY_MISSING
			   : -errno;
	keptfd_park(&d->fd);
	r = find_family(d);
	if (r == 0)
		r = find_values(d);
	if (r != 0)
		delay_close(d);
	return r;
}

int delay_read(struct delay *d, struct guard *guard, pid_t pid,
	       uint64_t ret[DELAY_N])
{
	const uint32_t seq = ++d->seq;
	struct taskstats s = {.version = 0};
	int r;

	guard_enter(guard);
	r = ask(d, seq, pid, &s);
	if (!guard_leave(guard))
		guard_quit(guard);
	if (r == -ESRCH)
		return PROC_GONE;
	if (r == -EPERM)
		return PROC_DENIED;
	if (r < 0)
		return r;
	ret[DELAY_CPU] = s.cpu_delay_total;
	ret[DELAY_BLKIO] = s.blkio_delay_total;
	ret[DELAY_SWAPIN] = s.swapin_delay_total;
	return 0;
}
