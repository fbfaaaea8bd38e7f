# SPDX-License-Identifier: Apache-2.0
"""proctor.compat.pytyche. Tests that name a defect are about one of the original's."""
import json
import time

from compat_support import GOLDEN, with_gpus
from pythons import PYTHONS, run_script, skip_visibly

from proctor.compat.pytyche import HWMonitor, ResourceSummary, RunLog, build_resource_summary, probe_jax_peak_memory_mb


def test_the_summary_of_the_originals_files_is_the_originals():
    """The files of the golden rows, and what the original said of them, corrected where it is wrong."""
    found = build_resource_summary(*(GOLDEN / f"pytyche.{name}.csv" for name in ("hw_metrics", "cpu_metrics", "dmon")))
    assert found.to_dict() == json.loads((GOLDEN / "pytyche.resource-summary.json").read_text())


def test_defect_1_dmon_is_read_by_the_names_of_its_columns(tmp_path):
    """The third column of a present driver is bar1 in MB, not the memory controller in percent."""
    dmon = tmp_path / "hw_dmon.csv"
    dmon.write_text("# gpu     fb   bar1   ccpm     sm    mem    enc\n# Idx     MB     MB     MB      %      %      %\n"
                    "    0    883    884      0     99     23      0\n    0    883    884      0     99      -      0\n"
                    "# gpu     sm    mem     fb\n# Idx      %      %     MB\n    0     50     25    900\n")
    found = build_resource_summary(None, None, dmon)
    assert (found.mem_util_mean_pct, found.mem_util_max_pct) == (24.0, 25.0)


def test_defect_1_the_memory_controller_is_also_known_without_dmon(tmp_path):
    gpu = tmp_path / "hw_metrics.csv"
    gpu.write_text("2026/11/15 06:08:47.846, 99, 23, 883, 143771, 350.10, 40, 1980, 3201\n")
    assert build_resource_summary(gpu, None).mem_util_mean_pct == 23.0


def test_defect_2_each_gpu_has_its_rows_and_is_told_apart(tmp_path):
    """One that is busy and one that is idle: a mean is over both, a peak is of one."""
    run_script(PYTHONS["debian"], """
        import pathlib, time
        from proctor.compat.pytyche import HWMonitor, build_resource_summary
        monitor = HWMonitor()
        monitor.start(pathlib.Path("out"), 0.5)
        time.sleep(1.8)
        gpu, cpu, dmon = monitor.stop()
        used = [line.split(", ")[3] for line in gpu.read_text().splitlines()]
        assert len(used) >= 4 and used == ["1907", "954"] * (len(used) // 2), used
        rows = [line.split() for line in dmon.read_text().splitlines() if not line.startswith("#")]
        assert {(row[0], row[3]) for row in rows} == {("0", "1907"), ("1", "954")}, rows
        found = build_resource_summary(gpu, cpu, dmon)
        assert found.peak_vram_mb == 1907.0 and found.gpu_util_max_pct == 80.0, found
        assert 20 <= found.gpu_util_mean_pct <= 60, found  # a row may be missing on a busy machine
    """, tmp_path, env=with_gpus(tmp_path, "device 0 H200 GPU-aaaa 150000000000 2000000000\n"
                                 "device 1 H200 GPU-bbbb 150000000000 1000000000\nutil 0 80 0 99\n"))


def test_defect_3_guests_are_not_counted_twice(tmp_path):
    """The kernel has them in user time already. On a machine that is half idle and else runs guests the original says
    33 % of each."""
    with open("/proc/stat") as file:
        rest = [line for line in file if not line.startswith("cpu")]
    line = "cpu  {0} 0 0 {0} 0 0 0 0 {0} 0\n"
    (tmp_path / "stat").write_text("".join([line.format(10 ** 9), *rest]))
    hide = 'mount --bind stat /proc/stat && exec "$@"'
    done = run_script(PYTHONS["debian"], f"""
        import os, pathlib, threading, time
        from proctor.compat.pytyche import HWMonitor
        end = threading.Event()
        def advance():  # as long a line as before: nobody reads half of it
            file, ticks = os.open("stat", os.O_WRONLY), 10 ** 9
            while not end.wait(0.02):
                ticks += 2
                os.pwrite(file, {line!r}.format(ticks).encode(), 0)
        thread = threading.Thread(target=advance)
        thread.start()
        monitor = HWMonitor()
        monitor.start(pathlib.Path("out"), 0.3)
        time.sleep(1)
        _, cpu, _ = monitor.stop()
        end.set()
        rows = [line.split(",")[1:] for line in cpu.read_text().splitlines()[1:]]
        assert len(rows) >= 2 and set(map(tuple, rows)) == {{("50.0", "50.0")}}, rows
    """, tmp_path, good=False, before=["unshare", "--mount", "--propagation", "private", "sh", "-c", hide, "sh"])
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        skip_visibly(done.stderr.strip())
    assert done.returncode == 0, done.stderr


def test_cpu_metrics_are_the_kernels_shares(python):
    """As far as they can be looked at twice."""
    python("""
        import pathlib, time
        from proctor.compat.pytyche import HWMonitor
        def idle():
            with open("/proc/stat") as f: fields = list(map(int, f.readline().split()[1:]))
            return fields[3], sum(fields[:8])
        monitor = HWMonitor()
        monitor.start(pathlib.Path("out"), 0.3)
        before = idle()
        time.sleep(0.65)
        _, cpu, _ = monitor.stop()
        after = idle()
        rows = [line.split(",") for line in cpu.read_text().splitlines()]
        assert rows[0] == ["timestamp", "usr_pct", "idle_pct"] and len(rows) >= 3, rows
        mean = sum(float(row[2]) for row in rows[1:]) / (len(rows) - 1)
        truth = 100 * (after[0] - before[0]) / (after[1] - before[1])
        assert abs(mean - truth) < 30, (mean, truth)
        assert all(float(row[1]) + float(row[2]) <= 100.1 for row in rows[1:])
        assert rows[1][0].endswith("+00:00")
    """)


def test_defect_4_a_log_is_on_disk_at_once_and_keeps_its_own_keys(tmp_path):
    log = RunLog(tmp_path / "run.jsonl")
    log.log_phase("load", 1.23456, rows=3, ts="mine", type="mine")
    log.log_event("start", {"seed": 1})
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]  # nobody has called write
    assert lines[0]["ts"].endswith("+00:00") and lines[0]["type"] == "phase" and lines[0]["ts_"] == "mine"
    assert (lines[0]["name"], lines[0]["seconds"], lines[0]["rows"]) == ("load", 1.235, 3)
    assert lines[1]["event"] == "start" and lines[1]["data"] == {"seed": 1}
    log.write(tmp_path / "copy.jsonl")
    assert (tmp_path / "copy.jsonl").read_text() == (tmp_path / "run.jsonl").read_text()


def test_defect_5_rows_are_there_before_the_end_and_in_a_short_run(tmp_path):
    monitor = HWMonitor()
    monitor.start(tmp_path, 60)
    time.sleep(0.15)
    gpu, cpu, dmon = monitor.stop()  # the order of the original
    assert cpu == tmp_path / "cpu_metrics.csv" and len(cpu.read_text().splitlines()) >= 2
    assert HWMonitor().stop() == (None, None, None)


def test_defect_6_no_program_is_started_and_rows_outlive_the_process(tmp_path):
    script = """
        import os, pathlib, signal, time
        from proctor.compat.pytyche import HWMonitor
        monitor = HWMonitor()
        monitor.start(pathlib.Path("out"), 0.2)
        time.sleep(1)
        mine = pathlib.Path(f"/proc/{os.getpid()}/task")
        assert not [c for task in mine.iterdir() for c in (task / "children").read_text().split()]
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = run_script(PYTHONS["debian"], script, tmp_path, good=False)
    assert done.returncode == -9, done.stderr
    lines = (tmp_path / "out" / "cpu_metrics.csv").read_text().splitlines()
    assert len(lines) >= 2 and all(len(line.split(",")) == 3 for line in lines), lines  # a header, and what was taken


def test_defect_7_a_value_that_is_not_known_takes_no_other_with_it(tmp_path):
    gpu = tmp_path / "hw_metrics.csv"
    gpu.write_text("2026/11/15 06:08:47.846, 80, 20, 1000, 143771, [N/A], 40, 1980, 3201\n"
                   "2026/11/15 06:08:49.846, 40, 10, 3000, 143771, 200.00, 40, 1980, 3201\nNo devices were found\n")
    found = build_resource_summary(gpu, None)
    assert (found.gpu_util_mean_pct, found.peak_vram_mb, found.power_watts_mean) == (60.0, 3000.0, 200.0)


def test_defect_8_jax_is_asked_for_all_gpus(monkeypatch):
    class Device:
        def __init__(self, platform, peak):
            self.platform, self.peak = platform, peak

        def memory_stats(self):
            return {"peak_bytes_in_use": self.peak} if self.peak else None

    class Jax:
        @staticmethod
        def local_devices():
            return [Device("gpu", 1 << 20), Device("gpu", 5 << 20), Device("gpu", None), Device("cpu", 9 << 20)]
    import sys
    monkeypatch.setitem(sys.modules, "jax", Jax)
    assert probe_jax_peak_memory_mb() == 5.0
    assert build_resource_summary(None, None, jax_peak_mb=5.0).to_dict()["jax_peak_bytes_mb"] == 5.0
    monkeypatch.setitem(sys.modules, "jax", None)
    assert probe_jax_peak_memory_mb() == 0.0


def test_files_of_gpus_have_the_originals_columns(tmp_path):
    """By a driver that says what it is told."""
    run_script(PYTHONS["debian"], """
        import pathlib, time
        from proctor.compat.pytyche import HWMonitor, build_resource_summary
        monitor = HWMonitor()
        monitor.start(pathlib.Path("out"), 0.5)
        time.sleep(1.3)
        gpu, cpu, dmon = monitor.stop()
        rows = [line.split(", ") for line in gpu.read_text().splitlines()]
        assert rows and all(len(row) == 9 for row in rows), rows
        assert rows[-1][3] == "1907" and rows[-1][4] == "143051", rows
        lines = dmon.read_text().splitlines()
        assert lines[0].split() == ["#", "gpu", "sm", "mem", "fb"] and lines[1].startswith("# Idx")
        assert build_resource_summary(gpu, cpu, dmon).peak_vram_mb == 1907.0
    """, tmp_path, env=with_gpus(tmp_path, "device 0 H200 GPU-aaaa 150000000000 2000000000\n"))


def test_without_a_gpu_there_are_no_files_of_one(tmp_path):
    monitor = HWMonitor()
    monitor.start(tmp_path / "new" / "folder", 1)
    gpu, _, dmon = monitor.stop()
    if gpu is None:  # a machine that has one has rows of it
        assert dmon is None and not (tmp_path / "new/folder/hw_metrics.csv").exists()
        assert not (tmp_path / "new/folder/hw_dmon.csv").exists()


def test_a_summary_has_the_keys_of_the_original():
    assert list(ResourceSummary().to_dict()) == [
        "peak_vram_mb", "gpu_util_mean_pct", "gpu_util_max_pct", "power_watts_mean", "power_watts_max",
        "cpu_usr_mean_pct", "cpu_idle_mean_pct"]
