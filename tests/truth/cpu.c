/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and threads of every kind, each with some CPU time. */
#define _GNU_SOURCE
#include "truth.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4

extern char **environ;

static pid_t burning_child(int own_session)
{
    pid_t pid = forked();
    if (pid != 0)
        return pid;
    if (own_session)
        setsid();
    burn(amount);
    _exit(0);
}

static void in_threads(int n, void *(*work)(void *))
{
    pthread_t thread[64];
    for (long i = 0; i < n; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)i) != 0)
            fail("pthread_create");
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
}

/* ---- children ---- */

static void *storm_thread(void *data)
{
    for (long i = (long)data; i < count; i += THREADS)
        if (i / THREADS % 5 == 0)
            orphan(burn, amount);
        else
            wait_for(burning_child(i / THREADS % 5 == 1));
    return NULL;
}

/* COUNT children of AMOUNT us from several threads; a fifth are orphaned, a fifth in new sessions.
 */
static void storm(void)
{
    in_threads(THREADS, storm_thread);
    orphans_end();
}

static void *one_child(void *data)
{
    wait_for(burning_child(0));
    return data;
}

/* COUNT threads, each with a child. */
static void threadfork(void)
{
    in_threads((int)count, one_child);
}

static void doublefork(void)
{
    for (long i = 0; i < count; i++)
        orphan(burn, amount);
    orphans_end();
}

static void sessions(void)
{
    for (long i = 0; i < count; i++)
        burning_child(1);
    wait_for_all();
}

/* The kernel reaps them, and keeps no account: each says itself what it used. */
static void ignored(void)
{
    int alive[2];
    char byte;
    signal(SIGCHLD, SIG_IGN);
    if (pipe(alive) < 0)
        fail("pipe");
    for (long i = 0; i < count; i++)
        if (forked() == 0) {
            burn(amount);
            say();
            _exit(0);
        }
    close(alive[1]);
    if (read(alive[0], &byte, 1) != 0)
        fail("read");
    wait_for_all();
    pause_ms(100);
}

static pid_t lend(void)
{
    pid_t pid = vfork();
    if (pid == 0)
        become("burn", amount);
    return pid;
}

static void borrow(void)
{
    for (long i = 0; i < count; i++)
        wait_for(lend());
}

static void burn_once(void)
{
    burn(count);
}

static void *exec_thread(void *data)
{
    burn(amount);
    become("burn", amount);
    return data;
}

static void exec_from_thread(void)
{
    pthread_t thread;
    burn(amount);
    pthread_create(&thread, NULL, exec_thread, NULL);
    for (;;)
        pause();
}

/* COUNT children, and then the job's root: a thread that is not the first becomes another program.
 */
static void threadexec(void)
{
    for (long i = 0; i < count; i++)
        if (forked() == 0)
            exec_from_thread();
    wait_for_all();
    exec_from_thread();
}

/* Children one after another where there are few pids: each is had again and again. */
static void reuse(void)
{
    static char had[1 << 22];
    for (long i = 0; i < count; i++) {
        pid_t pid = burning_child(0);
        tally->reused += had[pid % (long)sizeof had];
        had[pid % (long)sizeof had] = 1;
        wait_for(pid);
    }
}

/* ---- many at once ---- */

static int stay[2];

/* This process and n - 1 below it, which all end with the pipe. */
static void node(long n)
{
    long rest = n - 1, parts = rest < 8 ? rest : 8;
    for (long i = 0; i < parts; i++) {
        long share = rest / parts + (i < rest % parts);
        if (forked() == 0) {
            close(stay[1]);
            stay[1] = -1;
            node(share);
        }
    }
    burn(amount);
    tally->procs++;
    if (stay[1] >= 0)
        return;
    char byte;
    if (read(stay[0], &byte, 1) != 0)
        fail("read");
    wait_for_all();
    _exit(0);
}

/* A tree of COUNT processes, alive together for EXTRA milliseconds. */
static void tree(void)
{
    if (pipe(stay) < 0)
        fail("pipe");
    node(count);
    while (tally->procs < count)
        pause_ms(1);
    pause_ms(extra);
    close(stay[1]);
    wait_for_all();
}

/* ---- ends ---- */

/* COUNT children have ended, and the job ends without having waited for any. */
static void zombies(void)
{
    pid_t pid[1024];
    siginfo_t info;
    for (long i = 0; i < count; i++) {
        pid[i] = forked();
        if (pid[i] == 0) {
            burn(amount);
            say();
            _exit(0);
        }
    }
    for (long i = 0; i < count; i++)
        if (waitid(P_PID, (id_t)pid[i], &info, WEXITED | WNOWAIT) < 0)
            fail("waitid");
    pause_ms(extra);
}

static void slowreap(void)
{
    for (long i = 0; i < count; i++)
        burning_child(0);
    for (long i = 0; i < count; i++) {
        pause_ms(extra);
        if (wait(NULL) < 0)
            fail("wait");
    }
}

/* Has used all it will ever use when the byte is written. */
static void stay_behind(int line)
{
    prctl(PR_SET_NAME, "stays-behind");
    burn(amount);
    say();
    if (write(line, "x", 1) != 1)
        fail("write");
    for (;;)
        pause();
}

static void leave(void)
{
    int line[2];
    char byte;
    if (pipe(line) < 0)
        fail("pipe");
    for (long i = 0; i < count; i++) {
        pid_t middle = forked();
        if (middle == 0) {
            setsid();
            if (forked() == 0)
                stay_behind(line[1]);
            _exit(0);
        }
        wait_for(middle);
    }
    for (long i = 0; i < count; i++)
        if (read(line[0], &byte, 1) != 1)
            fail("read");
    pause_ms(100);
}

static void *burning_thread(void *data)
{
    burn(amount);
    return data;
}

/* COUNT threads, some at a time, are long gone when the process ends. */
static void threadsend(void)
{
    for (long i = 0; i < count; i += THREADS)
        in_threads(THREADS, burning_thread);
    pause_ms(extra);
}

/* ---- other people's programs ---- */

static void run_program(char **words)
{
    pid_t pid;
    if (posix_spawnp(&pid, words[0], NULL, NULL, words, environ) != 0)
        fail(words[0]);
    wait_for(pid);
}

static void generate(const char *path, long functions)
{
    FILE *f = fopen(path, "w");
    if (!f)
        fail(path);
    for (long i = 0; i < functions; i++)
        fprintf(f,
                "int f%ld(int n)\n{\n    int s = %ld;\n    for (int i = 0; i < n; i++)\n"
                "        s += i %% 7 ? s * i : s - i;\n    return s;\n}\n",
                i, i);
    fclose(f);
}

/* COUNT compilations of a file with AMOUNT functions. */
static void compile(void)
{
    char *words[] = {"cc", "-O1", "-c", "-o", "generated.o", "generated.c", NULL};
    generate("generated.c", amount);
    for (long i = 0; i < count; i++)
        run_program(words);
}

static void shell(void)
{
    char script[128];
    snprintf(script, sizeof script, "i=0; while [ $i -lt %ld ]; do /bin/true; i=$((i+1)); done",
             count);
    char *words[] = {"sh", "-c", script, NULL};
    run_program(words);
}

const struct workload cpu_workloads[] = {
    {"storm", storm},
    {"threadfork", threadfork},
    {"doublefork", doublefork},
    {"sessions", sessions},
    {"ignored", ignored},
    {"vfork", borrow},
    {"burn", burn_once},
    {"threadexec", threadexec},
    {"reuse", reuse},
    {"tree", tree},
    {"zombies", zombies},
    {"slowreap", slowreap},
    {"daemon", leave},
    {"threadsend", threadsend},
    {"compile", compile},
    {"shell", shell},
    {NULL, NULL},
};
