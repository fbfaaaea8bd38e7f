# SPDX-License-Identifier: Apache-2.0
"""What is to be said about a value besides the value: where it stands, and that all say the same."""
import json
import sys

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


GROWS = "import time; time.sleep(1); a = bytearray(b'x' * 100_000_000); time.sleep(0.3)"


@pytest.mark.parametrize("words", [["--budget", "0.001%"], ["--budget", "1000%"], ["--no-pss"]],
                         ids=["once", "often", "no-pss"])
def test_an_estimate_is_called_one_where_it_is_shown(proctor, words):
    """A peak that is no reading: in the lines at the end, of the job, of phases and of names, and in the tables of
    show."""
    job = f'{PROCTOR} phase nap -- {sys.executable} -c "{GROWS}"'
    done = proctor.run(*words, "-i", "20ms", "--match", "grower=^python", "-o", "a.proctor", "--summary",
                       proctor.summary_file, "sh", "-c", job)
    assert done.returncode == 0, done.stderr
    summary = proctor.summary()
    parts = {"memory": summary, "phases": summary["phases"][0], "by name": summary["matches"][0]}
    estimated = {name: part["metrics"].get("mem.pss", {}).get("peak_mark") == ESTIMATED for name, part in parts.items()}
    if words[0] == "--no-pss":
        assert not any(estimated.values())
    elif words[1] == "0.001%":
        assert all(estimated.values()), estimated
    lines = {name: next(line for line in done.stderr.splitlines() if line.split()[:len(name.split())] == name.split())
             for name in parts}
    assert {name: "PSS (estimated)" in line for name, line in lines.items()} == estimated, done.stderr
    assert not any("RSS (" in line for line in lines.values())
    shown = proctor("show", "a.proctor").stdout.splitlines()
    for name, part in (("nap", "phases"), ("grower", "by name")):
        [line] = [line for line in shown if line.startswith(f"  {name} ")]
        assert line.endswith(" (estimated)") == estimated[part], line
