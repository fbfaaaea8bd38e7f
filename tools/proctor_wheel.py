#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel of the Python package, with the library and the command inside: `make wheel`, and the build
backend of pyproject.toml (`pip wheel .`). It needs meson, ninja and a compiler, and no Python package.

What the wheel asks of a machine is read from the two files: a C library that has every symbol version
that they name, and nothing else.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAME = "proctor"
MOMENT = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel
ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}  # what every manylinux has
METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: Watch a job, keep an exact account of what it used
License: Apache-2.0
Requires-Python: >=3.9
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Classifier: Framework :: Pytest
Description-Content-Type: text/markdown

{text}"""
ENTRY_POINTS = "[pytest11]\nproctor = proctor.pytest_plugin\n"


def output(*args):
    return subprocess.run([str(a) for a in args], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout


def version():
    return re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text()).group(1)


def outside(*args):
    """pip hides the packages of its interpreter from what it builds; meson may be one of them."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONNOUSERSITE")}
    subprocess.run(args, check=True, cwd=ROOT, stdout=sys.stderr, env=env)


def built(folder):
    """The two files, after a build where there was none."""
    if not (folder / "build.ninja").exists():
        outside("meson", "setup", folder, "-Dtests=disabled")
    outside("ninja", "-C", folder, "--quiet", "proctor-portable", f"libproctor.so.{version()}")
    return folder / f"libproctor.so.{version()}", folder / "proctor-portable"


def tag(files):
    """py3-none-manylinux_X_Y_ARCH: the newest version of glibc that one of them names."""
    newest = (2, 5)
    for path in files:
        text = output("objdump", "-p", path)
        strange = set(re.findall(r"^\s+NEEDED\s+(\S+)", text, re.M)) - ALLOWED
        strange = {name for name in strange if not name.startswith("ld-linux")}
        if strange:
            raise SystemExit(f"{path} needs {', '.join(sorted(strange))}: a wheel cannot count on it")
        found = re.findall(r"\bGLIBC_(\d+)\.(\d+)", text)
        if "GLIBC_PRIVATE" in text:
            raise SystemExit(f"{path} needs what is private to one version of the C library")
        newest = max([newest, *((int(major), int(minor)) for major, minor in found)])
    return f"py3-none-manylinux_{newest[0]}_{newest[1]}_{platform.machine()}"


def stripped(path):
    with tempfile.TemporaryDirectory() as folder:
        small = pathlib.Path(folder) / "small"
        output("strip", "--strip-unneeded", "-o", small, path)
        return small.read_bytes()


def package():
    folder = ROOT / "python" / NAME
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (path.suffix == ".py" or path.name == "py.typed"):
            yield f"{NAME}/{path.relative_to(folder)}", path.read_bytes()


def described():
    text = (ROOT / "doc" / "python.md").read_text()
    return METADATA.format(name=NAME, version=version(), text=text).encode()


def write_wheel(path, files, info):
    """files: (name, bytes, may be run)."""
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        def put(name, data, run=False):
            entry = zipfile.ZipInfo(name, MOMENT)
            entry.external_attr = (0o100755 if run else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
        for name, data, run in files:
            put(name, data, run)
        record.append(f"{info}/RECORD,,\n")
        z.writestr(zipfile.ZipInfo(f"{info}/RECORD", MOMENT), "".join(record))


def make(folder, into):
    """The path of the wheel."""
    library, command = built(pathlib.Path(folder).resolve())
    which, base = tag([library, command]), f"{NAME}-{version()}"
    info = f"{base}.dist-info"
    about = f"Wheel-Version: 1.0\nGenerator: proctor\nRoot-Is-Purelib: false\nTag: {which}\n"
    files = [(name, data, False) for name, data in package()]
    files += [(f"{NAME}/native/libproctor.so.0", stripped(library), True),
              (f"{base}.data/scripts/{NAME}", stripped(command), True),
              (f"{info}/METADATA", described(), False),
              (f"{info}/WHEEL", about.encode(), False),
              (f"{info}/entry_points.txt", ENTRY_POINTS.encode(), False),
              (f"{info}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes(), False)]
    path = pathlib.Path(into) / f"{base}-{which}.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_wheel(path, files, info)
    return path


# --- the hooks of a build backend ------------------------------------------------------------------------------


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return make(ROOT / "build-wheel", wheel_directory).name


def build_sdist(sdist_directory, config_settings=None):
    base = f"{NAME}-{version()}"
    path = pathlib.Path(sdist_directory) / f"{base}.tar.gz"
    with tarfile.open(path, "w:gz") as tar, tempfile.TemporaryDirectory() as folder:
        for name in output("git", "ls-files").splitlines():
            if os.path.exists(ROOT / name):
                tar.add(ROOT / name, f"{base}/{name}")
        about = pathlib.Path(folder) / "PKG-INFO"
        about.write_bytes(described())
        tar.add(about, f"{base}/PKG-INFO")
    return path.name


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("into", help="the folder for the wheel")
    options = parser.parse_args()
    print(make(options.build, options.into))


if __name__ == "__main__":
    main()
