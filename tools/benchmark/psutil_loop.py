# SPDX-License-Identifier: Apache-2.0
"""psutil_loop.py PID INTERVAL SECONDS OUT: what an ordinary monitor in Python does, row by row."""
import csv
import json
import sys
import time

import psutil


def main():
    pid, interval, seconds, out = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    root = psutil.Process(pid)
    samples = process_samples = peak = 0
    last = {}
    began = time.monotonic()
    with open("psutil.csv", "w", newline="") as f:
        writer = csv.writer(f)
        while time.monotonic() - began < seconds:
            cpu = rss = read = written = count = 0
            try:
                processes = [root, *root.children(recursive=True)]
            except psutil.NoSuchProcess:
                break
            for process in processes:
                try:
                    with process.oneshot():
                        times, memory, io = process.cpu_times(), process.memory_info(), process.io_counters()
                except psutil.Error:
                    continue
                last[process.pid] = times.user + times.system
                cpu, rss, count = cpu + last[process.pid], rss + memory.rss, count + 1
                read, written = read + io.read_bytes, written + io.write_bytes
            writer.writerow([time.time(), count, cpu, rss, read, written])
            samples, process_samples, peak = samples + 1, process_samples + count, max(peak, rss)
            time.sleep(max(0, began + samples * interval - time.monotonic()))
    with open(out, "w") as f:
        json.dump({"samples": samples, "process_samples": process_samples, "cpu": sum(last.values()), "peak": peak}, f)


if __name__ == "__main__":
    main()
