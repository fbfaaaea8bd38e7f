# SPDX-License-Identifier: Apache-2.0
"""How these classes watch."""
from __future__ import annotations

import os
from typing import Any, Optional

from proctor import Monitor, Process, Snapshot


def watch(pid: Optional[int] = None, **options: Any) -> Monitor:
    """A monitor that leaves nothing out to stay cheap: programs that were written for these classes take it
    that each row has each value."""
    return Monitor(pid, **{"budget": "100%", **options})


def is_complete(found: Snapshot, key: str) -> bool:
    """Whether each process has told its part of a sum: one from which little is missing is in a snapshot, too."""
    return not any(_hides(process, key) for process in found.processes)


def _hides(process: Process, key: str) -> bool:
    """Who has ended meanwhile has nothing to add: neither a zombie, which has no memory, nor one that is gone."""
    return key not in process and bool(process.get("mem.rss")) and os.path.exists(f"/proc/{process.pid}")
