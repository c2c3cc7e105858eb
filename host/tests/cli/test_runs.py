"""host/runs.py: which records there are, whether they are sound, and what is deleted."""

import json
import shutil
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from opjoule.cli import commands
from opjoule.cli.commands import main
from opjoule.results.comparison.index import ConditionRun, read_index, write_index
from opjoule.runs.record.directory import held
from opjoule.runs.record.run_record import RunRecord
from raw_record import finished_record
from report_record import make_record

ABOVE_IDLE = "above idle per operation"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A complete record, a failed one, one that goes on, and one that is damaged."""
    folder = tmp_path_factory.mktemp("runs")
    finished_record(folder / "a-complete")
    make_record(folder / "deeper" / "b-failed", status="failed", simulated=False, db="sqlite")
    RunRecord.create(folder / "c-going-on", {"db": "lmdb"}, simulated=False)
    (folder / "d-damaged").mkdir()
    (folder / "d-damaged" / "run.json").write_text("{")
    (folder / "no-record").mkdir()
    return folder


@pytest.fixture
def folder(made, tmp_path):
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"


def output(capsys, *words, status=0):
    capsys.readouterr()
    assert main(["runs", *map(str, words)]) == status
    return capsys.readouterr().out


def names(text):
    return [line.split()[0].rsplit("/", 1)[-1] for line in text.splitlines()[1:]]


def test_every_record_is_listed_with_its_status_and_headline(made, capsys):
    text = output(capsys, "list", made, "--sort", "name")
    assert names(text) == ["a-complete", "c-going-on", "d-damaged", "b-failed"]
    complete, going_on, damaged, failed = text.splitlines()[1:]
    assert "SIMULATED" in complete and "±" in complete and ABOVE_IDLE in complete
    assert "SQLite" in failed and "2026-01-02 03:04" in failed and "SIMULATED" not in failed
    assert " partial " in going_on and "unreadable" in damaged and "is corrupt" in damaged


def test_a_list_is_worded_as_in_the_golden_screen(made, capsys, monkeypatch, golden):
    monkeypatch.chdir(made)
    golden("run-list", output(capsys, "list", ".", "--sort", "name"), {f"{made}/": ""})


def test_a_list_fits_the_terminal_and_a_pipe_gets_one_line_a_record(made, capsys, monkeypatch):
    assert len(output(capsys, "list", made / "a-complete").splitlines()) == 2
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(room := len(str(made)) + 20))
    lines = output(capsys, "list", made).splitlines()
    assert max(map(len, lines)) <= room and len(lines) > 10
    assert ABOVE_IDLE in " ".join(lines)


@pytest.mark.parametrize(
    ("options", "listed"),
    [
        (["--db", "sqlite"], {"b-failed"}),
        (["--status", "partial", "--status", "unreadable"], {"c-going-on", "d-damaged"}),
        (["--real", "--status", "complete"], set()),
        (["--storage", "sd", "--device", "rpi4"], {"a-complete", "b-failed"}),
    ],
)
def test_a_list_is_filtered(made, capsys, options, listed):
    assert set(names(output(capsys, "list", made, *options))) == listed


def test_a_list_as_json_and_by_headline(made, capsys):
    records = json.loads(output(capsys, "list", made, "--json", "--sort", "headline"))
    assert records[0]["record"].endswith("/a-complete")
    assert records[0]["headline"]["u"] > 0 and records[0]["simulated"] is True
    assert all(record["headline"]["reason"] for record in records[1:])


def test_a_record_is_shown_as_its_measurement_showed_it(made, capsys):
    text = output(capsys, "show", made / "a-complete")
    assert ABOVE_IDLE in text and "SIMULATED" in text
    assert json.loads(output(capsys, "show", made / "a-complete", "--json"))["simulated"] is True


def test_an_altered_record_is_shown_with_the_status_of_verify(folder, capsys):
    record = RunRecord.open(folder / "a-complete")
    record.path("events.parquet").write_bytes(b"no parquet")
    assert "ALTERED" in output(capsys, "show", record.directory, status=4)
    assert json.loads(output(capsys, "show", record.directory, "--json", status=4))["simulated"] is True
    output(capsys, "verify", record.directory, status=4)


def test_what_was_changed_is_missing_or_cannot_be_read_is_reported_with_status_4(folder, capsys):
    output(capsys, "verify", folder / "a-complete")
    assert "is corrupt" in output(capsys, "verify", folder, status=4)
    record = RunRecord.open(folder / "a-complete")
    record.path("events.parquet").write_bytes(b"no parquet")
    assert "events.parquet: changed" in output(capsys, "verify", folder / "a-complete", status=4)
    record.finish("complete")  # under a new checksum
    text = output(capsys, "verify", folder / "a-complete", status=4)
    assert "events.parquet: not" in text
    record.path("events.parquet").unlink()
    assert "events.parquet: missing" in output(capsys, "verify", folder / "a-complete", status=4)


def test_nothing_is_deleted_without_yes_and_what_it_frees_is_said(folder, capsys):
    before = sorted(folder.rglob("*"))
    text = output(capsys, "prune", folder, "--status", "failed")
    assert "would delete: " in text and "b-failed (failed, " in text and "nothing was deleted" in text
    assert sorted(folder.rglob("*")) == before
    freed_bytes = sum(path.stat().st_size for path in (folder / "deeper/b-failed").rglob("*") if path.is_file())
    text = output(capsys, "prune", folder, "--status", "failed", "--yes")
    assert f"{freed_bytes / 1e6:.1f} MB freed" in text and freed_bytes > 10**5
    assert not (folder / "deeper/b-failed").exists() and (folder / "a-complete/run.json").exists()


def test_all_rules_have_to_pick_a_record(folder, capsys):
    record = RunRecord.open(folder / "a-complete")
    record.update(found={"started_utc": (datetime.now(UTC) - timedelta(days=2)).isoformat()})
    record.finish("complete")

    def picked(*options):
        return {line.split("/")[-1].split()[0] for line in output(capsys, "prune", folder, *options).splitlines()[:-1]}

    assert picked("--older-than", "1") == {"a-complete", "b-failed"}
    assert picked("--older-than", "3") == {"b-failed"}
    assert picked("--older-than", "1", "--simulated") == {"a-complete"}
    assert picked("--older-than", "1", "--keep", "a-*") == {"b-failed"}


def test_a_record_that_is_being_written_or_belongs_to_a_comparison_is_kept(folder, capsys):
    with held(folder / "c-going-on"):
        text = output(capsys, "prune", folder, "--status", "partial", "--yes")
    assert "c-going-on: " in text and (folder / "c-going-on").exists()
    (folder / "deeper" / "conditions.json").write_text("{}")
    text = output(capsys, "prune", folder, "--status", "failed", "--yes")
    assert "deleted: " not in text and (folder / "deeper/b-failed").exists()


@pytest.mark.parametrize("days", ["99999999999999", "36501", "0", "-1", "9" * 5000])
def test_days_beyond_the_calendar_are_refused(capsys, days):
    with pytest.raises(SystemExit, match="2"):
        main(["runs", "prune", "--older-than", days])
    said = capsys.readouterr().err
    assert "--older-than" in said and " 1 to 36500" in said


def test_a_cut_off_run_of_a_campaign_is_deleted_and_leaves_its_index(tmp_path, capsys):
    """It has no result, and the campaign measures its cell again; those that ended are kept."""
    runs = []
    for number, status in enumerate(("partial", "complete", "failed"), 1):
        runs.append(replace(ConditionRun.of(1, {"storage": f"m{number}"}, number), status=status))
        RunRecord.create(tmp_path / runs[-1].folder, {"db": "lmdb", "block": 1}, simulated=True).finish(status)
    write_index(tmp_path, runs, simulated=True, programs=["0.1.0"])
    with held(tmp_path):
        assert "still runs" in output(capsys, "prune", tmp_path, "--simulated", "--yes")
    text = output(capsys, "prune", tmp_path, "--simulated", "--yes")
    assert text.count("deleted: ") == 1 and text.count("kept: ") == 2
    assert not (tmp_path / runs[0].folder).exists()
    assert [run.folder for run in read_index(tmp_path)[0]] == [run.folder for run in runs[1:]]
    assert json.loads((tmp_path / "conditions.json").read_text())["programs"] == ["0.1.0"]


def test_blocks_of_a_campaign_are_kept_without_its_index(tmp_path, capsys):
    """By what the records say of themselves; one that has no other beside it is a record like any."""
    for name in ("01-sd", "01-emmc"):
        RunRecord.create(tmp_path / name, {"db": "lmdb", "block": 1}, simulated=True).finish("failed")
    text = output(capsys, "prune", tmp_path, "--status", "failed", "--yes")
    assert text.count("kept: ") == 2 and (tmp_path / "01-sd/run.json").exists()
    shutil.rmtree(tmp_path / "01-emmc")
    assert "deleted: " in output(capsys, "prune", tmp_path, "--status", "failed", "--yes")


def test_a_folder_without_records_is_not_taken_for_one_that_was_looked_at(tmp_path, capsys):
    assert main(["runs", "verify", str(tmp_path)]) == 2
    assert "verify" in capsys.readouterr().err
    assert len(output(capsys, "prune", tmp_path, "--status", "failed").splitlines()) == 1


def test_the_example_is_never_pruned(capsys):
    text = output(capsys, "prune", "runs/example", "--simulated")
    assert text.startswith("kept: runs/example: ") and "\n0.0 MB " in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "required: action"),
        (["lst"], "invalid choice: 'lst'"),
        (["prune", "--older-than", "-1"], "--older-than"),
        (["list", "--status", "odd"], "invalid choice: 'odd'"),
        (["export"], "required: RECORD"),
    ],
)
def test_a_mistake_is_one_line_of_runs_py(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        commands.parse(["runs", *words])
    [line] = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and line.startswith("runs.py: ") and said in line


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["prune"], 2, "--status"),
        (["export", "runs/example"], 2, "--csv"),
        (["list", "no-such"], 4, "no-such"),
        (["show", "docs"], 4, "docs"),
        (["export", "runs/example", "--perfetto", "no-such/trace"], 1, "no-such/trace"),
    ],
)
def test_what_cannot_be_done_is_one_line_with_its_status(words, status, said, capsys):
    assert main(["runs", *words]) == status
    [line] = capsys.readouterr().err.splitlines()
    assert said in line and not Path("no-such").exists()


def test_a_run_is_exported_to_all_formats_at_once(made, tmp_path, capsys):
    where = ["--perfetto", tmp_path / "t", "--openmetrics", tmp_path / "m", "--csv", tmp_path / "c"]
    text = output(capsys, "export", made / "a-complete", *where, "--most", "50")
    assert "https://ui.perfetto.dev" in text
    assert (tmp_path / "t").stat().st_size > 1000 and (tmp_path / "m").read_text().endswith("# EOF\n")
    assert len(list((tmp_path / "c").iterdir())) == 8


def test_tables_are_exported_without_the_trace_and_the_status_says_so(folder, tmp_path, capsys):
    record = folder / "a-complete"
    (record / "power.parquet").unlink()
    text = output(capsys, "export", record, "--csv", tmp_path / "c", status=4)
    assert "no power: " in text and "operations-SIMULATED.csv" in text
    assert text.count("without time_s: ") == 4
    operations = (tmp_path / "c" / "operations-SIMULATED.csv").read_text().splitlines()
    assert operations[0].startswith('"board_ns"') and len(operations) > 100
    assert len(list((tmp_path / "c").iterdir())) == 7


def test_a_rule_that_no_record_matches_is_answered_with_the_values_that_there_are(tmp_path, capsys):
    RunRecord.create(tmp_path / "a", {"db": "lmdb"}, simulated=True).finish("failed")
    assert main(["runs", "list", str(tmp_path), "--db", "lmbd"]) == 0
    assert "--db lmdb" in capsys.readouterr().err
