# SPDX-License-Identifier: Apache-2.0
"""What one of the two has stored the other reads: prints a JSON object of what each says of it. Runs where the original
is to be had."""
import json
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "goldens"), str(ROOT / "python")]
import originals  # noqa: E402

from proctor.compat import resource_tracker as ours  # noqa: E402


def main():
    theirs = originals.package("resource-tracker", "resource_tracker")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        with ours.ResourceTracker(interval=1) as tracker:
            time.sleep(2.2)
        tracker.dump(f"{folder}/ours.gz")
        found["ours"] = [tracker.stats(), theirs.ResourceTracker.load(f"{folder}/ours.gz").stats()]
        original = theirs.ResourceTracker(interval=0.3, discover_cloud=False)
        original.start()
        original.wait_for_samples(n=2, timeout=20)
        original.stop()
        original.dump(f"{folder}/theirs.gz")
        again = ours.ResourceTracker.load(f"{folder}/theirs.gz")
        found["theirs"] = [original.stats(), again.stats()]
        found["page"] = "<svg" in again.report()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
