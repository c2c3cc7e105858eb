"""A twin profile as TOML, for --simulate, with each parameter's interval and origin."""

import datetime
import json
from dataclasses import fields
from pathlib import Path
from typing import Final

import opjoule
from opjoule.base.files import write_whole
from opjoule.bench.simulation.fitting.estimate import Estimate
from opjoule.bench.simulation.fitting.fit import FittedTwin
from opjoule.bench.simulation.power_model import MediumModel

VERSION: Final = 1
_MEDIUM: Final = tuple(field.name for field in fields(MediumModel) if field.name != "spread")


def write_profile(path: Path, fitted: FittedTwin) -> None:
    """Writes the profile atomically."""
    first = fitted.records[0]
    made = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    source = "SIMULATED records" if fitted.simulated else "measured records"
    watts = [fitted[f"board.busy_cores_w.{at}"] for at in range(len(fitted.board.busy_cores_w))]
    lines = [
        f"# Twin profile of {first.board} with {first.medium}, from {source}. A parameter says whether it was found",
        "# (value and half of its 95 % interval) or assumed. Use: host/measure.py ... --simulate THIS_FILE",
        "",
        "[profile]",
        f"version = {VERSION}",
        f"fitted_utc = {json.dumps(made)}",
        f"opjoule = {json.dumps(opjoule.__version__)}",
        f"records = {json.dumps([one.name for one in fitted.records])}",
        f"simulated_records = {str(fitted.simulated).lower()}",
        "",
        *_supply(fitted),
        f"[board.{first.board}]",
        *(f"# {at} busy: {_words(estimate)}" for at, estimate in enumerate(watts)),
        f"busy_cores_w = [{', '.join(_number(estimate) for estimate in watts)}]",
        f"memory_bytes = {fitted.board.memory_bytes}",
        "",
        f"[medium.{first.medium}]",
        *(_line(name, fitted[f"medium.{name}"]) for name in _MEDIUM),
    ]
    write_whole(path, ("\n".join(lines) + "\n").encode())


def _supply(fitted: FittedTwin) -> list[str]:
    """The supply's table if the records determine it; otherwise each simulation draws a supply."""
    keys = "open_voltage_v", "resistance_ohm"
    estimates = [fitted[f"supply.{key}"] for key in keys]
    if not estimates[0].identified:
        return []
    return ["[supply]", *map(_line, keys, estimates), ""]


def _line(key: str, estimate: Estimate) -> str:
    return f"{key} = {_number(estimate)}  # {_words(estimate)}"


def _number(estimate: Estimate) -> str:
    return repr(float(f"{estimate.value:.6g}"))


def _words(estimate: Estimate) -> str:
    if estimate.u is None:
        return f"assumed; {estimate.origin}"
    return f"+- {estimate.u:.2g} {estimate.unit}; {estimate.origin}"
