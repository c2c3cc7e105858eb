// Series of a panel: the cells in view as uPlot columns, and how they are drawn.
"use strict";

// Cells as uPlot columns: the time of each edge and, for each series, mean, lowest and highest (null where nothing is known).
function columnsInView(pyramid, series, start, end, pixels) {
  const level = pyramid.level(start, end, pixels);
  const first = Math.max(indexAt(level.bounds, start), 0);
  const last = Math.min(indexAt(level.bounds, end) + 2, level.bounds.length);
  const take = (values) => {
    const column = Array.from(values.subarray(first, last), (value) => (Number.isNaN(value) ? null : value));
    while (column.length < last - first) column.push(null);
    return column;
  };
  const data = [Array.from(level.bounds.subarray(first, last))];
  for (const { column, envelope } of series) {
    const { mean, lowest, highest } = level.columns[column];
    data.push(take(mean), take(envelope ? lowest : mean), take(envelope ? highest : mean));
  }
  return { data, level };
}

// Path of a step line: each cell's value from its start to its end, broken where a cell has no value.
function stepPath(u, index) {
  const [times, values] = [u.data[0], u.data[index]];
  const path = new Path2D();
  for (let i = 0, pen = false; i < times.length - 1; i++) {
    if (values[i] == null) { pen = false; continue; }
    const y = u.valToPos(values[i], "y", true);
    const x = u.valToPos(times[i], "x", true);
    if (pen) path.lineTo(x, y);
    else path.moveTo(x, y);
    path.lineTo(u.valToPos(times[i + 1], "x", true), y);
    pen = true;
  }
  return { stroke: path };
}

// Path of the envelope from lowest to highest, one rectangle a cell.
function envelopePath(u, lowIndex) {
  const [times, low, high] = [u.data[0], u.data[lowIndex], u.data[lowIndex + 1]];
  const path = new Path2D();
  for (let i = 0; i < times.length - 1; i++) {
    if (low[i] == null) continue;
    const x = u.valToPos(times[i], "x", true);
    const top = u.valToPos(high[i], "y", true);
    const width = Math.max(u.valToPos(times[i + 1], "x", true) - x, 1);
    path.rect(x, top, width, Math.max(u.valToPos(low[i], "y", true) - top, 1));
  }
  return { fill: path, stroke: null };
}

function seriesOptions({ label, colour: name, envelope }) {
  const shared = { spanGaps: false, points: { show: false } };
  const shade = () => colour(name);
  return [
    { ...shared, label, stroke: shade, width: 1.25, paths: stepPath },
    { ...shared, label: `${label}, lowest`, fill: () => colour(`${name}-band`), width: 0, paths: envelope ? envelopePath : () => null },
    { ...shared, label: `${label}, highest`, width: 0, paths: () => null },
  ];
}
