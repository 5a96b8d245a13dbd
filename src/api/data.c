/* SPDX-License-Identifier: MIT */
#include "api/data.h"
#include "api/limits.h"
#include "os/file.h"

enum { RULES_MAX = 4 << 20 };

const char *kp_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static kopt_status read_rules(const char *path, struct kp_data *d, kopt_error *err)
{
    kopt_status st = kp_file_read(path, &d->text, err);
    const struct kp_str text = {kp_buf_text(&d->text), d->text.len};
    if (st == KOPT_OK)
        st = kp_kernel_parse(path, text, &d->own, err);
    d->rules = d->own;
    return st;
}

static kopt_status read_limits(const char *text, struct kp_data *d, kopt_error *err)
{
    if (!d->rules)
        return kp_err(err, KOPT_EUSAGE,
                      "limits of a device are about rules, of which there "
                      "are none");
    d->limits = &d->numbers;
    return kp_limits_by_hand(d->rules, text, &d->numbers, err);
}

kopt_status kp_data_open(const kopt_data_options *o, const struct kp_kernel *rules,
                         struct kp_data *out, kopt_error *err)
{
    kopt_status st = KOPT_OK;
    *out = (struct kp_data){.text = KP_BUF_INIT(RULES_MAX), .rules = rules};
    if (!o->path)
        return kp_err(err, KOPT_EUSAGE, "no data is named");
    if (o->fold > 9)
        return kp_err(err, KOPT_EUSAGE, "fold %u: there are 0 to 9", o->fold);
    if (o->rules)
        st = read_rules(o->rules, out, err);
    if (st == KOPT_OK && o->limits)
        st = read_limits(o->limits, out, err);
    const struct kp_load_options load = {.kernel = o->kernel,
                                         .rules = out->rules,
                                         .where = o->where,
                                         .n_where = o->n_where,
                                         .params = o->params,
                                         .n_params = o->n_params};
    if (st == KOPT_OK)
        st = kp_load(o->path, &load, &out->set, &out->report, err);
    return st;
}

void kp_data_close(struct kp_data *d)
{
    kp_dataset_free(d->set);
    kp_kernel_free(d->own);
    kp_buf_deinit(&d->text);
}
