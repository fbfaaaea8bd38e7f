# SPDX-License-Identifier: Apache-2.0
"""Collectors that ask to wait, refuse, reject, or say nonsense: what is tried again and what is not, that nothing is
lost or goes twice, and that no secret gets out."""
import json
import os
import ssl
import subprocess
import threading
import time
from pathlib import Path

import pytest

from otlp_server import Faulty, points_in, points_of, resources
from proctor_cli import PROCTOR, SLACK, finish, problems, query, said, skip_visibly, wait_until

SECRET = "h1dden-pass"
JSON = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}


@pytest.fixture
def serve():
    servers = []

    def make(fault=None):
        servers.append(Faulty(fault))
        return servers[-1]
    yield make
    for server in servers:
        server.close()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A run of some 200 samples, which are four requests."""
    path = tmp_path_factory.mktemp("otlp") / "run.proctor"
    subprocess.run([PROCTOR, "run", "-q", "-i", "5ms", "-o", path, "--", "sleep", "1"], check=True)
    assert query(path, "SELECT count(*) FROM job_samples")[0] > 64 * 2
    return path


@pytest.fixture
def run(recorded, proctor):
    path = proctor.folder / "run.proctor"
    path.write_bytes(recorded.read_bytes())
    return path


def taken(server):
    return [json.loads(body) for body in server.taken]


def progress(path):
    """(last sample, refused, rejected) of the newest publication."""
    return query(path, "SELECT sample, refused, rejected FROM publications ORDER BY id DESC")[0]


def last_sample(path):
    return query(path, "SELECT max(sample) FROM job_samples")[0]


# --- to be tried again ----------------------------------------------------------------------------

@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_server_that_asks_for_it_is_tried_again(proctor, serve, run, status):
    server = serve(lambda h, n: h.answer(status, headers=[("Retry-After", "1")]) or True if n == 2 else None)
    done = proctor("push", run, "--otlp", server.url, env=JSON)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    (_, _, _, refused), (_, _, _, again) = server.requests[1:3]
    assert refused == again, "a request that failed is sent as it was"
    assert 1 <= server.requests[2][0] - server.requests[1][0] < 3 * SLACK
    assert points_of(taken(server)) == points_in(run)
    assert progress(run) == (last_sample(run), 0, 0)


def test_what_is_there_is_not_sent_again(proctor, serve, run):
    server = serve()
    first = proctor("push", run, "--otlp", server.url, env=JSON)
    count = len(server.requests)
    again = proctor("push", run, "--otlp", server.url + "/", env=JSON)
    assert (first.returncode, again.returncode, len(server.requests)) == (0, 0, count)
    assert again.stdout == f"no sample was left to send to {server.url}/v1/metrics\n"


def test_what_was_pushed_meanwhile_is_not_sent_again(proctor, serve):
    """Its recorder has a request that failed, and waits; a push is faster."""
    ready, path = threading.Event(), proctor.folder / "a.proctor"
    server = serve(lambda h, n: None if ready.is_set() else h.answer(503) or True)
    running = proctor.start("run", "-q", "-i", "50ms", "-o", path, f"--otlp={server.url}", "--", "sleep", "4", env=JSON)
    wait_until(lambda: server.requests, "the recorder to try")
    ready.set()
    push = proctor("push", path, "--otlp", server.url, env=JSON)
    assert push.returncode == 0 and "which goes on" in push.stdout, push.stderr
    assert finish(running)[0] == 0
    assert points_of(taken(server)) == points_in(path), "all of it, and nothing twice"
    assert query(path, "SELECT count(*) FROM publications") == [1]


# --- not to be tried again ------------------------------------------------------------------------

PARTIAL = {"protobuf": (b"\x0a\x0f\x08\xac\x02\x12\x0atoo\nold \xff.", {}),
           "json": (b'{"partialSuccess":{"rejectedDataPoints":"300","errorMessage":"too\\nold \\ud800."}}', JSON)}


@pytest.mark.parametrize("form", PARTIAL)
def test_rejected_points_are_counted_and_not_sent_again(proctor, serve, form):
    body, env = PARTIAL[form]
    server = serve(lambda h, n: h.answer(body=body) or True)
    path = proctor.folder / "a.proctor"
    done, summary = proctor.recorded("-o", path, f"--otlp={server.url}", "--", "sh", "-c", "exit 5", env=env)
    bodies = [r[3] for r in server.requests]  # one, or two where the machine is slow
    assert done.returncode == 5 and len(bodies) == len(set(bodies)) <= 2
    rejected = 300 * len(bodies)
    said_of_it, = problems(summary)
    assert said_of_it.startswith("otlp: 300 points were rejected, and stay in the record: too old")
    found, = summary["publishing"]
    assert found == {"kind": "otlp", "url": f"{server.url}/v1/metrics", "remote": None, "sent": last_sample(path),
                     "left": 0, "refused": 0, "rejected_points": rejected, "error": None}
    assert progress(path) == (last_sample(path), 0, rejected)


def test_a_refused_request_does_not_hold_up_the_next(proctor, serve, run):
    server = serve(lambda h, n: h.answer(400, b'{"code":3,"message":"bad data"}') or True if n == 2 else None)
    done = proctor("push", run, "--otlp", server.url, env=JSON)
    assert done.returncode == 0 and "64 samples were refused" in done.stderr and "bad data" in done.stderr
    bodies = [r[3] for r in server.requests]
    assert len(bodies) == len(set(bodies)), "nothing is sent twice"
    assert progress(run) == (last_sample(run), 64, 0)
    missing = points_in(run) - points_of(taken(server))
    assert len({time for _, _, _, time, _ in missing}) == 64


def test_a_server_that_takes_nothing_has_lost_nothing(proctor, serve, run):
    server = serve(lambda h, n: h.answer(500) or True)
    done = proctor("push", run, "--otlp", server.url, env=JSON)
    assert done.returncode == 1 and "status 500" in done.stderr and "0 samples were sent" in done.stderr
    assert 1 < len(server.requests) <= 5
    assert progress(run)[0] == 0
    server.fault = None
    assert proctor("push", run, "--otlp", server.url, env=JSON).returncode == 0
    assert points_of(taken(server)) == points_in(run)


def test_what_is_too_large_is_sent_in_pieces(proctor, serve, run):
    server = serve(lambda h, n: h.answer(413) or True if len(h.body) > 100_000 else None)
    done = proctor("push", run, "--otlp", server.url, env=JSON)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert len(server.taken) > 4 and points_of(taken(server)) == points_in(run)
    assert progress(run) == (last_sample(run), 0, 0)


@pytest.mark.parametrize("status, words", [(401, "OTEL_EXPORTER_OTLP_HEADERS"), (403, "let us in"), (404, "no metrics are taken there"),
                                           (302, "somewhere else")])
def test_what_is_about_the_server_ends_it_at_once(proctor, serve, run, status, words):
    server = serve(lambda h, n: h.answer(status, headers=[("Location", "http://127.0.0.1:9/")]) or True)
    done = proctor("push", run, "--otlp", server.url)
    assert done.returncode == 1 and words in done.stderr and len(server.requests) == 1
    assert progress(run)[0] == 0


@pytest.mark.parametrize("status, words", [(500, "status 500"), (404, "no metrics are taken there")])
def test_what_is_said_of_one_fault_agrees(proctor, serve, status, words):
    server = serve(lambda h, n: h.answer(status) or True)
    path = proctor.folder / "a.proctor"
    done = proctor.run("-o", path, f"--otlp={server.url}", "--", "sleep", "0.3")
    *_, given_up, left = said(done.stderr)
    assert words in given_up and given_up.endswith("the rest is left for `proctor push`")
    assert left.endswith(f"samples are not sent; `proctor push {path}` sends them"), left


def test_a_push_says_what_it_waits_for(proctor, serve, run):
    server = serve(lambda h, n: h.answer(503) or True if n <= 3 else None)
    done = proctor("push", run, "--otlp", server.url, env=JSON)
    message, = said(done.stderr)
    assert done.returncode == 0 and message.endswith("(status 503); it is tried again, for 30 s")


def test_https_where_http_is_spoken(proctor, serve, run):
    done = proctor("push", run, "--otlp", serve().url.replace("http:", "https:"))
    assert done.returncode == 1 and "does it speak http://?" in done.stderr


# --- never in the way -----------------------------------------------------------------------------

FAULTS = {"silent": lambda h, n: h.server.silent.wait() or True,
          "garbage": lambda h, n: h.wfile.write(b"\x00\xff not HTTP at all \r\n\r\n"),
          "another page": lambda h, n: h.answer(body=b"<html>" * 100) or True,
          "10 MB": lambda h, n: h.answer(body=b"x" * 10_000_000) or True}


@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_server_costs_nothing(proctor, serve, name):
    server = serve(FAULTS[name])
    path = proctor.folder / "a.proctor"
    began = time.monotonic()
    done, summary = proctor.recorded("-o", path, "-i", "20ms", "--flush-timeout", "300ms", f"--otlp={server.url}", "--",
                                     "sh", "-c", "sleep 0.3; exit 3")
    assert done.returncode == 3 and time.monotonic() - began < 2 * SLACK
    assert summary["run"]["duration"] < 0.6 * SLACK
    found, = summary["publishing"]
    assert found["left"] == last_sample(path) > 10 and found["sent"] == 0 and found["error"]
    assert "are not sent" in problems(summary)[-1] and "proctor push" in problems(summary)[-1]
    server.fault = None
    assert proctor("push", path, "--otlp", server.url, env=JSON).returncode == 0
    assert points_of(taken(server)) == points_in(path)


def test_two_servers_take_no_longer_than_one(proctor, serve):
    """And one that is dead does not keep the other from its samples."""
    good, bad = serve(), serve(FAULTS["silent"])
    path = proctor.folder / "a.proctor"
    began = time.monotonic()
    done, summary = proctor.recorded("-o", path, "--flush-timeout", "1s", f"--otlp={good.url}", f"--mlflow={bad.url}",
                                     "--", "true", env=JSON)
    assert done.returncode == 0 and time.monotonic() - began < (2 + 1 + 1.5) * SLACK
    mlflow, otlp = summary["publishing"]
    assert (mlflow["kind"], mlflow["sent"], otlp["kind"], otlp["left"]) == ("mlflow", 0, "otlp", 0)
    assert points_of(taken(good)) == points_in(path)


# --- settings -------------------------------------------------------------------------------------

def test_whose_they_are(proctor, serve):
    server = serve()
    env = {**JSON, "OTEL_RESOURCE_ATTRIBUTES": "team=a%2Cb,host.name=other", "OTEL_EXPORTER_OTLP_ENDPOINT": server.url,
           "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}
    options = ["--otlp", "--run-id", "r1", "--label", "queue=long", "--label", "x=1"]
    path = proctor.folder / "a.proctor"
    done = proctor.run("-q", "-o", path, *options, "--", "sh", "-c", f": {SECRET}", env=env)
    assert done.returncode == 0, done.stderr
    found, = resources(taken(server))
    assert isinstance(found.pop("process.pid"), int)
    assert found == {"service.name": "sh", "service.instance.id": "r1", "proctor.run": "r1", "team": "a,b",
                     "host.name": "other", "process.executable.name": "sh", "proctor.label.queue": "long",
                     "proctor.label.x": "1"}
    assert server.requests[0][2]["Content-Encoding"] == "gzip"
    assert SECRET.encode() not in server.taken[0], "the command line goes out only where it is asked for"
    done = proctor.run("-q", *options, "--node", "3", "--name", "mine", "--otlp-command", "--", "sh", "-c", ": x",
                       env={**env, "OTEL_SERVICE_NAME": "svc"})
    assert done.returncode == 0, done.stderr
    found = resources(taken(server))[1]
    assert found["process.command_args"] == ["sh", "-c", ": x"]
    assert (found["service.name"], found["proctor.node"]) == ("svc", "3") and "service.instance.id" not in found


def test_gpus_have_attributes_and_only_their_own_readings(proctor, serve):
    server = serve()
    fake = Path(os.environ.get("PROCTOR_BUILD") or Path(PROCTOR).parent) / "tests/fake_nvml"
    script = proctor.folder / "nvml"
    script.write_text("device 0 H200 GPU-aaaa 150000000000 2000000000\ndevice 1 H100 GPU-bbbb 80000000000 1000000000\n"
                      "util 0 80 0 99\nutil 1 20 0 99\n")
    path = proctor.folder / "a.proctor"
    done = proctor.run("-q", "-o", path, "-i", "50ms", f"--otlp={server.url}", "--", "sleep", "0.6",
                       env={**JSON, "LD_LIBRARY_PATH": str(fake), "FAKE_NVML": str(script)})
    assert done.returncode == 0, done.stderr
    points = points_of(taken(server))
    assert points == points_in(path)
    used = {(dict(attributes)["hw.id"], dict(attributes)["hw.name"], value)
            for name, attributes, _, _, value in points if name == "hw.gpu.memory.usage"}
    assert used == {("GPU-aaaa", "H200", 2e9), ("GPU-bbbb", "H100", 1e9)}


def test_secrets_stay_secret(proctor, serve):
    server = serve(lambda h, n: h.answer(403) or True)
    path = proctor.folder / "a.proctor"
    env = {"OTEL_EXPORTER_OTLP_HEADERS": f"x-token={SECRET}%20t,other=1"}
    process = proctor.start("run", "-v", "-o", path, "--summary", proctor.summary_file,
                            f"--otlp={server.url.replace('//', f'//me:{SECRET}@')}?key={SECRET}", "--", "sleep", "0.5",
                            env=env)
    proctor.job_of(process)
    with open(f"/proc/{process.pid}/cmdline", "rb") as f:
        words = f.read()
    assert b"--otlp=http://me:" in words and SECRET.encode() not in words.replace(b"key=" + SECRET.encode(), b"")
    _, stderr = finish(process)[-2:]
    sent = server.requests[0]
    assert sent[1] == f"/v1/metrics?key={SECRET}" and sent[2]["x-token"] == f"{SECRET} t" and sent[2]["other"] == "1"
    assert sent[2]["Authorization"].startswith("Basic ")
    for place in (stderr if isinstance(stderr, bytes) else stderr.encode(), path.read_bytes(),
                  proctor.summary_file.read_bytes()):
        assert SECRET.encode() not in place


@pytest.mark.parametrize("options, env, remedy", [
    (["--otlp"], {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
    (["--otlp"], {"OTEL_EXPORTER_OTLP_METRICS_COMPRESSION": "zstd"}, "gzip"),
    (["--otlp=collector:4317"], {}, "'collector:4317' is no address; write it as http://collector:4317"),
    (["--otlp=me:pw@collector:4317"], {}, "it is no address; write it as http://HOST:4318"),
    (["--otlp", "http://collector:4318"], {}, "did you mean --otlp=http://collector:4318?"),
    (["--prometheus", "9465"], {}, "did you mean --prometheus=9465?"),
    (["--otlp"], {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/no/such"}, "'/no/such' of OTEL_EXPORTER_OTLP_CERTIFICATE"),
    (["--otlp", "--no-record"], {}, "--no-record")])
def test_what_cannot_be_is_said_before_the_job_starts(proctor, options, env, remedy):
    done = proctor.run(*options, "--", "touch", "started", env=env)
    assert done.returncode == 125 and len(said(done.stderr)) == 1 and remedy in done.stderr
    assert not (proctor.work / "started").exists()


def test_it_can_be_switched_off(proctor, serve, run):
    server = serve()
    env = {"OTEL_SDK_DISABLED": "true"}
    done = proctor.run(f"--otlp={server.url}", "--", "true", env=env)
    message, = said(done.stderr)
    assert done.returncode == 0 and "OTEL_SDK_DISABLED is set" in message
    done = proctor("push", run, "--otlp", server.url, env=env)
    assert done.returncode == 1 and "OTEL_SDK_DISABLED" in done.stderr
    assert not server.requests


def test_where_to_push_is_asked(proctor, run):
    for options in ([], ["--otlp", "http://127.0.0.1:9", "--mlflow", "http://127.0.0.1:9"]):
        done = proctor("push", run, *options)
        assert done.returncode == 2 and "--mlflow URI or --otlp URL" in done.stderr


@pytest.fixture
def certificate(tmp_path):
    """A certificate for 127.0.0.1 that nobody else believes, for both ends."""
    name, key = tmp_path / "own.pem", tmp_path / "key.pem"
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", name],
                       check=True, capture_output=True)
    except FileNotFoundError:
        skip_visibly("openssl is not there")
    return str(name), str(key)


def test_certificates(proctor, serve, run, certificate):
    server = serve()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.load_verify_locations(certificate[0])
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = server.url.replace("http:", "https:")
    env = {"OTEL_EXPORTER_OTLP_CERTIFICATE": certificate[0]}
    done = proctor("push", run, "--otlp", url)
    assert done.returncode == 1 and "certificate" in done.stderr and not server.requests
    env |= {"OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE": certificate[0],
            "OTEL_EXPORTER_OTLP_CLIENT_KEY": certificate[1]}
    done = proctor("push", run, "--otlp", url, env=env)
    assert done.returncode == 0 and server.taken, done.stderr
