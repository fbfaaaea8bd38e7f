// SPDX-License-Identifier: Apache-2.0
// Jobs that really run, recorded and reported by `proctor`; each once for all tests of a file.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { FOLDER } from "./browser.mjs";
import { HOSTILE } from "./models.mjs";

const PROCTOR = process.env.PROCTOR;
const REAL = join(FOLDER, "real"),
  ROOT = fileURLToPath(new URL("../..", import.meta.url)),
  PYTHON = "/usr/bin/python3";
mkdirSync(REAL, { recursive: true });

const call = (program, words, env = {}) => {
  const done = spawnSync(program, words, {
    cwd: REAL,
    env: { ...process.env, PROCTOR, PROCTOR_HOME: REAL, ...env },
    encoding: "utf8",
  });
  assert.equal(done.error, undefined);
  return done;
};
const must = (...words) => {
  const done = call(...words);
  assert.equal(done.status, 0, done.stdout + done.stderr);
  return done.stdout;
};

// Rows of a query on a run file: what a report says is computed once more.
const QUERY =
  "import json, sqlite3, sys; base = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True);" +
  "print(json.dumps(base.execute(sys.argv[2], json.loads(sys.argv[3])).fetchall()))";
export const sql = (record, text, ...values) =>
  JSON.parse(must(PYTHON, ["-c", QUERY, record, text, JSON.stringify(values)]));

// The model that a page has in it.
const modelIn = page =>
  JSON.parse(readFileSync(page, "utf8").match(/<script type="application\/json" id="model">([^]*?)<\/script>/)[1]);

export const report = (name, records) => {
  const page = join(REAL, name + ".html");
  assert.equal(must(PROCTOR, ["report", ...records, "-o", page]), "");
  return { page, model: modelIn(page) };
};
// What `proctor compare` writes, and what it said.
export const compare = (name, words, status) => {
  const page = join(REAL, name + ".html"),
    done = call(PROCTOR, ["compare", ...words, "-o", page]);
  assert.equal(done.status, status, done.stderr);
  return { page, model: modelIn(page), said: done.stderr };
};
export const run = (name, words, { status = 0, interval = "20ms", env = {} } = {}) => {
  assert.ok(PROCTOR && existsSync(PROCTOR), "PROCTOR names the program");
  const record = join(REAL, name + ".proctor"),
    page = join(REAL, name + ".html");
  const done = call(
    PROCTOR,
    ["run", "-q", "-i", interval, "--force", "-o", record, "--report", page, ...words],
    env,
  );
  assert.equal(done.status, status, done.stderr);
  return { record, page, model: modelIn(page) };
};

// A part of this project from clean: configured, compiled, linked.
const BUILD = `
"$PROCTOR" phase configure -- meson setup "$1" "$2" -Dpage=disabled -Dtests=disabled >/dev/null
"$PROCTOR" phase begin compile
ninja -C "$1" $(ninja -C "$1" -t targets all | sed -n 's/: c_COMPILER$//p' | grep -E "src_(util|core|source)_") >/dev/null
"$PROCTOR" phase end compile
"$PROCTOR" phase link -- ninja -C "$1" demo_job >/dev/null
"$PROCTOR" mark built
`;
const build = () => {
  const folder = join(REAL, "clean");
  rmSync(folder, { recursive: true, force: true });
  const made = run("build", ["sh", "-euc", BUILD, "build", folder, ROOT], { interval: "100ms" });
  assert.ok(existsSync(join(folder, "demo_job")), "it was built");
  return made;
};

// A job in the shape of a training: data is loaded, three epochs compute on two GPUs, a result is written. The driver
// is a library of that name (tests/fake_nvml); the job says there what the devices do.
const TRAINING = `
import os, subprocess, sys, time
def proctor(*words): subprocess.run([os.environ["PROCTOR"], *words], check=True)
def burn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
def gpus(*use):
    script = os.environ["FAKE_NVML"]
    with open(script + ".new", "w") as f:
        for i, (busy, used) in enumerate(use):
            f.write(f"device {i} H200 GPU-{i:04} 150000000000 {used * 10**9}\\n")
            f.write(f"util {i} {busy} 0 9999\\nprocess {i} {os.getpid()} {used * 10**9} c {busy} 9999\\n")
    os.rename(script + ".new", script)
gpus((0, 2), (0, 2))
proctor("phase", "begin", "load")
data = []
for _ in range(16):
    data.append(bytearray(os.urandom(1 << 20)) * 8)
    time.sleep(0.05)
proctor("phase", "end", "load")
proctor("phase", "begin", "train")
for epoch in (1, 2, 3):
    proctor("phase", "begin", f"epoch {epoch}")
    gpus((95, 90 + 10 * epoch), (60 - 15 * epoch, 80))
    burn(0.8)
    batch = bytearray(64 << 20)
    burn(0.4)
    del batch
    proctor("mark", "epoch", f"loss={1 / epoch:.2f}")
    proctor("phase", "end", f"epoch {epoch}")
proctor("phase", "end", "train")
proctor("phase", "begin", "save")
gpus((0, 12), (0, 8))
with open("result", "wb") as f:
    for block in data: f.write(block)
    f.flush()
    os.fsync(f.fileno())
time.sleep(0.6)
proctor("phase", "end", "save")
`;
const training = () => {
  const driver = join(dirname(PROCTOR), "tests/fake_nvml"),
    script = join(REAL, "nvml");
  assert.ok(existsSync(join(driver, "libnvidia-ml.so.1")), "built with the tests");
  writeFileSync(script, "device 0 H200 GPU-0000 150000000000 0\ndevice 1 H200 GPU-0001 150000000000 0\n");
  const env = { LD_LIBRARY_PATH: driver, FAKE_NVML: script };
  return run("training", ["--memory-total", "210M", PYTHON, "-c", TRAINING], { interval: "50ms", env });
};

// 30 days at 1 Hz: made up, and removed once the page is there, since it has half a gigabyte.
const month = () => {
  const record = join(REAL, "month.proctor");
  const [spike, from, to] = must(join(ROOT, "tools/synthetic-run"), [PROCTOR, record]).match(/\d+/g).map(Number);
  const began = Date.now(),
    made = report("month", [record]);
  console.log(`made of 30 days: ${Date.now() - began} ms, ${statSync(made.page).size} bytes`);
  const [[samples, most, total]] = sql(
    record,
    "SELECT count(*), max(mem_pss_bytes), max(cpu_time_seconds) FROM job_samples",
  );
  rmSync(record);
  return { ...made, spike, gap: [from, to], samples, most, total };
};

// Every word that comes from a job is hostile: what it was called with, its name, its phases and its marks.
const hostile = () => {
  const words = HOSTILE.filter(w => !w.includes("\0")).map(w => w.slice(0, 200)),
    job = 'for w in "$@"; do "$PROCTOR" phase "$w" -- "$PROCTOR" mark "$w"; done; exit 3';
  return { words, ...run("hostile", ["--name", words[1], "sh", "-c", job, words[0], ...words], { status: 3 }) };
};

const JOBS = { build, training, month, hostile },
  made = {};
export const job = name => (made[name] ??= JOBS[name]());
