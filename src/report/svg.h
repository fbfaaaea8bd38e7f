/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a report as SVG that needs nothing else: no script, no style sheet, no font of its
 * own. Drawn as doc/report-model.md and the page have it: peaks survive, gaps are gaps, limits
 * where they matter. */
#pragma once
#include "report/model.h"

struct pr_by_name;

/* --- what is written ---------------------------------------------------------------------------
 */

#define SVG_INK     "#1f2429"
#define SVG_MUTED   "#5b636b"
#define SVG_CONTEXT "#8a9199"
#define SVG_GRID    "#e3e6e9"
#define SVG_BAND    "#f3f4f6"
#define SVG_BAD     "#d55e00"
#define SVG_BADTEXT "#b34700"

enum pr_anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };
struct pr_svg_pen {
    const char *color;
    double size; /* of letters */
    enum pr_anchor anchor;
    bool bold, halo; /* halo: a rim, so that it can be read on lines */
};
struct pr_box {
    double x, y, w, h;
};

/* Text of an element or attribute: one line, escaped. most: characters, 0 for all. */
void pr_svg_escape(struct pr_buf *out, const char *text, size_t most);
/* A coordinate, with one decimal at most. */
void pr_svg_number(struct pr_buf *out, double v);
void pr_svg_text(struct pr_buf *out, double x, double y, const struct pr_svg_pen *pen,
                 const char *text, size_t most);
/* A picture within it that shows nothing beyond the box: until "</svg>". */
void pr_svg_clip(struct pr_buf *out, const struct pr_box *box);
void pr_svg_rect(struct pr_buf *out, const struct pr_box *box, const char *fill);
/* dash NULL: a whole line. */
void pr_svg_line(struct pr_buf *out, double x1, double y1, double x2, double y2, const char *color,
                 double width, const char *dash);
/* The whole picture around its parts: title and words for those who do not see it. */
void pr_svg_document(struct pr_buf *out, struct pr_buf *parts, double width, double height,
                     const char *title, const char *words);

/* --- a plot ------------------------------------------------------------------------------------
 */

#define PLOT_LINES  40
#define PLOT_BOUNDS 8

struct pr_plot_line {
    const struct pr_curve *curve;
    const char *label, *color, *ink, *dash; /* ink: of letters; dash NULL for none */
    double width;
    double factor;      /* from a value to one of the axis; below 0 it is drawn downwards */
    double peak, at;    /* NaN where no peak is to be marked */
    bool band;          /* least and most, pale */
    bool context, step; /* step: a sample is level over its time */
};
struct pr_plot_bound {
    double value;
    const char *text;
    bool limit;  /* else what the machine has */
    bool always; /* where it lies far above, it is said above the plot */
};
struct pr_plot {
    const char *title, *absent; /* absent: why there is nothing to draw, or NULL */
    enum pr_unit unit;
    const struct pr_curves *time;
    double duration;
    struct pr_plot_line lines[PLOT_LINES];
    size_t count;
    struct pr_plot_bound bounds[PLOT_BOUNDS];
    size_t bound_count;
    const struct pr_curve *total; /* lines are stacked, and this is their sum; or NULL */
};

/* Within the box are lines and bounds; figures of the axis left of it, names right of it. */
void pr_svg_plot(struct pr_buf *out, const struct pr_plot *p, const struct pr_box *box);
/* The time axis below a box, and lines of it through all above from `top`. */
void pr_svg_time(struct pr_buf *out, double duration, const struct pr_box *box, double top);
/* 1, 2 or 5 times a power of ten, so that there are at most so many steps up to `size`. */
double pr_svg_step(double size, int most);

/* --- pictures ----------------------------------------------------------------------------------
 */

struct pr_picture {
    struct pr_buf svg;
    double width, height;
};

/* Verdict, findings, phases and the four charts of each run, one below another. */
int pr_svg_report(struct pr_picture *out, const struct pr_model *const *runs, size_t count,
                  struct proctor_error *err);
/* The plots of what each name used: their number, and one of them. */
struct pr_name_plot {
    const char *file, *title, *note;
};
#define NAME_PLOTS 6
extern const struct pr_name_plot pr_name_plots[NAME_PLOTS];
/* Why there is no such plot, or NULL. */
const char *pr_svg_name_absent(const struct pr_by_name *n, int plot);
int pr_svg_name_plot(struct pr_picture *out, const struct pr_by_name *n, int plot,
                     struct proctor_error *err);
