/* SPDX-License-Identifier: Apache-2.0 */
/* What is declared here of libmicrohttpd is its stable interface, so that nothing but the library
 * itself is needed, and that only where something is served
 * (https://www.gnu.org/software/libmicrohttpd/manual/). A page is one of its responses: they are
 * counted, so that one text serves all who ask for it. */
#include "util/httpd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/dl.h"

#define LIBRARY      "libmicrohttpd.so.12"
#define CLIENTS      24
#define CLIENTS_MOST 32  /* those that are being hung up on included */
#define SILENCE      10U /* seconds */
#define REQUEST_SIZE ((size_t)16384)
#define STACK_SIZE   ((size_t)256 * 1024)
#define NICENESS     10

enum { NO = 0, YES = 1, KIND_HEADER = 1, MEMORY_MUST_FREE = 1 };
enum { USE_THREAD = 8, USE_EPOLL = 512, USE_ITC = 1024 };
enum { INFO_FD = 6, INFO_CONTEXT = 7 };
enum { NOTIFY_STARTED = 0 };
enum {
    OPTION_END = 0,
    OPTION_MEMORY_LIMIT = 1,
    OPTION_CONNECTION_LIMIT = 2,
    OPTION_TIMEOUT = 3,
    OPTION_LISTEN_SOCKET = 12,
    OPTION_STACK_SIZE = 19,
    OPTION_NOTIFY_CONNECTION = 27,
};

struct MHD_Daemon;
struct MHD_Connection;
union info {
    int fd;
    void *context;
};
typedef int access_fn(void *, struct MHD_Connection *, const char *url, const char *method,
                      const char *version, const char *upload, size_t *upload_size, void **state);

static struct {
    struct MHD_Daemon *(*start)(unsigned, uint16_t, void *, void *, access_fn *, void *, ...);
    void (*stop)(struct MHD_Daemon *);
    struct pr_page *(*page)(size_t, void *, int);
    void (*drop)(struct pr_page *);
    int (*header)(struct pr_page *, const char *, const char *);
    int (*queue)(struct MHD_Connection *, unsigned, struct pr_page *);
    const char *(*lookup)(struct MHD_Connection *, int, const char *);
    const union info *(*info)(struct MHD_Connection *, int, ...);
} lib;

#define SYMBOL(field, name) PR_DL_SYMBOL(lib, field, "MHD_" name)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;
static char missing[200]; /* why it is not loaded */

static void load(void)
{
    const struct pr_dl_symbol symbols[] = {
        SYMBOL(start, "start_daemon"),
        SYMBOL(stop, "stop_daemon"),
        SYMBOL(page, "create_response_from_buffer"),
        SYMBOL(drop, "destroy_response"),
        SYMBOL(header, "add_response_header"),
        SYMBOL(queue, "queue_response"),
        SYMBOL(lookup, "lookup_connection_value"),
        SYMBOL(info, "get_connection_info"),
    };
    loaded = pr_dl_open_whole(LIBRARY, symbols, sizeof symbols / sizeof *symbols, &lib, missing,
                              sizeof missing);
}

struct client {
    int fd;              /* -1: nobody is there */
    unsigned long heard; /* the larger, the later; 0: it is being hung up on */
};

struct pr_httpd {
    struct MHD_Daemon *daemon;
    pr_httpd_answer *answer;
    void *of;
    int fd; /* our own of the listening socket */
    struct pr_page *refusal;
    _Atomic int clients;
    _Atomic int64_t cpu;
    /* The server's thread has these. */
    unsigned long now;
    bool nice;
    struct client client[CLIENTS_MOST];
};

/* --- clients ---------------------------------------------------------------------------------- */

/* Where there are too many; the library sees that and closes its side. */
static void hang_up_on_one(struct pr_httpd *h)
{
    struct client *silent = NULL;
    int heard = 0;
    for (int i = 0; i < CLIENTS_MOST; i++) {
        struct client *c = &h->client[i];
        if (c->fd < 0 || !c->heard)
            continue;
        heard++;
        silent = silent && silent->heard < c->heard ? silent : c;
    }
    if (heard <= CLIENTS)
        return;
    silent->heard = 0;
    shutdown(silent->fd, SHUT_RDWR);
}

static void welcome(struct pr_httpd *h, struct MHD_Connection *connection, void **context)
{
    const union info *info = lib.info(connection, INFO_FD);
    struct client *c = h->client;
    while (c < h->client + CLIENTS_MOST && c->fd >= 0)
        c++;
    *context = NULL;
    if (!info || c == h->client + CLIENTS_MOST)
        return;
    *c = (struct client){info->fd, ++h->now};
    *context = c;
    h->clients++;
    hang_up_on_one(h);
}

static void notify(void *of, struct MHD_Connection *connection, void **context, int what)
{
    struct pr_httpd *h = of;
    struct client *c = *context;
    if (!h->nice) { /* whoever asks comes after the job */
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICENESS);
        h->nice = true;
    }
    if (what == NOTIFY_STARTED) {
        welcome(h, connection, context);
    } else if (c) {
        c->fd = -1;
        h->clients--;
    }
    h->cpu = pr_clock_thread_cpu();
}

static void hear(struct pr_httpd *h, struct MHD_Connection *connection)
{
    const union info *info = lib.info(connection, INFO_CONTEXT);
    struct client *c = info ? info->context : NULL;
    if (c && c->heard)
        c->heard = ++h->now;
}

/* --- requests --------------------------------------------------------------------------------- */

/* Called with the header, and once more when the request is complete; in between with a body, for
 * which there is no use. */
static int handle(void *of, struct MHD_Connection *connection, const char *url, const char *method,
                  const char *version, const char *upload, size_t *upload_size, void **state)
{
    struct pr_httpd *h = of;
    bool get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    unsigned status = 405;
    (void)version;
    (void)upload;
    if (!get)
        return lib.queue(connection, status, h->refusal);
    if (!*state) {
        *state = h;
        return YES;
    }
    if (*upload_size)
        return NO;
    hear(h, connection);
    struct pr_page *page =
        h->answer(h->of, url, lib.lookup(connection, KIND_HEADER, "Accept"), &status);
    h->cpu = pr_clock_thread_cpu();
    return page ? lib.queue(connection, status, page) : NO;
}

struct pr_page *pr_page_new(const char *type, struct pr_buf *body)
{
    struct pr_page *page =
        body->failed ? NULL : lib.page(body->len, (void *)pr_buf_text(body), MEMORY_MUST_FREE);
    if (!page)
        return NULL;
    *body = (struct pr_buf){0};
    lib.header(page, "Content-Type", type);
    return page;
}

void pr_page_free(struct pr_page *page)
{
    if (page)
        lib.drop(page);
}

/* --- the server ------------------------------------------------------------------------------- */

static struct pr_page *make_refusal(void)
{
    struct pr_buf body = {0};
    pr_buf_str(&body, "only GET and HEAD\n");
    struct pr_page *page = pr_page_new("text/plain", &body);
    if (page)
        lib.header(page, "Allow", "GET, HEAD");
    pr_buf_done(&body);
    return page;
}

/* It may have closed its socket where it fails, or not: it gets one of its own. */
static struct MHD_Daemon *start(struct pr_httpd *h)
{
    int fd = fcntl(h->fd, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? NULL
                  : lib.start(USE_THREAD | USE_EPOLL | USE_ITC, 0, NULL, NULL, handle, h,
                              OPTION_LISTEN_SOCKET, fd, OPTION_CONNECTION_LIMIT,
                              (unsigned)CLIENTS_MOST, OPTION_TIMEOUT, SILENCE, OPTION_MEMORY_LIMIT,
                              REQUEST_SIZE, OPTION_STACK_SIZE, STACK_SIZE, OPTION_NOTIFY_CONNECTION,
                              notify, h, OPTION_END);
}

struct pr_httpd *pr_httpd_start(int fd, pr_httpd_answer *answer, void *of, char *why, size_t size)
{
    struct pr_httpd *h = calloc(1, sizeof *h);
    pthread_once(&once, load);
    snprintf(why, size, "%s", loaded ? "the server cannot be started" : missing);
    if (h) {
        *h = (struct pr_httpd){.fd = fd, .answer = answer, .of = of};
        for (int i = 0; i < CLIENTS_MOST; i++)
            h->client[i].fd = -1;
        h->refusal = loaded ? make_refusal() : NULL;
        h->daemon = h->refusal ? start(h) : NULL;
        if (h->daemon)
            return h;
        pr_page_free(h->refusal);
    }
    shutdown(fd, SHUT_RDWR);
    close(fd);
    free(h);
    return NULL;
}

void pr_httpd_stop(struct pr_httpd *h)
{
    if (!h)
        return;
    lib.stop(h->daemon);
    shutdown(h->fd, SHUT_RDWR);
    pr_page_free(h->refusal);
    close(h->fd);
    free(h);
}

int pr_httpd_clients(const struct pr_httpd *h)
{
    return h->clients;
}

int64_t pr_httpd_cpu(const struct pr_httpd *h)
{
    return h->cpu;
}
