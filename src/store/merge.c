/* SPDX-License-Identifier: MIT */
/* Taking in another store. What makes two subjects, runs or results the same is in
 * docs/store.md. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "store/ops.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    BATCH = 500,            /* results of one transaction */
    BUSY_MS = 5000,         /* for the store that is read */
    LIST_MAX = 1 << 22,     /* subjects, and runs of one subject */
    KEY_BYTES_MAX = 2 << 20 /* of a run: a host and a command line */
};
#define RUNS_BYTES_MAX ((size_t)256 << 20)

struct known_run {
    int64_t id;
    int64_t ended_us;
};

/* A run with its texts in an arena. */
struct copied_run {
    struct kp_store_run r;
    const char *key;
};

struct merge {
    struct kp_store *to;
    struct kp_store *from;
    int64_t subject; /* in `to` */
    /* of the subject at hand */
    struct kp_map known_at; /* key of a run in `to` -> index into known */
    struct known_run *known;
    size_t n_known;
    size_t cap_known;
    struct copied_run *runs; /* of `from`, newest first */
    size_t n_runs;
    size_t cap_runs;
    struct kp_arena arena;
    struct kp_map run_ids; /* run in `from` -> run in `to` */
    /* of the transaction at work */
    bool open;
    int in_batch;
    struct kp_import_count pending;
    struct kp_import_count *count;
    kopt_status st; /* of a visitor */
    kopt_error *err;
};

/* --- transactions --------------------------------------------------------------------------
 */

static kopt_status batch_begin(struct merge *m)
{
    kopt_status st = m->open ? KOPT_OK : m->to->ops->batch_begin(m->to, m->err);
    m->open = st == KOPT_OK;
    return st;
}

static kopt_status batch_end(struct merge *m, bool keep, kopt_error *err)
{
    if (!m->open)
        return KOPT_OK;
    kopt_status st = m->to->ops->batch_end(m->to, keep, err);
    if (keep && st == KOPT_OK) {
        m->count->added += m->pending.added;
        m->count->present += m->pending.present;
        m->count->bad += m->pending.bad;
    }
    m->pending = (struct kp_import_count){0};
    m->in_batch = 0;
    m->open = false;
    return st;
}

/* --- subjects ------------------------------------------------------------------------------
 */

struct has {
    bool path;
    bool params;
};

static bool note_texts(void *user, const struct kp_subject *s)
{
    *(struct has *)user = (struct has){s->kernel_path[0] != '\0', s->params[0] != '\0'};
    return false;
}

/* A subject that is there already keeps its own path, since that of the other machine is of no
 * use here, and its own order of parameters. */
static bool take_subject(void *user, const struct kp_subject *s)
{
    struct merge *m = user;
    struct kp_subject x = *s;
    struct has has = {false, false};
    x.kernel_path = "";
    x.params = "";
    m->st = kp_store_subject(m->to, &x, m->err);
    if (m->st == KOPT_OK)
        m->st = kp_store_subject_get(m->to, x.id, note_texts, &has, m->err);
    m->subject = x.id;
    x.kernel_path = has.path ? "" : s->kernel_path;
    x.params = has.params ? "" : s->params;
    if (m->st == KOPT_OK && (x.kernel_path[0] || x.params[0]))
        m->st = kp_store_subject(m->to, &x, m->err);
    return false;
}

/* --- runs ----------------------------------------------------------------------------------
 */

/* What a run keeps from its beginning on. */
static void run_key(const struct kp_store_run *r, struct kp_buf *out)
{
    kp_buf_addf(out, "%lld %lld %s\n%s", (long long)r->begun_us, (long long)r->seed, r->host,
                r->command);
}

static bool note_known(void *user, const struct kp_store_run *r)
{
    struct merge *m = user;
    struct kp_buf key = KP_BUF_INIT(KEY_BYTES_MAX);
    void *items = m->known;
    bool room = kp_grow(&items, &m->cap_known, m->n_known, sizeof(*m->known), LIST_MAX);
    m->known = items;
    run_key(r, &key);
    m->st = kp_buf_status(&key, m->err);
    uint64_t *at =
        room && m->st == KOPT_OK ? kp_map_put(&m->known_at, key.ptr, key.len, NULL) : NULL;
    if (at) {
        *at = m->n_known;
        m->known[m->n_known++] = (struct known_run){r->id, r->ended_us};
    } else if (m->st == KOPT_OK) {
        m->st = kp_err_nomem(m->err);
    }
    kp_buf_deinit(&key);
    return at != NULL;
}

static const char *keep(struct merge *m, const char *text)
{
    return kp_arena_strndup(&m->arena, text, strlen(text));
}

static bool copy_run(void *user, const struct kp_store_run *r)
{
    struct merge *m = user;
    struct kp_buf key = KP_BUF_INIT(KEY_BYTES_MAX);
    void *items = m->runs;
    bool room = kp_grow(&items, &m->cap_runs, m->n_runs, sizeof(*m->runs), LIST_MAX);
    m->runs = items;
    run_key(r, &key);
    m->st = kp_buf_status(&key, m->err);
    if (room && m->st == KOPT_OK) {
        struct copied_run *c = &m->runs[m->n_runs++];
        *c = (struct copied_run){*r, keep(m, kp_buf_text(&key))};
        c->r.command = keep(m, r->command);
        c->r.strategy = keep(m, r->strategy);
        c->r.version = keep(m, r->version);
        c->r.host = keep(m, r->host);
        c->r.state = keep(m, r->state);
        c->r.summary = keep(m, r->summary);
    }
    kp_buf_deinit(&key);
    if (m->st == KOPT_OK && (!room || m->arena.failed))
        m->st = kp_err_nomem(m->err);
    return m->st == KOPT_OK;
}

/* Adds the run, or completes one that was going on when it was taken in before. */
static kopt_status take_run(struct merge *m, struct copied_run *c)
{
    kopt_status st = KOPT_OK;
    int64_t from = c->r.id;
    const uint64_t *at = kp_map_get(&m->known_at, c->key, strlen(c->key));
    if (at) {
        const struct known_run *known = &m->known[*at];
        c->r.id = known->id;
        if (known->ended_us == 0 && c->r.ended_us != 0)
            st = m->to->ops->run_end(m->to, &c->r, m->err);
    } else {
        c->r.subject = m->subject;
        st = kp_store_run_begin(m->to, &c->r, m->err);
    }
    if (st != KOPT_OK)
        return st;
    uint64_t *to = kp_map_put(&m->run_ids, &from, sizeof(from), NULL);
    if (!to)
        return kp_err_nomem(m->err);
    *to = (uint64_t)c->r.id;
    return KOPT_OK;
}

static void forget_runs(struct merge *m)
{
    kp_map_deinit(&m->known_at);
    kp_map_deinit(&m->run_ids);
    kp_arena_deinit(&m->arena);
    kp_free(m->known);
    kp_free(m->runs);
    m->known = NULL;
    m->runs = NULL;
    m->n_known = m->cap_known = m->n_runs = m->cap_runs = 0;
}

static kopt_status take_runs(struct merge *m, int64_t from_subject)
{
    kopt_status st = kp_store_runs(m->to, m->subject, note_known, m, m->err);
    if (st == KOPT_OK && m->st == KOPT_OK)
        st = kp_store_runs(m->from, from_subject, copy_run, m, m->err);
    if (st == KOPT_OK)
        st = m->st;
    for (size_t i = m->n_runs; i > 0 && st == KOPT_OK; i--)
        st = take_run(m, &m->runs[i - 1]);
    return st;
}

/* --- results -------------------------------------------------------------------------------
 */

static bool take_result(void *user, const kopt_result *r, int64_t subject, int64_t run)
{
    struct merge *m = user;
    bool found = false;
    int64_t id = 0;
    (void)subject;
    if (r->outcome == KOPT_OUT_INTERRUPTED)
        return true; /* no result, and perhaps one that is being measured there */
    const uint64_t *to = kp_map_get(&m->run_ids, &run, sizeof(run));
    m->st = batch_begin(m);
    if (m->st == KOPT_OK)
        m->st = m->to->ops->has(m->to, m->subject, r, &found, m->err);
    if (m->st == KOPT_OK && !found)
        m->st = kp_store_add(m->to, to ? (int64_t)*to : 0, m->subject, r, &id, m->err);
    bool bad = m->st == KOPT_EUSAGE || m->st == KOPT_ERANGE; /* a row kopt never writes */
    if (m->st != KOPT_OK && !bad)
        return false;
    m->st = KOPT_OK;
    m->pending.added += !found && !bad;
    m->pending.present += found;
    m->pending.bad += bad;
    /* The rows of a race stand together: they come in together. */
    if (++m->in_batch >= (r->race ? 2 * BATCH : BATCH))
        m->st = batch_end(m, true, m->err);
    return m->st == KOPT_OK;
}

/* The oldest first: of two results the later one counts. */
static kopt_status take_all_of(struct merge *m, int64_t from_subject)
{
    const struct kp_result_filter f = {.subject = from_subject, .outcome = -1};
    kopt_status st = batch_begin(m);
    if (st == KOPT_OK)
        st = kp_store_subject_get(m->from, from_subject, take_subject, m, m->err);
    if (st == KOPT_OK)
        st = m->st;
    if (st == KOPT_OK)
        st = take_runs(m, from_subject);
    if (st == KOPT_OK)
        st = kp_store_results(m->from, &f, take_result, m, m->err);
    forget_runs(m);
    return st == KOPT_OK ? m->st : st;
}

/* --- the whole -----------------------------------------------------------------------------
 */

struct subject_list {
    int64_t *ids;
    size_t n;
    size_t cap;
    bool failed;
};

static bool note_id(void *user, const struct kp_subject *s)
{
    struct subject_list *l = user;
    void *items = l->ids;
    l->failed = !kp_grow(&items, &l->cap, l->n, sizeof(*l->ids), LIST_MAX);
    l->ids = items;
    if (!l->failed)
        l->ids[l->n++] = s->id;
    return !l->failed;
}

static kopt_status merge_from(struct merge *m, kopt_error *err)
{
    struct subject_list l = {0};
    kopt_error undone;
    kopt_status st = kp_store_subjects(m->from, NULL, note_id, &l, err);
    if (st == KOPT_OK && l.failed)
        st = kp_err_nomem(err);
    for (size_t i = l.n; i > 0 && st == KOPT_OK; i--) /* they come newest first */
        st = take_all_of(m, l.ids[i - 1]);
    kopt_status end = batch_end(m, st == KOPT_OK, st == KOPT_OK ? err : &undone);
    kp_free(l.ids);
    return st == KOPT_OK ? end : st;
}

static kopt_status merge(struct kp_store *to, const char *path, struct kp_import_count *count,
                         kopt_error *err)
{
    struct merge m = {.to = to, .count = count, .err = err, .arena = {.max = RUNS_BYTES_MAX}};
    kopt_status st = kp_store_open(path, KP_STORE_READ, BUSY_MS, &m.from, err);
    if (st != KOPT_OK)
        return st;
    st = kp_store_check(m.from, err); /* rather nothing than half of a damaged one */
    if (st == KOPT_OK)
        st = merge_from(&m, err);
    kp_store_close(m.from);
    return st;
}

/* --- which kind of file --------------------------------------------------------------------
 */

bool kp_store_is_database(const char *path)
{
    static const char magic[16] = "SQLite format 3"; /* with its NUL */
    char head[sizeof(magic)];
    FILE *f = fopen(path, "rbe");
    if (!f)
        return false;
    bool same = fread(head, 1, sizeof(head), f) == sizeof(head) &&
                memcmp(head, magic, sizeof(magic)) == 0;
    (void)fclose(f);
    return same;
}

kopt_status kp_store_import(struct kp_store *st, const char *path,
                            struct kp_import_count *count, kopt_error *err)
{
    struct stat info;
    *count = (struct kp_import_count){0};
    kopt_status code = kp_store_may_write(st, err);
    if (code != KOPT_OK)
        return code;
    bool plain = stat(path, &info) == 0 && S_ISREG(info.st_mode);
    /* Before it is opened: closing it would take this process's locks on it away. */
    if (plain && info.st_dev == st->dev && info.st_ino == st->ino) {
        (void)kp_err(err, KOPT_EUSAGE, "%s is the store itself", path);
        kp_err_hint(err, "name another store as the one to import from");
        return KOPT_EUSAGE;
    }
    if (plain && kp_store_is_database(path))
        return merge(st, path, count, err);
    return kp_store_import_kt(st, path, count, err);
}
