/* SPDX-License-Identifier: MIT */
/* Recorded spaces that a command line names. */
#ifndef CLI_RECORDINGS_H
#define CLI_RECORDINGS_H

#include "cli/cli.h"
#include "cli/json.h"

/* A zeroed one is empty. */
struct cli_recordings {
    kopt_recording **list;
    size_t n;
    size_t cap;
};

/* Open `path`. With `whole`, of a store every subject that has two successes or more; what is
 * left out is said. Returns 0, or the exit code after a message. What of the file could not be
 * read is warned of. */
int cli_recordings_add(struct cli *c, struct cli_recordings *r, const char *path, bool whole);
void cli_recordings_free(struct cli_recordings *r);
/* As the library wants them; NULL where there are none. */
const kopt_recording *const *cli_recordings_list(const struct cli_recordings *r);

/* "gemm M=512 on NVIDIA A4000", of what the file says; the caller frees it. */
char *cli_recording_words(const kopt_recording_info *info);
/* The members of its JSON object. */
void cli_json_recording(struct cli_json *j, const kopt_recording_info *info);

#endif
