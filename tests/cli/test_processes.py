# SPDX-License-Identifier: Apache-2.0
"""The account of each process: who it was, what it used itself, how it ended, and how that is known."""
import json
import os
import shutil
import subprocess
import tempfile
import time
from datetime import datetime

import pytest

from proctor_cli import SANITIZED, finish, skip_visibly, wait_until

NOBODY = dict(user=65534, group=65534, extra_groups=[])
ORDINARY = ["root", "nobody"]


def as_user(who):
    if who == "nobody" and os.geteuid() != 0:
        skip_visibly("only root can be somebody else")
    return NOBODY if who == "nobody" else {}


def processes(proctor, *words, **options):
    done = proctor.run("-q", "--processes", "--summary", "-", *words, **{"cwd": "/", **options})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout[done.stdout.index("{"):])["processes"]


def named(found, command):
    return [p for p in found["list"] if p["command"] == command]


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


BURN = "import time; t=time.process_time\nwhile t() < {}: pass"


@pytest.mark.parametrize("who", ORDINARY)
def test_the_job_itself(proctor, who):
    """What we wait for is known to the microsecond, however rarely it was sampled."""
    began = time.time()
    code = BURN.format(0.3) + "\nx = b'x' * (60 << 20); import os; os.write(os.open('/dev/null', 1), x[:5000])"
    job, = processes(proctor, "-i", "10s", "/usr/bin/python3", "-c", code, **as_user(who))["list"]
    assert job["exit"] == {"code": 0, "signal": None} and job["source"] == "waited" and job["samples"] == 1
    assert 0.3 <= job["values"]["cpu.time"] < 0.5
    assert 60 << 20 < job["values"]["mem.rss.peak"] < 90 << 20
    assert job["values"]["io.wchar"] == 5000
    assert began - 0.02 <= moment(job["started"]) <= moment(job["ended"]) <= time.time() + 0.001
    assert moment(job["ended"]) - moment(job["started"]) >= 0.3


@pytest.fixture
def family(jobs):
    """A copy that everybody may run."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield shutil.copy(jobs / "family", folder)


@pytest.mark.parametrize("who", ORDINARY)
def test_orphans_between_two_samples(proctor, family, who):
    """Nobody ever saw them alive; we waited for them, and their last word was read before that."""
    found = processes(proctor, "-i", "10s", family, "orphans", "30", "20000", **as_user(who))
    unseen = [p for p in found["list"] if p["samples"] == 0]
    orphans = [p for p in unseen if (p["values"]["cpu.time"] or 0) >= 0.02]
    assert 28 <= len(orphans) <= 30  # the first sample may have one
    for orphan in orphans:
        assert orphan["command"] == "family" and orphan["source"] == "waited"
        assert orphan["exit"] == {"code": 0, "signal": None}
        assert 0.02 <= orphan["values"]["cpu.time"] < 0.04
        assert orphan["values"]["io.wchar"] == (0 if who == "root" else None)  # a zombie's file is root's alone
        assert orphan["ended"] and moment(orphan["ended"]) >= moment(orphan["started"])
    assert found["never_sampled_least"] == len(unseen)
    command, = found["commands"]
    assert command["command"] == "family" and command["processes"] == len(found["list"])
    assert command["cpu.time"] == pytest.approx(sum(p["values"]["cpu.time"] for p in found["list"]), rel=1e-9)


def test_how_each_ended(proctor):
    script = "(sh -c 'exit 7' &) ; (sh -c 'kill -9 $$' &) ; sleep 0.5; exit 0"
    ends = [p["exit"] for p in processes(proctor, "-i", "50ms", "sh", "-c", script)["list"] if p["exit"]]
    assert {"code": 7, "signal": None} in ends and {"code": None, "signal": 9} in ends


def test_children_of_the_job_as_last_sampled(proctor):
    """Their parent waits for them: how they ended is its secret, and what they used is what a sample saw."""
    code = BURN.format(0.6)
    found = processes(proctor, "-i", "50ms", "sh", "-c", f'/usr/bin/python3 -c "{code}"; true')
    child, = named(found, "python3")
    shell, = [p for p in found["list"] if p["source"] == "waited"]
    assert child["source"] == "sampled" and child["exit"] is None and child["ppid"] == shell["pid"]
    assert 0.4 < child["values"]["cpu.time"] <= 0.75
    assert shell["values"]["cpu.time"] < 0.1  # its own, without what it has waited for
    assert 5 << 20 < child["values"]["mem.rss.peak"] < 60 << 20
    assert found["commands"][0]["command"] == "python3"


def test_each_has_its_own_io(proctor):
    """The kernel adds a child's I/O to whoever waits for it; here it counts once."""
    code = "import os, time; os.write(os.open('/dev/null', 1), b'x' * 700000); time.sleep(0.6)"
    script = f'/usr/bin/python3 -c "{code}"; head -c 10000 /dev/zero > /dev/null; true'
    done, summary = proctor.recorded("--processes", "-i", "50ms", "sh", "-c", script)
    assert done.returncode == 0
    found = summary["processes"]["list"]
    child, = [p for p in found if p["command"] == "python3"]
    assert child["values"]["io.wchar"] == 700000
    total = sum(p["values"]["io.wchar"] for p in found)
    assert total == summary["metrics"]["io.wchar"]["total"] == pytest.approx(710000, abs=1000)


def test_who_is_left_running_has_no_end(proctor):
    found = processes(proctor, "-i", "50ms", "sh", "-c", "sleep 30 > /dev/null 2>&1 & echo $! > pid; sleep 0.3", cwd=proctor.work)
    pid = int((proctor.work / "pid").read_text())
    os.kill(pid, 15)
    left, = [p for p in found["list"] if p["pid"] == pid]
    assert left["ended"] is None and left["exit"] is None


def test_attached(proctor, jobs):
    job = proctor.other(["sh", "-c", "sleep 0.4; sleep 0.5"])
    process = proctor.start("attach", "-q", "-i", "50ms", "--summary", proctor.summary_file, "--processes", job.pid)
    job.wait()
    assert finish(process)[0] == 0
    found = proctor.summary()["processes"]["list"]
    assert {p["command"] for p in found} == {"sh", "sleep"} and len(found) == 3
    assert all(p["source"] == "sampled" and p["ended"] and p["exit"] is None for p in found)


@pytest.mark.parametrize("how", ["none", "taskstats", "auto"])
def test_a_parent_has_its_own_time_alone(proctor, jobs, how):
    """To the tick: the kernel tells what children left with it only in those."""
    if how == "taskstats" and os.geteuid() != 0:
        skip_visibly("exit records need CAP_NET_ADMIN")
    done, summary = proctor.recorded("-i", "10s", "--exact", how, jobs / "family", "waited", "40", "5000")
    used = float(done.stdout.split()[1])
    job, = [p for p in summary["processes"]["list"] if p["source"] == "waited"]
    assert 0.2 < used and job["values"]["cpu.time"] < 0.2 * used
    assert summary["metrics"]["cpu.time"]["total"] == pytest.approx(used, rel=0.05, abs=0.003)


@pytest.mark.parametrize("interval", ["10s", "3ms"])
def test_records_have_their_own_io(proctor, interval):
    """Known by a record, with or without a sample before, of before its exec even: the parent that waited for it
    has it in its own file, and not here."""
    if os.geteuid() != 0:
        skip_visibly("exit records need CAP_NET_ADMIN")
    script = "for i in 1 2 3; do head -c 8000000 /dev/zero > /dev/null; done; true"
    found = processes(proctor, "-i", interval, "--exact", "taskstats", "sh", "-c", script)
    assert found["seen"] == len(found["list"]) >= 4
    assert sum(p["values"]["io.wchar"] for p in named(found, "head")) == pytest.approx(24e6, rel=0.01)
    assert sum(p["values"]["io.wchar"] for p in found["list"]) == pytest.approx(24e6, rel=0.01)


def test_the_child_of_a_zombie_counts_once(proctor):
    """It went to a subreaper in the job, while its own parent has ended and nobody waits for that one."""
    (proctor.work / "job.py").write_text("""
import ctypes, os, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
said, say = os.pipe()
if os.fork() == 0:
    child = os.fork()
    if child == 0:
        while time.process_time() < 0.8: pass
        time.sleep(0.3)
        os._exit(0)
    os.write(say, b"%d" % child)
    time.sleep(1.6)
    os._exit(0)
child = int(os.read(said, 20))
while True:
    try:
        os.waitpid(child, 0)
        break
    except ChildProcessError:
        time.sleep(0.02)
time.sleep(0.5)
""")
    for how in ("none", "auto"):
        _, summary = proctor.recorded("-i", "100ms", "--exact", how, "/usr/bin/python3", "job.py")
        assert 0.8 <= summary["metrics"]["cpu.time"]["total"] < 1.2, how


def test_a_process_is_in_no_more_samples_than_there_are(proctor):
    _, summary = proctor.recorded("-i", "100ms", "--processes", "sleep", "0.5")
    assert [p["samples"] for p in summary["processes"]["list"]] == [summary["samples"]["taken"] - 1]


def test_what_was_used_before_is_not_of_the_record(proctor):
    code = BURN.format(0.6) + "\nprint('ready', flush=True)\n" + BURN.format(0.7) + "\ntime.sleep(30)"
    job = proctor.other(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE)
    job.stdout.readline()
    time.sleep(0.3)
    process = proctor.start("attach", "-q", "-i", "50ms", "--summary", proctor.summary_file, "--duration", "0.4s", job.pid)
    assert finish(process)[0] == 0
    one, = proctor.summary()["processes"]["list"]
    assert one["values"]["cpu.time"] < 0.05 and proctor.summary()["accounting"]["cpu"]["before"] > 0.6
    assert one["values"]["io.rchar"] == 0


# --- who was never sampled -------------------------------------------------------------------------


def test_how_many_were_never_sampled_is_bounded(proctor):
    """Without exit records: at least those that we waited for, at most all forks of the machine."""
    _, summary = proctor.recorded("-i", "10s", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true; done; sleep 0.2; true")
    found = summary["processes"]
    # One may have been found by the first sample, and gone before it was read.
    assert found["never_sampled_most"] >= 9 > 1 >= found["never_sampled_least"]
    assert found["never_sampled"] is None
    assert summary["metrics"]["system.forks"]["total"] >= 7


def test_exit_records_know_them_all(proctor, jobs):
    if os.geteuid() != 0:
        skip_visibly("exit records need CAP_NET_ADMIN")
    found = processes(proctor, "-i", "10s", "--exact", "taskstats", "sh", "-c",
                      f"{jobs}/family waited 40 20000; {jobs}/family together 10 20000; exit 0")
    assert found["never_sampled"] == found["never_sampled_least"] == found["never_sampled_most"]
    assert found["never_sampled"] == sum(p["samples"] == 0 for p in found["list"])
    few = range(50, 53)  # the first sample may have caught the first two
    assert found["never_sampled"] in few
    records = [p for p in found["list"] if p["source"] == "record"]
    burners = [p for p in records if p["values"]["cpu.time"] > 0.015]
    assert len(records) in few and len(burners) == 50 and sum(p["samples"] > 0 for p in burners) <= 1
    for p in burners:
        assert p["command"] == "family" and p["exit"] == {"code": 0, "signal": None}
        assert p["values"]["cpu.time"] < 0.04 and p["values"]["mem.rss.peak"] > 0
    assert len({p["pid"] for p in found["list"]}) == 53


def test_exit_records_of_those_that_were_sampled(proctor):
    """A record says how a child of the job ended, and its last mark, which no sample could."""
    if os.geteuid() != 0:
        skip_visibly("exit records need CAP_NET_ADMIN")
    code = "import time; time.sleep(0.5); x = b'x' * (80 << 20); raise SystemExit(5)"
    found = processes(proctor, "-i", "200ms", "--exact", "taskstats", "sh", "-c", f'/usr/bin/python3 -c "{code}"; true')
    child, = named(found, "python3")
    assert child["source"] == "record" and child["exit"] == {"code": 5, "signal": None} and child["samples"] > 0
    assert 80 << 20 < child["values"]["mem.rss.peak"] < 120 << 20


def test_the_most_that_they_had_together(proctor, jobs):
    """Every mark is known: the bound is the sum of those alive together."""
    if os.geteuid() != 0:
        skip_visibly("exit records need CAP_NET_ADMIN")
    code = "import os, time; x = b'x' * (50 << 20); time.sleep(0.2)"
    script = f"/usr/bin/python3 -c \"{code}\" & /usr/bin/python3 -c \"{code}\" & wait"
    _, summary = proctor.recorded("-i", "10s", "--exact", "taskstats", "sh", "-c", script)
    peak = summary["accounting"]["memory_peak"]
    assert 100 << 20 < peak["upper"] < 160 << 20
    assert 50 << 20 < peak["lower"] < 80 << 20  # the largest one: no sample saw them together
    _, summary = proctor.recorded("-i", "10s", "sh", "-c", script)
    assert summary["accounting"]["memory_peak"]["upper"] is None


# --- where it is written ---------------------------------------------------------------------------


def test_lines_as_they_end(proctor):
    """With --processes JSON lines have an event for every exit, in the order of the roll."""
    out = proctor.work / "a.jsonl"
    process = proctor.start("run", "-q", "-i", "50ms", "--processes", "--jsonl", out, "sh", "-c",
                            "sleep 0.1; (sh -c 'exit 3' &); sleep 0.5; sleep 30")
    exits = lambda: [e for e in map(json.loads, out.read_text().splitlines()) if e.get("event") == "exit"]
    wait_until(lambda: out.exists() and len(exits()) >= 3, "three exits while it runs")
    assert any(e["exit"] == {"code": 3, "signal": None} for e in exits())
    process.terminate()
    process.wait()
    root = exits()[-1]
    assert root["exit"] == {"code": None, "signal": 15} and root["type"] == "event"
    for e in exits():
        assert e["time"] == e["ended"] and e["elapsed"] >= 0 and e["command"] and "cpu.time" in e["values"]


def test_a_summary_stays_short(proctor, jobs):
    """A list of thousands is for those who ask for it; nothing is lost from the commands."""
    words = ("-i", "20ms", jobs / "family", "orphans", "400", "100")
    _, summary = proctor.recorded(*words)
    found = summary["processes"]
    assert len(found["list"]) == 100 and found["folded"] == 0
    assert sum(c["processes"] for c in found["commands"]) >= 400
    cpu = [p["values"]["cpu.time"] for p in found["list"]]
    assert cpu == sorted(cpu, reverse=True)
    assert len(processes(proctor, *words)["list"]) >= 400


def test_on_the_screen(proctor):
    done = proctor.run("-i", "50ms", "sh", "-c", f'/usr/bin/python3 -c "{BURN.format(0.4)}"; sleep 0.1; true')
    line, = [text for text in done.stderr.splitlines() if text.split()[0] == "procs"]
    assert "; most CPU: python3 " in line
    assert "most CPU" not in proctor.run("sleep", "0.1").stderr


def test_many_dead_cost_little_memory(proctor, jobs):
    _, summary = proctor.recorded("--no-record", jobs / "family", "orphans", "3000", "50")
    assert summary["processes"]["commands"][0]["processes"] > 3000
    assert summary["processes"]["commands"][0]["exits_known"] > 3000
    assert summary["self"]["rss_peak_bytes"] < 6 << 20 or SANITIZED
