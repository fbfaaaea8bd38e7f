/* SPDX-License-Identifier: Apache-2.0 */
/* The script of the library: the file that $FAKE_NVML names, which
 * is read again at each call, so that a job can change it. Each line is one of
 *
 *   device INDEX MODEL UUID TOTAL USED      bytes
 *   mig INDEX PART MODEL UUID TOTAL USED    a part of a divided device
 *   util INDEX PERCENT FROM TO              seconds since the library was loaded
 *   process INDEX PID MEMORY c|g|cg SM TO   INDEX.PART for a part; busy until TO, seconds as above
 *   na INDEX CALL                           the call is not supported there
 *   fail INDEX CALL CODE FROM               it fails from then on
 *   hang INDEX CALL SECONDS FROM TO         it takes so long, in that time
 *   burn INDEX CALL SECONDS                 it takes so much CPU time
 *   set INDEX CALL VALUE FROM               what a call answers from then on
 *   xid INDEX NUMBER AT
 *   init CODE */
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST      16
#define RULES     64
#define PROCESSES 32

struct device devices[MOST];
struct rule rules[RULES];
struct process processes[PROCESSES];
size_t device_count, rule_count, process_count;
int init_code;
double loaded;

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double now(void)
{
    return wall() - loaded;
}

static void take_line(const char *line)
{
    struct device *d = &devices[device_count];
    struct process *p = &processes[process_count];
    struct rule *r = &rules[rule_count];
    char part[8];
    if (sscanf(line, "device %15s %63s %63s %llu %llu", d->id, d->model, d->uuid, &d->total,
               &d->used) == 5) {
        device_count++;
    } else if (sscanf(line, "mig %11s %3s %63s %63s %llu %llu", d->id, part, d->model, d->uuid,
                      &d->total, &d->used) == 6) {
        strcat(strcat(d->id, "."), part);
        device_count++;
    } else if (sscanf(line, "process %15s %u %llu %3s %lf %lf", p->id, &p->pid, &p->memory, p->kind,
                      &p->sm, &p->until) == 6) {
        process_count++;
    } else if (sscanf(line, "init %d", &init_code) == 1) {
    } else {
        *r = (struct rule){0};
        if (sscanf(line, "util %15s %lf %lf %lf", r->id, &r->v[0], &r->v[1], &r->v[2]) == 4)
            strcpy(r->what, "util");
        else if (sscanf(line, "xid %15s %lf %lf", r->id, &r->v[0], &r->v[1]) == 3)
            strcpy(r->what, "xid");
        else if (sscanf(line, "%15s %15s %23s %lf %lf %lf", r->what, r->id, r->call, &r->v[0],
                        &r->v[1], &r->v[2]) < 3)
            return;
        rule_count++;
    }
}

void load(void)
{
    char line[256];
    FILE *f = fopen(getenv("FAKE_NVML") ? getenv("FAKE_NVML") : "/dev/null", "r");
    if (loaded == 0)
        loaded = wall();
    device_count = rule_count = process_count = 0;
    while (f && fgets(line, sizeof line, f) && device_count < MOST - 1 && rule_count < RULES - 1 &&
           process_count < PROCESSES - 1)
        take_line(line);
    if (f)
        fclose(f);
}

static const struct rule *rule(const char *what, const struct device *d, const char *call)
{
    const struct rule *found = NULL;
    for (size_t i = 0; i < rule_count; i++)
        if (strcmp(rules[i].what, what) == 0 && strcmp(rules[i].id, d->id) == 0 &&
            strcmp(rules[i].call, call) == 0)
            found = &rules[i];
    return found;
}

/* Handles are 1 + the place in the file. */
const struct device *of(void *handle)
{
    size_t i = (size_t)(uintptr_t)handle;
    load();
    return i >= 1 && i <= device_count ? &devices[i - 1] : NULL;
}

int answer(const struct device *d, const char *call)
{
    if (!d)
        return BAD;
    const struct rule *hang = rule("hang", d, call), *fail = rule("fail", d, call);
    if (hang && now() >= hang->v[1] && now() < hang->v[2]) {
        struct timespec t = {(time_t)hang->v[0],
                             (long)((hang->v[0] - (double)(time_t)hang->v[0]) * 1e9)};
        nanosleep(&t, NULL);
    }
    const struct rule *burn = rule("burn", d, call);
    for (double end = now() + (burn ? burn->v[0] : 0); now() < end;)
        ;
    if (fail && now() >= fail->v[1])
        return (int)fail->v[0];
    if (!fail && (fail = rule("fail", d, "all")) && now() >= fail->v[1])
        return (int)fail->v[0];
    return rule("na", d, call) ? NOT_SUPPORTED : OK;
}

double value(const struct device *d, const char *call, double otherwise)
{
    double v = otherwise;
    for (size_t i = 0; i < rule_count; i++)
        if (strcmp(rules[i].what, "set") == 0 && strcmp(rules[i].id, d->id) == 0 &&
            strcmp(rules[i].call, call) == 0 && now() >= rules[i].v[1])
            v = rules[i].v[0];
    return v;
}

double util_at(const struct device *d, double at)
{
    for (size_t i = 0; i < rule_count; i++)
        if (strcmp(rules[i].what, "util") == 0 && strcmp(rules[i].id, d->id) == 0 &&
            at >= rules[i].v[1] && at < rules[i].v[2])
            return rules[i].v[0];
    return 0;
}

bool is_part(const struct device *d)
{
    return strchr(d->id, '.');
}

void *nth(unsigned index)
{
    load();
    for (size_t i = 0; i < device_count; i++)
        if (!is_part(&devices[i]) && index-- == 0)
            return (void *)(uintptr_t)(i + 1);
    return NULL;
}
