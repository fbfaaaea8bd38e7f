# SPDX-License-Identifier: Apache-2.0
"""Phases and marks: what a job says about itself, and what anybody else may do to the socket."""
import json
import os
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from proctor_cli import PROCTOR, SLACK, cpu_of, finish, problems, said, skip_visibly, wait_until

BURN = """
import sys, time
from time import process_time
end = process_time() + float(sys.argv[1])
while process_time() < end: pass
print(process_time())
"""


@pytest.fixture
def proctor(proctor):
    """`proctor` alone is in PATH, as a job would have it."""
    folder = proctor.folder / "bin"
    folder.mkdir()
    (folder / "proctor").symlink_to(PROCTOR)
    proctor.env["PATH"] = f"{folder}:{proctor.env['PATH']}"
    (proctor.work / "burn.py").write_text(BURN)
    return proctor


def shell(proctor, script, *options, **kw):
    """A job in sh: (what it printed, the summary)."""
    done, summary = proctor.recorded(*options, "sh", "-c", script, **kw)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout, summary


def phases(summary):
    return {p["name"]: p for p in summary["phases"]}


def total(phase, key="cpu.time"):
    return phase["metrics"][key]["total"]


def started(proctor, *options):
    """A run that waits, and the path of its socket."""
    process = proctor.start("run", "-q", "--summary", proctor.summary_file, *options, "sh", "-c",
                            "echo $PROCTOR_SOCKET; exec sleep 1000")
    path = process.stdout.readline().decode().strip()
    assert path
    return process, path


def ended(proctor, process):
    process.send_signal(signal.SIGTERM)
    process.wait(20 * SLACK)
    return proctor.summary()


def connected(path):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(path)  # waits where many have come before
    patience = struct.pack("ll", 10 * SLACK, 0)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, patience)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
    return client


def asked(client, line):
    client.sendall(line)
    return client.recv(3)


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- what they count ------------------------------------------------------------------------------

def test_a_phase_has_the_use_of_its_command_and_of_nothing_else(proctor):
    out, summary = shell(proctor, f"""
        {sys.executable} burn.py 0.2
        proctor phase work -- {sys.executable} burn.py 0.5
        {sys.executable} burn.py 0.2""", "-i", "10s")
    own = [float(line) for line in out.split()]
    work = phases(summary)["work"]
    # What `proctor phase` used before it asked is of the same process, and not of the phase.
    assert own[1] - 0.005 * SLACK < total(work) < own[1] + 0.05 * SLACK
    assert work["exact"] and not work["left_open"] and work["depth"] == 0 and work["instances"] == 1
    assert work["start"] > own[0] * 0.9 and 0.45 < work["seconds"] < 2 * SLACK
    assert total(work) < summary["metrics"]["cpu.time"]["total"] - 0.35
    assert work["metrics"]["cpu.usage"]["mean"] == pytest.approx(total(work) / work["seconds"], rel=0.1)
    assert work["metrics"]["mem.rss"]["peak"] > 1e6


def test_phases_nest_and_each_has_its_own_account(proctor):
    _, summary = shell(proctor, f"""
        proctor phase begin outer
        proctor phase one -- {sys.executable} burn.py 0.2
        proctor phase begin two
        {sys.executable} burn.py 0.3
        proctor phase begin inside
        proctor phase end outer
        proctor phase begin open
        {sys.executable} burn.py 0.1""", "-i", "50ms")
    found = phases(summary)
    assert {n: p["depth"] for n, p in found.items()} == \
        {"outer": 0, "one": 1, "two": 1, "inside": 2, "open": 0}
    assert {n for n, p in found.items() if p["left_open"]} == {"open"}
    assert total(found["one"]) == pytest.approx(0.22, abs=0.06 * SLACK)
    assert total(found["two"]) == pytest.approx(0.32, abs=0.06 * SLACK)
    assert total(found["open"]) == pytest.approx(0.12, abs=0.06 * SLACK)
    assert total(found["outer"]) >= total(found["one"]) + total(found["two"]) - 0.001
    outer, inside = found["outer"], found["inside"]
    assert outer["start"] + outer["seconds"] == pytest.approx(inside["start"] + inside["seconds"])


def test_commands_side_by_side_end_each_with_its_own(proctor):
    _, summary = shell(proctor, "proctor phase short -- sleep 0.2 & sleep 0.05; "
                                "proctor phase long -- sleep 0.5 & wait")
    found = phases(summary)
    assert 0.19 < found["short"]["seconds"] < 0.4 * SLACK
    assert 0.49 < found["long"]["seconds"] < 0.8 * SLACK


def test_a_peak_is_that_of_its_phase(proctor):
    code = "x = bytearray(100 << 20); import time; time.sleep(0.05)"
    _, summary = shell(proctor, f"""
        proctor phase large -- {sys.executable} -c '{code}'
        proctor phase small -- sleep 0.05""", "-i", "10ms")
    found = phases(summary)
    assert found["large"]["metrics"]["mem.rss"]["peak"] > 100 << 20
    assert found["small"]["metrics"]["mem.rss"]["peak"] < 50 << 20
    assert found["large"]["metrics"]["mem.rss.peak"]["peak"] > 100 << 20
    assert "mem.rss.peak" not in found["small"]["metrics"], "a mark of before is not of this phase"


def test_a_peak_of_its_two_ends_alone_is_marked(proctor):
    """What was held between them is in no sample."""
    code = "x = bytearray(50 << 20); del x"
    _, fine = shell(proctor, "proctor phase seen -- sleep 0.5", "-i", "100ms")
    _, coarse = shell(proctor, f"proctor phase unseen -- {sys.executable} -c '{code}'", "-i", "10s")
    few = "known in few samples"
    unseen, seen = phases(coarse)["unseen"]["metrics"], phases(fine)["seen"]["metrics"]
    assert unseen["mem.rss"]["peak"] < 50 << 20, "it has been seen"
    assert unseen["mem.rss"]["mark"] == unseen["mem.vms"]["mark"] == few
    assert unseen.get("mem.ratio", {"mark": few})["mark"] == few  # of PSS, which may be in neither
    assert "mark" not in seen["mem.rss"] and "mark" not in unseen["cpu.time"]
    assert all(v.get("mark") != few for k, v in unseen.items() if not k.startswith("mem.") or k.endswith(".peak"))


def test_a_command_of_some_milliseconds_is_all_in_its_phase(proctor):
    """It ends while its end is being looked at: between two processes' files it is in neither."""
    _, summary = shell(proctor, "i=0; while [ $i -lt 20 ]; do i=$((i+1)); "
                                "proctor phase p -- dd if=/dev/zero of=x bs=1M count=10 2>/dev/null; sleep 0.11; done")
    written = [p["metrics"]["io.wchar"]["total"] for p in summary["phases"]]
    assert len(written) == 20 and all(p["exact"] for p in summary["phases"])
    assert min(written) >= 10 << 20 and max(written) < 11 << 20


def test_the_same_name_again_and_an_end_without_a_begin(proctor):
    _, summary = shell(proctor, "for i in 1 2 3; do proctor phase a -- true; done; proctor phase end a")
    assert [p["name"] for p in summary["phases"]] == ["a"] * 3
    assert summary["annotations"] == {"phases": 3, "marks": 0, "refused": 1}
    (event,) = [e for e in summary["events"] if e["type"] == "socket"]
    assert "not open" in event["text"]


def test_the_machine_has_phases_too(proctor):
    process = proctor.start("system", "-v", "-i", "50ms", "--budget", "100%", "--summary", proctor.summary_file)
    os.set_blocking(process.stderr.fileno(), True)
    line = process.stderr.readline().decode()
    path = line.split("PROCTOR_SOCKET=")[1].strip()
    done = proctor("phase", "busy", "--", sys.executable, "burn.py", "0.3",
                   env={"PROCTOR_SOCKET": path})
    assert done.returncode == 0
    summary = ended(proctor, process)
    busy = phases(summary)["busy"]
    assert total(busy, "system.cpu.user") + total(busy, "system.cpu.system") > 0.2
    assert not Path(path).exists()


# --- as others see it -----------------------------------------------------------------------------

def test_lines_of_json_as_it_happens(proctor):
    process = proctor.start("run", "-q", "-i", "100s", "--jsonl", "a.jsonl", "sh", "-c",
                            "proctor mark m n=1 f=-2.5e3 t=true z=null s=text x=0x1 e= e2=a=b n=2; "
                            "proctor phase p -- true; proctor mark empty; exec sleep 1000")
    path = proctor.work / "a.jsonl"
    wait_until(lambda: path.exists() and '"empty"' in path.read_text(), "the marks, long before the next sample")
    lines = lines_of(path)
    first, last = [line for line in lines if line.get("event") == "mark"]
    assert (first["type"], first["name"]) == ("event", "m") and last["data"] == {}
    assert first["data"] == {"n": 2, "f": -2500, "t": True, "z": None, "s": "text", "x": "0x1",
                             "e": "", "e2": "a=b"}
    (phase,) = [line for line in lines if line["type"] == "phase"]
    assert phase["name"] == "p" and phase["depth"] == 0
    assert phase["elapsed"] == pytest.approx(phase["start"] + phase["seconds"])
    assert phase["metrics"]["cpu.time"]["total"] >= 0 and phase["time"] >= first["time"]
    process.terminate()
    process.wait(20 * SLACK)


def test_the_summary_has_marks_among_its_events(proctor):
    _, summary = shell(proctor, "proctor mark 'a b' k=v")
    (mark,) = [e for e in summary["events"] if e["type"] == "mark"]
    assert mark["name"] == "a b" and mark["data"] == {"k": "v"} and mark["at"] > 0
    assert summary["events_total"] == 1 and summary["annotations"]["marks"] == 1


def test_one_line_on_the_screen(proctor):
    done = proctor.run("sh", "-c", "for i in 1 2 3 4 5 6; do proctor phase p$i -- sleep 0.0$i; done; "
                                   "proctor phase '%s\u00e9 and a name that is longer than what is shown of it' -- sleep 0.1")
    (line,) = [line for line in done.stderr.splitlines() if line.split()[0] == "phases"]
    assert "%s\u00e9 and a name that... 1" in line
    assert line.count(";") == 4 and "(7 in all)" in line and "p6 " in line and "p1 " not in line
    assert "CPU" in line and "peak" not in line and len(line) < 300, "two ends have no peak"
    done = proctor.run("-i", "20ms", "sh", "-c", "proctor phase long -- sleep 0.3")
    (line,) = [line for line in done.stderr.splitlines() if line.split()[0] == "phases"]
    assert "peak" in line
    assert "phases" not in proctor.run("true").stderr


# --- what a shell sees ----------------------------------------------------------------------------

INSIDE = pytest.mark.parametrize("inside", [False, True], ids=["outside a run", "inside"])


def either(proctor, inside, *words, **kw):
    return proctor.run("-q", PROCTOR, *words, **kw) if inside else proctor(*words, **kw)


@INSIDE
@pytest.mark.parametrize("words, status", [
    (["sh", "-c", "exit 7"], 7), (["true"], 0), (["./no-such"], 127), (["no-such"], 127), (["/"], 126),
    (["sh", "-c", "kill -TERM $$"], -signal.SIGTERM), (["sh", "-c", "kill -KILL $$"], -signal.SIGKILL)])
def test_exit_status_and_signals_pass_through(proctor, inside, words, status):
    done = either(proctor, inside, "phase", "p", "--", *words)
    assert done.returncode == status
    assert bool(done.stderr) == (status in (126, 127))


@INSIDE
def test_standard_streams_and_arguments_pass_through(proctor, inside):
    done = either(proctor, inside, "phase", "begin", "--", "sh", "-c", 'cat; echo "$@" >&2', "sh",
                  "a b", "--", "-x", input="in")
    assert (done.returncode, done.stdout, done.stderr) == (0, "in", "a b -- -x\n")


def test_nothing_stands_between_the_command_and_its_parent(proctor):
    out, _ = shell(proctor, "proctor phase p -- sh -c 'echo $$ $PPID; ls -l /proc/self/fd | grep -c socket' >a & "
                            "echo $! $$; wait; cat a")
    ours, its, sockets = out.splitlines()
    assert ours == its, "the command is another process than the one that was started"
    assert sockets == "0", "the command has inherited a socket"


@pytest.mark.parametrize("words", [["phase", "begin", "x"], ["phase", "end", "x"], ["mark", "x", "a=1"]],
                         ids=lambda w: " ".join(w))
@pytest.mark.parametrize("path", [None, "", "/no/such", "x" * 200])
def test_outside_a_run_nothing_happens(proctor, words, path):
    done = proctor(*words, env={} if path is None else {"PROCTOR_SOCKET": path})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("words", [["phase"], ["phase", "x"], ["phase", "x", "true"], ["phase", "x", "--"],
                                   ["phase", "begin"], ["phase", "--", "true"], ["phase", "begin", "a", "b"],
                                   ["phase", "begin", ""], ["phase", "a\nb", "--", "true"],
                                   ["phase", "end", "x" * 201], ["mark"], ["mark", ""], ["mark", "x", "alone"],
                                   ["mark", "x", "=1"], ["mark", "x", "a=" + "y" * 5000]],
                         ids=lambda w: " ".join(w)[:20])
def test_wrong_usage_is_2_and_one_line(proctor, words):
    done = proctor(*words)
    assert done.returncode == 2 and len(said(done.stderr)) == 1 and done.stdout == ""


@pytest.mark.parametrize("words", [["phase", "--help"], ["mark", "-h"]])
def test_help(proctor, words):
    done = proctor(*words)
    assert done.returncode == 0 and "usage: proctor " + words[0] in done.stdout


def test_they_are_quick(proctor):
    """Some milliseconds for the two, of which a sample at each end is the most."""
    _, summary = shell(proctor, "i=0; proctor phase begin all; while [ $i -lt 50 ]; do i=$((i+1)); "
                                "proctor mark m; done; proctor phase end all")
    assert phases(summary)["all"]["seconds"] / 50 < 0.015 * SLACK
    assert summary["annotations"]["marks"] == 50


# --- the socket -----------------------------------------------------------------------------------

@pytest.mark.parametrize("umask, there", [(0, None), (0o277, None), (0o777, None), (0o277, 0o700), (0, 0o500)],
                         ids=lambda mode: mode if mode is None else oct(mode))
def test_where_it_is_and_who_may_use_it(proctor, umask, there):
    """Whatever the umask takes, or has taken in an earlier run, from the directory: its owner's bits are given back."""
    runtime = Path("/tmp") / f"pr{os.getpid()}"
    runtime.mkdir(mode=0o700)
    if there is not None:
        (runtime / "proctor").mkdir()
        (runtime / "proctor").chmod(there)
    try:
        process = proctor.start("run", "-q", "--run-id", "mine", "--no-record", "--summary",
                                proctor.summary_file, "sh", "-c",
                                "echo $PROCTOR_SOCKET; exec sleep 1000", env={"XDG_RUNTIME_DIR": str(runtime)},
                                preexec_fn=lambda: os.umask(umask))
        path = Path(process.stdout.readline().decode().strip())
        assert path == runtime / "proctor" / "mine.sock"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        ended(proctor, process)
        assert not path.exists()
    finally:
        shutil.rmtree(runtime)


@pytest.mark.parametrize("mode", [0o700, 0o500], ids=oct)
def test_another_place_where_the_file_system_is_read_only(proctor, mode):
    """There is a directory of ours, but no socket can be made in it, nor can it be changed."""
    temporary = Path("/tmp") / f"pr{os.getpid()}"  # short: a socket's path has room for little
    temporary.mkdir(mode=0o700)
    place = temporary / "r"
    place.mkdir()
    env = {"XDG_RUNTIME_DIR": str(place), "TMPDIR": str(temporary)}
    try:
        done = subprocess.run(["unshare", "--mount", "sh", "-c",
                               f"mount -t tmpfs -o mode=700 none {place} && mkdir -m {mode:o} {place}/proctor && "
                               f"mount -o remount,ro {place} && exec proctor run -q --no-record --summary - "
                               "sh -c 'echo $PROCTOR_SOCKET >&2; proctor mark m'"],
                              capture_output=True, text=True, timeout=60, **proctor.options({"env": env}))
        if "unshare" in done.stderr or "mount" in done.stderr:
            skip_visibly(done.stderr.strip())
        assert done.stderr.startswith(f"{temporary}/proctor-{os.getuid()}/proctor/"), done.stderr
        assert json.loads(done.stdout)["annotations"]["marks"] == 1
    finally:
        shutil.rmtree(temporary)


def test_without_a_runtime_directory_it_is_in_a_private_one(proctor):
    temporary = proctor.folder / "t"
    temporary.mkdir()
    out, _ = shell(proctor, "stat -c %a $PROCTOR_SOCKET ${PROCTOR_SOCKET%/*} ${PROCTOR_SOCKET%/proctor/*}; "
                            "echo $PROCTOR_SOCKET", env={"TMPDIR": str(temporary)})
    *modes, path = out.split()
    assert modes == ["600", "700", "700"]
    if len(str(temporary)) < 40:
        assert path.startswith(f"{temporary}/proctor-{os.getuid()}/proctor/")


@pytest.mark.parametrize("env", [{"XDG_RUNTIME_DIR": "/" + "x" * 150}, {"TMPDIR": "/" + "x" * 150},
                                 {"XDG_RUNTIME_DIR": "relative"}, {"XDG_RUNTIME_DIR": "/proc"}],
                         ids=["long", "long temporary", "relative", "not writable"])
def test_another_place_where_one_cannot_be_used(proctor, env):
    out, summary = shell(proctor, "echo $PROCTOR_SOCKET; proctor mark m", env=env)
    assert out.startswith("/") and summary["annotations"]["marks"] == 1


def test_failing_to_make_it_is_an_event_and_nothing_else(proctor):
    """A directory of somebody else's where ours would be."""
    if os.getuid() != 0:
        skip_visibly("needs root to give a directory away")
    place = proctor.folder / "t"
    (place / "proctor-0").mkdir(parents=True)
    os.chown(place / "proctor-0", 65534, 65534)
    shutil.copy(PROCTOR, place / "proctor")
    # In a mount namespace of its own, /tmp is that place.
    done = subprocess.run(["unshare", "--mount", "sh", "-c",
                           f"mount --bind {place} /tmp && cd / && "
                           "exec /tmp/proctor run -v --summary - sh -c '/tmp/proctor mark m >&2; env >&2'"],
                          env=proctor.env, capture_output=True, text=True)
    if "unshare" in done.stderr or "mount" in done.stderr:
        skip_visibly(done.stderr.strip())
    assert done.returncode == 0 and "PROCTOR_SOCKET=" not in done.stderr
    assert "no socket could be made" in done.stderr
    (event,) = [e for e in json.loads(done.stdout)["events"] if e["type"] == "socket"]
    assert "no socket could be made" in event["text"]


def test_where_few_files_may_be_open_samples_come_first(proctor):
    few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))}
    done, summary = proctor.recorded("sh", "-c", "env", **few)
    assert done.returncode == 0 and "PROCTOR_SOCKET" not in done.stdout
    assert "socket" not in proctor.run("true", **few).stderr and "no socket" in proctor.run("-v", "true", **few).stderr
    assert [e["type"] for e in summary["events"]] == ["socket"] and summary["metrics"]["cpu.time"]["total"] > 0


def test_who_cannot_be_let_in_costs_nothing(proctor):
    """No descriptor is left for who connects: that is looked at again at times, not all the time."""
    process, path = started(proctor, "-i", "10s")
    before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    client = connected(path)
    client.sendall(b"mark let in\n")
    time.sleep(0.2)
    used = cpu_of(process.pid)
    time.sleep(1)
    used = cpu_of(process.pid) - used
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before)
    assert client.recv(3) == b"ok\n" and used < 0.1 * SLACK, used
    assert ended(proctor, process)["annotations"]["marks"] == 1


def test_the_job_inherits_nothing_of_it(proctor):
    out, _ = shell(proctor, "ls -l /proc/self/fd")
    assert "socket" not in out and "eventpoll" not in out and "timerfd" not in out


def test_a_run_inside_a_run_has_its_own(proctor):
    inner = proctor.folder / "inner.json"
    out, summary = shell(proctor, f"""
        proctor phase begin outside; echo $PROCTOR_SOCKET
        proctor run -q --summary {inner} sh -c 'echo $PROCTOR_SOCKET; proctor mark inner; proctor phase in -- true'
        proctor phase end outside; proctor mark outer""")
    first, second = out.split()
    assert first != second
    other = json.loads(inner.read_text())
    assert [e["name"] for e in other["events"] if e["type"] == "mark"] == ["inner"]
    assert [e["name"] for e in summary["events"] if e["type"] == "mark"] == ["outer"]
    assert list(phases(other)) == ["in"] and list(phases(summary)) == ["outside"]


def test_two_recorders_with_one_id(proctor):
    out, _ = shell(proctor, "echo $PROCTOR_SOCKET; proctor run -q --run-id same sh -c 'echo $PROCTOR_SOCKET'",
                   "--run-id", "same")
    first, second = out.split()
    assert first != second and Path(first).name == "same.sock"


@pytest.fixture
def apart(proctor):
    """Sockets where no other recorder tidies."""
    with tempfile.TemporaryDirectory(prefix="proctor-", dir="/tmp") as short:
        proctor.env["XDG_RUNTIME_DIR"] = short
        yield Path(short)


def test_a_killed_recorder_is_not_waited_for_and_its_socket_is_tidied_up(proctor, apart):
    process, path = started(proctor)
    assert Path(path).parent.parent == apart
    job = proctor.job_of(process)
    process.kill()
    process.wait()
    began = time.monotonic()
    done = proctor("phase", "p", "--", "echo", "hello", env={"PROCTOR_SOCKET": path})
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")
    assert proctor("mark", "m", env={"PROCTOR_SOCKET": path}).returncode == 0
    assert time.monotonic() - began < 0.5 * SLACK
    assert Path(path).exists()
    os.utime(path, (time.time() - 60,) * 2)
    began = time.monotonic()
    proctor.run("-q", "true")
    assert Path(path).exists() or time.monotonic() - began > 1  # who is there for a moment does not pay for others
    proctor.run("-q", "sleep", "1.1")
    assert not Path(path).exists()
    os.kill(job, signal.SIGKILL)


def test_a_stuck_recorder_costs_a_moment(proctor):
    process, path = started(proctor)
    process.send_signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        done = proctor("phase", "late", "--", "echo", "hello", env={"PROCTOR_SOCKET": path})
        assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")
        assert 0.2 < time.monotonic() - began < 1 * SLACK
        for _ in range(100):  # more than may wait
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            client.setblocking(False)
            client.connect_ex(path)
            client.close()
        began = time.monotonic()
        assert proctor("mark", "m", env={"PROCTOR_SOCKET": path}).returncode == 0
        assert time.monotonic() - began < 1 * SLACK
    finally:
        process.send_signal(signal.SIGCONT)
    ended(proctor, process)


# --- strangers ------------------------------------------------------------------------------------

GARBAGE = {"noise": os.urandom(4096).replace(b"\n", b"x") + b"\n", "an unknown word": b"shutdown now\n",
           "no name": b"begin \n", "zeros": b"\0" * 100 + b"\n", "bad data": b'mark m\t{"a":}\n',
           "too long": b"mark m\t{\"a\":\"" + b"x" * 100000, "half a line": b"begin hal",
           "deep": b"mark m\t{\"a\":" + b"[" * 2000 + b"\n", "http": b"GET / HTTP/1.1\r\n\r\n"}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_ignored_and_counted(proctor, kind):
    process, path = started(proctor, "-i", "50ms")
    for _ in range(3):
        client = connected(path)
        client.sendall(GARBAGE[kind])
        client.close()
    assert asked(connected(path), b"mark after\n") == b"ok\n"
    summary = ended(proctor, process)
    lines = max(1, GARBAGE[kind].count(b"\n"))
    assert summary["annotations"] == {"phases": 0, "marks": 1, "refused": 3 * lines}
    assert len([e for e in summary["events"] if e["type"] == "socket"]) == 1
    assert not problems(summary) and summary["samples"]["missed"] == 0


@pytest.mark.parametrize("kind", [kind for kind in GARBAGE if kind != "half a line"])
def test_nonsense_does_not_end_a_conversation(proctor, kind):
    process, path = started(proctor)
    client = connected(path)
    lines = GARBAGE[kind] if GARBAGE[kind].endswith(b"\n") else GARBAGE[kind] + b"\n"
    count = lines.count(b"\n")
    for i in range(3):
        client.sendall(lines)
        assert client.recv(3 * count, socket.MSG_WAITALL) == b"no\n" * count
        assert asked(client, b"begin p\n") == b"ok\n" and asked(client, b"end p\n") == b"ok\n"
    assert ended(proctor, process)["annotations"] == {"phases": 3, "marks": 0, "refused": 3 * count}


NONSENSE_C = """
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char line[9000];
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(to.sun_path, getenv("PROCTOR_SOCKET"));
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        return 1;
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\\n';
    for (int i = 0; i < 3; i++) {
        if (write(fd, "nonsense\\n", 9) != 9 || write(fd, line, sizeof line) != sizeof line)
            return 2;
        usleep(50000);
    }
    return 7;
}
"""

NONSENSE_PYTHON = """
import os, signal, socket, sys, time
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["PROCTOR_SOCKET"])
for i in range(3):
    os.write(s.fileno(), b"nonsense\\n")
    assert os.write(s.fileno(), b"x" * 8999 + b"\\n") == 9000
    time.sleep(0.05)
sys.exit(7)
"""


@pytest.mark.parametrize("language", ["c", "python"])
def test_a_job_that_talks_nonsense_lives_on(proctor, language):
    """It does not expect to be hung up on: the next write would kill it."""
    if language == "c":
        (proctor.work / "nonsense.c").write_text(NONSENSE_C)
        subprocess.run(["cc", "-o", "nonsense", "nonsense.c"], cwd=proctor.work, check=True)
    words = ["./nonsense"] if language == "c" else [sys.executable, "-c", NONSENSE_PYTHON]
    done, summary = proctor.recorded(*words)
    assert done.returncode == 7 and summary["exit"]["code"] == 7, done.stderr
    assert summary["annotations"]["refused"] == 6


def test_who_is_sent_away_is_counted(proctor):
    """More are connected than there are places: who was silent for longest goes, and not in silence."""
    process, path = started(proctor)
    half = connected(path)
    half.sendall(b"mark ha")
    clients = [connected(path) for _ in range(32)]
    assert [asked(client, b"mark m\n") for client in clients] == [b"ok\n"] * 32
    try:
        assert half.recv(3) == b""
    except ConnectionResetError:
        pass
    summary = ended(proctor, process)
    assert summary["annotations"] == {"phases": 0, "marks": 32, "refused": 1}
    (event,) = [e for e in summary["events"] if e["type"] == "socket"]
    assert "silent for longest" in event["text"]


def test_half_a_line_and_silence_hold_nobody_up(proctor):
    process, path = started(proctor, "-i", "50ms")
    silent = []
    for i in range(300):
        client = connected(path)
        client.sendall(b"mark hal" if i % 2 else b"")
        silent.append(client)
    client = connected(path)
    assert asked(client, b"begin a\n") == b"ok\n" and asked(client, b"end a\n") == b"ok\n"
    assert asked(client, b"end a\n") == b"no\n"
    summary = ended(proctor, process)
    assert list(phases(summary)) == ["a"] and summary["samples"]["missed"] == 0


def test_one_line_may_come_in_pieces_and_several_at_once(proctor):
    process, path = started(proctor)
    client = connected(path)
    for byte in b"mark slow\t{}":
        client.sendall(bytes([byte]))
        time.sleep(0.001)
    client.sendall(b"\nmark second\nbegin p\nend p\n")
    assert client.recv(12, socket.MSG_WAITALL) == b"ok\n" * 4
    summary = ended(proctor, process)
    assert [e["name"] for e in summary["events"] if e["type"] == "mark"] == ["slow", "second"]
    assert list(phases(summary)) == ["p"]


def test_another_user_is_turned_away(proctor):
    if os.getuid() != 0:
        skip_visibly("needs root to become another user")
    process, path = started(proctor)
    os.chmod(path, 0o666)  # what protects it besides: who connects is looked at
    folders = [Path(path).parent, Path(path).parent.parent]
    try:
        for folder in folders:
            folder.chmod(0o755)
        code = (f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({path!r}); s.settimeout(10)\n"
                "try:\n s.sendall(b'mark evil\\n'); print(s.recv(10))\nexcept OSError as e: print(b'')")
        done = subprocess.run([sys.executable, "-c", code], user=65534, group=65534, capture_output=True, text=True)
        assert done.stdout == "b''\n", done.stderr
    finally:
        for folder in folders:
            folder.chmod(0o700)
    summary = ended(proctor, process)
    assert summary["annotations"] == {"phases": 0, "marks": 0, "refused": 1}
    assert "somebody else" in summary["events"][0]["text"]


def test_the_directory_keeps_others_out(proctor):
    if os.getuid() != 0:
        skip_visibly("needs root to become another user")
    process, path = started(proctor)
    done = subprocess.run([sys.executable, "-c", f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"],
                          user=65534, group=65534, capture_output=True, text=True)
    assert "PermissionError" in done.stderr
    assert ended(proctor, process)["annotations"]["refused"] == 0


def flood(path, line, rate, seconds):
    """Lines at this rate, as fast as it goes for None; how many went."""
    client = connected(path)
    count, batch = 0, 100
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        client.sendall(line * batch)
        count += batch
        if rate:
            time.sleep(max(0, end - seconds + count / rate - time.monotonic()))
        try:
            client.recv(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
    client.close()
    return count


def test_ten_thousand_marks_a_second_do_no_harm(proctor):
    process, path = started(proctor, "-i", "100ms", "--jsonl", "a.jsonl", "--csv", "a.csv")
    sent = flood(path, b'mark flood\t{"step":1}\n', 10000, 3)
    summary = ended(proctor, process)
    assert sent > 25000 / SLACK and summary["annotations"] == {"phases": 0, "marks": sent, "refused": 0}
    assert summary["samples"]["missed"] == 0 and summary["samples"]["late"] <= 3 * SLACK
    assert summary["events_total"] >= sent and len(summary["events"]) < 100
    lines = lines_of(proctor.work / "a.jsonl")
    assert len([line for line in lines if line.get("event") == "mark"]) == sent, "all of them are written"
    assert summary["self"]["cpu_ratio"] < 0.5 * SLACK and not problems(summary)
    assert summary["self"]["rss_peak_bytes"] < (64 << 20) * SLACK


def test_a_reader_that_falls_behind_is_told_how_much_it_has_missed(proctor):
    fifo = proctor.folder / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    process, path = started(proctor, "-i", "50ms", "--jsonl", fifo)
    sent = flood(path, b"mark m\t{\"text\":\"" + b"x" * 2000 + b"\"}\n", 5000, 1.5)
    assert asked(connected(path), b"mark last\n") == b"ok\n"
    os.set_blocking(reader, True)
    process.send_signal(signal.SIGTERM)
    with open(reader) as stream:
        lines = [json.loads(line) for line in stream]
    process.wait(20 * SLACK)
    marks = [line for line in lines if line.get("event") == "mark"]
    missing = sent + 1 - len(marks)
    assert missing > 0 and marks[-1]["name"] == "last"
    summary = proctor.summary()
    assert summary["annotations"]["marks"] == sent + 1 and summary["exit"]["signal"] == signal.SIGTERM
    assert any(f"{missing} marks and phases are not there" in text for text in problems(summary)), problems(summary)


def test_as_fast_as_it_goes_is_bounded(proctor):
    """A client without manners is slowed down, and so does not eat a core; others are still served."""
    process, path = started(proctor, "-i", "100ms")
    greedy = [proctor.other([sys.executable, "-c",
                             f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({path!r})\n"
                             "try:\n while True: s.sendall(b'mark x\\n' * 500)\nexcept OSError: pass"])
              for _ in range(3)]
    time.sleep(0.5)
    began = time.monotonic()
    assert asked(connected(path), b"begin polite\n") == b"ok\n"
    assert time.monotonic() - began < 1 * SLACK
    time.sleep(1.5)
    summary = ended(proctor, process)
    for client in greedy:
        assert client.wait(20) == 0
    assert list(phases(summary)) == ["polite"]
    assert summary["annotations"]["marks"] < 25000 * summary["run"]["duration"] + 25000
    assert summary["samples"]["missed"] <= 1 and summary["self"]["cpu_ratio"] < 0.6 * SLACK


def test_a_phase_is_not_longer_while_others_are_slowed_down(proctor):
    """A client that says too much is not listened to for a while; ends of commands are seen all the same."""
    process, path = started(proctor, "-i", "10s")
    greedy = proctor.other([sys.executable, "-c",
                            f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({path!r})\n"
                            "try:\n while True: s.sendall(b'mark x\\n' * 500)\nexcept OSError: pass"])
    own = []
    for _ in range(8):
        began = time.monotonic()
        assert proctor("phase", "p", "--", "sleep", "0.13", env={"PROCTOR_SOCKET": path}).returncode == 0
        own.append(time.monotonic() - began)
    summary = ended(proctor, process)
    assert greedy.wait(20) == 0
    found = summary["phases"]
    assert len(found) == 8 and all(p["exact"] for p in found)
    assert summary["annotations"]["marks"] > 5000, "nobody was slowed down"
    late = sorted(p["seconds"] - 0.13 for p in found)
    assert late[0] > -0.001 and late[len(late) // 2] < 0.02 * SLACK, late


def test_a_storm_of_connections_is_bounded(proctor):
    process, path = started(proctor, "-i", "100ms")
    storm = [proctor.other([sys.executable, "-c",
                            "import socket\nwhile True:\n s = socket.socket(socket.AF_UNIX)\n"
                            f" try: s.connect({path!r})\n except FileNotFoundError: break\n except OSError: pass\n"
                            " s.close()"]) for _ in range(2)]
    time.sleep(1.5)
    began = time.monotonic()
    assert asked(connected(path), b"mark polite\n") == b"ok\n"
    assert time.monotonic() - began < 1 * SLACK
    summary = ended(proctor, process)
    for client in storm:
        assert client.wait(20) == 0
    assert summary["annotations"] == {"phases": 0, "marks": 1, "refused": 0}
    assert summary["samples"]["missed"] <= 1 and summary["self"]["cpu_ratio"] < 0.6 * SLACK


def test_many_phases_are_bounded_and_marked(proctor):
    process, path = started(proctor, "-i", "100s")
    client = connected(path)
    for _ in range(30):
        client.sendall(b"begin p\nend p\n" * 50)
        assert len(client.recv(300, socket.MSG_WAITALL)) == 300
    client.sendall(b"begin a\n" * 50)
    assert client.recv(150, socket.MSG_WAITALL) == b"ok\n" * 32 + b"no\n" * 18
    summary = ended(proctor, process)
    assert summary["annotations"] == {"phases": 1532, "marks": 0, "refused": 18}
    assert len(summary["phases"]) == 1002, "a thousand, and the rest by name"
    assert sum(p["instances"] for p in summary["phases"]) == 1532
    duration = summary["run"]["duration"]
    assert summary["samples"]["taken"] <= 20 * duration + 20 + 3
    assert summary["phases"][0]["exact"] and not summary["phases"][500]["exact"]
    assert [e for e in summary["events"] if "added up by name" in e["text"]]


def test_a_full_disk_keeps_marks_back(proctor):
    """The job goes on, the loss is said, and what is there can be read."""
    place = proctor.folder / "small"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", place], capture_output=True, text=True)
    if done.returncode != 0:
        skip_visibly(f"mount: {done.stderr.strip()}")
    try:
        process, path = started(proctor, "-i", "50ms", "--jsonl", place / "a.jsonl")
        flood(path, b"mark m\t{\"text\":\"" + b"x" * 200 + b"\"}\n", 2000, 1)
        assert asked(connected(path), b"begin p\n") == b"ok\n"
        summary = ended(proctor, process)
        assert [p for p in problems(summary) if "No space left" in p]
        assert list(phases(summary)) == ["p"] and summary["exit"]["signal"] == signal.SIGTERM
        text = (place / "a.jsonl").read_text()
        assert [json.loads(line) for line in text.splitlines()[:-1]]
    finally:
        subprocess.run(["umount", place], check=True)
