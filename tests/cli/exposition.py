# SPDX-License-Identifier: Apache-2.0
"""What the tests of Prometheus share: its own tools, and reading its text."""
import re
import shutil
import socket
import subprocess

from proctor_cli import skip_visibly

SAMPLE = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip_visibly(f"{program} is not installed")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def parse(text):
    """{name: [(labels, value), ...]} of either form."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        found.setdefault(name, []).append((dict(LABEL.findall(labels)), float(value)))
    return found


def whole(samples, name):
    """The value of the whole job."""
    (labels, value), = [(l, v) for l, v in samples[name] if "match" not in l]
    assert set(labels) <= {"job", "run", "node"}
    return value


def lint(text):
    """What Prometheus' own tool has to say against a text: nothing, if all is well."""
    need("promtool")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout
