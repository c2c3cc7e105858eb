"""The rehearsal of `measure.py commission`: a simulated desk that is rewired automatically. SIMULATED."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from opjoule.base.scripts import ROOT
from opjoule.base.terminal import say
from opjoule.bench.commissioning.certificate import Certificate
from opjoule.bench.commissioning.desk import DeskPace, OpenDesk, Setup
from opjoule.bench.commissioning.dialogue import Parts
from opjoule.bench.commissioning.known_loads import ZERO_A
from opjoule.bench.commissioning.running import DeskRecording, Running, meter_words
from opjoule.bench.commissioning.steps import DeskStep
from opjoule.bench.simulation.rehearsal_desk import BETWEEN_OHM, DrawnRig, LoadBench
from opjoule.bench.simulation.rehearsal_rig import rehearsal_rig, second_meter
from opjoule.bench.simulation.rig import SIMULATED_FILES
from opjoule.meters.registry import open_meter
from opjoule.runs.measuring.open_meter import opened_meter


def _connected(simulated: LoadBench, drawn: DrawnRig, setup: Setup) -> None:
    say(f"      {setup.value} (SIMULATED: done)")
    one, other = 1 / drawn.load_a_ohm, 1 / drawn.load_b_ohm
    loads = {
        Setup.UNPLUGGED: 0.0,
        **dict.fromkeys((Setup.LOAD_A, Setup.A_HOT), one),
        **dict.fromkeys((Setup.LOAD_B, Setup.B_HOT), other),
        **dict.fromkeys((Setup.BOTH, Setup.BOTH_HOT), one + other),
    }
    if setup is Setup.FUSE_PULLED:
        simulated.pull_fuse()
    else:
        simulated.connect(loads.get(setup))


def _taken(simulated: LoadBench, folder: Path, seconds: float) -> DeskRecording:
    """A recording without the board's programs, as fast as this computer can simulate it."""
    with simulated.running(seconds) as name, opened_meter(open_meter(name), name) as meter:
        with Running(meter, folder) as running:
            running.wait(seconds)
        return running.recorded()


@contextmanager
def simulated_desk(
    drawn: DrawnRig, certificate: Certificate, pace: DeskPace, step: DeskStep, folder: Path
) -> Iterator[OpenDesk]:
    """The equipment that one step needs, on a simulated desk that is the same for all steps."""
    parts = Parts(
        supply="simulated",
        sensor="simulated",
        resistor=f"{drawn.load_a_ohm:g},0.1%",
        second_meter="simulated",
        between_ohm=f"{BETWEEN_OHM:g}",
    )
    certificate.parts = parts
    simulated = LoadBench(drawn, ROOT)
    set_up, zero_a = partial(_connected, simulated, drawn), certificate.figure("zero", ZERO_A)
    desk = OpenDesk(set_up, folder, pace, parts, drawn.profile, zero_a)
    if not step.board:
        yield replace(desk, record=partial(_taken, simulated))
        return
    files = ROOT / SIMULATED_FILES / f"commissioning-{os.getpid()}-{step.key}"
    witness = second_meter(drawn)
    with rehearsal_rig(drawn, witness, root=ROOT, files=files) as rig, ExitStack() as opened:
        meter = opened.enter_context(opened_meter(open_meter(rig.meter), rig.meter))
        second = opened.enter_context(opened_meter(witness, "")) if step.second else None
        certificate.meter = meter_words(meter)
        yield replace(desk, rig=meter, open_board=lambda: nullcontext(rig.board), second=second)
