# SPDX-License-Identifier: Apache-2.0
"""To add a metric touch exactly: one row in metrics.def and one line in a reader."""
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
