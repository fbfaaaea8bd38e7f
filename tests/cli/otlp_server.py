# SPDX-License-Identifier: Apache-2.0
"""Who takes OTLP: the receiver of the OpenTelemetry collector, built below build/ at its first use, and a server that
answers as a test wants it; and the points that a run file has."""
import gzip
import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from http.server import ThreadingHTTPServer

from proctor_cli import ROOT, open_run, wait_until
from servers import Quiet, free_port, go_program

SOURCE = ROOT / "tests" / "otelcol"
PLACE = ROOT / "build" / "otelcol"


# --- the collector --------------------------------------------------------------------------------

class Collector:
    """What it takes is in a file, a request on a line, before it answers. Killed and started again it is the same."""

    def __init__(self, folder):
        # Not optimized: that would take twice as long.
        self.program = go_program(SOURCE, PLACE, "otelcol", "-gcflags=all=-N -l")
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None
        self.new_file()

    def new_file(self):
        self.file = self.folder / f"got-{time.monotonic_ns()}.jsonl"

    def start(self):
        with open(self.folder / "collector.log", "ab") as log:
            self.process = subprocess.Popen([self.program, f"127.0.0.1:{self.port}", self.file], stdout=log, stderr=log)
        wait_until(self.answers, "the collector to start")
        return self

    def answers(self):
        assert self.process.poll() is None, (self.folder / "collector.log").read_text()[-2000:]
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def kill(self, how=signal.SIGKILL):
        if self.process:
            self.process.send_signal(how)
            self.process.wait()
        self.process = None

    def requests(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []


# --- a server that does what it is told -----------------------------------------------------------

class Handler(Quiet):
    def do_POST(self):
        server = self.server
        self.body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            self.body = gzip.decompress(self.body)
        server.requests.append((time.monotonic(), self.path, dict(self.headers), self.body))
        fault = server.fault(self, len(server.requests)) if server.fault else None
        if fault is None:
            server.taken.append(self.body)
            self.answer()


class Faulty(ThreadingHTTPServer):
    """fault(handler, number of the request) answers it, or returns None where it is to be taken."""
    daemon_threads = True

    def __init__(self, fault=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.fault = fault
        self.requests, self.taken = [], []
        self.silent = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # who hangs up in the middle is what is tested

    def close(self):
        self.silent.set()
        self.shutdown()
        self.server_close()


# --- points ---------------------------------------------------------------------------------------

def value_of(value):
    (kind, v), = value.items()
    return [value_of(part) for part in v["values"]] if kind == "arrayValue" else int(v) if kind == "intValue" else v


def pairs(attributes):
    return {a["key"]: value_of(a["value"]) for a in attributes}


def resources(requests):
    return [pairs(r["resource"]["attributes"]) for request in requests for r in request["resourceMetrics"]]


def metrics_of(requests):
    for request in requests:
        for resource in request["resourceMetrics"]:
            for scope in resource["scopeMetrics"]:
                yield from scope["metrics"]


def points_of(requests):
    """How often each point came: (name, attributes, start or None, time, value)."""
    found = Counter()
    for metric in metrics_of(requests):
        data = metric.get("sum") or metric["gauge"]
        for p in data["dataPoints"]:
            attributes = frozenset(pairs(p.get("attributes", [])).items())
            found[metric["name"], attributes, int(p.get("startTimeUnixNano", 0)) or None, int(p["timeUnixNano"]),
                  float(p["asDouble"])] += 1
    return found


def table():
    """Of each row of the metric table: its key, what OpenTelemetry calls it, the attribute, and whether it is a sum."""
    rows = {}
    text = (ROOT / "src/core/metrics.def").read_text()
    for row in re.split(r"^METRIC\(", text, flags=re.M)[1:]:
        def field(name):
            found = re.search(rf'\.{name} = "?([^",\s]+)"?', row)
            return found and found.group(1)
        key, name, kind, unit = field("key"), field("otel"), field("kind"), field("unit")
        total = kind == "KIND_COUNTER" or (name and kind == "KIND_GAUGE" and unit in ("UNIT_BYTES", "UNIT_COUNT"))
        attribute = field("otel_as")
        rows[key] = (name or f"proctor.{key}", frozenset([tuple(attribute.split("=", 1))] if attribute else []),
                     bool(total))
    return rows


def points_in(path):
    """The points that a run file has, as points_of() has them, by SQL."""
    base, rows, found = open_run(path), table(), Counter()
    started, = base.execute("SELECT started FROM run").fetchone()
    columns = {row["column_name"]: row["key"] for row in base.execute("SELECT * FROM metrics WHERE selected")}
    for sql in ("SELECT * FROM job_samples",
                "SELECT j.elapsed, s.* FROM system_samples s JOIN job_samples j USING(sample)",
                "SELECT j.elapsed, e.uuid AS \"hw.id\", e.model AS \"hw.name\", 'gpu' AS \"hw.type\", g.* FROM gpu_samples g"
                " JOIN job_samples j USING(sample) JOIN entities e ON e.id = g.entity"):
        for row in base.execute(sql):
            device = {(name, row[name]) for name in row.keys() if name.startswith("hw.")}
            for column in row.keys():
                if column not in columns or row[column] is None:
                    continue
                name, attributes, total = rows[columns[column]]
                attributes |= device
                found[name, attributes, started if total else None, started + row["elapsed"], row[column]] += 1
    base.close()
    return found
