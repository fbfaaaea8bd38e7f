# SPDX-License-Identifier: Apache-2.0
"""CSV and summary files: their form, where they go, and what happens when they cannot."""
import contextlib
import json
import os
import re
import stat
import subprocess
import threading
import time

import pytest

from proctor_cli import SANITIZED, PATIENCE, SLACK, problems, read_csv, said, skip_visibly, wait_until

SUFFIX = {"seconds": "_seconds", "bytes": "_bytes", "bytes per second": "_bytes_per_second",
          "cores": "_cores", "ratio": "_ratio", "watts": "_watts", "joules": "_joules",
          "celsius": "_celsius", "hertz": "_hertz"}
JOB = ["sh", "-c", "sleep 0.25; echo said; exit 3"]  # what must not change


def column(metric):
    """The name of a metric's column, as section 4 of the contract makes it."""
    name, suffix = metric["key"].replace(".", "_"), SUFFIX.get(metric["unit"], "")
    return name if name.endswith(suffix) else name + suffix


def job_columns(proctor):
    catalogue = json.loads(proctor("metrics", "--json").stdout)
    return ["timestamp", "elapsed_seconds", "interval_seconds"] + \
        [column(m) for m in catalogue if "job" in m["scope"] or "system" in m["scope"]]


@pytest.fixture
def tiny(proctor):
    """A file system of 16 KiB with a file `filler` that leaves 4 KiB of it."""
    folder = proctor.folder / "tiny"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", folder],
                          capture_output=True, text=True)
    if done.returncode != 0:
        skip_visibly(f"mount: {done.stderr.strip()}")
    (folder / "filler").write_bytes(b"x" * 12288)
    yield folder
    subprocess.run(["umount", folder], check=True)


# --- CSV ------------------------------------------------------------------------------------------

def test_csv_has_the_columns_of_the_catalogue_in_every_row(proctor):
    assert proctor.run("-q", "-i", "10ms", "--csv", "a.csv", "sleep", "0.1").returncode == 0
    data = (proctor.work / "a.csv").read_bytes()
    lines = data.decode("ascii").split("\n")
    assert b"\r" not in data and lines.pop() == ""
    assert lines[0].split(",") == job_columns(proctor)
    assert {"cpu_time_seconds", "mem_pss_bytes", "cpu_usage_cores", "cpu_percent", "cpu_ratio",
            "io_read_rate_bytes_per_second", "procs"} <= set(lines[0].split(","))
    assert len(lines) > 5 and len({line.count(",") for line in lines}) == 1
    for line in lines[1:]:
        assert re.fullmatch(r"(-?\d+(\.\d+)?|)(,(-?\d+(\.\d+)?|))*", line)
        assert re.match(r"\d{10}\.\d{3},\d+\.\d{6},\d+\.\d{6},", line)


def test_rows_are_written_as_they_are_taken(proctor):
    process = proctor.start("run", "-q", "-i", "50ms", "--csv", "a.csv", "sleep", "30")
    path = proctor.work / "a.csv"
    wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") >= 5, "rows")
    assert process.poll() is None
    assert path.read_bytes().endswith(b"\n")
    process.terminate()


def test_regular_files_are_replaced(proctor):
    (proctor.work / "a.csv").write_text("old\n" * 100_000)
    proctor.run("-q", "--csv", "a.csv", "true")
    assert "old" not in (proctor.work / "a.csv").read_text()
    assert len(read_csv(proctor.work / "a.csv")) == 2


def test_csv_is_repeatable_and_all_get_the_same(proctor):
    done = proctor.run("-q", "-i", "10ms", "--csv", "a.csv", "--csv=b.csv", "--csv", "-",
                       "sleep", "0.1")
    a, b = ((proctor.work / name).read_text() for name in ("a.csv", "b.csv"))
    assert a == b == done.stdout and a.count("\n") > 3


def test_csv_on_standard_output_goes_with_the_jobs(proctor):
    done = proctor.run("-q", "-i", "10ms", "--csv", "-", "sh", "-c", "sleep 0.1; echo mine")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("timestamp,") and "mine" in lines
    assert len({line.count(",") for line in lines if line != "mine"}) == 1


@pytest.mark.parametrize("name, processes", [("a.csv", "a.processes.csv"), ("a", "a.processes"),
                                             ("d.d/a", "d.d/a.processes"),
                                             ("d.d/.hidden", "d.d/.hidden.processes"),
                                             ("a.b.csv", "a.b.processes.csv")])
def test_processes_get_a_file_of_their_own(proctor, jobs, name, processes):
    (proctor.work / "d.d").mkdir()
    done = proctor.run("-q", "-i", "10ms", "--csv", name, "--processes", jobs / "family",
                       "together", "2", "50000")
    assert done.returncode == 0 and (proctor.work / name).exists()
    rows = read_csv(proctor.work / processes)
    assert list(rows[0])[:7] == ["timestamp", "elapsed_seconds", "interval_seconds", "pid", "ppid",
                                 "started", "command"]
    assert len({row["pid"] for row in rows}) == 3
    assert {row["command"] for row in rows} == {"family"}
    root = rows[0]["pid"]
    assert {row["ppid"] for row in rows if row["pid"] != root} == {root}
    assert max(float(row["cpu_time_seconds"]) for row in rows) > 0
    times = {row["elapsed_seconds"] for row in read_csv(proctor.work / name)}
    assert {row["elapsed_seconds"] for row in rows} <= times


def test_processes_on_standard_output_is_a_clear_error(proctor):
    done = proctor.run("--csv", "-", "--processes", "touch", "started")
    assert done.returncode == 125 and "--processes" in done.stderr and "--csv" in done.stderr
    assert not (proctor.work / "started").exists()


def test_names_of_processes_are_quoted(proctor):
    """A command named  a,"b  and one with a line break."""
    for name in ('a,"b', "c\nd"):
        (proctor.work / name).symlink_to("/bin/sleep")
    proctor.run("-q", "-i", "10ms", "--csv", "a.csv", "--processes", "sh", "-c",
                "./a,\\\"b 0.2 & './c\nd' 0.2 & wait")
    commands = {row["command"] for row in read_csv(proctor.work / "a.processes.csv")}
    assert 'a,"b' in commands and "sh" in commands
    assert {"c\\x0ad", "c\nd"} & commands


# --- devices, pipes and fifos ---------------------------------------------------------------------

def test_a_device_is_just_written(proctor):
    before = os.stat("/dev/null")
    done = proctor.run("-q", "--csv", "/dev/null", "--summary", "/dev/null", *JOB)
    after = os.stat("/dev/null")
    assert (done.returncode, done.stderr) == (3, "")
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)


@pytest.mark.parametrize("option", ["--csv", "--summary"])
def test_a_fifo_with_a_reader_gets_all(proctor, option):
    path = proctor.work / "fifo"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_text()))
    reader.start()
    done = proctor.run("-q", "-i", "20ms", option, path, *JOB)
    reader.join(PATIENCE)
    assert (done.returncode, done.stdout) == (3, "said\n") and stat.S_ISFIFO(path.stat().st_mode)
    if option == "--csv":
        assert got[0].startswith("timestamp,") and got[0].count("\n") > 5
    else:
        assert json.loads(got[0])["exit"]["code"] == 3


@pytest.mark.parametrize("option", ["--csv", "--summary"])
def test_a_fifo_without_a_reader_does_not_hold_the_job_and_is_said(proctor, option):
    path = proctor.work / "fifo"
    os.mkfifo(path)
    before = time.monotonic()
    done = proctor.run("-i", "20ms", option, path, *JOB)
    assert time.monotonic() - before < 10
    assert (done.returncode, done.stdout) == (3, "said\n")
    assert len([line for line in said(done.stderr) if "fifo" in line]) == 1


@pytest.mark.parametrize("option", ["--csv", "--summary"])
def test_a_path_that_is_our_own_descriptor(proctor, option):
    """/dev/stdout is such a path: nothing may be renamed over it."""
    with open(proctor.work / "out", "w") as out:
        done = proctor.run("-q", option, "/proc/self/fd/1", "true", stdout=out,
                           stderr=subprocess.PIPE)
    text = (proctor.work / "out").read_text()
    assert (done.returncode, done.stderr) == (0, "")
    assert text.startswith("timestamp," if option == "--csv" else "{")


# --- trouble --------------------------------------------------------------------------------------

def check_unchanged(done, summary, *words):
    """The job went on as ever; the trouble was said once, there and in the summary."""
    assert (done.returncode, done.stdout) == (3, "said\n")
    lines = said(done.stderr)
    assert lines and len(lines) == len(set(lines)) <= 2
    assert all(word in lines[0] for word in words)
    found = problems(summary)
    assert [f"proctor: {text}" for text in found] == lines
    assert summary["exit"]["code"] == 3
    assert summary["metrics"]["cpu.time"]["total"] > 0


def test_csv_to_a_full_device(proctor):
    done = proctor.run("-i", "10ms", "--summary", proctor.summary_file, "--csv", "/dev/full", *JOB)
    check_unchanged(done, proctor.summary(), "/dev/full", "No space left on device")
    assert "trouble" in done.stderr


def test_trouble_has_its_time(proctor, tiny):
    """A file that becomes full in the middle, and rows that are lost at the end."""
    proctor.run("-q", "-i", "5ms", "--summary", proctor.summary_file, "--csv", tiny / "a.csv", *JOB)
    events = [e for e in proctor.summary()["events"] if e["type"] == "problem"]
    assert events[0]["at"] > 0
    assert events[-1]["at"] >= proctor.summary()["run"]["duration"] - 0.1


def test_csv_to_a_file_system_that_is_full(proctor, tiny):
    done = proctor.run("-i", "5ms", "--summary", proctor.summary_file, "--csv", tiny / "a.csv",
                       *JOB)
    check_unchanged(done, proctor.summary(), "a.csv", "No space left on device")
    text = (tiny / "a.csv").read_text()
    assert len(text) == 4096 and text.startswith("timestamp,")


def test_rows_that_were_kept_back_are_written_when_there_is_room(proctor, tiny):
    job = ["sh", "-c", f"sleep 0.3; rm {tiny}/filler; sleep 0.05; exit 3"]
    done = proctor.run("-i", "10ms", "--summary", proctor.summary_file, "--csv", tiny / "a.csv",
                       *job)
    rows = read_csv(tiny / "a.csv")
    assert done.returncode == 3
    assert len(problems(proctor.summary())) == 1  # it was full, and nothing was lost
    assert len(rows) == proctor.summary()["samples"]["taken"]
    elapsed = [float(row["elapsed_seconds"]) for row in rows]
    assert elapsed == sorted(elapsed) and None not in rows[-1].values()


def test_a_reader_that_leaves(proctor):
    """proctor run --csv - ... | head -1"""
    process = proctor.start("run", "-i", "10ms", "--summary", proctor.summary_file, "--csv", "-",
                            "sh", "-c", "sleep 0.3; touch ended; exit 3")
    assert process.stdout.readline().startswith(b"timestamp,")
    process.stdout.close()
    process.stdout = None
    err = process.stderr.read().decode()
    assert process.wait(30) == 3 and (proctor.work / "ended").exists()
    lines = said(err)
    assert len(lines) == 1 and "Broken pipe" in lines[0]
    assert problems(proctor.summary()) == [lines[0].removeprefix("proctor: ")]


# A writer that is given up keeps its memory; a sanitizer would want to say so, there of all places.
@pytest.mark.parametrize("patience", ["5s"] if SANITIZED else ["1s", "5s"])
def test_trouble_that_cannot_be_said_holds_nothing_up(proctor, patience):
    """Standard error is a pipe that is full and that nobody reads."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, b"x" * 4096):
            pass
    os.set_blocking(writer, True)
    before = time.monotonic()
    process = proctor.start("run", "-q", "--csv", "/dev/full", "--flush-timeout", patience, "--summary",
                            proctor.summary_file, "true", stderr=writer)
    try:
        status = process.wait(15 * SLACK)
    finally:
        os.close(reader)
        os.close(writer)
    assert status == 0 and time.monotonic() - before < 8 * SLACK
    assert proctor.summary()["exit"]["code"] == 0


@pytest.mark.parametrize("path", ["/dev/full", "-"])
def test_a_summary_that_cannot_be_written(proctor, path):
    process = proctor.start("run", "--summary", path, "sh", "-c", "sleep 0.2; exit 3")
    process.stdout.close()
    process.stdout = None
    err = process.stderr.read().decode()
    assert process.wait(30) == 3
    assert len(said(err)) == 1 and "summary" in said(err)[0]


def test_a_folder_of_the_summary_that_vanishes(proctor):
    folder = proctor.work / "gone"
    folder.mkdir()
    done = proctor.run("--summary", folder / "s.json", "sh", "-c", f"rm -r {folder}; exit 3")
    assert done.returncode == 3 and len(said(done.stderr)) == 1


@pytest.mark.parametrize("options", [["--csv", "/dev/full"], ["--summary", "/dev/full"]])
def test_strict_makes_trouble_125_after_the_job(proctor, options):
    done = proctor.run("--strict", *options, "sh", "-c", "touch ended; exit 3")
    assert done.returncode == 125 and (proctor.work / "ended").exists()
    assert "exit 3" in done.stderr  # the summary says what the job did


def test_strict_with_a_job_that_dies(proctor):
    assert proctor.run("--strict", "--csv", "/dev/full", "sh", "-c",
                       "kill -TERM $$").returncode == 125


def test_strict_without_trouble_is_the_jobs_status(proctor):
    assert proctor.run("--strict", "--csv", "a.csv", *JOB).returncode == 3


# --- the summary file -----------------------------------------------------------------------------

def test_the_summary_appears_whole(proctor):
    """A watcher reads the file all the time: it is the old one or the new one, never a part."""
    path = proctor.summary_file
    path.write_text('{"old": true}')
    os.link(path, proctor.folder / "kept")
    seen, stop = [], threading.Event()

    def watch():
        while not stop.is_set():
            seen.append(path.read_text())
    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(20):
        proctor.run("-q", "--summary", path, "true")
    stop.set()
    watcher.join()
    assert len(seen) > 50
    for text in set(seen):
        json.loads(text)
    assert (proctor.folder / "kept").read_text() == '{"old": true}'
    assert "schema" in proctor.summary()
    assert [p.name for p in proctor.folder.glob("summary*")] == ["summary.json"]


def test_the_old_summary_stays_until_the_end(proctor):
    proctor.summary_file.write_text("old")
    done = proctor.run("-q", "--summary", proctor.summary_file, "cat", proctor.summary_file)
    assert done.stdout == "old" and "schema" in proctor.summary()


def test_a_temporary_file_left_by_a_dead_run_is_no_obstacle(proctor):
    """Pids come again: in a container it is always the same one."""
    command = "for p in s.json.$$.tmp s.json.tmp; do echo old > $p; done; " \
              f"exec {proctor.path} run -q --summary s.json sh -c 'exit 3'"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60,
                          **proctor.options({}))
    assert (done.returncode, done.stderr) == (3, "")
    assert proctor.summary(proctor.work / "s.json")["exit"]["code"] == 3


def test_the_summary_obeys_the_umask(proctor):
    proctor.recorded("true", preexec_fn=lambda: os.umask(0o027))
    assert stat.S_IMODE(proctor.summary_file.stat().st_mode) == 0o640


def test_summary_on_standard_output(proctor):
    done = proctor.run("-q", "--summary", "-", "sh", "-c", "echo first")
    first, rest = done.stdout.split("\n", 1)
    assert first == "first" and json.loads(rest)["schema"] == 1


def test_outputs_land_where_we_were_started(proctor):
    """Relative names are ours, not the job's."""
    (proctor.work / "sub").mkdir()
    proctor.run("-q", "--csv", "a.csv", "--summary", "s.json", "sh", "-c", "cd sub; exit 0")
    assert sorted(os.listdir(proctor.work)) == ["a.csv", "s.json", "sub"]


@pytest.mark.parametrize("words", [["--csv", "a", "--jsonl", "./a"], ["--csv", "a", "--csv", "a"],
                                   ["--jsonl", "a", "--summary", "link/a"]], ids=" ".join)
def test_two_outputs_into_one_file_are_refused(proctor, words):
    (proctor.work / "link").symlink_to(".")
    done = proctor("run", "--no-record", *words, "--", "touch", "ran")
    assert done.returncode == 125 and "name the same file" in done.stderr
    assert not (proctor.work / "ran").exists() and not (proctor.work / "a").exists()


def test_two_outputs_into_a_device_are_not(proctor):
    assert proctor("run", "--no-record", "--csv", "/dev/null", "--jsonl", "/dev/null", "--", "true").returncode == 0
