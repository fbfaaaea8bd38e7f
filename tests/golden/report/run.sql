-- SPDX-License-Identifier: Apache-2.0
-- A run of one minute whose rows are all known: a job of four processes on two GPUs, three phases
-- with one inside, a mark, five samples that are missing, and a peak of one sample.
PRAGMA application_id = 0x70726374;
PRAGMA user_version = 1;

CREATE TABLE run(id TEXT NOT NULL, parent TEXT, name TEXT, node TEXT, host TEXT, command TEXT, target TEXT,
  labels TEXT, started INTEGER, interval INTEGER, ended INTEGER, exit_code INTEGER, exit_signal INTEGER,
  recorder INTEGER, version TEXT, about TEXT);
CREATE TABLE metrics(id INTEGER PRIMARY KEY, key TEXT NOT NULL, column_name TEXT NOT NULL, unit TEXT, kind TEXT,
  scope TEXT, selected INTEGER, help TEXT);
CREATE TABLE entities(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT, pid INTEGER, ppid INTEGER,
  started INTEGER, first INTEGER, last INTEGER, ended INTEGER, exit_code INTEGER, exit_signal INTEGER,
  samples INTEGER, known_by TEXT, cpu_time_seconds REAL, mem_rss_peak_bytes REAL, io_read_bytes REAL,
  io_write_bytes REAL, io_rchar_bytes REAL, io_wchar_bytes REAL, model TEXT, uuid TEXT, counted INTEGER,
  match TEXT);
CREATE TABLE events(id INTEGER PRIMARY KEY, elapsed INTEGER NOT NULL, event TEXT NOT NULL, name TEXT,
  seconds REAL, text TEXT, data TEXT);
CREATE TABLE phases(id INTEGER PRIMARY KEY, name TEXT NOT NULL, start INTEGER NOT NULL, seconds REAL,
  depth INTEGER, data TEXT);
CREATE TABLE mark_sets(id INTEGER PRIMARY KEY, json TEXT NOT NULL);
CREATE TABLE summary(json TEXT NOT NULL, recovered INTEGER NOT NULL DEFAULT 0);
CREATE TABLE job_samples(sample INTEGER PRIMARY KEY, elapsed INTEGER NOT NULL, interval INTEGER NOT NULL,
  marks INTEGER, cpu_user_seconds REAL, cpu_system_seconds REAL, cpu_time_seconds REAL, cpu_usage_cores REAL,
  mem_rss_bytes REAL, mem_pss_bytes REAL, mem_uss_bytes REAL, io_read_bytes REAL, io_write_bytes REAL,
  io_read_rate_bytes_per_second REAL, io_write_rate_bytes_per_second REAL, net_rx_bytes REAL,
  net_tx_bytes REAL, procs REAL, energy_joules REAL);
CREATE TABLE system_samples(sample INTEGER PRIMARY KEY, interval INTEGER NOT NULL, system_cpu_usage_cores REAL,
  system_mem_total_bytes REAL, system_mem_used_bytes REAL);
CREATE TABLE process_samples(sample INTEGER NOT NULL, entity INTEGER NOT NULL, cpu_user_seconds REAL,
  cpu_system_seconds REAL, cpu_time_seconds REAL, mem_rss_bytes REAL, mem_pss_bytes REAL, mem_uss_bytes REAL,
  PRIMARY KEY(sample, entity)) WITHOUT ROWID;
CREATE TABLE core_samples(sample INTEGER NOT NULL, entity INTEGER NOT NULL, PRIMARY KEY(sample, entity)) WITHOUT ROWID;
CREATE TABLE disk_samples(sample INTEGER NOT NULL, entity INTEGER NOT NULL, PRIMARY KEY(sample, entity)) WITHOUT ROWID;
CREATE TABLE filesystem_samples(sample INTEGER NOT NULL, entity INTEGER NOT NULL, PRIMARY KEY(sample, entity)) WITHOUT ROWID;
CREATE TABLE interface_samples(sample INTEGER NOT NULL, entity INTEGER NOT NULL, PRIMARY KEY(sample, entity)) WITHOUT ROWID;
CREATE TABLE gpu_samples(sample INTEGER NOT NULL, entity INTEGER NOT NULL, gpu_util_ratio REAL,
  gpu_mem_used_bytes REAL, gpu_mem_total_bytes REAL, gpu_power_watts REAL, gpu_energy_joules REAL,
  gpu_temp_celsius REAL, PRIMARY KEY(sample, entity)) WITHOUT ROWID;

INSERT INTO run VALUES('20260920T140200Z-0badcafe', NULL, 'golden', NULL, 'node17',
  '["/opt/bin/train.py","--cfg","big|wide.yaml"]', NULL, '{"team":"a<b>"}', 1789912920000000000, 1000000000,
  1789912980000000000, 0, NULL, 4000, '0.1.0',
  '{"id":"20260920T140200Z-0badcafe","parent":null,"command":["/opt/bin/train.py","--cfg","big|wide.yaml"],'
  || '"target":null,"host":"node17","name":"golden","node":null,"labels":{"team":"a<b>"},"interval":1.0,'
  || '"way":"run","pid":null,"job":{"pid":4001,"group":4001,"no_gpu":false},"limits":{"cpu":{"cores":4,'
  || '"source":"cpuset"},"memory":{"bytes":8589934592,"source":"cgroup"}},"recorder":{"pid":4000,'
  || '"start_ticks":1},"version":"0.1.0"}');
INSERT INTO metrics(key, column_name, selected) VALUES
  ('cpu.user', 'cpu_user_seconds', 1),
  ('cpu.system', 'cpu_system_seconds', 1),
  ('cpu.time', 'cpu_time_seconds', 1),
  ('cpu.usage', 'cpu_usage_cores', 1),
  ('mem.rss', 'mem_rss_bytes', 1),
  ('mem.pss', 'mem_pss_bytes', 1),
  ('mem.uss', 'mem_uss_bytes', 1),
  ('io.read', 'io_read_bytes', 1),
  ('io.write', 'io_write_bytes', 1),
  ('io.read.rate', 'io_read_rate_bytes_per_second', 1),
  ('io.write.rate', 'io_write_rate_bytes_per_second', 1),
  ('net.rx', 'net_rx_bytes', 1),
  ('net.tx', 'net_tx_bytes', 1),
  ('procs', 'procs', 1),
  ('energy', 'energy_joules', 1),
  ('system.cpu.usage', 'system_cpu_usage_cores', 1),
  ('system.mem.total', 'system_mem_total_bytes', 1),
  ('system.mem.used', 'system_mem_used_bytes', 1),
  ('gpu.util', 'gpu_util_ratio', 1),
  ('gpu.mem.used', 'gpu_mem_used_bytes', 1),
  ('gpu.mem.total', 'gpu_mem_total_bytes', 1),
  ('gpu.power', 'gpu_power_watts', 1),
  ('gpu.energy', 'gpu_energy_joules', 1),
  ('gpu.temp', 'gpu_temp_celsius', 1);
INSERT INTO mark_sets VALUES(1, '{}');

-- The times at which there are samples: each second, but for 41 to 45.
CREATE TEMP TABLE times AS WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 60)
  SELECT n FROM t WHERE n NOT BETWEEN 41 AND 45;

-- Processes: the script, two workers of which one ends at 35, and one that packs at the end.
INSERT INTO entities(id, kind, name, pid, ppid, started, first, last, ended, exit_code, samples, known_by,
    cpu_time_seconds, mem_rss_peak_bytes, io_read_bytes, io_write_bytes)
  SELECT id, 'process', name, 4000 + id, ppid, 1789912920000000000 + (first - 1) * 1000000000, first, last,
    1789912920000000000 + last * 1000000000, 0, (SELECT count(*) FROM times WHERE n BETWEEN first AND last),
    'waited', cpu, rss, 0, 0
  FROM (SELECT 1 AS id, 'train.py' AS name, 4000 AS ppid, 1 AS first, 60 AS last, 30.0 AS cpu, 3e9 AS rss
    UNION ALL SELECT 2, 'worker', 4001, 16, 50, 35.0, 2e9 UNION ALL SELECT 3, 'worker', 4001, 16, 35, 20.0, 2e9
    UNION ALL SELECT 4, 'zip', 4001, 51, 60, 5.0, 1e8);
INSERT INTO process_samples
  SELECT n, id, cpu * 0.75, cpu * 0.25, cpu, rss, rss * 0.875, rss * 0.75 FROM (
    SELECT n, e.id, (n - e.first + 1) * CASE e.id WHEN 2 THEN 1.0 WHEN 3 THEN 1.0 ELSE 0.5 END AS cpu,
      1048576.0 * CASE e.id WHEN 1 THEN 512 + 32 * n + CASE n WHEN 33 THEN 2048 ELSE 0 END
        WHEN 2 THEN 600 + 4 * n WHEN 3 THEN 800 + 2 * n ELSE 64 END AS rss
    FROM times JOIN entities e ON e.kind = 'process' AND n BETWEEN e.first AND e.last);

-- The job is the sum of its processes.
INSERT INTO job_samples
  SELECT n, n * 1000000000, (n - lag(n, 1, 0) OVER (ORDER BY n)) * 1000000000, 1, cpu * 0.75, cpu * 0.25, cpu,
    (cpu - lag(cpu, 1, 0) OVER (ORDER BY n)) / (n - lag(n, 1, 0) OVER (ORDER BY n)),
    rss, rss * 0.875, rss * 0.75, reads, writes,
    (reads - lag(reads, 1, 0) OVER (ORDER BY n)) / (n - lag(n, 1, 0) OVER (ORDER BY n)),
    (writes - lag(writes, 1, 0) OVER (ORDER BY n)) / (n - lag(n, 1, 0) OVER (ORDER BY n)),
    n * 250000.0, n * 4000.0, procs, n * 12.0
  FROM (SELECT n, min(n, 60) * 0.5 + max(0, min(n, 50) - 15) * 1.0 + max(0, min(n, 35) - 15) * 1.0
      + max(0, n - 50) * 0.5 AS cpu,
      (SELECT sum(mem_rss_bytes) FROM process_samples WHERE sample = n) AS rss,
      (SELECT count(*) FROM process_samples WHERE sample = n) AS procs,
      min(n, 15) * 104857600.0 AS reads, max(0, n - 50) * 52428800.0 + n * 1048576.0 AS writes FROM times);
INSERT INTO system_samples SELECT n, (n - lag(n, 1, 0) OVER (ORDER BY n)) * 1000000000, 6.0 + n % 3,
  68719476736.0, 17179869184.0 FROM times;

-- Two GPUs: one is busy in the second phase, the other hardly ever.
INSERT INTO entities(id, kind, name, first, last, model, uuid, counted)
  SELECT 100 + k, 'gpu', 'gpu' || k, 1, 60, 'H200', 'GPU-' || k, 1 FROM (SELECT 0 AS k UNION ALL SELECT 1);
INSERT INTO entities(id, kind, name, first, last, counted)
  WITH RECURSIVE c(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM c WHERE k < 63)
  SELECT 200 + k, 'core', 'cpu' || k, 1, 60, 1 FROM c;
INSERT INTO gpu_samples
  SELECT n, 100 + k, CASE WHEN n NOT BETWEEN 16 AND 50 THEN 0 WHEN k = 0 THEN 0.9 WHEN n % 10 = 0 THEN 0.2 ELSE 0 END,
    CASE k WHEN 0 THEN min(n, 50) * 2147483648.0 ELSE 1073741824.0 END, 150323855360.0,
    CASE WHEN k = 0 AND n BETWEEN 16 AND 50 THEN 650.0 ELSE 90.0 END,
    n * 90.0 + CASE k WHEN 0 THEN 560.0 * max(0, min(n, 50) - 15) ELSE 0 END, 40.0 + n / 4 - 10 * k
  FROM times, (SELECT 0 AS k UNION ALL SELECT 1);

INSERT INTO phases VALUES(1, 'load', 0, 14.5, 0, NULL), (2, 'train', 15000000000, 34.5, 0, NULL),
  (3, 'epoch|1', 20000000000, 10, 1, NULL), (4, 'save', 50000000000, 10, 0, NULL);
INSERT INTO events VALUES(1, 25000000000, 'mark', 'half', 0, NULL, '{"loss":0.5}');
