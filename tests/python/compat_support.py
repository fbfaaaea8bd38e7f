# SPDX-License-Identifier: Apache-2.0
"""What the tests of proctor.compat share."""
import subprocess
import sys
import textwrap
import time

from pythons import BUILD, PLACES, PYTHONS, ROOT, clean_environment, skip_visibly

GOLDEN = ROOT / "tests" / "golden" / "dialects"
sys.path.insert(0, str(ROOT / "python"))


def with_gpus(folder, script):
    """An environment in which the driver's library says what the script has (tests/fake_nvml)."""
    library = BUILD / "tests" / "fake_nvml"
    if not (library / "libnvidia-ml.so.1").exists():
        skip_visibly("this build has no tests/fake_nvml: meson setup -Dtests=enabled")
    (folder / "nvml").write_text(script)
    return clean_environment(folder, **PLACES, LD_LIBRARY_PATH=str(library), FAKE_NVML=str(folder / "nvml"))


def burn(seconds):
    """Uses so much CPU time in this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))


# A child that gets the pid of one that has gone. In a namespace of one's own nobody else takes it.
AGAIN = """
import os, time
def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid
def child_with_pid(pid, work):
    with open("/proc/sys/kernel/ns_last_pid", "w") as f: f.write(str(pid - 1))
    made = child(work)
    assert made == pid, (made, pid)
def burn(seconds):
    while time.process_time() < seconds: pass
"""


def in_pid_namespace(folder, text):
    """A script that is process 1 of its own pid namespace, and can have pids used again."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    probe = subprocess.run([*unshare, "sh", "-c", "echo 100 > /proc/sys/kernel/ns_last_pid"], capture_output=True, text=True)
    if probe.returncode:
        skip_visibly(f"unshare --pid: {probe.stderr.strip()}")
    done = subprocess.run([*unshare, PYTHONS["debian"], "-c", AGAIN + textwrap.dedent(text)], cwd=folder, timeout=60,
                          capture_output=True, text=True, env=clean_environment(folder, **PLACES))
    assert done.returncode == 0, done.stdout + done.stderr


def a_tracked_run():
    """A run of resource-tracker's class that many tests look at: a child, 0.6 s of CPU, 60 MiB."""
    from proctor.compat.resource_tracker import ResourceTracker
    with ResourceTracker(interval=0.5) as tracker:
        child = subprocess.Popen(["sleep", "1.2"])
        memory = bytearray(b"1") * (60 << 20)
        burn(0.6)
        child.wait()
        assert len(memory) == 60 << 20
    return tracker


def dead_pid():
    """Of a process that has gone."""
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid
