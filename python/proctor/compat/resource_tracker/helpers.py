# SPDX-License-Identifier: Apache-2.0
"""Small things that the original offers."""
from __future__ import annotations

import csv
import importlib.util
import os
from collections.abc import Iterable
from multiprocessing.process import BaseProcess
from typing import Any, Callable, Union

from proctor.compat import _columns, _kernel

__all__ = ["aggregate_stats", "cleanup_files", "cleanup_processes", "get_tracker_implementation", "get_zfs_pools_space",
           "is_partition", "is_procfs_available", "is_psutil_available", "render_csv_row"]


def is_partition(disk_name: str) -> bool:
    """Whether a block device of this machine is a part of another.

        >>> is_partition("no-such-disk")
        False
    """
    return _kernel.is_partition(disk_name)


def is_psutil_available() -> bool:
    """Nothing here needs it.

        >>> is_psutil_available() in (True, False)
        True
    """
    return importlib.util.find_spec("psutil") is not None


def is_procfs_available() -> bool:
    """Everything here needs it.

        >>> is_procfs_available()
        True
    """
    return os.access("/proc", os.R_OK)


def get_tracker_implementation() -> tuple[Callable[..., dict[str, Any]], Callable[[], dict[str, Any]]]:
    """The functions that measure.

        >>> [function.__name__ for function in get_tracker_implementation()]
        ['get_process_stats', 'get_system_stats']
    """
    from .tracker_procfs import get_process_stats, get_system_stats

    return get_process_stats, get_system_stats


def get_zfs_pools_space() -> dict[str, dict[str, int]]:
    """Bytes of each pool: `total`, `used`, `free`.

        >>> all(pool["total"] >= pool["used"] for pool in get_zfs_pools_space().values())
        True
    """
    spaces = _kernel.disk_spaces(_kernel.Machine().look())
    return {name: space for name, space in spaces.items() if name.startswith("zfs:")}


def cleanup_files(files: list[str]) -> None:
    """Removes what is there.

        >>> import tempfile
        >>> _, path = tempfile.mkstemp()
        >>> cleanup_files([path, "/no/such/file"])
        >>> os.path.exists(path)
        False
    """
    for path in files:
        try:
            os.unlink(path)
        except OSError:
            continue


def cleanup_processes(processes: list[BaseProcess]) -> None:
    """Ends processes of multiprocessing, by force where they do not listen.

        >>> import multiprocessing, time
        >>> process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        >>> process.start()
        >>> cleanup_processes([process])
    """
    for process in processes:
        for end in (process.terminate, process.kill):
            if process.is_alive():
                end()
                process.join(timeout=1.0)
        if not process.is_alive():
            process.close()


def aggregate_stats(stats: list[dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Figures of several runs as one: the mean of `mean` and `duration`, the largest of `max` and `sum`.

        >>> aggregate_stats([{"cpu": {"mean": 1.0, "max": 2.0}}, {"cpu": {"mean": 3.0, "max": 1.0}}])
        {'cpu': {'mean': 2.0, 'max': 2.0}}
    """
    values: dict[str, dict[str, list[Any]]] = {}
    for one in stats:
        for column, figures in one.items():
            for name, value in figures.items():
                if name not in ("mean", "duration", "max", "sum"):
                    raise ValueError(f"Unsupported aggregation type: {name}")
                values.setdefault(column, {}).setdefault(name, []).append(value)
    return {column: {name: max(found) if name in ("max", "sum") else sum(found) / len(found)
                     for name, found in figures.items()} for column, figures in values.items()}


def render_csv_row(row: Iterable[Union[str, float, int, None]], quoting: int = csv.QUOTE_NONNUMERIC) -> bytes:
    r"""A line of CSV.

        >>> render_csv_row(["a", 1, None])
        b'"a",1,""\n'
    """
    return _columns.render(row, "\n", quoting)
