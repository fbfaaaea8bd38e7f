# SPDX-License-Identifier: Apache-2.0
"""A CSV file as it grows, and frames of it."""
from __future__ import annotations

import csv
from typing import Any, Optional

from .column_maps import BYTE_MAPPING, HUMAN_NAMES_MAPPING
from .tiny_data_frame import TinyDataFrame, typed

_Columns = dict[str, list[Any]]


class Growing:
    """Each line is read once. Half a line waits for its end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._at = 0
        self._columns: _Columns = {}

    def columns(self) -> _Columns:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return self._columns
        data = data[:data.rfind(b"\n") + 1]
        self._at += len(data)
        rows = list(csv.reader(data.decode("utf-8").splitlines()))
        if rows and not self._columns:
            self._columns = {name: [] for name in rows.pop(0)}
        for row in rows:
            for column, cell in zip(self._columns.values(), row):
                column.append(typed(cell))
        return self._columns


def part(columns: _Columns, prefix: str) -> _Columns:
    """The columns of process or system in the table that has both."""
    return {"timestamp": columns.get("timestamp", []),
            **{name[len(prefix):]: cells for name, cells in columns.items() if name.startswith(prefix)}}


def frame(columns: _Columns, children: bool = True) -> TinyDataFrame:
    """Without the first row where there are more: it is where counting begins, and has no interval."""
    start = 1 if len(columns.get("timestamp", ())) > 1 else 0
    made = TinyDataFrame({name: cells[start:] for name, cells in columns.items()} if columns.get("timestamp") else [])
    if children and "children" in made.columns:
        made["children"] = [cell or 0 for cell in made["children"]]
    return made


def in_bytes(made: TinyDataFrame) -> TinyDataFrame:
    """MiB and GB as bytes, under the same names."""
    for name, factor in BYTE_MAPPING.items():
        if name in made.columns:
            made[name] = [None if cell is None else cell * factor for cell in made[name]]
    return made


def combined(system: TinyDataFrame, process: TinyDataFrame, interval: float, human: bool, system_prefix: Optional[str],
             process_prefix: Optional[str]) -> TinyDataFrame:
    """Side by side, by time. One of them may be empty."""
    before = {"system": "System " if human else "system_", "process": "Process " if human else "process_"}
    parts = []
    if len(system):
        parts.append((system, before["system"] if system_prefix is None else system_prefix))
    if len(process):
        parts.append((process, before["process"] if process_prefix is None else process_prefix))
    if len(parts) == 2:
        pairs = _pairs(system["timestamp"], process["timestamp"], interval / 2)
        parts = [(_rows(made, [pair[i] for pair in pairs]), prefix) for i, (made, prefix) in enumerate(parts)]
    if not parts or not len(parts[0][0]):
        return TinyDataFrame([])
    found: _Columns = {"Timestamp" if human else "timestamp": parts[0][0]["timestamp"]}
    for made, prefix in parts:
        found.update({prefix + (HUMAN_NAMES_MAPPING.get(name, name) if human else name): made[name]
                      for name in made.columns if name != "timestamp"})
    return TinyDataFrame(found)


def _rows(made: TinyDataFrame, places: list[int]) -> TinyDataFrame:
    return TinyDataFrame({name: [made[name][i] for i in places] for name in made.columns})


def _pairs(these: list[float], those: list[float], apart: float) -> list[tuple[int, int]]:
    """The rows that are of the same time, each once."""
    found = []
    i = j = 0
    while i < len(these) and j < len(those):
        if abs(these[i] - those[j]) <= apart:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif these[i] < those[j]:
            i += 1
        else:
            j += 1
    return found
