"""The table of quantities: every number of result.json with its unit, words, formula and places.

This module has the quantities of every measurement; a study adds its own (operations.py). A new quantity
needs only a new row with its formula. The rows generate result.json and its check, the terminal's output, the report,
the tables of docs/reference/run-record.md (host/quantities_page.py) and the tests' expectations.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from opjoule.base.units import Cause, Quantity, exact, missing, unstated
from opjoule.energy.baseline import MarginalEnergy
from opjoule.energy.budget import PARTS
from opjoule.energy.window import seen
from opjoule.runs.evaluation.quantities.definition import LAST, Definition, Repeat, Topic, total
from opjoule.runs.record.result import ABOVE_IDLE, ENERGY


def above_idle(name: str, repeat: Repeat) -> Quantity:
    """One of the energies above idle [J], by its name in RepeatEnergy."""
    known: MarginalEnergy | None = getattr(repeat.energy, name)
    return known.energy if known else missing(Cause.NO_IDLE if repeat.energy.idle is None else Cause.NO_SETTLE, "J")


def idle_power(repeat: Repeat) -> Quantity:
    """Mean power of the idle phases [W]."""
    idle = repeat.energy.idle
    return idle.power if idle else missing(Cause.NO_IDLE, "W")


def seconds(repeat: Repeat, length_s: float | None) -> Quantity:
    """A duration by the board's clock [s]."""
    if length_s is None:
        return missing("no settle phase", "s")
    return Quantity.from_standard(length_s, repeat.clock_u * length_s, "s")


def counter(repeat: Repeat, name: str, unit: str) -> Quantity:
    """Use of processor, medium or memory, from the system samples."""
    samples = repeat.samples
    if isinstance(samples, Quantity):
        return samples.absent(unit)
    if name == "cpu":
        value = samples.grown("cpu_busy_s", settle=False) / (samples.span_s * samples.cores)
    elif name == "memory":
        value = samples.peak("rss_bytes")
        if value == 0:
            return missing("no sample saw the memory of the work's processes", unit)
    else:
        moved = ("read", "written") if name == "moved" else (name,)
        value = sum(samples.grown(f"device_{direction}_bytes", settle=True) for direction in moved)
    return unstated(value, unit, "counter of the board")


def mean_share(repeats: Sequence[Quantity]) -> Quantity:
    """Mean of a counted share; the spread between repeats is not an uncertainty."""
    return unstated(fmean(map(float, repeats)), "1", repeats[0].reason)


def budget_parts(budget: str, meaning: str, *rests_on: str, required: bool = False) -> tuple[Definition, ...]:
    """Parts of an uncertainty budget."""
    return tuple(
        Definition(f"{budget}.{part}", "J", Topic.PART, meaning=meaning, rests_on=rests_on, required=required)
        for part in PARTS
    )


ENERGY_ABOVE_IDLE: Final = (ENERGY, ABOVE_IDLE)

COMMON: Final = (
    Definition(
        "marginal_energy_j", "J", Topic.ENERGY, "energy above idle",
        "energy_j less idle power times the run's duration",
        lambda repeat: above_idle("marginal", repeat), rests_on=ENERGY_ABOVE_IDLE, of_sensors=True,
        line=("above idle", "energy less idle power times the run's time"), budget="marginal_budget",
    ),
    Definition(
        "energy_j", "J", Topic.ENERGY, "energy", "the run's window, and what settle drew above idle",
        lambda repeat: above_idle("energy", repeat), rests_on=ENERGY_ABOVE_IDLE, of_sensors=True,
        tile="energy in all", line=("energy", "run, and settle above idle"), budget="budget",
        traced="energy", rank={"traced": LAST},
    ),
    Definition(
        "run_energy_j", "J", Topic.ENERGY, "… of the run alone",
        "supply voltage times current, from the first operation to the last",
        lambda repeat: repeat.energy.run.energy, rests_on=(ENERGY,), of_sensors=True,
        tile="of the run alone", line=("run alone", "{duration_s}, idle power included"),
    ),
    Definition(
        "write_back_energy_j", "J", Topic.ENERGY, "… after the last operation",
        "what settle and the medium's tail drew above idle, until writes were done and the power was at rest",
        lambda repeat: above_idle("write_back", repeat), rests_on=ENERGY_ABOVE_IDLE, of_sensors=True,
        headline="in total above idle after the last operation", column="after the last operation",
        line=("settle", "above idle, {settle_s} from the last operation to rest"),
    ),
    Definition(
        "power_w", "W", Topic.POWER, "power", "mean of the run",
        lambda repeat: repeat.energy.run.power, rests_on=(ENERGY,), of_sensors=True,
        tile="power of the run", column="power", line=("power", "mean of the run; idle {idle_power_w}"),
        traced="mean power", compared=True,
    ),
    Definition(
        "voltage_v", "V", Topic.POWER, "voltage", "mean of the supply's voltage, of a trace on its own",
        required=False, traced="mean voltage",
    ),
    Definition(
        "idle_power_w", "W", Topic.POWER, "idle power", "mean before and after, in the same state",
        idle_power, rests_on=ENERGY_ABOVE_IDLE, of_sensors=True, tile="idle power", column="idle power",
    ),
    Definition(
        "duration_s", "s", Topic.TIME, "run", "from the first operation to the last",
        lambda repeat: seconds(repeat, repeat.run_s),
        column="run", traced="time", rank={"column": LAST, "traced": LAST},
    ),
    Definition(
        "settle_s", "s", Topic.TIME, "settle",
        "from the last operation until writes were done and the power was at rest for 5 s",
        lambda repeat: seconds(repeat, repeat.settle_s), column="settle", rank={"column": LAST},
    ),
    Definition(
        "cpu_fraction", "1", Topic.USAGE, "CPU", "share of all cores that was busy during the run",
        lambda repeat: counter(repeat, "cpu", "1"), line=("CPU", "of all cores; peak memory {peak_memory_bytes}"),
    ),
    Definition(
        "disk_read_bytes", "B", Topic.USAGE, "disk read", "from the medium, in run and settle",
        lambda repeat: counter(repeat, "read", "B"), compared=True,
    ),
    Definition(
        "disk_written_bytes", "B", Topic.USAGE, "disk written", "to the medium, in run and settle",
        lambda repeat: counter(repeat, "written", "B"), compared=True,
        line=("disk", "written, {disk_read_bytes} read"),
    ),
    Definition(
        "disk_bytes", "B", Topic.USAGE, "disk read and written", "the sum of both",
        lambda repeat: counter(repeat, "moved", "B"), required=False,
    ),
    Definition(
        "peak_memory_bytes", "B", Topic.USAGE, "peak memory", "of the loader with the engine inside",
        lambda repeat: counter(repeat, "memory", "B"),
    ),
    Definition(
        "alignment.residual_s", "s", Topic.CHECK, "alignment",
        "standard deviation of the clock evidence around the fitted map", line=("alignment", ""),
    ),
    Definition(
        "repeats", "1", Topic.CHECK, "repeats", "whole cycles; the numbers above are their mean",
        required=False,
    ),
    Definition(
        "seen_share", "1", Topic.CHECK, "seen", "part of the run in which the meter converted the current",
        lambda repeat: seen([repeat.energy.run]), mean_share, required=False,
    ),
    Definition(
        "lost_samples", "1", Topic.CHECK, "lost samples", "conversions that were made and did not arrive",
        lambda repeat: exact(float(repeat.energy.whole.lost_samples), "1"), total, of_sensors=True,
        line=("lost samples", ""),
    ),
    *budget_parts(
        "budget", "what each source adds to the uncertainty of energy_j, with its `share` of the variance",
        *ENERGY_ABOVE_IDLE, required=True,
    ),
    *budget_parts("marginal_budget", "the same for marginal_energy_j", *ENERGY_ABOVE_IDLE),
)  # fmt: skip
"""Quantities of every measurement, for any kind of work."""

SENSORS: Final = tuple(
    Definition(
        f"by_sensor.*.{definition.key}", definition.unit, Topic.SENSOR, rests_on=(ENERGY,), required=False,
        meaning="seen by a further sensor, by its number from 1",
    )
    for definition in COMMON
    if definition.of_sensors
)  # fmt: skip
"""Quantities of additional sensors (`sensors=0+1`)."""
