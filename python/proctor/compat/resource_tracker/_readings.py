# SPDX-License-Identifier: Apache-2.0
"""What both versions make of snapshots: sums that are complete, devices in which each byte is once, GPUs."""
from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple, Optional

from proctor import Snapshot
from proctor.compat import _kernel
from proctor.compat._watch import is_complete, watch

_PATIENCE = 1.5
"""Seconds for a GPU's driver: use of a GPU is known by its second reading, a second after the first."""
_LINKS = ("1", "32")
"""Ethernet and InfiniBand, as sysfs has them: no tunnels."""


# --- memory


def pss(found: Snapshot) -> Optional[float]:
    """Bytes of a tree."""
    return found.get("mem.pss") if is_complete(found, "mem.pss") else None


def pss_kib(pid: int) -> Optional[int]:
    """Of one process: 0 where there is none, None where it may not be read."""
    found = int(_kernel.one(pid, "mem.pss")) // _kernel.KIB
    return found if found or not _kernel.one(pid, "mem.rss") else None


def with_whole_memory(row: dict[str, Any], found: Snapshot, name: str) -> dict[str, Any]:
    """A row in which memory of that name is complete, or None."""
    return row if is_complete(found, "mem.pss") else {**row, name: None}


def part(found: Snapshot, key: str, unit: float = 1.0) -> Optional[float]:
    """A value in that unit; None where it is absent."""
    value = found.get(key)
    return None if value is None else value / unit


def whole(value: Optional[float]) -> Optional[int]:
    return None if value is None else int(value)


# --- devices


def _entries(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def _is_link(name: str) -> bool:
    try:
        with open(f"/sys/class/net/{name}/type", encoding="ascii") as file:
            return file.read().strip() in _LINKS
    except OSError:
        return True  # of another namespace


def _interfaces(names: list[str]) -> Iterable[str]:
    """Where bytes enter or leave: at hardware, and in a container, which has none, at what stands on no other."""
    known = {name: _entries(f"/sys/class/net/{name}") for name in names}
    lower = {name: {entry[6:] for entry in known[name] if entry.startswith("lower_")} for name in names}
    hardware = {name for name in names if "device" in known[name]}
    hardware -= {below for name in hardware for below in lower[name]}
    alone = {name for name in names if not lower[name]}
    links = {name for name in alone if _is_link(name)}
    return hardware or {name for name in links if "master" not in known[name]} or links or alone


def that_count(found: Snapshot) -> Snapshot:
    """The disks and interfaces in which each byte is once. A snapshot has also those that pass on to others."""
    names = _interfaces([device.name for device in found.devices if device.kind == "interface"])
    devices = [device for device in found.devices
               if (device.kind == "interface" and device.name in names)
               or (device.kind == "disk" and not _entries(f"/sys/block/{device.name}/slaves"))]
    return Snapshot(found.time, found.elapsed, found.interval, {}, (), (), devices)


# --- GPUs


class Gpus(NamedTuple):
    """0 where there is no GPU or no process, None where a driver does not tell."""

    usage: Optional[float] = 0.0
    vram_mib: Optional[float] = 0.0
    utilized: Optional[int] = 0
    indexes: frozenset[int] = frozenset()


@functools.lru_cache(maxsize=None)
def has_driver() -> bool:
    """Of a GPU. Where there is none nobody waits for one."""
    monitor = watch(system=True)
    monitor.collect()
    monitor.stop()
    return "gpu" in monitor.summary.data["self"]


def gpus(found: Optional[Snapshot], prefix: str = "") -> Gpus:
    """Those that a tree uses; with the prefix `system.` those of the machine."""
    if found is None or not has_driver():
        return Gpus()
    used = (device.name for device in found.devices
            if device.kind == "gpu" and (device.get("gpu.job.mem", 0.0) > 0 or device.get("gpu.job.usage", 0.0) > 0))
    return Gpus(found.get(f"{prefix}gpu.usage"), part(found, f"{prefix}gpu.mem", _kernel.MIB),
                whole(found.get(f"{prefix}gpu.count")), frozenset(int(re.sub(r"\D*(\d+).*", r"\1", n)) for n in used))


def told(look: Callable[[], Optional[Snapshot]], key: str) -> Optional[Snapshot]:
    """The first look at which a driver has told this, else the last at which it has told anything. None without one."""
    end = time.monotonic() + _PATIENCE
    best: Optional[Snapshot] = None
    while has_driver():
        found = look()
        if found is None or key in found:
            return found
        if best is None or any(device.kind == "gpu" for device in found.devices):
            best = found
        if time.monotonic() > end:
            break
        time.sleep(0.02)
    return best


def gpus_of_machine() -> Gpus:
    """All of them, whoever uses them."""
    return gpus(told(watch(system=True, devices=True).collect, "system.gpu.usage"), "system.")
