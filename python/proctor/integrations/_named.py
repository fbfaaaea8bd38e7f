# SPDX-License-Identifier: Apache-2.0
"""Samples under the names that MLflow's pages and the loggers of trainers expect (doc/mlflow.md)."""
from __future__ import annotations

import os
from typing import Optional

from proctor import Snapshot

_MIB = 1024.0 * 1024.0
_MB = 1e6
_PROCESS = (
    ("memory_rss_megabytes", "mem.rss", _MIB),
    ("memory_vms_megabytes", "mem.vms", _MIB),
    ("memory_uss_megabytes", "mem.uss", _MIB),
    ("num_threads", "threads", 1.0),
    ("num_fds", "fds", 1.0),
    ("io_read_megabytes", "io.read", _MIB),
    ("io_write_megabytes", "io.write", _MIB),
    ("cpu_usage_percentage", "cpu.ratio", 0.01),
)
_SYSTEM = (
    ("system_memory_usage_megabytes", "system.mem.used", _MB),
    ("network_receive_megabytes", "system.net.rx", _MB),
    ("network_transmit_megabytes", "system.net.tx", _MB),
    ("disk_usage_megabytes", "system.disk.space.used", _MB),
    ("disk_available_megabytes", "system.disk.space.free", _MB),
)
# A share of two of ours, in percent.
_SHARES = (("system_memory_usage_percentage", "system.mem.used", "system.mem.total"),
           ("disk_usage_percentage", "system.disk.space.used", "system.disk.space.total"))
_GPU = (
    ("utilization_percentage", "gpu.util", 0.01),
    ("memory_usage_megabytes", "gpu.mem.used", _MB),
    ("power_usage_watts", "gpu.power", 1.0),
)


def _share(part: Optional[float], whole: Optional[float]) -> Optional[float]:
    return 100.0 * part / whole if part is not None and whole else None


def process_values(snapshot: Snapshot, prefix: str = "process/") -> dict[str, float]:
    """What the job uses; what is absent is left out.

        >>> import proctor
        >>> process_values(proctor.Monitor().collect())["process/memory_rss_megabytes"] > 1
        True
    """
    found = {prefix + name: snapshot[key] / scale for name, key, scale in _PROCESS if key in snapshot}
    # mem.ratio is of PSS, this name of RSS; both are of the same limit.
    ratio, pss, rss = snapshot.get("mem.ratio"), snapshot.get("mem.pss"), snapshot.get("mem.rss")
    if ratio and pss and rss is not None:
        found[prefix + "memory_usage_percentage"] = 100.0 * ratio * rss / pss
    return found


def system_values(snapshot: Snapshot, prefix: str = "system/") -> dict[str, float]:
    """What the machine and its GPUs use; what is absent is left out.

        >>> import proctor
        >>> system_values(proctor.Monitor(system=True).collect())["system/system_memory_usage_megabytes"] > 1
        True
    """
    found = {prefix + name: snapshot[key] / scale for name, key, scale in _SYSTEM if key in snapshot}
    shares = {name: _share(snapshot.get(part), snapshot.get(whole)) for name, part, whole in _SHARES}
    shares["cpu_utilization_percentage"] = _share(snapshot.get("system.cpu.usage"), os.cpu_count())
    gpus = [device for device in snapshot.devices if device.kind == "gpu"]
    for i, gpu in enumerate(gpus):
        found.update({f"{prefix}gpu_{i}_{name}": gpu[key] / scale for name, key, scale in _GPU if key in gpu})
        shares[f"gpu_{i}_memory_usage_percentage"] = _share(gpu.get("gpu.mem.used"), gpu.get("gpu.mem.total"))
    found.update({prefix + name: value for name, value in shares.items() if value is not None})
    return found
