/* SPDX-License-Identifier: Apache-2.0 */
#include "util/dl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void *pr_dl_open(const char *library, const struct pr_dl_symbol *symbols, size_t count, void *into,
                 char *why, size_t size)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *reason = dlerror();
        snprintf(why, size, "%s", reason ? reason : library);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        void *found = NULL;
        for (const char *const *name = symbols[i].names; *name && !found; name++)
            found = dlsym(handle, *name);
        memcpy((char *)into + symbols[i].field, &found, sizeof found);
    }
    return handle;
}

bool pr_dl_open_whole(const char *library, const struct pr_dl_symbol *symbols, size_t count,
                      void *into, char *why, size_t size)
{
    if (!pr_dl_open(library, symbols, count, into, why, size))
        return false;
    for (size_t i = 0; i < count; i++) {
        void *found;
        memcpy(&found, (char *)into + symbols[i].field, sizeof found);
        if (found)
            continue;
        snprintf(why, size, "%s is too old: it has no %s", library, symbols[i].names[0]);
        return false;
    }
    return true;
}

int pr_dl_version(void *handle, const struct pr_dl_symbol *symbol)
{
    for (int i = 0; symbol->names[i]; i++)
        if (dlsym(handle, symbol->names[i]))
            return i;
    return -1;
}

void pr_dl_close(void *handle)
{
    if (handle)
        dlclose(handle);
}
