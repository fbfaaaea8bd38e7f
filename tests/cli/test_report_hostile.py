# SPDX-License-Identifier: Apache-2.0
"""Reports and comparisons of run files that say anything: each of these once crashed, hung, or passed a gate."""
import json
import os
import re
import sqlite3
import subprocess

import pytest

from proctor_cli import HERE

KNOWN = HERE.parent / "golden" / "report" / "run.sql"
MANY = ("WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1900)"
        " INSERT INTO job_samples(sample, elapsed, interval, marks, cpu_usage_cores)"
        " SELECT i, {elapsed}, 1000000000, 1, 0.5 FROM n")


def made(proctor, *statements, name="bad.proctor"):
    path = proctor.work / name
    with sqlite3.connect(path) as db:
        db.executescript(KNOWN.read_text())
        for statement in statements:
            db.execute(statement)
    db.close()
    return path


@pytest.mark.parametrize("statements", [
    ["DELETE FROM job_samples", MANY.format(elapsed="(i - 1450) * 1000000000")],
    ["DELETE FROM job_samples", MANY.format(elapsed="(i - 3000) * 1000000000")],
    ["UPDATE job_samples SET cpu_usage_cores = 1.79e308"],
    ["UPDATE job_samples SET cpu_usage_cores = -1.79e308"],
    ["UPDATE job_samples SET io_read_rate_bytes_per_second = 1.2e308, io_write_rate_bytes_per_second = 1.2e308"],
    ["UPDATE gpu_samples SET gpu_util_ratio = -1e308"],
    ["UPDATE process_samples SET cpu_time_seconds = 1.79e308"],
], ids=["around-0", "below-0", "huge", "huge-below-0", "huge-rates", "huge-share", "huge-time"])
@pytest.mark.parametrize("ending", ["svg", "md", "txt", "html", "json"])
def test_figures_beyond_all_measure(proctor, statements, ending):
    done = proctor("report", made(proctor, *statements), "-o", f"x.{ending}", timeout=60)
    assert done.returncode == 0, done.stderr
    assert 0 < (proctor.work / f"x.{ending}").stat().st_size < 1 << 20


def test_processes_that_are_each_others_parents_come_once(proctor):
    path = made(proctor, "UPDATE entities SET started = 5 WHERE kind = 'process'",
                "UPDATE entities SET ppid = (SELECT pid FROM entities o WHERE o.kind = 'process' AND o.id <> entities.id"
                " ORDER BY o.id LIMIT 1) WHERE kind = 'process'")
    assert proctor("report", path, "-o", "x.json").returncode == 0
    [run] = json.loads((proctor.work / "x.json").read_text())["runs"]
    pids = [p["pid"] for p in run["processes"]["list"]]
    assert len(pids) == len(set(pids)) > 1


@pytest.mark.parametrize("runs", [["x"], [7], [None], [[]]])
def test_a_baseline_of_anything_passes_no_gate(proctor, runs):
    (proctor.work / "base.json").write_text(json.dumps({"proctor_baseline": 1, "runs": runs}))
    for words in ([], ["--fail-if", "duration > 1s"], ["--fail-if", "duration > 1s", "--save-baseline", "new.json"]):
        done = proctor("compare", "--baseline", "base.json", made(proctor), *words)
        assert done.returncode == 2 and "base.json" in done.stderr
        assert not (proctor.work / "new.json").exists()
        (proctor.work / "bad.proctor").unlink()


def test_a_comparison_that_cannot_be_printed_is_no_finding(proctor):
    path = made(proctor)
    done = subprocess.run(["sh", "-c", '"$0" compare "$1" "$1" > /dev/full', proctor.path, path], cwd=proctor.work,
                          env=proctor.env, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 2 and "standard output" in done.stderr


def test_a_link_in_the_way_of_a_temporary_file_is_not_followed(proctor):
    path, victim = made(proctor), proctor.work / "victim"
    victim.write_text("mine")
    script = 'ln -s "$PWD/victim" "x.txt.$$.tmp"; exec "$@"'
    subprocess.run(["sh", "-c", script, "sh", proctor.path, "report", path, "-o", "x.txt"], cwd=proctor.work,
                   env=proctor.env, check=True, timeout=60)
    assert victim.read_text() == "mine" and not os.path.islink(proctor.work / "x.txt")


def test_no_number_of_marks_crowds_trouble_out(proctor):
    path = made(proctor, "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1999)"
                " INSERT INTO events(id, elapsed, event, name, data)"
                " SELECT i, i * 10000000, 'mark', 'm' || i, '{}' FROM n",
                "INSERT INTO events(id, elapsed, event, text) VALUES(5000, 55000000000, 'oom', 'the kernel killed it')")
    for ending in ("svg", "txt", "md", "json"):
        assert proctor("report", path, "-o", f"x.{ending}").returncode == 0
        assert "the kernel killed it" in (proctor.work / f"x.{ending}").read_text(), ending
    said = re.search(r"These are (\d+) of ([\d,]+) events", (proctor.work / "x.txt").read_text().replace("\n", " "))
    assert int(said[1]) < 100 and int(said[2].replace(",", "")) > 1000


@pytest.mark.parametrize("whose, kind, severity", [("of the cgroup", "oom", "bad"), ("on this machine", "oom", "bad"),
                                                   ("elsewhere on this machine", "note", "note")])
def test_a_kill_elsewhere_is_only_noted(proctor, whose, kind, severity):
    path = made(proctor, "INSERT INTO events(id, elapsed, event, text) VALUES(5000, 1000000000, 'oom',"
                f" 'the kernel killed 1 process {whose} for want of memory')")
    assert proctor("report", path, "-o", "x.json").returncode == 0
    [run] = json.loads((proctor.work / "x.json").read_text())["runs"]
    [event] = [e for e in run["events"] if "killed 1 process" in e["text"]]
    assert (event["kind"], event["severity"]) == (kind, severity)


def test_names_of_runs_call_nobody_in_markdown(proctor):
    path = made(proctor, "UPDATE run SET about = json_set(about, '$.name', '@octocat see https://evil.example $x$')")
    assert proctor("compare", path, path, "-o", "x.md").returncode == 0
    text = (proctor.work / "x.md").read_text()
    assert "octocat" in text and "@octocat" not in text and "https://" not in text and " $x$" not in text
