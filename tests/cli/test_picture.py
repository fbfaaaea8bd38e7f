# SPDX-License-Identifier: Apache-2.0
"""`proctor show` on a terminal: curves, bars, phases and events, drawn from what the record says."""
import random
import re
import shutil
import sqlite3

import pytest

from proctor_cli import PROCTOR
from test_gpu import FAKE, TWO, Gpu
from test_report import GAP, SECONDS, SPIKE, long_run, recorded
from test_runs import on_terminal
from test_runs_damage import VALUES, columns

LEVELS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
ASCII_LEVELS = "_.:-=+*#"
OTHERS = 10 + 2 + 10 + 2 + 38  # columns of a line that are no curve


def picture(proctor, path, columns=110, **env):
    """Rows of the picture by their label: what stands behind it, without colours."""
    text = on_terminal(proctor, "show", path, columns=columns, **{"NO_COLOR": "1", **env})
    rows = {}
    for line in text.split("\n\n")[1].splitlines():
        assert len(line) <= columns
        rows.setdefault(line[:10].strip(), line[10:])
    return rows, min(columns - OTHERS, 60)


def edited(path, *statements):
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


@pytest.fixture
def job(proctor):
    """A run with phases and a mark, of whose record the CPU is idle in the first half alone."""
    script = f'"{PROCTOR}" phase load -- sleep 0.8; "{PROCTOR}" mark half; "{PROCTOR}" phase train -- sleep 0.8; exit 3'
    path, done = recorded(proctor, "--memory-total", "64M", "--cpu-total", "4", "sh", "-c", script)
    assert done.returncode == 3, done.stderr
    edited(path, "UPDATE job_samples SET mem_pss_bytes = 62 << 20, mem_rss_bytes = 62 << 20 WHERE mem_rss_bytes > 0",
           "UPDATE job_samples SET cpu_usage_cores = CASE WHEN elapsed < (SELECT max(elapsed) FROM job_samples) / 2"
           " THEN 0 ELSE 3.9 END WHERE cpu_usage_cores IS NOT NULL", "DELETE FROM summary")
    return path


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_curves_bars_and_phases_share_their_columns(proctor, job, columns):
    rows, wide = picture(proctor, job, columns)
    cpu = rows["CPU"][:wide]
    half = wide // 2
    assert set(cpu[1:half - 2]) <= {LEVELS[0]} and set(cpu[half + 2:-1]) <= {LEVELS[7]}
    assert "peak 3.90 of 4.00 cores" in rows["CPU"]
    bar = rows["memory"][wide + 2:wide + 12]
    assert bar.startswith("\u2588" * 9) and len(bar.rstrip()) >= 9 and "peak 62.0 MiB of 64.0 MiB" in rows["memory"]
    assert "\u2502load" in rows["phases"] and "\u2502train" in rows["phases"]
    assert len(rows["phases"]) <= wide
    assert rows["events"][:wide].count("\u25be") == 1 and rows["events"][:wide].rstrip().endswith("\u2715")
    assert re.search(r"1 mark, 1 exit", rows["events"])
    axis = rows[""].split()
    assert axis[0] == "0" and axis[-1] == "s"


def test_without_utf8_it_is_plain(proctor, job):
    text = on_terminal(proctor, "show", job, columns=100, NO_COLOR="1", LC_ALL="C")
    assert text.isascii() and "\x1b" not in text
    rows, wide = picture(proctor, job, 100, LC_ALL="C")
    assert set(rows["CPU"][:wide]) <= set(ASCII_LEVELS) | {" "}
    assert "|load-" in rows["phases"] and "#########" in rows["memory"] and "v" in rows["events"]


def test_colours_follow_the_families_and_the_wish(proctor, job):
    coloured = on_terminal(proctor, "show", job, columns=100)
    assert f"\x1b[34m{LEVELS[0]}" in coloured and "\x1b[31m\u2588" in coloured  # CPU; memory near its limit
    assert "\x1b" not in on_terminal(proctor, "show", job, columns=100, NO_COLOR="1")
    assert "\x1b" not in on_terminal(proctor, "show", "--color", "never", job, columns=100)
    assert "\x1b[34m" in on_terminal(proctor, "show", "--color", "always", job, columns=100, NO_COLOR="1")


def test_a_narrow_terminal_and_a_pipe_have_no_picture(proctor, job):
    narrow = on_terminal(proctor, "show", job, columns=70, NO_COLOR="1")
    piped = proctor("show", job).stdout
    assert piped == proctor("show", job, env={"LC_ALL": "C", "TERM": "dumb", "COLUMNS": "200"}).stdout
    for text in (narrow, piped):
        assert not set(LEVELS) & set(text) and "phases" not in text and "cpu.usage" in text


def test_findings_are_those_of_the_report(proctor, job):
    text = on_terminal(proctor, "show", job, columns=140)
    assert re.search(r"finding \x1b\[0m\x1b\[31mMemory reached 62.0 MiB, 97 % of the limit 64.0 MiB", text)


def test_a_spike_of_one_sample_is_seen_and_a_gap_is_blank(proctor):
    path, _ = recorded(proctor, "--cpu-total", "64", "true")
    long_run(path)
    rows, wide = picture(proctor, path, 120)
    cpu = rows["CPU"][:wide]
    top = [i for i, c in enumerate(cpu) if c == LEVELS[7]]
    assert top == [int((SPIKE - 1) / SECONDS * wide)] or top == [int(SPIKE / SECONDS * wide)]
    inside = range(int(GAP[0] / SECONDS * wide) + 2, int(GAP[-1] / SECONDS * wide) - 1)
    assert all(cpu[i] == " " for i in inside)
    assert " " not in cpu[:int(GAP[0] / SECONDS * wide) - 1]


def test_each_gpu_has_its_rows(proctor):
    assert (FAKE / "libnvidia-ml.so.1").exists(), "build with the tests"
    Gpu(proctor).run(TWO + "util 0 100 0 99\nutil 1 0 0 99\nset 0 reasons 4 0.2\n", "-i", "100ms", "-o", "g.proctor", "sleep", "1.2")
    rows, wide = picture(proctor, proctor.work / "g.proctor", 120)
    assert "mean 100 %" in rows["GPU 0"] and LEVELS[7] in rows["GPU 0"][:wide]
    assert set(rows["GPU 1"][:wide]) <= {LEVELS[0], " "} and "mem" in rows and "of 140 GiB" in rows["mem"]
    assert "!" in rows["events"] and "1 throttled" in rows["events"]


def test_hostile_names_of_phases_stay_within_their_columns(proctor):
    """No phase can be called so, but a file may say anything."""
    script = "; ".join(f'"{PROCTOR}" phase p{i} -- sleep 0.8' for i in range(3))
    path, done = recorded(proctor, "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    edited(path, "UPDATE phases SET name = char(27) || '[31mred' WHERE name = 'p0'",
           "UPDATE phases SET name = 'a' || char(10) || 'b' WHERE name = 'p1'",
           "UPDATE phases SET name = printf('%.*c', 300, 'x') WHERE name = 'p2'", "DELETE FROM summary")
    rows, wide = picture(proctor, path, 120)
    assert len(rows["phases"]) <= wide and "\x1b" not in rows["phases"]
    assert "\u2502\\x1b[31mred" in rows["phases"] and "\u2502a\\x0ab" in rows["phases"] and "\u2502xxx" in rows["phases"]


def test_whatever_a_file_says(proctor, job):
    """Any value in any column: it is drawn, or it is said why not."""
    dice, drawn = random.Random(1), 0
    for turn in range(40):
        bad = proctor.work / "bad.proctor"
        shutil.copy(job, bad)
        db = sqlite3.connect(bad, isolation_level=None)
        for table, column in dice.sample(list(columns(db)), 3):
            try:
                db.execute(f"UPDATE {table} SET {column} = {dice.choice(VALUES)}")
            except sqlite3.DatabaseError:
                pass  # a key, or NOT NULL
        db.close()
        text = on_terminal(proctor, "show", bad, columns=dice.choice([80, 140]), statuses=(0, 1), NO_COLOR="1")
        assert "Sanitizer" not in text and "runtime error" not in text and "\x1b" not in text, text
        drawn += bool(set(LEVELS) & set(text))
    assert drawn > 20


def test_a_very_long_run_is_not_read_for_a_picture(proctor):
    path, _ = recorded(proctor, "sleep", "0.3")
    edited(path, "UPDATE job_samples SET sample = sample + 2000000")
    text = on_terminal(proctor, "show", path, columns=120, NO_COLOR="1")
    assert "proctor report has them" in text and "cpu.time" in text and not set(LEVELS) & set(text)
