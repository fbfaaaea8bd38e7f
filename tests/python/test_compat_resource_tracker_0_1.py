# SPDX-License-Identifier: Apache-2.0
"""proctor.compat.resource_tracker_0_1: ticks, kB and GiB, under the names of that version."""
import csv
import inspect
import os
import subprocess
import sys
import threading
import time

import pytest
from compat_support import GOLDEN, burn

from proctor.compat import resource_tracker_0_1 as old

TICKS = os.sysconf("SC_CLK_TCK")


def golden_header(table):
    with open(GOLDEN / f"resource-tracker-0.1.{table}.csv", newline="") as file:
        return next(csv.reader(file))


def test_constructors_and_names_are_the_originals():
    assert {n: p.default for n, p in inspect.signature(old.PidTracker).parameters.items()} == {
        "pid": None, "interval": 1, "children": True, "autostart": True, "output_file": None}
    assert {n: p.default for n, p in inspect.signature(old.SystemTracker).parameters.items()} == {
        "interval": 1, "autostart": True, "output_file": None}
    assert list(old.PidTracker(autostart=False).diff_stats()) == golden_header("process")
    assert list(old.SystemTracker(autostart=False).diff_stats()) == golden_header("system")


def test_stats_of_a_process():
    stats = old.get_pid_stats(os.getpid())
    assert list(stats) == ["timestamp", "pid", "children", "utime", "stime", "pss", "read_bytes", "write_bytes",
                           "gpu_usage", "gpu_vram", "gpu_utilized", "gpu_utilized_indexes"]
    spent = sum(os.times()[:4]) * TICKS
    assert abs(stats["utime"] + stats["stime"] - spent) < 20 and stats["gpu_utilized_indexes"] == set()
    assert stats["pss"] == pytest.approx(old.get_pid_pss_rollup(os.getpid()), rel=0.2)
    assert old.get_pid_rss(os.getpid()) >= old.get_pid_pss_rollup(os.getpid()) * 0.95
    assert set(old.get_pid_proc_io(os.getpid())) == {"rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes",
                                                     "cancelled_write_bytes"}
    assert old.get_pid_stats(os.getpid(), children=False)["children"] is None


def test_a_process_that_is_not_there_has_zeros():
    child = subprocess.Popen(["true"])
    child.wait()
    stats = old.get_pid_stats(child.pid)
    assert stats["pss"] == stats["utime"] == 0 and old.get_pid_children(child.pid) == set()
    assert old.get_pid_proc_times(child.pid) == {"utime": 0, "stime": 0} and old.get_pid_rss(child.pid) == 0
    assert old.get_pid_proc_io(child.pid) == {"read_bytes": 0, "write_bytes": 0}


def test_stats_of_the_machine_with_their_nested_keys():
    """Sums of processes that run, not forks since boot; disks in sectors; what this version calls used."""
    stats = old.get_system_stats()
    assert {"timestamp", "processes", "utime", "stime", "memory_free", "memory_used", "memory_buffers", "memory_cached",
            "memory_active_anon", "memory_inactive_anon", "disk_stats", "disk_spaces", "net_recv_bytes",
            "net_sent_bytes", "gpu_usage", "gpu_vram", "gpu_utilized"} <= set(stats)
    assert stats["processes"] == pytest.approx(sum(n.isdigit() for n in os.listdir("/proc")), rel=0.3, abs=40)
    for found in stats["disk_stats"].values():
        assert set(found) == {"read_sectors", "write_sectors"}
    for found in stats["disk_spaces"].values():
        assert set(found) == {"total", "used", "free"} and found["total"] >= found["free"]
    with open("/proc/meminfo") as file:
        memory = {line.split(":")[0]: int(line.split()[1]) for line in file}
    total = sum(stats[f"memory_{name}"] for name in ("free", "used", "buffers", "cached"))
    assert abs(total - memory["MemTotal"]) <= 4
    with open("/proc/stat") as file:
        fields = list(map(int, file.readline().split()[1:]))
    assert abs(stats["utime"] - fields[0] - fields[1]) < 5 * TICKS
    assert old.SystemTracker(autostart=False).sector_sizes.keys() == set(os.listdir("/sys/block"))
    assert not any(map(old.is_partition, stats["disk_stats"]))


def test_differences_are_in_ticks_and_none_is_lost():
    """Of 0.3 s in small pieces: each row is cut off by itself, their sum is not."""
    tracker = old.PidTracker(autostart=False)
    start = time.process_time()
    rows = []
    for _ in range(12):
        burn(0.025)
        rows.append(tracker.diff_stats())
    spent = (time.process_time() - start) * TICKS
    assert tracker.cycle == 12 and all(isinstance(row["utime"], int) for row in rows)
    assert sum(row["utime"] + row["stime"] for row in rows) == pytest.approx(spent, rel=0.25, abs=3)


def test_the_loop_writes_the_originals_file_until_the_process_ends(tmp_path):
    """With a first row (defect 10), lines that end as theirs, and an end that is the process's (defect 11)."""
    code = "import time\nwhile time.process_time() < 0.5: pass\ntime.sleep(0.3)"
    child = subprocess.Popen([sys.executable, "-c", code])
    threading.Thread(target=child.wait).start()
    tracker = old.PidTracker(child.pid, interval=0.2, output_file=str(tmp_path / "a.csv"))
    assert tracker.status == "exited"
    data = (tmp_path / "a.csv").read_bytes()
    lines = data.split(b"\r\n")
    assert lines[0] == ",".join(f'"{name}"' for name in golden_header("process")).encode() and lines[-1] == b""
    with open(tmp_path / "a.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 4 and {row["children"] for row in rows} == {"0"}
    assert 30 <= sum(int(row["utime"]) + int(row["stime"]) for row in rows) <= 60


def test_standard_output_is_the_default(capfd):
    child = subprocess.Popen(["sleep", "0.2"])
    threading.Thread(target=child.wait).start()
    tracker = old.PidTracker(child.pid, interval=0.1, autostart=False)
    tracker.start_tracking(print_header=False)
    out = capfd.readouterr().out
    assert out.count("\n") >= 2 and "timestamp" not in out


def test_under_every_python(python):
    """With the report of OasisLMF's monitor, which no other test runs under all of them."""
    python("""
        import os, subprocess, threading
        from proctor.compat import resource_tracker_0_1 as old
        from proctor.compat.oasislmf import ResourceMonitor
        assert old.get_pid_stats(os.getpid())["pss"] > 100 and old.get_system_stats()["memory_free"] > 0
        child = subprocess.Popen(["sleep", "0.3"])
        threading.Thread(target=child.wait).start()
        assert old.PidTracker(child.pid, interval=0.1, output_file="a.csv").status == "exited"
        os.symlink("/bin/sleep", "gulpy")
        child = subprocess.Popen(["./gulpy", "0.5"])
        monitor = ResourceMonitor("log", 0.1)
        monitor.start(os.getpid())
        child.wait()
        monitor.stop()
        assert "| gulpy | 1 |" in open("log/resource_report/resource_report.md").read()
    """)
