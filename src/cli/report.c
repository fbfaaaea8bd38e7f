/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor report RUN... -o FILE`, and --report of those that record. */
#include "cli/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/runs.h"
#include "report/model.h"
#include "util/fs.h"
#include "util/output.h"

#define SERIES_BYTES 500000 /* of all runs together: a page stays below 1 MB */
#define RUNS_MOST    20

/* --- what FILE's ending says --------------------------------------------------------------------
 */

enum form { FORM_HTML, FORM_JSON, FORM_LATER };
static const struct {
    const char *ending;
    enum form form;
} forms[] = {
    {".html", FORM_HTML}, {".htm", FORM_HTML},  {".json", FORM_JSON}, {".md", FORM_LATER},
    {".txt", FORM_LATER}, {".svg", FORM_LATER}, {".png", FORM_LATER},
};

static int form_of(const char *path, enum form *ret, struct proctor_error *err)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < sizeof forms / sizeof *forms; i++) {
        if (strcasecmp(dot, forms[i].ending) != 0)
            continue;
        if (forms[i].form == FORM_LATER)
            return pr_error(err, ENOTSUP,
                            "'%.300s': this version does not write %s yet; .html and .json it does",
                            path, forms[i].ending);
        *ret = forms[i].form;
        return *ret == FORM_HTML ? pr_model_html_ready(err) : 0;
    }
    return pr_error(err, EINVAL, "'%.300s': its ending says what a report is: .html or .json",
                    path);
}

int pr_report_check(const char *path, struct proctor_error *err)
{
    enum form form;
    return form_of(path, &form, err);
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

/* By rename, so that nobody ever sees half of it. */
static int replace(const char *path, const struct pr_buf *text)
{
    char temporary[PATH_MAX];
    if (!pr_output_is_plain(path))
        return write_all(pr_output_open_late(path), text);
    if (snprintf(temporary, sizeof temporary, "%s.%d.tmp", path, (int)getpid()) >=
        (int)sizeof temporary)
        return -ENAMETOOLONG;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int code = write_all(fd < 0 ? -errno : fd, text);
    if (code == 0 && rename(temporary, path) < 0)
        code = -errno;
    if (code < 0 && fd >= 0)
        unlink(temporary);
    return code;
}

static int draw(const struct pr_model *const *models, size_t count, const char *path,
                struct proctor_error *err)
{
    struct pr_buf text = {0};
    enum form form;
    int code = form_of(path, &form, err);
    if (code == 0 && form == FORM_HTML) {
        code = pr_model_html(&text, models, count, err);
    } else if (code == 0) {
        pr_model_json(&text, models, count);
        pr_buf_char(&text, '\n');
        code = text.failed ? pr_error(err, ENOMEM, "out of memory") : 0;
    }
    if (code == 0 && (code = replace(path, &text)) < 0)
        pr_error(err, -code, "%s: '%.300s'", strerror(-code), path);
    pr_buf_done(&text);
    return code;
}

int pr_report_write(struct pr_stored *const *runs, size_t count, char *const *paths,
                    size_t path_count, struct proctor_error *err)
{
    struct pr_model *models = calloc(count, sizeof *models);
    const struct pr_model **list = calloc(count, sizeof *list);
    int code = models && list ? 0 : pr_error(err, ENOMEM, "out of memory");
    for (size_t i = 0; code == 0 && i < count; i++) {
        code = pr_model_read(&models[i], runs[i], SERIES_BYTES / count, err);
        list[i] = &models[i];
    }
    for (size_t i = 0; code == 0 && i < path_count; i++)
        code = draw(list, count, paths[i], err);
    for (size_t i = 0; models && i < count; i++)
        pr_model_done(&models[i]);
    free(models);
    free(list);
    return code;
}

/* --- the command --------------------------------------------------------------------------------
 */

/* A file may be named only where it is none of the runs. */
static bool is_a_run(const char *path, struct pr_stored *const *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pr_runs_is_file(path, runs[i]->path)) {
            pr_complain("report: '%.300s' is the run itself", path);
            return true;
        }
    return false;
}

static int report(const struct pr_config *c, char *const *names, size_t count)
{
    struct proctor_error err;
    struct pr_stored *runs[RUNS_MOST] = {0};
    char *const paths[] = {(char *)c->report_into};
    size_t opened = 0;
    while (opened < count && (runs[opened] = pr_runs_open("report", names[opened])))
        opened++;
    int code = opened == count && !is_a_run(c->report_into, runs, count) ? 0 : -ENOENT;
    if (code == 0 && (code = pr_report_write(runs, count, paths, 1, &err)) < 0)
        pr_complain("report: %s", err.message);
    for (size_t i = 0; i < opened; i++)
        pr_stored_close(runs[i]);
    return code < 0 ? EXIT_FAILED : 0;
}

int pr_main_report(int argc, char **argv)
{
    struct pr_config c;
    struct proctor_error err;
    int status, first = pr_runs_begin("report", argc, argv, 1, RUNS_MOST, &c, &status);
    size_t count = 0;
    while (first && first + (int)count < argc && argv[first + (int)count])
        count++;
    if (first && !c.report_into)
        pr_complain("report: -o FILE is missing: its ending says what it is, .html or .json");
    else if (first && pr_report_check(c.report_into, &err) < 0)
        pr_complain("report: %s", err.message);
    else if (first)
        status = report(&c, argv + first, count);
    pr_config_done(&c);
    return status;
}

int pr_report_replace(const char *path, const struct pr_buf *text)
{
    return replace(path, text);
}
