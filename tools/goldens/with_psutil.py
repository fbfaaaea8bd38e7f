# SPDX-License-Identifier: Apache-2.0
"""Those who look through psutil: oasislmf, stouputils, snakemake. psutil is the real one; its /proc is ours."""
import csv
import io
import json
import re
import types

import psutil

from . import golden, machine, originals

NO_INTERVAL = "there is no interval before the first sample; the original says 0"
NEW = "the original says 0 of whom it sees for the first time, whatever it has used"
NO_PSS = "nobody's memory map could be read; the original leaves the whole process out"
LAST = "after the job; the original goes on with zeros"


def look(rows, scratch, forbidden=False, **kw):
    """A machine that psutil looks at. forbidden: memory maps that are not known cannot be opened."""
    here = machine.Machine(scratch / "machine", rows, **kw)
    psutil.PROCFS_PATH = str(here.folder / "proc")
    psutil._timer = here.monotonic
    psutil.process_iter.cache_clear()
    psutil._pslinux.BOOT_TIME = None
    usual = psutil._common.open_binary

    def open_binary(path):
        if forbidden and path.endswith("smaps_rollup") and any(
                p["values"]["mem.pss"] is None and f"/{p['pid']}/" in path for p in here.processes()):
            raise PermissionError(path)
        return usual(path)
    psutil._pslinux.open_binary = open_binary
    return here


def percent(value):
    return None if value is None else round(value, 1)


def oasislmf(rows, scratch):
    made = golden.Golden("oasislmf", f"oasislmf {originals.PACKAGES['oasislmf']}, its resource_monitor.py executed")
    original = originals.module("oasislmf", "oasislmf/execution/resource_monitor.py")
    here = look(rows, scratch, unknown_pss=0)
    # Whom it looks for is fixed there; in ours it is said by --match, and everybody else has his own name.
    names = {p["match"] or p["command"] for s in rows["samples"] for p in s["processes"]}
    original._TOOL_RE = re.compile(r"\b(" + "|".join(sorted(map(re.escape, names))) + r")\b")
    original.time = types.SimpleNamespace(time=here.time)
    monitor = original.ResourceMonitor(str(scratch / "log"), generate_report=False)
    monitor._stop_event = here.event()
    monitor._monitor_loop()
    table = golden.Table(made, "processes.csv", (scratch / "log/resource_monitor.csv").read_bytes(), "\r\n",
                         csv.QUOTE_MINIMAL)
    seen, row = set(), 0
    for sample in rows["samples"]:
        for process in sample["processes"]:
            value = process["values"]
            if process["pid"] not in seen:
                table.set(row, "cpu_pct", percent(value["cpu.percent"]), NEW if sample["elapsed"] else NO_INTERVAL)
            seen.add(process["pid"])
            if value["mem.pss"] is None:
                table.set(row, "uss_kb", None, NO_PSS)
                table.set(row, "pss_kb", None, NO_PSS)
            row += 1
    table.done()
    return made


def stouputils(rows, scratch):
    made = golden.Golden("stouputils", f"stouputils {originals.PACKAGES['stouputils']}, its process_metrics_monitor.py "
                         "executed; one JSON object for each call of mlflow.log_metrics")
    logged = []
    originals.stub("mlflow", log_metrics=lambda metrics, step, run_id: logged.append(metrics))
    nothing = lambda *_: None  # noqa: E731
    base = type("Base", (), {"__class_getitem__": classmethod(lambda cls, _: cls)})
    originals.stub("stouputils.ctx.common", AbstractBothContextManager=base)
    originals.stub("stouputils.print.message", debug=nothing, info=nothing, warning=nothing)
    original = originals.module("stouputils", "stouputils/mlflow/process_metrics_monitor.py", "stouputils.mlflow")
    here = look(rows, scratch, forbidden=True)
    limits = rows["run"]["limits"]
    monitor = original.ProcessMetricsMonitor(pid=here.root, max_memory_megabytes=limits["memory"] / machine.MIB,
                                             max_cpu_count=limits["cpu"])
    monitor.shutdown_event = here.event()
    order = list(monitor.collect_once())  # that of publishing is the order of a set
    monitor.processes.clear()
    monitor.monitor_loop()
    lines = []
    for i, (sample, metrics) in enumerate(zip(rows["samples"], logged)):
        value, last = sample["values"], not sample["processes"]
        line = {monitor.prefix + key: metrics[monitor.prefix + key] for key in order}

        def correct(key, right, why):
            name = monitor.prefix + key
            made.correct("metrics.jsonl", i, name, line[name], right, why)
            line[name] = right
        share = value["cpu.ratio"]
        correct("cpu_usage_percentage", None if share is None else share * 100,
                NEW + "; it does not count who has ended, and does not divide by max_cpu_count, as it says it does")
        if last or value["mem.uss"] is None:
            correct("memory_uss_megabytes", None, LAST if last else "not known; the original takes RSS instead")
        if last:
            for key in ("memory_rss_megabytes", "memory_vms_megabytes", "memory_usage_percentage", "num_threads",
                        "num_fds"):
                correct(key, None, LAST)
            for way in ("read", "write"):
                correct(f"io_{way}_megabytes", value[f"io.{way}"] / machine.MIB, LAST)
        lines.append(line)
    made.add("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    out = io.StringIO()
    writer = csv.DictWriter(out, lines[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    made.source = "stouputils.metrics.jsonl, written by Python's csv: the original writes no file"
    made.add("metrics-csv.csv", out.getvalue())
    return made


def snakemake(rows, scratch):
    made = golden.Golden("snakemake", f"snakemake {originals.PACKAGES['snakemake']}, its benchmark.py executed")
    quiet = types.SimpleNamespace(debug=lambda *_: None, warning=lambda *_: None)
    originals.stub("snakemake.logging", logger=quiet)
    original = originals.module("snakemake", "snakemake/benchmark.py")
    here = look(rows, scratch, unknown_pss=0)
    original.time = types.SimpleNamespace(time=here.time)
    record = original.BenchmarkRecord()
    here.show(0)
    timer = original.BenchmarkTimer(here.root, record)
    for _ in here.steps():
        timer.work()
    record.running_time = rows["run"]["duration"]
    final = rows["samples"][-1]["values"]
    last = "the original ends with its last look at the living processes"

    def correct(field, value, why):
        before = getattr(record, field)
        column = {"cpu_usage": "mean_load"}.get(field, field)
        scale = record.running_time if field == "cpu_usage" else 1
        made.correct("benchmark.tsv", 0, column, f"{before / scale:.2f}", f"{value / scale:.2f}", why)
        setattr(record, field, value)
    correct("io_in", final["io.read"] / machine.MIB, last)
    correct("io_out", final["io.write"] / machine.MIB, last)
    correct("cpu_time", final["cpu.time"], last)
    correct("cpu_usage", 100 * final["cpu.time"], NEW + "; " + last)
    original.write_benchmark_records([record], str(scratch / "benchmark.tsv"), False)
    made.add("benchmark.tsv", (scratch / "benchmark.tsv").read_bytes())
    return made
