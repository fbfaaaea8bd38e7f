# SPDX-License-Identifier: Apache-2.0
"""Many samples of a job whose processes come and go: memory and descriptors stay where they are, but for a record of
each process (at most 100,000 of them). `make test-full` takes ten times as long."""
import os
from pathlib import Path

from proctor_cli import SANITIZED, SLACK, read_csv, wait_until

CACHE = 1024  # KiB: what SQLite keeps of a run file, once there is so much of it
RECORD = 128   # bytes of a process that has ended
SAMPLES = 20000 if os.environ.get("PROCTOR_TEST_FULL") == "1" else 2000


def held(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    rss = int(status.split("VmRSS:")[1].split()[0])
    return rss, len(os.listdir(f"/proc/{pid}/fd"))


def test_memory_and_descriptors_stay_flat(proctor):
    job = "while :; do sleep 0.003 & sleep 0.002; wait; done"
    # The sanitizer keeps what SQLite gives back, to see who uses it once more.
    env = {"ASAN_OPTIONS": proctor.env.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0"}
    process = proctor.start("run", "-q", "-i", "1ms", "--no-pss", "--csv", "a.csv", "--processes",
                            "--summary", proctor.summary_file, "sh", "-c", job, env=env if SANITIZED else {})
    path = proctor.work / "a.csv"

    def rows():
        return path.exists() and path.read_bytes().count(b"\n")

    wait_until(lambda: rows() > SAMPLES / 10, "the first tenth", 60 * SLACK)
    early = held(process.pid)
    wait_until(lambda: rows() > SAMPLES, "all samples", 0.02 * SAMPLES * SLACK + 60)
    late = held(process.pid)
    process.terminate()
    process.wait(20)
    records = proctor.summary()["processes"]["seen"] * RECORD // 1024
    assert late[0] <= early[0] + 512 + CACHE + records, (early, late, records)
    assert late[1] <= early[1] + 24, (early, late)  # of processes that are alive just now
    totals = [float(row["cpu_time_seconds"]) for row in read_csv(path) if row["cpu_time_seconds"]]
    assert totals == sorted(totals) and totals[-1] > totals[0]
