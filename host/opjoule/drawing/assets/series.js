// Series of a panel: the cells in view as uPlot columns, and how they are drawn.
const TINT = 0.15;

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

// From the lowest to the highest sample of each cell, below all lines: edges in the line's colour, a tint between them. The
// tints of several series together are as strong as one, so that lines stand out from them.
function drawEnvelopes(u, series) {
  const { ctx } = u, drawn = series.flatMap(({ envelope, colour: name }, i) => (envelope ? [[3 * i + 2, colour(name)]] : []));
  clipped(u, () => {
    for (const [lowest, shade] of drawn) {
      const edges = new Path2D();
      ctx.fillStyle = shade;
      ctx.globalAlpha = TINT / drawn.length;
      eachCell(u, u.data[lowest], (left, right, i) => {
        const [low, high] = [lowest, lowest + 1].map((column) => u.valToPos(u.data[column][i], "y", true));
        ctx.fillRect(left, high, right - left, low - high);
        for (const y of [low, high]) { edges.moveTo(left, y); edges.lineTo(right, y); }
      });
      ctx.globalAlpha = 1;
      ctx.strokeStyle = shade;
      ctx.lineWidth = devicePixelRatio;
      ctx.stroke(edges);
    }
  });
}

function seriesOptions({ label, colour: name }) {
  const shared = { spanGaps: false, points: { show: false } };
  return [
    { ...shared, label, stroke: () => colour(name), width: 1.5, paths: stepPath },
    { ...shared, label: `${label}, lowest`, width: 0, paths: () => null },
    { ...shared, label: `${label}, highest`, width: 0, paths: () => null },
  ];
}
