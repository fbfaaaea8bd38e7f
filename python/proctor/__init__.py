# SPDX-License-Identifier: Apache-2.0
"""proctor: watch a job, keep an exact account of what it used.

    >>> import proctor
    >>> with proctor.Monitor(interval=0.05) as m:      # this process and its children
    ...     with m.phase("work"):
    ...         total = sum(i * i for i in range(100_000))
    >>> m.summary["cpu.time"].total > 0
    True

Sampling is done by a native thread of libproctor, without the interpreter.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from proctor._decorator import monitored
from proctor._library import Error, command, metrics, version
from proctor._monitor import Monitor
from proctor._run import Run, run
from proctor._values import Device, Metric, Process, Snapshot, Stat, Summary

__all__ = ["Device", "Error", "Metric", "Monitor", "Process", "Run", "Snapshot", "Stat", "Summary", "command",
           "metrics", "monitored", "run", "version"]

if TYPE_CHECKING:
    __version__: str
else:
    def __getattr__(name: str) -> str:
        """`__version__` is the library's, which is loaded at its first use."""
        if name != "__version__":
            raise AttributeError(f"module 'proctor' has no attribute {name!r}")
        return version()


def load_ipython_extension(shell: object) -> None:
    """`%load_ext proctor`: the cell magic `%%proctor`."""
    from proctor._magic import register
    register(shell)
