/* SPDX-License-Identifier: Apache-2.0 */
/* Short-lived processes that write and read; a fifth of them are orphans. */
#define _GNU_SOURCE
#include "truth.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static _Alignas(4096) char data[1 << 20];

/* Over what is there: no block is given out, nothing but the data becomes dirty. */
static void write_one(long i)
{
    int fd = open("file", O_WRONLY);
    memset(data, 'x', (size_t)amount);
    if (fd < 0 || pwrite(fd, data, (size_t)amount, i * amount) != amount || fsync(fd) < 0)
        fail("file");
    tally->wrote += amount;
}

/* Past the cache: every byte comes from the disk, and none that was not asked for. */
static void read_one(long i)
{
    int fd = open("file", O_RDONLY | O_DIRECT);
    if (fd < 0) {
        fd = open("file", O_RDONLY);
        tally->buffered++;
    }
    if (fd < 0 || pread(fd, data, (size_t)amount, i * amount) != amount)
        fail("file");
    tally->read += amount;
}

static void each(void (*work)(long))
{
    for (long i = 0; i < count; i++) {
        if (i % 5 == 0) {
            orphan(work, i);
            continue;
        }
        pid_t pid = forked();
        if (pid == 0) {
            work(i);
            _exit(0);
        }
        wait_for(pid);
    }
    orphans_end();
}

/* COUNT parts of AMOUNT bytes of a file that is there. */
static void writers(void)
{
    each(write_one);
}

static void readers(void)
{
    each(read_one);
}

const struct workload io_workloads[] = {{"write", writers}, {"read", readers}, {NULL, NULL}};
