/* SPDX-License-Identifier: Apache-2.0 */
/* What the script of a fake libnvidia-ml.so.1 says (script.c), for the library (fake_nvml.c). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden) /* names as short as these are others', too */

enum { OK = 0, BAD = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, SMALL = 7, TIMEOUT = 10, LOST = 15 };

struct device {
    char id[16], model[64], uuid[64];
    unsigned long long total, used;
};

struct rule {
    char what[16], id[16], call[24];
    double v[4];
};

struct process {
    char id[16], kind[4];
    unsigned pid;
    unsigned long long memory;
    double sm, until;
};

extern struct device devices[];
extern struct rule rules[];
extern struct process processes[];
extern size_t device_count, rule_count, process_count;
extern int init_code;
extern double loaded; /* wall clock, seconds */

/* Seconds since the library was loaded. */
double now(void);
/* Reads the script again. */
void load(void);
/* The device of a handle; NULL for none. Reads the script again. */
const struct device *of(void *handle);
/* The result of a call, after what it is to take; d may be NULL. */
int answer(const struct device *d, const char *call);
/* What a call is to say. */
double value(const struct device *d, const char *call, double otherwise);
/* Percent, at so many seconds. */
double util_at(const struct device *d, double at);
bool is_part(const struct device *d);
/* The handle of the device with that index, NULL for none. */
void *nth(unsigned index);

#pragma GCC visibility pop
