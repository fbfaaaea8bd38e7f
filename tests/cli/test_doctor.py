# SPDX-License-Identifier: Apache-2.0
"""`proctor doctor` says what a recording would find: as root, as a user, in a container."""
import os
import re
import subprocess

import pytest

from proctor_cli import HERE

FIXTURES = HERE.parent / "fixtures"
# What it is called there, and a metric that a recording has or has not by the same source.
ROWS = {"CPU time of the machine, per core": "system.cpu.idle", "load and processes": "system.load1",
        "memory and swap": "system.mem.available", "disks": "system.disk.read", "file systems": "system.disk.space.total",
        "network interfaces": "system.net.rx", "pressure (PSI)": "system.psi.cpu",
        "CPU time of this cgroup": "cpu.cgroup", "memory of this cgroup": "mem.cgroup", "energy of the CPUs": "energy",
        "GPUs": "gpu.usage", "network bytes of a job": "net.rx"}


def examine(proctor, *args, prefix=(), **options):
    """Section -> what -> (state, how, remedy)."""
    done = proctor(*args, **options) if not prefix else run_behind(proctor, prefix, *args)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found, section, what = {}, None, None
    for line in done.stdout.splitlines()[2:]:
        entry = re.match(r"  (yes|part|no) +(.{36}) (.*)", line)
        if entry:
            what = entry[2].strip()
            found[section][what] = (entry[1], entry[3], None)
        elif line.strip().startswith("-> "):
            found[section][what] = (*found[section][what][:2], line.strip()[3:])
        elif line:
            section = line
            found[section] = {}
    return done.stdout, found


def run_behind(proctor, prefix, *args):
    return subprocess.run([*prefix, proctor.path, *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, **proctor.options({}))


def test_it_says_what_a_recording_finds(proctor):
    _, found = examine(proctor, "doctor")
    _, summary = proctor.recorded("--exact", "none", "-i", "50ms", "sleep", "0.2")  # where we are ourselves
    for what, metric in ROWS.items():
        state, how, _ = found["the machine"][what]
        assert (state == "yes") == (metric in summary["metrics"]), (what, how)
    for what, (state, how, remedy) in found["the machine"].items():
        assert what in ROWS and len(how) > 3
    own = found["your own processes"]
    assert all(state == "yes" for state, _, _ in own.values()), own
    assert found["the account of a job"]["children that end between samples"][0] == "yes"


def test_where_and_what_may_be_used(proctor):
    text, _ = examine(proctor, "doctor")
    first, second = text.splitlines()[:2]
    assert os.uname().release in first and "user root (0)" in first
    assert re.search(r"what a job may use: [\d.]+ cores? \(.+\), [\d.]+ \w+ \(.+\)", second)


def test_as_a_user(proctor):
    _, found = examine(proctor, "doctor", prefix=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])
    others = found["processes of other users"]
    assert others["CPU time, threads, page faults"][0] == "yes"
    for what in ("PSS and USS: shared memory divided", "bytes read and written"):
        state, how, remedy = others[what]
        assert state == "no" and "denied" in how and "sudo" in remedy
    assert all(state == "yes" for state, _, _ in found["your own processes"].values())


def test_in_a_container(proctor):
    text, found = examine(proctor, "doctor", prefix=["unshare", "--pid", "--fork", "--mount-proc", "--net", "--ipc"])
    assert found["the machine"]["network interfaces"][:2] == ("no", "/proc/net/dev: it has no interface but lo")
    assert found["the machine"]["memory and swap"][0] == "yes"
    assert all(state == "yes" for state, _, _ in found["your own processes"].values())


def test_hidden_processes_and_half_a_proc(proctor):
    mount = "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\""
    _, found = examine(proctor, "doctor", prefix=["unshare", "-m", "sh", "-c", mount, "sh"])
    state, how, remedy = found["the account of a job"]["seeing other users' processes"]
    assert state == "no" and "hidepid" in how and "root" in remedy
    mount = "mount -t proc -o subset=pid proc /proc && exec \"$@\""
    _, found = examine(proctor, "doctor", prefix=["unshare", "-m", "sh", "-c", mount, "sh"])
    assert found["the account of a job"]["figures of the machine"][0] == "no"
    assert found["the account of a job"]["finding new processes"][0] == "part"
    state, how, _ = found["the machine"]["memory and swap"]
    assert state == "no" and "meminfo" in how


def test_under_another_root(proctor):
    _, found = examine(proctor, "doctor", "--root", FIXTURES / "cpus-64")
    assert found["the machine"]["CPU time of the machine, per core"][0] == "yes"
    assert found["the machine"]["pressure (PSI)"][0] == "no"
    assert "CONFIG_PSI" in found["the machine"]["pressure (PSI)"][1]


def test_wrong_usage(proctor):
    done = proctor("doctor", "--root", "/no/such/place")
    assert done.returncode == 2 and "/no/such/place" in done.stderr and done.stdout == ""
    done = proctor("doctor", "who")
    assert done.returncode == 2 and "'who'" in done.stderr


@pytest.mark.parametrize("options, env, colored", [([], {}, False), (["--color", "always"], {}, True),
                                                   (["--color", "never"], {}, False),
                                                   ([], {"NO_COLOR": "1"}, False)])
def test_colours(proctor, options, env, colored):
    assert ("\033[" in proctor("doctor", *options, env=env).stdout) == colored


def test_little_room_for_descriptors_is_said(proctor):
    done = run_behind(proctor, ["prlimit", "--nofile=64:64"], "doctor")
    assert done.returncode == 0
    line = next(line for line in done.stdout.splitlines() if "cheap sampling" in line)
    assert " part " in line and "hard limit 64" in line
