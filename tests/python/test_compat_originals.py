# SPDX-License-Identifier: Apache-2.0
"""The real packages, from the package index, beside ours on one workload: their number, ours, the truth."""
import json
import subprocess
import sys

from pythons import PLACES, ROOT, clean_environment, skip_visibly

sys.path.insert(0, str(ROOT / "tools" / "goldens"))
import originals  # noqa: E402


def beside_originals(script, folder, *packages, words=()):
    """What a script prints as JSON that needs the originals."""
    try:
        python = originals.environment()
        for package in packages:
            originals.unpacked(package)
    except originals.Missing as e:
        skip_visibly(str(e))
    done = subprocess.run([python, ROOT / "tests/python" / script, *words], capture_output=True, text=True, timeout=120,
                          env=clean_environment(folder, **PLACES), cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_all_names_parameters_and_defaults_of_the_originals_are_here(tmp_path):
    """Classes, their methods and fields, functions, what they have when they are made; less what doc/migrate.md says is
    not here."""
    missing = beside_originals("compare_names.py", tmp_path, "resource-tracker", "stouputils", "oasislmf", "pytyche",
                               "spdl-core")
    services = {f"sentinel_api.{name}" for name in ("DataSource", "SentinelAPIError", "finish_run",
                                                    "refresh_credentials", "register_run")}
    modules = {f"the module {name}" for name in ("keeper", "nvidia", "s3_upload", "streaming", "tiny_bars")}
    forking = {f"tracker.ResourceTracker().{name}" for name in ("error_queue", "mpc", "process_tracker_filepath",
                                                                "system_tracker_filepath")}
    ours = {"tiny_data_frame.TinyDataFrame.columns"}  # of the class there; ours are of each frame
    assert set(missing) == services | modules | forking | ours


def test_all_names_of_version_0_1_are_here(tmp_path):
    assert beside_originals("compare_names.py", tmp_path, "resource-tracker, the first", words=["0.1"]) == []


def test_their_number_ours_and_the_truth(tmp_path):
    """Ours is within 5 % of the CPU time that the processes themselves say they used; theirs is shown. Memory is of
    pages that processes share, so that a sum of RSS has them several times."""
    found = beside_originals("compare_originals.py", tmp_path, "resource-tracker", "stouputils")
    truth = found.pop("truth")
    print(f"\n{'':36}{'CPU s':>8}{'off':>8}{'MiB':>8}")
    print(f"{'the truth':36}{truth['cpu']:8.2f}{'':8}{truth['memory']:8.0f}")
    for name, value in found.items():
        print(f"{name:36}{value['cpu']:8.2f}{value['cpu'] / truth['cpu'] - 1:8.0%}{value['memory']:8.0f}")
    ours = {name: value for name, value in found.items() if name.startswith("proctor")}
    assert len(ours) == 2 and len(found) == 6
    for name, value in ours.items():
        assert abs(value["cpu"] / truth["cpu"] - 1) < 0.05, (name, value, truth)
    assert 80 <= found["proctor.compat.resource_tracker"]["memory"] <= 160 < found["psutil"]["memory"]


def test_what_one_has_stored_the_other_reads(tmp_path):
    """Snapshots of resource-tracker, both ways, with the same figures."""
    found = beside_originals("compare_files.py", tmp_path, "resource-tracker")
    for who in ("ours", "theirs"):
        mine, read = found[who]
        assert mine == read and mine["process_memory_mib"]["max"] > 1, (who, mine, read)
    assert found["page"]
