// SPDX-License-Identifier: Apache-2.0
// What stands below the first screen: words and tables.
const MARK = { good: "✓", note: "●", warn: "▲", bad: "✕" };

const mark = severity => h("span", { class: "mark", "aria-hidden": "true" }, MARK[severity] || "●");
const marked = (severity, text) =>
  h("span", { class: "s-" + severity }, severity !== "note" && mark(severity), say(text));
const section = (id, title, ...kids) =>
  h("section", { id, "aria-labelledby": id + "-h" }, h("h2", { id: id + "-h" }, title), ...kids);
const finding = (f, view, long) => {
  const inner = [
    mark(f.severity),
    h("span", {}, say(f.text)),
    long && f.more && h("p", {}, say(f.more)),
  ];
  const where = f.range || (KNOWN(f.at) ? f.at : null);
  return h(
    "li",
    { class: "s-" + f.severity },
    where === null
      ? h("div", {}, inner)
      : h("button", { title: say(f.text), onclick: () => (f.range ? view.zoom(...f.range) : view.point(f.at)) }, inner),
  );
};

const phaseTable = (run, view) => {
  const columns = [
    {
      title: "phase",
      cell: p =>
        indent(
          h(
            "button",
            { class: "link", onclick: () => view.phase(p) },
            say(p.name, 200) + (p.count > 1 ? ` × ${p.count}` : ""),
          ),
          p.level,
        ),
    },
    { title: "begin", unit: "seconds", cell: p => (p.count > 1 ? null : p.begin) },
    { title: "time", unit: "seconds", cell: p => p.time ?? p.end - p.begin },
    ...(run.columns || []).map(c => ({
      title: say(c.title),
      unit: c.unit,
      cell: p => valueOf(run, c, { from: p.begin, to: p.end, phase: p }).v,
    })),
  ];
  return table("by phase", columns, run.phases);
};

// Processes as a tree: without recursion, and each once, whatever the parents say.
const walk = list => {
  const kids = new Map(),
    out = [],
    seen = new Set();
  list.forEach((p, i) => {
    const k = KNOWN(p.parent) && p.parent !== i && list[p.parent] ? p.parent : null;
    kids.set(k, [...(kids.get(k) || []), i]);
  });
  const below = (i, depth) => (kids.get(i) || []).map(k => [k, depth]).reverse(),
    todo = below(null, 0);
  while (todo.length) {
    const [i, depth] = todo.pop();
    if (seen.has(i)) continue;
    seen.add(i);
    out.push({ p: list[i], depth });
    todo.push(...below(i, depth + 1));
  }
  return out.concat(list.filter((_, i) => !seen.has(i)).map(p => ({ p, depth: 0 })));
};

const ORDERS = { cpu: "by CPU time", peak: "by peak memory", tree: "tree" };
const processColumns = run => [
  { title: "process", cell: ({ p, depth }) => indent(h("span", { class: "name" }, say(p.name, 200)), depth) },
  { title: "pid", cell: ({ p }) => p.pid },
  { title: "CPU time", unit: "seconds", cell: ({ p }) => p.cpu },
  { title: "peak memory", unit: "bytes", cell: ({ p }) => p.peak },
  { title: "read", unit: "bytes", cell: ({ p }) => p.read },
  { title: "written", unit: "bytes", cell: ({ p }) => p.written },
  { title: "lived", unit: "seconds", cell: ({ p }) => (KNOWN(p.begin) ? (p.end ?? run.end) - p.begin : null) },
  { title: "ended", cell: ({ p }) => p.exit ?? (KNOWN(p.end) ? null : "alive") },
  { title: "over the run", of: "spark", cell: ({ p }) => (p.spark ? spark(p.spark, "cpu") : null) },
  { title: "command", of: "command", cell: ({ p }) => h("div", { class: "long" }, say(p.command)) },
].filter(c => !c.of || run.processes.list.some(p => p[c.of]));
const processTable = run => {
  const { list, total, note } = run.processes,
    host = h("div", {});
  const top = kind =>
    list
      .map(p => ({ p, depth: 0 }))
      .sort((a, b) => (b.p[kind] ?? -1) - (a.p[kind] ?? -1))
      .slice(0, 20);
  const show = kind => {
    const rows = kind === "tree" ? walk(list) : top(kind);
    fill(
      host,
      h(
        "p",
        { class: "pick", role: "group", "aria-label": "order" },
        Object.entries(ORDERS).map(([k, words]) =>
          h("button", { "aria-pressed": String(k === kind), onclick: () => show(k) }, words),
        ),
        h("span", {}, ` ${rows.length} of ${total} processes`),
      ),
      table("processes " + ORDERS[kind], processColumns(run), rows),
      note && h("p", { class: "note" }, say(note)),
    );
  };
  show("cpu");
  return host;
};

const plainTable = (caption, t) => [
  table(
    caption,
    [
      ...t.columns.map(c => ({
        title: say(c.title),
        unit: c.unit,
        cell: row =>
          row.severity && c.key === "difference" ? marked(row.severity, row.difference) : row[c.key],
      })),
      ...(t.rows.some(r => r.spark)
        ? [{ title: "over the run", cell: r => (r.spark ? spark(r.spark, r.family || "cpu") : null) }]
        : []),
    ],
    t.rows,
  ),
  t.note && h("p", { class: "note" }, say(t.note)),
];

const tableSection = (id, title, t) => (t?.rows.length ? section(id, title, ...plainTable(title, t)) : null);

const save = (name, type, text) => {
  const a = h("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
};
const csv = run => {
  const columns = [
    ["elapsed_seconds", run.time.at],
    ["span_seconds", run.time.span],
  ];
  for (const [key, s] of Object.entries(run.series))
    for (const k of ["mean", "min", "max"]) if (s[k]) columns.push([`${key}.${k}`, s[k]]);
  const quote = t => (/[",\r\n]/.test(t) ? `"${t.replace(/"/g, '""')}"` : t);
  const lines = [columns.map(c => quote(c[0])).join(",")];
  run.time.span.forEach((_, i) => lines.push(columns.map(c => (KNOWN(c[1][i]) ? String(c[1][i]) : "")).join(",")));
  return lines.join("\n") + "\n";
};

const below = (model, run, view) => [
  tableSection("comparison", "Comparison", model.comparison),
  tableSection("nodes", "Nodes", run.nodes),
  section(
    "findings-all",
    "Findings",
    run.findings.length
      ? h(
          "ul",
          { class: "findings all" },
          run.findings.map(f => finding(f, view, true)),
        )
      : h("p", {}, "None."),
  ),
  run.phases.length ? section("phases-all", "By phase", phaseTable(run, view)) : null,
  run.processes?.list.length ? section("processes", "Processes", processTable(run)) : null,
  tableSection("matches", "By name", run.matches),
  tableSection("devices", "GPUs", run.devices),
  run.events.length
    ? section(
        "events-all",
        "Events",
        table(
          "events",
          [
            { title: "at", cell: e => h("button", { class: "link", onclick: () => view.point(e.at) }, duration(e.at)) },
            { title: "kind", cell: e => e.kind },
            { title: "what happened", cell: e => h("span", { class: "s-" + e.severity }, say(e.text)) },
          ],
          run.events,
        ),
      )
    : null,
  section(
    "measured",
    "How it was measured",
    run.measured.length
      ? h(
          "div",
          { class: "columns" },
          run.measured.map(m => h("div", {}, h("h3", {}, say(m.title)), wordRows(m.rows))),
        )
      : h("p", {}, "The record does not say."),
  ),
  run.facts.length ? section("facts", "The run", wordRows(run.facts)) : null,
  section(
    "data",
    "Data",
    h(
      "p",
      { class: "pick" },
      h(
        "button",
        { id: "save-json", onclick: () => save("report.json", "application/json", $("model").textContent) },
        "Save JSON",
      ),
      h("button", { id: "save-csv", onclick: () => save("report.csv", "text/csv", csv(run)) }, "Save CSV"),
      h(
        "span",
        {},
        ` ${run.time.span.length} points of ${run.time.samples ?? run.time.span.length} samples; the record has them all`,
      ),
    ),
  ),
];
