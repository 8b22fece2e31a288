// Which columns a table shows, chosen in the menu beneath it and remembered in this browser. Without JavaScript all are shown.
(() => {
  "use strict";
  document.documentElement.dataset.chooser = "";
  const key = (name) => `columns:${name}`;
  function hiddenOf(name) {
    try {
      return new Set(JSON.parse(localStorage.getItem(key(name)) || "[]"));
    } catch {
      return new Set();
    }
  }
  function apply(table) {
    const hidden = hiddenOf(table.dataset.columns);
    [...table.tHead.rows[0].cells].forEach((head, n) => {
      if (!head.dataset.column) return;
      for (const row of table.rows) if (row.cells[n]) row.cells[n].hidden = hidden.has(head.dataset.column);
    });
    for (const tick of document.querySelectorAll(`#columns-${table.dataset.columns} input`)) tick.checked = !hidden.has(tick.value);
  }
  const all = () => document.querySelectorAll("#main table[data-columns]").forEach(apply);
  document.addEventListener("change", (event) => {
    const name = event.target.closest?.(".columns")?.dataset.of;
    if (!name) return;
    const hidden = hiddenOf(name);
    hidden[event.target.checked ? "delete" : "add"](event.target.value);
    try {
      localStorage.setItem(key(name), JSON.stringify([...hidden]));
    } catch {
      // Private windows may refuse it: the choice lasts as long as the page.
    }
    all();
  });
  document.addEventListener("shown", all);
  all();
})();
