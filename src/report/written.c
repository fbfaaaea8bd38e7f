/* SPDX-License-Identifier: Apache-2.0 */
#include "report/written.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/document.h"
#include "report/model.h"
#include "report/nodes.h"
#include "report/png.h"
#include "util/fs.h"
#include "util/output.h"

/* --- what FILE's ending says --------------------------------------------------------------------
 */

enum form { FORM_HTML, FORM_JSON, FORM_MARKDOWN, FORM_TEXT, FORM_SVG, FORM_PNG };
static const struct {
    const char *ending;
    enum form form;
} forms[] = {
    {".html", FORM_HTML}, {".htm", FORM_HTML}, {".md", FORM_MARKDOWN}, {".txt", FORM_TEXT},
    {".svg", FORM_SVG},   {".png", FORM_PNG},  {".json", FORM_JSON},
};

static const char *ending_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return dot ? dot : "";
}

static int form_of(const char *path, enum form *ret, struct proctor_error *err)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcasecmp(ending_of(path), forms[i].ending) == 0) {
            *ret = forms[i].form;
            return 0;
        }
    return pr_error(err, EINVAL, "'%.300s': its ending says what a report is: " REPORT_ENDINGS,
                    path);
}

int pr_report_check_place(const char *path, struct proctor_error *err)
{
    struct stat st;
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    bool there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode))
        return pr_error(err, EISDIR, "'%.300s': %s", path, strerror(EISDIR));
    if (there && !S_ISREG(st.st_mode))
        return 0;
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash > path ? slash - path : 1), path);
    int code = access(folder, W_OK | X_OK) < 0 ? -errno : 0;
    return code < 0 ? pr_error(err, -code, "'%.300s': %s", path, strerror(-code)) : 0;
}

int pr_report_check(const char *path, struct proctor_error *err)
{
    enum form form;
    int code = form_of(path, &form, err);
    return code < 0            ? code
           : form == FORM_HTML ? pr_model_html_ready(err)
           : form == FORM_PNG  ? pr_png_ready(err)
                               : 0;
}

/* --- writing ------------------------------------------------------------------------------------
 */

static int write_all(int fd, const struct pr_buf *text)
{
    size_t done;
    int code = fd < 0 ? fd : pr_fs_write(fd, text->data, text->len, &done);
    if (fd >= 0 && close(fd) < 0 && code == 0)
        code = -errno;
    return code;
}

int pr_report_replace(const char *path, const struct pr_buf *text)
{
    char temporary[PATH_MAX];
    if (!pr_output_is_plain(path))
        return write_all(pr_output_open_late(path), text);
    if (snprintf(temporary, sizeof temporary, "%s.%d.tmp", path, (int)getpid()) >=
        (int)sizeof temporary)
        return -ENAMETOOLONG;
    unlink(temporary); /* of somebody who had our pid before us */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int code = write_all(fd < 0 ? -errno : fd, text);
    if (code == 0 && rename(temporary, path) < 0)
        code = -errno;
    if (code < 0 && fd >= 0)
        unlink(temporary);
    return code;
}

static int put(const char *path, const struct pr_buf *text, struct proctor_error *err)
{
    int code = pr_report_replace(path, text);
    return code < 0 ? pr_error(err, -code, "%s: '%.300s'", strerror(-code), path) : 0;
}

static int append(const char *path, const struct pr_buf *text, struct proctor_error *err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    int code = write_all(fd < 0 ? -errno : fd, text);
    return code < 0 ? pr_error(err, -code, "%s: '%.300s'", strerror(-code), path) : 0;
}

/* All that is known of the runs. */
struct known {
    const struct pr_model **models;
    struct pr_by_name *names; /* NULL where nobody wants them */
    size_t count;
};

/* --- pictures -----------------------------------------------------------------------------------
 */

static int put_picture(const char *path, struct pr_picture *picture, bool png,
                       struct proctor_error *err)
{
    struct pr_buf data = {0};
    int code = png ? pr_png(&data, picture, err) : 0;
    if (code == 0)
        code = put(path, png ? &data : &picture->svg, err);
    pr_buf_done(&data);
    return code;
}

/* plot -1: the overview. */
static int draw_picture(const struct known *k, size_t run, int plot, const char *folder, bool png,
                        struct proctor_error *err)
{
    struct pr_picture picture = {0};
    struct pr_buf path = {0};
    pr_buf_printf(&path, "%s/", folder);
    pr_document_file(&path, run, k->count, plot);
    pr_buf_str(&path, png ? ".png" : ".svg");
    int code = plot < 0 ? pr_svg_report(&picture, &k->models[run], 1, err)
                        : pr_svg_name_plot(&picture, &k->names[run], plot, err);
    if (code == 0)
        code = put_picture(pr_buf_text(&path), &picture, png, err);
    pr_buf_done(&picture.svg);
    pr_buf_done(&path);
    return code;
}

/* Pictures first: the document is complete when it is there. */
static int draw_markdown(struct pr_buf *text, const struct known *k, const char *path, bool png,
                         struct proctor_error *err)
{
    char folder[PATH_MAX];
    size_t stem = strlen(path) - strlen(ending_of(path));
    if (snprintf(folder, sizeof folder, "%.*s_files", (int)stem, path) >= (int)sizeof folder)
        return pr_error(err, ENAMETOOLONG, "%s: '%.300s'", strerror(ENAMETOOLONG), path);
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return pr_error(err, errno, "%s: '%.300s'", strerror(errno), folder);
    for (size_t i = 0; i < k->count; i++)
        for (int plot = -1; plot < NAME_PLOTS; plot++) {
            bool there = plot < 0 || !pr_svg_name_absent(&k->names[i], plot);
            int code = there ? draw_picture(k, i, plot, folder, png, err) : 0;
            if (code < 0)
                return code;
        }
    const char *slash = strrchr(folder, '/');
    return pr_document(text, DOCUMENT_MARKDOWN, k->models, k->names, k->count,
                       slash ? slash + 1 : folder, png ? ".png" : ".svg", err);
}

/* --- all of it ----------------------------------------------------------------------------------
 */

static int draw_form(struct pr_buf *text, const struct known *k, const char *path, enum form form,
                     bool png, struct proctor_error *err)
{
    struct pr_picture picture = {0};
    int code = 0;
    switch (form) {
    case FORM_HTML:
        return pr_model_html(text, k->models, k->count, err);
    case FORM_JSON:
        pr_model_json(text, k->models, k->count);
        pr_buf_char(text, '\n');
        return text->failed ? pr_error(err, ENOMEM, "out of memory") : 0;
    case FORM_MARKDOWN:
        return draw_markdown(text, k, path, png, err);
    case FORM_TEXT:
        return pr_document(text, DOCUMENT_TEXT, k->models, NULL, k->count, NULL, NULL, err);
    case FORM_SVG:
    case FORM_PNG:
        code = pr_svg_report(&picture, k->models, k->count, err);
        if (code == 0 && form == FORM_PNG)
            code = pr_png(text, &picture, err);
        else if (code == 0)
            pr_buf_add(text, picture.svg.data, picture.svg.len);
        pr_buf_done(&picture.svg);
        break;
    }
    return code;
}

static int draw(const struct known *k, const char *path, bool png, struct proctor_error *err)
{
    struct pr_buf text = {0};
    enum form form;
    int code = form_of(path, &form, err);
    if (code == 0)
        code = draw_form(&text, k, path, form, png, err);
    if (code == 0)
        code = put(path, &text, err);
    pr_buf_done(&text);
    return code;
}

static int draw_behind(const struct known *k, const char *path, struct proctor_error *err)
{
    struct pr_buf text = {0};
    int code = pr_document(&text, DOCUMENT_ALONE, k->models, k->names, k->count, NULL, NULL, err);
    if (code == 0)
        code = append(path, &text, err);
    pr_buf_done(&text);
    return code;
}

bool pr_report_has_names(char *const *paths, size_t count)
{
    bool has = false;
    for (size_t i = 0; i < count; i++)
        has |= strcasecmp(ending_of(paths[i]), ".md") == 0;
    return has;
}

/* One that cannot be written keeps no other back; the first of them is said. */
static int draw_all(const struct known *k, char *const *paths, size_t count,
                    const struct pr_report_how *how, struct proctor_error *err)
{
    struct proctor_error later;
    int first = 0;
    for (size_t i = 0; i < count; i++) {
        int code = draw(k, paths[i], how->png, first < 0 ? &later : err);
        first = first < 0 ? first : code;
    }
    if (how->append) {
        int code = draw_behind(k, how->append, first < 0 ? &later : err);
        first = first < 0 ? first : code;
    }
    return first;
}

/* Models and what is drawn of them: a job on several nodes comes first. */
struct made {
    struct pr_model *models, **order, job;
    struct known known;
    bool one; /* it is a job on several nodes */
};

static int read_models(struct made *w, struct pr_stored *const *runs, size_t count,
                       struct proctor_error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < count; i++) {
        /* Curves are summed before they are reduced to what there is room for. */
        code = pr_model_read(&w->models[i], runs[i], MODEL_BYTES / (w->one ? 1 : count), err);
        w->order[i] = &w->models[i];
    }
    if (code == 0 && w->one)
        code = pr_nodes_model(&w->job, w->order, count, MODEL_BYTES / 2, err);
    struct known *k = &w->known;
    if (w->one)
        k->models[k->count++] = &w->job;
    for (size_t i = 0; code == 0 && i < count && !(w->one && count > NODES_SHOWN); i++) {
        if (w->one)
            pr_model_shrink(w->order[i], MODEL_BYTES / 2 / count);
        if (k->names)
            code = pr_by_name_read(&k->names[k->count], runs[w->order[i] - w->models], w->order[i],
                                   err);
        k->models[k->count++] = w->order[i];
    }
    return code;
}

int pr_report_write(struct pr_stored *const *runs, size_t count, char *const *paths,
                    size_t path_count, const struct pr_report_how *how, struct proctor_error *err)
{
    bool named = how->append || pr_report_has_names(paths, path_count);
    struct made w = {.models = calloc(count, sizeof *w.models),
                     .order = calloc(count, sizeof *w.order),
                     .one = pr_nodes_are_one(runs, count)};
    struct known *k = &w.known;
    k->models = calloc(count + 1, sizeof *k->models);
    k->names = named ? calloc(count + 1, sizeof *k->names) : NULL;
    int code = w.models && w.order && k->models && (k->names || !named)
                   ? 0
                   : pr_error(err, ENOMEM, "out of memory");
    if (code == 0)
        code = read_models(&w, runs, count, err);
    if (code == 0)
        code = draw_all(k, paths, path_count, how, err);
    pr_model_done(&w.job);
    for (size_t i = 0; w.models && i < count; i++)
        pr_model_done(&w.models[i]);
    for (size_t i = 0; k->names && i <= count; i++)
        pr_by_name_done(&k->names[i]);
    free(w.models);
    free(w.order);
    free(k->models);
    free(k->names);
    return code;
}
