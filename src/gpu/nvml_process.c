/* SPDX-License-Identifier: Apache-2.0 */
/* Who uses NVIDIA devices. A process may be in the list of those that compute and in that of those
 * that draw: it counts once. Utilisation is asked for since the newest sample that was seen: asked
 * from 0 the driver answers with a mean over some 14 seconds. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "gpu/nvml_state.h"
#include "gpu/who.h"
#include "util/clock.h"

#define HOLD      NS_PER_S
#define NOT_KNOWN (~0ull)
#define HELD(d)   (sizeof(d)->held / sizeof *(d)->held)

static const char failed[] = "the driver fails to tell the processes of every device";

/* The first layout has neither instance. Read from the end, each moves to where it belongs. */
static void widen(struct nvml_process *list, unsigned count)
{
    for (unsigned i = count; i-- > 0;) {
        struct nvml_process_v1 one;
        memcpy(&one, (const char *)list + i * sizeof one, sizeof one);
        list[i] = (struct nvml_process){.pid = one.pid, .memory = one.memory};
    }
}

static int take_list(struct nvml *n, struct pr_gpu_work *w, unsigned card,
                     int (*list)(void *, unsigned *, void *), bool *unknown)
{
    unsigned count = NVML_BUFFER;
    if (!list)
        return NVML_NO_FUNCTION;
    int result = list(pr_nvml_device(n, card)->handle, &count, n->processes);
    if (result != NVML_OK)
        return result;
    if (n->old_processes)
        widen(n->processes, count);
    pr_nvml_device(n, card)->users |= count > 0;
    for (unsigned i = 0; i < count; i++) {
        struct pr_gpu_use *use = pr_gpu_use_of(w->round, (pid_t)n->processes[i].pid, card);
        if (!use)
            break;
        if (n->processes[i].memory == NOT_KNOWN)
            *unknown = true;
        else
            use->memory = fmax(use->memory, (double)n->processes[i].memory);
    }
    return NVML_OK;
}

static bool is_asked(const struct nvml *n, const struct pr_gpu_work *w, unsigned i)
{
    return !n->device[i].divided && !w->round->card[n->first + i].lost;
}

static bool is_unsupported(int result)
{
    return result == NVML_NOT_SUPPORTED || result == NVML_NO_FUNCTION;
}

static bool is_failure(int result)
{
    return result != NVML_OK && !is_unsupported(result);
}

/* Both lists of a device: one that it does not have is empty, one that fails is not. */
static int list_one(struct nvml *n, struct pr_gpu_work *w, unsigned i, bool *unknown)
{
    struct nvml_device *d = &n->device[i];
    struct pr_gpu_card *c = &w->round->card[n->first + i];
    d->users = false;
    int one = take_list(n, w, n->first + i, n->api.compute, unknown);
    int two = take_list(n, w, n->first + i, n->api.graphics, unknown);
    int result = one == NVML_OK || is_unsupported(one) ? two : one;
    if (is_unsupported(result) && one == NVML_OK)
        result = one;
    d->listed = c->listed = result == NVML_OK;
    n->told |= result == NVML_OK;
    if (is_failure(result) && result != NVML_LOST && !d->silence_said) {
        d->silence_said = true;
        pr_gpu_say(w,
                   "%s: the driver does not tell its processes (%s): what the job has of GPUs "
                   "is absent while that is so",
                   c->name, n->api.error ? n->api.error(result) : "an error");
    }
    return result;
}

int pr_nvml_process_memory(void *state, struct pr_gpu_work *w, unsigned card)
{
    static const char untold[] = "the driver does not tell the memory of processes";
    struct nvml *n = state;
    struct pr_gpu_round *r = w->round;
    struct pr_gpu_owners owners = {.first = n->first, .count = n->count, .memory = true};
    bool failing = false;
    (void)card;
    for (unsigned i = 0; i < n->count; i++) {
        owners.number[i] = n->device[i].minor;
        int result = is_asked(n, w, i) ? list_one(n, w, i, &owners.blind) : NVML_OK;
        owners.blind |= is_unsupported(result);
        failing |= is_failure(result);
    }
    owners.blind |= !n->told; /* a driver that never did */
    pr_gpu_find_owners(w, &owners);
    failing &= n->told || !r->memory_whole;
    for (unsigned i = 0; i < n->count && r->memory_whole; i++)
        r->card[n->first + i].listed = true;
    if (failing || (owners.blind && !r->memory_whole)) {
        r->memory_whole = false;
        r->no_memory = failing ? failed : untold;
        return failing ? -EIO : -EAGAIN; /* a member may still open a device, and stand for it */
    }
    if (r->no_memory == failed || r->no_memory == untold)
        r->no_memory = NULL;
    return 0;
}

/* One entry for each process with what it has used since; where a driver gives several, their
 * mean. */
static void take_uses(struct nvml *n, struct nvml_device *d, unsigned count)
{
    unsigned long long newest = d->processes_seen;
    unsigned times[HELD(d)] = {0};
    d->held_count = 0;
    d->held_cut = false;
    for (unsigned i = 0; i < count; i++) {
        const struct nvml_use *u = &n->uses[i];
        size_t k = 0;
        if (u->time <= d->processes_seen || u->sm > 100)
            continue;
        newest = u->time > newest ? u->time : newest;
        while (k < d->held_count && d->held[k].pid != u->pid)
            k++;
        d->held_cut |= k == HELD(d);
        if (k == HELD(d))
            continue;
        if (k == d->held_count)
            d->held[d->held_count++] = (struct nvml_held){u->pid, 0};
        d->held[k].usage += (u->sm / 100.0 - d->held[k].usage) / ++times[k];
    }
    int64_t step = (int64_t)(newest - d->processes_seen) * 1000;
    if (d->processes_told && step > 0 && (!d->processes_step || step < d->processes_step))
        d->processes_step = step;
    d->processes_seen = newest;
    d->processes_at = pr_clock_boot();
}

/* How long the latest answer stands: some of the driver's own steps, as far as they are known. */
static int64_t hold(const struct nvml_device *d)
{
    int64_t some = d->processes_step * 5 / 2;
    return some && some < HOLD ? some : HOLD;
}

/* The first answer is about what was before our time: it says only where the clock of the driver
 * stands. */
static int begin_uses(struct nvml *n, struct nvml_device *d)
{
    unsigned count = NVML_BUFFER;
    int result = n->api.process_use(d->handle, n->uses, &count, 0);
    if (result == NVML_OK)
        take_uses(n, d, count);
    else if (result == NVML_NOT_FOUND)
        d->processes_seen = (unsigned long long)pr_clock_wall() / 1000;
    d->held_count = 0;
    d->processes_at = pr_clock_boot();
    return result == NVML_OK ? NVML_NOT_FOUND : result;
}

/* NVML_OK where d->held says what there is; NVML_NOT_FOUND where that is not known yet. */
static int read_uses(struct nvml *n, struct nvml_device *d)
{
    unsigned count = NVML_BUFFER;
    if (!d->processes_seen)
        return begin_uses(n, d);
    int result = n->api.process_use(d->handle, n->uses, &count, d->processes_seen);
    if (result == NVML_OK)
        take_uses(n, d, count);
    if (result == NVML_OK)
        d->processes_told = true;
    if (result != NVML_NOT_FOUND)
        return result;
    if (pr_clock_boot() - d->processes_at > hold(d)) { /* nothing new for so long: nothing at all */
        d->held_count = 0;
        d->held_cut = false;
        d->processes_told = true;
    }
    return d->processes_told ? NVML_OK : NVML_NOT_FOUND;
}

static int use_of_one(struct nvml *n, struct pr_gpu_work *w, unsigned i)
{
    struct nvml_device *d = &n->device[i];
    if (d->no_process_use || !n->api.process_use || d->part)
        return NVML_NOT_SUPPORTED;
    int result = read_uses(n, d);
    if (result == NVML_NOT_FOUND && d->listed && !d->users)
        return NVML_OK; /* nobody is there */
    for (size_t k = 0; k < d->held_count && result == NVML_OK; k++) {
        struct pr_gpu_use *use = pr_gpu_use_of(w->round, (pid_t)d->held[k].pid, n->first + i);
        if (use)
            use->usage = d->held[k].usage;
    }
    w->round->cut |= d->held_cut && result == NVML_OK;
    d->no_process_use = is_unsupported(result);
    return result;
}

int pr_nvml_process_use(void *state, struct pr_gpu_work *w, unsigned card)
{
    struct nvml *n = state;
    struct pr_gpu_owners owners = {.first = n->first, .count = n->count};
    int r = 0;
    (void)card;
    for (unsigned i = 0; i < n->count; i++) {
        owners.number[i] = n->device[i].minor;
        if (!is_asked(n, w, i))
            continue;
        int result = use_of_one(n, w, i);
        owners.blind |= is_unsupported(result);
        if (result != NVML_OK)
            r = owners.blind || result == NVML_NOT_FOUND ? -EAGAIN : -EIO;
    }
    pr_gpu_find_owners(w, &owners);
    if (owners.blind)
        w->round->no_usage = "the driver does not tell the use of processes on every device "
                             "(divided ones, old drivers)";
    else if (r == -EIO)
        w->round->no_usage = failed;
    else if (w->round->no_usage == failed)
        w->round->no_usage = NULL;
    return w->round->usage_whole ? 0 : r;
}
