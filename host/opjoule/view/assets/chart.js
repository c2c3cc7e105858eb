"use strict";
// The time chart: power and operations per second of some runs on a canvas.

const EDGES = { left: 66, right: 14, gap: 34, bottom: 40 };
const SPARE = 0.06;
const LEAST_S = 2e-6;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Round numbers (1, 2 or 5 times a power of ten apart), at most about `most` of them, between two values. */
function ticks(low, high, most) {
  const raw = (high - low) / Math.max(most, 1);
  if (!(raw > 0)) return { step: 1, values: [] };
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= raw * 0.9999);
  const values = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) values.push(n * step);
  return { step, values };
}

/** A number with as many decimals as tell it from its neighbour one step away. */
function withStep(value, step) {
  return (Math.abs(value) < step / 2 ? 0 : value).toFixed(Math.min(9, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))));
}

/** 12000 as "12k". */
const short = (value, step) => (Math.abs(value) >= 1e4 ? `${value / 1000}k` : withStep(value, step));

class Chart {
  /**
   * @param {HTMLElement} place holds the canvas
   * @param {{changed: () => void, selected: (start: number, end: number) => void, pointed: (time_s: number) => void}} told
   */
  constructor(place, told) {
    this.place = place;
    this.canvas = place.querySelector("canvas");
    this.told = told;
    /** Each: {data, shift_s, phases, colour, band}; data as the server's "power" answers. */
    this.curves = [];
    this.whole = [0, 1];
    this.start = 0;
    this.end = 1;
    this.chosen = null;
    new ResizeObserver(() => this.draw()).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.#listen();
  }

  /** Height of the strips of phases above the chart, one a run. */
  get top() { return 6 + 20 * Math.max(this.curves.length, 1); }

  get width() { return Math.max(this.place.clientWidth - EDGES.left - EDGES.right, 10); }

  /** Shows a stretch of the time axis, at most the whole of it. */
  show(start, end) {
    const [first, last] = this.whole;
    const length = Math.min(Math.max(end - start, LEAST_S), last - first);
    this.start = Math.min(Math.max(start, first), last - length);
    this.end = this.start + length;
    this.draw();
    this.told.changed();
  }

  zoom(factor, about = (this.start + this.end) / 2) {
    this.show(about + (this.start - about) * factor, about + (this.end - about) * factor);
  }

  move(share) {
    const by = share * (this.end - this.start);
    this.show(this.start + by, this.end + by);
  }

  toX(time_s) { return EDGES.left + ((time_s - this.start) / (this.end - this.start)) * this.width; }

  toTime(x) { return this.start + ((x - EDGES.left) / this.width) * (this.end - this.start); }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.#draw(); });
  }

  #draw() {
    const ratio = devicePixelRatio || 1, width = this.place.clientWidth, height = this.place.clientHeight;
    if (this.canvas.width !== Math.round(width * ratio)) this.canvas.width = Math.round(width * ratio);
    if (this.canvas.height !== Math.round(height * ratio)) this.canvas.height = Math.round(height * ratio);
    const ctx = this.ctx = this.canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.font = "12px system-ui, sans-serif";
    const rated = this.curves.some(({ data }) => data?.operations);
    const room = height - this.top - EDGES.bottom;
    const power = { top: this.top, height: rated ? (room - EDGES.gap) * 0.7 : room };
    const rate = { top: power.top + power.height + EDGES.gap, height: (room - EDGES.gap) * 0.3 };
    this.#phases(rated ? rate.top + rate.height : power.top + power.height);
    this.#power(power);
    if (rated) this.#rates(rate);
    this.#times(height - EDGES.bottom);
    this.#selection(height - EDGES.bottom);
  }

  /** A strip of phases for each curve; those of the first colour the background too. */
  #phases(bottom) {
    this.curves.forEach(({ phases, shift_s, colour: own }, row) => {
      for (const phase of phases) {
        const left = Math.max(this.toX(phase.start_s - shift_s), EDGES.left);
        const right = Math.min(this.toX(phase.end_s - shift_s), EDGES.left + this.width);
        if (right <= left) continue;
        const top = 2 + 20 * row;
        this.ctx.fillStyle = colour(`--phase-${phase.kind}`) || colour("--phase-other");
        this.ctx.fillRect(left, top, right - left, 18);
        if (row === 0) this.ctx.fillRect(left, this.top, right - left, bottom - this.top);
        this.ctx.fillStyle = colour(own);
        this.ctx.fillRect(left, top, Math.min(2, right - left), 18);
        this.ctx.fillStyle = colour("--text");
        const label = phase.label;
        if (this.ctx.measureText(label).width + 10 < right - left) this.#text(label, left + 6, top + 13);
      }
    });
  }

  #power(box) {
    let low = Infinity, high = -Infinity;
    for (const { data, shift_s } of this.curves) {
      if (!data) continue;
      data.least_w.forEach((least, i) => {
        if (least === null || data.bounds_s[i + 1] - shift_s < this.start || data.bounds_s[i] - shift_s > this.end) return;
        low = Math.min(low, least);
        high = Math.max(high, data.greatest_w[i]);
      });
    }
    if (!(low <= high)) { low = 0; high = 1; }
    const margin = (high - low || Math.abs(high) || 1) * SPARE;
    const y = this.#values(box, low - margin, high + margin, "power, W");
    this.#inside(box, () => this.curves.forEach((curve) => curve.data && this.#curve(curve, y, box)));
  }

  #curve({ data, shift_s, colour: own, band }, y, box) {
    const { ctx } = this, x = data.bounds_s.map((time_s) => this.toX(time_s - shift_s));
    ctx.fillStyle = colour(band);
    data.mean_w.forEach((mean, i) => {
      if (mean === null) this.#lost(x[i], x[i + 1], box);
      else if (!data.single) {
        const top = y(data.greatest_w[i]);
        ctx.fillRect(x[i], top, Math.max(x[i + 1] - x[i], 1), Math.max(y(data.least_w[i]) - top, 1));
      }
    });
    this.#steps(x, data.mean_w, y, own);
    this.#marks({ data, shift_s }, box);
  }

  /** A mark above the power wherever samples were lost, however few. */
  #marks({ data, shift_s }, box) {
    this.ctx.fillStyle = colour("--gap");
    for (const time_s of data.lost_s) this.ctx.fillRect(this.toX(time_s - shift_s) - 1, box.top, 2, 5);
  }

  /** A step line, broken where a cell has no value. */
  #steps(x, values, y, own) {
    const { ctx } = this;
    ctx.beginPath();
    let drawing = false;
    values.forEach((value, i) => {
      if (value === null) { drawing = false; return; }
      if (drawing) ctx.lineTo(x[i], y(value)); else ctx.moveTo(x[i], y(value));
      ctx.lineTo(x[i + 1], y(value));
      drawing = true;
    });
    ctx.strokeStyle = colour(own);
    ctx.lineWidth = 1.3;
    ctx.stroke();
  }

  #lost(left, right, box) {
    const { ctx } = this;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, box.top, Math.max(right - left, 1.5), box.height);
    ctx.clip();
    ctx.fillStyle = colour("--gap-faint");
    ctx.fillRect(left, box.top, Math.max(right - left, 1.5), box.height);
    ctx.strokeStyle = colour("--gap");
    ctx.lineWidth = 1;
    ctx.beginPath();
    const from = Math.max(left, EDGES.left) - box.height, to = Math.min(right, EDGES.left + this.width) + 2;
    for (let at = from - (from % 8); at < to; at += 8) {
      ctx.moveTo(at, box.top + box.height);
      ctx.lineTo(at + box.height, box.top);
    }
    ctx.stroke();
    ctx.restore();
  }

  #rates(box) {
    const rated = this.curves.filter(({ data }) => data?.operations);
    const high = Math.max(1, ...rated.map(({ data }) => Math.max(...data.operations.per_s)));
    const y = this.#values(box, 0, high * (1 + SPARE), "operations /s");
    this.#inside(box, () => rated.forEach(({ data: { operations }, shift_s, colour: own }) => {
      this.#steps(operations.bounds_s.map((time_s) => this.toX(time_s - shift_s)), operations.per_s, y, own);
    }));
  }

  /** A value axis with grid and name; gives what takes a value to its height. */
  #values(box, low, high, name) {
    const { ctx } = this, y = (value) => box.top + box.height - ((value - low) / (high - low)) * box.height;
    const { step, values } = ticks(low, high, box.height / 44);
    for (const value of values) {
      ctx.strokeStyle = colour("--grid");
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(EDGES.left, y(value));
      ctx.lineTo(EDGES.left + this.width, y(value));
      ctx.stroke();
      ctx.fillStyle = colour("--text-muted");
      this.#text(short(value, step), EDGES.left - 7, y(value) + 4, "right");
    }
    ctx.save();
    ctx.translate(13, box.top + box.height / 2);
    ctx.rotate(-Math.PI / 2);
    this.#text(name, 0, 0, "center");
    ctx.restore();
    return y;
  }

  #times(bottom) {
    const { ctx } = this;
    const digits = withStep(this.end, (this.end - this.start) / 8).length;
    const { step, values } = ticks(this.start, this.end, this.width / (digits * 7 + 34));
    ctx.fillStyle = colour("--text-muted");
    for (const value of values) {
      const label = withStep(value, step), half = ctx.measureText(label).width / 2, right = EDGES.left + this.width;
      const x = Math.min(Math.max(this.toX(value), EDGES.left + half - 20), right + EDGES.right - half);
      ctx.fillRect(this.toX(value), bottom, 1, 4);
      this.#text(label, x, bottom + 17, "center");
    }
    this.#text("time since the trace began, s", EDGES.left + this.width / 2, bottom + 34, "center");
  }

  #selection(bottom) {
    if (!this.chosen) return;
    const { ctx } = this, right = EDGES.left + this.width;
    const [from, to] = this.chosen.map((time_s) => Math.min(Math.max(this.toX(time_s), EDGES.left), right));
    ctx.globalAlpha = 0.1;
    ctx.fillStyle = colour("--text");
    ctx.fillRect(from, this.top, to - from, bottom - this.top);
    ctx.globalAlpha = 1;
    for (const [time_s, x] of [[this.chosen[0], from], [this.chosen[1], to]]) {
      if (time_s >= this.start && time_s <= this.end) ctx.fillRect(x - 0.75, this.top, 1.5, bottom - this.top);
    }
  }

  #inside(box, paint) {
    this.ctx.save();
    this.ctx.beginPath();
    this.ctx.rect(EDGES.left, box.top, this.width, box.height);
    this.ctx.clip();
    paint();
    this.ctx.restore();
  }

  #text(words, x, y, align = "left") {
    this.ctx.textAlign = align;
    this.ctx.fillText(words, x, y);
  }

  #listen() {
    const { place } = this, at = (event) => this.toTime(event.clientX - place.getBoundingClientRect().left);
    let drag = null;
    place.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      place.focus({ preventScroll: true });
      place.setPointerCapture(event.pointerId);
      drag = { moves: event.shiftKey, from: at(event), start: this.start, end: this.end, x: event.clientX, far: false };
    });
    place.addEventListener("pointermove", (event) => {
      this.told.pointed(at(event));
      if (!drag) return;
      drag.far ||= Math.abs(event.clientX - drag.x) > 3;
      if (!drag.far) return;
      if (drag.moves) {
        const by = ((event.clientX - drag.x) / this.width) * (drag.end - drag.start);
        this.show(drag.start - by, drag.end - by);
      } else {
        this.chosen = [drag.from, at(event)].sort((a, b) => a - b);
        this.draw();
      }
    });
    const ended = () => {
      if (drag?.far && !drag.moves) this.select(...this.chosen);
      drag = null;
    };
    place.addEventListener("pointerup", ended);
    place.addEventListener("pointercancel", ended);
    place.addEventListener("dblclick", () => this.show(...this.whole));
    place.addEventListener("wheel", (event) => {
      if (document.activeElement !== place) return;
      event.preventDefault();
      this.zoom(1.5 ** Math.sign(event.deltaY), at(event));
    }, { passive: false });
    place.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    const moved = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (moved && event.shiftKey) {
      const [from, to] = this.chosen ?? [this.start, (this.start + this.end) / 2];
      this.select(from, Math.max(to + (moved * (this.end - this.start)) / 50, from + LEAST_S));
    } else if (moved) this.move(moved / 5);
    else if (event.key === "+" || event.key === "=") this.zoom(1 / 1.5);
    else if (event.key === "-") this.zoom(1.5);
    else if (event.key === "0") this.show(...this.whole);
    else if (event.key === "z" && this.chosen) this.show(...this.chosen);
    else if (event.key === "Home") this.show(this.whole[0], this.whole[0] + this.end - this.start);
    else if (event.key === "End") this.show(this.whole[1] - this.end + this.start, this.whole[1]);
    else if (event.key === "Enter") this.select(this.start, this.end);
    else if (event.key === "Escape") this.select(null);
    else return;
    event.preventDefault();
  }

  /** Selects a stretch inside the whole, or nothing with null. */
  select(start, end) {
    const [first, last] = this.whole;
    const inside = (time_s) => Math.min(Math.max(time_s, first), last);
    this.chosen = start === null ? null : [inside(start), inside(end)];
    if (this.chosen && !(this.chosen[0] < this.chosen[1])) this.chosen = null;
    this.draw();
    this.told.selected(this.chosen);
  }
}
