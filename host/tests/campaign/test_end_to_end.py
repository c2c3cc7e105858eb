"""The whole path on the simulated rig: real engine, real loader, real firmware, ordinary serial meter.

The simulator's truth is read here, and only here, to see that the stated uncertainty covers the error.
"""

import json
import os
import signal
import subprocess

import pytest
from measure_process import LIMIT_S, ROOT, SMALL, await_phase, command, environment, own_lines, report, start
from opjoule.base.notices import NoticeKind
from opjoule.energy.trace.journal import read_trace
from opjoule.runs.evaluation.wording import YCSB_QUANTITIES as YCSB
from opjoule.runs.record.phases import Role
from opjoule.runs.record.run_record import RunRecord

pytestmark = [pytest.mark.rig, pytest.mark.end_to_end]


def measure(out, *arguments):
    line = command("--device", "rpi4", "--simulate", *SMALL, "--out", out, *arguments)
    return subprocess.run(
        line, capture_output=True, text=True, env=environment(), cwd=ROOT, timeout=LIMIT_S, check=False
    )


def result_of(out):
    return json.loads((out / "result.json").read_text())


@pytest.fixture(scope="module")
def leveldb(tmp_path_factory):
    """One finished measurement that several tests look at."""
    out = tmp_path_factory.mktemp("leveldb") / "record"
    ended = measure(out, "--db", "leveldb")
    assert ended.returncode == 0, ended.stderr
    return out, ended


def test_the_summary_gives_joules_per_operation_and_says_simulated(leveldb):
    _, ended = leveldb
    assert "SIMULATED" in ended.stdout
    assert "above idle per operation" in " ".join(ended.stdout.split())


def test_reads_and_updates_all_told_are_the_whole_energy_above_idle(leveldb):
    out, ended = leveldb
    result = result_of(out)
    told = {kind: entry["all_told_energy_per_operation_j"] for kind, entry in result["by_operation"].items()}
    total_j = sum(number["value"] * result["by_operation"][kind]["count"]["value"] for kind, number in told.items())
    assert total_j == pytest.approx(result["marginal_energy_j"]["value"])
    assert "SIMULATED truth: update, all told" in ended.stdout
    assert "all told for each update" in " ".join(ended.stdout.split())


def test_several_kinds_that_write_are_told_apart_by_further_runs_which_are_in_no_other_figure(tmp_path):
    mix = ("-p", "readproportion=0.4", "-p", "updateproportion=0.3", "-p", "insertproportion=0.3")
    ended = measure(tmp_path / "record", "--db", "leveldb", "--repeats", "2", *mix)
    assert ended.returncode == 0, ended.stderr
    record, result = RunRecord.open(tmp_path / "record"), result_of(tmp_path / "record")
    assert [(phase.name, phase.repeat) for phase in record.run.phases if phase.role in (Role.WORK, Role.MIX)] == [
        ("run", 1),
        ("run", 2),
        ("mix", 3),
        ("mix", 4),
    ]
    runs = [record.run.loader[f"run-{number}"].operations for number in (1, 2)]
    assert result["repeats"] == 2 and result["operations"]["value"] == sum(runs) / 2
    told = {kind: entry["all_told_energy_per_operation_j"] for kind, entry in result["by_operation"].items()}
    assert all(told[kind]["u"] > 0 for kind in ("update", "insert"))
    total_j = sum(number["value"] * result["by_operation"][kind]["count"]["value"] for kind, number in told.items())
    assert total_j == pytest.approx(result["marginal_energy_j"]["value"])
    assert "SIMULATED truth: insert, all told" in ended.stdout


def test_the_record_is_complete_and_says_simulated(leveldb):
    out, _ = leveldb
    record = RunRecord.open(out)
    assert record.status == "complete", record.faults
    assert record.simulated
    assert record.verify() == []
    for name in ("power", "operations", "events", "system"):
        assert (out / f"{name}.parquet").exists()
    assert "SIMULATED" in (out / "report.html").read_text()


def test_the_result_holds_every_key_and_each_null_has_a_reason(leveldb):
    result = result_of(leveldb[0])
    assert {quantity.top for quantity in YCSB if quantity.required} <= set(result)

    def check(value, path):
        if isinstance(value, dict):
            if "value" in value and (value["value"] is None or value.get("u") is None):
                assert value.get("reason"), path
            for key, entry in value.items():
                check(entry, f"{path}.{key}")

    check(result, "result")


def test_the_two_kinds_of_clock_evidence_agree(leveldb):
    alignment = result_of(leveldb[0])["alignment"]
    assert alignment["method"] == "sync-edges"
    assert alignment["residual_s"]["value"] < 10e-6
    assert [check["passed"] for check in alignment["checks"]] == [True]


def truth_between_edges(out):
    """(start_board_ns, end_board_ns, energy_j) of each stretch between sync edges, from the simulator."""
    truth = json.loads((out / "simulator-truth.json").read_text())
    boot_ns = truth["boot_board_ns"]
    for interval in truth["intervals"]:
        start_ns, end_ns = (boot_ns + round(interval[key] * 1e9) for key in ("start_s", "end_s"))
        yield start_ns, end_ns, interval["energy_j"]


def test_the_energy_between_sync_edges_covers_the_simulator_s_truth(leveldb):
    from opjoule.energy.window import Window, window_energy_j

    out, _ = leveldb
    record = RunRecord.open(out)
    board_to_meter = record.run.clock_maps["sync-edges"]
    sensor, trace = record.run.sensor, read_trace(out)
    compared = 0
    for start_ns, end_ns, energy_j in truth_between_edges(out):
        window = Window.on_meter(board_to_meter, start_ns, end_ns)
        if window.duration_s < 0.1 or window.start_ns < trace.meter_ns[0] or window.end_ns > trace.meter_ns[-1]:
            continue
        estimate = window_energy_j(trace, window, sensor).energy
        # The rig is another one each time: k = 2 leaves one in twenty outside, k = 4 none.
        assert abs(estimate.value - energy_j) < 2 * estimate.u, (window, estimate, energy_j)
        compared += 1
    assert compared >= 3
    # A row that came late on a busy computer is left out of the load, and so of the truth: some do no harm.
    assert json.loads((out / "simulator-truth.json").read_text())["late_rows"] <= 10


def test_a_record_is_never_overwritten(leveldb):
    out, _ = leveldb
    before = (out / "run.json").read_bytes()
    ended = measure(out, "--db", "leveldb")
    assert ended.returncode == 2
    assert "already contains a run record" in ended.stderr
    assert (out / "run.json").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sqlite", ["--db", "sqlite"]),
        ("latest", ["--db", "leveldb", "--workload", "d", "--distribution", "latest"]),
        (
            "uniform-4-threads-in-blocks",
            ["--db", "leveldb", "--distribution", "uniform", "--threads", "4", "--design"],
        ),
        (
            "zipfian-rpi3",
            ["--db", "sqlite", "--device", "rpi3", "--distribution", "zipfian", "--workload", "b"],
        ),
        (
            "emmc-2-repeats",
            ["--db", "leveldb", "--device", "odroid-c2", "--storage", "emmc", "--repeats", "2"],
        ),
    ],
)
def test_databases_distributions_threads_and_repeats_measure(tmp_path, name, arguments):
    ended = measure(
        tmp_path / name,
        *arguments,
        "--no-harness",
        "--rate",
        "full",
        "--reset",
        "load",
        "--json",
    )
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert result["simulated"] is True
    assert result["energy_per_operation_j"]["value"] > 0
    assert result["operations"]["value"] == 20000
    run = RunRecord.open(tmp_path / name).run
    assert bool(run.summary.mix_blocks) == bool(run.asked.design)
    assert run.summary.workload["mixblock.length_s"] == ("0.02" if "--design" in arguments else "0")
    if "--repeats" in arguments:  # two runs say little of their spread: Student's t makes u large
        assert result["budget"]["repeats"]["value"] > 0
    else:
        # What comes after so short a run is small against the noise of idle on a busy computer: its interval says so.
        assert result["run_energy_j"]["u"] < 0.2 * result["run_energy_j"]["value"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--db", "levldb"], "did you mean 'leveldb'?"),
        (["--db", "leveldb", "-p", "readproprotion=1"], "readproportion"),
        (["--db", "leveldb", "-p", "fieldlength=-3"], "fieldlength"),
        (["--db", "leveldb", "-p", "leveldb.nonsense=1"], "leveldb.nonsense"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_record(tmp_path, arguments, says):
    ended = measure(tmp_path / "record", *arguments)
    assert ended.returncode == 2, ended.stderr
    assert says in ended.stderr
    assert len(own_lines(ended.stderr)) == 1
    assert not (tmp_path / "record").exists()


def test_a_malformed_workload_file_is_named_with_its_line(tmp_path):
    workload = tmp_path / "broken.properties"
    workload.write_text("recordcount=10\nnonsense\n")
    ended = measure(tmp_path / "record", "--db", "leveldb", "--workload", workload)
    assert ended.returncode == 2
    assert "broken.properties, line 2: " in ended.stderr


def test_without_a_rig_file_the_error_says_what_to_do(tmp_path):
    line = command("--db", "leveldb", "--device", "rpi4", "--rig", tmp_path / "rig.toml", "--out", tmp_path / "record")
    ended = subprocess.run(
        line, capture_output=True, text=True, env=environment(), cwd=ROOT, timeout=LIMIT_S, check=False
    )
    assert ended.returncode == 2
    assert "init" in ended.stderr
    assert "--simulate" in ended.stderr
    assert not (tmp_path / "record").exists()


@pytest.mark.parametrize("after", ["load", "idle-before", "run"])
def test_ctrl_c_leaves_a_partial_record_that_is_readable(tmp_path, after):
    out = tmp_path / "record"
    running = start(out)
    await_phase(out, after)
    running.send_signal(signal.SIGINT)
    _, complaint = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 130, complaint
    assert "Traceback" not in complaint
    record = RunRecord.open(out)
    assert record.status == "partial"
    assert any(fault.kind is NoticeKind.INTERRUPTED for fault in record.faults)
    assert len(read_trace(out)) > 0


def test_a_killed_measurement_is_partial_and_analysed_afterwards(tmp_path):
    out = tmp_path / "record"
    running = start(out, "--repeats", "2", "--reset", "load")
    await_phase(out, "idle-before", repeat=2)  # the first repeat is whole, the second is not
    os.killpg(running.pid, signal.SIGSTOP)  # a busy computer may take longer to start the report than the rest lasts
    while_it_runs = report(out)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate(timeout=60)
    assert while_it_runs.returncode == 2
    assert "still running" in while_it_runs.stderr
    assert RunRecord.open(out).status == "partial"
    assert read_trace(out).meter_ns[-1] > 1e9
    shown = report(out)
    assert shown.returncode == 0, shown.stderr
    assert "partial" in shown.stdout.lower()
    result = json.loads((out / "result.json").read_text())
    phases = RunRecord.open(out).run.phases
    whole = sum(phase.name == "idle-after" for phase in phases)  # the second may have come to its end
    assert result["repeats"] == whole >= 1
    assert result["energy_per_operation_j"]["value"] > 0
    assert any(notice.kind is NoticeKind.PARTIAL for notice in RunRecord.open(out).run.notices)
    assert report(out).returncode == 0
    assert len(RunRecord.open(out).run.notices) == len(set(RunRecord.open(out).run.notices))


def test_a_pulled_meter_cable_ends_the_run_as_partial(tmp_path):
    out = tmp_path / "record"
    running = start(out)
    await_phase(out, "load")
    for simulator in simulators_of(running.pid):
        os.kill(simulator, signal.SIGKILL)
    _, complaint = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 3, complaint
    assert "meter" in complaint
    record = RunRecord.open(out)
    assert record.status == "partial"
    assert "the rig simulator ended by itself with status -9" in complaint
    assert len(read_trace(out)) > 0


def simulators_of(parent):
    """Process ids of the rig simulators that `parent` started."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,comm=", "--ppid", str(parent)], capture_output=True, text=True, check=True
    )
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if "rig-sim" in line]


def test_a_corrupt_record_is_one_line(tmp_path, leveldb):
    out, _ = leveldb
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "run.json").write_text((out / "run.json").read_text()[:100])
    shown = subprocess.run(
        command("report", broken),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=LIMIT_S,
        check=False,
    )
    assert shown.returncode == 4
    assert "corrupt" in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1


def test_without_a_sync_line_the_board_plays_its_load_signature(tmp_path):
    """A busy computer disturbs the pattern: then its stated uncertainty grows, and exchanges are the better map."""
    out = tmp_path / "record"
    ended = measure(
        out,
        "--db",
        "leveldb",
        "--no-harness",
        "--rate",
        "full",
        "--reset",
        "load",
        "--sync",
        "none",
    )
    assert ended.returncode == 0, ended.stderr
    record = RunRecord.open(out)
    assert record.status == "complete", record.faults
    assert [phase.name for phase in record.run.phases].count("signature") == 2
    maps = record.run.clock_maps
    assert "sync-edges" not in maps and "exchanges" in maps
    checks = {check["name"]: check for check in result_of(out)["alignment"]["checks"]}
    (compared,) = [check for name, check in checks.items() if "signature" in name and "sync-edges" not in name]
    if "signature" in maps:
        assert compared["passed"]
        assert record.run.signature["rival"] < 0.7
    else:
        assert "load signature" in compared["detail"]
