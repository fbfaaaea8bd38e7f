# SPDX-License-Identifier: Apache-2.0
"""There is one way of measuring; this name is for those who import it."""
from __future__ import annotations

from .tracker_procfs import get_process_stats, get_system_stats

__all__ = ["get_process_stats", "get_system_stats"]
