# SPDX-License-Identifier: Apache-2.0
"""Servers that are dead, slow, refuse, or say nonsense: none of them costs the job or its samples
anything, and no secret gets out."""
import base64
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from faulty_server import FAULTS, RUN, Handler, Server, make_certificate, with_tls
from proctor_cli import PROCTOR, SLACK, finish, open_run, query, said, skip_visibly, wait_until
from servers import free_port

BUILD = Path(os.environ.get("PROCTOR_BUILD") or Path(PROCTOR).parent)
SECRET = "h1dden-pass"


@pytest.fixture
def serve():
    servers = []

    def make(fault=None):
        servers.append(Server(fault))
        return servers[-1]
    yield make
    for server in servers:
        server.close()


def job_time(path):
    """How long the recorder had the job, and how its samples came: seconds."""
    elapsed = [t / 1e9 for t in query(path, "SELECT elapsed FROM job_samples ORDER BY sample")]
    steps = [b - a for a, b in zip(elapsed[1:-1], elapsed[2:-1])]
    return elapsed[-1], statistics.median(abs(s - 0.02) for s in steps), len(elapsed)


@pytest.mark.parametrize("name", ["dead", *FAULTS])
def test_a_bad_server_costs_nothing(proctor, serve, name):
    url = serve(FAULTS[name]).url if name != "dead" else f"http://127.0.0.1:{free_port()}"
    path = proctor.folder / "a.proctor"
    began = time.monotonic()
    done = proctor.run("-o", path, "-i", "20ms", "--flush-timeout", "1s", f"--mlflow={url}", "--", "sh", "-c",
                       "sleep 1; exit 3")
    took = time.monotonic() - began
    assert done.returncode == 3
    text = "\n".join(said(done.stderr))
    assert "are not sent" in text and "proctor push" in text, text
    waits = name in ("silent", "drip")  # two seconds for a place, one to flush, and half a second of grace
    assert took < ((5 if waits else 3.5) + 1.5) * SLACK, text
    assert job_time(path)[0] < 2 * SLACK  # waiting for a place is not of the run
    assert query(path, "SELECT count(*) FROM summary")[0] == 1
    assert sorted(p.name for p in proctor.folder.glob("a.proctor*")) == ["a.proctor"]


@pytest.mark.parametrize("name", ["dead", "drip", "hangs up"])
def test_neither_job_nor_samples_notice(proctor, serve, name):
    """Beside a run that is not published; test_publish_cost.py has others. The machine is shared: what is really slower is so each time."""
    url = serve(FAULTS[name]).url if name != "dead" else f"http://127.0.0.1:{free_port()}"
    path = proctor.folder / "a.proctor"
    seen = []
    for _ in range(4):
        found = []
        for options in ([], [f"--mlflow={url}"]):
            done = proctor.run("-q", "-o", path, "--force", "-i", "20ms", "--flush-timeout", "100ms", *options, "--",
                               "sh", "-c", "i=0; while test $i -lt 100000; do i=$((i + 1)); done; sleep 1")
            assert done.returncode == 0
            found.append(job_time(path))
        (plain, jitter, samples), (with_server, its_jitter, its_samples) = found
        seen.append(found)
        if with_server < 1.05 * plain + 0.02 and its_jitter < 1.2 * jitter + 0.001 and its_samples > 0.9 * samples:
            return
    pytest.fail(f"seconds, jitter, samples without and with: {seen}")


def test_without_a_fault_all_is_sent_once(proctor, serve):
    server = serve()
    path = proctor.folder / "a.proctor"
    done = proctor.run("-o", path, "-i", "10ms", "--budget", "100%", f"--mlflow={server.url}", "--", "sleep", "1")
    assert done.returncode == 0 and said(done.stderr) == []
    batches = [json.loads(r[3]) for r in server.sent("log-batch")]
    steps = {m["step"] for b in batches for m in b.get("metrics", [])}
    assert steps == set(query(path, "SELECT sample FROM job_samples"))
    points = [(m["key"], m["step"]) for b in batches for m in b.get("metrics", [])]
    assert len(points) == len(set(points)) > 900
    assert all(len(b.get("metrics", [])) + len(b.get("params", [])) + len(b.get("tags", [])) <= 1000
               for b in batches)
    assert all(len(r[3]) < 1_000_000 for r in server.requests)


def test_a_machine_and_a_process_that_runs_already(proctor, serve):
    job = proctor.other(["sleep", "30"])
    for words, expected in ((["attach", job.pid], {"process/", "system/"}), (["system"], {"system/"})):
        server = serve()
        done = proctor(words[0], "-q", "--duration", "500ms", "-i", "100ms", f"--mlflow={server.url}", *words[1:])
        assert done.returncode == 0 and done.stderr == "", done.stderr
        keys = {m["key"] for r in server.sent("log-batch") for m in json.loads(r[3]).get("metrics", [])}
        assert {k[:k.index("/") + 1] for k in keys} == expected
        assert json.loads(server.sent("runs/update")[0][3])["status"] == "FINISHED"


def test_retry_after_is_honoured(proctor, serve):
    def busy(handler):
        server = handler.server
        first = server.requests[0][0]
        if time.monotonic() - first < 0.2 or len(server.sent("log-batch")) != 1:
            server.fault = None if len(server.sent("log-batch")) > 1 else busy
            return Handler.answer(handler, body=json.dumps(
                {"run": {"info": {"run_id": RUN, "status": "RUNNING"}}}).encode())
        return handler.answer(429, b"{}", [("Retry-After", "3")])
    server = serve(busy)
    done = proctor.run("-q", "-i", "50ms", "--flush-timeout", "20s", f"--mlflow={server.url}", "--", "sleep", "3.2")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    refused, again = server.sent("log-batch")[:2]
    assert again[0] - refused[0] >= 2.9
    assert json.loads(refused[3]) == json.loads(again[3])  # what failed is sent as it was


def test_attempts_become_rare(proctor, serve):
    server = serve(FAULTS["500"])
    done = proctor.run("-i", "50ms", "--flush-timeout", "100ms", f"--mlflow={server.url}", "--", "sleep", "6")
    assert done.returncode == 0
    assert 2 <= len(server.requests) <= 9  # 1, 2, 4 seconds with up to half of it chance, and the end
    assert len([line for line in said(done.stderr) if "tried again" in line]) == 1


def test_a_run_of_which_much_is_known(proctor, serve):
    """As one of a thousand nodes is."""
    server = serve()
    server.data = {"tags": [{"key": f"proctor.node_{i // 10}.{i}", "value": "x" * 50} for i in range(20_000)]}
    done = proctor.run("-q", f"--mlflow={server.url}", "--", "true", env={"MLFLOW_RUN_ID": RUN})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert server.sent("runs/get") and server.sent("mlflow-artifacts") and not server.sent("runs/update")


def test_who_says_at_once_is_not_asked_all_the_time(proctor, serve):
    server = serve(lambda h: h.answer(503, headers=[("Retry-After", "0")]))
    assert proctor.run("-q", "--flush-timeout", "0", f"--mlflow={server.url}", "--", "sleep", "2.5").returncode == 0
    assert 2 <= len(server.requests) <= 5  # after 1 and 2 seconds with up to half of it chance, and at the end


def test_without_time_for_servers_the_record_is_whole_and_nothing_chosen_is_lost(proctor, serve):
    """The names of the metrics hold for the push, too, and so does the node, whatever node that is on."""
    server, path = serve(FAULTS["500"]), proctor.folder / "a.proctor"
    done = proctor.run("-q", "-o", path, "-i", "20ms", "--flush-timeout", "0", "--prefix", "train/",
                       f"--mlflow={server.url}", "--", "sleep", "0.3",
                       env={"SLURM_NODEID": "0", "SLURM_JOB_NUM_NODES": "2"})
    assert done.returncode == 0 and "blocked" not in done.stderr, done.stderr
    assert query(path, "SELECT count(*) FROM summary") == [1]
    assert sorted(p.name for p in proctor.folder.glob("a.proctor*")) == ["a.proctor"]
    assert query(path, "SELECT node FROM run") == ["0"]
    server.fault = None
    push = proctor("push", path, "--mlflow", server.url, env={"SLURM_NODEID": "1", "SLURM_JOB_NUM_NODES": "2"})
    assert push.returncode == 0, push.stderr
    keys = {m["key"] for r in server.sent("log-batch") for m in json.loads(r[3]).get("metrics", [])}
    assert {k.rpartition("/")[0] for k in keys} == {"train/node_0", "system/node_0"}


def test_a_description_that_is_refused_holds_up_no_sample(proctor, serve):
    def old(handler):  # parameters of 500 bytes at the most
        body = handler.server.requests[-1][3]
        refused = "log-batch" in handler.path and b'"params"' in body
        if refused:
            return handler.answer(400, b'{"message": "Param value is longer than 500"}')
        return handler.answer(body=json.dumps({"run": {"info": {"run_id": RUN, "status": "RUNNING"}}}).encode())
    server = serve(old)
    path = proctor.folder / "a.proctor"
    done = proctor.run("-o", path, "-i", "50ms", f"--mlflow={server.url}", "--", "sleep", "0.3")
    assert done.returncode == 0 and "longer than 500" in done.stderr, done.stderr
    steps = {m["step"] for r in server.sent("log-batch") for m in json.loads(r[3]).get("metrics", [])}
    assert steps == set(query(path, "SELECT sample FROM job_samples"))


def test_an_experiment_that_another_node_has_made_meanwhile(proctor, serve):
    def late(handler):
        server = handler.server
        if "get-by-name" in handler.path and not server.sent("experiments/create"):
            return handler.answer(404, b'{"error_code": "RESOURCE_DOES_NOT_EXIST"}')
        if "get-by-name" in handler.path:
            server.fault = None
            return handler.answer(body=b'{"experiment": {"experiment_id": "7"}}')
        return handler.answer(400, b'{"error_code": "RESOURCE_ALREADY_EXISTS"}')
    server = serve(late)
    done = proctor.run("-q", f"--mlflow={server.url}", "--", "true", env={"MLFLOW_EXPERIMENT_NAME": "new"})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert json.loads(server.sent("runs/create")[0][3])["experiment_id"] == "7"


# --- the report -----------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["silent", "500", "half"])
def test_a_report_that_could_not_be_sent_is_pushed_later(proctor, serve, name):
    server, path = serve(FAULTS[name]), proctor.folder / "a.proctor"
    server.files_only = True
    began = time.monotonic()
    done = proctor.run("-o", path, "-i", "100ms", "--flush-timeout", "1s", f"--mlflow={server.url}", "--", "sleep", "0.5")
    assert done.returncode == 0 and time.monotonic() - began < 4.5 * SLACK
    text = "\n".join(said(done.stderr))
    assert "the report" in text and "proctor push" in text, text
    assert json.loads(server.sent("runs/update")[0][3])["status"] == "FINISHED"
    assert query(path, "SELECT ended FROM publications") == [0]
    server.fault, server.requests[:] = None, []
    report = proctor.folder / "r.html"
    assert proctor("report", path, "-o", report).returncode == 0
    for expected in ([report.read_bytes()], []):
        done = proctor("push", path, "--mlflow", server.url)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        files = server.sent("mlflow-artifacts")
        assert [r[3] for r in files] == expected
        server.requests.clear()
    assert files == [] and query(path, "SELECT ended FROM publications") == [1]


def test_where_and_as_what_the_report_goes(proctor, serve):
    server = serve()
    done = proctor.run("-q", "--node", "3", f"--mlflow={server.url}/pre/fix", "--", "true",
                       env={"MLFLOW_TRACKING_TOKEN": "tok", "MLFLOW_WORKSPACE": "ours"})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    (_, place, headers, body), = server.sent("mlflow-artifacts")
    assert place == f"/pre/fix/api/2.0/mlflow-artifacts/artifacts/0/{RUN}/a%20b/proctor/node_3/report.html"
    assert headers["Content-Type"] == "text/html" and headers["Authorization"] == "Bearer tok"
    assert b"</html>" in body
    assert {r[2].get("X-MLFLOW-WORKSPACE") for r in server.requests} == {"ours"}


@pytest.mark.parametrize("artifacts", ["s3://bucket/0/x", "", "mlflow-artifacts://elsewhere:1/0/x", "refused"])
def test_where_no_report_can_be_that_is_said_once(proctor, serve, artifacts):
    """It is no trouble: --strict does not mind."""
    server, path = serve(), proctor.folder / "a.proctor"
    if artifacts == "refused":
        server.fault, server.files_only = FAULTS["refuses"], True
    else:
        server.artifacts = artifacts
    done = proctor.run("--strict", "-o", path, "--flush-timeout", "5s", f"--mlflow={server.url}", "--", "true")
    assert done.returncode == 0, done.stderr
    assert len([line for line in said(done.stderr) if "the report is not there" in line]) == 1, done.stderr
    assert len(server.sent("mlflow-artifacts")) == (artifacts == "refused")
    assert query(path, "SELECT ended FROM publications") == [1]


# --- secrets --------------------------------------------------------------------------------------

def authorization(server):
    found = {r[2].get("Authorization") for r in server.requests}
    assert len(found) == 1, found
    return found.pop()


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_credentials_as_the_client_of_mlflow_takes_them(proctor, serve):
    credentials = proctor.folder / "home/.mlflow/credentials"
    cases = [({"MLFLOW_TRACKING_TOKEN": "tok"}, "", "Bearer tok"),
             ({"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "pw", "MLFLOW_TRACKING_TOKEN": "tok"}, "",
              basic("me", "pw")),
             ({}, "[mlflow]\nmlflow_tracking_username = filed\nmlflow_tracking_password = in file\n",
              basic("filed", "in file")),
             ({}, "[other]\nmlflow_tracking_username = filed\n", None)]
    credentials.parent.mkdir()
    for env, text, expected in cases:
        credentials.write_text(text)
        server = serve()
        assert proctor.run("-q", f"--mlflow={server.url}", "--", "true", env=env).returncode == 0
        assert authorization(server) == expected
    server = serve()
    proctor.run("-q", f"--mlflow={server.url.replace('//', '//a%40b:p%3aw@')}", "--", "true")
    assert authorization(server) == basic("a@b", "p:w")


def test_secrets_are_nowhere(proctor, serve):
    """Neither in `ps`, nor in the record, nor in what is said, be the server good or bad."""
    for fault in (None, FAULTS["refuses"], FAULTS["hangs up"]):
        server = serve(fault)
        path = proctor.folder / "a.proctor"
        url = server.url.replace("//", f"//me:{SECRET}@")
        running = proctor.start("run", "-v", "-o", path, "--force", "--flush-timeout", "500ms", f"--mlflow={url}",
                                "--", "sh", "-c", "env; sleep 1", env={"MLFLOW_TRACKING_TOKEN": SECRET + "2"})
        proctor.job_of(running)
        assert SECRET not in Path(f"/proc/{running.pid}/cmdline").read_text()
        status, out, err = finish(running)
        assert status == 0
        assert SECRET not in err
        assert SECRET not in out.replace(f"MLFLOW_TRACKING_TOKEN={SECRET}2", "")  # which was the job's own
        assert SECRET.encode() not in path.read_bytes()
        pushed = proctor.start("push", path, "--mlflow", url)
        if fault:
            wait_until(lambda: "push" in Path(f"/proc/{pushed.pid}/cmdline").read_text(), "push")
        if fault is FAULTS["hangs up"]:  # it would try for half a minute
            asked = len(server.requests)
            wait_until(lambda: len(server.requests) > asked, "push to ask")
            pushed.terminate()
        status, out, err = finish(pushed, timeout=60)
        assert status == (-15 if fault is FAULTS["hangs up"] else 1 if fault else 0)
        assert SECRET not in out + err and SECRET.encode() not in path.read_bytes()


def test_secrets_of_other_commands(proctor, serve):
    url = serve(FAULTS["silent"]).url.replace("//", f"//me:{SECRET}@")
    job = proctor.other(["sleep", "30"])
    for words in (["attach", "-q", "--flush-timeout", "100ms", f"--mlflow={url}", job.pid],
                  ["push", "--mlflow", url, proctor.folder / "a.proctor"]):
        if words[0] == "push":
            assert proctor.run("-q", "-o", proctor.folder / "a.proctor", "--", "true").returncode == 0
        running = proctor.start(*words)
        wait_until(lambda: "*****" in Path(f"/proc/{running.pid}/cmdline").read_text(), "the password to be covered")
        assert SECRET not in Path(f"/proc/{running.pid}/cmdline").read_text()
        running.terminate()
        running.wait(timeout=30 * SLACK)
    shown = proctor("config", env={"PROCTOR_MLFLOW": url}).stdout
    assert SECRET not in shown and "me:****" in shown


# --- TLS ------------------------------------------------------------------------------------------

@pytest.fixture
def certificate(tmp_path):
    try:
        return make_certificate(tmp_path)
    except FileNotFoundError:
        skip_visibly("openssl is not there")


def test_certificates(proctor, serve, certificate):
    server = serve()
    url = with_tls(server, certificate)
    path, folder = proctor.folder / "a.proctor", proctor.folder / "believed"
    done = proctor.run("-o", path, f"--mlflow={url}", "--", "sh", "-c", "exit 4")
    assert done.returncode == 4 and "certificate" in done.stderr and not server.requests
    folder.mkdir()
    name = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", certificate[0]], check=True,
                          capture_output=True, text=True).stdout.strip()
    (folder / f"{name}.0").write_bytes(certificate[0].read_bytes())
    for env in ({"MLFLOW_TRACKING_SERVER_CERT_PATH": str(certificate[0])},
                {"MLFLOW_TRACKING_SERVER_CERT_PATH": str(folder)}, {"MLFLOW_TRACKING_INSECURE_TLS": "true"}):
        server.requests.clear()
        done = proctor.run(f"--mlflow={url}", "--", "true", env=env)
        assert done.returncode == 0 and said(done.stderr) == [], (env, done.stderr)
        assert server.sent("log-batch")


def test_our_own_certificate(proctor, serve, certificate):
    """One file has the certificate and its key, as MLflow's client takes it."""
    ours = proctor.folder / "ours.pem"
    ours.write_bytes(certificate[0].read_bytes() + certificate[1].read_bytes())
    server = serve()
    url = with_tls(server, certificate, clients=certificate[0])
    believed = {"MLFLOW_TRACKING_SERVER_CERT_PATH": str(certificate[0])}
    done = proctor.run("--flush-timeout", "500ms", f"--mlflow={url}", "--", "sh", "-c", "exit 4", env=believed)
    assert done.returncode == 4 and "not sent" in done.stderr and not server.requests, done.stderr
    done = proctor.run("--flush-timeout", "500ms", f"--mlflow={url}", "--", "true",
                       env={**believed, "MLFLOW_TRACKING_CLIENT_CERT_PATH": "/no/such/file.pem"})
    assert done.returncode == 0 and "not sent" in done.stderr and not server.requests, done.stderr
    done = proctor.run(f"--mlflow={url}", "--", "true",
                       env={**believed, "MLFLOW_TRACKING_CLIENT_CERT_PATH": str(ours)})
    assert done.returncode == 0 and said(done.stderr) == [], done.stderr
    assert server.sent("log-batch") and server.sent("mlflow-artifacts")


def test_a_server_that_lets_nobody_in_is_given_up_at_once(proctor, serve):
    """And nobody is told that a run is made later."""
    server = serve(lambda h: h.answer(401))
    done = proctor.run("--mlflow-join", f"--mlflow={server.url}", "--", "true")
    text = "\n".join(said(done.stderr))
    assert "set MLFLOW_TRACKING_USERNAME" in text and "made later" not in text, text
    done = proctor.run(f"--mlflow={server.url}", "--", "true", env={"MLFLOW_TRACKING_TOKEN": SECRET})
    assert "MLFLOW_TRACKING_TOKEN, or" in done.stderr and SECRET not in done.stderr
    done = proctor.run("--mlflow-join", "--", "true")
    assert "--mlflow-join does nothing" in done.stderr


# --- what is no server ----------------------------------------------------------------------------

@pytest.mark.parametrize("uri", ["sqlite:///mlflow.db", f"postgresql://me:{SECRET}@host/db", "file:/tmp/mlruns",
                                 "./mlruns", "mysql+pymysql://x"])
def test_stores_that_need_python_are_refused_in_words(proctor, uri):
    done = proctor.run(f"--mlflow={uri}", "--", "touch", "started")
    assert done.returncode == 125 and len(said(done.stderr)) == 1
    assert "Python" in done.stderr and "mlflow server" in done.stderr and SECRET not in done.stderr
    assert not (proctor.work / "started").exists()


@pytest.mark.parametrize("words,env,reason", [
    (["--mlflow"], {}, "MLFLOW_TRACKING_URI"),
    (["--mlflow=127.0.0.1:5716"], {}, "write it as http://127.0.0.1:5716"),
    (["--mlflow=htp://host:1/a"], {}, "'htp://host:1/a' is no address; write it as http://host:1/a"),
    (["--mlflow", "http://x:5000"], {}, "did you mean --mlflow=http://x:5000?"),
    (["--mlflow=http://x", "--no-record"], {}, "--no-record"),
    (["--mlflow=http://x", "--prefix", "/a"], {}, "--prefix"),
    (["--mlflow=http://x", "--node", "a?b"], {}, "--node"),
    (["--mlflow=databricks"], {}, "DATABRICKS_HOST"),
    (["--mlflow=http://x"], {"MLFLOW_TRACKING_AWS_SIGV4": "true"}, "SIGV4")])
def test_what_cannot_be_is_said_before_the_job(proctor, words, env, reason):
    done = proctor.run(*words, "--", "touch", "started", env=env)
    assert done.returncode == 125 and len(said(done.stderr)) == 1 and reason in done.stderr
    assert not (proctor.work / "started").exists()


@pytest.mark.parametrize("env,node", [
    ({"SLURM_NODEID": "2", "SLURM_JOB_NUM_NODES": "4"}, "node_2/"),
    ({"SLURM_NODEID": "0", "SLURM_JOB_NUM_NODES": "1"}, ""),
    ({"GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2"}, "node_1/"),
    ({"OMPI_COMM_WORLD_RANK": "7", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, "node_1/"),
    ({}, "")])
def test_nodes(proctor, serve, env, node):
    server = serve()
    assert proctor.run("-q", f"--mlflow={server.url}", "--", "true", env=env).returncode == 0
    keys = {m["key"] for r in server.sent("log-batch") for m in json.loads(r[3]).get("metrics", [])}
    assert f"process/{node}io_read_megabytes" in keys and f"system/{node}system_memory_usage_megabytes" in keys


# --- GPUs -----------------------------------------------------------------------------------------

GPU_KEYS = {"memory_usage_percentage": lambda v: 100 * v["gpu.mem.used"] / v["gpu.mem.total"],
            "memory_usage_megabytes": lambda v: v["gpu.mem.used"] / 1e6,
            "utilization_percentage": lambda v: 100 * v["gpu.util"],
            "power_usage_watts": lambda v: v["gpu.power"],
            "power_usage_percentage": lambda v: 100 * v["gpu.power"] / v["gpu.power.limit"]}


def gpu_points(requests):
    """What was sent of GPUs: {key: {step: value}}."""
    points = {}
    for r in requests:
        for m in json.loads(r[3]).get("metrics", []):
            if "gpu_" in m["key"]:
                points.setdefault(m["key"], {})[m["step"]] = m["value"]
    return points


def test_gpus_also_where_a_push_goes_on(proctor, serve):
    """Each as the JSON lines have it; a value that does not change is stored once and sent each time."""
    fake = BUILD / "tests" / "fake_nvml"
    script = proctor.work / "nvml"
    script.write_text("device 0 H200 GPU-aaaa 150000000000 2000000000\n"
                      "device 1 H100 GPU-bbbb 80000000000 1000000000\nutil 0 80 0 99\nutil 1 20 0 99\n")
    server, path = serve(), proctor.folder / "a.proctor"
    done = proctor.run("-q", "-o", path, "-i", "200ms", "--jsonl", "a.jsonl", f"--mlflow={server.url}", "--", "sleep", "2",
                       env={"LD_LIBRARY_PATH": str(fake), "FAKE_NVML": str(script)})
    assert done.returncode == 0, done.stderr
    samples, want = 0, {}
    for line in map(json.loads, (proctor.work / "a.jsonl").read_text().splitlines()):
        samples += line["type"] == "sample"
        if line["type"] == "device" and line["kind"] == "gpu":
            for name, of in GPU_KEYS.items():
                if None not in (line["values"][k] for k in of.__code__.co_consts if isinstance(k, str)):
                    key = f"system/gpu_{line['name'].removeprefix('gpu')}_{name}"
                    want.setdefault(key, {})[samples] = pytest.approx(of(line["values"]))
    assert {k.split("_")[1] for k in want} == {"0", "1"} and len(want) >= 8
    got = gpu_points(server.sent("log-batch"))
    assert got == want
    assert set(got["system/gpu_1_power_usage_percentage"].values()) == {62.5}  # 250 of 400 W
    middle = query(path, "SELECT max(sample) / 2 FROM job_samples")[0]
    base = open_run(path, "rw")
    base.execute("UPDATE publications SET sample = ?, ended = 0", (middle,))
    base.close()
    server.requests.clear()
    assert proctor("push", path, "--mlflow", server.url).returncode == 0
    assert gpu_points(server.sent("log-batch")) == {
        key: {step: v for step, v in steps.items() if step > middle} for key, steps in want.items()}


def test_strict_says_that_something_is_missing(proctor):
    done = proctor.run("-q", "--strict", "--flush-timeout", "100ms", f"--mlflow=http://127.0.0.1:{free_port()}", "--",
                       "true")
    assert done.returncode == 125


def test_databricks_takes_host_and_token_of_a_profile(proctor, serve):
    server = serve()
    (proctor.folder / "home/.databrickscfg").write_text(
        f"[DEFAULT]\nhost = http://wrong\ntoken = wrong\n[mine]\nhost = {server.url}/\ntoken = dapi\n")
    done = proctor.run("-q", "--mlflow=databricks://mine", "--", "true", env={"MLFLOW_EXPERIMENT_ID": "77"})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert authorization(server) == "Bearer dapi"
    assert json.loads(server.sent("runs/create")[0][3])["experiment_id"] == "77"
