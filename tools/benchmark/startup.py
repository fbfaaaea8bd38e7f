# SPDX-License-Identifier: Apache-2.0
"""What it costs to start a job that does nothing, beside that job and beside a reader of such files as we read."""
import os
import select
import signal

from . import run

MOST = 3.0  # ms over `true`
PATIENCE = 60  # seconds that one of them may take
# Files that such a run reads, and that are no longer on larger machines: this says how fast a machine is, not how large.
READER = ["/bin/cat"] + [f"/proc/{name}" for name in ("loadavg meminfo self/status self/stat self/statm self/io "
          "self/cgroup self/schedstat").split()] * 6


def cpu_of(words, env):
    """Milliseconds of CPU of a command and of all that it waited for."""
    silent = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]
    pid = os.posix_spawn(words[0], words, env, file_actions=silent)
    fd = os.pidfd_open(pid)
    if not select.select([fd], [], [], PATIENCE)[0]:
        os.kill(pid, signal.SIGKILL)
    os.close(fd)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise OSError(f"{' '.join(words)}: exit status {os.waitstatus_to_exitcode(status)}")
    return (usage.ru_utime + usage.ru_stime) * 1000


def startup(proctor, rounds, **env):
    """{name: [ms of each round]}; `env` beside what all have."""
    words = {"true": ["/bin/true"], "a reader of 48 files": READER,
             "proctor run --no-record -- true": [proctor, "run", "--no-record", "--", "/bin/true"],
             "the same with --summary -": [proctor, "run", "--no-record", "--summary", "-", "--", "/bin/true"]}
    rows = [[cpu_of(each, {**run.ENV, **env}) for each in words.values()] for _ in range(rounds)]
    return dict(zip(words, zip(*rows)))
