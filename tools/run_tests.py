#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make test`: builds with warnings as errors, runs everything, ends in one line
`N passed, N failed, N skipped`. Twice: plain, and under AddressSanitizer and UBSan, side by side
where they do not disturb each other.

Many tests are about time, and a shared machine may stand still for a second. So what fails is tried
once more, alone, and counts as passed if it passes then; its first failure stays in the output and
its name stands in the end. Where more than a few fail the machine is not the reason, nor is it where a
sanitizer has found something: no second try."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILDS = {"build-test": [], "build-asan": ["-Db_sanitize=address,undefined", "-Db_lundef=false"]}
SANITIZER = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
             "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
PYTEST = [sys.executable, "-m", "pytest", "-q", "-rs"]
SECOND_TRIES = 8  # in the whole run
# About what things cost, or about all of the machine: nothing else may run beside these.
ALONE = ["tests/cli/test_floor.py",
         *(f"tests/project/test_{name}.py" for name in ("accuracy", "bench", "fleet_size", "publish_cost", "report_cost")),
         "tests/python/test_py_cost.py"]
DEFECT = re.compile(r"(Address|Leak|UndefinedBehavior)Sanitizer|runtime error:")


class Count:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.again = []  # what passed at the second try

    def may_try_again(self, failed):
        return 0 < failed <= SECOND_TRIES - len(self.again)

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


def unit_program(test, env):
    """Every cmocka program speaks TAP. How many passed, failed, were skipped; was it time, perhaps?"""
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
    return (passed, failed, skipped), not DEFECT.search(done.stdout)


def unit(folder, count, env):
    title(f"unit tests, {folder}")
    tests = json.loads(run(["meson", "introspect", "--tests", folder], check=True,
                           stdout=subprocess.PIPE, text=True).stdout)
    for test in tests:
        found, perhaps = unit_program(test, env)
        if perhaps and count.may_try_again(found[1]):
            found, _ = unit_program(test, env)
            if not found[1]:
                count.again.append(f"{test['name']}, {folder}")
        count.add(*found)


class Suite:
    """Tests of the command against one build."""

    def __init__(self, folder, env, words, scratch):
        self.folder, self.env, self.words = folder, env, words
        self.name = f"{' '.join(w for w in words if w[0] != '-')} with {folder}"
        self.scratch = pathlib.Path(tempfile.mkdtemp(dir=scratch))

    def try_them(self, *more, out=None):
        """What failed by name; how many passed, failed, were skipped; was it time, perhaps?"""
        report = self.scratch / "report.xml"
        report.unlink(missing_ok=True)
        done = run([*PYTEST, "-o", f"cache_dir={self.scratch}/cache", "--junitxml", report, *more, *self.words],
                   stdout=out, stderr=out and subprocess.STDOUT,
                   env={**os.environ, **self.env, "PROCTOR": str(ROOT / self.folder / "proctor"),
                        "PROCTOR_BUILD": str(ROOT / self.folder)})
        if not report.exists():
            return [], (0, 1, 0), False
        suite = xml.parse(report).getroot().find("testsuite")
        total, skipped = int(suite.get("tests")), int(suite.get("skipped"))
        bad = [c for c in suite.iter("testcase") if c.find("failure") is not None or c.find("error") is not None]
        failed = len(bad)
        if done.returncode and not failed:
            failed = 1
        perhaps = not DEFECT.search("".join(text for case in bad for text in case.itertext()))
        names = [f"{c.get('classname')}.{c.get('name')}" for c in bad]
        return names, (total - failed - skipped, failed, skipped), perhaps

    def first(self, out=None):
        self.found = self.try_them(out=out)

    def second(self, count):
        names, (passed, failed, skipped), perhaps = self.found
        if names and perhaps and count.may_try_again(failed):
            title(f"once more: {', '.join(names)}, {self.folder}")
            still, (mended, failing, _), _ = self.try_them("--last-failed")
            # Nothing else may have come in between: as many as failed were tried.
            if mended + failing == failed:
                passed, failed = passed + mended, failing
                count.again += [f"{name}, {self.folder}" for name in names if name not in still][:mended]
        count.add(passed, failed, skipped)


def first_together(lanes):
    """Tests mostly wait. What those of the first lane print is seen at once, the others' afterwards."""
    def go(lane, out=None):
        for suite in lane:
            suite.first(out)

    outs = [tempfile.TemporaryFile("w+") for _ in lanes[1:]]
    threads = [threading.Thread(target=go, args=[lane, out]) for lane, out in zip(lanes[1:], outs)]
    for thread in threads:
        thread.start()
    go(lanes[0])
    for thread, out, lane in zip(threads, outs, lanes[1:]):
        thread.join()
        title(f"meanwhile, {', '.join(suite.name for suite in lane)}")
        out.seek(0)
        print(out.read(), flush=True)
        out.close()


def among(paths):
    return [name for name in ALONE if name.startswith(tuple(f"{path}/" for path in paths))]


def pytest(count, lanes):
    """A lane is a list of suites, one after the other: folder, environment and paths of each. Second tries come
    last, when nothing else runs."""
    with tempfile.TemporaryDirectory() as scratch:
        together = [[Suite(folder, env, [*(f"--ignore={name}" for name in among(paths)), *paths], scratch)
                     for folder, env, paths in lane] for lane in lanes]
        title(", ".join(suite.name for suite in together[0]))
        first_together(together)
        alone = [Suite(folder, env, among(paths), scratch) for lane in lanes for folder, env, paths in lane
                 if among(paths)]
        for suite in alone:
            title(f"alone: {suite.name}")
            suite.first()
        for suite in [suite for lane in together for suite in lane] + alone:
            suite.second(count)


def begin_fuzz(seconds):
    """Beside the page, and behind it: nobody waits for it."""
    return subprocess.Popen(["nice", "-n", "10", sys.executable, "tools/fuzz", "--seconds", str(seconds)], cwd=ROOT,
                            stdout=subprocess.PIPE, text=True)


def fuzz(count, seconds, done):
    """Each parser is one test."""
    title(f"fuzzing, {seconds} seconds each")
    text, _ = done.communicate()
    print(text, flush=True)
    results = re.findall(r"^fuzz \w+: (FAILED)?", text, re.M)
    failed = sum(map(bool, results))
    if done.returncode and not failed:
        failed = 1  # it could not even begin
    count.add(len(results) - sum(map(bool, results)), failed)


def browser_once():
    done = run([sys.executable, "tools/browser-tests", "build-test/browser"], stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    found = re.search(r"^browser: (\d+) passed, (\d+) failed, (\d+) skipped$", done.stdout, re.M)
    return tuple(map(int, found.groups())) if found else (0, 1, 0)


def browser(count):
    """The page of the report in Chromium."""
    title("the page, in a browser")
    found = browser_once()
    if found[0] and count.may_try_again(found[1]):
        found = browser_once()
        if not found[1]:
            count.again.append("the page, in a browser")
    count.add(*found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="also what takes its time")
    full = parser.parse_args().full
    began = time.monotonic()
    count = Count()
    kinds = []
    longer = {"PROCTOR_TEST_FULL": "1"} if full else {}
    for folder, options in BUILDS.items():
        sanitized = folder == "build-asan"
        env = {**longer, **SANITIZER, "PROCTOR_TEST_SANITIZED": "1"} if sanitized else longer
        if not build(folder, options):
            count.add(0, 1)
            continue
        unit(folder, count, env)
        kinds.append([(folder, env, ["tests/cli"] if sanitized else ["tests/cli", "tests/project"])])
    if kinds:
        # An interpreter cannot load what the sanitizers need first.
        kinds[-1].append(("build-test", longer, ["tests/python"]))
        pytest(count, kinds)
    seconds = 60 if full else 20
    fuzzing = begin_fuzz(seconds)
    browser(count)
    fuzz(count, seconds, fuzzing)
    skipped_is_failure = os.environ.get("CI") == "true" and count.skipped
    print(f"\n{time.monotonic() - began:.0f} seconds")
    for name in count.again:
        print(f"passed at the second try: {name}")
    if skipped_is_failure:
        print("with CI=true nothing may be skipped")
    print(f"{count.passed} passed, {count.failed} failed, {count.skipped} skipped")
    return 1 if count.failed or skipped_is_failure or not count.passed else 0


if __name__ == "__main__":
    sys.exit(main())
