# SPDX-License-Identifier: Apache-2.0
"""proctor.compat.oasislmf. Tests that name a defect are about one of the original's."""
import csv
import logging
import os
import subprocess
import time

import pytest
from compat_support import GOLDEN
from pythons import PLACES, clean_environment, run_script, tools

from proctor.compat.oasislmf import CSV_HEADER, MONITORED_TOOLS, ResourceMonitor
from proctor.compat.oasislmf import _report
from proctor.compat.oasislmf._rows import compute_stats, load, peak_total_uss

HEADER = ",".join(CSV_HEADER) + "\r\n"


@pytest.fixture
def kernel(tmp_path):
    """A script that runs tools, in a folder with such tools; ends when it does."""
    source = tmp_path / "burn.c"
    source.write_text("""
        #include <stdlib.h>
        #include <string.h>
        #include <time.h>
        int main(int n, char **a) {
            char *x = malloc(20 << 20);
            memset(x, n, 20 << 20);
            while (clock() < atof(a[1]) * CLOCKS_PER_SEC) {}
            return x[5] == 0;
        }""")
    subprocess.run(["cc", "-O0", "-o", tmp_path / "gulpy", source], check=True)
    os.link(tmp_path / "gulpy", tmp_path / "fmpy")
    running = []

    def run(text):
        env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        process = subprocess.Popen(["bash", "-c", text], cwd=tmp_path, env=env)
        running.append(process)
        return process
    yield run
    for process in running:
        process.kill()
        process.wait()


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEADER + "".join(",".join(map(str, row)) + "\r\n" for row in rows), newline="")
    return str(path)


def test_a_run_has_the_file_and_the_report_of_the_original(kernel, tmp_path):
    """Made when a tool is seen, after the script has cleared its folder, in the original's words."""
    log = tmp_path / "log"
    script = kernel("sleep 0.2; mkdir -p log; rm -rf log/*; gulpy 0.8 | fmpy 0.8; sleep 0.1")
    monitor = ResourceMonitor(str(log), poll_interval=0.2)
    monitor.start(script.pid)
    time.sleep(0.1)
    assert not log.exists()
    script.wait()
    monitor.stop()
    data = (log / "resource_monitor.csv").read_bytes()
    assert data.startswith(HEADER.encode()) and data.endswith(b"\r\n")
    rows = rows_of(log / "resource_monitor.csv")
    assert {row["tool"] for row in rows} == {"gulpy", "fmpy"}
    assert max(int(row["uss_kb"]) for row in rows if row["uss_kb"]) >= 20 * 1024, rows
    report = (log / "resource_report" / "resource_report.md").read_text()
    assert "| gulpy | 1 |" in report and "**Peak total USS:**" in report and "## Summary Statistics" in report


def test_defect_1_only_what_the_script_started_and_only_by_its_name(kernel, tmp_path):
    """Another run's tool, an editor that has one open and the shell with the text of the pipeline are none."""
    kernel("exec gulpy 3")
    script = kernel("gulpy 0.6 & tail -f /dev/null gulpy.txt 2>/dev/null & P=$!; wait %1; kill $P; : gulpy '|' fmpy")
    monitor = ResourceMonitor(tmp_path / "log", poll_interval=0.1, generate_report=False)
    monitor.start(script.pid)
    script.wait()
    monitor.stop()
    rows = rows_of(tmp_path / "log" / "resource_monitor.csv")
    assert {row["tool"] for row in rows} == {"gulpy"} and len({row["pid"] for row in rows}) == 1
    assert not (tmp_path / "log" / "resource_report").exists()  # generate_report=False


def test_defect_2_the_first_sample_of_a_process_is_not_0_percent(tmp_path):
    """What the original wrote at first sight is not a measurement; ours has none, or a true one."""
    path = write(tmp_path / "a.csv", (10.0, "gulpy", 7, 0.0, 0.0, 0.0, 100, 90, 95),
                 (11.0, "gulpy", 7, 100.0, 1.0, 0.0, 100, 90, 95), (12.0, "gulpy", 7, 0.0, 1.0, 0.0, 100, 90, 95),
                 (12.0, "fmpy", 8, "", 1.0, 0.0, 100, 90, 95))
    stats = compute_stats(load(path))
    assert stats["gulpy"]["avg_cpu"] == 50.0 and stats["gulpy"]["n_samples"] == 3 and stats["fmpy"]["avg_cpu"] == 0.0


def test_defect_3_what_no_row_has_is_in_the_total_of_the_script(kernel, tmp_path):
    """Tools that are over between two samples have no row; the report says what the script used with all of them."""
    script = kernel("gulpy 0.4; for i in 1 2 3 4; do fmpy 0.1; done")
    monitor = ResourceMonitor(tmp_path / "log", poll_interval=0.3)
    monitor.start(script.pid)
    script.wait()
    monitor.stop()
    report = (tmp_path / "log/resource_report/resource_report.md").read_text()
    seconds = float(report.split("**CPU of the whole script:** ")[1].split()[0])
    assert 0.6 <= seconds <= 1.2, report


def test_defect_4_a_pid_that_is_used_again_is_another_instance(tmp_path):
    rows = [(10.0, "gulpy", 7, 50.0, 5.0, 0.0, 100, 90, 95), (11.0, "gulpy", 7, 50.0, 6.0, 0.0, 100, 90, 95),
            (12.0, "gulpy", 7, 50.0, 0.5, 0.5, 100, 90, 95)]
    stats = compute_stats(load(write(tmp_path / "a.csv", *rows)))["gulpy"]
    assert (stats["n_instances"], stats["total_cpu_time_s"]) == (2, 7.0)
    both = load(write(tmp_path / "a.csv", rows[0]), 0) + load(write(tmp_path / "b.csv", rows[0]), 1)
    assert compute_stats(both)["gulpy"]["n_instances"] == 2  # of two machines


def test_defect_5_peaks_of_several_monitors_are_of_what_ran_together(tmp_path):
    one = [(t, "gulpy", 7, 50.0, 1.0, 0.0, 1024, 1024, 1024) for t in (10.0, 11.0, 12.0)]
    two = [(t, "gulpy", 9, 50.0, 1.0, 0.0, 2048, 2048, 2048) for t in (10.4, 11.4)]
    late = [(t, "gulpy", 9, 50.0, 1.0, 0.0, 4096, 4096, 4096) for t in (50.0, 51.0)]
    rows = [row for i, found in enumerate((one, two, late)) for row in load(write(tmp_path / f"{i}.csv", *found), i)]
    assert peak_total_uss(rows) == 4.0
    assert peak_total_uss([row for row in rows if row.source < 2]) == 3.0
    assert compute_stats(rows)["gulpy"]["agg_peak_rss_mb"] == 4.0


def test_defect_6_and_11_a_process_without_readable_memory_still_counts(tmp_path):
    path = write(tmp_path / "a.csv", (10.0, "gulpy", 7, 50.0, 5.0, 0.0, 2048, "", ""),
                 (10.0, "gulpy", 8, 50.0, 1.0, 0.0, 2048, 1024, -1))
    stats = compute_stats(load(path))["gulpy"]
    assert stats["total_cpu_time_s"] == 6.0 and stats["agg_peak_uss_mb"] == 1.0 and "agg_peak_pss_mb" not in stats


def test_defect_8_a_report_of_a_long_run_takes_no_square_of_time(tmp_path):
    from proctor.compat.oasislmf._rows import cpu_time_curves
    rows = [(float(t), "gulpy", pid, 50.0, t / 10, 0.0, 1024, 1024, 1024) for t in range(4000) for pid in (7, 8)]
    path = write(tmp_path / "a.csv", *rows)
    start = time.process_time()
    loaded = load(path)
    compute_stats(loaded)
    assert cpu_time_curves(loaded)["gulpy"][-1] == (3999.0, pytest.approx(799.8))
    assert time.process_time() - start < 4


def test_defect_9_trouble_does_not_reach_the_run(tmp_path, caplog):
    """No such process, a folder that cannot be made, a report that cannot be written: said, and that is all."""
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.INFO):
        monitor = ResourceMonitor(tmp_path / "log")
        monitor.start(2 ** 22 + 1)
        monitor.stop()
        assert "could not start" in caplog.text
        monitor = ResourceMonitor(tmp_path / "x", log_root=tmp_path / "root", poll_interval=0.1)
        write(tmp_path / "root/1/resource_monitor.csv", (10.0, "gulpy", 7, 50.0, 5.0, 0.0, 100, 90, 95))
        (tmp_path / "root/resource_report").write_text("in the way")
        monitor.start(os.getpid())
        monitor.stop()
        assert "report failed" in caplog.text and "stopped, csv=none" in caplog.text  # no tool was seen


def test_defect_10_an_earlier_runs_rows_are_not_this_runs(kernel, tmp_path):
    write(tmp_path / "log/resource_monitor.csv", (10.0, "fmpy", 7, 50.0, 5.0, 0.0, 100, 90, 95))
    script = kernel("gulpy 0.4")
    monitor = ResourceMonitor(tmp_path / "log", poll_interval=0.1)
    monitor.start(script.pid)
    script.wait()
    monitor.stop()
    rows = rows_of(tmp_path / "log/resource_monitor.csv")
    assert {row["tool"] for row in rows} == {"gulpy"}
    stamps = sorted({float(row["timestamp"]) for row in rows})
    gaps = [b - a for a, b in zip(stamps, stamps[1:])]
    assert all(abs(gap / 0.1 - round(gap / 0.1)) < 0.3 for gap in gaps), gaps  # defect 12: no drift


def test_defect_13_lines_of_the_head_are_lines(tmp_path):
    path = _report.write("a.csv", str(tmp_path), {}, {}, 0, 1000.0, 10.0)
    head = open(path).read().split("\n\n")[1].split("\n")
    assert len(head) == 5 and all(line.endswith("  ") for line in head)


def test_a_combined_report_is_of_all_folders(tmp_path):
    for name in ("1", "2"):
        write(tmp_path / name / "resource_monitor.csv", (10.0, "gulpy", 7, 50.0, 5.0, 0.0, 100, 90, 95))
    monitor = ResourceMonitor(tmp_path / "out", log_root=tmp_path)
    monitor.start(os.getpid())
    monitor.stop()
    assert "| gulpy | 2 | 2 |" in (tmp_path / "resource_report/resource_report.md").read_text()


def test_the_originals_file_is_read(tmp_path):
    """The golden rows; a shell is in that file as the dialect has it, and none of the tools."""
    rows = load(str(GOLDEN / "oasislmf.processes.csv"))
    assert {row.tool for row in rows} & MONITORED_TOOLS and len(rows) > 3


def test_six_plots_under_the_originals_names(tmp_path):
    """With matplotlib; without it a report without plots is in the tests above."""
    write(tmp_path / "log/resource_monitor.csv", *((10.0 + t, tool, 7 + t % 2, 50.0, t / 2, 0.0, 3000, 2000, 2500)
                                                   for t in range(5) for tool in ("gulpy", "fmpy")))
    python = tools("matplotlib", "matplotlib==3.10.8") / "python"
    run_script(python, """
        from proctor.compat.oasislmf import ResourceMonitor
        monitor = ResourceMonitor("log")
        monitor._generate_report()
    """, tmp_path, env=clean_environment(tmp_path, **PLACES))
    folder = tmp_path / "log/resource_report"
    names = {"aggregate_uss.png", "rss_vs_uss.png", "total_footprint.png", "aggregate_cpu.png", "cpu_time.png",
             "instance_count.png"}
    assert {path.name for path in folder.iterdir()} == names | {"resource_report.md"}
    report = (folder / "resource_report.md").read_text()
    for name in names:
        data = (folder / name).read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n" and f"({name})" in report
        width, height = (int.from_bytes(data[at:at + 4], "big") for at in (16, 20))
        assert (width, height) == (1800, 600 if name == "instance_count.png" else 750)
