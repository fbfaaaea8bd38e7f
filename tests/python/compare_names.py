# SPDX-License-Identifier: Apache-2.0
"""What the originals offer and ours does not, by name: prints a JSON list. Runs where they are to be had."""
import dataclasses
import enum
import importlib
import importlib.util
import inspect
import json
import pathlib
import pkgutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "python")]
from goldens import originals  # noqa: E402

from proctor.compat import oasislmf, pytyche, resource_tracker, resource_tracker_0_1, spdl, stouputils  # noqa: E402

TAKEN_AT_THE_CALL = {"pid", "start_time", "ncores", "specs", "historical_stats", "agg"}
"""Parameters whose default is another object of the same meaning."""
OURS = "proctor.compat.resource_tracker"


def public(thing):
    return {name for name in vars(thing) if not name.startswith("_")}


def default(parameter):
    if parameter.default is parameter.empty:
        return None
    return "any" if parameter.name in TAKEN_AT_THE_CALL else repr(parameter.default)


def parameters(function):
    """Names and defaults; of those that are taken at the call, whether there is one."""
    found = inspect.signature(function).parameters
    return [(name, default(p)) for name, p in found.items()
            if name != "self" and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


def compare(where, theirs, ours, missing):
    """Of a class or function."""
    if inspect.isclass(theirs) and issubclass(theirs, enum.Enum):
        missing += [f"{where}.{name}" for name in theirs.__members__ if name not in ours.__members__
                    or ours[name].value != theirs[name].value]
        return
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


def instance(where, theirs, ours, missing):
    """What they have when they are made: the same plain values, and the same keys in dictionaries."""
    for name, value in vars(theirs).items():
        if name.startswith("_"):
            continue
        mine = getattr(ours, name, None)
        if not hasattr(ours, name):
            missing.append(f"{where}().{name}")
        elif isinstance(value, dict):
            missing += [f"{where}().{name}[{key}]" for key in sorted(set(value) - set(mine))]
        elif isinstance(value, (bool, int, float, str, list, type(None))) and name not in TAKEN_AT_THE_CALL:
            if value != mine:
                missing.append(f"{where}().{name} == {value!r}: {mine!r}")


def instances(where, theirs, ours, wanted, missing):
    """Of classes of a module by name, with these arguments."""
    for name, arguments in wanted.items():
        instance(f"{where}.{name}", getattr(theirs, name)(**arguments), getattr(ours, name)(**arguments), missing)


def current_tracker(missing):
    """0.5, all its modules."""
    package = originals.package("resource-tracker", "resource_tracker")
    missing += [name for name in package.__all__ if name not in resource_tracker.__all__]
    both = {}
    for name in (found.name for found in pkgutil.iter_modules(package.__path__) if not found.name.startswith("_")):
        if importlib.util.find_spec(f"{OURS}.{name}") is None:
            missing.append(f"the module {name}")
            continue
        both[name] = (originals.package("resource-tracker", f"resource_tracker.{name}"),
                      importlib.import_module(f"{OURS}.{name}"))
        module(name, *both[name], missing)
    missing += [name for name in ("HUMAN_NAMES_MAPPING", "BYTE_MAPPING")
                if getattr(both["column_maps"][0], name) != getattr(both["column_maps"][1], name)]
    alone = {"autostart": False, "children": False, "interval": 0.5}
    instances("tracker", *both["tracker"], {"ProcessTracker": alone, "ResourceTracker": alone,
                                            "SystemTracker": {"autostart": False}}, missing)
    instances("tiny_data_frame", *both["tiny_data_frame"], {"TinyDataFrame": {"data": {"a": [1]}}}, missing)


def first_tracker(missing):
    """0.1."""
    sys.path.insert(0, str(originals.unpacked("resource-tracker, the first")))
    theirs = importlib.import_module("resource_tracker.tracker")
    module("tracker", theirs, resource_tracker_0_1, missing)
    instances("tracker", theirs, resource_tracker_0_1,
              {"PidTracker": {"autostart": False, "children": False}, "SystemTracker": {"autostart": False}}, missing)


def others(missing):
    nothing = lambda *_: None  # noqa: E731
    base = type("Base", (), {"__class_getitem__": classmethod(lambda cls, _: cls)})
    originals.stub("stouputils.ctx.common", AbstractBothContextManager=base)
    originals.stub("stouputils.print.message", debug=nothing, info=nothing, warning=nothing)
    originals.stub("spdl.pipeline._bg_task", BackgroundTask=object)
    known = {"max_memory_megabytes": 1.0, "max_cpu_count": 1.0}  # by default they are not the same
    for ours, package, path, inside, made in (
            (stouputils, "stouputils", "stouputils/mlflow/process_metrics_monitor.py", "stouputils.mlflow",
             {"ProcessMetricsMonitor": {"children": False, "samples_before_logging": 0, **known}}),
            (oasislmf, "oasislmf", "oasislmf/execution/resource_monitor.py", None,
             {"ResourceMonitor": {"output_dir": "log", "poll_interval": 0.01}}),  # which is 0.1 at least
            (pytyche, "pytyche", "pytyche/diagnostics/run_monitor.py", None, {"RunLog": {}, "HWMonitor": {}}),
            (spdl, "spdl-core", "spdl/pipeline/_pgrp_stats.py", None,
             {"ProcessGroupStatsMonitor": {"callback": nothing}})):
        name, theirs = ours.__name__.rpartition(".")[2], originals.module(package, path, inside)
        module(name, theirs, ours, missing)
        instances(name, theirs, ours, made, missing)
    theirs = sys.modules["resource_monitor_original"]
    if theirs.MONITORED_TOOLS != oasislmf.MONITORED_TOOLS or theirs.CSV_HEADER != oasislmf.CSV_HEADER:
        missing.append("oasislmf: tools or columns")


def main(version):
    missing = []
    if version == "0.1":
        first_tracker(missing)
    else:
        current_tracker(missing)
        others(missing)
    json.dump(sorted(missing), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:] or ["current"])
