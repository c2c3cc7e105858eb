"""The same measurement in several conditions (`--storage sd,emmc,ssd-usb3`), in randomised blocks.

A block holds each condition once, in an order drawn from the seed; --repeats says how many blocks. What drifts slowly
(temperature, supply, a medium's own state) then does not fall on one condition alone. Every run has the same seed, so
all conditions get the same operations.
Source: Box, Hunter, Hunter, Statistics for Experimenters, 2nd edition, chapter 4 (randomised block designs).
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from opjoule.campaign.comparison import print_comparison, write_comparison
from opjoule.campaign.index import INDEX, ConditionRun, look, write_index
from opjoule.errors import FAULTY_EXIT, BadInput, Interrupted, OpJouleError
from opjoule.measurement.plan import Plan
from opjoule.record.directory import check_out, held
from opjoule.scripts import script_name
from opjoule.system_errors import of_system


def _on_medium(plan: Plan, medium: str) -> Plan:
    return replace(plan, medium=plan.profile.medium(medium))


AXES: Final[Mapping[str, Callable[[Plan, str], Plan]]] = {"storage": _on_medium}
"""What conditions can differ in: the option that takes several values, and the plan with one of them.

A further axis is a row here: the command line, the order, the table and the page follow it.
"""


def asked_values(asked: Mapping[str, object]) -> dict[str, list[str]]:
    """The axes whose option names several values with commas, with those values.

    Args:
        asked: the user's options.
    Raises: BadInput: one is named twice, or not at all.
    """
    found = {}
    for axis in AXES:
        text = str(asked.get(axis) or "")
        if "," not in text:
            continue
        values = [value.strip() for value in text.split(",")]
        if len(set(values)) < len(values) or "" in values:
            raise BadInput(f"--{axis} {text}: name each one once, as in --{axis} a,b")
        found[axis] = values
    return found


def in_conditions(plan: Plan, values: Mapping[str, Sequence[str]]) -> list[Plan]:
    """The plan in each combination of the axes' values.

    Raises: BadInput: a value means nothing.
    """
    made = []
    for combination in itertools.product(*values.values()):
        condition = dict(zip(values, combination, strict=True))
        one = replace(plan, condition=condition, asked={**plan.asked, **condition})
        for axis, value in condition.items():
            one = AXES[axis](one, value)
        made.append(one)
    return made


def block_order(count: int, blocks: int, seed: int) -> list[tuple[int, int]]:
    """(block, condition's number) in the order of measuring: each block holds all, shuffled from the seed."""
    chance = random.Random(seed)
    order: list[tuple[int, int]] = []
    for block in range(1, blocks + 1):
        shuffled = list(range(count))
        chance.shuffle(shuffled)
        order += [(block, number) for number in shuffled]
    return order


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
) -> int:
    """Measures every plan in blocks and prints all side by side; one that fails costs the others nothing.

    Args:
        plans: one a condition; `repeats` is the number of blocks.
        folder: an empty or new directory for all records, the index and report.html.
        seed: of the order in which the conditions come.
    Raises: BadInput: another measurement has the folder, or is about to.
    Returns: 0 if every run came to its end without a fault, otherwise the status of the first that did not, or 6
        where all came to their end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder):
        check_out(folder)  # once more: from here on it is this process's
        return _run_held(plans, folder, measure_one, seed=seed, json=json)


def _run_held(plans: Sequence[Plan], folder: Path, measure_one: MeasureOne, *, seed: int, json: bool) -> int:
    order = block_order(len(plans), plans[0].repeats, seed)
    simulated = plans[0].simulated
    runs = [ConditionRun.of(block, plans[which].condition, at) for at, (block, which) in enumerate(order, 1)]
    statuses: list[int] = []
    write_index(folder, runs, simulated=simulated)
    try:
        for at, (run, (_, which)) in enumerate(zip(runs, order, strict=True)):
            print(f"block {run.block}, {run.name} ({at + 1} of {len(runs)})", file=sys.stderr)
            plan = plans[which]
            once = replace(plan, repeats=1, asked={**plan.asked, "repeats": 1})
            status, place, why = _tried(measure_one, once, folder / run.folder)
            statuses.append(status)
            runs[at] = look(folder, replace(run, folder=place.name, why=why))
            if why:
                print(f"{script_name()}: {run.name}: {why}", file=sys.stderr)
            write_index(folder, runs, simulated=simulated)
    finally:
        write_comparison(folder)
    if json:
        sys.stdout.write((folder / INDEX).read_text(encoding="utf-8"))
    else:
        print_comparison(folder)
    cut_short = [status for status in statuses if status not in (0, FAULTY_EXIT)]
    return cut_short[0] if cut_short else max(statuses)


def _tried(measure_one: MeasureOne, plan: Plan, folder: Path) -> tuple[int, Path, str]:
    """Exit status, record and reason of one run; only the user, or the system, ends all of them."""
    try:
        return *measure_one(plan, folder), ""
    except Interrupted:
        raise
    except OpJouleError as error:
        return error.exit_code, folder, str(error)
    except OSError as error:
        return OpJouleError.exit_code, folder, of_system(error)
