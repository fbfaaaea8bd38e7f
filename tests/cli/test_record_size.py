# SPDX-License-Identifier: Apache-2.0
"""How much a run file takes: of disk, of memory, of time."""
import importlib.machinery
import importlib.util
import os
import subprocess
import time

import pytest

from proctor_cli import ROOT, SANITIZED, SLACK, problems, query, wait_until
from test_phases import ended, flood, started

FULL = os.environ.get("PROCTOR_TEST_FULL") == "1"


@pytest.fixture
def daily_size():
    """tools/daily-size as a module."""
    loader = importlib.machinery.SourceFileLoader("daily_size", str(ROOT / "tools" / "daily-size"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("daily_size", loader))
    loader.exec_module(module)
    return module


def test_a_day_is_below_100_mb(proctor, daily_size):
    """Fifty processes, five of them active, at 1 Hz; `make daily-size` takes longer and says more."""
    path = daily_size.record(proctor.path, 100 if FULL else 30, proctor.work)
    # Cores have more rows in the first minute than later.
    found = [row for row in daily_size.measure(path, 70 if FULL else 5)[0] if FULL or row[0] != "core_samples"]
    assert len(found) >= 7
    rates = {name: rate for name, rate, *_ in found}
    assert 0.9 < rates["job_samples"] <= 1.1 and 4.5 <= rates["process_samples"] < 10, "only the five have rows"
    assert daily_size.total(found) < daily_size.LIMIT, found


def test_ten_thousand_marks_a_second_are_all_there(proctor):
    process, socket = started(proctor, "-i", "100ms")
    sent = flood(socket, b'mark flood\t{"step":1}\n', 10000, 3)
    summary = ended(proctor, process)
    assert sent > 25000 / SLACK and not problems(summary)
    assert summary["samples"]["missed"] <= SLACK, summary["samples"]
    [path] = proctor.runs()
    assert query(path, "SELECT count(*) FROM events WHERE event = 'mark' AND name = 'flood'") == [sent]
    assert query(path, "SELECT DISTINCT data FROM events WHERE event = 'mark'") == ['{"step":1}']
    assert query(path, "SELECT count(*) FROM job_samples") == [summary["samples"]["taken"]]
    assert summary["self"]["cpu_ratio"] < 0.6 * SLACK and summary["self"]["rss_peak_bytes"] < (64 << 20) * SLACK


def test_it_reaches_the_disk_when_a_phase_ends(proctor):
    """The log is brought over by the writer's thread; what a commit does is no more than a write."""
    trace, path = proctor.folder / "trace", proctor.work / "a.proctor"
    words = ["strace", "-f", "-r", "-e", "trace=fdatasync,fsync", "-o", trace,
             *proctor.arguments("run", "-q", "-i", "20ms", "-o", path, "sh", "-c",
                                f"sleep 1.3; {proctor.path} phase load -- sleep 0.1; sleep 0.5; touch phase; sleep 0.3")]
    process = proctor.other(words, cwd=proctor.work, env={**proctor.env, "ASAN_OPTIONS": "detect_leaks=0"})
    wait_until((proctor.work / "phase").exists, "the phase to end", 30 * SLACK)
    early = trace.read_text().count("sync(")
    assert process.wait(30 * SLACK) == 0
    late = trace.read_text().count("sync(")
    assert 1 <= early <= 4, "the end of the phase, and not each commit"
    assert 1 <= late - early <= 6, "the end of the run"
    assert query(path, "SELECT count(*) > 50 / ? FROM job_samples", SLACK) == [1]


def test_it_reaches_the_disk_after_ten_seconds(proctor):
    """And not before: what power may take is that much, and waiting for the disk is dear."""
    trace, path = proctor.folder / "trace", proctor.work / "a.proctor"
    words = ["strace", "-f", "-ttt", "-e", "trace=fdatasync,fsync", "-o", trace,
             *proctor.arguments("run", "-q", "-i", "200ms", "-o", path, "sleep", "12.5")]
    began = time.time()
    process = proctor.other(words, cwd=proctor.work, env={**proctor.env, "ASAN_OPTIONS": "detect_leaks=0"})
    assert process.wait(60 * SLACK) == 0
    times = [float(line.split()[1]) - began for line in trace.read_text().splitlines() if "sync(" in line]
    assert not [t for t in times if 1 < t < 9.5], times
    assert [t for t in times if 9.5 < t < 12], times


def test_many_processes_take_bounded_memory(proctor):
    """The recorder's, while some thousands come and go."""
    program = proctor.folder / "crowd"
    subprocess.run(["cc", "-O1", "-static", "-o", program, ROOT / "tests/bench/crowd.c"], check=True)
    done = proctor.run("-q", "-i", "200ms", "--no-pss", "-o", "a.proctor", "--summary", proctor.summary_file, program,
                       "2000", "20", "0", "50", "0", "3", timeout=120)
    assert done.returncode == 0, done.stderr
    path, summary = proctor.work / "a.proctor", proctor.summary()
    assert query(path, "SELECT count(*) FROM entities WHERE kind = 'process'") == [2000]
    rows, taken = query(path, "SELECT count(*), (SELECT count(*) FROM job_samples) FROM process_samples")[0]
    assert rows < 2000 * 4 + taken * 60, "who sleeps has few rows"
    assert SANITIZED or summary["self"]["rss_peak_bytes"] < 56 << 20
