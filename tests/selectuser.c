/* SPDX-License-Identifier: MIT */
/*
 * A collectd plugin as there are many: each time it is read it opens a file
 * and waits for it with select(2), which takes no number of 1024 or more. It
 * says in the log which number it got.
 */
#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>

#include <fcntl.h>
#include <sys/select.h>
#include <unistd.h>

void module_register(void);

static int on_read(void)
{
	struct timeval none = {0};
	fd_set set;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC), n;

	if (fd < 0 || fd >= FD_SETSIZE) {
		plugin_log(LOG_ERR, "selectuser: no use for fd %d", fd);
		return -1;
	}
	FD_ZERO(&set);
	FD_SET(fd, &set);
	n = select(fd + 1, &set, NULL, NULL, &none);
	plugin_log(LOG_INFO, "selectuser: fd %d select %d", fd, n);
	close(fd);
	return 0;
}

void module_register(void)
{
	plugin_register_read("selectuser", on_read);
}
