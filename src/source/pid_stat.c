/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/stat (Documentation/filesystems/proc.rst, table 1-4). comm may hold blanks, parentheses
 * and newlines: fields are counted from behind the last ')'. */
#include "core/stat_line.h"

#include <errno.h>
#include <string.h>

#include "core/source.h"
#include "util/scan.h"

#define FIRST       4 /* the first numeric field: ppid */
#define LAST        22
#define VSIZE       23
#define PAGES       24 /* resident; batched, so that it only tells that there is something to tell */
#define NUM_THREADS 20
#define FLAGS       9

#define KERNEL_THREAD 0x00200000 /* PF_KTHREAD in include/linux/sched.h */

enum { PER_TICK = -1 }; /* scale by the length of a clock tick */

/* Which field, by its number in proc(5), goes where: the process's own, or what it took over. */
static const struct {
    int field;
    enum pr_metric_id metric;
    bool reaped;
    int scale;
} rows[] = {
    {10, METRIC_FAULTS_MINOR, false, 1},     {11, METRIC_FAULTS_MINOR, true, 1},
    {12, METRIC_FAULTS_MAJOR, false, 1},     {13, METRIC_FAULTS_MAJOR, true, 1},
    {14, METRIC_CPU_USER, false, PER_TICK},  {15, METRIC_CPU_SYSTEM, false, PER_TICK},
    {16, METRIC_CPU_USER, true, PER_TICK},   {17, METRIC_CPU_SYSTEM, true, PER_TICK},
    {NUM_THREADS, METRIC_THREADS, false, 1},
};

/* What we count is never below 0. */
static bool all_count(const int64_t *field)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (field[rows[i].field] < 0)
            return false;
    return true;
}

/* Numbers of the fields FIRST to LAST; false where the text is not a stat file. */
static bool split(struct pr_scan s, struct pr_stat_line *ret, int64_t *field)
{
    const char *open = memchr(s.p, '(', (size_t)(s.end - s.p));
    const char *close = memrchr(s.p, ')', (size_t)(s.end - s.p));
    int64_t pid;
    if (!open || !close || close < open || close + 3 >= s.end || !pr_scan_i64(&s, &pid))
        return false;
    size_t n = (size_t)(close - open - 1);
    n = n < COMM_MAX - 1 ? n : COMM_MAX - 1;
    memcpy(ret->comm, open + 1, n);
    ret->comm[n] = '\0';
    ret->pid = (pid_t)pid;
    ret->state = close[2];
    s.p = close + 3;
    for (int i = FIRST; i <= LAST; i++)
        if (!pr_scan_i64(&s, &field[i]))
            return false;
    if (!pr_scan_i64(&s, &field[VSIZE]) || !pr_scan_i64(&s, &field[PAGES]))
        field[VSIZE] = field[PAGES] = 0;
    ret->ppid = (pid_t)field[4];
    ret->pgrp = (pid_t)field[5];
    ret->threads = (int)field[NUM_THREADS];
    ret->start = (uint64_t)field[22];
    return ret->pid == pid && ret->ppid == field[4] && ret->ppid >= 0 && all_count(field);
}

bool pr_stat_line_parse(const char *text, size_t len, struct pr_stat_line *ret)
{
    int64_t field[PAGES + 1];
    return split(pr_scan_of(text, len), ret, field);
}

static double faults(const struct pr_entity *e)
{
    return e->value[METRIC_FAULTS_MINOR] + e->value[METRIC_FAULTS_MAJOR];
}

static void take(const struct pr_tick *t, struct pr_entity *e, const struct pr_stat_line *line,
                 const int64_t *field)
{
    e->ppid = line->ppid;
    e->pgrp = line->pgrp;
    e->state = line->state;
    e->kernel_thread = field[FLAGS] & KERNEL_THREAD;
    double before = faults(e);
    e->resized |=
        e->stat_pages != (uint32_t)field[PAGES] || e->value[METRIC_MEM_VMS] != (double)field[VSIZE];
    e->stat_pages = (uint32_t)field[PAGES];
    memcpy(e->comm, line->comm, sizeof e->comm);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double v = (double)field[rows[i].field];
        if (rows[i].scale == PER_TICK)
            v /= (double)t->host->ticks_per_second;
        (rows[i].reaped ? e->reaped : e->value)[rows[i].metric] = v;
    }
    e->faulted |= faults(e) != before;
    e->value[METRIC_CPU_TIME] = e->value[METRIC_CPU_USER] + e->value[METRIC_CPU_SYSTEM];
    e->reaped[METRIC_CPU_TIME] = e->reaped[METRIC_CPU_USER] + e->reaped[METRIC_CPU_SYSTEM];
}

bool pr_stat_take(const struct pr_tick *t, struct pr_entity *e, const char *text, size_t len)
{
    struct pr_stat_line line;
    int64_t field[PAGES + 1];
    if (!split(pr_scan_of(text, len), &line, field))
        return false;
    e->start = line.start;
    take(t, e, &line, field);
    return true;
}

static int read_stat(const struct pr_tick *t, struct pr_entity *e)
{
    struct pr_stat_line line;
    int64_t field[PAGES + 1];
    ssize_t n = pr_source_text(t, e, SOURCE_pid_stat);
    if (n < 0)
        return (int)n;
    if (!split(pr_scan_of(t->text, (size_t)n), &line, field))
        return -EIO;
    /* The pid belongs to another process by now; or it is being reaped at this very moment, and the
     * kernel has neither parent nor values for it any more. */
    if (line.start != e->start || field[NUM_THREADS] == 0)
        return -ESRCH;
    take(t, e, &line, field);
    return 0;
}

const struct pr_source pr_source_pid_stat = {
    .name = "stat", .gives = READ_STAT, .file = "stat", .read = read_stat};
