/* SPDX-License-Identifier: Apache-2.0 */
/* systemd-run --scope registers its own process and then becomes the command: terminal, pid, parent
 * and descriptors stay. It is tried out with `true` first: where the user's systemd does not answer
 * the job must not be lost in it, nor wait for long. */
#include "cli/scope.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/exact.h"
#include "util/clock.h"

#define INSIDE "_PROCTOR_SCOPE" /* says that we are in it; taken away before the job is started */

static const char *const words[] = {"systemd-run", "--user",       "--scope", "--quiet",
                                    "-p",          "Delegate=yes", "--"};
#define WORDS (sizeof words / sizeof *words)

#define PATIENCE_NS (2 * NS_PER_S)    /* for an answer; one takes some hundredths of a second */
#define STEP_NS     (NS_PER_S / 1000) /* between two looks */

extern char **environ;

/* systemd-run with this command behind it; the caller frees the array alone. */
static char **command_of(char *const *rest)
{
    size_t count = 0;
    while (rest[count])
        count++;
    char **all = calloc(WORDS + count + 1, sizeof *all);
    if (!all)
        return NULL;
    memcpy(all, words, sizeof words);
    memcpy(all + WORDS, rest, count * sizeof *rest);
    return all;
}

/* Has it ended well, and in time? It is gone then in any case. */
static bool ends_well(pid_t pid)
{
    const struct timespec step = {.tv_nsec = STEP_NS};
    int status = -1;
    pid_t ended;
    for (int64_t until = pr_clock_boot() + PATIENCE_NS;
         (ended = waitpid(pid, &status, WNOHANG)) == 0 && pr_clock_boot() < until;)
        nanosleep(&step, NULL);
    if (ended == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    return ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Says nothing, whatever comes of it. */
static bool answers(void)
{
    static char *const nothing[] = {"true", NULL};
    posix_spawn_file_actions_t quiet;
    pid_t pid;
    char **all = command_of(nothing);
    posix_spawn_file_actions_init(&quiet);
    for (int fd = 0; fd < 3; fd++)
        posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_RDWR, 0);
    bool started = all && posix_spawnp(&pid, all[0], &quiet, NULL, all, environ) == 0;
    posix_spawn_file_actions_destroy(&quiet);
    free(all);
    return started && ends_well(pid);
}

static bool is_refused(void)
{
    struct pr_exact x;
    return pr_exact_probe(&x, &pr_exact_cgroup, false) < 0;
}

void pr_scope_enter(char **argv)
{
    static char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    bool inside = getenv(INSIDE) != NULL;
    unsetenv(INSIDE);
    if (inside || n <= 0 || !runtime || !*runtime || !is_refused() || !answers())
        return;
    char **all = command_of(argv);
    if (!all)
        return;
    all[WORDS] = self;
    setenv(INSIDE, "1", 1);
    execvp(all[0], all);
    unsetenv(INSIDE);
    free(all);
}
