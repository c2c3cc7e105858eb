"""A loader killed in the middle of a load: what it had reported is in the database, and a resumed load ends whole."""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from foreign_readers import READERS, RECORDS, WORKLOAD, run_loader, ycsb_key

LOADER = Path(__file__).resolve().parents[3] / "build/loader/loader"
ENDLESS = 50_000_000


@pytest.fixture(scope="module")
def workload(tmp_path_factory):
    file = tmp_path_factory.mktemp("workload") / "small.properties"
    file.write_text(WORKLOAD)
    return file


def kill_in_mid_load(engine, path, workload, *more):
    """Kills a load that would not end by itself; gives the operations it had last reported."""
    line = [LOADER, "load", "--db", engine, "--path", path, "--workload", workload, "--progress", *more]
    # Not faster than this: a busy computer may kill it seconds late.
    line += ["-p", f"recordcount={ENDLESS}", "-p", "target=50000"]
    loader = subprocess.Popen(
        [str(part) for part in line], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    reported = 0
    for text in loader.stderr:
        reported = json.loads(text)["progress"]["operations"]
        if reported > RECORDS:
            break
    loader.send_signal(signal.SIGKILL)
    loader.wait(300)
    return reported


def keys_found(engine, path):
    """Keys, or of the folders, whose last file may be torn, the names of files."""
    if engine not in ("flatfolder", "nestedfolder"):
        return set(READERS[engine](path))
    return {file.name for file in (path / "records").rglob("*") if file.is_file()}


ENGINES = [name for name in READERS if name != "berkeleydb"]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_killed_loader_had_reported_is_there_and_a_resumed_load_adds_the_rest(tmp_path, workload, engine):
    path = tmp_path / "database"
    reported = kill_in_mid_load(engine, path, workload)
    left = keys_found(engine, path)
    assert len(left) >= reported > RECORDS
    wanted = len(left) + 1000
    summary = run_loader([LOADER], "load", engine, path, workload, "--resume", "-p", f"recordcount={wanted}")
    assert summary["resumed"] == {"records_before": pytest.approx(len(left), abs=1), "records_after": wanted}
    keys = keys_found(engine, path)
    assert len(keys) == wanted
    if engine != "nestedfolder":
        assert keys == {ycsb_key(number) for number in range(wanted)}


@pytest.mark.slow
def test_berkeley_db_with_a_log_recovers(tmp_path, workload):
    log = ("-p", "berkeleydb.mode=transactional")
    reported = kill_in_mid_load("berkeleydb", tmp_path / "database", workload, *log)
    more = ("--resume", "-p", f"recordcount={10 * reported}")
    summary = run_loader([LOADER], "load", "berkeleydb", tmp_path / "database", workload, *log, *more)
    assert summary["resumed"]["records_before"] >= reported


def test_berkeley_db_without_a_log_is_refused_and_a_resumed_load_starts_over(tmp_path, workload):
    path = tmp_path / "database"
    kill_in_mid_load("berkeleydb", path, workload)
    line = [LOADER, "run", "--db", "berkeleydb", "--path", path, "--workload", workload]
    refused = subprocess.run([str(part) for part in line], capture_output=True, text=True, timeout=600, check=False)
    assert refused.returncode == 4
    assert str(path) in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    summary = run_loader([LOADER], "load", "berkeleydb", path, workload, "--resume")
    assert summary["resumed"]["records_before"] == 0
    assert set(READERS["berkeleydb"](path)) == {ycsb_key(number) for number in range(RECORDS)}
