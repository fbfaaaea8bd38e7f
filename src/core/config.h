/* SPDX-License-Identifier: Apache-2.0 */
/* Every setting of a recording, filled from the option table: default, config file, variable,
 * option, the later over the earlier. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/command_bit.h"
#include "core/error.h"

enum pr_option_id {
#define OPTION(id, ...) OPTION_##id,
#include "core/options.def"
#undef OPTION
    OPTION_COUNT,
};

enum pr_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_VARIABLE, ORIGIN_OPTION };
#define LABEL_KEY_MAX 255 /* bytes */

enum pr_option_type {
    TYPE_FLAG,
    TYPE_DURATION,
    TYPE_SIZE,
    TYPE_NUMBER,
    TYPE_PERCENT,
    TYPE_COUNT,
    TYPE_TEXT,
    TYPE_CHOICE,
    TYPE_LIST,
    TYPE_LABELS,
    TYPE_KEYS,
    TYPE_MATCH,
};

struct pr_list {
    char **items;
    size_t count;
};

struct pr_config {
    double interval, duration, memory_total, cpu_total, budget, flush_timeout; /* 0 is unset */
    double average;
    bool no_children, force, no_record, processes, no_pss, no_gpu, mlflow_join, otlp_command,
        wait_tree, strict, quiet, verbose, json;
    bool machine; /* not an option: `proctor system`, where there is no job */
    bool kept;    /* not an option: the command's runs are recorded unless it is told otherwise */
    /* Texts are borrowed from `text` below. */
    const char *group, *cgroup, *output, *dialect, *table, *name, *run_id, *node, *exact, *peaks,
        *summary, *mlflow, *otlp, *prefix, *root, *color;
    struct pr_list csv, jsonl, prometheus, textfile, match, label, report, select;
    /* Of comparisons and suggestions. */
    const char *save_baseline, *align, *compare_into, *scheduler, *push_mlflow, *push_otlp;
    struct pr_list fail_if, baseline;
    double margin; /* percent */
    /* Of the commands on recorded runs. */
    const char *of_name, *status, *since, *before, *format, *into, *images, *keep;
    struct pr_list of_label, report_into;
    bool with_processes, even_running, even_elsewhere, dry_run, all, github, allow_failed;
    char *text[OPTION_COUNT]; /* as given; lists joined by commas */
    uint8_t origin[OPTION_COUNT];
};

struct pr_option {
    const char *name, *arg, *preset, *implied, *choices, *min_text, *help;
    char letter;
    enum pr_option_type type;
    size_t field; /* offset in struct pr_config */
    double min;
    unsigned commands; /* CMD_ bits */
    bool optional_arg, no_env, secret;
};

extern const struct pr_option pr_options[OPTION_COUNT];

/* All defaults. 0 or -ENOMEM. */
int pr_config_init(struct pr_config *c);
void pr_config_done(struct pr_config *c);
/* The option with this long name, or OPTION_COUNT: of recording where several commands have one. */
enum pr_option_id pr_option_find(const char *name);
/* The one that these commands have, else any of that name; the same by its letter. */
enum pr_option_id pr_option_find_of(const char *name, unsigned commands);
enum pr_option_id pr_option_find_letter(char letter, unsigned commands);
/* Sets one option. `what` is how the user wrote it ("--interval", "PROCTOR_INTERVAL", "file:3") and
 * begins the message of a failure. An origin below the present one changes nothing. */
int pr_config_set(struct pr_config *c, enum pr_option_id id, const char *value,
                  enum pr_origin origin, const char *what, struct proctor_error *err);
/* Is there a run file: of --output and --no-record the one that was said more closely to this run.
 */
bool pr_config_is_recorded(const struct pr_config *c);
/* Is more told of a run than the lines at its end? In the library anybody may ask for anything. */
bool pr_config_is_told(const struct pr_config *c);
/* The dialect of the outputs, NULL for our own; -EINVAL where there is a table and no dialect. */
const char *pr_config_dialect(const struct pr_config *c);
int pr_config_check_table(const struct pr_config *c, struct proctor_error *err);
/* Applies the config file and the PROCTOR_* variables that the command takes. */
int pr_config_environment(struct pr_config *c, unsigned command, struct proctor_error *err);
/* The text of a config file, which is cut up by it; text[len] must be a NUL. */
int pr_config_text(struct pr_config *c, unsigned command, char *text, size_t len, const char *path,
                   struct proctor_error *err);
/* The variable's name into text: "PROCTOR_NO_PSS". */
void pr_option_variable(const struct pr_option *o, char *text, size_t size);
const char *pr_origin_name(enum pr_origin origin);
/* The config file's path into text; false where there is no home. */
bool pr_config_path(char *text, size_t size);
