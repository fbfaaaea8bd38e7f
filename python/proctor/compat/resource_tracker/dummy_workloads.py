# SPDX-License-Identifier: Apache-2.0
"""Something to watch."""
from __future__ import annotations

import os
import time
from multiprocessing import Pool
from typing import Optional

__all__ = ["cpu_multi", "cpu_single"]


def cpu_single(duration: float = 1) -> None:
    """Keeps a core busy for this long.

        >>> cpu_single(duration=0.01)
    """
    end = time.monotonic() + duration
    number = 1.0
    while time.monotonic() < end:
        number = number * 1.0000001 % 7.0


def cpu_multi(duration: float = 1, ncores: Optional[int] = None) -> None:
    """Keeps several busy, in processes of their own; by default all.

        >>> cpu_multi(duration=0.01, ncores=2)
    """
    count = ncores or os.cpu_count() or 1
    with Pool(count) as pool:
        pool.map(cpu_single, [duration] * count)
