# SPDX-License-Identifier: Apache-2.0
"""Findings: each rule where it must speak and where it must not, on real jobs where that can be
had, else on records that were changed."""
import random
import re
import sqlite3
import subprocess
import sys

import pytest

from proctor_cli import PROCTOR, query
from test_cgroup import BURN, make_group  # noqa: F401 (a fixture)
from test_gpu import FAKE, TWO, Gpu
from test_report import recorded, report

HOLD = "x = bytearray(96 << 20); import time; time.sleep(0.4)"


def model_of(proctor, path):
    [run] = report(proctor, path)["runs"]
    return run


def by_id(run):
    return {f["id"]: f for f in run["findings"]}


def findings_of(proctor, *words):
    path, _ = recorded(proctor, *words)
    return by_id(model_of(proctor, path))


# --- memory ---------------------------------------------------------------------------------------

def test_memory_near_its_limit_is_found(proctor):
    found = findings_of(proctor, "--memory-total", "105M", "python3", "-c", HOLD)
    finding = found["memory-near-limit"]
    assert finding["severity"] in ("warn", "bad") and finding["at"] is not None
    assert re.search(r"Memory reached [\d.]+ MiB, \d+ % of the limit 105 MiB", finding["text"])


def test_memory_far_from_its_limit_is_not_found(proctor):
    assert "memory-near-limit" not in findings_of(proctor, "--memory-total", "300M", "python3", "-c", HOLD)


def test_a_peak_between_two_samples_is_found_on_the_screen_and_in_the_report(proctor):
    """The kernel's mark knows of it."""
    words = ["-i", "10s", "--memory-total", "105M", "python3", "-c", "x = bytearray(96 << 20)"]
    done = proctor.run("-o", "between.proctor", *words)
    sentence = re.search(r"^  finding (Memory reached [\d.]+ MiB, \d+ % of the limit 105 MiB.)$", done.stderr, re.M)
    finding = by_id(model_of(proctor, proctor.work / "between.proctor"))["memory-near-limit"]
    assert finding["text"] == sentence[1] and finding["at"] is None
    done = proctor.run("--no-record", "--memory-total", "300M", *words[4:])
    assert "finding" not in done.stderr


def inside(proctor, group, script):
    """A run within a group: its record."""
    path = proctor.work / "inside.proctor"
    command = f'echo $$ > {group.procs}; exec "$0" run -q -i 50ms --force -o {path} {script}'
    subprocess.run(["sh", "-c", command, PROCTOR], timeout=120, **proctor.options({}))
    return path


@pytest.mark.parametrize("megabytes, killed", [(200, True), (5, False)])
def test_a_kill_for_want_of_memory(proctor, make_group, megabytes, killed):  # noqa: F811
    group = make_group("memory")
    limit = next(f for f in ("memory.max", "memory.limit_in_bytes") if (group.path / f).exists())
    (group.path / limit).write_text(str(60 << 20))
    path = inside(proctor, group, f"/usr/bin/python3 -c 'x = bytearray({megabytes} << 20)'")
    run = model_of(proctor, path)
    assert ("oom" in by_id(run)) == killed
    assert bool([e for e in run["events"] if e["kind"] == "oom" and e["severity"] == "bad"]) == killed
    if killed:
        first = run["findings"][0]
        assert first["id"] == "oom" and first["severity"] == "bad"
        assert "60.0 MiB" in first["text"] and first["text"].startswith("The job ran out of memory")


def shaped(path, bytes_at, seconds=7200, step=4):
    """In the place of a short run a longer one, whose memory is what a function says."""
    db = sqlite3.connect(path, isolation_level=None)
    for table in ("job_samples", "system_samples", "process_samples", "summary", "phases"):
        db.execute(f"DELETE FROM {table}")
    [marks] = db.execute("SELECT min(id) FROM mark_sets").fetchone()
    db.execute("UPDATE run SET interval = ?, about = json_set(about, '$.interval', ?)", (step, float(step)))
    db.execute("BEGIN")
    for i, t in enumerate(range(step, seconds + step, step)):
        db.execute("INSERT INTO job_samples (sample, elapsed, interval, marks, cpu_time_seconds, mem_rss_bytes)"
                   " VALUES (?, ?, ?, ?, ?, ?)", (i + 1, t * 10**9, step * 10**9, marks, 0.1 * t, bytes_at(t)))
    db.execute("COMMIT")
    db.close()


def noise():
    dice = random.Random(3)
    return lambda: dice.gauss(0, 20 << 20)


MIB = 1 << 20


def leak(rate, start=800):
    """`rate` MiB in a second above `start`, and noise."""
    more = noise()
    return lambda t: (start + rate * t) * MIB + more()


def test_memory_that_grows_is_found_with_its_pace(proctor):
    path, _ = recorded(proctor, "--memory-total", "4G", "true")
    shaped(path, leak(0.25))
    finding = by_id(model_of(proctor, path))["memory-grows"]
    assert finding["severity"] == "warn"
    words = re.fullmatch(r"Memory grows all the time, by ([\d.]+) MiB/h \(95 % sure: ([\d.]+) MiB/h to "
                         r"([\d.]+) MiB/h\); it meets the limit 4.00 GiB in 1 h \d+ m .*\.", finding["text"])
    slope, low, high = map(float, words.groups())
    assert low <= 900 <= high and abs(slope - 900) < 20 and high - low < 60


def test_growth_that_meets_no_limit_is_a_note(proctor):
    path, _ = recorded(proctor, "--memory-total", "900G", "true")
    shaped(path, leak(0.25))
    finding = by_id(model_of(proctor, path))["memory-grows"]
    assert finding["severity"] == "note" and "meets" not in finding["text"]


def flat(t, more=noise()):
    return 800 * MIB + more()


def loads(t, more=noise()):
    """All of it in the first third."""
    return min(t, 2400) / 2400 * 800 * MIB + more()


def saw(t, more=noise()):
    return (t % 900) * MIB + more()


def little(t, more=noise()):
    return (8000 + t / 100) * MIB + more()


@pytest.mark.parametrize("shape, seconds", [(flat, 7200), (loads, 7200), (saw, 7200), (little, 7200),
                                            (leak(20), 48)])
def test_memory_that_does_not_grow_is_not_found(proctor, shape, seconds):
    path, _ = recorded(proctor, "--memory-total", "4G", "true")
    shaped(path, shape, seconds)
    assert "memory-grows" not in by_id(model_of(proctor, path))


# --- the CPU --------------------------------------------------------------------------------------

def test_cores_that_were_not_used_are_found(proctor):
    found = findings_of(proctor, "--cpu-total", "64", "sleep", "1.2")
    assert "64.0 cores" in found["wasted"]["text"]
    assert "wasted" not in findings_of(proctor, "--cpu-total", "2", "sleep", "1.2")


@pytest.mark.parametrize("share", [0.2, None])
def test_a_quota_is_found_and_an_event(proctor, make_group, share):  # noqa: F811
    group = make_group("cpu")
    quota = next(f for f in ("cpu.max", "cpu.cfs_quota_us") if (group.path / f).exists())
    if share:
        part = int(share * 100000)
        (group.path / quota).write_text(f"{part} 100000" if quota == "cpu.max" else str(part))
    path = inside(proctor, group, f"sh -c '{BURN}; {BURN}; sleep 1'")
    run = model_of(proctor, path)
    events = [e for e in run["events"] if e["kind"] == "throttled"]
    [throttled] = query(path, "SELECT max(cpu_throttled_seconds) FROM job_samples")
    if not share:
        assert throttled == 0 and not events and "throttled" not in by_id(run)
        return
    assert throttled > 0.05 and "CPU quota" in by_id(run)["throttled"]["text"]
    [event] = events
    assert event["severity"] == "warn" and event["text"].startswith("the CPU quota kept the job from running for ")
    [grown] = query(path, "SELECT min(elapsed) / 1e9 FROM job_samples WHERE cpu_throttled_seconds > 0")
    assert 0 <= event["at"] <= grown
    assert [e["at"] for e in run["events"]] == sorted(e["at"] for e in run["events"])


def test_two_times_under_a_quota_are_two_events(proctor):
    path, _ = recorded(proctor, "true")
    shaped(path, flat)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("UPDATE job_samples SET cpu_throttled_seconds = min(max(elapsed / 1e9 - 1000, 0), 100) / 2 +"
               " min(max(elapsed / 1e9 - 5000, 0), 400) / 4")
    db.close()
    events = [e for e in model_of(proctor, path)["events"] if e["kind"] == "throttled"]
    assert [e["at"] for e in events] == [1000, 5000]
    assert "for 50.0 s, until 18 m 20 s" in events[0]["text"] and "for 1 m 40 s" in events[1]["text"]


CROWD = """
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for i in range(2):
    if os.fork() == 0:
        break
end = time.monotonic() + 2
while time.monotonic() < end:
    pass
"""


def test_waiting_for_a_cpu_is_found(proctor):
    """Three processes on one CPU: each waits for two thirds of the time."""
    path, done = recorded(proctor, sys.executable, "-c", CROWD)
    assert done.returncode == 0, done.stderr
    finding = by_id(model_of(proctor, path))["cpu-delay"]
    assert finding["severity"] == "warn" and "waited for a CPU for at least" in finding["text"]
    [waited] = query(path, "SELECT max(sched_delay_seconds) FROM job_samples")
    assert waited > 1.5


def test_who_sleeps_does_not_wait_for_a_cpu(proctor):
    assert "cpu-delay" not in findings_of(proctor, "sleep", "1.2")


# --- descriptors ----------------------------------------------------------------------------------

OPEN = "import time; f = [open('/dev/null') for i in range({})]; time.sleep(0.5)"


@pytest.mark.parametrize("count, near", [(56, True), (20, False)])
def test_descriptors_near_the_limit(proctor, count, near):
    """That of the process, which it was given within the job."""
    path, done = recorded(proctor, "sh", "-c", 'ulimit -n 64; exec python3 -c "$0"', OPEN.format(count))
    assert done.returncode == 0, done.stderr
    found = by_id(model_of(proctor, path))
    assert ("descriptors-near-limit" in found) == near
    if near:
        finding = found["descriptors-near-limit"]
        words = re.match(r"Process (\d+) \(python3\) had (\d+) of the 64 file descriptors", finding["text"])
        [(pid, most)] = query(path, "SELECT e.pid, max(p.fds) FROM process_samples p JOIN entities e ON e.id = p.entity")
        assert [int(w) for w in words.groups()] == [pid, most] and most >= 56 + 3
        assert finding["at"] > 0


# --- GPUs -----------------------------------------------------------------------------------------

@pytest.fixture
def gpu(proctor):
    assert (FAKE / "libnvidia-ml.so.1").exists(), "build with the tests"
    return Gpu(proctor)


@pytest.mark.parametrize("cores, starved", [(1.0, True), (6.0, False), (0.1, False)])
def test_one_core_busy_while_the_gpu_is_idle(gpu, proctor, cores, starved):
    """The GPU idles in the first half. What the CPU did there is put into the record: how busy one
    process really is depends on what else the machine does."""
    script = TWO.splitlines()[0] + "\nutil 0 0 0 1.2\nutil 0 90 1.2 99\n"
    gpu.run(script, "-i", "100ms", "-o", "g.proctor", "sleep", "2.4")
    path = proctor.work / "g.proctor"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("UPDATE job_samples SET cpu_usage_cores = ? WHERE cpu_usage_cores IS NOT NULL", (cores,))
    db.close()
    found = by_id(model_of(proctor, path))
    assert ("gpu-starved" in found) == starved
    if starved:
        share = re.match(r"For (\d+) % of the time .* one core was busy while no GPU was", found["gpu-starved"]["text"])
        assert 25 <= int(share[1]) <= 75
    assert "idle" in found["gpu-idle"]["text"]


def test_a_gpu_that_never_worked_is_idle_and_not_starved(gpu, proctor):
    gpu.run(TWO + "util 0 0 0 99\nutil 1 0 0 99\n", "-i", "100ms", "-o", "g.proctor", "sleep", "1.5")
    path = proctor.work / "g.proctor"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("UPDATE job_samples SET cpu_usage_cores = 1 WHERE cpu_usage_cores IS NOT NULL")
    db.close()
    found = by_id(model_of(proctor, path))
    assert "gpu-starved" not in found
    assert found["gpu-idle"]["text"] == "GPU 0 was idle 100 % of the time, GPU 1 100 %."


def test_a_busy_gpu_is_not_idle(gpu, proctor):
    gpu.run(TWO.splitlines()[0] + "\nutil 0 90 0 99\n", "-i", "100ms", "-o", "g.proctor", "sleep", "1.3")
    assert "gpu-idle" not in by_id(model_of(proctor, proctor.work / "g.proctor"))


def test_clocks_that_are_held_down_are_events(gpu, proctor):
    gpu.run(TWO + "set 0 reasons 4 0.3\n", "-i", "100ms", "-o", "g.proctor", "sleep", "1.5")
    run = model_of(proctor, proctor.work / "g.proctor")
    [event] = [e for e in run["events"] if e["kind"] == "throttled"]
    assert event["text"] == "gpu0: clocks are held down: power cap" and event["severity"] == "warn"
    assert event["at"] > 0


# --- by what the summary says ---------------------------------------------------------------------

def changed(proctor, statement):
    """Findings of a run whose summary has been changed."""
    path, _ = recorded(proctor, "sleep", "1.1")
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"UPDATE summary SET json = json_set(json, {statement})")
    db.close()
    [run] = report(proctor, path)["runs"]
    return {f["id"]: f for f in run["findings"]}


@pytest.mark.parametrize("name, much, little, evidence", [
    ("throttled", "'$.metrics.\"cpu.throttled\"', json('{\"total\": 0.4}')",
     "'$.metrics.\"cpu.throttled\"', json('{\"total\": 0.001}')", "400 ms"),
    ("swap", "'$.metrics.\"mem.swap\"', json('{\"peak\": 50000000, \"at\": 0.5}')",
     "'$.metrics.\"mem.swap\"', json('{\"peak\": 0, \"at\": 0.5}')", "47.7 MiB"),
    ("io-stall", "'$.metrics.\"system.psi.io.full\"', json('{\"total\": 0.5}')",
     "'$.metrics.\"system.psi.io.full\"', json('{\"total\": 0.01}')", "waited for storage"),
    ("never-sampled", "'$.processes.never_sampled_least', 40",
     "'$.processes.never_sampled_least', 0", "At least 40"),
])
def test_what_the_summary_shows_is_found(proctor, name, much, little, evidence):
    assert evidence in changed(proctor, much)[name]["text"]
    assert name not in changed(proctor, little)


def test_at_most_three_findings_the_worst_first(proctor):
    found = changed(proctor, "'$.findings', json('[\"memory ran out\"]'),"
                             "'$.metrics.\"cpu.throttled\"', json('{\"total\": 0.4}'),"
                             "'$.metrics.\"mem.swap\"', json('{\"peak\": 50000000}'),"
                             "'$.processes.never_sampled_least', 40")
    assert list(found) == ["killed", "throttled", "swap"]
    assert found["killed"]["text"] == "Memory ran out."


