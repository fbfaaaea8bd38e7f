# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the command tests: the jobs, compiled once, and a place of its own for each test."""
import subprocess

import pytest

import clean_slate  # noqa: F401
from proctor_cli import HERE, SANITIZED, Proctor

# A server that takes its time to be made, and no code of ours that other tests have not got.
collect_ignore = ["test_mlflow.py", "test_otlp_collector.py"] if SANITIZED else []


@pytest.fixture(scope="session")
def jobs(tmp_path_factory):
    """The folder with the helper programs of jobs/*.c."""
    folder = tmp_path_factory.mktemp("jobs")
    for source in sorted((HERE / "jobs").glob("*.c")):
        subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", folder / source.stem,
                        source, "-lpthread", *(["-static"] if source.stem in ("tiny", "odd") else [])],
                       check=True)
    return folder


@pytest.fixture
def proctor(tmp_path):
    """The command, in a clean environment and in a folder of its own."""
    tool = Proctor(tmp_path)
    yield tool
    tool.end_all()


@pytest.fixture
def png(proctor, tmp_path):
    """The environment for PNG: a leak of ours is one, what fontconfig keeps until the end is not."""
    (tmp_path / "lsan").write_text("leak:libfontconfig\nleak:libpango\nleak:libglib\n")
    env = {"LSAN_OPTIONS": f"suppressions={tmp_path / 'lsan'}:print_suppressions=0"}
    assert "librsvg" not in proctor("report", "nothing", "-o", "x.png", env=env).stderr, "tools/install-deps test"
    return env
