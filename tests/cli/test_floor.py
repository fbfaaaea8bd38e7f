# SPDX-License-Identifier: Apache-2.0
"""What recording costs: processes that do not run, start-up, memory, descriptors, writes."""
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from benchmark import startup  # noqa: E402
from proctor_cli import SANITIZED, SLACK, numbers, read_csv, skip_visibly, wait_until

READER_COSTS = 1.5  # ms of CPU where nobody disturbs, rounded up: "Starting" in doc/performance.md
IDLERS = "for i in $(seq {}); do sleep 60 & done; echo ready; wait"


def test_starting_costs_little(proctor):
    """At most 3 ms of CPU more than the job alone, in the median. Where one that reads such files as we do takes longer
    than on a machine that nobody disturbs, so may we."""
    sanitizer = {name: text for name, text in proctor.env.items() if name.endswith("SAN_OPTIONS")}
    found = startup.startup(proctor.path, 61, **sanitizer)
    alone, reader, ours, _ = found.values()
    over = statistics.median(b - a for a, b in zip(alone, ours))
    slow = max(1, statistics.median(reader) / READER_COSTS)
    assert over <= startup.MOST * slow * (20 if SANITIZED else 1), f"{over:.2f} ms, {slow:.2f} times as slow"


UNTOLD = ("/net/dev>", "/diskstats>", "/sockstat>", "/proc/stat>",
          *(["/pressure/cpu>"] if Path("/proc/pressure/cpu").exists() else []))


@pytest.mark.parametrize("words, told", [((), False), (("--match", "x"), False), (("--summary", "s.json"), True),
                                         (("--csv", "a.csv"), True), (("-v",), True), (("--textfile", "x.prom"), True),
                                         (("PROCTOR_SUMMARY",), True)])
def test_what_nobody_is_told_is_not_read(proctor, words, told):
    """Without any output there are the lines at the end, which say nothing of the machine or the network."""
    if not shutil.which("strace"):
        skip_visibly("there is no strace")
    done = subprocess.run(["strace", "-y", "-o", "calls", "-e", "trace=pread64,openat,newfstatat", proctor.path, "run",
                           "--no-record", *(w for w in words if w[0] == "-" or w[0].islower()), "true"],
                          capture_output=True, text=True, timeout=60, **proctor.options({"env": {
                              "ASAN_OPTIONS": "detect_leaks=0", **{w: "v.json" for w in words if w[0].isupper()}}}))
    if "ptrace" in done.stderr:
        skip_visibly("strace may not attach")
    calls = (proctor.work / "calls").read_text()
    assert done.returncode == 0 and "/schedstat>" in calls, done.stderr
    assert [name in calls for name in UNTOLD] == [told] * len(UNTOLD)


def test_the_lines_are_the_same_whoever_is_told(proctor):
    def words(*options):
        done = proctor("run", *options, "/usr/bin/python3", "-c", "import time; time.sleep(0.1)")
        return [word for word in re.findall(r"[A-Za-z]{3,}", done.stderr) if word not in ("KiB", "MiB", "GiB")]
    assert words("--no-record") == words("-o", "r.proctor") == words("--no-record", "--summary", "s.json")
    assert "memory" in words("--no-record")


def test_a_small_job_takes_little_memory(proctor):
    """At most 4 MiB resident with --no-record, to the end, whoever says so."""
    process = proctor.start("run", "-q", "--no-record", "-i", "10ms", "--summary", proctor.summary_file, "sh", "-c",
                            "sleep 1.2 & sleep 1.2; wait")
    time.sleep(1)
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert process.wait(20) == 0
    most = 4 << 20 if not SANITIZED else 80 << 20
    while_it_ran, at_the_end = int(status.split("VmHWM:")[1].split()[0]) << 10, proctor.summary()["self"]["rss_peak_bytes"]
    assert while_it_ran <= at_the_end <= most, (while_it_ran, at_the_end)


def idle_job(proctor, count, *options, record=False):
    place = ["-o", "a.proctor"] if record else ["--no-record", "--no-pss"]
    process = proctor.start("run", "-q", *place, "--csv", "a.csv", *options, "--",
                            "sh", "-c", IDLERS.format(count))
    assert process.stdout.readline() == b"ready\n"
    return process


def traced(process, seconds, calls, *options):
    """Lines of strace over some seconds of a running command."""
    if not shutil.which("strace"):
        skip_visibly("there is no strace")
    out = subprocess.run(["timeout", "-s", "INT", str(seconds), "strace", "-f", *options, "-e", f"trace={calls}",
                          "-p", str(process.pid)], capture_output=True, text=True, timeout=60).stderr
    if "Operation not permitted" in out:
        skip_visibly("strace may not attach")
    return out.splitlines()


def test_who_does_not_run_is_not_read(proctor):
    """Of 50 sleeping processes at 10 Hz, no more than one file in six is read, and what is dear of the machine only
    every four seconds."""
    process = idle_job(proctor, 50, "-i", "100ms")
    time.sleep(3)
    before = len(read_csv(proctor.work / "a.csv"))
    lines = traced(process, 3, "pread64,openat,fstatfs", "-y")
    ticks = len(read_csv(proctor.work / "a.csv")) - before
    of_processes = [line for line in lines if re.search(r"pread64\(\d+</proc/\d+/(stat|statm|io|status)>", line)]
    process.terminate()
    process.wait(20)
    assert ticks >= 10 and len(lines) > ticks
    loadavg = [line.partition("(")[0].split()[-1] for line in lines if "/loadavg" in line]
    assert set(loadavg) == {"pread64"}, "whether somebody forked is asked of a file that is held"
    assert len(loadavg) <= ticks * 2 + 4, (len(loadavg), ticks)
    assert len(of_processes) < ticks * 50 * 3 / 6, (len(of_processes), ticks)
    spaces = Counter(line.partition("fstatfs(")[2].partition("<")[2].partition(">")[0] for line in lines
                     if "fstatfs(" in line)
    assert all(count == 1 for count in spaces.values()), spaces


def test_one_write_for_each_output_and_sample(proctor):
    """From a thread of its own; and no fork, no thread, no memory from the kernel for a sample."""
    process = idle_job(proctor, 2, "-i", "50ms", "--csv", "b.csv", "--jsonl", "c.jsonl")
    time.sleep(1.5)
    before = len(read_csv(proctor.work / "a.csv"))
    calls = "write,writev,pwrite64,clone,clone3,fork,vfork,brk,mmap,mremap"
    lines = traced(process, 2, calls, "-y")
    samples = len(read_csv(proctor.work / "a.csv")) - before
    process.terminate()
    process.wait(20)
    writes = {name: [line for line in lines if f"/{name}>" in line] for name in ("a.csv", "b.csv", "c.jsonl")}
    assert samples >= 10
    for name, found in writes.items():
        assert abs(len(found) - samples) <= 3, (name, len(found), samples)
    writers = {int(line.split("]")[0].split()[1]) for found in writes.values() for line in found
               if line.startswith("[pid ")}
    assert len(writers) == 1 and process.pid not in writers, (writers, process.pid)  # the sampler does not write
    others = [line for line in lines if re.search(r"(clone3?|v?fork|brk|mmap|mremap)\(", line)]
    assert not others, others


def test_the_run_file_is_written_beside_the_sampler(proctor):
    """A transaction of SQLite is several writes; the thread that samples makes none of them, and nobody starts another
    thread or process for a sample, of PSS neither."""
    process = idle_job(proctor, 2, "-i", "50ms", "--processes", record=True)
    time.sleep(1.5)
    lines = traced(process, 2, "write,writev,pwrite64,fsync,fdatasync,clone,clone3,fork,vfork", "-y")
    process.terminate()
    process.wait(20)
    assert not [line for line in lines if re.search(r"(clone3?|v?fork)\(", line)]
    pid = re.compile(r"\[pid +(\d+)\]|")  # whoever is not named is the one that was asked for
    who = {name: {int(pid.match(line)[1] or process.pid) for line in lines if name in line}
           for name in (".proctor-wal>", "a.processes.csv>")}
    assert all(len(pids) == 1 for pids in who.values()), who
    assert len(set().union(*who.values())) == 1 and process.pid not in set().union(*who.values()), who
    rows, samples = (sum(name in line for line in lines) for name in ("a.processes.csv>", "/a.csv>"))
    assert samples >= 10 and abs(rows - samples) <= 1, "its rows of all processes go in one write"


BIG = """
import mmap, time
m = mmap.mmap(-1, {0} << 20)
m.madvise(mmap.MADV_NOHUGEPAGE)
m[::4096] = bytes(({0} << 20) // 4096)
time.sleep(3)
"""


@pytest.mark.parametrize("mib, waits", [(50, False), (2500, True)])
def test_a_large_process_is_not_held_up_again(proctor, mib, waits):
    """Reading its PSS takes more than 10 ms: that is done once, and not again for a minute, though there is budget."""
    available = int(Path("/proc/meminfo").read_text().partition("MemAvailable:")[2].split()[0]) >> 10
    if available < 2 * mib:
        skip_visibly(f"{mib} MiB of memory are too much of {available}")
    done = proctor.run("-q", "-i", "100ms", "--no-record", "--budget", "100%", "--csv", "a.csv", "--",
                       "/usr/bin/python3", "-c", BIG.format(mib))
    assert done.returncode == 0, done.stderr
    rows = [row for row in read_csv(proctor.work / "a.csv")[:-1] if float(row["mem_rss_bytes"] or 0) > (mib + 4) << 20]
    ages, sizes = numbers(rows, "mem_pss_age_seconds"), numbers(rows, "mem_pss_bytes")
    assert len(rows) >= 15 and len(ages) == len(sizes) == len(rows) and min(sizes) > 0.95 * (mib << 20)
    assert (max(ages) > 1.5) == waits, ages
    assert sum(b < a for a, b in zip(ages, ages[1:])) <= 1 or not waits, ages


BUSY = BIG.replace("time.sleep(3)", "for _ in range(300): time.sleep(0.01)")


def share_readings(proctor, percent):
    """(how often PSS was read, samples) of 150 MiB in small pages: that takes some milliseconds, more than a sample's
    part of either budget, and less than the 10 ms after which it would be read once a minute."""
    _, summary = proctor.recorded("-i", "50ms", "--no-record", "--budget", f"{percent}%", "--csv", "a.csv", "--",
                                  "/usr/bin/python3", "-c", BUSY.format(150))
    rows = [row for row in read_csv(proctor.work / "a.csv") if float(row["mem_rss_bytes"] or 0) > 150 << 20]
    ages = numbers(rows, "mem_pss_age_seconds")
    assert len(ages) == len(rows) >= 30
    assert summary["self"]["cpu_ratio"] < 1.5 * percent / 100 * SLACK, summary["self"]
    return sum(age < 0.02 for age in ages), len(ages)


def test_what_the_budget_leaves_is_for_pss(proctor):
    """Not in each sample, but as often as there is budget. Of the small one, all else may leave nothing."""
    few, samples = share_readings(proctor, 1)
    assert few <= samples / 2
    many, _ = share_readings(proctor, 2)
    assert many > few and many >= (1 if SANITIZED else 5), (few, many)


def held(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_no_more_descriptors_than_there_may_be(proctor):
    """Under a low limit many processes are recorded all the same."""
    limit = 64

    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    process = proctor.start("run", "-q", "-i", "50ms", "--no-pss", "--csv", "a.csv", "--summary", proctor.summary_file,
                            "sh", "-c", IDLERS.format(80).replace("sleep 60", "sleep 1.5"), preexec_fn=lower)
    assert process.stdout.readline() == b"ready\n"
    most = 0
    while process.poll() is None:
        try:
            most = max(most, held(process.pid))
        except OSError:
            break
        time.sleep(0.05)
    assert process.wait(20) == 0
    assert 8 < most <= limit
    summary = proctor.summary()
    assert not [e for e in summary["events"] if e["type"] == "problem"]
    rows = read_csv(proctor.work / "a.csv")
    assert max(numbers(rows, "procs")) == 81
    assert min(numbers(rows[5:-5], "mem_rss_bytes")) > 81 << 16, "all of them count at each sample"


def test_no_more_than_six_thousand_descriptors(proctor):
    """Whatever the limit: a held file costs the kernel 5 KB."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < 8000:
        skip_visibly(f"the limit of descriptors is {hard}")
    source = proctor.folder / "many.c"
    source.write_text('#include <stdio.h>\n#include <unistd.h>\nint main(void)\n{ for (int i = 0; i < 2300; i++) '
                      'if (fork() == 0) { alarm(40); pause(); return 0; }\n puts("ready"); fflush(stdout); '
                      'sleep(40); }\n')
    subprocess.run(["cc", "-o", proctor.folder / "many", source], check=True)
    process = proctor.start("run", "-q", "-i", "200ms", "--no-pss", "--no-record", "--csv", "a.csv",
                            proctor.folder / "many")
    assert process.stdout.readline() == b"ready\n"
    wait_until(lambda: max(numbers(read_csv(proctor.work / "a.csv"), "procs"), default=0) == 2301, "all to be found")
    time.sleep(1)
    assert 5000 < held(process.pid) <= 6000 + 100
    job = proctor.job_of(process)
    process.terminate()
    process.wait(40)
    subprocess.run(["pkill", "-KILL", "-P", str(job)], check=False)


def test_a_last_pid_that_somebody_made_up(proctor):
    """A container's file system shows its own /proc/loadavg: new processes are found all the same."""
    fake = proctor.folder / "loadavg"
    fake.write_text("0.20 0.18 0.12 1/80 11206\n")
    run = " ".join(map(str, proctor.arguments("run", "-q", "-i", "50ms", "--csv", "a.csv", "--", "sh", "-c",
                                              "'sleep 0.5; sleep 0.5; sleep 0.5'")))
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                           f"mount --bind {fake} /proc/loadavg && cat /proc/loadavg && {run}"],
                          capture_output=True, text=True, timeout=60, **proctor.options({}))
    if "unshare" in done.stderr or "mount" in done.stderr:
        skip_visibly(done.stderr.strip())
    assert done.returncode == 0 and "11206" in done.stdout, done.stderr
    rows = read_csv(proctor.work / "a.csv")
    assert max(numbers(rows, "procs_started")) == 4


def test_forks_do_not_make_the_others_dear(proctor):
    """A steady job pays little for what others on the machine start."""
    process = proctor.start("run", "-q", "--no-record", "--no-pss", "-i", "50ms", "--csv", "a.csv", "sleep", "60")
    forks = proctor.other(["sh", "-c", "while :; do /bin/true; sleep 0.02; done"])
    time.sleep(1.5)
    before = len(read_csv(proctor.work / "a.csv"))
    lines = traced(process, 3, "getdents64,pread64", "-y")
    samples = len(read_csv(proctor.work / "a.csv")) - before
    forks.kill()
    process.terminate()
    process.wait(20)
    assert samples >= 10 and any("/loadavg>" in line for line in lines), "it was asked whether somebody forked"
    assert len([line for line in lines if "getdents64(" in line]) <= 8 * SLACK, "not at each sample"
