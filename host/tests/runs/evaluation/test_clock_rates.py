"""A run whose clocks ran as no oscillator does states no energy, and says which clocks, how fast and what to do."""

from __future__ import annotations

import pytest
import rig_session
from opjoule.base.errors import FAULTY_EXIT
from opjoule.base.notices import NoticeKind
from opjoule.base.units import Cause
from opjoule.cli.record import run_record
from opjoule.cli.record_commands import RecordOptions
from opjoule.clocks.exchanges import Exchange, ExchangeFile, read_exchanges
from opjoule.runs.evaluation.alignment import odd_clocks, odd_meter_clock
from opjoule.runs.evaluation.collection import collect
from opjoule.runs.evaluation.evidence import Evidence
from opjoule.runs.evaluation.trace_result import conclude_trace
from opjoule.runs.record.result import read_result
from opjoule.runs.record.run_record import RunRecord
from raw_record import running_record
from recorded_traces import recorded
from rig_session import rig_sim, write_profile

S = 1_000_000_000


def pause(record: RunRecord, name: str, pause_s: float) -> None:
    """Rewrites a file of exchanges as if this computer had been suspended in its middle: its clock stood still."""
    path = record.directory / "raw" / name
    made = read_exchanges(path)
    path.unlink()
    file = ExchangeFile(path)
    for number, one in enumerate(made):
        late_ns = round(pause_s * S) if number > len(made) // 2 else 0
        file.append(one._replace(sent_ns=one.sent_ns - late_ns, received_ns=one.received_ns - late_ns))
    file.close()


@pytest.mark.slow
def test_an_unpaced_rig_has_no_energy_by_this_computers_clock(tmp_path, capsys):
    """Ten seconds of the simulated rig's time go by in a few of the host's."""
    write_profile(tmp_path / "profile.csv", [(0.0, 0.5)], 5.0, 10.0)
    with rig_sim(tmp_path, "--profile", str(tmp_path / "profile.csv"), pace="0") as rig:
        options = RecordOptions(
            out=tmp_path / "bench",
            meter=f"serial:{rig.port}",
            seconds=9.0,
            json=False,
            live=False,
            room_temperature=None,
            storage_meter=None,
        )
        assert run_record(options) == FAULTY_EXIT
    record = RunRecord.open(options.out)
    result = read_result(options.out).numbers
    assert record.status == "failed"
    assert result["energy_j"]["value"] is None and result["duration_s"]["value"] is None
    assert result["energy_j"]["cause"] == Cause.WITHHELD
    [notice] = [notice for notice in record.run.notices if notice.kind is NoticeKind.CLOCKS]
    assert notice.line in " ".join(capsys.readouterr().out.split())


def test_a_recording_across_a_suspended_computer_states_no_energy(tmp_path):
    record = recorded(tmp_path / "bench", exchanges=True)
    pause(record, "meter-exchanges.csv", 1.0)
    assert conclude_trace(record)
    numbers = read_result(record.directory).numbers
    assert numbers["energy_j"]["value"] is None and numbers["voltage_v"]["value"] is not None
    assert len(record.faults) == 1 and "suspended" in record.faults[0].text


@pytest.mark.parametrize("file", ["meter-exchanges.csv", "board-exchanges.csv"])
def test_a_measurement_placed_by_exchanges_states_no_energy_across_a_suspended_computer(tmp_path, file):
    record = running_record(tmp_path / "run")
    pause(record, file, 1.0)
    (record.directory / "raw/edges.arrows").unlink(missing_ok=True)
    collect(record, Evidence.of(record, ended_early=False))
    assert any(fault.kind is NoticeKind.CLOCKS for fault in record.faults) and record.run.clocks_checked
    if record.run.clock_map_used == "exchanges":
        assert record.withheld


def test_sound_clocks_have_no_line(tmp_path):
    record = recorded(tmp_path / "bench", exchanges=True)
    assert odd_clocks(record.run, read_exchanges(record.directory / "raw/meter-exchanges.csv"), []) == []


def test_a_calibration_point_asks_the_same_of_its_meters_clock():
    made = [Exchange(at * S // 10, at * S // 5, at * S // 5, at * S // 10 + 200_000) for at in range(20)]
    assert " 0.5 s per second " in odd_meter_clock(made, rig_session.PERFECT_SENSOR)
