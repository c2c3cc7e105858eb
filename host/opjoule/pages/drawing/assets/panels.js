// One panel of the time chart: a head that names what is drawn, and a uPlot with its scales and axes.

const AXIS_WIDTH = 50;
const LANES_WIDTH = 76;
const GAP_BELOW = 9;
const ROOM_RIGHT = 12;
const AXIS_FONT = "12px system-ui, sans-serif";
const DIGIT_WIDTH = 8;
// Ticks 1, 2 or 5 times a power of ten apart need no more decimals than that power has.
const STEPS = Array.from({ length: 60 }, (_, i) => +`${[1, 2, 5][i % 3]}e${Math.floor(i / 3) - 8}`);

function makePanel(panel, chart, isLast) {
  const series = panel.series ?? [];
  const lanes = panel.lanes ? chart.lanes : [];
  const options = {
    width: chart.stack.clientWidth,
    height: panel.height + (isLast ? 44 : GAP_BELOW),
    padding: [8, ROOM_RIGHT, 0, 0],
    legend: { show: false },
    cursor: {
      // Panels share the cursor; a stretch that is dragged over one of them is selected in all by the chart.
      sync: { key: "time", scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
      y: false,
      points: { show: false },
      drag: { x: false, y: false },
      bind: chart.mouse,
    },
    scales: {
      x: { time: false, range: () => [chart.start, chart.end] },
      y: { range: lanes.length ? () => [0, 1] : (u, low, high) => yRange(low, high, panel, chart) },
    },
    axes: [timeAxis(isLast), valueAxis(lanes, chart)],
    ...seriesOptions(series),
    hooks: {
      drawClear: [(u) => { drawPhases(u, chart.phases); drawChosen(u, chart.chosen); if (panel.gaps) drawGaps(u, chart.gaps); }],
      draw: [(u) => {
        if (panel.first) {
          drawPhaseNames(u, chart.phases);
          drawMarkers(u, chart.chosen);
        }
        drawLevels(u, panel.levels ?? []);
        drawLanes(u, lanes);
      }],
      setCursor: [(u) => chart.onCursor(u)],
    },
  };
  const empty = [[chart.start, chart.end], ...options.series.slice(1).map(() => [null, null])];
  chart.stack.append(panelHead(panel, series));
  return new uPlot(options, empty, chart.stack);
}

// What a panel shows, with a key of its lines where there are several or levels.
function panelHead(panel, series) {
  const head = document.createElement("div"), key = document.createElement("ul");
  head.className = "panel-head";
  head.append(panel.title, key);
  key.className = "legend";
  const entry = (label, className, shade) => {
    const item = document.createElement("li"), swatch = document.createElement("span");
    swatch.className = `swatch ${className}`;
    if (shade) swatch.style.backgroundColor = `var(${shade})`;
    item.append(swatch, ` ${label}`);
    key.append(item);
  };
  if (series.length > 1) for (const { label, colour: shade } of series) entry(label, "", shade);
  for (const { label } of panel.levels ?? []) entry(label, "level");
  return head;
}

function yRange(low, high, panel, chart) {
  if (low == null) return [0, 1];
  const fromZero = panel.from_zero || chart.fromZero;
  const bottom = fromZero ? Math.min(low, 0) : low;
  // Never so close that ticks differ in digits which the axis has no room for.
  const span = Math.max(high - bottom, 1e-3 * Math.abs(high)) || 1;
  // The room above the first panel's lines is for the names of the phases.
  const rows = panel.first ? 1 + Math.max(0, ...chart.phases.map(({ row }) => row ?? 0)) : 0;
  const room = Math.max(0.06, (rows * 22) / panel.height / (1 - (rows * 22) / panel.height));
  return [fromZero && bottom === 0 ? 0 : bottom - 0.06 * span, high + room * 1.06 * span];
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
    label: isLast ? "time since the first sample, s" : undefined,
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

// The same width in every panel, so that their time axes lie above each other.
function valueAxis(lanes, chart) {
  return {
    stroke: () => colour("--text-muted"),
    grid: { show: !lanes.length, stroke: () => colour("--grid"), width: 1 },
    ticks: { show: false },
    size: chart.lanes.length ? LANES_WIDTH : AXIS_WIDTH,
    font: AXIS_FONT,
    splits: lanes.length ? () => lanes.map((lane, row) => 1 - (row + 0.5) / lanes.length) : undefined,
    incrs: STEPS,
    values: lanes.length ? () => lanes.map((lane) => lane.name) : (u, splits, axis, space, step) => axisNumbers(splits, step),
  };
}
