/* SPDX-License-Identifier: Apache-2.0 */
/* The file is open only while it is read or written, never during a request: its recorder can then
 * close it, and leave one file, whenever it wants. */
#include "publish/sending.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "store/change.h"
#include "util/clock.h"

#define REFUSALS_MOST 5 /* in a row: then it is not about a request */
#define OPEN_FILES    2 /* descriptors of a file that is open: itself and its log */
#define KEPT_FILES    1 /* when it was closed */

int pr_sending_init(struct pr_sending *s, struct pr_outlet *o, const char *path)
{
    *s = (struct pr_sending){.outlet = o, .path = strdup(path)};
    if (!s->path) {
        o->ops->free(o);
        return -ENOMEM;
    }
    s->tail.sparse = o->ops->sparse;
    s->progress = (struct pr_published){.kind = o->ops->kind, .url = o->url};
    snprintf(s->progress.remote, sizeof s->progress.remote, "%s", o->remote);
    snprintf(s->progress.prefix, sizeof s->progress.prefix, "%s", o->prefix);
    snprintf(s->progress.node, sizeof s->progress.node, "%s", o->node);
    return 0;
}

void pr_sending_done(struct pr_sending *s)
{
    pr_tail_done(&s->tail);
    s->outlet->ops->free(s->outlet);
    free(s->path);
}

/* --- the file --------------------------------------------------------------------------------- */

static int open_file(struct pr_sending *s, struct pr_stored **ret)
{
    struct proctor_error err = {0};
    int code = pr_stored_open(ret, s->path, STORED_CHANGE, &err);
    if (code < 0)
        snprintf(s->why, sizeof s->why, "%.190s", err.message);
    if (code == 0 && s->files)
        *s->files += OPEN_FILES - s->kept;
    return code;
}

/* In the process of its recorder SQLite keeps one descriptor, to be used again: closing it would
 * give up the recorder's locks. */
static void close_file(struct pr_sending *s, struct pr_stored *r)
{
    if (r && s->files)
        *s->files -= OPEN_FILES - KEPT_FILES;
    s->kept |= r != NULL;
    pr_stored_close(r);
}

/* What cannot be written now is written the next time. */
static void save(struct pr_sending *s, const struct pr_stored *r)
{
    if (s->unsaved && pr_published_save(r, &s->progress) == 0)
        s->unsaved = false;
}

static bool take(void *of, int64_t sample, const struct proctor_snapshot *snapshot)
{
    struct pr_sending *s = of;
    s->full = !s->outlet->ops->add(s->outlet, sample, snapshot);
    s->pending |= !s->full;
    s->batch += !s->full;
    return !s->full;
}

/* Somebody else may have sent the run meanwhile, from its recorder or by a push: it goes on where
 * he came to. A server that knows what it has takes it again. */
static void catch_up(struct pr_sending *s, const struct pr_stored *r)
{
    struct pr_published other = s->progress;
    const struct pr_outlet_ops *ops = s->outlet->ops;
    if (pr_published_find(r, &other) != 1 || other.sample <= s->progress.sample)
        return;
    s->progress.id = other.id;
    s->progress.sample = other.sample;
    if (s->pending && ops->drop) {
        ops->drop(s->outlet);
        s->pending = false;
        s->batch = 0;
        pr_tail_back(&s->tail, other.sample);
    } else if (s->tail.sample < other.sample) {
        pr_tail_back(&s->tail, other.sample);
    }
}

/* Before what failed is sent again. */
static void look_again(struct pr_sending *s)
{
    struct pr_stored *r = NULL;
    if (open_file(s, &r) == 0)
        catch_up(s, r);
    pr_stored_close(r);
}

/* While its recorder makes the tables nobody should be in the way. */
static bool is_made(const struct pr_sending *s)
{
    struct stat st;
    return stat(s->path, &st) == 0 && st.st_size > 0;
}

/* A file that cannot be read yet has nothing yet. */
static int read_more(struct pr_sending *s, bool ending)
{
    struct proctor_error err = {0};
    struct pr_stored *r = NULL;
    s->full = false;
    if (!ending && !is_made(s))
        return 0;
    int code = open_file(s, &r);
    if (code < 0)
        return ending ? code : 0;
    catch_up(s, r);
    save(s, r);
    if (!s->described && (s->progress.sample == 0 || s->outlet->ops->each_time))
        s->outlet->ops->describe(s->outlet, r);
    s->described = true;
    s->from = s->tail.sample;
    code = pr_tail_read(&s->tail, r, take, s, &err);
    if (code < 0)
        snprintf(s->why, sizeof s->why, "%.190s", err.message);
    close_file(s, r);
    if (code == 0 && s->full && !s->pending) {
        snprintf(s->why, sizeof s->why, "out of memory");
        return -EAGAIN;
    }
    return code == -EBUSY ? -EAGAIN : code;
}

void pr_sending_keep(struct pr_sending *s)
{
    struct pr_stored *r = NULL;
    if (!s->unsaved || open_file(s, &r) < 0)
        return;
    save(s, r);
    close_file(s, r);
}

int pr_sending_resume(struct pr_sending *s, struct proctor_error *err)
{
    struct pr_stored *r = NULL;
    struct pr_outlet *o = s->outlet;
    int code = pr_stored_open(&r, s->path, STORED_CHANGE, err);
    if (code < 0)
        return code;
    code = pr_published_find(r, &s->progress);
    if (code < 0)
        pr_stored_failure(r, code, err);
    if (code == 1) {
        snprintf(o->remote, sizeof o->remote, "%s", s->progress.remote);
        snprintf(o->prefix, sizeof o->prefix, "%s", s->progress.prefix);
        snprintf(o->node, sizeof o->node, "%s", s->progress.node);
        o->owned = s->progress.owned;
        s->tail.sample = s->progress.sample;
    }
    o->maybe_there = s->resumed = true;
    pr_stored_close(r);
    return code < 0 ? code : 0;
}

/* --- the server ------------------------------------------------------------------------------- */

static int blame(struct pr_sending *s, int code)
{
    if (code < 0)
        snprintf(s->why, sizeof s->why, "%s", s->outlet->why);
    return code;
}

int pr_sending_begin(struct pr_sending *s)
{
    struct pr_outlet *o = s->outlet;
    if (s->begun)
        return 0;
    int code = blame(s, o->ops->begin(o));
    if (code < 0)
        o->maybe_there = true; /* an answer that we did not hear may have been yes */
    else
        snprintf(s->progress.remote, sizeof s->progress.remote, "%s", o->remote);
    s->progress.owned = o->owned;
    s->begun = code == 0;
    s->unsaved |= s->begun;
    return code;
}

/* The server will not have these, and later ones are tried: the cursor stays before them until it
 * has taken one of those. Where it takes none it is not about them, and they are sent another time.
 */
static int pass_by(struct pr_sending *s)
{
    s->passed += s->batch;
    s->refusals++;
    return s->refusals < REFUSALS_MOST ? 0 : -EINVAL;
}

static void confirm(struct pr_sending *s)
{
    s->progress.sample = s->tail.sample;
    s->progress.refused += s->passed;
    s->progress.rejected += s->outlet->rejected;
    s->outlet->rejected = 0;
    s->sent += s->batch;
    s->passed = s->refusals = 0;
    s->unsaved = true;
}

static int send_pending(struct pr_sending *s)
{
    int64_t began = pr_clock_boot();
    int code = blame(s, s->outlet->ops->send(s->outlet));
    s->took = pr_seconds(pr_clock_boot() - began);
    if (code == -EMSGSIZE) {
        pr_tail_back(&s->tail, s->from);
        s->full = true; /* there is more at once */
        code = 0;
    } else if (code == -EBADMSG) {
        code = pass_by(s);
    } else if (code == 0) {
        confirm(s);
    } else {
        return code;
    }
    s->pending = false;
    s->batch = 0;
    return code;
}

static int end(struct pr_sending *s)
{
    struct pr_stored *r = NULL;
    if (s->passed)
        return -EINVAL; /* s->why has the refusal */
    int code = open_file(s, &r);
    if (code < 0)
        return code;
    save(s, r);
    bool over = r->state == RUN_ENDED || r->state == RUN_DIED;
    if (!over && !s->resumed) { /* its recorder, which we are in, could not write it */
        snprintf(s->why, sizeof s->why, "the record has no end");
        code = -ENODATA;
    } else if (over && !s->progress.ended) {
        code = blame(s, s->outlet->ops->end(s->outlet, r));
    }
    if (code == 0) {
        s->unsaved |= s->progress.ended != over;
        s->progress.ended = over;
        s->done = true;
        save(s, r);
    }
    close_file(s, r);
    return code;
}

/* After each request it is written down how far it came: who dies then sends nothing twice. */
int pr_sending_step(struct pr_sending *s, bool ending)
{
    int code = 0;
    if (s->pending)
        look_again(s);
    while (code == 0) {
        if (!s->pending)
            code = read_more(s, ending);
        if (code < 0 || !s->pending)
            break;
        code = send_pending(s);
        if (code == 0 && !s->full && !ending) {
            pr_sending_keep(s);
            break;
        }
    }
    return code == 0 && ending ? end(s) : code;
}

int pr_sending_call_off(struct pr_sending *s)
{
    return s->outlet->owned ? blame(s, s->outlet->ops->end(s->outlet, NULL)) : 0;
}

/* --- afterwards ------------------------------------------------------------------------------- */

void pr_sending_tell(struct pr_sending *s, struct pr_publishing *ret)
{
    struct pr_stored *r = NULL;
    *ret = (struct pr_publishing){.kind = s->outlet->ops->kind,
                                  .sent = s->sent,
                                  .refused = s->progress.refused,
                                  .rejected = s->progress.rejected};
    snprintf(ret->url, sizeof ret->url, "%s", s->outlet->url);
    snprintf(ret->remote, sizeof ret->remote, "%s", s->progress.remote);
    snprintf(ret->error, sizeof ret->error, "%s", s->done ? "" : s->why);
    ret->left = open_file(s, &r) < 0 ? -1 : pr_published_left(r, s->progress.sample);
    if (r && r->state == RUN_ENDED) /* its recorder could not while we had it open */
        pr_stored_settle(r);
    close_file(s, r);
}
