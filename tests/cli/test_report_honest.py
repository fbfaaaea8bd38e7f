# SPDX-License-Identifier: Apache-2.0
"""What a report must not claim: times of peaks that no sample has, lines that are not on the axis, figures of one
sample as those of the run."""
import json
import re
import sqlite3

from test_report import close, killed_recorder, recorded, report

HELD = "x = bytearray(64 << 20)"


def summary_of(proctor, path):
    return json.loads(proctor("show", path, "--json").stdout)


def changed(path, to, change):
    """A copy of a run whose samples and summary are changed."""
    to.write_bytes(path.read_bytes())
    db = sqlite3.connect(to)
    change(db)
    db.commit()
    db.close()
    return to


def test_the_total_of_the_machine_is_that_of_its_account(proctor):
    path = proctor.work / "machine.proctor"
    assert proctor("system", "-q", "--duration", "1s", "-i", "200ms", "-o", path).returncode == 0
    [run] = report(proctor, path)["runs"]
    stats = run["series"]["system.cpu.usage"]["stats"]
    assert close(stats["total"], summary_of(proctor, path)["metrics"]["system.cpu.time"]["total"])


def test_a_peak_that_no_sample_has_is_at_no_time(proctor):
    path = proctor.work / "between.proctor"
    assert proctor.run("-q", "-i", "10s", "-o", path, "python3", "-c", HELD).returncode == 0
    for name in ("between.svg", "between.txt"):
        assert proctor("report", path, "-o", name).returncode == 0
    [run] = report(proctor, path)["runs"]
    rss = run["series"]["mem.rss"]
    assert rss["stats"]["max"] > 64 << 20 and rss["stats"]["at"] is None
    assert run["series"]["cpu.usage"]["stats"]["at"] is None
    [chart] = [c for c in run["charts"] if c["id"] == "memory"]
    assert "(between samples)" in chart["text"]
    assert re.search(r"peak [\d.]+ MiB, between samples", (proctor.work / "between.svg").read_text())


def test_a_gauge_of_one_sample_is_marked_and_has_no_mean(proctor):
    path = proctor.work / "once.proctor"
    assert proctor.run("-q", "-i", "10s", "-o", path, "python3", "-c", HELD).returncode == 0
    [run] = report(proctor, path)["runs"]
    for key in ("mem.rss", "procs"):
        assert run["series"][key]["mark"] == "1 sample" and run["series"][key]["stats"]["mean"] is None
    [tile] = [t for t in run["tiles"] if t["id"] == "memory"]
    assert tile["values"][0]["label"] == "peak (between samples)"  # of the kernel's mark
    proctor("report", path, "-o", "once.txt")
    assert "memory, RSS (1 sample)" in (proctor.work / "once.txt").read_text()


def test_what_was_never_more_than_0_has_no_time_and_no_figures_on_its_axis(proctor):
    path, _ = recorded(proctor, "sleep", "0.5")
    [run] = report(proctor, path)["runs"]
    stats = run["series"]["io.write.rate"]["stats"]
    assert stats["max"] == 0 and stats["at"] is None
    proctor("report", path, "-o", "zero.svg")
    chart = (proctor.work / "zero.svg").read_text().split(">Disk, network, B/s<")[0].split("Disk, network.")[-1]
    figures = re.findall(r'text-anchor="end"[^>]*>([\d.]+)<', chart)
    assert figures == ["0"]


def test_the_machine_beyond_the_axis_is_neither_line_nor_name(proctor):
    path, _ = recorded(proctor, "sleep", "0.5")

    def busy(db):
        db.execute("UPDATE job_samples SET cpu_usage_cores = 0.1")
        db.execute("UPDATE system_samples SET system_cpu_usage_cores = 2")
    beyond = changed(path, proctor.work / "beyond.proctor", busy)
    proctor("report", beyond, "-o", "beyond.svg")
    picture = (proctor.work / "beyond.svg").read_text()
    assert ">job</text>" in picture and ">machine</text>" not in picture
    assert re.search(r'<svg x="[^>]*>\n</svg>', picture)


def test_each_file_that_is_asked_for_is_written(proctor):
    path, _ = recorded(proctor, "true")
    done = proctor("report", path, "-o", "a.txt", "-o", "b.md", "-o", "c.json", "--images", "svg")
    assert (done.returncode, done.stderr) == (0, "")
    assert all((proctor.work / name).stat().st_size > 100 for name in ("a.txt", "b.md", "c.json"))
    done = proctor("report", path, "-o", "d.txt", "-o", path)
    assert done.returncode != 0 and not (proctor.work / "d.txt").exists()


def test_an_estimated_peak_says_so(proctor):
    path, _ = recorded(proctor, "python3", "-c", HELD + "; import time; time.sleep(0.4)")

    def estimate(db):
        marks = json.dumps({"mem.pss": "last reading and change of RSS"})
        db.execute("INSERT INTO mark_sets VALUES(99, ?)", [marks])
        db.execute("UPDATE job_samples SET marks = 99")
    [run] = report(proctor, changed(path, proctor.work / "estimated.proctor", estimate))["runs"]
    assert run["series"]["mem.pss"]["mark"] == "peak estimated"
    [tile] = [t for t in run["tiles"] if t["id"] == "memory"]
    assert [v["label"] for v in tile["values"] + tile["also"]] == ["peak (estimated)", "mean"]
    [run] = report(proctor, path)["runs"]
    assert run["series"]["mem.rss"]["mark"] is None


def test_the_finding_and_the_tile_have_one_number_for_memory(proctor):
    """PSS may be well below the kernel's mark: that is said as such."""
    path, _ = recorded(proctor, "--budget", "1000%", "--memory-total", "70M", "python3", "-c",
                       HELD + "; import time; time.sleep(1)")

    def shared(db):
        db.execute("UPDATE job_samples SET mem_pss_bytes = mem_rss_bytes * 0.9")
        [text] = db.execute("SELECT json FROM summary").fetchone()
        summary = json.loads(text)
        summary["metrics"]["mem.pss"]["peak"] = summary["metrics"]["mem.rss"]["peak"] * 0.9
        db.execute("UPDATE summary SET json = ?", [json.dumps(summary)])
    [run] = report(proctor, changed(path, proctor.work / "shared.proctor", shared))["runs"]
    [finding] = [f for f in run["findings"] if f["id"] == "memory-near-limit"]
    reached, mark = re.search(r"reached ([\d.]+) MiB.*mark of one process: ([\d.]+) MiB of RSS", finding["text"]).groups()
    assert abs(float(reached) * 2**20 / run["series"]["mem.pss"]["stats"]["max"] - 1) < 0.01
    assert float(mark) > float(reached) * 1.05


def test_what_is_shared_is_no_mark_of_one_process(proctor):
    """Four that share 60 MiB under a limit of 200: no finding on the screen, nor in the report."""
    job = "import os, time\nx = bytearray(60 << 20)\nfor _ in range(3):\n    if not os.fork(): break\ntime.sleep(0.6)"
    for limit, found in (("200M", False), ("60M", True)):
        path = proctor.work / f"{limit}.proctor"
        done = proctor.run("-i", "20ms", "-o", path, "--budget", "100%", "--memory-total", limit, "/usr/bin/python3", "-c",
                           job)
        assert ("finding Memory reached" in done.stderr) == found, done.stderr
        [run] = report(proctor, path)["runs"]
        assert run["series"]["mem.rss"]["stats"]["max"] > 240 << 20
        text = [f["text"] for f in run["findings"] if f["id"] == "memory-near-limit"]
        assert bool(text) == found and all(float(m) < 90 for m in re.findall("process: ([0-9.]+) MiB", str(text))), text


GROWS_UNSEEN = """
import os, socket, subprocess
subprocess.run(["true"])
x = bytearray(180 << 20)
client = socket.socket(socket.AF_UNIX)
client.connect(os.environ["PROCTOR_SOCKET"])
client.sendall(b"begin work\\n")
assert client.recv(3) == b"ok\\n"
y = bytearray(12 << 20)
"""


def test_the_mark_of_who_waited_for_a_child_is_not_lost(proctor):
    """It grows after the sample of its phase, which is the last: wait4 alone knows, of it and of its children."""
    for limit, found in (("218M", True), ("300M", False)):
        path = proctor.work / f"{limit}.proctor"
        done = proctor.run("-i", "100s", "-o", path, "--budget", "1000%", "--memory-total", limit, "/usr/bin/python3", "-c",
                           GROWS_UNSEEN)
        assert done.returncode == 0, done.stderr
        metrics = summary_of(proctor, path)["metrics"]
        pss, rss, mark = (metrics[key]["peak"] for key in ("mem.pss", "mem.rss", "mem.rss.peak"))
        assert pss < 0.9 * (218 << 20) < mark and 1.05 * pss < mark and rss < mark < 1.1 * rss
        said = re.findall(r"finding Memory reached .*mark of one process: ([\d.]+) MiB", done.stderr)
        [run] = report(proctor, path)["runs"]
        text = str([f["text"] for f in run["findings"] if f["id"] == "memory-near-limit"])
        assert said == re.findall(r"mark of one process: ([\d.]+) MiB", text) and len(said) == found, (done.stderr, text)
        assert not found or abs(float(said[0]) - mark / 2**20) < 1


def test_the_mark_of_whoever_used_little_cpu_counts(proctor):
    """The summary has the commands that used most: the record has everybody; where it broke off the summary has more."""
    path, _ = recorded(proctor, "--budget", "1000%", "--memory-total", "70M", "/usr/bin/python3", "-c",
                       HELD + "; import time; time.sleep(1)")

    def found(name, commands, peak):
        def change(db):
            db.execute("UPDATE job_samples SET mem_pss_bytes = mem_rss_bytes * 0.7")
            [text] = db.execute("SELECT json FROM summary").fetchone()
            summary = json.loads(text)
            metrics = summary["metrics"]
            metrics["mem.pss"].update({stat: metrics["mem.rss"][stat] * 0.7 for stat in ("peak", "mean")})
            metrics["mem.rss"]["peak"] = metrics["mem.rss.peak"]["peak"]  # no more than a sum
            summary["processes"]["commands"] = commands or summary["processes"]["commands"]
            db.execute("UPDATE summary SET json = ?", [json.dumps(summary)])
            db.execute(f"UPDATE entities SET mem_rss_peak_bytes = {peak}")
        [run] = report(proctor, changed(path, proctor.work / f"{name}.proctor", change))["runs"]
        return [f["text"] for f in run["findings"] if f["id"] == "memory-near-limit"]
    others = [{"command": f"c{i}", "count": 1, "cpu.time": 9, "mem.rss.peak": 1 << 20} for i in range(100)]
    whole = found("whole", None, "mem_rss_peak_bytes")
    assert len(whole) == 1 and "mark of one process" in whole[0]
    assert found("little", others, "mem_rss_peak_bytes") == found("broken", None, "NULL") == whole
    assert found("neither", others, "NULL") == []


def test_a_dead_recorder_is_called_as_elsewhere_and_the_remedy_is_named(proctor):
    path = killed_recorder(proctor)
    [run] = report(proctor, path)["runs"]
    [finding] = [f for f in run["findings"] if f["id"] == "recorder-died"]
    assert run["verdict"]["text"].startswith("died:") and f"`proctor recover {path}`" in finding["more"]
    assert proctor("recover", path).returncode == 0
    [run] = report(proctor, path)["runs"]
    [finding] = [f for f in run["findings"] if f["id"] == "recorder-died"]
    assert run["verdict"]["text"].startswith("recovered:") and "rebuilt" in finding["text"] and finding["more"] is None


def test_what_recording_costs_is_without_the_reports(proctor, png):
    """A picture of points takes 20 MiB."""
    words = ["-i", "20ms", "--summary", "s.json", "sleep", "0.3"]
    assert proctor.run("-q", "-o", "s.proctor", "--report", "a.png", *words, env=png).returncode == 0
    there, said = (json.loads(t)["self"]["rss_peak_bytes"] for t in (
        proctor("show", "s.proctor", "--json").stdout, (proctor.work / "s.json").read_text()))
    assert said < there + (4 << 20)


def test_a_long_command_stays_on_the_picture(proctor):
    path, _ = recorded(proctor, "true", "word " * 60)
    proctor("report", path, "-o", "long.svg")
    [title] = re.findall(r'<text[^>]*font-size="15"[^>]*>([^<]*)<', (proctor.work / "long.svg").read_text())
    assert 40 < len(title) * 10.9 < 960
