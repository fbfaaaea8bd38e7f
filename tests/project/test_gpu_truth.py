# SPDX-License-Identifier: Apache-2.0
"""What `tools/gpu-truth` measured on a machine with a GPU stays in the document; without one the job says so."""
import subprocess
import sys


def test_its_part_of_the_document_is_replaced_and_kept(root, tmp_path):
    tool = [sys.executable, root / "tools/gpu-truth"]
    document, part = tmp_path / "accuracy.md", tmp_path / "gpu.md"
    document.write_text("# Accuracy\n\nfirst\n")
    for figure in ("old", "new"):
        part.write_text(f"<!-- gpu-truth -->\n{figure}\n<!-- /gpu-truth -->\n")
        subprocess.run([*tool, "--insert", part, document], check=True)
    assert document.read_text() == "# Accuracy\n\nfirst\n\n" + part.read_text() and "old" not in document.read_text()
    kept = subprocess.run([*tool, "--kept", document], check=True, capture_output=True, text=True).stdout
    assert kept == part.read_text()
    none = subprocess.run([*tool, "--kept", tmp_path / "none.md"], check=True, capture_output=True, text=True).stdout
    assert none == ""


def test_the_job_says_that_there_is_no_gpu(build, tmp_path):
    """With an empty folder first in the loader's path: no driver's library, whatever this machine has."""
    (tmp_path / "libcuda.so.1").write_text("no library")
    done = subprocess.run([build / "gpu_phases", "phases"], capture_output=True, text=True,
                          env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 77 and "libcuda" in done.stderr and done.stdout == ""
    assert subprocess.run([build / "gpu_phases"], capture_output=True).returncode == 2
