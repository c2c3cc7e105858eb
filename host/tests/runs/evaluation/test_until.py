"""--until-u ends when the headline is known well enough, or when repeats cannot help."""

from typing import get_type_hints

import pytest
from opjoule.base.errors import AlignmentError
from opjoule.base.notices import NoticeKind
from opjoule.base.units import Quantity, missing
from opjoule.cli.measure.options import JobOptions
from opjoule.energy.budget import PARTS, Budget
from opjoule.runs.evaluation import until
from opjoule.runs.evaluation.faults import short_run_notices
from opjoule.runs.evaluation.until import REPEATS_MIN, Until, until_notices
from opjoule.runs.evaluation.wording import COMMAND, YCSB
from opjoule.runs.record.run import UntilOutcome
from opjoule.runs.record.run_record import RunRecord
from raw_record import run_json
from until_coverage import coverage  # path set above
from usual_phases import usual_phase

HEADLINE = YCSB.quantities.headline.key


@pytest.fixture
def record(tmp_path, monkeypatch):
    monkeypatch.setattr(until.time, "sleep", lambda seconds: None)
    return RunRecord.create(tmp_path / "r", {}, simulated=False)


def result(relative_u, shared=0.001):
    parts = dict.fromkeys(PARTS, 0.0) | {"gain": shared * 10 / 2}
    return {
        "marginal_energy_per_operation_j": Quantity(1e-4, relative_u * 1e-4, "J"),
        "marginal_energy_j": Quantity(10.0, relative_u * 10.0, "J"),
        "marginal_budget": Budget(parts),
    }


def test_it_ends_with_the_first_interval_that_is_narrow_enough(record):
    widths = iter([0.2, 0.05, 0.029])
    enough = Until(record, HEADLINE, 0.03, 30, lambda: result(next(widths)))
    assert [enough(8), enough(9), enough(10)] == [False, False, True]
    assert record.run.until_u == UntilOutcome(0.03, 0.029, 10, "")
    assert until_notices(record.run.until_u) == []


def test_a_narrow_interval_of_few_repeats_does_not_end_it(record):
    enough = Until(record, HEADLINE, 0.03, 30, lambda: result(0.02))
    assert [enough(repeats) for repeats in range(3, 9)] == [False] * 5 + [True]


def test_a_narrow_interval_at_a_limit_of_few_repeats_is_what_was_asked_for(record):
    enough = Until(record, HEADLINE, 0.03, 4, lambda: result(0.02))
    assert [enough(3), enough(4)] == [False, True]
    assert until_notices(record.run.until_u) == []


def test_the_help_names_the_fewest_repeats():
    about = get_type_hints(JobOptions, include_extras=True)["until_u"]
    assert f"at least {REPEATS_MIN} repeats" in str(about)


def test_intervals_at_the_end_hold_the_true_value():
    """If a narrow interval of three repeats ended it, 91 of 100 would hold."""
    held, repeats = coverage(0.04, 0.03, 600, seed=1)
    assert held > 0.94 and repeats < 11


def test_it_ends_at_the_limit_and_says_what_was_reached(record):
    enough = Until(record, HEADLINE, 0.03, 4, lambda: result(0.1))
    assert [enough(3), enough(4)] == [False, True]
    [notice] = until_notices(record.run.until_u)
    assert notice.kind is NoticeKind.NOT_REACHED
    assert "--until-u 3%" in notice.text and "±10 % after 4 repeats" in notice.text


def test_it_ends_at_once_where_what_repeats_share_is_wider(record):
    assert Until(record, HEADLINE, 0.01, 30, lambda: result(0.05, shared=0.014))(3)
    (line,) = until_notices(record.run.until_u)
    assert "±1.4 %" in line.text and "calibrate" in line.text


def test_a_figure_that_is_withheld_ends_it(record):
    withheld = {"marginal_energy_per_operation_j": missing("withheld: settle limit", "J")}
    assert Until(record, HEADLINE, 0.01, 30, lambda: withheld)(3)
    assert "settle limit" in until_notices(record.run.until_u)[0].text


def test_clocks_that_do_not_match_yet_ask_for_one_more(record):
    def fails():
        raise AlignmentError("no evidence yet")

    enough = Until(record, HEADLINE, 0.01, 4, fails)
    assert [enough(3), enough(4)] == [False, True]


def runs(*seconds):
    return [usual_phase("run", number, 0, round(length * 1e9)) for number, length in enumerate(seconds, 1)]


def longer(operations, **options):
    return lambda times, run_s: YCSB.longer(run_json(asked=options), times, run_s, operations)


def test_a_run_of_200_operations_is_warned_of_with_the_number_that_would_do():
    """Runs of 200 operations gave 56 to 563 uJ an operation."""
    (line,) = short_run_notices(runs(0.02, 0.03), 532_000, longer(200))
    assert "took 0.02 s, 38 samples" in line.text
    assert "--operations 15000" in line.remedy


def test_a_run_that_is_a_little_too_short_is_advised_no_less_than_more_work_would_be():
    (line,) = short_run_notices(runs(0.9), 532_000, longer(1000))
    assert "--operations 4000" in line.remedy


def test_a_slow_meter_needs_a_longer_run():
    (line,) = short_run_notices(runs(5.0), 68_000_000, longer(1000))
    assert "74 samples" in line.text
    assert "--operations 11000" in line.remedy


def test_with_seconds_asked_for_seconds_are_advised():
    (line,) = short_run_notices(runs(5.0), 68_000_000, longer(1000, seconds=5))
    assert line.remedy == "--seconds 51"


def test_a_run_of_a_second_with_enough_samples_is_not_warned_of():
    assert short_run_notices(runs(1.0, 1.2), 532_000, longer(1000)) == []


def test_a_command_is_to_work_for_longer():
    def ask(times, run_s):
        return COMMAND.longer(run_json(), times, run_s, 0.0)

    (line,) = short_run_notices(runs(0.5), 532_000, ask)
    assert line.remedy.endswith("let it work 3 times as long")


def test_each_study_has_a_headline_of_its_own():
    """What a command marks, or does not mark, is no matter: its energy above idle is always there."""
    assert HEADLINE == "marginal_energy_per_operation_j"
    assert COMMAND.quantities.headline.key == "marginal_energy_j"
