# SPDX-License-Identifier: Apache-2.0
"""Who belongs to the job, and what they used: nobody missed, nothing counted twice."""
import os
import resource
import signal
import sys
import time

import pytest

from proctor_cli import SANITIZED, PATIENCE, SLACK, numbers, read_csv, state_of, wait_until

COUNTERS = ["cpu_user_seconds", "cpu_system_seconds", "cpu_time_seconds", "io_read_bytes",
            "io_write_bytes", "io_rchar_bytes", "io_wchar_bytes", "procs_started", "procs_exited",
            "ctx_voluntary", "ctx_involuntary", "faults_minor", "faults_major"]


def account(proctor, jobs, kind, count, amount, *options):
    """Runs a family; (what it said that it used, the summary)."""
    done, summary = proctor.recorded(*options, jobs / "family", kind, count, amount)
    assert done.returncode == 0 and done.stderr == ""
    return float(done.stdout.split()[1]), summary


# --- CPU time -------------------------------------------------------------------------------------

@pytest.mark.parametrize("interval", ["1ms", "10ms", "1h"])
def test_cpu_time_of_300_short_children(proctor, jobs, interval):
    """At 1 ms many are caught in the middle of their birth or death."""
    used, summary = account(proctor, jobs, "waited", 300, 2000, "-i", interval)
    total = summary["metrics"]["cpu.time"]["total"]
    assert used > 0.6
    assert abs(total - used) <= 0.01 * used + 0.005
    assert summary["accounting"]["cpu"]["note"] is None
    assert summary["accounting"]["io"]["note"] is None
    assert summary["accounting"]["cpu"]["complete"] and summary["accounting"]["io"]["complete"]


def test_children_caught_in_the_middle_of_their_end_are_not_lost(proctor, jobs):
    """Thousands of births and deaths under a sample every millisecond: some reading finds a process
    that is reaped at that very moment, with no parent any more and zeros for values."""
    for _ in range(3):
        used, summary = account(proctor, jobs, "waited", 2000, 100, "-i", "1ms")
        assert summary["accounting"]["cpu"]["note"] is None
        assert summary["accounting"]["cpu"]["complete"] is True
        assert abs(summary["metrics"]["cpu.time"]["total"] - used) <= 0.01 * used + 0.005


@pytest.mark.parametrize("interval", ["10ms", "1h"])
@pytest.mark.parametrize("kind", ["together", "threads", "setsid", "orphans"])
def test_cpu_time_of_every_kind_of_descendant(proctor, jobs, kind, interval):
    """What an orphan used while it ended it could not say: up to a millisecond each."""
    used, summary = account(proctor, jobs, kind, 10, 20000, "-i", interval)
    total = summary["metrics"]["cpu.time"]["total"]
    assert used > 0.2
    assert 0.99 * used - 0.005 <= total <= 1.01 * used + 0.005 + 0.010
    assert summary["accounting"]["cpu"]["complete"] is True
    assert summary["metrics"]["cpu.user"]["total"] + summary["metrics"]["cpu.system"]["total"] == \
        pytest.approx(total, abs=0.05)


def test_cpu_time_of_the_job_itself(proctor, jobs):
    used, summary = account(proctor, jobs, "together", 0, 0)
    assert summary["metrics"]["cpu.time"]["total"] == pytest.approx(used, abs=0.005)


def test_cpu_time_of_children_that_are_killed(proctor):
    """Two that run for ever are killed: what they used by then is in the account."""
    forever = "sh -c 'while :; do :; done' & {}=$!;"
    script = forever.format("a") + forever.format("b") + "sleep 0.3; kill -9 $a $b; wait; times"
    done, summary = proctor.recorded("-i", "1h", "bash", "-c", script)

    def seconds(text):
        minutes, rest = text.rstrip("s").split("m")
        return int(minutes) * 60 + float(rest)
    used = sum(seconds(t) for t in done.stdout.split())
    assert used > 0.05
    assert summary["metrics"]["cpu.time"]["total"] == pytest.approx(used, abs=0.02)


# A second on one CPU, half of which its child has.
SHARED = """
import os, signal, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
end = time.monotonic() + 1
child = os.fork()
while time.monotonic() < (end if child else end + 9):
    pass
if child:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def test_what_the_job_waited_for_a_cpu_is_read_at_its_end(proctor):
    """No sample comes between its start and its end: it is read when it has ended, before it is
    waited for."""
    done, summary = proctor.recorded("-i", "10s", sys.executable, "-c", SHARED)
    assert done.returncode == 0, done.stderr
    assert summary["samples"]["taken"] == 2
    delay = summary["metrics"]["sched.delay"]
    assert 0.2 < delay["total"] < summary["run"]["duration"] and delay["mark"] == "lower bound"


# --- bytes ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("options", [["-i", "1h"], ["-i", "1ms"],
                                     ["-i", "1ms", "--csv", "a.csv", "--processes"]],
                         ids=["unsampled", "sampled", "while we write"])
def test_bytes_of_50_short_writers_are_exact(proctor, jobs, options):
    done, summary = proctor.recorded(*options, jobs / "family", "write", 50, 12345)
    written = 50 * 12345 + len(done.stdout)
    assert done.stdout == f"wrote {50 * 12345}\n"
    assert summary["metrics"]["io.wchar"]["total"] == written
    assert summary["accounting"]["io"]["complete"] is True


def test_bytes_of_orphans_and_readers_are_exact(proctor):
    """`tail -c 1` counts what it reads: data that a grandchild reads from a pipe and writes on."""
    job = "(head -c 3000000 /dev/zero | cat > /dev/null) & sleep 0.3"
    _, summary = proctor.recorded("-i", "20ms", "sh", "-c", job)
    metrics = summary["metrics"]
    assert metrics["io.wchar"]["total"] == 6_000_000
    assert 6_000_000 <= metrics["io.rchar"]["total"] < 6_000_000 + 200_000


# --- totals never go down -------------------------------------------------------------------------

@pytest.mark.parametrize("kind, count, amount", [
    ("waited", 100, 2000), ("together", 20, 10000), ("orphans", 20, 10000), ("threads", 20, 10000),
    ("ignored", 20, 10000), ("write", 100, 5000)])
def test_totals_never_decrease_and_end_as_in_the_summary(proctor, jobs, kind, count, amount):
    _, summary = account(proctor, jobs, kind, count, amount, "-i", "2ms", "--csv", "a.csv")
    rows = read_csv(proctor.work / "a.csv")
    assert len(rows) > 2  # one in between at the least, however busy the machine
    for column in COUNTERS:
        values = numbers(rows, column)
        assert values and values == sorted(values), column
        key = column.removesuffix("_seconds").removesuffix("_bytes").replace("_", ".")
        assert values[-1] == summary["metrics"][key]["total"], column
    assert all(v >= 0 for v in numbers(rows, "cpu_usage_cores"))


# --- members --------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["together", "threads", "setsid", "orphans"])
def test_every_kind_of_descendant_is_a_member(proctor, jobs, kind):
    _, summary = account(proctor, jobs, kind, 4, 100000, "-i", "10ms", "--csv", "a.csv",
                         "--processes")
    rows = read_csv(proctor.work / "a.processes.csv")
    assert summary["metrics"]["procs"]["peak"] >= 5
    assert len({row["pid"] for row in rows}) >= 5
    assert {row["command"] for row in rows} == {"family"}
    assert summary["metrics"]["procs.started"]["total"] == summary["processes"]["seen"]


def test_threads_and_descriptors_are_counted(proctor, jobs):
    _, summary = account(proctor, jobs, "threads", 6, 100000, "-i", "10ms")
    assert summary["metrics"]["threads"]["peak"] >= 6 + 1 + 6  # threads, main, children
    assert summary["metrics"]["fds"]["peak"] >= 3


def test_what_started_and_ended_is_counted(proctor, jobs):
    _, summary = account(proctor, jobs, "orphans", 5, 50000, "-i", "10ms")
    started = summary["metrics"]["procs.started"]["total"]
    assert started >= 6 and summary["metrics"]["procs.exited"]["total"] == started
    assert summary["metrics"]["procs"]["last"] is not None


# --- nobody waits ---------------------------------------------------------------------------------

def test_a_parent_that_ignores_sigchld_makes_the_account_incomplete(proctor, jobs):
    """Unless somebody else keeps one (test_exact.py)."""
    used, summary = account(proctor, jobs, "ignored", 4, 150000, "-i", "10ms", "--exact", "none")
    cpu = summary["accounting"]["cpu"]
    assert cpu["complete"] is False
    assert "nobody in the job waited" in cpu["note"]
    assert summary["accounting"]["io"]["complete"] is False
    total = summary["metrics"]["cpu.time"]["total"]
    assert 0.75 * used <= total <= 1.01 * used + 0.005 + 0.004


def test_children_that_nobody_saw_or_waited_for_make_it_incomplete(proctor, jobs):
    """They end between two samples, and their parent ignores SIGCHLD for all to see."""
    used, summary = account(proctor, jobs, "unseen", 10, 3000, "-i", "200ms", "--exact", "none")
    missing = used - summary["metrics"]["cpu.time"]["total"]
    assert missing > 0.01, "they were counted after all: better than asked"
    assert summary["accounting"]["cpu"]["complete"] is False
    assert "ignores SIGCHLD" in summary["accounting"]["cpu"]["note"]


def test_incomplete_is_noticed_whatever_is_selected(proctor, jobs):
    """Who ignores SIGCHLD is said in a file that the metrics asked for do not need."""
    _, summary = account(proctor, jobs, "unseen", 10, 3000, "-i", "200ms", "--select", "cpu.*", "--exact", "none")
    assert set(summary["metrics"]) and all(m.startswith("cpu.") for m in summary["metrics"])
    assert "ignores SIGCHLD" in summary["accounting"]["cpu"]["note"]


def test_sigchld_ignored_from_outside_changes_nothing_for_us(proctor):
    """We are started with SIGCHLD ignored: the kernel would reap the job in our place."""
    done, summary = proctor.recorded("sleep", "0.1", preexec_fn=lambda: signal.signal(
        signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 0
    assert summary["metrics"]["cpu.time"]["total"] > 0


# --- memory ---------------------------------------------------------------------------------------

def test_a_peak_between_two_samples_is_in_the_mark(proctor, jobs):
    """60 MB for a moment, twice: the mark is one, not the sum."""
    _, summary = account(proctor, jobs, "memory", 2, 60_000, "-i", "1h")
    assert 60_000 * 1024 <= summary["metrics"]["mem.rss.peak"]["peak"] < 100_000 * 1024
    assert summary["accounting"]["memory_peak"]["complete"] is False


def test_the_peak_of_several_is_the_peak_of_the_sum(proctor):
    script = "import time; b = bytearray(30_000_000); time.sleep(0.5)"
    job = " ".join(f"python3 -c '{script}' &" for _ in range(3)) + " wait"
    _, summary = proctor.recorded("-i", "20ms", "--budget", "100%", "bash", "-c", job)
    assert 90_000_000 <= summary["metrics"]["mem.rss.peak"]["peak"] < 200_000_000
    assert summary["metrics"]["mem.rss"]["peak"] <= summary["metrics"]["mem.rss.peak"]["peak"]
    assert 90_000_000 <= summary["metrics"]["mem.pss"]["peak"] <= \
        summary["metrics"]["mem.rss"]["peak"]


def test_a_small_job_is_not_as_large_as_we_are(proctor, jobs):
    """What wait4 says starts from the size of whoever forked."""
    done, summary = proctor.recorded("-i", "50ms", jobs / "tiny", "300")
    assert done.returncode == 0
    mark = int(done.stdout.split()[1]) * 1024
    peak = summary["metrics"]["mem.rss.peak"]["peak"]
    grows = 8 << 20 if SANITIZED else 64 << 10  # a sanitized proctor grows on its way to exec
    assert 0 < peak <= mark + grows, (peak, mark)


def test_memory_that_vfork_lends_counts_once(proctor, jobs):
    """100 MB, and a child that lives in them, is stopped and goes on, before it becomes true."""
    process = proctor.start("run", "-q", "--summary", proctor.summary_file, "-i", "10ms",
                            "--budget", "100%", jobs / "lender", "100000", "500")
    job = proctor.job_of(process)
    (child,) = wait_until(lambda: proctor.children(job), "the child that borrows")
    time.sleep(0.1)
    os.kill(child, signal.SIGSTOP)
    wait_until(lambda: state_of(child) == "T", "it to stop")
    time.sleep(0.1)
    os.kill(child, signal.SIGCONT)
    assert process.wait(PATIENCE) == 0
    metrics = proctor.summary()["metrics"]
    assert metrics["procs"]["peak"] == 2
    for key in ("mem.rss", "mem.pss", "mem.uss", "mem.rss.peak"):
        assert 100_000 * 1024 <= metrics[key]["peak"] < 150_000 * 1024, key


# --- short jobs, starts and ends ------------------------------------------------------------------

@pytest.mark.parametrize("attempt", range(10))
def test_a_job_of_a_millisecond_has_a_full_summary(proctor, attempt):
    _, summary = proctor.recorded("--csv", "a.csv", "true")
    metrics = summary["metrics"]
    assert summary["samples"]["taken"] == 2 == len(read_csv(proctor.work / "a.csv"))
    assert 0 < metrics["cpu.time"]["total"] < 0.1 * SLACK
    assert metrics["mem.rss.peak"]["peak"] > 100_000
    assert metrics["faults.minor"]["total"] > 0
    assert metrics["cpu.usage"]["mean"] > 0
    assert metrics["procs.started"]["total"] == metrics["procs.exited"]["total"] == 1
    assert 0 < summary["run"]["duration"] < 1 * SLACK


def test_counters_that_are_zero_are_known(proctor):
    """wait4 says all of these exactly: none is absent, whatever its value."""
    for _ in range(10):
        _, summary = proctor.recorded("true")
        for key in ("cpu.user", "cpu.system", "cpu.time", "ctx.voluntary", "ctx.involuntary",
                    "faults.minor", "faults.major", "io.read", "io.write", "io.rchar", "io.wchar"):
            assert key in summary["metrics"], key


def test_nobody_at_once_cannot_be_the_most(proctor):
    for _ in range(10):
        _, summary = proctor.recorded("true")
        procs = summary["metrics"].get("procs")
        assert procs is None or procs["peak"] >= 1


WRITER_IN_A_CROWD = """
import subprocess, time
others = [subprocess.Popen(["sleep", "30"]) for _ in range(100)]
began = time.monotonic()
with open("data", "wb", buffering=0) as file:
    for seconds in (9.5, 10.5):
        while time.monotonic() < began + seconds:
            file.write(bytes(1 << 20))
            time.sleep(0.1)
        while others:
            others[0].kill()
            others.pop(0).wait()
"""


def test_the_rate_of_one_who_writes_in_a_crowd(proctor):
    """Where not all files can be held I/O is read every four seconds: its rate is over that time, not what came together
    divided by one interval."""
    _, summary = proctor.recorded("-i", "100ms", "--match", "python", sys.executable, "-c",
                                  WRITER_IN_A_CROWD,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
    total = summary["metrics"]["io.write"]["total"]
    assert total >= 50 << 20
    rate = summary["metrics"]["io.write.rate"]
    assert total / 10 / 4 < rate["peak"] < total / 10 * 3 and rate["mark"] == "up to 20 s old"
    [rule] = summary["matches"]
    assert rule["metrics"]["io.write"]["total"] >= 50 << 20
    assert rule["metrics"].get("io.write.rate", {"peak": 0})["peak"] < total / 10 * 3


def test_the_job_starts_at_once_and_its_end_is_noticed_at_once(proctor):
    before = time.time()
    done, summary = proctor.recorded("-i", "10s", "sh", "-c", "date +%s.%N; sleep 0.2")
    after = time.time()
    assert float(done.stdout) - before < 0.5 * SLACK
    assert after - before < 0.2 + 0.6 * SLACK
    assert summary["samples"]["taken"] == 2
    assert 0.2 <= summary["run"]["duration"] < 0.2 + 0.4 * SLACK


def test_the_last_sample_has_counters_and_no_gauges(proctor):
    done, summary = proctor.recorded("-i", "20ms", "--csv", "a.csv", "sleep", "0.15")
    rows = read_csv(proctor.work / "a.csv")
    last, middle = rows[-1], rows[-2]
    gauges = ["mem_rss_bytes", "mem_pss_bytes", "mem_uss_bytes", "mem_vms_bytes", "mem_swap_bytes",
              "mem_ratio", "procs", "threads", "fds"]
    assert all(middle[g] != "" for g in gauges)
    assert all(last[g] == "" for g in gauges)
    assert all(last[c] != "" for c in COUNTERS)
    assert float(rows[0]["elapsed_seconds"]) < 0.1 * SLACK
    assert summary["metrics"]["mem.rss"]["last"] == float(middle["mem_rss_bytes"])


def test_it_belongs_to_the_job_what_runs_after_its_root_only_with_wait_tree(proctor, jobs):
    done, summary = proctor.recorded("sh", "-c", f"{jobs}/family together 1 9000000 "
                                     ">/dev/null 2>&1 & sleep 0.2; exit 2")
    left = summary["left_running"]
    assert done.returncode == 2 and [p["command"] for p in left] == ["family"] * 2
    for process in left:
        os.kill(process["pid"], signal.SIGKILL)
    assert 0.05 < summary["metrics"]["cpu.time"]["total"] < 1 * SLACK


def test_orphans_of_others_are_looked_for(proctor):
    """Without a subreaper they do not come to us: that we have no child does not mean that nobody is left."""
    _, summary = proctor.recorded("--exact", "none", "--wait-tree", "-i", "20ms", "--", "sh", "-c",
                                  "setsid sh -c 'sleep 0.6; sleep 0.41; exit' & sleep 0.3")
    assert summary["run"]["duration"] > 0.9
    assert summary["metrics"]["procs.started"]["total"] == 5  # two shells, three that sleep
