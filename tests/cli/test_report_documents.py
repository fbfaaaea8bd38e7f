# SPDX-License-Identifier: Apache-2.0
"""Reports as documents: Markdown, text, SVG, PNG. Their numbers are those of the run file, computed here
once more by SQL and written once more in Python."""
import importlib.util
import json
import math
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import xml.etree.ElementTree as ET
from decimal import ROUND_HALF_UP, Decimal

import pytest

from proctor_cli import PROCTOR, ROOT, SANITIZED, finish, query, said, wait_until
from test_report import killed_recorder, long_run, recorded
from test_runs_damage import VALUES, columns, survives

GOLDEN = ROOT / "tests" / "golden" / "report"
SVG = "{http://www.w3.org/2000/svg}"
PLOTS = ["aggregate_uss", "rss_vs_uss", "total_footprint", "aggregate_cpu", "cpu_time", "instance_count"]

_spec = importlib.util.spec_from_file_location("renew", GOLDEN / "renew.py")
renew = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(renew)


@pytest.fixture
def golden(tmp_path):
    return renew.build(tmp_path / "golden.proctor")


def document(proctor, form, *runs, name="x", options=(), env=None):
    """What `proctor report` writes, as text."""
    path = proctor.work / f"{name}.{form}"
    done = proctor("report", *runs, "-o", path, *options, env=env or {})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return path.read_text()


def run_of(proctor, path):
    [run] = json.loads(document(proctor, "json", path, name="model"))["runs"]
    return run


# --- numbers as people have them, once more ---------------------------------------------------------

def fixed(v, digits):
    """A half goes away from 0."""
    return str(Decimal(v).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def three(v):
    return fixed(v, 0 if v == 0 or v >= 99.95 else 1 if v >= 9.995 else 2)


def human(v, unit):
    if unit == "seconds":
        if v >= 99.95:
            s = round(v)
            return (f"{s // 86400} d " if s >= 86400 else "") + (
                f"{s // 3600 % 24} h {s // 60 % 60:02} m {s % 60:02} s" if s >= 3600 else f"{s // 60} m {s % 60:02} s")
        return three(v * 1e3) + " ms" if 0 < v < 0.9995 else three(v) + " s"
    if unit in ("bytes", "bytes/s"):
        names = ["B", "KiB", "MiB", "GiB", "TiB"]
        while v >= 1023.5:
            v, names = v / 1024, names[1:]
        return (fixed(v, 0) if names[0] == "B" else three(v)) + " " + names[0] + unit[5:]
    if unit == "joules" and v >= 3600:
        return three(v / 3600) + " Wh"
    if unit == "ratio":
        return fixed(v * 100, 1 if v < 0.0995 else 0) + " %"
    return fixed(v, 0) if unit == "count" else three(v) + " " + {"cores": "cores", "watts": "W", "joules": "J"}[unit]


def tables(text):
    """The tables of Markdown, by their first title: rows as dictionaries."""
    found = {}
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.M):
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block.splitlines()]
        assert all(len(row) == len(rows[0]) for row in rows), block
        assert all(re.fullmatch(r"-+:?", cell) for cell in rows[1])
        found.setdefault(rows[0][0], [dict(zip(rows[0], row)) for row in rows[2:]])
    return found


# --- against SQL ------------------------------------------------------------------------------------

def test_documents_are_as_they_were_kept(proctor, golden, tmp_path):
    """Where this fails on purpose: tests/golden/report/renew.py build/proctor, and look at the difference."""
    folder = tmp_path / "made"
    folder.mkdir()
    names = renew.write(PROCTOR, golden, folder)
    kept = sorted(str(p.relative_to(GOLDEN)) for p in GOLDEN.rglob("report*") if p.is_file())
    kept += [f"report_files/{n}.svg" for n in PLOTS + ["overview"]]
    assert sorted(set(kept)) == names
    for name in names:
        assert (folder / name).read_text() == (GOLDEN / name).read_text(), name


WEIGHTED = "sum({0} * interval) / sum(interval)"  # a sample stands for the time since the one before
FIGURES = {  # row: table, column, unit, and what its mean is
    "memory, PSS": ("job_samples", "mem_pss_bytes", "bytes", WEIGHTED),
    "memory, RSS": ("job_samples", "mem_rss_bytes", "bytes", WEIGHTED),
    "memory, USS": ("job_samples", "mem_uss_bytes", "bytes", WEIGHTED),
    "processes": ("job_samples", "procs", "count", WEIGHTED),
    "CPU": ("job_samples", "cpu_usage_cores", "cores", "max(cpu_time_seconds) / 60"),
    "CPU, whole machine": ("system_samples", "system_cpu_usage_cores", "cores", "avg({0})"),
    "disk read": ("job_samples", "io_read_rate_bytes_per_second", "bytes/s", "max(io_read_bytes) / 60"),
    "disk written": ("job_samples", "io_write_rate_bytes_per_second", "bytes/s", "max(io_write_bytes) / 60"),
}
TOTALS = {"CPU": ("cpu_time_seconds", "seconds"), "disk read": ("io_read_bytes", "bytes"),
          "disk written": ("io_write_bytes", "bytes"), "network received": ("net_rx_bytes", "bytes"),
          "network sent": ("net_tx_bytes", "bytes"), "power, CPU": ("energy_joules", "joules")}


def check_figures(text, path):
    rows = {row["metric"]: row for row in tables(text)["metric"]}
    for name, (table, column, unit, average) in FIGURES.items():
        [(mean, peak)] = query(path, f"SELECT {average.format(column)}, max({column}) FROM {table}")
        [at] = query(path, f"SELECT min(sample) FROM {table} WHERE {column} = ?", peak)
        row = rows[name]
        assert (row["mean"], row["peak"], row["at"]) == (human(mean, unit), human(peak, unit), human(at, "seconds")), name
    for name, (column, unit) in TOTALS.items():
        [total] = query(path, f"SELECT max({column}) FROM job_samples")
        assert rows[name]["total"] == human(total, unit), name
    [limit] = query(path, "SELECT json_extract(about, '$.limits.memory.bytes') FROM run")
    assert rows["memory, PSS"]["limit"] == "limit " + human(limit, "bytes")
    for k in 0, 1:
        values = query(path, "SELECT avg(gpu_util_ratio), max(gpu_util_ratio), max(gpu_mem_used_bytes), "
                             "max(gpu_power_watts) FROM gpu_samples WHERE entity = ?", 100 + k)[0]
        assert rows[f"GPU {k} busy"]["mean"] == human(values[0], "ratio")
        assert rows[f"GPU {k} busy"]["peak"] == human(values[1], "ratio")
        assert rows[f"GPU {k} mem"]["peak"] == human(values[2], "bytes")
        assert rows[f"power, GPU {k}"]["peak"] == human(values[3], "watts")


def test_the_figures_are_those_of_the_rows(proctor, golden):
    text = document(proctor, "md", golden)
    check_figures(text, golden)
    check_figures((GOLDEN / "report.md").read_text(), golden)
    plain = (GOLDEN / "report.txt").read_text()
    for row in tables(text)["metric"]:  # the same in plain text
        cells = [c for c in row.values() if c]
        assert re.search(r"^" + r"\s+".join(map(re.escape, cells)) + r"$", plain, re.M), row


def test_phases_have_the_figures_of_their_samples(proctor, golden):
    rows = {r["phase"].replace("&nbsp; ", ""): r for r in tables(document(proctor, "md", golden))["phase"]}
    assert list(rows) == ["`load`", "`train`", r"`epoch\|1`", "`save`"]
    for name, start, seconds in query(golden, "SELECT name, start / 1e9, seconds FROM phases"):
        row = rows["`" + name.replace("|", r"\|") + "`"]
        assert (row["begins at"], row["time"]) == (human(start, "seconds"), human(seconds, "seconds"))
        # A phase begins and ends with the first sample behind it.
        first = math.ceil(start) if start else 1
        last = math.ceil(start + seconds)
        [(cpu, peak)] = query(golden, "SELECT max(cpu_time_seconds) - min(cpu_time_seconds), max(mem_pss_bytes) "
                                      "FROM job_samples WHERE sample BETWEEN ? AND ?", first, last)
        assert (row["CPU time"], row["memory peak"]) == (human(cpu, "seconds"), human(peak, "bytes")), name
        # Of the GPUs, what was read after the first of these samples, each reading for the time before it.
        [busy] = query(golden, "SELECT sum(gpu_util_ratio * interval) / sum(interval) FROM gpu_samples "
                               "JOIN job_samples USING (sample) WHERE sample > ? AND sample <= ?",
                       0 if first == 1 else first, last)
        assert row["GPU mean"] == human(busy, "ratio"), name


def test_devices_have_the_figures_of_their_rows(proctor, golden):
    rows = tables(document(proctor, "md", golden))["device"]
    assert [(r["device"], r["model"]) for r in rows] == [("`gpu0`", "`H200`"), ("`gpu1`", "`H200`")]
    for k, row in enumerate(rows):
        [(util, memory, power, energy, temp)] = query(
            golden, "SELECT sum(gpu_util_ratio * interval) / sum(interval), max(gpu_mem_used_bytes), "
                    "sum(gpu_power_watts * interval) / sum(interval), max(gpu_energy_joules) - min(gpu_energy_joules), "
                    "max(gpu_temp_celsius) FROM gpu_samples JOIN job_samples USING (sample) WHERE entity = ?", 100 + k)
        assert list(row.values())[2:] == [human(util, "ratio"), human(memory, "bytes"), human(power, "watts"),
                                          human(energy, "joules"), three(temp) + " \u00b0C"]


def test_processes_are_those_of_the_roll(proctor, golden):
    rows = tables(document(proctor, "md", golden))["process"]
    expected = query(golden, "SELECT e.name, e.pid, cpu_time_seconds, mem_rss_peak_bytes, (e.started - r.started) / 1e9, "
                             "(e.ended - e.started) / 1e9 FROM entities e, run r WHERE kind = 'process' "
                             "ORDER BY cpu_time_seconds DESC")
    assert [[r["process"], r["pid"], r["CPU time"], r["peak RSS"], r["begins at"], r["time"], r["end"]] for r in rows] == [
        ["`" + name + "`", str(pid), human(cpu, "seconds"), human(peak, "bytes"), human(begin, "seconds"),
         human(time, "seconds"), "exit 0"] for name, pid, cpu, peak, begin, time in expected]


BY_NAME = """
WITH rows AS (
  SELECT {name} AS name, p.sample, p.entity, p.mem_uss_bytes AS uss, p.mem_rss_bytes AS rss, p.mem_pss_bytes AS pss,
    p.cpu_user_seconds AS user, p.cpu_system_seconds AS system, p.cpu_time_seconds AS cpu,
    (p.cpu_time_seconds - lag(p.cpu_time_seconds, 1, 0) OVER (PARTITION BY p.entity ORDER BY p.sample)) * 1e9
      / j.interval AS cores
  FROM process_samples p JOIN entities e ON e.id = p.entity JOIN job_samples j ON j.sample = p.sample),
sums AS (SELECT name, sample, sum(uss) AS uss, sum(rss) AS rss, sum(pss) AS pss FROM rows GROUP BY 1, 2),
ends AS (SELECT name, entity, max(user) AS user, max(system) AS system, max(cpu) AS cpu FROM rows GROUP BY 1, 2)
SELECT name, count(DISTINCT entity), count(*), max(uss), (SELECT max(uss) FROM sums s WHERE s.name = r.name),
  (SELECT max(rss) FROM sums s WHERE s.name = r.name), (SELECT max(pss) FROM sums s WHERE s.name = r.name),
  max(cores), (SELECT sum(user) FROM ends s WHERE s.name = r.name), (SELECT sum(system) FROM ends s WHERE s.name = r.name),
  (SELECT sum(cpu) FROM ends s WHERE s.name = r.name), avg(uss), avg(cores), max(sample) - min(sample)
FROM rows r WHERE name IS NOT NULL GROUP BY name ORDER BY name"""
UNITS = ["count", "count", "bytes", "bytes", "bytes", "bytes", "cores", "seconds", "seconds", "seconds", "bytes", "cores",
         "seconds"]


def check_names(text, path, column):
    rows = tables(text)["name"]
    expected = [["`" + values[0] + "`"] + [human(v, unit) for v, unit in zip(values[1:], UNITS)]
                for values in query(path, BY_NAME.format(name=column))]
    assert [list(row.values()) for row in rows] == expected
    [(peak, at)] = query(path, f"SELECT max(uss), sample FROM (SELECT p.sample, sum(p.mem_uss_bytes) AS uss FROM "
                               f"process_samples p JOIN entities e ON e.id = p.entity WHERE {column} IS NOT NULL GROUP BY 1)")
    [memory] = query(path, "SELECT max(system_mem_total_bytes) FROM system_samples")
    assert (f"Peak total USS: {human(peak, 'bytes')} at {human(at, 'seconds')}, {human(peak / memory, 'ratio')} of system "
            f"memory ({human(memory, 'bytes')}).") in text


def test_what_each_name_used_is_what_sql_says(proctor, golden):
    text = document(proctor, "md", golden)
    check_names(text, golden, "e.name")
    check_names((GOLDEN / "report.md").read_text(), golden, "e.name")
    assert list(tables(text)["name"][0]) == [
        "name", "processes", "samples", "peak USS of one", "peak USS together", "peak RSS together", "peak PSS together",
        "peak CPU of one", "CPU user", "CPU system", "CPU time", "mean USS of one", "mean CPU of one", "seen for"]


def test_with_rules_the_names_are_those_of_the_rules(proctor, golden):
    db = sqlite3.connect(golden, isolation_level=None)
    db.execute("UPDATE entities SET match = CASE name WHEN 'worker' THEN 'w' WHEN 'zip' THEN 'z' END")
    db.close()
    text = document(proctor, "md", golden)
    assert "## Processes by --match" in text
    check_names(text, golden, "e.match")


def test_beyond_eight_commands_the_rest_is_other(proctor, golden):
    db = sqlite3.connect(golden, isolation_level=None)
    for k in range(12):
        db.execute("INSERT INTO entities(id, kind, name, pid, started, first, last) SELECT ?, 'process', ?, ?, started, "
                   "2, 3 FROM run", (500 + k, f"tool{k:02}", 5000 + k))
        db.execute("INSERT INTO process_samples(sample, entity, cpu_time_seconds, mem_rss_bytes, mem_uss_bytes) "
                   "VALUES (2, ?, ?, 1e6, 1e6)", (500 + k, 0.01 * (k + 1)))
    db.close()
    names = [row["name"] for row in tables(document(proctor, "md", golden))["name"]]
    assert names == ["`tool07`", "`tool08`", "`tool09`", "`tool10`", "`tool11`", "`train.py`", "`worker`", "`zip`", "`other`"]
    rows = {row["name"]: row for row in tables(document(proctor, "md", golden))["name"]}
    assert rows["`other`"]["processes"] == "7" and rows["`other`"]["CPU time"] == human(0.28, "seconds")


@pytest.mark.parametrize("change, row, column", [
    ("UPDATE job_samples SET mem_pss_bytes = mem_pss_bytes + 1073741824 WHERE sample = 33", "memory, PSS", "peak"),
    ("UPDATE job_samples SET cpu_usage_cores = 3.5 WHERE sample = 20", "CPU", "peak"),
    ("UPDATE gpu_samples SET gpu_util_ratio = 0.95 WHERE sample = 20 AND entity = 101", "GPU 1 busy", "peak"),
    ("UPDATE job_samples SET io_write_bytes = io_write_bytes + 1e9 WHERE sample = 60", "disk written", "total"),
    ("UPDATE system_samples SET system_cpu_usage_cores = 12 WHERE sample = 7", "CPU, whole machine", "at"),
])
def test_a_value_that_is_changed_is_seen(proctor, golden, change, row, column):
    def cell(text):
        return {r["metric"]: r for r in tables(text)["metric"]}[row][column]
    before = {form: document(proctor, form, golden) for form in renew.FORMS}
    db = sqlite3.connect(golden, isolation_level=None)
    db.execute(change)
    db.close()
    after = {form: document(proctor, form, golden) for form in renew.FORMS}
    assert cell(before["md"]) != cell(after["md"])
    check_figures(after["md"], golden)
    for form in renew.FORMS:
        assert before[form] != after[form], form


# --- pictures ---------------------------------------------------------------------------------------

def parse(text):
    """An SVG, which must be whole XML, and must need nothing from anywhere."""
    root = ET.fromstring(text)
    assert root.tag == SVG + "svg" and root.get("role") == "img"
    assert [child.tag for child in root][:2] == [SVG + "title", SVG + "desc"]
    assert all(child.text for child in list(root)[:2])
    tags = {e.tag[len(SVG):] for e in root.iter()}
    assert tags <= {"svg", "title", "desc", "g", "rect", "line", "path", "text"}
    for e in root.iter():
        assert not [a for a in e.attrib if a.startswith("on") or "href" in a or a in ("style", "class", "id")]
        assert "url(" not in "".join(e.attrib.values())
    return root


def words(root):
    return [e.text for e in root.iter(SVG + "text")]


def group(root, title):
    [found] = [g for g in root.iter(SVG + "g") if g[0].tag == SVG + "title" and g[0].text.startswith(title + ".")]
    return found


def points(path):
    return [[(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", part)]
            for part in re.findall(r"M[^M]+", path.get("d"))]


def scale(pairs):
    """From a place to a value, by two ticks of an axis."""
    (a, u), (b, v) = pairs[0], pairs[-1]
    return lambda place: u + (place - a) * (v - u) / (b - a)


def test_the_curve_of_memory_has_the_value_of_each_sample(proctor, golden):
    """Read back from the picture by its axes; where samples are missing, so is the line."""
    root = parse(document(proctor, "svg", golden))
    memory = group(root, "Memory")
    ticks = [(float(e.get("y")) - 3.5, float(e.text)) for e in memory.iter(SVG + "text")
             if e.get("text-anchor") == "end" and re.fullmatch(r"[\d.]+", e.text)]
    times = [(float(e.get("x")), {"0": 0, "1 m": 60}.get(e.text) or float(e.text.split()[0]))
             for e in root if e.tag == SVG + "text" and re.fullmatch(r"0|\d+ s|1 m", e.text)]
    value, time = scale(ticks), scale(times)
    [line] = [e for e in memory.iter(SVG + "path") if e.get("fill") == "none"]
    drawn = {round(time(x)): value(y) * 1024**3 for part in points(line) for x, y in part}
    rows = dict(query(golden, "SELECT sample, mem_pss_bytes FROM job_samples"))
    assert set(drawn) == set(rows)
    per_pixel = abs(value(0) - value(1)) * 1024**3
    assert all(abs(drawn[t] - rows[t]) < 0.3 * per_pixel for t in rows)
    assert [round(time(part[0][0])) for part in points(line)] == [1, 46]
    assert human(max(rows.values()), "bytes") in words(memory)


def test_the_sum_of_cpu_time_keeps_the_dead_and_never_falls(proctor, golden):
    document(proctor, "md", golden)
    root = parse((proctor.work / "x_files" / "cpu_time.svg").read_text())
    ticks = [(float(e.get("y")) - 3.5, float(e.text)) for e in root.iter(SVG + "text")
             if e.get("text-anchor") == "end" and re.fullmatch(r"[\d.]+", e.text)]
    value, ends = scale(ticks), []
    for path in root.iter(SVG + "path"):
        heights = [value(y) for part in points(path) for _, y in part]
        assert all(b >= a - 1e-6 for a, b in zip(heights, heights[1:]))
        ends.append(heights[-1])
    expected = query(golden, "SELECT sum(u) FROM (SELECT e.name, max(p.cpu_time_seconds) AS u FROM process_samples p "
                             "JOIN entities e ON e.id = p.entity GROUP BY p.entity) GROUP BY name ORDER BY name")
    assert ends == pytest.approx(expected, abs=0.5)
    [last] = query(golden, "SELECT max(last) FROM entities WHERE name = 'worker'")
    assert last == 50  # the line goes on behind that


def test_pictures_have_words_for_those_who_do_not_see_them(proctor, golden):
    run = run_of(proctor, golden)
    root = parse(document(proctor, "svg", golden))
    for chart in run["charts"]:
        if chart["place"] == "first":
            assert chart["text"] in root[1].text and chart["text"] in group(root, chart["title"])[0].text
    assert run["verdict"]["text"] in root[1].text and run["name"] == root[0].text
    for finding in run["findings"]:
        assert finding["text"] in " ".join(words(root))
    document(proctor, "md", golden)
    for name in PLOTS:
        assert "worker: most" in parse((proctor.work / "x_files" / f"{name}.svg").read_text())[1].text or name == "rss_vs_uss"


def test_text_can_be_read_on_white(proctor, golden):
    """Contrast of letters at least 4.5, of lines 3."""
    def light(color):
        parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055)**2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    document(proctor, "md", golden)
    for path in (proctor.work / "x_files").glob("*.svg"):
        for e in parse(path.read_text()).iter(SVG + "text"):
            assert 1.05 / (light(e.get("fill")) + 0.05) >= 4.5, (path.name, e.text, e.get("fill"))


def size_of(png):
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", png[16:24])


def test_a_png_is_the_svg_twice_as_large(proctor, golden, png):
    root = parse(document(proctor, "svg", golden))
    done = proctor("report", golden, "-o", "x.png", env=png)
    assert (done.returncode, done.stderr) == (0, "")
    assert size_of((proctor.work / "x.png").read_bytes()) == (2 * int(root.get("width")), 2 * int(root.get("height")))


def test_markdown_with_png(proctor, golden, png):
    text = document(proctor, "md", golden, options=["--images", "png"], env=png)
    found = re.findall(r"!\[[^]]*\]\((.*?)\)", text)
    assert found == [f"x_files/{name}.png" for name in ["overview"] + PLOTS]
    for name in found:
        size_of((proctor.work / name).read_bytes())


def test_without_librsvg_png_says_what_to_install(proctor, golden, tmp_path):
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "librsvg-2.so.2").write_text("no library")
    for words_ in (["-o", "x.png"], ["-o", "x.md", "--images", "png"]):
        done = proctor("report", golden, *words_, env={"LD_LIBRARY_PATH": str(folder)})
        assert done.returncode == 2 and "librsvg2-2" in done.stderr and ".svg" in done.stderr
        assert not (proctor.work / words_[1]).exists()
    done = proctor.run("--report", "r.png", "touch", "started", env={"LD_LIBRARY_PATH": str(folder)})
    assert done.returncode == 125 and "librsvg2-2" in done.stderr and not (proctor.work / "started").exists()


# --- formats agree ----------------------------------------------------------------------------------

JOB = ["sh", "-c", f'"{PROCTOR}" phase one -- python3 -c "x = bytearray(50 << 20); import time; time.sleep(0.3)"; '
                   'head -c 2000000 /dev/zero > out; sync out']


def test_all_forms_say_the_same(proctor):
    path, _ = recorded(proctor, "--match", "py=python", *JOB)
    run = run_of(proctor, path)
    memory = next(s for s in run["series"].values() if s["label"] in ("PSS", "RSS") and s["limit"])
    peak, when = human(memory["stats"]["max"], "bytes"), memory["stats"]["at"]
    at = "" if when is None else human(when, "seconds")  # a mark of the kernel is at no time
    texts = {form: document(proctor, form, path) for form in renew.FORMS}
    row = next(r for r in tables(texts["md"])["metric"] if r["metric"].startswith("memory, " + memory["label"]))
    assert row["peak"] == peak and (row["at"] == at or not at)
    assert re.search(rf"^memory, {memory['label']}\b.* {peak} +{at}", texts["txt"], re.M)
    root = parse(texts["svg"])
    assert f"most {peak}" + (f" at {at}" if at else "") in root[1].text and peak in words(group(root, "Memory"))
    for form in renew.FORMS:
        assert run["verdict"]["text"] in texts[form] and "one" in texts[form]
        for finding in run["findings"]:
            assert finding["text"].split()[0] in texts[form]
    [match] = run["matches"]["rows"]
    [named] = tables(texts["md"])["name"]
    assert named["name"] == "`py`" and named["processes"] == str(match["instances"])
    assert max(len(line) for line in texts["txt"].splitlines()) <= 100
    called = query(path, "SELECT command FROM entities WHERE command LIKE '%python3 -c x =%'")
    assert called and all(r["process"].startswith("`python3 -c x = bytearray(50 << 20)")
                          for r in tables(texts["md"])["process"] if "bytearray" in r["process"])
    assert "python3 -c x = bytearray" in texts["md"]


def test_a_report_of_each_form_at_the_end_of_a_run(proctor):
    wanted = [f"r.{form}" for form in ("md", "txt", "svg", "json")]
    done = proctor.run("-q", "-i", "20ms", "-o", "r.proctor", *[w for name in wanted for w in ("--report", name)],
                       "sh", "-c", "sleep 0.2; exit 4")
    assert (done.returncode, done.stderr) == (4, "")
    for name in wanted:
        assert "failed, exit 4" in (proctor.work / name).read_text()
    for name in re.findall(r"\]\((.*?)\)", (proctor.work / "r.md").read_text()):
        parse((proctor.work / name).read_text())


def test_several_runs_are_one_document(proctor, golden):
    path, _ = recorded(proctor, "--name", "second", "sleep", "0.1")
    text = document(proctor, "md", golden, path)
    assert text.count("\n# `sleep 0.1`") == 1 and text.startswith("# `train.py")
    names = re.findall(r"\]\((.*?)\)", text)
    assert "x_files/1_overview.svg" in names and "x_files/2_overview.svg" in names
    for name in names:
        parse((proctor.work / name).read_text())
    plain = document(proctor, "txt", golden, path)
    assert "train.py" in plain and "sleep 0.1" in plain
    one, two = parse(document(proctor, "svg", golden)), parse(document(proctor, "svg", golden, path))
    assert float(two.get("height")) > float(one.get("height")) and "sleep 0.1" in words(two)


# --- GitHub -----------------------------------------------------------------------------------------

def test_github_gets_markdown_behind_what_it_has(proctor, golden):
    step = proctor.work / "step.md"
    step.write_text("before\n\n")
    env = {"GITHUB_STEP_SUMMARY": str(step)}
    done = proctor("report", golden, "--github", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = step.read_text()
    assert text.startswith("before\n\n# `train.py") and "![" not in text
    check_figures(text, golden)
    check_names(text, golden, "e.name")
    [chart] = re.findall(r"```text\n(.*?)```", text, re.S)
    assert "Memory: PSS, limit 8.00 GiB" in chart and "\u2588" in chart and "\u00b7" in chart
    assert not [p for p in proctor.work.iterdir() if p.name.endswith("_files")]
    done = proctor("report", golden, "--github", "-o", "both.md", env=env)
    assert done.returncode == 0 and step.read_text().count("# `train.py") == 2
    assert "![" in (proctor.work / "both.md").read_text()


def test_the_letters_of_a_curve_are_its_values(proctor, golden):
    """Columns of the text chart: the highest where the highest sample is, none where samples are missing."""
    text = document(proctor, "txt", golden)
    chart = text.split("Memory: PSS")[1].splitlines()[1:5]
    rows = [line.split("|")[1].ljust(80) for line in chart]
    top = [i for i, c in enumerate(rows[0]) if c != " "]
    assert top and all((i + 1) * 60 / 80 > 32 and i * 60 / 80 < 33 for i in top)
    gaps = [i for i, c in enumerate(rows[3]) if c == "\u00b7"]
    assert len(gaps) >= 5 and all(i * 60 / 80 >= 40 and (i + 1) * 60 / 80 <= 45 for i in gaps)


def test_github_without_its_variable_is_an_error(proctor, golden):
    for env in ({}, {"GITHUB_STEP_SUMMARY": ""}):
        done = proctor("report", golden, "--github", env=env)
        assert done.returncode == 2 and "GITHUB_STEP_SUMMARY" in done.stderr
    done = proctor("report", golden, "--github", env={"GITHUB_STEP_SUMMARY": "no/such/file"})
    assert done.returncode == 1 and "No such file" in done.stderr
    before = golden.read_bytes()
    done = proctor("report", golden, "--github", env={"GITHUB_STEP_SUMMARY": str(golden)})
    assert done.returncode == 1 and "is the run itself" in done.stderr and golden.read_bytes() == before


@pytest.mark.parametrize("words_", [["-o", "x.svg", "--images", "png"], ["-o", "x.txt", "--images", "svg"],
                                    ["-o", "x.md", "--images", "gif"]])
def test_images_are_those_of_markdown(proctor, golden, words_):
    done = proctor("report", golden, *words_)
    assert done.returncode == 2 and "images" in done.stderr


# --- text of jobs -----------------------------------------------------------------------------------

HOSTILE = ["</title><script>alert(1)</script>", "]]>", "\x1b[31mred\x1b[0m", "a|b", "c\nd", "``e``", "\u202egnp.exe",
           "<!-- ", "*bold* _x_ [l](http://x) @someone #12 $m$", "&amp;", "![x](y)", "\x01\x7f", "%s%n"]


def hostile_run(proctor):
    path, done = recorded(proctor, "--name", HOSTILE[0], "--label", "k=" + HOSTILE[2], "sh", "-c",
                          f'for n in "$@"; do "{PROCTOR}" phase "$n" -- "{PROCTOR}" mark "$n"; done', *["x"] + HOSTILE)
    assert done.returncode == 0, done.stderr
    db = sqlite3.connect(path, isolation_level=None)
    for k, name in enumerate(HOSTILE):  # names that a file may have
        db.execute("INSERT INTO entities(id, kind, name, pid, started, first, last) SELECT ?, 'process', ?, ?, started, "
                   "1, 2 FROM run", (9000 + k, name, 9000 + k))
        db.execute("INSERT INTO process_samples(sample, entity, cpu_time_seconds, mem_rss_bytes) VALUES (1, ?, ?, 1e6)",
                   (9000 + k, 100 + k))
    db.execute("INSERT INTO entities(id, kind, name, pid, first, last, cpu_time_seconds, known_by) VALUES "
               "(9999, 'process', CAST(x'ff41c3' AS TEXT), 9999, 1, 2, 1e3, 'waited')")
    db.close()
    return path


def test_hostile_text_is_text_in_pictures(proctor):
    path = hostile_run(proctor)
    document(proctor, "md", path)
    texts = [document(proctor, "svg", path)] + [p.read_text() for p in (proctor.work / "x_files").glob("*.svg")]
    for text in texts:
        root = parse(text)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ufffe\uffff]", text)
        assert "alert" not in {e.tag for e in root.iter()}
    assert HOSTILE[0] in [e.text for e in parse(texts[0]).iter(SVG + "title")]


def test_hostile_text_is_text_in_markdown(proctor):
    path = hostile_run(proctor)
    text = document(proctor, "md", path)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    code = r"(?<!`)(`+)(?!`)(?:(?!\1).)*?[^`]\1(?!`)"
    bare = re.sub(code, "", text, flags=re.S)  # code stands for itself
    bare = re.sub(r"\\[\\`*\[\]<>~#$&_|:.]", "", bare)
    tags = set(re.findall(r"<[^>\n]*>", bare))
    assert tags <= {"<details>", "</details>", "<summary>", "</summary>"}, tags
    assert "`" not in bare.replace("```", "")
    names = re.findall(r"!\[[^]]*\]\((.*?)\)", bare)
    assert all(name.startswith("x_files/") for name in names) and len(names) > 1
    assert not re.search(r"[@#][a-z0-9]", re.sub(r"^#+ ", "", bare, flags=re.M))
    tables(text)  # no row has more cells than its head
    [found] = [r for r in tables(text)["phase"] if "a" in r["phase"] and "b" in r["phase"] and len(r["phase"]) < 9]
    assert found["phase"] == r"`a\|b`"


def test_hostile_text_is_text_in_plain_text(proctor):
    text = document(proctor, "txt", hostile_run(proctor))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "\ufffd[31mred" in text and "a|b" in text


# --- all kinds of runs ------------------------------------------------------------------------------

def all_forms(proctor, path):
    """Every form of a run, each in order; Markdown last."""
    found = {form: document(proctor, form, path) for form in ("txt", "svg", "md")}
    parse(found["svg"])
    for name in re.findall(r"\]\((x_files/.*?)\)", found["md"]):
        parse((proctor.work / name).read_text())
    tables(found["md"])
    return found


def test_no_gpu_and_no_phases(proctor):
    path, _ = recorded(proctor, "sleep", "0.3")
    found = all_forms(proctor, path)
    assert "no GPU was seen" in found["svg"] and "## Phases" not in found["md"] and "## Devices" not in found["md"]


def test_without_uss_a_plot_is_missing_and_the_reason_is_there(proctor):
    path, _ = recorded(proctor, "--no-pss", "sleep", "0.3")
    text = all_forms(proctor, path)["md"]
    files = {p.stem for p in (proctor.work / "x_files").glob("*.svg")}
    assert files == {"overview", "rss_vs_uss", "aggregate_cpu", "cpu_time", "instance_count"}
    assert text.count("There is no plot: ") == 2
    [reason] = {r for r in re.findall(r"There is no plot: (.*)\.\n", text)}
    assert "not asked for" in reason
    [row] = [r for r in tables(text)["name"] if r["name"] == "`sleep`"]
    assert row["peak USS together"] == row["mean USS of one"] == "\u2013" and row["peak RSS together"] != "\u2013"


def test_many_phases(proctor, golden):
    db = sqlite3.connect(golden, isolation_level=None)
    db.execute("DELETE FROM phases")
    for k in range(400):
        db.execute("INSERT INTO phases VALUES(?, ?, ?, 0.1, 0, NULL)", (k, f"step {k}", k * 140_000_000))
    db.close()
    found = all_forms(proctor, golden)
    assert "These are 50 of 400 phases" in found["md"] and len(tables(found["md"])["phase"]) == 50
    assert len(found["svg"]) < 300_000


def test_a_month_is_small_and_its_spike_is_seen(proctor):
    seconds = 30 * 86400 if os.environ.get("PROCTOR_TEST_FULL") == "1" else 2 * 86400
    path, _ = recorded(proctor, "true")
    long_run(path, seconds)
    room = "ulimit -v 20480;" if not SANITIZED else ""
    for form in ("svg", "txt", "md"):
        done = subprocess.run(["sh", "-c", f'{room} exec "$@"', "sh", PROCTOR, "report", path, "-o", f"long.{form}"],
                              cwd=proctor.work, env=proctor.env, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    text = (proctor.work / "long.svg").read_text()
    assert len(text) < 150_000 and "30.0 cores" in words(parse(text))
    cpu = group(parse(text), "CPU")
    heights = [y for e in cpu.iter(SVG + "path") if e.get("stroke-opacity") for part in points(e) for _, y in part]
    assert min(heights) < sorted(heights)[1] - 20  # one sample, drawn
    assert "30.0 cores" in (proctor.work / "long.txt").read_text()
    assert "30.0 cores" in (proctor.work / "long.md").read_text()


def test_a_run_that_is_going_on(proctor):
    path = proctor.work / "now.proctor"
    process = proctor.start("run", "-q", "-i", "20ms", "-o", path, "sleep", "60")
    wait_until(lambda: path.exists() and proctor("report", path, "-o", "now.md").returncode == 0, "a report")
    found = all_forms(proctor, path)
    assert "still running" in found["txt"] and "**still running**" in found["md"]
    assert "still there" in found["md"] or "Processes with" not in found["md"]
    process.send_signal(signal.SIGTERM)
    finish(process)


def test_a_run_whose_recorder_was_killed(proctor):
    found = all_forms(proctor, killed_recorder(proctor))
    assert all("not known" in text for text in found.values())


def test_an_empty_record(proctor, golden):
    db = sqlite3.connect(golden, isolation_level=None)
    for table in ("job_samples", "system_samples", "process_samples", "gpu_samples", "phases", "events", "entities"):
        db.execute(f"DELETE FROM {table}")
    db.close()
    found = all_forms(proctor, golden)
    assert "Nothing was measured" in found["md"] and "Nothing was measured" in found["txt"]
    assert "was not measured" in found["svg"]


def test_a_machine(proctor):
    done = proctor("system", "-q", "-i", "100ms", "--duration", "0.6", "-o", "s.proctor")
    assert done.returncode == 0, done.stderr
    found = all_forms(proctor, proctor.work / "s.proctor")
    assert "recording ended" in found["txt"] and "memory, used" in found["md"]


def test_whatever_a_file_has_documents_are_whole(proctor, golden):
    bad = proctor.work / "bad.proctor"
    with sqlite3.connect(golden) as db:
        all_columns = list(columns(db))
    db.close()
    made = 0
    for turn, (table, column) in enumerate(all_columns):
        shutil.copy(golden, bad)
        with sqlite3.connect(bad) as db:
            try:
                db.execute(f"UPDATE {table} SET {column} = {VALUES[turn % len(VALUES)]}")
            except sqlite3.DatabaseError:
                continue  # a key, or NOT NULL
        db.close()
        if survives(proctor, "report", bad, "-o", "any.md") != 0:
            continue
        made += 1
        tables((proctor.work / "any.md").read_text())
        parse((proctor.work / "any_files" / "overview.svg").read_text())
        assert survives(proctor, "report", bad, "-o", "any.txt") == 0
    assert made > 60


# --- files ------------------------------------------------------------------------------------------

def test_pictures_lie_beside_the_document(proctor, golden):
    folder = proctor.work / "a (b) c"
    folder.mkdir()
    done = proctor("report", golden, "-o", folder / "my report.md")
    assert done.returncode == 0, done.stderr
    names = re.findall(r"\]\((.*?)\)\n", (folder / "my report.md").read_text())
    assert names[0] == "my%20report_files/overview.svg"
    assert sorted(p.name for p in folder.iterdir()) == ["my report.md", "my report_files"]
    (proctor.work / "z_files").write_text("not a folder")
    done = proctor("report", golden, "-o", "z.md")
    assert done.returncode == 1 and "z_files" in done.stderr and not (proctor.work / "z.md").exists()
    assert (proctor.work / "z_files").read_text() == "not a folder"


def test_what_cannot_be_written_is_said(proctor, golden):
    for form in ("md", "txt", "svg"):
        done = proctor("report", golden, "-o", f"no/such/x.{form}")
        assert done.returncode == 1 and "No such file" in done.stderr
    (proctor.work / "soon").mkdir()
    done = proctor.run("-q", "--report", "soon/r.md", "sh", "-c", "rmdir soon; exit 5")
    assert done.returncode == 5 and any("the report cannot be written" in line for line in said(done.stderr))
