/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "core/config.h"
#include "core/select.h"

static struct pr_config c;
static struct proctor_error err;

static int setup(void **state)
{
    (void)state;
    return pr_config_init(&c);
}

static int teardown(void **state)
{
    (void)state;
    pr_config_done(&c);
    return 0;
}

static struct pr_select selected(const char *keys)
{
    assert_int_equal(pr_config_set(&c, OPTION_SELECT, keys, ORIGIN_OPTION, "--select", &err), 0);
    return pr_select_of(&c);
}

static void test_all_by_default(void **state)
{
    (void)state;
    struct pr_select s = pr_select_of(&c);
    for (int id = 0; id < METRIC_COUNT; id++)
        assert_true(pr_selected(&s, id));
    const unsigned all = READ_STAT | READ_STATM | READ_IO | READ_STATUS | READ_SMAPS | READ_FD |
                         READ_CLOCK | READ_ENERGY;
    assert_int_equal(s.reads & all, all);
}

/* htop's idea: a source whose metrics nobody selected is not read. */
static void test_only_what_is_needed_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        unsigned reads;
    } cases[] = {
        {"mem.rss", READ_STAT | READ_STATM},
        {"cpu.user", READ_STAT},
        {"cpu.time", READ_STAT | READ_CLOCK},
        {"cpu.usage", READ_STAT | READ_CLOCK}, /* through cpu.time */
        {"cpu.ratio", READ_STAT | READ_CLOCK}, /* through cpu.usage through cpu.time */
        {"io.read.rate", READ_STAT | READ_IO},
        {"mem.ratio", READ_STAT | READ_SMAPS | READ_STATM}, /* PSS, else RSS */
        {"fds", READ_STAT | READ_FD},
        {"procs", READ_STAT},
        {"mem.cgroup", READ_STAT | READ_CGROUP}, /* one file, and not that of its parts */
        {"mem.cgroup.file", READ_STAT | READ_CGROUP_REST},
        {"system.psi.io.full", READ_STAT | READ_PSI_IO},
        {"mem.swap", READ_STAT | READ_STATUS},
        {"mem.pss,fds", READ_STAT | READ_SMAPS | READ_FD},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        teardown(NULL);
        setup(NULL);
        struct pr_select s = selected(cases[i].keys);
        if (s.reads != cases[i].reads)
            fail_msg("%s reads %#x, not %#x", cases[i].keys, s.reads, cases[i].reads);
    }
}

static void test_families(void **state)
{
    (void)state;
    struct pr_select s = selected("cpu.*");
    for (int id = 0; id < METRIC_COUNT; id++)
        assert_int_equal(pr_selected(&s, id), strncmp(pr_metrics[id].key, "cpu.", 4) == 0);
    s = selected("procs");
    assert_true(pr_selected(&s, METRIC_PROCS));
    assert_false(pr_selected(&s, METRIC_PROCS_STARTED)); /* a key is that key alone */
    s = selected("*");
    assert_true(pr_selected(&s, METRIC_ENERGY));
}

/* A run that nobody is told of has its lines at the end; what these say is read. */
static void test_what_the_lines_say_is_read(void **state)
{
    (void)state;
    const unsigned said = READ_STAT | READ_STATM | READ_IO | READ_STATUS | READ_SMAPS | READ_FD |
                          READ_CLOCK | READ_SCHED | READ_CGROUP | READ_PSI_IO | READ_GPU;
    const unsigned not_said = READ_NET | READ_NETDEV | READ_DISKS | READ_SPACE | READ_LOAD |
                              READ_MEMINFO | READ_CPUS | READ_ENERGY | READ_CGROUP_REST | READ_PSI;
    c.kept = c.no_record = true;
    assert_int_equal(pr_select_of(&c).reads, said);
    c.no_record = false;
    assert_int_equal(pr_select_of(&c).reads, said | not_said);
}

static void test_no_pss(void **state)
{
    (void)state;
    c.no_pss = true;
    struct pr_select s = pr_select_of(&c);
    assert_false(pr_selected(&s, METRIC_MEM_PSS));
    assert_false(pr_selected(&s, METRIC_MEM_USS));
    assert_false(pr_selected(&s, METRIC_MEM_PSS_AGE));
    assert_true(pr_selected(&s, METRIC_MEM_RSS));
    assert_true(pr_selected(&s, METRIC_MEM_RATIO)); /* from RSS, then */
    assert_false(s.reads & READ_SMAPS);
    s = selected("mem.ratio");
    assert_false(s.reads & READ_SMAPS);
    assert_true(s.reads & READ_STATM);
}

static void test_no_gpu(void **state)
{
    (void)state;
    c.no_gpu = true;
    struct pr_select s = pr_select_of(&c);
    for (int id = 0; id < METRIC_COUNT; id++)
        assert_int_equal(pr_selected(&s, id), !strstr(pr_metrics[id].key, "gpu."));
    assert_false(s.reads & READ_GPU);
}

static void test_check(void **state)
{
    (void)state;
    assert_int_equal(pr_select_check("cpu.*", "--select", &err), 0);
    assert_int_equal(pr_select_check("mem.rss", "--select", &err), 0);
    assert_int_equal(pr_select_check("mem.rs", "--select", &err), -EINVAL);
    assert_contains(err.message, "--select");
    assert_contains(err.message, "'mem.rs'");
    assert_contains(err.message, "proctor metrics");
    assert_int_equal(pr_select_check("xyz.*", "--select", &err), -EINVAL);
    assert_int_equal(pr_select_check("cpu.time ", "--select", &err), -EINVAL);
    assert_int_equal(pr_select_check("CPU.TIME", "--select", NULL), -EINVAL);
}

static void test_empty_items_of_a_list(void **state)
{
    (void)state;
    struct pr_select s = selected("cpu.time,,procs,");
    assert_true(pr_selected(&s, METRIC_CPU_TIME));
    assert_true(pr_selected(&s, METRIC_PROCS));
    assert_false(pr_selected(&s, METRIC_MEM_RSS));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_by_default), TEST(test_only_what_is_needed_is_read),
        TEST(test_families),       TEST(test_what_the_lines_say_is_read),
        TEST(test_no_pss),         TEST(test_no_gpu),
        TEST(test_check),          TEST(test_empty_items_of_a_list),
    };
    return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}
