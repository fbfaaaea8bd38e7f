/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of SVG. */
#include "report/svg.h"

#include <math.h>
#include <string.h>

#include "util/text.h"

#define FONT "system-ui, -apple-system, &apos;Segoe UI&apos;, &apos;DejaVu Sans&apos;, sans-serif"

void pr_svg_escape(struct pr_buf *out, const char *text, size_t most)
{
    struct pr_buf line = {0};
    pr_text_line(&line, text, most);
    for (const char *p = pr_buf_text(&line); *p; p++) {
        const char *entity = *p == '<'    ? "&lt;"
                             : *p == '>'  ? "&gt;"
                             : *p == '&'  ? "&amp;"
                             : *p == '"'  ? "&quot;"
                             : *p == '\'' ? "&apos;"
                                          : NULL;
        if (entity)
            pr_buf_str(out, entity);
        else
            pr_buf_char(out, *p);
    }
    out->failed |= line.failed;
    pr_buf_done(&line);
}

void pr_svg_number(struct pr_buf *out, double v)
{
    pr_units_number(out, round(v * 10) / 10);
}

static void attribute(struct pr_buf *out, const char *name, double v)
{
    pr_buf_printf(out, " %s=\"", name);
    pr_svg_number(out, v);
    pr_buf_char(out, '"');
}

void pr_svg_text(struct pr_buf *out, double x, double y, const struct pr_svg_pen *pen,
                 const char *text, size_t most)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    pr_buf_str(out, "<text");
    attribute(out, "x", x);
    attribute(out, "y", y);
    attribute(out, "font-size", pen->size);
    pr_buf_printf(out, " fill=\"%s\"%s%s%s>", pen->color, anchors[pen->anchor],
                  pen->bold ? " font-weight=\"600\"" : "",
                  pen->halo ? " stroke=\"#fff\" stroke-width=\"3\" stroke-linejoin=\"round\" "
                              "paint-order=\"stroke\""
                            : "");
    pr_svg_escape(out, text, most);
    pr_buf_str(out, "</text>\n");
}

void pr_svg_rect(struct pr_buf *out, const struct pr_box *box, const char *fill)
{
    pr_buf_str(out, "<rect");
    attribute(out, "x", box->x);
    attribute(out, "y", box->y);
    attribute(out, "width", box->w);
    attribute(out, "height", box->h);
    pr_buf_printf(out, " fill=\"%s\"/>\n", fill);
}

void pr_svg_line(struct pr_buf *out, double x1, double y1, double x2, double y2, const char *color,
                 double width, const char *dash)
{
    pr_buf_str(out, "<line");
    attribute(out, "x1", x1);
    attribute(out, "y1", y1);
    attribute(out, "x2", x2);
    attribute(out, "y2", y2);
    pr_buf_printf(out, " stroke=\"%s\"", color);
    attribute(out, "stroke-width", width);
    if (dash)
        pr_buf_printf(out, " stroke-dasharray=\"%s\"", dash);
    pr_buf_str(out, "/>\n");
}

void pr_svg_document(struct pr_buf *out, struct pr_buf *parts, double width, double height,
                     const char *title, const char *words)
{
    const struct pr_box all = {0, 0, width, height};
    pr_buf_str(out, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    attribute(out, "width", width);
    attribute(out, "height", height);
    pr_buf_str(out, " viewBox=\"0 0 ");
    pr_svg_number(out, width);
    pr_buf_char(out, ' ');
    pr_svg_number(out, height);
    pr_buf_str(out, "\" role=\"img\" font-family=\"" FONT "\">\n<title>");
    pr_svg_escape(out, title, 0);
    pr_buf_str(out, "</title>\n<desc>");
    pr_svg_escape(out, words, 0);
    pr_buf_str(out, "</desc>\n");
    pr_svg_rect(out, &all, "#fff");
    pr_buf_add(out, parts->data, parts->len);
    pr_buf_str(out, "</svg>\n");
    out->failed |= parts->failed;
}

void pr_svg_clip(struct pr_buf *out, const struct pr_box *box)
{
    const double parts[] = {box->x, box->y, box->w, box->h};
    static const char *const names[] = {"x", "y", "width", "height"};
    pr_buf_str(out, "<svg");
    for (int i = 0; i < 4; i++) {
        pr_buf_printf(out, " %s=\"", names[i]);
        pr_svg_number(out, parts[i]);
        pr_buf_char(out, '"');
    }
    for (int i = 0; i < 4; i++) {
        pr_buf_str(out, i ? " " : " viewBox=\"");
        pr_svg_number(out, parts[i]);
    }
    pr_buf_str(out, "\">\n");
}
