/* SPDX-License-Identifier: MIT */
/*
 * The output buffer: order, long writes, slow readers and errors.
 *
 * Invariant: every point has a descriptor of its own.
 */
#include "tap.h"

#include "outbuf.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

enum {
	BLOCK = 100 * 1000,
};

static struct outbuf o;
static char block[BLOCK], back[3 * BLOCK];

static ssize_t read_back(int fd)
{
	return pread(fd, back, sizeof(back), 0);
}

static int open_file(void)
{
	FILE *f = tmpfile();
	int fd = f ? dup(fileno(f)) : -1;

	if (f)
		fclose(f);
	return fd;
}

static void nothing_early(void)
{
	_cleanup_close_ int fd = open_file();

	outbuf_init(&o, fd);
	outbuf_write(&o, "ab", 2);
	outbuf_printf(&o, "%d-%s", 7, "x");
	check_int(read_back(fd), 0);
	check_int(outbuf_flush(&o), 0);
	check_int(read_back(fd), 5);
	check(!memcmp(back, "ab7-x", 5));
	check_int(outbuf_flush(&o), 0);
	check_int(read_back(fd), 5);
}

static void in_order(void)
{
	_cleanup_close_ int fd = open_file();
	char want[16];

	outbuf_init(&o, fd);
	for (int i = 0; i < 20000; i++)
		outbuf_printf(&o, "%08d\n", i);
	check_int(outbuf_flush(&o), 0);
	check_int(read_back(fd), 180000);
	for (int i = 0; i < 20000; i++) {
		snprintf(want, sizeof(want), "%08d\n", i);
		if (memcmp(back + i * 9, want, 9)) {
			tap_fail(__FILE__, __LINE__, "line %d is wrong", i);
			return;
		}
	}
}

static void full_to_the_byte(void)
{
	_cleanup_close_ int fd = open_file();

	outbuf_init(&o, fd);
	outbuf_write(&o, block, sizeof(o.data));
	check_int(read_back(fd), 0);
	outbuf_write(&o, "a", 1);
	check_int(read_back(fd), sizeof(o.data));
	outbuf_printf(&o, "%.*s", (int)sizeof(o.data) - 2, block);
	check_int(outbuf_flush(&o), 0);
	check_int(read_back(fd), 2 * (int)sizeof(o.data) - 1);
	check(back[sizeof(o.data)] == 'a');
}

static void long_texts(void)
{
	_cleanup_close_ int fd = open_file();

	outbuf_init(&o, fd);
	outbuf_write(&o, "<", 1);
	outbuf_write(&o, block, BLOCK);
	outbuf_printf(&o, "|%.*s>", BLOCK, block);
	check_int(outbuf_flush(&o), 0);
	check_int(read_back(fd), 2 * BLOCK + 3);
	check(back[0] == '<');
	check(!memcmp(back + 1, block, BLOCK));
	check(back[BLOCK + 1] == '|');
	check(!memcmp(back + BLOCK + 2, block, BLOCK));
	check(back[2 * BLOCK + 2] == '>');
}

static void *read_slowly(void *arg)
{
	int fd = *(int *)arg;
	size_t n = 0;
	ssize_t got;

	while ((got = read(fd, back + n, 777)) > 0) {
		n += (size_t)got;
		if (n % 5 == 0)
			usleep(100);
	}
	return (void *)n;
}

static void slow_reader(void)
{
	int p[2];
	pthread_t t;
	void *n;

	check_int(pipe2(p, O_CLOEXEC), 0);
	fcntl(p[1], F_SETFL, O_NONBLOCK);
	pthread_create(&t, NULL, read_slowly, &p[0]);
	outbuf_init(&o, p[1]);
	outbuf_write(&o, block, BLOCK);
	outbuf_write(&o, block, BLOCK);
	check_int(outbuf_flush(&o), 0);
	close(p[1]);
	pthread_join(t, &n);
	close(p[0]);
	check_u64((size_t)n, 2 * BLOCK);
	check(!memcmp(back, block, BLOCK));
	check(!memcmp(back + BLOCK, block, BLOCK));
}

static void first_error(void)
{
	int p[2];

	signal(SIGPIPE, SIG_IGN);
	check_int(pipe2(p, O_CLOEXEC), 0);
	close(p[0]);
	outbuf_init(&o, p[1]);
	outbuf_write(&o, block, BLOCK);
	close(p[1]);
	outbuf_write(&o, "a", 1);
	outbuf_printf(&o, "b");
	check_int(outbuf_flush(&o), -EPIPE);
	check_int(outbuf_flush(&o), -EPIPE);
}

static void bad_descriptor(void)
{
	outbuf_init(&o, -1);
	outbuf_printf(&o, "a");
	check_int(outbuf_flush(&o), -EBADF);
}

int main(void)
{
	for (int i = 0; i < BLOCK; i++)
		block[i] = (char)('a' + i % 23);

	TEST("nothing is written before it is flushed, and all of it once",
	     nothing_early);
	TEST("bytes keep their order over many fillings", in_order);
	TEST("a buffer may be full to the last byte", full_to_the_byte);
	TEST("what is longer than the buffer is written whole", long_texts);
	TEST("a slow reader of a non-blocking pipe gets all", slow_reader);
	TEST("the first error stays", first_error);
	TEST("a bad descriptor is an error of the flush", bad_descriptor);
	return tap_done();
}
