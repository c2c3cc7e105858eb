"""A campaign on several rigs: every cell once, whatever ends in the middle; no record lost, none twice."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from campaign_files import file_of
from opjoule.cli.failures import reporting_failures
from opjoule.results.comparison.index import read_index
from opjoule.runs.record.run_record import RunRecord

ROOT = Path(__file__).resolve().parents[3]
HOST = ROOT / "host"
RIGS = [f"rig-{number}" for number in range(1, 9)]


class Forked:
    """A process that the one with Dask in it has started."""

    def __init__(self, folder: Path, name: str, number: int) -> None:
        self._pid, self._status = folder / f"{name}-{number}.pid", folder / f"{name}-{number}.status"
        self.log = folder / f"{name}.log"

    def order(self, kind: str, argv: list[str]) -> str:
        files = {"log": str(self.log), "pid": str(self._pid), "status": str(self._status)}
        return json.dumps({"kind": kind, "argv": argv, **files}) + "\n"

    @property
    def pid(self) -> int:
        until(lambda: self._pid.exists() and self._pid.read_text())
        return int(self._pid.read_text())

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{self.pid}").exists())

    @property
    def has_ended(self) -> bool:
        return self._status.exists() and bool(self._status.read_text())

    def wait(self) -> int:
        until(lambda: self.has_ended)
        return int(self._status.read_text())


def until(condition, campaign: Forked | None = None) -> None:
    """Waits for what the processes do; a campaign that ended first is a failure."""
    while not condition():
        assert campaign is None or not campaign.has_ended, campaign.log.read_text()
        time.sleep(0.02)


@pytest.fixture(scope="module")
def loaded():
    """The process that starts all others."""
    environment = {**os.environ, "PYTHONPATH": str(HOST)}
    argv = [sys.executable, str(HOST / "tests" / "support" / "fleet_rigs.py")]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, text=True, env=environment)
    yield process
    process.stdin.close()
    process.wait()


class LoopbackFleet:
    """A scheduler, rigs and a campaign, each a process."""

    def __init__(self, folder: Path, loaded: subprocess.Popen) -> None:
        self.folder, self.spool, self.out, self.loaded = folder, folder / "spool", folder / "out", loaded
        self.spool.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.started: dict[str, Forked] = {}
        self.count = 0
        self.scheduler = self.start_scheduler()

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start_scheduler(self) -> subprocess.Popen:
        argv = [sys.executable, "-m", "opjoule.cli.start", "campaign", "scheduler", "--port", str(self.port)]
        with (self.folder / "scheduler.log").open("a") as log:
            environment = {**os.environ, "PYTHONPATH": str(HOST)}
            process = subprocess.Popen(argv, stdout=log, stderr=log, env=environment, start_new_session=True)
        until(self.listens)
        return process

    def listens(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0

    def start(self, kind: str, name: str, *argv: str) -> Forked:
        self.count += 1
        made = self.started[f"{name}-{self.count}"] = Forked(self.folder, name, self.count)
        self.loaded.stdin.write(made.order(kind, list(argv)))
        self.loaded.stdin.flush()
        return made

    def start_rigs(self, *names: str) -> dict[str, Forked]:
        return {name: self.start("rig", name, self.address, str(self.spool), name) for name in names}

    def start_campaign(self, file: Path | str, *more: str) -> Forked:
        """Starts the campaign of a file, or of words that begin with --study."""
        argv = (str(file), *more, "--out", str(self.out), "--scheduler", self.address)
        return self.start("campaign", "campaign", *argv)

    def said(self) -> str:
        path = self.folder / "campaign.log"
        return path.read_text() if path.exists() else ""

    def begun(self) -> list[list[str]]:
        """(rig, block, medium, process) of each time that a cell was begun."""
        path = self.spool / "begun.txt"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def close(self) -> None:
        for process in self.started.values():
            process.kill()
        with suppress(ProcessLookupError):
            os.killpg(self.scheduler.pid, signal.SIGKILL)
        self.scheduler.wait()


@pytest.fixture
def fleet(tmp_path, loaded):
    made = LoopbackFleet(tmp_path, loaded)
    yield made
    made.close()


def records(out: Path) -> list[RunRecord]:
    return [RunRecord.open(path.parent) for path in sorted(out.glob("*/run.json"))]


def test_eight_rigs_measure_every_cell_once_though_one_is_killed_and_the_scheduler_started_anew(fleet):
    """The killed rig's cell is measured by another one; what goes on while the scheduler is away is fetched then."""
    file = file_of(fleet.folder, repeats=8)
    rigs = fleet.start_rigs(*RIGS)
    campaign = fleet.start_campaign(file)
    until(lambda: len(fleet.begun()) == 8, campaign)
    assert {rig for rig, *_ in fleet.begun()} == set(RIGS), "every rig has a cell of its own"
    killed = fleet.begun()[0]
    rigs[killed[0]].kill()
    until(lambda: f"{killed[0]} has gone" in fleet.said(), campaign)
    os.killpg(fleet.scheduler.pid, signal.SIGKILL)
    fleet.scheduler.wait()
    until(lambda: "waiting for it" in fleet.said(), campaign)
    (fleet.spool / "go").touch()
    until(lambda: len(list(fleet.spool.glob("*/*/outcome.json"))) >= 7)
    fleet.scheduler = fleet.start_scheduler()
    assert campaign.wait() == 0, fleet.said()

    done = [record for record in records(fleet.out) if record.status == "complete"]
    cells = Counter((record.document["asked"]["block"], record.run.plan_sha256) for record in done)
    assert len(cells) == 16 and set(cells.values()) == {1}
    assert all(record.verify() == [] for record in done), "as the rigs wrote them"
    begun = Counter((block, medium) for _, block, medium, _ in fleet.begun())
    assert begun.pop((killed[1], killed[2])) == 2
    assert set(begun.values()) == {1}, "nothing else was measured again"
    assert not list(fleet.spool.glob("*/*/*/run.json")) or {
        path.parents[2].name for path in fleet.spool.glob("*/*/*/run.json")
    } == {killed[0]}
    of_blocks = {(record.document["asked"]["block"], record.document["asked"]["rig_name"]) for record in done}
    assert len(of_blocks) == 8, "a block stays on one rig"
    runs, _ = read_index(fleet.out)
    assert Counter(run.status for run in runs)["complete"] == 16
    assert not (fleet.out / ".coming").exists()


STUDY = ["s1", "--device", "rpi4", "--simulate", "--scale", "0.001", "--only", "mix=read", "--repeats", "4"]


def test_rigs_share_the_cells_of_a_study_and_a_block_stays_on_one(fleet):
    fleet.start_rigs("rig-1", "rig-2")
    (fleet.spool / "go").touch()
    options = [*STUDY, "--only", "figure=7", "--only", "system=leveldb"]
    campaign, page = fleet.start_campaign("--study", *options), fleet.out / "report.html"
    until(lambda: page.exists() and "this page renews itself" in page.read_text(), campaign)
    assert campaign.wait() == 0, fleet.said()
    assert "renews itself" not in page.read_text()
    done = [record for record in records(fleet.out) if record.status == "complete"]
    cells = Counter((record.document["asked"]["block"], record.run.plan_sha256) for record in done)
    assert len(cells) == 4 * 3 and set(cells.values()) == {1}
    of_blocks = {(record.document["asked"]["block"], record.document["asked"]["rig_name"]) for record in done}
    assert len(of_blocks) == 4
    assert {run.condition["storage"] for run in read_index(fleet.out)[0]} == {"sd", "ssd-usb2", "ssd-usb3"}


@pytest.mark.parametrize("study", [STUDY, ["s2", *STUDY[1:5], "0.01", "--only", "size=0-1KiB"]], ids=["s1", "s2"])
def test_a_rig_plans_a_cell_of_a_study_as_the_campaigns_computer_does(tmp_path, study):
    from opjoule.campaign.campaign import Campaign
    from opjoule.cli.campaign.command import _plans
    from opjoule.cli.campaign.fleet import jobs_of, plan_of_job
    from opjoule.cli.commands import parse

    options = parse(["--study", *study, "--scheduler", "tcp://127.0.0.1:1"]).options
    plans = [plan for plan, _ in _plans(options.file)]
    campaign = Campaign.of(plans, tmp_path / "out", seed=1)
    for job in jobs_of(options.file, campaign)[::5]:
        (tmp_path / "job.json").write_bytes(msgspec.json.encode(job))
        told_to = parse(["campaign", "cell", str(tmp_path), "--name", "rig-1"]).options
        plan = plan_of_job(job, told_to.options, "rig-1")
        assert plan.condition == job.condition and plan.asked["rig_name"] == "rig-1"
        assert "scheduler" not in plan.asked


def test_a_rig_that_comes_back_hands_over_what_it_had_and_a_campaign_killed_goes_on(fleet):
    """The campaign is killed in mid-cell, the rig goes on; the same command fetches its record, measures the rest."""
    file = file_of(fleet.folder, repeats=1)
    rigs = fleet.start_rigs("rig-1")
    campaign = fleet.start_campaign(file)
    until(lambda: len(fleet.begun()) == 1, campaign)
    campaign.kill()
    (fleet.spool / "go").touch()
    until(lambda: list(fleet.spool.glob("*/*/outcome.json")))
    assert fleet.start_campaign(file).wait() == 0, fleet.said()
    assert len(fleet.begun()) == 2
    assert [record.status for record in records(fleet.out)] == ["complete"] * 2
    rigs["rig-1"].kill()
    assert fleet.start_campaign(file).wait() == 0, "nothing is left to measure: no rig is needed"


def test_what_is_wrong_with_a_fleet_is_one_line(fleet):
    """A worker of another version, a rig that is broken, and cells that no rig can measure."""
    file = file_of(fleet.folder, repeats=1, retries=0)
    (fleet.spool / "rig-1.broken").touch()
    (fleet.spool / "go").touch()
    rigs = fleet.start_rigs("rig-1", "rig-old").values()
    until(lambda: all("works for" in rig.log.read_text() for rig in rigs if rig.pid))
    status = fleet.start_campaign(file, "--wait", "3").wait()
    said = fleet.said()
    assert status == 3, said
    assert re.search(r"rig-old has OpJoule 0\.0\.1.*, this computer .*: it gets no cell", said), said
    assert "rig-1 is set aside: the board is gone" in said
    assert "no rig has simulated: 2 cells left to measure" in said
    assert "can measure what is left, 2 cells" in said
    assert "Traceback" not in said


def test_a_record_of_another_cell_fails_the_cell_that_was_to_be_measured(fleet):
    (fleet.spool / "rig-1.astray").touch()
    (fleet.spool / "go").touch()
    fleet.start_rigs("rig-1")
    status = fleet.start_campaign(file_of(fleet.folder, repeats=1, retries=1)).wait()
    assert status != 0 and len(fleet.begun()) == 4, "each of two cells was measured twice"
    assert fleet.said().count("not a record of the cell that was to be measured") == 4
    assert "it left no record of its cell" in fleet.said()


def test_ctrl_c_ends_the_campaign_and_what_its_rigs_measure(fleet):
    file = file_of(fleet.folder, repeats=1)
    fleet.start_rigs("rig-1")
    campaign = fleet.start_campaign(file)
    until(lambda: len(fleet.begun()) == 1, campaign)
    os.kill(campaign.pid, signal.SIGINT)
    assert campaign.wait() == 130
    said = fleet.said().splitlines()
    assert "the same command continues from there" in said[-1], said
    process = int(fleet.begun()[0][3])
    until(lambda: not Path(f"/proc/{process}").exists())


def test_no_scheduler_is_one_line(tmp_path, capsys):
    from opjoule.cli.campaign.command import run_campaign
    from opjoule.cli.commands import parse

    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
    options = parse(
        ["campaign", str(file_of(tmp_path)), "--out", str(tmp_path / "out"), "--scheduler", address]
    ).options
    assert reporting_failures("campaign.py", lambda: run_campaign(options)) == 3
    said = capsys.readouterr().err.splitlines()
    assert f"no scheduler answers at {address}" in said[-1]
    assert "Traceback" not in "".join(said)


@pytest.mark.parametrize("argv", [["scheduler", "--host", "0.0.0.0"], ["worker", "tcp://10.0.0.7:8786", "--simulate"]])
def test_a_port_beyond_this_computer_needs_tls_or_a_word_of_trust(argv, capsys):
    from opjoule.cli.commands import parse

    with pytest.raises(SystemExit) as refused:
        parse(["campaign", *argv])
    assert refused.value.code == 2
    assert "could run programs on this computer" in capsys.readouterr().err
    assert parse(["campaign", *argv, "--trust-network"]).options.trust_network


@pytest.mark.slow
def test_a_lone_rig_loads_no_dask():
    told_modules = subprocess.run(
        [
            sys.executable,
            "-X",
            "importtime",
            "-c",
            "import opjoule.cli.measure.command, opjoule.cli.campaign.command",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(HOST)},
    ).stderr
    assert "opjoule.cli.campaign.command" in told_modules
    assert not re.search(r"\b(distributed|dask)\b", told_modules)


def test_rigs_end_with_the_tests_that_started_them(tmp_path):
    starter = subprocess.Popen(
        [sys.executable, str(HOST / "tests" / "support" / "fleet_rigs.py")], stdin=subprocess.PIPE, text=True
    )
    rig = Forked(tmp_path, "rig-1", 1)
    starter.stdin.write(rig.order("rig", ["tcp://127.0.0.1:9", str(tmp_path), "rig-1"]))
    starter.stdin.flush()
    assert Path(f"/proc/{rig.pid}").exists()
    starter.stdin.close()
    until(lambda: not Path(f"/proc/{rig.pid}").exists())
    assert starter.wait() == 0 and not rig.has_ended
