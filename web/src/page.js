// SPDX-License-Identifier: Apache-2.0
// The first screen, and what keeps it together: one range, one cursor.
const model = JSON.parse($("model").textContent);
const TICKS = { mark: "▾", oom: "✕", throttled: "!", signal: "↯", exit: "■", note: "·" };
const LISTS = ["findings", "tiles", "charts", "phases", "events", "measured", "facts", "late"];
const now = { run: null, range: null, charts: [], at: null, overlay: true };

const prepare = run => {
  for (const k of LISTS) run[k] = run[k] || [];
  run.time = run.time || { at: [], span: [] };
  run.series = run.series || {};
  run.run = run.run || {};
  run.end = Math.max(run.run.duration || 0, run.time.at.length ? run.time.at[run.time.at.length - 1] : 0) || 1;
  return run;
};
const narrow = () => innerWidth < 760;
const whole = () => ({ from: 0, to: now.run.end, whole: true });
const phaseAt = t =>
  now.run.phases
    .filter(p => !(p.count > 1) && p.begin <= t && t <= p.end)
    .map(p => say(p.name, 40))
    .join(" › ");

const view = {
  get run() {
    return now.run;
  },
  get others() {
    const c = model.comparison,
      base = c && model.runs[c.baseline], // a baseline that is a file has no curves
      shift = r => (c.shift ? c.shift[model.runs.indexOf(r)] || 0 : 0);
    if (!now.overlay || !base) return [];
    return (base === now.run ? model.runs.filter(r => r !== base) : [base]).map(run => ({
      run,
      name: run === base ? "baseline" : run.name,
      shift: shift(run) - shift(now.run),
      keys: c.overlay,
    }));
  },
  range: () => now.range,
  margin: () => (narrow() ? 70 : 92),
  zoom(from, to, phase) {
    [from, to] = [Math.max(0, Math.min(from, to)), Math.min(now.run.end, Math.max(from, to))];
    if (!(to - from > now.run.end * 1e-7)) return;
    now.range = from <= 0 && to >= now.run.end && !phase ? whole() : { from, to, phase };
    refresh();
  },
  phase(p) {
    view.zoom(p.begin, p.end, p);
    scrollTo(0, 0);
  },
  reset() {
    if (now.range.whole) return;
    now.range = whole();
    refresh();
  },
  point(t) {
    // bring a moment into view and set the cursor there
    if (t < now.range.from || t > now.range.to) view.reset();
    scrollTo(0, 0);
    setCursor(t);
  },
  cursor(i) {
    now.at = KNOWN(i) ? i : null;
    readout();
  },
};

// A run goes on as long as what is laid over it, with nothing in it; its points are those that have a span.
const lengthen = run => {
  now.run = run;
  const over = o => o.run.end + o.shift,
    [longest] = view.others.sort((a, b) => over(b) - over(a)),
    { end } = run;
  longest?.run.time.at.forEach(t => {
    if (t + longest.shift > end) run.time.at.push((run.end = t + longest.shift));
  });
};

const setCursor = t => now.charts.forEach(c => c.u.setCursor({ left: c.u.valToPos(t, "x"), top: 1 }, true));
const step = n => {
  const at = now.run.time.at,
    [first, last] = within(at, now.range.from, now.range.to);
  if (last <= first) return;
  const i = now.at === null ? (n > 0 ? first : last - 1) : Math.max(first, Math.min(last - 1, now.at + n));
  setCursor(at[i]);
  view.cursor(i);
  $("said").textContent = [$("at"), ...now.charts.map(c => c.host)].map(e => e.innerText).join("; "); // for those who hear it
};

const header = () => {
  const { run, verdict } = now.run,
    v = verdict || { text: "", severity: "note" };
  document.title = say(model.title || run.command || "proctor");
  fill(
    $("verdict"),
    h("h1", { title: say(run.command, 2000) }, say(run.command || "a run", 300)),
    h("strong", { class: "s-" + v.severity }, mark(v.severity), say(v.text)),
    KNOWN(run.duration) && h("span", {}, duration(run.duration)),
    run.host && h("span", {}, say(run.host)),
    KNOWN(run.began) && h("span", {}, wall(run.began, true)),
  );
  fill(
    $("findings"),
    now.run.findings.length
      ? now.run.findings.slice(0, 3).map(f => finding(f, view))
      : h("li", {}, h("div", {}, "No findings.")),
  );
};

// The large figures of a tile: "61.2 / 64 GiB", or two of which the unit is said once where it is the same.
const large = (got, limit) => {
  const [first] = got,
    unit = g => scaleOf(g.unit, g.v)[1];
  if (got.length > 1)
    return got.flatMap((g, i) => [
      i ? h("small", {}, ", ") : "",
      KNOWN(g.v) ? number(g.v, g.unit) : ABSENT,
      h("small", {}, (i && unit(g) === unit(first) ? " " : ` ${unit(g)} `) + say(g.label, 12)),
    ]);
  if (first.unit === "seconds") return [human(first.v, first.unit)];
  const size = Math.max(first.v, limit ? limit.value : 0),
    [by, name] = scaleOf(first.unit, size);
  const of = limit ? " / " + plain(significant(limit.value / by)) : "";
  const own = of && by > 1 && first.v < by; // far from its limit it has a unit of its own
  return [
    number(first.v, first.unit, own ? first.v : size),
    ...(own ? [h("small", {}, " " + unit(first))] : []),
    of,
    h("small", {}, " " + name),
  ];
};

const bar = (share, t) => {
  const inner = h("i", { class: "f-" + t.family });
  inner.style.width = Math.min(100, share * 100) + "%";
  return h("div", { class: "bar" + (share >= 0.9 ? " near" : ""), title: say(t.limit.text) }, inner);
};

const tileOf = t => {
  const { run, range } = now,
    got = (t.values || []).map(v => ({ ...v, ...valueOf(run, v, range) })),
    [first] = got;
  const title = h("h2", { class: "f-" + t.family }, say(t.title)),
    id = "tile-" + t.id;
  if (t.absent || !got.some(g => KNOWN(g.v)))
    return h(
      "div",
      { class: "tile absent", id },
      title,
      h("p", { class: "big" }, ABSENT),
      h("p", { class: "small" }, say(t.absent || "not known here")),
    );
  const share = t.limit && KNOWN(first.v) ? first.v / t.limit.value : null,
    figure = large(got, t.limit);
  const words = got.length > 1 ? [] : [first.label, first.of].filter(Boolean).map(w => say(w, 40));
  if (share !== null) words.push(`${number(share, "ratio")} %`);
  for (const v of t.also || []) {
    const found = valueOf(run, v, range).v;
    if (KNOWN(found)) words.push(`${say(v.label, 40)} ${human(found, v.unit)}`);
  }
  return h(
    "div",
    { class: "tile", id },
    title,
    h("p", { class: figure.length > 3 ? "big two" : "big" }, figure),
    h("p", { class: "small" }, words.join(", ")),
    share !== null && bar(share, t),
    (t.spark || [])
      .slice(0, 1)
      .map(k => spark(shape(run, k, 80), t.family, [range.from / run.end, range.to / run.end])),
  );
};
const tiles = () => fill($("tiles"), now.run.tiles.slice(0, 6).map(tileOf));

// The strip of phases and events: its height is the same at any range.
const phaseButton = (p, odd) =>
  h(
    "button",
    {
      class: `phase l${p.level}${odd ? "" : " even"}`,
      "aria-pressed": String(p === now.range.phase),
      title: `${say(p.name, 200)}, ${duration(p.time ?? p.end - p.begin)}`,
      onclick: () => (p === now.range.phase ? view.reset() : view.phase(p)),
    },
    say(p.name, 100),
  );
const eventButton = (e, named, left) =>
  h(
    "button",
    {
      class: `event s-${e.severity}${left ? " left" : ""}`,
      title: `${say(e.text, 400)}, at ${duration(e.at)}`,
      "aria-label": `${e.kind}: ${say(e.text, 400)}`,
      onclick: () => view.point(e.at),
    },
    h("b", { "aria-hidden": "true" }, TICKS[e.kind] || "▾"),
    named && h("span", {}, say(e.text, 40)),
  );

const strip = () => {
  const { from, to, phase } = now.range,
    wide = to - from,
    share = t => Math.min(1, Math.max(0, (t - from) / wide)),
    host = $("strip");
  const place = (e, a, b) => {
    e.style.left = share(a) * 100 + "%";
    if (b !== undefined) e.style.width = (share(b) - share(a)) * 100 + "%";
    return e;
  };
  const drawn = now.run.phases.filter(p => !(p.count > 1)),
    outer = drawn.filter(p => p.level === 0);
  const shown = drawn.filter(p => p.level < 2 && p.end > from && p.begin < to && (p.end - p.begin) / wide > 5e-4);
  const events = now.run.events.filter(e => e.at >= from && e.at <= to);
  const x = e => share(e.at) * host.clientWidth,
    extent = e => 20 + 6.5 * Math.min(40, e.text.length),
    left = e => share(e.at) > 0.85,
    reach = e => (left(e) ? [x(e) - extent(e), x(e)] : [x(e), x(e) + extent(e)]);
  // A name stands where it covers no other, and no tick either unless it is of trouble: that goes first.
  const trouble = e => /bad|warn/.test(e.severity),
    named = [];
  for (const e of [...events].sort((a, b) => trouble(b) - trouble(a))) {
    const [a, b] = reach(e),
      apart = (c, d) => d < a - 8 || c > b;
    if (named.every(o => apart(...reach(o))) && (trouble(e) || events.every(o => o === e || apart(x(o), x(o)))))
      named.push(e);
  }
  host.parentNode.hidden = !drawn.length && !now.run.events.length;
  host.className = `rows-${drawn.length ? (drawn.some(p => p.level) ? 2 : 1) : 0}${now.run.events.length ? " ticks" : ""}`;
  fill(
    host,
    shown.map(p => place(phaseButton(p, outer.indexOf(p) % 2 === 1), p.begin, p.end)),
    events
      .slice(0, 200)
      .map(e => place(eventButton(e, named.includes(e), left(e)), e.at)),
  );
  fill(
    $("range"),
    now.range.whole
      ? "whole run"
      : [
          h("b", {}, phase ? say(phase.name, 60) : "part of the run"),
          ` ${duration(from)} to ${duration(to)}, ${duration(wide)} `,
          h("button", { onclick: view.reset }, "Show whole run"),
        ],
  );
};

const readout = () => {
  const i = now.at,
    t = now.run.time.at[i],
    known = i !== null && KNOWN(t);
  fill(
    $("at"),
    known
      ? [
          h("b", {}, duration(t)),
          KNOWN(now.run.run.began) ? ` · ${wall(now.run.run.began + t)}` : "",
          phaseAt(t) ? " · " + phaseAt(t) : "",
        ]
      : "drag to zoom, ? for keys",
  );
  const figure = l => {
    // the mean, and the most where it was more
    const v = l.mean[i],
      most = l.max && l.role !== "share" ? l.max[i] : v;
    return KNOWN(v) && most > v * 1.05 ? `${number(v, l.s.unit, most)} ▴${human(most, l.s.unit)}` : human(v, l.s.unit);
  };
  for (const c of now.charts)
    fill(
      c.values,
      known
        ? c.lines
            .filter(l => l.label)
            .slice(0, 8)
            .map(l => h("li", { class: "f-" + l.family }, say(l.label, 12) + " ", h("b", {}, figure(l))))
        : [],
    );
};

// All that is placed by the width of the window.
const charts = () => {
  strip();
  now.charts.forEach(c => c.u.destroy());
  now.charts = [];
  const drawable = c => !c.absent && linesOf(now.run, c).length > 0;
  const put = (host, list, height) => {
    const last = list.filter(drawable).pop();
    fill(
      host,
      list.map(chart => {
        const plot = h("div", { class: "plot" }),
          values = h("ul", { class: "values", "aria-hidden": "true" }),
          unit = h("span", { class: "unit" });
        const family = drawable(chart) ? linesOf(now.run, chart)[0].family : "other";
        const row = h(
          "figure",
          {
            id: "chart-" + chart.id,
            class: "chart" + (drawable(chart) ? "" : " none"),
            tabindex: "0",
            role: "img",
            "aria-label": say(`${chart.title}. ${drawable(chart) ? chart.text || "" : chart.absent || "none"}`),
          },
          h(
            "figcaption",
            { title: say(chart.note || "") },
            h("b", { class: "f-" + family }, say(chart.title)),
            " ",
            unit,
            values,
          ),
          plot,
        );
        if (!drawable(chart)) plot.append(h("p", {}, say(chart.absent || "none")));
        return Object.assign(row, {
          made: () => {
            if (!drawable(chart)) return;
            const c = makeChart(plot, chart, view, height, chart === last);
            now.charts.push(Object.assign(c, { chart, values, unitHost: unit, host: row.firstChild }));
            unit.textContent = c.unit();
          },
        });
      }),
    );
    for (const row of host.children) row.made();
  };
  const first = now.run.charts.filter(c => (c.place || "first") === "first").slice(0, 4),
    n = Math.max(1, first.filter(drawable).length);
  const free = innerHeight - ($("charts").getBoundingClientRect().top + scrollY) - 30 - (first.length - n) * 30;
  put($("charts"), first, Math.round(Math.max(118, Math.min(240, free / n))));
  put(
    $("more"),
    now.run.charts.filter(c => c.place === "below"),
    180,
  );
};

const refresh = () => {
  tiles();
  strip();
  now.charts.forEach(c => {
    c.redraw();
    c.unitHost.textContent = c.unit();
  });
};
const show = run => {
  Object.assign(now, { run, at: null });
  now.range = whole();
  header();
  tiles();
  charts();
  fill($("below"), below(model, run, view));
};
const setTheme = (theme, keep) => {
  root.dataset.theme = theme;
  if (keep)
    try {
      localStorage.setItem("proctor-theme", theme);
    } catch {
      /* then it lasts as long as the page */
    }
  charts();
};
const toggleTheme = () => setTheme(root.dataset.theme === "dark" ? "light" : "dark", true);
const help = () => ($("keys").open ? $("keys").close() : $("keys").showModal());

const KEYS = {
  ArrowLeft: e => step(e.shiftKey ? -10 : -1),
  ArrowRight: e => step(e.shiftKey ? 10 : 1),
  Home: () => step(-1e9),
  End: () => step(1e9),
  Escape: () => view.reset(),
  0: () => view.reset(),
  "?": help,
  t: toggleTheme,
  "+": () => scaleBy(0.5),
  "-": () => scaleBy(2),
};
const scaleBy = k => {
  const { from, to } = now.range,
    at = now.run.time.at[now.at],
    mid = KNOWN(at) ? at : (from + to) / 2;
  view.zoom(Math.max(0, mid - (mid - from) * k), Math.min(now.run.end, mid + (to - mid) * k));
};

const chooser = () => {
  const pick = h(
    "select",
    { "aria-label": "run", onchange: e => show(model.runs[e.target.value]) },
    model.runs.map((r, i) =>
      h("option", { value: i, selected: r === now.run }, say(r.name || r.id || "run " + (i + 1), 60)),
    ),
  );
  const compare = e => {
    now.overlay = e.target.checked;
    charts();
  };
  fill(
    $("runs"),
    pick,
    KNOWN(model.comparison?.baseline) &&
      h("label", {}, h("input", { type: "checkbox", id: "overlay", checked: true, onchange: compare }), " compare"),
  );
};

const press = e => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(SELECT|INPUT)$/.test(e.target.tagName)) return;
  if ($("keys").open && e.key !== "?") return;
  if (e.target.closest(".scroll") && /^(Arrow|Home|End)/.test(e.key)) return; // it scrolls
  const act = KEYS[e.key];
  if (!act) return;
  e.preventDefault();
  act(e);
};

// Charts follow the window, a moment later; on paper they are light and fit its width.
const follow = () => {
  let wide = innerWidth,
    high = innerHeight,
    wait = 0,
    before = null;
  const resized = () => {
    if (innerWidth === wide && (innerHeight === high || narrow())) return;
    wide = innerWidth;
    high = innerHeight;
    charts();
  };
  const paper = (width, theme) => {
    document.body.style.width = width;
    setTheme(theme);
  };
  addEventListener("resize", () => {
    clearTimeout(wait);
    wait = setTimeout(resized, 100);
  });
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    paper("1040px", "light");
  });
  addEventListener("afterprint", () => paper("", before));
};

model.runs.forEach(prepare);
model.runs.forEach(lengthen);
$("theme").onclick = toggleTheme;
$("help").onclick = help;
// Of a comparison the first run beside the baseline.
show(model.runs.find((_, i) => i !== model.comparison?.baseline) || model.runs[0]);
if (model.runs.length > 1) chooser();
addEventListener("keydown", press);
follow();
