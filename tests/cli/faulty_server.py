# SPDX-License-Identifier: Apache-2.0
"""Servers on loopback that are bad in every way, and one that is good: as much of MLflow and of an OpenTelemetry
collector as a run needs. For the tests, and for tools/publish-cost."""
import contextlib
import json
import socket
import ssl
import subprocess
import threading
import time
from http.server import ThreadingHTTPServer

from servers import Quiet

RUN = "0123456789abcdef0123456789abcdef"


class Handler(Quiet):
    """As much of the two as a run needs; `fault`, where there is one, answers instead."""

    def answer(self, status=200, body=b"{}", headers=()):
        super().answer(status, body, headers)

    def handle_any(self):
        server = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server.requests.append((time.monotonic(), self.path, dict(self.headers), body))
        if server.fault and (self.command == "PUT" or not server.files_only):
            return server.fault(self)
        if "runs/create" in self.path or "runs/get" in self.path:
            info = {"run_id": RUN, "status": "RUNNING", "artifact_uri": server.artifacts}
            return self.answer(body=json.dumps({"run": {"info": info, "data": server.data}}).encode())
        if "protobuf" in self.headers.get("Content-Type", ""):
            return self.answer(body=b"", headers=[("Content-Type", "application/x-protobuf")])
        return self.answer()

    do_GET = do_POST = do_PUT = handle_any


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, fault=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.fault = fault
        self.files_only = False  # it has the fault with files alone
        self.requests = []
        self.data = {}  # what else it knows of the run
        self.late = 0  # seconds until it takes who comes
        self.artifacts = f"mlflow-artifacts:/0/{RUN}/a b"
        self.silent = threading.Event()  # who says nothing waits for the end of the test
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self):
        self.silent.wait(self.late)
        return super().get_request()

    def handle_error(self, *_):
        pass  # who hangs up in the middle is what is tested

    def close(self):
        self.silent.set()
        self.shutdown()
        self.server_close()

    def sent(self, part):
        return [r for r in self.requests if part in r[1]]


def hang_up(handler):
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def half(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{")
    hang_up(handler)


def garbage(handler):
    handler.wfile.write(b"\x00\xff not HTTP at all \r\n\r\n")
    hang_up(handler)


def drip(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
    while not handler.server.silent.wait(0.2):
        handler.wfile.write(b" ")


FAULTS = {
    "silent": lambda h: h.server.silent.wait(),
    "drip": drip,
    "hangs up": hang_up,
    "half": half,
    "no HTTP": garbage,
    "another page": lambda h: h.answer(body=b"<html>" * 100),
    "10 MB": lambda h: h.answer(body=b"x" * 10_000_000),
    "10 MB of JSON": lambda h: h.answer(body=b"[" * 10_000_000),
    "500": lambda h: h.answer(500),
    "503, later": lambda h: h.answer(503, headers=[("Retry-After", "3600")]),
    "refuses": lambda h: h.answer(403, b'{"message": "no"}'),
    "elsewhere": lambda h: h.answer(302, headers=[("Location", "http://127.0.0.1:9/")]),
    "null": lambda h: h.answer(body=b"null"),
    "wrong types": lambda h: h.answer(body=b'{"run": {"info": {"run_id": {"a": [1]}}}, "message": 7}'),
}


# --- those that are bad before there is a request -------------------------------------------------

@contextlib.contextmanager
def raw(backlog, behave):
    """A listening socket; what becomes of those who come is behave(socket, until)."""
    listening, until = socket.create_server(("127.0.0.1", 0), backlog=backlog), threading.Event()
    thread = threading.Thread(target=behave, args=(listening, until), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        until.set()
        thread.join()
        listening.close()


def accept_nobody(listening, until):
    """Its queue is full: those who come wait for it, and give up."""
    waiting = []
    for _ in range(4):
        waiting.append(socket.socket())
        waiting[-1].setblocking(False)
        waiting[-1].connect_ex(listening.getsockname())
    until.wait()
    for one in waiting:
        one.close()


def accept_and_forget(listening, until):
    """Takes everybody, and reads nothing."""
    listening.settimeout(0.1)
    taken = []
    while not until.is_set():
        with contextlib.suppress(TimeoutError):
            taken.append(listening.accept()[0])
    for one in taken:
        one.close()


# --- TLS ------------------------------------------------------------------------------------------

def make_certificate(folder):
    """A certificate for 127.0.0.1 that nobody else believes: (file, file of its key)."""
    name, key = folder / "server.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", name],
                   check=True, capture_output=True)
    return name, key


def with_tls(server, certificate, clients=None):
    """Puts TLS before a server; its address then. clients: whose certificates are asked for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server.url.replace("http:", "https:")


# --- by name --------------------------------------------------------------------------------------

@contextlib.contextmanager
def served(fault=None, certificate=None, late=0):
    server = Server(fault)
    server.late = late
    try:
        yield with_tls(server, certificate) if certificate else server.url
    finally:
        server.close()


@contextlib.contextmanager
def nobody():
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    yield f"http://127.0.0.1:{port}"


def kinds(folder):
    """{what is wrong with it: a server as a context, whose value is its address}."""
    certificate = make_certificate(folder)
    return {
        "nothing": served,
        "nobody listens": nobody,
        "accepts nobody": lambda: raw(0, accept_nobody),
        "accepts after 3 s": lambda: served(late=3),
        "never reads": lambda: raw(16, accept_and_forget),
        "never answers": lambda: served(FAULTS["silent"]),
        "answers byte by byte": lambda: served(FAULTS["drip"]),
        "refuses (500)": lambda: served(FAULTS["500"]),
        "closes half-way": lambda: served(FAULTS["half"]),
        "answers garbage": lambda: served(FAULTS["no HTTP"]),
        "answers with 10 MB": lambda: served(FAULTS["10 MB"]),
        "has a bad certificate": lambda: served(certificate=certificate),
    }
