# SPDX-License-Identifier: Apache-2.0
"""Figures of reports beside SQL on the run file, of jobs that nobody chose: what they do is drawn by lot."""
import json
import random

import pytest

from proctor_cli import PROCTOR, query
from test_gpu import TWO, Gpu
from test_report import close, keeps_to_contract, recorded, report

# Each step is one of these, for some time or of some size.
STEPS = """
import os, subprocess, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
def hold(mib):
    data = bytearray(mib << 20)
    time.sleep(0.08)
def write(kib):
    with open("out", "ab", buffering=0) as f:
        f.write(b"x" * (kib << 10))
        os.fsync(f.fileno())
def child(seconds):
    subprocess.run([sys.executable, "-c", f"import time\\nwhile time.process_time() < {seconds}: pass"], check=True)
def proctor(*words):
    subprocess.run([os.environ["TOOL"], *words], check=True)
"""


def drawn(dice, depth=0):
    """Lines of a job: steps, and phases around some of them, two deep at the most."""
    lines = []
    for _ in range(dice.randint(1, 3)):
        step = dice.choice(["burn(%.2f)" % dice.uniform(0.05, 0.3), "hold(%d)" % dice.randint(10, 120),
                            "write(%d)" % dice.randint(100, 3000), "child(%.2f)" % dice.uniform(0.05, 0.2),
                            "time.sleep(%.2f)" % dice.uniform(0.05, 0.2)])
        if depth < 2 and dice.random() < 0.6:
            name = f"p{dice.randrange(10**9)}"
            lines += [f"proctor('phase', 'begin', '{name}')", *drawn(dice, depth + 1), f"proctor('phase', 'end', '{name}')"]
        lines.append(step)
    return lines


# A phase begins and ends with a sample, which is taken a moment after it was asked for.
AT = "(SELECT {} FROM job_samples WHERE elapsed >= {} ORDER BY elapsed LIMIT 1)"


def between(path, begin, end):
    """What samples say of a part of a run; `end` None: to its end."""
    first, last = round(begin * 1e9), round(end * 1e9) if end is not None else "(SELECT max(elapsed) FROM job_samples)"
    reach = f"{AT.format('elapsed', first) if begin else -1} AND elapsed <= {AT.format('elapsed', last)}"
    start = "0" if not begin else AT.format("{0}", first)
    found = {}
    for name, column in (("cpu", "cpu_time_seconds"), ("read", "io_read_bytes"), ("written", "io_write_bytes")):
        [found[name]] = query(path, f"SELECT {AT.format(column, last)} - coalesce({start.format(column)}, 0)")
    # A rate is of the time before its sample; what is there at the begin is there.
    for name, column, after in (("usage", "cpu_usage_cores", ">"), ("pss", "mem_pss_bytes", ">="),
                                ("rss", "mem_rss_bytes", ">=")):
        found[name] = query(path, f"SELECT {column}, elapsed / 1e9 FROM job_samples WHERE {column} IS NOT NULL AND elapsed "
                                  f"{after} {reach} ORDER BY {column} DESC")
    return found


def agrees(stats, found, lasted, whole=False):
    """Totals, means and peaks, and where those were."""
    cpu = stats["cpu.usage"]
    assert close(cpu["total"], found["cpu"]), (cpu, found["cpu"])
    if whole:
        assert close(cpu["mean"], found["cpu"] / lasted, 1e-3)
    assert close(stats["io.read.rate"]["total"], found["read"])
    assert close(stats["io.write.rate"]["total"], found["written"])
    gauges = [("mem.pss", found["pss"]), ("mem.rss", found["rss"])]
    if not whole:  # the first rate of a phase is of its own time, that of the sample may reach further back
        later = sorted(found["usage"], key=lambda row: row[1])[1:]
        assert cpu["max"] is None or all(cpu["max"] >= value * (1 - 1e-6) for value, _ in later), (cpu, later)
    for key, rows in gauges + [("cpu.usage", found["usage"])] * whole:
        figures = stats.get(key)
        if not figures or figures["max"] is None or not rows:
            continue
        assert figures["max"] >= rows[0][0] * (1 - 1e-6), (key, figures, rows[0])
        if figures["at"] is not None:  # sampled, and not a mark or an account
            assert close(figures["max"], rows[0][0]), (key, figures, rows[:3])
            assert any(abs(figures["at"] - at) < 1e-6 for value, at in rows if close(value, rows[0][0])), key
        if figures["min"] is not None:
            assert close(figures["min"], rows[-1][0]), (key, figures, rows[-1])
    return sum(len(found[k]) for k in ("usage", "pss", "rss"))


@pytest.mark.parametrize("seed", range(5))
def test_a_job_drawn_by_lot_has_the_figures_of_its_samples(proctor, seed):
    dice = random.Random(seed)
    lines = ["proctor('phase', 'begin', 'all')", *drawn(dice), *drawn(dice), "proctor('phase', 'end', 'all')", *drawn(dice)]
    proctor.env["TOOL"] = PROCTOR
    for _ in range(3):  # a disk that stands still for long costs samples, but not their peak
        path, done = recorded(proctor, "python3", "-c", STEPS + "\n".join(lines))
        assert done.returncode == 0, done.stderr
        if query(path, "SELECT count(*) FROM events WHERE text LIKE '%samples were not written%'") == [0]:
            break
    [run] = report(proctor, path)["runs"]
    [lasted] = query(path, "SELECT json_extract(json, '$.run.duration') FROM summary")
    assert run["run"]["duration"] == lasted
    known = agrees({k: s["stats"] for k, s in run["series"].items()}, between(path, 0, None), lasted, whole=True)
    assert known > 20
    rows = query(path, "SELECT name, start / 1e9, seconds FROM phases ORDER BY start, depth")
    assert [p["name"] for p in run["phases"]] == [name for name, *_ in rows]
    for phase, (_, start, seconds) in zip(run["phases"], rows):
        assert close(phase["begin"], start) and close(phase["time"], seconds) and phase["exact"]
        agrees(phase["stats"], between(path, start, start + seconds), seconds)


def short(proctor, *words):
    """The model and the summary of a run of which there is hardly a sample."""
    path = proctor.work / "short.proctor"
    done = proctor.run("-q", "-i", "10s", "-o", path, *words)
    assert done.returncode == 0, done.stderr
    [run] = report(proctor, path)["runs"]
    return run, json.loads(query(path, "SELECT json FROM summary")[0])


def test_a_run_shorter_than_its_interval_has_the_figures_of_its_account(proctor):
    run, summary = short(proctor, "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; head -c 300000 "
                                              "/dev/zero > out; sync out")
    metrics, tiles = summary["metrics"], {t["id"]: t for t in run["tiles"]}
    cpu = run["series"]["cpu.usage"]["stats"]
    assert cpu["total"] == metrics["cpu.time"]["total"] > 0
    assert close(cpu["mean"], cpu["total"] / run["run"]["duration"], 1e-3) and cpu["max"] >= cpu["mean"] * (1 - 1e-6)
    assert run["series"]["io.write.rate"]["stats"]["total"] == metrics["io.write"]["total"] >= 300000
    assert all(tiles[name]["absent"] is None for name in ("cpu", "memory", "disk"))
    assert not any(v is not None for v in run["series"]["cpu.usage"]["mean"])
    assert {c["id"]: c for c in run["charts"]}["cpu"]["text"].startswith("job: mean ")


def test_a_peak_that_no_sample_has_seen_is_the_kernels(proctor):
    run, summary = short(proctor, "--memory-total", "340M", "python3", "-c", "x = bytearray(300 << 20)")
    mark = summary["metrics"]["mem.rss.peak"]["peak"]
    rss = run["series"]["mem.rss"]
    assert rss["stats"]["max"] == mark > 300 << 20 and rss["stats"]["at"] is None
    assert not any((v or 0) > 200 << 20 for v in rss["mean"])
    memory = {t["id"]: t for t in run["tiles"]}["memory"]
    assert memory["values"][0]["series"] == ["mem.rss"] and memory["limit"]["value"] == 340 << 20
    assert any(f["id"] == "memory-near-limit" for f in run["findings"])


def test_a_peak_that_was_sampled_is_in_pss(proctor):
    path, _ = recorded(proctor, "python3", "-c", "x = bytearray(90 << 20); import time; time.sleep(0.6)")
    [run] = report(proctor, path)["runs"]
    assert {t["id"]: t for t in run["tiles"]}["memory"]["values"][0]["series"] == ["mem.pss"]


def test_a_run_without_a_single_value_keeps_its_shape(proctor):
    path, _ = recorded(proctor, "--select", "procs", "true")
    proctor("report", path, "-o", "none.json")
    keeps_to_contract(proctor.work / "none.json")


def test_the_energy_of_a_device_is_that_of_its_counter(proctor):
    """This driver's counter has 200 W, and its power 250: tile and table agree all the same."""
    summary, _, _ = Gpu(proctor).run(TWO, "-i", "100ms", "-o", "g.proctor", "sleep", "1")
    [run] = report(proctor, proctor.work / "g.proctor")["runs"]
    for number, device in enumerate(summary["devices"]):
        used = device["metrics"]["gpu.energy"]["total"]
        assert run["series"][f"gpu.{number}.power"]["stats"]["total"] == used > 0
        assert run["devices"]["rows"][number]["energy"] == used
