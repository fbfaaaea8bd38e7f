# SPDX-License-Identifier: Apache-2.0
"""Puts the tools that we are compared with below the build folder, or says why one is not there."""
import os
import pathlib
import shutil
import subprocess
import sys

from . import peers

# Each in an environment of its own: what one brings along would change what another does.
PYTHON = {
    peers.Psutil: ("psutil", "python"),
    peers.Psrecord: ("psrecord", "psrecord"),
    peers.Conduct: ("con-duct", "con-duct"),
    peers.ResourceTracker: ("resource-tracker", "python"),
    peers.Mprof: ("memory_profiler", "mprof"),
}
SYSTEM = {peers.Pidstat: ("sysstat", "pidstat"), peers.Top: ("procps", "top"), peers.Time: ("time", "time")}
CRATE = "resource-tracker"


def run(*words):
    """None, or what went wrong in a line."""
    try:
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=900)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return None if done.returncode == 0 else (lines[-1] if lines else f"exit status {done.returncode}")[:200]


def output(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    return (done.stdout or done.stderr).strip()


def python_tool(cls, folder):
    package, program = PYTHON[cls]
    place = folder / f"python-{package}"
    tool = cls(str(place / "bin" / program))
    if not (place / "installed").exists():
        tool.reason = run(sys.executable, "-m", "venv", place) or \
            run(place / "bin/pip", "install", "--quiet", "--disable-pip-version-check", package)
        if tool.reason:
            tool.reason = f"could not be installed: {tool.reason}"
            return tool
        (place / "installed").touch()
    tool.version = output(place / "bin/python", "-c",
                          f"from importlib.metadata import version; print(version({package!r}))")
    return tool


def rust_tool(folder):
    tool = peers.Rust(str(folder / "cargo/bin" / CRATE))
    if not pathlib.Path(tool.program).exists():
        cargo = shutil.which("cargo")
        tool.reason = "no cargo here to build it" if not cargo else \
            run(cargo, "install", "--quiet", "--locked", "--root", folder / "cargo", "--target-dir",
                folder / "cargo-target", CRATE)
        shutil.rmtree(folder / "cargo-target", ignore_errors=True)
        if tool.reason:
            tool.reason = f"could not be installed: {tool.reason}"
            return tool
    tool.version = output(tool.program, "--version").split()[-1]
    return tool


def system_tool(cls):
    package, program = SYSTEM[cls]
    path = shutil.which(program)
    if not path and shutil.which("apt-get") and os.geteuid() == 0:
        run("apt-get", "update")
        run("apt-get", "install", "-y", "--no-install-recommends", package)
        path = shutil.which(program)
    tool = cls(path)
    if not path:
        tool.reason = f"could not be installed: needs the package {package}"
        return tool
    words = output(path, "-V").splitlines()[0].split()
    tool.version = next((w for w in reversed(words) if w[0].isdigit()), "")
    return tool


def everything(proctor, programs, folder, names, say=lambda text: None):
    """The tools with these names, installed where that was possible."""
    tools = []
    for cls in [c for c in peers.CLASSES if c.name in names]:
        say(f"installing {cls.name}")
        if cls in PYTHON:
            tools.append(python_tool(cls, folder))
        elif cls in SYSTEM:
            tools.append(system_tool(cls))
        elif cls is peers.Rust:
            tools.append(rust_tool(folder))
        elif cls is peers.Floor:
            tools.append(cls(programs["floor"]))
        else:
            tools.append(cls(str(proctor)))
            tools[-1].version = output(proctor, "--version").split()[-1]
    return tools
