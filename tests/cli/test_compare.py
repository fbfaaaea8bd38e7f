# SPDX-License-Identifier: Apache-2.0
"""`proctor compare`: differences, the gate, baseline files, the rank test."""
import itertools
import json
import math
import os
import random
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess

import pytest

from proctor_cli import PROCTOR, query, wait_until
from test_findings import leak, shaped
from test_report import in_page, keeps_to_contract, page  # noqa: F401 (a fixture)

ESTIMATED = "last reading and change of RSS"
JOB = f"""
"{PROCTOR}" phase load -- python3 -c "x = bytearray($0 << 20); import time; time.sleep(0.2)"
"{PROCTOR}" phase work -- python3 -c 'sum(range(2000000))'
"""


def recorded(proctor, name, *words):
    path = proctor.work / f"{name}.proctor"
    done = proctor.run("-q", "-i", "20ms", "--name", name, "-o", path, *words)
    assert done.returncode == 0, done.stderr
    return path


def changed(path, to, **figures):
    """A copy of a run with other figures: cpu_time__total=3 is metrics."cpu.time".total."""
    shutil.copy(path, to)
    db = sqlite3.connect(to, isolation_level=None)
    for key, v in figures.items():
        name, _, stat = key.rpartition("__")
        where = f'$.metrics."{name.replace("_", ".")}".{stat}' if name else "$.run.duration"
        db.execute("UPDATE summary SET json = json_set(json, ?, json(?))", (where, json.dumps(v)))
    db.execute("UPDATE run SET id = ?", (to.stem,))
    db.execute("UPDATE summary SET json = json_set(json, '$.run.id', ?)", (to.stem,))
    db.close()
    return to


@pytest.fixture
def plain(proctor):
    return recorded(proctor, "plain", "sleep", "0.1")


def made(proctor, plain, *values, begin="r", key="cpu_time__total"):
    """Runs that differ in one figure alone."""
    return [changed(plain, proctor.work / f"{begin}{i}.proctor", **{key: v}) for i, v in enumerate(values)]


def compare(proctor, *words, status=0):
    done = proctor("compare", *words)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


def rows_of(proctor, *words, status=0):
    """(rows by phase, metric and statistic, everything)"""
    result = json.loads(compare(proctor, *words, "--json", status=status).stdout)
    return {(r["phase"], r["metric"], r["stat"]): r for r in result["rows"]}, result


# --- figures --------------------------------------------------------------------------------------

def test_figures_are_those_of_the_records(proctor):
    small, large = (recorded(proctor, name, "sh", "-c", JOB, mib) for name, mib in (("small", 30), ("large", 90)))
    rows, result = rows_of(proctor, small, large)
    assert (result["failed"], result["align"]) == (False, "start")
    for key, path in (("duration", "$.run.duration"), ("cpu.time", '$.metrics."cpu.time".total'),
                      ("mem.rss.peak", '$.metrics."mem.rss.peak".peak')):
        was, now = (query(p, "SELECT json_extract(json, ?) FROM summary", path)[0] for p in (small, large))
        [row] = [r for (phase, metric, _), r in rows.items() if (phase, metric) == (None, key)]
        assert row["baseline"]["values"] == [was] and row["runs"]["values"] == [now]
        assert row["difference"] == pytest.approx(now - was, abs=1e-6)
        assert row["ratio"] == pytest.approx(now / was - 1, abs=1e-6)
        assert row["p"] is None and row["beyond_noise"] is None
    assert rows[None, "mem.rss.peak", "peak"]["difference"] > 50 << 20
    assert rows[None, "mem.rss.peak", "peak"]["severity"] == "warn"


def test_the_table_says_which_way(proctor, plain):
    a, b = made(proctor, plain, 2.0, 3.0)
    text = compare(proctor, a, b).stdout
    assert re.search(r"^cpu\.time +2\.00 s +3\.00 s +50 % more \(\+1\.00 s\)$", text, re.M)
    assert re.search(r"^baseline +r0 .*exit 0$", text, re.M) and re.search(r"^run +r1 ", text, re.M)
    assert re.search(r"^cpu\.time +3\.00 s +2\.00 s +33 % less \(-1\.00 s\)$", compare(proctor, b, a).stdout, re.M)
    assert re.search(r"^cpu\.time +3\.00 s +3\.00 s +the same$", compare(proctor, b, b).stdout, re.M)


def test_what_is_absent_on_a_side_is_said_and_what_is_nowhere_is_left_out(proctor, plain):
    a, b = made(proctor, plain, 2.0, None)
    rows, _ = rows_of(proctor, a, b)
    assert rows[None, "cpu.time", "total"]["difference"] is None
    assert not [key for key in rows if key[1].startswith("gpu")]
    assert re.search(r"^cpu\.time +2\.00 s +absent +absent$", compare(proctor, a, b).stdout, re.M)
    assert re.search(r"^cpu\.time +absent +2\.00 s +not in the baseline$", compare(proctor, b, a).stdout, re.M)


def test_several_runs_have_columns_and_a_median(proctor, plain):
    runs = made(proctor, plain, 2.0, 3.0, 5.0, 4.0)
    text = compare(proctor, *runs).stdout
    assert re.search(r"^metric +baseline +run 1 +run 2 +run 3 +median of 3 +least +difference$", text, re.M)
    assert re.search(r"^cpu\.time +2\.00 s +3\.00 s \+50 % +5\.00 s \+150 % +4\.00 s \+100 % +4\.00 s +3\.00 s +"
                     r"100 % more \(\+2\.00 s\)$", text, re.M)


def test_machines_are_compared_too(proctor):
    for name in ("m1", "m2"):
        done = proctor("system", "-q", "-i", "100ms", "--duration", "0.5", "-o", f"{name}.proctor")
        assert done.returncode == 0, done.stderr
    rows, _ = rows_of(proctor, "m1.proctor", "m2.proctor")
    assert rows[None, "system.mem.used", "peak"]["baseline"]["median"] > 0
    compare(proctor, "m1.proctor", "m2.proctor", "--fail-if", "system.mem.used > 1T")


def test_peaks_of_few_samples_are_marked(proctor, plain):
    a, b = (changed(plain, proctor.work / f"{n}.proctor", mem_pss__peak=v, mem_pss__mark="known in few samples")
            for n, v in (("a", 1e9), ("b", 1e6)))
    rows, _ = rows_of(proctor, a, b)
    row = rows[None, "mem.pss", "peak"]
    assert row["few_samples"] and row["severity"] == "note"
    for expr in ("mem.pss.peak > +10%", "mem.pss.peak > 2GiB"):
        done = compare(proctor, a, b, "--fail-if", expr, status=2)
        assert f"{expr} cannot be told: mem.pss.peak is known in few samples of" in done.stderr
        assert "take mem.rss.peak" in done.stderr and "shorter -i" in done.stderr


def test_what_is_estimated_is_marked_and_judged_all_the_same(proctor, plain):
    """Also where the baseline is a file."""
    (a, c), b = ([changed(plain, proctor.work / f"{n}.proctor", mem_pss__peak=1e6, mem_pss__mark=mark)
                  for n, mark in (("a", ESTIMATED), ("c", None))],
                 changed(plain, proctor.work / "b.proctor", mem_pss__peak=1e9, mem_pss__mark=None))
    compare(proctor, "--save-baseline", "base.json", a)
    for baseline, estimated in ((a, True), (c, False), ("base.json", True)):
        words = ("--baseline", baseline, b)
        row = rows_of(proctor, *words)[0][None, "mem.pss", "peak"]
        assert (row["estimated"], row["few_samples"], row["severity"]) == (estimated, False, "warn")
        assert not rows_of(proctor, *words)[0][None, "mem.rss.peak", "peak"]["estimated"]
        done = compare(proctor, *words, "--fail-if", "mem.pss.peak > +10%", status=1)
        assert ("mem.pss.peak (estimated)  " in done.stdout) == estimated and "estimated" not in done.stderr
        compare(proctor, *words, "--fail-if", "mem.pss.peak > 2GiB")


def test_a_run_shorter_than_its_interval_has_no_gauges(proctor):
    """Its one sample is of its first moment, before the job had anything."""
    job = ["python3", "-c", "x = bytearray(64 << 20); import time; time.sleep(0.5)"]
    for name in ("s1", "s2"):
        assert proctor.run("-q", "-i", "60s", "-o", f"{name}.proctor", *job).returncode == 0
    rows, _ = rows_of(proctor, "s1.proctor", "s2.proctor")
    assert rows[None, "mem.pss", "peak"]["few_samples"] and not rows[None, "mem.rss.peak", "peak"]["few_samples"]
    assert "mem.pss.peak (few samples)" in compare(proctor, "s1.proctor", "s2.proctor").stdout
    for expr in ("mem.pss.peak > +10%", "mem.rss.mean > 1GiB", "threads > 100"):
        done = compare(proctor, "s1.proctor", "s2.proctor", "--fail-if", expr, status=2)
        assert "is known in few samples of" in done.stderr and "shorter -i" in done.stderr
    compare(proctor, "s1.proctor", "s2.proctor", "--fail-if", "mem.rss.peak > 10GiB", "--fail-if", "cpu.time > 1h")
    compare(proctor, "--save-baseline", "base.json", "s1.proctor")
    done = compare(proctor, "--baseline", "base.json", "s2.proctor", "--fail-if", "mem.rss > +10%", status=2)
    assert "of the baseline" in done.stderr


# --- the gate -------------------------------------------------------------------------------------

@pytest.mark.parametrize("expr, holds", [
    ("cpu.time > +10%", True), ("cpu.time > +60%", False), ("cpu.time >= +50%", True), ("cpu.time>+50%", False),
    ("cpu.time < -10%", False), ("cpu.time > 90s", False), ("cpu.time > 2500ms", True), ("cpu.time >= 3", True),
    ("cpu.time < 1h", True), ("cpu.time.total <= 3 s", True), ("cpu.time > +0.9s", True), ("cpu.time > +1.1s", False),
    ("duration > 100s", False), ("duration < 1d", True),
    ("mem.rss.peak > 0.5KiB", True), ("mem.rss.peak > 1T", False), ("mem.rss.peak.peak > 1B", True),
    ("mem.rss.peak > 0", True),
    ("mem.rss.peak.mean < 1T", True), ("mem.rss.min > 1T", False),
    ("cpu.percent > 10000%", False), ("cpu.ratio < 90%", True), ("procs.started >= 1", True),
])
def test_conditions(proctor, plain, expr, holds):
    a, b = made(proctor, plain, 2.0, 3.0)
    for path in (a, b):
        changed(path, proctor.work / "x.proctor", cpu_ratio__mean=0.5, cpu_percent__mean=50, mem_rss__min=1e6,
                mem_rss__integral=None, mem_rss_peak__peak=3e6, mem_rss_peak__mean=2e6, procs_started__total=1)
        shutil.move(proctor.work / "x.proctor", path)
    done = compare(proctor, a, b, "--fail-if", expr, status=1 if holds else 0)
    assert (f"{expr} holds" in done.stderr) == holds
    assert f"{expr} {'holds' if holds else 'does not hold'}: " in done.stdout


def test_a_condition_that_holds_has_the_figures(proctor, plain):
    a, b = made(proctor, plain, 2.0, 3.0)
    done = compare(proctor, a, b, "--fail-if", "cpu.time > +10%", "--fail-if", "duration > 1h", "--fail-if",
                   "cpu.time > 2.5s", status=1)
    assert done.stderr.splitlines() == [
        "proctor: compare: --fail-if: cpu.time > +10% holds: 3.00 s, baseline 2.00 s, which allows 2.20 s",
        "proctor: compare: --fail-if: cpu.time > 2.5s holds: 3.00 s"]
    rows, result = rows_of(proctor, a, b, "--fail-if", "cpu.time > +10%", "--fail-if", "duration > 1h", status=1)
    assert result["failed"] and [g["holds"] for g in result["gates"]] == [True, False]
    assert rows[None, "cpu.time", "total"]["severity"] == "bad"


@pytest.mark.parametrize("expr, text", [
    ("nonsense", "not KEY[.STAT] OP THRESHOLD"), ("cpu.time >", "not KEY[.STAT] OP THRESHOLD"),
    ("> 3", "not KEY[.STAT] OP THRESHOLD"), ("cpu.time => 3", "not KEY[.STAT] OP THRESHOLD"),
    ("cpu.time >> 3", "not KEY[.STAT] OP THRESHOLD"), ("cpu.tiem > 3", "no metric 'cpu.tiem'; `proctor metrics`"),
    ("cpu.time.most > 3", "'most' is no statistic"), ("cpu.time.peak > 3", "has no peak; it has total"),
    ("mem.pss.total > 3", "has no total; it has peak, mean, min and last"),
    ("mem.pss.peak > 10%", "Write +10% for so much more"), ("mem.pss.peak > 10s", "'10s' is no threshold in bytes"),
    ("cpu.time > +x%", "'+x%' is no threshold"), ("gpu.util > 3", "of each device alone"),
    ("mem.rss.peak > 120", "120 of what? Write 120MiB, or 120B"), ("mem.rss.peak > +120", "+120 of what? Write +120MiB"),
    ("io.read.rate > 2.5", "Write 2.5MiB/s"),
    ("x" * 500 + " > 1", "not KEY"), ("cpu.time > 1" + "0" * 200, "not KEY"), ("cpu.time > 1\x1b[31m", "no threshold"),
])
def test_wrong_conditions_are_explained(proctor, plain, expr, text):
    done = compare(proctor, plain, plain, "--fail-if", expr, status=2)
    assert text in done.stderr and done.stdout == "" and "\x1b" not in done.stderr


def test_an_absent_metric_is_no_pass(proctor, plain):
    a, b = made(proctor, plain, 2.0, None)
    for words, where in ((["--fail-if", "cpu.time > +10%", a, b], "absent in r1;"),
                         (["--fail-if", "cpu.time > +10%", b, a], "absent in r1, of the baseline"),
                         (["--fail-if", "cpu.time > 3s", a, b], "absent in r1;"),
                         (["--fail-if", "gpu.mem > 3GB", a, a], "gpu.mem.peak is absent in r0;")):
        assert where in compare(proctor, *words, status=2).stderr
    # the table and the file are there all the same, and a condition that holds is an answer
    words = [a, b, "--fail-if", "cpu.time > +10%", "--fail-if", "duration > 1h"]
    done = compare(proctor, *words, "-o", "x.md", status=2)
    assert re.search(r"^duration ", done.stdout, re.M) and "cpu.time > +10% cannot be told: " in done.stdout
    assert "- **not decided**: cpu.time \\> +10% cannot be told" in (proctor.work / "x.md").read_text()
    assert [g["holds"] for g in rows_of(proctor, *words, status=2)[1]["gates"]] == [None, False]
    done = compare(proctor, *words, "--fail-if", "duration > 1ms", status=1)
    assert "duration > 1ms holds" in done.stderr and "cannot be told" in done.stderr
    compare(proctor, b, a, "--fail-if", "cpu.time > 3s")  # of the baseline nothing is asked


@pytest.mark.parametrize("words, text", [
    ([], "a run is missing"), (["last"], "one run alone"), (["nothing", "like-that"], "nothing"),
    (["last", "last", "-o", "x.doc"], ".html, .json or .md"), (["last", "last", "--align", "x"], "start phase"),
    (["last", "--save-baseline", "x", "--fail-if", "cpu.time > 3"], "compares nothing"),
])
def test_wrong_usage_is_explained(proctor, words, text):
    done = compare(proctor, *words, status=2)
    assert text in done.stderr and done.stdout == ""


# --- repeats --------------------------------------------------------------------------------------

def middle_ranks(values):
    return [sum(w < v for w in values) + (sum(w == v for w in values) + 1) / 2 for v in values]


def by_permutation(a, b):
    """The definition: how many ways to divide the figures have ranks at least as far apart."""
    ranks = middle_ranks(a + b)
    mean, found = len(a) * (len(a) + len(b) + 1) / 2, sum(ranks[:len(a)])
    ways = [sum(way) for way in itertools.combinations(ranks, len(a))]
    return sum(abs(w - mean) >= abs(found - mean) - 1e-9 for w in ways) / len(ways)


def by_normal(a, b):
    n, m = len(a), len(b)
    ranks, total = middle_ranks(a + b), n + m
    ties = sum((a + b).count(v) ** 3 - (a + b).count(v) for v in set(a + b))
    deviation = math.sqrt(n * m / 12 * (total + 1 - ties / (total * (total - 1))))
    off = abs(sum(ranks[:n]) - n * (total + 1) / 2) - 0.5
    return min(1, 2 * (1 - statistics.NormalDist().cdf(off / deviation)))


def p_of(proctor, plain, a, b):
    base = ["--baseline", write_baseline(proctor, a)]
    rows, _ = rows_of(proctor, *base, *made(proctor, plain, *b))
    return rows[None, "cpu.time", "total"]


def write_baseline(proctor, values):
    path = proctor.work / "made.json"
    path.write_text(json.dumps({"proctor_baseline": 1, "runs": [
        {"run": {"id": f"b{i}", "duration": 1}, "metrics": {"cpu.time": {"total": v}}}
        for i, v in enumerate(values)]}))
    return path


def test_the_rank_test_is_exact(proctor, plain):
    chance = random.Random(20261115)
    cases = [([1, 2, 3], [4, 5, 6]), ([1, 2, 3, 4], [5, 6, 7, 8]), ([1, 3, 5, 7], [2, 4, 6, 8]),
             ([1, 1, 1], [1, 1, 1]), ([1, 2, 2, 2], [2, 2, 3])]
    for _ in range(12):
        few = chance.random() < 0.5  # many ties
        cases.append(tuple([chance.randint(0, 4) if few else chance.random() for _ in range(chance.randint(3, 7))]
                           for _ in range(2)))
    for a, b in cases:
        row = p_of(proctor, plain, a, b)
        assert row["p"] == pytest.approx(by_permutation(a, b), abs=1e-8), (a, b)
        assert row["baseline"]["median"] == pytest.approx(statistics.median(a), abs=1e-8)
        assert row["runs"]["median"] == pytest.approx(statistics.median(b), abs=1e-8)
        assert row["runs"]["min"] == pytest.approx(min(b), abs=1e-8)


def test_many_repeats_are_told_apart_by_the_normal_approximation(proctor, plain):
    chance = random.Random(7)
    for shift in (0, 0.2, 0.5, 3):
        a = [round(chance.random(), 1) for _ in range(30)]
        b = [round(chance.random() + shift, 1) for _ in range(15)]
        assert p_of(proctor, plain, a, b)["p"] == pytest.approx(by_normal(a, b), abs=1e-8)


def test_whether_it_is_beyond_noise_is_said(proctor, plain):
    assert p_of(proctor, plain, [1, 2, 3, 4], [5, 6, 7, 8])["beyond_noise"] is True
    assert p_of(proctor, plain, [1, 3, 5, 7], [2, 4, 6, 8])["beyond_noise"] is False
    assert p_of(proctor, plain, [1, 2, 3], [5, 6, 7])["beyond_noise"] is None  # p is never below 0.1 there
    assert p_of(proctor, plain, [1, 2], [5, 6, 7])["p"] is None
    base = write_baseline(proctor, [1, 2, 3, 4])
    text = compare(proctor, "--baseline", base, *made(proctor, plain, 5, 6, 7, 8)).stdout
    assert re.search(r"^cpu\.time .*beyond noise, p 0\.029$", text, re.M)
    base = write_baseline(proctor, [1, 2, 3])
    text = compare(proctor, "--baseline", base, *made(proctor, plain, 5, 6, 7)).stdout
    assert "noise" not in text and re.search(r"^cpu\.time .*200 % more \(\+4\.00 s\)$", text, re.M)


def test_a_gate_with_repeats_takes_medians_and_says_p(proctor, plain):
    base = write_baseline(proctor, [1.0, 1.1, 1.2, 9.0])
    runs = made(proctor, plain, 2.0, 2.1, 2.2, 0.1)
    done = compare(proctor, "--baseline", base, *runs, "--fail-if", "cpu.time > +50%", status=1)
    p = by_permutation([1.0, 1.1, 1.2, 9.0], [2.0, 2.1, 2.2, 0.1])
    assert f"holds: 2.05 s (median of 4), baseline 1.15 s (median of 4), which allows 1.73 s, within noise, p {p:.2f}" \
        in done.stderr
    done = compare(proctor, "--baseline", runs[0], "--baseline", runs[1], runs[2], "--fail-if", "cpu.time > +10%")
    assert "baseline 2.05 s (median of 2)" in done.stdout


# --- baseline files -------------------------------------------------------------------------------

def test_a_baseline_is_as_good_as_the_runs_themselves(proctor):
    runs = [recorded(proctor, f"n{i}", "sh", "-c", JOB, 20 + i) for i in range(3)]
    assert compare(proctor, "--save-baseline", "base.json", *runs[:2]).stdout == ""
    filed, _ = rows_of(proctor, "--baseline", "base.json", runs[2], "--align", "phase")
    direct, _ = rows_of(proctor, "--baseline", runs[0], "--baseline", runs[1], runs[2], "--align", "phase")
    assert filed.keys() == direct.keys()
    for key, row in filed.items():
        assert row["baseline"]["values"] == pytest.approx(direct[key]["baseline"]["values"], rel=1e-6, abs=1e-8), key


def test_a_baseline_can_be_read_and_its_differences_too(proctor, plain):
    a, b = made(proctor, plain, 2.0, 3.0)
    compare(proctor, "--save-baseline", "a.json", a)
    compare(proctor, "--save-baseline", "b.json", b)
    kept = json.loads((proctor.work / "a.json").read_text())
    assert kept["proctor_baseline"] == 1 and kept["runs"][0]["metrics"]["cpu.time"] == {"total": 2}
    assert not [k for k in kept["runs"][0]["metrics"] if k.startswith("system.")]
    lines = [(proctor.work / n).read_text().splitlines() for n in ("a.json", "b.json")]
    different = [pair for pair in zip(*lines) if pair[0] != pair[1]]
    assert len(lines[0]) == len(lines[1]) and len(different) == 2, different  # the id, and CPU time


def test_a_baseline_is_not_replaced_by_what_is_worse(proctor, plain):
    a, b, c = made(proctor, plain, 2.0, 3.0, 1.9)
    compare(proctor, "--save-baseline", "base.json", a)
    before = (proctor.work / "base.json").read_text()
    words = ["--baseline", "base.json", "--save-baseline", "base.json", "--fail-if", "cpu.time > +10%"]
    compare(proctor, *words, b, status=1)
    assert (proctor.work / "base.json").read_text() == before
    compare(proctor, *words, c)
    assert json.loads((proctor.work / "base.json").read_text())["runs"][0]["run"]["id"] == "r2"


@pytest.mark.parametrize("text, why", [
    ("", "neither a baseline file (no JSON) nor a run"), ("not json", "neither a baseline file (no JSON) nor a run"),
    ("{}", "no baseline file"), ("[1, 2]", "no baseline file"), ('{"proctor_baseline": 1}', "no baseline file"),
    ('{"proctor_baseline": 1, "runs": []}', "has no runs"),
    ('{"proctor_baseline": 2, "runs": [{}]}', "has version 2, this proctor knows 1"),
    ('{"proctor_baseline": 1, "runs": [{}]}', "has no figures"),
    ('{"proctor_baseline": 1, "runs": [5]}', "has no figures"),
    ('{"proctor_baseline": "1", "runs": [{}]}', "no baseline file"),
    ('{"proctor_baseline": 1, "runs": [{"run": {"id": "x"}, "metrics": 5, "phases": {"a": "b"}}]}', None),
    ('{"proctor_baseline": 1, "runs": [{"run": {"id": "x", "duration": "long"}, "metrics": {"cpu.time": 3}}]}', None),
])
def test_other_files_are_no_baseline(proctor, plain, text, why):
    (proctor.work / "base.json").write_text(text)
    done = proctor("compare", "--baseline", "base.json", plain)
    if why is None:  # what it has not got is absent
        assert done.returncode == 0 and "not in the baseline" in done.stdout
    else:
        assert done.returncode == 2 and why in done.stderr and "base.json" in done.stderr and done.stdout == ""


def test_a_baseline_may_be_a_run_and_must_be_something(proctor, plain):
    compare(proctor, "--baseline", plain, plain)
    done = compare(proctor, "--baseline", "no-such-file.json", plain, status=2)
    assert "no-such-file.json" in done.stderr
    before = plain.read_bytes()
    done = compare(proctor, "--save-baseline", plain, plain, status=2)
    assert "is the run itself" in done.stderr and plain.read_bytes() == before
    assert "No such file" in compare(proctor, "--save-baseline", "no/such/base.json", plain, status=2).stderr


# --- phases ---------------------------------------------------------------------------------------

def test_phases_have_their_own_rows(proctor):
    small, large = (recorded(proctor, name, "sh", "-c", JOB, mib) for name, mib in (("small", 20), ("large", 80)))
    rows, result = rows_of(proctor, small, large, "--align", "phase")
    assert (result["align"], result["phase"]) == ("phase", "load")
    for phase in ("load", "work"):
        values = [query(p, "SELECT json_extract(data, '$.metrics.\"cpu.time\".total') FROM phases WHERE name = ?",
                        phase)[0] for p in (small, large)]
        row = rows[phase, "cpu.time", "total"]
        assert [row["baseline"]["median"], row["runs"]["median"]] == pytest.approx(values, abs=1e-6)
    peak = rows["load", "mem.rss.peak", "peak"]
    assert peak["difference"] > 50 << 20
    assert "load: mem.rss.peak" in compare(proctor, small, large, "--align", "phase").stdout
    assert not [key for key in rows_of(proctor, small, large)[0] if key[0]]


def test_without_a_common_phase_there_is_nothing_to_align_by(proctor, plain):
    done = compare(proctor, plain, plain, "--align", "phase", status=2)
    assert "no phase is in all runs" in done.stderr


def test_a_page_lays_the_phase_at_the_same_time(proctor, page):  # noqa: F811
    runs = [recorded(proctor, f"p{i}", "sh", "-c", f'sleep {wait}; "{PROCTOR}" phase work -- sleep 0.2')
            for i, wait in enumerate((0.1, 1.6))]
    compare(proctor, *runs, "--align", "phase", "-o", "x.json")
    model = json.loads((proctor.work / "x.json").read_text())
    keeps_to_contract(proctor.work / "x.json")
    begins = [r["phases"][0]["begin"] for r in model["runs"]]
    comparison = model["comparison"]
    assert comparison["baseline"] == 0 and comparison["align"] == "phase"
    assert begins[1] > begins[0] + 0.3
    assert [b + s for b, s in zip(begins, comparison["shift"])] == pytest.approx([begins[0]] * 2, abs=1e-4)


def memory_of(run):
    return [line["series"] for chart in run["charts"] if chart["id"] == "memory" for line in chart["lines"]]


ONLY_PSS, NO_MEMORY = ["--select", "cpu.*,mem.pss,mem.rss.peak"], ["--select", "cpu.*"]


@pytest.mark.parametrize("options, want, again", [
    ([[], []], [["mem.pss"], ["mem.pss"]], []), ([[], ["--no-pss"], []], [["mem.rss"]] * 3, [0, 2]),
    ([["--no-pss"], ONLY_PSS], [["mem.rss"], ["mem.pss"]], []), ([[], NO_MEMORY], [["mem.pss"], []], []),
])
def test_memory_is_of_one_kind_where_runs_are_laid_over_each_other(proctor, options, want, again):
    job = "import time; x = bytearray(20 << 20); time.sleep(0.4)"
    runs = [recorded(proctor, f"m{i}", *words, "/usr/bin/python3", "-c", job) for i, words in enumerate(options)]
    compare(proctor, *runs, "-o", "x.json")
    model = json.loads((proctor.work / "x.json").read_text())
    keeps_to_contract(proctor.work / "x.json")
    assert [memory_of(run) for run in model["runs"]] == want
    said = ["PSS is not known of all the runs" in json.dumps(run) for run in model["runs"]]
    assert [i for i, yes in enumerate(said) if yes] == again


def test_what_is_drawn_as_rss_is_judged_by_pss(proctor):
    """Four that share 60 MiB under a limit of 200: their RSS is above it, which is no finding where PSS is known."""
    job = "import os, time\nx = bytearray(60 << 20)\nfor _ in range(3):\n    if not os.fork(): break\ntime.sleep(0.6)"
    runs = [recorded(proctor, f"s{i}", *words, "/usr/bin/python3", "-c", job)
            for i, words in enumerate((["--budget", "100%"], ["--no-pss"]))]
    for path in runs:
        with sqlite3.connect(path) as db:
            db.execute("UPDATE run SET about = json_set(about, '$.limits.memory.bytes', ?, '$.limits.memory.source', "
                       "'cgroup')", (200 << 20,))
            db.execute("UPDATE summary SET json = json_set(json, '$.limits.memory.bytes', ?)", (200 << 20,))
    compare(proctor, *runs, "-o", "x.json")
    model = json.loads((proctor.work / "x.json").read_text())
    assert [memory_of(run) for run in model["runs"]] == [["mem.rss"]] * 2
    said = [[f["text"] for f in run["findings"] if "of the limit" in f["text"]] for run in model["runs"]]
    assert said[0] == [] and len(said[1]) == 1, [run["findings"] for run in model["runs"]]


def flat(t):
    return 800 << 20


@pytest.mark.parametrize("pss, grows", [(leak(0.2, 700), True), (flat, False)])
def test_growth_of_what_is_drawn_as_rss_is_that_of_pss(proctor, pss, grows):
    """Both leak, and it is said of both; growth of RSS alone is no finding where PSS is known."""
    runs = [recorded(proctor, name, "--memory-total", "4G", "true") for name in ("shares", "plain")]
    for path in runs:
        shaped(path, leak(0.25))
    with sqlite3.connect(runs[0]) as db:
        for sample, elapsed in db.execute("SELECT sample, elapsed FROM job_samples").fetchall():
            db.execute("UPDATE job_samples SET mem_pss_bytes = ? WHERE sample = ?", (pss(elapsed / 1e9), sample))

    def said(into, *words):
        assert proctor(*words, "-o", into).returncode == 0
        return [(memory_of(run), [f["text"] for f in run["findings"] if f["id"] == "memory-grows"])
                for run in json.loads((proctor.work / into).read_text())["runs"]]
    [(alone_of, alone)] = said("alone.json", "report", runs[0])
    (first_of, first), (second_of, second) = said("both.json", "compare", *runs)
    assert (alone_of, first_of, second_of) == (["mem.pss"], ["mem.rss"], ["mem.rss"])
    assert len(second) == 1 and "MiB/h" in second[0] and len(first) == len(alone) == grows
    if grows:
        paces = [float(re.search(r"by ([\d.]+) MiB/h", text[0])[1]) for text in (alone, first)]
        assert paces == pytest.approx([720, 720], abs=20) and "meets the limit 4.00 GiB" in first[0]


# --- files ----------------------------------------------------------------------------------------

def test_the_page_has_what_the_table_has(proctor, plain, page):  # noqa: F811
    a, b = made(proctor, plain, 2.0, 3.0)
    text = compare(proctor, a, b, "-o", "x.html", "--fail-if", "cpu.time > +10%", status=1).stdout
    compare(proctor, a, b, "-o", "x.json", "--fail-if", "cpu.time > +10%", status=1)
    model = json.loads((proctor.work / "x.json").read_text())
    keeps_to_contract(proctor.work / "x.json")
    assert in_page((proctor.work / "x.html").read_text()) == model
    assert [r["id"] for r in model["runs"]] == ["r0", "r1"]
    [row] = [r for r in model["comparison"]["rows"] if r["metric"] == "cpu.time"]
    assert row == {"metric": "cpu.time", "baseline": "2.00 s", "run0": "3.00 s", "difference": "50 % more (+1.00 s)",
                   "severity": "bad"}
    for row in model["comparison"]["rows"]:
        assert re.search(re.escape(row["metric"]) + " .*" + re.escape(row["difference"]), text)


def test_a_baseline_file_has_no_curves_in_the_page(proctor, plain):
    compare(proctor, "--save-baseline", "base.json", plain)
    compare(proctor, "--baseline", "base.json", plain, "-o", "x.json")
    model = json.loads((proctor.work / "x.json").read_text())
    keeps_to_contract(proctor.work / "x.json")
    assert model["comparison"]["baseline"] is None and len(model["runs"]) == 1
    assert "no curves" in model["comparison"]["note"]


def test_markdown_is_a_table(proctor):
    hostile = "a|b <script> `x` *y*"
    job = f'"{PROCTOR}" phase "$0" -- true'
    runs = [recorded(proctor, name, "sh", "-c", job, hostile) for name in ("one", "two")]
    compare(proctor, *runs, "--align", "phase", "-o", "x.md", "--fail-if", "duration > 1h")
    text = (proctor.work / "x.md").read_text()
    assert "- passed: duration \\> 1h does not hold" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert table[0] == "| metric | baseline | run | difference |" and table[1] == "|---|---:|---:|---|"
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in table)
    assert "a\\|b \\<script\\> \\`x\\` \\*y\\*: duration" in text and "<script>" not in text


def test_hostile_words_stay_words(proctor):
    hostile = "\x1b[31mred\x07"
    path = proctor.work / "h.proctor"
    done = proctor.run("-q", "--name", hostile, "-o", path, "sh", "-c", f'"{PROCTOR}" phase work -- true', hostile)
    assert done.returncode == 0
    done = compare(proctor, path, path, "--align", "phase")
    assert "\x1b" not in done.stdout and "\\x1b[31mred" in done.stdout


ANYTHING = ["null", '"text"', "-1", "0", "1e308", "-1e308", "1e999", "[]", "{}", '[{"a": [1, "b"]}]', "true", '"\\u0000"']


def test_whatever_a_summary_says_nothing_breaks(proctor):
    """Each part of a summary becomes something else, on either side."""
    good = recorded(proctor, "good", "sh", "-c", f'"{PROCTOR}" phase one -- sleep 0.05; "{PROCTOR}" phase two -- true')
    dice, bad = random.Random(20261115), proctor.work / "bad.proctor"
    paths = query(good, "SELECT fullkey FROM summary s, json_tree(s.json) WHERE fullkey NOT LIKE '%system%'")
    for turn, path in enumerate(dice.sample(paths, 60)):
        shutil.copy(good, bad)
        db = sqlite3.connect(bad, isolation_level=None)
        db.execute("UPDATE summary SET json = json_set(json, ?, json(?))", (path, dice.choice(ANYTHING)))
        db.close()
        sides = (good, bad) if turn % 2 else (bad, good)
        for words in (["compare", *sides, "--fail-if", "cpu.time > +10%", "--align", "phase"],
                      ["compare", *sides, "-o", dice.choice(["x.json", "x.md"]), "--json"],
                      ["suggest", bad, "--for", dice.choice(["slurm", "kubernetes", "docker", "snakemake"])]):
            done = proctor(*words, text=False)
            assert done.returncode in (0, 1, 2) and b"runtime error" not in done.stderr, (path, words, done)
            assert b"Sanitizer" not in done.stderr, (path, words, done)
            assert done.returncode == 0 or done.stderr.startswith(b"proctor: "), (path, words, done)
            assert b"nan" not in done.stdout.lower(), (path, words, done)


def test_a_run_that_did_not_end_well_is_named(proctor, plain):
    bad = proctor.work / "bad.proctor"
    assert proctor.run("-q", "-o", bad, "sh", "-c", "exit 3").returncode == 3
    _, result = rows_of(proctor, plain, bad)
    assert [r["ended"] for r in result["runs"]] == ["exit 3"] and result["runs"][0]["good"] is False
    assert re.search(r"^run .*exit 3$", compare(proctor, plain, bad).stdout, re.M)


FAILED = {"exit 3": ["sh", "-c", "exit 3"], "killed by SIGKILL": ["sh", "-c", "kill -9 $$"]}


@pytest.fixture(params=["exit 3", "killed by SIGKILL", "its recorder died"])
def failed(proctor, plain, request):
    """(a run that did not end well, what it says of its end)"""
    path = proctor.work / "bad.proctor"
    if request.param in FAILED:
        proctor.run("-q", "-o", path, *FAILED[request.param])
        return path, request.param
    process = proctor.start("run", "-q", "-i", "20ms", "-o", path, "sleep", "60")
    wait_until(lambda: path.exists() and proctor("show", path).returncode == 0, "a record")
    job = proctor.job_of(process)
    process.kill()
    process.wait()
    os.kill(job, signal.SIGKILL)
    return path, request.param


def test_a_gate_does_not_pass_a_run_that_failed(proctor, plain, failed):
    path, ending = failed
    [name] = query(path, "SELECT id FROM run")
    gate = ["--fail-if", "duration > 1h", "--fail-if", "mem.rss.peak > +100000%"]
    done = compare(proctor, plain, path, *gate[:2], status=2)
    assert f"duration > 1h cannot be told: {name} ({ending}) is no run that ended well" in done.stderr
    assert "--allow-failed" in done.stderr
    compare(proctor, path, plain, *gate, status=2)
    compare(proctor, path, plain, *gate[:2])  # of the baseline nothing is asked
    compare(proctor, plain, path, *gate[:2], "--allow-failed")
    compare(proctor, plain, path, "-o", "x.json")
    model = json.loads((proctor.work / "x.json").read_text())
    found = model["runs"][1]["findings"][0]
    assert (found["severity"], found["text"]) == (
        "warn", f"{name} did not end well ({ending}): less than the baseline is no gain")
    assert not [r for r in model["comparison"]["rows"] if r["severity"] == "good"]


def test_a_run_that_failed_becomes_no_baseline(proctor, plain, failed):
    path, ending = failed
    done = compare(proctor, "--save-baseline", "base.json", plain, path, status=2)
    assert f"({ending}) is no run that ended well" in done.stderr and not (proctor.work / "base.json").exists()
    compare(proctor, "--baseline", plain, "--save-baseline", "base.json", path, status=2)
    assert not (proctor.work / "base.json").exists()
    compare(proctor, "--save-baseline", "base.json", path, "--allow-failed")
    done = compare(proctor, "--baseline", "base.json", plain, "--fail-if", "duration > +1h", status=2)
    assert f"({ending}) is no run" in done.stderr


def test_what_is_seen_once_is_not_said_twice(proctor, plain):
    a, b = made(proctor, plain, 2.0, 3.0)
    words = [proctor.path, "compare", a, b, "--fail-if", "cpu.time > +10%"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                          **proctor.options({}))
    assert done.returncode == 1 and done.stdout.count("cpu.time > +10% holds") == 1


def test_a_page_opens_on_the_first_new_run_and_says_what_came_out(proctor, plain):
    base, run = made(proctor, plain, 2.0, 2.1, begin="b"), made(proctor, plain, 3.0, 3.1)
    words = ["--baseline", base[0], "--baseline", base[1], *run, "-o", "x.json"]

    def first(*more, status=0):
        compare(proctor, *words, *more, status=status)
        model = json.loads((proctor.work / "x.json").read_text())
        keeps_to_contract(proctor.work / "x.json")
        assert [r["id"] for r in model["runs"]] == ["b0", "r0", "r1", "b1"] and model["comparison"]["baseline"] == 0
        found = [[f for f in r["findings"] if f["id"] == "comparison"] for r in model["runs"]]
        assert [len(f) for f in found] == [0, 1, 1, 0] and found[1] == model["runs"][1]["findings"][:1]
        return found[1][0]["severity"], found[1][0]["text"]

    assert first() == ("warn", "Against the baseline 1 figure is worse, 0 better; most of all cpu.time: "
                               "49 % more (+1.00 s)")
    severity, text = first("--fail-if", "cpu.time > +10%", "--fail-if", "duration > 1ms", status=1)
    assert severity == "bad" and text.startswith("cpu.time > +10% holds: 3.05 s") and text.endswith("; 1 more below")
    severity, text = first("--fail-if", "gpu.mem > 1GiB", status=2)
    assert severity == "bad" and text.startswith("gpu.mem > 1GiB cannot be told: ")


def test_repeats_are_items_of_a_list_in_markdown(proctor, plain):
    base, run = made(proctor, plain, 2.0, 2.1, begin="b"), made(proctor, plain, 3.0, 3.1)
    compare(proctor, "--baseline", base[0], "--baseline", base[1], *run, "-o", "x.md")
    lines = (proctor.work / "x.md").read_text().splitlines()
    assert [re.match(r"- (\S.*?): (\w+)  ", line).groups() for line in lines[:4]] == [
        ("baseline", "b0"), ("baseline", "b1"), ("run 1", "r0"), ("run 2", "r1")]
