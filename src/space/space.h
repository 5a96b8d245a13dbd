/* SPDX-License-Identifier: MIT */
/* A tuning space: parameters, rules, and the valid configurations without holding them.
 * Layer: space.
 *
 * A configuration is one value index for each parameter, in the order of declaration:
 * uint32_t config[n_params]. Valid configurations are ranked 0 .. count-1 in a fixed order:
 * that of an odometer over the parameters in the order of kp_space_order(), the last one
 * fastest. The order depends on the description alone, so it is the same on every machine.
 *
 * The engine is a decision diagram: one level for each parameter (in an order of its own
 * choosing), nodes merged when they have the same valid completions, completions counted in
 * each node. It serves counting, rank and unrank, uniform samples, neighbours and "does this
 * prefix have a valid completion" in time proportional to the number of parameters.
 *
 * Threads: a space does not change once it is made; any number of threads may use it at once.
 */
#ifndef KP_SPACE_SPACE_H
#define KP_SPACE_SPACE_H

#include "base/error.h"
#include "base/rng.h"
#include "space/expr.h"

struct kp_param {
    const char *name;
    enum kp_type type;
    const struct kp_value *values; /* distinct */
    uint32_t n_values;             /* at least 1 */
    int64_t default_index;         /* -1: none declared */
    uint32_t slot;                 /* in the environment */
    int line;                      /* where it was declared; 0 unknown */
};

struct kp_rule {
    const struct kp_expr *expr;
    const char *text;    /* as written */
    const char *message; /* the user's words, or NULL */
    int line;
};

enum { KP_PARAMS_MAX = 128, KP_RULES_MAX = 1024 };

/* What was found out while earlier spaces over the same parameters and rules, with other values
 * of the fixed names, were made: an order of the parameters, diagrams of rules by what they see
 * of those names, diagrams of whole spaces. Later spaces take a small part of the time, and
 * those that the rules cannot tell apart share a diagram. The configurations are the same as
 * without a cache, but not their ranks: the order of the parameters is mostly that of the first
 * space, so it depends on what was made before.
 *
 * One thread at a time may make spaces with a cache. The spaces themselves do not need it any
 * more. It refers to the rules' expressions and to the parameters' values, which must outlive
 * it. */
struct kp_space_cache;
/* max_bytes: of what it keeps, about; 0 = 16 MiB. When that is full it starts anew. NULL: out
 * of memory. */
struct kp_space_cache *kp_space_cache_new(size_t max_bytes);
void kp_space_cache_free(struct kp_space_cache *c);

struct kp_space_desc {
    const struct kp_param *params;
    size_t n_params;
    const struct kp_rule *rules;
    size_t n_rules;
    /* Fixed names (problem sizes, device limits): values by slot, known where known. The
     * parameters' slots are not known here. */
    const struct kp_value *values;
    const unsigned char *known;
    size_t n_slots;
    size_t max_bytes;   /* memory the engine may use; 0 = 64 MiB */
    uint64_t max_steps; /* work it may do when the space is made; 0 = 100 million steps, which
                           take some seconds */
    /* NULL: none. It becomes that of the first space it is given to; one over other parameters,
     * rules or known slots is made as without it. */
    struct kp_space_cache *cache;
    /* Valid configurations one by one: [n_listed][n_params] value indices, in any order; those
     * that the rules allow, too, are the space. One that comes twice counts once. NULL: the
     * rules alone say. Not with a cache. */
    const uint32_t *listed;
    size_t n_listed;
};

struct kp_space;

/* `desc` and what it points to must outlive the space.
 * Errors: KOPT_ERANGE (more than 2^64-1 valid configurations, or over max_bytes: the message
 * names the rule), KOPT_ENOMEM, KOPT_EUSAGE (limits above, a rule with a name that has no
 * value). A space without a valid configuration is no error: count is 0. */
kopt_status kp_space_new(const struct kp_space_desc *desc, struct kp_space **out,
                         kopt_error *err);
void kp_space_free(struct kp_space *s);

/* What the cache that a space was made with calls its set of configurations; NULL: no cache, or
 * it has no name for it. Spaces of one kind have the same configurations in the same order. A
 * name is never used again before the last space of the kind is gone. */
const void *kp_space_kind(const struct kp_space *s);
/* The kind of the space that `desc` would give, where desc->cache knows it without making
 * anything; else NULL. It allocates nothing, and is a use of the cache. */
const void *kp_space_look(const struct kp_space_desc *desc);

size_t kp_space_n_params(const struct kp_space *s);
const struct kp_param *kp_space_param(const struct kp_space *s, size_t i);
/* The product of all value counts. */
double kp_space_cartesian(const struct kp_space *s);
uint64_t kp_space_count(const struct kp_space *s);
/* The parameters in the order of the diagram: n_params indices, borrowed. */
const uint32_t *kp_space_order(const struct kp_space *s);

struct kp_space_stats {
    size_t bytes;      /* held by the space */
    size_t peak_bytes; /* held at most while it was made */
    size_t nodes;      /* of the diagram */
    size_t edges;
    size_t width; /* nodes of the widest level */
};
void kp_space_stats(const struct kp_space *s, struct kp_space_stats *out);

/* Errors: KOPT_ERANGE (rank >= count). */
kopt_status kp_space_at(const struct kp_space *s, uint64_t rank, uint32_t *config,
                        kopt_error *err);
/* False when the configuration is not valid (an index out of range included). */
bool kp_space_rank(const struct kp_space *s, const uint32_t *config, uint64_t *rank);

/* Uniform over the valid configurations; count must not be 0. */
void kp_space_sample(const struct kp_space *s, struct kp_rng *rng, uint32_t *config);

/* Valid configurations in the order of their ranks. */
struct kp_space_iter {
    const struct kp_space *space;
    uint64_t left; /* configurations still to come */
    uint32_t edge[KP_PARAMS_MAX];
    uint32_t edge_end[KP_PARAMS_MAX];
    bool started;
};
/* Starts at `rank`; a rank of count or more gives nothing. */
void kp_space_iter_init(struct kp_space_iter *it, const struct kp_space *s, uint64_t rank);
/* False at the end. `config` must be the same array, unchanged, in each call after the first.
 */
bool kp_space_iter_next(struct kp_space_iter *it, uint32_t *config);

/* Why a configuration is out. */
struct kp_rule_hit {
    size_t rule;              /* index of the first rule that fails */
    struct kp_eval_error why; /* .what != NULL when it could not be evaluated */
};
/* By evaluating the rules, not the diagram. `hit` may be NULL; its rule is n_rules for a valid
 * configuration, for an index out of range, and for one that is not in the list. */
bool kp_space_valid(const struct kp_space *s, const uint32_t *config, struct kp_rule_hit *hit);

/* Does some valid configuration have these values? config[i] is read where fixed[i] != 0.
 * Exact. */
bool kp_space_completable(const struct kp_space *s, const uint32_t *config,
                          const unsigned char *fixed);

/* Which values can parameter `param` (whose own fixed[] is not looked at) take beside the fixed
 * ones: allowed[v] = 1 where a valid configuration exists, else 0; returns how many. One call
 * costs about as much as one kp_space_completable(), whatever the number of values. */
size_t kp_space_allowed(const struct kp_space *s, const uint32_t *config,
                        const unsigned char *fixed, size_t param, unsigned char *allowed);

/* The same in the caller's memory of kp_space_query_words() words; kp_space_allowed() takes it
 * from the heap where that is not 0. */
size_t kp_space_query_words(const struct kp_space *s);
size_t kp_space_allowed_in(const struct kp_space *s, const uint32_t *config,
                           const unsigned char *fixed, size_t param, unsigned char *allowed,
                           uint64_t *memory);

/* A prefix in the order of kp_space_order(), grown one value at a time in constant time: for a
 * search that assigns the parameters in that order. Each prefix it stands on is completable. */
struct kp_space_prefix {
    uint32_t node;
    uint32_t depth; /* parameters assigned */
};
/* False when the space is empty. */
bool kp_space_prefix_init(const struct kp_space *s, struct kp_space_prefix *p);
/* Assigns order[depth]; false (and nothing changes) when no valid completion is left. */
bool kp_space_prefix_step(const struct kp_space *s, struct kp_space_prefix *p, uint32_t value);
/* Valid configurations that begin so. */
uint64_t kp_space_prefix_count(const struct kp_space *s, const struct kp_space_prefix *p);

enum kp_near {
    KP_NEAR_ADJACENT, /* one parameter moves to the next or previous value that is valid */
    KP_NEAR_HAMMING   /* one parameter takes any other valid value */
};
/* Calls `visit` with each valid neighbour (a borrowed array, changed afterwards) until it
 * returns false. `config` need not be valid. Order: by parameter as declared, then by index. */
void kp_space_neighbours(const struct kp_space *s, const uint32_t *config, enum kp_near kind,
                         bool (*visit)(void *user, const uint32_t *config), void *user);

/* A valid configuration near any (perhaps invalid) one: parameters are kept in order of
 * declaration as far as a valid completion exists, the others move to the nearest index.
 * False when the space is empty. */
bool kp_space_repair(const struct kp_space *s, uint32_t *config);

/* How much each rule removes. */
struct kp_rule_effect {
    uint64_t alone; /* candidates this rule alone removes, of the Cartesian product; exact while
                       that is below 2^64, else UINT64_MAX */
    uint64_t
        in_turn; /* valid under the rules before it, removed by this one; UINT64_MAX as above */
};
/* effects[n_rules]; the rules are applied in file order, in a space with a list to the
 * configurations in it. A space that became empty: the first rule after which nothing is left
 * is *last (n_rules when some are left, or nothing was listed).
 * Errors: as kp_space_new(). */
kopt_status kp_space_explain(const struct kp_space *s, struct kp_rule_effect *effects,
                             size_t *last, kopt_error *err);

/* "BM=64,BN=32": names and values in order of declaration. */
void kp_space_config_text(const struct kp_space *s, const uint32_t *config, struct kp_buf *out);
/* {"BM":64,"BN":32}, the names sorted bytewise: the key under which results are stored. */
void kp_space_config_json(const struct kp_space *s, const uint32_t *config, struct kp_buf *out);
/* The configuration of such a text, its names in any order. False: it is no flat object, a
 * parameter is missing or twice, a name is no parameter's, a value is not among its
 * parameter's. Whether it is valid, kp_space_rank() says. */
bool kp_space_config_read(const struct kp_space *s, const char *json, uint32_t *config);
/* Sets values[slot]/known[slot] of every parameter. */
void kp_space_bind(const struct kp_space *s, const uint32_t *config, struct kp_value *values,
                   unsigned char *known);

#endif
