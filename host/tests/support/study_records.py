"""Records of a study's cells."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from opjoule.energy.operations.board_files import MARKS_FILE
from opjoule.meters.chips import ina219_breakout
from opjoule.runs.evaluation.collection import collect
from opjoule.runs.evaluation.evidence import Evidence
from opjoule.runs.record.run_record import RunRecord
from plotted_runs import scaled
from raw_record import running_record
from report_record import RESULT, make_record, put_result

MEDIA = {"sd": {"3": ["distribution"], "7": ["storage", "device"]}, "ssd": {"7": ["storage", "device"]}}
"""Medium -> figures that show its zipfian cells."""


def make(folder, system, medium, distribution, mix, factor, device="rpi4", **options):
    cell = {"system": system, "device": device, "storage": medium, "distribution": distribution, "mix": mix}
    shown = MEDIA[medium] if distribution == "zipfian" else {"3": ["distribution"]}
    about = {"folder": "s1", "cell": cell, "figures": {**shown, "6": ["device"]}, "scale": 0.5, **options}
    place = folder / f"{len(list(folder.iterdir()))}"
    make_record(place, **{**cell, "db": system, **about})
    made = copy.deepcopy(RESULT)
    for key in ("energy_j", "bandwidth_bytes_per_s"):
        made[key] = scaled(made[key], factor)
    put_result(place, made)


STUDY = {
    "name": "suite",
    "study": "s9",
    "called": "A study",
    "command": ["job"],
    "files": [],
    "phases": ["QUERY"],
}
STUDY |= {"cell": {"system": "one"}, "scale": 1.0, "seed": 1, "dataset": "", "parts": [], "best": {}}
QUERY = {"phase": "QUERY", "cell": {}, "figures": {"calls": 10}}


def study_record(
    place: Path,
    sensor_id: str,
    lost_s: tuple[float, float] | None = None,
    *,
    study: Mapping[str, Any] = STUDY,
    reported: Sequence[Mapping[str, Any]] = (QUERY,),
    block: int = 1,
) -> RunRecord:
    """A record of a study whose job marked two stretches of 0.2 s in each run as one phase, and reported phases."""
    record = running_record(place, lost_s)
    record.update(
        asked={**record.document["asked"], "block": block},
        plan={"study": study},
        sensor=replace(ina219_breakout(), sensor_id=sensor_id),
    )
    starts = [phase.start_board_ns for phase in record.run.phases if phase.name == "run"]
    marks = [
        {"event": event, "board_ns": start_ns + at_ms * 1_000_000, "detail": "query"}
        for start_ns in starts
        for event, at_ms in (("begin", 100), ("end", 300), ("begin", 500), ("end", 700))
    ]
    lines = [json.dumps({**mark, "event": f"phase-{mark['event']}"}) + "\n" for mark in marks]
    (place / "raw" / MARKS_FILE).write_text("".join(lines))
    of_each = {"mark": "query", "operations": 100, "answer": None, "not_supported": ""}
    results = "".join(json.dumps({**of_each, **phase}) + "\n" for phase in reported)
    (place / "raw/run-1.results.jsonl").write_text(results)
    collect(record, Evidence.of(record, ended_early=False))
    return record
