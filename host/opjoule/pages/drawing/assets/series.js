// Series of a panel: the cells in view as uPlot columns. Envelopes come first, so that every line is drawn above them.
const TINT = 0.15;
const STEPPED = uPlot.paths.stepped({ align: 1, alignGaps: 1 });

// Cells as uPlot columns: the time of each edge, lowest and highest of each series with an envelope, and the mean of each
// series (null where nothing is known). Where series come from several tracks their edges are joined: a series has undefined
// at the edges of another track. Series of one track stand together.
function columnsInView(tracks, panel, start, end, pixels) {
  const series = panel.series ?? [], levels = {}, tables = [];
  const named = series.length ? [...new Set(series.map(({ track }) => track ?? panel.track))] : [panel.track];
  for (const name of named) {
    levels[name] = tracks[name].level(start, end, pixels);
    tables.push(tableInView(levels[name], series.filter(({ track }) => (track ?? panel.track) === name), start, end));
  }
  const [times, ...columns] = tables.length > 1 ? uPlot.join(tables) : tables[0];
  const envelopes = series.flatMap(({ envelope }, i) => (envelope ? [columns[3 * i + 1], columns[3 * i + 2]] : []));
  return { data: [times, ...envelopes, ...series.map((_, i) => columns[3 * i])], levels };
}

function tableInView({ bounds, columns }, series, start, end) {
  const first = Math.max(indexAt(bounds, start), 0);
  const last = Math.min(indexAt(bounds, end) + 2, bounds.length);
  const take = (values) => {
    const column = Array.from(values.subarray(first, last), (value) => (Number.isNaN(value) ? null : value));
    while (column.length < last - first) column.push(column.at(-1) ?? null); // a cell reaches to its second edge
    return column;
  };
  return [Array.from(bounds.subarray(first, last)), ...series.flatMap(({ column }) => {
    const { mean, lowest, highest } = columns[column];
    return [take(mean), take(lowest), take(highest)];
  })];
}

// How uPlot draws them: each cell's value from its start to its end, broken where a cell has no value, and a tint from the
// lowest to the highest sample. The tints of several series together are as strong as one, so that lines stand out.
function seriesOptions(series) {
  const envelopes = series.filter(({ envelope }) => envelope);
  const alpha = Math.round((255 * TINT) / envelopes.length).toString(16).padStart(2, "0");
  const line = (label, name, width) => ({ label, width, stroke: () => colour(name), paths: STEPPED, points: { show: false } });
  return {
    series: [
      {},
      ...envelopes.flatMap(({ label, colour: name }) => [line(`${label}, lowest`, name, 1), line(`${label}, highest`, name, 1)]),
      ...series.map(({ label, colour: name }) => line(label, name, 1.5)),
    ],
    bands: envelopes.map(({ colour: name }, i) => ({ series: [2 * i + 2, 2 * i + 1], fill: () => `${colour(name)}${alpha}` })),
  };
}
