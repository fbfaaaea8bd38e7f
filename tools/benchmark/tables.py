# SPDX-License-Identifier: Apache-2.0
"""Results as Markdown."""
import datetime
import os
import pathlib
import platform
import re
import statistics
import subprocess

from . import peers
from .run import ROOT, Case

REFERENCE = Case(100, "5 %", 10)
ACTIVITIES = {"idle": "all idle", "5 %": "5 % active", "all": "all active"}
FAULTS = "all active, with page faults"
LIMITS = {"active": 1.6, "idle": 0.6, "peer": 1 / 3}


def number(value, digits=3):
    """So many digits that say something, without an exponent."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, digits - len(str(int(abs(value)))))}f}"


def percent(value):
    return f"{value * 100:.2f} %"


def mib(value):
    return f"{value / 1048576:.1f}"


def machine():
    cpu = re.search(r"^Model name:\s*(.*)", subprocess.run(["lscpu"], capture_output=True, text=True,
                                                           env={**os.environ, "LC_ALL": "C"}).stdout, re.M)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": f"{os.cpu_count()} CPUs ({cpu.group(1) if cpu else platform.machine()})",
            "memory": f"{memory / 2**30:.0f} GiB", "kernel": f"Linux {platform.release()}",
            "python": platform.python_version(), "commit": commit.stdout.strip() or "no commit",
            "date": datetime.date.today().isoformat(), "load": os.getloadavg()[0]}


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


class Results:
    """What a run found: results of cases by key and tool, and of jobs by tool."""

    def __init__(self, data):
        self.data, self.cases, self.tools = data, data["cases"], data["tools"]

    def of(self, case, tool):
        return self.cases.get(case.key, {}).get(tool, {"reason": "not measured"})

    def times_floor(self, case, tool):
        """None where one of them is missing."""
        us, floor = self.of(case, tool).get("us"), self.of(case, "floor").get("us")
        return us / floor if us is not None and floor else None

    def names(self):
        return [name for name in self.tools if any(name in case for case in self.cases.values())]

    def all_cases(self):
        for key in self.cases:
            processes, activity, hz, size = key.split("/")
            yield Case(int(processes), activity, float(hz), int(size))


class Notes:
    """Reasons and remarks below a table, each once."""

    def __init__(self):
        self.texts = []

    def mark(self, text):
        if not text:
            return ""
        if text not in self.texts:
            self.texts.append(text)
        return f" [{self.texts.index(text) + 1}]"

    def text(self):
        return "".join(f"\n[{i + 1}] {text}  " for i, text in enumerate(self.texts))


def cost_cell(results, case, tool, notes):
    found = results.of(case, tool)
    if "us" not in found:
        return f"–{notes.mark(found['reason'])}"
    times = results.times_floor(case, tool)
    remark = f"at {found['hz']:g} Hz: it can do no more" if found["hz"] < case.hz else ""
    text = number(found["us"]) + (f" ({number(times, 2)})" if times and tool != "floor" else "")
    return text + notes.mark(found["note"]) + notes.mark(remark)


def cost_table(results, title, cases, heads):
    cases = [(case, head) for case, head in zip(cases, heads) if case.key in results.cases]
    if not cases:
        return ""
    notes = Notes()
    rows = [[name, *[cost_cell(results, case, name, notes) for case, _ in cases]]
            for name in results.names() if name != "GNU time"]
    return f"\n### {title}\n\n{table(['', *[head for _, head in cases]], rows)}\n{notes.text()}\n"


def overview(results):
    notes, rows = Notes(), []
    for name, tool in results.tools.items():
        found = results.of(REFERENCE, name)
        startup = tool.get("startup")
        if startup is None:
            startup = results.of(Case(1, "idle", 10), name).get("startup")
        size = found.get("size")
        rows.append([f"{name} {tool['version']}".strip(), cost_cell(results, REFERENCE, name, notes),
                     "" if "us" not in found else f"{number(found['least'])} to {number(found['most'])}",
                     mib(size) if size else "", number(startup * 1000) if startup is not None else "",
                     slow_cell(results, name, notes), *[share_cell(results, name, q, notes) for q in ("cpu", "peak")]])
    head = ["", "us per process-sample (times the floor)", "spread of it", "MiB resident", "start-up, CPU ms",
            "slow-down of a busy job: CPU taken (measured in all)", "of true CPU", "of true peak"]
    return f"{table(head, rows)}\n{notes.text()}\n"


def slow_cell(results, name, notes):
    found = results.data.get("slowdown", {}).get(name, {"reason": "not measured in this run"})
    if "slower" not in found:
        return f"–{notes.mark(found['reason'])}"
    return f"{percent(found['taken'])} ({percent(found['slower'])}; {percent(found['least'])} to " \
           f"{percent(found['most'])})"


def stall_table(results):
    """What reading its PSS does to a job with much memory."""
    found = results.data.get("stalls", {})
    if "" not in found:
        return ""
    rows = [[name or "nobody", f"– ({one['reason']})", "", ""] if "reason" in one else
            [name or "nobody", number(one["rounds"] / 1000), percent(1 - one["rounds"] / found[""]["rounds"]),
             number(one["longest"] * 1000)] for name, one in found.items()]
    head = ["watched by", "thousand rounds a second", "fewer", "the longest round, ms"]
    return f"\n### A job with 1,000 MiB in small pages that maps memory, 10 Hz\n\n{table(head, rows)}\n"


def share_cell(results, name, quantity, notes):
    found = results.data.get("shares", {}).get(name, {}).get(quantity, {"reason": "not measured in this run"})
    if "share" not in found:
        return f"–{notes.mark(found['reason'])}"
    return f"{found['share'] * 100:.0f} % ({found['least'] * 100:.0f} to {found['most'] * 100:.0f})"


# --- goals ----------------------------------------------------------------------------------------

def worst(values):
    """(value, case) of the largest; None where there is nothing."""
    values = [v for v in values if v[0] is not None]
    return max(values, key=lambda v: v[0]) if values else None


def peers_of(results, what=None):
    """All that are no part of us; of one kind alone: "python", or "same" for those that do the same work."""
    return [name for name, tool in results.tools.items() if tool["peer"] and (what is None or tool.get(what, True))]


def floor_ratio(results, activity, least=100):
    return worst([(results.times_floor(case, "proctor"), case) for case in results.all_cases()
                  if case.activity == activity and case.processes >= least])


def peer_ratio(results, key, peers, activities, least=1):
    """Ours over the cheapest peer that was looked at at the same rate, where that is worst."""
    found = []
    for case in results.all_cases():
        ours = results.of(case, "proctor")
        if case.activity not in activities or key not in ours or case.processes < least:
            continue
        for peer in peers:
            other = results.of(case, peer)
            if key in other and other["hz"] == ours["hz"]:
                found.append((ours[key] / other[key], case, peer))
    return worst(found)


def doing(case):
    return ACTIVITIES.get(case.activity, FAULTS)


def where(case):
    size = f", {case.mib} MB each" if case.mib else ""
    return f"{case.processes:,} process{'es' if case.processes > 1 else ''}, {doing(case)}, {case.hz:g} Hz{size}"


def ratio_row(text, found, limit, invert=False):
    if found is None:
        return [text, "not measured", ""]
    value = found[0]
    shown = f"{number(value)} times"
    if invert:
        shown = f"{number(1 / value)} times under {found[2]}" if value <= 1 else f"{shown} what {found[2]} takes"
    return [text, f"{shown} ({where(found[1])})", "yes" if value <= limit else "**no**"]


def missed(data, whole):
    """What is required and does not hold; of a whole run also what was not measured, be it a peer on the same work."""
    results = Results(data)
    found = [f"{goal}: {measured}" for goal, measured, holds in required_rows(results)
             if holds != "yes" and (holds or whole)]
    absent = [name for name in peers.ON_THE_SAME_WORK
              if whole and not peer_ratio(results, "us", [name], tuple(ACTIVITIES), 100)]
    return found + [f"the cheapest peer may be another: {name} "
                    f"{results.tools.get(name, {}).get('reason') or 'was not measured'}" for name in absent]


def required_rows(results):
    everywhere = tuple(ACTIVITIES)
    return [
        ratio_row("required: at most 1.6 times the floor, all active, N >= 100", floor_ratio(results, "all"),
                  LIMITS["active"]),
        ratio_row("required: at most 0.6 times the floor, all idle, N >= 100", floor_ratio(results, "idle"),
                  LIMITS["idle"]),
        ratio_row("required: at most a third of the cheapest peer on the same work (CPU time, memory and bytes of each "
                  "process), N >= 100", peer_ratio(results, "us", peers_of(results, "same"), everywhere, 100),
                  LIMITS["peer"], True)]


def besides_rows(results):
    peers, same, everywhere = peers_of(results), peers_of(results, "same"), tuple(ACTIVITIES)
    return [
        ratio_row("besides: a third of the cheapest peer on the same work, any N",
                  peer_ratio(results, "us", same, everywhere), LIMITS["peer"], True),
        ratio_row("besides: the same of all peers, whatever they read, N >= 100",
                  peer_ratio(results, "us", peers, everywhere, 100), LIMITS["peer"], True),
        ratio_row("besides: the same, and of any N", peer_ratio(results, "us", peers, everywhere), LIMITS["peer"],
                  True)]


def goal_rows(results):
    """(goal, measured, holds) for what is required and for what we would like."""
    peers, python = peers_of(results), peers_of(results, "python")
    rows = required_rows(results) + besides_rows(results) + [
        ratio_row("stretch: 1.25 times the floor, all active, N >= 100", floor_ratio(results, "all"), 1.25),
        ratio_row("stretch: 10 times under every peer at 5 % active", peer_ratio(results, "us", peers, ("5 %",)), 0.1,
                  True),
        ratio_row("stretch: 100 times under the Python ones per sample of the job",
                  peer_ratio(results, "job_us", python, tuple(ACTIVITIES)), 0.01, True)]
    slow = results.data.get("slowdown", {}).get("proctor", {})
    goal = "stretch: slow-down of a busy job on 2 cores under 0.2 % at 10 Hz"
    if "taken" not in slow:
        return rows + [[goal, "not measured", ""]]
    alone = results.data["alone"]
    measured = f"{percent(slow['taken'])} of its CPU taken; in all {percent(slow['slower'])} measured, where the job " \
               f"alone varies from {percent(alone['least'])} to {percent(alone['most'])}"
    holds = "**no**"
    if slow["taken"] < 0.002:
        told = alone["most"] - alone["least"] < 0.002
        holds = "yes" if told and slow["slower"] < 0.002 else "by CPU taken; what is measured in all varies by more"
    return rows + [[goal, measured, holds]]


def repeatability(results):
    """How far repetitions of a cell lie apart, as a sentence."""
    spreads = sorted((r["most"] - r["least"]) / r["us"] for case in results.cases.values() for r in case.values()
                     if r.get("repetitions", 0) > 1 and r["us"] > 0)
    if not spreads:
        return "Each cell was measured once."
    return f"Repetitions of a cell lie apart by {percent(statistics.median(spreads))} of its median in half of the " \
           f"{len(spreads)} cells, and by {percent(spreads[int(len(spreads) * 0.9)])} or less in nine of ten."


def surroundings(data):
    """How much else went on, as a sentence: tools that go through the whole machine pay for it."""
    others, text = data.get("others"), ""
    if others:
        text = f", and {statistics.median(others):,.0f} other processes on the machine " \
               f"({min(others):,} to {max(others):,})"
    return f"Load average at the start {data['machine']['load']:.1f}{text}."


def made(results):
    """On what, of what, when, how, as a paragraph."""
    data, m = results.data, results.data["machine"]
    return f"Machine: {m['cpu']}, {m['memory']}, {m['kernel']}. proctor {m['commit']}, {m['date']}, Python " \
           f"{m['python']}. {surroundings(data)} {data['how']} {repeatability(results)}\n"


def rates_table(results):
    rates = sorted((c for c in results.all_cases() if not c.mib and c.hz != main_rate(c.processes)),
                   key=lambda c: (c.processes, c.hz, list(ACTIVITIES).index(c.activity)))
    return cost_table(results, "The same at other rates", rates,
                      [f"{c.processes:,}, {doing(c)}, at {c.hz:g} Hz" for c in rates])


def rest(data):
    """The cells that a whole run leaves out, by rate."""
    results = Results(data)
    goals = required_rows(results) + besides_rows(results)
    goals.insert(3, ratio_row("besides: 1.6 times the floor where all have page faults, N >= 100",
                              floor_ratio(results, "faults"), LIMITS["active"]))
    parts = [made(results), f"\n{table(['goal', 'measured', 'holds'], goals)}\n"]
    for hz in sorted({case.hz for case in results.all_cases()}):
        cases = sorted((c for c in results.all_cases() if c.hz == hz),
                       key=lambda c: (c.processes, [*ACTIVITIES, "faults"].index(c.activity)))
        parts.append(cost_table(results, f"us per process-sample (times the floor), {hz:g} Hz", cases,
                                [f"{c.processes:,}, {doing(c)}" for c in cases]))
    return "".join(parts)


def document(data):
    """Everything between the marks of doc/performance.md."""
    results = Results(data)
    parts = [made(results)]
    parts.append(f"\n{table(['goal', 'measured', 'holds'], goal_rows(results))}\n")
    parts.append(f"\n### Overview: {where(REFERENCE)}\n\n{overview(results)}")
    sizes = sorted({case.processes for case in results.all_cases()})
    for activity, text in ACTIVITIES.items():
        cases = [Case(n, activity, main_rate(n)) for n in sizes]
        parts.append(cost_table(results, f"us per process-sample (times the floor), {text}", cases,
                                [f"{c.processes:,} at {c.hz:g} Hz" for c in cases]))
    parts.append(rates_table(results))
    large = sorted((c for c in results.all_cases() if c.mib), key=lambda c: (c.processes, c.mib))
    parts.append(cost_table(results, "The same by size, all active, 10 Hz", large,
                            [f"{c.processes:,} of {c.mib:,} MB" for c in large]))
    parts.append(stall_table(results))
    parts.append("\n### What was compared\n\n" + table(["", "version", "how"], [
        [name, tool["version"] or "", tool["what"] + (f": **{tool['reason']}**" if tool["reason"] else "")]
        for name, tool in results.tools.items()]) + "\n")
    return "".join(part for part in parts if part)


def main_rate(processes):
    """Nobody looks at 5,000 processes ten times a second: their tool would not manage."""
    return 1 if processes >= 5000 else 10


def put(path, mark, text):
    """Replaces what is between the marks."""
    page = pathlib.Path(path).read_text()
    begin, end = f"<!-- {mark}: made by the harness -->\n", f"<!-- end of {mark} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{path} has no marks for {mark}")
    pathlib.Path(path).write_text(f"{before}{begin}\n{text.strip()}\n\n{end}{after}")
