# SPDX-License-Identifier: Apache-2.0
"""What a process, its tree or the machine uses now. The name is that of the original's module."""
from __future__ import annotations

import time
from typing import Any, Optional

from proctor import Snapshot
from proctor.compat import _kernel

__all__ = ["get_process_children", "get_process_proc_io", "get_process_proc_times", "get_process_pss_rollup",
           "get_process_rss", "get_process_stats", "get_sector_sizes", "get_system_stats"]


def get_sector_sizes() -> dict[str, int]:
    """Of each disk. What the kernel counts has 512 bytes, whatever it says here."""
    return _kernel.sector_sizes()


def get_process_children(pid: int) -> set[int]:
    """All descendants.

        >>> get_process_children(2 ** 22 + 1)
        set()
    """
    return _kernel.descendants(pid)


def get_process_rss(pid: int) -> int:
    """KiB."""
    return int(_kernel.one(pid, "mem.rss")) // _kernel.KIB


def get_process_pss_rollup(pid: int) -> int:
    """KiB."""
    return int(_kernel.one(pid, "mem.pss")) // _kernel.KIB


def get_process_proc_times(pid: int, children: bool = True) -> dict[str, int]:
    """`utime` and `stime` in ticks; with `children` those that it has waited for, too."""
    found = _kernel.times(pid, children)
    return {"utime": found.user, "stime": found.system}


def get_process_proc_io(pid: int) -> dict[str, int]:
    """Every line of `/proc/PID/io`."""
    return _kernel.io(pid)


def stats_of_tree(tree: _kernel.Tree, found: Optional[Snapshot]) -> dict[str, Any]:
    """The figures of `get_process_stats` from a look at a tree."""
    values: Any = found if found is not None else {}
    return {
        "timestamp": found.time / 1e9 if found is not None else time.time(),
        "pid": tree.pid,
        "children": max(0, int(values.get("procs", 1)) - 1) if tree.children else None,
        "utime": tree.total(found, "cpu.user"),
        "stime": tree.total(found, "cpu.system"),
        "memory_mib": values.get("mem.pss", 0.0) / _kernel.MIB,
        "disk_read_bytes": int(tree.total(found, "io.read")),
        "disk_write_bytes": int(tree.total(found, "io.write")),
        "gpu_usage": values.get("gpu.usage", 0.0),
        "gpu_vram_mib": values.get("gpu.mem", 0.0) / _kernel.MIB,
        "gpu_utilized": int(values.get("gpu.count", 0)),
    }


def get_process_stats(pid: int, children: bool = True) -> dict[str, Any]:
    """What a process, with its descendants, uses now; counters are of their lives. Zeros where there is none.

        >>> import os
        >>> stats = get_process_stats(os.getpid())
        >>> stats["pid"] == os.getpid(), stats["memory_mib"] > 1
        (True, True)
    """
    tree = _kernel.Tree(pid, children)
    return stats_of_tree(tree, tree.look())


def stats_of_machine(found: Snapshot) -> dict[str, Any]:
    """The figures of `get_system_stats` from a look at the machine."""
    ticks = _kernel.cpu_ticks()
    net = _kernel.net_bytes(found)
    memory = {f"memory_{name}_mib": found.get(f"system.mem.{name}", 0.0) / _kernel.MIB
              for name in ("free", "used", "buffers", "cached", "active", "inactive")}
    return {
        "timestamp": found.time / 1e9,
        "processes": int(found.get("system.procs", 0)),
        "utime": ticks.user / _kernel.TICKS,
        "stime": ticks.system / _kernel.TICKS,
        **memory,
        "disk_stats": {name: {"read_bytes": s.came * _kernel.SECTOR, "write_bytes": s.went * _kernel.SECTOR}
                       for name, s in _kernel.disk_sectors(found).items()},
        "disk_spaces": _kernel.disk_spaces(found),
        "net_recv_bytes": net.came,
        "net_sent_bytes": net.went,
        "gpu_usage": found.get("system.gpu.usage", 0.0),
        "gpu_vram_mib": found.get("system.gpu.mem", 0.0) / _kernel.MIB,
        "gpu_utilized": int(found.get("system.gpu.count", 0)),
    }


def get_system_stats() -> dict[str, Any]:
    """What the machine uses now; counters since it was started.

        >>> get_system_stats()["memory_used_mib"] > 0
        True
    """
    return stats_of_machine(_kernel.Machine().look())
