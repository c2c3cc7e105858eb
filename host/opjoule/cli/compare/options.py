"""The command line of `host/compare.py`."""

from pathlib import Path
from typing import Annotated, Final

from opjoule.base.scripts import IS_CLONE, program
from opjoule.base.settings import written
from opjoule.cli.argument_types import Percent
from opjoule.cli.command import Command
from opjoule.cli.needs import Needs
from opjoule.cli.options import Argument, Flag, Option, Options

FIGURES: Final = (".pdf", ".svg", ".png")
"""Allowed endings of a figure's file name."""
_MEASURING: Final = """
measure commands, then compare them:
  host/compare.py --device rpi4 --simulate -- 'sleep 2' 'sleep 4'
      by what factor two shell commands differ in energy and time; its options: host/compare.py --help --
"""
"""How commands are measured and compared, which an installed package cannot."""
_EPILOG: Final = f"""\
examples:
  {program("compare")} runs/20261122-101500-leveldb-rpi4-by-storage
      the media of one measurement (--storage sd,emmc,ssd-usb3)
  {program("compare")} runs/s1 --by storage --metric marginal_energy_per_operation_j,throughput_per_s
      a campaign; each database and workload is compared separately
  {program("compare")} 'runs/*-sqlite-*' 'runs/*-leveldb-*' --by db --against sqlite
      separate records, chosen by patterns
  {program("compare")} --before runs/old --after runs/new --tolerance 2%
      whether a change made it worse; exit status 7 if so (docs/how-to/compare-runs.md)
"""


def _figure(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in FIGURES:
        raise ValueError
    return path


Figure = Annotated[Path, written(_figure, f"a file that ends with {', '.join(FIGURES)}")]


class CompareOptions(Options):
    """The runs, what is compared, and where the outcome is written."""

    runs: Annotated[
        tuple[str, ...], Argument("RUNS", "records, folders of several (campaigns), or patterns of either")
    ] = ()
    by: Annotated[
        str | None,
        Option(
            "AXIS,...",
            "axis to compare by: storage, db, device, workload, durability, ... (default: the campaign's axis, "
            "if it has "
            "only one). Values of a campaign's other axes are not mixed",
        ),
    ] = None
    metric: Annotated[
        str | None,
        Option(
            "KEY,...",
            "quantities of result.json (default: energy above idle and energy in all, for a workload "
            "marginal_energy_per_operation_j,energy_per_operation_j)",
        ),
    ] = None
    against: Annotated[str | None, Option("VALUE", "compare every value only with this one (default: every pair)")] = (
        None
    )
    before: Annotated[
        tuple[str, ...], Option("RUN", "runs before a change; the output ends with a verdict", together=True)
    ] = ()
    after: Annotated[tuple[str, ...], Option("RUN", "runs after the change", together=True)] = ()
    tolerance: Annotated[
        Percent, Option("P%", "with --before and --after: smaller changes count as no change (default: 0)")
    ] = 0.0
    although: Annotated[
        str | None,
        Option(
            "GROUP,...",
            "compare even if these settings differ (simulated, durability, opjoule, ...) or runs are too short "
            "(short); "
            "the output says so",
        ),
    ] = None
    csv: Annotated[Path | None, Option("FILE", "also write the comparisons as CSV")] = None
    html: Annotated[Path | None, Option("FILE", "also write an HTML page that needs no network")] = None
    plot: Annotated[Figure | None, Option("FILE", "also draw the ratios for print, as .pdf, .svg or .png")] = None
    json: Annotated[bool, Flag("print the comparison as JSON on stdout")] = False


COMPARE: Final = Command(
    "compare",
    CompareOptions,
    "opjoule.cli.compare.command:run_compare",
    "Compares runs: prints ratios with intervals, and what can be concluded from them. Errors that both sides share "
    "cancel, and several comparisons are judged together (Holm's method). Runs that are not comparable are refused.",
    f"{_EPILOG}{_MEASURING if IS_CLONE else ''}",
    needs=lambda options: Needs(figures=bool(options.plot)),
)
COMMANDS: Final = (COMPARE,)
