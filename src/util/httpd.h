/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server with a thread of its own, over libmicrohttpd, which is loaded at first use.
 * Clients may be slow, silent, many or hostile: 24 are listened to, of more the one that has been
 * silent for longest goes; whoever says nothing for ten seconds goes, too. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"

#define HTTPD_FILES 36 /* descriptors that a server has at the most */

struct pr_httpd;
struct pr_page;

/* From the server's thread: what to answer a GET with, and its status; NULL hangs up. The page
 * stays the caller's. `accept` is NULL where there is no such header. */
typedef struct pr_page *pr_httpd_answer(void *of, const char *path, const char *accept,
                                        unsigned *ret_status);

/* Serves on a listening socket, which is the server's then, and closed even on failure. NULL with
 * the reason in why. The thread has the signal mask of the caller. */
struct pr_httpd *pr_httpd_start(int fd, pr_httpd_answer *answer, void *of, char *why, size_t size);
/* Hangs up on everybody; nobody can connect any more, not even where a fork has copied the socket.
 * NULL is fine. */
void pr_httpd_stop(struct pr_httpd *h);
/* How many clients there are, and the CPU time of the server's thread when it last had to do with
 * one, ns; from any thread. */
int pr_httpd_clients(const struct pr_httpd *h);
int64_t pr_httpd_cpu(const struct pr_httpd *h);
/* A page of that media type; only while there is a server. The buffer's memory becomes the page's.
 * NULL when memory is out. */
struct pr_page *pr_page_new(const char *type, struct pr_buf *body);
/* Whoever is being sent it still gets all of it. NULL is fine. */
void pr_page_free(struct pr_page *page);
