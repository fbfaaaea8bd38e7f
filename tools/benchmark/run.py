# SPDX-License-Identifier: Apache-2.0
"""Starts jobs and monitors, and says what the monitors used."""
import hashlib
import json
import math
import os
import pathlib
import select
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRACE = 3  # seconds that a monitor may take to end by itself
PATIENCE = 8  # and after it was told to
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "S_TIME_FORMAT": "ISO", "HOME": "/tmp",
       "XDG_CONFIG_HOME": "/nonexistent"}
KNOWN_JOB = "bench-known"  # what a job whose use is known is called: nobody else's process is
FAULTS = 2  # page faults each time that an active process wakes, where there are any
JOBS = {"crowd", "busy", KNOWN_JOB}  # whatever else a monitor started is part of the monitor


def compile_programs(folder):
    """The workloads, statically linked: they start fast and are small."""
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread"]
    programs = {name: [ROOT / f"tests/bench/{name}.c"] for name in ("crowd", "floor", "busy", "maps")}
    programs[KNOWN_JOB] = sorted((ROOT / "tests/truth").glob("*.c"))
    for name, sources in programs.items():
        subprocess.run(["cc", *flags, "-o", folder / name, *sources], check=True)
    return {name: str(folder / name) for name in programs}


def digest(path):
    """Names a program, whatever it is called."""
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


# --- processes ------------------------------------------------------------------------------------

def text_of(path):
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except OSError:
        return ""


def children(pid):
    return [int(p) for task in pathlib.Path(f"/proc/{pid}/task").glob("*") for p in text_of(task / "children").split()]


def monitor_tree(pid):
    """The monitor's own processes: not the job that it may have started."""
    if text_of(f"/proc/{pid}/comm").strip() in JOBS:
        return []
    return [pid] + [p for child in children(pid) for p in monitor_tree(child)]


def peak_size(pid):
    """Bytes: the high-water marks of a monitor's processes."""
    sizes = [text_of(f"/proc/{p}/status").partition("VmHWM:")[2].split() for p in monitor_tree(pid)]
    return sum(int(words[0]) * 1024 for words in sizes if words)


def cpu_clock(pid):
    """CPU seconds of a monitor's processes until now, and of those they waited for."""
    used = 0.0
    for p in monitor_tree(pid):
        try:
            used += time.clock_gettime((~p << 3) | 2)
        except OSError:
            continue
        fields = text_of(f"/proc/{p}/stat").rpartition(")")[2].split()
        used += sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK") if fields else 0
    return used


class Monitor:
    """A monitor that runs: posix_spawn, so that our size does not become part of its cost."""

    def __init__(self, words, work, stdin=os.devnull):
        actions = [(os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
                   (os.POSIX_SPAWN_OPEN, 1, str(work / "stdout"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
                   (os.POSIX_SPAWN_OPEN, 2, str(work / "stderr"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)]
        before = os.getcwd()
        os.chdir(work)
        try:
            self.pid = os.posix_spawnp(str(words[0]), [str(w) for w in words], ENV, file_actions=actions,
                                       setpgroup=0, setsigdef=[signal.SIGINT, signal.SIGTERM])
        finally:
            os.chdir(before)
        self.fd = os.pidfd_open(self.pid)

    def ended(self, timeout):
        return bool(select.select([self.fd], [], [], max(0, timeout))[0])

    def finish(self, sign, grace=GRACE):
        """CPU seconds of its life; sign is what tells it to end, None where it ends by itself."""
        for what, patience in ((sign, grace), (signal.SIGINT, PATIENCE), (signal.SIGKILL, PATIENCE)):
            if what:
                os.kill(self.pid, what)  # it is ours until wait4, ended or not
            if self.ended(patience):
                break
        _, status, usage = os.wait4(self.pid, 0)
        os.close(self.fd)
        self.status, self.killed = os.waitstatus_to_exitcode(status), what == signal.SIGKILL
        return usage.ru_utime + usage.ru_stime


# --- jobs -----------------------------------------------------------------------------------------

class Case:
    """So many processes, of which so many are active, of that size, looked at so often."""

    def __init__(self, processes, activity, hz, mib=0):
        self.processes, self.activity, self.hz, self.mib = processes, activity, hz, mib

    @property
    def active(self):
        return math.ceil(self.processes * {"idle": 0, "5 %": 0.05, "all": 1, "faults": 1}[self.activity])

    @property
    def key(self):
        return f"{self.processes}/{self.activity}/{self.hz:g}/{self.mib}"

    def words(self, programs, seconds, hz):
        """Active ones wake twice in an interval: each sample finds that they have run."""
        faults = FAULTS if self.activity == "faults" else 0
        return [programs["crowd"], self.processes, self.active, self.mib << 10, max(1, int(500 / hz)), faults, seconds]

    @property
    def grace(self):
        """Seconds that a monitor may take to end by itself: one sample of many, or making and freeing them, is slow."""
        return GRACE + self.processes / 500 + self.processes * self.mib / 500


class Crowd:
    """The processes of a case, for as long as the block lasts."""

    def __init__(self, case, programs, hz=None):
        self.case, self.comms = case, {"crowd"}
        words = case.words(programs, 0, hz or case.hz)
        self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        start_new_session=True)

    def __enter__(self):
        if self.process.stdout.readline() != b"ready\n":
            self.process.wait()
            raise OSError(f"no crowd of {self.case.processes} processes could be made")
        self.pid = self.process.pid
        self.pids = [self.pid, *children(self.pid)]
        time.sleep(0.2)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def work_folder(base):
    return pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=base))


# --- the cost of a sample -------------------------------------------------------------------------

# Seconds by rate: what the long run has more than the short one is samples and nothing else.
LONG = {1: 3.3, 10: 1.6, 100: 1.0}
SHORT = {1: 1.3, 10: 0.4, 100: 0.3}
# Of one that writes each sample at once, both are parts of one run: what comes before it has settled, which takes 32
# samples, however long they take where it cannot keep up, and the rest.
SETTLED = {1: 33.3, 10: 3.5, 100: 0.6}
SETTLED_BY = 32
REST = {1: 8.3, 10: 1.6, 100: 1.0}
LEAST = 8  # samples of the floor: it is what everybody is divided by


class Shot:
    """One run of a monitor: CPU seconds, how many samples and of how many processes, bytes."""

    def __init__(self, cpu, samples, process_samples, size, seconds):
        self.cpu, self.samples, self.process_samples = cpu, samples, process_samples
        self.size, self.seconds = size, seconds


def watch_crowd(tool, case, crowd, hz, seconds, base, programs):
    """One run. A tool that can only start its job gets a crowd of its own, whose use is taken off."""
    work = work_folder(base)
    try:
        job_cpu = 0
        if tool.starts:
            words = [*case.words(programs, seconds, hz), work / "report"]
            monitor = Monitor(tool.start([str(w) for w in words], hz, work), work)
        else:
            (work / "pids").write_text("\n".join(map(str, crowd.pids)))
            monitor = Monitor(tool.watch(crowd, hz, seconds, work), work, str(work / "pids"))
        monitor.ended(seconds * 0.8)
        size = peak_size(monitor.pid)
        monitor.ended(seconds * 0.2)
        cpu = monitor.finish(tool.sign, case.grace)
        if monitor.killed:
            raise OSError(f"{tool.name}: it did not end when it was told to, and had to be killed")
        if tool.starts and not (work / "report").exists():
            raise OSError(f"{tool.name}: its job did not end in time")
        if tool.starts:
            job_cpu = json.loads((work / "report").read_text())["cpu"]
        try:
            samples, process_samples = tool.samples(work, crowd)
        except (OSError, ValueError, KeyError) as error:
            raise OSError(f"{tool.name}: exit status {monitor.status}, {error!r}, "
                          f"{text_of(work / 'stderr').strip()[-300:]}") from error
        return Shot(cpu - job_cpu, samples, process_samples, size, seconds)
    finally:
        shutil.rmtree(work)


def between_samples(path, hz):
    """Waits for a sample to be written, and some more: its cost is in, the next one's is not."""
    def size():
        return path.stat().st_size if path.exists() else 0
    before, end = size(), time.monotonic() + 3 / hz + GRACE
    while size() == before and time.monotonic() < end:
        time.sleep(0.002)
    time.sleep(0.2 / hz)


def settle(tool, work, crowd, hz):
    """Its first, deeper looks are over; one that cannot keep up is given half a minute more."""
    end = time.monotonic() + 30
    while tool.samples(work, crowd)[0] < min(SETTLED_BY, SETTLED[hz] * hz) - 1 and time.monotonic() < end:
        between_samples(work / tool.streams, hz)


def watch_in_parts(tool, case, crowd, hz, base):
    """(the whole, its first part) of one run."""
    work, shots = work_folder(base), []
    try:
        monitor = Monitor(tool.watch(crowd, hz, SETTLED[hz] + REST[hz] + 60, work), work)
        began = time.monotonic()
        try:
            for seconds in (SETTLED[hz], REST[hz]):
                monitor.ended(seconds)
                between_samples(work / tool.streams, hz)
                if not shots:
                    settle(tool, work, crowd, hz)
                samples, process_samples = tool.samples(work, crowd)
                shots.append(Shot(cpu_clock(monitor.pid), samples, process_samples, peak_size(monitor.pid),
                                  time.monotonic() - began))
        finally:
            monitor.finish(signal.SIGINT, case.grace)
        return shots[1], shots[0]
    except (OSError, ValueError, KeyError) as error:
        raise OSError(f"{tool.name}: {error!r}, {text_of(work / 'stderr').strip()[-300:]}") from error
    finally:
        shutil.rmtree(work)


class Cost:
    """Of one tool in one case: repetitions of a long and a short run, or what a tool says of itself."""

    def __init__(self):
        self.each, self.startup, self.sizes, self.per_job, self.note = [], [], [], [], ""

    def add(self, long, short):
        more, samples = long.process_samples - short.process_samples, long.samples - short.samples
        self.sizes.append(max(long.size, short.size))
        if samples >= 2 and long.cpu <= short.cpu:
            self.note = "a repetition was lost in the noise"
        elif samples >= 2:
            self.each.append((long.cpu - short.cpu) / more * 1e6)
            self.per_job.append((long.cpu - short.cpu) / samples * 1e6)
            self.startup.append(short.cpu - self.per_job[-1] * 1e-6 * short.samples)
        elif long.samples:
            self.each.append(long.cpu / long.process_samples * 1e6)
            self.per_job.append(long.cpu / long.samples * 1e6)
            self.note = f"{long.samples} samples in {long.seconds:g} s, start-up included"
        else:
            self.note = f"no sample in {long.seconds:g} s"

    def add_exact(self, cpu_us, samples, process_samples, size):
        self.each.append(cpu_us / process_samples)
        self.per_job.append(cpu_us / samples)
        self.sizes.append(size)

    def result(self, hz):
        if not self.each:
            return {"reason": self.note or "no repetition", "hz": hz}
        return {"us": statistics.median(self.each), "least": min(self.each), "most": max(self.each),
                "job_us": statistics.median(self.per_job), "size": statistics.median(self.sizes), "hz": hz,
                "startup": statistics.median(self.startup) if self.startup else None, "note": self.note,
                "repetitions": len(self.each), "each": self.each}


def repeat(tool, case, crowd, cost, base, programs):
    """One repetition of one tool."""
    hz = min(case.hz, tool.fastest)
    if tool.exact:  # it says itself what its samples cost
        samples = max(LEAST, int(LONG[hz] * hz / (2 if case.processes >= 100 else 1)))
        work = work_folder(base)
        try:
            (work / "pids").write_text("\n".join(map(str, crowd.pids)))
            monitor = Monitor(tool.watch(crowd, hz, samples, work), work, str(work / "pids"))
            monitor.ended(samples / hz * 0.8)
            size = peak_size(monitor.pid)
            monitor.ended(samples / hz * 2)
            monitor.finish(None, case.grace)
            cost.add_exact(*tool.said_of_itself(work), size)
        finally:
            shutil.rmtree(work)
        return
    if tool.streams:
        cost.add(*watch_in_parts(tool, case, crowd, hz, base))
        return
    long = watch_crowd(tool, case, crowd, hz, LONG[hz], base, programs)
    short = watch_crowd(tool, case, crowd, hz, SHORT[hz], base, programs)
    cost.add(long, short)


def strangers(crowd):
    """Processes on the machine that are not of the crowd: some tools go through them all."""
    return sum(name.isdigit() for name in os.listdir("/proc")) - len(crowd.pids)


def measure_case(case, tools, repetitions, base, programs, progress=lambda text: None):
    """({tool: result}, how many other processes there were): everybody looks at the same processes, in turn."""
    costs, others = {tool.name: Cost() for tool in tools}, []
    with Crowd(case, programs) as crowd:
        for number in range(repetitions):
            for i in range(len(tools)):
                others.append(strangers(crowd))
                tool = tools[(i + number) % len(tools)]
                if tool.unable(case):
                    costs[tool.name].note = tool.unable(case)
                    continue
                progress(f"{case.processes:,} processes, {case.activity} active, {case.hz:g} Hz"
                         f"{f', {case.mib} MB each' if case.mib else ''}: {tool.name}, {number + 1} of {repetitions}")
                try:
                    repeat(tool, case, crowd, costs[tool.name], base, programs)
                except OSError as error:
                    costs[tool.name].note = str(error).replace(str(base), "")
    return {tool.name: costs[tool.name].result(min(case.hz, tool.fastest)) for tool in tools}, others
