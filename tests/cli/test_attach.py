# SPDX-License-Identifier: Apache-2.0
"""`proctor attach`: what runs already, from now on, without touching it."""
import json
import os
import signal
import subprocess
import time

import pytest

from proctor_cli import (SLACK, finish, is_alive, numbers, parent_of, read_csv, said, skip_visibly,
                         state_of, wait_until)


def attached(proctor, *words, **options):
    """Starts `proctor attach`, and waits until it records."""
    process = proctor.start("attach", "--summary", proctor.summary_file, "--csv", "a.csv", *words,
                            **options)
    path = proctor.work / "a.csv"
    wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") >= 2, "the first sample")
    return process


def status_field(pid, name):
    with open(f"/proc/{pid}/status") as f:
        return next(line.split()[1] for line in f if line.startswith(name + ":"))


def children_of_threads(pid):
    """Children of all threads of a process."""
    return [int(child) for task in os.listdir(f"/proc/{pid}/task")
            for child in open(f"/proc/{pid}/task/{task}/children").read().split()]


# --- how it ends ----------------------------------------------------------------------------------

def test_ends_at_once_when_the_process_does(proctor):
    job = proctor.other(["sleep", "0.6"])
    process = attached(proctor, "-i", "10s", job.pid)
    job.wait()
    ended = time.monotonic()
    status, _, err = finish(process)
    assert status == 0 and time.monotonic() - ended < 1 * SLACK
    summary = proctor.summary()
    assert summary["run"]["command"] == ["sleep", "0.6"]
    assert summary["exit"] == {"code": None, "signal": None}
    assert "ended" in err and summary["samples"]["taken"] == 2


def test_ends_when_the_process_is_a_zombie(proctor):
    """Its parent need not have waited for it."""
    job = proctor.other(["sleep", "0.3"])
    process = attached(proctor, "-q", "-i", "10s", job.pid)
    assert process.wait(20) == 0
    assert state_of(job.pid) == "Z"


def test_duration(proctor):
    job = proctor.other(["sleep", "77"])
    before = time.monotonic()
    process = attached(proctor, "-i", "50ms", "--duration", "0.4", job.pid)
    status, _, err = finish(process)
    assert status == 0 and 0.4 <= time.monotonic() - before < 0.4 + 3 * SLACK
    assert 0.4 <= proctor.summary()["run"]["duration"] < 0.4 + 1 * SLACK
    assert is_alive(job.pid) and "still running" in err
    assert proctor.summary()["left_running"] == []


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_int_and_term_end_it_with_a_summary(proctor, sig):
    job = proctor.other(["sleep", "77"])
    process = attached(proctor, "-i", "20ms", job.pid)
    os.kill(process.pid, sig)
    status, _, err = finish(process)
    assert status == 0 and "sleep 77" in err
    assert is_alive(job.pid)  # the signal is not handed on
    rows = read_csv(proctor.work / "a.csv")
    assert len(rows) == proctor.summary()["samples"]["taken"]
    assert rows[-1]["mem_rss_bytes"] != ""  # it lives: its gauges are known


def test_under_nohup_a_hangup_does_not_end_it(proctor):
    job = proctor.other(["sleep", "77"])
    process = attached(proctor, "-q", job.pid, preexec_fn=lambda: signal.signal(
        signal.SIGHUP, signal.SIG_IGN))
    os.kill(process.pid, signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    process.terminate()
    assert process.wait(20) == 0


# --- exit status ----------------------------------------------------------------------------------

def test_1_without_target(proctor):
    job = proctor.other(["true"])
    wait_until(lambda: state_of(job.pid) == "Z", "a zombie")
    for pid in (job.pid, 4_000_000, 2 ** 31 - 1):
        done = proctor("attach", "--summary", proctor.summary_file, pid)
        assert done.returncode == 1
        assert len(said(done.stderr)) == 1 and str(pid) in done.stderr
    assert not list(proctor.folder.glob("summary*"))


def test_1_for_a_thread_which_is_no_process(proctor, jobs):
    """/proc has a folder of it all the same."""
    job = proctor.other([jobs / "family", "threads", "1", "9000000"])
    tasks = wait_until(lambda: {int(t) for t in os.listdir(f"/proc/{job.pid}/task")} - {job.pid},
                       "a thread")
    done = proctor("attach", "--duration", "50ms", "--summary", proctor.summary_file, *tasks)
    assert done.returncode == 1
    assert len(said(done.stderr)) == 1
    assert str(*tasks) in done.stderr and f"process {job.pid}" in done.stderr
    assert not proctor.summary_file.exists()
    for child in wait_until(lambda: children_of_threads(job.pid), "the child of the thread"):
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("options", [["--csv", "missing/x"], ["--summary", "missing/x"]])
def test_an_output_that_cannot_be_opened(proctor, options):
    job = proctor.other(["sleep", "77"])
    done = proctor("attach", *options, job.pid)
    assert done.returncode == 125 and options[0] in done.stderr


def test_trouble_does_not_change_the_status_but_with_strict(proctor):
    job = proctor.other(["sleep", "77"])
    words = ["attach", "--duration", "50ms", "--csv", "/dev/full", job.pid]
    assert proctor(*words).returncode == 0
    assert proctor(*words, "--strict").returncode == 125


# --- what it counts -------------------------------------------------------------------------------

def burner(proctor, before, after, children=False):
    """Burns `before` seconds of CPU, says "now", waits for a line, burns `after`, waits again."""
    script = f"""
import os, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
def work(seconds):
    if {children}:
        if os.fork() == 0:
            burn(seconds); os._exit(0)
        os.wait()
    else:
        burn(seconds)
work({before}); print("now", flush=True); input()
work({after}); print("done", flush=True); input()
"""
    job = proctor.other(["/usr/bin/python3", "-c", script], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE)
    assert job.stdout.readline() == b"now\n"
    return job


def work(job, process):
    """The second half, then the end of the recording."""
    job.stdin.write(b"\n")
    job.stdin.flush()
    assert job.stdout.readline() == b"done\n"
    time.sleep(0.1)
    process.terminate()
    assert process.wait(20) == 0


@pytest.mark.parametrize("children", [False, True], ids=["itself", "reaped children"])
def test_counts_from_the_start_of_recording(proctor, children):
    job = burner(proctor, 0.5, 0.2, children)
    process = attached(proctor, "-q", "-i", "20ms", job.pid)
    work(job, process)
    summary = proctor.summary()
    assert summary["metrics"]["cpu.time"]["total"] == pytest.approx(0.2, abs=0.05)
    assert 0.48 <= summary["accounting"]["cpu"]["before"] < 1  # by clock ticks
    cpu = numbers(read_csv(proctor.work / "a.csv"), "cpu_time_seconds")
    assert cpu[0] == 0 and cpu == sorted(cpu)


def test_no_children_is_the_process_alone(proctor):
    job = burner(proctor, 0.1, 0.3, children=True)
    process = attached(proctor, "-q", "-i", "20ms", "--no-children", job.pid)
    work(job, process)
    metrics = proctor.summary()["metrics"]
    assert metrics["procs"]["peak"] == 1 and metrics["procs.started"]["total"] == 1
    assert metrics["cpu.time"]["total"] < 0.1


def test_descendants_are_recorded_without_it(proctor):
    job = burner(proctor, 0.1, 0.3, children=True)
    process = attached(proctor, "-q", "-i", "20ms", job.pid)
    work(job, process)
    metrics = proctor.summary()["metrics"]
    assert metrics["procs"]["peak"] == 2
    assert metrics["cpu.time"]["total"] == pytest.approx(0.3, abs=0.06)


def test_bytes_count_from_the_start_of_recording(proctor):
    job = proctor.other(["sh", "-c", "head -c 1000000 /dev/zero; echo; read x; "
                         "head -c 500000 /dev/zero; read x"], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE)
    assert len(job.stdout.read(1000001)) == 1000001
    process = attached(proctor, "-q", "-i", "20ms", job.pid)
    job.stdin.write(b"\n")
    job.stdin.flush()
    assert len(job.stdout.read(500000)) == 500000
    time.sleep(0.1)
    process.terminate()
    assert process.wait(20) == 0
    summary = proctor.summary()
    assert summary["metrics"]["io.wchar"]["total"] == 500000
    assert summary["accounting"]["io"]["before"] is not None


def test_we_are_never_a_member(proctor):
    """A shell is watched by a proctor that it has started itself."""
    shell = proctor.other(["sh", "-c", f"{proctor.path} attach -q -i 20ms --duration 0.3 --csv "
                           f"{proctor.work}/a.csv --processes --summary {proctor.summary_file} $$"],
                          **proctor.options({}))
    assert shell.wait(30) == 0
    rows = read_csv(proctor.work / "a.processes.csv")
    assert {row["command"] for row in rows} <= {"sh"} and rows
    assert proctor.summary()["metrics"]["procs"]["peak"] == 1
    assert proctor.summary()["metrics"]["procs.started"]["total"] == 1


def test_existing_descendants_are_members(proctor, jobs):
    job = proctor.other([jobs / "family", "together", "3", "800000"])
    wait_until(lambda: len(proctor.children(job.pid)) == 3, "children")
    process = attached(proctor, "-q", "-i", "20ms", "--duration", "0.2", job.pid)
    assert process.wait(20) == 0
    assert proctor.summary()["metrics"]["procs"]["peak"] == 4


def test_attach_leaves_the_process_alone(proctor):
    job = proctor.other(["sleep", "77"])
    fields = ("SigBlk", "SigIgn", "SigCgt", "TracerPid", "PPid")
    before = [status_field(job.pid, f) for f in fields]
    process = attached(proctor, "-q", "-i", "5ms", "--duration", "0.2", job.pid)
    assert [status_field(job.pid, f) for f in fields] == before
    assert process.wait(20) == 0
    assert parent_of(job.pid) == os.getpid() and is_alive(job.pid)


def test_wait_tree_waits_for_descendants(proctor):
    job = proctor.other(["sh", "-c", "sleep 0.8 & sleep 0.3"])
    process = attached(proctor, "-q", "-i", "20ms", "--wait-tree", job.pid)
    job.wait()
    time.sleep(0.1)
    assert process.poll() is None
    assert process.wait(20) == 0
    assert proctor.summary()["run"]["duration"] >= 0.4


def test_says_that_it_may_have_missed_something(proctor):
    job = proctor.other(["sleep", "0.3"])
    process = attached(proctor, "-q", job.pid)
    assert process.wait(20) == 0
    cpu = proctor.summary()["accounting"]["cpu"]
    assert cpu["complete"] is False and cpu["note"] and "samples" in cpu["source"]


def test_options_may_follow_the_pid(proctor):
    job = proctor.other(["sleep", "77"])
    done = proctor("attach", job.pid, "--duration", "50ms", "-q")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stopped_process_can_be_watched(proctor):
    job = proctor.other(["sleep", "77"])
    os.kill(job.pid, signal.SIGSTOP)
    process = attached(proctor, "-q", "-i", "20ms", "--duration", "0.1", job.pid)
    assert process.wait(20) == 0
    assert state_of(job.pid) == "T"
    assert proctor.summary()["metrics"]["procs"]["peak"] == 1


def test_what_may_not_be_read_is_absent_with_its_reason(proctor):
    """Another user's process: its status is everybody's, its I/O and its memory map are not."""
    if os.getuid() != 0:
        skip_visibly("only root can become somebody else")
    job = proctor.other(["sleep", "77"])
    done = proctor("attach", "-i", "20ms", "--duration", "0.1", "--summary", "-", job.pid, cwd="/",
                   user=65534, group=65534, extra_groups=[])
    assert done.returncode == 0
    summary = json.loads(done.stdout)
    reasons = {a["metric"]: a["reason"] for a in summary["absent"]}
    assert summary["metrics"]["mem.rss"]["peak"] > 0
    for key in ("io.read", "io.wchar", "mem.pss"):
        assert "Permission denied" in reasons[key], key
    assert summary["accounting"]["io"]["complete"] is False
    assert len(done.stderr.splitlines()) <= 8
