# SPDX-License-Identifier: Apache-2.0
"""Notebooks, executed without a browser."""
import json
import subprocess

import pytest
from pythons import PLACES, clean_environment, tools

EXECUTE = """
import json, sys, nbformat, nbclient
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in json.load(sys.stdin)])
try:
    nbclient.NotebookClient(book, timeout=60, kernel_name="python3").execute()
except nbclient.exceptions.CellExecutionError as e:
    print(json.dumps({"error": str(e)}), file=sys.stderr)
print(nbformat.writes(book))
"""


@pytest.fixture
def notebook(tmp_path):
    """Executes cells in a kernel; their outputs, and whether one has failed."""
    where = tools("notebook", "nbclient==0.10.2", "ipykernel==6.30.1")

    def execute(*cells):
        done = subprocess.run([where / "python", "-c", EXECUTE], input=json.dumps(cells), capture_output=True, text=True,
                              cwd=tmp_path, env=clean_environment(tmp_path, **PLACES), timeout=120)
        assert done.returncode == 0, done.stderr
        return [cell["outputs"] for cell in json.loads(done.stdout)["cells"]], '"error"' in done.stderr
    return execute


def html_of(outputs):
    return "".join("".join(out["data"]["text/html"]) for out in outputs if "text/html" in out.get("data", {}))


def test_a_cell_is_measured(notebook, tmp_path):
    outputs, failed = notebook(
        "%load_ext proctor",
        "%%proctor -i 10ms -o cell.proctor --report cell.html\n"
        "import time\nx = bytearray(b'1') * (50 << 20)\ntime.sleep(0.2)\nlen(x)",
        "import proctor\nproctor_summary['mem.rss'].peak > 50 << 20, x[0]",
        "proctor.Run.open('cell.proctor')",
        "with proctor.Monitor(interval=0.01) as m:\n    pass\nm")
    assert not failed, outputs
    shown = html_of(outputs[1])
    assert "CPU time" in shown and "memory, peak" in shown and shown.count("<svg") >= 2
    assert "".join(outputs[1][0]["data"]["text/plain"]) == str(50 << 20), "the value of the last expression"
    assert "".join(outputs[2][0]["data"]["text/plain"]) == "(True, 49)", "names of the cell are the user's"
    assert html_of(outputs[3]).count("<svg") >= 2 and "CPU time" in html_of(outputs[4])
    assert "s of CPU time" in "".join(outputs[4][0]["data"]["text/plain"]), "for a terminal"
    assert "<script" in (tmp_path / "cell.html").read_text()


def test_what_a_cell_raises_is_the_notebooks(notebook):
    outputs, failed = notebook("%load_ext proctor", "%%proctor\nopen('/no/such/file')")
    errors = [out for out in outputs[1] if out["output_type"] == "error"]
    assert failed and len(errors) == 1 and errors[0]["ename"] == "FileNotFoundError"
    assert "CPU time" in html_of(outputs[1]), "its account is shown all the same"


def test_a_file_that_is_there(notebook):
    """The cause is said, once, and the cell is not run; `--force` overwrites."""
    outputs, failed = notebook("%load_ext proctor", "open('a.proctor', 'w').close()",
                               "%%proctor -q --force -o a.proctor\npass", "%%proctor -o a.proctor\nprint('ran')")
    (error,) = outputs[3]
    assert failed and not outputs[2] and "--force overwrites it" in error["evalue"] and "summary" not in error["evalue"]
    assert "During handling" not in "".join(error["traceback"])


def test_options_that_are_wrong(notebook):
    outputs, failed = notebook("%load_ext proctor", "%%proctor --nonsense\n1")
    assert failed and "usage" in outputs[1][0]["evalue"]
