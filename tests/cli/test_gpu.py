# SPDX-License-Identifier: Apache-2.0
"""GPUs, by a library of the driver's name that has none (tests/fake_nvml)."""
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import time

import pytest

from proctor_cli import PROCTOR, SLACK, finish, problems, said

BUILD = pathlib.Path(os.environ.get("PROCTOR_BUILD") or pathlib.Path(PROCTOR).parent)
FAKE = BUILD / "tests" / "fake_nvml"
TWO = """device 0 H200 GPU-aaaa 150000000000 2000000000
device 1 H100 GPU-bbbb 80000000000 1000000000
"""
GB = 1000000000


class Gpu:
    """The command with a driver that says what `script` has."""

    def __init__(self, proctor):
        self.proctor = proctor
        self.script = proctor.work / "nvml"

    def env(self, library=FAKE):
        return {"LD_LIBRARY_PATH": str(library), "FAKE_NVML": str(self.script)}

    def run(self, script, *args, library=FAKE, timeout=60):
        """(the summary, the lines of the device's name, all lines)."""
        self.script.write_text(script)
        done = self.proctor.run("-q", "--summary", self.proctor.summary_file, "--jsonl", "a.jsonl", *args,
                                env=self.env(library), timeout=timeout)
        self.done = done
        summary = self.proctor.summary()
        lines = [json.loads(line) for line in (self.proctor.work / "a.jsonl").read_text().splitlines()]
        devices = {}
        for line in lines:
            if line["type"] == "device" and line["kind"] == "gpu":
                devices.setdefault(line["name"], []).append(line)
        return summary, devices, lines


@pytest.fixture
def gpu(proctor):
    assert (FAKE / "libnvidia-ml.so.1").exists(), "build with the tests"
    return Gpu(proctor)


def job(*uses, seconds=1.0):
    """A job that shows up in the driver's lists: each use is what follows its pid there."""
    lines = "".join(f"echo process {device} $$ {rest} >> $FAKE_NVML; " for device, rest in uses)
    return ["sh", "-c", f"{lines} exec sleep {seconds}"]


def known(lines, key):
    return [line["values"][key] for line in lines if line["values"][key] is not None]


def by_name(summary):
    return {d["name"]: d for d in summary["devices"]}


def events(summary):
    return [e["text"] for e in summary["events"] if e["type"] == "gpu"]


# --- what is read -------------------------------------------------------------------------------------------


def test_devices_and_the_jobs_share(gpu):
    others = "process 0 1 7000000000 c 30 99\n"
    summary, devices, lines = gpu.run(TWO + "util 0 80 0 99\nutil 1 20 0 99\n" + others, "-i", "200ms", "--processes",
                                      *job(("0", "1000000000 cg 50 99"), ("1", "500000000 c 20 99"), seconds=1.5))
    first, second = summary["devices"]
    assert (first["kind"], first["name"], first["model"], first["uuid"]) == ("gpu", "gpu0", "H200", "GPU-aaaa")
    assert (second["name"], second["model"], second["uuid"]) == ("gpu1", "H100", "GPU-bbbb")
    assert first["driver"] == "580.0.fake" and second["bus"] == "00000000:02:00.0"
    assert first["absent"] == second["absent"] == [] and not first["lost"]
    metrics = first["metrics"]
    assert metrics["gpu.util"]["mean"] == pytest.approx(0.8) and metrics["gpu.util.max"]["peak"] == 0.8
    assert metrics["gpu.mem.util"]["mean"] == pytest.approx(0.2)
    assert metrics["gpu.mem.used"]["peak"] == 2 * GB and metrics["gpu.mem.total"]["last"] == 150 * GB
    assert metrics["gpu.mem.reserved"]["last"] == 1 << 20
    assert metrics["gpu.power"]["mean"] == 250 and metrics["gpu.temp"]["last"] == 47
    assert [metrics["gpu.power"][q] for q in ("p50", "p90", "p95", "p99")] == [250] * 4
    assert metrics["gpu.power"]["integral"] == pytest.approx(250 * summary["run"]["duration"], rel=0.3)
    assert metrics["gpu.clock.sm"]["last"] == 1.5e9 and metrics["gpu.clock.mem"]["last"] == 2.6e9
    assert metrics["gpu.pcie.rx"]["mean"] == pytest.approx(3e6, rel=0.05)
    assert metrics["gpu.pcie.tx"]["mean"] == pytest.approx(1e6, rel=0.05)
    # Its counter has a past, and 200 W: only the time of the run counts, up to its end.
    assert metrics["gpu.energy"]["total"] == pytest.approx(200 * summary["run"]["duration"], rel=0.15)
    assert "mark" not in metrics["gpu.energy"]
    assert metrics["gpu.job.usage"]["peak"] == 0.5 and metrics["gpu.job.mem"]["peak"] == GB
    # A process that computes and draws counts once; others do not count.
    whole = summary["metrics"]
    assert whole["gpu.usage"]["peak"] == pytest.approx(0.7) and whole["gpu.mem"]["peak"] == 1.5 * GB
    assert whole["gpu.count"]["peak"] == 2 and "mark" not in whole["gpu.mem"]
    assert whole["system.gpu.usage"]["mean"] == pytest.approx(1.0) and whole["system.gpu.mem"]["peak"] == 3 * GB
    assert whole["system.gpu.count"]["peak"] == 2
    process = [line for line in lines if line["type"] == "process"]
    assert max(p["values"]["gpu.mem"] or 0 for p in process) == 1.5 * GB
    assert {line["model"] for line in devices["gpu0"]} == {"H200"} and devices["gpu1"][0]["uuid"] == "GPU-bbbb"
    assert set(known(devices["gpu0"], "gpu.util")) == {0.8}


def test_a_burst_between_two_samples_is_seen(gpu):
    """200 ms in the middle of a second: in the mean, and in the busiest of the driver's own samples."""
    summary, devices, _ = gpu.run(TWO + "util 0 100 0.4 0.6\n", "-i", "1s", "sleep", "2.2")
    assert by_name(summary)["gpu0"]["metrics"]["gpu.util.max"]["peak"] == 1
    assert max(known(devices["gpu0"], "gpu.util")) == pytest.approx(0.2, abs=0.03)
    assert max(known(devices["gpu1"], "gpu.util")) == 0


def test_use_is_of_the_interval_and_not_of_the_drivers_history(gpu):
    """Asked from 0, the driver would still say 30 % seconds after the process went idle."""
    summary, _, lines = gpu.run(TWO, "-i", "100ms", *job(("0", "1000 c 90 1.0"), seconds=3))
    samples = [line for line in lines if line["type"] == "sample"]
    late = [s["values"]["gpu.usage"] for s in samples if 1.9 < s["elapsed"] < 2.8]
    early = [s["values"]["gpu.usage"] for s in samples if 0.5 < s["elapsed"] < 0.9]
    assert len(late) > 5 and set(late) <= {0, None} and 0 in late
    assert [v for v in early if v is not None] and all(v == pytest.approx(0.9, abs=0.05) for v in early if v is not None)
    assert summary["metrics"]["gpu.usage"]["peak"] == pytest.approx(0.9, abs=0.05)


def test_the_parts_of_a_divided_device_are_what_they_are(gpu):
    script = ("device 0 H200 GPU-aaaa 150000000000 9000000000\n"
              "mig 0 0 H200-MIG-1g MIG-1 18000000000 3000000000\n"
              "mig 0 1 H200-MIG-2g MIG-2 36000000000 6000000000\n"
              "na 0 samples\nna 0 util\nna 0.0 util\nna 0.0 samples\nna 0.1 util\nna 0.1 samples\nna 0.0 use\n"
              "na 0.1 use\nna 0 use\nna 0.0 power\nna 0.1 power\nna 0.0 energy\nna 0.1 energy\n")
    summary, devices, _ = gpu.run(script, "-i", "200ms", *job(("0.1", "5000000000 c 40 99")))
    found = by_name(summary)
    assert list(found) == ["gpu0", "gpu0/mig0", "gpu0/mig1"]
    assert [d["counted"] for d in summary["devices"]] == [True, False, False]
    assert found["gpu0/mig1"]["model"] == "H200-MIG-2g" and found["gpu0/mig1"]["uuid"] == "MIG-2"
    assert found["gpu0/mig1"]["metrics"]["gpu.job.mem"]["peak"] == 5 * GB
    assert found["gpu0/mig1"]["metrics"]["gpu.mem.total"]["last"] == 36 * GB
    assert "gpu.power" in {a["metric"] for a in found["gpu0/mig0"]["absent"]}
    assert found["gpu0"]["metrics"]["gpu.power"]["mean"] == 250
    metrics = summary["metrics"]
    assert metrics["gpu.mem"]["peak"] == 5 * GB and metrics["gpu.count"]["peak"] == 1
    assert metrics["system.gpu.mem"]["peak"] == 9 * GB  # the whole has what the parts have
    assert "gpu.usage" not in metrics
    reason = next(a["reason"] for a in summary["absent"] if a["metric"] == "gpu.usage")
    assert "divided" in reason
    assert reason in [a["reason"] for a in found["gpu0/mig1"]["absent"] if a["metric"] == "gpu.job.usage"]


# --- what is not there --------------------------------------------------------------------------------------


def test_what_one_device_lacks_is_absent_there_alone(gpu):
    lacking = "".join(f"na 0 {call}\n" for call in ("power", "samples", "util", "sm", "temperature", "pcie", "reasons"))
    summary, devices, _ = gpu.run(TWO + lacking, "-i", "200ms", "sleep", "1.5")
    first, second = by_name(summary)["gpu0"], by_name(summary)["gpu1"]
    absent = {a["metric"]: a["reason"] for a in first["absent"]}
    assert set(absent) == {"gpu.power", "gpu.util", "gpu.util.max", "gpu.mem.util", "gpu.clock.sm", "gpu.temp", "gpu.pcie.rx",
                           "gpu.pcie.tx", "gpu.throttle"}
    assert absent["gpu.power"] == "this device does not support it"
    assert first["metrics"]["gpu.clock.mem"]["last"] == 2.6e9 and first["metrics"]["gpu.mem.used"]["last"] == 2 * GB
    assert second["absent"] == []
    assert all(line["values"]["gpu.util"] is None for line in devices["gpu0"])
    assert 0 in known(devices["gpu1"], "gpu.util")
    # What no device told is absent for the machine, too; here one did.
    assert summary["metrics"]["system.gpu.usage"]["peak"] == 0


def test_a_library_of_long_ago(gpu):
    """First versions of symbols and structures, no samples, no energy, no use of processes."""
    summary, _, _ = gpu.run(TWO + "util 0 60 0 99\n", "-i", "100ms", *job(("0", "1000000000 cg 50 99"), seconds=1.5),
                            library=FAKE / "old")
    first = by_name(summary)["gpu0"]
    assert first["metrics"]["gpu.util"]["mean"] == pytest.approx(0.6)
    assert first["metrics"]["gpu.energy"]["mark"] == "power over time"
    assert first["metrics"]["gpu.energy"]["total"] == pytest.approx(250 * 1.5, rel=0.2)
    absent = {a["metric"]: a["reason"] for a in first["absent"]}
    assert absent["gpu.mem.reserved"] == "this driver is too old for it" and "gpu.util.max" in absent
    assert "gpu.throttle" in absent
    assert summary["metrics"]["gpu.mem"]["peak"] == GB  # of the first layout
    assert "gpu.usage" not in summary["metrics"]


def test_without_gpus_there_is_a_reason_and_no_thread(gpu):
    summary, devices, _ = gpu.run(TWO, "-i", "50ms", "--no-gpu", "sleep", "0.2")
    assert summary["devices"] == [] and not devices and "gpu" not in summary["self"]
    assert not [m for m in [*summary["metrics"], *[a["metric"] for a in summary["absent"]]] if "gpu." in m]
    summary, devices, _ = gpu.run("", "-i", "50ms", "sleep", "0.3")
    reasons = {a["reason"] for a in summary["absent"] if a["metric"].startswith("gpu.")}
    assert reasons == {"there is no GPU that can be read"} and summary["devices"] == []
    summary, _, _ = gpu.run("init 18\n", "-i", "50ms", "sleep", "0.3")
    reasons = [a["reason"] for a in summary["absent"] if a["metric"] == "gpu.mem"]
    assert "NVIDIA: fake error 18" in reasons[0] and "reboot" in reasons[0]


def test_a_library_that_cannot_be_loaded(gpu):
    (gpu.proctor.work / "broken").mkdir()
    (gpu.proctor.work / "broken" / "libnvidia-ml.so.1").write_text("no library")
    summary, _, _ = gpu.run(TWO, "-i", "50ms", "sleep", "0.3", library=gpu.proctor.work / "broken")
    assert "NVIDIA: " in next(a["reason"] for a in summary["absent"] if a["metric"] == "gpu.usage")
    assert gpu.done.returncode == 0 and problems(summary) == []


# --- what goes wrong ----------------------------------------------------------------------------------------


def test_a_driver_that_hangs_delays_nothing(gpu):
    began = time.monotonic()
    summary, devices, lines = gpu.run(TWO + "hang 0 power 100 0.5 99\n", "-i", "100ms", "sh", "-c", "sleep 4; exit 3")
    assert time.monotonic() - began < 4 + 1.5 * SLACK  # the end does not wait for it either
    assert gpu.done.returncode == 3
    samples = [line for line in lines if line["type"] == "sample"]
    assert len(samples) >= 20 and max(s["interval"] for s in samples) < 0.3 * SLACK
    assert summary["self"]["gpu"]["stalls"] == 1
    assert len(problems(summary)) == 1 and "has not answered for 1." in problems(summary)[0]
    assert "(power)" in problems(summary)[0] and len(said(gpu.done.stderr)) == 1
    assert not [line for line in devices["gpu1"] if line["elapsed"] > 1]  # not the old values again
    assert by_name(summary)["gpu1"]["metrics"]["gpu.mem.used"]["peak"] == GB  # until then


def test_a_driver_that_comes_back(gpu):
    summary, devices, _ = gpu.run(TWO + "hang 0 power 1.6 0.5 0.9\n", "-i", "100ms", "sleep", "3.5")
    assert summary["self"]["gpu"]["stalls"] == 1
    assert known([line for line in devices["gpu1"] if line["elapsed"] > 2.7], "gpu.mem.used")


def test_a_driver_that_hangs_from_the_beginning(gpu):
    began = time.monotonic()
    summary, _, _ = gpu.run("hang all init 100 0 99\n" + TWO, "-i", "50ms", "sh", "-c", "sleep 0.3; kill -TERM $$")
    assert time.monotonic() - began < 0.3 + 1.5 * SLACK
    assert gpu.done.returncode == -signal.SIGTERM and summary["devices"] == []
    began = time.monotonic()
    gpu.run("hang all init 100 0 99\n" + TWO, "true")
    assert time.monotonic() - began < 1 * SLACK and gpu.done.returncode == 0


def test_a_device_that_falls_off_the_bus(gpu):
    summary, devices, _ = gpu.run(TWO + "fail 1 all 15 0.7\n", "-i", "100ms", "sleep", "1.6")
    assert [e for e in events(summary) if "gpu1" in e and "off the bus" in e] and len(events(summary)) == 1
    found = by_name(summary)
    assert found["gpu1"]["lost"] and not found["gpu0"]["lost"]
    assert found["gpu1"]["metrics"]["gpu.mem.used"]["peak"] == GB  # what was known stays known
    assert max(line["elapsed"] for line in devices["gpu1"]) < 1.2 < max(line["elapsed"] for line in devices["gpu0"])
    assert known([line for line in devices["gpu0"] if line["elapsed"] > 1.2], "gpu.power")


@pytest.mark.parametrize("code", [7, 999], ids=["too many processes", "an unknown error"])
def test_a_device_that_stops_to_tell_its_processes(gpu, code):
    """What the job has of all devices is then not known, rather than what it has of the others."""
    script = TWO + f"fail 1 processes {code} 1.0\n"
    uses = ("0", "1000000000 c 50 99"), ("1", "500000000 c 0 99")  # its use does not show that it is on the second
    summary, devices, lines = gpu.run(script, "-i", "100ms", *job(*uses, seconds=2.5))
    samples = [line for line in lines if line["type"] == "sample" and line["elapsed"] > 0.4]
    late = [s for s in samples if s["elapsed"] > 1.3]
    assert set(known(samples, "gpu.mem")) == {1.5 * GB} and known(late, "gpu.mem") == []
    assert set(known(samples, "gpu.count")) == set(known(late, "gpu.count")) == {2}  # who was there is there
    assert known(late, "gpu.usage") and set(known(late, "gpu.usage")) == {0.5}
    assert known([line for line in devices["gpu1"] if line["elapsed"] > 1.3], "gpu.job.mem") == []
    assert known([line for line in devices["gpu1"] if line["elapsed"] > 1.3], "gpu.mem.used")
    assert [e for e in events(summary) if e.startswith("gpu1: the driver does not tell its processes")]
    assert len(events(summary)) == 1 and problems(summary) == []


def test_a_device_that_never_tells_its_processes(gpu):
    script = TWO + "fail 1 processes 999 0\nfail 1 use 999 0\n"
    summary, _, _ = gpu.run(script, "-i", "100ms", *job(("0", "1000000000 c 50 99")))
    reasons = {a["metric"]: a["reason"] for a in summary["absent"]}
    for key in ("gpu.mem", "gpu.usage"):
        assert key not in summary["metrics"] and "fails to tell the processes of every device" in reasons[key]
    assert by_name(summary)["gpu1"]["metrics"]["gpu.power"]["mean"] == 250


def test_errors_and_held_down_clocks_are_events(gpu):
    script = TWO + "xid 1 79 0.3\nset 0 ecc 2 1.0\nset 0 reasons 4 0.5\nset 0 reasons 1 1.0\n"
    summary, devices, _ = gpu.run(script, "-i", "100ms", "sleep", "2.6")
    found = events(summary)
    assert "gpu1: the driver reports Xid error 79" in found
    assert "gpu0: 2 memory errors that ECC could not correct" in found
    assert "gpu0: clocks are held down: power cap" in found and "gpu0: clocks are no longer held down" in found
    assert len(found) == 4 and problems(summary) == []
    assert {1, 4} == set(known(devices["gpu0"], "gpu.throttle"))


def test_what_is_dear_is_asked_less_often(gpu):
    """5 ms of CPU for each of two calls at 10 Hz would be a tenth of a core; none of them starves."""
    script = TWO.splitlines()[0] + "\nburn 0 util 0.005\nburn 0 use 0.005\n"
    summary, devices, _ = gpu.run(script, "-i", "100ms", "--budget", "3%", "sleep", "4")
    calls = {c["name"]: c for c in summary["self"]["gpu"]["calls"]}
    assert calls["memory"]["calls"] >= 30
    for name in ("utilisation", "process utilisation"):
        assert 3 <= calls[name]["calls"] <= 16, name
    assert summary["self"]["gpu"]["cpu_seconds"] < 4 * 0.03 * 1.3  # its start apart
    assert len(known(devices["gpu0"], "gpu.mem.used")) > 2 * len(known(devices["gpu0"], "gpu.util")) > 0


def test_a_sum_over_devices_is_of_all_of_them(gpu):
    """Where utilisation is so dear that one device is asked at a time."""
    script = TWO + "util 0 50 0 99\nutil 1 50 0 99\nburn 0 util 0.01\nburn 1 util 0.01\n"
    summary, devices, lines = gpu.run(script, "-i", "100ms", "--budget", "4%", "sleep", "3")
    sums = {line["values"]["system.gpu.usage"] for line in lines if line["type"] == "sample"} - {None}
    assert sums == {1} and summary["metrics"]["system.gpu.count"]["min"] == 2
    alone = [line["elapsed"] for line in devices["gpu0"] if line["values"]["gpu.util"] is None]
    assert alone, "nothing was thinned: the test shows nothing"


# --- other drivers ------------------------------------------------------------------------------------------


def test_devices_of_a_captured_tree(proctor):
    """AMD and Intel devices of tests/fixtures/gpu-drm, through the thread and all."""
    tree = pathlib.Path(__file__).parents[1] / "fixtures" / "gpu-drm"
    done = proctor("system", "--root", tree, "-i", "100ms", "--duration", "0.7", "--jsonl", "a.jsonl", "--summary",
                   proctor.summary_file)
    assert done.returncode == 0, done.stderr
    found = by_name(proctor.summary())
    assert sorted(found) == ["card0", "card1"]
    amd, intel = found["card0"], found["card1"]
    assert amd["model"].startswith("AMD INSTINCT MI210") and amd["driver"] == "amdgpu" and amd["bus"] == "0000:03:00.0"
    assert amd["metrics"]["gpu.util"]["mean"] == pytest.approx(0.37)
    assert amd["metrics"]["gpu.mem.used"]["peak"] == 1234567168 and amd["metrics"]["gpu.power"]["last"] == 43
    assert amd["metrics"]["gpu.energy"]["mark"] == "power over time"
    assert amd["metrics"]["gpu.energy"]["total"] == pytest.approx(43 * 0.6, rel=0.25)
    assert intel["metrics"]["gpu.clock.sm"]["last"] == 1.95e9 and "mark" not in intel["metrics"]["gpu.energy"]
    assert "gpu.util" in {a["metric"] for a in intel["absent"]}
    lines = [json.loads(line) for line in (proctor.work / "a.jsonl").read_text().splitlines()]
    assert {line["name"] for line in lines if line.get("kind") == "gpu"} == {"card0", "card1"}


# --- elsewhere ----------------------------------------------------------------------------------------------


def test_the_screen(gpu):
    gpu.script.write_text(TWO + "util 0 80 0 99\n")
    done = gpu.proctor.run("-i", "100ms", *job(("0", "1000000000 c 50 99")), env=gpu.env())
    lines = {line.split()[0]: line for line in done.stderr.splitlines() if line.strip()}
    assert "peak 0.50 of 1 GPU;" in lines["GPU"] and "memory peak 954 MiB" in lines["GPU"]
    assert "H200: mean 80 %, busiest 80 %, memory controller 20 %" in lines["gpu0"]
    assert "memory peak 1.86 GiB of 140 GiB; 250 W, peak 250 W" in lines["gpu0"] and "gpu1" in lines
    assert "gpu" not in gpu.proctor.run("true").stderr.lower()


def test_the_machine(gpu):
    gpu.script.write_text(TWO + "util 1 40 0 99\n")
    done = gpu.proctor("system", "-i", "100ms", "--duration", "0.8", "--summary", gpu.proctor.summary_file, env=gpu.env())
    summary = gpu.proctor.summary()
    assert done.returncode == 0 and "gpu1" in done.stderr
    assert by_name(summary)["gpu1"]["metrics"]["gpu.util"]["mean"] == pytest.approx(0.4)
    assert summary["metrics"]["system.gpu.usage"]["mean"] == pytest.approx(0.4)
    assert "gpu.usage" not in summary["metrics"]  # nobody's job


def test_select_reads_gpus_only_where_they_are_wanted(gpu):
    summary, devices, _ = gpu.run(TWO, "-i", "100ms", "--select", "cpu.*", "sleep", "0.2")
    assert "gpu" not in summary["self"] and not devices
    summary, devices, _ = gpu.run(TWO, "-i", "100ms", "--select", "gpu.power", "sleep", "0.4")
    assert set(devices["gpu0"][0]["values"]) == {"gpu.power"}
    assert set(by_name(summary)["gpu0"]["metrics"]) == {"gpu.power"}


def test_the_doctor(gpu):
    gpu.script.write_text(TWO + "na 1 power\n")
    done = gpu.proctor("doctor", env=gpu.env())
    assert done.returncode == 0 and done.stderr == ""
    lines = {line[8:44].strip(): (line[2:6].strip(), line[45:]) for line in done.stdout.splitlines() if line[2:6].strip()}
    assert lines["GPUs"][0] == "yes" and lines["GPUs"][1].startswith("2: H200")
    assert lines["gpu0"][0] == "yes" and "H200" in lines["gpu0"][1]
    assert lines["gpu1"][0] == "part" and "gpu.power (this device does not support it)" in lines["gpu1"][1]
    assert lines["use of each process"][0] == lines["memory of each process"][0] == "yes"
    gpu.script.write_text("hang all init 100 0 99\n")
    began = time.monotonic()
    done = gpu.proctor("doctor", env=gpu.env())
    assert "the driver does not answer" in done.stdout and time.monotonic() - began < 8 * SLACK


def test_attach(gpu):
    """A process that has used the GPU for long: no 0 before its use is known."""
    gpu.script.write_text(TWO)
    other = gpu.proctor.other(["sleep", "30"])
    with open(gpu.script, "a") as f:
        f.write(f"process 0 {other.pid} 3000000000 c 60 99\n")
    process = gpu.proctor.start("attach", "-q", "-i", "100ms", "--duration", "1", "--jsonl", "a.jsonl", other.pid,
                                env=gpu.env())
    assert finish(process)[0] == 0
    lines = [json.loads(line) for line in (gpu.proctor.work / "a.jsonl").read_text().splitlines()]
    usage = [line["values"]["gpu.usage"] for line in lines if line["type"] == "sample"]
    assert 0 not in usage and pytest.approx(0.6, abs=0.02) in [v for v in usage if v is not None]
    assert max(line["values"]["gpu.mem"] or 0 for line in lines if line["type"] == "sample") == 3 * GB


def host(gpu, folder, source, *args):
    """What a program says that uses the library."""
    here = pathlib.Path(__file__).parents[2]
    subprocess.run(["cc", "-I", here / "include", "-o", folder / "host", here / "tests" / "fake_nvml" / source,
                    BUILD / "libproctor.so", f"-Wl,-rpath,{BUILD}", *SANITIZE], check=True)
    done = subprocess.run([folder / "host", *args], env={**gpu.proctor.env, **gpu.env()}, capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("pause", [0.3, 1.5])
def test_samples_that_a_program_takes_itself(gpu, tmp_path, pause):
    """Nobody can read for them beforehand: they ask, and what they get is of now."""
    gpu.script.write_text(TWO + "set 0 memory 5000000000 4.4\n")
    out = [line.split() for line in host(gpu, tmp_path, "collect.c", str(pause), str(round(6 / pause))).splitlines()]
    at, took, mem = ([float(line[i]) for line in out] for i in range(3))
    late = [m for t, m in zip(at, mem) if t > 1.1]  # until then the driver is loaded, and a first interval goes on
    assert len(late) >= 3 and set(late) == {3 * GB, 6 * GB}, out
    assert [m for t, m in zip(at, mem) if t > 4.5][0] == 6 * GB, "a value of the sample before"
    assert max(took) < 0.2 * SLACK


def test_a_sample_does_not_wait_for_long(gpu, tmp_path):
    gpu.script.write_text(TWO + "hang 0 power 30 1.2 99\n")
    out = [line.split() for line in host(gpu, tmp_path, "collect.c", "0.5", "6").splitlines()]
    assert max(float(line[1]) for line in out) < 0.3 * SLACK
    assert out[2][2] == str(3 * GB) and out[-1][2] == "nan"


def test_the_library_takes_its_thread_out(gpu, tmp_path):
    """Inside a host process, the thread that reads GPUs is not the host's."""
    gpu.script.write_text(TWO + "burn 0 memory 0.02\n")
    threads, cpu, fds, summary = host(gpu, tmp_path, "host.c").split("\n", 3)
    assert float(threads) == 1 and float(fds) == 3
    assert float(cpu) < 0.1 * SLACK, "the thread burned more than that"
    assert json.loads(summary)["self"]["gpu"]["cpu_seconds"] > 0.1


SANITIZE = ["-fsanitize=address,undefined"] if os.environ.get("PROCTOR_TEST_SANITIZED") == "1" else []


# --- from the record ----------------------------------------------------------------------------------------


def test_gpus_come_back_from_the_record(gpu):
    """Each line of a device as it was written live, and no other; the summary's devices from samples alone."""
    summary, devices, _ = gpu.run(TWO + "process 0 1 7000000000 c 30 99\n", "-i", "50ms", "--processes",
                                  *job((0, "5000000000 c 50 40"), seconds=1.0))
    done = gpu.proctor("export", "last", "--format", "jsonl", "--processes")
    assert done.returncode == 0, done.stderr
    again = {}
    for line in map(json.loads, done.stdout.splitlines()):
        if line["type"] == "device" and line["kind"] == "gpu":
            again.setdefault(line["name"], []).append(line)
    assert again == devices and len(devices["gpu0"]) > 5
    [path] = gpu.proctor.runs()
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM summary")
        db.execute("UPDATE run SET ended = NULL")
    db.close()
    rebuilt = by_name(json.loads(gpu.proctor("show", "--json", "last").stdout))
    for name, device in by_name(summary).items():
        other = rebuilt[name]
        assert [other[k] for k in ("kind", "model", "uuid", "counted")] == [device[k] for k in ("kind", "model", "uuid", "counted")]
        assert other["metrics"].keys() == device["metrics"].keys()
        for key, values in device["metrics"].items():
            for statistic in ("total", "peak", "min", "last"):
                if statistic in values and values[statistic] is not None:
                    assert other["metrics"][key][statistic] == pytest.approx(values[statistic]), (key, statistic)
    assert "H200" in gpu.proctor("show", "last").stdout
