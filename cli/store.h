/* SPDX-License-Identifier: MIT */
/* Shared by the commands under kopt store. */
#ifndef CLI_STORE_H
#define CLI_STORE_H

#include "cli/cmds.h"
#include "cli/paths.h"
#include "cli/results.h"
#include "cli/rows.h"

/* The options of every one of them begin with these. */
struct cli_store_common {
    const char *store;
    bool json; /* of those that have CLI_JSON_OPT */
};

#define CLI_STORE_OPT  CLI_ROW_STORE(struct cli_store_common, "the file", NULL)
#define CLI_JSON_OPT   CLI_ROW_JSON(struct cli_store_common, CLI_JSON_HELP, NULL)
#define CLI_STORE_OPTS CLI_STORE_OPT, CLI_JSON_OPT

/* Open for reading. Returns NULL after a message, with the exit code in *code. */
kopt_store *cli_store_read(struct cli *c, const struct cli_store_common *o, int *code);

/* A subject that outlives the visit. */
struct cli_subject {
    kopt_subject s; /* its strings are owned */
};
void cli_subject_copy(struct cli_subject *to, const kopt_subject *from);
/* A kopt_store_subject() visitor; user: struct cli_subject. */
int cli_subject_keep(void *user, const kopt_subject *x);
void cli_subject_free(struct cli_subject *s);

struct cli_subjects {
    struct cli_subject *items;
    size_t n;
    size_t cap;
};
void cli_subjects_free(struct cli_subjects *l);
/* Those of a kernel (NULL = any) whose problem has every NAME=VALUE of `pairs`; newest first.
 */
kopt_status cli_subjects_get(kopt_store *s, const char *kernel, const char *const *pairs,
                             size_t n_pairs, struct cli_subjects *out, kopt_error *err);

/* Do the words look like a subject? Returns 0 or the exit code after a usage message. */
int cli_need_subject(struct cli *c, const struct cli_args *args);

/* All of a command on one subject: opens the store for reading, finds the subject that the
 * words mean, calls `work`. `options` begins with struct cli_store_common. Returns the exit
 * code. */
int cli_subject_run(struct cli *c, const struct cli_args *args, const void *options,
                    int (*work)(struct cli *c, kopt_store *s, const void *options,
                                const kopt_subject *subject));

/* The subject that "ID" or "KERNEL [NAME=VALUE..]" means; the newest where there are several,
 * which a note says. Returns 0 or the exit code after a message. */
int cli_subject_find(struct cli *c, kopt_store *s, const struct cli_args *args,
                     struct cli_subject *out);

/* "gemm M=512 N=512 on NVIDIA H200"; the caller frees it. */
char *cli_subject_title(const kopt_subject *s);

/* A whole number on the command line. Returns 0 or the exit code. */
int cli_id(struct cli *c, const char *word, const char *what, int64_t *out);

/* Results that outlive the visit. */
struct cli_rows {
    kopt_result *items; /* strings and samples are owned */
    int64_t *runs;
    int64_t *subjects;
    size_t n;
    size_t cap;
    size_t cap_runs;
    size_t cap_subjects;
};
kopt_status cli_rows_get(kopt_store *s, const kopt_result_filter *f, struct cli_rows *out,
                         kopt_error *err);
/* A kopt_store_results() visitor; user: struct cli_rows. */
int cli_rows_add(void *user, const kopt_result *r, int64_t subject, int64_t run);
void cli_rows_free(struct cli_rows *rows);

#endif
