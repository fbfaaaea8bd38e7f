// SPDX-License-Identifier: Apache-2.0
// Makes the page of the report: one file, nothing outside it. `node build.mjs OUTPUT`.
// The model takes the place of @MODEL@, with `<` written as \u003c.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { minify_sync } from "terser";

const here = new URL(".", import.meta.url);
const read = name => readFileSync(new URL(name, here), "utf8");
const SOURCES = ["format", "stats", "dom", "charts", "below", "page"];

const small = text => minify_sync(text, { toplevel: true }).code;
const styles = text => text.replace(/\/\*[^]*?\*\//g, "").replace(/\s+/g, " ").replace(/ ?([{};:,]) ?/g, "$1").trim();
const hash = text => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const own = small(`(() => {"use strict";${SOURCES.map(name => read(`src/${name}.js`)).join("\n")}})()`);
const look = styles(read("src/page.css"));
const theme = small(read("src/theme.js"));
const script = `${read("node_modules/uplot/dist/uPlot.iife.min.js").trim()}\n${own}`;
const style = read("node_modules/uplot/dist/uPlot.min.css").trim() + look;
const csp = `default-src 'none'; script-src ${hash(theme)} ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; form-action 'none'`;

const LIMITS = { script: [own.length + theme.length, 25 * 1024], style: [look.length, 8 * 1024] };
for (const [name, [size, most]] of Object.entries(LIMITS))
  if (size > most) console.error(`own ${name} has ${size} bytes, more than ${most}`);

const parts = { CSP: csp, THEME: theme, STYLE: style, SCRIPT: script };
const page = read("src/page.html").replace(/@(CSP|THEME|STYLE|SCRIPT)@/g, (_, name) => parts[name]);
if (page.split("@MODEL@").length !== 2) throw new Error("the page has not one place for the model");
const output = process.argv[2] || new URL("dist/report-template.html", here).pathname;
mkdirSync(dirname(output), { recursive: true });
writeFileSync(output, page);
console.log(`${output}: ${Buffer.byteLength(page)} bytes; own script ${LIMITS.script[0]}, style ${LIMITS.style[0]}, uPlot ${script.length - own.length}`);
