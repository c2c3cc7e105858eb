"""The same measurement in several conditions (`--storage sd,emmc,ssd-usb3`), in randomised blocks.

A block holds each condition once, in an order drawn from the seed; --repeats says how many blocks. What drifts slowly
(temperature, supply, a medium's own state) then does not fall on one condition alone. Every run has the same seed, so
all conditions get the same operations.
Source: Box, Hunter, Hunter, Statistics for Experimenters, 2nd edition, chapter 4 (randomised block designs).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from opjoule import __version__
from opjoule.campaign.axes import AXES, several
from opjoule.campaign.campaign import Campaign, program_words
from opjoule.campaign.measurement import program_commit
from opjoule.comparison.comparison import print_comparison
from opjoule.comparison.index import as_recorded, write_index
from opjoule.comparison.pages.page import write_campaign_page
from opjoule.errors import Interrupted, OpJouleError
from opjoule.measuring.plan import Plan
from opjoule.record.directory import INDEX, check_out, held
from opjoule.scripts import script_name
from opjoule.system_errors import of_system


def asked_values(asked: Mapping[str, object]) -> dict[str, list[str]]:
    """The axes whose option names several values with commas, with these. Raises: BadInput: one twice, or none."""
    texts = {axis: str(asked.get(axis) or "") for axis, about in AXES.items() if about.listed}
    return {axis: several(f"--{axis}", text) for axis, text in texts.items() if "," in text}


def in_condition(plan: Plan, condition: Mapping[str, str], rank: int = 0) -> Plan:
    """Marks a plan as one of several; `rank` is its place among them.

    What a study's job goes through itself is in `asked` as its parts: an option may have the name of a count.
    """
    within = {name for part in plan.asked.get("parts") or () for name in part}
    options = {axis: value for axis, value in condition.items() if axis not in within}
    return replace(plan, condition=condition, rank=rank, asked={**plan.asked, **options})


MeasureOne = Callable[[Plan, Path], tuple[int, Path]]
"""Measures a plan into a directory. Gives its exit status and the record that counts, which lies beside that directory
where the run had to be measured again."""


def run_conditions(
    plans: Sequence[Plan],
    folder: Path,
    measure_one: MeasureOne,
    *,
    seed: int,
    json: bool,
    retries: int = 0,
    resume: bool = False,
    shared: bool = False,
) -> int:
    """Measures every plan in blocks and prints all results side by side; a failed one does not stop the others.

    Args:
        plans: one a condition; `repeats` is the number of blocks.
        folder: for all records, the index and report.html; an empty or new directory, unless `resume`.
        seed: of the order in which the conditions come.
        retries: how many times more a run that has failed is measured.
        resume: what the records in the folder say is done is not measured again.
        shared: the folder's index keeps what other command lines have measured.
    Raises: BadInput: another measurement has the folder, or is about to.
    Returns: 0 if every run came to its end without a fault, otherwise the status of the first that did not, or 6
        where all came to their end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder):
        if not resume:
            check_out(folder)  # again, now that this process holds it
        campaign = Campaign.of(plans, folder, seed=seed, retries=retries, resume=resume, shared=shared)
        if campaign.missing:
            campaign.programs[program_words(__version__, program_commit())] = None
        warned = warn_of_programs(campaign)
        save_index(campaign)
        try:
            for cell in campaign.missing:
                print(campaign.progress(cell), file=sys.stderr)
                status = 0
                while cell.is_missing:
                    started_s = time.monotonic()
                    run = cell.runs[-1]
                    status, place, why = _tried(measure_one, cell.plan, folder / run.folder)
                    cell.runs[-1] = as_recorded(folder, replace(run, folder=place.name, why=why))
                    if why:
                        print(f"{script_name()}: {run.name}: {why}", file=sys.stderr)
                    campaign.measured(cell, time.monotonic() - started_s, status)
                    warned = warn_of_programs(campaign, warned)
                    save_index(campaign)
                cell.status = status
        finally:
            write_campaign_page(folder)
        return concluded(campaign, json=json)


def warn_of_programs(campaign: Campaign, warned: str = "") -> str:
    """Warns once if the runs were made by several versions of the program; gives the warning."""
    if len(campaign.programs) < 2:
        return ""
    line = (
        f"the program has changed in mid-campaign: {' / '.join(campaign.programs)}: compare.py refuses to compare "
        "these runs; go back to the first version, or measure into another --out"
    )
    if line != warned:
        print(f"{script_name()}: warning: {line}", file=sys.stderr)
    return line


def save_index(campaign: Campaign) -> None:
    """Writes the index of a campaign's folder."""
    runs, programs = campaign.runs, campaign.programs
    write_index(campaign.folder, runs, simulated=campaign.simulated, programs=programs)


def concluded(campaign: Campaign, *, json: bool) -> int:
    """Prints what a folder holds, on the terminal or as its index; gives the exit status."""
    folder = campaign.folder
    if json:
        sys.stdout.write((folder / INDEX).read_text(encoding="utf-8"))
    else:
        print_comparison(folder)
    return campaign.exit_status


def _tried(measure_one: MeasureOne, plan: Plan, folder: Path) -> tuple[int, Path, str]:
    """Exit status, record and reason of one run; only the user, or the system, ends all of them."""
    try:
        return *measure_one(plan, folder), ""
    except Interrupted:
        raise
    except (OpJouleError, OSError) as error:
        why = str(error) if isinstance(error, OpJouleError) else of_system(error)
        if _was_interrupted(error):
            raise Interrupted(f"interrupted; while it ended: {why}") from error
        return getattr(error, "exit_code", OpJouleError.exit_code), folder, why


def _was_interrupted(error: BaseException | None) -> bool:
    """True if an error arose while an interruption was handled, as on a full disk."""
    while error and not isinstance(error, KeyboardInterrupt | Interrupted):
        error = error.__context__
    return error is not None
