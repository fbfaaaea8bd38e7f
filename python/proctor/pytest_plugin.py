# SPDX-License-Identifier: Apache-2.0
"""`pytest --proctor`: what each test used; `@pytest.mark.proctor(max_memory="2 GiB")`: what it may use.

A wheel tells pytest of it; elsewhere `-p proctor.pytest_plugin` does. Measured is the test itself, with
the processes that it starts. Its memory is the kernel's own high-water mark, which is reset for each
test, so that short peaks count (and `ru_maxrss` of the process starts anew with each); where there were
several processes it may be the largest sum of their sizes, in which shared pages count for each.
"""
from __future__ import annotations

import difflib
import re
from collections.abc import Generator
from typing import Any, Callable, NamedTuple, Optional

import pytest

from proctor._html import human
from proctor._monitor import Monitor
from proctor._values import Snapshot, Summary

MARK = "proctor"
PROPERTIES = ("proctor_memory_bytes", "proctor_growth_bytes", "proctor_cpu_seconds")
"""Of a test in JUnit files and in what workers of xdist send: the fields of Used."""

SHOWN = 10
"""Tests in the table; with -v all of them."""

UNITS = {"": 1.0, "B": 1.0, "K": 2.0**10, "KIB": 2.0**10, "M": 2.0**20, "MIB": 2.0**20, "G": 2.0**30, "GIB": 2.0**30,
         "T": 2.0**40, "TIB": 2.0**40, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def size(value: Any) -> float:
    """Bytes: a number, or a text as the command takes it.

        >>> size("2 GiB") == 2 * 2**30, size("1.5MB"), size(100)
        (True, 1500000.0, 100.0)
    """
    if isinstance(value, (int, float)):
        return float(value)
    found = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", str(value))
    if not found or found.group(2).upper() not in UNITS:
        raise ValueError(f"{value!r} is no size: write 512M, 2 GiB or 1.5GB")
    return float(found.group(1)) * UNITS[found.group(2).upper()]


class Used(NamedTuple):
    """By one test: bytes at the most, how much of it came during the test, seconds."""

    memory: float
    growth: float
    cpu: float


def used(first: Snapshot, summary: Summary) -> Optional[Used]:
    memory, cpu = summary["mem.rss.peak"].peak, summary["cpu.time"].total
    if memory is None or cpu is None:
        return None
    return Used(memory, max(0.0, memory - first.get("mem.rss", 0.0)), cpu)


LIMITS: dict[str, tuple[str, Callable[[Any], float], str]] = {
    "max_memory": ("memory", size, "B"),
    "max_growth": ("growth", size, "B"),
    "max_cpu": ("cpu", float, "s"),
}
REMEDIES = {"B": "size: write 512M, '2 GiB' or a number of bytes", "s": "number of seconds: write 1.5"}


def wrong(marker: Any) -> list[str]:
    """What a marker says that cannot be."""
    said = [f"{value!r}: write max_memory={value!r}" for value in marker.args]
    for name, value in marker.kwargs.items():
        if name not in LIMITS:
            near = difflib.get_close_matches(name, LIMITS, 1)
            said.append(f"there is no {name}" + (f"; did you mean {near[0]}?" if near else ""))
            continue
        try:
            LIMITS[name][1](value)
        except (TypeError, ValueError):
            said.append(f"{name}={value!r} is no {REMEDIES[LIMITS[name][2]]}")
    return said


def broken(item: pytest.Item, found: Used) -> list[str]:
    """The limits of a test that it did not keep, in words."""
    said = []
    for marker in item.iter_markers(MARK):
        for name, value in marker.kwargs.items():
            field, read, unit = LIMITS[name]
            limit, was = read(value), getattr(found, field)
            if was > limit:
                said.append(f"proctor: {human(was, unit)}, {name} is {human(limit, unit)}")
    return said


class Plugin:
    """What pytest calls: it measures each test, and holds it to its limits."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._show = bool(config.getoption("--proctor"))
        self._interval = config.getoption("--proctor-interval")
        self._key: pytest.StashKey[Used] = pytest.StashKey()
        self._found: dict[str, Used] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """A marker that says what cannot be is an error of its test alone."""
        said = [line for marker in item.iter_markers(MARK) for line in wrong(marker)]
        if said:
            pytest.fail(f"{item.nodeid}: @pytest.mark.proctor: {'; '.join(said)} (it takes {', '.join(LIMITS)})",
                        pytrace=False)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        if not self._show and not any(item.iter_markers(MARK)):
            yield
            return
        monitor = Monitor(interval=self._interval, peaks="interval")
        first = monitor.collect()
        monitor.start()
        try:
            yield
        finally:
            summary = monitor.stop()
            found = used(first, summary) if summary else None
            if found:
                item.stash[self._key] = found
                item.user_properties += zip(PROPERTIES, found)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Generator[None, Any, None]:
        outcome = yield
        report = outcome.get_result()
        found = item.stash.get(self._key, None)
        if report.when != "call" or found is None:
            return
        said = broken(item, found)
        if said and report.passed:
            report.outcome = "failed"
            report.longrepr = "\n".join(said)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Also for the reports that workers of xdist have sent."""
        known: dict[str, Any] = dict(report.user_properties)
        if report.when == "call" and all(name in known for name in PROPERTIES):
            self._found[report.nodeid] = Used(*(known[name] for name in PROPERTIES))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._show or not self._found:
            return
        rows = sorted(self._found.items(), key=lambda row: -row[1].memory)
        shown = rows if self._config.getoption("verbose") > 0 else rows[:SHOWN]
        terminalreporter.section("proctor: what tests used")
        terminalreporter.write_line(f"{'peak':>10} {'growth':>10} {'CPU':>9}  test")
        for name, u in shown:
            terminalreporter.write_line(f"{human(u.memory, 'B'):>10} {human(u.growth, 'B'):>10} {u.cpu:>7.2f} s  {name}")
        if len(shown) < len(rows):
            terminalreporter.write_line(f"and {len(rows) - len(shown)} more: -v shows them all")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("proctor")
    group.addoption("--proctor", action="store_true", help="show the memory and CPU time that each test used")
    group.addoption("--proctor-interval", default="50ms", metavar="DURATION", help="how often to look; 50ms")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "proctor(max_memory, max_growth, max_cpu): what a test may use: a size as "
                                       "\"2 GiB\" of memory at its peak, the same of growth, seconds of CPU time")
    config.pluginmanager.register(Plugin(config), "proctor-plugin")
