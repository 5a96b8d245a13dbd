/* SPDX-License-Identifier: MIT */
#include "cli/results.h"
#include "cli/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

char *cli_config_words(const char *json)
{
    struct cli_text t = {0};
    kopt_pair p;
    cli_text_adds(&t, "");
    while (kopt_pair_next(&json, &p))
        cli_text_addf(&t, "%s%.*s=%.*s", t.len ? " " : "", (int)p.name_bytes, p.name,
                      (int)p.value_bytes, p.value);
    return t.ptr;
}

char *cli_config_spaced(const char *text)
{
    char *copy = cli_strdup(text);
    for (char *p = copy; *p; p++)
        if (*p == ',')
            *p = ' ';
    return copy;
}

const char *cli_spread(const struct cli_term *t, const kopt_result *r, char out[CLI_NUM])
{
    char percent[CLI_NUM];
    double half = (r->high_ns - r->low_ns) / 2 / r->median_ns;
    out[0] = '\0';
    if (isfinite(half) && r->n_times == 1)
        (void)snprintf(out, CLI_NUM, "one launch");
    else if (isfinite(half))
        (void)snprintf(out, CLI_NUM, "%s%.30s", cli_sign(t, CLI_PLUS_MINUS),
                       cli_percent(half, percent));
    return out;
}

/* The place in "m.cl:3:5: error: text", "error: m.cl:3:5: text" or "m.cu(3): error: text",
 * given what stands before the text. Returns its length, 0 = there is none; *at: where it
 * begins. */
static size_t place_in(const char *line, size_t n, const char **at)
{
    static const char error[] = "error:";
    size_t error_bytes = sizeof(error) - 1;
    while (n && (*line == ' ' || *line == '\t')) {
        line++;
        n--;
    }
    if (n > error_bytes && memcmp(line, error, error_bytes) == 0) {
        line += error_bytes + 1;
        n -= error_bytes + 1;
    }
    while (n && (line[n - 1] == ' ' || line[n - 1] == ':'))
        n--;
    if (n > error_bytes && memcmp(line + n - error_bytes + 1, error, error_bytes - 1) == 0) {
        n -= error_bytes - 1;
        if (n > 6 && memcmp(line + n - 6, "fatal ", 6) == 0)
            n -= 6;
        while (n && (line[n - 1] == ' ' || line[n - 1] == ':'))
            n--;
    }
    size_t end = n && line[n - 1] == ')' ? n - 1 : n;
    size_t digits = end;
    while (digits && line[digits - 1] >= '0' && line[digits - 1] <= '9')
        digits--;
    *at = line;
    return digits < end && digits > 1 && line[digits - 1] == (end < n ? '(' : ':') ? n : 0;
}

char *cli_message(const kopt_result *r)
{
    const char *message = r->message ? r->message : "";
    const char *log = r->log ? r->log : "";
    const char *text =
        r->outcome == KOPT_OUT_COMPILE_ERROR && message[0] ? strstr(log, message) : NULL;
    const char *line = text;
    const char *place = NULL;
    while (line && line > log && line[-1] != '\n')
        line--;
    size_t n = text ? place_in(line, (size_t)(text - line), &place) : 0;
    return n ? cli_strf("%.*s: %s", (int)n, place, message) : cli_strdup(message);
}

static const struct {
    int64_t bit;
    const char *name;
} throttles[] = {
#define X(id, value, name, text) {value, name},
    KOPT_THROTTLE_MAP(X)
#undef X
};

enum { N_THROTTLES = sizeof(throttles) / sizeof(throttles[0]) };

char *cli_throttle(const kopt_result *r, bool all)
{
    struct cli_text t = {0};
    int64_t rest = r->throttle > 0 ? r->throttle : 0;
    if (!all)
        rest &= ~(int64_t)(KOPT_THROTTLE_APP_CLOCKS | KOPT_THROTTLE_DISPLAY);
    cli_text_adds(&t, "");
    for (size_t i = 0; i < N_THROTTLES; i++) {
        if (rest & throttles[i].bit)
            cli_text_addf(&t, "%s%s", t.len ? ", " : "", throttles[i].name);
        rest &= ~throttles[i].bit;
    }
    if (rest)
        cli_text_addf(&t, "%s0x%llx", t.len ? ", " : "", (unsigned long long)rest);
    return t.ptr;
}

/* The names as an array; null where nothing is known. */
static void json_throttle(struct cli_json *j, int64_t throttle)
{
    if (throttle < 0) {
        cli_json_raw(j, "throttle", NULL);
        return;
    }
    cli_json_open(j, "throttle", '[');
    for (size_t i = 0; i < N_THROTTLES; i++) {
        if (throttle & throttles[i].bit)
            cli_json_str(j, NULL, throttles[i].name);
        throttle &= ~throttles[i].bit;
    }
    char *rest = cli_strf("0x%llx", (unsigned long long)throttle);
    if (throttle)
        cli_json_str(j, NULL, rest);
    free(rest);
    cli_json_close(j, ']');
}

void cli_json_result(struct cli_json *j, const kopt_result *r, bool all)
{
    if (r->id)
        cli_json_int(j, "id", r->id);
    cli_json_raw(j, "config", r->config);
    cli_json_str(j, "outcome", kopt_outcome_name(r->outcome));
    cli_json_str(j, "message", r->message && r->message[0] ? r->message : NULL);
    cli_json_num(j, "median_ns", r->median_ns);
    cli_json_num(j, "low_ns", r->low_ns);
    cli_json_num(j, "high_ns", r->high_ns);
    cli_json_u64(j, "samples", r->n_times);
    cli_json_bool(j, "dropped", r->dropped != 0);
    cli_json_bool(j, "from_store", r->from_store != 0);
    cli_json_bool(j, "race", r->race != 0);
    cli_json_num(j, "compile_ns", r->compile_ns);
    cli_json_num(j, "device_ns", r->device_ns);
    cli_json_known(j, "registers", r->registers);
    cli_json_known(j, "shared_bytes", r->shared_bytes);
    cli_json_known(j, "local_bytes", r->local_bytes);
    cli_json_num(j, "max_error", r->max_error);
    cli_json_num(j, "power_w", r->power_w);
    cli_json_num(j, "energy_j", r->energy_j);
    cli_json_num(j, "sm_mhz", r->sm_mhz);
    cli_json_num(j, "temp_c", r->temp_c);
    json_throttle(j, r->throttle);
    cli_json_int(j, "wall_us", r->wall_us);
    if (!all)
        return;
    cli_json_open(j, "times_ns", '[');
    for (uint32_t i = 0; r->times_ns && i < r->n_times; i++)
        cli_json_num(j, NULL, r->times_ns[i]);
    cli_json_close(j, ']');
    cli_json_str(j, "log", r->log);
}

void cli_json_result_at(struct cli_json *j, const char *key, const kopt_result *r)
{
    if (!r || !r->config || !r->config[0]) {
        cli_json_raw(j, key, NULL);
        return;
    }
    cli_json_open(j, key, '{');
    cli_json_result(j, r, false);
    cli_json_close(j, '}');
}

const char *cli_outcome_meaning(kopt_outcome o, bool compared)
{
    return o == KOPT_OUT_OK && !compared ? "ran; its results were not compared with anything"
                                         : kopt_outcome_text(o);
}

enum cli_style cli_outcome_style(kopt_outcome o)
{
    if (o == KOPT_OUT_OK)
        return CLI_GREEN;
    return o == KOPT_OUT_INTERRUPTED ? CLI_YELLOW : CLI_RED;
}

static bool find_pair(const char *json, const char *name, size_t bytes, kopt_pair *out)
{
    while (kopt_pair_next(&json, out))
        if (out->name_bytes == bytes && memcmp(out->name, name, bytes) == 0)
            return true;
    return false;
}

/* The next text of an array of them, as it is written; NULL at its end. */
static const char *next_text(const char **at, size_t *bytes)
{
    const char *begin = strchr(*at, '"');
    const char *end = begin ? begin + 1 : NULL;
    while (end && *end && *end != '"')
        end += *end == '\\' && end[1] ? 2 : 1;
    if (!end || !*end)
        return NULL;
    *at = end + 1;
    *bytes = (size_t)(end - begin - 1);
    return begin + 1;
}

static bool has_name(const struct cli_names *n, const char *name, size_t bytes)
{
    for (size_t i = 0; i < n->n; i++)
        if (strlen(n->names[i]) == bytes && memcmp(n->names[i], name, bytes) == 0)
            return true;
    return false;
}

static void add_name(struct cli_names *n, size_t *cap, const char *name, size_t bytes)
{
    if (has_name(n, name, bytes))
        return;
    n->names = cli_grow(n->names, cap, n->n, sizeof(*n->names));
    n->names[n->n++] = cli_strf("%.*s", (int)bytes, name);
}

struct cli_names cli_names_in(const char *json, const char *order)
{
    struct cli_names n = {0};
    size_t cap = 0;
    size_t bytes;
    const char *name;
    kopt_pair p;
    while ((name = next_text(&order, &bytes)) != NULL)
        if (find_pair(json, name, bytes, &p))
            add_name(&n, &cap, name, bytes);
    while (kopt_pair_next(&json, &p))
        add_name(&n, &cap, p.name, p.name_bytes);
    return n;
}

char *cli_config_words_in(const char *json, const char *order)
{
    struct cli_text t = {0};
    struct cli_names n = cli_names_in(json, order);
    kopt_pair p;
    cli_text_adds(&t, "");
    for (size_t i = 0; i < n.n; i++)
        if (find_pair(json, n.names[i], strlen(n.names[i]), &p))
            cli_text_addf(&t, "%s%s=%.*s", i ? " " : "", n.names[i], (int)p.value_bytes,
                          p.value);
    cli_names_free(&n);
    return t.ptr;
}

void cli_names_free(struct cli_names *n)
{
    for (size_t i = 0; i < n->n; i++)
        free(n->names[i]);
    free(n->names);
    *n = (struct cli_names){0};
}
