/* SPDX-License-Identifier: MIT */
#include "model/crew.h"

#include "base/alloc.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

enum { THREADS_MAX = 64 };

struct kp_crew {
    pthread_mutex_t lock;
    pthread_cond_t work; /* there are tasks, or it ends */
    pthread_cond_t done; /* the last task is done */
    void (*task)(void *user, size_t i);
    void *user;
    size_t n;       /* tasks of this run */
    size_t next;    /* the first that nobody has taken */
    size_t pending; /* taken or not, not done */
    bool end;
    unsigned n_threads; /* started */
    pthread_t threads[THREADS_MAX];
};

/* With the lock held; gives it back for the task. */
static void do_tasks(struct kp_crew *c)
{
    while (c->next < c->n) {
        size_t i = c->next++;
        (void)pthread_mutex_unlock(&c->lock);
        c->task(c->user, i);
        (void)pthread_mutex_lock(&c->lock);
        if (--c->pending == 0)
            (void)pthread_cond_signal(&c->done);
    }
}

static void *member(void *user)
{
    struct kp_crew *c = user;
    (void)pthread_mutex_lock(&c->lock);
    while (!c->end) {
        do_tasks(c);
        if (!c->end)
            (void)pthread_cond_wait(&c->work, &c->lock);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}

static unsigned count_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n < 1 ? 1 : (unsigned)n;
}

kopt_status kp_crew_new(unsigned threads, struct kp_crew **out, kopt_error *err)
{
    struct kp_crew *c = kp_calloc(1, sizeof(*c));
    *out = NULL;
    if (!c)
        return kp_err_nomem(err);
    (void)pthread_mutex_init(&c->lock, NULL); /* none of these can fail on Linux */
    (void)pthread_cond_init(&c->work, NULL);
    (void)pthread_cond_init(&c->done, NULL);
    threads = threads ? threads : count_cores();
    threads = threads > THREADS_MAX ? THREADS_MAX : threads;
    while (c->n_threads + 1 < threads &&
           pthread_create(&c->threads[c->n_threads], NULL, member, c) == 0)
        c->n_threads++;
    *out = c;
    return KOPT_OK;
}

void kp_crew_free(struct kp_crew *c)
{
    if (!c)
        return;
    (void)pthread_mutex_lock(&c->lock);
    c->end = true;
    (void)pthread_cond_broadcast(&c->work);
    (void)pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < c->n_threads; i++)
        (void)pthread_join(c->threads[i], NULL);
    (void)pthread_cond_destroy(&c->done);
    (void)pthread_cond_destroy(&c->work);
    (void)pthread_mutex_destroy(&c->lock);
    kp_free(c);
}

unsigned kp_crew_threads(const struct kp_crew *c)
{
    return c->n_threads + 1;
}

void kp_crew_run(struct kp_crew *c, void (*task)(void *user, size_t i), void *user, size_t n)
{
    (void)pthread_mutex_lock(&c->lock);
    c->task = task;
    c->user = user;
    c->next = 0;
    c->n = c->pending = n;
    (void)pthread_cond_broadcast(&c->work);
    do_tasks(c);
    while (c->pending)
        (void)pthread_cond_wait(&c->done, &c->lock);
    (void)pthread_mutex_unlock(&c->lock);
}
