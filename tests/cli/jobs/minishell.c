/* SPDX-License-Identifier: Apache-2.0 */
/* minishell FD fg|bg COMMAND...: what an interactive shell does with one job. It takes the terminal
 * on standard input as its own, starts COMMAND in a process group of its own, in the foreground or
 * not, and writes to FD: "pid N", "stopped N", "continued 0", "exited N", "killed N". SIGUSR1 is
 * `fg`. A process group whose parent is elsewhere in the session is not orphaned, so that the
 * kernel lets it be stopped. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int out;
static pid_t job;

static void say(const char *word, int n)
{
    char line[64];
    int len = snprintf(line, sizeof line, "%s %d\n", word, n);
    if (write(out, line, (size_t)len) != len)
        _exit(90);
}

static void bring_to_front(int sig)
{
    (void)sig;
    tcsetpgrp(STDIN_FILENO, job);
    kill(-job, SIGCONT);
}

static void start(int foreground, char **argv)
{
    job = fork();
    if (job < 0)
        _exit(91);
    if (job == 0) {
        setpgid(0, 0);
        if (foreground)
            tcsetpgrp(STDIN_FILENO, getpid());
        signal(SIGTTOU, SIG_DFL);
        execv(argv[0], argv);
        _exit(92);
    }
    setpgid(job, job);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 93;
    out = atoi(argv[1]);
    fcntl(out, F_SETFD, FD_CLOEXEC);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    if (ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
        return 94;
    struct sigaction action = {.sa_handler = bring_to_front, .sa_flags = SA_RESTART};
    sigset_t one, old;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigprocmask(SIG_BLOCK, &one, &old);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    start(strcmp(argv[2], "fg") == 0, argv + 3);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    sigaction(SIGUSR1, &action, NULL);
    sigprocmask(SIG_SETMASK, &old, NULL);
    say("pid", (int)job);
    for (;;) {
        int status;
        pid_t pid = waitpid(job, &status, WUNTRACED | WCONTINUED);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            return 95;
        if (WIFSTOPPED(status))
            say("stopped", WSTOPSIG(status));
        else if (WIFCONTINUED(status))
            say("continued", 0);
        else {
            say(WIFEXITED(status) ? "exited" : "killed",
                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
            return 0;
        }
    }
}
