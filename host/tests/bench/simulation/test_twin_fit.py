"""`measure.py twin --fit`: intervals hold what made-up boards were given, and what a record does not tell is named."""

import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from opjoule.base.errors import BadInput, DataFault, OpJouleError, RecordFault
from opjoule.bench.simulation.fitting.fit import fit_twin
from opjoule.bench.simulation.fitting.outputs import joined, page_text, write_profile
from opjoule.bench.simulation.fitting.recorded import NO_SYNCS, SignatureLevels, medium_work, read_recorded, replayed
from opjoule.bench.simulation.medium_work import MediumMode
from opjoule.bench.simulation.power_model import Activity, Models, PowerModel, Supply
from opjoule.boards.profiles import find_profile
from opjoule.cli import commands
from opjoule.cli.twin import runs_to_make
from opjoule.runs.measuring.plan import Plan, TwinProfile
from opjoule.runs.record.phases import Role
from opjoule.runs.record.run_record import RunRecord
from report_record import make_record, make_trace
from stated_models import load_model
from twin_trials import Truth, recorded, trial

ROOT = Path(__file__).resolve().parents[4]

TRIALS = 20


def made_up(seed=3):
    chance = random.Random(f"twin trial {seed}")
    truth = Truth.draw(chance)
    return truth, recorded(truth, chance)


@pytest.fixture(scope="module")
def fitted():
    return fit_twin([made_up()[1]])


@pytest.fixture(scope="module")
def trials():
    return [trial(seed) for seed in range(1000, 1000 + TRIALS)]


def test_intervals_of_twenty_boards_hold_what_each_was_given(trials):
    held = [
        fitted[key].holds(value)
        for truth, fitted in trials
        for key, value in truth.values().items()
        if fitted[key].identified
    ]
    assert len(held) > 8 * TRIALS
    assert sum(held) >= 0.92 * len(held)


@pytest.mark.parametrize(
    "key", ["board.busy_cores_w.1", "medium.write_bytes_per_s", "medium.flush_s", "medium.active_w"]
)
def test_each_parameter_holds_in_most_trials(trials, key):
    held = [fitted[key].holds(truth.values()[key]) for truth, fitted in trials]
    assert sum(held) >= TRIALS - 4


def test_a_medium_without_a_tail_is_given_none(trials):
    without = [fitted for truth, fitted in trials if truth.medium.tail_w == 0]
    assert without
    assert not any(fit["medium.tail_s"].identified for fit in without)
    tails = [fit["medium.tail_w"] for fit in without if fit["medium.tail_w"].identified]
    assert sum(tail.low <= 0 for tail in tails) >= len(tails) - 1


def test_the_replay_says_what_the_simulation_draws():
    # the same activity through the simulation's own way of using the model, window by window
    truth, one = made_up(8)
    medium = replace(truth.medium, flush_s=0.0)
    quiet = replace(one, syncs=NO_SYNCS)
    said = replayed(truth.board, medium, quiet)
    model = PowerModel(truth.board, medium, Supply(5.0, 0.0))
    work = medium_work(medium, quiet)
    for at in range(len(one.windows)):
        start_ns, end_ns = int(one.windows.start_ns[at]), int(one.windows.end_ns[at])
        if at and one.windows.end_ns[at - 1] != start_ns:
            model.stretches(Activity(int(one.windows.end_ns[at - 1]), start_ns), [])
        cpu_s = float(one.windows.busy_cores[at]) * (end_ns - start_ns) * 1e-9
        busy = [
            stretch.within(start_ns, end_ns)
            for stretch in work
            if stretch.end_ns > start_ns and stretch.start_ns < end_ns
        ]
        activity = Activity(start_ns, end_ns, cpu_s)
        rows = model.rows(activity, [], busy)
        edges = [row[0] for row in rows] + [end_ns]
        drawn_j = sum(5.0 * row[1] * (b - a) for row, a, b in zip(rows, edges[:-1], edges[1:], strict=True))
        assert drawn_j / (end_ns - start_ns) == pytest.approx(said.total_w[at], abs=1e-6)


def test_what_a_window_counted_was_done_by_its_end():
    truth, one = made_up(8)
    windows = one.windows
    written_bytes = np.zeros(len(windows))
    written_bytes[10] = 2.5 * truth.medium.write_bytes_per_s * windows.span_s[10]
    written_bytes[20:22] = 0.3 * truth.medium.write_bytes_per_s * windows.span_s[20:22]
    burst = replace(one, windows=replace(windows, written_bytes=written_bytes, read_bytes=0 * written_bytes))
    burst = replace(burst, syncs=NO_SYNCS)
    full, begins, goes_on = medium_work(truth.medium, burst)
    assert all(stretch.mode is MediumMode.WRITING for stretch in (full, begins, goes_on))
    assert (full.start_ns, full.end_ns) == (windows.start_ns[10], windows.end_ns[10])
    assert begins.end_ns == goes_on.start_ns == windows.end_ns[20]
    assert begins.end_ns - begins.start_ns == pytest.approx(0.3e9 * windows.span_s[20], rel=1e-6)


def test_energies_by_phase_add_up_and_the_sentence_names_the_worst(fitted):
    whole_j = sum(balance.measured_j for balance in fitted.balances())
    windows = fitted.records[0].windows
    assert whole_j == pytest.approx(float(np.nansum(windows.power_w * windows.span_s)))
    assert "twin" in fitted.verdict()
    worse = replace(fitted, model=tuple(replace(part, rest_w=1.2 * part.rest_w) for part in fitted.model))
    assert "more than" in worse.verdict() and "more than" not in fitted.verdict()


def test_what_other_programs_take_of_a_signatures_idle_stretches_is_no_power_of_its_busy_ones():
    alone = SignatureLevels(3.0, 5.0, core_s=8.0, busy_s=2.0, idle_s=2.0)
    assert alone.busy_cores(rest_w=3.0) == (4.0, 0.0)
    disturbed = SignatureLevels(3.5, 5.0, core_s=10.0, busy_s=2.0, idle_s=2.0)
    busy, idle = disturbed.busy_cores(rest_w=3.0)
    assert (busy, idle) == (pytest.approx(4.0), pytest.approx(1.0))


def without_writes(one):
    windows = one.windows
    return replace(one, windows=replace(windows, written_bytes=0 * windows.written_bytes))


def test_what_a_record_does_not_tell_keeps_the_published_value_and_names_the_run_that_would():
    _, one = made_up()
    one = replace(without_writes(one), board="rpi4", medium="sd", signature=None)
    one = replace(one, syncs=NO_SYNCS)
    fit, stated = fit_twin([one]), load_model("rpi4", "sd").medium
    for name in ("write_bytes_per_s", "flush_s", "tail_s"):
        estimate = fit[f"medium.{name}"]
        assert estimate.u is None
        assert estimate.value == getattr(stated, name)
        assert estimate.origin.startswith("not identifiable: ")
        assert estimate.needed_run


def test_a_meter_that_is_the_supply_tells_nothing_of_a_supply():
    _, one = made_up()
    fit = fit_twin([replace(one, meter="monsoon")])
    assert not fit["supply.resistance_ohm"].identified
    assert "meter" in fit["supply.open_voltage_v"].origin


def test_several_records_are_fitted_together(fitted):
    _, one = made_up()
    truth = Truth.draw(random.Random("twin trial 3"))
    other = replace(recorded(truth, random.Random("another run")), name="another")
    both = fit_twin([one, other])
    assert both["medium.active_w"].holds(truth.medium.active_w)
    track, phases = joined(both.records, both.model)
    assert len(phases) == 2 * len(one.phases)
    assert np.all(np.diff(track.bounds_s) > 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"board": "rpi5"}, "made-up and rpi5"),
        ({"medium": "emmc"}, "made-up and emmc"),
        ({"simulated": False}, "simulated"),
        ({"name": "trial"}, "named twice"),
    ],
)
def test_records_that_do_not_belong_together_are_refused(change, words):
    _, one = made_up()
    with pytest.raises(BadInput, match=words):
        fit_twin([one, replace(one, **{"name": "other", **change})])


def test_a_record_without_idle_power_is_refused():
    _, one = made_up()
    busy = tuple(phase for phase in one.phases if phase.role is not Role.BASELINE)
    with pytest.raises(DataFault, match="no idle power"):
        fit_twin([replace(one, phases=busy)])


def test_a_trace_without_a_board_is_refused_in_one_line(tmp_path):
    make_trace(tmp_path / "trace")
    with pytest.raises(BadInput, match=re.escape(str(tmp_path / "trace"))) as refusal:
        read_recorded(tmp_path / "trace")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("status", ["failed", "partial"])
def test_a_run_that_did_not_come_to_its_end_is_refused(tmp_path, status):
    make_record(tmp_path / "run")
    record = RunRecord.open(tmp_path / "run")
    record.finish(status)
    with pytest.raises(BadInput, match=f"is {status}"):
        read_recorded(tmp_path / "run")


def test_an_altered_record_is_refused(tmp_path):
    make_record(tmp_path / "run")
    RunRecord.open(tmp_path / "run").finish("complete")
    path = tmp_path / "run" / "system.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(RecordFault, match=r"system\.parquet"):
        read_recorded(tmp_path / "run")


def test_a_profile_gives_the_simulation_what_was_fitted(tmp_path, fitted):
    named = replace(fitted, records=(replace(fitted.records[0], board="rpi4", medium="sd"),))
    path = tmp_path / "mine.toml"
    write_profile(path, named)
    models = Models.with_profile(path)
    model = models.load(find_profile("rpi4").with_medium("sd"))
    assert model.board.busy_cores_w == pytest.approx(fitted.board.busy_cores_w, rel=1e-5)
    assert model.medium.tail_s == pytest.approx(fitted.medium.tail_s, rel=1e-5)
    assert models.own_supply
    assert models.facts() == {"models": str(path), "twin_profile_sha256": TwinProfile.of(path).sha256}
    assert models.load(find_profile("rpi5").with_medium("nvme")).medium == load_model("rpi5", "nvme").medium


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"no \[board.NAME\]"),
        ("[board.rpi4]\nbusy_cores_w = 3\nmemory_bytes = 1", "busy_cores_w"),
        ("[board.rpi4]\nbusy_cores_w = [3, -1]\nmemory_bytes = 1", "-1"),
        ("[board.rpi4]\nbusy_cores_w = [3, 4]", "memory_bytes"),
        ("[medium.sd]\nactive_w = 1", "is missing"),
        ("[medium.sd]\nwatts = 1", "watts"),
        ("[medium.sd]\nwrite_bytes_per_s = 0", "write_bytes_per_s"),
        ("[boards.sd]\nwatts = 1", "boards"),
        ("no toml", "not valid TOML"),
    ],
)
def test_a_file_that_is_no_profile_is_refused_in_one_line(tmp_path, text, words):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(BadInput, match=words) as refusal:
        Models.with_profile(path)
    assert "\n" not in str(refusal.value)
    assert "twin --fit" in str(refusal.value)


def test_the_page_has_the_word_simulated_the_sentence_and_every_parameter(fitted):
    page = page_text(fitted, "mine.toml")
    assert "SIMULATED" in page
    assert "furthest off" in page or "follows the measurement" in page
    for estimate in fitted.estimates:
        assert estimate.key in page
    measured = replace(fitted, records=(replace(fitted.records[0], simulated=False),))
    shown = re.sub(r"<script.*?</script>", "", page_text(measured, "mine.toml"), flags=re.DOTALL)
    assert "furthest off" in shown or "follows the measurement" in shown
    assert "SIMULATED" not in shown


COMMON = ["--db", "leveldb", "--device", "rpi4"]


def test_simulate_takes_a_profile_by_its_file_and_none_at_all(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("")
    with_one = commands.parse([*COMMON, "--simulate", str(path)])
    without = commands.parse([*COMMON, "--simulate", "--repeats", "1"])
    assert (with_one.needs.simulate, with_one.options.simulate, with_one.options.twin_profile) == (
        True,
        True,
        path,
    )
    assert (without.needs.simulate, without.options.simulate, without.options.twin_profile) == (
        True,
        True,
        None,
    )
    command = commands.parse(["command", "--device", "rpi4", "--simulate", "--", "true"])
    assert command.options.command == ("true",)


def test_a_study_hands_its_profile_to_each_of_its_cells(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("")
    for study in ("s1", "s2"):
        words = ["--study", study, "--device", "rpi4", "--scale", "0.01", "--simulate", str(path)]
        cells = commands.parse(words).options.file.cells
        assert {cell.options.twin_profile for cell in cells} == {path}


def test_a_profile_that_is_not_there_is_a_mistake_in_one_line(capsys):
    with pytest.raises(SystemExit) as ended:
        commands.parse([*COMMON, "--simulate", "nowhere"])
    assert ended.value.code == 2
    assert "nowhere" in capsys.readouterr().err


def test_a_plan_names_its_profile_and_measures_again_with_the_same_one_alone(tmp_path):
    from opjoule.cli.measure.planning import make_plan

    path = tmp_path / "mine.toml"
    path.write_text("# one")
    plan = make_plan(commands.parse([*COMMON, "--simulate", str(path)]).options)
    plain = make_plan(commands.parse([*COMMON, "--simulate"]).options)
    assert plan.sha256 != plain.sha256
    assert "twin_profile" not in plain.to_json()
    again = Plan.from_json(plan.to_json(), plan.study, {})
    assert again.sha256 == plan.sha256
    assert again.twin_profile.checked == path
    path.write_text("# another")
    with pytest.raises(BadInput, match="has changed"):
        _ = again.twin_profile.checked


def test_the_virtual_board_takes_no_profile(tmp_path):
    from opjoule.cli.measure.planning import make_plan

    path = tmp_path / "mine.toml"
    path.write_text("")
    words = ["--db", "leveldb", "--device", "virtual", "--simulate", str(path)]
    with pytest.raises(OpJouleError, match="virtual board"):
        make_plan(commands.parse(words).options)


@pytest.mark.parametrize("simulate", ["", "--simulate"])
def test_the_runs_that_are_printed_are_commands_that_measure_py_takes(simulate):
    for command, tells in runs_to_make("rpi4", "emmc", simulate):
        program, *words = command.split()
        assert program == "host/measure.py"
        parsed = commands.parse(words)
        assert parsed.run.replace(":", ".").split(".")[2] in ("measure", "twin")
        assert tells
