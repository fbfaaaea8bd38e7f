# SPDX-License-Identifier: Apache-2.0
"""What we say of the machine is what the tools say that people trust for it."""
import subprocess
import sys


def test_figures_of_the_machine_agree_with_the_tools(root, build, tmp_path):
    done = subprocess.run([sys.executable, root / "tools/accuracy", build / "proctor", "--seconds", "5", "--check"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "25 of 25" in done.stdout
