# SPDX-License-Identifier: Apache-2.0
"""What a process, its tree or the machine uses now. The name is that of the original's module."""
from __future__ import annotations

import time
from typing import Any, Optional

from proctor import Snapshot
from proctor.compat import _kernel

from . import _readings

__all__ = ["get_process_children", "get_process_proc_io", "get_process_proc_times", "get_process_pss_rollup",
           "get_process_rss", "get_process_stats", "get_sector_sizes", "get_system_stats"]


def get_sector_sizes() -> dict[str, int]:
    """Of each disk. What the kernel counts has 512 bytes, whatever it says here.

        >>> all(size > 0 for size in get_sector_sizes().values())
        True
    """
    return _kernel.sector_sizes()


def get_process_children(pid: int) -> set[int]:
    """All descendants.

        >>> get_process_children(2 ** 22 + 1)
        set()
    """
    return _kernel.descendants(pid)


def get_process_rss(pid: int) -> int:
    """KiB.

        >>> import os
        >>> get_process_rss(os.getpid()) > 1000
        True
    """
    return int(_kernel.one(pid, "mem.rss")) // _kernel.KIB


def get_process_pss_rollup(pid: int) -> Optional[int]:
    """KiB; None where it may not be read, where the original raises PermissionError.

        >>> get_process_pss_rollup(2 ** 22 + 1)
        0
    """
    return _readings.pss_kib(pid)


def get_process_proc_times(pid: int, children: bool = True) -> dict[str, int]:
    """`utime` and `stime` in ticks; with `children` those that it has waited for, too.

        >>> import os
        >>> sorted(get_process_proc_times(os.getpid()))
        ['stime', 'utime']
    """
    found = _kernel.times(pid, children)
    return {"utime": found.user, "stime": found.system}


def get_process_proc_io(pid: int) -> dict[str, int]:
    """Every line of `/proc/PID/io`.

        >>> import os
        >>> get_process_proc_io(os.getpid())["read_bytes"] >= 0
        True
    """
    return _kernel.io(pid)


def _gpu(found: _readings.Gpus) -> dict[str, Any]:
    return {"gpu_usage": found.usage, "gpu_vram_mib": found.vram_mib, "gpu_utilized": found.utilized}


def _gpu_of_tree(found: Optional[Snapshot]) -> dict[str, Any]:
    gpus = _readings.gpus(found)
    return {**_gpu(gpus), "gpu_utilized_indexes": set(gpus.indexes)}


def stats_of_tree(tree: _kernel.Tree, found: Optional[Snapshot]) -> dict[str, Any]:
    """The figures of `get_process_stats` from a look at a tree."""
    def counted(key: str) -> Optional[int]:
        return int(tree.total(found, key)) if found is None or key in found else None

    memory = 0.0 if found is None else _readings.pss(found)
    count = 1 if found is None else found.get("procs", 1)
    return {
        "timestamp": found.time / 1e9 if found is not None else time.time(),
        "pid": tree.pid,
        "children": max(0, int(count) - 1) if tree.children else None,
        "utime": tree.total(found, "cpu.user"),
        "stime": tree.total(found, "cpu.system"),
        "memory_mib": None if memory is None else memory / _kernel.MIB,
        "disk_read_bytes": counted("io.read"),
        "disk_write_bytes": counted("io.write"),
        **_gpu_of_tree(found),
    }


def get_process_stats(pid: int, children: bool = True) -> dict[str, Any]:
    """What a process, with its descendants, uses now; counters are of their lives. Zeros where there is no such process
    or device; None where it is there and may not be read.

        >>> import os
        >>> stats = get_process_stats(os.getpid())
        >>> stats["pid"] == os.getpid(), stats["memory_mib"] > 1
        (True, True)
    """
    tree = _kernel.Tree(pid, children)
    stats = stats_of_tree(tree, tree.look())
    return {**stats, **_gpu_of_tree(_readings.told(tree.look, "gpu.usage"))}


def stats_of_machine(found: Snapshot) -> dict[str, Any]:
    """The figures of `get_system_stats` from a look at the machine."""
    ticks = _kernel.cpu_ticks()
    counted = _readings.that_count(found)
    net = _kernel.net_bytes(counted)
    memory = {f"memory_{name}_mib": _readings.part(found, f"system.mem.{name}", _kernel.MIB)
              for name in ("free", "used", "buffers", "cached", "active", "inactive")}
    return {
        "timestamp": found.time / 1e9,
        "processes": _readings.whole(found.get("system.procs")),
        "utime": ticks.user / _kernel.TICKS,
        "stime": ticks.system / _kernel.TICKS,
        **memory,
        "disk_stats": {name: {"read_bytes": s.came * _kernel.SECTOR, "write_bytes": s.went * _kernel.SECTOR}
                       for name, s in _kernel.disk_sectors(counted).items()},
        "disk_spaces": _kernel.disk_spaces(found),
        "net_recv_bytes": net.came,
        "net_sent_bytes": net.went,
        **_gpu(_readings.gpus(found, "system.")),
    }


def get_system_stats() -> dict[str, Any]:
    """What the machine uses now; counters since it was started. None for what may not be read.

        >>> get_system_stats()["memory_used_mib"] > 0
        True
    """
    return {**stats_of_machine(_kernel.Machine().look()), **_gpu(_readings.gpus_of_machine())}
