"""Replies to the page's requests as JSON values; times are in seconds on a run's time axis."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opjoule.base.errors import BadInput, DataFault
from opjoule.base.notices import Grade, Notice
from opjoule.base.units import Quantity
from opjoule.pages.report.html import render
from opjoule.pages.report.timeline import read_timeline
from opjoule.pages.view.runs_folder import POWER, RunsFolder, ShownRun
from opjoule.results.answer import open_answer
from opjoule.results.rounding import quantity_text
from opjoule.results.run_list import ListedRun
from opjoule.results.tracks import Track, phase_kind
from opjoule.runs.record.directory import check_files
from opjoule.runs.record.run_record import reading

MOST_COLUMNS: Final = 4000
OPERATION_BINS: Final = 400
SHOWN: Final = (
    ("duration_s", "length"),
    ("energy_j", "energy"),
    ("marginal_energy_j", "energy above idle"),
    ("power_w", "mean power"),
    ("energy_per_operation_j", "energy per operation"),
    ("marginal_energy_per_operation_j", "energy above idle per operation"),
)
"""Quantities of a stretch and their names in the page."""
_AS_LISTED: Final = (*("title", "subject", "device", "medium", "status", "simulated", "started_utc", "label", "why"),)


class Replies:
    """Replies to the page's requests. May be used from several threads."""

    def __init__(self, records: RunsFolder) -> None:
        self._records = records
        self._rows: dict[str, tuple[ListedRun, dict[str, Any]]] = {}
        """Name -> record as last listed, with its row: the page asks often while records are still being read."""
        self.known: dict[str, Callable[[Mapping[str, str]], Any]] = {
            "runs": self._runs,
            **{
                what: partial(self._of_record, reply)
                for what, reply in (
                    ("run", self._run),
                    ("power", self._power),
                    ("stretch", self._stretch),
                    ("running", self._running),
                )
            },
        }
        self.pages = {"report": self._report}

    def _runs(self, query: Mapping[str, str]) -> Any:
        """All records for the table; `total` is larger than their number while some are still being read."""
        listing = self._records.listing()
        return {
            "folder": str(self._records.folder),
            "total": listing.total,
            "whole": listing.is_whole,
            "runs": [self._row(name, run) for name, run in listing.runs.items()],
        }

    def _row(self, name: str, run: ListedRun) -> dict[str, Any]:
        kept = self._rows.get(name)
        if kept is None or kept[0] is not run:
            kept = self._rows[name] = run, _row(name, run)
        return kept[1]

    def _of_record(self, reply: Callable[[Mapping[str, str]], Any], query: Mapping[str, str]) -> Any:
        """The reply to a request about one record. Raises: RecordFault: its content is damaged."""
        with reading(self._records.place(_name(query))):
            return reply(query)

    def _report(self, query: Mapping[str, str]) -> bytes:
        return report_of(self._records.place(_name(query)))

    def _run(self, query: Mapping[str, str]) -> Any:
        """Title, length and phases. Also starts the reading that takes seconds for a long trace."""
        shown = self._records.open(_name(query))
        with shown.lock:
            run = shown.run
            shown.read_ahead()
            phases = [{**asdict(phase), "kind": phase_kind(phase.name)} for phase in run.phases]
            return {
                "title": run.title,
                "status": run.status,
                "simulated": run.simulated,
                "notices": stated_notices(run.notices),
                "duration_s": shown.extent.end_s,
                "samples": shown.extent.samples,
                "operations": int(shown.operations_s.size),
                "phases": phases,
            }

    def _power(self, query: Mapping[str, str]) -> Any:
        """Least, greatest and mean power of a stretch's cells; operations begun per second in equal bins."""
        shown = self._records.open(_name(query))
        start_s, end_s = stretch_of(query)
        columns = columns_of(query)
        with shown.lock:
            track = shown.pyramid.view(start_s, end_s, columns)
            return {
                "single": track.samples_per_cell == 1,
                **power_values(track),
                "lost_s": rounded(_lost_s(shown, start_s, end_s, columns), 9),
                "operations": _rate(shown, start_s, end_s),
            }

    def _stretch(self, query: Mapping[str, str]) -> Any:
        """Energy of a stretch, computed by the library."""
        shown = self._records.open(_name(query))
        start_s, end_s = stretch_of(query)
        with shown.energies:
            energy = shown.run.energy(start_s, end_s)
        rows = [stated_row(key, label, getattr(energy, key)) for key, label in SHOWN]
        return {"operations": energy.operations, "quantities": rows}

    def _running(self, query: Mapping[str, str]) -> Any:
        """Energy from the beginning of a stretch to at least 2 equally spaced moments in it.

        `marginal_energy_j`: the same minus idle power times the time so far; None if idle power is unknown.
        Raises: WindowError: the stretch reaches outside the trace. GapError: too much of it was lost.
            DataFault: its energy is withheld.
        """
        shown = self._records.open(_name(query))
        start_s, end_s = stretch_of(query)
        columns = columns_of(query)
        with shown.energies:
            run, stretch = shown.run, shown.run.energy(start_s, end_s)
            if stretch.energy_j.value is None:
                raise DataFault(stretch.energy_j.reason)
            ends_ns = run.meter_ns(start_s), run.meter_ns(end_s)
            edge_ns = np.linspace(*ends_ns, max(columns, 2)).astype(np.int64)
            steps_j = run.cells.power.between_edges(edge_ns)
        # The steps are in seconds of the meter's clock, the total in seconds of the best clock.
        energy_j = np.concatenate(([0.0], np.cumsum(steps_j)))
        energy_j *= stretch.energy_j.value / energy_j[-1] if energy_j[-1] else 1.0
        share = np.linspace(0.0, 1.0, edge_ns.size)
        above_j = stretch.marginal_energy_j
        marginal = None
        if above_j.value is not None:
            marginal = rounded(energy_j - share * (stretch.energy_j.value - above_j.value), 9)
        time_s = rounded(share * (end_s - start_s), 9)
        return {"time_s": time_s, "energy_j": rounded(energy_j, 9), "marginal_energy_j": marginal}


def report_of(directory: Path) -> bytes:
    """report.html of a record; if there is none, one made now, not kept. Raises: RecordFault: unreadable run.json."""
    page = directory / "report.html"
    check_files(directory)
    if page.exists():
        return page.read_bytes()
    with reading(directory):
        answer = open_answer(directory)
        return render(answer, read_timeline(answer.record)).encode()


def _row(name: str, run: ListedRun) -> dict[str, Any]:
    return {
        "name": name,
        **{key: getattr(run, key) for key in _AS_LISTED},
        "headline": "" if run.headline.value is None else quantity_text(run.headline),
        "headline_value": run.headline.value,
        "notices": stated_notices(run.notices),
        "note": run.notes.text,
        "tags": run.notes.tags,
    }


def stated_notices(notices: Iterable[Notice]) -> list[dict[str, Any]]:
    """Notices with all that a page shows of them."""
    return [
        {"mark": notice.mark, "text": notice.text, "is_grave": notice.kind.grade is not Grade.NOTE}
        for notice in notices
    ]


def stated_row(key: str, label: str, of: Quantity) -> dict[str, Any]:
    """A quantity and its text, rounded to two digits of its uncertainty; with a reason if either is missing."""
    return {
        "key": key,
        "label": label,
        "value": of.value,
        "u": of.u,
        "unit": of.unit,
        "text": quantity_text(of),
        "reason": getattr(of, "reason", ""),
    }


def _lost_s(shown: ShownRun, start_s: float, end_s: float, columns: int) -> npt.NDArray[np.floating[Any]]:
    """Moments of lost samples inside a stretch, at most one per column."""
    first, last = np.searchsorted(shown.lost_s, [start_s, end_s])
    middle_s = shown.lost_s[first:last]
    place = np.floor((middle_s - start_s) / (end_s - start_s) * columns)
    return middle_s[np.unique(place, return_index=True)[1]]


def _rate(shown: ShownRun, start_s: float, end_s: float) -> Any:
    """Operations per second in equal bins of a stretch; None for a run without operations."""
    if not shown.operations_s.size:
        return None
    bounds_s = np.linspace(start_s, end_s, OPERATION_BINS + 1)
    counts = np.diff(np.searchsorted(shown.operations_s, bounds_s))
    return {"bounds_s": rounded(bounds_s, 9), "per_s": rounded(counts / np.diff(bounds_s), 3)}


def _name(query: Mapping[str, str]) -> str:
    if "run" not in query:
        raise BadInput("no run is named: give its name as 'run'")
    return query["run"]


def stretch_of(query: Mapping[str, str]) -> tuple[float, float]:
    """Start and end of the requested stretch [s]. Raises: BadInput: the stretch is invalid."""
    start_s, end_s = _number(query, "start"), _number(query, "end")
    if not start_s < end_s:
        raise BadInput(f"no stretch from {start_s} to {end_s} s: its end must come after its start")
    return start_s, end_s


def columns_of(query: Mapping[str, str]) -> int:
    """Requested maximum number of cells."""
    return min(max(round(_number(query, "columns")), 1), MOST_COLUMNS)


def power_values(track: Track) -> dict[str, list[float | None]]:
    """Bounds and powers of a track's cells."""
    least_w, greatest_w = track.extremes(POWER)
    return {
        "bounds_s": rounded(track.bounds_s, 9),
        "mean_w": rounded(track.mean[POWER], 6),
        "least_w": rounded(least_w, 6),
        "greatest_w": rounded(greatest_w, 6),
    }


def _number(query: Mapping[str, str], key: str) -> float:
    try:
        number = float(query[key])
    except (KeyError, ValueError):
        number = math.nan
    if not abs(number) < 1e9:
        raise BadInput(f"'{key}' must be a number, found '{query.get(key, '')[:40]}'")
    return number


def rounded(values: npt.NDArray[np.floating[Any]], digits: int) -> list[float | None]:
    """Rounded numbers for JSON, with None for NaN."""
    exact = np.asarray(values, np.float64)
    return [None if math.isnan(value) else value for value in np.round(exact, digits).tolist()]
