// What the dashboard's pages do beyond what HTML does. Every page works without it; with it, pages are live and keep their place.
"use strict";

const main = () => document.getElementById("main");
const listening = document.body.dataset.live ?? "";
const state = { paused: sessionStorage.getItem("paused") === "1", since: null, busy: null, wanted: false, source: null };

// --- The content anew, in place: focus, scroll, open details and what is being typed stay. ---

function keepState(fresh) {
  for (const open of document.querySelectorAll("#main details[id]")) {
    const there = fresh.getElementById(open.id);
    if (there) there.open = open.open;
  }
  for (const box of document.querySelectorAll("#main input[type=checkbox][data-keep]:checked")) {
    const there = fresh.getElementById(box.id);
    if (there) there.setAttribute("checked", "");
  }
}

async function show(html, push) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  const content = fresh.getElementById("main");
  if (!content) return location.assign(push ?? location.href);
  keepState(fresh);
  // News does not take away the word on what somebody has just done.
  const said = document.querySelector("#main > .notice[role=status]:first-child");
  if (!push && said && !content.firstElementChild?.matches(".notice[role=status]")) content.prepend(said.cloneNode(true));
  if (push && push !== location.href) history.pushState({}, "", push);
  if (fresh.title) document.title = fresh.title;
  await htmx.swap({ target: main(), sourceElement: main(), text: content.innerHTML, swap: "innerMorph" });
  document.dispatchEvent(new CustomEvent("shown"));
}

async function visit(address, { push = false, ...request } = {}) {
  // A second click on what is being sent already would do it twice.
  if (request.method === "POST" && state.posting) return;
  state.posting = request.method === "POST";
  state.busy?.abort();
  const mine = (state.busy = new AbortController());
  main().setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, {
      headers: { "X-Fragment": "1", ...(request.headers ?? {}) },
      credentials: "same-origin",
      signal: mine.signal,
      ...request,
    });
    // A page that needs a login, a file, or another face: the browser goes there itself.
    if (!answer.headers.get("content-type")?.startsWith("text/html") || answer.headers.has("X-Whole-Page")) {
      return location.assign(answer.url);
    }
    await show(await answer.text(), push ? answer.url : undefined);
    // What was sent was answered by a page that is at no address: what was refused and typed, or a password that is shown once. News would
    // take it away, so it stays until somebody does something about it.
    state.held = request.method === "POST" && !answer.redirected;
    fresh();
  } catch (error) {
    if (error.name !== "AbortError") stale();
  } finally {
    if (state.busy === mine) {
      state.busy = null;
      state.posting = false;
      main().removeAttribute("aria-busy");
      if (state.wanted) refresh();
    }
  }
}

// --- Live: topics say that something changed; the page asks for itself again, at most once a second. ---

const badge = document.getElementById("live");

function say(text, kind) {
  if (!badge || (badge.dataset.kind === kind && kind !== "stale")) return;
  badge.dataset.kind = kind;
  badge.querySelector("span").textContent = text;
}
function fresh() {
  state.since = null;
  say(state.paused ? "Paused" : "Live", state.paused ? "paused" : "live");
}
function stale() {
  if (state.paused) return;
  state.since ??= new Date();
  say(`Stale since ${state.since.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" })}`, "stale");
}

let last = 0;
let timer = null;
function refresh() {
  // News never cuts off what somebody has just asked for: that is shown first.
  if (state.paused || document.hidden || state.busy) return void (state.wanted = true);
  // Whoever is in the middle of something is not disturbed: a menu that is open, a text that is being typed.
  if (state.held || document.querySelector("dialog[open]") || document.activeElement?.matches("#main textarea, #main input[type=text]:not([data-calm])")) {
    state.wanted = true;
    return;
  }
  if (timer) return;
  timer = setTimeout(() => {
    timer = null;
    if (state.busy) return void (state.wanted = true);
    last = Date.now();
    state.wanted = false;
    visit(location.href);
  }, Math.max(0, 1000 - (Date.now() - last)));
}

function connect() {
  state.source?.close();
  state.source = null;
  if (!listening || document.hidden) return;
  const source = (state.source = new EventSource(`${document.body.dataset.root}/live?topics=${encodeURIComponent(listening)}`));
  source.addEventListener("hello", () => {
    if (state.since) refresh();
    fresh();
  });
  source.addEventListener("error", stale);
  for (const topic of listening.split(",")) source.addEventListener(topic, refresh);
}
document.addEventListener("visibilitychange", () => {
  connect();
  if (!document.hidden) refresh();
});
document.addEventListener("focusout", () => state.wanted && setTimeout(refresh, 50));
badge?.addEventListener("click", () => {
  state.paused = !state.paused;
  sessionStorage.setItem("paused", state.paused ? "1" : "0");
  badge.setAttribute("aria-pressed", String(state.paused));
  fresh();
  if (!state.paused) refresh();
});
if (listening) {
  badge?.setAttribute("aria-pressed", String(state.paused));
  fresh();
  connect();
  // Whatever is lost on the way: half a minute is the longest that a page is behind.
  setInterval(refresh, 30_000);
}
addEventListener("pagehide", () => state.source?.close());

// --- Links and forms in the content: no blank page between, and the address is always what is shown. ---

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("#main a[data-stay]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  visit(link.href.baseVal ?? link.href, { push: true });
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  const question = event.submitter?.dataset.confirm ?? form.dataset.confirm;
  if (question && !confirm(question)) return event.preventDefault();
  if (!form.closest("#main") || form.hasAttribute("data-plain")) return;
  event.preventDefault();
  const data = new FormData(form, event.submitter);
  const action = event.submitter?.getAttribute("formaction") ?? form.getAttribute("action") ?? location.href;
  if (form.method === "get") {
    const address = new URL(action, location.href);
    // Fields that say nothing stay out of the address.
    address.search = new URLSearchParams([...data].filter(([, value]) => value !== "")).toString();
    return void visit(address.href, { push: true });
  }
  const body = form.enctype === "multipart/form-data" ? data : new URLSearchParams(data);
  visit(action, { push: true, method: "POST", body });
});
document.addEventListener("change", (event) => {
  if (event.target.matches?.("#main form[data-auto] :is(select, input[type=checkbox], input[type=radio], input[type=date])")) event.target.form.requestSubmit();
});
addEventListener("popstate", () => visit(location.href));

// --- All or none of a list. ---
document.addEventListener("change", (event) => {
  if (!event.target.matches?.("#main input[data-all]")) return;
  for (const box of document.querySelectorAll(`#main input[name="${event.target.dataset.all}"]`)) box.checked = event.target.checked;
});

// --- Words for times grow old. ---
function ages() {
  const now = Date.now();
  for (const one of document.querySelectorAll("time[data-ago]")) {
    const seconds = (now - Date.parse(one.dateTime)) / 1000;
    const size = Math.abs(seconds);
    const words = size < 5 ? "just now" : size < 60 ? `${Math.floor(size)} s` : size < 3600 ? `${Math.floor(size / 60)} min` : size < 86400 ? `${Math.floor(size / 3600)} h` : `${Math.floor(size / 86400)} d`;
    const text = size < 5 ? words : seconds > 0 ? `${words} ago` : `in ${words}`;
    if (one.textContent !== text) one.textContent = text;
  }
}
setInterval(ages, 5000);

// --- Theme, copying, keys. ---
document.addEventListener("click", (event) => {
  const copied = event.target.closest?.("[data-copy]");
  const from = event.target.closest?.("[data-copy-from]");
  if (from) navigator.clipboard?.writeText(document.getElementById(from.dataset.copyFrom)?.textContent ?? "").then(() => {
    from.dataset.done = "";
    setTimeout(() => delete from.dataset.done, 1500);
  });
  if (copied) navigator.clipboard?.writeText(copied.dataset.copy).then(() => {
    copied.dataset.done = "";
    setTimeout(() => delete copied.dataset.done, 1500);
  });
  if (event.target.closest?.("#theme")) {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", document.documentElement.dataset.theme);
    document.dispatchEvent(new CustomEvent("shown"));
  }
  if (event.target.closest?.("[data-dialog]")) document.getElementById(event.target.closest("[data-dialog]").dataset.dialog)?.showModal();
  if (event.target.closest?.("[data-close]")) event.target.closest("dialog")?.close();
});

document.querySelector(".menu-toggle")?.addEventListener("click", (event) => {
  const open = event.currentTarget.getAttribute("aria-expanded") === "true";
  event.currentTarget.setAttribute("aria-expanded", String(!open));
});

// The search of what is shown, else the one at the top: that one says the key, so that it is never in two places.
function searched() {
  return document.querySelector("#main input[type=search]") ?? document.querySelector("#jump");
}
function slash() {
  const jump = document.querySelector("#jump");
  if (jump) jump.placeholder = `${jump.dataset.what}  ( ${searched() === jump ? "/" : "g /"} )`;
}
document.addEventListener("shown", slash);
slash();

let going = 0;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, [contenteditable], dialog")) return;
  if (event.key === "/") {
    // After g it is always the one at the top.
    const field = Date.now() - going < 1500 ? document.querySelector("#jump") : searched();
    going = 0;
    if (field) {
      event.preventDefault();
      field.focus();
      field.select();
    }
  } else if (event.key === "?") document.getElementById("keys")?.showModal();
  else if (event.key === "g") going = Date.now();
  else if (event.key === "t" && Date.now() - going > 1500) document.getElementById("theme")?.click();
  else if (event.key === "p" && Date.now() - going > 1500) badge?.click();
  else if (event.key === "r" && Date.now() - going > 1500) visit(location.href);
  else if (event.key === "j" && Date.now() - going > 1500) row(1);
  else if (event.key === "k" && Date.now() - going > 1500) row(-1);
  else if (Date.now() - going < 1500) {
    going = 0;
    document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`)?.click();
  }
});
function row(step) {
  const links = [...document.querySelectorAll("#main tbody a.row")];
  const at = links.indexOf(document.activeElement);
  links[Math.min(Math.max(at + step, 0), links.length - 1)]?.focus();
}
