"""What the terminal shows while a measurement runs."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
from opjoule.energy.trace.power_history import PowerHistory
from opjoule.runs.measuring.progress import Expected, Pace, PaceColumn, PhaseProgress, PowerColumn, ProgressNotes


def test_the_power_is_the_mean_of_the_last_second() -> None:
    """Two seconds of 9 W, then two of 3 W at 1 kHz; the newest block is not complete and not shown."""
    column, task = PowerColumn(), None
    assert column.render(task).plain == ""  # type: ignore[arg-type]
    column.history = PowerHistory()
    assert column.render(task).plain == ""  # type: ignore[arg-type]
    meter_ns = np.arange(4001, dtype=np.int64) * 1_000_000
    column.history.add(meter_ns, np.where(meter_ns < 2_000_000_000, 9.0, 3.0))
    assert column.render(task).plain == "3.00 W"  # type: ignore[arg-type]


def test_without_a_terminal_each_phase_is_a_line_with_the_time_passed_and_left(capsys) -> None:
    """The bar of a terminal has the same."""
    with PhaseProgress() as progress:
        progress.phase("starting", None)
        progress.expect([Expected("idle", "idle", 3.0), Expected("run", "run", 600.0)])
        progress.phase("idle", 3.0, 1, 2)
        progress.phase("run", 600.0, 1, 2)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "  starting: 0 s elapsed",
        "  idle (1 of 2): 0 s elapsed, about 10 min left",
        "  run (1 of 2): 0 s elapsed, about 10 min left",
    ]


def test_a_bar_shows_the_time_passed_and_left() -> None:
    pace = Pace()
    column = PaceColumn(pace)
    assert column.render(None).plain == "0:00:00"  # type: ignore[arg-type]
    pace.expect([Expected("idle", "idle", 600.0)])
    pace.begin("idle", None)
    assert column.render(None).plain == "0:00:00, about 10 min left"  # type: ignore[arg-type]


def test_time_passed_and_left_are_noted_in_the_record(tmp_path) -> None:
    progress = PhaseProgress(quiet=True)
    notes = ProgressNotes(tmp_path / "progress.jsonl", SimpleNamespace(end_ns=5))  # type: ignore[arg-type]
    progress.expect([Expected("run", "run", 600.0)])
    with progress.noted(notes):
        progress.phase("run", None, 1, 1)
        progress.write_down(board_ns=77)
    phase, time_noted, reached = map(json.loads, (tmp_path / "progress.jsonl").read_text().splitlines())
    assert phase == {"meter_ns": 5, "phase": "run", "repeat": 1, "repeats": 1} and reached == {
        "meter_ns": 5,
        "board_ns": 77,
    }
    assert 599.0 < time_noted["remaining_s"] <= 600.0 and time_noted["is_least"] is False
    assert time_noted["elapsed_s"] >= 0.0 and time_noted["host_ns"] > 0
