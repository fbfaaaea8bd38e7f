/* SPDX-License-Identifier: Apache-2.0 */
/* What is declared here of librsvg (2.46), cairo and glib is their stable interface, so that
 * nothing but the libraries themselves is needed, and those only where somebody wants a PNG. */
#include "report/png.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "util/dl.h"

#define LIBRARY   "librsvg-2.so.2"
#define REMEDY    "install librsvg (Debian: librsvg2-2), or ask for .svg"
#define SIDE_MOST 32000 /* points: cairo has no larger pictures */

enum { FORMAT_RGB = 1 };

struct rectangle {
    double x, y, width, height;
};
struct failure { /* GError */
    unsigned domain;
    int code;
    char *message;
};
struct rsvg;
struct cairo;
struct surface;
typedef int writer(void *of, const unsigned char *data, unsigned len);

static struct {
    struct rsvg *(*load)(const unsigned char *, size_t, struct failure **);
    int (*render)(struct rsvg *, struct cairo *, const struct rectangle *, struct failure **);
    struct surface *(*surface)(int, int, int);
    int (*surface_status)(struct surface *);
    void (*surface_free)(struct surface *);
    int (*write)(struct surface *, writer *, void *);
    struct cairo *(*cairo)(struct surface *);
    void (*cairo_free)(struct cairo *);
    const char *(*words)(int);
    void (*unref)(void *);
    void (*failure_free)(struct failure *);
} lib;

#define SYMBOL(field, name) PR_DL_SYMBOL(lib, field, name)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;
static char missing[200]; /* why it is not loaded */

/* Those of cairo and glib are found through librsvg, which needs them. */
static void load(void)
{
    const struct pr_dl_symbol symbols[] = {
        SYMBOL(load, "rsvg_handle_new_from_data"),
        SYMBOL(render, "rsvg_handle_render_document"),
        SYMBOL(surface, "cairo_image_surface_create"),
        SYMBOL(surface_status, "cairo_surface_status"),
        SYMBOL(surface_free, "cairo_surface_destroy"),
        SYMBOL(write, "cairo_surface_write_to_png_stream"),
        SYMBOL(cairo, "cairo_create"),
        SYMBOL(cairo_free, "cairo_destroy"),
        SYMBOL(words, "cairo_status_to_string"),
        SYMBOL(unref, "g_object_unref"),
        SYMBOL(failure_free, "g_error_free"),
    };
    loaded = pr_dl_open_whole(LIBRARY, symbols, sizeof symbols / sizeof *symbols, &lib, missing,
                              sizeof missing);
}

int pr_png_ready(struct proctor_error *err)
{
    pthread_once(&once, load);
    return loaded ? 0 : pr_error(err, ENOTSUP, "PNG cannot be drawn: %s: " REMEDY, missing);
}

static int add(void *of, const unsigned char *data, unsigned len)
{
    struct pr_buf *out = of;
    pr_buf_add(out, data, len);
    return out->failed; /* 1 is CAIRO_STATUS_NO_MEMORY */
}

static int failed(struct failure *why, struct proctor_error *err)
{
    int code =
        pr_error(err, EIO, "PNG cannot be drawn: %.300s", why ? why->message : "librsvg failed");
    if (why)
        lib.failure_free(why);
    return code;
}

static int draw(struct pr_buf *out, struct rsvg *svg, double width, double height,
                struct proctor_error *err)
{
    const struct rectangle all = {0, 0, width, height};
    struct failure *why = NULL;
    struct surface *surface = lib.surface(FORMAT_RGB, (int)width, (int)height);
    struct cairo *cairo = lib.cairo(surface);
    int status = lib.surface_status(surface), code = 0;
    if (status == 0 && !lib.render(svg, cairo, &all, &why))
        code = failed(why, err);
    if (status == 0 && code == 0)
        status = lib.write(surface, add, out);
    if (status != 0)
        code = pr_error(err, EIO, "PNG cannot be drawn: %s", lib.words(status));
    lib.cairo_free(cairo);
    lib.surface_free(surface);
    return code;
}

int pr_png(struct pr_buf *out, const struct pr_picture *picture, struct proctor_error *err)
{
    struct failure *why = NULL;
    int code = pr_png_ready(err);
    if (code < 0)
        return code;
    double scale = fmin(2, SIDE_MOST / fmax(picture->width, picture->height));
    struct rsvg *svg = lib.load((const unsigned char *)picture->svg.data, picture->svg.len, &why);
    if (!svg)
        return failed(why, err);
    code = draw(out, svg, floor(picture->width * scale), floor(picture->height * scale), err);
    lib.unref(svg);
    return code;
}
