# SPDX-License-Identifier: Apache-2.0
"""Whose cloud this is, by what the machine itself says. Nobody is asked over the network."""
from __future__ import annotations

import json
import os
import time
from typing import Any

__all__ = ["get_cloud_info"]

_UNKNOWN = "unknown"
# The maker that firmware names, and the vendor's name as the original has it.
_MAKERS = (("Amazon", "aws"), ("Google", "gcp"), ("Microsoft", "azure"), ("Hetzner", "hcloud"), ("UpCloud", "upcloud"),
           ("Alibaba", "alicloud"), ("OVH", "ovh"))
# cloud-init has names of its own.
_CLOUD_INIT = {"aws": "aws", "gce": "gcp", "azure": "azure", "hetzner": "hcloud", "upcloud": "upcloud",
               "aliyun": "alicloud", "ovh": "ovh"}


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _from_firmware(root: str) -> dict[str, str]:
    dmi = os.path.join(root, "sys/class/dmi/id")
    maker, product = _text(f"{dmi}/sys_vendor"), _text(f"{dmi}/product_name")
    vendor = next((name for word, name in _MAKERS if word in maker), _UNKNOWN)
    # Of these only the first has the type of a machine where others have a product.
    return {"vendor": vendor, "instance_type": product if vendor == "aws" and product else _UNKNOWN}


def _from_cloud_init(root: str) -> dict[str, str]:
    try:
        known: Any = json.loads(_text(os.path.join(root, "run/cloud-init/instance-data.json")) or "{}")
        first = known.get("v1", {})
        found = {"vendor": _CLOUD_INIT.get(str(first.get("cloud_name")), ""), "region": first.get("region"),
                 "instance_type": known.get("ds", {}).get("meta_data", {}).get("instance-type")}
    except (AttributeError, ValueError):
        return {}
    return {name: str(value) for name, value in found.items() if value}


def get_cloud_info(root: str = "/") -> dict[str, Any]:
    """`vendor`, `instance_type`, `region`, each "unknown" where nothing here tells, and `discovery_time` (s).

        >>> sorted(get_cloud_info())
        ['discovery_time', 'instance_type', 'region', 'vendor']
    """
    start = time.monotonic()
    found = {"vendor": _UNKNOWN, "instance_type": _UNKNOWN, "region": _UNKNOWN, **_from_firmware(root),
             **_from_cloud_init(root)}
    return {**found, "discovery_time": time.monotonic() - start}
