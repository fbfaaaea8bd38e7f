# SPDX-License-Identifier: Apache-2.0
"""Where /proc is of another pid namespace: a pid there is none here, and it is never mixed up."""
import os
import shlex
import signal
import subprocess

import pytest

from proctor_cli import (SANITIZER_OUT_OF_THE_WAY, PATIENCE, SLACK, need_pid_namespaces, numbers, read_csv, said,
                         skip_visibly, wait_until)

BURN = "while :; do :; done"
BURN_IN_A_CHILD = """
import os, time
print("ready", flush=True); input()
if os.fork() == 0:
    end = time.process_time() + 0.3
    while time.process_time() < end: pass
    os._exit(0)
os.wait()
print("done", flush=True); input()
"""


@pytest.fixture(autouse=True)
def namespaces():
    need_pid_namespaces()


def without_proc(proctor, script, **options):
    """Runs a shell in a new pid namespace in which /proc is still the old one."""
    # The leak checker looks for its own pid in /proc, where another has it, or nobody.
    options.setdefault("env", {})["ASAN_OPTIONS"] = SANITIZER_OUT_OF_THE_WAY + ":detect_leaks=0"
    return subprocess.run(["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", script],
                          capture_output=True, text=True, timeout=PATIENCE,
                          **proctor.options(options))


def test_run_says_that_proc_is_of_another_namespace(proctor):
    done = without_proc(proctor, f"exec {proctor.path} run --summary {proctor.summary_file} "
                        "-- touch started")
    assert done.returncode == 125
    assert len(said(done.stderr)) == 1 and "/proc" in done.stderr
    assert not (proctor.work / "started").exists()
    assert not proctor.summary_file.exists()


def test_attach_does_not_ask_the_clock_of_a_namesake(proctor):
    """A process in here that works has the pid of one out there that sleeps: /proc shows it."""
    job = proctor.other(["sleep", "77"])
    done = without_proc(
        proctor, f"echo {job.pid - 1} > /proc/sys/kernel/ns_last_pid; "
        f"sh -c '{BURN}' & echo $!; "
        f"{proctor.path} attach -q -i 20ms --duration 0.5 --summary {proctor.summary_file} "
        f"--csv a.csv {job.pid}; status=$?; kill -9 $!; exit $status")
    if done.stdout.strip() != str(job.pid):
        skip_visibly(f"a pid cannot be chosen here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    summary = proctor.summary()
    assert summary["run"]["command"] == ["sleep", "77"]
    assert summary["run"]["duration"] >= 0.5
    assert summary["metrics"]["cpu.time"]["total"] < 0.05
    assert summary["metrics"]["procs"]["peak"] == 1


def attach_to_the_outside(proctor, pid):
    """`proctor attach --root DIR` as PID 1 with a /proc of its own, the outer one in DIR."""
    root = proctor.folder / "root"
    for name in ("proc", "sys"):
        (root / name).mkdir(parents=True)
    attach = [proctor.path, "attach", "-q", "-i", "20ms", "--root", root, "--csv", "a.csv",
              "--summary", proctor.summary_file, pid]
    script = f"mount --bind /proc {shlex.quote(str(root / 'proc'))} && exec unshare --pid --fork " \
             "--mount-proc --kill-child " + shlex.join(str(w) for w in attach)
    process = proctor.other(["unshare", "--mount", "sh", "-c", script], **proctor.options({}))
    path = proctor.work / "a.csv"
    wait_until(lambda: process.poll() is not None or
               (path.exists() and path.read_bytes().count(b"\n") >= 2), "the first sample")
    assert process.poll() is None
    return process


def test_the_outer_proc_from_inside_shows_who_is_born_later(proctor):
    """The last pid in loadavg is of the reader's namespace: it says nothing of those outside."""
    job = proctor.other(["/usr/bin/python3", "-c", BURN_IN_A_CHILD], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE)
    assert job.stdout.readline() == b"ready\n"
    process = attach_to_the_outside(proctor, job.pid)
    job.stdin.write(b"\n")
    job.stdin.flush()
    assert job.stdout.readline() == b"done\n"
    (pid_1,) = proctor.children(process.pid)
    os.kill(pid_1, signal.SIGTERM)
    assert process.wait(PATIENCE) == 0
    metrics = proctor.summary()["metrics"]
    assert metrics["procs.started"]["total"] == 2 == metrics["procs"]["peak"]
    assert 0.25 <= metrics["cpu.time"]["total"] < 0.5 * SLACK
    started = numbers(read_csv(proctor.work / "a.csv"), "procs_started")
    assert started[0] == 1 and started[-1] == 2
