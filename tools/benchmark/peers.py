# SPDX-License-Identifier: Apache-2.0
"""The tools that are compared: how each is called, and what it says."""
import csv
import json
import re
import signal

from .run import KNOWN_JOB, ROOT, text_of

HERE = ROOT / "tools/benchmark"


class Tool:
    """A monitor. watch() looks at a running job, start() starts one; said() is what it says the job used."""
    fastest = 100  # samples a second that it can be asked for
    starts = False  # whether it can only look at a job that it starts itself
    exact = False  # whether it says itself what its samples cost
    python = False
    peer = True
    same = True  # whether it has CPU time, memory and bytes of each process: the same work
    sign = None  # what tells it to end, where it does not by itself
    streams = None  # the file to which it writes each sample at once
    early = None  # what tells it to end before its time
    reason = None  # why it is not there

    def __init__(self, program):
        self.program = program

    def unable(self, case):
        return self.reason

    def start(self, words, hz, work):
        return None  # only running jobs


def rows_of(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


class Ours(Tool):
    name, what = "proctor", "default metrics and the machine, `--no-pss --no-gpu`, CSV"
    peer, streams = False, "a.csv"
    options = ["--no-pss", "--no-gpu", "--csv", "a.csv"]

    def common(self, hz):
        return ["-q", "--no-record", "-i", f"{1000 / hz:g}ms", *self.options]

    def watch(self, job, hz, seconds, work):
        return [self.program, "attach", *self.common(hz), "--duration", f"{seconds:g}s", job.pid]

    def start(self, words, hz, work):
        return [self.program, "run", *self.common(hz), "--summary", "summary.json", "--", *words]

    def samples(self, work, job):
        rows = [row for row in rows_of(work / "a.csv") if row["procs"]]
        return len(rows), sum(int(float(row["procs"])) for row in rows)

    def said(self, work):
        metrics = json.loads((work / "summary.json").read_text())["metrics"]
        return {"cpu": metrics["cpu.time"]["total"], "peak": metrics["mem.rss.peak"]["peak"]}


class Everything(Ours):
    name, what = "proctor, all", "with PSS and GPUs, CSV and JSON lines of the job and of each process"
    options = ["--processes", "--csv", "a.csv", "--jsonl", "a.jsonl"]


class Floor(Tool):
    name, what = "floor", "held preads of stat, statm and io of each process, and nothing else"
    peer, exact = False, True

    def watch(self, job, hz, samples, work):
        return [self.program, f"{1000 / hz:g}", samples]

    def said_of_itself(self, work):
        said = json.loads((work / "stdout").read_text() or "{}")
        if not said:
            raise OSError(f"floor: {text_of(work / 'stderr').strip()}")
        return said["cpu_us"], said["samples"], said["process_samples"]


class Loop(Tool):
    """A script of ours around a library of Python; it says in JSON what it saw."""
    python = True

    def watch(self, job, hz, seconds, work):
        return [self.program, HERE / self.script, job.pid, 1 / hz, seconds, "said.json"]

    def samples(self, work, job):
        said = json.loads((work / "said.json").read_text())
        return said["samples"], said["process_samples"]

    def said(self, work):
        said = json.loads((work / "said.json").read_text())
        return {"cpu": said["cpu"], "peak": said["peak"]}


class Psutil(Loop):
    name, script = "psutil", "psutil_loop.py"
    what = "a loop over `children(recursive=True)`: times, memory, I/O of each"


class ResourceTracker(Loop):
    name, script = "resource-tracker (Python)", "resource_tracker_loop.py"
    what = "`ResourceTracker(pid)`, of process and machine, without asking for the cloud; memory is PSS"


class Psrecord(Tool):
    same = False
    name, what, python = "psrecord", "`--include-children --include-io`", True

    def call(self, target, hz):
        return [self.program, target, "--include-children", "--include-io", "--interval", f"{1 / hz:g}",
                "--log-format", "csv", "--log", "a.csv"]

    def watch(self, job, hz, seconds, work):
        return [*self.call(job.pid, hz), "--duration", f"{seconds:g}"]

    def start(self, words, hz, work):
        return self.call(" ".join(words), hz)

    def samples(self, work, job):
        rows = rows_of(work / "a.csv")
        return len(rows), sum(int(row["nproc"]) for row in rows)

    def said(self, work):
        return psrecord_said(rows_of(work / "a.csv"))


def psrecord_said(rows):
    """Percentages over the time since the row before; sizes in MiB."""
    rows = [{k: float(v) for k, v in row.items()} for row in rows]
    cpu = sum(row["cpu"] / 100 * (row["elapsed_time"] - last["elapsed_time"]) for last, row in zip(rows, rows[1:]))
    return {"cpu": cpu, "peak": max((row["mem_real"] for row in rows), default=0) * 1048576}


class Conduct(Tool):
    same = False
    name, what = "con-duct", "`con-duct run`, which calls ps for each sample"
    python = starts = True

    def start(self, words, hz, work):
        interval = f"{1 / hz:g}"
        return [self.program, "run", "-q", "-c", "none", "-o", "none", "-p", "duct_", "--sample-interval", interval,
                "--report-interval", interval, "--", *words]

    def samples(self, work, job):
        return conduct_samples(text_of(work / "duct_usage.jsonl"))

    def said(self, work):
        summary = json.loads((work / "duct_info.json").read_text())["execution_summary"]
        cpu = (summary["average_pcpu"] or 0) / 100 * summary["wall_clock_time"]
        return {"cpu": cpu, "peak": summary["peak_rss"] or 0}


def conduct_samples(text):
    records = [json.loads(line) for line in text.splitlines()]
    return sum(r["num_samples"] for r in records), sum(r["num_samples"] * len(r["processes"]) for r in records)


class Rust(Tool):
    name, fastest, sign = "resource-tracker (Rust)", 1, signal.SIGTERM
    what = "of process tree and machine; seconds are its shortest interval"

    def call(self, *rest):
        return [self.program, "-i", 1, "-f", "json", "-o", "a.jsonl", *rest]

    def watch(self, job, hz, seconds, work):
        return self.call("--pid", job.pid)

    def start(self, words, hz, work):
        return self.call("--", *words)

    def samples(self, work, job):
        records = rust_records(text_of(work / "a.jsonl"))
        return len(records), sum(1 + (r["cpu"]["process_child_count"] or 0) for r in records)

    def said(self, work):
        records = [r["cpu"] for r in rust_records(text_of(work / "a.jsonl"))]
        return {"cpu": sum((r["process_utime_secs"] or 0) + (r["process_stime_secs"] or 0) for r in records),
                "peak": max((r["process_rss_mib"] or 0 for r in records), default=0) * 1048576}


def rust_records(text):
    """A line that was being written when it was told to end is no sample."""
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


class Mprof(Tool):
    same = False
    name, python, sign = "mprof", True, signal.SIGINT
    what = "memory alone: `--include-children`; of how many it does not say, and all are taken"

    def call(self, hz, *rest):
        return [self.program, "run", "-C", "-T", f"{1 / hz:g}", "-o", "m.dat", *rest]

    def watch(self, job, hz, seconds, work):
        return self.call(hz, "-a", job.pid)

    def start(self, words, hz, work):
        return self.call(hz, *words)

    def samples(self, work, job):
        count = len(mprof_sizes(text_of(work / "m.dat")))
        return count, count * len(job.pids)  # it does not say of how many

    def said(self, work):
        return {"cpu": None, "peak": max(mprof_sizes(text_of(work / "m.dat")), default=0) * 1048576}


def mprof_sizes(text):
    return [float(size) for size in re.findall(r"^MEM (\S+) \S+$", text, re.M)]


class Pidstat(Tool):
    name, what, fastest = "pidstat", "`-h -u -r -d -p` with the pids; seconds are its shortest interval", 1
    early = signal.SIGINT

    def watch(self, job, hz, seconds, work):
        pids = ",".join(map(str, job.pids)) if job.pids else "ALL"
        return [self.program, "-h", "-u", "-r", "-d", "-p", pids, 1, max(1, int(seconds))]

    def samples(self, work, job):
        samples = pidstat_samples(text_of(work / "stdout"), job)
        return len(samples), sum(map(len, samples))

    def said(self, work):
        samples = pidstat_samples(text_of(work / "stdout"))
        return {"cpu": sum(float(row["%CPU"]) / 100 for rows in samples for row in rows),
                "peak": max((sum(int(row["RSS"]) for row in rows) for rows in samples), default=0) * 1024}



def pidstat_samples(text, job=None):
    """[[row of each process]], by the time that stands in the rows: a new one is a new sample. Where the job's pids are
    not known it is told by its name, since the whole machine is listed."""
    names, found, pids = [], {}, set(job.pids) if job is not None and job.pids else None
    for line in text.splitlines():
        words = line.split()
        if line.startswith("#"):
            names = words[1:]
        elif names and len(words) >= len(names) and words[0] != "Average:":
            row = dict(zip(names, words))
            if (int(row["PID"]) in pids) if pids else row["Command"] == KNOWN_JOB:
                found.setdefault(row["Time"], []).append(row)
    return list(found.values())


class Top(Tool):
    same = False
    name, what = "top", "`-b`; with the pids up to 20, else of the machine: rows of the job count"
    early = signal.SIGINT

    def watch(self, job, hz, seconds, work):
        few = ["-p", ",".join(map(str, job.pids))] if job.pids and len(job.pids) <= 20 else []
        return [self.program, "-b", "-w", 200, "-d", f"{1 / hz:g}", "-n", max(1, int(seconds * hz)), *few]

    def samples(self, work, job):
        samples = top_samples(text_of(work / "stdout"), job)
        return len(samples), sum(map(len, samples))

    def said(self, work):
        return top_said(top_samples(text_of(work / "stdout")))


def top_samples(text, job=None):
    """[[row of each process]]: each begins with the line of the load."""
    samples, names, pids = [], [], set(job.pids) if job is not None and job.pids else None
    for line in text.splitlines():
        words = line.split()
        if line.startswith("top - "):
            samples.append([])
        elif words[:2] == ["PID", "USER"]:
            names = words
        elif names and samples and len(words) >= len(names) and words[0].isdigit():
            row = dict(zip(names, words))
            if (int(row["PID"]) in pids) if pids else row["COMMAND"] == KNOWN_JOB:
                samples[-1].append(row)
    return samples


def top_bytes(text):
    """KiB, or with the letter of a larger unit."""
    unit = "kmgt".find(text[-1].lower())
    return float(text[:-1]) * 1024 ** (unit + 1) if unit >= 0 else float(text) * 1024


def top_seconds(text):
    minutes, seconds = text.split(":")
    return int(minutes) * 60 + float(seconds)


def top_said(samples):
    """The last time seen of each process; the largest sum of sizes."""
    times = {row["PID"]: top_seconds(row["TIME+"]) for rows in samples for row in rows}
    return {"cpu": sum(times.values()),
            "peak": max((sum(top_bytes(row["RES"]) for row in rows) for rows in samples), default=0)}


class Time(Tool):
    same = False
    name, what, starts = "GNU time", "no samples: what the kernel tells it at the end", True

    def unable(self, case):
        return self.reason or "takes no samples"

    def start(self, words, hz, work):
        return [self.program, "-f", "%U %S %M", "-o", "said", *words]

    def said(self, work):
        user, system, size = text_of(work / "said").split()
        return {"cpu": float(user) + float(system), "peak": int(size) * 1024}


CLASSES = [Ours, Everything, Floor, Psutil, Psrecord, Conduct, ResourceTracker, Rust, Mprof, Pidstat, Top, Time]
NAMES = [c.name for c in CLASSES]
ON_THE_SAME_WORK = [c.name for c in CLASSES if c.peer and c.same]
