/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/net/dev: a line "name: bytes packets ..." per interface, 8 numbers received, then 8 sent.
 * What goes through a bridge, a bond or a vlan goes through its members, too: bytes are counted
 * where they enter or leave the machine, or the network namespace. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/machine.h"
#include "source/parse.h"
#include "source/roster.h"
#include "util/fs.h"

#define CLASS "sys/class/net"
#define PATH  (sizeof CLASS + 2 * DEVICE_NAME + 16)

enum { TYPE_ETHERNET = 1, TYPE_INFINIBAND = 32, TYPE_LOOPBACK = 772 }; /* linux/if_arp.h */

enum fact {
    HAS_DEVICE = 1, /* hardware, or what a virtual machine takes for it */
    HAS_LOWER = 2,  /* it stands on others */
    IS_LINK = 4,    /* not a tunnel */
    IS_LOOPBACK = 8,
    IS_BENEATH = 16, /* one with a device stands on it and has its bytes: Azure's, a switch's */
    HAS_MASTER = 32, /* a port of a bridge: what passes it goes on elsewhere */
};

/* Who counts, by the first of these that anybody fulfils. A container has no hardware. */
static const struct {
    unsigned has, has_not;
} who_counts[] = {
    {HAS_DEVICE, IS_LOOPBACK | IS_BENEATH},
    {IS_LINK, IS_LOOPBACK | HAS_LOWER | HAS_MASTER},
    {IS_LINK, IS_LOOPBACK | HAS_LOWER},
    {0, IS_LOOPBACK | HAS_LOWER},
};

static bool look_at_entry(void *of, const char *name)
{
    unsigned *facts = of;
    if (strncmp(name, "lower_", 6) == 0)
        *facts |= HAS_LOWER;
    else if (strcmp(name, "master") == 0)
        *facts |= HAS_MASTER;
    return true;
}

static uint64_t type_of(const struct pr_tick *t, const char *name)
{
    char path[PATH];
    uint64_t type = TYPE_ETHERNET; /* where sysfs does not know it: that of another namespace */
    snprintf(path, sizeof path, CLASS "/%s/type", name);
    ssize_t n = pr_fs_read(t->host->root, path, t->text, t->text_size);
    struct pr_scan s = pr_scan_of(t->text, n > 0 ? (size_t)n : 0);
    pr_scan_u64(&s, &type);
    return type;
}

static unsigned facts_of(const struct pr_tick *t, const char *name)
{
    char path[PATH];
    struct stat st;
    if (strcmp(name, "lo") == 0)
        return IS_LOOPBACK;
    snprintf(path, sizeof path, CLASS "/%s/device", name);
    if (fstatat(t->host->root, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return HAS_DEVICE; /* counts whatever its type is */
    uint64_t type = type_of(t, name);
    if (type == TYPE_LOOPBACK)
        return IS_LOOPBACK;
    return type == TYPE_ETHERNET || type == TYPE_INFINIBAND ? IS_LINK : 0;
}

/* What it stands on and what stands on it. */
static unsigned neighbours_of(const struct pr_tick *t, const char *name)
{
    char path[PATH];
    unsigned facts = 0;
    snprintf(path, sizeof path, CLASS "/%s", name);
    pr_fs_list(t->host->root, path, t->text, t->text_size, look_at_entry, &facts);
    return facts;
}

/* Does one with a device stand on this one? */
static bool is_beneath(const struct pr_roster *r, const struct pr_tick *t, const char *name)
{
    const unsigned both = HAS_DEVICE | HAS_LOWER;
    char path[PATH];
    struct stat st;
    for (size_t i = 0; i < r->count; i++) {
        if ((r->lines[i].facts & both) != both)
            continue;
        snprintf(path, sizeof path, CLASS "/%s/lower_%s", r->lines[i].name, name);
        if (fstatat(t->host->root, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    }
    return false;
}

/* False where it leaves nobody. */
static bool apply(struct pr_roster *r, unsigned has, unsigned has_not)
{
    bool any = false;
    for (size_t i = 0; i < r->count; i++) {
        struct pr_roster_line *line = &r->lines[i];
        line->counted = (line->facts & has) == has && !(line->facts & has_not);
        any |= line->counted;
    }
    return any;
}

static void find_out(struct pr_roster *r, const struct pr_tick *t)
{
    bool hardware = false;
    for (size_t i = 0; i < r->count; i++) {
        r->lines[i].facts = facts_of(t, r->lines[i].name);
        r->lines[i].shown = !(r->lines[i].facts & IS_LOOPBACK);
        hardware |= r->lines[i].facts & HAS_DEVICE;
    }
    /* A list is dear, and beside hardware nothing else can count. */
    for (size_t i = 0; i < r->count; i++)
        if (!(r->lines[i].facts & IS_LOOPBACK) && (!hardware || (r->lines[i].facts & HAS_DEVICE)))
            r->lines[i].facts |= neighbours_of(t, r->lines[i].name);
    for (size_t i = 0; i < r->count; i++)
        if (is_beneath(r, t, r->lines[i].name))
            r->lines[i].facts |= IS_BENEATH;
    for (size_t k = 0; k < sizeof who_counts / sizeof *who_counts; k++)
        if (apply(r, who_counts[k].has, who_counts[k].has_not))
            break;
}

/* The last colon ends the name: names have had colons, numbers have not. The first number may
 * follow at once. */
bool pr_netdev_line(struct pr_scan line, struct pr_scan *ret_name, double *ret_bytes)
{
    enum { RECEIVED = 0, SENT = 8, FIELDS };
    uint64_t field[FIELDS];
    const char *colon = memrchr(line.p, ':', (size_t)(line.end - line.p));
    struct pr_scan name = {line.p, colon};
    if (!colon || !pr_scan_word(&name, ret_name) || name.p != colon)
        return false;
    line.p = colon + 1;
    for (int i = 0; i < FIELDS; i++)
        if (!pr_scan_u64(&line, &field[i]))
            return false;
    ret_bytes[0] = (double)field[RECEIVED];
    ret_bytes[1] = (double)field[SENT];
    return true;
}

/* Ours is the wrong network namespace under another root: there it is that of its first process. */
static ssize_t text(const struct pr_tick *t, int *held)
{
    ssize_t n = -ENOENT;
    if (t->host->foreign)
        n = pr_machine_text(t, held, t->host->proc, "1/net/dev", true);
    return n >= 0 ? n : pr_machine_text(t, held, t->host->proc, "net/dev", true);
}

static int read_it(struct pr_machine *m, const struct pr_tick *t, void **state)
{
    static const struct pr_roster_rules rules = {
        .source = MACHINE_sys_net,
        .kind = DEVICE_INTERFACE,
        .metric = {METRIC_SYSTEM_NET_RX, METRIC_SYSTEM_NET_TX},
        .text = text,
        .line = pr_netdev_line,
        .find_out = find_out,
        .none = "it has no interface but lo",
    };
    return pr_roster_read(&rules, m, t, state);
}

const struct pr_machine_source pr_machine_source_sys_net = {
    .name = "/proc/net/dev", .gives = READ_NETDEV, .read = read_it, .close = pr_roster_close};
