"use strict";
// The values under the pointer, a click or Enter for a window, a drag for a range of time, the search, and asking for the
// page again. The page is complete without any of it: whatever can be chosen stands in the address.

const SECONDS = 5;
const tip = document.getElementById("tip");
const live = document.getElementById("live");
const band = document.getElementById("drag");
const search = document.getElementById("search");
let shown = null; // the plot and bin whose values are shown
let drag = null; // where one began: the plot, its bin, and x

const percent = (share) => `${(share * 100).toFixed(Math.abs(share) < 0.1 ? 2 : 1)} %`;

function valuesOf(plot) {
  const stream = plot.closest("[data-stream]");
  const script = stream && stream.querySelector("script.values");
  if (!script) return null;
  script.parsed ??= JSON.parse(script.textContent);
  return script.parsed;
}

function number(value) {
  return value.toPrecision(3);
}

function words(plot, values, bin, row) {
  const lines = [values.time[bin], values.verdict[bin]];
  const shows = plot.dataset.shows;
  if (shows.startsWith("class:")) {
    const number = shows.slice(6);
    const [share, low, high] = values.class[number][bin];
    const interval = high - low < 1 ? ` (${percent(low)} to ${percent(high)})` : "";
    lines.push(`${values.names[number]}: ${percent(share)}${interval}`);
  } else if (shows.startsWith("measure:")) {
    const name = shows.slice(8);
    const known = values.measure[name][bin];
    lines.push(known ? `${name}: ${number(known[0])} (${number(known[1])} to ${number(known[2])})` : `${name}: not said`);
  } else if (shows.startsWith("spread:")) {
    const known = values[shows][bin];
    lines.push(known ? `${shows.slice(7)}: ${number(known[1])} (eight of ten ${number(known[0])} to ${number(known[2])})` : "not known");
  } else if (shows.startsWith("outcome:")) {
    const known = values[shows][bin];
    lines.push(!known ? "no labels" : `error ${known[0]}${known[1] === null ? "" : `, ${known[1]} with what was estimated`}`);
  } else if (shows === "quality" && values.quality[row] !== undefined) {
    lines.push(`${values.quality[row]}: ${percent(values.wrong[row][bin])}`);
  } else if (shows === "error") {
    lines.push(values.errors[bin] === null ? "no labels" : `error ${values.errors[bin]}`);
  } else if (shows === "events") {
    lines.push(`${values.events[bin].toLocaleString("en")} events, ${values.lost[bin].toLocaleString("en")} late or rejected`);
  } else if (shows === "features" && values.features[row] !== undefined) {
    lines.push(`${values.features[row]}: moved by ${values.effects[row][bin]}`);
  }
  return lines.join("\n");
}

function rows(plot, values) {
  return plot.dataset.shows === "quality" ? values.quality.length : values.features.length;
}

function show(plot, bin, row, x, y) {
  const values = valuesOf(plot);
  if (!values) return;
  bin = Math.min(Math.max(bin, 0), values.time.length - 1);
  shown = { plot, bin, row, x, y };
  tip.textContent = words(plot, values, bin, row);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18}px`;
}

function hide() {
  tip.hidden = true;
  shown = null;
}

function under(event) {
  const plot = event.target.closest && event.target.closest("svg.plot");
  const values = plot && valuesOf(plot);
  if (!values) return null;
  const box = plot.getBoundingClientRect();
  return { plot, values, box, ...cell(plot, values, box, event) };
}

function cell(plot, values, box, event) {
  const bin = Math.floor(((event.clientX - box.left) / box.width) * values.time.length);
  const row = Math.floor(((event.clientY - box.top) / box.height) * rows(plot, values));
  return { bin: Math.min(Math.max(bin, 0), values.time.length - 1), row };
}

function pointed(event) {
  if (drag) return dragged(event);
  const place = under(event);
  if (place) show(place.plot, place.bin, place.row, event.clientX, event.clientY);
  else hide();
}

function pressed(event) {
  pointed(event);
  const place = event.button === 0 && under(event);
  if (place) drag = { ...place, from: event.clientX, last: place.bin };
}

function dragged(event) {
  drag.last = cell(drag.plot, drag.values, drag.box, event).bin;
  const [first, last] = [Math.min(drag.bin, drag.last), Math.max(drag.bin, drag.last)];
  const each = drag.box.width / drag.values.time.length;
  Object.assign(band.style, {
    left: `${drag.box.left + first * each}px`,
    width: `${(last - first + 1) * each}px`,
    top: `${drag.box.top}px`,
    height: `${drag.box.height}px`,
  });
  band.hidden = Math.abs(event.clientX - drag.from) < 6;
}

function released(event) {
  if (!drag) return;
  const { values, bin, last } = drag;
  const chose = !band.hidden;
  band.hidden = true;
  drag = null;
  if (chose) range(values.from[Math.min(bin, last)], values.to[Math.max(bin, last)]);
  else if (event.pointerType === "mouse") location.assign(values.window[bin]); // a finger only looks: the table of windows has links
}

function range(from, to) {
  const address = new URL(location.href);
  address.searchParams.delete("last");
  address.searchParams.set("from", from);
  address.searchParams.set("to", to);
  location.assign(address);
}

function keyed(event) {
  const plot = event.target.closest && event.target.closest("svg.plot");
  const values = plot && valuesOf(plot);
  if (event.key === "Escape") {
    drag = null;
    band.hidden = true;
    return hide();
  }
  if (values && event.key === "Enter" && shown && shown.plot === plot) return location.assign(values.window[shown.bin]);
  if (!values || !["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].includes(event.key)) return;
  event.preventDefault();
  const last = values.time.length - 1;
  const from = shown && shown.plot === plot ? shown : { bin: last + 1, row: 0 };
  const bin = Math.min(Math.max(from.bin + (event.key === "ArrowRight") - (event.key === "ArrowLeft"), 0), last);
  const lowest = Math.max(rows(plot, values) - 1, 0);
  const row = Math.min(Math.max(from.row + (event.key === "ArrowDown") - (event.key === "ArrowUp"), 0), lowest);
  const box = plot.getBoundingClientRect();
  show(plot, bin, row, box.left + ((bin + 0.5) / values.time.length) * box.width, box.top + 20);
}

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(SECONDS * 2000) });
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const open = [...document.querySelectorAll("details[open]")].map((one) => one.id);
    const under = shown && { ...shown, plot: [...document.querySelectorAll(".plot")].indexOf(shown.plot) };
    const focused = [...document.querySelectorAll("#main .plot, #main a, #main summary")].indexOf(document.activeElement);
    if (drag) return; // the chart must not change under somebody's hand
    document.getElementById("main").replaceWith(page.getElementById("main"));
    begin();
    open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    if (focused >= 0) document.querySelectorAll("#main .plot, #main a, #main summary")[focused]?.focus({ preventScroll: true });
    const plot = under && document.querySelectorAll(".plot")[under.plot];
    if (plot) show(plot, under.bin, under.row, under.x, under.y);
    else hide();
    live.textContent = page.getElementById("live").textContent;
    document.title = page.title;
    live.className = "live on";
  } catch (error) {
    live.className = "live off";
    if (!live.textContent.startsWith("not reached")) live.textContent = `not reached; ${live.textContent}`;
  }
}

function searched() {
  const address = new URL(location.href);
  if (search.value) address.searchParams.set("search", search.value);
  else address.searchParams.delete("search");
  history.replaceState(null, "", address);
  refresh();
}

function begin() {
  for (const only of document.querySelectorAll(".hint[hidden], .search[hidden]")) only.hidden = false;
}

document.addEventListener("pointermove", pointed);
document.addEventListener("pointerdown", pressed);
document.addEventListener("pointerup", released);
document.addEventListener("keydown", keyed);
document.addEventListener("focusout", hide);
document.addEventListener("scroll", hide, { passive: true });
document.addEventListener("pointerleave", hide);
search?.addEventListener("input", searched);
begin();
live.className = "live on";
setInterval(refresh, SECONDS * 1000);
