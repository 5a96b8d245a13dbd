/* SPDX-License-Identifier: MIT */
/* What the readers of MIOpen's databases share. Layer: store. */
#ifndef KP_STORE_MIOPEN_IMPL_H
#define KP_STORE_MIOPEN_IMPL_H

#include "base/str.h"
#include "store/miopen.h"

struct kp_miopen_walk {
    const char *path;
    const char *solver; /* NULL: all */
    kp_miopen_visit visit;
    void *user;
    struct kp_miopen_count *count;
    kopt_error *err;
};

/* Count a row, line or entry that cannot be used; `reason` is constant text. */
void kp_miopen_skip(const struct kp_miopen_walk *w, int64_t line, const char *reason);
/* Hand a row over. */
kopt_status kp_miopen_emit(const struct kp_miopen_walk *w, const struct kp_miopen_row *row);

/* Cut "v,v,.." (changed: commas become NULs) into values[KP_MIOPEN_VALUES_MAX]. 0: there are
 * none, an empty one, or too many. */
size_t kp_miopen_values(char *text, const char **values);

kopt_status kp_miopen_read_text(const struct kp_miopen_walk *w);

/* The columns of a text key and what they are. */
enum { KP_MIOPEN_KEY_COLUMNS = 26 };
extern const char *const kp_miopen_key_columns[KP_MIOPEN_KEY_COLUMNS];
/* Read a key (changed: cut into pieces). NULL, or what is wrong with it. */
const char *kp_miopen_parse_key(char *key, const char *problem[KP_MIOPEN_KEY_COLUMNS]);

#endif
