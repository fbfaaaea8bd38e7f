# SPDX-License-Identifier: Apache-2.0
"""The known rows: as JSON for the originals, as plain text for ours."""
import datetime
import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/dialects"
NS = 10**9


def load():
    return json.loads((FOLDER / "rows.json").read_text())


def _without_gpus(rows):
    rows["run"]["no_gpu"] = True
    for sample in rows["samples"]:
        sample["devices"] = []
        for holder in [sample, *sample["processes"]]:
            for key in holder["values"]:
                if "gpu." in key:
                    holder["values"][key] = None


def _failed(rows):
    rows["run"]["exit"]["code"] = 3


def _killed(rows):
    rows["run"]["exit"] = {"code": None, "signal": 9}


# Other forms of the known rows, where a table depends on what they do not have.
VARIANTS = {"no-gpu": _without_gpus, "failed": _failed, "killed": _killed}


def variant(rows, name):
    """A copy in that form; None for the known rows themselves."""
    made = json.loads(json.dumps(rows))
    if name:
        VARIANTS[name](made)
    return made


def wall_ns(text):
    """Nanoseconds since 1970 of a time in RFC 3339 with milliseconds."""
    whole = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
    return round(whole.timestamp() * 1000) * (NS // 1000)


def ns(seconds):
    return round(seconds * NS)


def _values(word, values):
    return [(word, key, value) for key, value in values.items() if value is not None]


def _lines(rows):
    run = rows["run"]
    for key in ("id", "host", "name", "interval", "root_pid", "pgid", "monitor_pid"):
        yield "run", key, run[key]
    yield "run", "started_ns", wall_ns(run["started"])
    yield "run", "duration_ns", ns(run["duration"])
    for key, limit in run["limits"].items():
        yield "run", f"{key}_total", limit
    for key, how in run["exit"].items():
        if how is not None:
            yield "run", f"exit_{key}", how
    if run.get("no_gpu"):
        yield "run", "no_gpu", 1
    yield ("run", "command", *run["command"])
    for rule in run["match"]:
        yield "match", rule["name"], rule["regex"]
    for sample in rows["samples"]:
        yield "sample", ns(sample["elapsed"]), ns(sample["interval"])
        yield from _values("value", sample["values"])
        for process in sample["processes"]:
            yield ("process", process["pid"], process["ppid"], wall_ns(process["started"]), process["command"],
                   *([process["match"]] if process["match"] else []))
            yield from _values("pvalue", process["values"])
        for device in sample["devices"]:
            yield ("device", device["kind"], device["name"], device["model"], device["uuid"],
                   int(device["counted"]))
            yield from _values("dvalue", device["values"])


def text(rows):
    """Tabs between fields; what is absent is left out; numbers as short as they can be read back."""
    return "".join("\t".join(str(field) for field in line) + "\n" for line in _lines(rows))
