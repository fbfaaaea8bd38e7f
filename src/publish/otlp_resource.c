/* SPDX-License-Identifier: Apache-2.0 */
/* Whose metrics are sent, from the record of the run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "publish/otlp_parts.h"
#include "store/job.h"

#define LABEL "proctor.label."
#define MOST  128 /* attributes: a file may say anything */

static struct pr_otlp_attribute *find(struct pr_otlp_resource *res, const char *key)
{
    for (size_t i = 0; i < res->count; i++)
        if (strcmp(res->items[i].key, key) == 0)
            return &res->items[i];
    return NULL;
}

static void forget(struct pr_otlp_attribute *a)
{
    free((char *)a->key);
    free((char *)a->value);
}

/* One more, empty; NULL where there is no room. */
static struct pr_otlp_attribute *grow(struct pr_otlp_resource *res)
{
    struct pr_otlp_attribute *more =
        res->count < MOST ? reallocarray(res->items, res->count + 1, sizeof *more) : NULL;
    if (!more)
        return NULL;
    res->items = more;
    more[res->count] = (struct pr_otlp_attribute){0};
    return &more[res->count++];
}

/* A copy; whatever had this key is replaced. */
static void put(struct pr_otlp_resource *res, const struct pr_otlp_attribute *a)
{
    struct pr_otlp_attribute copy = *a, *at = find(res, a->key);
    copy.key = strdup(a->key);
    copy.value = a->value ? strdup(a->value) : NULL;
    bool whole = copy.key && (!a->value || copy.value);
    if (!at && whole)
        at = grow(res);
    res->failed |= !whole;
    if (!at || !whole) {
        forget(&copy);
        return;
    }
    forget(at);
    *at = copy;
}

static bool put_pair(void *of, const char *key, const char *value)
{
    put(of, &(struct pr_otlp_attribute){.key = key, .value = value});
    return true;
}

/* --- the record ------------------------------------------------------------------------------- */

/* What people would call the job, as it is in other outputs. */
static void name_of(const struct pr_stored *r, char *const *argv, struct pr_buf *out)
{
    const char *slash = argv && *argv ? strrchr(*argv, '/') : NULL;
    if (pr_stored_text(r, r->about, "$.name", out) && out->len)
        return;
    bool watched = pr_stored_text(r, r->about, "$.target", out) && out->len;
    if (watched)
        out->len = strcspn(pr_buf_text(out), " "); /* "group 12" */
    if (watched)
        return;
    pr_buf_reset(out);
    pr_buf_str(out, slash && slash[1] ? slash + 1 : argv && *argv && **argv ? *argv : "process");
}

static void put_labels(struct pr_otlp_resource *res, const struct pr_stored *r)
{
    static const char sql[] = "SELECT key || '=' || value FROM json_each(?1, '$.labels')";
    size_t count = 0;
    char key[300], **labels = pr_stored_texts(r, sql, &count);
    res->failed |= !labels;
    for (size_t i = 0; i < count; i++) {
        char *equals = strchr(labels[i], '=');
        snprintf(key, sizeof key, LABEL "%.*s", (int)(equals - labels[i]), labels[i]);
        put_pair(res, key, equals + 1);
    }
    pr_stored_texts_free(labels);
}

static void put_record(struct pr_otlp_resource *res, const struct pr_stored *r, bool command)
{
    struct pr_otlp_attribute found[16];
    struct pr_buf name = {0}, node = {0};
    struct pr_sink_job job = {0};
    bool of_several = pr_stored_text(r, r->about, "$.node", &node) && node.len;
    res->failed |= pr_stored_job(r, &job) < 0;
    name_of(r, job.argv, &name);
    struct pr_sink_setting setting = {.name = pr_buf_text(&name),
                                      .run_id = r->id,
                                      .node = of_several ? pr_buf_text(&node) : NULL,
                                      .job = &job};
    size_t n = pr_otlp_resource(&setting, *r->host ? r->host : NULL, found, 16);
    for (size_t i = 0; i < n; i++)
        put(res, &found[i]);
    if (command && job.argv && job.argv[0]) {
        res->command = (char **)job.argv;
        put(res, &(struct pr_otlp_attribute){.key = "process.command_args", .words = res->command});
    } else {
        pr_stored_job_done(&job);
    }
    pr_buf_done(&name);
    pr_buf_done(&node);
}

void pr_otlp_describe(struct pr_otlp_resource *ret, const struct pr_stored *r,
                      const struct pr_otlp_setting *setting)
{
    pr_otlp_resource_done(ret);
    put_record(ret, r, setting->command);
    put_labels(ret, r);
    if (setting->attributes)
        pr_otlp_pairs(setting->attributes, put_pair, ret);
    if (setting->service)
        put_pair(ret, "service.name", setting->service);
}

void pr_otlp_resource_done(struct pr_otlp_resource *res)
{
    for (size_t i = 0; i < res->count; i++)
        forget(&res->items[i]);
    free(res->items);
    pr_stored_texts_free(res->command);
    *res = (struct pr_otlp_resource){0};
}
