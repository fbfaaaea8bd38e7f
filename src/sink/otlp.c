/* SPDX-License-Identifier: Apache-2.0 */
/* Follows opentelemetry/proto/metrics/v1/metrics.proto of OTLP 1.x, and for JSON the remarks in
 * https://opentelemetry.io/docs/specs/otlp/. Counters are cumulative sums since the start of the
 * run. Bytes and counts of OpenTelemetry's own names are sums that may fall, as its conventions
 * have them; whatever else is a gauge. Rows of the metric table that share a name are points of one
 * metric, with attributes. */
#include "sink/otlp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/message.h"

#define SCOPE_NAME "proctor"
#define CUMULATIVE 2

static const char *unit_of(const struct pr_metric *m)
{
    /* As UCUM writes them. */
    static const char *const names[] = {[UNIT_COUNT] = "1",     [UNIT_SECONDS] = "s",
                                        [UNIT_BYTES] = "By",    [UNIT_BYTES_PER_SECOND] = "By/s",
                                        [UNIT_CORES] = "{cpu}", [UNIT_RATIO] = "1",
                                        [UNIT_PERCENT] = "%",   [UNIT_GPUS] = "{gpu}",
                                        [UNIT_WATTS] = "W",     [UNIT_JOULES] = "J",
                                        [UNIT_CELSIUS] = "Cel", [UNIT_HERTZ] = "Hz"};
    return m->otel_unit ? m->otel_unit : names[m->unit];
}

void pr_otlp_name(struct pr_buf *out, const struct pr_metric *m)
{
    if (!m->otel)
        pr_buf_str(out, SCOPE_NAME ".");
    pr_buf_str(out, m->otel ? m->otel : m->key);
}

static bool is_sum(const struct pr_metric *m)
{
    return m->kind == KIND_COUNTER ||
           (m->otel && m->kind == KIND_GAUGE && (m->unit == UNIT_BYTES || m->unit == UNIT_COUNT));
}

/* --- attributes ------------------------------------------------------------------------------- */

static void add_attribute(struct pr_message *m, int number, const char *key, const char *value)
{
    pr_message_open(m, number, NULL);
    pr_message_text(m, 1, "key", key);
    pr_message_open(m, 2, "value");
    pr_message_text(m, 1, "stringValue", value);
    pr_message_close(m);
    pr_message_close(m);
}

static void add_words(struct pr_message *m, char *const *words)
{
    pr_message_open(m, 5, "arrayValue");
    pr_message_list(m, "values");
    for (; *words; words++) {
        pr_message_open(m, 1, NULL);
        pr_message_text(m, 1, "stringValue", *words);
        pr_message_close(m);
    }
    pr_message_list_end(m);
    pr_message_close(m);
}

static void add_any(struct pr_message *m, int number, const struct pr_otlp_attribute *a)
{
    if (a->value) {
        add_attribute(m, number, a->key, a->value);
        return;
    }
    pr_message_open(m, number, NULL);
    pr_message_text(m, 1, "key", a->key);
    pr_message_open(m, 2, "value");
    if (a->words)
        add_words(m, a->words);
    else
        pr_message_int(m, 3, "intValue", a->number);
    pr_message_close(m);
    pr_message_close(m);
}

/* "cpu.mode=user" */
static void add_pair(struct pr_message *m, int number, const char *pair)
{
    char key[64];
    const char *equals = pair ? strchr(pair, '=') : NULL;
    if (!equals)
        return;
    snprintf(key, sizeof key, "%.*s", (int)(equals - pair), pair);
    add_attribute(m, number, key, equals + 1);
}

/* --- points ----------------------------------------------------------------------------------- */

struct point {
    const struct proctor_snapshot *sample;
    const struct pr_metric *metric;
    double value;
    const char *match;           /* a name of --match, or NULL */
    const struct pr_device *gpu; /* or NULL */
};

static void add_point(struct pr_message *m, const struct point *p)
{
    pr_message_open(m, 1, NULL);
    pr_message_list(m, "attributes");
    add_pair(m, 7, p->metric->otel_as);
    if (p->match)
        add_attribute(m, 7, SCOPE_NAME ".match", p->match);
    if (p->gpu) {
        add_attribute(m, 7, "hw.type", "gpu");
        add_attribute(m, 7, "hw.id", p->gpu->uuid ? p->gpu->uuid : p->gpu->name);
        if (p->gpu->model)
            add_attribute(m, 7, "hw.name", p->gpu->model);
    }
    pr_message_list_end(m);
    if (is_sum(p->metric))
        pr_message_fixed64(m, 2, "startTimeUnixNano",
                           (uint64_t)(p->sample->time - p->sample->elapsed));
    pr_message_fixed64(m, 3, "timeUnixNano", (uint64_t)p->sample->time);
    pr_message_double(m, 4, "asDouble", p->value);
    pr_message_close(m);
}

/* Calls each for all that is known of a row; with NULL it only looks. True where there is any. */
static bool each_point(struct pr_message *m, enum pr_metric_id id, const struct proctor_snapshot *s,
                       void (*each)(struct pr_message *, const struct point *))
{
    int slot = pr_device_slot(DEVICE_GPU, id);
    size_t singles = pr_metric_is_single(id), names = id < PROC_METRICS ? s->match_count : 0;
    size_t all = singles + names + (slot < 0 ? 0 : s->device_count);
    bool any = false;
    for (size_t i = 0; i < all; i++) {
        struct point p = {.sample = s, .metric = &pr_metrics[id]};
        if (i < singles) {
            p.value = s->value[id];
        } else if (i < singles + names) {
            p.value = s->matches[i - singles].value[id];
            p.match = s->matches[i - singles].name;
        } else {
            p.gpu = &s->devices[i - singles - names];
            p.value = p.gpu->kind == DEVICE_GPU ? p.gpu->value[slot] : NAN;
        }
        if (!isfinite(p.value))
            continue;
        any = true;
        if (each)
            each(m, &p);
    }
    return any;
}

/* --- metrics ---------------------------------------------------------------------------------- */

struct request {
    struct pr_message *m;
    const struct pr_otlp *of;
    const struct proctor_snapshot *samples;
    size_t count;
};

static bool same_name(enum pr_metric_id a, enum pr_metric_id b)
{
    const char *x = pr_metrics[a].otel, *y = pr_metrics[b].otel;
    return a == b || (x && y && strcmp(x, y) == 0);
}

/* All points of the rows that share a name with this one. */
static bool each_row(const struct request *r, enum pr_metric_id id,
                     void (*each)(struct pr_message *, const struct point *))
{
    bool any = false;
    for (int other = (int)id; other < METRIC_COUNT; other++)
        for (size_t i = 0; i < r->count; i++)
            if (pr_selected(&r->of->select, other) && same_name(id, (enum pr_metric_id)other))
                any |= each_point(r->m, (enum pr_metric_id)other, &r->samples[i], each);
    return any;
}

static bool came_before(enum pr_metric_id id)
{
    for (int other = 0; other < (int)id; other++)
        if (same_name((enum pr_metric_id)other, id))
            return true;
    return false;
}

static void add_metric(const struct request *r, enum pr_metric_id id)
{
    const struct pr_metric *metric = &pr_metrics[id];
    struct pr_message *m = r->m;
    struct pr_buf name = {0};
    bool sum = is_sum(metric);
    pr_otlp_name(&name, metric);
    pr_message_open(m, 2, NULL);
    pr_message_text(m, 1, "name", pr_buf_text(&name));
    if (!metric->otel_as) /* else it is said of a part */
        pr_message_text(m, 2, "description", metric->help);
    pr_message_text(m, 3, "unit", unit_of(metric));
    pr_message_open(m, sum ? 7 : 5, sum ? "sum" : "gauge");
    pr_message_list(m, "dataPoints");
    each_row(r, id, add_point);
    pr_message_list_end(m);
    if (sum) {
        pr_message_enum(m, 2, "aggregationTemporality", CUMULATIVE);
        pr_message_bool(m, 3, "isMonotonic", metric->kind == KIND_COUNTER);
    }
    pr_message_close(m);
    pr_message_close(m);
    pr_buf_done(&name);
}

/* --- the request ------------------------------------------------------------------------------ */

static void add_resource(struct pr_message *m, const struct pr_otlp *of)
{
    pr_message_open(m, 1, "resource");
    pr_message_list(m, "attributes");
    for (size_t i = 0; i < of->resource_count; i++)
        add_any(m, 1, &of->resource[i]);
    pr_message_list_end(m);
    pr_message_close(m);
}

static void add_scope(const struct request *r)
{
    struct pr_message *m = r->m;
    pr_message_open(m, 2, NULL);
    pr_message_open(m, 1, "scope");
    pr_message_text(m, 1, "name", SCOPE_NAME);
    pr_message_text(m, 2, "version", r->of->version);
    pr_message_close(m);
    pr_message_list(m, "metrics");
    for (int id = 0; id < METRIC_COUNT; id++)
        if (!came_before((enum pr_metric_id)id) && each_row(r, (enum pr_metric_id)id, NULL))
            add_metric(r, (enum pr_metric_id)id);
    pr_message_list_end(m);
    pr_message_close(m);
}

void pr_otlp_write(struct pr_buf *out, bool as_json, const struct pr_otlp *of,
                   const struct proctor_snapshot *samples, size_t count)
{
    struct pr_message m = pr_message_of(out, as_json);
    const struct request r = {&m, of, samples, count};
    pr_message_list(&m, "resourceMetrics");
    pr_message_open(&m, 1, NULL);
    add_resource(&m, of);
    pr_message_list(&m, "scopeMetrics");
    add_scope(&r);
    pr_message_list_end(&m);
    pr_message_close(&m);
    pr_message_list_end(&m);
    pr_message_end(&m);
}

size_t pr_otlp_resource(const struct pr_sink_setting *setting, const char *host,
                        struct pr_otlp_attribute *ret, size_t most)
{
    const char *const command = setting->job && setting->job->argv ? setting->job->argv[0] : NULL;
    const char *const slash = command ? strrchr(command, '/') : NULL;
    const struct pr_otlp_attribute all[] = {
        {.key = "service.name", .value = setting->name},
        /* Nodes share it. */
        {.key = "service.instance.id", .value = setting->node ? NULL : setting->run_id},
        {.key = "host.name", .value = host},
        {.key = "process.executable.name", .value = slash ? slash + 1 : command},
        {.key = "process.pid", .number = setting->job ? setting->job->pid : 0},
        {.key = SCOPE_NAME ".run", .value = setting->run_id},
        {.key = SCOPE_NAME ".node", .value = setting->node},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && count < most; i++)
        if (all[i].value || all[i].number)
            ret[count++] = all[i];
    return count;
}
