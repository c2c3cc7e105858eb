"""Encoding of a record's Parquet files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opjoule.energy.trace.parquet_file import write_parquet

SCHEMA = pa.schema([("current_a", pa.float64())])


def parts_of(current_a, rows):
    return [pa.table({"current_a": current_a[at : at + rows]}, SCHEMA) for at in range(0, current_a.size, rows)]


@pytest.mark.parametrize("step_a, dictionary", [(1e-4, True), (0.0, False)])
def test_values_in_steps_have_a_dictionary_and_noise_has_none(tmp_path, step_a, dictionary):
    """A journal begins with an empty batch, and its batches are short."""
    noise_a = np.random.default_rng(1).normal(0.6, 0.1, 100_000)
    current_a = np.rint(noise_a / step_a) * step_a if step_a else noise_a
    path = tmp_path / "power.parquet"
    write_parquet(path, SCHEMA, [SCHEMA.empty_table(), *parts_of(current_a, 500)])
    encodings = pq.read_metadata(path).row_group(0).column(0).encodings
    assert ("RLE_DICTIONARY" in encodings) is dictionary
    assert np.array_equal(pq.read_table(path)["current_a"].to_numpy(), current_a)


def test_a_file_without_rows_can_be_read(tmp_path):
    path = tmp_path / "power.parquet"
    write_parquet(path, SCHEMA, [])
    assert pq.read_table(path).num_rows == 0
