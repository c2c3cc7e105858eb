"""Records made to do harm, taken through every command that opens one."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import urllib.parse
import zipfile

import pytest
from hostile_records import HARMS, SAMPLE, SECRET, in_json, sound
from opjoule import open_runs
from opjoule.base.errors import OpJouleError
from opjoule.campaign.past_times import past_times
from opjoule.cli import commands
from opjoule.pages.plots import figures
from view_client import get, served

LIMIT_S = 120.0
"""Time for one command on one record, of a computer that other programs share. One that waits for a FIFO never ends."""
COMMANDS = {
    "list": ["runs", "list", "{}"],
    "list as JSON": ["runs", "list", "{}", "--json"],
    "show": ["runs", "show", "{}/x"],
    "show as JSON": ["runs", "show", "{}/x", "--json"],
    "verify": ["runs", "verify", "{}/x"],
    "export": [
        "runs",
        "export",
        "{}/x",
        "--csv",
        "{}/../csv",
        "--perfetto",
        "{}/../p",
        "--openmetrics",
        "{}/../o",
    ],
    "note": ["runs", "note", "{}/x", "seen", "--tag", "seen"],
    "prune": ["runs", "prune", "{}", "--simulated"],
    "again": ["again", "{}/x", "--dry-run"],
    "compare": ["compare", "{}/x", "{}/y", "{}/z", "--by", "storage"],
    "compare in files": [
        *("compare", "{}/x", "{}/y", "{}/z", "--by", "storage"),
        *("--csv", "{}/../c.csv", "--html", "{}/../c.html", "--plot", "{}/../c.svg"),
    ],
    "figures": ["runs", "figures", "{}", "--out", "{}/../figures"],
    "bundle": ["runs", "bundle", "{}/x", "{}/y", "--out", "{}/../b.zip"],
    "report": ["report", "{}/x"],
    "twin": ["twin", "--fit", "{}/x", "--out", "{}/../twin.toml"],
}
EXPECTED = {0, 1, 2, 3, 4, 5, 6, 7}


@pytest.fixture(autouse=True)
def one_figure(monkeypatch):
    """One of all figures, for each takes a second."""
    monkeypatch.setattr(figures, "FIGURES", {"energy-power": figures.FIGURES["energy-power"]})


@contextlib.contextmanager
def limited(what):
    """Fails the test if the block takes too long, also if it waits inside a call of the system."""

    def late(number, frame):
        raise TimeoutError(f"{what} takes longer than {LIMIT_S:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def said(argv):
    """Exit status of a command, and everything that it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            status = commands.main(argv)
        except SystemExit as end:
            status = end.code
    return status, out.getvalue()


def carried_out(folder):
    """Everything that the commands wrote beside the records."""
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_file() or path.name == "outside.txt":
            continue
        yield path.read_bytes()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                yield from map(packed.read, packed.namelist())


def taken_through(runs):
    """Takes the record x, and two sound ones, through all commands; none fails, hangs or leaves the record."""
    for name, words in COMMANDS.items():
        with limited(name):
            status, shown = said([word.format(runs) for word in words])
        assert status in EXPECTED and shown.strip(), (name, status, shown)
        assert "Traceback" not in shown and SECRET not in shown, (name, shown)
        if status not in {0, 7}:
            assert len(shown.splitlines()[-1]) < 2000, (name, shown[:4000])
    with limited("view"), served(runs) as server:
        at = urllib.parse.urlencode({"run": "x", "start": 0, "end": 1, "columns": 10})
        for what in ("runs", "run", "power", "stretch", "running", "report"):
            status, _, body = get(server, f"/{server.token}/{what}?{at}")
            assert status in {200, 404, 400, 422, 500} and SECRET.encode() not in body, (
                what,
                status,
                body[:2000],
            )
            assert b"Traceback" not in body, (what, body)
    with limited("open_runs"), contextlib.suppress(OpJouleError):
        opened = open_runs(runs)
        assert opened.results.num_rows >= 2
        opened.sql("select count(*) from power").fetchall()
    with limited("times of earlier records"):
        past_times(runs, {"folder": "studies/s1"})
    assert all(SECRET.encode() not in content for content in carried_out(runs.parent))
    target = runs.parent / "outside.txt"
    assert not target.exists() or target.read_text() == SECRET


def comparable(tmp_path):
    """Two records on one medium and one on another, which a comparison takes."""
    runs = tmp_path / "in" / "runs"
    for name in "xyz":
        sound(runs / name)
    for path in ("asked.storage", "found.storage"):
        in_json("run.json", path, "sd", runs / "z")
    return runs


def harmed(tmp_path, harm):
    runs = comparable(tmp_path)
    HARMS[harm](runs / "x")
    return runs


@pytest.mark.slow
@pytest.mark.parametrize("harm", SAMPLE)
def test_a_record_made_to_do_harm_is_one_line_or_its_sound_part(tmp_path, harm):
    taken_through(harmed(tmp_path, harm))


@pytest.mark.slow
@pytest.mark.parametrize("harm", [name for name in HARMS if name not in SAMPLE])
def test_further_records_made_to_do_harm_are_one_line_or_their_sound_part(tmp_path, harm):
    taken_through(harmed(tmp_path, harm))


@pytest.mark.slow
def test_sound_records_are_taken_through_every_command(tmp_path):
    """What is refused above is refused for what was done to it. The record is older than plans, and short."""
    runs = comparable(tmp_path)
    for name, words in COMMANDS.items():
        status, shown = said([word.format(runs) for word in words])
        assert status == {"again": 2, "twin": 5}.get(name, 0), shown


def test_an_index_that_names_a_folder_outside_of_its_own_is_refused(tmp_path):
    sound(tmp_path / "x")
    entry = {"block": 1, "condition": {"db": "leveldb"}, "status": "complete"}
    for folder in ("../x", str(tmp_path / "x"), "linked"):
        campaign = tmp_path / "campaign"
        campaign.mkdir(exist_ok=True)
        (campaign / "linked").unlink(missing_ok=True)
        (campaign / "linked").symlink_to(tmp_path / "x")
        index = {"schema": {"name": "conditions", "version": 2}, "simulated": True}
        (campaign / "conditions.json").write_text(json.dumps({**index, "runs": [{**entry, "folder": folder}]}))
        status, shown = said(["compare", str(campaign)])
        assert status == 4 and shown.count("\n") == 1, shown


def test_a_file_of_a_folder_of_records_is_not_written_through_a_link(tmp_path):
    """The index of a stranger's folder, and the file with which a note is replaced."""
    sound(tmp_path / "runs" / "x")
    (tmp_path / "outside.txt").write_text(SECRET)
    (tmp_path / "runs" / "runs.index.tmp").symlink_to(tmp_path / "outside.txt")
    assert said(["runs", "list", str(tmp_path / "runs")])[0] == 0
    assert (tmp_path / "runs" / "runs.index").is_file()
    assert (tmp_path / "outside.txt").read_text() == SECRET
