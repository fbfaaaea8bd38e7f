# SPDX-License-Identifier: Apache-2.0
"""Run files that are not what they should be: nothing crashes, hangs, or is silent."""
import json
import os
import random
import shutil
import sqlite3

import pytest

from proctor_cli import SLACK

SEED = 20261115
COMMANDS = [["show"], ["show", "--json"], ["export", "--format", "jsonl", "--processes"], ["export", "--format", "csv"],
            ["export", "--format", "runlog"], ["report", "-o", "damaged.json"], ["suggest"], ["suggest", "--for", "slurm"]]
TIMES = 200


@pytest.fixture
def good(proctor):
    """A run file with something in every table."""
    env = {"PATH": f"{os.path.dirname(proctor.path)}:{proctor.env['PATH']}"}
    done = proctor.run("-q", "-i", "20ms", "-o", "good.proctor", "sh", "-c",
                       "proctor phase one -- sleep 0.1; proctor mark x a=1; sleep 0.1", env=env)
    assert done.returncode == 0, done.stderr
    return proctor.work / "good.proctor"


def survives(proctor, *words):
    """It says what is wrong and exits, or does what it can."""
    done = proctor(*words, timeout=30 * SLACK, text=False)
    assert done.returncode in (0, 1), (words, done)
    assert b"Sanitizer" not in done.stderr and b"runtime error" not in done.stderr, done.stderr
    if done.returncode == 1:
        assert done.stderr.startswith(b"proctor: "), (words, done)
    return done.returncode


def test_bytes_are_flipped(proctor, good):
    dice, whole = random.Random(SEED), good.read_bytes()
    bad = proctor.work / "bad.proctor"
    results = []
    for turn in range(TIMES):
        data = bytearray(whole)
        for _ in range(dice.choice([1, 3, 30, 300])):
            data[dice.randrange(100 if dice.random() < 0.1 else len(data))] = dice.randrange(256)
        bad.write_bytes(data)
        results.append(survives(proctor, *COMMANDS[turn % len(COMMANDS)], bad))
    assert 0 in results and 1 in results, "some do no harm, some are seen"


def test_it_is_cut(proctor, good):
    dice, whole = random.Random(SEED + 1), good.read_bytes()
    bad = proctor.work / "bad.proctor"
    results = []
    for turn in range(60):
        bad.write_bytes(whole[:dice.randrange(len(whole))])
        results.append(survives(proctor, *COMMANDS[turn % len(COMMANDS)], bad))
    assert sum(results) > 50, "only what lies before the cut can be read"


def test_the_end_is_lost_and_rebuilt(proctor, good):
    """The same where a summary has to be rebuilt, and written."""
    dice = random.Random(SEED + 2)
    with sqlite3.connect(good) as db:
        db.execute("DELETE FROM summary")
        db.execute("UPDATE run SET ended = NULL")
    db.close()
    whole, bad = good.read_bytes(), proctor.work / "bad.proctor"
    for turn in range(60):
        data = bytearray(whole)
        for _ in range(dice.choice([1, 10, 100])):
            data[dice.randrange(len(data))] = dice.randrange(256)
        bad.write_bytes(data)
        survives(proctor, *(["show", "--json"] if turn % 2 else ["recover"]), bad)
        for beside in proctor.work.glob("bad.proctor-*"):
            beside.unlink()


VALUES = ["NULL", "'text'", "-1", "0", "9223372036854775807", "-9223372036854775808", "1e308", "x'00ff00'", "''",
          "'{}'", "'{\"a\":'", "'[' || replace(hex(zeroblob(3000)), '00', '[') || ']'", "randomblob(100000)"]


def columns(db):
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for row in db.execute(f"PRAGMA table_info({table})").fetchall():
            yield table, row[1]


def test_values_are_of_any_kind(proctor, good):
    """SQLite lets any column have anything: each of ours, with something that nobody expects."""
    dice, bad = random.Random(SEED + 3), proctor.work / "bad.proctor"
    with sqlite3.connect(good) as db:
        all_columns = [(t, c) for t, c in columns(db) if not c.endswith(("_bytes", "_seconds", "_per_second"))]
    db.close()
    assert len(all_columns) > 50
    for turn, (table, column) in enumerate(all_columns):
        shutil.copy(good, bad)
        with sqlite3.connect(bad) as db:
            if turn % 2:
                db.execute("DELETE FROM summary")
                db.execute("UPDATE run SET ended = NULL")
            try:
                db.execute(f"UPDATE {table} SET {column} = {dice.choice(VALUES)}")
            except sqlite3.DatabaseError:
                pass  # a key, or NOT NULL
        db.close()
        survives(proctor, *COMMANDS[turn % len(COMMANDS)], bad)


@pytest.mark.parametrize("statement", ["DROP TABLE events", "DELETE FROM run", "DELETE FROM job_samples", "DELETE FROM metrics",
                                       "DELETE FROM entities", "ALTER TABLE job_samples DROP COLUMN mem_rss_bytes"])
def test_parts_are_missing(proctor, good, statement):
    with sqlite3.connect(good) as db:
        db.execute(statement)
    db.close()
    for command in COMMANDS:
        status = survives(proctor, *command, good)
        assert status == (statement in ("DROP TABLE events", "DELETE FROM run")), command


def test_a_view_in_the_place_of_a_table_is_refused(proctor, good):
    """One that never ends would keep us for ever."""
    with sqlite3.connect(good) as db:
        db.execute("DROP TABLE events")
        db.execute("CREATE VIEW events AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                   "SELECT i AS id, i AS elapsed, 'mark' AS event, '' AS name, 0 AS seconds, '' AS text, '' AS data FROM n")
    db.close()
    for command in COMMANDS:
        assert survives(proctor, *command, good) == 1


ESCAPES = "a\x1b]0;owned\x07\x1b[31m\nforged: line"


def test_what_a_file_says_does_not_speak_to_the_terminal(proctor, good):
    """No text of a file reaches the terminal with its control characters."""
    evil = proctor.work / "evil.proctor"
    shutil.copy(good, evil)
    with sqlite3.connect(evil) as db:
        [summary] = db.execute("SELECT json FROM summary").fetchone()
        summary = json.loads(summary)
        for statistics in summary["metrics"].values():
            statistics["mark"] = ESCAPES
        summary["events"] = [{"at": 1, "type": ESCAPES, "text": ESCAPES, "data": {ESCAPES: ESCAPES}}]
        summary["accounting"] = {ESCAPES: {"source": ESCAPES, "complete": False, "note": ESCAPES}}
        summary["findings"] = [ESCAPES]
        db.execute("UPDATE summary SET json = ?", (json.dumps(summary),))
        db.execute("UPDATE run SET id = ?", (ESCAPES,))
    db.close()
    dead = proctor.work / "dead.proctor"
    shutil.copy(evil, dead)
    with sqlite3.connect(dead) as db:
        db.execute("DELETE FROM summary")
        db.execute("UPDATE run SET ended = NULL")
    db.close()
    for path in (evil, dead):
        done = proctor("show", "--color", "never", path)
        assert done.returncode == 0 and "owned" in done.stdout
        assert not set(done.stdout) & set("\x1b\x07") and "\nforged" not in done.stdout
    assert proctor("show", evil).stdout.count("(a\\x1b]0;owned") > 5, "marks are there, made safe"


@pytest.mark.parametrize("json_text", ['{"a":1,\n"b":2}', '{"a":1}\n{"forged":true}', '"text"', "no json", '{"a":', "[1,\n2]",
                                       '"a":1', "", "{}"])
def test_what_is_no_json_or_on_two_lines_forges_no_line(proctor, good, json_text):
    columns_of_json = [("phases", "data"), ("events", "data"), ("run", "about"), ("run", "labels"), ("run", "command"),
                       ("summary", "json")]
    for table, column in columns_of_json:
        evil = proctor.work / "evil.proctor"
        shutil.copy(good, evil)
        with sqlite3.connect(evil) as db:
            db.execute(f"UPDATE {table} SET {column} = ?", (json_text,))
        db.close()
        for words in (["export", "--format", "jsonl"], ["export", "--format", "runlog"], ["show", "--json"]):
            done = proctor(*words, evil)
            assert done.returncode in (0, 1), done
            assert done.returncode == 0 or done.stderr.startswith("proctor: ")
            for line in done.stdout.splitlines():
                assert "forged" not in json.loads(line), (table, words)
        proctor.env["PROCTOR_HOME"] = str(proctor.work / "home")
        (proctor.work / "home" / "runs").mkdir(parents=True, exist_ok=True)
        shutil.move(evil, proctor.work / "home" / "runs" / "evil.proctor")
        assert json.loads(proctor("ls", "--json", "--label", "a").stdout) is not None
        assert len(json.loads(proctor("ls", "--json").stdout)) == 1


def test_numbers_keep_their_text(proctor, good):
    """JSON is read through SQLite and comes out as it was written."""
    text = '{"a":1.0,"b":1e5,"c":-0.0,"d":12345678901234567890,"e":0.1000,"f":"\\u00e9\\/é"}'
    with sqlite3.connect(good) as db:
        db.execute("UPDATE events SET data = ? WHERE event = 'mark'", (text,))
    db.close()
    assert text in proctor("export", "--format", "jsonl", good).stdout
    assert text in proctor("export", "--format", "runlog", good).stdout
