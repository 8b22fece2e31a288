// Charts over time: `<div class="chart" data-chart="ID">` with `<script type="application/json" id="ID">`; without this file the table beside it says the same.
"use strict";
(() => {
  const drawn = new Map();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const day = (at) => new Date(at * 1000).toISOString();
  // As everywhere else on these pages: UTC, and the year first.
  const moments = (plot, all, _axis, _space, step) => all.map((at, place) => {
    const date = day(at).slice(0, 10), fresh = place === 0 || day(all[place - 1]).slice(0, 10) !== date;
    if (step >= 2419200) return date.slice(0, 7);
    if (step >= 86400) return date.slice(5) + (place === 0 || day(all[place - 1]).slice(0, 4) !== date.slice(0, 4) ? "\n" + date.slice(0, 4) : "");
    return day(at).slice(11, step < 60 ? 19 : 16) + (fresh ? "\n" + date : "");
  });
  function draw(box) {
    const source = document.getElementById(box.dataset.chart);
    if (!source) return;
    const told = source.textContent + (document.documentElement.dataset.theme ?? "") + dark.matches;
    if (drawn.get(box)?.told === told && box.firstChild) return;
    drawn.get(box)?.plot.destroy();
    const given = JSON.parse(source.textContent);
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const options = {
      width: box.clientWidth, height: given.height ?? 260, cursor: { y: false }, legend: { live: true },
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      scales: { x: { time: true }, y: { range: (_, low, high) => [given.zero === false ? low * 0.95 : 0, Math.max(high * 1.08, 1)] } },
      axes: [{ ...axis, space: 76, values: moments }, { ...axis, size: 62, values: (_, all) => all.map((one) => (given.prefix ?? "") + one.toLocaleString()) }],
      series: [{ label: "Time", value: (_, at) => (at == null ? "–" : day(at).slice(0, 19).replace("T", " ") + " UTC") }, ...given.series.map((one) => ({
        label: one.label, stroke: colour(one.colour), width: 2, spanGaps: false, points: { show: one.points ?? false },
        paths: one.steps ? uPlot.paths.stepped({ align: 1 }) : undefined, dash: one.dash, fill: one.fill ? colour(one.colour) + "22" : undefined,
        value: (_, value) => (value == null ? "–" : (given.prefix ?? "") + value.toLocaleString(undefined, { maximumFractionDigits: 2 })),
      }))],
      bands: (given.bands ?? []).map((one) => ({ series: one, fill: colour("--bar-good") + "33" })),
    };
    box.replaceChildren();
    drawn.set(box, { told, plot: new uPlot(options, given.data, box) });
  }
  const all = () => document.querySelectorAll(".chart[data-chart]").forEach(draw);
  document.addEventListener("shown", all);
  dark.addEventListener("change", all);
  addEventListener("resize", () => drawn.forEach(({ plot }, box) => plot.setSize({ width: box.clientWidth, height: plot.height })));
  all();
})();
