# SPDX-License-Identifier: Apache-2.0
"""The sizing of doc/fleet.md: its arithmetic, with figures that are known."""
import importlib.machinery
import importlib.util
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load():
    loader = importlib.machinery.SourceFileLoader("fleet_size", str(ROOT / "tools/fleet-size"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fleet_size", loader))
    loader.exec_module(module)
    return module


def rows(text):
    """{nodes: cells} of the large table."""
    found = re.findall(r"^\| ([\d,]+) \| (.*) \|$", text, re.M)
    return {int(n.replace(",", "")): cells.split(" | ") for n, cells in found}


def test_the_arithmetic():
    tool = load()
    known = {"scrape": 15000, "series": 100, "packed": False, "textfile": 9000, "sample": 2.0, "index": 480.0,
             "mlflow": (0.5, 1000.0), "otlp": (0.25, 400.0), "gzip": (0.25, 100.0), "record": 1000.0}
    found = rows(tool.tables_of(known, 90, "somewhere"))
    assert list(found) == [10, 100, 1000, 10000]
    # 100 series every 15 s; 2 bytes and 480 / (7200 / 15) = 1 more for each sample.
    assert found[10000] == ["1,000,000", "667", "66,667", "10 MB/s", "17.3 GB", "5,000", "10 MB/s", "2,500", "4 MB/s",
                            "864 GB"]
    for n, cells in found.items():
        assert int(cells[0].replace(",", "")) == 100 * n


def test_the_document_has_it():
    text = (ROOT / "doc/fleet.md").read_text()
    series = int(re.search(r"(\d+) series; a page", text).group(1))
    found = rows(text)
    assert list(found) == [10, 100, 1000, 10000]
    assert all(int(cells[0].replace(",", "")) == n * series for n, cells in found.items())
