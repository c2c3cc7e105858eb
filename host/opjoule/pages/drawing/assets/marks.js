// What is drawn with the series: phases, lost stretches, levels, background work, names.
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The part of a stretch that is in view, in canvas pixels, or null.
function spanInView({ bbox, valToPos }, start, end) {
  const left = Math.max(valToPos(start, "x", true), bbox.left);
  const right = Math.min(valToPos(end, "x", true), bbox.left + bbox.width);
  return right > left ? { left, right } : null;
}

// Draws with what lies beyond the panel cut off.
function clipped({ ctx, bbox }, draw) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw();
  ctx.restore();
}

// Phases as ground, each with a line at both its ends.
function drawPhases(u, phases) {
  for (const { kind, row, start_s, end_s } of phases) {
    const span = row ? null : spanInView(u, start_s, end_s);
    if (!span) continue;
    u.ctx.fillStyle = phaseColour(kind);
    u.ctx.fillRect(span.left, u.bbox.top, span.right - span.left, u.bbox.height);
    u.ctx.fillStyle = colour("--text-muted");
    for (const x of [span.left, span.right]) u.ctx.fillRect(x, u.bbox.top, devicePixelRatio, u.bbox.height);
  }
}

function phaseColour(kind) {
  return colour(`--phase-${kind}`) || colour("--phase-other");
}

// Names along the top; the phases of a further run as strips below these.
function drawPhaseNames(u, phases) {
  const { ctx, bbox } = u, ratio = devicePixelRatio;
  ctx.save();
  setText(ctx, 12, "left", "top");
  for (const { name, kind, row, colour: edge, start_s, end_s } of phases) {
    const span = spanInView(u, start_s, end_s), top = bbox.top + (3 + 20 * (row ?? 0)) * ratio;
    if (!span) continue;
    if (row) {
      ctx.fillStyle = phaseColour(kind);
      ctx.fillRect(span.left, top, span.right - span.left, 18 * ratio);
      ctx.fillStyle = colour(edge);
      ctx.fillRect(span.left, top, Math.min(2 * ratio, span.right - span.left), 18 * ratio);
    }
    const { width } = ctx.measureText(name);
    if (span.right - span.left < width + 10 * ratio) continue;
    ctx.fillStyle = phaseColour(kind); // a name stays readable where samples were lost
    ctx.fillRect(span.left + 3 * ratio, top + 2 * ratio, width + 4 * ratio, 15 * ratio);
    ctx.fillStyle = colour("--text");
    ctx.fillText(name, span.left + 5 * ratio, top + 3 * ratio);
  }
  ctx.restore();
}

// The selected stretch.
function drawChosen(u, chosen) {
  const span = chosen && spanInView(u, ...chosen);
  if (!span) return;
  u.ctx.fillStyle = colour("--chosen");
  u.ctx.fillRect(span.left, u.bbox.top, span.right - span.left, u.bbox.height);
  u.ctx.fillStyle = colour("--text");
  for (const time of chosen) {
    const x = u.valToPos(time, "x", true);
    if (x >= span.left && x <= span.right) u.ctx.fillRect(x - 0.5, u.bbox.top, devicePixelRatio, u.bbox.height);
  }
}

// The letters of the markers, which are the ends of the selected stretch, at the foot of a panel.
function drawMarkers(u, chosen) {
  const { ctx, bbox } = u, side = 15 * devicePixelRatio;
  ctx.save();
  setText(ctx, 11, "center", "middle");
  (chosen ?? []).forEach((time, i) => {
    const x = u.valToPos(time, "x", true), top = bbox.top + bbox.height - side;
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    const left = Math.min(Math.max(i ? x : x - side, bbox.left), bbox.left + bbox.width - side);
    ctx.fillStyle = colour("--text");
    ctx.fillRect(left, top, side, side);
    ctx.fillStyle = colour("--sheet");
    ctx.fillText("AB"[i], left + side / 2, top + side / 2);
  });
  ctx.restore();
}

function setText(ctx, pixels, align, baseline) {
  ctx.font = `${pixels * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = align;
  ctx.textBaseline = baseline;
}

// Lost stretches: hatched over the whole height; one too narrow for that keeps a faint line and the mark above, so that none
// vanishes when the whole run is in view.
function drawGaps(u, gaps) {
  const { ctx, bbox } = u;
  const least = 2 * devicePixelRatio;
  const hatch = hatching(ctx);
  let drawnTo = -Infinity;
  for (let i = firstEndingAfter(gaps, u.scales.x.min); i < gaps.start.length && gaps.start[i] < u.scales.x.max; i++) {
    const left = Math.max(u.valToPos(gaps.start[i], "x", true), bbox.left);
    const end = Math.min(u.valToPos(gaps.end[i], "x", true), bbox.left + bbox.width);
    const right = Math.max(end, left + least);
    if (right <= drawnTo) continue;
    ctx.fillStyle = end - left >= least ? hatch : colour("--gap-faint");
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    ctx.fillStyle = colour("--gap");
    ctx.fillRect(left, bbox.top, right - left, 4 * devicePixelRatio);
    drawnTo = right;
  }
}

function firstEndingAfter(gaps, time) {
  let low = 0, high = gaps.end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (gaps.end[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function hatching(ctx) {
  const size = 6 * devicePixelRatio;
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  pen.strokeStyle = colour("--gap");
  pen.lineWidth = devicePixelRatio;
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift, size);
    pen.lineTo(shift + size, 0);
  }
  pen.stroke();
  return ctx.createPattern(tile, "repeat");
}

// Dashed levels, such as the idle power; the panel's head names them.
function drawLevels(u, levels) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = colour("--text-muted");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  for (const { value } of levels) {
    const y = u.valToPos(value, "y", true);
    if (!(y >= bbox.top && y <= bbox.top + bbox.height)) continue;
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  ctx.restore();
}

// Background work of the engine: one lane a kind, a bar from start to end, at least one pixel wide.
function drawLanes(u, lanes) {
  const { ctx, bbox } = u;
  const height = bbox.height / Math.max(lanes.length, 1);
  clipped(u, () => lanes.forEach(({ start, end }, row) => {
    ctx.fillStyle = colour(`--lane-${row % 4}`);
    for (let i = 0; i < start.length; i++) {
      if (end[i] < u.scales.x.min || start[i] > u.scales.x.max) continue;
      const left = u.valToPos(start[i], "x", true);
      const width = Math.max(u.valToPos(end[i], "x", true) - left, devicePixelRatio);
      ctx.fillRect(left, bbox.top + row * height + height * 0.2, width, height * 0.6);
    }
  }));
}
