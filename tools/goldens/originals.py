# SPDX-License-Identifier: Apache-2.0
"""The originals: fetched by name and version, unpacked below the build folder, never part of the repository."""
import importlib
import importlib.util
import pathlib
import subprocess
import sys
import types
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/goldens"
SEEDS = ROOT.parent / "shared/seeds"

# One file each, without what they require: only the module that watches is executed.
PACKAGES = {"resource-tracker": "0.5.0", "oasislmf": "2.5.5", "stouputils": "1.31.0", "pytyche": "0.2.1",
            "spdl-core": "0.6.0", "snakemake": "9.27.1", "resource-tracker, the first": "0.1.0"}
# What they watch with; installed, so that it is the real one.
PSUTIL = "psutil==7.2.2"
# Some files name the version of Python that they are for; these modules run with any from 3.11 on.
FOR_PYTHON = "3.12"


class Missing(Exception):
    """An original that cannot be had, and why."""


def pip(python, *words):
    done = subprocess.run([str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, words)],
                          capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise Missing(f"pip {' '.join(map(str, words))}: {lines[-1]}")


def environment():
    """The Python to run the originals with."""
    python = BUILD / "venv/bin/python"
    if not (BUILD / "venv/installed").exists():
        venv.create(BUILD / "venv", with_pip=True, clear=True)
        pip(python, "install", PSUTIL)
        (BUILD / "venv/installed").touch()
    return python


def unpacked(package):
    """The folder with the files of a package."""
    package, version = package.partition(",")[0], PACKAGES[package]
    folder = BUILD / f"{package}-{version}"
    if not folder.exists():
        load = BUILD / "download"
        pip(sys.executable, "download", "--no-deps", "--only-binary=:all:", "--python-version", FOR_PYTHON,
            "--dest", load, f"{package}=={version}")
        wheel = next(load.glob(f"{package.replace('-', '_')}-{version}-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder


def module(package, path, inside=None):
    """One file of a package as a module of its own, without what its package would import. inside: what relative
    imports in it are relative to."""
    place = unpacked(package) / path
    if inside:
        stub(inside)
    name = f"{inside}.{place.stem}" if inside else f"{place.stem}_original"
    spec = importlib.util.spec_from_file_location(name, place)
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def package(name, module_name):
    """A module that needs the rest of its package."""
    sys.path.insert(0, str(unpacked(name)))
    try:
        return importlib.import_module(module_name)
    finally:
        sys.path.pop(0)


def stub(name, **members):
    """A module that an original imports and that has no part in what it writes."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
    sys.modules[name].__dict__.update(members)


def seed(start):
    """The text of the seed document whose name starts so."""
    found = sorted(SEEDS.glob(f"{start}*")) if SEEDS.is_dir() else []
    if not found:
        raise Missing(f"no seed {start} in {SEEDS.name} beside the repository: it is not part of it")
    return found[0].read_text()
