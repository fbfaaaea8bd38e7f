/* SPDX-License-Identifier: Apache-2.0 */
#include "core/machine.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/derive.h"
#include "util/clock.h"
#include "util/fs.h"

/* What is dear to read stands for a second. When the job has not run for one it stands for four:
 * then others change it, if anybody. Samples may come a little early. */
#define DEAR_LEAST (NS_PER_S * 9 / 10)
#define DEAR_MOST  (NS_PER_S * 39 / 10)

#define MACHINE_SOURCE(name) extern const struct pr_machine_source pr_machine_source_##name;
#include "core/machine.def"
#undef MACHINE_SOURCE

const struct pr_machine_source *const pr_machine_sources[MACHINE_COUNT] = {
#define MACHINE_SOURCE(name) [MACHINE_##name] = &pr_machine_source_##name,
#include "core/machine.def"
#undef MACHINE_SOURCE
};

void pr_machine_init(struct pr_machine *m, struct pr_host *host, unsigned reads)
{
    *m = (struct pr_machine){.host = host, .reads = reads, .space_helper = -1};
    pr_values_none(m->value, METRIC_COUNT);
    pr_values_none(m->base, METRIC_COUNT);
    pr_values_none(m->highest, METRIC_COUNT);
    pr_values_none(m->previous, METRIC_COUNT);
    pr_values_none(m->sum, METRIC_COUNT);
    for (int id = 0; id < MACHINE_COUNT; id++)
        m->source[id].fd = -1;
}

void pr_machine_explain(struct pr_machine *m, enum pr_machine_source_id id, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!m->reason[id][0])
        vsnprintf(m->reason[id], MACHINE_REASON, format, args);
    va_end(args);
}

bool pr_machine_due(const struct pr_machine *m, int64_t then, int64_t now)
{
    bool ran = !m->ran_at || m->ran_at + DEAR_LEAST > then;
    return !then || now - then >= (ran ? DEAR_LEAST : DEAR_MOST);
}

ssize_t pr_machine_text(const struct pr_tick *t, int *held, int at, const char *path,
                        bool in_pieces)
{
    int fd = *held >= 0 ? *held : pr_fs_open(at, path);
    if (fd < 0)
        return fd;
    ssize_t n = in_pieces ? pr_fs_pread_long(fd, t->text, t->text_size)
                          : pr_fs_pread(fd, t->text, t->text_size);
    if (fd == *held)
        return n;
    if (t->host->held && t->host->holding < t->host->hold_limit) {
        t->host->holding++;
        *held = fd;
    } else {
        close(fd);
    }
    return n;
}

static int read_one(struct pr_machine *m, const struct pr_tick *t, int id)
{
    const struct pr_machine_source *s = pr_machine_sources[id];
    if (s->read)
        return s->read(m, t, &m->source[id].state);
    ssize_t n = pr_machine_text(t, &m->source[id].fd, m->host->proc, s->file, s->in_pieces);
    if (n < 0)
        return (int)n;
    return s->parse(m, t->text, (size_t)n) ? 0 : -EIO;
}

static void read_all(struct pr_machine *m, const struct pr_tick *t)
{
    for (int id = 0; id < MACHINE_COUNT; id++) {
        if (!(m->reads & pr_machine_sources[id]->gives) || m->source[id].failed)
            continue;
        int r = read_one(m, t, id);
        if (r < 0)
            pr_machine_explain(m, (enum pr_machine_source_id)id, "%s: %s",
                               pr_machine_sources[id]->name, strerror(-r));
        /* What a kernel does not have it will not get; a captured tree may. */
        m->source[id].failed = r == -ENOENT && m->host->held;
    }
}

/* Counters count from the first reading on, and never fall. */
static double since_first(struct pr_machine *m, int id)
{
    if (isnan(m->raw[id]))
        return NAN;
    if (isnan(m->base[id]))
        m->base[id] = m->raw[id];
    m->highest[id] = fmax(m->raw[id] - m->base[id], m->highest[id]); /* fmax leaves NaN aside */
    return m->highest[id];
}

static double result_of(struct pr_machine *m, int id, unsigned known)
{
    const struct pr_metric *row = &pr_metrics[id];
    if (row->fold == FOLD_SUM)
        return row->needs & known ? m->sum[id] : NAN;
    return row->kind == KIND_COUNTER ? since_first(m, id) : m->raw[id];
}

/* The readings of which a device was seen just now: what is summed over devices is known. */
static unsigned seen(const struct pr_machine *m)
{
    unsigned reads = 0;
    for (size_t i = 0; i < m->devices.count; i++) {
        const struct pr_device_state *d = &m->devices.items[i];
        if (d->present)
            reads |= pr_metrics[pr_device_metric(d->out.kind, 0)].needs;
    }
    return reads;
}

void pr_machine_read(struct pr_machine *m, const struct pr_tick *t)
{
    double dt = m->read_at ? pr_seconds(t->now - m->read_at) : NAN;
    if (dt < MACHINE_RATE_LEAST)
        dt = NAN;
    pr_values_none(m->raw, METRIC_COUNT);
    pr_devices_begin(&m->devices);
    read_all(m, t);
    pr_devices_settle(&m->devices, dt, m->sum);
    unsigned known = seen(m);
    for (int id = PROC_METRICS; id < METRIC_COUNT; id++)
        m->value[id] = result_of(m, id, known);
    pr_derive_machine(m->value, m->previous, dt);
    /* Absent values, too: there is no rate over a reading that failed. */
    memcpy(m->previous, m->value, sizeof m->previous);
    m->read_at = t->now;
}

void pr_machine_skip(struct pr_machine *m)
{
    pr_devices_begin(&m->devices);
    pr_values_none(m->value, METRIC_COUNT);
}

void pr_gpu_account_free(struct pr_gpu_account *a)
{
    for (size_t i = 0; a && i < a->count; i++)
        pr_sketches_free(a->sketches[i]);
    free(a);
}

void pr_machine_done(struct pr_machine *m, bool close_files)
{
    for (int id = 0; id < MACHINE_COUNT; id++) {
        if (close_files && m->source[id].fd >= 0)
            close(m->source[id].fd);
        if (m->source[id].state && pr_machine_sources[id]->close)
            pr_machine_sources[id]->close(m->source[id].state, close_files);
        m->source[id].fd = -1;
        m->source[id].state = NULL;
    }
    pr_devices_done(&m->devices);
    pr_gpu_free(m->gpu, !close_files);
    pr_gpu_account_free(m->gpus);
    m->gpu = NULL;
    m->gpus = NULL;
}

const char *pr_machine_reason(const struct pr_machine *m, enum pr_metric_id id)
{
    for (int i = 0; i < MACHINE_COUNT; i++)
        if ((pr_metrics[id].needs & pr_machine_sources[i]->gives) && m->reason[i][0])
            return m->reason[i];
    return NULL;
}
