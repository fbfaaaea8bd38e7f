/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: for a moment, for long, and of several at once. COUNT is how many, AMOUNT how many MiB
 * each, EXTRA for how many milliseconds. */
#define _GNU_SOURCE
#include "truth.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char *touch(void)
{
    size_t size = (size_t)amount << 20;
    char *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        fail("mmap");
    memset(room, 1, size);
    tally->touched += (long)size;
    return room;
}

static void steady(void)
{
    touch();
    pause_ms(extra);
}

/* In a child, which is small again when it ends. */
static void spike(void)
{
    pid_t pid = forked();
    if (pid == 0) {
        char *room = touch();
        pause_ms(extra);
        munmap(room, (size_t)amount << 20);
        pause_ms(100);
        _exit(0);
    }
    wait_for(pid);
}

/* Nobody lets go before all have theirs. */
static void together(void)
{
    for (long i = 0; i < count; i++)
        if (forked() == 0) {
            touch();
            while (tally->touched < count * (amount << 20))
                pause_ms(1);
            pause_ms(extra);
            _exit(0);
        }
    wait_for_all();
}

const struct workload memory_workloads[] = {
    {"steady", steady}, {"spike", spike}, {"together", together}, {NULL, NULL}};
