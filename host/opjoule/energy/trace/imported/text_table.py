"""A text file as a table, whatever program wrote it: its separator, decimal mark, header and rows."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pacsv

from opjoule.base.errors import BadInput
from opjoule.energy.trace.imported.cell_values import looks_like_date, looks_like_moment, looks_like_value

HEAD_LINES: Final = 200
"""Number of lines in which the table must begin."""
LINE_MAX: Final = 1 << 16
"""Maximum number of characters of a line."""
BLANKS: Final = " "
_BLANKS: Final = re.compile(r"\s+(?![(\[])")
"""Blanks between cells; a bracket belongs to the name before it."""
SEPARATORS: Final = (",", ";", "\t", BLANKS)
_UNIT: Final = re.compile(r"[(\[]?(?:[munµμ]?[sAVW]|)[)\]]?")
"""A cell of a header line that contains units alone."""
_MARKS: Final = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}


@dataclass
class TextTable:
    """A table in a text file."""

    path: Path
    encoding: str
    separator: str
    """`,`, `;`, a tab, or BLANKS for any number of blanks and tabs"""
    before: list[str]
    """lines before the first row that are not empty, with the header"""
    lines_before: int
    """number of lines before the first row, with the header"""
    names: list[str]
    """one a column; the numbers from 1 if the file has no header"""
    header: str
    """the header line; empty if the file has none"""
    first_row: list[str]
    """the first row as cells"""
    other_lines: list[str] = field(default_factory=list)
    """lines after the first row that are no rows of the table, filled by `read`; comments are not among them"""

    def read(self, indices: Iterable[int]) -> dict[int, pa.ChunkedArray]:
        """Some columns as text; lines with another number of cells are left out. Raises: BadInput: it is no table."""
        cells = [f"c{index}" for index in range(len(self.first_row))]
        wanted = {index: cells[index] for index in indices}

        def left_out(row: Any) -> str:
            if not row.text.lstrip().startswith("#"):
                self.other_lines.append(row.text)
            return "skip"

        try:
            table = pacsv.read_csv(
                self._source(),
                read_options=pacsv.ReadOptions(column_names=cells, skip_rows=self.lines_before),
                parse_options=pacsv.ParseOptions(
                    delimiter="," if self.separator == BLANKS else self.separator,
                    invalid_row_handler=left_out,
                ),
                convert_options=pacsv.ConvertOptions(
                    include_columns=list(wanted.values()), column_types=dict.fromkeys(cells, pa.string())
                ),
            )
        except (pa.ArrowException, ValueError) as error:
            raise BadInput(f"{self.path}: not a table: {str(error).splitlines()[0]}") from None
        except OSError as error:
            raise BadInput(f"{self.path}: {error.strerror or error}") from None
        return {index: table.column(name) for index, name in wanted.items()}

    def _source(self) -> pa.BufferReader:
        text = self.path.read_bytes().decode(self.encoding, errors="replace")
        if self.separator == BLANKS:
            text = "\n".join(",".join(_quoted(split(line, BLANKS))) for line in text.splitlines())
        return pa.BufferReader(text.encode())

    def line_of(self, row: int) -> int:
        """Number of the line, from 1, that is row `row` of `read`."""
        rows = (number for number, cells in self._rows() if len(cells) == len(self.first_row))
        return next(islice(rows, row, None), self.lines_before)

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        with self.path.open(encoding=self.encoding, errors="replace") as file:
            for number, line in enumerate(file, start=1):
                if number > self.lines_before and line.strip():
                    yield number, split(line.rstrip("\r\n"), self.separator)


def _quoted(cells: list[str]) -> Iterator[str]:
    return (f'"{cell}"' if "," in cell else cell for cell in cells)


def split(line: str, separator: str) -> list[str]:
    """The cells of a line, without quotes and blanks around them."""
    if separator == BLANKS:
        return _BLANKS.split(line.strip())
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:
        return []


def find_table(path: Path) -> TextTable:
    """The table of a file. Raises: BadInput: the file cannot be read, or no two of its first lines form a table."""
    encoding, lines = _head(path)
    for number in range(len(lines)):
        cells, separator = _best_split(lines, number)
        if cells:
            return _table(path, encoding, lines, number, cells, separator)
    raise BadInput(
        f"{path}: no header line followed by a line of numbers in its first {HEAD_LINES} lines: export a table "
        "with one row a sample"
    )


def _head(path: Path) -> tuple[str, list[str]]:
    """(encoding, first lines). Raises: BadInput: the file cannot be read, or has a line that is too long."""
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"{path}: not a file: give the file that the other program wrote")
        with path.open("rb") as file:
            start = file.read(4)
            encoding = next((name for mark, name in _MARKS.items() if start.startswith(mark)), "utf-8")
            file.seek(0)
            if encoding == "utf-8":
                encoding = _utf8_or_latin(b"".join(file.readline(LINE_MAX) for _ in range(HEAD_LINES)))
        with path.open(encoding=encoding, errors="replace") as file:
            lines = [file.readline(LINE_MAX) for _ in range(HEAD_LINES)]
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    for number, line in enumerate(lines, start=1):
        if len(line) == LINE_MAX:
            raise BadInput(f"{path}: line {number} is longer than {LINE_MAX} characters: not a table")
    return encoding, [line.rstrip("\r\n") for line in lines if line]


def _utf8_or_latin(head: bytes) -> str:
    try:
        head.decode()
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _best_split(lines: list[str], number: int) -> tuple[list[str], str]:
    """(cells, separator) of a line that is the first of a table; no cells if it is none."""
    best: tuple[int, list[str], str] = (0, [], "")
    following = next((line for line in lines[number + 1 :] if line.strip()), None)
    for separator in SEPARATORS:
        cells = split(lines[number], separator)
        good = sum(map(looks_like_value, cells))
        if good < 2 or 2 * good < len([cell for cell in cells if cell]):
            continue
        if following is not None and len(split(following, separator)) != len(cells):
            continue
        if good > best[0]:
            best = good, cells, separator
    return best[1], best[2]


def _table(path: Path, encoding: str, lines: list[str], first: int, cells: list[str], separator: str) -> TextTable:
    before = [line for line in lines[:first] if line.strip()]
    names = _names(before, cells, separator)
    return TextTable(
        path=path,
        encoding=encoding,
        separator=separator,
        before=before,
        lines_before=first,
        names=names or [str(place + 1) for place in range(len(cells))],
        header=before[-1] if names else "",
        first_row=cells,
    )


def _names(before: list[str], cells: list[str], separator: str) -> list[str]:
    """Names of the columns, from one line or from a line of names and one of units; none if there is no header."""
    lines = [_header(line, cells, separator) for line in before[-2:]]
    if len(lines) == 2 and all(lines) and all(map(_UNIT.fullmatch, lines[1])):
        units = [unit.strip("()[]") for unit in lines[1]]
        return [f"{name} ({unit})" if unit else name for name, unit in zip(lines[0], units, strict=True)]
    return lines[-1] if lines else []


def _header(line: str, cells: list[str], separator: str) -> list[str]:
    """The names in a header line, as many as there are cells; none if it is no header."""
    text = line.lstrip().lstrip("#").strip()
    for names in (
        split(text, separator),
        *(split(text, other) for other in SEPARATORS),
        re.split(r"\s{2,}|\t", text),
    ):
        if len(names) == len(cells) - 1 and looks_like_date(cells[0]) and looks_like_moment(cells[1]):
            names.insert(1, f"{names[0]} of day")  # a date and a time of day below one name
        if len(names) == len(cells) - 1 and not cells[-1]:
            names.append("")
        while len(names) > len(cells) and not names[-1]:
            names.pop()
        if len(names) == len(cells) and any(names) and not any(map(looks_like_value, names)):
            return names
    return []
