# SPDX-License-Identifier: Apache-2.0
"""What the originals offer and ours does not, by name: prints a JSON list. Runs where they are to be had."""
import dataclasses
import inspect
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "goldens"), str(ROOT / "python")]
import originals  # noqa: E402

from proctor.compat import oasislmf, pytyche, resource_tracker, spdl, stouputils  # noqa: E402
from proctor.compat.resource_tracker import (column_maps, dummy_workloads, helpers, report, server_info,  # noqa: E402
                                             tiny_data_frame, tracker, tracker_procfs, tracker_psutil)

TAKEN_AT_THE_CALL = {"pid", "start_time", "ncores", "specs", "historical_stats", "agg"}
"""Parameters whose default is another object of the same meaning."""


def public(thing):
    return {name for name in vars(thing) if not name.startswith("_")}


def parameters(function):
    """Names and defaults, those that are plain."""
    found = inspect.signature(function).parameters
    return [(name, None if name in TAKEN_AT_THE_CALL or p.default is p.empty else repr(p.default))
            for name, p in found.items() if name != "self" and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


def compare(where, theirs, ours, missing):
    """Of a class or function."""
    if inspect.isclass(theirs):
        members = {name for base in theirs.__mro__[:-1] for name in public(base)}
        missing += [f"{where}.{name}" for name in members
                    if not hasattr(ours, name) and not dataclasses.is_dataclass(theirs)]
        if dataclasses.is_dataclass(theirs):
            fields = [(f.name, repr(f.default)) for f in dataclasses.fields(theirs)]
            if fields != [(f.name, repr(f.default)) for f in dataclasses.fields(ours)]:
                missing.append(f"{where}: fields")
        for name in members:
            if inspect.isfunction(vars(theirs).get(name)) and hasattr(ours, name):
                compare(f"{where}.{name}", vars(theirs)[name], getattr(ours, name), missing)
    if callable(theirs) and theirs.__module__ not in ("builtins", "enum"):
        try:
            wanted, given = parameters(theirs), parameters(ours)
        except ValueError:
            return
        if given[:len(wanted)] != wanted:
            missing.append(f"{where}({', '.join(f'{n}={d}' for n, d in wanted)}): {given}")


def module(name, theirs, ours, missing):
    for key in sorted(public(theirs)):
        thing = getattr(theirs, key)
        if inspect.ismodule(thing) or getattr(thing, "__module__", theirs.__name__) != theirs.__name__:
            continue
        if not callable(thing):
            continue
        if not hasattr(ours, key):
            missing.append(f"{name}.{key}")
        elif callable(thing):
            compare(f"{name}.{key}", thing, getattr(ours, key), missing)


def main():
    missing = []
    nothing = lambda *_: None  # noqa: E731
    base = type("Base", (), {"__class_getitem__": classmethod(lambda cls, _: cls)})
    originals.stub("stouputils.ctx.common", AbstractBothContextManager=base)
    originals.stub("stouputils.print.message", debug=nothing, info=nothing, warning=nothing)
    originals.stub("spdl.pipeline._bg_task", BackgroundTask=object)
    for name, ours in (("tracker", tracker), ("tracker_procfs", tracker_procfs), ("tracker_psutil", tracker_psutil),
                       ("helpers", helpers), ("tiny_data_frame", tiny_data_frame), ("report", report),
                       ("server_info", server_info), ("dummy_workloads", dummy_workloads)):
        module(name, originals.package("resource-tracker", f"resource_tracker.{name}"), ours, missing)
    package = originals.package("resource-tracker", "resource_tracker")
    missing += [name for name in package.__all__ if name not in resource_tracker.__all__]
    module("stouputils", originals.module("stouputils", "stouputils/mlflow/process_metrics_monitor.py",
                                          "stouputils.mlflow"), stouputils, missing)
    module("oasislmf", originals.module("oasislmf", "oasislmf/execution/resource_monitor.py"), oasislmf, missing)
    module("pytyche", originals.module("pytyche", "pytyche/diagnostics/run_monitor.py"), pytyche, missing)
    module("spdl", originals.module("spdl-core", "spdl/pipeline/_pgrp_stats.py"), spdl, missing)
    theirs = sys.modules["resource_monitor_original"]
    if theirs.MONITORED_TOOLS != oasislmf.MONITORED_TOOLS or theirs.CSV_HEADER != oasislmf.CSV_HEADER:
        missing.append("oasislmf: tools or columns")
    maps = originals.package("resource-tracker", "resource_tracker.column_maps")
    missing += [name for name in ("HUMAN_NAMES_MAPPING", "BYTE_MAPPING")
                if getattr(maps, name) != getattr(column_maps, name)]
    json.dump(sorted(missing), sys.stdout)


if __name__ == "__main__":
    main()
