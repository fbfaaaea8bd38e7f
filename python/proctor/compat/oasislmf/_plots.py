# SPDX-License-Identifier: Apache-2.0
"""The six pictures of the report, under the names that they had, by matplotlib."""
from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Optional

from ._rows import Moment, Row, by_tool, cpu_time_curves, moments

TOOL_COLORS = {
    "evepy": "#17becf", "modelpy": "#bcbd22", "gulpy": "#7f7f7f", "fmpy": "#aec7e8", "gulmc": "#ffbb78",
    "summarypy": "#1f77b4", "pltpy": "#ff7f0e", "eltpy": "#2ca02c", "katpy": "#d62728", "aalpy": "#9467bd",
    "lecpy": "#8c564b", "plapy": "#e377c2",
}
_Series = dict[str, list[Moment]]


class _Sheet:
    """One picture: axes, a title, and what all of them have."""

    def __init__(self, start: float, title: str, unit: str, height: float = 5) -> None:
        # Not through pyplot, whose state is the program's own.
        self._figure: Any = import_module("matplotlib.figure").Figure(figsize=(12, height))
        import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(self._figure)
        self.axes: Any = self._figure.add_subplot()
        self._start = start
        self.axes.set(title=title, xlabel="Time (s)", ylabel=unit)
        self.axes.grid(True, alpha=0.3)

    def times(self, stamps: Sequence[float]) -> list[float]:
        return [ts - self._start for ts in stamps]

    def grouped(self) -> None:
        """Thousands are set apart on the axis."""
        self.axes.yaxis.set_major_formatter(import_module("matplotlib.ticker").StrMethodFormatter("{x:,.0f}"))

    def save(self, folder: str, name: str, legend: str = "upper right") -> str:
        if self.axes.get_legend_handles_labels()[0]:
            self.axes.legend(loc=legend, fontsize=9)
        self._figure.tight_layout()
        path = os.path.join(folder, name)
        self._figure.savefig(path, dpi=150)
        return path


def _line(sheet: _Sheet, tool: str, series: list[Moment], field: str, label: str, **style: Any) -> None:
    known = [(m.ts, getattr(m, field)) for m in series if getattr(m, field) is not None]
    if known:
        sheet.axes.plot(sheet.times([ts for ts, _ in known]), [value for _, value in known], label=label,
                        color=TOOL_COLORS.get(tool), linewidth=1.5, **style)


def _aggregate_uss(start: float, tools: _Series, folder: str) -> str:
    sheet = _Sheet(start, "Private memory (USS) of each tool, all instances", "Aggregate USS (MB)")
    for tool, series in tools.items():
        _line(sheet, tool, series, "uss", tool)
        sheet.axes.fill_between(sheet.times([m.ts for m in series]), 0, [m.uss or 0.0 for m in series], alpha=0.15,
                                color=TOOL_COLORS.get(tool))
    sheet.grouped()
    return sheet.save(folder, "aggregate_uss.png")


def _rss_vs_uss(start: float, tools: _Series, folder: str) -> str:
    sheet = _Sheet(start, "RSS, PSS and USS of each tool: what lies between them is shared", "Memory (MB)")
    for tool, series in tools.items():
        _line(sheet, tool, series, "rss", f"{tool} RSS", alpha=0.4, linestyle="--")
        _line(sheet, tool, series, "pss", f"{tool} PSS", alpha=0.7, linestyle=":")
        _line(sheet, tool, series, "uss", f"{tool} USS")
    sheet.grouped()
    return sheet.save(folder, "rss_vs_uss.png")


def _total_footprint(start: float, tools: _Series, folder: str, memory_mb: Optional[float]) -> str:
    sheet = _Sheet(start, "Private memory of all tools, one upon the other", "Total USS (MB)")
    stamps = sorted({m.ts for series in tools.values() for m in series})
    known = {tool: {m.ts: m.uss or 0.0 for m in series} for tool, series in tools.items()}
    top = [0.0] * len(stamps)
    for tool, values in known.items():
        below, top = top, [base + values.get(ts, 0.0) for base, ts in zip(top, stamps)]
        sheet.axes.fill_between(sheet.times(stamps), below, top, label=tool, alpha=0.6, color=TOOL_COLORS.get(tool))
    peak = max(top)
    where = stamps[top.index(peak)] - start
    sheet.axes.axhline(peak, color="red", linestyle=":", linewidth=1, alpha=0.7)
    sheet.axes.annotate(f"Peak: {peak:,.0f} MB", xy=(where, peak), xytext=(10, 8), textcoords="offset points",
                        fontsize=9, color="red", arrowprops={"arrowstyle": "->", "color": "red", "lw": 0.8})
    if memory_mb:
        sheet.axes.axhline(memory_mb, color="black", linestyle="--", linewidth=1.2, alpha=0.5)
        sheet.axes.text(stamps[0] - start, memory_mb, f" System: {memory_mb:,.0f} MB", va="bottom", fontsize=9,
                        alpha=0.7)
    sheet.grouped()
    return sheet.save(folder, "total_footprint.png")


def _aggregate_cpu(start: float, tools: _Series, folder: str) -> str:
    sheet = _Sheet(start, "CPU of each tool, all instances, percent of one core", "Aggregate CPU%")
    for tool, series in tools.items():
        _line(sheet, tool, series, "cpu", tool)
    return sheet.save(folder, "aggregate_cpu.png")


def _cpu_time(start: float, rows: list[Row], folder: str) -> str:
    sheet = _Sheet(start, "CPU time of each tool so far, user and system, all instances", "Cumulative CPU Time (s)")
    for tool, curve in cpu_time_curves(rows).items():
        sheet.axes.plot(sheet.times([ts for ts, _ in curve]), [seconds for _, seconds in curve], label=tool,
                        color=TOOL_COLORS.get(tool), linewidth=1.5)
    sheet.grouped()
    return sheet.save(folder, "cpu_time.png", legend="upper left")


def _instance_count(start: float, tools: _Series, folder: str) -> str:
    sheet = _Sheet(start, "Running instances of each tool", "Active Instances", height=4)
    for tool, series in tools.items():
        sheet.axes.step(sheet.times([m.ts for m in series]), [m.instances for m in series], label=tool, where="post",
                        color=TOOL_COLORS.get(tool), linewidth=1.5)
    sheet.axes.yaxis.set_major_locator(import_module("matplotlib.ticker").MaxNLocator(integer=True))
    return sheet.save(folder, "instance_count.png")


def generate(rows: list[Row], folder: str, memory_mb: Optional[float]) -> dict[str, str]:
    """Draws all six; where each is. ImportError without matplotlib."""
    tools = {tool: moments(found) for tool, found in by_tool(rows).items()}
    start = min(row.ts for row in rows)
    return {
        "agg_uss": _aggregate_uss(start, tools, folder),
        "agg_rss_vs_uss": _rss_vs_uss(start, tools, folder),
        "total": _total_footprint(start, tools, folder, memory_mb),
        "agg_cpu": _aggregate_cpu(start, tools, folder),
        "cpu_time": _cpu_time(start, rows, folder),
        "instances": _instance_count(start, tools, folder),
    }
