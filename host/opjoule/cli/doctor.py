"""`measure.py doctor`: checks programs, builds, meter and boards, and says how to fix what is wrong."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from msgspec.structs import replace
from rich.text import Text

from opjoule.attribution.windows import BLOCKS_WANTED, block_length_s
from opjoule.base.errors import OpJouleError
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.scripts import CALIBRATIONS, ROOT
from opjoule.base.terminal import terminal
from opjoule.base.units import counted
from opjoule.boards.databases import known_databases
from opjoule.boards.profiles import find_profile, known_profiles
from opjoule.boards.rig import Rig, RigDevice, read_rig
from opjoule.boards.rig_board import PULSES, examine_board, finding
from opjoule.cli.databases import LOADER, engines, missing
from opjoule.cli.rig_commands import DoctorOptions
from opjoule.clocks.host_clock import MONOTONIC
from opjoule.energy.error_bounds import SWAPPED, ErrorBounds
from opjoule.energy.trace.journal import read_trace
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.meters.interface import Wishes
from opjoule.meters.registry import address_of, open_meter
from opjoule.meters.serial.port import serial_obstacles
from opjoule.meters.serial.ready_flag import OTHER_WAY, try_ready_flag
from opjoule.runs.measuring.open_meter import Calibrations, KnownSensors, OpenMeter, Recording, opened_meter
from opjoule.runs.measuring.supply_path import RIG_FILE, local_meter_warning, shunt_words, supply_path
from opjoule.runs.studies.folder import known_studies

LEAST_BOARD_W: Final = 0.25
"""Power below that of every board in the profiles; a Raspberry Pi Zero 2 W idles at about 0.4 W."""
LEAST_SUPPLY_V: Final = 2.0
_BOARD_PAGE: Final = "docs/how-to/connect-a-board.md"
_METER_PAGE: Final = "docs/how-to/wire-the-rig.md"
_FLOW_S: Final = 3.0
_FLOW_SAMPLES: Final = 200
_FREE_BYTES_MIN = 2 << 30
_TRIAL_S = 3.0
_TRIAL_SAMPLES = 20
_POLL_S: Final = 0.02
_AS_DELIVERED = (
    "gain and offset are those of the data sheets; calibrate it: host/calibrate.py (docs/how-to/calibrate.md)"
)


Heard = tuple[OpenMeter, Recording]
"""An open meter, and the recording of it."""


@contextmanager
def listening(meter_name: str) -> Iterator[Heard | None]:
    """Records the meter of this name during the block; None if it cannot be opened."""
    with ExitStack() as opened:
        heard = None
        with suppress(OpJouleError):  # the meter's own check has reported the fault
            folder = opened.enter_context(TemporaryDirectory(prefix="opjoule-doctor-"))
            meter = opened.enter_context(opened_meter(open_meter(meter_name), meter_name))
            heard = meter, opened.enter_context(meter.recording(Path(folder)))
        yield heard


def edge_counter(heard: Recording) -> Callable[[int, float], int]:
    """Function that returns the number of sync edges so far.

    It returns as soon as there are `count`, or after `limit_s` seconds.
    """

    def edges(count: int, limit_s: float) -> int:
        end_s = MONOTONIC.now_s() + limit_s
        while heard.capture.summary.edges < count and MONOTONIC.now_s() < end_s:
            if heard.capture.wait(_POLL_S):
                break
        return heard.capture.summary.edges

    return edges


def mean_flow(heard: Recording) -> tuple[float, float] | None:
    """Mean current [A] and voltage [V] once there are enough samples; None if no sample came."""
    trace = first_samples(heard, _FLOW_SAMPLES, _FLOW_S)
    return (float(trace.current_a.mean()), float(trace.voltage_v.mean())) if len(trace) else None


def first_samples(heard: Recording, count: int, limit_s: float) -> PowerTrace:
    """The trace so far, once it has `count` samples, the meter has ended, or `limit_s` seconds have passed."""
    end_s = MONOTONIC.now_s() + limit_s
    while len(trace := read_trace(heard.folder)) < count and MONOTONIC.now_s() < end_s:
        if heard.capture.wait(_POLL_S):
            return read_trace(heard.folder)
    return trace


def flow_finding(name: str, flow: tuple[float, float] | None, bounds: ErrorBounds) -> Notice:
    """Whether current [A] and voltage [V] fit a board that has just answered and is fed through this meter."""
    about = f"{name} current"
    if flow is None:
        return finding(about, False, "the meter gave no sample", "see the lines of the meter above")
    current_a, voltage_v = flow
    seen = f"{current_a:.3f} A at {voltage_v:.2f} V"
    if bounds.is_backwards(current_a):
        return finding(about, False, f"{seen}: it flows backwards", SWAPPED)
    if bounds.voltage_step_v and voltage_v < LEAST_SUPPLY_V:
        return finding(
            about,
            False,
            f"{seen}: the board runs, but the sensor does not see its supply",
            "connect VIN\N{MINUS SIGN} (VBUS of an INA226 or INA228) to the board's +5 V, and the sensor's GND to the "
            "board's GND",
        )
    if current_a * voltage_v < LEAST_BOARD_W:
        return finding(
            about,
            False,
            f"{seen}: the board runs on less than {LEAST_BOARD_W:g} W of this supply, so another one feeds it",
            "unplug HDMI, powered hubs, USB serial adapters and every second supply (docs/how-to/wire-the-rig.md), or "
            "move the meter to this board",
        )
    return finding(about, True, f"{seen}, {current_a * voltage_v:.2f} W")


_MARKS: Final = {
    NoticeKind.NOTE: ("note", "yellow"),
    NoticeKind.SOUND: ("ok  ", "green"),
    NoticeKind.MEND: ("MEND", "red"),
}


def run_doctor(options: DoctorOptions) -> int:
    """Prints every finding; 0 if all is well, 1 if something must be fixed."""
    console = terminal(soft_wrap=True)
    bad = 0
    for notice in examine(options.rig, simulate=options.simulate, pulses=options.pulses):
        console.print(Text(*_MARKS[notice.kind]).append(f" {notice.about}: {notice.line}", "default"))
        if notice.kind is NoticeKind.MEND:
            bad += 1
            if notice.remedy:
                console.print(f"       -> {notice.remedy}")
    console.print("All is well." if not bad else f"{counted(bad, 'fault')} to mend.")
    return 1 if bad else 0


def examine(rig_path: Path, *, simulate: bool, pulses: int | None = None) -> Iterator[Notice]:
    """All findings, in the order in which a measurement would meet them.

    `pulses` are played on each sync line; None: a few if the meter can see them.

    The simulated rig needs no rig.toml.
    """
    yield _loader()
    free_bytes = shutil.disk_usage(ROOT).free
    space = f"{free_bytes / 1e9:.1f} GB free at {ROOT}"
    remedy = "free at least 2 GB, or give --out on another disk"
    yield finding("disk space", free_bytes >= _FREE_BYTES_MIN, space, remedy)
    stand_ins = [f"{database.title} ({database.stand_in})" for database in known_databases() if database.stand_in]
    yield Notice(NoticeKind.NOTE, about="tested otherwise", line="; ".join(stand_ins))
    there = rig_path.exists()
    if simulate or not there:
        yield from _simulated_rig()
    if there or not simulate:
        yield from _guarded("rig", _BOARD_PAGE, _rig(rig_path, pulses))


def _guarded(about: str, page: str, findings: Iterator[Notice]) -> Iterator[Notice]:
    """The findings; an error ends them and is a finding of its own, whose remedy is a page of the documentation."""
    try:
        yield from findings
    except OpJouleError as error:
        yield finding(about, False, str(error), f"see {page}")


def _loader() -> Notice:
    again = "and start host/measure.py again"
    try:
        listed = engines()
    except (OSError, subprocess.SubprocessError) as error:
        why = f"{LOADER} does not run ({error})"
        return finding("loader", False, why, f"remove build/ {again}")
    known = [database.name for database in known_databases() if database.kind == "loader"]
    inside = ", ".join(name for name in known if name in listed) or "no engine yet"
    others = [name for name in known if name not in listed]
    later = f"; a measurement of {', '.join(others)} builds that engine first" if others else ""
    return finding("loader", True, f"{LOADER.relative_to(ROOT)} with {inside}{later}")


def _simulated_rig() -> Iterator[Notice]:
    """Parts of the simulated rig, and what a simulated board lacks for each study (needed only for that study)."""
    remedy = "run host/measure.py doctor --simulate: it builds this, or names the missing package"
    for about, path in (
        ("rig simulator", ROOT / "build/rig-sim/rig-sim"),
        ("firmware", ROOT / ".pio/build/uno/firmware.elf"),
        ("medium simulator", ROOT / "build/loader/medium-sim"),
    ):
        there = "is built" if path.exists() else "is missing"
        yield finding(about, path.exists(), f"{path.relative_to(ROOT)} {there}", remedy)
    for study in known_studies():
        lacking = "; ".join(f"{name}: {state.words}" for name, state in missing(study).items())
        kind = NoticeKind.NOTE if lacking else NoticeKind.SOUND
        yield Notice(kind, lacking or "all its systems are available", about=f"study {study.name}")


def _rig(path: Path, pulses: int | None) -> Iterator[Notice]:
    rig = read_rig(path)
    yield finding("rig description", True, f"{path}: {', '.join(sorted(rig.devices)) or 'no board yet'}")
    yield from _guarded("meter port", _METER_PAGE, _port(rig))
    yield from _guarded("meter", _METER_PAGE, _meter(rig))
    with listening(rig.meter) as heard:
        for name, device in sorted(rig.devices.items()):
            yield from _guarded(f"{name} supply", _BOARD_PAGE, _supply(name, rig))
            yield from _guarded(name, _BOARD_PAGE, _board(name, device, pulses, heard))


def _port(rig: Rig) -> Iterator[Notice]:
    """Obstacles to opening a meter on a serial port, found before it is opened."""
    address = address_of(rig.meter)
    if address.kind.on_serial_port and address.place.startswith("/"):  # not udp:6000
        for obstacle in serial_obstacles(address.place):
            yield replace(obstacle, about="meter port")


def _meter(rig: Rig) -> Iterator[Notice]:
    calibrations = Calibrations(CALIBRATIONS, rig.room.temperature_c)
    with opened_meter(open_meter(rig.meter, Wishes(stated_in=RIG_FILE)), rig.meter, calibrations) as meter:
        identity, known = meter.identity, meter.sensors
        period_s = sample_period_s(meter)
    on_bus = identity.kind == "serial"
    sensors = [f"{sensor.model} at 0x{sensor.address:02x}" if on_bus else sensor.model for sensor in identity.sensors]
    firmware = f", firmware {identity.firmware_version}" if identity.firmware_version else ""
    about = f"{identity.board} on {identity.place}{firmware}, {', '.join(sensors) or 'no sensor'}"
    yield finding("meter", bool(identity.sensors), about, "check the sensor's wiring: VCC, GND, SDA, SCL")
    if shunt := meter.bounds.shunt:
        yield finding("shunt", True, shunt_words(shunt.ohm, shunt.tolerance, shunt.origin))
    yield from calibration_findings(known)
    if period_s:
        yield kinds_finding(period_s)
    for notice in identity.notices:
        yield finding("meter", False, notice.line, notice.remedy)
    for note in identity.notes:
        yield Notice(NoticeKind.NOTE, about="meter", line=note)
    if on_bus and identity.sensors:
        yield from _ready_flags(rig)


def sample_period_s(meter: OpenMeter) -> float:
    """Sample period of an open meter, from a short trial [s]; 0 if no samples came."""
    with TemporaryDirectory(prefix="opjoule-doctor-") as folder, meter.recording(Path(folder)) as heard:
        stamps_ns = first_samples(heard, _TRIAL_SAMPLES, _TRIAL_S).meter_ns
    return float(np.median(np.diff(stamps_ns))) * 1e-9 if stamps_ns.size > 1 else 0.0


def kinds_finding(period_s: float) -> Notice:
    """How long a run must be for this meter to separate the costs of kinds of operation."""
    block_s = block_length_s(period_s)
    words = (
        f"one sample every {1e3 * period_s:.3g} ms: --design changes the mix every {block_s:g} s. It separates kinds "
        f"in runs of {BLOCKS_WANTED} such blocks ({BLOCKS_WANTED * block_s:.3g} s) or more; longer runs are better"
    )
    return finding("kinds of operation", True, words)


def calibration_findings(known: KnownSensors) -> Iterator[Notice]:
    """One finding per sensor: its calibration, or how to calibrate it."""
    for number, bounds in known.bounds.items():
        if calibration := known.found.get(number):
            yield finding("calibration", True, calibration.file.title)
            continue
        words = (
            "none; the sensor has no name under which one could be found: add label=NAME to the "
            f"meter's port, for example serial:/dev/ttyACM0,label=bench-1; {_AS_DELIVERED}"
        )
        if bounds.sensor_id:
            words = f"sensor {bounds.sensor_id} has none: {_AS_DELIVERED}"
        yield Notice(NoticeKind.NOTE, about="calibration", line=words)
    for notice in known.notices:
        yield Notice(NoticeKind.NOTE, about="calibration", line=notice.text)


def _ready_flags(rig: Rig) -> Iterator[Notice]:
    """One finding per recorded sensor: whether the firmware can rely on its conversion-ready flag."""
    address = address_of(rig.meter)
    for sensor in address.options.sensors:
        trial = try_ready_flag(address.needed_place(), sensor)
        if trial is not None:
            yield finding("ready flag", not trial.trouble, f"sensor {sensor}, {trial.words}", OTHER_WAY)


def _supply(name: str, rig: Rig) -> Iterator[Notice]:
    path = supply_path(find_profile(name), rig.meter, RIG_FILE, rig.supply)
    yield finding(f"{name} supply", not path.warning, path.supply_words, path.remedy)
    if warning := local_meter_warning(rig.device(name).connection, rig.meter):
        yield Notice(NoticeKind.NOTE, about=f"{name} supply", line=warning)


def _board(name: str, device: RigDevice, pulses: int | None, heard: Heard | None) -> Iterator[Notice]:
    """Findings of one board while the meter records; `pulses` None: a few are played if the meter can count them."""
    profile = find_profile(name)
    yield finding(name, name in known_profiles(), f"{profile.title}, {device.connection}")
    for medium in device.media:
        if medium not in profile.media:
            remedy = f"use one of {', '.join(profile.media)}"
            yield finding(f"{name} {medium}", False, "the board has no such medium", remedy)
        elif medium.startswith("ssd-usb") and profile.supply_note:
            yield Notice(NoticeKind.NOTE, about=f"{name} {medium}", line=profile.supply_note)
    has_sync_input = heard and address_of(heard[0].name).kind.sync_input
    edges = edge_counter(heard[1]) if heard and has_sync_input else None
    played = pulses if pulses is not None else PULSES if edges else 0
    answered = False
    for notice in examine_board(name, device, ROOT / "build", pulses=played, edges=edges):
        answered |= notice.kind is not NoticeKind.MEND
        yield notice
    if heard and answered:
        yield flow_finding(name, mean_flow(heard[1]), heard[0].bounds)
