# SPDX-License-Identifier: Apache-2.0
"""--textfile, read as the node exporter reads it."""
import os
import re
import subprocess
import urllib.request

import pytest

from exposition import lint, need, parse, whole
from proctor_cli import finish, problems, read_csv, said, skip_visibly, wait_until
from servers import free_port

RUN_ID = r"\d{8}T\d{6}Z-[0-9a-f]{8}"


@pytest.fixture
def folder(proctor):
    path = proctor.work / "textfiles"
    path.mkdir()
    return path


def start(proctor, folder, *options, job=("sleep", "30")):
    """A run that is being recorded; (the process, the first text)."""
    process = proctor.start("run", "--no-record", "--textfile", folder / "job.prom", *options, "--", *job)
    wait_until((folder / "job.prom").exists, "the first file")
    return process, (folder / "job.prom").read_text()


def end(proctor, process):
    os.kill(proctor.job_of(process), 15)
    return finish(process)


def test_it_is_there_while_the_job_runs_and_gone_then(proctor, folder):
    process, text = start(proctor, folder, "--name", "a job", "-i", "100ms")
    samples = parse(text)
    for values in samples.values():
        for labels, _ in values:
            assert labels["job"] == "a job" and re.fullmatch(RUN_ID, labels["run"])
            assert not {"pid", "ppid", "command"} & labels.keys()
    assert whole(samples, "proctor_procs") == 1
    elapsed = whole(samples, "proctor_elapsed_seconds")
    wait_until(lambda: whole(parse((folder / "job.prom").read_text()), "proctor_elapsed_seconds") >
               elapsed + 0.3, "newer values")
    assert [name for name in os.listdir(folder) if name.endswith(".prom")] == ["job.prom"]
    end(proctor, process)
    assert os.listdir(folder) == []


def test_nothing_is_wrong_with_it(proctor, folder):
    """With rates, names and everything that this machine has."""
    process, _ = start(proctor, folder, "-i", "100ms", "--match", "zz=sleep", job=("sh", "-c", "trap 'kill $!' TERM; sleep 30 & wait"))
    text = wait_until(lambda: next((t for t in [(folder / "job.prom").read_text()]
                                    if 'match="zz"' in t and "proctor_cpu_usage_cores" in t), None),
                      "rates and names")
    assert lint(text) == (0, "")
    end(proctor, process)
    samples = parse(text)
    parts = [v for l, v in samples["proctor_mem_rss_bytes"] if l.get("match") == "zz"]
    assert len(parts) == 1 and 0 < parts[0] < whole(samples, "proctor_mem_rss_bytes")


def test_names_are_columns_of_the_csv_file(proctor, folder):
    """interface.md: the same behind proctor_, counters with _total; one is reserved."""
    process, text = start(proctor, folder, "--csv", "x.csv", "-i", "100ms")
    end(proctor, process)
    columns = set(read_csv(proctor.work / "x.csv")[0]) - {"timestamp"}
    for name in parse(text).keys() - {"proctor_start_time_seconds"}:
        column = name.removeprefix("proctor_").removesuffix("_total")
        assert column in columns or column.removesuffix("s") + "_count" in columns, name


def test_a_reader_never_sees_half_of_it(proctor, folder):
    process, _ = start(proctor, folder, "-i", "10ms")
    for _ in range(2000):
        text = (folder / "job.prom").read_text()
        assert text.startswith("# HELP proctor_start_time_seconds") and text.endswith("\n")
        assert "proctor_system_mem_total_bytes{" in text
    end(proctor, process)


def test_the_machine_stays_though_it_is_read_less_often(proctor, folder):
    """At ten samples a second the machine is read at two: its series must not come and go."""
    process, _ = start(proctor, folder, "-i", "100ms")
    seen = []
    def newer():
        samples = parse((folder / "job.prom").read_text())
        at = whole(samples, "proctor_elapsed_seconds")
        if not seen or at > seen[-1]:
            seen.append(at)
            assert "proctor_system_cpu_idle_seconds_total" in samples
        return len(seen) > 12
    wait_until(newer, "a dozen samples")
    end(proctor, process)


def test_what_was_not_selected_is_left_out(proctor, folder):
    process, text = start(proctor, folder, "--select", "mem.rss,procs")
    end(proctor, process)
    assert set(parse(text)) == {f"proctor_{n}" for n in
                                ("start_time_seconds", "elapsed_seconds", "interval_seconds", "mem_rss_bytes", "procs")}


@pytest.mark.parametrize("path", ["no/such/folder/x.prom", ".", "/dev/null", "-"])
def test_a_file_that_cannot_be_is_said_before_the_job(proctor, path):
    done = proctor.run("--textfile", path, "touch", "started")
    assert done.returncode == 125 and "--textfile" in done.stderr and f"'{path}'" in done.stderr
    assert not (proctor.work / "started").exists()


def test_one_that_was_there_is_left_alone_when_the_job_cannot_start(proctor, folder):
    (folder / "job.prom").write_text("precious")
    done = proctor.run("--textfile", folder / "job.prom", "--csv", "/no/such/x.csv", "true")
    assert done.returncode == 125 and (folder / "job.prom").read_text() == "precious"


@pytest.mark.parametrize("strict", [False, True])
def test_trouble_is_said_once_and_old_values_do_not_stay(proctor, folder, strict):
    """There is no room for a while."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder]).returncode != 0:
        skip_visibly("a file system of 64 KiB cannot be mounted")
    try:
        options = ["-q", "-i", "100ms", "--summary", proctor.summary_file] + ["--strict"] * strict
        process, _ = start(proctor, folder, *options)
        with open(folder / "filler", "wb", buffering=0) as filler:
            with pytest.raises(OSError):
                while True:
                    filler.write(b"x" * 1024)
        wait_until(lambda: os.listdir(folder) == ["filler"], "the file that is out of date to go")
        os.unlink(folder / "filler")
        wait_until((folder / "job.prom").exists, "it to be back")
        os.kill(proctor.job_of(process), 9)
        status, _, err = finish(process)
        assert os.listdir(folder) == []
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
    assert status == (125 if strict else -9), err
    assert len([p for p in problems(proctor.summary()) if "--textfile" in p]) == 1
    assert len([line for line in said(err) if "--textfile" in line]) == 1


def test_two_outputs_cannot_be_one_file(proctor):
    done = proctor.run("--textfile", "x", "--csv", "x", "true")
    assert done.returncode == 125 and "--textfile" in done.stderr and "--csv" in done.stderr


def test_the_node_exporter_shows_it(proctor, folder):
    need("prometheus-node-exporter")
    port = free_port()
    exporter = proctor.other(["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}",
                              "--collector.disable-defaults", "--collector.textfile",
                              f"--collector.textfile.directory={folder}"], stderr=subprocess.DEVNULL)
    def scrape():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            assert exporter.poll() is None
            return None
    wait_until(scrape, "the exporter")
    process, _ = start(proctor, folder, "--name", "shown", "-i", "100ms")
    text = wait_until(lambda: next((t for t in [scrape()] if "proctor_mem_rss_bytes" in t), None), "the job")
    assert re.search(r'^proctor_mem_rss_bytes\{job="shown",run="[^"]+"\} [1-9]', text, re.M)
    assert re.search(r"^node_textfile_scrape_error 0$", text, re.M)
    end(proctor, process)
    text = scrape()
    assert "proctor_" not in text and re.search(r"^node_textfile_scrape_error 0$", text, re.M)
