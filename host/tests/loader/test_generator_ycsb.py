"""`--generator ycsb`: the real YCSB on this computer makes the operations, and the loader on the board replays them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import bootstrap
import pytest
from loopback_rig import RUN_THROUGH, rig  # noqa: F401 (a fixture)
from opjoule.base.errors import BadInput
from opjoule.runs.record.run_record import RunRecord
from opjoule.runs.studies.properties import NOT_YCSBS, VERSION, YcsbCore, check_settings, expected_operations

ROOT = Path(__file__).resolve().parents[3]
LOADER = ROOT / "build/loader/loader"
CORE = bootstrap.YCSB_JARS / f"core-{VERSION}.jar"


@pytest.fixture(scope="module", autouse=True)
def ycsb(tmp_path_factory):
    if not CORE.exists():
        bootstrap.fetch_ycsb(tmp_path_factory.mktemp("ycsb") / "maven.log")


def measure(out, *options, path=None):
    command = [sys.executable, "-m", "opjoule.cli.start", "--generator", "ycsb", "--db", "leveldb"]
    command += [
        "--device",
        "rpi4",
        "--simulate",
        "--out",
        str(out),
        "--records",
        "500",
        "--idle",
        "0.5",
        "--repeats",
        "1",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "host"), "COLUMNS": "200"}
    if path is not None:
        environment["PATH"] = path
    return subprocess.run(
        [*command, *options],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_simulated_measurement_is_of_the_real_ycsbs_operations_and_says_so(tmp_path):
    ended = measure(tmp_path / "out", "--workload", "d", "--operations", "3000")
    assert ended.returncode == 0, ended.stderr
    assert f"YCSB {VERSION}" in ended.stdout
    record = RunRecord.open(tmp_path / "out")
    assert record.status == "complete", record.faults
    assert record.document["found"]["generator"] == {"name": "ycsb", "version": VERSION, "runs_on": "host"}
    result = json.loads((tmp_path / "out/result.json").read_text())
    assert result["generator"] == {"name": "ycsb", "version": VERSION}
    assert result["operations"]["value"] == 3000
    assert result["by_operation"]["insert"]["count"]["value"] > 0
    for phase in ("load-1", "run-1", "harness-1"):
        assert record.document["loader"][phase]["replayed"] is True
        assert "YCSB Client" in (tmp_path / f"out/raw/{phase}.generator.log").read_text()


@pytest.mark.rig
@pytest.mark.end_to_end
def test_over_ssh_the_operations_arrive_and_no_java_runs_on_the_board(rig):  # noqa: F811
    host = rig.measure("--generator", "ycsb", "--workload", "f", "--operations", "2000")
    _, said = host.communicate(timeout=600)
    assert host.returncode in RUN_THROUGH, said
    record, result = rig.record(), json.loads((rig.out / "result.json").read_text())
    assert record["status"] == "complete"
    assert result["generator"] == {"name": "ycsb", "version": VERSION}
    # A read-modify-write is a read and an update, as YCSB's binding sees it.
    assert 2000 < result["operations"]["value"] < 4000
    assert record["loader"]["load-1"]["operations"] == 2000
    assert list(rig.storage.iterdir()) == []
    assert list((rig.folder / "sshd/work").glob("*/*/run-1")) == []


def children_of(pid):
    """Command lines of the processes that descend from `pid`, by number."""
    rows = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    table = [line.split(None, 2) for line in rows.splitlines()]
    children, wanted = {}, {str(pid)}
    for _ in range(4):
        for number, parent, arguments in table:
            if parent in wanted:
                wanted.add(number)
                children[int(number)] = arguments
    return children


@pytest.mark.rig
@pytest.mark.end_to_end
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_host_that_ends_in_mid_run_leaves_no_java_behind(rig, ending):  # noqa: F811
    host = rig.measure("--generator", "ycsb", "--operations", "2000000000")
    rig.await_phase("idle-before")
    deadline_s = time.monotonic() + 120
    while not (java := [pid for pid, line in children_of(host.pid).items() if line.startswith("java")]):
        assert time.monotonic() < deadline_s, "no java runs"
        time.sleep(0.1)
    host.send_signal(ending)
    host.communicate(timeout=300)
    deadline_s = time.monotonic() + 120
    while any(Path(f"/proc/{pid}/exe").exists() for pid in java):
        assert time.monotonic() < deadline_s, "java runs on"
        time.sleep(0.1)
    assert rig.record()["status"] == "partial"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--threads", "2"], "use --threads 1, or leave --generator out"),
        (["-p", "threadcount=3"], "use --threads 1, or leave --generator out"),
        (["-p", "valuecompressratio=0.5"], "property valuecompressratio: "),
        (
            ["--distribution", "truezipfian"],
            "requestdistribution=truezipfian: ",
        ),
    ],
)
def test_what_the_real_ycsb_cannot_do_is_refused_in_one_line(tmp_path, options, said):
    ended = measure(tmp_path / "out", "--operations", "100", *options)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_workload_that_ycsb_itself_refuses_is_reported_in_its_words(tmp_path):
    workload = tmp_path / "bad.properties"
    workload.write_text("recordcount=10\nscanproportion=1\nmaxscanlength=0\nscanlengthdistribution=nosuch\n")
    with pytest.raises(BadInput, match=f"YCSB {VERSION} rejects this workload: .*nosuch"):
        YcsbCore(bootstrap.YCSB_JARS).check(workload, {"operationcount": "10"})


def test_without_java_it_says_what_to_install(tmp_path):
    ended = measure(tmp_path / "out", "--operations", "100", path=str(tmp_path))
    assert ended.returncode == 3
    assert "java is missing" in ended.stderr
    assert "install default-jre-headless, or leave --generator out" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_without_maven_set_up_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "java").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(bootstrap.SetupError, match=r"mvn is missing.*--generator"):
        bootstrap.fetch_ycsb(tmp_path / "log")


@pytest.mark.rig
@pytest.mark.end_to_end
def test_a_stream_that_ends_early_is_a_fault_not_a_short_run(tmp_path):
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nfor n in 1 2 3; do echo "INSERT usertable user$n [ field0=a ]"; done\necho gone >&2\n')
    java.chmod(0o755)
    path = f"{java.parent}:{os.environ['PATH']}"
    ended = measure(tmp_path / "out", "--operations", "100", "--value-size", "1", path=path)
    assert ended.returncode == 3
    assert "ycsb made 3 of 500 operations in load-1" in ended.stderr
    assert (tmp_path / "out/raw/load-1.generator.log").read_text() == "gone\n"
    assert RunRecord.open(tmp_path / "out").status == "partial"


def test_dry_run_names_the_generator_and_fetches_nothing(tmp_path):
    """With nothing but Java to start: it has the real YCSB make an operation, to see that it can."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").symlink_to(shutil.which("java"))
    ended = measure(tmp_path / "out", "--operations", "100", "--dry-run", path=str(tmp_path / "bin"))
    assert ended.returncode == 0, ended.stderr
    assert f"made by YCSB {VERSION} on this computer" in ended.stdout


def test_every_property_of_the_loaders_workload_is_ycsbs_own_or_refused():
    listed = subprocess.run([LOADER, "properties"], capture_output=True, text=True, check=True).stdout
    workload, _, _ = listed.partition("\n\n")
    keys = set(re.findall(r"^  (\S+)", workload, re.MULTILINE))
    assert {"recordcount", "requestdistribution", *NOT_YCSBS} <= keys
    with zipfile.ZipFile(CORE) as jar:
        classes = b"".join(jar.read(name) for name in jar.namelist() if name.endswith(".class"))
    # How the loader does what it is given, not what that is.
    loaders_alone = {
        *("seed", "settle", "settle.limit_s", "core_workload_insertion_keep_going_on_error"),
        *("removes", "valuedigest"),
    }
    unknown = {key for key in keys if key.encode() not in classes}
    assert unknown - loaders_alone == NOT_YCSBS


def test_the_version_is_the_pinned_one():
    pom = (bootstrap.YCSB_PINS / "pom.xml").read_text()
    assert f"<artifactId>core</artifactId>\n      <version>{VERSION}</version>" in pom
    assert f"core-{VERSION}.jar" in (bootstrap.YCSB_PINS / "jars.sha256").read_text()


def test_how_many_operations_a_phase_has_at_least():
    assert expected_operations("load", {"recordcount": "50"}) == 50
    assert expected_operations("load", {"recordcount": "50", "insertcount": "20"}) == 20
    assert expected_operations("run", {"recordcount": "50", "operationcount": "70"}) == 70
    assert expected_operations("run", {"operationcount": "70", "maxexecutiontime": "5"}) == 0


def test_ycsb_properties_in_a_file_are_looked_at_too():
    check_settings({"readproportion": "1", "leveldb.block_bytes": "4096"}, 1)
    with pytest.raises(BadInput, match="property removeproportion"):
        check_settings({"removeproportion": "0.1"}, 1)
