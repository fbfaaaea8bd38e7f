/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "core/metric.h"

/* interface.md section 5: keys that others rely on, with their unit and kind where it is said. */
static const char *const promised[] = {
    "cpu.user",      "cpu.system",      "cpu.time",     "cpu.usage",    "cpu.percent",
    "cpu.ratio",     "mem.rss",         "mem.pss",      "mem.uss",      "mem.vms",
    "mem.swap",      "mem.pss.age",     "mem.rss.peak", "mem.cgroup",   "mem.cgroup.peak",
    "mem.ratio",     "io.read",         "io.write",     "io.rchar",     "io.wchar",
    "io.read.rate",  "io.write.rate",   "net.rx",       "net.tx",       "net.unattributed",
    "procs",         "procs.started",   "procs.exited", "threads",      "fds",
    "ctx.voluntary", "ctx.involuntary", "faults.minor", "faults.major", "sched.delay",
    "gpu.usage",     "gpu.mem",         "gpu.count",    "energy"};

static void test_all_promised_keys_are_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(promised); i++) {
        enum pr_metric_id id = pr_metric_find(promised[i]);
        if (id == METRIC_NONE)
            fail_msg("there is no metric %s", promised[i]);
        assert_string_equal(pr_metrics[id].key, promised[i]);
        assert_true(pr_metrics[id].scope & SCOPE_JOB);
    }
    assert_int_equal(pr_metric_find("cpu"), METRIC_NONE);
    assert_int_equal(pr_metric_find(""), METRIC_NONE);
}

static void column(enum pr_metric_id id, struct pr_buf *b)
{
    pr_buf_reset(b);
    pr_metric_column(b, &pr_metrics[id]);
}

static void test_columns(void **state)
{
    (void)state;
    static const struct {
        enum pr_metric_id id;
        const char *name;
    } cases[] = {
        {METRIC_CPU_TIME, "cpu_time_seconds"},
        {METRIC_MEM_PSS, "mem_pss_bytes"},
        {METRIC_CPU_USAGE, "cpu_usage_cores"},
        {METRIC_CPU_PERCENT, "cpu_percent"},
        {METRIC_PROCS, "procs"},
        {METRIC_CPU_RATIO, "cpu_ratio"}, /* the unit is not repeated */
        {METRIC_MEM_RATIO, "mem_ratio"},
        {METRIC_MEM_PSS_AGE, "mem_pss_age_seconds"},
        {METRIC_MEM_RSS_PEAK, "mem_rss_peak_bytes"},
        {METRIC_IO_READ_RATE, "io_read_rate_bytes_per_second"},
        {METRIC_PROCS_STARTED, "procs_started"},
        {METRIC_GPU_USAGE, "gpu_usage"},
        {METRIC_ENERGY, "energy_joules"},
        {METRIC_SCHED_DELAY, "sched_delay_seconds"},
    };
    struct pr_buf b = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        column(cases[i].id, &b);
        assert_string_equal(pr_buf_text(&b), cases[i].name);
    }
    pr_buf_done(&b);
}

static void test_columns_need_no_quotes_and_differ(void **state)
{
    (void)state;
    struct pr_buf a = {0}, b = {0};
    for (int i = 0; i < METRIC_COUNT; i++) {
        column((enum pr_metric_id)i, &a);
        const char *name = pr_buf_text(&a);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(name));
        for (int k = 0; k < i; k++) {
            column((enum pr_metric_id)k, &b);
            assert_string_not_equal(name, pr_buf_text(&b));
            assert_string_not_equal(pr_metrics[i].key, pr_metrics[k].key);
        }
    }
    pr_buf_done(&a);
    pr_buf_done(&b);
}

/* Every row is whole, and derived rows stand behind what they derive from: pr_derive goes once
 * from the first to the last. */
static void test_rows_are_sound(void **state)
{
    (void)state;
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct pr_metric *m = &pr_metrics[i];
        assert_non_null(m->key);
        assert_non_null(m->help);
        assert_non_null(m->from);
        assert_true(m->scope);
        if (m->kind == KIND_RATE || m->kind == KIND_RATIO || m->kind == KIND_HIGH_WATER)
            assert_true((int)m->of < i);
        if (m->kind == KIND_RATE) {
            assert_int_equal(pr_metrics[m->of].kind, KIND_COUNTER);
            assert_true(m->scale > 0);
        }
        if (m->kind == KIND_RATIO)
            assert_int_equal(m->unit, UNIT_RATIO);
    }
}

static void test_ledger_and_derived(void **state)
{
    (void)state;
    assert_true(pr_metric_in_ledger(METRIC_CPU_TIME));
    assert_true(pr_metric_in_ledger(METRIC_IO_WRITE));
    assert_true(pr_metric_in_ledger(METRIC_FAULTS_MINOR));
    assert_false(pr_metric_in_ledger(METRIC_MEM_RSS));
    assert_false(pr_metric_in_ledger(METRIC_PROCS_STARTED));
    assert_false(pr_metric_in_ledger(METRIC_ENERGY));
    assert_true(pr_metric_is_derived(METRIC_CPU_USAGE));
    assert_true(pr_metric_is_derived(METRIC_MEM_RATIO));
    assert_false(pr_metric_is_derived(METRIC_MEM_RSS_PEAK));
    assert_false(pr_metric_is_derived(METRIC_CPU_TIME));
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(pr_metric_kind_name(KIND_COUNTER), "counter");
    assert_string_equal(pr_metric_kind_name(KIND_GAUGE), "gauge");
    assert_string_equal(pr_metric_kind_name(KIND_RATE), "rate");
    assert_string_equal(pr_metric_kind_name(KIND_RATIO), "ratio");
    assert_string_equal(pr_metric_scope_name(SCOPE_PROC | SCOPE_JOB), "process, job");
    assert_string_equal(pr_metric_scope_name(SCOPE_JOB), "job");
    assert_null(pr_mark_name(MARK_NONE));
    assert_string_equal(pr_mark_name(MARK_LOWER_BOUND), "lower bound");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_promised_keys_are_there),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_columns_need_no_quotes_and_differ),
        cmocka_unit_test(test_rows_are_sound),
        cmocka_unit_test(test_ledger_and_derived),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
