"""What the loader writes, other people's programs read: the same records whatever the engine.

Each engine is loaded and updated with one seed. The loader's keys are checked against YCSB's own formula; the values of
every engine against those of the others.
"""

from pathlib import Path

import pytest
from foreign_readers import (
    FIELD_BYTES,
    FIELDS,
    READERS,
    RECORDS,
    WORKLOAD,
    read_berkeleydb,
    read_sqlite,
    run_loader,
    ycsb_key,
)

ROOT = Path(__file__).resolve().parents[3]
LOADER = [ROOT / "build/loader/loader"]


@pytest.fixture(scope="module")
def workload(tmp_path_factory):
    file = tmp_path_factory.mktemp("workload") / "small.properties"
    file.write_text(WORKLOAD)
    return file


@pytest.fixture(scope="module")
def databases(tmp_path_factory, workload):
    """{engine: (records after the load, records after the run)}, as the foreign readers find them."""
    records = {}
    for engine, read in READERS.items():
        path = tmp_path_factory.mktemp(engine) / "database"
        run_loader(LOADER, "load", engine, path, workload)
        loaded = read(path)
        summary = run_loader(LOADER, "run", engine, path, workload)
        assert summary["by_kind"]["update"]["count"] > RECORDS / 3
        records[engine] = (loaded, read(path))
    return records


@pytest.mark.parametrize("engine", READERS)
def test_a_foreign_reader_finds_every_key_of_ycsb_and_no_other(databases, engine):
    expected = {ycsb_key(number) for number in range(RECORDS)}
    loaded, updated = databases[engine]
    assert set(loaded) == expected
    assert set(updated) == expected


@pytest.mark.parametrize("engine", READERS)
def test_a_foreign_reader_finds_every_field_with_its_length(databases, engine):
    for records in databases[engine]:
        for fields in records.values():
            assert sorted(fields) == list(range(FIELDS))
            assert {len(value) for value in fields.values()} == {FIELD_BYTES}


def test_all_engines_hold_the_same_values_after_load_and_after_updates(databases):
    loaded, updated = databases["sqlite"]
    assert loaded != updated
    for engine, (other_loaded, other_updated) in databases.items():
        assert other_loaded == loaded, engine
        assert other_updated == updated, engine


def test_values_differ_from_record_to_record(databases):
    loaded, _ = databases["sqlite"]
    values = [value for fields in loaded.values() for value in fields.values()]
    assert len(set(values)) == RECORDS * FIELDS


@pytest.mark.parametrize("mode", ["store", "transactional"])
def test_berkeley_db_files_of_other_modes_are_read_too(tmp_path, workload, mode):
    run_loader(LOADER, "load", "berkeleydb", tmp_path / "database", workload, "-p", f"berkeleydb.mode={mode}")
    assert len(read_berkeleydb(tmp_path / "database")) == RECORDS


def test_a_write_ahead_log_of_sqlite_is_moved_into_the_file(tmp_path, workload):
    path = tmp_path / "database"
    run_loader(LOADER, "load", "sqlite", path, workload, "-p", "sqlite.journal_mode=wal", "-p", "sqlite.batch=100")
    assert len(read_sqlite(path)) == RECORDS
