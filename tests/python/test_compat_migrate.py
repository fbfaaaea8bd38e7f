# SPDX-License-Identifier: Apache-2.0
"""doc/migrate.md: what it tells people to write works."""
import re

from pythons import ROOT

TEXT = (ROOT / "doc/migrate.md").read_text()
LINES = re.findall(r"^\| `(from [^`]+)`[^|]*\| `(from [^`]+)` \|$", TEXT, re.M)


def test_each_line_to_write_works(python):
    modules = {path.stem for path in (ROOT / "python/proctor/compat").iterdir() if not path.name.startswith("_")}
    assert {ours.split()[1] for _, ours in LINES} == {f"proctor.compat.{name}" for name in modules}
    for _, ours in LINES:
        python(ours)


def test_it_gives_the_names_of_the_line_that_it_replaces():
    assert LINES
    for theirs, ours in LINES:
        assert theirs.split(" import ")[1] == ours.split(" import ")[1]


def test_modules_that_are_named_are_there(python):
    modules = sorted(set(re.findall(r"\bproctor\.(?:compat|integrations)\.[a-z_]+[a-z0-9_]*", TEXT)))
    assert len(modules) >= 10, modules
    python("".join(f"import {name}\n" for name in modules) + "proctor.integrations.mlflow.ActiveRun\n"
           "proctor.integrations.metaflow.track_resources\n")
