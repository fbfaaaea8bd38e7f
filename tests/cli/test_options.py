# SPDX-License-Identifier: Apache-2.0
"""Options: all of them parse, bad values are refused with a remedy, and who wins over whom."""
import json
import os
import re
import subprocess

import pytest

from proctor_cli import ROOT, read_csv, said

# Every option of section 2, with a value that is right.
ACCEPTED = [["-i", "1s"], ["--interval", "100ms"], ["--interval=0.5"], ["-i2s"], ["--no-record"],
            ["-o", "x.proctor"], ["--output", "x.proctor"], ["--force"],
            ["--csv", "a.csv"], ["--jsonl", "a.jsonl"], ["--processes"], ["--dialect", "native"], ["--average", "2"],
            ["--select", "cpu.time"], ["--no-pss"], ["--no-gpu"], ["--label", "a=b"],
            ["--name", "x"], ["--run-id", "x"], ["--node", "3"], ["--memory-total", "1G"],
            ["--cpu-total", "2.5"], ["--exact", "auto"], ["--exact", "none"],
            ["--exact", "cgroup"], ["--exact", "perf"], ["--exact", "taskstats"], ["--wait-tree"],
            ["--budget", "5%"], ["--budget", "0.5"], ["--summary", "s.json"], ["--report", "x.json"],
            ["--flush-timeout", "1s"], ["--root", "/"], ["--strict"], ["-q"], ["--quiet"], ["-v"],
            ["--verbose"], ["-qv"], ["--color", "never"], ["--match", "x"],
            ["--match=name=^x$"], ["--textfile", "x.prom"], ["--mlflow-join"], ["--otlp-command"], ["--prefix", "x/"],
            [f"--prometheus=127.{os.getpid() % 250 + 1}.2.3:9464"], ["--peaks", "interval"], ["--table", "system", "--dialect", "resource-tracker"]] + \
           [["--dialect", d] for d in ("resource-tracker", "resource-tracker-0.1", "oasislmf",
                                       "stouputils", "pytyche", "spdl", "snakemake", "nextflow",
                                       "gnu-time")]
# (--mlflow and --otlp have servers: test_mlflow.py, test_otlp_collector.py.)
# Those of commands that record nothing; test_runs*.py, test_compare.py and test_suggest.py have them.
OF_RECORDED_RUNS = {"json", "status", "since", "before", "format", "keep", "dry-run", "all", "fail-if", "baseline",
                    "save-baseline", "allow-failed", "align", "for", "margin", "images", "github"}
# Option, value, and what the message must have besides: the remedy.
BAD = [("-i", "soon", "100ms"), ("--interval", "0.5ms", "1ms"), ("--interval", "0", "1ms"),
       ("--interval", "", "100ms"), ("--interval", "-1s", "100ms"), ("--interval", "1s2", "100ms"),
       ("--interval", "99999h", ""), ("--average", "0", "1"), ("--average", "1.5", "whole number"),
       ("--average", "many", "whole number"), ("--select", "no.such", "proctor metrics"),
       ("--select", "cpu.time,no.such", "proctor metrics"), ("--select", "nope.*", "metrics"),
       ("--select", "", "KEYS"), ("--select", ",", ""), ("--label", "alone", "KEY=VALUE"),
       ("--label", "=x", "KEY=VALUE"), ("--memory-total", "much", "64GiB"),
       ("--memory-total", "0", "1 byte"), ("--cpu-total", "0", "0.001"),
       ("--cpu-total", "two", "2.5"), ("--exact", "often", "auto"),
       ("--dialect", "klingon", "native"), ("--table", "x", "--dialect"),
       ("--peaks", "all", "interval"), ("--budget", "much", "1%"), ("--budget", "0", "0.001%"),
       ("--color", "maybe", "always"), ("--flush-timeout", "x", "2s"), ("--name", "", "NAME"),
       ("--csv", "", "FILE"), ("--textfile", "", "FILE"), ("--summary", "", "FILE"), ("--root", "/no/such", "/no/such")]


def ids(value):
    return " ".join(value) if isinstance(value, list) else str(value)


@pytest.mark.parametrize("options", ACCEPTED, ids=ids)
def test_is_accepted(proctor, options):
    done = proctor.run(*options, "sh", "-c", "exit 3")
    assert done.returncode == 3, done.stderr
    assert said(done.stderr) == [] or "-v" in options[0] or options in (["-qv"], ["--mlflow-join"])


@pytest.mark.parametrize("options", [["--no-children"], ["--duration", "100ms"]], ids=ids)
def test_is_accepted_by_attach(proctor, options):
    job = proctor.other(["sleep", "0.3"])
    assert proctor("attach", "-q", *options, job.pid).returncode == 0


@pytest.mark.parametrize("option, value, remedy", BAD)
def test_a_bad_value_is_refused_with_option_value_and_remedy(proctor, option, value, remedy):
    done = proctor.run(option, value, "touch", "started")
    assert done.returncode == 125 and len(said(done.stderr)) == 1
    assert option.removeprefix("--") in done.stderr
    shown = value.split(",")[-1] or value  # of several, the one that is wrong
    assert (f"'{shown}'" in done.stderr or "empty" in done.stderr) and remedy in done.stderr
    assert not (proctor.work / "started").exists()


def test_the_table_above_has_every_option_of_the_source():
    names = set(re.findall(r'\.name = "([a-z-]+)"', (ROOT / "src/core/options.def").read_text()))
    here = {o[0].split("=")[0].removeprefix("--") for o in ACCEPTED if o[0][:2] == "--"}
    assert names == here | {"no-children", "duration", "group", "cgroup", "mlflow", "otlp"} | OF_RECORDED_RUNS


def test_the_last_of_several_wins(proctor):
    _, summary = proctor.recorded("-i", "3s", "--interval=4s", "-i5s", "true")
    assert summary["run"]["interval"] == 5


# --- precedence -----------------------------------------------------------------------------------

def configured(proctor, name, *words, **env):
    """(value, origin) of an option as `proctor config` shows it."""
    done = proctor("config", *words, env=env)
    assert done.returncode == 0, done.stderr
    found = re.search(rf"^{name} +=(.*)#(.*)$", done.stdout, re.M)
    return found.group(1).strip(), found.group(2).strip()


def test_config_shows_value_and_origin_of_each(proctor):
    assert configured(proctor, "interval") == ("1s", "default")
    proctor.config("interval = 4s\n# a comment\n\n  no-pss=true  \n")
    assert configured(proctor, "interval") == ("4s", "config file")
    assert configured(proctor, "no-pss") == ("true", "config file")
    assert configured(proctor, "interval", PROCTOR_INTERVAL="3s") == ("3s", "variable")
    assert configured(proctor, "average") == ("1", "default")


def test_config_lists_every_option(proctor):
    listed = re.findall(r"^([a-z-]+) +=", proctor("config").stdout, re.M)
    names = re.findall(r'\.name = "([a-z-]+)"', (ROOT / "src/core/options.def").read_text())
    assert sorted(listed) == sorted(set(names) - OF_RECORDED_RUNS)


@pytest.mark.parametrize("option, variable, file, interval", [
    ("2s", "3s", "4s", 2), (None, "3s", "4s", 3), (None, None, "4s", 4), (None, None, None, 1),
    ("2s", None, "4s", 2), ("2s", "3s", None, 2), (None, "", "4s", 4)])
def test_option_over_variable_over_file_over_default(proctor, option, variable, file, interval):
    if file:
        proctor.config(f"interval = {file}\n")
    env = {} if variable is None else {"PROCTOR_INTERVAL": variable}
    _, summary = proctor.recorded(*(["-i", option] if option else []), "true", env=env)
    assert summary["run"]["interval"] == interval


def test_lists_are_replaced_not_added_to_by_a_higher_source(proctor):
    proctor.config("csv = file.csv\n")
    proctor.run("-q", "true", env={"PROCTOR_CSV": "b.csv,c.csv"})
    assert {p.name for p in proctor.work.iterdir()} == {"b.csv", "c.csv"}
    proctor.run("-q", "--csv", "with,comma.csv", "true", env={"PROCTOR_CSV": "d.csv"})
    assert {p.name for p in proctor.work.iterdir()} == {"b.csv", "c.csv", "with,comma.csv"}


@pytest.mark.parametrize("text, on", [("1", True), ("true", True), ("yes", True), ("on", True),
                                      ("0", False), ("false", False), ("no", False)])
def test_flags_as_variables(proctor, text, on):
    done = proctor.run("-q", "--csv", "-", "true", env={"PROCTOR_NO_PSS": text})
    assert ("mem_pss_bytes" in done.stdout) != on


@pytest.mark.parametrize("env", [{"PROCTOR_INTERVAL": "soon"}, {"PROCTOR_NO_PSS": "perhaps"},
                                 {"PROCTOR_LABEL": "alone"},
                                 {"PROCTOR_LABEL": "a=1,b"}, {"PROCTOR_SELECT": "nothing.real"}],
                         ids=str)
def test_a_bad_variable_is_named(proctor, env):
    (name, value), = env.items()
    done = proctor.run("touch", "started", env=env)
    assert done.returncode == 125 and name in done.stderr
    assert not (proctor.work / "started").exists()
    assert proctor("config", env=env).returncode == 2


@pytest.mark.parametrize("line", ["interval = soon", "no-such = 1", "nonsense",
                                  "label = a=1,b"])
def test_a_bad_line_in_the_config_file_is_named(proctor, line):
    proctor.config(f"\n{line}\n")
    done = proctor.run("touch", "started")
    assert done.returncode == 125 and f"{proctor.config_file}:2" in done.stderr
    assert not (proctor.work / "started").exists()


def test_labels_from_variable_and_file(proctor):
    proctor.config("label = a=1,b=2\n")
    assert proctor.recorded("true")[1]["run"]["labels"] == {"a": "1", "b": "2"}
    _, summary = proctor.recorded("true", env={"PROCTOR_LABEL": "c=3"})
    assert summary["run"]["labels"] == {"c": "3"}


def test_an_absent_or_unreadable_config_file_is_no_error(proctor):
    proctor.config_file.mkdir(parents=True)
    done, summary = proctor.recorded("true")
    assert (done.returncode, done.stderr) == (0, "") and summary["run"]["interval"] == 1


def test_without_xdg_config_home_it_is_in_the_home(proctor):
    del proctor.env["XDG_CONFIG_HOME"]
    path = proctor.folder / "home" / ".config" / "proctor"
    path.mkdir(parents=True)
    (path / "config").write_text("interval = 7s")
    assert configured(proctor, "interval") == ("7s", "config file")


def test_without_home_there_is_no_config_file(proctor):
    del proctor.env["XDG_CONFIG_HOME"], proctor.env["HOME"]
    assert configured(proctor, "interval") == ("1s", "default")


# --- what options do ------------------------------------------------------------------------------

def header(proctor, *options):
    done = proctor.run("-q", "--csv", "-", *options, "true")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[0].split(",")[3:]


def test_select_keys_and_families(proctor):
    assert header(proctor, "--select", "procs,cpu.time") == ["cpu_time_seconds", "procs"]
    assert header(proctor, "--select", "io.*") == [
        "io_read_bytes", "io_write_bytes", "io_rchar_bytes", "io_wchar_bytes",
        "io_read_rate_bytes_per_second", "io_write_rate_bytes_per_second"]
    assert header(proctor, "--select", "procs", "--select", "threads") == ["threads", "procs"]
    assert set(header(proctor, "--select", "*")) == set(header(proctor))


def test_select_is_what_the_summary_has(proctor):
    _, summary = proctor.recorded("--select", "cpu.time,mem.rss", "-i", "10ms", "sleep", "0.1")
    assert set(summary["metrics"]) == {"cpu.time", "mem.rss"} and summary["absent"] == []


def test_a_derived_metric_alone_is_still_measured(proctor):
    _, summary = proctor.recorded("--select", "cpu.usage,mem.ratio,io.write.rate", "-i", "20ms",
                                  "sh", "-c", "sleep 0.1; i=0; while [ $i -lt 20000 ]; do "
                                  "i=$((i+1)); done; sleep 0.1")
    assert set(summary["metrics"]) == {"cpu.usage", "mem.ratio", "io.write.rate"}
    assert summary["metrics"]["cpu.usage"]["peak"] > 0
    assert summary["metrics"]["mem.ratio"]["peak"] > 0
    assert summary["metrics"]["cpu.usage"]["mean"] > 0
    assert summary["metrics"]["io.write.rate"]["mean"] == 0


def test_no_pss_and_no_gpu_leave_those_out(proctor):
    columns = header(proctor, "--no-pss", "--no-gpu")
    assert not [c for c in columns if c.startswith("gpu") or "pss" in c or "uss" in c]
    assert "mem_ratio" in columns
    _, summary = proctor.recorded("--no-pss", "-i", "10ms", "sleep", "0.1")
    assert summary["metrics"]["mem.ratio"]["mark"] == "from RSS"


def test_labels_name_and_node_are_recorded(proctor):
    _, summary = proctor.recorded("--label", "a=b=c", "--label", "empty=", "--name", "näme",
                                  "--node", "3", "--run-id", "R", "true")
    run = summary["run"]
    assert run["labels"] == {"a": "b=c", "empty": ""}
    assert (run["name"], str(run["node"]), run["id"]) == ("näme", "3", "R")


def test_totals_change_the_ratios(proctor):
    job = ["-i", "20ms", "--budget", "1000%", "sh", "-c", "sleep 0.1; i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"]
    _, summary = proctor.recorded("--memory-total", "1GiB", "--cpu-total", "10", "--csv", "a.csv",
                                  *job)
    metrics, limits = summary["metrics"], summary["limits"]
    assert limits["cpu"] == {"cores": 10, "source": "--cpu-total"}
    assert limits["memory"] == {"bytes": 2 ** 30, "source": "--memory-total"}
    assert metrics["cpu.ratio"]["mean"] == pytest.approx(metrics["cpu.usage"]["mean"] / 10)
    assert metrics["cpu.percent"]["mean"] == pytest.approx(metrics["cpu.usage"]["mean"] * 100)
    rows = [r for r in read_csv(proctor.work / "a.csv") if r["mem_ratio"] != ""]
    assert rows and any(row["mem_pss_bytes"] != "" for row in rows)
    for row in rows:
        memory = float(row["mem_pss_bytes"] or row["mem_rss_bytes"])
        assert float(row["mem_ratio"]) == pytest.approx(memory / 2 ** 30, abs=1e-8)


def test_going_over_the_budget_is_said_and_pss_is_thinned_first(proctor):
    done = proctor.run("--budget", "0.001%", "-i", "5ms", "--summary", proctor.summary_file,
                       "sleep", "1.1")
    thin = proctor.summary()
    assert "over the budget of 0.001%" in done.stderr
    assert [e["type"] for e in thin["events"]] == ["budget"]
    assert thin["metrics"]["mem.pss.age"]["peak"] > 0.5
    assert thin["samples"]["taken"] > 100  # -i was given: the interval stays
    done = proctor.run("--budget", "100%", "-i", "20ms", "--summary", proctor.summary_file,
                       "sleep", "1.1")
    full = proctor.summary()
    assert "budget" not in done.stderr and full["events"] == []
    assert full["metrics"]["mem.pss.age"]["peak"] < 1.1  # of one that does not run


def test_quiet_is_quiet_and_verbose_says_what_is_absent(proctor):
    assert proctor.run("-q", "true").stderr == ""
    loud = proctor.run("-v", "-i", "10ms", "--root", "/", "sleep", "0.05").stderr
    assert "proctor: sleep" in loud


def test_a_root_without_proc_is_a_clear_error(proctor):
    done = proctor.run("--root", proctor.folder, "touch", "started")
    assert done.returncode == 125 and str(proctor.folder) in done.stderr
    assert not (proctor.work / "started").exists()


def test_another_root_that_shows_the_same_processes(proctor):
    host = proctor.folder / "host"
    host.mkdir()
    for name in ("proc", "sys"):
        (host / name).symlink_to(f"/{name}")
    done, summary = proctor.recorded("--root", host, "-i", "20ms", "sh", "-c", "sleep 0.1; exit 3")
    assert (done.returncode, done.stderr) == (3, "")
    assert summary["metrics"]["mem.rss"]["peak"] > 100_000
    assert summary["metrics"]["cpu.time"]["total"] > 0


# --- what it says of itself -----------------------------------------------------------------------

@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help(proctor, words):
    done = proctor(*words)
    assert done.returncode == 0 and done.stderr == ""
    assert all(name in done.stdout for name in ("run", "attach", "metrics", "config"))


@pytest.mark.parametrize("words", [["run", "--help"], ["run", "-h"], ["help", "run"],
                                   ["attach", "--help"]])
def test_help_of_a_command_lists_its_options(proctor, words):
    done = proctor(*words)
    assert done.returncode == 0 and done.stderr == ""
    assert all(o in done.stdout for o in ("--interval", "--csv", "--summary", "[1s]"))
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_version(proctor):
    done = proctor("--version")
    version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text()).group(1)
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["proctor", version])


def test_metrics_as_json_are_exactly_the_rows(proctor):
    catalogue = json.loads(proctor("metrics", "--json").stdout)
    keys = re.findall(r'\.key = "([^"]+)"', (ROOT / "src/core/metrics.def").read_text())
    assert [m["key"] for m in catalogue] == keys
    for m in catalogue:
        assert list(m) == ["key", "unit", "kind", "scope", "source", "meaning"]
        assert all(isinstance(v, str) and v for v in m.values())
    table = proctor("metrics").stdout.splitlines()
    assert [line.split()[0] for line in table[1:]] == keys


def test_the_keys_that_others_rely_on_are_there(proctor):
    """Section 5 of the contract, job scope and that of GPUs, which have no columns."""
    wanted = """cpu.user cpu.system cpu.time cpu.usage cpu.percent cpu.ratio mem.rss mem.pss mem.uss
        mem.vms mem.swap mem.pss.age mem.rss.peak mem.cgroup mem.cgroup.peak mem.ratio io.read
        io.write io.rchar io.wchar io.read.rate io.write.rate net.rx net.tx net.unattributed procs
        procs.started procs.exited threads fds ctx.voluntary ctx.involuntary faults.minor
        faults.major sched.delay gpu.usage gpu.mem gpu.count energy""".split()
    devices = """gpu.util gpu.mem.util gpu.mem.used gpu.mem.total gpu.power gpu.energy gpu.temp gpu.clock.sm
        gpu.clock.mem gpu.throttle""".split()
    catalogue = {m["key"]: m for m in json.loads(proctor("metrics", "--json").stdout)}
    assert set(wanted) <= set(catalogue)
    series = {key for key, m in catalogue.items() if m["scope"] == "gpu"}
    assert set(devices) <= series and not set(wanted) & series
    proctor.run("-q", "--csv", "a.csv", "true")
    assert len(read_csv(proctor.work / "a.csv")[0]) == 3 + len(catalogue) - len(series)


@pytest.mark.parametrize("command", [["metrics"], ["metrics", "--json"], ["config"]])
def test_output_that_cannot_be_written_is_said(proctor, command):
    with open("/dev/full", "w") as full:
        done = subprocess.run([proctor.path, *command], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60, **proctor.options({}))
    assert done.returncode == 1 and "No space left" in done.stderr
