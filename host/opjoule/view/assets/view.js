"use strict";
// The page of runs: asks the server, draws with chart.js, and says the numbers of the selected stretch.

const byId = (id) => document.getElementById(id);
const LIVE_S = 60; // of a measurement that goes on, so much is in view
const PREFIXES = [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"], [1e-12, "p"]];

/** One question to the server; an error that it tells is thrown with its words. */
async function ask(what, parameters = {}) {
  const response = await fetch(`${what}?${new URLSearchParams(parameters)}`);
  const value = await response.json();
  if (!response.ok) throw new Error(value.error);
  return value;
}

function made(name, words = "", attributes = {}) {
  const element = document.createElement(name);
  element.textContent = words;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** Value with 6 digits, u with 2, and unit; small ones with a prefix. */
function inWords({ value, u, unit, reason }) {
  if (value === null) return "not known";
  const least = Math.abs(value);
  const [scale, prefix] = (unit === "J" || unit === "W") && least > 0
    ? PREFIXES.find(([one]) => least >= one) ?? PREFIXES.at(-1) : PREFIXES[0];
  const spread = u ? ` ± ${Number((u / scale).toPrecision(2))}` : "";
  return `${(value / scale).toPrecision(6)}${spread} ${prefix}${unit}`;
}

class Viewer {
  constructor() {
    this.shown = [null, null];
    this.asking = 0;
    this.stepMs = 0;
    this.chart = new Chart(byId("chart"), {
      changed: () => this.refresh(),
      selected: (stretch) => this.select(stretch),
    });
    ["first", "second"].forEach((id, place) => byId(id).addEventListener("change", () => this.open(place)));
    byId("align").addEventListener("change", () => { this.layOut(); this.refresh(); this.select(this.chart.chosen); });
    for (const id of ["from", "to"]) byId(id).addEventListener("change", () => this.typed());
  }

  async start() {
    const { runs, folder, live } = await ask("runs");
    if (live) {
      this.follow();
      return;
    }
    byId("second").append(made("option", "none", { value: "" }));
    for (const run of runs) {
      const state = run.status === "complete" ? "" : `, ${run.status}`;
      const words = run.title === run.name ? `${run.name}${state}` : `${run.name}: ${run.title}${state}`;
      for (const id of ["first", "second"]) byId(id).append(made("option", words, { value: run.name }));
    }
    if (runs.length) await this.open(0);
    else this.say(`There is no run in ${folder} yet: host/measure.py makes one.`);
  }

  /** A measurement that goes on: asks once a second how it stands, until its server is gone. */
  async follow() {
    document.body.classList.add("live");
    byId("now").hidden = false;
    for (;;) {
      try {
        const [run] = (await ask("runs")).runs;
        if (run) this.grown(run.name, await ask("run", { run: run.name }));
        else this.say("The measurement is being prepared.");
      } catch (error) {
        if (!(error instanceof TypeError)) { this.say(error.message); continue; }
        this.say("The measurement has ended: host/view.py shows its record.");
        return;
      } finally { await new Promise((resolve) => setTimeout(resolve, 1000)); }
    }
  }

  /** The run has grown: a view of its end moves along. */
  grown(name, told) {
    const { chart } = this, same = this.shown[0]?.name === name, known = same && this.shown[0].duration_s > 0;
    if (!same) byId("first").replaceChildren(made("option", name, { value: name }));
    const [first, last] = chart.whole, length = chart.end - chart.start, atEnd = !known || chart.end >= last - 1e-6;
    const whole = !known || length >= last - first - 1e-6;
    this.shown[0] = { name, operations: 0, ...told, data: same ? this.shown[0].data : null };
    if (!same) this.aligned();
    this.layOut();
    const words = `${told.title}: ${told.now.phase ?? "being measured"}`;
    if (byId("said").textContent !== words) this.say(words);
    const units = { power_w: [3, " W"], operations_per_s: [0, ""], temperature_c: [1, " °C"] };
    for (const cell of byId("now").querySelectorAll("dd")) {
      const value = told.now[cell.dataset.now], [digits, unit] = units[cell.dataset.now] ?? [];
      cell.textContent = value === null ? "–" : unit === undefined ? value : `${value.toFixed(digits)}${unit}`;
    }
    if (!told.duration_s || !atEnd) return;
    const end = chart.whole[1];
    chart.show(end - (whole ? Math.min(end, LIVE_S) : length), end);
  }

  say(words) { byId("said").textContent = words; }

  /** What the page waits for is counted, so that a test knows when all is drawn. */
  async during(work) {
    this.asking += 1;
    try { return await work(); } catch (error) { this.say(error.message); return null; } finally { this.asking -= 1; }
  }

  async open(place) {
    const name = byId(["first", "second"][place]).value;
    const turn = (this.turns ??= [0, 0])[place] += 1;
    if (name) this.say(`reading ${name} ...`);
    const told = name && await this.during(() => ask("run", { run: name }));
    if (turn !== this.turns[place]) return;
    if (name && !told) { this.shown[place] = null; this.layOut(true); return; }
    this.shown[place] = told ? { name, ...told, data: null } : null;
    this.aligned();
    this.layOut(true);
    this.chart.show(...(place === 0 ? this.chart.whole : [this.chart.start, this.chart.end]));
    this.select(place === 0 ? null : this.chart.chosen);
  }

  /** Moments that both runs have, to be laid on each other. */
  aligned() {
    const names = this.shown.map((run) => new Set(run?.phases.map((phase) => `${phase.name} ${phase.repeat}`)));
    const before = byId("align").value, common = [...names[0]].filter((name) => names[1].has(name));
    byId("align").replaceChildren(...["the trace", ...common].map((name) => made("option", name, { value: name })));
    if (common.includes(before)) byId("align").value = before;
    else if (common.includes("run 1") && this.shown[1]) byId("align").value = "run 1";
    byId("align").disabled = !this.shown[1];
  }

  get runs() { return this.shown.filter(Boolean); }

  /** Puts the runs on the chart's axis, which is the first one's. */
  layOut(speak = false) {
    const moment = (run) => run.phases.find((phase) => `${phase.name} ${phase.repeat}` === byId("align").value)?.start_s ?? 0;
    const origin = this.shown[0] ? moment(this.shown[0]) : 0;
    for (const run of this.runs) run.shift_s = this.shown[0] && run !== this.shown[0] ? moment(run) - origin : 0;
    const first = Math.min(0, ...this.runs.map((run) => -run.shift_s));
    const last = Math.max(...this.runs.map((run) => run.duration_s - run.shift_s), first + 1e-3);
    this.chart.whole = [first, last];
    this.chart.curves = this.runs.map((run) => this.curve(run));
    const phases = this.shown[0]?.phases ?? [], names = JSON.stringify(phases.map(({ name, repeat }) => [name, repeat]));
    if (byId("phases").dataset.names !== names) { // a button that has the focus keeps it while a run grows
      byId("phases").dataset.names = names;
      byId("phases").replaceChildren(...drawing.phaseButtons(phases));
    }
    byId("faults").replaceChildren(...this.runs.flatMap((run) => run.faults.map((line) => made("li", line))));
    if (speak && this.runs.length) {
      this.say(this.runs.map((run) => `${run.name}: ${run.title}, ${run.status}, ${run.samples.toLocaleString("en")} samples in ` +
        `${run.duration_s.toFixed(1)} s, ${run.operations.toLocaleString("en")} operations`).join("; "));
    }
    this.chart.draw();
  }

  curve(run) {
    const { name, data, shift_s } = run;
    return { name, data, shift_s, phases: run.phases.map((phase) => ({ ...phase, label: this.label(run, phase) })) };
  }

  label(run, phase) {
    return run.phases.some((each) => each.repeat !== phase.repeat) ? `${phase.name} ${phase.repeat}` : phase.name;
  }

  /** Asks for what is in view; while an answer is on its way, only the newest view waits for the next. */
  async refresh() {
    const begun = performance.now();
    if (this.fetching) { this.again = true; return; }
    this.fetching = true;
    this.asking += 1;
    try {
      do {
        this.again = false;
        await this.fetchView();
      } while (this.again);
    } catch (error) { this.say(error.message); } finally { this.fetching = false; this.asking -= 1; }
    this.stepMs = performance.now() - begun;
  }

  async fetchView() {
    const { start, end, width } = this.chart, runs = this.runs;
    const answers = await Promise.all(runs.map((run) => ask("power", {
      run: run.name, start: start + run.shift_s, end: end + run.shift_s, columns: Math.min(width, 1500),
    })));
    runs.forEach((run, i) => { run.data = answers[i]; });
    this.chart.curves = this.runs.map((run) => this.curve(run));
    this.chart.draw();
    await new Promise(requestAnimationFrame);
  }

  typed() {
    const [start, end] = ["from", "to"].map((id) => Number(byId(id).value.trim().replace(",", ".") || NaN));
    if (start < end) this.chart.select(start, end);
    else if (byId("from").value && byId("to").value) this.tell([made("p", "The end must come after the start.", { class: "reason" })]);
  }

  tell(elements) { byId("stretch").replaceChildren(...elements); }

  /** Fields and table of a stretch; the numbers are the library's. */
  async select(stretch) {
    const turn = (this.selecting = (this.selecting ?? 0) + 1);
    if (!stretch || !this.runs.length) {
      byId("from").value = byId("to").value = "";
      this.tell([made("p", "Nothing is selected.", { class: "reason" })]);
      return;
    }
    ["from", "to"].forEach((id, i) => { byId(id).value = stretch[i].toFixed(9).replace(/\.?0+$/, ""); });
    const [start, end] = stretch.map((time_s) => Number(time_s.toFixed(9)));
    const runs = this.runs;
    const answers = await this.during(() => Promise.all(runs.map((run) => ask("stretch", {
      run: run.name, start: start + run.shift_s, end: end + run.shift_s,
    }).catch((error) => ({ error: error.message })))));
    if (answers && turn === this.selecting) this.tell([this.table(runs, answers)]);
  }

  table(runs, answers) {
    const table = made("table"), head = made("tr"), body = made("tbody");
    head.append(made("th", "", { scope: "col" }), ...runs.map((run) => made("th", `${run.name}: ${run.title}`, { scope: "col" })));
    const known = answers.find((answer) => !answer.error);
    const row = (label, cells) => {
      const line = made("tr");
      line.append(made("th", label, { scope: "row" }), ...cells);
      body.append(line);
    };
    if (answers.some((answer) => answer.error)) row("", answers.map(({ error }) => made("td", error ?? "")));
    known?.quantities.forEach(({ key, label }, i) => row(label, answers.map(({ quantities }) => {
      const cell = made("td", quantities ? inWords(quantities[i]) : "", quantities ? { "data-key": key, "data-value": quantities[i].value } : {});
      if (quantities?.[i].reason) cell.append(made("span", quantities[i].reason, { class: "reason" }));
      return cell;
    })));
    if (known) row("operations begun", answers.map(({ operations }) => made("td", operations?.toLocaleString("en") ?? "")));
    table.append(made("thead"), body);
    table.tHead.append(head);
    return table;
  }
}

window.viewer = new Viewer();
window.viewer.during(() => window.viewer.start());
