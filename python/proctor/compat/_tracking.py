# SPDX-License-Identifier: Apache-2.0
"""The trackers of resource-tracker, of both versions: samples and their differences, once a call or in a loop."""
from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, Callable, Optional

from proctor import Snapshot
from proctor.compat import _columns, _kernel
from proctor.compat._columns import Column


class Tracker:
    """What a version differs in are these."""

    COLUMNS: Sequence[Column] = ()
    LINE_END = "\n"
    STAMP_DIGITS: Optional[int] = None

    def __init__(self, interval: float, start_time: Optional[float] = None) -> None:
        self.status = "running"
        self.interval = interval
        self.cycle = 0
        self.start_time = time.time() if start_time is None else start_time
        self.stats: dict[str, Any] = {}
        self._last: Optional[Snapshot] = None

    def __call__(self) -> None:
        """Nothing: it can be called, as the original can."""

    def _stamp(self, seconds: float) -> float:
        return seconds if self.STAMP_DIGITS is None else round(seconds, self.STAMP_DIGITS)

    def _look(self) -> Optional[Snapshot]:
        """A sample, and `stats` of it; None once there is nothing to watch."""
        raise NotImplementedError

    def _row(self, found: Snapshot, last: Optional[Snapshot]) -> dict[str, Any]:
        return {"timestamp": self._stamp(found.time / 1e9), **_columns.cells(self.COLUMNS, found, last)}

    def _last_row(self) -> dict[str, Any]:
        return {"timestamp": self._stamp(time.time()), **dict.fromkeys((c.name for c in self.COLUMNS), 0)}

    def diff_stats(self) -> dict[str, Any]:
        """What was used since the call before."""
        found = self._look()
        self.cycle += 1
        if found is None:
            self.status = "exited"
            return self._last_row()
        last, self._last = self._last, found
        return self._row(found, last)

    def _next_row(self) -> Optional[dict[str, Any]]:
        if not self.cycle and self._last is not None and time.time() - self._last.time / 1e9 < self.interval / 2:
            # The loop begins with the sample of the constructor: between two at once there is nothing to measure.
            self.cycle += 1
            return self._row(self._last, None)
        row = self.diff_stats()
        return None if self.status == "exited" else row

    def start_tracking(self, output_file: Optional[str] = None, print_header: bool = True) -> None:
        """Writes a row each interval to the file, or to standard output, until the process ends."""
        _columns.track(self._next_row, output_file, self.interval, print_header, self.LINE_END, time.monotonic())

    def _begin(self, autostart: bool, output_file: Optional[str]) -> None:
        self._last = self._look()
        if autostart:
            time.sleep(max(0.0, self.start_time - time.time()))
            self.start_tracking(output_file)


class TreeTracker(Tracker):
    """Of a process and its children."""

    NO_CHILDREN: Optional[int] = 0
    """What stands there for none."""

    def __init__(self, pid: Optional[int], children: bool, interval: float, start_time: Optional[float],
                 stats: Callable[[_kernel.Tree, Optional[Snapshot]], dict[str, Any]]) -> None:
        super().__init__(interval, start_time)
        self.pid = os.getpid() if pid is None else pid
        self.children = children
        self._tree = _kernel.Tree(self.pid, children)
        self._stats = stats

    def _look(self) -> Optional[Snapshot]:
        found = self._tree.look()
        self.stats = self._stats(self._tree, found)
        return found

    def _who(self, row: dict[str, Any]) -> dict[str, Any]:
        count = self.stats["children"]
        return {"timestamp": row["timestamp"], "pid": self.pid, "children": self.NO_CHILDREN if count == 0 else count,
                **row}

    def _row(self, found: Snapshot, last: Optional[Snapshot]) -> dict[str, Any]:
        return self._who(super()._row(found, last))

    def _last_row(self) -> dict[str, Any]:
        return self._who(super()._last_row())


class MachineTracker(Tracker):
    """Of the machine."""

    def __init__(self, interval: float, start_time: Optional[float],
                 stats: Callable[[Snapshot], dict[str, Any]]) -> None:
        super().__init__(interval, start_time)
        self._machine = _kernel.Machine()
        self._stats = stats

    def _look(self) -> Optional[Snapshot]:
        found = self._machine.look()
        self.stats = self._stats(found)
        return found
