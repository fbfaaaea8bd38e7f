/* SPDX-License-Identifier: Apache-2.0 */
/* The job of `make demo`: a little of everything, in phases, so that there is something to see. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void burn(double seconds)
{
    volatile uint64_t x = 1;
    for (double until = now() + seconds; now() < until;)
        for (int i = 0; i < 10000; i++)
            x = x * 6364136223846793005u + 1;
}

/* Memory that is really used: a compiler drops a malloc that nobody reads. */
static volatile char *use(size_t size)
{
    volatile char *memory = malloc(size);
    for (size_t i = 0; memory && i < size; i += 4096)
        memory[i] = 1;
    return memory;
}

static void in_child(void (*work)(int), int n)
{
    pid_t pid = fork();
    if (pid == 0) {
        work(n);
        _exit(0);
    }
    if (pid < 0)
        perror("fork");
}

static void wait_all(void)
{
    while (wait(NULL) > 0)
        ;
}

/* Write a file, sync it, read it back. */
static void load(void)
{
    static char block[1 << 20];
    FILE *file = tmpfile();
    if (!file)
        return;
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 64; i++)
        fwrite(block, 1, sizeof block, file);
    fflush(file);
    fsync(fileno(file));
    rewind(file);
    while (fread(block, 1, sizeof block, file) == sizeof block)
        ;
    fclose(file);
}

static void worker(int n)
{
    volatile char *memory = use((size_t)(n + 1) << 25);
    burn(2.5);
    free((void *)memory);
}

static void train(void)
{
    for (int n = 0; n < 4; n++)
        in_child(worker, n);
    wait_all();
}

static void short_lived(int n)
{
    (void)n;
    burn(0.002);
}

/* What tools that only sample do not see. */
static void churn(void)
{
    for (int n = 0; n < 300; n++) {
        in_child(short_lived, n);
        wait_all();
    }
}

/* 500 MiB for a moment: over before the next look at it. */
static void spike(void)
{
    volatile char *memory = use((size_t)500 << 20);
    usleep(20000);
    free((void *)memory);
    usleep(900000);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } phases[] = {{"load", load}, {"train", train}, {"churn", churn}, {"spike", spike}};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        double began = now();
        printf("demo: %-6s", phases[i].name);
        fflush(stdout);
        phases[i].run();
        printf("%5.2f s\n", now() - began);
    }
    return 0;
}
