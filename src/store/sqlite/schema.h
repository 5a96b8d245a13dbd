/* SPDX-License-Identifier: MIT */
/* The tables, and how an older file comes to have them. Layer: store. */
#ifndef KP_STORE_SQLITE_SCHEMA_H
#define KP_STORE_SQLITE_SCHEMA_H

#include "store/sqlite/db.h"

enum { KP_SQLITE_APP_ID = 0x6b6f7074 }; /* "kopt" */

/* Step i takes a database from schema number i to i + 1. */
struct kp_migration {
    const char *sql;
    int (*fill)(sqlite3 *db); /* after the SQL; returns an SQLite result; NULL = nothing */
};

/* The steps there are; their number is the schema that this program reads and writes. */
const struct kp_migration *kp_sqlite_migrations(size_t *n);

/* Is this a store of schema n, or can it become one? Nothing is changed.
 * Errors: KOPT_ECORRUPT (another program's file, or a newer schema), KOPT_ENOTFOUND (empty,
 * opened for reading), KOPT_EIO (older, opened for reading). */
kopt_status kp_sqlite_recognise(struct kp_sqlite *s, size_t n, kopt_error *err);

/* The same, and an empty file or an older schema is taken through the steps that are missing,
 * in one transaction. Errors also: as any write. */
kopt_status kp_sqlite_schema(struct kp_sqlite *s, const struct kp_migration *steps, size_t n,
                             kopt_error *err);

#endif
