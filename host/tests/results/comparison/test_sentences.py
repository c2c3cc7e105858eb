"""Each contrast is a sentence that can be printed as it stands; golden/contrasts.txt has the wording."""

from __future__ import annotations

from pathlib import Path

import pytest
from compared_records import made
from opjoule.results.comparison.cell import AFTER, BEFORE
from opjoule.results.comparison.compared_run import SIDE
from opjoule.results.comparison.contrasts import Compared, Question, compare
from opjoule.results.comparison.index import gather
from opjoule.results.comparison.sentences import NO_DIFFERENCE, UNDECIDED, follows_words, sentence
from plotted_runs import ABOVE_IDLE, make_campaign


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_campaign(tmp_path_factory.mktemp("runs") / "campaign", drift_per_run=0.002)


def sentences(compared: Compared) -> list[str]:
    return [sentence(contrast, compared) for contrast in compared.answering]


def compared_by(folder: Path, *by: str, metric: str = ABOVE_IDLE) -> Compared:
    return compare(gather([str(folder)])[0], Question(by, (metric,)))


def pairs_of(folder: Path, sd: tuple[float, ...], other: tuple[float, ...], medium: str = "emmc") -> Compared:
    """Runs of these energies on the SD card and on another medium."""
    for number, (one, of_other) in enumerate(zip(sd, other, strict=True)):
        made(folder / f"a{number}", one)
        made(folder / f"b{number}", of_other, storage=medium)
    return compared_by(folder, "storage")


def of_change(folder: Path) -> Compared:
    """Runs before a change and after it, of twice the energy."""
    for number, value in enumerate((1.0, 1.01, 0.99)):
        made(folder / f"a{number}", value)
        made(folder / f"b{number}", 2 * value)
    runs = gather([str(folder)])[0]
    sides = {at: BEFORE if run.place.name.startswith("a") else AFTER for at, run in enumerate(runs)}
    return compare(runs, Question((SIDE,)), sides)


def undecided(folder: Path) -> Compared:
    """Four media; the disk and the SD card differ only if they are judged alone."""
    values = {"sd": (1.0, 1.01, 1.02), "emmc": (1.0, 1.04, 1.08), "nvme": (1.05, 1.06, 1.07), "disk": (1.04, 1.05)}
    for medium, energies_j in values.items():
        for number, value in enumerate(energies_j):
            made(folder / f"{medium}{number}", value, storage=medium)
    return compared_by(folder, "storage")


STEADY = (1.0, 1.01, 0.99)


def test_contrasts_are_worded_as_in_the_golden_screen(folder: Path, tmp_path: Path, golden) -> None:
    screens = {
        "media": compared_by(folder, "storage"),
        "databases": compared_by(folder, "db"),
        "media, by what is no energy": compared_by(folder, "storage", metric="throughput_per_s"),
        "no difference": pairs_of(tmp_path / "1", (1.0, 1.2, 0.9), (1.05, 1.26, 0.945)),
        "the only SSD": pairs_of(tmp_path / "2", STEADY, (4.0, 4.04, 3.96), "ssd-usb3"),
        "before and after a change": of_change(tmp_path / "3"),
        "below zero": pairs_of(tmp_path / "4", STEADY, (-1.0, -1.01, -0.99)),
        "undecided": undecided(tmp_path / "5"),
    }
    golden("contrasts", "\n\n".join("\n".join([f"== {name}", *sentences(of)]) for name, of in screens.items()))


def test_several_axes_at_a_time_name_both(folder: Path) -> None:
    assert any(
        "per operation of LevelDB on the SD card" in line for line in sentences(compared_by(folder, "db", "storage"))
    )


@pytest.mark.parametrize("by", ["db", "storage"])
@pytest.mark.parametrize(
    "metric", [ABOVE_IDLE, "energy_j", "run_energy_j", "power_w", "latency_s.p99", "disk_written_bytes"]
)
def test_no_sentence_holds_a_key_or_words_of_the_trade(folder: Path, by: str, metric: str) -> None:
    for line in sentences(compared_by(folder, by, metric=metric)):
        assert "_" not in line and "told apart" not in line and line.endswith(".") and line[0].isupper()


def test_a_column_says_what_follows(tmp_path: Path) -> None:
    [contrast] = pairs_of(tmp_path / "same", (1.0, 1.2, 0.9), (1.05, 1.26, 0.945)).contrasts
    assert follows_words(contrast) == NO_DIFFERENCE
    [contrast] = of_change(tmp_path / "change").contrasts
    assert contrast.differs and follows_words(contrast) not in (NO_DIFFERENCE, UNDECIDED)


def test_both_costs_are_asked_about_and_the_time_is_shown_beside_them(folder: Path) -> None:
    compared = compare(gather([str(folder)])[0], Question(("db",)))
    assert [of.key for of in compared.quantities] == [ABOVE_IDLE, "energy_per_operation_j"]
    assert compared.told and [of.key for of in compared.beside if of not in compared.told] == ["throughput_per_s"]
    assert compared.judged == 2 * 9, "time is not judged"
    assert compared_by(folder, "db").beside == ()


def test_what_differs_only_if_judged_alone_is_undecided(tmp_path: Path) -> None:
    contrasts = undecided(tmp_path).contrasts
    [contrast] = [of for of in contrasts if {of.a.name, of.b.name} == {"disk", "sd"}]
    assert contrast.probability < 0.0455 < contrast.adjusted and contrast.judged == 6
    assert follows_words(contrast) == UNDECIDED
