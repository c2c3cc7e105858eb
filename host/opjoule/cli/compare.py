"""`host/compare.py`: comparison of runs."""

import json
import sys
from collections.abc import Sequence

from opjoule.base.errors import BadInput, unknown
from opjoule.base.files import write_whole
from opjoule.base.scripts import program, script_name
from opjoule.bench.simulation.truth_line import print_cells_line
from opjoule.cli.record_commands import CompareOptions
from opjoule.pages.comparison import comparison_page, forest
from opjoule.results.comparison.cell import AFTER, BEFORE
from opjoule.results.comparison.compared_run import SIDE, ComparedRun, allowed_groups
from opjoule.results.comparison.conclusion import print_compared, to_csv, to_json, verdict
from opjoule.results.comparison.contrasts import Question, compare
from opjoule.results.comparison.index import gather
from opjoule.results.comparison.settings import GROUPS


def run_compare(options: CompareOptions) -> int:
    """Compares runs and prints the outcome; for a change, returns the verdict's exit status.

    Raises: BadInput: nothing to compare, or the runs are not comparable. DataFault: no verdict can be given.
    """
    _check_options(options)
    changed = bool(options.before)
    sides: dict[int, str] | None = None
    if changed:
        before, left_out = gather(options.before)
        after, more = gather(options.after)
        if both := {run.place.resolve() for run in before} & {run.place.resolve() for run in after}:
            raise BadInput(f"{min(both)} is given both as before and as after")
        runs, left_out = [*before, *after], left_out + more
        sides = {number: BEFORE if number < len(before) else AFTER for number in range(len(runs))}
    else:
        runs, left_out = gather(options.runs)
    for line in left_out:
        print(f"{script_name()}: left out: {line}", file=sys.stderr)
    question = Question(
        by=(SIDE,) if changed else _by(options, runs),
        metrics=_listed(options.metric),
        against=options.against or "",
        although=allowed_groups(options.although),
        tolerance=options.tolerance,
    )
    compared = compare(runs, question, sides)
    word, status = verdict(compared) if changed else ("", 0)
    if options.csv:
        write_whole(options.csv, to_csv(compared).encode())
    if options.plot:
        from opjoule.pages.drawing.printed import printed, save_as  # noqa: PLC0415  # matplotlib is installed only for this

        save_as(printed(forest(compared)), options.plot)
    if options.html:
        command = [*program("compare").split(), *sys.argv[2:]]
        write_whole(options.html, comparison_page(compared, left_out, options.html, command).encode())
    if options.json:
        print(json.dumps(to_json(compared), indent=2))
    else:
        print_compared(compared)
        if word:
            print(f"verdict: {word}")
    print_cells_line([group.runs for group in compared.groups], compared.quantities, as_json=options.json)
    return status


def _check_options(options: CompareOptions) -> None:
    """Raises: BadInput: the options contradict each other."""
    if bool(options.before) != bool(options.after):
        raise BadInput("--before and --after belong together: give both")
    if options.before and (options.runs or options.by or options.against):
        raise BadInput("--before and --after name all runs to compare: leave out RUNS, --by and --against")
    if options.tolerance and not options.before:
        raise BadInput("--tolerance applies to a change: also give --before and --after")
    if not options.before and not options.runs:
        raise BadInput(f"no runs are given: name records or folders of them ('{program('compare')} --help' explains)")


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _by(options: CompareOptions, runs: Sequence[ComparedRun]) -> tuple[str, ...]:
    """The axes to compare by. Raises: BadInput: none is given and there is not exactly one, or an axis is unknown."""
    axes = sorted({axis for run in runs for axis in run.condition})
    names = _listed(options.by)
    for name in names:
        if name not in GROUPS and name not in axes:
            raise BadInput(f"--by: {unknown('axis', name, [*axes, *(group for group in GROUPS if group not in axes)])}")
    if names or len(axes) == 1:
        return names or tuple(axes)
    named = f"one or more of {', '.join(axes)}" if axes else "for example storage, db or device"
    raise BadInput(f"it is not clear what to compare: give --by with {named}")
