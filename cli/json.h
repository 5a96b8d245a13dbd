/* SPDX-License-Identifier: MIT */
/* JSON lines on a stream: one object a line, written as it goes. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cli_json {
    FILE *file;
    bool comma; /* something stands before the next item */
};

/* {"type":"..." .. }\n */
struct cli_json cli_json_begin(FILE *file, const char *type);
void cli_json_end(struct cli_json *j);

/* Members of an object; `key` NULL: items of an array. */
void cli_json_str(struct cli_json *j, const char *key, const char *value); /* NULL: null */
void cli_json_int(struct cli_json *j, const char *key, int64_t value);
void cli_json_u64(struct cli_json *j, const char *key, uint64_t value);
void cli_json_num(struct cli_json *j, const char *key, double value); /* not finite: null */
void cli_json_bool(struct cli_json *j, const char *key, bool value);
/* `json` is JSON already; "" and NULL become null. */
void cli_json_raw(struct cli_json *j, const char *key, const char *json);
/* Unknown numbers: -1 becomes null. */
void cli_json_known(struct cli_json *j, const char *key, int64_t value);
void cli_json_open(struct cli_json *j, const char *key, char bracket); /* '{' or '[' */
void cli_json_close(struct cli_json *j, char bracket);                 /* '}' or ']' */

#endif
