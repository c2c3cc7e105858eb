// One panel of the time chart: a uPlot with its scales and axes.
"use strict";

const AXIS_WIDTH = 56;
const GAP_BELOW = 9;

function makePanel(panel, scene, holder, isLast) {
  const series = panel.series ?? [];
  const lanes = panel.lanes ?? [];
  const options = {
    width: holder.clientWidth,
    height: panel.height + (isLast ? 44 : GAP_BELOW),
    padding: [4, 12, 0, 0],
    legend: { show: false },
    cursor: {
      // Panels share the cursor; a stretch is selected in one of them and shown in all by the chart.
      sync: { key: "time", scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false },
      bind: scene.mouse,
    },
    scales: {
      x: { time: false, range: () => [scene.start, scene.end] },
      y: { range: lanes.length ? () => [0, 1] : (u, low, high) => yRange(low, high, panel, scene) },
    },
    axes: [timeAxis(isLast), valueAxis(panel, lanes)],
    series: [{}, ...series.flatMap(seriesOptions)],
    hooks: {
      drawClear: [(u) => { drawPhases(u, scene.phases); if (panel.gaps) drawGaps(u, scene.gaps); }],
      draw: [(u) => { if (panel.first) drawPhaseNames(u, scene.phases); drawLevels(u, panel.levels ?? []); drawLanes(u, lanes); if (panel.key) drawKey(u, series); }],
      setCursor: [(u) => scene.onCursor(u)],
      setSelect: [(u) => scene.onSelect(u)],
    },
  };
  const empty = [[scene.start, scene.end], ...series.flatMap(() => [[null, null], [null, null], [null, null]])];
  return new uPlot(options, empty, holder);
}

function yRange(low, high, panel, scene) {
  if (low == null) return [0, 1];
  const fromZero = panel.from_zero || scene.fromZero;
  const bottom = fromZero ? Math.min(low, 0) : low;
  const span = high - bottom || Math.abs(high) || 1;
  // The room above is for the names drawn at the top.
  return [fromZero && bottom === 0 ? 0 : bottom - 0.06 * span, high + 0.16 * span];
}

function timeAxis(isLast) {
  return {
    show: true,
    stroke: () => colour("--text-muted"),
    grid: { stroke: () => colour("--grid"), width: 1 },
    ticks: { show: isLast, stroke: () => colour("--grid") },
    size: isLast ? 44 : GAP_BELOW,
    values: isLast ? undefined : (u, splits) => splits.map(() => ""),
    label: isLast ? "time since the record's first sample, s" : undefined,
    labelSize: 18,
    labelFont: "12px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
  };
}

function valueAxis(panel, lanes) {
  return {
    stroke: () => colour("--text-muted"),
    grid: { show: !lanes.length, stroke: () => colour("--grid"), width: 1 },
    ticks: { show: false },
    size: lanes.length ? AXIS_WIDTH + 20 : AXIS_WIDTH,
    label: lanes.length ? undefined : panel.title,
    labelSize: 20,
    labelFont: "12px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
    splits: lanes.length ? () => lanes.map((lane, row) => 1 - (row + 0.5) / lanes.length) : undefined,
    values: lanes.length ? () => lanes.map((lane) => lane.name) : (u, splits) => splits.map((value) => axisNumber(value, splits)),
  };
}
