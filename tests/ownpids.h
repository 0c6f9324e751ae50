/* SPDX-License-Identifier: MIT */
/*
 * A part of a test that has the process numbers for itself: it runs as the
 * first process of a PID namespace with its own /proc, where nothing is seen
 * that other programs of the machine do, and it ends with all that it started.
 * Needs root. Does not know what it runs.
 */
#pragma once

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Mounts a /proc for this namespace. In a chroot / may be no mount. */
__attribute__((unused)) static int own_proc(void)
{
	if (mount("none", "/proc", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("proc", "/proc", "proc", 0, NULL) < 0)
		return -errno;
	return 0;
}

/*
 * What FN returned (0 to 255), as exit() would tell it, or a negative errno:
 * -EPERM without root, -EINTR if it was ended by a signal.
 */
__attribute__((unused)) static int in_own_pids(int (*fn)(void))
{
	int status;
	pid_t outer, pid;

	/* In a child: whoever calls unshare() has its later children there. */
	fflush(stdout);
	outer = fork();
	if (outer < 0)
		return -errno;
	if (outer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
			_exit(254);
		pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			status = own_proc() < 0 ? 254 : fn();
			fflush(stdout);
			_exit(status);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid ||
		    !WIFEXITED(status))
			_exit(255);
		_exit(WEXITSTATUS(status));
	}
	if (waitpid(outer, &status, 0) != outer || !WIFEXITED(status) ||
	    WEXITSTATUS(status) == 255)
		return -EINTR;
	return WEXITSTATUS(status) == 254 ? -EPERM : WEXITSTATUS(status);
}
