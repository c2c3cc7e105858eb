"""An hour of frames through the host's reader leaves nothing uncounted; the check finds what is."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "validation")]

import soak  # noqa: E402  # path set above


def test_some_minutes_of_frames_are_accounted_for():
    assert soak.soak(0.05, seed=1)


def test_lost_conversions_that_nobody_counts_are_found(monkeypatch):
    monkeypatch.setattr(soak, "LOST", 0.01)
    monkeypatch.setattr(soak, "GapEvent", type("Never", (), {}))
    assert not soak.soak(0.05, seed=1)
