# SPDX-License-Identifier: Apache-2.0
"""proctor.compat.spdl. Tests that name a defect are about one of the original's. Each script is a process group."""
import dataclasses
import inspect
import subprocess
import textwrap

import pytest
from pythons import PLACES, PYTHONS, clean_environment

from proctor.compat.spdl import ProcessGroupResourceUsage, ProcessGroupStatsMonitor

WATCH = """
import asyncio, os, subprocess, sys, time
from proctor.compat.spdl import ProcessGroupStatsMonitor
seen = []
async def callback(usage): seen.append(usage)
async def watch(work, interval=0.2, **more):
    task = asyncio.get_running_loop().create_task(ProcessGroupStatsMonitor(callback, interval=interval, **more).run())
    await work()
    task.cancel()
    begun = time.monotonic()
    try:
        await task
        raise SystemExit("it must not swallow that it was cancelled")
    except asyncio.CancelledError:
        return time.monotonic() - begun
"""


def script(folder, text, python=PYTHONS["debian"]):
    done = subprocess.run([python, "-c", WATCH + textwrap.dedent(text)], cwd=folder, capture_output=True, text=True,
                          env=clean_environment(folder, **PLACES), timeout=60, start_new_session=True)
    assert done.returncode == 0, done.stderr
    return done


def test_names_and_defaults_are_the_originals():
    fields = {field.name: field.default for field in dataclasses.fields(ProcessGroupResourceUsage)}
    assert list(fields) == ["pid", "pgid", "cpu_percent", "rss_bytes", "pss_bytes", "private_bytes", "disk_read_bytes",
                            "disk_write_bytes", "num_procs", "net_rx_bytes", "net_tx_bytes"]
    assert all(value is None for name, value in fields.items() if name not in ("pid", "pgid"))
    parameters = inspect.signature(ProcessGroupStatsMonitor).parameters
    assert list(parameters)[:3] == ["callback", "interval", "mp_context"]
    assert parameters["interval"].default == 60.0 and parameters["mp_context"].default is None


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
def test_defect_1_a_member_that_ends_does_not_make_cpu_negative(tmp_path, python):
    """The original: -296 %."""
    script(tmp_path, """
        async def work():
            child = subprocess.Popen([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.5: pass"])
            while child.poll() is None: await asyncio.sleep(0.02)
            await asyncio.sleep(0.4)
        asyncio.run(watch(work))
        assert seen[0].cpu_percent is None and len(seen) >= 4, seen
        assert all(0 <= u.cpu_percent <= 110 * os.cpu_count() for u in seen[1:]), seen
        assert sum(u.cpu_percent / 100 * 0.2 for u in seen[1:]) > 0.2, seen
    """, python)


def test_defect_2_the_monitor_is_not_in_its_figures(tmp_path):
    """The original: 2 processes, twice the RSS, and next to nothing private."""
    script(tmp_path, """
        x = bytearray(b"1") * (100 << 20)
        async def work(): await asyncio.sleep(0.5)
        asyncio.run(watch(work))
        last = seen[-1]
        assert last.num_procs == 1 and last.pid == os.getpid() and last.pgid == os.getpgrp(), last
        assert 100 << 20 < last.private_bytes <= last.pss_bytes <= last.rss_bytes < 160 << 20, last
    """)


def test_defect_3_a_name_that_is_no_text_on_the_machine(tmp_path):
    """The original then gives no sample at all."""
    script(tmp_path, r"""
        import ctypes
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(15, b"\xff\xfe)", 0, 0, 0)
            time.sleep(1.5)
            os._exit(0)
        async def work(): await asyncio.sleep(0.5)
        asyncio.run(watch(work))
        assert len(seen) >= 2 and seen[-1].num_procs == 2, seen
    """)


def test_defect_4_it_ends_at_once_and_nothing_is_left(tmp_path):
    script(tmp_path, """
        async def work(): await asyncio.sleep(0.2)
        took = asyncio.run(watch(work, interval=60))
        assert took < 1, took
        assert len(seen) >= 1  # the first at the start
        assert not open(f"/proc/self/task/{os.getpid()}/children").read()
    """)


def test_defect_5_and_6_what_is_not_known_is_none_and_networks_are_not_negative(tmp_path):
    script(tmp_path, """
        async def work(): await asyncio.sleep(1.2)
        asyncio.run(watch(work, interval=0.5))
        assert seen[0].net_rx_bytes is None and seen[1].net_rx_bytes >= 0 and seen[1].net_tx_bytes >= 0
        assert all(u.disk_write_bytes <= v.disk_write_bytes for u, v in zip(seen, seen[1:]))
        seen.clear()
        asyncio.run(watch(work, interval=0.5, totals=True))
        assert seen[0].net_rx_bytes == 0 and seen[-1].net_rx_bytes >= seen[0].net_rx_bytes
    """)


def test_a_callback_that_fails_does_not_end_it_and_a_daemon_is_left_to_its_parent(tmp_path):
    done = script(tmp_path, """
        import multiprocessing
        count = 0
        async def callback(usage):
            global count
            count += 1
            raise ValueError("callback")
        async def work(): await asyncio.sleep(0.5)
        asyncio.run(watch(work))
        assert count >= 2
        def daemon(): asyncio.run(ProcessGroupStatsMonitor(callback).run())
        p = multiprocessing.get_context("fork").Process(target=daemon, daemon=True)
        p.start(); p.join(); assert p.exitcode == 0
    """)
    assert "callback of the process-group monitor failed" in done.stderr and "daemon process" in done.stderr
