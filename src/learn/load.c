/* SPDX-License-Identifier: MIT */
/* Which kind of file it is. Layer: learn. */
#include "learn/load_impl.h"

const char *kp_source_name(enum kp_source s)
{
    switch (s) {
    case KP_SOURCE_STORE:
        return "store";
    case KP_SOURCE_MIOPEN:
        return "MIOpen database";
    case KP_SOURCE_T4:
        return "T4";
    case KP_SOURCE_CSV:
        break;
    }
    return "CSV";
}

kopt_status kp_load(const char *path, const struct kp_load_options *o, struct kp_dataset **out,
                    struct kp_load_report *report, kopt_error *err)
{
    struct kp_intake in;
    *out = NULL;
    *report = (struct kp_load_report){.source = KP_SOURCE_MIOPEN};
    kp_intake_init(&in, path, o, report, err);
    kopt_status st = kp_load_miopen(&in);
    if (st == KOPT_OK)
        st = kp_intake_finish(&in, out);
    kp_intake_deinit(&in);
    return st;
}
