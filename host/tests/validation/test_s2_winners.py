"""Cells of study S2 with the paper's best store: the study's job measures them, and only whole cells are counted."""

import csv

import pytest
import s2_winners

FEW = ["--records", "100", "--size", "0-1KiB", "--data", "random", "--durability", "async"]


@pytest.mark.slow
def test_a_cell_is_counted_once_all_stores_are_measured_and_none_is_measured_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["s2_winners.py", *FEW, "--out", str(tmp_path)])
    assert s2_winners.main() == 0
    medium, *lines = capsys.readouterr().out.splitlines()
    assert ", on " in medium and "; load " in medium
    assert lines[0] == "| figure | here | insert | get | update | remove | close | all |"
    counted = lines[2:4]
    assert [line.split(" | ")[:2] for line in counted] == [["| 2.2", "100, async"], ["| 4.2", "100, async"]]
    assert all(line.count(" of 1 ") == 5 and line.endswith(" of 5 |") for line in counted)
    best = [*csv.DictReader((tmp_path / "best.csv").open())]
    same = sum(row["paper"].endswith(f" {row['system']}") for row in best if row["paper"].startswith("2.2"))
    assert lines[2].endswith(f"| {same} of 5 |")
    assert same == 5 or lines[4].startswith(
        f"2.2: another store in {5 - same} cells, the paper's within a factor of 2 "
    )
    measured = sorted(tmp_path.glob("*.jsonl"))
    assert len(measured) == 6 and len((tmp_path / "loads.txt").read_text().splitlines()) == 6
    rows = [row for file in measured[1:] for row in s2_winners.rows({"system": file.name.split("-")[0]}, 1, file)]
    assert rows and not s2_winners.table_of(s2_winners.STUDY, rows).rows, "a store is missing"
    monkeypatch.setattr(s2_winners, "measure", None)
    assert s2_winners.main() == 0 and capsys.readouterr().out.splitlines()[1:] == lines
