# SPDX-License-Identifier: Apache-2.0
"""proctor.compat.resource_tracker, 0.5: what is stored, and its smaller parts."""
import csv
import gzip
import json
import os
import subprocess
import sys
import time
from statistics import mean

import pytest
from compat_support import GOLDEN, a_tracked_run, dead_pid
from pythons import PYTHONS, run_script

from proctor.compat import resource_tracker_0_1 as old
from proctor.compat.resource_tracker import ProcessTracker, ResourceTracker, SystemTracker, get_server_info, helpers
from proctor.compat.resource_tracker import tracker, tracker_procfs
from proctor.compat.resource_tracker.report import round_memory
from proctor.compat.resource_tracker.tiny_data_frame import StatSpec, TinyDataFrame


@pytest.fixture(scope="module")
def tracked():
    return a_tracked_run()


def test_a_snapshot_is_the_originals_and_comes_back(tracked, tmp_path):
    found = tracked.snapshot()
    assert list(found["metadata"]) == ["version", "resource_tracker", "pid", "children", "interval", "method",
                                       "autostart", "track_processes", "track_system", "discover_server",
                                       "discover_cloud", "start_time", "stop_time", "duration"]
    about = found["metadata"]
    assert about["duration"] == pytest.approx(about["stop_time"] - about["start_time"] + about["interval"], abs=0.006)
    tracked.dump(tmp_path / "a.json.gz")
    with gzip.open(tmp_path / "a.json.gz") as file:
        assert json.load(file)["process_metrics"] == found["process_metrics"]
    again = ResourceTracker.load(tmp_path / "a.json.gz")
    assert again.process_metrics.to_dict() == tracked.process_metrics.to_dict() and not again.running
    assert again.recommend_resources() == tracked.recommend_resources()
    assert "proctor" in again.report()  # the report of the run itself
    tracked_rows = found["process_metrics"]
    del found["proctor_run"]  # as the original stores it
    found["process_metrics"] = [{**row, "children": ""} for row in tracked_rows]
    page = ResourceTracker.from_snapshot(found).report()
    assert "<svg" in page and "CPU usage" in page
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page


def test_metrics_can_be_read_while_it_runs_and_after_it_is_cleaned_up():
    found = ResourceTracker(interval=0.2, autostart=True)
    try:
        assert found.running
        found.wait_for_samples(n=1)
        assert len(found.process_metrics) >= 1 and found.report()
        with pytest.raises(RuntimeError):
            found.start()
        folder = found._folder
    finally:
        found.cleanup()
    assert not os.path.exists(folder) and found.n_samples >= 1
    with pytest.raises(RuntimeError):
        found.wait_for_samples(n=10 ** 6)
    with pytest.raises(RuntimeError):
        ResourceTracker().stats()


def test_a_forked_child_leaves_what_is_its_parents(tmp_path):
    run_script(PYTHONS["debian"], """
        import os, sys
        from proctor.compat.resource_tracker import ResourceTracker
        with ResourceTracker(interval=0.1, discover_server=False) as tracker:
            tracker.wait_for_samples()
            if (pid := os.fork()) == 0:
                sys.exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            tracker.wait_for_samples(n=3)
        assert "html" in tracker.report()[:200] and os.path.isdir(tracker._folder)
    """, tmp_path)


def test_children_false_is_the_process_alone():
    """A child that works beside it is in no figure, and in the place of their number is nothing."""
    code = "x = bytearray(b'1') * (80 << 20)\nimport time\nwhile time.process_time() < 0.6: pass"
    one, first = ProcessTracker(children=False, autostart=False), old.PidTracker(children=False, autostart=False)
    with ResourceTracker(interval=0.2, children=False, discover_server=False, discover_cloud=False) as found:
        child = subprocess.Popen([sys.executable, "-c", code])
        time.sleep(0.4)
        rows = [one.diff_stats(), first.diff_stats()]
        child.wait()
    frame = found.process_metrics
    assert found.snapshot()["metadata"]["children"] is False and set(frame["children"]) == {None}
    assert [row["children"] for row in rows] == [None, None]
    assert sum(frame["utime"]) + sum(frame["stime"]) < 0.3
    own = tracker_procfs.get_process_pss_rollup(os.getpid()) / 1024
    assert max(frame["memory_mib"]) < own + 60 and rows[0]["memory_mib"] < own + 60
    assert rows[1]["pss"] < (own + 60) * 1024


def test_a_failure_inside_is_passed_on():
    found = ResourceTracker(interval=0.2)
    with pytest.raises(ZeroDivisionError), found:
        1 / 0
    assert found.exit_code == 1 and found.run_status.value == "failed" and not found.running


def test_pidtracker_is_deprecated():
    with pytest.warns(DeprecationWarning):
        assert tracker.PidTracker(autostart=False).pid == os.getpid()


def test_rows_of_a_tracker_are_those_of_the_golden_file(tmp_path):
    found = SystemTracker(autostart=False, interval=0.2)
    row = found.diff_stats()
    with open(GOLDEN / "resource-tracker.system.csv", newline="") as file:
        assert list(row) == next(csv.reader(file))
    assert row["memory_free_mib"] > 0 and row["cpu_usage"] >= 0 and found() is None


def test_helpers():
    frame = TinyDataFrame([{"a": 1, "b": "x"}, {"a": 2, "c": None}])
    assert frame.columns == ["a", "b", "c"] and frame[1] == {"a": 2, "b": None, "c": None}
    assert frame.to_csv() == '"a","b","c"\r\n1,"x",""\r\n2,"",""\r\n'
    assert frame.to_csv(quote_strings=False).startswith("a,b,c\r\n")
    frame["d"] = [5, 6]
    assert frame.rename({"d": "e"}).columns[-1] == "e" and frame.tail(1)["e"] == [6]
    assert frame.stats([StatSpec("a", mean), StatSpec("a", max, "top", 0)]) == {"a": {"mean": 1.5, "top": 2}}
    for wrong in (lambda: frame["none"], lambda: frame.rename({"none": "x"})):
        with pytest.raises(KeyError):
            wrong()
    with pytest.raises(ValueError):
        frame["f"] = [1]
    assert [round_memory(m) for m in (1, 129, 600, 1025, 2049, 4096, 4097)] == [128, 256, 1024, 2048, 3072, 4096, 5120]
    with pytest.raises(ValueError):
        helpers.aggregate_stats([{"a": {"median": 1}}])
    assert helpers.render_csv_row(["a", 1.5, None]) == b'"a",1.5,""\n'
    assert get_server_info()["vcpus"] == os.cpu_count()
    assert tracker_procfs.get_process_rss(dead_pid()) == 0 and tracker_procfs.get_process_children(dead_pid()) == set()
    assert tracker_procfs.get_process_proc_io(os.getpid()).keys() >= {"rchar", "wchar", "syscr", "read_bytes"}
    assert tracker_procfs.get_process_pss_rollup(os.getpid()) <= tracker_procfs.get_process_rss(os.getpid()) * 1.05
