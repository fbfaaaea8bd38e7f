# SPDX-License-Identifier: Apache-2.0
"""Those who read /proc themselves: spdl and pytyche."""
import dataclasses
import datetime
import json
import os
import subprocess
import time
import types

from . import golden, machine, originals

MIB = machine.MIB
LAST = "after the job; the original counts nobody and so zeros"


def spdl(rows, scratch):
    made = golden.Golden("spdl", f"spdl-core {originals.PACKAGES['spdl-core']}, its _pgrp_stats.py executed; one JSON "
                         "object for each ProcessGroupResourceUsage")
    originals.stub("spdl.pipeline._bg_task", BackgroundTask=object)
    original = originals.module("spdl-core", "spdl/pipeline/_pgrp_stats.py")
    here = machine.Machine(scratch / "machine", rows)
    run = rows["run"]
    original.open = here.open
    original.os = types.SimpleNamespace(scandir=here.scandir, sysconf=os.sysconf, getpid=lambda: run["monitor_pid"],
                                        getpgrp=lambda: run["pgid"])
    usual, before, lines = time.monotonic, [None] * 4, []
    for i, sample in enumerate(here.steps()):
        time.monotonic = here.monotonic
        usage, *before = original._collect_pgrp_stats(*before)
        time.monotonic = usual
        value, last = sample["values"], not sample["processes"]

        def correct(field, right, why):
            made.correct("usage.jsonl", i, field, getattr(usage, field), right, why)
            setattr(usage, field, right)
        correct("cpu_percent", value["cpu.percent"], "the original forgets what those used who have ended")
        if last:
            correct("rss_bytes", None, LAST)
            correct("num_procs", None, LAST)
            correct("disk_read_bytes", value["io.read"], LAST)
            correct("disk_write_bytes", value["io.write"], LAST)
        lines.append(json.dumps(dataclasses.asdict(usage)) + "\n")
    made.add("usage.jsonl", "".join(lines))
    return made


def number(value, form="{:.0f}"):
    """As nvidia-smi has it."""
    return "[N/A]" if value is None else form.format(value)


def nvidia_query(here):
    """nvidia-smi --query-gpu=timestamp,utilization.gpu,... --format=csv,nounits,noheader, in UTC."""
    when = datetime.datetime.fromtimestamp(round(here.time(), 3), datetime.timezone.utc)
    stamp = when.strftime("%Y/%m/%d %H:%M:%S.") + f"{when.microsecond // 1000:03}"
    for device in here.sample["devices"]:
        value = device["values"]
        cells = [stamp, number(value["gpu.util"] * 100), number(value["gpu.mem.util"] * 100),
                 number(value["gpu.mem.used"] / MIB), number(value["gpu.mem.total"] / MIB),
                 number(value["gpu.power"], "{:.2f}"), number(value["gpu.temp"]),
                 number(value["gpu.clock.sm"] / 1e6), number(value["gpu.clock.mem"] / 1e6)]
        yield ", ".join(cells) + "\n"


def nvidia_dmon(here):
    """nvidia-smi dmon, with the columns that the original's reader takes it to have."""
    for index, device in enumerate(here.sample["devices"]):
        value = device["values"]
        cells = [index, number(value["gpu.util"] * 100), number(value["gpu.mem.util"] * 100),
                 number(value["gpu.mem.used"] / MIB)]
        yield "{:>5} {:>6} {:>6} {:>6} \n".format(*cells)


def pytyche(rows, scratch):
    made = golden.Golden("pytyche", f"pytyche {originals.PACKAGES['pytyche']} (the same as the text of seed 003), its "
                         "run_monitor.py executed; hw_metrics and dmon, which nvidia-smi writes for it, laid out "
                         "as that does (compared with the real one)")
    original = originals.module("pytyche", "pytyche/diagnostics/run_monitor.py")
    here = machine.Machine(scratch / "machine", rows)
    files = {}

    def popen(words, stdout, **_):
        files["dmon" if words[1] == "dmon" else "query"] = stdout
        return types.SimpleNamespace(terminate=stdout.close, wait=lambda timeout: 0)
    original.open = here.open
    original.subprocess = types.SimpleNamespace(Popen=popen, DEVNULL=subprocess.DEVNULL)
    original.datetime = types.SimpleNamespace(now=lambda tz: datetime.datetime.fromtimestamp(here.time(), tz))
    original._CpuSampler.start = lambda self: None
    monitor = original.HWMonitor()
    monitor.start(scratch / "out", interval_sec=1)
    event, sampler = here.event(), monitor._cpu_sampler
    files["dmon"].write("# gpu     sm    mem     fb \n# Idx      %      %     MB \n")
    wait = event.wait

    def look_and_wait(seconds):
        files["query"].writelines(nvidia_query(here))
        files["dmon"].writelines(nvidia_dmon(here))
        wait()
    event.wait = look_and_wait
    sampler._stop = event
    sampler._run()
    paths = monitor.stop()
    guests = "the original counts time of guests twice in the whole"
    lines = paths[1].read_text().splitlines()
    before = None
    for i, sample in enumerate(rows["samples"]):
        value = sample["values"]
        parts = ("user", "system", "idle", "iowait", "steal")
        if before:
            spent = {part: value[f"system.cpu.{part}"] - before[f"system.cpu.{part}"] for part in parts}
            cells = lines[i].split(",")
            for at, part in ((1, "user"), (2, "idle")):
                right = f"{100 * spent[part] / sum(spent.values()):.1f}"
                made.correct("cpu_metrics.csv", i - 1, ("usr_pct", "idle_pct")[at - 1], cells[at], right, guests)
                cells[at] = right
            lines[i] = ",".join(cells)
        before = value
    paths[1].write_text("\n".join(lines) + "\n")
    for path in paths:
        made.add(path.name.replace("hw_dmon", "dmon"), path.read_bytes())
    summary = original.build_resource_summary(*paths).to_dict()
    known = [d["values"]["gpu.util"] for s in rows["samples"] for d in s["devices"]]
    right = round(sum(float(number(100 * value)) for value in known) / len(known), 1)
    made.correct("resource-summary.json", 0, "gpu_util_mean_pct", summary["gpu_util_mean_pct"], right,
                 "the original leaves out a GPU's utilization where its power is not known")
    summary["gpu_util_mean_pct"] = right
    made.add("resource-summary.json", json.dumps(summary) + "\n")
    made.variant = "no-gpu"
    made.add("resource-summary.json", json.dumps(original.build_resource_summary(None, paths[1]).to_dict()) + "\n")
    return made
