# SPDX-License-Identifier: Apache-2.0
"""The plugin for pytest: what tests used, and what they may use."""
import subprocess
import sys
import xml.etree.ElementTree as xml

from pythons import PLACES, clean_environment

TESTS = """
import pytest, subprocess, sys, time

def test_large():
    x = bytearray(b"1") * (200 << 20)

@pytest.mark.proctor(max_memory="100 MiB")
def test_too_large():
    x = bytearray(b"1") * (150 << 20)
    del x

@pytest.mark.proctor(max_growth="30 MiB", max_memory=10 * 2**30)
def test_small_enough():
    x = bytearray(b"1") * (20 << 20)

@pytest.mark.proctor(max_cpu=0.1)
def test_too_long():
    began = time.thread_time()
    while time.thread_time() < began + 0.3: pass

@pytest.mark.proctor(max_memory="100 MiB")
def test_a_child_counts():
    subprocess.run([sys.executable, "-c", "x = bytearray(b'1') * (150 << 20); import time; time.sleep(0.3)"])

@pytest.mark.proctor(max_memory="100 GiB")
def test_fails_by_itself():
    assert 0
"""


def run_pytest(folder, text, *options):
    (folder / "test_used.py").write_text(text)
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "proctor.pytest_plugin", "-p", "no:cacheprovider",
                           *options, "test_used.py"], cwd=folder, env=clean_environment(folder, **PLACES),
                          capture_output=True, text=True, timeout=120)


def used(report):
    """The rows of the table: MiB at the peak, MiB of growth, seconds."""
    rows = {}
    for line in report.splitlines():
        words = line.split()
        if len(words) == 7 and words[6].startswith("test_used.py::"):
            scale = {"B": 2**-20, "KiB": 2**-10, "MiB": 1, "GiB": 1024}
            rows[words[6].split("::")[1]] = (float(words[0]) * scale[words[1]], float(words[2]) * scale[words[3]],
                                             float(words[4]))
    return rows


def test_what_tests_used_is_shown_and_limits_are_kept(tmp_path):
    done = run_pytest(tmp_path, TESTS, "--proctor", "-v", "--junitxml", "junit.xml")
    assert "4 failed, 2 passed" in done.stdout, done.stdout
    assert "max_memory is 100.0 MiB" in done.stdout and "max_cpu is 0.10 s" in done.stdout
    assert "assert 0" in done.stdout, "what a test says itself comes first"
    rows = used(done.stdout)
    assert 195 < rows["test_large"][1] < 215 and 145 < rows["test_too_large"][1] < 165
    assert 15 < rows["test_small_enough"][1] < 30, "what the one before it used is not its own"
    assert 0.28 < rows["test_too_long"][2] < 0.6 and rows["test_a_child_counts"][1] > 145
    properties = xml.parse(tmp_path / "junit.xml").findall(".//property[@name='proctor_memory_bytes']")
    assert len(properties) == 6 and float(properties[0].get("value")) > 200 << 20


def test_limits_are_kept_without_the_option_and_nothing_is_shown(tmp_path):
    done = run_pytest(tmp_path, TESTS)
    assert "4 failed, 2 passed" in done.stdout and "what tests used" not in done.stdout


def test_a_marker_that_says_what_cannot_be(tmp_path):
    """It is an error of its test, which is named, and of no other."""
    marks = ("max_memory='2 stones'", "max_memry=3", "'2 GiB'", "max_cpu='1s'")
    tests = "".join(f"@pytest.mark.proctor({mark})\ndef test_{i}(): pass\n" for i, mark in enumerate(marks))
    done = run_pytest(tmp_path, f"import pytest\n{tests}def test_fine(): pass\n")
    assert "1 passed, 4 errors" in done.stdout and "INTERNALERROR" not in done.stdout, done.stdout + done.stderr
    for i, said in enumerate(("max_memory='2 stones' is no size: write 512M", "no max_memry; did you mean max_memory?",
                              "write max_memory='2 GiB'", "max_cpu='1s' is no number of seconds: write 1.5")):
        assert any(f"test_used.py::test_{i}: @pytest.mark.proctor: " in line and said in line
                   for line in done.stdout.splitlines()), (said, done.stdout)
