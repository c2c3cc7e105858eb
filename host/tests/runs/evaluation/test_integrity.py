"""What was changed after a run, in any raw file, changes no figure unseen: of a finished run and of a killed one."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opjoule.base.errors import NewerSchema, OpJouleError, RecordFault
from opjoule.cli.record_commands import ReportOptions, VerifyOptions
from opjoule.cli.report import run_report
from opjoule.cli.runs.command import run_verify
from opjoule.pages.report import html
from opjoule.pages.report.html import content
from opjoule.pages.report.timeline import packed_timeline, read_timeline
from opjoule.results.answer import open_answer
from opjoule.runs.evaluation.collection import collect
from opjoule.runs.evaluation.evidence import Evidence
from opjoule.runs.record.json_file import write_json
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.record.seals import SealWatch, close_unfinished
from raw_record import OPERATIONS, REPEATS, finished_record, running_record

FIGURES = (
    "energy_j",
    "marginal_energy_j",
    "energy_per_operation_j",
    "power_w",
    "operations",
    "throughput_per_s",
)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A killed record, and the figures that come of it untouched."""
    made = tmp_path_factory.mktemp("killed") / "record"
    running_record(made)
    return made, figures(analysed(made, tmp_path_factory.mktemp("analysed") / "record"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    made = tmp_path_factory.mktemp("finished") / "record"
    finished_record(made)
    return made, figures(open_answer(made))


def analysed(record: Path, into: Path):
    """What `measure.py report` says of a copy of the record."""
    shutil.copytree(record, into)
    return reported(into)


def reported(record: Path):
    run_report(ReportOptions(record=record))
    return open_answer(record)


def figures(answer):
    """The figures that are printed; those withheld are None."""
    return {name: getattr(answer.quantity(name), "value", None) for name in FIGURES}


def test_the_small_record_is_sound(killed, finished):
    """Else the tests below would show nothing."""
    record, values = finished
    assert values["operations"] == OPERATIONS and values["power_w"] == pytest.approx(0.9 * 5.1, rel=0.01)
    answer = open_answer(record)
    assert answer.record.status == "complete" and answer.record.faults == [] and answer.record.verify() == []
    assert answer.concluded.alignment.map == answer.run.clock_map_used
    assert killed[1] == pytest.approx(values)


def test_what_is_drawn_beside_the_analysis_is_what_the_finished_record_shows(tmp_path):
    record = running_record(tmp_path / "record")
    timeline = collect(record, Evidence.of(record, ended_early=False), packed_timeline)
    answer = open_answer(record.directory)
    assert content(answer, timeline) == content(answer, read_timeline(answer.record))


def test_checksums_of_a_killed_run_are_of_the_files_that_its_seals_were_compared_with(tmp_path):
    record = running_record(tmp_path / "record")
    record.close_raw()
    journal = record.path("raw/power.arrows")
    journal.write_bytes(journal.read_bytes()[:-1] + b"?")  # by somebody else, while it is analysed
    collect(record, Evidence.of(record, ended_early=True))
    [line] = record.verify()
    assert line.startswith(f"{journal}: changed")


def assert_reported_or_unchanged(record: Path, untouched: dict, damage: str) -> None:
    """A report after some damage: each figure is as it was or withheld, and where one is withheld a line says why."""
    try:
        answer = reported(record)
    except OpJouleError as refusal:
        assert "\n" not in str(refusal), damage
        return
    values = figures(answer)
    shown = {name: value for name, value in values.items() if value is not None}
    assert shown == {name: untouched[name] for name in shown}, damage
    if shown != untouched:
        said = " ".join([answer.problem, *(notice.text for notice in answer.notices)])
        assert any(word in said for word in ("changed", "missing", "cut off", "not used")), damage


def damaged_files(record: Path) -> list[Path]:
    return sorted(path for path in record.rglob("*") if path.is_file() and path.name != "report.html")


@pytest.mark.slow
@pytest.mark.parametrize("which", ["killed", "finished"])
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), file=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_a_flipped_bit_anywhere_is_reported_or_changes_nothing(request, tmp_path_factory, which, where, bit, file):
    record, untouched = request.getfixturevalue(which)
    into = tmp_path_factory.mktemp("flipped") / "record"
    shutil.copytree(record, into)
    target = damaged_files(into)[file % len(damaged_files(into))]
    content = bytearray(target.read_bytes())
    if content:
        content[int(where * len(content))] ^= 1 << bit
        target.write_bytes(content)
    name = target.relative_to(into)
    assert_reported_or_unchanged(into, untouched, f"{which} {name} byte {int(where * len(content))} bit {bit}")
    shutil.rmtree(into)


@pytest.mark.parametrize("which", ["killed", "finished"])
def test_a_missing_file_is_reported_or_changes_nothing(request, tmp_path, which):
    record, untouched = request.getfixturevalue(which)
    for number, path in enumerate(damaged_files(record)):
        into = tmp_path / str(number)
        shutil.copytree(record, into)
        (into / path.relative_to(record)).unlink()
        assert_reported_or_unchanged(into, untouched, f"{which} without {path.name}")


@pytest.mark.slow
@pytest.mark.parametrize("which", ["killed", "finished"])
@pytest.mark.parametrize("left", [0.0, 0.3, 0.999])
def test_a_file_that_is_cut_off_is_reported(request, tmp_path, which, left):
    """A killed run's trace may end early: then fewer repeats are whole, and that is said."""
    record, untouched = request.getfixturevalue(which)
    for number, path in enumerate(damaged_files(record)):
        into = tmp_path / str(number)
        shutil.copytree(record, into)
        target = into / path.relative_to(record)
        target.write_bytes(target.read_bytes()[: int(left * path.stat().st_size)])
        try:
            answer = reported(into)
        except OpJouleError as refusal:
            assert "\n" not in str(refusal)
            continue
        if figures(answer) != untouched:
            said = " ".join([answer.problem, *(notice.text for notice in answer.notices)])
            assert any(word in said for word in ("changed", "cut off", "missing", "not used")), (
                f"{which} {path.name}: {said}"
            )


@pytest.mark.parametrize("how", ["missing", "doubled", "swapped", "other"])
def test_a_log_that_is_not_the_loaders_takes_the_figures_per_operation_and_leaves_the_energies(tmp_path, how):
    """Damage before the seals, which only the loader's own count and the log itself can show."""
    record = running_record(tmp_path / "record")
    log = record.directory / "raw/run-1.oplog"
    content = log.read_bytes()
    half = 32 + (len(content) - 32) // 2
    block = 32, 32 + (len(content) - 32) // 4
    if how == "missing":
        log.unlink()
    elif how == "doubled":
        log.write_bytes(content + content[slice(*block)])
    elif how == "swapped":
        log.write_bytes(content[:32] + content[half:] + content[32:half])
    else:
        log.write_bytes(content[:half])
    (record.directory / "raw/seals.csv").unlink()
    collect(record, Evidence.of(record, ended_early=False))
    answer = open_answer(record.directory)
    values = figures(answer)
    assert answer.record.status == "partial" and values["energy_j"] and values["marginal_energy_j"]
    assert values["operations"] is values["energy_per_operation_j"] is values["throughput_per_s"] is None
    assert answer.result["by_operation"]["value"] is None and answer.result["latency_s"]["p50"]["value"] is None
    assert any("run-1.oplog" in fault.text for fault in answer.record.faults)
    assert not (record.directory / "operations.parquet").exists()


def test_a_cut_off_tail_of_a_killed_run_is_no_damage(tmp_path):
    record = running_record(tmp_path / "record")
    for name in ("power.arrows", "run-2.oplog", "board-exchanges.csv"):
        with (record.directory / "raw" / name).open("ab") as file:
            file.write(b"written after the last seal")
    answer = reported(record.directory)
    assert figures(answer)["operations"] == OPERATIONS and answer.concluded.repeats == REPEATS
    assert any("the last 81 bytes" in fault.text for fault in answer.record.faults)
    assert (record.directory / "raw/unsealed/run-2.oplog").read_bytes() == b"written after the last seal"
    assert RunRecord.open(record.directory).verify() == []


@pytest.mark.parametrize("zeros", [1, 700, 1 << 21])
def test_a_tail_of_zeros_after_a_loss_of_power_is_cut_off(tmp_path, zeros):
    directory = tmp_path / "run"
    (directory / "raw").mkdir(parents=True)
    watch, lines = SealWatch(directory), directory / "raw/lines"
    lines.write_bytes(b"sound\n" * 100)
    watch.seal()
    with lines.open("ab") as file:
        file.write(b"later\n" * (zeros // 6 + 1))
    watch.stop()
    content = lines.read_bytes()
    lines.write_bytes(content[:-zeros] + bytes(zeros))
    closed = close_unfinished(directory)
    assert closed.damaged == {} and any("raw/lines was cut off: 600 of" in line for line in closed.said)
    assert lines.read_bytes() == b"sound\n" * 100


def test_changed_bytes_before_a_tail_of_zeros_are_damage(tmp_path):
    directory = tmp_path / "run"
    (directory / "raw").mkdir(parents=True)
    watch, lines = SealWatch(directory), directory / "raw/lines"
    lines.write_bytes(b"sound\n" * 100)
    watch.seal()
    with lines.open("ab") as file:
        file.write(b"later\n" * 100)
    watch.stop()
    lines.write_bytes(b"xound\n" * 110 + bytes(90 * 6))
    assert [*close_unfinished(directory).damaged] == ["raw/lines"]


def test_verify_names_each_changed_and_missing_file_of_several_records(tmp_path, capsys):
    sound, changed = finished_record(tmp_path / "sound"), finished_record(tmp_path / "changed")
    assert run_verify(VerifyOptions(records=[sound.directory], json=False)) == 0
    assert "(complete)" in capsys.readouterr().out
    (changed.directory / "raw/repeat-1.system.csv").unlink()
    with (changed.directory / "operations.parquet").open("ab") as file:
        file.write(b"x")
    records = [sound.directory, changed.directory, tmp_path / "none"]
    assert run_verify(VerifyOptions(records=records, json=False)) == RecordFault.exit_code
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in said[1:]] == [
        f"{changed.directory}/operations.parquet:",
        f"{changed.directory}/raw/repeat-1.system.csv:",
        f"{tmp_path}/none",
    ]
    assert ": changed " in said[1] and said[2].endswith(": missing")
    assert run_verify(VerifyOptions(records=records, json=True)) == RecordFault.exit_code
    assert [len(one["problems"]) for one in json.loads(capsys.readouterr().out)] == [0, 2, 1]


def test_a_report_of_an_altered_record_is_shown_and_ends_with_the_status_of_verify(tmp_path):
    record = finished_record(tmp_path / "record")
    assert run_report(ReportOptions(record=record.directory)) == 0
    (record.directory / "raw/repeat-1.system.csv").unlink()
    assert run_report(ReportOptions(record=record.directory)) == RecordFault.exit_code
    assert run_verify(VerifyOptions(records=[record.directory], json=False)) == RecordFault.exit_code


def test_a_report_of_a_record_on_a_read_only_disk_prints_its_summary(tmp_path, monkeypatch, capsys):
    record = finished_record(tmp_path / "record")

    def refused(path, content):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(html, "write_whole", refused)
    assert run_report(ReportOptions(record=record.directory)) == 0
    said = capsys.readouterr()
    assert "report.html is not rewritten: " in said.err and "Read-only" in said.err
    assert str(record.directory) in said.out


def test_a_report_of_a_killed_run_with_a_damaged_file_ends_with_the_status_of_verify(tmp_path):
    record = running_record(tmp_path / "record")
    path = record.directory / "raw/run-1.events.jsonl"
    path.write_text(path.read_text().replace("sync-edge", "sync_edge"))
    assert run_report(ReportOptions(record=record.directory)) == RecordFault.exit_code
    assert run_verify(VerifyOptions(records=[record.directory], json=False)) == RecordFault.exit_code


def test_after_a_damaged_events_file_nothing_says_that_there_is_no_sync_line(tmp_path):
    record = running_record(tmp_path / "record")
    (record.directory / "raw/run-1.events.jsonl").write_text("no event\n")
    (record.directory / "raw/seals.csv").unlink()
    collect(record, Evidence.of(record, ended_early=False))
    said = json.dumps(RunRecord.open(record.directory).document)
    said += (record.directory / "result.json").read_text()
    assert "no sync line" not in said and "board's sync edges" in said


def test_run_json_edited_by_hand_is_refused_with_its_name(tmp_path):
    record = finished_record(tmp_path / "record")
    path = record.directory / "run.json"
    path.write_text(path.read_text().replace('"ohm": 0.1', '"ohm": 0.2'))
    with pytest.raises(RecordFault, match=r"run\.json: changed"):
        reported(record.directory)


def test_a_result_of_a_newer_schema_is_refused(tmp_path):
    record = finished_record(tmp_path / "record")
    result = json.loads((record.directory / "result.json").read_text())
    write_json(record.directory / "result.json", {**result, "schema": {"name": "result", "version": 99}})
    RunRecord.open(record.directory).finish("complete")
    with pytest.raises(NewerSchema, match="version 99"):
        reported(record.directory)
