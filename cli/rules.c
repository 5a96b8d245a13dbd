/* SPDX-License-Identifier: MIT */
#include "cli/rules.h"
#include "cli/mem.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool add_word(const char *value, struct cli_words *w, char *why, size_t bytes)
{
    if (w->n == CLI_WORDS_MAX) {
        (void)snprintf(why, bytes, "it is given more than %d times", (int)CLI_WORDS_MAX);
        return false;
    }
    w->words[w->n++] = value;
    return true;
}

bool cli_parse_word(const char *value, void *field, char *why, size_t bytes)
{
    if (!value[0]) {
        (void)snprintf(why, bytes, "the value is empty");
        return false;
    }
    return add_word(value, field, why, bytes);
}

bool cli_parse_where(const char *value, void *field, char *why, size_t bytes)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value) {
        (void)snprintf(why, bytes, "'%s' is not COLUMN=TEXT", value);
        return false;
    }
    return add_word(value, field, why, bytes);
}

const char *const *cli_words(const struct cli_words *w)
{
    return w->n ? w->words : NULL;
}

/* --- built-in rules ----------------------------------------------------------------------- */

static const char *const folders[] = {"kernels", "kernels/miopen"};
enum { N_FOLDERS = sizeof(folders) / sizeof(folders[0]) };

/* The caller frees it; NULL: not known. */
static char *share_folder(struct cli *c)
{
    const char *env = c->out.probe->env("KOPT_SHARE");
    char exe[4096];
    if (env && env[0])
        return cli_strdup(env);
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    if (n <= 0)
        return NULL;
    exe[n] = '\0';
    char *slash = strrchr(exe, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    return cli_strf("%s/%s", exe, KOPT_TO_SHARE);
}

char *cli_built_in_rules(struct cli *c, const char *name)
{
    char *share = share_folder(c);
    char *found = NULL;
    size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".kopt") == 0)
        n -= 5;
    for (size_t i = 0; share && i < N_FOLDERS && n && !strchr(name, '/') && !found; i++) {
        found = cli_strf("%s/%s/%.*s.kopt", share, folders[i], (int)n, name);
        if (access(found, R_OK) != 0) {
            free(found);
            found = NULL;
        }
    }
    free(share);
    return found;
}

struct names {
    char **names;
    size_t n;
    size_t cap;
};

static void list_folder(const char *path, struct names *list)
{
    struct dirent *e;
    DIR *d = opendir(path);
    while (d &&
           (e = readdir(d)) != NULL) { /* NOLINT(concurrency-mt-unsafe): a stream of ours */
        size_t n = strlen(e->d_name);
        if (n <= 5 || strcmp(e->d_name + n - 5, ".kopt") != 0)
            continue;
        list->names = cli_grow(list->names, &list->cap, list->n, sizeof(*list->names));
        list->names[list->n++] = cli_strf("%.*s", (int)(n - 5), e->d_name);
    }
    if (d)
        (void)closedir(d);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *cli_built_in_names(struct cli *c)
{
    char *share = share_folder(c);
    struct names list = {0};
    struct cli_text text = {0};
    for (size_t i = 0; share && i < N_FOLDERS; i++) {
        char *path = cli_strf("%s/%s", share, folders[i]);
        list_folder(path, &list);
        free(path);
    }
    if (list.n)
        qsort(list.names, list.n, sizeof(*list.names), by_text);
    cli_text_adds(&text, "");
    for (size_t i = 0; i < list.n; i++) {
        cli_text_addf(&text, "%s%s", i ? ", " : "", list.names[i]);
        free(list.names[i]);
    }
    free(list.names);
    free(share);
    return text.ptr ? text.ptr : cli_strdup("");
}

char *cli_rules_path(struct cli *c, const char *given)
{
    if (access(given, F_OK) == 0)
        return cli_strdup(given);
    char *found = cli_built_in_rules(c, given);
    if (found)
        return found;
    char *names = cli_built_in_names(c);
    char *hint = cli_strf("a kernel's rules are in its file (examples/gemm/gemm.cu is one); "
                          "built in: %s",
                          names[0] ? names : "none is found; KOPT_SHARE names their folder");
    (void)cli_failf(c, KOPT_EIO, hint, "%s is neither a file nor the name of built-in rules",
                    given);
    free(hint);
    free(names);
    return NULL;
}

/* --- built-in models -----------------------------------------------------------------------
 */

static bool is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode) && access(path, R_OK) == 0;
}

/* In one of the folders of `models`, the first by name. */
static char *find_below(const char *models, const char *name)
{
    struct names list = {0};
    struct dirent *e;
    char *found = NULL;
    DIR *d = opendir(models);
    while (d &&
           (e = readdir(d)) != NULL) { /* NOLINT(concurrency-mt-unsafe): a stream of ours */
        if (e->d_name[0] == '.')
            continue;
        list.names = cli_grow(list.names, &list.cap, list.n, sizeof(*list.names));
        list.names[list.n++] = cli_strf("%s/%s/%s.model", models, e->d_name, name);
    }
    if (d)
        (void)closedir(d);
    if (list.n)
        qsort(list.names, list.n, sizeof(*list.names), by_text);
    for (size_t i = 0; i < list.n; i++) {
        if (!found && is_there(list.names[i]))
            found = list.names[i];
        else
            free(list.names[i]);
    }
    free(list.names);
    return found;
}

char *cli_model_path(struct cli *c, const char *given)
{
    char *share = is_there(given) ? NULL : share_folder(c);
    char *found = NULL;
    if (share) {
        char *models = cli_strf("%s/models", share);
        found = cli_strf("%s/%s.model", models, given);
        if (!is_there(found)) {
            free(found);
            found = find_below(models, given);
        }
        free(models);
    }
    free(share);
    return found ? found : cli_strdup(given);
}

void cli_model_hint(const char *path, kopt_error *err)
{
    if (access(path, F_OK) != 0 && !err->hint[0])
        (void)snprintf(err->hint, sizeof(err->hint),
                       "kopt predict --help names the models that come with kopt");
}

kopt_status cli_model_open(struct cli *c, const char *given, kopt_model **out, kopt_error *err)
{
    char *path = cli_model_path(c, given);
    kopt_status st = kopt_model_open(path, out, err);
    if (st == KOPT_EIO)
        cli_model_hint(path, err);
    free(path);
    return st;
}

int cli_one_device(struct cli *c, const char *device, const char *limits)
{
    if (device && limits)
        return cli_usage(c, "--device and --device-limits exclude each other");
    return 0;
}
