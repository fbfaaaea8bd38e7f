# SPDX-License-Identifier: Apache-2.0
"""Dialects against the tools that they are named after: what those write of known rows (tests/golden/dialects, made by
tools/make-goldens), and what they read of ours."""
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import venv

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from goldens import originals, rows  # noqa: E402

GOLDEN = rows.FOLDER
SOURCES = json.loads((GOLDEN / "sources.json").read_text())
KNOWN = rows.load()

# What has to be in each table: change one of these in the third sample, and it reads otherwise. Of a process and of a
# GPU where the table is of those.
TRACKED = ["procs", "cpu.user", "cpu.system", "cpu.usage", "mem.pss", "io.read", "io.write", "gpu.usage", "gpu.mem",
           "gpu.count"]
MACHINE = ["system.procs", "system.cpu.user", "system.cpu.system", "system.cpu.usage", "system.mem.free",
           "system.mem.buffers", "system.mem.cached", "system.disk.read", "system.disk.write",
           "system.disk.space.total", "system.disk.space.used", "system.disk.space.free", "system.net.rx",
           "system.net.tx", "system.gpu.usage", "system.gpu.mem", "system.gpu.count"]
NOW = [*MACHINE, "system.mem.used", "system.mem.active", "system.mem.inactive"]
QUERY = ["gpu.util", "gpu.mem.util", "gpu.mem.used", "gpu.mem.total", "gpu.power", "gpu.temp", "gpu.clock.sm",
         "gpu.clock.mem"]
CPU = ["system.cpu.user", "system.cpu.idle", "system.cpu.iowait", "system.cpu.steal"]
LOGGED = ["mem.rss", "mem.vms", "mem.uss", "threads", "fds", "io.read", "io.write"]
# Of those that say one thing at the end: in the last sample, or in the third where it is a peak.
END = ["cpu.user", "cpu.system", "cpu.time", "faults.minor", "faults.major", "ctx.voluntary", "ctx.involuntary",
       "io.read", "io.write", "mem.rss.peak"]
MUST_MATTER = {
    "resource-tracker.process.csv": TRACKED,
    "resource-tracker.system.csv": NOW,
    "resource-tracker.combined.csv": TRACKED + NOW,
    "resource-tracker-0.1.process.csv": TRACKED,
    "resource-tracker-0.1.system.csv": MACHINE + ["system.mem.total", "system.mem.active.anon",
                                                  "system.mem.inactive.anon"],
    "oasislmf.processes.csv": ["cpu.percent", "cpu.user", "cpu.system", "mem.rss", "mem.uss", "mem.pss"],
    "stouputils.metrics.jsonl": LOGGED,
    "stouputils.metrics-csv.csv": LOGGED,
    "pytyche.hw_metrics.csv": QUERY,
    "pytyche.dmon.csv": ["gpu.util", "gpu.mem.util", "gpu.mem.used"],
    "pytyche.cpu_metrics.csv": CPU,
    "pytyche.resource-summary.json": CPU + ["gpu.util", "gpu.mem.util", "gpu.mem.used", "gpu.power"],
    "spdl.usage.jsonl": ["cpu.percent", "mem.rss", "mem.pss", "mem.uss", "io.read", "io.write", "procs",
                         "system.net.rx", "system.net.tx"],
    "snakemake.benchmark.tsv": ["mem.rss.peak", "mem.vms", "mem.uss", "mem.pss", "io.read", "io.write", "cpu.time"],
    "nextflow.trace.txt": ["io.rchar", "io.wchar", "io.read", "io.write", "mem.vms", "mem.rss", "mem.rss.peak",
                           "cpu.time", "ctx.voluntary", "ctx.involuntary"],
    "gnu-time.verbose.txt": END,
    "gnu-time.format.letters.txt": END,
    "gnu-time.format.txt": ["cpu.user", "cpu.system", "cpu.time", "faults.minor", "faults.major", "io.read",
                            "io.write", "mem.rss.peak"],
}


def cannot(reason):
    """A skip that CI does not accept."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must be able to do this: {reason}")
    pytest.skip(reason)


def write(build, folder, name, these=KNOWN):
    """What our sink makes of the rows, in the form that the golden file is of."""
    given, out, file = folder / "rows.txt", folder / name, SOURCES[name]
    given.write_text(rows.text(rows.variant(these, file["rows"])))
    out.unlink(missing_ok=True)
    done = subprocess.run([build / "dialect_rows", given, file["dialect"], file["table"], out], capture_output=True,
                          text=True, env={"TZ": "UTC", **file["environment"]})
    assert done.returncode == 0, done.stderr
    return out.read_bytes()


def plain(name):
    """The same of the known rows as they are."""
    form = SOURCES[name]["rows"]
    return name.replace(f".{form}.", ".") if form else name


def altered(key):
    """The known rows with more of this metric in the third sample, and in all after it where it is one that lasts; of
    each process or GPU that has it, and of the job."""
    changed = json.loads(json.dumps(KNOWN))
    for sample in changed["samples"][2:]:
        for holder in [sample, *sample["processes"], *sample["devices"]]:
            if holder["values"].get(key) is not None:
                holder["values"][key] = holder["values"][key] * 2 + 1
    return changed


def test_the_rows_are_the_same_in_both_forms():
    assert rows.text(KNOWN) == (GOLDEN / "rows.txt").read_text()


def test_every_golden_file_says_where_it_comes_from():
    files = {p.name for p in GOLDEN.iterdir()}
    files -= {"README.md", "rows.json", "rows.txt", "sources.json", "corrections.json"}
    assert files == set(SOURCES)
    assert {plain(name) for name in SOURCES} == set(MUST_MATTER)
    for correction in json.loads((GOLDEN / "corrections.json").read_text()):
        assert correction["file"] in SOURCES and correction["why"] and correction["original"] != correction["golden"]


def test_every_table_has_one(build):
    """The document that follows from the tables says which there are."""
    text = subprocess.run([build / "gendoc", "dialects"], check=True, capture_output=True, text=True).stdout
    parts = re.split(r"^## (\S+)$", text, flags=re.M)
    tables = {(dialect, table) for dialect, part in zip(parts[1::2], parts[2::2])
              for table in re.findall(r"^### `(.+)`$", part, re.M)}
    assert {(file["dialect"], file["table"]) for file in SOURCES.values()} == tables


@pytest.mark.parametrize("name", SOURCES)
def test_ours_is_what_the_original_writes(build, tmp_path, name):
    assert write(build, tmp_path, name).decode() == (GOLDEN / name).read_bytes().decode()


@pytest.mark.parametrize("name", SOURCES)
def test_another_value_is_another_file(build, tmp_path, name):
    golden = (GOLDEN / name).read_bytes()
    keys = [key for key in MUST_MATTER[plain(name)] if SOURCES[name]["rows"] != "no-gpu" or "gpu." not in key]
    same = [key for key in keys if write(build, tmp_path, name, altered(key)) == golden]
    assert keys and not same


def test_the_golden_files_are_what_the_script_makes(tmp_path):
    """The originals are fetched; the seeds are not everywhere, and then the script says so."""
    done = subprocess.run([ROOT / "tools/make-goldens", "--check"], capture_output=True, text=True)
    if "pip" in done.stderr:
        cannot(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr


# --- what they read -------------------------------------------------------------------------------------------------

READERS = ROOT / "build/readers"
PACKAGES = ["pandas", f"snakemake=={originals.PACKAGES['snakemake']}",
            f"resource-tracker=={originals.PACKAGES['resource-tracker']}"]


@pytest.fixture(scope="module")
def python():
    """A Python with the packages that read such files; made once."""
    program, done = READERS / "bin/python", READERS / "installed"
    if not done.exists() or done.read_text() != " ".join(PACKAGES):
        try:
            venv.create(READERS, with_pip=True, clear=True)
            originals.pip(program, "install", *PACKAGES)
        except (originals.Missing, subprocess.CalledProcessError) as error:
            cannot(str(error))
        done.write_text(" ".join(PACKAGES))
    return program


def ask(python, text, *words):
    """The JSON that a little program prints."""
    done = subprocess.run([python, "-c", text, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_pandas_reads_numbers_in_every_column(build, python, tmp_path):
    """Each column that has no text is read as numbers, what is absent as NaN, in each table with a header."""
    for name in SOURCES:
        if not SOURCES[name]["rows"]:
            write(build, tmp_path, name)
    kinds = ask(python, """
import json, pathlib, sys
import pandas
out = {}
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    if path.suffix in (".csv", ".tsv") and "hw_metrics" not in path.name and "dmon" not in path.name:
        frame = pandas.read_csv(path, sep="\\t" if path.suffix == ".tsv" else ",")
        out[path.name] = [len(frame), [c for c in frame if not pandas.api.types.is_numeric_dtype(frame[c])]]
print(json.dumps(out))
""", tmp_path)
    assert kinds == {"resource-tracker.process.csv": [5, []], "resource-tracker.system.csv": [5, []],
                     "resource-tracker.combined.csv": [5, []], "resource-tracker-0.1.process.csv": [5, []],
                     "resource-tracker-0.1.system.csv": [5, []], "oasislmf.processes.csv": [8, ["tool"]],
                     "stouputils.metrics-csv.csv": [5, []], "pytyche.cpu_metrics.csv": [4, ["timestamp"]],
                     "snakemake.benchmark.tsv": [1, ["h:m:s"]]}
    peak = ask(python, """
import json, sys
import pandas
frame = pandas.read_csv(sys.argv[1])
print(json.dumps([frame["memory_mib"].max(), frame["utime"].sum(), int(frame["children"].isna().sum())]))
""", tmp_path / "resource-tracker.process.csv")
    assert peak == [3081.9775, pytest.approx(2.21), 2]


def test_resource_trackers_own_frame_has_its_statistics_of_ours(build, python, clean_env, tmp_path):
    """Of a real job: its reader takes a cell that is empty for a text, and then has no mean of that column."""
    file = tmp_path / "process.csv"
    for _ in range(5):  # a look may fall between the end of a process and our noticing it: nothing is known then
        subprocess.run([build / "proctor", "run", "-q", "--no-record", "-i", "100ms", "--dialect", "resource-tracker",
                        "--csv", file, "--", "sh", "-c", "i=0; while [ $i -lt 500000 ]; do i=$((i + 1)); done"],
                       check=True, env=clean_env)
        if all(row["memory_mib"] for row in csv.DictReader(file.open())):
            break
    found = ask(python, """
import json, sys
from statistics import mean
from resource_tracker.tiny_data_frame import StatSpec, TinyDataFrame
frame = TinyDataFrame(csv_file_path=sys.argv[1])
columns = ["cpu_usage", "memory_mib", "gpu_usage", "gpu_vram_mib", "gpu_utilized"]
stats = frame.stats([StatSpec(c, f) for c in columns for f in (mean, max)])
print(json.dumps([len(frame), sum(frame["utime"]), stats]))
""", file)
    count, utime, stats = found
    assert count >= 3 and utime > 0, found
    assert len(stats) == 5 and all(set(stats[column]) == {"mean", "max"} for column in stats), file.read_text()
    assert 0 < stats["cpu_usage"]["mean"] < 2 and stats["memory_mib"]["max"] > 0, file.read_text()


@pytest.fixture(scope="module")
def with_originals():
    """A Python that has what the originals need, and their modules by name."""
    try:
        python = originals.environment()
        for package in originals.PACKAGES:
            originals.unpacked(package)
    except (originals.Missing, subprocess.CalledProcessError) as error:
        cannot(str(error))
    start = f"import json, pathlib, sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); from goldens import originals\n"
    return lambda text, *words: ask(python, start + text, *words)


def test_oasislmfs_own_reader_reads_ours(build, with_originals, tmp_path):
    """It passes over a row in which anything is missing, as its monitor does over such a process."""
    write(build, tmp_path, "oasislmf.processes.csv")
    rows_read, stats = with_originals("""
monitor = originals.module("oasislmf", "oasislmf/execution/resource_monitor.py")
rows = monitor._load_csv(sys.argv[1])
print(json.dumps([len(rows), monitor._compute_stats(rows)]))
""", tmp_path / "oasislmf.processes.csv")
    assert rows_read == 5 and set(stats) == {"sh", "gulpy", "fm, py"}
    assert stats["gulpy"]["n_instances"] == 1 and stats["gulpy"]["peak_cpu"] == 108.0
    assert stats["gulpy"]["total_cpu_time_s"] == 1.8 and stats["gulpy"]["agg_peak_uss_mb"] == 3064


def test_pytyches_own_summary_of_our_files_is_ours(build, with_originals, tmp_path):
    names = ["pytyche.hw_metrics.csv", "pytyche.cpu_metrics.csv", "pytyche.dmon.csv"]
    for name in names:
        write(build, tmp_path, name)
    theirs = with_originals("""
monitor = originals.module("pytyche", "pytyche/diagnostics/run_monitor.py")
print(json.dumps(monitor.build_resource_summary(*map(pathlib.Path, sys.argv[1:])).to_dict()))
""", *(tmp_path / name for name in names))
    ours = json.loads(write(build, tmp_path, "pytyche.resource-summary.json"))
    assert list(theirs) == list(ours)
    assert {key for key in ours if ours[key] != theirs[key]} == {"gpu_util_mean_pct"}  # corrections.json


def test_snakemake_works_with_a_benchmark_of_ours(build, python, clean_env, tmp_path):
    """A workflow of the real Snakemake: one rule has its command watched by us, the next takes the file with
    Snakemake's own record, which then must write the same again."""
    (tmp_path / "busy.sh").write_text("i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; sleep 0.2\n")
    (tmp_path / "Snakefile").write_text(f"""
from snakemake.benchmark import BenchmarkRecord, write_benchmark_records
rule all:
    input: "again.tsv"
rule watched:
    output: "ours.tsv"
    shell: "{build}/proctor run -q --no-record -i 50ms --dialect snakemake --csv {{output}} -- sh busy.sh"
rule again:
    input: "ours.tsv"
    output: "again.tsv"
    run:
        header, line = (text.split("\\t") for text in open(input[0]).read().splitlines())
        assert header == BenchmarkRecord.get_header(), header
        value = dict(zip(header, line))
        record = BenchmarkRecord(running_time=float(value["s"]), cpu_time=float(value["cpu_time"]),
            cpu_usage=float(value["mean_load"]) * float(value["s"]),
            **{{key: float(value[key]) for key in header[2:8]}})
        record.data_collected = True
        write_benchmark_records([record], output[0], False)
""")
    done = subprocess.run([python, "-m", "snakemake", "--cores", "1", "--quiet", "all"], cwd=tmp_path,
                          capture_output=True, text=True,
                          env={**clean_env, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.tsv").read_text() == (tmp_path / "ours.tsv").read_text()
    seconds, *_, load, cpu = (tmp_path / "ours.tsv").read_text().splitlines()[1].split("\t")
    assert float(seconds) >= .2 and float(cpu) > 0 and 0 < float(load) <= 100
