/* SPDX-License-Identifier: Apache-2.0 */
/* count_signals [FD [SIGNAL...]]: says "ready PID", then "got N" for every signal that arrives,
 * until FD (standard input by default) ends; then "count N TIMES" for each that came, exit 7.
 * SIGNALs named are left at their default. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t count[NSIG];

static void say(const char *word, int a, int b)
{
    char line[64];
    int n = b < 0 ? snprintf(line, sizeof line, "%s %d\n", word, a)
                  : snprintf(line, sizeof line, "%s %d %d\n", word, a, b);
    if (write(STDOUT_FILENO, line, (size_t)n) < 0 && errno == EBADF)
        _exit(98);
}

static void handler(int sig)
{
    int saved = errno;
    count[sig]++;
    say("got", sig, -1);
    errno = saved;
}

int main(int argc, char **argv)
{
    char byte;
    int fd = argc > 1 ? atoi(argv[1]) : STDIN_FILENO;
    struct sigaction action = {.sa_handler = handler};
    sigfillset(&action.sa_mask); /* one line at a time */
    for (int sig = 1; sig < NSIG; sig++) {
        int wanted = sig != SIGTSTP && sig != SIGTTIN && sig != SIGTTOU && sig != SIGCHLD;
        for (int i = 2; i < argc; i++)
            wanted &= atoi(argv[i]) != sig;
        if (wanted)
            sigaction(sig, &action, NULL);
    }
    say("ready", (int)getpid(), -1);
    for (;;) {
        ssize_t n = read(fd, &byte, 1);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
    }
    for (int sig = 1; sig < NSIG; sig++)
        if (count[sig])
            say("count", sig, count[sig]);
    return 7;
}
