/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of dialects, on tables made up here, and the sink on real ones. What the real ones
 * write is compared with the originals in tests/project/test_goldens.py. */
#include "tree.h"
#include "core/config.h"
#include "sink/dialect_row.h"

/* --- allocations are counted ------------------------------------------------------------------ */

static unsigned long allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *data, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *data, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *data, size_t size)
{
    allocations++;
    return __real_realloc(data, size);
}

char *__wrap_strdup(const char *text)
{
    allocations++;
    return __real_strdup(text);
}

/* --- a table and its rows --------------------------------------------------------------------- */

static struct proctor_snapshot sample;
static struct pr_sink_job job;
static struct pr_table_state state;
static struct pr_buf out;
static const char *said; /* by the column of text */

static bool text_of(const struct pr_row *row, struct pr_buf *into)
{
    (void)row;
    if (said)
        pr_buf_str(into, said);
    return said != NULL;
}

static int setup(void **unused)
{
    (void)unused;
    memset(&job, 0, sizeof job);
    sample = (struct proctor_snapshot){.time = INT64_C(1772366400250000000)};
    pr_values_none(sample.value, METRIC_COUNT);
    said = NULL;
    return pr_snapshot_reserve(&sample, 4, 4) ? 0 : -1;
}

static int teardown(void **unused)
{
    (void)unused;
    pr_snapshot_done(&sample);
    pr_buf_done(&out);
    if (state.table)
        pr_table_state_done(&state);
    state.table = NULL;
    return 0;
}

static void use(const struct pr_table *table)
{
    if (state.table)
        pr_table_state_done(&state);
    assert_int_equal(pr_table_state_init(&state, table), 0);
}

/* All rows of the sample, as dialect.c goes through them. */
static void write_rows(void)
{
    struct pr_row row = {.sample = &sample, .job = &job};
    size_t cursor = 0;
    while (pr_row_next(state.table, &row, &cursor))
        if (pr_row_is_there(&state, &row))
            pr_row_write(&out, &state, &row);
    pr_row_advance(&state, &sample);
}

#define check_rows(want)                                                                           \
    do {                                                                                           \
        write_rows();                                                                              \
        assert_buf(&out, want);                                                                    \
    } while (0)
#define set(id, v) (sample.value[METRIC_##id] = (v))

/* One column of a metric, in a table that is nothing but it. */
static void use_column(struct pr_column column)
{
    static struct pr_column columns[1];
    static struct pr_table table;
    columns[0] = column;
    table = (struct pr_table){
        .separator = ",", .newline = "\n", .absent = "NA", .columns = columns, .column_count = 1};
    use(&table);
}

static void test_shapes(void **unused)
{
    static const struct {
        struct pr_column column;
        double v;
        const char *text;
    } cases[] = {
        {{.decimals = 4}, 0.00005, "0.0001\n"},
        {{.decimals = 4}, 3, "3.0\n"},
        {{.decimals = 6}, 0.000001, "1e-06\n"},
        {{.decimals = 4}, 0, "0.0\n"},
        {{.decimals = 4, .zero = "0"}, 0, "0\n"},
        {{.decimals = 4, .zero = "0"}, 0.00001, "0\n"},
        {{.decimals = DECIMALS_ALL}, 1.0 / 3, "0.3333333333333333\n"},
        {{.shape = SHAPE_WHOLE, .per = 1024}, 2047, "1\n"},
        {{.shape = SHAPE_WHOLE, .times = 100}, 0.29, "29\n"},
        {{.shape = SHAPE_FIXED}, 2.5, "2\n"},
        {{.shape = SHAPE_FIXED, .decimals = 2}, 3, "3.00\n"},
        {{.shape = SHAPE_FIXED, .decimals = 1, .times = 100}, 0.1255, "12.6\n"},
        {{.shape = SHAPE_CUT, .decimals = 2}, 1.999, "1.99\n"},
        {{.shape = SHAPE_CUT, .decimals = 2}, 0.29, "0.29\n"},
        {{.shape = SHAPE_WHOLE, .width = 6}, 42, "    42\n"},
        {{.shape = SHAPE_WHOLE, .width = 1}, 42, "42\n"},
        {{.decimals = 4}, NAN, "NA\n"},
        {{.decimals = 4, .absent = "-"}, NAN, "-\n"},
        {{.decimals = 4, .absent = ""}, NAN, "\n"},
        {{.decimals = 4, .needed = true}, NAN, ""},
    };
    (void)unused;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pr_column column = cases[i].column;
        column.name = "a";
        column.metric = METRIC_MEM_RSS;
        use_column(column);
        set(MEM_RSS, cases[i].v);
        check_rows(cases[i].text);
    }
}

static void test_no_gpu_is_not_an_unread_one(void **unused)
{
    (void)unused;
    use_column((struct pr_column){.metric = METRIC_GPU_USAGE, .no_gpu = "0"});
    check_rows("NA\n");
    job.no_gpu = true;
    check_rows("0\n");
}

static void test_growth(void **unused)
{
    (void)unused;
    use_column(
        (struct pr_column){.metric = METRIC_IO_READ, .take = TAKE_DELTA, .shape = SHAPE_WHOLE});
    set(IO_READ, 5);
    check_rows("5\n"); /* counters begin with the recording */
    set(IO_READ, 12);
    check_rows("7\n");
    set(IO_READ, NAN);
    check_rows("NA\n");
    set(IO_READ, 20);
    check_rows("8\n"); /* nothing of it is lost */
}

/* A third of a tick each time: in three rows there is one. */
static void test_parts_of_whole_numbers_add_up(void **unused)
{
    (void)unused;
    use_column((struct pr_column){
        .metric = METRIC_CPU_USER, .take = TAKE_DELTA, .times = 100, .shape = SHAPE_WHOLE});
    set(CPU_USER, 0.004);
    check_rows("0\n");
    set(CPU_USER, 0.008);
    check_rows("0\n");
    set(CPU_USER, 0.012);
    check_rows("1\n");
}

static void test_first_row_has_nothing_before_it(void **unused)
{
    (void)unused;
    use_column((struct pr_column){.metric = METRIC_SYSTEM_NET_RX,
                                  .take = TAKE_DELTA,
                                  .shape = SHAPE_WHOLE,
                                  .from_second = true});
    set(SYSTEM_NET_RX, 5);
    check_rows("NA\n");
    set(SYSTEM_NET_RX, 7);
    check_rows("2\n");
}

static double busy_and_idle(const struct pr_row *row)
{
    return row->sample->value[METRIC_SYSTEM_CPU_USER] + row->sample->value[METRIC_SYSTEM_CPU_IDLE];
}

static void test_share(void **unused)
{
    (void)unused;
    use_column((struct pr_column){.metric = METRIC_SYSTEM_CPU_USER,
                                  .take = TAKE_SHARE,
                                  .share_of = busy_and_idle,
                                  .times = 100,
                                  .shape = SHAPE_FIXED,
                                  .decimals = 1,
                                  .needed = true});
    set(SYSTEM_CPU_USER, 0);
    set(SYSTEM_CPU_IDLE, 0);
    check_rows(""); /* no time has passed */
    set(SYSTEM_CPU_USER, 1);
    set(SYSTEM_CPU_IDLE, 3);
    check_rows("25.0\n");
    set(SYSTEM_CPU_IDLE, NAN);
    check_rows("");
    set(SYSTEM_CPU_USER, 2);
    set(SYSTEM_CPU_IDLE, 4);
    check_rows("50.0\n");
}

/* --- layouts ---------------------------------------------------------------------------------- */

static const struct pr_column two[] = {
    {.name = "a, b", .text = text_of, .shape = SHAPE_TEXT},
    {.name = "n", .metric = METRIC_MEM_RSS, .shape = SHAPE_WHOLE},
};

static void check_quoting(enum pr_quoting quoting, const char *text, const char *want)
{
    struct pr_table table = {
        .separator = ",", .newline = "\r\n", .quoting = quoting, .absent = "\"\"", COLUMNS(two)};
    use(&table);
    said = text;
    set(MEM_RSS, 7);
    check_rows(want);
}

static void test_quoting_and_line_ends(void **unused)
{
    struct pr_table table = {.separator = ",", .newline = "\r\n", COLUMNS(two)};
    (void)unused;
    check_quoting(QUOTE_NEVER, "x", "x,7\r\n");
    check_quoting(QUOTE_WHERE_NEEDED, "x", "x,7\r\n");
    check_quoting(QUOTE_WHERE_NEEDED, "fm, py", "\"fm, py\",7\r\n");
    check_quoting(QUOTE_WHERE_NEEDED, "a\"b", "\"a\"\"b\",7\r\n");
    check_quoting(QUOTE_TEXT, "x", "\"x\",7\r\n");
    check_quoting(QUOTE_TEXT, "a\"b", "\"a\"\"b\",7\r\n");
    check_quoting(QUOTE_TEXT, NULL, "\"\",7\r\n");
    pr_row_header(&out, &table);
    assert_buf(&out, "a, b,n\r\n");
    table.quoting = QUOTE_TEXT;
    pr_row_header(&out, &table);
    assert_buf(&out, "\"a, b\",\"n\"\r\n");
}

static void test_objects(void **unused)
{
    static const struct pr_column columns[] = {
        {.name = "s", .text = text_of, .shape = SHAPE_TEXT},
        {.name = "n", .metric = METRIC_MEM_RSS, .decimals = 1},
        {.name = "m", .metric = METRIC_MEM_PSS, .decimals = 1, .if_positive = "n"},
    };
    static const struct pr_table table = {
        .layout = LAYOUT_OBJECT, .absent = "null", COLUMNS(columns)};
    (void)unused;
    use(&table);
    check_rows("{\"s\": null, \"n\": null}\n");
    said = "a\"\n";
    set(MEM_RSS, 1);
    check_rows("{\"s\": \"a\\\"\\n\", \"n\": 1.0, \"m\": null}\n");
    set(MEM_RSS, 0);
    check_rows("{\"s\": \"a\\\"\\n\", \"n\": 0.0}\n");
}

static void test_lines_and_templates(void **unused)
{
    static const struct pr_column letters[] = {
        {.name = "M", .metric = METRIC_MEM_RSS, .shape = SHAPE_WHOLE, .per = 1024},
        {.name = "t", .text = text_of, .shape = SHAPE_TEXT},
    };
    static const struct pr_table lines = {.layout = LAYOUT_LINES,
                                          .line_before = "\t",
                                          .separator = ": ",
                                          .newline = "\n",
                                          .absent = "?",
                                          COLUMNS(letters)};
    static const struct pr_table template = {.layout = LAYOUT_TEMPLATE,
                                             .newline = "\n",
                                             .absent = "?",
                                             .title = "%M KB%% %q\\t%t",
                                             .title_from = "PROCTOR_TEST_TEMPLATE",
                                             COLUMNS(letters)};
    (void)unused;
    set(MEM_RSS, 4096);
    use(&lines);
    check_rows("\tM: 4\n\tt: ?\n");
    said = "100%M";
    use(&template);
    check_rows("4 KB% ?q\t100%M\n"); /* what is filled in is not looked at again */
    setenv("PROCTOR_TEST_TEMPLATE", "%M%", 1);
    use(&template);
    check_rows("4%\n");
    unsetenv("PROCTOR_TEST_TEMPLATE");
}

/* --- rows ------------------------------------------------------------------------------------- */

static void add_gpu(bool counted, double used)
{
    struct pr_device *d = &sample.devices[sample.device_count++];
    *d = (struct pr_device){.kind = DEVICE_GPU, .counted = counted};
    pr_values_none(d->value, DEVICE_VALUES);
    d->value[pr_device_slot(DEVICE_GPU, METRIC_GPU_MEM_USED)] = used;
}

static double which(const struct pr_row *row)
{
    return row->index;
}

static void test_a_row_for_each_gpu(void **unused)
{
    static const struct pr_column columns[] = {
        {.name = "i", .number = which, .shape = SHAPE_WHOLE},
        {.name = "used", .metric = METRIC_GPU_MEM_USED, .shape = SHAPE_WHOLE, .needed = true},
    };
    static const struct pr_table table = {
        .each = EACH_GPU, .separator = " ", .newline = "\n", COLUMNS(columns)};
    (void)unused;
    use(&table);
    check_rows("");
    sample.devices[sample.device_count++] =
        (struct pr_device){.kind = DEVICE_DISK, .counted = true};
    add_gpu(true, 5);
    add_gpu(false, 1); /* a part of it */
    add_gpu(true, NAN);
    check_rows("0 5\n");
    sample.device_count = 3;
    add_gpu(true, 9);
    check_rows("0 5\n1 9\n");
}

static void test_a_row_for_each_process(void **unused)
{
    static const struct pr_column columns[] = {
        {.name = "rss", .metric = METRIC_MEM_RSS, .shape = SHAPE_WHOLE},
        {.name = "procs", .metric = METRIC_PROCS, .shape = SHAPE_WHOLE, .absent = "-"},
    };
    static const struct pr_table table = {
        .each = EACH_PROCESS, .separator = " ", .newline = "\n", COLUMNS(columns)};
    (void)unused;
    use(&table);
    set(MEM_RSS, 100);
    set(PROCS, 2);
    for (int i = 0; i < 2; i++) {
        struct pr_member *m = &sample.members[sample.member_count++];
        pr_values_none(m->value, PROC_METRICS);
        m->value[METRIC_MEM_RSS] = i + 1;
    }
    check_rows("1 -\n2 -\n"); /* what the job has is no process's */
}

/* --- the sink --------------------------------------------------------------------------------- */

static struct pr_events events;
static struct proctor_error err;

static struct pr_sink *open_sink(const char *path, const char *dialect, const char *table)
{
    struct pr_sink *sink = NULL;
    struct pr_sink_setting setting = {
        .path = path, .events = &events, .dialect = dialect, .table = table, .job = &job};
    pr_events_init(&events);
    memset(setting.select.shown, true, sizeof setting.select.shown);
    if (pr_dialect_open(&setting, &sink, &err) < 0)
        fail_msg("%s", err.message);
    return sink;
}

static const char *contents(const char *path)
{
    FILE *f = fopen(path, "r");
    static char text[65536];
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void check_refused(const char *dialect, const char *table, enum pr_dialect_form form,
                          const char *part)
{
    struct pr_sink *sink = NULL;
    struct pr_sink_setting setting = {
        .path = "/nonexistent/x", .events = &events, .dialect = dialect, .table = table};
    assert_int_equal(pr_dialect_open_as(&setting, form, &sink, &err), -EINVAL);
    assert_null(sink);
    assert_contains(err.message, part);
}

static void test_what_there_is_not(void **unused)
{
    (void)unused;
    check_refused("nobody", NULL, DIALECT_ANY, "there is no 'nobody'");
    check_refused("resource-tracker", "disks", DIALECT_CSV,
                  "has no table 'disks'; its tables: "
                  "process (--csv), system (--csv)");
    check_refused("spdl", NULL, DIALECT_CSV, "its tables: usage (--jsonl)");
    check_refused("oasislmf", NULL, DIALECT_JSONL, "its tables: processes (--csv)");
    check_refused("pytyche", "resource-summary", DIALECT_CSV, "--csv: the table resource-summary");
}

static void test_every_table_has_a_file(void **unused)
{
    static const char *const names[] = {
#define DIALECT(name, dialect) name,
#include "core/dialects.def"
#undef DIALECT
    };
    struct pr_dialect_file file;
    (void)unused;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        size_t count = 0;
        while (pr_dialect_table(names[i], count, &file)) {
            assert_true(file.table && *file.table && file.file && *file.file);
            count++;
        }
        assert_true(count >= 1);
        assert_non_null(pr_option_find("dialect") == OPTION_DIALECT
                            ? strstr(pr_options[OPTION_DIALECT].choices, names[i])
                            : NULL);
    }
    assert_false(pr_dialect_table("nobody", 0, &file));
}

static void test_header_without_a_sample(void **unused)
{
    char dir[TREE_PATH], path[TREE_PATH + 32];
    (void)unused;
    tree_new(dir);
    snprintf(path, sizeof path, "%s/out", dir);
    struct pr_sink *sink = open_sink(path, "oasislmf", NULL);
    assert_true(sink->ops->processes);
    sink->ops->close(sink);
    assert_string_equal(contents(path), "timestamp,tool,pid,cpu_pct,cpu_user_s,cpu_sys_s,rss_kb,"
                                        "uss_kb,pss_kb\r\n");
    tree_done(dir);
}

static void test_once_at_the_end(void **unused)
{
    char dir[TREE_PATH], path[TREE_PATH + 32];
    (void)unused;
    tree_new(dir);
    snprintf(path, sizeof path, "%s/out", dir);
    struct pr_sink *sink = open_sink(path, "snakemake", NULL);
    const double rss[] = {1, 5, NAN};
    for (int i = 0; i < 3; i++) {
        sample.elapsed = i * INT64_C(45000000000000);
        sample.interval = i ? INT64_C(45000000000000) : 0;
        set(MEM_VMS, rss[i] * 0x1p20);
        set(CPU_TIME, i * 45000);
        sink->ops->write(sink, &sample);
        assert_string_equal(contents(path), "");
    }
    sink->ops->close(sink);
    assert_string_equal(contents(path),
                        "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\t"
                        "cpu_time\n"
                        "90000.00\t1 day, 1:00:00\tNA\t5.00\tNA\tNA\t-\t-\t100.00\t90000.00\n");
    tree_done(dir);
}

static void test_rows_cost_no_memory(void **unused)
{
    static const char *const names[] = {"resource-tracker", "oasislmf", "stouputils", "spdl",
                                        "pytyche",          "snakemake"};
    (void)unused;
    sample.member_count = 2;
    for (int i = 0; i < 2; i++) {
        sample.members[i] = (struct pr_member){.pid = i + 1, .comm = "a, b"};
        pr_values_none(sample.members[i].value, PROC_METRICS);
    }
    add_gpu(true, 5);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct pr_sink *sink = open_sink("/dev/null", names[i], NULL);
        for (int k = 0; k < 100; k++) {
            unsigned long before = allocations;
            sample.elapsed = sample.time = k * INT64_C(1234567891);
            for (int id = 0; id < METRIC_COUNT; id++)
                sample.value[id] = k * 1e9 / 7 * (id + 1);
            sink->ops->write(sink, &sample);
            if (k >= 20 && allocations != before)
                fail_msg("%s: row %d allocates", names[i], k);
        }
        sink->ops->close(sink);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_shapes),
        TEST(test_no_gpu_is_not_an_unread_one),
        TEST(test_growth),
        TEST(test_parts_of_whole_numbers_add_up),
        TEST(test_first_row_has_nothing_before_it),
        TEST(test_share),
        TEST(test_quoting_and_line_ends),
        TEST(test_objects),
        TEST(test_lines_and_templates),
        TEST(test_a_row_for_each_gpu),
        TEST(test_a_row_for_each_process),
        TEST(test_what_there_is_not),
        TEST(test_every_table_has_a_file),
        TEST(test_header_without_a_sample),
        TEST(test_once_at_the_end),
        TEST(test_rows_cost_no_memory),
    };
    return cmocka_run_group_tests_name("dialect", tests, NULL, NULL);
}
