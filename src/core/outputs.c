/* SPDX-License-Identifier: Apache-2.0 */
/* Where a session's samples go: the outputs that the settings name, and the run file. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/energy.h"
#include "core/net.h"
#include "core/own_files.h"
#include "core/run_file.h"
#include "core/session.h"

static const struct {
    size_t list; /* offset in struct pr_config */
    pr_sink_open *open;
} kinds[] = {
#define SINK(option, open) {offsetof(struct pr_config, option), open},
#include "core/sinks.def"
#undef SINK
};
#define KINDS (sizeof kinds / sizeof *kinds)

struct outputs {
    struct pr_sink **sinks;
    size_t count;
};

static const struct pr_list *named(const struct pr_session *s, size_t kind)
{
    return (const void *)((const char *)s->config + kinds[kind].list);
}

static int open_streams(struct pr_session *s, struct pr_sink_setting setting, struct outputs *o,
                        struct proctor_error *err)
{
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < named(s, kind)->count; i++) {
            setting.path = named(s, kind)->items[i];
            int r = kinds[kind].open(&setting, &o->sinks[o->count], err);
            if (r < 0)
                return r;
            if (o->sinks[o->count++]->ops->processes && s->config->machine && !setting.processes)
                return pr_error(err, EINVAL,
                                "--dialect: '%s' has rows of processes; the machine has them with "
                                "--processes",
                                setting.dialect);
        }
    return 0;
}

/* --- the run file ----------------------------------------------------------------------------- */

static int check_settings(const struct pr_config *c, struct proctor_error *err)
{
    if (c->output && c->no_record && c->origin[OPTION_OUTPUT] == ORIGIN_OPTION &&
        c->origin[OPTION_NO_RECORD] == ORIGIN_OPTION)
        return pr_error(err, EINVAL, "--output and --no-record exclude each other");
    return pr_config_check_table(c, err);
}

static int open_record(struct pr_session *s, struct pr_sink_setting setting, struct outputs *o,
                       struct proctor_error *err)
{
    char path[PATH_MAX];
    struct pr_run_name name = {s->config->output, s->run_id, s->config->node, s->config->force};
    setting.fd = pr_run_file_create(&name, path, sizeof path, err);
    if (setting.fd < 0)
        return setting.fd;
    setting.path = path;
    setting.held = &s->record_fds;
    setting.asked_for = s->config->output != NULL;
    s->file = strdup(path);
    int r = s->file ? pr_record_open(&setting, &o->sinks[o->count], err)
                    : pr_error(err, ENOMEM, "out of memory");
    if (r == 0) {
        o->count++;
        s->record_fds = 1;
        return 0;
    }
    pr_own_file_close(setting.fd);
    pr_run_file_remove(path);
    free(s->file);
    s->file = NULL;
    return r;
}

/* A record that nobody asked for is no reason to fail. */
static int try_record(struct pr_session *s, const struct pr_sink_setting *setting,
                      struct outputs *o, struct proctor_error *err)
{
    struct proctor_error why;
    int r = pr_config_is_recorded(s->config) ? open_record(s, *setting, o, &why) : 0;
    if (r < 0 && s->config->output)
        return pr_error(err, -r, "%s", why.message);
    if (r < 0)
        pr_event_problem(&s->events, 0, "the run is not recorded: %.150s", why.message);
    return 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

/* What people would call the job; never a pid, so that the next run has the same. */
static const char *job_name(const struct pr_session *s)
{
    static const char *const kinds_of[] = {[TARGET_TREE] = "process",
                                           [TARGET_GROUP] = "group",
                                           [TARGET_CGROUP] = "cgroup",
                                           [TARGET_MATCH] = "match",
                                           [TARGET_SYSTEM] = "machine"};
    const char *command = s->job.argv ? s->job.argv[0] : NULL;
    const char *slash = command ? strrchr(command, '/') : NULL;
    if (s->config->name)
        return s->config->name;
    if (slash && slash[1])
        return slash + 1;
    return command && *command ? command : kinds_of[s->watched.kind];
}

static int open_all(struct pr_session *s, struct outputs *o, struct proctor_error *err)
{
    struct pr_sink_setting setting = {.processes = s->config->processes,
                                      .select = s->select,
                                      .events = &s->events,
                                      .roll = &s->roll,
                                      .run = s->introduce ? s->introduce(s->words_data) : NULL,
                                      .name = job_name(s),
                                      .run_id = s->run_id,
                                      .node = s->config->node,
                                      .notes = &s->phases.notes,
                                      .dialect = pr_config_dialect(s->config),
                                      .table = s->config->table,
                                      .host = &s->host,
                                      .served = &s->served,
                                      .job = &s->job};
    int r = check_settings(s->config, err);
    if (r == 0)
        r = open_streams(s, setting, o, err);
    return r == 0 ? try_record(s, &setting, o, err) : r;
}

static void close_all(struct outputs *o)
{
    while (o->count--)
        o->sinks[o->count]->ops->close(o->sinks[o->count]);
    free(o->sinks);
}

/* A user's own come last; they are his until the writer has them. */
static int start_writer(struct pr_session *s, struct outputs *o, struct proctor_error *err)
{
    size_t count = o->count;
    for (size_t i = 0; i < s->own_sink_count; i++)
        o->sinks[count++] = s->own_sinks[i];
    for (size_t i = 0; i < count; i++) {
        s->want_devices |= o->sinks[i]->ops->devices;
        s->want_members |= o->sinks[i]->ops->processes;
        s->want_matches |= o->sinks[i]->ops->matches;
    }
    s->queue = pr_queue_new(o->sinks, count, &s->events);
    if (!s->queue)
        return pr_error(err, EAGAIN, "cannot start a thread to write the outputs");
    s->own_sink_count = 0;
    s->phases.notes.wanted = true;
    s->own_threads++;
    return 0;
}

int pr_session_open(struct pr_session *s, struct proctor_error *err)
{
    size_t wanted = 0;
    struct outputs o = {0};
    s->want_members = s->config->processes;
    if (s->select.reads & READ_ENERGY)
        pr_energy_open(&s->energy, &s->host);
    if (s->select.reads & READ_NET)
        pr_net_open(&s->net, &s->host, s->watched.empty_handed);
    for (size_t kind = 0; kind < KINDS; kind++)
        wanted += named(s, kind)->count;
    bool two = s->config->processes && !pr_config_dialect(s->config); /* files for each --csv */
    s->own_fds += (int)(wanted + (two ? s->config->csv.count : 0));
    if (!wanted && !s->own_sink_count && !pr_config_is_recorded(s->config))
        return check_settings(s->config, err);
    o.sinks = calloc(wanted + 1 + s->own_sink_count, sizeof *o.sinks);
    int r = o.sinks ? open_all(s, &o, err) : pr_error(err, ENOMEM, "out of memory");
    bool any = o.count || s->own_sink_count;
    if (r == 0 && any)
        r = start_writer(s, &o, err);
    if (r < 0 || !any)
        close_all(&o);
    return r;
}
