# SPDX-License-Identifier: Apache-2.0
"""`RunStatus`, which `ResourceTracker.stop` takes. Nothing is sent to the vendor's service."""
from __future__ import annotations

from enum import Enum

__all__ = ["RunStatus"]


class RunStatus(Enum):
    """How a run ended.

        >>> RunStatus("failed") is RunStatus.failed
        True
    """

    finished = "finished"
    failed = "failed"
