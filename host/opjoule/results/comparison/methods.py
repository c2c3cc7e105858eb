"""Methods section of a paper, from the records of several runs."""

from collections.abc import Sequence
from typing import Final

from opjoule.base.units import counted
from opjoule.results.answer import Answer, open_answer
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.run_warnings import warnings_of
from opjoule.results.comparison.value_words import label
from opjoule.runs.studies.definition import STORAGE

_METHODS: Final = """\
Energy was measured with OpJoule {versions} in {runs} (repeats in each: {repeats}) on {boards} with {media}.
Databases: {engines}; durability: {durability}.
Workloads: {work}.
Meter: {meters}.
Energy is the integral of voltage times current at the board's supply, over the run, and above idle over the time after
it until writes were done and the power was back at rest. Energy above idle excludes idle power, which was measured
before and after each run. Intervals are expanded uncertainties (95 %), which hold the sensor's errors, noise, lost
samples, clocks, idle's drift and the spread of repeats and runs (JCGM 100:2008); where none is drawn, none is stated.
"""


def methods(cells: Sequence[Sequence[ComparedRun]]) -> str:
    """A paragraph on the runs of some cells, one sentence per line, then their warnings; reads each record again."""
    facts: dict[str, dict[str, None]] = {}
    runs = [run for cell in cells for run in cell]
    for run in runs:
        for name, words in _said(open_answer(run.place)).items():
            facts.setdefault(name, {})[words] = None
    text = {name: ", ".join(word for word in words if word) for name, words in facts.items()}
    text["media"] = text["media"] or "its own medium"
    text["engines"] = text["engines"] or "none"
    text["durability"] = text["durability"] or "not stated"
    return _METHODS.format(runs=counted(len(runs), "run"), **text) + "".join(
        f"{warning}\n" for warning in warnings_of(cells)
    )


def _said(answer: Answer) -> dict[str, str]:
    """Phrases from one record, by their place in the paragraph."""
    run, name = answer.run, answer.run.asked.device or "unknown board"
    facts, model = run.found, run.found.device.model
    return {
        "versions": f"{facts.opjoule}{f' ({facts.commit[:12]})' if facts.commit else ''}",
        "repeats": str(answer.concluded.repeats or "?"),
        # The requested name and, if there is one, the name that the device reports.
        "boards": f"{name} ({model})" if model and not answer.record.simulated else name,
        "media": label(STORAGE, facts.storage or ""),
        "engines": run.database,
        "durability": run.summary.settings.get("durability", ""),
        "work": answer.wording.work(run),
        "meters": _meter(answer),
    }


def _meter(answer: Answer) -> str:
    meter, facts = answer.run.found.meter, answer.run.found
    chips = ", ".join(dict.fromkeys(sensor.model for sensor in meter.sensors if sensor.model))
    firmware = f", firmware {meter.firmware_version}" if meter.firmware_version else ""
    calibrated = "; ".join(facts.calibrations.values()) or "not calibrated"
    return f"{meter.kind or 'unknown'}{f' with {chips}' if chips else ''}{firmware}, {calibrated}"
