/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of sockets, and what is made of it: the first byte of each message's cookie
 * decides whether it is of a dump or the last that is heard of a socket. */
#include <math.h>

#include "fuzz.h"
#include "source/net_table.h"

static void take(struct pr_net_table *n, struct pr_entities *set, const struct pr_diag_socket *s)
{
    static const struct pr_entity somebody = {.pid = 1, .start = 1};
    n->reading += s->inode & 1;
    if (s->cookie & 1)
        pr_net_table_see(n, set, s, n->reading, s->cookie & 2);
    else
        pr_net_table_gone(n, set, s);
    if (s->inode & 2)
        pr_net_table_found(n, set, &somebody, s->inode);
    if (s->inode & 4)
        pr_net_table_not_found(n, n->reading);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pr_net_table n = {0};
    struct pr_entities set = {0};
    struct pr_diag_socket s;
    enum pr_diag_kind kind;
    int error = 0;
    char *bytes = fuzz_bytes(data, size);
    const char *text = bytes;
    size_t len = size;
    while ((kind = pr_diag_next(&text, &len, 0, &s, &error)) != DIAG_END) {
        FUZZ_ASSERT(text + len == bytes + size);
        FUZZ_ASSERT(kind != DIAG_FAILED || error < 0);
        if (kind == DIAG_SOCKET)
            take(&n, &set, &s);
        FUZZ_ASSERT(n.by_cookie.count == n.count && n.by_inode.count <= n.count);
        FUZZ_ASSERT(n.rx >= 0 && n.tx >= 0 && n.unattributed >= 0);
    }
    pr_net_table_settle(&n, &set);
    pr_net_table_sweep(&n, &set, n.reading + 1);
    FUZZ_ASSERT(n.count == 0 && n.by_cookie.count == 0 && n.by_inode.count == 0);
    pr_net_table_done(&n);
    free(bytes);
    return 0;
}
