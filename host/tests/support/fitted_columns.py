"""Fits of columns with known energies and noise."""

from dataclasses import replace

import numpy as np
from opjoule.attribution.columns import NEIGHBOURS_U, ColumnSets
from opjoule.attribution.fit import FitBlocks, fits
from opjoule.attribution.overlap import Worked
from opjoule.attribution.verdict import verdicts
from opjoule.attribution.window_groups import groups

COUNT, WINDOW_S = 6400, 0.01
PARTS = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0]])
"""Two kinds, one activity, both kinds together; the last column is for neighbours alone."""
NAMES = ("read", "update", "write_back", "foreground")


def fit(columns, energy_j, group, sets, parts):
    """Fits all windows as one run."""
    blocks = FitBlocks.of(columns, energy_j, group, sets, parts)
    (fitted_run,) = fits(columns, blocks, parts, [])
    return fitted_run


def fitted(
    *,
    wander_j=0.0,
    near_too_steep=1.0,
    slope=1.0,
    own_variation=1.0,
    strays=0.0,
    steady=False,
    neighbours_u=NEIGHBOURS_U,
    seed=1,
):
    """Fits two kinds whose load changes every second, and an activity that follows them or varies independently.

    Args:
        neighbours_u: relative uncertainty of what neighbours tell of both kinds together.
        strays: share of the kinds' energy that follows the activity's independent variation.
        slope: slope of neighbours that the estimate assumes.
        steady: whether the activity is constant.
    """
    rng = np.random.default_rng(seed)
    load = np.repeat(rng.uniform(0, 40, COUNT // 128), 128)
    count = np.stack([rng.poisson(load), rng.poisson(load)], axis=1).astype(float)
    own_load = np.repeat(rng.uniform(0, 40, COUNT // 128), 128)
    activity = np.sqrt(1 - own_variation) * load + np.sqrt(own_variation) * own_load
    activity = np.full(COUNT, 0.3) if steady else activity
    duration_s = np.full(COUNT, WINDOW_S)
    group = groups({}, duration_s, np.zeros(COUNT, np.bool_), np.arange(COUNT) // 32)
    mean = (np.stack([np.bincount(group.near, kind_count) for kind_count in count.T]) / np.bincount(group.near)).T[
        group.near
    ]
    energy_j = (mean + near_too_steep * (count - mean)) @ [1e-3, 3e-3] + 1e-3 * activity
    energy_j += strays * 4e-3 * (own_load - own_load.mean() - load + load.mean())
    energy_j += rng.normal(0, 1e-3, COUNT) + np.repeat(rng.normal(0, wander_j, COUNT // 32), 32)
    columns = np.concatenate([count, activity[:, None], count.sum(axis=1)[:, None]], axis=1)
    sets = ColumnSets(
        near=np.array([True, True, False, True]),
        far=np.array([True, True, True, False]),
        free=np.array([False, False, False, True]),
        count=np.array([True, True, False, False]),
        strays=np.array([0.0, 0.0, 0.0, neighbours_u]),
    )
    fit_of_run = fit(columns, energy_j, replace(group, slope=slope), sets, PARTS)
    return fit_of_run, columns, count.sum(axis=0) @ [1e-3, 3e-3]


def reasons(fit_of_run, columns, **said):
    found = verdicts(NAMES, 2, PARTS, columns, fit_of_run, COUNT * WINDOW_S, **said)
    return {name: why.reason if why else "" for name, why in zip(NAMES, found, strict=True)}


def none_long(count):
    """No long operations beside these, shape (n, kinds)."""
    return Worked(np.zeros_like(count), np.zeros_like(count))
