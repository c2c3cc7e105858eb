"""Records of a study's cells."""

from __future__ import annotations

import copy

from plotted_runs import scaled
from report_record import RESULT, make_record, put_result

MEDIA = {"sd": {"3": ["distribution"], "7": ["storage", "device"]}, "ssd": {"7": ["storage", "device"]}}
"""Medium -> figures that show its zipfian cells."""


def make(folder, system, medium, distribution, mix, factor, device="rpi4", **options):
    cell = {"system": system, "device": device, "storage": medium, "distribution": distribution, "mix": mix}
    shown = MEDIA[medium] if distribution == "zipfian" else {"3": ["distribution"]}
    about = {"folder": "s1", "cell": cell, "figures": {**shown, "6": ["device"]}, "scale": 0.5, **options}
    place = folder / f"{len(list(folder.iterdir()))}"
    make_record(place, **{**cell, "db": system, **about})
    made = copy.deepcopy(RESULT)
    for key in ("energy_j", "bandwidth_bytes_per_s"):
        made[key] = scaled(made[key], factor)
    put_result(place, made)
