"""Checks stamps, counts and energies while sensor, bus, host or controller fail. SIMULATED.

    .venv/bin/python host/validation/sensor_trials.py --records 200

Each record draws what the data sheet of the INA219 leaves open (the delay from a new mode to its first conversion, 0 to
500 us; whether the old conversion is finished first; when a register's value is taken; whether codes are cut or
rounded), the speed of both clocks, noise, a supply, a load, and an outage: none, a sensor that does not answer, a bus
that a device holds, a host that does not read, or a reset of the microcontroller. Exit code 1 if a stamp is off by more
than 20 us, a record without outages or with a host away does not count every lost conversion, a gap has another length
than the time without samples, a reset is not named, or too few intervals hold. `--results FILE` keeps each finished
record, so that a later call continues.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from granted_clock import HostAway
from opjoule.energy.error_bounds import ErrorBounds, Shunt
from opjoule.energy.window import EnergyResult
from opjoule.meters.chips import INA219, SensorSettings
from opjoule.meters.messages import Mode
from rig_session import NOMINAL_HZ, Recording, RunningRig, record

SECONDS = 4.0
EDGES_S = (0.5, 3.5)
"""Sync edges, the bounds of the window whose energy is compared."""
SETTLED = {"pairs": 100}
"""Number of conversions after the start or an outage before stamps are checked, by mode. Without bus readings there are
no rows of conversions to make even."""
STAMP_LIMIT_S = 20e-6
GAP_LIMIT_S = 300e-6
"""A gap ends half a period beside the samples around it, and the period's place is known to a part of it."""
HELD_LEAST = 0.93
LEVELS_A = (0.3, 1.4)
MOVES_SHARE = 0.5
"""Share of the records with a sensor away whose load changes with each outage, as one does that causes it."""
SETUP_S = 0.015
"""Time from the end of an outage to the first sample after it, roughly."""
OUTAGES = ("none", "sensor away", "bus held", "host away", "reset")
HELD_S = 1e-3
"""A time after which SDA is still held. How long it is held depends on the firmware, which clocks the bus free."""
TAIL_S = 0.1
"""Longest time before a reset whose samples may be lost with it, on their way to the host."""
MODES = {
    "pairs": SensorSettings(mode=Mode.PAIRS),
    "shunts": SensorSettings(mode=Mode.SHUNTS),
    "shunts, bus each 32": SensorSettings(mode=Mode.SHUNTS, bus_every=32),
    "shunts, 9-bit bus": SensorSettings(mode=Mode.SHUNTS, bus_adc=0),
}


@dataclass(frozen=True)
class Drawn:
    """What one record draws."""

    mode: str
    options: list[str]
    rows: list[tuple[float, float]]
    voltage_v: float
    source_ohm: float
    outage: str
    outages_s: list[tuple[float, float]]
    """start and length of each outage after which the record goes on"""
    edges_s: tuple[float, float] = EDGES_S
    away: HostAway | None = None

    @property
    def sensor(self) -> ErrorBounds:
        """What is not drawn has no error: gain, offset."""
        settings = MODES[self.mode]
        bounds = INA219.error_bounds(
            *(settings.shunt_range, INA219.times(settings).seen_fraction, Shunt(0.1, 0.0, "", 0.0, kelvin=True)),
            bus_adc=settings.bus_adc,
        )
        return replace(bounds, gain_errors_max={}, current_offset_max_a=0.0, clock_error_max=0.0)


@dataclass(frozen=True)
class Outcome:
    """What one record showed."""

    outage: str
    finishes: bool
    """whether the chip finishes a conversion before it changes its mode"""
    stamp_error_s: float
    unread: int
    """conversions that the meter did not read, or that did not reach a host that was away"""
    counted: int | None
    """conversions that the host says are lost; None if their own number is not known (the sensor was away), or has no
    end (a reset)"""
    gap_error_s: float
    """largest difference between a stated gap and the time in which no conversion was read; 0 without outages"""
    deviation: float
    """measured less true energy, in stated expanded uncertainties; infinite if no interval is stated"""
    loss_share: float
    """part of the stated variance that comes from gaps"""
    named: bool = True
    """whether the record names a reset, and ends at it"""

    def beyond(self) -> list[str]:
        """What exceeds a limit."""
        found = []
        if self.stamp_error_s > STAMP_LIMIT_S:
            found.append(f"stamp off by {self.stamp_error_s * 1e6:.1f} us")
        if self.counted is not None and self.unread != self.counted:
            found.append(f"{self.unread} unread, {self.counted} counted")
        if self.gap_error_s > GAP_LIMIT_S:
            found.append(f"gap off by {self.gap_error_s * 1e6:.0f} us")
        if not self.named:
            found.append("reset not seen, or samples before it lost")
        return found


def drawn(seed: int) -> Drawn:
    """What the record of a seed draws."""
    chance = random.Random(seed)
    options = [
        *("--start-delay-us", f"{chance.uniform(0, 500):.1f}"),
        *("--mode-change", chance.choice(["aborts", "finishes"])),
        *("--latch-early-us", f"{chance.uniform(0, 5):.1f}"),
        *("--sensor-clock-error-ppm", f"{chance.uniform(-9e4, 9e4):.0f}"),
        *("--clock-error-ppm", f"{chance.uniform(-5e3, 5e3):.0f}"),
        *("--quantisation", chance.choice(["round", "truncate"])),
        *("--noise-uv", f"{chance.uniform(0, 20):.1f}"),
        *("--seed", str(seed)),
    ]
    one = Drawn(
        mode=chance.choice(list(MODES)),
        options=options,
        rows=_load(chance),
        voltage_v=chance.uniform(5.0, 5.2),
        source_ohm=chance.choice([0.0, chance.uniform(0.0, 0.3)]),
        outage=chance.choice(OUTAGES),
        outages_s=[],
    )
    return _with_outage(one, chance)


def _with_outage(one: Drawn, chance: random.Random) -> Drawn:
    """The record with its outage, placed and measured out by chance."""
    if one.outage == "sensor away":
        for place in range(chance.randint(1, 3)):
            length_s = math.exp(chance.uniform(math.log(0.002), math.log(0.08)))
            one.outages_s.append((0.6 + place + chance.uniform(0, 0.7), length_s))
            one.options.extend(["--sensor-away", "{:.6f},{:.6f}".format(*one.outages_s[-1])])
        if chance.random() < MOVES_SHARE:
            return replace(one, rows=_moving(one, chance))
    if one.outage == "bus held":
        one.outages_s.append((chance.uniform(0.6, 3.3), HELD_S))
        one.options.extend(["--hold-sda", f"{one.outages_s[0][0]:.6f},{chance.randint(1, 40)}"])
    if one.outage == "host away":
        return replace(
            one, away=HostAway(chance.uniform(0.6, 2.2), chance.uniform(0.1, 1.0), chance.randint(500, 4000))
        )
    if one.outage == "reset":
        reset_s = chance.uniform(1.5, 3.5)
        one.options.extend(["--reset-at", f"{reset_s:.6f}"])
        return replace(one, edges_s=(EDGES_S[0], reset_s - chance.uniform(2 * TAIL_S, 0.5)))
    return one


def _load(chance: random.Random) -> list[tuple[float, float]]:
    """Steps of a drawn pace."""
    pace_s = math.exp(chance.uniform(math.log(2e-3), math.log(0.3)))
    rows, at_s = [], 0.0
    while at_s < SECONDS:
        rows.append((at_s, chance.uniform(*LEVELS_A)))
        at_s += chance.uniform(0.2, 1.8) * pace_s
    return rows


def _moving(one: Drawn, chance: random.Random) -> list[tuple[float, float]]:
    """The load with a level of its own from each outage's start until its samples are back."""
    rows = one.rows
    for at_s, length_s in one.outages_s:
        end_s = at_s + length_s + SETUP_S
        kept = [row for row in rows if not at_s <= row[0] <= end_s]
        rows = sorted([*kept, (at_s, chance.uniform(*LEVELS_A)), (end_s, chance.uniform(*LEVELS_A))])
    return rows


def run(one: Drawn) -> Outcome:
    """Records what was drawn and compares it with the simulator's truth."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "conversions.csv"
        rig = record(
            Path(folder), one.rows, list(one.edges_s), *one.options, "--conversions", str(log),
            voltage_v=one.voltage_v, source_ohm=one.source_ohm, end_s=SECONDS, settings=MODES[one.mode],
            away=one.away, end=RunningRig.cut_short if one.outage == "reset" else RunningRig.played,
        )  # fmt: skip
        bounds_s = np.loadtxt(log, delimiter=",", skiprows=1)
    energy, deviation = _energy(rig, one)
    return Outcome(
        outage=one.outage,
        finishes="finishes" in one.options,
        stamp_error_s=_stamp_error_s(rig, one, bounds_s),
        unread=_unread(rig, one, bounds_s),
        counted=rig.summary.losses.lost_samples if one.outage in ("none", "host away") else None,
        gap_error_s=_gap_error_s(rig, one, bounds_s),
        deviation=deviation,
        loss_share=(energy.budget.parts["loss"] / energy.budget.standard_u) ** 2 if math.isfinite(deviation) else 0.0,
        named=one.outage != "reset" or _ends_at_reset(rig, one),
    )


def _unread(rig: Recording, one: Drawn, bounds_s: np.ndarray) -> int:
    """Conversions that the meter did not read, or that are not in the record of a host that was away."""
    missed = rig.truth["sensor"]["shunt"]["missed"]
    if one.outage != "host away":
        return missed
    ends_s = _profile_s(rig, rig.trace.meter_ns[rig.trace.good][[0, -1]])
    first, last = (int(np.argmin(np.abs(bounds_s.mean(axis=1) - end_s))) for end_s in ends_s)
    return last - first + 1 - int(np.count_nonzero(rig.trace.good))


def _ends_at_reset(rig: Recording, one: Drawn) -> bool:
    """Whether the record names the reset, and lost at most the samples on their way."""
    reset_s = float(one.options[one.options.index("--reset-at") + 1])
    last_s = float(_profile_s(rig, rig.trace.meter_ns[rig.trace.good][-1:])[0]) - rig.truth["mcu"]["profile_start_s"]
    return "brown" in (rig.summary.ended or "") and reset_s - TAIL_S < last_s < reset_s


def _profile_s(rig: Recording, meter_ns: np.ndarray) -> np.ndarray:
    """Times in the simulator's time of stamps of the meter."""
    rate = rig.truth["mcu"]["clock_hz"] / NOMINAL_HZ
    edges_s = rig.edges_s + rig.truth["mcu"]["profile_start_s"]
    return meter_ns * 1e-9 / rate + np.median(edges_s - rig.edges_ns * 1e-9 / rate)


def _stamp_error_s(rig: Recording, one: Drawn, bounds_s: np.ndarray) -> float:
    """Largest distance of a sample's stamp from the centre of a conversion."""
    good_s = _profile_s(rig, rig.trace.meter_ns[rig.trace.good])
    centres_s = bounds_s.mean(axis=1)
    place = np.clip(np.searchsorted(centres_s, good_s), 1, centres_s.size - 1)
    error_s = np.minimum(np.abs(good_s - centres_s[place - 1]), np.abs(good_s - centres_s[place]))
    unsettled = SETTLED.get(one.mode, 0)
    settled = np.arange(good_s.size) >= unsettled
    for at_s, _ in one.outages_s:
        first = int(np.searchsorted(good_s, at_s + rig.truth["mcu"]["profile_start_s"]))
        settled[first : first + unsettled] = False
    return float(error_s[settled].max())


def _gap_error_s(rig: Recording, one: Drawn, bounds_s: np.ndarray) -> float:
    """Largest difference between the stated gaps around an outage and the time that the samples leave out."""
    good_ns, period_s = rig.trace.meter_ns[rig.trace.good], float(np.median(np.diff(bounds_s, axis=1)))
    if one.mode == "pairs":
        period_s = float(np.median(np.diff(bounds_s[:, 0])))
    rate = rig.truth["mcu"]["clock_hz"] / NOMINAL_HZ
    worst_s = 0.0
    reads = np.searchsorted(good_ns, rig.trace.bus.meter_ns) if rig.trace.bus else np.zeros(0, np.intp)
    reads = reads[(reads > 0) & (reads < good_ns.size)]
    for at_s, length_s in one.outages_s:
        middle_s = at_s + length_s / 2 + rig.truth["mcu"]["profile_start_s"]
        after = int(np.searchsorted(_profile_s(rig, good_ns), middle_s))
        true_s = float(good_ns[after] - good_ns[after - 1]) * 1e-9 / rate - period_s
        inside = [
            gap.duration_ns for gap in rig.trace.gaps
            if good_ns[after - 1] < gap.start_meter_ns and gap.end_meter_ns < good_ns[after]
        ]  # fmt: skip
        if not inside and after in reads:
            # The bus was held during a bus reading, which took no longer than usual.
            true_s -= float(np.median(good_ns[reads] - good_ns[reads - 1])) * 1e-9 / rate - period_s
        worst_s = max(worst_s, abs(true_s - sum(inside) * 1e-9 / rate))
    return worst_s


def _energy(rig: Recording, one: Drawn) -> tuple[EnergyResult, float]:
    """The window's energy, and its error in stated expanded uncertainties; infinite if no interval is stated."""
    ((result, true_j),) = rig.interval_energies(one.sensor)
    if result.energy.u is None:
        print(f"no interval: {result.energy.reason}", flush=True)
        return result, math.inf
    rate = rig.truth["mcu"]["clock_hz"] / NOMINAL_HZ
    return result, (result.energy.value / rate - true_j) / (result.energy.u / rate)


def main() -> int:
    """Prints a row for each record beyond a limit, and the counts; exit status 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--results", type=Path, help="file of finished records, one a line; they are not run again")
    options = parser.parse_args()
    finished = _finished(options.results)
    found: dict[int, tuple[Drawn, Outcome]] = {}
    for seed in range(options.first_seed, options.first_seed + options.records):
        one = drawn(seed)
        found[seed] = one, finished.get(seed) or run(one)
        if options.results and seed not in finished:
            with options.results.open("a") as file:
                file.write(json.dumps({"seed": seed, **asdict(found[seed][1])}) + "\n")
        if beyond := found[seed][1].beyond():
            print(f"seed {seed}, {one.mode}, {' '.join(one.options)}: {'; '.join(beyond)}", flush=True)
    return 0 if _summary(list(found.values())) else 1


def _finished(results: Path | None) -> dict[int, Outcome]:
    """Outcomes by seed that an earlier call wrote."""
    if results is None or not results.exists():
        return {}
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    return {line.pop("seed"): Outcome(**line) for line in lines}


def _summary(found: list[tuple[Drawn, Outcome]]) -> bool:
    """Prints the counts; True if the limits are kept."""
    outcomes = [outcome for _, outcome in found]
    print(f"SIMULATED, {len(found)} records of {SECONDS:g} s")
    print(
        "| outage | old conversion | stamps within 20 us | off by at most | gap off by at most "
        "| unread | counted | intervals hold |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for outage, finishes in itertools.product(OUTAGES, (False, True)):
        some = [outcome for outcome in outcomes if outcome.outage == outage and outcome.finishes is finishes]
        if not some:
            continue
        counted = [outcome.counted for outcome in some if outcome.counted is not None]
        print(
            f"| {outage} | {'finished' if finishes else 'given up'} "
            f"| {sum(o.stamp_error_s <= STAMP_LIMIT_S for o in some)} of {len(some)} "
            f"| {max(o.stamp_error_s for o in some) * 1e6:.1f} us | {max(o.gap_error_s for o in some) * 1e6:.0f} us "
            f"| {sum(o.unread for o in some) if counted else '-'} | {sum(counted) if counted else '-'} "
            f"| {sum(abs(o.deviation) <= 1 for o in some)} |"
        )
    for name, some in (
        ("at most", [o for o in outcomes if o.loss_share <= 0.5]),
        ("more than", [o for o in outcomes if o.loss_share > 0.5]),
    ):
        holds = sum(abs(o.deviation) <= 1 for o in some)
        print(f"gaps give {name} half of the variance: intervals hold in {holds} of {len(some)}")
    holds = sum(abs(outcome.deviation) <= 1 for outcome in outcomes) / len(outcomes)
    print(f"intervals hold in {holds:.1%}")
    return not any(outcome.beyond() for outcome in outcomes) and holds >= HELD_LEAST


if __name__ == "__main__":
    sys.exit(main())
