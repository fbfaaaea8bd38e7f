// SPDX-License-Identifier: Apache-2.0
// What the page does.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { after, afterEach, test } from "node:test";
import { close, coloured, drag, leave, modelOf, numbers, open, plot, shade, TEMPLATE, tile, write } from "./browser.mjs";
import { check } from "./contract.mjs";
import { example, HOSTILE, makeRun, model, MODELS, written } from "./models.mjs";

afterEach(leave);
after(close);
const GiB = 2 ** 30;
const quiet = page => assert.deepEqual(page.trouble, []);

for (const name of Object.keys(MODELS)) {
  test(`${name}: opens in less than two seconds, below 1 MB, and asks for nothing`, async () => {
    const page = await open(name),
      began = Date.now();
    await page.reload();
    await page.waitForFunction(() => document.querySelector("#below").children.length > 0);
    const took = Date.now() - began;
    console.log(`${name}: ${took} ms, ${statSync(page.path).size} bytes`);
    quiet(page);
    assert.ok(took < 2000, `${took} ms`);
    assert.ok(statSync(page.path).size < 1e6);
  });
  test(`${name}: nothing is wider than the window`, async () => {
    const page = await open(name);
    for (const width of [1440, 1024, 390]) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(200); // charts follow the window a moment later
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `at ${width}`);
    }
    quiet(page);
  });
}

test("models keep to doc/report-model.md, and what does not is found", async () => {
  for (const name of Object.keys(MODELS)) assert.deepEqual(check(modelOf(name)), [], name);
  const spoil = [
    r => r.time.at.reverse(),
    r => {
      r.series["mem.pss"].mean.pop();
    },
    r => {
      r.tiles[0].values[0].series = ["no.such"];
    },
    r => {
      r.verdict.severity = "awful";
    },
    r => {
      r.phases[1].end = 0;
    },
    r => {
      r.series["cpu.usage"].max[5] = 0;
    },
    r => {
      r.processes.list[1].parent = 99;
    },
  ];
  for (const how of spoil) {
    const model = modelOf("training");
    how(model.runs[0]);
    assert.notEqual(check(model).length, 0, String(how));
  }
});

test("the example is a model, and opens", async () => {
  const text = await readFile(new URL("../../web/example.json", import.meta.url), "utf8");
  assert.equal(text, written(example()), "write it again: node tests/browser/example.mjs > web/example.json");
  assert.deepEqual(check(JSON.parse(text)), []);
  quiet(await open(JSON.parse(text), { name: "example" }));
});

test("whatever part is absent, the rest is shown", async () => {
  const keys = Object.keys(modelOf("training").runs[0]).filter(k => k !== "id");
  const page = await open("example");
  for (const empty of [undefined, null])
    for (const key of keys) {
      const model = modelOf("example");
      model.runs[0][key] = empty;
      write("example", model);
      await page.reload();
      await page.waitForFunction(() => document.querySelector("#below").children.length > 0, null, { timeout: 3000 });
      assert.deepEqual(page.trouble, [], `without ${key}`);
    }
});

test("the first screen has everything, in its order, at 1440 x 900", async () => {
  const page = await open("training"),
    boxes = [];
  for (const id of [
    "#verdict",
    "#findings",
    "#tiles",
    "#strip",
    "#chart-cpu",
    "#chart-memory",
    "#chart-gpu",
    "#chart-io",
  ])
    boxes.push(await page.locator(id).boundingBox());
  boxes.reduce((a, b) => {
    assert.ok(b.y >= a.y + a.height - 1);
    return b;
  });
  assert.ok(boxes.at(-1).y + boxes.at(-1).height <= 900);
  assert.equal(await page.locator(".tile").count(), 6);
  assert.equal(await page.locator("#findings li").count(), 3);
  assert.match(
    await page.locator("#verdict").innerText(),
    /train\.py --cfg big\.yaml[^]*finished, exit 0[^]*1 h 12 m 04 s[^]*node17, 64 cores, 2 x H200[^]*2026-09-20 14:02 UTC/,
  );
  const lefts = await page.evaluate(() =>
    [...document.querySelectorAll(".u-over")].map(e => e.getBoundingClientRect()).map(r => [r.left, r.right].join()),
  );
  assert.equal(new Set(lefts).size, 1, "one x-axis");
});

test("no more than three findings are on the first screen, all are below", async () => {
  const model = modelOf("training");
  model.runs[0].findings.push({ id: "x", severity: "note", text: "A fourth.", at: null, range: null, more: null });
  const page = await open(model, { name: "four" });
  assert.equal(await page.locator("#findings li").count(), 3);
  assert.equal(await page.locator("#findings-all li").count(), 4);
});

// The figures of a range, anew: from the model's lists alone. A bucket is in it when its time is.
const part = (run, key, from, to) =>
  run.time.at
    .map((at, i) => ({
      at,
      span: run.time.span[i],
      mean: run.series[key].mean[i],
      max: (run.series[key].max || run.series[key].mean)[i],
    }))
    .filter(b => b.at > from && b.at <= to && b.mean !== null);
const total = list => list.reduce((sum, b) => sum + b.mean * b.span, 0);
const mean = list => total(list) / list.reduce((sum, b) => sum + b.span, 0);
const most = list => list.reduce((m, b) => Math.max(m, b.max), 0);
const near = (got, want, what) =>
  assert.ok(Math.abs(got - want) <= Math.abs(want) * 0.006 + 1e-9, `${what}: ${got}, not ${want}`);
const checkTiles = async (page, run, from, to) => {
  const of = key => part(run, key, from, to),
    text = async (id, css = ".big") => numbers(await tile(page, id).locator(css).innerText());
  near((await text("cpu"))[0], mean(of("cpu.usage")), "CPU");
  near((await text("cpu", ".small")).at(-1), most(of("cpu.usage")), "CPU peak");
  near((await text("memory"))[0], most(of("mem.pss")) / GiB, "memory");
  near((await text("gpu"))[0], (mean(of("gpu.0.util")) + mean(of("gpu.1.util"))) * 50, "GPU");
  near(
    (await text("gpu-memory"))[0],
    Math.max(most(of("gpu.0.mem.used")), most(of("gpu.1.mem.used"))) / GiB,
    "GPU memory",
  );
  near((await text("disk"))[0], total(of("io.read.rate")) / GiB, "read");
  near((await text("energy"))[0], total(of("power")) / 3600, "energy");
};

test("dragging zooms all charts, the tiles are of that range, a double click resets", async () => {
  const page = await open("training"),
    run = modelOf("training").runs[0],
    before = await tile(page, "cpu").innerText();
  await drag(page, "memory", 0.1, 0.5);
  const shown = (await page.locator("#range").innerText())
    .match(/(\d+) m (\d+) s to (\d+) m (\d+) s/)
    .slice(1)
    .map(Number);
  near(shown[0] * 60 + shown[1], 432, "from");
  near(shown[2] * 60 + shown[3], 2162, "to");
  assert.notEqual(await tile(page, "cpu").innerText(), before);
  await checkTiles(page, run, 432.4, 2162);
  const b = await plot(page, "io");
  await page.mouse.dblclick(b.x + 50, b.y + 30);
  assert.equal(await page.locator("#range").innerText(), "whole run");
  assert.equal(await tile(page, "cpu").innerText(), before);
  quiet(page);
});

test("a click on a phase shows it alone, another the whole run", async () => {
  const page = await open("training"),
    run = modelOf("training").runs[0];
  for (const [name, from, to] of [
    ["eval", 2400, 3900],
    ["epoch 2", 1000, 1700],
  ]) {
    await page.locator(".phase", { hasText: name }).click();
    assert.match(await page.locator("#range").innerText(), new RegExp("^" + name));
    assert.equal(await page.locator(".phase[aria-pressed=true]").innerText(), name);
    await checkTiles(page, run, from, to);
    await page.locator(".phase", { hasText: name }).click();
    assert.equal(await page.locator("#range").innerText(), "whole run");
  }
  quiet(page);
});

test("exact figures of a run and of a phase are taken before those of the series", async () => {
  const model = modelOf("training"),
    run = model.runs[0];
  run.series["mem.pss"].stats.max = 62.5 * GiB; // a mark of the kernel that no sample has reached
  run.phases[0].stats = { "mem.pss": { max: 33 * GiB, at: 100, mean: null, min: null, total: null } };
  const page = await open(model, { name: "exact" }),
    memory = async () => numbers(await tile(page, "memory").locator(".big").innerText())[0];
  assert.equal(await memory(), 62.5);
  await page.locator(".phase", { hasText: "load" }).click();
  assert.equal(await memory(), 33);
  assert.match(await page.locator("#phases-all tbody tr").first().innerText(), /33\.0 GiB/);
});

test("names of two troubles at the same time do not stand on one another", async () => {
  const model = modelOf("training"),
    [run] = model.runs,
    at = run.run.duration;
  run.events = [
    { at, kind: "oom", severity: "bad", text: "memory ran out in the group" },
    { at, kind: "signal", severity: "bad", text: "killed by SIGKILL" },
  ];
  const page = await open(model, { name: "troubles" });
  assert.equal(await page.locator(".event").count(), 2);
  assert.deepEqual(await page.locator(".event span").allInnerTexts(), ["memory ran out in the group"]);
});

test("the figures of a tile stand whole beside a limit of another size", async () => {
  const model = modelOf("training"),
    [run] = model.runs,
    big = { value: 23.5 * GiB, text: "machine 23.5 GiB" };
  run.series["mem.pss"].stats.max = 1.05 * 2 ** 20;
  run.tiles.find(t => t.id === "memory").limit = big;
  const page = await open(model, { name: "sizes" }),
    of = await tile(page, "memory").locator(".big").evaluate(e => [e.innerText, e.scrollWidth - e.clientWidth]);
  assert.match(of[0], /1\.05 MiB \/ 23\.5 GiB/);
  assert.equal(of[1], 0);
});

test("a sample belongs to one phase: to that which it ends", async () => {
  const run = makeRun({
    id: "ten",
    n: 10,
    step: 1,
    curves: { "io.read.rate": { label: "read", family: "disk", of: i => 2 ** i } },
    tiles: [
      {
        id: "disk",
        title: "Disk",
        family: "disk",
        values: [{ series: ["io.read.rate"], stat: "total", label: "read", unit: "bytes" }],
      },
    ],
    phases: [
      ["a", 0, 4],
      ["b", 4, 10],
    ].map(([name, begin, end]) => ({ name, begin, end, level: 0, parent: null, stats: {} })),
  });
  const page = await open(model(run), { name: "ten" }),
    read = async () => numbers(await tile(page, "disk").locator(".big").innerText())[0];
  assert.equal(await read(), 1023);
  await page.locator(".phase", { hasText: "a" }).click();
  assert.equal(await read(), 15);
  await page.keyboard.press("Escape");
  await page.locator(".phase", { hasText: "b" }).click();
  assert.equal(await read(), 1008);
  quiet(page);
});

test("the table by phase has the figures of the tiles", async () => {
  const page = await open("training"),
    run = modelOf("training").runs[0];
  const cells = await page.locator("#phases-all tbody tr").nth(5).locator("td").allInnerTexts();
  assert.equal(cells[1], "25 m 00 s");
  near(numbers(cells[2])[0], mean(part(run, "cpu.usage", 2400, 3900)), "CPU");
  near(numbers(cells[3])[0], most(part(run, "mem.pss", 2400, 3900)) / GiB, "memory");
  near(numbers(cells[4])[0], total(part(run, "io.read.rate", 2400, 3900)) / GiB, "read");
});

test("a cursor reads all charts, with wall time and phase", async () => {
  const page = await open("training"),
    b = await plot(page, "cpu");
  await page.mouse.move(b.x + (b.width * 2468) / 4324, b.y + 20);
  assert.match(await page.locator("#at").innerText(), /^41 m 0\d s · 14:43:0\d UTC · eval$/);
  assert.match(await page.locator("#chart-memory .values").innerText(), /job \d\d\.\d ▴61\.2 GiB/);
  assert.equal(await page.locator("#chart-gpu .values li").count(), 4);
  await page.mouse.move(b.x + (b.width * 1515) / 4324, b.y + 20);
  assert.match(await page.locator("#chart-memory .values").innerText(), /job –/, "a gap has no figure");
});

test("keys: cursor, zoom, whole run, help, theme", async () => {
  const page = await open("training"),
    at = () => page.locator("#at").innerText();
  await page.keyboard.press("ArrowRight");
  const first = await at();
  assert.match(first, /^\d/);
  await page.keyboard.press("ArrowRight");
  const second = await at();
  assert.notEqual(second, first);
  assert.match(
    await page.locator("#said").textContent(),
    /^\d[^;]*; CPU cores[^]*job \d[^;]*; Memory GiB[^]*job \d/,
    "and is said",
  );
  await page.keyboard.press("ArrowLeft");
  assert.equal(await at(), first);
  await page.keyboard.press("End");
  assert.match(await at(), /^1 h 12 m 0\d s/);
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+ArrowRight");
  assert.match(await at(), /^\d+\.\d s/);
  await page.keyboard.press("+");
  assert.match(await page.locator("#range").innerText(), /^part of the run/);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#range").innerText(), "whole run");
  await page.keyboard.press("+");
  await page.keyboard.press("0");
  assert.equal(await page.locator("#range").innerText(), "whole run");
  await page.keyboard.press("?");
  assert.ok(await page.locator("#keys").isVisible());
  await page.keyboard.press("Escape");
  assert.ok(!(await page.locator("#keys").isVisible()));
  await page.keyboard.press("t");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  quiet(page);
});

test("the keyboard reaches everything, from top to bottom", async () => {
  const page = await open("training"),
    seen = [];
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    seen.push(
      await page.evaluate(() => {
        const e = document.activeElement;
        return e.id || e.closest("[id]")?.id || "";
      }),
    );
  }
  const order = [
    "theme",
    "help",
    "findings",
    "strip",
    "chart-cpu",
    "chart-memory",
    "chart-gpu",
    "chart-io",
    "findings-all",
    "phases-all",
    "processes",
    "save-json",
  ];
  const places = order.map(id => seen.indexOf(id));
  assert.ok(
    places.every(p => p >= 0),
    `${order} in ${seen}`,
  );
  assert.deepEqual(
    places,
    [...places].sort((a, b) => a - b),
  );
  await page.locator(".phase", { hasText: "eval" }).focus();
  await page.keyboard.press("Enter");
  assert.match(await page.locator("#range").innerText(), /^eval/);
});

test("a finding leads to where it is", async () => {
  const page = await open("training");
  await page.locator("#findings button").first().click();
  assert.match(await page.locator("#at").innerText(), /^41 m 0\d s/);
  await page.locator("#findings button").nth(1).click();
  assert.match(await page.locator("#range").innerText(), /40 m 00 s to 1 h 05 m 00 s/);
});

test("text from a job stays text", async () => {
  for (const theme of ["light", "dark"]) {
    const page = await open("hostile", { theme });
    await page.locator(".phase").first().click();
    for (const words of ["tree", "by peak memory"])
      await page.getByRole("button", { name: words, exact: true }).click();
    quiet(page);
    const found = await page.evaluate(() => ({
      hacked: window.hacked,
      images: document.images.length,
      scripts: document.scripts.length,
      text: document.body.innerText,
      heading: document.querySelector("h1").textContent,
      title: document.title,
    }));
    assert.equal(found.hacked, undefined);
    assert.equal(found.images, 0);
    assert.equal(found.scripts, 3);
    assert.ok(found.heading.startsWith("<script>window.hacked=1</script> </script><script>"));
    assert.equal(found.title, HOSTILE[1]);
    assert.ok(found.text.includes("␛[31mred␛[0m␇"), "escapes are seen, not obeyed");
    assert.ok(!/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]/.test(found.text));
  }
});

test("the page allows nothing but itself", async () => {
  assert.match(
    TEMPLATE,
    /<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-[^ ]+' 'sha256-[^ ]+'; style-src 'sha256-[^ ]+'; base-uri 'none'; form-action 'none'">/,
  );
  assert.ok(TEMPLATE.indexOf("Content-Security-Policy") < TEMPLATE.indexOf("<script>"));
  const page = await open("short");
  await page.evaluate(() => {
    const s = document.createElement("script");
    s.textContent = "window.hacked = 1";
    document.body.append(s);
  });
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(
    await page.evaluate(() =>
      fetch("https://example.invalid/").then(
        () => "got it",
        () => "refused",
      ),
    ),
    "refused",
  );
  assert.ok(
    page.trouble.every(t => !t.startsWith("request")),
    "not even tried",
  );
});

test("one sample of 2,592,000 is seen", async () => {
  const page = await open("month"),
    run = modelOf("month").runs[0],
    x = 1234567 / run.run.duration;
  assert.equal(run.time.samples, 2592000);
  assert.ok(run.time.at.length <= 2000);
  for (const chart of ["cpu", "memory"]) {
    assert.ok((await coloured(page, chart, [x - 0.002, x + 0.002], [0.3, 0.5])) > 5, chart);
    assert.equal(await coloured(page, chart, [x + 0.1, x + 0.3], [0.3, 0.5]), 0);
  }
  assert.equal(await tile(page, "cpu").locator(".small").innerText(), "mean, 6.25 %, peak 30.0 cores");
});

test("gaps are gaps", async () => {
  const page = await open("training"),
    gap = [1506 / 4324, 1524 / 4324];
  for (const chart of ["cpu", "io"]) {
    assert.equal(await coloured(page, chart, gap, [0.4, 0.95]), 0, chart);
    assert.ok((await coloured(page, chart, [1400 / 4324, 1490 / 4324], [0.05, 0.95])) > 0, chart);
  }
});

test("a pale band goes from least to most", async () => {
  const page = await open("training");
  await page.locator(".phase", { hasText: "eval" }).click();
  assert.ok((await coloured(page, "io", [0.1, 0.9], [0, 0.5], "#d4d0e4", 8)) > 2000, "a fifth of the network's violet");
  assert.ok((await coloured(page, "io", [0.1, 0.9], [0, 0.5], "#6a51a3", 20)) > 500, "the mean in full");
});

test("a limit is drawn where it matters, and only there", async () => {
  const page = await open("training"),
    month = await open("month");
  assert.ok((await coloured(page, "memory", [0, 1], [0, 0.3], "#d55e00")) > 200);
  assert.ok((await coloured(page, "cpu", [0, 1], [0, 0.4], "#d55e00")) > 200);
  assert.equal(await coloured(month, "cpu", [0, 1], [0, 1], "#d55e00"), 0, "no limit was given");
  await page.locator(".phase", { hasText: "save" }).click();
  assert.equal(await coloured(page, "cpu", [0, 1], [0, 1], "#d55e00"), 0, "1.5 of 16");
});

test("a comparison: the run beside the baseline comes first, with the baseline over it in grey", async () => {
  const page = await open("pair"),
    context = await shade(page, "context"),
    grey = (where = page, [from, to] = [0.6, 0.85]) => coloured(where, "memory", [from, to], [0, 1], context);
  assert.match(
    await page.locator("#comparison table").innerText(),
    /memory peak\s+61\.2 GiB\s+42\.8 GiB\s+✓\s*−30 %, less/,
  );
  assert.equal(await page.locator("#comparison .s-good").count(), 1);
  assert.match(await page.locator("h1").innerText(), /batch 32/);
  assert.equal(await page.locator("#runs select").inputValue(), "1");
  assert.equal(numbers(await tile(page, "memory").locator(".big").innerText())[0], 42.8);
  const both = await grey();
  await page.uncheck("#overlay");
  const alone = await grey();
  assert.ok(both > alone + 100, "the baseline, grey");
  await page.check("#overlay");
  assert.equal(await grey(), both);
  await page.selectOption("#runs select", "0");
  assert.match(await page.locator("h1").innerText(), /batch 64/);
  assert.ok((await grey()) > alone + 100, "the others, grey, over the baseline");
  quiet(page);
  const model = modelOf("pair"),
    half = model.runs[1].run.duration / 2;
  model.comparison.shift = [0, half];
  const moved = await open(model, { name: "moved" });
  assert.ok((await grey(moved, [0.1, 0.4])) > 100, "as long as the baseline went on");
  quiet(moved);
  await moved.reload(); // to read a canvas twice is worth a warning
  assert.ok((await grey(moved)) <= alone, "behind its end it is not drawn");
  quiet(moved);
});

test("a run that ended sooner than its baseline: the baseline goes on", async () => {
  const model = modelOf("pair"),
    [, run] = model.runs,
    points = Math.floor(run.time.at.length / 2);
  for (const list of [run.time.at, run.time.span]) list.length = points;
  for (const s of Object.values(run.series)) for (const k of ["mean", "min", "max"]) if (s[k]) s[k].length = points;
  run.run.duration = run.time.at[points - 1];
  run.series["mem.pss"].stats.at = 100;
  run.phases = [];
  assert.deepEqual(check(model), []);
  const page = await open(model, { name: "sooner" });
  assert.match(await page.locator("h1").innerText(), /batch 32/);
  const drawn = async name => coloured(page, "memory", [0.6, 0.85], [0, 1], await shade(page, name));
  assert.ok((await drawn("context")) > 100, "the baseline alone");
  quiet(page);
  await page.reload();
  assert.equal(await drawn("memory"), 0, "the run is over");
  assert.match(await page.locator("#data").innerText(), new RegExp(`${points} points of`));
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save-csv")]);
  assert.equal((await readFile(await download.path(), "utf8")).trim().split("\n").length, points + 1);
  quiet(page);
});

test("a baseline without curves: the table alone", async () => {
  const model = modelOf("pair");
  Object.assign(model.comparison, { baseline: null, shift: [0] });
  model.runs.shift();
  assert.deepEqual(check(model), []);
  const page = await open(model, { name: "filed" });
  assert.equal(await page.locator("#overlay").count(), 0);
  assert.equal(await page.locator("#comparison tbody tr").count(), 1);
  quiet(page);
  for (const spoil of [c => (c.baseline = 7), c => c.shift.push(0), c => (c.align = "end"), c => (c.rows[0].severity = "")]) {
    const wrong = structuredClone(model);
    spoil(wrong.comparison);
    assert.equal(check(wrong).length, 1, String(spoil));
  }
});

test("processes: by CPU time, by peak, as a tree; each once, whatever the parents say", async () => {
  const model = modelOf("training"),
    list = model.runs[0].processes.list;
  list[2].parent = 3;
  list[3].parent = 2;
  const page = await open(model, { name: "loop" }),
    pids = () => page.locator("#processes tbody tr td:nth-child(2)").allInnerTexts();
  const by = key => [...list].sort((a, b) => b[key] - a[key]).map(p => String(p.pid));
  assert.deepEqual(await pids(), by("cpu"));
  await page.getByRole("button", { name: "by peak memory" }).click();
  assert.deepEqual(await pids(), by("peak"));
  await page.getByRole("button", { name: "tree" }).click();
  const tree = await pids();
  assert.deepEqual(tree.slice(0, 3), ["4100", "4110", "4200"], "git below the worker that started it");
  assert.deepEqual([...tree].sort(), list.map(p => String(p.pid)).sort());
});

test("the data can be had: JSON as it is, CSV of the series", async () => {
  const page = await open("training"),
    model = modelOf("training"),
    run = model.runs[0];
  const get = async id => {
    const [got] = await Promise.all([page.waitForEvent("download"), page.locator(id).click()]);
    return readFile(await got.path(), "utf8");
  };
  assert.deepEqual(JSON.parse(await get("#save-json")), model);
  const rows = (await get("#save-csv"))
    .trim()
    .split("\n")
    .map(l => l.split(","));
  assert.equal(rows.length, run.time.at.length + 1);
  const column = rows[0].indexOf("mem.pss.max");
  assert.deepEqual(
    rows.slice(1).map(r => (r[column] === "" ? null : Number(r[column]))),
    run.series["mem.pss"].max,
  );
  quiet(page);
});

test("small curves have no gaps where samples of nodes come close to each other", async () => {
  const mean = { series: ["cpu.usage"], stat: "mean", label: "mean", unit: "cores" },
    run = makeRun({
      n: 160,
      step: 1,
      curves: { "cpu.usage": { label: "job", family: "cpu", of: i => i % 3 } },
      tiles: [{ id: "cpu", title: "CPU", family: "cpu", values: [mean], spark: [mean.series[0]] }],
    }),
    { time } = run;
  time.at = time.at.map((_, i) => 4 * Math.floor(i / 4) + 3.5 + (i % 4) / 100);
  time.span = time.at.map((at, i) => at - (time.at[i - 1] ?? 0));
  const page = await open(model(run), { name: "clumps" });
  assert.equal((await tile(page, "cpu").locator(".stroke").getAttribute("d")).match(/M/g).length, 1);
  quiet(page);
});
