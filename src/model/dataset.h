/* SPDX-License-Identifier: MIT */
/* Problems and the configurations that were found good for them: what a predictor learns from.
 * Layer: model.
 *
 * A problem is one number for each field; a field of words (a direction, a data type) has the
 * word's index. A configuration is one value index for each target, the parameters in the order
 * in which they are predicted. A problem may have many rows: configurations with their times,
 * or the winner alone without one. */
#ifndef KP_MODEL_DATASET_H
#define KP_MODEL_DATASET_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "space/expr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KP_FIELDS_MAX = 96, KP_TARGETS_MAX = 64, KP_TARGET_VALUES_MAX = 4096 };

struct kp_field {
    const char *name;
    bool is_word;
    const char *const *words; /* fields of words: the text of index i */
    size_t n_words;
};

struct kp_target {
    const char *name;
    enum kp_type type;
    const struct kp_value *values; /* distinct */
    uint32_t n_values;
};

struct kp_dataset {
    const char *kernel; /* or solver */
    const struct kp_field *fields;
    size_t n_fields;
    const struct kp_target *targets;
    size_t n_targets;
    size_t n_problems; /* distinct */
    double *problems;  /* [n_problems][n_fields] */
    const char **keys; /* [n_problems]: the problem as its source writes it, for splits */
    /* [n_problems], or NULL: all problems are of the data itself. Else a problem of the data is
     * its own twin; others only help training, and have as twin the problem of the data that is
     * the same but for what was pooled, or UINT32_MAX. */
    uint32_t *twins;
    size_t n_rows;     /* sorted by problem */
    uint32_t *of;      /* [n_rows]: the row's problem */
    uint32_t *configs; /* [n_rows][n_targets] */
    float *times_ns;   /* [n_rows]; NaN: not known; infinity: it failed */
    struct kp_arena arena;
};

void kp_dataset_free(struct kp_dataset *d);

/* --- making one ----------------------------------------------------------------------------
 */

/* Rows come one after another, in any order; fields and targets are fixed before. Words and
 * values that were not seen are added to their lists, which are sorted when it is finished
 * (numbers by size, texts by bytes), unless the target came with a list of its own. Problems
 * keep the order in which they came, a problem's rows are sorted by configuration. */
struct kp_dataset_builder;

/* `names` of fields and targets are copied. `lists` (may be NULL): for each target its values
 * in the order to keep, n_values 0 for those that are to be collected. Errors: KOPT_ENOMEM,
 * KOPT_EINPUT (too many, or a name twice). */
kopt_status kp_dataset_begin(const char *kernel, const char *const *fields, size_t n_fields,
                             const char *const *targets, size_t n_targets,
                             const struct kp_target *lists, struct kp_dataset_builder **out,
                             kopt_error *err);
/* problem[n_fields]: numbers, or texts for a field of words (all of a field's rows alike).
 * config[n_targets]. `key` NULL: the fields' texts joined by commas, whole numbers without a
 * point; of a problem that comes with several keys the first one stays. Errors: KOPT_EINPUT
 * (kinds that do not agree, a number that is not finite, a value that is not in the target's
 * own list, more than KP_TARGET_VALUES_MAX): the row is left out, others may follow;
 * KOPT_ENOMEM: nothing but kp_dataset_abandon() may follow. */
kopt_status kp_dataset_add(struct kp_dataset_builder *b, const struct kp_value *problem,
                           const struct kp_value *config, const char *key, float time_ns,
                           kopt_error *err);
/* Frees the builder, whatever comes of it. The same configuration of a problem twice: the
 * shorter time stays, any that is known rather than one that is not. Errors: KOPT_EINPUT (no
 * row), KOPT_ENOMEM. */
kopt_status kp_dataset_finish(struct kp_dataset_builder *b, struct kp_dataset **out,
                              kopt_error *err);
void kp_dataset_abandon(struct kp_dataset_builder *b);
/* Appends the key that kp_dataset_add() makes of n fields' values. */
void kp_problem_key(const struct kp_value *fields, size_t n, struct kp_buf *key);

/* --- splits --------------------------------------------------------------------------------
 */

/* Which of ten parts a key belongs to: (h >> 33) % 10 with h the 64-bit FNV-1a hash of
 * "s<salt>|" and the key. Part 0 + fold is for tests, 1 + fold (of ten, in turn) for
 * validation, the others are for training. */
unsigned kp_split_part(unsigned salt, const char *key);
unsigned kp_split_part_of(uint64_t hash); /* the same of that hash */

enum kp_role { KP_ROLE_TRAIN, KP_ROLE_VALID, KP_ROLE_TEST, KP_ROLE_NONE, KP_ROLES };
struct kp_split {
    unsigned salt; /* 1 */
    unsigned fold; /* 0 .. 9 */
    /* NULL: the problem's key. Else expressions over the fields' names, whose values, joined by
     * commas, are the key: "min(C,K)", "max(C,K)" keeps channel pairs together. */
    const char *const *group;
    size_t n_group;
    bool learn_valid; /* what has a twin in validation may help */
};
/* roles[n_problems], enum kp_role each. A problem that only helps training is left aside
 * (KP_ROLE_NONE) unless it and its twin are for training, or with learn_valid for no test.
 * Errors: KOPT_EINPUT (an expression
 * that cannot be parsed or evaluated), KOPT_ENOMEM. */
kopt_status kp_split(const struct kp_dataset *d, const struct kp_split *s, unsigned char *roles,
                     kopt_error *err);
/* hashes[n_problems]: of the keys (or groups) that a split goes by, with its salt. Problems
 * with one hash are to stay together however else they are cut. Errors: as kp_split(). */
kopt_status kp_split_hashes(const struct kp_dataset *d, const struct kp_split *s,
                            uint64_t *hashes, kopt_error *err);

#endif
