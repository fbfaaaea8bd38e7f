# SPDX-License-Identifier: Apache-2.0
"""`ProcessTracker` and `SystemTracker`: loops that write CSV. `ResourceTracker` does it in the background."""
from __future__ import annotations

import warnings
from typing import Any, Optional

from proctor import Snapshot
from proctor.compat import _kernel
from proctor.compat._columns import Column
from proctor.compat._tracking import MachineTracker, TreeTracker

from . import _readings
from ._background import ResourceTracker
from .tracker_procfs import get_process_stats, get_system_stats, stats_of_machine, stats_of_tree

__all__ = ["PidTracker", "ProcessTracker", "ResourceTracker", "SystemTracker"]

_PROCESS = (
    Column("utime", "cpu.user", digits=6, growth=True),
    Column("stime", "cpu.system", digits=6, growth=True),
    Column("cpu_usage", "cpu.usage", digits=4, zero=True),
    Column("memory_mib", "mem.pss", scale=_kernel.MIB, digits=4),
    Column("disk_read_bytes", "io.read", growth=True),
    Column("disk_write_bytes", "io.write", growth=True),
    Column("gpu_usage", "gpu.usage", digits=4, zero=True),
    Column("gpu_vram_mib", "gpu.mem", scale=_kernel.MIB, digits=4, zero=True),
    Column("gpu_utilized", "gpu.count", zero=True),
)
_SYSTEM = (
    Column("processes", "system.procs"),
    Column("utime", "system.cpu.user", digits=6, growth=True),
    Column("stime", "system.cpu.system", digits=6, growth=True),
    Column("cpu_usage", "system.cpu.usage", digits=4, zero=True),
    *(Column(f"memory_{name}_mib", f"system.mem.{name}", scale=_kernel.MIB, digits=4)
      for name in ("free", "used", "buffers", "cached", "active", "inactive")),
    Column("disk_read_bytes", "system.disk.read", growth=True),
    Column("disk_write_bytes", "system.disk.write", growth=True),
    *(Column(f"disk_space_{name}_gb", f"system.disk.space.{name}", scale=1e9, digits=2)
      for name in ("total", "used", "free")),
    Column("net_recv_bytes", "system.net.rx", growth=True),
    Column("net_sent_bytes", "system.net.tx", growth=True),
    Column("gpu_usage", "system.gpu.usage", digits=4, zero=True),
    Column("gpu_vram_mib", "system.gpu.mem", scale=_kernel.MIB, digits=4, zero=True),
    Column("gpu_utilized", "system.gpu.count", zero=True),
)


class ProcessTracker(TreeTracker):
    """Writes what a process and its children use as CSV. With `autostart` the constructor is the loop.

        >>> tracker = ProcessTracker(autostart=False)
        >>> tracker.diff_stats()["memory_mib"] > 1
        True
    """

    COLUMNS = _PROCESS
    STAMP_DIGITS = 3
    NO_CHILDREN = None

    def __init__(self, pid: Optional[int] = None, start_time: Optional[float] = None, interval: float = 1,
                 children: bool = True, autostart: bool = True, output_file: Optional[str] = None) -> None:
        super().__init__(pid, children, interval, start_time, stats_of_tree)
        self.get_process_stats = get_process_stats
        self._begin(autostart, output_file)

    def _row(self, found: Snapshot, last: Optional[Snapshot]) -> dict[str, Any]:
        return _readings.with_whole_memory(super()._row(found, last), found, "memory_mib")


class PidTracker(ProcessTracker):
    """The older name of `ProcessTracker`.

        >>> with warnings.catch_warnings(record=True):
        ...     isinstance(PidTracker(autostart=False), ProcessTracker)
        True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn("PidTracker is called ProcessTracker now", DeprecationWarning, stacklevel=2)
        super().__init__(*args, **kwargs)


class SystemTracker(MachineTracker):
    """Writes what the machine uses as CSV. With `autostart` the constructor is the loop, which has no end.

        >>> SystemTracker(autostart=False).diff_stats()["memory_used_mib"] > 0
        True
    """

    COLUMNS = _SYSTEM
    STAMP_DIGITS = 3

    def __init__(self, start_time: Optional[float] = None, interval: float = 1, autostart: bool = True,
                 output_file: Optional[str] = None) -> None:
        super().__init__(interval, start_time, stats_of_machine)
        self.get_system_stats = get_system_stats
        self._begin(autostart, output_file)
