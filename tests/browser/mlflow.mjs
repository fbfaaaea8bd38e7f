// SPDX-License-Identifier: Apache-2.0
// For tools/mlflow-picture: mlflow.mjs URL PICTURE CHARTS takes a picture of MLflow's page of a run when so many charts
// have a line.
import { createRequire } from "node:module";

const [url, picture, charts] = process.argv.slice(2),
  { chromium } = createRequire(`${process.env.PROCTOR_BROWSER}/modules/`)("playwright-core"),
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] }),
  page = await browser.newPage({ viewport: { width: 1300, height: 1240 } });
await page.goto(url);
// What draws them is fetched late, and only what is in sight is drawn.
await page.waitForFunction((n) => document.querySelectorAll(".js-plotly-plot .trace.scatter").length >= n, Number(charts), {
  timeout: 120e3,
});
// Not the panel beside them, nor the list of pages.
await page.getByRole("button", { name: "Close" }).first().click({ timeout: 5e3 });
await page.waitForTimeout(1500);
await page.screenshot({ path: picture, clip: { x: 200, y: 0, width: 1100, height: 1240 } });
await browser.close();
