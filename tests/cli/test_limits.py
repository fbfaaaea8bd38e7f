# SPDX-License-Identifier: Apache-2.0
"""Denominators: what the job may use, from real cgroups and real affinity."""
import os
import subprocess
from pathlib import Path

import pytest

from proctor_cli import skip_visibly

TOP = Path("/sys/fs/cgroup")


def own_group(controller):
    """Our own group in the hierarchy that has the controller: version 1, or 2 where there is none."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return TOP / controller / path.lstrip("/")
        if not names and (TOP / "cgroup.controllers").exists():
            return TOP / path.lstrip("/")
    return None


@pytest.fixture
def group():
    """Makes a child group with a file written, and removes it in the end."""
    made = []

    def make(controller, values):
        parent = own_group(controller)
        child = parent / f"proctor-test-{os.getpid()}-{len(made)}" if parent else None
        try:
            child.mkdir()
            made.append(child)
            for name, value in values:
                if (child / name).exists():
                    (child / name).write_text(value)
                    return child
        except (OSError, AttributeError) as error:
            skip_visibly(f"no group with {controller}: {error}")
        skip_visibly(f"{child} has none of {[name for name, _ in values]}")

    yield make
    for child in reversed(made):
        child.rmdir()


def limits_inside(proctor, *groups):
    """What a proctor finds that was started inside these groups."""
    enter = "".join(f"echo $$ > {g}/cgroup.procs; " for g in groups)
    command = f"{enter}exec {proctor.path} run -q --summary {proctor.summary_file} sleep 0.05"
    subprocess.run(["sh", "-c", command], check=True, timeout=60, **proctor.options({}))
    return proctor.summary()["limits"]


def test_memory_limit_of_the_group(proctor, group):
    child = group("memory", [("memory.max", "536870912"), ("memory.limit_in_bytes", "536870912")])
    memory = limits_inside(proctor, child)["memory"]
    assert memory["bytes"] == 512 << 20
    assert child.name in memory["source"] and memory["source"].startswith("memory.")


def test_memory_limit_further_up(proctor, group):
    outer = group("memory", [("memory.max", "536870912"), ("memory.limit_in_bytes", "536870912")])
    inner = outer / "inner"
    inner.mkdir()
    try:
        assert limits_inside(proctor, inner)["memory"]["bytes"] == 512 << 20
    finally:
        inner.rmdir()


def test_cpu_quota_of_the_group(proctor, group):
    child = group("cpu", [("cpu.max", "50000 100000"), ("cpu.cfs_quota_us", "50000")])
    cpu = limits_inside(proctor, child)["cpu"]
    assert cpu["cores"] == 0.5 and child.name in cpu["source"]


def test_affinity(proctor):
    one = min(os.sched_getaffinity(0))
    _, summary = proctor.recorded("sleep", "0.05", preexec_fn=lambda: os.sched_setaffinity(0, {one}))
    assert summary["limits"]["cpu"]["cores"] == 1
    if os.cpu_count() > 1:
        assert summary["limits"]["cpu"]["source"] == "CPU affinity"
