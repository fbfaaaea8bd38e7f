# SPDX-License-Identifier: Apache-2.0
"""Watching costs what the kernel charges, and not much more: the short form of `make bench`, as ratios of CPU time that
were measured in turn on the same processes."""
import importlib.util
import os
import shutil
import statistics
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
from benchmark import peers, run  # noqa: E402
from benchmark.tables import LIMITS  # noqa: E402

PROCESSES = 200


def need(program, package):
    if not program and os.environ.get("CI") == "true":
        pytest.fail(f"CI must be able to do this: {package} is missing")
    if not program:
        pytest.skip(f"{package} is missing")
    return program


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return run.compile_programs(tmp_path_factory.mktemp("programs"))


def costs(tmp_path, programs, activity, hz, tools, repetitions):
    """{tool: us per process-sample of each repetition}."""
    found = run.measure_case(run.Case(PROCESSES, activity, hz), tools, repetitions, tmp_path, programs)
    for name, result in found.items():
        assert len(result.get("each", [])) == repetitions and not result["note"], (name, result)
    return {name: result["each"] for name, result in found.items()}


def ratio(found, other):
    """Of what was measured one after the other: what else the machine does falls out."""
    return statistics.median(a / b for a, b in zip(found["proctor"], found[other]))


@pytest.mark.parametrize("activity, limit", [("all", LIMITS["active"]), ("idle", LIMITS["idle"])])
def test_a_sample_costs_little_more_than_the_floor(build, programs, tmp_path, activity, limit):
    tools = [peers.Ours(str(build / "proctor")), peers.Floor(programs["floor"])]
    found = costs(tmp_path, programs, activity, 10, tools, 5)
    assert ratio(found, "floor") <= limit, (ratio(found, "floor"), found)


def test_a_sample_costs_a_third_of_psutil_and_top(build, programs, tmp_path):
    psutil = sys.executable if importlib.util.find_spec("psutil") else None
    tools = [peers.Ours(str(build / "proctor")), peers.Psutil(need(psutil, "python3-psutil")),
             peers.Top(need(shutil.which("top"), "procps"))]
    found = costs(tmp_path, programs, "all", 10, tools, 3)
    for name in ("psutil", "top"):
        assert ratio(found, name) <= LIMITS["peer"], (name, ratio(found, name), found)


def test_a_sample_costs_a_third_of_pidstat(build, programs, tmp_path):
    tools = [peers.Ours(str(build / "proctor")), peers.Pidstat(need(shutil.which("pidstat"), "sysstat"))]
    found = costs(tmp_path, programs, "all", 1, tools, 3)
    assert ratio(found, "pidstat") <= LIMITS["peer"], (ratio(found, "pidstat"), found)
