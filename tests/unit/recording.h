/* SPDX-License-Identifier: Apache-2.0 */
/* A session over a tree, set up as src/lib/monitor.c does it. */
#pragma once
#include "tree.h"
#include "core/job.h"

struct recording {
    struct pr_config config;
    struct pr_session s;
    char dir[TREE_PATH];
};

static inline void option(struct recording *r, enum pr_option_id id, const char *value)
{
    struct proctor_error err;
    if (pr_config_set(&r->config, id, value, ORIGIN_OPTION, pr_options[id].name, &err) < 0)
        fail_msg("%s", err.message);
}

/* An empty tree, and settings for it: short intervals, and a budget that PSS always fits in. */
static inline void recording_new(struct recording *r)
{
    memset(r, 0, sizeof *r);
    tree_new(r->dir);
    assert_int_equal(pr_config_init(&r->config), 0);
    option(r, OPTION_ROOT, r->dir);
    option(r, OPTION_INTERVAL, "1ms");
    option(r, OPTION_BUDGET, "100000%");
}

static inline void recording_begin(struct recording *r, struct pr_target_setting setting)
{
    struct proctor_error err;
    setting.alone = r->config.no_children;
    memset(&r->s, 0, sizeof r->s);
    if (pr_session_init(&r->s, &r->config, &err) < 0 ||
        pr_session_watch(&r->s, &setting, &err) < 0 || pr_session_open(&r->s, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(pr_session_begin(&r->s), 0);
}

static inline void recording_done(struct recording *r)
{
    pr_session_done(&r->s);
    pr_config_done(&r->config);
    tree_done(r->dir);
}

static inline void recording_tick(struct recording *r)
{
    usleep(1500); /* more than half an interval, so that there are rates */
    pr_session_tick(&r->s);
}

#define value_of(r, id) ((r)->s.now.value[METRIC_##id])
