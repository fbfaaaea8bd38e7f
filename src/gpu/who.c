/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers name processes by the pids of our own namespace, or of the machine's, or of the
 * process's own. A pid that /proc does not have is looked for among the other names of members
 * (NSpid in status). Where that finds nobody, what members have open tells at least which devices
 * they can see. */
#include "gpu/who.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/fs.h"
#include "util/scan.h"

static bool is_here(const struct pr_gpu_work *w, pid_t pid)
{
    char name[16];
    snprintf(name, sizeof name, "%d", (int)pid);
    return pid > 0 && faccessat(w->host->proc, name, F_OK, 0) == 0;
}

static bool is_member(const struct pr_gpu_work *w, pid_t pid)
{
    for (size_t i = 0; i < w->member_count; i++)
        if (w->members[i] == pid)
            return true;
    return false;
}

/* Is it one of the names that the process has in namespaces below ours? */
static bool has_name(const struct pr_gpu_work *w, pid_t member, pid_t pid)
{
    char path[32], text[4096];
    struct pr_scan s, line;
    snprintf(path, sizeof path, "%d/status", (int)member);
    ssize_t n = pr_fs_read(w->host->proc, path, text, sizeof text);
    s = pr_scan_of(text, n > 0 ? (size_t)n : 0);
    while (pr_scan_line(&s, &line)) {
        uint64_t name;
        if (!pr_scan_prefix(&line, "NSpid:"))
            continue;
        while (pr_scan_u64(&line, &name))
            if (name == (uint64_t)pid)
                return true;
        return false;
    }
    return false;
}

static pid_t translate(const struct pr_gpu_work *w, pid_t pid)
{
    for (size_t i = 0; i < w->member_count; i++)
        if (has_name(w, w->members[i], pid))
            return w->members[i];
    return 0;
}

/* The use goes to this process; where it has one of that device already, they become one. */
static void give(struct pr_gpu_round *r, size_t *at, pid_t pid)
{
    struct pr_gpu_use *use = &r->use[*at];
    for (size_t i = 0; i < r->use_count; i++) {
        struct pr_gpu_use *other = &r->use[i];
        if (i == *at || other->pid != pid || other->card != use->card)
            continue;
        other->memory = isnan(other->memory) ? use->memory : other->memory;
        other->usage = isnan(other->usage) ? use->usage : other->usage;
        *use = r->use[--r->use_count]; /* to be looked at in its place */
        --*at;
        return;
    }
    use->pid = pid;
}

/* Does any use belong to a member? strange: some belong to nobody that can be seen. */
static bool match(struct pr_gpu_work *w, const struct pr_gpu_owners *o, bool *strange)
{
    bool found = false;
    for (size_t i = 0; i < w->round->use_count; i++) {
        const struct pr_gpu_use *use = &w->round->use[i];
        if (use->card - o->first >= o->count)
            continue;
        if (is_member(w, use->pid)) {
            found = true;
        } else if (!is_here(w, use->pid)) {
            pid_t ours = translate(w, use->pid);
            *strange |= !ours;
            found |= ours != 0;
            if (ours)
                give(w->round, &i, ours);
        }
    }
    return found;
}

/* --- whole devices ---------------------------------------------------------------------------- */

struct looking {
    const struct pr_gpu_work *w;
    pid_t pid;
    uint64_t open; /* a bit for each number of a device file */
};

static bool look_at_link(void *of, const char *name)
{
    struct looking *l = of;
    char path[64], target[64];
    snprintf(path, sizeof path, "%d/fd/%.16s", (int)l->pid, name);
    ssize_t n = readlinkat(l->w->host->proc, path, target, sizeof target - 1);
    if (n <= 0)
        return true;
    target[n] = '\0';
    if (strncmp(target, "/dev/nvidia", 11) == 0 && isdigit((unsigned char)target[11])) {
        unsigned number = (unsigned)atoi(target + 11);
        l->open |= number < 64 ? UINT64_C(1) << number : 0;
    }
    return true;
}

/* CUDA_VISIBLE_DEVICES of a process: false where it names devices, and not this one. Numbers are
 * CUDA's own order, which is the driver's unless somebody asked for another. */
static bool may_see(const struct pr_gpu_work *w, pid_t pid, unsigned index, const char *uuid)
{
    char path[32], *text = NULL;
    size_t len;
    bool sees = true;
    snprintf(path, sizeof path, "%d/environ", (int)pid);
    if (pr_fs_slurp(w->host->proc, path, &text, &len) < 0)
        return true;
    for (const char *p = text; p < text + len; p += strlen(p) + 1) {
        if (strncmp(p, "CUDA_VISIBLE_DEVICES=", 21) != 0)
            continue;
        sees = false;
        for (const char *item = p + 21; *item && !sees; item += *item == ',') {
            size_t n = strcspn(item, ",");
            sees = isdigit((unsigned char)*item) ? (unsigned)atoi(item) == index
                                                 : n > 4 && strncmp(uuid, item, n) == 0;
            item += n;
        }
    }
    free(text);
    return sees;
}

/* A member that has the device open stands for all that happens on it. */
static bool claim(struct pr_gpu_work *w, const struct pr_gpu_owners *o, pid_t pid, uint64_t open,
                  bool *claimed)
{
    static const enum pr_metric_id ids[] = {METRIC_GPU_UTIL, METRIC_GPU_MEM_USED};
    bool any = false;
    for (unsigned i = 0; i < o->count; i++) {
        const struct pr_gpu_card *c = &w->round->card[o->first + i];
        if (claimed[i] || c->part || o->number[i] >= 64 || !(open >> o->number[i] & 1) ||
            !may_see(w, pid, o->number[i], c->uuid))
            continue;
        double v = c->value[pr_device_slot(DEVICE_GPU, ids[o->memory])];
        struct pr_gpu_use *use = isnan(v) ? NULL : pr_gpu_use_of(w->round, pid, o->first + i);
        if (!use)
            continue;
        claimed[i] = any = true;
        *(o->memory ? &use->memory : &use->usage) = v;
    }
    return any;
}

void pr_gpu_find_owners(struct pr_gpu_work *w, const struct pr_gpu_owners *o)
{
    bool strange = false, claimed[GPU_DEVICES] = {false};
    char names[4096] __attribute__((aligned(16)));
    bool found = match(w, o, &strange);
    if (w->members_cut && (strange || o->blind)) /* it may be one of the others */
        w->round->cut = true;
    if (!(o->blind || (strange && !found)))
        return;
    for (size_t i = 0; i < w->member_count; i++) {
        struct looking l = {.w = w, .pid = w->members[i]};
        char path[32];
        snprintf(path, sizeof path, "%d/fd", (int)l.pid);
        pr_fs_list(w->host->proc, path, names, sizeof names, look_at_link, &l);
        if (l.open && claim(w, o, l.pid, l.open, claimed))
            *(o->memory ? &w->round->memory_whole : &w->round->usage_whole) = true;
    }
}
