// A Menuwatch worker in JavaScript (Node 18 or newer, no packages): MENUWATCH_TOKEN=mw_… node worker.mjs ROLE handler.mjs
import os from "node:os";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const [role, file] = process.argv.slice(2);
const { default: handle } = await import(pathToFileURL(resolve(file)));
const { MENUWATCH_URL = "http://127.0.0.1:8640", MENUWATCH_TOKEN, WORKER_ID = `${os.hostname()}-js`, SLOTS = "5" } = process.env;
const mine = encodeURIComponent(WORKER_ID);
const todo = [], running = new Map(); // claimed tasks that wait for a slot; id of each claimed task → { attempt, stop }
let status = "active", received = [], turn = Promise.resolve();

async function call(route, body) { // until there is an answer: every request of the protocol may be repeated
  const headers = { Authorization: `Bearer ${MENUWATCH_TOKEN}`, "Content-Type": "application/json" };
  for (let wait = 100; ; wait = Math.min(2 * wait, 30_000)) {
    try {
      const request = { method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(30_000) };
      const response = await fetch(`${MENUWATCH_URL}/api/worker-registry/${route}`, request);
      const answer = await response.json();
      if (response.ok) return answer;
      if (response.status < 500) throw Object.assign(new Error(answer.detail), { status: response.status });
    } catch (error) {
      if (error.status) throw error;
    }
    await sleep(wait);
  }
}

function next() { // one claim at a time: what the server says is ours and is not in the list goes back to the queue
  return (turn = turn.then(async () => {
    if (!todo.length && status === "active") {
      const wanted = { roles: [role], count: +SLOTS, current_task_ids: [...running.keys()] };
      const { tasks, commands } = await call(`${mine}/claim`, wanted);
      for (const { id, attempt } of tasks) running.set(id, { attempt, stop: new AbortController() });
      todo.push(...tasks);
      if (commands.length) await beat();
    }
    return todo.shift();
  }));
}

async function work(task) {
  const slot = running.get(task.id), began = performance.now();
  const [end, body] = await (async () => handle(task, slot.stop.signal))().then(
    (done) => ["complete", done ?? {}],
    ({ message, permanent, postpone }) => permanent ? ["fail", { reason: message }] :
      postpone ? ["postpone", { reason: message, after_seconds: postpone }] : ["retry", { reason: message }],
  );
  const attempt = { attempt: task.attempt, ran_seconds: (performance.now() - began) / 1000 };
  const send = (end, body) => call(`${mine}/tasks/${task.id}/${end}`, { ...body, ...attempt });
  await send(end, body)
    .catch((error) => error.status === 409 ? Promise.reject(error) : send("fail", { reason: `refused: ${error.message}` }))
    .catch((error) => console.error(error.message)); // 409: the task is not ours any more
  if (running.get(task.id) === slot) running.delete(task.id);
}

async function beat() {
  const current_task_ids = [...running.keys()], attempts = [...running.values()].map(({ attempt }) => attempt);
  const report = { worker_id: WORKER_ID, status, max_concurrent_tasks: +SLOTS, current_task_ids, attempts };
  const { lost_task_ids, commands } = await call("heartbeat", { ...report, acknowledged_commands: received });
  for (const id of lost_task_ids) running.get(id)?.stop.abort();
  for (const { command } of commands) status = { pause: "paused", resume: "active", decommission: "stopping" }[command];
  received = commands.map(({ id }) => id);
  if (commands.length) await beat(); // acknowledges them
}

async function slot() {
  while (status !== "stopping") {
    const task = await next();
    await (task ? work(task) : sleep(1000));
  }
}

for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => (status = "stopping"));
await call("register", { worker_id: WORKER_ID, host: os.hostname(), pid: process.pid, roles: [role] });
const heart = setInterval(beat, 10_000);
await Promise.all(Array.from({ length: +SLOTS }, slot));
clearInterval(heart);
await call("deregister", { worker_id: WORKER_ID }); // returns what was not begun
