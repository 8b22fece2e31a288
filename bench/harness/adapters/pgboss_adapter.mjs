// pg-boss: woken by NOTIFY, batches whose jobs are completed one by one (perJobResults). The same contract as menuwatch_bench/contract.py.

import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { openSync, readFileSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const peer = createRequire(`${process.env.BENCH_PEERS}/`);
const { PgBoss } = peer("pg-boss");
const { version } = peer("pg-boss/package.json");

const QUEUE = "bench";
const env = process.env;
const number = (name, otherwise) => Number(env[name] ?? otherwise);
const url = env.DATABASE_URL;
const instance = number("BENCH_INSTANCE_ID", 0);
const mode = env.PRODUCER_MODE ?? "fixed";
const rate = number("PRODUCER_RATE", 800);
const batchMax = number("PRODUCER_BATCH_MAX", 128);
const batchEvery = number("PRODUCER_BATCH_MS", 25);
const targetDepth = number("TARGET_DEPTH", 1000);
const slots = number("WORKER_COUNT", 32);
const workMs = number("JOB_WORK_MS", 1);
const every = number("SAMPLE_EVERY_S", 5) * 1000;
const window = number("LATENCY_WINDOW_MS", 30_000);
const pad = "x".repeat(Math.max(0, number("JOB_PAYLOAD_BYTES", 256) - 64));
const produces = instance === 0 || !number("PRODUCER_ONLY_INSTANCE_ZERO", 0);
const ledger = env.BENCH_LEDGER ? openSync(env.BENCH_LEDGER, "a") : null;

const emit = (record) => process.stdout.write(`${JSON.stringify(record)}\n`);
const say = (text) => process.stderr.write(`${text}\n`);
const note = (what, jobs) => ledger !== null && writeSync(ledger, jobs.map((job) => `${what} ${job.n}\n`).join(""));

function currentRate() {
  try {
    if (env.PRODUCER_RATE_CONTROL_FILE) return Number(readFileSync(env.PRODUCER_RATE_CONTROL_FILE, "utf8")) || 0;
  } catch {}
  return rate;
}

// A count per value of three significant digits and second.
const seconds = [];
function addLatency(ms) {
  const second = Math.floor(performance.now() / 1000);
  if (seconds.at(-1)?.second !== second) seconds.push({ second, counts: new Map() });
  while (seconds.length > window / 1000 + 1) seconds.shift();
  const value = Number(ms.toPrecision(3));
  const { counts } = seconds.at(-1);
  counts.set(value, (counts.get(value) ?? 0) + 1);
}
function percentiles(shares) {
  const since = performance.now() / 1000 - window / 1000 - 1;
  const all = new Map();
  for (const { second, counts } of seconds) if (second >= since) for (const [v, n] of counts) all.set(v, (all.get(v) ?? 0) + n);
  const values = [...all.keys()].sort((a, b) => a - b);
  const total = [...all.values()].reduce((sum, n) => sum + n, 0);
  return shares.map((share) => {
    let reached = 0;
    return values.find((value) => (reached += all.get(value)) >= share * total);
  });
}

let stopping = false;
let enqueued = 0;
let started = 0;
let done = 0;
let depth = 0;
let depthFrom = [0, 0];
let emitted = [0, 0];

const boss = new PgBoss({ connectionString: url, useListenNotify: true, superviseIntervalSeconds: 1, monitorIntervalSeconds: 1, max: 10 });
boss.on("error", (error) => say(error.message));
await boss.start();
if (!(await boss.getQueue(QUEUE))) await boss.createQueue(QUEUE, { notify: true, expireInSeconds: 5, retryLimit: 5 });
const { table } = await boss.getQueue(QUEUE);
emit({
  kind: "descriptor",
  system: "pgboss",
  instance_id: instance,
  event_tables: [`pgboss.${table}`],
  extensions: [],
  version: `pg-boss ${version}`,
  schema_version: String(await boss.schemaVersion()),
  db_name: new URL(url).pathname.slice(1),
  started_at: new Date().toISOString(),
});

async function handle(batch) {
  await Promise.all(
    batch.map(async ({ data }) => {
      addLatency(Math.max(0, Date.now() - data.at));
      started += 1;
      if (workMs > 0) await sleep(workMs);
      done += 1;
      note("d", [data]);
    }),
  );
  return batch.map(({ id }) => ({ id, status: "completed" }));
}
// So many jobs at once as the other queues: in two batches, so that the database and the handlers work at the same time.
const loops = slots >= 32 ? 2 : 1;
await boss.work(
  QUEUE,
  {
    batchSize: Math.ceil(slots / loops),
    localConcurrency: loops,
    perJobResults: true,
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5,
    notifyPollingIntervalSeconds: 0.5,
  },
  handle,
);

const run = `${instance}-${randomBytes(3).toString("hex")}`;
let serial = 0;
async function produce() {
  let credit = 0;
  let last = performance.now();
  while (!stopping) {
    let count;
    if (mode === "depth-target") {
      count = Math.min(batchMax, targetDepth - (depth + (enqueued - depthFrom[0]) - (started - depthFrom[1])));
    } else {
      const now = performance.now();
      credit = Math.min(credit + ((now - last) / 1000) * currentRate(), currentRate());
      last = now;
      count = Math.min(batchMax, Math.floor(credit));
      credit -= Math.max(0, count);
    }
    if (count > 0) {
      const jobs = Array.from({ length: count }, () => ({ n: `${run}-${serial++}`, at: Date.now(), pad }));
      try {
        await boss.insert(QUEUE, jobs.map((data) => ({ data })));
        enqueued += count;
        note("e", jobs);
      } catch (error) {
        say(`enqueueing failed: ${error.message}`);
        await sleep(200);
      }
    }
    if (count < batchMax) await sleep(batchEvery);
  }
}
async function observe() {
  while (!stopping) {
    try {
      const before = [enqueued, started];
      const { rows } = await boss.getDb().executeSql(
        `SELECT count(*)::int AS n FROM pgboss.${table} WHERE name = $1 AND state < 'active'`, [QUEUE]);
      depth = rows[0].n;
      depthFrom = before;
    } catch {}
    await sleep(250);
  }
}
function sample(ms) {
  const t = new Date().toISOString();
  const metrics = [
    ["enqueue_rate", ((enqueued - emitted[0]) * 1000) / ms, every / 1000],
    ["completion_rate", ((done - emitted[1]) * 1000) / ms, every / 1000],
  ];
  emitted = [enqueued, done];
  const [p50, p95, p99] = percentiles([0.5, 0.95, 0.99]);
  if (p50 !== undefined) for (const [name, value] of Object.entries({ p50, p95, p99 })) metrics.push([`claim_${name}_ms`, value, window / 1000]);
  if (instance === 0) metrics.push(["queue_depth", depth, 0], ["producer_target_rate", currentRate(), 0]);
  for (const [metric, value, window_s] of metrics) {
    emit({ t, system: "pgboss", kind: "adapter", subject_kind: "adapter", subject: "", instance_id: instance, metric, value, window_s });
  }
}
async function samples() {
  let last = performance.now();
  while (!stopping) {
    await sleep(every - (Date.now() % every));
    const now = performance.now();
    sample(now - last);
    last = now;
  }
}

for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, async () => {
    stopping = true;
    await boss.stop({ graceful: true, timeout: 3000 }).catch((error) => say(error.message));
    sample(every);
    process.exit(0);
  });
}
await Promise.all([produces ? produce() : null, observe(), samples()]);
