// Times: their age, their full text in the chosen zone (UTC, or this computer's), and a copy of it by a click.
"use strict";

const zone = { local: localStorage.getItem("zone") === "local" };
const two = (n) => String(n).padStart(2, "0");

function parts(moment) {
  const on = (name) => (zone.local ? moment[`get${name}`]() : moment[`getUTC${name}`]());
  return { day: `${on("FullYear")}-${two(on("Month") + 1)}-${two(on("Date"))}`, time: `${two(on("Hours"))}:${two(on("Minutes"))}:${two(on("Seconds"))}` };
}
function zoneName(moment) {
  if (!zone.local) return "UTC";
  return new Intl.DateTimeFormat("en-US", { timeZoneName: "short" }).formatToParts(moment).find((part) => part.type === "timeZoneName").value;
}
function clock(moment) {
  return parts(moment).time;
}
function stamp(moment) {
  const { day, time } = parts(moment);
  return `${day} ${time} ${zoneName(moment)}`;
}
function span(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${+seconds.toFixed(1)} s`;
  const [big, small, size, rest] = seconds < 3600 ? ["min", "s", 60, 1] : seconds < 86400 ? ["h", "min", 3600, 60] : ["d", "h", 86400, 3600];
  const over = Math.floor((Math.round(seconds) % size) / rest);
  return `${Math.floor(Math.round(seconds) / size)} ${big}` + (over ? ` ${over} ${small}` : "");
}
function age(moment) {
  const seconds = (Date.now() - moment) / 1000;
  const size = Math.abs(seconds);
  if (size < 5) return "just now";
  const words = size < 60 ? `${Math.floor(size)} s` : size < 3600 ? `${Math.floor(size / 60)} min` : size < 86400 ? `${Math.floor(size / 3600)} h` : `${Math.floor(size / 86400)} d`;
  return seconds > 0 ? `${words} ago` : `in ${words}`;
}
function times() {
  for (const one of document.querySelectorAll("time[datetime]")) {
    // A day is the same in all zones.
    if (!one.dateTime.includes("T")) continue;
    const moment = new Date(one.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    const full = stamp(moment);
    if (one.title !== full) one.title = full;
    const { day, time } = parts(moment);
    const kind = one.dataset.time;
    const text = "ago" in one.dataset ? age(moment) : kind === "stamp" ? full : kind === "minute" ? time.slice(0, 5) : kind === "clock" ? time : kind === "day" ? day : kind === "to-minute" ? `${day} ${time.slice(0, 5)}` : kind === "to-second" ? `${day} ${time}` : null;
    if (text !== null && one.textContent !== text) one.textContent = text;
  }
  for (const one of document.querySelectorAll("[data-zone]")) one.textContent = zone.local ? zoneName(new Date()) : "UTC";
}
setInterval(times, 5000);
document.addEventListener("shown", times);
document.addEventListener("click", (event) => {
  if (event.target.closest?.("#zone")) {
    zone.local = !zone.local;
    localStorage.setItem("zone", zone.local ? "local" : "utc");
    times();
    document.dispatchEvent(new CustomEvent("shown"));
    return;
  }
  const one = event.target.closest?.("time[datetime]");
  if (!one || one.closest("a, button, label, summary")) return;
  navigator.clipboard?.writeText(one.title || one.dateTime).then(() => {
    one.dataset.done = "";
    setTimeout(() => delete one.dataset.done, 1500);
  });
});
times();
