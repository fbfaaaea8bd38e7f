# SPDX-License-Identifier: Apache-2.0
"""What is to be said about a value besides the value: where it stands, and that all say the same."""
import json

import pytest

from proctor_cli import PROCTOR, query, read_csv

ESTIMATED = "last reading and change of RSS"


def marked(proctor, *options):
    """Who sleeps is not read again: PSS is an estimate in most samples. (values, marks) of each."""
    done = proctor.run("-q", "-i", "20ms", "--jsonl", "a.jsonl", "--csv", "a.csv", "-o", "a.proctor",
                       "--summary", proctor.summary_file, *options, "sleep", "0.3")
    assert done.returncode == 0, done.stderr
    lines = map(json.loads, (proctor.work / "a.jsonl").read_text().splitlines())
    return [(s["values"], s.get("marks", {})) for s in lines if s["type"] == "sample"]


def test_marks_are_in_json_lines_and_the_run_file_and_not_in_csv(proctor):
    samples = marked(proctor)
    kept = query(proctor.work / "a.proctor", "SELECT m.json FROM job_samples s JOIN mark_sets m"
                 " ON m.id = s.marks ORDER BY s.sample")
    assert [json.loads(text) for text in kept] == [marks for _, marks in samples]
    assert any(marks.get("mem.pss") == ESTIMATED for _, marks in samples)
    known = set(query(proctor.work / "a.proctor", "SELECT column_name FROM metrics"))
    assert set(read_csv(proctor.work / "a.csv")[0]) - known == {"timestamp", "elapsed_seconds", "interval_seconds"}
    text = (proctor.work / "a.csv").read_text()
    assert "lower bound" not in text and ESTIMATED not in text


def test_a_share_of_memory_is_known_as_well_as_the_memory(proctor):
    samples = marked(proctor)
    of = [(m.get("mem.pss"), m.get("mem.ratio")) for v, m in samples if v["mem.ratio"] is not None]
    assert (ESTIMATED, ESTIMATED) in of and all(pss == ratio for pss, ratio in of)
    metrics = proctor.summary()["metrics"]
    assert metrics["mem.ratio"]["mark"] == metrics["mem.pss"]["mark"] == ESTIMATED
    shown = map(str.strip, proctor("show", "a.proctor").stdout.splitlines())
    assert f"({ESTIMATED})" in next(line for line in shown if line.startswith("mem.ratio"))


def test_a_share_of_memory_alone_is_marked(proctor):
    """PSS was not asked for, and is read for it."""
    samples = marked(proctor, "--select", "mem.ratio")
    assert {"mem.ratio": ESTIMATED} in [marks for _, marks in samples]
    assert all(set(marks) <= {"mem.ratio"} for _, marks in samples)


@pytest.mark.parametrize("words, estimated", [
    (["-i", "20ms", "--budget", "0.001%"], True),
    (["-i", "1s", "--budget", "1000%"], False),  # who sleeps is read again after 0.9 s
    (["-i", "20ms", "--no-pss"], False)], ids=["often", "seldom", "no-pss"])
def test_an_estimate_is_called_one_where_it_is_shown(proctor, words, estimated):
    """In the lines at the end, of the job, of phases and of names, and in the tables of show."""
    job = f"{PROCTOR} phase nap -- sleep 2.2"
    done = proctor.run(*words, "--match", "sleeper=^sleep$", "-o", "a.proctor", "--summary", proctor.summary_file,
                       "sh", "-c", job)
    assert done.returncode == 0, done.stderr
    summary = proctor.summary()
    parts = {"memory": summary, "phase": summary["phases"][0], "by name": summary["matches"][0]}
    for part in parts.values():
        mark = part["metrics"].get("mem.pss", {}).get("mark")
        assert (mark == ESTIMATED) == estimated and mark in (ESTIMATED, None), part["metrics"]
    lines = [line for line in done.stderr.splitlines() if "PSS" in line or "RSS" in line]
    assert len(lines) == 3 and all(("PSS (estimated)" in line) == estimated for line in lines), done.stderr
    assert all("RSS (" not in line for line in lines)
    shown = proctor("show", "a.proctor").stdout.splitlines()
    for name in ("nap", "sleeper"):
        [line] = [line for line in shown if line.startswith(f"  {name} ")]
        assert line.endswith(" (estimated)") == estimated, line
