/* SPDX-License-Identifier: Apache-2.0 */
/* Phases: what they count, how they nest and end, and that they stay within their bounds. */
#include "check.h"
#include "core/phase.h"
#include "util/clock.h"

struct world {
    struct pr_phases p;
    struct pr_select select;
    struct pr_limits limits;
    struct proctor_snapshot s;
};

static struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    memset(w->select.shown, true, sizeof w->select.shown);
    w->limits.total[LIMIT_CPU] = 4;
    w->limits.total[LIMIT_MEMORY] = 1000;
    pr_phases_init(&w->p, &w->select, &w->limits, false);
    pr_values_none(w->s.value, METRIC_COUNT);
    return w;
}

static void world_free(struct world *w)
{
    pr_phases_done(&w->p, true);
    free(w);
}

/* A sample at so many seconds: CPU time and resident memory. */
static void sample(struct world *w, double at, double cpu, double rss)
{
    int64_t elapsed = llround(at * 1e9);
    w->s.interval = elapsed - w->s.elapsed;
    w->s.elapsed = elapsed;
    w->s.value[METRIC_CPU_TIME] = cpu;
    w->s.value[METRIC_MEM_RSS] = rss;
    pr_phases_add(&w->p, &w->s);
}

static void begin(struct world *w, const char *name, double at)
{
    assert_int_equal(pr_phases_begin(&w->p, name, at, 0, true, &w->s), 0);
}

static struct pr_stats stats_of(struct world *w, size_t i)
{
    struct pr_stats stats;
    assert_true(i < w->p.kept_count);
    pr_phase_stats(&w->p, &w->p.kept[i], &stats);
    return stats;
}

static bool is_marked(struct world *w, const struct pr_phase *phase)
{
    struct pr_buf text = {0};
    struct pr_json j = {.out = &text};
    pr_phase_put(&j, &w->p, phase);
    const char *mark = strstr(pr_buf_text(&text), "known in few samples");
    const char *rss = strstr(pr_buf_text(&text), "\"mem.rss\"");
    assert_non_null(rss);
    bool marked = mark && mark > rss;
    assert_true(!mark || marked); /* cpu.time is before it */
    pr_buf_done(&text);
    return marked;
}

/* Also of many that are added up: two samples for each are its ends. */
static void test_memory_of_two_ends_alone_is_marked(void **state)
{
    (void)state;
    struct world *w = world_new();
    for (int i = 0; i < PHASES_KEPT + 4; i++) {
        sample(w, 3 * i, i, 100);
        begin(w, "a", 3 * i);
        if (i == 1 || i == PHASES_KEPT + 3)
            sample(w, 3 * i + 1, i, 900);
        sample(w, 3 * i + 2, i, 100);
        pr_phases_end(&w->p, "a", 3 * i + 2, true, false);
        if (i == PHASES_KEPT + 2)
            assert_true(is_marked(w, &w->p.folded[0]));
    }
    assert_true(is_marked(w, &w->p.kept[0]));
    assert_false(pr_phase_saw(&w->p.kept[0], METRIC_MEM_RSS));
    assert_false(is_marked(w, &w->p.kept[1]));
    assert_true(pr_phase_saw(&w->p.kept[1], METRIC_MEM_RSS));
    assert_false(is_marked(w, &w->p.folded[0]));
    world_free(w);
}

/* What is known to be too small until the job has ended is no measure of the last phase. */
static void test_what_catches_up_at_the_end_is_not_the_last_phases(void **state)
{
    (void)state;
    struct world *w = world_new();
    w->s.mark[METRIC_CTX_VOLUNTARY] = MARK_LOWER_BOUND;
    w->s.value[METRIC_CTX_VOLUNTARY] = 10;
    sample(w, 1, 1, 100);
    begin(w, "a", 1);
    w->s.value[METRIC_CTX_VOLUNTARY] = 12;
    sample(w, 2, 2, 100);
    w->s.mark[METRIC_CTX_VOLUNTARY] = MARK_NONE; /* all were waited for */
    w->s.value[METRIC_CTX_VOLUNTARY] = 900;
    sample(w, 3, 3, 100);
    pr_phases_end(&w->p, "a", 3, true, false);
    struct pr_stats stats = stats_of(w, 0);
    assert_exactly(pr_stats_total(&stats, METRIC_CTX_VOLUNTARY), 2);
    assert_int_equal(pr_said_mark(&stats.metric[METRIC_CTX_VOLUNTARY].said), MARK_LOWER_BOUND);
    assert_exactly(pr_stats_total(&stats, METRIC_CPU_TIME), 2);
    world_free(w);
}

static void test_a_phase_has_what_happened_in_it_alone(void **state)
{
    (void)state;
    struct world *w = world_new();
    sample(w, 1, 10, 900); /* before it */
    sample(w, 2, 11, 100);
    begin(w, "a", 2);
    sample(w, 3, 14, 300);
    sample(w, 6, 16, 200);
    pr_phases_end(&w->p, "a", 6.5, true, false);
    sample(w, 7, 99, 999); /* behind it */
    struct pr_stats st = stats_of(w, 0);
    assert_exactly(pr_stats_total(&st, METRIC_CPU_TIME), 5);
    assert_exactly(pr_stats_peak(&st, METRIC_MEM_RSS), 300);
    assert_exactly(st.metric[METRIC_MEM_RSS].at, 3);
    assert_exactly(st.metric[METRIC_MEM_RSS].min, 100);
    assert_near(pr_stats_mean(&st, METRIC_MEM_RSS), (300 + 3 * 200) / 4.0, 1e-9);
    assert_near(pr_stats_mean(&st, METRIC_CPU_USAGE), 5 / 4.0, 1e-9);
    assert_near(pr_stats_mean(&st, METRIC_CPU_RATIO), 5 / 16.0, 1e-9);
    assert_exactly(w->p.kept[0].start, 2);
    assert_exactly(w->p.kept[0].seconds, 4.5);
    assert_true(w->p.kept[0].exact);
    world_free(w);
}

/* The kernel's mark of before says nothing of the phase. */
static void test_a_high_water_mark_counts_where_it_rises(void **state)
{
    (void)state;
    struct world *w = world_new();
    w->s.value[METRIC_MEM_RSS_PEAK] = 500;
    sample(w, 1, 0, 100);
    begin(w, "low", 1);
    sample(w, 2, 0, 100);
    pr_phases_end(&w->p, "low", 2, true, false);
    begin(w, "high", 2);
    w->s.value[METRIC_MEM_RSS_PEAK] = 700;
    sample(w, 3, 0, 100);
    pr_phases_end(&w->p, "high", 3, true, false);
    struct pr_stats low = stats_of(w, 0), high = stats_of(w, 1);
    assert_absent(pr_stats_peak(&low, METRIC_MEM_RSS_PEAK));
    assert_exactly(pr_stats_peak(&high, METRIC_MEM_RSS_PEAK), 700);
    world_free(w);
}

/* A counter that is not in every sample counts from where it was last known. */
static void test_a_counter_that_is_absent_for_a_moment(void **state)
{
    (void)state;
    struct world *w = world_new();
    sample(w, 1, 3, 0);
    sample(w, 2, NAN, 0);
    begin(w, "a", 2);
    sample(w, 3, 5, 0);
    sample(w, 4, NAN, 0);
    pr_phases_end(&w->p, "a", 4, true, false);
    struct pr_stats st = stats_of(w, 0);
    assert_exactly(pr_stats_total(&st, METRIC_CPU_TIME), 2);
    world_free(w);
}

static void test_ending_an_outer_one_ends_the_inner_ones(void **state)
{
    (void)state;
    struct world *w = world_new();
    sample(w, 0, 0, 1);
    begin(w, "a", 0);
    begin(w, "b", 1);
    assert_int_equal(pr_phases_begin(&w->p, "process", 1, 7, true, &w->s), 0);
    begin(w, "b", 2); /* again, and deeper */
    assert_true(pr_phases_is_open(&w->p, "a"));
    assert_false(pr_phases_is_open(&w->p, "c"));
    pr_phases_end(&w->p, "b", 3, true, false);
    assert_int_equal(w->p.kept_count, 1);
    assert_int_equal(w->p.kept[0].depth, 3);
    assert_exactly(w->p.kept[0].start, 2);
    pr_phases_end(&w->p, "a", 4, true, false);
    assert_int_equal(w->p.kept_count, 3);
    assert_int_equal(w->p.open_count, 1); /* it ends with its process */
    assert_true(pr_phases_is_owned(&w->p, 7));
    pr_phases_end(&w->p, "a", 5, true, false); /* not open: nothing happens */
    assert_int_equal(w->p.kept_count, 3);
    pr_phases_end_owner(&w->p, 8, 5, true, false);
    assert_int_equal(w->p.open_count, 1);
    pr_phases_end_owner(&w->p, 7, 6, true, false);
    assert_int_equal(w->p.open_count, 0);
    assert_string_equal(w->p.kept[3].name, "process");
    assert_exactly(w->p.kept[3].seconds, 5);
    world_free(w);
}

static void test_what_is_open_ends_with_the_run(void **state)
{
    (void)state;
    struct world *w = world_new();
    sample(w, 0, 0, 1);
    begin(w, "open", 0);
    begin(w, "over", 1);
    pr_phases_end(&w->p, "over", 2, true, true); /* the last sample is still to come */
    assert_int_equal(w->p.kept_count, 0);
    assert_false(pr_phases_is_open(&w->p, "over"));
    sample(w, 3, 8, NAN);
    pr_phases_finish(&w->p, 3);
    struct pr_stats over = stats_of(w, 0);
    assert_exactly(pr_stats_total(&over, METRIC_CPU_TIME), 8);
    assert_exactly(w->p.kept[0].seconds, 1);
    assert_false(w->p.kept[0].left_open);
    assert_exactly(w->p.kept[1].seconds, 3);
    assert_true(w->p.kept[1].left_open);
    world_free(w);
}

static void test_the_nearest_sample_counts_and_is_marked(void **state)
{
    (void)state;
    struct world *w = world_new();
    sample(w, 1, 4, 50);
    assert_int_equal(pr_phases_begin(&w->p, "a", 1.5, 0, false, &w->s), 0);
    sample(w, 2, 6, 70);
    pr_phases_end(&w->p, "a", 2.5, false, false);
    struct pr_stats st = stats_of(w, 0);
    assert_exactly(pr_stats_total(&st, METRIC_CPU_TIME), 2);
    assert_exactly(st.metric[METRIC_MEM_RSS].min, 70); /* what was before it began is not in it */
    assert_exactly(w->p.kept[0].seconds, 1);
    assert_false(w->p.kept[0].exact);
    world_free(w);
}

static void test_only_so_many_are_open(void **state)
{
    (void)state;
    struct world *w = world_new();
    sample(w, 0, 0, 1);
    for (int i = 0; i < PHASES_OPEN; i++)
        begin(w, "a", i);
    assert_int_equal(pr_phases_begin(&w->p, "a", 99, 0, true, &w->s), -EMFILE);
    pr_phases_finish(&w->p, 100);
    assert_int_equal(w->p.ended, PHASES_OPEN);
    world_free(w);
}

static void test_beyond_a_thousand_they_are_added_up_by_name(void **state)
{
    (void)state;
    struct world *w = world_new();
    char name[32];
    const int more = 2 * PHASES_NAMES;
    for (int i = 0; i < PHASES_KEPT + more; i++) {
        snprintf(name, sizeof name, "%d", i < PHASES_KEPT + 10 ? 1 : i);
        sample(w, i, i * 3, i);
        begin(w, name, i);
        sample(w, i + 0.5, i * 3 + 2, i);
        pr_phases_end(&w->p, name, i + 0.5, true, false);
    }
    assert_int_equal(w->p.ended, PHASES_KEPT + more);
    assert_int_equal(w->p.kept_count, PHASES_KEPT);
    assert_int_equal(w->p.folded_count, PHASES_NAMES);
    const struct pr_phase *first = &w->p.folded[0], *others = &w->p.folded[PHASES_NAMES - 1];
    struct pr_stats st;
    pr_phase_stats(&w->p, first, &st);
    assert_int_equal(first->instances, 10);
    assert_near(first->seconds, 5, 1e-9);
    assert_exactly(pr_stats_total(&st, METRIC_CPU_TIME), 20);
    assert_exactly(pr_stats_peak(&st, METRIC_MEM_RSS), PHASES_KEPT + 9);
    assert_null(first->quantiles); /* those of several cannot be made of theirs */
    assert_non_null(w->p.kept[PHASES_KEPT - 1].quantiles);
    assert_string_equal(others->name, "(others)");
    assert_int_equal(others->instances, more - 10 - (PHASES_NAMES - 2));
    world_free(w);
}

/* Each has its own, though one after the other uses the same memory. */
static void test_quantiles_of_a_phase(void **state)
{
    (void)state;
    struct world *w = world_new();
    double q[QUANTILES], at = 0;
    for (int k = 1; k <= 3; k++) {
        begin(w, "outer", at);
        begin(w, "a", at);
        for (int i = 1; i <= 200; i++)
            sample(w, ++at, 0, k * 1000 + i);
        pr_phases_end(&w->p, "outer", at, true, false);
    }
    for (size_t i = 0; i < 6; i++) {
        double k = 1000 * (1 + (double)(i / 2));
        struct pr_stats of = stats_of(w, i);
        assert_true(pr_stats_quantiles(&of, METRIC_MEM_RSS, q));
        assert_near(q[0], k + 100, (k + 100) * SKETCH_ERROR);
        assert_near(q[3], k + 198, (k + 198) * SKETCH_ERROR);
        assert_true(pr_stats_quantiles(&of, METRIC_MEM_PSS, q));
        assert_absent(q[0]);
    }
    world_free(w);
}

static void test_json(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct pr_buf out = {0};
    struct pr_json j = {.out = &out};
    memset(w->select.shown, false, sizeof w->select.shown);
    w->select.shown[METRIC_CPU_TIME] = true;
    sample(w, 1, 2, 3);
    begin(w, "a \"b\"", 1);
    sample(w, 2, 5, 3);
    pr_phases_end(&w->p, "a \"b\"", 2, true, false);
    pr_phase_put(&j, &w->p, &w->p.kept[0]);
    assert_buf(&out,
               "\"name\":\"a \\\"b\\\"\",\"start\":1,\"seconds\":1,\"depth\":0,\"instances\":1,"
               "\"exact\":true,\"left_open\":false,"
               "\"metrics\":{\"cpu.time\":{\"total\":3}}");
    pr_buf_done(&out);
    world_free(w);
}

static void test_marks_are_kept_up_to_a_bound_and_all_counted(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct pr_buf line = {0};
    struct pr_notes_place place = {0};
    struct pr_note note;
    w->p.notes.wanted = true;
    for (int i = 0; i < 2 * MARKS_KEPT; i++)
        pr_phases_mark(&w->p, "m", i ? "{\"i\": 1}" : NULL, i);
    assert_int_equal(w->p.marks_kept, MARKS_KEPT);
    assert_int_equal(w->p.marked, 2 * MARKS_KEPT);
    for (int i = 0; i < 2 * MARKS_KEPT; i++) {
        assert_true(pr_notes_next(&w->p.notes, &place, &note, &line));
        assert_int_equal(note.elapsed, i * NS_PER_S);
        assert_buf(&line, i ? "\"event\":\"mark\",\"name\":\"m\",\"data\":{\"i\": 1}"
                            : "\"event\":\"mark\",\"name\":\"m\",\"data\":{}");
    }
    assert_false(pr_notes_next(&w->p.notes, &place, &note, &line));
    pr_buf_done(&line);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_catches_up_at_the_end_is_not_the_last_phases),
        cmocka_unit_test(test_a_phase_has_what_happened_in_it_alone),
        cmocka_unit_test(test_memory_of_two_ends_alone_is_marked),
        cmocka_unit_test(test_a_high_water_mark_counts_where_it_rises),
        cmocka_unit_test(test_a_counter_that_is_absent_for_a_moment),
        cmocka_unit_test(test_ending_an_outer_one_ends_the_inner_ones),
        cmocka_unit_test(test_what_is_open_ends_with_the_run),
        cmocka_unit_test(test_the_nearest_sample_counts_and_is_marked),
        cmocka_unit_test(test_only_so_many_are_open),
        cmocka_unit_test(test_beyond_a_thousand_they_are_added_up_by_name),
        cmocka_unit_test(test_quantiles_of_a_phase),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_marks_are_kept_up_to_a_bound_and_all_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
