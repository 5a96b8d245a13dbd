/* SPDX-License-Identifier: MIT */
/* Compressed data from the folder that KOPT_DATA_DIR names. */
#ifndef KP_TESTS_SUPPORT_UNPACK_H
#define KP_TESTS_SUPPORT_UNPACK_H

#include "os/clock.h"
#include "os/proc.h"
#include "support/test.h"

#include <unistd.h>

/* Unpack folder/name.bz2 into the scratch folder, unless it is there; returns `name`. */
static inline const char *unpack(const char *folder, const char *name)
{
    char command[9000];
    char how[64] = "";
    struct kp_proc p = {0};
    kopt_error err = {0};
    if (access(name, R_OK) == 0)
        return name;
    (void)snprintf(command, sizeof(command),
                   "bzip2 -dc '%s/%s.bz2' > '%s.new' && mv '%s.new' '%s'", folder, name, name,
                   name, name);
    const char *const argv[] = {"sh", "-c", command, NULL};
    const struct kp_proc_options o = {.path = "/bin/sh", .argv = argv};
    if (kp_proc_start(&o, &p, &err) != KOPT_OK)
        fail_msg("%s", err.message);
    for (int i = 0; i < 6000 && !kp_proc_ended(&p, how, sizeof(how)); i++)
        kp_clock_sleep_ns(10000000);
    kp_proc_kill(&p);
    if (access(name, R_OK) != 0)
        fail_msg("%s/%s.bz2 cannot be unpacked: %s", folder, name, how);
    return name;
}

#endif
