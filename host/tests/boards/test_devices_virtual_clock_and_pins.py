"""A virtual board whose pins are named like an ODROID-C2's, and one whose clock is slewed while it is measured."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from opjoule.base.errors import BadInput
from opjoule.base.notices import NoticeKind
from opjoule.bench.simulation.rig import RigSetup
from opjoule.bench.simulation.virtual_rig import virtual_rig
from opjoule.boards.board import Board
from opjoule.boards.medium import Medium, read_free_bytes
from opjoule.boards.probe import Probe
from opjoule.boards.profiles import find_profile
from opjoule.boards.rig import Rig, RigDevice
from opjoule.boards.rig_board import examine_board, look_at_pin, open_board
from opjoule.boards.virtual.machine import MEDIUM_BYTES, Image, Machine
from opjoule.campaign.measurement import measure
from opjoule.cli import commands
from opjoule.cli.measure.planning import make_plan, supply_of_rig
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.operations.board_files import read_events, sync_edges
from opjoule.energy.trace.journal import read_edges
from opjoule.runs.measuring.progress import PhaseProgress
from virtual_board import EMMC, LIMIT_S, ROOT, connect

pytestmark = [pytest.mark.end_to_end, pytest.mark.thorough]

# Lines 0, 1, 42 and the header's of arch/arm64/boot/dts/amlogic/meson-gxbb-odroidc2.dts (Linux), which names its pins
# by gpio-line-names (Documentation/devicetree/bindings/gpio/gpio.txt). The virtual board's chip has eight lines.
NAMES = ["Eth MDIO", "Eth MDC", "SDCard Det", "", "J2 Header Pin29", "", "J2 Header Pin24", ""]
PIN, PIN_LINE = "gpio:J2 Header Pin29", 4


class NamedLines(Machine):
    """The machine with a device tree that names its GPIO lines; booted, since a snapshot has its own tree."""

    def _command(self) -> list[str]:
        command = super()._command()
        dump = ["virt-7.2,dumpdtb=board.dtb" if word == "virt-7.2" else word for word in command]
        subprocess.run(dump, cwd=self.folder, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        subprocess.run(
            ["fdtput", "-t", "s", "board.dtb", "/pl061@9030000", "gpio-line-names", *NAMES],
            cwd=self.folder,
            check=True,
        )
        return [*command, "-dtb", "board.dtb"]


@pytest.fixture(scope="module")
def odroid(image: Image, tmp_path_factory):
    folder = tmp_path_factory.mktemp("odroid")
    made = NamedLines(Image(image.folder, "never-saved"), folder / "machine")
    yield made
    made.close()


def described(odroid: Machine, sync: str = "") -> RigDevice:
    known = odroid.folder / "known_hosts_of_the_rig"
    return RigDevice(
        "ssh:rig@127.0.0.1",
        ssh_options=tuple(odroid.image.ssh_options(odroid.port, known)),
        media={"sd": Medium("/home/rig/db")},
        sync=sync,
    )


def opened(odroid: Machine, sync: str = ""):
    rig = Rig(odroid.folder / "rig.toml", "serial:none", {"odroid-c2": described(odroid, sync)})
    return open_board(rig, find_profile("odroid-c2").with_medium("sd"), builds=ROOT / "build")


def driven(odroid: Machine) -> Counter[int]:
    """How often each line has changed since the machine started, as the emulator saw it."""
    return Counter(map(int, re.findall(r"setting output (\d+) to", odroid.edges.read_text())))


def probed(device: Board, sync: list[str], seconds: float, raw: Path) -> None:
    """The probe alone, on a board that nothing else is changed on."""
    probe = Probe(device.shell, device.programs.probe, f"{device.runner.folder}/probe", sync)
    probe.begin_files("probed")
    time.sleep(seconds)
    probe.close()
    device.runner.fetch_probe_files("probed", raw)


def test_no_line_of_an_odroid_is_taken_by_default(odroid, tmp_path):
    before = driven(odroid)
    device = opened(odroid)
    try:
        assert not device.has_sync_line
        probed(device, [], 1.0, tmp_path)
    finally:
        device.close()
    assert driven(odroid) == before


def test_a_pin_of_the_header_is_found_by_the_name_in_the_device_tree_and_driven_alone(odroid, tmp_path):
    before = driven(odroid)
    device = opened(odroid, PIN)
    try:
        assert device.has_sync_line
        probed(device, ["--sync", PIN], 6.0, tmp_path)
    finally:
        device.close()
    changes = driven(odroid) - before
    assert changes[PIN_LINE] >= 4 and list(changes) == [PIN_LINE]
    assert '"sync-edge"' in (tmp_path / "probed.events.jsonl").read_text()


@pytest.mark.parametrize(
    ("carrier", "why"),
    [
        ("gpio:/dev/gpiochip0:0", "'Eth MDIO'"),
        ("gpio:/dev/gpiochip0:2", "'SDCard Det'"),
        ("gpio:J2 Header Pin99", "J2 Header Pin29, J2 Header Pin24"),
    ],
)
def test_a_line_that_is_no_pin_of_the_header_is_refused_and_left_alone(odroid, carrier, why):
    before = driven(odroid)
    device = opened(odroid)
    try:
        with pytest.raises(BadInput, match=re.escape(why)):
            look_at_pin(device.shell, [device.programs.probe], carrier)
        pin = look_at_pin(device.shell, [device.programs.probe], PIN)
    finally:
        device.close()
    assert pin.startswith(f"/dev/gpiochip0 line {PIN_LINE} 'J2 Header Pin29', free")
    assert pin.endswith("character device v2")
    assert driven(odroid) == before


def test_doctor_shows_the_pin_that_rig_toml_names(odroid):
    [check] = [
        check
        for check in examine_board("odroid-c2", described(odroid, PIN), ROOT / "build")
        if check.about == "odroid-c2 sync"
    ]
    assert check.kind is not NoticeKind.MEND and f"/dev/gpiochip0 line {PIN_LINE} 'J2 Header Pin29'" in check.line


def test_a_medium_that_is_not_mounted_has_the_room_of_its_device(odroid):
    shell = connect(odroid)
    try:
        assert read_free_bytes(shell, Medium("/mnt/emmc", EMMC, expendable=True)) == MEDIUM_BYTES
        free_bytes = read_free_bytes(shell, Medium("/mnt/nothing/there/yet"))
        assert 0 < free_bytes < 2 << 30
    finally:
        shell.close()


# --- a clock that is slewed ---------------------------------------------------------------------------------------

SLEWED_PPM = 500
# The kernel's tick: 10,000 us a 1/100 s, one more is 100 ppm (adjtimex(2)). Both clocks are read around the change.
SLEW = f"""
import ctypes, sys, time
class Timex(ctypes.Structure):
    _fields_ = [("modes", ctypes.c_uint), *((f"a{{n}}", ctypes.c_long) for n in range(10)), ("tick", ctypes.c_long),
                ("rest", ctypes.c_long * 32)]
def clocks():
    triples = []
    for _ in range(200):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        raw = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        triples.append((time.clock_gettime_ns(time.CLOCK_MONOTONIC) - before, before, raw))
    width, before, raw = min(triples)
    print(before + width // 2, raw, flush=True)
clocks()
sys.stdin.readline()
clocks()
wanted = Timex(modes=0x4000, tick={10_000 + SLEWED_PPM // 100})
assert ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(wanted)) >= 0, ctypes.get_errno()
clocks()
sys.stdin.readline()
clocks()
"""


@pytest.fixture(scope="module")
def slewed(image, tmp_path_factory):
    """A measurement in which the board's clock begins to run 500 ppm faster as the run begins; (board, raw) pairs."""
    folder = tmp_path_factory.mktemp("slewed")
    out = folder / "record"
    parsed = commands.parse(
        ["--db", "leveldb", "--device", "virtual", "--records", "200", "--operations", "300", "--idle", "8",
         "--no-harness", "--rate", "full", "--reset", "load", "--repeats", "1"]
    )  # fmt: skip
    plan = make_plan(parsed.options)
    setup = RigSetup(root=ROOT, truth=folder / "truth.json", seed=1)
    virtual = virtual_rig(plan.board, setup, wanted={"time_daemons": "keep"}, say=print)
    with virtual as rig, closing(connect(rig.machine)) as shell:
        copied = shell.run(["sh", "-c", "cat > slew.py"], feed=SLEW.encode())
        assert copied.status == 0
        command = shell.command(["sudo", "python3", "slew.py"])
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as slewing:
            steps = threading.Thread(target=_slew_after_idle, args=(out, slewing), daemon=True)
            steps.start()
            with PhaseProgress(quiet=True) as progress:
                supply = supply_of_rig(plan, None, parsed.options)
                measure(plan, rig.board, rig.meter, out, progress, rig.facts, supply)
            steps.join()
            output, _ = slewing.communicate("end\n", timeout=LIMIT_S)
    return out, np.array([line.split() for line in output.splitlines()], dtype=np.int64)


def _slew_after_idle(out: Path, slewing: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline_s:
        if (out / "run.json").exists() and '"idle-before"' in (out / "run.json").read_text():
            break
        time.sleep(0.1)
    assert slewing.stdin
    slewing.stdin.write("now\n")
    slewing.stdin.flush()


def test_the_boards_clock_was_slewed(slewed):
    """What the other tests rest on: the rate against the clock that nothing steers, before and after."""
    _, pairs = slewed
    board_ns, raw_ns = np.diff(pairs.T)
    assert board_ns[0] / raw_ns[0] - 1 == pytest.approx(0, abs=50e-6)
    assert board_ns[2] / raw_ns[2] - 1 == pytest.approx(SLEWED_PPM * 1e-6, abs=50e-6)


def matched_edges(out: Path, board_to_meter: ClockMap) -> tuple[np.ndarray, np.ndarray]:
    """The sync line's edges as the board logged them, and as the meter saw them; they are 0.5 s and more apart."""
    logs = [read_events(path) for path in sorted((out / "raw").glob("*.events.jsonl"))]
    board_ns = sync_edges(pa.concat_tables(logs).sort_by("board_ns")).board_ns
    meter_ns = read_edges(out).meter_ns
    expected_ns = board_to_meter.to_target(board_ns)
    nearest_ns = meter_ns[np.abs(meter_ns[:, None] - expected_ns).argmin(axis=0)]
    near = np.abs(nearest_ns - expected_ns) < 50e6
    return board_ns[near], nearest_ns[near]


def test_phases_lie_where_they_were_although_the_clock_was_slewed(slewed):
    """CLOCK_MONOTONIC_RAW, which nothing steers, says when each phase began and ended: the meter's clock runs smoothly
    against it. The board stamps with the slewed clock, and its map follows that: a straight line would be off."""
    out, pairs = slewed
    run = json.loads((out / "run.json").read_text())
    board_to_meter = msgspec.convert(run["clock_maps"]["sync-edges"], ClockMap)
    board_ns, meter_ns = matched_edges(out, board_to_meter)
    assert len(board_ns) > 20

    def of_raw_ns(of_board_ns: np.ndarray) -> np.ndarray:
        return np.interp(of_board_ns, pairs[:, 0], pairs[:, 1])

    def course(of_ns: np.ndarray, at_ns: np.ndarray, degree: int) -> np.ndarray:
        """The meter's clock as a smooth course of another: through the edges, to be taken at phase boundaries."""
        ahead_ns = meter_ns - meter_ns[0] - (of_ns - of_ns[0])
        fitted = np.polyfit((of_ns - of_ns[0]) * 1e-9, ahead_ns, degree)
        return meter_ns[0] + (at_ns - of_ns[0]) + np.polyval(fitted, (at_ns - of_ns[0]) * 1e-9)

    bounds = [(phase["start_board_ns"], phase["end_board_ns"]) for phase in run["phases"]]
    bounds_ns = np.array(bounds).ravel()
    mapped_ns = board_to_meter.to_target(bounds_ns)
    off_ns = np.abs(mapped_ns - course(of_raw_ns(board_ns), of_raw_ns(bounds_ns), 2))
    # An edge is stamped by the emulator to about 0.2 ms.
    assert np.all(off_ns < 3 * board_to_meter.u_ns(bounds_ns) + 0.5e6), off_ns
    assert np.abs(mapped_ns - course(board_ns, bounds_ns, 1)).max() > 1e6


def test_the_slewing_is_recorded_and_a_fault(slewed):
    out, _ = slewed
    run = json.loads((out / "run.json").read_text())
    state = run["state"]
    assert state["before"]["clock"]["tick_us"] == 10_000 and state["after"]["clock"]["tick_us"] == 10_005
    assert any(f" +{SLEWED_PPM}.00 ppm" in note for note in state["notes"])
    assert any(f" +{SLEWED_PPM}.00 ppm" in notice["line"] for notice in run["notices"])
