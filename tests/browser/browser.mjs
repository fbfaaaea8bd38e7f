// SPDX-License-Identifier: Apache-2.0
// A real Chromium over pages made from models. PROCTOR_BROWSER is the folder that tools/browser-tests
// has prepared: modules, the template, and where pages and pictures go.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { example, intoPage, MODELS } from "./models.mjs";
import { noteInk } from "./sight.mjs";

export const FOLDER = process.env.PROCTOR_BROWSER;
if (!FOLDER) throw new Error("tools/browser-tests runs these");
const { chromium } = createRequire(join(FOLDER, "modules/x.js"))("playwright-core");
export const TEMPLATE = readFileSync(join(FOLDER, "report-template.html"), "utf8");
mkdirSync(join(FOLDER, "pages"), { recursive: true });
mkdirSync(join(FOLDER, "pictures"), { recursive: true });

const made = new Map();
export const modelOf = name => {
  if (!made.has(name)) made.set(name, JSON.stringify(name === "example" ? example() : MODELS[name]()));
  return JSON.parse(made.get(name));
};
export const write = (name, model) => {
  const path = join(FOLDER, "pages", name + ".html");
  writeFileSync(path, intoPage(TEMPLATE, model));
  return path;
};

let browser = null;
export const close = async () => {
  if (browser) await browser.close();
};
export const leave = () => Promise.all((browser ? browser.contexts() : []).map(c => c.close()));

// Opens a page of a model.
export const open = (model, { name, ...look } = {}) =>
  visit(typeof model === "string" ? write(model, modelOf(model)) : write(name, model), look);
// Opens a file; `page.trouble` has whatever it complained of or asked for.
export const visit = async (path, { theme = "light", width = 1440, height = 900 } = {}) => {
  const args = ["--force-color-profile=srgb", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])];
  browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args });
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, acceptDownloads: true });
  const page = await context.newPage();
  await page.addInitScript(noteInk);
  page.trouble = [];
  await context.route(
    url => url.protocol !== "file:" && url.protocol !== "blob:",
    route => {
      page.trouble.push("request " + route.request().url());
      return route.abort();
    },
  );
  page.on("request", r => {
    if (r.url() !== "file://" + path && !r.url().startsWith("blob:")) page.trouble.push("request " + r.url());
  });
  page.on("console", m => page.trouble.push(`console ${m.type()}: ${m.text()}`));
  page.on("pageerror", e => page.trouble.push("error " + e.stack));
  page.path = path;
  await page.goto("file://" + path);
  return page;
};
export const picture = (page, name, fullPage = false) =>
  page.screenshot({ path: join(FOLDER, "pictures", name + ".png"), fullPage });

// Where the curves of a chart are, in the window.
export const plot = (page, chart) => page.locator(`#chart-${chart} .u-over`).boundingBox();
export const drag = async (page, chart, from, to) => {
  // shares of the width
  const b = await plot(page, chart),
    y = b.y + b.height / 2;
  await page.mouse.move(b.x + b.width * from, y);
  await page.mouse.down();
  await page.mouse.move(b.x + b.width * to, y, { steps: 4 });
  await page.mouse.up();
};

// How many pixels of a part of a chart (shares of its plot) have a colour, and not only grey; or are near `like`.
export const coloured = (page, chart, [x0, x1], [y0, y1], like = null, apart = 40) =>
  page.evaluate(
    ([id, a, b, c, d, hex, near]) => {
      const figure = document.getElementById("chart-" + id),
        canvas = figure.querySelector("canvas");
      const over = figure.querySelector(".u-over").getBoundingClientRect(),
        own = canvas.getBoundingClientRect(),
        k = canvas.width / own.width;
      const left = (over.left - own.left) * k,
        top = (over.top - own.top) * k,
        w = over.width * k,
        h = over.height * k;
      const box = [left + a * w, top + c * h, Math.max(1, (b - a) * w), Math.max(1, (d - c) * h)].map(Math.round);
      // Of a copy: Chromium complains of a canvas that is read again and again.
      const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height }),
        pen = copy.getContext("2d", { willReadFrequently: true });
      pen.drawImage(canvas, 0, 0);
      const { data } = pen.getImageData(...box),
        want = hex && [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
      let n = 0;
      for (let i = 0; i < data.length; i += 4) {
        const p = [data[i], data[i + 1], data[i + 2]];
        if (data[i + 3] < 128) continue;
        if (want ? p.every((v, j) => Math.abs(v - want[j]) < near) : Math.max(...p) - Math.min(...p) > 30) n++;
      }
      return n;
    },
    [chart, x0, x1, y0, y1, like, apart],
  );

// A colour of the style sheet, as it is in this theme.
export const shade = (page, name) =>
  page.evaluate(n => getComputedStyle(document.documentElement).getPropertyValue("--" + n).trim(), name);
export const numbers = text => (text.match(/\d+(?:\.\d+)?/g) || []).map(Number);
export const tile = (page, id) => page.locator(`#tile-${id}`);
