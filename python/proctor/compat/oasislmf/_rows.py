# SPDX-License-Identifier: Apache-2.0
"""Rows of `resource_monitor.csv`, and what each tool used."""
from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple, Optional

MIB_IN_KB = 1024.0
Stats = dict[str, Optional[float]]
"""Of a tool; None is not known."""


class Row(NamedTuple):
    """One process in one sample. `instance` tells apart what had the same pid one after the other, or on
    other machines; None is not known."""

    ts: float
    tool: str
    pid: int
    cpu: Optional[float]
    user: float
    system: float
    rss: Optional[int]
    uss: Optional[int]
    pss: Optional[int]
    source: int
    instance: tuple[int, int, int]

    @property
    def cpu_time(self) -> float:
        return self.user + self.system


def _known(text: Optional[str]) -> Optional[int]:
    """The original writes -1 where there is no PSS."""
    value = int(text) if text else None
    return None if value is not None and value < 0 else value


def load(path: str, source: int = 0) -> list[Row]:
    """The rows of a file; what is torn or was written by something else is left out."""
    found: list[Row] = []
    first_cpu: set[int] = set()
    times: dict[int, float] = {}
    turn: dict[int, int] = defaultdict(int)
    with open(path, newline="", encoding="utf-8") as file:
        for cells in csv.DictReader(file):
            try:
                pid, user, system = int(cells["pid"]), float(cells["cpu_user_s"]), float(cells["cpu_sys_s"])
                if user + system < times.get(pid, 0.0):  # CPU time never falls: the pid is used again
                    turn[pid] += 1
                    first_cpu.discard(pid)
                percent = float(cells["cpu_pct"]) if cells["cpu_pct"] else None
                if pid not in first_cpu:
                    # psutil says 0.0 at first sight, whatever the process has done: not a measurement.
                    percent = percent or None
                row = Row(float(cells["timestamp"]), cells["tool"], pid, percent, user, system,
                          _known(cells["rss_kb"]), _known(cells["uss_kb"]), _known(cells["pss_kb"]), source,
                          (source, pid, turn[pid]))
            except (KeyError, TypeError, ValueError):
                continue
            first_cpu.add(pid)
            times[pid] = user + system
            found.append(row)
    return found


class Moment(NamedTuple):
    """A tool, or all of them, at one time; MiB, and None where nobody knows."""

    ts: float
    rss: Optional[float]
    uss: Optional[float]
    pss: Optional[float]
    cpu: Optional[float]
    instances: int


def _sum(rows: Iterable[Row], field: str) -> Optional[float]:
    values = [value for value in (getattr(row, field) for row in rows) if value is not None]
    scale = 1.0 if field == "cpu" else MIB_IN_KB
    return sum(values) / scale if values else None


def moments(rows: list[Row]) -> list[Moment]:
    """The sum over what runs at the same time. Several monitors sample at different instants: what one has seen
    counts until its next sample, so that a sum is of what ran together."""
    times: dict[int, list[float]] = defaultdict(list)
    groups: dict[tuple[int, float], list[Row]] = defaultdict(list)
    for row in rows:
        group = groups[row.source, row.ts]
        if not group:
            times[row.source].append(row.ts)
        group.append(row)
    ends = {source: _Latest(sorted(stamps)) for source, stamps in times.items()}
    found = []
    for ts in sorted({ts for _, ts in groups}):
        now = [row for source, stamps in ends.items() for row in groups.get((source, stamps.at(ts)), ())]
        found.append(Moment(ts, _sum(now, "rss"), _sum(now, "uss"), _sum(now, "pss"), _sum(now, "cpu"), len(now)))
    return found


class _Latest:
    """The latest of a monitor's samples at a time, as long as its next one is not overdue."""

    def __init__(self, stamps: list[float]) -> None:
        self._stamps = stamps
        gaps = sorted(b - a for a, b in zip(stamps, stamps[1:]))
        self._hold = 1.5 * gaps[len(gaps) // 2] if gaps else 0.0
        self._place = 0

    def at(self, ts: float) -> float:
        """Asked in the order of time."""
        while self._place + 1 < len(self._stamps) and self._stamps[self._place + 1] <= ts:
            self._place += 1
        latest = self._stamps[self._place]
        return latest if latest <= ts <= latest + self._hold else float("nan")


def by_tool(rows: list[Row]) -> dict[str, list[Row]]:
    """In the order in which tools appeared."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.ts):
        found[row.tool].append(row)
    return dict(found)


def _peak(values: Iterable[Optional[float]]) -> Optional[float]:
    return max((value for value in values if value is not None), default=None)


def _mean(values: Iterable[Optional[float]]) -> Optional[float]:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _in_mib(kb: Optional[float]) -> Optional[float]:
    return None if kb is None else kb / MIB_IN_KB


def _final(rows: list[Row], field: str) -> float:
    last: dict[tuple[int, int, int], float] = {}
    for row in rows:
        last[row.instance] = max(last.get(row.instance, 0.0), getattr(row, field))
    return sum(last.values())


def _tool_stats(rows: list[Row], has_pss: bool) -> Stats:
    together = moments(rows)
    user, system = _final(rows, "user"), _final(rows, "system")
    stats: Stats = {
        "n_instances": len({row.instance for row in rows}),
        "n_samples": len(rows),
        "single_peak_uss_mb": _in_mib(_peak(row.uss for row in rows)),
        "agg_peak_rss_mb": _peak(m.rss for m in together),
        "agg_peak_uss_mb": _peak(m.uss for m in together),
        "peak_cpu": _peak(row.cpu for row in rows),
        "avg_uss_mb": _in_mib(_mean(row.uss for row in rows)),
        "avg_cpu": _mean(row.cpu for row in rows),
        "duration_s": max(row.ts for row in rows) - min(row.ts for row in rows),
        "total_cpu_user_s": round(user, 1),
        "total_cpu_sys_s": round(system, 1),
        "total_cpu_time_s": round(user + system, 1),
    }
    if has_pss:
        stats["agg_peak_pss_mb"] = _peak(m.pss for m in together)
    return stats


def compute_stats(rows: list[Row]) -> dict[str, Stats]:
    """Per tool: instances, samples, peaks and means in MiB and percent of a core, CPU seconds."""
    has_pss = any(row.pss is not None for row in rows)
    return {tool: _tool_stats(found, has_pss) for tool, found in by_tool(rows).items()}


def peak_total_uss(rows: list[Row]) -> Optional[float]:
    """The most private memory of all tools at one time, MiB; None where nobody's is known."""
    return _peak(m.uss for m in moments(rows))


def cpu_time_curves(rows: list[Row]) -> dict[str, list[tuple[float, float]]]:
    """Per tool the CPU seconds so far, at each sample in which one of its processes was seen."""
    sums: dict[str, float] = defaultdict(float)
    seen: dict[tuple[int, int, int], float] = {}
    curves: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.ts):
        sums[row.tool] += max(0.0, row.cpu_time - seen.get(row.instance, 0.0))
        seen[row.instance] = max(row.cpu_time, seen.get(row.instance, 0.0))
        curve = curves[row.tool]
        if curve and curve[-1][0] == row.ts:
            curve.pop()
        curve.append((row.ts, sums[row.tool]))
    return dict(curves)
