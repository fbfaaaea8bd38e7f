/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <proctor/proctor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct proctor_monitor *monitor_of(pid_t pid, unsigned flags)
{
    struct proctor_monitor *m = NULL;
    struct proctor_error err;
    assert_int_equal(proctor_monitor_new(&m, &err), 0);
    assert_int_equal(proctor_monitor_watch_pid(m, pid, flags, &err), 0);
    return m;
}

static void set(struct proctor_monitor *m, const char *option, const char *value)
{
    struct proctor_error err = {0};
    if (proctor_monitor_set(m, option, value, &err) < 0)
        fail_msg("%s", err.message);
}

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void burn(double seconds)
{
    for (double until = cpu_now() + seconds; cpu_now() < until;)
        ;
}

static int open_descriptors(void)
{
    int count = -3; /* ".", ".." and the directory itself */
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* A number of the summary, by its key. */
static double number_of(struct proctor_monitor *m, const char *key)
{
    char quoted[64];
    const char *json = proctor_monitor_summary_json(m);
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = json ? strstr(json, quoted) : NULL;
    if (!at)
        fail_msg("no %s in %s", key, json ? json : "no summary");
    return strtod(at + strlen(quoted), NULL);
}

/* A child that does not outlive a test which fails. */
static pid_t fork_mortal(void)
{
    pid_t pid = fork();
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    assert_true(pid >= 0);
    return pid;
}

static pid_t start_sleeper(void)
{
    pid_t pid = fork_mortal();
    while (pid == 0)
        pause();
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* --- one sample at a time --------------------------------------------------------------------- */

struct seen {
    int count;
    double threads, fds, cpu, gpu_code, elapsed, procs;
    const char *mark;
};

static void look(const struct proctor_snapshot *s, void *data)
{
    struct seen *seen = data;
    double v = 0;
    seen->count++;
    assert_int_equal(proctor_snapshot_value(s, "threads", &seen->threads), 0);
    assert_int_equal(proctor_snapshot_value(s, "fds", &seen->fds), 0);
    assert_int_equal(proctor_snapshot_value(s, "procs", &seen->procs), 0);
    assert_int_equal(proctor_snapshot_value(s, "cpu.time", &seen->cpu), 0);
    assert_int_equal(proctor_snapshot_value(s, "gpu.usage", &v), -ENODATA);
    assert_int_equal(proctor_snapshot_value(s, "no.such", &v), -ENOENT);
    seen->elapsed = proctor_snapshot_elapsed(s);
    seen->mark = proctor_snapshot_mark(s, "ctx.voluntary");
    assert_true(proctor_snapshot_time(s) > 0);
    assert_true(proctor_snapshot_interval(s) >= 0);
}

static void collects_without_a_thread(void **state)
{
    (void)state;
    int fds = open_descriptors();
    struct seen seen = {0};
    struct proctor_monitor *m = monitor_of(getpid(), 0);
    assert_int_equal(proctor_monitor_on_sample(m, look, &seen), 0);
    assert_int_equal(proctor_monitor_collect(m, NULL), 0);
    burn(0.05);
    assert_int_equal(proctor_monitor_collect(m, NULL), 0);
    assert_int_equal(seen.count, 2);
    assert_true(seen.threads == 1);
    assert_true(seen.fds == fds);
    assert_true(seen.procs == 1);
    assert_true(seen.cpu >= 0.045 && seen.cpu < 0.2);
    assert_string_equal(seen.mark, "lower bound");
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_int_equal(proctor_monitor_collect(m, NULL), -EBUSY);
    proctor_monitor_free(m);
    assert_int_equal(open_descriptors(), fds);
}

/* --- a thread of its own ---------------------------------------------------------------------- */

static void our_thread_is_not_in_the_measurement(void **state)
{
    (void)state;
    char path[] = "/tmp/proctor-api-XXXXXX";
    close(mkstemp(path));
    int fds = open_descriptors();
    struct seen seen = {0};
    struct proctor_monitor *m = monitor_of(getpid(), 0);
    set(m, "interval", "5ms");
    set(m, "csv", path);
    proctor_monitor_on_sample(m, look, &seen);
    double before = cpu_now();
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    assert_int_equal(proctor_monitor_start(m, NULL), -EBUSY);
    usleep(400000);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    double all = cpu_now() - before, cpu = -1;
    assert_true(seen.count > 20);
    assert_true(seen.threads == 1);
    assert_true(seen.fds == fds);
    assert_int_equal(proctor_monitor_total(m, "cpu.time", &cpu), 0);
    /* We did nothing but sample: nearly all of that was the monitor's. */
    assert_true(cpu < all / 2);
    assert_int_equal(proctor_monitor_total(m, "gpu.mem", &cpu), -ENODATA);
    assert_int_equal(proctor_monitor_total(m, "nothing", &cpu), -ENOENT);
    proctor_monitor_free(m);
    unlink(path);
}

/* A port that is free just now, and a socket to connect to it with. */
static struct sockaddr_in free_address(int *ret_client)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    close(fd);
    *ret_client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return at;
}

static void our_server_is_not_in_the_measurement(void **state)
{
    (void)state;
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    int client;
    char port[16], answer[16] = "";
    struct sockaddr_in at = free_address(&client);
    int fds = open_descriptors();
    struct seen seen = {0};
    struct proctor_monitor *m = monitor_of(getpid(), 0);
    snprintf(port, sizeof port, "%d", ntohs(at.sin_port));
    set(m, "interval", "20ms");
    set(m, "prometheus", port);
    proctor_monitor_on_sample(m, look, &seen);
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(write(client, request, sizeof request - 1), sizeof request - 1);
    assert_int_equal(recv(client, answer, 15, MSG_WAITALL), 15);
    assert_string_equal(answer, "HTTP/1.1 200 OK");
    usleep(200000);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_true(seen.threads == 1);
    assert_true(seen.fds == fds);
    proctor_monitor_free(m);
    close(client);
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(client);
}

/* Takes what is posted, and says so in *requests. */
static void serve_posts(int listening, _Atomic int *requests)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    static char text[1 << 20];
    for (;;) {
        int client = accept(listening, NULL, NULL);
        size_t n = 0;
        ssize_t got;
        while ((got = read(client, text + n, sizeof text - 1 - n)) > 0) {
            n += (size_t)got;
            text[n] = '\0';
            const char *length = strstr(text, "Content-Length: "), *body = strstr(text, "\r\n\r\n");
            if (!body || !length || (size_t)(text + n - body - 4) < strtoul(length + 16, NULL, 10))
                continue;
            n = 0;
            *requests += 1;
            if (write(client, answer, sizeof answer - 1) < 0)
                break;
        }
        close(client);
    }
}

struct steady {
    int fds, samples, other;
};

static void look_for_ours(const struct proctor_snapshot *s, void *data)
{
    struct steady *steady = data;
    double threads = 0, fds = 0;
    if (proctor_snapshot_value(s, "threads", &threads) < 0 ||
        proctor_snapshot_value(s, "fds", &fds) < 0)
        return;
    steady->samples++;
    steady->other += threads != 1 || fds != steady->fds;
}

/* A thread, its connection and the file that it reads; for moments there is one more or less than
 * it has just counted. */
static void our_publisher_is_not_in_the_measurement(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    char folder[] = "/tmp/proctor-api-XXXXXX", path[64], url[64];
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    _Atomic int *requests =
        mmap(NULL, sizeof *requests, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(bind(listening, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(listening, 5), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&at, &size), 0);
    pid_t server = fork_mortal();
    if (server == 0)
        serve_posts(listening, requests);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/run.proctor", folder);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(at.sin_port));
    struct steady steady = {.fds = open_descriptors()};
    struct proctor_monitor *m = monitor_of(getpid(), PROCTOR_NO_CHILDREN);
    set(m, "interval", "20ms");
    set(m, "output", path);
    set(m, "otlp", url);
    proctor_monitor_on_sample(m, look_for_ours, &steady);
    double before = cpu_now(), cpu = -1;
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    for (int i = 0; i < 400 && *requests == 0; i++)
        usleep(10000);
    usleep(300000); /* with a connection that is open */
    int in_mid_run = *requests;
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_true(in_mid_run > 0 && *requests > in_mid_run);
    if (steady.samples <= 50 || steady.other > steady.samples / 20)
        fail_msg("%d samples, %d of them with threads or descriptors of ours", steady.samples,
                 steady.other);
    assert_int_equal(proctor_monitor_total(m, "cpu.time", &cpu), 0);
    assert_true(cpu < (cpu_now() - before) / 2);
    assert_true(number_of(m, "sent") == number_of(m, "taken"));
    proctor_monitor_free(m);
    assert_int_equal(open_descriptors(), steady.fds);
    end(server);
    close(listening);
    munmap((void *)requests, sizeof *requests);
    unlink(path);
    rmdir(folder);
}

static void children_count(void **state)
{
    (void)state;
    struct proctor_monitor *m = monitor_of(getpid(), 0);
    struct rusage children;
    double cpu = 0, peak = 0;
    set(m, "interval", "20ms");
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            burn(0.01);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    getrusage(RUSAGE_CHILDREN, &children);
    double truth = (double)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
                   (double)(children.ru_utime.tv_usec + children.ru_stime.tv_usec) * 1e-6;
    assert_int_equal(proctor_monitor_total(m, "cpu.time", &cpu), 0);
    /* Reaped children's times are in ticks of 10 ms, user and system apart. */
    assert_true(cpu > truth - 0.025 && cpu < truth + 0.1);
    assert_int_equal(proctor_monitor_peak(m, "mem.rss", &peak), 0);
    assert_true(peak > 500000);
    const char *json = proctor_monitor_summary_json(m);
    assert_non_null(json);
    assert_non_null(strstr(json, "\"cpu.time\""));
    assert_non_null(strstr(json, "\"left_running\": []"));
    proctor_monitor_free(m);
}

static void a_process_alone(void **state)
{
    (void)state;
    struct seen seen = {0};
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    struct proctor_monitor *m = monitor_of(getpid(), PROCTOR_NO_CHILDREN);
    proctor_monitor_on_sample(m, look, &seen);
    assert_int_equal(proctor_monitor_collect(m, NULL), 0);
    assert_true(seen.procs == 1);
    proctor_monitor_free(m);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* --- groups, names, the machine --------------------------------------------------------------- */

static struct proctor_monitor *new_monitor(void)
{
    struct proctor_monitor *m = NULL;
    assert_int_equal(proctor_monitor_new(&m, NULL), 0);
    return m;
}

/* A child in the group of `leader`, or in one of its own. It is called `name` and burns so much. */
static pid_t start_burner(pid_t leader, const char *name, double seconds)
{
    pid_t pid = fork_mortal();
    if (pid == 0) {
        setpgid(0, leader);
        prctl(PR_SET_NAME, name);
        burn(seconds);
        for (;;)
            pause();
    }
    setpgid(pid, leader);
    return pid;
}

static double wall_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* All that a process has used, by its own clock. */
static double cpu_of(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* It has done its work when its clock stands still. */
static void wait_until_idle(pid_t pid, double seconds)
{
    while (cpu_of(pid) < seconds)
        usleep(10000);
    usleep(50000);
}

static void a_group(void **state)
{
    (void)state;
    struct proctor_error err = {0};
    double cpu = 0, procs = 0;
    struct proctor_monitor *m = new_monitor();
    pid_t idle = start_burner(0, "idle", 0);
    assert_int_equal(proctor_monitor_watch_group(m, idle, &err), 0);
    set(m, "interval", "10ms");
    double began = wall_now();
    assert_int_equal(proctor_monitor_start(m, &err), 0);
    usleep(50000);
    pid_t busy = start_burner(idle, "busy", 0.2), other = start_burner(0, "other", 0.2);
    wait_until_idle(busy, 0.2);
    wait_until_idle(other, 0.2);
    double truth = cpu_of(busy);
    end(busy);
    end(idle);
    usleep(500000);
    double watched = wall_now() - began;
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
    assert_true(number_of(m, "duration") < watched - 0.3); /* it ended when the group was empty */
    assert_int_equal(proctor_monitor_total(m, "cpu.time", &cpu), 0);
    if (cpu < 0.95 * truth || cpu > 1.05 * truth + 0.01)
        fail_msg("the group has used %g s and not %g s", cpu, truth);
    assert_int_equal(proctor_monitor_peak(m, "procs", &procs), 0);
    assert_true(procs == 2);
    char target[64];
    snprintf(target, sizeof target, "\"target\": \"group %d\"", (int)idle);
    assert_non_null(strstr(proctor_monitor_summary_json(m), target));
    assert_int_equal(proctor_monitor_watch_group(m, other, &err), -EBUSY);
    proctor_monitor_free(m);
    end(other);
}

static void no_such_group(void **state)
{
    (void)state;
    struct proctor_error err = {0};
    struct proctor_monitor *m = new_monitor();
    static const pid_t none[] = {INT_MAX, 0, -1};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(proctor_monitor_watch_group(m, none[i], &err), -ESRCH);
        assert_int_equal(err.code, ESRCH);
        assert_non_null(strstr(err.message, "process group"));
        assert_int_equal(proctor_monitor_watch_group(m, none[i], NULL), -ESRCH);
    }
    assert_int_equal(proctor_monitor_start(m, &err), -EINVAL); /* it watches nothing still */
    proctor_monitor_free(m);
}

static void names(void **state)
{
    (void)state;
    struct proctor_error err = {0};
    char red[16], blue[16], rule[32];
    double cpu = 0;
    struct proctor_monitor *m = new_monitor();
    snprintf(red, sizeof red, "red%d", (int)getpid());
    snprintf(blue, sizeof blue, "blue%d", (int)getpid());
    snprintf(rule, sizeof rule, "red=^%s$", red);
    assert_int_equal(proctor_monitor_watch_match(m, "(", &err), -EINVAL);
    assert_non_null(strstr(err.message, "'('"));
    assert_int_equal(proctor_monitor_watch_match(m, rule, &err), 0);
    assert_int_equal(proctor_monitor_watch_match(m, blue, &err), 0); /* another one */
    set(m, "interval", "10ms");
    assert_int_equal(proctor_monitor_start(m, &err), 0); /* nobody has these names */
    usleep(50000);
    pid_t a = start_burner(0, red, 0.2), b = start_burner(0, blue, 0.1);
    wait_until_idle(a, 0.2);
    wait_until_idle(b, 0.1);
    double truth = cpu_of(a) + cpu_of(b);
    end(a);
    end(b);
    usleep(50000);
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
    assert_int_equal(proctor_monitor_total(m, "cpu.time", &cpu), 0);
    /* Who is found under its first name counts from its second: a sample's worth. */
    if (cpu < truth - 0.05 || cpu > truth + 0.02)
        fail_msg("they have used %g s and not %g s", cpu, truth);
    const char *json = proctor_monitor_summary_json(m);
    const char *matches = strstr(json, "\"matches\": [");
    assert_non_null(matches);
    const char *first = strstr(matches, "\"name\": \"red\""), *second = strstr(matches, blue);
    assert_true(first && second && first < second);
    assert_non_null(strstr(first, "\"instances\": 1"));
    assert_non_null(strstr(second, "\"instances\": 1"));
    proctor_monitor_free(m);
}

static void two_rules_of_one_name(void **state)
{
    (void)state;
    struct proctor_error err = {0};
    struct proctor_monitor *m = new_monitor();
    assert_int_equal(proctor_monitor_watch_match(m, "a=x", &err), 0);
    assert_int_equal(proctor_monitor_watch_match(m, "a=y", &err), 0);
    assert_int_equal(proctor_monitor_start(m, &err), -EINVAL);
    assert_non_null(strstr(err.message, "'a'"));
    proctor_monitor_free(m);
}

/* Names inside of a tree: the last that was watched is the target. */
static void names_in_a_tree(void **state)
{
    (void)state;
    struct proctor_error err = {0};
    struct proctor_monitor *m = monitor_of(getpid(), 0);
    set(m, "match", "^inner$");
    set(m, "interval", "10ms");
    pid_t pid = start_burner(0, "inner", 0.1);
    wait_until_idle(pid, 0.1);
    assert_int_equal(proctor_monitor_collect(m, &err), 0);
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
    assert_true(number_of(m, "instances") == 1);
    proctor_monitor_free(m);
    end(pid);
}

static double memory_total(void)
{
    double kb = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "MemTotal: %lf", &kb), 1);
    fclose(f);
    return kb * 1024;
}

static void look_at_machine(const struct proctor_snapshot *s, void *data)
{
    double v, *total = data;
    assert_int_equal(proctor_snapshot_value(s, "system.mem.total", total), 0);
    assert_int_equal(proctor_snapshot_value(s, "cpu.time", &v), -ENODATA);
}

static void the_machine(void **state)
{
    (void)state;
    struct proctor_error err = {0};
    double seen = 0, cpu = 0, mine = cpu_now();
    struct proctor_monitor *m = new_monitor();
    assert_int_equal(proctor_monitor_watch_system(m, &err), 0);
    assert_int_equal(proctor_monitor_on_sample(m, look_at_machine, &seen), 0);
    assert_int_equal(proctor_monitor_collect(m, &err), 0);
    burn(0.3);
    mine = cpu_now() - mine;
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
    assert_int_equal(proctor_monitor_total(m, "system.cpu.time", &cpu), 0);
    assert_true(cpu >= mine - 0.05);
    assert_true(seen == memory_total());
    assert_int_equal(proctor_monitor_total(m, "cpu.time", &cpu), -ENODATA);
    assert_int_equal(proctor_monitor_watch_system(m, &err), -EBUSY);
    assert_non_null(strstr(proctor_monitor_summary_json(m), "\"target\": \"machine\""));
    proctor_monitor_free(m);
}

/* --- when it ends, when it begins ------------------------------------------------------------- */

/* Nobody has to stop it in time: what comes after the end is not in the record. */
static void duration_ends_the_record(void **state)
{
    (void)state;
    struct proctor_monitor *m = monitor_of(getpid(), 0);
    set(m, "interval", "20ms");
    set(m, "duration", "200ms");
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    usleep(1000000);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_true(number_of(m, "duration") >= 0.2 && number_of(m, "duration") < 0.6);
    proctor_monitor_free(m);
}

/* An interval longer than the duration does not make it longer. */
static void duration_does_not_wait_for_a_sample(void **state)
{
    (void)state;
    struct proctor_monitor *m = monitor_of(getpid(), 0);
    set(m, "interval", "30s");
    set(m, "duration", "200ms");
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    usleep(1000000);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_true(number_of(m, "duration") >= 0.2 && number_of(m, "duration") < 0.6);
    proctor_monitor_free(m);
}

static void the_end_of_the_process_ends_the_record(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        usleep(200000);
        _exit(0);
    }
    struct proctor_monitor *m = monitor_of(pid, 0);
    set(m, "interval", "20ms");
    set(m, "duration", "30s");
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    usleep(1000000);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_true(number_of(m, "duration") >= 0.15 && number_of(m, "duration") < 0.6);
    proctor_monitor_free(m);
    waitpid(pid, NULL, 0);
}

/* What nobody wanted to be taken is not missed. */
static void a_pause_before_the_start_is_not_missed(void **state)
{
    (void)state;
    struct proctor_monitor *m = monitor_of(getpid(), 0);
    set(m, "interval", "20ms");
    assert_int_equal(proctor_monitor_collect(m, NULL), 0);
    usleep(300000);
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    usleep(10000);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_true(number_of(m, "missed") == 0);
    proctor_monitor_free(m);
}

/* --- a guest in the process ------------------------------------------------------------------- */

/* A quarter of the limit, whatever there is to read. */
static void holds_few_descriptors(void **state)
{
    (void)state;
    enum { CHILDREN = 20 };
    pid_t child[CHILDREN];
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 40;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < CHILDREN; i++)
        child[i] = start_sleeper();
    int fds = open_descriptors(), most = 0;
    struct seen seen = {0};
    struct proctor_monitor *m = monitor_of(getpid(), 0);
    set(m, "interval", "5ms");
    proctor_monitor_on_sample(m, look, &seen);
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    for (int i = 0; i < 100; i++) {
        int held = open_descriptors() - fds;
        most = held > most ? held : most;
        usleep(3000);
    }
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    proctor_monitor_free(m);
    for (int i = 0; i < CHILDREN; i++)
        end(child[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(seen.procs == CHILDREN + 1);
    if (most > 10)
        fail_msg("%d descriptors of 40 are held", most);
    assert_int_equal(open_descriptors(), fds);
}

/* --- what goes wrong -------------------------------------------------------------------------- */

static void errors_say_what(void **state)
{
    (void)state;
    struct proctor_monitor *m = NULL;
    struct proctor_error err = {0};
    assert_int_equal(proctor_monitor_new(&m, NULL), 0);
    assert_int_equal(proctor_monitor_start(m, &err), -EINVAL);
    assert_int_equal(proctor_monitor_watch_pid(m, INT_MAX, 0, &err), -ESRCH);
    assert_int_equal(err.code, ESRCH);
    assert_non_null(strstr(err.message, "2147483647"));
    assert_int_equal(proctor_monitor_set(m, "intervall", "1s", &err), -EINVAL);
    assert_non_null(strstr(err.message, "intervall"));
    assert_int_equal(proctor_monitor_set(m, "interval", "soon", &err), -EINVAL);
    assert_non_null(strstr(err.message, "soon"));
    assert_int_equal(proctor_monitor_set(m, "csv", "/no/such/place", &err), 0);
    assert_int_equal(proctor_monitor_watch_pid(m, getpid(), 0, &err), 0);
    assert_int_equal(proctor_monitor_start(m, &err), -ENOENT);
    assert_non_null(strstr(err.message, "/no/such/place"));
    assert_null(proctor_monitor_summary_json(m));
    proctor_monitor_free(m);
    proctor_monitor_free(NULL);
}

static void a_forked_handle_is_dead(void **state)
{
    (void)state;
    struct proctor_monitor *m = monitor_of(getpid(), 0);
    int status;
    double v;
    set(m, "interval", "5ms");
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    usleep(20000);
    pid_t pid = fork();
    if (pid == 0) {
        struct proctor_error err;
        int fds = open_descriptors();
        bool dead = proctor_monitor_stop(m, &err) == -ECHILD &&
                    proctor_monitor_collect(m, &err) == -ECHILD &&
                    proctor_monitor_total(m, "cpu.time", &v) == -ECHILD &&
                    proctor_monitor_on_sample(m, look, NULL) == -ECHILD &&
                    proctor_monitor_set(m, "interval", "1s", &err) == -ECHILD;
        proctor_monitor_free(m);
        _exit(dead && open_descriptors() == fds ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_int_equal(proctor_monitor_total(m, "cpu.time", &v), 0);
    proctor_monitor_free(m);
}

/* Starts short children without end, so that the set of members moves all the time. */
static pid_t start_brood(void)
{
    pid_t pid = fork_mortal();
    while (pid == 0) {
        for (int i = 0; i < 20; i++)
            if (fork() == 0) {
                usleep(500);
                _exit(0);
            }
        while (wait(NULL) > 0)
            ;
    }
    return pid;
}

/* Asks all the time, so that a fork finds it waiting for an answer. */
static void *ask_until_it_ends(void *data)
{
    while (proctor_monitor_mark(data, "m", NULL, NULL) == 0)
        ;
    return NULL;
}

/* A fork may copy the sampling thread's data in the middle of whatever it does to them, and those
 * of the threads that wait for it. */
static void a_forked_handle_can_be_freed_at_any_moment(void **state)
{
    (void)state;
    pid_t brood = start_brood();
    struct proctor_monitor *m = monitor_of(getpid(), 0);
    set(m, "interval", "1ms");
    set(m, "budget", "1000%");
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    pthread_t asker;
    assert_int_equal(pthread_create(&asker, NULL, ask_until_it_ends, m), 0);
    int status = 0, freed = 0;
    for (; freed < 2000 && status == 0; freed++) {
        pid_t pid = fork_mortal();
        if (pid == 0) {
            alarm(10); /* stuck is as bad as dead */
            proctor_monitor_free(m);
            free(malloc(100)); /* the heap is in order */
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
    end(brood);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    pthread_join(asker, NULL);
    proctor_monitor_free(m);
    if (status != 0)
        fail_msg("child %d ended with status %#x", freed, (unsigned)status);
}

static void ends_with_its_process(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        burn(0.05);
        _exit(0);
    }
    struct proctor_monitor *m = monitor_of(pid, 0);
    double cpu = 0;
    set(m, "interval", "10ms");
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    usleep(200000);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_int_equal(proctor_monitor_total(m, "cpu.time", &cpu), 0);
    assert_true(cpu > 0.02 && cpu < 0.1);
    assert_non_null(strstr(proctor_monitor_summary_json(m), "\"complete\": false"));
    proctor_monitor_free(m);
    waitpid(pid, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collects_without_a_thread),
        cmocka_unit_test(our_thread_is_not_in_the_measurement),
        cmocka_unit_test(our_server_is_not_in_the_measurement),
        cmocka_unit_test(our_publisher_is_not_in_the_measurement),
        cmocka_unit_test(children_count),
        cmocka_unit_test(a_process_alone),
        cmocka_unit_test(a_group),
        cmocka_unit_test(no_such_group),
        cmocka_unit_test(names),
        cmocka_unit_test(two_rules_of_one_name),
        cmocka_unit_test(names_in_a_tree),
        cmocka_unit_test(the_machine),
        cmocka_unit_test(duration_ends_the_record),
        cmocka_unit_test(duration_does_not_wait_for_a_sample),
        cmocka_unit_test(the_end_of_the_process_ends_the_record),
        cmocka_unit_test(a_pause_before_the_start_is_not_missed),
        cmocka_unit_test(holds_few_descriptors),
        cmocka_unit_test(errors_say_what),
        cmocka_unit_test(a_forked_handle_is_dead),
        cmocka_unit_test(a_forked_handle_can_be_freed_at_any_moment),
        cmocka_unit_test(ends_with_its_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
