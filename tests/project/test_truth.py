# SPDX-License-Identifier: Apache-2.0
"""What we say of jobs is what they really used."""
import os
import subprocess
import sys

import pytest

CANNOT = 77


def truth(root, build, *options):
    return subprocess.run([sys.executable, root / "tools/truth", build / "proctor", "--short", *options],
                          capture_output=True, text=True, timeout=300)


def test_jobs_used_what_we_say(root, build):
    done = truth(root, build)
    if done.returncode == CANNOT and os.environ.get("CI") != "true":
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout


def test_the_comparison_can_fail(root, build, tmp_path):
    """Where nobody takes in orphans, what they used is missing."""
    worse = tmp_path / "proctor"
    worse.write_text(f'#!/bin/sh\nshift\nexec {build}/proctor run --exact none "$@"\n')
    worse.chmod(0o755)
    done = truth(root, tmp_path, "--only", "doublefork")
    if done.returncode == CANNOT and os.environ.get("CI") != "true":
        pytest.skip(done.stderr)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED: doublefork at 10 Hz as root: cpu.time is" in done.stdout
