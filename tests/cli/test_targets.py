# SPDX-License-Identifier: Apache-2.0
"""Groups, names and the whole machine as targets: who counts, from when on, and how much."""
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from proctor_cli import (PATIENCE, SLACK, finish, is_alive, numbers, read_csv, read_line, said,
                         skip_visibly, state_of, wait_until)

PYTHON = "/usr/bin/python3"
# Burns so many seconds of CPU, says in a file what the kernel says that it used, and stays until
# it has been sampled.
TOOL = """
import os, resource, sys, time
while time.process_time() < float(sys.argv[1]):
    pass
time.sleep(0.1)
used = resource.getrusage(resource.RUSAGE_SELF)
with open(sys.argv[2], "w") as f:
    f.write(str(used.ru_utime + used.ru_stime))
time.sleep({})
""".format(0.3 * SLACK)
# A leader of a group, and what it is told line by line on standard input.
LEADER = """
import os, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
def say(text):
    os.write(1, text.encode() + b"\\n")
def listen():
    sys.stdin.readline()
"""


def script(proctor, name, text=TOOL, shebang=False):
    """A program in the folder of the test."""
    path = proctor.work / name
    path.write_text((f"#!{PYTHON}\n" if shebang else "") + text)
    path.chmod(0o755)
    return path


def rusage(proctor, *names):
    """What tools have said that they used, all together."""
    return sum(float((proctor.work / name).read_text()) for name in names)


def watching(proctor, *words, **options):
    """Starts proctor, and waits until it records."""
    process = proctor.start(words[0], "-i", "20ms", "--summary", proctor.summary_file, "--csv",
                            "a.csv", *words[1:], **options)
    path = proctor.work / "a.csv"
    wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") >= 2, "the first sample")
    return process


def end(proctor, process, sig=signal.SIGTERM):
    os.kill(process.pid, sig)
    status, _, err = finish(process)
    assert status == 0, err
    return proctor.summary()


def leader(proctor, text, **options):
    """A python program that leads a group of its own, and has said that it is there."""
    job = proctor.other([PYTHON, "-c", LEADER + text], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, start_new_session=True, **options)
    assert read_line(job.stdout.fileno()) == "here"
    return job


def tell(job, answer=None):
    job.stdin.write(b"\n")
    job.stdin.flush()
    if answer:
        assert read_line(job.stdout.fileno()) == answer


def cpu_seconds(pid):
    """What a process has used by its stat file."""
    text = Path(f"/proc/{pid}/stat").read_text()
    user, system = text[text.rindex(")") + 2:].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def last_row(proctor):
    """The latest whole row of the CSV file."""
    return read_csv(proctor.work / "a.csv")[-1]


def wait_for_procs(proctor, count):
    path = proctor.work / "a.csv"

    def arrived():
        lines = path.read_text().splitlines(keepends=True)
        names, row = lines[0].strip().split(","), lines[-1]
        return row.endswith("\n") and \
            dict(zip(names, row.strip().split(","))).get("procs") == str(count)
    wait_until(arrived, f"{count} members")


def by_name(summary, name):
    (match,) = [m for m in summary["matches"] if m["name"] == name]
    return match


def cpu_of(match):
    return match["metrics"]["cpu.time"]["total"]


def close_to(truth):
    """Within 5 %, and what a sample of 20 ms may miss of each."""
    return pytest.approx(truth, rel=0.05, abs=0.02)


# --- groups ---------------------------------------------------------------------------------------

def test_a_pipeline_in_a_group(proctor):
    """Three tools and their shell: all of their use, and the end with the last of them."""
    tool = script(proctor, "tool.py")
    line = " | ".join(f"{PYTHON} {tool} 0.4 used{i}" for i in range(3))
    shell = proctor.other(["sh", "-c", f"read go; {line}; :"], stdin=subprocess.PIPE,
                          start_new_session=True, cwd=proctor.work)
    process = watching(proctor, "attach", "--group", shell.pid)
    shell.stdin.write(b"\n")
    shell.stdin.close()
    status, _, err = finish(process, 3 * PATIENCE)
    ended = time.monotonic()
    assert status == 0
    shell.wait()
    assert time.monotonic() - ended < 1 * SLACK
    summary = proctor.summary()
    truth = rusage(proctor, "used0", "used1", "used2")
    assert truth > 1.2
    assert summary["metrics"]["cpu.time"]["total"] == pytest.approx(truth, rel=0.05, abs=0.05)
    assert summary["metrics"]["procs"]["peak"] == 4
    assert summary["run"]["target"] == f"group {shell.pid}" and summary["run"]["command"] == []
    assert summary["exit"] == {"code": None, "signal": None}
    assert f"group {shell.pid}" in err and "ended" in err


def test_a_group_ends_though_nobody_waits_for_its_members(proctor):
    job = proctor.other(["sleep", "0.5"], start_new_session=True)
    process = watching(proctor, "attach", "-q", "--group", job.pid)
    assert process.wait(PATIENCE) == 0
    assert state_of(job.pid) == "Z"


def test_a_group_outlives_its_leader(proctor):
    """The number of the group is that of a process that has ended and was waited for."""
    job = proctor.other(["sh", "-c", "sleep 1.5 & echo $!; read x"], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, start_new_session=True)
    sleeper = int(read_line(job.stdout.fileno()))
    process = watching(proctor, "attach", "-q", "--group", job.pid)
    job.stdin.close()
    job.wait()
    assert is_alive(sleeper)
    again = proctor("attach", "-q", "--duration", "50ms", "--group", job.pid)
    assert again.returncode == 0 and process.poll() is None
    assert process.wait(PATIENCE) == 0
    assert not is_alive(sleeper)
    assert proctor.summary()["metrics"]["procs"]["peak"] == 2


@pytest.mark.parametrize("waits", [False, True], ids=["alone", "a member waits for it"])
def test_who_starts_a_session_of_its_own_leaves_the_group(proctor, waits):
    """Where a member waits for it the kernel hands all of its use to that member."""
    job = leader(proctor, f"""
r, w = os.pipe()
say("here")
listen()
child = os.fork()
if child == 0:
    os.close(w)
    burn(0.3)
    say("born")
    os.read(r, 1)
    os.setsid()
    say("left")
    os.read(r, 1)
    burn(0.6)
    say("done")
    time.sleep({0.2 * SLACK} if {waits} else 99)
    os._exit(0)
os.close(r)
for _ in range(2):
    listen()
    os.write(w, b"x")
if {waits}:
    os.wait()
    say("waited")
listen()
""")
    process = watching(proctor, "attach", "--group", job.pid)
    tell(job, "born")
    wait_for_procs(proctor, 2)
    tell(job, "left")
    wait_for_procs(proctor, 1)
    before = float(last_row(proctor)["cpu_time_seconds"])
    assert before == pytest.approx(0.3, abs=0.1)
    tell(job, "done")
    assert float(last_row(proctor)["cpu_time_seconds"]) == pytest.approx(before, abs=0.02)
    if waits:
        assert read_line(job.stdout.fileno()) == "waited"
    time.sleep(0.2 * SLACK)
    summary = end(proctor, process)
    total = summary["metrics"]["cpu.time"]["total"]
    assert total == pytest.approx(0.9 if waits else before, abs=0.08)
    assert "1 left the job and went on" in summary["accounting"]["cpu"]["note"]
    assert summary["metrics"]["procs"]["peak"] == 2


def test_who_joins_a_group_late_counts_from_then(proctor):
    """It is forked while we record, works in a group of its own, and joins."""
    job = leader(proctor, """
r, w = os.pipe()
say("here")
listen()
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    burn(0.3)
    os.setpgid(0, os.getppid())
    say("joined")
    os.read(r, 1)
    burn(0.25)
    say("done")
    time.sleep(99)
listen()
os.write(w, b"x")
listen()
""")
    process = watching(proctor, "attach", "--group", job.pid)
    own = cpu_seconds(job.pid)
    tell(job, "joined")
    wait_for_procs(proctor, 2)
    before = float(last_row(proctor)["cpu_time_seconds"])
    tell(job, "done")
    time.sleep(0.2 * SLACK)
    summary = end(proctor, process)
    assert summary["metrics"]["cpu.time"]["total"] - before == pytest.approx(0.25, abs=0.05)
    assert summary["accounting"]["cpu"]["before"] == pytest.approx(own + 0.3, abs=0.1)
    assert summary["metrics"]["procs.started"]["total"] == 2


def test_time_away_from_the_group_does_not_count(proctor):
    job = leader(proctor, """
r, w = os.pipe()
say("here")
listen()
child = os.fork()
if child == 0:
    burn(0.1)
    say("born")
    os.read(r, 1)
    os.setpgid(0, 0)
    say("left")
    os.read(r, 1)
    burn(0.5)
    os.setpgid(0, os.getppid())
    say("back")
    os.read(r, 1)
    burn(0.2)
    say("done")
    time.sleep(99)
for _ in range(3):
    listen()
    os.write(w, b"x")
listen()
""")
    process = watching(proctor, "attach", "--group", job.pid)
    tell(job, "born")
    wait_for_procs(proctor, 2)
    tell(job, "left")
    wait_for_procs(proctor, 1)
    tell(job, "back")
    wait_for_procs(proctor, 2)
    tell(job, "done")
    time.sleep(0.2 * SLACK)
    summary = end(proctor, process)
    assert summary["metrics"]["cpu.time"]["total"] == pytest.approx(0.3, abs=0.1)
    assert summary["accounting"]["cpu"]["before"] >= 0.45
    assert summary["processes"]["seen"] == 2


def test_1_without_such_a_group(proctor):
    job = proctor.other(["sleep", "77"])  # in our group, and the leader of none
    for group in (job.pid, 4_000_000, 2 ** 31 - 1):
        done = proctor("attach", "--summary", proctor.summary_file, "--group", group)
        assert done.returncode == 1
        assert len(said(done.stderr)) == 1 and f"process group {group}" in done.stderr
        assert "ps -eo pgid,comm" in done.stderr
    assert not list(proctor.folder.glob("summary*"))


def test_we_are_no_member_of_the_group_we_are_in(proctor):
    shell = proctor.other(["sh", "-c", f"{proctor.path} attach -q -i 20ms --duration 0.3 --csv "
                           f"{proctor.work}/a.csv --processes --summary {proctor.summary_file} "
                           "--group $$; :"], start_new_session=True, **proctor.options({}))
    assert shell.wait(PATIENCE) == 0
    assert {row["command"] for row in read_csv(proctor.work / "a.processes.csv")} == {"sh"}
    assert proctor.summary()["metrics"]["procs"]["peak"] == 1


# --- names inside a job ---------------------------------------------------------------------------

def test_two_tools_of_a_job_and_those_who_mention_them(proctor, jobs):
    """A Python script, a script with #!, and a program: what each has used. An editor, a shell and
    a Python program that have the name as an argument are not counted, nor is the tool elsewhere."""
    script(proctor, "alpha.py")
    script(proctor, "beta-of-a-long-name", shebang=True)
    outside = proctor.other([PYTHON, proctor.work / "alpha.py", "99", "outside"])
    job = f"""
{PYTHON} -u alpha.py 0.5 a1 &
{PYTHON} -W ignore alpha.py 0.3 a2 &
./beta-of-a-long-name 0.4 b1 &
{PYTHON} -c 'import time
while time.process_time() < 0.3: pass' alpha.py beta-of-a-long-name &
tail -f alpha.py beta-of-a-long-name >/dev/null & tail=$!
sh -c 'sleep 0.3; :' alpha.py &
{PYTHON} - alpha.py <<'END' &
import time
time.sleep(0.3)
END
sleep 0.2
wait %1 %2 %3 %4
kill $tail
"""
    done, summary = proctor.recorded("-i", "20ms", "--match", "alpha=^alpha[.]py$", "--match",
                                     "^beta-of-a-long", "--match", "none=^nosuchtool$", "--match",
                                     "again=alpha", "bash", "-c", job)
    outside.kill()
    assert done.returncode == 0, done.stderr
    assert [m["name"] for m in summary["matches"]] == ["alpha", "^beta-of-a-long", "none", "again"]
    alpha, beta, none, again = summary["matches"]
    assert cpu_of(alpha) == close_to(rusage(proctor, "a1", "a2"))
    assert cpu_of(beta) == close_to(rusage(proctor, "b1"))
    assert alpha["instances"] == 2 and beta["instances"] == 1
    for match in (none, again):  # the first that matches has it
        assert (match["instances"], match["samples"], match["metrics"]) == (0, 0, {})
        assert match["first_seen"] is match["last_seen"] is match["duration"] is None
    total = summary["metrics"]["cpu.time"]["total"]
    assert total > cpu_of(alpha) + cpu_of(beta) + 0.25
    assert summary["accounting"]["cpu"]["complete"] is True


def test_what_is_said_of_a_match(proctor):
    """Two processes of 30 and 60 MB: the sum at its peak, and the largest of them."""
    text = "import sys, time; b = bytearray(int(sys.argv[1])); time.sleep(0.6)"
    script(proctor, "memory.py", text)
    job = f"{PYTHON} memory.py 30000000 & {PYTHON} memory.py 60000000 & wait; sleep 0.3"
    done, summary = proctor.recorded("-i", "20ms", "--budget", "1000%", "--match",
                                     "m=^memory[.]py$", "sh", "-c", job)
    match = by_name(summary, "m")
    rss, threads = match["metrics"]["mem.rss"], match["metrics"]["threads"]
    assert set(rss) >= {"peak", "mean", "min", "last", "at", "largest"}
    assert 90e6 <= rss["peak"] < 130e6 and 60e6 <= rss["largest"] < 80e6
    assert 0 < rss["min"] <= rss["last"] <= rss["peak"] and 0 < rss["at"] < 2 * SLACK
    assert rss["largest"] < rss["mean"] <= rss["peak"]  # of when there were some
    assert (threads["peak"], threads["largest"]) == (2, 1)
    assert set(match["metrics"]["cpu.time"]) == {"total"}
    assert 2 * 5 <= match["samples"] <= 2 * summary["samples"]["taken"]
    assert rss["peak"] < summary["metrics"]["mem.rss"]["peak"]


def test_all_columns_of_a_table_by_name(proctor):
    """Instances, samples, peaks and means of one and of all, CPU time in its parts, duration: of two
    processes that come after another one, and of which the second comes half-way."""
    script(proctor, "tool.py", "import os, resource, sys, time\n"
           "memory, begun = bytearray(int(sys.argv[1])), time.time()\n"
           "while time.process_time() < 0.3: os.getppid() if sys.argv[2] == 'system' else sum(range(1000))\n"
           "while time.time() < begun + 1: time.sleep(0.01)\n"
           "r = resource.getrusage(resource.RUSAGE_SELF)\n"
           "open('used' + sys.argv[2], 'w').write(f'{r.ru_utime} {r.ru_stime} {begun} {time.time()}')")
    job = (f"sleep 0.5; {PYTHON} tool.py 40000000 user & sleep 0.5; {PYTHON} tool.py 80000000 system & wait; sleep 0.4")
    _, summary = proctor.recorded("-i", "20ms", "--budget", "1000%", "--match", "tool=^tool[.]py$", "sh", "-c", job)
    match = by_name(summary, "tool")
    metrics = match["metrics"]
    used = [[float(v) for v in (proctor.work / f"used{name}").read_text().split()] for name in ("user", "system")]
    assert match["instances"] == 2
    # 0.5 s of one, 0.5 s of both, 0.5 s of the other.
    lasted = max(u[3] for u in used) - min(u[2] for u in used)  # without the start of the interpreter
    assert lasted - 0.1 * SLACK < match["duration"] < lasted + 0.6 * SLACK
    assert match["duration"] == pytest.approx(match["last_seen"] - match["first_seen"])
    assert match["first_seen"] >= 0.45 and match["last_seen"] < summary["run"]["duration"] - 0.2
    assert 0.5 * match["duration"] / 0.02 / SLACK < match["samples"] <= 2 * summary["samples"]["taken"]
    for part, key in enumerate(("cpu.user", "cpu.system")):
        assert metrics[key]["total"] == pytest.approx(sum(u[part] for u in used), abs=0.06 * SLACK), key
    assert cpu_of(match) == close_to(sum(u[0] + u[1] for u in used))
    for key in ("mem.rss", "mem.uss"):
        value = metrics[key]
        assert 1e6 < value["min"] < 80e6 < value["largest"] < 105e6 < 120e6 < value["peak"] < 160e6
        assert 52e6 < value["mean_each"] < 80e6, "of one"
        assert 1.1 * value["mean_each"] < value["mean"] < 115e6, "of all that were there"
        assert value["integral"] == pytest.approx(value["mean"] * match["duration"], rel=0.1)
        assert value["min"] <= value["p50"] <= value["p90"] <= value["p99"] <= value["peak"]
    each = cpu_of(match) / (match["samples"] * 0.02)
    if SLACK == 1:
        assert metrics["cpu.usage"]["mean_each"] == pytest.approx(each, rel=0.25)
    # One core, over an interval of 20 ms that whoever samples may have been late in by some.
    assert metrics["cpu.percent"]["largest"] <= 200 * SLACK


def test_workers_of_a_tool_count_once(proctor):
    """Forked workers have the name of their parent, which waits for them: the kernel adds their I/O
    to its own."""
    script(proctor, "pool.py", """
import os, time
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        fd = os.open("/dev/null", os.O_WRONLY)
        os.write(fd, bytes(1_000_000))
        time.sleep(0.4)
        os._exit(0)
for _ in range(4):
    os.wait()
fd = os.open("/dev/null", os.O_WRONLY)
os.write(fd, bytes(300_000))
time.sleep(0.3)
""")
    _, summary = proctor.recorded("-i", "20ms", "--match", "pool=^pool[.]py$", PYTHON, "pool.py")
    match = by_name(summary, "pool")
    assert match["instances"] == 5
    assert match["metrics"]["io.wchar"]["total"] == 4_300_000
    assert summary["metrics"]["io.wchar"]["total"] == 4_300_000


def test_own_use_without_children(proctor):
    """A shell waits for a tool: the shell has its own use alone."""
    script(proctor, "tool.py")
    done, summary = proctor.recorded("-i", "20ms", "--match", "shell=^wrapper$", "--match",
                                     "tool=^tool[.]py$", script(
                                         proctor, "wrapper",
                                         f"#!/bin/sh\n{PYTHON} tool.py 0.5 used\nsleep 0.2\n"))
    assert done.returncode == 0
    assert cpu_of(by_name(summary, "tool")) == close_to(rusage(proctor, "used"))
    assert cpu_of(by_name(summary, "shell")) < 0.1


def test_the_job_itself_counts_from_its_start(proctor):
    """However long the interval: its first sample knows it by its name."""
    script(proctor, "tool.py")
    done, summary = proctor.recorded("-i", "300ms", "--match", "^tool[.]py$", PYTHON, "tool.py",
                                     "0.9", "used")
    match = summary["matches"][0]
    assert match["instances"] == 1
    assert cpu_of(match) == close_to(rusage(proctor, "used"))
    assert "tool" in proctor.run("--match", "tool=^sleep$", "sleep", "0.05").stderr


def test_names_inside_the_tree_of_a_process(proctor):
    """attach PID --match: its descendants of that name, before and after; others are not."""
    script(proctor, "tool.py")
    shell = proctor.other(["sh", "-c", f"{PYTHON} tool.py 0.3 first & wait; read go; "
                           f"{PYTHON} tool.py 0.4 second; read go"], stdin=subprocess.PIPE,
                          cwd=proctor.work)
    other = proctor.other([PYTHON, proctor.work / "tool.py", "99", "other"])
    wait_until((proctor.work / "first").exists, "the first tool")
    process = watching(proctor, "attach", "--match", "tool=^tool[.]py$", shell.pid)
    wait_until(lambda: not proctor.children(shell.pid), "the end of the first")
    shell.stdin.write(b"\n")
    shell.stdin.flush()
    wait_until((proctor.work / "second").exists, "the second tool")
    time.sleep(0.1)
    summary = end(proctor, process)
    other.kill()
    match = by_name(summary, "tool")
    assert cpu_of(match) == close_to(rusage(proctor, "second"))
    assert match["instances"] == 2
    assert summary["run"]["command"][0] == "sh" and summary["run"]["target"] is None


# --- names on the machine -------------------------------------------------------------------------

def test_a_name_that_comes_and_goes(proctor):
    """Nobody at first, then one, nobody, two; INT ends it."""
    name = f"t{os.getpid()}.py"
    tool = script(proctor, name)
    process = watching(proctor, "attach", "--match", f"tool=^{name}$")
    assert last_row(proctor)["procs"] == "0" and last_row(proctor)["mem_rss_bytes"] == ""
    for round in (["one"], ["two", "three"]):
        mention = proctor.other(["tail", "-f", tool])
        tools = [proctor.other([PYTHON, tool, "0.4", used], cwd=proctor.work) for used in round]
        wait_for_procs(proctor, len(round))
        for job in tools:
            assert job.wait(3 * PATIENCE) == 0
        wait_for_procs(proctor, 0)
        assert process.poll() is None
        mention.kill()
    summary = end(proctor, process, signal.SIGINT)
    match = by_name(summary, "tool")
    truth = rusage(proctor, "one", "two", "three")
    assert cpu_of(match) == close_to(truth)
    assert summary["metrics"]["cpu.time"]["total"] == close_to(truth)
    assert match["instances"] == 3 and summary["processes"]["seen"] == 3
    assert summary["metrics"]["procs"]["peak"] == 2 and summary["metrics"]["procs"]["min"] == 0
    assert match["metrics"]["mem.rss"]["largest"] < match["metrics"]["mem.rss"]["peak"]
    assert summary["run"]["target"].startswith("match ")
    assert summary["accounting"]["cpu"]["before"] == pytest.approx(0, abs=0.03)
    rows = read_csv(proctor.work / "a.csv")
    cpu = numbers(rows, "cpu_time_seconds")
    assert cpu == sorted(cpu)
    assert len(rows) == summary["samples"]["taken"]


def test_what_a_name_used_before_is_said(proctor):
    """It ran already, and goes on."""
    name = f"t{os.getpid()}.py"
    tool = script(proctor, name, LEADER + "burn(0.5); say('here'); listen(); burn(0.3); "
                  "say('done'); listen()")
    job = proctor.other([PYTHON, tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert read_line(job.stdout.fileno()) == "here"
    before = cpu_seconds(job.pid)
    process = watching(proctor, "attach", "--match", f"^{name}$")
    tell(job, "done")
    time.sleep(0.1 * SLACK)
    summary = end(proctor, process)
    assert is_alive(job.pid)
    assert summary["accounting"]["cpu"]["before"] == pytest.approx(before, abs=0.05)
    assert summary["metrics"]["cpu.time"]["total"] == pytest.approx(0.3, abs=0.05)
    assert cpu_of(summary["matches"][0]) == pytest.approx(0.3, abs=0.05)


def test_who_becomes_the_tool_counts_from_then(proctor):
    """A shell works, then executes the tool: what the shell used is not the tool's."""
    name = f"t{os.getpid()}"
    script(proctor, name, shebang=True)
    process = watching(proctor, "attach", "--match", f"^{name}$")
    job = proctor.other([PYTHON, "-c", "import os, time\nwhile time.process_time() < 0.4: pass\n"
                         f"os.execv('./{name}', ['./{name}', '0.8', 'used'])"], cwd=proctor.work)
    assert job.wait(3 * PATIENCE) == 0
    summary = end(proctor, process)
    both = rusage(proctor, "used")  # an exec keeps the counters
    total = summary["metrics"]["cpu.time"]["total"]
    assert total == pytest.approx(both - 0.4, abs=0.12)
    assert total + summary["accounting"]["cpu"]["before"] == pytest.approx(both, abs=0.05)
    assert cpu_of(summary["matches"][0]) == pytest.approx(total, abs=0.02)


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_int_and_term_end_a_match_of_nobody(proctor, sig):
    process = watching(proctor, "attach", "--match", "^nosuchtool$", "--jsonl", "a.jsonl")
    summary = end(proctor, process, sig)
    assert summary["metrics"]["procs"]["peak"] == 0 and "cpu.time" not in summary["metrics"]
    assert summary["matches"] == [{"name": "^nosuchtool$", "instances": 0, "samples": 0, "first_seen": None,
                                   "last_seen": None, "duration": None, "metrics": {}}]
    lines = [json.loads(line) for line in (proctor.work / "a.jsonl").read_text().splitlines()]
    assert lines[-1]["matches"] == summary["matches"]


def test_duration_ends_a_match(proctor):
    job = proctor.other(["sleep", "77"])
    before = time.monotonic()
    done = proctor("attach", "-i", "20ms", "--duration", "0.3", "--match", "^sleep$", "--match",
                   "b=^nosuchtool$")
    assert done.returncode == 0 and 0.3 <= time.monotonic() - before < 0.3 + 3 * SLACK
    assert is_alive(job.pid)
    lines = done.stderr.splitlines()
    assert lines[0].startswith("proctor: match ^sleep$") and "watched for" in lines[0]
    (names,) = [line for line in lines if line.startswith("  by name")]
    assert "^sleep$: " in names and "b: 0 seen" in names
    assert len(lines) <= 8


def test_a_name_as_somebody_else(proctor):
    """The program of another user's process may not be read; its name and arguments may."""
    if os.getuid() != 0:
        skip_visibly("only root can become somebody else")
    name = f"t{os.getpid()}.py"
    tool = script(proctor, name, "import time; time.sleep(77)")
    job = proctor.other([PYTHON, tool])
    wait_until(lambda: name in Path(f"/proc/{job.pid}/cmdline").read_text(), "the tool")
    done = proctor("attach", "-i", "20ms", "--duration", "0.2", "--summary", "-", "--match",
                   f"^{name}$", cwd="/", user=65534, group=65534, extra_groups=[])
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    match = summary["matches"][0]
    assert match["instances"] == 1 and match["metrics"]["mem.rss"]["peak"] > 1e6
    assert "io.wchar" not in match["metrics"] and "cpu.time" in match["metrics"]
    reasons = {a["metric"]: a["reason"] for a in summary["absent"]}
    assert "Permission denied" in reasons["io.wchar"]


def test_a_link_and_its_program(proctor):
    """Called by one name, executing another: both are its names."""
    grinder = proctor.work / f"g{os.getpid()}"
    shutil.copy("/bin/sleep", grinder)
    link = proctor.work / f"l{os.getpid()}"
    link.symlink_to(grinder)
    proctor.other([link, "77"])
    done = proctor("attach", "-q", "-i", "20ms", "--duration", "0.1", "--summary",
                   proctor.summary_file, "--match", f"^{grinder.name}$")
    assert done.returncode == 0 and proctor.summary()["matches"][0]["instances"] == 1
    done = proctor("attach", "-q", "-i", "20ms", "--duration", "0.1", "--summary",
                   proctor.summary_file, "--match", f"^{link.name}$")
    assert done.returncode == 0 and proctor.summary()["matches"][0]["instances"] == 1


# --- the machine ----------------------------------------------------------------------------------

def machine_busy():
    """User and system time of the machine by /proc/stat, seconds."""
    user, nice, system, _, _, irq, softirq = \
        map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def machine_pids():
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def test_the_machine(proctor):
    """Its CPU time lies between two differences of our own; only its metrics are written."""
    before = machine_busy()
    process = watching(proctor, "system", "--jsonl", "a.jsonl")
    inner = machine_busy()
    burner = proctor.other([PYTHON, "-c", "import time\nwhile time.process_time() < 0.5: pass"])
    burner.wait()
    inner = machine_busy() - inner
    time.sleep(0.15)
    os.kill(process.pid, signal.SIGTERM)
    status, _, err = finish(process)
    outer = machine_busy() - before
    summary = proctor.summary()
    assert status == 0
    used = summary["metrics"]["system.cpu.time"]["total"]
    assert 0.45 < inner and inner - 0.05 <= used <= outer + 0.05
    parts = sum(summary["metrics"][f"system.cpu.{p}"]["total"] for p in ("user", "system"))
    assert used == pytest.approx(parts, abs=0.021)
    memory = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert summary["metrics"]["system.mem.total"]["last"] == memory
    assert all(key.startswith("system.") for key in summary["metrics"])
    assert all(a["metric"].startswith("system.") for a in summary["absent"])
    assert summary["run"]["target"] == "machine" and summary["exit"]["code"] is None
    rows = read_csv(proctor.work / "a.csv")
    assert len(rows) == summary["samples"]["taken"] > 5
    assert all(c.startswith("system_") for c in list(rows[0])[3:])
    cpu = numbers(rows, "system_cpu_time_seconds")
    assert cpu[0] == 0 and cpu == sorted(cpu) and cpu[-1] == used
    lines = [json.loads(line) for line in (proctor.work / "a.jsonl").read_text().splitlines()]
    assert lines[-1]["run"]["target"] == "machine"
    text = err.splitlines()
    assert text[0].startswith("proctor: machine  watched for ") and len(text) <= 8
    assert [line.split()[0] for line in text[1:3]] == ["CPU", "memory"]
    assert not any(line.split()[0] in ("procs", "counted") for line in text[1:])


def test_the_machine_for_a_while(proctor):
    before = time.monotonic()
    done = proctor("system", "-q", "-i", "50ms", "--duration", "0.3", "--select", "system.cpu.*",
                   "--csv", "-")
    assert done.returncode == 0 and 0.3 <= time.monotonic() - before < 0.3 + 3 * SLACK
    columns = done.stdout.splitlines()[0].split(",")[3:]
    assert columns and all(c.startswith("system_cpu_") for c in columns)
    assert done.stderr == ""


@pytest.mark.parametrize("keys, named", [("cpu.time", "cpu.time"), ("cpu.*", "cpu.*"),
                                         ("system.cpu.*,mem.rss", "mem.rss")])
def test_a_machine_has_no_metrics_of_processes(proctor, keys, named):
    done = proctor("system", "--duration", "50ms", "--select", keys, "--csv", "a.csv")
    assert done.returncode == 2
    (message,) = said(done.stderr)
    assert f"'{named}'" in message and "system.*" in message and "--processes" in message
    assert not (proctor.work / "a.csv").exists()


def test_every_process_of_the_machine(proctor):
    """With --processes everybody has a row, but for ourselves."""
    job = proctor.other(["sleep", "77"])
    before = machine_pids()
    process = watching(proctor, "system", "-q", "--processes")
    burner = proctor.other([PYTHON, "-c", "import time\nwhile time.process_time() < 0.3: pass\n"
                            "time.sleep(0.3)"])
    burner.wait()
    there = before & machine_pids()
    summary = end(proctor, process)
    rows = read_csv(proctor.work / "a.processes.csv")
    pids = {int(row["pid"]) for row in rows}
    assert there | {job.pid, os.getpid(), burner.pid} <= pids and process.pid not in pids
    cpu = numbers([row for row in rows if int(row["pid"]) == burner.pid], "cpu_time_seconds")
    assert max(cpu) == pytest.approx(0.3, abs=0.1)
    first = read_csv(proctor.work / "a.csv")[0]
    listed = len([row for row in rows if row["elapsed_seconds"] == first["elapsed_seconds"]])
    assert 2 <= float(first["procs"]) <= listed  # zombies have rows
    assert summary["metrics"]["cpu.time"]["total"] >= 0.25
    assert "system.cpu.time" in summary["metrics"]
    done = proctor("system", "-q", "--duration", "50ms", "--select", "cpu.time", "--processes",
                   "--csv", "b.csv")
    assert done.returncode == 0
    assert list(read_csv(proctor.work / "b.csv")[0])[3:] == ["cpu_time_seconds"]


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_int_and_term_end_the_machine(proctor, sig):
    assert end(proctor, watching(proctor, "system"), sig)["samples"]["taken"] >= 2


# --- wrong usage ----------------------------------------------------------------------------------

@pytest.mark.parametrize("words, parts", [
    (["attach"], ["PID", "--group", "--match"]),
    (["attach", "--group"], ["--group", "PGID"]),
    (["attach", "--match"], ["--match", "REGEX"]),
    (["attach", "--group", "x"], ["--group", "'x'", "ps -eo pgid,comm"]),
    (["attach", "--group", "0"], ["--group", "'0'", "ps -eo pgid,comm"]),
    (["attach", "--group", "-5"], ["--group", "'-5'"]),
    (["attach", "--group", "12x"], ["--group", "'12x'"]),
    (["attach", "--group", ""], ["--group", "empty", "PGID"]),
    (["attach", "--group", "34", "12"], ["PID '12'", "--group '34'", "leave one"]),
    (["attach", "--cgroup", "/a", "12"], ["PID '12'", "--cgroup '/a'", "leave one"]),
    (["attach", "--cgroup", "/a", "--group", "34"], ["--group '34'", "--cgroup '/a'"]),
    (["attach", "--no-children", "--group", "34"], ["--no-children", "PID"]),
    (["attach", "--no-children", "--match", "a"], ["--no-children", "PID"]),
    (["attach", "--match", "("], ["--match", "'('", "backslash"]),
    (["attach", "--match", "a=[", "1"], ["--match", "'['"]),
    (["attach", "--match", "a="], ["--match", "'a='", "NAME=REGEX"]),
    (["attach", "--match", ""], ["--match", "empty", "NAME=]REGEX"]),
    (["attach", "--match", "a=x", "--match", "a=y"], ["--match", "'a'", "NAME="]),
    (["attach", "--match", "a", "x"], ["'x'", "process id"]),
    (["system", "12"], ["'12'", "no operands"]),
    (["system", "--match", "a"], ["--match", "system"]),
    (["system", "--group", "5"], ["--group", "system"]),
    (["run", "--group", "5", "true"], ["--group", "run"]),
], ids=lambda v: " ".join(v) if v and v[0] in ("attach", "system", "run") else "")
def test_wrong_usage_says_what_and_what_to_do(proctor, words, parts):
    done = proctor(*words)
    assert done.returncode == (125 if words[0] == "run" else 2)
    (message,) = said(done.stderr)
    for part in parts:
        assert part in message
    assert done.stdout == ""


def test_wrong_rules_of_a_run_start_nothing(proctor):
    for words in (["--match", "("], ["--match", "a", "--match", "a"]):
        done = proctor.run(*words, "touch", "started")
        assert done.returncode == 125 and "--match" in done.stderr
    assert not (proctor.work / "started").exists()
