"""Tests how well load signatures align board and meter: host/validation/signature_alignment.py [--trials 200].

SIMULATED boards and meters (synthetic_board.py): random offset, up to +-100 ppm of drift, 0.5 to 3.5 W between busy and
idle, noise, wake-ups, late edges, a lagging supply, and 5 to 15 s of random work between the patterns. Each trial also
looks for a pattern that was never played; finding it would be a wrong lock. Exit code 1 if a limit is exceeded.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from opjoule.base.errors import AlignmentError
from opjoule.clocks.signature import LoadPattern, fit_signature, signature_chips
from synthetic_board import CHIP_NS, INA219, MONSOON, Meter, random_run, watch

LIMITS_US = {INA219.name: 200.0, MONSOON.name: 60.0}
SHARE_MIN = 0.95
WRONG_LOCK_US = 1e-3 * CHIP_NS / 2


@dataclass(frozen=True)
class Trial:
    """Outcome of one trial."""

    error_us: float
    """Greatest error of the map between the start of the first pattern and the end of the last; inf if refused."""
    covered: bool
    """True if every error lies within k = 2 times the stated uncertainty."""
    wrong_locks: int


def trial(seed: int, meter: Meter) -> Trial:
    """Aligns one random run, and looks for a pattern that was not played."""
    rng = np.random.default_rng(seed)
    run = random_run(rng, rng.uniform(5, 15))
    meter_ns, power_w, truth = watch(rng, run, meter, rng.uniform(-100, 100))
    wrong_locks = 0
    never = LoadPattern.of_chips(signature_chips(2 + seed % 200), CHIP_NS, run.start_ns)
    try:
        fit_signature(meter_ns, power_w, [never], meter.conversion_ns)
        wrong_locks += 1
    except AlignmentError:
        pass
    try:
        fitted = fit_signature(meter_ns, power_w, run.patterns, meter.conversion_ns).clock_map
    except AlignmentError:
        return Trial(np.inf, False, wrong_locks)
    times_ns = np.linspace(run.patterns[0].start_ns, run.patterns[1].change_ns[-1], 5).astype(np.int64).tolist()
    errors_us = [abs(fitted.to_target(time) - truth.to_target(time)) * 1e-3 for time in times_ns]
    covered = all(error <= 2e-3 * fitted.u_ns(time) for error, time in zip(errors_us, times_ns, strict=True))
    return Trial(max(errors_us), covered, wrong_locks + int(max(errors_us) > WRONG_LOCK_US))


def validate(meter: Meter, trials: int, first_seed: int) -> bool:
    """Runs the trials of one meter and prints a line; True if the limits are kept."""
    fits = [trial(first_seed + number, meter) for number in range(trials)]
    errors_us = np.array([one.error_us for one in fits])
    refused = int(np.isinf(errors_us).sum())
    within = float(np.mean(errors_us <= LIMITS_US[meter.name]))
    wrong = sum(one.wrong_locks for one in fits)
    seen_us = errors_us[np.isfinite(errors_us)]
    print(
        f"SIMULATED {meter.name}: {trials} trials, {100 * within:.1f} % within {LIMITS_US[meter.name]:g} us, "
        f"median {np.median(seen_us):.1f} us, 95 % {np.quantile(seen_us, 0.95):.1f} us, "
        f"greatest {seen_us.max():.1f} us, "
        f"{100 * np.mean([one.covered for one in fits]):.1f} % inside the stated interval, "
        f"{refused} refused, {wrong} wrong locks"
    )
    return within >= SHARE_MIN and wrong == 0


def main() -> int:
    """Validates both meters; exit status 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first trial")
    options = parser.parse_args()
    held = [validate(meter, options.trials, options.seed) for meter in (INA219, MONSOON)]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
