/* SPDX-License-Identifier: Apache-2.0 */
/* odd KIND ARG...: a process that is not as others are.
 *
 *   name NAME SECONDS        calls itself NAME, which may have any bytes, says "ready", sleeps
 *   leave NAME SECONDS       the same in a child that is left running; ends when it is ready
 *   crowd COUNT              COUNT children at once, which sleep until it gets SIGUSR1
 *   threads COUNT US         COUNT threads at once, each burns US microseconds; all end together
 *   exec PROGRAM             runs it with an empty argv[0]
 *
 * crowd and threads end with "cpu SECONDS", their own and their children's; crowd begins with
 * "limit N", how many descriptors it may have. Linked statically: five thousand of it are small. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long amount;
static pthread_barrier_t all_there, all_done, all_seen;

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static double used(int who)
{
    struct rusage u;
    getrusage(who, &u);
    return seconds(u.ru_utime) + seconds(u.ru_stime);
}

static void burn(clockid_t clock, long microseconds)
{
    struct timespec t;
    volatile unsigned long sink = 0;
    do {
        for (int i = 0; i < 1000; i++)
            sink += (unsigned long)i;
        clock_gettime(clock, &t);
    } while (t.tv_sec * 1000000 + t.tv_nsec / 1000 < microseconds);
}

static void ready(void)
{
    puts("ready");
    fflush(stdout);
}

static int name(const char *text, const char *time)
{
    prctl(PR_SET_NAME, text);
    ready();
    usleep((useconds_t)(atof(time) * 1e6));
    return 0;
}

static int leave(const char *text, const char *time)
{
    int line[2];
    char byte;
    if (pipe(line) < 0)
        return 97;
    if (fork() == 0) {
        prctl(PR_SET_NAME, text);
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        if (write(line[1], "x", 1) != 1)
            _exit(97);
        usleep((useconds_t)(atof(time) * 1e6));
        _exit(0);
    }
    if (read(line[0], &byte, 1) != 1)
        return 97;
    usleep(300000); /* long enough for a sample or several */
    return 0;
}

/* Children end with the pipe. */
static int crowd(long count)
{
    int line[2];
    char byte;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    printf("limit %lu %lu\n", (unsigned long)limit.rlim_cur, (unsigned long)limit.rlim_max);
    fflush(stdout);
    if (pipe(line) < 0)
        return 97;
    for (long i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return 98;
        if (pid == 0) {
            close(line[1]);
            _exit(read(line[0], &byte, 1) == 0 ? 0 : 97);
        }
    }
    close(line[0]);
    ready();
    sigset_t set;
    int sig;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigwait(&set, &sig);
    close(line[1]);
    while (wait(NULL) > 0)
        ;
    printf("cpu %.6f\n", used(RUSAGE_SELF) + used(RUSAGE_CHILDREN));
    return 3;
}

static void *one_thread(void *data)
{
    pthread_barrier_wait(&all_there);
    burn(CLOCK_THREAD_CPUTIME_ID, amount);
    pthread_barrier_wait(&all_done);
    pthread_barrier_wait(&all_seen);
    return data;
}

static int threads(long count)
{
    pthread_t *thread = calloc((size_t)count, sizeof *thread);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&all_there, NULL, (unsigned)count);
    pthread_barrier_init(&all_done, NULL, (unsigned)count + 1);
    pthread_barrier_init(&all_seen, NULL, (unsigned)count + 1);
    for (long i = 0; i < count; i++)
        if (pthread_create(&thread[i], &small, one_thread, NULL) != 0)
            return 98;
    pthread_barrier_wait(&all_done);
    usleep(500000); /* for a sample while all are there */
    pthread_barrier_wait(&all_seen);
    for (long i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    printf("cpu %.6f\n", used(RUSAGE_SELF));
    return 0;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 2 ? argv[1] : "";
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (strcmp(kind, "name") == 0)
        return name(argv[2], argc > 3 ? argv[3] : "77");
    if (strcmp(kind, "leave") == 0)
        return leave(argv[2], argc > 3 ? argv[3] : "77");
    if (strcmp(kind, "crowd") == 0)
        return crowd(atol(argv[2]));
    if (strcmp(kind, "threads") == 0 && argc > 3) {
        amount = atol(argv[3]);
        return threads(atol(argv[2]));
    }
    if (strcmp(kind, "exec") == 0) {
        char *words[] = {"", NULL};
        execv(argv[2], words);
        return 99;
    }
    return 96;
}
