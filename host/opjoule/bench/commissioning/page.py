"""The page of a commissioning: each step with its figures and drawing, and all recordings."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC
from pathlib import Path
from typing import Any, Final

import numpy as np

from opjoule.base.errors import RecordFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.bench.commissioning.certificate import STEPS, Certificate, DeskStep, Finished
from opjoule.bench.commissioning.desk import Parts, Picture
from opjoule.energy.trace.journal import read_trace
from opjoule.pages.drawing.drawing import Chart, DrawnAxis, Point
from opjoule.pages.drawing.page import (
    Element,
    chart_content,
    chart_frame,
    chart_scripts,
    chart_series,
    element,
    header,
    page,
    panel,
    power_panel,
    row,
    section,
    table,
)
from opjoule.pages.drawing.shown import chart
from opjoule.results.tracks import PhaseSpan, SampleParts, Track, sampled_track

BETWEEN_S: Final = 1.0
"""Space between two recordings on the time axis."""
MOST_CELLS: Final = 60_000


def render(certificate: Certificate) -> str:
    """HTML of the page."""
    title = f"Commissioning of {certificate.device}, {certificate.medium}"
    mark = " (SIMULATED)" if certificate.simulated else ""
    track, phases = _recordings(certificate)
    date = f"{certificate.date_utc:%Y-%m-%d %H:%M} UTC" if certificate.date_utc else ""
    verdicts = f"{date}; {len(certificate.finished)} of {len(STEPS)} steps have a verdict."
    steps = [_step(step, certificate.finished[step.key]) for step in STEPS if step.key in certificate.finished]
    chart = chart_frame() if track else [element("p", "Nothing has been recorded yet.", class_="reason")]
    main = [
        header(title + mark, "OpJoule commissioning", element("p", verdicts)),
        section("steps", "Steps", _table(certificate)),
        section("trace", "What was recorded", *chart),
        *steps,
        section("parts", "Parts", _parts(certificate)),
    ]
    content = chart_content(float(track.bounds_s[-1]), {"power": track}, phases, _panels()) if track else None
    return page(title + mark, _notices(certificate), main, chart_scripts(content) if content else "")


def _notices(certificate: Certificate) -> Iterator[Notice]:
    if certificate.simulated:
        words = "A rehearsal on the simulated rig; it says nothing about hardware."
        yield Notice(NoticeKind.SIMULATED, words)
    if not certificate.is_fit:
        yield Notice(NoticeKind.NOT_PASSED, certificate.conclusion)


def _table(certificate: Certificate) -> Element:
    rows = []
    for number, step in enumerate(STEPS, 1):
        finished = certificate.finished.get(step.key)
        outcome, words = (finished.outcome, finished.words) if finished else ("open", "")
        rows.append(row(f"{number}. {step.title}", step.measures, str(outcome), words))
    return table(("step", "measures, limit", "verdict", "found"), rows, "All steps")


def _step(step: DeskStep, finished: Finished) -> Element:
    parts: list[Element] = [
        element(
            "p",
            f"{finished.outcome}: {finished.words} ({finished.date_utc.astimezone(UTC):%Y-%m-%d %H:%M} UTC)",
        )
    ]
    if finished.advice:
        parts.append(element("p", f"What to do: {finished.advice}."))
    if finished.figures:
        rows = [
            row(name, f"{figure.value:.6g} {figure.unit}".strip(), figure.limit)
            for name, figure in finished.figures.items()
        ]
        parts.append(table(("figure", "value", "limit"), rows, f"Figures: {step.title}"))
    if finished.picture and len(finished.picture.x) > 1:
        parts.append(_drawn(finished.picture, step.title))
    return section(step.key, step.title, *parts)


def _drawn(picture: Picture, title: str) -> Element:
    points = [
        Point(x, y, 0, words=f"{x:.6g} {picture.x_words}, {y:.6g} {picture.y_words}")
        for x, y in zip(picture.x, picture.y, strict=True)
    ]

    ends = min(picture.x), max(picture.x)
    gain, label = picture.gain, f"{title}: {picture.y_words} against {picture.x_words}"
    return chart(
        Chart(
            DrawnAxis.about(picture.x_words, "", [(x, 0.0) for x in picture.x]),
            DrawnAxis.about(picture.y_words, "", [(y, 0.0) for y in picture.y]),
            points,
            label,
            guides=[] if gain is None else [(ends, [picture.offset + gain * end for end in ends])],
        )
    )


def _parts(certificate: Certificate) -> Element:
    named = {
        **asdict(certificate.parts or Parts()),
        **certificate.meter,
        "rig.toml, SHA-256": certificate.rig_sha256,
    }
    rows = [row(name.replace("_", " "), value) for name, value in named.items() if value]
    return table(("part", "as named at the desk, or as reported by the meter"), rows, "Parts")


def _recordings(certificate: Certificate) -> tuple[Track | None, list[PhaseSpan]]:
    """All existing recordings on one time axis, and the step of each."""
    times, currents, volts = [], [], []
    phases: list[PhaseSpan] = []
    at_s = 0.0
    for step in STEPS:
        finished = certificate.finished.get(step.key)
        begun_s = at_s
        recordings = Path(finished.folder).glob("*/raw") if finished and finished.folder else ()
        for folder in sorted(recordings, key=lambda raw: raw.stat().st_mtime):
            try:
                trace = read_trace(folder.parent)
            except RecordFault:
                continue
            if not len(trace):
                continue
            since_s = (trace.meter_ns - trace.meter_ns[0]) * 1e-9
            times.append(at_s + since_s)
            currents.append(trace.current_a)
            volts.append(trace.voltage_v)
            at_s += float(since_s[-1]) + BETWEEN_S
        if at_s > begun_s:
            phases.append(PhaseSpan(step.key, 1, begun_s, at_s - BETWEEN_S))
    if not times:
        return None, []
    centre_s, current_a, voltage_v = map(np.concatenate, (times, currents, volts))
    if centre_s.size < 2:
        return None, []
    columns = {"power_w": current_a * voltage_v, "current_a": current_a, "voltage_v": voltage_v}
    period_s = float(np.median(np.diff(centre_s)))
    return sampled_track(SampleParts.of(centre_s, columns), period_s, MOST_CELLS), phases


def _panels() -> list[dict[str, Any]]:
    volts = chart_series("voltage_v", "voltage", "--operations")
    return [power_panel(240), panel("voltage, V", "power", 120, [volts])]
