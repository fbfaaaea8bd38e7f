# SPDX-License-Identifier: Apache-2.0
"""Reports: their numbers are those of the run file, computed here once more by SQL."""
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess

import pytest

from proctor_cli import PROCTOR, ROOT, SANITIZED, SLACK, finish, query, said, skip_visibly, wait_until
from test_gpu import FAKE, TWO, Gpu
from test_runs_damage import VALUES, columns, survives

CONTRACT = ROOT / "tests" / "browser" / "contract.mjs"
JOB = f"""
"{PROCTOR}" phase begin load
python3 -c 'x = bytearray(80 << 20); import time; time.sleep(0.3)'
"{PROCTOR}" phase end load
"{PROCTOR}" phase begin train
"{PROCTOR}" phase begin epoch
python3 -c 'sum(range(8000000))'
"{PROCTOR}" mark half loss=0.5 last=false
"{PROCTOR}" phase end epoch
"{PROCTOR}" phase end train
head -c 3000000 /dev/zero > out && sync out
"""


def close(a, b, share=1e-4):
    return abs(a - b) <= share * max(abs(a), abs(b)) + 1e-9


def keeps_to_contract(*paths):
    if not shutil.which("node"):
        skip_visibly("node, which checks the shape of the model")
    done = subprocess.run(["node", CONTRACT, *paths], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def report(proctor, *runs, check=True):
    """The model of runs, as `proctor report` writes it."""
    path = proctor.work / "model.json"
    done = proctor("report", *runs, "-o", path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if check:
        keeps_to_contract(path)
    return json.loads(path.read_text())


@pytest.fixture
def page(proctor):
    """For tests of pages: this build must have one."""
    if "has no page" in proctor("report", "nothing", "-o", "x.html").stderr:
        skip_visibly("a build with the page: node and npm")


def recorded(proctor, *words):
    path = proctor.work / "run.proctor"
    done = proctor.run("-q", "-i", "20ms", "-o", path, "--force", *words)
    return path, done


@pytest.fixture
def job(proctor):
    path, done = recorded(proctor, "--match", "py=python", "sh", "-c", JOB)
    assert done.returncode == 0, done.stderr
    return path


def in_page(html):
    """The model within a page."""
    [text] = re.findall(r'<script type="application/json" id="model">(.*?)</script>', html, re.S)
    return json.loads(text)


# --- numbers --------------------------------------------------------------------------------------

def test_a_short_run_has_a_bucket_for_each_sample(proctor, job):
    [run] = report(proctor, job)["runs"]
    rows = query(job, "SELECT elapsed / 1e9, mem_rss_bytes, cpu_usage_cores FROM job_samples "
                      "ORDER BY sample")
    assert run["time"]["samples"] == len(rows)
    at = {round(t, 6): i for i, t in enumerate(run["time"]["at"])}
    rss, cpu = run["series"]["mem.rss"], run["series"]["cpu.usage"]
    assert "max" not in rss  # one sample each
    known = 0
    for seconds, memory, cores in rows:
        i = at[round(seconds, 6)]
        if memory is not None:
            assert close(rss["mean"][i], memory)
        if cores is not None:
            assert close(cpu["mean"][i], cores)
            known += 1
    assert known > 10


def test_figures_are_those_of_the_record(proctor, job):
    [run] = report(proctor, job)["runs"]
    [(peak, at)] = query(job, "SELECT max(mem_rss_bytes), elapsed / 1e9 FROM job_samples")
    [mark] = query(job, "SELECT json_extract(json, '$.metrics.\"mem.rss.peak\".peak') FROM summary")
    rss = run["series"]["mem.rss"]["stats"]
    assert rss["max"] == max(peak, mark) > 80 << 20
    assert rss["at"] is None if mark > peak else close(rss["at"], at)
    [total] = query(job, "SELECT max(cpu_time_seconds) FROM job_samples")
    [lasted] = query(job, "SELECT json_extract(json, '$.run.duration') FROM summary")
    cpu = run["series"]["cpu.usage"]["stats"]
    assert close(cpu["total"], total) and close(cpu["mean"], total / lasted, 1e-3)
    [written] = query(job, "SELECT max(io_write_bytes) FROM job_samples")
    assert run["series"]["io.write.rate"]["stats"]["total"] == written >= 3000000
    assert run["run"]["duration"] == lasted and run["run"]["exit"] == 0
    assert run["verdict"] == {"text": "finished, exit 0", "severity": "good"}


def test_the_memory_of_the_job_has_its_limit_in_tile_chart_and_words(proctor):
    path, _ = recorded(proctor, "--memory-total", "1G", "--cpu-total", "3", "sh", "-c", JOB)
    [run] = report(proctor, path)["runs"]
    tiles = {t["id"]: t for t in run["tiles"]}
    assert tiles["memory"]["limit"] == {"value": 1 << 30, "text": "limit 1.00 GiB"}
    assert tiles["cpu"]["limit"]["value"] == 3
    chart = {c["id"]: c for c in run["charts"]}["memory"]
    series = run["series"][chart["lines"][0]["series"]]
    assert series["limit"] == tiles["memory"]["limit"]
    assert "limit 1.00 GiB" in chart["text"] and "most" in chart["text"]


def test_phases_nest_and_have_their_figures(proctor, job):
    [run] = report(proctor, job)["runs"]
    names = [p["name"] for p in run["phases"]]
    assert names == ["load", "train", "epoch"]
    assert [p["level"] for p in run["phases"]] == [0, 0, 1]
    assert run["phases"][2]["parent"] == 1
    for phase in run["phases"]:
        [(start, seconds, cpu)] = query(
            job, "SELECT start / 1e9, seconds, json_extract(data, '$.metrics.\"cpu.time\".total') "
                 "FROM phases WHERE name = ?", phase["name"])
        assert close(phase["begin"], start) and close(phase["time"], seconds)
        assert close(phase["stats"]["cpu.usage"]["total"], cpu)
    [mark] = [e for e in run["events"] if e["kind"] == "mark"]
    assert mark["text"] == "half loss=0.5 last=false"


def test_the_curve_of_a_process_is_what_it_used(proctor):
    """Busy in its second half alone, and its child in the first."""
    path, _ = recorded(proctor, "sh", "-c", "sleep 1; exec python3 -c 'while __import__(\"time\").process_time() < 1: pass'")
    [run] = report(proctor, path)["runs"]
    width = run["time"]["at"][-1] / 60
    root = next(p for p in run["processes"]["list"] if p["parent"] is None)
    [sampled] = query(path, "SELECT max(p.cpu_time_seconds) FROM process_samples p JOIN entities e ON e.id = p.entity "
                            "WHERE e.pid = ?", root["pid"])
    points = [v or 0 for v in root["spark"]]
    assert len(points) == 60 and sampled > 0.9
    assert sum(points) * width == pytest.approx(sampled, rel=0.02)
    assert sum(points[:int(0.9 / width)]) * width < 0.1  # while it slept, however long the rest took
    sleeper = next(p for p in run["processes"]["list"] if p["name"] == "sleep")
    assert sleeper["spark"][0] is not None and sleeper["spark"][-1] is None


def test_processes_names_and_words_are_there(proctor, job):
    [run] = report(proctor, job)["runs"]
    listed = run["processes"]["list"]
    [(pid, cpu)] = query(job, "SELECT pid, max(cpu_time_seconds) FROM entities "
                              "WHERE kind = 'process'")
    top = max(listed, key=lambda p: p["cpu"] or 0)
    assert (top["pid"], top["cpu"]) == (pid, cpu)
    root = [p for p in listed if p["parent"] is None]
    assert [p["name"] for p in root] == ["sh"] and root[0]["exit"] == "exit 0"
    assert listed[top["parent"]]["pid"] == root[0]["pid"]
    [match] = run["matches"]["rows"]
    assert match["name"] == "py" and match["instances"] == 2
    titles = [m["title"] for m in run["measured"]]
    assert titles == ["Method", "Completeness", "What is absent, and why", "proctor itself"]
    assert dict(run["facts"])["run"] == run["id"]
    assert all(c["text"] for c in run["charts"])


# --- reduction ------------------------------------------------------------------------------------

SECONDS, SPIKE, GAP = 9000, 4321, range(6000, 6200)


def long_run(path, seconds=SECONDS):
    """A run of 9,000 seconds at 1 Hz in the place of a short one: one sample is far above all
    others, and 200 are missing."""
    db = sqlite3.connect(path, isolation_level=None)
    for table in ("job_samples", "system_samples", "process_samples", "core_samples", "disk_samples",
                  "filesystem_samples", "interface_samples", "gpu_samples", "summary", "phases"):
        db.execute(f"DELETE FROM {table}")
    [marks] = db.execute("SELECT min(id) FROM mark_sets").fetchone()
    db.execute("UPDATE run SET interval = 1, about = json_set(about, '$.interval', 1.0)")
    db.execute("BEGIN")
    before = 0
    for t in range(1, seconds + 1):
        if t in GAP:
            continue
        cores = 30 if t == SPIKE else 1 + (t % 100) / 100
        db.execute("INSERT INTO job_samples (sample, elapsed, interval, marks, cpu_usage_cores,"
                   " cpu_time_seconds, mem_rss_bytes) VALUES (?, ?, ?, ?, ?, ?, ?)",
                   (t, t * 10**9, (t - before) * 10**9, marks, cores, 1.5 * t, (t % 777) << 20))
        before = t
    db.execute("COMMIT")
    db.close()


def test_a_long_run_is_reduced_and_a_spike_of_one_sample_survives(proctor):
    path, _ = recorded(proctor, "true")
    long_run(path)
    [run] = report(proctor, path)["runs"]
    at, span = run["time"]["at"], run["time"]["span"]
    assert 1000 <= len(at) <= 2000 and run["time"]["samples"] == SECONDS - len(GAP)
    cpu = run["series"]["cpu.usage"]
    assert max(v for v in cpu["max"] if v is not None) == 30
    [i] = [i for i, v in enumerate(cpu["max"]) if v == 30]
    assert abs(at[i] - SPIKE) <= span[i] and cpu["mean"][i] < 10
    assert cpu["stats"]["max"] == 30 and cpu["stats"]["at"] == SPIKE


def test_each_bucket_is_what_sql_says_of_its_samples(proctor):
    path, _ = recorded(proctor, "true")
    long_run(path)
    [run] = report(proctor, path)["runs"]
    rss = run["series"]["mem.rss"]
    known = 0
    for t, span, mean, least, most in zip(run["time"]["at"], run["time"]["span"], rss["mean"],
                                          rss["min"], rss["max"]):
        begin, end = t - span / 2, t + span / 2
        # A sample stands for the second that it ends.
        rows = query(path, "SELECT mem_rss_bytes, min(elapsed / 1e9, ?2) - max(elapsed / 1e9 - 1, ?1) "
                           "FROM job_samples WHERE elapsed / 1e9 > ?1 + 1e-3 AND elapsed / 1e9 - 1 < ?2 - 1e-3",
                     begin, end)
        if not rows:
            assert mean is None and least is None and most is None
            continue
        known += 1
        values = [v for v, _ in rows]
        assert close(least, min(values)) and close(most, max(values))
        assert close(mean, sum(v * w for v, w in rows) / sum(w for _, w in rows), 2e-3)
    assert known > 900


def test_gaps_stay_gaps(proctor):
    path, _ = recorded(proctor, "true")
    long_run(path)
    [run] = report(proctor, path)["runs"]
    cpu = run["series"]["cpu.usage"]["mean"]
    empty = [t for t, v in zip(run["time"]["at"], cpu) if v is None]
    assert empty and all(GAP[0] - 10 < t < GAP[-1] + 10 for t in empty)
    assert len(empty) * run["time"]["span"][0] > 0.9 * (len(GAP) - 20)
    assert [t for t in run["late"] if GAP[-1] <= t <= GAP[-1] + 2]


def test_a_gap_in_a_short_run_is_one_bucket_without_values(proctor):
    path, _ = recorded(proctor, "sleep", "1")
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("DELETE FROM job_samples WHERE sample BETWEEN 10 AND 30")
    db.close()
    [run] = report(proctor, path)["runs"]
    memory = run["series"]["mem.rss"]["mean"][:-1]  # at the end nobody is there any more
    lost = [i for i, v in enumerate(memory) if v is None]
    assert len(lost) == 1
    assert all(s["mean"][lost[0]] is None for s in run["series"].values())
    assert run["time"]["span"][lost[0]] > 0.3
    assert run["late"]


def test_memory_and_size_do_not_grow_with_the_run(proctor, page):
    """Two days, and with --full a month: the page is small, and so is who makes it."""
    seconds = 30 * 86400 if os.environ.get("PROCTOR_TEST_FULL") == "1" else 2 * 86400
    path, _ = recorded(proctor, "true")
    long_run(path, seconds)
    room = "ulimit -v 20480;" if not SANITIZED else ""  # KiB; a sanitizer maps terabytes
    done = subprocess.run(["sh", "-c", f'{room} exec "$@"', "sh", PROCTOR, "report", path, "-o", "long.html"],
                          cwd=proctor.work, env=proctor.env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (proctor.work / "long.html").stat().st_size < 1_000_000
    [run] = in_page((proctor.work / "long.html").read_text())["runs"]
    assert run["time"]["samples"] == seconds - len(GAP)
    assert max(v for v in run["series"]["cpu.usage"]["max"] if v is not None) == 30


def test_several_long_runs_together_have_fewer_buckets(proctor):
    path, _ = recorded(proctor, "true")
    long_run(path)
    model = report(proctor, *[path] * 12)
    assert len(model["runs"]) == 12
    assert all(100 <= len(r["time"]["at"]) <= 2000 for r in model["runs"])
    series = [s for r in model["runs"] for s in r["series"].values()]
    assert len(json.dumps([[s["mean"], s.get("min"), s.get("max")] for s in series])) < 700_000


# --- how it ended ---------------------------------------------------------------------------------

def test_a_failed_and_a_killed_job_say_so(proctor):
    path, _ = recorded(proctor, "sh", "-c", "exit 3")
    [run] = report(proctor, path)["runs"]
    assert run["verdict"] == {"text": "failed, exit 3", "severity": "bad"}
    path, _ = recorded(proctor, "sh", "-c", "kill -9 $$")
    [run] = report(proctor, path)["runs"]
    assert run["verdict"] == {"text": "killed by SIGKILL", "severity": "bad"}
    assert run["run"]["signal"] == "SIGKILL" and run["run"]["exit"] is None
    [event] = [e for e in run["events"] if e["kind"] == "signal"]
    assert event["severity"] == "bad"
    assert any("SIGKILL" in f["text"] for f in run["findings"])


def killed_recorder(proctor):
    path = proctor.work / "dead.proctor"
    process = proctor.start("run", "-q", "-i", "20ms", "-o", path, "sleep", "60")

    def samples():
        try:
            return query(path, "SELECT count(*) FROM job_samples")[0]
        except sqlite3.OperationalError:
            return 0
    wait_until(lambda: samples() > 5, "some samples")
    jobs = proctor.children(process.pid)
    process.kill()
    process.wait()
    for pid in jobs:
        os.kill(pid, signal.SIGKILL)
    return path


def test_a_run_whose_recorder_was_killed_has_a_report(proctor):
    path = killed_recorder(proctor)
    [run] = report(proctor, path)["runs"]
    assert run["verdict"]["severity"] == "warn" and "not known" in run["verdict"]["text"]
    assert run["time"]["samples"] == query(path, "SELECT count(*) FROM job_samples")[0]
    assert run["run"]["exit"] is None and run["series"]["mem.rss"]["stats"]["max"] > 0


def test_a_run_that_is_going_on_has_a_report(proctor):
    path = proctor.work / "now.proctor"
    process = proctor.start("run", "-q", "-i", "20ms", "-o", path, "sleep", "60")
    wait_until(lambda: path.exists() and proctor("report", path, "-o", "now.json").returncode == 0,
               "a report")
    [run] = json.loads((proctor.work / "now.json").read_text())["runs"]
    assert run["verdict"]["text"] == "still running"
    process.send_signal(signal.SIGTERM)
    finish(process)


# --- files ----------------------------------------------------------------------------------------

HOSTILE = ["</script><script>alert(1)</script>", "\x1b[31mred\x1b[0m", "a\nb", "\u202egnp.exe", "@MODEL@"]


def test_hostile_words_stay_words(proctor, page):
    path, done = recorded(proctor, "--name", HOSTILE[0], "--label", "k=" + HOSTILE[1], "sh", "-c",
                          f'"{PROCTOR}" phase "$0" -- "{PROCTOR}" mark "$0"', *HOSTILE)
    assert done.returncode == 0, done.stderr
    [run] = report(proctor, path)["runs"]
    assert run["run"]["argv"][3:] == HOSTILE
    assert [p["name"] for p in run["phases"]] == [HOSTILE[0]]
    assert "\n" not in run["run"]["command"]
    assert proctor("report", path, "-o", "x.html").returncode == 0
    html = (proctor.work / "x.html").read_text()
    assert "<script>alert" not in html and html.count("</script>") == html.count("<script")
    assert in_page(html)["runs"][0] == run


def test_page_and_json_are_the_same_model(proctor, page, job):
    model = report(proctor, job)
    assert proctor("report", job, "-o", "x.html").returncode == 0
    html = (proctor.work / "x.html").read_text()
    assert in_page(html) == model
    assert html.startswith("<!doctype html>") and "@MODEL@" not in html
    assert len(html) < 1_000_000


def test_two_runs_in_one_report(proctor, job):
    other = shutil.copy(job, proctor.work / "other.proctor")
    path, _ = recorded(proctor, "--name", "second", "true")
    model = report(proctor, other, path)
    assert [r["run"]["command"].split()[0] for r in model["runs"]] == ["sh", "true"]
    assert model["runs"][1]["name"] == "second"


def test_a_run_is_named_as_elsewhere(proctor):
    proctor.run("-q", "true")
    model = report(proctor, "last")
    assert report(proctor, model["runs"][0]["id"][:-2]) == model


@pytest.mark.parametrize("words, text", [
    (["report"], "a run is missing"), (["report", "last"], "-o FILE is missing"),
    (["report", "last", "-o", "x.doc"], ".html, .md"), (["report", "last", "-o", "x"], ".html, .md"),
])
def test_wrong_usage_is_explained(proctor, words, text):
    done = proctor(*words)
    assert done.returncode == 2 and text in done.stderr and done.stdout == ""


def test_what_cannot_be_written_or_read_is_said(proctor, job):
    done = proctor("report", job, "-o", "no/such/x.json")
    assert done.returncode == 1 and "No such file" in done.stderr
    done = proctor("report", "nothing-like-that", "-o", "x.json")
    assert done.returncode == 1 and "nothing-like-that" in done.stderr
    link = proctor.work / "run.json"
    link.symlink_to(job)
    before = job.read_bytes()
    done = proctor("report", job, "-o", link)
    assert done.returncode == 1 and "is the run itself" in done.stderr
    assert job.read_bytes() == before
    assert not [p for p in proctor.work.iterdir() if p.suffix == ".tmp"]


# --- --report -------------------------------------------------------------------------------------

def test_a_report_at_the_end_of_a_run(proctor, page):
    done = proctor.run("-q", "-i", "20ms", "-o", "r.proctor", "--report", "r.html", "--report",
                       "r.json", "sh", "-c", "sleep 0.2; exit 4")
    assert (done.returncode, done.stderr) == (4, "")
    model = json.loads((proctor.work / "r.json").read_text())
    keeps_to_contract(proctor.work / "r.json")
    assert model["runs"][0]["verdict"]["text"] == "failed, exit 4"
    assert in_page((proctor.work / "r.html").read_text()) == model
    assert report(proctor, proctor.work / "r.proctor") == model


def test_a_report_of_what_was_attached_to_and_of_the_machine(proctor):
    sleeper = proctor.other(["sleep", "30"])
    done = proctor("attach", "-q", "-i", "20ms", "--duration", "0.3", "--report", "a.json", sleeper.pid)
    assert done.returncode == 0, done.stderr
    [run] = json.loads((proctor.work / "a.json").read_text())["runs"]
    assert run["verdict"]["text"] == "recording ended" and "mem.rss" in run["series"]
    done = proctor("system", "-q", "-i", "100ms", "--duration", f"{0.6 * SLACK}", "--report", "s.json")
    assert done.returncode == 0, done.stderr
    keeps_to_contract(proctor.work / "s.json")
    [run] = json.loads((proctor.work / "s.json").read_text())["runs"]
    assert "system.cpu.usage" in run["series"] and "system.mem.used" in run["series"]


@pytest.mark.parametrize("words, text", [
    (["--no-record", "--report", "r.json"], "--no-record"),
    (["--report", "r.doc"], "its ending says"),
    (["--report", "r.json", "--summary", "r.json"], "same file"),
    (["--report", "no/such/r.json"], "'no/such/r.json': No such file"),
    (["--report", "other.json", "--report", "/r.txt/"], "its ending says"),
    (["--report", "folder.txt"], "Is a directory"),
])
def test_what_cannot_become_a_report_is_said_before_the_job_starts(proctor, words, text):
    (proctor.work / "folder.txt").mkdir()
    done = proctor.run(*words, "touch", "started")
    assert done.returncode == 125 and text in done.stderr
    assert not (proctor.work / "started").exists()


def test_a_report_that_cannot_be_written_is_said_and_the_job_is_not_touched(proctor):
    """Its folder is gone when the job is."""
    def run(*words, script="rm -r no; exit 5"):
        (proctor.work / "no").mkdir()
        return proctor.run("-q", *words, "--report", "no/r.json", "sh", "-c", script)
    done = run()
    assert done.returncode == 5
    [line] = [line for line in said(done.stderr) if "the report cannot be written" in line]
    later = re.search(r"`proctor (report \S+) -o FILE`", line)  # what it says can be done
    assert proctor(*later.group(1).split(), "-o", "later.json").returncode == 0
    done = run("--report", "other.json")
    assert "no/r.json" in done.stderr and (proctor.work / "other.json").exists(), "one keeps no other back"
    assert run("--strict", script="rm -r no").returncode == 125


# --- files that say anything ----------------------------------------------------------------------

def test_whatever_a_file_has_the_model_keeps_its_shape(proctor, job):
    dice, bad = random.Random(20261115), proctor.work / "bad.proctor"
    with sqlite3.connect(job) as db:
        all_columns = list(columns(db))
    db.close()
    made = []
    for turn, (table, column) in enumerate(all_columns):
        shutil.copy(job, bad)
        with sqlite3.connect(bad) as db:
            if turn % 2:
                db.execute("DELETE FROM summary")
                db.execute("UPDATE run SET ended = NULL")
            try:
                db.execute(f"UPDATE {table} SET {column} = {dice.choice(VALUES)}")
            except sqlite3.DatabaseError:
                pass  # a key, or NOT NULL
        db.close()
        path = proctor.work / f"any-{turn}.json"
        if survives(proctor, "report", bad, "-o", path) == 0:
            made.append(path)
    assert len(made) > 100
    keeps_to_contract(*made)


# --- GPUs -----------------------------------------------------------------------------------------

@pytest.fixture
def gpu(proctor):
    assert (FAKE / "libnvidia-ml.so.1").exists(), "build with the tests"
    return Gpu(proctor)


def test_gpus_have_curves_tiles_rows_and_a_finding(gpu, proctor):
    summary, _, _ = gpu.run(TWO + "util 0 80 0 99\nutil 1 0 0 99\n", "-i", "100ms", "-o", "g.proctor",
                            "sleep", "1.5")
    [run] = report(proctor, proctor.work / "g.proctor")["runs"]
    rows = dict(query(proctor.work / "g.proctor",
                      "SELECT e.name, max(g.gpu_mem_used_bytes) FROM gpu_samples g "
                      "JOIN entities e ON e.id = g.entity GROUP BY e.id"))
    for number, device in enumerate(summary["devices"]):
        used = run["series"][f"gpu.{number}.mem.used"]
        assert used["stats"]["max"] == rows[device["name"]]
        [(capacity,)] = {(used["limit"]["value"],)}
        assert capacity == device["metrics"]["gpu.mem.total"]["peak"]
        assert run["series"][f"gpu.{number}.util"]["stats"]["mean"] == pytest.approx(0.8 if number == 0 else 0)
    assert run["series"]["gpu.0.idle"]["stats"]["mean"] == 0
    assert run["series"]["gpu.1.idle"]["stats"]["mean"] == 1
    found = [f["text"] for f in run["findings"] if f["id"] == "gpu-idle"]
    assert found == ["GPU 1 was idle 100 % of the time."]
    tiles = {t["id"]: t for t in run["tiles"]}
    assert tiles["gpu"]["values"][0]["series"] == ["gpu.0.util", "gpu.1.util"]
    assert [r["model"] for r in run["devices"]["rows"]] == ["H200", "H100"]
    assert "1 x H200" in run["run"]["host"] and "1 x H100" in run["run"]["host"]
    assert "GPU 0" in {c["id"]: c for c in run["charts"]}["gpu"]["text"]


def test_each_device_has_its_figures_in_each_phase(gpu, proctor):
    """What a phase of the report says of a device is what SQL says of the samples in it."""
    script = TWO + "util 0 0 0 1.0\nutil 0 80 1.0 99\nutil 1 50 0 99\n"
    job = f'"{PROCTOR}" phase load -- sleep 1; "{PROCTOR}" phase train -- sleep 1.2'
    gpu.run(script, "-i", "100ms", "-o", "p.proctor", "sh", "-c", job)
    path = proctor.work / "p.proctor"
    [run] = report(proctor, path)["runs"]
    assert [p["name"] for p in run["phases"]] == ["load", "train"]
    for phase in run["phases"]:
        for number, key in ((0, "gpu.0.util"), (1, "gpu.1.util")):
            rows = query(path, "SELECT g.gpu_util_ratio FROM gpu_samples g JOIN entities e ON e.id = g.entity "
                               "JOIN job_samples j ON j.sample = g.sample WHERE e.name = ? AND j.elapsed > ? * 1e9 "
                               "AND j.elapsed <= ? * 1e9 AND g.gpu_util_ratio IS NOT NULL",
                         f"gpu{number}", phase["begin"], phase["end"])
            stats = phase["stats"][key]
            for row in rows:
                assert stats["min"] - 1e-6 <= row <= stats["max"] + 1e-6
            assert stats["min"] <= stats["mean"] <= stats["max"]
    load, train = (p["stats"] for p in run["phases"])
    assert train["gpu.0.util"]["max"] == pytest.approx(0.8) and load["gpu.0.util"]["min"] == 0
    assert load["gpu.0.util"]["mean"] < train["gpu.0.util"]["mean"]
    assert load["gpu.1.util"]["mean"] == pytest.approx(0.5) == train["gpu.1.util"]["mean"]
    assert train["gpu.1.power"]["total"] == pytest.approx(250 * run["phases"][1]["time"], rel=0.3)
