"""Which group is best, by what factor, how sure, and what decides it; golden/conclusions.txt has the wording."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compared_records import KEY, made
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Quantity
from opjoule.results.comparison.conclusion import Answers, answers_of
from opjoule.results.comparison.contrasts import Compared, Question, compare
from opjoule.results.comparison.index import ConditionRun, gather, read_index, with_result, write_index
from opjoule.results.comparison.ranking import Ranking, rankings
from opjoule.results.comparison.winners import conclusions, deciding_lines, winner_lines
from report_record import put_result

VALUES = {
    "leveldb": {"sd": 2.8, "emmc": 1.0, "ssd-usb3": 3.1},
    "sqlite": {"sd": 1.01, "emmc": 1.0, "ssd-usb3": 4.9},
}
IDLE_W = {"sd": 3.0, "emmc": 3.0, "ssd-usb3": 3.3}


def number(value: float, unit: str, u: float = 0.0) -> dict[str, object]:
    return {"value": value, "u": u, "unit": unit}


def campaign(folder: Path, runs_of: int = 4, *, tail: float = 0.1) -> Path:
    """Two databases on three media; SQLite's SD card and eMMC differ by less than runs do."""
    runs = []
    for block in range(1, runs_of + 1):
        for db, values in VALUES.items():
            for medium, value in values.items():
                name, energy_j = f"{block}-{db}-{medium}", value * (1 + 0.02 * (block % 3 - 1))
                changes = {
                    "idle_power_w": number(IDLE_W[medium], "W", 0.004),
                    "marginal_energy_j": number(energy_j, "J", 0.01),
                    "write_back_energy_j": number(energy_j * (tail if medium == "ssd-usb3" else 0.0), "J", 0.01),
                    "duration_s": number(10.0, "s"),
                    "operations": number(1000.0, "1"),
                    "repeats": 1,
                }
                made(folder / name, energy_j, db=db, storage=medium, changes=changes)
                runs.append(ConditionRun(block, {"db": db, "storage": medium}, name))
    write_index(folder, runs, simulated=False)
    return folder


def answers_in(folder: Path) -> Answers:
    return answers_of(with_result(read_index(folder)[0]))


IN_ALL = "energy_per_operation_j"


def ranked(compared: Compared, key: str = KEY) -> dict[str, Ranking]:
    """Values of the other axes -> ranking by one quantity."""
    [of] = [of for of in compared.quantities if of.key == key]
    return {" ".join(ranking.stratum.values()): ranking for ranking in rankings(compared, of)}


def by_medium(folder: Path, key: str = KEY) -> Ranking:
    """Ranking of the media by one quantity, if that is the only axis."""
    [ranking] = ranked(compare(gather([str(folder)])[0], Question(("storage",), (key,))), key).values()
    return ranking


def factors(ranking: Ranking) -> dict[str, float]:
    """Each worse group -> ratio of the two sides, the greater one over the other."""
    return {worse: float(contrast.greater_first.ratio) for worse, _, contrast in ranking.others}


def undecided(ranking: Ranking) -> list[str]:
    return [of.contrast.a.name for of in ranking.undecided]


def test_the_best_medium_of_each_database_is_found_with_its_factors(tmp_path: Path) -> None:
    media, databases = answers_in(campaign(tmp_path)).compared
    leveldb, sqlite = ranked(media)["leveldb"], ranked(media)["sqlite"]
    assert (leveldb.best, leveldb.alike) == ("emmc", ())
    assert factors(leveldb) == pytest.approx({"sd": 2.8, "ssd-usb3": 3.1}, rel=0.02)
    assert (sqlite.best, sqlite.alike, factors(sqlite)) == ("emmc", ("sd",), {"ssd-usb3": pytest.approx(4.9, rel=0.02)})
    best = {medium: (of.best, of.alike) for medium, of in ranked(databases).items()}
    assert best["sd"] == ("sqlite", ()) and best["ssd-usb3"] == ("leveldb", ())
    assert {*best["emmc"][1], best["emmc"][0]} == {"leveldb", "sqlite"}


def test_a_group_that_used_less_than_idle_has_no_part_in_the_factors(tmp_path: Path, monkeypatch) -> None:
    """There is no ratio to it; the factors are those of the other strata."""
    values = {db: {"sd": 2.0, "emmc": 1.0 if db != "rocksdb" else -0.05} for db in ("leveldb", "sqlite", "rocksdb")}
    monkeypatch.setitem(globals(), "VALUES", values)
    lines = [line for compared in answers_in(campaign(tmp_path)).compared for line in winner_lines(compared)]
    assert any("the SD card 2.0 times as much" in line or "the SD card used 2.0 times" in line for line in lines), lines


def test_what_is_left_out_of_energy_above_idle_is_reported(tmp_path: Path) -> None:
    [line] = deciding_lines(answers_in(campaign(tmp_path)).compared)
    assert "300.0 ±" in line and "3.0 mJ" in line.replace("\N{NO-BREAK SPACE}", " ")


def test_a_tail_that_decides_is_named(tmp_path: Path) -> None:
    short = deciding_lines(answers_in(campaign(tmp_path / "a", tail=0.8)).compared)
    assert len(short) == 2 and any(line.count("(80 %)") == 2 for line in short)
    assert not any("(80 %)" in line for line in deciding_lines(answers_in(campaign(tmp_path / "b")).compared))


def test_single_runs_crown_nobody(tmp_path: Path) -> None:
    answers = answers_in(campaign(tmp_path, 1))
    assert not any(of.winners for compared in answers.compared for of in ranked(compared).values())
    assert not any(compared.judged for compared in answers.compared)
    assert [notice.kind for notice in answers.warnings] == [NoticeKind.ONE_RUN]


def too_short(folder: Path) -> Path:
    """The campaign, in which LevelDB's runs on the SD card and the eMMC were too short."""
    short = Notice(NoticeKind.TOO_SHORT, "it took 0.01 s, 10 samples")
    campaign(folder)
    for block in range(1, 5):
        for medium in ("sd", "emmc"):
            place = folder / f"{block}-leveldb-{medium}"
            result = json.loads((place / "result.json").read_text())
            put_result(place, {**result, "notices": [short]})
    return folder


def test_what_is_too_short_or_single_is_left_aside_and_not_said_to_be_the_same(tmp_path: Path) -> None:
    media, databases = answers_in(too_short(tmp_path)).compared
    assert ranked(media)["leveldb"].best == "" and set(ranked(media)["leveldb"].unjudged) == {"sd", "emmc", "ssd-usb3"}
    assert ranked(media)["leveldb"].why
    best = {medium: of.best for medium, of in ranked(databases).items()}
    assert best == {"sd": "", "emmc": "", "ssd-usb3": "leveldb"}


def test_a_group_of_one_run_is_left_aside(tmp_path: Path) -> None:
    campaign(tmp_path)
    for block in (2, 3, 4):
        shutil.rmtree(tmp_path / f"{block}-leveldb-emmc")
    leveldb = ranked(answers_in(tmp_path).compared[0])["leveldb"]
    assert (leveldb.best, leveldb.unjudged) == ("sd", ("emmc",)) and leveldb.why


def test_of_a_rate_the_highest_is_best(tmp_path: Path) -> None:
    for at, rate in enumerate((100.0, 101.0, 99.0)):
        for medium, factor in (("sd", 1.0), ("emmc", 2.0)):
            changes = {"throughput_per_s": number(factor * rate, "1/s")}
            made(tmp_path / f"{medium}{at}", 1.0, storage=medium, changes=changes)
    ranking = by_medium(tmp_path, "throughput_per_s")
    assert (ranking.best, factors(ranking)) == ("emmc", {"sd": pytest.approx(2.0)})
    compared = compare(gather([str(tmp_path)])[0], Question(("storage",), ("throughput_per_s",)))
    [line] = winner_lines(compared)
    assert "200.0 ± " in line and "2.000 times" in line, "the highest mean, and its factor"
    assert deciding_lines([compared]) == []


def nothing_differs(folder: Path) -> list[str]:
    """Conclusion on two databases that are the same on each of three media."""
    runs = []
    for medium in ("sd", "emmc", "nvme"):
        for db in ("leveldb", "sqlite"):
            for at, value in enumerate((1.0, 1.02, 0.98)):
                name = f"{medium}-{db}-{at}"
                made(folder / name, value, db=db, storage=medium)
                runs.append(ConditionRun(at, {"db": db, "storage": medium}, name))
    write_index(folder, runs, simulated=False)
    return winner_lines(compare(gather([str(folder)])[0], Question(("db",))))


def test_where_nothing_differs_in_any_stratum_one_line_says_so(tmp_path: Path) -> None:
    [line] = nothing_differs(tmp_path)
    assert "LevelDB" in line and "SQLite" in line


@pytest.mark.parametrize("count", [2, 3, 4])
def test_where_nothing_differs_nobody_wins(tmp_path: Path, count: int) -> None:
    for medium in ("sd", "emmc", "nvme", "disk")[:count]:
        for at, value in enumerate((1.0, 1.02, 0.98)):
            made(tmp_path / f"{medium}{at}", value, storage=medium)
    ranking = by_medium(tmp_path)
    assert not ranking.winners and not ranking.undecided and len(ranking.alike) == count - 1


LEVELS = {"rig-1": 1.0, "rig-2": 2.0}
NOISE = (0.0, 0.002, -0.001, 0.001, -0.002, 0.0015, -0.0015, 0.001)


def fleet(folder: Path, factors: dict[str, float], blocks: dict[str, tuple[int, ...]]) -> Ranking:
    """Ranking of media with the given blocks; those above 4 ran on a rig of twice the level."""
    runs = []
    for medium, numbers in blocks.items():
        for block in numbers:
            rig = "rig-1" if block < 5 else "rig-2"
            value = LEVELS[rig] * factors[medium] * (1.0 + NOISE[(block + len(medium)) % 8])
            name = f"{block}-{medium}"
            changes = {"repeats": 1}
            made(folder / name, value, storage=medium, block=block, rig_name=rig, changes=changes)
            runs.append(ConditionRun(block, {"storage": medium}, name))
    write_index(folder, runs, simulated=False)
    return by_medium(folder)


def test_with_missing_cells_on_several_rigs_the_winner_is_that_of_the_common_blocks(tmp_path: Path) -> None:
    """The SD card has the lower mean of all its runs, but uses more in each block that both have."""
    missing = {"sd": (1, 2, 3, 4, 5), "emmc": (1, 2, 5, 6, 7, 8)}
    ranking = fleet(tmp_path, {"sd": 1.1, "emmc": 1.0}, missing)
    assert (ranking.best, factors(ranking)) == ("emmc", {"sd": pytest.approx(1.099, abs=1e-3)})
    assert ranking.worse[0].adjusted < 1e-4
    assert "±" not in answers_in(tmp_path).conclusions[0], "a mean that the factor does not rest on is not stated"


def test_a_mean_of_the_same_blocks_is_stated(tmp_path: Path) -> None:
    every = (1, 2, 5, 6)
    assert fleet(tmp_path, {"sd": 1.1, "emmc": 1.0}, {"sd": every, "emmc": every}).best == "emmc"
    assert ", 1.50" in answers_in(tmp_path).conclusions[0]


def test_a_medium_without_common_blocks_is_left_aside(tmp_path: Path) -> None:
    """SSD and eMMC beat the SD card and were never measured in one block."""
    blocks = {"sd": (1, 2, 3, 5, 6, 7), "emmc": (1, 2, 3), "ssd-usb3": (5, 6, 7)}
    ranking = fleet(tmp_path, {"sd": 1.1, "emmc": 1.0, "ssd-usb3": 0.9}, blocks)
    assert (ranking.best, [*factors(ranking)], ranking.unjudged) == ("emmc", ["sd"], ("ssd-usb3",))
    assert ranking.why and ranking.why in answers_in(tmp_path).conclusions[0]


def test_a_noisy_medium_of_the_lowest_mean_that_is_better_than_none_is_not_the_best(tmp_path: Path) -> None:
    values = {"sd": (1.0, 0.7, 1.2), "emmc": (1.0, 1.01, 1.02), "ssd-usb3": (1.1, 1.11, 1.12)}
    for medium, energies_j in values.items():
        for at, value in enumerate(energies_j):
            made(tmp_path / f"{medium}{at}", value, storage=medium)
    ranking = by_medium(tmp_path)
    assert (ranking.best, ranking.better_but_undecided, undecided(ranking)) == ("emmc", ["sd"], ["sd"])
    assert factors(ranking) == {"ssd-usb3": pytest.approx(1.099, abs=1e-3)}
    assert float(ranking.undecided[0].contrast.ratio) == pytest.approx(0.957, abs=1e-3)


def test_contrasts_in_a_circle_crown_nobody(tmp_path: Path) -> None:
    blocks = {"sd": (1, 2, 3, 5, 6, 7), "emmc": (1, 2, 3, 11, 12, 13), "ssd-usb3": (5, 6, 7, 11, 12, 13)}
    runs = []
    for medium, numbers in blocks.items():
        for number in numbers:
            worse = {"sd": 1 <= number <= 3, "emmc": number > 10, "ssd-usb3": 4 < number < 8}[medium]
            name, value = f"{number}-{medium}", (1.3 if worse else 1.0) + 0.001 * (number % 5)
            rig, changes = f"rig-{number % 5}", {"repeats": 1}
            made(tmp_path / name, value, storage=medium, block=number, rig_name=rig, changes=changes)
            runs.append(ConditionRun(number, {"storage": medium}, name))
    write_index(tmp_path, runs, simulated=False)
    ranking = by_medium(tmp_path)
    assert ranking.best == "" and not ranking.winners
    assert all(of.differs for of in ranking.contrasts) and ranking.why in answers_in(tmp_path).conclusions[0]


def test_equal_idle_powers_seldom_give_a_line_however_many_pairs_there_are(tmp_path: Path) -> None:
    """In at most 4.55 % of calls (1.8 of 40 here), though each has 18 pairs of equal idle powers."""
    runs = []
    for db in range(6):
        for medium in ("sd", "emmc", "ssd-usb3"):
            for block in range(1, 4):
                name = f"{block}-{db}-{medium}"
                made(tmp_path / name, 1.0, storage=medium, changes={"repeats": 1})
                runs.append(ConditionRun(block, {"workload": f"w{db}", "storage": medium}, name))
    write_index(tmp_path, runs, simulated=False)
    read, chance = with_result(read_index(tmp_path)[0]), np.random.default_rng(1)

    def lines() -> list[str]:
        idle_w = [Quantity(3.0 + 0.01 * chance.normal(), 0.002, "W") for _ in read]
        null = [
            replace(run, means={**run.means, "idle_power_w": power}) for run, power in zip(read, idle_w, strict=True)
        ]
        return deciding_lines([compare(null, Question(("storage",)))])

    assert sum(bool(lines()) for _ in range(40)) <= 4


def test_idle_powers_of_several_rigs_are_compared_within_blocks(tmp_path: Path) -> None:
    """Most runs of the SD card were made on the rig that draws 1 W less at idle."""
    runs = []
    for medium, numbers in {"sd": (1, 2, 3, 4, 5, 6), "emmc": (3, 4, 5, 6, 7, 8)}.items():
        for block in numbers:
            rig, idle_w = ("rig-1", 2.0) if block < 5 else ("rig-2", 3.0)
            power = number(idle_w + (0.2 if medium == "sd" else 0.0) + NOISE[block - 1], "W")
            name, changes = f"{block}-{medium}", {"repeats": 1, "idle_power_w": power}
            made(tmp_path / name, 1.0, storage=medium, block=block, rig_name=rig, changes=changes)
            runs.append(ConditionRun(block, {"storage": medium}, name))
    write_index(tmp_path, runs, simulated=False)
    [line] = deciding_lines(answers_in(tmp_path).compared)
    assert " 200 " in line and line.index("SD card") < line.index("eMMC")


def of_media(folder: Path, values: dict[str, tuple[float, ...]], **axes: str) -> Ranking:
    """Ranking of media with these energies above idle per operation, one for each block."""
    runs = []
    for medium, energies_j in values.items():
        for block, value in enumerate(energies_j, 1):
            made(folder / f"{block}-{medium}", value, storage=medium, changes={"repeats": 1}, **axes)
            runs.append(ConditionRun(block, {"storage": medium}, f"{block}-{medium}"))
    write_index(folder, runs, simulated=False)
    return by_medium(folder)


EMMC = (1.0, 1.02, 0.98, 1.01, 0.99)
SD = (1.9, 1.94, 1.86, 1.92, 1.88)


def test_the_highest_mean_that_is_only_noisier_is_undecided(tmp_path: Path) -> None:
    ranking = of_media(tmp_path, {"sd": SD, "emmc": EMMC, "ssd-usb3": (1.2, 3.4, 1.1, 3.0, 1.7)})
    assert (ranking.best, ranking.alike, factors(ranking)) == ("emmc", (), {"sd": pytest.approx(1.9)})
    [noisy] = ranking.undecided
    assert noisy.contrast.a.name == "ssd-usb3" and float(noisy.contrast.ratio) == pytest.approx(2.08, abs=0.01)
    assert noisy.more and 2 <= noisy.more <= 10


def test_what_is_not_told_apart_and_near_is_named_beside_the_best(tmp_path: Path) -> None:
    ranking = of_media(tmp_path, {"sd": SD, "emmc": EMMC, "ssd-usb3": (1.1, 0.9, 1.2, 0.95, 1.0)})
    assert (ranking.best, ranking.alike, ranking.undecided) == ("emmc", ("ssd-usb3",), ())
    assert factors(ranking) == {"sd": pytest.approx(1.9)}


def test_a_rate_that_is_only_noisier_is_undecided(tmp_path: Path) -> None:
    rates = {"sd": (50, 51, 49, 50), "emmc": (100, 101, 99, 100), "ssd-usb3": (90, 20, 60, 25)}
    for medium, of_medium in rates.items():
        for at, rate in enumerate(of_medium):
            changes = {"throughput_per_s": number(float(rate), "1/s")}
            made(tmp_path / f"{medium}{at}", 1.0, storage=medium, changes=changes)
    ranking = by_medium(tmp_path, "throughput_per_s")
    assert (ranking.best, [*factors(ranking)], undecided(ranking)) == ("emmc", ["sd"], ["ssd-usb3"])
    assert float(ranking.undecided[0].contrast.ratio) == pytest.approx(0.4875)


def test_more_blocks_decide_as_the_forecast_says(tmp_path: Path) -> None:
    """As many blocks again as it asks for, of the same spread, leave nothing undecided."""
    few, noisy = EMMC, (1.2, 3.4, 1.1, 3.0, 1.7)
    assert undecided(of_media(tmp_path / "few", {"sd": SD, "emmc": few, "ssd-usb3": noisy})) == ["ssd-usb3"]
    more = of_media(tmp_path / "more", {"sd": SD * 3, "emmc": few * 3, "ssd-usb3": noisy * 3})
    assert not more.undecided and factors(more)["ssd-usb3"] == pytest.approx(2.08, abs=0.01)


UJ_AND_US = {
    "leveldb": {"sd": (160.0, 300.0), "emmc": (90.0, 250.0), "ssd-usb3": (190.0, 200.0)},
    "sqlite": {"sd": (95.0, 1900.0), "emmc": (180.0, 1600.0), "ssd-usb3": (100.0, 1400.0)},
}


def costly(folder: Path, of_cells: dict[str, dict[str, tuple[float, float]]]) -> Answers:
    """Answers on cells with these energies above idle [uJ] and times [us] of an operation; idle: 3 W."""
    runs = []
    for block in range(1, 5):
        for db, media in of_cells.items():
            for medium, (energy_uj, time_us) in media.items():
                factor = 1 + 0.01 * (block % 3 - 1)
                energy_j, time_s, name = (
                    1e-6 * energy_uj * factor,
                    1e-6 * time_us * factor,
                    f"{block}-{db}-{medium}",
                )
                changes = {
                    "energy_per_operation_j": number(energy_j + 3.0 * time_s, "J/operation"),
                    "throughput_per_s": number(1.0 / time_s, "1/s"),
                    "repeats": 1,
                }
                made(folder / name, energy_j, db=db, storage=medium, changes=changes)
                runs.append(ConditionRun(block, {"db": db, "storage": medium}, name))
    write_index(folder, runs, simulated=False)
    return answers_in(folder)


def test_the_two_costs_may_have_different_winners_which_one_line_names_with_the_time(tmp_path: Path) -> None:
    answers = costly(tmp_path, UJ_AND_US)
    databases = answers.compared[-1]
    best = {key: {medium: of.best for medium, of in ranked(databases, key).items()} for key in (KEY, IN_ALL)}
    assert best[KEY] == {"sd": "sqlite", "emmc": "leveldb", "ssd-usb3": "sqlite"}
    assert best[IN_ALL] == dict.fromkeys(best[KEY], "leveldb")
    assert any("6.3 to 7.0" in line for line in answers.conclusions), "how much longer SQLite took"
    assert sum("eMMC" in line for line in winner_lines(databases)) == 1, "the same winner is named once"


def test_the_same_winner_by_both_costs_is_named_once(tmp_path: Path) -> None:
    first, *_ = costly(tmp_path, {"leveldb": {"sd": (160.0, 300.0), "emmc": (90.0, 250.0)}}).conclusions
    assert first.count("eMMC") == 1 and "(840 ±" in first, "with the mean and the factor of each cost"
    assert 1.77 < float(first.split("SD card used ")[1].split()[0]) < 1.79
    assert 1.26 < float(first.split("SD card used ")[2].split()[0]) < 1.27


def test_no_difference_by_either_cost_is_said_once(tmp_path: Path) -> None:
    answers = costly(tmp_path, {"leveldb": {"sd": (90.0, 250.0), "emmc": (90.2, 250.4)}})
    [media] = answers.compared
    assert not any(of.winners for key in (KEY, IN_ALL) for of in ranked(media, key).values())
    assert len(winner_lines(media)) == 1 and "1.002" in answers.conclusions[0]


def noisy_rocksdb(folder: Path) -> Compared:
    """Three databases on three media; RocksDB has noise on the eMMC alone, and is not measured elsewhere."""
    values = {"sqlite": SD, "leveldb": EMMC, "rocksdb": SD}
    runs = []
    for medium in ("sd", "emmc", "ssd-usb3"):
        noisy = {"rocksdb": (1.2, 3.4, 1.1, 3.0, 1.7)} if medium == "emmc" else {}
        for db, energies_j in (values | noisy).items():
            for block, value in enumerate(energies_j, 1):
                name = f"{block}-{db}-{medium}"
                made(folder / name, value, storage=medium, db=db, changes={"repeats": 1})
                runs.append(ConditionRun(block, {"db": db, "storage": medium}, name))
    write_index(folder, runs, simulated=False)
    return compare(gather([str(folder)])[0], Question(("db",)))


def test_what_is_undecided_in_one_of_many_strata_is_named_with_its_place(tmp_path: Path) -> None:
    compared = noisy_rocksdb(tmp_path)
    found = ranked(compared)
    assert {of.best for of in found.values()} == {"leveldb"}
    assert {medium: undecided(of) for medium, of in found.items()} == {"sd": [], "emmc": ["rocksdb"], "ssd-usb3": []}
    [line] = winner_lines(compared)
    assert "RocksDB on the eMMC" in line


def test_no_two_winners_are_set_against_each_other_if_an_undecided_one_may_be_better(tmp_path: Path) -> None:
    """SQLite has the lowest mean above idle and is noisy: RocksDB, better than LevelDB, is not said to be the best."""
    cells = {"sqlite": (2.4, 0.1, 1.9, 0.2, 0.3), "rocksdb": EMMC, "leveldb": SD}
    in_all = {"sqlite": 9.0, "rocksdb": 5.0, "leveldb": 3.0}
    runs = []
    for db, energies_j in cells.items():
        for block, value in enumerate(energies_j, 1):
            total = number(in_all[db] * (1 + 0.001 * block), "J/operation")
            made(tmp_path / f"{block}-{db}", value, db=db, changes={IN_ALL: total, "repeats": 1})
            runs.append(ConditionRun(block, {"db": db}, f"{block}-{db}"))
    write_index(tmp_path, runs, simulated=False)
    compared = compare(gather([str(tmp_path)])[0], Question(("db",)))
    [above_idle], [all_told] = (ranked(compared, key).values() for key in (KEY, IN_ALL))
    assert (above_idle.best, above_idle.better_but_undecided, all_told.best) == ("rocksdb", ["sqlite"], "leveldb")
    assert len(winner_lines(compared)) == 2, "one for each cost, and none that sets both winners against each other"


def test_conclusions_are_worded_as_in_the_golden_screen(tmp_path: Path, golden) -> None:
    few = {"leveldb": {"sd": (160.0, 300.0), "emmc": (90.0, 250.0)}}
    alike = {"leveldb": {"sd": (90.0, 250.0), "emmc": (90.2, 250.4)}}
    slow = {
        "leveldb": {"sd": (280.0, 900.0), "emmc": (260.0, 900.0), "ssd-usb3": (170.0, 900.0)},
        "sqlite": {"sd": (90.0, 900.0), "emmc": (80.0, 900.0), "ssd-usb3": (70.0, 900.0)},
    }
    screens = {
        "one cost": answers_in(campaign(tmp_path / "1")).conclusions,
        "a long tail": answers_in(campaign(tmp_path / "2", tail=0.8)).conclusions,
        "single runs": answers_in(campaign(tmp_path / "3", 1)).conclusions,
        "some too short": answers_in(too_short(tmp_path / "4")).conclusions,
        "nothing differs": nothing_differs(tmp_path / "5"),
        "two costs of two winners": costly(tmp_path / "6", UJ_AND_US).conclusions,
        "two costs of one winner": costly(tmp_path / "7", few).conclusions,
        "two costs without a winner": costly(tmp_path / "8", alike).conclusions,
        "one winner, in all by little": costly(tmp_path / "10", slow).conclusions,
        "one is undecided": conclusions([noisy_rocksdb(tmp_path / "9")]),
    }
    golden("conclusions", "\n\n".join("\n".join([f"== {title}", *lines]) for title, lines in screens.items()))
