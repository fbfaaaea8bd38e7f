/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of GPUs: for programs each device with all that is known of it, for people a line
 * for the job and one for each device. */
#include <math.h>

#include "core/stats_json.h"
#include "report/page.h"
#include "util/clock.h"
#include "util/json.h"
#include "util/text.h"

#define DEVICES_SHOWN 4

static void number(struct pr_json *j, const char *key, double v)
{
    pr_json_key(j, key);
    pr_json_number(j, v);
}

static void text(struct pr_json *j, const char *key, const char *v)
{
    pr_json_key(j, key);
    pr_json_string(j, v);
}

static void integer(struct pr_json *j, const char *key, unsigned long v)
{
    pr_json_key(j, key);
    pr_json_int(j, (int64_t)v);
}

/* Counters of a device begin at any value: what counts is how far they came. */
static double total_of(const struct pr_stat *v)
{
    return v->last - v->min;
}

static void put_value(struct pr_json *j, const struct pr_gpu_account *a, size_t i, int slot)
{
    const struct pr_stat *v = &a->stat[i][slot];
    enum pr_metric_id id = pr_device_metric(DEVICE_GPU, slot);
    double quantile[QUANTILES];
    pr_json_key(j, pr_metrics[id].key);
    pr_json_open(j, '{');
    if (pr_metrics[id].kind == KIND_COUNTER) {
        number(j, "total", total_of(v));
        if (!a->card[i].sure_energy)
            text(j, "mark", pr_mark_name(MARK_FROM_POWER));
    } else {
        number(j, "peak", v->max);
        number(j, "mean", pr_stat_mean(v));
        number(j, "min", v->min);
        number(j, "last", v->last);
        number(j, "at", v->at);
        if (pr_metrics[id].kind == KIND_GAUGE)
            number(j, "integral", v->integral);
        if (a->sketches[i]) {
            pr_stat_quantiles(v, a->sketches[i], slot, quantile);
            pr_quantiles_put(j, quantile);
        }
    }
    pr_json_close(j, '}');
}

static void put_device(struct pr_json *j, const struct pr_session *s, size_t i)
{
    const struct pr_gpu_card *c = &s->machine.gpus->card[i];
    const struct pr_stat *stat = s->machine.gpus->stat[i];
    enum pr_metric_id id;
    pr_json_open(j, '{');
    text(j, "kind", pr_device_kind_name(DEVICE_GPU));
    text(j, "name", c->name);
    text(j, "model", *c->model ? c->model : NULL);
    text(j, "uuid", *c->uuid ? c->uuid : NULL);
    text(j, "driver", *c->driver ? c->driver : NULL);
    text(j, "bus", *c->bus ? c->bus : NULL);
    pr_json_key(j, "counted");
    pr_json_bool(j, !c->part);
    pr_json_key(j, "lost");
    pr_json_bool(j, c->lost);
    pr_json_key(j, "metrics");
    pr_json_open(j, '{');
    for (int slot = 0; (id = pr_device_metric(DEVICE_GPU, slot)) != METRIC_NONE; slot++)
        if (stat[slot].known && pr_selected(&s->select, (int)id))
            put_value(j, s->machine.gpus, i, slot);
    pr_json_close(j, '}');
    pr_json_key(j, "absent");
    pr_json_open(j, '[');
    for (int slot = 0; (id = pr_device_metric(DEVICE_GPU, slot)) != METRIC_NONE; slot++) {
        if (stat[slot].known || !pr_selected(&s->select, (int)id))
            continue;
        pr_json_open(j, '{');
        text(j, "metric", pr_metrics[id].key);
        text(j, "reason", c->reason[slot] ? c->reason[slot] : "there was no time to read it");
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
    pr_json_close(j, '}');
}

void pr_summary_devices(struct pr_json *j, const struct pr_session *s)
{
    pr_json_key(j, "devices");
    pr_json_open(j, '[');
    for (size_t i = 0; s->machine.gpus && i < s->machine.gpus->count; i++)
        put_device(j, s, i);
    pr_json_close(j, ']');
}

void pr_summary_gpu_cost(struct pr_json *j, const struct pr_session *s)
{
    struct pr_gpu_cost rows[GPU_READINGS];
    if (!s->machine.gpu)
        return;
    size_t count = pr_gpu_costs(s->machine.gpu, rows);
    pr_json_key(j, "gpu");
    pr_json_open(j, '{');
    integer(j, "stalls", pr_gpu_stalls(s->machine.gpu));
    number(j, "start_cpu_seconds", pr_seconds(pr_gpu_start_cpu(s->machine.gpu)));
    number(j, "cpu_seconds", pr_seconds(pr_gpu_cpu(s->machine.gpu)));
    pr_json_key(j, "calls");
    pr_json_open(j, '[');
    for (size_t i = 0; i < count; i++) {
        pr_json_open(j, '{');
        text(j, "name", rows[i].name);
        integer(j, "calls", rows[i].calls);
        integer(j, "failed", rows[i].failed);
        number(j, "cpu_seconds", pr_seconds(rows[i].cpu));
        number(j, "wall_seconds", pr_seconds(rows[i].wall));
        number(j, "longest_seconds", pr_seconds(rows[i].wall_most));
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
    pr_json_close(j, '}');
}

/* --- for people ------------------------------------------------------------------------------- */

static void job_line(struct pr_page *p)
{
    const struct pr_stats *st = &p->s->stats;
    const struct pr_stat *v = st->metric;
    double mean = pr_stats_mean(st, METRIC_GPU_USAGE), memory = v[METRIC_GPU_MEM].max;
    if (!(v[METRIC_GPU_COUNT].max > 0))
        return;
    pr_page_label(p, "GPU");
    if (!isnan(mean)) {
        pr_buf_str(p->out, "mean ");
        pr_units_fixed(p->out, mean, 2);
        pr_buf_str(p->out, ", peak ");
        pr_units_fixed(p->out, v[METRIC_GPU_USAGE].max, 2);
    }
    pr_buf_printf(p->out, "%s of %.0f GPU%s", isnan(mean) ? "use" : "", v[METRIC_GPU_COUNT].max,
                  v[METRIC_GPU_COUNT].max > 1 ? "s" : "");
    if (!isnan(memory))
        pr_page_bytes(p, "; memory peak ", memory, "");
    if (v[METRIC_GPU_MEM].said.mark == MARK_WHOLE_DEVICE)
        pr_buf_printf(p->out, " (%s)", pr_mark_name(MARK_WHOLE_DEVICE));
    pr_page_end(p);
}

static const struct pr_stat *stat_of(const struct pr_session *s, size_t i, enum pr_metric_id id)
{
    return &s->machine.gpus->stat[i][pr_device_slot(DEVICE_GPU, id)];
}

static void share(struct pr_page *p, const char *before, double v)
{
    if (isnan(v))
        return;
    pr_buf_str(p->out, before);
    pr_units_fixed(p->out, v * 100, 0);
    pr_buf_str(p->out, " %");
}

static void figure(struct pr_page *p, const char *before, double v, enum pr_unit unit)
{
    if (isnan(v))
        return;
    pr_buf_str(p->out, before);
    pr_page_human(p, v, unit);
}

static void device_line(struct pr_page *p, size_t i)
{
    const struct pr_gpu_card *c = &p->s->machine.gpus->card[i];
    const struct pr_stat *util = stat_of(p->s, i, METRIC_GPU_UTIL),
                         *power = stat_of(p->s, i, METRIC_GPU_POWER);
    pr_page_label(p, c->name);
    pr_text_safe(p->out, c->model);
    pr_buf_str(p->out, c->lost ? " (lost):" : ":");
    share(p, " mean ", pr_stat_mean(util));
    share(p, ", busiest ", fmax(util->max, stat_of(p->s, i, METRIC_GPU_UTIL_MAX)->max));
    share(p, ", memory controller ", pr_stat_mean(stat_of(p->s, i, METRIC_GPU_MEM_UTIL)));
    figure(p, "; memory peak ", stat_of(p->s, i, METRIC_GPU_MEM_USED)->max, UNIT_BYTES);
    figure(p, " of ", stat_of(p->s, i, METRIC_GPU_MEM_TOTAL)->last, UNIT_BYTES);
    figure(p, "; ", pr_stat_mean(power), UNIT_WATTS);
    figure(p, ", peak ", power->max, UNIT_WATTS);
    figure(p, ", ", total_of(stat_of(p->s, i, METRIC_GPU_ENERGY)), UNIT_JOULES);
    pr_page_end(p);
}

void pr_page_gpu(struct pr_page *p)
{
    const struct pr_gpu_account *a = p->s->machine.gpus;
    size_t count = a ? a->count : 0;
    job_line(p);
    for (size_t i = 0; i < count && i < DEVICES_SHOWN; i++)
        device_line(p, i);
    if (count > DEVICES_SHOWN) {
        pr_page_label(p, "");
        pr_buf_printf(p->out, "and %zu more GPUs", count - DEVICES_SHOWN);
        pr_page_end(p);
    }
}
