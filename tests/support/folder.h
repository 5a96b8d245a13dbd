/* SPDX-License-Identifier: MIT */
/* Folders that tests work in. */
#ifndef KP_TESTS_SUPPORT_FOLDER_H
#define KP_TESTS_SUPPORT_FOLDER_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Makes `path` and the folders above it; those that are there are fine. */
static inline bool make_folder(const char *path)
{
    char part[4096];
    size_t n = strlen(path);
    for (size_t i = 1; i <= n && n < sizeof(part); i++) {
        if (i < n && path[i] != '/')
            continue;
        (void)snprintf(part, sizeof(part), "%.*s", (int)i, path);
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return false;
    }
    return n > 0 && n < sizeof(part);
}

#endif
