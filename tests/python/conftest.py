# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

from pythons import PLACES, PYTHONS, ROOT, run_script

# For those that import the package themselves.
os.environ.update({name: value for name, value in PLACES.items() if name != "PYTHONPATH"})
sys.path.insert(0, str(ROOT / "python"))
sys.path.append(str(ROOT / "tests/cli"))
import clean_slate  # noqa: E402, F401


@pytest.fixture(params=list(PYTHONS))
def python(request, tmp_path):
    """Runs a script under each Python that is to be had."""
    return lambda text, *args, **kw: run_script(PYTHONS[request.param], text, tmp_path, *args, **kw)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Runs of tests are nobody's, and are not found by name by other tests."""
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "home"))
