// SPDX-License-Identifier: Apache-2.0
// Elements. Text only ever becomes a text node or an attribute, whatever it says.
const h = (tag, attributes, ...kids) => {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if ((v ?? false) === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...some(kids));
  return e;
};
const indent = (e, depth) => {
  e.style.paddingLeft = Math.min(depth, 12) * 14 + "px";
  return e;
};
const $ = id => document.getElementById(id);
const root = document.documentElement;
const some = kids => kids.flat().filter(k => (k ?? false) !== false);
const fill = (e, ...kids) => e.replaceChildren(...some(kids));

// The shape of a list of numbers; `part` is a range that is shown on it, as shares of the width.
const spark = (values, family, part) => {
  const w = 100,
    t = 28;
  const make = (tag, attributes) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    return e;
  };
  const svg = make("svg", {
    viewBox: `0 0 ${w} ${t}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
    class: "spark f-" + family,
  });
  const add = (tag, attributes) => svg.append(make(tag, attributes));
  const top = Math.max(...values.filter(KNOWN), 0) || 1,
    x = i => (values.length > 1 ? (i * w) / (values.length - 1) : w / 2);
  const y = v => t - 1 - (Math.max(0, v) / top) * (t - 3);
  if (part && part[1] - part[0] < 0.999)
    add("rect", { x: part[0] * w, width: Math.max(1, (part[1] - part[0]) * w), y: 0, height: t, class: "part" });
  let path = "",
    area = "";
  values.forEach((v, i) => {
    if (!KNOWN(v)) return;
    const p = `${x(i).toFixed(1)} ${y(v).toFixed(1)}`,
      first = !KNOWN(values[i - 1]),
      last = !KNOWN(values[i + 1]);
    path += (first ? "M" : "L") + p + (first && last ? "h1.5" : "");
    area += (first ? `M${x(i).toFixed(1)} ${t}L` : "L") + p + (last ? `V${t}Z` : "");
  });
  add("path", { d: area, class: "area" });
  add("path", { d: path, class: "stroke", "vector-effect": "non-scaling-stroke" });
  return svg;
};

// The largest value in each of n equal parts of the run: peaks survive. A value stands for its span: that may be several.
const shape = (run, key, n) => {
  const s = run.series[key],
    most = s ? s.max || s.mean : [],
    { at, span } = run.time,
    part = run.end / n;
  if (most.length < n) return most;
  return [...Array(n)].map((_, j) =>
    Math.max(...most.filter((v, i) => KNOWN(v) && at[i] >= j * part && at[i] - span[i] < j * part + part)),
  );
};

// columns: { title, unit | null, cell(row) -> node, text or number, of: what a header says more }
const table = (caption, columns, rows) =>
  h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "unseen" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map(c => h("th", { scope: "col", class: c.unit ? "n" : null }, c.title)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(row =>
          h(
            "tr",
            {},
            columns.map((c, i) => {
              const v = c.cell(row),
                node = c.unit
                  ? human(v, c.unit)
                  : v instanceof Node
                    ? v
                    : say(v ?? ABSENT);
              return h(i ? "td" : "th", { class: c.unit ? "n" : null, scope: i ? null : "row" }, node);
            }),
          ),
        ),
      ),
    ),
  );
const wordRows = rows =>
  h(
    "dl",
    {},
    rows.flatMap(([what, words]) => [h("dt", {}, say(what, 200)), h("dd", {}, say(words))]),
  );
