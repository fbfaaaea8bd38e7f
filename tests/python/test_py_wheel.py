# SPDX-License-Identifier: Apache-2.0
"""`make wheel`: one file with everything, used where there is neither a compiler nor any of our parts."""
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile

import pytest
from pythons import BUILD, PYTHONS, ROOT, clean_environment, run_script

KINDS = ["debian", min((name for name in PYTHONS if name != "debian"), key=lambda name: int(name.split(".")[1]),
                       default="debian")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    done = subprocess.run([sys.executable, ROOT / "tools" / "proctor_wheel.py", BUILD, tmp_path_factory.mktemp("wheel")],
                          check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module", params=sorted(set(KINDS)))
def installed(request, wheel, tmp_path_factory):
    """The python of a clean virtual environment with the wheel in it, and nothing from anywhere else."""
    place = tmp_path_factory.mktemp("clean")
    env = clean_environment(place)
    subprocess.run([PYTHONS[request.param], "-m", "venv", place / "venv"], check=True, env=env)
    subprocess.run([place / "venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index",
                    wheel], check=True, env=env)
    return place / "venv/bin/python"


def bare(folder, installed, **more):
    """No compiler, no command of ours but that of the wheel: the environment's own programs alone."""
    return clean_environment(folder, PATH=str(installed.parent), **more)


def no_development():
    """Words before a command that let it see neither headers nor a compiler, where that may be done."""
    unshare, sh, mount = map(shutil.which, ("unshare", "sh", "mount"))  # the script's own PATH has none of them
    hide = f'for i in /usr/include /usr/lib/gcc; do {mount} -t tmpfs none $i || exit 1; done; exec "$@"'
    words = [unshare, "--mount", sh, "-c", hide, "sh"]
    return words if subprocess.run([*words, "true"], capture_output=True).returncode == 0 else []


def without(folder, *libraries):
    """Libraries that cannot be loaded."""
    (folder / "libraries").mkdir(exist_ok=True)
    for name in libraries:
        (folder / "libraries" / name).write_text("no library")
    return {"LD_LIBRARY_PATH": str(folder / "libraries")}


def test_its_name_and_record_are_true(wheel):
    assert re.fullmatch(r"proctor-[\d.]+-py3-none-manylinux_2_\d+_\w+\.whl", os.path.basename(wheel))
    with zipfile.ZipFile(wheel) as z:
        names = set(z.namelist())
        (record,) = [name for name in names if name.endswith("/RECORD")]
        listed = {line.split(",")[0] for line in z.read(record).decode().splitlines()}
        (about,) = [name for name in names if name.endswith("/METADATA")]
        metadata = z.read(about).decode()
    assert listed == names and "proctor/py.typed" in names and "proctor/native/libproctor.so.0" in names
    assert "Requires-Python: >=3.9" in metadata and "Requires-Dist" not in metadata
    assert os.path.getsize(wheel) < 2_000_000


def test_the_same_files_make_the_same_wheel(wheel, tmp_path):
    subprocess.run([sys.executable, ROOT / "tools" / "proctor_wheel.py", BUILD, tmp_path], check=True,
                   capture_output=True)
    assert (tmp_path / os.path.basename(wheel)).read_bytes() == open(wheel, "rb").read()


def test_it_is_complete(installed, tmp_path):
    before = no_development()
    run_script(installed, """
        import proctor, os, subprocess, sys, time, shutil
        assert shutil.which("cc") is None and shutil.which("gcc") is None
        assert sys.argv[1] == "0" or not os.path.exists("/usr/include/stdio.h")
        assert os.path.dirname(proctor.command()) == os.path.dirname(sys.executable), proctor.command()
        with proctor.Monitor(interval=0.01, output="a.proctor") as m:
            time.sleep(0.1)
        from proctor._library import library
        assert library().path.startswith(os.path.dirname(proctor.__file__))
        m.report("a.html"); m.report("a.md")
        assert len(proctor.Run.open("a.proctor").samples(["mem.rss"])["mem.rss"]) >= 2
        r = proctor.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True)
        assert (r.returncode, r.stdout) == (0, "1\\n") and r.summary["cpu.time"].total > 0
        assert subprocess.run(["proctor", "--version"], capture_output=True, text=True).stdout.startswith("proctor ")
        assert subprocess.run([sys.executable, "-m", "proctor", "show", "last"], capture_output=True).returncode == 0
        """, tmp_path, len(before), env=bare(tmp_path, installed), before=before)


def test_without_libsqlite3(installed, tmp_path):
    """What needs it says so; everything else works."""
    env = bare(tmp_path, installed, **without(tmp_path, "libsqlite3.so.0"))
    done = run_script(installed, """
        import proctor, errno, sys
        def says(make):
            try: make()
            except proctor.Error as e: assert e.errno == errno.ENOSYS and "libsqlite3" in str(e), repr(e)
            else: raise AssertionError("without SQLite")
        with proctor.Monitor(interval=0.01) as m: pass
        assert m.summary["mem.rss"].peak > 1e6 and m.collect()["procs"] == 1
        says(lambda: proctor.Monitor(output="a.proctor").start())
        open("b.proctor", "wb").write(b"SQLite format 3\\0" + bytes(4096))
        says(lambda: proctor.Run.open("b.proctor"))
        r = proctor.run([sys.executable, "-c", "print(1); raise SystemExit(4)"], capture_output=True, text=True)
        assert (r.returncode, r.stdout) == (4, "1\\n") and "libsqlite3" in r.stderr, r.stderr
        try: r.summary
        except proctor.Error as e: print(e)
        else: raise AssertionError("of what was not recorded")
        """, tmp_path, env=env)
    assert done.stdout.strip()


def test_without_libcurl(installed, tmp_path):
    env = bare(tmp_path, installed, **without(tmp_path, "libcurl.so.4", "libcurl-gnutls.so.4"))
    run_script(installed, """
        import proctor, sys
        with proctor.Monitor(interval=0.01, output="a.proctor") as m: pass
        m.report("a.html")
        r = proctor.run([sys.executable, "-c", ""], options={"mlflow": "http://127.0.0.1:9"}, capture_output=True, text=True)
        assert r.returncode == 0 and "libcurl" in r.stderr, r.stderr
        assert r.summary["procs.started"].total == 1
        """, tmp_path, env=env)


@pytest.mark.parametrize("kind", ["otlp", "mlflow"])
def test_without_libcurl_nothing_is_published_and_a_monitor_says_so(installed, tmp_path, kind):
    """Once, and what was measured is whole."""
    env = bare(tmp_path, installed, **without(tmp_path, "libcurl.so.4", "libcurl-gnutls.so.4"))
    done = run_script(installed, f"""
        import proctor, logging, time
        logging.basicConfig(level=logging.WARNING, format="%(name)s %(levelname)s %(message)s")
        with proctor.Monitor(interval=0.05, output="a.proctor", {kind}="http://127.0.0.1:9") as m: time.sleep(0.2)
        assert m.summary["mem.rss"].peak > 1e6
        assert len(proctor.Run.open("a.proctor").samples(["mem.rss"])["mem.rss"]) >= 2
        """, tmp_path, env=env)
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"proctor WARNING {kind}: nothing is published: ") and "libcurl" in said, said


def test_pytest_finds_the_plugin(installed, tmp_path, wheel):
    """By its entry point: the package is put beside pytest, whose own files are Debian's."""
    place = tmp_path / "site"
    with zipfile.ZipFile(wheel) as z:
        z.extractall(place)
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--proctor", "-p", "no:cacheprovider", "test_a.py"],
                          cwd=tmp_path, env=clean_environment(tmp_path, PYTHONPATH=str(place)), capture_output=True,
                          text=True)
    assert done.returncode == 0 and "what tests used" in done.stdout, done.stdout + done.stderr


def test_a_library_that_is_not_there_is_said(tmp_path):
    for path, words in (("/no/such/lib.so", "cannot load libproctor"), ("/lib/x86_64-linux-gnu/libc.so.6", "another version")):
        if not os.path.exists(path) and words == "another version":
            path = "libc.so.6"
        done = run_script(sys.executable, "import proctor\ntry: proctor.Monitor()\nexcept proctor.Error as e: print(e)",
                          tmp_path, env=clean_environment(tmp_path, PYTHONPATH=str(ROOT / "python"), PROCTOR_LIBRARY=path))
        assert words in done.stdout, done.stdout


def test_the_loader_finds_the_library_and_one_beside_the_package_wins(tmp_path):
    """An installation without a wheel: the package somewhere, the library where the loader looks."""
    package = tmp_path / "site" / "proctor"
    shutil.copytree(ROOT / "python" / "proctor", package, ignore=shutil.ignore_patterns("native", "__pycache__"))
    env = clean_environment(tmp_path, PYTHONPATH=str(package.parent), LD_LIBRARY_PATH=str(BUILD))
    script = """
        import proctor
        assert proctor.Monitor().collect()["mem.rss"] > 1e6
        from proctor._library import library
        print(library().path)
        print(next(line.split()[-1] for line in open("/proc/self/maps") if "libproctor" in line))
        """

    def found():
        return run_script(sys.executable, script, tmp_path, env=env).stdout.split()
    assert found() == ["libproctor.so.0", str((BUILD / "libproctor.so.0").resolve())]
    (package / "native").mkdir()
    beside = shutil.copy(BUILD / "libproctor.so.0", package / "native")
    assert found() == [str(beside)] * 2
    env["PROCTOR_LIBRARY"] = str(BUILD / "libproctor.so.0")  # and who names one gets it
    assert found()[0] == env["PROCTOR_LIBRARY"]


if os.environ.get("PROCTOR_TEST_FULL") == "1":
    def test_pip_makes_the_same_of_the_source(wheel, tmp_path):
        """`pip wheel` of a source distribution, with nothing from an index: all that `make wheel` has, built anew."""
        sys.path.insert(0, str(ROOT / "tools"))
        import proctor_wheel
        name = proctor_wheel.build_sdist(tmp_path)
        with tarfile.open(tmp_path / name) as tar:
            tar.extractall(tmp_path)
        source = tmp_path / name[:-len(".tar.gz")]
        assert "Requires-Python: >=3.9" in (source / "PKG-INFO").read_text()
        venv.create(tmp_path / "venv", with_pip=True)
        done = subprocess.run([tmp_path / "venv/bin/python", "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps",
                               "-w", tmp_path, source], capture_output=True, text=True, env=clean_environment(tmp_path))
        assert done.returncode == 0, done.stderr
        with zipfile.ZipFile(tmp_path / os.path.basename(wheel)) as ours, zipfile.ZipFile(wheel) as z:
            assert ours.namelist() == z.namelist()
