"""Every sentence printed as advice is carried out as it stands, and what it complained of is gone.

test_advice_commands.py does so on the command line, test_advice_end_to_end.py on whole simulated measurements. What
needs hardware stands in NEEDS_HARDWARE with its reason; test_advice_options.py sees that what it names exists.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from advised import Cases, check
from calibrated_sensor import TrueReference, TrueSensor, bench_reference, points
from compared_records import answer_of
from fitted_columns import fitted, reasons
from opjoule.base.errors import BadInput
from opjoule.cli.measure.options import MEASURE
from opjoule.energy.calibration.fitting import CalibrationFault, calibrate
from opjoule.energy.calibration.reference import Accuracy, multimeter
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import Shunt
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.unseen_current import near_range_notices
from opjoule.energy.window import Window, WindowError, window_energy_j
from opjoule.meters.chips import INA219, SensorSettings, ina219_breakout
from opjoule.meters.messages import Mode
from opjoule.meters.registry import open_meter
from opjoule.pages.report.terminal import LONGER_IDLE, remedies
from opjoule.runs.evaluation.faults import short_run_notices
from opjoule.runs.evaluation.wording import YCSB as WORDING
from opjoule.runs.measuring.open_meter import KnownSensors
from opjoule.runs.measuring.plan import SETTLE_LIMIT_S
from opjoule.runs.measuring.settling import Rest
from opjoule.runs.measuring.supply_path import ADVISED_SHUNT_OHM, SupplyPath
from opjoule.runs.record.run import Run
from settling_clock import SettlingClock
from supply_paths import path_of
from usual_phases import usual_phase

NEEDS_HARDWARE = {
    "runs/evaluation/alignment.py: check the sync wire": "a wire",
    "meters/serial/port.py: udev rules, brltty, groups": "a port of this computer and root's rights",
    "meters/monsoon, joulescope, ppk2: check its cable": "a meter of that kind",
    "runs/measuring/settling.py: look for the medium's errors (dmesg)": "a medium that hangs",
    "pages/report/terminal.py: a stiffer supply; a more accurate clock": "a supply and a board",
    "boards/state_gate.py: stop chrony": "a board whose clock is steered",
    "meters/chips.py: check its wiring, SDA, SCL": "a sensor",
    "bench/simulation/simulators.py: measure when nothing else writes to this disk": "a disk slow at will",
}
"""Sentences that no test here carries out, and what it would take."""

CASES = Cases()
YCSB = WORDING.quantities
LIMIT = r"raise (--settle-limit)"


def option_value(name: str) -> float:
    """The usual value of an option of a measurement."""
    return {"--settle-limit": SETTLE_LIMIT_S}[name]


def worded_run(run_s: float, operations: int, *, seconds: bool = False) -> Run:
    """What the study's wording reads of a run."""
    phase = usual_phase("run", 1, 0, round(run_s * 1e9), operations)
    return SimpleNamespace(  # type: ignore[return-value]  # as much of a run as is read
        phases=[phase],
        asked=SimpleNamespace(seconds=run_s if seconds else None),
        summary=SimpleNamespace(workload={}),
    )


def texts(notices):
    return " ".join(notice.text for notice in notices)


@CASES.advice("too short to be representative", r"--seconds (\d+)")
def too_short_in_seconds(advice, monkeypatch):
    run = worded_run(float(advice[1]) if advice else 0.3, 20_000, seconds=True)
    return texts(short_run_notices(run.phases, 532_000, lambda *far: WORDING.longer(run, *far, 20_000)))


@CASES.advice("too short to be representative", r"--operations (\d+)")
def too_short_in_operations(advice, monkeypatch):
    each_s = 0.3 / 20_000
    operations = int(advice[1]) if advice else 20_000
    run = worded_run(each_s * operations, operations)
    return texts(short_run_notices(run.phases, 532_000, lambda *far: WORDING.longer(run, *far, operations)))


def settled(advice, monkeypatch, power_w, before_s, rest=None):
    """What is said after waiting for `before_s`, and for the option's usual value where it is advised."""
    limit_s = max(option_value(advice[1]), 10 * before_s) if advice else before_s
    unsettled, _ = SettlingClock(monkeypatch, power_w).wait(limit_s=limit_s, rest=rest or Rest(3.0, 0.01, 0.003))
    return unsettled.text if unsettled else ""


@CASES.advice("settle saw less than", LIMIT)
def settle_without_samples(advice, monkeypatch):
    return settled(advice, monkeypatch, lambda at_s: 3.0, 2.0)


@CASES.advice("power not at rest", LIMIT)
def settle_in_a_tail(advice, monkeypatch):
    return settled(advice, monkeypatch, lambda at_s: 3.8 if at_s < 13.0 else 3.0, 8.0)


@CASES.advice("warmer or cooler", LIMIT)
def settle_while_the_board_cools(advice, monkeypatch):
    return settled(advice, monkeypatch, lambda at_s: 3.05 if at_s < 30.0 else 3.0, 10.0)


@CASES.advice("power at rest except for bursts", r"raise (--idle)")
def settle_with_bursts_that_idle_did_not_show(advice, monkeypatch):
    """A longer idle phase sees the monitor that wakes each 5 s for 0.1 s: its spread is in what is taken for rest."""
    assert not advice or advice[1] in MEASURE.parser()._option_string_actions
    seen = Rest(3.012, 0.085, 0.05) if advice else None
    return settled(None, monkeypatch, lambda at_s: 3.6 if at_s % 5.0 < 0.1 else 3.0, 30.0, rest=seen)


def obeyed(path: SupplyPath, advice: str) -> SupplyPath:
    """The path with every remedy that the sentence names."""
    if shunt := re.search(r"a shunt of (\d+) milliohm", advice):
        path = replace(path, shunt_ohm=float(shunt[1]) / 1e3)
    if supply := re.search(r"a supply of ([\d.]+) V", advice):
        path = replace(path, supply_v=float(supply[1]))
    return replace(path, cable_ohm=(path.cable_ohm or 0.0) / 4) if "thicker cable" in advice else path


@pytest.mark.parametrize("board", ["rpi3", "rpi4", "rpi5", "rpi-zero2w", "odroid-c2"])
@pytest.mark.parametrize("cable_ohm", [0.05, 0.15])
def test_the_remedies_of_a_supply_that_is_too_weak_lift_it_over_the_boards_limit(board, cable_ohm):
    path = path_of(board, "serial:x,shunt=0.1", cable_ohm=cable_ohm)
    mended = obeyed(path, path.warning)
    assert not mended.warning or mended.profile.supply_note in path.warning
    assert mended.board_v is None or mended.board_v > path.board_v or not path.warning
    assert ADVISED_SHUNT_OHM < 0.1


@CASES.advice("interval too wide: read", r"measure for about (\d+) s")
def a_kind_that_scatters(advice, monkeypatch):
    """The scatter of a run falls with the root of its length."""
    attribution, columns, _ = fitted()
    lasted_s = 64.0
    shrink = (lasted_s / float(advice[1])) ** 0.5 if advice else 1.0
    wide = attribution.energy_j * 0.2 * shrink
    return reasons(replace(attribution, standard_u_j=wide, scatter_u_j=wide), columns)["read"]


def measured(value: float, u: float | None, unit: str = "J") -> dict[str, object]:
    return {"value": value, "u": u, "unit": unit}


@CASES.advice("one run does not show how much runs differ", r"--repeats (\d+)")
def one_run_alone(advice, monkeypatch):
    parts = {"gain": measured(1.0, None)} | ({"repeats": measured(0.5, None)} if advice else {})
    assert not advice or int(advice[1]) > 1
    return " ".join(remedies(answer_of({"budget": parts}, YCSB), ""))


@CASES.advice(r"repeat until the energy above idle is known", r"--until-u (\d+)%")
def a_wide_headline(advice, monkeypatch):
    u = float(advice[1]) / 100 if advice else 0.1
    known = {YCSB.headline.key: measured(1.0, u), "budget": {"repeats": measured(1.0, None)}}
    return " ".join(remedies(answer_of(known, YCSB), ""))


@CASES.advice("longer idle phases", r"--idle (\d+)")
def idle_that_is_known_too_little(advice, monkeypatch):
    """Its part falls with the root of its length, and another one is the largest then."""
    shrink = (15.0 / float(advice[1])) ** 0.5 if advice else 1.0
    parts = {
        "baseline": measured(1.0 * shrink, None),
        "gain": measured(0.9, None),
        "repeats": measured(0, None),
    }
    assert LONGER_IDLE == 4.0
    return " ".join(remedies(answer_of({"budget": parts}, YCSB), ""))


@CASES.advice("calibrate the sensor ", r"host/calibrate.py")
def a_sensor_as_delivered(advice, monkeypatch):
    shared = {"sensor": {"calibration x: gain": 1.0}} if advice else {}
    return " ".join(remedies(answer_of({"budget": {"gain": measured(1.0, None)}, "shared": shared}, YCSB), ""))


@CASES.advice("read the voltage more often", r"\((bus_every=\d+)\)")
def a_voltage_that_is_read_seldom(advice, monkeypatch):
    """The meter takes the option, and reads the voltage more often with it than without."""
    if not advice:
        return " ".join(remedies(answer_of({"budget": {"voltage": measured(1.0, None)}}, YCSB), ""))
    often = open_meter(f"serial:/dev/null,{advice[1]}")
    assert often.changes["bus_every"] < SensorSettings(mode=Mode.SHUNTS).bus_every  # type: ignore[attr-defined]
    return ""


@CASES.advice(r"they separate read", r"\((--design)\)")
def kinds_that_go_together(advice, monkeypatch):
    """A run in blocks is advised no blocks, whatever it could not tell."""
    assert not advice or advice[1] in MEASURE.parser()._option_string_actions
    summary = SimpleNamespace(mix_blocks=10 if advice else None)
    run = SimpleNamespace(loader={"run-1": summary}, found=SimpleNamespace(generator=None))
    untold = {"value": None, "u": None, "unit": "J", "reason": "any words", "cause": "collinear"}
    result = {"by_operation": {"read": {"energy_per_operation_j": untold}}}
    return " ".join(remedies(answer_of(result, YCSB), "", WORDING.apart(run)))  # type: ignore[arg-type]


def test_no_reason_of_the_attribution_advises_blocks():
    """It does not know whether the run had some: what is advised stands in remedies()."""
    attribution, columns, _ = fitted()
    wide = replace(attribution, standard_u_j=attribution.energy_j * 0.2, scatter_u_j=attribution.energy_j * 0.02)
    assert not any("--" in why for why in reasons(wide, columns).values())


def cells_of(current_a: np.ndarray, period_ns: int = 1_000_000) -> Cells:
    times_ns = np.arange(current_a.size, dtype=np.int64) * period_ns
    return Cells.of(PowerTrace.of(times_ns, current_a, np.full(current_a.size, 5.0)))


@CASES.advice("may have exceeded the meter's range", "use a smaller shunt")
def bursts_near_the_range(advice, monkeypatch):
    rng = np.random.default_rng(1)
    sensor = INA219.error_bounds(INA219.ranges[-1].code, 1.0, Shunt(0.05 if advice else 0.1))
    cells = cells_of(2.4 + 0.05 * rng.standard_normal(4000), 532_000)
    return texts(near_range_notices(cells, sensor, [(0, 2_000_000_000)]))


@CASES.advice("reaches outside the power trace", "record longer")
def a_window_beyond_the_trace(advice, monkeypatch):
    cells = cells_of(np.full(4000 if advice else 1000, 0.6))
    try:
        window_energy_j(cells, Window(10**9, 2 * 10**9, 0.0), ina219_breakout())
    except WindowError as error:
        return str(error)
    return ""


METERS = [
    ("serial:/dev/null,shunt=20", r"([\d.]+) for R020", "serial:/dev/null,shunt={}"),
    ("serial:/dev/null,shunt=0.1,shunt_tolerance=7", r"1 % write ([\d.]+) or", "serial:/dev/null,shunt_tolerance={}"),
    ("serial:/dev/null,label=a b", r"label must be .* for example ([\w-]+)", "serial:/dev/null,label={}"),
    ("serial", r"for example (serial:\S+) or", "{}"),
    ("serial:/dev/null,sensors=a", r"sensors must be .* for example ([\d+]+)", "serial:/dev/null,sensors={}"),
    ("monsoon:volts=5", r"write (monsoon:\S+) or", "{}"),
    ("ppk2:/dev/null", r"for example ppk2:PORT,(voltage=\S+)", "ppk2:/dev/null,{}"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "advice", "instead"), METERS, ids=[case[0] for case in METERS])
def test_what_a_message_of_a_meter_says_to_write_is_taken(name, advice, instead):
    with pytest.raises(BadInput) as refused:
        open_meter(name)
    match = re.search(advice, str(refused.value))
    assert match, refused.value
    open_meter(instead.format(match[1]))


@CASES.advice("would be read only once", r"give 1 to \d+, usually (\d+)")
def a_voltage_that_is_read_once(advice, monkeypatch):
    try:
        INA219.times(SensorSettings(mode=Mode.SHUNTS, bus_every=int(advice[1]) if advice else 0))
    except BadInput as error:
        return str(error)
    return ""


@CASES.advice("does not record sensor 1", r"for example (serial:\S+)")
def a_storage_sensor_that_is_not_recorded(advice, monkeypatch):
    count = len(advice[1].split("sensors=")[1].split("+")) if advice else 1
    if advice:
        open_meter(advice[1])
    known = KnownSensors({number: ina219_breakout() for number in range(count)}, {})
    medium = SimpleNamespace(sensor=1, path="/mnt/ssd", supply="board")
    try:
        known.of_medium(medium)  # type: ignore[arg-type]
    except BadInput as error:
        return str(error)
    return ""


CURRENTS_A = (0.05, 0.2, 0.4, 0.7, 1.0, 1.3, 1.5)


def calibrated(currents_a, *, reference=None, change=lambda taken: taken) -> str:
    """The refusal of a calibration with points at these currents; empty if there is none."""
    known = reference or bench_reference()
    taken = points(TrueSensor(1.01, -1e-3, 0.998, 0.0), TrueReference(known), currents_a=currents_a)
    try:
        made = calibrate(change(taken), known, ina219_breakout(), "x")
    except CalibrationFault as refused:
        return str(refused)
    return " ".join(made.notes)


@CASES.advice("cannot be trusted, and no energy", r"take at least (\d+)")
def too_few_points(advice, monkeypatch):
    return calibrated(CURRENTS_A[: int(advice[1]) if advice else 2])


@CASES.advice("too narrow a range", r"add points below ([\d.]+) A")
def points_at_one_current(advice, monkeypatch):
    below = [0.99 * float(advice[1]), 0.5 * float(advice[1])] if advice else []
    return calibrated([*below, 0.9, 0.95, 1.0, 1.05])


@CASES.advice("points? with a voltage: neither", r"take at least (\d+), or (none)")
def too_few_voltages(advice, monkeypatch):
    def with_voltages(taken, count):
        return [*taken[:count], *(replace(point, reference_v=None) for point in taken[count:])]

    if advice:
        assert not calibrated(CURRENTS_A, change=lambda taken: with_voltages(taken, 0))
    return calibrated(CURRENTS_A, change=lambda taken: with_voltages(taken, int(advice[1]) if advice else 2))


@CASES.advice("the current cannot be trusted", r"point (\d+) lies .* take that point again")
def a_mistyped_point(advice, monkeypatch):
    def mistyped(taken):
        taken[3] = replace(taken[3], reference_a=taken[3].reference_a + 0.01)
        if advice:
            right = points(TrueSensor(1.01, -1e-3, 0.998, 0.0), TrueReference(bench_reference()), currents_a=CURRENTS_A)
            taken[int(advice[1]) - 1] = right[int(advice[1]) - 1]
        return taken

    return calibrated(CURRENTS_A, change=mistyped)


@CASES.advice("less certain than without", "use a better reference")
def a_coarse_reference(advice, monkeypatch):
    coarse = multimeter("M", current=Accuracy.of("2%", "A"), voltage=Accuracy.of("1%", "V"), stated="")
    return calibrated(CURRENTS_A, reference=None if advice else coarse)


@pytest.mark.parametrize("case", CASES.all, ids=lambda case: case.name)
def test_what_is_advised_mends_what_is_complained_of(case, monkeypatch):
    def say(advice: re.Match[str] | None) -> str:
        with monkeypatch.context() as patch:
            return str(case.carry_out(advice, patch))

    check(case, say)


def test_what_needs_hardware_says_what_it_would_take():
    assert all(NEEDS_HARDWARE.values()) and len(CASES.all) > 20
