/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU job whose use is known: `gpu_phases phases` idles, works, works half of the time, bursts,
 * allocates and frees, and says on standard output when each phase was, in JSON lines;
 * `gpu_phases train STEPS` is a loop like a training, and says how long it took. Plain C over the
 * CUDA driver's library, loaded at run time, with a kernel in its text form: it builds everywhere,
 * and where there is no GPU it says so and exits with 77. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GIB   (1ull << 30)
#define BYTES (10 * GIB)

static const char program[] =
    ".version 6.3\n.target sm_75\n.address_size 64\n"
    ".visible .entry spin(.param .u64 limit)\n{\n"
    " .reg .u64 %rd<5>;\n .reg .pred %p<2>;\n"
    " ld.param.u64 %rd1, [limit];\n mov.u64 %rd2, %globaltimer;\n"
    "AGAIN:\n mov.u64 %rd3, %globaltimer;\n sub.u64 %rd4, %rd3, %rd2;\n"
    " setp.lt.u64 %p1, %rd4, %rd1;\n @%p1 bra AGAIN;\n ret;\n}\n"
    ".visible .entry work(.param .u64 out, .param .u32 times)\n{\n"
    " .reg .u64 %rd<2>;\n .reg .u32 %r<3>;\n .reg .f32 %f<3>;\n .reg .pred %p<2>;\n"
    " ld.param.u64 %rd1, [out];\n ld.param.u32 %r1, [times];\n"
    " mov.f32 %f1, 0f3F800000;\n mov.f32 %f2, 0f3F7FFFFF;\n mov.u32 %r2, 0;\n"
    "MORE:\n fma.rn.f32 %f1, %f1, %f2, %f2;\n add.u32 %r2, %r2, 1;\n"
    " setp.lt.u32 %p1, %r2, %r1;\n @%p1 bra MORE;\n st.f32 [%rd1], %f1;\n ret;\n}\n";

static struct {
    int (*init)(unsigned), (*device)(int *, int), (*retain)(void **, int), (*current)(void *);
    int (*load)(void **, const void *), (*function)(void **, void *, const char *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
    int (*wait)(void), (*alloc)(unsigned long long *, size_t), (*release)(unsigned long long);
    int (*fill)(unsigned long long, unsigned char, size_t);
    int (*down)(void *, unsigned long long, size_t),
        (*up)(unsigned long long, const void *, size_t);
    int (*name)(char *, int, int);
} cuda;

static void *spin, *work;
static char model[128];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void rest(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

static void check(int result, const char *what)
{
    if (result == 0)
        return;
    fprintf(stderr, "gpu_phases: %s: CUDA error %d\n", what, result);
    exit(1);
}

static void find(void *library)
{
    static const struct {
        void *into;
        const char *name;
    } rows[] = {
        {&cuda.init, "cuInit"},
        {&cuda.device, "cuDeviceGet"},
        {&cuda.retain, "cuDevicePrimaryCtxRetain"},
        {&cuda.current, "cuCtxSetCurrent"},
        {&cuda.load, "cuModuleLoadData"},
        {&cuda.function, "cuModuleGetFunction"},
        {&cuda.launch, "cuLaunchKernel"},
        {&cuda.wait, "cuCtxSynchronize"},
        {&cuda.alloc, "cuMemAlloc_v2"},
        {&cuda.release, "cuMemFree_v2"},
        {&cuda.fill, "cuMemsetD8_v2"},
        {&cuda.down, "cuMemcpyDtoH_v2"},
        {&cuda.up, "cuMemcpyHtoD_v2"},
        {&cuda.name, "cuDeviceGetName"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *symbol = dlsym(library, rows[i].name);
        if (!symbol) {
            fprintf(stderr, "gpu_phases: libcuda.so.1 has no %s\n", rows[i].name);
            exit(77);
        }
        memcpy(rows[i].into, &symbol, sizeof symbol);
    }
}

static void prepare(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context, *module;
    int device;
    if (!library)
        library = dlopen("/usr/local/nvidia/lib64/libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "gpu_phases: %s\n", dlerror());
        exit(77);
    }
    find(library);
    check(cuda.init(0), "cuInit");
    check(cuda.device(&device, 0), "cuDeviceGet");
    check(cuda.name(model, sizeof model, device), "cuDeviceGetName");
    check(cuda.retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuda.current(context), "cuCtxSetCurrent");
    check(cuda.load(&module, program), "cuModuleLoadData");
    check(cuda.function(&spin, module, "spin"), "spin");
    check(cuda.function(&work, module, "work"), "work");
}

static void spin_for(double seconds)
{
    unsigned long long ns = (unsigned long long)(seconds * 1e9);
    void *args[] = {&ns};
    check(cuda.launch(spin, 64, 1, 1, 32, 1, 1, 0, NULL, args, NULL), "launch");
}

/* Works for `on` of every `on + off` seconds. Returns for how long the GPU had work, by our clock.
 */
static double duty(double seconds, double on, double off)
{
    double end = now() + seconds, busy = 0;
    while (now() < end) {
        double began = now();
        for (int i = 0; i < 2; i++) /* two, so that there is no gap between them */
            spin_for(on / 2);
        check(cuda.wait(), "wait");
        busy += now() - began;
        if (off > 0)
            rest(off);
    }
    return busy;
}

static void say(const char *phase, double began, double busy, unsigned long long bytes)
{
    printf("{\"phase\": \"%s\", \"start\": %.6f, \"end\": %.6f, \"busy\": %.6f, \"bytes\": %llu}\n",
           phase, began, now(), busy, bytes);
    fflush(stdout);
}

static void idle(const char *phase, double seconds, unsigned long long bytes)
{
    double began = now();
    rest(seconds);
    say(phase, began, 0, bytes);
}

static void phases(void)
{
    unsigned long long memory;
    double began;
    printf("{\"model\": \"%s\"}\n", model);
    idle("idle", 3, 0);
    began = now();
    say("full", began, duty(3, 0.05, 0), 0);
    idle("idle after full", 2.5, 0);
    began = now();
    say("half", began, duty(4, 0.05, 0.05), 0);
    idle("idle after half", 2.5, 0);
    for (int i = 0; i < 3; i++) { /* a burst in two seconds, three times */
        began = now();
        rest(0.9);
        double busy = duty(0.15, 0.2, 0);
        rest(0.9);
        say("burst", began, busy, 0);
    }
    idle("idle after bursts", 2, 0);
    check(cuda.alloc(&memory, BYTES), "alloc");
    check(cuda.fill(memory, 1, BYTES), "fill");
    check(cuda.wait(), "wait");
    idle("hold", 3, BYTES);
    check(cuda.release(memory), "free");
    idle("free", 2.5, 0);
}

/* Some work, a result that is fetched, new input: again and again. */
static void train(long steps)
{
    static float batch[1 << 18];
    unsigned long long memory;
    unsigned times = 200000;
    check(cuda.alloc(&memory, sizeof batch), "alloc");
    double began = now();
    for (long i = 0; i < steps; i++) {
        void *args[] = {&memory, &times};
        check(cuda.up(memory, batch, sizeof batch), "copy up");
        for (int k = 0; k < 8; k++)
            check(cuda.launch(work, 264, 1, 1, 256, 1, 1, 0, NULL, args, NULL), "launch");
        check(cuda.down(batch, memory, 4096), "copy down");
    }
    check(cuda.wait(), "wait");
    printf("{\"steps\": %ld, \"seconds\": %.6f}\n", steps, now() - began);
}

int main(int argc, char **argv)
{
    if (argc < 2 ||
        (strcmp(argv[1], "phases") != 0 && (strcmp(argv[1], "train") != 0 || argc < 3))) {
        fprintf(stderr, "usage: gpu_phases phases | train STEPS\n");
        return 2;
    }
    prepare();
    if (argv[1][0] == 'p')
        phases();
    else
        train(atol(argv[2]));
    return 0;
}
