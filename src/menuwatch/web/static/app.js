// What the dashboard's pages do beyond what HTML does. Every page works without it; with it, pages are live and keep their place.
"use strict";

const main = () => document.getElementById("main");
const state = { topics: "", paused: sessionStorage.getItem("paused") === "1", since: null, busy: null, wanted: false, source: null };
// The page's own path: an address of another one is opened by the browser, which then does all that a page needs (scripts, scroll, focus).
const path = location.pathname;

// --- Refresh the content in place: focus, scroll, open details and what is being typed stay. ---

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

async function show(fresh) {
  const content = fresh.getElementById("main");
  if (!content) return location.reload();
  keepState(fresh);
  toast(content);
  if (fresh.title) document.title = fresh.title;
  await htmx.swap({ target: main(), sourceElement: main(), text: content.innerHTML, swap: "innerMorph" });
  listen(fresh.body.dataset.live ?? "");
  document.dispatchEvent(new CustomEvent("shown", { detail: fresh.body.dataset }));
}

function go(address) {
  state.leaving = true;
  main().setAttribute("aria-busy", "true");
  location.assign(address);
}

// Where a keyboard or a screen reader goes on after a change of the content: the first wrong field, else the heading.
function lead(top) {
  const target = main().querySelector("[aria-invalid=true]") ?? main().querySelector("h1");
  if (!target) return;
  if (target.matches("h1")) target.tabIndex = -1;
  target.focus({ preventScroll: top });
  if (top && target.matches("h1")) scrollTo(0, 0);
}

// `push`: the address gets an entry in the browser's history. `top`: what is shown is read from its top.
async function visit(address, { push = false, top = false, ...request } = {}) {
  // A second click on what is being sent already would do it twice.
  if (state.leaving || (request.method === "POST" && state.posting)) return;
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
    const next = answer.headers.get("X-Location");
    if (next) {
      const there = new URL(next, location.href);
      if (there.pathname !== path) return go(there.href);
      // The page that the form was on: it stays where it is, with the message.
      state.posting = false;
      return await visit(there.href, { push: true });
    }
    // A page that needs a login, or a file: the browser goes there itself.
    if (!answer.headers.get("content-type")?.startsWith("text/html") || answer.headers.has("X-Whole-Page")) return go(answer.url);
    // A server that cannot answer now does not take away what is shown.
    if (!push && answer.status >= 500) return stale();
    const posted = request.method === "POST";
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    // A proxy's page, not ours: nothing says what became of the form, and what was typed stays.
    if (posted && !page.getElementById("main")) return complain(`Unexpected response (HTTP ${answer.status}). ${UNSURE}`);
    // What was sent was answered by a page that is at no address: what was refused and typed, a preview, or a password that is shown once.
    // News would take it away, so it stays until the user acts on it, and is not live. Its entry in the history is that of the page before.
    const entry = posted ? (answer.ok ? location.href : null) : push && answer.url !== location.href ? answer.url : null;
    if (entry) {
      history.replaceState({ ...history.state, y: scrollY }, "");
      history.pushState({}, "", entry);
    }
    state.held = posted;
    await show(page);
    if (posted || top) lead(posted ? answer.ok : true);
    fresh();
  } catch (error) {
    if (error.name === "AbortError") return;
    stale();
    if (request.method === "POST") complain(`No response from the server. ${UNSURE}`);
    else if (push) complain("No response from the server. Try again later.");
  } finally {
    if (state.busy === mine) {
      state.busy = null;
      state.posting = false;
      if (!state.leaving) main().removeAttribute("aria-busy");
      if (state.wanted) refresh();
    }
  }
}

// --- Messages about the last action: beside the page, so that they do not push it. A new one replaces the last; errors stay. ---

const GOOD_MS = 10_000;
const UNDO_MS = 20_000;
let leaves = null;

function toast(content) {
  const said = content.querySelector(".flash");
  if (!said) return;
  said.remove();
  const region = document.getElementById("toasts");
  region.replaceChildren(document.adoptNode(said));
  clearTimeout(leaves);
  if (said.matches(".good")) leaves = setTimeout(function away() {
    // Not while it is read or its button is about to be pressed.
    if (region.matches(":hover, :focus-within")) leaves = setTimeout(away, 2000);
    else said.remove();
  }, said.querySelector("form") ? UNDO_MS : GOOD_MS);
}
const UNSURE = "Check whether the change was made before you send it again; what you entered is still here.";

// What the user asked for did not come.
function complain(text) {
  const content = document.createElement("div");
  content.innerHTML = '<div class="notice bad flash" role="alert"><p></p><button type="button" class="button quiet small" data-dismiss aria-label="Dismiss">×</button></div>';
  content.querySelector("p").textContent = text;
  toast(content);
}
document.addEventListener("click", (event) => event.target.closest?.("[data-dismiss]")?.closest(".flash").remove());

// --- Live: topics say that something changed; the page asks for itself again, at most once a second. ---

const badge = document.getElementById("live");

function say(text, kind) {
  if (!badge) return;
  // Only a page that listens, and that news may change, can be live.
  badge.hidden = !state.topics || Boolean(state.held);
  if (badge.dataset.kind === kind && kind !== "stale") return;
  badge.dataset.kind = kind;
  badge.querySelector("span").textContent = text;
}
function fresh() {
  state.since = null;
  if (state.paused) say("Paused", "paused");
  else if (state.greeted) say("Live", "live");
  else say("Connecting", "connecting");
}
function stale() {
  if (state.paused) return;
  state.since ??= new Date();
  say(`Stale since ${clock(state.since)}`, "stale");
}

// Fields that text is typed into: those without a type too. A search field keeps its text on every refresh.
const TYPED = "#main textarea, #main input:not([type=checkbox], [type=radio], [type=file], [type=search], [data-calm])";
let last = 0;
let timer = null;
function refresh() {
  if (!state.topics || state.leaving) return;
  // An update never interrupts a page the user has just requested: that is shown first.
  if (state.paused || document.hidden || state.busy) return void (state.wanted = true);
  // Do not interrupt the user: an open dialog, a text being typed.
  if (state.held || document.querySelector("dialog[open]") || document.activeElement?.matches(TYPED)) {
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

function listen(topics) {
  if (topics === state.topics) return;
  state.topics = topics;
  connect();
  fresh();
}
function connect() {
  state.source?.close();
  state.source = null;
  state.greeted = false;
  if (!state.topics || document.hidden) return;
  const source = (state.source = new EventSource(`${document.body.dataset.root}/live?topics=${encodeURIComponent(state.topics)}`));
  source.addEventListener("hello", () => {
    state.greeted = true;
    // Changes are followed from here on; a page that was requested long before, or a stream that came again, may have missed some.
    if (state.since || performance.now() > 1000) refresh();
    fresh();
  });
  source.addEventListener("error", () => {
    state.greeted = false;
    stale();
  });
  for (const topic of state.topics.split(",")) source.addEventListener(topic, refresh);
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
badge?.setAttribute("aria-pressed", String(state.paused));
listen(document.body.dataset.live ?? "");
// Whatever is lost on the way: half a minute is the longest that a page is behind.
setInterval(refresh, 30_000);
addEventListener("pagehide", () => state.source?.close());
// The browser kept the page as it was left, and shows it again.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  state.leaving = state.posting = false;
  main().removeAttribute("aria-busy");
  connect();
  fresh();
  refresh();
});

// --- Links and forms in the content: no blank page between, and the address is always what is shown. ---

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("#main a[data-stay]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const address = new URL(link.href.baseVal ?? link.href, location.href);
  if (address.pathname !== path) return;
  event.preventDefault();
  visit(address.href, { push: true, top: Boolean(link.closest(".pager")) });
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || !form.closest("#main, #toasts, #palette") || form.hasAttribute("data-plain")) return;
  event.preventDefault();
  const data = new FormData(form, event.submitter);
  const action = event.submitter?.getAttribute("formaction") ?? form.getAttribute("action") ?? location.href;
  if (form.method === "get") {
    const address = new URL(action, location.href);
    // Fields that say nothing stay out of the address.
    address.search = new URLSearchParams([...data].filter(([, value]) => value !== "")).toString();
    return void (address.pathname === path ? visit(address.href, { push: true }) : go(address.href));
  }
  const body = form.enctype === "multipart/form-data" ? data : new URLSearchParams(data);
  visit(action, { push: true, method: "POST", body });
});
document.addEventListener("change", (event) => {
  if (event.target.matches?.("#main form[data-auto] :is(select, input[type=checkbox], input[type=radio], input[type=date], input[data-date])")) event.target.form.requestSubmit();
});
addEventListener("popstate", async (event) => {
  await visit(location.href);
  if (event.state?.y !== undefined) scrollTo(0, event.state.y);
});
toast(document);

// --- All or none of a list. ---
document.addEventListener("change", (event) => {
  if (!event.target.matches?.("#main input[data-all]")) return;
  for (const box of document.querySelectorAll(`#main input[name="${event.target.dataset.all}"]`)) box.checked = event.target.checked;
});

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
  else if (event.key === "z" && Date.now() - going > 1500) document.getElementById("zone")?.click();
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
  let at = links.indexOf(document.activeElement);
  if (at < 0) at = links.findIndex((link) => link.hasAttribute("aria-current"));
  const link = links[Math.min(Math.max(at + step, 0), links.length - 1)];
  link?.focus();
  // A list beside what it lists opens the row at once.
  if (link?.hasAttribute("data-open")) link.click();
}
