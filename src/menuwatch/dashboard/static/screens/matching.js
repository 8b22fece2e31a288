// Matching: a key presses the button that names it, so that pairs are judged one after the other. Without this file the buttons do the same.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || Date.now() - going < 1500) return;
  if (event.target.closest?.("input, textarea, select, [contenteditable], dialog") || !document.getElementById("pairs")) return;
  const key = event.key.toLowerCase();
  const button = key === "u" ? document.querySelector("#toasts form button") : document.querySelector(`#main [data-press="${CSS.escape(key)}"]`);
  // While an answer is on its way the pair that is shown is judged already.
  if (!button || document.getElementById("main").hasAttribute("aria-busy")) return;
  event.preventDefault();
  button.click();
}, true);
