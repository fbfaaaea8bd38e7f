# SPDX-License-Identifier: Apache-2.0
"""What can be said of the package without running a job: types, age, examples, how fast it is imported."""
import os
import re
import subprocess
import sys

from pythons import PLACES, ROOT, clean_environment, tools

PACKAGE = ROOT / "python" / "proctor"


def modules():
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in sorted(PACKAGE.rglob("*.py"))]
    return [name[:-len(".__init__")] if name.endswith(".__init__") else name for name in names]


def test_types_are_complete():
    where = tools("checks", "mypy==1.18.2", "vermin==1.9.2", "pytest==8.4.2")
    done = subprocess.run([where / "mypy", "--config-file", ROOT / "pyproject.toml", "--python-executable",
                           where / "python", "--cache-dir", ROOT / "build" / "mypy-cache", PACKAGE], cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 0 and "no issues" in done.stdout, done.stdout + done.stderr
    assert (PACKAGE / "py.typed").exists()


def test_types_of_users(tmp_path):
    """What the package promises to those who check their own code."""
    where = tools("checks", "mypy==1.18.2", "vermin==1.9.2", "pytest==8.4.2")
    (tmp_path / "user.py").write_text(
        "import proctor\nfrom typing import Optional\n"
        "@proctor.monitored\ndef f(a: int) -> str:\n    return str(a)\n"
        "@proctor.monitored(interval=0.1)\ndef g(a: int) -> str:\n    return str(a)\n"
        "x: str = f(1)\ny: str = g(1)\n"
        "with proctor.Monitor(on_sample=lambda s: print(s.elapsed, s['mem.rss'])) as m:\n    pass\n"
        "peak: Optional[float] = m.summary['mem.rss'].peak\n"
        "reveal_type(proctor.run(['a']).summary)\n"
        "f('wrong')\n")
    done = subprocess.run([where / "mypy", "--strict", "--cache-dir", tmp_path / "cache", "user.py"], cwd=tmp_path,
                          env={**os.environ, "MYPYPATH": str(PACKAGE.parent)}, capture_output=True, text=True)
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1 and 'Argument 1 to "f"' in errors[0], done.stdout
    assert 'Revealed type is "proctor._values.Summary"' in done.stdout


def test_nothing_newer_than_3_9_is_used(tmp_path):
    where = tools("checks", "mypy==1.18.2", "vermin==1.9.2", "pytest==8.4.2")

    def vermin(*what):
        return subprocess.run([where / "vermin", "-t=3.9-", "--no-tips", "--violations", "--eval-annotations", *what],
                              capture_output=True, text=True)
    (tmp_path / "new.py").write_text("match 1:\n    case 1: pass\n")
    assert vermin(tmp_path / "new.py").returncode != 0, "a check that cannot fail"
    done = vermin(PACKAGE)
    assert done.returncode == 0, done.stdout


def test_examples_run(python):
    """Each example of a docstring, with the modules that need nothing that Python does not have."""
    needs_more = {"proctor.pytest_plugin", "proctor.__main__"}
    names = [name for name in modules() if name not in needs_more and ".compat" not in name]
    done = python("""
        import doctest, importlib, sys
        tried = 0
        for name in sys.argv[1:]:
            result = doctest.testmod(importlib.import_module(name))
            assert not result.failed, name
            tried += result.attempted
        print(tried)
        """, *names)
    assert int(done.stdout.split()[-1]) >= 30


def test_examples_of_the_plugin_run():
    import doctest

    import proctor.pytest_plugin
    assert doctest.testmod(proctor.pytest_plugin) == (0, 1)


def test_importing_is_fast(python, tmp_path):
    """Below 30 ms, and not a tenth of the standard library for it: the best of some, of CPU time, for a shared
    machine. Nothing in it waits."""
    env = {**clean_environment(tmp_path, **PLACES), "PYTHONPYCACHEPREFIX": str(tmp_path / "pyc")}
    env.pop("PYTHONDONTWRITEBYTECODE")
    script = """
        import sys, time
        before = set(sys.modules)  # of the site
        began = time.process_time(); import proctor; took = time.process_time() - began
        heavy = {"logging", "subprocess", "inspect", "asyncio", "dataclasses", "pytest", "IPython", "numpy", "tempfile"}
        assert not heavy & (set(sys.modules) - before), heavy & set(sys.modules)
        began = time.process_time(); proctor.version(); print(took, time.process_time() - began)
        """
    runs = [tuple(map(float, python(script, env=env).stdout.split())) for _ in range(5)]
    assert min(took for took, _ in runs) < 0.030, runs
    assert min(loading for _, loading in runs) < 0.010, runs


def test_the_document_is_true(tmp_path):
    """Each Python example of doc/python.md runs as it stands, in the order in which they are written."""
    text = (ROOT / "doc" / "python.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(examples) >= 4
    (tmp_path / "examples.py").write_text("\n".join(examples))
    done = subprocess.run([sys.executable, "examples.py"], cwd=tmp_path, env=clean_environment(tmp_path, **PLACES),
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
