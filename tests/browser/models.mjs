// SPDX-License-Identifier: Apache-2.0
// Models as the C side would make them, of runs whose figures are known. Shape: doc/report-model.md.
const GiB = 2 ** 30, MiB = 2 ** 20;

export const random = seed => () => { // the same each time
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
};
const rounded = v => v === null ? null : Number(v.toPrecision(5));

// Samples of a function of time, reduced as the C side does it: least, mean and most in each bucket.
export const reduce = (n, step, most, of) => {
  const per = Math.ceil(n / most), at = [], span = [], mean = [], min = [], max = [];
  for (let i = 0; i < n; i += per) {
    const part = [];
    for (let j = i; j < Math.min(n, i + per); j++) part.push(of(j));
    const known = part.filter(v => v !== null);
    at.push(per === 1 ? (i + 1) * step : (i + part.length / 2) * step);
    span.push(part.length * step);
    mean.push(known.length ? rounded(known.reduce((a, b) => a + b, 0) / known.length) : null);
    min.push(known.length ? rounded(Math.min(...known)) : null);
    max.push(known.length ? rounded(Math.max(...known)) : null);
  }
  return { at, span, mean, ...(per > 1 ? { min, max } : {}) };
};

const wholeOf = (n, step, of, rate) => {
  let sum = 0, k = 0, min = Infinity, max = -Infinity, at = null;
  for (let i = 0; i < n; i++) {
    const v = of(i);
    if (v === null) continue;
    sum += v;
    k++;
    if (v < min) min = v;
    if (v > max) { max = v; at = (i + 1) * step; }
  }
  return k ? { min, mean: sum / k, max, at, total: rate ? sum * step : null } : null;
};

const UNITS = { rate: "bytes/s", usage: "cores", util: "ratio", idle: "ratio", used: "bytes", rss: "bytes", pss: "bytes", power: "watts" };
export const makeRun = ({ id = "run", n, step, most = 2000, curves, ...rest }) => {
  const series = {};
  most = Math.min(most, Math.floor(500e3 / (Object.keys(curves).length * 3 * 7))); // as the C side keeps it below 500 KB
  let time = { at: [], span: [], samples: n };
  for (const [key, c] of Object.entries(curves)) {
    const { at, span, ...values } = reduce(n, step, most, c.of), unit = c.unit || UNITS[key.split(".").pop()];
    time = { at, span, samples: n };
    series[key] = { label: c.label, unit, family: c.family, limit: c.limit || null, host: c.host || null, note: c.note || null,
      ...values, stats: wholeOf(n, step, c.of, /rate|power|usage/.test(key)) };
  }
  return { id, name: id, run: { command: id, argv: [id], host: "node17, 64 cores", began: 1789912920, duration: n * step, exit: 0, signal: null },
    verdict: { text: "finished, exit 0", severity: "good" }, findings: [], time, series, late: [], tiles: [], charts: [], phases: [],
    columns: [], events: [], processes: { total: 0, note: null, list: [] }, matches: null, devices: null, measured: [], facts: [],
    summary: null, ...rest };
};
export const model = (...runs) => ({ model: 1, proctor: "0.1.0", title: runs[0].run.command, runs, comparison: null });

const one = (series, stat, label, unit) => ({ series: [].concat(series), stat, label, unit });
const GPU_ABSENT = "no GPU was used";
const tilesOf = (limits, gpus) => {
  const of = what => Array.from({ length: gpus }, (_, i) => `gpu.${i}.${what}`);
  return [
    { id: "cpu", title: "CPU", family: "cpu", values: [one("cpu.usage", "mean", "mean", "cores")], also: [one("cpu.usage", "max", "peak", "cores")],
      limit: { value: limits.cpu, text: `allowed ${limits.cpu} cores` }, spark: ["cpu.usage"] },
    { id: "memory", title: "Memory", family: "memory", values: [one("mem.pss", "max", "peak", "bytes")], also: [one("mem.pss", "mean", "mean", "bytes")],
      limit: { value: limits.memory, text: `limit ${limits.memory / GiB} GiB` }, spark: ["mem.pss"] },
    gpus ? { id: "gpu", title: gpus > 1 ? `GPU, ${gpus} devices` : "GPU", family: "gpu", values: [one(of("util"), "mean", "mean", "ratio")],
      also: [one(of("idle"), "mean", "idle", "ratio")], limit: null, spark: ["gpu.0.util"] }
      : { id: "gpu", title: "GPU", family: "gpu", absent: GPU_ABSENT },
    gpus ? { id: "gpu-memory", title: "GPU memory", family: "gpu", values: [one(of("mem.used"), "max", "peak", "bytes")], also: [],
      limit: { value: limits.gpu, text: `capacity ${limits.gpu / GiB} GiB` }, spark: ["gpu.0.mem.used"] }
      : { id: "gpu-memory", title: "GPU memory", family: "gpu", absent: GPU_ABSENT },
    { id: "disk", title: "Disk", family: "disk", values: [one("io.read.rate", "total", "read", "bytes"), one("io.write.rate", "total", "written", "bytes")],
      also: [one("io.read.rate", "max", "peak", "bytes/s")], limit: null, spark: ["io.read.rate"] },
    { id: "energy", title: "Energy", family: "energy", values: [one("power", "total", "used", "joules")], also: [one("power", "mean", "mean", "watts")],
      limit: null, spark: ["power"] },
  ];
};
const chartsOf = gpus => {
  const each = (what, role) => Array.from({ length: gpus }, (_, i) => ({ series: `gpu.${i}.${what}`, role }));
  return [
    { id: "cpu", title: "CPU", unit: "cores", place: "first", lines: [{ series: "cpu.usage", role: "job" }, { series: "system.cpu.usage", role: "context" }],
      text: "Cores in use: least, mean, most and where.", note: "CPU time of all processes per second." },
    { id: "memory", title: "Memory", unit: "bytes", place: "first", lines: [{ series: "mem.pss", role: "job" }],
      text: "Memory in use: least, mean, most and where.", note: "PSS, summed over processes." },
    gpus ? { id: "gpu", title: "GPU", unit: "ratio", place: "first", lines: [...each("util", "job"), ...each("mem.used", "share")],
      text: "Share of time in which each GPU worked, and memory in use as a share of its own.", note: "NVML." }
      : { id: "gpu", title: "GPU", unit: "ratio", place: "first", lines: [], absent: GPU_ABSENT, text: GPU_ABSENT },
    { id: "io", title: "Disk, network", unit: "bytes/s", place: "first", lines: [{ series: "io.read.rate", role: "job" }, { series: "net.rx.rate", role: "job" },
      { series: "io.write.rate", role: "down" }, { series: "net.tx.rate", role: "down" }],
    text: "Bytes per second read and received, upwards; written and sent, downwards.", note: "/proc/PID/io, sock_diag." },
  ];
};
const COLUMNS = [
  { title: "CPU mean", ...one("cpu.usage", "mean", "", "cores") }, { title: "memory peak", ...one("mem.pss", "max", "", "bytes") },
  { title: "read", ...one("io.read.rate", "total", "", "bytes") }, { title: "written", ...one("io.write.rate", "total", "", "bytes") },
  { title: "energy", ...one("power", "total", "", "joules") },
];
const MEASURED = [
  { title: "Method", rows: [["target", "tree of the command, 14 processes"], ["CPU", "sum over processes, checked against the cgroup: 0.02 % apart"],
    ["memory", "PSS, read within the budget; at most 1.2 s old"], ["I/O", "/proc/PID/io, storage only"]] },
  { title: "Completeness", rows: [["interval", "1 s"], ["samples", "4,324 taken, 2 late, 1 missed"], ["processes", "14 seen, none never sampled"]] },
  { title: "What is absent, and why", rows: [["network of UDP", "the kernel has no counters for it"]] },
  { title: "What proctor itself used", rows: [["CPU", "0.09 % of one core"], ["memory", "3.1 MiB"]] },
];

// A training job of 72 minutes with phases, two GPUs, and memory close to its limit in the last of them.
export const training = ({ gpus = 2, id = "train.py --cfg big.yaml", most = 2000 } = {}) => {
  const n = 4324, step = 1, rnd = random(7), noise = Float64Array.from({ length: n * 8 }, rnd), z = (i, k) => noise[(i * 8 + k) % noise.length] - 0.5;
  const END = [300, 2400, 3900, 4324], kind = i => END.findIndex(e => i < e), gap = i => i >= 1500 && i < 1530;
  const G = (i, v) => gap(i) ? null : v;
  const curves = {
    "cpu.usage": { label: "job", family: "cpu", limit: { value: 16, text: "allowed 16" }, host: { value: 64, text: "machine 64" },
      of: i => G(i, Math.max(0, [3, 12.4, 14, 1.5][kind(i)] + z(i, 0) * 2.6)) },
    "system.cpu.usage": { label: "machine", family: "cpu", of: i => G(i, [5, 15.8, 17, 4][kind(i)] + z(i, 1) * 1.5) },
    "mem.pss": { label: "job", family: "memory", limit: { value: 64 * GiB, text: "limit 64 GiB" }, host: { value: 512 * GiB, text: "machine 512 GiB" },
      of: i => G(i, (i === 2467 ? 61.2 : [4 + i / 30, 38 + z(i, 2), 52 + z(i, 2) * 3 + (i - 2400) / 400, 20][kind(i)]) * GiB) },
    "io.read.rate": { label: "read", family: "disk", of: i => G(i, [(0.25 + z(i, 3) * 0.3) * GiB + (i === 120 ? 1.7 * GiB : 0), 8 * MiB, 20 * MiB, 0][kind(i)]) },
    "io.write.rate": { label: "write", family: "disk", of: i => G(i, [0, i % 300 < 6 ? 0.5 * GiB : 0, 0, (0.12 + z(i, 4) * 0.05) * GiB][kind(i)]) },
    "net.rx.rate": { label: "receive", family: "network", of: i => G(i, (0.03 + z(i, 5) * 0.02) * GiB) },
    "net.tx.rate": { label: "send", family: "network", of: i => G(i, (0.02 + z(i, 6) * 0.02) * GiB) },
    power: { label: "power", family: "energy", of: i => G(i, 760 + z(i, 7) * 60) },
  };
  for (let g = 0; g < gpus; g++) {
    const busy = i => [0, 0.93, g % 2 ? 0.05 : 0.8, 0][kind(i)];
    curves[`gpu.${g}.util`] = { label: `GPU ${g}`, family: "gpu", of: i => G(i, Math.min(1, Math.max(0, busy(i) + (busy(i) ? z(i, g) * 0.12 : 0)))) };
    curves[`gpu.${g}.idle`] = { label: `GPU ${g}`, family: "gpu", of: i => G(i, busy(i) < 0.1 ? 1 : 0) };
    curves[`gpu.${g}.mem.used`] = { label: `GPU ${g} mem`, family: "gpu", limit: { value: 141 * GiB, text: "capacity 141 GiB" },
      of: i => G(i, ([2, 110 - g * 12, 118 - g * 12, 2][kind(i)] + Math.min(i, 40) / 40) * GiB) };
  }
  const phase = (name, begin, end, level = 0, parent = null) => ({ name, begin, end, time: end - begin, level, parent, exact: true, count: 1, stats: {} });
  const run = makeRun({ id, n, step, most, curves, tiles: tilesOf({ cpu: 16, memory: 64 * GiB, gpu: 141 * GiB }, gpus), charts: chartsOf(gpus), columns: COLUMNS,
    phases: [phase("load", 0, 300), phase("train", 300, 2400), phase("epoch 1", 300, 1000, 1, 1), phase("epoch 2", 1000, 1700, 1, 1),
      phase("epoch 3", 1700, 2400, 1, 1), phase("eval", 2400, 3900), phase("save", 3900, 4324)],
    events: [{ at: 1000, kind: "mark", severity: "note", text: "epoch 1 done" }, { at: 2467, kind: "throttled", severity: "warn", text: "throttled" }],
    late: [1500, 1530, 2000],
    findings: [{ id: "memory-near-limit", severity: "bad", text: "Memory reached 61.2 GiB, 96 % of the 64 GiB limit, at 41 m 07 s in “eval”.", at: 2468, range: null,
      more: "The next 2.8 GiB would have ended the job. Ask for 70 GiB, or lower the batch size of eval." },
    { id: "gpu-idle", severity: "warn", text: gpus > 1 ? "GPU 1 was idle 52 % of the time." : "The machine was busy with others.", at: null, range: [2400, 3900], more: null },
    { id: "wasted", severity: "note", text: "In “save” 1.5 of 16 cores were used.", at: null, range: [3900, 4324], more: null }],
    processes: { total: 14, note: "2 processes lived between two samples and are known by their exit alone.", list: [
      { pid: 4100, parent: null, name: "python3", command: "python3 " + id, begin: 0, end: 4324, cpu: 38210, peak: 30 * GiB, read: 60 * GiB, written: 12 * GiB, exit: "exit 0",
        spark: Array.from({ length: 60 }, (_, i) => 6 + 4 * Math.sin(i / 5)) },
      ...Array.from({ length: 8 }, (_, k) => ({ pid: 4110 + k, parent: 0, name: "pt_data_worker", command: "python3 -c from multiprocessing.spawn import spawn_main", begin: 12, end: k < 6 ? 3900 : null,
        cpu: 1100 + 40 * k, peak: (2 + k / 4) * GiB, read: 3 * GiB, written: 0, exit: k < 6 ? "exit 0" : null,
        spark: Array.from({ length: 60 }, (_, i) => i > 54 ? null : 0.6 + 0.3 * Math.cos(i + k)) })),
      { pid: 4200, parent: 1, name: "git", command: "git rev-parse HEAD", begin: 3, end: 3.2, cpu: 0.011, peak: 9 * MiB, read: 0, written: 0, exit: "exit 0", spark: null }] },
    matches: { columns: [{ key: "name", title: "name", unit: null }, { key: "n", title: "most at once", unit: "count" }, { key: "cpu", title: "CPU time", unit: "seconds" },
      { key: "uss", title: "peak USS", unit: "bytes" }], rows: [{ name: "python3", n: 1, cpu: 38210, uss: 29 * GiB }, { name: "pt_data_worker", n: 8, cpu: 9900, uss: 20 * GiB }], note: null },
    devices: gpus ? { columns: [{ key: "name", title: "device", unit: null }, { key: "model", title: "model", unit: null }, { key: "util", title: "mean", unit: "ratio" },
      { key: "mem", title: "memory peak", unit: "bytes" }, { key: "power", title: "power mean", unit: "watts" }, { key: "temp", title: "hottest", unit: "celsius" }],
    rows: Array.from({ length: gpus }, (_, g) => ({ name: `GPU ${g}`, model: "NVIDIA H200", util: g ? 0.47 : 0.73, mem: (119 - g * 12) * GiB, power: 380, temp: 61 + g })), note: "A GPU is busy when any kernel runs on it." } : null,
    measured: MEASURED, facts: [["command", "python3 " + id], ["directory", "/home/ada/big"], ["proctor", "0.1.0"], ["limits", "cpuset 0-15, cpu.max none, memory.max 64 GiB"], ["GPUs visible", gpus ? "0, 1" : "none"]] });
  run.run.host = `node17, 64 cores${gpus ? `, ${gpus} x H200` : ""}`;
  return model(run);
};

// One sample, and what the kernel says at the end.
export const short = () => {
  const run = makeRun({ id: "true", n: 1, step: 0.0031, curves: {
    "cpu.usage": { label: "job", family: "cpu", of: () => 0.42 }, "mem.pss": { label: "job", family: "memory", of: () => 1.7 * MiB } },
  tiles: tilesOf({ cpu: 2, memory: 8 * GiB }, 0), charts: chartsOf(0) });
  for (const e of [run.tiles[4], run.tiles[5], run.charts[3]]) e.absent = "it ended before it was read";
  return model(run);
};

// 30 days at 1 Hz with one sample that differs: it must be seen.
export const month = ({ n = 30 * 86400, spikeAt = 1234567, most = 2000 } = {}) => {
  const wave = i => 2 + Math.sin(i / 86400 * 2 * Math.PI);
  const day = i => i % 86400 / 86400, curves = {
    "cpu.usage": { label: "job", family: "cpu", of: i => i === spikeAt ? 30 : wave(i) },
    "mem.pss": { label: "job", family: "memory", limit: { value: 64 * GiB, text: "limit 64 GiB" }, of: i => (20 + i / n * 10 + (i === spikeAt ? 33 : 0)) * GiB },
    "io.read.rate": { label: "read", family: "disk", of: i => i % 3600 === 0 ? 200 * MiB : 0.5 * MiB },
    "io.write.rate": { label: "write", family: "disk", of: i => day(i) < 0.05 ? 80 * MiB : MiB },
    "net.rx.rate": { label: "receive", family: "network", of: i => 3 * MiB * wave(i) }, "net.tx.rate": { label: "send", family: "network", of: i => MiB * wave(i + 4e4) },
    power: { label: "power", family: "energy", of: i => 200 + 30 * wave(i) },
  };
  const run = makeRun({ id: "serve --forever", n, step: 1, most, curves, tiles: tilesOf({ cpu: 32, memory: 64 * GiB }, 0), charts: chartsOf(0), measured: MEASURED });
  return model(run);
};

// Text that wants to be something else.
export const HOSTILE = ["<script>window.hacked=1</script>", "</script><script>window.hacked=1</script>", "<img src=x onerror=window.hacked=1>", "\u001b[31mred\u001b[0m\u0007",
  "‮gnp.exe", "a".repeat(20000), "x\ny\tz", "\"'`${window.hacked=1}", "<!--<script>", "@MODEL@ $& $1", "𝕏 ünïcödé 漢字"];
export const hostile = () => {
  const m = structuredClone(training({ gpus: 2, id: HOSTILE.join(" ") })), r = m.runs[0], pick = i => HOSTILE[i % HOSTILE.length];
  m.title = pick(1);
  r.run.host = pick(0);
  r.verdict.text = pick(2) + pick(3);
  r.verdict.severity = "bad";
  r.findings.forEach((f, i) => { f.text = pick(i + 4); f.more = pick(i); });
  r.phases.forEach((p, i) => { p.name = pick(i); });
  r.events.forEach((e, i) => { e.text = pick(i + 1); });
  r.processes.list.forEach((p, i) => { p.name = pick(i); p.command = pick(i + 1); p.exit = pick(i + 2); });
  Object.values(r.series).forEach((s, i) => { s.label = pick(i); if (s.limit) s.limit.text = pick(i + 1); });
  r.charts.forEach((c, i) => { c.title = pick(i); c.text = pick(i + 2); c.note = pick(i + 1); });
  r.tiles.forEach((t, i) => { t.title = pick(i); (t.values || []).forEach(v => { v.label = pick(i + 1); }); });
  r.matches.rows[0].name = pick(0);
  r.devices.rows[0].model = pick(1);
  r.facts = HOSTILE.map((t, i) => [pick(i + 3), t]);
  r.measured[0].rows = HOSTILE.map(t => [t, t]);
  return m;
};

// Nothing is known but that there was a run.
export const absent = () => ({ model: 1, proctor: "0.1.0", title: null, comparison: null, runs: [{ id: "x", name: "x", run: { command: "nothing", duration: null, began: null, host: null },
  verdict: { text: "it is not known how it ended", severity: "note" } }] });

// Two runs of the same, the second with less memory.
export const pair = () => {
  const a = training({ gpus: 0, id: "train.py --batch 64" }), b = training({ gpus: 0, id: "train.py --batch 32" });
  const s = b.runs[0].series["mem.pss"], less = v => v === null ? null : v * 0.7;
  for (const k of ["mean", "min", "max"]) s[k] = s[k].map(less);
  s.stats = { ...s.stats, min: less(s.stats.min), mean: less(s.stats.mean), max: less(s.stats.max) };
  return { ...a, runs: [a.runs[0], b.runs[0]], comparison: { baseline: 0, align: "start", shift: [0, 0], overlay: ["cpu.usage", "mem.pss"],
    columns: [{ key: "metric", title: "metric", unit: null }, { key: "a", title: "batch 64", unit: "bytes" }, { key: "b", title: "batch 32", unit: "bytes" }, { key: "difference", title: "difference", unit: null }],
    rows: [{ metric: "memory peak", a: 61.2 * GiB, b: 42.8 * GiB, difference: "−30 %, less", severity: "good" }] } };
};

// The one in web/example.json: short enough to be read.
export const example = () => training({ gpus: 1, most: 12 });
export const written = (v, indent = "") => { // what is short on one line
  const line = JSON.stringify(v), inner = indent + " ";
  if (line.length < 170 || typeof v !== "object") return line;
  const parts = Array.isArray(v) ? v.map(x => inner + written(x, inner)) : Object.entries(v).map(([k, x]) => `${inner}${JSON.stringify(k)}: ${written(x, inner)}`);
  const [open, close] = Array.isArray(v) ? "[]" : "{}";
  return `${open}\n${parts.join(",\n")}\n${indent}${close}${indent ? "" : "\n"}`;
};

export const MODELS = { training: () => training(), cpu: () => training({ gpus: 0 }), many: () => training({ gpus: 8 }), short, month, hostile, absent, pair };
export const intoPage = (template, m) => {
  const json = JSON.stringify(m).replace(/</g, "\\u003c"), [head, tail] = template.split("@MODEL@");
  return head + json + tail;
};
