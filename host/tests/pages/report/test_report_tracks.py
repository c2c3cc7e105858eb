"""Cells, envelopes and packed columns of the report."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from opjoule.results.tracks import STEPS, UNKNOWN, SampleParts, Track, joined, pack_times, pack_values, sampled_track


def unpacked(packed: dict[str, Any], width: int) -> np.ndarray[Any, Any]:
    """The integers of a packed column, as assets/packing.js reads them."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), np.uint8).reshape(width, packed["n"])
    return sum(planes[byte].astype(np.int64) << (8 * byte) for byte in range(width))  # type: ignore[return-value]


@given(arrays(np.float64, st.integers(0, 50), elements=st.floats(-1e6, 1e6) | st.just(np.nan)))
def test_values_come_back_to_within_half_a_step_and_nan_as_nan(values: Any) -> None:
    packed = pack_values(values)
    codes = unpacked(packed, 2)
    assert np.array_equal(codes == UNKNOWN, np.isnan(values))
    known = ~np.isnan(values)
    back = packed["offset"] + packed["step"] * codes[known]
    span = np.ptp(values[known]) if known.any() else 0.0
    assert np.all(np.abs(back - values[known]) <= 0.51 * span / STEPS + 1e-9 * np.abs(values[known]) + 1e-300)


@given(st.lists(st.floats(0, 60), min_size=1, max_size=50))
def test_times_come_back_to_within_a_microsecond_however_many_there_are(steps: list[float]) -> None:
    times = np.cumsum(steps)
    packed = pack_times(times)
    back = packed["offset"] + np.cumsum(unpacked(packed, 4)) * 1e-6
    assert np.all(np.abs(back - times) <= 1e-6)


def test_times_that_fall_are_refused() -> None:
    with pytest.raises(ValueError, match="must rise"):
        pack_times(np.array([1.0, 0.5]))


def test_cells_reach_half_way_to_the_neighbours() -> None:
    track = sampled_track(SampleParts.of(np.array([1.0, 2.0, 4.0]), {"power_w": np.array([5.0, 6.0, 7.0])}), 1.5)
    assert track.bounds_s.tolist() == [0.5, 1.5, 3.0, 5.0]
    assert track.mean["power_w"].tolist() == [5.0, 6.0, 7.0]


def test_a_stretch_far_from_any_sample_is_a_cell_without_a_value() -> None:
    times = np.array([0.0, 1.0, 2.0, 20.0, 21.0, 22.0])
    track = sampled_track(SampleParts.of(times, {"power_w": np.ones(6)}), 1.0)
    assert track.bounds_s.tolist() == [-0.5, 0.5, 1.5, 3.5, 18.5, 20.5, 21.5, 22.5]
    assert np.isnan(track.mean["power_w"]).tolist() == [False, False, False, True, False, False, False]


@given(
    arrays(np.float64, st.integers(2, 300), elements=st.floats(0, 10) | st.just(np.nan)),
    st.integers(1, 40),
)
def test_joining_keeps_extremes_and_the_integral(values: Any, cells: int) -> None:
    bounds_s = np.cumsum(np.concatenate(([0.0], np.linspace(0.5, 1.5, len(values)))))
    track = joined(Track(bounds_s, {"power_w": values}), cells)
    assert len(track.mean["power_w"]) <= cells + 2 * np.isnan(values).sum()
    lowest = track.lowest.get("power_w", track.mean["power_w"])
    highest = track.highest.get("power_w", track.mean["power_w"])
    if np.isnan(values).all():
        assert np.isnan(highest).all()
        return
    assert np.nanmin(lowest) == np.nanmin(values)
    assert np.nanmax(highest) == np.nanmax(values)
    if not np.isnan(values).any():
        before = np.sum(values * np.diff(bounds_s))
        assert np.sum(track.mean["power_w"] * np.diff(track.bounds_s)) == pytest.approx(before)


def test_joining_never_spreads_a_value_over_a_long_hole() -> None:
    bounds_s = np.concatenate((np.arange(101), np.arange(101) + 1000)).astype(np.float64)
    values = np.ones(201)
    values[100] = np.nan  # from 100 to 1000 s
    track = joined(Track(bounds_s, {"power_w": values}), 30)
    at = int(np.searchsorted(track.bounds_s, 500.0)) - 1
    assert (track.bounds_s[at], track.bounds_s[at + 1]) == (100.0, 1000.0)
    assert np.isnan(track.mean["power_w"][at])


def test_a_long_trace_stays_a_few_megabytes() -> None:
    """10 minutes at 11.9 kHz: the embedded columns stay below 6 MB."""
    rng = np.random.default_rng(3)
    count = 7_140_000
    amperes = np.round(rng.normal(0.8, 0.05, count), 4)
    columns = {"power_w": amperes * 5.1, "current_a": amperes, "voltage_v": np.full(count, 5.1)}
    track = sampled_track(SampleParts.of(np.arange(count) * 84e-6, columns), 84e-6)
    packed = track.packed
    size = sum(len(column["data"]) for part in ("mean", "lowest", "highest") for column in packed[part].values())
    assert size + len(packed["bounds_s"]["data"]) < 6_000_000
    assert track.samples_per_cell > 1
    assert track.highest["power_w"].max() == columns["power_w"].max()
