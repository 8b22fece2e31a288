// Before the first paint: the theme that was chosen, so that nothing flashes, and that scripts run here.
(() => {
  document.documentElement.dataset.js = "";
  if (localStorage.getItem("nav") === "icons") document.documentElement.dataset.nav = "icons";
  const kept = localStorage.getItem("theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
