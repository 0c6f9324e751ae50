/* SPDX-License-Identifier: MIT */
/*
 * `proctally top` in a terminal: the real program, on a pty, below a small
 * terminal of our own that knows what tests/top.c describes to it, and with a
 * /proc of our own. Between the two stands what a shell is: the leader of a
 * session, which tells us when the program stops and ends.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base.h"
#include "tap.h"

enum {
	ROWS_MAX = 60,
	COLUMNS_MAX = 200,
	PATIENCE_MS = 20000,
	IMPATIENCE_MS = 500, /* of a test that has failed anyhow */
};

static const char terminal[] =
    "proctally-test|terminal of tests/top.c,\n"
    "\tcols#80, lines#24, clear=\\E[H\\E[2J, cup=\\E[%i%p1%d;%p2%dH,\n"
    "\tsmcup=\\E[?1049h, rmcup=\\E[?1049l, civis=\\E[?25l, cnorm=\\E[?25h,\n"
    "\trev=\\E[7m, bold=\\E[1m, sgr0=\\E[m, kcuu1=\\E[A, kcud1=\\E[B,\n"
    "\tkcuf1=\\E[C, kcub1=\\E[D, khome=\\E[H, kend=\\E[F, kpp=\\E[5~,\n"
    "\tknp=\\E[6~, cr=\\r, bel=^G,\n"
    "proctally-dumb|without a cursor that moves,\n"
    "\tcols#80, cr=\\r, bel=^G,\n";

static char dir[64]; /* temporary: rules.yaml, proc/, terminfo below it */
static char command[4096];

/* The terminal. */
static struct {
	int master, slave;
	int status_fd; /* what waitpid() told the leader, int by int */
	pid_t leader, pid;
	struct termios before;
	int rows, columns;
	int row, column;
	char cell[ROWS_MAX][COLUMNS_MAX + 1];
	bool reverse, is_reverse[ROWS_MAX];
	bool other_screen, no_cursor;
	char escape[32];  /* a sequence that is not complete; or "" */
	size_t n_bytes;	  /* that came */
	char start[4096]; /* the first of them */
} t;

static void clear_cells(void)
{
	for (int i = 0; i < ROWS_MAX; i++) {
		memset(t.cell[i], ' ', COLUMNS_MAX);
		t.is_reverse[i] = false;
	}
}

static void obey(const char *s)
{
	int row, column;

	if (sscanf(s, "[%d;%dH", &row, &column) == 2) {
		/* What was drawn before a resize may come after it. */
		t.row = MIN(MAX(row, 1), ROWS_MAX) - 1;
		t.column = MIN(MAX(column, 1), COLUMNS_MAX) - 1;
	} else if (strcmp(s, "[H") == 0) {
		t.row = t.column = 0;
	} else if (strcmp(s, "[2J") == 0) {
		clear_cells();
	} else if (strcmp(s, "[?1049h") == 0) {
		t.other_screen = true;
	} else if (strcmp(s, "[?1049l") == 0) {
		t.other_screen = false;
	} else if (strcmp(s, "[?25l") == 0) {
		t.no_cursor = true;
	} else if (strcmp(s, "[?25h") == 0) {
		t.no_cursor = false;
	} else if (strcmp(s, "[7m") == 0) {
		t.reverse = true;
	} else if (strcmp(s, "[m") == 0) {
		t.reverse = false;
	} else if (strcmp(s, "[1m") != 0) {
		tap_fail(__FILE__, __LINE__, "what is \"\\E%s\"?", s);
	}
}

static void take_byte(char c)
{
	size_t n = strlen(t.escape);

	if (t.n_bytes < sizeof(t.start) - 1)
		t.start[t.n_bytes] = c;
	t.n_bytes++;
	if (n) {
		t.escape[n] = c;
		t.escape[n + 1] = '\0';
		if (isalpha((unsigned char)c) || n + 2 == sizeof(t.escape)) {
			obey(t.escape + 1);
			memset(t.escape, 0, sizeof(t.escape));
		}
		return;
	}
	switch (c) {
	case '\033':
		t.escape[0] = c;
		break;
	case '\r':
		t.column = 0;
		break;
	case '\n':
		t.row = MIN(t.row + 1, t.rows - 1);
		break;
	case '\b':
		t.column = MAX(t.column - 1, 0);
		break;
	default:
		t.cell[t.row][t.column] = c;
		t.is_reverse[t.row] = t.reverse;
		t.column = MIN(t.column + 1, t.columns - 1);
	}
}

/* What the program has written by now. */
static void take_bytes(int wait_ms)
{
	struct pollfd p = {.fd = t.master, .events = POLLIN};
	char buf[4096];
	ssize_t n;

	if (poll(&p, 1, wait_ms) <= 0)
		return;
	n = read(t.master, buf, sizeof(buf));
	for (ssize_t i = 0; i < n; i++)
		take_byte(buf[i]);
}

/* The row of the screen that begins so, blanks aside; or -1. */
static int row_of(const char *text)
{
	for (int row = 0; row < t.rows; row++) {
		const char *s = t.cell[row];

		while (*s == ' ')
			s++;
		if (strncmp(s, text, strlen(text)) == 0)
			return row;
	}
	return -1;
}

static bool shows(const char *text)
{
	for (int row = 0; row < t.rows; row++) {
		char line[COLUMNS_MAX + 1];

		snprintf(line, sizeof(line), "%.*s", t.columns, t.cell[row]);
		if (strstr(line, text))
			return true;
	}
	return false;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void show_screen(void)
{
	for (int row = 0; row < MIN(t.rows, 8); row++)
		printf("# |%.*s|\n", t.columns, t.cell[row]);
}

/* Until the condition holds, which is checked whenever something came. */
#define await(cond)                                                            \
	do {                                                                   \
		int64_t end_ =                                                 \
		    now_ms() + (tap.failed ? IMPATIENCE_MS : PATIENCE_MS);     \
		while (!(cond) && now_ms() < end_)                             \
			take_bytes(50);                                        \
		if (!(cond)) {                                                 \
			tap_fail(__FILE__, __LINE__, "it never comes: %s",     \
				 #cond);                                       \
			show_screen();                                         \
		}                                                              \
	} while (0)

static void press(const char *keys)
{
	check(write(t.master, keys, strlen(keys)) == (ssize_t)strlen(keys));
}

static void resize(int rows, int columns)
{
	struct winsize ws = {.ws_row = (unsigned short)rows,
			     .ws_col = (unsigned short)columns};

	t.rows = rows;
	t.columns = columns;
	check_int(ioctl(t.master, TIOCSWINSZ, &ws), 0);
}

/* A /proc of our own. */

struct task {
	int pid;
	const char *comm;
	unsigned long utime, rss_pages;
};

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		printf("Bail out! cannot write %s\n", path);
}

static void put_task(const struct task *p)
{
	char name[256], text[512];
	int n = snprintf(text, sizeof(text),
			 "%d (%s) S 1 1 1 0 -1 0 0 0 0 0 %lu 0 0 0 20 0 1 0 "
			 "500 4096 %lu",
			 p->pid, p->comm, p->utime, p->rss_pages);

	for (unsigned field = 25; field <= 52; field++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " 0");
	snprintf(text + n, sizeof(text) - (size_t)n, "\n");
	snprintf(name, sizeof(name), "%s/proc/%d", dir, p->pid);
	mkdir(name, 0755);
	snprintf(name, sizeof(name), "proc/%d/stat", p->pid);
	write_file(name, text);
}

static void put_tasks(void)
{
	static const struct task tasks[] = {
	    {10, "alpha", 0, 100},	 {20, "beta", 0, 300},
	    {21, "beta", 0, 5},		 {30, "gamma", 0, 200},
	    {40, "\033[31mevil", 0, 10},
	};

	for (size_t i = 0; i < ARRAY_SIZE(tasks); i++)
		put_task(&tasks[i]);
}

/* The program. */

static void be_program(int slave, const char *const *argv, const char *term)
{
	char terminfo[128];

	snprintf(terminfo, sizeof(terminfo), "%s/terminfo", dir);
	setenv("TERMINFO", terminfo, 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	unsetenv("LINES");
	unsetenv("COLUMNS");
	if (term)
		setenv("TERM", term, 1);
	else
		unsetenv("TERM");
	for (int fd = 0; fd <= 2; fd++)
		dup2(slave, fd);
	execv(command, (char *const *)argv);
	_exit(127);
}

static void be_leader(int slave, int status_fd, const char *const *argv,
		      const char *term)
{
	sigset_t none;
	pid_t pid;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(t.master);
	setsid();
	ioctl(slave, TIOCSCTTY, 0);
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		signal(SIGTTOU, SIG_IGN);
		tcsetpgrp(slave, getpid());
		for (int i = 1; i < NSIG; i++)
			signal(i, SIG_DFL);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		be_program(slave, argv, term);
	}
	signal(SIGHUP, SIG_IGN);
	if (write(status_fd, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	while (waitpid(pid, &status, WUNTRACED) == pid) {
		if (write(status_fd, &status, sizeof(status)) != sizeof(status))
			kill(pid, SIGKILL);
		if (!WIFSTOPPED(status))
			_exit(0);
	}
	_exit(1);
}

static void begin_with(int rows, int columns, const char *term,
		       const char *const *argv)
{
	int status[2];

	memset(&t, 0, sizeof(t));
	clear_cells();
	t.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	check(t.master >= 0 && grantpt(t.master) == 0 &&
	      unlockpt(t.master) == 0);
	resize(rows, columns);
	t.slave = open(ptsname(t.master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	check_int(tcgetattr(t.slave, &t.before), 0);
	check_int(pipe2(status, O_CLOEXEC), 0);
	fflush(stdout);
	t.leader = fork();
	if (t.leader == 0)
		be_leader(t.slave, status[1], argv, term);
	close(status[1]);
	t.status_fd = status[0];
	check(read(t.status_fd, &t.pid, sizeof(t.pid)) == sizeof(t.pid));
}

static void begin_sized(int rows, int columns)
{
	char rules[128], proc[128];
	const char *argv[] = {command, "top",	     "--rules", rules, "--proc",
			      proc,    "--interval", "0.1",	NULL};

	snprintf(rules, sizeof(rules), "%s/rules.yaml", dir);
	snprintf(proc, sizeof(proc), "%s/proc", dir);
	put_tasks();
	begin_with(rows, columns, "proctally-test", argv);
}

static void begin(void)
{
	begin_sized(24, 80);
	await(row_of("beta ") == 2 && row_of("q quit") == 23);
}

/* What waitpid() told the leader next; what is written is taken meanwhile. */
static int next_status(void)
{
	struct pollfd p = {.fd = t.status_fd, .events = POLLIN};
	int64_t until = now_ms() + (tap.failed ? IMPATIENCE_MS : PATIENCE_MS);
	int status = -1;

	while (poll(&p, 1, 0) == 0 && now_ms() < until) {
		if (t.master >= 0)
			take_bytes(20);
		else
			poll(&p, 1, 20);
	}
	if (!(p.revents & POLLIN))
		tap_fail(__FILE__, __LINE__, "it goes on for ever");
	else if (read(t.status_fd, &status, sizeof(status)) != sizeof(status))
		tap_fail(__FILE__, __LINE__, "the leader is gone");
	return status;
}

/* The bits that a program may set; not the speed. */
static bool same_modes(void)
{
	struct termios now;

	check_int(tcgetattr(t.slave, &now), 0);
	return now.c_iflag == t.before.c_iflag &&
	       now.c_oflag == t.before.c_oflag &&
	       now.c_lflag == t.before.c_lflag &&
	       now.c_cflag == t.before.c_cflag &&
	       memcmp(now.c_cc, t.before.c_cc, sizeof(now.c_cc)) == 0;
}

static void check_restored(void)
{
	while (poll(&(struct pollfd){t.master, POLLIN, 0}, 1, 0) == 1)
		take_bytes(0);
	check(!t.other_screen);
	check(!t.no_cursor);
	check(!t.reverse);
	check(same_modes());
}

static void end(void)
{
	kill(t.leader, SIGKILL);
	if (t.pid > 0)
		kill(t.pid, SIGKILL);
	waitpid(t.leader, NULL, 0);
	if (t.master >= 0)
		close(t.master);
	close(t.slave);
	close(t.status_fd);
}

static void check_ends(int want)
{
	int status = next_status();

	if (!WIFEXITED(status) || WEXITSTATUS(status) != want)
		tap_fail(__FILE__, __LINE__, "want exit status %d, got 0x%x",
			 want, (unsigned)status);
	t.pid = 0; /* the leader has reaped it */
}

/* The tests. */

static void draws(void)
{
	begin();
	check(t.other_screen);
	check(!same_modes());
	check(shows("5 processes"));
	check(shows("5 groups"));
	check_int(row_of("GROUP"), 1);
	check(t.is_reverse[1]);
	check_int(row_of("gamma "), 3);
	check_int(row_of("alpha "), 4);
	check_int(row_of("other "), 5);
	check_int(row_of("nobody "), 6);
	check(t.is_reverse[2]);
	check(!t.is_reverse[3]);
	check_int(row_of("q quit"), 23);
	check(shows("1.2M")); /* beta: 305 pages of 4 KiB */
	press("q");
	check_ends(0);
	check_restored();
	end();
}

static void sorts(void)
{
	struct task busy = {10, "alpha", 100000, 100};

	begin();
	press("n");
	await(row_of("alpha ") == 2 && row_of("beta ") == 3 &&
	      row_of("gamma ") == 4 && row_of("nobody ") == 5 &&
	      row_of("other ") == 6);
	press("r");
	await(row_of("other ") == 2 && row_of("alpha ") == 6);
	press("m");
	await(row_of("beta ") == 2 && row_of("gamma ") == 3);
	press("u");
	await(row_of("beta ") == 2);
	press("r");
	await(row_of("beta ") == 5);
	press("c");
	await(row_of("beta ") == 2);
	/* It is on top for as long as the interval in which it was busy. */
	put_task(&busy);
	await(row_of("alpha ") == 2);
	await(row_of("beta ") == 2);
	press("q");
	check_ends(0);
	end();
}

static void members(void)
{
	begin();
	press("\033[B\033[B\033[B"); /* down to "other" */
	await(t.is_reverse[5]);
	press("\r");
	await(shows("COMM of other"));
	await(row_of("40 S") == 2);
	check(shows("?[31mevil"));
	press("\033[D"); /* left */
	await(row_of("GROUP") == 1 && row_of("beta ") == 2);
	press("\033[H"); /* home */
	await(t.is_reverse[2]);
	press("\033[C"); /* right */
	await(row_of("20 S") == 2 && row_of("21 S") == 3);
	press("m");
	press("r");
	await(row_of("21 S") == 2 && row_of("20 S") == 3);
	press("\033"); /* escape, and nothing that follows it */
	await(row_of("GROUP") == 1);
	press("q");
	check_ends(0);
	end();
}

static void help(void)
{
	begin();
	press("h");
	await(shows("sort by RSS"));
	press("h");
	await(row_of("GROUP") == 1);
	press("q");
	check_ends(0);
	end();
}

static void pause_key(void)
{
	struct task larger = {10, "alpha", 0, 900};

	begin();
	press("m ");
	await(shows("paused"));
	put_task(&larger);
	for (int i = 0; i < 10; i++)
		take_bytes(50);
	check_int(row_of("beta "), 2);
	press(" ");
	await(row_of("alpha ") == 2);
	await(!shows("paused"));
	press("q");
	check_ends(0);
	end();
}

static void resizes(void)
{
	static const int sizes[][2] = {{5, 20},	 {1, 1},    {2, 7},  {3, 1},
				       {1, 80},	 {40, 150}, {24, 2}, {4, 4},
				       {24, 80}, {10, 40}};

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		resize(sizes[i][0], sizes[i][1]);
		for (int k = 0; k < 6; k++)
			take_bytes(50);
		if (sizes[i][0] >= 4 && sizes[i][1] >= 20)
			await(row_of("q quit") == sizes[i][0] - 1);
		press(i % 2 ? "\r" : "\033[D\033[6~");
	}
	press("\033[D");
	await(row_of("q quit") == 9);
	check_int(row_of("GROUP"), 1);
	check(!shows("SWAP"));
	press("q");
	check_ends(0);
	check_restored();
	end();
}

static void smallest(void)
{
	begin_sized(1, 1);
	for (int i = 0; i < 20; i++)
		take_bytes(50);
	press("h\033[6~\r");
	for (int i = 0; i < 6; i++)
		take_bytes(50);
	resize(24, 80);
	await(shows("COMM of"));
	press("q");
	check_ends(0);
	check_restored();
	end();
}

static void signals(void)
{
	static const int signal_of[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

	for (size_t i = 0; i < ARRAY_SIZE(signal_of); i++) {
		begin();
		kill(t.pid, signal_of[i]);
		check_ends(0);
		check_restored();
		end();
	}
	begin();
	press("\003"); /* Ctrl-C */
	check_ends(0);
	check_restored();
	end();
}

static void stop_and_go_on(void)
{
	begin();
	press("\032"); /* Ctrl-Z */
	check(WIFSTOPPED(next_status()));
	check_restored();
	clear_cells();
	resize(20, 70);
	kill(t.pid, SIGCONT);
	await(t.other_screen && row_of("beta ") == 2 && row_of("q quit") == 19);
	check(!same_modes());
	/* From outside, and somebody else wrote on the screen meanwhile. */
	kill(t.pid, SIGSTOP);
	check(WIFSTOPPED(next_status()));
	clear_cells();
	tcsetattr(t.slave, TCSANOW, &t.before);
	kill(t.pid, SIGCONT);
	await(row_of("beta ") == 2 && row_of("q quit") == 19);
	check(!same_modes());
	press("q");
	check_ends(0);
	check_restored();
	end();
}

static void flow_control(void)
{
	begin();
	press("\023"); /* Ctrl-S */
	press("n");
	await(row_of("alpha ") == 2);
	press("q");
	check_ends(0);
	check_restored();
	end();
}

static void terminal_that_goes(void)
{
	begin();
	close(t.master);
	t.master = -1;
	check_ends(0);
	end();
}

static void number_of_ticks(void)
{
	char rules[128];
	const char *argv[] = {command,	    "top",     "--rules",
			      rules,	    "--count", "2",
			      "--interval", "0.1",     NULL};

	snprintf(rules, sizeof(rules), "%s/rules.yaml", dir);
	begin_with(24, 80, "proctally-test", argv);
	await(row_of("GROUP") == 1);
	check_ends(0);
	check_restored();
	end();
}

/* Runs it where it cannot draw. */
static void refused(const char *term, const char *rules_name, const char *says)
{
	char rules[128];
	const char *argv[] = {command, "top", "--rules", rules, NULL};

	snprintf(rules, sizeof(rules), "%s/%s", dir, rules_name);
	begin_with(24, 80, term, argv);
	check_ends(1);
	while (poll(&(struct pollfd){t.master, POLLIN, 0}, 1, 0) == 1)
		take_bytes(0);
	if (!strstr(t.start, says))
		tap_fail(__FILE__, __LINE__, "not said: \"%s\", but: %s", says,
			 t.start);
	check(!strchr(t.start, '\033'));
	check(same_modes());
	end();
}

static void unusable_terminals(void)
{
	refused(NULL, "rules.yaml", "TERM is not set");
	refused("", "rules.yaml", "TERM is not set");
	refused("no-such-terminal", "rules.yaml",
		"\"no-such-terminal\" is unknown");
	refused("proctally-dumb", "rules.yaml", "\"proctally-dumb\"");
}

static void unusable_rules(void)
{
	refused("proctally-test", "wrong.yaml", "wrong.yaml:1:1: error: ");
	refused("proctally-test", "none.yaml", "No such file");
}

/* Setting up. */

static int remove_entry(const char *path, _unused_ const struct stat *st,
			_unused_ int type, _unused_ struct FTW *ftw)
{
	return remove(path);
}

static bool compile_terminal(void)
{
	char line[512];

	write_file("terminal.ti", terminal);
	snprintf(line, sizeof(line),
		 "tic -x -o %s/terminfo %s/terminal.ti >/dev/null 2>&1", dir,
		 dir);
	return system(line) == 0;
}

/* Built without ncurses it says so; that is all that there is to see. */
static bool is_without_ncurses(void)
{
	bool without;

	begin_sized(24, 80);
	for (int i = 0; i < 400 && !t.n_bytes; i++)
		take_bytes(50);
	take_bytes(100);
	without = strstr(t.start, "built without ncurses") != NULL;
	end();
	return without;
}

static void set_up(void)
{
	const char *build = getenv("top_builddir");

	snprintf(command, sizeof(command), "%s/proctally", build ? build : ".");
	snprintf(dir, sizeof(dir), "/tmp/proctally-top.XXXXXX");
	if (!mkdtemp(dir))
		printf("Bail out! no temporary directory\n");
	write_file("rules.yaml", "rules:\n"
				 "- {name: nobody, comm: no-such-comm}\n"
				 "- {name: '{{.Comm}}', "
				 "comm: [alpha, beta, gamma]}\n");
	write_file("wrong.yaml", "nonsense: x\n");
	mkdir(strcat(strcpy((char[128]){0}, dir), "/proc"), 0755);
}

int main(void)
{
	bool ci = getenv("CI") && strcmp(getenv("CI"), "true") == 0;
	const char *missing = NULL;

	set_up();
	if (!compile_terminal())
		missing = "no tic";
	else if (is_without_ncurses())
		missing = "built without ncurses";
	if (missing) {
		printf("%sok 1 - top can be seen # %s%s\n", ci ? "not " : "",
		       ci ? "" : "SKIP ", missing);
		printf("1..1\n");
	} else {
		TEST("draws the groups, and q gives the terminal back", draws);
		TEST("sorts on a key", sorts);
		TEST("shows the members of a group", members);
		TEST("shows help", help);
		TEST("stands still while it is paused", pause_key);
		TEST("follows the size of the terminal", resizes);
		TEST("begins on a terminal of one character", smallest);
		TEST("signals end it with status 0 and the terminal restored",
		     signals);
		TEST("stops with the terminal restored, and goes on",
		     stop_and_go_on);
		TEST("Ctrl-S does not hold it up", flow_control);
		TEST("ends when the terminal goes", terminal_that_goes);
		TEST("ends after a number of ticks", number_of_ticks);
		TEST("says what is wrong with a terminal", unusable_terminals);
		TEST("says what is wrong with rules before it draws",
		     unusable_rules);
		tap_done();
	}
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
