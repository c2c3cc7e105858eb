// A track at several resolutions. Each level joins four cells of the one below and keeps their lowest value, highest value
// and time-weighted mean, so that a spike of one sample is still there when the whole run is in view.
const JOIN = 4;

class Pyramid {
  constructor({ bounds, mean, lowest, highest, samplesPerCell }) {
    const columns = {};
    for (const name of Object.keys(mean)) {
      columns[name] = { mean: mean[name], lowest: lowest[name] ?? mean[name], highest: highest[name] ?? mean[name] };
    }
    this.samplesPerCell = samplesPerCell;
    this.levels = [{ bounds, columns, cells: 1 }];
    const typical = typicalWidth(bounds);
    for (let level = this.levels[0]; level.bounds.length > 500 && this.levels.length < 12; ) {
      level = joinedLevel(level, typical);
      this.levels.push(level);
    }
  }

  // The finest level that has at most two cells a pixel between two times [s].
  level(start, end, pixels) {
    const fits = (level) => indexAt(level.bounds, end) - indexAt(level.bounds, start) <= 2 * pixels;
    return this.levels.find(fits) ?? this.levels.at(-1);
  }

  // Integral of a column over time between two times, with the time in which it is known and its extremes.
  integral(name, start, end) {
    const { bounds, columns } = this.levels[0];
    const { mean, lowest, highest } = columns[name];
    let sum = 0, known = 0, low = Infinity, high = -Infinity;
    const last = Math.min(indexAt(bounds, end), mean.length - 1);
    for (let i = Math.max(indexAt(bounds, start), 0); i <= last; i++) {
      const width = Math.min(bounds[i + 1], end) - Math.max(bounds[i], start);
      if (Number.isNaN(mean[i]) || width <= 0) continue;
      sum += mean[i] * width;
      known += width;
      low = Math.min(low, lowest[i]);
      high = Math.max(high, highest[i]);
    }
    return { sum, known, low, high };
  }
}

// Index of the cell that holds a time: -1 before the first, the number of cells after the last.
function indexAt(bounds, time) {
  let low = 0, high = bounds.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bounds[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// Where the groups of the next level begin: every JOIN cells, but a long stretch without a value keeps a group of its own,
// so that no value is ever spread over it.
function groupStarts({ bounds, columns }, longest) {
  const starts = [];
  const values = Object.values(columns);
  let size = JOIN;
  for (let i = 0; i < bounds.length - 1; i++) {
    const alone = bounds[i + 1] - bounds[i] > longest && values.some(({ mean }) => Number.isNaN(mean[i]));
    if (size >= JOIN || alone) {
      starts.push(i);
      size = 0;
    }
    size = alone ? JOIN : size + 1;
  }
  starts.push(bounds.length - 1);
  return starts;
}

function joinedLevel(level, typical) {
  const cells = level.cells * JOIN;
  const starts = groupStarts(level, (typical * cells) / 2);
  const columns = {};
  for (const [name, column] of Object.entries(level.columns)) columns[name] = joinedColumn(column, level.bounds, starts);
  return { bounds: Float64Array.from(starts, (start) => level.bounds[start]), columns, cells };
}

function joinedColumn({ mean, lowest, highest }, bounds, starts) {
  const groups = starts.length - 1;
  const joined = { mean: new Float64Array(groups), lowest: new Float64Array(groups), highest: new Float64Array(groups) };
  for (let g = 0; g < groups; g++) {
    let sum = 0, known = 0, low = Infinity, high = -Infinity;
    for (let i = starts[g]; i < starts[g + 1]; i++) {
      if (Number.isNaN(mean[i])) continue;
      const width = bounds[i + 1] - bounds[i];
      sum += mean[i] * width;
      known += width;
      low = Math.min(low, lowest[i]);
      high = Math.max(high, highest[i]);
    }
    joined.mean[g] = known > 0 ? sum / known : NaN;
    joined.lowest[g] = known > 0 ? low : NaN;
    joined.highest[g] = known > 0 ? high : NaN;
  }
  return joined;
}

// The middle one of all cell widths.
function typicalWidth(bounds) {
  const widths = Float64Array.from({ length: bounds.length - 1 }, (_, i) => bounds[i + 1] - bounds[i]).sort();
  return widths[widths.length >> 1];
}

function shortestCell(bounds) {
  let shortest = Infinity;
  for (let i = 1; i < bounds.length; i++) shortest = Math.min(shortest, bounds[i] - bounds[i - 1] || Infinity);
  return shortest;
}
