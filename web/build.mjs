// SPDX-License-Identifier: Apache-2.0
// Makes the page of the report: one file, nothing outside it. The model takes the place of @MODEL@,
// with `<` written as \u003c.
//   node build.mjs install FOLDER [FROM]   what FROM (here: uPlot and terser) pins, into FOLDER
//   node build.mjs page FOLDER OUTPUT      the page, as .html; as .c it is an array for the program
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const SOURCES = ["format", "stats", "dom", "charts", "below", "page"];
const MOST = { script: 25 * 1024, style: 8 * 1024 }; // of our own
const read = (...path) => readFileSync(join(...path), "utf8");

// Nothing is fetched where what is pinned is there already: npm writes its own list last.
const install = (folder, from) => {
  const done = join(folder, "node_modules/.package-lock.json"),
    pinned = join(folder, "package-lock.json");
  if (existsSync(done) && existsSync(pinned) && read(pinned) === read(from, "package-lock.json")) return;
  mkdirSync(folder, { recursive: true });
  for (const name of ["package.json", "package-lock.json", ".npmrc"])
    copyFileSync(join(from, name), join(folder, name));
  execFileSync("npm", ["ci", "--ignore-scripts", "--loglevel=error"], {
    cwd: folder,
    timeout: 120e3,
    stdio: ["ignore", "ignore", "inherit"],
  });
};

const styles = text =>
  text
    .replace(/\/\*[^]*?\*\//g, "")
    .replace(/\s+/g, " ")
    .replace(/ ?([{};,]) ?/g, "$1")
    .replace(/: /g, ":")
    .trim();
const hash = text => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const page = folder => {
  const { minify_sync } = createRequire(join(resolve(folder), "x.js"))("terser");
  const small = text => minify_sync(text, { toplevel: true, ecma: 2020, compress: { passes: 5, inline: 0 } }).code;
  const own = small(`(() => {"use strict";${SOURCES.map(name => read(HERE, `src/${name}.js`)).join("\n")}})()`);
  const theme = small(read(HERE, "src/theme.js")),
    look = styles(read(HERE, "src/page.css"));
  const notice = read(folder, "node_modules/uplot/LICENSE").trim().replaceAll("*/", ""); // it goes with every copy
  const plot = `/* uPlot: ${notice} */\n${read(folder, "node_modules/uplot/dist/uPlot.iife.min.js").trim()}`;
  const sizes = { script: own.length + theme.length, style: look.length };
  for (const what in MOST)
    if (sizes[what] > MOST[what]) throw new Error(`own ${what} has ${sizes[what]} bytes, more than ${MOST[what]}`);
  const parts = {
    THEME: theme,
    SCRIPT: `${plot}\n${own}`,
    STYLE: read(folder, "node_modules/uplot/dist/uPlot.min.css").trim() + look,
  };
  parts.CSP = `default-src 'none'; script-src ${hash(parts.THEME)} ${hash(parts.SCRIPT)}; style-src ${hash(parts.STYLE)}; base-uri 'none'; form-action 'none'`;
  const html = read(HERE, "src/page.html").replace(/@(CSP|THEME|STYLE|SCRIPT)@/g, (_, name) => parts[name]);
  if (html.split("@MODEL@").length !== 2) throw new Error("the page has not one place for the model");
  return { html, sizes };
};

const array = text =>
  `#include "report/template.h"\nconst char pr_template[] = {\n${Buffer.from(text)
    .toJSON()
    .data.map((byte, i) => `${byte > 127 ? byte - 256 : byte},${i % 32 === 31 ? "\n" : ""}`)
    .join("")}0};\nconst size_t pr_template_len = sizeof pr_template - 1;\n`;

const [what, folder, output] = process.argv.slice(2);
if (what === "install" && folder) install(folder, output || HERE);
else if (what === "page" && output) {
  const { html, sizes } = page(folder);
  mkdirSync(dirname(resolve(output)), { recursive: true });
  writeFileSync(output, output.endsWith(".c") ? array(html) : html);
  if (output.endsWith(".html"))
    console.log(`page: ${Buffer.byteLength(html)} bytes; own script ${sizes.script}, own style ${sizes.style}`);
} else {
  console.error("node build.mjs install FOLDER | page FOLDER OUTPUT");
  process.exit(2);
}
