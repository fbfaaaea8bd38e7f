/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/dialect_row.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "util/units.h"

#define GRAIN 1e-6 /* 0.29 s are 29 ticks, though the product is a little less */

int pr_table_state_init(struct pr_table_state *s, const struct pr_table *table)
{
    const char *other = table->title_from ? getenv(table->title_from) : NULL;
    *s = (struct pr_table_state){.table = table, .format = other && *other ? other : table->title};
    s->columns = calloc((size_t)table->column_count, sizeof *s->columns);
    return s->columns ? 0 : -ENOMEM;
}

void pr_table_state_done(struct pr_table_state *s)
{
    free(s->columns);
    pr_buf_done(&s->scratch);
}

/* --- which rows there are --------------------------------------------------------------------- */

static bool next_gpu(struct pr_row *row, size_t *cursor)
{
    row->index = row->gpu ? row->index + 1 : 0;
    for (; *cursor < row->sample->device_count; ++*cursor) {
        const struct pr_device *d = &row->sample->devices[*cursor];
        if (d->kind != DEVICE_GPU || !d->counted)
            continue; /* a part of a divided GPU is in its parent */
        row->gpu = d;
        ++*cursor;
        return true;
    }
    return false;
}

bool pr_row_next(const struct pr_table *table, struct pr_row *row, size_t *cursor)
{
    if (table->each == EACH_GPU)
        return next_gpu(row, cursor);
    if (table->each != EACH_PROCESS)
        return (*cursor)++ == 0;
    if (*cursor >= row->sample->member_count)
        return false;
    row->member = &row->sample->members[(*cursor)++];
    return true;
}

bool pr_row_is_there(const struct pr_table_state *s, const struct pr_row *row)
{
    for (int i = 0; i < s->table->column_count; i++)
        if (s->table->columns[i].needed && isnan(pr_row_number(s, i, row)))
            return false;
    return true;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static double of_run(const struct pr_stats *stats, enum pr_metric_id id, enum pr_take take)
{
    if (take == TAKE_PEAK)
        return pr_stats_peak(stats, id);
    if (take == TAKE_MEAN)
        return pr_stats_mean(stats, id);
    if (take == TAKE_TOTAL)
        return pr_stats_total(stats, id);
    return stats->metric[id].known ? stats->metric[id].last : NAN;
}

static double of_gpu(const struct pr_device *gpu, enum pr_metric_id id)
{
    int slot = pr_device_slot(DEVICE_GPU, id);
    return slot < 0 ? NAN : gpu->value[slot];
}

static double ours(const struct pr_column *c, const struct pr_row *row)
{
    if (c->number)
        return c->number(row);
    if (row->stats)
        return of_run(row->stats, c->metric, c->take);
    if (row->gpu)
        return of_gpu(row->gpu, c->metric);
    if (row->member)
        return (int)c->metric < PROC_METRICS ? row->member->value[c->metric] : NAN;
    return row->sample->value[c->metric];
}

static double in_their_unit(const struct pr_column *c, double v)
{
    v = c->times ? v * c->times : v;
    v = c->per ? v / c->per : v;
    return c->shape == SHAPE_WHOLE ? floor(v + GRAIN) : v;
}

static double rounded(const struct pr_column *c, double v)
{
    if (c->decimals == DECIMALS_ALL || isnan(v) || c->shape == SHAPE_WHOLE)
        return v;
    double power = 1;
    for (int i = 0; i < c->decimals; i++)
        power *= 10;
    return c->shape == SHAPE_CUT ? floor(v * power + GRAIN) / power
                                 : pr_units_round(v, c->decimals);
}

/* Of whole numbers the growth of whole numbers, so that parts of one add up. */
static double growth(const struct pr_column *c, const struct pr_column_state *state,
                     const struct pr_row *row)
{
    double now = ours(c, row);
    if (c->take == TAKE_DELTA)
        return in_their_unit(c, now) - state->before;
    double whole = c->share_of(row) - state->whole_before;
    return whole > 0 ? in_their_unit(c, (now - state->before) / whole) : NAN;
}

double pr_row_number(const struct pr_table_state *s, int column, const struct pr_row *row)
{
    const struct pr_column *c = &s->table->columns[column];
    const struct pr_column_state *state = &s->columns[column];
    if (c->shape == SHAPE_TEXT || (c->from_second && !s->second))
        return NAN;
    if (c->take == TAKE_ROWS_MEAN)
        return state->count ? rounded(c, state->sum / (double)state->count) : NAN;
    if (c->take == TAKE_ROWS_MAX)
        return state->count ? rounded(c, state->max) : NAN;
    if (c->take == TAKE_DELTA || c->take == TAKE_SHARE)
        return rounded(c, growth(c, state, row));
    return rounded(c, in_their_unit(c, ours(c, row)));
}

static void keep(double *before, double now)
{
    if (!isnan(now)) /* what was not read grows until it is */
        *before = now;
}

void pr_row_advance(struct pr_table_state *s, const struct proctor_snapshot *sample)
{
    struct pr_row row = {.sample = sample};
    for (int i = 0; i < s->table->column_count; i++) {
        const struct pr_column *c = &s->table->columns[i];
        if (c->take == TAKE_DELTA)
            keep(&s->columns[i].before, in_their_unit(c, ours(c, &row)));
        if (c->take != TAKE_SHARE)
            continue;
        double now = ours(c, &row), whole = c->share_of(&row);
        if (!isnan(now) && !isnan(whole)) {
            s->columns[i].before = now;
            s->columns[i].whole_before = whole;
        }
    }
    s->second = true;
}
