# SPDX-License-Identifier: Apache-2.0
"""`pytyche.diagnostics.run_monitor` over libproctor: `RunLog`, `HWMonitor`, `ResourceSummary`,
`build_resource_summary`, `probe_jax_peak_memory_mb`.

Files have the names and columns that they had. `build_resource_summary` also reads those that the
original left.
"""
from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from statistics import mean
from typing import Any, Optional, Union

from proctor import Monitor
from proctor.compat._watch import watch

__all__ = ["HWMonitor", "ResourceSummary", "RunLog", "build_resource_summary", "probe_jax_peak_memory_mb"]

_AnyPath = Union[str, "os.PathLike[str]"]
_MIB = 1024 * 1024


class RunLog:
    """Phases and events of a run, one JSON object per line.

    With a path each entry is in the file when the call returns: `tail -f` sees it, and a crash loses
    nothing. Without one, as with the original, `write` alone makes the file.

        >>> log = RunLog()
        >>> log.log_phase("load", 1.23456, rows=3)
        >>> log.log_event("done")
        >>> [entry["type"] for entry in log.entries]
        ['phase', 'event']
    """

    def __init__(self, path: Optional[_AnyPath] = None) -> None:
        self._entries: list[dict[str, Any]] = []
        self._path = path

    @property
    def entries(self) -> tuple[dict[str, Any], ...]:
        """What was logged so far."""
        return tuple(self._entries)

    def log_phase(self, name: str, seconds: float, **extra: Any) -> None:
        """A phase has ended, and took so long."""
        self._add({"ts": _now(), "type": "phase", "name": name, "seconds": round(seconds, 3)}, extra)

    def log_event(self, event_type: str, data: Optional[dict[str, Any]] = None) -> None:
        """Something happened just now."""
        self._add({"ts": _now(), "type": "event", "event": event_type}, {"data": data} if data else {})

    def write(self, path: _AnyPath) -> None:
        """All entries into this file, in place of what it had."""
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(map(_line, self._entries))

    def _add(self, entry: dict[str, Any], extra: dict[str, Any]) -> None:
        # An extra value that is called as one of ours keeps its value under another name.
        entry.update({f"{key}_" if key in entry else key: value for key, value in extra.items()})
        self._entries.append(entry)
        if self._path is not None:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(_line(entry))


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, default=str) + "\n"


def _now() -> str:
    return datetime.now(tz=timezone.utc).isoformat(timespec="milliseconds")


class HWMonitor:
    """GPUs and CPUs of the machine into `hw_metrics.csv`, `hw_dmon.csv` and `cpu_metrics.csv`.

    Each row is in its file when it was taken. No other program is started.

        >>> import tempfile, time
        >>> monitor = HWMonitor()
        >>> monitor.start(tempfile.mkdtemp(), interval_sec=0.1)
        >>> time.sleep(0.3)
        >>> gpu, cpu, dmon = monitor.stop()
        >>> cpu.name
        'cpu_metrics.csv'
    """

    _TABLES = (("hw_metrics", "hw_metrics.csv"), ("cpu_metrics", "cpu_metrics.csv"), ("dmon", "hw_dmon.csv"))

    def __init__(self) -> None:
        self._running: list[tuple[Monitor, Path]] = []

    def start(self, output_dir: _AnyPath, interval_sec: float = 2) -> None:
        """Begin in this folder, which is made where it is not there."""
        if self._running:
            raise RuntimeError("HWMonitor is running already")
        folder = Path(output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for table, name in self._TABLES:
                # A monitor each: the files are the dialect's own, and to read a GPU twice in two seconds is nothing.
                monitor = watch(system=True, interval=interval_sec, csv=str(folder / name), dialect="pytyche",
                                table=table, no_gpu=table == "cpu_metrics")
                self._running.append((monitor.start(), folder / name))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> tuple[Optional[Path], Optional[Path], Optional[Path]]:
        """End; the files of GPUs, CPUs and dmon, None for one that has no row."""
        running, self._running = self._running, []
        if not running:
            return None, None, None
        for monitor, _ in running:
            monitor.stop()
        found = {path.name: _kept(path) for _, path in running}
        return found.get("hw_metrics.csv"), found.get("cpu_metrics.csv"), found.get("hw_dmon.csv")


def _kept(path: Path) -> Optional[Path]:
    """A file without a row is no file: there was no such device."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if any(line and not line.startswith(("#", "timestamp,")) for line in lines):
        return path
    path.unlink(missing_ok=True)
    return None


@dataclass
class ResourceSummary:
    """Means and peaks of what `HWMonitor` has written; 0.0 is not known.

        >>> ResourceSummary(cpu_usr_mean_pct=12.34).to_dict()["cpu_usr_mean_pct"]
        12.3
    """

    peak_vram_mb: float = 0.0
    jax_peak_bytes_mb: float = 0.0
    gpu_util_mean_pct: float = 0.0
    gpu_util_max_pct: float = 0.0
    mem_util_mean_pct: float = 0.0
    mem_util_max_pct: float = 0.0
    power_watts_mean: float = 0.0
    power_watts_max: float = 0.0
    cpu_usr_mean_pct: float = 0.0
    cpu_idle_mean_pct: float = 0.0

    def to_dict(self) -> dict[str, float]:
        """One decimal each; JAX and the memory controller only where they are known."""
        names = ["peak_vram_mb", "gpu_util_mean_pct", "gpu_util_max_pct", "power_watts_mean", "power_watts_max",
                 "cpu_usr_mean_pct", "cpu_idle_mean_pct"]
        if self.jax_peak_bytes_mb > 0:
            names.append("jax_peak_bytes_mb")
        if self.mem_util_mean_pct > 0:
            names += ["mem_util_mean_pct", "mem_util_max_pct"]
        return {name: round(float(getattr(self, name)), 1) for name in names}


def probe_jax_peak_memory_mb() -> float:
    """The largest peak of device memory that JAX knows of on a local GPU, MiB; 0.0 where it knows none.

        >>> probe_jax_peak_memory_mb() >= 0.0
        True
    """
    try:
        devices: Any = import_module("jax").local_devices()
        stats = [device.memory_stats() for device in devices if device.platform == "gpu"]
    except Exception:  # whatever a driver or a plug-in raises: there is no figure then
        return 0.0
    return max((float(s.get("peak_bytes_in_use", 0)) / _MIB for s in stats if s), default=0.0)


def build_resource_summary(gpu_csv_path: Optional[_AnyPath], cpu_csv_path: Optional[_AnyPath],
                           dmon_csv_path: Optional[_AnyPath] = None, *, jax_peak_mb: float = 0.0) -> ResourceSummary:
    r"""A summary of the files that `HWMonitor` wrote, this one or the original.

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        ...     _ = file.write("timestamp,usr_pct,idle_pct\n1,10.0,90.0\n2,20.0,80.0\n")
        ...     file.flush()
        ...     build_resource_summary(None, file.name).cpu_usr_mean_pct
        15.0
    """
    gpu = list(_split(gpu_csv_path, ","))
    use, used, power = (_numbers(row[place] for row in gpu if len(row) >= 9) for place in (1, 3, 5))
    # Of the memory controller both files tell; dmon is what the original took, and may be missing.
    controller = _dmon_column(dmon_csv_path, "mem") or _numbers(row[2] for row in gpu if len(row) >= 9)
    cpu = [row for row in _split(cpu_csv_path, ",") if len(row) >= 3]
    user, idle = (_numbers(row[place] for row in cpu) for place in (1, 2))
    return ResourceSummary(
        peak_vram_mb=max(used, default=0.0), jax_peak_bytes_mb=jax_peak_mb,
        gpu_util_mean_pct=_mean(use), gpu_util_max_pct=max(use, default=0.0),
        mem_util_mean_pct=_mean(controller), mem_util_max_pct=max(controller, default=0.0),
        power_watts_mean=_mean(power), power_watts_max=max(power, default=0.0),
        cpu_usr_mean_pct=_mean(user), cpu_idle_mean_pct=_mean(idle))


def _split(path: Optional[_AnyPath], separator: Optional[str]) -> Iterator[list[str]]:
    if path is None or not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            yield [part.strip() for part in line.strip().split(separator)]


def _numbers(texts: Iterable[str]) -> list[float]:
    """Those that are numbers: a value that is not known, `[N/A]` or `-`, takes no other with it."""
    found = []
    for text in texts:
        try:
            found.append(float(text))
        except ValueError:
            continue
    return found


def _mean(values: list[float]) -> float:
    return mean(values) if values else 0.0


def _dmon_column(path: Optional[_AnyPath], name: str) -> list[float]:
    """A column by its name in the header, which comes again every few lines. Drivers differ in their columns."""
    place: Optional[int] = None
    texts = []
    for row in _split(path, None):
        if row and row[0].startswith("#"):
            names = row[1:] if row[0] == "#" else [row[0][1:], *row[1:]]
            if "gpu" in names:
                place = names.index(name) if name in names else None
        elif place is not None and len(row) > place:
            texts.append(row[place])
    return _numbers(texts)
