# SPDX-License-Identifier: Apache-2.0
"""resource_tracker_loop.py PID INTERVAL SECONDS OUT: resource-tracker as its readme starts it, for a given process."""
import json
import os
import sys
import time

from resource_tracker import ResourceTracker


def lives(pid):
    return os.path.exists(f"/proc/{pid}")


def main():
    pid, interval, seconds, out = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    tracker = ResourceTracker(pid=pid, interval=interval, discover_server=False, discover_cloud=False)
    tracker.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end and lives(pid):
        time.sleep(min(0.25, max(0, end - time.monotonic())))
    tracker.stop()
    rows = tracker.process_metrics.to_dict() if tracker.n_samples else []
    said = {"samples": len(rows), "process_samples": sum(1 + (row["children"] or 0) for row in rows),
            "cpu": sum(row["utime"] + row["stime"] for row in rows),
            "peak": max((row["memory_mib"] for row in rows), default=0) * 1048576}
    with open(out, "w") as f:
        json.dump(said, f)


if __name__ == "__main__":
    main()
