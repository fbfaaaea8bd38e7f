# SPDX-License-Identifier: Apache-2.0
"""A short form of `make report-cost`: reports of what is small and of what is large, and how one costs beside the other.
Times are ratios with much room, since others use this machine, too."""
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def script(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def cost():
    return script("report-cost")


@pytest.fixture(scope="module")
def rows(cost, build, tmp_path_factory):
    folder, proctor = tmp_path_factory.mktemp("report-cost"), str(build / "proctor")
    if not shutil.which("npm") and os.environ.get("CI") != "true":
        pytest.skip("npm, with which the page is built")
    runs = {"moment": lambda: cost.recorded(proctor, folder / "moment.proctor", "100ms", "sleep 1"),
            "hour": lambda: cost.made_up(proctor, folder / "hour.proctor", 1 / 24),
            "day": lambda: cost.made_up(proctor, folder / "day.proctor", 1),
            "devices": lambda: cost.made_up(proctor, folder / "devices.proctor", 1 / 8, gpus=8, processes=50)}
    return {name: cost.measure(proctor, name, make(), 3) for name, make in runs.items()}


def test_every_page_is_below_1_mb(cost, rows):
    assert not cost.wrong(rows.values())
    assert all(row["bytes"] > 80_000 for row in rows.values())  # the page itself, and something in it


def test_a_page_that_is_too_large_or_slow_is_found(cost, rows):
    assert len(cost.wrong([{**rows["day"], "bytes": 1_000_000}, {**rows["day"], "open": 2.1}])) == 2


def test_size_and_memory_stay_while_the_run_grows(rows):
    hour, day = rows["hour"], rows["day"]
    assert day["samples"] > 20 * hour["samples"]
    assert day["bytes"] < 1.5 * hour["bytes"] and day["size"] < 1.5 * hour["size"]
    assert day["size"] < 48 << 20 and rows["devices"]["size"] < 64 << 20


def test_time_grows_no_faster_than_the_run(rows):
    """24 times the samples; what it takes to start is in both."""
    assert rows["day"]["cpu"] < 3 * 24 * max(rows["hour"]["cpu"], 0.005)
    each = rows["day"]["cpu"] / rows["day"]["samples"]
    assert each < 100e-6, f"{each * 1e6:.1f} us of CPU for a sample"


def test_the_table_has_a_row_for_each_run_and_names_the_machine(cost, rows):
    text = cost.as_text([{**row, "open": 0.2} for row in rows.values()])
    assert text.count("\n|") >= 2 + len(rows) - 1 and f"{os.cpu_count()} CPUs" in text
