/* SPDX-License-Identifier: Apache-2.0 */
/* Who is new on the machine. The last pid in /proc/loadavg tells for a microsecond whether anything
 * was forked since the last look. Pids are handed out in turn, so that those in between are asked
 * for, by their CPU clock; where that cannot be, or they are too many, and every ten seconds, /proc
 * is listed. Only the stat files of pids that are new to us are read; a pid is known by its
 * directory's inode number, which changes when the pid is used again. */
#pragma once
#include "core/stat_line.h"
#include "core/target.h"
#include "util/map.h"

struct pr_candidate {
    struct pr_stat_line line;
    uint64_t inode;
    bool late; /* it was seen before and did not belong: what it used until now is not the job's */
};

struct pr_listing {
    bool again;          /* who does not belong may come to: the young are looked at again at each
                            tick, all others now and then */
    int loadavg, list;   /* held descriptors, -1 where they cannot be */
    bool in_turn;        /* pids are handed out in turn, and can be asked for */
    uint64_t last_pid;   /* that was handed out, */
    uint64_t then[3];    /* the same at the last looks, the earliest first */
    uint64_t before;     /* pids up to here were there before us and are none; 0: not known */
    int64_t listed_at;   /* boot time of the last listing of /proc */
    uint64_t born_after; /* ticks since boot: whoever started earlier was there before us */
    bool looked;         /* at least once */
    bool look_again;     /* somebody could not be placed yet */
    bool all;            /* this look is at everybody */
    int64_t all_at;      /* boot time of the last such look */
    struct pr_map known, next; /* pid -> inode of all that have been placed */
    struct pr_map young;       /* pid -> boot time at which it was first seen */
    struct pr_candidate *candidates;
    size_t count, cap;
};

void pr_listing_open(struct pr_listing *l, const struct pr_host *host, bool again);
/* How many descriptors it holds. */
int pr_listing_files(const struct pr_listing *l);
/* Is there anybody to look at? */
bool pr_listing_due(struct pr_listing *l, const struct pr_tick *t);
/* Fills the candidates. `only`: all but this pid were there before us and are none, and it
 * is a member already; 0 for nobody. 0 or -errno. */
int pr_listing_look(struct pr_listing *l, const struct pr_tick *t, pid_t only);
/* The candidate has been placed, as a member or not. */
void pr_listing_placed(struct pr_listing *l, const struct pr_tick *t, const struct pr_candidate *c,
                       bool member);
/* Is it known to be nobody new? Not to be asked of a member. */
bool pr_listing_is_stranger(const struct pr_listing *l, pid_t pid);
/* Behind the last candidate. */
void pr_listing_end(struct pr_listing *l);
void pr_listing_done(struct pr_listing *l, bool close_files);

/* Makes the process a member where it is not yet. `fresh`: all it uses counts from its birth. False
 * when memory is out. */
bool pr_listing_join(const struct pr_listing *l, struct pr_entities *set,
                     const struct pr_candidate *c, bool fresh);
/* Members whose pid is another's by now must not pass for the parents of its children. */
void pr_listing_part_with_reused(const struct pr_listing *l, struct pr_entities *set);
/* The stat file of one process. 0 or -errno. */
int pr_listing_stat(const struct pr_host *host, pid_t pid, struct pr_stat_line *ret);

/* For targets that have a rule for each process alone: looks, and joins those that it wants. */
typedef bool pr_listing_rule(const struct pr_target *target, const struct pr_tick *t,
                             const struct pr_stat_line *line);
int pr_listing_update(struct pr_listing *l, const struct pr_target *target, const struct pr_tick *t,
                      struct pr_entities *set, pr_listing_rule *wants);
