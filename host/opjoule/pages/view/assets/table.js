"use strict";
// The table of runs: sorted, filtered and cut into pages here; the server gives all rows at once.

const PAGE_ROWS = 20;
const MOST_CHOSEN = 6;
const COLUMNS = [
  { key: "name", label: "run" },
  { key: "started_utc", label: "began (UTC)" },
  { key: "subject", label: "what" },
  { key: "device", label: "board" },
  { key: "medium", label: "medium" },
  { key: "headline_value", label: "energy (95 %)" },
  { key: "known", label: "notices" },
  { key: "note", label: "note" },
];

function made(name, words = "", attributes = {}) {
  const element = document.createElement(name);
  element.textContent = words;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** What to know before a run's headline is believed, short; the full lines are its tooltip. */
function badges(run) {
  const labels = run.simulated ? [made("span", "SIMULATED", { class: "badge simulated" })] : [];
  const kinds = new Map();
  const grave = new Set(["unreadable", "failed"]);
  for (const { mark, text, is_grave } of run.notices) {
    kinds.set(mark, [...(kinds.get(mark) ?? []), text]);
    if (is_grave) grave.add(mark);
  }
  if (run.status === "unreadable") kinds.set("unreadable", [run.why]);
  else if (run.status !== "complete" && !kinds.size) kinds.set(run.status, [run.status]);
  for (const [kind, lines] of kinds) {
    const words = lines.length > 1 ? `${kind} (${lines.length})` : kind;
    labels.push(made("span", words, { class: grave.has(kind) ? "badge bad" : "badge", title: lines.join("\n") }));
  }
  return labels;
}

class RunTable {
  /** @param {(name: string, isChosen: boolean) => void} onChoice is called when a run is chosen, or is no more. */
  constructor(place, onChoice) {
    this.place = place;
    this.onChoice = onChoice;
    this.rows = [];
    this.chosen = new Set();
    this.sorted = { key: "started_utc", falls: true };
    this.first = 0;
    const head = place.querySelector("thead tr");
    for (const { key, label } of COLUMNS) {
      const cell = made("th", "", { scope: "col", role: "columnheader", "data-column": key });
      cell.append(made("button", label, { type: "button" }));
      cell.firstChild.addEventListener("click", () => this.sort(key));
      head.append(cell);
    }
    this.filters = [...place.querySelectorAll("[data-filter]")];
    place.querySelector("form").addEventListener("input", () => { this.first = 0; this.draw(); });
    place.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    place.querySelector(".pager").addEventListener("click", ({ target }) => {
      if (target.dataset.page) this.first += Number(target.dataset.page) * PAGE_ROWS;
      this.draw();
    });
    place.querySelector("tbody").addEventListener("change", ({ target }) => this.choose(target.value, target.checked));
  }

  /** All rows, and how many records there are of which some may still be being read. */
  show(rows, total, whole) {
    this.total = total;
    this.whole = whole;
    this.rows = rows.map((run) => ({
      ...run,
      known: badges(run).map((badge) => badge.textContent).join(", "),
      words: [run.name, run.title, run.status, run.headline, run.note, ...run.tags, ...run.notices.flatMap(({ mark, text }) => [mark, text])].join(" ").toLowerCase(),
    }));
    for (const field of this.filters.filter((field) => ["subject", "device", "medium", "status", "tag"].includes(field.dataset.filter))) {
      const key = field.dataset.filter, was = field.value;
      const values = new Set(this.rows.flatMap((run) => (key === "tag" ? run.tags : [run[key]])).filter(Boolean));
      field.replaceChildren(made("option", "all", { value: "" }), ...[...values].sort().map((value) => made("option", value, { value })));
      field.value = values.has(was) ? was : "";
    }
    this.place.hidden = false;
    this.draw();
  }

  sort(key) {
    this.sorted = { key, falls: this.sorted.key === key && !this.sorted.falls };
    this.first = 0;
    this.draw();
  }

  choose(name, isChosen) {
    if (isChosen) this.chosen.add(name);
    else this.chosen.delete(name);
    this.draw();
    this.onChoice(name, isChosen);
  }

  /** The rows that pass all filters, in order. */
  get passing() {
    const asked = Object.fromEntries(this.filters.map((field) => [field.dataset.filter, field.value]));
    const words = asked.words.toLowerCase().split(/\s+/).filter(Boolean);
    const { key, falls } = this.sorted;
    const value = (run) => run[key] ?? "";
    const passes = (run) => words.every((word) => run.words.includes(word))
      && ["subject", "device", "medium", "status"].every((key) => !asked[key] || run[key] === asked[key])
      && (!asked.tag || run.tags.includes(asked.tag))
      && (!asked.origin || (asked.origin === "simulated") === run.simulated);
    const order = (a, b) => {
      const [one, other] = [value(a), value(b)];
      if ((one === "") !== (other === "")) return one === "" ? 1 : -1; // what is not known comes last either way
      if (key === "headline_value" && a.label !== b.label) return a.label < b.label ? -1 : 1;
      const rises = one < other ? -1 : one > other ? 1 : a.name < b.name ? -1 : 1;
      return falls ? -rises : rises;
    };
    return this.rows.filter(passes).sort(order);
  }

  draw() {
    const passing = this.passing;
    this.first = Math.max(0, Math.min(this.first, Math.floor((passing.length - 1) / PAGE_ROWS) * PAGE_ROWS));
    const page = passing.slice(this.first, this.first + PAGE_ROWS);
    const focused = document.activeElement?.closest?.("tbody") && document.activeElement.value;
    const body = this.place.querySelector("tbody");
    body.replaceChildren(...page.map((run) => this.row(run)));
    if (focused) [...body.querySelectorAll("input")].find((box) => box.value === focused)?.focus({ preventScroll: true });
    for (const cell of this.place.querySelectorAll("thead th")) {
      const isKey = cell.dataset.column === this.sorted.key;
      cell.setAttribute("aria-sort", isKey ? (this.sorted.falls ? "descending" : "ascending") : "none");
    }
    const number = (count) => count.toLocaleString("en");
    const reading = this.whole ? "" : ` Reading ${number(this.total)} records: ${number(this.rows.length)} so far.`;
    const some = passing.length === this.rows.length ? `${number(passing.length)} runs` : `${number(passing.length)} of ${number(this.rows.length)} runs`;
    this.place.querySelector("#counted").textContent = `${some}, ${this.chosen.size} chosen (${MOST_CHOSEN} at most).${reading}`;
    const last = this.first + page.length;
    this.place.querySelector(".pager").hidden = passing.length <= PAGE_ROWS;
    this.place.querySelector("#page").textContent = `${number(this.first + 1)} to ${number(last)} of ${number(passing.length)}`;
    this.place.querySelector("[data-page='-1']").disabled = this.first === 0;
    this.place.querySelector("[data-page='1']").disabled = last >= passing.length;
  }

  row(run) {
    const line = made("tr", "", { role: "row" }), isChosen = this.chosen.has(run.name);
    line.classList.toggle("chosen", isChosen);
    const head = made("th", "", { scope: "row", role: "rowheader" }), label = made("label");
    const box = made("input", "", { type: "checkbox", value: run.name });
    box.checked = isChosen;
    box.disabled = run.status === "unreadable" || (!isChosen && this.chosen.size >= MOST_CHOSEN);
    label.append(box, made("span", run.name));
    head.append(label);
    const cell = (name, ...inside) => {
      const made_ = made("td", "", { role: "cell", "data-label": name });
      made_.append(...inside);
      return made_;
    };
    const energy = run.headline ? [made("span", run.headline, { class: "figure" }), made("span", ` ${run.label}`, { class: "reason" })] : ["—"];
    const tags = run.tags.map((tag) => made("span", tag, { class: "badge tag" }));
    line.append(head, cell("began (UTC)", run.started_utc.slice(0, 16).replace("T", " ")), cell("what", run.subject), cell("board", run.device),
      cell("medium", run.medium), cell("energy (95 %)", ...energy), cell("notices", ...badges(run)), cell("note", ...tags, run.note));
    return line;
  }
}
