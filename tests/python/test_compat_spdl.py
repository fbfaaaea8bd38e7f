# SPDX-License-Identifier: Apache-2.0
"""proctor.compat.spdl. Tests that name a defect are about one of the original's. Each script is a process group."""
import dataclasses
import inspect
import os
import subprocess
import textwrap

import pytest
from pythons import PLACES, PYTHONS, clean_environment, skip_visibly

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


def script(folder, text, python=PYTHONS["debian"], before=()):
    done = subprocess.run([*before, python, "-c", WATCH + textwrap.dedent(text)], cwd=folder, capture_output=True,
                          text=True, env=clean_environment(folder, **PLACES), timeout=60, start_new_session=True)
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
        async def work():
            end = time.monotonic() + 5
            while not seen and time.monotonic() < end: await asyncio.sleep(0.05)
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


def test_defect_5_a_member_that_may_not_be_read_is_not_left_out_of_a_sum(tmp_path):
    """A small one of another user beside 100 MiB: the original has the sum of the rest for the whole."""
    if os.getuid() != 0:
        skip_visibly("processes of two users need root")
    script(tmp_path, """
        import ctypes
        memory = bytearray(b"1") * (100 << 20)
        child = subprocess.Popen(["sleep", "1.2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.setresuid(65534, 65534, 65534)
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # what is ours may be read
        async def work():
            while child.poll() is None: await asyncio.sleep(0.05)
            await asyncio.sleep(0.6)
        asyncio.run(watch(work))
        both = [u for u in seen if u.num_procs == 2]
        assert len(both) >= 3 and all(u.rss_bytes > 100 << 20 for u in both), seen
        assert all(u.pss_bytes is None and u.private_bytes is None for u in both), seen
        alone = seen[-1]
        assert alone.num_procs == 1 and 100 << 20 < alone.private_bytes <= alone.pss_bytes, seen
    """)


PAIRS = """for pair in "goes went" "stays stayed"; do
    set -- $pair "$@"
    ip link add $1 type veth peer name $2 && ip link set $1 up && ip link set $2 up || exit 99
    shift 2
done
ip address add 10.9.9.1/24 dev goes && ip neighbour add 10.9.9.2 lladdr 02:00:00:00:00:02 dev goes || exit 99
exec "$@"
"""


def test_defect_6_an_interface_that_goes_does_not_make_networks_negative(tmp_path):
    """In a network of its own: the original has the fall of the sum for what was sent."""
    apart = ["unshare", "--net", "sh", "-c", PAIRS, "sh"]
    probe = subprocess.run([*apart, "true"], capture_output=True, text=True)
    if probe.returncode:
        skip_visibly(f"unshare --net, and veth: {probe.stderr.strip()}")
    script(tmp_path, """
        import socket
        sent = 200 * 1000
        async def work():
            await asyncio.sleep(0.2)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                for _ in range(200): s.sendto(bytes(1000), ("10.9.9.2", 9))
            await asyncio.sleep(1.2)
            subprocess.run(["ip", "link", "delete", "goes"], check=True)
            await asyncio.sleep(1.2)
        asyncio.run(watch(work, interval=0.5))
        moved = [(u.net_rx_bytes, u.net_tx_bytes) for u in seen[1:]]
        assert len(moved) >= 4 and all(rx >= 0 and tx >= 0 for rx, tx in moved), moved
        assert sum(tx for _, tx in moved) >= sent, moved
        assert all(tx < sent / 4 for _, tx in moved[-2:]), moved
    """, before=apart)


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
