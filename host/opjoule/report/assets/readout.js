// What the chart says in words and numbers.
"use strict";

const PREFIX_BY_POWER = { "-12": "p", "-9": "n", "-6": "µ", "-3": "m", 0: "", 3: "k", 6: "M", 9: "G" };

// A number with an SI prefix and a fixed count of significant digits.
function withPrefix(value, unit, digits = 4) {
  if (value === 0 || !Number.isFinite(value)) return `${value}\u00a0${unit}`;
  const power = Math.min(Math.max(3 * Math.floor(Math.log10(Math.abs(value)) / 3), -12), 9);
  return `${(value / 10 ** power).toPrecision(digits)}\u00a0${PREFIX_BY_POWER[power]}${unit}`;
}

function count(value) {
  return Math.round(value).toLocaleString("en-GB");
}

// Seconds with as many decimals as the view's width asks for.
function seconds(time, width) {
  return `${time.toFixed(Math.min(Math.max(3 - Math.floor(Math.log10(width)), 0), 6))}\u00a0s`;
}

// Axis numbers: thousands as "10k", decimals as the distance of two ticks asks for.
function axisNumber(value, splits) {
  if (value === 0) return "0";
  const step = splits.length > 1 ? splits[1] - splits[0] : 1;
  if (Math.max(...splits.map(Math.abs)) >= 10000) return `${+(value / 1000).toFixed(step < 1000 ? 1 : 0)}k`;
  return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
}

// The entries under the pointer, [name, text] each: every series' value in the cell that is drawn there.
function readout(chart, time) {
  const entries = [["time", seconds(time, chart.end - chart.start)], ["phase", phaseAt(chart.phases, time)]];
  for (const panel of chart.panels) {
    for (const { column, label, unit, digits, range } of panel.readout ?? []) {
      const [text, extremes] = cellText(chart.tracks[panel.track], panel.view.level, column, time, unit, digits);
      entries.push([label, text, range ? extremes : undefined]);
    }
  }
  const gap = gapAt(chart.gaps, time);
  if (gap) entries.push(["lost", gap]);
  return entries;
}

function readoutNodes(entries) {
  return entries.map(([name, text, range]) => {
    const group = document.createElement("div");
    group.append(document.createElement("dt"), document.createElement("dd"));
    group.firstChild.textContent = name;
    group.lastChild.textContent = text;
    if (range) group.lastChild.appendChild(document.createElement("span")).textContent = ` (${range})`;
    return group;
  });
}

// The mean of a cell and, where the cell joins samples that differ, their range.
function cellText(pyramid, level, name, time, unit, digits) {
  const cell = pyramid.at(time, level);
  const { mean, lowest, highest } = level.columns[name];
  if (!cell || Number.isNaN(mean[cell.index])) return ["no data"];
  const i = cell.index;
  const text = `${mean[i].toFixed(digits)}\u00a0${unit}`;
  const single = highest[i] - lowest[i] < 0.5 * 10 ** -digits;
  return single ? [text] : [text, `${lowest[i].toFixed(digits)} to ${highest[i].toFixed(digits)}`];
}

function phaseAt(phases, time) {
  return phases.find(({ start_s, end_s }) => start_s <= time && time < end_s)?.name ?? "between phases";
}

function gapAt(gaps, time) {
  const i = firstEndingAfter(gaps, time);
  if (i >= gaps.start.length || gaps.start[i] > time) return null;
  const samples = gaps.lost[i] > 0 ? `${count(gaps.lost[i])} samples, ` : "";
  return samples + withPrefix(gaps.end[i] - gaps.start[i], "s", 3);
}

// Energy, power and operations of the stretch in view; lost time is named, never filled in.
function viewSentence({ start, end, tracks, whole }) {
  const power = tracks.power.integral("power_w", start, end);
  const where = start <= whole[0] && end >= whole[1] ? "Whole record" : `From ${seconds(start, end - start)} to ${seconds(end, end - start)}`;
  if (power.known === 0) return `${where}: no samples.`;
  const parts = [
    `${withPrefix(power.sum, "J")} drawn in ${withPrefix(power.known, "s")}`,
    `mean ${(power.sum / power.known).toFixed(3)} W, lowest ${power.low.toFixed(3)} W, highest ${power.high.toFixed(3)} W`,
  ];
  if (tracks.operations) parts.push(`about ${count(tracks.operations.integral("operations_per_s", start, end).sum)} operations`);
  // The record begins with its first cell, a few microseconds off 0.
  const lost = end - Math.max(start, tracks.power.levels[0].bounds[0]) - power.known;
  if (lost > 1e-6) parts.push(`${withPrefix(lost, "s", 3)} without samples, not counted`);
  return `${where}: ${parts.join("; ")}.`;
}
