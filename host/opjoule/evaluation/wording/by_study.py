"""Quantities and wording of a record, by its study."""

from __future__ import annotations

from typing import Final

from opjoule.evaluation.quantities.common import COMMON
from opjoule.evaluation.quantities.definition import Quantities
from opjoule.evaluation.wording.command import SUITE
from opjoule.evaluation.wording.command import WORDING as COMMAND
from opjoule.evaluation.wording.wording import Wording
from opjoule.evaluation.wording.ycsb import WORDING as YCSB
from opjoule.record.run import Run

TRACE: Final = Wording(
    Quantities(COMMON),
    subject=lambda run: "Power trace",
    work=lambda run: "",
    more=lambda run: "a longer trace",
    longer=lambda run, times, run_s, operations: "record for longer",
)
"""Wording for a power trace on its own: no study, no board, no workload."""

WORDINGS: Final[dict[str, Wording]] = {"ycsb": YCSB, "command": COMMAND, "suite": SUITE}
"""Name of a study -> its wording."""


def wording_of(run: Run) -> Wording:
    """The wording for a record, from its run.json; records without a plan are from YCSB studies."""
    name = run.plan.study.name or run.asked.study or ("ycsb" if run.asked.db else "")
    return WORDINGS.get(name, YCSB) if name else TRACE
