// graphile-worker, as configured in the "Performance" chapter of its documentation: 24 jobs, a local queue of 500, batched completion.

import { batches, main, now, onLines, peer, say, Tally, timed, version } from "./side.mjs";

const { run, makeWorkerUtils, runMigrations, Logger } = peer("graphile-worker");
const { Pool } = peer("pg");

const quiet = new Logger(() => (level, message) => {
  if (level === "error") process.stderr.write(`${message}\n`);
});
const preset = {
  worker: {
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
};
const pool = () => new Pool({ max: 25 });
const spec = (number, keys) =>
  keys ? { identifier: "exclusive", payload: { key: number % keys }, queueName: `key-${number % keys}` } : { identifier: "plain", payload: {} };

await main({
  async install() {
    await runMigrations({ pgPool: pool(), logger: quiet });
    say({ installed: version("graphile-worker") });
  },
  async enqueue({ jobs, keys, batch }) {
    const utils = await makeWorkerUtils({ pgPool: pool(), logger: quiet });
    await utils.withPgClient((client) => client.query("select 1"));
    await timed(() =>
      batches(jobs, batch, (from, to) => utils.addJobs(Array.from({ length: to - from }, (_, i) => spec(from + i, keys)))),
    );
  },
  async singles() {
    const utils = await makeWorkerUtils({ pgPool: pool(), logger: quiet });
    await utils.withPgClient((client) => client.query("select 1"));
    await onLines(async () => {
      const at = now();
      await utils.addJob("plain", {});
      say({ at });
    });
  },
  async work({ jobs, hold, announce }) {
    const tally = new Tally({ jobs, hold, announce });
    say({ ready: true });
    await run({
      preset,
      pgPool: pool(),
      logger: quiet,
      noHandleSignals: true,
      taskList: {
        plain: async () => tally.plain(),
        exclusive: async ({ key }) => tally.exclusive(key),
      },
    });
  },
});
