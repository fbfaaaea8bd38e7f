# SPDX-License-Identifier: Apache-2.0
"""proctor.compat.stouputils. Tests that name a defect are about one of the original's. test_compat_mlflow.py has a real
server."""
import inspect
import logging
import os
import subprocess
import sys
import threading
import time
import types

import pytest
from compat_support import burn, in_pid_namespace
from pythons import PYTHONS, run_script, skip_visibly
from test_limits import group  # noqa: F401

import proctor
from proctor.compat.stouputils import ProcessMetricsMonitor

NINE = {"cpu_usage_percentage", "memory_rss_megabytes", "memory_vms_megabytes", "memory_uss_megabytes",
        "memory_usage_percentage", "num_threads", "num_fds", "io_read_megabytes", "io_write_megabytes"}


class Store:
    """An MLflow that remembers, or does not answer."""

    def __init__(self):
        self.batches, self.down = [], False
        self.run = types.SimpleNamespace(info=types.SimpleNamespace(run_id="r1"))

    def active_run(self):
        return self.run

    def MlflowClient(self):
        return self

    def log_batch(self, run_id, metrics):
        if self.down:
            raise ConnectionError("nobody is there")
        self.batches.append((run_id, {m[0]: m[1] for m in metrics}, metrics[0][2], metrics[0][3]))

    def column(self, name):
        return [batch[1].get(name) for batch in self.batches]


@pytest.fixture
def store(monkeypatch):
    made = Store()
    mlflow, entities = types.ModuleType("mlflow"), types.ModuleType("mlflow.entities")
    mlflow.active_run, mlflow.MlflowClient = made.active_run, made.MlflowClient
    entities.Metric = lambda key, value, timestamp, step: (key, value, timestamp, step)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    return made


def test_the_constructor_is_the_originals():
    parameters = inspect.signature(ProcessMetricsMonitor).parameters
    assert {name: p.default for name, p in parameters.items()} == {
        "pid": None, "children": True, "sampling_interval": 10.0, "samples_before_logging": 1, "prefix": "process/",
        "verbose": False, "max_memory_megabytes": None, "max_cpu_count": None}
    monitor = ProcessMetricsMonitor(pid=0, samples_before_logging=0)
    assert (monitor.pid, monitor.samples_before_logging, monitor.step, monitor.samples) == (os.getpid(), 1, 0, [])
    assert monitor.thread is None and monitor.run_id is None and isinstance(monitor.shutdown_event, threading.Event)


def test_exactly_nine_keys(python):
    python("""
        import os
        from proctor.compat.stouputils import ProcessMetricsMonitor
        monitor = ProcessMetricsMonitor()
        x = bytearray(b"1") * (50 << 20)
        found = monitor.collect_once()
        assert len(found) == 9, found
        assert found["memory_rss_megabytes"] > 50 and found["memory_uss_megabytes"] > 50
        assert found["num_threads"] == 1 and list(monitor.processes) == [os.getpid()], found
        assert monitor.collect_once()["num_threads"] == 1  # looking leaves nothing behind
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
        assert monitor.max_memory_megabytes <= total + 1
    """)


def cpu_seconds(monitor, work):
    """What the monitor says of the CPU time that work takes, but for the time that it took to look."""
    monitor.collect_once()
    start = time.monotonic()
    work()
    percent = monitor.collect_once()["cpu_usage_percentage"]
    return percent / 100 * monitor.max_cpu_count * (time.monotonic() - start)


def test_defect_1_cpu_is_divided_by_max_cpu_count():
    for count in (1.0, 4.0):
        assert 0.3 <= cpu_seconds(ProcessMetricsMonitor(max_cpu_count=count), lambda: burn(0.4)) <= 0.5


def test_defect_2_the_first_point_is_a_measurement():
    """60 monitors of a busy process: no value is more than one core gives. The original: up to 37,230 %."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.3)
        found = [ProcessMetricsMonitor(busy.pid, max_cpu_count=1, max_memory_megabytes=1).collect_once()
                 for _ in range(60)]
    finally:
        busy.kill()
        busy.wait()
    assert all(0 < one["cpu_usage_percentage"] <= 101 for one in found)


def test_defect_2_and_3_children_that_came_and_went_between_two_samples_count():
    def work():
        subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True)
    assert 0.4 <= cpu_seconds(ProcessMetricsMonitor(), work) <= 0.75


def test_defect_3_bytes_of_processes_that_ended_stay(tmp_path):
    monitor = ProcessMetricsMonitor()
    before = monitor.collect_once()["io_write_megabytes"]
    with open("/proc/self/io") as file:
        own = next(int(line.split()[1]) for line in file if line.startswith("write_bytes")) / 2 ** 20
    assert abs(before - own) < 1  # since the process began, as the original
    subprocess.run(["dd", "if=/dev/zero", f"of={tmp_path}/a", "bs=1M", "count=8", "status=none"], check=True)
    assert monitor.collect_once()["io_write_megabytes"] >= before + 8 * 0.99


def test_defect_4_a_pid_that_is_used_again_is_another_process(tmp_path):
    """Neither negative nor what the one before it had used."""
    in_pid_namespace(tmp_path, """
        from proctor.compat.stouputils import ProcessMetricsMonitor
        monitor = ProcessMetricsMonitor(max_cpu_count=1)
        def known():  # CPU time of the child
            return monitor.processes[pid]["cpu.time"] if pid in monitor.processes else 0.0
        pid = child(lambda: (burn(0.6), time.sleep(60)))
        while known() < 0.55:
            time.sleep(0.1)
            monitor.collect_once()
        os.kill(pid, 9); os.waitpid(pid, 0)
        start = time.monotonic()
        child_with_pid(pid, lambda: (burn(0.2), time.sleep(60)))
        time.sleep(0.5)
        percent = monitor.collect_once()["cpu_usage_percentage"]
        spent = percent / 100 * (time.monotonic() - start)
        assert pid in monitor.processes and known() < 0.3, known()
        assert 0 <= spent < 0.5, (percent, spent)  # 0.2 s, and what looking takes; not 0.6 s again, and not less than 0
        os.kill(pid, 9)
    """)


def test_defect_5_points_have_the_time_of_their_sample_and_the_last_is_of_the_end(store):
    with ProcessMetricsMonitor(sampling_interval=0.4) as monitor:
        assert monitor.thread.name == "ProcessMetricsMonitor" and monitor.thread.daemon
        start = time.time()
        time.sleep(0.6)
    end = time.time()
    stamps = [batch[2] / 1000 for batch in store.batches]
    assert len(stamps) == 3 and [batch[3] for batch in store.batches] == [0, 1, 2] and monitor.step == 3
    assert abs(stamps[0] - start) < 0.2 and abs(stamps[1] - start - 0.4) < 0.2 and abs(stamps[2] - end) < 0.2
    assert {key for batch in store.batches for key in batch[1]} == {f"process/{name}" for name in NINE}
    assert {batch[0] for batch in store.batches} == {"r1"} and monitor.thread is None
    assert set(store.column("process/num_threads")) == {float(threading.active_count())}  # without the one that logs


def test_defect_6_nothing_is_logged_of_a_process_that_has_gone(store):
    child = subprocess.Popen(["sleep", "0.5"])
    threading.Thread(target=child.wait).start()
    monitor = ProcessMetricsMonitor(child.pid, sampling_interval=0.2)
    monitor.start()
    time.sleep(1.2)
    count = len(store.batches)
    monitor.finish()
    assert count <= 5 and len(store.batches) == count
    assert 0.0 not in [value for value in store.column("process/memory_rss_megabytes") if value is not None]


def test_defect_7_what_cannot_be_read_is_left_out(monkeypatch):
    monitor = ProcessMetricsMonitor()
    found = monitor._watch().collect()
    monkeypatch.setattr(proctor.Monitor, "collect", lambda self: proctor.Snapshot(
        found.time, 1.0, 1.0, {"mem.rss": 0, "io.read": 1}, (2.0 ** 20, 0.0), found.processes))
    known = monitor.collect_once()
    assert known["memory_rss_megabytes"] == 1.0 and "memory_uss_megabytes" not in known and "num_fds" not in known


def test_defect_7_the_share_of_memory_is_of_the_sum_of_rss(tmp_path):
    """Pages that processes share count in each of them, as doc/migrate.md says; private memory has them nowhere."""
    run_script(PYTHONS["debian"], """
        import os
        from proctor.compat.stouputils import ProcessMetricsMonitor
        memory = bytearray(b"1") * (60 << 20)
        held, hold = os.pipe()
        for _ in range(2):
            if os.fork() == 0:
                os.close(hold)
                os.read(held, 1)
                os._exit(0)
        found = ProcessMetricsMonitor(max_memory_megabytes=100).collect_once()
        assert found["memory_rss_megabytes"] > 180 > 60 > found["memory_uss_megabytes"], found
        assert abs(found["memory_usage_percentage"] - found["memory_rss_megabytes"]) < 0.001, found
    """, tmp_path)


def test_defect_8_limits_of_the_process_are_the_default(tmp_path):
    run_script(PYTHONS["debian"], """
        import os
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        from proctor.compat.stouputils import ProcessMetricsMonitor
        assert ProcessMetricsMonitor().max_cpu_count == 1.0
        assert ProcessMetricsMonitor(max_cpu_count=8.0, max_memory_megabytes=1024.0).max_cpu_count == 8.0
    """, tmp_path)


@pytest.mark.parametrize("controller, values, name, limit", [
    ("memory", [("memory.max", "536870912"), ("memory.limit_in_bytes", "536870912")], "max_memory_megabytes", 512.0),
    ("cpu", [("cpu.max", "50000 100000"), ("cpu.cfs_quota_us", "50000")], "max_cpu_count", 0.5)])
def test_defect_8_and_so_are_those_of_its_cgroup(tmp_path, group, controller, values, name, limit):  # noqa: F811
    inside = group(controller, values)
    run_script(PYTHONS["debian"], """
        import sys
        from proctor.compat.stouputils import ProcessMetricsMonitor
        monitor = ProcessMetricsMonitor()
        assert getattr(monitor, sys.argv[1]) == float(sys.argv[2]), vars(monitor)
        found = monitor.collect_once()
        share = 100 * found["memory_rss_megabytes"] / monitor.max_memory_megabytes
        assert abs(found["memory_usage_percentage"] - share) < 0.001, found
    """, tmp_path, name, limit, before=["sh", "-c", f'echo $$ > {inside}/cgroup.procs && exec "$@"', "sh"])


def test_defect_9_a_sum_of_some_processes_is_none(tmp_path):
    """Where one process of the tree may not be read, and the others may, what depends on it is left out. The original
    adds up what it has until then."""
    if os.getuid() != 0:
        skip_visibly("only root can leave a child behind that it may not read")
    run_script(PYTHONS["debian"], """
        import ctypes, os, subprocess
        from proctor.compat.stouputils import ProcessMetricsMonitor
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)  # it stays root's
        os.setresuid(65534, 65534, 65534)
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: we may read ourselves
        memory = bytearray(b"1") * (60 << 20)
        alone = ProcessMetricsMonitor(children=False).collect_once()
        assert len(alone) == 9, alone
        monitor = ProcessMetricsMonitor()
        found = monitor.collect_once()
        missing = set(alone) - set(found) - {"num_fds"}
        assert missing == {"memory_uss_megabytes", "io_read_megabytes", "io_write_megabytes"}, found
        # From Linux 6.2 on everybody may know how many descriptors there are.
        assert "num_fds" not in found or found["num_fds"] >= alone["num_fds"] + 3, (alone, found)
        assert found["num_threads"] == 2 and found["memory_rss_megabytes"] > alone["memory_rss_megabytes"], found
        child.stdin.close()
        child.wait()
        assert len(monitor.collect_once()) == 9
    """, tmp_path)


def test_defect_9_what_a_server_does_not_take_is_sent_later(store, caplog):
    monitor = ProcessMetricsMonitor()
    monitor.run_id = "r1"
    store.down = True
    monitor.publish({"num_fds": 1.0})
    assert monitor.step == 0 and "wait" in caplog.text
    time.sleep(0.02)
    store.down = False
    monitor.publish({"num_fds": 2.0})
    assert store.column("process/num_fds") == [1.0, 2.0] and [b[3] for b in store.batches] == [0, 1]
    assert store.batches[0][2] < store.batches[1][2]  # each with its own time


def test_defect_10_counters_are_not_averaged_and_the_rest_is(store):
    monitor = ProcessMetricsMonitor(sampling_interval=0.1, samples_before_logging=100)
    monitor.start()
    time.sleep(0.35)
    monitor.finish()  # what was buffered is logged
    assert len(store.batches) == 1
    assert monitor.aggregate([{"io_read_megabytes": 1.0, "num_fds": 1.0}, {"io_read_megabytes": 3.0, "num_fds": 2.0},
                              {"num_fds": 3.0}]) == {"io_read_megabytes": 3.0, "num_fds": 2.0}
    assert monitor.aggregate([]) == {}


def test_defect_10_a_descriptor_counts_in_each_process_that_has_it(tmp_path):
    """It is a sum over processes, as it was and as doc/migrate.md says."""
    run_script(PYTHONS["debian"], """
        import os, subprocess
        from proctor.compat.stouputils import ProcessMetricsMonitor
        pipes = [end for _ in range(50) for end in os.pipe()]
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=pipes)
        alone = ProcessMetricsMonitor(children=False).collect_once()["num_fds"]
        assert 100 <= ProcessMetricsMonitor().collect_once()["num_fds"] - alone <= 110, alone
        child.stdin.close()
        child.wait()
    """, tmp_path)


def test_defect_11_a_process_that_is_not_there_is_said(store, caplog):
    with caplog.at_level(logging.WARNING):
        monitor = ProcessMetricsMonitor(2 ** 22 + 1)
        monitor.start()
        assert monitor.thread is None and "does not start" in caplog.text and monitor.collect_once() == {}
        caplog.clear()
        store.run = None
        ProcessMetricsMonitor().start()
        assert "no active MLflow run" in caplog.text
    monitor.finish()


def test_defect_12_psutil_has_no_part_in_it(python):
    """So that it can neither warn of a call nor drop it."""
    python("""
        import sys
        sys.modules["psutil"] = None  # who imports it fails
        from proctor.compat.stouputils import ProcessMetricsMonitor
        assert len(ProcessMetricsMonitor().collect_once()) == 9
    """, flags=["-W", "error"])


def test_it_is_an_asynchronous_context_manager_too(store):
    import asyncio

    async def main():
        async with ProcessMetricsMonitor(sampling_interval=5) as monitor:
            assert monitor.thread is not None
    asyncio.run(main())
    assert len(store.batches) == 2
