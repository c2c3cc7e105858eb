"""What an operation costs all told, from energies that are known exactly."""

import math
from dataclasses import replace

import numpy as np
import pytest
from opjoule.attribution.attributed_run import Attribution, EnergyCourse
from opjoule.base.units import Quantity, exact, missing
from opjoule.energy.baseline import MarginalEnergy
from opjoule.energy.budget import PARTS, Budget
from opjoule.energy.operations.operation_table import LOADER_KINDS, OperationTable
from opjoule.runs.evaluation.all_told import PROCESSOR, MixedRun, all_told, by_operation, told_figures, write_costs
from opjoule.runs.evaluation.quantities.definition import Repeat, RepeatEnergy
from opjoule.runs.evaluation.repeat_energy import Harness

READ_J, UPDATE_J, CAUSED_J = 5e-6, 20e-6, 78e-6
"""True energies of a read, of an update while it is carried out, and of what it causes later."""
CORE_W = 1.0


def operations(counts, duration_us=5.0):
    """A table with so many operations of each kind, all of one duration."""
    kinds = np.repeat([LOADER_KINDS.index(kind) for kind in counts], list(counts.values()))
    made = OperationTable.empty(kinds.size)
    made.kind[:] = kinds
    made.duration_ns[:] = round(1e3 * duration_us)
    made.board_ns[:] = np.arange(kinds.size) * 10_000
    made.bytes[:] = np.where(kinds == LOADER_KINDS.index("read"), 1000, 100)
    return made


def repeat_of(counts, shares=None, duration_us=5.0, whole_u=0.01):
    """A repeat whose energy above idle is that of its operations."""
    reads, writes = counts.get("read", 0), sum(n for kind, n in counts.items() if kind != "read")
    whole_j = reads * READ_J + writes * (UPDATE_J + CAUSED_J)
    course = EnergyCourse(np.zeros(1, np.int64), {}, np.zeros(0))
    none = Quantity.from_standard(0.0, 0.0, "J")
    whole = Quantity.from_standard(whole_j, whole_u * whole_j, "J", shared={"scale": whole_u * whole_j})
    attribution = Attribution(shares or {}, none, {}, whole, 100, None, course)
    harness = exact(1e-6 * (reads + writes), "J")
    u_j = whole_u * whole_j
    budget = Budget(dict.fromkeys(PARTS, 0.0) | {"gain": u_j}, shared={"gain of bench-1": u_j})
    marginal = MarginalEnergy(Quantity.from_standard(whole_j, u_j, "J", 0.0), budget)
    energy = RepeatEnergy(None, None, None, None, marginal, None)
    return Repeat(
        1, energy, 10.0, operations=operations(counts, duration_us), attribution=attribution,
        harness=harness, core_w=CORE_W,
    )  # fmt: skip


def found_of(u=0.02, **counts):
    """Shares that the windows of the repeat give, with the relative standard uncertainty of each."""
    own_j = {"read": READ_J, "update": UPDATE_J}
    return {kind: Quantity.from_standard(n * own_j[kind], u * n * own_j[kind], "J") for kind, n in counts.items()}


def by_time_j(reads, duration_us=5.0):
    """Energy of the reads by the time that they worked, and its standard uncertainty [J]."""
    least_j, most_j = (reads * (1e-6 + times * CORE_W * duration_us * 1e-6) for times in PROCESSOR)
    return (least_j + most_j) / 2, (most_j - least_j) / math.sqrt(12.0)


def test_what_reads_leave_of_the_whole_belongs_to_the_kind_that_writes():
    repeat = replace(repeat_of({"read": 70_000, "update": 72_000}, found_of(read=70_000)), core_w=None)
    told = all_told(repeat)
    assert told["read"].value / 70_000 == pytest.approx(READ_J)
    assert told["update"].value / 72_000 == pytest.approx(UPDATE_J + CAUSED_J)
    total_j = told["read"].value + told["update"].value
    assert total_j == pytest.approx(repeat.attribution.whole.value)
    reads_u_j = told["read"].standard_u
    assert told["update"].standard_u == pytest.approx(math.hypot(repeat.attribution.whole.standard_u, reads_u_j))


def test_one_kind_has_the_whole_without_any_attribution():
    repeat = repeat_of({"update": 1000})
    (share,) = all_told(repeat).values()
    assert share == repeat.attribution.whole


def test_what_is_drawn_beside_the_reads_is_no_part_of_their_execution():
    """With workload c: the tail of the medium after the sync before the run."""
    own = {"read": Quantity.from_standard(0.8 * 1000 * READ_J, 1e-5, "J")}
    read = by_operation([repeat_of({"read": 1000}, own)])["read"]
    assert read["all_told_energy_per_operation_j"].value == pytest.approx(READ_J)
    assert read["energy_per_operation_j"].value == pytest.approx(0.8 * READ_J)
    assert read["background_energy_per_operation_j"].value == pytest.approx(0.2 * READ_J)


TOO_WIDE = missing("known too roughly", "J")


def test_two_estimates_of_the_reads_are_weighted_by_their_variances():
    wide = {"read": found_of(u=0.4, read=1000)["read"].because(TOO_WIDE)}
    repeat = repeat_of({"read": 1000, "update": 1000}, wide)
    time_j, time_u_j = by_time_j(1000)
    windows_j, windows_u_j = 1000 * READ_J, 0.4 * 1000 * READ_J
    weights = np.array([windows_u_j**-2, time_u_j**-2])
    share = all_told(repeat)["read"]
    assert share.value == pytest.approx(weights @ [windows_j, time_j] / weights.sum())
    assert share.standard_u == pytest.approx(weights.sum() ** -0.5)


def test_windows_that_show_nothing_of_the_reads_do_not_count():
    repeat = repeat_of({"read": 1000, "update": 1000}, found_of(read=1000))
    blind = replace(repeat, attribution=replace(repeat.attribution, blind=frozenset({"read"})))
    share = all_told(blind)["read"]
    assert (share.value, share.standard_u) == pytest.approx(by_time_j(1000))


def test_an_interval_reaches_what_the_time_allows_if_the_windows_contradict_it():
    found = {"read": Quantity.from_standard(0.0, 1e-5, "J").because(TOO_WIDE)}
    share = all_told(repeat_of({"read": 1000, "update": 1000}, found))["read"]
    least_j = 1000 * (1e-6 + PROCESSOR[0] * CORE_W * 5e-6)
    assert share.value < 1e-3 * least_j < least_j < share.value + 2 * share.standard_u


def test_windows_that_identify_the_reads_decide_alone():
    found = found_of(u=0.02, read=1000)
    repeat = repeat_of({"read": 1000, "update": 1000}, found, duration_us=500.0)  # which asks for far more
    share = all_told(repeat)["read"]
    assert (share.value, share.standard_u) == (found["read"].value, found["read"].standard_u)


def test_without_windows_the_time_that_they_worked_bounds_the_reads():
    repeat = repeat_of({"read": 1000, "update": 1000})
    told = all_told(repeat)
    assert told["read"].value == pytest.approx(by_time_j(1000)[0])
    assert told["update"].standard_u < 0.06 * told["update"].value  # reads are a small part of it
    unknown = all_told(replace(repeat, core_w=None))
    assert unknown["read"].value is None and unknown["update"].value is None


@pytest.mark.parametrize("repeats", [1, 3])
def test_several_kinds_that_write_have_no_interval_and_add_up(repeats):
    repeat = repeat_of({"read": 1000, "update": 1000, "insert": 500})
    entries = by_operation([repeat] * repeats)
    told = {kind: entry["all_told_energy_per_operation_j"] for kind, entry in entries.items()}
    assert told["read"].u is not None
    assert told["update"].u is None and "a rule" in told["insert"].reason
    total_j = sum(number.value * entries[kind]["count"].value for kind, number in told.items())
    assert total_j == pytest.approx(repeat.attribution.whole.value)


INSERT_J = 200e-6


def mixed_repeat(updates, inserts, whole_u=0.01):
    """A repeat in which an insert costs INSERT_J in all, and an update UPDATE_J + CAUSED_J."""
    counts = {"read": 1000, "update": updates, "insert": inserts}
    repeat = repeat_of(counts, found_of(read=1000), whole_u=whole_u)
    more_j = inserts * (INSERT_J - UPDATE_J - CAUSED_J)
    attribution, energy = repeat.attribution, repeat.energy
    whole = Quantity.from_standard(float(attribution.whole) + more_j, 1e-4, "J", shared={"scale": 1e-4})
    marginal = replace(energy.marginal, energy=whole)
    attribution = replace(attribution, whole=whole)
    return replace(repeat, attribution=attribution, energy=replace(energy, marginal=marginal), core_w=None)


def mixed_run(updates, inserts):
    repeat = mixed_repeat(updates, inserts)
    return MixedRun(repeat.operations.counts(), repeat.energy)


def test_runs_in_other_mixes_tell_several_kinds_that_write_apart():
    repeats = [replace(mixed_repeat(500, 500), number=number) for number in (1, 2, 3, 4)]
    costs = write_costs(repeats, [mixed_run(750, 250), mixed_run(250, 750)])
    entries = by_operation(repeats, costs)
    told = {kind: entry["all_told_energy_per_operation_j"] for kind, entry in entries.items()}
    for kind, true_j in {"read": READ_J, "update": UPDATE_J + CAUSED_J, "insert": INSERT_J}.items():
        assert told[kind].value == pytest.approx(true_j, rel=1e-6), kind
        assert told[kind].u and not told[kind].reason, kind
    total_j = sum(number.value * entries[kind]["count"].value for kind, number in told.items())
    assert total_j == pytest.approx(repeats[0].attribution.whole.value)
    (figures, *_) = told_figures(repeats, costs)
    assert figures["by_operation.insert.all_told_energy_per_operation_j"].shared


@pytest.mark.parametrize("lacking", ["mixes", "reads", "idle"])
def test_without_the_runs_in_other_mixes_the_rule_by_bytes_stays(lacking):
    repeats = [mixed_repeat(500, 500)] * 4
    mixes = [mixed_run(750, 250), mixed_run(250, 750)]
    if lacking == "mixes":
        mixes = []
    elif lacking == "reads":
        repeats = [replace(one, attribution=replace(one.attribution, operations={})) for one in repeats]
    else:
        mixes = [replace(mix, energy=replace(mix.energy, marginal=None)) for mix in mixes]
    assert write_costs(repeats, mixes) is None


def test_what_an_update_causes_later_needs_no_single_part():
    found = {
        "read": Quantity.from_standard(70_000 * READ_J, 1e-3, "J"),
        "update": Quantity.from_standard(72_000 * UPDATE_J, 1e-2, "J"),
    }
    entries = by_operation([repeat_of({"read": 70_000, "update": 72_000}, found)])
    update = entries["update"]
    assert update["background_energy_per_operation_j"].value == pytest.approx(CAUSED_J)
    assert update["energy_per_operation_j"].value == pytest.approx(UPDATE_J)
    assert update["harness_energy_per_operation_j"].value == pytest.approx(1e-6)
    assert entries["read"]["background_energy_per_operation_j"].value == 0.0


def test_a_wrong_gain_moves_the_whole_and_its_parts_together():
    read, update = (
        Quantity.from_standard(70_000 * READ_J, 0.0, "J"),
        Quantity.from_standard(72_000 * UPDATE_J, 0.0, "J"),
    )
    scaled = {
        kind: Quantity.from_standard(share.value, 0.2 * share.value, "J", shared={"scale": 0.2 * share.value})
        for kind, share in {"read": read, "update": update}.items()
    }
    repeat = repeat_of({"read": 70_000, "update": 72_000}, scaled, whole_u=0.2)
    entries = by_operation([replace(repeat, core_w=None)])
    for key in ("all_told_energy_per_operation_j", "background_energy_per_operation_j"):
        number = entries["update"][key]
        assert number.standard_u == pytest.approx(0.2 * number.value, rel=1e-6)


def test_what_other_runs_of_the_sensor_share_of_a_cost_is_its_part_of_the_gain_error():
    """So the gain cancels in ratios of these costs, too; an estimate from working time alone has no part of it."""
    read = Quantity.from_standard(70_000 * READ_J, 0.2 * 70_000 * READ_J, "J", shared={"scale": 0.2 * 70_000 * READ_J})
    repeat = repeat_of({"read": 70_000, "update": 72_000}, {"read": read}, whole_u=0.2)
    (told,) = told_figures([replace(repeat, core_w=None)])
    for kind in ("read", "update"):
        figure = told[f"by_operation.{kind}.all_told_energy_per_operation_j"]
        assert figure.shared == {"gain of bench-1": pytest.approx(0.2 * figure.value)}
    (timed,) = told_figures([repeat_of({"read": 70_000, "update": 72_000}, whole_u=0.2)])
    shared = timed["by_operation.read.all_told_energy_per_operation_j"].shared
    assert shared == {"gain of bench-1": 0.0}
    whole = timed["by_operation.update.all_told_energy_per_operation_j"]
    assert whole.shared["gain of bench-1"] * 72_000 == pytest.approx(0.2 * repeat.attribution.whole.value)


@pytest.mark.parametrize(
    ("energy_j", "u_j", "cpu_s", "core_w"),
    [
        (2.0, 0.1, 1.6, 1.25),
        (-0.05, 0.3, 1.6, None),
        (0.05, 0.3, 1.6, None),
        (2.0, 0.1, 0.0, None),
        (2.0, 0.1, None, None),
    ],
)
def test_a_processor_whose_power_may_be_zero_bounds_nothing(energy_j, u_j, cpu_s, core_w):
    assert Harness(1000, Quantity(energy_j, u_j, "J")).core_w(cpu_s) == core_w
