"""The loader's operations are those of the real YCSB, by chi-square tests over 10^6 draws of each distribution.

YCSB cannot be seeded. The significance is 0.000001 for each of 19 tests, so that a correct loader fails one run in
about 50,000.
"""

from collections import Counter
from pathlib import Path

import against_ycsb
import bootstrap
import pytest
from against_ycsb import DISTRIBUTIONS, DRAWS, FIELD_LENGTHS, LOADS, SCAN_LENGTHS, SIGNIFICANCE

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    if not list(bootstrap.YCSB_JARS.glob("core-*.jar")):
        bootstrap.fetch_ycsb(tmp_path_factory.mktemp("ycsb") / "maven.log")
    return against_ycsb.Tools(bootstrap.YCSB_JARS, ROOT / "build/loader/loader")


@pytest.fixture
def report():
    made = against_ycsb.Report()
    yield made
    assert not made.failed, "\n".join(made.failed)


@pytest.mark.parametrize("name", LOADS)
def test_a_load_inserts_the_same_keys_in_the_same_order_and_the_same_verifiable_values(tools, report, name):
    against_ycsb.compare_load(tools, report, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.thorough] * (name != "zipfian")) for name in DISTRIBUTIONS],
)
def test_requests_ask_for_keys_as_often(tools, report, name):
    against_ycsb.compare_keys(tools, report, DRAWS, name)


def test_kinds_of_operations_and_their_fields_come_as_often(tools, report):
    against_ycsb.compare_mix(tools, report, DRAWS)


@pytest.mark.parametrize("name", SCAN_LENGTHS)
def test_scans_are_as_long(tools, report, name):
    against_ycsb.compare_scan_lengths(tools, report, DRAWS, name)


@pytest.mark.parametrize("name", FIELD_LENGTHS)
def test_values_are_as_long(tools, report, name):
    against_ycsb.compare_field_lengths(tools, report, DRAWS, name)


def test_values_have_the_same_characters_at_the_same_places(tools, report):
    against_ycsb.compare_characters(tools, report, DRAWS)


def test_a_distribution_that_differs_a_little_is_told_apart(tools):
    """What the chi-square test is for: two hundredths of the requests in the wrong set of keys."""
    shares = ("0.70", "0.72")
    properties = ["recordcount=1000", f"operationcount={DRAWS}", "readproportion=1", "updateproportion=0"]
    properties += ["requestdistribution=hotspot", "hotspotdatafraction=0.1"]
    right, wrong = (
        Counter(
            against_ycsb.keys_of(
                tools.loader("run", [*properties, f"hotspotopnfraction={share}", f"seed={seed}"]), b"READ"
            )
        )
        for seed, share in enumerate(shares)
    )
    assert against_ycsb.chi_square_p(right, wrong) < SIGNIFICANCE
