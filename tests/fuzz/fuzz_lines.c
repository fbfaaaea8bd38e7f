/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/diskstats, /proc/net/dev, /proc/pressure and /proc/loadavg. The first byte says which. */
#include "fuzz.h"
#include "core/loadavg.h"
#include "source/parse.h"

static void lines(struct pr_scan s, bool (*parse)(struct pr_scan, struct pr_scan *, double *))
{
    struct pr_scan line, name;
    double bytes[2];
    while (pr_scan_line(&s, &line))
        if (parse(line, &name, bytes))
            FUZZ_ASSERT(name.p < name.end && name.p >= line.p && name.end <= line.end &&
                        bytes[0] >= 0 && bytes[1] >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pr_loadavg load;
    double seconds = 0;
    if (size == 0)
        return 0;
    char *text = fuzz_bytes(data + 1, size - 1);
    struct pr_scan s = pr_scan_of(text, size - 1);
    switch (*data % 4) {
    case 0:
        lines(s, pr_diskstats_line);
        break;
    case 1:
        lines(s, pr_netdev_line);
        break;
    case 2:
        pr_pressure_total(text, size - 1, "some", &seconds);
        FUZZ_ASSERT(seconds >= 0);
        break;
    default:
        if (pr_loadavg_parse(text, size - 1, &load))
            FUZZ_ASSERT(load.load1 >= 0);
    }
    free(text);
    return 0;
}
