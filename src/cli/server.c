/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever connects is a stranger: another user is turned away, a line that is not understood or too
 * long is answered "no", and who has been silent for longest makes room for who comes. */
#include "cli/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/socket_path.h"
#include "core/annotate.h"
#include "util/clock.h"

#define BACKLOG     64
#define PIECE       1024            /* bytes read from one client before it is another's turn */
#define WINDOW      (NS_PER_S / 10) /* in which at most so many requests are served: */
#define WINDOW_MOST 2000
#define TURN_NS     (2 * NS_PER_S / 1000)  /* then it is the sampler's turn again */
#define DRAIN_NS    (50 * NS_PER_S / 1000) /* nobody can keep us from ending */
#define DRAIN_MOST  20000
#define FILES_LEAST 64  /* that may be open; below, there is no socket */
#define TIDY_AFTER  1.0 /* seconds: a shorter run costs little, and leaves that to longer ones */

struct pr_client {
    int fd;
    uint64_t turn; /* when it last said something */
    size_t len;
    bool too_long; /* the line that is coming: it is thrown away */
    char line[REQUEST_LINE];
};

enum who { WHO_TALK, WHO_PAUSE, WHO_PROCESS, WHO_LISTENER, WHO_CLIENT };

/* --- the socket ------------------------------------------------------------------------------- */

/* The run's id where it can be a file's name, else one of our own. */
static void name_of(const char *run_id, char *name, size_t size)
{
    char own[64];
    pr_session_name(own, sizeof own);
    bool good = *run_id && *run_id != '.' && !strchr(run_id, '/') && strlen(run_id) <= 40;
    snprintf(name, size, "%s.sock", good ? run_id : own);
}

static int bind_to(struct pr_server *v, const char *directory, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", directory, name);
    if (bind(v->listener, (struct sockaddr *)&address, sizeof address) < 0)
        return -errno;
    memcpy(v->path, address.sun_path, sizeof v->path);
    snprintf(v->directory, sizeof v->directory, "%s", directory);
    /* A umask may have taken owner's bits from it, and who may not write to a socket cannot
     * connect. */
    return chmod(v->path, 0600) < 0 || listen(v->listener, BACKLOG) < 0 ? -errno : 0;
}

static int listen_on(struct pr_server *v, const char *run_id)
{
    char name[64], directory[512], other[64];
    name_of(run_id, name, sizeof name);
    int r = pr_socket_directory(directory, sizeof directory, strlen(name) + sizeof ".1234567890");
    if (r < 0)
        return r;
    v->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (v->listener < 0 || fchmod(v->listener, 0600) < 0) /* its file is born with no more */
        return -errno;
    r = bind_to(v, directory, name);
    if (r != -EADDRINUSE)
        return r;
    /* Several recorders may have been given one id. */
    snprintf(other, sizeof other, "%.40s.%d.sock", name, (int)getpid());
    return bind_to(v, directory, other);
}

static enum who who_is(const struct epoll_event *event)
{
    return (enum who)(event->data.u64 >> 32);
}

static int fd_of(const struct epoll_event *event)
{
    return (int)(event->data.u64 & 0xffffffff);
}

static int watch(int epoll, int fd, enum who who)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)who << 32 | (unsigned)fd};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_all(struct pr_server *v, const char *run_id)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < FILES_LEAST)
        return -EMFILE; /* samples need them more */
    v->events = epoll_create1(EPOLL_CLOEXEC);
    v->talk = epoll_create1(EPOLL_CLOEXEC);
    v->pause = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (v->events < 0 || v->talk < 0 || v->pause < 0)
        return -errno;
    int r = listen_on(v, run_id);
    r = r < 0 ? r : watch(v->talk, v->listener, WHO_LISTENER);
    r = r < 0 ? r : watch(v->events, v->talk, WHO_TALK);
    return r < 0 ? r : watch(v->events, v->pause, WHO_PAUSE);
}

void pr_server_open(struct pr_server *v, const char *run_id)
{
    *v = (struct pr_server)PR_SERVER_NONE;
    int r = open_all(v, run_id);
    if (r == 0)
        return;
    pr_server_close(v);
    snprintf(v->why, sizeof v->why, "phases and marks cannot be told: no socket could be made: %s",
             strerror(-r));
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void drop(struct pr_server *v, size_t i)
{
    if (!v->clients[i])
        return;
    close(v->clients[i]->fd);
    free(v->clients[i]);
    v->clients[i] = NULL;
}

void pr_server_close(struct pr_server *v)
{
    if (*v->path)
        unlink(v->path);
    *v->path = '\0';
    for (size_t i = 0; i < SERVER_CLIENTS; i++)
        drop(v, i);
    close_fd(&v->listener);
    close_fd(&v->events);
    close_fd(&v->talk);
    close_fd(&v->pause);
}

void pr_server_tidy(const struct pr_server *v, const struct pr_session *s)
{
    if (*v->directory && s->stats.seconds >= TIDY_AFTER)
        pr_socket_tidy(v->directory);
}

void pr_server_excuse(const struct pr_server *v, struct pr_session *s)
{
    if (*v->path && s->config->verbose)
        pr_complain("phases and marks are told to PROCTOR_SOCKET=%s", v->path);
    if (*v->path || !*v->why)
        return;
    pr_event_add(&s->events, EVENT_SOCKET, 0, 0, "%s", v->why);
    if (s->config->verbose)
        pr_complain("%s", v->why);
}

int pr_server_fd(const struct pr_server *v)
{
    return v->events;
}

/* --- clients ---------------------------------------------------------------------------------- */

/* Has it hung up, with nothing left to say? */
static bool is_gone(const struct pr_client *c)
{
    char next;
    return !c->len && recv(c->fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static size_t place_for(struct pr_server *v, struct pr_session *s)
{
    size_t quietest = 0;
    for (size_t i = 0; i < SERVER_CLIENTS; i++) {
        if (!v->clients[i])
            return i;
        if (v->clients[i]->turn < v->clients[quietest]->turn)
            quietest = i;
    }
    if (!is_gone(v->clients[quietest]))
        pr_annotate_refuse(s, "too many are connected to the socket: who was silent for longest "
                              "has been sent away");
    drop(v, quietest);
    return quietest;
}

static bool is_allowed(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
           (who.uid == geteuid() || who.uid == 0);
}

static void welcome(struct pr_server *v, struct pr_session *s)
{
    v->count++; /* to connect and to hang up is work for us, too */
    int fd = accept4(v->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            v->count = WINDOW_MOST; /* it stays readable: not at once again */
        return;
    }
    struct pr_client *c = is_allowed(fd) ? calloc(1, sizeof *c) : NULL;
    if (!c || watch(v->talk, fd, WHO_CLIENT) < 0) {
        if (!c)
            pr_annotate_refuse(s, "somebody else has connected to the socket of this run");
        close(fd);
        free(c);
        return;
    }
    c->fd = fd;
    c->turn = ++v->turn;
    v->clients[place_for(v, s)] = c;
}

/* A descriptor of who asks, readable when that process has ended; -errno. */
static int process_of(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 || who.pid <= 0)
        return -ESRCH;
    int process = (int)syscall(SYS_pidfd_open, who.pid, 0);
    return process < 0 ? -errno : process;
}

/* A phase that lasts as long as the process that asks. */
static bool last_as_long(struct pr_server *v, struct pr_session *s, int fd,
                         const struct pr_request *r, int64_t now)
{
    int process = v->watched < PHASES_OPEN ? process_of(fd) : -EMFILE;
    if (process < 0) {
        pr_annotate_refuse(s, "a phase is to last as long as a process that cannot be watched");
        return false;
    }
    if (watch(v->events, process, WHO_PROCESS) < 0 || !pr_annotate(s, r, now, process)) {
        close(process);
        return false;
    }
    v->watched++;
    return true;
}

/* Who does not read the answers does not get them. */
static void answer(struct pr_server *v, int fd, bool done)
{
    v->count++;
    send(fd, done ? "ok\n" : "no\n", 3, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void serve_line(struct pr_server *v, struct pr_session *s, int fd, const char *line,
                       size_t len)
{
    struct pr_request r;
    int64_t now = pr_clock_boot();
    bool parsed = pr_request_parse(&r, line, len);
    bool done = parsed && (r.verb == REQUEST_DURING ? last_as_long(v, s, fd, &r, now)
                                                    : pr_annotate(s, &r, now, 0));
    if (!parsed)
        pr_annotate_refuse(s, "the socket got a line that is no request");
    answer(v, fd, done);
}

/* Whatever came: to close here would kill a job that writes on, by SIGPIPE. */
static void serve_lines(struct pr_server *v, struct pr_session *s, struct pr_client *c)
{
    size_t done = 0;
    for (;;) {
        char *line = c->line + done, *end = memchr(line, '\n', c->len - done);
        if (!end)
            break;
        if (c->too_long) /* its end: what was before is gone, and counted */
            answer(v, c->fd, false);
        else
            serve_line(v, s, c->fd, line, (size_t)(end - line));
        c->too_long = false;
        done = (size_t)(end - c->line) + 1;
    }
    memmove(c->line, c->line + done, c->len - done);
    c->len -= done;
    if (c->len < sizeof c->line)
        return;
    if (!c->too_long)
        pr_annotate_refuse(s, "the socket got a line that is too long");
    c->too_long = true;
    c->len = 0;
}

static bool serve_client(struct pr_server *v, struct pr_session *s, struct pr_client *c)
{
    size_t room = sizeof c->line - c->len;
    ssize_t n = recv(c->fd, c->line + c->len, room < PIECE ? room : PIECE, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0) {
        if (c->len && !c->too_long) /* that one is counted */
            pr_annotate_refuse(s, "the socket got half a line");
        return false;
    }
    c->turn = ++v->turn;
    c->len += (size_t)n;
    serve_lines(v, s, c);
    return true;
}

/* --- in turn ---------------------------------------------------------------------------------- */

static void serve_one(struct pr_server *v, struct pr_session *s, enum who who, int fd)
{
    if (who == WHO_LISTENER)
        welcome(v, s);
    for (size_t i = 0; who == WHO_CLIENT && i < SERVER_CLIENTS; i++)
        if (v->clients[i] && v->clients[i]->fd == fd) {
            if (!serve_client(v, s, v->clients[i]))
                drop(v, i);
            return;
        }
}

/* The ends of phases that last as long as a process. No pause holds them up: there are few, and
 * each moment that passes would be in the phase. False where nobody has ended. */
static bool end_processes(struct pr_server *v, struct pr_session *s)
{
    struct epoll_event events[PHASES_OPEN + 2];
    bool any = false;
    int n = epoll_wait(v->events, events, (int)(sizeof events / sizeof *events), 0);
    for (int i = 0; i < n; i++) {
        if (who_is(&events[i]) != WHO_PROCESS)
            continue;
        pr_annotate_gone(s, fd_of(&events[i]), pr_clock_boot());
        close(fd_of(&events[i]));
        v->watched--;
        any = true;
    }
    return any;
}

static void count_from(struct pr_server *v, int64_t now)
{
    v->window = now;
    v->count = 0;
}

/* Nobody is listened to until then; 0 for now, which disarms the timer. */
static void listen_at(struct pr_server *v, int64_t until)
{
    struct itimerspec when = {.it_value = {until / NS_PER_S, until % NS_PER_S}};
    v->paused = timerfd_settime(v->pause, TFD_TIMER_ABSTIME, &when, NULL) == 0 && until;
    struct epoll_event talk = {.events = v->paused ? 0 : EPOLLIN,
                               .data.u64 = (uint64_t)WHO_TALK << 32 | (unsigned)v->talk};
    epoll_ctl(v->events, EPOLL_CTL_MOD, v->talk, &talk);
}

/* One round: processes that have ended first, for they did before anything that is said now; then
 * whoever has something to say once, as far as time allows. Who had to wait is first in the next
 * round: the kernel lists them in one order. False where nobody had anything. */
static bool serve_round(struct pr_server *v, struct pr_session *s, int64_t until)
{
    struct epoll_event events[SERVER_CLIENTS + 1];
    bool any = end_processes(v, s);
    int n = epoll_wait(v->talk, events, (int)(sizeof events / sizeof *events), 0);
    uint64_t first = v->first;
    for (int k = 0; k < n && (!k || pr_clock_boot() < until); k++, v->first++) {
        const struct epoll_event *event = &events[(first + (uint64_t)k) % (uint64_t)n];
        serve_one(v, s, who_is(event), fd_of(event));
    }
    return any || n > 0;
}

void pr_server_serve(struct pr_server *v, struct pr_session *s)
{
    int64_t now = pr_clock_boot();
    unsigned long before = s->phases.marked + s->phases.ended;
    if (v->events < 0)
        return;
    bool go_on = now - v->window >= WINDOW;
    if (go_on)
        count_from(v, now);
    if (go_on && v->paused)
        listen_at(v, 0);
    if (v->paused)
        end_processes(v, s);
    else
        serve_round(v, s, now + TURN_NS);
    if (!v->paused && v->count >= WINDOW_MOST)
        listen_at(v, v->window + WINDOW);
    if (s->queue && s->phases.marked + s->phases.ended != before)
        pr_queue_nudge(s->queue);
}

void pr_server_drain(struct pr_server *v, struct pr_session *s)
{
    int64_t until = pr_clock_boot() + DRAIN_NS;
    v->count = 0;
    while (v->events >= 0 && serve_round(v, s, until) && v->count < DRAIN_MOST &&
           pr_clock_boot() < until)
        ;
}
