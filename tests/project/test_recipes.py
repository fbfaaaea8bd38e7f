# SPDX-License-Identifier: Apache-2.0
"""To add a metric touch exactly: one row in metrics.def and one line in a reader. To add a dialect: a file of rows, a
line in dialects.def and one in meson.build."""
import csv
import json
import subprocess


ROW = '''METRIC(MEM_TABLES, .key = "mem.tables", .scope = SCOPE_PROC | SCOPE_JOB, .kind = KIND_GAUGE,
       .unit = UNIT_BYTES, .fold = FOLD_SUM, .needs = READ_STATUS, .from = "/proc/PID/status VmPTE",
       .help = "page tables")
'''
LINE = '    {"VmPTE:", METRIC_MEM_TABLES, 1024},\n'


def add_metric(clone):
    table = clone / "src/core/metrics.def"
    text = table.read_text()
    at = text.index("METRICS_END(PROC_METRICS)")
    table.write_text(text[:at] + ROW + text[at:])
    reader = clone / "src/source/pid_status.c"
    text = reader.read_text()
    at = text.index('    {"VmHWM:"')
    reader.write_text(text[:at] + LINE + text[at:])


def test_a_metric_is_one_row_and_one_line(clone, clean_env):
    add_metric(clone)
    build = clone / "build"
    for command in (["meson", "setup", build, "-Dtests=disabled"], ["ninja", "-C", build]):
        subprocess.run(command, cwd=clone, check=True, capture_output=True)
    proctor = build / "proctor"
    subprocess.run([proctor, "run", "-i", "20ms", "--csv", "a.csv", "--processes", "--summary", "s.json", "sleep",
                    "0.1"], cwd=clone, env=clean_env, check=True, capture_output=True)
    for name in ("a.csv", "a.processes.csv"):
        rows = list(csv.DictReader(open(clone / name)))
        assert float(rows[1]["mem_tables_bytes"]) > 0, name
    summary = json.loads((clone / "s.json").read_text())
    assert summary["metrics"]["mem.tables"]["peak"] > 0
    catalogue = json.loads(subprocess.run([proctor, "metrics", "--json"], check=True, capture_output=True).stdout)
    assert [m for m in catalogue if m["key"] == "mem.tables" and m["meaning"] == "page tables"]
    table = subprocess.run([proctor, "metrics"], check=True, capture_output=True, text=True).stdout
    assert "mem.tables" in table
    document = subprocess.run([build / "gendoc", "metrics"], check=True, capture_output=True, text=True).stdout
    assert "`mem_tables_bytes`" in document
    watched = subprocess.run([build / "watch"], check=True, capture_output=True, text=True).stdout
    assert "samples" in watched


DIALECT = '''/* SPDX-License-Identifier: Apache-2.0 */
/* A tool that likes semicolons. */
#include "sink/dialects/fields.h"

static const struct pr_column columns[] = {
    {.name = "t", .number = pr_field_elapsed, .decimals = 1, .ours = "seconds since the start"},
    {.name = "ram", .metric = METRIC_MEM_RSS, .per = KIB, .shape = SHAPE_WHOLE},
    {.name = "cpu", .metric = METRIC_CPU_TIME, .take = TAKE_DELTA, .decimals = 3, .note = "theirs is late"},
};
static const struct pr_table samples = {.name = "samples",
                                        .file = "semicolons.csv",
                                        .separator = ";",
                                        .newline = "\\n",
                                        .absent = "none",
                                        .header = true,
                                        COLUMNS(columns),
                                        .about = "all that it has"};
static const struct pr_table *const tables[] = {&samples, NULL};
const struct pr_dialect pr_dialect_semicolons = {"a tool that likes semicolons", tables};
'''


def test_a_dialect_is_one_file_of_rows(clone, clean_env):
    (clone / "src/sink/dialects/semicolons.c").write_text(DIALECT)
    table = clone / "src/core/dialects.def"
    table.write_text(table.read_text() + 'DIALECT("semicolons", pr_dialect_semicolons)\n')
    sources = clone / "meson.build"
    line = "  'src/sink/dialects/snakemake.c',\n"
    sources.write_text(sources.read_text().replace(line, "  'src/sink/dialects/semicolons.c',\n" + line))
    build = clone / "build"
    for command in (["meson", "setup", build, "-Dtests=disabled"], ["ninja", "-C", build]):
        subprocess.run(command, cwd=clone, check=True, capture_output=True)
    subprocess.run([build / "proctor", "run", "-q", "-i", "20ms", "--csv", "a.csv", "--dialect", "semicolons", "sleep",
                    "0.1"], cwd=clone, env=clean_env, check=True, capture_output=True)
    header, *rows = (clone / "a.csv").read_text().splitlines()
    assert header == "t;ram;cpu" and len(rows) >= 3
    assert int(rows[1].split(";")[1]) > 100 and rows[-1].split(";")[1] == "none"
    document = subprocess.run([build / "gendoc", "dialects"], check=True, capture_output=True, text=True).stdout
    assert "## semicolons" in document and "theirs is late" in document
