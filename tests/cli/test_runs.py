# SPDX-License-Identifier: Apache-2.0
"""Recorded runs: found, listed, shown, removed, recovered."""
import json
import os
import pty
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from proctor_cli import ROOT, finish, query, said, wait_until

RUN_ID = re.compile(r"^\d{8}T\d{6}Z-[0-9a-f]{8}$")


def listed(proctor, *words, **options):
    done = proctor("ls", "--json", *words, **options)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def change(path, *statements):
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    db.close()


def running(proctor, *words):
    """A recording that goes on, with some samples in its file."""
    known = set(proctor.runs())
    process = proctor.start("run", "-q", "-i", "20ms", *words, "sleep", "60")
    [path] = wait_until(lambda: set(proctor.runs()) - known, "a run file")
    wait_until(lambda: samples_in(path) > 3, "some samples")
    return process, path


def samples_in(path):
    try:
        return query(path, "SELECT count(*) FROM job_samples")[0]
    except sqlite3.OperationalError:
        return 0


def killed(proctor, *words):
    """The file of a run whose recorder was killed."""
    process, path = running(proctor, *words)
    job = proctor.children(process.pid)
    process.kill()
    process.wait()
    for pid in job:
        os.kill(pid, signal.SIGKILL)
    return path


# --- RUN ------------------------------------------------------------------------------------------

def test_a_run_is_named_by_file_id_beginning_or_last(proctor):
    for name in ("one", "two"):
        assert proctor.run("-q", "--run-id", f"id-{name}", "--name", name, "true").returncode == 0
    assert proctor.run("-q", "-o", "own.file", "--name", "three", "true").returncode == 0
    path = proctor.runs()[0]
    for run, name in {path: "one", "id-one": "one", "id-t": "two", "last": "two", "./own.file": "three",
                      "own.file": "three"}.items():
        done = proctor("show", "--json", run)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["run"]["name"] == name


def test_an_id_is_not_the_beginning_of_another(proctor):
    for run_id in ("a", "ab", "abc"):
        proctor.run("-q", "--run-id", run_id, "true")
    assert json.loads(proctor("show", "--json", "ab").stdout)["run"]["id"] == "ab"


def test_last_is_the_one_that_began_last(proctor):
    for run_id in ("z", "a", "m"):
        proctor.run("-q", "--run-id", run_id, "true")
    assert json.loads(proctor("show", "--json", "last").stdout)["run"]["id"] == "m"


def refusal(proctor, *words, status=1):
    done = proctor(*words)
    assert done.returncode == status and done.stdout == "" and len(said(done.stderr)) == 1, done
    return done.stderr


@pytest.mark.parametrize("command", [["show"], ["export", "--format", "csv"], ["rm"], ["recover"]], ids=lambda c: c[0])
def test_what_is_no_run_is_said(proctor, command):
    for run_id in ("2026a", "2026b", "2026c"):
        proctor.run("-q", "--run-id", run_id, "true")
    folder = str(proctor.runs()[0].parent)
    text = refusal(proctor, *command, "nonsense")
    assert "nonsense" in text and folder[-40:] in text and "proctor ls" in text
    text = refusal(proctor, *command, "2026")
    assert all(name in text for name in ("2026a", "2026b", "2026c", "3 runs"))
    assert "No such file" in refusal(proctor, *command, "./not-there.proctor")
    (proctor.work / "text.proctor").write_text("this is text\n" * 1000)
    (proctor.work / "empty.proctor").touch()
    (proctor.work / "folder.proctor").mkdir()
    os.mkfifo(proctor.work / "fifo.proctor")
    change(proctor.work / "other.proctor", "CREATE TABLE run(id)")
    for name in ("text", "empty", "other", "fifo"):
        assert "not a run file" in refusal(proctor, *command, f"{name}.proctor")
    assert "directory" in refusal(proctor, *command, "folder.proctor")
    newer = proctor.work / "newer.proctor"
    shutil.copy(proctor.runs()[0], newer)
    change(newer, "PRAGMA user_version=99")
    assert "newer" in refusal(proctor, *command, newer)


def test_no_run_at_all(proctor):
    assert "no runs in" in refusal(proctor, "show", "last")
    done = proctor("ls")
    assert (done.returncode, done.stdout) == (0, "") and "no runs" in done.stderr
    assert listed(proctor) == []
    done = proctor("show", "x", env={"HOME": ""})
    assert done.returncode == 1 and "PROCTOR_HOME" in done.stderr


def test_a_file_that_may_not_be_read(proctor):
    if os.getuid() != 0:
        pytest.fail("this test becomes another user, which only root can")
    proctor.run("-q", "-o", "a.proctor", "true")
    for folder in [proctor.work, *proctor.work.parents]:
        if folder.stat().st_uid == 0 and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o011)
    done = proctor("show", proctor.work / "a.proctor", user=65534, group=65534, extra_groups=[])
    assert done.returncode == 1 and "Permission denied" in done.stderr


@pytest.mark.parametrize("words", [["show"], ["show", "a", "b"], ["export", "a"], ["export", "--format", "csv"],
                                   ["export", "a", "--format", "resource-summary", "--dialect", "spdl"], ["export", "a", "--format", "xml"],
                                   ["export", "a", "--format", "runlog", "--dialect", "oasislmf"],
                                   ["export", "a", "--format", "csv", "--table", "x"],
                                   ["export", "a", "--format", "csv", "--processes"], ["rm"], ["gc"],
                                   ["gc", "--keep", "some"], ["gc", "--keep", "1.5"], ["gc", "--keep", "1", "x"],
                                   ["recover"], ["recover", "--all", "a"], ["ls", "a"], ["ls", "--since", "yesterday"],
                                   ["ls", "--status", "fine"]], ids=" ".join)
def test_wrong_usage(proctor, words):
    refusal(proctor, *words, status=2)


# --- ls -------------------------------------------------------------------------------------------

def test_ls_json_has_what_the_summary_has(proctor):
    done, summary = proctor.recorded("-i", "50ms", "--name", "a name", "--label", "k=v", "--label", "x=y z", "--node", "7",
                                     "sh", "-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; exit 3")
    [row] = listed(proctor)
    run, metrics = summary["run"], summary["metrics"]
    assert RUN_ID.match(row["id"]) and row["parent"] is None and row["target"] is None
    for key in ("id", "command", "host", "name", "node", "labels", "started", "duration"):
        assert row[key] == run[key], key
    assert (row["status"], row["exit_code"], row["exit_signal"], row["recovered"]) == ("failed", 3, None, False)
    assert row["cpu_seconds"] == metrics["cpu.time"]["total"] and row["samples"] == summary["samples"]["taken"]
    assert row["memory_peak_bytes"] in [metrics[k]["peak"] for k in ("mem.rss.peak", "mem.pss", "mem.rss")]
    assert row["file"] == run["file"] and row["file_bytes"] == os.path.getsize(row["file"]) and row["trouble"] is None


def names(rows):
    return [row["name"] for row in rows]


def test_ls_filters(proctor):
    proctor.run("-q", "--name", "good", "--label", "team=a", "--label", "n=1", "true")
    proctor.run("-q", "--name", "bad", "--label", "team=b", "false")
    proctor.run("-q", "--name", "shot", "--label", "team=ab", "sh", "-c", "kill -TERM $$")
    old = killed(proctor, "--name", "dead")
    running(proctor, "--name", "alive")
    rows = listed(proctor)
    assert names(rows) == ["alive", "dead", "shot", "bad", "good"], "the newest first"
    assert [r["status"] for r in rows] == ["running", "died", "failed", "failed", "ok"]
    assert rows[2]["exit_signal"] == signal.SIGTERM
    for status, expected in {"running": ["alive"], "died": ["dead"], "failed": ["shot", "bad"], "ok": ["good"]}.items():
        assert names(listed(proctor, "--status", status)) == expected
    assert names(listed(proctor, "--name", "?o*")) == ["good"] and names(listed(proctor, "--name", "goo")) == []
    assert names(listed(proctor, "--label", "team=a")) == ["good"]
    assert names(listed(proctor, "--label", "team")) == ["shot", "bad", "good"]
    assert names(listed(proctor, "--label", "team=a", "--label", "n=1")) == ["good"]
    assert names(listed(proctor, "--label", "team=a", "--label", "n=2")) == names(listed(proctor, "--label", "eam")) == []
    change(old, "UPDATE run SET started = started - 3600 * 1000000000")
    assert names(listed(proctor, "--since", "30m")) == ["alive", "shot", "bad", "good"]
    assert names(listed(proctor, "--before", "30m")) == ["dead"]
    assert names(listed(proctor, "--since", "2h", "--before", "30m")) == ["dead"]
    tomorrow = time.strftime("%Y-%m-%d", time.localtime(time.time() + 86400))
    assert len(listed(proctor, "--before", tomorrow)) == 5 and listed(proctor, "--since", tomorrow) == []
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
    assert len(listed(proctor, "--before", now)) == 5 and listed(proctor, "--since", now) == []


def test_variables_of_recordings_do_not_filter(proctor):
    proctor.run("-q", "true")
    proctor.config("name = x\nprocesses = true\noutput = y\n")
    env = {"PROCTOR_NAME": "x", "PROCTOR_LABEL": "a=b", "PROCTOR_PROCESSES": "true", "PROCTOR_FORCE": "true"}
    assert len(listed(proctor, env=env)) == 1
    done = proctor("export", "last", "--format", "csv", env=env)
    assert done.returncode == 0 and done.stdout.startswith("timestamp,")


def on_terminal(proctor, *words, columns=100, statuses=(0,), **env):
    """What the command prints on a terminal of that width."""
    leader, follower = pty.openpty()
    subprocess.run(["stty", "cols", str(columns), "rows", "40"], stdin=follower, check=True)
    process = subprocess.Popen(proctor.arguments(*words), stdout=follower, stderr=follower, stdin=follower,
                               env={**proctor.env, **env}, cwd=proctor.work)
    os.close(follower)
    text = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(leader)
    assert process.wait() in statuses
    return text.decode(errors="replace").replace("\r\n", "\n")


def test_ls_fits_the_terminal(proctor):
    proctor.run("-q", "sh", "-c", "exit 3", "é" * 200)
    proctor.run("-q", "--name", "evil\x1b[31m\nname", "true")
    for columns in (80, 120, 200):
        text = on_terminal(proctor, "ls", columns=columns, NO_COLOR="1")
        head, *lines = text.splitlines()
        assert head.startswith("ID ") and len(lines) == 2 and "\x1b" not in text
        assert max(len(line) for line in text.splitlines()) <= columns
        assert lines[1].endswith("...") and "exit 3" in lines[1] and "\\x1b" in lines[0]
    assert "\x1b[31mexit 3" in on_terminal(proctor, "ls")
    assert "\x1b" not in on_terminal(proctor, "ls", "--color", "never")
    assert "\x1b[31mexit 3" in proctor("ls", "--color", "always").stdout


def test_a_damaged_file_is_a_row(proctor):
    proctor.run("-q", "--name", "good", "true")
    good = proctor.runs()[0]
    (good.parent / "bad.proctor").write_bytes(good.read_bytes()[:5000])
    (good.parent / "text.proctor").write_text("text")
    rows = listed(proctor)
    assert [r["status"] for r in rows] == ["ok", "damaged", "damaged"]
    assert all(r["trouble"] and r["file_bytes"] > 0 and r["started"] is None for r in rows[1:])
    text = proctor("ls").stdout
    assert text.count("damaged") >= 2 and "bad.proctor" in text and "good" in text
    assert json.loads(proctor("show", "--json", "last").stdout)["run"]["name"] == "good"


# --- show -----------------------------------------------------------------------------------------

def test_show_json_is_the_summary_as_stored(proctor):
    _, summary = proctor.recorded("-i", "20ms", "--label", "a=b", "sleep", "0.2")
    [path] = proctor.runs()
    text = proctor("show", "--json", "last").stdout
    assert text == query(path, "SELECT json FROM summary")[0] + "\n"
    shown = json.loads(text)
    assert shown["metrics"] == summary["metrics"] and shown["run"] == summary["run"]


def test_show_for_people(proctor):
    job = "proctor phase first -- sleep 0.1; proctor mark halfway step=3; proctor phase begin second; sleep 0.1; exit 4"
    env = {"PATH": f"{os.path.dirname(proctor.path)}:{proctor.env['PATH']}"}
    done, summary = proctor.recorded("-i", "20ms", "--name", "my run", "--label", "k=v", "--match", "sleepers=^sleep$",
                                     "sh", "-c", job, env=env)
    assert done.returncode == 4
    for text in (proctor("show", "last").stdout, on_terminal(proctor, "show", "last", NO_COLOR="1")):
        assert "\x1b" not in text
        head = text.splitlines()[0]
        assert summary["run"]["id"] in head and "my run" in head
        for words in ("sh -c", "exit 4", "k=v", summary["run"]["host"], f"{summary['samples']['taken']} samples",
                      "halfway", '{"step":3}', "sleepers", "; complete"):
            assert words in text, words
        for phase in ("first", "second"):
            assert re.search(rf"^  {phase} +\d[\d.]* m?s +\d[\d.]* ms +\d", text, re.M)
        for key in summary["metrics"]:
            assert re.search(rf"^  {re.escape(key)} +\S", text, re.M), key
        assert re.search(r"^  cpu.time +[\d.]+ ms$", text, re.M)
        assert re.search(r"^  mem.rss +[\d.]+ MiB +[\d.]+ m?s +[\d.]+ MiB", text, re.M)
    assert "\x1b[31mexit 4" in on_terminal(proctor, "show", "last")


def test_show_folds_at_the_width(proctor):
    proctor.run("-q", "echo", *["word"] * 100)
    lines = on_terminal(proctor, "show", "last", columns=100, NO_COLOR="1").splitlines()
    assert max(len(line) for line in lines if ".proctor" not in line) <= 100  # a path is one word
    assert sum("word word" in line for line in lines) > 3


# --- a run that goes on ---------------------------------------------------------------------------

def test_a_running_run_is_read_and_left_alone(proctor):
    process, path = running(proctor, "--name", "alive")
    [row] = listed(proctor)
    assert row["status"] == "running" and row["duration"] > 0 and row["samples"] > 3
    before = samples_in(path)
    shown = json.loads(proctor("show", "--json", "last").stdout)
    assert shown["rebuilt"] is True and shown["samples"]["taken"] >= before
    assert "running" in proctor("show", "last").stdout
    assert len(proctor("export", "last", "--format", "csv").stdout.splitlines()) > before
    assert "being recorded" in refusal(proctor, "rm", "last")
    assert "being recorded" in refusal(proctor, "recover", "last")
    assert proctor("gc", "--keep", "0").stdout == "removed 0 runs (0 B), kept 1\n"
    assert path.exists() and query(path, "SELECT count(*) FROM summary") == [0]
    os.kill(proctor.children(process.pid)[0], signal.SIGTERM)
    finish(process)
    [row] = listed(proctor)
    assert (row["status"], row["exit_signal"]) == ("failed", signal.SIGTERM)
    assert row["samples"] >= before and not json.loads(proctor("show", "--json", "last").stdout).get("rebuilt")


# --- rm and gc ------------------------------------------------------------------------------------

def test_rm_takes_all_of_it(proctor):
    path = killed(proctor)
    assert len(list(path.parent.iterdir())) == 3, "the file, its log, and the index of that"
    proctor.run("-q", "--run-id", "other", "true")
    done = proctor("rm", path.stem)
    assert done.returncode == 0 and done.stdout.startswith(f"removed {path} (") and done.stderr == ""
    assert [p.name for p in path.parent.iterdir()] == ["other.proctor"]
    done = proctor("rm", "nonsense", "other")
    assert done.returncode == 1 and "nonsense" in done.stderr and "removed" in done.stdout
    assert list(path.parent.iterdir()) == []


def test_rm_force(proctor):
    process, path = running(proctor)
    assert proctor("rm", "--force", path.stem).returncode == 0 and not path.exists()
    os.kill(proctor.children(process.pid)[0], signal.SIGTERM)
    assert finish(process)[0] == -signal.SIGTERM, "the job is left alone"
    bad = path.parent / "bad.proctor"
    bad.write_text("text")
    assert "--force" in refusal(proctor, "rm", "bad") and bad.exists()
    assert proctor("rm", "--force", "bad").returncode == 0 and not bad.exists()
    assert proctor("rm", "--force", "bad").returncode == 1


def test_gc_keeps_the_newest(proctor):
    for i in range(5):
        proctor.run("-q", "--run-id", f"run{i}", "true")
    folder = proctor.runs()[0].parent
    size = sum(p.stat().st_size for p in list(proctor.runs())[:3])
    done = proctor("gc", "--keep", "2", "--dry-run")
    assert done.stdout.count("would remove ") == 4 and "would remove 3 runs" in done.stdout and len(proctor.runs()) == 5
    done = proctor("gc", "--keep", "2")
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == f"removed 3 runs ({size // 1024} KiB), kept 2"
    assert [p.name for p in proctor.runs()] == ["run3.proctor", "run4.proctor"]
    change(folder / "run3.proctor", "UPDATE run SET started = started - 86400 * 1000000000")
    (folder / "bad.proctor").write_text("text")
    assert "removed 1 run (" in (text := proctor("gc", "--keep", "12h").stdout) and "1 files that cannot be read" in text
    assert [p.name for p in proctor.runs()] == ["bad.proctor", "run4.proctor"]
    assert "removed 1 run (" in proctor("gc", "--keep", "0").stdout


# --- recover --------------------------------------------------------------------------------------

def test_recover_writes_the_end(proctor):
    env = {"PATH": f"{os.path.dirname(proctor.path)}:{proctor.env['PATH']}"}
    process = proctor.start("run", "-q", "-i", "20ms", "--label", "a=b", "sh", "-c",
                            "proctor phase done -- sleep 0.2; proctor phase begin open; proctor mark here; sleep 60",
                            env=env)
    [path] = wait_until(proctor.runs, "a run file")
    wait_until(lambda: samples_in(path) and query(path, "SELECT count(*) FROM events WHERE event = 'mark'")[0], "a mark")
    time.sleep(0.2)
    job = proctor.children(process.pid)
    process.kill()
    process.wait()
    for pid in job:
        os.kill(pid, signal.SIGKILL)
    taken, last = query(path, "SELECT count(*), max(elapsed) FROM job_samples")[0]
    assert listed(proctor)[0]["status"] == "died" and "recover" in proctor("show", "last").stdout
    rebuilt = json.loads(proctor("show", "--json", "last").stdout)
    assert query(path, "SELECT count(*) FROM summary") == [0], "showing writes nothing"
    done = proctor("recover", "last")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{path}: recovered\n", "")
    assert [p.name for p in path.parent.iterdir()] == [path.name], "one file"
    shown = json.loads(proctor("show", "--json", "last").stdout)
    assert shown == rebuilt
    assert query(path, "SELECT recovered FROM summary") == [1]
    assert shown["samples"]["taken"] == taken and abs(shown["run"]["duration"] - last / 1e9) < 1e-9
    assert shown["run"]["labels"] == {"a": "b"} and shown["run"]["command"][0] == "sh"
    assert shown["exit"] == {"code": None, "signal": None}
    assert "rebuilt" in shown["accounting"]["cpu"]["source"] and shown["accounting"]["cpu"]["complete"] is False
    assert [(p["name"], p["left_open"]) for p in shown["phases"]] == [("done", False), ("open", True)]
    assert [e["text"] for e in shown["events"]] == ["here"]
    assert {p["command"] for p in shown["processes"]["list"]} >= {"sh", "sleep"}
    assert query(path, "SELECT count(*) FROM phases WHERE seconds IS NULL OR data IS NULL") == [0]
    assert query(path, "SELECT ended - started FROM run") == [last]
    [row] = listed(proctor)
    assert (row["status"], row["recovered"], row["samples"]) == ("died", True, taken)
    assert "recovered" in proctor("ls").stdout
    done = proctor("recover", "last")
    assert done.returncode == 0 and "nothing to recover" in done.stdout
    assert json.loads(proctor("show", "--json", "last").stdout) == shown


def test_a_run_of_another_machine_may_be_going_on(proctor):
    path = killed(proctor, "--run-id", "far")
    change(path, "UPDATE run SET host = 'elsewhere-1'")
    [row] = listed(proctor)
    assert row["status"] == "elsewhere" and names(listed(proctor, "--status", "elsewhere")) == names([row])
    assert not listed(proctor, "--status", "died") and not listed(proctor, "--status", "running")
    assert "elsewhere" in proctor("ls").stdout and "elsewhere-1" in proctor("show", "far").stdout
    for words in (["rm", "far"], ["recover", "far"]):
        line = refusal(proctor, *words)
        assert "elsewhere-1" in line and "--force" in line
    assert "nothing to recover" in proctor("recover", "--all").stdout
    assert "kept 1" in proctor("gc", "--keep", "0").stdout and path.exists()
    assert query(path, "SELECT count(*) FROM summary") == [0]
    done = proctor("recover", "--force", "far")
    assert (done.returncode, done.stdout) == (0, f"{path}: recovered\n")
    assert listed(proctor)[0]["recovered"] is True
    change(path, "INSERT INTO summary(json) SELECT json FROM summary")  # by a recorder that was alive
    [row] = listed(proctor)
    assert (row["recovered"], row["status"]) == (False, "ok")
    assert proctor("rm", "far").returncode == 0


def test_recover_all(proctor):
    proctor.run("-q", "--run-id", "whole", "true")
    assert "nothing to recover" in proctor("recover", "--all").stdout
    dead = [killed(proctor) for _ in range(2)]
    running(proctor)
    done = proctor("recover", "--all")
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == sorted(f"{p}: recovered" for p in dead)
    assert sorted(r["status"] for r in listed(proctor)) == ["died", "died", "ok", "running"]


def test_what_was_killed_is_read_where_nothing_can_be_written(proctor):
    """A log without its index, in a folder that is read-only: a private copy is read, and goes."""
    if os.getuid() != 0:
        pytest.fail("this test becomes another user, which only root can")
    path = killed(proctor, "--name", "dead")
    taken = samples_in(path)
    folder, temporary = proctor.folder / "ro", proctor.folder / "tmp"
    (folder / "runs").mkdir(parents=True)
    temporary.mkdir()
    temporary.chmod(0o777)
    for name in (path.name, path.name + "-wal"):
        shutil.copy(path.parent / name, folder / "runs" / name)
        (folder / "runs" / name).chmod(0o444)
    (folder / "runs").chmod(0o555)
    for one in [folder, *folder.parents]:
        if one.stat().st_uid == 0 and one != one.parent:
            one.chmod(one.stat().st_mode | 0o011)
    before = sorted(os.listdir(folder / "runs"))
    options = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/",
               "env": {"PROCTOR_HOME": str(folder), "TMPDIR": str(temporary)}}
    [row] = listed(proctor, **options)
    assert (row["status"], row["samples"], row["name"]) == ("died", taken, "dead")
    assert len(proctor("export", "last", "--format", "csv", **options).stdout.splitlines()) == taken + 1
    assert sorted(os.listdir(folder / "runs")) == before and os.listdir(temporary) == []


def test_a_thousand_runs_are_listed_soon(proctor):
    proctor.run("-q", "--run-id", "r", "sh", "-c", "sleep 0.1")
    path = proctor.runs()[0]
    for i in range(999):
        shutil.copy(path, path.parent / f"r{i}.proctor")
    before = os.times()
    done = proctor("ls")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    assert len(done.stdout.splitlines()) == 1001
    assert cpu < (10 if os.environ.get("PROCTOR_TEST_SANITIZED") else 2), "a machine with other work has time, too"


def test_the_example_reads_a_run(proctor):
    """examples/read_run.c, as it was built."""
    build = os.path.abspath(os.environ.get("PROCTOR_BUILD") or ROOT / "build")
    _, summary = proctor.recorded("-i", "20ms", "sh", "-c", "sleep 0.2")
    done = subprocess.run([f"{build}/read_run", "last"], env=proctor.env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *rows, last = done.stdout.splitlines()
    assert last.startswith(f"{summary['run']['id']}: {summary['samples']['taken']} samples, ")
    assert f"{summary['metrics']['cpu.time']['total']:.3f} s of CPU" in last and len(rows) > 5
    done = subprocess.run([f"{build}/read_run", "nonsense"], env=proctor.env, capture_output=True, text=True)
    assert done.returncode == 1 and "nonsense" in done.stderr
