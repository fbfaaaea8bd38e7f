# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package share: every Python to be had here, and environments with tools."""
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import venv

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PROCTOR_BUILD", ROOT / "build")).resolve()
PLACES = {"PROCTOR_LIBRARY": str(BUILD / "libproctor.so.0"), "PROCTOR_COMMAND": str(BUILD / "proctor"),
          "PYTHONPATH": str(ROOT / "python")}
PATIENCE = 60


def skip_visibly(reason):
    """A skip that people see, and that CI does not accept."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must be able to do this: {reason}")
    pytest.skip(reason)


def about(path):
    """(3, 11) and the file that it is, behind links and shims; None where it does not run or has no ctypes,
    without which nobody loads a library."""
    script = "import ctypes, os, sys; print(sys.version_info[1], os.path.realpath(sys.executable))"
    done = subprocess.run([path, "-c", script], capture_output=True, text=True)
    if done.returncode:
        return None
    minor, real = done.stdout.split()
    return (3, int(minor)), real


def every_python():
    """Debian's, the default one, and others beside it: one of each version from 3.9 on, named by it."""
    wanted = ["/usr/bin/python3", shutil.which("python3") or sys.executable]
    wanted += [path for path in (shutil.which(f"python3.{minor}") for minor in range(9, 20)) if path]
    wanted += sorted(map(str, pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
                         .glob("versions/3.*/bin/python3")))
    found = {}
    for path in wanted:
        known = about(path) if os.path.exists(path) else None
        if not known or known[0] < (3, 9) or known[1] in found.values():
            continue
        name = "debian" if path == wanted[0] else f"{known[0][0]}.{known[0][1]}"
        found.setdefault(name, known[1])
    return found


PYTHONS = every_python()
if os.environ.get("PROCTOR_TEST_FULL") != "1":  # Debian's, the default one, the oldest and the newest
    _versions = sorted((name for name in PYTHONS if name != "debian"), key=lambda name: int(name.split(".")[1]))
    _default = next((name for name in PYTHONS if name != "debian"), "debian")
    PYTHONS = {name: path for name, path in PYTHONS.items()
               if name in ("debian", _default, *_versions[:1], *_versions[-1:])}


def clean_environment(folder, **more):
    """Nothing of ours but where the parts are."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PROCTOR_") and k != "PYTHONPATH"}
    return {**env, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config"),
            "PYTHONDONTWRITEBYTECODE": "1", **more}


def run_script(python, text, folder, *args, env=None, good=True, flags=(), before=(), patience=PATIENCE):
    """A script in a process of its own, started by `before`. It says what is wrong by an exception."""
    done = subprocess.run([*before, python, *flags, "-c", textwrap.dedent(text), *map(str, args)], cwd=folder,
                          env=env or clean_environment(folder, **PLACES), capture_output=True, text=True,
                          timeout=patience)
    assert not good or done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def tools(name, *packages, system=False):
    """An environment with packages of the index (system: and Debian's), made below build/ at its first use."""
    place = ROOT / "build" / f"python-{name}"
    mark = place / "installed"
    if not mark.exists() or mark.read_text() != " ".join(packages):
        venv.create(place, with_pip=True, clear=True, system_site_packages=system)
        done = subprocess.run([place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                               *packages], capture_output=True, text=True)
        if done.returncode:
            skip_visibly(f"pip install {' '.join(packages)}: {done.stderr.strip().splitlines()[-1:]}")
        mark.write_text(" ".join(packages))
    return place / "bin"
