# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a run: figures, and a small curve where samples are known."""
from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Optional

from proctor._values import Summary

if TYPE_CHECKING:
    from proctor._monitor import Monitor
    from proctor._run import Run

WIDTH, HEIGHT = 160, 24


class Row(NamedTuple):
    """A line of the table: the first of its keys that is known is shown."""

    title: str
    keys: tuple[str, ...]
    figure: str  # a field of Stat
    unit: str
    curve: tuple[str, ...]  # whose samples are drawn


ROWS = (
    Row("CPU time", ("cpu.time",), "total", "s", ()),
    Row("CPU, mean", ("cpu.usage",), "mean", "cores", ("cpu.usage",)),
    Row("memory, peak", ("mem.pss", "mem.rss"), "peak", "B", ("mem.pss", "mem.rss")),
    Row("read", ("io.read",), "total", "B", ("io.read.rate",)),
    Row("written", ("io.write",), "total", "B", ("io.write.rate",)),
    Row("GPUs, mean", ("gpu.usage",), "mean", "GPUs", ("gpu.usage",)),
    Row("GPU memory, peak", ("gpu.mem",), "peak", "B", ("gpu.mem",)),
    Row("processes, most", ("procs",), "peak", "", ("procs",)),
)


def human(value: float, unit: str) -> str:
    """A figure for people.

        >>> human(1536, "B"), human(0.25, "cores"), human(90, "s"), human(3, "")
        ('1.5 KiB', '0.25 cores', '90.00 s', '3')
    """
    if unit == "B":
        for name in ("B", "KiB", "MiB", "GiB", "TiB"):
            if abs(value) < 1024 or name == "TiB":
                return f"{value:.0f} B" if name == "B" else f"{value:.1f} {name}"
            value /= 1024
    return f"{value:.0f}" if not unit else f"{value:.2f} {unit}"


def sparkline(times: Sequence[float], values: Sequence[float]) -> str:
    """A curve from 0 to its most, as SVG. What is absent is a gap; at least two points have to be known.

        >>> sparkline([0, 1], [1.0, math.nan])
        ''
        >>> sparkline([0, 1, 2], [0.0, 2.0, 1.0]).count("<polyline")
        1
    """
    known = [v for v in values if v == v]
    if len(known) < 2:
        return ""
    end, most = times[-1] or 1.0, max(known) or 1.0
    lines: list[list[str]] = [[]]
    for at, value in thinned(times, values):
        if value != value:
            lines.append([])
        else:
            lines[-1].append(f"{at / end * WIDTH:.1f},{HEIGHT - 1 - value / most * (HEIGHT - 2):.1f}")
    drawn = "".join(f'<polyline fill="none" stroke="currentColor" points="{" ".join(line)}"/>' for line in lines if line)
    return f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{drawn}</svg>'


def thinned(times: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """The most of each bucket: as many points as can be seen, and no peak is lost. An absent value stays
    one only where a bucket has no other.

        >>> thinned(range(1000), [0.0] * 500 + [9.0] + [0.0] * 499).count((500, 9.0))
        1
    """
    width = max(1, math.ceil(len(values) / (2 * WIDTH)))
    found: list[tuple[float, float]] = []
    for first in range(0, len(values), width):
        bucket = [(times[i], values[i]) for i in range(first, min(first + width, len(values)))]
        known = [point for point in bucket if point[1] == point[1]]
        found.append(max(known, key=lambda point: point[1]) if known else bucket[0])
    return found


def table(title: str, summary: Summary, samples: Optional[Mapping[str, Sequence[float]]]) -> str:
    lines = [f"<tr><td>lasted</td><td>{summary.duration:.2f} s</td><td></td></tr>"]
    for row in ROWS:
        key = next((k for k in row.keys if k in summary and getattr(summary[k], row.figure) is not None), None)
        if key is None:
            continue
        name = f"{row.title} ({key.rpartition('.')[2].upper()})" if len(row.keys) > 1 else row.title
        drawn = next((k for k in row.curve if samples and k in samples), None)
        curve = sparkline(samples["elapsed"], samples[drawn]) if samples and drawn else ""
        figure = human(getattr(summary[key], row.figure), row.unit)
        lines.append(f"<tr><td>{name}</td><td>{figure}</td><td>{curve}</td></tr>")
    found = "".join(f"<li>{html.escape(str(f.get('text', f)) if isinstance(f, Mapping) else str(f))}</li>"
                    for f in summary.data.get("findings", ()))
    below = f"<ul>{found}</ul>" if found else ""
    return f"<div><b>{html.escape(title)}</b><table><tbody>{''.join(lines)}</tbody></table>{below}</div>"


def title_of(summary: Summary) -> str:
    run = summary.data["run"]
    return str(run.get("name") or " ".join(run.get("command") or ()) or run["id"])


def curves(run: Run) -> Mapping[str, Sequence[float]]:
    """Samples of what is drawn."""
    known = set(run.summary)
    return run.samples([key for row in ROWS for key in row.curve if key in known])


def of_run(run: Run) -> str:
    return table(title_of(run.summary), run.summary, curves(run))


def of_monitor(monitor: Monitor) -> str:
    from proctor._run import Run
    if monitor.running:
        return "<div><b>proctor</b>: a monitor that is running</div>"
    summary = monitor.stop()
    if summary is None:
        return "<div><b>proctor</b>: a monitor that has not been started</div>"
    if monitor.output is None:
        return table(title_of(summary), summary, None)
    with Run.open(monitor.output) as run:
        return table(title_of(summary), summary, curves(run))
