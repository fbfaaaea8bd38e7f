# SPDX-License-Identifier: Apache-2.0
"""How these classes watch."""
from __future__ import annotations

from typing import Any, Optional

from proctor import Monitor


def watch(pid: Optional[int] = None, **options: Any) -> Monitor:
    """A monitor that leaves nothing out to stay cheap: programs that were written for these classes take it
    that each row has each value."""
    return Monitor(pid, **{"budget": "100%", **options})
