// Series of a panel: the cells in view as uPlot columns, and how they are drawn.

// Cells as uPlot columns: the time of each edge and, for each series, mean, lowest and highest (null where nothing is known).
// Where series come from several tracks their edges are joined: a series has undefined at the edges of another track. Series
// of one track stand together.
function columnsInView(tracks, panel, start, end, pixels) {
  const series = panel.series ?? [], levels = {}, tables = [];
  const named = series.length ? [...new Set(series.map(({ track }) => track ?? panel.track))] : [panel.track];
  for (const name of named) {
    levels[name] = tracks[name].level(start, end, pixels);
    const own = series.filter(({ track }) => (track ?? panel.track) === name);
    tables.push(tableInView(levels[name], own, start, end));
  }
  return { data: tables.length > 1 ? uPlot.join(tables) : tables[0], levels };
}

function tableInView({ bounds, columns }, series, start, end) {
  const first = Math.max(indexAt(bounds, start), 0);
  const last = Math.min(indexAt(bounds, end) + 2, bounds.length);
  const take = (values) => {
    const column = Array.from(values.subarray(first, last), (value) => (Number.isNaN(value) ? null : value));
    while (column.length < last - first) column.push(null);
    return column;
  };
  const table = [Array.from(bounds.subarray(first, last))];
  for (const { column, envelope } of series) {
    const { mean, lowest, highest } = columns[column];
    table.push(take(mean), take(envelope ? lowest : mean), take(envelope ? highest : mean));
  }
  return table;
}

// Calls back with start and end [pixels] and the index of each cell that has a value.
function eachCell(u, values, draw) {
  const times = u.data[0];
  let from = -1, x = 0;
  for (let i = 0; i < times.length; i++) {
    if (values[i] === undefined) continue;
    const next = u.valToPos(times[i], "x", true);
    if (from >= 0) draw(x, next, from);
    [from, x] = [values[i] === null ? -1 : i, next];
  }
}

// Path of a step line: each cell's value from its start to its end, broken where a cell has no value.
function stepPath(u, index) {
  const values = u.data[index], path = new Path2D();
  let end = NaN;
  eachCell(u, values, (left, right, i) => {
    const y = u.valToPos(values[i], "y", true);
    if (left === end) path.lineTo(left, y);
    else path.moveTo(left, y);
    path.lineTo(right, y);
    end = right;
  });
  return { stroke: path };
}

// Path of the envelope from lowest to highest, one rectangle a cell.
function envelopePath(u, lowIndex) {
  const low = u.data[lowIndex], high = u.data[lowIndex + 1], path = new Path2D();
  eachCell(u, low, (left, right, i) => {
    const top = u.valToPos(high[i], "y", true);
    path.rect(left, top, Math.max(right - left, 1), Math.max(u.valToPos(low[i], "y", true) - top, 1));
  });
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
