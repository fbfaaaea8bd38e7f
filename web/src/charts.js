// SPDX-License-Identifier: Apache-2.0
// Charts on one time axis. uPlot draws lines and bands; limits, peaks, labels and gaps are drawn here.
const AXIS = 46,
  DASHES = [[], [6, 3], [2, 2], [9, 3, 2, 3]];
const TIME_STEPS = [1, 2, 5]
  .flatMap(m => [-4, -3, -2, -1].map(e => m * 10 ** e))
  .sort((a, b) => a - b)
  .concat(
    [1, 2, 5, 10, 15, 30],
    [1, 2, 5, 10, 15, 30].map(m => m * 60),
    [1, 2, 3, 6, 12].map(m => m * 3600),
    [1, 2, 5, 10, 20, 50, 100].map(m => m * 86400),
  );

const css = name =>
  getComputedStyle(root)
    .getPropertyValue("--" + name)
    .trim();
const mix = (a, b, share) =>
  "#" +
  [1, 3, 5]
    .map(i =>
      Math.round(parseInt(a.slice(i, i + 2), 16) * (1 - share) + parseInt(b.slice(i, i + 2), 16) * share)
        .toString(16)
        .padStart(2, "0"),
    )
    .join("");

// The lines of a chart: what is drawn of which series, and how. `k` turns a value into one of the axis.
const linesOf = (run, chart, others) => {
  const seen = {},
    lines = [];
  for (const { series: key, role } of chart.lines || []) {
    const s = run.series[key];
    if (!s || !s.mean.some(KNOWN) || (role === "share" && !(s.limit && s.limit.value > 0))) continue;
    if (role === "context" && others?.[0]) continue; // one thing in grey is enough
    const kind = role + s.family,
      nth = (seen[kind] = (seen[kind] ?? -1) + 1);
    const line = {
      key,
      s,
      role,
      nth,
      label: s.label,
      family: role === "context" ? role : s.family,
      k: role === "down" ? -1 : role === "share" ? 1 / s.limit.value : 1,
      mean: s.mean,
      min: s.min,
      max: s.max,
    };
    lines.push(line);
    if (role !== "context")
      for (const o of others || []) {
        const twin = o.run.series[key];
        if (!twin || (o.keys && !o.keys.includes(key))) continue;
        lines.push({
          ...line,
          role: "context",
          of: o.run,
          label: lines.some(l => l.of === o.run) ? "" : o.name,
          family: "context",
          mean: resample(run.time.at, o.run, twin.mean, o.shift),
          max: null,
        });
      }
  }
  return lines;
};

// How far up and down a chart reaches in a range: a limit only where it matters.
const reach = (run, lines, range) => {
  const found = { up: 0, down: 0, limits: [], peaks: {} };
  for (const line of lines) {
    const f = line.of ? { max: Math.max(...line.mean.filter(KNOWN), 0) } : figures(run, line.key, range);
    if (!KNOWN(f.max)) continue;
    const top = f.max * Math.abs(line.k),
      side = line.k < 0 ? "down" : "up";
    if (line.role === "context") {
      if (side === "up") found.context = Math.max(found.context || 0, top);
      else found.down = Math.max(found.down, top);
      continue;
    }
    found[side] = Math.max(found[side], top);
    if (line.role !== "share" && (!found.peaks[side] || top > found.peaks[side].top))
      found.peaks[side] = { top, at: f.at, v: f.max, line };
  }
  for (const line of lines)
    for (const kind of ["limit", "host"]) {
      const l = line.s[kind];
      if (!l || line.role === "context" || line.k < 0) continue;
      const v = line.role === "share" ? 1 : l.value;
      if (found.up > 0.6 * v && !found.limits.some(o => o.v === v)) found.limits.push({ v, text: l.text, kind });
    }
  for (const l of found.limits) found.up = Math.max(found.up, l.v);
  // The machine may go beyond the job, but not flatten it.
  if (found.context) found.up = Math.max(found.up, Math.min(found.context, found.up * 1.6 || found.context));
  return found;
};

const drawPhases = (u, run, range) => {
  const { ctx, bbox } = u;
  const bands = run.phases.filter(p => p.level === 0 && !(p.count > 1));
  ctx.fillStyle = css("band");
  bands.forEach((p, i) => {
    if (i % 2 || p.end < range.from || p.begin > range.to) return;
    const a = Math.max(u.valToPos(Math.max(p.begin, range.from), "x", true), bbox.left);
    const b = Math.min(u.valToPos(Math.min(p.end, range.to), "x", true), bbox.left + bbox.width);
    ctx.fillRect(a, bbox.top, b - a, bbox.height);
  });
};

// What the marks of a chart are drawn with: places on the canvas, and text with a rim so that it can be read on lines.
const penOf = (u, state) => {
  const { ctx, bbox } = u,
    px = devicePixelRatio || 1;
  ctx.font = `${11 * px}px ${css("font")}`;
  return {
    ...state,
    ctx,
    bbox,
    px,
    right: bbox.left + bbox.width,
    x: t => u.valToPos(t, "x", true),
    y: v => u.valToPos(v, "y", true),
    shown: t => t >= state.range.from && t <= state.range.to,
    text(words, a, b, color, align = "left") {
      Object.assign(ctx, {
        textAlign: align,
        textBaseline: "middle",
        lineWidth: 3 * px,
        strokeStyle: css("page"),
        fillStyle: color,
      });
      ctx.strokeText(words, a, b);
      ctx.fillText(words, a, b);
    },
  };
};

// Where up and down meet, late samples as ticks at the bottom, what went wrong as a line.
const drawTimes = ({ ctx, bbox, px, x, y, run, reached, shown }) => {
  ctx.fillStyle = css("context");
  if (reached.down > 0) ctx.fillRect(bbox.left, y(0), bbox.width, px);
  ctx.fillStyle = css("muted");
  for (const t of run.late) if (shown(t)) ctx.fillRect(x(t), bbox.top + bbox.height - 5 * px, px, 5 * px);
  ctx.fillStyle = css("bad");
  for (const e of run.events) if (e.severity === "bad" && shown(e.at)) ctx.fillRect(x(e.at), bbox.top, px, bbox.height);
};

const drawLimits = ({ ctx, bbox, px, right, x, y, reached, text }) => {
  const peak = reached.peaks.up;
  for (const l of reached.limits) {
    ctx.strokeStyle = css(l.kind === "limit" ? "bad" : "context");
    ctx.lineWidth = 1.5 * px;
    ctx.setLineDash(l.kind === "limit" ? [6 * px, 4 * px] : [px, 3 * px]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y(l.v));
    ctx.lineTo(right, y(l.v));
    ctx.stroke();
    ctx.setLineDash([]);
    const far = peak && x(peak.at) < bbox.left + bbox.width / 2; // not where the peak's figure stands
    text(
      say(l.text, 40),
      far ? right - 6 * px : bbox.left + 6 * px,
      y(l.v) - 8 * px,
      css(l.kind === "limit" ? "bad-text" : "muted"),
      far ? "right" : "left",
    );
  }
};

// A sample alone between gaps is a point, and a line over the time that it stands for.
const drawAlone = ({ ctx, bbox, px, x, y, run, lines, colors, shown }) => {
  for (const line of lines) {
    if (line.role === "context") continue;
    ctx.fillStyle = colors[line.key];
    line.mean.forEach((v, i) => {
      const t = run.time.at[i];
      if (!KNOWN(v) || KNOWN(line.mean[i - 1]) || KNOWN(line.mean[i + 1]) || !shown(t)) return;
      const a = Math.max(bbox.left, x(t - run.time.span[i] / (line.max ? 2 : 1)));
      ctx.fillRect(a, y(v * line.k) - px, x(t) - a, 2 * px);
      ctx.beginPath();
      ctx.arc(x(t), y(v * line.k), 2.5 * px, 0, 7);
      ctx.fill();
    });
  }
};

// The maximum: a triangle and its value; the value alone where no curve has it.
const drawPeaks = ({ ctx, px, right, x, y, chart, range, reached, shown, text }) => {
  for (const side of ["up", "down"]) {
    const p = reached.peaks[side],
      at = p?.at ?? range.from;
    if (!p?.top || !shown(at)) continue;
    const a = x(at),
      s = side === "up" ? -1 : 1,
      b = y(p.top * -s) + s * 2 * px,
      color = css(p.line.family + "-text"),
      leftwards = a > right - 80 * px;
    if (KNOWN(p.at)) {
      ctx.fillStyle = color;
      ctx.beginPath();
      ctx.moveTo(a, b);
      ctx.lineTo(a - 4 * px, b + s * 7 * px);
      ctx.lineTo(a + 4 * px, b + s * 7 * px);
      ctx.fill();
    }
    const words = human(p.v, chart.unit) + (KNOWN(p.at) ? "" : ", between samples");
    text(words, a + (leftwards ? -7 : 7) * px, b + s * 5 * px, color, leftwards ? "right" : "left");
  }
};

// Names stand at the lines' ends, as many as there is room for and none on another.
const drawNames = ({ bbox, px, right, y, run, range, lines, text }) => {
  const [first, last] = within(run.time.at, range.from, range.to),
    gap = 12 * px,
    rank = { context: 2, share: 1 };
  let ends = [];
  for (const line of lines) {
    let i = last - 1;
    while (i >= first && !KNOWN(line.mean[i])) i--;
    const end = y(line.mean[i] * line.k);
    // The machine may be beyond the axis: there is no line to name.
    if (i >= first && line.label && (line.role !== "context" || end >= bbox.top))
      ends.push({ line, y: Math.max(bbox.top + 5 * px, end) });
  }
  ends.sort((a, b) => (rank[a.line.role] || 0) - (rank[b.line.role] || 0));
  ends = ends.slice(0, Math.floor(bbox.height / gap)).sort((a, b) => a.y - b.y);
  for (let i = 1; i < ends.length; i++) ends[i].y = Math.max(ends[i].y, ends[i - 1].y + gap);
  let most = bbox.top + bbox.height - 5 * px;
  for (const e of ends.reverse()) {
    e.y = Math.min(e.y, most);
    most -= gap;
  }
  for (const e of ends)
    text(say(e.line.label, narrow() ? 9 : 13), right + 6 * px, e.y, css(e.line.family + "-text"));
};

const drawMarks = (u, state) => {
  u.ctx.save();
  const pen = penOf(u, state);
  for (const draw of [drawTimes, drawLimits, drawAlone, drawPeaks, drawNames]) draw(pen);
  u.ctx.restore();
};

// Devices of one family differ in lightness: towards the ink, since away from it they would become too faint.
const colorsOf = lines => {
  const ink = css("ink"),
    colors = {};
  for (const l of lines) if (l.role !== "context") colors[l.key] = mix(css(l.family), ink, Math.min(l.nth, 3) * 0.2);
  return colors;
};

const seriesOf = (line, colors) => {
  const color = line.role === "context" ? css("context") : colors[line.key];
  const made = [
    {
      stroke: color,
      width: line.role === "job" || line.role === "down" ? 1.75 : 1,
      dash: line.role === "context" ? [] : DASHES[line.nth % 4],
      points: { show: false },
    },
  ];
  if (line.min && line.max && line.role !== "context" && line.role !== "share")
    // most: a hairline, so that one sample is seen
    made.push(
      { stroke: color + "8c", width: 0.75, points: { show: false } },
      { stroke: "#0000", width: 0, points: { show: false } },
    );
  return made;
};

// What uPlot is given: lists of numbers, how each is drawn, and between which a band is filled. The job is on top.
const dataOf = (run, lines, colors) => {
  const data = [run.time.at],
    series = [{}],
    bands = [],
    context = lines.filter(l => l.role === "context");
  const scaled = (values, k) => (k === 1 ? values : values.map(v => (KNOWN(v) ? v * k : null)));
  for (const line of [...context, ...lines.filter(l => !context.includes(l))]) {
    const made = seriesOf(line, colors);
    series.push(...made);
    data.push(scaled(line.mean, line.k));
    if (made.length === 1) continue;
    const n = data.length;
    data.push(scaled(line.max, line.k), scaled(line.min, line.k));
    bands.push({ series: line.k < 0 ? [n + 1, n] : [n, n + 1], fill: colors[line.key] + "38" });
  }
  return { data, series, bands };
};

const axesOf = (scale, last, state) => {
  const grid = { stroke: () => css("line"), width: 1 },
    both = { grid, stroke: () => css("muted"), font: `11px ${css("font")}` };
  return [
    {
      ...both,
      size: last ? 24 : 0,
      incrs: TIME_STEPS,
      space: 90,
      ticks: { ...grid, show: last, size: 4 },
      values: (_, splits) => splits.map(t => (last ? tick(t, splits[1] - splits[0]) : "")),
    },
    {
      ...both,
      size: AXIS,
      space: 28,
      gap: 6,
      ticks: { show: false },
      incrs: () => [-3, -2, -1, 0, 1, 2, 3, 4, 5].flatMap(e => [1, 2, 5].map(m => m * 10 ** e * scale()[0])),
      values: (_, splits) => 
        splits.map(v => (v && !(state.reached.up + state.reached.down) ? "" : plain(Math.abs(v / scale()[0]).toFixed(3)))), // all is 0
    },
  ];
};

const cursorOf = view => ({
  y: false,
  points: { show: false },
  sync: { key: "proctor", scales: ["x", null] },
  drag: { x: true, y: false, setScale: false },
  bind: {
    dblclick: () => () => {
      view.reset();
      return null;
    },
  },
});

// Makes one chart in `host`. `view` has run, range, others, and what is to be called: zoom, cursor, reset.
const makeChart = (host, chart, view, height, last) => {
  const { run } = view,
    lines = linesOf(run, chart, view.others),
    colors = colorsOf(lines),
    state = { run, chart, lines, colors };
  const refresh = () => {
    state.range = view.range();
    state.reached = reach(run, lines, state.range);
  };
  const extent = () => {
    const r = state.reached,
      up = (r.up || (r.down ? 0 : 1)) * (r.peaks.up ? 1.16 : 1.05);
    return r.down > 0 ? [-r.down * 1.22, Math.max(up, r.down * 0.25)] : [0, up];
  };
  const scale = () => scaleOf(chart.unit, Math.max(...extent().map(Math.abs)));
  const select = u => {
    const { left, width } = u.select;
    if (width > 3) view.zoom(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  };
  refresh();
  const { data, series, bands } = dataOf(run, lines, colors);
  const u = new uPlot(
    {
      width: host.clientWidth,
      height: height + (last ? 24 : 0),
      padding: [4, view.margin(), last ? 0 : 4, 0],
      series,
      bands,
      legend: { show: false },
      cursor: cursorOf(view),
      axes: axesOf(scale, last, state),
      scales: { x: { time: false, range: () => [state.range.from, state.range.to] }, y: { range: extent } },
      hooks: {
        drawClear: [v => drawPhases(v, run, state.range)],
        draw: [v => drawMarks(v, state)],
        setCursor: [v => view.cursor(v.cursor.idx)],
        setSelect: [select],
      },
    },
    data,
    host,
  );
  return {
    u,
    lines,
    unit: () => scale()[1],
    redraw() {
      refresh();
      u.setScale("x", { min: state.range.from, max: state.range.to });
      u.redraw(false, true);
    },
  };
};
