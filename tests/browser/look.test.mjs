// SPDX-License-Identifier: Apache-2.0
// How it looks, to those who see it and to those who do not; and the pictures that README.md describes.
import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { close, coloured, drag, leave, modelOf, open, picture, plot } from "./browser.mjs";
import { MODELS } from "./models.mjs";
import { faint } from "./sight.mjs";

afterEach(leave);
after(close);
const theme = page =>
  page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor].join());
const LIGHT = "light,rgb(255, 255, 255)",
  DARK = "dark,rgb(20, 23, 26)";

test("light and dark: what the system says, then what is chosen, before the first paint", async () => {
  assert.equal(await theme(await open("short")), LIGHT);
  const page = await open("short", { theme: "dark" });
  assert.equal(await theme(page), DARK);
  assert.ok((await coloured(page, "cpu", [0, 1], [0, 1], "#4fa3d9")) > 0, "the dark theme's blue");
  await page.locator("#theme").click();
  assert.equal(await theme(page), LIGHT);
  assert.ok((await coloured(page, "cpu", [0, 1], [0, 1], "#0072b2")) > 0, "drawn again");
  await page.reload();
  assert.equal(await theme(page), LIGHT, "it is kept");
  const head = await page.evaluate(() => [...document.head.children].map(e => e.tagName));
  assert.ok(head.indexOf("SCRIPT") < head.indexOf("STYLE"), "decided before there is a body");
  assert.deepEqual(page.trouble, []);
});

test("text has a contrast of at least 4.5 to 1, lines of 3, light and dark", async () => {
  for (const look of ["light", "dark"])
    for (const name of ["training", "many", "pair", "absent"]) {
      const page = await open(name, { theme: look });
      if (name === "pair") await page.check("#overlay");
      if (name === "training") await page.locator(".phase").nth(2).click();
      await page.keyboard.press("ArrowRight");
      const { n, out } = await faint(page);
      assert.deepEqual(out, [], `${name}, ${look}`);
      assert.ok(n > (name === "absent" ? 5 : 50), `${n} of ${name}`);
    }
});
test("the check of contrast can fail", async () => {
  const page = await open("short");
  await page.evaluate(() => {
    document.querySelector("h1").style.color = "#8a9199";
    const pen = document.querySelector("canvas").getContext("2d");
    pen.strokeStyle = "#a0a7ae";
    pen.stroke();
  });
  const { out } = await faint(page);
  assert.equal(out.length, 3);
  assert.match(out.join(), /3\.19 .*line #a0a7ae on --page.*line #a0a7ae on --band/);
});

test("each chart has a text in its place, and tables are tables", async () => {
  for (const name of Object.keys(MODELS)) {
    const page = await open(name),
      first = modelOf(name).runs[0].charts || [];
    const figures = await page.evaluate(() =>
      [...document.querySelectorAll("figure")].map(f => [
        f.getAttribute("role"),
        f.getAttribute("aria-label"),
        f.tabIndex,
      ]),
    );
    assert.equal(figures.length, first.length);
    figures.forEach(([role, label, tab], i) => {
      assert.equal(role, "img");
      assert.equal(tab, 0);
      if (name !== "hostile")
        assert.ok(label.includes(first[i].absent || (label.includes("none") ? "none" : first[i].text)), label);
      assert.ok(label.length > 5);
    });
    assert.equal(
      await page.evaluate(() => [...document.querySelectorAll("canvas")].filter(c => !c.closest("figure")).length),
      0,
    );
    assert.equal(
      await page.evaluate(
        () =>
          [...document.querySelectorAll("table")].filter(t => !t.caption || !t.tHead.querySelector("th[scope=col]"))
            .length,
      ),
      0,
    );
    assert.equal(
      await page.evaluate(
        () =>
          [...document.querySelectorAll("button")].filter(
            b => !(b.innerText || b.getAttribute("aria-label") || b.textContent).trim(),
          ).length,
      ),
      0,
    );
  }
});

test("what is below stands in its order", async () => {
  const page = await open("pair");
  const got = await page.locator("section > h2").allInnerTexts();
  assert.deepEqual(got, [
    "Comparison",
    "Findings",
    "By phase",
    "Processes",
    "By name",
    "Events",
    "How it was measured",
    "The run",
    "Data",
  ]);
  const gpu = await open("training");
  assert.ok((await gpu.locator("section > h2").allInnerTexts()).includes("GPUs"));
});

test("print: on paper it is light, and without buttons", async () => {
  const page = await open("training", { theme: "dark" });
  assert.ok((await page.pdf({ format: "A4", landscape: true })).length > 20000);
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await page.emulateMedia({ media: "print" });
  assert.equal(await theme(page), LIGHT);
  for (const id of ["#theme", "#help", "#save-json"]) assert.ok(!(await page.locator(id).isVisible()), id);
  assert.ok(await page.locator("#tiles").isVisible());
  await picture(page, "print", true);
  await page.emulateMedia({ media: "screen" });
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.equal(await theme(page), DARK);
});

test("pictures, which README.md describes", async () => {
  const shots = [
    ["training", "light"],
    ["training", "dark"],
    ["many", "light"],
    ["cpu", "light"],
    ["short", "light"],
    ["month", "light"],
    ["month", "dark"],
    ["absent", "light"],
    ["hostile", "light"],
  ];
  for (const [name, look] of shots) await picture(await open(name, { theme: look }), `${name}-${look}`);
  await picture(await open("training"), "training-whole", true);
  await picture(await open("hostile", { theme: "dark" }), "hostile-whole", true);
  await picture(await open("training", { width: 390, height: 844 }), "training-mobile");
  await picture(await open("training", { width: 390, height: 844, theme: "dark" }), "training-mobile-whole", true);
  const hover = await open("training"),
    b = await plot(hover, "memory");
  await hover.mouse.move(b.x + (b.width * 2468) / 4324, b.y + 40);
  await picture(hover, "cursor");
  await drag(hover, "memory", 0.55, 0.8);
  await picture(hover, "zoom");
  await hover.locator(".phase", { hasText: "eval" }).click();
  await hover.keyboard.press("?");
  await picture(hover, "keys");
  const pair = await open("pair");
  await pair.selectOption("#runs select", "1");
  await pair.check("#overlay");
  await picture(pair, "compare");
});
