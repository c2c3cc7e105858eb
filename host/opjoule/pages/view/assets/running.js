"use strict";
// Joules as they add up over the selected stretch, one line a run, drawn by uPlot.

const RUNNING_HEIGHT = 240;

class RunningChart {
  constructor(place) {
    this.place = place;
    this.plot = null;
    this.lines = [];
    new ResizeObserver(() => this.plot?.setSize({ width: this.width, height: RUNNING_HEIGHT })).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show(this.lines));
  }

  get width() { return Math.max(this.place.clientWidth, 200); }

  /** @param {{name: string, colour: string, time_s: number[], energy_j: number[]}[]} lines each with its own times, s */
  show(lines) {
    this.lines = lines;
    this.plot?.destroy();
    this.plot = null;
    if (!lines.length) return;
    const axis = (label, size) => ({
      label, size, labelSize: 18, labelFont: "12px system-ui, sans-serif", font: "12px system-ui, sans-serif",
      stroke: drawing.colour("--text-muted"), grid: { stroke: drawing.colour("--grid"), width: 1 }, ticks: { stroke: drawing.colour("--grid") },
    });
    const options = {
      width: this.width,
      height: RUNNING_HEIGHT,
      scales: { x: { time: false } },
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false },
      axes: [axis("time since the stretch began, s", 34), axis("energy, J", 58)],
      series: [{}, ...lines.map((line) => ({ label: line.name, stroke: drawing.colour(line.colour), width: 2, points: { show: false } }))],
    };
    const columns = lines.map((line) => [line.time_s, line.energy_j]);
    this.plot = new uPlot(options, uPlot.join(columns), this.place);
  }
}
