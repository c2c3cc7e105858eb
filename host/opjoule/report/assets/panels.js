// One panel of the time chart: a uPlot with its scales and axes.
"use strict";

const AXIS_WIDTH = 56;
const GAP_BELOW = 9;
const ROOM_RIGHT = 12;
const AXIS_FONT = "12px system-ui, sans-serif";
const DIGIT_WIDTH = 8;
// Ticks 1, 2 or 5 times a power of ten apart need no more decimals than that power has.
const STEPS = Array.from({ length: 60 }, (_, i) => +`${[1, 2, 5][i % 3]}e${Math.floor(i / 3) - 8}`);

function makePanel(panel, scene, holder, isLast) {
  const series = panel.series ?? [];
  const lanes = panel.lanes ?? [];
  const options = {
    width: holder.clientWidth,
    height: panel.height + (isLast ? 44 : GAP_BELOW),
    padding: [8, ROOM_RIGHT, 0, 0],
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
  // Never so close that ticks differ in digits which the axis has no room for.
  const span = Math.max(high - bottom, 1e-3 * Math.abs(high)) || 1;
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
    incrs: STEPS,
    space: (u, axis, low, high) => DIGIT_WIDTH * (seconds(high, (high - low) / 10).length + 1),
    values: (u, splits, axis, space, step) => splits.map((time) => (isLast ? timeNumber(u, time, step) : "")),
    label: isLast ? "time since the record's first sample, s" : undefined,
    labelSize: 18,
    labelFont: AXIS_FONT,
    font: AXIS_FONT,
  };
}

// A time as its tick says it; nothing where the text would be cut at the edge of the chart.
function timeNumber(u, time, step) {
  const text = tickNumber(time, step);
  const room = u.over.clientWidth + ROOM_RIGHT - u.valToPos(time, "x");
  return (text.length * DIGIT_WIDTH) / 2 <= room ? text : "";
}

function valueAxis(panel, lanes) {
  return {
    stroke: () => colour("--text-muted"),
    grid: { show: !lanes.length, stroke: () => colour("--grid"), width: 1 },
    ticks: { show: false },
    size: lanes.length ? AXIS_WIDTH + 20 : AXIS_WIDTH,
    label: lanes.length ? undefined : panel.title,
    labelSize: 20,
    labelFont: AXIS_FONT,
    font: AXIS_FONT,
    splits: lanes.length ? () => lanes.map((lane, row) => 1 - (row + 0.5) / lanes.length) : undefined,
    incrs: STEPS,
    values: lanes.length ? () => lanes.map((lane) => lane.name) : (u, splits, axis, space, step) => axisNumbers(splits, step),
  };
}
