# SPDX-License-Identifier: Apache-2.0
"""HTML: what is recommended, for the end of the report of a run; and a page of its own for figures that came
without a run, as those that the original has stored."""
from __future__ import annotations

from html import escape
from typing import Any, Optional

from .tiny_data_frame import TinyDataFrame

_WIDTH, _HEIGHT = 900, 160
_CHARTS = (
    ("CPU usage (cores)", (("process_cpu_usage", "#059669"), ("system_cpu_usage", "#0284c7"))),
    ("Memory (MiB)", (("process_memory_mib", "#059669"), ("system_memory_used_mib", "#0284c7"))),
    ("Disk read (bytes per interval)", (("process_disk_read_bytes", "#059669"), ("system_disk_read_bytes", "#0284c7"))),
    ("Disk write (bytes per interval)",
     (("process_disk_write_bytes", "#059669"), ("system_disk_write_bytes", "#0284c7"))),
    ("Disk space used (GB)", (("system_disk_space_used_gb", "#0284c7"),)),
    ("Network (bytes per interval)", (("system_net_recv_bytes", "#0284c7"), ("system_net_sent_bytes", "#7c3aed"))),
    ("GPU usage (GPUs)", (("process_gpu_usage", "#059669"), ("system_gpu_usage", "#0284c7"))),
    ("VRAM (MiB)", (("process_gpu_vram_mib", "#059669"), ("system_gpu_vram_mib", "#0284c7"))),
)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(str, value)) or "none" if isinstance(value, (list, tuple)) else str(value)


def _table(title: str, rows: list[tuple[str, Any]]) -> str:
    cells = "".join(f"<tr><th scope='row'>{escape(str(name))}</th><td>{escape(_text(value))}</td></tr>"
                    for name, value in rows if value not in (None, ""))
    return f"<h2>{escape(title)}</h2>\n<table>{cells}</table>\n" if cells else ""


def section(recommended: dict[str, int], stats: dict[str, Any], server: Optional[dict[str, Any]],
            cloud: Optional[dict[str, Any]], historical: list[dict[str, Any]], failed: Optional[bool],
            integration: str) -> str:
    """What the original's report says besides its curves."""
    status = "Pending" if failed is None else "Failed" if failed else "Finished"
    request = None
    if integration.startswith("Metaflow"):
        gpu = f", gpu={recommended['gpu']}" if recommended["gpu"] else ""
        request = f"@resources(cpu={recommended['cpu']}, memory={recommended['memory']}{gpu})"
    earlier = [(f"run {i}", f"mean {s.get('process_cpu_usage', {}).get('mean')} cores, "
                f"peak {s.get('process_memory_mib', {}).get('max')} MiB") for i, s in enumerate(historical, 1)]
    return "".join(["<section id='resource-tracker'>\n",
                    _table("Status", [("status", status), ("integration", integration)]),
                    _table("Recommended", [("cpu", recommended["cpu"]), ("memory (MiB)", recommended["memory"]),
                                           ("gpu", recommended["gpu"]), ("vram (MiB)", recommended["vram"]),
                                           ("as a decorator", request)]),
                    _table("Statistics", [(f"{column} {name}", value) for column, figures in stats.items()
                                          for name, value in figures.items()]),
                    _table("Server", list((server or {}).items())), _table("Cloud", list((cloud or {}).items())),
                    _table("Earlier runs", earlier), "</section>\n"])


def _line(times: list[float], values: list[Any], top: float, color: str) -> str:
    span = (times[-1] - times[0]) or 1.0
    points = " ".join(f"{(t - times[0]) / span * _WIDTH:.1f},{_HEIGHT - v / top * (_HEIGHT - 10):.1f}"
                      for t, v in zip(times, values) if isinstance(v, (int, float)))
    return f"<polyline points='{points}' fill='none' stroke='{color}' stroke-width='1.5'/>"


def _chart(title: str, made: TinyDataFrame, series: tuple[tuple[str, str], ...]) -> str:
    known = [(name, color) for name, color in series
             if name in made.columns and any(isinstance(v, (int, float)) for v in made[name])]
    top = max((v for name, _ in known for v in made[name] if isinstance(v, (int, float))), default=0)
    if not top:
        return ""
    lines = "".join(_line(made["timestamp"], made[name], top, color) for name, color in known)
    names = ", ".join(f"<span style='color:{color}'>{escape(name)}</span>" for name, color in known)
    return (f"<h3>{escape(title)}</h3><p>{names}; highest {top:g}</p>"
            f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' width='100%' role='img' aria-label='{escape(title)}'>"
            f"{lines}</svg>\n")


def page(inner: str, made: TinyDataFrame) -> str:
    """A page with curves of its own."""
    charts = "".join(_chart(title, made, series) for title, series in _CHARTS)
    return ("<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>Resource usage</title>"
            "<style>body{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
            "th{text-align:left;padding-right:1em;font-weight:normal}svg{background:#f5f5f5}</style></head><body>\n"
            f"<h1>Resource usage</h1>\n{charts}{inner}</body></html>\n")


def into(report: str, inner: str) -> str:
    """At the end of a report."""
    head, end, tail = report.rpartition("</main>")
    return head + inner + end + tail
