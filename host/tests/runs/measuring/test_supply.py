"""What lies between supply and board is computed before a run, and what reached the board is checked after it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import supply_trials
from opjoule.base.notices import Notice, NoticeKind
from opjoule.bench.simulation.rig import RigSetup, twin_rig
from opjoule.bench.simulation.simulators import Imperfections
from opjoule.bench.simulation.supply import drawn_for
from opjoule.boards.profiles import find_profile
from opjoule.campaign.measurement import measure
from opjoule.cli import commands
from opjoule.cli.commands import main
from opjoule.cli.doctor import examine, kinds_finding
from opjoule.cli.measure.planning import make_plan, supply_of_rig
from opjoule.energy.least_voltage import least_voltage
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.trace.supply_line import BusReadings
from opjoule.meters.chips import ina219_breakout
from opjoule.meters.interface import Wishes
from opjoule.meters.registry import open_meter
from opjoule.pages.report.sections import head_lines
from opjoule.results.answer import open_answer
from opjoule.runs.evaluation.faults import NO_LIMIT, NOT_MEASURED, check_supply
from opjoule.runs.measuring.progress import PhaseProgress
from opjoule.runs.measuring.supply_path import local_meter_warning
from opjoule.runs.record.run import LeastVoltageFound
from opjoule.runs.record.run_record import RunRecord
from rig_session import record as record_rig
from software_meter import SoftwareMeter
from stated_models import load_model
from supply_paths import path_of

ROOT = Path(__file__).resolve().parents[4]
SENSOR = ina219_breakout()


@pytest.mark.parametrize(
    ("board", "meter", "supply", "left_v", "advice"),
    [
        ("rpi4", "serial:x", {}, 4.8, None),  # 5.1 V less 3 A over 0.1 ohm
        ("rpi4", "serial:x", {"cable_ohm": 0.1}, 4.5, "20 milliohm (0.5 %, 2 W), a supply of 5.25 V, a shorter"),
        ("rpi4", "serial:x,shunt=0.02", {"cable_ohm": 0.1, "voltage_v": 5.25}, 4.89, None),
        ("rpi5", "serial:x", {}, 4.6, "usb_max_current_enable=1"),
        ("rpi5", "serial:x,shunt=0.02", {"voltage_v": 5.25, "cable_ohm": 0.15}, 4.4, "cable;"),
        ("rpi4", "monsoon:voltage=4.7", {"cable_ohm": 0.1}, 4.4, "a supply of 5.25 V"),
        ("odroid-n2", "serial:x", {}, 11.8, None),
    ],
)  # fmt: skip
def test_the_drop_at_the_boards_peak_is_computed_and_its_remedy_named(board, meter, supply, left_v, advice):
    path = path_of(board, meter, **supply)
    assert path.board_v == pytest.approx(left_v)
    assert f"{left_v:.2f} V" in path.supply_words
    assert path.to_json()["board_v"] == path.board_v
    if advice is None:
        assert path.warning == ""
    else:
        assert f" {left_v:.2f} V" in path.warning and advice in path.warning
    if path.shunt_ohm is None or path.shunt_ohm <= 0.02:
        assert "milliohm" not in path.remedy


def test_what_is_not_known_of_wiring_or_board_is_said():
    assert "or more" in path_of("rpi4").supply_words and "at most" in path_of("rpi4").supply_words
    assert "at most" not in path_of("rpi4", cable_ohm=0.0).supply_words
    unknown = path_of("generic-linux")
    assert "not known" in unknown.supply_words and not unknown.warning and unknown.board_v is None


@pytest.mark.parametrize(
    ("meter", "words"),
    [
        ("serial:x", "0.1 ohm ±5 %, assumed: "),
        ("serial:x,shunt=0.02", "0.02 ohm ±5 %, shunt= in rig.toml, "),
        ("serial:x,shunt=0.02,shunt_tolerance=0.5%", "0.02 ohm ±0.5 %, shunt= in rig.toml"),
        ("hwmon", "the driver's, "),
        ("monsoon", "the meter's own"),
    ],
)
def test_the_shunt_in_use_is_named_with_who_says_so(meter, words):
    said = path_of("rpi4", meter).shunt_words
    assert said.startswith(words) and ("assumed" in said) == ("±5 %" in said)


def rig_file(folder: Path, meter: str, connection: str = "local", more: str = "") -> Path:
    (folder / "sd").mkdir(exist_ok=True)
    path = folder / "rig.toml"
    path.write_text(
        f'[meter]\nport = "{meter}"\n{more}\n[device.rpi5]\nconnection = "{connection}"\nsync = "none"\n'
        f'[device.rpi5.storage]\nsd = "{folder / "sd"}"\n'
    )
    return path


def test_the_plan_says_shunt_drop_and_a_meter_that_hangs_on_its_own_board(tmp_path, capsys):
    path = rig_file(tmp_path, "serial:/dev/ttyACM0,shunt=0.1", more="[supply]\nvoltage_v = 5.2\ncable_ohm = 0.05")
    argv = ["--db", "leveldb", "--device", "rpi5", "--rig", str(path), "--dry-run"]
    assert main(argv) == 0
    said = capsys.readouterr().out
    assert "shunt      0.1 ohm ±5 %, shunt= in rig.toml" in said
    assert "5.2 V (as stated) minus 0.75 V" in said and said.count(" 4.45 V") == 2
    assert " 5 A " in said.split("WARNING")[1]
    assert 'WARNING    connection = "local"' in said and "0.25 W" in said
    assert main([*argv, "--meter", "serial:/dev/ttyACM1,shunt=0.01,shunt_tolerance=0.5%"]) == 0
    assert "0.01 ohm ±0.5 %, shunt= in --meter" in capsys.readouterr().out


def test_a_meter_on_another_computer_or_none_on_a_cable_brings_no_warning():
    assert local_meter_warning("ssh:pi@board", "serial:/dev/ttyACM0") == ""
    assert local_meter_warning("local", "rapl") == ""
    assert "Monsoon" in local_meter_warning("local", "monsoon")
    assert "unknown draw" in local_meter_warning("local", "ppk2:/dev/ttyACM0")


def test_doctor_says_how_long_a_run_lasts_that_tells_kinds_apart():
    """By the meter's resolution: ten samples a second make blocks of a second."""
    assert "every 0.02 s" in kinds_finding(532e-6).line and "(1 s) or more" in kinds_finding(532e-6).line
    assert "every 1 s" in kinds_finding(0.1).line and "(50 s) or more" in kinds_finding(0.1).line


def test_doctor_says_shunt_and_drop(tmp_path):
    with SoftwareMeter() as device:
        path = rig_file(tmp_path, f"serial:{device.path},shunt=0.02")
        checks = {check.about: check for check in examine(path, simulate=False)}
    assert checks["shunt"].text.startswith("0.02 ohm ±5 %, shunt= in rig.toml, ")
    # The last of the two: a meter that hangs on its board is no fault.
    assert checks["rpi5 supply"].kind is NoticeKind.NOTE
    path = rig_file(tmp_path, "serial:/dev/no-such", connection="ssh:nobody@127.0.0.1:1")
    supply = [check for check in examine(path, simulate=False) if check.about == "rpi5 supply"]
    assert [check.kind for check in supply] == [NoticeKind.MEND] and "4.60 V" in supply[0].text
    assert "20 milliohm" in supply[0].remedy and "usb_max_current_enable=1" in supply[0].remedy


def test_the_opened_meter_states_its_shunt_for_the_record():
    with SoftwareMeter() as device:
        meter = open_meter(f"serial:{device.path},shunt=0.02,shunt_tolerance=0.5%", Wishes(stated_in="--meter"))
        meter.open()
        shunt = meter.error_bounds().shunt
        meter.close()
    assert (shunt.ohm, shunt.origin) == (0.02, "shunt= in --meter")
    known = path_of("rpi4", "hwmon").measured(replace(shunt, origin="the kernel driver's setting"))
    assert known.shunt_words.startswith("0.02 ohm ±0.5 %, the kernel") and known.board_v == 5.1 - 0.06


def samples(volts, amperes=None) -> PowerTrace:
    volts = np.asarray(volts, np.float64)
    amperes = np.full(volts.size, 0.8) if amperes is None else np.asarray(amperes, np.float64)
    return PowerTrace.of(1000 + 1_000_000 * np.arange(volts.size), amperes, volts)


def test_the_least_of_all_samples_counts_and_a_lost_one_does_not():
    least = least_voltage(samples([5.0, 4.6, np.nan, 4.9]), SENSOR)
    assert (least.voltage_v, least.meter_ns) == (4.6, 1_001_000)
    assert 0.005 * 4.6 / 3**0.5 < least.standard_u_v < 0.02
    assert least_voltage(samples([np.nan, np.nan]), SENSOR) is None


def on_a_line(resistance_ohm: float, dip_a: float, *, read: bool) -> PowerTrace:
    """20 s at 1 kHz behind a resistance, the voltage read each 128th sample; one dip of 30 ms, between two readings."""
    rng = np.random.default_rng(3)
    amperes = 0.7 + 0.2 * np.repeat(rng.random(200), 100) + rng.normal(0, 1e-3, 20_000)
    dip = slice(10_050, 10_080)
    assert not set(range(dip.start, dip.stop)) & set(range(0, 20_000, 128))
    amperes[dip] = dip_a
    volts = 5.1 - resistance_ohm * amperes
    meter_ns = 1_000_000 * np.arange(20_000)
    at = np.arange(128, 20_000 - 128, 128)
    bus = BusReadings(meter_ns[at] + 500_000, np.round(volts[at] / 0.004) * 0.004)
    held = volts if read else np.full(20_000, 5.0)
    return replace(PowerTrace.of(meter_ns, amperes, held), bus=bus).on_supply_line()


def test_between_readings_the_load_line_tells_where_it_is_sure():
    trace = on_a_line(0.2, 2.9, read=False)
    least = least_voltage(trace, SENSOR)
    assert least.voltage_v == pytest.approx(5.1 - 0.2 * 2.9, abs=0.03) and least.voltage_v < 4.63
    assert 10.04e9 < least.meter_ns < 10.09e9
    assert min(trace.bus.voltage_v) > 4.9  # no reading saw it


def test_a_line_that_is_in_doubt_makes_no_dip():
    """A constant load tells no resistance: what the line says of a peak is then no evidence."""
    flat = np.full(4000, 0.7)
    flat[2050] = 3.0
    meter_ns = 1_000_000 * np.arange(4000)
    at = np.arange(128, 3900, 128)
    bus = BusReadings(meter_ns[at] + 500_000, 5.0 + 0.004 * (np.arange(at.size) % 2))
    trace = replace(PowerTrace.of(meter_ns, flat, np.full(4000, 5.0)), bus=bus).on_supply_line()
    least = least_voltage(trace, SENSOR)
    assert least.voltage_v == pytest.approx(5.0, abs=1e-9)


def checked(folder: Path, trace: PowerTrace, *, where: str, board: str = "rpi4") -> RunRecord:
    record = RunRecord.create(folder, {"db": "leveldb"}, simulated=False)
    record.update(found={"meter": {"voltage_at": where}, "supply": path_of(board).to_json()})
    check_supply(record, trace, SENSOR, [], None)
    return record


def test_a_dip_under_the_boards_limit_is_a_fault_that_names_value_moment_and_remedy(tmp_path):
    record = checked(tmp_path / "run", samples([5.0, 4.6, 4.9]), where="at the board's side of the shunt")
    [fault] = record.faults
    assert fault.kind is NoticeKind.LOW_VOLTAGE and "at the board's side" in fault.line and "4.60 V" in fault.line
    assert "limit of 4.63 V" in fault.line and "20 milliohm" in fault.remedy and "5.25 V" in fault.remedy
    least = record.document["least_voltage"]
    assert (least["value"], least["unit"], least["limit_v"]) == (4.6, "V", 4.63) and 0.02 < least["u"] < 0.05
    assert least["at_s"] == pytest.approx(1e-3) and not record.withheld
    assert any("least voltage 4.600 ± 0.027" in line and "limit 4.63 V" in line for line in head_lines(record.run))


def test_a_supply_that_holds_is_reported_without_a_fault(tmp_path):
    record = checked(tmp_path / "run", samples([5.0, 4.7, 4.9]), where="at the board's side of the shunt")
    assert record.faults == [] and record.run.least_voltage.value == 4.7


def test_a_meter_without_a_voltage_of_its_own_says_that_it_could_not_be_checked(tmp_path):
    record = checked(tmp_path / "run", samples([1.0, 1.0]), where="")
    assert record.faults == [] and record.run.least_voltage == LeastVoltageFound(unchecked=NOT_MEASURED)
    assert f"supply: {NOT_MEASURED}" in head_lines(record.run)
    unknown = checked(tmp_path / "other", samples([1.0, 1.0]), where="there", board="generic-linux")
    assert unknown.faults == [] and unknown.run.least_voltage.unchecked == NO_LIMIT


@pytest.mark.parametrize("board", ["rpi5", "rpi4", "rpi3", "odroid-c2"])
def test_a_simulated_rigs_supply_holds_its_board_up(board):
    """Within the population it is drawn from; else each tenth simulated run would have an under-voltage."""
    profile, stiffer = find_profile(board), 0
    for seed in range(200):
        greatest_w = load_model(board, "sd").greatest_w
        rig, drawn = drawn_for(profile, greatest_w, seed), Imperfections.draw(seed)
        _, volts = rig.supply.at_power(7.0 if board == "rpi4" else 4.3)
        assert volts * (1 + rig.bus_gain_error) - float(rig.ripple.split(",")[0]) * 1e-3 > profile.least_voltage_v
        assert rig.supply_ohm <= drawn.supply_ohm and drawn.supply_open_v <= rig.supply_open_v <= 5.25
        stiffer += rig != drawn
        assert replace(rig, supply_ohm=drawn.supply_ohm, supply_open_v=drawn.supply_open_v) == drawn
    assert 0 < stiffer < 200


@pytest.mark.rig
def test_the_real_firmwares_readings_show_a_dip(tmp_path):
    """0.1 s at 2 A behind 0.3 ohm, in shunt mode, whose voltage comes each 128th conversion."""
    rows = [(0.0, 0.8), (2.0, 2.0), (2.1, 0.8)]
    trace = record_rig(tmp_path, rows, [], voltage_v=5.1, source_ohm=0.3, end_s=4.0).trace
    least = least_voltage(trace, SENSOR)
    assert trace.bus is not None and least.voltage_v == pytest.approx(4.5, abs=0.03)
    assert (least.meter_ns - int(trace.meter_ns[0])) * 1e-9 == pytest.approx(2.05, abs=0.1)


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_weak_supply_makes_a_measurement_faulty_and_keeps_its_figures(tmp_path):
    small = [
        "--records",
        "1000",
        "--operations",
        "5000",
        "--repeats",
        "1",
        "--idle",
        "2",
        "--no-harness",
        "--rate",
        "full",
        "--reset",
        "load",
    ]
    command = commands.parse(["--db", "leveldb", "--device", "rpi4", "--simulate", *small])
    plan, out = make_plan(command.options), tmp_path / "record"
    weak = replace(Imperfections.draw(5), supply_open_v=4.9, supply_ohm=0.5, ripple="0,50")
    options = RigSetup(root=ROOT, files=tmp_path / "storage", truth=out / "truth.json", seed=5)
    with twin_rig(plan.board, options, imperfections=weak) as rig, PhaseProgress(quiet=True) as progress:
        supply = supply_of_rig(plan, None, command.options)
        measure(
            plan,
            rig.board,
            rig.meter,
            out,
            progress,
            {},
            supply,
            [Notice(NoticeKind.NOTE, "a warning about the desk")],
        )
    run, result = (json.loads((out / name).read_text()) for name in ("run.json", "result.json"))
    (fault,) = (notice for notice in run["notices"] if notice["kind"] == NoticeKind.LOW_VOLTAGE)
    assert NoticeKind.NOTE in [notice["kind"] for notice in run["notices"]]
    assert fault["line"].startswith("supply: the least voltage at the board's side of the shunt was 4.")
    least_w = 3.04  # an idle Raspberry Pi 4 of the power model
    assert run["least_voltage"]["value"] < weak.supply.at_power(least_w)[1] * 1.006 < 4.63
    assert run["status"] == "complete"
    assert result["energy_j"]["value"] > 0 and result["energy_j"]["u"] > 0
    assert run["found"]["supply"]["shunt_from"].startswith("shunt= in")
    assert run["sensor"]["shunt"]["origin"].startswith("shunt= in")
    head = head_lines(RunRecord.open(out).run)
    assert any(line.startswith("shunt: 0.1 ohm ±1.00") and "shunt= in" in line for line in head)
    assert any(line.startswith("supply: least voltage 4.") and "limit 4.63 V" in line for line in head)
    assert NoticeKind.NOTE in [notice.kind for notice in open_answer(out).notices]


@pytest.mark.rig
def test_a_rig_that_ends_before_there_is_a_record_leaves_nothing_in_its_folder(tmp_path):
    """An empty --out can be given again."""
    out = tmp_path / "record"
    out.mkdir()
    truth, storage = out / "simulator-truth.json", tmp_path / "storage"
    options = RigSetup(root=ROOT, files=storage, truth=truth, seed=5)
    with twin_rig(find_profile("rpi4").with_medium("sd"), options):
        pass
    assert not list(out.iterdir())


@pytest.mark.parametrize("load", range(len(supply_trials.LOADS)))
def test_no_drawn_rig_seems_to_break_its_boards_limit_at_the_greatest_load(load):
    """A current that moves while the voltage is read made the load line state 4.55 V of a supply that held 4.68 V."""
    for board, medium in (("rpi5", "sd"), ("rpi4", "ssd-usb3"), ("odroid-c2", "nvme")):
        for seed in (5, 14, 14 + load):
            stated = supply_trials.trial(board, medium, seed, load)
            assert stated.true_margin_v > 0 and not stated.is_fault, (board, medium, seed)
            assert stated.error_v > -0.02


def test_a_supply_that_is_too_weak_is_found_behind_any_load():
    rng = np.random.default_rng(1)
    weak = replace(Imperfections.draw(14), supply_ohm=0.4, supply_open_v=5.0)
    power_w = np.full(150_000, 3.0)
    power_w[60_000:75_000] = 7.0
    trace, true_v = supply_trials.sampled(weak, power_w, rng)
    least = least_voltage(trace, SENSOR)
    assert true_v < 4.4 and least.is_under(4.63) and least.voltage_v == pytest.approx(true_v, abs=0.05)
