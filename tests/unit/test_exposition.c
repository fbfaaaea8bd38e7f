/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <locale.h>

#include "tree.h"
#include "core/config.h"
#include "sink/exposition.h"

static struct pr_config config;
static struct proctor_snapshot snap;
static struct pr_sink_setting setting;
static struct pr_exposition x;
static struct pr_buf out;

static int setup(void **state)
{
    (void)state;
    pr_config_init(&config);
    pr_values_none(snap.value, METRIC_COUNT);
    snap.time = INT64_C(1700000002500000000);
    snap.elapsed = INT64_C(2500000000);
    snap.interval = INT64_C(1000000000);
    setting = (struct pr_sink_setting){
        .select = pr_select_of(&config), .name = "train", .run_id = "20260101T000000Z-0a1b2c3d"};
    assert_int_equal(pr_exposition_init(&x, &setting), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pr_config_done(&config);
    pr_snapshot_done(&snap);
    pr_exposition_done(&x);
    pr_buf_done(&out);
    return 0;
}

static const char *page(enum pr_exposition_form form)
{
    pr_buf_reset(&out);
    pr_exposition_write(&out, &x, form, &snap);
    return pr_buf_text(&out);
}

static void has(const char *text, const char *part)
{
    assert_non_null(text);
    bool found = strstr(text, part) != NULL;
    if (!found)
        print_error("not there: %s", part);
    assert_true(found);
}

static void lacks(const char *text, const char *part)
{
    assert_non_null(text);
    if (strstr(text, part))
        fail_msg("it is there: %s", part);
}

#define ALL "{job=\"train\",run=\"20260101T000000Z-0a1b2c3d\"} "

static void test_counters_end_in_total(void **state)
{
    (void)state;
    snap.value[METRIC_CPU_TIME] = 1.25;
    const char *text = page(EXPOSITION_TEXT);
    has(text, "# HELP proctor_cpu_time_seconds_total CPU time, user and kernel mode together\n"
              "# TYPE proctor_cpu_time_seconds_total counter\n"
              "proctor_cpu_time_seconds_total" ALL "1.25\n");
    lacks(text, "# UNIT");
    lacks(text, "# EOF");
    text = page(EXPOSITION_OPENMETRICS);
    has(text, "# HELP proctor_cpu_time_seconds CPU time, user and kernel mode together\n"
              "# TYPE proctor_cpu_time_seconds counter\n"
              "# UNIT proctor_cpu_time_seconds seconds\n"
              "proctor_cpu_time_seconds_total" ALL "1.25\n");
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
}

static void test_gauges_have_their_unit(void **state)
{
    (void)state;
    snap.value[METRIC_MEM_RSS] = 9007199254740991;
    snap.value[METRIC_IO_READ_RATE] = 0;
    snap.value[METRIC_CPU_RATIO] = 0.5;
    snap.value[METRIC_THREADS] = 3;
    const char *text = page(EXPOSITION_OPENMETRICS);
    has(text, "# TYPE proctor_mem_rss_bytes gauge\n# UNIT proctor_mem_rss_bytes bytes\n"
              "proctor_mem_rss_bytes" ALL "9007199254740991\n");
    has(text, "# UNIT proctor_io_read_rate_bytes_per_second bytes_per_second\n"
              "proctor_io_read_rate_bytes_per_second" ALL "0\n");
    has(text, "# UNIT proctor_cpu_ratio ratio\nproctor_cpu_ratio" ALL "0.5\n");
    has(text, "# TYPE proctor_threads gauge\nproctor_threads" ALL "3\n");
}

static void test_what_is_absent_is_left_out(void **state)
{
    (void)state;
    snap.value[METRIC_MEM_RSS] = INFINITY; /* no number either */
    const char *text = page(EXPOSITION_TEXT);
    has(text,
        "# TYPE proctor_start_time_seconds gauge\nproctor_start_time_seconds" ALL "1700000000\n");
    has(text, "proctor_elapsed_seconds" ALL "2.5\n");
    has(text, "proctor_interval_seconds" ALL "1\n");
    lacks(text, "proctor_mem");
    lacks(text, "proctor_cpu");
    lacks(text, "NaN");
}

static void test_only_what_is_selected(void **state)
{
    (void)state;
    for (int id = 0; id < METRIC_COUNT; id++)
        snap.value[id] = 1;
    assert_int_equal(
        pr_config_set(&config, OPTION_SELECT, "mem.rss", ORIGIN_OPTION, "--select", NULL), 0);
    x.select = pr_select_of(&config);
    has(page(EXPOSITION_TEXT), "proctor_mem_rss_bytes{");
    lacks(page(EXPOSITION_TEXT), "proctor_cpu_time");
}

static void test_labels_are_escaped(void **state)
{
    (void)state;
    pr_exposition_done(&x);
    setting.name = "a\"b\\c\nd\xff\xc3\xa9";
    setting.node = "7";
    assert_int_equal(pr_exposition_init(&x, &setting), 0);
    snap.value[METRIC_PROCS] = 1;
    has(page(EXPOSITION_TEXT), "proctor_procs{job=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\xc3\xa9\","
                               "run=\"20260101T000000Z-0a1b2c3d\",node=\"7\"} 1\n");
}

static void test_names_and_devices_have_labels(void **state)
{
    (void)state;
    assert_true(pr_snapshot_reserve(&snap, 0, 2) && pr_snapshot_reserve_matches(&snap, 2));
    snap.value[METRIC_MEM_RSS] = 30;
    for (int i = 0; i < 2; i++) {
        snap.matches[i].name = i ? "b\"" : "a";
        pr_values_none(snap.matches[i].value, PROC_METRICS);
        snap.matches[i].value[METRIC_MEM_RSS] = 10 + i;
        snap.devices[i] = (struct pr_device){.kind = i ? DEVICE_DISK : DEVICE_GPU,
                                             .name = "0",
                                             .model = i ? NULL : "H\"1",
                                             .uuid = i ? NULL : "GPU-1"};
        pr_values_none(snap.devices[i].value, DEVICE_VALUES);
        snap.devices[i].value[pr_device_slot(DEVICE_GPU, METRIC_GPU_MEM_USED)] = 5;
    }
    snap.match_count = snap.device_count = 2;
    const char *text = page(EXPOSITION_TEXT);
    has(text,
        "# TYPE proctor_mem_rss_bytes gauge\nproctor_mem_rss_bytes" ALL "30\n"
        "proctor_mem_rss_bytes{job=\"train\",run=\"20260101T000000Z-0a1b2c3d\",match=\"a\"} 10\n"
        "proctor_mem_rss_bytes{job=\"train\",run=\"20260101T000000Z-0a1b2c3d\",match=\"b\\\"\"} "
        "11\n");
    has(text,
        "proctor_gpu_mem_used_bytes{job=\"train\",run=\"20260101T000000Z-0a1b2c3d\",gpu=\"0\"} "
        "5\n");
    has(text, "# TYPE proctor_gpu_info gauge\n"
              "proctor_gpu_info{job=\"train\",run=\"20260101T000000Z-0a1b2c3d\",gpu=\"0\","
              "model=\"H\\\"1\",uuid=\"GPU-1\"} 1\n");
    lacks(text, "disk");
    has(page(EXPOSITION_OPENMETRICS), "# TYPE proctor_gpu info\nproctor_gpu_info{");
}

/* Reserved for histograms, summaries and the like; promtool calls others wrong. */
static void test_no_name_ends_in_what_is_reserved(void **state)
{
    (void)state;
    static const char *const reserved[] = {"_count",   "_sum",  "_bucket", "_total",
                                           "_created", "_info", "_gsum",   "_gcount"};
    for (int id = 0; id < METRIC_COUNT; id++) {
        pr_buf_reset(&out);
        pr_exposition_name(&out, &pr_metrics[id]);
        const char *name = pr_buf_text(&out);
        assert_memory_equal(name, "proctor_", 8);
        for (const char *p = name; *p; p++)
            assert_true(islower(*p) || isdigit(*p) || *p == '_');
        for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
            size_t n = strlen(name), tail = strlen(reserved[i]);
            if (n > tail && strcmp(name + n - tail, reserved[i]) == 0)
                fail_msg("%s", name);
        }
    }
    pr_buf_reset(&out);
    pr_exposition_name(&out, &pr_metrics[METRIC_GPU_COUNT]);
    assert_string_equal(pr_buf_text(&out), "proctor_gpus");
}

static void test_no_family_comes_twice(void **state)
{
    (void)state;
    char seen[METRIC_COUNT + 8][100];
    int count = 0, wanted = 3; /* times */
    for (int id = 0; id < METRIC_COUNT; id++) {
        snap.value[id] = id;
        wanted += pr_metric_is_single((enum pr_metric_id)id);
    }
    for (const char *p = page(EXPOSITION_OPENMETRICS); (p = strstr(p, "# TYPE ")); p++) {
        sscanf(p, "# TYPE %99s", seen[count]);
        for (int i = 0; i < count; i++)
            assert_string_not_equal(seen[i], seen[count]);
        count++;
    }
    assert_int_equal(count, wanted);
}

static void test_the_form_is_negotiated(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        enum pr_exposition_form form;
    } cases[] = {
        {NULL, EXPOSITION_TEXT},
        {"", EXPOSITION_TEXT},
        {"*/*", EXPOSITION_TEXT},
        {"text/html,*/*;q=0.8", EXPOSITION_TEXT},
        {"application/openmetrics-text", EXPOSITION_OPENMETRICS},
        {"APPLICATION/OpenMetrics-Text ; Version=1.0.0", EXPOSITION_OPENMETRICS},
        /* Prometheus 2.42 */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         EXPOSITION_OPENMETRICS},
        {"text/plain;version=0.0.4;q=1,application/openmetrics-text;q=0.5", EXPOSITION_TEXT},
        {"text/plain, application/openmetrics-text;version=1.0.0", EXPOSITION_OPENMETRICS},
        {"application/openmetrics-text;version=2.0.0", EXPOSITION_TEXT},
        {"application/openmetrics-text;q=0", EXPOSITION_TEXT},
        {"application/openmetrics-text;q=0.000", EXPOSITION_TEXT},
        {"application/openmetrics-text;q=1.", EXPOSITION_OPENMETRICS},
        {"application/openmetrics-text;q=", EXPOSITION_TEXT},
        {"application/openmetrics-text;q=x", EXPOSITION_TEXT},
        {"application/openmetrics-textual", EXPOSITION_TEXT},
        {",,;;=,;q", EXPOSITION_TEXT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (pr_exposition_choose(cases[i].accept) != cases[i].form)
            fail_msg("'%s'", cases[i].accept ? cases[i].accept : "nothing");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_counters_end_in_total),
        TEST(test_gauges_have_their_unit),
        TEST(test_what_is_absent_is_left_out),
        TEST(test_only_what_is_selected),
        TEST(test_labels_are_escaped),
        TEST(test_names_and_devices_have_labels),
        TEST(test_no_name_ends_in_what_is_reserved),
        TEST(test_no_family_comes_twice),
        TEST(test_the_form_is_negotiated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
