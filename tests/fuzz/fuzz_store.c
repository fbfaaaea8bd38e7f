/* SPDX-License-Identifier: Apache-2.0 */
/* A run file in which bytes were changed: three bytes of the input say where, the fourth what. It
 * is opened, replayed and summarized. The index of SQLite and its checks are not ours: what must
 * hold is that we survive whatever it reads. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "core/run_file.h"
#include "fuzz.h"
#include "report/rebuild.h"
#include "util/fs.h"

static char path[] = "/tmp/proctor-fuzz-store-XXXXXX";
static char *whole;
static size_t length;

static const char rows[] =
    "INSERT INTO run(id, host, started, interval, about) VALUES('a', 'h', 1794768458000000000,"
    " 1000000000, '{\"name\":\"n\",\"command\":[\"a\"],\"labels\":{\"k\":\"v\"},\"way\":\"run\"}');"
    "INSERT INTO mark_sets VALUES(1, '{\"mem.pss\":\"lower bound\"}');"
    "INSERT INTO job_samples(sample, elapsed, interval, marks, cpu_time_seconds, procs)"
    " VALUES(1, 0, 0, 1, 0, 1), (2, 1000000000, 1000000000, 1, 0.5, 2), (3, 2000000000, 1000000000,"
    " 1, 1, 2);"
    "INSERT INTO system_samples(sample, interval) VALUES(1, 0), (2, 1000000000), (3, 1000000000);"
    "INSERT INTO entities(id, kind, name, pid, ppid, started, first, last, ended, exit_code)"
    " VALUES(1, 'process', 'p', 7, 1, 1794768458000000000, 1, 3, 1794768459000000000, 0),"
    " (2, 'core', '0', NULL, NULL, NULL, 1, NULL, NULL, NULL),"
    " (3, 'gpu', 'gpu0', NULL, NULL, NULL, 1, NULL, NULL, NULL),"
    " (4, 'disk', 'd', NULL, NULL, NULL, 1, NULL, NULL, NULL);"
    "INSERT INTO process_samples(sample, entity, cpu_time_seconds) VALUES(1, 1, 0), (3, 1, 1);"
    "INSERT INTO core_samples(sample, entity, system_cpu_time_seconds) VALUES(1, 2, 0), (3, 2, 1);"
    "INSERT INTO gpu_samples(sample, entity, gpu_power_watts) VALUES(1, 3, 100), (2, 3, NULL);"
    "INSERT INTO disk_samples(sample, entity, system_disk_read_bytes) VALUES(1, 4, 0), (3, 4, 9);"
    "INSERT INTO phases(name, start, seconds, depth, data) VALUES('p', 0, 1, 0, '{}'),"
    " ('q', 500000000, NULL, 1, NULL);"
    "INSERT INTO events(elapsed, event, name, text, data) VALUES(5, 'mark', 'm', '', '{\"a\":1}'),"
    " (6, 'oom', NULL, 't', NULL);";

static void make(void)
{
    struct pr_db *db = NULL;
    struct pr_buf sql = {0};
    bool shown[METRIC_COUNT];
    char why[160];
    memset(shown, 1, sizeof shown);
    int fd = mkstemp(path);
    FUZZ_ASSERT(fd >= 0 && pr_db_open(&db, path, DB_CHANGE, why, sizeof why) == 0);
    pr_buf_str(&sql, "PRAGMA page_size=512;");
    pr_run_file_schema(&sql);
    pr_run_file_metrics(&sql, shown);
    pr_buf_str(&sql, rows);
    FUZZ_ASSERT(pr_db_run(db, pr_buf_text(&sql)) == 0);
    pr_db_close(db);
    close(fd);
    pr_buf_done(&sql);
    FUZZ_ASSERT(pr_fs_slurp(AT_FDCWD, path, &whole, &length) == 0);
}

static void leave(void)
{
    unlink(path);
    free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pr_stored *r = NULL;
    struct pr_buf summary = {0};
    size_t done;
    if (!whole) {
        make();
        atexit(leave);
    }
    char *changed = fuzz_bytes((const uint8_t *)whole, length);
    for (size_t i = 0; i + 4 <= size; i += 4)
        changed[(data[i] | data[i + 1] << 8 | data[i + 2] << 16) % length] = (char)data[i + 3];
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    FUZZ_ASSERT(fd >= 0 && pr_fs_write(fd, changed, length, &done) == 0);
    close(fd);
    free(changed);
    int code = pr_stored_open(&r, path, STORED_READ, NULL);
    if (code == 0)
        code = pr_rebuild(r, &summary, NULL);
    FUZZ_ASSERT(code <= 0 && (code < 0 || (summary.len > 2 && summary.data[0] == '{')));
    pr_stored_close(r);
    pr_buf_done(&summary);
    return 0;
}
