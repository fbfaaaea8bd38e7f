/* SPDX-License-Identifier: Apache-2.0 */
/* The public API: phases and marks. */
#include <errno.h>

#include "core/annotate.h"
#include "lib/monitor.h"
#include "util/clock.h"

/* 1 done, 0 refused, or -errno. Without a thread that samples, the caller does it itself. */
static int do_it(struct proctor_monitor *m, const struct pr_request *r, struct proctor_error *err)
{
    int answer = pr_handover_ask(&m->handover, r);
    if (answer >= 0)
        return answer;
    if (m->started || m->stopped)
        return pr_error(err, EBUSY, "the record has ended");
    int code = pr_monitor_begin(m, err);
    if (code < 0)
        return code;
    answer = pr_annotate(&m->session, r, pr_clock_boot(), 0);
    if (m->session.queue)
        pr_queue_nudge(m->session.queue);
    return answer;
}

static int annotate(struct proctor_monitor *m, enum pr_request_verb verb, const char *name,
                    const char *data, struct proctor_error *err)
{
    struct pr_request r;
    int code = pr_monitor_check_caller(m, err);
    if (code < 0)
        return code;
    if (!pr_request_make(&r, verb, name, NULL))
        return pr_error(err, EINVAL, "'%.80s' is no name: 1 to %d bytes without control characters",
                        name, REQUEST_NAME);
    if (!pr_request_make(&r, verb, name, data))
        return pr_error(err, EINVAL, "the data of '%.80s' is no JSON object of up to %d bytes",
                        name, REQUEST_LINE - 1);
    code = do_it(m, &r, err);
    if (code == 0 && verb == REQUEST_END)
        return pr_error(err, ENOENT, "no phase '%.80s' is open", name);
    if (code == 0)
        return pr_error(err, EMFILE, "there are %d open phases already", PHASES_OPEN);
    return code < 0 ? code : 0;
}

int proctor_monitor_phase_begin(struct proctor_monitor *m, const char *name,
                                struct proctor_error *err)
{
    return annotate(m, REQUEST_BEGIN, name, NULL, err);
}

int proctor_monitor_phase_end(struct proctor_monitor *m, const char *name,
                              struct proctor_error *err)
{
    return annotate(m, REQUEST_END, name, NULL, err);
}

int proctor_monitor_mark(struct proctor_monitor *m, const char *name, const char *json,
                         struct proctor_error *err)
{
    return annotate(m, REQUEST_MARK, name, json, err);
}
