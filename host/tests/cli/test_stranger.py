"""A record that a stranger has made: whatever its texts hold, no page, table or terminal carries them out."""

import csv
import io
import re
import shutil
from html.parser import HTMLParser

import pytest
from opjoule.base.errors import OpJouleError
from opjoule.base.files import csv_text
from opjoule.cli import start
from opjoule.cli.failures import one_line
from opjoule.runs.record.directory import Notes, write_notes
from opjoule.runs.record.json_file import write_json
from opjoule.runs.record.run_record import DIGEST, RunRecord, _digest
from raw_record import finished_record

SCRIPT = "<script>alert(1)</script>"
PAYLOAD = f'=HYPERLINK("x")\x1b[31m\x1b]0;t\x07{SCRIPT}\'"><img src=x onerror=alert(2)>\\input{{/etc/passwd}}'


def leaves(value, path=()):
    """Paths of every text in nested dicts and lists."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from leaves(entry, (*path, key))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from leaves(entry, (*path, number))
    elif isinstance(value, str):
        yield path


def put(value, path, text):
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = text


def poisoned(directory):
    """Every text of run.json that may be anything is the payload; the checksum fits. Gives how many."""
    record = RunRecord.open(directory)
    document, count = record.document, 0
    for path in list(leaves(document)):
        if path[0] in {"schema", "status", DIGEST, "checksums"}:
            continue
        before = document
        for key in path:
            before = before[key]
        put(document, path, PAYLOAD)
        document[DIGEST] = _digest(document)
        write_json(directory / "run.json", document)
        try:
            RunRecord.open(directory)
            count += 1
        except OpJouleError:
            put(document, path, before)
    document.setdefault("notices", []).append({"kind": "fault", "line": PAYLOAD, "remedy": PAYLOAD, "about": PAYLOAD})
    document[DIGEST] = _digest(document)
    write_json(directory / "run.json", document)
    RunRecord.open(directory)
    write_notes(directory, Notes(PAYLOAD))
    return count


class Elements(HTMLParser):
    """The scripts of a page, and what in it would run."""

    def __init__(self):
        super().__init__()
        self.scripts, self.handlers, self.outside, self._in_script = [], [], [], False

    def handle_starttag(self, tag, attributes):
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")
        self.handlers += [name for name, _ in attributes if name.startswith("on")]
        self.outside += [
            value
            for name, value in attributes
            if name in {"src", "href"} and value and not value.startswith(("#", "data:"))
        ]

    def handle_data(self, data):
        if self._in_script:
            self.scripts[-1] += data

    def handle_endtag(self, tag):
        self._in_script = False


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    made = tmp_path_factory.mktemp("stranger") / "runs"
    finished_record(made / "a")
    shutil.copytree(made / "a", made / "b")
    assert poisoned(made / "a") > 5
    return made


def said(capsys, argv):
    try:
        status = start.main(argv)
    except OpJouleError as refused:
        status = refused.exit_code
        print(one_line(str(refused)))
    shown = capsys.readouterr()
    return status, shown.out + shown.err


def test_no_cell_of_a_table_is_a_formula():
    cells = ["=1+1", "-1+1", "+a", "@a", "\t=1", "-1.5", "+2e-3", "-inf", -1.5, None, "a=b"]
    wanted = ["'=1+1", "'-1+1", "'+a", "'@a", "'\t=1", "-1.5", "+2e-3", "-inf", "-1.5", "", "a=b"]
    assert next(csv.reader(io.StringIO(csv_text([cells])))) == wanted


COMMANDS = [
    ["report", "{}/a"],
    ["verify", "{}/a"],
    ["runs", "list", "{}"],
    ["runs", "list", "{}", "--json"],
    ["compare", "{}/a", "{}/b"],
    ["compare", "{}/a", "{}/b", "--json"],
]


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_no_terminal_gets_an_escape_of_a_record(stranger, capsys, argv):
    _, shown = said(capsys, [word.format(stranger) for word in argv])
    assert shown
    assert "\x1b" not in shown and "\x07" not in shown
    assert "Traceback" not in shown


def test_no_page_runs_what_a_record_holds(stranger, capsys):
    said(capsys, ["report", str(stranger / "a")])
    pages = list(stranger.rglob("*.html"))
    assert pages
    for page in pages:
        elements = Elements()
        elements.feed(page.read_text())
        assert not elements.handlers and not elements.outside
        assert not any("<script" in script or "</script" in script for script in elements.scripts)
        assert page.read_text().count(SCRIPT) == 0


def test_no_cell_of_a_csv_file_is_a_formula(stranger, tmp_path, capsys):
    status, shown = said(capsys, ["runs", "export", str(stranger / "a"), "--csv", str(tmp_path / "out")])
    files = list((tmp_path / "out").rglob("*.csv"))
    assert status in {0, 4} and files, shown
    for path in files:
        with path.open(newline="") as file:
            for row in csv.reader(file):
                for cell in row:
                    assert not cell.startswith(("=", "+", "@", "\t", "\r")), (path.name, cell)
                    assert not cell.startswith("-") or re.fullmatch(r"-(inf|[\d.eE+-]+)", cell), cell
