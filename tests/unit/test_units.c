/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <locale.h>

#include "check.h"
#include "util/units.h"

/* --- a locale with a decimal comma of two bytes ----------------------------------------------- */

static bool comma;

int __wrap_snprintf(char *text, size_t size, const char *format, ...);
double __real_strtod(const char *text, char **end);
double __wrap_strtod(const char *text, char **end);

int __wrap_snprintf(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, size, format, args);
    va_end(args);
    char *point = comma ? strchr(text, '.') : NULL;
    if (!point)
        return n;
    memmove(point + 2, point + 1, strlen(point + 1) + 1);
    memcpy(point, ",,", 2);
    return n + 1;
}

double __wrap_strtod(const char *text, char **end)
{
    char plain[64];
    const char *point = strstr(text, ",,");
    if (!point)
        return __real_strtod(text, end);
    size_t before = (size_t)(point - text);
    memcpy(plain, text, before);
    plain[before] = '.';
    strcpy(plain + before + 1, point + 2);
    return __real_strtod(plain, end);
}

static void test_names_and_suffixes(void **state)
{
    (void)state;
    /* interface.md section 4: a column's unit. */
    static const struct {
        enum pr_unit unit;
        const char *suffix;
    } cases[] = {
        {UNIT_COUNT, ""},           {UNIT_SECONDS, "_seconds"},
        {UNIT_BYTES, "_bytes"},     {UNIT_BYTES_PER_SECOND, "_bytes_per_second"},
        {UNIT_CORES, "_cores"},     {UNIT_RATIO, "_ratio"},
        {UNIT_WATTS, "_watts"},     {UNIT_JOULES, "_joules"},
        {UNIT_CELSIUS, "_celsius"}, {UNIT_HERTZ, "_hertz"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(pr_units_suffix(cases[i].unit), cases[i].suffix);
    assert_string_equal(pr_units_name(UNIT_COUNT), "1");
    assert_string_equal(pr_units_name(UNIT_BYTES), "bytes");
}

static void test_number(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-1, "-1"},
        {100, "100"},
        {0.5, "0.5"},
        {-0.25, "-0.25"},
        {1.0 / 3, "0.333333333"},
        {2.0 / 3, "0.666666667"},
        {0.000000001, "0.000000001"},
        {0.0000000001, "0"},
        {-0.0000000001, "0"},
        {0.9999999999, "1"},
        {1234567890123, "1234567890123"},
        {1e10 + 0.5, "10000000000.5"},
        {9007199254740992.0, "9007199254740992"},
        {18446744073709551615.0, "9000000000000000000"},
    };
    struct pr_buf b = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pr_units_number(&b, cases[i].v);
        assert_buf(&b, cases[i].text);
    }
    /* Zeros of what stands before are not its own. */
    pr_buf_str(&b, "10,");
    pr_units_number(&b, 0.5);
    pr_units_number(&b, 100);
    assert_buf(&b, "10,0.5100");
    pr_buf_done(&b);
}

static void test_fixed(void **state)
{
    (void)state;
    struct pr_buf b = {0};
    pr_units_fixed(&b, 1.0005, 3);
    assert_true(b.len == 5);
    pr_buf_reset(&b);
    pr_units_fixed(&b, 1794733373.123, 3);
    assert_buf(&b, "1794733373.123");
    pr_units_fixed(&b, 0.05, 3);
    assert_buf(&b, "0.050");
    pr_units_fixed(&b, -0.0004, 3);
    assert_buf(&b, "0.000");
    pr_units_fixed(&b, 2.5, 0);
    assert_buf(&b, "3");
    pr_units_fixed(&b, NAN, 3);
    pr_units_fixed(&b, INFINITY, 3);
    assert_buf(&b, "");
    pr_units_fixed(&b, 1e300, 3);
    assert_buf(&b, "9000000000000000000");
    pr_buf_done(&b);
}

static void test_human(void **state)
{
    (void)state;
    static const struct {
        double v;
        enum pr_unit unit;
        const char *text;
    } cases[] = {
        {412.0 * 1024 * 1024, UNIT_BYTES, "412 MiB"},
        {0, UNIT_BYTES, "0 B"},
        {1023, UNIT_BYTES, "1023 B"},
        {1023.6, UNIT_BYTES, "1.00 KiB"},
        {1024, UNIT_BYTES, "1.00 KiB"},
        {1536, UNIT_BYTES, "1.50 KiB"},
        {10.0 * 1024, UNIT_BYTES, "10.0 KiB"},
        {1023.7 * 1024 * 1024, UNIT_BYTES, "1.00 GiB"},
        {3.0 * 0x1p50, UNIT_BYTES, "3.00 PiB"},
        {2048, UNIT_BYTES_PER_SECOND, "2.00 KiB/s"},
        {1.72, UNIT_CORES, "1.72 cores"},
        {12.4, UNIT_SECONDS, "12.4 s"},
        {0, UNIT_SECONDS, "0 s"},
        {0.0124, UNIT_SECONDS, "12.4 ms"},
        {0.9996, UNIT_SECONDS, "1.00 s"},
        {9.996, UNIT_SECONDS, "10.0 s"},
        {99.96, UNIT_SECONDS, "1 m 40 s"},
        {4324, UNIT_SECONDS, "1 h 12 m 04 s"},
        {3599.7, UNIT_SECONDS, "1 h 00 m 00 s"},
        {90061, UNIT_SECONDS, "1 d 1 h 01 m 01 s"},
        {7, UNIT_COUNT, "7"},
        {99.96, UNIT_PERCENT, "100 %"},
    };
    struct pr_buf b = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pr_units_human(&b, cases[i].v, cases[i].unit);
        assert_buf(&b, cases[i].text);
    }
    pr_buf_done(&b);
}

struct parsed {
    const char *text;
    double value; /* NaN where it must be refused */
};

static void check_parse(bool (*parse)(const char *, double *), const struct parsed *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v = -77;
        bool good = parse(cases[i].text, &v);
        if (good == isnan(cases[i].value))
            fail_msg("'%s' is %s", cases[i].text, good ? "accepted" : "refused");
        assert_near(v, good ? cases[i].value : -77, fabs(v) * 1e-12);
    }
}

static void test_parse_duration(void **state)
{
    (void)state;
    static const struct parsed cases[] = {
        {"100ms", 0.1}, {"0.5", 0.5},  {"2s", 2},    {"5m", 300},  {"5min", 300},   {"1h", 3600},
        {"1d", 86400},  {"1us", 1e-6}, {".5s", 0.5}, {"0", 0},     {"1.25s", 1.25}, {"1e3", NAN},
        {"", NAN},      {"s", NAN},    {"-1s", NAN}, {" 1s", NAN}, {"1 s", NAN},    {"1s ", NAN},
        {"1sec", NAN},  {".", NAN},    {"nan", NAN}, {"inf", NAN}, {"0x10", NAN},   {"1,5", NAN},
        {"1s2", NAN},   {"+1", NAN},   {"1..5", NAN}};
    check_parse(pr_units_parse_duration, cases, COUNT_OF(cases));
}

static void test_parse_size(void **state)
{
    (void)state;
    static const struct parsed cases[] = {
        {"1048576", 1048576}, {"64G", 64 * 0x1p30}, {"64GiB", 64 * 0x1p30}, {"64Gi", 64 * 0x1p30},
        {"64g", 64 * 0x1p30}, {"64GB", 64e9},       {"512M", 512 * 0x1p20}, {"1.5K", 1536},
        {"1kB", 1000},        {"10B", 10},          {"1TiB", 0x1p40},       {"1Gib", NAN},
        {"G", NAN},           {"-1G", NAN},         {"1 G", NAN},           {"max", NAN}};
    check_parse(pr_units_parse_size, cases, COUNT_OF(cases));
}

static void test_parse_number_and_percent(void **state)
{
    (void)state;
    static const struct parsed numbers[] = {{"4", 4},    {"2.5", 2.5}, {"0", 0},   {"4%", NAN},
                                            {"-4", NAN}, {"", NAN},    {"4x", NAN}};
    static const struct parsed percents[] = {{"1%", 1},  {"1", 1},     {"0.5%", 0.5},
                                             {"%", NAN}, {"1%%", NAN}, {"-1%", NAN}};
    check_parse(pr_units_parse_number, numbers, COUNT_OF(numbers));
    check_parse(pr_units_parse_percent, percents, COUNT_OF(percents));
}

struct printed {
    double v;
    int decimals;
    const char *text;
};

/* What Python says to '%.*f' % v, of the exact value. */
static const struct printed exact[] = {
    {0, 0, "0"},
    {0.5, 0, "0"},
    {1.5, 0, "2"},
    {2.5, 0, "2"},
    {0.125, 2, "0.12"},
    {0.375, 2, "0.38"},
    {1.005, 2, "1.00"},
    {2.675, 2, "2.67"},
    {-2.5, 0, "-2"},
    {-0.125, 2, "-0.12"},
    {1794722606.5, 3, "1794722606.500"},
    {9007199254740993.0, 1, "9007199254740992.0"},
    {1e21, 0, "1000000000000000000000"},
};

/* What Python says to repr(v). */
static const struct printed shortest[] = {
    {0, 0, "0.0"},
    {-0.0, 0, "-0.0"},
    {1, 0, "1.0"},
    {10, 0, "10.0"},
    {0.1, 0, "0.1"},
    {0.25, 0, "0.25"},
    {0.0001, 0, "0.0001"},
    {0.001234, 0, "0.001234"},
    {0.00001, 0, "1e-05"},
    {1.5e-6, 0, "1.5e-06"},
    {-3.25, 0, "-3.25"},
    {1.0 / 3, 0, "0.3333333333333333"},
    {2.0 / 3, 0, "0.6666666666666666"},
    {0.1 + 0.2, 0, "0.30000000000000004"},
    {1794722606.1234567, 0, "1794722606.1234567"},
    {1e15, 0, "1000000000000000.0"},
    {9007199254740993.0, 0, "9007199254740992.0"},
    {1e16, 0, "1e+16"},
    {1.5e300, 0, "1.5e+300"},
};

static void check_printed(void)
{
    struct pr_buf b = {0};
    for (size_t i = 0; i < COUNT_OF(exact); i++) {
        pr_units_exact(&b, exact[i].v, exact[i].decimals);
        assert_buf(&b, exact[i].text);
    }
    for (size_t i = 0; i < COUNT_OF(shortest); i++) {
        pr_units_shortest(&b, shortest[i].v);
        assert_buf(&b, shortest[i].text);
    }
    assert_exactly(pr_units_round(2.675, 2), 2.67);
    assert_exactly(pr_units_round(0.00005, 4), 0.0001);
    assert_exactly(pr_units_round(1234.5, 0), 1234);
    pr_buf_done(&b);
}

static void test_as_python_prints(void **state)
{
    struct pr_buf b = {0};
    (void)state;
    check_printed();
    pr_units_exact(&b, NAN, 2);
    pr_units_exact(&b, INFINITY, 2);
    pr_units_exact(&b, 1e22, 2);
    pr_units_shortest(&b, NAN);
    pr_units_shortest(&b, -INFINITY);
    assert_buf(&b, "");
    assert_absent(pr_units_round(NAN, 2));
    pr_buf_done(&b);
}

static void test_python_prints_no_comma(void **state)
{
    (void)state;
    comma = true;
    check_printed();
    comma = false;
}

/* A decimal comma in the locale changes nothing, where such a locale is installed. */
static void test_locale_free(void **state)
{
    (void)state;
    double v;
    struct pr_buf b = {0};
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8"))
        setlocale(LC_ALL, "C.UTF-8");
    pr_units_number(&b, 0.5);
    assert_buf(&b, "0.5");
    pr_units_human(&b, 1.5, UNIT_CORES);
    assert_buf(&b, "1.50 cores");
    assert_true(pr_units_parse_duration("0.5", &v));
    setlocale(LC_ALL, "C");
    pr_buf_done(&b);
}

/* What the figures of an axis are in. */
static void test_scale(void **state)
{
    (void)state;
    static const struct {
        double size;
        enum pr_unit unit;
        double by;
        const char *name;
    } cases[] = {
        {500, UNIT_BYTES, 1, "B"},
        {1023.6, UNIT_BYTES, 1024, "KiB"},
        {3e9, UNIT_BYTES, 0x1p30, "GiB"},
        {-3e9, UNIT_BYTES, 0x1p30, "GiB"},
        {1e20, UNIT_BYTES_PER_SECOND, 0x1p40, "TiB/s"},
        {0.5, UNIT_RATIO, 0.01, "%"},
        {3599, UNIT_JOULES, 1, "J"},
        {3600, UNIT_JOULES, 3600, "Wh"},
        {4e6, UNIT_JOULES, 3.6e6, "kWh"},
        {4, UNIT_CORES, 1, "cores"},
        {4, UNIT_COUNT, 1, ""},
        {1e6, UNIT_SECONDS, 1, "s"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *name;
        assert_true(pr_units_scale(cases[i].size, cases[i].unit, &name) == cases[i].by);
        assert_string_equal(name, cases[i].name);
    }
}

static void test_tick(void **state)
{
    (void)state;
    static const struct {
        double at, step;
        const char *want;
    } cases[] = {
        {0, 10, "0"},
        {30, 10, "30 s"},
        {90, 30, "1 m 30 s"},
        {120, 60, "2 m"},
        {5400, 1800, "1 h 30 m"},
        {86400, 43200, "1 d"},
        {2e6, 5e5, "23 d 3 h 33 m 20 s"},
        {0, 0.2, "0"},
        {0.6, 0.2, "0.6 s"},
        {0.03, 0.01, "30 ms"},
        {0.0005, 0.0001, "0.5 ms"},
    };
    struct pr_buf b = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pr_units_tick(&b, cases[i].at, cases[i].step);
        assert_buf(&b, cases[i].want);
    }
    pr_buf_done(&b);
}

static void test_parse_by_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum pr_unit unit;
        double v; /* below 0: it is none */
    } rows[] = {
        {"90s", UNIT_SECONDS, 90},
        {"2m", UNIT_SECONDS, 120},
        {"2GiB", UNIT_BYTES, 0x1p31},
        {"20MB/s", UNIT_BYTES_PER_SECOND, 2e7},
        {"1K", UNIT_BYTES_PER_SECOND, 1024},
        {"/s", UNIT_BYTES_PER_SECOND, -1},
        {"1.5cores", UNIT_CORES, 1.5},
        {"2", UNIT_CORES, 2},
        {"80%", UNIT_RATIO, 0.8},
        {"0.8", UNIT_RATIO, 0.8},
        {"80%", UNIT_PERCENT, 80},
        {"3", UNIT_COUNT, 3},
        {"3%", UNIT_COUNT, -1},
        {"2GPUs", UNIT_GPUS, 2},
        {"1.5kW", UNIT_WATTS, 1500},
        {"2Wh", UNIT_JOULES, 7200},
        {"3kWh", UNIT_JOULES, 108e5},
        {"90C", UNIT_CELSIUS, 90},
        {"1.5GHz", UNIT_HERTZ, 1.5e9},
        {"90s", UNIT_BYTES, -1},
        {"10%", UNIT_BYTES, -1},
        {"-3", UNIT_CORES, -1},
        {"", UNIT_WATTS, -1},
        {"W", UNIT_WATTS, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double v = -1;
        assert_int_equal(pr_units_parse(rows[i].text, rows[i].unit, &v), rows[i].v >= 0);
        assert_true(fabs(v - rows[i].v) < 1e-9 * fabs(v));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_suffixes),
        cmocka_unit_test(test_number),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_human),
        cmocka_unit_test(test_parse_duration),
        cmocka_unit_test(test_parse_size),
        cmocka_unit_test(test_parse_number_and_percent),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_tick),
        cmocka_unit_test(test_parse_by_unit),
        cmocka_unit_test(test_locale_free),
        cmocka_unit_test(test_as_python_prints),
        cmocka_unit_test(test_python_prints_no_comma),
    };
    return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
