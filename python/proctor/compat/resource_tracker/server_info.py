# SPDX-License-Identifier: Apache-2.0
"""What the machine has."""
from __future__ import annotations

import os
import platform
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from proctor.compat import _kernel
from proctor.compat._watch import watch

__all__ = ["get_gpu_info", "get_server_info", "get_total_memory_mib"]

_DRIVER_PATIENCE = 3.0


def get_total_memory_mib() -> float:
    """MiB of memory.

        >>> get_total_memory_mib() > 1
        True
    """
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _kernel.MIB, 2)


def _summary(patience: float) -> Mapping[str, Any]:
    """Of a short look at the machine, which takes so long where no GPU answers."""
    monitor = watch(system=True, devices=True)
    end = time.monotonic() + patience
    while not any(d.kind == "gpu" for d in monitor.collect().devices) and time.monotonic() < end:
        time.sleep(0.05)
    monitor.stop()
    return monitor.summary.data


def get_gpu_info() -> dict[str, Any]:
    """`count`, `memory_mib` of all of them, and `gpu_names`.

        >>> found = get_gpu_info()
        >>> len(found["gpu_names"]) == found["count"]
        True
    """
    found = _summary(0.0)
    if "gpu" in found["self"]:  # there is a driver, which takes its time
        found = _summary(_DRIVER_PATIENCE)
    gpus = [device for device in found["devices"] if device["kind"] == "gpu"]
    sizes = [device["metrics"].get("gpu.mem.total", {}).get("peak") or 0.0 for device in gpus]
    return {"count": len(gpus), "memory_mib": sum(sizes) / _kernel.MIB,
            "gpu_names": [str(device.get("model") or device["name"]) for device in gpus]}


def get_server_info() -> dict[str, Any]:
    """`os`, `vcpus`, `memory_mib`, and of GPUs `gpu_count`, `gpu_names`, `gpu_name` (the most common) and
    `gpu_memory_mib`.

        >>> get_server_info()["os"]
        'Linux'
    """
    gpus = get_gpu_info()
    names = Counter(gpus["gpu_names"]).most_common(1)
    return {"os": platform.system(), "vcpus": os.cpu_count(), "memory_mib": get_total_memory_mib(),
            "gpu_count": gpus["count"], "gpu_names": gpus["gpu_names"], "gpu_name": names[0][0] if names else "",
            "gpu_memory_mib": gpus["memory_mib"]}
