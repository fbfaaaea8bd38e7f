#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make test`: builds with warnings as errors, runs everything, ends in one line
`N passed, N failed, N skipped`. Twice: plain, and under AddressSanitizer and UBSan."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILDS = {"build-test": [], "build-asan": ["-Db_sanitize=address,undefined", "-Db_lundef=false"]}
SANITIZER = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
             "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs"]


class Count:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, passed, failed, skipped=0):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped


def run(args, **kw):
    return subprocess.run([str(a) for a in args], cwd=ROOT, **kw)


def title(text):
    print(f"\n== {text}", flush=True)


def build(folder, options):
    title(f"build {folder}")
    if not (ROOT / folder / "build.ninja").exists():
        run(["meson", "setup", folder, "-Dwerror=true", "-Dtests=enabled", *options], check=True,
            stdout=subprocess.DEVNULL)
    done = run(["ninja", "-C", folder, "--quiet"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(done.stdout)
        return False
    return True


def unit(folder, count, env):
    """Every cmocka program speaks TAP."""
    title(f"unit tests, {folder}")
    tests = json.loads(run(["meson", "introspect", "--tests", folder], check=True,
                           stdout=subprocess.PIPE, text=True).stdout)
    for test in tests:
        done = run(test["cmd"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                   errors="replace", timeout=300,
                   env={**os.environ, **test["env"], **env, "CMOCKA_MESSAGE_OUTPUT": "TAP"})
        lines = done.stdout.splitlines()
        skipped = sum(bool(re.match(r"ok .*# SKIP", line)) for line in lines)
        passed = sum(line.startswith("ok ") for line in lines) - skipped
        failed = sum(line.startswith("not ok ") for line in lines)
        if done.returncode and not failed:
            failed = 1  # it died
        if not passed + failed + skipped:
            failed = 1  # a program without a test tests nothing
        if failed:
            print(done.stdout)
        print(f"{test['name']}: {passed} passed, {failed} failed", flush=True)
        count.add(passed, failed, skipped)


def pytest(folder, count, env, paths):
    title(f"{' '.join(paths)}, {folder}")
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch) / "report.xml"
        done = run([*PYTEST, "--junitxml", report, *paths],
                   env={**os.environ, **env, "PROCTOR": str(ROOT / folder / "proctor"),
                        "PROCTOR_BUILD": str(ROOT / folder)})
        if not report.exists():
            count.add(0, 1)
            return
        suite = xml.parse(report).getroot().find("testsuite")
        total, skipped = int(suite.get("tests")), int(suite.get("skipped"))
        failed = int(suite.get("failures")) + int(suite.get("errors"))
        if done.returncode and not failed:
            failed = 1
        count.add(total - failed - skipped, failed, skipped)


def fuzz(count, seconds):
    """Each parser is one test."""
    title(f"fuzzing, {seconds} seconds each")
    done = run([sys.executable, "tools/fuzz", "--seconds", seconds], stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    results = re.findall(r"^fuzz \w+: (FAILED)?", done.stdout, re.M)
    failed = sum(map(bool, results))
    if done.returncode and not failed:
        failed = 1  # it could not even begin
    count.add(len(results) - sum(map(bool, results)), failed)


def browser(count):
    """The page of the report in Chromium."""
    title("the page, in a browser")
    done = run([sys.executable, "tools/browser-tests", "build-test/browser"], stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    found = re.search(r"^browser: (\d+) passed, (\d+) failed, (\d+) skipped$", done.stdout, re.M)
    count.add(*(map(int, found.groups()) if found else (0, 1)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="also what takes its time")
    full = parser.parse_args().full
    began = time.monotonic()
    count = Count()
    for folder, options in BUILDS.items():
        sanitized = folder == "build-asan"
        env = {**SANITIZER, "PROCTOR_TEST_SANITIZED": "1"} if sanitized else {}
        if full:
            env["PROCTOR_TEST_FULL"] = "1"
        if not build(folder, options):
            count.add(0, 1)
            continue
        unit(folder, count, env)
        pytest(folder, count, env, ["tests/cli"] if sanitized else ["tests/cli", "tests/project"])
    browser(count)
    fuzz(count, 60 if full else 20)
    skipped_is_failure = os.environ.get("CI") == "true" and count.skipped
    print(f"\n{time.monotonic() - began:.0f} seconds")
    if skipped_is_failure:
        print("with CI=true nothing may be skipped")
    print(f"{count.passed} passed, {count.failed} failed, {count.skipped} skipped")
    return 1 if count.failed or skipped_is_failure or not count.passed else 0


if __name__ == "__main__":
    sys.exit(main())
