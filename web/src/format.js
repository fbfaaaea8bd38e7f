// SPDX-License-Identifier: Apache-2.0
// Numbers for people. The rules are those of src/util/units.c: three significant digits, IEC bytes.
const KNOWN = v => Number.isFinite(v);
const ABSENT = "–";

const significant = v => {
  const a = Math.abs(v);
  return v.toFixed(a === 0 || a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2);
};
const plain = text => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

const IEC = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const SCALES = {
  bytes: IEC.map((name, i) => [1024 ** i, name, 1023.5 / 1024]),
  "bytes/s": IEC.map((name, i) => [1024 ** i, name + "/s", 1023.5 / 1024]),
  joules: [
    [1, "J"],
    [3600, "Wh"],
    [3.6e6, "kWh"],
  ],
  hertz: [
    [1, "Hz"],
    [1e6, "MHz"],
    [1e9, "GHz"],
  ],
  ratio: [[0.01, "%"]],
  cores: [[1, "cores"]],
  watts: [[1, "W"]],
  celsius: [[1, "°C"]],
  seconds: [[1, "s"]],
};

// By what a value of that size is divided, and what it is then called.
const scaleOf = (unit, size) => {
  const steps = SCALES[unit] || [[1, ""]];
  let best = steps[0];
  for (const step of steps) if (Math.abs(size) >= step[0] * (step[2] || 1)) best = step;
  return best;
};

const duration = v => {
  if (v < 99.95) {
    if (v < 5e-6) v = 0;
    return v > 0 && v < 0.9995 ? significant(v * 1e3) + " ms" : significant(v) + " s";
  }
  const s = Math.round(v),
    two = n => String(n).padStart(2, "0");
  return (
    (s >= 86400 ? Math.floor(s / 86400) + " d " : "") +
    (s >= 3600 ? (Math.floor(s / 3600) % 24) + " h " : "") +
    (s >= 3600 ? two(Math.floor(s / 60) % 60) : Math.floor(s / 60)) +
    " m " +
    two(s % 60) +
    " s"
  );
};

const number = (v, unit, size) => {
  const [by, name] = scaleOf(unit, size === undefined ? v : size);
  return unit === "count" || name === "B" ? (v / by).toFixed(0) : significant(v / by);
};
const human = (v, unit) => {
  if (!KNOWN(v)) return ABSENT;
  if (unit === "seconds") return duration(v);
  return (number(v, unit) + " " + scaleOf(unit, v)[1]).trim();
};

// A tick of the time axis: parts that are 0 are left out.
const tick = (t, step) => {
  if (t === 0) return "0";
  if (step < 1) return step < 0.1 ? plain((t * 1e3).toFixed(1)) + " ms" : plain(t.toFixed(1)) + " s";
  const s = Math.round(t),
    parts = [
      [Math.floor(s / 86400), "d"],
      [Math.floor(s / 3600) % 24, "h"],
      [Math.floor(s / 60) % 60, "m"],
      [s % 60, "s"],
    ];
  return parts
    .filter(p => p[0])
    .map(p => p.join(" "))
    .join(" ");
};
const wall = (seconds, long) => {
  const text = new Date(seconds * 1e3).toISOString();
  return (long ? text.slice(0, 16).replace("T", " ") : text.slice(11, 19)) + " UTC";
};

// Names come from jobs: what would be invisible or turn text around is shown.
const clean = text =>
  String(text).replace(/[\0-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, c =>
    c === "\n" ? "↵" : c < " " ? String.fromCharCode(0x2400 + c.charCodeAt()) : "\ufffd",
  );
const say = (text, most = 4000) => {
  const s = String(text ?? "");
  return clean(s.length > most ? s.slice(0, most) + "…" : s);
};
