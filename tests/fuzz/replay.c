/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target over every file of the folders on the command line, without a fuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return 0;
    static uint8_t data[1 << 20];
    size_t n = fread(data, 1, sizeof(data), f);
    (void)fclose(f);
    /* A copy of the exact size, so that reading past its end is seen. */
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact)
        return 0;
    memcpy(exact, data, n);
    (void)LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return 1;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        if (!d)
            continue;
        for (struct dirent *e = readdir(d); e; e = readdir(d)) {
            char path[4096];
            if (e->d_name[0] == '.')
                continue;
            (void)snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
            n += replay_file(path);
        }
        (void)closedir(d);
    }
    (void)printf("%d inputs replayed\n", n);
    return n > 0 ? 0 : 1;
}
