# SPDX-License-Identifier: Apache-2.0
"""JSON lines: one object each, of a known type, as it happens."""
import json
import os
import re
import signal
import subprocess
import time

from proctor_cli import read_csv, state_of, wait_until


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def streamed(proctor, *args, **kw):
    """Runs with --jsonl and --summary; the lines and the summary."""
    done = proctor.run("-q", "--jsonl", "a.jsonl", "--summary", proctor.summary_file, *args, **kw)
    assert done.returncode == 0, done.stderr
    return [line for line in lines_of(proctor.work / "a.jsonl") if line["type"] != "device"], proctor.summary()


def of(lines, kind):
    return [line for line in lines if line["type"] == kind]


def test_run_first_summary_last_and_all_samples_between(proctor):
    lines, summary = streamed(proctor, "-i", "20ms", "--label", "a=1", "--name", "n", "sleep", "0.15")
    assert [line["type"] for line in lines] == \
        ["run"] + ["sample"] * summary["samples"]["taken"] + ["summary"]
    run, last = lines[0], lines[-1]
    assert run["id"] == summary["run"]["id"] and run["command"] == ["sleep", "0.15"]
    assert run["labels"] == {"a": "1"} and run["name"] == "n" and run["interval"] == 0.02
    assert run["time"] == summary["run"]["started"] and run["elapsed"] == 0
    assert last["metrics"] == summary["metrics"] and last["exit"] == summary["exit"]
    assert set(summary) <= set(last)


def test_samples_say_the_same_as_the_csv(proctor):
    lines, _ = streamed(proctor, "-i", "20ms", "--csv", "a.csv", "sleep", "0.1")
    rows, samples = read_csv(proctor.work / "a.csv"), of(lines, "sample")
    assert len(rows) == len(samples) > 3
    keys = {m["key"] for m in json.loads(proctor("metrics", "--json").stdout) if "job" in m["scope"] or "system" in m["scope"]}
    for row, sample in zip(rows, samples):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", sample["time"])
        assert abs(float(row["elapsed_seconds"]) - sample["elapsed"]) < 1e-5
        assert abs(float(row["interval_seconds"]) - sample["interval"]) < 1e-5
        assert set(sample["values"]) == keys
        for key, column in (("cpu.time", "cpu_time_seconds"), ("mem.rss", "mem_rss_bytes"),
                            ("gpu.usage", "gpu_usage"), ("procs", "procs")):
            value = sample["values"][key]
            assert row[column] == ("" if value is None else row[column])
            assert value is None or float(row[column]) == value
    assert samples[-1]["values"]["mem.rss"] is None and samples[-1]["values"]["cpu.time"] > 0
    assert samples[1]["marks"]["ctx.voluntary"] == "lower bound"
    assert "ctx.voluntary" not in samples[-1].get("marks", {})


def test_processes_and_select(proctor):
    lines, _ = streamed(proctor, "-i", "20ms", "--processes", "--select", "cpu.time,mem.rss,procs",
                        "sh", "-c", "sleep 0.15 & sleep 0.1; wait")
    processes = of(lines, "process")
    assert {p["command"] for p in processes} >= {"sh", "sleep"}
    assert all(set(p["values"]) == {"cpu.time", "mem.rss"} for p in processes)
    assert all(set(s["values"]) == {"cpu.time", "mem.rss", "procs"} for s in of(lines, "sample"))
    assert len({p["pid"] for p in processes}) >= 2 and all(p["ppid"] for p in processes)
    lines, _ = streamed(proctor, "-i", "20ms", "sleep", "0.1")
    assert not of(lines, "process")


def test_a_line_is_there_as_soon_as_it_is_taken(proctor):
    process = proctor.start("run", "-q", "-i", "20ms", "--jsonl", "a.jsonl", "sleep", "77")
    path = proctor.work / "a.jsonl"
    wait_until(lambda: path.exists() and path.read_text().count('"sample"') >= 3, "three samples")
    assert path.read_text().endswith("\n")
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    assert lines_of(path)[-1]["type"] == "summary"


def test_events_stand_where_they_happened(proctor):
    process = proctor.start("run", "-q", "-i", "20ms", "--jsonl", "a.jsonl", "sh", "-c",
                            "echo $$ > pid; exec sleep 0.6")
    path = proctor.work / "pid"
    pid = int(wait_until(lambda: path.exists() and path.read_text().strip(), "the job"))
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state_of(pid) == "T", "the job to stop")
    time.sleep(0.1)
    os.kill(pid, signal.SIGCONT)
    assert process.wait(20) == 0
    lines = [line for line in lines_of(proctor.work / "a.jsonl") if line["type"] != "device"]
    gap, = of(lines, "event")
    assert gap["event"] == "gap" and "SIGSTOP" in gap["text"] and gap["seconds"] > 0.05
    at = lines.index(gap)
    assert lines[at - 1]["type"] == lines[at + 1]["type"] == "sample"


def test_hostile_names_are_escaped(proctor):
    name = 'a"b\\\n\x1b[31m'
    lines, _ = streamed(proctor, "-i", "20ms", "--processes", "bash", "-c",
                        "exec -a \"$0\" sleep 0.1", name)
    assert lines[0]["command"][-1] == name


def test_standard_output_and_attach(proctor):
    job = proctor.other(["sleep", "77"])
    done = proctor("attach", "-q", "--duration", "0.1", "-i", "20ms", "--jsonl", "-", job.pid)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["type"] == "run" and lines[0]["command"] == ["sleep", "77"]
    assert lines[-1]["type"] == "summary" and lines[-1]["exit"] == {"code": None, "signal": None}


def test_trouble_with_it_is_said_once_and_does_not_matter(proctor):
    done = proctor.run("-q", "-i", "20ms", "--jsonl", "/dev/full", "sh", "-c", "sleep 0.1; exit 5")
    assert done.returncode == 5 and done.stderr.count("No space left") == 1
    done = proctor.run("--jsonl", "missing/a.jsonl", "touch", "started")
    assert done.returncode == 125 and "--jsonl: No such file" in done.stderr
    assert not (proctor.work / "started").exists()


def test_nothing_of_a_job_that_never_was(proctor):
    proctor.run("--jsonl", "a.jsonl", "no-such-command-here")
    assert (proctor.work / "a.jsonl").read_text() == ""


def test_it_works_with_jq_like_readers(proctor):
    """Every line stands for itself: no line depends on another."""
    command = [proctor.path, "run", "-q", "-i", "10ms", "--jsonl", "-", "sleep", "0.1"]
    out = subprocess.run(command, capture_output=True, text=True, timeout=60, **proctor.options({})).stdout
    peak = max(line["values"]["mem.rss"] or 0 for line in map(json.loads, out.splitlines())
               if line["type"] == "sample")
    assert peak > 100000
