# SPDX-License-Identifier: Apache-2.0
"""`resource_tracker.tracker` 0.1 over libproctor: ticks, kB, and GiB that are called GB."""
from __future__ import annotations

import time
from typing import Any, Optional

from proctor import Snapshot
from proctor.compat import _columns, _kernel
from proctor.compat._columns import Column
from proctor.compat._tracking import MachineTracker, TreeTracker
from proctor.compat.resource_tracker import _readings

__all__ = ["PidTracker", "SystemTracker", "get_pid_children", "get_pid_proc_io", "get_pid_proc_times",
           "get_pid_pss_rollup", "get_pid_rss", "get_pid_stats", "get_system_stats", "is_partition"]

_TICK = 1.0 / _kernel.TICKS
_GIB = 1024.0 ** 3
_ANY_DIGITS = 15
_PROCESS = (
    Column("utime", "cpu.user", scale=_TICK, growth=True),
    Column("stime", "cpu.system", scale=_TICK, growth=True),
    Column("cpu_usage", "cpu.usage", digits=4, zero=True),
    Column("pss", "mem.pss", scale=_kernel.KIB),
    Column("read_bytes", "io.read", growth=True),
    Column("write_bytes", "io.write", growth=True),
    Column("gpu_usage", "gpu.usage", digits=_ANY_DIGITS, zero=True),
    Column("gpu_vram", "gpu.mem", scale=_kernel.MIB, digits=_ANY_DIGITS, zero=True),
    Column("gpu_utilized", "gpu.count", zero=True),
)
_MEMORY = tuple(Column(f"memory_{name}", f"system.mem.{name.replace('_', '.')}", scale=_kernel.KIB)
                for name in ("free", "used", "buffers", "cached", "active_anon", "inactive_anon"))
_SYSTEM = (
    Column("processes", "system.procs"),
    Column("utime", "system.cpu.user", scale=_TICK, growth=True),
    Column("stime", "system.cpu.system", scale=_TICK, growth=True),
    Column("cpu_usage", "system.cpu.usage", digits=4, zero=True),
    *_MEMORY,
    Column("disk_read_bytes", "system.disk.read", growth=True),
    Column("disk_write_bytes", "system.disk.write", growth=True),
    *(Column(f"disk_space_{name}_gb", f"system.disk.space.{name}", scale=_GIB, digits=2)
      for name in ("total", "used", "free")),
    Column("net_recv_bytes", "system.net.rx", growth=True),
    Column("net_sent_bytes", "system.net.tx", growth=True),
    Column("gpu_usage", "system.gpu.usage", digits=_ANY_DIGITS, zero=True),
    Column("gpu_vram", "system.gpu.mem", scale=_kernel.MIB, digits=_ANY_DIGITS, zero=True),
    Column("gpu_utilized", "system.gpu.count", zero=True),
)


def is_partition(disk_name: str) -> bool:
    """Whether a block device of this machine is a part of another.

        >>> is_partition("no-such-disk")
        False
    """
    return _kernel.is_partition(disk_name)


def get_pid_children(pid: int) -> set[int]:
    """All descendants, whichever thread has started them.

        >>> get_pid_children(2 ** 22 + 1)
        set()
    """
    return _kernel.descendants(pid)


def get_pid_rss(pid: int) -> int:
    """kB; 0 where there is no such process.

        >>> import os
        >>> get_pid_rss(os.getpid()) > 1000
        True
    """
    return int(_kernel.one(pid, "mem.rss")) // _kernel.KIB


def get_pid_pss_rollup(pid: int) -> Optional[int]:
    """kB; 0 where there is no such process, None where it may not be read.

        >>> get_pid_pss_rollup(2 ** 22 + 1)
        0
    """
    return _readings.pss_kib(pid)


def get_pid_proc_times(pid: int, children: bool = True) -> dict[str, int]:
    """`utime` and `stime` in ticks; with `children` those that it has waited for, too.

        >>> import os
        >>> sorted(get_pid_proc_times(os.getpid()))
        ['stime', 'utime']
    """
    found = _kernel.times(pid, children)
    return {"utime": found.user, "stime": found.system}


def get_pid_proc_io(pid: int) -> dict[str, int]:
    """Every line of `/proc/PID/io`.

        >>> import os
        >>> get_pid_proc_io(os.getpid())["read_bytes"] >= 0
        True
    """
    return _kernel.io(pid)


def _stats_of_tree(tree: _kernel.Tree, found: Optional[Snapshot]) -> dict[str, Any]:
    def counted(key: str) -> Optional[int]:
        return int(tree.total(found, key)) if found is None or key in found else None

    pss = 0.0 if found is None else _readings.pss(found)
    count = 1 if found is None else found.get("procs", 1)
    return {
        "timestamp": found.time / 1e9 if found is not None else time.time(),
        "pid": tree.pid,
        "children": max(0, int(count) - 1) if tree.children else None,
        "utime": int(tree.total(found, "cpu.user") / _TICK),
        "stime": int(tree.total(found, "cpu.system") / _TICK),
        "pss": None if pss is None else int(pss) // _kernel.KIB,
        "read_bytes": counted("io.read"),
        "write_bytes": counted("io.write"),
        **_gpu_of_tree(found),
    }


def _gpu(found: _readings.Gpus) -> dict[str, Any]:
    return {"gpu_usage": found.usage, "gpu_vram": found.vram_mib, "gpu_utilized": found.utilized}


def _gpu_of_tree(found: Optional[Snapshot]) -> dict[str, Any]:
    gpus = _readings.gpus(found)
    return {**_gpu(gpus), "gpu_utilized_indexes": set(gpus.indexes)}


def get_pid_stats(pid: int, children: bool = True) -> dict[str, Any]:
    """What a process, with its descendants, uses now; counters are of their lives. Zeros where there is no such process
    or device; None where it is there and may not be read.

        >>> import os
        >>> stats = get_pid_stats(os.getpid())
        >>> stats["pid"] == os.getpid(), stats["pss"] > 1000
        (True, True)
    """
    tree = _kernel.Tree(pid, children)
    stats = _stats_of_tree(tree, tree.look())
    return {**stats, **_gpu_of_tree(_readings.told(tree.look, "gpu.usage"))}


def _memory(found: Snapshot) -> dict[str, Any]:
    """Used is what is neither free nor kept for files, as this version has it."""
    rows = _columns.cells(_MEMORY, found, None)
    parts = [found.get(f"system.mem.{name}") for name in ("total", "free", "buffers", "cached")]
    known = [value for value in parts if value is not None]
    rows["memory_used"] = int(known[0] - sum(known[1:])) // _kernel.KIB if len(known) == len(parts) else None
    return rows


def _stats_of_machine(found: Snapshot) -> dict[str, Any]:
    counted = _readings.that_count(found)
    ticks, net, spaces = _kernel.cpu_ticks(), _kernel.net_bytes(counted), _kernel.disk_spaces(found)
    stats = {
        "timestamp": found.time / 1e9,
        "processes": _readings.whole(found.get("system.procs")),
        "utime": ticks.user,
        "stime": ticks.system,
        **_memory(found),
        "disk_stats": {name: {"read_sectors": sectors.came, "write_sectors": sectors.went}
                       for name, sectors in _kernel.disk_sectors(counted).items()},
        "disk_spaces": spaces,
        "net_recv_bytes": net.came,
        "net_sent_bytes": net.went,
        **_gpu(_readings.gpus(found, "system.")),
    }
    pools = {name[4:]: space for name, space in spaces.items() if name.startswith("zfs:")}
    return {**stats, "zfs_pools": pools} if pools else stats


def get_system_stats() -> dict[str, Any]:
    """What the machine uses now; counters since it was started. `disk_stats` has `read_sectors` and
    `write_sectors` of 512 bytes for each disk, `disk_spaces` the bytes of each file system. None for what may not be
    read.

        >>> get_system_stats()["memory_used"] > 0
        True
    """
    return {**_stats_of_machine(_kernel.Machine().look()), **_gpu(_readings.gpus_of_machine())}


class PidTracker(TreeTracker):
    """Writes what a process and its children use as CSV. With `autostart` the constructor is the loop.

        >>> tracker = PidTracker(autostart=False)
        >>> tracker.diff_stats()["pid"] == tracker.pid
        True
    """

    COLUMNS = _PROCESS
    LINE_END = "\r\n"

    def __init__(self, pid: Optional[int] = None, interval: float = 1, children: bool = True, autostart: bool = True,
                 output_file: Optional[str] = None) -> None:
        super().__init__(pid, children, interval, None, _stats_of_tree)
        self._begin(autostart, output_file)

    def _row(self, found: Snapshot, last: Optional[Snapshot]) -> dict[str, Any]:
        return _readings.with_whole_memory(super()._row(found, last), found, "pss")


class SystemTracker(MachineTracker):
    """Writes what the machine uses as CSV. With `autostart` the constructor is the loop, which has no end.

        >>> SystemTracker(autostart=False).diff_stats()["memory_used"] > 0
        True
    """

    COLUMNS = _SYSTEM
    LINE_END = "\r\n"

    def __init__(self, interval: float = 1, autostart: bool = True, output_file: Optional[str] = None) -> None:
        super().__init__(interval, None, _stats_of_machine)
        self.sector_sizes = _kernel.sector_sizes()
        self._begin(autostart, output_file)

    def _row(self, found: Snapshot, last: Optional[Snapshot]) -> dict[str, Any]:
        return {**super()._row(found, last), **_memory(found)}
