"""Exchanges of time stamps in a file that a killed run leaves."""

import pytest
from opjoule.base.errors import RecordFault
from opjoule.clocks.exchanges import Exchange, ExchangeFile, read_exchanges

MADE = [Exchange(1, 2, 3, 4), Exchange(10, 20, 30, 40)]


def write_exchanges(path):
    file = ExchangeFile(path)
    for exchange in MADE:
        file.append(exchange)
    file.close()


def test_what_was_appended_is_read_and_a_torn_line_is_not(tmp_path):
    path = tmp_path / "exchanges.csv"
    write_exchanges(path)
    assert read_exchanges(path) == MADE
    path.write_text(path.read_text() + "100,200")
    assert read_exchanges(path) == MADE


def test_no_file_holds_none_and_a_file_is_never_overwritten(tmp_path):
    assert read_exchanges(tmp_path / "none.csv") == []
    write_exchanges(tmp_path / "exchanges.csv")
    with pytest.raises(FileExistsError):
        ExchangeFile(tmp_path / "exchanges.csv")


@pytest.mark.parametrize("line", ["1,2,3", "1,2,3,x", "1,2,3,4,5"])
def test_a_corrupt_line_is_reported_in_one_line(tmp_path, line):
    path = tmp_path / "exchanges.csv"
    write_exchanges(path)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(RecordFault, match=r"exchanges\.csv is corrupt"):
        read_exchanges(path)
