# SPDX-License-Identifier: Apache-2.0
"""Rows of CSV from snapshots, by tables of columns, and the loop that writes them."""
from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Iterable, Sequence
from typing import IO, Any, Callable, NamedTuple, Optional, Union

from proctor import Snapshot

Row = dict[str, Any]


class Column(NamedTuple):
    """A name, where its value is from, and how it is written."""

    name: str
    key: str
    scale: float = 1.0
    digits: Optional[int] = None
    """None: a whole number, cut off."""
    growth: bool = False
    """Since the sample before."""
    zero: bool = False
    """0 where it is not known: there is no such device, or no sample before."""


def _number(value: float, before: float, column: Column) -> Union[int, float]:
    if column.digits is not None:
        return round((value - before) / column.scale, column.digits)
    # Each end is cut off by itself, so that no part is lost from the sum of rows.
    return int(value / column.scale + 1e-6) - int(before / column.scale + 1e-6)


def cells(columns: Sequence[Column], now: Snapshot, last: Optional[Snapshot]) -> Row:
    """None where a value is absent."""
    found: Row = {}
    for column in columns:
        value = now.get(column.key, 0.0 if column.zero else None)
        before = 0.0
        if value is not None and column.growth:
            before = last.get(column.key, 0.0) if last is not None else value
        found[column.name] = None if value is None else _number(value, before, column)
    return found


def render(row: Iterable[Any], end: str, quoting: Any = csv.QUOTE_NONNUMERIC) -> bytes:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=quoting, lineterminator=end).writerow(row)
    return buffer.getvalue().encode("utf-8")


class _Out:
    """A file that is replaced, or standard output."""

    def __init__(self, path: Optional[str]) -> None:
        self._file: Optional[IO[bytes]] = open(path, "wb") if path else None

    def write(self, data: bytes) -> None:
        if self._file is not None:
            self._file.write(data)
            self._file.flush()
        else:
            sys.stdout.write(data.decode())
            sys.stdout.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def track(next_row: Callable[[], Optional[Row]], output_file: Optional[str], interval: float, header: bool, end: str,
          start: float) -> None:
    """Writes a row at `start` (of the monotonic clock) and each `interval`, until there is none. What was missed
    is left out."""
    out = _Out(output_file)
    try:
        turn = 0
        while True:
            row = next_row()
            if row is None:
                return
            if header:
                out.write(render(row.keys(), end))
                header = False
            out.write(render(row.values(), end))
            turn = max(turn + 1, int((time.monotonic() - start) / interval) + 1)
            time.sleep(max(0.0, start + turn * interval - time.monotonic()))
    finally:
        out.close()
