# SPDX-License-Identifier: Apache-2.0
"""Runs on a real MLflow server: every point, and nothing twice, whatever happens to the server."""
import json
import os
import time
from pathlib import Path

import pytest

from mlflow_server import Mlflow
from proctor_cli import SLACK, finish, open_run, query, said, wait_until

MIB, MB = 1048576.0, 1e6
# What each key is, in SQL over a row of the job (j), the machine (s), and limits.
PROCESS = {"cpu_usage_percentage": "j.cpu_percent / :cpu",
           "memory_rss_megabytes": f"j.mem_rss_bytes / {MIB}",
           "memory_vms_megabytes": f"j.mem_vms_bytes / {MIB}",
           "memory_uss_megabytes": f"j.mem_uss_bytes / {MIB}",
           "memory_usage_percentage": f"100 * (j.mem_rss_bytes / {MIB}) / (:memory / {MIB})",
           "num_threads": "j.threads", "num_fds": "j.fds",
           "io_read_megabytes": f"j.io_read_bytes / {MIB}",
           "io_write_megabytes": f"j.io_write_bytes / {MIB}"}
SYSTEM = {"cpu_utilization_percentage": "100 * min(1.0, s.system_cpu_usage_cores / :cores)",
          "system_memory_usage_megabytes": f"s.system_mem_used_bytes / {MB}",
          "system_memory_usage_percentage": "100 * (s.system_mem_used_bytes / s.system_mem_total_bytes)",
          "disk_usage_percentage": "100 * (s.system_disk_space_used_bytes / s.system_disk_space_total_bytes)",
          "disk_usage_megabytes": f"s.system_disk_space_used_bytes / {MB}",
          "disk_available_megabytes": f"s.system_disk_space_free_bytes / {MB}",
          "network_receive_megabytes": f"s.system_net_rx_bytes / {MB}",
          "network_transmit_megabytes": f"s.system_net_tx_bytes / {MB}"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Mlflow(tmp_path_factory.mktemp("mlflow"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def alive(server):
    """The server, up again where a test has left it down."""
    if not server.process:
        server.start()
    return server


def remote_of(path):
    """What the run is called at the server, by its own record."""
    rows = query(path, "SELECT remote, owned, sample, ended FROM publications")
    assert len(rows) == 1
    return rows[0]


def expected(path, prefix="process/", system="system/"):
    """All points that a run has, by SQL on its file."""
    about = json.loads(query(path, "SELECT about FROM run")[0])
    values = {"cpu": about["limits"]["cpu"]["cores"], "memory": about["limits"]["memory"]["bytes"],
              "cores": query(path, "SELECT count(*) FROM entities WHERE kind = 'core'")[0]}
    base = open_run(path)
    points = {}
    for names, before in ((PROCESS, prefix), (SYSTEM, system)):
        for name, sql in names.items():
            used = {k: float(v) for k, v in values.items() if f":{k}" in sql}
            rows = base.execute(f"SELECT j.sample, (r.started + j.elapsed) / 1000000, {sql} FROM run r, job_samples j"
                                " LEFT JOIN system_samples s USING (sample) ORDER BY j.sample", used)
            found = [tuple(row) for row in rows if row[2] is not None]
            if found:
                points[before + name] = found
    base.close()
    return points


def check_points(server, path, remote, **names):
    """Every point is there, once, with its value, time and step; and nothing else is."""
    want = expected(path, **names)
    assert server.keys(remote) == set(want)
    count = 0
    for key, points in want.items():
        got = server.history(remote, key)
        assert [p[:2] for p in got] == [p[:2] for p in points], key
        for (_, _, value), (_, _, right) in zip(got, points):
            assert value == pytest.approx(right, rel=1e-12, abs=1e-12), key
        count += len(points)
    return count


def test_every_point_comes_back(proctor, alive):
    path = proctor.folder / "a.proctor"
    done = proctor.run("-o", path, "-i", "100ms", f"--mlflow={alive.url}/", "--name", "named",
                       "--label", "team=a=b", "--label", "odd?key=1", "--", "sh", "-c",
                       'echo "$PROCTOR_MLFLOW_RUN_ID ${MLFLOW_RUN_ID-none}"; sleep 2')
    assert done.returncode == 0 and said(done.stderr) == [], done.stderr
    remote, owned, sample, ended = remote_of(path)
    assert done.stdout.split() == [remote, "none"]
    assert (owned, ended) == (1, 1)
    assert sample == query(path, "SELECT max(sample) FROM job_samples")[0] >= 15
    assert check_points(alive, path, remote) > 150
    assert set(PROCESS) == {k.removeprefix("process/") for k in alive.keys(remote) if k.startswith("process/")}
    info = alive.run(remote)["info"]
    started, finished = query(path, "SELECT started / 1000000, ended / 1000000 FROM run")[0]
    assert info["status"] == "FINISHED" and info["run_name"] == "named"
    assert int(info["end_time"]) == finished and abs(int(info["start_time"]) - started) < 3000
    params, tags = alive.pairs(remote, "params"), alive.pairs(remote, "tags")
    assert params["proctor.command"].startswith("sh -c echo") and params["proctor.host"]
    assert {k: v for k, v in params.items() if "label" in k} == {"proctor.label.team": "a=b"}
    assert float(params["proctor.limit.memory_bytes"]) > 0 and float(params["proctor.limit.cpu_cores"]) > 0
    assert tags["proctor.run"] == query(path, "SELECT id FROM run")[0]
    assert tags["proctor.exit_code"] == "0" and float(tags["proctor.duration_seconds"]) > 1.9
    report = proctor.folder / "report.html"
    assert proctor("report", path, "-o", report).returncode == 0
    assert alive.artifact(remote, "proctor/report.html") == report.read_bytes()
    # One file that needs no other.
    assert sorted(p.name for p in proctor.folder.glob("a.proctor*")) == ["a.proctor"]


@pytest.mark.parametrize("command,status", [("exit 3", "FAILED"), ("kill -9 $$", "KILLED")])
def test_the_run_is_closed_as_the_job_ended(proctor, alive, command, status):
    path = proctor.folder / "a.proctor"
    done = proctor.run("-q", "-o", path, f"--mlflow={alive.url}", "--", "sh", "-c", command)
    assert done.returncode in (3, -9)
    remote = remote_of(path)[0]
    assert alive.run(remote)["info"]["status"] == status
    verdict = alive.pairs(remote, "tags").get("proctor.verdict", "")
    assert status == "FAILED" or "SIGKILL" in verdict


def test_what_could_not_be_started_has_failed(proctor, alive):
    done = proctor.run("-q", f"--mlflow={alive.url}", "--name", "nothing", "--", "no-such-program")
    assert done.returncode == 127
    runs = alive.api("runs/search", {"experiment_ids": ["0"], "filter": "run_name = 'nothing'"})["runs"]
    assert [r["info"]["status"] for r in runs] == ["FAILED"]


def test_a_run_that_is_there_is_used_and_stays_open(proctor, alive):
    path, remote = proctor.folder / "a.proctor", alive.create_run()
    env = {"MLFLOW_TRACKING_URI": alive.url, "MLFLOW_RUN_ID": remote, "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "true"}
    done = proctor.run("-o", path, "-i", "100ms", "--mlflow", "--average", "3", "--", "sh", "-c",
                       'echo "$PROCTOR_MLFLOW_RUN_ID $MLFLOW_RUN_ID $MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"; sleep 1; exit 3',
                       env=env)
    assert done.returncode == 3 and said(done.stderr) == [], done.stderr
    assert done.stdout.split() == [remote, remote, "false"]
    assert remote_of(path)[:2] == (remote, 0)
    check_points(alive, path, remote)
    assert alive.run(remote)["info"]["status"] == "RUNNING"
    assert alive.pairs(remote, "params") == {}  # they could not be changed by the next one
    assert alive.pairs(remote, "tags")["proctor.command"].startswith("sh -c")
    assert alive.artifact(remote, "proctor/report.html").startswith(b"<!")
    # Nor is it closed by who sends the rest.
    base = open_run(path, "rw")
    base.execute("UPDATE publications SET sample = 0, ended = 0")
    base.close()
    assert proctor("push", path, "--mlflow", alive.url, env=env).returncode == 0
    assert remote_of(path)[3] == 1 and alive.run(remote)["info"]["status"] == "RUNNING"


def test_a_job_can_join(proctor, alive):
    path = proctor.folder / "a.proctor"
    done = proctor.run("-q", "-o", path, f"--mlflow={alive.url}", "--mlflow-join", "--", "sh", "-c",
                       'echo "$MLFLOW_RUN_ID $MLFLOW_TRACKING_URI $MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"',
                       env={"MLFLOW_TRACKING_URI": "http://other"})
    assert done.stdout.split() == [remote_of(path)[0], alive.url, "false"], done.stderr


def test_who_has_closed_the_run_knows_better(proctor, alive):
    path = proctor.folder / "a.proctor"
    close = ("import json,os,urllib.request as u; u.urlopen(u.Request(os.environ['MLFLOW_TRACKING_URI'] +"
             " '/api/2.0/mlflow/runs/update', json.dumps({'run_id': os.environ['MLFLOW_RUN_ID'], 'status': 'FINISHED',"
             " 'end_time': 1}).encode(), {'Content-Type': 'application/json'})); raise SystemExit(4)")
    done = proctor.run("-q", "-o", path, f"--mlflow={alive.url}", "--mlflow-join", "--", "/usr/bin/python3", "-c", close)
    assert done.returncode == 4, done.stderr
    info = alive.run(remote_of(path)[0])["info"]
    assert (info["status"], int(info["end_time"])) == ("FINISHED", 1)


def test_experiment_prefix_and_node(proctor, alive):
    for _ in range(2):  # it is made, then found
        path = proctor.folder / "a.proctor"
        done = proctor.run("-q", "-o", path, "--force", f"--mlflow={alive.url}", "--prefix", "mine/", "--node", "3",
                           "--", "sleep", "0.3", env={"MLFLOW_EXPERIMENT_NAME": "a name/with é"})
        assert done.returncode == 0 and done.stderr == "", done.stderr
        remote = remote_of(path)[0]
        check_points(alive, path, remote, prefix="mine/node_3/", system="system/node_3/")
        experiment = alive.api("experiments/get-by-name", experiment_name="a name/with é")["experiment"]
        assert alive.run(remote)["info"]["experiment_id"] == experiment["experiment_id"]


def test_a_server_that_dies_and_comes_back_has_everything(proctor, alive):
    path = proctor.folder / "a.proctor"
    go = proctor.folder / "go"
    running = proctor.start("run", "-o", path, "-i", "10ms", "--flush-timeout", "60s", f"--mlflow={alive.url}", "--",
                            "sh", "-c", f"while ! test -e {go}; do sleep 0.1; done")
    wait_until(lambda: path.exists() and path.stat().st_size and sent(path) > 0, "the first samples to be sent")
    alive.kill()
    before = sent(path)
    wait_until(lambda: query(path, "SELECT max(sample) FROM job_samples")[0] > before + 300, "samples meanwhile")
    assert sent(path) == before
    alive.start()
    go.touch()
    status, _, err = finish(running, timeout=120)
    assert status == 0, err
    assert not any("not sent" in line for line in said(err)), err
    remote, _, sample, ended = remote_of(path)
    assert ended == 1 and sample == query(path, "SELECT max(sample) FROM job_samples")[0]
    late = sum(p[0] > before for points in expected(path).values() for p in points)
    assert check_points(alive, path, remote) > late > 2000  # which went out in one flush
    assert alive.run(remote)["info"]["status"] == "FINISHED"


def sent(path):
    try:
        return query(path, "SELECT max(sample) FROM publications")[0] or 0
    except Exception:  # it is not there yet
        return 0


def test_push_sends_what_is_missing_and_nothing_twice(proctor, alive):
    path = proctor.folder / "a.proctor"
    alive.kill()
    began = time.monotonic()
    done = proctor.run("-o", path, "-i", "10ms", "--flush-timeout", "500ms", f"--mlflow={alive.url}", "--", "sh", "-c",
                       'echo "${PROCTOR_MLFLOW_RUN_ID-none}"; sleep 4; exit 5')
    assert done.returncode == 5 and done.stdout == "none\n"
    assert time.monotonic() - began < 7 * SLACK
    text = "\n".join(said(done.stderr))
    assert "the job starts without" in text and f"`proctor push {path}` sends them" in text
    samples = query(path, "SELECT count(*) FROM job_samples")[0]
    assert f"{samples} samples are not sent" in text
    alive.start()
    done = proctor("push", path, "--mlflow", alive.url)
    remote = remote_of(path)[0]
    assert done.returncode == 0 and done.stdout == f"{samples} samples sent to run {remote}\n", done.stderr
    assert check_points(alive, path, remote) > 2000
    assert alive.run(remote)["info"]["status"] == "FAILED"
    again = proctor("push", path, "--mlflow", alive.url + "/")
    assert again.stdout == f"no sample was left to send to run {remote}\n", again.stderr
    check_points(alive, path, remote)
    # A cursor that is behind, as after a crash: the same points once more are the same points.
    base = open_run(path, "rw")
    base.execute("UPDATE publications SET sample = sample - 50, ended = 0")
    base.close()
    assert proctor("push", path, "--mlflow", alive.url).stdout == f"50 samples sent to run {remote}\n"
    check_points(alive, path, remote)
    # Who did not hear that the run was made finds it.
    base = open_run(path, "rw")
    base.execute("DELETE FROM publications")
    base.close()
    assert proctor("push", path, "--mlflow", alive.url).stdout == f"{samples} samples sent to run {remote}\n"
    check_points(alive, path, remote)


def test_a_run_can_be_pushed_while_it_is_recorded(proctor, alive):
    path = proctor.folder / "a.proctor"
    go = proctor.folder / "go"
    running = proctor.start("run", "-q", "-o", path, "-i", "100ms", "--", "sh", "-c",
                            f"while ! test -e {go}; do sleep 0.1; done")
    wait_until(lambda: path.exists() and path.stat().st_size and rows(path) > 3, "some samples")
    done = proctor("push", path, "--mlflow", alive.url)
    remote = remote_of(path)[0]
    assert done.returncode == 0 and "which goes on" in done.stdout, done.stderr
    assert alive.run(remote)["info"]["status"] == "RUNNING"
    go.touch()
    assert finish(running)[0] == 0
    assert proctor("push", path, "--mlflow", alive.url).returncode == 0
    check_points(alive, path, remote)
    assert alive.run(remote)["info"]["status"] == "FINISHED"


def rows(path):
    try:
        return query(path, "SELECT count(*) FROM job_samples")[0]
    except Exception:  # it is not there yet
        return 0


def test_a_run_that_does_not_exist_is_said(proctor, alive):
    done = proctor.run("--mlflow", "--", "sleep", "0.2",
                       env={"MLFLOW_TRACKING_URI": alive.url, "MLFLOW_RUN_ID": "0" * 32})
    assert done.returncode == 0
    assert "not found" in done.stderr and "not sent" in done.stderr


def test_thousands_of_points_make_no_second_run_file(proctor, alive):
    """The record stays the one file that it is without publishing."""
    done = proctor.run("-q", "-i", "20ms", f"--mlflow={alive.url}", "--", "sleep", "0.5")
    assert done.returncode == 0
    folder = Path(proctor.folder / "home/.local/state/proctor/runs")
    assert [p.suffix for p in folder.iterdir()] == [".proctor"]
    assert os.stat(proctor.runs()[0]).st_mode & 0o777 == 0o600


def test_four_nodes_of_one_job_are_one_run(proctor, alive):
    """They have one run id. Who comes before the first node waits for it."""
    files = {n: proctor.folder / f"{n}.proctor" for n in range(5)}

    def words(node, *more):
        return ["run", "-q", "-o", files[node], "-i", "100ms", "--run-id", "shared", "--node", node, *more, "--", "sh"]
    running, env = [], {"MLFLOW_EXPERIMENT_NAME": "of four nodes"}
    for node in (3, 1, 0, 2):
        running.append(proctor.start(*words(node, f"--mlflow={alive.url}"), "-c",
                                     'echo "$PROCTOR_MLFLOW_RUN_ID"; sleep 1.5', env=env))
        time.sleep(0.3)
    ended = [finish(r, timeout=60) for r in running]
    assert [(status, err) for status, _, err in ended] == [(0, "")] * 4
    remote = remote_of(files[0])[0]
    assert {out.strip() for _, out, _ in ended} == {remote_of(files[n])[0] for n in range(4)} == {remote}
    experiment = alive.api("experiments/get-by-name", experiment_name="of four nodes")["experiment"]["experiment_id"]
    runs = alive.api("runs/search", {"experiment_ids": [experiment]})["runs"]
    assert [r["info"]["run_id"] for r in runs] == [remote]
    check_nodes(alive, remote, files, range(4))
    assert alive.run(remote)["info"]["status"] == "FINISHED"
    assert {f"proctor.node_{n}.command" for n in range(4)} <= set(alive.pairs(remote, "params"))
    # One more, sent later, which has failed.
    assert proctor(*words(4), "-c", "exit 3").returncode == 3
    done = proctor("push", files[4], "--mlflow", alive.url, env=env)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    check_nodes(alive, remote, files, range(5))
    assert alive.run(remote)["info"]["status"] == "FAILED"


def check_nodes(server, remote, files, nodes):
    """All points of all nodes, each under its own names, and a report of each."""
    want = {}
    for n in nodes:
        want |= expected(files[n], prefix=f"process/node_{n}/", system=f"system/node_{n}/")
        assert server.artifact(remote, f"proctor/node_{n}/report.html").startswith(b"<!")
    assert server.keys(remote) == set(want)
    for key, points in want.items():
        got = server.history(remote, key)
        assert [p[:2] for p in got] == [p[:2] for p in points], key
        assert [p[2] for p in got] == pytest.approx([p[2] for p in points], rel=1e-12, abs=1e-12), key


def test_a_node_whose_first_node_has_no_run_makes_its_own(proctor, alive):
    path = proctor.folder / "a.proctor"
    assert proctor.run("-q", "-o", path, "--run-id", "lonely", "--node", "2", "--", "true").returncode == 0
    base = open_run(path, "rw")
    base.execute("UPDATE run SET started = started - 20000000000, ended = ended - 20000000000")  # it has waited
    base.close()
    done = proctor("push", path, "--mlflow", alive.url)
    remote = remote_of(path)[0]
    assert done.returncode == 0 and "node_0 has made no run for lonely" in done.stderr, done.stderr
    assert alive.run(remote)["info"]["status"] == "FINISHED"
    assert alive.pairs(remote, "tags")["proctor.run"] == "lonely node_2"
    base = open_run(path, "rw")
    base.execute("DELETE FROM publications")  # as if its answer had not come
    base.close()
    done = proctor("push", path, "--mlflow", alive.url)
    assert done.returncode == 0 and done.stderr == "" and remote_of(path)[0] == remote, done.stderr
