# SPDX-License-Identifier: Apache-2.0
"""The machine beside the job: its columns, its devices, and what must not hang or be counted twice."""
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from proctor_cli import numbers, read_csv

WRITER = "dd if=/dev/zero of=work.dat bs=1M count=64 conv=fsync status=none; sleep 0.25; rm work.dat"


def lines_of(text):
    return [json.loads(line) for line in text.splitlines()]


def recorded(proctor, *args, **options):
    """`proctor ARGS --jsonl -`: its lines."""
    done = proctor(*args, "-q", "--jsonl", "-", **options)
    assert done.returncode == 0, done.stderr
    return lines_of(done.stdout)


def last(lines, kind):
    """The last record of each device of a kind, by name."""
    return {line["name"]: line for line in lines if line["type"] == "device" and line["kind"] == kind}


def test_a_job_has_the_machine_beside_it(proctor):
    done = proctor.run("-q", "-i", "100ms", "--csv", "a.csv", "--summary", proctor.summary_file, "sleep", "0.5")
    assert done.returncode == 0
    header = (proctor.work / "a.csv").read_text().split("\n")[0].split(",")
    first = header.index("system_cpu_user_seconds")
    assert all(c.startswith("system_") for c in header[first:]) and not any(
        c.startswith("system_") for c in header[:first]), "the job's columns first, then the machine's"
    rows = read_csv(proctor.work / "a.csv")
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert set(numbers(rows, "system_mem_total_bytes")) == {total}
    idle = numbers(rows, "system_cpu_idle_seconds")
    assert idle[0] == 0 and idle == sorted(idle), "counters count from the start"
    metrics = proctor.summary()["metrics"]
    assert metrics["system.mem.used"]["last"] is not None, "the machine is still there when the job has ended"
    done = proctor.run("-q", "-i", "500ms", "--summary", proctor.summary_file, "sleep", "1.2")
    assert done.returncode == 0 and proctor.summary()["metrics"]["system.procs"]["peak"] >= 2


def test_each_core_disk_file_system_and_interface_has_a_series(proctor):
    lines = recorded(proctor, "system", "-i", "100ms", "--duration", "0.5s")
    assert set(last(lines, "core")) == {str(i) for i in range(os.cpu_count())}
    sample = [line for line in lines if line["type"] == "sample"][-1]["values"]
    for kind, keys in {"disk": ["system.disk.read", "system.disk.write"],
                       "interface": ["system.net.rx", "system.net.tx"],
                       "filesystem": ["system.disk.space.total", "system.disk.space.used"]}.items():
        counted = [d for d in last(lines, kind).values() if d["counted"]]
        assert counted, kind
        for key in keys:
            assert sum(d["values"][key] for d in counted) == pytest.approx(sample[key]), key
    assert "lo" not in last(lines, "interface")
    cores = last(lines, "core").values()
    assert sum(c["values"]["system.cpu.idle"] for c in cores) == pytest.approx(sample["system.cpu.idle"], abs=0.1)


def test_devices_follow_the_selection(proctor):
    lines = recorded(proctor, "system", "--duration", "0.2s", "--select", "system.disk.read")
    devices = [line for line in lines if line["type"] == "device"]
    assert devices and all(d["kind"] == "disk" and list(d["values"]) == ["system.disk.read"] for d in devices)


def sectors_written():
    whole = set(os.listdir("/sys/block"))
    lines = [line.split() for line in Path("/proc/diskstats").read_text().splitlines()]
    return sum(int(f[9]) for f in lines if f[2] in whole and not f[2].startswith(("loop", "ram", "zram", "dm-", "md")))


def test_bytes_that_reach_the_disk_are_counted_once(proctor):
    before = sectors_written()
    _, summary = proctor.recorded("-i", "100ms", "sh", "-c", WRITER)
    truth = (sectors_written() - before) * 512
    assert truth >= 60 << 20, "the work is on a disk"
    assert abs(summary["metrics"]["system.disk.write"]["total"] - truth) < 16 << 20


@pytest.mark.parametrize("words, least, most", [(["system", "--duration", "1s"], 5, 14), (["run", "sleep", "1"], 2, 4)])
def test_it_is_read_ten_times_a_second_at_the_most_and_twice_beside_a_job(proctor, words, least, most):
    options = ["-q", "-i", "10ms", "--budget", "50%", "--csv", "a.csv"]
    done = proctor(words[0], *options, *words[1:])
    assert done.returncode == 0
    rows = read_csv(proctor.work / "a.csv")
    read = [row for row in rows if row["system_mem_total_bytes"]]
    assert len(rows) > 40 and least <= len(read) <= most, "in between it is absent, not repeated"
    assert rows[0]["system_mem_total_bytes"] and rows[-1]["system_mem_total_bytes"]
    busy = numbers(read, "system_cpu_usage_cores")
    assert busy and max(busy) <= os.cpu_count() * 4, "rates are over the time between readings"


# A file system whose server never answers, as a dead NFS mount.
DEAD = r"""
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
if libc.mount(b"dead", sys.argv[1].encode(), b"fuse.dead", 0, options) < 0:
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, close_fds=True)
try:
    status = child.wait(20)
except subprocess.TimeoutExpired:
    child.kill()
    status = 99
libc.umount2(sys.argv[1].encode(), 2)
sys.exit(status)
"""


def test_a_dead_mount_does_not_hang_it(proctor):
    point = proctor.folder / "dead"
    point.mkdir()
    began = time.monotonic()
    done = subprocess.run(["unshare", "-m", "/usr/bin/python3", "-c", DEAD, point, proctor.path, "system", "-q",
                           "--duration", "0.5s", "--jsonl", proctor.work / "a.jsonl"], timeout=60,
                          **proctor.options({}))
    assert done.returncode == 0 and time.monotonic() - began < 15
    systems = last(lines_of((proctor.work / "a.jsonl").read_text()), "filesystem")
    assert systems and str(point) not in systems, "the others are there"


ZPOOL = """#!/bin/sh
[ "$*" = "list -Hp -o name,size,allocated,free" ] || exit 1
printf 'tank\\t1000000\\t600000\\t400000\\nrpool\\t5000\\t2000\\t3000\\n'
"""


def test_zfs_pools_are_asked_by_a_helper(proctor):
    """On a machine whose kernel says that it has ZFS, with a zpool of our own."""
    tools = proctor.folder / "tools"
    tools.mkdir()
    (tools / "zpool").write_text(ZPOOL)
    (tools / "zpool").chmod(0o755)
    (tools / "filesystems").write_text(Path("/proc/filesystems").read_text() + "nodev\tzfs\n")
    script = f"mount --bind {tools}/filesystems /proc/filesystems && PATH={tools}:$PATH exec {proctor.path} " \
             f"run -q -i 100ms --jsonl a.jsonl --summary {proctor.summary_file} -- sh -c 'sleep 1 & wait'"
    subprocess.run(["unshare", "-m", "sh", "-c", script], check=True, timeout=60, **proctor.options({}))
    lines = lines_of((proctor.work / "a.jsonl").read_text())
    pools = {name: d["values"] for name, d in last(lines, "filesystem").items() if name.startswith("zfs:")}
    assert pools == {
        "zfs:tank": {"system.disk.space.total": 1000000, "system.disk.space.used": 600000,
                     "system.disk.space.free": 400000},
        "zfs:rpool": {"system.disk.space.total": 5000, "system.disk.space.used": 2000, "system.disk.space.free": 3000}}
    summary = proctor.summary()
    assert summary["processes"]["seen"] == 2, "the helper is not of the job"
    assert summary["left_running"] == [] and summary["accounting"]["cpu"]["complete"]


def test_means_keep_what_was_known_in_their_window(proctor):
    done = proctor("system", "-q", "-i", "20ms", "--budget", "50%", "--average", "10", "--duration", "1.5s", "--csv", "a.csv",
                   "--jsonl", "a.jsonl")
    assert done.returncode == 0
    rows = read_csv(proctor.work / "a.csv")
    idle = numbers(rows, "system_cpu_idle_seconds")
    assert len(rows) >= 4 and len(idle) == len(rows), "a counter has its last known value"
    lines = lines_of((proctor.work / "a.jsonl").read_text())
    samples = [line for line in lines if line["type"] == "sample"]
    cores = [line for line in lines if line["type"] == "device" and line["kind"] == "core" and line["name"] == "0"]
    assert len(cores) == len(samples)


def test_memory_of_the_job_gives_way_to_the_machine(proctor):
    """PSS of 400 MB of small pages costs more than the budget: it is read less often, the machine is not."""
    code = "import mmap, time; m = mmap.mmap(-1, 400 << 20); m.madvise(mmap.MADV_NOHUGEPAGE); " \
           "[m.__setitem__(i, 1) for i in range(0, 400 << 20, 4096)]; time.sleep(2)"
    done = proctor.run("-q", "-i", "250ms", "--budget", "3%", "--csv", "a.csv", "/usr/bin/python3", "-c", code)
    assert done.returncode == 0
    rows = read_csv(proctor.work / "a.csv")
    assert sum(bool(row["system_mem_total_bytes"]) for row in rows) >= len(rows) / 2 - 1, "every other one"


def test_no_rate_over_a_sliver_of_time(proctor):
    done = proctor("system", "-q", "-i", "200ms", "--csv", "a.csv", "--duration", "0.405s")
    assert done.returncode == 0
    last_row = read_csv(proctor.work / "a.csv")[-1]
    assert float(last_row["interval_seconds"]) > 0.05 or last_row["system_cpu_usage_cores"] == ""
    assert last_row["system_cpu_idle_seconds"] != ""
