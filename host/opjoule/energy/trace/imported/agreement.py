"""Whether power, voltage and current of a file belong to each other."""

from __future__ import annotations

from typing import Final

import numpy as np

from opjoule.energy.trace.imported.cell_values import Numbers

AGREE: Final = 0.03
"""Largest difference of the mean power, relative, that is not rounding: readings of one sample at different moments."""


def disagreement_w(power: Numbers, voltage: Numbers, current: Numbers) -> tuple[float, float] | None:
    """(mean power, mean of voltage times current) [W] if they differ by more than rounding; None if they agree."""
    product_w = voltage.values * current.values
    known = ~(np.isnan(power.values) | np.isnan(product_w))
    if not known.any():
        return None
    stated_w, made_w = float(np.mean(power.values[known])), float(np.mean(product_w[known]))
    amperes, volts = (float(np.mean(np.abs(column.values[known]))) for column in (current, voltage))
    rounding_w = power.step + amperes * voltage.step + volts * current.step
    size_w = float(np.mean(np.abs(power.values[known])))
    return None if abs(stated_w - made_w) <= rounding_w + AGREE * size_w else (stated_w, made_w)
