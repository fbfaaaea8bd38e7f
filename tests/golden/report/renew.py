#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the run of run.sql, and writes the documents of it that are kept here: renew.py PROCTOR.
Look at what has changed before it is kept (git diff)."""
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FORMS = ("md", "txt", "svg")


def build(path):
    """The run file."""
    path = pathlib.Path(path)
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.executescript((HERE / "run.sql").read_text())
    db.close()
    return path


def write(proctor, run, folder):
    """All documents of a run; their names, relative to the folder."""
    for form in FORMS:
        subprocess.run([proctor, "report", run, "-o", pathlib.Path(folder) / f"report.{form}"], check=True)
    found = [p for p in pathlib.Path(folder).rglob("*") if p.is_file() and p.suffix[1:] in FORMS]
    return sorted(str(p.relative_to(folder)) for p in found)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        write(pathlib.Path(sys.argv[1]).resolve(), build(pathlib.Path(place) / "run.proctor"), HERE)
