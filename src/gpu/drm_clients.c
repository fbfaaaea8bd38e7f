/* SPDX-License-Identifier: Apache-2.0 */
/* One sweep over the DRM clients of all members. Who has none is looked at again only now and then;
 * a client that several processes hold counts once, for the first of them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/drm.h"
#include "util/clock.h"
#include "util/fs.h"

#define LOOK_YOUNG                                                                                 \
    (NS_PER_S / 2) /* between two looks at the descriptors of a process with a client */
#define LOOK_OTHER (3 * NS_PER_S) /* and of one without */

static const char unseen[] = "not all that members have of DRM devices can be looked at";

struct looking {
    const struct pr_gpu_work *w;
    struct drm_holder *holder;
};

static bool look_at_link(void *of, const char *name)
{
    struct looking *l = of;
    char path[64], target[32];
    snprintf(path, sizeof path, "%d/fd/%.16s", (int)l->holder->pid, name);
    ssize_t n = readlinkat(l->w->host->proc, path, target, sizeof target);
    bool client = n >= 9 && strncmp(target, "/dev/dri/", 9) == 0;
    if (client && l->holder->count == DRM_FILES)
        l->holder->more = true;
    else if (client)
        l->holder->fd[l->holder->count++] = atoi(name);
    l->holder->compute |= n == 8 && strncmp(target, "/dev/kfd", 8) == 0;
    return true;
}

static void look(const struct pr_gpu_work *w, struct drm_holder *h, int64_t now)
{
    char path[32], names[4096] __attribute__((aligned(16)));
    struct looking l = {w, h};
    if (h->looked && now - h->looked < (h->count ? LOOK_YOUNG : LOOK_OTHER))
        return;
    h->looked = now;
    h->count = 0;
    h->compute = h->more = false;
    snprintf(path, sizeof path, "%d/fd", (int)h->pid);
    int r = pr_fs_list(w->host->proc, path, names, sizeof names, look_at_link, &l);
    h->denied = r == -EACCES || r == -EPERM;
}

static struct drm_holder *holder_of(struct drm *d, pid_t pid)
{
    for (size_t i = 0; i < d->holder_count; i++)
        if (d->holder[i].pid == pid)
            return &d->holder[i];
    if (d->holder_count == DRM_HOLDERS)
        return NULL;
    struct drm_holder *h = &d->holder[d->holder_count++];
    *h = (struct drm_holder){.pid = pid};
    return h;
}

/* By its place on the bus; of a device that is on none, by its driver. */
static bool find_card(const struct drm *d, const struct pr_drm_client *c, unsigned *ret)
{
    for (unsigned i = 0; i < d->count; i++) {
        const struct drm_card *card = &d->card[i];
        if (*c->slot ? strcmp(card->slot, c->slot) == 0 : strcmp(card->driver, c->driver) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static struct drm_client *client_of(struct drm *d, unsigned card, uint64_t id, bool *fresh)
{
    for (size_t i = 0; i < d->client_count; i++)
        if (d->client[i].card == card && d->client[i].id == id)
            return &d->client[i];
    if (d->client_count == DRM_CLIENTS)
        return NULL;
    struct drm_client *c = &d->client[d->client_count++];
    *c = (struct drm_client){.card = card, .id = id};
    *fresh = true;
    return c;
}

/* A value may fall for a while: what counts is the largest so far. */
static double growth(double *last, double now)
{
    double by = now - *last;
    if (!(by > 0))
        return isnan(by) ? NAN : 0;
    *last = now;
    return by;
}

/* The share of the busiest engine: others work at the same time, not for longer. */
static double busiest(struct drm_client *known, const struct pr_drm_client *now, int64_t at)
{
    double most = NAN, ns = (double)(at - known->at);
    for (size_t i = 0; i < now->engine_count && i < known->engine_count; i++) {
        struct pr_drm_engine *e = &known->engine[i];
        const struct pr_drm_engine *n = &now->engine[i];
        if (strcmp(e->name, n->name) != 0)
            continue;
        double time = growth(&e->ns, n->ns) / ns;
        double cycles = growth(&e->cycles, n->cycles) / growth(&e->total, n->total);
        most = fmax(most, (isnan(time) ? cycles : time) / n->capacity);
    }
    return most;
}

/* Somebody could not be looked at: a sum without it would be too small. */
static void lose_sight(struct drm *d)
{
    d->memory_known = d->usage_known = false;
    d->cut = true;
}

static void take_client(struct drm *d, struct pr_gpu_work *w, pid_t pid,
                        const struct pr_drm_client *c, int64_t now)
{
    unsigned card;
    bool fresh = false;
    if (!find_card(d, c, &card))
        return;
    /* Without an id a process has one client: its descriptors may all be of the same. */
    struct drm_client *known = client_of(d, card, c->has_id ? c->id : ~(uint64_t)pid, &fresh);
    struct pr_gpu_use *use = known ? pr_gpu_use_of(w->round, pid, d->first + card) : NULL;
    if (!use)
        lose_sight(d);
    if (!use || known->sweep == d->sweep)
        return;
    double usage = fresh ? 0 : busiest(known, c, now);
    if (fresh) {
        memcpy(known->engine, c->engine, sizeof known->engine);
        known->engine_count = c->engine_count;
    }
    known->sweep = d->sweep;
    known->at = now;
    double memory = pr_drm_memory(c);
    if (!isnan(memory))
        use->memory = pr_value_known(use->memory) + memory;
    if (!isnan(usage))
        use->usage = fmin(1, pr_value_known(use->usage) + usage);
}

static void sweep_one(struct drm *d, struct pr_gpu_work *w, struct drm_holder *h, int64_t now)
{
    char path[48], text[8192];
    struct pr_drm_client c;
    for (size_t i = 0; i < h->count; i++) {
        snprintf(path, sizeof path, "%d/fdinfo/%d", (int)h->pid, h->fd[i]);
        ssize_t n = pr_fs_read(w->host->proc, path, text, sizeof text);
        if (n == -ENOENT || n == -ESRCH) /* it is closed by now */
            continue;
        bool told = n > 0 && pr_drm_parse(text, (size_t)n, &c);
        d->memory_known &= told && c.region_count;
        d->usage_known &= told && c.engine_count;
        if (told)
            take_client(d, w, h->pid, &c, now);
    }
    if (h->denied || h->more)
        lose_sight(d);
    d->usage_known &= !h->compute;
    if (h->compute)
        w->round->no_usage =
            "a member computes through /dev/kfd, whose use the kernel does not tell";
}

/* Who was in no sweep for a while is gone. */
static void forget(struct drm *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->client_count; i++)
        if (d->client[i].sweep == d->sweep)
            d->client[kept++] = d->client[i];
    d->client_count = kept;
    kept = 0;
    for (size_t i = 0; i < d->holder_count; i++)
        if (d->holder[i].sweep == d->sweep)
            d->holder[kept++] = d->holder[i];
    d->holder_count = kept;
}

int pr_drm_clients(void *state, struct pr_gpu_work *w, unsigned card)
{
    struct drm *d = state;
    int64_t now = pr_clock_boot();
    (void)card;
    d->memory_known = true;
    d->usage_known = d->sweep > 0; /* there is something to compare with */
    d->cut = false;
    d->sweep++;
    if (w->members_cut)
        lose_sight(d);
    for (size_t i = 0; i < w->member_count; i++) {
        struct drm_holder *h = holder_of(d, w->members[i]);
        if (!h) {
            lose_sight(d);
            break;
        }
        h->sweep = d->sweep;
        look(w, h, now);
        sweep_one(d, w, h, now);
    }
    forget(d);
    for (unsigned i = 0; i < d->count; i++)
        w->round->card[d->first + i].listed = d->memory_known;
    if (!d->memory_known)
        w->round->no_memory = d->cut ? unseen : "a DRM driver does not tell the memory of a member";
    return d->memory_known ? 0 : -EAGAIN;
}

int pr_drm_usage(void *state, struct pr_gpu_work *w, unsigned card)
{
    struct drm *d = state;
    (void)card;
    if (!d->usage_known && d->sweep > 1 && !w->round->no_usage)
        w->round->no_usage = d->cut ? unseen : "a DRM driver does not tell the use of a member";
    return d->usage_known ? 0 : -EAGAIN;
}
