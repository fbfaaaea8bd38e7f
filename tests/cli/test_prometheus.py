# SPDX-License-Identifier: Apache-2.0
"""--prometheus, scraped by Prometheus itself, and by clients that nobody would want."""
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import threading
import time

import pytest

from exposition import Prometheus, lint, parse, whole
from proctor_cli import PROCTOR, ROOT, SANITIZED, finish, problems, said, wait_until
from servers import free_port

FAKE = pathlib.Path(os.environ.get("PROCTOR_BUILD") or pathlib.Path(PROCTOR).parent) / "tests/fake_nvml"
OPEN = "application/openmetrics-text"
PLAIN = "text/plain; version=0.0.4; charset=utf-8"
# What Prometheus 2.42 sends.
ASKS = f"{OPEN};version=1.0.0,{OPEN};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def ask(port, path="/metrics", method="GET", body=None, **headers):
    """(status, headers, text) of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def is_served(port):
    try:
        return ask(port)[0] == 200
    except (ConnectionError, OSError):
        return False


class Served:
    """A run that serves until it is told to end."""

    def __init__(self, proctor, *options, job=("sleep", "60")):
        self.proctor, self.port = proctor, free_port()
        self.process = proctor.start("run", "-q", "--no-record", "--summary", proctor.summary_file,
                                     f"--prometheus=127.0.0.1:{self.port}", *options, "--", *job)
        wait_until(lambda: is_served(self.port), "the server")

    def text(self, **headers):
        return ask(self.port, **headers)[2]

    def end(self):
        os.kill(self.proctor.job_of(self.process), 15)
        status, _, err = finish(self.process)
        assert status == -15, err
        return self.proctor.summary(), err


@pytest.fixture
def served(proctor):
    return lambda *options, **rest: Served(proctor, *options, **rest)


# --- what is served -------------------------------------------------------------------------------

def test_it_is_there_while_the_job_runs_and_gone_then(served):
    run = served("--name", "a job", "-i", "100ms")
    before = whole(parse(run.text()), "proctor_elapsed_seconds")
    wait_until(lambda: whole(parse(run.text()), "proctor_elapsed_seconds") > before + 0.3, "newer values")
    for values in parse(run.text()).values():
        assert all(labels["job"] == "a job" and "pid" not in labels for labels, _ in values)
    summary, err = run.end()
    assert problems(summary) == [] and said(err) == []
    with pytest.raises(ConnectionRefusedError):
        ask(run.port)


def test_the_form_is_negotiated(served):
    run = served()
    for accept, is_open in ((None, False), ("*/*", False), (ASKS, True), (OPEN, True), ("text/plain", False)):
        status, headers, text = ask(run.port, **({"Accept": accept} if accept else {}))
        assert status == 200
        assert headers["Content-Type"] == (f"{OPEN}; version=1.0.0; charset=utf-8" if is_open else PLAIN)
        assert text.endswith("# EOF\n") == is_open and ("# UNIT " in text) == is_open
        assert "proctor_cpu_time_seconds_total{" in text
        assert ("# TYPE proctor_cpu_time_seconds counter" in text) == is_open
        assert ("# TYPE proctor_cpu_time_seconds_total counter" in text) != is_open
    run.end()


def test_nothing_is_wrong_with_it(served):
    run = served("-i", "100ms", "--match", "me=sleep", "--node", "3")
    text = wait_until(lambda: next((t for t in [run.text()] if "proctor_cpu_usage_cores" in t), None), "rates")
    run.end()
    assert lint(text) == (0, "") and 'node="3"' in text and 'match="me"' in text


def test_each_gpu_has_its_series(proctor):
    """A driver with two, of which one is in use; what they are can be joined to what they do."""
    assert (FAKE / "libnvidia-ml.so.1").exists(), "build with the tests"
    (proctor.work / "nvml").write_text("device 0 H200 GPU-aaaa 150000000000 2000000000\n"
                                       "device 1 H100 GPU-bbbb 80000000000 1000000000\nutil 0 80 0 99\n")
    port = free_port()
    process = proctor.start("run", "-q", "--no-record", "-i", "200ms", f"--prometheus={port}", "sleep", "60",
                            env={"LD_LIBRARY_PATH": str(FAKE), "FAKE_NVML": str(proctor.work / "nvml")})
    wait_until(lambda: is_served(port), "the server")
    def with_gpus():
        text = ask(port)[2]
        return text if "proctor_gpu_util_ratio" in text else None
    text = wait_until(with_gpus, "GPUs")
    os.kill(proctor.job_of(process), 9)
    finish(process)
    samples = parse(text)
    assert {(labels["gpu"], value) for labels, value in samples["proctor_gpu_mem_total_bytes"]} == {
        ("gpu0", 150e9), ("gpu1", 80e9)}
    assert ("gpu0", 0.8) in {(labels["gpu"], value) for labels, value in samples["proctor_gpu_util_ratio"]}
    assert {(labels["gpu"], labels["model"], labels["uuid"], value)
            for labels, value in samples["proctor_gpu_info"]} == {
        ("gpu0", "H200", "GPU-aaaa", 1), ("gpu1", "H100", "GPU-bbbb", 1)}
    assert "proctor_gpus" in samples and lint(text) == (0, "")


def test_the_machine_and_what_runs_already(proctor):
    job = proctor.other(["sleep", "60"])
    for words, name in (["system"], "machine"), (["attach", str(job.pid)], "sleep"):
        port = free_port()
        process = proctor.start(*words[:1], "-q", "--no-record", f"--prometheus={port}", *words[1:])
        wait_until(lambda: is_served(port), "the server")
        samples = parse(ask(port)[2])
        process.send_signal(2)
        assert finish(process)[0] == 0
        assert {labels["job"] for labels, _ in samples["proctor_system_mem_total_bytes"]} == {name}
        assert ("proctor_mem_rss_bytes" in samples) == (words[0] == "attach")


def test_other_paths_and_methods(served):
    run = served()
    for path in ("/", "/metric", "/metrics/", "/../etc/passwd", "/%2e%2e/metrics"):
        assert ask(run.port, path)[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"):
        status, headers, _ = ask(run.port, method=method, body="x" * 1000)
        assert status == 405 and headers["Allow"] == "GET, HEAD"
    status, headers, text = ask(run.port, method="HEAD")
    assert status == 200 and int(headers["Content-Length"]) > 1000 and text == ""
    assert ask(run.port, "/metrics?x=y")[0] == 200
    run.end()


def test_it_is_for_this_machine_alone(proctor):
    """Where nobody names an address; only numbers can be looked for in /proc/net/tcp."""
    run = proctor.start("run", "-q", "--no-record", f"--prometheus={free_port()}", "sleep", "60")
    job = proctor.job_of(run)
    def listening():
        rows = [line.split() for line in open(f"/proc/{run.pid}/net/tcp")][1:]
        own = {os.readlink(f"/proc/{run.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{run.pid}/fd")
               if os.path.islink(f"/proc/{run.pid}/fd/{fd}")}
        return [row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]
    assert wait_until(listening, "a listening socket") == ["0100007F"]
    os.kill(job, 9)
    finish(run)


@pytest.mark.parametrize("env, shown", [({}, None), ({"PROCTOR_PROMETHEUS": "true"}, "127.0.0.1:9464"),
                                        ({"PROCTOR_PROMETHEUS": "127.0.0.1:1"}, "127.0.0.1:1")])
def test_the_address_may_be_left_out(proctor, env, shown):
    line, = re.findall(r"^prometheus +=(.*)", proctor("config", env=env).stdout, re.M)
    assert (shown in line) if shown else ("127" not in line)


def test_the_job_has_nothing_of_it(served, proctor):
    run = served(job=("sh", "-c", "ls -l /proc/self/fd > fds; exec sleep 60"))
    text = wait_until(lambda: (proctor.work / "fds").exists() and (proctor.work / "fds").read_text(), "a list")
    run.end()
    assert "socket:" not in text


# --- what can go wrong ----------------------------------------------------------------------------

@pytest.mark.parametrize("strict", [False, True])
def test_a_busy_port_is_said_once_and_the_job_runs(proctor, strict):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = "127.0.0.1:%d" % other.getsockname()[1]
        done, summary = proctor.recorded(f"--prometheus={address}", *["--strict"] * strict, "sh", "-c",
                                         "touch started; exit 3")
    assert done.returncode == (125 if strict else 3) and (proctor.work / "started").exists()
    message, = said(done.stderr)
    assert "--prometheus" in message and address in message and "in use" in message and "--prometheus=PORT" in message
    assert len(problems(summary)) == 1


@pytest.mark.parametrize("address", ["nonsense", ":9464", "example.com:80", "127.0.0.1:99999", "127.0.0.1:0", ""])
def test_what_is_no_address_is_said_before_the_job(proctor, address):
    done = proctor.run(f"--prometheus={address}", "touch", "started")
    assert done.returncode == 125 and "--prometheus" in done.stderr
    assert not (proctor.work / "started").exists()


def test_without_the_library_the_job_runs_all_the_same(proctor, tmp_path):
    (tmp_path / "libmicrohttpd.so.12").write_bytes(b"")
    done, summary = proctor.recorded(f"--prometheus={free_port()}", "sh", "-c", "exit 3",
                                     env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 3
    assert len(problems(summary)) == 1 and "libmicrohttpd" in problems(summary)[0]


def test_the_library_is_not_loaded_for_others(proctor):
    done = proctor.run("-q", "--no-record", "sh", "-c", "cat /proc/$PPID/maps")
    assert done.returncode == 0 and "sqlite" not in done.stdout and "microhttpd" not in done.stdout


def test_values_that_are_too_old_are_not_shown(proctor, served):
    """Another output blocks the writer, which all have in common."""
    os.mkfifo(proctor.work / "fifo")
    reader = os.open(proctor.work / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    run = served("-i", "10ms", "--flush-timeout", "100ms", "--csv", "fifo")
    wait_until(lambda: ask(run.port)[0] == 503, "the last sample to be too old")
    assert "proctor_" not in run.text()
    os.set_blocking(reader, True)
    drain = threading.Thread(target=lambda: [None for _ in iter(lambda: os.read(reader, 65536), b"")], daemon=True)
    drain.start()
    wait_until(lambda: is_served(run.port), "newer samples")
    run.end()
    drain.join(10)
    os.close(reader)


# --- clients that nobody would want ---------------------------------------------------------------

class Crowd:
    """Clients that go on until they are told to end."""

    def __init__(self, port):
        self.port, self.over, self.threads = port, False, []

    def open(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def add(self, what, times=1):
        def again():
            while not self.over:
                try:
                    what()
                except OSError:
                    time.sleep(0.001)  # hung up on: what such clients expect
        self.threads += [threading.Thread(target=again, daemon=True) for _ in range(times)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        for thread in self.threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in self.threads)

    def silent(self):
        with self.open():
            time.sleep(0.5)

    def slow(self):
        """One byte after the other, and never a whole request."""
        with self.open() as s:
            for byte in b"GET /metrics HTTP/1.1\r\nHost: " + b"x" * 1000:
                s.send(bytes([byte]))
                time.sleep(0.01)
                if self.over:
                    return

    def deaf(self):
        """Asks for much and reads nothing."""
        with self.open() as s:
            for _ in range(500):
                s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                if self.over:
                    return
            time.sleep(0.5)

    def garbage(self):
        with self.open() as s:
            s.sendall(os.urandom(4096))
            s.recv(100)

    def endless(self):
        with self.open() as s:
            s.sendall(b"GET /metrics HTTP/1.1\r\n")
            while not self.over:
                s.sendall(b"X-Header: " + b"x" * 1000 + b"\r\n")

    def greedy(self):
        ask(self.port)

    def rude(self):
        with self.open() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")


KINDS = ("silent", "slow", "deaf", "garbage", "endless", "greedy", "rude")


@pytest.mark.parametrize("kind", KINDS)
def test_a_crowd_costs_the_sampling_nothing(served, kind):
    """Ten samples a second, and they come, though the crowd needs the same CPUs: who waited for one of
    those would miss nearly all. Somebody who asks properly gets his answer."""
    run = served("-i", "100ms")
    crowd = Crowd(run.port)
    crowd.add(getattr(crowd, kind), {"greedy": 2, "silent": 100}.get(kind, 10))
    answered = 0
    with crowd:
        end = time.monotonic() + 3
        while time.monotonic() < end:
            answered += is_served(run.port)
            time.sleep(0.2)
    assert is_served(run.port)
    descriptors = len(os.listdir(f"/proc/{run.process.pid}/fd"))
    summary, err = run.end()
    samples = summary["samples"]
    assert answered >= 3 and problems(summary) == [] and descriptors < 120
    if not SANITIZED:
        assert samples["missed"] <= samples["taken"] / 10, samples
        assert summary["self"]["rss_peak_bytes"] < 64e6


def test_idle_connections_do_not_lock_others_out(served):
    run = served("-i", "100ms")
    idle = [socket.create_connection(("127.0.0.1", run.port), timeout=10) for _ in range(100)]
    for _ in range(5):
        assert is_served(run.port)
    run.end()
    for s in idle:
        s.close()


def test_a_client_that_waits_does_not_hold_up_the_end(served):
    run = served()
    with socket.create_connection(("127.0.0.1", run.port), timeout=10) as s:
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
        began = time.monotonic()
        run.end()
        assert time.monotonic() - began < 2
        assert s.recv(100) == b""


# --- Prometheus -----------------------------------------------------------------------------------

def documented(proctor, target):
    """Prometheus with the configuration of the document, scraping twice a second."""
    folder = proctor.folder / "prometheus"
    folder.mkdir()
    text, = re.findall(r"```yaml\n(.*?)```", (ROOT / "doc/prometheus.md").read_text(), re.S)
    for there, here in ("127.0.0.1:9464", f"127.0.0.1:{target}"), ("5s", "500ms"):
        assert there in text
        text = text.replace(there, here)
    (folder / "prometheus.yml").write_text(text)
    return Prometheus(proctor, folder)


def test_prometheus_answers_about_a_run(proctor, served):
    """A job that keeps one core busy and holds 64 MiB, seen through PromQL."""
    burn = "x = bytearray(64 << 20)\nwhile True: pass"
    run = served("--name", "burner", "-i", "100ms", "--match", "py=python3",
                 job=("/usr/bin/python3", "-c", burn))
    prometheus = documented(proctor, run.port)
    try:
        wait_until(lambda: prometheus.query("count_over_time(proctor_procs[1m]) > 12"), "some scrapes")
        (labels, value), = prometheus.query("proctor_procs")
        assert value == 1 and labels["exported_job"] == "burner" and labels["job"] == "proctor"
        assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{8}", labels["run"]) and "pid" not in labels
        (_, rate), = prometheus.query('rate(proctor_cpu_time_seconds_total{match=""}[5s])')
        (_, mean), = prometheus.query('avg_over_time(proctor_cpu_usage_cores{match=""}[5s])')
        assert 0.05 < rate < 1.1 and mean == pytest.approx(rate, rel=0.4)  # others need the CPU, too
        (_, rss), = prometheus.query('max(proctor_mem_rss_bytes{match="py"})')
        assert 64 << 20 < rss < 100 << 20
        (_, part), = prometheus.query('proctor_mem_rss_bytes{match="py"} / ignoring(match) '
                                      'proctor_mem_rss_bytes{match=""}')
        assert part == pytest.approx(1)
        metadata = prometheus.api("metadata", metric="proctor_cpu_time_seconds")
        assert metadata == {"proctor_cpu_time_seconds": [
            {"type": "counter", "unit": "seconds", "help": "CPU time, user and kernel mode together"}]}
        target, = prometheus.api("targets")["activeTargets"]
        assert target["health"] == "up" and target["lastError"] == ""
    finally:
        summary, _ = run.end()
    assert problems(summary) == []
    wait_until(lambda: prometheus.query('up{job="proctor"} == 0'), "a scrape that fails")
    assert prometheus.query('{__name__=~"proctor_.*"}') == []
