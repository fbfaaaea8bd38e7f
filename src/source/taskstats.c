/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's records of exiting threads (Documentation/accounting/taskstats.rst), for children
 * that nobody waits for. A record is made before its thread has gone through its end, and from a
 * clock that may not have been read since the last tick: of very short processes it says little.
 * So it is approximate, and never too much.
 *
 * The records are of everybody on the machine. One is of the job where its process or its parent is
 * a member, or its parent is us; or where its parent turns out to be one later: who is not of the
 * job by the sample after next is a stranger. */
#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/exact.h"
#include "util/clock.h"
#include "util/fs.h"

#define ROOM         (8 << 20) /* of the socket, bytes; the kernel doubles it */
#define WAITING_MAX  65536     /* records whose parent is not known yet */
#define PACKET       8192
#define STEPS_MOST   100 /* up the tree: a pid that was used again could close a circle */
#define VERSION_TGID 12  /* records say of which process a thread was */

struct record {
    pid_t process, parent;
    double cpu, peak, io[ROLL_IO];
    int64_t lived; /* ns */
    int64_t at;    /* boot time at which it came */
    int status;
    bool leader; /* of its process: the others are only added to it */
    char comm[ROLL_COMM];
    int age; /* samples that it has waited; below 0: it is of the job */
};

struct records {
    int fd;
    uint16_t family;
    char cpus[256];
    int64_t began; /* boot time: who was born before is not of the job */
    struct record *waiting;
    size_t count, cap;
    struct pr_map known; /* processes of this batch that turned out to be of the job, and the place
                            of their leader's record plus 2, or 1 */
    struct pr_map enrolled; /* those that the roll had before this batch, and has got since */
    size_t roll_seen;
    double gone; /* CPU time of those who are members no more, or never were seen */
    _Alignas(NLMSG_ALIGNTO) char packet[PACKET];
};

/* --- netlink ---------------------------------------------------------------------------------- */

struct request {
    struct nlmsghdr head;
    struct genlmsghdr command;
    char attributes[512];
};

/* A request with one attribute, a text. */
static int send_text(int fd, uint16_t family, uint8_t command, uint16_t type, const char *text)
{
    struct request q = {.head = {.nlmsg_type = family, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
                        .command = {.cmd = command, .version = 1}};
    size_t len = strlen(text) + 1;
    struct nlattr attribute = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};
    if (NLA_HDRLEN + len > sizeof q.attributes - NLA_ALIGNTO)
        return -E2BIG;
    memcpy(q.attributes, &attribute, sizeof attribute);
    memcpy(q.attributes + NLA_HDRLEN, text, len);
    q.head.nlmsg_len = (uint32_t)(NLMSG_LENGTH(GENL_HDRLEN) + NLA_ALIGN(attribute.nla_len));
    return send(fd, &q, q.head.nlmsg_len, 0) < 0 ? -errno : 0;
}

/* The attribute of this type among those in [p, end); its content and length. */
static const char *attribute_of(const char *p, const char *end, uint16_t type, size_t *ret_len)
{
    struct nlattr a;
    while (end - p >= NLA_HDRLEN) {
        memcpy(&a, p, sizeof a);
        if (a.nla_len < NLA_HDRLEN || a.nla_len > end - p)
            return NULL;
        if ((a.nla_type & NLA_TYPE_MASK) == type) {
            *ret_len = a.nla_len - (size_t)NLA_HDRLEN;
            return p + NLA_HDRLEN;
        }
        p += NLA_ALIGN(a.nla_len) < end - p ? NLA_ALIGN(a.nla_len) : end - p;
    }
    return NULL;
}

/* Where the attributes of a message are; false for one without. */
static bool body_of(const struct nlmsghdr *h, const char **ret_from, const char **ret_end)
{
    if (h->nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
        return false;
    *ret_from = (const char *)NLMSG_DATA(h) + GENL_HDRLEN;
    *ret_end = (const char *)h + h->nlmsg_len;
    return true;
}

/* Waits for the answer to a request, and its acknowledgement. 0 or -errno. */
static int answer(struct records *r, uint16_t *ret_family)
{
    for (;;) {
        ssize_t n = recv(r->fd, r->packet, sizeof r->packet, 0);
        if (n < 0)
            return -errno;
        int left = (int)n;
        for (struct nlmsghdr *h = (void *)r->packet; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
            const char *from, *end, *id;
            size_t len;
            if (h->nlmsg_type == NLMSG_ERROR)
                return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
            if (ret_family && body_of(h, &from, &end) &&
                (id = attribute_of(from, end, CTRL_ATTR_FAMILY_ID, &len)) && len >= 2)
                memcpy(ret_family, id, 2);
        }
    }
}

static int ask(struct records *r, uint16_t family, uint8_t command, uint16_t type, const char *text,
               uint16_t *ret_family)
{
    int code = send_text(r->fd, family, command, type, text);
    return code < 0 ? code : answer(r, ret_family);
}

static int registered(struct records *r, uint16_t attribute)
{
    return ask(r, r->family, TASKSTATS_CMD_GET, attribute, r->cpus, NULL);
}

/* --- setting up ------------------------------------------------------------------------------- */

static int refuse(struct pr_exact *x, int code)
{
    if (code == -EPERM || code == -EACCES)
        return pr_exact_refuse(x, -code, "root, or CAP_NET_ADMIN",
                               "the kernel does not give us records of exiting processes: %s",
                               strerror(-code));
    if (code == -EINVAL)
        return pr_exact_refuse(x, -code, "proctor outside of the container",
                               "no records of exiting processes in a namespace of pids or users");
    return pr_exact_refuse(x, -code, "a kernel with CONFIG_TASKSTATS", "taskstats: %s",
                           strerror(-code));
}

static int open_socket(struct records *r)
{
    struct sockaddr_nl to = {.nl_family = AF_NETLINK};
    const int room = ROOM;
    ssize_t n = pr_fs_read(AT_FDCWD, "/sys/devices/system/cpu/possible", r->cpus, sizeof r->cpus);
    if (n <= 0)
        return -ENOENT;
    r->cpus[strcspn(r->cpus, "\n")] = '\0';
    r->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
    if (r->fd < 0 || connect(r->fd, (struct sockaddr *)&to, sizeof to) < 0)
        return -errno;
    if (setsockopt(r->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) < 0)
        setsockopt(r->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    int code = ask(r, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, TASKSTATS_GENL_NAME,
                   &r->family);
    return code < 0 ? code : r->family ? 0 : -ENOENT;
}

static int finish(struct pr_exact *x)
{
    struct records *r = x->state;
    if (r->fd >= 0) {
        if (r->family)
            send_text(r->fd, r->family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_DEREGISTER_CPUMASK,
                      r->cpus);
        close(r->fd);
    }
    pr_map_done(&r->known);
    pr_map_done(&r->enrolled);
    free(r->waiting);
    free(r);
    return 0;
}

static int prepare(struct pr_exact *x)
{
    struct records *r = x->state = calloc(1, sizeof *r);
    if (!r)
        return pr_exact_refuse(x, ENOMEM, "more memory", "out of memory");
    r->fd = -1;
    r->began = pr_clock_boot();
    int code = open_socket(r);
    if (code == 0)
        code = registered(r, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK);
    return code < 0 ? refuse(x, code) : 0;
}

static int probe(struct pr_exact *x)
{
    int r = prepare(x);
    if (x->state)
        finish(x);
    x->state = NULL;
    return r;
}

static int enter(struct pr_exact *x, pid_t pid, bool inside)
{
    (void)x, (void)pid, (void)inside;
    return 0;
}

/* --- records ---------------------------------------------------------------------------------- */

static void keep(struct pr_exact *x, struct records *r, const struct record *record)
{
    if (r->count == r->cap && r->cap < WAITING_MAX) {
        size_t cap = r->cap ? r->cap * 2 : 1024;
        struct record *more = realloc(r->waiting, cap * sizeof *more);
        if (more) {
            r->waiting = more;
            r->cap = cap;
        }
    }
    if (r->count == r->cap)
        x->lossy = true;
    else
        r->waiting[r->count++] = *record;
}

static void take_message(struct pr_exact *x, struct records *r, const struct nlmsghdr *h)
{
    struct taskstats t = {0};
    const char *from, *end;
    size_t len;
    if (h->nlmsg_type != r->family || !body_of(h, &from, &end) ||
        !(from = attribute_of(from, end, TASKSTATS_TYPE_AGGR_PID, &len)) ||
        !(from = attribute_of(from, from + len, TASKSTATS_TYPE_STATS, &len)))
        return;
    memcpy(&t, from, len < sizeof t ? len : sizeof t);
    pid_t process = (pid_t)(t.version >= VERSION_TGID && t.ac_tgid ? t.ac_tgid : t.ac_pid);
    if ((int64_t)t.ac_etime * 1000 > pr_clock_boot() - r->began)
        return;
    struct record record = {.process = process,
                            .parent = (pid_t)t.ac_ppid,
                            .cpu = (double)t.cpu_run_virtual_total * 1e-9,
                            .peak = t.hiwater_rss ? (double)t.hiwater_rss * 1024 : NAN,
                            .io = {(double)t.read_bytes, (double)t.write_bytes, (double)t.read_char,
                                   (double)t.write_char},
                            .lived = (int64_t)t.ac_etime * 1000,
                            .at = pr_clock_boot(),
                            .status = (int)t.ac_exitcode,
                            .leader = (pid_t)t.ac_pid == process};
    memcpy(record.comm, t.ac_comm, ROLL_COMM - 1);
    keep(x, r, &record);
}

static void drain(struct pr_exact *x, struct records *r)
{
    for (;;) {
        ssize_t n = recv(r->fd, r->packet, sizeof r->packet, MSG_DONTWAIT);
        if (n < 0 && errno == ENOBUFS) {
            x->lossy = true;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        int left = (int)n;
        for (struct nlmsghdr *h = (void *)r->packet; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
            take_message(x, r, h);
    }
}

/* Whoever waits for it has its I/O in its own: the nearest ancestor that is a member. */
static void charge(const struct records *r, const struct pr_entities *set, const struct record *w)
{
    struct pr_entity *e = pr_entities_find_any(set, w->parent);
    const struct record *up = w;
    uint64_t at;
    for (int steps = 0; !e && steps < STEPS_MOST; steps++) {
        if (!pr_map_get(&r->known, (uint64_t)up->parent, &at) || at < 2)
            return;
        up = &r->waiting[at - 2];
        e = pr_entities_find_any(set, up->parent);
    }
    for (int i = 0; e && !e->ignores_children && i < ROLL_IO; i++)
        e->end.io_brought[i] += w->io[i];
}

/* A member has it on its own account until it goes. What it moved after its last sample went to
 * whoever waited for it, too: for one that goes in this tick that is not yet known there. */
static void tell(struct records *r, const struct pr_entities *set, struct pr_entity *e,
                 const struct record *w)
{
    struct record later = *w;
    for (int i = 0; i < ROLL_IO; i++) {
        double before = pr_value_known(pr_entity_io(e, i));
        e->end.io_told[i] += w->io[i];
        later.io[i] = pr_value_known(pr_entity_io(e, i)) - before;
    }
    if (e->life == LIFE_SETTLED && !e->end.waited)
        charge(r, set, &later);
    e->told += w->cpu;
    e->end.mark = fmax(e->end.mark, w->peak);
    e->end.mark_final |= w->leader && !isnan(w->peak);
    if (!w->leader)
        return;
    e->end.status = w->status;
    memcpy(e->comm, w->comm, sizeof w->comm); /* it may have been seen before its exec */
}

/* Whoever never was a member, we have. */
static bool claim(struct records *r, const struct pr_entities *set, struct record *w)
{
    uint64_t leader = 1;
    struct pr_entity *e = pr_entities_find_any(set, w->process);
    if (e) {
        tell(r, set, e, w);
        return true;
    }
    if (w->parent != getpid() && !pr_entities_find_any(set, w->parent) &&
        !pr_map_get(&r->known, (uint64_t)w->parent, &leader))
        return false;
    r->gone += w->cpu;
    leader = 1;
    pr_map_get(&r->known, (uint64_t)w->process, &leader);
    pr_map_set(&r->known, (uint64_t)w->process,
               w->leader ? (uint64_t)(w - r->waiting) + 2 : leader);
    return true;
}

static void forget(struct pr_map *map)
{
    if (map->count)
        memset(map->slots, 0, map->cap * sizeof *map->slots);
    map->count = 0;
}

/* Those that we have waited for stand in the roll already, with more than a record says. */
static void note_enrolled(struct records *r, const struct pr_roll *roll)
{
    forget(&r->enrolled);
    for (; r->roll_seen < roll->count; r->roll_seen++)
        pr_map_set(&r->enrolled, (uint64_t)pr_roll_at(roll, r->roll_seen)->pid, 1);
}

/* Who never was a member. */
static void enroll(struct pr_exact *x, const struct record *w)
{
    struct pr_roll_entry entry = {.pid = w->process,
                                  .ppid = w->parent,
                                  .started = pr_clock_wall() - (pr_clock_boot() - w->at) - w->lived,
                                  .cpu = w->cpu,
                                  .peak = w->peak,
                                  .peak_final = !isnan(w->peak),
                                  .status = w->status,
                                  .way = ROLL_RECORD};
    entry.ended = entry.started + w->lived;
    memcpy(entry.io, w->io, sizeof entry.io);
    memcpy(entry.comm, w->comm, sizeof entry.comm);
    pr_roll_add(x->roll, &entry);
    x->roll->recorded++;
}

/* Of this batch: a process is its leader's record with those of its other threads added. */
static void enroll_all(struct pr_exact *x, struct records *r, const struct pr_entities *set)
{
    uint64_t at;
    note_enrolled(r, x->roll);
    for (size_t k = 0; k < r->count; k++) {
        struct record *w = &r->waiting[k];
        if (w->age >= 0 || w->leader || !pr_map_get(&r->known, (uint64_t)w->process, &at) || at < 2)
            continue;
        struct record *leader = &r->waiting[at - 2];
        leader->cpu += w->cpu;
        for (int i = 0; i < ROLL_IO; i++)
            leader->io[i] += w->io[i];
    }
    for (size_t k = 0; k < r->count; k++) {
        const struct record *w = &r->waiting[k];
        if (w->age < 0 && w->leader && !pr_entities_find_any(set, w->process) &&
            !pr_map_get(&r->enrolled, (uint64_t)w->process, &at)) {
            charge(r, set, w);
            if (!x->roll->folded || w->parent != getpid()) /* else it is counted, not listed */
                enroll(x, w);
        }
    }
    r->roll_seen = x->roll->count;
}

/* Children mostly end before their parents: backwards, then forwards. */
static void claim_all(struct pr_exact *x, struct records *r, const struct pr_entities *set)
{
    forget(&r->known);
    for (int pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < r->count; k++) {
            struct record *w = &r->waiting[pass ? k : r->count - 1 - k];
            if (w->age >= 0 && claim(r, set, w))
                w->age = -1;
        }
    if (x->roll)
        enroll_all(x, r, set);
    size_t left = 0;
    for (size_t k = 0; k < r->count; k++)
        if (r->waiting[k].age >= 0 && r->waiting[k].age++ < 2)
            r->waiting[left++] = r->waiting[k];
    r->count = left;
}

/* Its own clock goes on where records of its threads end, and neither is more than it used. */
static double account_of(const struct pr_entity *e)
{
    return fmax(e->told, e->value[METRIC_CPU_TIME]);
}

static void read_it(struct pr_exact *x, const struct pr_entities *set)
{
    struct records *r = x->state;
    double living = 0;
    drain(x, r);
    claim_all(x, r, set);
    for (size_t k = 0; k < set->count; k++) {
        const struct pr_entity *e = set->items[k];
        *(e->life == LIFE_SETTLED ? &r->gone : &living) += account_of(e); /* it is dropped next */
    }
    x->figure[EXACT_TIME] = r->gone + living;
}

const struct pr_exact_ops pr_exact_taskstats = {
    .name = "taskstats",
    .source = "rusage of all who were waited for, or records of exiting processes and samples of "
              "living ones where they are more: approximate",
    .method = "records of exiting processes: approximate",
    .records = true,
    .probe = probe,
    .prepare = prepare,
    .enter = enter,
    .read = read_it,
    .finish = finish,
};
