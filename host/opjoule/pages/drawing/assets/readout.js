// What the chart says in words and numbers.
const NOTHING = "-";
const BLANK = "\u00a0";
const PREFIX_BY_POWER = { "-12": "p", "-9": "n", "-6": "µ", "-3": "m", 0: "", 3: "k", 6: "M", 9: "G" };

// A number with an SI prefix and a fixed count of significant digits.
function withPrefix(value, unit, digits = 4) {
  if (value === 0 || !Number.isFinite(value)) return `${value}\u00a0${unit}`;
  const power = Math.min(Math.max(3 * Math.floor(Math.log10(Math.abs(value)) / 3), -12), 9);
  const number = (value / 10 ** power).toPrecision(digits);
  return `${number.includes("e") ? +number : number}\u00a0${PREFIX_BY_POWER[power]}${unit}`;
}

function count(value) {
  return Math.round(value).toLocaleString("en-GB");
}

// Seconds with as many decimals as the view's width asks for.
function seconds(time, width) {
  return `${time.toFixed(Math.min(Math.max(3 - Math.floor(Math.log10(width)), 0), 6))}\u00a0s`;
}

// What stands at the ticks of an axis: thousands as "10k", and never a digit less than the step between two ticks has.
function axisNumbers(values, step) {
  const thousands = Math.max(...values.map(Math.abs)) >= 10000;
  return values.map((value) => (thousands && value !== 0 ? `${tickNumber(value / 1000, step / 1000)}k` : tickNumber(value, step)));
}

// A multiple of `step` with as many decimals as the step has.
function tickNumber(value, step) {
  if (value === 0) return "0";
  let decimals = 0;
  while (decimals < 9 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6) decimals++;
  return value.toFixed(decimals);
}

// The entries under the pointer, [name, text] each: every series' value in the cell that is drawn there. Without a pointer
// the same entries, so that the chart does not move when there is one.
function readout(chart, time) {
  const pointed = time !== null;
  const entries = [
    ["time", pointed ? seconds(time, chart.end - chart.start) : NOTHING],
    ["phase", pointed ? phaseAt(chart.phases, time) : "point at it"],
  ];
  for (const panel of chart.panels) {
    for (const { column, label, unit, digits, range, track = panel.track } of panel.readout ?? []) {
      const cell = pointed ? cellText(panel.shown[track], column, time, unit, digits) : [NOTHING];
      entries.push([label, cell[0], range ? (cell[1] ?? BLANK) : undefined]);
    }
  }
  if (chart.gaps.start.length) entries.push(["lost", (pointed && gapAt(chart.gaps, time)) || NOTHING]);
  return entries;
}

function readoutNodes(entries) {
  return entries.map(([name, text, range]) => {
    const group = document.createElement("div");
    group.append(document.createElement("dt"), document.createElement("dd"));
    group.firstChild.textContent = name;
    group.lastChild.textContent = text;
    if (range) group.lastChild.appendChild(document.createElement("span")).textContent = range;
    return group;
  });
}

// The mean of a cell and, where the cell joins samples that differ, their range.
function cellText(level, name, time, unit, digits) {
  const { mean, lowest, highest } = level.columns[name], i = indexAt(level.bounds, time);
  if (Number.isNaN(mean[i] ?? NaN)) return ["no data"];
  const text = `${mean[i].toFixed(digits)}\u00a0${unit}`;
  const single = highest[i] - lowest[i] < 0.5 * 10 ** -digits;
  return single ? [text] : [text, `${lowest[i].toFixed(digits)} to ${highest[i].toFixed(digits)}`];
}

function phaseAt(phases, time) {
  return phases.find(({ row, start_s, end_s }) => !row && start_s <= time && time < end_s)?.name ?? "between phases";
}

function gapAt(gaps, time) {
  const i = firstEndingAfter(gaps, time);
  if (i >= gaps.start.length || gaps.start[i] > time) return null;
  const samples = gaps.lost?.[i] > 0 ? `${count(gaps.lost[i])} samples, ` : "";
  return samples + withPrefix(gaps.end[i] - gaps.start[i], "s", 3);
}

// The part of an energy that is above idle, with what the idle power's own uncertainty makes of it.
function aboveIdle({ sum, known }, idle) {
  if (!idle) return "";
  const spread = idle.u_w === null ? "" : ` (\u00b1\u00a0${withPrefix(idle.u_w * known, "J", 2)} from the uncertainty of the idle power alone)`;
  return `, of which ${withPrefix(sum - idle.value_w * known, "J")}${spread} lie above the idle power of ${idle.value_w.toFixed(3)}\u00a0W`;
}

// Energy, power and operations of the selected stretch, else of the one in view; lost time is named, never filled in.
// Nothing where the tracks hold no samples.
function viewSentence({ start, end, chosen, tracks, whole, idle }) {
  if (!tracks.power?.integral) return "";
  [start, end] = chosen ?? [start, end];
  const power = tracks.power.integral("power_w", start, end);
  const all = !chosen && start <= whole[0] && end >= whole[1];
  const [first, last] = [start, end].map((time) => seconds(time, end - start));
  const between = `From A, ${first}, to B, ${last}, \u0394t\u00a0${seconds(end - start, end - start)}`;
  const where = chosen ? between : all ? "Whole record" : `In view, ${first} to ${last}`;
  if (power.known === 0) return `${where}: no samples.`;
  const parts = [
    `${chosen ? "\u0394J\u00a0" : ""}${withPrefix(power.sum, "J")} drawn in ${withPrefix(power.known, "s")}${aboveIdle(power, idle)}`,
    `mean ${(power.sum / power.known).toFixed(3)} W, lowest ${power.low.toFixed(3)} W, highest ${power.high.toFixed(3)} W`,
  ];
  if (tracks.operations) parts.push(`about ${count(tracks.operations.integral("operations_per_s", start, end).sum)} operations`);
  // The record begins with its first cell, a few microseconds off 0.
  const lost = end - Math.max(start, tracks.power.levels[0].bounds[0]) - power.known;
  if (lost > 1e-6) parts.push(`${withPrefix(lost, "s", 3)} without samples, not counted`);
  return `${where}: ${parts.join("; ")}.`;
}
