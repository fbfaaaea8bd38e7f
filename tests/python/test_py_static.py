# SPDX-License-Identifier: Apache-2.0
"""What can be said of the package without running a job: types, age, examples, how fast it is imported."""
import os
import re
import subprocess
import sys

from pythons import PLACES, ROOT, clean_environment, run_script, tools

PACKAGE = ROOT / "python" / "proctor"
NEEDS_MORE = {"proctor.pytest_plugin", "proctor.__main__"}
FRAMES = ("frames", "pandas==2.3.3", "polars==1.35.2")
STAND_INS = """
    import sys, types
    sys.modules.update({"transformers": types.SimpleNamespace(TrainerCallback=object),
                        "lightning.pytorch": types.SimpleNamespace(Callback=object),
                        "mlflow": types.SimpleNamespace(active_run=lambda: None)})
    """
"""For frameworks that examples of integrations need. With the real ones they are in test_compat_*.py."""


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
        "import proctor\nfrom typing import Callable, Optional\n"
        "@proctor.monitored\ndef f(a: int) -> str:\n    return str(a)\n"
        "@proctor.monitored(interval=0.1)\ndef g(a: int) -> str:\n    return str(a)\n"
        "@proctor.monitored\nasync def h(a: int) -> str:\n    return f(a)\n"
        "class C:\n    @proctor.monitored\n    def method(self, a: int) -> str:\n        return str(a)\n"
        "async def main() -> str:\n    return await h(1)\n"
        "x: str = f(1)\ny: str = g(1)\nz: str = C().method(1)\n"
        "used: Optional[float] = f.summary['cpu.time'].total\n"
        "took = g.summary.duration + h.summary.duration + C().method.summary.duration + C.method.summary.duration\n"
        "reveal_type(took)\n"
        "as_before: Callable[[int], str] = f\nprint(list(map(g, [1])))\n"
        "with proctor.Monitor(on_sample=lambda s: print(s.elapsed, s['mem.rss'])) as m:\n    pass\n"
        "peak: Optional[float] = m.summary['mem.rss'].peak\n"
        "reveal_type(proctor.run(['a']).summary)\n"
        "f('wrong')\n"
        "g('wrong')\n"
        "wrong: int = C().method(1)\n"
        "f.nonsense\n")
    done = subprocess.run([where / "mypy", "--strict", "--cache-dir", tmp_path / "cache", "user.py"], cwd=tmp_path,
                          env={**os.environ, "MYPYPATH": str(PACKAGE.parent)}, capture_output=True, text=True)
    errors = re.findall(r"error: .*\[(.*)\]", done.stdout)
    assert errors == ["arg-type", "arg-type", "assignment", "attr-defined"], done.stdout
    assert 'Revealed type is "proctor._values.Summary"' in done.stdout
    assert 'Revealed type is "builtins.float"' in done.stdout, done.stdout


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
    """Each example of a docstring, but for those of data frames, which need more than Python has."""
    names = [name for name in modules() if name not in NEEDS_MORE]
    done = python(STAND_INS + """
    import doctest, importlib
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for name in sys.argv[1:]:
        for example in finder.find(importlib.import_module(name)):
            if not example.name.endswith((".to_pandas", ".to_polars")):
                runner.run(example)
    assert not runner.failures, runner.failures
    print(runner.tries)
    """, *names)
    assert int(done.stdout.split()[-1]) >= 170


def test_examples_of_data_frames_run(tmp_path):
    done = run_script(tools(*FRAMES) / "python", """
        import doctest, proctor._run
        result = doctest.testmod(proctor._run)
        assert not result.failed
        print(result.attempted)
        """, tmp_path)
    assert int(done.stdout.split()[-1]) >= 15


def test_everything_public_has_an_example(tmp_path):
    """Classes and functions that modules offer; and what they consist of is at least said."""
    names = [name for name in modules() if name not in NEEDS_MORE and "._" not in name]
    done = run_script(sys.executable, STAND_INS + """
    import importlib, inspect
    def offered(module):
        return [getattr(module, name) for name in getattr(module, "__all__", ())]
    def parts(one):
        kinds = (property, classmethod, staticmethod, types.FunctionType)
        members = vars(one).items() if inspect.isclass(one) else ()
        return [value for name, value in members if not name.startswith("_") and isinstance(value, kinds)]
    things = {one for name in sys.argv[1:] for one in offered(importlib.import_module(name))
              if inspect.isclass(one) or inspect.isfunction(one)}
    def said(one): return inspect.getdoc(getattr(one, "__func__", one)) or ""  # older ones do not pass it on
    import proctor
    things |= {proctor.Monitor.start, proctor.Monitor.stop, proctor.Monitor.mark, proctor.Monitor.phase,
               proctor.Monitor.report, proctor.Monitor.collect, proctor.Run.ls, proctor.Run.samples,
               proctor.Run.to_pandas, proctor.Run.to_polars, proctor.Run.open.__func__}
    bare = [one.__qualname__ for one in things if ">>> " not in said(one)]
    silent = [f"{one.__name__}: {part}" for one in things for part in parts(one) if not said(part)]
    assert not bare and not silent, (bare, silent)
    print(len(things))
    """, tmp_path, *names)
    assert int(done.stdout) >= 70


def test_examples_of_the_plugin_run():
    import doctest

    import proctor.pytest_plugin
    assert doctest.testmod(proctor.pytest_plugin) == (0, 1)


def test_importing_is_fast(python, tmp_path):
    """Below 30 ms, and not a tenth of the standard library for it: the best of some, of CPU time, for a shared
    machine. Nothing in it waits: not half a second goes by even where others have the cores."""
    env = {**clean_environment(tmp_path, **PLACES), "PYTHONPYCACHEPREFIX": str(tmp_path / "pyc")}
    env.pop("PYTHONDONTWRITEBYTECODE")
    script = """
        import sys, time
        before = set(sys.modules)  # of the site
        wall = time.perf_counter()
        began = time.process_time(); import proctor; took = time.process_time() - began
        wall = time.perf_counter() - wall
        heavy = {"logging", "subprocess", "inspect", "asyncio", "dataclasses", "pytest", "IPython", "numpy", "tempfile",
                 "pandas", "polars"}
        assert not heavy & (set(sys.modules) - before), heavy & set(sys.modules)
        began = time.process_time(); proctor.version(); print(took, time.process_time() - began, wall)
        """
    runs = [tuple(map(float, python(script, env=env).stdout.split())) for _ in range(5)]
    assert min(took for took, _, _ in runs) < 0.030, runs
    assert min(loading for _, loading, _ in runs) < 0.010, runs
    assert min(wall for _, _, wall in runs) < 0.5, runs


def test_importing_leaves_data_frames_alone(tmp_path):
    """Where they are there to be imported."""
    run_script(tools(*FRAMES) / "python", """
        import importlib.util, sys
        import proctor
        with proctor.Monitor(output="a.proctor"): pass
        proctor.Run.open("a.proctor").samples()
        frames = {"pandas", "polars", "numpy"}
        assert all(map(importlib.util.find_spec, frames)), "a check that cannot fail"
        assert not frames & set(sys.modules)
        """, tmp_path)


def test_the_document_is_true(tmp_path):
    """Each Python example of doc/python.md runs as it stands, in the order in which they are written."""
    text = (ROOT / "doc" / "python.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(examples) >= 4
    (tmp_path / "examples.py").write_text("\n".join(examples))
    done = subprocess.run([sys.executable, "examples.py"], cwd=tmp_path, env=clean_environment(tmp_path, **PLACES),
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_readme_is_true(tmp_path):
    """Its Python example, as it stands; that the package is imported goes without saying there."""
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    done = run_script(sys.executable, "import proctor\n" + example, tmp_path)
    assert float(done.stdout) > 1e6
    assert (tmp_path / "run.proctor").exists() and "<html" in (tmp_path / "run.html").read_text()
