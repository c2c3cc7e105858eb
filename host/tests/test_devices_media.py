"""Several media: randomised blocks with one seed, and a comparison whose uncertainty is honest."""

from __future__ import annotations

import argparse
import json

import pytest
from opjoule.cli.media import ROWS, compared, each_medium, media_order, run_media
from opjoule.errors import BadInput

MEDIA = ["sd", "emmc", "ssd"]


def result(value: float, u: float | None) -> dict:
    number = {"value": value, "u": u, "unit": "x"}
    return {"simulated": True, **{key: number for key, _, _ in ROWS}}


def test_each_block_holds_every_medium_once():
    order = media_order(MEDIA, 20, seed=3)
    for block in range(1, 21):
        assert sorted(medium for number, medium in order if number == block) == sorted(MEDIA)


def test_the_order_depends_on_the_seed_alone_and_differs_between_blocks():
    assert media_order(MEDIA, 9, 1) == media_order(MEDIA, 9, 1)
    assert media_order(MEDIA, 9, 1) != media_order(MEDIA, 9, 2)
    firsts = {medium for number, medium in media_order(MEDIA, 20, 1)[::3]}
    assert firsts == set(MEDIA)


def test_uncertainty_of_a_mean_joins_the_sensors_and_the_repeats():
    same = compared([result(2.0, 0.1), result(2.0, 0.1)])["power_w"]
    assert (same["value"], same["u"], same["runs"]) == (2.0, pytest.approx(0.1), 2)
    spread = compared([result(1.9, 0.1), result(2.1, 0.1)])["power_w"]
    assert spread["u"] == pytest.approx((0.1**2 + (13.97 * 0.1) ** 2) ** 0.5, rel=1e-3)


def test_a_number_that_a_run_lacks_stays_missing_with_its_reason():
    without = result(1.0, 0.1)
    without["power_w"] = {"value": None, "u": None, "unit": "W", "reason": "gap too long"}
    assert compared([result(1.0, 0.1), without])["power_w"]["reason"] == "gap too long"
    assert compared([result(1.0, None)])["power_w"]["u"] is None


def options(**changed) -> argparse.Namespace:
    return argparse.Namespace(
        **{"storage": "sd,emmc", "repeats": 2, "seed": 1, "out": None, "json": True, **changed}
    )


def test_all_media_are_measured_with_one_seed_and_kept(tmp_path, capsys):
    seen = []

    def run_one(asked: argparse.Namespace) -> int:
        seen.append((asked.storage, asked.seed, asked.repeats))
        asked.out.mkdir(parents=True)
        (asked.out / "result.json").write_text(json.dumps(result(1.0, 0.1)))
        return 1 if asked.storage == "sd" else 0

    assert run_media(options(), tmp_path, run_one) == 1
    assert sorted(seen) == [("emmc", 1, 1)] * 2 + [("sd", 1, 1)] * 2
    summary = json.loads(capsys.readouterr().out)
    assert summary["simulated"] is True
    assert summary["media"]["sd"]["power_w"]["runs"] == 2
    with pytest.raises(BadInput, match="choose another --out"):
        run_media(options(), tmp_path, run_one)


@pytest.mark.parametrize("storage", ["sd,sd", "sd,", ",sd"])
def test_a_medium_named_twice_or_not_at_all_is_refused(tmp_path, storage):
    with pytest.raises(BadInput, match="name each medium once"):
        run_media(options(storage=storage), tmp_path, lambda _: 0)


def test_each_medium_gets_options_of_its_own():
    assert [each.storage for each in each_medium(options(storage="sd, emmc"))] == ["sd", "emmc"]
