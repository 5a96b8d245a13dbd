/* SPDX-License-Identifier: MIT */
/* Predicting parameters: a network translates a problem into configurations that satisfy the
 * kernel's rules. Training, judging and asking models. */
#ifndef KOPT_PREDICT_H
#define KOPT_PREDICT_H

#include <kopt/status.h>
#include <kopt/store.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- asking ---------------------------------------------------------------------------------
 */

typedef struct kopt_model kopt_model;

/* A model file, mapped read-only: always a path. The models that come with kopt lie where
 * `pkg-config --variable=models kopt` says, as h200/gemm.model; their short names are those of
 * the command `kopt predict`. Owner: kopt_model_close(). Errors: KOPT_EIO, KOPT_EINPUT (no
 * model, damaged, of a newer version), KOPT_ENOMEM. */
KOPT_API KOPT_MUST_USE kopt_status kopt_model_open(const char *path, kopt_model **out,
                                                   kopt_error *err);
KOPT_API void kopt_model_close(kopt_model *m);

KOPT_API const char *kopt_model_kernel(const kopt_model *m);  /* or solver */
KOPT_API const char *kopt_model_network(const kopt_model *m); /* "factored" */
/* What a problem is made of, and what is predicted, in order; NULL past the end. */
KOPT_API const char *kopt_model_field(const kopt_model *m, size_t i);
KOPT_API const char *kopt_model_param(const kopt_model *m, size_t i);
/* JSON: where the data came from, the split, the plan and log of training. Borrowed. */
KOPT_API const char *kopt_model_info(const kopt_model *m);

typedef struct kopt_predict_options {
    size_t struct_bytes; /* sizeof(kopt_predict_options), set by kopt_predict_options_init() */
    size_t top;          /* configurations wanted; 0 = 1 */
    size_t width;        /* of the beam; 0 = the larger of top and 8 */
    int unconstrained;   /* 1: leave the rules aside */
    const char *limits;  /* of the device, "max_threads=1024,.."; NULL: those of `device` */
    const char *device; /* "cuda:0". Where both are NULL the limits are those that the model was
                           trained with; without any, rules about devices do not bind */
} kopt_predict_options;
KOPT_API void kopt_predict_options_init(kopt_predict_options *o);

typedef struct kopt_prediction {
    const char *text;   /* "BM=64,BN=32" */
    const char *config; /* {"BM":64,"BN":32} */
    double probability; /* of the whole configuration, as the model sees it */
    double slowdown; /* its time over that of the first, as a ranker sees it; NaN: of others */
} kopt_prediction;

/* `problem`: "N=32" or "direction=F", .. *out: *n predictions, the most promising first, with
 * their texts in one block; free it with kopt_text_free((char *)*out). Any thread, any number
 * at once. Once warm it allocates that block and nothing else, see kopt_selector_add_model();
 * but the first question about a `device` asks its driver in a process of its own, up to
 * seconds. Errors: KOPT_EUSAGE (a field is missing, unknown, given twice or no number: the hint
 * lists them), KOPT_ENOTFOUND (no configuration satisfies the rules), KOPT_EENV (the device),
 * KOPT_ENOMEM. */
KOPT_API KOPT_MUST_USE kopt_status kopt_predict(const kopt_model *m, const char *const *problem,
                                                size_t n_problem, const kopt_predict_options *o,
                                                kopt_prediction **out, size_t *n,
                                                kopt_error *err);

/* A value that is unlike all that the model learned from. */
typedef struct kopt_outside {
    const char *field;
    const char *value;        /* as the problem gives it */
    double low, high;         /* of numbers: what the model learned from; of words NaN */
    const char *const *words; /* the words that it learned from; NULL: of numbers */
    size_t n_words;
} kopt_outside;

/* Which of a problem's values, given as for kopt_predict(), are outside of the numbers or none
 * of the words that the model learned from. kopt_predict() and kopt_select() answer all the
 * same, and do not look themselves. What kopt_predict() refuses is passed over. Where all that
 * the model learned from were one number, low and high are that one (older models
 * do not know it: passed over). *out: *n of them, with texts of `problem` and of the model;
 * free it with kopt_text_free((char *)*out). Errors: KOPT_ENOMEM.
 */
KOPT_API KOPT_MUST_USE kopt_status kopt_model_outside(const kopt_model *m,
                                                      const char *const *problem,
                                                      size_t n_problem, kopt_outside **out,
                                                      size_t *n, kopt_error *err);

/* Where kopt_select() finds nothing measured for a problem of the model's kernel, the model's
 * first prediction for it is the answer. `o`: limits or device, and width; NULL: no device.
 * `m` is borrowed and must outlive `s`. Before threads use the selector.
 *
 * The selector remembers the answers to the last problems, some thousands of them, in memory
 * that it takes here: asking again is a look into a table without a lock. A new problem is a
 * question to the model, which allocates nothing once as many threads have asked at a time as
 * ever will, and the rules leave the problem one of the last 64 sets of configurations that
 * they left others; another set is made first, which takes memory and up to milliseconds. A
 * configuration for which there is no room any more (8 MiB of texts) is no answer, nor is there
 * one where the rules leave none, a name is not the model's, or a field is missing, or a word:
 * then the nearest problem counts, as without a model.
 *
 * Errors: KOPT_EUSAGE (there is a model of that kernel; options; a limit that a rule uses is
 * missing), KOPT_EENV (the device), KOPT_ERANGE (64 models), KOPT_ENOMEM. */
KOPT_API KOPT_MUST_USE kopt_status kopt_selector_add_model(kopt_selector *s,
                                                           const kopt_model *m,
                                                           const kopt_predict_options *o,
                                                           kopt_error *err);

/* --- export ---------------------------------------------------------------------------------
 */

/* The model as ONNX; docs/predict.md says what goes in and comes out. As with every file here,
 * `path` has the old content until the new one is whole. Errors: KOPT_EINPUT (a parameter's
 * name of more than 64 bytes, trees that are none), KOPT_ERANGE, KOPT_EIO, KOPT_EFULL,
 * KOPT_ENOMEM. */
KOPT_API KOPT_MUST_USE kopt_status kopt_model_export_onnx(const kopt_model *m, const char *path,
                                                          kopt_error *err);

typedef struct kopt_export_options {
    size_t struct_bytes;      /* set by kopt_export_options_init() */
    const char *solver;       /* NULL: the model's kernel */
    const char *const *where; /* "data_type=FP32": rows with that text in that column; NULL: as
                                 in training */
    size_t n_where;
    const char *const *given; /* "NAME=VALUE" of the model's fields and of columns, for all
                                 problems */
    size_t n_given;
    size_t width;       /* of the beam; 0 = 100, as models are judged */
    const char *limits; /* as for kopt_predict(), as is the next one */
    const char *device;
} kopt_export_options;
KOPT_API void kopt_export_options_init(kopt_export_options *o);

typedef struct kopt_export_count {
    size_t read;     /* rows of the file */
    size_t left_out; /* by `where` */
    size_t repeated; /* problems that came before */
    size_t skipped; /* for which nothing can be written: no configuration satisfies the rules, a
                       size is missing or no size, or the format has no place for it */
    size_t unseen;  /* of a word that the model never learned from, or of another value than the
                       one that a field always had */
    size_t written; /* problems */
    int64_t skipped_line;  /* of the first that was skipped .. */
    char skipped_why[256]; /* .. and why; "" = none */
    int64_t unseen_line;   /* of the first that is unseen .. */
    char unseen_why[256];  /* .. and its "direction=F"; "" = none */
} kopt_export_count;

/* The first prediction for each problem of a file (MIOpen's databases; CSV with the names of
 * their columns in the header), as a text performance database that MIOpen takes for a user's.
 * `o` may be NULL. Errors: those of the file (KOPT_EIO, KOPT_EINPUT, KOPT_EBUSY), KOPT_EINPUT
 * (the model is about other things than convolutions; nothing can be written), KOPT_EUSAGE
 * (options, a limit that a rule uses is missing), KOPT_EENV (the device), KOPT_ERANGE,
 * KOPT_EFULL, KOPT_ENOMEM. */
KOPT_API KOPT_MUST_USE kopt_status kopt_model_export_miopen(
    const kopt_model *m, const char *problems, const char *path, const kopt_export_options *o,
    kopt_export_count *count, kopt_error *err);

/* --- data -----------------------------------------------------------------------------------
 */

/* Where rows come from: kopt's store, MIOpen's performance databases (SQLite, text), T4, CSV.
 */
typedef struct kopt_data_options {
    const char *path;         /* or "NAME=FILE", see `more` */
    const char *kernel;       /* or solver; NULL: the rules' name, else the only one there is */
    const char *rules;        /* rules file or kernel file; NULL: none */
    const char *const *where; /* "data_type=FP32": rows with that text in that column */
    size_t n_where;
    const char *const *params; /* CSV and T4 without rules: which columns are parameters */
    size_t n_params;
    /* Rows that help in training and are in no test: those that `where` would leave out but for
     * these texts ("data_type=FP16"), and those of other files ("FILE" or "NAME=FILE"). A field
     * `source` tells the files apart by their names, else by the files' names up to the first
     * point. They help with problems for training alone: what is the same but for its text
     * there and its source is on the same side of the split. */
    const char *const *also;
    size_t n_also;
    const char *const *more;
    size_t n_more;
    const char *limits; /* of the device that the rules are about; NULL: not bound */
    /* Who is for tests: part `fold` of ten by a hash of the problem, or of the values of
     * expressions over its fields ("min(C,K)"), which keeps such problems together; part fold +
     * 1 is for validation. */
    const char *const *group;
    size_t n_group;
    unsigned fold; /* 0 .. 9 */
} kopt_data_options;

/* --- training -------------------------------------------------------------------------------
 */

typedef struct kopt_epoch {
    unsigned net; /* from 0 */
    unsigned nets;
    unsigned epoch; /* from 1 */
    unsigned epochs;
    double train_loss; /* nats for each parameter */
    double valid_loss;
    double valid_right; /* share of parameters, given the true ones before */
    double seconds;
    int best; /* of this network so far */
} kopt_epoch;

typedef struct kopt_train_start {
    const char *source; /* "MIOpen performance database (SQLite)" */
    const char *kernel;
    const char *network;
    size_t rows, left_out, skipped;
    const char *skipped_why;   /* of the first: "line 12: no value of 'M'"; "" = none */
    size_t unlisted;           /* rows with a value that the rules do not list */
    size_t train, valid, test; /* problems of the data itself */
    size_t helping;            /* problems for training that `also` and `more` add */
    size_t without;            /* problems all of whose configurations failed */
    size_t examples;  /* configurations that are learned: more than problems where several
                         measured nearly as fast as the best */
    size_t constant;  /* parameters with one value only */
    size_t canonical; /* rows put in canonical form */
    int unbound;      /* 1: the rules use numbers of a device, and no limits were given */
    const char *unbound_names; /* which: "max_threads,cc"; "" = none */
    int untimed; /* 1: a table none of whose rows has a time, so that all count alike .. */
    const char *aside; /* .. and the first columns that are left aside: "time, note" */
    size_t checked;    /* problems for training, at most some hundreds, whose best configuration
                          was put to the rules .. */
    size_t forbidden;  /* .. and those whose best one the rules forbid */
    size_t ranked;     /* configurations that a ranker chooses from; 0: of other networks */
    size_t fields, params, parameters; /* the last: numbers of the first network */
    int spares;           /* 1: a model stands at `out` that stays unless this training comes
                             to its end */
    unsigned resumed;     /* epochs that were done before, of network `resumed_net`; 0 = none */
    unsigned resumed_net; /* from 0 */
} kopt_train_start;

/* Zero means the default throughout. Everything is borrowed during the call. */
typedef struct kopt_train_options {
    size_t struct_bytes; /* set by kopt_train_options_init() */
    kopt_data_options data;
    const char *network; /* NULL: "ranker" where most problems have times of many
                            configurations, else "factored". "factored+attention": two kinds
                            that translate, of which the second makes a third of `nets` */
    const char *out;     /* the model file */
    unsigned nets;       /* networks whose answers are averaged; 0 = 1, 5 for factored,
                            10 for ranker, 8 for two kinds */
    int trees;           /* beside the networks, for each parameter; 0 = 30 for factored and
                            ranker, none for others; below 0 = none */
    uint64_t seed;       /* 0 = 1; the same data, options and seed give the same file */
    unsigned threads;    /* 0 = one for each core; has no influence on the result */
    unsigned epochs;     /* at most, for each network */
    unsigned patience;   /* epochs without a better validation loss */
    unsigned batch;
    double rate;      /* of learning */
    double dropout;   /* 0 = the network's own; below 0 = none */
    double smoothing; /* of labels; below 0 = none */
    double unknown;   /* share of input numbers that are taken for unknown ones while learning
                         (of a ranker: deviation of the step that moves a problem);
                         0 = 0.02 (0.1), below 0 = none */
    unsigned hidden, embed, layers;
    int cell;            /* recurrent networks: 0 LSTM, 1 GRU */
    int score;           /* attention: 0 dot, 1 additive */
    double extra_weight; /* of a row that only helps beside one of the data; 0 = 1 */
    double near_best;    /* configurations within this share of the best time are learned, too;
                            0 = 0.1, below 0 = the best alone */
    unsigned repeat; /* how often a problem is drawn in an epoch, with one of its configurations
                        each time; 0 = 8 where they have times, else 1 */
    int learn_valid; /* 1: the problems for validation are learned from, too: for a number of
                        epochs that is known; no epoch is chosen by what was not learned */
    int resume;      /* 1: go on from `out`.partial where there is one of the same training */
    void *user;
    void (*start)(void *user, const kopt_train_start *s);
    int (*epoch)(void *user, const kopt_epoch *e); /* 0: stop, and keep what there is */
} kopt_train_options;
KOPT_API void kopt_train_options_init(kopt_train_options *o);

/* Writes `out` at the end, at once; until then `out`.partial has the state of the training, a
 * few seconds old at most. A training that does not come to its end writes what it learned, but
 * never over a file that stood at `out` when it began. Errors: those of the data (KOPT_EIO,
 * KOPT_EINPUT, KOPT_ERANGE), KOPT_EUSAGE (options, or some that the kind of
 * network does not have; `resume` and a state of another training),
 * KOPT_EINTR (`epoch` ended it; `out`.partial stays), KOPT_EFAILED (the loss is no number any
 * more; the last good values are written, where there were any, beside a file that stood there:
 * `out`.lastgood), KOPT_EFULL, KOPT_ENOMEM. */
KOPT_API KOPT_MUST_USE kopt_status kopt_train(const kopt_train_options *o, kopt_error *err);
/* Names of the networks, from 0; NULL past the end. `about` may be NULL. */
KOPT_API const char *kopt_network(size_t i, const char **about);

/* From a model's log: how many epochs its network `net` (from 0) was trained for, and the best
 * of them, whose `epochs` and `seconds` are 0 (not known). Returns 0 past the last network. */
KOPT_API int kopt_model_trained(const kopt_model *m, unsigned net, unsigned *epochs,
                                kopt_epoch *best);

/* --- judging --------------------------------------------------------------------------------
 */

enum { KOPT_AT = 4 }; /* exact match among the first 1, 5, 20, 50; speed after 0, 1, 5, 20 */

/* Shares of the test problems; NaN: not known. */
typedef struct kopt_judgement {
    size_t problems;
    size_t answered;
    double forced;       /* positions right, given the true ones before */
    double forced_nll;   /* nats for each position */
    double free_running; /* positions of the first prediction right */
    double exact[KOPT_AT];
    double canonical[KOPT_AT];
    double valid;      /* first predictions that satisfy the rules */
    size_t timed;      /* problems with times */
    double unmeasured; /* of these: first predictions that no row is about */
    double kept_mean[KOPT_AT];
    double kept_geometric[KOPT_AT]; /* geometric mean */
    double kept_p5[KOPT_AT];
    double seconds; /* for each prediction, on one core; NaN: not measured */
} kopt_judgement;

typedef struct kopt_eval_row {
    const char *name; /* "model", "model, no rules", "majority", "15 nearest neighbours" */
    kopt_judgement j;
} kopt_eval_row;

typedef struct kopt_eval_start {
    const char *source;
    const char *kernel;
    const char *network;
    size_t rows, left_out, skipped;
    const char *skipped_why; /* as above */
    size_t problems;         /* that are judged */
    size_t known;            /* problems that the majority and the neighbours know */
    int same_data;           /* 1: the rows are those that the model was trained with */
} kopt_eval_start;

/* One problem of one row. */
typedef struct kopt_eval_case {
    const char *name;    /* the row's */
    const char *problem; /* its key: what the split goes by */
    size_t exact_at;     /* the truth's place among the predictions, from 1; 0: not in the first
                            50 */
    size_t canonical_at;
    int timed;
    double kept[KOPT_AT]; /* timed: the speed that was kept */
} kopt_eval_case;

typedef struct kopt_eval_options {
    size_t struct_bytes; /* set by kopt_eval_options_init() */
    const char *model;   /* file */
    kopt_data_options
        data;         /* kernel, rules, split: NULL or 0 = what the model was trained with */
    const char *part; /* "test" (NULL), "valid", "train" or "all" */
    size_t width;     /* 0 = 100 */
    unsigned threads; /* 0 = one for each core */
    void *user;
    void (*start)(void *user, const kopt_eval_start *s); /* may be NULL */
    void (*judging)(void *user, const char *name);       /* before each row; may be NULL */
    void (*problem)(void *user,
                    const kopt_eval_case *c); /* each problem of each row; may be NULL */
} kopt_eval_options;
KOPT_API void kopt_eval_options_init(kopt_eval_options *o);

/* The model with and without its rules, the majority's configuration and nearest neighbours, on
 * the same problems: *n rows; free with kopt_text_free((char *)*out). Errors: as kopt_train(),
 * KOPT_EINPUT (the data is not of the model's kind). */
KOPT_API KOPT_MUST_USE kopt_status kopt_eval(const kopt_eval_options *o, kopt_eval_row **out,
                                             size_t *n, kopt_error *err);

#ifdef __cplusplus
}
#endif
#endif
