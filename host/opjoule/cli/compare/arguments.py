"""The options of `host/compare.py`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from opjoule.cli.argument_types import Parser, directory, percent

FIGURES: Final = (".pdf", ".svg", ".png")
"""How the name of a figure's file ends."""

EXAMPLES = """\
examples:
  host/compare.py runs/20261122-101500-leveldb-rpi4-by-storage
      the media of one measurement (--storage sd,emmc,ssd-usb3) against each other
  host/compare.py runs/s1 --by storage --metric marginal_energy_per_operation_j,throughput_per_s
      a campaign: each database and workload on its own
  host/compare.py 'runs/*-sqlite-*' 'runs/*-leveldb-*' --by db --against sqlite
      records of their own, by patterns
  host/compare.py --before runs/old --after runs/new --tolerance 2%
      has a change made it worse? exit status 7 if so (docs/how-to/compare-runs.md)
"""


def compare_parser() -> Parser:
    """The parser of `measure.py compare`."""
    parser = Parser(
        program="compare.py",
        description="Compares runs: ratios with intervals, and what can be concluded from them. Errors "
        "that both sides share cancel, and several comparisons are judged together (Holm's "
        "rule). Runs that are not comparable are refused.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUNS",
        help="records, folders of several (campaigns), or patterns of either",
    )
    parser.add_argument(
        "--by",
        metavar="AXIS,...",
        help="what is compared: storage, db, device, workload, durability, ... (default: the axis of "
        "their campaign, if it has only one). Values of a campaign's other axes are not mixed",
    )
    parser.add_argument(
        "--metric",
        metavar="KEY,...",
        help="quantities of result.json (default: the headline, marginal_energy_per_operation_j)",
    )
    parser.add_argument(
        "--against", metavar="VALUE", help="compare every value only with this one (default: every pair)"
    )
    parser.add_argument("--before", nargs="+", metavar="RUN", help="runs before a change: gives a verdict")
    parser.add_argument("--after", nargs="+", metavar="RUN", help="runs after it")
    parser.add_argument(
        "--tolerance",
        type=percent,
        default=0.0,
        metavar="P%",
        help="with --before and --after: smaller changes count as none (default: 0)",
    )
    parser.add_argument(
        "--although",
        metavar="GROUP,...",
        help="compare although these settings differ (simulated, durability, opjoule, ...), or runs are too short "
        "(short); the output says so",
    )
    parser.add_argument("--csv", type=directory, metavar="FILE", help="also write the comparisons as CSV")
    parser.add_argument(
        "--html", type=directory, metavar="FILE", help="also write a page, which opens without a network"
    )
    parser.add_argument(
        "--plot",
        type=_figure,
        metavar="FILE",
        help="also draw the ratios for print: FILE.pdf, .svg or .png",
    )
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON on stdout")
    return parser


def _figure(text: str) -> Path:
    path = directory(text)
    if path.suffix.lower() not in FIGURES:
        raise argparse.ArgumentTypeError(f"{text!r}: name a file that ends with {', '.join(FIGURES)}")
    return path
