# SPDX-License-Identifier: Apache-2.0
"""Runs at the OpenTelemetry collector's own receiver: every point as the run file has it, and nothing twice, whatever
happens to the collector."""
import os
import signal
import time

import pytest

from otlp_server import Collector, metrics_of, points_in, points_of, resources
from proctor_cli import finish, query, said, wait_until

FORMS = {"protobuf": {}, "json": {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
         "protobuf, gzip": {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"},
         "json, gzip": {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}}
WORK = "i=0; while test $i -lt 200000; do i=$((i + 1)); done; sleep 0.3"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    collector = Collector(tmp_path_factory.mktemp("otelcol"))
    yield collector
    collector.kill()


@pytest.fixture
def collector(running):
    """With a file in which nothing is yet."""
    running.kill()
    running.new_file()
    return running.start()


def differences(collector, path):
    """(points that did not come, those that came and are not in the record or came twice)"""
    came, there = points_of(collector.requests()), points_in(path)
    assert len(there) > 100
    return there - came, came - there


@pytest.mark.parametrize("form", FORMS)
def test_every_point_is_there(proctor, collector, form):
    path = proctor.folder / "a.proctor"
    done = proctor.run("-o", path, "-i", "10ms", "--run-id", "r1", f"--otlp={collector.url}", "--", "sh", "-c", WORK,
                       env=FORMS[form])
    assert done.returncode == 0 and said(done.stderr) == [], done.stderr
    assert differences(collector, path) == ({}, {})
    assert {r["proctor.run"] for r in resources(collector.requests())} == {"r1"}


def test_sums_and_gauges(proctor, collector):
    done = proctor.run("-q", "-i", "20ms", f"--otlp={collector.url}", "--", "sleep", "0.2")
    assert done.returncode == 0, done.stderr
    metrics = {m["name"]: m for m in metrics_of(collector.requests())}
    time_used, memory = metrics["process.cpu.time"], metrics["process.memory.usage"]
    assert time_used["unit"] == "s" and time_used["sum"]["isMonotonic"]
    assert time_used["sum"]["aggregationTemporality"] == memory["sum"]["aggregationTemporality"] == 2  # cumulative
    assert memory["unit"] == "By" and not memory["sum"].get("isMonotonic")
    assert "gauge" in metrics["process.cpu.utilization"]
    assert {"system.cpu.time", "system.memory.usage", "process.disk.io", "proctor.cpu.time"} <= metrics.keys()


def test_killed_and_started_again_in_mid_run(proctor, collector):
    path = proctor.folder / "a.proctor"
    process = proctor.start("run", "-o", path, "-i", "50ms", f"--otlp={collector.url}", "--", "sleep", "7")
    wait_until(collector.requests, "the first samples")
    collector.kill()
    before = len(points_of(collector.requests()))
    time.sleep(2.5)  # so that something is to be sent and cannot be
    collector.start()
    wait_until(lambda: len(points_of(collector.requests())) > before, "the collector to get more")
    assert process.poll() is None, "the run goes on"
    status, _, _ = finish(process)
    assert status == 0 and differences(collector, path) == ({}, {})
    assert query(path, "SELECT sample FROM publications") == query(path, "SELECT max(sample) FROM job_samples")


def test_what_it_did_not_get_is_pushed_once(proctor, collector):
    path = proctor.folder / "a.proctor"
    collector.kill()
    done = proctor.run("-o", path, "-i", "10ms", "--flush-timeout", "100ms", f"--otlp={collector.url}", "--", "sleep",
                       "0.5")
    assert done.returncode == 0 and "are not sent" in done.stderr and "proctor push" in done.stderr
    collector.start()
    first, again = (proctor("push", path, "--otlp", collector.url) for _ in range(2))
    count, = query(path, "SELECT count(*) FROM job_samples")
    assert first.stdout == f"{count} samples sent to {collector.url}/v1/metrics\n"
    assert again.stdout.startswith("no sample was left to send")
    assert differences(collector, path) == ({}, {})


def test_a_recorder_that_is_killed_leaves_the_rest_to_be_pushed(proctor, collector):
    path = proctor.folder / "a.proctor"
    process = proctor.start("run", "-o", path, "-i", "20ms", f"--otlp={collector.url}", "--", "sleep", "20")
    wait_until(collector.requests, "the first samples")
    wait_until(lambda: query(path, "SELECT max(sample) FROM publications")[0], "that to be written down")
    time.sleep(0.2)
    children = proctor.children(process.pid)
    process.kill()
    process.wait()
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    done = proctor("push", path, "--otlp", collector.url)
    assert done.returncode == 0, done.stderr
    assert differences(collector, path) == ({}, {})
