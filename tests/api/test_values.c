/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue, and all values at once: the same as one by one. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "proctor/proctor.h"

#define MOST 1000

static void the_catalogue_has_every_metric(void **state)
{
    (void)state;
    size_t n = proctor_metrics();
    bool rss = false;
    assert_true(n > 50 && n < MOST);
    for (size_t i = 0; i < n; i++) {
        assert_true(*proctor_metric_key(i) && *proctor_metric_kind(i));
        assert_true(*proctor_metric_scope(i) && *proctor_metric_help(i));
        rss |= strcmp(proctor_metric_key(i), "mem.rss") == 0 &&
               strcmp(proctor_metric_unit(i), "bytes") == 0 &&
               strcmp(proctor_metric_kind(i), "gauge") == 0;
    }
    assert_true(rss);
    assert_null(proctor_metric_key(n));
    assert_null(proctor_metric_unit(n));
    assert_null(proctor_metric_kind(n));
    assert_null(proctor_metric_scope(n));
    assert_null(proctor_metric_help(n));
}

/* Wrong ones among `count` values, of which one by one says `code` and `v`. */
static int differs(double all, int code, double v)
{
    return code == 0 ? all != v : !isnan(all);
}

static int wrong_values(const struct proctor_snapshot *s)
{
    double all[MOST], v = 0;
    int wrong = proctor_snapshot_values(s, all, MOST) != proctor_metrics();
    for (size_t i = 0; i < proctor_metrics(); i++) {
        int code = proctor_snapshot_value(s, proctor_metric_key(i), &v);
        wrong += differs(all[i], code, v);
    }
    return wrong;
}

static int wrong_process(const struct proctor_snapshot *s, size_t who)
{
    double all[MOST], v = 0;
    size_t n = proctor_snapshot_process_values(s, who, all, MOST);
    int wrong = n == 0 || n > proctor_metrics();
    for (size_t i = 0; i < proctor_metrics(); i++) {
        int code = proctor_snapshot_process_value(s, who, proctor_metric_key(i), &v);
        wrong += i < n ? differs(all[i], code, v) : code != -ENOENT;
    }
    return wrong;
}

static int wrong_device(const struct proctor_snapshot *s, size_t which)
{
    double all[MOST], v = 0;
    int wrong = proctor_snapshot_device_values(s, which, all, MOST) != proctor_metrics();
    for (size_t i = 0; i < proctor_metrics(); i++) {
        int code = proctor_snapshot_device_value(s, which, proctor_metric_key(i), &v);
        wrong += differs(all[i], code, v);
    }
    return wrong;
}

static bool says_else(const char *all, const char *one)
{
    return !all != !one || (all && strcmp(all, one) != 0);
}

/* The number of those that are marked goes into ret. */
static int wrong_marks(const struct proctor_snapshot *s, int *ret_marked)
{
    const char *all[MOST];
    int wrong = proctor_snapshot_marks(s, all, MOST) != proctor_metrics();
    for (size_t i = 0; i < proctor_metrics(); i++) {
        wrong += says_else(all[i], proctor_snapshot_mark(s, proctor_metric_key(i)));
        *ret_marked += all[i] != NULL;
    }
    return wrong;
}

struct seen {
    int samples, processes, devices, marked, wrong;
};

static void look(const struct proctor_snapshot *s, void *data)
{
    struct seen *seen = data;
    double one[2] = {-1, -1};
    const char *word[2] = {"", ""};
    seen->samples++;
    seen->wrong += wrong_values(s);
    seen->wrong += wrong_marks(s, &seen->marked);
    for (size_t i = 0; i < proctor_snapshot_processes(s); i++, seen->processes++)
        seen->wrong += wrong_process(s, i);
    for (size_t i = 0; i < proctor_snapshot_devices(s); i++, seen->devices++)
        seen->wrong += wrong_device(s, i);
    seen->wrong += proctor_snapshot_process_values(s, MOST, one, 1) != 0;
    seen->wrong += proctor_snapshot_device_values(s, MOST, one, 1) != 0;
    proctor_snapshot_values(s, one, 1); /* no more than there is room for */
    seen->wrong += one[1] != -1;
    proctor_snapshot_marks(s, word, 1);
    seen->wrong += !word[1] || *word[1];
}

static struct proctor_monitor *of_this_process(void)
{
    struct proctor_monitor *m = NULL;
    assert_int_equal(proctor_monitor_new(&m, NULL), 0);
    assert_int_equal(proctor_monitor_watch_pid(m, getpid(), 0, NULL), 0);
    assert_int_equal(proctor_monitor_set(m, "interval", "10ms", NULL), 0);
    return m;
}

static void all_at_once_are_those_one_by_one(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct proctor_sink sink = {.size = sizeof sink,
                                .wants = PROCTOR_WANT_PROCESSES | PROCTOR_WANT_DEVICES,
                                .sample = look};
    struct proctor_monitor *m = of_this_process();
    assert_int_equal(proctor_monitor_add_sink(m, &sink, &seen, NULL), 0);
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    assert_null(proctor_monitor_latest(m)); /* the thread's */
    usleep(100000);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    proctor_monitor_free(m);
    assert_true(seen.samples > 2 && seen.processes > 2 && seen.devices > 0 && seen.marked > 0);
    assert_int_equal(seen.wrong, 0);
}

static void what_collect_took_can_be_looked_at(void **state)
{
    (void)state;
    double v, elapsed;
    struct proctor_monitor *m = of_this_process();
    assert_null(proctor_monitor_latest(m));
    assert_int_equal(proctor_monitor_collect(m, NULL), 0);
    const struct proctor_snapshot *s = proctor_monitor_latest(m);
    assert_non_null(s);
    assert_int_equal(proctor_snapshot_value(s, "mem.rss", &v), 0);
    assert_true(v > 100000);
    assert_int_equal(wrong_values(s), 0);
    elapsed = proctor_snapshot_elapsed(s);
    usleep(2000);
    assert_int_equal(proctor_monitor_collect(m, NULL), 0);
    assert_true(proctor_snapshot_elapsed(proctor_monitor_latest(m)) > elapsed);
    proctor_monitor_free(m);
}

static void spike(size_t size)
{
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    memset(at, 1, size);
    munmap(at, size);
}

/* The mark is reset at each sample, and some samples read twice: the first reading must not be lost
 * to the second. */
static void peaks_before_the_end_and_in_phases_count(void **state)
{
    (void)state;
    const size_t small = 40 << 20, large = 80 << 20;
    for (int turn = 0; turn < 2; turn++) {
        double before, peak;
        struct proctor_monitor *m = of_this_process();
        assert_int_equal(proctor_monitor_set(m, "interval", "10s", NULL), 0);
        assert_int_equal(proctor_monitor_set(m, "peaks", "interval", NULL), 0);
        assert_int_equal(proctor_monitor_collect(m, NULL), 0);
        assert_int_equal(proctor_snapshot_value(proctor_monitor_latest(m), "mem.rss", &before), 0);
        assert_int_equal(proctor_monitor_start(m, NULL), 0);
        assert_int_equal(proctor_monitor_phase_begin(m, "p", NULL), 0);
        spike(turn ? large : small);
        assert_int_equal(proctor_monitor_phase_end(m, "p", NULL), 0);
        spike(small);
        assert_int_equal(proctor_monitor_stop(m, NULL), 0);
        assert_int_equal(proctor_monitor_peak(m, "mem.rss.peak", &peak), 0);
        assert_true(peak >= before + (double)(turn ? large : small) * 0.95);
        proctor_monitor_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_catalogue_has_every_metric),
        cmocka_unit_test(all_at_once_are_those_one_by_one),
        cmocka_unit_test(what_collect_took_can_be_looked_at),
        cmocka_unit_test(peaks_before_the_end_and_in_phases_count),
    };
    return cmocka_run_group_tests_name("api_values", tests, NULL, NULL);
}
