# SPDX-License-Identifier: Apache-2.0
"""`stouputils.mlflow.process_metrics_monitor` over libproctor: `ProcessMetricsMonitor`."""
from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from types import TracebackType
from typing import Any, Optional

from proctor import Error, Monitor, Process, Snapshot
from proctor.compat._watch import is_complete, watch

__all__ = ["ProcessMetricsMonitor"]

logger = logging.getLogger(__name__)

_MIB = 1024.0 * 1024.0
# Gauges of the tree: theirs, ours, and what one of theirs is in ours.
_GAUGES = (
    ("memory_rss_megabytes", "mem.rss", _MIB),
    ("memory_vms_megabytes", "mem.vms", _MIB),
    ("memory_uss_megabytes", "mem.uss", _MIB),
    ("num_threads", "threads", 1.0),
    ("num_fds", "fds", 1.0),
)
# Since the processes began, as theirs: what was before the record is added.
_COUNTERS = (("io_read_megabytes", "io.read"), ("io_write_megabytes", "io.write"))
_SELECTED = "cpu.*,mem.rss,mem.vms,mem.uss,mem.pss,io.read,io.write,threads,fds,procs"
_WAITING_MOST = 1000
"""Sets of metrics that are kept for a server that does not answer."""


class ProcessMetricsMonitor:
    """Logs what a process and its children use to the active MLflow run, under the nine names of the original.

    `cpu_usage_percentage` is of `max_cpu_count` cores and `memory_usage_percentage` of
    `max_memory_megabytes`; by default these are what the process may use: the limits of its cgroup, its
    affinity, else the machine. What cannot be read of each process is left out: it is never 0, and no sum of some.

        >>> monitor = ProcessMetricsMonitor(sampling_interval=1.0)
        >>> sorted(monitor.collect_once())[:2]
        ['cpu_usage_percentage', 'io_read_megabytes']
    """

    def __init__(self, pid: Optional[int] = None, children: bool = True, sampling_interval: float = 10.0,
                 samples_before_logging: int = 1, prefix: str = "process/", verbose: bool = False,
                 max_memory_megabytes: Optional[float] = None, max_cpu_count: Optional[float] = None) -> None:
        self.pid: int = pid or os.getpid()
        self.children: bool = children
        self.sampling_interval: float = sampling_interval
        self.samples_before_logging: int = max(1, samples_before_logging)
        self.prefix: str = prefix
        self.verbose: bool = verbose
        limits = _limits(self.pid) if max_memory_megabytes is None or max_cpu_count is None else (0.0, 0.0)
        self.max_memory_megabytes: float = limits[0] if max_memory_megabytes is None else max_memory_megabytes
        self.max_cpu_count: float = limits[1] if max_cpu_count is None else max_cpu_count
        self.run_id: Optional[str] = None
        self.shutdown_event: threading.Event = threading.Event()
        self.thread: Optional[threading.Thread] = None
        self.step: int = 0
        self.samples: list[dict[str, float]] = []
        self.processes: dict[int, Process] = {}
        self._monitor: Optional[Monitor] = None
        self._before: Optional[dict[str, float]] = None
        self._ended = False
        self._waiting: list[tuple[dict[str, float], int]] = []  # with the time in milliseconds

    def __enter__(self) -> ProcessMetricsMonitor:
        self.start()
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.finish()

    async def __aenter__(self) -> ProcessMetricsMonitor:
        return self.__enter__()

    async def __aexit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        self.__exit__(kind, value, trace)

    def start(self) -> None:
        """Logs from a thread until `finish`. Without the process, or an active run, it says so and does nothing."""
        if self.thread is not None:
            logger.warning("ProcessMetricsMonitor is running already")
            return
        try:
            self._watch()
        except Error as e:
            logger.warning("ProcessMetricsMonitor does not start: PID %d: %s", self.pid, e.strerror)
            return
        active: Any = import_module("mlflow").active_run()
        if active is None:
            logger.warning("ProcessMetricsMonitor does not start: there is no active MLflow run")
            return
        self.run_id = str(active.info.run_id)
        self.shutdown_event.clear()
        self.thread = threading.Thread(target=self.monitor_loop, daemon=True, name="ProcessMetricsMonitor")
        self.thread.start()
        if self.verbose:
            logger.info("Watching PID %d (children=%s)", self.pid, self.children)

    def finish(self) -> None:
        """Takes a last sample and logs what is left."""
        if self.thread is None:
            return
        self.shutdown_event.set()
        self.thread.join(timeout=self.sampling_interval + 5)
        if self.thread.is_alive():
            logger.warning("The MLflow server has not answered: what is left is not logged")
        else:
            self.flush_remaining()
        self.thread = None
        self._close()
        if self.verbose:
            logger.info("Watched PID %d until now", self.pid)

    def collect_once(self) -> dict[str, float]:
        """What the tree uses now. A process that has ended has its counters, and no more; one that never was,
        nothing."""
        try:
            found = self._look()
        except Error as e:
            if e.errno != errno.ESRCH:
                raise
            self._ended = True
            return {}
        metrics: dict[str, float] = {}
        percent = self._cpu_percent(found)
        if percent is not None and self.max_cpu_count > 0:
            metrics["cpu_usage_percentage"] = percent / self.max_cpu_count
        metrics.update({name: found[key] / scale for name, key, scale in _GAUGES if key in found and is_complete(found, key)})
        if "num_threads" in metrics and self.thread is not None and os.getpid() in self.processes:
            metrics["num_threads"] -= 1  # the one that logs is not the program's
        if "mem.rss" in found and self.max_memory_megabytes > 0:
            metrics["memory_usage_percentage"] = 100.0 * found["mem.rss"] / _MIB / self.max_memory_megabytes
        before = self._before or {}
        metrics.update({name: (found[key] + before.get(key, 0.0)) / _MIB for name, key in _COUNTERS
                        if key in found and is_complete(found, key)})
        return metrics

    def aggregate(self, samples: list[dict[str, float]]) -> dict[str, float]:
        """The mean of gauges and rates; of counters the last.

            >>> m = ProcessMetricsMonitor(max_cpu_count=1, max_memory_megabytes=1)
            >>> m.aggregate([{"num_fds": 1.0, "io_read_megabytes": 1.0}, {"num_fds": 3.0, "io_read_megabytes": 5.0}])
            {'num_fds': 2.0, 'io_read_megabytes': 5.0}
        """
        counters = {name for name, _ in _COUNTERS}
        found: dict[str, float] = {}
        for name in dict.fromkeys(name for sample in samples for name in sample):
            values = [sample[name] for sample in samples if name in sample]
            found[name] = values[-1] if name in counters else sum(values) / len(values)
        return found

    def publish(self, metrics: dict[str, float]) -> None:
        """Logs them with the time of now. What a server does not take is kept and sent with the next."""
        self._waiting.append((metrics, int(time.time() * 1000)))
        if len(self._waiting) > _WAITING_MOST:
            del self._waiting[0]
            logger.warning("A set of process metrics is lost: the server has not answered for a long time")
        self._send()

    def monitor_loop(self) -> None:
        """What the thread does."""
        due = time.monotonic()
        while not self.shutdown_event.is_set() and not self._ended:
            self._sample()
            due = max(due + self.sampling_interval, time.monotonic())
            self.shutdown_event.wait(due - time.monotonic())
        if self.shutdown_event.is_set() and not self._ended:
            self._sample()  # the last part of the run counts, too

    def flush_remaining(self) -> None:
        """Logs samples that wait for others to be averaged with, and what the server has not taken."""
        samples, self.samples = self.samples, []
        if samples:
            self.publish(self.aggregate(samples))
        else:
            self._send()

    # --- inside

    def _send(self) -> None:
        while self._waiting:
            try:
                self._log(*self._waiting[0])
            except Exception as e:  # whatever the client raises
                logger.warning("Could not log process metrics, %d sets wait: %s", len(self._waiting), e)
                return
            del self._waiting[0]
            self.step += 1

    def _sample(self) -> None:
        try:
            sample = self.collect_once()
        except Error as e:
            logger.warning("Could not sample PID %d: %s", self.pid, e.strerror)
            self._ended, sample = True, {}
        if sample:
            self.samples.append(sample)
        if len(self.samples) >= self.samples_before_logging or (self._ended and self.samples):
            samples, self.samples = self.samples, []
            self.publish(self.aggregate(samples))

    def _log(self, metrics: Mapping[str, float], when: int) -> None:
        metric: Any = import_module("mlflow.entities").Metric
        rows = [metric(self.prefix + name, value, when, self.step) for name, value in metrics.items()]
        if rows:
            import_module("mlflow").MlflowClient().log_batch(self.run_id, metrics=rows)

    def _watch(self) -> Monitor:
        if self._monitor is None:
            self._monitor = watch(self.pid, children=self.children, processes=True, no_gpu=True, select=_SELECTED)
        return self._monitor

    def _look(self) -> Snapshot:
        found = self._watch().collect()
        if self._before is None:
            self._before = {key: sum(p.get(key, 0.0) for p in found.processes) for _, key in _COUNTERS}
        self.processes = {process.pid: process for process in found.processes}
        self._ended = not found.processes
        return found

    def _cpu_percent(self, found: Snapshot) -> Optional[float]:
        """Of one core. In the first sample there is nothing to compare with: the mean since the tree began."""
        if "cpu.percent" in found:
            return found["cpu.percent"]
        if not found.processes:
            return None
        spent = sum(p.get("cpu.time", 0.0) for p in found.processes)
        lived = _age(self.pid)
        return 100.0 * spent / lived if lived > 0 else None

    def _close(self) -> None:
        monitor, self._monitor = self._monitor, None
        if monitor is not None:
            monitor.stop()
        self._before = None
        self._ended = False


def _age(pid: int) -> float:
    """Seconds since a process was started; 0 where that is not known."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def _limits(pid: int) -> tuple[float, float]:
    """MiB of memory and number of cores that a process may use; those of the machine where there is no such
    process."""
    try:
        monitor = watch(pid, no_gpu=True, no_pss=True)
    except Error as e:
        if e.errno != errno.ESRCH:
            raise
        monitor = watch(no_gpu=True, no_pss=True)
    monitor.collect()
    monitor.stop()
    limits = monitor.summary.data["limits"]
    return float(limits["memory"]["bytes"]) / _MIB, float(limits["cpu"]["cores"])
