# SPDX-License-Identifier: Apache-2.0
"""`resource_tracker.tracker` 0.1 over libproctor: ticks, kB, and GiB that are called GB."""
from __future__ import annotations

import time
from typing import Any, Optional

from proctor import Snapshot
from proctor.compat import _columns, _kernel
from proctor.compat._columns import Column
from proctor.compat._tracking import MachineTracker, TreeTracker

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
    """Whether a block device of this machine is a part of another."""
    return _kernel.is_partition(disk_name)


def get_pid_children(pid: int) -> set[int]:
    """All descendants, whichever thread has started them."""
    return _kernel.descendants(pid)


def get_pid_rss(pid: int) -> int:
    """kB; 0 where there is no such process."""
    return int(_kernel.one(pid, "mem.rss")) // _kernel.KIB


def get_pid_pss_rollup(pid: int) -> int:
    """kB; 0 where there is no such process, or it may not be read."""
    return int(_kernel.one(pid, "mem.pss")) // _kernel.KIB


def get_pid_proc_times(pid: int, children: bool = True) -> dict[str, int]:
    """`utime` and `stime` in ticks; with `children` those that it has waited for, too."""
    found = _kernel.times(pid, children)
    return {"utime": found.user, "stime": found.system}


def get_pid_proc_io(pid: int) -> dict[str, int]:
    """Every line of `/proc/PID/io`."""
    return _kernel.io(pid)


def _stats_of_tree(tree: _kernel.Tree, found: Optional[Snapshot]) -> dict[str, Any]:
    values: Any = found if found is not None else {}
    gpus = {i for i, gpu in enumerate(_gpus(found)) if gpu.get("gpu.job.mem", 0.0) > 0}
    return {
        "timestamp": found.time / 1e9 if found is not None else time.time(),
        "pid": tree.pid,
        "children": max(0, int(values.get("procs", 1)) - 1) if tree.children else None,
        "utime": int(tree.total(found, "cpu.user") / _TICK),
        "stime": int(tree.total(found, "cpu.system") / _TICK),
        "pss": int(values.get("mem.pss", 0)) // _kernel.KIB,
        "read_bytes": int(tree.total(found, "io.read")),
        "write_bytes": int(tree.total(found, "io.write")),
        "gpu_usage": values.get("gpu.usage", 0),
        "gpu_vram": values.get("gpu.mem", 0) / _kernel.MIB,
        "gpu_utilized": int(values.get("gpu.count", 0)),
        "gpu_utilized_indexes": gpus,
    }


def _gpus(found: Optional[Snapshot]) -> list[Any]:
    return [device for device in found.devices if device.kind == "gpu"] if found is not None else []


def get_pid_stats(pid: int, children: bool = True) -> dict[str, Any]:
    """What a process, with its descendants, uses now; counters are of their lives. Zeros where there is none."""
    tree = _kernel.Tree(pid, children)
    return _stats_of_tree(tree, tree.look())


def _memory(found: Snapshot) -> dict[str, Any]:
    """Used is what is neither free nor kept for files, as this version has it."""
    rows = _columns.cells(_MEMORY, found, None)
    rest = (found.get(f"system.mem.{name}", 0.0) for name in ("free", "buffers", "cached"))
    rows["memory_used"] = int(found.get("system.mem.total", 0.0) - sum(rest)) // _kernel.KIB
    return rows


def _stats_of_machine(found: Snapshot) -> dict[str, Any]:
    ticks, net, spaces = _kernel.cpu_ticks(), _kernel.net_bytes(found), _kernel.disk_spaces(found)
    stats = {
        "timestamp": found.time / 1e9,
        "processes": int(found.get("system.procs", 0)),
        "utime": ticks.user,
        "stime": ticks.system,
        **_memory(found),
        "disk_stats": {name: {"read_sectors": sectors.came, "write_sectors": sectors.went}
                       for name, sectors in _kernel.disk_sectors(found).items()},
        "disk_spaces": spaces,
        "net_recv_bytes": net.came,
        "net_sent_bytes": net.went,
        "gpu_usage": found.get("system.gpu.usage", 0),
        "gpu_vram": found.get("system.gpu.mem", 0) / _kernel.MIB,
        "gpu_utilized": int(found.get("system.gpu.count", 0)),
    }
    pools = {name[4:]: space for name, space in spaces.items() if name.startswith("zfs:")}
    return {**stats, "zfs_pools": pools} if pools else stats


def get_system_stats() -> dict[str, Any]:
    """What the machine uses now; counters since it was started. `disk_stats` has `read_sectors` and
    `write_sectors` of 512 bytes for each disk, `disk_spaces` the bytes of each file system."""
    return _stats_of_machine(_kernel.Machine().look())


class PidTracker(TreeTracker):
    """Writes what a process and its children use as CSV. With `autostart` the constructor is the loop."""

    COLUMNS = _PROCESS
    LINE_END = "\r\n"

    def __init__(self, pid: Optional[int] = None, interval: float = 1, children: bool = True, autostart: bool = True,
                 output_file: Optional[str] = None) -> None:
        super().__init__(pid, children, interval, None, _stats_of_tree)
        self._begin(autostart, output_file)


class SystemTracker(MachineTracker):
    """Writes what the machine uses as CSV. With `autostart` the constructor is the loop, which has no end."""

    COLUMNS = _SYSTEM
    LINE_END = "\r\n"

    def __init__(self, interval: float = 1, autostart: bool = True, output_file: Optional[str] = None) -> None:
        super().__init__(interval, None, _stats_of_machine)
        self.sector_sizes = _kernel.sector_sizes()
        self._begin(autostart, output_file)

    def _row(self, found: Snapshot, last: Optional[Snapshot]) -> dict[str, Any]:
        return {**super()._row(found, last), **_memory(found)}
