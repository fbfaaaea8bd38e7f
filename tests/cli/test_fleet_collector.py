# SPDX-License-Identifier: Apache-2.0
"""examples/fleet/otel-collector.yaml in the OpenTelemetry collector itself, which is built below build/ at its first
use (tests/fleetcol). That takes some 100 s of CPU time, and so this is a part of `make test-full`."""
import gzip
import os
import subprocess
import threading
import urllib.request
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from proctor_cli import PROCTOR, ROOT, wait_until
from servers import Quiet, free_port, go_program

SOURCE, PLACE = ROOT / "tests/fleetcol", ROOT / "build/fleetcol"
CONFIG = ROOT / "examples/fleet/otel-collector.yaml"
NODES = 4


class Store(Quiet):
    """What the collector hands on to."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, gzip.decompress(body)))
        self.answer()


@pytest.fixture
def store():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    server.daemon_threads, server.got = True, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def takes_it_and_hands_it_on(proctor, store):
    program, port = go_program(SOURCE, PLACE, "fleetcol"), free_port()
    env = {**os.environ, "STORE": f"http://127.0.0.1:{store.server_address[1]}"}
    checked = subprocess.run([program, "validate", "--config", CONFIG], env=env, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    text = CONFIG.read_text()
    for there, here in ("0.0.0.0:4318", f"127.0.0.1:{port}"), ("timeout: 5s", "timeout: 500ms"), \
            ("service:\n", "service:\n  telemetry: {metrics: {level: none}}\n"):
        assert text.count(there) == 1
        text = text.replace(there, here)
    (proctor.folder / "collector.yaml").write_text(text)
    collector = proctor.other([program, "--config", proctor.folder / "collector.yaml"], env=env,
                              stderr=subprocess.DEVNULL)
    request = subprocess.run([Path(os.environ.get("PROCTOR_BUILD") or Path(PROCTOR).parent) / "otlp_samples"],
                             capture_output=True, check=True).stdout

    def send():
        try:
            asked = urllib.request.Request(f"http://127.0.0.1:{port}/v1/metrics", request,
                                           {"Content-Type": "application/x-protobuf"})
            return urllib.request.urlopen(asked, timeout=10).status == 200
        except OSError:
            assert collector.poll() is None
            return False
    wait_until(send, "the collector")
    assert all(send() for _ in range(NODES - 1))
    name = b"process.cpu.time"
    of_one = request.count(name)
    assert of_one > 0
    wait_until(lambda: sum(body.count(name) for _, body in store.got) == NODES * of_one, "all of it")
    assert {path for path, _ in store.got} == {"/v1/metrics"}
    assert len(store.got) < NODES, "in batches"


if os.environ.get("PROCTOR_TEST_FULL"):
    test_the_collector_takes_it_and_hands_it_on = takes_it_and_hands_it_on
