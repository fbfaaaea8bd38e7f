# SPDX-License-Identifier: Apache-2.0
"""What servers in tests have in common."""
import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
from http.server import BaseHTTPRequestHandler


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Quiet(BaseHTTPRequestHandler):
    """Says nothing of what it does."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status=200, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def go_program(source, place, name, *flags):
    """The program; made again where its source is another one, by one at a time. Skips where it cannot be made."""
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return made_program(source, place, name, *flags)


def made_program(source, place, name, *flags):
    from proctor_cli import skip_visibly
    program, done = place / name, place / "built"
    version = hashlib.sha256(b"".join((source / f).read_bytes() for f in ("main.go", "go.mod", "go.sum"))).hexdigest()
    if done.exists() and done.read_text() == version:
        return program
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if not go:
        skip_visibly("go is not there")
    env = {**os.environ, "GOPATH": str(place / "go"), "GOCACHE": str(place / "cache"), "GOFLAGS": "-modcacherw",
           "CGO_ENABLED": "0"}
    made = subprocess.run([go, "build", *flags, "-ldflags=-s -w", "-o", program, "."], cwd=source, env=env,
                          capture_output=True, text=True)
    if made.returncode:
        skip_visibly(f"go build of {name}: {made.stderr.strip().splitlines()[-3:]}")
    shutil.rmtree(place / "cache")  # only the program is needed again
    shutil.rmtree(place / "go")
    done.write_text(version)
    return program
