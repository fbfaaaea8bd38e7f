/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs of DRM drivers in sysfs: amdgpu says most (Documentation/gpu/amdgpu/driver-misc.rst), i915,
 * xe and others some. A metric comes from the first of its files that the device has. Under the
 * host's root, so that captured trees can drive it. */
#include "gpu/drm.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/fs.h"
#include "util/scan.h"

#define CLASS "sys/class/drm"
#define WAYS  4

enum part { BUSY, MEMORY, SENSORS };

static const struct row {
    enum pr_metric_id id;
    enum part part;
    struct {
        const char *file; /* below the card; ~ stands for its hwmon directory */
        double scale;     /* 0: a list of steps, of which the present one is marked */
    } way[WAYS];
} rows[] = {
    {METRIC_GPU_UTIL, BUSY, {{"device/gpu_busy_percent", 0.01}}},
    {METRIC_GPU_MEM_UTIL, BUSY, {{"device/mem_busy_percent", 0.01}}},
    {METRIC_GPU_MEM_USED, MEMORY, {{"device/mem_info_vram_used", 1}}},
    {METRIC_GPU_MEM_TOTAL, MEMORY, {{"device/mem_info_vram_total", 1}}},
    {METRIC_GPU_POWER, SENSORS, {{"~/power1_average", 1e-6}, {"~/power1_input", 1e-6}}},
    {METRIC_GPU_POWER_LIMIT, SENSORS, {{"~/power1_cap", 1e-6}}},
    {METRIC_GPU_ENERGY, SENSORS, {{"~/energy1_input", 1e-6}}},
    {METRIC_GPU_TEMP, SENSORS, {{"~/temp1_input", 1e-3}, {"~/temp2_input", 1e-3}}},
    {METRIC_GPU_CLOCK_SM,
     SENSORS,
     {{"~/freq1_input", 1},
      {"device/pp_dpm_sclk", 0},
      {"gt_act_freq_mhz", 1e6},
      {"device/tile0/gt0/freq0/act_freq", 1e6}}},
    {METRIC_GPU_CLOCK_MEM, SENSORS, {{"~/freq2_input", 1}, {"device/pp_dpm_mclk", 0}}},
};
#define ROWS (sizeof rows / sizeof *rows)

/* --- finding ---------------------------------------------------------------------------------- */

static bool is_card(const char *name)
{
    return strncmp(name, "card", 4) == 0 && isdigit((unsigned char)name[4]) &&
           strspn(name + 4, "0123456789") == strlen(name + 4);
}

static bool any_card(void *of, const char *name)
{
    *(bool *)of |= is_card(name);
    return true;
}

static bool expected(const struct pr_host *host, char *why, size_t size)
{
    char names[4096] __attribute__((aligned(16)));
    bool found = false;
    pr_fs_list(host->root, CLASS, names, sizeof names, any_card, &found);
    if (!found)
        snprintf(why, size, "no DRM device (/sys/class/drm)");
    return found;
}

static ssize_t read_file(const struct pr_gpu_work *w, const struct drm_card *c, const char *file,
                         char *text, size_t size)
{
    char path[160];
    if (*file == '~')
        snprintf(path, sizeof path, "%s/%s%s", c->dir, c->hwmon, file + 1);
    else
        snprintf(path, sizeof path, "%s/%s", c->dir, file);
    return *file == '~' && !*c->hwmon ? -ENOENT : pr_fs_read(w->host->root, path, text, size);
}

/* KEY=VALUE of a uevent file. */
static void property(const char *text, const char *key, char *ret, size_t size)
{
    struct pr_scan s = pr_scan_of(text, strlen(text)), line;
    *ret = '\0';
    while (pr_scan_line(&s, &line))
        if (pr_scan_prefix(&line, key))
            snprintf(ret, size, "%.*s", (int)(line.end - line.p), line.p);
}

struct finding {
    struct drm *d;
    struct pr_gpu_work *w;
    char *text; /* what is looked for, and found */
    size_t size;
};

static bool find_hwmon(void *of, const char *name)
{
    struct finding *f = of;
    if (strncmp(name, "hwmon", 5) == 0)
        snprintf(f->text, f->size, "device/hwmon/%.32s", name);
    return !*f->text;
}

static bool find_render(void *of, const char *name)
{
    struct finding *f = of;
    if (strncmp(name, "renderD", 7) == 0)
        snprintf(f->text, f->size, "yes");
    return !*f->text;
}

static void list_below(struct pr_gpu_work *w, const struct drm_card *c, const char *below,
                       char *text, size_t size, bool (*each)(void *, const char *))
{
    char path[96], names[4096] __attribute__((aligned(16)));
    struct finding f = {.text = text, .size = size};
    *text = '\0';
    snprintf(path, sizeof path, "%s/%s", c->dir, below);
    pr_fs_list(w->host->root, path, names, sizeof names, each, &f);
}

/* A GPU has a node to render with; what only shows a picture, or is made of software, is none. */
static bool is_gpu(struct pr_gpu_work *w, const struct drm_card *c)
{
    static const char *const others[] = {"virtio", "vgem", "vkms", "nvidia"};
    char render[8];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(c->driver, others[i], strlen(others[i])) == 0)
            return false;
    if (w->claimed_nvidia && strcmp(c->driver, "nouveau") == 0)
        return false;
    list_below(w, c, "device/drm", render, sizeof render, find_render);
    return *render && *c->driver;
}

static void trim(char *text)
{
    text[strcspn(text, "\n")] = '\0';
}

static void name_card(struct pr_gpu_work *w, const struct drm_card *c, const char *uevent,
                      struct pr_gpu_card *card)
{
    char id[32];
    snprintf(card->name, sizeof card->name, "%.15s", strrchr(c->dir, '/') + 1);
    if (read_file(w, c, "device/product_name", card->model, sizeof card->model) <= 0 ||
        *card->model == '\n') {
        property(uevent, "PCI_ID=", id, sizeof id);
        snprintf(card->model, sizeof card->model, "%s%s%s", c->driver, *id ? " " : "", id);
    }
    if (read_file(w, c, "device/unique_id", card->uuid, sizeof card->uuid) <= 0)
        snprintf(card->uuid, sizeof card->uuid, "%s", c->slot);
    snprintf(card->driver, sizeof card->driver, "%s", c->driver);
    snprintf(card->bus, sizeof card->bus, "%s", c->slot);
    trim(card->model);
    trim(card->uuid);
}

static bool add(void *of, const char *name)
{
    struct finding *f = of;
    struct drm *d = f->d;
    struct drm_card c = {0};
    char uevent[1024];
    if (!is_card(name) || d->count == GPU_DEVICES)
        return true;
    snprintf(c.dir, sizeof c.dir, CLASS "/%.16s", name);
    if (read_file(f->w, &c, "device/uevent", uevent, sizeof uevent) <= 0)
        return true;
    property(uevent, "DRIVER=", c.driver, sizeof c.driver);
    property(uevent, "PCI_SLOT_NAME=", c.slot, sizeof c.slot);
    if (!is_gpu(f->w, &c))
        return true;
    list_below(f->w, &c, "device/hwmon", c.hwmon, sizeof c.hwmon, find_hwmon);
    struct pr_gpu_card *card = pr_gpu_add_card(f->w);
    if (!card)
        return false;
    name_card(f->w, &c, uevent, card);
    d->card[d->count++] = c;
    return true;
}

static int drm_open(void **ret, struct pr_gpu_work *w)
{
    (void)w;
    *ret = calloc(1, sizeof(struct drm));
    return *ret ? 0 : -ENOMEM;
}

static void drm_list(void *state, struct pr_gpu_work *w)
{
    static const enum pr_metric_id lacking[] = {METRIC_GPU_UTIL_MAX, METRIC_GPU_MEM_RESERVED,
                                                METRIC_GPU_THROTTLE, METRIC_GPU_PCIE_RX,
                                                METRIC_GPU_PCIE_TX};
    char names[4096] __attribute__((aligned(16)));
    struct drm *d = state;
    struct finding f = {.d = d, .w = w};
    d->first = (unsigned)w->round->card_count;
    pr_fs_list(w->host->root, CLASS, names, sizeof names, add, &f);
    for (unsigned i = 0; i < d->count; i++)
        for (size_t k = 0; k < sizeof lacking / sizeof *lacking; k++)
            pr_gpu_lacks(&w->round->card[d->first + i], lacking[k], "DRM drivers do not tell");
    if (!d->count)
        snprintf(w->why, sizeof w->why, "no DRM device here is a GPU");
}

/* --- reading ---------------------------------------------------------------------------------- */

/* "0: 500Mhz", "1: 800Mhz *": the step that is marked. */
static double marked_step(const char *text)
{
    struct pr_scan s = pr_scan_of(text, strlen(text)), line;
    while (pr_scan_line(&s, &line)) {
        const char *colon = memchr(line.p, ':', (size_t)(line.end - line.p));
        uint64_t megahertz;
        if (!colon || !memchr(line.p, '*', (size_t)(line.end - line.p)))
            continue;
        line.p = colon + 1;
        return pr_scan_u64(&line, &megahertz) ? (double)megahertz * 1e6 : NAN;
    }
    return NAN;
}

static double number(const char *text, double scale)
{
    struct pr_scan s = pr_scan_of(text, strlen(text));
    int64_t v;
    if (scale == 0)
        return marked_step(text);
    return pr_scan_i64(&s, &v) ? (double)v * scale : NAN;
}

static double read_way(const struct pr_gpu_work *w, const struct drm_card *c, const struct row *row,
                       int way)
{
    char text[1024];
    ssize_t n = read_file(w, c, row->way[way].file, text, sizeof text);
    return n > 0 ? number(text, row->way[way].scale) : NAN;
}

/* The first file that answers is the one from then on. */
static double read_row(const struct pr_gpu_work *w, struct drm_card *c, const struct row *row)
{
    signed char *way = &c->way[pr_device_slot(DEVICE_GPU, row->id)];
    if (*way > 0)
        return read_way(w, c, row, *way - 1);
    for (int i = 0; i < WAYS && row->way[i].file && *way == 0; i++) {
        double v = read_way(w, c, row, i);
        if (isnan(v))
            continue;
        *way = (signed char)(i + 1);
        return v;
    }
    *way = -1;
    return NAN;
}

/* To ask a sleeping device would wake it. */
static bool sleeps(const struct pr_gpu_work *w, const struct drm_card *c)
{
    char text[32];
    return read_file(w, c, "device/power/runtime_status", text, sizeof text) > 0 &&
           strncmp(text, "suspend", 7) == 0;
}

static int read_part(struct drm *d, struct pr_gpu_work *w, unsigned card, enum part part)
{
    struct drm_card *c = &d->card[card - d->first];
    struct pr_gpu_card *out = &w->round->card[card];
    bool any = false, possible = false;
    if (faccessat(w->host->root, c->dir, F_OK, 0) < 0)
        return -ENODEV;
    bool asleep = sleeps(w, c);
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].part != part)
            continue;
        double v = asleep ? NAN : read_row(w, c, &rows[i]);
        possible |= asleep || c->way[pr_device_slot(DEVICE_GPU, rows[i].id)] > 0;
        if (isnan(v)) {
            pr_gpu_lacks(out, rows[i].id,
                         asleep ? "the device sleeps, and to ask would wake it"
                                : "the driver of this device has no file for it");
            continue;
        }
        any = true;
        out->sure_energy |= rows[i].id == METRIC_GPU_ENERGY;
        pr_gpu_put(out, rows[i].id, v);
    }
    return any ? 0 : possible ? -EAGAIN : -ENOTSUP;
}

static int read_busy(void *state, struct pr_gpu_work *w, unsigned card)
{
    return read_part(state, w, card, BUSY);
}

static int read_memory(void *state, struct pr_gpu_work *w, unsigned card)
{
    return read_part(state, w, card, MEMORY);
}

static int read_sensors(void *state, struct pr_gpu_work *w, unsigned card)
{
    return read_part(state, w, card, SENSORS);
}

static const struct pr_gpu_call calls[] = {
    {.name = "sysfs busy", .read = read_busy},
    {.name = "sysfs memory", .read = read_memory},
    {.name = "hwmon", .last = true, .read = read_sensors},
    {.name = "fdinfo", .of_all = true, .of_memory = true, .read = pr_drm_clients},
    {.name = "fdinfo usage", .of_all = true, .follows = true, .read = pr_drm_usage},
    {0},
};

const struct pr_gpu_vendor pr_gpu_drm = {.name = "DRM",
                                         .expected = expected,
                                         .open = drm_open,
                                         .list = drm_list,
                                         .close = free,
                                         .calls = calls};
