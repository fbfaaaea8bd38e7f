# SPDX-License-Identifier: Apache-2.0
"""The harness of `make bench`: its crowds are what they should be, it reads what other tools write, and its tables say
what was measured."""
import argparse
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
import time
import xml.etree.ElementTree as xml

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
from benchmark import jobs, peers, plot, run, tables  # noqa: E402


def script(name):
    loader = importlib.machinery.SourceFileLoader(f"tool_{name}", os.path.join(ROOT, "tools", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Pids:
    def __init__(self, *pids):
        self.pids = list(pids)


# --- crowds and the floor -------------------------------------------------------------------------

@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return run.compile_programs(tmp_path_factory.mktemp("programs"))


def clocks(pids):
    return [time.clock_gettime((~pid << 3) | 2) for pid in pids]


@pytest.mark.parametrize("activity, moving", [("idle", 0), ("5 %", 2), ("all", 40), ("faults", 40)])
def test_as_many_are_active_as_asked(programs, activity, moving):
    with run.Crowd(run.Case(40, activity, 10), programs) as crowd:
        assert len(crowd.pids) == 40
        before = clocks(crowd.pids)
        time.sleep(0.5)
        assert sum(a != b for a, b in zip(before, clocks(crowd.pids))) == moving
    assert not any(os.path.exists(f"/proc/{pid}") for pid in crowd.pids)


def faults_of(pid):
    return int(run.text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()[7])


@pytest.mark.parametrize("activity, least, most", [("all", 0, 0), ("faults", 4, 40)])
def test_who_has_page_faults(programs, activity, least, most):
    with run.Crowd(run.Case(10, activity, 10), programs) as crowd:
        time.sleep(0.2)
        before = [faults_of(pid) for pid in crowd.pids]
        time.sleep(0.3)
        assert all(least <= faults_of(pid) - b <= most for pid, b in zip(crowd.pids, before))


def test_each_has_touched_its_memory(programs):
    with run.Crowd(run.Case(3, "idle", 10, 20), programs) as crowd:
        for pid in crowd.pids:
            rss = int(run.text_of(f"/proc/{pid}/status").partition("VmRSS:")[2].split()[0])
            assert 20 << 10 <= rss < 22 << 10


@pytest.mark.parametrize("descriptors", [20000, 100])
def test_the_floor_reads_each_process_in_each_sample(programs, tmp_path, descriptors):
    """Where it may not hold them all, it divides them."""
    with run.Crowd(run.Case(40, "all", 100), programs) as crowd:
        (tmp_path / "pids").write_text("\n".join(map(str, crowd.pids)))
        words = ["/bin/sh", "-c", f"ulimit -n {descriptors}; exec {programs['floor']} 10 20"]
        monitor = run.Monitor(words, tmp_path, str(tmp_path / "pids"))
        used = monitor.finish(None, 10)
    said = json.loads((tmp_path / "stdout").read_text())
    assert (said["samples"], said["process_samples"], said["workers"]) == (20, 800, 1 if descriptors > 120 else 4)
    assert 0.1 * used < said["cpu_us"] * 1e-6 <= used * 1.01


def test_a_busy_job_and_what_is_found_of_it(build, programs, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "BUSY", 0.5)
    monkeypatch.setattr(jobs, "KNOWN", {"cpu": ("reuse", ["20", "5000"], "cpu"), "peak": ("spike", ["1", "30", "50"], "touched")})
    tools = [peers.Ours(str(build / "proctor")), peers.Floor(programs["floor"])]
    found, alone = jobs.slowdown(tools, 1, programs, tmp_path, lambda text: None)
    assert alone["runs"] == 1 and all(0 < found[tool.name]["taken"] < 0.2 for tool in tools), found
    said = jobs.shares(tools, 1, programs, tmp_path, lambda text: None)
    assert all(0.95 < said["proctor"][quantity]["share"] < 1.1 for quantity in jobs.KNOWN), said
    assert "reason" in said["floor"]["cpu"]


def test_start_up_falls_out():
    """Ten samples of 4 processes at 2 us each, and 5 ms of start-up that is in both runs."""
    cost = run.Cost()
    cost.add(run.Shot(0.005 + 12 * 8e-6, 12, 48, 1000, 1.2), run.Shot(0.005 + 2 * 8e-6, 2, 8, 900, 0.2))
    result = cost.result(10)
    assert abs(result["us"] - 2) < 1e-6 and abs(result["job_us"] - 8) < 1e-6 and abs(result["startup"] - 0.005) < 1e-9
    assert result["size"] == 1000 and result["note"] == ""


def test_what_is_lost_in_the_noise_is_no_figure():
    cost = run.Cost()
    cost.add(run.Shot(0.01, 12, 48, 1, 1.2), run.Shot(0.02, 2, 8, 1, 0.2))
    assert cost.result(10) == {"reason": "a repetition was lost in the noise", "hz": 10}


def test_what_took_no_samples_is_said():
    cost = run.Cost()
    cost.add(run.Shot(1, 0, 0, 1, 3.3), run.Shot(1, 0, 0, 1, 1.3))
    assert cost.result(1) == {"reason": "no sample in 3.3 s", "hz": 1}


# --- what others write ----------------------------------------------------------------------------

PIDSTAT = """Linux 6.18.44 (vm) \t2026-11-15 \t_x86_64_\t(2 CPU)

# Time        UID       PID    %usr %system  %guest   %wait    %CPU   CPU  minflt/s  majflt/s     VSZ     RSS   %MEM   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command
15:17:51        0      8948   10.00    2.00    0.00    0.00   12.00     1      0.00      0.00    1104     588   0.00      0.00      0.00      0.00       0  bench-known
15:17:51        0      8950    0.00    0.00    0.00    0.00    0.00     0      0.00      0.00    1104     324   0.00      0.00      0.00      0.00       0  sh

# Time        UID       PID    %usr %system  %guest   %wait    %CPU   CPU  minflt/s  majflt/s     VSZ     RSS   %MEM   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command
15:17:52        0      8948    0.00    0.00    0.00    1.00    8.00     1      0.00      0.00    1104     600   0.00      0.00      0.00      0.00       0  bench-known

# Time        UID       PID    %usr %system  %guest   %wait    %CPU   CPU  minflt/s  majflt/s     VSZ     RSS   %MEM   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command
Average:        0      8948    5.00    1.00    0.00    0.50   10.00     -      0.00      0.00    1104     594   0.00      0.00      0.00      0.00       0  bench-known
"""

TOP = """top - 15:17:52 up  6:16,  0 user,  load average: 0.25, 1.65, 5.19
Tasks:   3 total,   0 running,   3 sleeping,   0 stopped,   0 zombie
%Cpu(s):100.0 us,  0.0 sy,  0.0 ni,  0.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
MiB Mem :  24105.6 total,  22471.5 free,    777.5 used,   1165.8 buff/cache

  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
 8948 root      20   0    1104    760    644 S   0.0   0.0   0:00.10 bench-known
 8950 root      20   0    1104    492    384 S   0.0   0.0   0:00.00 cc1

top - 15:17:52 up  6:16,  0 user,  load average: 0.25, 1.65, 5.19
Tasks:   3 total,   0 running,   3 sleeping,   0 stopped,   0 zombie

  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
 8948 root      20   0    1104 300.5m    644 S   0.0   0.0   1:00.30 bench-known
 8951 root      20   0    1104   1.5g    384 S   0.0   0.0   0:00.20 bench-known
"""


def test_pidstat(tmp_path):
    (tmp_path / "stdout").write_text(PIDSTAT)
    tool = peers.Pidstat("pidstat")
    assert tool.samples(tmp_path, Pids(8948, 8950)) == (2, 3)
    assert tool.samples(tmp_path, Pids(8950)) == (1, 1)
    said = tool.said(tmp_path)
    assert abs(said["cpu"] - 0.20) < 1e-9 and said["peak"] == 600 * 1024


def test_top(tmp_path):
    (tmp_path / "stdout").write_text(TOP)
    tool = peers.Top("top")
    assert tool.samples(tmp_path, Pids(8948, 8951)) == (2, 3)
    said = tool.said(tmp_path)
    assert abs(said["cpu"] - 60.5) < 1e-9
    assert said["peak"] == 300.5 * 1048576 + 1.5 * 1073741824


def test_psrecord(tmp_path):
    (tmp_path / "a.csv").write_text("elapsed_time,nproc,cpu,mem_real,mem_virtual\n"
                                    "0.0,1,0.0,1.5,3\n0.5,3,100.0,4.0,9\n1.5,2,50.0,2.0,6\n")
    tool = peers.Psrecord("psrecord")
    assert tool.samples(tmp_path, None) == (3, 6)
    assert tool.said(tmp_path) == {"cpu": 1.0, "peak": 4 * 1048576}


def test_con_duct(tmp_path):
    record = {"num_samples": 1, "processes": {"1": {}, "2": {}}}
    (tmp_path / "duct_usage.jsonl").write_text("\n".join(json.dumps(r) for r in (record, {**record, "num_samples": 2})))
    (tmp_path / "duct_info.json").write_text(json.dumps(
        {"execution_summary": {"average_pcpu": 50.0, "wall_clock_time": 4.0, "peak_rss": 1234}}))
    tool = peers.Conduct("con-duct")
    assert tool.samples(tmp_path, None) == (3, 6)
    assert tool.said(tmp_path) == {"cpu": 2.0, "peak": 1234}


def test_resource_tracker_in_rust(tmp_path):
    cpu = {"process_child_count": 4, "process_utime_secs": 0.5, "process_stime_secs": 0.25, "process_rss_mib": 7}
    lines = [json.dumps({"cpu": c}) for c in (cpu, {k: None for k in cpu})]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + '\n{"cpu": {"proc')
    tool = peers.Rust("resource-tracker")
    assert tool.samples(tmp_path, None) == (2, 6)
    assert tool.said(tmp_path) == {"cpu": 0.75, "peak": 7 * 1048576}


def test_mprof(tmp_path):
    (tmp_path / "m.dat").write_text("CMDLINE 8931\nMEM 1.5 1794755867.8405\nMEM 2.5 1794755867.9435\nMEM 2.0")
    tool = peers.Mprof("mprof")
    assert tool.samples(tmp_path, Pids(1, 2, 3)) == (2, 6)
    assert tool.said(tmp_path) == {"cpu": None, "peak": 2.5 * 1048576}


def test_gnu_time(tmp_path):
    (tmp_path / "said").write_text("1.25 0.50 2048\n")
    assert peers.Time("time").said(tmp_path) == {"cpu": 1.75, "peak": 2097152}


# --- tables ---------------------------------------------------------------------------------------

def result(us, hz=10, **more):
    return {"us": us, "least": us, "most": us, "job_us": us * 100, "size": 1 << 20, "hz": hz, "startup": 0.001,
            "note": "", "repetitions": 3, "each": [us] * 3, **more}


def data(ours_active, ours_idle, top=30.0):
    tool = {"version": "1", "what": "", "reason": None, "python": False, "peer": False}
    cases = {run.Case(100, activity, 10).key: {"proctor": result(us), "floor": result(10.0), "top": result(top),
                                               "pidstat": result(1.0, hz=1)}
             for activity, us in (("all", ours_active), ("idle", ours_idle), ("5 %", 1.0))}
    tools = {"proctor": tool, "floor": tool, "top": {**tool, "peer": True}, "pidstat": {**tool, "peer": True},
             "psutil": {**tool, "peer": True, "python": True, "reason": "could not be installed: no network"}}
    machine = {"cpu": "2 CPUs", "memory": "1 GiB", "kernel": "Linux", "commit": "abc", "date": "2026-01-01",
               "python": "3", "load": 0.0}
    return {"machine": machine, "tools": tools, "cases": cases, "others": [70, 90, 80], "how": "A run."}


def holds(rows):
    return [row[2] for row in rows]


def test_a_slow_down_counts_where_it_can_be_told():
    def last(alone, slower=0.001):
        slow = {"slowdown": {"proctor": {"taken": 0.001, "slower": slower, "least": 0, "most": 0}}, "alone": alone}
        return holds(tables.goal_rows(tables.Results({**data(9.0, 5.0), **slow})))[-1]
    assert last({"least": 0, "most": 0.001}) == "yes"
    assert last({"least": -0.02, "most": 0.05}).startswith("by CPU taken") and last({"least": 0, "most": 0}, 0.01) != "yes"


def test_who_held_a_job_up():
    found = {"": {"rounds": 2000, "longest": 0.001}, "top": {"rounds": 1900, "longest": 0.009}, "x": {"reason": "absent"}}
    text = tables.document({**data(9.0, 5.0), "stalls": found})
    assert "| top | 1.90 | 5.00 % | 9.00 |" in text and "| x | – (absent) |" in text


def test_goals_that_hold_and_that_do_not():
    good = tables.goal_rows(tables.Results(data(9.0, 5.0)))
    assert holds(good)[:8] == ["yes"] * 8
    bad = tables.goal_rows(tables.Results(data(17.0, 7.0)))
    assert holds(bad)[:8] == ["**no**"] * 7 + ["yes"]
    assert "1.70 times (100 processes, all active, 10 Hz)" in bad[0][1]
    assert all("1.76 times under top" in row[1] for row in bad[2:6])


def test_what_is_required_decides_how_it_ends():
    def whole(*us, without=()):
        found = data(*us)
        for case in found["cases"].values():
            case.update({name: result(40.0) for name in peers.ON_THE_SAME_WORK if name not in without})
        return found
    assert tables.missed(whole(9.0, 5.0), whole=True) == []
    assert len(tables.missed(whole(17.0, 5.0), whole=True)) == 2 and len(tables.missed(whole(9.0, 7.0), whole=True)) == 1
    lost, = tables.missed(whole(9.0, 5.0, without=["psutil"]), whole=True)
    assert "psutil could not be installed: no network" in lost
    few = whole(9.0, 5.0, without=["psutil", "resource-tracker (Rust)"])
    assert "resource-tracker (Rust) was not measured" in tables.missed(few, whole=True)[1]
    assert tables.missed(few, whole=False) == []
    alone = data(9.0, 5.0)
    alone["tools"] = {name: alone["tools"][name] for name in ("proctor", "floor")}
    assert tables.missed(alone, whole=False) == []
    assert "not measured" in tables.missed(alone, whole=True)[0]


def test_nothing_of_all_numbers_at_all_rates_is_left_out():
    bench = script("bench")
    args = argparse.Namespace(quick=False, rest=False, repetitions=3, processes=[1, 10, 100, 1000, 5000], rates=[1, 10, 100],
                              sizes=[1])
    keys = [case.key for case, _ in bench.cases(args)]
    args.rest = True
    rest = [case.key for case, _ in bench.cases(args)]
    assert len(set(keys + rest)) == len(keys) + len(rest)
    assert {run.Case(n, activity, hz).key for n in args.processes for activity in tables.ACTIVITIES for hz in args.rates
            if (n, activity) != (1, "5 %") and (n, hz) != (5000, 100)} <= set(keys + rest)


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    bench, measured = script("bench"), []
    (tmp_path / "proctor").write_text("a program")
    args = argparse.Namespace(quick=True, rest=False, resume=False, repetitions=1, folder=str(tmp_path),
                              proctor=str(tmp_path / "proctor"), tools=[])

    def measure(case, *_):
        measured.append(case.key)
        if len(measured) == 2:
            raise KeyboardInterrupt
        return {}, [7]
    monkeypatch.setattr(bench, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        bench.collect(args)
    args.resume = True
    keys = [case.key for case, _ in bench.cases(args)]
    assert set(bench.collect(args)["cases"]) == set(keys) and measured == [keys[0], *keys[1:2], *keys[1:]]
    (tmp_path / "proctor").write_text("another one")
    with pytest.raises(SystemExit, match="of another proctor"):
        bench.collect(args)
    (tmp_path / "results.json").unlink()
    with pytest.raises(SystemExit, match="no .*results.json to go on with"):
        bench.collect(args)


def test_the_rest_is_shown_by_rate():
    found = data(9.0, 5.0)
    found["cases"][run.Case(100, "faults", 1).key] = {"proctor": result(17.0, 1), "floor": result(10.0, 1)}
    text = tables.rest(found)
    assert "1 Hz\n\n|  | 100, all active, with page faults |" in text and "10 Hz\n\n|  | 100, all idle | 100, 5 % act" in text
    assert "page faults, N >= 100 | 1.70 times (100 processes, all active, with page faults, 1 Hz) | **no** |" in text


def test_few_processes_are_told_from_many():
    few = data(9.0, 5.0)
    few["cases"][run.Case(1, "all", 10).key] = {"proctor": result(9.0), "top": result(6.0)}
    rows = tables.goal_rows(tables.Results(few))
    assert rows[3][1] == "1.50 times what top takes (1 process, all active, 10 Hz)"
    assert [row[2] for row in rows[2:6]] == ["yes", "**no**", "yes", "**no**"]


def test_who_does_less_is_not_the_same_work():
    less = data(17.0, 7.0)
    less["tools"]["top"]["same"] = False
    rows = tables.goal_rows(tables.Results(less))
    assert rows[2][1] == rows[3][1] == "not measured" and "under top" in rows[4][1]


def test_a_peer_at_another_rate_is_not_the_same_work():
    """pidstat's microsecond at 1 Hz above would else win."""
    found = tables.peer_ratio(tables.Results(data(9.0, 5.0)), "us", ["top", "pidstat"], ("all",))
    assert found[0] == 9.0 / 30.0 and found[2] == "top"


def test_the_document_leaves_nobody_out():
    text = tables.document(data(9.0, 5.0))
    assert "could not be installed: no network" in text
    assert "80 other processes on the machine (70 to 90)" in text
    assert "at 1 Hz: it can do no more" in text
    assert re.search(r"\| proctor \| 5\.00 \(0\.5\) \|", text)


def test_text_goes_between_the_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x: made by the harness -->\nold\n<!-- end of x -->\nafter\n")
    tables.put(page, "x", "new")
    assert page.read_text() == "before\n<!-- x: made by the harness -->\n\nnew\n\n<!-- end of x -->\nafter\n"
    with pytest.raises(ValueError):
        tables.put(page, "y", "new")


def test_the_page_has_every_mark(root):
    page = (root / "doc/performance.md").read_text()
    for mark in ("bench", "bench-rest", "growth", "soak", "startup"):
        assert page.count(f"<!-- {mark}: made by the harness -->\n") == page.count(f"<!-- end of {mark} -->") == 1
        assert len(page.partition(f"<!-- {mark}: made")[2].partition("<!-- end")[0].split("\n")) > 5, f"{mark} is empty"


def test_what_is_required_holds_on_the_page(root):
    rows = re.findall(r"^\| required: .* \| (.*) \|$", (root / "doc/performance.md").read_text(), re.M)
    assert rows == ["yes"] * 6


def test_starting_keeps_its_aim_on_the_page(root):
    row, = re.findall(r"^\| proctor run --no-record -- true \|.*\| (\S+) \|$", (root / "doc/performance.md").read_text(), re.M)
    assert float(row) <= 3


def test_what_growth_may_not_be():
    growth = script("growth")

    def found(idle, size):
        cases = {run.Case(n, activity, 1).key: {"proctor": result(us, 1, size=size << 20), "floor": result(10.0, 1)}
                 for n in (100, 20000) for activity, us in (("idle", idle), ("5 %", 9.0))}
        return growth.beyond({**data(9.0, 5.0), "cases": cases, "wanted": [100, 20000], "most": 30000})
    assert found(5.9, 40) == []
    assert len(found(6.1, 40)) == 2 and "100 processes, all idle: 0.61 times the floor" in found(6.1, 40)[0]
    assert "20,000 processes, 5 % active: 60 MiB" in found(5.9, 60) and len(found(5.9, 60)) == 4
    lost = {run.Case(100, activity, 1).key: {"proctor": {"reason": "no sample", "hz": 1}, "floor": result(10.0, 1)}
            for activity in ("idle", "5 %")}
    assert growth.beyond({**data(9.0, 5.0), "cases": lost, "wanted": [100], "most": 30000}) == \
        ["100 processes, all idle: not measured", "100 processes, 5 % active: not measured"]


def test_a_size_of_growth_that_was_not_measured_is_no_success(tmp_path, monkeypatch, capsys):
    growth, path = script("growth"), tmp_path / "growth.json"

    def said(*wanted):
        cases = {run.Case(100, activity, 1).key: {"proctor": result(5.0, 1), "floor": result(10.0, 1)}
                 for activity in ("idle", "5 %")}
        path.write_text(json.dumps({**data(9.0, 5.0), "cases": cases, "wanted": wanted, "most": 4321, "repetitions": 3}))
        monkeypatch.setattr(sys, "argv", ["growth", "proctor", "--results", str(path)])
        return growth.main(), capsys.readouterr().err.splitlines()
    assert said(100) == (0, [])
    assert said(100, 300, 20000) == (1, [
        "tools/growth: does not hold: 300 processes: not measured",
        "tools/growth: does not hold: 20,000 processes: not measured, 4,321 are possible here"])


def test_numbers_have_three_digits():
    assert [tables.number(v) for v in (0.1234, 1.234, 12.34, 123.4, 12345.6)] == \
        ["0.12", "1.23", "12.3", "123", "12,346"]


def test_the_plot_is_a_picture():
    picture = xml.fromstring(plot.draw("t", "x", "y", {"a": [(100, 1), (20000, 50)], "b < c": [(100, 2), (20000, 51)]}))
    words = [e.text for e in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a", "b < c", "100", "20,000", "10,000"} <= set(words)
    heights = [float(e.get("y")) for e in picture.iter("{http://www.w3.org/2000/svg}text") if e.text in ("a", "b < c")]
    assert abs(heights[0] - heights[1]) >= 14


def test_growth_is_seen():
    soak = script("soak")
    flat = [(n, n, 3000 + n % 3, 40 + n % 2) for n in range(100)]
    assert soak.grown(flat) == []
    assert len(soak.grown([(n, n, 3000 + 20 * n, 40) for n in range(100)])) == 1
    assert len(soak.grown([(n, n, 3000, 40 + n) for n in range(100)])) == 1


def test_a_job_is_held_up_and_started(build, programs, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "MAPPED", 20)
    monkeypatch.setattr(jobs, "MAPPING", 0.3)
    tools, silent = [peers.Everything(str(build / "proctor")), peers.Floor(programs["floor"])], lambda text: None
    found = jobs.stalls(tools, 1, programs, tmp_path, silent)
    assert set(found) == {"", "proctor, all", "floor"}
    assert all(one["rounds"] > 1000 and 0 < one["longest"] < 0.3 for one in found.values()), found
    started = jobs.startups(tools, 1, tmp_path, silent)
    assert set(started) == {"proctor, all"} and 0 < started["proctor, all"] < 0.1


def test_a_short_soak(build):
    soak = script("soak")
    found = soak.soak(str(build / "proctor"), 300, 10, "1ms")
    assert len(found) == 10 and found[-1][0] >= 300 and all(row[2] > 500 and row[3] > 5 for row in found)
