/* SPDX-License-Identifier: Apache-2.0 */
/* sock_diag(7). No privileges are needed, neither for struct tcp_info nor for the groups that tell
 * of sockets that go. A message about one that went has neither inode nor user: what it shares with
 * the dumps is the cookie.
 *
 * Sent is tcpi_bytes_sent less tcpi_bytes_retrans: payload, each byte once, from the moment it is
 * on its way. tcpi_bytes_acked would lag behind by what is on the way, and counts SYN and FIN;
 * kernels before 4.19 have nothing else. Received is tcpi_bytes_received, which counts a FIN. */
#include "source/net_diag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENT_BUFFER (8 << 20) /* a closing socket takes about 1 KB of it until we look */
#define IS_STATE(n)  (1u << (n))

enum { SYN_RECV = 3, TIME_WAIT = 6, ULP_NAME = 1 }; /* net/tcp_states.h, linux/inet_diag.h */

/* --- what comes ------------------------------------------------------------------------------- */

struct attribute {
    unsigned type;
    const char *data;
    size_t len;
};

/* To what follows after len bytes: both messages and attributes begin at multiples of 4. The last
 * one may end without filling up. */
static void skip(const char **text, size_t *left, size_t len)
{
    size_t step = (len + 3) & ~(size_t)3;
    step = step < *left ? step : *left;
    *text += step;
    *left -= step;
}

/* Takes one attribute off the text. False at the end, and where it is damaged. */
static bool next_attribute(const char **text, size_t *left, struct attribute *ret)
{
    struct nlattr a;
    if (*left < sizeof a)
        return false;
    memcpy(&a, *text, sizeof a);
    if (a.nla_len < sizeof a || a.nla_len > *left)
        return false;
    *ret = (struct attribute){a.nla_type & NLA_TYPE_MASK, *text + sizeof a, a.nla_len - sizeof a};
    skip(text, left, a.nla_len);
    return true;
}

/* A counter of struct tcp_info; false where this kernel's is shorter. */
static bool counter(const struct attribute *info, size_t at, uint64_t *ret)
{
    if (info->len < at + sizeof *ret)
        return false;
    memcpy(ret, info->data + at, sizeof *ret);
    return true;
}

static void take_info(const struct attribute *info, struct pr_diag_socket *ret)
{
    uint64_t again;
    ret->counted = counter(info, offsetof(struct tcp_info, tcpi_bytes_received), &ret->rx) &&
                   counter(info, offsetof(struct tcp_info, tcpi_bytes_acked), &ret->sent);
    ret->tx = ret->sent;
    if (counter(info, offsetof(struct tcp_info, tcpi_bytes_retrans), &again)) {
        counter(info, offsetof(struct tcp_info, tcpi_bytes_sent), &ret->sent);
        ret->tx = ret->sent > again ? ret->sent - again : 0;
    }
}

static bool is_subflow(const struct attribute *ulp)
{
    struct attribute a;
    const char *text = ulp->data;
    size_t left = ulp->len;
    while (next_attribute(&text, &left, &a))
        if (a.type == ULP_NAME)
            return a.len >= 5 && memcmp(a.data, "mptcp", 5) == 0;
    return false;
}

static bool parse(const char *text, size_t len, struct pr_diag_socket *ret)
{
    struct inet_diag_msg m;
    struct attribute a;
    if (len < sizeof m)
        return false;
    memcpy(&m, text, sizeof m);
    *ret = (struct pr_diag_socket){.cookie = m.id.idiag_cookie[0] | (uint64_t)m.id.idiag_cookie[1]
                                                                        << 32,
                                   .inode = m.idiag_inode,
                                   .port = ntohs(m.id.idiag_sport),
                                   .state = m.idiag_state};
    text += sizeof m;
    len -= sizeof m;
    while (next_attribute(&text, &len, &a))
        if (a.type == INET_DIAG_INFO)
            take_info(&a, ret);
        else if (a.type == INET_DIAG_ULP_INFO)
            ret->subflow = is_subflow(&a);
    return ret->cookie != 0;
}

static enum pr_diag_kind failure(const char *text, size_t len, int *ret_error)
{
    int code = -EIO;
    if (len >= sizeof code)
        memcpy(&code, text, sizeof code);
    *ret_error = code < 0 ? code : -EIO;
    return DIAG_FAILED;
}

enum pr_diag_kind pr_diag_next(const char **text, size_t *len, uint32_t seq,
                               struct pr_diag_socket *ret, int *ret_error)
{
    struct nlmsghdr h;
    if (*len < sizeof h)
        return DIAG_END;
    memcpy(&h, *text, sizeof h);
    if (h.nlmsg_len < sizeof h || h.nlmsg_len > *len)
        return DIAG_END;
    const char *data = *text + sizeof h;
    size_t size = h.nlmsg_len - sizeof h;
    skip(text, len, h.nlmsg_len);
    if (seq && h.nlmsg_seq != seq) /* of a dump that was given up */
        return DIAG_OTHER;
    if (h.nlmsg_type == NLMSG_DONE)
        return DIAG_DONE;
    if (h.nlmsg_type == NLMSG_ERROR)
        return failure(data, size, ret_error);
    bool known = h.nlmsg_type == SOCK_DIAG_BY_FAMILY || h.nlmsg_type == TCPDIAG_GETSOCK;
    return known && parse(data, size, ret) ? DIAG_SOCKET : DIAG_OTHER;
}

/* --- asking ----------------------------------------------------------------------------------- */

int pr_diag_open(void)
{
    const struct sockaddr_nl any = {.nl_family = AF_NETLINK};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    /* Without an address of its own a socket hears nothing that is said to all. */
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&any, sizeof any) == 0)
        return fd;
    int code = -errno;
    if (fd >= 0)
        close(fd);
    return code;
}

int pr_diag_listen(void)
{
    static const int groups[] = {SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY};
    const int size = EVENT_BUFFER;
    int fd = pr_diag_open();
    if (fd < 0)
        return fd;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i], sizeof *groups) < 0) {
            int code = -errno;
            close(fd);
            return code;
        }
    /* As much as may be had: beyond net.core.rmem_max for root only. */
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    return fd;
}

static int send_it(int fd, const void *request, size_t len)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    ssize_t n = sendto(fd, request, len, MSG_DONTWAIT, (struct sockaddr *)&kernel, sizeof kernel);
    return n < 0 ? -errno : 0;
}

/* The older request has no family to choose: the kernel walks through its table, of some 100,000
 * places, once for both. That is most of what a dump costs. Listening ones are in a table of their
 * own, which is small. */
int pr_diag_ask(int fd, int family, bool listening, uint32_t seq)
{
    const unsigned states =
        listening ? IS_STATE(DIAG_LISTEN) : 0xfff & ~(IS_STATE(SYN_RECV) | IS_STATE(TIME_WAIT));
    const unsigned char info = 1u << (INET_DIAG_INFO - 1);
    const struct nlmsghdr head = {.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP, .nlmsg_seq = seq};
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 ask;
    } one = {head,
             {.sdiag_family = (unsigned char)family,
              .sdiag_protocol = IPPROTO_TCP,
              .idiag_ext = info,
              .idiag_states = states}};
    struct {
        struct nlmsghdr head;
        struct inet_diag_req ask;
    } both = {head, {.idiag_family = AF_INET, .idiag_ext = info, .idiag_states = states}};
    one.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    one.head.nlmsg_len = sizeof one;
    both.head.nlmsg_type = TCPDIAG_GETSOCK;
    both.head.nlmsg_len = sizeof both;
    return family ? send_it(fd, &one, sizeof one) : send_it(fd, &both, sizeof both);
}
