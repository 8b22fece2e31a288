// Completion of a search, while it is typed: a combobox as the ARIA patterns describe it. Without it the field is a field.
(() => {
  "use strict";
  const field = () => document.querySelector("#main input[data-suggest]");
  const list = () => document.getElementById(field()?.getAttribute("aria-controls"));
  let found = [];
  let at = -1;
  let asked = 0;
  let timer = null;
  let of = ""; // the text that the suggestions are for

  function draw() {
    const input = field();
    const box = list();
    if (!input || !box) return;
    box.replaceChildren(...found.map((one, n) => {
      const option = document.createElement("div");
      option.id = `q-option-${n}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", String(n === at));
      const code = document.createElement("code");
      code.textContent = one.text;
      const about = document.createElement("span");
      about.textContent = one.about;
      option.append(code, about);
      return option;
    }));
    box.hidden = !found.length;
    input.setAttribute("aria-expanded", String(found.length > 0));
    if (at >= 0) {
      input.setAttribute("aria-activedescendant", `q-option-${at}`);
      box.children[at].scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }
  function close() {
    asked += 1;
    clearTimeout(timer);
    found = [];
    at = -1;
    draw();
  }
  async function ask() {
    const input = field();
    if (!input || document.activeElement !== input) return;
    const mine = (asked += 1);
    const text = input.value;
    const query = new URLSearchParams({ q: text, at: input.selectionStart ?? input.value.length });
    try {
      const answer = await fetch(`${input.dataset.suggest}?${query}`, { credentials: "same-origin" });
      if (!answer.ok || mine !== asked) return;
      const chosen = found[at]?.text;
      const fresh = await answer.json();
      if (mine !== asked) return;
      found = fresh;
      of = text;
      at = found.findIndex((one) => one.text === chosen);
      draw();
    } catch {
      // Suggestions are a help: without them one types on.
    }
  }
  function take(n) {
    const input = field();
    const one = found[n];
    if (!input || !one) return;
    const begun = one.text.endsWith(":");
    const text = begun ? one.text : `${one.text} `;
    // What was typed since they were asked for is replaced as well.
    const end = Math.max(one.start, one.end + input.value.length - of.length);
    input.setRangeText(text, one.start, Math.min(end, input.value.length), "end");
    close();
    input.focus();
    ask();
  }
  document.addEventListener("input", (event) => {
    if (event.target !== field()) return;
    clearTimeout(timer);
    timer = setTimeout(ask, 120);
  });
  document.addEventListener("focusin", (event) => event.target === field() && ask());
  document.addEventListener("focusout", (event) => event.target === field() && setTimeout(() => document.activeElement !== field() && close(), 150));
  document.addEventListener("keydown", (event) => {
    if (event.target !== field()) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!found.length) return void ask();
      at = event.key === "ArrowDown" ? (at + 1) % found.length : (at <= 0 ? found.length : at) - 1;
      draw();
    } else if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      take(at);
    } else if (event.key === "Escape") {
      // With a list it closes the list; without one it is the browser's, which empties the field.
      if (found.length) {
        event.preventDefault();
        event.stopPropagation();
      }
      close();
    } else if (event.key === "Tab" || event.key === "Enter") close();
  });
  document.addEventListener("mousedown", (event) => {
    const option = event.target.closest?.("#q-options [role=option]");
    if (!option) return;
    event.preventDefault();
    take([...option.parentElement.children].indexOf(option));
  });
  // The content was replaced: an open list stays open.
  document.addEventListener("shown", () => found.length && draw());
})();
