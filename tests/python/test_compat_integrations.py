# SPDX-License-Identifier: Apache-2.0
"""proctor.integrations, with the real Metaflow, joblib and callbacks of transformers. MLflow is in
test_compat_mlflow.py. What needs torch is in test_compat_training.py (`make test-full`): here Lightning's hooks are
called in its order."""
import subprocess
import sys

import pytest
from pythons import PLACES, PYTHONS, clean_environment, run_script, tools

LIGHTNING = """
    import json, os, sys, time, types
    package, module = types.ModuleType("lightning"), types.ModuleType("lightning.pytorch")
    class Callback: pass
    module.Callback = Callback
    sys.modules.update({"lightning": package, "lightning.pytorch": module})
"""


def test_importing_them_imports_no_framework(python):
    """Nor does the package itself: a framework is imported when something of it is used."""
    python("""
        import sys
        import proctor.integrations.mlflow, proctor.integrations.lightning, proctor.integrations.huggingface
        import proctor.integrations.metaflow
        import proctor.compat.stouputils, proctor.compat.oasislmf, proctor.compat.pytyche, proctor.compat.spdl
        import proctor.compat.resource_tracker, proctor.compat.resource_tracker_0_1
        frameworks = {"mlflow", "lightning", "transformers", "metaflow", "matplotlib", "jax", "psutil", "numpy"}
        assert not frameworks & set(sys.modules), frameworks & set(sys.modules)
    """)


def test_lightning_has_phases_metrics_and_a_report(tmp_path):
    run_script(PYTHONS["debian"], LIGHTNING + """
    from proctor.integrations.lightning import ProctorCallback
    assert issubclass(ProctorCallback, Callback)
    logged = []
    trainer = types.SimpleNamespace(is_global_zero=True, current_epoch=0, global_step=0, loggers=[
        types.SimpleNamespace(log_metrics=lambda values, step: logged.append((step, values)))])
    callback = ProctorCallback(interval=0.05, output="a.proctor", report="a.html")
    callback.setup(trainer, None, "fit")
    for trainer.current_epoch in range(2):
        callback.on_train_epoch_start(trainer, None)
        time.sleep(0.15)
        callback.on_validation_start(trainer, None)
        callback.on_validation_end(trainer, None)
        trainer.global_step += 10
        callback.on_train_epoch_end(trainer, None)
    callback.teardown(trainer, None, "fit")
    names = [phase["name"] for phase in callback.summary.phases]
    assert names.count("validation") == 2 and {"epoch 0", "epoch 1"} <= set(names), names
    assert [step for step, _ in logged] == [10, 20] and logged[1][1]["process/memory_rss_megabytes"] > 1
    assert os.path.getsize("a.html") > 10000
    other = ProctorCallback()
    other.setup(types.SimpleNamespace(is_global_zero=False), None)
    other.teardown(None, None)
    assert other.summary is None  # another rank does not watch
    failing = ProctorCallback(interval=0.05)
    failing.setup(trainer, None)
    failing.on_exception(trainer, None, ValueError("x"))
    assert failing.summary is not None
    try:
        ProctorCallback(report="a.html")
        raise SystemExit("a report needs a run file")
    except ValueError: pass
    """, tmp_path)


def test_trouble_with_watching_does_not_reach_a_training(tmp_path):
    done = run_script(PYTHONS["debian"], LIGHTNING + """
    from proctor.integrations.lightning import ProctorCallback
    callback = ProctorCallback(output="/no/such/folder/a.proctor", report="a.html")
    trainer = types.SimpleNamespace(is_global_zero=True, current_epoch=0, global_step=0, loggers=[])
    callback.setup(trainer, None)
    callback.on_train_epoch_start(trainer, None)
    callback.on_train_epoch_end(trainer, None)
    callback.teardown(trainer, None)
    """, tmp_path)
    assert "proctor" in done.stderr


def test_transformers_has_epochs_and_values_in_its_log(tmp_path):
    """The real callback handler and state, without a model."""
    python = tools("transformers", "transformers==5.22.2") / "python"
    run_script(python, """
        import os, time
        from transformers import TrainerControl, TrainerState
        from transformers.trainer_callback import CallbackHandler
        from proctor.integrations.huggingface import ProctorCallback
        callback = ProctorCallback(interval=0.05, output="a.proctor", report="a.html")
        handler = CallbackHandler([callback], None, None, None, None)
        state, control = TrainerState(is_world_process_zero=True), TrainerControl()
        handler.on_train_begin(None, state, control)
        for epoch in range(2):
            state.epoch = float(epoch)
            handler.on_epoch_begin(None, state, control)
            time.sleep(0.15)
            state.global_step += 5
            state.log_history.append({"loss": 1.0})
            handler.on_log(None, state, control, {"loss": 1.0})
            handler.on_evaluate(None, state, control, {})
            handler.on_save(None, state, control)
            handler.on_epoch_end(None, state, control)
        handler.on_train_end(None, state, control)
        assert [phase["name"] for phase in callback.summary.phases] == ["epoch 0", "epoch 1"]
        assert all(entry["process/memory_rss_megabytes"] > 1 for entry in state.log_history), state.log_history
        assert os.path.getsize("a.html") > 10000
    """, tmp_path, env=clean_environment(tmp_path, **PLACES))


FLOW = """
from metaflow import FlowSpec, step
from proctor.integrations.metaflow import track_resources
import os, time

class Tracked(FlowSpec):
    @step
    @track_resources(interval=0.2)
    def start(self):
        memory = bytearray(b"1") * (60 << 20)
        time.sleep(0.7)
        if os.environ.get("BREAK"):
            raise ValueError("broken")
        self.next(self.end)

    @step
    def end(self):
        data = self.resource_tracker_data
        assert data["step_failed"] is False and len(data["tracker"]["process_metrics"]) >= 2
        peaks = [row["memory_mib"] for row in data["tracker"]["process_metrics"] if row["memory_mib"]]
        assert 60 <= max(peaks) <= 250, peaks
        assert data["historical_stats"] == []
        assert "@resources(cpu=1, memory=" in self.resource_tracker_data_html

if __name__ == "__main__":
    Tracked()
"""


def test_a_step_of_metaflow_is_tracked_with_what_earlier_runs_used(tmp_path):
    """Its interval is used, a step that fails has its data and says so (defect 24)."""
    python = tools("metaflow", "metaflow==2.19.39") / "python"
    (tmp_path / "flow.py").write_text(FLOW)
    env = clean_environment(tmp_path, **PLACES, METAFLOW_USER="tester", METAFLOW_DEFAULT_METADATA="local")

    def flow(**more):
        return subprocess.run([python, "flow.py", "--no-pylint", "run"], cwd=tmp_path, env={**env, **more},
                              capture_output=True, text=True, timeout=120)
    done = flow()
    assert done.returncode == 0, done.stdout + done.stderr
    assert flow(BREAK="1").returncode != 0
    run_script(python, """
        from metaflow import Flow, namespace
        namespace(None)
        run = next(iter(Flow("Tracked")))
        data = next(iter(run["start"])).data.resource_tracker_data
        assert not run.successful and data["step_failed"] is True and data["tracker"]["metadata"]["interval"] == 0.2
        assert [round(stats["process_memory_mib"]["max"]) >= 60 for stats in data["historical_stats"]] == [True]
    """, tmp_path, env=env)


MANY = """
from metaflow import FlowSpec, step
from proctor.integrations.metaflow import track_resources
import time

class Many(FlowSpec):
    @step
    def start(self):
        self.sizes = [20, 60, 100]
        self.next(self.work, foreach="sizes")

    @step
    @track_resources(interval=0.2, create_card=False)
    def work(self):
        memory = bytearray(b"1") * (self.input << 20)
        time.sleep(0.5)
        self.next(self.join)

    @step
    def join(self, inputs):
        self.tracked = [task.resource_tracker_data["step_failed"] for task in inputs]
        self.next(self.end)

    @step
    def end(self):
        assert self.tracked == [False] * 3, self.tracked

if __name__ == "__main__":
    Many()
"""


def test_defect_24_all_tasks_of_a_step_are_taken_into_account(tmp_path):
    """Of a foreach each task has its own data, and what is compared with later has all of them: the original takes the
    first."""
    python = tools("metaflow", "metaflow==2.19.39") / "python"
    (tmp_path / "flow.py").write_text(MANY)
    env = clean_environment(tmp_path, **PLACES, METAFLOW_USER="tester", METAFLOW_DEFAULT_METADATA="local")
    done = subprocess.run([python, "flow.py", "--no-pylint", "run"], cwd=tmp_path, env=env, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    run_script(python, """
        from metaflow import namespace
        from proctor.integrations.metaflow import track_resources
        namespace(None)
        class Many:  # the step of a later run
            @track_resources(create_card=False)
            def work(self): pass
        later = Many()
        later.work()
        earlier = later.resource_tracker_data["historical_stats"]
        peaks = sorted(stats["process_memory_mib"]["max"] for stats in earlier)
        assert len(peaks) == 3 and peaks[1] - peaks[0] > 25 and peaks[2] - peaks[1] > 25, peaks
    """, tmp_path, env=env)


def test_a_tracker_that_cannot_start_is_an_error_in_the_artifact(tmp_path):
    """And nothing of the step's own (defect 24)."""
    run_script(PYTHONS["debian"], """
        import proctor.integrations.metaflow as m
        class Flow:
            @m.track_resources
            def train(self): return 42
        def broken(**_): raise OSError("no room")
        m.ResourceTracker = broken
        flow = Flow()
        assert flow.train() == 42
        assert flow.resource_tracker_data["error"]["error_message"] == "no room"
        assert flow.resource_tracker_data_html == ""
    """, tmp_path)


@pytest.mark.parametrize("kind", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_are_seen(tmp_path, kind):
    """As those of a DataLoader, which are the same."""
    (tmp_path / "work.py").write_text("""
import multiprocessing, sys, time, proctor
def burn(_):
    end = time.process_time() + 0.3
    while time.process_time() < end: pass
    time.sleep(0.2)
if __name__ == "__main__":
    with proctor.Monitor(interval=0.05) as m:
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            pool.map(burn, range(2), chunksize=1)
    assert m.summary["procs"].peak >= 3, m.summary["procs"]
    assert m.summary["cpu.time"].total >= 0.6, m.summary["cpu.time"]
""")
    done = subprocess.run([sys.executable, "work.py", kind], cwd=tmp_path, env=clean_environment(tmp_path, **PLACES),
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_workers_of_joblib_are_seen(tmp_path):
    python = tools("joblib", "joblib==1.6.0") / "python"
    (tmp_path / "work.py").write_text("""
import time, proctor
from joblib import Parallel, delayed
def burn():
    end = time.process_time() + 0.3
    while time.process_time() < end: pass
if __name__ == "__main__":
    with proctor.Monitor(interval=0.05) as m:
        Parallel(n_jobs=2)(delayed(burn)() for _ in range(4))
    assert m.summary["procs"].peak >= 3 and m.summary["cpu.time"].total >= 1.2, dict(m.summary)
""")
    done = subprocess.run([python, "work.py"], cwd=tmp_path, env=clean_environment(tmp_path, **PLACES),
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
