/* SPDX-License-Identifier: MIT */
#include "exits.h"

#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/taskstats.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#include "keptfd.h"

enum {
	BATCH = 32,
	MESSAGE_SIZE = 4096, /* one of Linux 6.18 has up to 1,188 bytes */
	REQUEST_SIZE = 512,
	SEQ = 1, /* of our requests */

	/* In one drain; more than the largest buffer holds. */
	DRAIN_BATCHES = 8192,
};

/* Where messages are received, a batch with one system call. */
struct exits_batch {
	struct mmsghdr header[BATCH];
	struct iovec iov[BATCH];
	char text[BATCH][MESSAGE_SIZE];
};

struct request {
	struct nlmsghdr n;
	struct genlmsghdr g;
	char payload[REQUEST_SIZE];
};

void exits_init(struct exits *x)
{
	*x = (struct exits){.fd = -1};
}

/* Sends a command with one text as attribute; the kernel answers at once. */
static int ask(int fd, unsigned family, uint8_t command, uint16_t attribute,
	       const char *text, uint16_t flags)
{
	struct request r = {
	    .n = {.nlmsg_type = (uint16_t)family,
		  .nlmsg_flags = NLM_F_REQUEST | flags,
		  .nlmsg_seq = SEQ},
	    .g = {.cmd = command, .version = 1},
	};
	struct nlattr a = {.nla_type = attribute};
	size_t n = strlen(text) + 1;

	if (sizeof(a) + n > sizeof(r.payload))
		return -E2BIG;
	a.nla_len = (uint16_t)(sizeof(a) + n);
	memcpy(r.payload, &a, sizeof(a));
	memcpy(r.payload + sizeof(a), text, n);
	r.n.nlmsg_len =
	    (uint32_t)(NLMSG_HDRLEN + GENL_HDRLEN + NLA_ALIGN(a.nla_len));
	return send(fd, &r, r.n.nlmsg_len, 0) < 0 ? -errno : 0;
}

/*
 * Receives messages until one answers our request; records in between are
 * from before anybody counts. Returns its type and body, 0, or a negative
 * errno, that of the answer included.
 */
static int answer(int fd, char *buf, size_t size, struct str *ret)
{
	for (;;) {
		struct nlmsghdr h;
		struct nlmsgerr e;
		ssize_t n = recv(fd, buf, size, 0);

		if (n < 0 && (errno == EINTR || errno == ENOBUFS))
			continue;
		if (n < 0)
			return -errno;
		if ((size_t)n < sizeof(h))
			return -EBADMSG;
		memcpy(&h, buf, sizeof(h));
		if (h.nlmsg_len < NLMSG_HDRLEN || h.nlmsg_len > (size_t)n)
			return -EBADMSG;
		if (h.nlmsg_pid == 0 && h.nlmsg_type != NLMSG_ERROR)
			continue;
		*ret = (struct str){buf + NLMSG_HDRLEN,
				    h.nlmsg_len - NLMSG_HDRLEN};
		if (h.nlmsg_type != NLMSG_ERROR)
			return 0;
		if (ret->n < sizeof(e.error))
			return -EBADMSG;
		memcpy(&e.error, ret->s, sizeof(e.error));
		return e.error;
	}
}

static int find_family(struct exits *x)
{
	char buf[MESSAGE_SIZE];
	struct str body;
	int r = ask(x->fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
		    CTRL_ATTR_FAMILY_NAME, TASKSTATS_GENL_NAME, 0);

	if (r < 0)
		return r;
	r = answer(x->fd, buf, sizeof(buf), &body);
	if (r == -ENOENT)
		return EXITS_MISSING;
	if (r < 0)
		return r;
	for (size_t at = GENL_HDRLEN; at + sizeof(struct nlattr) <= body.n;) {
		struct nlattr a;
		uint16_t id;

		memcpy(&a, body.s + at, sizeof(a));
		if (a.nla_len < sizeof(a) || at + a.nla_len > body.n)
			break;
		if ((a.nla_type & NLA_TYPE_MASK) == CTRL_ATTR_FAMILY_ID &&
		    a.nla_len == sizeof(a) + sizeof(id)) {
			memcpy(&id, body.s + at + sizeof(a), sizeof(id));
			x->family = id;
			return 0;
		}
		at += NLA_ALIGN(a.nla_len);
	}
	return -EBADMSG;
}

/* Every CPU there may ever be: those that are added later, too. */
static void possible_cpus(char *ret, size_t size)
{
	_cleanup_close_ int fd =
	    open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);

	if (n > 0) {
		ret[n] = '\0';
		ret[strcspn(ret, "\n")] = '\0';
		return;
	}
	snprintf(ret, size, "0-%ld", MAX(sysconf(_SC_NPROCESSORS_CONF), 1) - 1);
}

static int register_cpus(struct exits *x)
{
	char buf[MESSAGE_SIZE];
	struct str body;
	int r = ask(x->fd, x->family, TASKSTATS_CMD_GET,
		    TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, x->cpus, NLM_F_ACK);

	if (r < 0)
		return r;
	r = answer(x->fd, buf, sizeof(buf), &body);
	if (r == -EPERM)
		return EXITS_DENIED;
	/* So it says in other namespaces (add_del_listener()). */
	return r == -EINVAL ? EXITS_INSIDE : r;
}

static void size_buffer(struct exits *x, size_t size)
{
	int n = (int)MIN(size / 2, (size_t)INT32_MAX / 2); /* it doubles it */
	socklen_t len = sizeof(n);

	if (setsockopt(x->fd, SOL_SOCKET, SO_RCVBUFFORCE, &n, sizeof(n)) < 0)
		setsockopt(x->fd, SOL_SOCKET, SO_RCVBUF, &n, sizeof(n));
	if (getsockopt(x->fd, SOL_SOCKET, SO_RCVBUF, &n, &len) == 0)
		x->buffer = (size_t)n;
}

static bool read_meminfo(const struct exits *x, uint32_t *info, size_t size)
{
	socklen_t len = (socklen_t)size;

	memset(info, 0, size);
	return getsockopt(x->fd, SOL_SOCKET, SO_MEMINFO, info, &len) == 0 &&
	       len > SK_MEMINFO_DROPS * sizeof(info[0]);
}

/*
 * A socket that overflowed once takes nothing until it is empty, unless it
 * wants to know nothing of that (netlink_overrun(), net/netlink/af_netlink.c).
 * So we do not, where the kernel counts what it dropped (Linux 4.12).
 */
static void count_drops(struct exits *x)
{
	uint32_t info[SK_MEMINFO_VARS];
	int on = 1;

	x->has_drops = read_meminfo(x, info, sizeof(info)) &&
		       setsockopt(x->fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on,
				  sizeof(on)) == 0;
	x->drops = info[SK_MEMINFO_DROPS];
}

static int open_socket(struct exits *x, size_t buffer)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK};

	x->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       NETLINK_GENERIC);
	if (x->fd < 0)
		return errno == EPROTONOSUPPORT ? EXITS_MISSING : -errno;
	keptfd_park(&x->fd);
	if (bind(x->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	size_buffer(x, buffer);
	count_drops(x);
	return 0;
}

static void *end_at_once(_unused_ void *arg)
{
	return NULL;
}

/*
 * In another network namespace all goes well and no record ever comes. A
 * thread that is joined has left its record: what tells so comes later, when
 * its memory is given back.
 */
static int probe(struct exits *x)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, end_at_once, NULL);

	if (r != 0)
		return -r;
	pthread_join(thread, NULL);
	r = exits_drain(x);
	if (r < 0)
		return r;
	return x->gather.counts.n_tasks ? 0 : EXITS_INSIDE;
}

static void ignore(_unused_ void *arg, _unused_ const struct exitrec *r)
{
}

static int open_all(struct exits *x, const struct exits_options *o)
{
	int r = open_socket(x, o->buffer ? o->buffer : EXITS_BUFFER);

	if (r == 0)
		r = find_family(x);
	if (r == 0)
		r = register_cpus(x);
	return r == 0 ? probe(x) : r;
}

int exits_open(struct exits *x, const struct exits_options *o, exits_fn *fn,
	       void *arg)
{
	int r;

	exits_init(x);
	gather_init(&x->gather, ignore, NULL);
	x->buffer_max = o->buffer_max ? o->buffer_max : EXITS_BUFFER_MAX;
	if (o->cpus)
		snprintf(x->cpus, sizeof(x->cpus), "%s", o->cpus);
	else
		possible_cpus(x->cpus, sizeof(x->cpus));
	x->batch = calloc(1, sizeof(*x->batch));
	r = x->batch ? open_all(x, o) : -ENOMEM;
	if (r != 0) {
		exits_close(x);
		return r;
	}
	x->gather.fn = fn;
	x->gather.arg = arg;
	x->gather.counts = (struct gather_counts){0};
	return 0;
}

void exits_close(struct exits *x)
{
	if (x->fd >= 0) {
		if (x->family)
			ask(x->fd, x->family, TASKSTATS_CMD_GET,
			    TASKSTATS_CMD_ATTR_DEREGISTER_CPUMASK, x->cpus, 0);
		close(x->fd);
	}
	free(x->batch);
	gather_done(&x->gather);
	exits_init(x);
}

/* How full was it, and was something lost since the last look? */
static void look_at_socket(struct exits *x)
{
	uint32_t info[SK_MEMINFO_VARS];

	if (!x->has_drops || !read_meminfo(x, info, sizeof(info)))
		return;
	x->n_lost += info[SK_MEMINFO_DROPS] - x->drops;
	x->drops = info[SK_MEMINFO_DROPS];
	if (info[SK_MEMINFO_RMEM_ALLOC] <= x->buffer / 2)
		return;
	x->n_full++;
	if (x->buffer < x->buffer_max)
		size_buffer(x, MIN(2 * x->buffer, x->buffer_max));
}

/* Receives once. Returns a number of messages, or a negative errno. */
static int receive(struct exits *x)
{
	struct exits_batch *b = x->batch;
	int n;

	for (unsigned i = 0; i < BATCH; i++) {
		b->iov[i] = (struct iovec){b->text[i], MESSAGE_SIZE};
		b->header[i].msg_hdr = (struct msghdr){
		    .msg_iov = &b->iov[i],
		    .msg_iovlen = 1,
		};
	}
	n = recvmmsg(x->fd, b->header, BATCH, MSG_DONTWAIT, NULL);
	return n < 0 ? -errno : n;
}

static void take_batch(struct exits *x, int n)
{
	const struct exits_batch *b = x->batch;

	for (int i = 0; i < n; i++) {
		if (b->header[i].msg_hdr.msg_flags & MSG_TRUNC)
			x->gather.counts.n_bad++;
		else
			gather_datagram(
			    &x->gather, x->family,
			    (struct str){b->text[i], b->header[i].msg_len});
	}
}

int exits_drain(struct exits *x)
{
	int r = 0;

	x->n_drains++;
	look_at_socket(x);
	for (unsigned i = 0; i < DRAIN_BATCHES; i++) {
		r = receive(x);
		if (r == -ENOBUFS)
			x->n_lost++;
		else if (r < 0 && r != -EINTR)
			break;
		else if (r > 0)
			take_batch(x, r);
	}
	gather_flush(&x->gather);
	return r < 0 && r != -EAGAIN && r != -ENOBUFS && r != -EINTR ? r : 0;
}

bool exits_has_delays(void)
{
	_cleanup_close_ int fd =
	    open("/proc/sys/kernel/task_delayacct", O_RDONLY | O_CLOEXEC);
	char c = '1'; /* older kernels have no switch: it is on */

	return fd < 0 || read(fd, &c, 1) != 1 || c != '0';
}
