/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that are loaded at first use, and what is wanted of them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Where a symbol goes, and its names, the newest first, up to a NULL. */
struct pr_dl_symbol {
    size_t field; /* offset of a function pointer */
    const char *names[4];
};
/* One of a field of `lib`, which may be of a struct without a name. */
#define PR_DL_SYMBOL(lib, field, name)                                                             \
    {                                                                                              \
        (size_t)((char *)&(lib).field - (char *)&(lib)),                                           \
        {                                                                                          \
            name                                                                                   \
        }                                                                                          \
    }

/* Loads a library and fills the fields of `into`; a symbol under none of its names stays NULL.
 * Returns its handle, or NULL with the reason in why. */
void *pr_dl_open(const char *library, const struct pr_dl_symbol *symbols, size_t count, void *into,
                 char *why, size_t size);
/* The same for good, where no symbol may be missing. False with the reason in why. */
bool pr_dl_open_whole(const char *library, const struct pr_dl_symbol *symbols, size_t count,
                      void *into, char *why, size_t size);
/* Which name of a symbol it has: its number, or -1. */
int pr_dl_version(void *handle, const struct pr_dl_symbol *symbol);
void pr_dl_close(void *handle);
