# SPDX-License-Identifier: Apache-2.0
"""`oasislmf.execution.resource_monitor` over libproctor: `ResourceMonitor`.

Watched is what the script has started, not all that runs on the machine. A tool is a process whose
program or script has its name; who only mentions it is none.
"""
from __future__ import annotations

import logging
import os
import shutil
import threading
from typing import Optional, Union

from proctor import Monitor
from proctor.compat._folder import folder_of
from proctor.compat._watch import watch

from . import _plots, _report
from ._plots import TOOL_COLORS
from ._rows import Row, compute_stats, load, peak_total_uss

__all__ = ["CSV_HEADER", "MONITORED_TOOLS", "ResourceMonitor", "TOOL_COLORS"]

logger = logging.getLogger(__name__)

MONITORED_TOOLS = frozenset(TOOL_COLORS)
CSV_HEADER = ["timestamp", "tool", "pid", "cpu_pct", "cpu_user_s", "cpu_sys_s", "rss_kb", "uss_kb", "pss_kb"]
_NAME = "resource_monitor.csv"
_MIB = 1024 * 1024


class ResourceMonitor:
    """Records the pytools that a kernel script runs into `resource_monitor.csv`, then writes a report.

    The file is made when the first tool is seen: the script clears its folder when it begins.
    `log_root`: the report is of the files of all folders in it. Nothing that goes wrong here touches the run.

        >>> import subprocess, tempfile
        >>> monitor = ResourceMonitor(tempfile.mkdtemp())
        >>> script = subprocess.Popen(["sleep", "0.1"])
        >>> monitor.start(script.pid)
        >>> status = script.wait()
        >>> monitor.stop()
        >>> os.listdir(monitor.output_dir)     # no tool was seen
        []
    """

    def __init__(self, output_dir: Union[str, "os.PathLike[str]"], poll_interval: float = 1.0,
                 generate_report: bool = True, log_root: Optional[Union[str, "os.PathLike[str]"]] = None) -> None:
        self.output_dir = os.fspath(output_dir)
        self.poll_interval = max(0.1, float(poll_interval))
        self.generate_report = generate_report
        self.log_root = os.fspath(log_root) if log_root is not None else None
        self._csv_path = os.path.join(self.output_dir, _NAME)
        self._stop_event = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._monitor: Optional[Monitor] = None
        self._scratch = ""
        self._read = 0
        self._began = False
        self._cpu_seconds: Optional[float] = None

    def start(self, bash_pid: int) -> None:
        """Watch what this process has started and will start."""
        if self._thread is not None:
            logger.warning("Resource monitor is running already")
            return
        try:
            self._begin(bash_pid)
        except Exception:
            logger.warning("Resource monitor could not start", exc_info=True)
            self._end()
            return
        self._stop_event.clear()
        self._thread = threading.Thread(target=self._follow, name="ResourceMonitor", daemon=True)
        self._thread.start()
        logger.info("Resource monitor started (pid=%s, interval=%.1fs, csv=%s)", bash_pid, self.poll_interval,
                    self._csv_path)

    def stop(self) -> None:
        """End, and write the report."""
        if self._thread is None:
            return
        self._stop_event.set()
        self._thread.join()
        self._thread = None
        self._end()
        logger.info("Resource monitor stopped, csv=%s", self._csv_path if self._began else "none, no tool was seen")
        if self.generate_report:
            try:
                self._generate_report()
            except Exception:
                logger.warning("Resource monitor report failed", exc_info=True)

    # --- recording: the library writes a row per process; those of tools go into the file

    def _begin(self, pid: int) -> None:
        self._scratch = folder_of(self, "proctor-oasislmf-")
        self._read = 0
        self._monitor = watch(pid=pid, interval=self.poll_interval, csv=os.path.join(self._scratch, _NAME),
                                dialect="oasislmf", match=[f"{tool}=^{tool}$" for tool in sorted(MONITORED_TOOLS)])
        self._monitor.start()

    def _end(self) -> None:
        monitor, self._monitor = self._monitor, None
        try:
            if monitor is not None:
                monitor.stop()
                self._cpu_seconds = monitor.summary["cpu.time"].total
                self._take_over()
        except Exception:
            logger.warning("Resource monitor could not end its record", exc_info=True)
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _follow(self) -> None:
        while not self._stop_event.wait(self.poll_interval):
            try:
                self._take_over()
            except Exception:
                logger.warning("Resource monitor cannot write %s", self._csv_path, exc_info=True)

    def _take_over(self) -> None:
        """New rows of tools into the file; half a line waits for its end."""
        with open(os.path.join(self._scratch, _NAME), "rb") as file:
            file.seek(self._read)
            data = file.read()
        data = data[:data.rfind(b"\n") + 1]
        lines = data.splitlines(keepends=True)
        rows = [line for line in lines if _tool(line) in MONITORED_TOOLS]
        if rows:
            os.makedirs(self.output_dir, exist_ok=True)
            # What an earlier run left is not this run's; what this one has written is.
            with open(self._csv_path, "ab" if self._began and os.path.exists(self._csv_path) else "wb") as out:
                if not out.tell():
                    out.write(",".join(CSV_HEADER).encode() + b"\r\n")
                out.writelines(rows)
            self._began = True
        self._read += len(data)

    # --- the report

    def _find_all_csvs(self) -> list[str]:
        if not self.log_root or not os.path.isdir(self.log_root):
            logger.info("Resource monitor: no folder %s", self.log_root)
            return []
        with os.scandir(self.log_root) as entries:
            folders = sorted(entry.path for entry in entries if entry.is_dir())
        return [path for path in (os.path.join(folder, _NAME) for folder in folders) if os.path.isfile(path)]

    def _generate_report(self) -> None:
        paths = self._find_all_csvs() if self.log_root else [p for p in [self._csv_path] if os.path.isfile(p)]
        rows: list[Row] = [row for source, path in enumerate(paths) for row in load(path, source)]
        if not rows:
            logger.info("Resource monitor: nothing was recorded, no report")
            return
        root = self.log_root or self.output_dir
        folder = os.path.join(root, "resource_report")
        os.makedirs(folder, exist_ok=True)
        memory_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _MIB
        try:
            plots = _plots.generate(rows, folder, memory_mb)
        except ImportError:
            logger.warning("matplotlib is not installed: the report of the resource monitor has no plots")
            plots = {}
        path = _report.write(os.path.join(root, _NAME), folder, compute_stats(rows), plots, len(rows), memory_mb,
                             peak_total_uss(rows), None if self.log_root else self._cpu_seconds)
        logger.info("Resource monitor report: %s (%d samples, %d plots)", path, len(rows), len(plots))


def _tool(line: bytes) -> str:
    """The name in a row; that of a tool needs no quotes."""
    cells = line.split(b",", 2)
    return cells[1].decode(errors="replace") if len(cells) == 3 else ""
