"""The answer of a run in words: one sentence, and the notices that a reader must see first."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opjoule.base.errors import NewerSchema, RecordFault
from opjoule.base.notices import Grade, Notice, NoticeKind
from opjoule.base.units import NOT_STATED, Cause, Quantity, counted, k_words
from opjoule.results.long_table import all_told_paths, mean
from opjoule.results.rounding import rounded_quantity, with_unit
from opjoule.runs.evaluation.quantities.definition import Quantities
from opjoule.runs.evaluation.wording import TRACE, Wording, wording_of
from opjoule.runs.record.json_file import plain
from opjoule.runs.record.result import Conclusion, read_result
from opjoule.runs.record.run import Run
from opjoule.runs.record.run_record import RunRecord

TRACE_ONLY = "no workload was run, so there is no energy per operation."


@dataclass(frozen=True)
class Answer:
    """A record with its result; if there is no result.json, `result` is empty and `problem` gives the reason."""

    record: RunRecord
    concluded: Conclusion
    quantities: Quantities
    """Quantities of the run's study."""
    problem: str = ""

    @property
    def result(self) -> Mapping[str, Any]:
        """The numbers of result.json."""
        return self.concluded.numbers

    @property
    def run(self) -> Run:
        """run.json."""
        return self.record.run

    @property
    def trace_only(self) -> bool:
        """True for a power trace without board and workload (`measure.py record`)."""
        return self.wording is TRACE

    @property
    def wording(self) -> Wording:
        """Wording of the run's study."""
        return wording_of(self.run)

    @property
    def title(self) -> str:
        """Subject of the run, for example "LevelDB on rpi4 (SIMULATED), sd"; meter or file for a trace alone."""
        asked, mark = self.run.asked, " (SIMULATED)" if self.record.simulated else ""
        if self.trace_only:
            return f"Power trace from {asked.meter or asked.imported_file or 'an unknown meter'}{mark}"
        on = self.run.found.medium or asked.medium
        medium = f", {on}" if on else ""
        return f"{self.wording.subject(self.run)} on {asked.device or 'unknown board'}{mark}{medium}"

    @property
    def place(self) -> Path:
        """The record's directory."""
        return self.record.directory

    @property
    def repeats(self) -> int | None:
        """Number of whole cycles over which the numbers are averaged; None without a result."""
        return self.concluded.repeats

    def quantity(self, path: str) -> Quantity:
        """The mean at a dotted path of result.json (`mean` of the long table)."""
        return mean(self.concluded, self.quantities, path)

    def knows(self, path: str) -> bool:
        """True if the path names a number of the run's study: of the run, a kind of operation, a part or a sensor."""
        number = self.quantity(path)
        if number.value is not None or number.cause is not Cause.ABSENT or self.quantities.get(path):
            return True
        return path.startswith("by_") and bool(self.quantities.below(path.split(".", maxsplit=1)[0]) or not self.result)

    @property
    def sentence(self) -> str:
        """The headline figures with their uncertainties in one sentence, or the reason why they are missing."""
        if self.trace_only:
            power, mean = self.quantity("power_w"), ""
            if power.value is not None:
                mean = f"{in_words(power, 'in the mean')} ({k_words([power])}); "
            return f"{self.title}: {mean}{TRACE_ONLY}"
        parts = [
            in_words(number, words)
            for path, words in self.answers.items()
            if (number := self.quantity(path)).value is not None
        ]
        if parts:
            return f"{self.title}: {'; '.join(parts)} ({self.covers})."
        headline = self.quantities.headline
        lacking = self.quantity(headline.key)
        why = self.problem or (lacking.reason if lacking.value is None else "")
        return f"{self.title}: no {headline.label}: {why}"

    @property
    def answers(self) -> dict[str, str]:
        """Path -> words after the number, of each part of the answer: the kinds of operation all told come first."""
        told = {path: f"all told for each {kind}" for kind, path in all_told_paths(self.result).items()}
        return told | {of.key: of.headline for of in self.quantities.shown("headline")}

    @property
    def covers(self) -> str:
        """Coverage factors and number of runs behind the stated intervals."""
        runs = self.concluded.repeats
        k = k_words([self.quantity(path) for path in self.answers])
        if runs == 1 and k != NOT_STATED:
            return f"{k}; one run, so the spread between runs is not included"
        return f"{k}, {counted(runs, 'run')}" if runs else k

    @property
    def notices(self) -> list[Notice]:
        """Everything to see before any number."""
        simulated = [Notice(NoticeKind.SIMULATED, _SIMULATED_TRACE if self.trace_only else SIMULATED)]
        altered = [Notice(NoticeKind.ALTERED, line) for line in self.record.altered]
        return [*(simulated if self.record.simulated else []), *altered, *self.warnings]

    @property
    def warnings(self) -> list[Notice]:
        """What accompanies the figures everywhere: how the run ended, its faults and its notes."""
        kept = dict.fromkeys((*self.run.notices, *self.concluded.notices))
        told = any(notice.kind.grade is Grade.ENDING for notice in kept)
        return [*([] if told else self._ending()), *sorted(kept, key=lambda notice: notice.kind.grade is Grade.NOTE)]

    def _ending(self) -> list[Notice]:
        """How the run ended, if it did not come to its end without a fault."""
        record = self.record
        if record.status == "partial":
            return [Notice(NoticeKind.PARTIAL, _PARTIAL)]
        why = "the faults say why" if record.faults else "its record does not say why"
        return [Notice(NoticeKind.FAILED, f"the run failed; {why}")] if record.status == "failed" else []

    def to_json(self) -> dict[str, Any]:
        """result.json with all that the terminal says beside the numbers."""
        record = self.record
        return {
            **self.result,
            **{"simulated": record.simulated, "status": record.status},
            "notices": plain([notice for notice in self.notices if notice.kind is not NoticeKind.SIMULATED]),
        }


SIMULATED = (
    "No board and no meter was measured. The workload ran for real on this computer; a power model of the board and "
    "its medium turned its activity into the current that the simulated meter saw. These joules show how the rig "
    "works. "
    "They say nothing about the energy or speed of real hardware."
)
_SIMULATED_TRACE = (
    "No meter was recorded: a program was at the other end of the port. These joules say nothing about real hardware."
)
_PARTIAL = "This run ended early. Its figures come from the data that were recorded until then."


def open_answer(of: Path | RunRecord) -> Answer:
    """Reads run.json and result.json of a record, however its run ended. Raises: RecordFault: no readable run.json."""
    record = RunRecord.open(of) if isinstance(of, Path) else of
    wording = wording_of(record.run)
    try:
        if record.intact("result.json").exists():
            result = read_result(record.directory)
            return Answer(record, result, wording.quantities_of(result.numbers))
    except NewerSchema:
        raise
    except RecordFault as fault:
        return Answer(record, Conclusion(), wording.quantities, str(fault))
    why = record.faults[0].text if record.faults else "the run wrote no result.json"
    return Answer(record, Conclusion(), wording.quantities, why)


def in_words(of: Quantity, what: str) -> str:
    """Text such as "1.235 ± 0.051 mJ per operation"; a lower bound has "at least"."""
    shown = rounded_quantity(of)
    assert shown is not None
    unit = shown.unit.removesuffix("/operation")
    least = "at least " if of.is_least else ""
    return f"{least}{with_unit(shown.figure, unit)} {what}"
