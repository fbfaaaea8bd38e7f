/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor metrics` and `proctor config`: what there is, and what is set. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "publish/address.h"
#include "util/json.h"
#include "util/text.h"

static void print_json(void)
{
    struct pr_buf out = {0};
    struct pr_json j = {.out = &out, .indent = 2};
    pr_json_open(&j, '[');
    for (int id = 0; id < METRIC_COUNT; id++) {
        const struct pr_metric *m = &pr_metrics[id];
        const char *const fields[][2] = {{"key", m->key},
                                         {"unit", pr_units_name(m->unit)},
                                         {"kind", pr_metric_kind_name(m->kind)},
                                         {"scope", pr_metric_scope_name(m->scope)},
                                         {"source", m->from},
                                         {"meaning", m->help}};
        pr_json_open(&j, '{');
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
            pr_json_key(&j, fields[i][0]);
            pr_json_string(&j, fields[i][1]);
        }
        pr_json_close(&j, '}');
    }
    pr_json_close(&j, ']');
    puts(pr_buf_text(&out));
    pr_buf_done(&out);
}

static void print_table(void)
{
    printf("%-24s %-16s %-8s %-18s %s\n", "KEY", "UNIT", "KIND", "SCOPE", "MEANING (SOURCE)");
    for (int id = 0; id < METRIC_COUNT; id++) {
        const struct pr_metric *m = &pr_metrics[id];
        printf("%-24s %-16s %-8s %-18s %s (%s)\n", m->key, pr_units_name(m->unit),
               pr_metric_kind_name(m->kind), pr_metric_scope_name(m->scope), m->help, m->from);
    }
}

bool pr_cli_begin(const char *name, int argc, char **argv, struct pr_config *c, int *ret_status)
{
    const struct pr_command *command = pr_command_find(name);
    bool help = false;
    *ret_status = EXIT_USAGE;
    int first = pr_config_init(c) < 0 ? -1 : pr_cli_parse(command, argc, argv, c, &help);
    if (help) {
        pr_cli_help(command);
        *ret_status = 0;
        return false;
    }
    if (first > 0 && first < argc && argv[first]) {
        pr_complain("%s: '%s' is too much: it takes no operands", name, argv[first]);
        return false;
    }
    return first > 0;
}

int pr_main_metrics(int argc, char **argv)
{
    struct pr_config c;
    int status;
    if (pr_cli_begin("metrics", argc, argv, &c, &status)) {
        if (c.json)
            print_json();
        else
            print_table();
        status = 0;
    }
    pr_config_done(&c);
    return status;
}

/* It may come from anywhere, and goes to a terminal. */
static void print_safe(const char *text, int width)
{
    struct pr_buf safe = {0};
    pr_text_safe(&safe, text);
    printf("%-*s", width, pr_buf_text(&safe));
    pr_buf_done(&safe);
}

int pr_main_config(int argc, char **argv)
{
    struct pr_config c;
    struct proctor_error err;
    char path[4096];
    int status;
    if (!pr_cli_begin("config", argc, argv, &c, &status)) {
        pr_config_done(&c);
        return status;
    }
    /* What is wrong is said, and what is right is shown all the same. */
    bool good = pr_config_environment(&c, CMD_RUN | CMD_ATTACH | CMD_SYSTEM, &err) == 0;
    if (!good)
        pr_complain("config: %s", err.message);
    if (pr_config_path(path, sizeof path)) {
        printf("# config file: ");
        print_safe(path, 0);
        puts(access(path, F_OK) < 0 ? " (not there)" : "");
    }
    for (int id = 0; id < OPTION_COUNT; id++) {
        const struct pr_option *o = &pr_options[id];
        if (!(o->commands & (CMD_RUN | CMD_ATTACH | CMD_SYSTEM)))
            continue;
        const char *value = c.text[id] ? c.text[id] : o->type == TYPE_FLAG ? "false" : "";
        printf("%-16s = ", o->name);
        if (o->secret && c.text[id])
            pr_address_hide(c.text[id]);
        print_safe(value, 12);
        printf(" # %s\n", pr_origin_name((enum pr_origin)c.origin[id]));
    }
    pr_config_done(&c);
    return good ? 0 : EXIT_USAGE;
}
