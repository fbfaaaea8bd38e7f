// SPDX-License-Identifier: Apache-2.0
// Runs whose figures are known.
import { chartsOf, COLUMNS, GiB, makeRun, MEASURED, MiB, model, random, tilesOf } from "./parts.mjs";
export { makeRun, model };

// A training job of 72 minutes with phases, two GPUs, and memory close to its limit in the last of them.
export const training = ({ gpus = 2, id = "train.py --cfg big.yaml", most = 2000 } = {}) => {
  const n = 4324,
    step = 1,
    rnd = random(7),
    noise = Float64Array.from({ length: n * 8 }, rnd),
    z = (i, k) => noise[(i * 8 + k) % noise.length] - 0.5;
  const END = [300, 2400, 3900, 4324],
    kind = i => END.findIndex(e => i < e),
    gap = i => i >= 1500 && i < 1530;
  const G = (i, v) => (gap(i) ? null : v);
  const curves = {
    "cpu.usage": {
      label: "job",
      family: "cpu",
      limit: { value: 16, text: "allowed 16" },
      host: { value: 64, text: "machine 64" },
      of: i => G(i, Math.max(0, [3, 12.4, 14, 1.5][kind(i)] + z(i, 0) * 2.6)),
    },
    "system.cpu.usage": { label: "machine", family: "cpu", of: i => G(i, [5, 15.8, 17, 4][kind(i)] + z(i, 1) * 1.5) },
    "mem.pss": {
      label: "job",
      family: "memory",
      limit: { value: 64 * GiB, text: "limit 64 GiB" },
      host: { value: 512 * GiB, text: "machine 512 GiB" },
      of: i =>
        G(i, (i === 2467 ? 61.2 : [4 + i / 30, 38 + z(i, 2), 52 + z(i, 2) * 3 + (i - 2400) / 400, 20][kind(i)]) * GiB),
    },
    "io.read.rate": {
      label: "read",
      family: "disk",
      of: i => G(i, [(0.25 + z(i, 3) * 0.3) * GiB + (i === 120 ? 1.7 * GiB : 0), 8 * MiB, 20 * MiB, 0][kind(i)]),
    },
    "io.write.rate": {
      label: "write",
      family: "disk",
      of: i => G(i, [0, i % 300 < 6 ? 0.5 * GiB : 0, 0, (0.12 + z(i, 4) * 0.05) * GiB][kind(i)]),
    },
    "net.rx.rate": { label: "receive", family: "network", of: i => G(i, (0.03 + z(i, 5) * 0.02) * GiB) },
    "net.tx.rate": { label: "send", family: "network", of: i => G(i, (0.02 + z(i, 6) * 0.02) * GiB) },
    power: { label: "power", family: "energy", of: i => G(i, 760 + z(i, 7) * 60) },
  };
  for (let g = 0; g < gpus; g++) {
    const busy = i => [0, 0.93, g % 2 ? 0.05 : 0.8, 0][kind(i)];
    curves[`gpu.${g}.util`] = {
      label: `GPU ${g}`,
      family: "gpu",
      of: i => G(i, Math.min(1, Math.max(0, busy(i) + (busy(i) ? z(i, g) * 0.12 : 0)))),
    };
    curves[`gpu.${g}.idle`] = { label: `GPU ${g}`, family: "gpu", of: i => G(i, busy(i) < 0.1 ? 1 : 0) };
    curves[`gpu.${g}.mem.used`] = {
      label: `GPU ${g} mem`,
      family: "gpu",
      limit: { value: 141 * GiB, text: "capacity 141 GiB" },
      of: i => G(i, ([2, 110 - g * 12, 118 - g * 12, 2][kind(i)] + Math.min(i, 40) / 40) * GiB),
    };
  }
  const phase = (name, begin, end, level = 0, parent = null) => ({
    name,
    begin,
    end,
    time: end - begin,
    level,
    parent,
    exact: true,
    count: 1,
    stats: {},
  });
  const run = makeRun({
    id,
    n,
    step,
    most,
    curves,
    tiles: tilesOf({ cpu: 16, memory: 64 * GiB, gpu: 141 * GiB }, gpus),
    charts: chartsOf(gpus),
    columns: COLUMNS,
    phases: [
      phase("load", 0, 300),
      phase("train", 300, 2400),
      phase("epoch 1", 300, 1000, 1, 1),
      phase("epoch 2", 1000, 1700, 1, 1),
      phase("epoch 3", 1700, 2400, 1, 1),
      phase("eval", 2400, 3900),
      phase("save", 3900, 4324),
    ],
    events: [
      { at: 1000, kind: "mark", severity: "note", text: "epoch 1 done" },
      { at: 2467, kind: "throttled", severity: "warn", text: "throttled" },
    ],
    late: [1500, 1530, 2000],
    findings: [
      {
        id: "memory-near-limit",
        severity: "bad",
        text: "Memory reached 61.2 GiB, 96 % of the 64 GiB limit, at 41 m 07 s in “eval”.",
        at: 2468,
        range: null,
        more: "The next 2.8 GiB would have ended the job. Ask for 70 GiB, or lower the batch size of eval.",
      },
      {
        id: "gpu-idle",
        severity: "warn",
        text: gpus > 1 ? "GPU 1 was idle 52 % of the time." : "The machine was busy with others.",
        at: null,
        range: [2400, 3900],
        more: null,
      },
      {
        id: "wasted",
        severity: "note",
        text: "In “save” 1.5 of 16 cores were used.",
        at: null,
        range: [3900, 4324],
        more: null,
      },
    ],
    processes: {
      total: 14,
      note: "2 processes lived between two samples and are known by their exit alone.",
      list: [
        {
          pid: 4100,
          parent: null,
          name: "python3",
          command: "python3 " + id,
          begin: 0,
          end: 4324,
          cpu: 38210,
          peak: 30 * GiB,
          read: 60 * GiB,
          written: 12 * GiB,
          exit: "exit 0",
          spark: Array.from({ length: 60 }, (_, i) => 6 + 4 * Math.sin(i / 5)),
        },
        ...Array.from({ length: 8 }, (_, k) => ({
          pid: 4110 + k,
          parent: 0,
          name: "pt_data_worker",
          command: "python3 -c from multiprocessing.spawn import spawn_main",
          begin: 12,
          end: k < 6 ? 3900 : null,
          cpu: 1100 + 40 * k,
          peak: (2 + k / 4) * GiB,
          read: 3 * GiB,
          written: 0,
          exit: k < 6 ? "exit 0" : null,
          spark: Array.from({ length: 60 }, (_, i) => (i > 54 ? null : 0.6 + 0.3 * Math.cos(i + k))),
        })),
        {
          pid: 4200,
          parent: 1,
          name: "git",
          command: "git rev-parse HEAD",
          begin: 3,
          end: 3.2,
          cpu: 0.011,
          peak: 9 * MiB,
          read: 0,
          written: 0,
          exit: "exit 0",
          spark: null,
        },
      ],
    },
    matches: {
      columns: [
        { key: "name", title: "name", unit: null },
        { key: "n", title: "most at once", unit: "count" },
        { key: "cpu", title: "CPU time", unit: "seconds" },
        { key: "uss", title: "peak USS", unit: "bytes" },
      ],
      rows: [
        { name: "python3", n: 1, cpu: 38210, uss: 29 * GiB },
        { name: "pt_data_worker", n: 8, cpu: 9900, uss: 20 * GiB },
      ],
      note: null,
    },
    devices: gpus
      ? {
          columns: [
            { key: "name", title: "device", unit: null },
            { key: "model", title: "model", unit: null },
            { key: "util", title: "mean", unit: "ratio" },
            { key: "mem", title: "memory peak", unit: "bytes" },
            { key: "power", title: "power mean", unit: "watts" },
            { key: "temp", title: "hottest", unit: "celsius" },
          ],
          rows: Array.from({ length: gpus }, (_, g) => ({
            name: `GPU ${g}`,
            model: "NVIDIA H200",
            util: g ? 0.47 : 0.73,
            mem: (119 - g * 12) * GiB,
            power: 380,
            temp: 61 + g,
          })),
          note: "A GPU is busy when any kernel runs on it.",
        }
      : null,
    measured: MEASURED,
    facts: [
      ["command", "python3 " + id],
      ["directory", "/home/ada/big"],
      ["proctor", "0.1.0"],
      ["limits", "cpuset 0-15, cpu.max none, memory.max 64 GiB"],
      ["GPUs visible", gpus ? "0, 1" : "none"],
    ],
  });
  run.run.host = `node17, 64 cores${gpus ? `, ${gpus} x H200` : ""}`;
  return model(run);
};

// One sample, and what the kernel says at the end.
export const short = () => {
  const run = makeRun({
    id: "true",
    n: 1,
    step: 0.0031,
    curves: {
      "cpu.usage": { label: "job", family: "cpu", of: () => 0.42 },
      "mem.pss": { label: "job", family: "memory", of: () => 1.7 * MiB },
    },
    tiles: tilesOf({ cpu: 2, memory: 8 * GiB }, 0),
    charts: chartsOf(0),
  });
  for (const e of [run.tiles[4], run.tiles[5], run.charts[3]]) e.absent = "it ended before it was read";
  return model(run);
};

// 30 days at 1 Hz with one sample that differs: it must be seen.
export const month = ({ n = 30 * 86400, spikeAt = 1234567, most = 2000 } = {}) => {
  const wave = i => 2 + Math.sin((i / 86400) * 2 * Math.PI);
  const day = i => (i % 86400) / 86400,
    curves = {
      "cpu.usage": { label: "job", family: "cpu", of: i => (i === spikeAt ? 30 : wave(i)) },
      "mem.pss": {
        label: "job",
        family: "memory",
        limit: { value: 64 * GiB, text: "limit 64 GiB" },
        of: i => (20 + (i / n) * 10 + (i === spikeAt ? 33 : 0)) * GiB,
      },
      "io.read.rate": { label: "read", family: "disk", of: i => (i % 3600 === 0 ? 200 * MiB : 0.5 * MiB) },
      "io.write.rate": { label: "write", family: "disk", of: i => (day(i) < 0.05 ? 80 * MiB : MiB) },
      "net.rx.rate": { label: "receive", family: "network", of: i => 3 * MiB * wave(i) },
      "net.tx.rate": { label: "send", family: "network", of: i => MiB * wave(i + 4e4) },
      power: { label: "power", family: "energy", of: i => 200 + 30 * wave(i) },
    };
  const run = makeRun({
    id: "serve --forever",
    n,
    step: 1,
    most,
    curves,
    tiles: tilesOf({ cpu: 32, memory: 64 * GiB }, 0),
    charts: chartsOf(0),
    measured: MEASURED,
  });
  return model(run);
};

// Text that wants to be something else.
export const HOSTILE = [
  "<script>window.hacked=1</script>",
  "</script><script>window.hacked=1</script>",
  "<img src=x onerror=window.hacked=1>",
  "\u001b[31mred\u001b[0m\u0007",
  "‮gnp.exe",
  "a".repeat(20000),
  "x\ny\tz",
  "\"'`${window.hacked=1}",
  "<!--<script>",
  "@MODEL@ $& $1",
  "𝕏 ünïcödé 漢字",
];
export const hostile = () => {
  const m = structuredClone(training({ gpus: 2, id: HOSTILE.join(" ") })),
    r = m.runs[0],
    pick = i => HOSTILE[i % HOSTILE.length];
  m.title = pick(1);
  r.run.host = pick(0);
  r.verdict.text = pick(2) + pick(3);
  r.verdict.severity = "bad";
  r.findings.forEach((f, i) => {
    f.text = pick(i + 4);
    f.more = pick(i);
  });
  r.phases.forEach((p, i) => {
    p.name = pick(i);
  });
  r.events.forEach((e, i) => {
    e.text = pick(i + 1);
  });
  r.processes.list.forEach((p, i) => {
    p.name = pick(i);
    p.command = pick(i + 1);
    p.exit = pick(i + 2);
  });
  Object.values(r.series).forEach((s, i) => {
    s.label = pick(i);
    if (s.limit) s.limit.text = pick(i + 1);
  });
  r.charts.forEach((c, i) => {
    c.title = pick(i);
    c.text = pick(i + 2);
    c.note = pick(i + 1);
  });
  r.tiles.forEach((t, i) => {
    t.title = pick(i);
    (t.values || []).forEach(v => {
      v.label = pick(i + 1);
    });
  });
  r.matches.rows[0].name = pick(0);
  r.devices.rows[0].model = pick(1);
  r.facts = HOSTILE.map((t, i) => [pick(i + 3), t]);
  r.measured[0].rows = HOSTILE.map(t => [t, t]);
  return m;
};

// Nothing is known but that there was a run.
export const absent = () => ({
  model: 1,
  proctor: "0.1.0",
  title: null,
  comparison: null,
  runs: [
    {
      id: "x",
      name: "x",
      run: { command: "nothing", duration: null, began: null, host: null },
      verdict: { text: "it is not known how it ended", severity: "note" },
    },
  ],
});

// Two runs of the same, the second with less memory.
export const pair = () => {
  const a = training({ gpus: 0, id: "train.py --batch 64" }),
    b = training({ gpus: 0, id: "train.py --batch 32" });
  const s = b.runs[0].series["mem.pss"],
    less = v => (v === null ? null : v * 0.7);
  for (const k of ["mean", "min", "max"]) s[k] = s[k].map(less);
  s.stats = { ...s.stats, min: less(s.stats.min), mean: less(s.stats.mean), max: less(s.stats.max) };
  return {
    ...a,
    runs: [a.runs[0], b.runs[0]],
    comparison: {
      baseline: 0,
      align: "start",
      shift: [0, 0],
      overlay: ["cpu.usage", "mem.pss"],
      columns: [
        { key: "metric", title: "metric", unit: null },
        { key: "a", title: "batch 64", unit: "bytes" },
        { key: "b", title: "batch 32", unit: "bytes" },
        { key: "difference", title: "difference", unit: null },
      ],
      rows: [{ metric: "memory peak", a: 61.2 * GiB, b: 42.8 * GiB, difference: "−30 %, less", severity: "good" }],
    },
  };
};

// The one in web/example.json: short enough to be read.
export const example = () => training({ gpus: 1, most: 12 });
export const written = (v, indent = "") => {
  // what is short on one line
  const line = JSON.stringify(v),
    inner = indent + " ";
  if (line.length < 170 || typeof v !== "object") return line;
  const parts = Array.isArray(v)
    ? v.map(x => inner + written(x, inner))
    : Object.entries(v).map(([k, x]) => `${inner}${JSON.stringify(k)}: ${written(x, inner)}`);
  const [open, close] = Array.isArray(v) ? "[]" : "{}";
  return `${open}\n${parts.join(",\n")}\n${indent}${close}${indent ? "" : "\n"}`;
};

export const MODELS = {
  training: () => training(),
  cpu: () => training({ gpus: 0 }),
  many: () => training({ gpus: 8 }),
  short,
  month,
  hostile,
  absent,
  pair,
};
export const intoPage = (template, m) => {
  const json = JSON.stringify(m).replace(/</g, "\\u003c"),
    [head, tail] = template.split("@MODEL@");
  return head + json + tail;
};
