/* SPDX-License-Identifier: Apache-2.0 */
/* What run and attach have in common: how a recording begins, and what is written at its end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "util/fs.h"

static void say(const char *text, void *data)
{
    (void)data;
    pr_complain("%s", text);
}

int pr_usage_status(const struct pr_command *command)
{
    return command->bit == CMD_RUN ? EXIT_OWN_FAILURE : EXIT_USAGE;
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
    m->say = say;
    *ret_first = pr_cli_parse(command, argc, argv, &m->config, &help);
    if (*ret_first > 0 && !help)
        return m;
    if (help) {
        pr_cli_help(command);
        *ret_status = 0;
    }
    proctor_monitor_free(m);
    return NULL;
}

int pr_summary_file_open(struct pr_summary_file *f, const char *path, struct proctor_error *err)
{
    struct stat st;
    *f = (struct pr_summary_file){.fd = -1};
    if (!path)
        return 0;
    snprintf(f->path, sizeof f->path, "%s", path);
    if (strcmp(path, "-") == 0)
        f->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    else if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* a device or a pipe stays what it is */
        f->fd = open(path, (S_ISFIFO(st.st_mode) ? O_RDWR : O_WRONLY) | O_CLOEXEC | O_NOCTTY);
    else {
        snprintf(f->temporary, sizeof f->temporary, "%s.%d.tmp", path, (int)getpid());
        f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (f->fd < 0)
        return pr_error(err, errno, "cannot open '%s' for --summary: %s", path, strerror(errno));
    return 0;
}

void pr_summary_file_cancel(struct pr_summary_file *f)
{
    if (f->fd < 0)
        return;
    close(f->fd);
    if (f->temporary[0])
        unlink(f->temporary);
    f->fd = -1;
}

static void write_file(struct proctor_monitor *m, struct pr_summary_file *f)
{
    const char *json = proctor_monitor_summary_json(m);
    size_t done;
    int r = json ? pr_fs_write(f->fd, json, strlen(json), &done) : -ENOMEM;
    if (close(f->fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && f->temporary[0] && rename(f->temporary, f->path) < 0)
        r = -errno;
    if (r < 0) {
        if (f->temporary[0])
            unlink(f->temporary);
        pr_event_problem(&m->session.events, m->session.stats.seconds,
                         "cannot write the summary to '%s': %s", f->path, strerror(-r));
    }
    f->fd = -1;
}

static bool has_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static bool wants_color(const struct pr_config *c)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    if (strcmp(c->color, "auto") != 0)
        return strcmp(c->color, "always") == 0;
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO);
}

static void list_absent(struct proctor_monitor *m)
{
    for (int id = 0; id < METRIC_COUNT; id++)
        if (pr_selected(&m->session.select, id) && m->session.reason[id][0])
            pr_complain("%s: %s", pr_metrics[id].key, m->session.reason[id]);
}

void pr_finish(struct proctor_monitor *m, struct pr_summary_file *f)
{
    struct pr_buf text = {0};
    size_t done;
    if (f->fd >= 0)
        write_file(m, f);
    if (m->config.verbose)
        list_absent(m);
    if (m->config.quiet)
        return;
    pr_summary_text(&text, &m->session, &m->facts, wants_color(&m->config), has_utf8());
    pr_fs_write(STDERR_FILENO, text.data, text.len, &done);
    pr_buf_done(&text);
}

int pr_signals_open(const sigset_t *set)
{
    int fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}
