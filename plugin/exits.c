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

#include "bulk.h"
#include "genl.h"
#include "keptfd.h"

enum {
	BATCH = 32,
	MESSAGE_SIZE = 4096, /* one of Linux 6.18 has up to 1,188 bytes */
	SEQ = 1,	     /* of our requests */

	/* In one drain; more than the largest buffer holds. */
	DRAIN_BATCHES = 8192,
};

/* Where messages are received, a batch with one system call. */
struct exits_batch {
	struct mmsghdr header[BATCH];
	struct iovec iov[BATCH];
	char text[BATCH][MESSAGE_SIZE];
};

void exits_init(struct exits *x)
{
	*x = (struct exits){.fd = -1};
}

/* What is asked of taskstats about the CPUs whose exits are told. */
static struct genl_question about_cpus(const struct exits *x,
				       uint16_t attribute, uint16_t flags)
{
	return (struct genl_question){
	    .family = x->family,
	    .command = TASKSTATS_CMD_GET,
	    .attribute = attribute,
	    .flags = flags,
	    .value = {x->cpus, strlen(x->cpus) + 1},
	};
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
	const struct genl_question q =
	    about_cpus(x, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, NLM_F_ACK);
	char buf[GENL_MESSAGE_SIZE];
	struct str body;
	int r = genl_ask(x->fd, SEQ, &q, buf, &body);

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
		r = genl_find_family(x->fd, SEQ, TASKSTATS_GENL_NAME,
				     &x->family);
	if (r == -ENOENT)
		r = EXITS_MISSING;
	if (r == 0)
		r = register_cpus(x);
	return r == 0 ? probe(x) : r;
}

int exits_open(struct exits *x, const struct exits_options *o, exits_fn *fn,
	       void *arg)
{
	size_t room = 0;
	int r;

	exits_init(x);
	gather_init(&x->gather, ignore, NULL);
	x->buffer_max = o->buffer_max ? o->buffer_max : EXITS_BUFFER_MAX;
	if (o->cpus)
		snprintf(x->cpus, sizeof(x->cpus), "%s", o->cpus);
	else
		possible_cpus(x->cpus, sizeof(x->cpus));
	/* In bytes: it is more than a page. */
	r = bulk_reserve(&x->batch, &room, sizeof(*x->batch), 1);
	if (r == 0)
		r = open_all(x, o);
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
	size_t room = sizeof(*x->batch);

	if (x->fd >= 0) {
		const struct genl_question q =
		    about_cpus(x, TASKSTATS_CMD_ATTR_DEREGISTER_CPUMASK, 0);

		if (x->family)
			genl_tell(x->fd, SEQ, &q);
		close(x->fd);
	}
	bulk_free(&x->batch, &room, 1);
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
