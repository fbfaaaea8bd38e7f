# SPDX-License-Identifier: Apache-2.0
"""What the machine has."""
from __future__ import annotations

import os
import platform
from collections import Counter
from typing import Any

from proctor.compat import _kernel

__all__ = ["get_gpu_info", "get_server_info", "get_total_memory_mib"]


def get_total_memory_mib() -> float:
    """MiB of memory."""
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _kernel.MIB, 2)


def get_gpu_info() -> dict[str, Any]:
    """`count`, `memory_mib` of all of them, and `gpu_names`."""
    gpus = [device for device in _kernel.Machine().look().devices if device.kind == "gpu"]
    return {"count": len(gpus), "memory_mib": sum(gpu.get("gpu.mem.total", 0.0) for gpu in gpus) / _kernel.MIB,
            "gpu_names": [gpu.name for gpu in gpus]}


def get_server_info() -> dict[str, Any]:
    """`os`, `vcpus`, `memory_mib`, and of GPUs `gpu_count`, `gpu_names`, `gpu_name` (the most common) and
    `gpu_memory_mib`."""
    gpus = get_gpu_info()
    names = Counter(gpus["gpu_names"]).most_common(1)
    return {"os": platform.system(), "vcpus": os.cpu_count(), "memory_mib": get_total_memory_mib(),
            "gpu_count": gpus["count"], "gpu_names": gpus["gpu_names"], "gpu_name": names[0][0] if names else "",
            "gpu_memory_mib": gpus["memory_mib"]}
