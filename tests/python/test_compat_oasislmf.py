# SPDX-License-Identifier: Apache-2.0
"""proctor.compat.oasislmf. Tests that name a defect are about one of the original's."""
import csv
import json
import logging
import os
import subprocess
import sys
import time
from statistics import median

import pytest
from compat_support import GOLDEN
from pythons import PLACES, PYTHONS, ROOT, clean_environment, run_script, skip_visibly, tools

from proctor.compat.oasislmf import CSV_HEADER, MONITORED_TOOLS, ResourceMonitor
from proctor.compat.oasislmf import _report
from proctor.compat.oasislmf._rows import compute_stats, cpu_time_curves, load, peak_total_uss

sys.path.insert(0, str(ROOT / "tools" / "goldens"))
import originals  # noqa: E402

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
    assert stats["gulpy"]["avg_cpu"] == 50.0 and stats["gulpy"]["n_samples"] == 3 and stats["fmpy"]["avg_cpu"] is None


def test_defect_2_nor_is_it_in_a_file_of_ours(kernel, tmp_path):
    """0 % stands there of nobody who has used CPU time, and in no average of a first sample."""
    script = kernel("gulpy 0.5; gulpy 0.5 & fmpy 0.5; wait")
    monitor = ResourceMonitor(tmp_path / "log", poll_interval=0.1, generate_report=False)
    monitor.start(script.pid)
    script.wait()
    monitor.stop()
    path = tmp_path / "log/resource_monitor.csv"
    first = {}
    for row in rows_of(path):
        first.setdefault(row["pid"], row)
    assert len(first) == 3
    for row in first.values():
        spent = float(row["cpu_user_s"]) + float(row["cpu_sys_s"])
        assert row["cpu_pct"] == "" or float(row["cpu_pct"]) > 0 or spent == 0, row
    loaded = {}
    for row in load(str(path)):
        loaded.setdefault(row.instance, row.cpu)
    assert len(loaded) == 3 and 0.0 not in loaded.values(), loaded


def test_defect_3_what_no_row_has_is_in_the_total_of_the_script(kernel, tmp_path):
    """Tools that are over between two samples have no row; the report says what the script used with all of them, up to
    the last sample before its end."""
    script = kernel("gulpy 0.4; for i in 1 2 3 4; do fmpy 0.1; done; sleep 0.5")
    monitor = ResourceMonitor(tmp_path / "log", poll_interval=0.3)
    monitor.start(script.pid)
    script.wait()
    monitor.stop()
    report = (tmp_path / "log/resource_report/resource_report.md").read_text()
    seconds = float(report.split("**CPU of the whole script:** ")[1].split()[0])
    assert 0.65 <= seconds <= 1.2, report


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


def test_defect_6_a_file_of_ours_has_rows_of_who_may_not_be_read(kernel, tmp_path):
    """A tool of root, watched by somebody else: its cells for USS and PSS are empty, the rest is known."""
    if os.getuid() != 0:
        skip_visibly("only root can leave a child behind that it may not read")
    tmp_path.chmod(0o777)
    run_script(PYTHONS["debian"], """
        import os, subprocess
        from proctor.compat.oasislmf import ResourceMonitor
        script = subprocess.Popen(["sh", "-c", "./gulpy 0.6; :"])
        os.setresuid(65534, 65534, 65534)
        monitor = ResourceMonitor("log", poll_interval=0.2)
        monitor.start(script.pid)
        script.wait()
        monitor.stop()
    """, tmp_path)
    rows = rows_of(tmp_path / "log/resource_monitor.csv")
    assert len(rows) >= 2 and {(row["tool"], row["uss_kb"], row["pss_kb"]) for row in rows} == {("gulpy", "", "")}
    assert float(rows[-1]["cpu_user_s"]) + float(rows[-1]["cpu_sys_s"]) > 0.2 and float(rows[-1]["cpu_pct"]) > 0
    assert max(int(row["rss_kb"] or 0) for row in rows) >= 20 * 1024  # none of one that has just ended
    report = (tmp_path / "log/resource_report/resource_report.md").read_text()
    assert f"| gulpy | 1 | {len(rows)} |  |  | " in report and "Peak total USS" not in report  # not known, and not 0


def test_defect_7_pss_has_a_column_and_is_drawn(tmp_path):
    write(tmp_path / "log/resource_monitor.csv", *((10.0 + t, "gulpy", pid, 50.0, t / 2, 0.0, 3072, 1024, 2560 + t)
                                                   for t in range(3) for pid in (7, 8)))
    python = tools("matplotlib", "matplotlib==3.10.8") / "python"
    run_script(python, """
        import matplotlib.axes
        plain, drawn = matplotlib.axes.Axes.plot, {}
        def plot(axes, times, values, *args, **style):
            drawn[style["label"]] = values
            return plain(axes, times, values, *args, **style)
        matplotlib.axes.Axes.plot = plot
        from proctor.compat.oasislmf import ResourceMonitor
        ResourceMonitor("log")._generate_report()
        assert drawn["gulpy PSS"] == [5120 / 1024, 5122 / 1024, 5124 / 1024], drawn
        assert drawn["gulpy RSS"] == [6.0] * 3 and drawn["gulpy USS"] == [2.0] * 3, drawn
    """, tmp_path, env=clean_environment(tmp_path, **PLACES))
    report = (tmp_path / "log/resource_report/resource_report.md").read_text()
    assert table(report)["gulpy"]["Aggr Peak PSS (MB)"] == "5.0"


def test_defect_8_a_report_of_a_long_run_takes_no_square_of_time(tmp_path):
    """Of twice as many samples it takes about twice as long; four times would be the square."""
    def seconds(count):
        rows = [(float(t), "gulpy", pid, 50.0, t / 10, 0.0, 1024, 1024, 1024) for t in range(count) for pid in (7, 8)]
        path = write(tmp_path / "a.csv", *rows)
        took = []
        for _ in range(3):
            start = time.process_time()
            loaded = load(path)
            compute_stats(loaded)
            peak_total_uss(loaded)
            assert cpu_time_curves(loaded)["gulpy"][-1] == (count - 1.0, pytest.approx((count - 1) / 5))
            took.append(time.process_time() - start)
        return min(took)
    assert seconds(8000) / seconds(4000) < 3


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
    assert {row["tool"] for row in rows_of(tmp_path / "log/resource_monitor.csv")} == {"gulpy"}


def test_defect_12_the_schedule_does_not_drift(kernel, tmp_path):
    """The last samples are as near to a multiple of the interval as the first: what a sample takes, or that one was
    late, is not added to the next. The original is 17 ms later each time."""
    script = kernel("gulpy 2.5")
    monitor = ResourceMonitor(tmp_path / "log", poll_interval=0.1, generate_report=False)
    monitor.start(script.pid)
    script.wait()
    monitor.stop()
    stamps = sorted({float(row["timestamp"]) for row in rows_of(tmp_path / "log/resource_monitor.csv")})
    late, turn = [0.0], 0
    for before, now in zip(stamps, stamps[1:]):
        turn += round((now - before) / 0.1)
        late.append(now - stamps[0] - turn * 0.1)
    assert len(stamps) >= 20 and abs(median(late[-7:]) - median(late[:7])) < 0.03, late


def test_defect_13_lines_of_the_head_are_lines(tmp_path):
    path = _report.write("a.csv", str(tmp_path), {}, {}, 0, 1000.0, 10.0)
    head = open(path).read().split("\n\n")[1].split("\n")
    assert len(head) == 5 and all(line.endswith("  ") for line in head)


def table(report):
    """The table of a report: {tool: {column: cell}}."""
    names, _, *rows = [[cell.strip(" *") for cell in line.strip("|").split("|")]
                       for line in report.splitlines() if line.startswith("|")]
    return {row[0]: dict(zip(names, row)) for row in rows}


def reports(folder):
    """What the original and we say of the same file."""
    try:
        python = originals.environment()
        originals.unpacked("oasislmf")
    except originals.Missing as e:
        skip_visibly(str(e))
    done = run_script(python, """
        import json, sys
        sys.path.insert(0, sys.argv[1])
        import originals
        from proctor.compat import oasislmf
        found = []
        for module in (originals.module("oasislmf", "oasislmf/execution/resource_monitor.py"), oasislmf):
            module.ResourceMonitor("log")._generate_report()
            with open("log/resource_report/resource_report.md", encoding="utf-8") as file:
                found.append(file.read())
        print(json.dumps(found))
    """, folder, ROOT / "tools/goldens")
    return json.loads(done.stdout)


SEVERAL = [(10.0, "gulpy", 7, 90.0, 0.9, 0.1, 204800, 153600, 174080),
           (10.0, "gulpy", 8, 45.5, 0.4, 0.05, 102400, 51234, 71680),
           (11.0, "gulpy", 7, 99.9, 1.9, 0.15, 307200, 256000, 276480),
           (11.0, "fmpy", 9, 12.3, 0.1, 0.02, 40960, 20480, 30720),
           (12.5, "fmpy", 9, 55.0, 0.7, 0.08, 81920, 61440, 71680),
           (12.5, "gulpy", 8, 1.0, 0.41, 0.05, 102400, 51234, 71680)]


def test_the_report_is_the_originals(tmp_path):
    """Of a file in which each cell is a measurement: line by line, but for the time and for the note below the head."""
    write(tmp_path / "log/resource_monitor.csv", *SEVERAL)
    theirs, ours = ([line.rstrip() for line in report.split("\n") if not line.startswith((">", "**Generated:**"))]
                    for report in reports(tmp_path))
    assert theirs == ours and len(theirs) >= 15


def test_the_report_of_the_originals_own_file_differs_where_it_is_wrong(tmp_path):
    """In which the first row of a process is always 0.0 %: the mean is of the others."""
    seen = set()
    rows = [(*row[:3], row[3] if row[2] in seen or seen.add(row[2]) else 0.0, *row[4:]) for row in SEVERAL]
    write(tmp_path / "log/resource_monitor.csv", *rows)
    theirs, ours = map(table, reports(tmp_path))
    differ = {(tool, name): (theirs[tool][name], ours[tool][name])
              for tool in theirs for name in theirs[tool] if theirs[tool][name] != ours[tool][name]}
    assert list(theirs) == list(ours) and len(theirs["gulpy"]) == 14
    assert differ == {("gulpy", "Avg CPU%"): ("25.2%", "50.5%"), ("fmpy", "Avg CPU%"): ("27.5%", "55.0%")}


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
