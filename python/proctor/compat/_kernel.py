# SPDX-License-Identifier: Apache-2.0
"""What the two versions of resource-tracker have in common: the tree of a process, the machine, and the
counters that the kernel keeps from before our record."""
from __future__ import annotations

import errno
import os
import time
from typing import NamedTuple, Optional

from proctor import Error, Monitor, Snapshot
from proctor.compat._watch import watch

TICKS = os.sysconf("SC_CLK_TCK")
KIB = 1024
MIB = 1024 * 1024
SECTOR = 512
"""What the kernel counts disks in, whatever sectors they have."""
_PATIENCE = 1.0


class Times(NamedTuple):
    """CPU time in ticks of the kernel."""

    user: int
    system: int


class Moved(NamedTuple):
    """Read or received, and written or sent."""

    came: int
    went: int


def times(pid: int, reaped: bool = True) -> Times:
    """Of a process, and of the children that it has waited for; 0 where there is none. Its name may have
    anything in it, so that fields count from the last bracket."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return Times(0, 0)
    return Times(int(fields[11]) + (int(fields[13]) if reaped else 0),
                 int(fields[12]) + (int(fields[14]) if reaped else 0))


def io(pid: int) -> dict[str, int]:
    """Every line of the kernel's file; zeros where it cannot be read."""
    try:
        with open(f"/proc/{pid}/io", "rb") as file:
            rows = [line.decode().split(": ") for line in file]
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return {"read_bytes": 0, "write_bytes": 0}
    return {name: int(value) for name, value in rows}


def one(pid: int, key: str) -> float:
    """A value of one process now; 0 where there is none, or it may not be read."""
    try:
        return watch(pid, children=False, no_gpu=True, select=key).collect().get(key, 0.0)
    except Error as e:
        if e.errno != errno.ESRCH:
            raise
        return 0.0


def descendants(pid: int) -> set[int]:
    """All that a process has started and that still run, whichever of its threads it was."""
    try:
        found = watch(pid, processes=True, no_gpu=True, select="procs").collect()
    except Error as e:
        if e.errno != errno.ESRCH:
            raise
        return set()
    return {process.pid for process in found.processes} - {pid}


class Tree:
    """A process and its descendants, looked at now and again. Counters are those of their lives."""

    def __init__(self, pid: int, children: bool) -> None:
        self.pid = pid
        self.children = children
        self.alive = True
        self._monitor: Optional[Monitor] = None
        self._before: dict[str, float] = {}
        try:
            self._monitor = watch(pid, children=children, processes=True, devices=True)
        except Error as e:
            if e.errno != errno.ESRCH:
                raise
            self.alive = False

    def look(self) -> Optional[Snapshot]:
        """None once the process is gone."""
        if self._monitor is None:
            return None
        found = self._monitor.collect()
        pids = [process.pid for process in found.processes]
        if self.pid not in pids:
            self.alive = False
            return None
        if not self._before:
            spent = [times(pid, self.children) for pid in pids]
            self._before = {"cpu.user": sum(t.user for t in spent) / TICKS,
                            "cpu.system": sum(t.system for t in spent) / TICKS,
                            **{key: sum(p.get(key, 0.0) for p in found.processes) for key in ("io.read", "io.write")}}
        return found

    def total(self, found: Optional[Snapshot], key: str) -> float:
        """A counter with what was before the first look."""
        return self._before.get(key, 0.0) + (found.get(key, 0.0) if found is not None else 0.0)


class Machine:
    """The machine, looked at now and again."""

    def __init__(self) -> None:
        self._monitor = watch(system=True, devices=True)

    def look(self) -> Snapshot:
        """The library reads the machine ten times a second at most: who comes sooner waits, but not for ever."""
        end = time.monotonic() + _PATIENCE
        while True:
            found = self._monitor.collect()
            if "system.cpu.user" in found or time.monotonic() > end:
                return found
            time.sleep(0.02)


def cpu_ticks() -> Times:
    """Of the machine since it was started; interrupts are in the system's part."""
    with open("/proc/stat", "rb") as file:
        fields = [int(text) for text in file.readline().split()[1:]]
    return Times(fields[0] + fields[1], fields[2] + fields[5] + fields[6])


def disk_sectors(found: Snapshot) -> dict[str, Moved]:
    """Read and written by the disks that count: no partition, and nothing that lies upon another disk."""
    names = {device.name for device in found.devices if device.kind == "disk"}
    sectors: dict[str, Moved] = {}
    with open("/proc/diskstats", "rb") as file:
        for line in file:
            fields = line.split()
            if fields[2].decode() in names:
                sectors[fields[2].decode()] = Moved(int(fields[5]), int(fields[9]))
    return sectors


def disk_spaces(found: Snapshot) -> dict[str, dict[str, int]]:
    """Bytes of each file system, once, however often it is mounted. A pool of ZFS is called `zfs:POOL`."""
    spaces = {}
    for device in found.devices:
        if device.kind == "filesystem":
            spaces[device.name] = {name: int(device.get(f"system.disk.space.{name}", 0.0))
                                   for name in ("total", "used", "free")}
    return spaces


def net_bytes(found: Snapshot) -> Moved:
    """Received and sent by the interfaces that count since they were made."""
    names = {device.name for device in found.devices if device.kind == "interface"}
    received = sent = 0
    with open("/proc/net/dev", "rb") as file:
        for line in file:
            name, colon, rest = line.decode(errors="replace").partition(":")
            if colon and name.strip() in names:
                fields = rest.split()
                received, sent = received + int(fields[0]), sent + int(fields[8])
    return Moved(received, sent)


def is_partition(disk_name: str) -> bool:
    """The kernel says which of its block devices are parts of others."""
    return os.path.exists(f"/sys/class/block/{disk_name}/partition")


def sector_sizes() -> dict[str, int]:
    """Of each disk, as it says."""
    found = {}
    names = os.listdir("/sys/block") if os.path.isdir("/sys/block") else []
    for name in names:
        try:
            with open(f"/sys/block/{name}/queue/hw_sector_size", "rb") as file:
                found[name] = int(file.read())
        except (OSError, ValueError):
            found[name] = SECTOR
    return found
