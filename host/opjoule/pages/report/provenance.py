"""Origin of a run's numbers: settings, versions, clocks, checks, faults, and the command that repeats the run."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec.structs import astuple

from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.error_bounds import CURRENT, HEAT, POWER, VOLTAGE, WIRE, ErrorBounds
from opjoule.pages.drawing.page import Element, element, row, table
from opjoule.results.answer import Answer
from opjoule.results.rounding import NONE, percent, rounded
from opjoule.results.tracks import LostStretch
from opjoule.runs.record.result import StatedAlignment
from opjoule.runs.record.run import Found, LoaderSummary, Run

SHOWN_ON_THEIR_OWN = ("schema", "status", "simulated", "notices", "phases", "clock_maps", "checksums")


def provenance(answer: Answer) -> list[Element]:
    """All sections, in reading order."""
    return [
        *command(answer.run),
        *faults(answer),
        essentials(answer.run),
        *checks(answer.concluded.alignment),
        *clocks(answer.run),
        *record_tree(answer.record.document),
        *checksums(answer.run),
    ]


def command(run: Run) -> list[Element]:
    """The command line that repeats the run, with a button that copies it."""
    if not run.found.command:
        return []
    line = shlex.join(_without_out(run.found.command))
    button = element("button", "copy", type="button", data_copy="command")
    return [
        element("h3", "To repeat it"),
        element("div", element("pre", element("code", line, id="command")), button, class_="command"),
    ]


def _without_out(words: Sequence[str]) -> list[str]:
    """A command line without its --out, since that folder holds this run; words after "--" are the program's own."""
    end = words.index("--") if "--" in words else len(words)
    kept = [
        word
        for before, word in pairwise(["", *words[:end]])
        if "--out" not in (before, word) and not word.startswith("--out=")
    ]
    return [*kept, *words[end:]]


def essentials(run: Run) -> Element:
    """Versions, seed, meter and sensor in one table; the rest of run.json is folded below."""
    loader = run.loader.get("run-1") or LoaderSummary()
    facts, device, meter, bounds = run.found, run.found.device, run.found.meter, run.sensor
    lines: dict[str, Sequence[object]] = {
        "started": (facts.started_utc,),
        "OpJoule": (facts.opjoule,),
        "database": (loader.database, loader.database_version),
        "loader": (loader.loader_version, device.loader_sha256),
        "operations made by": astuple(facts.generator) if facts.generator else (),
        "seed": (loader.seed,),
        "board": (device.connection, device.kernel, device.machine),
        "meter": (meter.kind, meter.board, meter.serial_number),
        "firmware": (meter.firmware_version,),
        "sensor": tuple(f"{sensor.model} at {sensor.address:#04x}" for sensor in meter.sensors),
    }
    if bounds:
        lines |= {**_stated_errors(bounds), "calibration": (_calibration(facts, bounds),)}
    body = []
    for name, parts in lines.items():
        if line := ", ".join(str(part) for part in parts if part is not None):
            body.append(row(name, line))
    return table(("what", "which"), body, "Essentials")


def _calibration(facts: Found, bounds: ErrorBounds) -> str:
    if bounds.calibration is None:
        return "none: bounds from the data sheets"
    return facts.calibrations.get(bounds.sensor_id, bounds.calibration.identity)


def _stated_errors(bounds: ErrorBounds) -> dict[str, Sequence[object]]:
    """The shunt or, for a meter with a built-in one, the meter's own bounds."""
    gains, shunt = {name: percent(error) for name, error in bounds.gain_errors_max.items()}, bounds.shunt
    if shunt:
        ohm = f"{shunt.ohm:g} \N{GREEK CAPITAL LETTER OMEGA}"
        gain = f"gain error at most {gains[CURRENT]}"
        return {"shunt": (ohm, f"tolerance {percent(shunt.tolerance)}", shunt.origin or None, gain)}
    if POWER in gains:
        words = f"power within {gains[POWER]} and {rounded(bounds.current_offset_max_a, None, 'W', 2)}"
    else:
        offset = rounded(bounds.current_offset_max_a, None, "A", 2)
        words = f"current within {gains[CURRENT]} and {offset}, voltage within {gains[VOLTAGE]}"
    return {"meter's own bounds": (words,)}


def faults(answer: Answer) -> list[Element]:
    """Status of the run and its faults."""
    status = f"Status: {answer.record.status}."
    if not answer.record.faults:
        return [element("h3", "Faults"), element("p", f"{status} No fault was recorded.")]
    lines = element("ul", *(element("li", fault.text) for fault in answer.record.faults))
    return [element("h3", "Faults"), element("p", status), lines]


def checks(alignment: StatedAlignment | None) -> list[Element]:
    """Cross-checks of the clock evidence, whether passed or not."""
    if not alignment or not alignment.checks:
        return []
    body = []
    for check in alignment.checks:
        words, kind = ("passed", "good") if check.passed else ("NOT PASSED", "bad")
        body.append(row(check.name, element("span", words, class_=kind), check.detail))
    return [table(("check", "outcome", "detail"), body, "Checks of the alignment")]


def clocks(run: Run) -> list[Element]:
    """Each clock map: evidence, rate, residual and uncertainty, with least and greatest values over the run."""
    if not run.clock_maps:
        return []
    head = ("clock map", "from, to", "evidence", "n", "rate minus 1", "knots", "residual (rms)", "u (k = 2)")
    body = [_clock_row(name, clock_map) for name, clock_map in run.clock_maps.items()]
    return [table(head, body, "Clock maps")]


def _clock_row(name: str, clock_map: ClockMap) -> Element:
    rates = [knot.rate for knot in clock_map.knots] or [clock_map.rate]
    moments_ns = np.array([knot.source_ns for knot in clock_map.knots] or [clock_map.source_ref_ns], np.int64)
    residual = rounded(clock_map.residual_ns * 1e-9, None, "s", 3)
    u_s = np.quantile(clock_map.u_ns(moments_ns), (0.0, 1.0)) * 2e-9
    ends = f"{clock_map.source} \N{RIGHTWARDS ARROW} {clock_map.target}"
    return row(
        name,
        ends,
        clock_map.method,
        f"{clock_map.n:,}",
        _from_to(*(f"{(rate - 1) * 1e6:+.2f} ppm" for rate in (min(rates), max(rates)))),
        f"{len(clock_map.knots)}",
        str(residual),
        _from_to(*(str(rounded(float(end_s), None, "s", 2)) for end_s in u_s)),
    )


def _from_to(least: str, greatest: str) -> str:
    return least if least == greatest else f"{least} to {greatest}"


def record_tree(document: Mapping[str, Any]) -> list[Element]:
    """Everything else in run.json, folded: asked, found (versions, meter, sensor, board, settings), loader."""
    groups = []
    for name, entry in document.items():
        if name in SHOWN_ON_THEIR_OWN or not isinstance(entry, Mapping):
            continue
        body = [row(path, value) for path, value in _leaves(entry, "")]
        made = table(("name", "value"), body, f"run.json: {name}", class_="tree")
        groups.append(element("details", element("summary", f"{name} ({len(body)})"), made))
    return [element("h3", "Record"), *groups] if groups else []


def _leaves(entry: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(entry, Mapping) and entry:
        for key, value in entry.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(entry, list) and any(isinstance(item, Mapping) for item in entry):
        for number, item in enumerate(entry):
            yield from _leaves(item, f"{path}[{number}]")
    elif isinstance(entry, list):
        yield path, ", ".join(map(str, entry)) or NONE
    elif isinstance(entry, bool):
        yield path, str(entry).lower()
    else:
        yield path, NONE if entry is None else str(entry)


def checksums(run: Run) -> list[Element]:
    """SHA-256 of each raw file."""
    if not run.checksums:
        return []
    body = [row(name, element("code", digest)) for name, digest in run.checksums.items()]
    made = table(("raw file", "SHA-256"), body, "Raw files as they were when the run ended", class_="tree")
    return [element("details", element("summary", f"checksums ({len(body)})"), made)]


def losses(lost: list[LostStretch]) -> list[Element]:
    """Number and length of the lost stretches, by reason."""
    reasons = dict.fromkeys(stretch.reason for stretch in lost)
    body = []
    for reason in reasons:
        stretches = [stretch for stretch in lost if stretch.reason == reason]
        length_s = sum(stretch.end_s - stretch.start_s for stretch in stretches)
        samples = sum(stretch.lost_samples for stretch in stretches)
        lost_samples, time = f"{samples:,}" if samples else NONE, str(rounded(length_s, None, "s"))
        body.append(row(reason, f"{len(stretches):,}", lost_samples, time))
    head = ("reason", "stretches", "samples", "time")
    return [table(head, body, "Lost stretches of the trace")] if body else []


def sensor_errors(answer: Answer) -> list[Element]:
    """Table of the sensor's errors; nothing if the record does not state them."""
    sensor = answer.run.sensor
    if sensor is None:
        return []
    shared = answer.result.get("shared")
    budget = shared.get("budget") if isinstance(shared, Mapping) else None
    joules = {  # each error's contribution to the energy, if the record lists them
        str(name).removeprefix(f"{sensor.sensor_id}: "): str(
            rounded(COVERAGE_FACTOR * abs(float(value_j)), None, "J", 2)
        )
        for name, value_j in (budget.items() if isinstance(budget, Mapping) else ())
    }
    bounds = _bounds(sensor)
    unknown = "the calibration, or its reference" if sensor.calibration else NONE
    body = []
    for name in dict.fromkeys([*bounds, *joules]):
        energy = element("span", joules.get(name, NONE), class_="figure")
        body.append(row(name, bounds.get(name, NONE), sensor.origins.get(name, unknown), energy))
    head = ("error of the sensor", "bound", "source", "in the energy (k = 2)")
    made = table(head, body, "Errors of the sensor, the same in all its measurements", class_="budget")
    return [made] if body else []


def _bounds(sensor: ErrorBounds) -> dict[str, str]:
    """Bounds of the errors that are not calibrated, as text. The wire's bound remains with a calibration."""
    wire = {WIRE: f"{sensor.wire_max_ohm:g} ohm"} if sensor.wire_max_ohm else {}
    if sensor.calibration:
        return wire
    gains = {name: percent(bound) for name, bound in sensor.gain_errors_max.items()}
    offset = {"offset": str(rounded(sensor.current_offset_max_a, None, "A", 2))}
    heat = {}
    if sensor.heating_max_per_a2:
        heat = {HEAT: f"{percent(sensor.heating_max_per_a2)} per squared ampere"}
    return {**gains, **offset, **heat, **wire}
