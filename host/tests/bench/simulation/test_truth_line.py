"""True figures of a simulated measurement, and the lines that show them beside the stated intervals."""

import json
import re

import numpy as np
import pytest
from opjoule.base.units import Quantity
from opjoule.bench.simulation.parts import PartCourse
from opjoule.bench.simulation.truth_line import KnownFigure, cells_line, held_line, known_figures, true_figures
from opjoule.cli.commands import main
from opjoule.results.comparison.index import gather
from opjoule.runs.evaluation.wording import YCSB_QUANTITIES
from opjoule.runs.record.json_file import plain
from opjoule.runs.record.result import RESULT_SCHEMA
from opjoule.runs.record.run_record import with_digest
from simulated_records import synthetic
from usual_phases import usual_phase

SECOND_NS = 1_000_000_000

COURSE = PartCourse(np.array([0, 10, 20, 30, 40]) * SECOND_NS, {"energy_j": np.array([0.0, 20.0, 60.0, 85.0, 105.0])})
"""2 W idle, 4 W run, 2.5 W settle, 2 W idle, 10 s each"""
NAMES = ("idle-before", "run", "settle", "idle-after")


def phases(repeat=1):
    return [
        usual_phase(name, repeat, index * 10 * SECOND_NS, (index + 1) * 10 * SECOND_NS)
        for index, name in enumerate(NAMES)
    ]


def test_the_true_figures_are_those_of_the_definitions():
    true = true_figures(COURSE, phases(), operations=1000)
    assert true == pytest.approx(
        {
            "run_energy_j": 40,
            "power_w": 4,
            "idle_power_w": 2,
            "write_back_energy_j": 5,
            "energy_j": 45,
            "marginal_energy_j": 25,
            "energy_per_operation_j": 0.045,
            "marginal_energy_per_operation_j": 0.025,
        }
    )


def test_without_idle_nothing_is_said_of_what_is_above_it():
    assert true_figures(COURSE, phases()[1:3], 1000).keys() == {"run_energy_j", "power_w"}


HEAD = {"schema": {"name": "run", "version": 3}, "status": "complete", "simulated": True, "checksums": {}}


def plain_spaces(figure):
    return str(figure).replace("\N{NO-BREAK SPACE}", " ")


def truth_lines_of(folder, stated, status="complete", **more):
    rows = "".join(f"{at},{energy}\n" for at, energy in zip(COURSE.board_ns, COURSE.energy_j["energy_j"], strict=True))
    (folder / "simulator-course.csv").write_text("board_ns,energy_j\n" + rows)
    (folder / "run.json").write_text(
        json.dumps(with_digest(plain(HEAD | {"phases": phases(), "status": status} | more)))
    )
    (folder / "result.json").write_text(json.dumps({"schema": plain(RESULT_SCHEMA), **stated}))
    return [plain_spaces(figure) for figure in known_figures(folder)]


def test_the_stated_interval_is_the_one_of_the_summary_and_the_truth_has_a_digit_more():
    wide = KnownFigure("tail", 0.09812, Quantity(-0.01544, 0.26, "J"))
    assert plain_spaces(wide) == "SIMULATED truth: tail 98 mJ; stated \N{MINUS SIGN}0.02 ± 0.26 J holds it"
    below_nothing = KnownFigure("energy of settle", 0.0002391, Quantity(-0.00012, 0.0104, "J"))
    assert "settle 0.2 mJ; stated 0 ± 10 mJ holds" in plain_spaces(below_nothing)
    nearly_nothing = KnownFigure("energy of settle", 245.3e-9, Quantity(0.0922, 0.1787, "J"))
    assert "settle 0 mJ; stated 92 (0 to 271) mJ holds" in plain_spaces(nearly_nothing)


def test_the_truth_is_given_beside_the_stated_interval(tmp_path):
    stated = {
        "operations": {"value": 1000, "u": 0, "unit": "1"},
        "marginal_energy_per_operation_j": {"value": 0.0251, "u": 0.0004, "unit": "J"},
        "energy_j": {"value": 44.0, "u": 0.5, "unit": "J"},
        "run_energy_j": {"value": None, "u": None, "unit": "J", "reason": "withheld"},
    }
    per_operation, energy = truth_lines_of(tmp_path, stated)
    assert "operation 25.000 mJ; stated 25.10 ± 0.40 mJ holds" in per_operation
    assert energy.endswith("energy 45.000 J; stated 44.00 ± 0.50 J DOES NOT HOLD IT")


def test_the_truth_of_kinds_and_activities_is_given_beside_what_is_stated_of_them(tmp_path):
    """Per operation and per run; what drew nothing has no line, and a part that is not stated is named."""
    (tmp_path / "simulator-parts.csv").write_text(
        "board_ns,read,update,flush,compaction,write_back\n0,0,0,0,0,0\n"
        f"{10 * SECOND_NS},1,1,1,0,1\n{30 * SECOND_NS},5,11,4,0,3\n{40 * SECOND_NS},9,9,9,0,9\n"
    )
    untold = {"value": None, "u": None, "unit": "J", "reason": "collinear"}
    stated = {
        "by_operation": {
            "read": {
                "count": {"value": 400, "u": 0, "unit": "1"},
                "energy_per_operation_j": {"value": 0.0105, "u": 0.001, "unit": "J"},
            },
            "update": {"count": {"value": 100, "u": 0, "unit": "1"}, "energy_per_operation_j": untold},
        },
        "by_activity": {
            "flush": {"value": 3.5, "u": 0.4, "unit": "J"},
            "compaction": {"value": 0.0, "u": 0.1, "unit": "J"},
            "write_back": untold,
        },
    }
    assert truth_lines_of(tmp_path, stated) == [
        "SIMULATED truth: read 10.00 mJ; stated 10.5 ± 1.0 mJ holds it",
        "SIMULATED truth: update 100.0 mJ; not stated",
        "SIMULATED truth: flush 3.000 J; stated 3.50 ± 0.40 J DOES NOT HOLD IT",
        "SIMULATED truth: the medium's write-back 2.000 J; not stated",
    ]


def test_a_result_that_withholds_its_kinds_has_the_truth_of_the_rest(tmp_path):
    (tmp_path / "simulator-parts.csv").write_text(f"board_ns,read,flush\n0,0,0\n{30 * SECOND_NS},5,3\n")
    withheld = {"value": None, "u": None, "unit": "", "reason": "withheld"}
    stated = {"by_operation": withheld, "by_activity": {"flush": {"value": 2.0, "u": 0.5, "unit": "J"}}}
    assert truth_lines_of(tmp_path, stated) == ["SIMULATED truth: flush 2.000 J; stated 2.00 ± 0.50 J holds it"]


@pytest.mark.parametrize(
    ("kinds", "reading_j", "truths"),
    [
        (("read",), 3, ["read, all told 25.00 mJ", "read 5.33 mJ"]),
        (("read", "update"), 3, []),
        (
            ("read", "update"),
            0.3,
            ["read, all told 3.33 mJ", "read 3.33 mJ", "update, all told 21.67 mJ", "update 3.33 mJ"],
        ),
    ],
)
def test_the_mediums_reads_belong_to_a_single_kind_and_of_several_no_figure_may_show_them(
    tmp_path, kinds, reading_j, truths
):
    (tmp_path / "simulator-parts.csv").write_text(
        f"board_ns,read,update,reading\n0,0,0,0\n{30 * SECOND_NS},5,5,{reading_j}\n"
    )
    number = {"value": 0.01, "u": 0.005, "unit": "J"}
    kind = {
        "count": {"value": 1000, "u": 0, "unit": "1"},
        "energy_per_operation_j": number,
        "all_told_energy_per_operation_j": number,
    }
    stated = {
        "operations": {"value": 1000, "u": 0, "unit": "1"},
        "marginal_energy_j": {"value": 25.0, "u": 0.5, "unit": "J"},
        "by_operation": dict.fromkeys(kinds, kind),
    }
    lines = truth_lines_of(tmp_path, stated)
    assert len(lines) == len(truths)
    assert all(truth in line for truth, line in zip(truths, lines, strict=True)), lines


def test_several_kinds_that_write_have_a_truth_by_the_runs_in_other_mixes(tmp_path):
    """Updates cause 10 mJ later and inserts 30 mJ; they draw 1 and 2 mJ while they are carried out."""
    runs = {"run-1": (400, 400), "run-2": (400, 400), "mix-3": (600, 200), "mix-4": (200, 600)}
    recorded, whole, parts, loader = [], ["board_ns,energy_j", "0,0"], ["board_ns,update,insert", "0,0,0"], {}
    at_s, total_j, update_j, insert_j = 0, 0.0, 0.0, 0.0
    for tag, (updates, inserts) in runs.items():
        name, number = tag.split("-")
        of_kinds = {"update": {"count": updates, "bytes": 0}, "insert": {"count": inserts, "bytes": 0}}
        loader[tag] = {"operations": updates + inserts, "by_kind": of_kinds}
        for phase in ("idle-before", name, "settle", "idle-after"):
            span_ns = at_s * SECOND_NS, (at_s + 10) * SECOND_NS
            recorded.append(usual_phase(phase, int(number), *span_ns))
            at_s, total_j = at_s + 10, total_j + 20.0
            if phase == name:
                update_j, insert_j = update_j + 1e-3 * updates, insert_j + 2e-3 * inserts
                total_j += 11e-3 * updates + 32e-3 * inserts
            whole.append(f"{at_s * SECOND_NS},{total_j}")
            parts.append(f"{at_s * SECOND_NS},{update_j},{insert_j}")
    (tmp_path / "simulator-course.csv").write_text("\n".join([*whole, ""]))
    (tmp_path / "simulator-parts.csv").write_text("\n".join([*parts, ""]))
    (tmp_path / "run.json").write_text(json.dumps(with_digest(plain({**HEAD, "phases": recorded, "loader": loader}))))
    number = {"value": 0.02, "u": 0.015, "unit": "J"}
    kind = {
        "count": {"value": 400, "u": 0, "unit": "1"},
        "energy_per_operation_j": number,
        "all_told_energy_per_operation_j": number,
    }
    stated = {
        "operations": {"value": 800, "u": 0, "unit": "1"},
        "by_operation": {"update": kind, "insert": kind},
    }
    (tmp_path / "result.json").write_text(json.dumps({"schema": plain(RESULT_SCHEMA), **stated}))
    told = {figure.about: figure.true for figure in known_figures(tmp_path) if "all told" in figure.about}
    assert told == pytest.approx({"update, all told": 11e-3, "insert, all told": 32e-3})
    (tmp_path / "run.json").write_text(
        json.dumps(with_digest(plain({**HEAD, "phases": recorded[:8], "loader": loader})))
    )
    assert not [figure for figure in known_figures(tmp_path) if "all told" in figure.about]


def test_of_a_run_that_was_cut_off_no_truth_is_given(tmp_path):
    """The simulator stopped with it."""
    stated = {"run_energy_j": {"value": 39.0, "u": 2.0, "unit": "J"}}
    assert len(truth_lines_of(tmp_path, stated)) == 1
    assert truth_lines_of(tmp_path, stated, "partial") == []


def test_a_record_without_a_course_has_no_truth_to_tell(tmp_path):
    assert not known_figures(tmp_path) and not held_line(tmp_path)


def test_one_line_counts_the_stated_intervals_that_hold_the_truth(tmp_path):
    stated = {
        "energy_j": {"value": 44.0, "u": 0.5, "unit": "J"},
        "run_energy_j": {"value": 39.0, "u": 2.0, "unit": "J"},
        "write_back_energy_j": {"value": 5.0, "u": None, "unit": "J", "reason": "not stated"},
    }
    truth_lines_of(tmp_path, stated)
    assert held_line(tmp_path).startswith("SIMULATED truth: 1 of 2 ")
    (tmp_path / "simulator-course.csv").write_text("board_ns,energy_j\n0,zero\n")
    assert held_line(tmp_path) == "", "damaged"


QUANTITIES = [YCSB_QUANTITIES.headline]


def test_of_cells_it_counts_the_records_and_the_means_with_their_own_truths(tmp_path):
    """Two records miss their truths, 20 and 24 mJ, on either side; their mean holds 22 mJ."""
    for number, (true_j, stated_j) in enumerate([(0.020, 0.021), (0.024, 0.023), (0.010, 0.010)]):
        synthetic(tmp_path / f"{number}", "leveldb", true_j, stated_j, 2e-4, number)
    one, other, third = gather([str(tmp_path)])[0]
    line = cells_line([[one, other], [third]], QUANTITIES)
    assert re.findall(r"\d of \d|of \d records?", line) == ["1 of 3", "of 3 records", "1 of 1"]
    assert re.findall(r"\d of \d|of \d records?", cells_line([[third]], QUANTITIES)) == ["1 of 1", "of 1 record"]
    (tmp_path / "2" / "simulator-course.csv").unlink()
    assert cells_line([[third]], QUANTITIES) == ""


def test_show_and_compare_print_the_line_and_beside_json_on_stderr(tmp_path, capsys):
    for number in range(4):
        synthetic(tmp_path / f"{number}", ("leveldb", "sqlite")[number % 2], 0.02, 0.02, 2e-4, number // 2)
    for command in (["runs", "show", str(tmp_path / "0")], ["compare", str(tmp_path), "--by", "db"]):
        for options in ([], ["--json"]):
            assert main([*command, *options]) == 0
            said = capsys.readouterr()
            lines = (said.err if options else said.out).splitlines()
            assert sum(line.startswith("SIMULATED truth: ") for line in lines) == 1
            assert not options or json.loads(said.out)
