// The timeline: what lies under the pointer, or is chosen with the arrow keys, is said in a card; a click or Enter opens the task, and
// dragging zooms. Without this file the tables and links of the page say and do the same.
(() => {
  const card = document.createElement("div");
  card.className = "chart-tip lane-card";
  card.setAttribute("role", "status");
  card.hidden = true;
  document.body.append(card);
  const mark = document.createElement("i");
  mark.className = "bar-mark";
  let given = null, source = "", chosen = null, drag = null, dragged = false;

  const box = () => document.getElementById("timeline");
  function read() {
    const text = document.getElementById(box()?.dataset.timeline ?? "")?.textContent ?? "";
    if (text !== source) {
      source = text;
      given = text ? JSON.parse(text) : null;
    }
    return given;
  }
  const end = (bar) => (bar[2] === null ? given.span : bar[1] + bar[2]);
  const word = (bar, at) => given.words[bar[at]];

  // The picture is stretched over its box: shares of its width are times, and its rows have their height in pixels.
  const share = (picture, x) => {
    const area = picture.getBoundingClientRect();
    return Math.min(Math.max((x - area.left) / area.width, 0), 1);
  };
  function under(lane, event) {
    const picture = lane.querySelector("svg"), area = picture?.getBoundingClientRect();
    const bars = given.lanes[lane.dataset.lane]?.bars;
    if (!bars || !area.width) return null;
    const at = share(picture, event.clientX) * given.span, row = Math.floor((event.clientY - area.top) / given.row);
    // Of bars that are hardly wider than a line the nearest within 4 pixels.
    let best = null, least = (4 / area.width) * given.span;
    for (const bar of bars) {
      if (bar[3] !== row) continue;
      const off = Math.max(bar[1] - at, at - end(bar), 0);
      if (off < least || (off === 0 && least === 0)) [best, least] = [bar, off];
    }
    return best;
  }

  function line(text, value) {
    const row = document.createElement("div");
    row.appendChild(document.createElement("span")).textContent = text;
    if (value !== undefined) row.appendChild(document.createElement("b")).textContent = value;
    return row;
  }
  function place(x, y) {
    card.hidden = false;
    const { width, height } = card.getBoundingClientRect();
    card.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - width - 8))}px`;
    card.style.top = `${y + 18 + height > innerHeight ? Math.max(8, y - height - 12) : y + 18}px`;
  }
  function hide() {
    card.hidden = true;
    chosen = null;
    mark.remove();
  }

  function show(lane, bar, x, y) {
    chosen = { lane: lane.dataset.lane, task: bar[0], x, y };
    const began = new Date(given.since + bar[1]), store = word(bar, 6), lines = [line(`Task ${bar[0]}`, word(bar, 5)), line("Role", word(bar, 4))];
    if (store !== null) lines.push(line("Store", store));
    lines.push(line("Worker", lane.dataset.name), line("Started", stamp(began)));
    lines.push(bar[2] === null ? line("Not finished", `for ${span((Date.now() - began) / 1000)}`) : line("Took", span(bar[2] / 1000)));
    card.replaceChildren(...lines);
    place(x, y);
    const from = Math.max(bar[1], 0) / given.span, wide = Math.max(Math.min(end(bar), given.span) / given.span - from, given.least);
    const picture = lane.querySelector("svg");
    const area = picture.getBoundingClientRect(), outer = lane.getBoundingClientRect();
    mark.style.left = `${area.left - outer.left + Math.min(from, 1 - wide) * area.width - 1}px`;
    mark.style.width = `${wide * area.width + 2}px`;
    mark.style.top = `${area.top - outer.top + bar[3] * given.row}px`;
    mark.style.height = `${given.row}px`;
    if (mark.parentElement !== lane) lane.append(mark);
  }
  function showDepth(lane, event) {
    const at = share(lane.querySelector("svg"), event.clientX), steps = given.depth.length;
    chosen = null;
    mark.remove();
    card.replaceChildren(line(stamp(new Date(given.since + at * given.span))), line("Tasks waiting, at most", given.depth[Math.min(Math.floor(at * steps), steps - 1)].toLocaleString("en")));
    place(event.clientX, event.clientY);
  }
  function open(task, event) {
    const address = given.task + task;
    if (event.ctrlKey || event.metaKey) window.open(address, "_blank", "noopener");
    else location.assign(address);
  }
  function zoom(lane, from, to) {
    const picture = lane.querySelector("svg"), times = [share(picture, Math.min(from, to)), share(picture, Math.max(from, to))];
    const address = new URL(location.href);
    address.searchParams.delete("hours");
    ["since", "until"].forEach((name, n) => address.searchParams.set(name, new Date(Math.round(given.since + times[n] * given.span)).toISOString()));
    visit(address.href, { push: true });
  }

  const laneOf = (event) => event.target.closest?.("#timeline td.lane");
  document.addEventListener("pointermove", (event) => {
    if (!box()) return;
    const lane = laneOf(event);
    if (drag) {
      const area = drag.lane.getBoundingClientRect(), [low, high] = [drag.x, event.clientX].sort((a, b) => a - b);
      drag.moved ||= high - low > 4;
      drag.band.hidden = !drag.moved;
      drag.band.style.left = `${Math.max(low - area.left, 0)}px`;
      drag.band.style.width = `${Math.min(high, area.right) - Math.max(low, area.left)}px`;
      if (drag.moved) return hide();
    }
    if (!lane || !read()) {
      if (!card.hidden && !document.activeElement?.matches("#timeline td.lane")) hide();
      return;
    }
    if (lane.hasAttribute("data-depth")) return showDepth(lane, event);
    const bar = under(lane, event);
    lane.classList.toggle("on-bar", Boolean(bar));
    if (bar) show(lane, bar, event.clientX, event.clientY);
    else hide();
  });
  document.addEventListener("pointerdown", (event) => {
    const lane = laneOf(event);
    if (!lane?.querySelector("svg") || event.button || event.pointerType !== "mouse" || event.target.closest("a") || !read()) return;
    const band = document.createElement("i");
    band.className = "lane-drag";
    band.hidden = true;
    lane.append(band);
    drag = { lane, x: event.clientX, moved: false, band };
    event.preventDefault();
  });
  document.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const { lane, x, moved, band } = drag;
    drag = null;
    band.remove();
    // The click that follows is none.
    dragged = moved;
    setTimeout(() => (dragged = false));
    if (moved && read()) zoom(lane, x, event.clientX);
  });
  document.addEventListener("pointercancel", () => (drag = drag?.band.remove() ?? null));
  // A finger has no hover: the first tap shows the card, the second opens the task.
  let tapped = null;
  document.addEventListener("click", (event) => {
    const lane = laneOf(event);
    if (dragged || !lane?.dataset.lane || !read()) return;
    const bar = under(lane, event);
    if (!bar) return;
    if (event.pointerType === "mouse" || tapped === bar[0]) return open(bar[0], event);
    tapped = bar[0];
    show(lane, bar, event.clientX, event.clientY);
  });

  document.addEventListener("keydown", (event) => {
    const lane = event.target;
    if (!lane.matches?.("#timeline td.lane[data-lane]") || event.altKey || !read()) return;
    const bars = given.lanes[lane.dataset.lane].bars, at = bars.findIndex((bar) => chosen?.lane === lane.dataset.lane && bar[0] === chosen.task);
    const to = { ArrowRight: at + 1, ArrowLeft: at < 0 ? bars.length - 1 : at - 1, Home: 0, End: bars.length - 1 }[event.key];
    if (event.key === "Enter" && at >= 0) open(bars[at][0], event);
    else if (event.key === "Escape") hide();
    else if (event.key === "+" || event.key === "-") document.querySelector(`[data-zoom=${event.key === "+" ? "in" : "out"}]`)?.click();
    else if (to !== undefined && bars[to]) {
      const bar = bars[to], area = lane.querySelector("svg").getBoundingClientRect();
      show(lane, bar, area.left + (Math.max(bar[1], 0) / given.span) * area.width, area.top + bar[3] * given.row);
    } else if (to === undefined) return;
    event.preventDefault();
  });
  document.addEventListener("focusout", (event) => event.target.matches?.("#timeline td.lane") && hide());
  addEventListener("scroll", () => !card.hidden && hide(), { passive: true });

  // Lanes take the focus only where the arrow keys do something.
  function prepare() {
    if (!read()) return void (card.hidden || hide());
    for (const lane of document.querySelectorAll("#timeline td.lane[data-lane]")) {
      lane.tabIndex = 0;
      const said = `Tasks of ${lane.dataset.name}: arrow keys move between them`;
      if (lane.getAttribute("aria-label") !== said) lane.setAttribute("aria-label", said);
    }
    if (!chosen) return;
    const lane = document.querySelector(`#timeline td.lane[data-lane="${CSS.escape(chosen.lane)}"]`);
    const bar = lane && given.lanes[chosen.lane]?.bars.find((one) => one[0] === chosen.task);
    if (bar) show(lane, bar, chosen.x, chosen.y);
    else hide();
  }
  document.addEventListener("shown", prepare);
  prepare();
})();
