# SPDX-License-Identifier: Apache-2.0
"""What the command tests share: running the command, reading what it wrote, waiting for things."""
import csv
import json
import os
import select
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROCTOR = os.path.abspath(os.environ.get("PROCTOR") or ROOT / "build" / "proctor")
SANITIZED = os.environ.get("PROCTOR_TEST_SANITIZED") == "1"
# Bounds on time and cost are for a quiet machine; sanitizers take several times as much.
SLACK = 4 if SANITIZED else 1
# A sanitizer that handles faults and forbids cores would change what the job inherits.
SANITIZER_OUT_OF_THE_WAY = ":".join(["disable_coredump=0"] + [
    f"handle_{name}=0" for name in ("segv", "sigbus", "sigfpe", "sigill", "abort", "sigtrap")])
PATIENCE = 20 * SLACK  # seconds after which something is not slow but stuck


def skip_visibly(reason):
    """A skip that people see, and that CI does not accept."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must be able to do this: {reason}")
    pytest.skip(reason)


def need_pid_namespaces():
    """Skips the test where no new pid namespace can be had."""
    probe = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        skip_visibly(f"unshare --pid: {probe.stderr.strip()}")


def wait_until(condition, what, timeout=PATIENCE):
    """Waits until condition() is true and returns its value."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"waited {timeout} s for: {what}"
        time.sleep(0.005)


def cpu_of(pid):
    """Seconds of CPU time that a process has used."""
    return time.clock_gettime((~pid << 3) | 2)


def state_of(pid):
    """The state letter of a process; None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2]


def parent_of(pid):
    text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    return int(text[text.rindex(")") + 2:].split()[1])


def is_alive(pid):
    return state_of(pid) not in (None, "Z", "X")


def read_line(fd, timeout=PATIENCE):
    """One line from a descriptor, without its end; None at the end of the file."""
    line = b""
    end = time.monotonic() + timeout
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([fd], [], [], max(0, end - time.monotonic()))
        assert ready, f"no line within {timeout} s; so far: {line!r}"
        byte = os.read(fd, 1)
        if not byte:
            return line.decode() or None
        line += byte
    return line.decode().rstrip("\r\n")


def read_csv(path):
    """Rows of a CSV file as dictionaries of text."""
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def numbers(rows, column):
    """A column as numbers, absent values left out."""
    return [float(row[column]) for row in rows if row[column] != ""]


def problems(summary):
    return [e["text"] for e in summary["events"] if e["type"] == "problem"]


def said(stderr):
    """What the command said on standard error before its summary."""
    if isinstance(stderr, bytes):
        stderr = stderr.decode(errors="replace")
    lines = [line for line in stderr.splitlines() if line.startswith("proctor: ")]
    return [line for line in lines if not line.rstrip().endswith("samples")
            and " samples (" not in line]


def open_run(path, mode="ro"):
    """A run file as others open it."""
    base = sqlite3.connect(f"file:{path}?mode={mode}", uri=True, timeout=10, isolation_level=None)
    base.row_factory = sqlite3.Row
    return base


def query(path, sql, *values):
    """All rows of a query on a run file; a row of one column is its value."""
    base = open_run(path)
    try:
        return [row[0] if len(row) == 1 else tuple(row) for row in base.execute(sql, values)]
    finally:
        base.close()


class Proctor:
    """The command. What is started here is ended with the test."""

    def __init__(self, folder):
        self.folder = folder
        self.path = PROCTOR
        self.summary_file = folder / "summary.json"
        self.started = []
        (folder / "home").mkdir()
        (folder / "config").mkdir()
        (folder / "work").mkdir()
        self.work = folder / "work"
        self.config_file = folder / "config" / "proctor" / "config"
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8",
                    "HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder / "config"),
                    "TERM": "xterm"}
        if SANITIZED:
            self.env["ASAN_OPTIONS"] = SANITIZER_OUT_OF_THE_WAY
            self.env["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"

    def config(self, text):
        self.config_file.parent.mkdir(exist_ok=True)
        self.config_file.write_text(text)

    def runs(self):
        """The run files that nobody asked for."""
        return sorted((self.folder / "home/.local/state/proctor/runs").glob("*.proctor"))

    def arguments(self, *words):
        return [self.path, *[w if isinstance(w, bytes) else str(w) for w in words]]

    def options(self, options):
        options.setdefault("cwd", self.work)
        options["env"] = {**self.env, **options.get("env", {})}
        return options

    def __call__(self, *words, **options):
        """Runs the command to its end; texts are str unless text=False."""
        options = self.options(options)
        if not {"stdout", "stderr", "capture_output"} & options.keys():
            options["capture_output"] = True
        if "stdin" not in options and "input" not in options:
            options["stdin"] = subprocess.DEVNULL
        options.setdefault("text", True)
        options.setdefault("timeout", 60)
        return subprocess.run(self.arguments(*words), **options)

    def run(self, *words, **options):
        return self("run", *words, **options)

    def start(self, *words, **options):
        """Starts the command and returns its Popen."""
        options = self.options(options)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(self.arguments(*words), **options)
        self.started.append(process)
        return process

    def other(self, words, **options):
        """Starts another program, for the time of the test."""
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.DEVNULL)
        process = subprocess.Popen([str(w) for w in words], **options)
        self.started.append(process)
        return process

    def summary(self, path=None):
        with open(path or self.summary_file) as f:
            return json.load(f)

    def recorded(self, *words, **options):
        """`proctor run -q --summary FILE WORDS...`; (the process, the summary)."""
        done = self.run("-q", "--summary", self.summary_file, *words, **options)
        assert self.summary_file.exists(), done.stderr
        return done, self.summary()

    def job_of(self, process):
        """The pid of the job of a started `proctor run`, once it has been exec'ed."""
        def find():
            path = f"/proc/{process.pid}/task/{process.pid}/children"
            for pid in map(int, Path(path).read_text().split()):
                if os.readlink(f"/proc/{pid}/exe") != os.path.realpath(self.path):
                    return pid
            return None
        return wait_until(find, "the job to start")

    def end_all(self):
        for process in self.started:
            if process.poll() is None:
                for pid in self.children(process.pid) + [process.pid]:
                    try:
                        os.kill(pid, signal.SIGCONT)
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()

    @staticmethod
    def children(pid):
        try:
            return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except OSError:
            return []


def finish(process, timeout=PATIENCE):
    """Waits for a started command; (status, stdout, stderr) as text."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, (out or b"").decode(errors="replace"), \
        (err or b"").decode(errors="replace")
