"""Checks stamps, counts and energies while the sensor drops out and begins its conversions late. SIMULATED.

    .venv/bin/python host/validation/sensor_trials.py --records 200

Each record draws what the data sheet of the INA219 leaves open (the delay from a new mode to its first conversion, 0 to
500 us; whether the old conversion is finished first; when a register's value is taken), the speed of both clocks, a
load, and in most records outages: a sensor that does not answer, or a bus that a device holds. Exit code 1 if a stamp
is off by more than 20 us, a record without outages does not count every unread conversion, a gap has another length
than the time without samples, or too few intervals hold. Stamps count from the hundredth conversion on, after a start
or an outage. `--results FILE` keeps each finished record, so that a later call continues.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from opjoule.meters.chip import SensorSettings
from opjoule.meters.messages import Mode
from rig_session import NOMINAL_HZ, PERFECT_SENSOR, Recording, record

SECONDS = 4.0
EDGES_S = [0.5, 3.5]
"""Sync edges, the bounds of the window whose energy is compared."""
SETTLED = 100
"""Number of conversions after the start or an outage before stamps are checked."""
STAMP_LIMIT_S = 20e-6
GAP_LIMIT_S = 300e-6
"""A gap ends half a period beside the samples around it, and the period's place is known to a part of it."""
HELD_LEAST = 0.93
HELD_SHARE = 0.4
"""Share of the records without other outages in which a device holds SDA low once, until it has seen 1 to 40 clocks."""
HELD_S = 1e-3
"""A time after which SDA is still held. How long it is held depends on the firmware, which clocks the bus free."""
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
    outages_s: list[tuple[float, float]]
    """start and length of each outage"""
    rows: list[tuple[float, float]]


@dataclass(frozen=True)
class Outcome:
    """What one record showed."""

    finishes: bool
    """whether the chip finishes a conversion before it changes its mode"""
    stamp_error_s: float
    unread: int
    counted: int | None
    """conversions that the host says are lost; None with outages, whose own number the simulator does not tell"""
    gap_error_s: float
    """largest difference between a stated gap and the time in which no conversion was read; 0 without outages"""
    deviation: float
    """measured less true energy, in stated expanded uncertainties"""

    def beyond(self) -> list[str]:
        """What exceeds a limit."""
        found = []
        if self.stamp_error_s > STAMP_LIMIT_S:
            found.append(f"stamp off by {self.stamp_error_s * 1e6:.1f} us")
        if self.counted is not None and self.unread != self.counted:
            found.append(f"{self.unread} unread, {self.counted} counted")
        if self.gap_error_s > GAP_LIMIT_S:
            found.append(f"gap off by {self.gap_error_s * 1e6:.0f} us")
        return found


def drawn(seed: int) -> Drawn:
    """What the record of a seed draws."""
    chance = random.Random(seed)
    mode = chance.choice(list(MODES))
    options = [
        *("--start-delay-us", f"{chance.uniform(0, 500):.1f}"),
        *("--mode-change", chance.choice(["aborts", "finishes"])),
        *("--latch-early-us", f"{chance.uniform(0, 5):.1f}"),
        *("--sensor-clock-error-ppm", f"{chance.uniform(-9e4, 9e4):.0f}"),
        *("--clock-error-ppm", f"{chance.uniform(-5e3, 5e3):.0f}"),
        *("--seed", str(seed)),
    ]
    outages_s = []
    if chance.random() < 0.5:
        for place in range(chance.randint(1, 3)):
            length_s = math.exp(chance.uniform(math.log(0.002), math.log(0.08)))
            outages_s.append((0.6 + place + chance.uniform(0, 0.7), length_s))
    for at_s, length_s in outages_s:
        options += ["--sensor-away", f"{at_s:.6f},{length_s:.6f}"]
    rows = _load(chance)
    if not outages_s and chance.random() < HELD_SHARE:
        at_s, clocks = chance.uniform(0.6, 3.3), chance.randint(1, 40)
        options += ["--hold-sda", f"{at_s:.6f},{clocks}"]
        outages_s.append((at_s, HELD_S))
    return Drawn(mode, options, outages_s, rows)


def _load(chance: random.Random) -> list[tuple[float, float]]:
    """Steps of a drawn pace between 0.3 and 1.4 A."""
    pace_s = math.exp(chance.uniform(math.log(2e-3), math.log(0.3)))
    rows, at_s = [], 0.0
    while at_s < SECONDS:
        rows.append((at_s, chance.uniform(0.3, 1.4)))
        at_s += chance.uniform(0.2, 1.8) * pace_s
    return rows


def run(one: Drawn) -> Outcome:
    """Records what was drawn and compares it with the simulator's truth."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "conversions.csv"
        rig = record(
            Path(folder), one.rows, EDGES_S, *one.options, "--conversions", str(log),
            end_s=SECONDS, settings=MODES[one.mode],
        )  # fmt: skip
        bounds_s = np.loadtxt(log, delimiter=",", skiprows=1)
    shunt = rig.truth["sensor"]["shunt"]
    return Outcome(
        finishes="finishes" in one.options,
        stamp_error_s=_stamp_error_s(rig, one, bounds_s),
        unread=shunt["missed"],
        counted=None if one.outages_s else rig.summary.losses.lost_samples,
        gap_error_s=_gap_error_s(rig, one, bounds_s),
        deviation=_deviation(rig),
    )


def _profile_s(rig: Recording, meter_ns: np.ndarray) -> np.ndarray:
    """Times in the simulator's time of stamps of the meter."""
    rate = rig.truth["mcu"]["clock_hz"] / NOMINAL_HZ
    edges_s = rig.edges_s + rig.truth["mcu"]["profile_start_s"]
    return meter_ns * 1e-9 / rate + np.median(edges_s - rig.edges_ns * 1e-9 / rate)


def _stamp_error_s(rig: Recording, one: Drawn, bounds_s: np.ndarray) -> float:
    """Largest distance of a settled sample's stamp from the centre of a conversion."""
    good_s = _profile_s(rig, rig.trace.meter_ns[rig.trace.good])
    centres_s = bounds_s.mean(axis=1)
    place = np.clip(np.searchsorted(centres_s, good_s), 1, centres_s.size - 1)
    error_s = np.minimum(np.abs(good_s - centres_s[place - 1]), np.abs(good_s - centres_s[place]))
    settled = np.arange(good_s.size) >= SETTLED
    for at_s, _ in one.outages_s:
        first = int(np.searchsorted(good_s, at_s + rig.truth["mcu"]["profile_start_s"]))
        settled[first : first + SETTLED] = False
    return float(error_s[settled].max())


def _gap_error_s(rig: Recording, one: Drawn, bounds_s: np.ndarray) -> float:
    """Largest difference between the stated gaps around an outage and the time that the samples leave out."""
    good_ns, period_s = rig.trace.meter_ns[rig.trace.good], float(np.median(np.diff(bounds_s, axis=1)))
    if one.mode == "pairs":
        period_s = float(np.median(np.diff(bounds_s[:, 0])))
    rate = rig.truth["mcu"]["clock_hz"] / NOMINAL_HZ
    worst_s = 0.0
    for at_s, length_s in one.outages_s:
        middle_s = at_s + length_s / 2 + rig.truth["mcu"]["profile_start_s"]
        after = int(np.searchsorted(_profile_s(rig, good_ns), middle_s))
        true_s = float(good_ns[after] - good_ns[after - 1]) * 1e-9 / rate - period_s
        inside = [
            gap.duration_ns for gap in rig.trace.gaps
            if good_ns[after - 1] < gap.start_meter_ns and gap.end_meter_ns < good_ns[after]
        ]  # fmt: skip
        worst_s = max(worst_s, abs(true_s - sum(inside) * 1e-9 / rate))
    return worst_s


def _deviation(rig: Recording) -> float:
    """Error of the window's energy, in stated expanded uncertainties."""
    ((result, true_j),) = rig.interval_energies(PERFECT_SENSOR)
    rate = rig.truth["mcu"]["clock_hz"] / NOMINAL_HZ
    return (result.energy.value / rate - true_j) / (result.energy.u / rate)


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
    print("| old conversion | stamp off by at most | gap off by at most | unread | counted | intervals hold |")
    print("|---|---|---|---|---|---|")
    kinds = itertools.product((False, True), (False, True))
    for finishes, outages in kinds:
        some = [out for one, out in found if bool(one.outages_s) is outages and out.finishes is finishes]
        if not some:
            continue
        name = f"{'finished' if finishes else 'given up'}, {'with' if outages else 'no'} outages"
        holds = sum(abs(outcome.deviation) <= 1 for outcome in some)
        print(
            f"| {len(some)} {name} | {max(o.stamp_error_s for o in some) * 1e6:.1f} us "
            f"| {max(o.gap_error_s for o in some) * 1e6:.0f} us | {sum(o.unread for o in some)} "
            f"| {'-' if outages else sum(o.counted or 0 for o in some)} | {holds} of {len(some)} |"
        )
    holds = sum(abs(outcome.deviation) <= 1 for outcome in outcomes) / len(outcomes)
    print(f"intervals hold in {holds:.1%}")
    return not any(outcome.beyond() for outcome in outcomes) and holds >= HELD_LEAST


if __name__ == "__main__":
    sys.exit(main())
