# SPDX-License-Identifier: Apache-2.0
"""Other tools' files of real short runs: the right header, as many rows as samples, and figures that agree with the
summary. What they look like to the byte is in tests/project/test_goldens.py."""
import csv
import io
import json
import os
import re
import subprocess
import time

import pytest

from proctor_cli import ROOT, SLACK, said
from test_gpu import TWO, gpu, job  # noqa: F401

PROCESS = "timestamp,pid,children,utime,stime,cpu_usage,memory_mib,disk_read_bytes,disk_write_bytes,gpu_usage," \
          "gpu_vram_mib,gpu_utilized".split(",")
SYSTEM = "timestamp,processes,utime,stime,cpu_usage,memory_free_mib,memory_used_mib,memory_buffers_mib," \
         "memory_cached_mib,memory_active_mib,memory_inactive_mib,disk_read_bytes,disk_write_bytes," \
         "disk_space_total_gb,disk_space_used_gb,disk_space_free_gb,net_recv_bytes,net_sent_bytes,gpu_usage," \
         "gpu_vram_mib,gpu_utilized".split(",")
COMBINED = ["timestamp", *(f"system_{c}" for c in SYSTEM[1:]), *(f"process_{c}" for c in PROCESS[1:])]
MIB = 1 << 20


class Written:
    """What a run wrote with a dialect, and what its summary says."""

    def __init__(self, proctor, *options, form="csv", command=None, **kw):
        self.path = proctor.work / "out"
        done = proctor.run("-q", f"--{form}", self.path, "--summary", proctor.summary_file, *options, *command, **kw)
        assert said(done.stderr) == [], done.stderr
        self.done = done
        self.bytes = self.path.read_bytes()
        self.text = self.bytes.decode()
        self.summary = proctor.summary()
        self.samples = self.summary["samples"]["taken"]

    def rows(self, delimiter=","):
        return list(csv.DictReader(io.StringIO(self.text, newline=""), delimiter=delimiter))

    def objects(self):
        return [json.loads(line) for line in self.text.splitlines()]

    def total(self, key):
        return self.summary["metrics"][key]["total"]

    def peak(self, key):
        return self.summary["metrics"][key]["peak"]


@pytest.fixture
def written(proctor, jobs):
    """Runs a family that burns 0.4 s of CPU in two processes, then waits a little."""
    command = ["sh", "-c", f"{jobs}/family together 2 200000; sleep 0.3"]

    def run(dialect, *options, **kw):
        return Written(proctor, "-i", "50ms", "--dialect", dialect, *options, **{"command": command, **kw})
    return run


def known(rows, column):
    return [float(row[column]) for row in rows if row[column] != ""]


def check_process(found, rows, prefix=""):
    assert len(rows) == found.samples >= 5
    assert sum(known(rows, prefix + "utime")) == pytest.approx(found.total("cpu.user"), abs=1e-5)
    assert sum(known(rows, prefix + "stime")) == pytest.approx(found.total("cpu.system"), abs=1e-5)
    assert max(known(rows, prefix + "cpu_usage")) > 0.3
    assert max(known(rows, prefix + "memory_mib")) * MIB == pytest.approx(found.peak("mem.pss"), abs=100)
    assert {"1", "2", "3"} & {row[prefix + "children"] for row in rows} and "0" not in {r[prefix + "children"] for r in rows}
    assert len({row[prefix + "pid"] for row in rows}) == 1
    assert rows[-1][prefix + "memory_mib"] == "0.0"  # the job has ended, and is held to have nothing any more


def check_system(rows, prefix=""):
    assert 0 < max(known(rows, prefix + "memory_used_mib")) < 1e8
    assert max(known(rows, prefix + "disk_space_total_gb")) > 0.1
    assert max(known(rows, prefix + "cpu_usage")) > 0
    times = known(rows, "timestamp")
    assert times == sorted(times) and abs(times[-1] - time.time()) < 60


def test_resource_tracker_process(written):
    found = written("resource-tracker")
    assert found.text.splitlines()[0] == ",".join(f'"{c}"' for c in PROCESS)
    assert b"\r" not in found.bytes
    check_process(found, found.rows())


def test_resource_tracker_system_and_combined(written):
    found = written("resource-tracker", "--table", "system")
    assert found.text.splitlines()[0] == ",".join(f'"{c}"' for c in SYSTEM) and len(found.rows()) == found.samples
    check_system(found.rows())
    found = written("resource-tracker", "--table", "combined")
    lines = found.text.split("\r\n")
    assert lines[0] == ",".join(f'"{c}"' for c in COMBINED) and lines[-1] == "" and len(lines) == found.samples + 2
    check_process(found, found.rows(), "process_")
    check_system(found.rows(), "system_")


def test_no_gpu_is_none_in_use(written, proctor):
    """resource-tracker says 0 on a machine without GPUs; where nobody looked it is not known."""
    if any("GPU" in line and "nvidia" in line.lower() for line in proctor("doctor").stdout.splitlines()
           if line.startswith("yes")):
        pytest.skip("this machine has a GPU")
    rows = written("resource-tracker").rows()
    assert {row["gpu_usage"] for row in rows} == {row["gpu_utilized"] for row in rows} == {"0"}
    assert {row["gpu_usage"] for row in written("resource-tracker", "--no-gpu").rows()[1:-1]} == {""}


def test_resource_tracker_0_1(written):
    found = written("resource-tracker-0.1")
    rows = found.rows()
    assert found.bytes.count(b"\r\n") == found.samples + 1 == found.bytes.count(b"\n")
    assert list(rows[0]) == "timestamp,pid,children,utime,stime,cpu_usage,pss,read_bytes,write_bytes,gpu_usage," \
        "gpu_vram,gpu_utilized".split(",")
    ticks = sum(int(row["utime"]) for row in rows)
    assert ticks == int(found.total("cpu.user") * 100 + 1e-6)  # none is lost by cutting off
    assert max(known(rows, "pss")) == found.peak("mem.pss") // 1024
    found = written("resource-tracker-0.1", "--table", "system")
    assert len(found.rows()) == found.samples and "memory_active_anon" in found.rows()[0]
    assert 0 < max(known(found.rows(), "memory_used")) < 1e11


def test_oasislmf_has_a_row_per_process_and_the_names_of_match(written):
    found = written("oasislmf", "--match", "burner=^family$")
    rows = found.rows()
    assert found.text.split("\r\n")[0] == "timestamp,tool,pid,cpu_pct,cpu_user_s,cpu_sys_s,rss_kb,uss_kb,pss_kb"
    tools = {row["tool"] for row in rows}
    assert {"burner", "sh"} <= tools <= {"burner", "sh", "sleep"}  # a child is called sh before it is something else
    assert len({row["timestamp"] for row in rows}) == found.samples - 1  # in the last sample nobody lives
    burned = {row["pid"]: float(row["cpu_user_s"]) for row in rows if row["tool"] == "burner"}
    assert len(burned) == 3 and 0 < sum(burned.values()) <= found.total("cpu.user") + 0.01
    instances = found.summary["matches"][0]["instances"]
    assert instances == 3
    assert all(int(row["rss_kb"]) >= int(row["uss_kb"]) for row in rows if row["uss_kb"])


def test_oasislmf_without_names(written):
    assert {"family", "sh"} <= {row["tool"] for row in written("oasislmf").rows()} <= {"family", "sh", "sleep"}


NINE = ["cpu_usage_percentage", "memory_rss_megabytes", "memory_vms_megabytes", "memory_uss_megabytes",
        "memory_usage_percentage", "num_threads", "num_fds", "io_read_megabytes", "io_write_megabytes"]


def test_stouputils(written):
    found = written("stouputils", "--cpu-total", "4", "--memory-total", "1G", form="jsonl")
    rows = found.objects()
    assert len(rows) == found.samples and all(list(row) == [f"process/{k}" for k in NINE] for row in rows)
    values = [row["process/cpu_usage_percentage"] for row in rows if row["process/cpu_usage_percentage"] is not None]
    assert max(values) == pytest.approx(found.peak("cpu.percent") / 4)
    for row in rows[:-1]:
        assert row["process/memory_usage_percentage"] == pytest.approx(row["process/memory_rss_megabytes"] / 1024 * 100)
    assert rows[-1]["process/memory_rss_megabytes"] is None
    table = written("stouputils")
    assert list(table.rows()[0]) == [f"process/{k}" for k in NINE] and len(table.rows()) == table.samples


def test_spdl(written):
    found = written("spdl", form="jsonl")
    rows = found.objects()
    assert len(rows) == found.samples
    assert all(list(row) == ["pid", "pgid", "cpu_percent", "rss_bytes", "pss_bytes", "private_bytes", "disk_read_bytes",
                             "disk_write_bytes", "num_procs", "net_rx_bytes", "net_tx_bytes"] for row in rows)
    assert rows[0]["cpu_percent"] is rows[0]["net_rx_bytes"] is None and rows[0]["num_procs"] >= 1
    assert max(row["rss_bytes"] or 0 for row in rows) == found.peak("mem.rss")
    assert all(isinstance(row["pid"], int) and row["pgid"] > 0 for row in rows)
    received = [row["net_rx_bytes"] for row in rows if row["net_rx_bytes"] is not None]
    assert sum(received) <= found.total("system.net.rx")


def test_snakemake(written):
    found = written("snakemake")
    assert found.text.split("\n")[0].split("\t") == \
        ["s", "h:m:s", "max_rss", "max_vms", "max_uss", "max_pss", "io_in", "io_out", "mean_load", "cpu_time"]
    row, = found.rows("\t")
    duration = found.summary["run"]["duration"]
    assert float(row["s"]) == pytest.approx(duration, abs=0.006) and row["h:m:s"] == f"0:00:{int(duration):02}"
    assert float(row["max_rss"]) == pytest.approx(found.peak("mem.rss.peak") / MIB, abs=0.006)
    assert float(row["cpu_time"]) == pytest.approx(found.total("cpu.time"), abs=0.006)
    assert float(row["mean_load"]) == pytest.approx(found.total("cpu.time") / duration * 100, abs=0.01)


def test_nextflow(written):
    found = written("nextflow")
    title, *lines = found.text.splitlines()
    values = dict(line.split("=", 1) for line in lines)
    assert title == "nextflow.trace/v2"
    assert list(values) == ["realtime", "%cpu", "rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "%mem",
                            "vmem", "rss", "peak_vmem", "peak_rss", "vol_ctxt", "inv_ctxt"]
    assert int(values["realtime"]) == pytest.approx(found.summary["run"]["duration"] * 1000, abs=1)
    assert int(values["peak_rss"]) == found.peak("mem.rss.peak") // 1024
    assert int(values["vol_ctxt"]) == found.total("ctx.voluntary")
    assert int(values["rchar"]) == found.total("io.rchar")


def test_gnu_time(written, proctor):
    """Beside the real one, where the same words must stand."""
    found = written("gnu-time", command=["sh", "-c", "sleep 0.1; exit 3"])
    real = subprocess.run(["/usr/bin/time", "-v", "sh", "-c", "sleep 0.1; exit 3"], capture_output=True, text=True).stderr
    labels = [re.sub(r": [^:]*$|: \d+:\d\d\.\d\d$", "", line) for line in found.text.splitlines()]
    assert labels == [re.sub(r": [^:]*$|: \d+:\d\d\.\d\d$", "", line) for line in real.splitlines()]
    assert found.done.returncode == 3 and found.text.startswith("Command exited with non-zero status 3\n")
    assert '\tCommand being timed: "sh -c sleep 0.1; exit 3"\n' in found.text and found.text.endswith("Exit status: 3\n")
    found = written("gnu-time", command=["sh", "-c", "kill -9 $$"])
    assert found.text.startswith("Command terminated by signal 9\n")


def test_gnu_time_by_format(written):
    found = written("gnu-time", "--table", "format", env={"TIME": r"%x %e\t%U %M %C"})
    status, seconds, user, memory, command = re.fullmatch(r"(\d+) ([\d.]+)\t([\d.]+) (\d+) (sh -c .*)\n", found.text).groups()
    assert status == "0" and float(seconds) == pytest.approx(found.summary["run"]["duration"], abs=0.011)
    assert float(user) == pytest.approx(found.total("cpu.user"), abs=0.011)
    assert int(memory) == found.peak("mem.rss.peak") // 1024


def test_pytyche_cpu(written):
    found = written("pytyche", "--table", "cpu_metrics")
    rows = found.rows()
    assert list(rows[0]) == ["timestamp", "usr_pct", "idle_pct"]
    for row in rows:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", row["timestamp"])
        assert re.fullmatch(r"\d+\.\d", row["usr_pct"]) and 0 <= float(row["usr_pct"]) + float(row["idle_pct"]) <= 100.2


def test_pytyche_gpus(gpu, proctor):  # noqa: F811
    gpu.script.write_text(TWO + "util 0 80 0 99\nutil 1 20 0 99\n")
    options = ["-i", "200ms", "--dialect", "pytyche", "--table"]
    command = job(seconds=1.2)
    found = Written(proctor, *options, "hw_metrics", command=command, env=gpu.env())
    lines = [line.split(", ") for line in found.text.splitlines()]
    assert len(lines) >= 6 and all(len(line) == 9 for line in lines)
    stamp, util, _, used, total, power, temp, sm, mem = lines[-2]
    assert re.fullmatch(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}", stamp)
    assert (util, used, total, power, temp, sm, mem) == \
        ("80", str(round(2e9 / MIB)), str(round(15e10 / MIB)), "250.00", "47", "1500", "2600")
    gpu.script.write_text(TWO + "util 0 80 0 99\nutil 1 20 0 99\n")
    found = Written(proctor, *options, "dmon", command=command, env=gpu.env())
    assert [line.split()[:3] for line in found.text.splitlines()[:2]] == [["#", "gpu", "sm"], ["#", "Idx", "%"]]
    rows = [line.split() for line in found.text.splitlines()[2:]]
    assert {row[0] for row in rows} == {"0", "1"} and all(len(row) == 4 for row in rows)
    gpu.script.write_text(TWO + "util 0 80 0 99\nutil 1 20 0 99\n")
    found = Written(proctor, *options, "resource-summary", form="jsonl", command=command, env=gpu.env())
    summary, = found.objects()
    assert summary["peak_vram_mb"] == round(2e9 / MIB) and summary["gpu_util_max_pct"] == 80
    assert 40 <= summary["gpu_util_mean_pct"] <= 60 and summary["power_watts_mean"] == 250
    assert summary["mem_util_max_pct"] >= summary["mem_util_mean_pct"] > 0 and "jax_peak_bytes_mb" not in summary


def test_pytyche_without_gpus(written):
    summary, = written("pytyche", "--no-gpu", form="jsonl").objects()
    assert list(summary) == ["peak_vram_mb", "gpu_util_mean_pct", "gpu_util_max_pct", "power_watts_mean",
                             "power_watts_max", "cpu_usr_mean_pct", "cpu_idle_mean_pct"]
    assert summary["peak_vram_mb"] == 0 and summary["cpu_usr_mean_pct"] > 0


@pytest.mark.parametrize("options, parts", [
    (["--csv", "a", "--dialect", "spdl"], ["--csv", "spdl", "usage (--jsonl)"]),
    (["--jsonl", "a", "--dialect", "oasislmf"], ["--jsonl", "oasislmf", "processes (--csv)"]),
    (["--csv", "a", "--dialect", "resource-tracker", "--table", "disks"],
     ["--table", "'disks'", "process (--csv), system (--csv), combined (--csv)"]),
    (["--csv", "a", "--dialect", "pytyche", "--table", "resource-summary"], ["--csv", "resource-summary", "cpu_metrics"]),
    (["--csv", "a", "--table", "process"], ["--table", "--dialect"]),
])
def test_what_there_is_not_is_said_before_the_job_starts(proctor, options, parts):
    done = proctor.run(*options, "touch", "started")
    assert done.returncode == 125 and not (proctor.work / "started").exists() and not (proctor.work / "a").exists()
    line, = said(done.stderr)
    assert all(part in line for part in parts), line


def test_attach_and_system(proctor):
    other = proctor.other(["sleep", "30"])
    done = proctor("attach", "-q", "-i", "50ms", "--duration", "300ms", "--csv", "a", "--dialect", "resource-tracker", other.pid)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(open(proctor.work / "a")))
    assert len(rows) >= 4 and {row["pid"] for row in rows} == {str(other.pid)}
    assert rows[-1]["memory_mib"] != ""  # it lives on
    done = proctor("system", "-q", "-i", "50ms", "--duration", "300ms", "--csv", "b", "--dialect", "resource-tracker",
                   "--table", "system")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(open(proctor.work / "b")))
    assert len(rows) >= 4 and float(rows[-1]["memory_used_mib"]) > 0


def test_the_machine_has_processes_only_when_asked_for_them(proctor):
    options = ["system", "-q", "-i", "50ms", "--duration", "200ms", "--csv", "a", "--dialect", "oasislmf"]
    done = proctor(*options)
    assert done.returncode == 2 and "--processes" in said(done.stderr)[0]
    assert proctor(*options, "--processes").returncode == 0
    assert str(os.getpid()) in {row["pid"] for row in csv.DictReader(open(proctor.work / "a"))}


def test_a_full_disk_keeps_rows_back_here_too(proctor):
    done = proctor.run("-i", "20ms", "--csv", "/dev/full", "--dialect", "oasislmf", "sleep", 0.2 * SLACK)
    assert done.returncode == 0 and any("/dev/full" in line for line in said(done.stderr))


def test_every_dialect_is_in_the_document():
    text = (ROOT / "doc/dialects.md").read_text()
    for name in re.findall(r'^DIALECT\("([^"]+)"', (ROOT / "src/core/dialects.def").read_text(), re.M):
        assert f"\n## {name}\n" in text
