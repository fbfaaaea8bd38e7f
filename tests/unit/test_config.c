/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"
#include "core/config.h"

static struct pr_config c;
static struct proctor_error err;
static char dir[TREE_PATH];

static int setup(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    tree_new(dir);
    setenv("XDG_CONFIG_HOME", dir, 1);
    for (int id = 0; id < OPTION_COUNT; id++) {
        char name[64];
        pr_option_variable(&pr_options[id], name, sizeof name);
        unsetenv(name);
    }
    return pr_config_init(&c);
}

static int teardown(void **state)
{
    (void)state;
    pr_config_done(&c);
    tree_done(dir);
    return 0;
}

static int set(const char *name, const char *value)
{
    char what[80];
    enum pr_option_id id = pr_option_find(name);
    snprintf(what, sizeof what, "--%s", name);
    if (id == OPTION_COUNT)
        fail_msg("there is no option %s", name);
    return pr_config_set(&c, id, value, ORIGIN_OPTION, what, &err);
}

static void refuse(const char *name, const char *value, int code, const char *remedy)
{
    struct pr_config before = c;
    err.message[0] = '\0';
    assert_int_equal(set(name, value), -code);
    assert_int_equal(err.code, code);
    assert_contains(err.message, name);
    assert_contains(err.message, remedy);
    if (*value && code == EINVAL)
        assert_contains(err.message, value);
    /* Nothing changes by a failure: what is refused does not stay in a list either. */
    assert_int_equal(before.csv.count, c.csv.count);
    assert_int_equal(before.label.count, c.label.count);
    assert_int_equal(before.select.count, c.select.count);
    assert_int_equal(before.match.count, c.match.count);
    assert_int_equal(before.report.count, c.report.count);
    assert_memory_equal(before.text, c.text, sizeof c.text);
    assert_memory_equal(before.origin, c.origin, sizeof c.origin);
    assert_exactly(before.interval, c.interval);
    assert_exactly(before.average, c.average);
}

/* A list of a lower origin outlives the failure of a higher one. */
static void test_a_refused_list_leaves_the_old_one(void **state)
{
    (void)state;
    assert_int_equal(pr_config_set(&c, OPTION_LABEL, "a=b", ORIGIN_FILE, "file:1", &err), 0);
    assert_int_equal(set("label", "bad"), -EINVAL);
    assert_int_equal(c.label.count, 1);
    assert_string_equal(c.label.items[0], "a=b");
}

static void test_defaults(void **state)
{
    (void)state;
    assert_exactly(c.interval, 1);
    assert_exactly(c.average, 1);
    assert_exactly(c.budget, 1);
    assert_exactly(c.flush_timeout, 10);
    assert_exactly(c.duration, 0);
    assert_string_equal(c.root, "/");
    assert_string_equal(c.dialect, "native");
    assert_string_equal(c.exact, "auto");
    assert_string_equal(c.color, "auto");
    assert_null(c.summary);
    assert_false(c.processes);
    assert_int_equal(c.csv.count, 0);
    for (int id = 0; id < OPTION_COUNT; id++)
        assert_int_equal(c.origin[id], ORIGIN_DEFAULT);
}

/* interface.md section 2: every option parses from the first day. */
static void test_every_promised_option_is_there(void **state)
{
    (void)state;
    static const char *const names[] = {
        "interval", "duration",     "output",    "force",         "no-record",   "csv",
        "jsonl",    "processes",    "dialect",   "table",         "match",       "average",
        "select",   "no-pss",       "no-gpu",    "label",         "name",        "run-id",
        "node",     "memory-total", "cpu-total", "exact",         "peaks",       "wait-tree",
        "budget",   "summary",      "report",    "mlflow",        "mlflow-join", "prometheus",
        "textfile", "otlp",         "prefix",    "flush-timeout", "root",        "strict",
        "quiet",    "verbose",      "color",     "no-children",   "group",       "cgroup"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (pr_option_find(names[i]) == OPTION_COUNT)
            fail_msg("there is no option --%s", names[i]);
    assert_int_equal(pr_options[OPTION_INTERVAL].letter, 'i');
    assert_int_equal(pr_options[OPTION_OUTPUT].letter, 'o');
    assert_int_equal(pr_options[OPTION_QUIET].letter, 'q');
    assert_int_equal(pr_options[OPTION_VERBOSE].letter, 'v');
    assert_int_equal(pr_option_find("nonsense"), OPTION_COUNT);
    assert_int_equal(pr_option_find(""), OPTION_COUNT);
}

static void test_names_and_letters_differ(void **state)
{
    (void)state;
    for (int a = 0; a < OPTION_COUNT; a++)
        for (int b = 0; b < a; b++) {
            assert_true(pr_options[a].field != pr_options[b].field);
            if (!(pr_options[a].commands & pr_options[b].commands))
                continue; /* no command has both */
            assert_string_not_equal(pr_options[a].name, pr_options[b].name);
            assert_true(!pr_options[a].letter || pr_options[a].letter != pr_options[b].letter);
        }
}

/* Names that recording and the commands on recorded runs have in common mean different options. */
static void test_a_name_may_be_of_several_commands(void **state)
{
    (void)state;
    assert_int_equal(pr_option_find_of("name", CMD_RUN), OPTION_NAME);
    assert_int_equal(pr_option_find_of("name", CMD_LS), OPTION_OF_NAME);
    assert_int_equal(pr_option_find("name"), OPTION_NAME);
    assert_int_equal(pr_option_find_of("keep", CMD_RUN), OPTION_KEEP); /* to say whose it is */
    assert_int_equal(pr_option_find_of("nonsense", CMD_RUN), OPTION_COUNT);
    assert_int_equal(pr_option_find_letter('o', CMD_RUN), OPTION_OUTPUT);
    assert_int_equal(pr_option_find_letter('o', CMD_EXPORT), OPTION_INTO);
    assert_int_equal(pr_option_find_letter('q', CMD_EXPORT), OPTION_QUIET);
    assert_int_equal(pr_option_find_letter('Z', CMD_RUN), OPTION_COUNT);
    assert_int_equal(pr_option_find_letter(0, CMD_RUN), OPTION_COUNT);
}

static void test_duration(void **state)
{
    (void)state;
    assert_int_equal(set("interval", "100ms"), 0);
    assert_exactly(c.interval, 0.1);
    assert_int_equal(set("interval", "0.5"), 0);
    assert_exactly(c.interval, 0.5);
    assert_int_equal(set("interval", "1ms"), 0);
    refuse("interval", "0", EINVAL, "the least is 1ms");
    refuse("interval", "0.9ms", EINVAL, "the least is 1ms");
    refuse("interval", "fast", EINVAL, "100ms");
    refuse("interval", "-1s", EINVAL, "100ms");
    refuse("interval", "", EINVAL, "100ms");
    refuse("duration", "99999999999h", EINVAL, "years");
}

static void test_size(void **state)
{
    (void)state;
    assert_int_equal(set("memory-total", "64G"), 0);
    assert_exactly(c.memory_total, 64 * 0x1p30);
    refuse("memory-total", "0", EINVAL, "the least is 1 byte");
    refuse("memory-total", "lots", EINVAL, "64GiB");
}

static void test_number_percent_and_count(void **state)
{
    (void)state;
    assert_int_equal(set("cpu-total", "2.5"), 0);
    assert_exactly(c.cpu_total, 2.5);
    refuse("cpu-total", "0", EINVAL, "the least is");
    assert_int_equal(set("budget", "0.5%"), 0);
    assert_exactly(c.budget, 0.5);
    refuse("budget", "x%", EINVAL, "1%");
    assert_int_equal(set("average", "10"), 0);
    assert_exactly(c.average, 10);
    refuse("average", "1.5", EINVAL, "whole number");
    refuse("average", "0", EINVAL, "the least is 1");
    refuse("average", "1000001", EINVAL, "1000000");
}

static void test_flag(void **state)
{
    (void)state;
    static const char *const yes[] = {"true", "yes", "on", "1"};
    static const char *const no[] = {"false", "no", "off", "0"};
    for (size_t i = 0; i < COUNT_OF(yes); i++) {
        assert_int_equal(set("no-pss", yes[i]), 0);
        assert_true(c.no_pss);
        assert_int_equal(set("no-pss", no[i]), 0);
        assert_false(c.no_pss);
    }
    refuse("no-pss", "maybe", EINVAL, "true");
    refuse("no-pss", "true yes", EINVAL, "true");
}

static void test_text_and_choice(void **state)
{
    (void)state;
    assert_int_equal(set("summary", "-"), 0);
    assert_string_equal(c.summary, "-");
    assert_int_equal(set("summary", "other"), 0);
    assert_string_equal(c.summary, "other");
    refuse("name", "", EINVAL, "NAME");
    assert_int_equal(set("color", "never"), 0);
    assert_string_equal(c.color, "never");
    refuse("color", "blue", EINVAL, "auto always never");
    refuse("color", "auto always", EINVAL, "auto always never");
    refuse("exact", "nosuch", EINVAL, "none");
}

static void test_lists(void **state)
{
    (void)state;
    assert_int_equal(set("csv", "a,b.csv"), 0);
    assert_int_equal(set("csv", "-"), 0);
    assert_int_equal(c.csv.count, 2);
    assert_string_equal(c.csv.items[0], "a,b.csv"); /* a comma is part of a name */
    assert_string_equal(c.csv.items[1], "-");
    refuse("csv", "", EINVAL, "FILE");
    assert_int_equal(set("label", "team=a,b"), 0);
    assert_int_equal(set("label", "empty="), 0);
    assert_int_equal(c.label.count, 2);
    assert_string_equal(c.label.items[0], "team=a,b");
    refuse("label", "novalue", EINVAL, "KEY=VALUE");
    refuse("label", "=x", EINVAL, "KEY=VALUE");
    assert_int_equal(set("select", "cpu.*,mem.rss"), 0);
    assert_int_equal(set("select", "procs"), 0);
    assert_int_equal(c.select.count, 3);
    refuse("select", "cpu.tiem", EINVAL, "proctor metrics");
}

static void test_switching_off_what_is_not_there_is_fine(void **state)
{
    (void)state;
    assert_int_equal(set("no-record", "true"), 0);
    assert_int_equal(set("no-gpu", "true"), 0);
    assert_int_equal(set("mlflow-join", "false"), 0);
    assert_int_equal(set("force", "false"), 0);
    assert_int_equal(set("dialect", "native"), 0);
    assert_int_equal(set("exact", "none"), 0);
    assert_int_equal(set("exact", "cgroup"), 0);
}

static void config_file(const char *text)
{
    tree_write(dir, "proctor/config", text);
}

static void test_precedence(void **state)
{
    (void)state;
    config_file("interval = 3s\nbudget=2%\nname = from file\n");
    setenv("PROCTOR_INTERVAL", "4s", 1);
    setenv("PROCTOR_BUDGET", "5%", 1);
    assert_int_equal(set("interval", "6s"), 0);
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), 0);
    assert_exactly(c.interval, 6);
    assert_exactly(c.budget, 5);
    assert_string_equal(c.name, "from file");
    assert_int_equal(c.origin[OPTION_INTERVAL], ORIGIN_OPTION);
    assert_int_equal(c.origin[OPTION_BUDGET], ORIGIN_VARIABLE);
    assert_int_equal(c.origin[OPTION_NAME], ORIGIN_FILE);
    assert_int_equal(c.origin[OPTION_COLOR], ORIGIN_DEFAULT);
    assert_int_equal(set("budget", "7%"), 0);
    assert_exactly(c.budget, 7);
    assert_string_equal(pr_origin_name(ORIGIN_FILE), "config file");
    assert_string_equal(pr_origin_name(ORIGIN_DEFAULT), "default");
}

/* A list of a higher origin replaces that of a lower one, it does not add to it. */
static void test_precedence_of_lists(void **state)
{
    (void)state;
    config_file("csv = a.csv\ncsv = b.csv\n");
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), 0);
    assert_int_equal(c.csv.count, 2);
    setenv("PROCTOR_CSV", "c.csv,d.csv,e.csv", 1);
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), 0);
    assert_int_equal(c.csv.count, 3);
    assert_string_equal(c.csv.items[2], "e.csv");
    assert_int_equal(set("csv", "f.csv"), 0);
    assert_int_equal(c.csv.count, 1);
    assert_string_equal(c.csv.items[0], "f.csv");
    assert_string_equal(c.text[OPTION_CSV], "f.csv");
}

static void test_config_file_syntax(void **state)
{
    (void)state;
    config_file("# a comment\r\n\r\n  \t\n  interval=250ms  \r\nname = a = b\nno-pss = yes\n"
                "label = a=b,c=d\n   # another\nnode=7");
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), 0);
    assert_exactly(c.interval, 0.25);
    assert_string_equal(c.name, "a = b");
    assert_true(c.no_pss);
    assert_int_equal(c.label.count, 2);
    assert_string_equal(c.label.items[1], "c=d");
    assert_string_equal(c.node, "7"); /* the last line has no newline */
}

static void test_config_file_errors_name_file_and_line(void **state)
{
    (void)state;
    config_file("interval = 1s\nnonsense\n");
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), -EINVAL);
    assert_contains(err.message, "/proctor/config:2");
    assert_contains(err.message, "nonsense");
    assert_contains(err.message, "NAME = VALUE");
    config_file("intervall = 1s\n");
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), -EINVAL);
    assert_contains(err.message, "/proctor/config:1");
    assert_contains(err.message, "intervall");
    assert_contains(err.message, "proctor run --help");
    config_file("\n\ninterval = soon\n");
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), -EINVAL);
    assert_contains(err.message, "/proctor/config:3");
    assert_contains(err.message, "soon");
}

static void test_config_file_may_be_absent_or_unreadable(void **state)
{
    (void)state;
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), 0);
    tree_write(dir, "proctor/config/is-a-directory", "");
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), 0);
}

static void test_config_path(void **state)
{
    (void)state;
    char path[4096], small[10];
    assert_true(pr_config_path(path, sizeof path));
    assert_contains(path, "/proctor/config");
    assert_false(pr_config_path(small, sizeof small));
    unsetenv("XDG_CONFIG_HOME");
    setenv("HOME", "/home/x", 1);
    assert_true(pr_config_path(path, sizeof path));
    assert_string_equal(path, "/home/x/.config/proctor/config");
    setenv("XDG_CONFIG_HOME", "", 1);
    assert_true(pr_config_path(path, sizeof path));
    assert_string_equal(path, "/home/x/.config/proctor/config");
    unsetenv("HOME");
    assert_false(pr_config_path(path, sizeof path));
}

static void test_variables(void **state)
{
    (void)state;
    char name[64];
    pr_option_variable(&pr_options[OPTION_NO_PSS], name, sizeof name);
    assert_string_equal(name, "PROCTOR_NO_PSS");
    pr_option_variable(&pr_options[OPTION_MEMORY_TOTAL], name, sizeof name);
    assert_string_equal(name, "PROCTOR_MEMORY_TOTAL");
    setenv("PROCTOR_NO_PSS", "1", 1);
    setenv("PROCTOR_NAME", "", 1);        /* empty is as if not set */
    setenv("PROCTOR_RUN_ID", "outer", 1); /* the run that we are inside of, not a setting */
    setenv("PROCTOR_DURATION", "1s", 1);  /* not an option of run */
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), 0);
    assert_true(c.no_pss);
    assert_null(c.name);
    assert_null(c.run_id);
    assert_exactly(c.duration, 0);
    assert_int_equal(pr_config_environment(&c, CMD_ATTACH, &err), 0);
    assert_exactly(c.duration, 1);
    setenv("PROCTOR_INTERVAL", "never", 1);
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), -EINVAL);
    assert_contains(err.message, "PROCTOR_INTERVAL");
    assert_contains(err.message, "never");
}

/* An option that the command does not have may stand in the file for another one. */
static void test_config_file_serves_all_commands(void **state)
{
    (void)state;
    config_file("duration = 5s\ninterval = 2s\n");
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), 0);
    assert_exactly(c.duration, 0);
    assert_exactly(c.interval, 2);
}

/* Each item of a list is checked, not only the first: whoever prints a label looks for its '='. */
static void test_each_label_of_a_variable_is_checked(void **state)
{
    (void)state;
    setenv("PROCTOR_LABEL", "a=b,c", 1);
    int r = pr_config_environment(&c, CMD_RUN, &err);
    assert_int_equal(r, -EINVAL);
    assert_contains(err.message, "PROCTOR_LABEL");
    assert_contains(err.message, "KEY=VALUE");
}

static void test_each_label_of_the_file_is_checked(void **state)
{
    (void)state;
    config_file("label = a=b,=c\n");
    assert_int_equal(pr_config_environment(&c, CMD_RUN, &err), -EINVAL);
    assert_contains(err.message, "KEY=VALUE");
}

static void test_no_error_wanted(void **state)
{
    (void)state;
    assert_int_equal(pr_config_set(&c, OPTION_INTERVAL, "x", ORIGIN_OPTION, "", NULL), -EINVAL);
}

static void test_long_values_do_not_overflow_the_message(void **state)
{
    (void)state;
    char value[2000];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    assert_int_equal(set("interval", value), -EINVAL);
    assert_true(strlen(err.message) < sizeof err.message);
    assert_int_equal(set("name", value), 0);
    assert_string_equal(c.name, value);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_defaults),
        TEST(test_every_promised_option_is_there),
        TEST(test_names_and_letters_differ),
        TEST(test_a_name_may_be_of_several_commands),
        TEST(test_duration),
        TEST(test_size),
        TEST(test_number_percent_and_count),
        TEST(test_flag),
        TEST(test_text_and_choice),
        TEST(test_lists),
        TEST(test_switching_off_what_is_not_there_is_fine),
        TEST(test_precedence),
        TEST(test_precedence_of_lists),
        TEST(test_config_file_syntax),
        TEST(test_config_file_errors_name_file_and_line),
        TEST(test_config_file_may_be_absent_or_unreadable),
        TEST(test_config_path),
        TEST(test_variables),
        TEST(test_config_file_serves_all_commands),
        TEST(test_each_label_of_a_variable_is_checked),
        TEST(test_each_label_of_the_file_is_checked),
        TEST(test_a_refused_list_leaves_the_old_one),
        TEST(test_no_error_wanted),
        TEST(test_long_values_do_not_overflow_the_message),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
