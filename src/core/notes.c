/* SPDX-License-Identifier: Apache-2.0 */
#include "core/notes.h"

#include <stdlib.h>
#include <string.h>

struct head {
    struct pr_note note;
    size_t len;
};

void pr_notes_init(struct pr_notes *n)
{
    *n = (struct pr_notes){0};
    pthread_mutex_init(&n->lock, NULL);
}

void pr_notes_done(struct pr_notes *n)
{
    free(n->ring);
    n->ring = NULL;
    pthread_mutex_destroy(&n->lock);
}

/* How many of len bytes come before the ring begins again. */
static size_t up_to_the_end(uint64_t at, size_t len)
{
    size_t left = NOTES_BYTES - (size_t)(at % NOTES_BYTES);
    return len < left ? len : left;
}

static void put(struct pr_notes *n, const void *data, size_t len)
{
    size_t first = up_to_the_end(n->head, len);
    memcpy(n->ring + n->head % NOTES_BYTES, data, first);
    memcpy(n->ring, (const char *)data + first, len - first);
    n->head += len;
}

static void get(const struct pr_notes *n, uint64_t at, void *data, size_t len)
{
    size_t first = up_to_the_end(at, len);
    memcpy(data, n->ring + at % NOTES_BYTES, first);
    memcpy((char *)data + first, n->ring, len - first);
}

static void drop_oldest(struct pr_notes *n)
{
    struct head head;
    get(n, n->tail, &head, sizeof head);
    n->tail += sizeof head + head.len;
    n->tail_line++;
}

void pr_notes_add(struct pr_notes *n, struct pr_note note, const char *members, size_t len)
{
    struct head head = {note, len};
    if (!n->wanted || sizeof head + len > NOTES_BYTES)
        return;
    pthread_mutex_lock(&n->lock);
    if (!n->ring)
        n->ring = malloc(NOTES_BYTES);
    while (n->ring && NOTES_BYTES - (n->head - n->tail) < sizeof head + len)
        drop_oldest(n);
    if (n->ring) {
        put(n, &head, sizeof head);
        put(n, members, len);
    } else { /* without memory it is lost at once */
        n->tail_line++;
    }
    n->head_line++;
    pthread_mutex_unlock(&n->lock);
}

bool pr_notes_next(struct pr_notes *n, struct pr_notes_place *place, struct pr_note *ret,
                   struct pr_buf *out)
{
    struct head head;
    pr_buf_reset(out);
    pthread_mutex_lock(&n->lock);
    if (place->line < n->tail_line) {
        place->lost += (unsigned long)(n->tail_line - place->line);
        place->line = n->tail_line;
        place->at = n->tail;
    }
    bool found = place->line < n->head_line;
    if (found) {
        get(n, place->at, &head, sizeof head);
        *ret = head.note;
        if (pr_buf_reserve(out, head.len)) {
            get(n, place->at + sizeof head, out->data, head.len);
            out->len = head.len;
        }
        place->at += sizeof head + head.len;
        place->line++;
    }
    pthread_mutex_unlock(&n->lock);
    return found;
}
