// Starts the page: unpacks the embedded data, builds the chart, arms the copy button.
async function start() {
  const content = JSON.parse(document.getElementById("content").textContent);
  const holder = document.getElementById("chart");
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", () => copy(button));
  }
  if (!holder || !content.tracks.power) return;
  const tracks = {};
  for (const [name, track] of Object.entries(content.tracks)) tracks[name] = new drawing.Pyramid(await drawing.unpackedTrack(track));
  const gaps = {
    start: await drawing.unpackedTimes(content.gaps.start_s),
    end: await drawing.unpackedTimes(content.gaps.end_s),
    lost: content.gaps.lost_samples,
  };
  const lanes = [];
  for (const { name, start_s, end_s } of content.lanes) {
    lanes.push({ name, start: await drawing.unpackedTimes(start_s), end: await drawing.unpackedTimes(end_s) });
  }
  document.body.classList.add("drawn");
  const { duration_s, panels, phases, idle_power: idle } = content;
  const chart = new drawing.TimeChart(holder);
  const shortest = 4 * drawing.shortestCell(tracks.power.levels[0].bounds);
  chart.setScene({ whole: [0, duration_s], panels, tracks, phases, gaps, lanes, idle, shortest });
  holder.querySelector(".phases").replaceChildren(...drawing.phaseButtons(phases));
  chart.show(...chart.whole);
  window.timeChart = chart;
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
