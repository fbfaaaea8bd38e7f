/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP with libcurl, loaded at first use: as much of it as a publisher needs. Whatever a server
 * does (nothing, garbage, ten megabytes, half an answer) costs a request its time limit at the most
 * and HTTP_ANSWER_MOST bytes. What is secret is in the setting alone, never in a message. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"

#define HTTP_ANSWER_MOST (256 * 1024) /* bytes; a server that says more is not listened to */

struct pr_http; /* one connection, kept from request to request */

/* Borrowed during the call; NULL for what there is not. */
struct pr_http_setting {
    const char *user, *password; /* both, or the token, or nothing */
    const char *token;
    const char *ca;          /* whom to believe: a file or a folder */
    const char *certificate; /* ours: a file, with its key where that has none of its own: */
    const char *key;
    const char *headers; /* "Name: value\n" for each that goes with all requests */
    bool insecure;       /* a server need not prove who it is */
    double timeout;      /* seconds for one request */
    _Atomic int *files;  /* how many descriptors it has is added here; NULL for nobody's */
};

struct pr_http_request {
    const char *url;
    const char *body; /* NULL for a GET */
    size_t len;
    const char *type;   /* of the body and of the answer; NULL for JSON */
    bool put;           /* it goes to that very place: not a POST */
    size_t most;        /* bytes of the answer; 0 for HTTP_ANSWER_MOST */
    const char *header; /* "Name: value", NULL for none */
};

struct pr_http_answer {
    int status;
    struct pr_buf body;
    double retry_after; /* seconds, NaN where it is not said */
    char why[160];      /* where there is no answer */
};

/* -ENOSYS where there is no library, -ENOMEM; then the reason is in why. */
int pr_http_new(struct pr_http **ret, const struct pr_http_setting *setting, char *why,
                size_t size);
/* NULL is allowed. */
void pr_http_free(struct pr_http *h);
/* Waits for an answer, until the moment that pr_http_until has named at the latest. 0 where there
 * is one, whatever its status; -EPROTO where the two cannot agree on TLS, else -EAGAIN. The answer
 * is the caller's, all zero the first time and used again from then on. */
int pr_http_send(struct pr_http *h, const struct pr_http_request *request,
                 struct pr_http_answer *answer);
/* No request lasts longer than to this moment of pr_clock_boot. Any thread may call, at any time.
 */
void pr_http_until(struct pr_http *h, int64_t boot);
/* Sleeps. False where the time is over by then, or before. */
bool pr_http_pause(struct pr_http *h, double seconds);
/* Appends text as a part of a URL. */
void pr_http_escape(struct pr_buf *out, const char *text);
/* What Retry-After says, in seconds: a number, or a date, now being wall time. NaN for neither. */
double pr_http_retry_after(const char *text, int64_t wall_ns);
