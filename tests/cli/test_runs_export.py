# SPDX-License-Identifier: Apache-2.0
"""A recorded run once more: as live, in csv and JSON lines; its summary from its samples; the run log."""
import json
import os
import shutil
import signal
import sqlite3

import pytest

from proctor_cli import SANITIZED, finish, query, read_csv, wait_until

# A job with phases that nest, that come faster than samples can be taken, and one that is left open; with
# processes that come and go, and a program that becomes another.
JOB = """
proctor phase begin outer
for k in 1 2 3; do
    proctor phase "step $k" -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.2'
    proctor mark step n=$k text='a "b"'
done
proctor phase begin inner
sh -c 'sleep 0.1; exit 5'
proctor phase end outer
for k in $(seq 1 40); do proctor phase begin p$k; proctor phase end p$k; done
proctor phase begin left
sleep 0.3
exit 3
"""


@pytest.fixture
def inside(proctor):
    """An environment in which jobs find the command."""
    return {"PATH": f"{os.path.dirname(proctor.path)}:{proctor.env['PATH']}"}


@pytest.fixture
def recorded(proctor, inside):
    """That job, recorded and streamed at once: (its file, the live summary)."""
    done, summary = proctor.recorded("-i", "100ms", "--csv", "live.csv", "--jsonl", "live.jsonl", "--processes",
                                     "--label", "a=b", "--name", "job", "sh", "-c", JOB, env=inside)
    assert done.returncode == 3, done.stderr
    [path] = proctor.runs()
    return path, summary


def exported(proctor, path, *words):
    done = proctor("export", path, *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- as live --------------------------------------------------------------------------------------

def test_csv_is_what_was_written_live(proctor, recorded):
    path, _ = recorded
    live = (proctor.work / "live.csv").read_text()
    assert exported(proctor, path, "--format", "csv") == live and live.count("\n") > 10
    assert exported(proctor, path, "--format", "csv", "--processes", "-o", "again.csv") == ""
    assert (proctor.work / "again.csv").read_text() == live


PSS = ("mem_pss_bytes", "mem_pss_age_seconds")
COARSE = {"mem.pss.age": "mem_pss_age_seconds", "mem.pss": "mem_pss_bytes", "mem.ratio": "mem_ratio",
          "sched.delay": "sched_delay_seconds", "fds.ratio": "fds_ratio"}  # of processes (doc/run-file.md)


def without(row, *keys):
    """In an order; without these, and without what a run file has coarser of processes."""
    row = {k: v for k, v in row.items() if k not in (*keys, *COARSE.values())}
    if row.get("type") == "process":
        row["values"] = {k: v for k, v in row["values"].items() if k not in COARSE}
    return tuple(sorted((k, json.dumps(v)) for k, v in row.items()))


def test_processes_are_what_was_written_live(proctor, recorded):
    """But for names, a process being called by the last one that it had, and but for a little of PSS."""
    path, _ = recorded
    exported(proctor, path, "--format", "csv", "--processes", "-o", "again.csv")
    live, again = (read_csv(proctor.work / f"{name}.processes.csv") for name in ("live", "again"))
    assert len(live) > 20
    assert sorted(without(r, "command") for r in live) == sorted(without(r, "command") for r in again)
    found = {(r["elapsed_seconds"], r["pid"]): r for r in again}
    for row in live:
        other = found[row["elapsed_seconds"], row["pid"]]
        assert [row[k] == "" for k in PSS] == [other[k] == "" for k in PSS]
        assert float(other["sched_delay_seconds"] or 0) == float(row["sched_delay_seconds"] or 0) // 1
        assert other["fds_ratio"] == (row["fds_ratio"] if float(row["fds_ratio"] or 0) >= 0.5 else "")
        if row["mem_pss_bytes"] != "":
            pss, age = (float(row[k]) for k in PSS)
            assert abs(pss - float(other["mem_pss_bytes"])) <= max(65536, pss / 99)
            assert age <= float(other["mem_pss_age_seconds"]) + 1e-9, "at the most as old as that"
    names = {r["pid"]: r["command"] for r in live}
    assert all(names[r["pid"]] == r["command"] for r in again)


def test_jsonl_is_what_was_written_live(proctor, recorded):
    path, _ = recorded
    exported(proctor, path, "--format", "jsonl", "--processes", "-o", "again.jsonl")
    live, again = (lines(proctor.work / f"{name}.jsonl") for name in ("live", "again"))
    raw = [{line for line in (proctor.work / f"{name}.jsonl").read_text().splitlines()
            if json.loads(line)["type"] in ("run", "sample", "summary", "phase")} for name in ("live", "again")]
    assert raw[0] == raw[1], "byte by byte"
    assert [r["type"] for r in again if r["type"] in ("run", "sample", "summary")] == \
        ["run"] + ["sample"] * sum(r["type"] == "sample" for r in live) + ["summary"]
    for kind in ("event", "phase", "process", "device"):
        rows = [[without(r, "command") for r in side if r["type"] == kind and r.get("kind") != "core"]
                for side in (live, again)]
        assert sorted(rows[0]) == sorted(rows[1]) and rows[0], kind
    assert not [r for r in lines(proctor.work / "again.jsonl") if r["type"] == "mark"]


def test_cores_are_within_their_coding(proctor):
    """While a core's use is steady, its counters come from the line between two rows: each is within 1 % of a core
    for each second since."""
    done = proctor.run("-q", "-i", "500ms", "--jsonl", "live.jsonl", "sh", "-c",
                       "sleep 5; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 3", timeout=120)
    assert done.returncode == 0
    [path] = proctor.runs()
    exported(proctor, path, "--format", "jsonl", "-o", "again.jsonl")
    live, again = ({(r["elapsed"], r["name"]): r["values"] for r in lines(proctor.work / f"{name}.jsonl")
                    if r.get("kind") == "core"} for name in ("live", "again"))
    assert live.keys() == again.keys() and len(live) > 20
    for key, values in live.items():
        for name, value in values.items():
            other = again[key][name]
            assert (value is None) == (other is None)
            if value is not None:
                limit = 0.0102 * 10 if name != "system.cpu.usage" else 0.03
                assert abs(value - other) <= limit, (key, name, value, other)


def test_events_come_back(proctor):
    """One of the budget, at the end of the run."""
    done = proctor.run("-q", "-i", "50ms", "--budget", "0.01%", "--jsonl", "live.jsonl", "sleep", "1.1")
    assert done.returncode == 0
    [path] = proctor.runs()
    exported(proctor, path, "--format", "jsonl", "-o", "again.jsonl")
    live, again = ([r for r in lines(proctor.work / f"{name}.jsonl") if r["type"] == "event"] for name in ("live", "again"))
    assert "budget" in [r["event"] for r in live] and live == again
    [row] = [json.loads(line) for line in exported(proctor, path, "--format", "runlog").splitlines()]
    assert list(row) == ["ts", "type", "event", "data"] and row["event"] == "budget" and "budget" in row["data"]["text"]
    assert [e["at"] for e in rebuilt(proctor, path)["events"]] == [e["at"] for e in live_summary(path)["events"]]


def live_summary(path):
    return json.loads(query(path, "SELECT json FROM summary")[0])


def test_what_was_selected_is_what_comes(proctor):
    done = proctor.run("-q", "-i", "20ms", "--select", "cpu.usage,cpu.ratio,mem.rss,io.read.rate,system.cpu.usage", "--csv", "live.csv", "--processes", "sleep", "0.2")
    assert done.returncode == 0
    [path] = proctor.runs()
    exported(proctor, path, "--format", "csv", "--processes", "-o", "again.csv")
    same_figures(live_summary(path)["metrics"], rebuilt(proctor, path)["metrics"])
    for name in ("csv", "processes.csv"):  # without PSS nothing has an age
        assert (proctor.work / f"again.{name}").read_text() == (proctor.work / f"live.{name}").read_text()


@pytest.mark.parametrize("words", [["attach", "-i", "50ms", "--duration", "0.4"], ["system", "-i", "100ms", "--duration", "0.5"]],
                         ids=lambda w: w[0])
def test_attach_and_system_come_back_too(proctor, words):
    target = [proctor.other(["sleep", "60"]).pid] if words[0] == "attach" else []
    done = proctor(*words, "-q", "--csv", "live.csv", "--summary", "live.json", *target)
    assert done.returncode == 0
    [path] = proctor.runs()
    assert exported(proctor, path, "--format", "csv") == (proctor.work / "live.csv").read_text()
    live = proctor.summary(proctor.work / "live.json")
    same_figures(live["metrics"], rebuilt(proctor, path)["metrics"])


def test_an_output_is_replaced_and_never_the_run_itself(proctor, recorded):
    path, _ = recorded
    (proctor.work / "out").write_text("old\n" * 100000)
    exported(proctor, path, "--format", "csv", "-o", "out")
    assert (proctor.work / "out").read_text() == (proctor.work / "live.csv").read_text()
    before = path.read_bytes()
    os.link(path, proctor.work / "link")
    for format in ("csv", "jsonl", "runlog"):
        for out in (path, "link"):
            done = proctor("export", path, "--format", format, "-o", out)
            assert done.returncode == 1 and "the run itself" in done.stderr
    assert path.read_bytes() == before
    done = proctor("export", path, "--format", "csv", "-o", "no/such/folder")
    assert done.returncode == 1 and "No such file" in done.stderr
    for format in ("csv", "jsonl", "runlog"):
        done = proctor("export", path, "--format", format, "-o", "/dev/full")
        assert done.returncode == 1 and done.stderr.count("No space left") >= 1, (format, done)


# --- the summary from samples ---------------------------------------------------------------------

def rebuilt(proctor, path):
    """What is shown of a run whose end was not written."""
    copy = proctor.work / "unfinished.proctor"
    shutil.copy(path, copy)
    with sqlite3.connect(copy) as db:
        db.execute("DELETE FROM summary")
        db.execute("UPDATE run SET ended = NULL")
    db.close()
    return json.loads(proctor("show", "--json", copy).stdout)


def same_figures(live, again):
    """Exact, but for what is divided: that to 1e-9."""
    assert live.keys() == again.keys()
    for key, statistics in live.items():
        assert statistics.keys() == again[key].keys(), key
        for name, value in statistics.items():
            other = again[key][name]
            if name == "mean" and value is not None:
                assert abs(value - other) <= 1e-9 * max(1, abs(value)), (key, name)
            else:
                assert value == other, (key, name)


def test_the_summary_from_samples_is_that_of_the_live_run(proctor, recorded):
    path, live = recorded
    again = rebuilt(proctor, path)
    assert again["rebuilt"] is True and "rebuilt" not in live
    same_figures(live["metrics"], again["metrics"])
    assert len(live["phases"]) == len(again["phases"]) == 46
    if not SANITIZED:  # which is not that fast
        assert not all(p["exact"] for p in live["phases"]), "some came too fast for a sample of their own"
    for one, other in zip(live["phases"], again["phases"]):
        for key in ("name", "start", "depth", "instances", "exact", "left_open"):
            assert one[key] == other[key], (one["name"], key)
        assert abs(one["seconds"] - other["seconds"]) < 1e-9
        same_figures(one["metrics"], other["metrics"])
    for key in ("run", "exit", "limits", "annotations", "events", "events_total", "schema", "devices"):
        assert {**live, "run": {**live["run"], "file": None}}[key] == {**again, "run": {**again["run"], "file": None}}[key], key
    assert again["samples"] == {"taken": live["samples"]["taken"], "late": None, "missed": None}
    for key in ("seen", "folded", "never_sampled_least", "commands"):
        assert live["processes"][key] == again["processes"][key], key
    order = lambda p: (p["pid"], p["started"])
    assert sorted(live["processes"]["list"], key=order) == sorted(again["processes"]["list"], key=order)
    assert [a["metric"] for a in live["absent"]] == [a["metric"] for a in again["absent"]]
    assert again["self"]["cpu_seconds"] is None


def test_phases_across_a_gap_in_the_samples_are_not_lost(proctor):
    """Samples may be missing, as where the disk was full: what waits for one is not dropped."""
    proctor.run("-q", "-i", "20ms", "-o", "a.proctor", "sleep", "0.3")
    path, count, step = proctor.work / "a.proctor", 300, 60 * 10**6  # often enough for a sample of its own
    with sqlite3.connect(path) as db:
        last = db.execute("SELECT max(elapsed) FROM job_samples").fetchone()[0]
        end = last + (count + 60) * step
        db.execute("UPDATE job_samples SET elapsed = ? WHERE sample = (SELECT max(sample) FROM job_samples)", (end,))
        for k in range(count):
            db.execute("INSERT INTO phases(name, start, seconds, depth) VALUES(?, ?, ?, 0)",
                       (f"p{k}", last + k * step, (k % 7 + 1) * 0.02))
        for k in range(31):  # all at once
            db.execute("INSERT INTO phases(name, start, seconds, depth) VALUES(?, ?, 0.01, ?)",
                       (f"q{k}", last + (count + 30) * step, k))
    db.close()
    phases = {p["name"]: p for p in rebuilt(proctor, path)["phases"]}
    assert set(phases) == {f"p{k}" for k in range(count)} | {f"q{k}" for k in range(31)}
    for k in range(count):
        assert abs(phases[f"p{k}"]["seconds"] - (k % 7 + 1) * 0.02) < 1e-6 and not phases[f"p{k}"]["left_open"], k


# --- the run log ----------------------------------------------------------------------------------

def test_runlog_is_in_the_shape_of_the_seed(proctor, recorded):
    path, live = recorded
    rows = [json.loads(line) for line in exported(proctor, path, "--format", "runlog").splitlines()]
    phases, events = ([r for r in rows if r["type"] == kind] for kind in ("phase", "event"))
    assert len(phases) + len(events) == len(rows) and len(phases) == 46
    for row in rows:
        assert list(row)[:2] == ["ts", "type"]
        assert len(row["ts"]) == len("2026-11-15T09:02:53.123+00:00") and row["ts"].endswith("+00:00")
    assert [r["ts"] for r in rows] == sorted(r["ts"] for r in rows), "as it happened"
    ended = {p["name"]: p for p in live["phases"]}
    for row in phases:
        assert list(row)[2:4] == ["name", "seconds"] and row["seconds"] == round(ended[row["name"]]["seconds"], 3)
        assert row["metrics"] == ended[row["name"]]["metrics"] and row["depth"] == ended[row["name"]]["depth"]
    marks = [r for r in events if r["event"] == "step"]
    assert [r["data"] for r in marks] == [{"n": k, "text": 'a "b"'} for k in (1, 2, 3)]
    assert all(list(r) == ["ts", "type", "event", "data"] for r in marks)


def test_extra_keys_overwrite_nothing(proctor, inside):
    """Whatever a record says of a phase, ts, type, name and seconds stay what they are."""
    proctor.run("-q", "-o", "a.proctor", "sh", "-c", "proctor phase one -- true; proctor mark bare", env=inside)
    path = proctor.work / "a.proctor"
    evil = {"ts": "evil", "type": "evil", "name": "evil", "seconds": "evil", "other": [1, {"a": None}]}
    with sqlite3.connect(path) as db:
        db.execute("UPDATE phases SET data = ?", (json.dumps(evil),))
    db.close()
    phase, mark = sorted((json.loads(t) for t in exported(proctor, path, "--format", "runlog").splitlines()),
                         key=lambda r: r["type"] == "event")
    assert (phase["type"], phase["name"], phase["other"]) == ("phase", "one", [1, {"a": None}])
    assert phase["ts"].endswith("+00:00") and isinstance(phase["seconds"], (int, float))
    assert list(mark) == ["ts", "type", "event"] and mark["event"] == "bare", "no data where there is none"


def test_the_runlog_is_there_as_it_happens(proctor, inside):
    process = proctor.start("run", "-q", "-i", "50ms", "sh", "-c",
                            "proctor phase one -- true; proctor mark x a=1; exec sleep 60", env=inside)
    [path] = wait_until(proctor.runs, "a run file")

    def log():
        done = proctor("export", path, "--format", "runlog")
        return [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else []
    rows = wait_until(lambda: len(log()) == 2 and log(), "both lines")
    assert [(r["type"], r.get("name", r.get("event"))) for r in rows] == [("phase", "one"), ("event", "x")]
    os.kill(proctor.children(process.pid)[0], signal.SIGTERM)
    finish(process)


# --- bounds ---------------------------------------------------------------------------------------

def test_memory_does_not_grow_with_samples(proctor):
    """Ten times as many samples, and no more memory."""
    proctor.run("-q", "-i", "5ms", "-o", "a.proctor", "sh", "-c", "sleep 1")
    path, long = proctor.work / "a.proctor", proctor.work / "long.proctor"
    shutil.copy(path, long)
    with sqlite3.connect(long) as db:
        count = db.execute("SELECT max(sample) FROM job_samples").fetchone()[0]
        columns = [row[1] for row in db.execute("PRAGMA table_info(job_samples)")][2:]
        for times in range(1, 100):
            db.execute(f"INSERT INTO job_samples SELECT sample + {count * times}, elapsed + {times * 10**9}, "
                       f"{', '.join(columns)} FROM job_samples WHERE sample <= {count}")
    db.close()
    assert query(long, "SELECT count(*) FROM job_samples")[0] > 10000

    def peak(file):
        done = proctor("run", "-q", "--no-record", "--summary", proctor.summary_file, "--", proctor.path, "export",
                       file, "--format", "jsonl", "--processes", "-o", "/dev/null")
        assert done.returncode == 0, done.stderr
        return proctor.summary()["metrics"]["mem.rss.peak"]["peak"]
    assert peak(long) < peak(path) + ((64 if SANITIZED else 4) << 20), "a sanitizer keeps what was freed for a while"
