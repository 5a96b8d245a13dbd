/* SPDX-License-Identifier: MIT */
#include "contract.h"

/* The fake device can copy and nothing else. */
static float first(float a, float b)
{
    (void)b;
    return a;
}

static const struct dialect FAKE = {
    .backend = KP_BACKEND_FAKE,
    .path = "kernels/user file.fake",
    .add = "// fake: out 2 = copy 0\nkernel add\n",
    .combine = first,
    .add2 = "// fake: out 2 = copy 0\nkernel add2\n",
    .local = "// fake: out 1 = copy 0\nkernel through_local\n",
    .accumulate = NULL,
    .half = "// fake: out 0 = copy 1\n// fake: partial\nkernel half_of_it\n",
    .scaled = NULL,
    .including = "#include \"kopt_part.h\"\nkernel add\n",
    .part = "// fake: out 2 = copy 0\n",
    .broken =
        "kernel add\n\n// fake: when WIDTH=8 compile_error \"no_such_thing is unknown\"\n",
    .broken_line = 3,
    .broken_column = 1,
    .broken_word = "no_such_thing",
};

const struct dialect *contract_dialect(void)
{
    return &FAKE;
}
