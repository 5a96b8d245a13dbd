/* SPDX-License-Identifier: MIT */
#include "cli/recordings.h"
#include "cli/mem.h"
#include "cli/results.h"
#include "cli/units.h"

#include <stdlib.h>
#include <string.h>

/* Searches of fewer successes are all alike. */
enum { SUCCESSES_MIN = 2 };

static void warn_of(struct cli *c, const kopt_recording_info *info)
{
    char n[CLI_NUM];
    if (info->left_out)
        cli_warn(c, "%s: %s %s of no use or could not be read", info->path,
                 cli_count((double)info->left_out, n),
                 info->left_out == 1 ? "entry is" : "entries are");
    if (info->cut)
        cli_warn(c, "%s ends in the middle of an entry; all before it was taken", info->path);
}

static int add_one(struct cli *c, struct cli_recordings *r, const char *path, bool successes)
{
    kopt_recording *x = NULL;
    kopt_error err;
    if (kopt_recording_open(path, &x, &err) != KOPT_OK)
        return cli_fail(c, &err);
    const kopt_recording_info *info = kopt_recording_get(x);
    if (successes && info->by_outcome[KOPT_OUT_OK] < SUCCESSES_MIN) {
        cli_note(c, "%s is left out: fewer than two of its configurations are ok", path);
        kopt_recording_close(x);
        return 0;
    }
    warn_of(c, info);
    r->list = cli_grow(r->list, &r->cap, r->n, sizeof(kopt_recording *));
    r->list[r->n++] = x;
    return 0;
}

int cli_recordings_add(struct cli *c, struct cli_recordings *r, const char *path, bool whole)
{
    int64_t *ids = NULL;
    size_t n = 0;
    kopt_error err;
    int code = 0;
    if (whole && kopt_recording_subjects(path, &ids, &n, &err) != KOPT_OK)
        return cli_fail(c, &err);
    for (size_t i = 0; i < n && code == 0; i++) {
        char *one = cli_strf("%s#%lld", path, (long long)ids[i]);
        code = add_one(c, r, one, n > 1);
        free(one);
    }
    if (n == 0)
        code = add_one(c, r, path, false);
    kopt_text_free((char *)ids);
    return code;
}

void cli_recordings_free(struct cli_recordings *r)
{
    for (size_t i = 0; i < r->n; i++)
        kopt_recording_close(r->list[i]);
    free(r->list);
    *r = (struct cli_recordings){0};
}

const kopt_recording *const *cli_recordings_list(const struct cli_recordings *r)
{
    return r->n ? (const kopt_recording *const *)r->list : NULL;
}

char *cli_recording_words(const kopt_recording_info *info)
{
    struct cli_text t = {0};
    cli_text_adds(&t, info->kernel);
    if (info->problem[0]) {
        char *problem = info->problem[0] == '{' ? cli_config_words(info->problem)
                                                : cli_strdup(info->problem);
        if (problem[0])
            cli_text_addf(&t, "%s%s", t.len ? " " : "", problem);
        free(problem);
    }
    if (info->device[0])
        cli_text_addf(&t, "%son %s", t.len ? " " : "", info->device);
    return t.ptr;
}

static const char *known(const char *text)
{
    return text[0] ? text : NULL;
}

void cli_json_recording(struct cli_json *j, const kopt_recording_info *info)
{
    cli_json_str(j, "path", info->path);
    cli_json_str(j, "format", info->format);
    cli_json_str(j, "name", info->name);
    cli_json_str(j, "kernel", known(info->kernel));
    /* As kopt writes it it is JSON; others write what they like. */
    if (strcmp(info->format, "kopt") == 0)
        cli_json_raw(j, "problem", info->problem);
    else
        cli_json_str(j, "problem", known(info->problem));
    cli_json_str(j, "device_name", known(info->device));
    cli_json_u64(j, "parameters", info->n_params);
    cli_json_num(j, "candidates", info->cartesian);
    cli_json_u64(j, "valid", info->n);
    cli_json_open(j, "outcomes", '{');
    for (int o = 0; o < KOPT_OUT_COUNT; o++)
        cli_json_u64(j, kopt_outcome_name((kopt_outcome)o), info->by_outcome[o]);
    cli_json_close(j, '}');
    cli_json_num(j, "optimum_ns", info->best_ns);
    cli_json_str(j, "optimum", known(info->best_text));
    cli_json_num(j, "median_ns", info->median_ns);
    cli_json_num(j, "cutoff_ns", info->cutoff_ns);
    cli_json_u64(j, "random_evaluations", info->budget);
    cli_json_num(j, "evaluation_s", info->evaluation_s);
    cli_json_num(j, "compile_share", info->compile_share);
    cli_json_u64(j, "left_out", info->left_out);
    cli_json_bool(j, "cut", info->cut != 0);
}
