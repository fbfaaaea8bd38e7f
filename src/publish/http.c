/* SPDX-License-Identifier: Apache-2.0 */
/* What is declared here of libcurl is its stable interface (https://curl.se/libcurl/c/): numbers of
 * options never change. The interface of several handles is used for the one that there is, since
 * only so a request can be given up at any moment. */
#include "publish/http.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/dl.h"
#include "util/units.h"

#define CONNECT_MOST 5000    /* milliseconds */
#define SLICE        100     /* milliseconds between two looks at the time */
#define RETRY_MOST   3600    /* seconds: no server keeps us waiting for longer */
#define TIMEOUT_MOST 86400.0 /* seconds */

enum { GLOBAL_DEFAULT = 3, PROTOCOLS_HTTP = 3, AUTH_BASIC = 1, DONE = 1, STATUS = 0x200002 };
/* Options: numbers, then pointers, then functions. */
enum {
    VERIFY_PEER = 64,
    HTTP_GET = 80,
    VERIFY_HOST = 81,
    NO_SIGNAL = 99,
    HTTP_AUTH = 107,
    TIMEOUT_MS = 155,
    CONNECT_TIMEOUT_MS = 156,
    PROTOCOLS = 181,
    QUICK_EXIT = 322,
    WRITE_DATA = 10001,
    URL = 10002,
    ERROR_BUFFER = 10010,
    USER_AGENT = 10018,
    HEADERS = 10023,
    CERTIFICATE = 10025,
    HEADER_DATA = 10029,
    METHOD = 10036,
    CA_FILE = 10065,
    KEY = 10087,
    CA_FOLDER = 10097,
    OPEN_DATA = 10164,
    BODY = 10165, /* copied */
    USER = 10173,
    PASSWORD = 10174,
    CLOSE_DATA = 10209,
    WRITE_FUNCTION = 20011,
    HEADER_FUNCTION = 20079,
    OPEN_FUNCTION = 20163,
    CLOSE_FUNCTION = 20208,
    BODY_SIZE = 30120,
};
enum { FAILED_WRITE = 23, FAILED_TIME = 28, FAILED_TLS = 35 };

struct message { /* CURLMsg */
    int what;
    void *easy;
    union {
        void *any;
        int result;
    } data;
};

struct address { /* curl_sockaddr, as far as it is needed */
    int family, type, protocol;
};

static struct {
    int (*start)(long);
    void *(*easy_new)(void);
    void (*easy_free)(void *);
    int (*set)(void *, int, ...);
    int (*get)(void *, int, ...);
    const char *(*words)(int);
    void *(*multi_new)(void);
    int (*multi_free)(void *);
    int (*add)(void *, void *);
    int (*take_off)(void *, void *);
    int (*perform)(void *, int *);
    int (*wait)(void *, void *, unsigned, int, int *);
    struct message *(*read)(void *, int *);
    void *(*list_add)(void *, const char *);
    void (*list_free)(void *);
} lib;

#define SYMBOL(field, name) PR_DL_SYMBOL(lib, field, "curl_" name)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;
static char missing[200]; /* why it is not loaded */

static void load(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    const struct pr_dl_symbol symbols[] = {
        SYMBOL(start, "global_init"),        SYMBOL(easy_new, "easy_init"),
        SYMBOL(easy_free, "easy_cleanup"),   SYMBOL(set, "easy_setopt"),
        SYMBOL(get, "easy_getinfo"),         SYMBOL(words, "easy_strerror"),
        SYMBOL(multi_new, "multi_init"),     SYMBOL(multi_free, "multi_cleanup"),
        SYMBOL(add, "multi_add_handle"),     SYMBOL(take_off, "multi_remove_handle"),
        SYMBOL(perform, "multi_perform"),    SYMBOL(wait, "multi_poll"),
        SYMBOL(read, "multi_info_read"),     SYMBOL(list_add, "slist_append"),
        SYMBOL(list_free, "slist_free_all"),
    };
    size_t count = sizeof symbols / sizeof *symbols;
    bool whole = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !whole; i++)
        whole = pr_dl_open_whole(names[i], symbols, count, &lib, missing, sizeof missing);
    loaded = whole && lib.start(GLOBAL_DEFAULT) == 0;
}

struct pr_http {
    void *easy, *multi;
    double timeout;
    _Atomic int64_t until;         /* boot time, ns; any thread's */
    char *authorization;           /* a header with a token */
    char *headers;                 /* those of the setting, each ended by NUL, and "" */
    _Atomic int *files;            /* who counts descriptors; NULL for nobody */
    int waking;                    /* descriptors by which libcurl wakes itself */
    struct pr_http_answer *answer; /* of the request that is going on */
    size_t most;                   /* bytes that its answer may have */
    bool too_long;                 /* it had more */
    char said[256];                /* what libcurl says of a failure */
};

/* --- a handle --------------------------------------------------------------------------------- */

static size_t take_body(const char *data, size_t size, size_t count, void *of)
{
    struct pr_http *h = of;
    size_t n = size * count;
    h->too_long = h->answer->body.len + n > h->most;
    if (h->too_long)
        return 0; /* it gives up */
    pr_buf_add(&h->answer->body, data, n);
    return h->answer->body.failed ? 0 : n;
}

static size_t take_header(const char *data, size_t size, size_t count, void *of)
{
    static const char name[] = "retry-after:";
    struct pr_http *h = of;
    char text[64];
    size_t n = size * count, from = sizeof name - 1;
    if (n > from && strncasecmp(data, name, from) == 0) {
        snprintf(text, sizeof text, "%.*s", (int)(n - from < 60 ? n - from : 60), data + from);
        h->answer->retry_after = pr_http_retry_after(text, pr_clock_wall());
    }
    return n;
}

/* A connection, which is counted. */
static int open_socket(void *of, int purpose, const struct address *a)
{
    struct pr_http *h = of;
    int fd = socket(a->family, a->type | SOCK_CLOEXEC, a->protocol);
    (void)purpose;
    *h->files += fd >= 0;
    return fd;
}

static int close_socket(void *of, int fd)
{
    struct pr_http *h = of;
    *h->files -= 1;
    return close(fd);
}

static int count_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* What libcurl opens for itself differs between its versions: it is counted, until nobody else in
 * the process has opened anything meanwhile. */
static void *multi_new(struct pr_http *h)
{
    int found = -1;
    void *multi = NULL;
    if (!h->files)
        return lib.multi_new();
    for (int tries = 0; tries < 8; tries++) {
        if (multi)
            lib.multi_free(multi);
        int before = count_files();
        multi = lib.multi_new();
        h->waking = count_files() - before;
        if (!multi || (h->waking >= 0 && h->waking == found))
            break;
        found = h->waking;
    }
    h->waking = h->waking > 0 ? h->waking : 0;
    *h->files += h->waking;
    return multi;
}

/* Lines as texts one behind the other. */
static char *split_lines(const char *lines)
{
    size_t n = strlen(lines);
    char *copy = calloc(1, n + 2);
    for (size_t i = 0; copy && i < n; i++)
        copy[i] = lines[i] == '\n' ? '\0' : lines[i];
    return copy;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int set_up(struct pr_http *h, const struct pr_http_setting *s)
{
    lib.set(h->easy, NO_SIGNAL, 1L);
    lib.set(h->easy, QUICK_EXIT, 1L); /* a name that is being looked up is not waited for */
    lib.set(h->easy, PROTOCOLS, (long)PROTOCOLS_HTTP);
    lib.set(h->easy, USER_AGENT, "proctor/" PROCTOR_VERSION);
    lib.set(h->easy, CONNECT_TIMEOUT_MS, (long)CONNECT_MOST);
    lib.set(h->easy, ERROR_BUFFER, h->said);
    lib.set(h->easy, WRITE_FUNCTION, take_body);
    lib.set(h->easy, WRITE_DATA, h);
    lib.set(h->easy, HEADER_FUNCTION, take_header);
    lib.set(h->easy, HEADER_DATA, h);
    if (h->files) {
        lib.set(h->easy, OPEN_FUNCTION, open_socket);
        lib.set(h->easy, OPEN_DATA, h);
        lib.set(h->easy, CLOSE_FUNCTION, close_socket);
        lib.set(h->easy, CLOSE_DATA, h);
    }
    lib.set(h->easy, VERIFY_PEER, s->insecure ? 0L : 1L);
    lib.set(h->easy, VERIFY_HOST, s->insecure ? 0L : 2L);
    if (s->ca)
        lib.set(h->easy, is_folder(s->ca) ? CA_FOLDER : CA_FILE, s->ca);
    if (s->certificate)
        lib.set(h->easy, CERTIFICATE, s->certificate);
    if (s->key)
        lib.set(h->easy, KEY, s->key);
    if (s->headers && !(h->headers = split_lines(s->headers)))
        return -ENOMEM;
    if (s->user && s->password) {
        lib.set(h->easy, HTTP_AUTH, (long)AUTH_BASIC);
        lib.set(h->easy, USER, s->user);
        lib.set(h->easy, PASSWORD, s->password);
    } else if (s->token && asprintf(&h->authorization, "Authorization: Bearer %s", s->token) < 0) {
        h->authorization = NULL;
        return -ENOMEM;
    }
    h->timeout = fmin(s->timeout, TIMEOUT_MOST);
    h->until = INT64_MAX;
    return 0;
}

int pr_http_new(struct pr_http **ret, const struct pr_http_setting *setting, char *why, size_t size)
{
    pthread_once(&once, load);
    if (!loaded) {
        snprintf(why, size,
                 *missing ? "%.100s (package libcurl4 of Debian)" : "libcurl does not start",
                 missing);
        return -ENOSYS;
    }
    struct pr_http *h = calloc(1, sizeof *h);
    if (h) {
        h->files = setting->files;
        h->easy = lib.easy_new();
        h->multi = multi_new(h);
    }
    if (h && h->easy && h->multi && set_up(h, setting) == 0) {
        *ret = h;
        return 0;
    }
    pr_http_free(h);
    snprintf(why, size, "out of memory");
    return -ENOMEM;
}

void pr_http_free(struct pr_http *h)
{
    if (!h)
        return;
    if (h->easy)
        lib.easy_free(h->easy);
    if (h->multi)
        lib.multi_free(h->multi);
    if (h->multi && h->files)
        *h->files -= h->waking;
    if (h->authorization)
        explicit_bzero(h->authorization, strlen(h->authorization));
    free(h->authorization);
    for (char *line = h->headers, *next; line && *line; line = next) {
        next = line + strlen(line) + 1;
        explicit_bzero(line, strlen(line));
    }
    free(h->headers);
    free(h);
}

void pr_http_until(struct pr_http *h, int64_t boot)
{
    h->until = boot;
}

bool pr_http_pause(struct pr_http *h, double seconds)
{
    int64_t until = pr_clock_boot() + (int64_t)(seconds * (double)NS_PER_S);
    struct timespec slice = {0, SLICE * 1000000L};
    while (pr_clock_boot() < until && pr_clock_boot() < h->until)
        nanosleep(&slice, NULL);
    return pr_clock_boot() < h->until;
}

/* --- a request -------------------------------------------------------------------------------- */

/* curl's result, or FAILED_TIME where the time was over before there was one. */
static int go_through(struct pr_http *h, int64_t until)
{
    int running = 1, left, result = FAILED_TIME;
    struct message *m;
    while (running) {
        if (lib.perform(h->multi, &running) != 0)
            break;
        int64_t at = pr_clock_boot();
        if (running && (at >= until || at >= h->until))
            break;
        if (running)
            lib.wait(h->multi, NULL, 0, SLICE, NULL);
    }
    while ((m = lib.read(h->multi, &left)))
        if (m->what == DONE)
            result = m->data.result;
    return result;
}

static int explain(struct pr_http *h, int result)
{
    static const int tls[] = {35, 51, 53, 54, 58, 59, 60, 66, 77, 80, 82, 83, 90, 91, 98};
    char *why = h->answer->why;
    const size_t size = sizeof h->answer->why;
    if (h->too_long)
        snprintf(why, size, "its answer is too long");
    else if (result == FAILED_TIME)
        snprintf(why, size, "it does not answer in time");
    else
        snprintf(why, size, "%.120s%s", *h->said ? h->said : lib.words(result),
                 result == FAILED_TLS ? "; does it speak http://?" : "");
    for (size_t i = 0; i < sizeof tls / sizeof *tls; i++)
        if (result == tls[i])
            return -EPROTO;
    return -EAGAIN;
}

/* Memory that is out costs a header, and the request its answer. */
static void add_header(void **list, const char *line)
{
    void *more = line ? lib.list_add(*list, line) : NULL;
    *list = more ? more : *list;
}

static void *headers_of(const struct pr_http *h, const struct pr_http_request *request)
{
    char content[80], accept[80];
    const char *type = request->type ? request->type : "application/json";
    void *list = NULL;
    snprintf(content, sizeof content, "Content-Type: %s", type);
    snprintf(accept, sizeof accept, "Accept: %s", type);
    add_header(&list, content);
    add_header(&list, accept);
    add_header(&list, "Expect:"); /* nobody is asked whether he wants it */
    add_header(&list, h->authorization);
    add_header(&list, request->header);
    for (const char *line = h->headers; line && *line; line += strlen(line) + 1)
        add_header(&list, line);
    return list;
}

int pr_http_send(struct pr_http *h, const struct pr_http_request *request,
                 struct pr_http_answer *answer)
{
    long status = 0;
    int64_t until = pr_clock_boot() + (int64_t)(h->timeout * (double)NS_PER_S);
    void *headers = headers_of(h, request);
    h->answer = answer;
    h->too_long = false;
    h->most = request->most ? request->most : HTTP_ANSWER_MOST;
    h->said[0] = '\0';
    pr_buf_reset(&answer->body);
    answer->status = 0;
    answer->retry_after = NAN;
    answer->why[0] = '\0';
    lib.set(h->easy, URL, request->url);
    lib.set(h->easy, HEADERS, headers);
    lib.set(h->easy, METHOD, request->put ? "PUT" : NULL);
    if (request->body) {
        lib.set(h->easy, BODY_SIZE, (int64_t)request->len);
        lib.set(h->easy, BODY, request->body);
    } else {
        lib.set(h->easy, HTTP_GET, 1L);
    }
    lib.add(h->multi, h->easy);
    int result = go_through(h, until);
    lib.get(h->easy, STATUS, &status);
    lib.take_off(h->multi, h->easy);
    lib.set(h->easy, HEADERS, NULL);
    lib.list_free(headers);
    answer->status = (int)status;
    return result == 0 ? 0 : explain(h, result);
}

/* --- texts ------------------------------------------------------------------------------------ */

void pr_http_escape(struct pr_buf *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (isalnum(c) || strchr("-._~", c))
            pr_buf_char(out, (char)c);
        else
            pr_buf_printf(out, "%%%02X", c);
    }
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", whatever the locale. */
static bool parse_date(const char *text, time_t *ret)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm tm = {0};
    char name[4] = "";
    if (sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &tm.tm_mday, name, &tm.tm_year,
               &tm.tm_hour, &tm.tm_min, &tm.tm_sec) != 6)
        return false;
    const char *found = strstr(months, name);
    if (!found || strlen(name) != 3 || (found - months) % 3)
        return false;
    tm.tm_mon = (int)(found - months) / 3;
    tm.tm_year -= 1900;
    *ret = timegm(&tm);
    return true;
}

double pr_http_retry_after(const char *text, int64_t wall_ns)
{
    char word[64];
    double seconds;
    time_t when;
    while (*text == ' ' || *text == '\t')
        text++;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(text, "\r\n"), text);
    if (parse_date(word, &when))
        seconds = fmax(0, (double)when - pr_seconds(wall_ns));
    else if (!pr_units_parse_number(word, &seconds))
        return NAN;
    return fmin(seconds, RETRY_MOST);
}
