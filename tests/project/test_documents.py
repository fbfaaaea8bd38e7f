# SPDX-License-Identifier: Apache-2.0
"""What the repository says about itself is true."""
import html
import json
import re
import subprocess
import sys

import pytest


def output(*args, **kw):
    return subprocess.run([str(a) for a in args], check=True, capture_output=True, text=True, **kw).stdout


@pytest.mark.parametrize("name", ["metrics", "dialects"])
def test_documents_of_tables_are_current(root, build, name):
    assert (root / f"doc/{name}.md").read_text() == output(build / "gendoc", name), "run `make docs`"


def test_man_page_has_every_option(build):
    page = (build / "proctor.1").read_text().replace("\\-", "-")
    for name in re.findall(r"--[a-z-]+", output(build / "proctor", "run", "--help")):
        assert name in page


def test_man_page_of_the_library_has_every_comment(root, build):
    """It is made of the header: each declaration, and each sentence that is said of one."""
    def words(text):
        return re.findall(r"[A-Za-z_0-9]+", text)
    page = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-rHY=0", build / "libproctor.3"], check=True,
                          capture_output=True, text=True)
    assert not page.stderr
    shown = " ".join(words(re.sub(r"\x1b\[[0-9;]*m|.\x08", "", page.stdout)))
    header = (root / "include/proctor/proctor.h").read_text()
    comments = re.findall(r"^/\*(.*?)\*/", header, re.M | re.S)
    assert len(comments) > 15
    for comment in comments[1:]:  # the first is the licence
        assert " ".join(words(comment)) in shown, comment


def test_layers(root):
    subprocess.run([sys.executable, root / "tools/check-layers", root], check=True)


def test_layer_check_can_fail(root, clone):
    path = clone / "src/util/buf.c"
    path.write_text(path.read_text() + '#include "core/metric.h"\n')
    done = subprocess.run([sys.executable, root / "tools/check-layers", clone], capture_output=True, text=True)
    assert done.returncode == 1 and "util must not include core" in done.stdout


def test_headers_are_short(root):
    for path in (root / "src").rglob("*.h"):
        lines = len(path.read_text().splitlines())
        assert lines <= 110, f"{path} has {lines} lines: a header promises little"


def test_readme_examples_run(root, build, clean_env, tmp_path):
    """Each line that starts with `proctor` in a console block of the README is run as it stands."""
    readme = (root / "README.md").read_text()
    lines = [line[2:] for block in re.findall(r"```console\n(.*?)```", readme, re.S)
             for line in block.split("\n") if line.startswith("$ proctor")]
    assert len(lines) >= 5
    env = {**clean_env, "PATH": f"{build}:{clean_env['PATH']}"}
    for line in lines:
        done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (line, done.stderr)


# Which of these are there depends on the figures.
MAY_DIFFER = {"over", "the", "budget", "missed", "estimated", "KiB", "MiB", "GiB", "one", "process", "sampled", "least", "peak"}


def test_the_picture_shows_what_is_printed(root, build, clean_env, tmp_path):
    """Its figures are of another run; its words are those of this version."""
    job = ["-i", "100ms", build / "demo_job"]
    text = subprocess.run([build / "proctor", "run", *job], cwd=tmp_path, env={**clean_env, "LANG": "C.UTF-8"},
                          check=True, capture_output=True, text=True).stderr
    picture = re.sub(r"<[^>]*>", "", (root / "doc/demo.svg").read_text())
    words = set(re.findall(r"[A-Za-z/]{3,}", html.unescape(picture)))
    for line in text.splitlines()[1:]:
        if line.split()[0] in ("counted", "finding"):
            continue  # how is up to what the machine allows (--exact auto), as is who else runs on it
        missing = set(re.findall(r"[A-Za-z/]{3,}", line)) - words - MAY_DIFFER
        assert not missing, f"{line}: draw doc/demo.svg again (tools/terminal-svg)"


def test_every_target_does_something(root):
    """A name in .PHONY without a recipe would say that there is nothing to be done, and succeed."""
    text = (root / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", text, re.M).group(1).split()
    for target in targets:
        assert re.search(rf"^{target}:.*\n\t", text, re.M), f"make {target} has no recipe"
    for target in re.findall(r"`make ([a-z-]+)", "".join(p.read_text() for p in root.glob("doc/*.md"))):
        assert target in targets, f"a document names `make {target}`"


def test_the_summary_is_explained(root, build, tmp_path, clean_env):
    """Each key that a summary has, at the top and one level below."""
    job = f"{build}/proctor phase p -- sleep 0.1; true"
    subprocess.run([build / "proctor", "run", "-q", "-i", "20ms", "--match", "sleep", "--summary", tmp_path / "s.json",
                    "sh", "-c", job], check=True, env=clean_env)
    text = (root / "doc/summary.md").read_text()
    summary = json.loads((tmp_path / "s.json").read_text())
    keys = [*summary, *(k for name, v in summary.items() if isinstance(v, dict) and name not in ("metrics", "limits")
                        for k in v), *summary["processes"]["list"][0], *summary["processes"]["commands"][0],
            *summary["phases"][0], *summary["matches"][0]]
    for part in (summary, summary["phases"][0], summary["matches"][0]):
        keys += [k for v in part["metrics"].values() for k in v]
    assert {"total", "mean", "integral", "p99", "mean_each"} <= {*keys}
    for key in keys:
        assert "." in key or f"`{key}`" in text, f"doc/summary.md does not explain {key}"
