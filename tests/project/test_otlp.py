# SPDX-License-Identifier: Apache-2.0
"""Requests for an OpenTelemetry collector, decoded with OpenTelemetry's own messages and compared with its own list of
names. tests/otlp_samples.c says what is in them."""
import json
import os
import pathlib
import subprocess
import venv

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
READERS = ROOT / "build/otlp"
PACKAGES = ["opentelemetry-proto", "opentelemetry-semantic-conventions"]
DECODE = """
import json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
data = sys.stdin.buffer.read()
if sys.argv[1] == "json":
    message = json_format.Parse(data, ExportMetricsServiceRequest())
else:
    message = ExportMetricsServiceRequest.FromString(data)
print(json.dumps(json_format.MessageToDict(message)))
"""
# Each name with its instrument and unit, and all attributes; both stand in the text of the package.
CONVENTIONS = """
import json, pathlib, re
import opentelemetry.semconv._incubating as here
text = "".join(p.read_text() for p in pathlib.Path(here.__path__[0]).rglob("*.py"))
row = r'[A-Z_0-9]+: Final = "([^"]+)"\\n"{3}(.*?)"{3}'
metrics = {n: re.search(r"Instrument: (\\w+)\\nUnit: (.*)", d) for n, d in re.findall(row, text, re.S)}
attributes = re.findall(r'Final = "([^"]+)"', text)
print(json.dumps([{n: found.groups() for n, found in metrics.items() if found}, attributes]))
"""


@pytest.fixture(scope="module")
def python():
    """A Python with OpenTelemetry's packages; made once."""
    program, done = READERS / "bin/python", READERS / "installed"
    if not done.exists() or done.read_text() != " ".join(PACKAGES):
        try:
            venv.create(READERS, with_pip=True, clear=True)
            subprocess.run([program, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *PACKAGES],
                           check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            if os.environ.get("CI") == "true":
                pytest.fail(f"CI must be able to do this: {error.stderr}")
            pytest.skip(f"{PACKAGES}: {error.stderr}")
        done.write_text(" ".join(PACKAGES))
    return program


def ask(python, text, *words, data=b""):
    done = subprocess.run([python, "-c", text, *words], input=data, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.fixture(params=["protobuf", "json"])
def decoded(request, build, python):
    data = subprocess.run([build / "otlp_samples", request.param], check=True, capture_output=True).stdout
    return ask(python, DECODE, request.param, data=data)


@pytest.fixture
def metrics(decoded):
    (resource,), = decoded.values()
    scope, = resource["scopeMetrics"]
    names = [m["name"] for m in scope["metrics"]]
    assert len(names) == len(set(names))
    return {m["name"]: m for m in scope["metrics"]}


def pairs(attributes):
    return {a["key"]: a["value"]["stringValue"] for a in attributes}


def points(metric):
    """[(attributes, nanoseconds since the start, value)], by time."""
    kind = metric.get("sum") or metric["gauge"]
    return [(pairs(p.get("attributes", [])), int(p["timeUnixNano"]) - 1700000000123456789, p["asDouble"])
            for p in kind["dataPoints"]]


def test_both_forms_say_the_same(build, python):
    forms = [ask(python, DECODE, form, data=subprocess.run([build / "otlp_samples", form], check=True,
                                                           capture_output=True).stdout)
             for form in ("protobuf", "json")]
    assert forms[0] == forms[1]


def test_whose_they_are(decoded):
    resource = decoded["resourceMetrics"][0]
    assert pairs(resource["resource"]["attributes"]) == {
        "service.name": "a job", "service.instance.id": "20260101T000000Z-0a1b2c3d", "host.name": "host1",
        "process.executable.name": "train", "proctor.run": "20260101T000000Z-0a1b2c3d"}
    assert resource["scopeMetrics"][0]["scope"] == {"name": "proctor", "version": "1.2"}
    assert "secret" not in json.dumps(decoded)


def test_all_that_is_known_is_there(build, metrics):
    """Each metric of the table, with its number there and a half more in the second sample."""
    catalogue = json.loads(subprocess.run([build / "proctor", "metrics", "--json"], check=True,
                                          capture_output=True).stdout)
    single = {i: m for i, m in enumerate(catalogue) if m["scope"] != "gpu"}
    values = {}
    for metric in metrics.values():
        for attributes, at, value in points(metric):
            if not {"hw.id", "proctor.match"} & attributes.keys():
                values.setdefault(at, []).append(value)
    absent = next(i for i, m in single.items() if m["key"] == "mem.pss")
    for sample, at in enumerate((10**9, 2 * 10**9)):
        assert sorted(values[at]) == [i + sample / 2 for i in single if i != absent]
    assert "proctor.mem.pss" not in metrics


def test_parts_have_attributes(metrics):
    assert [p for p in points(metrics["process.memory.usage"]) if p[0]] == [
        ({"proctor.match": "w\ufffd\""}, 10**9, 1000), ({"proctor.match": "w\ufffd\""}, 2 * 10**9, 1001)]
    modes = [p[0]["cpu.mode"] for p in points(metrics["system.cpu.time"])]
    assert modes == ["user", "user", "system", "system", "idle", "idle", "iowait", "iowait", "steal", "steal"]
    for attributes, _, _ in points(metrics["hw.gpu.utilization"]):
        assert attributes == {"hw.type": "gpu", "hw.id": "GPU-1", "hw.name": "Model"}
    assert "sda" not in json.dumps(metrics)


def test_counters_are_sums_since_the_start(metrics):
    total = metrics["proctor.cpu.time"]["sum"]
    assert total["isMonotonic"] and total["aggregationTemporality"] == "AGGREGATION_TEMPORALITY_CUMULATIVE"
    assert {p["startTimeUnixNano"] for p in total["dataPoints"]} == {"1700000000123456789"}
    assert "startTimeUnixNano" not in metrics["proctor.cpu.usage"]["gauge"]["dataPoints"][0]


# Where the conventions have it otherwise, and why ours stays.
KNOWN_TO_DIFFER = {"container.memory.usage": "a counter there, though it falls"}


def test_names_are_those_of_the_conventions(python, metrics):
    names, attributes = ask(python, CONVENTIONS)
    assert len(names) > 100
    own = {name: metric for name, metric in metrics.items() if not name.startswith("proctor.")}
    assert len(own) > 20
    for name, metric in own.items():
        assert name in names, name
        instrument = "gauge" if "gauge" in metric else "counter" if metric["sum"].get("isMonotonic") else "updowncounter"
        assert metric["unit"] == names[name][1], name
        assert instrument == names[name][0] or name in KNOWN_TO_DIFFER, (name, instrument, names[name])
        for found, _, _ in points(metric):
            assert {key for key in found if not key.startswith("proctor.")} <= set(attributes)
