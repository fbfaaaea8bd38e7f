/* SPDX-License-Identifier: Apache-2.0 */
/* The whole machine: its own figures come from machine sources; processes are members only where
 * somebody wants to see each of them. */
#include <errno.h>
#include <stdlib.h>

#include "target/listing.h"
#include "target/targets.h"

struct system {
    struct pr_target target;
    struct pr_target_setting setting;
    struct pr_listing listing;
};

static bool wants(const struct pr_target *target, const struct pr_tick *t,
                  const struct pr_stat_line *line)
{
    (void)t;
    return line->pid != ((const struct system *)target)->setting.self;
}

static int system_update(struct pr_target *target, const struct pr_tick *t, struct pr_entities *set)
{
    struct system *s = (struct system *)target;
    return s->setting.everybody ? pr_listing_update(&s->listing, target, t, set, wants) : 0;
}

static bool system_over(const struct pr_target *target, const struct pr_entities *set)
{
    (void)target, (void)set;
    return false;
}

static void system_free(struct pr_target *target, bool close_files)
{
    struct system *s = (struct system *)target;
    pr_listing_done(&s->listing, close_files);
    free(s);
}

static const struct pr_target_ops ops = {
    .update = system_update, .over = system_over, .free = system_free, .may_be_empty = true};

int pr_system_new(const struct pr_target_setting *setting, const struct pr_host *host,
                  struct pr_target **ret_target, struct proctor_error *err)
{
    struct system *s = calloc(1, sizeof *s);
    if (!s)
        return pr_error(err, ENOMEM, "out of memory");
    *s = (struct system){.target.ops = &ops, .setting = *setting};
    s->listing.loadavg = s->listing.list = -1;
    if (setting->everybody)
        pr_listing_open(&s->listing, host, false);
    s->target.files = pr_listing_files(&s->listing);
    *ret_target = &s->target;
    return 0;
}
