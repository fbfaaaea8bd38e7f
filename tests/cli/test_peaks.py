# SPDX-License-Identifier: Apache-2.0
"""--peaks interval: each sample has the true peak since the one before; and the bounds of the run's peak."""
import os

from proctor_cli import numbers, read_csv, skip_visibly

SPIKES = """
import mmap, time
def spike(mb):
    m = mmap.mmap(-1, mb << 20)
    for i in range(0, mb << 20, 4096):
        m[i] = 1
    m.close()
time.sleep(0.35); spike(200); time.sleep(0.9); spike(80); time.sleep(0.9)
"""


def peaks(proctor, *options):
    done = proctor.run("-q", "-i", "300ms", "--csv", "a.csv", "--summary", proctor.summary_file, *options,
                       "/usr/bin/python3", "-c", SPIKES)
    assert done.returncode == 0, done.stderr
    return [v / 2 ** 20 for v in numbers(read_csv(proctor.work / "a.csv"), "mem_rss_peak_bytes")]


def test_a_spike_is_in_its_own_interval_and_in_no_other(proctor):
    marks = peaks(proctor, "--peaks", "interval")
    assert max(marks) > 195 and proctor.summary()["metrics"]["mem.rss.peak"]["peak"] > 195 << 20
    after = marks[marks.index(max(marks)) + 1:]
    assert any(75 < m < 150 for m in after), "the second is seen though it is smaller"
    assert sum(m > 75 for m in marks) <= 5 and min(after) < 40


def test_without_it_the_mark_never_falls(proctor):
    marks = peaks(proctor)
    assert marks == sorted(marks) and marks[-1] > 195


def test_bounds_of_one_process_and_of_several(proctor):
    peaks(proctor)
    bounds = proctor.summary()["accounting"]["memory_peak"]
    assert bounds["lower"] == bounds["upper"] > 195 << 20
    _, summary = proctor.recorded("-i", "50ms", "sh", "-c", "sleep 0.2 & sleep 0.2; wait")
    bounds = summary["accounting"]["memory_peak"]
    assert bounds["lower"] > 0 and bounds["upper"] is None, "some ended whose last mark nobody saw"


def test_a_process_of_another_user_keeps_its_mark(proctor):
    if os.getuid() != 0:
        skip_visibly("only root can become somebody else")
    job = proctor.other(["sleep", "77"])
    done = proctor("attach", "-i", "50ms", "--duration", "0.3s", "--peaks", "interval", str(job.pid), cwd="/",
                   user=65534, group=65534, extra_groups=[])
    assert done.returncode == 0 and "--peaks" in done.stderr and str(job.pid) in done.stderr
