# SPDX-License-Identifier: Apache-2.0
"""What it costs to start a job that does nothing, beside that job and beside a reader of such files as we read."""
import os

from . import run

MOST = 3.0  # ms over `true`
READER = ["/bin/cat"] + [f"/proc/{name}" for name in ("stat meminfo vmstat diskstats loadavg net/dev net/sockstat "
          "self/mountinfo self/status self/stat self/io self/cgroup").split()] * 4


def cpu_of(words):
    """Milliseconds of CPU of a command and of all that it waited for."""
    silent = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]
    pid = os.posix_spawn(words[0], words, run.ENV, file_actions=silent)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise OSError(f"{' '.join(words)}: exit status {os.waitstatus_to_exitcode(status)}")
    return (usage.ru_utime + usage.ru_stime) * 1000


def startup(proctor, rounds):
    """{name: [ms of each round]}."""
    words = {"true": ["/bin/true"], "a reader of 48 files": READER,
             "proctor run --no-record -- true": [proctor, "run", "--no-record", "--", "/bin/true"]}
    rows = [[cpu_of(each) for each in words.values()] for _ in range(rounds)]
    return dict(zip(words, zip(*rows)))
