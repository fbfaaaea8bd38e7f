/* SPDX-License-Identifier: Apache-2.0 */
/* What run and attach have in common: how a recording begins, and what is written at its end. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/cli.h"
#include "publish/mlflow.h"
#include "report/written.h"
#include "core/self.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/output.h"
#include "util/text.h"

static void say(const char *text, void *data)
{
    (void)data;
    pr_complain("%s", text);
}

int pr_usage_status(const struct pr_command *command)
{
    return command->bit == CMD_RUN ? EXIT_OWN_FAILURE : EXIT_USAGE;
}

/* The one name that all ways to a file have, which need not be there yet. */
static bool true_name(const char *path, char *text)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char folder[PATH_MAX] = ".";
    if (realpath(path, text))
        return true;
    if (slash && snprintf(folder, sizeof folder, "%.*s/", (int)(slash - path), path) >= PATH_MAX)
        return false;
    size_t n = realpath(folder, text) ? strlen(text) : PATH_MAX;
    return n < PATH_MAX && snprintf(text + n, PATH_MAX - n, "/%s", name) < (int)(PATH_MAX - n);
}

/* Several may write to a terminal or a pipe. */
static bool same_file(const char *a, const char *b)
{
    char x[PATH_MAX], y[PATH_MAX];
    return pr_output_is_plain(a) && pr_output_is_plain(b) && true_name(a, x) && true_name(b, y) &&
           strcmp(x, y) == 0;
}

/* The file that an option names, by number; NULL behind the last. */
static const char *output_at(const struct pr_config *c, size_t number, const char **ret_option)
{
    const struct pr_list *const lists[] = {&c->csv, &c->jsonl, &c->textfile, &c->report};
    static const char *const options[] = {"--csv",    "--jsonl",   "--textfile",
                                          "--report", "--summary", "--output"};
    for (size_t i = 0; i < 4; number -= lists[i++]->count)
        if (number < lists[i]->count) {
            *ret_option = options[i];
            return lists[i]->items[number];
        }
    const char *const single[] = {c->summary, c->output};
    for (size_t i = 0; i < 2; i++)
        if (single[i] && number-- == 0) {
            *ret_option = options[4 + i];
            return single[i];
        }
    return NULL;
}

/* Two outputs into one file would destroy each other. */
static bool outputs_differ(const char *name, const struct pr_config *c)
{
    const char *a, *b, *a_option, *b_option;
    for (size_t i = 0; (a = output_at(c, i, &a_option)); i++)
        for (size_t k = i + 1; (b = output_at(c, k, &b_option)); k++) {
            if (!same_file(a, b))
                continue;
            pr_complain("%s: %s and %s name the same file '%.300s': each needs one of its own",
                        name, a_option, b_option, b);
            return false;
        }
    return true;
}

/* What a report needs is known before the job starts. */
static bool reports_can_be(const char *name, const struct pr_config *c)
{
    struct proctor_error err;
    if (c->report.count && c->no_record) {
        pr_complain("%s: --report is made from the record of the run: it cannot be had with "
                    "--no-record",
                    name);
        return false;
    }
    for (size_t i = 0; i < c->report.count; i++)
        if (pr_report_check(c->report.items[i], &err) < 0 ||
            pr_report_check_place(c->report.items[i], &err) < 0) {
            pr_complain("%s: --report: %s", name, err.message);
            return false;
        }
    return true;
}

/* What is published is read from the record. */
static bool can_be_published(const char *name, const struct pr_config *c)
{
    const char *option = c->mlflow ? "--mlflow" : c->otlp ? "--otlp" : NULL;
    if (!option || !c->no_record)
        return true;
    pr_complain("%s: %s is sent from the record of the run: it cannot be had with --no-record",
                name, option);
    return false;
}

/* Which node of several this is, where it is published by that: whoever pushes the run later, and
 * wherever, finds it in the record. */
static void take_node(struct pr_config *c)
{
    char node[64];
    if (!c->mlflow || c->node)
        return;
    pr_mlflow_node(NULL, node, sizeof node);
    if (*node)
        pr_config_set(c, OPTION_NODE, node + strlen("node_"), ORIGIN_VARIABLE, "--node", NULL);
}

struct proctor_monitor *pr_recording_new(const char *name, int argc, char **argv, int *ret_first,
                                         int *ret_status)
{
    const struct pr_command *command = pr_command_find(name);
    struct proctor_monitor *m = NULL;
    bool help = false;
    *ret_status = pr_usage_status(command);
    if (proctor_monitor_new(&m, NULL) < 0) {
        pr_complain("%s: out of memory", name);
        return NULL;
    }
    m->outside = true;
    m->config.kept = true;
    m->say = say;
    *ret_first = pr_cli_parse(command, argc, argv, &m->config, &help);
    if (*ret_first > 0 && !help && outputs_differ(name, &m->config) &&
        reports_can_be(name, &m->config) && can_be_published(name, &m->config)) {
        take_node(&m->config);
        return m;
    }
    if (help) {
        pr_cli_help(command);
        *ret_status = 0;
    }
    proctor_monitor_free(m);
    return NULL;
}

/* Beside the file, so that it can be renamed over it; by its name, or where that would become too
 * long, by ours. */
static void name_temporary(struct pr_summary_file *f)
{
    uint32_t random = 0;
    const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;
    int folder = (int)(name - f->path);
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
        random = (uint32_t)pr_clock_boot();
    if (strlen(name) + strlen(".01234567.tmp") > NAME_MAX && strlen(name) <= NAME_MAX)
        name = "proctor-summary";
    snprintf(f->temporary, sizeof f->temporary, "%.*s%s.%08x.tmp", folder, f->path, name, random);
}

static int open_temporary(struct pr_summary_file *f)
{
    for (int tries = 0; tries < 10; tries++) {
        name_temporary(f);
        int fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd < 0 ? -errno : fd;
    }
    return -EEXIST;
}

int pr_summary_file_open(struct pr_summary_file *f, const char *path, struct proctor_error *err)
{
    *f = (struct pr_summary_file){.fd = -1, .wanted = path != NULL};
    if (!path)
        return 0;
    if (snprintf(f->path, sizeof f->path, "%s", path) >= (int)sizeof f->path)
        return pr_error(err, ENAMETOOLONG, "--summary: %s: '%s'", strerror(ENAMETOOLONG), path);
    f->fd = pr_output_is_plain(path) ? open_temporary(f) : pr_output_open(path);
    if (f->fd < 0 && f->fd != -ENXIO) /* a fifo may find its reader until the end */
        return pr_error(err, -f->fd, "--summary: %s: '%s'", strerror(-f->fd), path);
    return 0;
}

void pr_summary_file_cancel(struct pr_summary_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    if (f->fd >= 0 && f->temporary[0])
        unlink(f->temporary);
    f->fd = -1;
}

static void write_file(struct proctor_monitor *m, struct pr_summary_file *f)
{
    const char *json = proctor_monitor_summary_json(m);
    size_t done;
    if (f->fd < 0)
        f->fd = pr_output_open_late(f->path);
    int r = f->fd < 0 ? f->fd : json ? pr_fs_write(f->fd, json, strlen(json), &done) : -ENOMEM;
    if (f->fd >= 0 && close(f->fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && f->temporary[0] && rename(f->temporary, f->path) < 0)
        r = -errno;
    if (r < 0 && f->temporary[0])
        unlink(f->temporary);
    if (r < 0)
        pr_event_problem(&m->session.events, m->session.stats.seconds,
                         "%s: the summary cannot be written: %s", pr_text_tail(f->path, 100),
                         r == -ENXIO ? "nobody reads this fifo" : strerror(-r));
    f->fd = -1;
}

/* From the file, as anybody would have it afterwards. */
static void write_reports(struct proctor_monitor *m)
{
    const struct pr_list *list = &m->config.report;
    const struct pr_report_how how = {0};
    struct proctor_error err = {.message = "there is no record of this run"};
    struct pr_stored *r = NULL;
    int code = m->session.file ? pr_stored_open(&r, m->session.file, STORED_READ, &err) : -ENOENT;
    if (code == 0)
        code = pr_report_write(&r, 1, list->items, list->count, &how, &err);
    if (code < 0)
        pr_event_problem(&m->session.events, m->session.stats.seconds,
                         "the report cannot be written: %s%s%s%s", err.message,
                         r ? "; `proctor report " : "", r ? r->id : "",
                         r ? " -o FILE` makes it of the record" : "");
    pr_stored_close(r);
}

bool pr_has_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static unsigned width(void)
{
    struct winsize size;
    return isatty(STDERR_FILENO) && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool pr_wants_color(const struct pr_config *c, int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    if (strcmp(c->color, "auto") != 0)
        return strcmp(c->color, "always") == 0;
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(fd);
}

/* One line for each reason. */
static void list_absent(struct proctor_monitor *m)
{
    const struct pr_session *s = &m->session;
    bool said[METRIC_COUNT] = {0};
    for (int id = 0; id < METRIC_COUNT; id++) {
        struct pr_buf keys = {0};
        const char *reason = pr_summary_reason(s, (enum pr_metric_id)id);
        for (int other = id; other < METRIC_COUNT; other++) {
            enum pr_metric_id key = (enum pr_metric_id)other;
            if (said[other] || !pr_selected(&s->select, other) || pr_summary_known(s, key) ||
                !pr_metric_is_single(key) || strcmp(reason, pr_summary_reason(s, key)) != 0)
                continue;
            said[other] = true;
            pr_buf_printf(&keys, "%s%s", keys.len ? ", " : "", pr_metrics[other].key);
        }
        if (keys.len)
            pr_complain("absent: %.800s%s: %s", pr_buf_text(&keys), keys.len > 800 ? "..." : "",
                        reason);
        pr_buf_done(&keys);
    }
}

void pr_finish(struct proctor_monitor *m, struct pr_summary_file *f)
{
    struct pr_buf text = {0};
    size_t done;
    m->session.self_rss = pr_self_rss_peak(); /* that of recording, not of drawing */
    if (m->config.report.count)
        write_reports(m);
    if (f->wanted)
        write_file(m, f);
    if (m->config.verbose)
        list_absent(m);
    if (m->config.verbose && m->session.file)
        pr_complain("recorded in %s", m->session.file);
    if (m->config.quiet)
        return;
    struct pr_look look = {pr_wants_color(&m->config, STDERR_FILENO), pr_has_utf8(), width()};
    pr_summary_text(&text, &m->session, &m->facts, &look);
    pr_fs_write(STDERR_FILENO, text.data, text.len, &done);
    pr_buf_done(&text);
}

int pr_signals_open(const sigset_t *set)
{
    int fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}
