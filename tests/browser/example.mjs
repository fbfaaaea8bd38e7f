// SPDX-License-Identifier: Apache-2.0
// Writes web/example.json anew: `node tests/browser/example.mjs > web/example.json`.
import { example, written } from "./models.mjs";
process.stdout.write(written(example()));
