# SPDX-License-Identifier: Apache-2.0
"""proctor.compat.resource_tracker, 0.5. Tests that name a defect are about one of the original's."""
import csv
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from compat_support import GOLDEN, a_tracked_run, dead_pid, in_pid_namespace, with_gpus
from pythons import PLACES, PYTHONS, clean_environment, run_script, skip_visibly

from proctor.compat.resource_tracker import ProcessTracker, ResourceTracker, SystemTracker, get_cloud_info
from proctor.compat.resource_tracker import helpers, tracker_procfs
from proctor.compat.resource_tracker.report import Report

PROCESS = ["timestamp", "pid", "children", "utime", "stime", "cpu_usage", "memory_mib", "disk_read_bytes",
           "disk_write_bytes", "gpu_usage", "gpu_vram_mib", "gpu_utilized"]


@pytest.fixture(scope="module")
def tracked():
    return a_tracked_run()


def test_constructors_are_the_originals():
    """Their order and defaults; pid and times are taken at the call, not when the module is read (defect 8)."""
    assert {n: p.default for n, p in inspect.signature(ResourceTracker).parameters.items()} == {
        "pid": None, "children": True, "interval": 1, "method": None, "autostart": False, "track_processes": True,
        "track_system": True, "discover_server": True, "discover_cloud": True, "sentinel_token": None,
        "upload_interval": 60, "streaming_metadata": None}
    assert list(inspect.signature(ProcessTracker).parameters) == ["pid", "start_time", "interval", "children",
                                                                  "autostart", "output_file"]
    assert list(inspect.signature(SystemTracker).parameters) == ["start_time", "interval", "autostart", "output_file"]


def test_frames_have_the_originals_columns(tracked):
    assert tracked.process_metrics.columns == PROCESS
    with open(GOLDEN / "resource-tracker.system.csv", newline="") as file:
        assert tracked.system_metrics.columns == next(csv.reader(file))
    with open(GOLDEN / "resource-tracker.combined.csv", newline="") as file:
        assert tracked.get_combined_metrics().columns == next(csv.reader(file))
    names = tracked.get_combined_metrics(human_names=True).columns
    assert names[0] == "Timestamp" and "System used memory" in names and "Process memory usage" in names
    combined = tracked.get_combined_metrics()
    in_bytes = tracked.get_combined_metrics(bytes=True)
    assert in_bytes["process_memory_mib"][-1] == combined["process_memory_mib"][-1] * 2 ** 20
    assert len(tracked.get_combined_metrics(offset=1)) == len(combined) - 1
    assert tracked.get_combined_metrics(system_prefix="s.", process_prefix="p.").columns[1] == "s.processes"


def test_figures_are_true(tracked):
    stats = tracked.stats()
    assert 60 <= stats["process_memory_mib"]["max"] <= 140
    rows = tracked.process_metrics
    spent = sum(rows["utime"]) + sum(rows["stime"])
    assert 0.6 <= spent <= 0.9, spent
    assert stats["timestamp"]["duration"] == pytest.approx(tracked.stop_time - tracked.start_time, abs=0.55)
    assert stats["process_cpu_usage"]["mean"] == pytest.approx(spent / stats["timestamp"]["duration"], abs=0.3)
    assert set(stats) == {"process_cpu_usage", "process_memory_mib", "process_gpu_usage", "process_gpu_vram_mib",
                          "process_gpu_utilized", "system_disk_space_used_gb", "system_net_recv_bytes",
                          "system_net_sent_bytes", "timestamp"}


def test_under_every_python(python):
    python("""
        import time
        from proctor.compat.resource_tracker import ResourceTracker
        with ResourceTracker(interval=0.2) as tracker:
            tracker.wait_for_samples(n=2)
        assert tracker.n_samples >= 2 and tracker.stats()["process_memory_mib"]["max"] > 1
        again = ResourceTracker.loads(tracker.dumps())
        assert again.stats() == tracker.stats()
        assert again.report().startswith("<!doctype html>".upper()) or "<html" in again.report()[:200]
    """)


# --- defects ---------------------------------------------------------------------------------------------------


def test_defect_1_a_name_with_a_blank_in_it(tmp_path):
    """0.74 s of CPU that theirs has as 0 s of user time."""
    program = tmp_path / "a b c d e f g"
    os.symlink(sys.executable, program)
    code = ("import ctypes, time; ctypes.CDLL(None).prctl(15, b'a b) c d', 0, 0, 0)\n"
            "while time.process_time() < 0.5: pass\nprint(1, flush=True); time.sleep(60)")
    child = subprocess.Popen([program, "-c", code], stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        found = tracker_procfs.get_process_proc_times(child.pid)
        assert 0.45 <= (found["utime"] + found["stime"]) / os.sysconf("SC_CLK_TCK") <= 0.7
        stats = tracker_procfs.get_process_stats(child.pid)
        assert 0.45 <= stats["utime"] + stats["stime"] <= 0.7
    finally:
        child.kill()
        child.wait()


def test_defect_2_children_of_other_threads_are_seen():
    found = []

    def start():
        child = subprocess.Popen(["sleep", "60"])
        found.append((child, tracker_procfs.get_process_children(os.getpid())))
        child.kill()
        child.wait()
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    child, children = found[0]
    assert child.pid in children


def test_defect_3_and_4_what_cannot_be_read_and_names_that_are_no_text(tmp_path):
    """Neither ends a tracker; what is not known is None, and no part of it stands for the whole."""
    run_script(PYTHONS["debian"], r"""
        import ctypes, os, time
        from proctor.compat.resource_tracker import ResourceTracker
        child = os.fork()
        if child == 0:
            os.close(1), os.close(2)  # nobody waits for its end
            ctypes.CDLL(None).prctl(15, b"\xff\xfe x", 0, 0, 0)
            time.sleep(4)
            os._exit(0)
        root = os.getuid() == 0
        if root:
            os.setresuid(65534, 65534, 65534)  # the child is root's: its smaps are not for us
            ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # and ours are
        with ResourceTracker(interval=0.2, discover_server=False) as tracker:
            tracker.wait_for_samples(n=2)
        rows = tracker.process_metrics
        assert len(rows) >= 2 and rows["children"][-1] == 1, rows
        assert rows["memory_mib"][-1] is None if root else rows["memory_mib"][-1] > 0, rows
    """, tmp_path)


def test_defect_3_a_sum_from_which_little_is_missing_is_none(tmp_path):
    """`sleep` of another user beside 100 MiB. Where there is no process there are zeros, as in the original."""
    if os.getuid() != 0:
        skip_visibly("processes of two users need root")
    run_script(PYTHONS["debian"], """
        import ctypes, os, subprocess
        from proctor.compat import resource_tracker_0_1 as old
        from proctor.compat.resource_tracker import ProcessTracker, tracker_procfs as procfs
        memory = bytearray(b"1") * (100 << 20)
        child = subprocess.Popen(["sleep", "5"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.setresuid(65534, 65534, 65534)
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # what is ours may be read
        stats, first = procfs.get_process_stats(os.getpid()), old.get_pid_stats(os.getpid())
        assert stats["children"] == first["children"] == 1 and stats["utime"] + stats["stime"] > 0, stats
        assert stats["memory_mib"] is None and first["pss"] is None, (stats, first)
        assert procfs.get_process_stats(os.getpid(), children=False)["memory_mib"] > 100
        assert old.get_pid_stats(os.getpid(), children=False)["pss"] > 100 << 10
        assert ProcessTracker(autostart=False).diff_stats()["memory_mib"] is None
        assert old.PidTracker(autostart=False).diff_stats()["pss"] is None
        assert procfs.get_process_pss_rollup(child.pid) is None is old.get_pid_pss_rollup(child.pid)
        assert procfs.get_process_rss(child.pid) > 0 and procfs.get_process_pss_rollup(2 ** 22 + 1) == 0
        alone, first = procfs.get_process_stats(child.pid), old.get_pid_stats(child.pid)
        assert alone["disk_read_bytes"] is None is alone["disk_write_bytes"], alone
        assert first["read_bytes"] is None is first["write_bytes"], first
        gone = procfs.get_process_stats(2 ** 22 + 1)
        assert gone["memory_mib"] == gone["disk_read_bytes"] == gone["gpu_usage"] == 0, gone
    """, tmp_path)


def test_defect_5_each_file_is_read_once_in_a_sample(tmp_path):
    """Theirs reads a child's stat twice, and all else in passes of its own: a row is of several moments."""
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    code = f"""if True:
        import time
        from proctor.compat.resource_tracker import ResourceTracker
        with ResourceTracker(pid={child.pid}, interval=0.1, discover_server=False, discover_cloud=False):
            time.sleep(2)"""
    try:
        subprocess.run(["strace", "-f", "-y", "-e", "trace=futex,pread64", "-o", tmp_path / "trace", PYTHONS["debian"],
                        "-c", code], cwd=tmp_path, env=clean_environment(tmp_path, **PLACES), check=True, timeout=60)
    finally:
        child.kill()
        child.wait()
    lines = (tmp_path / "trace").read_text().splitlines()
    reads = Counter(line.split()[0] for line in lines if f"/proc/{child.pid}/stat>" in line)
    thread = reads.most_common(1)[0][0]  # the first reading is the main thread's
    own = "\n".join(line for line in lines if line.split()[0] == thread)
    times = [Counter(re.findall(rf"/proc/{child.pid}/([a-z_]+)>", part)) for part in own.split("FUTEX_WAIT_BITSET")]
    usual = [found for found in times[2:-2] if found["stat"]]  # the first look and the last one are longer
    assert len(usual) >= 8 and all(set(found.values()) == {1} for found in usual), times
    assert {"stat", "io", "smaps_rollup"} <= set().union(*usual), times


def test_defect_6_an_orphan_does_not_hide_the_work_of_others():
    """A child whose exit nobody waits for takes its CPU time since the last sample with it, of 1.5 s in all; what the
    rest does stays in the row."""
    code = """
import os, signal, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
sys.stdin.readline()
if os.fork() == 0:
    burn(0.5)
    os._exit(0)
burn(1.0)
print(1, flush=True)
time.sleep(60)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        tracked = ResourceTracker(child.pid, interval=0.1)
        with tracked:
            child.stdin.write(b"\n")
            child.stdin.flush()
            child.stdout.readline()
            time.sleep(0.3)
    finally:
        child.kill()
        child.wait()
    rows = tracked.process_metrics
    assert 1.35 <= sum(rows["utime"]) + sum(rows["stime"]) <= 1.65
    assert all(row["utime"] >= 0 and row["stime"] >= 0 for row in rows)


def test_defect_7_and_25_the_tracker_is_not_in_its_figures_and_forks_nothing():
    """Theirs: an idle script has 2 to 3 children and 20 MiB more."""
    before = tracker_procfs.get_process_children(os.getpid())
    with ResourceTracker(interval=0.2) as tracked:
        time.sleep(0.5)
        assert tracker_procfs.get_process_children(os.getpid()) == before
    assert tracked.process_metrics["children"][-1] == len(before)


def test_defect_8_nothing_is_owed_from_before(tmp_path):
    """Made long after the module was read, and stopped in between: no burst of rows. In a fork: the fork."""
    run_script(PYTHONS["debian"], """
        import os, signal, subprocess, sys, threading, time
        from proctor.compat.resource_tracker import ProcessTracker, ResourceTracker
        time.sleep(0.7)
        child = subprocess.Popen(["sleep", "0.9"])
        threading.Thread(target=child.wait).start()
        ProcessTracker(child.pid, interval=0.3, output_file="a.csv")
        rows = open("a.csv").read().splitlines()
        assert len(rows) in (4, 5), rows  # the header, one at once, one for each interval
        if (pid := os.fork()) == 0:
            os._exit(0 if ResourceTracker().pid == os.getpid() == ProcessTracker(autostart=False).pid else 1)
        assert os.waitpid(pid, 0)[1] == 0
    """, tmp_path)


def test_defect_8_no_burst_of_rows_after_a_pause(tmp_path):
    """Trackers of both kinds in a process that is stopped for a second: what was missed is left out."""
    code = """if True:
        import subprocess, threading
        from proctor.compat.resource_tracker import ProcessTracker, ResourceTracker
        work = subprocess.Popen(["sleep", "2.6"])
        threading.Thread(target=work.wait).start()
        with ResourceTracker(interval=0.1, discover_server=False, discover_cloud=False) as tracker:
            print("ready", flush=True)
            ProcessTracker(work.pid, interval=0.1, output_file="a.csv")
        print(*tracker.process_metrics["timestamp"])"""
    script = subprocess.Popen([PYTHONS["debian"], "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
                              env=clean_environment(tmp_path, **PLACES))
    with script:
        assert script.stdout.readline() == "ready\n"
        time.sleep(0.8)
        script.send_signal(signal.SIGSTOP)
        time.sleep(1)
        script.send_signal(signal.SIGCONT)
        background = [float(word) for word in script.stdout.read().split()]
    with open(tmp_path / "a.csv", newline="") as file:
        loop = [float(row["timestamp"]) for row in csv.DictReader(file)]
    for stamps in (background, loop):
        gaps = [b - a for a, b in zip(stamps, stamps[1:])]
        pause = max(gaps)
        after = gaps[gaps.index(pause) + 1:]
        assert pause > 0.9 and len(after) >= 3, gaps
        assert sum(gap < 0.05 for gap in after) <= 2, gaps  # owed ones would be there at once, ten of them
        assert len(stamps) <= (stamps[-1] - stamps[0] - pause) / 0.1 + 4, gaps


SHIFTED = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
long shift; /* of the wall clock, seconds */
int clock_gettime(clockid_t id, struct timespec *t)
{
    int r = (int)syscall(SYS_clock_gettime, id, t);
    t->tv_sec += r == 0 && id == CLOCK_REALTIME ? shift : 0;
    return r;
}
"""


@pytest.mark.parametrize("shift", [-3600, 3600])
def test_defect_9_a_clock_that_is_set_changes_no_rate(tmp_path, shift):
    """Theirs divides by the difference of the wall clock, and waits for its next sample by it."""
    (tmp_path / "shift.c").write_text(SHIFTED)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "shift.so", "shift.c"], cwd=tmp_path, check=True)
    env = clean_environment(tmp_path, **PLACES, LD_PRELOAD=str(tmp_path / "shift.so"))
    run_script(PYTHONS["debian"], f"""
        import ctypes, time
        from proctor.compat.resource_tracker import ResourceTracker
        clock = ctypes.c_long.in_dll(ctypes.CDLL("./shift.so"), "shift")
        with ResourceTracker(interval=0.1, discover_server=False, discover_cloud=False) as tracker:
            end, before = time.monotonic() + 2, time.time()
            while time.monotonic() < end:
                if time.monotonic() > end - 1 and not clock.value:
                    clock.value = {shift}
                    assert abs(time.time() - before - {shift}) < 5
        rows = tracker.process_metrics
        assert 15 <= len(rows) <= 24, len(rows)  # none is owed, none is waited for
        usage, times = rows["cpu_usage"], rows["timestamp"]
        assert all(0.01 < value < 1.5 for value in usage[3:-2]), usage  # by their clock: 0.1 s of 3600, or below 0
        assert all(0 <= b - a < 1 for a, b in zip(times, times[1:])), times  # in ms; the last row is taken at the end
    """, tmp_path, env=env)


def test_defect_10_the_first_sample_is_written(tmp_path):
    child = subprocess.Popen(["sleep", "0.3"])
    threading.Thread(target=child.wait).start()
    found = ProcessTracker(child.pid, interval=10, autostart=False)
    thread = threading.Thread(target=found.start_tracking, args=(str(tmp_path / "a.csv"),), daemon=True)
    thread.start()
    time.sleep(0.2)
    lines = (tmp_path / "a.csv").read_bytes().split(b"\n")
    assert lines[0] == ",".join(f'"{name}"' for name in PROCESS).encode()
    assert lines[1].split(b",")[1] == str(child.pid).encode()
    child.wait()


def test_defect_11_the_end_of_a_process_is_its_end(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.5)"])
    threading.Thread(target=child.wait).start()
    found = ProcessTracker(child.pid, interval=0.2, output_file=str(tmp_path / "a.csv"))
    assert found.status == "exited" and found.cycle >= 3
    gone = ProcessTracker(dead_pid(), interval=0.2, output_file=str(tmp_path / "b.csv"))
    assert gone.status == "exited" and (tmp_path / "b.csv").read_text() == ""


def test_defect_11_who_has_the_pid_next_is_not_followed(tmp_path):
    in_pid_namespace(tmp_path, """
        from proctor.compat.resource_tracker import ProcessTracker
        pid = child(lambda: time.sleep(60))
        tracker = ProcessTracker(pid, autostart=False)
        assert tracker.diff_stats()["memory_mib"] > 0
        os.kill(pid, 9); os.waitpid(pid, 0)
        child_with_pid(pid, lambda: time.sleep(60))
        assert tracker.diff_stats()["memory_mib"] == 0 and tracker.status == "exited"
        os.kill(pid, 9)
    """)


def test_defect_12_stopping_is_no_error(caplog, capfd):
    with ResourceTracker(interval=0.2) as tracked:
        tracked.wait_for_samples()
    assert not caplog.records and capfd.readouterr() == ("", "")
    with pytest.raises(RuntimeError):
        tracked.start()


def test_defect_13_the_first_gpu_may_be_idle_and_one_may_not_tell(tmp_path):
    """By a driver that says what it is told: theirs has 0 for the process, and drops all behind the [N/A]."""
    script = """device 0 H100 GPU-aaaa 80000000000 1000000000
device 1 H100 GPU-bbbb 80000000000 5368709120
device 2 H100 GPU-cccc 80000000000 1000000000
na 0 utilization
util 1 80 0 1000
"""
    run_script(PYTHONS["debian"], """
        import os, time
        with open(os.environ["FAKE_NVML"], "a") as f:
            f.write(f"process 1 {os.getpid()} 4294967296 c 80 1000\\n")
        from proctor.compat.resource_tracker import ResourceTracker, get_server_info
        with ResourceTracker(interval=0.4) as tracker:
            time.sleep(1.8)
        process, system = tracker.process_metrics, tracker.system_metrics
        assert process["gpu_vram_mib"][-2] == 4096, process
        assert max(v for v in process["gpu_usage"] if v is not None) > 0.5, process
        assert process["gpu_utilized"][-2] == 1, process
        assert max(v for v in system["gpu_vram_mib"] if v is not None) >= 5120, system
        info = get_server_info()
        assert info["gpu_count"] == 3 and info["gpu_name"] == info["gpu_names"][0], info
        wanted = tracker.recommend_resources()
        assert wanted["gpu"] == 1 and wanted["vram"] == 5120, wanted
    """, tmp_path, env=with_gpus(tmp_path, script))


def test_stats_of_a_moment_have_the_gpus_in_use(tmp_path):
    """In the first look at a process, though a driver takes its time; by their numbers, of which the first is idle."""
    script = """device 0 H100 GPU-aaaa 80000000000 1000000000
device 1 H100 GPU-bbbb 80000000000 5368709120
util 1 80 0 1000
"""
    run_script(PYTHONS["debian"], """
        import os
        with open(os.environ["FAKE_NVML"], "a") as f:
            f.write(f"process 1 {os.getpid()} 4294967296 c 80 1000\\n")
        from proctor.compat import resource_tracker_0_1 as old
        from proctor.compat.resource_tracker import tracker_procfs, tracker_psutil
        for stats in (tracker_procfs.get_process_stats(os.getpid()), tracker_psutil.get_process_stats(os.getpid()),
                      old.get_pid_stats(os.getpid())):
            assert stats["gpu_utilized_indexes"] == {1} and stats["gpu_utilized"] == 1, stats
            assert stats.get("gpu_vram_mib", stats.get("gpu_vram")) == 4096 and stats["gpu_usage"] > 0.5, stats
        for stats in (tracker_procfs.get_system_stats(), old.get_system_stats()):
            assert stats.get("gpu_vram_mib", stats.get("gpu_vram")) >= 5120 and stats["gpu_utilized"] == 1, stats
            assert 0.7 < stats["gpu_usage"] < 0.9, stats
    """, tmp_path, env=with_gpus(tmp_path, script))


WITH_DISKS = ["unshare", "--mount", "sh", "-c",
              "mount --bind block /sys/block && mount --bind class /sys/class/block && "
              "mount --bind diskstats /proc/diskstats && exec \"$@\"", "sh"]


def test_defect_14_partitions_and_what_lies_upon_disks_are_not_counted(tmp_path):
    """A kernel with other disks than this one has, by mounts over its files. And defect 15: sectors have 512 bytes."""
    upon = {"vda": [], "nvme0n1": [], "dm-0": ["vda2"], "md_home": ["nvme0n1p1"], "loop0": [], "zram0": []}
    parts = ["vda1", "vda2", "nvme0n1p1", "md_homep1"]
    for name, slaves in upon.items():
        (tmp_path / "block" / name / "queue").mkdir(parents=True)
        (tmp_path / "block" / name / "queue" / "hw_sector_size").write_text("4096\n")
        for slave in ["", *slaves]:
            (tmp_path / "block" / name / "slaves" / slave).mkdir(parents=True)
    for name in [*upon, *parts]:
        (tmp_path / "class" / name).mkdir(parents=True)
    for name in parts:
        (tmp_path / "class" / name / "partition").write_text("1\n")
    (tmp_path / "diskstats").touch()
    probe = subprocess.run([*WITH_DISKS, "true"], cwd=tmp_path, capture_output=True, text=True)
    if probe.returncode:
        skip_visibly(f"unshare --mount: {probe.stderr.strip()}")
    run_script(PYTHONS["debian"], """
        import sys
        from proctor.compat import resource_tracker_0_1 as old
        from proctor.compat.resource_tracker import SystemTracker, helpers, tracker_procfs as procfs
        def counters(read, written):
            with open("diskstats", "w") as f:
                for i, name in enumerate(sys.argv[1:]):
                    f.write(f"8 {i} {name} 1 0 {read} 0 1 0 {written} 0 0 0 0\\n")
        counters(1000, 3000)
        disks = procfs.get_system_stats()["disk_stats"]
        assert disks == {name: {"read_bytes": 512000, "write_bytes": 1536000} for name in ("vda", "nvme0n1")}, disks
        disks = old.get_system_stats()["disk_stats"]
        assert disks == {name: {"read_sectors": 1000, "write_sectors": 3000} for name in ("vda", "nvme0n1")}, disks
        assert [n for n in sys.argv[1:] if helpers.is_partition(n)] == ["vda1", "vda2", "nvme0n1p1", "md_homep1"]
        assert procfs.get_sector_sizes()["nvme0n1"] == 4096
        for tracker in (SystemTracker(autostart=False), old.SystemTracker(autostart=False)):
            counters(1000, 3000)
            tracker.diff_stats()
            counters(1010, 3100)
            row = tracker.diff_stats()
            assert row["disk_read_bytes"] == 2 * 10 * 512 and row["disk_write_bytes"] == 2 * 100 * 512, row
    """, tmp_path, *upon, *parts, before=WITH_DISKS)


def test_defect_14_15_16_disks_count_once(tmp_path):
    """Whole disks in sectors of 512 bytes; each file system once, and what root keeps for itself is not used."""
    stats = tracker_procfs.get_system_stats()
    for name, found in stats["disk_stats"].items():
        assert not helpers.is_partition(name)
        assert not os.listdir(f"/sys/block/{name}/slaves") if os.path.isdir(f"/sys/block/{name}/slaves") else True
        with open(f"/sys/block/{name}/stat") as file:
            fields = file.read().split()
        assert int(fields[2]) * 512 >= found["read_bytes"] >= int(fields[2]) * 512 * 0.99 - 1e6
    devices = [os.stat(mount).st_dev for mount in stats["disk_spaces"] if mount.startswith("/")]
    assert len(devices) == len(set(devices))
    root, found = os.statvfs("/"), stats["disk_spaces"].get("/")
    if found:
        assert found["used"] == pytest.approx((root.f_blocks - root.f_bfree) * root.f_frsize, rel=0.02)
    with open("/proc/partitions") as file:
        names = [line.split()[3] for line in file if len(line.split()) == 4 and line.split()[0].isdigit()]
    assert {name for name in names if not helpers.is_partition(name)} <= set(os.listdir("/sys/block"))


def test_defect_17_lo_is_not_the_network():
    """Whatever else comes in meanwhile, 30 MiB through lo are not in it."""
    import socket

    def received():
        with open("/proc/net/dev") as file:
            lines = [line.partition(":") for line in file]
        return sum(int(rest.split()[0]) for name, colon, rest in lines if colon and name.strip() != "lo")
    before = received()
    found = SystemTracker(autostart=False)
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
        peer, _ = server.accept()
        with peer:
            for _ in range(30):
                client.sendall(bytes(1 << 20))
                left = 1 << 20
                while left:
                    left -= len(peer.recv(left))
    time.sleep(0.12)
    counted = found.diff_stats()["net_recv_bytes"]
    assert 0 <= counted <= received() - before


WITH_NETWORK = ["unshare", "--net", "--mount", "sh", "-c",
                "mount --bind net /sys/class/net && ip link add eth0 type veth peer name veth1 && "
                "ip link set eth0 up && ip link set veth1 up && ip address add 10.9.9.1/24 dev eth0 && "
                "ip neighbour add 10.9.9.2 lladdr 02:00:00:00:00:02 dev eth0 && exec \"$@\"", "sh"]


def test_defect_17_what_lies_behind_an_interface_is_not_counted_again(tmp_path):
    """In a network of its own, whose one interface is hardware by what sysfs says: the other one has the same bytes."""
    (tmp_path / "net" / "eth0" / "device").mkdir(parents=True)
    (tmp_path / "net" / "veth1").mkdir()
    probe = subprocess.run([*WITH_NETWORK, "true"], cwd=tmp_path, capture_output=True, text=True)
    if probe.returncode:
        skip_visibly(f"unshare --net --mount, and veth: {probe.stderr.strip()}")
    run_script(PYTHONS["debian"], """
        import socket
        from proctor.compat import resource_tracker_0_1 as old
        from proctor.compat.resource_tracker import SystemTracker, tracker_procfs as procfs
        trackers = [SystemTracker(autostart=False), old.SystemTracker(autostart=False)]
        before = [procfs.get_system_stats(), old.get_system_stats()]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for _ in range(300): s.sendto(bytes(1000), ("10.9.9.2", 9))
        rows = [tracker.diff_stats() for tracker in trackers]
        for then, now in zip(before, [procfs.get_system_stats(), old.get_system_stats()]):
            rows.append({key: now[key] - then[key] for key in ("net_recv_bytes", "net_sent_bytes")})
        for row in rows:
            assert 300000 <= row["net_sent_bytes"] < 400000 and row["net_recv_bytes"] < 100000, rows
    """, tmp_path, before=WITH_NETWORK)


def test_defect_18_processes_are_those_that_run():
    found = tracker_procfs.get_system_stats()
    count = sum(name.isdigit() for name in os.listdir("/proc"))
    assert found["processes"] == pytest.approx(count, rel=0.3, abs=40)


def test_defect_19_recommended_memory_is_what_was_needed():
    """300 MiB for a moment between two samples: theirs says 128, whatever was used."""
    code = "x = bytearray(b'1') * (300 << 20); del x; import time; time.sleep(0.8)"
    child = subprocess.Popen([sys.executable, "-c", code])
    time.sleep(0.5)
    with ResourceTracker(child.pid, interval=0.2, discover_cloud=False) as tracked:
        time.sleep(0.2)
    child.kill()
    child.wait()
    assert tracked.recommend_resources()["memory"] == 512
    earlier = {**tracked.stats(), "process_memory_mib": {"mean": 1.0, "max": 3000.0}}
    assert tracked.recommend_resources([earlier])["memory"] == 4096


def test_defect_20_allocation_and_no_discovery(tracked):
    assert tracked.server_info["allocation"] in ("dedicated", "shared")
    made = json.loads(tracked.dumps())
    for i, row in enumerate(made["system_metrics"]):
        own = made["process_metrics"][i]
        row.update(cpu_usage=own["cpu_usage"], memory_used_mib=own["memory_mib"], gpu_usage=0, gpu_vram_mib=0)
    assert ResourceTracker.from_snapshot(made).server_info["allocation"] == "dedicated"
    for row in made["system_metrics"]:
        row["cpu_usage"] += 2
    assert ResourceTracker.from_snapshot(made).server_info["allocation"] == "shared"
    with ResourceTracker(interval=0.2, discover_server=False, discover_cloud=False) as found:
        found.wait_for_samples()
    assert found.server_info is None and found.cloud_info is None
    assert found.snapshot()["server_info"] is None and "[Error" not in found.report()


def test_defect_21_a_report_needs_no_network(tracked):
    """And says what to ask for; 1.4 cores are not 1."""
    report = tracked.report(integration="Metaflow", historical_stats=[tracked.stats()], status_failed=True)
    assert isinstance(report, Report) and "[Error" not in report and "Failed" in report
    assert "@resources(cpu=1, memory=" in report and "Earlier runs" in report
    assert "http://" not in report.replace("http://www.w3.org", "")
    made = json.loads(tracked.dumps())
    for row in made["process_metrics"]:
        row["cpu_usage"] = 1.4
    assert ResourceTracker.from_snapshot(made).recommend_resources()["cpu"] == 2
    with pytest.raises(NotImplementedError):
        tracked.recommend_server()


def test_defect_22_one_of_both_is_enough_and_rows_are_matched_by_time(tracked):
    for only in ("track_processes", "track_system"):
        with ResourceTracker(interval=0.2, **{only: True, {"track_processes": "track_system",
                                                           "track_system": "track_processes"}[only]: False}) as found:
            found.wait_for_samples()
        assert found.n_samples >= 1 and found.stats()["timestamp"]["duration"] > 0
    made = json.loads(tracked.dumps())
    del made["process_metrics"][0]
    again = ResourceTracker.from_snapshot(made).get_combined_metrics()
    assert again["process_cpu_usage"] == [row["cpu_usage"] for row in made["process_metrics"]]
    assert again["timestamp"] == [row["timestamp"] for row in made["process_metrics"]]
    assert all(isinstance(v, int) for v in tracked.process_metrics["children"])


def test_defect_22_a_torn_line_is_not_read(tmp_path):
    from proctor.compat.resource_tracker._table import Growing
    path = tmp_path / "a.csv"
    path.write_text('"timestamp","x"\n1.5,10\n2.5,1')
    growing = Growing(str(path))
    assert growing.columns() == {"timestamp": [1.5], "x": [10]}
    with open(path, "a") as file:
        file.write("23\n")
    assert growing.columns() == {"timestamp": [1.5, 2.5], "x": [10, 123]}


def test_defect_23_the_cloud_is_known_without_asking_anybody(tmp_path, monkeypatch):
    import socket
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("somebody is asked"))
    assert get_cloud_info()["vendor"]
    firmware = tmp_path / "sys/class/dmi/id"
    firmware.mkdir(parents=True)
    (firmware / "sys_vendor").write_text("Amazon EC2\n")
    (firmware / "product_name").write_text("m5.large\n")
    found = get_cloud_info(str(tmp_path))
    assert (found["vendor"], found["instance_type"], found["region"]) == ("aws", "m5.large", "unknown")
    (firmware / "sys_vendor").write_text("Hetzner\n")
    assert get_cloud_info(str(tmp_path))["instance_type"] == "unknown"  # not the number of the machine
    init = tmp_path / "run/cloud-init"
    init.mkdir(parents=True)
    (init / "instance-data.json").write_text(json.dumps({"v1": {"cloud_name": "gce", "region": "europe-west1"}}))
    assert get_cloud_info(str(tmp_path))["region"] == "europe-west1"


def test_defect_26_no_token_sends_anything(caplog):
    assert ResourceTracker(sentinel_token="secret").sentinel_result is None
    assert "not sent" in caplog.text and "secret" not in caplog.text
