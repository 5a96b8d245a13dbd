/* SPDX-License-Identifier: MIT */
/* JSON values and text. Layer: json (the only user of Jansson).
 *
 * Values are reference-free trees with one owner. Integers are int64 and stay exact; numbers
 * with a point or exponent are double. Text is UTF-8. Values live on the C library's heap
 * (Jansson's own allocator), text buffers on ours. */
#ifndef KP_JSON_JSON_H
#define KP_JSON_JSON_H

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_json; /* one value */

enum kp_json_type {
    KP_JSON_NULL,
    KP_JSON_BOOL,
    KP_JSON_INT,
    KP_JSON_REAL,
    KP_JSON_STRING,
    KP_JSON_ARRAY,
    KP_JSON_OBJECT
};

enum { KP_JSON_DEPTH_MAX = 128 }; /* nesting of arrays and objects, read or written */

/* ---- reading ---- */

/* One value and nothing behind it. `name` (may be NULL) stands for the text in messages.
 * Repeated keys, NUL in strings, invalid UTF-8, integers beyond int64 and deeper nesting than
 * KP_JSON_DEPTH_MAX are errors.
 * Owner: kp_json_free(). Errors: KOPT_EINPUT (line, column, excerpt), KOPT_ENOMEM. */
kopt_status kp_json_parse(struct kp_str text, const char *name, struct kp_json **out,
                          kopt_error *err);
/* `j` may be NULL. */
void kp_json_free(struct kp_json *j);

enum kp_json_type kp_json_type(const struct kp_json *j);
/* "null", "boolean", "integer", "number", "string", "array", "object". */
const char *kp_json_type_name(enum kp_json_type type);

/* Elements of an array, members of an object; 0 for anything else. */
size_t kp_json_size(const struct kp_json *j);
/* Borrowed; NULL when `j` is NULL, is no array or has no such element. */
const struct kp_json *kp_json_at(const struct kp_json *j, size_t i);
/* Borrowed; NULL when `j` is NULL, is no object or has no such member. */
const struct kp_json *kp_json_get(const struct kp_json *j, const char *key);
/* Calls `visit` for each member, in the order of the text, until it returns false. Returns
 * whether it went through. */
bool kp_json_each(const struct kp_json *j,
                  bool (*visit)(void *user, const char *key, const struct kp_json *value),
                  void *user);

/* False when `j` is NULL or of another type; *out is then unchanged. as_f64 takes integers too;
 * as_str's text is borrowed and terminated. */
bool kp_json_as_bool(const struct kp_json *j, bool *out);
bool kp_json_as_i64(const struct kp_json *j, int64_t *out);
bool kp_json_as_f64(const struct kp_json *j, double *out);
bool kp_json_as_str(const struct kp_json *j, struct kp_str *out);

/* A member that must be there. Errors: KOPT_EINPUT ("'n': integer expected, found string"). */
kopt_status kp_json_need_i64(const struct kp_json *j, const char *key, int64_t *out,
                             kopt_error *err);
kopt_status kp_json_need_f64(const struct kp_json *j, const char *key, double *out,
                             kopt_error *err);
kopt_status kp_json_need_str(const struct kp_json *j, const char *key, struct kp_str *out,
                             kopt_error *err);
kopt_status kp_json_need_array(const struct kp_json *j, const char *key,
                               const struct kp_json **out, kopt_error *err);
kopt_status kp_json_need_object(const struct kp_json *j, const char *key,
                                const struct kp_json **out, kopt_error *err);

/* A member that may be missing or null: *out is then `otherwise`. Another type is an error. */
kopt_status kp_json_opt_str(const struct kp_json *j, const char *key, const char *otherwise,
                            struct kp_str *out, kopt_error *err);

/* ---- building ----
 * Constructors return NULL when out of memory. set and push take over `value`, whatever
 * happens, and fail (false) when one of the two is NULL, so that a chain of calls needs one
 * check: bool ok = kp_json_set_i64(o, "n", n); ok = kp_json_set_str(o, "name", name) && ok; */

struct kp_json *kp_json_new_null(void);
struct kp_json *kp_json_new_bool(bool v);
struct kp_json *kp_json_new_i64(int64_t v);
/* JSON has no infinities and no NaN: those become null. */
struct kp_json *kp_json_new_f64(double v);
/* Bytes that are not UTF-8 become U+FFFD. */
struct kp_json *kp_json_new_str(struct kp_str s);
struct kp_json *kp_json_new_array(void);
struct kp_json *kp_json_new_object(void);
/* A deep copy; NULL for NULL. */
struct kp_json *kp_json_dup(const struct kp_json *j);

bool kp_json_set(struct kp_json *object, const char *key, struct kp_json *value);
bool kp_json_push(struct kp_json *array, struct kp_json *value);

bool kp_json_set_bool(struct kp_json *object, const char *key, bool v);
bool kp_json_set_i64(struct kp_json *object, const char *key, int64_t v);
bool kp_json_set_f64(struct kp_json *object, const char *key, double v);
bool kp_json_set_str(struct kp_json *object, const char *key, const char *s); /* NULL: null */

/* ---- writing ---- */

/* Compact, keys sorted bytewise, numbers as the shortest text that reads back equal: the same
 * value always gives the same bytes. A tree that is too deep sets out->failed to KOPT_ERANGE.
 */
void kp_json_dump(const struct kp_json *j, struct kp_buf *out);
/* A string with quotes and escapes; bytes that are not UTF-8 become U+FFFD. */
void kp_json_quote(struct kp_str s, struct kp_buf *out);
bool kp_json_is_utf8(struct kp_str s);

#endif
