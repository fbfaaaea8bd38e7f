/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor compare`: runs beside a baseline; with --fail-if a gate. Whatever keeps it from an
 * answer exits with 2, so that 1 says one thing alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/written.h"
#include "cli/runs.h"
#include "report/compare.h"
#include "report/model_parts.h"
#include "util/fs.h"

#define RUNS_MOST  100
#define DRAWN_MOST 20 /* runs in a page */

enum { EXIT_HOLDS = 1, EXIT_NO_ANSWER = EXIT_USAGE };
enum form { FORM_NONE, FORM_HTML, FORM_JSON, FORM_MARKDOWN };

struct compare {
    const struct pr_config *config;
    struct pr_comparison all;
    struct pr_stored *runs[2][RUNS_MOST]; /* of the baseline, of the present */
    size_t count[2];
};

/* --- who is compared -------------------------------------------------------------------------- */

static bool add_run(struct compare *c, int side, const char *name)
{
    struct proctor_error err;
    if (c->count[side] == RUNS_MOST) {
        pr_complain("compare: '%.80s' is too much: at most %d runs on a side", name, RUNS_MOST);
        return false;
    }
    struct pr_stored *r = pr_runs_open("compare", name);
    if (!r)
        return false;
    c->runs[side][c->count[side]++] = r;
    if (pr_side_add_run(&c->all.side[side], r, &err) == 0)
        return true;
    pr_complain("compare: %s", err.message);
    return false;
}

/* A file that is no database is one of --save-baseline; else it names a run as elsewhere. */
static bool is_baseline_file(const char *path)
{
    static const char database[] = "SQLite format 3";
    char begin[sizeof database] = "";
    return pr_fs_read(AT_FDCWD, path, begin, sizeof begin) >= 0 && strcmp(begin, database) != 0;
}

static bool add_baseline(struct compare *c, const char *name)
{
    struct proctor_error err;
    if (!is_baseline_file(name))
        return add_run(c, 0, name);
    if (pr_side_add_file(&c->all.side[0], c->runs[1][0]->db, name, &err) == 0)
        return true;
    pr_complain("compare: %s", err.message);
    return false;
}

static bool gather(struct compare *c, char *const *names, size_t count)
{
    const struct pr_list *baseline = &c->config->baseline;
    bool first_is_it = !baseline->count && !c->config->save_baseline;
    for (size_t i = 0; i < count; i++)
        if (!add_run(c, first_is_it && i == 0 ? 0 : 1, names[i]))
            return false;
    for (size_t i = 0; i < baseline->count; i++)
        if (!add_baseline(c, baseline->items[i]))
            return false;
    return true;
}

static bool read_gates(struct compare *c)
{
    const struct pr_list *list = &c->config->fail_if;
    struct proctor_error err;
    c->all.gates.items = calloc(list->count + 1, sizeof *c->all.gates.items);
    for (size_t i = 0; c->all.gates.items && i < list->count; i++) {
        if (pr_gate_parse(&c->all.gates.items[i], list->items[i], &err) < 0) {
            pr_complain("compare: %s", err.message);
            return false;
        }
        c->all.gates.count++;
    }
    return c->all.gates.items != NULL;
}

/* --- what is written -------------------------------------------------------------------------- */

static bool form_of(const char *path, enum form *ret)
{
    static const struct {
        const char *ending;
        enum form form;
    } forms[] = {
        {".html", FORM_HTML}, {".htm", FORM_HTML}, {".json", FORM_JSON}, {".md", FORM_MARKDOWN}};
    struct proctor_error err;
    const char *dot = path ? strrchr(path, '.') : NULL;
    *ret = FORM_NONE;
    for (size_t i = 0; dot && i < sizeof forms / sizeof *forms; i++)
        if (strcasecmp(dot, forms[i].ending) == 0)
            *ret = forms[i].form;
    if (path && *ret == FORM_NONE)
        pr_complain("compare: '%.300s': its ending says what it is: .html, .json or .md", path);
    else if (*ret == FORM_HTML && pr_model_html_ready(&err) < 0)
        pr_complain("compare: %s", err.message);
    else
        return true;
    return false;
}

/* A curve of it, and not only a mark. */
static bool has_memory(const struct pr_model *m, enum pr_group group, enum pr_metric_id id)
{
    const struct pr_model_series *s = pr_model_find(m, group);
    return s && s->metric && strcmp(s->metric, pr_metrics[id].key) == 0 &&
           m->curves.items[s->curve].known > 0;
}

/* Their memory is of one kind: curves of two cannot be laid over each other. */
static int read_models(struct pr_model *models, struct pr_stored *const *runs, size_t count,
                       struct proctor_error *err)
{
    bool rss = false;
    int code = 0;
    for (size_t i = 0; code == 0 && i < count; i++) {
        code = pr_model_read(&models[i], runs[i], MODEL_BYTES / count, err);
        rss |= code == 0 && has_memory(&models[i], GROUP_MEMORY, METRIC_MEM_RSS);
    }
    for (size_t i = 0; code == 0 && rss && i < count; i++)
        if (has_memory(&models[i], GROUP_MEMORY, METRIC_MEM_PSS) &&
            has_memory(&models[i], GROUP_RSS, METRIC_MEM_RSS)) {
            pr_model_done(&models[i]);
            code = pr_model_read_rss(&models[i], runs[i], MODEL_BYTES / count, err);
        }
    return code;
}

/* The models of all runs that have curves. */
static int draw(struct compare *c, enum form form, struct pr_buf *out, struct proctor_error *err)
{
    struct pr_buf comparison = {0};
    struct pr_stored *runs[DRAWN_MOST];
    const struct pr_model *list[DRAWN_MOST];
    bool present[DRAWN_MOST];
    int side;
    size_t count = 0, at;
    for (; pr_comparison_nth(&c->all, count, &side, &at); count++) {
        if (count == DRAWN_MOST)
            return pr_error(err, E2BIG, "-o: at most %d runs are drawn; .md takes more",
                            DRAWN_MOST);
        runs[count] = c->runs[side][at];
        present[count] = side == 1;
    }
    struct pr_model *models = calloc(count, sizeof *models);
    int code = models ? 0 : pr_error(err, ENOMEM, "out of memory");
    if (code == 0)
        code = read_models(models, runs, count, err);
    for (size_t i = 0; code == 0 && i < count; i++) {
        list[i] = &models[i];
        if (present[i])
            pr_compare_finding(&models[i], &c->all);
    }
    pr_compare_model(&comparison, &c->all);
    if (code == 0 && form == FORM_HTML) {
        code = pr_model_html_compared(out, list, count, pr_buf_text(&comparison), err);
    } else if (code == 0) {
        pr_model_json_compared(out, list, count, pr_buf_text(&comparison));
        pr_buf_char(out, '\n');
    }
    for (size_t i = 0; models && i < count; i++)
        pr_model_done(&models[i]);
    free(models);
    pr_buf_done(&comparison);
    return code;
}

static bool put_file(struct compare *c, const char *path, const struct pr_buf *text)
{
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < c->count[s]; i++)
            if (pr_runs_is_file(path, c->runs[s][i]->path)) {
                pr_complain("compare: '%.300s' is the run itself", path);
                return false;
            }
    int code = text->failed ? -ENOMEM : pr_report_replace(path, text);
    if (code < 0)
        pr_complain("compare: %s: '%.300s'", strerror(-code), path);
    return code == 0;
}

static bool write_file(struct compare *c, enum form form)
{
    struct pr_buf text = {0};
    struct proctor_error err;
    int code = 0;
    if (form == FORM_MARKDOWN)
        pr_compare_markdown(&text, &c->all);
    else
        code = draw(c, form, &text, &err);
    if (code < 0)
        pr_complain("compare: %s", err.message);
    bool good = code == 0 && put_file(c, c->config->compare_into, &text);
    pr_buf_done(&text);
    return good;
}

static bool save(struct compare *c)
{
    struct pr_buf text = {0};
    struct proctor_error err;
    for (size_t i = 0; i < c->all.side[1].count && !c->config->allow_failed; i++)
        if (pr_case_failed(&c->all.side[1].items[i], &err)) {
            pr_complain("compare: --save-baseline: %s", err.message);
            return false;
        }
    pr_side_save(&text, &c->all.side[1]);
    bool good = put_file(c, c->config->save_baseline, &text);
    pr_buf_done(&text);
    return good;
}

/* --- the command ------------------------------------------------------------------------------ */

static void print(const struct compare *c)
{
    struct pr_buf text = {0};
    (c->config->json ? pr_compare_json : pr_compare_text)(&text, &c->all);
    fwrite(text.data, 1, text.len, stdout);
    pr_buf_done(&text);
}

/* Does what was printed stand where complaints go? Then nothing is said twice. */
static bool is_seen(const struct compare *c)
{
    struct stat out, err;
    return !c->config->json && fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
           out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

/* Says which conditions hold, and which cannot be told. One that holds is an answer. */
static int answer(const struct compare *c)
{
    struct pr_buf words = {0};
    bool any = false, unknown = false, seen = is_seen(c);
    for (size_t i = 0; i < c->all.gates.count; i++) {
        const struct pr_gate *g = &c->all.gates.items[i];
        any |= g->holds;
        unknown |= *g->why.message != '\0';
        pr_buf_reset(&words);
        pr_gate_words(&words, &c->all, g);
        if (!seen && (g->holds || *g->why.message))
            pr_complain("compare: --fail-if: %s", pr_buf_text(&words));
    }
    pr_buf_done(&words);
    return any ? EXIT_HOLDS : unknown ? EXIT_NO_ANSWER : 0;
}

static int compare(struct compare *c, char *const *names, size_t count, enum form form)
{
    struct proctor_error err;
    if (!gather(c, names, count))
        return EXIT_NO_ANSWER;
    if (c->config->save_baseline && !c->config->baseline.count)
        return save(c) ? 0 : EXIT_NO_ANSWER;
    if (pr_compare(&c->all, strcmp(c->config->align, "phase") == 0, &err) < 0) {
        pr_complain("compare: %s", err.message);
        return EXIT_NO_ANSWER;
    }
    print(c);
    if (form != FORM_NONE && !write_file(c, form))
        return EXIT_NO_ANSWER;
    int status = answer(c);
    if (status != 0) /* what is worse does not become the baseline */
        return status;
    return c->config->save_baseline && !save(c) ? EXIT_NO_ANSWER : 0;
}

/* Is there anything to compare, and with what? */
static bool is_enough(const struct pr_config *c, size_t count)
{
    bool saves = c->save_baseline && !c->baseline.count;
    if (saves && (c->fail_if.count || c->compare_into))
        pr_complain(
            "compare: --save-baseline without --baseline compares nothing: leave %s out, or "
            "name a baseline",
            c->fail_if.count ? "--fail-if" : "-o");
    else if (!saves && !c->baseline.count && count < 2)
        pr_complain(
            "compare: there is one run alone: name a second one, or what to compare it with by "
            "--baseline");
    else
        return true;
    return false;
}

int pr_main_compare(int argc, char **argv)
{
    struct pr_config config;
    struct compare *c = calloc(1, sizeof *c);
    enum form form;
    int status, first = pr_runs_begin("compare", argc, argv, 1, RUNS_MOST, &config, &status);
    size_t count = 0;
    while (first && first + (int)count < argc && argv[first + (int)count])
        count++;
    if (first && c) {
        c->config = &config;
        c->all.allow_failed = config.allow_failed;
        status = EXIT_NO_ANSWER;
        if (is_enough(&config, count) && form_of(config.compare_into, &form) && read_gates(c))
            status = compare(c, argv + first, count, form);
    }
    for (int s = 0; c && s < 2; s++)
        for (size_t i = 0; i < c->count[s]; i++)
            pr_stored_close(c->runs[s][i]);
    if (c)
        pr_comparison_done(&c->all);
    free(c);
    pr_config_done(&config);
    return status == 0 && fflush(stdout) != 0 ? EXIT_NO_ANSWER : status; /* 1 would be a finding */
}
