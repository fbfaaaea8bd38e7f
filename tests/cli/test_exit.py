# SPDX-License-Identifier: Apache-2.0
"""Exit status: the job's own, 125 to 127, 2 and 1; and dying as the job died."""
import os
import resource
import signal
import subprocess
import time

import pytest

from proctor_cli import (finish, is_alive, need_pid_namespaces, read_csv, said, skip_visibly,
                         state_of, wait_until)

CORE_UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def as_pid_1(proctor, *words, **options):
    """`proctor run` as PID 1 of a new pid namespace; skips where that is not permitted."""
    need_pid_namespaces()
    return subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
                             proctor.path, "run", *[str(w) for w in words]],
                            **proctor.options(options))


# --- the job's own status -------------------------------------------------------------------------

@pytest.mark.parametrize("status", [0, 1, 3, 77, 125, 126, 127, 128, 255])
def test_status_is_the_jobs_own(proctor, status):
    done, summary = proctor.recorded("sh", "-c", f"exit {status}")
    assert done.returncode == status
    assert summary["exit"] == {"code": status, "signal": None}


@pytest.mark.parametrize("options", [["--"], ["-i", "1s", "--"], ["-i1s"], ["-q", "--no-pss"]])
def test_options_end_at_the_command_or_at_two_dashes(proctor, options):
    done = proctor.run(*options, "sh", "-c", 'echo "$@"; exit 5', "sh", "-i", "--csv", "--", "-q")
    assert (done.returncode, done.stdout) == (5, "-i --csv -- -q\n")


def test_a_command_that_looks_like_an_option_needs_two_dashes(proctor):
    assert proctor.run("--", "-x").returncode == 127
    assert proctor.run("-x").returncode == 125


# --- 127 and 126 ----------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["no-such-command-here", "./nothing", "/etc/passwd/x", ""])
def test_127_not_found(proctor, name):
    done = proctor.run("--summary", proctor.summary_file, "--", name)
    assert done.returncode == 127
    assert done.stdout == ""
    assert f"'{name}'" in done.stderr
    assert len(said(done.stderr)) == 1
    assert os.listdir(proctor.work) == []
    assert not list(proctor.folder.glob("summary*"))


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_126_not_executable(proctor, kind):
    path = proctor.work / "thing"
    path.mkdir() if kind == "folder" else path.write_text("#!/bin/sh\n")
    done = proctor.run("--summary", proctor.summary_file, path)
    assert done.returncode == 126
    assert str(path) in done.stderr
    assert not list(proctor.folder.glob("summary*"))


def test_a_script_without_first_line_runs_as_under_execvp(proctor):
    script = proctor.work / "script"
    script.write_text("exit 9\n")
    script.chmod(0o755)
    assert proctor.run(script).returncode == 9


def test_nothing_is_recorded_of_a_job_that_never_was(proctor):
    proctor.run("--csv", "a.csv", "no-such-command-here")
    assert read_csv(proctor.work / "a.csv") == []


# --- 125, 2, 1 ------------------------------------------------------------------------------------

UNOPENABLE = [["--csv", "missing/a.csv"], ["--csv", "."], ["--summary", "missing/s.json"],
              ["--summary", "."], ["--csv", "good.csv", "--csv", "missing/a.csv"],
              ["--summary", "good.json", "--csv", "missing/a.csv"]]
WRONG_USAGE = [[], ["--"], ["-i", "1s"], ["--no-such-option", "touch", "started"],
               ["-Z", "touch", "started"], ["-i", "soon", "touch", "started"], ["--csv"],
               ["--duration", "1s", "touch", "started"], ["--no-pss=yes", "touch", "started"]]


@pytest.mark.parametrize("options", UNOPENABLE, ids=" ".join)
def test_125_for_an_output_that_cannot_be_opened(proctor, options):
    done = proctor.run(*options, "touch", "started")
    assert done.returncode == 125
    assert len(said(done.stderr)) == 1
    assert options[-2] in done.stderr and options[-1] in done.stderr
    assert not (proctor.work / "started").exists()
    assert not list(proctor.work.glob("*.tmp")) and not (proctor.work / "good.json").exists()


def test_125_names_option_and_reason_whatever_the_length_of_the_path(proctor):
    done = proctor.run("--summary", "missing/" + "x" * 250, "true")
    assert done.returncode == 125
    assert "--summary" in done.stderr and "No such file" in done.stderr


@pytest.mark.parametrize("option", ["--csv", "--summary"])
def test_125_for_standard_output_that_is_closed(proctor, option):
    done = proctor.run("-q", option, "-", "touch", "started", stdout=None, stderr=subprocess.PIPE,
                       preexec_fn=lambda: os.close(1))
    assert done.returncode == 125
    assert not (proctor.work / "started").exists()


@pytest.mark.parametrize("words", WRONG_USAGE, ids=lambda w: " ".join(w) or "nothing")
def test_125_for_wrong_usage_of_run(proctor, words):
    done = proctor.run(*words)
    assert done.returncode == 125
    assert done.stdout == ""
    assert len(said(done.stderr)) == 1
    assert not (proctor.work / "started").exists()


@pytest.mark.parametrize("words", [[], ["no-such-command"], ["--no-such-option"], ["attach"],
                                   ["attach", "nobody"], ["attach", "0"], ["attach", "1", "2"],
                                   ["attach", "--no-such-option", "1"], ["attach", "-i", "x", "1"],
                                   ["metrics", "extra"], ["metrics", "--csv", "x"],
                                   ["config", "extra"], ["push"], ["push", "last"], ["push", "--mlflow"]], ids=lambda w: " ".join(w) or "nothing")
def test_2_for_wrong_usage_outside_run(proctor, words):
    done = proctor(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(said(done.stderr)) == 1


@pytest.mark.parametrize("command", ["top", "serve"])
def test_commands_not_there_yet_say_so(proctor, command):
    done = proctor(command)
    if done.returncode == 0:
        pytest.fail(f"{command} is there now: test it, and take it off this list")
    assert done.returncode == 2
    assert said(done.stderr) and command in said(done.stderr)[0]
    assert "this version does not have" in done.stderr


# --- the job dies of a signal ---------------------------------------------------------------------

DEADLY = [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGPIPE,
          signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM,
          signal.SIGXCPU, signal.SIGRTMIN + 3]


@pytest.mark.parametrize("sig", DEADLY, ids=lambda s: str(int(s)))
def test_dies_of_the_jobs_signal_after_everything_is_written(proctor, sig):
    done = proctor.run("--summary", proctor.summary_file, "--csv", "a.csv", "-i", "20ms",
                       "sh", "-c", f"sleep 0.1; kill -{int(sig)} $$")
    assert done.returncode == -sig
    assert proctor.summary()["exit"] == {"code": None, "signal": int(sig)}
    rows = read_csv(proctor.work / "a.csv")
    assert len(rows) == proctor.summary()["samples"]["taken"] > 3
    assert rows[-1]["cpu_time_seconds"] != "" and rows[-1]["mem_rss_bytes"] == ""
    assert "killed by SIG" in done.stderr and "(null)" not in done.stderr


def test_leaves_no_core_of_its_own(proctor):
    """A job without core dies of SIGSEGV: proctor dies of it, too, and could dump."""
    def allow():
        resource.setrlimit(resource.RLIMIT_CORE, CORE_UNLIMITED)
    control = subprocess.Popen(["sh", "-c", "kill -SEGV $$"], cwd=proctor.work, preexec_fn=allow)
    _, status = os.waitpid(control.pid, 0)
    control.returncode = -signal.SIGSEGV
    if not os.WCOREDUMP(status):
        skip_visibly("no process dumps core here")
    for left in proctor.work.iterdir():
        left.unlink()
    process = proctor.start("run", "-q", "sh", "-c", "ulimit -c 0; kill -SEGV $$",
                            preexec_fn=allow)
    _, status = os.waitpid(process.pid, 0)
    process.returncode = 0
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV
    assert not os.WCOREDUMP(status)
    assert os.listdir(proctor.work) == []


def test_the_job_may_dump_core(proctor):
    def allow():
        resource.setrlimit(resource.RLIMIT_CORE, CORE_UNLIMITED)
    if open("/proc/sys/kernel/core_pattern").read().strip() != "core":
        skip_visibly("cores do not go to the folder of the process here")
    done = proctor.run("-q", "sh", "-c", "kill -SEGV $$", preexec_fn=allow)
    assert done.returncode == -signal.SIGSEGV
    assert len(list(proctor.work.glob("core*"))) == 1


# --- PID 1 ----------------------------------------------------------------------------------------

def test_as_pid_1_exits_128_and_the_signal(proctor):
    process = as_pid_1(proctor, "-q", "--summary", proctor.summary_file, "sh", "-c",
                       "kill -TERM $$")
    assert process.wait(60) == 128 + signal.SIGTERM
    assert proctor.summary()["exit"] == {"code": None, "signal": int(signal.SIGTERM)}


def test_as_pid_1_passes_the_status(proctor):
    assert as_pid_1(proctor, "-q", "sh", "-c", "exit 42").wait(60) == 42


def test_as_pid_1_reaps_orphans(proctor, jobs):
    """Ten orphans end; a moment later nobody is a zombie and all are in the account."""
    look = f"{jobs}/family orphans 10 2000 > /dev/null; sleep 0.1; " \
           "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l"
    process = as_pid_1(proctor, "-q", "--summary", proctor.summary_file, "sh", "-c", look,
                       stdout=subprocess.PIPE, text=True)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.strip()) == (0, "0")
    assert proctor.summary()["metrics"]["cpu.time"]["total"] >= 0.02
    assert proctor.summary()["processes"]["seen"] >= 10


def test_as_pid_1_hands_signals_on(proctor, jobs):
    """PID 1 is immune to signals that it does not handle: they must get through all the same."""
    process = as_pid_1(proctor, "-q", f"{jobs}/count_signals", stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE)
    proctor.started.append(process)
    assert process.stdout.readline().startswith(b"ready")
    pid_1 = wait_until(lambda: proctor.children(process.pid), "PID 1")[0]
    os.kill(pid_1, signal.SIGTERM)
    assert process.stdout.readline() == b"got 15\n"
    process.stdin.close()
    assert process.stdout.read() == b"count 15 1\n"
    assert process.wait(60) == 7


# --- left behind, left alone ----------------------------------------------------------------------

def test_record_ends_with_the_job_and_names_what_it_left(proctor):
    before = time.monotonic()
    done = proctor.run("--summary", proctor.summary_file, "-i", "20ms", "sh", "-c",
                       "sleep 77 >/dev/null 2>&1 & echo $!; sleep 0.1; exit 4")
    assert time.monotonic() - before < 20
    left = int(done.stdout)
    try:
        assert done.returncode == 4
        assert proctor.summary()["left_running"] == [{"pid": left, "command": "sleep"}]
        assert f"1 left running: sleep ({left})" in done.stderr
        assert is_alive(left) and state_of(left) == "S"
    finally:
        os.kill(left, signal.SIGKILL)


def test_left_running_is_named_even_where_it_was_never_sampled(proctor):
    done, summary = proctor.recorded("-i", "1h", "sh", "-c", "setsid sleep 77 >/dev/null 2>&1 & "
                                     "sleep 0.05; exit 0")
    assert [p["command"] for p in summary["left_running"]] == ["sleep"]
    pid = summary["left_running"][0]["pid"]
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("pause", ["", "sleep 0.1;"], ids=["short root", "sampled"])
@pytest.mark.parametrize("interval", ["20ms", "1h"])
def test_wait_tree_waits_for_what_the_job_left(proctor, jobs, interval, pause):
    """The root ends at once; the tree lives on for half a second and burns 20 ms after it."""
    later = f"(sleep 0.4; {jobs}/family waited 1 20000) >/dev/null 2>&1 &"
    done, summary = proctor.recorded("-i", interval, "--wait-tree", "sh", "-c",
                                     f"{later} {pause} exit 6")
    assert done.returncode == 6
    assert summary["run"]["duration"] >= 0.4
    assert summary["left_running"] == []
    assert summary["metrics"]["cpu.time"]["total"] >= 0.02
    assert summary["exit"]["code"] == 6


def test_without_wait_tree_it_does_not_wait(proctor):
    done, summary = proctor.recorded("sh", "-c", "sleep 3 >/dev/null 2>&1 & exit 6")
    assert done.returncode == 6 and summary["run"]["duration"] < 2
    os.kill(summary["left_running"][0]["pid"], signal.SIGKILL)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_wait_tree_can_be_ended_after_the_job(proctor, sig):
    """The job is gone and cannot be told; what it left is left alone."""
    process = proctor.start("run", "-q", "--summary", proctor.summary_file, "-i", "20ms",
                            "--wait-tree", "sh", "-c", "sleep 77 >/dev/null 2>&1 & sleep 0.1; "
                            "exit 6", preexec_fn=lambda: signal.signal(sig, signal.SIG_DFL))
    job = proctor.job_of(process)
    wait_until(lambda: not is_alive(job), "the job to end")
    time.sleep(0.1)
    assert process.poll() is None
    os.kill(process.pid, sig)
    assert process.wait(30) == 6
    (left,) = proctor.summary()["left_running"]
    assert is_alive(left["pid"])
    os.kill(left["pid"], signal.SIGKILL)


def test_wait_tree_of_a_job_that_left_nobody_ends_with_it(proctor):
    before = time.monotonic()
    status, _, _ = finish(proctor.start("run", "-q", "-i", "1h", "--wait-tree", "sleep", "0.1"))
    assert status == 0 and time.monotonic() - before < 5
