# SPDX-License-Identifier: Apache-2.0
"""Signals sent by processes: handed on once each; stops and gaps; the job is never left behind."""
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proctor_cli import (SLACK, finish, is_alive, numbers, problems, read_csv, read_line, state_of,
                         wait_until)

HANDED_ON = [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1,
             signal.SIGUSR2, signal.SIGCONT, signal.SIGWINCH, signal.SIGALRM, signal.SIGPIPE,
             signal.SIGURG, signal.SIGIO, signal.SIGRTMIN + 1]


class Counter:
    """`proctor run OPTIONS count_signals`, started; it ends when its standard input does."""

    def __init__(self, proctor, jobs, *options, job_options=(), **popen):
        self.proctor = proctor
        self.process = proctor.start("run", "-q", "--summary", proctor.summary_file, *options,
                                     jobs / "count_signals", "0", *job_options,
                                     stdin=subprocess.PIPE, **popen)
        self.out = self.process.stdout.fileno()
        word, pid = read_line(self.out).split()
        assert word == "ready"
        self.pid = int(pid)

    def expect(self, sig):
        assert read_line(self.out) == f"got {int(sig)}"

    def end(self, settle=0.1):
        """Lets the job end; (status, {signal: times}, summary)."""
        time.sleep(settle)  # whatever else is on its way arrives
        self.process.stdin.close()
        counts = {}
        while (line := read_line(self.out)) is not None:
            word, sig, times = (line.split() + ["1"])[:3]
            if word == "count":
                counts[int(sig)] = int(times)
        return self.process.wait(30), counts, self.proctor.summary()


# --- process group --------------------------------------------------------------------------------

def test_job_stays_in_our_process_group_and_session(proctor):
    process = proctor.start("run", "-q", "sh", "-c", "echo $(ps -o pgid=,sid= -p $$); echo $PPID",
                            start_new_session=True)
    status, out, _ = finish(process)
    assert status == 0
    assert out.split() == [str(process.pid)] * 3  # leader of both, and the job's parent


# --- handing on -----------------------------------------------------------------------------------

@pytest.mark.parametrize("sig", HANDED_ON, ids=lambda s: str(int(s)))
def test_a_signal_from_a_process_is_handed_on_once(proctor, jobs, sig):
    counter = Counter(proctor, jobs)
    os.kill(counter.process.pid, sig)
    counter.expect(sig)
    status, counts, summary = counter.end()
    assert (status, counts) == (7, {int(sig): 1})
    assert summary["exit"] == {"code": 7, "signal": None}


def test_several_signals_one_after_another(proctor, jobs):
    counter = Counter(proctor, jobs, "-i", "5ms")
    for _ in range(10):
        for sig in (signal.SIGUSR1, signal.SIGUSR2):
            os.kill(counter.process.pid, sig)
            counter.expect(sig)
    _, counts, _ = counter.end()
    assert counts == {int(signal.SIGUSR1): 10, int(signal.SIGUSR2): 10}


def test_a_signal_to_the_job_does_not_touch_us(proctor, jobs):
    counter = Counter(proctor, jobs)
    os.kill(counter.pid, signal.SIGTERM)
    counter.expect(signal.SIGTERM)
    status, counts, _ = counter.end()
    assert (status, counts) == (7, {15: 1})


def test_what_is_ignored_under_nohup_stays_ignored(proctor):
    process = proctor.start("run", "-q", "sleep", "0.5",
                            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    proctor.job_of(process)
    os.kill(process.pid, signal.SIGHUP)
    assert process.wait(30) == 0


def test_a_signal_that_we_were_started_with_blocked_is_handed_on(proctor, jobs):
    def block():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    process = proctor.start("run", "-q", "sleep", "0.5", preexec_fn=block)
    job = proctor.job_of(process)
    os.kill(process.pid, signal.SIGUSR1)
    # Blocked in the job, too: it waits there, and does no harm.
    pending = re.compile(r"^ShdPnd:\t0*200$", re.M)
    wait_until(lambda: pending.search(Path(f"/proc/{job}/status").read_text()), "the signal")
    assert process.wait(30) == 0


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_jobs_end_by_a_signal_to_us_is_ours(proctor, sig):
    process = proctor.start("run", "-q", "--summary", proctor.summary_file, "sleep", "77",
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    job = proctor.job_of(process)
    os.kill(process.pid, sig)
    assert process.wait(30) == -sig
    assert not is_alive(job)
    assert proctor.summary()["exit"]["signal"] == sig


# --- never leaves it behind, never kills it -------------------------------------------------------

def test_waits_for_a_job_that_ignores_signals(proctor, jobs):
    counter = Counter(proctor, jobs)
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        os.kill(counter.process.pid, sig)
        counter.expect(sig)
    time.sleep(0.3)
    assert is_alive(counter.pid) and counter.process.poll() is None
    status, counts, _ = counter.end()
    assert status == 7 and counts == {1: 1, 2: 1, 3: 1, 15: 1}
    assert not is_alive(counter.pid)


def test_our_own_death_does_not_kill_the_job(proctor):
    process = proctor.start("run", "-q", "sleep", "77")
    job = proctor.job_of(process)
    process.kill()
    process.wait(30)
    time.sleep(0.1)
    assert is_alive(job)
    os.kill(job, signal.SIGKILL)


def test_a_job_killed_while_stopped_is_noticed(proctor):
    process = proctor.start("run", "-q", "--summary", proctor.summary_file, "-i", "1h",
                            "sleep", "77")
    job = proctor.job_of(process)
    os.kill(job, signal.SIGSTOP)
    wait_until(lambda: state_of(job) == "T", "the job to stop")
    time.sleep(0.2)  # a stop that nobody has seen would be no gap
    os.kill(job, signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    assert [e["type"] for e in proctor.summary()["events"]] == ["gap"]


# --- STOP and gaps --------------------------------------------------------------------------------

def test_a_job_stopped_by_stop_is_waited_for_and_recorded_as_a_gap(proctor, jobs):
    counter = Counter(proctor, jobs, "-i", "20ms", "--csv", proctor.work / "a.csv")
    before = len(read_csv(proctor.work / "a.csv"))
    os.kill(counter.pid, signal.SIGSTOP)
    wait_until(lambda: state_of(counter.pid) == "T", "the job to stop")
    time.sleep(0.5)
    assert state_of(counter.process.pid) in "SR"  # we go on
    rows = len(read_csv(proctor.work / "a.csv"))
    assert rows > before + 5  # and record
    os.kill(counter.pid, signal.SIGCONT)
    counter.expect(signal.SIGCONT)
    status, _, summary = counter.end()
    gaps = [e for e in summary["events"] if e["type"] == "gap"]
    assert status == 7 and len(gaps) == 1
    assert 0.4 <= gaps[0]["seconds"] < 0.5 + 2 * SLACK
    assert 0 <= gaps[0]["at"] < summary["run"]["duration"]
    assert "SIGSTOP" in gaps[0]["text"]


def test_no_stop_is_lost_from_the_gaps(proctor, jobs):
    """Stopped again as soon as it goes on: we may see only the latest state."""
    counter = Counter(proctor, jobs)
    for _ in range(30):
        os.kill(counter.pid, signal.SIGSTOP)
        wait_until(lambda: state_of(counter.pid) == "T", "the job to stop")
        time.sleep(0.03)
        os.kill(counter.pid, signal.SIGCONT)
        counter.expect(signal.SIGCONT)
    _, _, summary = counter.end()
    gaps = [e["seconds"] for e in summary["events"] if e["type"] == "gap"]
    assert 1 <= len(gaps) <= 30 and sum(gaps) >= 30 * 0.03 - 0.02


def test_many_stops_do_not_crowd_trouble_out(proctor, jobs):
    """A summary has room for some events: those that say what is wrong are among them."""
    reader, writer = os.pipe()
    counter = Counter(proctor, jobs, "-i", "100ms", "--csv", f"/proc/self/fd/{writer}",
                      pass_fds=[writer])
    os.close(writer)
    for _ in range(85):
        os.kill(counter.pid, signal.SIGSTOP)
        wait_until(lambda: state_of(counter.pid) == "T", "the job to stop")
        time.sleep(0.02)
        os.kill(counter.pid, signal.SIGCONT)
        counter.expect(signal.SIGCONT)
        time.sleep(0.005)
    os.close(reader)
    _, _, summary = counter.end(settle=0.3)
    assert any("Broken pipe" in text for text in problems(summary))
    assert len([e for e in summary["events"] if e["type"] == "gap"]) >= 20
    assert summary["events_total"] >= 80 and summary["events_total"] >= len(summary["events"])


def test_a_signal_for_a_stopped_job_is_not_lost(proctor, jobs):
    counter = Counter(proctor, jobs)
    os.kill(counter.pid, signal.SIGSTOP)
    wait_until(lambda: state_of(counter.pid) == "T", "the job to stop")
    os.kill(counter.process.pid, signal.SIGUSR1)
    time.sleep(0.1)
    os.kill(counter.process.pid, signal.SIGCONT)
    assert {read_line(counter.out), read_line(counter.out)} == {"got 10", "got 18"}
    _, counts, _ = counter.end()
    assert counts == {10: 1, 18: 1}


def test_signals_are_handed_on_while_an_output_is_blocked(proctor, jobs):
    """A pipe that nobody reads fills up; neither the job nor its signals wait for it."""
    reader, writer = os.pipe()
    try:
        counter = Counter(proctor, jobs, "-i", "1ms", "--csv", f"/proc/self/fd/{writer}",
                          "--flush-timeout", "0.2", pass_fds=[writer])
        time.sleep(0.6)
        os.kill(counter.process.pid, signal.SIGUSR1)
        counter.expect(signal.SIGUSR1)
        status, counts, summary = counter.end()
    finally:
        os.close(reader)
        os.close(writer)
    assert (status, counts) == (7, {10: 1})
    blocked = [e["text"] for e in summary["events"] if "blocked" in e["text"]]
    assert blocked and len(blocked) == len(set(blocked))


def test_under_timeout_nobody_is_left(proctor):
    """timeout signals its child and then its whole group."""
    process = subprocess.Popen(["timeout", "0.3", proctor.path, "run", "-q", "--summary",
                                proctor.summary_file, "sleep", "77"], **proctor.options({}))
    assert process.wait(30) == 124
    assert proctor.summary()["exit"] == {"code": None, "signal": 15}
    assert proctor.summary()["run"]["duration"] < 30


# --- before the job runs --------------------------------------------------------------------------

def test_a_signal_at_any_moment_ends_job_and_us(proctor):
    """TERM right after the start, at many moments: never lost, never half."""
    for i in range(30):
        process = proctor.start("run", "-q", "sleep", "5")
        time.sleep(i * 0.0002)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(4) == -signal.SIGTERM, f"after {i * 0.2} ms"


def test_samples_do_not_go_backwards_through_stops(proctor, jobs):
    counter = Counter(proctor, jobs, "-i", "10ms", "--csv", proctor.work / "a.csv")
    for _ in range(3):
        os.kill(counter.process.pid, signal.SIGSTOP)
        time.sleep(0.05)
        os.kill(counter.process.pid, signal.SIGCONT)
        counter.expect(signal.SIGCONT)
    counter.end()
    elapsed = numbers(read_csv(proctor.work / "a.csv"), "elapsed_seconds")
    assert elapsed == sorted(set(elapsed))


def test_an_alarm_that_was_set_before_is_the_jobs(proctor):
    """It outlives exec, and would have reached the job without us."""
    script = "import os, signal, sys; signal.alarm(1); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", script, proctor.path, "run", "-q", "sleep", "20"],
                          timeout=60, **proctor.options({}))
    assert done.returncode == -signal.SIGALRM
