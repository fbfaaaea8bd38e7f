# SPDX-License-Identifier: Apache-2.0
"""What the tests of Prometheus share: its own tools, and reading its text."""
import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

from proctor_cli import skip_visibly, wait_until
from servers import free_port

SAMPLE = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip_visibly(f"{program} is not installed")


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


class Prometheus:
    """Debian's, with the prometheus.yml of a folder, in which its data are, too."""

    def __init__(self, proctor, folder):
        need("prometheus")
        self.port = free_port()
        self.process = proctor.other(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"], stderr=subprocess.DEVNULL, cwd=folder)
        wait_until(lambda: self.get("/-/ready") is not None, "Prometheus", timeout=60)

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            assert self.process.poll() is None
            return None

    def api(self, path, **values):
        return json.loads(self.get(f"/api/v1/{path}?{urllib.parse.urlencode(values)}"))["data"]

    def query(self, text):
        """[(labels, value), ...]"""
        return [(r["metric"], float(r["value"][1])) for r in self.api("query", query=text)["result"]]
