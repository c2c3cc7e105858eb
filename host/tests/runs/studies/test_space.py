"""Records that have no room on the medium are refused before any is loaded."""

import pytest
from opjoule.base.errors import BadInput
from opjoule.runs.studies.properties import check_space, values_bytes


def test_values_are_records_times_fields_times_length():
    assert values_bytes({"recordcount": "1000"}) == 1_000_000
    assert values_bytes({"recordcount": "1000", "fieldcount": "1", "fieldlength": "20"}) == 20_000


def test_a_slice_of_the_key_space_needs_no_more_than_its_records():
    properties = {"recordcount": "1000000000", "insertcount": "1000"}
    assert values_bytes(properties) == 1_000_000
    with pytest.raises(BadInput, match=r"of 1,000 records"):
        check_space(properties, 999_999, "the card")
    assert values_bytes({"recordcount": "2000", "insertstart": "1500"}) == 500_000


@pytest.mark.parametrize(
    "unknown", [{"fieldlengthdistribution": "uniform"}, {"valuecompressratio": "0.5"}, {"fieldlength": "x"}]
)
def test_what_does_not_follow_from_the_counts_is_not_refused(unknown):
    properties = {"recordcount": "1000000", **unknown}
    assert values_bytes(properties) is None
    check_space(properties, 1, "the card")


def test_too_many_are_refused_with_both_figures_and_the_remedy():
    properties = {"recordcount": "5000000"}
    check_space(properties, 5_000_000_000, "the card")
    check_space(properties, None, "the card")
    with pytest.raises(BadInput, match=r"5,000,000 records .* 5\.0 GB, .* 4\.9 GB .*--records"):
        check_space(properties, 4_900_000_000, "the card")
