/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp/#otlphttp). What the specification says
 * of answers: 429, 502, 503 and 504 are to be tried again, after what Retry-After says; nothing
 * else is, and neither are points that were rejected of a request that was taken. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "publish/otlp_parts.h"
#include "util/gzip.h"

#ifndef PROCTOR_VERSION
#error "the build gives PROCTOR_VERSION"
#endif

#define SAMPLES_MOST 64 /* in a request: half a megabyte, some hundred points in each */
#define HEADERS      "OTEL_EXPORTER_OTLP_HEADERS"
#define POINTS_MOST  20000 /* fewer samples where each has many GPUs */

struct otlp {
    struct pr_outlet outlet;
    struct pr_otlp_setting setting; /* without what is secret */
    struct pr_otlp_resource resource;
    struct pr_otlp about;
    struct pr_db *json;                            /* reads answers */
    struct proctor_snapshot samples[SAMPLES_MOST]; /* to be sent */
    size_t count, most;
    struct pr_buf body, packed;
};

/* Keeps the reason; returns -code. */
static int fail(struct otlp *x, int code, const char *what)
{
    snprintf(x->outlet.why, sizeof x->outlet.why, "%.120s: %.170s", x->outlet.url, what);
    return -code;
}

/* Nobody has to make a place for a run. */
static int otlp_begin(struct pr_outlet *o)
{
    (void)o;
    return 0;
}

static void otlp_describe(struct pr_outlet *o, const struct pr_stored *r)
{
    struct otlp *x = (struct otlp *)o;
    pr_otlp_describe(&x->resource, r, &x->setting);
    x->about = (struct pr_otlp){.select = r->select,
                                .resource = x->resource.items,
                                .resource_count = x->resource.count,
                                .version = PROCTOR_VERSION};
}

static bool otlp_add(struct pr_outlet *o, int64_t sample, const struct proctor_snapshot *s)
{
    struct otlp *x = (struct otlp *)o;
    size_t points = METRIC_COUNT + s->device_count * DEVICE_VALUES;
    (void)sample;
    if (x->count == x->most || (x->count && (x->count + 1) * points > POINTS_MOST))
        return false;
    /* Without room for its devices it is tried again the next time. */
    if (pr_snapshot_copy(&x->samples[x->count], s) < 0)
        return false;
    x->count++;
    return true;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void forget_samples(struct otlp *x)
{
    x->count = 0;
}

static int taken(struct otlp *x)
{
    struct pr_otlp_answer said;
    struct pr_outlet *o = &x->outlet;
    if (!pr_otlp_answered(&said, true, &o->answer.body, x->setting.json, x->json))
        return fail(x, EAGAIN, "its answer is not that of a collector");
    if (said.number > 0)
        o->rejected += said.number;
    if (said.number > 0)
        snprintf(o->remark, sizeof o->remark,
                 "%lld points were rejected, and stay in the record: %.90s", (long long)said.number,
                 *said.text ? said.text : "no reason is given");
    else if (*said.text) /* all was taken, and there is something to say */
        snprintf(o->remark, sizeof o->remark, "the server warns: %.90s", said.text);
    forget_samples(x);
    return 0;
}

/* It would not have this request; samples stay in the record. */
static int refused(struct otlp *x, const char *what)
{
    fail(x, EBADMSG, what);
    snprintf(x->outlet.remark, sizeof x->outlet.remark,
             "%zu samples were refused, and stay in the record: %.90s", x->count, what);
    forget_samples(x);
    return -EBADMSG;
}

/* Half of what there was is tried, and no more than that from now on. */
static int too_large(struct otlp *x)
{
    x->most = x->count / 2;
    forget_samples(x);
    return -EMSGSIZE;
}

static int judge(struct otlp *x)
{
    /* What is not about this request, but about where we are or who. */
    static const struct {
        int status, code;
        const char *what;
    } known[] = {
        {401, EACCES, "it does not let us in: what it wants goes into " HEADERS},
        {403, EACCES, "it does not let us in: what it wants goes into " HEADERS},
        {404, ENOENT, "no metrics are taken there: is it a collector's address for OTLP and HTTP?"},
        {405, ENOENT, "no metrics are taken there: is it a collector's address for OTLP and HTTP?"},
        {429, EAGAIN, "it has too much to do"},
        {502, EAGAIN, "it cannot be reached"},
        {503, EAGAIN, "it is not ready"},
        {504, EAGAIN, "it cannot be reached"},
    };
    struct pr_otlp_answer said;
    char what[200];
    int status = x->outlet.answer.status;
    pr_otlp_answered(&said, false, &x->outlet.answer.body, x->setting.json, x->json);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].status == status) {
            snprintf(what, sizeof what, "%s (status %d)", known[i].what, status);
            return fail(x, known[i].code, what);
        }
    if (status >= 300 && status < 400)
        return fail(x, EINVAL, "it is somewhere else: name its own address");
    if (status == 413 && x->count > 1)
        return too_large(x);
    snprintf(what, sizeof what, "status %d%s%.90s", status, *said.text ? ": " : "", said.text);
    return refused(x, what);
}

/* --- requests --------------------------------------------------------------------------------- */

static int otlp_send(struct pr_outlet *o)
{
    struct otlp *x = (struct otlp *)o;
    const struct pr_otlp_setting *s = &x->setting;
    pr_buf_reset(&x->body);
    pr_buf_reset(&x->packed);
    pr_otlp_write(&x->body, s->json, &x->about, x->samples, x->count);
    /* Without zlib it goes out as it is, which every server takes. */
    bool packed = s->gzip && pr_gzip(&x->packed, x->body.data, x->body.len) == 0;
    const struct pr_buf *body = packed ? &x->packed : &x->body;
    struct pr_http_request request = {.url = s->url,
                                      .body = body->data,
                                      .len = body->len,
                                      .type =
                                          s->json ? "application/json" : "application/x-protobuf",
                                      .header = packed ? "Content-Encoding: gzip" : NULL};
    if (x->body.failed || x->resource.failed)
        return fail(x, ENOMEM, "out of memory");
    int code = pr_http_send(o->http, &request, &o->answer);
    if (code < 0)
        return fail(x, -code, o->answer.why);
    return o->answer.status >= 200 && o->answer.status < 300 ? taken(x) : judge(x);
}

static void otlp_drop(struct pr_outlet *o)
{
    forget_samples((struct otlp *)o);
}

/* The last sample says it. */
static int otlp_end(struct pr_outlet *o, const struct pr_stored *r)
{
    (void)o, (void)r;
    return 0;
}

static void otlp_free(struct pr_outlet *o)
{
    struct otlp *x = (struct otlp *)o;
    pr_http_free(o->http);
    pr_db_close(x->json);
    for (size_t i = 0; i < SAMPLES_MOST; i++)
        pr_snapshot_done(&x->samples[i]);
    pr_otlp_resource_done(&x->resource);
    pr_buf_done(&x->body);
    pr_buf_done(&x->packed);
    pr_buf_done(&o->answer.body);
    free(x);
}

static const struct pr_outlet_ops ops = {.kind = "otlp",
                                         .each_time = true,
                                         .sparse = true,
                                         .begin = otlp_begin,
                                         .describe = otlp_describe,
                                         .add = otlp_add,
                                         .send = otlp_send,
                                         .drop = otlp_drop,
                                         .end = otlp_end,
                                         .free = otlp_free};

/* A file that is not there is found before the job starts, not when all is to be sent. */
static int check_files(const struct pr_otlp_setting *s, struct proctor_error *err)
{
    const char *const files[][2] = {
        {"CERTIFICATE", s->ca}, {"CLIENT_CERTIFICATE", s->certificate}, {"CLIENT_KEY", s->key}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i][1] && access(files[i][1], R_OK) < 0)
            return pr_error(err, EINVAL, "otlp: cannot read '%.100s' of OTEL_EXPORTER_OTLP_%s: %s",
                            files[i][1], files[i][0], strerror(errno));
    return 0;
}

int pr_otlp_open(const struct pr_otlp_setting *s, struct pr_outlet **ret, struct proctor_error *err)
{
    char why[160] = "";
    if (check_files(s, err) < 0)
        return -EINVAL;
    struct otlp *x = calloc(1, sizeof *x);
    if (!x)
        return pr_error(err, ENOMEM, "out of memory");
    x->outlet.ops = &ops;
    x->setting = *s;
    x->most = SAMPLES_MOST;
    pr_otlp_forget(&x->setting);
    snprintf(x->outlet.url, sizeof x->outlet.url, "%s", s->shown);
    const struct pr_http_setting http = {.user = *s->user ? s->user : NULL,
                                         .password = *s->user ? s->password : NULL,
                                         .ca = s->ca,
                                         .certificate = s->certificate,
                                         .key = s->key,
                                         .headers = *s->headers ? s->headers : NULL,
                                         .timeout = s->timeout,
                                         .files = s->files};
    int code = pr_http_new(&x->outlet.http, &http, why, sizeof why);
    if (code == 0)
        code = pr_db_open(&x->json, ":memory:", DB_CREATE, why, sizeof why);
    if (code < 0) {
        otlp_free(&x->outlet);
        return pr_error(err, -code, "otlp: %s", why);
    }
    *ret = &x->outlet;
    return 0;
}
