# SPDX-License-Identifier: Apache-2.0
"""What the tests of proctor.compat share."""
import sys
import time

from pythons import BUILD, PLACES, ROOT, clean_environment, skip_visibly

GOLDEN = ROOT / "tests" / "golden" / "dialects"
sys.path.insert(0, str(ROOT / "python"))


def with_gpus(folder, script):
    """An environment in which the driver's library says what the script has (tests/fake_nvml)."""
    library = BUILD / "tests" / "fake_nvml"
    if not (library / "libnvidia-ml.so.1").exists():
        skip_visibly("this build has no tests/fake_nvml: meson setup -Dtests=enabled")
    (folder / "nvml").write_text(script)
    return clean_environment(folder, **PLACES, LD_LIBRARY_PATH=str(library), FAKE_NVML=str(folder / "nvml"))


def burn(seconds):
    """Uses so much CPU time in this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))
