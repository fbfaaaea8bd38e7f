# SPDX-License-Identifier: Apache-2.0
"""The summary: stable keys of the right types in JSON, at most eight safe lines as text."""
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from proctor_cli import SLACK, read_csv, said

NUMBER = (int, float)
OPTIONAL = (int, float, type(None))
TEXT = (str, type(None))
SHAPE = {
    "schema": int,
    "run": {"id": str, "command": list, "host": str, "labels": dict, "started": str,
            "duration": NUMBER, "interval": NUMBER},
    "exit": {"code": (int, type(None)), "signal": (int, type(None))},
    "metrics": dict,
    "accounting": {name: {"source": str, "complete": bool, "residual": OPTIONAL,
                          "before": OPTIONAL, "note": TEXT}
                   for name in ("cpu", "io", "memory_peak")},
    "processes": {"seen": int, "never_sampled": OPTIONAL},
    "samples": {"taken": int, "late": int, "missed": int},
    "absent": list, "limits": dict, "phases": list, "matches": list, "devices": list,
    "findings": list, "events": list, "left_running": list,
    "self": {"cpu_seconds": NUMBER, "cpu_ratio": OPTIONAL, "rss_peak_bytes": OPTIONAL},
}


def check(shape, value, path="summary"):
    if isinstance(shape, dict):
        assert isinstance(value, dict), path
        for key, part in shape.items():
            assert key in value, f"{path}.{key}"
            check(part, value[key], f"{path}.{key}")
    else:
        assert isinstance(value, shape), f"{path}: {value!r}"
        assert not isinstance(value, bool) or shape is bool, path


JOBS = {
    "nothing": ["true"],
    "a moment": ["sleep", "0.15"],
    "several": ["sh", "-c", "sleep 0.1 & sleep 0.1 | cat; wait"],
    "fails": ["sh", "-c", "exit 9"],
    "dies": ["sh", "-c", "kill -KILL $$"],
}


@pytest.mark.parametrize("job", JOBS)
def test_stable_keys_and_their_types(proctor, job):
    _, summary = proctor.recorded("-i", "20ms", *JOBS[job])
    check(SHAPE, summary)
    assert summary["run"]["command"] == JOBS[job]
    assert summary["run"]["host"] == socket.gethostname()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", summary["run"]["started"])
    assert summary["run"]["duration"] > 0 and summary["samples"]["taken"] >= 2
    assert summary["self"]["cpu_seconds"] > 0 and summary["self"]["rss_peak_bytes"] > 100_000


EXTREMES = {"peak", "mean", "min", "last", "at"}
QUANTILES = ["p50", "p90", "p95", "p99"]
STATISTICS = {"counter": {"total"}, "peak": EXTREMES, "rate": EXTREMES | {*QUANTILES},
              "ratio": EXTREMES | {*QUANTILES}, "gauge": EXTREMES | {*QUANTILES, "integral"}}


@pytest.mark.parametrize("job", ["nothing", "a moment", "several"])
def test_metrics_have_a_total_or_the_statistics_of_their_kind(proctor, job):
    _, summary = proctor.recorded("-i", "20ms", *JOBS[job])
    kinds = {m["key"]: m["kind"] for m in json.loads(proctor("metrics", "--json").stdout)}
    for key, value in summary["metrics"].items():
        rest = set(value) - {"mark", "peak_mark"}
        assert rest == STATISTICS[kinds[key]], key
        if kinds[key] == "counter":
            assert value["total"] >= 0
        elif value["min"] is not None:
            assert value["min"] <= value["peak"] and value["min"] <= value["last"], key
            assert value["min"] * 0.999 <= value["mean"] <= value["peak"] * 1.001 or \
                kinds[key] in ("rate", "ratio"), key
            assert 0 <= value["at"] <= summary["run"]["duration"], key
            ascending = [value["min"], *(value[q] for q in QUANTILES if q in value), value["peak"]]
            assert ascending == sorted(ascending), key
        if kinds[key] == "gauge":
            assert 0 <= value["integral"] <= value["peak"] * summary["run"]["duration"] * 1.001, key


def test_quantiles_are_those_of_the_samples(proctor):
    """Beside those of the rows, weighted by their intervals; the job grows step by step."""
    script = "b = []\nimport time\nfor i in range(40): b.append(bytearray(1000000)); time.sleep(0.03)"
    _, summary = proctor.recorded("-i", "10ms", "--csv", "a.csv", sys.executable, "-c", script)
    rows = read_csv(proctor.work / "a.csv")
    for key, column in (("mem.rss", "mem_rss_bytes"), ("cpu.usage", "cpu_usage_cores"), ("procs", "procs")):
        values = sorted((float(r[column]), float(r["interval_seconds"])) for r in rows if r[column])
        total, known = sum(dt for _, dt in values), summary["metrics"][key]
        assert len(values) > 20 / SLACK
        for name in QUANTILES:
            wanted, so_far, share = [], 0, int(name[1:]) / 100
            for v, dt in values:  # what is written is rounded: at a border either may be right
                so_far += dt
                if so_far >= (share - 0.001) * total:
                    wanted.append(v)
                if so_far >= (share + 0.001) * total:
                    break
            assert wanted[0] * 0.99 <= known[name] <= wanted[-1] * 1.01, (key, name)
        if key == "mem.rss":
            assert known["integral"] == pytest.approx(sum(v * dt for v, dt in values), rel=0.01)
            assert known["p50"] < known["p99"] * 0.8


def test_what_is_absent_has_a_reason_and_is_not_a_metric(proctor):
    _, summary = proctor.recorded("-i", "20ms", "sleep", "0.1")
    catalogue = {m["key"] for m in json.loads(proctor("metrics", "--json").stdout) if m["scope"] != "gpu"}
    absent = {a["metric"]: a["reason"] for a in summary["absent"]}
    assert all(isinstance(r, str) and len(r) > 5 for r in absent.values())
    assert not set(absent) & set(summary["metrics"])
    assert set(absent) | set(summary["metrics"]) == catalogue
    assert {"gpu.usage", "gpu.mem"} <= set(absent)


def test_reasons_tell_a_short_job_from_a_missing_source(proctor):
    _, summary = proctor.recorded("true")
    reasons = {a["metric"]: a["reason"] for a in summary["absent"]}
    assert all("ended before" in reasons[k] for k in ("mem.pss", "mem.uss") if k in reasons)
    assert "ended before" not in reasons["gpu.usage"] and "ended before" not in reasons["gpu.mem"]


def test_limits_have_a_source(proctor):
    _, summary = proctor.recorded("true")
    assert set(summary["limits"]) >= {"cpu", "memory"}
    assert summary["limits"]["cpu"]["cores"] > 0 and summary["limits"]["cpu"]["source"]
    assert summary["limits"]["memory"]["bytes"] > 1e6 and summary["limits"]["memory"]["source"]


def test_affinity_is_a_limit(proctor):
    one = [min(os.sched_getaffinity(0))]
    _, summary = proctor.recorded("true", preexec_fn=lambda: os.sched_setaffinity(0, one))
    assert summary["limits"]["cpu"]["cores"] <= 1


def test_memory_peak_is_complete_only_for_a_single_process(proctor, jobs):
    alone = "import time; b = bytearray(40_000_000); time.sleep(0.1)"  # well above our own size
    _, summary = proctor.recorded("python3", "-c", alone)
    assert summary["accounting"]["memory_peak"] == {**summary["accounting"]["memory_peak"],
                                                    "complete": True, "note": None}
    _, summary = proctor.recorded("-i", "10ms", jobs / "family", "together", "3", "50000")
    assert summary["accounting"]["memory_peak"]["complete"] is False
    assert summary["accounting"]["memory_peak"]["note"]


def test_our_own_cost_is_ours_and_not_the_jobs(proctor):
    _, summary = proctor.recorded("-i", "1ms", "--csv", "a.csv", "--processes", "sleep", "0.5")
    assert summary["self"]["cpu_seconds"] > 0.02
    assert summary["metrics"]["cpu.time"]["total"] < 0.02
    assert summary["self"]["cpu_ratio"] == pytest.approx(
        summary["self"]["cpu_seconds"] / summary["run"]["duration"])
    assert summary["metrics"]["procs"]["peak"] == 1


# --- the text -------------------------------------------------------------------------------------

TEXTS = {
    **JOBS,
    "leaves somebody": ["sh", "-c", "for i in 1 2 3 4 5; do timeout 1 sleep 1 >/dev/null 2>&1 & "
                        "done; sleep 0.1"],
    "many words": ["echo", *["word"] * 500],
    "lines": ["printf", "a\nb\nc\n"],
    "trouble": ["sh", "-c", "exit 3"],
    "nobody waits": ["bash", "-c", "trap '' CHLD; (sleep 0.1) & sleep 0.2"],
}


@pytest.mark.parametrize("name", TEXTS)
def test_at_most_eight_lines(proctor, name):
    trouble = ["--csv", "/dev/full", "--budget", "0.001%"] if name == "trouble" else []
    done = proctor.run("-i", "10ms", *trouble, *TEXTS[name], stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE)
    lines = [line for line in done.stderr.splitlines() if line not in said(done.stderr)]
    assert 4 <= len(lines) <= 9, done.stderr
    assert lines[0].startswith("proctor: ") and "nan" not in done.stderr.lower()
    assert [line.split()[0] for line in lines[1:]] == [
        w for w in ("why", "CPU", "memory", "I/O", "procs", "counted", "cost", "trouble")
        if w in {line.split()[0] for line in lines[1:]}]
    assert max(len(line) for line in lines) < 300


def test_the_text_says_what_the_json_says(proctor, jobs):
    done = proctor.run("-i", "10ms", "--summary", proctor.summary_file, jobs / "family", "waited",
                       "3", "100000")
    summary = proctor.summary()
    assert "exit 0" in done.stderr and f"{summary['samples']['taken']} samples" in done.stderr
    assert re.search(rf"procs .*\b{summary['processes']['seen']}\b", done.stderr)
    shown = re.search(r"CPU +([\d.]+) (ms|s)", done.stderr)
    cpu = float(shown.group(1)) * (0.001 if shown.group(2) == "ms" else 1)
    assert math.isclose(cpu, summary["metrics"]["cpu.time"]["total"], rel_tol=0.02)
    assert summary["accounting"]["cpu"]["source"] in done.stderr


def test_a_peak_above_a_total_that_was_given_is_shown(proctor, jobs):
    """Half a core was said to be there, one was used: a peak is not made to fit."""
    done = proctor.run("-i", "200ms", "--cpu-total", "0.5", "sh", "-c",
                       f"{jobs}/family waited 1 1000000; sleep 1.5")
    shown = re.search(r"CPU .*peak ([\d.]+) of 0\.5", done.stderr)
    assert shown and 0.55 <= float(shown.group(1)) < 1.5, done.stderr


def test_a_job_too_short_for_a_rate_has_no_peak_of_one(proctor):
    for _ in range(10):
        lines = proctor.run("true").stderr.splitlines()
        (cpu,) = [line for line in lines if line.split()[0] == "CPU"]
        assert "mean" in cpu and "peak" not in cpu


def test_signals_have_names(proctor):
    assert "killed by SIGKILL" in proctor.run("sh", "-c", "kill -9 $$").stderr


def test_curves_only_where_they_can_be_shown(proctor):
    job = ["-i", "10ms", "sleep", "0.2"]
    assert re.search("[\u2581-\u2588]", proctor.run(*job).stderr)
    plain = proctor.run(*job, env={"LC_ALL": "C"}).stderr
    assert plain.isascii()


def test_the_last_label_of_a_name_counts(proctor):
    done, summary = proctor.recorded("--label", "a=1", "--label", "ab=3", "--label", "a=2", "true")
    pairs = []
    json.loads(proctor.summary_file.read_text(), object_pairs_hook=pairs.extend)
    assert done.returncode == 0 and summary["run"]["labels"] == {"ab": "3", "a": "2"}
    assert [key for key, _ in pairs].count("a") == 1


# --- hostile text ---------------------------------------------------------------------------------

HOSTILE = [b"\xff\xfe", b"\x1b[31mred\x1b[0m", b"line\nbreak", b"\xc2\x9b31m", b'quote"back\\slash',
           b"tab\there", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"nul-free \x7f",
           "ünï→🎉".encode()]


def clean(text):
    """No byte that a terminal would obey."""
    return not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", text)


@pytest.mark.parametrize("word", HOSTILE, ids=repr)
def test_hostile_arguments_are_escaped_and_valid(proctor, word):
    done = proctor.run("--summary", proctor.summary_file, "--label", b"k" + word + b"=" + word,
                       "--name", word, "true", word, text=False)
    assert done.returncode == 0
    assert clean(done.stderr) and done.stderr.decode("utf-8")
    assert len(done.stderr.splitlines()) <= 8
    raw = proctor.summary_file.read_bytes()
    summary = json.loads(raw.decode("utf-8", errors="strict"))
    assert len(summary["run"]["command"]) == 2 and len(summary["run"]["labels"]) == 1
    try:
        text = word.decode("utf-8")
    except UnicodeDecodeError:
        return
    assert summary["run"]["command"][1] == text == summary["run"]["name"]
    assert summary["run"]["labels"] == {"k" + text: text}


@pytest.mark.parametrize("word", HOSTILE, ids=repr)
@pytest.mark.parametrize("words", [["run", "-q", "WORD"], ["run", "--interval", "WORD", "true"],
                                   ["run", "--csv", b"/missing/WORD", "true"], ["WORD"],
                                   ["attach", "WORD"], ["run", b"--WORD"]],
                         ids=["command", "value", "path", "command of ours", "pid", "option"])
def test_hostile_text_in_messages_is_escaped(proctor, words, word):
    filled = [word if w == "WORD" else w.replace(b"WORD", word) if isinstance(w, bytes) else w
              for w in words]
    done = proctor(*filled, text=False)
    assert done.returncode in (125, 127, 2)
    assert clean(done.stderr) and len(done.stderr.splitlines()) == 1
    assert done.stderr.decode("utf-8", errors="strict")


def test_hostile_names_of_what_is_left_running(proctor):
    name = os.fsencode(proctor.work) + b"/\x1b[31m\xff"
    os.symlink(b"/bin/sleep", name)
    done = proctor.run("--summary", proctor.summary_file, "-i", "20ms", "sh", "-c",
                       b'"$0" 77 >/dev/null 2>&1 & sleep 0.15', name, text=False)
    left = json.loads(proctor.summary_file.read_bytes().decode("utf-8"))["left_running"]
    assert len(left) == 1
    os.kill(left[0]["pid"], signal.SIGKILL)
    assert "\x1b[31m" in left[0]["command"] and clean(done.stderr)
