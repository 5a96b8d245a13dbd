/* SPDX-License-Identifier: MIT */
/* Training for other programs. Layer: api. */
#include "api/data.h"
#include "api/limits.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "learn/fit.h"
#include "learn/partial.h"
#include "os/clock.h"
#include "os/file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INFO_MAX = 64 << 20, LIST_MAX = 240, SALT = 1, EPOCHS_MAX = 1000000, REPEAT_MAX = 1000 };
static const double save_seconds = 5;
static const double near_default = 0.1;

struct training {
    const kopt_train_options *o;
    struct kp_data data;
    struct kp_lesson *lesson;
    unsigned unbound;       /* numbers of the rules' device that are not known: bits */
    struct kp_ranks *ranks; /* for networks that rank */
    struct kp_fit_options fit;
    double near_best;
    struct kp_json *info; /* without "training" */
    char identity[KP_SHA256_HEX + 1];
    char *partial_path;
    struct kp_partial *partial; /* NULL: from the start */
    size_t n_params;            /* of one network */
    int64_t saved_ns;
    bool spares; /* a model stands at `out`: one that was not trained to its end spares it */
    bool stopped;
    unsigned epoch; /* done, of network `net` */
    size_t net;
    kopt_error *err;
};

void kopt_train_options_init(kopt_train_options *o)
{
    *o = (kopt_train_options){.struct_bytes = sizeof(*o)};
}

const char *kopt_network(size_t i, const char **about)
{
    const struct kp_net_ops *ops = kp_net_at(i);
    if (about)
        *about = ops ? ops->about : NULL;
    return ops ? ops->name : NULL;
}

/* --- options ------------------------------------------------------------------------------ */

static kopt_status unknown_network(struct kp_str name, kopt_error *err)
{
    struct kp_buf names = KP_BUF_INIT(LIST_MAX);
    const struct kp_net_ops *at;
    kopt_status st = kp_err(err, KOPT_EUSAGE, "there is no network '%.*s'", KP_STR_FMT(name));
    for (size_t i = 0; (at = kp_net_at(i)) != NULL; i++)
        kp_buf_addf(&names, "%s%s", i ? ", " : "", at->name);
    kp_err_hint(err, "they are %s", kp_buf_text(&names));
    kp_buf_deinit(&names);
    return st;
}

/* "factored", or two that translate: "factored+attention". Sizes are of one kind. */
static kopt_status find_networks(struct training *t)
{
    const kopt_train_options *o = t->o;
    struct kp_str second;
    if (!o->network) /* the data will tell */
        return KOPT_OK;
    struct kp_str first = kp_str_cut(kp_str_from(o->network), '+', &second);
    bool two = strchr(o->network, '+') != NULL;
    t->fit.ops = kp_net_named(first);
    t->fit.beside = two ? kp_net_named(second) : NULL;
    if (!t->fit.ops || (two && !t->fit.beside))
        return unknown_network(t->fit.ops ? second : first, t->err);
    if (!two)
        return KOPT_OK;
    if (t->fit.ops->rank || t->fit.beside->rank || t->fit.ops == t->fit.beside)
        return kp_err(t->err, KOPT_EUSAGE,
                      "'%s': two kinds of networks that translate go together", o->network);
    if (o->hidden || o->embed || o->layers || o->cell || o->score)
        return kp_err(t->err, KOPT_EUSAGE,
                      "the sizes of networks are set where they are of one kind");
    if (o->nets == 1)
        return kp_err(t->err, KOPT_EUSAGE, "one network cannot be of two kinds");
    return KOPT_OK;
}

static kopt_status check_numbers(const kopt_train_options *o, kopt_error *err)
{
    if (o->nets > KP_BEAM_NETS_MAX)
        return kp_err(err, KOPT_EUSAGE, "%u networks: at most %d", o->nets,
                      (int)KP_BEAM_NETS_MAX);
    if (o->trees > KP_FOREST_TREES_MAX)
        return kp_err(err, KOPT_EUSAGE, "%d trees: at most %d", o->trees,
                      (int)KP_FOREST_TREES_MAX);
    if (o->repeat > REPEAT_MAX)
        return kp_err(err, KOPT_EUSAGE, "a problem %u times in an epoch: at most %d", o->repeat,
                      (int)REPEAT_MAX);
    if (o->epochs > EPOCHS_MAX)
        return kp_err(err, KOPT_EUSAGE, "%u epochs: at most %d", o->epochs, (int)EPOCHS_MAX);
    if (!(o->rate >= 0 && isfinite(o->rate)))
        return kp_err(err, KOPT_EUSAGE, "the learning rate must be above 0");
    if (!(o->dropout < 1))
        return kp_err(err, KOPT_EUSAGE, "dropout is a share below 1");
    if (!(o->smoothing < 1))
        return kp_err(err, KOPT_EUSAGE, "smoothing is a share below 1");
    if (!(o->unknown < 1))
        return kp_err(err, KOPT_EUSAGE, "unknown is a share below 1");
    if (!(o->extra_weight >= 0 && o->extra_weight <= 1))
        return kp_err(err, KOPT_EUSAGE, "extra_weight is above 0 and at most 1");
    if (!isfinite(o->near_best))
        return kp_err(err, KOPT_EUSAGE, "near_best must be finite");
    if (o->hidden % 2 != 0)
        return kp_err(err, KOPT_EUSAGE, "%u hidden units: their number is even", o->hidden);
    if (o->cell < 0 || o->cell > 1 || o->score < 0 || o->score > 1)
        return kp_err(err, KOPT_EUSAGE, "cell and score are 0 or 1");
    return KOPT_OK;
}

static bool same_file(const char *a, const char *b)
{
    struct kp_file_id x;
    struct kp_file_id y;
    return a && b && kp_file_identify(a, &x) && kp_file_identify(b, &y) &&
           x.device == y.device && x.inode == y.inode;
}

/* A place where the model cannot be written is worth knowing before an hour of training. */
static kopt_status check_out(const kopt_train_options *o, kopt_error *err)
{
    const char *path = o->out;
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return kp_err(err, KOPT_EIO, "%s is there and no plain file", path);
    bool taken = same_file(path, o->data.rules) ||
                 (o->data.path && same_file(path, kp_data_path(o->data.path)));
    for (size_t i = 0; i < o->data.n_more; i++)
        taken |= same_file(path, kp_data_path(o->data.more[i]));
    if (taken)
        return kp_err(err, KOPT_EUSAGE,
                      "%s is what is to be learned from: the model would "
                      "take its place",
                      path);
    char *dir = kp_path_dir(path);
    if (!dir)
        return kp_err_nomem(err);
    kopt_status st = KOPT_OK;
    if (access(dir, W_OK | X_OK) != 0)
        st =
            kp_err(err, KOPT_EIO, "cannot write %s: %s: %s", path, dir, strerrordesc_np(errno));
    kp_free(dir);
    return st;
}

static void set_sizes(const kopt_train_options *o, struct kp_fit_options *f)
{
    struct kp_net_shape *s = &f->shape;
    struct kp_train_plan *p = &f->plan;
    s->hidden = o->hidden;
    s->embed = o->embed;
    s->layers = o->layers;
    s->cell = (uint32_t)o->cell;
    s->score = (uint32_t)o->score;
    s->dropout = o->dropout > 0 ? (float)o->dropout : o->dropout < 0 ? 0 : -1;
    p->threads = o->threads;
    p->seed = o->seed ? o->seed : p->seed;
    p->epochs = o->epochs ? o->epochs : p->epochs;
    p->patience = o->patience ? o->patience : p->patience;
    p->batch = o->batch ? o->batch : p->batch;
    p->adam.rate = o->rate > 0 ? (float)o->rate : p->adam.rate;
    if (o->smoothing != 0)
        p->smoothing = o->smoothing > 0 ? (float)o->smoothing : 0;
    if (o->unknown != 0)
        p->unknown = o->unknown > 0 ? (float)o->unknown : 0;
}

static void set_fit(struct training *t, const struct kp_net_ops *ops)
{
    const kopt_train_options *o = t->o;
    const struct kp_net_ops *beside = t->fit.beside;
    size_t usual = beside ? 8 : ops == kp_net_at(0) ? 5 : 0;
    t->fit = kp_fit_default(ops);
    t->fit.beside = beside;
    t->fit.nets = o->nets ? o->nets : usual ? usual : t->fit.nets;
    set_sizes(o, &t->fit);
    if (o->trees < 0)
        t->fit.grow.trees = 0;
    else if (o->trees > 0)
        t->fit.grow.trees = (size_t)o->trees;
}

static void choose_fit(struct training *t)
{
    const struct kp_net_ops *ops = t->fit.ops;
    if (!ops)
        ops = kp_ranks_suit(t->data.set) ? kp_net_find("ranker") : kp_net_at(0);
    set_fit(t, ops);
}

static kopt_status read_options(struct training *t)
{
    const kopt_train_options *o = t->o;
    if (o->struct_bytes != sizeof(*o))
        return kp_err(t->err, KOPT_EUSAGE,
                      "the options were not set up by kopt_train_options_init() of this "
                      "version");
    if (!o->out)
        return kp_err(t->err, KOPT_EUSAGE, "no file is named for the model");
    kopt_status st = find_networks(t);
    if (st == KOPT_OK)
        st = check_numbers(o, t->err);
    if (st == KOPT_OK)
        st = check_out(o, t->err);
    if (st != KOPT_OK)
        return st;
    t->near_best = o->near_best == 0 ? near_default : o->near_best > 0 ? o->near_best : 0;
    size_t n = strlen(o->out) + sizeof(".partial");
    t->partial_path = kp_calloc(n, 1);
    if (!t->partial_path)
        return kp_err_nomem(t->err);
    (void)snprintf(t->partial_path, n, "%s.partial", o->out);
    t->spares = kp_file_exists(o->out);
    return KOPT_OK;
}

/* --- what is written beside the networks -------------------------------------------------- */

static struct kp_json *texts(const char *const *list, size_t n)
{
    struct kp_json *a = kp_json_new_array();
    for (size_t i = 0; a && i < n; i++) {
        if (!kp_json_push(a, kp_json_new_str(kp_str_from(list[i])))) {
            kp_json_free(a);
            return NULL;
        }
    }
    return a;
}

/* What helped: the names of the files, not where they are. */
static struct kp_json *info_helping(const struct training *t)
{
    const kopt_data_options *o = &t->o->data;
    struct kp_json *j = kp_json_new_object();
    struct kp_json *names = kp_json_new_array();
    bool ok = j && names;
    for (size_t i = 0; ok && i < o->n_more; i++)
        ok = kp_json_push(names, kp_json_new_str(kp_str_from(t->data.more[i].name)));
    ok = ok && kp_json_set(j, "also", texts(o->also, o->n_also)) &&
         kp_json_set(j, "more", kp_json_dup(names)) &&
         kp_json_set_str(j, "sha256", t->data.report.all_hash) &&
         kp_json_set_i64(j, "rows", (int64_t)t->data.report.helping) &&
         kp_json_set_f64(j, "weight", t->o->extra_weight > 0 ? t->o->extra_weight : 1);
    kp_json_free(names);
    if (ok)
        return j;
    kp_json_free(j);
    return NULL;
}

static struct kp_json *info_data(const struct training *t)
{
    const struct kp_load_report *r = &t->data.report;
    struct kp_json *j = kp_json_new_object();
    bool ok = j && kp_json_set_str(j, "source", kp_source_name(r->source)) &&
              kp_json_set_str(j, "sha256", r->hash) &&
              kp_json_set_i64(j, "rows", (int64_t)t->data.set->n_rows) &&
              kp_json_set_i64(j, "problems", (int64_t)t->data.set->n_problems) &&
              kp_json_set_i64(j, "left_out", (int64_t)r->left_out) &&
              kp_json_set_i64(j, "skipped", (int64_t)r->skipped);
    if (ok)
        return j;
    kp_json_free(j);
    return NULL;
}

static struct kp_json *info_split(const kopt_data_options *o, bool learn_valid)
{
    struct kp_json *j = kp_json_new_object();
    bool ok = j && kp_json_set_i64(j, "salt", SALT) && kp_json_set_i64(j, "fold", o->fold) &&
              kp_json_set(j, "group", texts(o->group, o->n_group)) &&
              (!learn_valid || kp_json_set_bool(j, "learn_valid", true));
    if (ok)
        return j;
    kp_json_free(j);
    return NULL;
}

/* A float as the decimal that was meant: 0.002, not 0.0020000000949949026. */
static double decimal(float x)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%.7g", (double)x);
    return strtod(text, NULL);
}

static struct kp_json *info_plan(const struct training *t)
{
    const struct kp_train_plan *p = &t->fit.plan;
    struct kp_json *j = kp_json_new_object();
    bool ok = j && kp_json_set_i64(j, "nets", (int64_t)t->fit.nets) &&
              kp_json_set_i64(j, "seed", (int64_t)p->seed) &&
              kp_json_set_i64(j, "shards", p->shards) &&
              kp_json_set_i64(j, "batch", (int64_t)p->batch) &&
              kp_json_set_i64(j, "epochs", p->epochs) &&
              kp_json_set_i64(j, "patience", p->patience) &&
              kp_json_set_f64(j, "smoothing", decimal(p->smoothing)) &&
              kp_json_set_f64(j, "unknown", decimal(p->unknown)) &&
              kp_json_set_f64(j, "rate", decimal(p->adam.rate)) &&
              kp_json_set_f64(j, "decay", decimal(p->adam.decay)) &&
              kp_json_set_f64(j, "clip", decimal(p->adam.clip)) &&
              kp_json_set_i64(j, "warm", (int64_t)p->adam.warm) &&
              kp_json_set_f64(j, "floor", decimal(p->adam.floor)) &&
              kp_json_set_i64(j, "repeat", (int64_t)t->lesson->repeat) &&
              kp_json_set_f64(j, "near_best", t->near_best) &&
              kp_json_set_i64(j, "trees", (int64_t)t->fit.grow.trees) &&
              kp_json_set_f64(j, "leaf", t->fit.grow.leaf) &&
              kp_json_set_f64(j, "share", t->fit.grow.share) &&
              kp_json_set_f64(j, "trees_weight", t->fit.trees_weight);
    if (ok)
        return j;
    kp_json_free(j);
    return NULL;
}

static kopt_status identify(struct training *t, const struct kp_net_shape *shape)
{
    struct kp_buf text = KP_BUF_INIT(INFO_MAX);
    struct kp_sha256 *sha = NULL;
    struct kp_json *s = kp_net_shape_to_json(shape);
    kopt_status st = s ? kp_sha256_new(&sha, t->err) : kp_err_nomem(t->err);
    if (st == KOPT_OK) {
        kp_json_dump(t->info, &text);
        kp_json_dump(s, &text);
        kp_buf_adds(&text, t->fit.ops->name);
        kp_buf_adds(&text, t->fit.beside ? t->fit.beside->name : "");
        st = kp_buf_status(&text, t->err);
        kp_sha256_add_field(sha, kp_buf_text(&text), text.len);
        kp_sha256_add_field(sha, kp_buf_text(&t->data.text), t->data.text.len);
        kp_sha256_finish(sha, t->identity);
    }
    kp_json_free(s);
    kp_buf_deinit(&text);
    return st;
}

static kopt_status make_info(struct training *t, const struct kp_net_shape *shape)
{
    const kopt_data_options *o = &t->o->data;
    struct kp_json *versions = kp_json_new_object();
    bool ok = versions && kp_json_set_str(versions, "kopt", kopt_version());
    t->info = kp_json_new_object();
    ok = ok && t->info && kp_json_set(t->info, "data", info_data(t)) &&
         kp_json_set(t->info, "where", texts(o->where, o->n_where)) &&
         kp_json_set(t->info, "params", texts(o->params, o->n_params)) &&
         kp_json_set_str(t->info, "limits", o->limits) &&
         (!t->data.pooled || (kp_json_set(t->info, "pooled", kp_json_dup(t->data.pooled)) &&
                              kp_json_set(t->info, "helping", info_helping(t)))) &&
         kp_json_set(t->info, "split", info_split(o, t->o->learn_valid != 0)) &&
         kp_json_set(t->info, "plan", info_plan(t));
    if (!ok) {
        kp_json_free(versions);
        return kp_err_nomem(t->err);
    }
    if (!kp_json_set(t->info, "versions", versions))
        return kp_err_nomem(t->err);
    kopt_status st = identify(t, shape);
    /* The same rows under another name are the same. */
    if (st == KOPT_OK && !kp_json_set_str(t->info, "file", kp_base_name(t->data.path)))
        st = kp_err_nomem(t->err);
    return st;
}

static bool add_member(void *user, const char *key, const struct kp_json *value)
{
    return kp_json_set(user, key, kp_json_dup(value));
}

/* --- the lesson --------------------------------------------------------------------------- */

/* One expression after the other, so that the message can name it. */
static kopt_status check_group(struct training *t)
{
    const kopt_data_options *o = &t->o->data;
    const struct kp_dataset *d = t->data.set;
    unsigned char *roles = kp_calloc(d->n_problems + 1, 1);
    kopt_status st = roles ? KOPT_OK : kp_err_nomem(t->err);
    for (size_t i = 0; i < o->n_group && st == KOPT_OK; i++) {
        const struct kp_split one = {.salt = SALT, .group = &o->group[i], .n_group = 1};
        kopt_error why = {0};
        st = kp_split(d, &one, roles, &why);
        if (st == KOPT_EINPUT)
            st = kp_err(t->err, KOPT_EUSAGE, "the group '%s': %s", o->group[i], why.message);
        else if (st != KOPT_OK)
            st = kp_err_nomem(t->err);
    }
    kp_free(roles);
    return st;
}

/* What only some kinds of networks have. */
static kopt_status check_kind(const struct training *t)
{
    static const char translating[] = "factored, seq2seq, attention, hybrid1, hybrid2";
    static const char recurrent[] = "seq2seq, attention, hybrid1, hybrid2";
    const kopt_train_options *o = t->o;
    const struct {
        const char *name;
        bool given;
        const char *kinds;
    } options[] = {{"embed", o->embed != 0, translating},
                   {"layers", o->layers != 0, "factored, ranker"},
                   {"cell", o->cell != 0, recurrent},
                   {"score", o->score != 0, "attention, hybrid1, hybrid2"},
                   {"smoothing", o->smoothing != 0, translating},
                   {"near_best", o->near_best != 0, translating},
                   {"repeat", o->repeat != 0, translating}};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (!options[i].given || strstr(options[i].kinds, t->fit.ops->name))
            continue;
        kopt_status st =
            kp_err(t->err, KOPT_EUSAGE, "the network '%s' has no %s%s", t->fit.ops->name,
                   options[i].name, o->network ? "" : ", and it is what this data asks for");
        kp_err_hint(t->err, "these have: %s", options[i].kinds);
        return st;
    }
    return KOPT_OK;
}

/* Where nobody asked for a network that ranks, and it cannot learn from the data, it gives way.
 */
static kopt_status make_ranks(struct training *t)
{
    kopt_error why = {0};
    kopt_status st = kp_ranks_new(t->lesson, t->data.rules, t->data.limits,
                                  t->data.report.n_raw, t->fit.nets, &t->ranks, &why);
    if (st == KOPT_EINPUT && !t->o->network) {
        set_fit(t, kp_net_at(0));
        return KOPT_OK;
    }
    if (st == KOPT_OK) {
        t->fit.ranks = t->ranks;
        return st;
    }
    if (t->err)
        *t->err = why;
    kp_err_wrap(t->err, "%s", t->data.path);
    return st;
}

static kopt_status make_lesson(struct training *t)
{
    const kopt_data_options *o = &t->o->data;
    kopt_status st = kp_data_open(o, NULL, NULL, &t->data, t->err);
    if (st == KOPT_OK)
        st = check_group(t);
    if (st != KOPT_OK)
        return st;
    unsigned used = 0;
    if (t->data.rules && !t->data.limits)
        st = kp_limits_used(t->data.rules, &used, t->err);
    if (st != KOPT_OK)
        return st;
    t->unbound = used;
    choose_fit(t);
    const struct kp_lesson_options lo = {.split = {.salt = SALT,
                                                   .fold = o->fold,
                                                   .group = o->n_group ? o->group : NULL,
                                                   .n_group = o->n_group,
                                                   .learn_valid = t->o->learn_valid != 0},
                                         .near_best = t->near_best,
                                         .repeat = t->o->repeat,
                                         .extra_weight = t->o->extra_weight,
                                         .rules = t->data.rules,
                                         .limits = t->data.limits,
                                         .unbound = used != 0};
    st = kp_lesson_new(t->data.set, &lo, &t->lesson, t->err);
    if (st != KOPT_OK) {
        kp_err_wrap(t->err, "%s", t->data.path);
        return st;
    }
    const struct kp_lesson *l = t->lesson;
    if (kp_encoder_n_tokens(l->encoder) == 0)
        return kp_err(t->err, KOPT_EINPUT,
                      "%s: the problems for training do not differ in any field, so there is "
                      "nothing to predict from",
                      t->data.path);
    if (l->n_constant == t->data.set->n_targets)
        return kp_err(t->err, KOPT_EINPUT,
                      "%s: all configurations are the same, so there is nothing to learn",
                      t->data.path);
    st = t->fit.ops->rank ? make_ranks(t) : KOPT_OK;
    if (st == KOPT_OK)
        st = check_kind(t);
    if (t->data.rules) {
        t->fit.rules_path = t->data.rules->path;
        t->fit.rules_text = (struct kp_str){kp_buf_text(&t->data.text), t->data.text.len};
    }
    t->fit.n_raw = t->data.report.n_raw;
    return st;
}

static kopt_status count_params(struct training *t, const struct kp_net_shape *shape)
{
    struct kp_net *net;
    kopt_status st = kp_net_new(t->fit.ops, shape, 0, &net, t->err);
    if (st != KOPT_OK)
        return st;
    t->n_params = net->params.n_params;
    kp_net_free(net);
    return KOPT_OK;
}

static void tell_start(const struct training *t)
{
    const struct kp_lesson *l = t->lesson;
    const struct kp_load_report *r = &t->data.report;
    if (!t->o->start)
        return;
    const struct kp_examples *e = &l->examples[KP_ROLE_TRAIN];
    char unbound[KP_LIMITS_NAMES];
    kp_limits_names(t->unbound, unbound);
    const kopt_train_start s = {.source = kp_source_name(r->source),
                                .kernel = t->data.set->kernel,
                                .network = t->fit.beside ? t->o->network : t->fit.ops->name,
                                .spares = t->spares,
                                .rows = t->data.set->n_rows,
                                .left_out = r->left_out,
                                .skipped = r->skipped,
                                .skipped_why = r->reason,
                                .unlisted = r->unlisted,
                                .untimed = r->untimed,
                                .aside = r->aside,
                                .checked = l->n_checked,
                                .forbidden = l->n_forbidden,
                                .train = l->count[KP_ROLE_TRAIN] - l->n_extra,
                                .helping = l->n_extra,
                                .valid = l->count[KP_ROLE_VALID],
                                .test = l->count[KP_ROLE_TEST],
                                .without = l->n_without,
                                .examples = t->ranks ? l->count[KP_ROLE_TRAIN] - l->n_without
                                                     : e->first[e->n] / l->repeat,
                                .constant = l->n_constant,
                                .canonical = t->ranks ? 0 : l->n_canonical,
                                .unbound = t->unbound != 0,
                                .unbound_names = unbound,
                                .ranked = t->ranks ? t->ranks->ranking->n_configs : 0,
                                .fields = r->n_raw,
                                .params = t->data.set->n_targets,
                                .parameters = t->n_params,
                                .resumed = t->partial ? t->partial->state.train.epoch : 0,
                                .resumed_net =
                                    t->partial ? (unsigned)t->partial->state.net : 0};
    t->o->start(t->o->user, &s);
}

/* --- training ----------------------------------------------------------------------------- */

static bool on_epoch(void *user, size_t net, const struct kp_epoch *e)
{
    struct training *t = user;
    const kopt_epoch x = {.net = (unsigned)net,
                          .nets = (unsigned)t->fit.nets,
                          .epoch = e->number,
                          .epochs = t->fit.plan.epochs,
                          .train_loss = e->train_loss,
                          .valid_loss = e->valid_loss,
                          .valid_right = e->valid_right,
                          .seconds = e->seconds,
                          .best = e->best};
    t->net = net;
    t->epoch = e->number;
    if (t->o->epoch && !t->o->epoch(t->o->user, &x))
        t->stopped = true;
    return !t->stopped;
}

static kopt_status on_save(void *user, const struct kp_fit_state *s, bool stopped,
                           kopt_error *err)
{
    struct training *t = user;
    int64_t now = kp_clock_ns();
    if (!stopped && (double)(now - t->saved_ns) / 1e9 < save_seconds)
        return KOPT_OK;
    t->saved_ns = now;
    return kp_partial_save(t->partial_path, t->identity, t->spares, s, err);
}

static kopt_status prepare(struct training *t)
{
    kopt_status st = read_options(t);
    if (st == KOPT_OK)
        st = make_lesson(t);
    if (st != KOPT_OK)
        return st;
    const struct kp_net_shape shape = kp_fit_shape(t->lesson, &t->fit, t->fit.ops);
    st = count_params(t, &shape);
    if (st == KOPT_OK)
        st = make_info(t, &shape);
    if (st == KOPT_OK && t->o->resume && kp_file_exists(t->partial_path))
        st = kp_partial_load(t->partial_path, t->identity, &t->partial, t->err);
    if (t->partial) /* else what stands there is of this training, as far as it went */
        t->spares = t->spares && t->partial->spares;
    return st;
}

static kopt_status save_model(struct training *t, const struct kp_model *m, const char *path)
{
    kopt_error err;
    kopt_status st = kp_model_save(m, path, &err);
    if (st != KOPT_OK && t->err)
        *t->err = err;
    return st;
}

/* It ended by itself, with `why`, and the model has the last good values: beside one that it
 * spares. */
static kopt_status save_last_good(struct training *t, const struct kp_model *m, kopt_status why)
{
    size_t room = strlen(t->o->out) + sizeof(".lastgood");
    char *path = kp_calloc(room, 1);
    kopt_error said = t->err ? *t->err : (kopt_error){0};
    if (!path)
        return kp_err_nomem(t->err);
    (void)snprintf(path, room, "%s%s", t->o->out, t->spares ? ".lastgood" : "");
    kopt_status st = save_model(t, m, path);
    if (st == KOPT_OK) {
        if (t->err)
            *t->err = said;
        kp_err_wrap(t->err, "%s has what was learned before", path);
        (void)unlink(t->partial_path);
    }
    kp_free(path);
    return st == KOPT_OK ? why : st;
}

/* `why`: what fitting ended with. */
static kopt_status write_model(struct training *t, struct kp_model *m, kopt_status why)
{
    if (!kp_json_each(t->info, add_member, m->info))
        return kp_err_nomem(t->err);
    if (why != KOPT_OK)
        return save_last_good(t, m, why);
    bool spared = t->stopped && t->spares;
    kopt_status st = spared ? KOPT_OK : save_model(t, m, t->o->out);
    if (st == KOPT_OK && t->stopped) {
        st = kp_err(t->err, KOPT_EINTR, "stopped after epoch %u of network %zu; %s %s",
                    t->epoch, t->net + 1, t->o->out,
                    spared ? "is left as it was" : "has what was learned so far");
        kp_err_hint(t->err, "resuming goes on from %s", kp_base_name(t->partial_path));
    } else if (st == KOPT_OK) {
        (void)unlink(t->partial_path);
    }
    return st;
}

kopt_status kopt_train(const kopt_train_options *o, kopt_error *err)
{
    struct training t = {.o = o, .err = err};
    struct kp_model *m = NULL;
    kopt_status st = prepare(&t);
    if (st == KOPT_OK) {
        tell_start(&t);
        const struct kp_fit_hooks hooks = {.user = &t,
                                           .epoch = on_epoch,
                                           .save = on_save,
                                           .resume = t.partial ? &t.partial->state : NULL};
        t.saved_ns = kp_clock_ns();
        st = kp_fit(t.lesson, &t.fit, &hooks, &m, err);
    }
    if (m)
        st = write_model(&t, m, st);
    kp_model_free(m);
    kp_partial_free(t.partial);
    kp_free(t.partial_path);
    kp_json_free(t.info);
    kp_ranks_free(t.ranks);
    kp_lesson_free(t.lesson);
    kp_data_close(&t.data);
    return st;
}
