// The navigation: counts that stay current, and names that can be folded away (theme.js does that before the first paint).
(() => {
  "use strict";
  document.addEventListener("shown", (event) => {
    const text = event.detail?.counts;
    if (!text) return;
    const counts = JSON.parse(text);
    for (const one of document.querySelectorAll("[data-count]")) {
      const badge = counts[one.dataset.count];
      one.hidden = !badge;
      one.firstElementChild.textContent = badge?.text ?? "";
      one.lastElementChild.textContent = badge ? ` ${badge.what}` : "";
    }
  });
  const fold = document.getElementById("fold");
  function draw() {
    const folded = document.documentElement.dataset.nav === "icons";
    fold?.setAttribute("aria-expanded", String(!folded));
    if (fold) fold.textContent = folded ? "»" : "Collapse";
    fold?.setAttribute("aria-label", folded ? "» Show names" : "Collapse");
  }
  fold?.addEventListener("click", () => {
    const root = document.documentElement;
    if (root.dataset.nav === "icons") delete root.dataset.nav;
    else root.dataset.nav = "icons";
    localStorage.setItem("nav", root.dataset.nav ?? "");
    draw();
  });
  draw();
})();
