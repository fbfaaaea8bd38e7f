# SPDX-License-Identifier: Apache-2.0
"""--exact: accounts beside that of the processes, on real groups, clocks and records."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from fnmatch import fnmatch
from pathlib import Path

import pytest

from proctor_cli import PATIENCE, SLACK, finish, is_alive, numbers, read_csv, skip_visibly, wait_until
from test_limits import own_group

TOP = Path("/sys/fs/cgroup")
NOBODY = dict(user=65534, group=65534, extra_groups=[])
OURS = "proctor-[0-9]*-[0-9]*-[0-9]*"
CHURN = [("waited", 500, 2000), ("ignored", 40, 25000), ("unseen", 300, 3000), ("orphans", 300, 3000)]


def own_v2():
    """Our own group of version 2."""
    path = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0:"))
    mount = re.search(r"^\S+ \S+ \S+ (\S+) (\S+) .* - cgroup2 ", Path("/proc/self/mountinfo").read_text(), re.M)
    if not mount:
        skip_visibly("no cgroup of version 2")
    return Path(mount.group(2)) / path.split(":", 2)[2].lstrip("/")


def owners(path):
    """Of a group and of those around it: what a run inside of another leaves, that one removes."""
    return [int(part.split("-")[1]) for part in path.parts if fnmatch(part, OURS)]


def groups():
    """All groups that a run has made and not removed before it ended. Others may run beside us."""
    tops = filter(None, (own_v2(), *map(own_group, ("cpuacct", "memory", "pids"))))
    walked = [(Path(p), top) for top in tops for p, *_ in os.walk(top)]  # rglob fails where one goes meanwhile
    found = [(p, owners(p.relative_to(top))) for p, top in walked if fnmatch(p.name, OURS)]
    return {p for p, pids in found if not any(map(is_alive, pids)) and p.exists()}


def group_of(pid, controller=""):
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return path
    return None


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = groups()
    yield
    assert groups() <= before


@pytest.fixture
def outer():
    """Makes groups, by controller, and removes them in the end."""
    made = []

    def make(controller):
        top = own_group(controller) if controller else own_v2()
        group = top / f"proctor-test-{os.getpid()}-{len(made)}"
        try:
            group.mkdir()
        except OSError as error:
            skip_visibly(f"no group with {controller}: {error}")
        made.append(group)
        return group

    yield make
    for group in made:
        wait_until(lambda: not (group / "cgroup.procs").read_text(), f"{group} to be empty")
        group.rmdir()


@pytest.fixture
def public(jobs):
    """Jobs where everybody can reach them."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-test-"))
    shutil.copy(jobs / "family", folder)
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_nobody(proctor, *words, **options):
    return proctor("run", "-q", *words, cwd="/", **{**NOBODY, **options})


def truth_of(proctor, outer, jobs, options, kind, count, amount):
    """Runs a family; (CPU time by a group of another hierarchy, that of the job's shell included from
    its first command on, and the summary)."""
    group = outer("cpuacct")
    command = f"echo $$ > {group}/cgroup.procs; exec {jobs}/family {kind} {count} {amount}"
    done, summary = proctor.recorded(*options, "sh", "-c", command)
    assert done.returncode == 0 and done.stderr == ""
    return int((group / "cpuacct.usage").read_text()) * 1e-9, summary


# --- figures --------------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["cgroup", "auto"])
@pytest.mark.parametrize("kind, count, amount", CHURN)
def test_a_group_has_all_whoever_waits(proctor, outer, jobs, kind, count, amount, how):
    """The shell's own start, before it is in the other group, is some milliseconds."""
    truth, summary = truth_of(proctor, outer, jobs, ["--exact", how], kind, count, amount)
    account, metrics = summary["accounting"]["cpu"], summary["metrics"]
    assert truth > 0.8
    assert -0.001 * truth <= metrics["cpu.time"]["total"] - truth <= 0.001 * truth + 0.005
    assert "cgroup" in account["source"] and account["complete"] is True and account["note"] is None
    assert metrics["cpu.user"]["total"] + metrics["cpu.system"]["total"] == \
        pytest.approx(metrics["cpu.time"]["total"], abs=0.001)
    if kind in ("waited", "orphans"):
        assert abs(account["residual"]) < 0.01
    else:
        assert account["residual"] < -0.05, "the processes' own account does not have it"
        assert summary["accounting"]["io"]["complete"] is False


@pytest.mark.parametrize("how, least", [("perf", 0.9), ("taskstats", 0.85)])
@pytest.mark.parametrize("kind, count, amount", CHURN)
def test_bounds_have_nearly_all(proctor, outer, jobs, kind, count, amount, how, least):
    truth, summary = truth_of(proctor, outer, jobs, ["--exact", how, "-i", "100ms"], kind, count, amount)
    account, metrics = summary["accounting"]["cpu"], summary["metrics"]
    # perf's clock also runs while an interrupt or the host has the CPU; a busy machine has more of both.
    above = 1.01 if how == "perf" else 1.001
    assert least * truth <= metrics["cpu.time"]["total"] <= above * truth + 0.005
    assert how in account["source"] or "records" in account["source"]
    if kind in ("waited", "orphans"):
        assert account["complete"] is True and 0 < account["residual"] < 0.2 * truth
        assert "mark" not in metrics["cpu.user"]
    else:
        assert account["complete"] is False and account["residual"] < 0 and "SIGCHLD" in account["note"]
        assert metrics["cpu.user"]["mark"] == "lower bound", "nobody says how it divides"


@pytest.mark.parametrize("how", ["cgroup", "perf", "taskstats"])
def test_totals_never_fall(proctor, jobs, how):
    _, summary = proctor.recorded("--exact", how, "-i", "5ms", "--csv", "a.csv", jobs / "family", "ignored", 20, 10000)
    rows = read_csv(proctor.work / "a.csv")
    for column in ("cpu_time_seconds", "cpu_user_seconds", "cpu_system_seconds"):
        values = numbers(rows, column)
        assert len(values) > 5 and values == sorted(values)
        assert values[-1] == summary["metrics"][column.removesuffix("_seconds").replace("_", ".")]["total"]
    assert all(v >= 0 for v in numbers(rows, "cpu_usage_cores"))


def test_samples_are_of_the_group_from_the_first_on(proctor, jobs):
    """A rate of one core or more while nobody waits for anybody."""
    proctor.recorded("--exact", "cgroup", "-i", "50ms", "--csv", "a.csv", jobs / "family", "unseen", 200, 3000)
    values = numbers(read_csv(proctor.work / "a.csv"), "cpu_time_seconds")
    burning = [b - a for a, b in zip(values, values[1:]) if b - a > 0.002]
    assert len(burning) >= 8, values


def test_the_peak_is_that_of_the_group(proctor):
    script = "import subprocess as s; a = [s.Popen(['python3', '-c', 'x = bytearray(40 << 20)']) for _ in range(3)]; " \
             "[p.wait() for p in a]"
    _, summary = proctor.recorded("--exact", "cgroup", "-i", "20ms", "python3", "-c", script)
    peak = summary["metrics"]["mem.cgroup.peak"]["peak"]
    assert 40 << 20 < peak < 400 << 20, "of the job, not of all that run beside it"
    assert summary["metrics"]["cpu.cgroup"]["total"] <= summary["metrics"]["cpu.time"]["total"] + 0.01


def test_who_leaves_the_group_is_counted_and_said(proctor, outer, jobs):
    away = outer("")
    command = f"echo $$ > {away}/cgroup.procs; exec {jobs}/family waited 20 10000"
    done, summary = proctor.recorded("--exact", "cgroup", "sh", "-c", command)
    used = float(done.stdout.split()[1])
    account = summary["accounting"]["cpu"]
    assert summary["metrics"]["cpu.time"]["total"] == pytest.approx(used, abs=0.02)
    assert account["residual"] > 0.15 and "left the cgroup" in account["note"]
    assert summary["metrics"]["cpu.user"]["total"] + summary["metrics"]["cpu.system"]["total"] > 0.9 * used


# --- the job notices nothing ----------------------------------------------------------------------

@pytest.mark.parametrize("how", ["auto", "cgroup", "perf", "taskstats"])
def test_status_and_signals_are_the_jobs(proctor, how):
    assert proctor.run("-q", "--exact", how, "sh", "-c", "exit 3").returncode == 3
    assert proctor.run("-q", "--exact", how, "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM
    assert proctor.run("-q", "--exact", how, "/no/such/program").returncode == 127
    process = proctor.start("run", "-q", "--exact", how, "sleep", "30")
    proctor.job_of(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == -signal.SIGINT


def test_auto_moves_nothing_in_version_1(proctor, outer):
    """There limits are set; the job must find them where it is."""
    group = outer("memory")
    limit = next(f for f in ("memory.limit_in_bytes", "memory.max") if (group / f).exists())
    (group / limit).write_text(str(512 << 20))
    command = f"echo $$ > {group}/cgroup.procs; exec {proctor.path} run -q --summary {proctor.summary_file} " \
              "cat /proc/self/cgroup"
    done = subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True, **proctor.options({}))
    memory = next(line for line in done.stdout.splitlines() if ":memory:" in line)
    assert memory.endswith(group.name)
    assert proctor.summary()["limits"]["memory"]["bytes"] == 512 << 20


def test_no_limit_is_set_in_the_group(proctor):
    """Neither does --exact cgroup change what binds the job."""
    _, without = proctor.recorded("--exact", "none", "true")
    _, within = proctor.recorded("--exact", "cgroup", "true")
    assert within["limits"] == without["limits"]


# --- groups come and go ---------------------------------------------------------------------------

def test_who_outlives_the_run_goes_to_the_parent(proctor):
    here = {c: group_of("self", c) for c in ("", "cpuacct", "memory")}
    done = proctor.run("-q", "--exact", "cgroup", "sh", "-c",
                       "for i in 1 2 3; do sleep 60 >/dev/null 2>&1 & echo $!; done")
    pids = [int(p) for p in done.stdout.split()]
    try:
        assert len(pids) == 3 and all(map(is_alive, pids))
        assert groups() == set()
        for pid in pids:
            assert {c: group_of(pid, c) for c in here} == here
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def test_what_a_crash_left_is_removed_at_the_next_start(proctor):
    process = proctor.start("run", "-q", "--exact", "cgroup", "sh", "-c", "exec sleep 60")
    job = proctor.job_of(process)
    process.kill()
    process.wait()
    left = groups()
    try:
        assert left and is_alive(job), "the job goes on"
        assert all(str(process.pid) in group.name for group in left)
        assert proctor.run("-q", "--exact", "cgroup", "true").returncode == 0
        assert groups() == left, "somebody is in it"
    finally:
        os.kill(job, signal.SIGKILL)
    wait_until(lambda: not is_alive(job), "the job to end")

    def removed():
        proctor.run("-q", "--exact", "cgroup", "true")
        return not groups()
    wait_until(removed, "the groups to go")


def test_what_others_made_is_left_alone(proctor, outer):
    """Of a living process, of another namespace unless it is old and empty, or of another name."""
    now = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
    start = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19]
    space = os.stat("/proc/self/ns/pid").st_ino
    names = [f"proctor-{os.getpid()}-{start}-{space}", f"proctor-{os.getpid()}-{now}-{space}", f"proctor-1-{now}-{space + 1}", "proctor-1-1", "proctor-x-1-1"]
    gone = [f"proctor-{os.getpid()}-1-{space}", f"proctor-1-1-{space + 1}"]
    made = [own_v2() / name for name in names + gone]
    try:
        for group in made:
            group.mkdir()
        assert proctor.run("-q", "true").returncode == 0
        assert [group.exists() for group in made] == [True] * 5 + [False] * 2, "the last two were of somebody before us"
    finally:
        for group in made:
            if group.exists():
                group.rmdir()


def test_a_run_in_a_run(proctor, jobs):
    inner = proctor.folder / "inner.json"
    done, summary = proctor.recorded("--exact", "cgroup", proctor.path, "run", "-q", "--exact", "cgroup",
                                     "--summary", inner, jobs / "family", "ignored", 10, 20000)
    used = float(done.stdout.split()[1])
    inside = proctor.summary(inner)
    assert inside["metrics"]["cpu.time"]["total"] == pytest.approx(used, rel=0.05, abs=0.01)
    assert summary["metrics"]["cpu.time"]["total"] > inside["metrics"]["cpu.time"]["total"]
    assert summary["accounting"]["cpu"]["complete"] and inside["accounting"]["cpu"]["complete"]


def test_a_crash_inside_is_cleared_by_the_run_around_it(proctor):
    script = f"{proctor.path} run -q --exact cgroup sh -c 'kill -9 $PPID'; sleep 0.2"
    assert proctor.run("-q", "--exact", "cgroup", "sh", "-c", script).returncode == 0


def test_a_group_that_the_job_made_stays(proctor):
    """It is not ours to remove, and nothing is wrong with the record."""
    script = "d=$(sed -n 's/^0:://p' /proc/self/cgroup); mkdir " + str(TOP) + "/unified$d/theirs && echo $d"
    if not (TOP / "unified").exists():
        skip_visibly("no hierarchy of version 2 beside those of version 1")
    done = proctor.run("-q", "--strict", "--exact", "cgroup", "sh", "-c", script)
    group = TOP / "unified" / done.stdout.strip().lstrip("/")
    try:
        assert done.returncode == 0 and done.stderr == "" and group.exists()
    finally:
        (group / "theirs").rmdir()
        group.rmdir()


# --- where it cannot be ---------------------------------------------------------------------------

READ_ONLY = "for m in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts); do mount -o remount,bind,ro $m; done; exec \"$@\""
NO_V2 = "umount $(awk '$3 == \"cgroup2\" {print $2}' /proc/mounts); exec \"$@\""


def changed(proctor, script, *words):
    """proctor run in a mount namespace of its own, after a script."""
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", proctor.path, "run", "-q",
                           "--summary", str(proctor.summary_file), *map(str, words)],
                          capture_output=True, text=True, timeout=60, **proctor.options({}))
    return done, proctor.summary() if proctor.summary_file.exists() else None


def test_on_a_read_only_file_system(proctor):
    done, _ = changed(proctor, READ_ONLY, "--exact", "cgroup", "touch", "started")
    assert done.returncode == 125 and not (proctor.work / "started").exists()
    assert "--exact cgroup" in done.stderr and "Read-only" in done.stderr and "writable" in done.stderr
    done, summary = changed(proctor, READ_ONLY, "true")
    assert done.returncode == 0 and done.stderr == "" and "perf" in summary["accounting"]["cpu"]["source"]


@pytest.mark.parametrize("kind", ["waited", "ignored"])
def test_with_version_1_alone(proctor, jobs, kind):
    done, summary = changed(proctor, NO_V2, "--exact", "cgroup", jobs / "family", kind, 20, 20000)
    used, metrics = float(done.stdout.split()[1]), summary["metrics"]
    assert 0.99 * used <= metrics["cpu.time"]["total"] <= 1.01 * used + 0.02
    assert metrics["cpu.user"]["total"] + metrics["cpu.system"]["total"] == \
        pytest.approx(metrics["cpu.time"]["total"], rel=0.05)
    assert summary["accounting"]["cpu"]["complete"] is True
    _, summary = changed(proctor, NO_V2, "true")
    assert "perf" in summary["accounting"]["cpu"]["source"], "auto does not wait for a move"


@pytest.mark.parametrize("how, why, remedy", [("cgroup", "Permission denied", "root"),
                                              ("taskstats", "not permitted", "CAP_NET_ADMIN")])
def test_a_user_is_refused_before_the_job_starts(proctor, how, why, remedy):
    done = as_nobody(proctor, "--exact", how, "echo", "started")
    assert done.returncode == 125 and done.stdout == ""
    assert f"--exact {how}" in done.stderr and why in done.stderr and remedy in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_user_with_a_manager_is_told_of_it(proctor, public):
    (public / "systemd").mkdir()
    (public / "systemd" / "private").touch()
    done = as_nobody(proctor, "--exact", "cgroup", "true", env={"XDG_RUNTIME_DIR": str(public)})
    assert done.returncode == 125 and "systemd-run --user --scope -p Delegate=yes" in done.stderr


@pytest.mark.parametrize("how", ["auto", "perf"])
def test_a_user_has_perf(proctor, public, how):
    done = as_nobody(proctor, "--exact", how, "--summary", "-", public / "family", "unseen", 100, 5000)
    text = done.stdout[done.stdout.index("{"):]
    summary = json.loads(text[:text.rindex("}") + 1])
    used = float(re.search(r"cpu ([\d.]+)", done.stdout).group(1))
    assert "perf" in summary["accounting"]["cpu"]["source"]
    assert 0.9 * used <= summary["metrics"]["cpu.time"]["total"] <= 1.05 * used + 0.01


def test_a_user_in_a_group_of_his_own_has_a_group(proctor, outer, public):
    group = outer("")
    for path in (group, group / "cgroup.procs"):
        os.chown(path, 65534, 65534)
    command = f"echo $$ > {group}/cgroup.procs; cd /; exec setpriv --reuid 65534 --regid 65534 --clear-groups " \
              f"{proctor.path} run -q --summary - {public}/family ignored 5 20000"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, **proctor.options({}))
    assert done.returncode == 0 and '"source": "a cgroup made for the run' in done.stdout, done.stderr
    assert list(group.glob(OURS)) == []


def test_without_records_in_a_pid_namespace(proctor):
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", proctor.path, "run", "-q", "--exact",
                           "taskstats", "true"], capture_output=True, text=True, **proctor.options({}))
    assert done.returncode == 125 and "namespace" in done.stderr


@pytest.mark.parametrize("command", ["attach", "system"])
def test_it_is_for_run_alone(proctor, command):
    words = [command, "--exact", "cgroup", "--duration", "50ms", *(["1"] if command == "attach" else [])]
    done = proctor(*words)
    assert done.returncode == 2 and "cgroup" in done.stderr and "proctor run" in done.stderr
    assert proctor(*[w if w != "cgroup" else "auto" for w in words]).returncode == 0
    assert proctor(command, *words[3:], env={"PROCTOR_EXACT": "perf"}).returncode == 0


def test_the_doctor_agrees(proctor):
    for options in ({}, NOBODY):
        text = proctor("doctor", cwd="/", **options).stdout
        for how in ("cgroup", "perf", "taskstats"):
            state, = re.findall(rf"^  (\w+) +`run --exact {how}`", text, re.M)
            done = proctor("run", "-q", "--exact", how, "true", cwd="/", **options)
            assert (state == "yes") == (done.returncode == 0), how


# --- cost -----------------------------------------------------------------------------------------

def test_auto_does_not_wait(proctor):
    """A group costs some tenths of a millisecond; moving a process would cost 15 ms the first time."""
    def best(how):
        times = []
        for _ in range(15):
            began = time.perf_counter()
            proctor.run("-q", "--no-record", "--exact", how, "true")
            times.append(time.perf_counter() - began)
        return min(times)
    assert best("auto") < best("none") + 0.005


# --- a scope of systemd ---------------------------------------------------------------------------

SYSTEMD_RUN = """#!/usr/bin/python3
import os, socket, sys
words = sys.argv[1:]
at = words.index("--")
assert words[:at] == ["--user", "--scope", "--quiet", "-p", "Delegate=yes"], words
with socket.socket(socket.AF_UNIX) as manager:
    manager.connect(os.environ["XDG_RUNTIME_DIR"] + "/manager")
    manager.send(str(os.getpid()).encode())
    if manager.recv(16) != b"done":
        sys.exit(1)
os.execvp(words[at + 1], words[at + 1:])
"""


@pytest.fixture
def user_systemd(public, outer):
    """What systemd-run and a user's systemd do: a process asks, and finds itself in a group that it may
    make others in. Without an answer systemd-run fails. (path of the tool, requests, whether it answers)"""
    scope = outer("") / "scope"
    scope.mkdir()
    for path in (scope, scope / "cgroup.procs", scope / "cgroup.subtree_control"):
        os.chown(path, 65534, 65534)
    tool = public / "systemd-run"
    tool.write_text(SYSTEMD_RUN)
    tool.chmod(0o755)
    requests, willing = [], [True]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(public / "manager"))
    (public / "manager").chmod(0o777)
    listener.listen()

    def serve():
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            with line:
                requests.append(int(line.recv(16)))
                if willing[0]:
                    (scope / "cgroup.procs").write_text(str(requests[-1]))
                line.send(b"done" if willing[0] else b"no")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield public, requests, willing
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()
    wait_until(lambda: not (scope / "cgroup.procs").read_text(), "the scope to be empty")
    scope.rmdir()


def with_systemd(folder):
    return {"env": {"XDG_RUNTIME_DIR": str(folder), "PATH": f"{folder}:{os.environ['PATH']}"}}


def test_a_scope_of_the_user_s_systemd(proctor, user_systemd):
    """An ordinary user gets a group of systemd, and with it the account of children that nobody waits for."""
    folder, requests, _ = user_systemd
    done = as_nobody(proctor, "--no-record", "--exact", "cgroup", "--summary", "-", "sh", "-c",
                     f"env | grep PROCTOR; exec {folder}/family unseen 40 25000", **with_systemd(folder))
    assert done.returncode == 0 and done.stderr == ""
    said, summary = done.stdout.split("{", 1)
    assert {line.split("=")[0] for line in said.splitlines() if "PROCTOR" in line} == \
        {"PROCTOR_RUN_ID", "PROCTOR_SOCKET"}
    account = json.loads("{" + summary)["accounting"]["cpu"]
    assert "cgroup" in account["source"] and account["complete"] is True and account["residual"] < -0.5
    assert len(requests) == 2  # tried out once


def test_a_systemd_run_that_hangs_is_not_waited_for(proctor, public):
    tool = public / "systemd-run"
    tool.write_text(f"#!/bin/sh\necho $$ >> {public}/hanging\nexec sleep 1000\n")
    tool.chmod(0o755)
    (public / "hanging").touch()
    (public / "hanging").chmod(0o666)
    began = time.monotonic()
    done = as_nobody(proctor, "--exact", "cgroup", "sh", "-c", "echo started", timeout=30, **with_systemd(public))
    assert 1.9 < time.monotonic() - began < 4 * SLACK
    assert done.returncode == 125 and done.stdout == "" and "--exact cgroup: cannot make a cgroup" in done.stderr
    (pid,) = (public / "hanging").read_text().split()
    assert not os.path.exists(f"/proc/{pid}")


def test_a_systemd_that_does_not_answer(proctor, user_systemd):
    folder, requests, willing = user_systemd
    willing[0] = False
    done = as_nobody(proctor, "--exact", "cgroup", "sh", "-c", "echo started", **with_systemd(folder))
    assert done.returncode == 125 and done.stdout == "" and "--exact cgroup: cannot make a cgroup" in done.stderr
    assert len(requests) == 1
    done = as_nobody(proctor, "sh", "-c", "echo started", **with_systemd(folder))
    assert done.returncode == 0 and len(requests) == 1  # nobody asked for a group


def test_a_group_of_the_run_counts_from_its_making(proctor):
    """Also what was used before the first sample."""
    _, summary = proctor.recorded("--exact", "cgroup", "--", "sh", "-c", "sleep 0.1")
    total = {key: summary["metrics"][key]["total"] for key in ("cpu.cgroup", "cpu.time")}
    assert total["cpu.cgroup"] == pytest.approx(total["cpu.time"], abs=2e-4), total
