// SPDX-License-Identifier: Apache-2.0
// Whether a model keeps to doc/report-model.md: `node contract.mjs FILE...` says what does not.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const SEVERITY = ["good", "note", "warn", "bad"],
  FAMILY = ["cpu", "memory", "gpu", "disk", "network", "energy", "other"];
const UNIT = ["cores", "bytes", "bytes/s", "ratio", "seconds", "watts", "joules", "celsius", "hertz", "count"];
const KIND = ["mark", "oom", "throttled", "signal", "exit", "note"],
  ROLE = ["job", "down", "share", "context"];
const STAT = ["mean", "max", "min", "total"],
  PLACE = ["first", "below", "document"];
const known = v => v !== null && v !== undefined;

export const check = model => {
  const wrong = [],
    must = (holds, where, what) => {
      if (!holds) wrong.push(`${where}: ${what}`);
    };
  const one = (v, list, where) => must(list.includes(v), where, `${JSON.stringify(v)} is none of ${list.join(", ")}`);
  const number = (v, where) =>
    must(!known(v) || (typeof v === "number" && Number.isFinite(v)), where, `${JSON.stringify(v)} is no number`);
  const text = (v, where) => must(typeof v === "string", where, `${JSON.stringify(v)} is no text`);
  const words = (rows, where) =>
    rows.forEach((row, i) =>
      must(
        Array.isArray(row) && row.length === 2 && row.every(t => typeof t === "string"),
        `${where}[${i}]`,
        "is not two texts",
      ),
    );

  const series = (time, s, where) => {
    text(s.label, where + ".label");
    one(s.unit, UNIT, where + ".unit");
    one(s.family, FAMILY, where + ".family");
    for (const k of ["limit", "host"])
      if (known(s[k])) {
        number(s[k].value, `${where}.${k}`);
        text(s[k].text, `${where}.${k}.text`);
      }
    must(!s.min === !s.max, where, "has one of min and max");
    for (const k of ["mean", "min", "max"])
      if (s[k]) must(s[k].length === time.at.length, where, `${k} has ${s[k].length} of ${time.at.length}`);
    s.mean.forEach((v, i) => {
      number(v, `${where}.mean[${i}]`);
      if (!s.min) return;
      must(known(v) === known(s.min[i]) && known(v) === known(s.max[i]), `${where}[${i}]`, "is known in part");
      if (known(v))
        must(
          s.min[i] <= v * (1 + 1e-4) + 1e-9 && v <= s.max[i] * (1 + 1e-4) + 1e-9,
          `${where}[${i}]`,
          "the mean is not between least and most",
        );
    });
    if (known(s.stats)) {
      for (const k of ["min", "mean", "max", "at", "total"]) number(s.stats[k], `${where}.stats.${k}`);
      const most = (s.max || s.mean).reduce((m, v) => (known(v) && v > m ? v : m), -Infinity);
      if (known(s.stats.max))
        must(s.stats.max >= most * (1 - 1e-4), `${where}.stats.max`, `is below ${most} of the series`);
    }
  };
  const value = (v, where) => {
    one(v.stat, STAT, where + ".stat");
    one(v.unit, UNIT, where + ".unit");
    must(Array.isArray(v.series) && v.series.length > 0, where, "is of no series");
  };
  const table = (t, where) => {
    if (!known(t)) return;
    t.columns.forEach((c, i) => {
      text(c.key, `${where}.columns[${i}]`);
      text(c.title, `${where}.columns[${i}].title`);
      if (known(c.unit)) one(c.unit, UNIT, `${where}.columns[${i}]`);
    });
    t.rows.forEach((row, i) =>
      t.columns.forEach(c => known(c.unit) && number(row[c.key], `${where}.rows[${i}].${c.key}`)),
    );
  };
  const oneRun = (run, where) => {
    text(run.run?.command, where + ".run.command");
    for (const k of ["began", "duration"]) number(run.run?.[k], `${where}.run.${k}`);
    text(run.verdict?.text, where + ".verdict.text");
    one(run.verdict?.severity, SEVERITY, where + ".verdict");
    (run.findings || []).forEach((f, i) => {
      text(f.text, `${where}.findings[${i}]`);
      one(f.severity, SEVERITY, `${where}.findings[${i}]`);
      number(f.at, `${where}.findings[${i}].at`);
    });
    const time = run.time || { at: [], span: [] };
    must(time.at.length <= 2000, where + ".time", "has more than 2,000 buckets");
    must(time.at.length === time.span.length, where + ".time", "at and span differ in length");
    time.at.forEach((t, i) =>
      must(typeof t === "number" && (i === 0 || t > time.at[i - 1]), `${where}.time.at[${i}]`, "does not ascend"),
    );
    for (const [key, s] of Object.entries(run.series || {})) series(time, s, `${where}.series[${key}]`);
    const has = k => k in (run.series || {});
    must((run.tiles || []).length <= 6, where, "has more than six tiles");
    (run.tiles || []).forEach((t, i) => {
      const at = `${where}.tiles[${i}]`;
      text(t.title, at);
      one(t.family, FAMILY, at);
      [...(t.values || []), ...(t.also || [])].forEach(v => value(v, at));
      must(known(t.absent) || (t.values || []).some(v => v.series.some(has)), at, "shows nothing and does not say why");
      if (known(t.limit)) {
        number(t.limit.value, at + ".limit");
        must(t.limit.value > 0, at + ".limit", "is not above 0");
      }
    });
    (run.charts || []).forEach((c, i) => {
      const at = `${where}.charts[${i}]`;
      text(c.title, at);
      text(c.text, at + ".text");
      one(c.unit, UNIT, at);
      one(c.place ?? "first", PLACE, at);
      (c.lines || []).forEach(l => {
        one(l.role, ROLE, at);
        if (l.role === "share" && has(l.series))
          must(known(run.series[l.series].limit), at, `${l.series} is a share of no limit`);
      });
      must(known(c.absent) || (c.lines || []).some(l => has(l.series)), at, "draws nothing and does not say why");
    });
    (run.phases || []).forEach((p, i) => {
      const at = `${where}.phases[${i}]`;
      text(p.name, at);
      must(p.end >= p.begin, at, "ends before it begins");
      must(Number.isInteger(p.level) && p.level >= 0, at, "has no level");
      if (known(p.parent)) must(run.phases[p.parent]?.level === p.level - 1, at, "is not one level below its parent");
    });
    (run.columns || []).forEach((c, i) => {
      text(c.title, `${where}.columns[${i}]`);
      value(c, `${where}.columns[${i}]`);
    });
    (run.events || []).forEach((e, i) => {
      number(e.at, `${where}.events[${i}]`);
      one(e.kind, KIND, `${where}.events[${i}]`);
      one(e.severity, SEVERITY, `${where}.events[${i}]`);
      text(e.text, `${where}.events[${i}]`);
    });
    const list = run.processes?.list || [];
    must(list.length <= 200, where + ".processes", "has more than 200");
    list.forEach((p, i) => {
      const at = `${where}.processes.list[${i}]`;
      text(p.name, at);
      for (const k of ["pid", "parent", "begin", "end", "cpu", "peak", "read", "written"]) number(p[k], `${at}.${k}`);
      if (known(p.parent)) must(p.parent !== i && list[p.parent], at, "has a parent that is not there");
      if (known(p.spark)) must(p.spark.length <= 60, at, "has a curve of more than 60");
    });
    table(run.matches, where + ".matches");
    table(run.devices, where + ".devices");
    table(run.nodes, where + ".nodes");
    (run.measured || []).forEach((m, i) => {
      text(m.title, `${where}.measured[${i}]`);
      words(m.rows, `${where}.measured[${i}]`);
    });
    words(run.facts || [], where + ".facts");
  };
  must(model.model === 1, "model", `is ${model.model}, not 1`);
  must(Array.isArray(model.runs) && model.runs.length > 0, "runs", "there is none");
  (model.runs || []).forEach((run, i) => oneRun(run, `runs[${i}]`));
  if (known(model.comparison)) {
    const { baseline, align, shift, rows, overlay } = model.comparison;
    must(!known(baseline) || model.runs[baseline], "comparison", "is with no run");
    one(align, ["start", "phase"], "comparison.align");
    must(shift.length === model.runs.length, "comparison.shift", `has ${shift.length} of ${model.runs.length}`);
    shift.forEach((s, i) => number(s, `comparison.shift[${i}]`));
    table(model.comparison, "comparison");
    rows.forEach((r, i) => one(r.severity, SEVERITY, `comparison.rows[${i}]`));
    if (known(overlay)) must(Array.isArray(overlay), "comparison.overlay", "is no list");
  }
  return wrong;
};

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  let bad = 0;
  for (const name of process.argv.slice(2))
    for (const line of check(JSON.parse(readFileSync(name, "utf8")))) {
      console.log(`${name}: ${line}`);
      bad++;
    }
  process.exit(bad ? 1 : 0);
}
