/* SPDX-License-Identifier: Apache-2.0 */
/* NETLINK_SOCK_DIAG: what the kernel says of TCP sockets, asked for or told when one is gone. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIAG_ROOM 32768 /* the kernel makes no larger pieces */

enum { DIAG_LISTEN = 10 }; /* TCP_LISTEN, net/tcp_states.h */

struct pr_diag_socket {
    uint64_t cookie; /* its name: never given twice while the machine runs */
    uint32_t inode;  /* 0 where no descriptor leads to it: not accepted yet, or closed */
    uint16_t port;   /* local */
    uint8_t state;
    bool subflow;    /* of MPTCP: its inode is in nobody's descriptors */
    bool counted;    /* rx, tx and sent are known */
    uint64_t rx, tx; /* payload; rx has one more where the other side has closed (FIN) */
    uint64_t sent;   /* with what was sent again; only grows, unless it connects anew */
};

enum pr_diag_kind {
    DIAG_SOCKET,
    DIAG_OTHER,
    DIAG_DONE,   /* the end of a dump */
    DIAG_FAILED, /* *ret_error is -errno */
    DIAG_END,    /* of the text */
};

/* Takes one message off the text; any bytes will do. seq: of whose answers; 0 for all. */
enum pr_diag_kind pr_diag_next(const char **text, size_t *len, uint32_t seq,
                               struct pr_diag_socket *ret, int *ret_error);
/* A socket for dumps. Descriptor or -errno. */
int pr_diag_open(void);
/* One that hears of each TCP socket that goes. Descriptor or -errno. */
int pr_diag_listen(void);
/* Asks for all TCP sockets, or for the listening ones alone: those of both families (family 0), or
 * of one. 0 or -errno. */
int pr_diag_ask(int fd, int family, bool listening, uint32_t seq);
