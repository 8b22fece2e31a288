// pg-boss, woken by NOTIFY, in batches whose jobs are completed one by one (perJobResults), as its guide to workers describes.

import { batches, main, now, onLines, peer, say, Tally, timed, version } from "./side.mjs";

const { PgBoss } = peer("pg-boss");

const { PGHOST: host, PGPORT: port, PGUSER: user, PGPASSWORD: password, PGDATABASE: database } = process.env;

async function started(options = {}) {
  const boss = new PgBoss({ host, port: port && Number(port), user, password, database, ...options });
  boss.on("error", (error) => process.stderr.write(`${error.message}\n`));
  await boss.start();
  return boss;
}

const named = (keys) => (keys ? "exclusive" : "plain");
const job = (number, keys) => (keys ? { data: { key: number % keys }, group: { id: `${number % keys}` } } : { data: {} });
const done = ({ id }) => ({ id, status: "completed" });

await main({
  async install() {
    const boss = await started();
    for (const name of ["plain", "exclusive"]) await boss.createQueue(name, { notify: true });
    await boss.stop();
    say({ installed: version("pg-boss") });
  },
  async enqueue({ jobs, keys, batch }) {
    const boss = await started({ supervise: false, schedule: false });
    await timed(() =>
      batches(jobs, batch, (from, to) => boss.insert(named(keys), Array.from({ length: to - from }, (_, i) => job(from + i, keys)))),
    );
  },
  async singles() {
    const boss = await started({ supervise: false, schedule: false });
    await onLines(async () => {
      const at = now();
      await boss.send("plain", {});
      say({ at });
    });
  },
  async work({ jobs, keyed, hold, announce }) {
    const tally = new Tally({ jobs, hold, announce });
    const boss = await started({ useListenNotify: true });
    const options = {
      batchSize: 1000,
      localConcurrency: 2,
      perJobResults: true,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
      notifyPollingIntervalSeconds: 0.5,
    };
    if (keyed) {
      await boss.work("exclusive", { ...options, groupConcurrency: 1 }, async (batch) => {
        await Promise.all(batch.map(({ data }) => tally.exclusive(data.key)));
        return batch.map(done);
      });
    } else {
      await boss.work("plain", options, async (batch) => {
        for (const _ of batch) tally.plain();
        return batch.map(done);
      });
    }
    say({ ready: true });
  },
});
