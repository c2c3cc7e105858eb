// The time chart of every page: panels one above the other on one time axis, moved by mouse, keys and fingers, with a
// read-out. drawing/chart.py makes its frame; uPlot draws each panel (panels.js).
//
//   const chart = new drawing.TimeChart(frame, listeners);
//   chart.setScene({ whole, panels, tracks, phases, gaps, lanes, idle, shortest });
//
// listeners: { changed(), selected(stretch or null), pointed(time) }, each optional; times in seconds.
// whole: [first, last]. panels: what report/html.py says. tracks: name -> what has levels, level(start, end, pixels) and, where
// joules are shown, integral(name, start, end) (pyramid.js). phases: { name, kind, start_s, end_s, row }, row 0 as
// ground, others as strips. gaps: { start, end, lost }. lanes: [{ name, start, end }]. idle: { value_w, u_w } or null.
// shortest: no view is shorter.

const ZOOM_STEP = 1.5;
const PAN_STEP = 0.15;
// How near to a marker a mouse or a finger takes hold of it [pixels].
const MOUSE_REACH = 6;
const FINGER_REACH = 22;
const EMPTY_SCENE = { whole: [0, 1], panels: [], tracks: {}, phases: [], gaps: { start: [], end: [], lost: [] }, lanes: [], idle: null, shortest: 2e-6 };
const KEYS = {
  "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "whole", Home: "first", End: "last",
  PageUp: "pageLeft", PageDown: "pageRight", Enter: "select", z: "chosen", Escape: "none", "[": "begin", "]": "finish", a: "begin", b: "finish",
};

class TimeChart {
  constructor(holder, listeners = {}) {
    Object.assign(this, EMPTY_SCENE, { holder, listeners, fromZero: false, chosen: null, pointed: null, start: 0, end: 1, panels: [], made: "" });
    this.stack = holder.querySelector(".panels");
    this.mouse = {
      mousedown: () => (event) => this.startDrag(event),
      dblclick: () => () => this.show(...this.whole),
    };
    this.listen();
    listenToTouch(this, this.stack);
  }

  listen() {
    const { stack, holder } = this;
    new ResizeObserver(() => this.resize(stack.clientWidth)).observe(stack);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    stack.addEventListener("mousemove", () => this.part(".readout").removeAttribute("aria-live"));
    stack.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    holder.addEventListener("keydown", (event) => this.onKey(event));
    holder.addEventListener("click", ({ target }) => {
      const { do: action, start, end } = target.closest("button")?.dataset ?? {};
      if (action) this.act(action);
      if (start) this.showPhase(+start, +end);
    });
    this.part("#from-zero").addEventListener("change", ({ target }) => { this.fromZero = target.checked; this.redraw(); });
  }

  part(selector) { return this.holder.querySelector(selector); }

  // Takes on what is to be drawn; panels are made anew only where they change.
  setScene(scene) {
    const panels = scene.panels ?? this.panels, described = JSON.stringify(panels);
    Object.assign(this, scene, { panels: this.panels });
    if (described !== this.made) this.makePanels(panels);
    this.made = described;
    this.redraw();
    this.sayView();
  }

  makePanels(panels) {
    for (const { plot } of this.panels) plot.destroy();
    this.stack.replaceChildren();
    this.panels = [];
    this.panels = panels.map((panel, i) => {
      const options = { ...panel, first: i === 0 };
      return { ...options, shown: {}, plot: makePanel(options, this, i === panels.length - 1) };
    });
  }

  get plot() { return this.panels[0]?.plot; }

  get width() { return this.plot?.over.clientWidth || this.stack.clientWidth; }

  resize(width) {
    for (const { plot } of this.panels) plot.setSize({ width, height: plot.height });
    this.redraw();
  }

  // Shows the time from start to end [s], kept inside the whole and no narrower than a few samples.
  show(start, end) {
    const [first, last] = this.whole;
    const width = Math.min(Math.max(end - start, this.shortest), last - first);
    this.start = Math.min(Math.max(start, first), last - width);
    this.end = this.start + width;
    this.redraw();
    this.sayView();
    this.listeners.changed?.();
  }

  showPhase(start, end) {
    const margin = 0.03 * (end - start);
    this.select(start, end);
    this.show(start - margin, end + margin);
  }

  redraw() {
    for (const panel of this.panels) {
      const pixels = panel.plot.bbox.width / devicePixelRatio;
      const view = columnsInView(this.tracks, panel, this.start, this.end, pixels);
      panel.shown = view.levels;
      panel.plot.batch(() => {
        panel.plot.setData(view.data, false);
        panel.plot.setScale("x", { min: this.start, max: this.end });
      });
      panel.plot.redraw(false, true);
    }
    this.sayCursor();
  }

  zoom(factor, centre = (this.start + this.end) / 2) {
    this.show(centre - (centre - this.start) * factor, centre + (this.end - centre) * factor);
  }

  move(share) {
    const step = share * (this.end - this.start);
    this.show(this.start + step, this.end + step);
  }

  // Selects a stretch [s] inside the whole, or nothing with null. Its ends are the markers A and B.
  select(start, end) {
    this.mark(start, end);
    this.listeners.selected?.(this.chosen);
  }

  mark(start, end) {
    const inside = (time) => Math.min(Math.max(time, this.whole[0]), this.whole[1]);
    this.chosen = start === null || !(inside(start) < inside(end)) ? null : [inside(start), inside(end)];
    for (const { plot } of this.panels) plot.redraw(false, true);
    this.sayView();
  }

  // Time of the marker that is not at this place [pixels from the left of the panels]; null where no marker is near.
  otherMarker(place, reach) {
    if (!this.chosen) return null;
    const [a, b] = this.chosen.map((time) => Math.abs(this.plot.valToPos(time, "x") - place));
    return Math.min(a, b) > reach ? null : this.chosen[a <= b ? 1 : 0];
  }

  // Time of the read-out, or where it was last, while that is in view; else the middle of the view.
  markedTime() {
    const { pointed, start, end } = this;
    return this.cursorTime() ?? (pointed >= start && pointed <= end && pointed !== null ? pointed : (start + end) / 2);
  }

  act(name) {
    const { whole, start, end, chosen } = this, at = this.markedTime();
    const actions = {
      in: () => this.zoom(1 / ZOOM_STEP),
      out: () => this.zoom(ZOOM_STEP),
      left: () => this.move(-PAN_STEP),
      right: () => this.move(PAN_STEP),
      whole: () => this.show(...whole),
      first: () => this.show(whole[0], whole[0] + end - start),
      last: () => this.show(whole[1] - (end - start), whole[1]),
      pageLeft: () => this.move(-1),
      pageRight: () => this.move(1),
      select: () => this.select(start, end),
      begin: () => this.select(at, chosen && chosen[1] > at ? chosen[1] : end),
      finish: () => this.select(chosen && chosen[0] < at ? chosen[0] : start, at),
      chosen: () => chosen && this.show(...chosen),
      none: () => this.select(null),
    };
    actions[name]?.();
  }

  onKey(event) {
    const { key, target, shiftKey } = event;
    if (target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (key === "Enter" && target.matches("button")) return;
    if (shiftKey && key.startsWith("Arrow")) this.moveCursor(key === "ArrowLeft" ? -4 : 4);
    else if (key in KEYS) this.act(KEYS[key]);
    else return;
    event.preventDefault();
  }

  // The wheel scrolls the page until the chart has the focus; with Ctrl it always zooms.
  onWheel(event) {
    if (!this.plot || (!event.ctrlKey && !this.holder.contains(document.activeElement))) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return this.move(event.deltaX / 1000);
    this.zoom(Math.exp(event.deltaY / 500), this.timeAt(event.clientX));
  }

  // The time under a place of the window [pixels].
  timeAt(x) { return this.plot.posToVal(x - this.plot.over.getBoundingClientRect().left, "x"); }

  // Dragging selects, or moves the marker that is there; with Shift it moves the view.
  startDrag(event) {
    if (event.button !== 0) return;
    this.stack.focus({ preventScroll: true });
    const { start, end } = this, under = this.timeAt(event.clientX), scale = (end - start) / this.width;
    const from = this.otherMarker(this.plot.valToPos(under, "x"), MOUSE_REACH) ?? under;
    let far = false;
    const move = ({ clientX }) => {
      far ||= Math.abs(clientX - event.clientX) > 3;
      const by = (clientX - event.clientX) * scale;
      if (far && event.shiftKey) this.show(start - by, end - by);
      else if (far) this.mark(...[from, this.timeAt(clientX)].sort((a, b) => a - b));
    };
    const stop = () => {
      document.removeEventListener("mousemove", move);
      if (far && !event.shiftKey) this.listeners.selected?.(this.chosen);
    };
    document.addEventListener("mousemove", move);
    document.addEventListener("mouseup", stop, { once: true });
  }

  // Moves the read-out by some pixels, from the middle where it is nowhere yet; what it then says is spoken too.
  moveCursor(pixels) {
    if (!this.plot) return;
    const { left } = this.plot.cursor;
    this.placeCursor(left >= 0 ? left + pixels : this.width / 2);
    this.part(".readout").setAttribute("aria-live", "polite");
  }

  // Puts the read-out and every panel's line at a place [pixels from the left of the panels].
  placeCursor(pixels) {
    const left = Math.min(Math.max(pixels, 0), this.width - 1);
    for (const { plot } of this.panels) plot.setCursor({ left, top: 10 }, true, false);
  }

  onCursor(u) {
    if (u !== this.plot) return;
    this.sayCursor();
    const time = this.cursorTime();
    if (time === null) return;
    this.pointed = time;
    this.listeners.pointed?.(time);
  }

  cursorTime() { return this.plot?.cursor.left >= 0 ? this.plot.posToVal(this.plot.cursor.left, "x") : null; }

  // The place stays while the view moves, so what is under it is read again.
  sayCursor() { this.part(".readout").replaceChildren(...readoutNodes(readout(this, this.cursorTime()))); }

  sayView() { this.part(".in-view").textContent = viewSentence(this); }
}

// Buttons of phases, a click on which selects and shows one.
function phaseButtons(phases) {
  const several = new Set(phases.map(({ repeat }) => repeat)).size > 1;
  return phases.map(({ name, kind, repeat, start_s, end_s }) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = `phase ${kind}`;
    button.textContent = several ? `${name} ${repeat}` : name;
    Object.assign(button.dataset, { start: start_s, end: end_s });
    return button;
  });
}
