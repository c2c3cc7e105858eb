"""The rehearsal's desk: patterns that the power model plays, the second meter, loads by hand. SIMULATED."""

from __future__ import annotations

import numpy as np
import pytest
from opjoule.base.errors import BadInput
from opjoule.bench.simulation.power_model import Activity
from opjoule.bench.simulation.rehearsal import (
    BETWEEN_OHM,
    FED_V,
    LATE_S,
    SHUNT_OHM,
    DrawnRig,
    LoadBench,
    PlayedLoad,
    Witness,
)
from opjoule.boards.profiles import find_profile
from opjoule.energy.operations.board_files import load_changes, read_events
from opjoule.meters.interface import Samples

MS = 1_000_000


def drawn(plant=None, seed=1):
    return DrawnRig.draw(find_profile("rpi4").with_medium("sd"), seed, plant)


def test_a_pattern_changes_the_current_at_its_own_times_inside_of_an_interval():
    desk = drawn()
    load = PlayedLoad(desk.power, Witness(1.0, 0.0))
    load.play([(3 * MS, 1), (7 * MS, 0), (12 * MS, 1)])
    rows = [row for start in (0, 10 * MS, 20 * MS) for row in load.rows(Activity(start, start + 10 * MS), [], [])]
    assert [at // MS for at, _, _ in rows] == [0, 3, 7, 10, 12, 20]
    watts = [current_a * volts for _, current_a, volts in rows]
    idle_w, full_w = desk.power.rest_w, desk.power.board.busy_cores_w[-1] + desk.power.medium.idle_w
    assert watts == pytest.approx([idle_w, full_w, idle_w, idle_w, full_w, full_w], rel=1e-6)


def test_exchanged_inputs_turn_the_sensors_current_but_not_the_second_meters():
    desk = drawn("swapped-inputs")
    witness = Witness(1.0, 0.0)
    rows = PlayedLoad(desk.power, witness, desk.sign).rows(Activity(0, 10 * MS), [], [])
    assert rows[0][1] < 0 < witness._rows[0][1]


def test_a_played_pattern_is_logged_as_a_board_logs_it(tmp_path, monkeypatch):
    monkeypatch.setattr("opjoule.bench.simulation.rehearsal.time.sleep", lambda seconds: None)
    load = PlayedLoad(drawn().power, Witness(1.0, 0.0))
    start_ns, end_ns = load.play_signature("0110010", 20, tmp_path)
    changes = load_changes(read_events(tmp_path / "played-1.events.jsonl"))
    assert ((changes.board_ns - start_ns) // MS).tolist() == [20, 60, 100, 120]
    assert changes.level.tolist() == [1, 0, 1, 0] and end_ns - start_ns == 140 * MS


def test_the_second_meter_reads_what_flowed_on_the_supplys_side(monkeypatch):
    now_ns = [10_000 * MS]
    monkeypatch.setattr("opjoule.bench.simulation.rehearsal.time.monotonic_ns", lambda: now_ns[0])
    monkeypatch.setattr("opjoule.bench.simulation.rehearsal.time.sleep", lambda seconds: None)
    witness = Witness(1.02, SHUNT_OHM + BETWEEN_OHM)
    witness.start()
    begun_ns = now_ns[0] - Witness.LATE_NS
    witness.tell([(begun_ns, 1.0, 5.0), (begun_ns + 50 * MS, 2.0, 4.9)])
    now_ns[0] += 100 * MS
    [samples] = [event for event in witness.read(0.0) if isinstance(event, Samples)]
    assert samples.meter_ns.size == 100
    assert samples.current_a.mean() == pytest.approx(1.02 * 1.5, rel=0.02)
    ohm = SHUNT_OHM + BETWEEN_OHM
    assert np.unique(samples.voltage_v) == pytest.approx([4.9 + 2 * ohm, 5.0 + ohm])


def test_loads_by_hand_obey_ohms_law_behind_the_supplys_resistance(tmp_path):
    desk = drawn()
    load_bench = LoadBench(desk, tmp_path)
    load_bench.connect(0.2)
    (_, current_a, volts), (end_s, _, _) = load_bench._rows(3.0)
    assert current_a == pytest.approx(0.2 * volts)
    assert volts == pytest.approx(desk.supply.open_voltage_v - desk.supply.resistance_ohm * current_a)
    assert end_s == 5.0 + LATE_S


def test_what_feeds_the_board_stays_without_the_fuse(tmp_path):
    def left_v(plant):
        load_bench = LoadBench(drawn(plant), tmp_path)
        load_bench.pull_fuse()
        return load_bench._rows(1.0)[0][2]

    assert left_v(None) < 0.1 and left_v("back-feed") == FED_V


def test_the_same_seed_is_the_same_desk_and_an_unknown_fault_is_refused():
    assert drawn(seed=5).sensor == drawn(seed=5).sensor != drawn(seed=6).sensor
    with pytest.raises(BadInput, match="did you mean 'dead-sync'"):
        drawn("dead-sink")
