# SPDX-License-Identifier: Apache-2.0
"""resource-tracker: 0.5 from its package, 0.1 from the text of the seed."""
import csv
import io
import re
import types

from . import golden, machine, originals
from . import rows as known

GPU = ("gpu_usage", "gpu_vram", "gpu_vram_mib", "gpu_utilized")
SHORT = "no rate of what may be the shortest of intervals, up to the end of the job"
NO_GPU = "not known in this sample; the original cannot tell that from idle"
NO_PSS = "nobody's PSS could be read; the original ends there, or dies"
LAST = "the last look, at which the original finds the job gone and ends: it does not write what it has found"
INTERRUPTS = "the original leaves out interrupts"
NO_COUNT = "not known in this sample"
FORKS = "the original has forks since boot"


class Stop(Exception):
    pass


class Schedule:
    """An original's clock: each time it sleeps, the next sample comes. It begins two intervals before the first
    sample: one look goes into its constructor and one under its header."""

    def __init__(self, here):
        self.here, self.looks = here, iter([(0, 1)] + [(i, 0) for i in range(len(here.rows["samples"]))])
        here.show(0, early=2)

    def sleep(self, _):
        try:
            index, early = next(self.looks)
        except StopIteration:
            raise Stop from None
        self.here.show(index, early)


def run(tracker, here, namespace, path, line, **kw):
    """The bytes that a tracker writes, and what it saw when it found the job gone; line: its own way to write that.
    Between constructor and loop one interval passes too."""
    schedule, found = Schedule(here), []
    namespace["sleep"] = schedule.sleep
    made = tracker(autostart=False, **kw)
    look = made.diff_stats

    def keep():
        found.append(look())
        return found[-1]
    made.diff_stats = keep
    schedule.sleep(0)
    try:
        made.start_tracking(str(path))
    except Stop:
        pass
    return path.read_bytes() + (line(found[-1].values()) if made.status == "exited" else b"")


def seed_line(values):
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_NONNUMERIC).writerow(values)
    return out.getvalue().encode()


def patch(namespace, here):
    namespace.update(open=here.open, listdir=here.listdir, glob=here.glob, statvfs=here.statvfs, time=here.time,
                     sysconf=lambda _: machine.TICK, Popen=here.popen)


def common(table, rows, memory, system):
    for i, sample in enumerate(rows["samples"]):
        value, ended = sample["values"], not system and not sample["processes"]
        if ended:
            table.set(i, "cpu_usage", 0, SHORT)
            table.golden.correct(table.name, i, "all", None, ",".join(table.lines[1 + i]), LAST)
            continue
        if not system and value["mem.pss"] is None:
            table.set(i, memory, None, NO_PSS)
        known_gpu = value["system.gpu.usage" if system else "gpu.usage"] is not None
        for column in table.header:
            if column in GPU and not known_gpu and not rows["run"].get("no_gpu") and (system or i):
                table.set(i, column, None, NO_GPU)


def interrupts(table, rows, unit):
    """System time with interrupts, as system.cpu.system has it."""
    before = None
    for i, sample in enumerate(rows["samples"]):
        now = sample["values"]
        if before:
            spent = now["system.cpu.system"] - before["system.cpu.system"]
            table.set(i, "stime", unit(spent) or 0, INTERRUPTS)
            table.set(i, "cpu_usage", round(now["system.cpu.usage"], 4), INTERRUPTS)
        before = now


def tables(made, rows, processes, newline, memory, ticks, trackers):
    """The process and the system table, the bytes of which the trackers make. processes: why their number is wrong,
    None where it is right."""
    process = golden.Table(made, "process.csv", trackers[0](), newline, csv.QUOTE_NONNUMERIC)
    common(process, rows, memory, system=False)
    system = golden.Table(made, "system.csv", trackers[1](), newline, csv.QUOTE_NONNUMERIC)
    interrupts(system, rows, ticks)
    common(system, rows, None, system=True)
    for i, sample in enumerate(rows["samples"]):
        count = sample["values"]["system.procs"]
        if count is None or processes:
            system.set(i, "processes", count, NO_COUNT if count is None else processes)
    return process.done(), system.done()


def current(rows, scratch):
    """0.5: the procfs implementation; the other one adds psutil's own definitions."""
    made = golden.Golden("resource-tracker", f"resource-tracker {originals.PACKAGES['resource-tracker']}, executed")
    tracker = originals.package("resource-tracker", "resource_tracker.tracker")
    procfs = originals.package("resource-tracker", "resource_tracker.tracker_procfs")
    tracker.get_tracker_implementation = lambda: (procfs.get_process_stats, procfs.get_system_stats)
    for made.variant in (None, "no-gpu"):
        form = known.variant(rows, made.variant)
        here = machine.Machine(scratch / "machine", form, unknown_pss=1, afterlife=True)
        for module in (procfs, originals.package("resource-tracker", "resource_tracker.nvidia"),
                       originals.package("resource-tracker", "resource_tracker.helpers")):
            patch(vars(module), here)
        tracker.time = here.time
        paths = [scratch / "process.csv", scratch / "system.csv"]
        made_now = tables(made, form, None, "\n", "memory_mib", lambda spent: round(spent, 6),
                          [lambda: run(tracker.ProcessTracker, here, vars(tracker), paths[0], tracker.render_csv_row,
                                       pid=here.root),
                           lambda: run(tracker.SystemTracker, here, vars(tracker), paths[1], None)])
        for path, data in zip(paths, made_now):
            path.write_bytes(data)
        both = types.SimpleNamespace(**{f"{path.stem}_metrics": tracker.TinyDataFrame(csv_file_path=str(path))
                                        for path in paths})
        made.add("combined.csv", tracker.ResourceTracker.get_combined_metrics(both).to_csv())
    return made


def blocks(text):
    """The code in a page of documentation: from each "Source code in" up to the prose after it. Methods are there a
    second time on their own, which does not matter: they come after their class."""
    for part in re.split(r"^Source code in .*\n", text, flags=re.M)[1:]:
        lines = part.split("\n")
        end = next((i for i, line in enumerate(lines) if i and line and not line[0].isspace() and
                    not re.match(r"@|def |class |\)", line)), len(lines))
        yield "\n".join(lines[:end])


def first(rows, scratch):
    """0.1: the code in the seed's page, with the imports that a page does not show."""
    made = golden.Golden("resource-tracker-0.1", "the code in the text of seed 001, executed")
    namespace = {"__name__": "seed"}
    exec("from contextlib import suppress\nfrom csv import QUOTE_NONNUMERIC, writer as csv_writer\n"
         "from functools import cache\nfrom os import getpid\nfrom re import search\n"
         "from subprocess import PIPE, TimeoutExpired\nfrom sys import stdout\nfrom typing import Optional\n",
         namespace)
    for block in blocks(originals.seed("001")):
        if not re.search(r"^def \w+\(\s*self", block, re.M):
            exec(block, namespace)
    for made.variant in (None, "no-gpu"):
        form = known.variant(rows, made.variant)
        here = machine.Machine(scratch / "machine", form, unknown_pss=1, afterlife=True)
        patch(namespace, here)
        tables(made, form, FORKS, "\r\n", "pss", machine.ticks,
               [lambda: run(namespace["PidTracker"], here, namespace, scratch / "process.csv", seed_line,
                            pid=here.root),
                lambda: run(namespace["SystemTracker"], here, namespace, scratch / "system.csv", None)])
    return made
