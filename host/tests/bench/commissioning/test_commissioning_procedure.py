"""The procedure at the desk: asked, resumed, skipped, interrupted; its certificate, page, and note on figures."""

from __future__ import annotations

import re
import tomllib
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from opjoule.base.errors import FAULTY_EXIT, BadInput, MeterFault
from opjoule.base.files import file_sha256
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.terminal import Stopped
from opjoule.bench.commissioning.certificate import (
    STEPS,
    Certificate,
    DeskStep,
    Procedure,
    commissioning_note,
    read_certificate,
    step_called,
    write_certificate,
)
from opjoule.bench.commissioning.desk import (
    CheckedFigure,
    DeskDialogue,
    DeskPace,
    Parts,
    Picture,
    Skipped,
    StepOutcome,
    Verdict,
    known_resistor,
)
from opjoule.bench.commissioning.page import render
from opjoule.bench.simulation.rehearsal import PLANTS
from opjoule.boards.rig import read_rig
from opjoule.cli import commands, commission
from opjoule.cli.commands import main
from opjoule.cli.measure import planning
from opjoule.cli.rig_commands import PLANTED, STEP_KEYS
from software_meter import SoftwareMeter

REPOSITORY = Path(__file__).resolve().parents[4]

WELL = Verdict.of(
    "fine",
    [],
    {"zero_a": CheckedFigure(1e-3, "A", "at most 2 mA")},
    Picture([1, 2], [3.5, 4], "A", "V", 0.5, 3.0),
)
BROKEN = Verdict.of("odd", [Notice(NoticeKind.MEND, 'a "wire"\n', "mend \\ it")], {})


def scripted(*answers):
    """A dialogue that is answered from a list, then by nobody."""
    left = list(answers)
    return DeskDialogue(lambda question: left.pop(0) if left else None)


def procedure(tmp_path, outcomes, dialogue=None, certificate=None):
    """Steps whose verdicts, or exceptions, are given by key, in turn; the others pass."""
    lines, saved = [], []
    waiting = {key: list(verdicts) for key, verdicts in outcomes.items()}
    certificate = certificate or Certificate("hash", "rpi4", "sd", simulated=False)

    @contextmanager
    def open_desk(step, folder):
        folder.mkdir(parents=True)
        yield SimpleNamespace()

    def carry_out(key):
        def one(desk, kept, medium):
            result = waiting[key].pop(0) if waiting.get(key) else WELL
            if isinstance(result, BaseException):
                raise result
            return result

        return one

    made = Procedure(
        certificate,
        open_desk,
        lambda: saved.append(dict(certificate.finished)),
        lines.append,
        tmp_path,
        dialogue,
    )
    steps = [DeskStep(step.key, step.title, step.measures, carry_out(step.key)) for step in STEPS]
    return made, steps, lines, saved


def test_a_sound_rig_passes_in_twelve_steps_each_saved_at_once(tmp_path):
    made, steps, lines, saved = procedure(tmp_path, {})
    assert made.run(steps) is True
    assert len(saved) == 12 and [len(finished) for finished in saved] == list(range(1, 13))
    assert made.certificate.conclusion.endswith("has passed")
    assert "12 of 12  Idle power" in lines[-2]


def test_without_a_person_the_first_fault_ends_it_with_its_advice(tmp_path):
    made, steps, lines, _ = procedure(tmp_path, {"resistor": [BROKEN]})
    assert made.run(steps) is False
    assert list(made.certificate.finished) == ["zero", "back-feed", "resistor"]
    assert lines[-1].endswith("-> mend \\ it")


def test_a_person_mends_and_repeats_or_goes_on_with_the_fault(tmp_path):
    made, steps, _, _ = procedure(
        tmp_path, {"zero": [BROKEN, BROKEN], "sync": [BROKEN]}, scripted("", "repeat", "what?", "next")
    )
    assert made.run(steps) is False
    finished = made.certificate.finished
    assert finished["zero"].outcome is StepOutcome.PASSED
    assert finished["sync"].outcome is StepOutcome.FAILED and len(finished) == 12


def test_whatever_the_rig_does_wrong_is_a_verdict(tmp_path):
    made, steps, _, _ = procedure(tmp_path, {"zero": [MeterFault("no meter")]}, scripted("stop"))
    with pytest.raises(Stopped):
        made.run(steps)
    assert made.certificate.finished["zero"].words == "no meter"


def test_a_step_is_left_out_with_a_reason_which_the_certificate_tells(tmp_path):
    made, steps, _, _ = procedure(tmp_path, {"resistor": [Skipped("no resistor")]})
    assert made.run(steps) is True
    write_certificate(tmp_path / "c.toml", made.certificate)
    certificate = read_certificate(tmp_path / "c.toml")
    assert certificate.finished["resistor"].words == "no resistor"
    assert re.search("has passed; .*: A known resistor$", certificate.conclusion)


def test_an_interrupted_procedure_goes_on_after_what_is_finished(tmp_path):
    made, steps, _, _ = procedure(tmp_path / "one", {"sync": [KeyboardInterrupt()], "zero": [WELL]})
    with pytest.raises(KeyboardInterrupt):
        made.run(steps)
    write_certificate(tmp_path / "c.toml", made.certificate)
    again, steps, lines, saved = procedure(tmp_path / "two", {}, certificate=read_certificate(tmp_path / "c.toml"))
    assert again.run(steps) is True
    assert len(saved) == 8 and "as before" in lines[0]


def test_a_failed_step_is_repeated_when_it_goes_on_and_all_are_when_asked(tmp_path):
    made, steps, _, saved = procedure(tmp_path, {"zero": [BROKEN]})
    made.run(steps)
    made.run(steps)
    assert made.certificate.titles(StepOutcome.FAILED) == []
    before = len(saved)
    made.run(steps, again=True)
    assert len(saved) == before + 12


def test_a_certificate_reads_back_as_it_was_written(tmp_path):
    certificate = Certificate(
        "abc", "rpi4", "sd", simulated=False, parts=Parts(supply="Mean Well\t5", resistor="10,0.1%")
    )
    certificate.meter = {"board": "atmega328p", "firmware": "1.2.3"}
    certificate.finish("zero", WELL, tmp_path)
    certificate.finish("resistor", BROKEN)
    path = tmp_path / "commissioning.toml"
    write_certificate(path, certificate)
    assert read_certificate(path) == certificate
    assert tomllib.loads(path.read_text())["conclusion"] == certificate.conclusion
    assert "not passed" in certificate.conclusion


@pytest.mark.parametrize(
    "content",
    [
        "",
        "schema = 2",
        "schema = 1",
        "no toml",
        'schema = 1\nrig_sha256 = ""\ndevice = ""\nstorage = ""\nsimulated = false\n[[step]]\nkey = "other"',
    ],
)
def test_a_file_that_is_no_certificate_is_one_clear_line(tmp_path, content):
    path = tmp_path / "commissioning.toml"
    path.write_text(content)
    with pytest.raises(BadInput, match=r"commissioning\.toml"):
        read_certificate(path)


@pytest.fixture
def rig(tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text('[meter]\nport = "serial:/dev/ttyACM0"\n\n[device.rpi4]\nconnection = "ssh:pi@board"\n')
    return path


def commissioned(rig, *, failed=(), left=(), skipped=(), **more):
    """A certificate beside rig.toml."""
    certificate = Certificate(file_sha256(rig), "rpi4", "sd", **{"simulated": False, **more})
    for step in STEPS:
        if step.key in left:
            continue
        verdict = BROKEN if step.key in failed else Verdict.skipped("why") if step.key in skipped else WELL
        certificate.finish(step.key, verdict)
    write_certificate(rig.with_name("commissioning.toml"), certificate)


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (None, "not been commissioned"),
        ({}, ""),
        ({"simulated": True}, "not been commissioned"),
        ({"failed": ("sync",)}, "failed: Every sync pulse"),
        ({"left": ("idle",)}, "1 of 12 steps are left"),
        ({"skipped": ("resistor",)}, "A known resistor"),
    ],
)
def test_figures_of_a_rig_that_is_not_commissioned_say_so_in_one_line(rig, case, said):
    if case is not None:
        commissioned(rig, **case)
    note = commissioning_note(rig, "rpi4")
    assert bool(note) == bool(said) and said in note and "\n" not in note


def test_figures_after_a_change_of_the_rig_say_so(rig):
    commissioned(rig)
    assert commissioning_note(rig, "rpi4") == ""
    assert "with device rpi4, not rpi5" in commissioning_note(rig, "rpi5")
    assert "not with monsoon" in commissioning_note(rig, "rpi4", "monsoon")
    rig.write_text(rig.read_text() + "\n[supply]\nvoltage_v = 5.1\n")
    assert "has changed" in commissioning_note(rig, "rpi4")


def test_the_note_is_among_the_warnings_of_a_measurement_with_hardware_alone(rig, tmp_path):
    """Those stand in run.json, in the summary and in the report."""
    command_line = ["--db", "leveldb", "--device", "rpi4", "--rig", str(rig)]
    options = commands.parse(command_line).options
    plan = planning.make_plan(options)
    warnings = planning.rig_notices(plan, read_rig(rig), options)
    assert [warning for warning in warnings if "not been commissioned" in warning.line]
    assert not planning.rig_notices(plan, None, options)


def test_a_dialogue_wants_a_reason_and_ends_with_its_input():
    questions = []
    dialogue = DeskDialogue(lambda question: questions.append(question) or answers.pop(0))
    answers = ["skip", "hello", "skip welded in"]
    with pytest.raises(Skipped, match=r"^welded in$"):
        dialogue.ready("Pull the fuse.")
    assert "Give a reason" in questions[1] and "none of these" in questions[2]
    answers = ["stop"]
    with pytest.raises(Stopped):
        dialogue.ready("Pull the fuse.")
    with pytest.raises(Stopped):
        scripted().text("Supply", lambda answer: None)


def test_the_parts_are_asked_for_once_and_only_those_that_there_are():
    questions = []

    def line(question):
        questions.append(question)
        return {"Known": "10,0.1%", "Second": ""}.get(question.split()[0], "x")

    parts = Parts.asked(DeskDialogue(line))
    assert known_resistor(parts.resistor) == pytest.approx((10.0, 0.001))
    assert parts.second_meter == "" and len(questions) == 6


@pytest.mark.parametrize("text", ["10", "ten,0.1%", "0,1%", "1e9,1%", "10,", "10,30%"])
def test_a_resistor_that_is_none_is_refused(text):
    with pytest.raises(BadInput, match=r"10,0\.1%"):
        known_resistor(text)


def test_a_resistors_tolerance_may_be_in_ohm():
    assert known_resistor("10,0.1%+5mohm")[1] == pytest.approx(0.0015)


def test_the_page_shows_every_step_its_figures_and_what_to_do():
    certificate = Certificate("abc", "rpi4", "sd", simulated=True)
    certificate.finish("zero", WELL)
    certificate.finish("resistor", BROKEN)
    page = render(certificate)
    for words in (
        "SIMULATED",
        "not passed yet",
        "zero_a",
        "at most 2 mA",
        "mend",
        "<svg",
        ">open<",
    ):
        assert words in page
    assert 'a "wire"' in page.replace("&quot;", '"')


def test_the_command_line_names_the_steps_and_faults_that_there_are():
    assert tuple(step.key for step in STEPS) == STEP_KEYS
    assert tuple(PLANTS) == PLANTED
    assert all(step_called(key).title for key in STEP_KEYS)


@pytest.mark.parametrize(
    "argv", [["--plant", "cable"], ["--out", "x"], ["--step", "zer"], ["--simulate", "--plant", "x"]]
)
def test_options_that_do_not_go_together_end_with_status_2(argv, capsys):
    with pytest.raises(SystemExit) as ended:
        commands.parse(["commission", *argv])
    assert ended.value.code == 2 and len(capsys.readouterr().err.strip().splitlines()) == 1


ANSWERS = ["Mean Well RS-15-5", "GY-219", "R100", "", ""]
"""Supply, sensor, shunt; neither a known resistor nor a second meter."""


@pytest.fixture
def real(tmp_path, monkeypatch):
    """A rig of a meter in software and a board that is never reached; answers as a script gives them."""
    with SoftwareMeter(frames=400) as meter:  # 7 s: the desk may begin to wait late
        path = tmp_path / "rig.toml"
        path.write_text(
            f'[meter]\nport = "serial:{meter.path},label=bench-1"\n\n'
            '[device.rpi4]\nconnection = "ssh:pi@nowhere.invalid"\n'
            '[device.rpi4.storage]\nsd = "/mnt/sd"\n'
        )
        monkeypatch.setattr(commission, "ROOT", tmp_path)
        monkeypatch.setattr(commission, "RUNS", tmp_path / "runs")
        monkeypatch.setattr(commission, "CALIBRATIONS", tmp_path)
        monkeypatch.setattr(commission, "REAL_PACE", DeskPace(zero_s=1.0, fuse_s=1.0, long_s=1.0))

        def run(*answers, options=()):
            monkeypatch.setattr("sys.stdin", StringIO("".join(f"{answer}\n" for answer in answers)))
            return main(["commission", "--rig", str(path), *options])

        yield run, tmp_path / "commissioning.toml"


def test_a_script_can_answer_a_real_rigs_commissioning(real, capsys):
    """The meter in software reads half an ampere whatever is connected."""
    run, path = real
    steps = ("--step", "zero", "--step", "resistor", "--step", "idle")
    assert run(*ANSWERS, "", "next", "", options=steps) == FAULTY_EXIT
    certificate = read_certificate(path)
    assert certificate.parts.supply == "Mean Well RS-15-5" and certificate.meter["board"] == "atmega328p"
    assert {key: step.outcome.value for key, step in certificate.finished.items()} == {
        "zero": "failed",
        "resistor": "skipped",
        "idle": "warning",
    }
    stderr = capsys.readouterr().err
    assert "unplug" in stderr and "after VIN" in stderr
    assert path.with_name("commissioning.html").exists()


def test_the_end_of_a_script_keeps_what_is_finished_and_the_command_goes_on(real, capsys):
    run, path = real
    assert run(*ANSWERS, "skip no time", "skip no fuse") == 1
    assert [*read_certificate(path).finished] == ["zero", "back-feed", "resistor", "additivity"]
    assert run("stop") == 1  # the parts are not asked for again
    out, err = capsys.readouterr()
    _, again, rest = err.rpartition("Zero without a load: skipped")
    assert again and "Known resistor" not in rest
    assert "8 of 12 steps are left" in out


def test_a_change_of_the_rig_begins_anew_with_the_same_parts(real, capsys):
    run, path = real
    run(*ANSWERS, "skip no time", "stop")
    rig = path.with_name("rig.toml")
    rig.write_text(rig.read_text() + "\n[supply]\nvoltage_v = 5.2\n")
    run("stop")
    assert "repeated" in capsys.readouterr().err
    certificate = read_certificate(path)
    assert certificate.parts.supply == "Mean Well RS-15-5" or certificate.finished


def test_a_board_that_is_out_of_reach_is_a_verdict_with_the_connections_own_words(real):
    run, path = real
    assert run(*ANSWERS, "", "next", options=("--step", "load-steps")) == FAULTY_EXIT
    assert "nowhere.invalid" in read_certificate(path).finished["load-steps"].words


def test_the_page_on_commissioning_lists_every_step_and_every_fault_that_can_be_planted():
    page = (REPOSITORY / "docs/how-to/commission-the-rig.md").read_text()
    steps, plants = page.partition("## The steps")[2].split("## Rehearse it")

    def listed(part):
        return [line.split("`")[1] for line in part.splitlines() if line.startswith("| `")]

    assert listed(steps) == [*STEP_KEYS]
    assert sorted(listed(plants)) == sorted(["--plant", *PLANTED])
