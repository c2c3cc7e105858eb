"""What a fit writes: the twin profile for --simulate, and twin.html with measured and fitted power on one axis."""

import datetime
import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Final

import numpy as np

import opjoule
from opjoule.base.files import write_whole
from opjoule.base.notices import Notice, NoticeKind
from opjoule.bench.simulation.fitting.estimates import Estimate
from opjoule.bench.simulation.fitting.fit import FittedTwin
from opjoule.bench.simulation.fitting.recorded import Recorded, Replayed
from opjoule.bench.simulation.power_model import MediumModel
from opjoule.pages.drawing.page import (
    Element,
    chart_content,
    chart_frame,
    chart_scripts,
    chart_series,
    chart_value,
    element,
    header,
    page,
    panel,
    row,
    section,
    table,
)
from opjoule.results.answer import SIMULATED
from opjoule.results.tracks import PhaseSpan, Track

VERSION: Final = 1
_MEDIUM: Final = tuple(field.name for field in fields(MediumModel) if field.name != "spread")


def write_profile(path: Path, fitted: FittedTwin) -> None:
    """Writes the profile atomically."""
    first = fitted.records[0]
    made = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    source = "SIMULATED records" if fitted.simulated else "measured records"
    watts = [fitted[f"board.busy_cores_w.{at}"] for at in range(len(fitted.board.busy_cores_w))]
    lines = [
        f"# Twin profile of {first.board} with {first.medium}, from {source}. A parameter says whether it was found",
        "# (value and half of its 95 % interval) or assumed. Use: host/measure.py ... --simulate THIS_FILE",
        "",
        "[profile]",
        f"version = {VERSION}",
        f"fitted_utc = {json.dumps(made)}",
        f"opjoule = {json.dumps(opjoule.__version__)}",
        f"records = {json.dumps([one.name for one in fitted.records])}",
        f"simulated_records = {str(fitted.simulated).lower()}",
        "",
        *_supply(fitted),
        f"[board.{first.board}]",
        *(f"# {at} busy: {_words(estimate)}" for at, estimate in enumerate(watts)),
        f"busy_cores_w = [{', '.join(_number(estimate) for estimate in watts)}]",
        f"memory_bytes = {fitted.board.memory_bytes}",
        "",
        f"[medium.{first.medium}]",
        *(_line(name, fitted[f"medium.{name}"]) for name in _MEDIUM),
    ]
    write_whole(path, ("\n".join(lines) + "\n").encode())


def _supply(fitted: FittedTwin) -> list[str]:
    """The supply's table if the records determine it; otherwise each simulation draws a supply."""
    keys = "open_voltage_v", "resistance_ohm"
    estimates = [fitted[f"supply.{key}"] for key in keys]
    if not estimates[0].identified:
        return []
    return ["[supply]", *map(_line, keys, estimates), ""]


def _line(key: str, estimate: Estimate) -> str:
    return f"{key} = {_number(estimate)}  # {_words(estimate)}"


def _number(estimate: Estimate) -> str:
    return repr(float(f"{estimate.value:.6g}"))


def _words(estimate: Estimate) -> str:
    if estimate.u is None:
        return f"assumed; {estimate.origin}"
    return f"+- {estimate.u:.2g} {estimate.unit}; {estimate.origin}"


PAUSE_S = 1.0
"""Gap between two records on the page's time axis."""
COLUMNS = ("power_w", "model_w", "residual_w", "processor_w", "medium_w", "tail_w")


def page_text(fitted: FittedTwin, profile: str) -> str:
    """The page's source. `profile`: name of the profile on the page."""
    first = fitted.records[0]
    mark = " (SIMULATED)" if fitted.simulated else ""
    title = f"Twin of {first.board} with {first.medium}{mark}"
    records = ", ".join(one.name for one in fitted.records)
    heads = ("phase", "time", "measured", "twin", "twin / measured")
    energies = table(heads, [row(*balance.words) for balance in fitted.balances()], f"Energy by phase{mark}")
    body = [row(estimate.key, *shown(estimate), estimate.origin) for estimate in fitted.estimates]
    columns = ("parameter", "value", "interval (95 %)", "from")
    parameters = table(columns, body, f"Parameters of the twin{mark}")
    track, phases = joined(fitted.records, fitted.model)
    content = chart_content(float(track.bounds_s[-1]), {"power": track}, phases, _panels())
    main = [
        header(title, "OpJoule twin", f"from {records}; profile {profile}", element("p", fitted.verdict())),
        section("trace", "Measured power and the twin's", *chart_frame()),
        section("energies", "Energy by phase", energies),
        section("parameters", "Parameters", parameters, *_missing_runs(fitted)),
    ]
    notices = [Notice(NoticeKind.SIMULATED, SIMULATED)] if fitted.simulated else []
    return page(title, notices, main, chart_scripts(content))


def joined(records: Sequence[Recorded], models: Sequence[Replayed]) -> tuple[Track, list[PhaseSpan]]:
    """All records on one time axis, one after the other: power in the cells of their windows, and their phases."""
    bounds_s, cells, phases, at_s = [], [], [], 0.0
    for number, (one, model) in enumerate(zip(records, models, strict=True), 1):
        windows = one.windows
        zero_ns = int(windows.start_ns[0])
        start_s = np.asarray((windows.start_ns - zero_ns) * 1e-9 + at_s, np.float64)
        end_s = np.asarray((windows.end_ns - zero_ns) * 1e-9 + at_s, np.float64)
        residual_w = windows.power_w - model.total_w
        values = np.array([windows.power_w, model.total_w, residual_w, model.processor_w, model.medium_w, model.tail_w])
        # The time between windows is empty, and so is the pause before the next record.
        hole = np.append(start_s[1:] - end_s[:-1] > 1e-6, True)
        at = np.flatnonzero(hole) + 1
        bounds_s.append(np.insert(start_s, at, end_s[hole]))
        cells.append(np.insert(values, at, np.nan, axis=1))
        prefix = f"{number}: " if len(records) > 1 else ""
        phases += [
            PhaseSpan(
                prefix + phase.name,
                phase.repeat,
                max((phase.start_board_ns - zero_ns) * 1e-9 + at_s, 0.0),
                (phase.end_board_ns - zero_ns) * 1e-9 + at_s,
            )
            for phase in one.phases
        ]
        at_s = float(end_s[-1]) + PAUSE_S
    whole = np.concatenate(cells, axis=1)
    edges_s = np.append(np.concatenate(bounds_s), at_s)
    return Track(edges_s, dict(zip(COLUMNS, whole, strict=True))), phases


def _panels() -> list[dict[str, object]]:
    power = [("power_w", "measured", "--power"), ("model_w", "twin", "--operations")]
    parts = [
        ("processor_w", "processor", "--cpu"),
        ("medium_w", "medium busy", "--written"),
        ("tail_w", "medium's tail", "--read"),
    ]
    measured = chart_value("power_w", "measured", "W", 3, range_=True), chart_value("model_w", "twin", "W", 3)
    return [
        {**_panel("power, W", 260, power), "readout": measured},
        _panel("residual, W", 120, [("residual_w", "measured less twin", "--cpu")]),
        {**_panel("parts, W", 140, parts), "from_zero": True},
    ]


def _panel(title: str, height: int, lines: Sequence[tuple[str, str, str]]) -> dict[str, object]:
    """One panel of the chart; `lines`: column, name and colour of each."""
    readout = [chart_value(column, name, "W", 3) for column, name, _ in lines]
    return panel(title, "power", height, [chart_series(*line) for line in lines], readout)


def shown(estimate: Estimate) -> tuple[str, str]:
    """Value and interval in words."""
    scale, unit = (1e-6, "MB/s") if estimate.unit == "B/s" else (1.0, estimate.unit)
    if estimate.unit == "s" and estimate.value < 0.1:
        scale, unit = 1e3, "ms"
    if estimate.u is None:
        return f"{estimate.value * scale:.4g} {unit}", "assumed"
    low, high = max(estimate.low, 0.0) * scale, estimate.high * scale
    return f"{estimate.value * scale:.4g} {unit}", f"{low:.4g} to {high:.4g} {unit}"


def missing_runs(fitted: FittedTwin) -> list[str]:
    """Parameters that the records do not determine, with the run that would determine them, a line each."""
    runs: dict[str, list[str]] = {}
    for estimate in fitted.estimates:
        if estimate.needed_run:
            runs.setdefault(estimate.needed_run, []).append(estimate.key)
    return [f"{', '.join(keys)}: {run}" for run, keys in runs.items()]


def _missing_runs(fitted: FittedTwin) -> list[Element]:
    lines = missing_runs(fitted)
    if not lines:
        return []
    return [
        element("h3", "Runs that would determine the assumed parameters"),
        element("ul", *(element("li", line) for line in lines)),
    ]
