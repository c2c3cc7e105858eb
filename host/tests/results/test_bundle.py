"""A bundle: made of records, moved, opened, checked, and with the same figures; nothing of this computer in it."""

from __future__ import annotations

import csv
import io
import json
import shutil
import zipfile
import zlib
from hashlib import sha256

import pytest
from opjoule.cli.commands import main
from opjoule.pages.plots import figures
from opjoule.results.bundle import CHECKSUMS, CRATE, Redaction
from opjoule.results.comparison.verdicts import AGREED
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.studies.command import JobStudy
from opjoule.runs.studies.folder import find_study
from plotted_runs import make_campaign
from report_record import make_record
from study_records import make, study_record


@pytest.fixture(autouse=True)
def one_figure(monkeypatch):
    """One of all figures, for each takes a second."""
    monkeypatch.setattr(figures, "FIGURES", {"energy-power": figures.FIGURES["energy-power"]})


@pytest.fixture
def records(tmp_path):
    """Two records whose texts name this computer."""
    folder = tmp_path / "runs" / "mine"
    folder.mkdir(parents=True)
    for db in ("leveldb", "sqlite"):
        place = folder / db
        make_record(place, db=db, out=f"/home/ada/secret/{db}")
        record = RunRecord.open(place)
        (place / "raw").mkdir(exist_ok=True)
        (place / "raw" / "run-1.log").write_text("read /home/ada/secret/data.txt on ada@laptop.example\n")
        record.update(found={"command": ["host/measure.py", "--out", "/home/ada/secret/x"]})
        record.finish("complete")
    return folder


@pytest.mark.slow
def test_a_bundle_of_one_record_is_reported_in_the_singular(records, tmp_path, capsys):
    out = tmp_path / "one.zip"
    assert main(["runs", "bundle", str(records / "leveldb"), "--out", str(out)]) == 0
    assert f"{out}: 1 record, " in capsys.readouterr().out
    assert main(["runs", "open", str(out), "--out", str(tmp_path / "opened")]) == 0
    assert "1 run record " in capsys.readouterr().out


@pytest.mark.slow
def test_a_bundle_is_opened_elsewhere_with_the_same_figures_and_nothing_of_this_computer(records, tmp_path, capsys):
    out = tmp_path / "study.zip"
    assert main(["runs", "bundle", str(records), "--out", str(out), "--license", "CC-BY-4.0"]) == 0
    shutil.move(out, moved := tmp_path / "elsewhere.zip")
    opened = tmp_path / "opened"
    assert main(["runs", "open", str(moved), "--out", str(opened)]) == 0
    assert "SIMULATED" in capsys.readouterr().out
    for path in opened.rglob("*"):
        if path.is_file() and (opened / "program") not in path.parents:  # OpJoule's own sources
            assert b"secret" not in path.read_bytes() and b"ada@" not in path.read_bytes(), path
    assert main(["runs", "verify", str(opened / "records")]) == 0
    assert main(["runs", "figures", str(opened / "records"), "--out", str(tmp_path / "again")]) == 0
    packed = {path.name: path.read_bytes() for path in (opened / "figures").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == packed
    for db in ("leveldb", "sqlite"):
        there, original = (
            json.loads((folder / db / "result.json").read_text()) for folder in (opened / "records/mine", records)
        )
        assert there == original
    crate = json.loads((opened / "ro-crate-metadata.json").read_text())
    root = next(entity for entity in crate["@graph"] if entity["@id"] == "./")
    assert root["license"] == "CC-BY-4.0" and "SIMULATED" in root["description"]
    named = {part["@id"] for part in root["hasPart"]}
    assert {"CITATION.cff", "figures/methods.txt", "records/mine/sqlite/run.json"} <= named
    assert named == {entity["@id"] for entity in crate["@graph"] if entity["@type"] == "File"}


@pytest.mark.slow
def test_a_campaign_is_compared_in_its_bundle_and_again_where_it_is_opened(tmp_path, capsys):
    campaign = make_campaign(tmp_path / "media")
    for name in ("a.zip", "b.zip"):
        assert main(["runs", "bundle", str(campaign), "--name", "n", "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert main(["runs", "open", str(tmp_path / "a.zip"), "--out", str(tmp_path / "opened")]) == 0
    there = tmp_path / "opened" / "records" / "media"
    assert f"compared {there / 'report.html'}" in capsys.readouterr().out
    assert "records/media" in (there / "report.html").read_text()
    methods = (tmp_path / "opened" / "figures" / "methods.txt").read_text()
    assert "Left out: records/media/failed" in methods and "/tmp/" not in methods
    answers = []
    for folder in (campaign, there):
        assert main(["compare", str(folder), "--by", "storage", "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out)["contrasts"])
    assert answers[0] and answers[0] == answers[1]


def test_the_same_records_make_the_same_file(records, tmp_path):
    for name in ("a.zip", "b.zip"):
        assert main(["runs", "bundle", str(records), "--name", "n", "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_names_stay_where_they_are_asked_for(records, tmp_path):
    out = tmp_path / "study.zip"
    assert main(["runs", "bundle", str(records), "--out", str(out), "--keep-names"]) == 0
    with zipfile.ZipFile(out) as packed:
        assert b"/home/ada/secret" in packed.read("records/mine/sqlite/run.json")


def change(bundle, out, change_name: str, content: bytes):
    with zipfile.ZipFile(bundle) as packed, zipfile.ZipFile(out, "w") as made:
        for name in packed.namelist():
            made.writestr(name, content if name == change_name else packed.read(name))
        if change_name not in packed.namelist():
            made.writestr(change_name, content)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("records/mine/sqlite/result.json", "was changed"),
        ("records/mine/more.txt", "no checksum"),
        ("../outside.txt", "outside"),
    ],
)
def test_a_bundle_that_was_changed_is_not_opened(records, tmp_path, capsys, name, says):
    main(["runs", "bundle", str(records), "--out", str(tmp_path / "study.zip")])
    change(tmp_path / "study.zip", tmp_path / "changed.zip", name, b"{}")
    assert main(["runs", "open", str(tmp_path / "changed.zip"), "--out", str(tmp_path / "opened")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "opened").exists() and not (tmp_path / "outside.txt").exists()


def packed(entries: dict[str, bytes]) -> bytes:
    """A ZIP file with these entries and their checksums."""
    sums = "".join(f"{sha256(content).hexdigest()}  {name}\n" for name, content in entries.items())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in {CHECKSUMS: sums.encode(), **entries}.items():
            made.writestr(name, content)
    return out.getvalue()


def described(graph: object) -> bytes:
    return packed({CRATE: json.dumps({"@graph": graph}).encode(), "records/x.txt": b"x" * 5000})


ROOT = {"@id": "./", "name": "mine", "description": "of energy"}
SOUND = described([ROOT])


def with_field(at: int, value: int, size: int = 2) -> bytes:
    """The sound file with a field of every entry changed: `at` counts from the entry's head in the directory."""
    content = bytearray(SOUND)
    for head, shift in ((b"PK\x01\x02", 0), (b"PK\x03\x04", -2)):
        place = content.find(head)
        while place >= 0:
            content[place + at + shift : place + at + shift + size] = value.to_bytes(size, "little")
            place = content.find(head, place + 4)
    return bytes(content)


HOSTILE = {
    "one that becomes 1,000 times as large": (lambda: packed({"a": bytes(100 << 20)}), "100 times"),
    "checksums of 70 MB": (
        lambda: packed({"/" * 999 + str(n): b"" for n in range(70_000)}),
        "larger than 64 MiB",
    ),
    "an encrypted one": (lambda: with_field(8, 1), "is encrypted"),
    "an unknown compression": (lambda: with_field(10, 97), "compressed in another way"),
    "a broken stream": (lambda: SOUND.replace(zlib.compress(b"x" * 5000)[2:9], b"\xff" * 7), "damaged"),
    "a cut one": (lambda: SOUND[:-40], "damaged"),
    "no graph": (lambda: packed({CRATE: b"{}"}), "@graph"),
    "a number for a graph": (lambda: described(5), "damaged"),
    "numbers in the graph": (lambda: described([5]), "damaged"),
    "no root": (lambda: described([]), "does not describe it"),
    "a number for a name": (lambda: described([{**ROOT, "name": 5}]), "does not describe it"),
    "no description": (lambda: described([{"@id": "./", "name": "x"}]), "does not describe it"),
    "no description at all": (lambda: packed({"a": b"b"}), CRATE),
    "a deep description": (lambda: packed({CRATE: b"[" * 100_000}), "damaged"),
    "a description that is no text": (lambda: packed({CRATE: b"\xff\xfe"}), "damaged"),
    "a file in the place of a folder": (lambda: packed({CRATE: described([ROOT]), "a": b"", "a/b": b""}), ""),
    "a name that is too long": (
        lambda: packed({CRATE: json.dumps({"@graph": [ROOT]}).encode(), "n" * 300: b""}),
        "",
    ),
}


@pytest.mark.parametrize("harm", HOSTILE)
def test_a_file_that_was_made_to_do_harm_is_refused_in_one_line_and_leaves_nothing(tmp_path, capsys, harm):
    made, says = HOSTILE[harm]
    (tmp_path / "x.zip").write_bytes(made())
    out = tmp_path / "folder" / "opened"
    out.parent.mkdir()
    assert main(["runs", "open", str(tmp_path / "x.zip"), "--out", str(out)]) in {1, 2}
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1 and len(said) < 800
    assert list(out.parent.iterdir()) == []


def test_a_bundle_with_nothing_but_its_description_is_opened(tmp_path, capsys):
    """The files above are refused for what was changed in them."""
    (tmp_path / "x.zip").write_bytes(SOUND)
    assert main(["runs", "open", str(tmp_path / "x.zip"), "--out", str(tmp_path / "o")]) == 0
    assert capsys.readouterr().out.startswith("mine: of energy\n")
    assert (tmp_path / "o/records/x.txt").stat().st_size == 5000


def test_no_bundle_has_a_file_that_a_link_leads_to(records, tmp_path, capsys):
    (tmp_path / "secret.txt").write_text("not yours")
    (records / "index.txt").symlink_to(tmp_path / "secret.txt")
    assert main(["runs", "bundle", str(records), "--out", str(tmp_path / "study.zip")]) == 1
    assert f"{records / 'index.txt'}: " in capsys.readouterr().err
    assert not (tmp_path / "study.zip").exists()


def test_what_is_no_bundle_or_no_record_is_one_line(tmp_path, capsys):
    (tmp_path / "x.zip").write_bytes(b"no zip")
    assert main(["runs", "open", str(tmp_path / "x.zip"), "--out", str(tmp_path / "o")]) == 2
    assert f"{tmp_path}/x.zip " in capsys.readouterr().err
    assert main(["runs", "open", str(tmp_path), "--out", str(tmp_path / "o")]) == 2
    assert f"{tmp_path} is a folder" in capsys.readouterr().err
    assert main(["runs", "bundle", str(tmp_path), "--out", str(tmp_path / "y.zip")]) == 2
    assert "contains no record" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("/home/ada/runs/x.json", "x.json"),
        ("ssh:pi@10.0.0.7", "ssh"),
        ("ada@laptop says", "user@host says"),
        ("laptop-7 by ada", "host by user"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("host/measure.py --out runs/x", "host/measure.py --out runs/x"),
        ("1/2 of 3 MB/s", "1/2 of 3 MB/s"),
        ("from /proc/stat, in steps", "from /proc/stat, in steps"),
    ],
)
def test_paths_and_names_are_taken_out_of_texts_and_nothing_else(text, plain):
    assert Redaction("laptop-7", "ada").text(text) == plain


def records_of_s1(folder):
    for system, factor in (("leveldb", 1.0), ("sqlite", 3.0)):
        for block in range(2):
            make(folder, system, "sd", "zipfian", "read", factor * (1 + block / 100), block=block + 1)


def records_of_s3(folder):
    parts = ({"rows": (1000, 100000)},)
    given = {"along": (), "scale": 1.0, "seed": 1, "dataset": None, "connections": None, "cache": folder}
    for system, mean_s in (("duckdb", 3.0), ("postgresql", 1.0)):
        plan = JobStudy.of(find_study("s3"), {"system": system}, parts, **given).to_json()
        for block in (1, 2):
            reported = [
                {"phase": "READ", "cell": {"rows": str(rows)}, "figures": {"mean_s": mean_s * rows * (1 + block / 97)}}
                for rows in parts[0]["rows"]
            ]
            study_record(folder / f"{system}-{block}", "", study=plan, reported=reported, block=block)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("study", "records_of", "direction", "drawn"),
    [
        ("s1", records_of_s1, "open", set()),
        ("s3", records_of_s3, AGREED, {"02-figure-2-s3-by-rows-READ.svg"}),
    ],
)
def test_a_study_s_bundle_holds_all_that_its_verdicts_are_made_of(
    study, records_of, direction, drawn, tmp_path, monkeypatch, capsys
):
    """Opened elsewhere, figures, tables and verdicts are made again by the bundle's definition of the study."""
    (tmp_path / "runs").mkdir()
    records_of(tmp_path / "runs")
    out, opened = tmp_path / "study.zip", tmp_path / "opened"
    assert main(["runs", "bundle", str(tmp_path / "runs"), "--study", study, "--out", str(out)]) == 0
    assert "not drawn: Figure 5 " in capsys.readouterr().out
    assert main(["runs", "open", str(out), "--out", str(opened)]) == 0
    said = capsys.readouterr().out
    [again] = [line for line in said.splitlines() if line.startswith("draw again ")]
    assert (opened / f"study/{study}/study.toml").is_file() and (opened / "run-record.md").is_file()
    assert (opened / "program/host/opjoule/results/comparison/verdicts.py").is_file()
    monkeypatch.chdir(tmp_path)
    assert main(["runs", *again.split()[3:]]) == 0
    packed = {path.name: path.read_bytes() for path in (opened / "figures").iterdir()}
    verdicts = csv.DictReader(io.StringIO(packed[f"{study}-conclusions.csv"].decode()))
    assert direction in {verdict["direction"] for verdict in verdicts} and b"direction  " in packed["methods.txt"]
    assert {name for name in packed if name.endswith(".svg")} == drawn
    assert {path.name: path.read_bytes() for path in (tmp_path / "figures").iterdir()} == packed


@pytest.mark.slow
def test_records_of_two_commits_are_bundled_if_the_user_says_so_and_the_readme_says_it_too(records, tmp_path, capsys):
    RunRecord.open(records / "sqlite").update(found={"opjoule": "0.1.0", "commit": "f" * 40})
    out = tmp_path / "two.zip"
    assert main(["runs", "bundle", str(records), "--out", str(out)]) == 2
    assert "--although opjoule" in capsys.readouterr().err
    assert main(["runs", "bundle", str(records), "--out", str(out), "--although", "opjoule"]) == 0
    with zipfile.ZipFile(out) as packed:
        assert (
            "--although opjoule" in packed.read(next(n for n in packed.namelist() if n.endswith("README.txt"))).decode()
        )
