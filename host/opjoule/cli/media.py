"""`--storage sd,emmc,ssd-usb3`: the same measurement on several media, in randomised blocks, side by side.

A block holds each medium once, in an order drawn from the seed; --repeats says how many blocks. What drifts slowly
(temperature, supply, the medium's own state) then does not fall on one medium alone. Every run has the same seed, so
all media get the same operations.
Source: Box, Hunter, Hunter, Statistics for Experimenters, 2nd edition, chapter 4 (randomised block designs).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from opjoule.errors import FAULTY_EXIT, BadInput, Interrupted, OpJouleError
from opjoule.measurement.plan import Plan
from opjoule.record.directory import check_out, held
from opjoule.report.media import MediumRun, look, print_media, write_index, write_media_report
from opjoule.system_errors import of_system


def asked_media(storage: str | None) -> list[str | None]:
    """The media that --storage names; [None] for the board's first.

    Raises: BadInput: one is named twice, or not at all.
    """
    if "," not in (storage or ""):
        return [storage]
    media = [name.strip() for name in str(storage).split(",")]
    if len(set(media)) < len(media) or "" in media:
        raise BadInput(f"--storage {storage}: name each medium once, for example sd,emmc")
    return list(media)


def media_order(media: Sequence[str], blocks: int, seed: int) -> list[tuple[int, str]]:
    """(block, medium) in the order of measuring: each block holds every medium once, shuffled from the seed."""
    chance = random.Random(seed)
    order: list[tuple[int, str]] = []
    for block in range(1, blocks + 1):
        shuffled = list(media)
        chance.shuffle(shuffled)
        order += [(block, medium) for medium in shuffled]
    return order


def run_media(
    plans: Sequence[Plan],
    folder: Path,
    measure_one: Callable[[Plan, Path], int],
    *,
    seed: int,
    json: bool,
) -> int:
    """Measures every plan's medium in blocks and prints them side by side; one that fails costs the others nothing.

    Args:
        plans: the same measurement, one plan a medium; `repeats` is the number of blocks.
        folder: an empty or new directory for all records, media.json and report.html.
        seed: of the order in which the media come.
        measure_one: measures one plan into one directory; gives its exit status.
    Raises: BadInput: another measurement has the folder, or is about to.
    Returns: 0 if every run came to its end without a fault, otherwise the status of the first that did not, or 6
        where all came to their end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder):
        check_out(folder)  # once more: from here on it is this process's
        return _run_held(plans, folder, measure_one, seed=seed, json=json)


def _run_held(
    plans: Sequence[Plan], folder: Path, measure_one: Callable[[Plan, Path], int], *, seed: int, json: bool
) -> int:
    by_name = {plan.medium: plan for plan in plans}
    order = media_order(list(by_name), plans[0].repeats, seed)
    runs = [
        MediumRun(block, medium, f"{number:02}-{medium}") for number, (block, medium) in enumerate(order, 1)
    ]
    statuses: list[int] = []
    write_index(folder, runs, simulated=plans[0].simulated)
    try:
        for at, run in enumerate(runs):
            print(f"block {run.block}, {run.medium} ({at + 1} of {len(runs)})", file=sys.stderr)
            plan = by_name[run.medium]
            asked = {**plan.asked, "storage": run.medium, "repeats": 1}
            status, why = _tried(measure_one, replace(plan, repeats=1, asked=asked), folder / run.folder)
            statuses.append(status)
            runs[at] = look(folder, replace(run, why=why))
            if why:
                print(f"measure.py: {run.medium}: {why}", file=sys.stderr)
            write_index(folder, runs, simulated=plan.simulated)
    finally:
        write_media_report(folder)
    if json:
        sys.stdout.write((folder / "media.json").read_text(encoding="utf-8"))
    else:
        print_media(folder)
    cut_short = [status for status in statuses if status not in (0, FAULTY_EXIT)]
    return cut_short[0] if cut_short else max(statuses)


def _tried(measure_one: Callable[[Plan, Path], int], plan: Plan, folder: Path) -> tuple[int, str]:
    """Exit status and reason of one run; only the user, or the system, ends all of them."""
    try:
        return measure_one(plan, folder), ""
    except Interrupted:
        raise
    except OpJouleError as error:
        return error.exit_code, str(error)
    except OSError as error:
        return OpJouleError.exit_code, of_system(error)
