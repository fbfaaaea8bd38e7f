# SPDX-License-Identifier: Apache-2.0
"""What a monitor does to a busy job, and how much it finds of what a job really used."""
import json
import os
import shutil
import statistics
import subprocess
import time

from .run import ENV, GRACE, KNOWN_JOB, Monitor, cpu_clock, text_of, work_folder

THREADS, BEFORE, BUSY = 2, 1.1, 1.5  # seconds: a monitor has started and is at rest when the work begins
MAPPED, MAPPING = 1000, 3  # MiB, seconds
RATE, REPORT = 10, "job.json"


class Job:
    """A running job for those that can only look at one."""

    def __init__(self, process):
        self.pid, self.pids = process.pid, [process.pid]


# --- slow-down ------------------------------------------------------------------------------------

def busy_words(programs, work):
    return [programs["busy"], str(THREADS), str(BEFORE), str(BUSY), str(work / REPORT)]


def maps_words(programs, work):
    return [programs["maps"], str(MAPPED), str(BEFORE), str(MAPPING), str(work / REPORT)]


def alone(words_of, programs, base):
    work = work_folder(base)
    try:
        subprocess.run(words_of(programs, work), check=True)
        return json.loads((work / REPORT).read_text())
    finally:
        shutil.rmtree(work)


def beside(tool, words_of, seconds, programs, base):
    """(what the job did, CPU seconds of the monitor while the job worked)."""
    work, hz = work_folder(base), min(RATE, tool.fastest)
    process = None
    try:
        words = words_of(programs, work)
        (work / "pids").touch()
        if tool.starts:
            monitor = Monitor(tool.start(words, hz, work), work)
        else:
            process = subprocess.Popen(words)
            (work / "pids").write_text(f"{process.pid}\n")
            length = BEFORE + seconds
            monitor = Monitor(tool.watch(Job(process), hz, int(length * hz) if tool.exact else length, work), work,
                              str(work / "pids"))
        time.sleep(BEFORE)
        before = cpu_clock(monitor.pid)
        monitor.ended(seconds - 0.05)
        used = cpu_clock(monitor.pid) - before
        if process:
            process.wait()
        monitor.finish(tool.sign, GRACE)
        return json.loads((work / REPORT).read_text()), used
    finally:
        if process:
            process.wait()
        shutil.rmtree(work)


def speed(job):
    return job["rounds"] / job["cpu"]


def slowdown(tools, repetitions, programs, base, progress):
    """{tool: {taken, disturbed, least, most}} in parts of the job, and how much the job alone varies."""
    found, unwatched = {tool.name: [] for tool in tools}, []
    for number in range(repetitions):
        mine = []
        for i, tool in enumerate(tools):
            progress(f"a busy job: {tool.name}, {number + 1} of {repetitions}")
            if i % 3 == 0:
                mine.append(speed(alone(busy_words, programs, base)))
            if tool.reason:
                continue
            try:
                job, used = beside(tool, busy_words, BUSY, programs, base)
            except (OSError, ValueError) as error:
                tool.problem = str(error)
                continue
            found[tool.name].append((used / (THREADS * BUSY), speed(job)))
        unwatched += mine
    base_speed = statistics.median(unwatched)
    results = {}
    for tool in tools:
        if tool.reason or not found[tool.name]:
            results[tool.name] = {"reason": tool.reason or getattr(tool, "problem", "no repetition")}
            continue
        totals = [taken + base_speed / fast - 1 for taken, fast in found[tool.name]]
        results[tool.name] = {"taken": statistics.median(taken for taken, _ in found[tool.name]),
                              "slower": statistics.median(totals), "least": min(totals), "most": max(totals)}
    spread = [base_speed / fast - 1 for fast in unwatched]
    return results, {"least": min(spread), "most": max(spread), "runs": len(unwatched)}


# --- how long it is held up -----------------------------------------------------------------------

def stalls(tools, repetitions, programs, base, progress):
    """{tool: {rounds, longest} or {reason}}, of a job that maps memory beside 1,000 MiB in small pages; "" is the job
    alone."""
    found = {name: [] for name in ["", *[tool.name for tool in tools]]}
    why = {tool.name: tool.reason or "no repetition" for tool in tools}
    for number in range(repetitions):
        for i, tool in enumerate(tools):
            progress(f"a job that maps memory: {tool.name}, {number + 1} of {repetitions}")
            if i % 3 == 0:  # in between: the machine is not the same from one minute to the next
                found[""].append(alone(maps_words, programs, base))
            if not tool.reason:
                try:
                    found[tool.name].append(beside(tool, maps_words, MAPPING, programs, base)[0])
                except (OSError, ValueError) as error:
                    why[tool.name] = str(error)
    return {name: {"reason": why[name]} if not rows else
            {"rounds": statistics.median(row["rounds"] / row["wall"] for row in rows),
             "longest": statistics.median(row["longest"] for row in rows)} for name, rows in found.items()}


# --- what it finds --------------------------------------------------------------------------------

# Name, arguments, which figure is asked for, and what is true in the job's own report.
KNOWN = {"cpu": ("reuse", ["300", "5000"], "cpu"), "peak": ("spike", ["1", "300", "50"], "touched")}


def share(tool, quantity, programs, base):
    """The part of the truth that a tool reports, or why there is none."""
    workload, arguments, truth = KNOWN[quantity]
    work, hz = work_folder(base), min(RATE, tool.fastest)
    process = None
    try:
        report, gate = work / "report", work / "gate"
        report.write_bytes(b"\0" * 8192)
        # The report's descriptor is opened in the job: those that start it may close what they do not know.
        script = work / "job.sh"
        wait = f"read line < {gate}\n" if not tool.start(["true"], hz, work) else ""
        script.write_text(f"cd {work}\n{wait}exec 9<> {report}\nTRUTH_REPORT=9 exec {programs[KNOWN_JOB]} "
                          f"{workload} {' '.join(arguments)}\n")
        words = ["/bin/sh", str(script)]
        if not wait:
            monitor = Monitor(tool.start(words, hz, work), work)
            monitor.ended(60)
        else:
            os.mkfifo(gate)
            process = subprocess.Popen(words, env=ENV)
            job = Job(process)
            if tool.fastest == 1 or tool.name == "top":
                job.pids = []  # of the whole machine
            monitor = Monitor(tool.watch(job, hz, 30, work), work)
            time.sleep(1.1)
            gate.write_text("\n")
            process.wait()
            time.sleep(1.1 / hz)
        monitor.finish(tool.sign or (tool.early if wait else None), 10)
        true = json.loads(report.read_bytes().split(b"\0")[0])[truth]
        said = tool.said(work)[quantity]
        return {"reason": "does not say"} if said is None else {"share": said / true}
    except (OSError, ValueError, KeyError) as error:
        return {"reason": f"{error!r} {text_of(work / 'stderr')[-200:]}"}
    finally:
        if process:
            process.wait()
        shutil.rmtree(work)


def shares(tools, repetitions, programs, base, progress):
    results = {}
    for quantity in KNOWN:
        found = {tool.name: [] for tool in tools}
        for number in range(repetitions):
            for tool in tools:
                if tool.exact or tool.reason:
                    found[tool.name].append({"reason": tool.reason or "says nothing"})
                    continue
                progress(f"true {quantity}: {tool.name}, {number + 1} of {repetitions}")
                found[tool.name].append(share(tool, quantity, programs, base))
        for name, rows in found.items():
            good = [row["share"] for row in rows if "share" in row]
            results.setdefault(name, {})[quantity] = \
                {"share": statistics.median(good), "least": min(good), "most": max(good)} if good else rows[-1]
    return results


def startups(tools, repetitions, base, progress):
    """{tool: CPU seconds for a job that does nothing, less what that uses}, of those that can start one."""
    def once(words):
        work = work_folder(base)
        try:
            return Monitor(words(work), work).finish(None, GRACE)
        finally:
            shutil.rmtree(work)
    able = [tool for tool in tools if not tool.reason and tool.start(["/bin/true"], RATE, base)]
    found = {tool.name: [] for tool in able}
    for number in range(repetitions):
        for tool in able:
            progress(f"start-up: {tool.name}, {number + 1} of {repetitions}")
            found[tool.name].append(once(lambda work: tool.start(["/bin/true"], min(RATE, tool.fastest), work)) -
                                    once(lambda work: ["/bin/true"]))
    return {name: statistics.median(each) for name, each in found.items()}
