"""The rate that all conditions of a campaign have."""

import json
import re
from dataclasses import replace

import pytest
from opjoule.base.errors import BadInput, DeviceFault, RigFault
from opjoule.campaign.campaign import in_condition
from opjoule.campaign.equal_rate import EQUAL_RATE, at_equal_rate
from opjoule.cli.campaign.file import cell_options
from opjoule.cli.measure.planning import make_plan
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.record.run_record import RunRecord

OWN_PER_S = {"leveldb": 14_000, "sqlite": 900}


def plan_of(db: str, **settings: object) -> Plan:
    options = cell_options({"db": db, "device": "rpi4", "simulate": True, **settings}, {"db": db}, seed=1)
    return in_condition(make_plan(options), {"db": db})


class Bench:
    """Measures plans in no time: a run of 10 s with the operations that its database reaches."""

    def __init__(self):
        self.plans = []

    def __call__(self, plan, place):
        self.plans.append(plan)
        summary = {"operations": 10 * OWN_PER_S[plan.study.engine], "duration_s": 10.0}
        record = RunRecord.create(place, {}, simulated=True)
        record.update(loader={"run-1": summary})
        record.finish("complete")
        return 0, place


@pytest.fixture
def bench():
    return Bench()


def target_of(plan: Plan) -> str:
    return f"{plan.study.campaign_per_s:.0f}"


def test_all_conditions_have_half_of_the_slowest_one_s_rate(tmp_path, bench, capsys):
    plans = [plan_of("leveldb"), plan_of("sqlite")]
    measure = at_equal_rate(tmp_path, plans, bench)
    assert [(plan.study.rate, plan.study.run_s) for plan in bench.plans] == [(None, 10)] * 2
    for plan in plans:
        measure(plan, tmp_path / f"run-{plan.study.engine}")
    assert [target_of(plan) for plan in bench.plans[2:]] == ["450", "450"]
    assert [plan.sha256 for plan in bench.plans[2:]] == [plan.sha256 for plan in plans]
    found = json.loads((tmp_path / EQUAL_RATE).read_text())["workload workloada"]
    assert (found["slowest"], found["own_operations_per_s"]["leveldb"]) == ("sqlite", 14_000)
    assert re.search(r"workloada: .* 450 ", capsys.readouterr().err)


def test_a_campaign_that_continues_keeps_its_rate(tmp_path, bench):
    plans = [plan_of("leveldb"), plan_of("sqlite")]
    at_equal_rate(tmp_path, plans, bench)
    count = len(bench.plans)
    at_equal_rate(tmp_path, plans, bench)(plans[0], tmp_path / "again")
    assert len(bench.plans) == count + 1 and target_of(bench.plans[-1]) == "450"
    (tmp_path / EQUAL_RATE).write_text("[]")
    with pytest.raises(BadInput, match="measure into another --out"):
        at_equal_rate(tmp_path, plans, bench)


def test_a_rate_that_the_user_sets_is_measured_as_it_is(tmp_path, bench):
    plans = [plan_of("leveldb", rate="full"), plan_of("sqlite", p="target=9")]
    assert at_equal_rate(tmp_path, plans, bench) is bench and not bench.plans
    assert [plan.study.rate for plan in plans] == [None, None]


def test_a_condition_whose_rate_cannot_be_found_is_named(tmp_path, capsys):
    def killed(plan, place):
        RunRecord.create(place, {}, simulated=True)
        return 1, place

    with pytest.raises(RigFault, match="workloada"):
        at_equal_rate(tmp_path, [plan_of("leveldb")], killed)
    assert "leveldb" in capsys.readouterr().err


def test_a_search_that_was_killed_measures_what_it_lacks_again(tmp_path, bench):
    RunRecord.create(tmp_path / "rates/leveldb", {}, simulated=True)
    plan = plan_of("leveldb")
    at_equal_rate(tmp_path, [plan], bench)(plan, tmp_path / "run")
    assert target_of(bench.plans[-1]) == "7000" and (tmp_path / "rates/leveldb-2").is_dir()


def test_a_measurement_of_its_own_has_no_campaign_s_rate(tmp_path):
    study = plan_of("leveldb").study
    assert study.rate == "equal" and replace(study, campaign_per_s=5.0).to_json() == study.to_json()


def test_each_workload_of_a_campaign_has_a_rate_of_its_own(tmp_path, bench):
    reads, writes = plan_of("leveldb", workload="c"), plan_of("sqlite")
    measure = at_equal_rate(tmp_path, [reads, writes], bench)
    for plan in (reads, writes):
        measure(plan, tmp_path / f"run-{plan.study.engine}")
    assert [target_of(plan) for plan in bench.plans[2:]] == ["7000", "450"]


def test_a_condition_that_fails_does_not_keep_the_others_from_their_rate(tmp_path, bench, capsys):
    def measure_one(plan, place):
        if plan.study.engine == "sqlite":
            raise DeviceFault("the card is gone")
        return bench(plan, place)

    plans = [plan_of("leveldb"), plan_of("sqlite")]
    at_equal_rate(tmp_path, plans, measure_one)(plans[0], tmp_path / "run")
    assert target_of(bench.plans[-1]) == "7000"
    assert re.search("sqlite.* the card is gone", capsys.readouterr().err)
