# SPDX-License-Identifier: Apache-2.0
"""One workload, watched at the same time by the originals, by psutil and by proctor: prints a JSON object of
{who: {"cpu": seconds, "memory": MiB}} with the truth. Runs where psutil and the originals are to be had.

The workload is what trees do: a name with a blank, a child that another thread has started, children that live between
two samples, and one whose exit nobody waits for."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "goldens"), str(ROOT / "python")]
import originals  # noqa: E402
import psutil  # noqa: E402

from proctor.compat import resource_tracker, stouputils  # noqa: E402

INTERVAL = 0.25
MIB = 2 ** 20
WORKLOAD = r"""
import ctypes, os, signal, sys, threading, time
def burn(seconds):
    while time.process_time() < seconds: pass
def done():
    with open(os.path.join(sys.argv[1], str(os.getpid())), "w") as f: f.write(repr(time.process_time()))
def child(seconds, hold=0.0):
    pid = os.fork()
    if pid == 0:
        own = time.process_time()
        burn(own + seconds)
        time.sleep(hold)
        done()
        os._exit(0)
    return pid
ctypes.CDLL(None).prctl(15, b"my worker", 0, 0, 0)
memory = bytearray(b"1") * (80 << 20)
print("ready", flush=True)
sys.stdin.readline()
def in_thread(): os.waitpid(child(0.5, 0.6), 0)
thread = threading.Thread(target=in_thread); thread.start()
for _ in range(5): os.waitpid(child(0.08), 0)
burn(time.process_time() + 0.4)
thread.join()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
child(0.4, 0.3)
burn(time.process_time() + 0.3)
time.sleep(0.8)
done()
print("done", flush=True)
sys.stdin.readline()
"""


def theirs():
    """Of each original what it says of a process, once a call: (CPU seconds since the call before, MiB)."""
    package = originals.package("resource-tracker", "resource_tracker")
    procfs = originals.package("resource-tracker", "resource_tracker.tracker_procfs")
    nothing = lambda *_: None  # noqa: E731
    base = type("Base", (), {"__class_getitem__": classmethod(lambda cls, _: cls)})
    originals.stub("stouputils.ctx.common", AbstractBothContextManager=base)
    originals.stub("stouputils.print.message", debug=nothing, info=nothing, warning=nothing)
    monitor = originals.module("stouputils", "stouputils/mlflow/process_metrics_monitor.py", "stouputils.mlflow")

    def tracker(stats):
        def make(pid):
            made = package.ProcessTracker(pid=pid, autostart=False)
            made.get_process_stats = stats
            made.stats = stats(pid, True)

            def look(_):
                row = made.diff_stats()
                return row["utime"] + row["stime"], row["memory_mib"]
            return look
        return make

    def process_metrics(pid):
        made = monitor.ProcessMetricsMonitor(pid=pid)

        def look(seconds):
            found = made.collect_once()
            return found["cpu_usage_percentage"] / 100 * seconds, found["memory_rss_megabytes"]
        look(0)
        return look

    def plain_psutil(pid):
        root, last = psutil.Process(pid), [0.0]

        def look(_):
            cpu = memory = 0.0
            for process in [root, *root.children(recursive=True)]:
                try:
                    cpu += sum(process.cpu_times()[:2])
                    memory += process.memory_info().rss / MIB
                except psutil.Error:
                    continue
            spent, last[0] = cpu - last[0], cpu
            return spent, memory
        look(0)
        return look

    psutil_stats = originals.package("resource-tracker", "resource_tracker.tracker_psutil").get_process_stats
    return {"resource-tracker 0.5 (procfs)": tracker(procfs.get_process_stats),
            "resource-tracker 0.5 (psutil)": tracker(psutil_stats), "stouputils": process_metrics,
            "psutil": plain_psutil}


class Watcher(threading.Thread):
    """Asks one of them at each interval."""

    def __init__(self, make, pid):
        super().__init__()
        self.look, self.end, self.cpu, self.memory = make(pid), threading.Event(), 0.0, 0.0

    def run(self):
        last = time.monotonic()
        while not self.end.wait(INTERVAL):
            now = time.monotonic()
            cpu, memory = self.look(now - last)
            self.cpu, self.memory, last = self.cpu + cpu, max(self.memory, memory), now


def ours(pid):
    made = stouputils.ProcessMetricsMonitor(pid=pid)

    def look(_):
        found = made.collect_once()
        now = time.monotonic()
        spent = found["cpu_usage_percentage"] / 100 * made.max_cpu_count * (now - look.last)
        look.last = now
        return spent, found["memory_rss_megabytes"]
    made.collect_once()
    look.last = time.monotonic()
    return look


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = subprocess.Popen([sys.executable, "-c", WORKLOAD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                text=True)
        work.stdout.readline()
        start = sum(psutil.Process(work.pid).cpu_times()[:2])
        tracker = resource_tracker.ResourceTracker(work.pid, interval=INTERVAL, discover_server=False)
        watchers = {name: Watcher(make, work.pid) for name, make in theirs().items()}
        watchers["proctor.compat.stouputils"] = Watcher(ours, work.pid)
        tracker.start()
        for watcher in watchers.values():
            watcher.start()
        work.stdin.write("\n")
        work.stdin.flush()
        work.stdout.readline()
        time.sleep(2 * INTERVAL)
        for watcher in watchers.values():
            watcher.end.set()
            watcher.join()
        tracker.stop()
        times = {path.name: float(path.read_text()) for path in pathlib.Path(folder).iterdir()}
        work.stdin.close()
        work.wait()
    rows = tracker.process_metrics
    found = {name: {"cpu": watcher.cpu, "memory": watcher.memory} for name, watcher in watchers.items()}
    found["proctor.compat.resource_tracker"] = {"cpu": sum(rows["utime"]) + sum(rows["stime"]),
                                                "memory": tracker.stats()["process_memory_mib"]["max"]}
    found["truth"] = {"cpu": sum(times.values()) - start, "memory": 80.0}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    os.environ.pop("SENTINEL_API_TOKEN", None)
    main()
