/* SPDX-License-Identifier: MIT */
/* The memory that a question to a model works in and its answer stands in. Layer: model.
 *
 * A model keeps what was used before for the next questions, so once as many have been asked at
 * a time as ever will be, and as large, none of them allocates any more. */
#ifndef KP_MODEL_SCRATCH_H
#define KP_MODEL_SCRATCH_H

#include "model/model.h"

enum {
    KP_SCRATCH_KEPT = 64,              /* of a model, at most .. */
    KP_SCRATCH_KEPT_BYTES = 256 << 20, /* .. and what they may have together */
    KP_SCRATCH_WORD = 40               /* bytes of a number that is written as a word */
};

struct kp_scratch {
    const struct kp_given **given; /* by field; NULL: not given */
    bool *taken;                   /* by the rules' problem index */
    double *problem;               /* by field */
    struct kp_value *sizes;        /* by the rules' problem index */
    const struct kp_let **derived; /* by field: where its value comes from, or NULL */
    uint32_t *size_slot;           /* by the rules' problem index */
    struct kp_value *slots;        /* of the rules' expressions */
    unsigned char *known;          /* by slot: those of the problem */
    int32_t *tokens;
    float *features;
    struct kp_buf words; /* that numbers were written as; it does not move */
    /* The answer. */
    uint32_t *configs; /* [k][n_targets] */
    double *logp;      /* [k] */
    size_t k;
    size_t n_targets;
    float *work;   /* of the search, aligned to 64 bytes */
    size_t n_work; /* floats */
    /* Its own. */
    struct kp_arena arena; /* of what stands before `words` */
    struct kp_scratch_pool *pool;
    struct kp_scratch *next;
};

/* One for a question, with `problem` and `sizes` cleared. It goes back to the model's, or is
 * freed where the model keeps none. Errors: KOPT_ENOMEM. */
kopt_status kp_scratch_take(const struct kp_model *m, struct kp_scratch **out, kopt_error *err);
void kp_scratch_give(struct kp_scratch *s);

/* Room for `k` configurations, and `bytes` to work in. What stood there is lost. False: out of
 * memory. */
bool kp_scratch_answer(struct kp_scratch *s, size_t n_targets, size_t k);
bool kp_scratch_work(struct kp_scratch *s, size_t bytes);

/* A model's. NULL: out of memory. */
struct kp_scratch_pool *kp_scratch_pool_new(void);
void kp_scratch_pool_free(struct kp_scratch_pool *p);

#endif
