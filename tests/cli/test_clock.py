# SPDX-License-Identifier: Apache-2.0
"""The clock: one sample at the start, then on an absolute grid; what is missed is skipped."""
import datetime
import os
import signal
import statistics
import time

import pytest

from proctor_cli import SLACK, numbers, read_csv


def rows_of(proctor, *words):
    done, summary = proctor.recorded("--csv", "a.csv", *words)
    assert done.returncode == 0, done.stderr
    return read_csv(proctor.work / "a.csv"), summary


@pytest.mark.parametrize("interval, seconds", [("20ms", 0.02), ("0.05", 0.05), ("0.1s", 0.1)])
def test_samples_stay_on_the_grid(proctor, interval, seconds):
    rows, summary = rows_of(proctor, "-i", interval, "sleep", "0.52")
    elapsed = numbers(rows, "elapsed_seconds")
    ticks = int(summary["run"]["duration"] / seconds)
    assert summary["run"]["interval"] == seconds
    assert summary["samples"]["taken"] == len(rows)
    # The first, the last, and those in between; one may fall together with the end.
    at_the_end = int(numbers(rows, "interval_seconds")[-1] / seconds)
    assert -1 <= ticks + 2 - len(rows) - summary["samples"]["missed"] <= 1 + at_the_end
    off = [t % seconds for t in elapsed[1:-1]]
    assert statistics.median(off) < seconds / 4 * SLACK


def test_intervals_are_the_true_differences(proctor):
    rows, summary = rows_of(proctor, "-i", "15ms", "sleep", "0.3")
    elapsed, interval = numbers(rows, "elapsed_seconds"), numbers(rows, "interval_seconds")
    assert len(elapsed) == len(interval) == len(rows) > 5
    assert interval[0] == pytest.approx(elapsed[0], abs=2e-6)
    for before, after, dt in zip(elapsed, elapsed[1:], interval[1:]):
        assert dt == pytest.approx(after - before, abs=2e-6)
    assert summary["run"]["duration"] == pytest.approx(elapsed[-1], abs=2e-6)


def test_timestamps_are_the_start_plus_elapsed(proctor):
    before = time.time()
    rows, summary = rows_of(proctor, "-i", "15ms", "sleep", "0.2")
    started = datetime.datetime.strptime(summary["run"]["started"], "%Y-%m-%dT%H:%M:%S.%fZ")
    start = started.replace(tzinfo=datetime.timezone.utc).timestamp()
    assert before - 0.01 <= start <= time.time()
    for row in rows:
        assert len(row["timestamp"].split(".")[1]) == 3
        assert float(row["timestamp"]) == pytest.approx(start + float(row["elapsed_seconds"]),
                                                        abs=0.0021)


def test_missed_ticks_are_skipped_and_counted_and_the_grid_stays(proctor):
    """We are stopped for half a second; the job is not."""
    process = proctor.start("run", "--summary", proctor.summary_file, "--csv", "a.csv",
                            "-i", "50ms", "sleep", "1.2")
    proctor.job_of(process)
    time.sleep(0.25)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    summary, rows = proctor.summary(), read_csv(proctor.work / "a.csv")
    elapsed, interval = numbers(rows, "elapsed_seconds"), numbers(rows, "interval_seconds")
    missed = summary["samples"]["missed"]
    assert process.returncode == 0
    assert 8 <= missed <= 12 + 4 * SLACK
    assert f"({missed} missed)" in err.decode()
    assert max(interval) >= 0.45
    after = elapsed[interval.index(max(interval)) + 1:-1]
    assert len(after) >= 3
    assert statistics.median(t % 0.05 for t in after) < 0.0125 * SLACK
    assert abs(len(rows) + missed - (int(elapsed[-1] / 0.05) + 2)) <= 1
    assert len(set(elapsed)) == len(elapsed)


def test_the_least_interval_is_a_millisecond(proctor):
    rows, summary = rows_of(proctor, "-i", "1ms", "sleep", "0.3")
    ticks = int(summary["run"]["duration"] * 1000)
    assert summary["run"]["interval"] == 0.001
    # What was due between the last tick and the end is neither taken nor missed.
    at_the_end = int(numbers(rows, "interval_seconds")[-1] * 1000)
    counted = summary["samples"]["taken"] + summary["samples"]["missed"]
    assert -1 <= ticks + 2 - counted <= 2 + at_the_end
    assert len(rows) > 30


def test_a_sample_before_the_first_interval_and_header_at_once(proctor):
    process = proctor.start("run", "-q", "-i", "1h", "--csv", "-", "sleep", "5")
    header, first = process.stdout.readline(), process.stdout.readline()
    assert header.startswith(b"timestamp,elapsed_seconds,interval_seconds,")
    assert float(first.split(b",")[1]) < 1 * SLACK
    assert process.poll() is None
    process.terminate()
    assert len(process.stdout.read().splitlines()) == 1  # the last sample


def test_average_publishes_the_mean_of_n(proctor):
    """Rows of 4 samples each: intervals add up, counters are the last, gauges lie in between."""
    rows, summary = rows_of(proctor, "-i", "20ms", "--average", "4", "sleep", "0.5")
    interval, elapsed = numbers(rows, "interval_seconds"), numbers(rows, "elapsed_seconds")
    taken = summary["samples"]["taken"]
    assert len(rows) == -(-taken // 4)
    assert sum(interval) == pytest.approx(elapsed[-1], abs=1e-4)
    assert statistics.median(interval[1:-1]) == pytest.approx(0.08, abs=0.02 * SLACK)
    cpu = numbers(rows, "cpu_time_seconds")
    assert cpu == sorted(cpu) and cpu[-1] == summary["metrics"]["cpu.time"]["total"]
    low, high = summary["metrics"]["mem.rss"]["min"], summary["metrics"]["mem.rss"]["peak"]
    assert all(low <= v <= high for v in numbers(rows, "mem_rss_bytes"))


def test_average_is_of_the_gauges_and_not_the_last(proctor):
    """Memory that doubles in the middle of an average shows up in between."""
    script = "import time; time.sleep(0.5); b = bytearray(80_000_000); time.sleep(0.5)"
    rows, summary = rows_of(proctor, "-i", "10ms", "--average", "1000000",
                            "/usr/bin/python3", "-c", script)
    rss = summary["metrics"]["mem.rss"]
    assert len(rows) == 1
    assert rss["peak"] - rss["min"] > 80_000_000
    mean = float(rows[0]["mem_rss_bytes"])
    assert rss["min"] + 16_000_000 < mean < rss["peak"] - 16_000_000


def test_elapsed_goes_on_while_the_job_is_stopped(proctor):
    process = proctor.start("run", "-q", "--summary", proctor.summary_file, "-i", "20ms",
                            "sleep", "0.3")
    job = proctor.job_of(process)
    os.kill(job, signal.SIGSTOP)
    time.sleep(0.6)
    os.kill(job, signal.SIGCONT)
    assert process.wait(60) == 0
    assert proctor.summary()["run"]["duration"] >= 0.6
