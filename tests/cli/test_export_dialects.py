# SPDX-License-Identifier: Apache-2.0
"""Recorded runs in the dialects of other tools: what was written live, byte by byte; one run through all of them."""
import csv
import io
import json
import os
import re
import signal
import sqlite3

import pytest

from proctor_cli import finish, query, read_csv, said, wait_until
from test_dialects import COMBINED, MIB, NINE, PROCESS, SYSTEM, check_process, check_system, known
from test_gpu import TWO, gpu, job  # noqa: F401

# Each table of each dialect, the default first: what it is called, and its form.
TABLES = {
    "resource-tracker": {"process": ("process.csv", "csv"), "system": ("system.csv", "csv"),
                         "combined": ("combined.csv", "csv")},
    "resource-tracker-0.1": {"process": ("process.csv", "csv"), "system": ("system.csv", "csv")},
    "oasislmf": {"processes": ("resource_monitor.csv", "csv")},
    "stouputils": {"metrics": ("process_metrics.jsonl", "jsonl"), "metrics-csv": ("process_metrics.csv", "csv")},
    "pytyche": {"hw_metrics": ("hw_metrics.csv", "csv"), "dmon": ("hw_dmon.csv", "csv"),
                "cpu_metrics": ("cpu_metrics.csv", "csv"), "resource-summary": ("resource_summary.json", "jsonl")},
    "spdl": {"usage": ("process_group_usage.jsonl", "jsonl")},
    "snakemake": {"benchmark": ("benchmark.tsv", "csv")},
    "nextflow": {"trace": (".command.trace", "csv")},
    "gnu-time": {"verbose": ("time.txt", "csv"), "format": ("time-format.txt", "csv")},
}
PAIRS = [(dialect, table) for dialect, tables in TABLES.items() for table in tables]
PSS_KIB = 64  # of a process: it makes no row by itself within that, or 1 % (doc/run-file.md)


@pytest.fixture
def command(jobs):
    """A family that burns 0.4 s of CPU in two processes, waits a little, and fails."""
    return ["sh", "-c", f"{jobs}/family together 2 200000; sleep 0.2; exit 3"]


def exported(proctor, path, *words, **kw):
    done = proctor("export", path, *words, text=False, **kw)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    return done.stdout


def live(proctor, dialect, table, *words, command, way="run", **kw):
    """What a run wrote while it was recorded, into live and run.proctor."""
    form = TABLES[dialect][table][1]
    done = proctor(way, "-q", "-i", "50ms", "-o", "run.proctor", "--force", f"--{form}", "live", "--dialect", dialect, "--table", table,
                   *words, *command, **kw)
    assert said(done.stderr) == [], done.stderr
    return (proctor.work / "live").read_bytes()


# --- as live --------------------------------------------------------------------------------------

@pytest.mark.parametrize("dialect,table", [pair for pair in PAIRS if pair[0] != "oasislmf"], ids="-".join)
def test_it_is_what_was_written_live(proctor, command, dialect, table):
    written = live(proctor, dialect, table, "--cpu-total", "1.5", command=command)
    assert written or table == "hw_metrics"  # of which this machine may have none
    assert exported(proctor, "run.proctor", "--dialect", dialect, "--table", table) == written
    form = TABLES[dialect][table][1]
    assert exported(proctor, "run.proctor", "--dialect", dialect, "--table", table, "--format", form) == written
    exported(proctor, "run.proctor", "--dialect", dialect, "-o", "all/")
    assert (proctor.work / "all" / TABLES[dialect][table][0]).read_bytes() == written


@pytest.mark.parametrize("dialect,table", [("pytyche", t) for t in TABLES["pytyche"]] +
                         [("resource-tracker", "combined"), ("resource-tracker-0.1", "process")], ids="-".join)
def test_gpus_are_what_was_written_live(proctor, gpu, dialect, table):  # noqa: F811
    gpu.script.write_text(TWO + "util 0 80 0 99\nutil 1 20 0 99\n")
    written = live(proctor, dialect, table, "-i", "200ms", command=job((0, "3000000000 c 30 99"), seconds=1.2), env=gpu.env())
    assert exported(proctor, "run.proctor", "--dialect", dialect, "--table", table) == written
    if table == "resource-summary":
        assert json.loads(written)["gpu_util_max_pct"] == 80
        assert exported(proctor, "run.proctor", "--format", "resource-summary") == written
    elif table == "hw_metrics":
        assert len({line.split(b", ")[3] for line in written.splitlines()}) == 2, "of both"
    elif table == "combined":
        rows = list(csv.DictReader(io.StringIO(written.decode(), newline="")))
        assert max(known(rows, "process_gpu_vram_mib")) == pytest.approx(3e9 / MIB, abs=1e-3)


def as_replayed(written, again):
    """The live rows of OasisLMF with what the coding of the run file may change: a process is called by the last name
    that it had, or the last rule that it belonged to; and a little of PSS."""
    rows, others = (list(csv.DictReader(io.StringIO(text.decode(), newline=""))) for text in (written, again))
    assert len(rows) == len(others) > 10
    last = {row["pid"]: row["tool"] for row in rows}
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    for row, other in zip(rows, others):
        row["tool"] = last[row["pid"]]
        assert (row["pss_kb"] == "") == (other["pss_kb"] == "")
        if row["pss_kb"]:
            pss, known_as = int(row["pss_kb"]), int(other["pss_kb"])
            assert abs(pss - known_as) <= max(PSS_KIB, pss / 99) + 1
            row["pss_kb"] = other["pss_kb"]
        writer.writerow(row)
    return out.getvalue().encode()


@pytest.mark.parametrize("words", [(), ("--match", "burner=^family$", "--match", "napper=^sleep$"), ("--no-pss",)], ids=["plain", "match", "no-pss"])
def test_oasislmf_is_what_was_written_live(proctor, command, words):
    written = live(proctor, "oasislmf", "processes", *words, command=command)
    again = exported(proctor, "run.proctor", "--dialect", "oasislmf")
    assert again == as_replayed(written, again)
    assert again.startswith(b"timestamp,tool,pid,cpu_pct,cpu_user_s,cpu_sys_s,rss_kb,uss_kb,pss_kb\r\n")
    tools = {row["tool"] for row in csv.DictReader(io.StringIO(again.decode(), newline=""))}
    assert {"burner" if "burner=^family$" in words else "family", "sh"} <= tools
    if "--match" in words:
        rules = set(query(proctor.work / "run.proctor", "SELECT match FROM entities WHERE kind = 'process'"))
        assert None in rules and rules - {None} == tools & {"burner", "napper"}


def test_a_process_of_one_name_is_the_same_to_the_byte(proctor):
    """Without PSS, and attached to a process that stays what it is, not even that differs."""
    process = proctor.other(["sleep", "60"])
    for words in ([], ["--match", "rule=sleep"]):
        written = live(proctor, "oasislmf", "processes", "--no-pss", "--duration", "0.3", *words, way="attach",
                       command=[process.pid])
        assert exported(proctor, "run.proctor", "--dialect", "oasislmf") == written
        assert written.count(b",rule," if words else b",sleep,") == written.count(b"\n") - 1 >= 3


@pytest.mark.parametrize("way,dialect,table", [("pid", "spdl", "usage"), ("group", "spdl", "usage"), ("pid", "resource-tracker", "process"),
                                               ("system", "spdl", "usage"), ("system", "pytyche", "cpu_metrics"),
                                               ("system", "resource-tracker", "combined"), ("pid", "gnu-time", "verbose")])
def test_attach_and_system_come_back_too(proctor, way, dialect, table):
    process = proctor.other(["sleep", "60"], start_new_session=True)
    target = {"pid": [process.pid], "group": ["--group", process.pid], "system": []}[way]
    written = live(proctor, dialect, table, "--duration", "0.4", way="system" if way == "system" else "attach", command=target)
    assert exported(proctor, "run.proctor", "--dialect", dialect, "--table", table) == written
    if way != "system" and dialect == "spdl":
        assert {json.loads(line)["pgid"] for line in written.splitlines()} == {process.pid}


@pytest.mark.parametrize("words", [("--no-gpu",), ("--select", "cpu.*,mem.rss"), ("--average", "2")], ids=lambda w: w[0])
def test_options_come_back(proctor, command, words):
    for dialect, table in (("resource-tracker", "combined"), ("stouputils", "metrics")):
        written = live(proctor, dialect, table, *words, command=command)
        assert exported(proctor, "run.proctor", "--dialect", dialect, "--table", table) == written
    if "--select" in words:  # what was not asked for is not there, though some of it had to be read
        rows = [json.loads(line) for line in written.splitlines()]
        keys = {key.split("/")[1] for row in rows for key, value in row.items() if value is not None}
        assert keys == {"cpu_usage_percentage", "memory_rss_megabytes", "memory_usage_percentage"}


def test_a_job_that_dies_of_a_signal(proctor):
    written = live(proctor, "gnu-time", "verbose", command=["sh", "-c", "kill -9 $$"])
    assert written.startswith(b"Command terminated by signal 9\n")
    assert exported(proctor, "run.proctor", "--dialect", "gnu-time") == written


# --- one run through all of them ------------------------------------------------------------------

class Run:
    """A recorded run, and its summary, as checks of what a dialect wrote want it."""

    def __init__(self, proctor, command):
        done, self.summary = proctor.recorded("-q", "-i", "50ms", "--budget", "100%", "-o", "run.proctor", "--match", "burner=^family$", *command)
        assert done.returncode == 3
        self.samples = self.summary["samples"]["taken"]
        self.duration = self.summary["run"]["duration"]

    def total(self, key):
        return self.summary["metrics"][key]["total"]

    def peak(self, key):
        return self.summary["metrics"][key]["peak"]


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def check_resource_tracker(run, folder):
    for name, columns in (("process", PROCESS), ("system", SYSTEM), ("combined", COMBINED)):
        rows = read_csv(folder / f"{name}.csv")
        assert list(rows[0]) == columns and len(rows) == run.samples
        prefix = "process_" if name == "combined" else ""
        if name != "system":
            check_process(run, rows, prefix)
        if name != "process":
            check_system(rows, "system_" if name == "combined" else "")


def check_resource_tracker_0_1(run, folder):
    rows = read_csv(folder / "process.csv")
    assert len(rows) == run.samples == len(read_csv(folder / "system.csv"))
    assert sum(int(row["utime"]) for row in rows) == int(run.total("cpu.user") * 100 + 1e-6)
    assert max(known(rows, "pss")) == run.peak("mem.pss") // 1024


def check_oasislmf(run, folder):
    rows = read_csv(folder / "resource_monitor.csv")
    burners = {row["pid"] for row in rows if row["tool"] == "burner"}
    assert len(burners) == run.summary["matches"][0]["instances"] == 3
    assert len({row["timestamp"] for row in rows}) == run.samples - 1, "in the last sample nobody lives"


def check_stouputils(run, folder):
    objects, rows = lines_of(folder / "process_metrics.jsonl"), read_csv(folder / "process_metrics.csv")
    assert len(objects) == len(rows) == run.samples and list(objects[0]) == list(rows[0]) == [f"process/{k}" for k in NINE]
    for key in rows[0]:
        assert [str(o[key]) if o[key] is not None else "" for o in objects] == [row[key] for row in rows], key
    assert max(o["process/memory_rss_megabytes"] or 0 for o in objects) * MIB == run.peak("mem.rss")
    assert max(o["process/cpu_usage_percentage"] or 0 for o in objects) == pytest.approx(
        run.peak("cpu.percent") / run.summary["limits"]["cpu"]["cores"])


def check_pytyche(run, folder):
    rows = read_csv(folder / "cpu_metrics.csv")
    summary = json.loads((folder / "resource_summary.json").read_text())
    assert 1 <= len(rows) <= run.samples
    assert summary["cpu_usr_mean_pct"] == pytest.approx(sum(known(rows, "usr_pct")) / len(rows), abs=0.051)
    gpus = len(run.summary["devices"])
    assert bool((folder / "hw_metrics.csv").read_bytes()) == bool(gpus)
    assert (folder / "hw_dmon.csv").read_text().startswith("# gpu ")


def check_spdl(run, folder):
    rows = lines_of(folder / "process_group_usage.jsonl")
    assert len(rows) == run.samples and max(row["rss_bytes"] or 0 for row in rows) == run.peak("mem.rss")
    assert {row["pgid"] for row in rows} == {os.getpgrp()}


def check_snakemake(run, folder):
    [row] = csv.DictReader((folder / "benchmark.tsv").open(), delimiter="\t")
    assert float(row["s"]) == pytest.approx(run.duration, abs=0.006)
    assert float(row["cpu_time"]) == pytest.approx(run.total("cpu.time"), abs=0.006)
    assert float(row["max_rss"]) == pytest.approx(run.peak("mem.rss.peak") / MIB, abs=0.006)


def check_nextflow(run, folder):
    title, *lines = (folder / ".command.trace").read_text().splitlines()
    values = dict(line.split("=", 1) for line in lines)
    assert title == "nextflow.trace/v2" and int(values["realtime"]) == pytest.approx(run.duration * 1000, abs=1)
    assert int(values["rchar"]) == run.total("io.rchar") and int(values["vol_ctxt"]) == run.total("ctx.voluntary")


def check_gnu_time(run, folder):
    text = (folder / "time.txt").read_text()
    assert text.startswith("Command exited with non-zero status 3\n\tCommand being timed: \"sh -c ")
    assert float(re.search(r"User time \(seconds\): ([\d.]+)", text).group(1)) == pytest.approx(run.total("cpu.user"), abs=0.011)
    assert "user " in (folder / "time-format.txt").read_text()


def test_the_same_run_through_every_dialect(proctor, command):
    run = Run(proctor, command)
    for dialect, tables in TABLES.items():
        folder = proctor.work / "out" / dialect
        folder.parent.mkdir(exist_ok=True)
        assert exported(proctor, "run.proctor", "--dialect", dialect, "-o", f"{folder}/") == b""
        assert sorted(p.name for p in folder.iterdir()) == sorted(name for name, _ in tables.values())
        globals()["check_" + re.sub(r"\W", "_", dialect)](run, folder)
        first = (folder / next(iter(tables.values()))[0]).read_bytes()
        assert exported(proctor, "run.proctor", "--dialect", dialect) == first, "the first table is the default"
        exported(proctor, "run.proctor", "--dialect", dialect, "-o", folder)  # a folder that is there needs no slash
        assert (folder / next(iter(tables.values()))[0]).read_bytes() == first


def test_one_table_or_one_form_in_a_folder(proctor):
    proctor.run("-q", "-o", "run.proctor", "true")
    for words, names in ((["--table", "dmon"], ["hw_dmon.csv"]), (["--format", "jsonl"], ["resource_summary.json"]),
                         (["--format", "csv"], ["cpu_metrics.csv", "hw_dmon.csv", "hw_metrics.csv"])):
        folder = proctor.work / names[0].replace(".", "_")
        exported(proctor, "run.proctor", "--dialect", "pytyche", *words, "-o", f"{folder}/")
        assert sorted(p.name for p in folder.iterdir()) == names
    exported(proctor, "run.proctor", "--format", "resource-summary", "-o", "summary/")
    assert os.listdir(proctor.work / "summary") == ["resource_summary.json"]


# --- records that are not whole -------------------------------------------------------------------

def test_a_run_that_is_being_recorded(proctor):
    process = proctor.start("run", "-q", "-i", "50ms", "-o", "run.proctor", "sleep", "60")
    path = proctor.work / "run.proctor"
    wait_until(lambda: path.exists() and proctor("export", path, "--dialect", "snakemake").stdout.count("\n") == 2, "a row")
    wait_until(lambda: proctor("export", path, "--dialect", "spdl").stdout.count("\n") > 4, "samples")
    rows = [json.loads(line) for line in exported(proctor, path, "--dialect", "spdl").splitlines()]
    assert rows[-1]["num_procs"] == 1, "it has not ended"
    os.kill(proctor.children(process.pid)[0], signal.SIGTERM)
    finish(process)


def test_a_file_of_a_version_without_rules(proctor, command):
    """Columns may be added within a version: what is not there is not known."""
    written = live(proctor, "oasislmf", "processes", "--no-pss", "--match", "burner=^family$", command=command)
    with sqlite3.connect(proctor.work / "run.proctor") as db:
        columns = ", ".join(row[1] for row in db.execute("PRAGMA table_info(entities)") if row[1] != "match")
        db.executescript(f"CREATE TABLE other AS SELECT {columns} FROM entities; DROP TABLE entities;"
                         "ALTER TABLE other RENAME TO entities;"
                         "UPDATE run SET about = json_remove(about, '$.job')")
    db.close()
    again = exported(proctor, "run.proctor", "--dialect", "oasislmf")
    assert b",family," in again and b",burner," not in again and again.count(b"\n") == written.count(b"\n")
    row = json.loads(exported(proctor, "run.proctor", "--dialect", "spdl").splitlines()[0])
    assert row["pgid"] is None and row["pid"] > 0


# --- what cannot be -------------------------------------------------------------------------------

@pytest.fixture
def run_file(proctor):
    proctor.run("-q", "-o", "run.proctor", "true")
    return proctor.work / "run.proctor"


def test_wrong_words_are_said(proctor, run_file):
    cases = [
        (["--dialect", "spdl", "--table", "nosuch"], "spdl has no table 'nosuch'; its tables: usage (--jsonl)"),
        (["--dialect", "nosuch"], "nosuch"),
        (["--dialect", "spdl", "--format", "csv"], "--csv: spdl has no table for this; its tables: usage (--jsonl)"),
        (["--dialect", "stouputils", "--table", "metrics", "--format", "csv"], "the table metrics of stouputils is not for this"),
        (["--dialect", "spdl", "--format", "csv", "-o", "made/"], "spdl has no table for this"),
        (["--dialect", "spdl", "--table", "nosuch", "-o", "made/"], "spdl has no table 'nosuch'"),
        (["--table", "process", "--format", "csv"], "only a dialect has tables"),
        (["--dialect", "spdl", "--format", "runlog"], "leave --dialect out"),
        (["--dialect", "spdl", "--format", "resource-summary"], "leave --dialect out"),
        (["--table", "dmon", "--format", "resource-summary"], "leave --table out"),
        ([], "--format is missing"),
    ]
    for words, message in cases:
        done = proctor("export", run_file, *words)
        assert done.returncode == 2 and message in done.stderr and done.stdout == "", (words, done)
        assert done.stderr.count("\n") == 1
    assert not (proctor.work / "made").exists(), "a folder for nothing"


@pytest.mark.parametrize("dialect", TABLES)
def test_the_tables_are_those(proctor, run_file, dialect):
    stderr = proctor("export", run_file, "--dialect", dialect, "--table", "?").stderr
    assert re.findall(r"([\w-]+) \(--(\w+)\)", stderr) == [(name, form) for name, (_, form) in TABLES[dialect].items()]


def test_machines_without_processes(proctor):
    proctor("system", "-q", "-o", "run.proctor", "--duration", "0.2", "-i", "100ms")
    done = proctor("export", "run.proctor", "--dialect", "oasislmf")
    assert done.returncode == 2 and "has none" in done.stderr
    proctor("system", "-q", "-o", "all.proctor", "--processes", "--duration", "0.2", "-i", "100ms")
    assert exported(proctor, "all.proctor", "--dialect", "oasislmf").count(b"\n") > 2


def test_a_file_gets_the_first_table(proctor, run_file):
    exported(proctor, run_file, "--dialect", "resource-tracker", "-o", "one.csv")
    assert list(read_csv(proctor.work / "one.csv")[0]) == PROCESS
    exported(proctor, run_file, "--dialect", "stouputils", "--format", "csv", "-o", "two.csv")
    assert list(read_csv(proctor.work / "two.csv")[0]) == [f"process/{k}" for k in NINE]


def test_places_that_cannot_be_written(proctor, run_file):
    (proctor.work / "file").write_text("kept")
    for out in ("no/such/", "file/", "/sys/"):
        done = proctor("export", run_file, "--dialect", "resource-tracker", "-o", out)
        assert done.returncode == 1 and out in done.stderr and done.stderr.count("\n") == 1, (out, done)
    assert (proctor.work / "file").read_text() == "kept"
    (proctor.work / "full").mkdir()
    (proctor.work / "full" / "system.csv").symlink_to("/dev/full")
    done = proctor("export", run_file, "--dialect", "resource-tracker", "-o", "full")
    assert done.returncode == 1 and "No space left" in done.stderr
    assert len(read_csv(proctor.work / "full" / "process.csv")) >= 2, "the others are whole"
    before = run_file.read_bytes()
    (proctor.work / "trap").mkdir()
    (proctor.work / "trap" / "benchmark.tsv").symlink_to(run_file)
    done = proctor("export", run_file, "--dialect", "snakemake", "-o", "trap")
    assert done.returncode == 1 and "the run itself" in done.stderr and run_file.read_bytes() == before


def test_the_dialect_of_the_environment(proctor, run_file):
    """As it is that of --csv; the two formats with a shape of their own are not touched."""
    wanted = exported(proctor, run_file, "--dialect", "snakemake")
    env = {"PROCTOR_DIALECT": "snakemake"}
    assert exported(proctor, run_file, "--format", "csv", env=env) == wanted
    assert exported(proctor, run_file, env=env) == wanted
    assert exported(proctor, run_file, "--format", "runlog", env=env) == b""
    assert b"peak_vram_mb" in exported(proctor, run_file, "--format", "resource-summary", env=env)
