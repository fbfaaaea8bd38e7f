/* SPDX-License-Identifier: Apache-2.0 */
/* What a run was, said at its end: for people in at most eight lines, for programs as JSON. */
#pragma once
#include "core/publishing.h"
#include "core/session.h"
#include "report/rules.h"
#include "util/json.h"

enum pr_way {
    WAY_RUN,
    WAY_RUN_NO_SUBREAPER,
    WAY_ATTACH,
    WAY_ATTACH_ALONE,
    WAY_MATCH,
    WAY_SYSTEM,
    WAY_EVERYBODY, /* a machine with all its processes */
};

const char *pr_way_name(enum pr_way way);

/* What the session does not know itself. */
struct pr_facts {
    enum pr_way way;
    char **argv;                           /* NULL-terminated; borrowed */
    char target[512];                      /* "group 12"; "" where it is a command */
    char cwd[4096];                        /* of the job's first process; "" for unknown */
    pid_t pid;                             /* of whom we attached to, else 0 */
    int exit_code, exit_signal;            /* -1 where there is none */
    const char *host;                      /* that it was on, NULL for this one */
    const struct pr_publishing *published; /* at the end; NULL for nowhere, or not yet */
    size_t published_count;
    bool rebuilt; /* from a record: what only its recorder knew is not there */
};

void pr_summary_json(struct pr_buf *out, struct pr_session *s, const struct pr_facts *facts);
/* The same in one line and without the braces, and so what is known of the run at its start: for
 * sinks that write JSON themselves. */
void pr_summary_members(struct pr_buf *out, struct pr_session *s, const struct pr_facts *facts);
void pr_summary_run_members(struct pr_buf *out, const struct pr_session *s,
                            const struct pr_facts *facts);
/* Parts of it (summary_gpu.c): the devices, and what it has cost to read them. */
struct pr_json;
void pr_summary_devices(struct pr_json *j, const struct pr_session *s);
void pr_summary_gpu_cost(struct pr_json *j, const struct pr_session *s);
/* What the terminal can do. */
struct pr_look {
    bool color;
    bool bars;      /* blocks and lines, which need UTF-8 */
    unsigned width; /* columns, 0 where it is no terminal */
};

void pr_summary_text(struct pr_buf *out, struct pr_session *s, const struct pr_facts *facts,
                     const struct pr_look *look);

/* The most important thing to say of how it went, "" where there is nothing. */
void pr_summary_finding(const struct pr_session *s, const struct pr_facts *facts,
                        struct pr_buf *out);
/* What else stands out (rules.h), where it is worth a line on the screen. False where nothing is.
 */
bool pr_summary_worst(const struct pr_session *s, struct pr_finding *ret, struct pr_buf *out);
/* Processes that no sample has had: at least and at most; NaN for unknown. */
struct pr_unsampled {
    double least, most;
};
struct pr_unsampled pr_summary_unsampled(const struct pr_session *s, const struct pr_facts *facts);
/* Those with the most CPU time first. */
void pr_summary_sort_commands(struct pr_roll *r);
void pr_summary_processes(struct pr_json *j, struct pr_session *s, const struct pr_facts *facts);
/* The phases; the marks, as events among others. */
void pr_summary_phases(struct pr_json *j, const struct pr_session *s);
void pr_summary_marks(struct pr_json *j, const struct pr_session *s);
/* What recording has cost in memory. */
double pr_summary_self_rss(const struct pr_session *s);
/* Was it measured at all? */
bool pr_summary_known(const struct pr_session *s, enum pr_metric_id id);
/* Why not? */
const char *pr_summary_reason(const struct pr_session *s, enum pr_metric_id id);
/* How CPU and I/O totals were obtained, and whether anything may be missing. */
enum pr_account { ACCOUNT_CPU, ACCOUNT_IO };
const char *pr_summary_source(const struct pr_session *s, const struct pr_facts *facts,
                              enum pr_account account);
bool pr_summary_complete(const struct pr_session *s, const struct pr_facts *facts,
                         enum pr_account account);
/* What is missing, in words, into text; "" where nothing is known to be. */
void pr_summary_note(const struct pr_session *s, const struct pr_facts *facts,
                     enum pr_account account, struct pr_buf *out);
/* CPU time by the sum over processes, less that of the other account; NaN where there is none. */
double pr_summary_residual(const struct pr_session *s);
