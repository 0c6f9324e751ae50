/* SPDX-License-Identifier: MIT */
#include "lane.h"
#include "clocks.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

enum {
	STUCK_MAX_EVER = 64,
	STACK_SIZE = 256 * 1024,
};

struct worker {
	struct lane *lane;
	pthread_t thread;
	struct lane_job *job; /* that it runs */
	bool alive;	      /* the thread has not left its loop */
	bool started;	      /* the thread exists and is not joined */
	bool stuck;	      /* it was replaced; it leaves when it can */
};

struct lane {
	pthread_mutex_t lock;
	pthread_cond_t work;  /* to the worker: the queue has something */
	pthread_cond_t quiet; /* to the owner: a job is done or a worker left */
	struct lane_job *head, **tail; /* queue */
	struct lane_job *done, **done_tail;
	size_t n_pending; /* queued and running */
	unsigned n_alive, n_stuck;
	bool closed;	/* the owner wants no more */
	bool abandoned; /* the owner is gone and left it to the workers */
	char name[16];
	unsigned n_workers; /* that there may be; with all stuck it rests */
	struct worker worker[];
};

static void lane_free(struct lane *lane)
{
	pthread_cond_destroy(&lane->work);
	pthread_cond_destroy(&lane->quiet);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}

static void release_list(struct lane_job *job)
{
	while (job) {
		struct lane_job *next = job->next;

		job->release(job);
		job = next;
	}
}

static struct lane_job *pop_queue(struct lane *lane)
{
	struct lane_job *job = lane->head;

	lane->head = job->next;
	if (!lane->head)
		lane->tail = &lane->head;
	job->next = NULL;
	return job;
}

static void push_done(struct lane *lane, struct lane_job *job)
{
	*lane->done_tail = job;
	lane->done_tail = &job->next;
	lane->n_pending--;
	pthread_cond_broadcast(&lane->quiet);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct lane *lane = w->lane;
	bool last;

	pthread_mutex_lock(&lane->lock);
	while (!w->stuck && !lane->closed) {
		struct lane_job *job;

		if (!lane->head) {
			pthread_cond_wait(&lane->work, &lane->lock);
			continue;
		}
		job = pop_queue(lane);
		job->started_ns = clocks_read(CLOCK_MONOTONIC);
		w->job = job;
		pthread_mutex_unlock(&lane->lock);
		job->run(job);
		pthread_mutex_lock(&lane->lock);
		w->job = NULL;
		if (lane->closed)
			job->release(job);
		else
			push_done(lane, job);
	}
	if (w->stuck)
		lane->n_stuck--;
	w->alive = false;
	w->stuck = false;
	last = --lane->n_alive == 0 && lane->abandoned;
	pthread_cond_broadcast(&lane->quiet);
	pthread_mutex_unlock(&lane->lock);
	/* The owner left without waiting for us: what is left is ours. */
	if (last)
		lane_free(lane);
	return NULL;
}

static int start_worker(struct lane *lane, struct worker *w)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int r;

	if (w->started)
		pthread_join(w->thread, NULL); /* it has left its loop */
	*w = (struct worker){.lane = lane};
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	/* Signals are for the daemon's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&w->thread, &attr, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (r)
		return -r;
	pthread_setname_np(w->thread, lane->name);
	w->started = w->alive = true;
	lane->n_alive++;
	return 0;
}

/* Makes sure that somebody serves the queue, unless the lane rests. */
static int provide_worker(struct lane *lane)
{
	struct worker *free_slot = NULL;

	for (unsigned i = 0; i < lane->n_workers; i++) {
		struct worker *w = &lane->worker[i];

		if (w->alive && !w->stuck)
			return 0;
		if (!w->alive)
			free_slot = w;
	}
	if (!free_slot || lane->n_stuck >= lane->n_workers)
		return 0;
	return start_worker(lane, free_slot);
}

/* Gives up on a worker that has been in one job for too long. */
static void replace_slow(struct lane *lane, uint64_t now, uint64_t patience_ns)
{
	for (unsigned i = 0; i < lane->n_workers; i++) {
		struct worker *w = &lane->worker[i];

		if (!w->alive || w->stuck || !w->job ||
		    now - w->job->started_ns < patience_ns ||
		    lane->n_stuck >= lane->n_workers)
			continue;
		w->stuck = true;
		lane->n_stuck++;
	}
	if (lane->head)
		provide_worker(lane);
}

struct lane *lane_open(const char *name, unsigned stuck_max)
{
	struct lane *lane =
	    calloc(1, sizeof(*lane) + stuck_max * sizeof(struct worker));
	pthread_condattr_t attr;

	if (!lane)
		return NULL;
	lane->n_workers = MIN(stuck_max, (unsigned)STUCK_MAX_EVER);
	lane->tail = &lane->head;
	lane->done_tail = &lane->done;
	strncpy(lane->name, name, sizeof(lane->name) - 1);
	pthread_mutex_init(&lane->lock, NULL);
	pthread_cond_init(&lane->work, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&lane->quiet, &attr);
	pthread_condattr_destroy(&attr);
	return lane;
}

static int wait_quiet(struct lane *lane, uint64_t until_ns)
{
	struct timespec ts = {.tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
			      .tv_nsec = (long)(until_ns % NSEC_PER_SEC)};

	return pthread_cond_timedwait(&lane->quiet, &lane->lock, &ts);
}

bool lane_close(struct lane *lane)
{
	uint64_t deadline = clocks_read(CLOCK_MONOTONIC) + 100 * NSEC_PER_MSEC;
	struct lane_job *rest;
	unsigned n_left = 0;
	pthread_t left[STUCK_MAX_EVER];
	bool last;

	if (!lane)
		return true;
	pthread_mutex_lock(&lane->lock);
	lane->closed = true;
	rest = lane->head;
	lane->head = NULL;
	lane->tail = &lane->head;
	*lane->done_tail = rest;
	rest = lane->done;
	lane->done = NULL;
	pthread_cond_broadcast(&lane->work);
	while (lane->n_alive > 0 && wait_quiet(lane, deadline) != ETIMEDOUT)
		;
	last = lane->n_alive == 0;
	lane->abandoned = !last;
	for (unsigned i = 0; i < lane->n_workers; i++) {
		struct worker *w = &lane->worker[i];

		if (w->started && w->alive)
			pthread_detach(w->thread);
		else if (w->started)
			left[n_left++] = w->thread;
	}
	pthread_mutex_unlock(&lane->lock);
	for (unsigned i = 0; i < n_left; i++)
		pthread_join(left[i], NULL);
	release_list(rest);
	if (last)
		lane_free(lane);
	return last;
}

int lane_submit(struct lane *lane, struct lane_job *job)
{
	int r;

	pthread_mutex_lock(&lane->lock);
	r = lane->n_pending < LANE_QUEUE_MAX ? provide_worker(lane) : -EAGAIN;
	if (r == 0) {
		job->next = NULL;
		job->told = false;
		*lane->tail = job;
		lane->tail = &job->next;
		lane->n_pending++;
		pthread_cond_signal(&lane->work);
	}
	pthread_mutex_unlock(&lane->lock);
	return r;
}

/* True while something is queued or runs in a worker that is not stuck. */
static bool is_busy(const struct lane *lane)
{
	size_t stuck_jobs = 0;

	for (unsigned i = 0; i < lane->n_workers; i++)
		if (lane->worker[i].stuck && lane->worker[i].job)
			stuck_jobs++;
	return lane->n_pending > stuck_jobs;
}

bool lane_wait(struct lane *lane, uint64_t timeout_ns, uint64_t patience_ns)
{
	uint64_t deadline_ns = clocks_read(CLOCK_MONOTONIC) + timeout_ns;
	bool done;

	pthread_mutex_lock(&lane->lock);
	while (is_busy(lane)) {
		uint64_t now = clocks_read(CLOCK_MONOTONIC);

		if (now >= deadline_ns)
			break;
		replace_slow(lane, now, patience_ns);
		if (!is_busy(lane) || lane->n_stuck >= lane->n_workers)
			break;
		wait_quiet(lane, MIN(deadline_ns, now + patience_ns / 2 + 1));
	}
	done = lane->n_pending == 0;
	pthread_mutex_unlock(&lane->lock);
	return done;
}

struct lane_job *lane_take(struct lane *lane)
{
	struct lane_job *job;

	pthread_mutex_lock(&lane->lock);
	job = lane->done;
	if (job) {
		lane->done = job->next;
		if (!lane->done)
			lane->done_tail = &lane->done;
		job->next = NULL;
	}
	pthread_mutex_unlock(&lane->lock);
	return job;
}

void lane_watch(struct lane *lane, uint64_t limit_ns,
		void (*fn)(void *arg, const struct lane_job *job), void *arg)
{
	uint64_t now = clocks_read(CLOCK_MONOTONIC);

	pthread_mutex_lock(&lane->lock);
	replace_slow(lane, now, limit_ns);
	for (unsigned i = 0; i < lane->n_workers; i++) {
		struct lane_job *job = lane->worker[i].job;

		if (!job || job->told ||
		    now - job->started_ns < MAX(limit_ns, job->limit_ns))
			continue;
		job->told = true;
		fn(arg, job);
	}
	pthread_mutex_unlock(&lane->lock);
}

void lane_give_up(struct lane *lane)
{
	pthread_mutex_lock(&lane->lock);
	replace_slow(lane, clocks_read(CLOCK_MONOTONIC), 0);
	pthread_mutex_unlock(&lane->lock);
}

size_t lane_pending(struct lane *lane)
{
	size_t n;

	pthread_mutex_lock(&lane->lock);
	n = lane->n_pending;
	pthread_mutex_unlock(&lane->lock);
	return n;
}

unsigned lane_stuck(struct lane *lane)
{
	unsigned n;

	pthread_mutex_lock(&lane->lock);
	n = lane->n_stuck;
	pthread_mutex_unlock(&lane->lock);
	return n;
}
