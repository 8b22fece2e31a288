// The same as side.py, for contestants in JavaScript.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { readFileSync, writeSync } from "node:fs";

/** A package of the folder that holds the peers; it lies elsewhere than this file. */
export const peer = createRequire(`${process.env.BENCH_NODE_MODULES}/package.json`);

export const version = (name) =>
  JSON.parse(readFileSync(`${process.env.BENCH_NODE_MODULES}/node_modules/${name}/package.json`)).version;

export const now = () => process.hrtime.bigint();

export function say(event) {
  const text = JSON.stringify(event, (_, value) => (typeof value === "bigint" ? Number(value) : value));
  writeSync(1, `${text}\n`);
}

export class Tally {
  #jobs;
  #announce;
  #started = 0;
  #ended = 0;
  #first = 0n;
  #intervals = [];

  constructor({ jobs = 0, announce = false }) {
    this.#jobs = jobs;
    this.#announce = announce;
  }

  /** The whole of a no-op job without a key. */
  plain() {
    if (!this.#started) this.#first = now();
    this.#started += 1;
    if (this.#announce) say({ started: now() });
    if (this.#started === this.#jobs) this.#tell();
  }

  /** A job with a key: it gives way once, so that others of its key would run beside it if they could. */
  async exclusive(key) {
    const begin = now();
    if (!this.#started) this.#first = begin;
    this.#started += 1;
    await new Promise((resolve) => setImmediate(resolve));
    this.#intervals.push([key, begin, now()]);
    this.#ended += 1;
    if (this.#ended === this.#jobs) this.#tell();
  }

  #tell() {
    say({ first: this.#first, last: now(), overlaps: overlaps(this.#intervals) });
  }
}

function overlaps(intervals) {
  const byKey = new Map();
  for (const [key, begin, end] of intervals) {
    if (!byKey.has(key)) byKey.set(key, []);
    byKey.get(key).push([begin, end]);
  }
  let found = 0;
  for (const spans of byKey.values()) {
    spans.sort((a, b) => (a[0] < b[0] ? -1 : 1));
    let latest = 0n;
    for (const [begin, end] of spans) {
      if (begin < latest) found += 1;
      if (end > latest) latest = end;
    }
  }
  return found;
}

const lines = () => createInterface({ input: process.stdin });

/** Calls `act` for each line on standard input, until it ends. */
export async function onLines(act) {
  say({ ready: true });
  for await (const _ of lines()) await act();
}

/** Waits for the word to go, then says how long `act` takes. */
export async function timed(act) {
  say({ ready: true });
  for await (const _ of lines()) break;
  const start = now();
  await act();
  say({ seconds: Number(now() - start) / 1e9 });
}

/** Calls `act(from, to)` for each batch of job numbers. */
export async function batches(jobs, batch, act) {
  for (let from = 0; from < jobs; from += batch) await act(from, Math.min(from + batch, jobs));
}

export async function main(verbs) {
  await verbs[process.argv[2]](JSON.parse(process.argv[3]));
  if (process.argv[2] !== "work") process.exit(0);
}
