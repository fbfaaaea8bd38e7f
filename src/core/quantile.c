/* SPDX-License-Identifier: Apache-2.0 */
#include "core/quantile.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

const double pr_quantile_share[QUANTILES] = {0.5, 0.9, 0.95, 0.99};
const char *const pr_quantile_name[QUANTILES] = {"p50", "p90", "p95", "p99"};

/* A bucket is what has the exponent and the first bits of the mantissa in common: 64 for each power
 * of two. Half of one's width is 1/128 of its lower end. */
#define MANTISSA_BITS   52
#define BUCKET_BITS     6
#define SHIFT           (MANTISSA_BITS - BUCKET_BITS)
#define EXPONENT_BIAS   1023
#define EXPONENT_LEAST  (-24)
#define EXPONENTS       80
#define BUCKETS         (EXPONENTS << BUCKET_BITS)
#define BUCKETS_IN_LEAF 32
#define LEAVES          (BUCKETS / BUCKETS_IN_LEAF)

/* Sums differ in their last digits with the order of what is added. */
#define ROUNDING 1e-9

struct value {
    double value, weight;
};

union leaf {
    double weight[BUCKETS_IN_LEAF];
    struct value value[SKETCH_VALUES];
};

/* At first a sorted list of values in one leaf, later buckets in several. */
struct series {
    bool spread;
    uint16_t list, count;  /* the leaf with the list, and how many are in it */
    uint16_t leaf[LEAVES]; /* those with buckets; 0 for none */
    double zero;           /* the weight of what is no larger */
};

struct pr_sketches {
    size_t bytes; /* all that is mapped */
    int count;
    uint16_t leaves;  /* that are in use; the first never is */
    union leaf *leaf; /* behind the series */
    struct series series[];
};

struct pr_sketches *pr_sketches_new(int count)
{
    size_t leaves = 1 + (size_t)count * (LEAVES + 1);
    size_t head = sizeof(struct pr_sketches) + (size_t)count * sizeof(struct series);
    head = (head + sizeof(union leaf) - 1) / sizeof(union leaf) * sizeof(union leaf);
    size_t bytes = head + leaves * sizeof(union leaf);
    struct pr_sketches *s = leaves > UINT16_MAX
                                ? MAP_FAILED
                                : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s == MAP_FAILED)
        return NULL;
    madvise(s, bytes, MADV_NOHUGEPAGE); /* one of those would make all of it resident */
    s->bytes = bytes;
    s->count = count;
    s->leaves = 1;
    s->leaf = (union leaf *)((char *)s + head);
    return s;
}

void pr_sketches_free(struct pr_sketches *s)
{
    if (s)
        munmap(s, s->bytes);
}

void pr_sketches_reset(struct pr_sketches *s)
{
    memset(s->series, 0, (size_t)s->count * sizeof *s->series);
    memset(s->leaf, 0, s->leaves * sizeof *s->leaf);
    s->leaves = 1;
}

/* --- adding ----------------------------------------------------------------------------------- */

static int bucket_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    int64_t bucket =
        (int64_t)(bits >> SHIFT) - ((int64_t)(EXPONENT_BIAS + EXPONENT_LEAST) << BUCKET_BITS);
    return bucket < 0 ? 0 : bucket >= BUCKETS ? BUCKETS - 1 : (int)bucket;
}

static void add_to_bucket(struct pr_sketches *s, struct series *e, double v, double weight)
{
    if (!(v > 0)) {
        e->zero += weight;
        return;
    }
    int bucket = bucket_of(v);
    uint16_t *leaf = &e->leaf[bucket / BUCKETS_IN_LEAF];
    if (!*leaf)
        *leaf = s->leaves++;
    s->leaf[*leaf].weight[bucket % BUCKETS_IN_LEAF] += weight;
}

/* False where it is full. */
static bool add_to_list(struct pr_sketches *s, struct series *e, double v, double weight)
{
    if (!e->list)
        e->list = s->leaves++;
    struct value *list = s->leaf[e->list].value;
    int i = 0;
    while (i < e->count && list[i].value < v)
        i++;
    if (i < e->count && !(list[i].value > v)) {
        list[i].weight += weight;
        return true;
    }
    if (e->count == SKETCH_VALUES)
        return false;
    memmove(&list[i + 1], &list[i], (size_t)(e->count - i) * sizeof *list);
    list[i] = (struct value){v, weight};
    e->count++;
    return true;
}

void pr_sketch_add(struct pr_sketches *s, int series, double v, double seconds)
{
    struct series *e = &s->series[series];
    if (!(seconds > 0))
        return;
    if (!e->spread) {
        if (add_to_list(s, e, v, seconds))
            return;
        const struct value *list = s->leaf[e->list].value;
        for (int i = 0; i < e->count; i++)
            add_to_bucket(s, e, list[i].value, list[i].weight);
        e->spread = true;
    }
    add_to_bucket(s, e, v, seconds);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The middle of a bucket: its bits, and half of those that it does not tell apart. */
static double value_of(int bucket)
{
    const uint64_t least = (uint64_t)(EXPONENT_LEAST + EXPONENT_BIAS) << BUCKET_BITS;
    uint64_t bits = (least + (uint64_t)bucket) << SHIFT | (uint64_t)1 << (SHIFT - 1);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The next bucket from `place` on that has anything in it; BUCKETS where none has. */
static int next_bucket(const struct pr_sketches *s, const struct series *e, int place)
{
    while (place < BUCKETS) {
        uint16_t leaf = e->leaf[place / BUCKETS_IN_LEAF];
        if (leaf && s->leaf[leaf].weight[place % BUCKETS_IN_LEAF] > 0)
            return place;
        place += leaf ? 1 : BUCKETS_IN_LEAF - place % BUCKETS_IN_LEAF;
    }
    return BUCKETS;
}

/* One value after the other in ascending order, each with its weight; place is 0 at first. */
static bool next(const struct pr_sketches *s, const struct series *e, int *place, struct value *ret)
{
    if (!e->spread) {
        if (*place == e->count)
            return false;
        *ret = s->leaf[e->list].value[(*place)++];
        return true;
    }
    if (*place == 0) {
        ++*place;
        *ret = (struct value){0, e->zero};
        return true;
    }
    int bucket = next_bucket(s, e, *place - 1);
    if (bucket == BUCKETS)
        return false;
    uint16_t leaf = e->leaf[bucket / BUCKETS_IN_LEAF];
    *ret = (struct value){value_of(bucket), s->leaf[leaf].weight[bucket % BUCKETS_IN_LEAF]};
    *place = bucket + 2;
    return true;
}

void pr_sketch_quantiles(const struct pr_sketches *s, int series, double ret[QUANTILES])
{
    const struct series *e = &s->series[series];
    struct value v;
    double all = 0, sum = 0;
    for (int place = 0; next(s, e, &place, &v);)
        all += v.weight;
    for (int q = 0; q < QUANTILES; q++)
        ret[q] = NAN;
    for (int place = 0, q = 0; q < QUANTILES && all > 0 && next(s, e, &place, &v);) {
        sum += v.weight;
        while (q < QUANTILES && v.weight > 0 && sum >= pr_quantile_share[q] * all * (1 - ROUNDING))
            ret[q++] = v.value;
    }
}
