# SPDX-License-Identifier: Apache-2.0
"""The run file when things go wrong: a killed recorder, a full disk, a blocked one, no log, readers at any time."""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from faulty_server import Server
from proctor_cli import HERE, PATIENCE, SANITIZED, SLACK, finish, is_alive, open_run, problems, query, read_csv, said, \
    skip_visibly, wait_until

KILLS = 200 if os.environ.get("PROCTOR_TEST_FULL") else 20 if SANITIZED else 40


def check(path):
    """It opens, and is whole."""
    assert query(path, "PRAGMA integrity_check") == ["ok"]


def samples(path):
    """Numbers of the samples that are there; none where there are no tables yet."""
    try:
        return query(path, "SELECT sample FROM job_samples ORDER BY sample")
    except sqlite3.OperationalError as error:
        assert "no such table" in str(error) or "unable to open" in str(error), error
        return []


def until_samples(path, count):
    wait_until(lambda: path.exists() and len(samples(path)) >= count, f"{count} samples")


def record(proctor, path, *words, interval="20ms", **options):
    """A recording of a job that would take long, and its job."""
    process = proctor.start("run", "-q", "-i", interval, "-o", path, *words, "sleep", "77", **options)
    return process, proctor.job_of(process)


def preloaded(proctor, name):
    """Variables that put a shim between the command and the kernel."""
    shim = proctor.folder / "shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", shim,
                    HERE / "shims" / f"{name}.c", "-ldl"], check=True)
    env = {"LD_PRELOAD": str(shim)}
    if SANITIZED:
        env["ASAN_OPTIONS"] = proctor.env["ASAN_OPTIONS"] + ":verify_asan_link_order=0:detect_leaks=0"
    return env


def end(process, job):
    os.kill(job, signal.SIGTERM)
    status, _, err = finish(process, PATIENCE)
    assert status == -signal.SIGTERM, err
    return said(err)


@pytest.fixture
def mounted(proctor):
    """Makes file systems in memory: mounted(size) is the folder of one."""
    folders = []

    def mount(size):
        folder = proctor.folder / f"disk{len(folders)}"
        folder.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder],
                              capture_output=True, text=True)
        if done.returncode != 0:
            skip_visibly(f"mount: {done.stderr.strip()}")
        folders.append(folder)
        return folder
    yield mount
    proctor.end_all()
    for folder in folders:
        subprocess.run(["umount", folder], check=True)


# --- the recorder is killed -----------------------------------------------------------------------

def streamed(path):
    """elapsed of the samples in a JSONL file, a torn last line left out."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [line["elapsed"] for line in map(json.loads, lines) if line["type"] == "sample"]


def kill_once(proctor, number, delay):
    path, beside = proctor.work / f"{number}.proctor", proctor.work / f"{number}.jsonl"
    job = proctor.folder / "job.sh"
    job.write_text("sleep 0.9 & while kill -0 $PPID 2>/dev/null; do :; done\n")
    process = proctor.start("run", "-q", "-i", "5ms", "-o", path, "--jsonl", beside, "sh", job)
    time.sleep(delay)
    killed = time.time_ns()
    process.kill()
    process.wait()
    for stream in (process.stdout, process.stderr):
        stream.close()
    written = streamed(beside)
    if not path.exists():
        assert not written
        return 0, 0
    check(path)
    there = samples(path)
    assert there == list(range(1, len(there) + 1)), "none is left out"
    assert len(written) - 1 <= len(there) <= len(written), f"killed after {delay:.3f} s"
    elapsed = query(path, "SELECT elapsed FROM job_samples ORDER BY sample") if there else []
    assert all(abs(a / 1e9 - b) < 1e-6 for a, b in zip(elapsed, written))
    if there:
        [started] = query(path, "SELECT started FROM run")
        assert query(path, "SELECT count(*) FROM entities WHERE kind = 'process' AND first = 1")[0] >= 1
        return len(there), (killed - started - elapsed[-1]) / 1e9
    return 0, 0


def test_a_killed_recorder_leaves_all_but_the_sample_it_was_taking(proctor):
    chance = random.Random(int(os.environ.get("PROCTOR_TEST_SEED", time.time_ns())))
    found = [kill_once(proctor, number, chance.uniform(0.005, 0.5) * SLACK) for number in range(KILLS)]
    counts, behind = [n for n, _ in found], sorted(late for _, late in found)
    assert sum(counts) > KILLS * 5 and len(set(counts)) > KILLS / 4, "at moments of all kinds"
    assert behind[len(behind) // 2] < 0.05 * SLACK, "the last sample is of the moment of the kill"


def test_a_killed_recorder_leaves_phases_and_marks(proctor):
    path = proctor.work / "a.proctor"
    process, job = record(proctor, path)

    def environment():  # in the middle of exec there is none
        lines = open(f"/proc/{job}/environ").read().split("\0")
        return {line.partition("=")[0]: line.partition("=")[2] for line in lines if line.startswith("PROCTOR_")}

    env = wait_until(environment, "the variables of the job")
    for words in (["phase", "begin", "load"], ["mark", "hello", "a=1"]):
        assert proctor(*words, env=env).returncode == 0
    wait_until(lambda: query(path, "SELECT count(*) FROM events WHERE event = 'mark'") == [1] if samples(path) else 0,
               "the mark")
    process.kill()
    process.wait()
    os.kill(job, signal.SIGKILL)
    check(path)
    assert query(path, "SELECT name, seconds FROM phases") == [("load", None)]
    assert query(path, "SELECT ended, exit_code FROM run") == [(None, None)]
    assert query(path, "SELECT count(*) FROM summary") == [0]


# --- full -----------------------------------------------------------------------------------------

def fill(folder):
    """Nothing more goes there."""
    with open(folder / "filler", "ab", buffering=0) as filler:
        for size in (65536, 4096, 1):
            try:
                while True:
                    filler.write(b"x" * size)
            except OSError:
                pass


def test_a_full_disk_interrupts_the_record_until_there_is_room(proctor, mounted):
    disk = mounted("2m")
    path = disk / "a.proctor"
    process, job = record(proctor, path, "--jsonl", "a.jsonl", "--summary", proctor.summary_file)
    until_samples(path, 5)
    fill(disk)
    beside = proctor.work / "a.jsonl"
    wait_until(lambda: "No space left" in beside.read_text(), "the disk to be full")
    stopped = len(samples(path))
    time.sleep(0.3)
    assert len(samples(path)) == stopped, "nothing more is written"
    check(path)
    assert is_alive(job)
    (disk / "filler").unlink()
    until_samples(path, stopped + 5)
    lines = end(process, job)
    there, summary = samples(path), proctor.summary()
    missing = there[-1] - len(there)
    assert len(lines) == 2 and "No space left" in lines[0] and "until there is room" in lines[0], lines
    assert f"goes on; {missing} samples are missing" in lines[1] and missing >= 5, lines
    assert problems(summary) == [line.removeprefix("proctor: ") for line in lines]
    assert there[-1] == summary["samples"]["taken"]
    check(path)
    texts = query(path, "SELECT text FROM events WHERE event = 'problem' ORDER BY id")
    assert texts == problems(summary)
    assert sorted(os.listdir(disk)) == ["a.proctor"]
    rows = query(path, "SELECT sample, elapsed, interval FROM job_samples ORDER BY sample")
    for (_, before, _), (_, after, interval) in zip(rows, rows[1:]):
        assert interval == after - before, "an interval is since the row before"
    first_again = next(b for a, b in zip(there, there[1:]) if b > a + 1)
    assert query(path, "SELECT count(*) FROM process_samples WHERE sample = ?", first_again) == [1], "a whole row"
    assert query(path, "SELECT count(*) FROM entities WHERE kind = 'process'") == [1]
    assert query(path, "SELECT exit_signal FROM run") == [signal.SIGTERM]


def test_a_disk_that_is_full_from_the_start(proctor, mounted):
    disk = mounted("1m")
    fill(disk)
    process, job = record(proctor, disk / "a.proctor", "--jsonl", "a.jsonl")
    beside = proctor.work / "a.jsonl"
    wait_until(lambda: beside.exists() and "No space left" in beside.read_text(), "the disk to be full")
    (disk / "filler").unlink()
    until_samples(disk / "a.proctor", 5)
    lines = end(process, job)
    assert len(lines) == 2 and "goes on" in lines[1], lines
    check(disk / "a.proctor")
    assert samples(disk / "a.proctor")[0] > 1


def test_a_disk_that_stays_full(proctor, mounted):
    disk = mounted("1m")
    path = disk / "a.proctor"
    process, job = record(proctor, path, "--strict")
    until_samples(path, 3)
    fill(disk)
    stopped = len(samples(path))
    time.sleep(0.5)
    os.kill(job, signal.SIGTERM)
    status, _, err = finish(process)
    lines = said(err)
    assert status == 125 and len(lines) == 3 and "samples are missing" in lines[1], err
    assert "keep them together" in lines[2] and path.with_name("a.proctor-wal").exists()
    check(path)
    assert len(samples(path)) >= stopped


def test_a_server_is_not_told_all_of_a_record_without_its_end(proctor, mounted):
    disk, server = mounted("1m"), Server()
    try:
        process, job = record(proctor, disk / "a.proctor", f"--mlflow={server.url}")
        until_samples(disk / "a.proctor", 3)
        fill(disk)
        time.sleep(0.5)
        lines = end(process, job)
    finally:
        server.close()
    assert "mlflow: the record has no end" in "\n".join(lines) and "`proctor push /" in lines[-1], lines
    assert not server.sent("runs/update")


def test_no_room_for_anything_leaves_no_file(proctor, mounted):
    disk = mounted("64k")
    fill(disk)
    done = proctor.run("-i", "20ms", "sh", "-c", "sleep 0.1; exit 3", env={"PROCTOR_HOME": str(disk)})
    assert done.returncode == 3 and "No space left" in said(done.stderr)[0]
    assert [f for _, _, files in os.walk(disk) for f in files] == ["filler"]


# --- no log ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("kill", [False, True], ids=["ends", "killed"])
@pytest.mark.parametrize("why", ["refused", "network"])
def test_where_there_can_be_no_log_there_is_a_journal(proctor, why, kill):
    path, env = proctor.work / "a.proctor", {}
    if why == "refused":
        (proctor.work / "a.proctor-shm").mkdir()
    else:
        env = preloaded(proctor, "network_disk")
    process, job = record(proctor, path, env=env)
    until_samples(path, 10)
    assert path.read_bytes()[18] == 1, "it has none; 2 is a log"
    if kill:
        process.kill()
        process.wait()
        os.kill(job, signal.SIGKILL)
    else:
        assert end(process, job) == []
        assert query(path, "SELECT exit_signal FROM run") == [signal.SIGTERM]
    check(path)
    assert samples(path) == list(range(1, len(samples(path)) + 1))
    assert not (proctor.work / "a.proctor-wal").exists() or why == "refused"


# --- readers --------------------------------------------------------------------------------------

def test_it_is_read_while_it_grows(proctor):
    path = proctor.work / "a.proctor"
    process, job = record(proctor, path)
    until_samples(path, 3)
    base = open_run(path)
    base.execute("BEGIN")
    before = base.execute("SELECT count(*) FROM job_samples").fetchone()[0]
    until_samples(path, before + 10)
    assert base.execute("SELECT count(*) FROM job_samples").fetchone()[0] == before, "one moment of it"
    base.execute("COMMIT")
    assert base.execute("SELECT count(*) FROM job_samples").fetchone()[0] >= before + 10
    base.close()
    assert end(process, job) == []
    assert samples(path) == list(range(1, len(samples(path)) + 1))


def test_a_reader_at_the_end_holds_nobody_up(proctor):
    path = proctor.work / "a.proctor"
    process, job = record(proctor, path)
    until_samples(path, 3)
    base = open_run(path)
    base.execute("BEGIN")
    base.execute("SELECT * FROM job_samples").fetchone()
    began = time.monotonic()
    assert end(process, job) == []
    assert time.monotonic() - began < 4 * SLACK
    base.close()
    check(path)
    assert query(path, "SELECT exit_signal FROM run") == [signal.SIGTERM]


def test_after_the_end_it_opens_where_nothing_can_be_written(proctor, mounted):
    done = proctor.run("-q", "-i", "20ms", "-o", "a.proctor", "sleep", "0.1")
    assert done.returncode == 0
    disk = mounted("4m")
    shutil.copy(proctor.work / "a.proctor", disk)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    check(disk / "a.proctor")
    assert len(samples(disk / "a.proctor")) > 3


# --- blocked --------------------------------------------------------------------------------------

def test_somebody_who_holds_the_file_does_not_delay_samples(proctor):
    """All samples are taken, and all of them are written in the end."""
    path = proctor.work / "a.proctor"
    process, job = record(proctor, path, "--summary", proctor.summary_file, interval="100ms")
    until_samples(path, 3)
    base = open_run(path, "rw")
    base.execute("BEGIN EXCLUSIVE")
    time.sleep(1)
    base.execute("COMMIT")
    base.close()
    time.sleep(0.3)
    assert end(process, job) == []
    summary = proctor.summary()
    assert query(path, "SELECT max(interval) FROM job_samples")[0] < 1e9, "a sample each 100 ms, also then"
    assert samples(path) == list(range(1, summary["samples"]["taken"] + 1))


def test_somebody_who_holds_it_for_long_does_not_hold_up_other_outputs(proctor):
    """He is waited for once: the CSV has every sample, the record those before and after."""
    path = proctor.work / "a.proctor"
    process, job = record(proctor, path, "--csv", "a.csv", "--summary", proctor.summary_file, interval="100ms")
    until_samples(path, 3)
    base = open_run(path, "rw")
    base.execute("BEGIN IMMEDIATE")
    time.sleep(7)
    before = len(read_csv(proctor.work / "a.csv"))
    base.execute("COMMIT")
    base.close()
    time.sleep(0.5)
    told = end(process, job)
    taken = proctor.summary()["samples"]["taken"]
    assert before > 60 / SLACK and len(read_csv(proctor.work / "a.csv")) == taken
    assert len(told) == 2 and "is interrupted" in told[0] and "goes on" in told[1]
    assert 5 < len(samples(path)) < taken and samples(path)[-1] == taken


@pytest.fixture
def blocked(proctor):
    """A disk that does not move while a file is there: (that file, the variables for it)."""
    flag = proctor.folder / "blocked"
    yield flag, {**preloaded(proctor, "blocked_disk"), "BLOCKED": str(flag)}
    flag.unlink(missing_ok=True)


def test_a_blocked_disk_does_not_delay_samples(proctor, blocked):
    path, (flag, env) = proctor.work / "a.proctor", blocked
    process, job = record(proctor, path, "--summary", proctor.summary_file, interval="100ms", env=env)
    until_samples(path, 3)
    flag.touch()
    time.sleep(0.3)
    before = len(samples(path))
    time.sleep(1.5)
    assert len(samples(path)) == before, "it is blocked"
    flag.unlink()
    until_samples(path, before + 12)
    assert end(process, job) == []
    summary = proctor.summary()
    assert query(path, "SELECT max(interval) FROM job_samples")[0] < 1e9, "a sample each 100 ms, also then"
    assert samples(path) == list(range(1, summary["samples"]["taken"] + 1))


def test_a_disk_that_stays_blocked_is_given_up_in_time(proctor, blocked):
    path, (flag, env) = proctor.work / "a.proctor", blocked
    process, job = record(proctor, path, "--flush-timeout", "1s", "--summary", proctor.summary_file, env=env)
    until_samples(path, 3)
    flag.touch()
    time.sleep(0.5)
    began = time.monotonic()
    [line] = end(process, job)
    assert time.monotonic() - began < 3 * SLACK and "blocked" in line
    assert proctor.summary()["exit"]["signal"] == signal.SIGTERM
    flag.unlink()
    check(path)
    assert len(samples(path)) >= 3
