"use strict";
// The page of runs: what the user chooses is asked of the server, drawn and said.

const byId = (id) => document.getElementById(id);
const RUNNING_MOMENTS = 400;
const ASK_AGAIN_MS = 1000; // first wait while records are still being read
const ASK_AGAIN_FACTOR = 1.25; // each further wait is longer: all rows are sent and drawn each time

/** One question to the server; an error that it tells is thrown with its words. */
async function ask(what, parameters = {}) {
  const response = await fetch(`${what}?${new URLSearchParams(parameters)}`);
  const value = await response.json();
  if (!response.ok) throw new Error(value.error);
  return value;
}

class Viewer {
  constructor() {
    this.runs = [];
    this.asking = 0;
    this.stepMs = 0;
    this.phase = null;
    this.chart = new Chart(byId("chart"), {
      changed: () => this.refresh(),
      selected: (stretch) => this.select(stretch),
    });
    this.table = new RunTable(byId("table"), (name, isChosen) => this.choose(name, isChosen));
    this.running = new RunningChart(byId("running"));
    byId("align").addEventListener("change", () => { this.layOut(); this.refresh(); this.select(this.chart.chosen, this.phase); });
    byId("of-energy").addEventListener("change", () => this.drawRunning());
    for (const id of ["from", "to"]) byId(id).addEventListener("change", () => this.typed());
    byId("phases").addEventListener("click", ({ target }) => { this.pressed = this.runs[0]?.phases[[...byId("phases").children].indexOf(target)]; });
    document.addEventListener("visibilitychange", () => { if (!document.hidden && !this.live) this.during(() => this.list()); });
  }

  async start() {
    const listing = await ask("runs");
    this.live = Boolean(listing.live);
    if (this.live) {
      this.say("");
      follow(this);
      return;
    }
    await this.list(listing);
    if (listing.whole && listing.runs.length === 1 && listing.runs[0].status !== "unreadable") this.table.choose(listing.runs[0].name, true);
  }

  /** The table, again and again until all records are read. */
  async list(known = null, waitMs = ASK_AGAIN_MS) {
    const listing = known ?? await ask("runs");
    byId("title").textContent = `Runs in ${listing.folder}`;
    if (known) this.say("");
    this.table.show(listing.runs, listing.total, listing.whole);
    if (!listing.whole) setTimeout(() => this.during(() => this.list(null, waitMs * ASK_AGAIN_FACTOR)), waitMs);
    else if (!listing.runs.length) this.say(`There is no run in ${listing.folder} yet: host/measure.py makes one.`);
  }

  say(words) { byId("said").textContent = words; }

  /** What the page waits for is counted, so that a test knows when all is drawn. */
  async during(work) {
    this.asking += 1;
    try { return await work(); } catch (error) { this.say(error.message); return null; } finally { this.asking -= 1; }
  }

  /** Shows a run beside those that are shown, or takes it away. */
  async choose(name, isChosen) {
    if (!isChosen) this.runs = this.runs.filter((run) => run.name !== name);
    else {
      this.say(`Reading ${name} ...`);
      const facts = await this.during(() => ask("run", { run: name }));
      if (!facts) { this.table.chosen.delete(name); this.table.draw(); return; }
      if (!this.table.chosen.has(name) || this.runs.some((run) => run.name === name)) return; // no more, by now
      const taken = new Set(this.runs.map((run) => run.place));
      const place = COLOURS_OF_RUNS.findIndex((_, number) => !taken.has(number));
      this.runs.push({ name, place, ...facts, data: null });
      this.say("");
    }
    byId("shown").hidden = byId("to-chart").hidden = !this.runs.length;
    this.aligned();
    this.layOut();
    this.legend();
    if (!this.runs.length) return;
    if (this.runs.length === 1) this.chart.show(...this.chart.whole);
    else this.chart.show(this.chart.start, this.chart.end);
    this.select(this.runs.length === 1 ? null : this.chart.chosen, this.phase);
  }

  /** Moments that all runs have, to be laid on each other. */
  aligned() {
    const [first, ...others] = this.runs.map((run) => new Set(run.phases.map((phase) => `${phase.name} ${phase.repeat}`)));
    const before = byId("align").value;
    const common = [...(first ?? [])].filter((name) => others.every((names) => names.has(name)));
    byId("align").replaceChildren(...["the trace", ...common].map((name) => made("option", name, { value: name })));
    if (common.includes(before) && this.runs.length > 2) byId("align").value = before;
    else if (common.includes("run 1") && this.runs.length > 1) byId("align").value = "run 1";
    document.querySelector(".begin").hidden = this.runs.length < 2;
  }

  /** Puts the runs on the chart's axis, which is the first one's. */
  layOut() {
    const moment = (run) => run.phases.find((phase) => `${phase.name} ${phase.repeat}` === byId("align").value)?.start_s ?? 0;
    const origin = this.runs[0] ? moment(this.runs[0]) : 0;
    for (const run of this.runs) run.shift_s = run === this.runs[0] ? 0 : moment(run) - origin;
    const first = Math.min(0, ...this.runs.map((run) => -run.shift_s));
    const last = Math.max(...this.runs.map((run) => run.duration_s - run.shift_s), first + 1e-3);
    this.chart.whole = [first, last];
    this.chart.curves = this.runs.map((run) => this.curve(run));
    const phases = this.runs[0]?.phases ?? [], names = JSON.stringify(phases.map(({ name, repeat }) => [name, repeat]));
    const buttons = drawing.phaseButtons(phases), had = byId("phases");
    if (had.dataset.names !== names) had.replaceChildren(...buttons);
    else buttons.forEach((button, i) => Object.assign(had.children[i].dataset, button.dataset)); // the focus stays while a run grows
    had.dataset.names = names;
    byId("simulated").hidden = !this.runs.some((run) => run.simulated);
    this.chart.draw();
  }

  /** The runs that are shown, each with its colour, its report, and what to know first. */
  legend() {
    byId("legend").replaceChildren(...this.runs.map((run) => {
      const line = made("li"), row = this.table.rows.find((row) => row.name === run.name);
      const away = made("button", "remove", { type: "button", "aria-label": `remove ${run.name}` });
      away.addEventListener("click", () => this.table.choose(run.name, false));
      const report = made("a", "report", { href: `report?${new URLSearchParams({ run: run.name })}`, target: "_blank", "aria-label": `report of ${run.name}` });
      const swatch = made("span", "", { class: "swatch" });
      swatch.style.setProperty("--own", `var(${COLOURS_OF_RUNS[run.place]})`);
      line.append(swatch, made("strong", run.name), `: ${run.title}, ${run.status}, ${run.duration_s.toFixed(1)} s, ${run.operations.toLocaleString("en")} operations`, report, away);
      const lines = (row ?? run).notices.map(({ mark, text }) => `${mark}: ${text}`);
      const note = row && (row.note || row.tags.length) ? [`note: ${[...row.tags.map((tag) => `[${tag}]`), row.note].join(" ")}`] : [];
      const list = made("ul");
      list.append(...[...lines, ...note].map((words) => made("li", words)));
      if (list.children.length) line.append(list);
      return line;
    }));
  }

  curve(run) {
    const { name, place, data, shift_s } = run;
    return { name, place, data, shift_s, phases: run.phases.map((phase) => ({ ...phase, label: this.label(run, phase) })) };
  }

  label(run, phase) {
    return run.phases.some((other) => other.repeat !== phase.repeat) ? `${phase.name} ${phase.repeat}` : phase.name;
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

  /** A stretch on a run's own axis: of a phase that was chosen by its button the run's own, else the one on the chart. */
  stretchOf(run, stretch) {
    if (this.phase) {
      const same = run.phases.find(({ name, repeat }) => name === this.phase.name && repeat === this.phase.repeat);
      return same ? [same.start_s, same.end_s] : null;
    }
    return stretch.map((time_s) => Number((time_s + run.shift_s).toFixed(9)));
  }

  /** Fields, table and running joules of a stretch; the numbers are the library's. */
  async select(stretch, phase = null) {
    const turn = (this.selecting = (this.selecting ?? 0) + 1);
    this.phase = this.pressed ?? phase;
    this.pressed = null;
    byId("adding").hidden = true;
    if (!stretch || !this.runs.length) {
      byId("from").value = byId("to").value = "";
      this.tell([made("p", "Select a stretch of the chart, a phase by its button, or type its times.", { class: "reason" })]);
      return;
    }
    ["from", "to"].forEach((id, i) => { byId(id).value = stretch[i].toFixed(9).replace(/\.?0+$/, ""); });
    const runs = this.runs, stretches = runs.map((run) => this.stretchOf(run, stretch));
    const asked = (what, more = {}) => this.during(() => Promise.all(runs.map((run, i) => (stretches[i]
      ? ask(what, { run: run.name, start: stretches[i][0], end: stretches[i][1], ...more }).catch((error) => ({ error: error.message }))
      : { error: `It has no phase ${this.phase.name} ${this.phase.repeat}.` }))));
    this.tell([made("p", "Reading the samples of the stretch ...", { class: "reason" })]);
    const answers = await asked("stretch");
    if (!answers || turn !== this.selecting) return;
    this.tell([this.numbers(runs, stretches, answers)]);
    const added = await asked("running", { columns: RUNNING_MOMENTS });
    if (!added || turn !== this.selecting) return;
    this.added = runs.map((run, i) => ({ run, joules: added[i], stated: answers[i].quantities }));
    this.drawRunning();
  }

  /** Running joules of every run that has them. */
  drawRunning() {
    const known = (this.added ?? []).filter(({ joules }) => !joules.error);
    const hasIdle = known.some(({ joules }) => joules.marginal_energy_j);
    byId("of-energy").disabled = !hasIdle;
    const key = hasIdle ? byId("of-energy").value : "energy_j";
    const lines = known.filter(({ joules }) => joules[key]);
    byId("adding").hidden = !lines.length;
    this.running.show(lines.map(({ run, joules }) => ({ name: run.name, colour: COLOURS_OF_RUNS[run.place], time_s: joules.time_s, energy_j: joules[key] })));
    const lacking = known.filter(({ joules }) => !joules[key]).map(({ run }) => run.name);
    const ends = lines.map(({ run, stated }) => `${run.name}: ${stated.find((quantity) => quantity.key === key).text}`).join("; ");
    byId("running-said").textContent = `At the end (95 %): ${ends}.`
      + (lacking.length ? ` Idle power of ${lacking.join(", ")} is not known.` : "");
  }

  numbers(runs, stretches, answers) {
    const table = made("table"), head = made("tr"), body = made("tbody");
    head.append(made("th", "", { scope: "col" }), ...runs.map((run) => made("th", `${run.name}: ${run.title}`, { scope: "col" })));
    const known = answers.find((answer) => !answer.error);
    const row = (label, cells) => {
      const line = made("tr");
      line.append(made("th", label, { scope: "row" }), ...cells);
      body.append(line);
    };
    if (answers.some((answer) => answer.error)) row("", answers.map(({ error }) => made("td", error ?? "")));
    row(this.phase ? `${this.phase.name} ${this.phase.repeat}, each run's own` : "stretch, each run's own time",
      stretches.map((ends) => made("td", ends ? `${ends[0].toFixed(3)} to ${ends[1].toFixed(3)} s, \u0394t ${(ends[1] - ends[0]).toFixed(3)} s` : "")));
    known?.quantities.forEach(({ key, label }, i) => row(label, answers.map(({ quantities }) => {
      const cell = made("td", quantities?.[i].text ?? "", quantities ? { "data-key": key, "data-value": quantities[i].value } : {});
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
