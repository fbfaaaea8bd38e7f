# SPDX-License-Identifier: Apache-2.0
"""Odd and hostile input: a clear message, or an absent value with its reason; never a crash, a zero
in the place of what is not known, or a harmed job. What comes from outside is escaped for where it
goes. Whatever is mounted here is mounted in a namespace of its own.

What shows it, test_ left off; those of other files have the file's name before them:

1  names of processes                        names_of_processes_*, a_hostile_name_in_a_reason;
                                             outputs.names_of_processes_are_quoted,
                                             summary.hostile_names_of_what_is_left_running;
                                             unit sources.stat_with_a_hostile_name
2  a pid that is missing, a zombie           attach.1_without_target, .ends_when_the_process_is_a_zombie
   a thread                                  attach.1_for_a_thread_which_is_no_process
   one that ended; one in use again          a_process_that_has_ended, a_pid_in_use_again,
                                             a_pid_of_a_member_in_use_again;
                                             namespaces.attach_does_not_ask_the_clock_of_a_namesake;
                                             unit tree.pid_reused_*
   a kernel thread                           a_kernel_thread; unit sources.stat_of_a_kernel_thread
   another user's, one that is not dumpable  who_may_not_be_looked_at, attach.what_may_not_be_read_*
3  hidepid                                   hidden_processes_*, run_where_processes_are_hidden
4  subset=pid                                proc_without_the_machine, who_is_born_where_no_file_*
5  no smaps_rollup, unreadable io            files_that_are_not_there_or_not_ours
6  5,000 processes, few descriptors          a_crowd_and_few_descriptors, hardly_any_descriptors
7  1,000 threads                             a_thousand_threads
8  a missing folder                          attach.an_output_that_cannot_be_opened, jsonl.trouble_with_it_*
   a folder, no permission                   outputs_that_cannot_be_opened
   a read-only file system                   a_read_only_file_system
   a full disk                               a_full_disk; outputs.csv_to_a_file_system_that_is_full,
                                             .rows_that_were_kept_back_*, .trouble_has_its_time
   /dev/full                                 outputs.csv_to_a_full_device, .a_summary_that_cannot_be_written,
                                             jsonl.trouble_with_it_*, attach.trouble_does_not_*
   a reader that leaves, a fifo without one  outputs.a_reader_that_leaves, .a_fifo_without_a_reader_*
   one that becomes read-only                a_file_that_may_not_grow: every error but a full disk goes
                                             that way. (It takes a device that breaks: a file system
                                             with open files refuses to be remounted.)
   a folder that vanishes                    outputs.a_folder_of_the_summary_that_vanishes
   --strict                                  a_full_disk, a_file_that_may_not_grow; outputs.strict_*
9  options and their values                  thing_value_and_remedy; options.a_bad_value_is_refused_*
   config lines and variables                thing_value_and_remedy_in_*, garbage_in_the_config_file,
                                             a_config_file_far_away, unknown_variables;
                                             options.a_bad_variable_*, .a_bad_line_in_the_config_file_*
10 long command lines                        long_command_lines, a_long_command_line_of_another
   an empty argv[0]                          no_name_to_run, an_empty_first_argument
   line breaks and escapes in arguments      summary.hostile_arguments_*, .hostile_text_in_messages_*,
                                             jsonl.hostile_names_are_escaped
   variables full of garbage                 garbage_in_variables, config_is_safe_to_print
   long output paths and names               long_paths, a_path_that_is_too_long,
                                             a_long_name_of_the_summary, trouble_with_a_long_path_*
   long labels                               long_labels
   COLUMNS, TERM                             odd_terminals; terminal.colour_on_a_terminal
11 kernel files that are garbage             garbage_in_*, cut_off_and_enormous_*, numbers_beyond_64_bits_*,
   (fifos and folders among them)            a_circle_of_parents, folders_of_processes_that_are_none;
                                             unit sources.garbage, .all_files_truncated, .stat_*,
                                             limits.damaged_files, scan
   pids and start times                      garbage_in_the_stat_file_of_a_child, _of_the_target
   the clock                                 clock (all of it)
"""
import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from proctor_cli import (PATIENCE, SLACK, finish, is_alive, need_pid_namespaces, numbers, problems, read_csv,
                         read_line, said, skip_visibly, wait_until)

NOBODY = 65534
AS_NOBODY = dict(user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
BECOME_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
JOB = ["sh", "-c", "sleep 0.25; echo said; exit 3"]  # what must not change


def mounts_of_proc():
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines()
            if " /proc " in line]


@pytest.fixture(autouse=True)
def the_machines_own_proc_stays():
    before = mounts_of_proc()
    yield
    assert mounts_of_proc() == before


def private(script, *words):
    """The words, run by a shell in a mount namespace of their own after the script."""
    return ["unshare", "--mount", "sh", "-c", f'set -e; {script}; exec "$@"', "sh",
            *[w if isinstance(w, bytes) else str(w) for w in words]]


def in_private(proctor, script, *words, **options):
    """Runs the words so; what cannot be mounted is a failure of the test."""
    return subprocess.run(private(script, *words), capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, **proctor.options(options))


def reasons(summary):
    return {a["metric"]: a["reason"] for a in summary["absent"]}


def clean(data):
    """No byte that a terminal would obey, and all of it UTF-8."""
    data.decode("utf-8")
    return not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", data)


def no_nonsense(text):
    """JSON that a strict reader takes."""
    def refuse(word):
        raise ValueError(word)
    return json.loads(text, parse_constant=refuse)


# --- 1: names -------------------------------------------------------------------------------------

NAMES = [b"two words", b"(x) R 1 ((", b"li\nne", b"\xff\xfe\x80", b"\x1b[31mred\x1b[0m", b'q",\\',
         b"\xc2\x9b31m", b"cut \xe2\x82", b"%s%n %d", b" ", b"\r\t\x7f"]


def as_shown(name):
    """Broken UTF-8 and what a terminal obeys as \\xNN."""
    text = name.decode("utf-8", errors="backslashreplace")
    return re.sub("[\x00-\x1f\x7f-\x9f]",
                  lambda m: "".join(f"\\x{b:02x}" for b in m.group().encode()), text)


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_names_of_processes_in_every_output(proctor, jobs, name):
    done = proctor.run("-i", "50ms", "--csv", "a.csv", "--processes", "--jsonl", "a.jsonl",
                       "--summary", proctor.summary_file, jobs / "odd", "leave", name, text=False)
    summary = no_nonsense(proctor.summary_file.read_text(encoding="utf-8", errors="strict"))
    (left,) = summary["left_running"]
    os.kill(left["pid"], signal.SIGKILL)
    assert done.returncode == 0
    assert clean(done.stderr) and f"1 left running: {as_shown(name)} (" in done.stderr.decode()
    table = (proctor.work / "a.processes.csv").read_bytes()
    assert clean(table)
    rows = read_csv(proctor.work / "a.processes.csv")
    assert {row["command"] for row in rows} == {"odd", as_shown(name)}
    assert not any(None in row or None in row.values() for row in rows)  # no column too many or few
    lines = [no_nonsense(line) for line in (proctor.work / "a.jsonl").read_text().split("\n")[:-1]]
    commands = {line["command"] for line in lines if line["type"] == "process"}
    assert commands == {"odd", left["command"]}
    with contextlib.suppress(UnicodeDecodeError):
        assert left["command"] == name.decode("utf-8")


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_names_of_processes_attached_to(proctor, jobs, name):
    job = subprocess.Popen([jobs / "odd", "name", name], stdout=subprocess.PIPE)
    proctor.started.append(job)
    assert job.stdout.readline() == b"ready\n"
    done = proctor("attach", "-i", "20ms", "--duration", "0.1", "--csv", "a.csv", "--processes",
                   "--summary", proctor.summary_file, job.pid, text=False)
    assert done.returncode == 0 and clean(done.stderr) and is_alive(job.pid)
    summary = no_nonsense(proctor.summary_file.read_text(encoding="utf-8", errors="strict"))
    assert summary["run"]["command"][:2] == [str(jobs / "odd"), "name"]
    assert summary["metrics"]["procs"]["peak"] == 1
    assert {row["command"] for row in read_csv(proctor.work / "a.processes.csv")} == {as_shown(name)}


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_a_hostile_name_in_a_reason(proctor, jobs, name):
    """Another user's I/O is absent, and the reason has the name of the process."""
    job = subprocess.Popen([jobs / "odd", "name", name], stdout=subprocess.PIPE)
    proctor.started.append(job)
    assert job.stdout.readline() == b"ready\n"
    done = proctor("attach", "-v", "-i", "20ms", "--duration", "0.1", "--summary", "-", job.pid,
                   text=False, **AS_NOBODY)
    assert done.returncode == 0 and clean(done.stderr)
    assert f"io of process {job.pid} ({as_shown(name)}): Permission denied" in done.stderr.decode()
    summary = no_nonsense(done.stdout.decode("utf-8", errors="strict"))
    assert "Permission denied" in reasons(summary)["io.read"]


# --- 2: pids --------------------------------------------------------------------------------------

def test_a_process_that_has_ended(proctor):
    job = subprocess.Popen(["true"])
    job.wait()
    done = proctor("attach", job.pid)
    assert done.returncode == 1
    assert said(done.stderr) == [f"proctor: attach: there is no process {job.pid}"]


def test_a_pid_in_use_again(proctor):
    """Its process ends, and one that works gets the pid: that one is not recorded."""
    need_pid_namespaces()
    script = f"""
sleep 77 & old=$! name=
while [ "$name" != sleep ]; do read name < /proc/$old/comm; done
{proctor.path} attach -q -i 300ms --wait-tree --csv a.csv --summary {proctor.summary_file} $old &
attach=$! rows=0
while [ "$rows" -lt 2 ]; do sleep 0.05; [ ! -e a.csv ] || rows=$(wc -l < a.csv); done
kill $old; wait $old
echo $((old - 1)) > /proc/sys/kernel/ns_last_pid
sh -c 'while :; do :; done' & new=$!
echo $old $new
wait $attach; echo $?
kill -9 $new"""
    done = subprocess.run(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                           script], capture_output=True, text=True, timeout=PATIENCE,
                          **proctor.options({}))
    old, new, status = done.stdout.split()
    if old != new:
        skip_visibly(f"a pid cannot be chosen here: {done.stderr.strip()}")
    assert status == "0", done.stderr
    metrics = proctor.summary()["metrics"]
    assert proctor.summary()["run"]["command"] == ["sleep", "77"]
    assert metrics["procs.started"]["total"] == 1 and metrics["cpu.time"]["total"] < 0.05


def test_a_pid_of_a_member_in_use_again(proctor):
    """One of the job ends and is waited for, and before the next sample one outside that works gets its pid."""
    need_pid_namespaces()
    script = f"""
mkfifo go
{proctor.path} run -q -i 200ms --no-record --exact none --csv a.csv --processes --summary {proctor.summary_file} -- \\
    sh -c 'sleep 77 & echo $! > old; wait $!; : > reaped; read x < go' 2> /dev/null &
run=$! rows=0
while [ "$rows" -lt 6 ]; do sleep 0.05; [ ! -e a.processes.csv ] || rows=$(wc -l < a.processes.csv); done
read old < old
kill $old
while [ ! -e reaped ]; do :; done
echo $((old - 1)) > /proc/sys/kernel/ns_last_pid
/usr/bin/python3 -I -c 'import time; all(time.process_time() < 0.5 for _ in iter(int, 1))' & new=$!
wait $new
echo $old $new $?
echo > go; wait $run; echo $?"""
    done = subprocess.run(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script],
                          capture_output=True, text=True, timeout=PATIENCE, **proctor.options({}))
    old, new, *statuses = done.stdout.split()
    if old != new:
        skip_visibly(f"a pid cannot be chosen here: {done.stderr.strip()}")
    assert statuses == ["0", "0"], done.stderr
    metrics = proctor.summary()["metrics"]
    assert metrics["procs.started"]["total"] == 2 and metrics["cpu.time"]["total"] < 0.1 * SLACK
    rows = [row for row in read_csv(proctor.work / "a.processes.csv") if row["pid"] == old]
    assert rows and {row["command"] for row in rows} <= {"sh", "sleep"}


def kernel_thread(folder):
    """(root, pid): one of this machine, or where none is to be seen, a captured one."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            text = path.read_text(errors="replace")
            if int(text[text.rindex(")") + 2:].split()[6]) & 0x200000:
                return "/", int(path.parts[2])
    tree = Tree(folder / "root")
    tree.process(100, 0, flags=0x200000)
    tree.write("proc/100/statm", "0 0 0 0 0 0 0\n")
    tree.write("proc/100/status", "Name:\tkthreadd\nvoluntary_ctxt_switches:\t5\n"
               "nonvoluntary_ctxt_switches:\t0\n")
    tree.remove("proc/100/smaps_rollup")
    return tree.root, 100


def test_a_kernel_thread(proctor):
    root, pid = kernel_thread(proctor.folder)
    done = proctor("attach", "-i", "20ms", "--duration", "0.1", "--no-children", "--root", root,
                   "--summary", proctor.summary_file, "--csv", "a.csv", pid)
    assert done.returncode == 0, done.stderr
    summary = proctor.summary()
    assert re.fullmatch(r"\[.+\]", summary["run"]["command"][0]) or root != "/"
    assert summary["metrics"]["procs"]["peak"] == 1 and "cpu.time" in summary["metrics"]
    for key in ("mem.rss", "mem.pss", "mem.uss", "mem.vms", "mem.rss.peak", "mem.ratio"):
        assert "is a kernel thread" in reasons(summary)[key], key
    assert not numbers(read_csv(proctor.work / "a.csv"), "mem_rss_bytes")


SECRETIVE = """
import ctypes, time, signal
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
print("ready", flush=True); input()
end = time.process_time() + 0.3
while time.process_time() < end: pass
print("done", flush=True); input()
"""


@pytest.mark.parametrize("owner", [0, NOBODY], ids=["root's", "our own"])
def test_who_may_not_be_looked_at(proctor, owner):
    """Not dumpable: not even its own user may read its I/O and its memory map."""
    job = proctor.other(["/usr/bin/python3", "-I", "-c", SECRETIVE], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, user=owner, group=owner, extra_groups=[], cwd="/")
    assert job.stdout.readline() == b"ready\n"
    process = proctor.start("attach", "-q", "-i", "20ms", "--jsonl", "-", job.pid, **AS_NOBODY)
    while no_nonsense(read_line(process.stdout.fileno()))["type"] != "sample":
        pass
    job.stdin.write(b"\n")
    job.stdin.flush()
    assert job.stdout.readline() == b"done\n"
    time.sleep(0.1)
    process.terminate()
    status, out, err = finish(process)
    assert status == 0, err
    summary = no_nonsense(out.splitlines()[-1])
    assert summary["metrics"]["cpu.time"]["total"] == pytest.approx(0.3, abs=0.05)
    assert summary["metrics"]["mem.rss"]["peak"] > 1e6
    for key in ("io.read", "io.wchar", "mem.pss", "mem.uss"):
        assert "Permission denied" in reasons(summary)[key], key
    assert is_alive(job.pid)


# --- 3 and 4: mounts of /proc ---------------------------------------------------------------------

@pytest.mark.parametrize("option, status", [("2", 1), ("1", 125)])
def test_hidden_processes_cannot_be_attached_to(proctor, option, status):
    job = proctor.other(["sleep", "77"])
    done = in_private(proctor, f"mount -t proc -o hidepid={option} proc /proc", *BECOME_NOBODY,
                      proctor.path, "attach", "--duration", "50ms", job.pid, cwd="/")
    assert done.returncode == status, done.stderr
    (line,) = said(done.stderr)
    assert str(job.pid) in line and "hidepid" in line and "root" in line
    assert is_alive(job.pid)


def test_hidden_processes_are_seen_by_their_owner(proctor):
    job = proctor.other(["sleep", "77"], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    done = in_private(proctor, "mount -t proc -o hidepid=2 proc /proc", *BECOME_NOBODY, proctor.path,
                      "attach", "--duration", "50ms", "--summary", "-", job.pid, cwd="/")
    assert done.returncode == 0, done.stderr
    assert no_nonsense(done.stdout)["metrics"]["mem.rss"]["peak"] > 0


@pytest.mark.parametrize("option", ["2", "1"])
def test_run_where_processes_are_hidden(proctor, option):
    done = in_private(proctor, f"mount -t proc -o hidepid={option} proc /proc", *BECOME_NOBODY,
                      proctor.path, "run", "--no-record", "-i", "20ms", "--summary", "/dev/stderr", "-q", *JOB,
                      cwd="/")
    assert (done.returncode, done.stdout) == (3, "said\n"), done.stderr
    metrics = no_nonsense(done.stderr)["metrics"]
    assert metrics["procs"]["peak"] == 2 and metrics["mem.rss"]["peak"] > 0
    assert metrics["cpu.time"]["total"] > 0 and metrics["io.rchar"]["total"] > 0


def test_proc_without_the_machine(proctor):
    """No loadavg, no stat, no meminfo: only processes."""
    done = in_private(proctor, "mount -t proc -o subset=pid proc /proc; [ ! -e /proc/stat ]",
                      proctor.path, "run", "-i", "20ms", "--csv", "a.csv", "--summary",
                      proctor.summary_file, *JOB)
    assert (done.returncode, done.stdout) == (3, "said\n"), done.stderr
    assert said(done.stderr) == []
    summary = proctor.summary()
    metrics, why = summary["metrics"], reasons(summary)
    assert metrics["procs"]["peak"] == 2 and metrics["cpu.time"]["total"] > 0
    assert metrics["mem.rss"]["peak"] > 0 and metrics["procs.started"]["total"] >= 2
    for key, file in (("system.cpu.time", "/proc/stat"), ("system.mem.total", "/proc/meminfo"),
                      ("system.cpu.usage", "/proc/stat")):
        assert file in why[key] and "No such file" in why[key], key
    memory = summary["limits"]["memory"]
    assert memory == {"bytes": None, "source": "unknown"} or memory["bytes"] < 2 ** 60
    assert "PiB" not in done.stderr and "nan" not in done.stderr
    assert set(numbers(read_csv(proctor.work / "a.csv"), "system_mem_total_bytes")) == set()


def test_who_is_born_where_no_file_has_the_last_pid(proctor):
    """Nobody says there whether somebody forked: those that a shell starts are found all the same, while they run."""
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    done = in_private(proctor, "mount -t proc -o subset=pid proc /proc; [ ! -e /proc/loadavg ]", proctor.path, "run",
                      "-q", "-i", "50ms", "--exact", "none", "--csv", "a.csv", "--processes", "--summary",
                      proctor.summary_file, "sh", "-c", f"for i in 1 2 3 4; do /usr/bin/python3 -I -c '{burn}'; done")
    if "unshare" in done.stderr or "mount" in done.stderr:
        skip_visibly(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    metrics, rows = proctor.summary()["metrics"], read_csv(proctor.work / "a.csv")
    assert metrics["procs.started"]["total"] == 5 == numbers(rows, "procs_started")[-1]
    assert 1.2 <= metrics["cpu.time"]["total"] < 1.4 * SLACK, metrics["cpu.time"]
    assert max(numbers(rows, "procs")) == 2
    assert len({row["pid"] for row in read_csv(proctor.work / "a.processes.csv")}) == 5


# --- captured trees -------------------------------------------------------------------------------

STATUS = """Name:\tfake
VmHWM:\t    5000 kB
VmSwap:\t       0 kB
Threads:\t1
SigIgn:\t0000000000000000
Cpus_allowed_list:\t0-3
voluntary_ctxt_switches:\t8
nonvoluntary_ctxt_switches:\t9
"""
SMAPS = "0-1 ---p 00000000 00:00 0 [rollup]\nRss: 4000 kB\nPss: 3000 kB\nPrivate_Clean: 1000 kB\n" \
        "Private_Dirty: 1000 kB\nSwap: 0 kB\n"
IO = "rchar: 100\nwchar: 200\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\n"


class Tree:
    """A root with proc and sys in it, made up."""

    def __init__(self, root):
        self.root = root
        self.write("proc/meminfo", "MemTotal: 8000000 kB\nMemFree: 4000000 kB\n"
                   "MemAvailable: 5000000 kB\n")
        self.write("proc/stat", "cpu  100 0 100 1000 0 0 0 0 0 0\ncpu0 100 0 100 1000 0 0 0 0 0 0\n")
        self.write("proc/loadavg", "0.00 0.00 0.00 1/100 101\n")
        self.write("proc/self/mountinfo",
                   "30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n")
        self.write("sys/devices/system/cpu/online", "0-7\n")
        self.write("sys/fs/cgroup/job/memory.max", "1073741824\n")
        self.write("sys/fs/cgroup/job/cpu.max", "200000 100000\n")

    def process(self, pid, ppid, comm="fake", flags=4194304):
        self.write(f"proc/{pid}/stat", self.stat(pid, ppid, comm, flags))
        self.write(f"proc/{pid}/statm", "2000 1000 500 1 0 200 0\n")
        self.write(f"proc/{pid}/status", STATUS)
        self.write(f"proc/{pid}/io", IO)
        self.write(f"proc/{pid}/smaps_rollup", SMAPS)
        self.write(f"proc/{pid}/cgroup", "0::/job\n")
        self.write(f"proc/{pid}/comm", comm + "\n")
        self.write(f"proc/{pid}/cmdline", comm + "\0")
        self.write(f"proc/{pid}/fd/0", "")

    @staticmethod
    def stat(pid, ppid, comm="fake", flags=4194304, utime="50", start="1000", minflt="100"):
        return f"{pid} ({comm}) S {ppid} {pid} {pid} 0 -1 {flags} {minflt} 0 0 0 {utime} 20 0 0 " \
               f"20 0 1 0 {start} 8192000 1000 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1\n"

    def write(self, name, data):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())

    def remove(self, name):
        path = self.root / name
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


@pytest.fixture
def tree():
    """Readable by everybody, which the folder of a test is not."""
    with tempfile.TemporaryDirectory(prefix="proctor-hostile-") as folder:
        os.chmod(folder, 0o755)
        made = Tree(Path(folder))
        made.process(100, 1, "root")
        made.process(101, 100, "child")
        yield made


def attach_to(proctor, tree, *words, **options):
    """Records the made-up process 100; it must neither crash nor hang. (status, stderr, summary)"""
    proctor.summary_file.unlink(missing_ok=True)
    done = proctor("attach", "--root", tree.root, "-i", "10ms", "--duration", "40ms", "--budget",
                   "100%", "--csv", "a.csv", "--processes", "--jsonl", "a.jsonl", "--summary",
                   proctor.summary_file, *words, 100, timeout=PATIENCE, text=False, **options)
    assert done.returncode in (0, 1, 125) and clean(done.stderr), done.stderr
    assert b"nan" not in done.stderr.lower() and b"inf" not in done.stderr.lower()
    err = done.stderr.decode()
    if done.returncode:
        assert len(said(err)) == 1 and "100" in err
        assert not proctor.summary_file.exists()
        return done.returncode, err, None
    summary = no_nonsense(proctor.summary_file.read_text())
    for line in (proctor.work / "a.jsonl").read_text().splitlines():
        no_nonsense(line)
    for name in ("a.csv", "a.processes.csv"):
        text = (proctor.work / name).read_text()
        assert not re.search(r"(?i)\bnan\b|\binf\b", text) and not re.search(r",-\d", text), text
        for row in read_csv(proctor.work / name):
            assert None not in row and None not in row.values()
    assert len(err.splitlines()) <= 8
    return 0, err, summary


def test_files_that_are_not_there_or_not_ours(proctor, tree):
    """No smaps_rollup (Linux before 4.14), and io that only its owner may read."""
    for pid in (100, 101):
        tree.remove(f"proc/{pid}/smaps_rollup")
        os.chmod(tree.root / f"proc/{pid}/io", 0)
    done = proctor("attach", "--root", tree.root, "-i", "20ms", "--duration", "0.3", "--budget",
                   "100%", "--summary", "-", 100, **AS_NOBODY)
    assert done.returncode == 0, done.stderr
    summary = no_nonsense(done.stdout)
    why = reasons(summary)
    assert summary["metrics"]["mem.rss"]["peak"] == 2 * 1000 * resource.getpagesize()
    assert summary["metrics"]["mem.ratio"]["mark"] == "from RSS"
    for key in ("mem.pss", "mem.uss"):
        assert "smaps_rollup" in why[key] and "No such file" in why[key], key
    for key in ("io.read", "io.write", "io.rchar", "io.wchar", "io.read.rate"):
        assert why[key].startswith("io of process 10") and "Permission denied" in why[key], key
    assert summary["accounting"]["io"]["complete"] is False


def test_the_made_up_tree_as_it_is(proctor, tree):
    """What the tests below damage is right to begin with."""
    _, _, summary = attach_to(proctor, tree)
    metrics = summary["metrics"]
    assert metrics["procs"]["peak"] == 2
    assert metrics["mem.pss"]["peak"] == 2 * 3000 * 1024
    assert metrics["mem.uss"]["peak"] == 2 * 2000 * 1024
    assert summary["accounting"]["cpu"]["before"] == pytest.approx(2 * 0.7)
    assert summary["limits"]["memory"]["bytes"] == 2 ** 30 and summary["limits"]["cpu"]["cores"] == 2


# --- 11: garbage ----------------------------------------------------------------------------------

BYTES = bytes(range(256)) * 20
NONSENSE = {"empty": b"", "binary": BYTES, "enormous": b"9" * 10_000_000, "lines": b"\n" * 70_000,
            "parentheses": b"(" * 5000 + b")" * 5000, "zeros": bytes(5000)}


@contextlib.contextmanager
def damaged(tree, name, kind, data=b""):
    """The file is something else for a while."""
    path = tree.root / name
    before = path.read_bytes() if path.exists() else None
    if before is not None:
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "without end":
        path.symlink_to("/dev/zero")
    elif kind == "a circle":
        path.symlink_to(path.name)
    else:
        path.write_bytes(data)
    yield
    tree.remove(name)
    if before is not None:
        path.write_bytes(before)


STRANGE = ("folder", "fifo", "without end", "a circle")


def everything_for(whole, *more):
    """(name, bytes) of all that may stand in a file whose text should be `whole`."""
    cut = whole.encode()[:len(whole) // 3]
    return [*NONSENSE.items(), *((kind, b"") for kind in STRANGE), ("cut off", cut),
            *((text, text.encode()) for text in more)]


def test_garbage_in_the_stat_file_of_the_target(proctor, tree):
    whole = Tree.stat(100, 1, "root")
    bad = [Tree.stat(100, 1, utime="-5"), Tree.stat(4294967396, 1), Tree.stat(101, 1),
           Tree.stat("x", 1), Tree.stat(100, "9" * 30), Tree.stat(100, -1),
           whole.replace(")", ""), "100 () ", "100 (root)"]
    for kind, data in everything_for(whole, *bad):
        with damaged(tree, "proc/100/stat", kind, data):
            status, err, _ = attach_to(proctor, tree)
            assert status, kind
            assert re.search("not understood|directory|Illegal seek|symbolic", err), (kind, err)


def test_numbers_beyond_64_bits_in_the_stat_file(proctor, tree):
    huge = "9" * 30
    for text in (Tree.stat(100, 1, utime=huge), Tree.stat(100, 1, start=huge),
                 Tree.stat(100, 1, minflt=huge)):
        tree.write("proc/100/stat", text)
        status, err, summary = attach_to(proctor, tree)
        assert status == 0, err
        assert summary["metrics"]["procs"]["peak"] == 2


def test_garbage_in_the_stat_file_of_a_child(proctor, tree):
    """Who cannot be understood is no member, and takes nobody along."""
    whole = Tree.stat(101, 100, "child")
    bad = [Tree.stat(101, 100, minflt="-1"), Tree.stat(102, 100), Tree.stat(100, 100)]
    for kind, data in everything_for(whole, *bad):
        with damaged(tree, "proc/101/stat", kind, data):
            status, err, summary = attach_to(proctor, tree)
            assert status == 0, (kind, err)
            assert summary["metrics"]["procs"]["peak"] == 1, kind
            assert summary["accounting"]["cpu"]["before"] == pytest.approx(0.7), kind
    for start in ("9" * 30, "9223372036854775807", "0", "-1"):
        tree.write("proc/101/stat", Tree.stat(101, 100, start=start))
        assert attach_to(proctor, tree)[0] == 0


def test_a_circle_of_parents(proctor, tree):
    tree.write("proc/100/stat", Tree.stat(100, 101))
    tree.process(102, 102)
    status, _, summary = attach_to(proctor, tree)
    assert status == 0 and summary["metrics"]["procs"]["peak"] == 2


FILES = {  # metrics that are absent where the file is not understood, and the name in the reason
    "statm": (("mem.rss", "mem.vms"), "1000 300 20 1 0 2 0\n", ["-5 -7 0\n", "5\n"]),
    "io": (("io.read", "io.wchar", "io.read.rate"), IO, ["rchar: -1\nwchar: x\n", "rchar\n"]),
    "status": (("mem.rss.peak", "ctx.voluntary"), STATUS, ["VmHWM: -1 kB\n", "Name:\n"]),
    "smaps_rollup": (("mem.pss", "mem.uss"), SMAPS, ["Pss: -1 kB\n", "[rollup]\n"]),
}


@pytest.mark.parametrize("file", FILES)
def test_garbage_in_files_of_a_process(proctor, tree, file):
    keys, whole, bad = FILES[file]
    for kind, data in everything_for(whole, *bad):
        if kind in ("cut off", "enormous"):
            continue  # below
        with damaged(tree, f"proc/100/{file}", kind, data), \
                damaged(tree, f"proc/101/{file}", kind, data):
            status, err, summary = attach_to(proctor, tree)
            assert status == 0, (kind, err)
            why = reasons(summary)
            for key in keys:
                if key == "mem.rss.peak" and key not in why:
                    continue  # the highest RSS that was sampled stands in for it
                assert why[key].startswith(f"{file} of process 10"), (kind, key, why[key])
            assert summary["metrics"]["procs"]["peak"] == 2
            if file == "io":
                assert summary["accounting"]["io"]["complete"] is False


@pytest.mark.parametrize("file", FILES)
def test_cut_off_and_enormous_files_of_a_process(proctor, tree, file):
    whole = FILES[file][1]
    huge = re.sub(r"\d+", "9" * 30, whole)
    for data in [whole[:n] for n in range(0, len(whole), 7)] + [huge, whole * 100_000, "9" * 10 ** 7]:
        with damaged(tree, f"proc/100/{file}", "data", data.encode()):
            status, err, summary = attach_to(proctor, tree)
            assert status == 0 and summary["metrics"]["procs"]["peak"] == 2, err


@pytest.mark.parametrize("file, bad", [
    ("proc/100/cgroup", ["0::/../../..\n", "0::" + "/ab" * 5000 + "\n", "0::job\n", ":::::\n",
                         "0::/job\x1b[31m\n"]),
    ("proc/self/mountinfo", ["30 20 0:26 /\\3!! /\\3\"\" rw - cgroup2 cgroup2 rw\n",
                             "1 2 3 / /" + "x" * 9000 + " rw - cgroup2 a b\n", "- - - - - -\n"]),
    ("proc/meminfo", ["MemTotal: -5 kB\n", "MemTotal: " + "9" * 40 + " kB\n", "MemTotal\n"]),
    ("proc/stat", ["cpu -1 -1 -1 -1\n", "cpu " + ("9" * 30 + " ") * 10 + "\n", "cpu\n",
                   "cpu99999 1\n"]),
    ("proc/loadavg", ["0.0 0.0 0.0 1/2 -7\n", "x\n"]),
    ("proc/100/comm", ["\x1b[31m\n"]), ("proc/100/cmdline", ["\x1b[31m\0\xff\0" * 1000]),
    ("proc/100/fd", []),
    ("sys/devices/system/cpu/online", ["0-" + "9" * 30 + "\n", "7-0\n", "-1\n", ",,,\n"]),
    ("sys/fs/cgroup/job/memory.max", ["-1\n", "9" * 30 + "\n", "0\n"]),
    ("sys/fs/cgroup/job/cpu.max", ["0 0\n", "max\n", "9 -1\n", "1 " + "9" * 30 + "\n"])])
def test_garbage_in_files_of_the_machine(proctor, tree, file, bad):
    if file == "proc/100/fd":
        (tree.root / file / "0").unlink()
        (tree.root / file).rmdir()
    for kind, data in everything_for("0::/job\n1\n", *bad):
        with damaged(tree, file, kind, data):
            status, err, summary = attach_to(proctor, tree)
            assert status == 0, (kind, err)
            assert summary["metrics"]["procs"]["peak"] == 2, kind
            for limit, unit in (("cpu", "cores"), ("memory", "bytes")):
                value = summary["limits"][limit]
                assert value["source"] and (value[unit] is None or 0 < value[unit] < 2 ** 62), kind
            for key in [k for k in summary["metrics"] if k.startswith("system.")]:
                value = summary["metrics"][key]
                least = value.get("total", value.get("min"))
                assert least is None or least >= 0, (kind, key)  # a rate that no sample has


def test_folders_of_processes_that_are_none(proctor, tree):
    for name in ("102", "-5", "0", "99999999999999999999", "103x", "١٢", " 7"):
        (tree.root / "proc" / name).mkdir()
    (tree.root / "proc" / "104").write_text("a file")
    (tree.root / "proc" / "105").symlink_to("105")
    os.mkfifo(tree.root / "proc" / "106")
    status, err, summary = attach_to(proctor, tree)
    assert status == 0, err
    assert summary["metrics"]["procs"]["peak"] == 2


# --- 6 and 7: many --------------------------------------------------------------------------------

@pytest.mark.parametrize("limit", [16, 256])
def test_a_crowd_and_few_descriptors(proctor, jobs, limit):
    """All are seen and read, though hardly a descriptor may be held."""
    count = 5000
    process = proctor.start("run", "-q", "-i", "1s", "--csv", "a.csv", "--summary",
                            proctor.summary_file, jobs / "odd", "crowd", count,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                  (limit, limit)))
    before = time.monotonic()
    assert read_line(process.stdout.fileno()) == f"limit {limit} {limit}"
    assert read_line(process.stdout.fileno(), 60) == "ready"
    table = proctor.work / "a.csv"
    wait_until(lambda: any(n == count + 1 for n in numbers(read_csv(table)[:-1], "procs")),
               "a sample of all", 60)
    process.send_signal(signal.SIGUSR1)  # handed on
    status, out, err = finish(process, 60)
    assert (status, err) == (3, "") and time.monotonic() - before < 60
    summary = proctor.summary()
    metrics = summary["metrics"]
    assert metrics["procs"]["peak"] == count + 1 == metrics["threads"]["peak"]
    assert metrics["procs.started"]["total"] == count + 1
    used = float(out.split()[-1])
    assert metrics["cpu.time"]["total"] == pytest.approx(used, rel=0.02, abs=0.05)
    assert summary["accounting"]["cpu"]["complete"] is True
    assert problems(summary) == [] and summary["left_running"] == []
    rows = [row for row in read_csv(table) if row["procs"] == str(count + 1)]
    assert all(float(row["mem_rss_bytes"]) > count * 10_000 for row in rows)


@pytest.mark.parametrize("limit", range(3, 17))
def test_hardly_any_descriptors(proctor, limit):
    """It records, or it says what is the matter and starts nothing."""
    done = proctor.run("-i", "20ms", "--csv", "a.csv", "--summary", proctor.summary_file, "sh", "-c",
                       "echo > started; sleep 0.1; exit 3", preexec_fn=lambda: resource.setrlimit(
                           resource.RLIMIT_NOFILE, (limit, limit)))
    started = (proctor.work / "started").exists()
    if done.returncode == 3:
        assert started and proctor.summary()["metrics"]["cpu.time"]["total"] > 0
        return
    assert limit < 16, done.stderr
    if done.returncode == 127:  # not even a shell can be loaded
        assert not started
        return
    assert done.returncode == 125 and not started
    reasons = [line for line in said(done.stderr) if "the run is not recorded" not in line]
    assert len(reasons) == 1 and "Too many open files" in reasons[0]
    assert not list(proctor.folder.glob("summary*"))


def test_a_thousand_threads(proctor, jobs):
    done, summary = proctor.recorded("-i", "50ms", jobs / "odd", "threads", "1000", "1000")
    assert done.returncode == 0
    used = float(done.stdout.split()[-1])
    metrics = summary["metrics"]
    assert metrics["threads"]["peak"] >= 1001 and metrics["procs"]["peak"] == 1
    assert used >= 1 and metrics["cpu.time"]["total"] == pytest.approx(used, rel=0.02, abs=0.05)


# --- 8: outputs -----------------------------------------------------------------------------------

@pytest.mark.parametrize("option", ["--csv", "--jsonl", "--summary"])
@pytest.mark.parametrize("place, word", [
    ("/", "Is a directory"), ("/proc/version/x", "Not a directory"), ("/x", "Permission denied"),
    ("/proc/x", "No such file")])
def test_outputs_that_cannot_be_opened(proctor, option, place, word):
    """Said before anything is started, with option, reason and path."""
    options = AS_NOBODY if place == "/x" else {}
    done = proctor.run(option, place, "sh", "-c", "echo started", **options)
    assert (done.returncode, done.stdout) == (125, "")
    (line,) = said(done.stderr)
    assert option in line and word in line and f"'{place}'" in line


@pytest.mark.parametrize("option", ["--csv", "--jsonl", "--summary"])
def test_a_read_only_file_system(proctor, option):
    place = proctor.folder / "place"
    place.mkdir()
    done = in_private(proctor, f"mount -t tmpfs -o ro none {place}", proctor.path, "run", option,
                      place / "x", "sh", "-c", "echo started")
    assert (done.returncode, done.stdout) == (125, ""), done.stderr
    (line,) = said(done.stderr)
    assert option in line and "Read-only file system" in line


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("option", ["--csv", "--jsonl", "--summary"])
def test_a_full_disk(proctor, option, strict):
    """8 KiB, of which a file takes 4 before the end."""
    place = proctor.folder / "place"
    place.mkdir()
    done = in_private(proctor, f"mount -t tmpfs -o size=8k none {place}; "
                      f"head -c 4096 /dev/zero > {place}/filler",
                      proctor.path, "run", "-i", "10ms", *(["--strict"] if strict else []), option,
                      place / "x", *([] if option == "--summary" else
                                     ["--summary", proctor.summary_file]), *JOB)
    assert done.stdout == "said\n" and done.returncode == (125 if strict else 3), done.stderr
    lines = said(done.stderr)
    assert 1 <= len(lines) == len(set(lines)) <= 2
    assert "No space left on device" in lines[0] and "place/x" in lines[0]
    assert "trouble" in done.stderr and "exit 3" in done.stderr
    if option != "--summary":
        assert [f"proctor: {text}" for text in problems(proctor.summary())] == lines
        assert proctor.summary()["exit"]["code"] == 3


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("option", ["--csv", "--jsonl", "--summary", "--output"])
def test_a_file_that_may_not_grow(proctor, option, strict):
    """RLIMIT_FSIZE: the kernel also sends SIGXFSZ, of which neither we nor the job must die."""
    record = [] if option == "--output" else ["--no-record"]
    done = proctor.run("-i", "5ms", *(["--strict"] if strict else []), *record, option, "x", *JOB,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert done.stdout == "said\n" and done.returncode == (125 if strict else 3), done.stderr
    line, *others = said(done.stderr)
    assert "x: " in line and "File too large" in line
    assert not others or option == "--output" and "samples are missing" in others[0] and len(others) == 1
    assert (proctor.work / "x").exists() == (option in ("--csv", "--jsonl")), "an empty record is none"
    assert not list(proctor.work.glob("*.tmp"))


# --- 9: settings ----------------------------------------------------------------------------------

@pytest.mark.parametrize("words, thing, value, remedy", [
    (["run", "--frobnicate", "true"], "option", "--frobnicate", "`proctor run --help`"),
    (["run", "--interva", "1s", "true"], "option", "--interva", "`proctor run --help`"),
    (["run", "-x", "true"], "option", "-x", "`proctor run --help`"),
    (["run", "-i"], "needs a value", "-i", "DURATION"),
    (["run", "--quiet=yes", "true"], "--quiet", "takes no value", "no value"),
    (["run", "--duration", "1s", "true"], "option", "--duration", "attach"),
    (["run", "--average", "1e300", "true"], "--average", "'1e300'", "1 or 10"),
    (["run", "--average", "2000000", "true"], "--average", "'2000000'", "1000000"),
    (["run", "--interval", "1e99h", "true"], "--interval", "'1e99h'", "100ms"),
    (["run", "--interval", "99999999h", "true"], "--interval", "'99999999h'", "9 years"),
    (["run", "--interval", "nan", "true"], "--interval", "'nan'", "100ms"),
    (["run", "--interval", "0x10", "true"], "--interval", "'0x10'", "100ms"),
    (["run", "--budget", "-1%", "true"], "--budget", "'-1%'", "1%"),
    (["run", "--budget", "inf", "true"], "--budget", "'inf'", "1%"),
    (["run", "--memory-total", "12XB", "true"], "--memory-total", "'12XB'", "64GiB"),
    (["run", "--memory-total", "-1", "true"], "--memory-total", "'-1'", "64GiB"),
    (["run", "--label", "no equals", "true"], "--label", "'no equals'", "KEY=VALUE"),
    (["attach"], "PID", "missing", "proctor attach [OPTIONS] PID"),
    (["attach", "-1"], "option", "-1", "`proctor attach --help`"),
    (["attach", "1x"], "process id", "'1x'", "pgrep"),
    (["attach", "0"], "process id", "'0'", "pgrep"),
    (["attach", "99999999999999999999"], "process id", "'99999999999999999999'", "pgrep"),
    (["attach", "1", "2"], "one PID", "'2'", "takes one PID"),
    (["run"], "command", "missing", "proctor run [OPTIONS]"),
    (["rnu", "true"], "command", "'rnu'", "`proctor --help`"),
    (["--verbose", "run"], "option", "'--verbose'", "`proctor --help`"),
    ([], "command", "missing", "`proctor --help`")], ids=str)
def test_thing_value_and_remedy(proctor, words, thing, value, remedy):
    done = proctor(*words)
    assert done.returncode == (125 if words[:1] == ["run"] else 2)
    (line,) = said(done.stderr)
    assert thing in line and value in line and remedy in line, line


@pytest.mark.parametrize("line, value, remedy", [
    ("interval = soon", "'soon'", "100ms"), ("interval = ", "''", "100ms"),
    ("no-pss = perhaps", "'perhaps'", "true or false"), ("memory-total = much", "'much'", "64GiB"),
    ("budget = 0", "'0'", "0.001%"), ("label = alone", "'alone'", "KEY=VALUE"),
    ("colour = never", "'colour'", "`proctor run --help`"),
    ("select = no.such", "'no.such'", "`proctor metrics`"), ("[section]", "'[section]'", "NAME = VALUE"),
    ("color = maybe", "'maybe'", "always")])
def test_thing_value_and_remedy_in_config_lines_and_variables(proctor, line, value, remedy):
    proctor.config(f"# comment\n{line}\n")
    done = proctor.run("echo", "started")
    assert (done.returncode, done.stdout) == (125, "")
    (message,) = said(done.stderr)
    assert f"{proctor.config_file}:2" in message and value in message and remedy in message, message
    proctor.config_file.unlink()
    name, equals, text = line.partition(" = ")
    if not text or name == "colour":
        return  # an empty variable is none; unknown ones are below
    name = "PROCTOR_" + name.upper().replace("-", "_")
    done = proctor.run("echo", "started", env={name: text})
    assert (done.returncode, done.stdout) == (125, "")
    (message,) = said(done.stderr)
    assert name in message and value in message and remedy in message, message


def test_unknown_variables(proctor):
    """They may be meant for something else: they are named, and the job runs."""
    done = proctor.run("-q", *JOB, env={"PROCTOR_INTERVALL": "1s\x1b[31m", "PROCTOR_": "x",
                                        "PROCTOR_HOME": str(proctor.folder / "home"), "PROCTOR_DURATION": "5s"},
                       text=False)
    assert (done.returncode, done.stdout) == (3, b"said\n") and clean(done.stderr)
    lines = said(done.stderr)
    assert len(lines) == 2
    (line,) = [one for one in lines if "INTERVALL" in one]
    assert "PROCTOR_INTERVALL=1s\\x1b[31m" in line and "`proctor config`" in line


def test_a_config_file_far_away(proctor):
    """A long path leaves room for what is wrong in the file."""
    base = proctor.folder / Path(*["d" * 200] * 15)
    (base / "proctor").mkdir(parents=True)
    (base / "proctor" / "config").write_text(f"\ninterval = {'x' * 1000}\n")
    done = proctor.run("echo", "started", env={"XDG_CONFIG_HOME": str(base)})
    assert (done.returncode, done.stdout) == (125, "")
    (line,) = said(done.stderr)
    assert "proctor/config:2" in line and "interval: 'xxx" in line and "100ms" in line


@pytest.mark.parametrize("data", [b"\x00" * 1000, bytes(range(256)), b"=" * 1000, b"\n" * 100_000,
                                  b"x" * 1_000_000, b"\xef\xbb\xbfinterval = 2s\n", b"interval = 2s\r\n"])
def test_garbage_in_the_config_file(proctor, data):
    proctor.config("")
    proctor.config_file.write_bytes(data)
    done = proctor.run("-q", "sh", "-c", "exit 3", text=False)
    assert done.returncode in (3, 125) and clean(done.stderr)
    if done.returncode == 125:
        (line,) = said(done.stderr)
        assert f"{proctor.config_file}:" in line
    else:
        assert done.stderr == b""


# --- 10: long and empty ---------------------------------------------------------------------------

LONG = ["x" * 100_000 + str(i) for i in range(18)] + ["a\nb", "\x1b[31m"]


def test_long_command_lines(proctor):
    done = proctor.run("--summary", proctor.summary_file, "--jsonl", "a.jsonl", "sh", "-c",
                       "echo $# ${#1}; exit 3", "sh", *LONG)
    assert (done.returncode, done.stdout) == (3, f"{len(LONG)} 100001\n")
    assert proctor.summary()["run"]["command"][4:] == LONG
    first = no_nonsense((proctor.work / "a.jsonl").read_text().splitlines()[0])
    assert first["command"][4:] == LONG
    assert max(map(len, done.stderr.splitlines())) < 300 and len(done.stderr.splitlines()) <= 8


def test_a_long_command_line_of_another(proctor):
    job = proctor.other(["sh", "-c", "read x", "sh", *LONG], stdin=subprocess.PIPE)
    wait_until(lambda: len(Path(f"/proc/{job.pid}/cmdline").read_bytes()) > 1_800_000, "exec")
    done = proctor("attach", "--duration", "50ms", "--summary", proctor.summary_file, job.pid)
    assert done.returncode == 0
    assert proctor.summary()["run"]["command"][4:] == LONG
    assert max(map(len, done.stderr.splitlines())) < 300


@pytest.mark.parametrize("word, reason", [("", "not found in PATH"), ("x" * 3000, "File name too long"),
                                          ("/" + "x/" * 3000, "File name too long")],
                         ids=["empty", "name", "path"])
def test_no_name_to_run(proctor, word, reason):
    done = proctor.run("--summary", proctor.summary_file, word)
    assert done.returncode in (126, 127) and not proctor.summary_file.exists()
    (line,) = said(done.stderr)
    assert f"cannot start '{word[:100]}" in line and reason in line


def test_an_empty_first_argument(proctor, jobs):
    """Somebody's argv[0] is empty: in the job, and as what is attached to."""
    done, summary = proctor.recorded("-i", "20ms", "--csv", "a.csv", "--processes", jobs / "odd",
                                     "exec", "/bin/cat")
    assert done.returncode == 0 and summary["processes"]["seen"] == 1
    job = proctor.other([jobs / "odd", "exec", "/bin/cat"], stdin=subprocess.PIPE)
    wait_until(lambda: Path(f"/proc/{job.pid}/cmdline").read_bytes() == b"\0", "exec")
    done = proctor("attach", "-i", "20ms", "--duration", "50ms", "--summary", proctor.summary_file,
                   job.pid)
    assert done.returncode == 0 and is_alive(job.pid)
    assert proctor.summary()["run"]["command"] == [""]
    assert f"proctor: {job.pid} ''" in done.stderr


def test_garbage_in_variables(proctor):
    names = re.findall(r"^([a-z-]+) +=", proctor("config").stdout, re.M)
    assert len(names) > 20
    for value in (b"\xff\xfe\x1b[31m", b"x" * 100_000):
        for name in names:
            variable = "PROCTOR_" + name.upper().replace("-", "_")
            done = proctor.run("-q", "sh", "-c", "exit 3", env={variable: value}, text=False)
            assert done.returncode in (3, 125), (variable, done.stderr)
            assert clean(done.stderr) and len(done.stderr) < 4000
            assert (variable.encode() in done.stderr or
                    b"--" in done.stderr or b"root '" in done.stderr) == (done.returncode == 125)


def test_config_is_safe_to_print(proctor):
    proctor.config('name = "a\x1b[31m"\n')
    done = proctor("config", env={"PROCTOR_NODE": b"\xff\x9b", "PROCTOR_CSV": "new\nline"}, text=False)
    assert done.returncode == 0 and clean(done.stdout)
    for shown in (b"a\\x1b[31m", b"\\xff\\x9b", b"new\\x0aline"):
        assert shown in done.stdout


def test_long_paths(proctor):
    folder = proctor.folder / Path(*["d" * 200] * 18)
    folder.mkdir(parents=True)
    rest = 3900 - len(str(folder)) - 1
    place = folder / ("e" * rest if 0 < rest < 200 else "e")
    place.mkdir()
    assert len(str(place)) > 3600
    done = proctor.run("--csv", place / "a.csv", "--processes", "--jsonl", place / "a.jsonl",
                       "--summary", place / "s.json", *JOB)
    assert (done.returncode, done.stdout) == (3, "said\n") and said(done.stderr) == []
    assert sorted(os.listdir(place)) == ["a.csv", "a.jsonl", "a.processes.csv", "s.json"]
    assert proctor.summary(place / "s.json")["exit"]["code"] == 3


@pytest.mark.parametrize("option", ["--csv", "--jsonl", "--summary", "--root"])
@pytest.mark.parametrize("path", ["/tmp/" + "x" * 300, "/tmp" + "/." * 2100 + "/x"],
                         ids=["name", "whole"])
def test_a_path_that_is_too_long(proctor, option, path):
    done = proctor.run(option, path, "echo", "started")
    assert (done.returncode, done.stdout) == (125, "")
    (line,) = said(done.stderr)
    assert option.removeprefix("--") in line and "File name too long" in line


def test_trouble_with_a_long_path_has_its_reason(proctor):
    folder = proctor.folder / Path(*["d" * 200] * 10)
    folder.mkdir(parents=True)
    for name in ("a.csv", "a.jsonl"):
        (folder / name).symlink_to("/dev/full")
    done = proctor.run("-i", "20ms", "--csv", folder / "a.csv", "--jsonl", folder / "a.jsonl",
                       "--summary", proctor.summary_file, *JOB)
    assert (done.returncode, done.stdout) == (3, "said\n")
    lines = said(done.stderr)
    for name in ("a.csv", "a.jsonl"):
        assert any(name in line and "No space left on device" in line for line in lines), lines


def test_a_long_name_of_the_summary(proctor):
    name = "s" * 255
    done = proctor.run("-q", "--summary", name, *JOB)
    assert (done.returncode, done.stderr) == (3, "")
    assert os.listdir(proctor.work) == [name]
    assert proctor.summary(proctor.work / name)["exit"]["code"] == 3


def test_long_labels(proctor):
    key, text = "k" * 255, "v" * 10_000
    _, summary = proctor.recorded("--label", f"{key}={text}", "--name", text, "true")
    assert summary["run"]["labels"] == {key: text} and summary["run"]["name"] == text
    done = proctor.run("--label", "k" * 10_000 + "=v", "echo", "started")
    assert (done.returncode, done.stdout) == (125, "")
    (line,) = said(done.stderr)
    assert "--label" in line and "'kkk" in line and "255 bytes" in line and "shorten" in line


@pytest.mark.parametrize("env", [
    {"TERM": "\x1b[31m", "COLUMNS": "-5"}, {"TERM": "x" * 10_000, "COLUMNS": "99999999999999999999"},
    {"TERM": "", "COLUMNS": "", "LINES": "0"}, {"COLUMNS": "0", "LC_ALL": "\xff", "LANG": "%s%n"},
    {"COLUMNS": "1", "LC_ALL": "no_SUCH.utf8", "TZ": "Nowhere/Nothing"}], ids=str)
@pytest.mark.parametrize("color", ["auto", "always"])
def test_odd_terminals(proctor, env, color):
    done = proctor.run("--color", color, "--csv", "a.csv", *JOB, env=env, text=False)
    assert (done.returncode, done.stdout) == (3, b"said\n")
    assert clean(re.sub(rb"\x1b\[\d*m", b"", done.stderr) if color == "always" else done.stderr)
    assert 5 <= len(done.stderr.splitlines()) <= 8
    assert len(read_csv(proctor.work / "a.csv")) >= 2
