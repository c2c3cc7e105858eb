"""The first lines of a conclusion: which is best, by what factor, how sure, and what decides it."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compared_records import made
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Quantity
from opjoule.results.comparison.comparison import Answers, answers_of
from opjoule.results.comparison.contrasts import Question, compare
from opjoule.results.comparison.index import ConditionRun, gather, read_index, with_result, write_index
from opjoule.results.comparison.winners import deciding_lines, winner_lines
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


def test_sd_emmc_or_ssd_for_leveldb_and_sqlite_is_answered_in_three_lines(tmp_path: Path) -> None:
    first, second, third, *_ = answers_in(campaign(tmp_path)).conclusions
    assert re.fullmatch(
        r"On LevelDB, the eMMC used the least energy above idle per operation, 1\.000 ± 0\.027.J/operation: "
        r"the SD card used 2\.8\d* times as much \(95 %: 2\.\d+ to 2\.\d+; p \(Holm\) < 0\.0001\) and "
        r"the SSD 3\.1\d* times \(95 %: .*\)\.",
        first,
    )
    assert re.match(
        r"On SQLite, the eMMC used the least energy above idle per operation, 1\.000 ± 0\.027.J/operation, with no "
        r"difference found from the SD card: the SSD used 4\.9\d* times as much "
        r"\(95 %: \d\.\d+ to \d\.\d+; p \(Holm\) < 0\.0001\)\.",
        second,
    )
    assert re.fullmatch(
        r"On the SD card, SQLite used the least energy above idle per operation, 1\.010 ± 0\.027.J/operation: LevelDB "
        r"used 2\.77\d* times as much \(95 %: [^)]*\(Holm\) < 0\.0001\)\. On the SSD, LevelDB used the least energy "
        r"above idle per operation, 3\.100 ± 0\.084.J/operation: SQLite used 1\.58\d* times as much [^.]*[^)]*\(Holm\) "
        r"< 0\.0001\)\. On the eMMC, no difference in energy above idle per operation was found between \w+ and \w+ "
        r"\(ratio [^)]*\)\.",
        third,
    )


def test_what_is_left_out_of_energy_above_idle_is_reported(tmp_path: Path) -> None:
    [line] = [line for line in answers_in(campaign(tmp_path)).conclusions if "idle power" in line]
    shown = line.replace("\N{NO-BREAK SPACE}", " ")
    assert re.match(
        r"Energy above idle leaves out idle power: on \w+, the board drew 300\.0 ± \d\.\d mW more at idle",
        shown,
    )
    assert "with the SSD than with" in shown and shown.endswith("which is 3.0 mJ per operation at its pace.")


def test_a_tail_that_decides_is_named(tmp_path: Path) -> None:
    short = answers_in(campaign(tmp_path / "a", tail=0.8)).conclusions
    [line] = [line for line in short if "after the last operation" in line]
    assert "the SSD on LevelDB (80 %) and the SSD on SQLite (80 %)" in line
    assert not any("after the last" in line for line in answers_in(campaign(tmp_path / "b")).conclusions)


def test_single_runs_crown_nobody(tmp_path: Path) -> None:
    answers = answers_in(campaign(tmp_path, 1))
    lines = answers.conclusions
    assert "used the least" not in " ".join(lines)
    assert lines[0].startswith("No medium is named best: these are single runs")
    assert [notice.kind for notice in answers.warnings] == [NoticeKind.ONE_RUN]


def test_what_is_too_short_or_single_is_left_aside_and_not_said_to_be_the_same(tmp_path: Path) -> None:
    short = Notice(NoticeKind.TOO_SHORT, "it took 0.01 s, 10 samples")
    campaign(tmp_path)
    for block in range(1, 5):
        for medium in ("sd", "emmc"):
            place = tmp_path / f"{block}-leveldb-{medium}"
            result = json.loads((place / "result.json").read_text())
            put_result(place, {**result, "notices": [short]})
    lines = answers_in(tmp_path).conclusions
    assert lines[0] == (
        "On LevelDB, nothing can be concluded on energy above idle per operation: "
        "single runs, or runs that are too short."
    )
    assert lines[2].startswith("On the SSD, LevelDB used the least energy above idle per operation, 3.10")
    assert lines[2].endswith(
        " On the eMMC and on the SD card, nothing can be concluded on energy above idle per operation: single runs, or "
        "runs that are too short."
    )


def test_a_group_of_one_run_is_left_aside(tmp_path: Path) -> None:
    campaign(tmp_path)
    for block in (2, 3, 4):
        shutil.rmtree(tmp_path / f"{block}-leveldb-emmc")
    first = answers_in(tmp_path).conclusions[0]
    assert first.startswith("On LevelDB, the SD card used the least energy above idle per operation, 2.8")
    assert first.endswith("Nothing can be concluded on the eMMC: single runs, or runs that are too short.")


def test_of_a_rate_the_highest_is_best(tmp_path: Path) -> None:
    for at, rate in enumerate((100.0, 101.0, 99.0)):
        for medium, factor in (("sd", 1.0), ("emmc", 2.0)):
            changes = {"throughput_per_s": number(factor * rate, "1/s")}
            made(tmp_path / f"{medium}{at}", 1.0, storage=medium, changes=changes)
    compared = compare(gather([str(tmp_path)])[0], Question(("storage",), ("throughput_per_s",)))
    [line] = winner_lines(compared)
    assert (
        line.startswith("The eMMC had the highest throughput, 200.0 ± ")
        and "2.000 times that of the SD card (95 %" in line
    )
    assert deciding_lines([compared]) == []


def test_where_nothing_differs_in_any_stratum_one_line_says_so(tmp_path: Path) -> None:
    runs = []
    for medium in ("sd", "emmc", "nvme"):
        for db in ("leveldb", "sqlite"):
            for at, value in enumerate((1.0, 1.02, 0.98)):
                name = f"{medium}-{db}-{at}"
                made(tmp_path / name, value, db=db, storage=medium)
                runs.append(ConditionRun(at, {"db": db, "storage": medium}, name))
    write_index(tmp_path, runs, simulated=False)
    [line] = winner_lines(compare(gather([str(tmp_path)])[0], Question(("db",))))
    assert line == (
        "On every medium, no difference in energy above idle per operation was found between LevelDB and SQLite."
    )


@pytest.mark.parametrize("count", [2, 3, 4])
def test_where_nothing_differs_nobody_wins(tmp_path: Path, count: int) -> None:
    for medium in ("sd", "emmc", "nvme", "disk")[:count]:
        for at, value in enumerate((1.0, 1.02, 0.98)):
            made(tmp_path / f"{medium}{at}", value, storage=medium)
    [line] = winner_lines(compare(gather([str(tmp_path)])[0], Question(("storage",))))
    assert line.startswith("No difference in energy above idle per operation was found between ")


LEVELS = {"rig-1": 1.0, "rig-2": 2.0}
NOISE = (0.0, 0.002, -0.001, 0.001, -0.002, 0.0015, -0.0015, 0.001)


def fleet(folder: Path, factors: dict[str, float], blocks: dict[str, tuple[int, ...]]) -> str:
    """First conclusion on media with the given blocks; those above 4 ran on a rig of twice the level."""
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
    return answers_in(folder).conclusions[0]


def test_with_missing_cells_on_several_rigs_the_winner_is_that_of_the_common_blocks(tmp_path: Path) -> None:
    """The SD card has the lower mean of all its runs, but uses more in each block that both have."""
    missing = {"sd": (1, 2, 3, 4, 5), "emmc": (1, 2, 5, 6, 7, 8)}
    line = fleet(tmp_path, {"sd": 1.1, "emmc": 1.0}, missing)
    assert re.fullmatch(
        r"The eMMC used the least energy above idle per operation: the SD card used 1\.099\d* times as much "
        r"\(95 %: 1\.0\d+ to 1\.1\d+; p < 0\.0001\)\.",
        line,
    )


def test_a_mean_of_the_same_blocks_is_stated(tmp_path: Path) -> None:
    every = (1, 2, 5, 6)
    line = fleet(tmp_path, {"sd": 1.1, "emmc": 1.0}, {"sd": every, "emmc": every})
    assert line.startswith("The eMMC used the least energy above idle per operation, 1.50")


def test_a_medium_without_common_blocks_is_left_aside(tmp_path: Path) -> None:
    """SSD and eMMC beat the SD card and were never measured in one block."""
    blocks = {"sd": (1, 2, 3, 5, 6, 7), "emmc": (1, 2, 3), "ssd-usb3": (5, 6, 7)}
    line = fleet(tmp_path, {"sd": 1.1, "emmc": 1.0, "ssd-usb3": 0.9}, blocks)
    assert line.startswith("The eMMC used the least energy above idle per operation, 1.0003")
    assert line.endswith(
        " Nothing can be concluded on the SSD: single runs, runs that are too short, "
        "or fewer than two blocks in common on one rig."
    )


def test_a_noisy_medium_of_the_lowest_mean_that_is_better_than_none_is_not_the_best(tmp_path: Path) -> None:
    values = {"sd": (1.0, 0.7, 1.2), "emmc": (1.0, 1.01, 1.02), "ssd-usb3": (1.1, 1.11, 1.12)}
    for medium, energies_j in values.items():
        for at, value in enumerate(energies_j):
            made(tmp_path / f"{medium}{at}", value, storage=medium)
    [line] = winner_lines(compare(gather([str(tmp_path)])[0], Question(("storage",))))
    assert line.startswith(
        "Apart from the SD card, the eMMC used the least energy above idle per operation, "
        "1.010 ± 0.026\N{NO-BREAK SPACE}J/operation: the SSD used 1.099 times as much (95 %: "
    )
    assert "Undecided is the SD card, 0.96 times that of the eMMC (95 %: 0.31 to 1.61; p (Holm) = " in line


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
    assert answers_in(tmp_path).conclusions[0] == (
        "Nothing can be concluded on energy above idle per operation: "
        "each is significantly worse than another in the blocks that both have."
    )


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
    [line] = [line for line in answers_in(tmp_path).conclusions if "idle power" in line]
    assert "the board drew 200 " in line and "with the SD card than with the eMMC" in line


def conclusion(folder: Path, values: dict[str, tuple[float, ...]], **axes: str) -> str:
    """The one line on media with these energies above idle per operation, one for each block."""
    runs = []
    for medium, energies_j in values.items():
        for block, value in enumerate(energies_j, 1):
            made(folder / f"{block}-{medium}", value, storage=medium, changes={"repeats": 1}, **axes)
            runs.append(ConditionRun(block, {"storage": medium}, f"{block}-{medium}"))
    write_index(folder, runs, simulated=False)
    [line] = winner_lines(compare(gather([str(folder)])[0], Question(("storage",))))
    return line


EMMC = (1.0, 1.02, 0.98, 1.01, 0.99)
SD = (1.9, 1.94, 1.86, 1.92, 1.88)


def test_the_highest_mean_that_is_only_noisier_is_undecided(tmp_path: Path) -> None:
    line = conclusion(tmp_path, {"sd": SD, "emmc": EMMC, "ssd-usb3": (1.2, 3.4, 1.1, 3.0, 1.7)})
    assert line.startswith("The eMMC used the least energy above idle per operation, 1.000 ± ")
    assert "no difference" not in line and "the SD card used 1.900 times as much" in line
    found = re.search(
        r" Undecided is the SSD, 2\.1 times that of the eMMC \(95 %: 0\.7\d* to 3\.4; p \(Holm\) = 0\.\d+\)\. "
        r"Forecast from the present spread: (\d+) more blocks would decide it in 8 of 10 cases\.$",
        line,
    )
    assert found and 2 <= int(found[1]) <= 10


def test_what_is_not_told_apart_and_near_is_named_beside_the_best(tmp_path: Path) -> None:
    line = conclusion(tmp_path, {"sd": SD, "emmc": EMMC, "ssd-usb3": (1.1, 0.9, 1.2, 0.95, 1.0)})
    assert ", with no difference found from the SSD: the SD card used 1.900 times as much" in line
    assert "Undecided" not in line


def test_a_rate_that_is_only_noisier_is_undecided(tmp_path: Path) -> None:
    rates = {"sd": (50, 51, 49, 50), "emmc": (100, 101, 99, 100), "ssd-usb3": (90, 20, 60, 25)}
    for medium, of_medium in rates.items():
        for at, rate in enumerate(of_medium):
            changes = {"throughput_per_s": number(float(rate), "1/s")}
            made(tmp_path / f"{medium}{at}", 1.0, storage=medium, changes=changes)
    [line] = winner_lines(compare(gather([str(tmp_path)])[0], Question(("storage",), ("throughput_per_s",))))
    assert line.startswith("The eMMC had the highest throughput, 100.0 ± ") and "that of the SD card (95 %" in line
    assert "Undecided is the SSD, 0.49 times that of the eMMC (95 %: " in line


def test_more_blocks_decide_as_the_forecast_says(tmp_path: Path) -> None:
    """As many blocks again as it asks for, of the same spread, leave nothing undecided."""
    few, noisy = EMMC, (1.2, 3.4, 1.1, 3.0, 1.7)
    assert "Undecided" in conclusion(tmp_path / "few", {"sd": SD, "emmc": few, "ssd-usb3": noisy})
    more = conclusion(tmp_path / "more", {"sd": SD * 3, "emmc": few * 3, "ssd-usb3": noisy * 3})
    assert "Undecided" not in more and "and the SSD 2.08 times" in more


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


def test_where_the_two_costs_have_different_winners_one_sentence_says_so_with_the_time(
    tmp_path: Path,
) -> None:
    lines = costly(tmp_path, UJ_AND_US).conclusions
    assert lines[-3] == (
        "On the SD card and on the SSD, SQLite used the least energy per operation where the board is on anyway, "
        "LevelDB where it is on only for this work: SQLite took 6.3 to 7.0 times as long."
    )
    assert lines[-2].startswith(
        "On the SD card and on the SSD, SQLite used the least energy above idle per operation: "
    )
    assert lines[-1].startswith("On the SD card and on the SSD, LevelDB used the least energy in all per operation: ")
    same = [line for line in lines if line.startswith("On the eMMC, LevelDB used the least energy per operation")]
    assert len(same) == 1
    assert re.search(r"or only for this work: above idle \([^)]*\), SQLite used 2\.0\d* times", same[0])
    assert re.search(r"; in all \([^)]*\), SQLite used 5\.9\d* times as much", same[0])


def test_the_same_winner_by_both_costs_is_named_once(tmp_path: Path) -> None:
    first, *_ = costly(tmp_path, {"leveldb": {"sd": (160.0, 300.0), "emmc": (90.0, 250.0)}}).conclusions
    assert re.fullmatch(
        r"On LevelDB, the eMMC used the least energy per operation, whether the board is on anyway or only for this "
        r"work: "
        r"above idle \(90\.\d* ± [^)]*\), the SD card used 1\.7\d* times as much \(95 %: [^)]*\(Holm\) < 0\.0001\); "
        r"in all \(840 ± [^)]*\), the SD card used 1\.26\d* times as much \(95 %: [^)]*\(Holm\) [^)]*\)\.",
        first,
    )


def test_no_difference_by_either_cost_is_said_once(tmp_path: Path) -> None:
    [line, *_] = costly(tmp_path, {"leveldb": {"sd": (90.0, 250.0), "emmc": (90.2, 250.4)}}).conclusions
    assert line.startswith(
        "On LevelDB, no difference in energy per operation was found between the SD card and the eMMC "
        "(ratio above idle 1.002, 95 %: "
    )
    assert "; in all 1.00" in line


def test_what_is_undecided_in_one_of_many_strata_is_named_with_its_place(tmp_path: Path) -> None:
    values = {"sqlite": SD, "leveldb": EMMC, "rocksdb": SD}
    runs = []
    for medium in ("sd", "emmc", "ssd-usb3"):
        noisy = {"rocksdb": (1.2, 3.4, 1.1, 3.0, 1.7)} if medium == "emmc" else {}
        for db, energies_j in (values | noisy).items():
            for block, value in enumerate(energies_j, 1):
                name = f"{block}-{db}-{medium}"
                made(tmp_path / name, value, storage=medium, db=db, changes={"repeats": 1})
                runs.append(ConditionRun(block, {"db": db, "storage": medium}, name))
    write_index(tmp_path, runs, simulated=False)
    [line] = winner_lines(compare(gather([str(tmp_path)])[0], Question(("db",))))
    assert line.startswith(
        "On every medium, LevelDB used the least energy above idle per operation: SQLite used 1.9 times"
    )
    assert "Undecided is RocksDB on the eMMC, 2.1 times that of LevelDB (95 %: " in line
    assert re.search(r"Forecast from the present spread: \d+ more blocks would decide it in 8 of 10 cases\.$", line)


def test_no_two_winners_are_set_against_each_other_if_an_undecided_one_may_be_better(tmp_path: Path) -> None:
    """SQLite has the lowest mean above idle and is noisy: RocksDB, better than LevelDB, is not said to be the best."""
    cells = {"sqlite": (2.4, 0.1, 1.9, 0.2, 0.3), "rocksdb": EMMC, "leveldb": SD}
    in_all = {"sqlite": 9.0, "rocksdb": 5.0, "leveldb": 3.0}
    runs = []
    for db, energies_j in cells.items():
        for block, value in enumerate(energies_j, 1):
            total = number(in_all[db] * (1 + 0.001 * block), "J/operation")
            made(
                tmp_path / f"{block}-{db}",
                value,
                db=db,
                changes={"energy_per_operation_j": total, "repeats": 1},
            )
            runs.append(ConditionRun(block, {"db": db}, f"{block}-{db}"))
    write_index(tmp_path, runs, simulated=False)
    lines = winner_lines(compare(gather([str(tmp_path)])[0], Question(("db",))))
    assert not any("where the board is on anyway" in line for line in lines)
    assert lines[0].startswith("Apart from SQLite, RocksDB used the least energy above idle per operation, ")
    assert lines[1].startswith("LevelDB used the least energy in all per operation, ")
