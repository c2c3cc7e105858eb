"use strict";
// The time chart of the page of runs: that of a report (drawing/assets/chart.js), whose tracks are what the server last
// answered. view.js calls:
//
//   const chart = new Chart(frame, { changed(), selected(stretch or null) });   changed: the view moved, ask the server again
//   chart.curves = [{ name, place, phases, shift_s, data }, ...];    a run each, its colour COLOURS_OF_RUNS[place]; the first one's time axis is the chart's; data: the
//       server's "power" answer or null; phases: the server's, with a label; shift_s: its time less the chart's [s]
//   chart.whole = [first, last];  chart.draw();               after either was set; draws once a frame
//   chart.show(start, end), zoom(factor), move(share), select(start, end), select(null)
//   chart.start, end, whole, chosen, width [pixels]

const COLOURS_OF_RUNS = ["--power", "--operations", "--kind-0", "--kind-2", "--kind-4", "--kind-3"];
const POWER_HEIGHT = 300;
const RATE_HEIGHT = 110;

/** What the server gave, as a level of a track on the chart's axis. */
class ServedTrack {
  constructor(bounds, columns, shift_s) {
    const numbers = (values) => Float64Array.from(values, (value) => value ?? NaN);
    this.served = { bounds: Float64Array.from(bounds, (time) => time - shift_s), columns: {} };
    for (const [name, [mean, lowest = mean, highest = mean]] of Object.entries(columns)) {
      this.served.columns[name] = { mean: numbers(mean), lowest: numbers(lowest), highest: numbers(highest) };
    }
  }

  level() { return this.served; }
}

class Chart extends drawing.TimeChart {
  curves = [];

  draw() {
    this.waiting ||= requestAnimationFrame(() => { this.waiting = 0; this.setScene(this.scene()); });
  }

  scene() {
    const { curves } = this, several = curves.length > 1, tracks = {}, gaps = [], power = [], rates = [];
    curves.forEach(({ name, place, data, shift_s }, i) => {
      const line = { colour: COLOURS_OF_RUNS[place], label: `${i + 1}: ${name}` }, rated = data?.operations;
      const numbered = (what) => (several ? `${what}, ${i + 1}` : what);
      const { bounds_s, mean_w, least_w, greatest_w, lost_s } = data ?? { bounds_s: this.whole, mean_w: [null], lost_s: [] };
      tracks[`power ${i}`] = new ServedTrack(bounds_s, { power_w: [mean_w, least_w, greatest_w] }, shift_s);
      power.push({ ...line, said: numbered("power"), track: `power ${i}`, column: "power_w", envelope: true, unit: "W", digits: 4, range: true });
      mean_w.forEach((mean, at) => { if (data && mean === null) gaps.push([bounds_s[at] - shift_s, bounds_s[at + 1] - shift_s]); });
      gaps.push(...lost_s.map((time) => [time - shift_s, time - shift_s]));
      if (!rated) return;
      tracks[`rate ${i}`] = new ServedTrack(rated.bounds_s, { per_s: [rated.per_s] }, shift_s);
      rates.push({ ...line, said: numbered("operations"), track: `rate ${i}`, column: "per_s", unit: "/s", digits: 0 });
    });
    const panels = curves.length ? [{ title: "power, W", height: POWER_HEIGHT, gaps: true, series: power, readout: readings(power) }] : [];
    if (rates.length) panels.push({ title: "operations /s", height: RATE_HEIGHT, from_zero: true, series: rates, readout: readings(rates) });
    return { tracks, panels, gaps: joinedGaps(gaps), phases: curves.flatMap(phasesOf) };
  }
}

/** Entries of the read-out for some series. */
function readings(series) {
  return series.map(({ said, ...rest }) => ({ ...rest, label: said }));
}

/** A run's phases on the chart's axis; those of the first are its ground. */
function phasesOf({ phases, place, shift_s }, row) {
  return phases.map(({ label, name, kind, start_s, end_s }) => ({
    name: label ?? name, kind, row, colour: COLOURS_OF_RUNS[place], start_s: start_s - shift_s, end_s: end_s - shift_s,
  }));
}

/** Lost stretches in order of time, those that touch joined. */
function joinedGaps(stretches) {
  const start = [], end = [];
  for (const [from, to] of stretches.sort((a, b) => a[0] - b[0])) {
    if (end.length && from <= end.at(-1)) end[end.length - 1] = Math.max(end.at(-1), to);
    else { start.push(from); end.push(to); }
  }
  return { start, end, lost: [] };
}
