/* SPDX-License-Identifier: Apache-2.0 */
/* Follows https://prometheus.io/docs/instrumenting/exposition_formats/ and OpenMetrics 1.0. Samples
 * carry no time: with one, a series that has gone would stay for five minutes, and the textfile
 * collector refuses it. The whole job has no label `match`, what goes by a name has one: a sum over
 * a metric must pick one of both. Cores, disks and interfaces are the node exporter's business. */
#include "sink/exposition.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/clock.h"
#include "util/scan.h"
#include "util/text.h"

#define PREFIX "proctor_"

struct page {
    struct pr_buf *out;
    const struct pr_exposition *of;
    enum pr_exposition_form form;
    const struct pr_metric *metric; /* whose samples come now */
    bool begun;                     /* its header is there */
};

/* --- text ------------------------------------------------------------------------------------- */

/* Between quotes, or in a line of help; what is not UTF-8 becomes U+FFFD. */
static void add_escaped(struct pr_buf *out, const char *text, bool quotes)
{
    for (const char *p = text, *end = text + strlen(text); p < end;) {
        size_t n = pr_text_utf8(p, end);
        if (*p == '\n')
            pr_buf_str(out, "\\n");
        else if (*p == '\\' || (*p == '"' && quotes))
            pr_buf_printf(out, "\\%c", *p);
        else if (n)
            pr_buf_add(out, p, n);
        else
            pr_buf_str(out, "\xef\xbf\xbd");
        p += n ? n : 1;
    }
}

static void add_label(struct pr_buf *out, const char *name, const char *text)
{
    pr_buf_printf(out, "%s%s=\"", out->len && out->data[out->len - 1] != '{' ? "," : "", name);
    add_escaped(out, text, true);
    pr_buf_char(out, '"');
}

void pr_exposition_name(struct pr_buf *out, const struct pr_metric *m)
{
    static const char count[] = "_count"; /* which histograms have for themselves */
    const size_t tail = sizeof count - 1;
    pr_buf_str(out, PREFIX);
    pr_metric_column(out, m);
    if (out->len <= tail || memcmp(out->data + out->len - tail, count, tail) != 0)
        return;
    out->len -= tail;
    pr_buf_char(out, 's');
}

static void add_comment(struct page *p, const char *what, const char *suffix)
{
    pr_buf_printf(p->out, "# %s ", what);
    pr_exposition_name(p->out, p->metric);
    pr_buf_str(p->out, suffix);
    pr_buf_char(p->out, ' ');
}

/* OpenMetrics names the family, the older format its only sample. */
static void begin_family(struct page *p)
{
    bool open = p->form == EXPOSITION_OPENMETRICS, counter = p->metric->kind == KIND_COUNTER;
    const char *suffix = counter && !open ? "_total" : "";
    const char *unit = pr_units_suffix(p->metric->unit);
    p->begun = true;
    add_comment(p, "HELP", suffix);
    add_escaped(p->out, p->metric->help, open);
    pr_buf_char(p->out, '\n');
    add_comment(p, "TYPE", suffix);
    pr_buf_str(p->out, counter ? "counter\n" : "gauge\n");
    if (!open || !*unit)
        return;
    add_comment(p, "UNIT", "");
    pr_buf_printf(p->out, "%s\n", unit + 1);
}

/* One sample, with a label of its own unless that is NULL. */
static void add_sample(struct page *p, double v, const char *label, const char *text)
{
    if (!isfinite(v))
        return;
    if (!p->begun)
        begin_family(p);
    pr_exposition_name(p->out, p->metric);
    pr_buf_str(p->out, p->metric->kind == KIND_COUNTER ? "_total{" : "{");
    pr_buf_str(p->out, p->of->labels);
    if (label)
        add_label(p->out, label, text);
    pr_buf_str(p->out, "} ");
    pr_units_number(p->out, v);
    pr_buf_char(p->out, '\n');
}

/* --- what there is ---------------------------------------------------------------------------- */

static void add_times(struct page *p, const struct proctor_snapshot *s)
{
    static const struct pr_metric rows[] = {
        {.key = "start.time", .unit = UNIT_SECONDS, .help = "when the recording began, Unix time"},
        {.key = "elapsed", .unit = UNIT_SECONDS, .help = "from there to the sample that this is"},
        {.key = "interval", .unit = UNIT_SECONDS, .help = "since the sample before"}};
    const double values[] = {pr_seconds(s->time - s->elapsed), pr_seconds(s->elapsed),
                             pr_seconds(s->interval)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        p->metric = &rows[i];
        p->begun = false;
        add_sample(p, values[i], NULL, NULL);
    }
}

static void add_metric(struct page *p, const struct proctor_snapshot *s, enum pr_metric_id id)
{
    int slot = pr_device_slot(DEVICE_GPU, id);
    p->metric = &pr_metrics[id];
    p->begun = false;
    if (pr_metric_is_single(id))
        add_sample(p, s->value[id], NULL, NULL);
    for (size_t i = 0; i < s->match_count && id < PROC_METRICS; i++)
        add_sample(p, s->matches[i].value[id], "match", s->matches[i].name);
    for (size_t i = 0; i < s->device_count && slot >= 0; i++)
        if (s->devices[i].kind == DEVICE_GPU)
            add_sample(p, s->devices[i].value[slot], "gpu", s->devices[i].name);
}

/* What GPUs are, beside their numbers, to be joined by the label gpu. */
static void add_gpus(struct page *p, const struct proctor_snapshot *s)
{
    bool begun = false, open = p->form == EXPOSITION_OPENMETRICS;
    for (size_t i = 0; i < s->device_count; i++) {
        const struct pr_device *d = &s->devices[i];
        if (d->kind != DEVICE_GPU || !d->uuid)
            continue;
        if (!begun)
            pr_buf_printf(p->out,
                          "# HELP " PREFIX "gpu%s model and uuid of a GPU\n"
                          "# TYPE " PREFIX "gpu%s %s\n",
                          open ? "" : "_info", open ? "" : "_info", open ? "info" : "gauge");
        begun = true;
        pr_buf_printf(p->out, PREFIX "gpu_info{%s", p->of->labels);
        add_label(p->out, "gpu", d->name);
        add_label(p->out, "model", d->model);
        add_label(p->out, "uuid", d->uuid);
        pr_buf_str(p->out, "} 1\n");
    }
}

void pr_exposition_write(struct pr_buf *out, const struct pr_exposition *x,
                         enum pr_exposition_form form, const struct proctor_snapshot *s)
{
    struct page page = {.out = out, .of = x, .form = form};
    add_times(&page, s);
    for (int id = 0; id < METRIC_COUNT; id++)
        if (pr_selected(&x->select, id))
            add_metric(&page, s, (enum pr_metric_id)id);
    add_gpus(&page, s);
    if (form == EXPOSITION_OPENMETRICS)
        pr_buf_str(out, "# EOF\n");
}

int pr_exposition_init(struct pr_exposition *x, const struct pr_sink_setting *setting)
{
    struct pr_buf labels = {0};
    add_label(&labels, "job", setting->name);
    add_label(&labels, "run", setting->run_id);
    if (setting->node)
        add_label(&labels, "node", setting->node);
    x->select = setting->select;
    x->labels = labels.failed ? NULL : strdup(pr_buf_text(&labels));
    pr_buf_done(&labels);
    return x->labels ? 0 : -ENOMEM;
}

void pr_exposition_done(struct pr_exposition *x)
{
    free(x->labels);
    x->labels = NULL;
}

/* --- which form ------------------------------------------------------------------------------- */

const char *pr_exposition_type(enum pr_exposition_form form)
{
    static const char *const types[] = {
        [EXPOSITION_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
        [EXPOSITION_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8"};
    return types[form];
}

static bool is_word(struct pr_scan s, const char *word)
{
    return strlen(word) == (size_t)(s.end - s.p) && strncasecmp(s.p, word, strlen(word)) == 0;
}

/* Up to the separator, without blanks around it; the cursor is behind it then. */
static struct pr_scan part(struct pr_scan *s, char separator)
{
    const char *end = memchr(s->p, separator, (size_t)(s->end - s->p));
    struct pr_scan found = {s->p, end ? end : s->end};
    s->p = end ? end + 1 : s->end;
    while (found.p < found.end && strchr(" \t", *found.p))
        found.p++;
    while (found.p < found.end && strchr(" \t", found.end[-1]))
        found.end--;
    return found;
}

/* "0.5" of q=0.5; what is not understood counts for nothing. */
static double weight(struct pr_scan s)
{
    uint64_t whole;
    double fraction = 0;
    if (!pr_scan_u64(&s, &whole) || whole > 1)
        return 0;
    if (pr_scan_prefix(&s, ".") && s.p < s.end && !pr_scan_fraction(&s, &fraction))
        return 0;
    return s.p < s.end ? 0 : fmin(1, (double)whole + fraction);
}

/* One range of media types: raises the weight of the form that it allows. */
static void weigh(struct pr_scan range, double *of)
{
    struct pr_scan type = part(&range, ';');
    double q = 1;
    bool open = is_word(type, "application/openmetrics-text");
    if (!open && !is_word(type, "text/plain") && !is_word(type, "text/*") && !is_word(type, "*/*"))
        return;
    while (range.p < range.end) {
        struct pr_scan value = part(&range, ';'), name = part(&value, '=');
        if (is_word(name, "q"))
            q = weight(value);
        else if (open && is_word(name, "version") && !is_word(value, "1.0.0"))
            return;
    }
    of[open] = fmax(of[open], q);
}

enum pr_exposition_form pr_exposition_choose(const char *accept)
{
    double of[EXPOSITION_FORMS] = {0};
    struct pr_scan s = pr_scan_of(accept ? accept : "", accept ? strlen(accept) : 0);
    while (s.p < s.end)
        weigh(part(&s, ','), of);
    bool open = of[EXPOSITION_OPENMETRICS] > 0 && of[EXPOSITION_OPENMETRICS] >= of[EXPOSITION_TEXT];
    return open ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT;
}
