# SPDX-License-Identifier: Apache-2.0
"""Names for people, and what columns are in bytes."""
from __future__ import annotations

HUMAN_NAMES_MAPPING = {
    "timestamp": "Timestamp",
    "processes": "processes",
    "utime": "CPU time (user)",
    "stime": "CPU time (system)",
    "cpu_usage": "CPU usage",
    "memory_free_mib": "free memory",
    "memory_used_mib": "used memory",
    "memory_buffers_mib": "memory buffers",
    "memory_cached_mib": "memory page/file cached",
    "memory_active_mib": "active memory",
    "memory_inactive_mib": "inactive memory",
    "disk_read_bytes": "disk read",
    "disk_write_bytes": "disk write",
    "disk_space_total_gb": "disk space total",
    "disk_space_used_gb": "disk space used",
    "disk_space_free_gb": "disk space free",
    "net_recv_bytes": "inbound network traffic",
    "net_sent_bytes": "outbound network traffic",
    "gpu_usage": "GPU usage",
    "gpu_vram_mib": "VRAM used",
    "gpu_utilized": "GPUs in use",
    "pid": "PID",
    "children": "children",
    "memory_mib": "memory usage",
}

BYTE_MAPPING = {name: 1024 ** 2 if name.endswith("_mib") else 10 ** 9
                for name in HUMAN_NAMES_MAPPING if name.endswith(("_mib", "_gb"))}

SERVER_ALLOCATION_CHECKS = [
    {"process_column": "cpu_usage", "system_column": "cpu_usage", "percent": 1.25, "absolute": 0.25},
    {"process_column": "memory_mib", "system_column": "memory_used_mib", "percent": 1.5, "absolute": 512},
    {"process_column": "gpu_usage", "system_column": "gpu_usage", "percent": 1.25, "absolute": 0.2},
    {"process_column": "gpu_vram_mib", "system_column": "gpu_vram_mib", "percent": 1.25, "absolute": 512},
]
"""Who else is on the machine: it uses more than the job by both of these, a factor and a difference (cores, MiB)."""
