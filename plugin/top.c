/* SPDX-License-Identifier: MIT */
#include "top.h"
#include "clocks.h"
#include "events.h"
#include "outbuf.h"
#include "screen.h"
#include "view.h"
#include "watch.h"

#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>

#define FIRST_STEP_NS (NSEC_PER_SEC / 2) /* until there are rates */

struct top {
	struct watch watch;
	struct view view;
	struct screen *screen; /* NULL: tables one after the other */
	struct outbuf out;
	int signal_fd;
	uint64_t step_ns, due_ns;
	unsigned long count, n_tables;
	bool quit;
};

/* What somebody made us ignore (nohup) stays ignored. */
static void add_signal(sigset_t *set, int number)
{
	struct sigaction old;

	if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaddset(set, number);
}

/*
 * Signals are read between ticks, so that nothing is done to the terminal in
 * their middle. A thread of the monitor never gets one.
 */
static int catch_signals(bool terminal)
{
	static const int all[] = {SIGINT, SIGTERM, SIGHUP};
	static const int of_terminal[] = {SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		add_signal(&set, all[i]);
	for (size_t i = 0; terminal && i < ARRAY_SIZE(of_terminal); i++)
		add_signal(&set, of_terminal[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* What a person should know takes the place of the keys until one is hit. */
static void take_events(struct top *t)
{
	struct monitor_event e;

	while (monitor_take_event(t->watch.monitor, &e))
		if (e.level != MONITOR_INFO)
			snprintf(t->view.status, sizeof(t->view.status), "%s",
				 e.text);
}

static int tick(struct top *t)
{
	int r = watch_tick(&t->watch);

	t->due_ns = MAX(t->due_ns, t->watch.now.mono_ns) + t->step_ns;
	if (t->watch.n_ticks == 1)
		t->due_ns =
		    t->watch.now.mono_ns + MIN(t->step_ns, FIRST_STEP_NS);
	if (t->screen)
		take_events(t);
	else
		events_print(t->watch.monitor);
	return r;
}

/* Lets the view follow what happened, and draws it. */
static int draw(struct top *t)
{
	struct view *v = &t->view;
	struct view_line line;
	int rows, columns, r;

	screen_size(t->screen, &rows, &columns);
	view_resize(v, rows, columns);
	r = view_update(v, &t->watch);
	for (int row = 0; row < v->rows; row++) {
		view_draw(v, &t->watch, row, &line);
		screen_put(t->screen, row, &line);
	}
	screen_flush(t->screen);
	return r;
}

static int print_table(struct top *t)
{
	char line[TABLE_LINE_SIZE];
	int mark, mark_len;

	table_fit(&t->view.table, &t->watch.board, t->watch.views, 0);
	board_sort(&t->watch.board, &t->view.groups.order);
	view_headline(&t->view, &t->watch, line);
	outbuf_printf(&t->out, "%s%s\n", t->n_tables ? "\n" : "", line);
	table_head(&t->view.table, t->view.groups.order.by, line, &mark,
		   &mark_len);
	outbuf_printf(&t->out, "%s\n", line);
	for (size_t i = 0; i < t->watch.board.n_rows; i++) {
		table_row(&t->view.table,
			  &t->watch.board.row[t->watch.board.order[i]], line);
		outbuf_printf(&t->out, "%s\n", line);
	}
	return outbuf_flush(&t->out);
}

/* As the shell expects of a program that is told to stop. */
static void stop(struct top *t)
{
	sigset_t set;

	screen_leave(t->screen);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	signal(SIGTSTP, SIG_DFL);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	/* Here it stands still until SIGCONT. */
	sigprocmask(SIG_BLOCK, &set, NULL);
	screen_enter(t->screen);
}

static void take_signals(struct top *t)
{
	struct signalfd_siginfo info;

	while (read(t->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGWINCH:
			break;
		case SIGTSTP:
			stop(t);
			break;
		case SIGCONT:
			screen_enter(t->screen);
			break;
		default:
			t->quit = true;
		}
	}
}

static void take_keys(struct top *t)
{
	int key;

	while (!t->quit && (key = screen_key(t->screen)) >= 0) {
		t->quit = !view_press(&t->view, &t->watch, key);
		/* The next key is about what this one has changed. */
		view_update(&t->view, &t->watch);
	}
}

/* Waits for a key, a signal or the time of the next tick. */
static int wait_for_something(struct top *t)
{
	struct pollfd p[2] = {
	    {.fd = t->signal_fd, .events = POLLIN},
	    {.fd = t->screen ? STDIN_FILENO : -1, .events = POLLIN},
	};
	uint64_t now = clocks_now().mono_ns;
	uint64_t rest = t->due_ns > now ? t->due_ns - now : 0;
	struct timespec ts = {.tv_sec = (time_t)(rest / NSEC_PER_SEC),
			      .tv_nsec = (long)(rest % NSEC_PER_SEC)};

	if (ppoll(p, 2, t->view.paused ? NULL : &ts, NULL) < 0)
		return errno == EINTR ? 0 : -errno;
	if (p[0].revents)
		take_signals(t);
	if (p[1].revents & POLLIN)
		take_keys(t);
	/* The terminal is gone. */
	if (p[1].revents & (POLLHUP | POLLERR | POLLNVAL))
		t->quit = true;
	return 0;
}

/* A tick whose time has come, and what is printed or counted of it. */
static int go_on(struct top *t)
{
	int r;

	if (t->view.paused || clocks_now().mono_ns < t->due_ns)
		return 0;
	/* Seen long enough. */
	if (t->count && t->n_tables == t->count) {
		t->quit = true;
		return 0;
	}
	r = tick(t);
	if (r == 0 && !t->screen)
		r = print_table(t);
	t->n_tables++;
	if (!t->screen && t->n_tables == t->count)
		t->quit = true;
	return r;
}

static int run(struct top *t)
{
	int r = 0;

	while (r == 0 && !t->quit) {
		if (t->screen)
			r = draw(t);
		if (r == 0)
			r = wait_for_something(t);
		if (r == 0 && !t->quit)
			r = go_on(t);
	}
	return r;
}

/* The first tick: its mistakes are told before the screen is taken. */
static int begin(struct top *t, const struct top_options *o, bool terminal)
{
	int r;

	t->signal_fd = catch_signals(terminal);
	if (t->signal_fd < 0)
		return t->signal_fd;
	if (watch_open(&t->watch, &o->monitor) < 0)
		return 1;
	r = tick(t);
	if (r < 0)
		return r;
	if (!monitor_has_rules(t->watch.monitor) ||
	    (terminal && screen_open(&t->screen) < 0))
		return 1;
	return 0;
}

int top_run(const struct top_options *o)
{
	bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	struct top t = {
	    .step_ns = (uint64_t)(o->interval_s * 1e9),
	    .count = o->count,
	    .signal_fd = -1,
	};
	int r;

	if (!terminal && !o->count) {
		fprintf(stderr, "proctally top: standard input and output are "
				"no terminal; --count N prints N tables\n");
		return 2;
	}
	setlocale(LC_CTYPE, "");
	outbuf_init(&t.out, STDOUT_FILENO);
	view_init(&t.view);
	if (gethostname(t.view.host, sizeof(t.view.host) - 1) < 0)
		strcpy(t.view.host, "localhost");
	r = begin(&t, o, terminal);
	if (r == 0)
		r = run(&t);
	screen_close(t.screen);
	watch_close(&t.watch);
	base_closep(&t.signal_fd);
	if (r < 0 && r != -EPIPE)
		fprintf(stderr, "proctally: %s\n", strerror(-r));
	return r && r != -EPIPE;
}
