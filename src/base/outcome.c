/* SPDX-License-Identifier: MIT */
#include "kopt/types.h"

const char *kopt_outcome_name(kopt_outcome o)
{
    switch (o) {
#define X(id, value, name, text) \
    case id:                     \
        return name;
        KOPT_OUTCOME_MAP(X)
#undef X
    case KOPT_OUT_COUNT:
        break;
    }
    return "unknown";
}

const char *kopt_outcome_text(kopt_outcome o)
{
    switch (o) {
#define X(id, value, name, text) \
    case id:                     \
        return text;
        KOPT_OUTCOME_MAP(X)
#undef X
    case KOPT_OUT_COUNT:
        break;
    }
    return "not an outcome";
}
