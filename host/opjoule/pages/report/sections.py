"""The parts of the report's page that consist of words and tables."""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any, Final

from opjoule.base.units import NOT_STATED, Cause, Quantity, from_json, missing
from opjoule.energy.operations.operation_table import Latency
from opjoule.pages.drawing.page import Child, Element, element, header, row, table
from opjoule.results.answer import TRACE_ONLY, Answer, in_words
from opjoule.results.long_table import Row, is_quantity, rows
from opjoule.results.rounding import NONE, percent, quantity_text, rounded, rounded_quantity
from opjoule.runs.evaluation.quantities.definition import Quantities, Topic
from opjoule.runs.evaluation.quantities.phases import phase_columns
from opjoule.runs.evaluation.wording import wording_of
from opjoule.runs.record.result import ABOVE_IDLE, RepeatValues
from opjoule.runs.record.run import Run

_NAMED = {"recordcount", "operationcount", "requestdistribution", "fieldcount", "fieldlength"}
"""Properties that the description of the work already contains."""


def head_lines(run: Run) -> list[str]:
    """Lines of the head: work, changed settings, engine and durability, board, shunt, supply, program and commit."""
    changed = [given for given in run.asked.properties if given.partition("=")[0].strip() not in _NAMED]
    settings = f"changed from the workload: {' '.join(changed)}" if changed else ""
    program = f"OpJoule {run.found.opjoule}" if run.found.opjoule else ""
    commit = f", commit {run.found.commit}" if program and run.found.commit else ""
    parts = [_engine(run), _board(run), _shunt(run), _supply(run), program + commit]
    return [line for line in (wording_of(run).work(run), settings, *parts) if line]


def _engine(run: Run) -> str:
    parts = [run.database] if run.database else []
    durability = run.summary.settings.get("durability")
    parts += [f"durability {durability}"] if durability else []
    parts += ["DISTURBED on purpose"] if run.found.device.disturbance else []
    return ", ".join(parts)


def _board(run: Run) -> str:
    device = run.found.device
    model = device.model if device.model != "unknown" else None
    parts = [part for part in (model, device.cpu, device.system, device.kernel) if part]
    where = "ran on" if device.connection == "simulated" else "board"
    return f"{where}: {', '.join(parts)}" if parts else ""


def _shunt(run: Run) -> str:
    """The shunt and the source of its value; empty for a meter with a built-in shunt."""
    shunt = run.sensor.shunt if run.sensor else None
    if shunt is None or not shunt.origin:
        return ""
    return f"shunt: {shunt.ohm:g} ohm \N{PLUS-MINUS SIGN}{percent(shunt.tolerance)}, {shunt.origin}"


def _supply(run: Run) -> str:
    """The least voltage of the whole trace, or the reason why it is unknown."""
    least = run.least_voltage
    if least.value is None:
        return f"supply: {least.unchecked}" if least.unchecked else ""
    against = f"limit {least.limit_v:g} V" if least.limit_v is not None else least.unchecked
    return f"supply: least voltage {rounded(least.value, least.u, 'V')} (k = 2) {least.where}, {against}"


def headline(answer: Answer) -> Element:
    """The headline in large type, with work, rig and further figures in small type."""
    kicker = "OpJoule run report"
    if answer.trace_only:
        return header(answer.title, kicker, TRACE_ONLY[:1].upper() + TRACE_ONLY[1:])
    kept = {of.key for of in answer.quantities if of.topic is Topic.HEADLINE or of.key in answer.result}
    answers = [
        _big(answer, path, words)
        for path, words in answer.answers.items()
        if path in kept or path not in answer.quantities
    ]
    tiles = []
    for shown in answer.quantities.shown("tile"):
        line = Row(shown.key, shown.tile, shown.meaning, answer.quantity(shown.key))
        words = element("dt", line.label), element("dd", line.brief)
        tiles.append(element("div", *words, title=line.reason or line.meaning))
    shown_answers = element("div", *answers, class_="answers"), element("dl", *tiles, class_="tiles")
    return header(answer.title, kicker, *head_lines(answer.run), *shown_answers)


def _big(answer: Answer, path: str, what: str) -> Element:
    quantity = answer.quantity(path)
    shown = rounded_quantity(quantity)
    if quantity.value is None or shown is None:
        reason = answer.problem or (quantity.reason if quantity.value is None else "")
        lines = {"number": NONE, "what": what, "reason": reason}
        return element("div", *(element("p", text, class_=name) for name, text in lines.items()))
    number = element("p", shown.value, class_="number")
    if shown.interval:
        number.append(element("span", f" {shown.interval}", class_="u"))
    number.append(element("span", f" {shown.unit.removesuffix('/operation')}", class_="unit"))
    simulated = "SIMULATED, " if answer.record.simulated else ""
    covers = answer.covers if shown.interval else NOT_STATED
    meaning = element("p", f"{what} ({simulated}{covers})", class_="what")
    return element("div", number, meaning, aria_label=in_words(quantity, what))


def battery(answer: Answer) -> list[Element]:
    """Form for a battery and a rate, which assets/battery.js answers; none without both powers and their intervals."""
    idle, operation = answer.quantity("idle_power_w"), answer.quantity("marginal_energy_per_operation_j")
    if idle.u is None or operation.u is None:
        return []
    figures = {
        "data_idle_w": f"{idle.value:.9g}",
        "data_idle_u_w": f"{idle.u:.9g}",
        "data_operation_j": f"{operation.value:.9g}",
        "data_operation_u_j": f"{operation.u:.9g}",
    }
    fields = [
        element(
            "label",
            f"{words} ",
            element("input", name=name, inputmode="decimal", autocomplete="off"),
            f" {unit}",
        )
        for words, name, unit in (("rate", "rate_per_s", "operations/s"), ("battery", "battery_wh", "Wh"))
    ]
    about = "The board is on all the time, and an operation costs above idle what it cost in this run (95 %)."
    form = element("form", *fields, element("output"), id="battery", class_="battery", **figures)
    mark = ", SIMULATED" if answer.record.simulated else ""
    return [element("h3", f"On a battery{mark}"), form, element("p", about, class_="reason")]


def quantities(answer: Answer) -> list[Element]:
    """Table of all quantities of result.json that have no table of their own; a missing one shows its reason."""
    own_tables = tuple({f"{quantity.top}." for quantity in answer.quantities if quantity.topic is Topic.PART})
    all_rows = rows(answer.concluded, answer.quantities)
    lines = [line for line in all_rows if not line.path.startswith(own_tables)]
    if not lines:
        why = TRACE_ONLY if answer.trace_only else answer.problem
        return [element("p", f"There are no results: {why}", class_="reason")]
    head = ("quantity", "value and interval (95 %)", "unit", "what it is")
    return [table(head, map(_quantity_row, lines), "Every quantity of result.json")]


def _quantity_row(line: Row) -> Element:
    name = element("span", line.label, element("code", line.path), class_="named")
    shown, meaning = line.shown, element("span", line.meaning)
    if line.reason:
        meaning.append(element("span", line.reason, class_="reason"))
    if shown is None:
        return row(name, NONE, line.quantity.unit, meaning, class_="missing")
    return row(name, element("span", shown.figure, class_="figure"), shown.unit, meaning)


def breakdown(result: Mapping[str, Any], key: str, caption: str, heading: str) -> list[Element]:
    """Table with one row per kind of operation or activity and one column per field."""
    entries = result.get(key) or {}
    if is_quantity(entries):
        quantity = from_json(entries)
        return [element("p", f"{caption}: {getattr(quantity, 'reason', '')}", class_="reason")]
    kinds = {name: entry for name, entry in entries.items() if isinstance(entry, Mapping)}
    if not kinds:
        return []
    kinds, untold = _without_repeated_reasons(kinds)
    fields = list(dict.fromkeys(field for entry in kinds.values() for field in _fields(entry)))
    unknown = {field: reason for field in fields if (reason := _reason_of_all(kinds.values(), field))}
    fields = [field for field in fields if field not in unknown]
    by_reason: dict[str, list[str]] = {}
    for field, reason in unknown.items():
        by_reason.setdefault(reason, []).append(field)
    # A field that all entries lack for one reason becomes a note. It names the columns or, without a table, the rows.
    lacking = [(map(_field_title, names) if fields else kinds, why) for why, names in by_reason.items()]
    lacking += [(map(_in_words, names), reason) for reason, names in untold.items()]
    notes = [element("p", f"{caption} ({', '.join(names)}): {reason}.", class_="reason") for names, reason in lacking]
    if not fields:
        return notes
    body = []
    for name, entry in kinds.items():
        cells = [_cell(_fields(entry).get(field)) for field in fields]
        body.append(row(name if key == "by_operation" else _in_words(name), *cells))
    return [table((heading, *map(_field_title, fields)), body, caption), *notes]


def components(answer: Answer) -> list[Element]:
    """Table of the medium and the rest, with the sensor that measured the medium."""
    tables = breakdown(answer.result, "by_component", "Storage and the rest", "component")
    sensor = answer.run.found.medium_sensor
    if not tables or sensor is None:
        return tables
    fed = {
        "board": "which the board feeds: the rest is the board's energy minus the medium's",
        "own": "which has a supply of its own: the rest is the board's energy",
    }
    words = f"Storage: sensor {sensor.number}, in the supply of the medium, {fed[sensor.supply]}. Both are above idle."
    return [*tables, element("p", words, class_="reason")]


def _without_repeated_reasons(
    kinds: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, Mapping[str, Any]], dict[str, list[str]]]:
    """Rows of a table, and reason -> names of the rows left out for it (several, but not all, lack their value)."""
    missing: dict[str, list[str]] = {}
    for name, entry in kinds.items():
        if is_quantity(entry) and entry["value"] is None:
            missing.setdefault(str(entry.get("reason")), []).append(name)
    untold = {reason: names for reason, names in missing.items() if 1 < len(names) < len(kinds)}
    hidden = {name for names in untold.values() for name in names}
    return {name: entry for name, entry in kinds.items() if name not in hidden}, untold


def _in_words(name: str) -> str:
    return name.replace("_", "-")


def _field_title(field: str) -> str:
    return field.removesuffix("_j").replace("_", " ") or "energy"


def _reason_of_all(entries: Iterable[Mapping[str, Any]], field: str) -> str | None:
    """Common reason why a field is missing from every entry, which is then given once; else None."""
    values = [_fields(entry).get(field) for entry in entries]
    reasons = {
        value.get("reason") if isinstance(value, Mapping) and value.get("value", 0) is None else None
        for value in values
    }
    return str(reason) if len(reasons) == 1 and (reason := reasons.pop()) else None


def _fields(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"": entry} if is_quantity(entry) else entry


def _cell(value: Any) -> Child:
    if is_quantity(value):
        quantity = from_json(value)
        if quantity.value is None:
            return element("span", NONE, element("span", quantity.reason, class_="reason"))
        return element("span", quantity_text(quantity), class_="figure")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NONE if value is None else str(value)


def budgets(answer: Answer) -> list[Element]:
    """A section for each quantity that has a budget; the headline's comes first."""
    return [
        made
        for definition in answer.quantities.shown("budget")
        for made in _budget(answer.result, definition.budget, f"Uncertainty budget of the {definition.label}")
    ]


def shares(budget: object) -> dict[str, float]:
    """Known part -> its share of the variance, largest first."""
    parts = budget.items() if isinstance(budget, Mapping) else ()
    known = [(name, part["value"]) for name, part in parts if is_quantity(part) and part["value"] is not None]
    squares = {name: float(value) ** 2 for name, value in known}
    total = sum(squares.values())
    ordered = sorted(squares, key=lambda name: -squares[name]) if total > 0 else ()
    return {name: squares[name] / total for name in ordered}


def _budget(result: Mapping[str, Any], key: str, caption: str) -> list[Element]:
    """Table of an uncertainty budget: each part's contribution, with a bar for its share of the variance."""
    budget = result.get(key)
    entries = budget.items() if isinstance(budget, Mapping) else ()
    parts = {name: entry for name, entry in entries if is_quantity(entry)}
    known = shares(parts)
    absent = [name for name in parts if name not in known]
    if not known:
        return []
    body = [_budget_row(name, parts[name], known.get(name)) for name in [*known, *absent]]
    head = ("source", "contribution (95 %)", "share of the variance", "")
    return [table(head, body, caption, class_="budget")]


def _budget_row(name: str, part: Mapping[str, Any], share: float | None) -> Element:
    if share is None:
        reason = element("span", str(part.get("reason", "")), class_="reason")
        return row(name, NONE, reason, "", class_="missing")
    filled = element("span", style=f"width:{100 * share:.1f}%")
    bar = element("span", filled, class_="bar", aria_hidden="true")
    value = element("span", str(rounded(part["value"], None, part["unit"], 2)), class_="figure")
    return row(name, value, bar, percent(share))


def latency(answer: Answer, by_kind: Mapping[str, Latency]) -> list[Element]:
    """Latency percentiles of all operations and of each kind."""
    known = [definition for definition in answer.quantities if definition.topic is Topic.LATENCY]
    numbers = [answer.quantity(definition.key) for definition in known]
    body = []
    if not all(number.value is None for number in numbers):
        figures = [element("span", quantity_text(number), class_="figure") for number in numbers]
        body.append(row("all", *figures))
    for kind, measured in by_kind.items():
        values_s = (getattr(measured, definition.key.rpartition(".")[2], None) for definition in known)
        texts = (NONE if value_s is None else str(rounded(value_s, None, "s")) for value_s in values_s)
        body.append(row(kind, *(element("span", text, class_="figure") for text in texts)))
    if not body:
        return []
    head = ("operation", *(definition.label.rpartition(", ")[2] for definition in known))
    return [table(head, body, "Latency of the run's operations, on the board's clock")]


def repeats_table(listed: Mapping[str, RepeatValues], quantities: Quantities) -> list[Element]:
    """Table with one row per repeat, then mean and standard deviation; nothing for fewer than two repeats."""
    columns = [definition for definition in quantities.shown("column") if definition.key in listed]
    shown = [listed[column.key] for column in columns]
    count = max((values.n for values in shown), default=0)
    if count < 2:
        return []
    body = [
        row(str(number + 1), *(_figure(values, values.values[number]) for values in shown)) for number in range(count)
    ]
    body.append(row("mean", *(_figure(values, fmean(values.values)) for values in shown)))
    spreads = [_figure(values, values.standard_deviation, 2) for values in shown]
    body.append(row("standard deviation", *spreads))
    return [table(("repeat", *(column.column for column in columns)), body, f"Repeats (n = {count})")]


def _figure(of: RepeatValues, value: float | None, digits: int = 4) -> Element:
    text = NONE if value is None else str(rounded(value, None, of.unit, digits))
    return element("span", text, class_="figure")


HEAD: Final = ("phase", *(of.column for of in phase_columns()))


def phase_rows(answer: Answer) -> list[tuple[str, ...]]:
    """One row per phase, in the order of their first mark: name and texts; no rows without marks.

    The uncertainty is shown of what is above idle.
    """
    known = {
        (of.phase, of.name): of.quantity for of in rows(answer.concluded, answer.quantities) if of.phase is not None
    }
    columns = [(of.key.rpartition(".")[2], ABOVE_IDLE in of.rests_on) for of in phase_columns()]
    return [
        (name, *(_text(known.get((name, key), missing(Cause.ABSENT)), with_u=with_u) for key, with_u in columns))
        for name in dict.fromkeys(phase for phase, _ in known)
    ]


def _text(of: Quantity, *, with_u: bool) -> str:
    return quantity_text(of) if with_u or of.value is None else str(rounded(of.value, None, of.unit))


def phases_table(answer: Answer) -> list[Element]:
    """The page's table of phases; nothing without marks."""
    body = [
        row(name, *(element("span", text, class_="figure") for text in texts)) for name, *texts in phase_rows(answer)
    ]
    return [table(HEAD, body, "Energy of the phases that the command marked")] if body else []
