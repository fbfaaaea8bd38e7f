# SPDX-License-Identifier: Apache-2.0
"""What `make`, `make demo` and `make install` promise, in a copy of the tree."""
import json
import os
import shutil
import subprocess

import pytest


def make(clone, clean_env, *args):
    return subprocess.run(["make", *args], cwd=clone, env=clean_env, check=True, capture_output=True, text=True)


def test_make_builds_demo_runs_and_install_installs(clone, clean_env, tmp_path):
    make(clone, clean_env)
    assert os.access(clone / "build/proctor", os.X_OK)
    assert (clone / "build/libproctor.so.0").exists()
    demo = make(clone, clean_env, "demo")
    assert "CPU" in demo.stderr and "complete" in demo.stderr and "demo: churn" in demo.stdout

    stage = tmp_path / "stage"
    make(clone, clean_env, "install", "PREFIX=/opt/p", f"DESTDIR={stage}")
    top = stage / "opt/p"
    assert subprocess.run([top / "bin/proctor", "--version"], check=True, capture_output=True).stdout
    assert (top / "share/man/man1/proctor.1").exists()
    config = next(top.rglob("proctor.pc"))
    env = {**clean_env, "PKG_CONFIG_PATH": str(config.parent), "PKG_CONFIG_SYSROOT_DIR": str(stage)}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "proctor"], env=env, check=True,
                           capture_output=True, text=True).stdout.split()
    library = next(top.rglob("libproctor.so.0")).parent

    def example(name):
        """What one of them prints, built against what was installed."""
        subprocess.run(["cc", "-Wall", "-Werror", clone / f"examples/{name}.c", "-o", tmp_path / name, *flags],
                       check=True)
        return subprocess.run([tmp_path / name], env={**env, "LD_LIBRARY_PATH": str(library)}, check=True,
                              capture_output=True, text=True).stdout

    samples, cpu = example("watch").splitlines()[-1].split(" samples, ")
    assert int(samples) >= 2 and float(cpu.split()[0]) > 0.01
    summary = json.loads(example("phases"))
    load, work = summary["phases"]
    assert (load["name"], work["name"]) == ("load", "work") and load["metrics"]["mem.rss"]["peak"] > 64 << 20
    assert work["metrics"]["cpu.time"]["total"] > 0.01
    assert [e["data"]["step"] for e in summary["events"] if e["type"] == "mark"] == [0, 1, 2]
    subprocess.run([top / "bin/proctor", "run", "-q", "-i", "20ms", "sleep", "0.1"], env=env, check=True)
    assert " samples, " in example("read_run")


def test_examples_are_short(clone):
    for name in ("watch", "phases", "read_run"):
        assert len((clone / f"examples/{name}.c").read_text().splitlines()) <= 40


def test_library_exports_only_the_public_names(build):
    out = subprocess.run(["nm", "-D", "--defined-only", build / "libproctor.so.0"], check=True, capture_output=True,
                         text=True).stdout
    names = [line.split()[-1] for line in out.splitlines()]
    assert names and all(name.startswith("proctor_") for name in names)


def test_missing_tools_are_said(clone, tmp_path):
    """Without apt-get the message names what is missing and the remedy."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "test", "id", "cat", "mktemp", "rm", "env"):
        (tools / name).symlink_to(subprocess.run(["sh", "-c", f"command -v {name}"], capture_output=True,
                                                 text=True).stdout.strip() or f"/usr/bin/{name}")
    done = subprocess.run(["/bin/sh", clone / "tools/install-deps", "build"], env={"PATH": str(tools)},
                          capture_output=True, text=True)
    assert done.returncode == 1
    assert "meson" in done.stderr and "package manager" in done.stderr


@pytest.mark.parametrize("missing", [True, False], ids=["scdoc is missing", "nothing is missing"])
def test_root_is_asked_for_only_when_it_must(clone, tmp_path, missing):
    """As an ordinary user, with an apt-get and a sudo that only write down what they are asked."""
    if os.getuid() != 0:
        pytest.fail("this test becomes an ordinary user, which only root can")
    tools, log = tmp_path / "bin", tmp_path / "log"
    tools.mkdir()
    for name in ("sh", "test", "id", "cat", "mktemp", "rm", "env", "cc", "meson", "ninja", "pkg-config"):
        (tools / name).symlink_to(shutil.which(name) or "/bin/true")
    if not missing:
        (tools / "scdoc").symlink_to("/bin/true")
    for name in ("sudo", "apt-get"):
        (tools / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {log}\n')
        (tools / name).chmod(0o755)
    tmp_path.chmod(0o777)
    for folder in [tmp_path, *tmp_path.parents]:
        if os.stat(folder).st_uid == 0 and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o011)
    done = subprocess.run(["/bin/sh", clone / "tools/install-deps", "build"], user=65534, group=65534,
                          env={"PATH": str(tools), "TMPDIR": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = log.read_text() if log.exists() else ""
    assert ("sudo apt-get update" in said and "install -y --no-install-recommends scdoc" in said) == missing
    assert bool(said) == missing
