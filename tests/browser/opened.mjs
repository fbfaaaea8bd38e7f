// SPDX-License-Identifier: Apache-2.0
// For tools/report-cost: how many seconds each page takes until all of it is there, the median of five.
import { close, leave, visit } from "./browser.mjs";

for (const path of process.argv.slice(2)) {
  const page = await visit(path),
    took = [];
  for (let i = 0; i < 5; i++) {
    const began = performance.now();
    await page.reload();
    await page.waitForFunction(() => document.querySelector("#below").children.length > 0);
    took.push((performance.now() - began) / 1e3);
  }
  if (page.trouble.length) throw new Error(page.trouble.join("; "));
  console.log(took.sort((a, b) => a - b)[2].toFixed(3));
  await leave();
}
await close();
