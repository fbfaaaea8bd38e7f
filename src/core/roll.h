/* SPDX-License-Identifier: Apache-2.0 */
/* The roll: an entry for every process that was seen or waited for, with what it used itself and
 * how it ended. Memory is bounded: beyond ROLL_MOST a process is only counted under its command.
 *
 * An entry neither moves nor changes once it is there: another thread may read those below a count
 * that it was handed. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/entity.h"
#include "util/json.h"

#define ROLL_MOST     100000
#define ROLL_PIECE    1000
#define ROLL_COMMANDS 1000 /* the last of them stands for all others */
#define ROLL_COMM     16   /* the kernel's own length */
#define ROLL_IO       END_IO

/* How it is known what it used. */
enum pr_roll_way {
    ROLL_SAMPLED, /* its last sample */
    ROLL_WAITED,  /* we waited for it */
    ROLL_RECORD,  /* the kernel's record of its end (taskstats) */
};

struct pr_roll_entry {
    pid_t pid, ppid;
    int64_t started, ended; /* wall time, ns; ended: 0 for one that was still there */
    double cpu, peak;       /* own CPU time; its largest resident size; NaN for unknown */
    double io[ROLL_IO];     /* without what children brought that it is known to have waited for */
    int status;             /* as wait has it; -1 for unknown */
    unsigned looks;         /* samples that it was in */
    enum pr_roll_way way;
    bool peak_final; /* the peak cannot have been exceeded after it was read */
    char comm[ROLL_COMM];
};

struct pr_roll_command {
    char comm[ROLL_COMM];
    unsigned long count, told,
        failed; /* told: how they ended; failed: by a signal, or not with 0 */
    double cpu, peak, io[ROLL_IO];
};

struct pr_roll {
    struct pr_roll_entry *piece[ROLL_MOST / ROLL_PIECE];
    size_t count;            /* entries */
    unsigned long folded;    /* processes that are under their command alone */
    unsigned long unsampled; /* those that no sample had, as far as is known */
    unsigned long recorded;  /* of those, who never was a member: known by a record alone */
    uint64_t at_first;       /* members that the first sample had */
    bool killed;  /* somebody was, by SIGKILL or what a shell makes of it, or may have been */
    double forks; /* of the machine while we looked; NaN for unknown */
    struct pr_roll_command *commands;
    size_t command_count, command_cap;
    struct pr_map by_comm; /* hash of the name: its place in commands plus 1 */
};

void pr_roll_done(struct pr_roll *r);
/* Adds a copy. */
void pr_roll_add(struct pr_roll *r, const struct pr_roll_entry *entry);
/* index < r->count. Borrowed. */
const struct pr_roll_entry *pr_roll_at(const struct pr_roll *r, size_t index);
/* What a member's last sample says: the caller fills in what it knows better, and adds it. */
struct pr_roll_entry pr_roll_entry_of(const struct pr_entity *e);
/* Did it end as a failure? Not known is no. */
bool pr_roll_failed(int status);
/* The most memory that members had together, by the marks of those alive at the same time; NaN
 * where one of the marks is not known to be the last. */
double pr_roll_upper(const struct pr_roll *r);
/* Members of a JSON object, without its braces: all of an entry; what was used. */
void pr_roll_put(struct pr_json *j, const struct pr_roll_entry *e);
void pr_roll_put_use(struct pr_json *j, double cpu, double peak, const double *io);
/* "sampled", "waited", "record". */
const char *pr_roll_way_name(enum pr_roll_way way);
