// The palette (Ctrl+K or ⌘K): the search page's results in a dialog, with what was opened last.
(() => {
  "use strict";
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  const field = dialog.querySelector("input");
  const list = dialog.querySelector(".hits");
  const RECENT = "recent";
  let asked = 0;
  let timer = null;

  function recents() {
    try {
      return JSON.parse(localStorage.getItem(RECENT) ?? "[]").filter((one) => typeof one.name === "string" && String(one.href).startsWith("/"));
    } catch {
      return [];
    }
  }
  function remember(link) {
    const one = { name: link.querySelector("span").textContent, href: link.getAttribute("href") };
    const rest = recents().filter((other) => other.href !== one.href);
    localStorage.setItem(RECENT, JSON.stringify([one, ...rest].slice(0, 6)));
  }
  function recent() {
    const found = recents();
    if (!found.length) return [];
    const title = document.createElement("h2");
    title.textContent = "Recent";
    const items = document.createElement("ul");
    for (const one of found) {
      const link = document.createElement("a");
      link.className = "hit";
      link.href = one.href;
      link.append(document.createElement("span"));
      link.firstChild.textContent = one.name;
      items.appendChild(document.createElement("li")).append(link);
    }
    return [title, items];
  }
  async function ask() {
    const mine = (asked += 1);
    const text = field.value.trim();
    try {
      const answer = await fetch(`${document.body.dataset.root}/search?${new URLSearchParams({ q: text })}`, {
        headers: { "X-Fragment": "1" },
        credentials: "same-origin",
      });
      if (!answer.ok || answer.headers.has("X-Whole-Page") || mine !== asked) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (mine !== asked) return;
      const hits = [...(page.getElementById("hits")?.children ?? [])].map((one) => document.adoptNode(one));
      list.replaceChildren(...(text ? [] : recent()), ...hits);
      list.dataset.of = text;
    } catch {
      // Without an answer the last one stays; Enter opens the page of results, which says what is wrong.
    }
  }
  function open() {
    if (dialog.open) return;
    field.value = "";
    list.replaceChildren(...recent());
    dialog.showModal();
    field.focus();
    ask();
  }
  document.addEventListener("keydown", (event) => {
    if ((event.metaKey || event.ctrlKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
    }
  });
  document.addEventListener("click", (event) => event.target.closest?.("[data-palette]") && open());
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 100);
  });
  dialog.addEventListener("keydown", (event) => {
    const hits = [...list.querySelectorAll(".hit")];
    const at = hits.indexOf(document.activeElement);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const next = at + (event.key === "ArrowDown" ? 1 : -1);
      (next < 0 ? field : hits[Math.min(next, hits.length - 1)])?.focus();
    } else if (event.key === "Enter" && event.target === field) {
      event.preventDefault();
      // Results of what was typed before are not what Enter is meant for.
      if (list.dataset.of === field.value.trim() && hits.length) hits[0].click();
      else location.assign(`${document.body.dataset.root}/jump?${new URLSearchParams({ q: field.value.trim() })}`);
    } else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && event.target.matches(".hit") && event.key !== " ") field.focus();
  });
  list.addEventListener("click", (event) => {
    const link = event.target.closest("a.hit");
    if (link) remember(link);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.closest("#palette") && !event.submitter?.dataset.confirm) dialog.close();
  });
  // The question before an action lies above the palette; when it was answered, the palette is done.
  document.getElementById("confirm")?.addEventListener("close", () => dialog.open && dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
})();
