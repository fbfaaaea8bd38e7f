# SPDX-License-Identifier: Apache-2.0
"""One job on several nodes: one report of their files, and Prometheus with the configuration of
examples/fleet over their endpoints. Nodes are processes, and network namespaces where root may."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from exposition import Prometheus, need
from proctor_cli import ROOT, SANITIZED, finish, open_run, query, said, skip_visibly, wait_until
from servers import free_port

sys.path.insert(0, str(ROOT / "tests/golden/report"))
import renew  # noqa: E402: the run whose rows are known

FLEET = ROOT / "examples/fleet"
NODES = 4
RULE = {"gap": 2.5, "reach": 1.5}  # intervals, as src/report has them


# --- the same sums, made once more ----------------------------------------------------------------

def steps(path, column):
    """[(from, to, value)] by wall clock: a value stands for the time since the sample before."""
    started, interval = query(path, "SELECT started / 1e9, interval / 1e9 FROM run")[0]
    found, before, last = [], 0.0, None
    for elapsed, value in query(path, f"SELECT elapsed / 1e9, {column} FROM job_samples ORDER BY sample"):
        begin = before if elapsed - before <= RULE["gap"] * interval else elapsed - interval
        if last is not None and elapsed - last <= RULE["reach"] * interval:
            begin = min(begin, last)
        if value is not None and elapsed > begin:
            found.append((started + begin, started + elapsed, value))
        last = elapsed if value is not None else last
        before = elapsed
    return found


def sums(paths, column):
    """[(from, to, sum, how many nodes)] between all moments at which a value begins or ends."""
    parts = [steps(path, column) for path in paths]
    edges = sorted({edge for part in parts for step in part for edge in step[:2]})
    found = []
    for begin, end in zip(edges, edges[1:]):
        middle = (begin + end) / 2
        values = [v for part in parts for a, b, v in part if a < middle < b]
        if values and end - begin > 2e-6:
            found.append((begin, end, sum(values), len(values)))
    return found


def model(proctor, *runs):
    done = proctor("report", *runs, "-o", "fleet.json")
    assert done.returncode == 0, done.stderr
    return json.loads((proctor.work / "fleet.json").read_text())["runs"]


def check_sum(job, paths, key, column):
    known = sums(paths, column)
    series, begin = job["series"][key], min(query(p, "SELECT started FROM run")[0] for p in paths) / 1e9
    most = max(known, key=lambda step: step[2])
    assert series["stats"]["max"] == pytest.approx(most[2], rel=1e-9)
    assert begin + series["stats"]["at"] in [pytest.approx(s[1], abs=1e-5) for s in known if s[2] == most[2]]
    assert (series["mark"] or f"peak of {len(paths)} of").startswith(f"peak of {most[3]} of")
    for at, span, mean in zip(job["time"]["at"], job["time"]["span"], series["mean"]):
        middle = begin + at - span / 2
        expected = [s[2] for s in known if s[0] < middle < s[1]]
        if span > 1e-4 and "min" not in series:
            assert (mean is None) == (not expected), (key, at)
            assert mean is None or mean == pytest.approx(expected[0], rel=1e-4), (key, at)
    return most[2]


# --- runs whose rows are known --------------------------------------------------------------------

def change(path, sql, *values):
    base = open_run(path, "rw")
    base.execute("PRAGMA synchronous = off")
    base.execute(sql, values)
    base.close()


def known_nodes(proctor, count=NODES, apart=7.25):
    """Copies of the known run on nodes that begin one after the other."""
    folder = proctor.folder / "home/.local/state/proctor/runs"
    folder.mkdir(parents=True)
    paths = []
    for i in range(count):
        path = renew.build(folder / f"known.{i}.proctor")
        change(path, "UPDATE run SET id = 'known', node = ?, host = ?, started = started + ?, ended = ended + ?",
               str(i), f"host{i}", *[int(i * apart * 1e9)] * 2)
        change(path, "UPDATE job_samples SET mem_rss_bytes = mem_rss_bytes * ?", 1 + i / 8)
        paths.append(path)
    return paths


def test_sums_are_of_the_same_moment(proctor):
    paths = known_nodes(proctor)
    job, *nodes = model(proctor, "known")
    assert [n["run"]["node"] for n in nodes] == list("0123") and job["run"]["node"] is None
    peak = check_sum(job, paths, "mem.rss", "mem_rss_bytes")
    check_sum(job, paths, "cpu.usage", "cpu_usage_cores")
    alone = [query(p, "SELECT max(mem_rss_bytes) FROM job_samples")[0] for p in paths]
    assert max(alone) < peak < sum(alone)
    totals = [n["series"]["cpu.usage"]["stats"]["total"] for n in nodes]
    assert job["series"]["cpu.usage"]["stats"]["total"] == pytest.approx(sum(totals))
    assert job["run"]["duration"] == pytest.approx(nodes[3]["run"]["began"] + nodes[3]["run"]["duration"]
                                                   - nodes[0]["run"]["began"], abs=1e-5)
    assert max(v for v in job["series"]["nodes"]["mean"]) == 4
    rows = job["nodes"]["rows"]
    assert [r["after"] for r in rows] == pytest.approx([0, 7.25, 14.5, 21.75], abs=1e-5)
    assert [r["cpu"] for r in rows] == pytest.approx(totals)
    assert [f["id"] for f in job["findings"]].count("nodes-apart") <= 1
    assert all(re.match(r"node \d: |The last node ", f["text"]) for f in job["findings"])
    assert {c["key"]: c["title"] for c in job["nodes"]["columns"]}["mem"] == "PSS peak"
    # By node: each line is told apart by its name, each node by its colour.
    for chart in (c for c in job["charts"] if c["id"].startswith("node-")):
        lines = [(line["role"], job["series"][line["series"]]) for line in chart["lines"]]
        assert len({s["label"] for _, s in lines}) == len({(role, s["family"]) for role, s in lines}) == len(lines)
    # GPUs: a line for each node, the mean over its devices.
    utils = [v for k, v in nodes[1]["series"].items() if re.fullmatch(r"gpu\.\d+\.util", k)]
    assert job["series"]["node 1.gpu.util"]["stats"]["mean"] == pytest.approx(
        sum(u["stats"]["mean"] for u in utils) / len(utils), rel=0.02)


def test_it_keeps_to_the_model_in_every_form(proctor, tmp_path):
    known_nodes(proctor)
    done = proctor("report", "known", *[w for e in ("json", "html", "md", "txt", "svg") for w in ("-o", f"x.{e}")])
    assert done.returncode == 0, done.stderr
    checked = subprocess.run(["node", ROOT / "tests/browser/contract.mjs", proctor.work / "x.json"],
                             capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    for form in "md", "txt":
        text = (proctor.work / f"x.{form}").read_text()
        assert "on all 4 nodes" in text and re.search(r"^(## )?Nodes$", text, re.M)
        assert all(f"node {i}: " in text for i in range(NODES))
    assert (proctor.work / "x.svg").read_text().count("node 3: ") >= 1
    assert (proctor.work / "x_files/1_overview.svg").exists()


def test_many_nodes_have_one_report(proctor):
    paths = known_nodes(proctor, 17, apart=0.25)
    job, *others = model(proctor, "known")
    assert others == [] and len(job["nodes"]["rows"]) == 17
    assert len([k for k in job["series"] if k.endswith(".cpu.usage")]) == 16
    check_sum(job, paths, "mem.rss", "mem_rss_bytes")
    assert job["series"]["cpu.usage"]["stats"]["total"] == pytest.approx(sum(r["cpu"] for r in job["nodes"]["rows"]))


def test_the_peak_of_long_runs_is_a_bound(proctor):
    """More samples than buckets: sums of means are exact, sums of the most in a bucket may be too much."""
    paths = known_nodes(proctor, 2, apart=0.4)
    for i, path in enumerate(paths):
        change(path, "DELETE FROM job_samples")
        change(path, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
                     " INSERT INTO job_samples(sample, elapsed, interval, mem_rss_bytes)"
                     " SELECT i, i * 1000000000, 1000000000, (100 + i * 7 % 31 + 900 * (i = ?)) * 1e6 FROM n",
               1000 + 2000 * i)
    rss = model(proctor, "known")[0]["series"]["mem.rss"]
    known = sums(paths, "mem_rss_bytes")
    true = max(s[2] for s in known)
    assert rss["mark"] == "peak at most" and true <= rss["stats"]["max"] < 1.05 * true
    mean = sum((b - a) * v for a, b, v, _ in known) / sum(b - a for a, b, _, _ in known)
    assert rss["stats"]["mean"] == pytest.approx(mean, rel=1e-4)


def test_what_is_not_one_job_is_several_runs(proctor):
    paths = known_nodes(proctor, 2)
    change(paths[1], "UPDATE run SET id = 'another'")
    assert len(model(proctor, *paths)) == 2, "other ids"
    change(paths[1], "UPDATE run SET id = 'known', node = '0', host = 'host0', started = started + 3600000000000,"
                     " ended = ended + 3600000000000")
    assert [r["id"] for r in model(proctor, *paths)] == ["known", "known"], "the same node again, later"
    assert len(model(proctor, paths[0], paths[0])) == 2, "one file twice"


def test_a_run_is_all_its_nodes_for_report_alone(proctor):
    known_nodes(proctor)
    assert len(model(proctor, "known")) == len(model(proctor, "kno")) == len(model(proctor, "last")) == 5
    assert len(model(proctor, "known.2")) == 1
    other = renew.build(proctor.runs()[0].with_name("known0.1.proctor"))
    change(other, "UPDATE run SET id = 'known0', node = '1'")
    assert len(model(proctor, "known")) == 5 and len(model(proctor, "known0")) == 1
    assert "is the beginning of 5 runs" in proctor("report", "kno", "-o", "x.json").stderr
    other.unlink()
    for command in (["show"], ["export", "--format", "csv"], ["rm"]):
        done = proctor(*command, "known")
        assert done.returncode == 1 and "is a run on 4 nodes" in done.stderr and "known.2" in done.stderr
    assert proctor("show", "known.2").returncode == 0


def test_nodes_may_say_anything(proctor):
    """Names that are markup, that are one, or are cut within a letter; clocks that are centuries apart."""
    paths = known_nodes(proctor, 6)
    for i, name in enumerate(["</script><b>|`*_\n", "ä" * 63, "ä" * 63, "", "\x1b[31m"]):
        change(paths[i], "UPDATE run SET node = ?", name)
    change(paths[3], "UPDATE run SET started = 9000000000000000000, ended = 9000000000500000000")
    change(paths[4], "UPDATE job_samples SET elapsed = elapsed - 30000000000, mem_rss_bytes = 1e308")
    change(paths[5], "DELETE FROM job_samples")
    forms = "html", "md", "txt", "svg"
    done = proctor("report", "known", "-o", "x.json", *[w for e in forms for w in ("-o", f"x.{e}")])
    assert done.returncode == 0, done.stderr
    job, *nodes = json.loads((proctor.work / "x.json").read_text())["runs"]
    assert len(nodes) == 6 and len({n["name"] for n in nodes}) == 6
    checked = subprocess.run(["node", ROOT / "tests/browser/contract.mjs", proctor.work / "x.json"],
                             capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    for form in forms:
        text = (proctor.work / f"x.{form}").read_text()
        assert "\x1b" not in text and (form in ("md", "txt") or "<b>|" not in text), form


def test_a_node_that_cannot_be_read_is_not_left_out(proctor):
    paths = known_nodes(proctor)
    paths[0].write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    done = proctor("report", "known", "-o", "x.json")
    assert done.returncode == 1 and "known.0.proctor" in done.stderr and not (proctor.work / "x.json").exists()
    assert len(model(proctor, *paths[1:])) == 4


def test_the_worst_node_is_named(proctor):
    paths = known_nodes(proctor)
    change(paths[2], "UPDATE run SET exit_code = NULL, exit_signal = 9")
    job = model(proctor, "known")[0]
    assert job["verdict"] == {"text": "killed by SIGKILL on node 2", "severity": "bad"}
    assert job["run"]["signal"] == "SIGKILL"


def test_nodes_that_go_on_elsewhere_are_reported_as_far_as_they_are(proctor):
    """From a folder that nodes share, on a machine that is none of them."""
    for path in known_nodes(proctor):
        change(path, "UPDATE run SET ended = NULL, exit_code = NULL, exit_signal = NULL, recorder = 1")
    job = model(proctor, "known")[0]
    assert job["verdict"] == {"text": "no end is recorded: its recorder is of another machine on all 4 nodes",
                              "severity": "note"}
    assert job["series"]["mem.rss"]["stats"]["max"] > 0 and len(job["nodes"]["rows"]) == 4


# --- how nodes are started ------------------------------------------------------------------------

def test_two_nodes_never_write_one_file(proctor):
    """Without --node, on one folder: each has a file of its own, and they are one job."""
    started = [proctor.start("run", "-q", "--run-id", "shared", "-i", "50ms", "--", "sleep", "0.4") for _ in range(3)]
    assert [finish(p)[0] for p in started] == [0, 0, 0]
    assert [p.name for p in proctor.runs()] == ["shared.2.proctor", "shared.3.proctor", "shared.proctor"]
    job, *nodes = model(proctor, "shared")
    assert len(nodes) == 3 and len({n["name"] for n in nodes}) == 3


def test_the_script_for_slurm(proctor, tmp_path):
    """With a srun that starts four tasks on this machine."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/srun").write_text('#!/bin/sh\nfor i in 0 1 2 3; do SLURM_NODEID=$i "$@" & all="$all $!"; done\n'
                                       "status=0; for p in $all; do wait $p || status=$?; done; exit $status\n")
    (tmp_path / "bin/srun").chmod(0o755)
    (tmp_path / "bin/proctor").symlink_to(proctor.path)
    env = {**proctor.env, "PATH": f"{tmp_path}/bin:{proctor.env['PATH']}", "SLURM_JOB_ID": "77",
           "SLURM_SUBMIT_DIR": str(proctor.work), "PROCTOR_INTERVAL": "50ms"}
    done = subprocess.run([FLEET / "job.sbatch", "sh", "-c", 'sleep 0.2; test "$SLURM_NODEID" != 3 || exit 5'],
                          env=env, cwd=proctor.work, capture_output=True, text=True, timeout=60)
    assert done.returncode == 5, done.stderr
    files = sorted(p.name for p in (proctor.work / "proctor/runs").iterdir())
    assert files == [f"slurm-77.{i}.proctor" for i in range(4)]
    head, *lines = proctor("ls", env={"PROCTOR_HOME": str(proctor.work / "proctor")}).stdout.splitlines()
    assert head.split()[:2] == ["ID", "NODE"] and sorted(line.split()[1] for line in lines) == list("0123")
    assert "failed, exit 5 on node 3" in (proctor.work / "slurm-77.html").read_text()


@pytest.mark.parametrize("script, env", [
    ("mpirun.sh", {"OMPI_COMM_WORLD_RANK": "1"}),
    ("torchrun.sh", {"NODE_RANK": "1", "NNODES": "2", "MASTER_ADDR": "node0"})])
def test_the_other_scripts(proctor, tmp_path, script, env):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/proctor").symlink_to(proctor.path)
    (tmp_path / "bin/torchrun").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "bin/torchrun").chmod(0o755)
    done = subprocess.run([FLEET / script, "true"], capture_output=True, text=True, timeout=60, cwd=proctor.work,
                          env={**proctor.env, **env, "RUN": "many", "PATH": f"{tmp_path}/bin:{proctor.env['PATH']}"})
    assert done.returncode == 0, done.stderr
    assert [p.name for p in proctor.runs()] == ["many.1.proctor"]


@pytest.mark.parametrize("script, env", [("mpirun.sh", {"OMPI_COMM_WORLD_RANK": "1"}), ("torchrun.sh", {"NODE_RANK": "1"})])
def test_a_run_without_a_name_is_told_so(proctor, script, env):
    done = subprocess.run([FLEET / script, "true"], capture_output=True, text=True, timeout=60, cwd=proctor.work,
                          env={**proctor.env, **env})
    assert done.returncode == 2 and "RUN: " in done.stderr and "to name the run" in done.stderr
    assert proctor.runs() == []


def test_files_for_others_are_whole():
    """What no test starts: each part of a pipeline is there, and the pods' command is one of ours."""
    collector = yaml.safe_load((FLEET / "otel-collector.yaml").read_text())
    for pipeline in collector["service"]["pipelines"].values():
        for kind in "receivers", "processors", "exporters":
            assert pipeline[kind] and set(pipeline[kind]) <= set(collector[kind])
    pod = yaml.safe_load((FLEET / "kubernetes.yaml").read_text())["spec"]["template"]["spec"]["containers"][0]
    assert {f"$({e['name']})" for e in pod["env"]} >= {w for w in pod["command"] if w.startswith("$(")}


def test_prometheus_takes_the_files():
    need("promtool")
    done = subprocess.run(["promtool", "check", "config", "prometheus.yml"], cwd=FLEET, capture_output=True, text=True)
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


# --- four nodes and their servers -----------------------------------------------------------------

class Namespaces:
    """A network for each node, with a pair of interfaces to this one."""

    def __init__(self):
        self.made, self.tag = [], f"fl{os.getpid() % 100000}"
        self.net = f"10.{200 + os.getpid() % 50}"

    def ip(self, *words):
        return subprocess.run(["ip", *words], capture_output=True, text=True)

    def add(self, i):
        name, ours = f"{self.tag}n{i}", f"{self.tag}h{i}"
        for words in (["netns", "add", name], ["link", "add", ours, "type", "veth", "peer", "name", "eth0", "netns", name],
                      ["addr", "add", f"{self.net}.{i}.1/30", "dev", ours], ["link", "set", ours, "up"],
                      ["-n", name, "addr", "add", f"{self.net}.{i}.2/30", "dev", "eth0"],
                      ["-n", name, "link", "set", "eth0", "up"]):
            done = self.ip(*words)
            if done.returncode:
                self.end()
                skip_visibly(f"ip {' '.join(words)}: {done.stderr.strip()}")
            if words[:2] == ["netns", "add"]:
                self.made.append(name)
        return name, f"{self.net}.{i}.2"

    def end(self):
        for name in self.made:
            self.ip("netns", "del", name)


# Once is enough under sanitizers: it is about servers.
@pytest.fixture(params=["processes"] if SANITIZED else ["processes", "namespaces"])
def places(request):
    """[(words before the command, address to serve at)] of four nodes."""
    if request.param == "processes":
        yield [([], "127.0.0.1", free_port()) for _ in range(NODES)]
        return
    networks = Namespaces()
    try:
        yield [(["ip", "netns", "exec", name], address, 9464)
               for name, address in map(networks.add, range(NODES))]
    finally:
        networks.end()


def configured(proctor, nodes, exporter):
    """examples/fleet with addresses and times of this test."""
    folder = proctor.folder / "fleet"
    shutil.copytree(FLEET, folder)
    for name, targets in ("nodes.json", nodes), ("exporters.json", [exporter]):
        listed = json.loads((folder / name).read_text())
        assert len(listed) == 1 and len(listed[0]["targets"]) == NODES
        listed[0]["targets"] = targets
        (folder / name).write_text(json.dumps(listed))
    text = (folder / "prometheus.yml").read_text()
    assert text.count("_interval: 15s") == 2
    (folder / "prometheus.yml").write_text(text.replace("_interval: 15s", "_interval: 500ms"))
    return folder


def start_exporter(proctor, folder):
    """The node exporter with the arguments of the example, but for the folder."""
    need("prometheus-node-exporter")
    arguments, = re.findall(r'^ARGS="(.*)"$', (FLEET / "prometheus-node-exporter").read_text(), re.M)
    assert arguments.count("/var/lib/prometheus/node-exporter") == 1
    address = f"127.0.0.1:{free_port()}"
    proctor.other(["prometheus-node-exporter", *arguments.replace("/var/lib/prometheus/node-exporter", str(folder)).split(),
                   "--collector.disable-defaults", f"--web.listen-address={address}"], stderr=subprocess.DEVNULL)
    return address


def test_four_nodes_publish_one_job(proctor, places):
    texts = proctor.folder / "texts"
    texts.mkdir()
    exporter = start_exporter(proctor, texts)
    started = []
    for i, (before, address, port) in enumerate(places):
        words = proctor.arguments("run", "-q", "--run-id", "fleet", "--node", i, "--name", "train", "-i", "200ms",
                                  f"--prometheus={address}:{port}", "--textfile", texts / f"train{i}.prom", "--",
                                  "/usr/bin/python3", "-c", f"x = bytearray({16 * (i + 1)} << 20)\nimport time\ntime.sleep(60)")
        started.append(proctor.other([*before, *words], env=proctor.env, cwd=proctor.work, stderr=subprocess.PIPE))
    prometheus = Prometheus(proctor, configured(proctor, [f"{a}:{p}" for _, a, p in places], exporter))
    wait_until(lambda: prometheus.query('run:proctor_nodes:count{job="train", run="fleet"} == 4'), "four nodes")
    wait_until(lambda: prometheus.query('count(proctor_procs{exported_job="train"}) == 4'), "the exporter's four")
    by_node = prometheus.query('sum by (node) (proctor_mem_rss_bytes{run="fleet", job="train", match=""})')
    assert sorted(labels["node"] for labels, _ in by_node) == list("0123")
    by_node = {int(labels["node"]): value for labels, value in by_node}
    (_, total), = prometheus.query('sum by (job) (proctor_mem_rss_bytes{run="fleet", job="train", match=""})')
    wait_until(lambda: prometheus.query('run:proctor_mem_rss_bytes:sum{job="train", run="fleet"}'), "the rule")
    for process in started:
        job = wait_until(lambda: proctor.children(process.pid), "the job")
        os.kill(job[0], 15)
    for process in started:
        status, _, err = finish(process)
        assert status == -15 and said(err) == [], err
    wait_until(lambda: not prometheus.query('proctor_procs{run="fleet", job="train"}'), "the end of its series")
    paths = proctor.runs()
    assert [p.name for p in paths] == [f"fleet.{i}.proctor" for i in range(NODES)]
    for i, path in enumerate(paths):
        least, most = query(path, "SELECT min(mem_rss_bytes), max(mem_rss_bytes) FROM job_samples")[0]
        assert least <= by_node[i] <= most and most > 16 * (i + 1) << 20
    assert total == pytest.approx(sum(by_node.values()), rel=0.01)
    job = model(proctor, "fleet")[0]
    assert check_sum(job, paths, "mem.rss", "mem_rss_bytes") == pytest.approx(total, rel=0.05)
    assert job["verdict"]["text"] == "killed by SIGTERM on all 4 nodes"
    assert list(texts.iterdir()) == []
