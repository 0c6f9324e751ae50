/* SPDX-License-Identifier: MIT */
#include "delay.h"

#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <sys/socket.h>

#include "genl.h"
#include "keptfd.h"
#include "proctext.h"

void delay_init(struct delay *d)
{
	*d = (struct delay){.fd = -1};
}

void delay_close(struct delay *d)
{
	base_closep(&d->fd);
	delay_init(d);
}

/* All that is needed has stood at the same place since the first version. */
static int ask(const struct delay *d, uint32_t seq, pid_t pid,
	       struct taskstats *ret)
{
	const uint32_t number = (uint32_t)pid;
	const struct genl_question q = {
	    .family = d->family,
	    .command = TASKSTATS_CMD_GET,
	    .attribute = TASKSTATS_CMD_ATTR_TGID,
	    .value = {(const char *)&number, sizeof(number)},
	};
	const size_t needed = offsetof(struct taskstats, cpu_run_real_total);
	char buf[GENL_MESSAGE_SIZE]; /* Linux 6.18 answers with 596 bytes */
	struct str body, both, stats;
	int r = genl_ask(d->fd, seq, &q, buf, &body);

	if (r < 0)
		return r;
	if (!genl_attribute(body, TASKSTATS_TYPE_AGGR_TGID, &both) ||
	    !genl_attribute(both, TASKSTATS_TYPE_STATS, &stats) ||
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
	r = genl_find_family(d->fd, ++d->seq, TASKSTATS_GENL_NAME, &d->family);
	if (r == -ENOENT)
		r = DELAY_MISSING;
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
