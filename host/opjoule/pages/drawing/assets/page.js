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
  holder.querySelector(".tools").insertBefore(csvButton(chart), holder.querySelector(".phases"));
}

// A button that saves the samples of the selected stretch, else of the one in view.
function csvButton(chart) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: "CSV", title: "save the samples of the selection, else of the view, as CSV" });
  button.addEventListener("click", () => {
    const link = document.createElement("a"), [start, end] = chart.chosen ?? [chart.start, chart.end];
    const mark = document.querySelector(".banner.simulated") ? "-SIMULATED" : "";
    link.href = URL.createObjectURL(new Blob([powerCsv(chart.tracks.power, start, end)], { type: "text/csv" }));
    link.download = `power-${start.toFixed(6)}-${end.toFixed(6)}${mark}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
  return button;
}

// Every cell between two times [s]: its start and end, and the mean, lowest and highest value of each column. A cell that
// joins no samples has three times the same value; one without a sample has none.
function powerCsv({ levels: [{ bounds, columns }] }, start, end) {
  const names = Object.keys(columns), kinds = ["mean", "lowest", "highest"];
  const lines = [["start_s", "end_s", ...names.flatMap((name) => kinds.map((kind) => `${kind}_${name}`))]];
  for (let i = Math.max(drawing.indexAt(bounds, start), 0); i < bounds.length - 1 && bounds[i] < end; i++) {
    const values = names.flatMap((name) => kinds.map((kind) => columns[name][kind][i]));
    lines.push([bounds[i], bounds[i + 1], ...values].map((value) => (Number.isNaN(value) ? "" : Number(value.toFixed(9)))));
  }
  return `${lines.map((line) => line.join(",")).join("\n")}\n`;
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
