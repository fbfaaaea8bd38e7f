/* SPDX-License-Identifier: Apache-2.0 */
#include "store/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char **pr_stored_texts(const struct pr_stored *r, const char *sql, size_t *ret_count)
{
    struct pr_query *q = NULL;
    char **items = calloc(1, sizeof *items);
    size_t count = 0;
    if (r->about && pr_query_new(&q, r->db, sql) == 0) {
        pr_query_text(q, 1, r->about);
        while (items && pr_query_step(q) == 1) {
            const char *text = pr_query_get_text(q, 0);
            char **more = reallocarray(items, count + 2, sizeof *items);
            items = more ? more : items;
            if (!more || !text || !(items[count] = strdup(text)))
                break;
            items[++count] = NULL;
        }
    }
    pr_query_free(q);
    *ret_count = count;
    return items;
}

void pr_stored_texts_free(char **texts)
{
    for (char **text = texts; text && *text; text++)
        free(*text);
    free(texts);
}

/* 0 where there is none: a file may say anything. */
static pid_t pid_of(const struct pr_stored *r, const char *path)
{
    double pid = pr_stored_number(r, r->about, path);
    return pid >= 1 && pid < 1e9 ? (pid_t)pid : 0;
}

int pr_stored_job(const struct pr_stored *r, struct pr_sink_job *ret_job)
{
    size_t words;
    char **argv = pr_stored_texts(r, "SELECT value FROM json_each(?1, '$.command')", &words);
    *ret_job = (struct pr_sink_job){.argv = argv,
                                    .pid = pid_of(r, "$.job.pid"),
                                    .group = pid_of(r, "$.job.group"),
                                    .recorder = pid_of(r, "$.recorder.pid"),
                                    .no_gpu = pr_stored_number(r, r->about, "$.job.no_gpu") == 1,
                                    .exit_code = r->exit_code,
                                    .exit_signal = r->exit_signal};
    return argv ? 0 : -ENOMEM;
}

void pr_stored_job_done(struct pr_sink_job *job)
{
    pr_stored_texts_free((char **)job->argv);
    job->argv = NULL;
}
