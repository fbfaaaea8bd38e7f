// SPDX-License-Identifier: Apache-2.0
// Figures of a range, from the series. Whole runs and phases have exact ones, which are taken instead.

// The buckets [first, last) of a range. What lies on its begin stands for the time before, unless that is the start.
const within = (at, from, to) => {
  const lower = (v, after) => {
    let a = 0,
      b = at.length;
    while (a < b) {
      const m = (a + b) >> 1;
      if (after ? at[m] <= v : at[m] < v) a = m + 1;
      else b = m;
    }
    return a;
  };
  return [lower(from, from > 0), lower(to, true)];
};

// { min, mean, max, at, total } of one series in a range.
const figures = (run, key, range) => {
  const s = run.series[key];
  if (!s) return {};
  const exact = range.whole ? s.stats : range.phase && range.phase.stats && range.phase.stats[key];
  const [first, last] = within(run.time.at, range.from, range.to);
  const least = s.min || s.mean,
    most = s.max || s.mean,
    found = { min: null, mean: null, max: null, at: null, total: null };
  let sum = 0,
    weight = 0,
    plainSum = 0,
    n = 0;
  for (let i = first; i < last; i++) {
    if (!KNOWN(s.mean[i])) continue;
    const span = run.time.span[i];
    sum += s.mean[i] * span;
    weight += span;
    plainSum += s.mean[i];
    n++;
    if (found.min === null || least[i] < found.min) found.min = least[i];
    if (found.max === null || most[i] > found.max) {
      found.max = most[i];
      found.at = run.time.at[i];
    }
  }
  if (n) {
    found.mean = weight > 0 ? sum / weight : plainSum / n;
    found.total = sum;
  }
  // Where the most is known exactly, what is null beside it is unknown: a peak that no sample has is at no time.
  if (exact) for (const k in found) if (KNOWN(exact.max) ? k in exact : KNOWN(exact[k]) && k !== "at") found[k] = exact[k];
  return found;
};

// A value as the model describes it: { v, at, of: the label of the series it comes from }.
const valueOf = (run, value, range) => {
  const all = value.series.map(key => ({ key, f: figures(run, key, range) })).filter(e => KNOWN(e.f[value.stat]));
  if (!all.length) return { v: null };
  const of = e => e.f[value.stat],
    sum = all.reduce((a, e) => a + of(e), 0);
  if (value.stat === "total") return { v: sum };
  if (value.stat === "mean") return { v: sum / all.length };
  const best = all.reduce((a, e) => ((value.stat === "max" ? of(e) > of(a) : of(e) < of(a)) ? e : a));
  return { v: of(best), at: best.f.at, of: value.series.length > 1 ? run.series[best.key].label : null };
};

// Another run's series on this run's time base, nearest bucket; for overlays.
const resample = (times, other, values, shift) => {
  const at = other.time.at,
    span = other.time.span;
  let j = 0;
  return times.map(time => {
    const t = time - shift;
    while (j + 1 < at.length && Math.abs(at[j + 1] - t) <= Math.abs(at[j] - t)) j++;
    return at.length && Math.abs(at[j] - t) <= Math.max(span[j] || 0, 1e-9) * 1.5 ? values[j] : null;
  });
};
