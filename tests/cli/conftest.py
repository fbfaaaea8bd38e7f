# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the command tests: the jobs, compiled once, and a place of its own for each test."""
import subprocess

import pytest

from proctor_cli import HERE, Proctor


@pytest.fixture(scope="session")
def jobs(tmp_path_factory):
    """The folder with the helper programs of jobs/*.c."""
    folder = tmp_path_factory.mktemp("jobs")
    for source in sorted((HERE / "jobs").glob("*.c")):
        subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", folder / source.stem,
                        source, "-lpthread", *(["-static"] if source.stem == "tiny" else [])],
                       check=True)
    return folder


@pytest.fixture
def proctor(tmp_path):
    """The command, in a clean environment and in a folder of its own."""
    tool = Proctor(tmp_path)
    yield tool
    tool.end_all()
