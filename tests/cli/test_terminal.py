# SPDX-License-Identifier: Apache-2.0
"""Under a terminal: keys reach the job once, Ctrl-Z stops both, and colours only where wanted."""
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time

import pytest

from proctor_cli import PATIENCE, SLACK, is_alive, read_line, state_of, wait_until


class Terminal:
    """A terminal with a small shell in it that runs one `proctor run`."""

    def __init__(self, proctor, jobs, *words, background=False, tostop=False, env=None):
        self.proctor = proctor
        self.master, slave = pty.openpty()
        if tostop:
            modes = termios.tcgetattr(slave)
            modes[3] |= termios.TOSTOP
            termios.tcsetattr(slave, termios.TCSANOW, modes)
        self.status, status_writer = os.pipe()
        self.control, self.control_writer = os.pipe()  # what count_signals reads
        command = [jobs / "minishell", status_writer, "bg" if background else "fg", proctor.path,
                   "run", "--summary", proctor.summary_file, *words]
        command = [self.control if w == "CONTROL" else w for w in command]
        self.shell = subprocess.Popen([str(w) for w in command], stdin=slave, stdout=slave,
                                      stderr=slave, start_new_session=True,
                                      pass_fds=[status_writer, self.control],
                                      **proctor.options({"env": env or {}}))
        proctor.started.append(self.shell)
        for fd in (slave, status_writer):
            os.close(fd)
        self.seen = b""
        self.pid = self.expect_status("pid")

    def expect_status(self, word):
        """The next thing that happened to the job as the shell sees it, which must be `word`."""
        got, number = read_line(self.status).split()
        assert got == word, f"{got} {number}; terminal: {self.seen!r}"
        return int(number)

    def expect(self, pattern):
        """Waits for the pattern in what the terminal shows."""
        end = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < end, f"no {pattern!r} in {self.seen!r}"
            self.read(0.1)
        return found

    def read(self, timeout):
        if select.select([self.master], [], [], timeout)[0]:
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:  # nobody has it open any more
                pass

    def type(self, keys):
        os.write(self.master, keys)

    def let_go(self):
        """Ends a count_signals that reads its control descriptor."""
        os.close(self.control_writer)
        self.control_writer = -1

    def close(self):
        if is_alive(self.pid):
            os.killpg(self.pid, signal.SIGKILL)
        for fd in (self.master, self.status, self.control, self.control_writer):
            if fd >= 0:
                os.close(fd)


@pytest.fixture
def terminal(proctor, jobs):
    opened = []

    def start(*words, **options):
        opened.append(Terminal(proctor, jobs, *words, **options))
        return opened[-1]
    yield start
    for t in opened:
        t.close()


@pytest.fixture
def count_job(terminal, jobs):
    """Starts count_signals in a terminal; (terminal, pid of the job) once it is ready."""
    def start():
        t = terminal("-q", "-i", "20ms", jobs / "count_signals", "CONTROL")
        return t, int(t.expect(rb"ready (\d+)").group(1))
    return start


def counts_at_end(t):
    t.let_go()
    status = t.expect_status("exited")
    t.read(0.2)
    return status, {int(s): int(n) for s, n in re.findall(rb"count (\d+) (\d+)", t.seen)}


def gaps(proctor):
    return [e for e in proctor.summary()["events"] if e["type"] == "gap"]


# --- keys -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("key, sig", [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)],
                         ids=["Ctrl-C", "Ctrl-backslash"])
def test_a_key_reaches_the_job_exactly_once(count_job, key, sig):
    t, _ = count_job()
    t.type(key)
    t.expect(rb"got %d\r" % sig)
    time.sleep(0.2)  # a second one would arrive by now
    assert counts_at_end(t) == (7, {int(sig): 1})


def test_a_key_and_a_signal_are_two(count_job):
    t, _ = count_job()
    t.type(b"\x03")
    t.expect(rb"got 2\r")
    time.sleep(0.1)
    os.kill(t.pid, signal.SIGINT)
    t.expect(rb"got 2\r\n(?s:.*)got 2\r\n")
    assert counts_at_end(t) == (7, {2: 2})


def test_ctrl_c_ends_job_and_us_with_everything_written(terminal, proctor):
    t = terminal("-q", "sleep", "77")
    job = wait_until(lambda: proctor.children(t.pid), "the job")[0]
    wait_until(lambda: os.readlink(f"/proc/{job}/exe") != proctor.path, "exec")
    t.type(b"\x03")
    assert t.expect_status("killed") == signal.SIGINT
    assert proctor.summary()["exit"] == {"code": None, "signal": 2}


def test_a_job_that_survives_ctrl_c_is_waited_for(count_job, proctor):
    t, job = count_job()
    t.type(b"\x03")
    t.expect(rb"got 2\r")
    time.sleep(0.2)
    assert is_alive(t.pid) and is_alive(job)
    assert counts_at_end(t)[0] == 7
    assert proctor.summary()["exit"]["code"] == 7


# --- stopping -------------------------------------------------------------------------------------

def test_ctrl_z_stops_both_and_fg_continues_both(count_job, proctor):
    t, job = count_job()
    t.type(b"\x1a")
    assert t.expect_status("stopped") == signal.SIGTSTP
    assert state_of(job) == "T" and state_of(t.pid) == "T"
    time.sleep(0.3)
    t.shell.send_signal(signal.SIGUSR1)  # fg
    t.expect_status("continued")
    t.expect(rb"got 18\r")
    wait_until(lambda: state_of(job) in "SR" and state_of(t.pid) in "SR", "both to go on")
    t.type(b"\x03")
    t.expect(rb"got 2\r")
    status, counts = counts_at_end(t)
    assert status == 7 and counts[2] == 1
    assert len(gaps(proctor)) == 1
    assert 0.3 <= gaps(proctor)[0]["seconds"] < 0.3 + 2 * SLACK
    assert "SIGTSTP" in gaps(proctor)[0]["text"]


def test_stopped_twice_is_two_gaps(count_job, proctor):
    t, _ = count_job()
    for _ in range(2):
        t.type(b"\x1a")
        t.expect_status("stopped")
        time.sleep(0.05)
        t.shell.send_signal(signal.SIGUSR1)
        t.expect_status("continued")
        time.sleep(0.1)
    assert counts_at_end(t)[0] == 7
    assert len(gaps(proctor)) == 2


def test_tstp_sent_to_us_stops_both_and_cont_sent_to_us_continues_both(count_job, proctor):
    t, job = count_job()
    os.kill(t.pid, signal.SIGTSTP)
    assert t.expect_status("stopped") == signal.SIGTSTP
    assert state_of(job) == "T"
    os.kill(t.pid, signal.SIGCONT)
    t.expect_status("continued")
    t.expect(rb"got 18\r")
    assert counts_at_end(t) == (7, {18: 1})
    assert len(gaps(proctor)) == 1


def test_stop_sent_to_the_job_does_not_stop_us(count_job, proctor):
    t, job = count_job()
    os.kill(job, signal.SIGSTOP)
    wait_until(lambda: state_of(job) == "T", "the job to stop")
    time.sleep(0.2)
    assert state_of(t.pid) in "SR"
    os.kill(job, signal.SIGCONT)
    t.expect(rb"got 18\r")
    assert counts_at_end(t)[0] == 7


@pytest.mark.parametrize("job, sig, options", [
    ("read line; echo got-it", signal.SIGTTIN, {}),
    ("echo got-it", signal.SIGTTOU, {"tostop": True})], ids=["TTIN", "TTOU"])
def test_a_background_job_that_wants_the_terminal_stops_both(terminal, proctor, job, sig, options):
    t = terminal("-q", "sh", "-c", job, background=True, **options)
    assert t.expect_status("stopped") == sig
    child = proctor.children(t.pid)[0]
    assert state_of(child) == "T" and state_of(t.pid) == "T"
    t.shell.send_signal(signal.SIGUSR1)
    t.expect_status("continued")
    t.type(b"something\n")
    t.expect(rb"got-it")
    assert t.expect_status("exited") == 0
    assert len(gaps(proctor)) == 1 and sig.name in gaps(proctor)[0]["text"]


def test_a_background_job_with_tostop_gets_its_summary_without_stopping(terminal):
    t = terminal("true", background=True, tostop=True)
    assert t.expect_status("exited") == 0
    t.expect(rb"proctor: true")


def test_hangup_reaches_the_job_and_the_summary_is_written(terminal, proctor):
    t = terminal("-q", "sh", "-c", "trap 'exit 5' HUP; echo up; while :; do sleep 0.05; done")
    t.expect(rb"up\r")
    os.close(t.master)
    t.master = -1
    wait_until(proctor.summary_file.exists, "the summary after a hangup")
    assert proctor.summary()["exit"] == {"code": 5, "signal": None}


def test_hangup_of_a_terminal_whose_session_we_lead_ends_both(proctor):
    """The kernel tells the leader of the session alone: without us that would be the job."""
    master, slave = pty.openpty()
    process = proctor.start("run", "-q", "--summary", proctor.summary_file, "sleep", "20",
                            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(slave)
    job = proctor.job_of(process)
    assert os.getsid(job) == process.pid
    before = time.monotonic()
    os.close(master)
    assert process.wait(PATIENCE) == -signal.SIGHUP
    assert time.monotonic() - before < 5 * SLACK
    assert not is_alive(job)
    assert proctor.summary()["exit"] == {"code": None, "signal": int(signal.SIGHUP)}


# --- the terminal is the job's --------------------------------------------------------------------

def test_the_job_keeps_the_terminal(terminal):
    t = terminal("-q", "sh", "-c", "tty; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; "
                 "ps -o pgid=,tpgid= -p $$; read line; echo got $line")
    t.expect(rb"/dev/pts/\d+\r\nall\r\n")
    groups = t.expect(rb" *(\d+) +(\d+)\r\n").groups()
    assert [int(g) for g in groups] == [t.pid, t.pid]
    t.type(b"typed\n")
    t.expect(rb"got typed\r\n")
    assert t.expect_status("exited") == 0


# --- colours --------------------------------------------------------------------------------------

@pytest.mark.parametrize("options, env, colour", [
    ([], {}, True), ([], {"NO_COLOR": "1"}, False), ([], {"NO_COLOR": ""}, True),
    ([], {"TERM": "dumb"}, False), (["--color", "never"], {}, False),
    (["--color", "always"], {"NO_COLOR": "1"}, True), (["--color=auto"], {}, True)])
def test_colour_on_a_terminal(terminal, options, env, colour):
    t = terminal(*options, "true", env=env)
    assert t.expect_status("exited") == 0
    t.expect(rb"cost [^\n]*\n")
    assert (b"\x1b[" in t.seen) == colour


@pytest.mark.parametrize("options, colour", [([], False), (["--color", "always"], True),
                                             (["--color", "auto"], False)])
def test_colour_elsewhere(proctor, options, colour):
    done = proctor.run(*options, "true")
    assert done.returncode == 0 and "proctor: true" in done.stderr
    assert ("\x1b[" in done.stderr) == colour
