"""Each contrast is a sentence that can be printed as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from compared_records import made
from opjoule.results.comparison.compared_run import SIDE
from opjoule.results.comparison.contrasts import AFTER, BEFORE, Compared, Question, compare
from opjoule.results.comparison.index import gather
from opjoule.results.comparison.sentences import follows_words, sentence
from plotted_runs import ABOVE_IDLE, make_campaign


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_campaign(tmp_path_factory.mktemp("runs") / "campaign", drift_per_run=0.002)


def sentences(compared: Compared) -> list[str]:
    return [sentence(contrast, compared) for contrast in compared.answering]


def compared_by(folder: Path, *by: str, metric: str = ABOVE_IDLE) -> Compared:
    return compare(gather([str(folder)])[0], Question(by, (metric,)))


def test_a_difference_names_engine_media_factor_interval_and_quantity(folder: Path) -> None:
    [line] = [
        line for line in sentences(compared_by(folder, "storage")) if "On SQLite" in line and "USB 2 used" in line
    ]
    assert re.fullmatch(
        r"On SQLite, the SSD on USB 2 used 2\.\d+ times \(95 %: 1\.\d+ to 2\.\d+\) the energy above idle per operation "
        r"of the SSD on USB 3\.",
        line,
    )


def test_engines_are_compared_on_a_medium_by_their_own_names(folder: Path) -> None:
    assert any(
        line.startswith("On the SD card, SQLite used 3.")
        and line.endswith("energy above idle per operation of LevelDB.")
        for line in sentences(compared_by(folder, "db"))
    )


def test_what_is_no_energy_is_had_and_not_used(folder: Path) -> None:
    lines = sentences(compared_by(folder, "storage", metric="throughput_per_s"))
    assert any(
        re.match(r"On LevelDB, the SSD on USB 3 had \d\.\d+ times .* the throughput of the SD card", line)
        for line in lines
    )


def test_several_axes_at_a_time_name_both(folder: Path) -> None:
    assert any("LevelDB on the SD card used" in line for line in sentences(compared_by(folder, "db", "storage")))


@pytest.mark.parametrize("by", ["db", "storage"])
@pytest.mark.parametrize(
    "metric", [ABOVE_IDLE, "energy_j", "run_energy_j", "power_w", "latency_s.p99", "disk_written_bytes"]
)
def test_no_sentence_holds_a_key_or_words_of_the_trade(folder: Path, by: str, metric: str) -> None:
    for line in sentences(compared_by(folder, by, metric=metric)):
        assert "_" not in line and "told apart" not in line and line.endswith(".") and line[0].isupper()


def test_no_difference_is_said_with_its_ratio(tmp_path: Path) -> None:
    for number, value in enumerate((1.0, 1.2, 0.9)):
        made(tmp_path / f"a{number}", value)
        made(tmp_path / f"b{number}", 1.05 * value, storage="emmc")
    compared = compared_by(tmp_path, "storage")
    [line] = sentences(compared)
    assert line.startswith(
        "No difference in energy above idle per operation was found between the eMMC and the SD card "
        "(ratio 1.05, 95 %: "
    )
    assert follows_words(compared.contrasts[0]) == "no difference found"


def test_the_only_ssd_is_the_ssd(tmp_path: Path) -> None:
    for number, value in enumerate((1.0, 1.01, 0.99)):
        made(tmp_path / f"a{number}", value)
        made(tmp_path / f"b{number}", 4 * value, storage="ssd-usb3")
    assert sentences(compared_by(tmp_path, "storage"))[0].startswith("The SSD used 4.000 times (95 %: ")


def test_a_change_is_worded_as_before_and_after(tmp_path: Path) -> None:
    for number, value in enumerate((1.0, 1.01, 0.99)):
        made(tmp_path / f"a{number}", value)
        made(tmp_path / f"b{number}", 2 * value)
    runs = gather([str(tmp_path)])[0]
    sides = {at: BEFORE if run.place.name.startswith("a") else AFTER for at, run in enumerate(runs)}
    [line] = sentences(compare(runs, Question((SIDE,)), sides))
    assert line.startswith("After the change the energy above idle per operation was 2.000 times (95 %: ")
    assert line.endswith(" that before.")


def test_below_zero_there_is_no_ratio(tmp_path: Path) -> None:
    for number, value in enumerate((1.0, 1.01, 0.99)):
        made(tmp_path / f"a{number}", value)
        made(tmp_path / f"b{number}", -value, storage="emmc")
    [line] = sentences(compared_by(tmp_path, "storage"))
    assert line == (
        "The SD card had more energy above idle per operation than the eMMC. "
        "A value is not above 0, so there is no ratio."
    )


def test_both_costs_are_asked_about_and_the_time_is_shown_beside_them(folder: Path) -> None:
    compared = compare(gather([str(folder)])[0], Question(("db",)))
    assert [of.key for of in compared.quantities] == [ABOVE_IDLE, "energy_per_operation_j"]
    assert compared.told and [of.key for of in compared.beside if of not in compared.told] == ["throughput_per_s"]
    assert compared.judged == 2 * 9, "time is not judged"
    assert compared_by(folder, "db").beside == ()


def test_what_differs_only_if_judged_alone_is_undecided(tmp_path: Path) -> None:
    values = {
        "sd": (1.0, 1.01, 1.02),
        "emmc": (1.0, 1.04, 1.08),
        "nvme": (1.05, 1.06, 1.07),
        "disk": (1.04, 1.05),
    }
    for medium, energies_j in values.items():
        for number, value in enumerate(energies_j):
            made(tmp_path / f"{medium}{number}", value, storage=medium)
    compared = compared_by(tmp_path, "storage")
    [contrast] = [of for of in compared.contrasts if {of.a.name, of.b.name} == {"disk", "sd"}]
    assert re.fullmatch(
        r"A difference in energy above idle per operation between the disk and the SD card is undecided "
        r"\(ratio 1\.0\d+, 95 %: .*\): alone it is significant \(p = 0\.0\d+\), among all 6 it is not "
        r"\(p \(Holm\) = 0\.\d+\)\.",
        sentence(contrast, compared),
    )
    assert follows_words(contrast) == "undecided"
