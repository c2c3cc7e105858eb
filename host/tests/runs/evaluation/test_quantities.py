"""A quantity stands in one place: check, figures, terminal, page, documentation and withholding follow its table."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import quantities_page
from msgspec import structs
from opjoule.attribution.activities import background
from opjoule.attribution.attributed_run import Attribution
from opjoule.base.notices import NoticeKind
from opjoule.base.units import Cause, Quantity, exact, missing
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.cells import Cells
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.meters.chips import ina219_breakout
from opjoule.pages.report.html import write_report
from opjoule.pages.report.terminal import print_summary
from opjoule.runs.evaluation import wording as results
from opjoule.runs.evaluation.alignment import AlignedTrace
from opjoule.runs.evaluation.attributed import background_notices, opening_notices, waiting_notices
from opjoule.runs.evaluation.faults import withhold
from opjoule.runs.evaluation.quantities.common import COMMON, above_idle, counter
from opjoule.runs.evaluation.quantities.definition import (
    Definition,
    Quantities,
    Repeat,
    SystemSamples,
    Topic,
    by_repeat,
)
from opjoule.runs.evaluation.quantities.operations import KEY_VALUE, OPERATIONS, latency, unseparated
from opjoule.runs.evaluation.quantities.phases import PHASES
from opjoule.runs.evaluation.repeat_energy import repeat_energy
from opjoule.runs.evaluation.result_file import result_json
from opjoule.runs.evaluation.wording import YCSB_QUANTITIES as YCSB
from opjoule.runs.record.phases import Cycle
from opjoule.runs.record.result import ABOVE_IDLE, ENERGY, PER_OPERATION
from opjoule.runs.record.run import LoaderSummary
from report_record import RESULT, make_record, put_result
from rich.console import Console
from usual_phases import usual_phase

IDLE_W, RUN_W, RUN_S = 3.0, 4.0, 10.0
S = 1_000_000_000


def power_above_idle(of):
    energy = above_idle("marginal", of)
    return energy if energy.value is None else energy.scale(1.0 / of.run_s, "W")


NEW = Definition(
    "marginal_power_w", "W", Topic.POWER, "power above idle", "marginal_energy_j over the run's duration",
    power_above_idle, rests_on=(ENERGY, ABOVE_IDLE), headline="while it ran", tile="power for the work",
    column="for the work", line=("for the work", "power; {power_w} with idle in it"), compared=True,
)  # fmt: skip
WITH_NEW = Quantities((*YCSB, NEW))
PLAIN_LANGUAGE = Quantities((*COMMON, NEW))
"""Results of a study that knows nothing of operations or keys."""


def a_repeat():
    """Ten seconds of 4 W between idle at 3 W, one clock; a thousand operations of 1 to 1,000 us."""
    numbers = range(30_000)
    power_w = [RUN_W if 10_000 <= number < 20_000 else IDLE_W for number in numbers]
    trace = PowerTrace.of([number * 1_000_000 for number in numbers], [w / 5 for w in power_w], [5.0] * 30_000, [])
    phases = [
        usual_phase(name, 1, int(start_s * 1e9), int(end_s * 1e9))
        for name, start_s, end_s in (
            ("idle-before", 1, 9), ("run", 10, 20), ("settle", 20, 21), ("idle-after", 22, 28),
        )
    ]  # fmt: skip
    clock = ClockMap("board", "meter", 0, 0, 1.0, 1e3, 1e-9, "sync-edges", 100.0, 30)
    energy = repeat_energy(AlignedTrace(Cells.of(trace), ina219_breakout(), clock), phases, 1)
    operations = OperationTable.empty(1000)
    operations.duration_ns[:] = [1000 * (rank + 1) for rank in range(1000)]
    return Repeat(1, energy, RUN_S, 1.0, 1000, operations)


def result_with(table, **entries):
    return {**RESULT, "marginal_power_w": {"value": 1.25, "u": 0.11, "unit": "W"}, **entries}


@pytest.fixture
def study_of(monkeypatch):
    """Has the records' study another table."""

    def put(table):
        monkeypatch.setitem(results.WORDINGS, "ycsb", replace(results.YCSB, quantities=table))

    return put


def printed(directory, width=100):
    out = io.StringIO()
    print_summary(directory, Console(file=out, width=width, highlight=False))
    return out.getvalue().replace("\N{NO-BREAK SPACE}", " ")


def test_a_new_quantity_is_computed_for_each_repeat_and_over_all():
    one = a_repeat()
    figures = [WITH_NEW.figures(one), WITH_NEW.figures(replace(one, run_s=RUN_S / 2))]
    mean = WITH_NEW.over_repeats(figures)["marginal_power_w"]
    assert mean.u is not None
    assert mean.value == pytest.approx(1.5 * (RUN_W - IDLE_W), rel=0.01)
    assert by_repeat(figures)["marginal_power_w"].values == pytest.approx([1.0, 2.0], rel=0.01)


def test_a_new_quantity_is_asked_of_every_result_in_its_unit():
    with pytest.raises(ValueError, match="marginal_power_w"):
        result_json(RESULT, simulated=True, quantities=WITH_NEW)
    with pytest.raises(ValueError, match="marginal_power_w is in 'J', expected 'W'"):
        wrong = {"marginal_power_w": {"value": 1.25, "u": 0.11, "unit": "J"}}
        result_json(result_with(WITH_NEW, **wrong), simulated=True, quantities=WITH_NEW)


def test_a_new_quantity_is_withheld_with_what_it_rests_on():
    kept = withhold({"marginal_power_w": Quantity(1.0, 0.1, "W")}, {ABOVE_IDLE: "no rest"}, WITH_NEW)
    assert kept["marginal_power_w"] == missing("no rest", "W", Cause.WITHHELD)


def test_a_new_quantity_is_on_the_terminal(tmp_path, study_of):
    study_of(WITH_NEW)
    make_record(tmp_path)
    put_result(tmp_path, result_with(WITH_NEW))
    text = printed(tmp_path)
    assert " ".join(text.split()).count("1.25 ± 0.11 W") == 2, "in the answer and in its row"
    (line,) = [line for line in text.splitlines() if line.startswith("for the work")]
    assert re.findall(r"[\d.]+ ± [\d.]+ W", line) == ["1.25 ± 0.11 W", "4.422 ± 0.066 W"]


def test_a_new_quantity_is_in_the_page_as_tile_column_and_row(tmp_path, study_of):
    study_of(WITH_NEW)
    make_record(tmp_path)
    listed = {
        key: {"n": 2, "unit": "W", "values": [1.0, 1.5], "standard_deviation": 0.35}
        for key in ("power_w", "marginal_power_w")
    }
    put_result(tmp_path, result_with(WITH_NEW, by_repeat=listed))
    page = write_report(tmp_path).read_text(encoding="utf-8")
    for words in (
        "<dt>power for the work</dt>",
        "for the work</th>",
        "power above idle<code>marginal_power_w",
    ):
        assert words in page, words
    assert NEW.meaning in page


def test_a_new_quantity_has_a_row_in_the_documentation():
    row = "| `marginal_power_w` | W | power above idle | marginal_energy_j over the run's duration |"
    assert row in quantities_page.table_lines((*COMMON, NEW))
    assert row not in quantities_page.table_lines(COMMON)


def test_the_documented_tables_are_those_of_the_code():
    page = quantities_page.PAGE.read_text(encoding="utf-8")
    assert page == quantities_page.renewed(page), "run .venv/bin/python host/quantities_page.py"


def test_every_quantity_is_documented():
    page = quantities_page.markdown()
    documented = {quantity.key for table in quantities_page.TABLES.values() for quantity in table}
    assert documented == {quantity.key for quantity in (*YCSB, *PHASES)}
    assert all(f"{quantity.key.rpartition('.')[2]}`" in page and quantity.meaning in page for quantity in YCSB)


def test_every_quantity_says_what_it_is():
    assert [quantity.key for quantity in (*YCSB, *PHASES) if not quantity.meaning] == []
    known = {quantity.key for quantity in YCSB}
    named = {path for quantity in YCSB if quantity.line for path in quantities_named(quantity.line[1])}
    assert named <= known


def quantities_named(note):
    return [part.partition("}")[0] for part in note.split("{")[1:]]


def test_a_study_without_operations_needs_none_of_their_keys(tmp_path, study_of):
    study_of(PLAIN_LANGUAGE)
    keys = {quantity.top for quantity in (*OPERATIONS, *KEY_VALUE)}
    entries = {key: entry for key, entry in result_with(PLAIN_LANGUAGE).items() if key not in keys}
    contents = result_json(entries, simulated=True, quantities=PLAIN_LANGUAGE)
    assert not keys & contents.keys()
    make_record(tmp_path)
    put_result(tmp_path, contents)
    names = [line.split("  ")[0].strip() for line in printed(tmp_path).splitlines()]
    assert {"above idle", "power", "for the work", "CPU", "disk"} <= set(names)
    assert not {"throughput", "latency", "loader alone"} & set(names)
    with pytest.raises(ValueError, match="operations"):
        result_json(entries, simulated=True, quantities=YCSB)


def test_a_study_may_give_energies_by_phase_of_any_name():
    definition = Definition("by_phase.*.energy_j", "J", Topic.PART, meaning="by phase", required=False)
    table = Quantities((*YCSB, definition))
    result_json(RESULT, simulated=True, quantities=table)
    good = {"by_phase": {"query 1": {"energy_j": Quantity(1.0, 0.1, "J"), "duration_s": Quantity(1, 0, "s")}}}
    result_json(RESULT | good, simulated=True, quantities=table)
    bad = {"by_phase": {"query 1": {"energy_j": Quantity(1.0, 0.1, "W")}}}
    with pytest.raises(ValueError, match=r"by_phase.query 1.energy_j is in 'W'"):
        result_json(RESULT | bad, simulated=True, quantities=table)


def test_two_quantities_of_one_key_are_refused():
    with pytest.raises(ValueError, match="power_w"):
        Quantities((*COMMON, replace(NEW, key="power_w")))


def test_percentiles_are_nearest_rank():
    """Durations are 1 us to 1,000 us."""
    one = a_repeat()
    expected = {"p50": 500e-6, "p95": 950e-6, "p99": 990e-6, "max": 1000e-6, "mean": 500.5e-6}
    assert {name: latency(one, name).value for name in expected} == pytest.approx(expected)
    of_none = latency(replace(one, operations=OperationTable.empty()), "p50")
    assert of_none.value is None and of_none.reason and of_none.unit == "s"


def test_without_a_log_the_loaders_own_count_stands_in():
    one = replace(a_repeat(), operations=OperationTable.empty(), counted=500)
    figures = YCSB.figures(one)
    assert figures["operations"] == exact(500.0, "1")
    assert figures["throughput_per_s"].value == pytest.approx(50.0)
    none = YCSB.figures(replace(one, counted=0))
    assert none["energy_per_operation_j"] == missing("no operation ended", "J")


def test_what_an_operation_costs_is_the_energy_over_their_number():
    figures = YCSB.figures(a_repeat())
    for key in ("energy_j", "marginal_energy_j"):
        per_operation = figures[key.replace("_j", "_per_operation_j")]
        assert per_operation.value == figures[key].value / 1000
        assert set(YCSB.get(key.replace("_j", "_per_operation_j")).rests_on) == {
            ENERGY,
            ABOVE_IDLE,
            PER_OPERATION,
        }


def test_what_is_compared_between_conditions_starts_with_the_energy_of_an_operation():
    assert [quantity.key for quantity in YCSB.shown("compared")][:3] == [
        *("energy_per_operation_j", "marginal_energy_per_operation_j", "power_w")
    ]


def test_a_memory_that_no_sample_saw_is_missing_and_not_0_bytes():
    """A process that is over before its first sample has left nothing to read."""
    columns = {"board_ns": pa.array([0, 10**9]), "rss_bytes": pa.array([0, 0])}
    cycle = Cycle(usual_phase("run", 1, 0, 10**9), None, ())
    repeat = SimpleNamespace(samples=SystemSamples.of_cycle(pa.table(columns), cycle, 4))
    memory = counter(repeat, "memory", "B")
    assert memory.value is None and "no sample saw" in memory.reason


@pytest.mark.parametrize(("settles", "written_bytes"), [(True, 4e6), (False, 3e6)])
def test_bytes_are_those_of_run_and_settle_and_not_of_the_idle_after_it(settles, written_bytes):
    time_ns = np.arange(0, 50, dtype=np.int64) * 10**9
    columns = {
        "board_ns": time_ns,
        "device_written_bytes": np.interp(time_ns / 1e9, [5, 8, 13, 43], [0, 3e6, 4e6, 7e6]),
    }
    settle = usual_phase("settle", 1, 8 * 10**9, 13 * 10**9) if settles else None
    cycle = Cycle(usual_phase("run", 1, 5 * 10**9, 8 * 10**9), settle, ())
    repeat = SimpleNamespace(samples=SystemSamples.of_cycle(pa.table(columns), cycle, 4))
    assert counter(repeat, "written", "B").value == written_bytes


@pytest.mark.parametrize(("harness_u_j", "u_j"), [(0.3, 0.5), (None, None)])
def test_what_cannot_be_told_apart_is_as_uncertain_as_the_harness_that_is_subtracted(harness_u_j, u_j):
    share = structs.replace(Quantity.from_standard(6.0, 3.0, "J"), reason="collinear")
    attribution = Attribution({"read": share}, share, {}, Quantity.from_standard(10.0, 0.4, "J"), 10, None, None)
    harness = Quantity(2.0, harness_u_j and 2 * harness_u_j, "J", reason="clipped")
    left = unseparated(SimpleNamespace(attribution=attribution, harness=harness))
    assert left.value == pytest.approx(8.0)
    assert left.u == (None if u_j is None else pytest.approx(2 * u_j))


@pytest.mark.parametrize(
    ("waited", "slower", "words"),
    [(0.05, "--rate 9", []), (0.859, "--rate 9", ["86 %", "--rate 9"]), (0.3, "", ["30 %"])],
)
def test_a_result_says_so_if_operations_waited(waited, slower, words):
    share = Quantity.from_standard(6.0, 3.0, "J")
    attribution = Attribution(
        {"read": share}, share, {}, Quantity.from_standard(10.0, 0.4, "J"), 10, None, None, waited=waited
    )
    repeats = [SimpleNamespace(attribution=outcome) for outcome in (missing("no idle", "J"), attribution)]
    said = waiting_notices(repeats, slower)
    assert len(said) == bool(words)
    assert all(word in said[0].text for word in words) and not any("()" in notice.text for notice in said)


def test_a_run_during_which_opening_was_not_over_is_named_with_the_remedy():
    loader = {"run-1": LoaderSummary(), "run-2": LoaderSummary(opening_settled=False)}
    [line] = opening_notices(loader, [1, 2, 3])
    assert "run of repeat 2," in line.line and "settle.limit_s" in line.remedy
    assert opening_notices(loader, [1, 3]) == []


def test_work_that_began_before_the_run_and_goes_on_in_it_counts_and_is_a_notice_if_the_run_only_reads():
    """For example a compaction of the load, started by opening the database."""
    rows = [("compaction", 0, 3 * S), ("sync", 1 * S, 2 * S), ("sync", S // 2, S), ("flush", 11 * S, 12 * S)]
    columns = dict(zip(("event", "board_ns", "end_board_ns"), map(list, zip(*rows, strict=True)), strict=True))
    events = pa.table(columns)
    inside = background(events, S, 11 * S)
    assert {name: (int(of.start_ns[0]), int(of.end_ns[0])) for name, of in inside.items()} == {
        "compaction": (S, 3 * S),
        "sync": (S, 2 * S),
    }
    run = usual_phase("run", 1, S, 11 * S)

    def warned(**counts):
        return background_notices(
            [run], [SimpleNamespace(number=1, operations=SimpleNamespace(counts=lambda: counts))], events
        )

    [notice] = warned(read=5, scan=1)
    assert notice.kind is NoticeKind.BACKGROUND
    assert "10 s" in notice.line and "compaction 2 s, sync 1 s" in notice.line
    assert warned(read=5, update=1) == warned() == []
    assert background_notices([usual_phase("run", 1, 12 * S, 13 * S)], [], events) == []
