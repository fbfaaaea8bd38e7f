/* SPDX-License-Identifier: Apache-2.0 */
#include "store/tail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/cursor.h"
#include "util/clock.h"

enum { JOB_ELAPSED = 1, JOB_INTERVAL, GPU_ENTITY = 1 };
#define TABLE_GPU ((enum pr_run_table)(TABLE_DEVICE + DEVICE_GPU))
#define MOST      4096 /* devices of a kind: a file may say anything */

struct pr_tail_gpu {
    int64_t entity;
    int64_t read; /* the sample that its values are of; 0 for none */
    struct pr_device device;
};

/* --- devices ---------------------------------------------------------------------------------- */

static char *text_of(struct pr_query *q, int column)
{
    const char *text = pr_query_get_text(q, column);
    return text ? strdup(text) : NULL;
}

static bool meet_gpu(struct pr_tail *t, struct pr_query *q)
{
    int64_t entity = pr_query_get_int(q, 0);
    const char *name = pr_query_get_text(q, 1);
    for (size_t i = 0; i < t->gpu_count; i++)
        if (t->gpus[i].entity == entity)
            return true;
    struct pr_tail_gpu *more = reallocarray(t->gpus, t->gpu_count + 1, sizeof *more);
    if (!more)
        return false;
    t->gpus = more;
    struct pr_tail_gpu *gpu = &more[t->gpu_count++];
    *gpu = (struct pr_tail_gpu){.entity = entity,
                                .device = {.kind = DEVICE_GPU,
                                           .counted = pr_query_get_int(q, 2) != 0,
                                           .model = text_of(q, 4),
                                           .uuid = text_of(q, 5)}};
    snprintf(gpu->device.name, sizeof gpu->device.name, "%s", name ? name : "");
    pr_values_none(gpu->device.value, DEVICE_VALUES);
    return true;
}

/* There may be new ones. */
static int meet_devices(struct pr_tail *t, const struct pr_stored *r)
{
    struct pr_query *q = NULL;
    int code = pr_query_new(&q, r->db,
                            "SELECT id, name, counted, kind = 'core', model, uuid FROM entities"
                            " WHERE kind IN ('gpu', 'core') ORDER BY id LIMIT 8192");
    t->cores = 0;
    while (code == 0 && (code = pr_query_step(q)) == 1) {
        code = 0;
        if (pr_query_get_int(q, 3))
            t->cores += t->cores < MOST;
        else if (t->gpu_count < MOST && !meet_gpu(t, q))
            code = -ENOMEM;
    }
    pr_query_free(q);
    return code;
}

/* The row that the cursor is on: until there is another, that is what was read. */
static void take_gpu(struct pr_tail *t, struct pr_cursor *c)
{
    int64_t entity = pr_query_get_int(c->query, GPU_ENTITY);
    for (size_t i = 0; i < t->gpu_count; i++)
        if (t->gpus[i].entity == entity) {
            pr_cursor_values(c, t->gpus[i].device.value);
            t->gpus[i].read = c->sample;
        }
}

static int put_devices(struct pr_tail *t, int64_t sample)
{
    struct proctor_snapshot *s = &t->now;
    s->device_count = 0;
    if (!pr_snapshot_reserve(s, 0, t->gpu_count + t->cores))
        return -ENOMEM;
    for (size_t i = 0; i < t->gpu_count; i++)
        if (!t->sparse || t->gpus[i].read == sample)
            s->devices[s->device_count++] = t->gpus[i].device;
    for (size_t i = 0; i < t->cores; i++)
        s->devices[s->device_count++] = (struct pr_device){.kind = DEVICE_CORE};
    return 0;
}

/* --- samples ---------------------------------------------------------------------------------- */

struct reading {
    struct pr_cursor job, machine, gpus;
};

static int take_row(struct pr_tail *t, const struct pr_stored *r, struct reading *rows)
{
    struct proctor_snapshot *s = &t->now;
    int64_t sample = rows->job.sample;
    s->elapsed = pr_stored_time(rows->job.query, JOB_ELAPSED);
    s->time = r->started + s->elapsed;
    s->interval = s->machine_interval = pr_stored_time(rows->job.query, JOB_INTERVAL);
    memcpy(s->limit, r->limits.total, sizeof s->limit);
    pr_values_none(s->value, METRIC_COUNT);
    pr_cursor_values(&rows->job, s->value);
    while (rows->machine.on && rows->machine.sample < sample)
        pr_cursor_next(&rows->machine);
    if (rows->machine.on && rows->machine.sample == sample)
        pr_cursor_values(&rows->machine, s->value);
    for (; rows->gpus.on && rows->gpus.sample <= sample; pr_cursor_next(&rows->gpus))
        take_gpu(t, &rows->gpus);
    return put_devices(t, sample);
}

static int failure_of(const struct reading *rows)
{
    return rows->job.code < 0       ? rows->job.code
           : rows->machine.code < 0 ? rows->machine.code
                                    : rows->gpus.code;
}

int pr_tail_read(struct pr_tail *t, const struct pr_stored *r, pr_tail_fn *take, void *of,
                 struct proctor_error *err)
{
    struct reading rows = {0};
    int code = pr_db_run(r->db, "BEGIN"); /* all cursors see the same moment */
    if (code == 0)
        code = meet_devices(t, r);
    if (code == 0) {
        pr_cursor_open_after(&rows.job, r, TABLE_JOB, t->sample);
        pr_cursor_open_after(&rows.machine, r, TABLE_SYSTEM, t->sample);
        /* Who goes on with a run does not know yet what GPUs did before. */
        pr_cursor_open_after(&rows.gpus, r, TABLE_GPU, t->begun ? t->sample : INT64_MIN);
        code = failure_of(&rows);
    }
    while (code == 0 && rows.job.on) {
        int64_t sample = rows.job.sample;
        code = take_row(t, r, &rows);
        t->begun = true;
        if (code == 0)
            code = failure_of(&rows);
        if (code < 0 || !take(of, sample, &t->now))
            break;
        t->sample = sample;
        pr_cursor_next(&rows.job);
        code = rows.job.code;
    }
    if (code < 0)
        pr_stored_failure(r, code, err);
    pr_cursor_close(&rows.job);
    pr_cursor_close(&rows.machine);
    pr_cursor_close(&rows.gpus);
    pr_db_run(r->db, "ROLLBACK");
    return code;
}

void pr_tail_back(struct pr_tail *t, int64_t sample)
{
    t->sample = sample;
    t->begun = false; /* what is known of GPUs is of later */
    for (size_t i = 0; i < t->gpu_count; i++)
        t->gpus[i].read = 0;
}

void pr_tail_done(struct pr_tail *t)
{
    for (size_t i = 0; i < t->gpu_count; i++) {
        free((char *)t->gpus[i].device.model);
        free((char *)t->gpus[i].device.uuid);
    }
    free(t->gpus);
    pr_snapshot_done(&t->now);
    *t = (struct pr_tail){0};
}
