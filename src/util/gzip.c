/* SPDX-License-Identifier: Apache-2.0 */
/* What is declared here of zlib is its stable interface (https://zlib.net/manual.html). */
#include "util/gzip.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>

#include "util/dl.h"

enum { LEVEL = 6, DEFLATED = 8, WINDOW = 15, AS_GZIP = 16, MEMORY = 8, FINISH = 4, THE_END = 1 };

struct stream { /* z_stream */
    const void *next_in;
    unsigned avail_in;
    unsigned long total_in;
    void *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *message;
    void *state, *allocate, *free, *opaque;
    int data_type;
    unsigned long check, reserved;
};

static struct {
    const char *(*version)(void);
    int (*begin)(struct stream *, int, int, int, int, int, const char *, int);
    unsigned long (*bound)(struct stream *, unsigned long);
    int (*deflate)(struct stream *, int);
    int (*end)(struct stream *);
} lib;

#define SYMBOL(field, name) PR_DL_SYMBOL(lib, field, name)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;

static void load(void)
{
    const struct pr_dl_symbol symbols[] = {
        SYMBOL(version, "zlibVersion"), SYMBOL(begin, "deflateInit2_"),
        SYMBOL(bound, "deflateBound"),  SYMBOL(deflate, "deflate"),
        SYMBOL(end, "deflateEnd"),
    };
    char why[200];
    loaded = pr_dl_open_whole("libz.so.1", symbols, sizeof symbols / sizeof *symbols, &lib, why,
                              sizeof why);
}

int pr_gzip(struct pr_buf *out, const void *data, size_t n)
{
    struct stream z = {.next_in = data, .avail_in = (unsigned)n};
    pthread_once(&once, load);
    if (!loaded)
        return -ENOSYS;
    if (n > INT_MAX || lib.begin(&z, LEVEL, DEFLATED, WINDOW + AS_GZIP, MEMORY, 0, lib.version(),
                                 (int)sizeof z) != 0)
        return -ENOMEM;
    unsigned long room = lib.bound(&z, n);
    bool good = pr_buf_reserve(out, room);
    if (good) {
        z.next_out = out->data + out->len;
        z.avail_out = (unsigned)room;
        good = lib.deflate(&z, FINISH) == THE_END;
        out->len += good ? z.total_out : 0;
    }
    lib.end(&z);
    return good ? 0 : -ENOMEM;
}
