# SPDX-License-Identifier: Apache-2.0
"""`proctor suggest`: requests that follow from what runs used."""
import ast
import json
import math
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess

import pytest

from proctor_cli import query, skip_visibly, wait_until
from test_cgroup import make_group  # noqa: F401 (a fixture)
from test_gpu import FAKE, GB, TWO, Gpu, job

MIB = 1 << 20
SYSTEMS = ["slurm", "kubernetes", "nextflow", "snakemake", "docker"]


def recorded(proctor, name, *words, status=0):
    path = proctor.work / f"{name}.proctor"
    done = proctor.run("-q", "-i", "20ms", "--force", "-o", path, *words)
    assert done.returncode == status, done.stderr
    return path


@pytest.fixture
def plain(proctor):
    return recorded(proctor, "plain", "sleep", "0.1")


def changed(path, name, figures, run=""):
    """A copy of a run whose summary says something else."""
    to = path.with_name(f"{name}.proctor")
    shutil.copy(path, to)
    db = sqlite3.connect(to, isolation_level=None)
    for where, v in {**figures, "$.run.id": name}.items():
        db.execute("UPDATE summary SET json = json_set(json, ?, json(?))", (where, json.dumps(v)))
    db.execute("UPDATE run SET id = ?", (name,))
    if run:
        db.execute(f"UPDATE run SET {run}")
    db.close()
    return to


def used(mib=None, cores=None, seconds=None, **more):
    """Figures of one process that has its memory for itself, whoever was killed in our cgroup meanwhile."""
    figures = {'$.metrics."oom.kills".total': 0, "$.events": []}
    if mib is not None:
        figures |= {'$.metrics."mem.rss.peak".peak': mib * MIB, '$.metrics."mem.rss".peak': mib * MIB,
                    "$.accounting.memory_peak.complete": True}
    if cores is not None:
        figures |= {'$.metrics."cpu.usage".p95': cores, '$.metrics."cpu.usage".mean': cores / 2,
                    '$.metrics."sched.delay".total': 0, "$.limits.cpu.cores": 64}
    if seconds is not None:
        figures["$.run.duration"] = seconds
    return figures | more


def suggest(proctor, *words):
    done = proctor("suggest", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def figures(proctor, *words):
    return json.loads(suggest(proctor, *words, "--json"))


# --- figures --------------------------------------------------------------------------------------

def test_a_real_job_gets_what_it_had_and_the_margin(proctor):
    path = recorded(proctor, "job", "python3", "-c", "x = bytearray(100 << 20); import time; time.sleep(0.3)")
    found = figures(proctor, path)
    [peak] = query(path, "SELECT json_extract(json, '$.metrics.\"mem.rss.peak\".peak') FROM summary")
    [lasted] = query(path, "SELECT json_extract(json, '$.run.duration') FROM summary")
    assert found["margin"] == pytest.approx(0.2)
    assert peak * 1.2 <= found["memory"]["bytes"] <= peak * 1.2 * 1.07
    assert found["time"]["seconds"] == math.ceil(lasted * 1.2)
    [busy] = query(path, "SELECT min(json_extract(json, '$.limits.cpu.cores'),"
                         " max(json_extract(json, '$.metrics.\"cpu.usage\".p95'),"
                         " json_extract(json, '$.metrics.\"cpu.usage\".mean'))) FROM summary")
    assert found["cpu"]["cores"] == max(1, math.ceil(busy - 0.1))
    assert "and 20 % more" in found["memory"]["evidence"]
    more = figures(proctor, path, "--margin", "100%")
    assert peak * 2 <= more["memory"]["bytes"] <= peak * 2 * 1.07
    assert "100 % more" in more["memory"]["evidence"]


def test_small_jobs_get_small_figures(proctor, plain):
    found = figures(proctor, changed(plain, "small", used(mib=3)))
    assert found["memory"]["bytes"] == 4 * MIB


@pytest.mark.parametrize("mib", [0.5, 1, 5, 63, 100, 700, 1000, 5000, 60000, 1000000])
def test_memory_is_rounded_up_and_not_far(proctor, plain, mib):
    found = figures(proctor, changed(plain, "r", used(mib=mib)), "--margin", "10")["memory"]["bytes"]
    assert found % MIB == 0 and mib * MIB * 1.1 <= found <= max(mib * MIB * 1.1 * 1.0625, mib * MIB * 1.1 + MIB)


@pytest.mark.parametrize("sum_of_all, expected", [(850, 1000), (1200, 1200)])
def test_a_mark_that_no_sum_has_is_of_one_process(proctor, plain, sum_of_all, expected):
    """What wait4 says of one that had children is in no list of commands."""
    found = figures(proctor, changed(plain, "waited", used() | {
        '$.metrics."mem.rss.peak".peak': max(1000, sum_of_all) * MIB, '$.metrics."mem.rss".peak': sum_of_all * MIB,
        '$.metrics."mem.pss"': None, "$.accounting.memory_peak.complete": False,
        "$.processes.commands": [{"mem.rss.peak": 800 * MIB}]}), "--margin", "0")["memory"]
    assert found["bytes"] == pytest.approx(expected * MIB, rel=0.07)
    assert ("mark of one process" in found["evidence"]) == (sum_of_all < 1000)


def test_the_largest_of_several_runs_counts(proctor, plain):
    runs = [changed(plain, name, used(mib=mib, cores=cores, seconds=seconds))
            for name, mib, cores, seconds in (("a", 100, 3.6, 50), ("b", 400, 0.5, 70), ("c", 200, 1, 60))]
    found = figures(proctor, *runs, "--margin", "0")
    assert found["memory"]["bytes"] == 400 * MIB and found["cpu"]["cores"] == 4 and found["time"]["seconds"] == 70
    assert [r["id"] for r in found["runs"]] == ["a", "b", "c"]
    text = suggest(proctor, *runs)
    assert text.startswith("from 3 runs\n") and "the largest peak was 400 MiB" in text
    assert "the longest took 70.0 s, and 20 % more" in text and "for 95 % of the time at most 3.60 cores" in text


@pytest.mark.parametrize("cores, whole", [(0.02, 1), (1.0, 1), (1.06, 1), (1.4, 2), (7.95, 8)])
def test_whole_cores(proctor, plain, cores, whole):
    """A little beyond a core is how cores are measured, not another one."""
    path = changed(plain, "r", used(cores=cores))
    assert figures(proctor, path)["cpu"]["cores"] == whole
    assert f"--cpus-per-task={whole}\n" in suggest(proctor, path, "--for", "slurm")


def test_more_cores_than_there_are_cannot_have_been_busy(proctor, plain):
    path = changed(plain, "r", used(cores=4.4, **{"$.limits.cpu.cores": 4}))
    assert figures(proctor, path)["cpu"]["cores"] == 4


def several(pss=None, mark=None, rss=None, one=None, upper=None, peak_mark=None):
    commands = [{"command": "x", "mem.rss.peak": one and one * MIB}]
    return used() | {
        '$.metrics."mem.pss".peak': pss and pss * MIB, '$.metrics."mem.pss".mark': mark,
        '$.metrics."mem.pss".peak_mark': peak_mark,
        '$.metrics."mem.rss".peak': rss * MIB, '$.metrics."mem.rss.peak".peak': max(rss, one or 0) * MIB,
        "$.processes.commands": commands, "$.accounting.memory_peak.complete": False,
        "$.accounting.memory_peak.upper": upper and upper * MIB}


@pytest.mark.parametrize("figures_of, mib, words", [
    (several(pss=100, rss=800, one=90), 100, "PSS summed"),
    (several(pss=100, peak_mark="last reading and change of RSS", rss=800, one=90), 100, "at a sample, estimated)"),
    (several(pss=100, mark="lower bound", rss=800, one=90), 100, "at a sample)"),
    (several(pss=100, rss=800, one=300), 300, "mark of one process"),  # it peaked between two samples
    (several(pss=10, mark="known in few samples", rss=800, one=90), 800, "RSS summed"),
    (several(rss=800, one=90), 800, "RSS summed"),
    (several(pss=100, rss=800, one=90, upper=150), 100, "at the most 150 MiB"),
])
def test_the_peak_of_several_processes(proctor, plain, figures_of, mib, words):
    found = figures(proctor, changed(plain, "r", figures_of), "--margin", "0")
    assert mib * MIB <= found["memory"]["bytes"] <= mib * MIB * 1.07
    assert words in found["memory"]["evidence"]


# --- trouble --------------------------------------------------------------------------------------

LIMITED = "about = json_set(about, '$.limits.memory.bytes', 1073741824, '$.limits.memory.source', 'cgroup')"


def killed(plain, name, mib=1000):
    return changed(plain, name, used(mib=mib, **{'$.metrics."oom.kills".total': 1,
                                                 "$.limits.memory.bytes": 1 << 30}), LIMITED + ", exit_signal = 9")


def test_after_an_oom_the_limit_counts_and_not_the_peak(proctor, plain):
    found = figures(proctor, killed(plain, "oom"))
    assert found["memory"]["bytes"] == 1.5 * (1 << 30)
    assert "for want of memory" in found["memory"]["evidence"] and "1.5 times the limit of 1.00 GiB" \
        in found["memory"]["evidence"] and "20 %" not in found["memory"]["evidence"]
    assert "oom (killed by SIGKILL): a whole run may take more" in found["notes"]


def test_the_limit_is_the_lower_of_start_and_end(proctor, plain):
    path = changed(killed(plain, "oom"), "late", {"$.limits.memory.bytes": 24 << 30})
    assert figures(proctor, path)["memory"]["bytes"] == 1.5 * (1 << 30)


def test_after_a_real_oom(proctor, make_group):  # noqa: F811
    group = make_group("memory")
    limit = next(f for f in ("memory.max", "memory.limit_in_bytes") if (group.path / f).exists())
    (group.path / limit).write_text(str(64 << 20))
    hungry = "/usr/bin/python3 -c 'import time; time.sleep(0.3); x = bytearray(300 << 20)'"
    command = f"echo $$ > {group.procs}; exec {proctor.path} run -q -i 50ms -o oom.proctor {hungry}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, **proctor.options({}))
    assert done.returncode == -9, done.stderr
    found = figures(proctor, "oom.proctor")
    assert found["runs"][0]["oom"] and found["memory"]["bytes"] == 96 << 20
    assert "1.5 times the limit of 64.0 MiB" in found["memory"]["evidence"]
    assert "the job ran out of memory" in found["notes"]
    assert "--memory=96m" in suggest(proctor, "oom.proctor", "--for", "docker")


def test_a_run_with_more_memory_answers_an_oom(proctor, plain):
    oom = killed(plain, "oom")
    enough = changed(plain, "enough", used(mib=1100))
    less = changed(plain, "less", used(mib=500))
    assert figures(proctor, oom, enough)["memory"]["bytes"] < 1.3 * 1100 * MIB
    assert figures(proctor, oom, less)["memory"]["bytes"] == 1.5 * (1 << 30)


@pytest.mark.parametrize("whose, counts", [("of the cgroup", True), ("on this machine", True),
                                           ("elsewhere on this machine", False)])
def test_a_kill_elsewhere_is_not_the_jobs(proctor, plain, whose, counts):
    event = {"type": "oom", "at": 1, "seconds": 0, "text": f"the kernel killed 1 process {whose} for want of memory"}
    found = figures(proctor, changed(plain, "r", used(mib=100, **{"$.events": [event]})), "--margin", "0")
    assert found["runs"][0]["oom"] == counts
    assert (found["memory"]["bytes"] > 107 * MIB) == counts


def test_an_oom_of_the_machine_is_half_as_much_again(proctor, plain):
    path = changed(plain, "oom", used(mib=1000, **{'$.metrics."oom.kills".total': 1}),
                   "about = json_set(about, '$.limits.memory.source', 'machine'), exit_signal = 9")
    found = figures(proctor, path)["memory"]
    assert 1500 * MIB <= found["bytes"] <= 1500 * MIB * 1.07 and "the machine having" in found["evidence"]


def test_runs_that_did_not_end_well_are_named(proctor, plain):
    failed = recorded(proctor, "failed", "sh", "-c", "exit 3", status=3)
    text = suggest(proctor, failed)
    assert " (exit 3): a whole run may take more" in text and "no run ended well" in text
    longer = changed(failed, "longer", used(seconds=1000))
    ended = changed(plain, "ended", used(seconds=100))
    assert figures(proctor, longer, ended, "--margin", "0")["time"]["seconds"] == 100


def test_a_run_that_goes_on_is_a_beginning(proctor):
    path = proctor.work / "now.proctor"
    process = proctor.start("run", "-q", "-i", "20ms", "-o", path, "sleep", "60")
    wait_until(lambda: path.exists() and proctor("suggest", path).returncode == 0, "a suggestion")
    assert " (still running): a whole run may take more" in suggest(proctor, path)
    process.send_signal(signal.SIGTERM)
    process.wait()


def test_what_was_attached_to_has_no_time(proctor):
    sleeper = proctor.other(["sleep", "30"])
    done = proctor("attach", "-q", "-i", "20ms", "--duration", "0.3", "-o", "a.proctor", sleeper.pid)
    assert done.returncode == 0, done.stderr
    text = suggest(proctor, "a.proctor", "--for", "slurm")
    assert "--time" not in text and "was attached to" in text and "--mem" in text


def test_a_quota_that_held_it_back_is_said(proctor, plain):
    path = changed(plain, "held", used(cores=2, seconds=10, **{'$.metrics."cpu.throttled"': {"total": 3},
                                                              "$.limits.cpu.cores": 2}))
    assert "held was held back by its quota of 2.00 cores for 3.00 s" in suggest(proctor, path)


@pytest.mark.parametrize("delay, there, asked, slurm", [
    (6.13, 64, "2.0", 2),  # 1.80 s used and 6.13 s waited, in 5 s: it wanted 1.59 cores
    (6.13, 1, "1.0", 1), (60, 4, "4.0", 4),  # no more than there were
    (0.1, 64, "0.4", 1), (None, 64, "0.4", 1),  # hardly waited; not known
    (0.2, 64, "0.4", 1),
])
def test_who_waited_for_a_cpu_wanted_more_than_it_used(proctor, plain, delay, there, asked, slurm):
    path = changed(plain, "starved", used(cores=0.36, seconds=5, **{
        '$.metrics."cpu.time"': {"total": 1.8}, '$.metrics."sched.delay"': {"total": delay},
        "$.limits.cpu.cores": there}))
    text = suggest(proctor, path, "--for", "docker")
    assert f"--cpus={asked} " in text
    assert ("it used 1.80 s of CPU and waited" in text) == (delay is not None and delay > 1)
    assert f"--cpus-per-task={slurm}\n" in suggest(proctor, path, "--for", "slurm")
    assert figures(proctor, path)["cpu"]["used"] == figures(proctor, path)["runs"][0]["cores_p95"] == 0.36


def test_a_machine_is_no_job(proctor):
    assert proctor("system", "-q", "-i", "100ms", "--duration", "0.3", "-o", "m.proctor").returncode == 0
    done = proctor("suggest", "m.proctor")
    assert done.returncode == 1 and "is of a machine" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("words, status, text", [
    ([], 2, "a run is missing"), (["last", "--for", "lsf"], 2, "slurm kubernetes"),
    (["last", "--margin", "much"], 2, "percentage"), (["nothing"], 1, "nothing"),
])
def test_wrong_usage_is_explained(proctor, words, status, text):
    done = proctor("suggest", *words)
    assert done.returncode == status and text in done.stderr and done.stdout == ""


# --- systems --------------------------------------------------------------------------------------

@pytest.fixture
def known(plain):
    """0.83 cores, 1,000 MiB and 20 % more: 1,216 MiB in steps of 64, one GPU; 90 minutes and 20 % more."""
    gpu = {'$.metrics."gpu.count"': {"peak": 1}, "$.devices": [
        {"name": "gpu0", "driver": "570.1", "metrics": {"gpu.job.mem": {"peak": 10 << 30}}}]}
    return changed(plain, "known", used(mib=1000, cores=0.83, seconds=5400, **gpu))


def lines(text, comment="#"):
    """What is not a comment."""
    return [line for line in text.splitlines() if not line.lstrip().startswith(comment + " ")]


def test_slurm(proctor, known):
    text = suggest(proctor, known, "--for", "slurm")
    assert lines(text) == ["#SBATCH --cpus-per-task=1", "#SBATCH --mem=1216M", "#SBATCH --time=1:48:00",
                           "#SBATCH --gpus=1"]
    script = "#!/bin/bash\n" + text + "true\n"
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


def test_kubernetes(proctor, known):
    try:
        import yaml
    except ImportError:
        skip_visibly("PyYAML")
    spec = yaml.safe_load(suggest(proctor, known, "--for", "kubernetes"))["spec"]
    assert spec["activeDeadlineSeconds"] == 108 * 60
    [container] = spec["template"]["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "830m", "memory": "1216Mi"},
                                      "limits": {"memory": "1216Mi", "nvidia.com/gpu": 1}}
    amd = changed(known, "amd", {"$.devices[0].driver": "amdgpu"})
    assert "amd.com/gpu: 1" in suggest(proctor, amd, "--for", "kubernetes")


def test_nextflow(proctor, known):
    """Its MB are 1,048,576 bytes."""
    text = suggest(proctor, known, "--for", "nextflow")
    assert lines(text, "//") == ["process {", "    cpus = 1", "    memory = '1216 MB'", "    time = '108m'",
                                 "    accelerator = 1", "}"]
    assert text.count("// ") == len(text.splitlines()) - 6


def test_snakemake(proctor, known):
    """mem_mb is in 1,000,000 bytes, upwards; runtime in minutes. Resources are the arguments of a call."""
    threads, head, *rest = lines(suggest(proctor, known, "--for", "snakemake"))
    assert threads == "threads: 1" and head == "resources:"
    call = ast.parse("resources(" + "\n".join(rest) + ")").body[0].value
    assert {k.arg: ast.literal_eval(k.value) for k in call.keywords} == {
        "mem_mb": math.ceil(1216 * MIB / 1e6), "runtime": 108, "gpu": 1}


def test_docker(proctor, known, plain):
    text = suggest(proctor, known, "--for", "docker")
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0
    words = shlex.split("\n".join(lines(text)).replace("\\\n", ""))
    assert words == ["docker", "run", "--cpus=0.9", "--memory=1216m", "--gpus=1", "IMAGE", "COMMAND"]
    tiny = changed(plain, "tiny", used(mib=1, cores=0))
    text = suggest(proctor, tiny, "--for", "docker")
    assert "--memory=6m" in text and "--cpus=0.1" in text  # it refuses less


@pytest.mark.parametrize("system", SYSTEMS)
def test_evidence_stands_above_and_json_has_the_lines(proctor, known, system):
    text = suggest(proctor, known, "--for", system)
    comment = "//" if system == "nextflow" else "#"
    assert text.startswith(f"{comment} from 1 run by proctor ")
    for what in ("cores: for 95 %", "memory: the peak was 1000 MiB (the kernel's mark", "time: the longest took 1 h 30 m",
                 "GPUs: 1 did something; one with at least 12.0 GiB"):
        assert f"{comment} {what}" in text
    found = figures(proctor, known, "--for", system)
    assert found["for"] == system and found["lines"] == text.splitlines()[-len(found["lines"]):]
    assert found["gpu"] == {"count": 1, "memory_bytes": 12 << 30, "evidence": found["gpu"]["evidence"]}


@pytest.mark.parametrize("system", [None, *SYSTEMS])
def test_what_is_not_known_is_left_out(proctor, plain, system):
    path = changed(plain, "unknown", {"$.metrics": {}, "$.run.duration": None, "$.processes.commands": []})
    text = suggest(proctor, path, *(["--for", system] if system else []))
    assert not re.search(r"nan|-9|mem|cpu|time|gpu", text.replace("runtime", ""), re.I), text


def test_gpus_of_a_real_run(proctor):
    assert (FAKE / "libnvidia-ml.so.1").exists(), "build with the tests"
    gpu = Gpu(proctor)
    gpu.run(TWO + "util 1 20 0 99\n", "-i", "100ms", "-o", "g.proctor", *job(("1", f"{5 * GB} c 20 99"), seconds=1.5))
    found = figures(proctor, "g.proctor", "--margin", "0")["gpu"]
    assert found["count"] == 1 and found["memory_bytes"] == 5 * GB


def test_hostile_words_stay_comments(proctor, plain):
    path = changed(plain, "a\nrm -rf x\x1b[31m", {"$.findings": ["b\nrm -rf y\x1b[31m"]}, "exit_code = 3")
    for system in SYSTEMS:
        text = suggest(proctor, path, "--for", system)
        assert "\x1b" not in text and "\nrm" not in text
        assert "rm -rf x" in text and "rm -rf y" in text  # they are there, as words
