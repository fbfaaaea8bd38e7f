# SPDX-License-Identifier: Apache-2.0
"""The job finds what it would find without us, and others find us out of the way."""
import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from proctor_cli import finish, read_csv, wait_until

MORE = [57, 90, 101, 119]  # descriptors
RUN_ID = re.compile(r"^\d{8}T\d{6}Z-[0-9a-f]{8}$")


# --- state that is inherited ----------------------------------------------------------------------

def ignore(*signals):
    return lambda: [signal.signal(s, signal.SIG_IGN) for s in signals]


def close(*fds):
    return lambda: [os.close(fd) for fd in fds]


def limit(which, soft, hard=None):
    def change():
        resource.setrlimit(which, (soft, resource.getrlimit(which)[1] if hard is None else hard))
    return change


def open_more():
    """A pipe, a device and a folder, at numbers that nobody else uses."""
    reader, writer = os.pipe()
    os.dup2(reader, MORE[0])
    os.dup2(writer, MORE[1])
    os.dup2(os.open("/dev/zero", os.O_RDONLY), MORE[2])
    os.dup2(os.open("/", os.O_RDONLY | os.O_DIRECTORY), MORE[3])


def everything():
    ignore(signal.SIGHUP, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGTSTP)()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD])
    limit(resource.RLIMIT_NOFILE, 256)()
    limit(resource.RLIMIT_CORE, 0, 0)()
    os.nice(3)
    os.umask(0o027)
    open_more()
    os.close(0)


STATES = {
    "plain": lambda: None,
    "HUP ignored": ignore(signal.SIGHUP),
    "INT and QUIT ignored": ignore(signal.SIGINT, signal.SIGQUIT),
    "CHLD ignored": ignore(signal.SIGCHLD),
    "PIPE ignored": ignore(signal.SIGPIPE),
    "TSTP, TTIN, TTOU ignored": ignore(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
    "all ignored": ignore(*(set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP})),
    "signals blocked": lambda: signal.pthread_sigmask(
        signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD, signal.SIGSEGV]),
    "all blocked": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()),
    "few descriptors": limit(resource.RLIMIT_NOFILE, 128),
    "hard limit on descriptors": limit(resource.RLIMIT_NOFILE, 100, 150),
    "no core": limit(resource.RLIMIT_CORE, 0, 0),
    "core": limit(resource.RLIMIT_CORE, 1 << 20),
    "stack": limit(resource.RLIMIT_STACK, 1 << 20),
    "oom_score_adj": lambda: Path("/proc/self/oom_score_adj").write_text("321"),
    "nice": lambda: os.nice(5),
    "batch": lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)),
    "one cpu": lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]),
    "umask": lambda: os.umask(0o077),
    "another folder": lambda: os.chdir("/usr"),
    "more descriptors": open_more,
    "stdin closed": close(0),
    "stdout closed": close(1),
    "stderr closed": close(2),
    "all closed": close(0, 1, 2),
    "stdout and stdin closed, more descriptors": lambda: (close(0, 1)(), open_more()),
    "non-blocking stdin": lambda: os.set_blocking(0, False),
    "everything": everything,
}
RECORDING = {
    "quiet": ["-q"],
    "all outputs": ["-q", "-i", "1ms", "--csv", "a.csv", "--processes", "--summary", "a.json"],
    "exact none": ["-q", "--exact", "none"],
    "exact cgroup": ["-q", "--exact", "cgroup"],
    "exact perf": ["-q", "--exact", "perf"],
}


def dump(proctor, words, change):
    path = proctor.folder / "state"
    path.unlink(missing_ok=True)
    reader, writer = os.pipe()
    try:
        subprocess.run([*map(str, words), str(path)], preexec_fn=change, stdin=reader,
                       stdout=writer, stderr=subprocess.DEVNULL, timeout=60, close_fds=False,
                       **proctor.options({}))
    finally:
        os.close(reader)
        os.close(writer)
    assert path.exists(), "the job did not run"
    # Pipes that are made afresh each time have numbers of their own; a group for the run may be
    # added to where the job is.
    text = re.sub(r"/?/proctor-\d+-\d+-\d+$", "", path.read_text(), flags=re.M)
    text = re.sub(r"^(\d+:.*:)$", r"\1/", text, flags=re.M)
    return re.sub(r"(type 10000 device \d+):\d+", r"\1:N", text)


@pytest.mark.parametrize("recording", RECORDING, ids=lambda r: r)
@pytest.mark.parametrize("state", STATES, ids=lambda s: s)
def test_the_job_inherits_what_it_would_without_us(proctor, jobs, state, recording):
    job = jobs / "dump_state"
    without = dump(proctor, [job], STATES[state])
    within = dump(proctor, [proctor.path, "run", *RECORDING[recording], job], STATES[state])
    assert within == without


def test_the_comparison_can_fail(proctor, jobs):
    """dump_state sees a difference in each of these."""
    plain = dump(proctor, [jobs / "dump_state"], STATES["plain"])
    for state, change in STATES.items():
        if state != "plain":
            assert dump(proctor, [jobs / "dump_state"], change) != plain, state


# --- the environment ------------------------------------------------------------------------------

def job_environment(proctor, *options, **env):
    done = proctor.run("-q", *options, "env", "-0", env=env)
    assert done.returncode == 0
    return done.stdout.rstrip("\0").split("\0")


def test_the_job_sees_its_run_id_and_no_other_variable_of_ours(proctor):
    ours = {"PROCTOR_INTERVAL": "2s", "PROCTOR_ANYTHING": "x", "PROCTOR_": "y", "PROCTORX": "kept",
            "PROCTOR_RUN_ID": "outer", "PROCTOR_MLFLOW_RUN_ID": "outer", "XPROCTOR_A": "kept",
            "PROCTOR_SOCKET": "/nowhere"}
    seen = job_environment(proctor, **ours)
    names = sorted(e.split("=")[0] for e in seen if e.startswith("PROCTOR_"))
    assert [n for n in names if n != "PROCTOR_SOCKET"] == ["PROCTOR_RUN_ID"]
    assert "PROCTOR_SOCKET=/nowhere" not in seen
    assert {"PROCTORX=kept", "XPROCTOR_A=kept"} <= set(seen)


def test_the_run_id_has_its_form_and_is_the_summarys(proctor):
    done, summary = proctor.recorded("sh", "-c", "echo $PROCTOR_RUN_ID")
    assert RUN_ID.match(summary["run"]["id"])
    assert done.stdout.strip() == summary["run"]["id"]
    stamp = time.strftime("%Y%m%dT%H", time.gmtime())
    assert summary["run"]["id"][:11] in (stamp, time.strftime("%Y%m%dT%H",
                                                              time.gmtime(time.time() - 3600)))


def test_run_ids_differ(proctor):
    ids = {proctor.run("-q", "sh", "-c", "echo $PROCTOR_RUN_ID").stdout for _ in range(5)}
    assert len(ids) == 5


@pytest.mark.parametrize("run_id", ["mine", "20260101T000000Z-0123abcd", "x" * 100],
                         ids=["short", "usual", "long"])
def test_a_run_id_that_was_given_is_kept_whole(proctor, run_id):
    done, summary = proctor.recorded("--run-id", run_id, "sh", "-c", "echo $PROCTOR_RUN_ID")
    assert done.stdout.strip() == run_id == summary["run"]["id"]


@pytest.mark.parametrize("home", ["/some/where", ""])
def test_proctor_home_is_handed_on_if_set(proctor, home):
    assert f"PROCTOR_HOME={home}" in job_environment(proctor, "--no-record", PROCTOR_HOME=home)


def test_proctor_home_is_not_made_up(proctor):
    assert not [e for e in job_environment(proctor) if e.startswith("PROCTOR_HOME")]


def test_other_variables_keep_value_and_order(proctor):
    env = {**proctor.env, "A": "1", "EMPTY": "", "LINES_OF": "a\nb", "PROCTOR_NAME": "x", "Z": "é"}
    without = subprocess.run(["env", "-0"], env=env, capture_output=True, text=True).stdout
    seen = [e for e in job_environment(proctor, **env) if not e.startswith("PROCTOR_RUN_ID=")]
    wanted = [e for e in without.rstrip("\0").split("\0") if not e.startswith("PROCTOR_")]
    assert [e for e in seen if not e.startswith("PROCTOR_SOCKET=")] == wanted


def test_a_run_inside_a_run_has_an_id_of_its_own(proctor):
    done, summary = proctor.recorded(proctor.path, "run", "-q", "sh", "-c",
                                     "echo $PROCTOR_RUN_ID; exit 3")
    assert done.returncode == 3 and RUN_ID.match(done.stdout.strip())
    assert done.stdout.strip() != summary["run"]["id"]


# --- standard streams -----------------------------------------------------------------------------

def test_streams_are_the_jobs_own(proctor):
    data = os.urandom(1 << 20)
    done = proctor.run("-q", "sh", "-c", "tee /dev/stderr", input=data, text=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, data, data)


def test_we_write_nothing_to_standard_output(proctor):
    done = proctor.run("-v", "-i", "10ms", "sleep", "0.1")
    assert done.stdout == "" and done.stderr != ""


def test_readers_of_stdout_see_the_end_when_the_job_closes_it(proctor):
    process = proctor.start("run", "-q", "sh", "-c", "echo last; exec sleep 5 >&-")
    assert process.stdout.read() == b"last\n"
    assert process.poll() is None
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(30) == -signal.SIGTERM


def test_writers_to_stdin_see_that_the_job_has_closed_it(proctor):
    process = proctor.start("run", "-q", "sh", "-c", "exec <&-; echo closed; exec sleep 5",
                            stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"closed\n"

    def is_broken():
        try:
            os.write(process.stdin.fileno(), b"x")
        except BrokenPipeError:
            return True
        return False
    wait_until(is_broken, "EPIPE", 4)
    assert process.poll() is None
    process.terminate()
    process.stdin = None


def test_an_inherited_descriptor_is_the_jobs_and_not_ours(proctor):
    """The job writes to a pipe and closes it; its reader sees the end while we run."""
    reader, writer = os.pipe()
    process = proctor.start("run", "-q", "bash", "-c", "echo through >&$0; exec {0}>&-; "
                            "exec sleep 5".replace("{0}", str(writer)), writer,
                            pass_fds=[writer])
    os.close(writer)
    with os.fdopen(reader, "rb") as f:
        assert f.read() == b"through\n"
    assert process.poll() is None
    process.terminate()
    assert process.wait(30) == -signal.SIGTERM


def test_stdout_is_kept_where_an_option_writes_there(proctor):
    process = proctor.start("run", "-q", "-i", "20ms", "--csv", "-", "sh", "-c",
                            "exec sleep 0.3 >&-")
    status, out, _ = finish(process)
    assert status == 0 and len(out.splitlines()) > 5


def test_stderr_is_kept(proctor):
    done = proctor.run("sh", "-c", "exec 2>&-; exit 3")
    assert done.returncode == 3 and "exit 3" in done.stderr


def test_we_hold_nothing_of_the_jobs_while_it_runs(proctor):
    process = proctor.start("run", "-q", "sleep", "5", stdin=subprocess.PIPE,
                            preexec_fn=open_more, close_fds=False)
    proctor.job_of(process)
    job_pipes = {os.stat(s.fileno()).st_ino for s in (process.stdin, process.stdout)}

    def ours():
        found = {}
        for fd in os.listdir(f"/proc/{process.pid}/fd"):
            try:
                found[int(fd)] = os.readlink(f"/proc/{process.pid}/fd/{fd}")
            except FileNotFoundError:
                pass
        return found
    wait_until(lambda: "/dev/null" in ours().get(0, ""), "stdin to be let go")
    wait_until(lambda: not {f"pipe:[{i}]" for i in job_pipes} & set(ours().values()), "pipes")
    held = ours()
    assert not set(MORE) & held.keys()
    assert held[2] == f"pipe:[{os.stat(process.stderr.fileno()).st_ino}]"


# --- subreaper and limits -------------------------------------------------------------------------

def orphans_parent(proctor, jobs, *options):
    process = proctor.start("run", "-q", *options, jobs / "family", "parent", "1", "0")
    status, out, _ = finish(process)
    assert status == 0
    return process.pid, int(out.split()[1])


def test_orphans_come_to_us(proctor, jobs):
    ours, parent = orphans_parent(proctor, jobs)
    assert parent == ours


def test_exact_none_sets_no_subreaper(proctor, jobs):
    ours, parent = orphans_parent(proctor, jobs, "--exact", "none")
    assert parent != ours


def test_exact_none_says_that_it_is_not_complete(proctor, jobs):
    _, summary = proctor.recorded("--exact", "none", jobs / "family", "orphans", "3", "1000")
    assert summary["accounting"]["cpu"]["complete"] is False
    assert "orphans" in summary["accounting"]["cpu"]["note"]


def test_attach_sets_no_subreaper(proctor, jobs):
    job = proctor.other(["sh", "-c", f"sleep 0.3; {jobs}/family parent 1 0"],
                        stdout=subprocess.PIPE)
    process = proctor.start("attach", "-q", job.pid)
    assert int(job.stdout.readline().split()[1]) != process.pid
    assert process.wait(30) == 0


def test_only_we_have_the_descriptor_limit_raised(proctor):
    process = proctor.start("run", "-q", "sleep", "5",
                            preexec_fn=limit(resource.RLIMIT_NOFILE, 200))
    job = proctor.job_of(process)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wait_until(lambda: resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (hard, hard),
               "our limit to be raised")
    assert resource.prlimit(job, resource.RLIMIT_NOFILE) == (200, hard)


def test_a_low_hard_limit_is_no_obstacle(proctor):
    done, summary = proctor.recorded("-i", "10ms", "sleep", "0.1",
                                     preexec_fn=limit(resource.RLIMIT_NOFILE, 20, 20))
    assert done.returncode == 0 and done.stderr == ""
    assert summary["metrics"]["mem.rss"]["peak"] > 0


# --- what was there before us ---------------------------------------------------------------------

def exec_after(proctor, script):
    """A shell does something and then becomes `proctor run sleep`, with its children and past."""
    command = f"{script}; exec {proctor.path} run -q -i 20ms --csv a.csv " \
              f"--summary {proctor.summary_file} sleep 0.3"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60,
                          **proctor.options({}))
    assert (done.returncode, done.stderr) == (0, "")
    return proctor.summary(), read_csv(proctor.work / "a.csv")


@pytest.mark.parametrize("script", [
    "JOBS/family waited 3 100000 >/dev/null; head -c 30000000 /dev/zero >/dev/null",
    "JOBS/family together 2 100000 >/dev/null & head -c 30000000 /dev/zero >/dev/null & true"],
    ids=["children that it had waited for", "children that it still has"])
def test_what_the_process_did_before_it_became_proctor_is_not_the_jobs(proctor, jobs, script):
    summary, rows = exec_after(proctor, script.replace("JOBS", str(jobs)))
    metrics = summary["metrics"]
    assert metrics["cpu.time"]["total"] < 0.1
    assert metrics["procs"]["peak"] == 1 and metrics["procs.started"]["total"] == 1
    assert metrics["io.wchar"]["total"] == 0
    assert metrics["io.rchar"]["total"] < 100_000
    assert max(float(r["io_rchar_bytes"]) for r in rows) < 100_000


def test_what_its_threads_did_before_it_became_proctor_is_not_the_jobs(proctor):
    """A thread that has ended leaves what it read on the account of the process, which we then are."""
    code = "import os, sys, threading; t = threading.Thread(target=lambda: open('/dev/zero', 'rb').read(30_000_000)); " \
           "t.start(); t.join(); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(["/usr/bin/python3", "-c", code, *proctor.arguments("run", "-q", "--summary", proctor.summary_file, "true")],
                          capture_output=True, text=True, timeout=60, **proctor.options({}))
    assert (done.returncode, done.stderr) == (0, "")
    assert proctor.summary()["metrics"]["io.rchar"]["total"] < 100_000


def test_a_child_that_we_had_before_is_not_left_running(proctor):
    done = subprocess.run(["sh", "-c", f"sleep 77 >/dev/null 2>&1 & echo $!; exec {proctor.path} "
                           f"run -q --summary {proctor.summary_file} true"], capture_output=True,
                          text=True, timeout=60, **proctor.options({}))
    os.kill(int(done.stdout), signal.SIGKILL)
    assert proctor.summary()["left_running"] == []


def test_a_stopped_or_dead_reader_of_stderr_does_not_change_the_status(proctor):
    process = proctor.start("run", "sh", "-c", "sleep 0.2; exit 3")
    process.stderr.close()
    process.stderr = None
    assert process.wait(30) == 3
