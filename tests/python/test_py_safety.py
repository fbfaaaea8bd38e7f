# SPDX-License-Identifier: Apache-2.0
"""Forks, spawned processes, threads, signals, the end of the interpreter."""
import os
import signal
import sqlite3
import subprocess
import textwrap
import time

import pytest
from pythons import PLACES, PYTHONS, clean_environment


def ended(path):
    """Has the record an end?"""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return db.execute("SELECT count(*) FROM summary").fetchone()[0] == 1


def test_in_a_forked_child_a_monitor_is_off_until_it_is_started(python, tmp_path):
    python("""
        import proctor, os, time, sys, threading
        seen = []
        with proctor.Monitor(interval=0.01, output="a.proctor", on_sample=seen.append) as m:
            m.phase_begin("before")
            time.sleep(0.05)
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    seen.clear()
                    assert not m.running
                    m.mark("nothing"); m.phase_end("before")  # nothing happens, nothing is raised
                    with m.phase("nothing"): pass
                    assert m.stop() is None
                    try: m.summary
                    except proctor.Error: pass
                    else: raise AssertionError("a summary of what was not recorded")
                    time.sleep(0.05)
                    assert not seen, "the callback of the parent"
                    fresh = proctor.Monitor(interval=0.01, on_sample=seen.append)
                    with fresh: time.sleep(0.05)
                    assert len(seen) > 1 and fresh.summary["procs"].peak == 1
                    quiet = proctor.Monitor(interval=0.01)
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(pid, 0)[1] == 0
            assert m.running
            m.phase_end("before")
        assert m.summary["procs"].peak == 2 and [p["name"] for p in m.summary.phases] == ["before"]
        # and what is started in the child watches the child
        m = proctor.Monitor(interval=0.01).start()
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                with m: time.sleep(0.2)
                os.write(w, b"good" if m.summary["procs"].peak == 1 and m.summary.duration < 5 else b"bad")
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        assert os.read(r, 4) == b"good"
        most = m.stop()["procs"].peak
        assert most == 2, (most, m.summary.data["processes"]["list"])
        """)
    assert ended(tmp_path / "a.proctor")


def test_a_child_that_ends_as_usual_leaves_the_parents_record_alone(python, tmp_path):
    """Destructors and atexit of the child run: the file and the summary are the parent's."""
    python("""
        import proctor, os, sys, time
        m = proctor.Monitor(interval=0.01, output="a.proctor").start()
        time.sleep(0.03)
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        time.sleep(0.03)
        taken = m.stop().data["samples"]["taken"]
        assert len(proctor.Run.open("a.proctor").samples(["mem.rss"])["time"]) == taken
        """)
    assert ended(tmp_path / "a.proctor")


def test_multiprocessing(python, tmp_path):
    """Workers of either kind are seen as children, and an inherited or pickled monitor is off there."""
    (tmp_path / "work.py").write_text(textwrap.dedent("""
        import multiprocessing, sys, time, proctor
        def work(m):
            return m.running, proctor.Monitor().collect()["procs"], sum(i * i for i in range(2_000_000)) and time.sleep(0.1)
        if __name__ == "__main__":
            context = multiprocessing.get_context(sys.argv[1])
            m = proctor.Monitor(interval=0.01, name="x")
            with m:
                with context.Pool(2) as pool:
                    assert [r[:2] for r in pool.map(work, [m, m])] == [(False, 1.0)] * 2
                    pool.close(); pool.join()
            assert m.summary["procs"].peak >= 3, m.summary["procs"]
            assert m.summary["cpu.time"].total > 0.1
        """))
    for kind in ("fork", "spawn"):
        python("import runpy, sys; sys.argv = ['work.py', sys.argv[1]]; sys.path.insert(0, ''); "
               "runpy.run_path('work.py', run_name='__main__')" if kind == "fork" else
               "import subprocess, sys; sys.exit(subprocess.run([sys.executable, 'work.py', 'spawn']).returncode)", kind)


def test_threads(python):
    """Phases and marks from many threads, stop from several at once, while others fork."""
    python("""
        import proctor, threading, os, time
        m = proctor.Monitor(interval=0.005, on_sample=lambda s: None).start()
        wrong = []
        def annotate(i):
            try:
                for k in range(10):
                    with m.phase(f"p{i}"): m.mark("m", i=i, k=k)  # the end of an outer one may be that of this
            except BaseException as e:
                wrong.append(e)
        def fork():
            for _ in range(5):
                pid = os.fork()
                if pid == 0: os._exit(0)
                os.waitpid(pid, 0)
        threads = [threading.Thread(target=annotate, args=(i,)) for i in range(4)] + [threading.Thread(target=fork)]
        for t in threads: t.start()
        for t in threads: t.join()
        stops = [threading.Thread(target=m.stop) for _ in range(4)]
        for t in stops: t.start()
        for t in stops: t.join()
        assert not wrong, wrong
        assert m.summary.data["annotations"]["marks"] == 40, m.summary.data["annotations"]
        with proctor.Monitor() as m:
            with m.phase("open"): m.stop()
        assert [p["name"] for p in m.summary.phases] == ["open"]
        """, flags=["-W", "ignore::DeprecationWarning"])


@pytest.mark.parametrize("how", ["falls off the end", "sys.exit", "an exception", "in a thread", "forgotten"])
def test_the_end_of_the_interpreter_ends_the_record(python, tmp_path, how):
    done = python("""
        import proctor, sys, threading, time
        seen = []
        class Keep:
            def __call__(self, s): seen.append(s)
        def begin():
            global m
            m = proctor.Monitor(interval=0.01, output="a.proctor", on_sample=Keep(), csv="/dev/full")
            m.start()
        how = sys.argv[1]
        if how == "in a thread":
            t = threading.Thread(target=begin); t.start(); t.join()
        else:
            begin()
        time.sleep(0.05)
        if how == "sys.exit": sys.exit(0)
        if how == "an exception": raise ZeroDivisionError
        if how == "forgotten": del m
        """, how, good=False)
    assert done.returncode == (1 if how == "an exception" else 0), done.stderr
    assert "Fatal" not in done.stderr and done.stderr.count("Traceback") == (how == "an exception"), done.stderr
    assert ended(tmp_path / "a.proctor")


def test_signals(tmp_path):
    """Python's handlers run in the main thread as ever, none is lost to our threads, and Ctrl-C ends a
    `with` in good order."""
    script = """
        import proctor, signal, time, os
        hits = []
        signal.signal(signal.SIGUSR1, lambda *a: hits.append(1))
        m = proctor.Monitor(interval=0.01, output="a.proctor", on_sample=lambda s: None)
        try:
            with m:
                for i in range(20):
                    os.kill(os.getpid(), signal.SIGUSR1); time.sleep(0.005)
                print("ready", flush=True)
                time.sleep(30)
        except KeyboardInterrupt:
            assert len(hits) == 20 and m.summary["procs"].peak == 1
            print("interrupted")
        """
    for name, path in PYTHONS.items():
        (tmp_path / name).mkdir()
        job = subprocess.Popen([path, "-c", textwrap.dedent(script)], cwd=tmp_path / name, stdout=subprocess.PIPE, text=True,
                               env=clean_environment(tmp_path, **PLACES))
        assert job.stdout.readline() == "ready\n"
        time.sleep(0.05)
        os.kill(job.pid, signal.SIGINT)
        assert job.communicate(timeout=20)[0] == "interrupted\n" and job.returncode == 0
        assert ended(tmp_path / name / "a.proctor")


def test_it_is_loaded_in_a_worker(python):
    """The first import in a thread, and in a child of a process that has never heard of it."""
    python("""
        import threading, os
        def use():
            import proctor
            with proctor.Monitor(interval=0.01) as m: pass
            assert m.summary["procs"].peak == 1
            done.append(1)
        done = []
        t = threading.Thread(target=use); t.start(); t.join()
        pid = os.fork()
        if pid == 0:
            use(); os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0 and done
        """)


def test_nothing_is_left_behind(python):
    """Threads, descriptors, memory, warnings of the interpreter in its strictest mode."""
    python("""
        import proctor, gc, os, sys, threading
        def left():
            gc.collect()
            with open("/proc/self/statm") as f: pages = int(f.read().split()[1])
            return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), threading.active_count(), pages
        def use(n):
            for i in range(n):
                with proctor.Monitor(interval=0.001, on_sample=lambda s: None, processes=True) as m:
                    with m.phase("p"): m.mark("m")
                m.summary
                proctor.Monitor(interval=0.001).start()  # forgotten
                proctor.Monitor().collect()
                try: proctor.Monitor(interval="soon")
                except proctor.Error: pass
                try: proctor.Monitor(output="/no/such/folder/a").start()
                except proctor.Error: pass
        use(10)
        before = left()
        use(25)
        after = left()
        assert after[:3] == before[:3], (before, after)
        assert after[3] - before[3] < 512, (before, after)  # pages: 2 MiB
        """, flags=["-X", "dev", "-W", "error"])
