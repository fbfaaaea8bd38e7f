# SPDX-License-Identifier: Apache-2.0
"""`make test` tries what failed a second time: that must neither hide nor lose anything."""
import importlib.util
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def runner():
    spec = importlib.util.spec_from_file_location("run_tests", ROOT / "tools/run_tests.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outcome(runner, tmp_path, text, capfd):
    (tmp_path / "test_it.py").write_text(text)
    count = runner.Count()
    runner.pytest(count, [[("build-test", {"MARK": str(tmp_path / "mark")}, [str(tmp_path / "test_it.py")])]])
    return count, capfd.readouterr().out


FLAKY = """
import os, pathlib, pytest
mark = pathlib.Path(os.environ["MARK"])
def test_good(): pass
def test_skipped(): pytest.skip("why")
@pytest.mark.parametrize("name", ["a/b [c]", "\x1b"])
def test_once(name):
    seen = mark.with_suffix("." + str(len(name)))
    if not seen.exists():
        seen.touch()
        assert name == "first failure"
"""


def test_what_passes_alone_is_passed_and_named(runner, tmp_path, capfd):
    count, out = outcome(runner, tmp_path, FLAKY, capfd)
    assert (count.passed, count.failed, count.skipped) == (3, 0, 1)
    assert len(count.again) == 2 and all("test_once" in name for name in count.again)
    assert out.count("first failure") >= 2, "the first failure is not hidden"


def test_what_fails_twice_has_failed(runner, tmp_path, capfd):
    count, _ = outcome(runner, tmp_path, FLAKY + "\ndef test_bad(): assert False\n", capfd)
    assert (count.passed, count.failed, count.skipped) == (3, 1, 1)
    assert len(count.again) == 2


def test_setups_count(runner, tmp_path, capfd):
    text = "import pytest\n@pytest.fixture\ndef x(): raise OSError\ndef test_a(x): pass\ndef test_b(): pass\n"
    count, _ = outcome(runner, tmp_path, text, capfd)
    assert (count.passed, count.failed, count.again) == (1, 1, [])


def test_many_failures_are_no_accident(runner, tmp_path, capfd):
    text = FLAKY + f"""
@pytest.mark.parametrize("i", range({runner.SECOND_TRIES + 1}))
def test_many(i): assert mark.with_suffix(".1").exists() and False
"""
    count, _ = outcome(runner, tmp_path, text, capfd)
    assert (count.passed, count.failed, count.again) == (1, runner.SECOND_TRIES + 3, [])


def test_a_file_that_cannot_be_read_is_a_failure(runner, tmp_path, capfd):
    count, _ = outcome(runner, tmp_path, "import nothing_of_that_name\n", capfd)
    assert count.failed == 1 and not count.again


def test_two_files_of_one_name_are_a_failure(runner, tmp_path, capfd):
    """pytest refuses them, another one at the second try."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_same.py").write_text("def test_it(): pass\n")
    count = runner.Count()
    runner.pytest(count, [[("build-test", {}, [str(tmp_path / "a"), str(tmp_path / "b")])]])
    assert count.failed and not count.again


def test_what_a_sanitizer_found_is_not_tried_again(runner, tmp_path, capfd):
    text = FLAKY.replace("first failure", "ERROR: AddressSanitizer: heap-use-after-free")
    count, _ = outcome(runner, tmp_path, text, capfd)
    assert (count.passed, count.failed, count.again) == (1, 2, [])


def test_both_builds_are_tried_and_nothing_is_lost(runner, tmp_path, capfd):
    """Side by side, what is to be alone afterwards; what each printed is there, and all of it counts."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_it.py").write_text(FLAKY)
    (tests / "test_cost.py").write_text("import os\ndef test_cost(): assert os.environ['MARK'].endswith('one')\n")
    runner.ALONE = [str(tests / "test_cost.py")]
    count = runner.Count()
    one, two, too = ((name, {"MARK": str(tmp_path / name)}, [str(tests)]) for name in ("one", "two", "too"))
    runner.pytest(count, [[one], [two, too]])
    assert (count.passed, count.failed, count.skipped) == (10, 2, 3)
    assert sorted(name[-3:] for name in count.again) == ["one", "one", "too", "too", "two", "two"]
    out = capfd.readouterr().out
    assert re.search("meanwhile.* two,.* too", out) and out.count("first failure") >= 6
    assert out.index("alone: ") > out.rindex("meanwhile")


def test_what_is_to_be_alone_is_there(runner):
    assert all((ROOT / name).exists() for name in runner.ALONE)


@pytest.mark.parametrize("words, full", [(["--full"], True), ([], False)])
def test_the_longer_suite_is_longer_everywhere(runner, monkeypatch, words, full):
    suites = []
    monkeypatch.setattr(runner.sys, "argv", ["run_tests.py", *words])
    monkeypatch.setattr(runner, "pytest", lambda count, lanes: suites.extend(suite for lane in lanes for suite in lane))
    for name, answer in (("build", True), ("unit", None), ("begin_fuzz", None), ("browser", None), ("fuzz", None)):
        monkeypatch.setattr(runner, name, lambda *_, answer=answer: answer)
    runner.main()
    assert {path for _, _, paths in suites for path in paths} == {"tests/cli", "tests/project", "tests/python"}
    assert all((env.get("PROCTOR_TEST_FULL") == "1") == full for _, env, _ in suites), suites
