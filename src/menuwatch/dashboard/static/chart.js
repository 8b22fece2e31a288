// Charts over time: <div class="chart" data-chart="ID"> with its data in <script type="application/json" id="ID">, as charts/time_chart.py and
// the macro in chart.html write them. Drag to zoom; charts of one group share zoom and cursor. Without this file the table below says the same.
"use strict";
(() => {
  const drawn = new Map();
  const zoomed = new Map();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const iso = (at) => new Date(at * 1000).toISOString();
  const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

  function bytes(count) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let at = 0;
    for (; Math.abs(count) >= 1000 && at < 4; at++) count /= 1000;
    return `${at && Math.abs(count) < 100 ? +count.toFixed(1) : Math.round(count)} ${units[at]}`;
  }
  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });
  function money(currency) {
    const written = (least) => new Intl.NumberFormat("en-US", { style: "currency", currency, minimumFractionDigits: least, maximumFractionDigits: 2 }).format;
    return { axis: written(0), full: written(2) };
  }
  const percent = (value) => `${+(value * 100).toFixed(1)} %`;
  // How values are written beside the axis and in full, and the steps that the axis may take.
  const UNITS = {
    count: { axis: (value) => (Math.abs(value) < 10000 ? number(value) : compact.format(value)), full: number, steps: [1, 2, 5].flatMap((n) => [0, 1, 2, 3, 4, 5, 6, 7, 8].map((e) => n * 10 ** e)).sort((a, b) => a - b) },
    number: { axis: number, full: number },
    seconds: { axis: span, full: span, steps: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000] },
    percent: { axis: percent, full: percent },
    bytes: { axis: bytes, full: bytes },
  };
  const unitOf = (given) => (given.unit === "money" ? money(given.currency) : UNITS[given.unit]);

  // In the zone that is chosen for all times of the pages, the year first. Intervals of a day are days of UTC.
  const local = (given) => zone.local && !(given.step >= 86400);
  const shown = (given, at) => {
    if (local(given)) return parts(new Date(at * 1000));
    const text = iso(at);
    return { day: text.slice(0, 10), time: text.slice(11, 19) };
  };
  const moments = (given) => (plot, all, _axis, _space, step) => all.map((at, place) => {
    const { day, time } = shown(given, at), before = place === 0 ? "" : shown(given, all[place - 1]).day;
    if (step >= 2419200) return day.slice(0, 7);
    if (step >= 86400) return day.slice(5) + (before.slice(0, 4) !== day.slice(0, 4) ? "\n" + day.slice(0, 4) : "");
    return time.slice(0, step < 60 ? 8 : 5) + (before !== day ? "\n" + day : "");
  });
  const when = (given, at) => {
    const { day, time } = shown(given, at), exact = given.step && given.step % 60 === 0 ? 5 : 8;
    const name = local(given) ? zoneName(new Date(at * 1000)) : "UTC";
    if (!given.step) return `${day} ${time} ${name}`;
    return given.step >= 86400 ? day : `${day} ${time.slice(0, exact)}–${shown(given, at + given.step).time.slice(0, exact)} ${name}`;
  };

  // Stacked series are drawn as sums, the highest first, so that each covers the part of those below it.
  function heights(given, hidden) {
    if (given.kind !== "stack") return given.series.map((one) => one.values);
    const sums = given.times.map(() => 0);
    return given.series.map((one, n) => one.line ? one.values : one.values.map((value, at) => (hidden.has(n) ? null : (sums[at] += value ?? 0))));
  }
  const placed = (given) => {
    const order = given.series.map((_, n) => n);
    return given.kind === "stack" ? [...order.filter((n) => !given.series[n].line).reverse(), ...order.filter((n) => given.series[n].line)] : order;
  };

  // What lies under the pointer: the interval or step that began last, else the nearest moment.
  function under(plot, given) {
    const { idx, left } = plot.cursor;
    if (idx == null || left < 0 || !(given.step || given.series.some((one) => one.steps))) return idx;
    const x = plot.posToVal(left, "x");
    return given.times[idx] > x && idx > 0 ? idx - 1 : idx;
  }

  function tooltip(given, order) {
    const box = document.createElement("div");
    box.className = "chart-tip";
    const line = (text, tone, value) => {
      const row = document.createElement("div");
      if (tone) { const mark = row.appendChild(document.createElement("i")); mark.style.background = colour(`--bar-${tone}`); }
      row.appendChild(document.createElement("span")).textContent = text;
      if (value != null) row.appendChild(document.createElement("b")).textContent = value;
      return row;
    };
    return {
      hooks: {
        init: (plot) => plot.over.append(box),
        setCursor: (plot) => {
          const at = under(plot, given);
          box.hidden = at == null || plot.cursor.left < 0;
          if (box.hidden) return;
          const visible = given.series.map((one, n) => [one, n]).filter(([, n]) => plot.series[order.indexOf(n) + 1].show);
          const values = visible.map(([one]) => one.values[at]);
          const { full } = unitOf(given);
          box.replaceChildren(line(when(given, given.times[at])), ...visible.map(([one], n) => line(one.label, one.color, values[n] == null ? "–" : full(values[n]))));
          if (given.partial && at === given.times.length - 1) box.append(line("Incomplete: this interval has not ended."));
          if (given.href) box.append(line("Click to list the tasks."));
          const left = plot.cursor.left, wide = plot.over.clientWidth;
          box.style.left = left > wide / 2 ? "" : `${left + 14}px`;
          box.style.right = left > wide / 2 ? `${wide - left + 14}px` : "";
        },
      },
    };
  }

  // The last interval has not ended: its ground is hatched.
  function hatch(given) {
    return (plot) => {
      if (!given.partial || !given.times.length) return;
      const { ctx, bbox } = plot;
      const from = Math.max(plot.valToPos(given.times.at(-1), "x", true), bbox.left), to = bbox.left + bbox.width;
      if (from >= to) return;
      ctx.save();
      ctx.beginPath();
      ctx.rect(from, bbox.top, to - from, bbox.height);
      ctx.clip();
      ctx.strokeStyle = colour("--line-strong");
      ctx.lineWidth = devicePixelRatio;
      ctx.beginPath();
      for (let x = from - bbox.height; x < to; x += 7 * devicePixelRatio) { ctx.moveTo(x, bbox.top + bbox.height); ctx.lineTo(x + bbox.height, bbox.top); }
      ctx.stroke();
      ctx.restore();
    };
  }

  function zoom(group, range) {
    if (range) zoomed.set(group, range); else zoomed.delete(group);
    for (const [box, { plot, given }] of drawn) {
      if ((given.group || box.id) !== group) continue;
      plot.setScale("x", range ?? bounds(given));
      button(box, Boolean(range));
    }
  }
  const button = (box, shown) => box.parentElement?.querySelectorAll("[data-zoom-out]").forEach((one) => (one.hidden = !shown));
  const bounds = (given) => ({ min: given.times[0], max: given.times.at(-1) + (given.step ?? 0) });

  function options(box, given, order) {
    const unit = unitOf(given);
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "12px Inter, system-ui, sans-serif" };
    const group = given.group || box.id;
    const bars = uPlot.paths.bars({ size: [0.86, 60], align: 1 }), stepped = uPlot.paths.stepped({ align: 1 });
    const hidden = new Set();
    return {
      width: box.clientWidth, height: given.height, legend: { live: false, show: given.series.length > 1 },
      cursor: { y: false, sync: given.group ? { key: given.group, setSeries: false, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } } : undefined, drag: { x: true, y: false, setScale: false }, points: { show: given.kind !== "stack" } },
      tzDate: (at) => (local(given) ? new Date(at * 1000) : uPlot.tzDate(new Date(at * 1000), "Etc/UTC")),
      scales: { x: { time: true, range: (_, low, high) => (low == null ? [0, 1] : [low, high]) }, y: { range: (_, low, high) => [given.zero ? 0 : (low ?? 0) * 0.95, Math.max((high ?? 0) * 1.08, unit === UNITS.count ? 1 : 1e-3)] } },
      axes: [{ ...axis, space: 76, values: moments(given) }, { ...axis, size: 64, space: 34, incrs: unit.steps, values: (_, all) => all.map(unit.axis) }],
      series: [{}, ...order.map((n) => {
        const one = given.series[n], tone = colour(`--bar-${one.color}`), column = given.kind === "stack" && !one.line;
        return {
          label: one.label, stroke: tone, width: column ? 0 : 2, spanGaps: false, points: { show: !column && !one.steps && one.values.filter((value) => value != null).length < 40, size: 4 },
          paths: column ? bars : one.steps ? stepped : undefined, dash: one.dash ? [5, 4] : undefined, fill: column ? tone : one.fill ? tone + "22" : undefined,
        };
      })],
      bands: given.bands.map((one) => ({ series: one, fill: colour("--bar-good") + "33" })),
      plugins: [tooltip(given, order)],
      hooks: {
        drawAxes: [hatch(given)],
        setSelect: [(plot) => {
          const { left, width } = plot.select;
          if (width > 4) zoom(group, { min: plot.posToVal(left, "x"), max: plot.posToVal(left + width, "x") });
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
        setSeries: [(plot, place) => {
          if (place == null || given.kind !== "stack") return;
          const n = order[place - 1];
          if (plot.series[place].show) hidden.delete(n); else hidden.add(n);
          const data = heights(given, hidden);
          plot.setData([given.times, ...order.map((m) => data[m])], false);
          plot.setScale("x", zoomed.get(group) ?? bounds(given));
        }],
        init: [(plot) => {
          let down = null;
          plot.over.addEventListener("mousedown", (event) => (down = event.clientX));
          plot.over.addEventListener("click", (event) => {
            const at = under(plot, given);
            if (!given.href || at == null || down == null || Math.abs(event.clientX - down) > 4) return;
            const address = given.href.replaceAll("{from}", iso(given.times[at]).slice(0, 19) + "Z").replaceAll("{to}", iso(given.times[at] + given.step).slice(0, 19) + "Z");
            if (event.ctrlKey || event.metaKey) open(address, "_blank", "noopener"); else location.assign(address);
          });
          plot.over.addEventListener("dblclick", () => zoom(group, null));
          if (given.href) plot.over.classList.add("clickable");
        }],
      },
    };
  }

  function draw(box) {
    const source = document.getElementById(box.dataset.chart);
    if (!source) return;
    const content = source.textContent + (document.documentElement.dataset.theme ?? "") + dark.matches + zone.local;
    const before = drawn.get(box), given = before?.content === content ? before.given : JSON.parse(source.textContent);
    const group = given.group || box.id;
    if (before?.content !== content || !box.firstChild) {
      before?.plot.destroy();
      box.replaceChildren();
      if (!given.times.length) return void drawn.delete(box);
      const order = placed(given), data = heights(given, new Set());
      const plot = new uPlot(options(box, given, order), [given.times, ...order.map((n) => data[n])], box);
      drawn.set(box, { content, given, plot });
      plot.setScale("x", zoomed.get(group) ?? bounds(given));
    }
    button(box, zoomed.has(group));
  }
  function all() {
    for (const [box, { plot }] of drawn) {
      if (box.isConnected) continue;
      plot.destroy();
      drawn.delete(box);
    }
    document.querySelectorAll(".chart[data-chart]").forEach(draw);
  }
  document.addEventListener("click", (event) => {
    const box = event.target.closest?.("[data-zoom-out]")?.parentElement.querySelector(".chart");
    if (box && drawn.has(box)) zoom(drawn.get(box).given.group || box.id, null);
  });
  document.addEventListener("shown", all);
  dark.addEventListener("change", all);
  addEventListener("resize", () => drawn.forEach(({ plot }, box) => plot.setSize({ width: box.clientWidth, height: plot.height })));
  all();
})();
