# SPDX-License-Identifier: Apache-2.0
"""A real MLflow server on loopback, installed below build/ at its first use, and its API."""
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import venv

from proctor_cli import ROOT, skip_visibly, wait_until
from servers import free_port

PACKAGE = "mlflow==3.17.2"
PLACE = ROOT / "build" / "mlflow"


def install():
    """The program of an environment that has MLflow; skips where there is none to be had."""
    python = PLACE / "bin" / "python"
    if (PLACE / "installed").exists():
        return python
    venv.create(PLACE, with_pip=True, clear=True)
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE],
                          capture_output=True, text=True)
    if done.returncode:
        skip_visibly(f"pip install {PACKAGE}: {done.stderr.strip().splitlines()[-1:]}")
    (PLACE / "installed").touch()
    return python


class Mlflow:
    """A server with an SQLite store; killed and started again it is the same one."""

    def __init__(self, folder):
        self.folder = folder
        self.python = install()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        env = {**os.environ, "HOME": str(self.folder), "MLFLOW_DISABLE_TELEMETRY": "true",
               "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                [self.python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port),
                 "--workers", "1", "--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db",
                 "--artifacts-destination", str(self.folder / "artifacts")],
                cwd=self.folder, env=env, stdout=log, stderr=log, start_new_session=True)
        wait_until(self.answers, "the MLflow server to start", timeout=180)
        return self

    def answers(self):
        assert self.process.poll() is None, (self.folder / "server.log").read_text()[-2000:]
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            time.sleep(0.1)
            return False

    def kill(self):
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)  # its own session: itself and its workers
            except ProcessLookupError:
                pass
            self.process.wait()
        self.process = None

    def api(self, path, body=None, **query):
        url = f"{self.url}/api/2.0/mlflow/{path}"
        if query:
            url += "?" + urllib.parse.urlencode(query)
        request = urllib.request.Request(url, headers={"Content-Type": "application/json"},
                                         data=json.dumps(body).encode() if body is not None else None)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def create_run(self):
        now = int(time.time() * 1000)
        return self.api("runs/create", {"experiment_id": "0", "start_time": now})["run"]["info"]["run_id"]

    def run(self, run_id):
        return self.api("runs/get", run_id=run_id)["run"]

    def pairs(self, run_id, kind):
        """The params or tags of a run."""
        return {p["key"]: p["value"] for p in self.run(run_id)["data"].get(kind, [])}

    def artifact(self, run_id, path):
        """The bytes of a file among the artifacts of a run."""
        place = self.run(run_id)["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
        with urllib.request.urlopen(f"{self.url}/api/2.0/mlflow-artifacts/artifacts/{place}/{path}",
                                    timeout=60) as answer:
            return answer.read()

    def keys(self, run_id):
        return {m["key"] for m in self.run(run_id)["data"].get("metrics", [])}

    def history(self, run_id, key):
        """All points of a metric in the order of steps: (step, timestamp in ms, value)."""
        points, token = [], None
        while True:
            page = {"page_token": token} if token else {}
            answer = self.api("metrics/get-history", run_id=run_id, metric_key=key, max_results=25000, **page)
            points += [(int(p["step"]), int(p["timestamp"]), float(p["value"])) for p in answer.get("metrics", [])]
            token = answer.get("next_page_token")
            if not token:
                return sorted(points)
