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
  const bytes = Buffer.from(`${text}\n`);
  for (let done = 0; done < bytes.length; ) {
    try {
      done += writeSync(1, bytes, done);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error; // the pipe is full for a moment
    }
  }
}

export class Tally {
  #jobs;
  #hold;
  #announce;
  #started = 0;
  #ended = 0;
  #first = 0n;
  #intervals = [];

  constructor({ jobs = 0, hold = 0, announce = false }) {
    this.#jobs = jobs;
    this.#hold = hold * 1000;
    this.#announce = announce;
    lines().on("line", () => say({ intervals: this.#intervals }));
  }

  /** The whole of a no-op job without a key. */
  plain() {
    if (!this.#started) this.#first = now();
    this.#started += 1;
    if (this.#announce) say({ started: now() });
    if (this.#started === this.#jobs) say({ first: this.#first, last: now() });
  }

  /** A job with a key: it gives way, so that others of its key run beside it if they can. */
  async exclusive(key) {
    const begin = now();
    if (!this.#started) this.#first = begin;
    this.#started += 1;
    await new Promise((resolve) => (this.#hold ? setTimeout(resolve, this.#hold) : setImmediate(resolve)));
    const end = now();
    this.#intervals.push([key, begin, end]);
    this.#ended += 1;
    if (this.#ended === this.#jobs) say({ first: this.#first, last: end });
  }
}

function lines() {
  return createInterface({ input: process.stdin });
}

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
