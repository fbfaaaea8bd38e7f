/* SPDX-License-Identifier: Apache-2.0 */
#include "store/find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/run_file.h"
#include "util/fs.h"
#include "util/text.h"

#define LISTING    65536
#define CANDIDATES 4 /* named when there are several */
#define ID_BYTES   sizeof((struct pr_stored *)0)->id

static bool ends_well(const char *name)
{
    size_t n = strlen(name), ending = strlen(RUN_FILE_ENDING);
    return n > ending && strcmp(name + n - ending, RUN_FILE_ENDING) == 0;
}

static bool add_name(void *of, const char *name)
{
    struct pr_store_names *names = of;
    if (!ends_well(name))
        return true;
    if (names->count == names->cap) {
        size_t cap = names->cap ? names->cap * 2 : 64;
        char **items = realloc(names->items, cap * sizeof *items);
        if (!items)
            return false;
        names->items = items;
        names->cap = cap;
    }
    char *copy = strdup(name);
    if (copy)
        names->items[names->count++] = copy;
    return copy != NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int pr_store_names(struct pr_store_names *names, struct proctor_error *err)
{
    *names = (struct pr_store_names){0};
    if (!pr_run_folder(names->folder, sizeof names->folder))
        return pr_error(err, ENOENT, "there is no folder of runs: set HOME or PROCTOR_HOME");
    char *room = malloc(LISTING);
    int r = room ? pr_fs_list(AT_FDCWD, names->folder, room, LISTING, add_name, names) : -ENOMEM;
    free(room);
    if (r < 0 && r != -ENOENT)
        return pr_error(err, -r, "%s: %s", pr_text_tail(names->folder, 140), strerror(-r));
    if (names->count)
        qsort(names->items, names->count, sizeof *names->items, by_name);
    return 0;
}

void pr_store_names_done(struct pr_store_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct pr_store_names){0};
}

bool pr_store_path(const struct pr_store_names *names, size_t i, char *text, size_t size)
{
    return snprintf(text, size, "%s/%s", names->folder, names->items[i]) < (int)size;
}

/* --- one of them ------------------------------------------------------------------------------ */

static int too_long(struct proctor_error *err)
{
    return pr_error(err, ENAMETOOLONG, "%s", strerror(ENAMETOOLONG));
}

static int none(const char *run, const struct pr_store_names *names, struct proctor_error *err)
{
    struct pr_buf text = {0};
    pr_buf_str(&text, "there is no run '");
    pr_text_safe(&text, pr_text_tail(run, 60));
    pr_buf_str(&text, "' in ");
    pr_text_safe(&text, pr_text_tail(names->folder, 110));
    pr_buf_str(&text, "; `proctor ls` lists them");
    pr_error(err, ENOENT, "%s", pr_buf_text(&text));
    pr_buf_done(&text);
    return -ENOENT;
}

/* The id of a run in the folder; "" where its file cannot be read. */
static void id_of(const struct pr_store_names *names, size_t i, char id[ID_BYTES])
{
    char path[4096 + 256];
    struct pr_stored *r = NULL;
    *id = '\0';
    if (!pr_store_path(names, i, path, sizeof path) ||
        pr_stored_open(&r, path, STORED_BRIEFLY, NULL) < 0)
        return;
    snprintf(id, ID_BYTES, "%s", r->id);
    pr_stored_close(r);
}

/* Are these the nodes of one run? Its id; one that cannot be read may well be. */
static bool one_run(const struct pr_store_names *names, size_t first, size_t count,
                    char id[ID_BYTES])
{
    char other[ID_BYTES];
    *id = '\0';
    for (size_t i = first; i < first + count; i++) {
        id_of(names, i, other);
        if (*id && *other && strcmp(id, other) != 0)
            return false;
        if (*other)
            memcpy(id, other, ID_BYTES);
    }
    return *id != '\0';
}

/* Names without their ending, so that they can be typed. */
static int several(const char *run, const struct pr_store_names *names, size_t first, size_t count,
                   struct proctor_error *err)
{
    struct pr_buf text = {0};
    char id[ID_BYTES];
    bool nodes = one_run(names, first, count, id);
    pr_buf_printf(&text,
                  nodes ? "'%.40s' is a run on %zu nodes: `proctor report` takes all; here name "
                          "one: "
                        : "'%.40s' is the beginning of %zu runs: ",
                  run, count);
    for (size_t i = first; i < first + count && i < first + CANDIDATES; i++) {
        const char *name = names->items[i];
        pr_buf_str(&text, i > first ? ", " : "");
        pr_buf_printf(&text, "%.*s", (int)(strlen(name) - strlen(RUN_FILE_ENDING)), name);
    }
    pr_buf_str(&text, count > CANDIDATES ? ", ..." : "");
    pr_error(err, EEXIST, "%s", pr_buf_text(&text));
    pr_buf_done(&text);
    return -EEXIST;
}

/* The one that began last; files that cannot be read are not looked for. */
static int find_last(const struct pr_store_names *names, char *ret_path, size_t size,
                     struct proctor_error *err)
{
    char path[4096 + 256];
    int64_t latest = INT64_MIN;
    for (size_t i = 0; i < names->count; i++) {
        struct pr_stored *r = NULL;
        if (!pr_store_path(names, i, path, sizeof path) ||
            pr_stored_open(&r, path, STORED_BRIEFLY, NULL) < 0)
            continue;
        if (r->started >= latest && strlen(path) < size) {
            latest = r->started;
            memcpy(ret_path, path, strlen(path) + 1);
        }
        pr_stored_close(r);
    }
    return latest == INT64_MIN
               ? pr_error(err, ENOENT, "there are no runs in %s", pr_text_tail(names->folder, 140))
               : 0;
}

/* How many names begin so, and the first: they are neighbours, since they are sorted. One that is
 * just that counts alone. */
static size_t begin_alike(const char *run, const struct pr_store_names *names, size_t *ret_first)
{
    size_t len = strlen(run), count = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (strncmp(names->items[i], run, len) != 0)
            continue;
        *ret_first = count++ ? *ret_first : i;
        if (strcmp(names->items[i] + len, RUN_FILE_ENDING) != 0)
            continue;
        *ret_first = i;
        return 1;
    }
    return count;
}

/* By its id, or the beginning of one. */
static int find_named(const char *run, const struct pr_store_names *names, char *ret_path,
                      size_t size, struct proctor_error *err)
{
    size_t first = 0, count = begin_alike(run, names, &first);
    if (count > 1)
        return several(run, names, first, count, err);
    if (count == 0)
        return none(run, names, err);
    return pr_store_path(names, first, ret_path, size) ? 0 : too_long(err);
}

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

int pr_store_find(const char *run, char *ret_path, size_t size, struct proctor_error *err)
{
    struct pr_store_names names;
    if (strchr(run, '/') || ends_well(run)) /* a file, whether it is there or not */
        return snprintf(ret_path, size, "%s", run) < (int)size ? 0 : too_long(err);
    if (!*run)
        return pr_error(err, EINVAL, "a run needs a name: `proctor ls` lists them");
    int r = pr_store_names(&names, err);
    if (r == 0)
        r = strcmp(run, "last") == 0 ? find_last(&names, ret_path, size, err)
                                     : find_named(run, &names, ret_path, size, err);
    pr_store_names_done(&names);
    if (r == -ENOENT && is_there(run))
        return snprintf(ret_path, size, "%s", run) < (int)size ? 0 : too_long(err);
    return r;
}

/* --- all nodes of one ------------------------------------------------------------------------- */

static int keep(const char *path, char **ret_paths, size_t most, size_t *ret_count,
                struct proctor_error *err)
{
    if (*ret_count == most)
        return pr_error(err, E2BIG, "more than %zu nodes are too many", most);
    if (!(ret_paths[*ret_count] = strdup(path)))
        return pr_error(err, ENOMEM, "%s", strerror(ENOMEM));
    ++*ret_count;
    return 0;
}

/* Those that have this id: their files are named after it. */
static int collect(const struct pr_store_names *names, const char *id, char **ret_paths,
                   size_t most, size_t *ret_count, struct proctor_error *err)
{
    char other[ID_BYTES], path[4096 + 256];
    int code = 0;
    for (size_t i = 0; i < names->count && code == 0; i++) {
        size_t len = strlen(id);
        if (strncmp(names->items[i], id, len) != 0 || names->items[i][len] != '.')
            continue;
        id_of(names, i, other);
        if (!*other || strcmp(id, other) == 0) /* what cannot be read is said, not left out */
            code = pr_store_path(names, i, path, sizeof path)
                       ? keep(path, ret_paths, most, ret_count, err)
                       : too_long(err);
    }
    return code;
}

/* Where in the folder it is; names->count for a file that is elsewhere. */
static size_t place_of(const struct pr_store_names *names, const char *path)
{
    char other[4096 + 256];
    size_t i = 0;
    while (i < names->count &&
           !(pr_store_path(names, i, other, sizeof other) && strcmp(other, path) == 0))
        i++;
    return i;
}

/* Is a run named by its id, and not one node of it by the name of its file? */
static bool is_id(const char *id, const char *run)
{
    return *id && (strcmp(run, "last") == 0 || strncmp(id, run, strlen(run)) == 0);
}

/* Is it all of an id? Others may begin with it. */
static bool is_whole_id(const struct pr_store_names *names, const char *run, char id[ID_BYTES])
{
    size_t len = strlen(run);
    for (size_t i = 0; i < names->count; i++) {
        if (strncmp(names->items[i], run, len) != 0 || names->items[i][len] != '.')
            continue;
        id_of(names, i, id);
        if (strcmp(id, run) == 0)
            return true;
    }
    return false;
}

int pr_store_find_nodes(const char *run, char **ret_paths, size_t most, size_t *ret_count,
                        struct proctor_error *err)
{
    struct pr_store_names names = {0};
    char path[4096 + 256], id[ID_BYTES];
    size_t place = 0;
    *ret_count = 0;
    bool file = strchr(run, '/') || ends_well(run);
    int code = file ? 0 : pr_store_names(&names, err);
    size_t count = code < 0 || file || !*run ? 0 : begin_alike(run, &names, &place);
    bool all = count > 0 && is_whole_id(&names, run, id);
    all = all || (count > 1 && one_run(&names, place, count, id) && is_id(id, run));
    if (code == 0 && !all) {
        code = pr_store_find(run, path, sizeof path, err);
        place = code < 0 ? names.count : place_of(&names, path);
        all = place < names.count && one_run(&names, place, 1, id) && is_id(id, run) &&
              strncmp(names.items[place], id, strlen(id)) == 0;
    }
    if (code == 0)
        code = all ? collect(&names, id, ret_paths, most, ret_count, err)
                   : keep(path, ret_paths, most, ret_count, err);
    pr_store_names_done(&names);
    return code;
}
