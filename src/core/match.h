/* SPDX-License-Identifier: Apache-2.0 */
/* --match [NAME=]REGEX: members by the name of their program, each in an account of its own. A
 * process belongs to the first rule that matches one of its names. */
#pragma once
#include <regex.h>

#include "core/config.h"
#include "core/host.h"
#include "core/snapshot.h"
#include "core/source.h"
#include "core/stats.h"

#define MATCH_NONE   (-1)
#define MATCHES_MOST 64 /* rules at the most */
#define NAMES_MOST   4
#define NAME_SIZE    256

/* By what a process is called: program, script, and what it calls itself; never its arguments. */
struct pr_names {
    char text[NAMES_MOST][NAME_SIZE];
    int count;
};

/* What is kept of a member (struct pr_entity): a bit for each rule that it has ever been of, when
 * its names were looked at, under which comm, and the counters that it had before. */
struct pr_named {
    uint64_t matched;
    int64_t at;
    char comm[COMM_MAX];
    double since[PROC_METRICS];
};

struct pr_match {
    char name[NAME_SIZE];
    regex_t regex;
    uint64_t instances;                /* processes that have ever been of it */
    unsigned long samples;             /* of single processes */
    double first_seen, last_seen;      /* elapsed at samples that had any; NaN for never */
    double ended[PROC_METRICS];        /* counters of those that are gone */
    double previous[PROC_METRICS];     /* counters at the sample before */
    bool seen[PROC_METRICS];           /* has it been read of anybody? */
    struct pr_stat each[PROC_METRICS]; /* of gauges and rates of single processes, one by one */
    struct pr_stats stats;             /* of all of them together */
};

struct pr_matches {
    struct pr_match *items;
    size_t count;
};

/* Splits and compiles one rule. -EINVAL where it is none; ret_regex may be NULL to check only. */
int pr_match_parse(const char *text, const char *what, char *ret_name, regex_t *ret_regex,
                   struct proctor_error *err);
/* The rules of --match. */
int pr_matches_init(struct pr_matches *m, const struct pr_list *rules, struct proctor_error *err);
void pr_matches_done(struct pr_matches *m);
/* The rule that a process belongs to, or MATCH_NONE. */
int pr_matches_find(const struct pr_matches *m, const struct pr_host *host, pid_t pid,
                    const char *comm);
/* After members were read and the job was settled: who belongs where, and what each rule's members
 * use. `sample` gives time and interval, basis how to derive. */
void pr_matches_sample(struct pr_matches *m, struct pr_entities *set, const struct pr_tick *t,
                       const struct proctor_snapshot *sample, const struct pr_basis *basis);

/* Its name, and its values in the last sample. */
void pr_match_show(const struct pr_match *rule, struct pr_match_values *ret);
/* A member was away from the job: what it used since it had these values is no rule's. */
void pr_match_return(struct pr_entity *e, const double *value);

/* What a process is called. Done by src/source/pid_names.c. */
void pr_names_read(const struct pr_host *host, pid_t pid, const char *comm, struct pr_names *ret);
/* The same out of the text of its cmdline: NUL between arguments, and text[len] must be one. */
void pr_names_of(const char *cmdline, size_t len, struct pr_names *ret);
