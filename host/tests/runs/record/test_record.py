"""The run record is true at every moment, and says in one line why it cannot be read."""

from __future__ import annotations

import json
import re

import pytest
from opjoule.base.errors import BadInput, RecordFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Quantity, exact, missing
from opjoule.energy.budget import PARTS, Budget
from opjoule.runs.evaluation.result_file import result_json
from opjoule.runs.evaluation.wording import YCSB_QUANTITIES as YCSB
from opjoule.runs.record.json_file import write_json
from opjoule.runs.record.result import read_result
from opjoule.runs.record.run_record import RunRecord, with_digest


@pytest.fixture
def record(tmp_path):
    return RunRecord.create(tmp_path / "run", {"db": "leveldb"}, simulated=True)


def test_a_new_record_is_partial_on_disk_at_once(record):
    opened = RunRecord.open(record.directory)
    assert opened.status == "partial" and opened.simulated
    assert opened.document["asked"] == {"db": "leveldb"}
    assert opened.document["schema"] == {"name": "run", "version": 4}


def test_updates_merge_mappings_and_reach_the_disk(record):
    record.update(found={"loader": "1.0"})
    record.update(found={"kernel": "6.1"}, plan_sha256="1f")
    record.add_notices(Notice(NoticeKind.FAULT, "meter fell silent"))
    record.finish("failed")
    opened = RunRecord.open(record.directory)
    assert opened.document["found"] == {"loader": "1.0", "kernel": "6.1"}
    assert [fault.line for fault in opened.faults] == ["meter fell silent"] and opened.status == "failed"


def test_an_update_that_dies_half_way_leaves_the_old_state(record, monkeypatch):
    """The disk fills up between writing and renaming."""
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space left"):
        record.update(found={"loader": "1.0"})
    assert RunRecord.open(record.directory).document["found"] == {}


def test_a_record_is_never_overwritten(record):
    with pytest.raises(BadInput, match=re.escape(str(record.directory))):
        RunRecord.create(record.directory, {}, simulated=False)


def test_finish_states_checksums_of_all_files_and_verify_finds_a_change(record):
    raw = record.path("raw")
    raw.mkdir()
    (raw / "power.arrows").write_bytes(b"abc")
    record.path("operations.oplog").write_bytes(b"def")
    record.finish("complete")
    opened = RunRecord.open(record.directory)
    assert set(opened.run.checksums) == {"raw/power.arrows", "operations.oplog"}
    assert opened.verify() == []
    (raw / "power.arrows").write_bytes(b"abC")
    record.path("operations.oplog").unlink()
    missing, changed = opened.verify()
    assert missing.endswith("/operations.oplog: missing") and "/raw/power.arrows: changed" in changed


def run_json(**entries):
    """A run.json of today's version with its checksum."""
    return json.dumps(with_digest({"schema": {"name": "run", "version": 4}, **entries})).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "run record"),
        (b"", "corrupt"),
        (b'{"schema": {"name": "run", "ver', "corrupt"),
        (b"\xff\xfe\x00", "corrupt"),
        (b"[1, 2]", "corrupt"),
        (run_json(status="partial"), "missing required field `simulated`"),
        (run_json(status="fine", simulated=True), "'fine'"),
        (b'{"schema": {"name": "run", "version": 1}, "status": "partial"}', "version 1"),
        (b'{"schema": {"name": "run", "version": 9}, "status": "partial", "simulated": true}', "version 9"),
    ],
)
def test_an_unreadable_record_is_one_line(tmp_path, content, said):
    if content is not None:
        (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(RecordFault, match=said) as caught:
        RunRecord.open(tmp_path)
    assert "\n" not in str(caught.value)


def entries():
    """Every key of the schema, some measured, some absent with a reason."""
    required = [quantity for quantity in YCSB if quantity.required and "." not in quantity.key]
    numbers = {quantity.key: missing("not measured in this test", quantity.unit) for quantity in required}
    numbers |= {"energy_j": Quantity(10.0, 0.1, "J"), "operations": exact(1000, "1")}
    return numbers | {
        "latency_s": missing("no operation was logged"),
        "by_activity": missing("not attributed", "J"),
        "by_component": missing("not attributed", "J"),
        "budget": Budget(dict.fromkeys(PARTS, 0.5)),
        "by_operation": {
            "read": {
                "count": exact(1000, "1"),
                "energy_per_operation_j": Quantity(0.01, 0.001, "J"),
                "identifiable": True,
            }
        },
        "alignment": {"method": "sync-edges", "residual_s": Quantity(1e-6, 0.0, "s"), "checks": []},
    }


def test_a_result_is_written_with_every_key_and_read_again(tmp_path):
    write_json(tmp_path / "result.json", result_json(entries(), simulated=True, quantities=YCSB))
    result = read_result(tmp_path).numbers
    assert result["simulated"] is True and result["schema"] == {"name": "result", "version": 4}
    assert result["energy_j"] == {"value": 10.0, "u": 0.1, "unit": "J"}
    assert result["latency_s"]["p99"]["reason"] == entries()["latency_s"].reason
    assert set(entries()) <= set(result)


@pytest.mark.parametrize("key", sorted({quantity.top for quantity in YCSB if quantity.required}))
def test_a_result_without_one_of_its_keys_is_refused(key):
    incomplete = entries()
    del incomplete[key]
    with pytest.raises(ValueError, match=key):
        result_json(incomplete, simulated=False, quantities=YCSB)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"energy_j": None}, "energy_j is None"),
        ({"energy_j": 10.0}, "energy_j is 10.0"),
        ({"energy_j": {"value": None, "u": None, "unit": "J"}}, "energy_j .*reason"),
        ({"energy_j": {"value": 1.0, "u": None, "unit": "J"}}, "energy_j .*reason"),
        ({"power_w": Quantity(1, 0, "mW")}, "in 'mW', expected 'W'"),
        ({"budget": {"gain": Quantity(1, 0, "J")}}, "budget lacks offset"),
        ({"alignment": {"method": None}}, "alignment lacks residual_s"),
        ({"by_operation": {"read": {"count": exact(1, "1")}}}, "by_operation.read lacks"),
    ],
)
def test_a_number_without_value_or_reason_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        result_json(entries() | change, simulated=False, quantities=YCSB)


def test_a_corrupt_or_absent_result_is_one_line(tmp_path):
    with pytest.raises(RecordFault, match=r"no result\.json"):
        read_result(tmp_path)
    (tmp_path / "result.json").write_text(json.dumps({"energy": 1}))
    with pytest.raises(RecordFault, match="corrupt"):
        read_result(tmp_path)


def test_a_warning_withholds_nothing_and_stands_beside_the_others(record):
    notes = [Notice(NoticeKind.NOTE, "a warm board"), Notice(NoticeKind.NOTE, "a soft supply")]
    for note in notes:
        record.add_notices(note)
    reopened = RunRecord.open(record.directory)
    assert list(reopened.run.notices) == notes
    assert reopened.faults == [] and reopened.withheld == {}
