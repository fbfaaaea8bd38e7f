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

PROCESSES, CROWD = 100, 200
CASES = [("idle", 10, LIMITS["idle"])]
if os.environ.get("PROCTOR_TEST_FULL") == "1":
    # Four minutes each. What is read once for all weighs most there, and so do turns, which come by time.
    CASES += [("idle", 1, LIMITS["idle"]), ("all", 1, LIMITS["active"])]


def cannot(reason):
    """A skip that CI does not accept."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must be able to do this: {reason}")
    pytest.skip(reason)


def need(program, package):
    return program or cannot(f"{package} is missing")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return run.compile_programs(tmp_path_factory.mktemp("programs"))


def costs(tmp_path, programs, activity, hz, tools, repetitions, processes=PROCESSES):
    """{tool: us per process-sample of each repetition, "others": how many other processes there were}."""
    found, others = run.measure_case(run.Case(processes, activity, hz), tools, repetitions, tmp_path, programs)
    for name, result in found.items():
        assert len(result.get("each", [])) >= repetitions - 1, (name, result)
    return {**{name: result["each"] for name, result in found.items()}, "others": others}


def ratio(found, other):
    """Of what was measured one after the other: what else the machine does falls out. Where a repetition was lost in
    the noise, of the medians."""
    mine, theirs = found["proctor"], found[other]
    if len(mine) != len(theirs):
        return statistics.median(mine) / statistics.median(theirs)
    return statistics.median(a / b for a, b in zip(mine, theirs))


def ours(build):
    return peers.Ours(str(build / "proctor"))


@pytest.mark.parametrize("activity, hz, limit", CASES)
def test_a_sample_beside_the_floor(build, programs, tmp_path, activity, hz, limit):
    found = costs(tmp_path, programs, activity, hz, [ours(build), peers.Floor(programs["floor"])], 5)
    assert ratio(found, "floor") <= limit, (ratio(found, "floor"), found)


@pytest.fixture(scope="module")
def all_active(programs, tmp_path_factory):
    """One measurement for the floor and the peers."""
    found = {}

    def measured(build):
        if not found:
            psutil = sys.executable if importlib.util.find_spec("psutil") else None
            tools = [ours(build), peers.Floor(programs["floor"]), peers.Psutil(need(psutil, "python3-psutil"))]
            found.update(costs(tmp_path_factory.mktemp("active"), programs, "all", 10, tools, 5))
        return found
    return measured


@pytest.mark.parametrize("other, limit", [("floor", LIMITS["active"]), ("psutil", LIMITS["peer"])])
def test_a_sample_of_active_processes(build, all_active, other, limit):
    found = all_active(build)
    assert ratio(found, other) <= limit, (ratio(found, other), found)


def test_a_sample_costs_a_third_of_pidstat(build, programs, tmp_path, monkeypatch):
    """Of those that do the same work, CPU time, memory and bytes of each process, one of the two cheapest (the other has
    to be compiled, and is in `make bench`; top has no bytes). It can only be asked once a second: of more processes, so
    that the machine, which it does not read, is a small part. Our first looks, which cost more, are in it: half a
    minute less."""
    monkeypatch.setitem(run.SETTLED, 1, 3.3)
    monkeypatch.setitem(run.REST, 1, 2.3)
    tools = [ours(build), peers.Pidstat(need(shutil.which("pidstat"), "sysstat"))]
    found = costs(tmp_path, programs, "all", 1, tools, 3, 500)
    assert ratio(found, "pidstat") <= LIMITS["peer"], (ratio(found, "pidstat"), found)


class Crowded(peers.Ours):
    """It may not hold the files of all."""

    def watch(self, job, hz, seconds, work):
        return ["prlimit", f"--nofile={2 * CROWD}:{2 * CROWD}", *super().watch(job, hz, seconds, work)]


def test_a_crowd_costs_no_more(build, programs, tmp_path):
    """More processes than descriptors can be held of: files are not opened anew at each look."""
    tools = [Crowded(str(build / "proctor")), peers.Floor(programs["floor"])]
    found = costs(tmp_path, programs, "all", 10, tools, 3, CROWD)
    assert ratio(found, "floor") <= LIMITS["active"], (ratio(found, "floor"), found)
