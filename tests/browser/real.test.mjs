// SPDX-License-Identifier: Apache-2.0
// Pages that `proctor report` has made of jobs that really ran, and of a month that is made up.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { after, afterEach, test } from "node:test";
import { close, coloured, drag, leave, numbers, picture, shade, tile, visit } from "./browser.mjs";
import { check } from "./contract.mjs";
import { compare, job, report, run, sql } from "./jobs.mjs";
import { faint } from "./sight.mjs";

afterEach(leave);
after(close);
const text = (page, selector) => page.locator(selector).innerText();
const quiet = page => assert.deepEqual(page.trouble, []);
// What is shown has three digits; a value near zero, two after the point.
const near = (got, want, what, share = 0.006) =>
  assert.ok(Math.abs(got - want) <= Math.abs(want) * share + 0.006, `${what}: ${got}, not ${want}`);
const SIZES = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, ms: 1e-3, s: 1, "%": 0.01, cores: 1, W: 1, "": 1 };
const sizeOf = unit => SIZES[unit.replace("/s", "")] ?? assert.fail(`what is ${unit}?`);

// --- what each of them must hold ------------------------------------------------------------------

const REAL = ["build", "training", "month"];
const ANY = [...REAL, "hostile"];

for (const name of ANY)
  test(`${name}: keeps to the contract, is below 1 MB, and opens in less than two seconds`, async () => {
    const { page: path, model } = job(name);
    assert.deepEqual(check(model), []);
    const page = await visit(path),
      began = Date.now();
    await page.reload();
    await page.waitForFunction(() => document.querySelector("#below").children.length > 0);
    const took = Date.now() - began,
      { size } = statSync(path);
    console.log(`real ${name}: ${took} ms, ${size} bytes`);
    assert.ok(took < 2000, `${took} ms`);
    assert.ok(size < 1e6, `${size} bytes`);
    for (const width of [1440, 1024, 390]) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(200); // charts follow the window a moment later
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `at ${width}`);
      const cut = await page.evaluate(() =>
        [...document.querySelectorAll("#verdict strong, .tile .big")]
          .filter(e => e.scrollWidth > e.clientWidth)
          .map(e => e.innerText),
      );
      assert.deepEqual(cut, [], `how it ended, and the large figures, are whole at ${width}`);
    }
    quiet(page);
  });

for (const name of REAL)
  test(`${name}: text and lines can be told from what is behind them, light and dark`, async () => {
    for (const theme of ["light", "dark"]) {
      const page = await visit(job(name).page, { theme });
      await page.keyboard.press("ArrowRight");
      await page.locator(".phase").nth(1).click();
      const { n, out } = await faint(page);
      assert.deepEqual(out, [], theme);
      assert.ok(n > 100, `${n} contrasts`);
      assert.ok((await page.evaluate(() => Object.keys(window.inked.line).length)) > 3, "lines were drawn");
      quiet(page);
    }
  });

// "job: least 0.96 cores, mean 1.31 cores, most 1.99 cores at 1.00 s in ..."; { word: [number, unit] }
const FIGURE = /(least|mean|most) ([\d.]+)(?: ((?:[KMG]i)?B(?:\/s)?|cores|%|W))?(?=[ ,;.])/g;
const figuresIn = (label, who) => {
  const found = label.match(new RegExp(`\\b${who}: ((?:,? ?(?:least|mean|most) [\\d.]+[^:,.;]*(?:\\.\\d+[^:,.;]*)*)+)`));
  return Object.fromEntries([...(found ? found[1] + "." : "").matchAll(FIGURE)].map(m => [m[1], [m[2], m[3] || ""]]));
};
for (const name of REAL)
  test(`${name}: the text in the place of each chart has the figures of the model`, async () => {
    const { page: path, model } = job(name),
      made = model.runs[0],
      page = await visit(path);
    let known = 0;
    for (const chart of made.charts) {
      const figure = page.locator("#chart-" + chart.id),
        label = await figure.getAttribute("aria-label");
      assert.equal(await figure.getAttribute("role"), "img");
      assert.equal(label, `${chart.title}. ${chart.absent || chart.text}`);
      for (const { series } of chart.lines) {
        const { stats, label: who, limit } = made.series[series];
        const said = figuresIn(label, who);
        for (const [word, stat] of Object.entries({ least: "min", mean: "mean", most: "max" })) {
          const want = stats[stat],
            [number, unit] = said[word] || [null];
          assert.equal(number === null, want === null, `${word} of ${series} in ${label}`);
          if (number === null) continue;
          const digits = (number.split(".")[1] || "").length,
            off = Math.abs(Number(number) - want / sizeOf(unit));
          assert.ok(off <= 0.5001 * 10 ** -digits, `${series}: ${word} ${number} ${unit}, not ${want}`);
          known++;
        }
        if (limit) assert.ok(label.includes(limit.text), `${series}: ${limit.text}`);
      }
    }
    assert.ok(known >= 12, `${known} figures`);
  });

for (const name of REAL)
  test(`${name}: pictures in light and dark, on a phone and on paper`, async () => {
    const { page: path } = job(name);
    for (const theme of ["light", "dark"]) await picture(await visit(path, { theme }), `${name}-real-${theme}`);
    await picture(await visit(path), `${name}-real-whole`, true);
    await picture(await visit(path, { width: 390, height: 844 }), `${name}-real-phone`, true);
    const page = await visit(path, { theme: "dark" });
    assert.ok((await page.pdf({ format: "A4", landscape: true })).length > 20000);
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    assert.ok(!(await page.locator("#theme").isVisible()), "no buttons on paper");
    assert.ok((await coloured(page, "cpu", [0, 1], [0, 1])) > 50, "curves on paper");
    await picture(page, `${name}-real-print`, true);
    quiet(page);
  });

// --- a build --------------------------------------------------------------------------------------

test("a build: who compiled, in which phase, and what was written", async () => {
  const { page: path, model, record } = job("build"),
    made = model.runs[0],
    page = await visit(path);
  assert.match(await text(page, "#verdict"), /sh -euc[\s\S]*finished, exit 0/);
  assert.deepEqual(await page.locator("#strip .phase").allInnerTexts(), ["configure", "compile", "link"]);
  const [[seen, cpu]] = sql(record, "SELECT count(*), sum(cpu_time_seconds) FROM entities WHERE kind = 'process'");
  assert.ok(seen > 20, `${seen} processes`);
  assert.match(await text(page, "#processes"), /\b(cc1|cc|ninja)\b/);
  const [[total, lasted, written]] = sql(
    record,
    "SELECT max(cpu_time_seconds), max(elapsed) / 1e9, max(io_write_bytes) FROM job_samples",
  );
  assert.ok(total > 0.5 && total >= cpu * 0.5, `${total} of CPU time, ${cpu} in processes`);
  near(numbers(await text(page, "#tile-cpu .big"))[0], total / lasted, "CPU mean", 0.02);
  near(made.series["io.write.rate"].stats.total, written, "written");
  await page.getByRole("button", { name: "tree", exact: true }).click();
  assert.match(await text(page, "#processes tbody tr:first-child"), /^sh\b/);
  quiet(page);
});

// --- a training -----------------------------------------------------------------------------------

// What the run file says of the time between two moments, by itself. A phase begins and ends with a sample, which is
// taken a moment after it was asked for.
const AT = "(SELECT %s FROM job_samples WHERE elapsed >= ? ORDER BY elapsed LIMIT 1)",
  IN = `elapsed > ${AT.replace("%s", "elapsed")} AND elapsed <= ${AT.replace("%s", "elapsed")}`;
const truth = (record, from, to) => {
  const span = [from, to].map(t => Math.round(t * 1e9)),
    grown = column => `SELECT -${AT.replace("%s", column)} + ${AT.replace("%s", column)}`,
    one = words => sql(record, words, ...span)[0][0];
  return {
    cpu: one(grown("cpu_time_seconds")),
    written: one(grown("io_write_bytes")),
    memory: one(`SELECT max(mem_pss_bytes) FROM job_samples WHERE ${IN.replace(">", ">=")}`),
    gpu: one(
      "SELECT avg(share) FROM (SELECT sum(g.gpu_util_ratio * j.interval) / sum(j.interval) AS share FROM gpu_samples g" +
        ` JOIN job_samples j USING (sample) WHERE g.gpu_util_ratio IS NOT NULL AND ${IN} GROUP BY g.entity)`,
    ),
  };
};
const shown = async (page, id) => numbers(await tile(page, id).locator(".big").innerText())[0];

test("a training: verdict, limit, two GPUs, and a finding that leads to its place", async () => {
  const { page: path, model } = job("training"),
    made = model.runs[0],
    page = await visit(path);
  assert.match(await text(page, "#verdict"), /python3 -c[\s\S]*finished, exit 0[\s\S]*2 x H200/);
  const [, limit] = numbers(await text(page, "#tile-memory"));
  assert.equal(limit, 210);
  assert.equal(await page.locator("#tile-memory .bar.near").count(), 1, "almost full");
  assert.equal(await page.locator("#strip .phase").count(), 6);
  assert.equal(made.events.filter(e => e.kind === "mark").length, 3);
  for (const chart of ["cpu", "memory", "gpu", "io"])
    assert.ok((await coloured(page, chart, [0, 1], [0, 1])) > 100, `${chart} is drawn`);
  const found = made.findings.find(f => f.id === "memory-near-limit");
  assert.ok(found, "a finding on memory");
  await page.locator("#findings button", { hasText: found.text }).click();
  assert.match(await text(page, "#at"), /epoch \d/);
  assert.equal(await page.locator("#devices tbody tr").count(), 2);
  quiet(page);
});

test("a training: tiles of each phase are what SQL says of it, and so is the table", async () => {
  const { page: path, model, record } = job("training"),
    made = model.runs[0],
    page = await visit(path),
    before = await text(page, "#tile-cpu");
  for (const phase of made.phases) {
    await page.locator(".phase", { hasText: phase.name }).click();
    assert.ok((await text(page, "#range")).startsWith(phase.name));
    const want = truth(record, phase.begin, phase.end),
      disk = (await tile(page, "disk").locator(".big").innerText()).match(/ (\w+) r, ([\d.]+) (\w+ )?w/),
      cells = await page.locator("#phases-all tbody tr").nth(made.phases.indexOf(phase)).locator("td").allInnerTexts();
    near(await shown(page, "cpu"), want.cpu / phase.time, `${phase.name}: CPU`, 0.01);
    near(numbers(cells[2])[0], want.cpu / phase.time, `${phase.name}: CPU in the table`, 0.01);
    near(await shown(page, "memory"), want.memory / 2 ** 20, `${phase.name}: memory`, 0.01);
    near(disk[2] * sizeOf((disk[3] || disk[1]).trim()), want.written, `${phase.name}: written`, 0.01);
    // Devices are read beside the samples of the job: those at the ends count wholly or not at all.
    assert.ok(Math.abs((await shown(page, "gpu")) - want.gpu * 100) < 12, `${phase.name}: GPU ${want.gpu}`);
    await page.keyboard.press("Escape");
    assert.equal(await text(page, "#tile-cpu"), before);
  }
  quiet(page);
});

test("a training: a part of it by the mouse and by keys, its tiles, another theme", async () => {
  const { page: path, model, record } = job("training"),
    lasted = model.runs[0].run.duration,
    page = await visit(path),
    [from, to] = [0.3 * lasted, 0.7 * lasted];
  await drag(page, "cpu", 0.3, 0.7);
  assert.match(await text(page, "#range"), /^part of the run/);
  // Its ends are not samples: what lies on them counts wholly or not at all.
  const [[widest]] = sql(record, "SELECT max(interval) / 1e9 FROM job_samples"),
    less = truth(record, from + 2 * widest, to - 2 * widest),
    more = truth(record, from - 2 * widest, to + 2 * widest),
    cpu = (await shown(page, "cpu")) * (to - from),
    memory = (await shown(page, "memory")) * 2 ** 20;
  assert.ok(less.cpu * 0.99 <= cpu && cpu <= more.cpu * 1.01, `${less.cpu} <= ${cpu} <= ${more.cpu}`);
  assert.ok(less.memory * 0.99 <= memory && memory <= more.memory * 1.01, `${less.memory} <= ${memory}`);
  await page.keyboard.press("0");
  assert.equal(await text(page, "#range"), "whole run");
  await page.keyboard.press("Home");
  assert.match(await text(page, "#at"), /^\d/);
  await page.keyboard.press("+");
  assert.match(await text(page, "#range"), /^part of the run/);
  await page.keyboard.press("Escape");
  await page.locator(".phase", { hasText: "save" }).focus();
  await page.keyboard.press("Enter");
  assert.match(await text(page, "#range"), /^save/);
  await page.keyboard.press("t");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  assert.match(await text(page, "#range"), /^save/, "what was chosen stays");
  quiet(page);
});

// --- a month --------------------------------------------------------------------------------------

test("a month: one sample of 2.5 million is seen, and what is missing is not drawn", async () => {
  const { page: path, model, spike, gap, samples, most, total } = job("month"),
    made = model.runs[0],
    lasted = made.run.duration,
    page = await visit(path);
  assert.equal(made.time.samples, samples);
  assert.ok(samples > 2.5e6 && made.time.at.length <= 2000);
  assert.equal(made.series["cpu.usage"].stats.at, spike);
  assert.equal(made.series["mem.pss"].stats.max, most);
  near(made.series["cpu.usage"].stats.total, total, "CPU time", 1e-6);
  const x = spike / lasted,
    empty = gap.map(t => t / lasted);
  for (const chart of ["cpu", "memory"]) {
    assert.ok((await coloured(page, chart, [x - 0.002, x + 0.002], [0.3, 0.5])) > 5, `${chart}: the spike`);
    assert.equal(await coloured(page, chart, [x - 0.15, x - 0.01], [0.3, 0.5]), 0, `${chart}: nothing beside it`);
    assert.equal(await coloured(page, chart, [empty[0] + 0.003, empty[1] - 0.003], [0.4, 0.95]), 0, `${chart}: the gap`);
    assert.ok((await coloured(page, chart, [empty[1] + 0.003, empty[1] + 0.03], [0.4, 1])) > 5, `${chart}: after it`);
  }
  await page.locator(".phase", { hasText: "serve" }).click();
  near(numbers(await text(page, "#tile-memory .big"))[0], most / 2 ** 30, "the spike in its phase");
  await page.keyboard.press("Escape");
  await page.locator(".phase", { hasText: "drain" }).click();
  assert.ok(numbers(await text(page, "#tile-memory .big"))[0] < most / 2 ** 31 + 20, "and not in another");
  quiet(page);
});

// --- others ---------------------------------------------------------------------------------------

test("a job whose words are hostile, and that fails", async () => {
  const { page: path, model, words } = job("hostile");
  assert.deepEqual(check(model), []);
  assert.ok(model.runs[0].phases.length >= words.length - 2, "its phases have those names");
  for (const theme of ["light", "dark"]) {
    const page = await visit(path, { theme });
    assert.match(await text(page, "#verdict"), /failed, exit 3/);
    await page.locator(".phase").first().click();
    const found = await page.evaluate(() => ({
      hacked: window.hacked,
      images: document.images.length,
      scripts: document.scripts.length,
      text: document.body.innerText,
    }));
    assert.deepEqual([found.hacked, found.images, found.scripts], [undefined, 0, 3]);
    assert.ok(found.text.includes("<script>window.hacked=1</script>"), "as text");
    assert.ok(found.text.includes("␛[31mred␛[0m"), "escapes are seen, not obeyed");
    assert.ok(!/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]/.test(found.text));
    quiet(page);
  }
});

test("two runs in one page", async () => {
  const one = run("first", ["sleep", "0.3"]),
    two = run("second", ["--name", "the other", "sleep", "0.4"]);
  const page = await visit(report("both", [one.record, two.record]).page);
  await page.locator("#runs select").selectOption({ label: "the other" });
  assert.match(await text(page, "#verdict"), /sleep 0.4/);
  quiet(page);
});

test("a comparison of two runs, one of them larger and later, aligned by a phase", async () => {
  const work = (wait, mib) =>
    `import os, subprocess, time; time.sleep(${wait})
subprocess.run([os.environ["PROCTOR"], "phase", "work", "--", "/usr/bin/python3", "-c",
  "import time; x = bytearray(${mib} << 20); time.sleep(0.6); del x; time.sleep(0.3)"], check=True)`;
  const was = run("was", ["--name", "was", "/usr/bin/python3", "-c", work(0.2, 60)]),
    is = run("is", ["--name", "is", "/usr/bin/python3", "-c", work(1.2, 120)]),
    gate = ["--align", "phase", "--fail-if", "mem.rss.peak > +10%"],
    { page: path, model, said } = compare("compared", [was.record, is.record, ...gate], 1);
  assert.match(said, /mem\.rss\.peak > \+10% holds/);
  assert.deepEqual(check(model), []);
  assert.ok(model.comparison.shift[1] < -0.5, "the later one is moved back");
  for (const theme of ["light", "dark"]) {
    const page = await visit(path, { theme });
    await picture(page, "compared-" + theme);
    assert.match(await text(page, "h1"), /time\.sleep\(1\.2\)/);
    const grey = await shade(page, "context"),
      seen = () => coloured(page, "memory", [0, 1], [0, 1], grey, 12),
      both = await seen();
    await page.uncheck("#overlay");
    assert.ok(both > (await seen()) + 50, "the baseline is drawn");
    await page.check("#overlay");
    assert.match(await text(page, "#comparison .s-bad"), /% more \(\+\d+/);
    assert.match(await text(page, "#comparison"), /work: duration/);
    await page.locator("#comparison").scrollIntoViewIfNeeded();
    if (theme === "light") await picture(page, "compared-table");
    assert.deepEqual(page.trouble, []);
  }
});

test("nodes of one job: the whole first, a table of them, each in the list of runs", async () => {
  const work = (mib, status) => `import sys, time; x = bytearray(${mib} << 20); time.sleep(0.5); sys.exit(${status})`,
    node = (i, mib, status) =>
      run("node" + i, ["--run-id", "many", "--node", i, "/usr/bin/python3", "-c", work(mib, status)], { status }).record,
    { page: path, model } = report("nodes", [node("0", 40, 0), node("1", 80, 3)]),
    page = await visit(path);
  assert.deepEqual(check(model), []);
  await picture(page, "nodes");
  assert.match(await text(page, "#verdict"), /failed, exit 3 on node 1[\s\S]*2 nodes/);
  assert.equal(await page.locator("#nodes tbody tr").count(), 2);
  assert.match(await text(page, "#nodes tbody tr:nth-child(2)"), /node 1[\s\S]*failed, exit 3/);
  for (const chart of ["cpu", "memory", "node-memory"])
    assert.ok((await coloured(page, chart, [0, 1], [0, 1])) > 50, `${chart} is drawn`);
  const [whole, ...nodes] = await page.locator("#runs option").allInnerTexts();
  assert.match(whole, /^2 nodes: python3/);
  assert.deepEqual(nodes, ["node 0", "node 1"]);
  await page.selectOption("#runs select", "2");
  assert.match(await text(page, "h1"), /^node 1: python3/);
  assert.equal(await page.locator("#nodes").count(), 0);
  quiet(page);
});
