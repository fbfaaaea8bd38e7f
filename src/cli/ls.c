/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor ls`: what has been recorded. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/runs.h"
#include "store/rows.h"
#include "util/clock.h"
#include "util/json.h"
#include "util/text.h"

#define COMMAND_LEAST 10 /* columns: however narrow the terminal is */

struct filter {
    const struct pr_config *config;
    int64_t since, before; /* wall time, ns */
};

/* --- which ------------------------------------------------------------------------------------ */

/* "2d" ago, or a date in local time, or with a Z at its end in UTC. */
static bool parse_when(const char *text, int64_t *ret)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S",
                                        "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"};
    double ago;
    if (pr_units_parse_duration(text, &ago)) {
        *ret = pr_clock_wall() - llround(fmin(ago, 9e9) * 1e9);
        return true;
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm tm = {.tm_isdst = -1};
        const char *rest = strptime(text, forms[i], &tm);
        bool utc = rest && strcmp(rest, "Z") == 0;
        if (!rest || (*rest && !utc))
            continue;
        *ret = (int64_t)(utc ? timegm(&tm) : mktime(&tm)) * NS_PER_S;
        return true;
    }
    return false;
}

static bool read_time(const char *option, const char *text, int64_t *ret)
{
    if (!text || parse_when(text, ret))
        return true;
    pr_complain("ls: %s: '%.60s' is no time; write 2d, 12h, 2026-11-15 or \"2026-11-15 18:00\"",
                option, text);
    return false;
}

/* Labels are a JSON object of texts, as our own writer makes it. */
static bool has_label(const struct pr_run_row *row, const char *wanted)
{
    struct pr_buf text = {0};
    struct pr_json j = {.out = &text};
    const char *equals = strchr(wanted, '=');
    char key[LABEL_KEY_MAX + 1];
    snprintf(key, sizeof key, "%.*s", equals ? (int)(equals - wanted) : (int)sizeof key - 1,
             wanted);
    pr_json_string(&j, key);
    pr_buf_char(&text, ':');
    j.comma = false;
    if (equals)
        pr_json_string(&j, equals + 1);
    const char *found = row->labels ? strstr(row->labels, pr_buf_text(&text)) : NULL;
    bool has = found && (found[-1] == '{' || found[-1] == ',');
    pr_buf_done(&text);
    return has;
}

static bool is_wanted(const struct pr_run_row *row, const struct filter *f)
{
    const struct pr_config *c = f->config;
    bool asked = c->of_name || c->of_label.count || c->status || c->since || c->before;
    if (row->trouble)
        return !asked;
    if (c->of_name && fnmatch(c->of_name, row->name ? row->name : "", 0) != 0)
        return false;
    for (size_t i = 0; i < c->of_label.count; i++)
        if (!has_label(row, c->of_label.items[i]))
            return false;
    return (!c->status || pr_run_row_has_status(row, c->status)) && row->started >= f->since &&
           row->started < f->before;
}

/* --- for people ------------------------------------------------------------------------------- */

enum { ID, NODE, STARTED, LASTED, STATUS, CPU, MEMORY, SIZE, COLUMNS };

static const char *const heads[] = {"ID",     "NODE", "STARTED", "LASTED",
                                    "STATUS", "CPU",  "MEMORY",  "SIZE"};

static void human(struct pr_buf *out, double v, enum pr_unit unit)
{
    if (isnan(v))
        pr_buf_char(out, '-');
    else
        pr_units_human(out, v, unit);
}

static void cell(struct pr_buf *out, const struct pr_run_row *row, int column)
{
    const char *slash = row->path ? strrchr(row->path, '/') : NULL;
    pr_buf_reset(out);
    switch (column) {
    case ID:
        pr_text_safe(out, row->id ? row->id : slash ? slash + 1 : "?");
        break;
    case NODE:
        pr_text_safe(out, row->node ? row->node : "");
        break;
    case STARTED:
        if (row->trouble)
            pr_buf_char(out, '-');
        else
            pr_runs_time(out, row->started);
        break;
    case LASTED:
        human(out, row->seconds, UNIT_SECONDS);
        break;
    case STATUS:
        pr_runs_status(out, row);
        break;
    case CPU:
        human(out, row->cpu, UNIT_SECONDS);
        break;
    case MEMORY:
        human(out, row->memory, UNIT_BYTES);
        break;
    default:
        human(out, row->bytes, UNIT_BYTES);
    }
}

static void measure(const struct pr_run_row *rows, size_t count, int *width)
{
    struct pr_buf text = {0};
    for (int column = 0; column < COLUMNS; column++)
        width[column] = (int)strlen(heads[column]);
    bool nodes = false;
    for (size_t i = 0; i < count; i++)
        nodes |= rows[i].node != NULL;
    if (!nodes) /* nobody said so */
        width[NODE] = 0;
    for (size_t i = 0; i < count; i++)
        for (int column = 0; column < COLUMNS; column++) {
            cell(&text, &rows[i], column);
            if ((int)text.len > width[column])
                width[column] = (int)text.len;
        }
    pr_buf_done(&text);
}

/* What it is called, else what it was; cut where the terminal ends. */
static void what(struct pr_buf *out, const struct pr_run_row *row, size_t room)
{
    struct pr_buf text = {0};
    const char *shown = row->trouble   ? row->trouble
                        : row->name    ? row->name
                        : row->command ? row->command
                                       : row->target;
    size_t columns = 0;
    pr_text_safe(&text, shown ? shown : "");
    const char *p = pr_buf_text(&text), *end = p + text.len;
    size_t all = 0;
    for (const char *at = p; at < end; at++)
        all += ((unsigned char)*at & 0xc0) != 0x80;
    while (p < end) {
        size_t n = pr_text_utf8(p, end);
        if (all > room && columns + 3 >= room) {
            pr_buf_str(out, "...");
            break;
        }
        pr_buf_add(out, p, n ? n : 1);
        p += n ? n : 1;
        columns++;
    }
    pr_buf_done(&text);
}

static void put_cells(struct pr_buf *out, const struct pr_run_row *row, const int *width,
                      bool color)
{
    struct pr_buf text = {0};
    for (int column = 0; column < COLUMNS; column++) {
        bool left = column == ID || column == NODE || column == STARTED || column == STATUS;
        const char *code = row && column == STATUS && color ? pr_runs_paint(row) : NULL;
        if (!width[column])
            continue;
        if (row)
            cell(&text, row, column);
        const char *shown = row ? pr_buf_text(&text) : heads[column];
        if (code)
            pr_buf_printf(out, "\033[%sm", code);
        pr_buf_printf(out, left ? "%-*s" : "%*s", width[column], shown);
        pr_buf_printf(out, "%s  ", code ? "\033[0m" : "");
    }
    pr_buf_done(&text);
}

/* How much is left for the last column; where that is too little others give way, the least
 * important first. */
static size_t make_room(int *width, size_t columns)
{
    static const int order[] = {SIZE, MEMORY, CPU, LASTED};
    size_t used = 0, hidden = 0;
    if (!columns)
        return SIZE_MAX;
    for (int column = 0; column < COLUMNS; column++)
        used += width[column] ? (size_t)width[column] + 2 : 0;
    while (used + COMMAND_LEAST > columns && hidden < sizeof order / sizeof *order) {
        used -= (size_t)width[order[hidden]] + 2;
        width[order[hidden++]] = 0;
    }
    return columns > used + COMMAND_LEAST ? columns - used : COMMAND_LEAST;
}

static void print_table(const struct pr_run_row *rows, size_t count, bool color)
{
    struct pr_buf out = {0};
    int width[COLUMNS];
    measure(rows, count, width);
    size_t room = make_room(width, pr_runs_width());
    pr_buf_str(&out, color ? "\033[2m" : "");
    put_cells(&out, NULL, width, false);
    pr_buf_printf(&out, "%s%s\n", room < 15 ? "NAME" : "NAME OR COMMAND", color ? "\033[0m" : "");
    for (size_t i = 0; i < count; i++) {
        put_cells(&out, &rows[i], width, color);
        what(&out, &rows[i], room);
        pr_buf_char(&out, '\n');
    }
    fwrite(out.data, 1, out.len, stdout);
    pr_buf_done(&out);
}

static void print_json(const struct pr_run_row *rows, size_t count)
{
    struct pr_buf out = {0};
    struct pr_json j = {.out = &out, .indent = 2};
    pr_json_open(&j, '[');
    for (size_t i = 0; i < count; i++)
        pr_run_row_json(&j, &rows[i]);
    pr_json_close(&j, ']');
    puts(pr_buf_text(&out));
    pr_buf_done(&out);
}

static int list(const struct filter *f)
{
    struct pr_run_row *rows = NULL;
    ssize_t all = pr_runs_all("ls", &rows);
    size_t count = 0;
    if (all < 0)
        return EXIT_FAILED;
    for (ssize_t i = 0; i < all; i++) {
        if (is_wanted(&rows[i], f))
            rows[count++] = rows[i];
        else
            pr_run_row_done(&rows[i]);
    }
    if (f->config->json)
        print_json(rows, count);
    else if (count)
        print_table(rows, count, pr_wants_color(f->config, STDOUT_FILENO));
    else
        pr_complain("ls: there are no %sruns", all ? "such " : "");
    pr_run_rows_free(rows, count);
    return 0;
}

int pr_main_ls(int argc, char **argv)
{
    struct pr_config c;
    struct filter f = {.config = &c, .since = INT64_MIN, .before = INT64_MAX};
    int status;
    if (pr_cli_begin("ls", argc, argv, &c, &status)) {
        status = EXIT_USAGE;
        if (read_time("--since", c.since, &f.since) && read_time("--before", c.before, &f.before))
            status = list(&f);
    }
    pr_config_done(&c);
    return status;
}
