# SPDX-License-Identifier: Apache-2.0
"""What is measured, as values that nobody can change. NaN and None are absent, never 0."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Optional


class Metric(NamedTuple):
    """A row of the catalogue. `scope` says of what it is known: "process, job", "system", "gpu"...

        >>> import proctor
        >>> [(m.unit, m.kind) for m in proctor.metrics() if m.key == "mem.rss"]
        [('bytes', 'gauge')]
    """

    key: str
    unit: str
    kind: str
    scope: str
    help: str


class Stat(NamedTuple):
    """What is known of a metric over a run; None is absent. Counters have a total, gauges the rest.

        >>> Stat(peak=3.0, at=1.5)
        Stat(total=None, peak=3.0, mean=None, min=None, last=None, at=1.5, mark=None)
    """

    total: Optional[float] = None
    peak: Optional[float] = None
    mean: Optional[float] = None
    min: Optional[float] = None
    last: Optional[float] = None
    at: Optional[float] = None
    """Seconds since the start at which the peak was."""
    mark: Optional[str] = None
    """What is to be said of these figures, as "lower bound"; None where nothing is."""


class _Values(Mapping[str, float]):
    """Numbers by key, in an order that many of them share; what is absent (NaN) is not in it."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: Sequence[float]) -> None:
        self._places = places
        self._values = values

    def __getitem__(self, key: str) -> float:
        value = self._values[self._places[key]]
        if value != value:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[str]:
        return (key for key, place in self._places.items() if self._values[place] == self._values[place])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Process(_Values):
    """One process of the job in a snapshot, a mapping of its values: `p["mem.rss"]`.

        >>> import os, proctor
        >>> (p,) = proctor.Monitor(children=False, processes=True).collect().processes
        >>> p.pid == os.getpid(), p["mem.rss"] > 0
        (True, True)
    """

    __slots__ = ("_command", "_pid")

    def __init__(self, pid: int, command: str, places: Mapping[str, int], values: Sequence[float]) -> None:
        super().__init__(places, values)
        self._pid = pid
        self._command = command

    @property
    def pid(self) -> int:
        """The number that the kernel has for it, in the namespace of who looks."""
        return self._pid

    @property
    def command(self) -> str:
        """The name that the kernel has for it (comm)."""
        return self._command

    def __repr__(self) -> str:
        return f"<Process {self._pid} {self._command!r}>"


class Device(_Values):
    """A core, disk, filesystem, interface or GPU in a snapshot, a mapping of its values.

        >>> import proctor
        >>> found = proctor.Monitor(system=True, devices=True).collect().devices
        >>> [d.name for d in found if d.kind == "core"] != []
        True
    """

    __slots__ = ("_kind", "_name")

    def __init__(self, kind: str, name: str, places: Mapping[str, int], values: Sequence[float]) -> None:
        super().__init__(places, values)
        self._kind = kind
        self._name = name

    @property
    def kind(self) -> str:
        """One of "core", "disk", "filesystem", "interface" and "gpu"."""
        return self._kind

    @property
    def name(self) -> str:
        """As the kernel or the driver calls it, or where a file system is mounted."""
        return self._name

    def __repr__(self) -> str:
        return f"<Device {self._kind} {self._name!r}>"


class Snapshot(_Values):
    """One sample: a mapping of the job's and the machine's values. A key that is absent is not in it.

    `snapshot["mem.rss"]`, `snapshot.get("gpu.usage")`, `snapshot.elapsed`.

        >>> import proctor
        >>> one = proctor.Monitor().collect()
        >>> one["mem.rss"] > 0, one.elapsed >= 0
        (True, True)
        >>> "cpu.usage" in one     # a first sample has no rate
        False
        >>> "mem.rss" in one.marks     # it is exact, and of now
        False
    """

    __slots__ = ("_devices", "_elapsed", "_interval", "_marks", "_processes", "_time")

    def __init__(self, time: int, elapsed: float, interval: float, places: Mapping[str, int],
                 values: Sequence[float], processes: Sequence[Process] = (), devices: Sequence[Device] = (),
                 marks: Optional[Mapping[str, str]] = None) -> None:
        super().__init__(places, values)
        self._time = time
        self._marks = marks or {}
        self._elapsed = elapsed
        self._interval = interval
        self._processes = tuple(processes)
        self._devices = tuple(devices)

    @property
    def time(self) -> int:
        """Unix time in nanoseconds."""
        return self._time

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._elapsed

    @property
    def interval(self) -> float:
        """Seconds since the sample before."""
        return self._interval

    @property
    def marks(self) -> Mapping[str, str]:
        """What is to be said of values, by their keys: "up to 20 s old", "lower bound"... Of a value whose key is
        not in it there is nothing."""
        return MappingProxyType(self._marks)

    @property
    def processes(self) -> tuple[Process, ...]:
        """Each process of the job, where the monitor was made with `processes=True`."""
        return self._processes

    @property
    def devices(self) -> tuple[Device, ...]:
        """Each device, where the monitor was made with `devices=True`. They are read less often than
        the job, so that some samples have none."""
        return self._devices

    def __repr__(self) -> str:
        return f"<Snapshot at {self._elapsed:.3f} s, {len(self)} values>"


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType({key: _frozen(inner) for key, inner in value.items()})
    if isinstance(value, list):
        return tuple(_frozen(inner) for inner in value)
    return value


def _stat(values: Mapping[str, Any]) -> Stat:
    def number(name: str) -> Optional[float]:
        value = values.get(name)
        return None if value is None else float(value)
    return Stat(number("total"), number("peak"), number("mean"), number("min"), number("last"), number("at"),
                values.get("mark"))


def stats(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Stat]:
    """The `metrics` of a summary, or of a part of one."""
    return {key: _stat(values) for key, values in metrics.items()}


class Summary(Mapping[str, Stat]):
    """The account of a run, read-only: `summary["mem.pss"].peak`.

    What the mapping does not have is in `data`, the whole summary as doc/summary.md explains it.

        >>> s = Summary('{"metrics": {"cpu.time": {"total": 2.5}}, "absent": []}')
        >>> s["cpu.time"].total
        2.5
    """

    __slots__ = ("_data", "_stats", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._data: Mapping[str, Any] = _frozen(json.loads(text))
        self._stats = stats(self._data["metrics"])

    def __getitem__(self, key: str) -> Stat:
        if key not in self._stats:
            reasons = [row.get("reason") for row in self._data.get("absent", ()) if row.get("metric") == key]
            raise KeyError(f"{key}: {reasons[0]}" if reasons else key)
        return self._stats[key]

    def __contains__(self, key: object) -> bool:
        return key in self._stats

    def __iter__(self) -> Iterator[str]:
        return iter(self._stats)

    def __len__(self) -> int:
        return len(self._stats)

    @property
    def data(self) -> Mapping[str, Any]:
        """Everything in it, read-only."""
        return self._data

    @property
    def text(self) -> str:
        """The same as JSON."""
        return self._text

    @property
    def id(self) -> str:
        """The run's id."""
        return str(self._data["run"]["id"])

    @property
    def duration(self) -> float:
        """Seconds."""
        return float(self._data["run"]["duration"])

    @property
    def phases(self) -> tuple[Mapping[str, Any], ...]:
        """What each phase used: `name`, `start`, `seconds`, `metrics`."""
        found: tuple[Mapping[str, Any], ...] = self._data.get("phases", ())
        return found

    @property
    def absent(self) -> Mapping[str, str]:
        """Why a metric is absent."""
        return {row["metric"]: row["reason"] for row in self._data.get("absent", ())}

    def __repr__(self) -> str:
        return f"<Summary of {self._data.get('run', {}).get('id')}, {len(self)} metrics>"
