/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of recorded runs as files. */
#pragma once
#include "core/error.h"
#include "store/stored.h"

#define REPORT_ENDINGS ".html, .md, .txt, .svg, .png or .json"

/* A text takes the place of a file, by rename, so that nobody ever sees half of it; devices and
 * pipes are just written. 0 or -errno. */
int pr_report_replace(const char *path, const struct pr_buf *text);

/* Can a report be written there, by the ending of its name? 0 or -errno. */
int pr_report_check(const char *path, struct proctor_error *err);
/* Is there a place for it? What is there is replaced, so that a folder is all it takes. */
int pr_report_check_place(const char *path, struct proctor_error *err);
/* Is there Markdown among them? It alone shows what each name used, and has pictures beside it. */
bool pr_report_has_names(char *const *paths, size_t count);
/* What is not said by names of files. */
struct pr_report_how {
    bool png;           /* pictures of Markdown; else SVG */
    const char *append; /* a file that gets Markdown without pictures behind what it has, or NULL */
};
/* One report of all the runs, into each of the files; each is written by rename. Pictures of
 * NAME.md are in NAME_files beside it. 0 or -errno. */
int pr_report_write(struct pr_stored *const *runs, size_t count, char *const *paths,
                    size_t path_count, const struct pr_report_how *how, struct proctor_error *err);
