// SPDX-License-Identifier: Apache-2.0
// What models are made of, as the C side would make it: series, tiles, charts. Shape: doc/report-model.md.
export const GiB = 2 ** 30,
  MiB = 2 ** 20;

export const random = seed => () => {
  // the same each time
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
};
const rounded = v => (v === null ? null : Number(v.toPrecision(5)));

// Samples of a function of time, reduced as the C side does it: least, mean and most in each bucket.
export const reduce = (n, step, most, of) => {
  const per = Math.ceil(n / most),
    at = [],
    span = [],
    mean = [],
    min = [],
    max = [];
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
  let sum = 0,
    k = 0,
    min = Infinity,
    max = -Infinity,
    at = null;
  for (let i = 0; i < n; i++) {
    const v = of(i);
    if (v === null) continue;
    sum += v;
    k++;
    if (v < min) min = v;
    if (v > max) {
      max = v;
      at = (i + 1) * step;
    }
  }
  return k ? { min, mean: sum / k, max, at, total: rate ? sum * step : null } : null;
};

const UNITS = {
  rate: "bytes/s",
  usage: "cores",
  util: "ratio",
  idle: "ratio",
  used: "bytes",
  rss: "bytes",
  pss: "bytes",
  power: "watts",
};
export const makeRun = ({ id = "run", n, step, most = 2000, curves, ...rest }) => {
  const series = {};
  most = Math.min(most, Math.floor(500e3 / (Object.keys(curves).length * 3 * 7))); // as the C side keeps it below 500 KB
  let time = { at: [], span: [], samples: n };
  for (const [key, c] of Object.entries(curves)) {
    const { at, span, ...values } = reduce(n, step, most, c.of),
      unit = c.unit || UNITS[key.split(".").pop()];
    time = { at, span, samples: n };
    series[key] = {
      label: c.label,
      unit,
      family: c.family,
      limit: c.limit || null,
      host: c.host || null,
      note: c.note || null,
      ...values,
      stats: wholeOf(n, step, c.of, /rate|power|usage/.test(key)),
    };
  }
  return {
    id,
    name: id,
    run: {
      command: id,
      argv: [id],
      host: "node17, 64 cores",
      began: 1789912920,
      duration: n * step,
      exit: 0,
      signal: null,
    },
    verdict: { text: "finished, exit 0", severity: "good" },
    findings: [],
    time,
    series,
    late: [],
    tiles: [],
    charts: [],
    phases: [],
    columns: [],
    events: [],
    processes: { total: 0, note: null, list: [] },
    matches: null,
    devices: null,
    measured: [],
    facts: [],
    summary: null,
    ...rest,
  };
};
export const model = (...runs) => ({ model: 1, proctor: "0.1.0", title: runs[0].run.command, runs, comparison: null });

const one = (series, stat, label, unit) => ({ series: [].concat(series), stat, label, unit });
const GPU_ABSENT = "no GPU was used";
export const tilesOf = (limits, gpus) => {
  const of = what => Array.from({ length: gpus }, (_, i) => `gpu.${i}.${what}`);
  return [
    {
      id: "cpu",
      title: "CPU",
      family: "cpu",
      values: [one("cpu.usage", "mean", "mean", "cores")],
      also: [one("cpu.usage", "max", "peak", "cores")],
      limit: { value: limits.cpu, text: `allowed ${limits.cpu} cores` },
      spark: ["cpu.usage"],
    },
    {
      id: "memory",
      title: "Memory",
      family: "memory",
      values: [one("mem.pss", "max", "peak", "bytes")],
      also: [one("mem.pss", "mean", "mean", "bytes")],
      limit: { value: limits.memory, text: `limit ${limits.memory / GiB} GiB` },
      spark: ["mem.pss"],
    },
    gpus
      ? {
          id: "gpu",
          title: gpus > 1 ? `GPU, ${gpus} devices` : "GPU",
          family: "gpu",
          values: [one(of("util"), "mean", "mean", "ratio")],
          also: [one(of("idle"), "mean", "idle", "ratio")],
          limit: null,
          spark: ["gpu.0.util"],
        }
      : { id: "gpu", title: "GPU", family: "gpu", absent: GPU_ABSENT },
    gpus
      ? {
          id: "gpu-memory",
          title: "GPU memory",
          family: "gpu",
          values: [one(of("mem.used"), "max", "peak", "bytes")],
          also: [],
          limit: { value: limits.gpu, text: `capacity ${limits.gpu / GiB} GiB` },
          spark: ["gpu.0.mem.used"],
        }
      : { id: "gpu-memory", title: "GPU memory", family: "gpu", absent: GPU_ABSENT },
    {
      id: "disk",
      title: "Disk",
      family: "disk",
      values: [one("io.read.rate", "total", "read", "bytes"), one("io.write.rate", "total", "written", "bytes")],
      also: [one("io.read.rate", "max", "peak", "bytes/s")],
      limit: null,
      spark: ["io.read.rate"],
    },
    {
      id: "energy",
      title: "Energy",
      family: "energy",
      values: [one("power", "total", "used", "joules")],
      also: [one("power", "mean", "mean", "watts")],
      limit: null,
      spark: ["power"],
    },
  ];
};
export const chartsOf = gpus => {
  const each = (what, role) => Array.from({ length: gpus }, (_, i) => ({ series: `gpu.${i}.${what}`, role }));
  return [
    {
      id: "cpu",
      title: "CPU",
      unit: "cores",
      place: "first",
      lines: [
        { series: "cpu.usage", role: "job" },
        { series: "system.cpu.usage", role: "context" },
      ],
      text: "Cores in use: least, mean, most and where.",
      note: "CPU time of all processes per second.",
    },
    {
      id: "memory",
      title: "Memory",
      unit: "bytes",
      place: "first",
      lines: [{ series: "mem.pss", role: "job" }],
      text: "Memory in use: least, mean, most and where.",
      note: "PSS, summed over processes.",
    },
    gpus
      ? {
          id: "gpu",
          title: "GPU",
          unit: "ratio",
          place: "first",
          lines: [...each("util", "job"), ...each("mem.used", "share")],
          text: "Share of time in which each GPU worked, and memory in use as a share of its own.",
          note: "NVML.",
        }
      : { id: "gpu", title: "GPU", unit: "ratio", place: "first", lines: [], absent: GPU_ABSENT, text: GPU_ABSENT },
    {
      id: "io",
      title: "Disk, network",
      unit: "bytes/s",
      place: "first",
      lines: [
        { series: "io.read.rate", role: "job" },
        { series: "net.rx.rate", role: "job" },
        { series: "io.write.rate", role: "down" },
        { series: "net.tx.rate", role: "down" },
      ],
      text: "Bytes per second read and received, upwards; written and sent, downwards.",
      note: "/proc/PID/io, sock_diag.",
    },
  ];
};
export const COLUMNS = [
  { title: "CPU mean", ...one("cpu.usage", "mean", "", "cores") },
  { title: "memory peak", ...one("mem.pss", "max", "", "bytes") },
  { title: "read", ...one("io.read.rate", "total", "", "bytes") },
  { title: "written", ...one("io.write.rate", "total", "", "bytes") },
  { title: "energy", ...one("power", "total", "", "joules") },
];
export const MEASURED = [
  {
    title: "Method",
    rows: [
      ["target", "tree of the command, 14 processes"],
      ["CPU", "sum over processes, checked against the cgroup: 0.02 % apart"],
      ["memory", "PSS, read within the budget; at most 1.2 s old"],
      ["I/O", "/proc/PID/io, storage only"],
    ],
  },
  {
    title: "Completeness",
    rows: [
      ["interval", "1 s"],
      ["samples", "4,324 taken, 2 late, 1 missed"],
      ["processes", "14 seen, none never sampled"],
    ],
  },
  { title: "What is absent, and why", rows: [["network of UDP", "the kernel has no counters for it"]] },
  {
    title: "What proctor itself used",
    rows: [
      ["CPU", "0.09 % of one core"],
      ["memory", "3.1 MiB"],
    ],
  },
];
