/* SPDX-License-Identifier: MIT */
/* What kopt train shows while it works and at its end. */
#ifndef CLI_TRAIN_VIEW_H
#define CLI_TRAIN_VIEW_H

#include "cli/cli.h"

enum { CLI_NETS_MAX = 32 };

/* A network's best epoch. */
struct cli_net_line {
    unsigned epochs;
    kopt_epoch best;
};

struct cli_train_view {
    struct cli *c;
    bool json;
    const char *out; /* the model's file */
    struct cli_progress progress;
    struct cli_net_line nets[CLI_NETS_MAX];
    unsigned n_nets;
    bool resumed;
    bool spares;     /* what stood at `out` before is there still, unless the training ends */
    double seconds;  /* of the epochs seen here */
    unsigned epochs; /* seen here */
};

void cli_train_view_init(struct cli_train_view *v, struct cli *c, bool json, const char *out);
void cli_train_start(struct cli_train_view *v, const kopt_train_start *s);
void cli_train_epoch(struct cli_train_view *v, const kopt_epoch *e);
/* The networks, as text or as the last JSON line. */
void cli_train_end(struct cli_train_view *v, bool interrupted);

#endif
