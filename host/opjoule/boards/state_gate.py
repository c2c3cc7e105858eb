"""The state gate: the board's state before, during and after a measurement, and the limits that it breaks."""

import fcntl
import json
import os
import re
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

from opjoule.base.errors import OpJouleError
from opjoule.base.files import write_whole
from opjoule.boards.profiles import Profile
from opjoule.boards.shell import Dialogue, LocalShell, Shell, script

HWMON = "/sys/class/hwmon"
FLAGS_PERIOD_S = 1.0
"""Half of the kernel's own period, so that every state of its flags is seen."""
_FLAGS = {0: "under-voltage", 1: "frequency capped", 2: "throttled", 3: "soft temperature limit"}
_UNDER_VOLTAGE = 1 << 0
PERIOD_S = 5.0
OTHERS_LIMIT = 0.10
"""Largest share of all processors that other programs may use before the run."""
FREE_LIMIT_BYTES = 256 << 20
SPEED_CHANGE_LIMIT = 0.3
"""Largest relative difference of the medium's speed from the median of its earlier probes."""
_EARLIER_NEEDED = 3
_SPEED_MIB = 16
_STRETCH_S = 1.0
_STRETCHES_MAX = 8
"""Number of stretches tried before a busy board is refused: a login and the preparation take some seconds."""
_WATCH = script("watch.sh")
_SPEED = script("medium_speed.sh")
_COPIED = re.compile(r"^(\d+) bytes .*copied, ([0-9.e+-]+) s", re.MULTILINE)
FAULT_PPM = 100.0
"""A tenth of the accuracy required of the energies; no oscillator changes that much in a run."""
STEERED_PPM = 0.05
"""Change of the kernel's rate that is ignored: less than a crystal's own over minutes."""


def flag_lines(seen: int) -> list[str]:
    """One line for each of the firmware's flags 0 to 3 that was seen."""
    return [f"firmware reports {name}" for bit, name in _FLAGS.items() if seen >> bit & 1]


@dataclass
class PowerFlags:
    """Supply flags of a Raspberry Pi's firmware in one measurement: the union of all readings.

    Sources: raspberrypi/documentation, get_throttled (bits 0 to 3 are now, 16 to 19 since they were last cleared);
    drivers/hwmon/raspberrypi-hwmon.c asks the firmware every 2 s, has it clear the sticky bits, and shows the
    under-voltage that it found as in0_lcrit_alarm. Less frequent readings miss events in between.
    """

    seen: int = 0
    """Bits 0 to 3: everything that was true at any time during the measurement."""
    readable: bool = False
    _last: int | None = None

    def add(self, throttled: int | None, alarm: bool | None) -> None:
        """Adds a reading: the firmware's flags and the kernel's alarm, each None if it cannot be read.

        A sticky bit counts when it rises: a bit set before the first reading is from before the measurement.
        """
        self.readable |= throttled is not None or alarm is not None
        if throttled is not None:
            before = throttled if self._last is None else self._last
            self.seen |= throttled & 0xF | (throttled & ~before) >> 16 & 0xF
            self._last = throttled
        self.seen |= _UNDER_VOLTAGE if alarm else 0

    def broken(self) -> list[str]:
        """One line for each flag that was seen."""
        return flag_lines(self.seen)

    def unknown(self) -> list[str]:
        """Line on the unknown flags, if there was nothing to read."""
        if self.readable:
            return []
        return [
            "under-voltage and throttling: this kernel shows neither get_throttled nor rpi_volt; only the "
            "voltage in the trace shows them"
        ]


@dataclass(frozen=True)
class StateReading:
    """The board's sensors at one moment; None for values that the board does not report."""

    temperature_c: float | None
    throttled: int | None
    under_voltage_alarm: bool | None
    """The kernel's own under-voltage alarm (rpi_volt)."""
    frequencies_khz: tuple[int, ...]
    busy_ticks: int
    total_ticks: int
    fan_state: int | None = None
    """Step of the board's fan; its current is included in the measurement."""

    @classmethod
    def parse(cls, line: str) -> Self:
        """One answer of the watching script."""
        temperature, throttled, alarm, frequencies, busy, total, fan = line.split()
        return cls(
            None if temperature == "-" else int(temperature) / 1000,
            *parse_flags(throttled, alarm),
            tuple(int(khz) for khz in frequencies.strip(",-").split(",") if khz),
            int(busy),
            int(total),
            None if fan == "-" else int(fan),
        )

    def to_json(self) -> dict[str, Any]:
        """The reading in the form of run.json."""
        return {key: value for key, value in asdict(self).items() if key not in ("busy_ticks", "total_ticks")}


def parse_flags(throttled: str, alarm: str) -> tuple[int | None, bool | None]:
    """Both words of an answer to "flags"."""
    return None if throttled == "-" else int(throttled, 16), None if alarm == "-" else alarm != "0"


@dataclass(frozen=True)
class MediumSpeed:
    """A short sequential write and read without the page cache [B/s]; not a benchmark, but the same each time."""

    write_bytes_per_s: float
    read_bytes_per_s: float


@dataclass
class StateReport:
    """`state` of run.json."""

    before: dict[str, Any] = field(default_factory=dict)
    during: list[dict[str, Any]] = field(default_factory=list)
    after: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    flags_seen: int = 0
    """Union of firmware flags 0 to 3 over readings one second apart."""
    unknown: list[str] = field(default_factory=list)
    """Values that this board does not report, one line each."""
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class StateWatch:
    """Reads the board's state at the start, every few seconds, and at the end."""

    shell: Shell = field(kw_only=False)
    profile: Profile = field(kw_only=False)
    folder: str
    """Directory on the medium, which exists when start() is called."""
    identity: str
    """Identity of this medium, for the comparison with its earlier speed."""
    cpufreq: str
    history: Path | None
    """Host file with the earlier speeds of all media; None for no comparison."""
    discipline: Callable[[], dict[str, Any]] | None = None
    """Reads the adjustment of the board's clock, before and after."""
    hwmon: str = HWMON

    def __post_init__(self) -> None:
        """Starts the watching shell; nothing is read yet."""
        self._flags = PowerFlags()
        arguments = [self.profile.temperature, self.profile.throttled, self.cpufreq, self.hwmon]
        self._dialogue = Dialogue(self.shell, ["sh", "-c", _WATCH, "sh", *arguments])
        self._dialogue.start()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="state-watch", daemon=True)
        self._readings: list[StateReading] = []
        self.tell_temperature: Callable[[float], None] = lambda celsius: None
        """Called with each temperature as it is read."""
        self.report = StateReport(
            limits={
                "temperature_c": self.profile.temperature_limit_c,
                "others_cpu_fraction": OTHERS_LIMIT,
                "free_bytes": FREE_LIMIT_BYTES,
                "medium_speed_change": SPEED_CHANGE_LIMIT,
            }
        )

    def start(self) -> None:
        """Reads the state before the run, then every few seconds. Raises: LinkFault: the connection is gone."""
        # first, because a card draws more power for a second afterwards
        free_bytes, speed = self._medium_speed()
        others, second = quiet_stretch(self._read, partial(own_busy_ticks, self.shell), self._stop.wait)
        self.report.before = {
            **second.to_json(),
            "others_cpu_fraction": round(others, 4),
            "free_bytes": free_bytes,
            "medium": self.identity,
            "medium_speed": asdict(speed) if speed else None,
        }
        if self.discipline:
            self.report.before["clock"] = self.discipline()
        self.report.broken += broken_before(others, free_bytes)
        if speed and self.history:
            self.report.broken += compare_speed(self.history, self.identity, speed)
        self._thread.start()

    def stop(self) -> StateReport:
        """The state after the run, and every broken limit; a board that is gone also breaks a limit."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2 * PERIOD_S)
        try:
            last = self._read()
            self.report.after = {**last.to_json(), "free_bytes": self._medium_speed(0)[0]}
            if self.discipline:
                self.report.after["clock"] = self.discipline()
                clocks = self.report.before.get("clock", {}), self.report.after["clock"]
                self.report.notes += steered(*clocks)
                self.report.broken += broken_by_steering(*clocks)
        except OpJouleError as error:
            self.report.broken.append(f"state after the run unknown: {error}")
        finally:
            self._dialogue.close()
        self.report.during = [reading.to_json() for reading in self._readings]
        self.report.broken += broken_by_readings(self._readings, self.profile.temperature_limit_c)
        self.report.notes += fan_notes(self._readings)
        self.report.broken += self._flags.broken()
        self.report.flags_seen = self._flags.seen
        self.report.unknown = self._flags.unknown()
        return self.report

    def _run(self) -> None:
        turn = 0
        while not self._stop.wait(FLAGS_PERIOD_S):
            turn += 1
            try:
                if turn % round(PERIOD_S / FLAGS_PERIOD_S) == 0:
                    self._read()
                else:
                    self._flags.add(*parse_flags(*self._dialogue.ask("flags")[0].split()))
            except OpJouleError:
                continue  # the measurement handles a lost link

    def _read(self) -> StateReading:
        reading = StateReading.parse(self._dialogue.ask()[0])
        self._readings.append(reading)
        self._flags.add(reading.throttled, reading.under_voltage_alarm)
        if reading.temperature_c is not None:
            self.tell_temperature(reading.temperature_c)
        return reading

    def _medium_speed(self, mib: int = _SPEED_MIB) -> tuple[int, MediumSpeed | None]:
        """Free bytes of the medium, and its speed over a file of `mib`; None without direct access."""
        ran = self.shell.run(["sh", "-c", _SPEED, "sh", self.folder, str(mib)], limit_s=300)
        blocks = ran.text().split()
        free_bytes = int(blocks[0]) * int(blocks[1]) if len(blocks) == 2 else 0
        rates = [int(count) / max(float(seconds), 1e-9) for count, seconds in _COPIED.findall(ran.err)]
        return free_bytes, MediumSpeed(*rates) if len(rates) == 2 else None


def quiet_stretch(
    read: Callable[[], StateReading], own_ticks: Callable[[], float], wait: Callable[[float], object]
) -> tuple[float, StateReading]:
    """Waits for a stretch in which other programs use at most OTHERS_LIMIT of the processors.

    Args:
        own_ticks: processor time used by this program [ticks of the board].
    Returns: the share used by other programs in that stretch, and the reading at its end; of the last stretch if
        none was quiet.
    Raises: LinkFault: the connection is gone.
    """
    others, last = 1.0, read()
    for _ in range(_STRETCHES_MAX):
        first, own_ticks_now = last, own_ticks()
        wait(_STRETCH_S)
        last = read()
        busy = last.busy_ticks - first.busy_ticks - (own_ticks() - own_ticks_now)
        others = max(busy, 0.0) / max(last.total_ticks - first.total_ticks, 1)
        if others <= OTHERS_LIMIT:
            break
    return others, last


def own_busy_ticks(shell: Shell) -> float:
    """Processor time used by this program, in the board's ticks; 0 on a computer that is not the board."""
    return time.process_time() * os.sysconf("SC_CLK_TCK") if isinstance(shell, LocalShell) else 0.0


def broken_before(others: float, free_bytes: int) -> list[str]:
    """Limits that the board's state before the run breaks."""
    lines = []
    if others > OTHERS_LIMIT:
        lines.append(f"other programs used {others:.0%} of the processors before the run (limit {OTHERS_LIMIT:.0%})")
    if free_bytes < FREE_LIMIT_BYTES:
        lines.append(f"{free_bytes >> 20} MiB free on the medium (limit {FREE_LIMIT_BYTES >> 20} MiB)")
    return lines


def fan_notes(readings: Sequence[StateReading]) -> list[str]:
    """One line if the board's fan was switched during the run."""
    steps = sorted({reading.fan_state for reading in readings if reading.fan_state is not None})
    if len(steps) < 2:
        return []
    return [
        f"the board's fan was switched between the steps {steps[0]} and {steps[-1]}: its power is in every figure; "
        f"fan = {steps[-1]} in [device.NAME.state] of rig.toml keeps it at one step"
    ]


def broken_by_readings(readings: Sequence[StateReading], temperature_limit_c: float) -> list[str]:
    """Limits that any reading breaks."""
    temperatures = [reading.temperature_c for reading in readings if reading.temperature_c is not None]
    if not temperatures or max(temperatures) < temperature_limit_c:
        return []
    return [f"temperature reached {max(temperatures):.1f} C (limit {temperature_limit_c:g} C)"]


def compare_speed(history: Path, identity: str, speed: MediumSpeed) -> list[str]:
    """Adds `speed` to the medium's history; returns a line if it is far from the median of the earlier ones."""
    history.parent.mkdir(parents=True, exist_ok=True)
    with history.with_suffix(".lock").open("w") as lock:
        # another measurement may be running on this computer
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            media: dict[str, list[dict[str, float]]] = json.loads(history.read_text())
        except (OSError, ValueError):
            media = {}
        earlier = media.get(identity, [])
        media[identity] = [*earlier, asdict(speed)][-20:]
        write_whole(history, json.dumps(media, indent=1).encode())
    lines = []
    for key, value in asdict(speed).items() if len(earlier) >= _EARLIER_NEEDED else ():
        usual = statistics.median(run[key] for run in earlier)
        if abs(value / usual - 1) > SPEED_CHANGE_LIMIT:
            name = key.removesuffix("_bytes_per_s")
            lines.append(f"medium {name} speed {value / 1e6:.1f} MB/s, usually {usual / 1e6:.1f} MB/s")
    return lines


def rate_change_ppm(before: dict[str, Any], after: dict[str, Any]) -> float:
    """Change of the kernel's rate between two readings; 0 if one of them is unknown."""
    if not {"frequency_ppm", "tick_us"} <= before.keys() & after.keys():
        return 0.0
    of_tick_ppm = 100.0 * (after["tick_us"] - before["tick_us"])  # USER_HZ = 100: 1 us in 10 ms
    return float(after["frequency_ppm"] - before["frequency_ppm"] + of_tick_ppm)


def broken_by_steering(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The limit that a change of the rate breaks: the measurement's seconds are the board's."""
    change_ppm = rate_change_ppm(before, after)
    if abs(change_ppm) < FAULT_PPM:
        return []
    return [
        f"its clock was steered: its rate changed by {change_ppm:+.2f} ppm, and all seconds, energies and "
        "powers with it. Stop the program that sets it (chrony, ntpd, systemd-timesyncd)"
    ]


def steered(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Adjustments of the clock between two readings, one line each."""
    lines = []
    change_ppm = rate_change_ppm(before, after)
    if abs(change_ppm) > STEERED_PPM:
        lines.append(f"the board's clock was steered during the measurement: its rate changed by {change_ppm:+.2f} ppm")
    if abs(before.get("offset_s", 0.0)) > 1e-6:
        lines.append(
            f"at the start the kernel was still slewing the board's clock by {before['offset_s'] * 1e6:.0f} us"
        )
    return lines
