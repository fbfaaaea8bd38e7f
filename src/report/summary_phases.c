/* SPDX-License-Identifier: Apache-2.0 */
/* What the job said about itself: its phases and marks. */
#include <math.h>

#include "report/page.h"
#include "util/text.h"

#define PHASES_SHOWN 4
#define NAME_SHOWN   20 /* bytes */

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_all(struct pr_json *j, const struct pr_phases *p, const struct pr_phase *phases,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pr_json_open(j, '{');
        pr_phase_put(j, p, &phases[i]);
        pr_json_close(j, '}');
    }
}

void pr_summary_phases(struct pr_json *j, const struct pr_session *s)
{
    const struct pr_phases *p = &s->phases;
    static const char *const keys[] = {"phases", "marks", "refused"};
    const unsigned long counts[] = {p->ended, p->marked, p->refused};
    pr_json_key(j, "phases");
    pr_json_open(j, '[');
    put_all(j, p, p->kept, p->kept_count);
    put_all(j, p, p->folded, p->folded_count);
    pr_json_close(j, ']');
    pr_json_key(j, "annotations");
    pr_json_open(j, '{');
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        pr_json_key(j, keys[i]);
        pr_json_int(j, (int64_t)counts[i]);
    }
    pr_json_close(j, '}');
}

void pr_summary_marks(struct pr_json *j, const struct pr_session *s)
{
    for (size_t i = 0; i < s->phases.marks_kept; i++) {
        const struct pr_mark_kept *m = &s->phases.marks[i];
        pr_json_open(j, '{');
        pr_json_key(j, "type");
        pr_json_string(j, "mark");
        pr_json_key(j, "at");
        pr_json_number(j, m->at);
        pr_json_key(j, "seconds");
        pr_json_number(j, 0);
        pr_json_key(j, "text"); /* all events have one */
        pr_json_string(j, m->name);
        pr_json_key(j, "name");
        pr_json_string(j, m->name);
        pr_json_key(j, "data");
        pr_json_raw(j, m->data ? m->data : "{}");
        pr_json_close(j, '}');
    }
}

/* --- for people ------------------------------------------------------------------------------- */

static void one_phase(struct pr_page *p, const struct pr_phase *phase)
{
    struct pr_stats stats;
    struct pr_buf name = {0};
    pr_phase_stats(&p->s->phases, phase, &stats);
    const struct pr_stat *v = stats.metric;
    bool pss = v[METRIC_MEM_PSS].known * 2 > v[METRIC_MEM_RSS].known &&
               pr_phase_saw(phase, METRIC_MEM_PSS);
    double memory = pss ? v[METRIC_MEM_PSS].max : v[METRIC_MEM_RSS].max;
    double cpu = pr_stats_total(&stats, METRIC_CPU_TIME);
    pr_text_safe(&name, phase->name);
    bool cut = name.len > NAME_SHOWN;
    for (name.len = cut ? NAME_SHOWN : name.len;
         cut && ((unsigned char)name.data[name.len] & 0xc0) == 0x80;)
        name.len--; /* not in the middle of a character */
    pr_buf_printf(p->out, "%s%s ", pr_buf_text(&name), cut ? "..." : "");
    pr_page_human(p, phase->seconds, UNIT_SECONDS);
    if (!isnan(cpu)) {
        pr_buf_str(p->out, ", CPU ");
        pr_page_human(p, cpu, UNIT_SECONDS);
    }
    if (!isnan(memory) && pr_phase_saw(phase, METRIC_MEM_RSS))
        pr_page_bytes(p, ", peak ", memory, pr_page_memory(v, pss));
    pr_buf_done(&name);
}

/* The longest one that is shorter than the one before, or as long and behind it; NULL for none. */
static const struct pr_phase *next_phase(const struct pr_phases *p, const struct pr_phase *before)
{
    const struct pr_phase *best = NULL;
    for (size_t i = 0; i < p->kept_count; i++) {
        const struct pr_phase *one = &p->kept[i];
        bool later = !before || one->seconds < before->seconds ||
                     (one->seconds == before->seconds && one > before);
        if (later && (!best || one->seconds > best->seconds))
            best = one;
    }
    return best;
}

void pr_page_phases(struct pr_page *p)
{
    const struct pr_phases *phases = &p->s->phases;
    const struct pr_phase *next = next_phase(phases, NULL);
    if (!next)
        return;
    pr_page_label(p, "phases");
    for (int i = 0; i < PHASES_SHOWN && next; i++) {
        pr_buf_str(p->out, i ? "; " : "");
        one_phase(p, next);
        next = next_phase(phases, next);
    }
    if (next)
        pr_buf_printf(p->out, "; ... (%lu in all)", phases->ended);
    pr_page_end(p);
}
