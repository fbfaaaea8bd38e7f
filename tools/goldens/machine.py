# SPDX-License-Identifier: Apache-2.0
"""A machine on which the known rows happen: a /proc and /sys of files, a clock, an nvidia-smi. What an original
reads from the system it reads from here, so that what it writes is its own work on our rows."""
import io
import os
import pathlib
import shutil
import types

from . import rows as known

TICK = 100  # clock ticks in a second, as on every Linux that these programs run on
PAGE = 4096
SECTOR = 512
BOOT = 10**9  # when the machine started, s since 1970
MIB = 1024**2


def ticks(seconds):
    return round((seconds or 0) * TICK)


def kib(size):
    return round((size or 0) / 1024)


class Machine:
    """unknown_pss: what smaps_rollup says where nobody could read it, in kB; None for no such file. afterlife: the
    root process is a zombie in the last sample, with everything that the job has used, and without memory."""

    def __init__(self, folder, rows, unknown_pss=None, afterlife=False):
        self.folder, self.rows = pathlib.Path(folder), rows
        self.unknown_pss, self.afterlife = unknown_pss, afterlife
        self.root = rows["run"]["root_pid"]
        self.start = known.wall_ns(rows["run"]["started"]) / known.NS
        self.reaped = {}  # of whom the root process has waited for: their own use
        self.seen = {}
        self.show(0)

    # --- the clock ---------------------------------------------------------------------------------

    def show(self, index, early=0):
        """The machine as it was at a sample; early: so many intervals before it."""
        self.index, self.sample = index, self.rows["samples"][index]
        self.now = self.start + self.sample["elapsed"] - early * self.rows["run"]["interval"]
        self._reap()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._machine()
        for process in self.processes():
            self._process(process)

    def time(self):
        return self.now

    def monotonic(self):
        """A little above each microsecond, for those who cut it there."""
        return 100 + self.sample["elapsed"] + 2e-7

    def steps(self):
        """Each sample in turn, for originals that are called once for each."""
        for index in range(len(self.rows["samples"])):
            self.show(index)
            yield self.sample

    def event(self):
        """What an original waits on: it is set after the last sample, and waiting brings the next one."""
        left = self.steps()
        next(left)
        over = []

        def wait(_=None):
            if next(left, None) is None:
                over.append(True)
        return types.SimpleNamespace(is_set=lambda: bool(over), wait=wait, clear=lambda: None, set=lambda: None)

    # --- who is there ------------------------------------------------------------------------------

    def processes(self):
        if self.sample["processes"] or not self.afterlife:
            return self.sample["processes"]
        root = self.rows["samples"][0]["processes"][0]
        return [{**root, "values": {key: self.sample["values"].get(key) or 0 for key in root["values"]}}]

    def _reap(self):
        if not self.sample["processes"]:
            self.reaped = {}  # what they used is in the job's own figures
            return
        there = {p["pid"]: p["values"] for p in self.processes()}
        for pid, values in self.seen.items():
            if pid not in there and pid != self.root:
                self.reaped[pid] = values
        self.seen = {pid: v for pid, v in {**self.seen, **there}.items() if pid not in self.reaped}

    def _of_children(self, key):
        return sum(values[key] for values in self.reaped.values())

    # --- files -------------------------------------------------------------------------------------

    def write(self, path, text):
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def path(self, path):
        """Where a file of the system is here."""
        path = str(path)
        return str(self.folder / path.lstrip("/")) if path.startswith(("/proc", "/sys")) else path

    def open(self, path, *args, **kw):
        return io.open(self.path(path), *args, **kw)

    def listdir(self, path):
        return os.listdir(self.path(path))

    def scandir(self, path):
        return os.scandir(self.path(path))

    def glob(self, pattern):
        here = self.folder.glob(pattern.strip("/"))
        return [f"/{place.relative_to(self.folder)}/" for place in here]

    def statvfs(self, path):
        value = self.sample["values"]
        return types.SimpleNamespace(f_frsize=1, f_blocks=value["system.disk.space.total"],
                                     f_bavail=value["system.disk.space.free"])

    def _machine(self):
        value = self.sample["values"].get
        of = {name: value(f"system.cpu.{name}") for name in
              ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest")}
        of["user"] -= of["nice"]
        of["system"] -= of["irq"] + of["softirq"]
        line = " ".join(str(ticks(of[name])) for name in
                        ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest"))
        self.write("proc/stat", f"cpu  {line} 0\ncpu0 {line} 0\nbtime {BOOT}\n"
                                f"processes {5000 + value('system.forks')}\n")
        names = {"MemTotal": "mem.total", "MemFree": "mem.free", "MemAvailable": "mem.available",
                 "Buffers": "mem.buffers", "Cached": "mem.cached", "Active": "mem.active",
                 "Inactive": "mem.inactive", "Active(anon)": "mem.active.anon",
                 "Inactive(anon)": "mem.inactive.anon", "SwapTotal": "swap.total"}
        self.write("proc/meminfo", "".join(f"{name}: {kib(value('system.' + key))} kB\n"
                                           for name, key in names.items()) + "SReclaimable: 0 kB\n")
        read, write = (round(value(f"system.disk.{way}") / SECTOR) for way in ("read", "write"))
        self.write("proc/diskstats", f"8 0 sda 1 0 {read} 0 1 0 {write} 0 0 0 0\n")
        self.write("sys/block/sda/queue/hw_sector_size", f"{SECTOR}\n")
        self.write("proc/mounts", "/dev/sda / ext4 rw 0 0\nproc /proc proc rw 0 0\n")
        rest = " 0" * 7
        self.write("proc/net/dev", "Inter-|\n face |\n" + f"lo: 777{rest} 777{rest}\n" +
                   f"eth0: {value('system.net.rx')}{rest} {value('system.net.tx')}{rest}\n")
        pids = {p["pid"] for p in self.processes()}
        for pid in range(1, 1 + (value("system.procs") or 0) - len(pids)):
            (self.folder / f"proc/{pid}").mkdir(parents=True)

    def _process(self, process):
        value, pid = process["values"], process["pid"]
        root = pid == self.root
        waited = [ticks(self._of_children(f"cpu.{mode}")) if root else 0 for mode in ("user", "system")]
        started = round((known.wall_ns(process["started"]) / known.NS - BOOT) * TICK)
        fields = ["S", process["ppid"], self.rows["run"]["pgid"], 0, 0, -1, 0, value["faults.minor"], 0,
                  value["faults.major"], 0, ticks(value["cpu.user"]), ticks(value["cpu.system"]), *waited, 20, 0,
                  value["threads"], 0, started, value["mem.vms"], round(value["mem.rss"] / PAGE)]
        here = f"proc/{pid}"
        # resource-tracker splits this file at spaces: a name with one would shift its fields.
        comm = process["command"].replace(" ", "_")
        self.write(f"{here}/stat", f"{pid} ({comm}) {' '.join(map(str, fields + [0] * 28))}\n")
        self.write(f"{here}/statm", f"{round(value['mem.vms'] / PAGE)} {round(value['mem.rss'] / PAGE)} 0 0 0 0 0\n")
        self.write(f"{here}/status", f"Name:\t{comm}\nThreads:\t{value['threads']}\n"
                                     f"VmRSS:\t{kib(value['mem.rss'])} kB\n")
        io_lines = (("rchar", "rchar"), ("wchar", "wchar"), ("syscr", None), ("syscw", None),
                    ("read_bytes", "read"), ("write_bytes", "write"), ("cancelled_write_bytes", None))
        self.write(f"{here}/io", "".join(f"{name}: {value['io.' + key] if key else 0}\n" for name, key in io_lines))
        self.write(f"{here}/cmdline", process["command"] + "\0--option\0")
        self.write(f"{here}/task/{pid}/children",
                   " ".join(str(p["pid"]) for p in self.processes() if p["ppid"] == pid))
        for fd in range(value["fds"]):
            self.write(f"{here}/fd/{fd}", "")
        self._smaps(here, value)

    def _smaps(self, here, value):
        if value["mem.pss"] is not None:
            pss, uss = kib(value["mem.pss"]), kib(value["mem.uss"])
        elif self.unknown_pss is not None:
            pss = uss = self.unknown_pss
        else:
            return
        self.write(f"{here}/smaps_rollup", f"Rss: {kib(value['mem.rss'])} kB\nPss: {pss} kB\n"
                   f"Private_Clean: 0 kB\nPrivate_Dirty: {uss} kB\nSwap: 0 kB\n")

    # --- nvidia-smi --------------------------------------------------------------------------------

    def popen(self, words, **_):
        """What subprocess.Popen gives for the calls of nvidia-smi that the originals make."""
        if words[0] != "nvidia-smi" or self.rows["run"].get("no_gpu"):
            raise FileNotFoundError(words[0])
        text = self._pmon() if words[1] == "pmon" else self._query()
        return types.SimpleNamespace(communicate=lambda timeout=None: (text.encode(), None), returncode=0)

    def _pmon(self):
        lines = ["# gpu pid type sm mem enc dec jpg ofa fb ccpm command", "# Idx # C/G % % % % % % MB MB name"]
        for process in self.processes() if self.sample["devices"] else []:
            value = process["values"]
            for gpu in range(max(1, value["gpu.count"])):
                first = gpu == 0
                busy = f"{value['gpu.usage'] * 100:g}" if value["gpu.count"] and first else \
                    "0" if value["gpu.count"] else "-"
                held = f"{value['gpu.mem'] / MIB:g}" if first else "0"
                lines.append(f"{gpu} {process['pid']} C {busy} - - - - - {held} 0 {process['pid']}")
        return "\n".join(lines) + "\n"

    def _query(self):
        return "utilization.gpu [%], memory.used [MiB]\n" + "".join(
            f"{d['values']['gpu.util'] * 100:g} %, {d['values']['gpu.mem.used'] / MIB:g} MiB\n"
            for d in self.sample["devices"])
