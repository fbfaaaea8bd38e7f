# SPDX-License-Identifier: Apache-2.0
"""`TinyDataFrame`: columns of equal length, without pandas."""
from __future__ import annotations

import csv
import io
import logging
import time
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple, Optional, Union

__all__ = ["StatSpec", "TinyDataFrame"]

logger = logging.getLogger(__name__)

_SHOWN = 10


class StatSpec(NamedTuple):
    """A figure of a column: `agg` of its values, under `agg_name` or the name of the function.

        >>> TinyDataFrame({"a": [1.25, 3.5]}).stats([StatSpec("a", max, "most", round=1)])
        {'a': {'most': 3.5}}
    """

    column: str
    agg: Callable[[Any], Any]
    agg_name: Optional[str] = None
    round: Optional[int] = None


class TinyDataFrame:
    """Columns by name, rows by number.

        >>> df = TinyDataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
        >>> df["a"], df[0], len(df[1:])
        ([1, 2, 3], {'a': 1, 'b': 'x'}, 2)
        >>> df[["b"]].columns
        ['b']
        >>> print(df.head(2))
        TinyDataFrame with 2 rows and 2 columns:
        a | b
        --+--
        1 | x
        2 | y
    """

    def __init__(self, data: Union[dict[str, list[Any]], list[dict[str, Any]], None] = None,
                 csv_file_path: Optional[str] = None, retries: int = 0, retry_delay: float = 0.1) -> None:
        if (data is None) == (csv_file_path is None):
            raise AssertionError("one of data and csv_file_path is needed, and not both")
        if csv_file_path is not None:
            data = _read_again(csv_file_path, retries, retry_delay)
        self.columns: list[str] = []
        self._data: list[list[Any]] = []
        if isinstance(data, dict):
            self.columns, self._data = list(data), list(data.values())
        elif isinstance(data, list):
            self.columns = list(dict.fromkeys(name for row in data for name in row))
            self._data = [[row.get(name) for row in data] for name in self.columns]
        else:
            raise AssertionError("data is a dictionary of lists or a list of dictionaries")

    def __len__(self) -> int:
        return len(self._data[0]) if self._data else 0

    def _column(self, name: str) -> list[Any]:
        if name not in self.columns:
            raise KeyError(f"Column '{name}' not found")
        return self._data[self.columns.index(name)]

    def __getitem__(self, key: Union[str, list[str], int, slice]) -> Any:
        """A column, several, a row, or several."""
        if isinstance(key, str):
            return self._column(key)
        if isinstance(key, list):
            return TinyDataFrame({name: self._column(name) for name in key})
        if isinstance(key, int):
            return {name: column[key] for name, column in zip(self.columns, self._data)}
        if isinstance(key, slice):
            return TinyDataFrame({name: column[key] for name, column in zip(self.columns, self._data)})
        raise TypeError(f"Invalid key type: {type(key)}")

    def __setitem__(self, key: str, value: list[Any]) -> None:
        if not isinstance(key, str):
            raise TypeError(f"Column name must be a string, got {type(key)}")
        if len(self) and len(value) != len(self):
            raise ValueError(f"{len(value)} values for {len(self)} rows")
        if key in self.columns:
            self._data[self.columns.index(key)] = value
        else:
            self.columns.append(key)
            self._data.append(value)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    def head(self, n: int = 5) -> TinyDataFrame:
        """The first rows."""
        return TinyDataFrame({name: column[:n] for name, column in zip(self.columns, self._data)})

    def tail(self, n: int = 5) -> TinyDataFrame:
        """The last rows."""
        start = max(0, len(self) - n)
        return TinyDataFrame({name: column[start:] for name, column in zip(self.columns, self._data)})

    def __repr__(self) -> str:
        first = self[0] if len(self) else {}
        return (f"TinyDataFrame with {len(self)} rows and {len(self.columns)} columns. "
                f"First row as a dict: {first}")

    def __str__(self) -> str:
        title = f"TinyDataFrame with {len(self)} rows and {len(self.columns)} columns:\n"
        if not len(self):
            return title + "Empty dataframe"
        rows = [[str(cell) for cell in row] for row in zip(*(column[:_SHOWN] for column in self._data))]
        widths = [max(map(len, texts)) for texts in zip(self.columns, *rows)]
        lines = [" | ".join(name.ljust(width) for name, width in zip(self.columns, widths)),
                 "-+-".join("-" * width for width in widths),
                 *(" | ".join(map(_aligned, row, widths)) for row in rows)]
        if len(self) > _SHOWN:
            lines.append("...".ljust(len(lines[0])))
        return title + "\n".join(lines)

    def rename(self, columns: dict[str, str]) -> TinyDataFrame:
        """Other names for columns; gives itself."""
        for name in columns:
            self._column(name)
        self.columns = [columns.get(name, name) for name in self.columns]
        return self

    def to_csv(self, csv_file_path: Optional[str] = None, quote_strings: bool = True) -> Optional[str]:
        """Into a file, or as a text where none is named."""
        buffer = io.StringIO(newline="")
        writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC if quote_strings else csv.QUOTE_MINIMAL)
        writer.writerow(self.columns)
        writer.writerows(zip(*self._data))
        if csv_file_path is None:
            return buffer.getvalue()
        with open(csv_file_path, "w", newline="", encoding="utf-8") as file:
            file.write(buffer.getvalue())
        return None

    def to_dict(self) -> list[dict[str, Any]]:
        """Rows."""
        return list(self)

    def stats(self, specs: list[StatSpec]) -> dict[str, dict[str, Any]]:
        """Figures as `{column: {name: value}}`, of the values that are known.

            >>> TinyDataFrame({"a": [1, None, 3]}).stats([StatSpec("a", max), StatSpec("a", sum, "all")])
            {'a': {'max': 3, 'all': 4}}
        """
        found: dict[str, dict[str, Any]] = {}
        for spec in specs:
            name = spec.agg_name or spec.agg.__name__
            try:
                known = [cell for cell in self._column(spec.column) if cell is not None]
                if not known:
                    continue  # there is no figure of nothing
                value = spec.agg(known)
                found.setdefault(spec.column, {})[name] = value if spec.round is None else round(value, spec.round)
            except Exception as e:  # an agg is anybody's function
                logger.error("No %s of %s: %s", name, spec.column, e)
        return found


def _aligned(text: str, width: int) -> str:
    try:
        float(text)
    except ValueError:
        return text.ljust(width)
    return text.rjust(width)


def typed(text: Optional[str]) -> Union[int, float, str, None]:
    """A cell: a number where it is one, None where it is empty."""
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _read(path: str) -> list[dict[str, Any]]:
    if path.startswith(("http://", "https://")):
        from urllib.request import urlopen

        with urlopen(path) as answer:
            text = answer.read().decode("utf-8")
    else:
        with open(path, newline="", encoding="utf-8") as file:
            text = file.read()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    if any(None in row for row in rows):
        raise ValueError("a row has more cells than the header")
    return [{name: typed(cell) for name, cell in row.items()} for row in rows]


def _read_again(path: str, retries: int, delay: float) -> list[dict[str, Any]]:
    while True:
        try:
            return _read(path)
        except Exception as e:
            if retries <= 0:
                raise RuntimeError(f"Failed to read CSV file: {path}") from e
            retries -= 1
            time.sleep(delay)
            delay *= 2
