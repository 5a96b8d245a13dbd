/* SPDX-License-Identifier: MIT */
#include "cli/cmds.h"

static const struct cli_command *const commands[] = {
    &cli_cmd_devices, &cli_cmd_space,      &cli_cmd_tune, &cli_cmd_compare,
    &cli_cmd_store,   &cli_cmd_train,      &cli_cmd_eval, &cli_cmd_predict,
    &cli_cmd_export,  &cli_cmd_completion, &cli_cmd_help, &cli_cmd_version,
    &cli_cmd_man,     &cli_cmd_complete,   NULL};

static const struct cli_example examples[] = {
    {"devices", "see what kopt can use here, and how to get what is missing"},
    {"tune gemm.cl M=512 N=512 K=512", "find the fastest configuration of a kernel"},
    {"store best gemm M=512 N=512 K=512", "ask for it later"},
    {"train kopt.db --rules gemm.cl -o gemm.model", "learn to predict it for other problems"},
};

const struct cli_command cli_root = {
    .name = "kopt",
    .summary = "make GPU kernels fast by measurement",
    .args = "COMMAND [ARGUMENTS] [OPTIONS]",
    .about =
        "kopt searches the parameters of a CUDA C or OpenCL C kernel by measurement, checks every "
        "result against a reference, and keeps every measurement in a store. From measurements it "
        "learns to predict good parameters for problems that were never measured.",
    .examples = examples,
    .n_examples = CLI_LEN(examples),
    .subs = commands,
};
