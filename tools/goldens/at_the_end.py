# SPDX-License-Identifier: Apache-2.0
"""Those who say one thing at the end: GNU time and Nextflow."""
import os
import pathlib
import shutil
import subprocess

from . import golden, machine, originals
from . import rows as known

# Every letter that GNU time knows, and its escapes.
LETTERS = "C D E F I K M O P R S U W X Z c e k p r s t w x".split()
FORMAT = "".join(f"{letter} %{letter}\\n" for letter in LETTERS) + "percent %%\\ttab"


def whole(value):
    return str(int(value))


def gnu_time(rows, scratch):
    made = golden.Golden("gnu-time", "the time of GNU as this system has it, executed; what the kernel tells it about "
                         "its command is replaced by the known figures")
    program, compiler = "/usr/bin/time", shutil.which("cc")
    if not pathlib.Path(program).exists() or not compiler:
        raise originals.Missing("it needs GNU time and a C compiler: tools/install-deps test")
    library = scratch / "rusage.so"
    source = pathlib.Path(__file__).with_name("rusage.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    final = rows["samples"][-1]["values"]
    figures = [rows["run"]["duration"] * 1e6, final["cpu.user"] * 1e6, final["cpu.system"] * 1e6,
               final["mem.rss.peak"] / 1024, final["faults.minor"], final["faults.major"],
               final["io.read"] / machine.SECTOR, final["io.write"] / machine.SECTOR, final["ctx.voluntary"],
               final["ctx.involuntary"]]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "LD_PRELOAD": str(library),
                   "RUSAGE": " ".join(str(round(figure)) for figure in figures)}
    for made.variant in (None, "failed", "killed"):
        end = known.variant(rows, made.variant)["run"]["exit"]
        environment["STATUS"] = str(end["signal"] or end["code"] << 8)  # as wait gives it
        for table, options, more in (("verbose", ["-v"], {}), ("format", [], {}),
                                     ("format.letters", [], {"TIME": FORMAT})):
            out = scratch / table
            subprocess.run([program, *options, "-o", out, *rows["run"]["command"]], env={**environment, **more},
                           stderr=subprocess.DEVNULL)
            made.add(f"{table}.txt", out.read_bytes(), more)
    return made


def nextflow(rows, _):
    """Its own writer is a part of a Java program that no package index has."""
    made = golden.Golden("nextflow", "not executed: the format as nextflow-io/nextflow has it in "
                         "modules/nextflow/src/main/resources/nextflow/executor/command-trace.txt (nextflow.trace/v2)")
    run, samples = rows["run"], rows["samples"]
    final = samples[-1]["values"]

    def peak(key):
        return max(s["values"][key] for s in samples if s["values"][key] is not None)
    fields = {"realtime": whole(run["duration"] * 1000),
              "%cpu": f"{final['cpu.time'] / run['duration'] * 1000:.0f}",
              "rchar": whole(final["io.rchar"]), "wchar": whole(final["io.wchar"]), "syscr": "", "syscw": "",
              "read_bytes": whole(final["io.read"]), "write_bytes": whole(final["io.write"]),
              "%mem": f"{peak('mem.rss') / final['system.mem.total'] * 1000:.0f}",
              "vmem": whole(peak("mem.vms") / 1024), "rss": whole(peak("mem.rss") / 1024),
              "peak_vmem": whole(peak("mem.vms") / 1024), "peak_rss": whole(final["mem.rss.peak"] / 1024),
              "vol_ctxt": whole(final["ctx.voluntary"]), "inv_ctxt": whole(final["ctx.involuntary"])}
    made.add("trace.txt", "nextflow.trace/v2\n" + "".join(f"{key}={value}\n" for key, value in fields.items()))
    return made
