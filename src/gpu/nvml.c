/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA devices: loads the driver's library and lists what it shows. A symbol that an old library
 * lacks makes only the readings absent that need it. */
#include "gpu/nvml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/nvml_state.h"
#include "util/fs.h"

#define LIBRARY "libnvidia-ml.so.1"

/* Where the loader finds it, and where others put it: GKE, WSL, NixOS. */
static const char *const places[] = {LIBRARY, "/usr/local/nvidia/lib64/" LIBRARY,
                                     "/usr/lib/wsl/lib/" LIBRARY,
                                     "/run/opengl-driver/lib/" LIBRARY};

#define SYMBOL(field, ...)                                                                         \
    {                                                                                              \
        offsetof(struct nvml_api, field),                                                          \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
static const struct pr_dl_symbol symbols[] = {
    SYMBOL(init, "nvmlInit_v2", "nvmlInit"),
    SYMBOL(shutdown, "nvmlShutdown"),
    SYMBOL(error, "nvmlErrorString"),
    SYMBOL(count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
    SYMBOL(by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
    SYMBOL(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex"),
    SYMBOL(mig_mode, "nvmlDeviceGetMigMode"),
    SYMBOL(mig_most, "nvmlDeviceGetMaxMigDeviceCount"),
    SYMBOL(name, "nvmlDeviceGetName"),
    SYMBOL(uuid, "nvmlDeviceGetUUID"),
    SYMBOL(minor, "nvmlDeviceGetMinorNumber"),
    SYMBOL(pci, "nvmlDeviceGetPciInfo_v3"),
    SYMBOL(driver, "nvmlSystemGetDriverVersion"),
    SYMBOL(rates, "nvmlDeviceGetUtilizationRates"),
    SYMBOL(samples, "nvmlDeviceGetSamples"),
    SYMBOL(memory, "nvmlDeviceGetMemoryInfo"),
    SYMBOL(memory_v2, "nvmlDeviceGetMemoryInfo_v2"),
    SYMBOL(power, "nvmlDeviceGetPowerUsage"),
    SYMBOL(power_limit, "nvmlDeviceGetEnforcedPowerLimit"),
    SYMBOL(energy, "nvmlDeviceGetTotalEnergyConsumption"),
    SYMBOL(temperature, "nvmlDeviceGetTemperature"),
    SYMBOL(clock, "nvmlDeviceGetClockInfo"),
    SYMBOL(reasons, "nvmlDeviceGetCurrentClocksEventReasons",
           "nvmlDeviceGetCurrentClocksThrottleReasons"),
    SYMBOL(fields, "nvmlDeviceGetFieldValues"),
    SYMBOL(ecc, "nvmlDeviceGetTotalEccErrors"),
    SYMBOL(event_set, "nvmlEventSetCreate"),
    SYMBOL(event_done, "nvmlEventSetFree"),
    SYMBOL(event_ask, "nvmlDeviceRegisterEvents"),
    SYMBOL(event_wait, "nvmlEventSetWait_v2"),
    SYMBOL(compute, "nvmlDeviceGetComputeRunningProcesses_v3",
           "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses"),
    SYMBOL(graphics, "nvmlDeviceGetGraphicsRunningProcesses_v3",
           "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses"),
    SYMBOL(process_use, "nvmlDeviceGetProcessUtilization"),
};
#define SYMBOLS (sizeof symbols / sizeof *symbols)

/* Somebody has put the library into a place of their own. */
static bool in_library_path(void)
{
    const char *path = getenv("LD_LIBRARY_PATH");
    while (path && *path) {
        char file[512];
        int n = (int)strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/" LIBRARY, n, path);
        if (n && access(file, F_OK) == 0)
            return true;
        path += path[n] ? n + 1 : n;
    }
    return false;
}

/* The device file of the driver, or of the one in Windows. A captured tree has no driver. */
static bool expected(const struct pr_host *host, char *why, size_t size)
{
    if (!host->held)
        snprintf(why, size, "NVIDIA: not under a captured root");
    else if (access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0 ||
             in_library_path())
        return true;
    else
        snprintf(why, size, "no NVIDIA driver (/dev/nvidiactl)");
    return false;
}

static const char *words(const struct nvml *n, int result)
{
    return n->api.error ? n->api.error(result) : "error";
}

static void nvml_close(void *state)
{
    struct nvml *n = state;
    if (n->events && n->api.event_done)
        n->api.event_done(n->events);
    if (n->api.shutdown)
        n->api.shutdown();
    pr_dl_close(n->library);
    free(n);
}

static bool count_link(void *of, const char *name)
{
    char path[64], target[16];
    snprintf(path, sizeof path, "/proc/self/fd/%.16s", name);
    ssize_t n = readlink(path, target, sizeof target);
    *(int *)of += n > 11 && strncmp(target, "/dev/nvidia", 11) == 0;
    return true;
}

/* How many of its device files this process has open. */
static int device_files(void)
{
    char names[4096] __attribute__((aligned(16)));
    int count = 0;
    pr_fs_list(AT_FDCWD, "/proc/self/fd", names, sizeof names, count_link, &count);
    return count;
}

static int nvml_open(void **ret, struct pr_gpu_work *w)
{
    char why[120], ignored[120];
    struct nvml *n = calloc(1, sizeof *n);
    if (!n)
        return -ENOMEM;
    for (size_t i = 0; i < sizeof places / sizeof *places && !n->library; i++)
        n->library =
            pr_dl_open(places[i], symbols, SYMBOLS, &n->api, i ? ignored : why, sizeof why);
    const struct nvml_api *api = &n->api;
    int result = 0, files = device_files();
    if (n->library && (!api->init || !api->count || !api->by_index))
        snprintf(why, sizeof why, LIBRARY " lacks what every version has");
    else if (n->library && (result = api->init()) == NVML_OK) {
        *ret = n;
        w->descriptors += device_files() - files;
        return 0;
    }
    if (result)
        snprintf(why, sizeof why, "%s%s", words(n, result),
                 result == NVML_MISMATCH ? " (the driver was updated: load the new one, or reboot)"
                                         : "");
    snprintf(w->why, sizeof w->why, "NVIDIA: %s", why);
    pr_dl_close(n->library);
    free(n);
    return -ENOTSUP;
}

/* Which layout the lists of processes have. */
static bool is_old(void *library, const char *newest, const char *newer)
{
    const struct pr_dl_symbol two = {0, {newest, newer, NULL}};
    return pr_dl_version(library, &two) < 0;
}

static struct nvml_device *add(struct nvml *n, struct pr_gpu_work *w, void *handle,
                               struct pr_gpu_card **ret)
{
    struct pr_gpu_card *c = pr_gpu_add_card(w);
    if (!c)
        return NULL;
    struct nvml_device *d = &n->device[n->count++];
    d->handle = handle;
    d->minor = ~0u;
    if (n->api.name)
        n->api.name(handle, c->model, sizeof c->model);
    if (n->api.uuid)
        n->api.uuid(handle, c->uuid, sizeof c->uuid);
    if (n->api.driver)
        n->api.driver(c->driver, sizeof c->driver);
    struct nvml_pci pci;
    if (n->api.pci && n->api.pci(handle, &pci) == NVML_OK)
        snprintf(c->bus, sizeof c->bus, "%.31s", pci.name);
    *ret = c;
    return d;
}

/* The parts of a divided device are devices, and have what the driver says of each part. */
static void list_parts(struct nvml *n, struct pr_gpu_work *w, struct nvml_device *whole,
                       unsigned index)
{
    unsigned mode = 0, pending, most = 0;
    const struct nvml_api *api = &n->api;
    if (!api->mig_mode || !api->mig_most || !api->mig_by_index ||
        api->mig_mode(whole->handle, &mode, &pending) != NVML_OK || mode != 1 ||
        api->mig_most(whole->handle, &most) != NVML_OK)
        return;
    whole->divided = true;
    for (unsigned i = 0; i < most; i++) {
        void *handle;
        struct pr_gpu_card *c;
        if (api->mig_by_index(whole->handle, i, &handle) != NVML_OK)
            continue;
        struct nvml_device *part = add(n, w, handle, &c);
        if (!part)
            return;
        part->part = c->part = true;
        part->minor = whole->minor;
        snprintf(c->name, sizeof c->name, "gpu%u/mig%u", index, i);
    }
}

static void nvml_list(void *state, struct pr_gpu_work *w)
{
    struct nvml *n = state;
    unsigned count = 0;
    n->first = (unsigned)w->round->card_count;
    n->old_processes = is_old(n->library, "nvmlDeviceGetComputeRunningProcesses_v3",
                              "nvmlDeviceGetComputeRunningProcesses_v2");
    int result = n->api.count(&count);
    if (result != NVML_OK)
        snprintf(w->why, sizeof w->why, "NVIDIA: %s", words(n, result));
    for (unsigned i = 0; i < count; i++) {
        void *handle;
        struct pr_gpu_card *c;
        result = n->api.by_index(i, &handle);
        if (result != NVML_OK) {
            snprintf(w->why, sizeof w->why, "NVIDIA device %u: %s", i, words(n, result));
            pr_gpu_say(w, "gpu%u cannot be read: %s", i, words(n, result));
            continue;
        }
        struct nvml_device *d = add(n, w, handle, &c);
        if (!d)
            return;
        snprintf(c->name, sizeof c->name, "gpu%u", i);
        if (n->api.minor)
            n->api.minor(handle, &d->minor);
        list_parts(n, w, d, i);
    }
    w->claimed_nvidia = n->count > 0;
}

int pr_nvml_result(struct pr_gpu_card *c, int result, const enum pr_metric_id *ids, size_t count)
{
    static const struct {
        int result, code;
        const char *reason;
    } rows[] = {
        {NVML_OK, 0, NULL},
        {NVML_NOT_SUPPORTED, -ENOTSUP, "this device does not support it"},
        {NVML_NO_FUNCTION, -ENOTSUP, "this driver is too old for it"},
        {NVML_NO_PERMISSION, -ENOTSUP, "the driver does not permit it"},
        {NVML_NOT_FOUND, -EAGAIN, NULL},
        {NVML_LOST, -ENODEV, "the device is lost"},
        {NVML_NEEDS_RESET, -ENODEV, "the device has to be reset"},
    };
    size_t row = 0;
    while (row < sizeof rows / sizeof *rows && rows[row].result != result)
        row++;
    bool known = row < sizeof rows / sizeof *rows;
    const char *reason = known ? rows[row].reason : "the driver reports an error";
    for (size_t i = 0; i < count && reason; i++)
        pr_gpu_lacks(c, ids[i], reason);
    return known ? rows[row].code : -EIO;
}

/* Periods by what they cost on an H200: energy 4 ms of CPU, of which only the first and the last
 * reading matter for the total; utilisation of processes 1.5 ms, and new each 200 ms. */
static const struct pr_gpu_call calls[] = {
    {.name = "memory", .read = pr_nvml_memory},
    {.name = "clocks", .read = pr_nvml_clocks},
    {.name = "throttle", .read = pr_nvml_throttle},
    {.name = "temperature", .period = 0.5, .read = pr_nvml_temperature},
    {.name = "power", .last = true, .read = pr_nvml_power},
    {.name = "utilisation", .read = pr_nvml_util},
    {.name = "energy", .period = 10, .last = true, .read = pr_nvml_energy},
    {.name = "PCIe", .period = 1, .read = pr_nvml_pcie},
    {.name = "errors", .period = 2, .last = true, .read = pr_nvml_errors},
    {.name = "process memory", .of_all = true, .of_memory = true, .read = pr_nvml_process_memory},
    {.name = "process utilisation", .period = 0.2, .of_all = true, .read = pr_nvml_process_use},
    {0},
};

const struct pr_gpu_vendor pr_gpu_nvml = {.name = "NVIDIA",
                                          .expected = expected,
                                          .open = nvml_open,
                                          .list = nvml_list,
                                          .close = nvml_close,
                                          .calls = calls};
