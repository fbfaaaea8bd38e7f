# SPDX-License-Identifier: Apache-2.0
"""The active MLflow run: samples while it runs, tags and the report at its end.

    with mlflow.start_run():
        with proctor.integrations.mlflow.ActiveRun(interval=5):
            train()

It goes through MLflow's own client, so that any store will do. `proctor run --mlflow` needs no Python.
"""
from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from importlib import import_module
from types import TracebackType
from typing import Any, Optional

from proctor import Monitor, Snapshot, Summary
from proctor.compat._folder import folder_of

from ._named import process_values, system_values

__all__ = ["ActiveRun"]

logger = logging.getLogger(__name__)

_BATCH_MOST = 1000
"""Metrics that MLflow takes in one request."""
_WAITING_MOST = 100_000
"""Metrics that are kept for a store that does not answer."""

_TAGS = (("proctor.cpu_time_seconds", "cpu.time", "total"), ("proctor.mem_pss_peak_bytes", "mem.pss", "peak"),
         ("proctor.mem_rss_peak_bytes", "mem.rss.peak", "peak"))
"""The names that `proctor run --mlflow` has, so that runs of both stand in one column."""


def _exact(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


class ActiveRun:
    """Logs this process and its children to the active MLflow run.

    interval   seconds between samples; `flush` seconds between requests, each with all that is new
    system     the machine and its GPUs, too, under the names of MLflow's own monitor
    report     the HTML report as an artifact at the end

    Other keywords are those of `proctor.Monitor`. After the end `summary` has what was used. Nothing that goes
    wrong with logging ends the run.

        >>> ActiveRun().start()
        Traceback (most recent call last):
        RuntimeError: there is no active MLflow run
    """

    def __init__(self, interval: float = 5.0, prefix: str = "process/", system: bool = True, report: bool = True,
                 flush: float = 10.0, **options: Any) -> None:
        self.summary: Optional[Summary] = None
        self.run_id: Optional[str] = None
        self._interval, self._prefix, self._system, self._flush = interval, prefix, system, flush
        self._report = report
        self._options = options
        self._client: Any = None
        self._monitor: Optional[Monitor] = None
        self._folder = ""
        self._lock = threading.Lock()
        self._waiting: list[Any] = []
        self._step = 0
        self._sent = 0.0

    def start(self) -> ActiveRun:
        """RuntimeError where there is no active run."""
        mlflow: Any = import_module("mlflow")
        active = mlflow.active_run()
        if active is None:
            raise RuntimeError("there is no active MLflow run")
        self.run_id = str(active.info.run_id)
        self._client = mlflow.MlflowClient()
        output = None
        if self._report:
            self._folder = folder_of(self, "proctor-mlflow-")
            output = os.path.join(self._folder, "run.proctor")
        self._sent = time.monotonic()
        self._monitor = Monitor(**{"interval": self._interval, "output": output, "on_sample": self._arrived,
                                   "devices": self._system, **self._options}).start()
        return self

    def stop(self) -> None:
        """Logs what is left, the tags and the report."""
        monitor, self._monitor = self._monitor, None
        if monitor is None:
            return
        self.summary = monitor.stop()
        self._send()
        for what in (self._tag, self._attach):
            try:
                what(monitor)
            except Exception as e:  # whatever the client raises
                logger.warning("MLflow has not taken all of the run: %s", e)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> ActiveRun:
        return self.start()

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()

    def _arrived(self, snapshot: Snapshot) -> None:
        values = process_values(snapshot, self._prefix)
        if self._system:
            values.update(system_values(snapshot))
        metric: Any = import_module("mlflow.entities").Metric
        when = snapshot.time // 1_000_000
        with self._lock:
            self._waiting += [metric(name, value, when, self._step) for name, value in values.items()]
            del self._waiting[:-_WAITING_MOST]
        self._step += 1
        if time.monotonic() - self._sent >= self._flush:
            self._send()

    def _send(self) -> None:
        """What does not get there stays for the next time."""
        self._sent = time.monotonic()
        with self._lock:
            while self._waiting:
                try:
                    self._client.log_batch(self.run_id, metrics=self._waiting[:_BATCH_MOST])
                except Exception as e:  # whatever the client raises
                    logger.warning("MLflow has not taken %d metrics, they wait: %s", len(self._waiting), e)
                    return
                del self._waiting[:_BATCH_MOST]

    def _tag(self, monitor: Monitor) -> None:
        if self.summary is None:
            return
        tags = {"proctor.run": self.summary.id, "proctor.duration_seconds": _exact(self.summary.duration)}
        for name, key, figure in _TAGS:
            value = getattr(self.summary[key], figure) if key in self.summary else None
            if value is not None:
                tags[name] = _exact(value)
        for name, text in tags.items():
            self._client.set_tag(self.run_id, name, text)

    def _attach(self, monitor: Monitor) -> None:
        if not self._folder:
            return
        path = os.path.join(self._folder, "proctor.html")
        monitor.report(path)
        self._client.log_artifact(self.run_id, path)
