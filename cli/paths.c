/* SPDX-License-Identifier: MIT */
#include "cli/paths.h"
#include "cli/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *cli_store_path(struct cli *c, const char *given)
{
    const struct cli_probe *probe = c->out.probe;
    const char *env = probe->env("KOPT_STORE");
    free(c->store_words);
    c->store_words = NULL;
    if (given) {
        struct cli_text words = {0};
        cli_text_adds(&words, " --store ");
        cli_text_quote(&words, given);
        c->store_words = words.ptr;
        return cli_strdup(given);
    }
    if (env && env[0])
        return cli_strdup(env);
    const char *data = probe->env("XDG_DATA_HOME");
    if (data &&
        data[0] == '/') /* a relative one is to be ignored, says the XDG specification */
        return cli_strf("%s/kopt/kopt.db", data);
    const char *home = probe->env("HOME");
    if (home && home[0])
        return cli_strf("%s/.local/share/kopt/kopt.db", home);
    (void)cli_failf(c, KOPT_EENV, "give it with --store PATH or KOPT_STORE",
                    "there is no place for the store: HOME is not set");
    return NULL;
}

char *cli_compile_cache_path(struct cli *c)
{
    const struct cli_probe *probe = c->out.probe;
    const char *cache = probe->env("XDG_CACHE_HOME");
    if (cache && cache[0] == '/')
        return cli_strf("%s/kopt/images", cache);
    const char *home = probe->env("HOME");
    return home && home[0] ? cli_strf("%s/.cache/kopt/images", home) : NULL;
}

kopt_status cli_make_folders(const char *path, kopt_error *err)
{
    char *folder = cli_strdup(path);
    kopt_status st = KOPT_OK;
    for (char *slash = strchr(folder + 1, '/'); slash && st == KOPT_OK;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
            memset(err, 0, sizeof(*err));
            err->code = st = KOPT_EIO;
            (void)snprintf(err->message, sizeof(err->message), "cannot make the folder %s: %s",
                           folder, strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
        }
        *slash = '/';
    }
    free(folder);
    return st;
}
