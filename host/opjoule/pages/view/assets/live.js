"use strict";
// The live page: asks once a second how the measurement stands, and after its end how it ended.

const LIVE_S = 60; // so much of the trace is in view
const ASK_MS = 1000;
const ENDED_ASK_MS = 5000; // keeps the page's server there, and with it the link to the report
const TILES = [
  ["power_w", "power", (value) => `${value.toFixed(3)} W`],
  ["energy_j", "energy so far, before calibration", (value) => `${value.toFixed(1)} J`],
  ["elapsed_s", "elapsed", (value) => clock(value)],
  ["remaining_s", "left", (value, now) => value < 1 ? "a moment" : `${now.is_least ? "at least" : "about"} ${clock(value)}`],
  ["operations_per_s", "operations per second", (value) => Math.round(value).toLocaleString("en")],
  ["temperature_c", "temperature of the board", (value) => `${value.toFixed(1)} °C`],
];

/** Seconds as "1:02:03". */
function clock(seconds) {
  const whole = Math.round(seconds), two = (value) => String(value).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

async function follow(viewer) {
  document.body.classList.add("live");
  byId("measurement").hidden = false;
  byId("title").textContent = "Live measurement";
  byId("now").replaceChildren(...TILES.map(([key, label]) => {
    const tile = made("div");
    tile.append(made("dt", label), made("dd", "–", { "data-now": key }));
    return tile;
  }));
  let ended = null;
  for (;;) {
    try {
      const answer = await ask("runs");
      if (answer.runs.length && !ended) grown(viewer, answer.runs[0], await ask("run", { run: answer.runs[0] }));
      else if (!answer.runs.length) viewer.say("The measurement is being prepared.");
      if (answer.ended && !ended) ended = after(viewer, answer);
    } catch (error) {
      if (!(error instanceof TypeError)) viewer.say(error.message);
      else gone(viewer, ended);
    }
    await new Promise((resolve) => setTimeout(resolve, ended ? ENDED_ASK_MS : ASK_MS));
  }
}

/** The measurement has ended: how, and where its report is. */
function after(viewer, { ended, runs }) {
  byId("phase-now").textContent = "";
  viewer.say(ended.words);
  byId("now").querySelector("[data-now=remaining_s]").textContent = "–";
  byId("after").hidden = !ended.record;
  byId("after").replaceChildren();
  if (ended.report) byId("after").append(made("a", "Open the report", { href: `report?${new URLSearchParams({ run: runs[0] })}` }));
  if (ended.record) byId("after").append(made("span", `${ended.report ? ". " : ""}The record is `), made("code", ended.record), made("span", "; "), made("code", "host/view.py"), made("span", " shows it with all others."));
  return ended;
}

/** The page's server does not answer. */
function gone(viewer, ended) {
  if (!ended) viewer.say("The run has ended, or the server of this page was killed: it does not answer. host/view.py shows the record.");
  else byId("after").querySelector("a")?.replaceWith(made("span", "The report is report.html in the record"));
}

/** The run has grown: a view of its end moves along. */
function grown(viewer, name, run) {
  const { chart } = viewer, before = viewer.runs[0], same = before?.name === name, known = same && before.duration_s > 0;
  const [first, last] = chart.whole, length = chart.end - chart.start, atEnd = !known || chart.end >= last - 1e-6;
  const whole = !known || length >= last - first - 1e-6;
  viewer.runs = [{ name, place: 0, ...run, data: same ? before.data : null }];
  byId("shown").hidden = !run.duration_s;
  viewer.layOut();
  const words = run.now.phase ?? "The measurement is being prepared.";
  if (byId("phase-now").textContent !== words) byId("phase-now").textContent = words;
  if (byId("title").textContent !== run.title) byId("title").textContent = run.title;
  viewer.say("");
  for (const [key, , text] of TILES) {
    const value = run.now[key];
    byId("now").querySelector(`[data-now=${key}]`).textContent = value === null ? "–" : text(value, run.now);
  }
  if (!run.duration_s || !atEnd) return;
  const end = chart.whole[1];
  chart.show(end - (whole ? Math.min(end, LIVE_S) : length), end);
}
