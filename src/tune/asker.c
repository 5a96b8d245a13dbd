/* SPDX-License-Identifier: MIT */
#include "tune/asker.h"

#include "base/alloc.h"
#include "os/clock.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

enum { POSTS_MAX = 2048, ANSWERS_MAX = 1024 };

struct post {
    bool ask;
    double cost; /* of a tell */
};

struct kp_asker {
    struct kp_search *search;
    size_t n_params;
    int wake_fd;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* over all below */
    pthread_cond_t posted;
    pthread_cond_t settled;
    bool stop;
    bool busy;                    /* the thread is inside the strategy */
    struct post posts[POSTS_MAX]; /* a ring */
    size_t first_post;
    size_t n_posts;
    uint32_t *answers; /* a ring of ANSWERS_MAX configurations */
    bool ends[ANSWERS_MAX];
    size_t first_answer;
    size_t n_answers;
    size_t owed; /* asks that wait for results */
    int64_t busy_ns;
    double until; /* 0 = never */
    double remaining;
    bool ended; /* an ask was answered with the end because of `until` */
};

static void answer(struct kp_asker *a, const uint32_t *config)
{
    size_t at = (a->first_answer + a->n_answers) % ANSWERS_MAX;
    KP_CHECK(a->n_answers < ANSWERS_MAX);
    a->ends[at] = config == NULL;
    if (config)
        memcpy(a->answers + at * a->n_params, config, a->n_params * sizeof(*config));
    a->n_answers++;
    (void)eventfd_write(a->wake_fd, 1);
}

/* False where nothing is known: NaN is not less than anything. */
static bool is_enough(const struct kp_asker *a)
{
    return a->remaining < a->until;
}

/* One ask, unlocked while the strategy thinks. False: it has to wait for results. */
static bool carry_out_ask(struct kp_asker *a)
{
    uint32_t config[KP_PARAMS_MAX];
    bool waiting = false;
    if (is_enough(a)) {
        a->ended = true;
        answer(a, NULL);
        return true;
    }
    (void)pthread_mutex_unlock(&a->lock);
    int64_t begun = kp_clock_ns();
    bool got = kp_search_ask(a->search, config, &waiting);
    int64_t ns = kp_clock_ns() - begun;
    (void)pthread_mutex_lock(&a->lock);
    a->busy_ns += ns;
    if (!got && waiting)
        return false;
    answer(a, got ? config : NULL);
    return true;
}

static void carry_out_tell(struct kp_asker *a, double cost)
{
    (void)pthread_mutex_unlock(&a->lock);
    int64_t begun = kp_clock_ns();
    kp_search_tell(a->search, cost);
    double remaining = kp_search_remaining(a->search);
    int64_t ns = kp_clock_ns() - begun;
    (void)pthread_mutex_lock(&a->lock);
    a->busy_ns += ns;
    a->remaining = remaining;
    while (a->owed > 0 && !a->stop && carry_out_ask(a))
        a->owed--;
}

static void *work(void *user)
{
    struct kp_asker *a = user;
    (void)pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        if (a->n_posts == 0) {
            a->busy = false;
            (void)pthread_cond_broadcast(&a->settled);
            (void)pthread_cond_wait(&a->posted, &a->lock);
            continue;
        }
        a->busy = true;
        struct post p = a->posts[a->first_post];
        a->first_post = (a->first_post + 1) % POSTS_MAX;
        a->n_posts--;
        if (!p.ask)
            carry_out_tell(a, p.cost);
        else if (a->owed > 0 || !carry_out_ask(a))
            a->owed++;
    }
    a->busy = false;
    (void)pthread_cond_broadcast(&a->settled);
    (void)pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* Signals are the caller's threads' business. */
static bool start_thread(struct kp_asker *a)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&a->thread, NULL, work, a) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

kopt_status kp_asker_new(struct kp_search *search, size_t n_params, int wake_fd,
                         struct kp_asker **out, kopt_error *err)
{
    *out = NULL;
    struct kp_asker *a = kp_calloc(1, sizeof(*a));
    if (!a)
        return kp_err_nomem(err);
    a->search = search;
    a->n_params = n_params;
    a->wake_fd = wake_fd;
    a->remaining = (double)NAN;
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_cond_init(&a->posted, NULL);
    (void)pthread_cond_init(&a->settled, NULL);
    a->answers = kp_calloc(ANSWERS_MAX * (n_params ? n_params : 1), sizeof(*a->answers));
    a->started = a->answers && start_thread(a);
    if (!a->started) {
        kopt_status st =
            a->answers ? kp_err(err, KOPT_EIO, "cannot start a thread") : kp_err_nomem(err);
        kp_asker_free(a);
        return st;
    }
    *out = a;
    return KOPT_OK;
}

void kp_asker_free(struct kp_asker *a)
{
    if (!a)
        return;
    if (a->started) {
        (void)pthread_mutex_lock(&a->lock);
        a->stop = true;
        (void)pthread_cond_signal(&a->posted);
        (void)pthread_mutex_unlock(&a->lock);
        (void)pthread_join(a->thread, NULL);
    }
    (void)pthread_cond_destroy(&a->settled);
    (void)pthread_cond_destroy(&a->posted);
    (void)pthread_mutex_destroy(&a->lock);
    kp_free(a->answers);
    kp_free(a);
}

static void post(struct kp_asker *a, struct post p)
{
    (void)pthread_mutex_lock(&a->lock);
    KP_CHECK(a->n_posts < POSTS_MAX);
    a->posts[(a->first_post + a->n_posts) % POSTS_MAX] = p;
    a->n_posts++;
    a->busy = true;
    (void)pthread_cond_signal(&a->posted);
    (void)pthread_mutex_unlock(&a->lock);
}

void kp_asker_tell(struct kp_asker *a, double cost)
{
    post(a, (struct post){.cost = cost});
}

void kp_asker_ask(struct kp_asker *a)
{
    post(a, (struct post){.ask = true});
}

enum kp_answer kp_asker_take(struct kp_asker *a, uint32_t *config)
{
    enum kp_answer what = KP_ANSWER_NONE;
    (void)pthread_mutex_lock(&a->lock);
    if (a->n_answers > 0) {
        size_t at = a->first_answer;
        what = a->ends[at] ? KP_ANSWER_END : KP_ANSWER_CONFIG;
        memcpy(config, a->answers + at * a->n_params, a->n_params * sizeof(*config));
        a->first_answer = (at + 1) % ANSWERS_MAX;
        a->n_answers--;
    }
    (void)pthread_mutex_unlock(&a->lock);
    return what;
}

void kp_asker_until(struct kp_asker *a, double until)
{
    (void)pthread_mutex_lock(&a->lock);
    a->until = until;
    (void)pthread_mutex_unlock(&a->lock);
}

double kp_asker_remaining(struct kp_asker *a)
{
    (void)pthread_mutex_lock(&a->lock);
    double remaining = a->remaining;
    (void)pthread_mutex_unlock(&a->lock);
    return remaining;
}

bool kp_asker_ended(struct kp_asker *a)
{
    (void)pthread_mutex_lock(&a->lock);
    bool ended = a->ended;
    (void)pthread_mutex_unlock(&a->lock);
    return ended;
}

void kp_asker_settle(struct kp_asker *a)
{
    (void)pthread_mutex_lock(&a->lock);
    while (a->busy)
        (void)pthread_cond_wait(&a->settled, &a->lock);
    (void)pthread_mutex_unlock(&a->lock);
}

bool kp_asker_waits(struct kp_asker *a)
{
    (void)pthread_mutex_lock(&a->lock);
    bool waits = !a->busy && a->n_answers == 0 && a->owed > 0;
    (void)pthread_mutex_unlock(&a->lock);
    return waits;
}

int64_t kp_asker_busy_ns(struct kp_asker *a)
{
    (void)pthread_mutex_lock(&a->lock);
    int64_t ns = a->busy_ns;
    (void)pthread_mutex_unlock(&a->lock);
    return ns;
}
