# SPDX-License-Identifier: Apache-2.0
"""`ProcessGroupStatsMonitor` and `ProcessGroupResourceUsage` of `spdl.pipeline`, over libproctor."""
from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
from collections.abc import Awaitable
from dataclasses import dataclass
from multiprocessing.context import BaseContext
from typing import Callable, Optional

from proctor import Snapshot
from proctor.compat._watch import is_complete, watch

__all__ = ["ProcessGroupResourceUsage", "ProcessGroupStatsMonitor"]

_LG = logging.getLogger(__name__)


@dataclass
class ProcessGroupResourceUsage:
    """What a process group uses; None is not known.

        >>> ProcessGroupResourceUsage(pid=7, pgid=7, num_procs=2).rss_bytes is None
        True
    """

    pid: int
    """The process that asked for it: there is no other process that monitors."""
    pgid: int
    cpu_percent: Optional[float] = None
    """Of one core since the sample before, with processes that ended meanwhile. None in the first."""
    rss_bytes: Optional[int] = None
    """Shared pages count once for each process."""
    pss_bytes: Optional[int] = None
    """Shared pages are divided among those who share them. None where that of a member may not be read."""
    private_bytes: Optional[int] = None
    """What no other process has, huge pages included. None as `pss_bytes`."""
    disk_read_bytes: Optional[int] = None
    """From storage since the processes began; what ended ones have read stays in it."""
    disk_write_bytes: Optional[int] = None
    num_procs: Optional[int] = None
    net_rx_bytes: Optional[int] = None
    """Of the machine's interfaces, not of the group, since the sample before. None in the first."""
    net_tx_bytes: Optional[int] = None


class _Reader:
    """Snapshots as the dataclass. What a counter had before the record is added; networks are differences."""

    def __init__(self, interval: float, totals: bool) -> None:
        self._least = interval / 2
        self._totals = totals
        self._last: Optional[Snapshot] = None
        self._before: Optional[dict[str, float]] = None
        self._net: dict[str, float] = {}

    def usage(self, snapshot: Snapshot) -> Optional[ProcessGroupResourceUsage]:
        """None for one that comes right behind one that was late: the next has its time, too."""
        last = self._last
        if last is not None and snapshot.elapsed - last.elapsed < self._least:
            return None
        self._last = snapshot
        percent = None
        if last is not None and "cpu.time" in snapshot and "cpu.time" in last:
            percent = 100.0 * (snapshot["cpu.time"] - last["cpu.time"]) / (snapshot.elapsed - last.elapsed)
        if self._before is None:
            self._before = {key: sum(p.get(key, 0.0) for p in snapshot.processes) for key in ("io.read", "io.write")}
        before = self._before

        def whole(key: str, extra: float = 0.0) -> Optional[int]:
            return int(snapshot[key] + extra) if key in snapshot else None

        def complete(key: str) -> Optional[int]:
            return whole(key) if is_complete(snapshot, key) else None

        return ProcessGroupResourceUsage(
            pid=os.getpid(), pgid=os.getpgrp(), cpu_percent=percent, rss_bytes=whole("mem.rss"),
            pss_bytes=complete("mem.pss"), private_bytes=complete("mem.uss"),
            disk_read_bytes=whole("io.read", before["io.read"]),
            disk_write_bytes=whole("io.write", before["io.write"]), num_procs=whole("procs"),
            net_rx_bytes=self._moved(snapshot, "system.net.rx"), net_tx_bytes=self._moved(snapshot, "system.net.tx"))

    def _moved(self, snapshot: Snapshot, key: str) -> Optional[int]:
        now = snapshot.get(key)
        if now is None:
            return None
        if self._totals:
            return int(now)
        last = self._net.get(key)
        self._net[key] = now
        return None if last is None else int(now - last)


class ProcessGroupStatsMonitor:
    """A background task of a pipeline that calls back with what this process group uses.

    Sampling is done by a native thread of this process, so that nothing is forked and nothing of it is in
    the figures; `callback` runs in the event loop of `run`. `mp_context` is accepted and not needed.
    `totals`: networks since the monitor began, as older versions had them, in place of differences.

        >>> async def pipeline():
        ...     first = asyncio.get_running_loop().create_future()
        ...     async def show(usage):
        ...         first.set_result(usage.num_procs)
        ...     task = asyncio.ensure_future(ProcessGroupStatsMonitor(show).run())
        ...     count = await first
        ...     task.cancel()
        ...     return count
        >>> asyncio.run(pipeline()) >= 1
        True
    """

    def __init__(self, callback: Callable[[ProcessGroupResourceUsage], Awaitable[None]], interval: float = 60.0,
                 mp_context: Optional[BaseContext] = None, *, totals: bool = False) -> None:
        self._callback = callback
        self._interval = interval
        self._mp_context = mp_context
        self._totals = totals

    async def run(self) -> None:
        """Calls back until it is cancelled."""
        if multiprocessing.current_process().daemon:
            # Workers are members of the group that the main process watches: they would say it all again.
            _LG.warning("No process-group monitor in a daemon process (pid=%d): its parent's has it all", os.getpid())
            return
        loop = asyncio.get_running_loop()
        snapshots: asyncio.Queue[Snapshot] = asyncio.Queue()

        def arrived(snapshot: Snapshot) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(snapshots.put_nowait, snapshot)

        monitor = watch(group=os.getpgrp(), interval=self._interval, on_sample=arrived, processes=True, no_gpu=True)
        reader = _Reader(self._interval, self._totals)
        monitor.start()
        _LG.info("Process-group monitor started (pid=%d, pgid=%d)", os.getpid(), os.getpgrp())
        try:
            while True:
                usage = reader.usage(await snapshots.get())
                try:
                    if usage is not None:
                        await self._callback(usage)
                except Exception:
                    _LG.exception("The callback of the process-group monitor failed; it goes on")
        finally:
            monitor.stop()
            _LG.info("Process-group monitor stopped (pid=%d)", os.getpid())
