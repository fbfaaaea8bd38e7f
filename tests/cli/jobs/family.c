/* SPDX-License-Identifier: Apache-2.0 */
/* family KIND COUNT AMOUNT: a job whose use is known.
 *
 *   waited   COUNT children one after another, each burns AMOUNT us of CPU
 *   together the same, all at once
 *   ignored  COUNT children at once, SIGCHLD ignored: nobody waits
 *   unseen   the same one after another, then a pause of half a second
 *   threads  COUNT threads, each forks a child that burns AMOUNT us, and waits for it
 *   setsid   COUNT children in sessions of their own
 *   orphans  COUNT grandchildren whose parents have ended
 *   write    COUNT children, each writes AMOUNT bytes to /dev/null
 *   memory   COUNT children one after another, each touches AMOUNT KiB
 *   parent   one orphan, says the pid of its parent, AMOUNT ignored
 *
 * It ends with "cpu SECONDS": its own, its children's, and what orphans said of themselves; or
 * "wrote BYTES". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long count, amount;
static double *said; /* shared: what each unwaited member used */

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

static void burn(void)
{
    struct timespec t;
    volatile unsigned long sink = 0;
    do {
        for (int i = 0; i < 1000; i++)
            sink += (unsigned long)i;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    } while (t.tv_sec * 1000000 + t.tv_nsec / 1000 < amount);
}

__attribute__((noreturn)) static void burn_and_say(long i)
{
    burn();
    said[i] = used(RUSAGE_SELF);
    _exit(0);
}

static void wait_for(pid_t pid)
{
    if (pid < 0)
        exit(97);
    waitpid(pid, NULL, 0);
}

static void children(int together, int own_session)
{
    for (long i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (own_session)
                setsid();
            burn();
            _exit(0);
        }
        if (!together)
            wait_for(pid);
    }
    while (together && wait(NULL) > 0)
        ;
}

/* A pipe that every unwaited member holds: its end is theirs. */
static void unwaited(int orphans, long from, long to)
{
    int alive[2];
    char byte;
    if (pipe(alive) < 0)
        exit(97);
    for (long i = from; i < to; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            close(alive[0]);
            if (orphans && fork() != 0)
                _exit(0);
            burn_and_say(i);
        }
        if (orphans)
            wait_for(pid);
    }
    close(alive[1]);
    if (read(alive[0], &byte, 1) != 0)
        exit(97);
    close(alive[0]);
}

static void unseen(void)
{
    for (long i = 0; i < count; i++)
        unwaited(0, i, i + 1);
    usleep(500000);
}

static void *one_thread(void *data)
{
    pid_t pid = fork();
    if (pid == 0) {
        burn();
        _exit(0);
    }
    wait_for(pid);
    return data;
}

static void threads(void)
{
    pthread_t *thread = calloc((size_t)count, sizeof *thread);
    for (long i = 0; i < count; i++)
        pthread_create(&thread[i], NULL, one_thread, NULL);
    for (long i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
    free(thread);
}

static void writers(void)
{
    char *data = calloc(1, (size_t)amount);
    for (long i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            int fd = open("/dev/null", O_WRONLY);
            _exit(write(fd, data, (size_t)amount) == amount ? 0 : 1);
        }
        wait_for(pid);
    }
    free(data);
}

static void memory(void)
{
    for (long i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            char *room = malloc((size_t)amount * 1024);
            memset(room, 1, (size_t)amount * 1024);
            _exit(room[amount] == 1 ? 0 : 1);
        }
        wait_for(pid);
    }
}

static void parent_of_orphan(void)
{
    int line[2];
    char text[32];
    if (pipe(line) < 0)
        exit(97);
    pid_t pid = fork();
    if (pid == 0) {
        pid_t middle = getpid();
        if (fork() != 0)
            _exit(0);
        while (getppid() == middle)
            usleep(1000);
        int n = snprintf(text, sizeof text, "%d", (int)getppid());
        _exit(write(line[1], text, (size_t)n + 1) == n + 1 ? 0 : 1);
    }
    wait_for(pid);
    close(line[1]);
    if (read(line[0], text, sizeof text) <= 0)
        exit(97);
    printf("parent %s\n", text);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 96;
    const char *kind = argv[1];
    count = atol(argv[2]);
    amount = atol(argv[3]);
    if (strcmp(kind, "ignored") == 0 || strcmp(kind, "unseen") == 0)
        signal(SIGCHLD, SIG_IGN);
    said = mmap(NULL, (size_t)count * sizeof *said + 1, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (strcmp(kind, "waited") == 0 || strcmp(kind, "together") == 0)
        children(kind[0] == 't', 0);
    else if (strcmp(kind, "setsid") == 0)
        children(1, 1);
    else if (strcmp(kind, "ignored") == 0 || strcmp(kind, "orphans") == 0) {
        unwaited(kind[0] == 'o', 0, count);
        usleep(20000); /* the last of them ends */
    } else if (strcmp(kind, "unseen") == 0)
        unseen();
    else if (strcmp(kind, "threads") == 0)
        threads();
    else if (strcmp(kind, "write") == 0)
        writers();
    else if (strcmp(kind, "memory") == 0)
        memory();
    else if (strcmp(kind, "parent") == 0)
        parent_of_orphan();
    else
        return 96;
    double cpu = 0;
    for (long i = 0; i < count; i++)
        cpu += said[i];
    if (strcmp(kind, "write") == 0)
        printf("wrote %ld\n", count * amount);
    else
        printf("cpu %.6f\n", cpu + used(RUSAGE_SELF) + used(RUSAGE_CHILDREN));
    return 0;
}
