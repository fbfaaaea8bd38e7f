# SPDX-License-Identifier: Apache-2.0
"""A real MLflow server, and MLflow's own client that reads back what was logged."""
import json
import sys

import pytest
from pythons import PLACES, ROOT, clean_environment, run_script

sys.path.append(str(ROOT / "tests" / "cli"))
from mlflow_server import Mlflow  # noqa: E402


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Mlflow(tmp_path_factory.mktemp("mlflow"))
    try:
        yield made.start()
    finally:
        made.kill()


def run(server, folder, text):
    env = clean_environment(folder, **PLACES, MLFLOW_TRACKING_URI=server.url, MLFLOW_DISABLE_TELEMETRY="true")
    return json.loads(run_script(server.python, text, folder, env=env).stdout.splitlines()[-1])


def test_the_client_reads_back_what_the_monitor_logged(server, tmp_path):
    """Nine metrics, a point for each sample with its own time, and the last of the end."""
    found = run(server, tmp_path, """
        import json, time, mlflow
        from proctor.compat.stouputils import ProcessMetricsMonitor
        x = bytearray(b"1") * (100 << 20)
        with mlflow.start_run() as run:
            start = time.time()
            with ProcessMetricsMonitor(sampling_interval=0.5, max_cpu_count=4) as monitor:
                end = time.thread_time() + 1.2
                while time.thread_time() < end: pass
            stop = time.time()
        client = mlflow.MlflowClient()
        run = client.get_run(run.info.run_id)
        history = {k: [(p.step, p.timestamp / 1000, p.value) for p in client.get_metric_history(run.info.run_id, k)]
                   for k in run.data.metrics}
        print(json.dumps([start, stop, monitor.step, history]))
    """)
    start, stop, steps, history = found
    assert set(history) == {f"process/{name}" for name in (
        "cpu_usage_percentage", "memory_rss_megabytes", "memory_vms_megabytes", "memory_uss_megabytes",
        "memory_usage_percentage", "num_threads", "num_fds", "io_read_megabytes", "io_write_megabytes")}
    points = history["process/memory_uss_megabytes"]
    assert [point[0] for point in points] == list(range(steps)) and steps >= 3
    assert start - 0.1 <= points[0][1] <= start + 0.4 and abs(points[-1][1] - stop) < 0.5
    assert all(100 <= point[2] <= 400 for point in points)
    shares = [point[2] for point in history["process/cpu_usage_percentage"]][1:]
    assert max(shares) <= 101 and 5 < sum(shares) / len(shares) < 40  # of four cores


def test_the_active_run_gets_samples_tags_and_the_report(server, tmp_path):
    found = run(server, tmp_path, """
        import json, time, mlflow
        from proctor.integrations.mlflow import ActiveRun
        try:
            ActiveRun().start()
            raise SystemExit("there is no run")
        except RuntimeError: pass
        with mlflow.start_run() as run:
            with ActiveRun(interval=0.2, flush=0.3) as active:
                x = bytearray(b"1") * (50 << 20)
                time.sleep(1.0)
        client = mlflow.MlflowClient()
        data = client.get_run(run.info.run_id).data
        points = {k: len(client.get_metric_history(run.info.run_id, k)) for k in data.metrics}
        page = open(client.download_artifacts(run.info.run_id, "proctor.html")).read()
        print(json.dumps([data.metrics, {k: v for k, v in data.tags.items() if k.startswith("proctor")}, points,
                          len(page), active.summary.id]))
    """)
    metrics, tags, points, page, ident = found
    assert {"process/memory_rss_megabytes", "process/memory_usage_percentage", "process/cpu_usage_percentage",
            "system/cpu_utilization_percentage", "system/system_memory_usage_percentage",
            "system/disk_usage_percentage", "system/network_receive_megabytes"} <= set(metrics)
    assert points["process/memory_rss_megabytes"] >= 5 and 50 < metrics["process/memory_rss_megabytes"] < 400
    assert tags["proctor.run"] == ident and page > 10000
    assert set(tags) == {f"proctor.{name}" for name in (  # those of `proctor run --mlflow`
        "run", "duration_seconds", "cpu_time_seconds", "mem_pss_peak_bytes", "mem_rss_peak_bytes")}
    assert int(tags["proctor.mem_pss_peak_bytes"]) > 50 * 2 ** 20 and float(tags["proctor.duration_seconds"]) >= 1
