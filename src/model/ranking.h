/* SPDX-License-Identifier: MIT */
/* What a model that ranks has beside its networks: the configurations that it knows, features
 * of a problem and a configuration together, and what the networks were off by. Layer: model.
 *
 * A network that ranks sees x = [z; features of the pair]. Behind it
 * stands a correction: regression kriging (Hengl, Heuvelink and Rossiter, Computers &
 * Geosciences 33, 2007) of what the networks were off by at problems that they had not learned
 * from,
 *
 *   correction(problem, c) = sum_s exp(-|z - z_s|^2 / (2 length^2)) field[s][c],
 *   field = (K + noise I)^-1 R,   K_st = exp(-|z_s - z_t|^2 / (2 length^2)),
 *
 * z: coordinates of a problem, those features of the encoder that are logarithms of its
 * numbers, or words; R: [sites][configurations]. */
#ifndef KP_MODEL_RANKING_H
#define KP_MODEL_RANKING_H

#include "model/model.h"

enum { KP_RANKED_MAX = 4096, KP_SITES_MAX = 1024, KP_PAIRS_MAX = 4096 };

#define KP_PAIR_CLIP        5.0  /* standardised features go no further */
#define KP_SITE_LEAST       1e-6 /* sites with a smaller share in a correction have none */
#define KP_RANK_TEMPERATURE 0.1

enum kp_pair_kind {
    KP_PAIR_PARAM,   /* log2(1 + |v|) of parameter a */
    KP_PAIR_IS,      /* parameter a has its value number b */
    KP_PAIR_LET,     /* log2(1 + |v|) of let a */
    KP_PAIR_GRID,    /* log2(1 + groups) */
    KP_PAIR_BLOCK,   /* log2(1 + work-items of a group) */
    KP_PAIR_SHARED,  /* log2(1 + bytes of dynamic shared memory) */
    KP_PAIR_RATIO,   /* log2((1 + |field a|) / (1 + |v|)) of parameter b */
    KP_PAIR_REST,    /* (field a mod v) / v of parameter b */
    KP_PAIR_WAVES,   /* log2(groups / compute units) */
    KP_PAIR_TAIL,    /* what the last wave of groups lacks: ceil(w) - w, w = groups / units */
    KP_PAIR_FILL,    /* w / ceil(w) */
    KP_PAIR_THREADS, /* log2(1 + work-items) */
    KP_PAIR_KINDS
};

/* One that cannot be computed is as if it were the mean. */
struct kp_pair {
    enum kp_pair_kind kind;
    uint32_t a;
    uint32_t b;
    double mean;
    double scale; /* 1 / deviation */
};

struct kp_ranking {
    size_t n_configs;
    size_t n_targets;
    uint32_t *configs; /* [n_configs][n_targets]: value indices */
    struct kp_pair *pairs;
    size_t n_pairs;
    double units; /* compute units of the device that times are of; 0 = not known */
    /* The correction; no sites: there is none. */
    size_t n_sites;
    size_t n_coordinates;
    uint32_t *coordinates; /* [n_coordinates]: features of the encoder */
    double length;
    struct kp_params params; /* "sites.at", "sites.field", in this order */
    float *values;           /* their slab */
    bool borrowed;           /* it is not the ranking's to free (a mapped file) */
    struct kp_arena arena;   /* of configs, pairs, coordinates */
};

enum { KP_SITES_AT, KP_SITES_FIELD };
/* sites.at [n_sites][n_coordinates], sites.field [n_sites][n_configs] */
const float *kp_ranking_sites(const struct kp_ranking *r, int which);

/* Empty. NULL: no memory. */
struct kp_ranking *kp_ranking_new(void);
void kp_ranking_free(struct kp_ranking *r);

/* Everything that features may be made of, with mean 0 and scale 1, and the coordinates.
 * `rules` may be NULL. Errors: KOPT_ENOMEM. */
kopt_status kp_ranking_declare(struct kp_ranking *r, const struct kp_encoder *e, size_t n_raw,
                               const struct kp_target *targets, size_t n_targets,
                               const struct kp_kernel *rules, kopt_error *err);
/* Declares the tensors of n_sites sites; the slab is the caller's to make. Errors: KOPT_ENOMEM.
 */
kopt_status kp_ranking_place(struct kp_ranking *r, size_t n_sites, kopt_error *err);

/* A problem, ready for its configurations. `slots` and `known` are by the rules' slots, with
 * the problem and the device set; parameters are set in them. */
struct kp_pair_view {
    const struct kp_ranking *r;
    const struct kp_target *targets;
    const struct kp_kernel *rules; /* NULL: none */
    const double *problem;         /* by field */
    struct kp_value *slots;
    unsigned char *known;
};
/* out[n_pairs] of the configuration (value indices), before (raw) or after standardising. NaN
 * in `raw`: it cannot be computed. */
void kp_pair_raw(const struct kp_pair_view *v, const uint32_t *config, double *raw);
void kp_pair_features(const struct kp_pair_view *v, const uint32_t *config, float *out);

/* z[n_coordinates] from the features of the encoder. */
void kp_ranking_coordinates(const struct kp_ranking *r, const float *features, float *z);
/* The correction of all configurations, added to scores[n_configs]. */
void kp_ranking_correct(const struct kp_ranking *r, const float *z, float *scores);

/* "param" */
const char *kp_pair_kind_name(enum kp_pair_kind kind);
struct kp_json *kp_ranking_to_json(const struct kp_ranking *r);
/* Nothing in it is trusted. Errors: KOPT_EINPUT, KOPT_ENOMEM. */
kopt_status kp_ranking_from_json(const struct kp_json *j, const struct kp_model *m,
                                 struct kp_ranking **out, kopt_error *err);

/* --- asking ---------------------------------------------------------------------------------
 */

struct kp_rank_question {
    const double *problem;  /* by field */
    const float *features;  /* of the encoder */
    struct kp_value *slots; /* as in struct kp_pair_view */
    unsigned char *known;
    struct kp_beam_space allowed;
    size_t k;
};
/* Floats of memory that kp_ranking_ask() works in. */
size_t kp_ranking_work(const struct kp_model *m);
/* configs[k][n_targets], logp[k]: of the known configurations that are allowed k, first the
 * fastest by the score (the mean of the networks with their correction, and the trees), then
 * each time the one that is expected to improve the best of those before it most, and the
 * logarithm of softmax(-score / 0.1) over all that are allowed. Returns how many. */
size_t kp_ranking_ask(const struct kp_model *m, const struct kp_rank_question *q, float *work,
                      uint32_t *configs, double *logp);

/* What a configuration counts in learning: the slower, the less; that it is slow is enough to
 * know. wanted: ln(time / best time of the problem). */
double kp_rank_worth(double wanted);

/* How many times as long as the first of an answer one of it takes, as the networks see it. */
double kp_ranking_slowdown(double logp_first, double logp);

#endif
