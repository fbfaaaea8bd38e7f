# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def root():
    return ROOT


@pytest.fixture(scope="session")
def build():
    """The build that is tested."""
    return pathlib.Path(os.environ.get("PROCTOR_BUILD", ROOT / "build"))


@pytest.fixture
def clone(tmp_path):
    """A copy of what belongs to the project, as a fresh clone would have it."""
    target = tmp_path / "clone"
    files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           check=True, capture_output=True, text=True).stdout.split("\n")
    for name in filter(None, files):
        if (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


@pytest.fixture
def clean_env(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PROCTOR_")}
    return {**env, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "XDG_STATE_HOME": str(tmp_path / "state")}
