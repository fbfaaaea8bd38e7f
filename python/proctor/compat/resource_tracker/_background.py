# SPDX-License-Identifier: Apache-2.0
"""`ResourceTracker`: a native thread of this process samples, and leaves its rows in a file."""
from __future__ import annotations

import base64
import gzip
import json
import logging
import math
import os
import shutil
import tempfile
import threading
import time
import zlib
from statistics import mean
from types import TracebackType
from typing import Any, Optional, Union

from proctor import Error, Monitor, Run, Summary, version
from proctor.compat._folder import folder_of
from proctor.compat._watch import watch

from . import _page, _table
from .cloud_info import get_cloud_info
from .column_maps import SERVER_ALLOCATION_CHECKS
from .helpers import aggregate_stats
from .report import Report, round_memory
from .sentinel_api import RunStatus
from .server_info import get_server_info
from .tiny_data_frame import StatSpec, TinyDataFrame

logger = logging.getLogger(__name__)

_MIB = 1024 * 1024
_MARGIN = 1.2
_RUN_MOST = 16 * _MIB
"""A run that is larger, packed, does not go into snapshots: their report is then drawn from the rows."""


def _span(stamps: list[float]) -> float:
    return max(stamps) - min(stamps)


STATS = [
    *(StatSpec(f"process_{name}", figure, round=2) for name in ("cpu_usage", "memory_mib", "gpu_usage", "gpu_vram_mib",
                                                                "gpu_utilized") for figure in (mean, max)),
    StatSpec("system_disk_space_used_gb", max, round=2),
    StatSpec("system_net_recv_bytes", sum),
    StatSpec("system_net_sent_bytes", sum),
    StatSpec("timestamp", _span, agg_name="duration"),
]


class ResourceTracker:
    """Tracks a process with its children and the machine, without blocking.

    Nothing is forked: `method` is accepted and not needed. `process_metrics` and `system_metrics` can be read at
    any time. A token of the vendor's service is not used: nothing is sent anywhere.

        >>> with ResourceTracker(interval=0.1, discover_server=False) as tracker:
        ...     tracker.wait_for_samples(n=2)
        >>> ResourceTracker.loads(tracker.dumps()).n_samples == tracker.n_samples
        True
    """

    def __init__(self, pid: Optional[int] = None, children: bool = True, interval: float = 1,
                 method: Optional[str] = None, autostart: bool = False, track_processes: bool = True,
                 track_system: bool = True, discover_server: bool = True, discover_cloud: bool = True,
                 sentinel_token: Optional[str] = None, upload_interval: int = 60,
                 streaming_metadata: Optional[dict[str, Any]] = None) -> None:
        self.pid = os.getpid() if pid is None else pid
        self.children = children
        self.interval = interval
        self.method = method
        self.autostart = autostart
        self.trackers = ["process_tracker"] * track_processes + ["system_tracker"] * track_system
        self.discover_server = discover_server
        self.discover_cloud = discover_cloud
        self.start_time: Optional[float] = None
        self.stop_time: Optional[float] = None
        self.exit_code: Optional[int] = None
        self.run_status: Optional[RunStatus] = None
        self._server_info: Optional[dict[str, Any]] = None
        self._cloud_info: Optional[dict[str, Any]] = None
        self._folder = ""
        self._monitor: Optional[Monitor] = None
        self._discovery: Optional[threading.Thread] = None
        self._summary: Optional[Summary] = None
        self._growing: Optional[_table.Growing] = None
        self._stored: dict[str, TinyDataFrame] = {}
        if sentinel_token or os.environ.get("SENTINEL_API_TOKEN"):
            logger.warning("Samples are not sent to the Sentinel service")
        if autostart:
            self.start()

    # --- recording

    @property
    def _path(self) -> str:
        return os.path.join(self._folder, "run.proctor")

    def start(self) -> None:
        """Begins. A tracker runs once."""
        if self.running:
            raise RuntimeError("Resource tracker already running, cannot start again.")
        if self.stop_time is not None:
            raise RuntimeError("Resource tracker already stopped: make another one.")
        if not self.trackers:
            raise RuntimeError("Neither processes nor the system are to be tracked.")
        table = "combined" if len(self.trackers) == 2 else self.trackers[0].partition("_")[0]
        self._folder = folder_of(self, "proctor-resource-tracker-")
        csv = os.path.join(self._folder, "samples.csv")
        target: dict[str, Any] = {"system": True} if table == "system" else {"pid": self.pid}
        self._monitor = watch(**target, children=self.children, interval=self.interval, csv=csv, output=self._path,
                                dialect="resource-tracker", table=table)
        self._growing = _table.Growing(csv)
        self._monitor.start()
        self.start_time = time.time()
        self._cloud_info = get_cloud_info() if self.discover_cloud else None
        if self.discover_server:
            # A GPU's driver may take its time.
            self._discovery = threading.Thread(target=self._discover, name="proctor-server-info", daemon=True)
            self._discovery.start()

    def _discover(self) -> None:
        try:
            self._server_info = get_server_info()
        except Exception:
            logger.warning("What the server has is not known", exc_info=True)

    def stop(self, exit_code: int = 0, run_status: RunStatus = RunStatus.finished) -> None:
        """Takes the last sample and ends."""
        if self._monitor is None or not self.running:
            return
        self._summary = self._monitor.stop()
        self.stop_time = time.time()
        if self._discovery is not None:
            self._discovery.join()
        self.exit_code, self.run_status = exit_code, run_status

    def cleanup(self) -> None:
        """Ends, and removes what it has on disk; what was read stays."""
        self.stop()
        self._stored = {"process": self.process_metrics, "system": self.system_metrics}
        self._growing = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> ResourceTracker:
        self.autostart = True
        self.start()
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if kind is not None:
            self.stop(exit_code=1, run_status=RunStatus.failed)
        else:
            self.stop()

    @property
    def running(self) -> bool:
        """Whether it was started and has not been stopped."""
        return self.start_time is not None and self.stop_time is None

    def wait_for_samples(self, n: int = 1, timeout: float = 5) -> None:
        """Waits until there are so many; RuntimeError where they do not come."""
        end = time.monotonic() + timeout
        while self.n_samples < n:
            if not self.running:
                raise RuntimeError(f"Resource tracker has ended with {self.n_samples} sample(s) of {n}")
            if time.monotonic() > end:
                raise RuntimeError(f"Timed out waiting for resource tracker to collect {n} samples")
            time.sleep(self.interval / 10)

    # --- what was measured

    def _metrics(self, kind: str) -> TinyDataFrame:
        if kind in self._stored:
            return self._stored[kind][:]  # type: ignore[no-any-return]
        if self._growing is None or f"{kind}_tracker" not in self.trackers:
            return TinyDataFrame([])
        columns = self._growing.columns()
        if len(self.trackers) == 2:
            columns = _table.part(columns, f"{kind}_")
        return _table.frame(columns, self.children)

    @property
    def process_metrics(self) -> TinyDataFrame:
        """Of the process and its children, a row for each interval."""
        return self._metrics("process")

    @property
    def system_metrics(self) -> TinyDataFrame:
        """Of the machine."""
        return self._metrics("system")

    @property
    def n_samples(self) -> int:
        """Rows so far, of what is tracked."""
        return min((len(self._metrics(name.partition("_")[0])) for name in self.trackers), default=0)

    def get_combined_metrics(self, bytes: bool = False, human_names: bool = False, system_prefix: Optional[str] = None,
                             process_prefix: Optional[str] = None, offset: Optional[int] = None) -> TinyDataFrame:
        """Both side by side, by time. `bytes`: sizes in bytes. `offset`: without so many rows at the start."""
        system, process = self.system_metrics, self.process_metrics
        if bytes:
            system, process = _table.in_bytes(system), _table.in_bytes(process)
        found = _table.combined(system, process, self.interval, human_names, system_prefix, process_prefix)
        return found[offset:] if offset and len(found) else found

    def stats(self, specs: Optional[list[StatSpec]] = None) -> dict[str, dict[str, Any]]:
        """Figures of the whole run; by default `STATS`, of those columns that there are."""
        if self.n_samples == 0:
            raise RuntimeError("No metrics collected (yet)")
        made = self.get_combined_metrics()
        found = made.stats([s for s in STATS if s.column in made.columns] if specs is None else specs)
        if "duration" in found.get("timestamp", {}):
            found["timestamp"]["duration"] += self.interval  # a row is of the interval before it
        return found

    @property
    def server_info(self) -> Optional[dict[str, Any]]:
        """What the machine has, and `allocation`: "dedicated", "shared", or None before there are samples of both."""
        if self._server_info is None:
            return None
        return {**self._server_info, "allocation": self._allocation()}

    def _allocation(self) -> Optional[str]:
        process, system = self.process_metrics, self.system_metrics
        if not len(process) or not len(system):
            return None
        for check in SERVER_ALLOCATION_CHECKS:
            own = [v for v in process[str(check["process_column"])] if v is not None]
            all_of_it = [v for v in system[str(check["system_column"])] if v is not None]
            if not own or not all_of_it:
                continue
            least = max(mean(own) * float(str(check["percent"])), mean(own) + float(str(check["absolute"])))
            if mean(all_of_it) > least:
                return "shared"
        return "dedicated"

    @property
    def cloud_info(self) -> Optional[dict[str, Any]]:
        """Whose cloud this is, as `get_cloud_info` has it; None where it was not to be found out."""
        return self._cloud_info

    @property
    def sentinel_result(self) -> None:
        """Nothing is sent."""
        return None

    # --- stored

    def snapshot(self) -> dict[str, Any]:
        """Everything, to be stored as JSON. Besides what the original has there is the run itself, packed."""
        if self.start_time is None:
            raise RuntimeError("Resource tracker has not been started")
        until = self.stop_time or time.time()
        return {
            "metadata": {
                "version": 1,
                "resource_tracker": {"version": version(), "implementation": "proctor"},
                "pid": self.pid, "children": self.children, "interval": self.interval, "method": self.method,
                "autostart": self.autostart, "track_processes": "process_tracker" in self.trackers,
                "track_system": "system_tracker" in self.trackers, "discover_server": self.discover_server,
                "discover_cloud": self.discover_cloud, "start_time": self.start_time, "stop_time": until,
                "duration": round(until - self.start_time + self.interval, 2),
            },
            "server_info": self.server_info,
            "cloud_info": self.cloud_info,
            "process_metrics": self.process_metrics.to_dict(),
            "system_metrics": self.system_metrics.to_dict(),
            "proctor_run": self._packed(),
        }

    def _packed(self) -> Optional[str]:
        if self.stop_time is None or not os.path.exists(self._path):
            return None
        with open(self._path, "rb") as file:
            packed = zlib.compress(file.read())
        return base64.b64encode(packed).decode() if len(packed) <= _RUN_MOST else None

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> ResourceTracker:
        """One that has ended, with what was measured: by this class or by the original."""
        about = snapshot["metadata"]
        tracker = cls(**{name: about[name] for name in ("pid", "children", "interval", "method", "track_processes",
                                                        "track_system", "discover_server", "discover_cloud")})
        tracker.start_time, tracker.stop_time = about["start_time"], about["stop_time"]
        server = snapshot.get("server_info")
        tracker._server_info = {k: v for k, v in server.items() if k != "allocation"} if server else None
        tracker._cloud_info = snapshot.get("cloud_info")
        tracker._stored = {kind: _stored(snapshot[f"{kind}_metrics"]) for kind in ("process", "system")}
        if snapshot.get("proctor_run"):
            tracker._folder = folder_of(tracker, "proctor-resource-tracker-")
            with open(tracker._path, "wb") as file:
                file.write(zlib.decompress(base64.b64decode(snapshot["proctor_run"])))
            with Run.open(tracker._path) as run:
                tracker._summary = run.summary
        return tracker

    def dumps(self) -> str:
        """The snapshot as JSON."""
        return json.dumps(self.snapshot())

    @classmethod
    def loads(cls, s: str) -> ResourceTracker:
        """One that has ended, of what `dumps` gave."""
        return cls.from_snapshot(json.loads(s))

    def dump(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """As JSON, packed by gzip."""
        with gzip.open(file, "wb") as out:
            out.write(self.dumps().encode())

    @classmethod
    def load(cls, file: Union[str, "os.PathLike[str]"]) -> ResourceTracker:
        """The same of a file that `dump` wrote."""
        with gzip.open(file, "rb") as stored:
            return cls.loads(stored.read().decode())

    # --- what follows

    def _peak_mib(self, sampled: float) -> float:
        """Of memory: the highest sum of PSS, or what the largest process had at its own peak, between samples
        perhaps, which the kernel remembers."""
        commands = self._summary.data.get("processes", {}).get("commands", ()) if self._summary else ()
        marks = [command.get("mem.rss.peak") or 0.0 for command in commands]
        return max([sampled, *(mark / _MIB for mark in marks)])

    def recommend_resources(self, historical_stats: Optional[list[dict[str, Any]]] = None) -> dict[str, int]:
        """What to ask for next time: `cpu` cores for the mean use, `memory` and `vram` (MiB) for the peak and a
        fifth, `gpu` for the most that were in use."""
        self.wait_for_samples(n=1, timeout=self.interval * 5)
        if "process_tracker" not in self.trackers:
            raise RuntimeError("Processes were not tracked: there is nothing to recommend")
        stats = self.stats()
        memory = stats.setdefault("process_memory_mib", {})
        memory["max"] = self._peak_mib(memory.get("max", 0.0))
        if historical_stats:
            stats = aggregate_stats([stats, *historical_stats])

        def figure(column: str, name: str) -> float:
            return float(stats.get(f"process_{column}", {}).get(name, 0.0))

        vram = figure("gpu_vram_mib", "max")
        return {
            # A tenth of a core above a whole number is not worth another one.
            "cpu": max(1, math.ceil(round(figure("cpu_usage", "mean"), 1))),
            "memory": round_memory(figure("memory_mib", "max") * _MARGIN),
            "gpu": max(1, math.ceil(figure("gpu_utilized", "max"))) if figure("gpu_usage", "max") else 0,
            "vram": round_memory(vram * _MARGIN) if vram else 0,
        }

    def recommend_server(self, **kwargs: Any) -> dict[str, Any]:
        """Not offered: the list of servers and prices is a service of the original's vendor."""
        raise NotImplementedError("the cheapest server is not looked up: recommend_resources() says what it must have")

    def report(self, integration: str = "standalone", historical_stats: Optional[list[dict[str, Any]]] = None,
               status_failed: bool = False, integration_version: Optional[str] = None) -> Report:
        """The report of the run as a page that needs no network, with what is recommended at its end."""
        history = historical_stats or []
        inner = _page.section(self.recommend_resources(history), self.stats(), self.server_info, self.cloud_info,
                              history, status_failed if self.stop_time else None,
                              " ".join(filter(None, (integration, integration_version))))
        whole = self._report_of_run()
        return Report(_page.into(whole, inner) if whole else _page.page(inner, self.get_combined_metrics()))

    def _report_of_run(self) -> str:
        """Nothing where there is no run, or it has only just begun."""
        if not os.path.exists(self._path):
            return ""
        with tempfile.TemporaryDirectory(prefix="proctor-report-") as folder:
            path = os.path.join(folder, "report.html")
            try:
                with Run.open(self._path) as run:
                    run.report(path)
            except Error:
                if not self.running:
                    raise
                return ""
            with open(path, encoding="utf-8") as file:
                return file.read()


def _stored(rows: list[dict[str, Any]]) -> TinyDataFrame:
    """The original has an empty text for what is not known."""
    return TinyDataFrame([{name: None if cell == "" else cell for name, cell in row.items()} for row in rows])
