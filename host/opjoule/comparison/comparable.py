"""Checks whether runs may be compared with each other, or drawn in one figure."""

from collections.abc import Iterable, Sequence
from typing import Final

from opjoule.comparison.compared_run import ComparedRun
from opjoule.comparison.settings import GROUPS, RIG, VERSIONS, Disagreement, disagreements, groups_of
from opjoule.errors import BadInput, unknown

SIDE: Final = "side"
"""The axis of runs before and after a change."""
SHORT: Final = "short"
"""In `although`: allows runs that are too short."""
STUDY_CELL: Final = ("study", "cell")
"""Group and key of a setting."""
_SHOWN: Final = 4
"""Greatest number of differences in a refusal."""


def check_comparable(
    strata: Iterable[Sequence[Sequence[ComparedRun]]],
    by: Sequence[str],
    although: Iterable[str] = (),
    *,
    cells: bool = False,
) -> list[str]:
    """Checks that runs differ only in the axes by which they are compared.

    Args:
        strata: groups to compare with each other, each a list of runs of one setting.
        by: axes of the comparison; (SIDE,) for before and after.
        cells: whether the cells of a study may differ: they are shown side by side, not judged.
    Returns: a line for each difference in a group of `although`.
    Raises: BadInput: another difference.
    """
    refused: dict[str, Disagreement] = {}
    lines: dict[str, str] = {}
    allowed, is_change = set(although), tuple(by) == (SIDE,)
    explained = {RIG} | {group for axis in by if axis != SIDE for group in groups_of(axis)}
    if is_change:
        explained |= set(VERSIONS)
    for groups in strata:
        everything = [run.settings for runs in groups for run in runs]
        inside = {
            str(one): one for runs in groups for one in disagreements([run.settings for run in runs], {RIG})
        }
        between = {str(one): one for one in disagreements(everything, explained)}
        indexes = {run.index for runs in groups for run in runs}
        declared = len(indexes) == 1 and None not in indexes and not is_change  # by the file of one campaign
        for line, one in {**inside, **between}.items():
            if cells and (one.group, one.key) == STUDY_CELL:
                continue
            if one.group in allowed:
                lines[line] = f"compared although they differ: {line}"
            elif declared and line not in inside and one.group not in (*VERSIONS, "simulated"):
                lines[line] = f"beside {', '.join(by)} the campaign's file varies {line}"
            else:
                refused[line] = one
        if is_change:
            lines |= {
                str(one): f"the change: {one}" for one in disagreements(everything) if one.group in VERSIONS
            }
    if refused:
        raise BadInput(_refusal(refused))
    return list(lines.values())


def allowed_groups(text: str | None) -> frozenset[str]:
    """Groups of settings named by `--although`, separated by commas. Raises: BadInput: an unknown group."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    for name in names:
        if name not in (*GROUPS, SHORT):
            raise BadInput(f"--although: {unknown('group of settings', name, (*GROUPS, SHORT))}")
    return frozenset(names)


def _refusal(refused: dict[str, Disagreement]) -> str:
    names = ",".join(dict.fromkeys(difference.group for difference in refused.values()))
    shown = "; ".join(list(refused)[:_SHOWN]) + ("; ..." if len(refused) > _SHOWN else "")
    return (
        f"these runs are not comparable. They differ in {shown}. Compare them by it, name fewer runs, or allow it with "
        f"--although {names}"
    )
