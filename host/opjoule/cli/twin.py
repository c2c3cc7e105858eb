"""`measure.py twin`: the runs that determine a board's parameters, and the fit of the simulated board to them."""

import json
import shlex
from pathlib import Path
from typing import Final

from rich.table import Table

from opjoule.base.errors import BadInput
from opjoule.base.files import write_whole
from opjoule.base.terminal import terminal
from opjoule.bench.simulation.fitting.fit import FittedTwin, fit_twin
from opjoule.bench.simulation.fitting.outputs import missing_runs, page_text, shown, write_profile
from opjoule.bench.simulation.fitting.recorded import read_recorded
from opjoule.boards.profiles import find_profile
from opjoule.cli.options import TWINS
from opjoule.cli.rig_commands import TwinOptions

EXERCISE: Final = Path("host/opjoule/bench/simulation/fitting/exercise.sh")
"""Script that keeps first the cores and then the medium busy; POSIX sh, for any board."""


def run_twin(options: TwinOptions) -> int:
    """Fits a twin, or prints the runs to make.

    Raises: BadInput, RecordFault, DataFault: a record cannot be used, with the reason in one line.
    """
    if not options.fit:
        _print_runs(options)
        return 0
    fitted = fit_twin([read_recorded(path) for path in options.fit])
    path = options.out or TWINS / f"{fitted.records[0].board}-{fitted.records[0].medium}.toml"
    page = path.with_suffix(".html")
    if page == path:
        raise BadInput(f"--out {path}: the page would have the same name; give a name that ends in .toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_profile(path, fitted)
    write_whole(page, page_text(fitted, path.name).encode())
    if options.json:
        print(json.dumps(as_json(fitted, path), indent=1))
    else:
        _print(fitted, path, page)
    return 0


def as_json(fitted: FittedTwin, path: Path) -> dict[str, object]:
    """Parameters and energies by phase as plain values."""
    return {
        "schema": {"name": "twin-fit", "version": 1},
        "simulated": fitted.simulated,
        "profile": str(path),
        "parameters": {
            estimate.key: {
                **{name: getattr(estimate, name) for name in ("value", "u", "unit", "origin")},
                **({"tell": estimate.needed_run} if not estimate.identified else {}),
            }
            for estimate in fitted.estimates
        },
        "phases": [
            {
                "name": balance.name,
                "duration_s": balance.duration_s,
                "measured_j": balance.measured_j,
                "twin_j": balance.model_j,
            }
            for balance in fitted.balances()
        ],
        "verdict": fitted.verdict(),
    }


def _print(fitted: FittedTwin, path: Path, page: Path) -> None:
    console = terminal(soft_wrap=True)
    mark = " (SIMULATED)" if fitted.simulated else ""
    first = fitted.records[0]
    console.print(f"Twin of {first.board} with {first.medium}{mark}", style="bold")
    parameters = Table(box=None)
    for name in ("parameter", "value", "interval (95 %)"):
        parameters.add_column(name, no_wrap=True)
    parameters.add_column("from")
    for estimate in fitted.estimates:
        parameters.add_row(estimate.key, *shown(estimate), estimate.origin)
    console.print(parameters)
    energies = Table("phase", "time", f"measured{mark}", "twin", "twin / measured", box=None)
    for phase in fitted.balances():
        energies.add_row(*phase.words)
    console.print(energies)
    console.print(fitted.verdict())
    for line in missing_runs(fitted):
        console.print(f"  to know  {line}")
    console.print(f"profile  {path}")
    console.print(f"page     {page}")
    console.print(
        f"use it   host/measure.py --db leveldb --device {first.board} --storage {first.medium} --simulate {path}"
    )


def runs_to_make(device: str, medium: str, simulate: str) -> list[tuple[str, str]]:
    """(command line, what it determines) of each run that the fit needs; `simulate` is "--simulate" or empty."""
    rig = f"--device {device} --storage {medium}{f' {simulate}' if simulate else ''}"
    name = f"twin-{device}-{medium}"
    return [
        (
            f"host/measure.py command {rig} --repeats 1 --idle 20 --signature --out runs/{name}-exercise "
            f"--file {EXERCISE} -- sh {{files}}/{EXERCISE.name} {{storage}}",
            "idle, power by busy cores, the medium's rates and powers, its tail, the supply",
        ),
        (
            f"host/measure.py --db leveldb {rig} --workload a -p durability=sync --operations 2000 --records 2000 "
            f"--repeats 1 --idle 20 --no-harness --out runs/{name}-sync",
            "how long a flush of the medium's cache takes",
        ),
        (
            f"host/measure.py twin --fit runs/{name}-exercise runs/{name}-sync",
            "fits both together; you may add further records",
        ),
    ]


def _print_runs(options: TwinOptions) -> None:
    profile = find_profile(options.device)
    medium = profile.with_medium(options.storage).medium
    profile_words = f" {shlex.quote(str(options.twin_profile))}" if options.twin_profile else ""
    simulate = f"--simulate{profile_words}" if options.simulate else ""
    print(f"Runs that determine the twin of {profile.title} with {medium}, in this order:")
    for command, tells in runs_to_make(profile.name, medium, simulate):
        print(f"\n  # {tells}\n  {command}")
