// SPDX-License-Identifier: Apache-2.0
// Pages that `proctor report` has made of jobs that really ran.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, test } from "node:test";
import { close, coloured, drag, FOLDER, leave, numbers, picture, shade, visit } from "./browser.mjs";
import { check } from "./contract.mjs";
import { HOSTILE } from "./models.mjs";

afterEach(leave);
after(close);
const PROCTOR = process.env.PROCTOR,
  REAL = join(FOLDER, "real");
mkdirSync(REAL, { recursive: true });

// A job in the shape of a training: data is loaded, three epochs compute, a result is written.
const TRAINING = `
import os, subprocess, sys, time
def proctor(*words): subprocess.run([os.environ["PROCTOR"], *words], check=True)
def burn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
proctor("phase", "begin", "load")
data = []
for _ in range(16):
    data.append(bytearray(os.urandom(1 << 20)) * 8)
    time.sleep(0.05)
proctor("phase", "end", "load")
proctor("phase", "begin", "train")
for epoch in (1, 2, 3):
    proctor("phase", "begin", f"epoch {epoch}")
    burn(0.6)
    batch = bytearray(64 << 20)
    burn(0.3)
    del batch
    proctor("mark", "epoch", f"loss={1 / epoch:.2f}")
    proctor("phase", "end", f"epoch {epoch}")
proctor("phase", "end", "train")
proctor("phase", "begin", "save")
with open("result", "wb") as f:
    for block in data: f.write(block)
    f.flush()
    os.fsync(f.fileno())
proctor("phase", "end", "save")
`;

const run = (name, words) => {
  assert.ok(PROCTOR && existsSync(PROCTOR), "PROCTOR names the program");
  const record = join(REAL, name + ".proctor"),
    made = ["html", "json"].map(ending => join(REAL, `${name}.${ending}`));
  const done = spawnSync(
    PROCTOR,
    ["run", "-q", "-i", "20ms", "--force", "-o", record, ...made.flatMap(f => ["--report", f]), ...words],
    { cwd: REAL, env: { ...process.env, PROCTOR, PROCTOR_HOME: REAL }, encoding: "utf8" },
  );
  return { done, record, page: made[0], model: JSON.parse(readFileSync(made[1], "utf8")) };
};
const text = (page, selector) => page.locator(selector).innerText();

test("a training-like job: verdict, tiles with limits, phases, charts", async () => {
  const job = run("training", ["--memory-total", "300M", "/usr/bin/python3", "-c", TRAINING]),
    [made] = job.model.runs;
  assert.equal(job.done.status, 0, job.done.stderr);
  assert.deepEqual(check(job.model), []);
  for (const theme of ["light", "dark"]) {
    const page = await visit(job.page, { theme });
    await picture(page, "real-" + theme);
    assert.match(await text(page, "#verdict"), /python3 -c[\s\S]*finished, exit 0/);
    assert.equal(await page.locator("#tiles .tile").count(), made.tiles.length);
    const peak = made.series["mem.pss"].stats.max / 2 ** 20,
      [shown, limit] = numbers(await text(page, "#tile-memory"));
    assert.ok(Math.abs(shown - peak) <= 0.006 * peak, `${shown} of ${peak}`);
    assert.equal(limit, 300);
    assert.equal(await page.locator("#strip .phase").count(), 6);
    for (const chart of ["cpu", "memory", "io"])
      assert.ok((await coloured(page, chart, [0, 1], [0, 1])) > 100, `${chart} is drawn`);
    assert.match(await text(page, "#chart-gpu"), /no GPU was seen|GPU/);
    assert.match(await text(page, "#below"), /How it was measured[\s\S]*Completeness/);
    assert.deepEqual(page.trouble, []);
  }
  const page = await visit(job.page),
    before = await text(page, "#tile-cpu");
  await page.getByRole("button", { name: "save", exact: true }).first().click();
  assert.match(await text(page, "#range"), /save/);
  assert.notEqual(await text(page, "#tile-cpu"), before);
  await page.keyboard.press("Escape");
  assert.equal(await text(page, "#tile-cpu"), before);
  await drag(page, "cpu", 0.3, 0.6);
  assert.notEqual(await text(page, "#tile-cpu"), before);
  assert.deepEqual(page.trouble, []);
});

test("a job with hostile words that fails", async () => {
  const job = run("hostile", ["sh", "-c", "exit 3", ...HOSTILE.filter(w => !w.includes("\0")).map(w => w.slice(0, 3000))]);
  assert.equal(job.done.status, 3);
  assert.deepEqual(check(job.model), []);
  const page = await visit(job.page);
  assert.match(await text(page, "#verdict"), /failed, exit 3/);
  assert.deepEqual(page.trouble, []);
});

test("two runs in one page", async () => {
  const one = run("first", ["sleep", "0.3"]),
    two = run("second", ["--name", "the other", "sleep", "0.4"]),
    both = join(REAL, "both.html");
  assert.equal(spawnSync(PROCTOR, ["report", one.record, two.record, "-o", both]).status, 0);
  const page = await visit(both);
  await page.locator("#runs select").selectOption({ label: "the other" });
  assert.match(await text(page, "#verdict"), /sleep 0.4/);
  assert.deepEqual(page.trouble, []);
});

test("a comparison of two runs, one of them larger and later, aligned by a phase", async () => {
  const job = (wait, mib) =>
    `import os, subprocess, time; time.sleep(${wait})
subprocess.run([os.environ["PROCTOR"], "phase", "work", "--", "/usr/bin/python3", "-c",
  "import time; x = bytearray(${mib} << 20); time.sleep(0.6); del x; time.sleep(0.3)"], check=True)`;
  const was = run("was", ["--name", "was", "/usr/bin/python3", "-c", job(0.2, 60)]),
    is = run("is", ["--name", "is", "/usr/bin/python3", "-c", job(1.2, 120)]),
    made = ["html", "json"].map(ending => join(REAL, "compared." + ending));
  for (const file of made) {
    const words = ["compare", was.record, is.record, "--align", "phase", "--fail-if", "mem.rss.peak > +10%"];
    const done = spawnSync(PROCTOR, [...words, "-o", file], { encoding: "utf8" });
    assert.equal(done.status, 1, done.stderr);
    assert.match(done.stderr, /mem\.rss\.peak > \+10% holds/);
  }
  const model = JSON.parse(readFileSync(made[1], "utf8"));
  assert.deepEqual(check(model), []);
  assert.ok(model.comparison.shift[1] < -0.5, "the later one is moved back");
  for (const theme of ["light", "dark"]) {
    const page = await visit(made[0], { theme });
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
