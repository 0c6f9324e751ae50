/* SPDX-License-Identifier: MIT */
/* Names of user ids from a passwd file. */
#include "users.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

static struct {
	char path[64];
	int fd;
} dir;

static void write_bytes(const char *bytes, size_t n)
{
	FILE *f;
	int fd = openat(dir.fd, "passwd", O_WRONLY | O_CREAT | O_TRUNC, 0644);

	check(fd >= 0);
	f = fdopen(fd, "w");
	check_u64(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

/* A tick of the file system's clock apart from what was there before. */
static void write_text(const char *text)
{
	static unsigned written;
	struct timespec times[2] = {{.tv_sec = 1000 + written},
				    {.tv_sec = 1000 + written}};

	written++;
	write_bytes(text, strlen(text));
	check_int(utimensat(dir.fd, "passwd", times, 0), 0);
}

static const char *name_of(const struct users *u, uint32_t uid)
{
	static char text[80];
	char buf[12];
	struct str name = users_name(u, uid, buf, sizeof(buf));

	snprintf(text, sizeof(text), "%.*s", (int)name.n, name.s);
	return text;
}

static struct users *open_users(void)
{
	return users_new(USERS_PASSWD, dir.fd, "passwd");
}

static void names(void)
{
	struct users *u;

	write_text("root:x:0:0:root:/root:/bin/sh\n"
		   "www-data:x:33:33::/var/www:/bin/false\n"
		   "postgres:x:26:26::/:/bin/sh\n"
		   "max:x:4294967294:1::/:/bin/sh\n");
	u = open_users();
	check_text(name_of(u, 0), "0");
	check_int(users_refresh(u), 1);
	check_text(name_of(u, 0), "root");
	check_text(name_of(u, 33), "www-data");
	check_text(name_of(u, 26), "postgres");
	check_text(name_of(u, 4294967294u), "max");
	check_text(name_of(u, 501), "501");
	check_text(name_of(u, 4294967295u), "4294967295");
	users_free(u);
}

static void first_wins(void)
{
	struct users *u;

	write_text("b:x:5:5::/:\na:x:7:5::/:\ntoor:x:0:0::/:\nroot:x:0:0::/:\n"
		   "z:x:5:5::/:\na:x:5:5::/:\n");
	u = open_users();
	check_int(users_refresh(u), 1);
	check_text(name_of(u, 5), "b");
	check_text(name_of(u, 0), "toor");
	check_text(name_of(u, 7), "a");
	users_free(u);
}

static void changes(void)
{
	struct users *u;

	write_text("a:x:1:1::/:\n");
	u = open_users();
	check_int(users_refresh(u), 1);
	check_int(users_refresh(u), 0);
	write_text("b:x:1:1::/:\n");
	check_text(name_of(u, 1), "a");
	check_int(users_refresh(u), 1);
	check_text(name_of(u, 1), "b");
	check_int(users_refresh(u), 0);
	users_free(u);
}

static void replaced(void)
{
	struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 5}};
	struct users *u;

	write_text("a:x:1:1::/:\n");
	utimensat(dir.fd, "passwd", times, 0);
	u = open_users();
	check_int(users_refresh(u), 1);
	check_int(renameat(dir.fd, "passwd", dir.fd, "old"), 0);
	write_text("b:x:1:1::/:\n");
	utimensat(dir.fd, "passwd", times, 0);
	check_int(users_refresh(u), 1);
	check_text(name_of(u, 1), "b");
	unlinkat(dir.fd, "old", 0);
	users_free(u);
}

static void missing(void)
{
	struct users *u = open_users();

	unlinkat(dir.fd, "passwd", 0);
	check_int(users_refresh(u), 0);
	check_text(name_of(u, 0), "0");
	write_text("a:x:0:0::/:\n");
	check_int(users_refresh(u), 1);
	check_text(name_of(u, 0), "a");
	unlinkat(dir.fd, "passwd", 0);
	check_int(users_refresh(u), 1);
	check_text(name_of(u, 0), "0");
	check_int(users_refresh(u), 0);
	users_free(u);
}

static void unreadable(void)
{
	struct users *u;

	write_text("a:x:1:1::/:\n");
	u = open_users();
	check_int(users_refresh(u), 1);

	unlinkat(dir.fd, "passwd", 0);
	check_int(mkdirat(dir.fd, "passwd", 0755), 0);
	check_int(users_refresh(u), -EINVAL);
	check_text(name_of(u, 1), "a");
	unlinkat(dir.fd, "passwd", AT_REMOVEDIR);

	/* A FIFO that nobody writes to must not hold up the reader. */
	check_int(mkfifoat(dir.fd, "passwd", 0644), 0);
	check_int(users_refresh(u), -EINVAL);
	unlinkat(dir.fd, "passwd", 0);

	write_text("b:x:1:1::/:\n");
	check_int(users_refresh(u), 1);
	check_text(name_of(u, 1), "b");
	users_free(u);
}

static void huge(void)
{
	struct users *u;
	int fd;

	write_text("a:x:1:1::/:\n");
	u = open_users();
	check_int(users_refresh(u), 1);
	fd = openat(dir.fd, "passwd", O_WRONLY);
	check_int(ftruncate(fd, 16 * 1024 * 1024 + 1), 0);
	close(fd);
	check_int(users_refresh(u), -EFBIG);
	check_text(name_of(u, 1), "a");
	users_free(u);
}

static void malformed(void)
{
	struct users *u;

	write_text("\n# a comment\n   \nnocolon\n:x:9:9::/:\nx:y\nc:x:z:1::/:\n"
		   "+::::::\n+nis:x:3:3::/:\n-out:x:4:4::/:\n"
		   "neg:x:-1:1::/:\nbig:x:4294967295:1::/:\n"
		   "huge:x:99999999999999999999:1::/:\n"
		   "good:x:8:8::/:\nempty:x:::\nlast:x:10:10::/:");
	u = open_users();
	check_int(users_refresh(u), 1);
	check_text(name_of(u, 0), "0");
	check_text(name_of(u, 9), "9");
	check_text(name_of(u, 3), "3");
	check_text(name_of(u, 4), "4");
	check_text(name_of(u, 4294967295u), "4294967295");
	check_text(name_of(u, 8), "good");
	check_text(name_of(u, 10), "last");
	users_free(u);
}

static void long_line(void)
{
	enum { LONG = 200000 };
	char *text = malloc(2 * LONG + 200);
	struct users *u;
	size_t n = 0;

	n += (size_t)sprintf(text, "a:x:1:1::/:\nlong:x:2:2:");
	memset(text + n, 'g', LONG);
	n += LONG;
	n += (size_t)sprintf(text + n, ":/:\nb:x:3:3::/:\nlast:x:4:4:");
	memset(text + n, 'g', LONG);
	n += LONG;
	text[n] = '\0';
	write_text(text);
	free(text);

	u = open_users();
	check_int(users_refresh(u), 1);
	check_text(name_of(u, 1), "a");
	check_text(name_of(u, 2), "2");
	check_text(name_of(u, 3), "b");
	check_text(name_of(u, 4), "4");
	users_free(u);
}

static void many(void)
{
	enum { MANY = 20000 };
	char *text = malloc((size_t)MANY * 32), *end = text;
	struct users *u;

	for (unsigned i = 0; i < MANY; i++) {
		unsigned uid = i * 7919 % MANY;

		end += sprintf(end, "u%u:x:%u:1::/:\n", uid, uid);
	}
	write_text(text);
	free(text);
	u = open_users();
	check_int(users_refresh(u), 1);
	for (unsigned i = 0; i < MANY; i += 37) {
		char want[16];

		snprintf(want, sizeof(want), "u%u", i);
		check_text(name_of(u, i), want);
	}
	users_free(u);
}

static void random_bytes(void)
{
	static const char alphabet[] = "a:0129\n+-#x \t\0\xff:::\n\n";
	uint64_t seed = 7;
	struct users *u = open_users();

	for (unsigned round = 0; round < 300; round++) {
		char text[600];

		for (size_t i = 0; i < sizeof(text); i++) {
			seed = seed * 6364136223846793005u + 1;
			text[i] = alphabet[(seed >> 33) % sizeof(alphabet)];
		}
		unlinkat(dir.fd, "passwd", 0);
		write_bytes(text, 1 + round * 2 % sizeof(text));
		check(users_refresh(u) >= 0);
		for (uint32_t uid = 0; uid < 30; uid++) {
			char buf[12];

			check(users_name(u, uid, buf, sizeof(buf)).n > 0);
		}
	}
	users_free(u);
}

int main(void)
{
	snprintf(dir.path, sizeof(dir.path), "%s/proctally-users.XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(dir.path))
		return 1;
	dir.fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	TEST("a uid has its name, or its digits", names);
	TEST("the first line of a uid counts", first_wins);
	TEST("the file is read again when it changes, and only then", changes);
	TEST("a file renamed into its place is seen", replaced);
	TEST("a missing file is an empty table", missing);
	TEST("what is no file is refused and the names stay", unreadable);
	TEST("a file beyond 16 MiB is refused and the names stay", huge);
	TEST("malformed lines and those of NIS are passed over", malformed);
	TEST("a line that is too long is passed over, the next is not",
	     long_line);
	TEST("20,000 users are found", many);
	TEST("random bytes do no harm", random_bytes);

	unlinkat(dir.fd, "passwd", 0);
	close(dir.fd);
	rmdir(dir.path);
	return tap_done();
}
