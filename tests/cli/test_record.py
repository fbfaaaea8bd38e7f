# SPDX-License-Identifier: Apache-2.0
"""The run file: where it is, what is in it, and who may have it."""
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess

import pytest

from proctor_cli import ROOT, finish, open_run, query, read_csv, said, skip_visibly, wait_until
from test_gpu import TWO, gpu  # noqa: F401

DOCUMENT = ROOT / "doc" / "run-file.md"
TABLES = {"run", "metrics", "entities", "events", "phases", "summary", "mark_sets", "job_samples", "system_samples",
          "process_samples", "core_samples", "disk_samples", "filesystem_samples", "interface_samples",
          "gpu_samples"}


def recorded(proctor, *words, status=0, **options):
    """`proctor run -q -o a.proctor WORDS...`; the file."""
    done = proctor.run("-q", "-o", "a.proctor", "--force", *words, **options)
    assert (done.returncode, done.stderr) == (status, "")
    return proctor.work / "a.proctor"


# --- where it is ----------------------------------------------------------------------------------

def test_every_run_is_recorded(proctor):
    """One file, for its owner alone, named after the run."""
    done, summary = proctor.recorded("-i", "20ms", "sh", "-c", "sleep 0.1; exit 3", umask=0)
    assert (done.returncode, done.stderr) == (3, "")
    [path] = proctor.runs()
    assert path.name == summary["run"]["id"] + ".proctor" and summary["run"]["file"] == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    folder = path.parent
    while folder != proctor.folder / "home":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        folder = folder.parent
    assert os.listdir(path.parent) == [path.name], "nothing is left beside it"
    assert query(path, "SELECT count(*) FROM job_samples") == [summary["samples"]["taken"]]
    assert query(path, "SELECT id, exit_code FROM run") == [(summary["run"]["id"], 3)]


@pytest.mark.parametrize("command", ["attach", "system"])
def test_attach_and_system_are_recorded_too(proctor, command):
    words = [proctor.other(["sleep", "20"]).pid] if command == "attach" else []
    done = proctor(command, "-q", "-i", "100ms", "--duration", "0.3", *words)
    assert (done.returncode, done.stderr) == (0, "")
    [path] = proctor.runs()
    assert query(path, "SELECT count(*) > 2 FROM job_samples") == [1]
    assert query(path, "SELECT count(*) > 1 FROM system_samples") == [1]
    names = query(path, "SELECT name FROM entities WHERE kind = 'process'")
    assert names == (["sleep"] if command == "attach" else [])


@pytest.mark.parametrize("variable, below", [("PROCTOR_HOME", "runs"), ("XDG_STATE_HOME", "proctor/runs")])
def test_the_folder_follows_the_environment(proctor, variable, below):
    place = proctor.folder / "place"
    assert proctor.run("-q", "true", env={variable: str(place)}).returncode == 0
    assert len(list((place / below).glob("*.proctor"))) == 1 and not proctor.runs()


def test_no_record_makes_none(proctor):
    _, summary = proctor.recorded("--no-record", "true")
    assert summary["run"]["file"] is None and not proctor.runs()
    assert os.listdir(proctor.work) == [] and os.listdir(proctor.folder / "home") == []


def test_one_id_on_several_nodes_is_several_files(proctor):
    for node in ("n1", "n2", "n1"):
        assert proctor.run("-q", "--run-id", "one", "--node", node, "true").returncode == 0
    assert proctor.run("-q", "--run-id", "one", "true").returncode == 0
    assert [p.name for p in proctor.runs()] == ["one.n1.2.proctor", "one.n1.proctor", "one.n2.proctor", "one.proctor"]
    assert {query(p, "SELECT id FROM run")[0] for p in proctor.runs()} == {"one"}
    assert sorted(query(p, "SELECT node FROM run")[0] or "" for p in proctor.runs()) == ["", "n1", "n1", "n2"]


@pytest.mark.parametrize("run_id", ["../../../x", "a/b", ".hidden", "-", "x" * 101, "é" * 51, "last", "a.proctor",
                                    "a\x1b[31mb", "a\nb", "a\x7f"])
def test_an_id_that_cannot_name_a_run_is_refused(proctor, run_id):
    done = proctor.run("-q", f"--run-id={run_id}", "true")
    assert done.returncode == 125 and not proctor.runs()
    [line] = said(done.stderr)
    assert "--run-id" in line and "cannot name a run" in line and "\x1b" not in line


@pytest.mark.parametrize("run_id", ["x" * 100, "é" * 50, "lastly", "a.b-c_d:e", "proctor", "a b"])
def test_any_other_id_names_its_run(proctor, run_id):
    done = proctor.run("-q", "--run-id", run_id, "--node", "/n/", "true")
    assert (done.returncode, done.stderr) == (0, "")
    assert proctor("show", "--json", run_id).returncode == 0
    [path] = proctor.runs()
    assert query(path, "SELECT id FROM run") == [run_id]


def test_it_is_not_in_the_way_of_a_job_that_was_never_there(proctor):
    assert proctor.run("-q", "/no/such").returncode == 127 and not proctor.runs()
    assert proctor.run("-q", "-o", "a.proctor", "/no/such").returncode == 127
    assert os.listdir(proctor.work) == []


# --- -o -------------------------------------------------------------------------------------------

def test_a_file_that_is_there_is_not_overwritten(proctor):
    path = proctor.work / "a.proctor"
    path.write_text("mine")
    done = proctor.run("-o", "a.proctor", "touch", "ran")
    assert done.returncode == 125 and "--force" in done.stderr and len(done.stderr.splitlines()) == 1
    assert path.read_text() == "mine" and not (proctor.work / "ran").exists()
    assert proctor("attach", "-o", "a.proctor", os.getpid(), "--duration", "0.1").returncode == 125
    for end in ("-wal", "-shm", "-journal"):
        (proctor.work / f"a.proctor{end}").write_bytes(b"old" * 1000)
    assert proctor.run("-q", "-o", "a.proctor", "--force", "true").returncode == 0
    assert query(path, "SELECT exit_code FROM run") == [0]
    assert os.listdir(proctor.work) == ["a.proctor"]


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_what_another_database_has_left_is_not_played_back(proctor, end):
    left = proctor.work / f"a.proctor{end}"
    left.write_bytes(b"x" * 5000)
    done = proctor.run("-o", "a.proctor", "true")
    assert done.returncode == 125 and "--force" in done.stderr and left.read_bytes() == b"x" * 5000


@pytest.mark.parametrize("path, reason", [("no/such/a.proctor", "No such file"), ("-", "name a file"),
                                          ("/dev/null", "no file"), (".", "no file"),
                                          ("x" * 300, "too long")])
def test_where_none_can_be_is_an_error_before_the_job(proctor, path, reason):
    done = proctor.run("-o", path, "--force", "touch", "ran")
    assert done.returncode == 125 and reason in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (proctor.work / "ran").exists() and os.path.exists("/dev/null")


def test_output_and_no_record_exclude_each_other(proctor):
    done = proctor.run("-o", "a.proctor", "--no-record", "true")
    assert done.returncode == 125 and "exclude" in done.stderr
    assert proctor("system", "-o", "a.proctor", "--no-record", "--duration", "0.1").returncode == 2
    proctor.config("no-record = true\n")
    assert proctor.run("-q", "true").returncode == 0 and not proctor.runs()
    assert proctor.run("-q", "-o", "a.proctor", "true").returncode == 0, "what is said here wins"
    assert (proctor.work / "a.proctor").exists()


# --- what cannot be -------------------------------------------------------------------------------

def without_library(proctor):
    folder = proctor.folder / "libraries"
    folder.mkdir(exist_ok=True)
    (folder / "libsqlite3.so.0").write_text("no library")
    return {"LD_LIBRARY_PATH": str(folder)}


def test_without_the_library_the_job_runs(proctor):
    done = proctor.run("-i", "20ms", "sh", "-c", "sleep 0.1; exit 3", env=without_library(proctor))
    [line] = said(done.stderr)
    assert done.returncode == 3 and "not recorded" in line and "libsqlite3" in line
    assert not proctor.runs()
    strict = proctor.run("-q", "--strict", "true", env=without_library(proctor))
    assert strict.returncode == 125


def test_without_the_library_output_is_an_error_before_the_job(proctor):
    done = proctor.run("-o", "a.proctor", "touch", "ran", env=without_library(proctor))
    assert done.returncode == 125 and "libsqlite3" in done.stderr and len(done.stderr.splitlines()) == 1
    assert os.listdir(proctor.work) == []


@pytest.mark.parametrize("place", ["/proc", "{}/file", ""], ids=["read-only", "below-a-file", "nowhere"])
def test_a_folder_that_cannot_be_made_is_said_once(proctor, place):
    (proctor.folder / "file").write_text("")
    env = {"PROCTOR_HOME": place.format(proctor.folder)}
    env["HOME"] = env["XDG_STATE_HOME"] = "" if not place else str(proctor.folder / "home")
    done = proctor.run("-i", "20ms", "sh", "-c", "sleep 0.1; exit 3", env=env)
    [line] = said(done.stderr)
    assert done.returncode == 3 and "the run is not recorded" in line and not proctor.runs()


def test_sqlite_is_loaded_by_the_thread_that_writes(proctor):
    """The job has been forked by then, and does not wait for it."""
    trace = proctor.folder / "trace"
    try:
        probe = subprocess.run(["strace", "-f", "-o", trace, "true"], capture_output=True)
    except FileNotFoundError:
        skip_visibly("there is no strace")
    assert probe.returncode == 0
    subprocess.run(["strace", "-f", "-e", "trace=openat,execve,clone,clone3,vfork,fork", "-o", trace,
                    *proctor.arguments("run", "-q", "-i", "50ms", "sleep", "0.2")],
                   env={**proctor.env, "ASAN_OPTIONS": "detect_leaks=0"}, cwd=proctor.work, check=True)
    lines = trace.read_text().splitlines()
    loaded = next(i for i, line in enumerate(lines) if "libsqlite3.so" in line)
    job = next(i for i, line in enumerate(lines) if re.search(r'execve\("[^"]*/sleep"', line) and " = -1 " not in line)
    assert loaded > job
    assert lines[loaded].split()[0] != lines[0].split()[0], "another thread than the first"


# --- what is in it --------------------------------------------------------------------------------

def test_all_tables_are_there_and_documented(proctor):
    path = recorded(proctor, "-i", "50ms", "sleep", "0.12")
    assert set(query(path, "SELECT name FROM sqlite_master WHERE type = 'table'")) == TABLES
    text = DOCUMENT.read_text()
    for table in TABLES:
        assert f"`{table}`" in text
    for table in sorted(TABLES):
        columns = query(path, f"SELECT name FROM pragma_table_info('{table}')")
        metrics = set(query(path, "SELECT column_name FROM metrics"))
        for column in columns:
            assert column in metrics or f"`{column}`" in text, f"{table}.{column}"
    catalogue = json.loads(proctor("metrics", "--json").stdout)
    assert query(path, "SELECT key FROM metrics ORDER BY id") == [m["key"] for m in catalogue]
    assert query(path, "PRAGMA user_version") == [1] and query(path, "PRAGMA application_id") == [0x70726374]


def test_the_run_and_its_summary(proctor):
    path = recorded(proctor, "-i", "50ms", "--name", "n", "--node", "7", "--label", "a=b", "--summary",
                    proctor.summary_file, "sh", "-c", "exit 3", status=3)
    base, summary = open_run(path), proctor.summary()
    run = dict(base.execute("SELECT * FROM run").fetchone())
    about = json.loads(run["about"])
    assert (run["name"], run["node"], run["exit_code"], run["exit_signal"]) == ("n", "7", 3, None)
    assert json.loads(run["labels"]) == {"a": "b"} and json.loads(run["command"]) == ["sh", "-c", "exit 3"]
    assert run["interval"] == 50_000_000 and run["ended"] > run["started"] > 1.7e18
    assert run["version"] == about["version"] and about["way"] == "run" and run["recorder"] == about["recorder"]["pid"]
    assert about["limits"] == summary["limits"]
    [row] = base.execute("SELECT * FROM summary").fetchall()
    kept = json.loads(row["json"])
    assert row["recovered"] == 0
    for key in set(summary) - {"events", "self", "events_total"}:
        assert kept[key] == summary[key], key


def test_where_it_ran_and_with_what_each_was_called(proctor):
    """Of processes that more than one sample had, the last that each executed; old records have neither."""
    script = 'python3 -c "import time; time.sleep(0.6)" "two words"; exec sleep 0.61'
    path = recorded(proctor, "-i", "50ms", "--summary", proctor.summary_file, "sh", "-c", script)
    assert proctor.summary()["run"]["cwd"] == str(proctor.work)
    assert query(path, "SELECT json_extract(about, '$.cwd') FROM run") == [str(proctor.work)]
    commands = dict(query(path, "SELECT name, command FROM entities WHERE kind = 'process' AND samples > 2"))
    assert commands["python3"].endswith("python3 -c import time; time.sleep(0.6) two words")
    assert commands["sleep"] == "sleep 0.61"
    assert query(path, "SELECT count(*) FROM entities WHERE kind = 'process' AND samples < 2 AND command IS NOT NULL") == [0]

    def told():
        assert proctor("report", path, "-o", "m.json").returncode == 0
        run, = json.loads((proctor.work / "m.json").read_text())["runs"]
        return run["run"]["cwd"], dict(run["facts"]).get("directory"), {p["name"]: p["command"] for p in run["processes"]["list"]}
    cwd, directory, processes = told()
    assert cwd == directory == str(proctor.work)
    assert processes["sleep"] == "sleep 0.61" and processes["python3"] == commands["python3"]
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("ALTER TABLE entities DROP COLUMN command")
    base.execute("UPDATE run SET about = json_remove(about, '$.cwd')")
    base.execute("UPDATE summary SET json = json_remove(json, '$.run.cwd')")
    base.close()
    cwd, directory, processes = told()
    assert cwd is None and directory is None and set(processes.values()) == {None}


def test_attach_says_where_the_job_is(proctor):
    (proctor.work / "there").mkdir()
    job = proctor.other(["sleep", "30"], cwd=proctor.work / "there")
    done = proctor("attach", "-q", "--duration", "0.3s", "--summary", proctor.summary_file, job.pid)
    assert done.returncode == 0 and proctor.summary()["run"]["cwd"] == str(proctor.work / "there")
    proctor("system", "-q", "--duration", "0.3s", "--summary", proctor.summary_file)
    assert proctor.summary()["run"]["cwd"] is None


def test_a_killed_job(proctor):
    done = proctor.run("-q", "-o", "a.proctor", "sh", "-c", "kill -9 $$")
    assert done.returncode == -signal.SIGKILL
    assert query(proctor.work / "a.proctor", "SELECT exit_code, exit_signal FROM run") == [(None, 9)]


def test_samples_are_those_of_the_csv(proctor):
    path = recorded(proctor, "-i", "50ms", "--csv", "a.csv", "sh", "-c",
                    "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.3")
    rows, base = read_csv(proctor.work / "a.csv"), open_run(path)
    job = base.execute("SELECT * FROM job_samples ORDER BY sample").fetchall()
    system = {row["sample"]: row for row in base.execute("SELECT * FROM system_samples")}
    assert [row["sample"] for row in job] == list(range(1, len(rows) + 1))
    for text, row in zip(rows, job):
        machine = system.get(row["sample"])
        assert abs(float(text["elapsed_seconds"]) - row["elapsed"] / 1e9) < 1e-3
        for column, value in text.items():
            mine = row[column] if column in row.keys() else machine[column] if machine and column in machine.keys() else None
            if column.endswith("_seconds") and column in ("elapsed_seconds", "interval_seconds") or column == "timestamp":
                continue
            assert (value == "") == (mine is None), (column, value, mine)
            assert mine is None or abs(float(value) - mine) <= 1e-6 * abs(mine) + 1e-9, column


def rows_of_members(path):
    """{(pid, sample): {column: value}} as the rows say, with the values that went on."""
    base, found = open_run(path), {}
    last = base.execute("SELECT max(sample) FROM job_samples").fetchone()[0]
    for e in base.execute("SELECT * FROM entities WHERE kind = 'process' AND first IS NOT NULL").fetchall():
        rows = {r["sample"]: r for r in base.execute("SELECT * FROM process_samples WHERE entity = ?", (e["id"],))}
        row = None
        for sample in range(e["first"], (e["last"] or last) + 1):
            row = rows.get(sample, row)
            found[e["pid"], sample] = dict(row)
    return found


def test_what_did_not_change_can_be_had_all_the_same(proctor):
    """The rows of processes, filled in, are those of --processes."""
    path = recorded(proctor, "-i", "50ms", "--processes", "--csv", "a.csv", "sh", "-c",
                    "sleep 0.7 & i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exec sleep 0.6")
    members, base = rows_of_members(path), open_run(path)
    elapsed = {round(r["elapsed"] / 1e9, 3): r["sample"] for r in base.execute("SELECT * FROM job_samples")}
    rows = read_csv(proctor.work / "a.processes.csv")
    columns = set(query(path, "SELECT name FROM pragma_table_info('process_samples')")) & set(rows[0])
    assert len(columns) > 15 and len(rows) == len(members)
    for text in rows:
        row = members[int(text["pid"]), elapsed[round(float(text["elapsed_seconds"]), 3)]]
        for column in columns - {"mem_pss_age_seconds", "fds_ratio", "sched_delay_seconds"}:
            mine = row[column]
            assert (text[column] == "") == (mine is None), (column, text, row)
            near = max(65536, mine / 100) if column == "mem_pss_bytes" and mine else 1e-6 * abs(mine or 0) + 1e-9
            assert mine is None or abs(float(text[column]) - mine) <= near, column
    written = query(path, "SELECT count(*) FROM process_samples")[0]
    assert written < len(rows) * 0.8, "and most of them are not stored"


def test_who_came_and_went(proctor):
    path = recorded(proctor, "-i", "20ms", "sh", "-c", "(exit 7); sleep 0.2 & sleep 0.3; wait; exec sleep 0.1")
    rows = open_run(path).execute("SELECT * FROM entities WHERE kind = 'process' ORDER BY id").fetchall()
    sleeps = [r for r in rows if r["name"] == "sleep"]
    assert len(sleeps) == 3, "the job itself is one in the end"
    assert all(r["ended"] for r in rows) and all(r["first"] for r in sleeps)
    root = min(rows, key=lambda r: r["id"])
    assert (root["exit_code"], root["known_by"]) == (0, "waited") and root["cpu_time_seconds"] >= 0
    short = sorted(sleeps, key=lambda r: r["last"] or 1e9)[0]
    last = query(path, "SELECT max(sample) FROM job_samples")[0]
    assert short["first"] < short["last"] < last


def test_select_leaves_columns_empty(proctor):
    path = recorded(proctor, "-i", "30ms", "--select", "cpu.usage,procs", "sleep", "0.15")
    job = open_run(path).execute("SELECT * FROM job_samples WHERE sample = 2").fetchone()
    assert job["procs"] == 1 and job["cpu_usage_cores"] is not None and job["mem_rss_bytes"] is None
    member = open_run(path).execute("SELECT * FROM process_samples").fetchone()
    assert member["cpu_time_seconds"] is not None, "rates of processes derive from it"
    assert member["mem_rss_bytes"] is None and not query(path, "SELECT * FROM system_samples")
    assert set(query(path, "SELECT key FROM metrics WHERE selected")) == {"cpu.usage", "procs"}


def test_marks_and_phases(proctor):
    script = f"{proctor.path} mark hello a=1 b=x; {proctor.path} phase load -- sleep 0.1; {proctor.path} phase begin rest"
    path = recorded(proctor, "-i", "20ms", "sh", "-c", script)
    marks = query(path, "SELECT name, data FROM events WHERE event = 'mark'")
    assert [(n, json.loads(d)) for n, d in marks] == [("hello", {"a": 1, "b": "x"})]
    load, rest = open_run(path).execute("SELECT * FROM phases ORDER BY start").fetchall()
    assert (load["name"], rest["name"]) == ("load", "rest") and 0.1 <= load["seconds"] < 2
    assert json.loads(load["data"])["metrics"]["cpu.time"] and json.loads(rest["data"])["left_open"]
    assert 0 < load["start"] < rest["start"]


def test_a_phase_that_is_open_has_a_row(proctor):
    process = proctor.start("run", "-q", "-i", "20ms", "-o", "a.proctor", "sh", "-c",
                            f"{proctor.path} phase begin load; sleep 77")
    path = proctor.work / "a.proctor"
    job = proctor.job_of(process)

    def found():
        try:
            return query(path, "SELECT name, seconds FROM phases")
        except sqlite3.OperationalError:
            return None
    assert wait_until(found, "the phase") == [("load", None)]
    process.kill()
    process.wait()
    subprocess.run(["pkill", "-P", str(job)])
    os.kill(job, signal.SIGKILL)
    assert found() == [("load", None)]


# --- two recorders --------------------------------------------------------------------------------

def test_a_recorder_inside_a_recorder(proctor):
    done = proctor.run("-q", "-i", "20ms", "-o", "outer.proctor", proctor.path, "run", "-q", "-i", "20ms", "-o",
                       "inner.proctor", "sh", "-c", "sleep 0.3; exit 3")
    assert (done.returncode, done.stderr) == (3, "")
    outer, inner = proctor.work / "outer.proctor", proctor.work / "inner.proctor"
    [(outer_id, parent)] = query(outer, "SELECT id, parent FROM run")
    assert parent is None
    [(inner_id, parent)] = query(inner, "SELECT id, parent FROM run")
    assert parent == outer_id != inner_id
    names = set(query(outer, "SELECT name FROM entities WHERE kind = 'process'"))
    assert {"sleep", "sh", "proctor"} <= names
    assert set(query(inner, "SELECT pid FROM entities WHERE kind = 'process'")) <= \
        set(query(outer, "SELECT pid FROM entities WHERE kind = 'process'"))
    assert json.loads(query(inner, "SELECT json FROM summary")[0])["run"]["parent"] == outer_id


def test_both_in_the_folder_of_runs(proctor):
    assert proctor.run("-q", proctor.path, "run", "-q", "true").returncode == 0
    assert len(proctor.runs()) == 2


# --- the document ---------------------------------------------------------------------------------

def test_the_ten_queries_of_the_document(proctor):
    queries = re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(), re.S)
    assert len(queries) >= 10
    script = f"{proctor.path} mark hello a=1; {proctor.path} phase load -- sleep 0.3; sleep 0.8; exit 3"
    path = recorded(proctor, "-i", "100ms", "sh", "-c", script, status=3)
    base = open_run(path)
    for text in queries:
        rows = base.execute(text).fetchall()
        assert rows and any(value is not None for value in rows[0]), text


def test_an_interrupted_attach_is_whole(proctor):
    process = proctor.start("attach", "-q", "-i", "20ms", "-o", "a.proctor", proctor.other(["sleep", "20"]).pid)
    wait_until(lambda: (proctor.work / "a.proctor-wal").exists(), "the log")
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 0
    assert os.listdir(proctor.work) == ["a.proctor"]
    assert query(proctor.work / "a.proctor", "SELECT count(*) FROM summary") == [1]


def test_gpus_are_in_it(gpu):
    """A driver's library that says what it is told (tests/fake_nvml)."""
    _, devices, _ = gpu.run(TWO + "util 0 80 0 99\n", "-i", "200ms", "-o", "a.proctor", "sleep", "1.2")
    path = gpu.proctor.work / "a.proctor"
    assert query(path, "SELECT name, model, uuid, counted FROM entities WHERE kind = 'gpu' ORDER BY name") == \
        [("gpu0", "H200", "GPU-aaaa", 1), ("gpu1", "H100", "GPU-bbbb", 1)]
    rows = query(path, "SELECT name, gpu_mem_total_bytes FROM gpu_samples JOIN entities ON id = entity"
                       " WHERE gpu_mem_total_bytes")
    assert {name: total for name, total in rows} == {"gpu0": 150e9, "gpu1": 80e9}
    assert 2 <= len(query(path, "SELECT 1 FROM gpu_samples")) <= sum(map(len, devices.values())) + 4


def test_force_does_not_overwrite_what_is_being_recorded(proctor):
    path = proctor.work / "a.proctor"
    process = proctor.start("run", "-q", "-i", "20ms", "-o", path, "sleep", "77")
    job = proctor.job_of(process)
    wait_until(lambda: path.with_name("a.proctor-wal").exists(), "the first sample")
    done = proctor.run("-q", "-o", path, "--force", "touch", "ran")
    assert done.returncode == 125 and "is being recorded" in done.stderr and not (proctor.work / "ran").exists()
    os.kill(job, signal.SIGTERM)
    assert process.wait(20) == -signal.SIGTERM
    assert query(path, "SELECT count(*) FROM summary") == [1]
    assert proctor.run("-q", "-o", path, "--force", "true").returncode == 0


def test_force_replaces_a_link_to_nothing(proctor):
    (proctor.work / "a.proctor").symlink_to("nowhere")
    done = proctor.run("-q", "-o", "a.proctor", "true")
    assert done.returncode == 125 and "is there already; --force" in done.stderr
    assert proctor.run("-q", "-o", "a.proctor", "--force", "true").returncode == 0
    assert (proctor.work / "a.proctor").is_file() and not (proctor.work / "nowhere").exists()
