// Starts the page: unpacks the embedded data, builds the chart, arms the copy button.
"use strict";

async function start() {
  const content = JSON.parse(document.getElementById("content").textContent);
  const holder = document.getElementById("chart");
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", () => copy(button));
  }
  if (!holder || !content.tracks.power) return;
  const tracks = {};
  for (const [name, track] of Object.entries(content.tracks)) tracks[name] = new Pyramid(await unpackedTrack(track));
  const gaps = {
    start: await unpackedTimes(content.gaps.start_s),
    end: await unpackedTimes(content.gaps.end_s),
    lost: content.gaps.lost_samples,
  };
  const lanes = [];
  for (const { name, start_s, end_s } of content.lanes) {
    lanes.push({ name, start: await unpackedTimes(start_s), end: await unpackedTimes(end_s) });
  }
  document.body.classList.add("drawn");
  window.timeChart = new TimeChart(holder, content, tracks, gaps, lanes);
}

async function copy(button) {
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "copied";
}

start().catch((fault) => {
  const note = document.querySelector(".chart-note");
  if (note) note.textContent = `The chart cannot be drawn in this browser (${fault.message}). The numbers below are complete.`;
  console.error(fault);
});
