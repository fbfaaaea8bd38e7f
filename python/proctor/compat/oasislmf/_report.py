# SPDX-License-Identifier: Apache-2.0
"""`resource_report/resource_report.md`."""
from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import Optional, Union

from ._rows import Stats

_COLUMNS = (
    ("Tool", "------", "tool", "{}"),
    ("Instances", "-----------", "n_instances", "{:.0f}"),
    ("Samples", "---------", "n_samples", "{:.0f}"),
    ("**Peak USS/inst (MB)**", "----------------------:", "single_peak_uss_mb", "**{:.1f}**"),
    ("**Aggr Peak USS (MB)**", "-----------------------:", "agg_peak_uss_mb", "**{:.1f}**"),
    ("Aggr Peak RSS (MB)", "--------------------:", "agg_peak_rss_mb", "{:.1f}"),
    ("Aggr Peak PSS (MB)", "--------------------:", "agg_peak_pss_mb", "{:.1f}"),
    ("Peak CPU%", "----------:", "peak_cpu", "{:.1f}%"),
    ("CPU User (s)", "-------------:", "total_cpu_user_s", "{:.1f}"),
    ("CPU Sys (s)", "------------:", "total_cpu_sys_s", "{:.1f}"),
    ("**CPU Total (s)**", "------------------:", "total_cpu_time_s", "**{:.1f}**"),
    ("Avg USS (MB)", "-------------:", "avg_uss_mb", "{:.1f}"),
    ("Avg CPU%", "---------:", "avg_cpu", "{:.1f}%"),
    ("Duration (s)", "-------------:", "duration_s", "{:.1f}"),
)
_PICTURES = (
    ("agg_uss", "Aggregate USS — Private Memory per Tool", "Aggregate USS"),
    ("agg_rss_vs_uss", "RSS vs USS — Shared Memory Overhead", "RSS vs USS"),
    ("total", "Total Private Memory Footprint (stacked)", "Total Footprint"),
    ("agg_cpu", "Aggregate CPU%", "Aggregate CPU"),
    ("cpu_time", "Cumulative CPU Time (user + system)", "CPU Time"),
    ("instances", "Active Instance Count", "Instance Count"),
)


def _head(csv_path: str, samples: int, memory_mb: Optional[float], peak_mb: Optional[float],
          cpu_seconds: Optional[float]) -> list[str]:
    lines = [f"**Generated:** {datetime.now():%Y-%m-%d %H:%M:%S}", f"**Total samples:** {samples:,}",
             f"**Source:** `{os.path.basename(csv_path)}`"]
    if memory_mb:
        lines.append(f"**System memory:** {memory_mb:,.0f} MB")
    if peak_mb is not None:
        share = f" ({100 * peak_mb / memory_mb:.1f}% of system memory)" if memory_mb else ""
        lines.append(f"**Peak total USS:** {peak_mb:,.0f} MB{share}")
    if cpu_seconds is not None:
        lines.append(f"**CPU of the whole script:** {cpu_seconds:,.1f} s, with all that it started")
    return [line + "  " for line in lines]  # two blanks: a line of its own in Markdown


def _cell(form: str, value: Union[str, float, None]) -> str:
    """What is not known is an empty cell, and not 0."""
    return "" if value is None else form.format(value)


def _table(stats: Mapping[str, Stats]) -> list[str]:
    has_pss = any("agg_peak_pss_mb" in one for one in stats.values())
    columns = [column for column in _COLUMNS if has_pss or "PSS" not in column[0]]
    lines = ["| " + " | ".join(name for name, _, _, _ in columns) + " |",
             "|" + "|".join(rule for _, rule, _, _ in columns) + "|"]
    for tool in sorted(stats):
        known: dict[str, Union[str, float, None]] = {"tool": tool, **stats[tool]}
        lines.append("| " + " | ".join(_cell(form, known[key]) for _, _, key, form in columns) + " |")
    return lines


def write(csv_path: str, folder: str, stats: Mapping[str, Stats], plots: Mapping[str, str], samples: int,
          memory_mb: Optional[float], peak_mb: Optional[float], cpu_seconds: Optional[float] = None) -> str:
    """Writes it and says where."""
    lines = ["# Resource Monitor Report", "", *_head(csv_path, samples, memory_mb, peak_mb, cpu_seconds), "",
             "> **USS**: memory that a process has for itself. **RSS** has shared pages in each process anew, so that",
             "> its sums are too large; **PSS** divides them among those who share.", "",
             "## Summary Statistics", "", *_table(stats), ""]
    for key, title, alternative in _PICTURES:
        if plots.get(key):
            lines += [f"## {title}", "", f"![{alternative}]({os.path.basename(plots[key])})", ""]
    lines += ["---", f"*Source: `{csv_path}`*"]
    path = os.path.join(folder, "resource_report.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return path
