// The time chart: panels one above the other on one time axis, moved by mouse and keyboard, with a read-out.
"use strict";

const ZOOM_STEP = 1.5;
const PAN_STEP = 0.15;

class TimeChart {
  constructor(holder, content, tracks, gaps, lanes) {
    Object.assign(this, { holder, content, tracks, gaps, phases: content.phases, idle: content.idle_power, fromZero: false });
    this.whole = [0, content.duration_s];
    [this.start, this.end] = this.whole;
    this.shortest = 4 * shortestCell(tracks.power.levels[0].bounds);
    this.mouse = {
      mousedown: (u, target, select) => (event) => (event.shiftKey ? select(event) : this.startPan(event)),
      dblclick: () => () => this.show(...this.whole),
    };
    const stack = holder.querySelector(".panels");
    this.panels = content.panels.map((panel, i) => {
      const options = { ...panel, first: i === 0, lanes: panel.lanes ? lanes : undefined };
      return { ...options, plot: makePanel(options, this, stack, i === content.panels.length - 1) };
    });
    this.listen(stack);
    listenToTouch(this, stack);
    this.show(...this.whole);
  }

  listen(stack) {
    new ResizeObserver(() => this.resize(stack.clientWidth)).observe(stack);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    stack.addEventListener("mousemove", () => this.holder.querySelector(".readout").removeAttribute("aria-live"));
    stack.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.holder.addEventListener("keydown", (event) => this.onKey(event));
    for (const button of this.holder.querySelectorAll("button[data-do]")) {
      button.addEventListener("click", () => this.act(button.dataset.do));
    }
    for (const button of this.holder.querySelectorAll("button[data-start]")) {
      button.addEventListener("click", () => this.showWithMargin(+button.dataset.start, +button.dataset.end));
    }
    this.holder.querySelector("#from-zero").addEventListener("change", (event) => {
      this.fromZero = event.target.checked;
      this.redraw();
    });
  }

  resize(width) {
    for (const { plot } of this.panels) plot.setSize({ width, height: plot.height });
    this.redraw();
  }

  // Shows the time from start to end [s], kept inside the record and no narrower than a few samples.
  show(start, end) {
    const [first, last] = this.whole;
    const width = Math.min(Math.max(end - start, this.shortest), last - first);
    this.start = Math.min(Math.max(start, first), last - width);
    this.end = this.start + width;
    this.redraw();
    this.sayView();
    this.sayCursor();
  }

  showWithMargin(start, end) {
    const margin = 0.03 * (end - start);
    this.show(start - margin, end + margin);
  }

  redraw() {
    for (const panel of this.panels) {
      const pixels = panel.plot.bbox.width / devicePixelRatio;
      panel.view = columnsInView(this.tracks[panel.track], panel.series ?? [], this.start, this.end, pixels);
      panel.plot.batch(() => {
        panel.plot.setData(panel.view.data, false);
        panel.plot.setScale("x", { min: this.start, max: this.end });
      });
      panel.plot.redraw(false, true);
    }
  }

  zoom(factor, centre = (this.start + this.end) / 2) {
    this.show(centre - (centre - this.start) * factor, centre + (this.end - centre) * factor);
  }

  pan(share) {
    const step = share * (this.end - this.start);
    this.show(this.start + step, this.end + step);
  }

  act(name) {
    const actions = {
      in: () => this.zoom(1 / ZOOM_STEP),
      out: () => this.zoom(ZOOM_STEP),
      left: () => this.pan(-PAN_STEP),
      right: () => this.pan(PAN_STEP),
      whole: () => this.show(...this.whole),
      first: () => this.show(this.whole[0], this.whole[0] + this.end - this.start),
      last: () => this.show(this.whole[1] - (this.end - this.start), this.whole[1]),
      pageLeft: () => this.pan(-1),
      pageRight: () => this.pan(1),
    };
    actions[name]();
  }

  onKey(event) {
    if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.shiftKey && event.key.startsWith("Arrow")) {
      event.preventDefault();
      this.moveCursor(event.key === "ArrowLeft" ? -4 : 4);
      return;
    }
    const keys = {
      "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "whole",
      Home: "first", End: "last", PageUp: "pageLeft", PageDown: "pageRight",
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    this.act(keys[event.key]);
  }

  // The wheel scrolls the page until the chart has the focus; with Ctrl it always zooms.
  onWheel(event) {
    if (!event.ctrlKey && !this.holder.contains(document.activeElement)) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return this.pan(event.deltaX / 1000);
    const { left } = this.panels[0].plot.over.getBoundingClientRect();
    this.zoom(Math.exp(event.deltaY / 500), this.panels[0].plot.posToVal(event.clientX - left, "x"));
  }

  startPan(event) {
    if (event.button !== 0) return;
    this.holder.querySelector(".panels").focus({ preventScroll: true });
    const { start, end } = this;
    const scale = (end - start) / this.panels[0].plot.over.clientWidth;
    const move = (now) => this.show(start - (now.clientX - event.clientX) * scale, end - (now.clientX - event.clientX) * scale);
    document.addEventListener("mousemove", move);
    document.addEventListener("mouseup", () => document.removeEventListener("mousemove", move), { once: true });
  }

  onSelect(u) {
    if (u.select.width < 3) return;
    const [from, to] = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.show(from, to);
  }

  // Moves the read-out by some pixels, from the middle where it is nowhere yet; what it then says is spoken too.
  moveCursor(pixels) {
    const { plot } = this.panels[0];
    this.placeCursor(plot.cursor.left >= 0 ? plot.cursor.left + pixels : plot.over.clientWidth / 2);
    this.holder.querySelector(".readout").setAttribute("aria-live", "polite");
  }

  // Puts the read-out and every panel's line at a place [pixels from the left of the panels].
  placeCursor(pixels) {
    const left = Math.min(Math.max(pixels, 0), this.panels[0].plot.over.clientWidth - 1);
    for (const { plot } of this.panels) plot.setCursor({ left, top: 10 }, true, false);
  }

  onCursor(u) {
    if (u === this.panels?.[0]?.plot) this.sayCursor();
  }

  // The place stays while the view moves, so what is under it is read again.
  sayCursor() {
    const { plot } = this.panels[0];
    const time = plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : null;
    this.holder.querySelector(".readout").replaceChildren(...readoutNodes(readout(this, time)));
  }

  sayView() {
    this.holder.querySelector(".in-view").textContent = viewSentence(this);
  }
}

function shortestCell(bounds) {
  let shortest = Infinity;
  for (let i = 1; i < bounds.length; i++) shortest = Math.min(shortest, bounds[i] - bounds[i - 1] || Infinity);
  return shortest;
}
