/* SPDX-License-Identifier: Apache-2.0 */
#include "store/change.h"

#include "util/buf.h"

/* All take the summary. Beyond those that a summary has one by one, a phase only gets its length.
 */
static const char *const steps[] = {
    "DELETE FROM summary WHERE ?1 IS NOT NULL",
    "INSERT INTO summary(json, recovered) VALUES(?1, 1)",
    "UPDATE run SET ended = started + CAST(round(json_extract(?1, '$.run.duration') * 1e9)"
    " AS INTEGER)",
    "UPDATE phases SET data = (SELECT value FROM json_each(?1, '$.phases') WHERE"
    " json_extract(value, '$.name') = phases.name AND"
    " abs(json_extract(value, '$.start') * 1e9 - phases.start) < 2) WHERE seconds IS NULL",
    "UPDATE phases SET seconds = coalesce(json_extract(data, '$.seconds'),"
    " max(0, json_extract(?1, '$.run.duration') - start / 1e9)) WHERE seconds IS NULL",
};

static int do_step(struct pr_stored *r, const char *sql, const char *summary)
{
    struct pr_query *q = NULL;
    int code = pr_query_new(&q, r->db, sql);
    if (code == 0) {
        pr_query_text(q, 1, summary);
        code = pr_query_do(q);
    }
    pr_query_free(q);
    return code;
}

int pr_stored_complete(struct pr_stored *r, const char *summary, struct proctor_error *err)
{
    int code = pr_db_run(r->db, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == 0; i++)
        code = do_step(r, steps[i], summary);
    if (code == 0)
        code = pr_db_run(r->db, "COMMIT");
    if (code < 0) {
        pr_stored_failure(r, code, err);
        pr_db_run(r->db, "ROLLBACK");
        return code;
    }
    pr_stored_settle(r);
    return 0;
}

void pr_stored_settle(struct pr_stored *r)
{
    pr_db_run(r->db, "PRAGMA wal_checkpoint(TRUNCATE)");
    pr_db_run(r->db, "PRAGMA journal_mode=DELETE");
}
