# SPDX-License-Identifier: Apache-2.0
"""Monitor, monitored, run and Run, under every Python."""
import shutil

import pytest
from pythons import PYTHONS, about, run_script, tools


def test_debians_and_the_default_one_are_tested():
    default = about(shutil.which("python3"))
    assert "debian" in PYTHONS and (default[1] in PYTHONS.values() or default[0] < (3, 9)), PYTHONS


PROMISED = """
    import proctor, sys
    seen = []
    callback = seen.append
    with proctor.Monitor(interval=0.5, output="run.proctor", on_sample=callback) as m:   # this process and its children
        with m.phase("load"): ...
        m.mark("epoch", step=3)
    print(m.summary["mem.pss"].peak); m.report("run.html")
    assert m.summary["mem.pss"]._fields[:6] == ("total", "peak", "mean", "min", "last", "at")
    assert 1e6 < m.summary["mem.pss"].peak < 1e9 and len(seen) >= 2
    assert "<html" in open("run.html").read()
    @proctor.monitored
    def function(): return 1
    @proctor.monitored(interval=0.1)
    def generator(): yield 1
    @proctor.monitored(interval=0.1)
    async def coroutine(): return 1
    import asyncio
    assert function() == 1 and list(generator()) == [1] and asyncio.run(coroutine()) == 1
    assert all(f.summary["mem.pss"].peak > 1e6 for f in (function, generator, coroutine))
    r = proctor.run([sys.executable, "-c", ""])
    assert isinstance(r, proctor.Run) and r.returncode == 0
    """


def test_the_interface_is_as_promised(python):
    """The calls of the specification, as they stand there."""
    done = python(PROMISED)
    assert float(done.stdout) > 1e6


def test_the_interface_is_as_promised_with_pandas(tmp_path):
    where = tools("frames", "pandas==2.3.3", "polars==1.35.2")
    run_script(where / "python", PROMISED + """
    frame = proctor.Run.open("run.proctor").to_pandas()
    assert list(frame["mem.rss"]) == [one["mem.rss"] for one in seen]
    """, tmp_path)


def test_a_monitor_measures_what_is_known(python):
    """CPU time by the thread's own clock, memory that is really touched, a child, phases and marks."""
    python("""
        import proctor, time, subprocess, sys, json
        seen = []
        with proctor.Monitor(interval=0.02, output="a.proctor", on_sample=seen.append, processes=True) as m:
            assert m.running
            with m.phase("cpu"):
                began = time.thread_time()
                while time.thread_time() < began + 0.3: pass
            with m.phase("memory"):
                x = bytearray(b"1") * (60 << 20)
                time.sleep(0.1)
            m.mark("here", step=3, share=0.5)
            subprocess.run([sys.executable, "-c", "x = bytearray(b'1') * (20 << 20); import time; time.sleep(0.2)"])
        assert not m.running
        s = m.summary
        assert s["cpu.time"].total >= 0.3, s["cpu.time"]
        assert s["mem.rss"].peak >= (60 << 20) and s["mem.rss"].total is None
        assert s["procs"].peak == 2 and s["procs.started"].total == 2  # with the one that was there
        phases = {p["name"]: p for p in s.phases}
        assert 0.28 <= phases["cpu"]["metrics"]["cpu.time"]["total"] <= 0.45, phases["cpu"]["metrics"]["cpu.time"]
        assert phases["memory"]["metrics"]["mem.rss"]["peak"] >= (60 << 20)
        assert len(seen) == s.data["samples"]["taken"] > 10
        assert [a.elapsed < b.elapsed for a, b in zip(seen, seen[1:])].count(False) == 0
        assert max(len(one.processes) for one in seen) == 2
        assert max(p["mem.rss"] for one in seen for p in one.processes if "mem.rss" in p) >= (60 << 20)
        run = proctor.Run.open("a.proctor")
        columns = run.samples()
        assert len(columns["time"]) == len(seen) and list(columns["elapsed"]) == [one.elapsed for one in seen]
        assert [one["cpu.time"] for one in seen] == list(columns["cpu.time"])
        assert run.summary["cpu.time"].total == s["cpu.time"].total and run.id == s.id
        m.report("a.txt"); m.report("a.svg"); run.report("a.json")
        assert json.load(open("a.json"))["runs"] and open("a.svg").read(4) == "<svg"
        """)


def test_values_cannot_be_changed(python):
    python("""
        import proctor
        def refused(what):
            try: exec(what, globals())
            except (TypeError, AttributeError): return
            raise AssertionError(what)
        one = proctor.Monitor(devices=True, processes=True).collect()
        m = proctor.Monitor()
        with m: pass
        assert one.devices and one.processes
        for what in ("one['mem.rss'] = 1", "one.elapsed = 1", "one.processes[0].pid = 1", "one.devices[0].name = 'x'",
                     "one.new = 1", "m.summary['mem.rss'] = 1", "m.summary['mem.rss'].peak = 1",
                     "m.summary.data['run']['id'] = 1", "del m.summary['mem.rss']", "m.summary.phases.append(1)"):
            refused(what)
        """)


def test_absent_is_not_zero(python):
    """A first sample has no rate; a machine without a GPU has no GPU. No 0 stands for it."""
    python("""
        import proctor, math
        m = proctor.Monitor(no_gpu=True)
        one = m.collect()
        assert "cpu.usage" not in one and one.get("cpu.usage") is None and "gpu.usage" not in one
        m.stop()
        try: m.summary["gpu.usage"]
        except KeyError as e: assert "gpu.usage" in str(e)
        else: raise AssertionError("a value of nothing")
        proctor.Monitor(output="b.proctor", no_gpu=True, interval=0.01).start().stop()
        columns = proctor.Run.open("b.proctor").samples(["gpu.usage", "mem.rss"])
        assert all(map(math.isnan, columns["gpu.usage"])) and columns["mem.rss"][0] > 1e6
        """)


def test_what_is_not_quite_of_now_is_marked(python):
    """Descriptors of who always runs are read in turn: what the library says of them is said of the same samples here,
    and of those that are exact nothing."""
    python("""
        import proctor, time, json, subprocess, sys, copy, pickle
        seen = []
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        with proctor.Monitor(interval=0.02, on_sample=seen.append, jsonl="a.jsonl") as m:
            time.sleep(0.8)
        busy.kill(); busy.wait()
        lines = [json.loads(line) for line in open("a.jsonl")]
        written = [line.get("marks", {}) for line in lines if line["type"] == "sample"]
        assert [dict(one.marks) for one in seen] == [{key: word for key, word in marks.items() if key in one}
                                                     for one, marks in zip(seen, written)]
        old = [one for one in seen if one.marks.get("fds") == "up to 20 s old"]
        assert len(seen) == len(written) > 10 and len(old) > len(seen) / 4, [dict(one.marks) for one in seen]
        for one in seen:
            assert set(one.marks) <= set(one) and not {"mem.rss", "procs"} & set(one.marks), one.marks
        assert copy.deepcopy(old[0]).marks == pickle.loads(pickle.dumps(old[0])).marks == old[0].marks
        try: old[0].marks["fds"] = "exact"
        except TypeError: pass
        else: raise AssertionError("a mark was changed")
        s = m.summary
        assert s["fds"].mark == "up to 20 s old" and s["mem.rss"].mark is None and s["fds"]._fields[-1] == "mark"
        assert {key: stat.mark for key, stat in s.items()} == {key: v.get("mark") for key, v in s.data["metrics"].items()}
        """)


def test_an_estimate_is_marked(python):
    """Memory is read once, and then there is no budget: what is said in between is an estimate, and looks like one."""
    python("""
        import proctor, time
        m = proctor.Monitor(children=False, interval=0.02, budget="0.001%")
        first = m.collect()
        assert "mem.pss" in first and "mem.pss" not in first.marks, first.marks
        x = bytearray(b"1") * (20 << 20)
        later = m.collect()
        assert later.marks["mem.pss"] == "last reading and change of RSS", later.marks
        assert "mem.pss" not in first.marks and "mem.rss" not in later.marks
        m.stop()
        assert m.summary["mem.pss"].mark and not m.summary["mem.rss"].mark
        """)


def test_what_is_wrong_is_said(python):
    python("""
        import proctor, errno, os
        def fails(code, words, make):
            try: make()
            except proctor.Error as e: assert e.errno == code and words in str(e), repr(e)
            else: raise AssertionError(words)
        fails(errno.EINVAL, "interval", lambda: proctor.Monitor(interval="soon"))
        fails(errno.EINVAL, "nonsense", lambda: proctor.Monitor(nonsense=1))
        fails(errno.EINVAL, "did you mean interval?", lambda: proctor.Monitor(intervall=1))
        fails(errno.EINVAL, "pid: 'abc' is no number", lambda: proctor.Monitor("abc"))
        fails(errno.EINVAL, "group: 'x' is no number", lambda: proctor.Monitor(group="x"))
        fails(errno.ESRCH, "", lambda: proctor.Monitor(pid=2**22 - 1))
        fails(errno.ENOENT, "/no/such", lambda: proctor.Run.open("/no/such"))
        fails(errno.EMEDIUMTYPE, "", lambda: proctor.Run.open("/bin/sh"))
        m = proctor.Monitor()
        fails(errno.EBUSY, "summary", lambda: m.summary)
        m.start()
        fails(errno.EBUSY, "started", m.start)
        fails(errno.EBUSY, "", m.collect)
        m.stop(); m.stop()
        fails(errno.EBUSY, "ended", lambda: m.mark("late"))
        fails(errno.EINVAL, "output", lambda: m.report("a.html"))
        m = proctor.Monitor(output="c.proctor"); m.start().stop()
        fails(errno.EINVAL, "ending", lambda: m.report("c.pdf"))
        fails(errno.EEXIST, "c.proctor' is there already; force=True overwrites it", lambda: m.start())
        assert "mem.rss" in proctor.Run.open("c.proctor").samples("mem.rss")  # one key
        assert "CPU time" in repr(m) and repr(proctor.Monitor()) == "<Monitor, not started>"
        assert proctor.__version__ == proctor.version()
        os.unlink("c.proctor"); m.start().stop()  # what was in the way is gone
        try: proctor.Monitor(pid=1, system=True)
        except ValueError as e: assert "pid and system" in str(e)
        assert isinstance(proctor.Error(1, "x"), OSError)
        """)


def test_a_monitor_can_be_started_again(python):
    python("""
        import proctor, time
        m = proctor.Monitor(interval=0.01)
        ids = set()
        for _ in range(3):
            with m: time.sleep(0.02)
            ids.add(m.summary.id)
        assert len(ids) == 3
        """)


def test_other_targets(python):
    python("""
        import proctor, subprocess, os, time
        child = subprocess.Popen(["sleep", "7"], start_new_session=True)
        try:
            assert proctor.Monitor(child.pid).collect()["procs"] == 1
            assert proctor.Monitor(group=child.pid).collect()["procs"] == 1
            assert proctor.Monitor(match="sleep").collect()["procs"] >= 1
            assert proctor.Monitor(system=True).collect()["system.mem.total"] > 1e6
            assert proctor.Monitor(children=False).collect()["procs"] == 1
            # and it ends by itself with what it watches
            m = proctor.Monitor(child.pid, interval=0.01).start()
        finally:
            child.kill(); child.wait()
        time.sleep(0.05)
        assert m.stop().duration < 5
        """)


def test_a_slow_or_failing_callback_holds_nothing_up(python):
    """Sampling goes on, what it raises is logged, and everything waits for it at the end."""
    python("""
        import proctor, time, logging
        records = []
        class Keep(logging.Handler):
            def emit(self, record): records.append(record)
        logging.getLogger("proctor").addHandler(Keep())
        seen = []
        def slow(snapshot):
            seen.append(snapshot); time.sleep(0.05)
            if len(seen) == 2: raise RuntimeError("of the user")
        with proctor.Monitor(interval=0.01, on_sample=slow) as m:
            time.sleep(0.3)
        assert len(seen) == m.summary.data["samples"]["taken"] > 10 > 0.3 / 0.05
        assert [r.levelname for r in records if r.exc_info] == ["ERROR"]
        late = []
        class Stops:
            def __call__(self, snapshot):
                late.append(snapshot); self.m.stop()
        stops = Stops(); stops.m = proctor.Monitor(interval=0.01, on_sample=stops).start()
        end = time.monotonic() + 10
        while stops.m.running and time.monotonic() < end: time.sleep(0.01)
        assert not stops.m.running and stops.m.summary["procs"].peak == 1
        """)


def test_trouble_is_logged(python):
    """A full disk, in the form of /dev/full."""
    done = python("""
        import proctor, time, logging
        logging.basicConfig(level=logging.WARNING, format="%(name)s %(levelname)s %(message)s")
        with proctor.Monitor(interval=0.01, csv="/dev/full"):
            time.sleep(0.1)
        """)
    assert "proctor WARNING" in done.stderr and "/dev/full" in done.stderr and "Traceback" not in done.stderr


def test_a_server_that_is_not_there_is_logged(python):
    """At the end, once: what was said before the last sample is not said again."""
    done = python("""
        import proctor, time, logging
        logging.basicConfig(level=logging.WARNING, format="%(name)s %(levelname)s %(message)s")
        began = time.monotonic()
        with proctor.Monitor(interval=0.1, output="a.proctor", otlp="http://127.0.0.1:1", flush_timeout=0.5):
            time.sleep(0.2)
        assert time.monotonic() < began + 5
        """)
    assert done.stderr.count("proctor WARNING otlp: ") == len(set(done.stderr.splitlines())), done.stderr
    assert "samples are not sent" in done.stderr and "proctor push" in done.stderr


def test_decorated_functions(python):
    python("""
        import asyncio, proctor, time
        got = []
        @proctor.monitored
        def plain(a, *, b):
            "doc"
            return a + b
        assert not hasattr(plain, "summary")  # what types say is there is there, or nothing is
        assert plain(1, b=2) == 3 and plain.__doc__ == "doc" and plain.summary["procs"].peak == 1
        @proctor.monitored(interval=0.01, on_summary=got.append, name="g")
        def generator():
            sent = yield 1
            yield sent
            return 5
        g = generator()
        assert next(g) == 1 and not got
        time.sleep(0.05)
        assert g.send("x") == "x"
        try: next(g)
        except StopIteration as e: assert e.value == 5
        assert got.pop().duration >= 0.05
        for _ in generator(): break  # left early: it is over all the same
        import gc; gc.collect()
        assert len(got) == 1; got.clear()
        @proctor.monitored(interval=0.01, on_summary=got.append)
        async def coroutine():
            await asyncio.sleep(0.05)
            return 7
        assert asyncio.iscoroutinefunction(coroutine) and asyncio.run(coroutine()) == 7 and got.pop().duration >= 0.05
        @proctor.monitored(on_summary=got.append)
        async def items():
            for i in range(3): yield i
        async def all_items(): return [i async for i in items()]
        assert asyncio.run(all_items()) == [0, 1, 2] and len(got) == 1
        class Worker:
            @proctor.monitored
            def work(self, a): return self, a
        worker = Worker()
        assert worker.work(3) == (worker, 3) and worker.work.summary is Worker.work.summary
        @proctor.monitored
        def fails(): raise ZeroDivisionError
        try: fails()
        except ZeroDivisionError: assert fails.summary is not None
        else: raise AssertionError("it was swallowed")
        """)


def test_commands(python):
    """As subprocess.run, with an account."""
    python("""
        import proctor, subprocess, os, signal, time
        r = proctor.run(["sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=True, text=True, output="r")
        assert (r.returncode, r.stdout, r.stderr) == (3, "out\\n", "err\\n"), (r.returncode, r.stdout, r.stderr)
        assert r.summary["procs.started"].total == 1 and r.summary.data["exit"]["code"] == 3
        r = proctor.run(["cat"], input=b"abc", stdout=subprocess.PIPE, options={"label": {"a": "b"}, "no_pss": True})
        assert r.stdout == b"abc" and r.summary.data["run"]["labels"] == {"a": "b"}
        found = proctor.Run.ls()
        assert [row["id"] for row in found] == [r.id] and found[0]["command"] == ["cat"] and found[0]["status"] == "ok"
        assert proctor.Run.open(r.id[:12]).id == proctor.Run.open("last").id == r.id
        assert proctor.run("kill -9 $$", shell=True, output="k").returncode == -signal.SIGKILL
        try: proctor.run(["false"], check=True, output="f")
        except subprocess.CalledProcessError as e: assert e.returncode == 1 and e.cmd == ["false"]
        else: raise AssertionError("check")
        began = time.monotonic()
        try: proctor.run(["sh", "-c", "echo $$ > pid; exec sleep 77"], timeout=0.5, output="t")
        except subprocess.TimeoutExpired: pass
        else: raise AssertionError("timeout")
        assert time.monotonic() - began < 10 and not os.path.exists(f"/proc/{open('pid').read().strip()}")
        assert proctor.Run.open("t").summary.data["exit"]["signal"] == 9
        os.mkdir("elsewhere")
        r = proctor.run(["pwd"], cwd="elsewhere", env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
        assert r.stdout.endswith("/elsewhere\\n") and r.summary["procs.started"].total == 1
        assert proctor.run(["true"], cwd="elsewhere", output="here").path == os.path.abspath("here")
        with proctor.Monitor(output="m.proctor") as m: os.chdir("elsewhere")
        m.report("m.txt"); os.chdir("..")
        try: proctor.run(["no-such-command"], output="n")
        except FileNotFoundError as e: assert "no-such-command" in str(e)
        else: raise AssertionError("a command that is not there")
        """)


def test_as_a_module(python):
    done = python("import runpy, sys; sys.argv = ['proctor', '--version']; runpy.run_module('proctor', run_name='__main__')")
    assert done.stdout.startswith("proctor ")


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_data_frames(name, tmp_path):
    where = tools("frames", "pandas==2.3.3", "polars==1.35.2")
    done = run_script(where / "python", f"""
        import proctor, time, json
        with proctor.Monitor(interval=0.01, output="a.proctor"): time.sleep(0.1)
        frame = proctor.Run.open("a.proctor").to_{name}()
        again = proctor.Run.open("a.proctor").to_{name}(["mem.rss", "gpu.usage"])
        samples = proctor.Run.open("a.proctor").samples(["mem.rss"])
        if {name!r} == "pandas":
            assert str(frame.index.dtype) == "datetime64[ns, UTC]" and frame.index.is_monotonic_increasing
            assert list(again.columns) == ["elapsed", "interval", "mem.rss", "gpu.usage"] and again["gpu.usage"].isna().all()
            assert list(again.index.astype("int64")) == list(samples["time"])
        else:
            assert str(frame.schema["time"]) == "Datetime(time_unit='ns', time_zone='UTC')"
            assert again["gpu.usage"].null_count() == len(again) and again["mem.rss"].null_count() == 0
        assert list(again["mem.rss"]) == list(samples["mem.rss"])
        print(len(frame))
        """, tmp_path)
    assert int(done.stdout) > 5
