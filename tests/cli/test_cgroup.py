# SPDX-License-Identifier: Apache-2.0
"""A cgroup as the target, and the account of the cgroup that a job is in, on real groups."""
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from proctor_cli import finish, numbers, problems, read_csv, skip_visibly, wait_until
from test_floor import traced
from test_limits import own_group

BURN = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"


class Group:
    """A group below our own in the hierarchy of a controller."""

    def __init__(self, path):
        self.path = path
        path.mkdir()

    @property
    def procs(self):
        return self.path / "cgroup.procs"

    def pids(self):
        return [int(p) for p in self.procs.read_text().split()]

    def start(self, proctor, script):
        """A shell in the group that runs the script."""
        process = proctor.other(["sh", "-c", f"echo $$ > {self.procs}; {script}"])
        wait_until(lambda: process.pid in self.pids() or process.poll() is not None, "the shell to enter")
        return process

    def below(self, name):
        return Group(self.path / name)

    def remove(self):
        for child in sorted(self.path.rglob("*"), reverse=True):
            if child.is_dir():
                child.rmdir()
        if self.path.exists():
            self.path.rmdir()


@pytest.fixture
def make_group(proctor):
    made = []

    def make(controller):
        parent = own_group(controller) if controller != "unified" else Path("/sys/fs/cgroup/unified")
        try:
            group = Group(parent / f"proctor-test-{os.getpid()}-{len(made)}")
        except (OSError, TypeError) as error:
            skip_visibly(f"no group with {controller}: {error}")
        made.append(group)
        return group

    yield make
    proctor.end_all()
    for group in made:
        for pid in group.pids() if group.path.exists() else []:
            os.kill(pid, 9)
        wait_until(lambda: not group.path.exists() or not any(
            g.joinpath("cgroup.procs").read_text() for g in [group.path, *filter(Path.is_dir, group.path.rglob("*"))]),
            "the group to be empty")
        group.remove()


def name_in_proc(pid, group):
    """The group's path as /proc/PID/cgroup has it."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        path = line.split(":", 2)[2]
        if path.endswith(group.path.name):
            return path
    raise AssertionError("it is in no such group")


def attach(proctor, target, *options):
    return proctor.start("attach", "-q", "-i", "50ms", "--summary", proctor.summary_file, "--csv", "a.csv",
                         "--cgroup", target, *options)


def sampled(proctor, count=1):
    path = proctor.work / "a.csv"
    wait_until(lambda: path.exists() and len(path.read_text().splitlines()) > count, "samples")


def test_it_ends_when_the_group_has_become_empty(proctor, make_group):
    group = make_group("memory")
    shell = group.start(proctor, f"{BURN}; sleep 0.5; {BURN} & wait")
    process = attach(proctor, group.path)
    assert finish(process)[0] == 0 and shell.poll() is not None
    summary = proctor.summary()
    assert summary["run"]["target"] == f"cgroup {group.path}"
    assert summary["processes"]["seen"] >= 2 and summary["metrics"]["cpu.time"]["total"] > 0.05
    assert summary["metrics"]["procs"]["peak"] >= 2 and summary["left_running"] == []


def test_members_come_from_the_group(proctor, make_group):
    """A sample asks the group who is in it, searches /proc for nobody, and reads nobody who has not run."""
    group = make_group("memory")
    group.start(proctor, "for i in $(seq 50); do sleep 60 & done; wait")
    process = attach(proctor, group.path, "--no-record", "--no-pss")
    csv = proctor.work / "a.csv"
    wait_until(lambda: csv.exists() and max(numbers(read_csv(csv), "procs"), default=0) == 51, "all to be found")
    time.sleep(2)
    before = len(read_csv(csv))
    lines = traced(process, 2, "pread64,getdents64", "-y")
    samples = len(read_csv(csv)) - before
    asked, listed, of_processes = ([line for line in lines if re.search(call, line)] for call in (
        r"pread64\(\d+<.*/cgroup\.procs>", r"getdents64\(\d+</proc>", r"pread64\(\d+</proc/\d+/(stat|statm|io)>"))
    assert samples >= 10 and samples <= len(asked) <= 2 * samples + 4, (len(asked), samples)
    assert len(listed) <= 2, listed
    assert len(of_processes) < samples * 51 * 3 / 6, (len(of_processes), samples)


def test_it_may_start_empty(proctor, make_group):
    group = make_group("memory")
    process = attach(proctor, group.path)
    sampled(proctor, 4)
    assert process.poll() is None
    group.start(proctor, "sleep 0.3; true")
    assert finish(process)[0] == 0
    procs = [row["procs"] for row in read_csv(proctor.work / "a.csv")]
    assert procs[:3] == ["0", "0", "0"] and max(map(int, filter(None, procs))) > 0, "empty is a figure, not a gap"


def test_groups_below_and_later_belong(proctor, make_group):
    group = make_group("memory")
    group.start(proctor, "sleep 1.5; true")
    inner = group.below("inner")
    process = attach(proctor, group.path)
    sampled(proctor)
    inner.start(proctor, "sleep 0.7; true")
    inner.below("deep").start(proctor, "sleep 0.7; true")
    assert finish(process)[0] == 0
    assert proctor.summary()["metrics"]["procs"]["peak"] >= 3


def test_by_the_name_in_proc(proctor, make_group):
    group = make_group("memory")
    shell = group.start(proctor, "sleep 0.5; true")
    process = attach(proctor, name_in_proc(shell.pid, group))
    assert finish(process)[0] == 0
    assert proctor.summary()["processes"]["seen"] >= 1


def test_who_moves_in_counts_from_then_and_who_moves_out_until_then(proctor, make_group):
    group, other = make_group("memory"), make_group("memory")
    work = f"{BURN}; sleep 0.6; {BURN}; sleep 0.6; {BURN}; sleep 0.4"
    member = group.start(proctor, "sleep 3; true")
    mover = other.start(proctor, work)
    time.sleep(0.5)  # the first part of its work is done elsewhere
    process = attach(proctor, group.path, "--duration", "2s")
    sampled(proctor)
    group.procs.write_text(str(mover.pid))
    time.sleep(0.55)
    other.procs.write_text(str(mover.pid))
    assert finish(process)[0] == 0 and member.poll() is None
    account = proctor.summary()["accounting"]["cpu"]
    assert account["before"] > 0.02, "what it used elsewhere is said"
    assert "left the job and went on" in account["note"]


def test_a_group_that_is_removed_ends_it(proctor, make_group):
    group = make_group("memory")
    process = attach(proctor, group.path)
    sampled(proctor, 3)
    group.remove()
    assert finish(process)[0] == 0


@pytest.mark.parametrize("name", ["/no/such/group", "/proc", "", "../.."])
def test_there_is_no_such_group(proctor, name):
    done = proctor("attach", "--cgroup", name)
    assert done.returncode in (1, 2) and done.stdout == ""
    assert "--cgroup" in done.stderr or (name in done.stderr and "/proc/PID/cgroup" in done.stderr)


def test_limits_are_those_of_the_group(proctor, make_group):
    group = make_group("memory")
    limit = next(f for f in ("memory.max", "memory.limit_in_bytes") if (group.path / f).exists())
    (group.path / limit).write_text(str(256 << 20))
    group.start(proctor, "sleep 0.3; true")
    assert finish(attach(proctor, group.path))[0] == 0
    memory = proctor.summary()["limits"]["memory"]
    assert memory["bytes"] == 256 << 20
    assert memory["source"].startswith(f"{limit} of cgroup /") and memory["source"].endswith(group.path.name)


def test_an_oom_kill_is_counted_and_an_event(proctor, make_group):
    group = make_group("memory")
    limit = next(f for f in ("memory.max", "memory.limit_in_bytes") if (group.path / f).exists())
    (group.path / limit).write_text(str(40 << 20))
    hungry = "/usr/bin/python3 -c 'x = bytearray(200 << 20)'"
    group.start(proctor, f"sleep 0.3; {hungry}; sleep 0.4")
    assert finish(attach(proctor, group.path))[0] == 0
    summary = proctor.summary()
    assert 1 <= summary["metrics"]["oom.kills"]["total"] <= 2
    event = [e for e in summary["events"] if e["type"] == "oom"][0]
    assert re.search(r"killed \d process", event["text"]) and event["at"] > 0
    peak = summary["metrics"]["mem.cgroup.peak"]["peak"]
    assert 30 << 20 < peak <= 41 << 20, "the kernel's mark is at the limit, whatever the samples saw"
    assert problems(summary) == []


def test_why_a_job_died(proctor, make_group):
    """137 alone is not memory; with the kernel's own count of kills it is."""
    group = make_group("memory")
    limit = next(f for f in ("memory.max", "memory.limit_in_bytes") if (group.path / f).exists())
    (group.path / limit).write_text(str(40 << 20))
    hungry = "/usr/bin/python3 -c 'import time; time.sleep(0.3); x = bytearray(200 << 20)'"

    def died(*options):
        words = " ".join(map(str, (proctor.path, "run", "-i", "50ms", *options)))
        done = subprocess.run(["sh", "-c", f"echo $$ > {group.procs}; exec {words} {hungry}"], capture_output=True,
                              text=True, timeout=60, **proctor.options({}))
        assert done.returncode == -9
        return done.stderr

    said = died("--summary", proctor.summary_file)
    finding, = proctor.summary()["findings"]
    assert finding.startswith("the job ran out of memory: the kernel killed") and "40.0 MiB" in finding
    assert "python3" in finding and finding in said
    # where no machine is asked
    assert "the job ran out of memory: the kernel killed 1 process" in died("--no-record")
    done, summary = proctor.recorded("sh", "-c", "kill -9 $$")
    assert done.returncode == -9
    finding, = summary["findings"]
    assert "SIGKILL" in finding and "out of memory" not in finding
    _, summary = proctor.recorded("sh", "-c", "exit 137")
    assert summary["findings"] == []


@pytest.mark.parametrize("status, exact, elsewhere", [(-9, "auto", False), (137, "auto", False), (1, "auto", False),
                                                      (0, "auto", True), (0, "none", False)])
def test_whose_kill_it_was(proctor, make_group, status, exact, elsewhere):
    """One of the job's went to another group, as containers do, and was killed there: the job's group has no account of
    it, and who waited for it need not tell. Where nobody of the job can have been killed it is said whose it was not; an
    orphan of the job can, where it does not come to us."""
    group, other = make_group("memory"), make_group("memory")
    limit = next(f for f in ("memory.max", "memory.limit_in_bytes") if (other.path / f).exists())
    (other.path / limit).write_text(str(40 << 20))
    hungry = f"echo $$ > {other.procs}; exec /usr/bin/python3 -c 'x = bytearray(200 << 20)'"
    (proctor.work / "hungry.sh").write_text(hungry)
    (proctor.work / "job.sh").write_text({-9: "sh hungry.sh; kill -9 $$", 0: "echo; read x"}.get(
        status, f"sh hungry.sh; exit {status}"))
    run = f"echo $$ > {group.procs}; exec {proctor.path} run --exact {exact}"
    process = proctor.other(["sh", "-c", f"{run} -q --summary {proctor.summary_file} sh job.sh"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, **proctor.options({}))
    if not status:
        process.stdout.readline()
        assert subprocess.run(["sh", "-c", hungry]).returncode == -9
    process.communicate(b"\n", timeout=20)
    assert process.returncode == status
    kill, = [e["text"] for e in proctor.summary()["events"] if e["type"] == "oom"]
    assert re.search(r"killed \d+ process", kill) and ("elsewhere on this machine" in kill) == elsewhere
    findings = proctor.summary()["findings"]
    assert len(findings) == (status == -9) and all("but meanwhile the kernel killed" in text for text in findings)
    if findings:  # told to nobody else
        done = subprocess.run(["sh", "-c", f"{run} --no-record sh job.sh"], capture_output=True, text=True, timeout=20,
                              **proctor.options({}))
        assert findings[0][:60] in done.stderr and "but meanwhile the kernel killed" in done.stderr, done.stderr


def test_the_limit_of_a_group_above(proctor, make_group):
    """The job's own group has no limit: the one that was met is named, with what grew before."""
    outer = make_group("memory")
    inner = outer.below("job")
    limit = next(f for f in ("memory.max", "memory.limit_in_bytes") if (outer.path / f).exists())
    (outer.path / limit).write_text(str(100 << 20))
    code = "x = []\nimport time\nwhile True: x.append(b'x' * (4 << 20)); time.sleep(0.1)"
    (proctor.work / "hungry.py").write_text(code)
    command = f"echo $$ > {inner.procs}; exec {proctor.path} run -q -i 50ms --summary {proctor.summary_file} " \
              "/usr/bin/python3 hungry.py"
    done = subprocess.run(["sh", "-c", command], timeout=60, **proctor.options({}))
    assert done.returncode == -9
    summary = proctor.summary()
    finding, = summary["findings"]
    assert finding.startswith("the job ran out of memory: the kernel killed 1 process of the job's cgroup")
    assert re.search(rf"the limit of cgroup \S*{outer.path.name}, 100 MiB, was met \d+ times?;", finding), finding
    assert re.search(r"the largest process was python3 \(\d+\) with \d+(\.\d+)? MiB", finding), finding
    assert re.search(r"the job had grown by \d+(\.\d+)? MiB in its last \d", finding), finding
    assert any(e["type"] == "oom" for e in summary["events"])


def test_run_says_what_its_own_group_used(proctor, make_group):
    group = make_group("memory")
    command = f"echo $$ > {group.procs}; exec {proctor.path} run -q -i 100ms --summary {proctor.summary_file} " \
              "python3 -c 'import time; x = bytearray(50 << 20); time.sleep(1.3)'"
    subprocess.run(["sh", "-c", command], check=True, timeout=60, **proctor.options({}))
    metrics = proctor.summary()["metrics"]
    assert 50 << 20 < metrics["mem.cgroup"]["peak"] < 200 << 20
    assert 45 << 20 < metrics["mem.cgroup.anon"]["peak"] <= metrics["mem.cgroup"]["peak"] * 1.05
    assert metrics["mem.cgroup.peak"]["peak"] >= metrics["mem.cgroup"]["peak"]
    assert metrics["oom.kills"]["total"] == 0


def test_throttling_is_counted(proctor, make_group):
    group = make_group("cpu")
    quota = next(f for f in ("cpu.max", "cpu.cfs_quota_us") if (group.path / f).exists())
    (group.path / quota).write_text("20000 100000" if quota == "cpu.max" else "20000")

    def run(*options):
        command = f"echo $$ > {group.procs}; exec {proctor.path} run {' '.join(map(str, options))} sh -c '{BURN}; {BURN}'"
        return subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True, timeout=120,
                              **proctor.options({})).stderr

    run("-q", "--summary", proctor.summary_file)
    assert proctor.summary()["metrics"]["cpu.throttled"]["total"] > 0.05
    assert "throttled for" in run("--no-record"), "where nothing else is told, the lines have it all the same"


def test_a_read_only_file_system_is_enough(proctor, make_group):
    group = make_group("memory")
    group.start(proctor, "sleep 1; true")
    script = f"mount -o remount,ro,bind /sys/fs/cgroup/memory 2>/dev/null || mount -o remount,ro,bind /sys/fs/cgroup; " \
             f"if mkdir {group.path}/x 2>/dev/null; then exit 77; fi; " \
             f"exec {proctor.path} attach -q -i 50ms --summary {proctor.summary_file} --cgroup {group.path}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], timeout=60, **proctor.options({}))
    assert done.returncode == 0
    assert proctor.summary()["metrics"]["mem.cgroup"]["peak"] > 0


@pytest.mark.parametrize("controller", ["memory", "unified"])
@pytest.mark.parametrize("name", ["s2", "s1"])
def test_a_group_in_the_place_of_another_is_seen(proctor, make_group, controller, name):
    """Removed and made between two looks: the number of groups is the same."""
    if controller == "unified" and not Path("/sys/fs/cgroup/unified").is_dir():
        skip_visibly("no version 2 beside version 1")
    group = make_group(controller)
    group.start(proctor, "sleep 3; true")
    first = group.below("s1")
    process = proctor.start("attach", "-q", "-i", "500ms", "--summary", proctor.summary_file, "--cgroup", group.path,
                            "--csv", "a.csv", "--duration", "2.5s")
    sampled(proctor)
    first.remove()
    second = group.below(name)
    burner = second.start(proctor, "exec timeout 1.2 sh -c 'while :; do :; done'")
    assert finish(process)[0] == 0 and burner.pid
    assert proctor.summary()["metrics"]["cpu.time"]["total"] > 0.03
    assert proctor.summary()["metrics"]["procs"]["peak"] >= 2


def test_a_directory_is_meant_by_its_directory(proctor, make_group):
    """A group of the same path in another hierarchy is not it."""
    if not Path("/sys/fs/cgroup/unified").is_dir():
        skip_visibly("no version 2 beside version 1")
    group = make_group("memory")
    twin = Path("/sys/fs/cgroup/unified") / group.path.relative_to("/sys/fs/cgroup/memory")
    twin.mkdir(parents=True)
    other = proctor.other(["sh", "-c", f"echo $$ > {twin}/cgroup.procs; exec sleep 77"])
    try:
        wait_until(lambda: str(other.pid) in (twin / "cgroup.procs").read_text(), "the other")
        member = group.start(proctor, "exec sleep 1")
        process = attach(proctor, group.path, "--processes")
        assert finish(process)[0] == 0
        pids = {row["pid"] for row in read_csv(proctor.work / "a.processes.csv")}
        assert pids == {str(member.pid)}
    finally:
        other.kill()
        other.wait()
        wait_until(lambda: not (twin / "cgroup.procs").read_text(), "it to be empty")
        for folder in [twin, *twin.parents]:
            if folder == Path("/sys/fs/cgroup/unified") or any(f.is_dir() for f in folder.iterdir()):
                break
            folder.rmdir()


def test_a_job_that_moves_is_followed(proctor, make_group):
    group = make_group("memory")
    limit = next(f for f in ("memory.max", "memory.limit_in_bytes") if (group.path / f).exists())
    (group.path / limit).write_text(str(200 << 20))
    script = f"echo $$ > {group.procs}; exec /usr/bin/python3 -c 'import time; x = bytearray(60 << 20); time.sleep(2.5)'"
    _, summary = proctor.recorded("-i", "200ms", "--budget", "50%", "sh", "-c", script)
    assert summary["limits"]["memory"]["bytes"] == 200 << 20
    assert 50 << 20 < summary["metrics"]["mem.cgroup"]["last"] < 200 << 20


def test_a_group_of_processes_has_the_limits_of_its_members(proctor, make_group):
    """Though its leader, whose number it has, is gone."""
    group = make_group("memory")
    limit = next(f for f in ("memory.max", "memory.limit_in_bytes") if (group.path / f).exists())
    (group.path / limit).write_text(str(200 << 20))
    leader = proctor.other(["sh", "-c", f"(echo 0 > {group.procs}; sleep 2) & sleep 0.2"], start_new_session=True)
    pgid = leader.pid
    leader.wait()
    done = proctor("attach", "-q", "--group", pgid, "--duration", "0.3s", "--summary", proctor.summary_file)
    assert done.returncode == 0, done.stderr
    assert proctor.summary()["limits"]["memory"]["bytes"] == 200 << 20
    assert proctor.summary()["metrics"]["mem.cgroup"]["peak"] > 0
