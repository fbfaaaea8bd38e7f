# SPDX-License-Identifier: Apache-2.0
"""`resource_tracker` 0.5 over libproctor.

    >>> tracker = ResourceTracker(interval=0.1, discover_server=False)
    >>> with tracker:
    ...     tracker.wait_for_samples(n=2)
    >>> tracker.n_samples >= 2
    True

Nothing leaves the machine: the cloud is known by what the machine says of itself, the cheapest server of
the vendor's list is not looked up, and no samples are sent there.
"""
from __future__ import annotations

from .cloud_info import get_cloud_info
from .server_info import get_server_info
from .tracker import ProcessTracker, ResourceTracker, SystemTracker

__all__ = ["ProcessTracker", "ResourceTracker", "SystemTracker", "get_cloud_info", "get_server_info"]
