"""Wrong inputs of every kind: one line, the right exit status, no traceback, nothing half-written.

A table: each subcommand and option, mutated rig.toml, properties, CSV files and record files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opjoule.cli.commands import main
from opjoule.cli.start import main as start
from opjoule.runs.record.json_file import write_json
from opjoule.runs.record.run_record import RunRecord, _digest
from raw_record import finished_record

ROOT = Path(__file__).resolve().parents[3]
LOADER = ROOT / "build/loader/loader"
BAD_INPUT, RIG, RECORD = 2, 3, 4
DRY = ["--db", "leveldb", "--device", "rpi4", "--dry-run"]
SIMULATED = [*DRY, "--simulate"]


def complaint(capsys, argv: list[str], status: int) -> str:
    """The one line that a command line brings, with this exit status."""
    capsys.readouterr()
    try:
        exit_code = main(argv)
    except SystemExit as ended:
        exit_code = ended.code
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if line.strip()]
    assert "Traceback" not in said.err, said.err
    assert len(lines) == 1, said.err or said.out
    assert lines[0].startswith("measure.py: ") and len(lines[0]) > 25
    assert exit_code == status, lines[0]
    return lines[0]


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


NUMBERS = ("0", "-1", "1.5", "many", "", "1e-3", "1e99", "99999999999999999999x")
SECONDS = ("-1", "nan", "inf", "long", "", "1e9", "86401")
MEASURE: list[list[str]] = [
    *([*SIMULATED, option, value] for option in ("--records", "--operations", "--threads") for value in NUMBERS),
    *([*SIMULATED, option, value] for option in ("--value-size", "--repeats") for value in NUMBERS),
    *([*SIMULATED, option, value] for option in ("--idle", "--settle-limit") for value in SECONDS),
    *([*SIMULATED, "--seed", value] for value in ("x", "1.5", "")),
    *([*SIMULATED, "--again", value] for value in ("-1", "10", "x")),
    *([*SIMULATED, "--generator", value] for value in ("", "jdbc", "YCSB")),
    *([*SIMULATED, "--distribution", value] for value in ("zipfain", "[red]", "", " ", "a\nb") if value),
    *([*SIMULATED, "--workload", value] for value in ("zz", "/dev/zero", "/", "no/such", "\x1b[31m", "[/bold]")),
    *([*SIMULATED, "-p", value] for value in ("", "novalue", "=1", " = ", "recordcount=-5", "operationcount=many")),
    *([*SIMULATED, "--storage", value] for value in ("floppy", "sd,sd", "sd,", ",", "[b]")),
    *([*SIMULATED, option] for option in ("--records", "--out", "--db", "--nothing", "--simul", "-x", "extra")),
    [*SIMULATED, "--meter", "rapl"],
    [*SIMULATED, "--sync", "gpio:GPIO17"],
    [*SIMULATED, "--state", "journal=off"],
    [*SIMULATED, "--rig", "missing.toml"],
    [*SIMULATED, "--disturb", "dancing"],
    [*SIMULATED, "--out", ""],
    [*SIMULATED, "--out", "  "],
    *(["--db", value, "--device", "rpi4", "--simulate", "--dry-run"] for value in ("", "leveldbb", "[red]", "a\nb")),
    *(["--db", "leveldb", "--device", value, "--simulate", "--dry-run"] for value in ("", "rpi44", "[red]")),
    ["--db", "leveldb"],
    ["--device", "rpi4"],
    [],
]
COMMANDS: list[list[str]] = [
    *([word] for word in ("recrod", "reports", "measure", "halp", "", "-", "[red]", "a\nb")),
    *([command] for command in ("record", "import", "report", "verify", "restore", "virtual-board")),
    *([command, "--nothing"] for command in ("record", "import", "report", "verify", "restore", "init", "doctor")),
    ["record", "--meter", "rapl"],
    ["record", "--meter", "rapl", "--out", ""],
    *(["record", "--meter", "rapl", "--out", "{new}", "--seconds", value] for value in SECONDS),
    *(
        ["record", "--meter", name, "--out", "{new}"]
        for name in (
            *(
                "",
                "x",
                "serial",
                "serial:",
                "tcp:1",
                "monsoon:voltage=x",
                "monsoon:voltage=5,limit",
                "ppk2",
                "rapl:a,b",
            ),
            *(
                "monsoon:volts=5",
                "monsoon:model=xx",
                "serial:/dev/null,adc=99",
                "serial:/dev/null,mode=fast",
                "[red]",
            ),
        )
    ),
    ["record", "--meter", "rapl", "--out", "{full}"],
    ["record", "--meter", "rapl", "--out", "{file}"],
    ["record", "--meter", "rapl", "--out", "{file}/below"],
    ["import", "{file}", "--out", ""],
    ["import", "", "--out", "{new}"],
    ["init", "--rig", ""],
    ["init", "--rig", "{new}/no/rig.toml"],
    ["init", "--rig", "{full}"],
    ["init", "--rig", "{file}/rig.toml"],
    ["restore", "--device", "rpi4", "--rig", "{new}"],
    ["restore", "--device", "rpi4", "--rig", "{full}"],
    ["virtual-board", "fly"],
    ["doctor", "--rig", ""],
]


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A folder to stand in, with a file, a folder that is not empty, and a name that is free."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("the user's")
    return {"new": str(tmp_path / "new"), "full": str(tmp_path / "full"), "file": str(tmp_path / "file")}


def test_there_are_300():
    assert sum(map(len, (MEASURE, COMMANDS, RIGS, CSVS, PROPERTIES, RUNS, RESULTS, PARQUETS))) >= 300


@pytest.mark.parametrize("argv", MEASURE, ids=lambda argv: " ".join(argv)[-40:])
def test_a_wrong_measurement_is_one_line(places, tmp_path, capsys, argv):
    before = files(tmp_path)
    complaint(capsys, argv, BAD_INPUT)
    assert files(tmp_path) == before


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: " ".join(argv)[-40:])
def test_a_wrong_command_is_one_line(places, tmp_path, capsys, argv):
    before = files(tmp_path)
    complaint(capsys, [word.format(**places) if "{" in word else word for word in argv], BAD_INPUT)
    assert files(tmp_path) == before and not (tmp_path / "new").exists()


def rig(device: str = "", meter: str = 'port = "serial:/dev/null"', storage: str = "") -> str:
    tables = f"[meter]\n{meter}\n[device.rpi4]\n{device}\n"
    return f"{tables}[device.rpi4.storage]\n{storage}\n" if storage else tables


RIGS: dict[str, str | bytes] = {
    "empty": "",
    "no TOML": "[meter",
    "binary": bytes(range(256)),
    "UTF-16": "[meter]".encode("utf-16"),
    "meter a number": "meter = 5",
    "meter without port": "[meter]\n",
    "port a number": rig(meter="port = 5"),
    "port a list": rig(meter='port = ["a"]'),
    "port with NUL": rig(meter='port = "serial:\\u0000"'),
    "port with a line end": rig(meter='port = "serial:a\\nb"'),
    "device a text": '[meter]\nport = "rapl"\ndevice = "x"',
    "device a list": 'device = [1]\n[meter]\nport = "rapl"',
    "board a number": '[meter]\nport = "rapl"\n[device]\nrpi4 = 4',
    "no such board": '[meter]\nport = "rapl"\n[device.rpi3]\n',
    "unknown key": rig("conection = 'local'"),
    "connection a number": rig("connection = 1"),
    "connection unknown": rig("connection = 'telnet:pi'"),
    "ssh options a text": rig("ssh_options = '-p 22'"),
    "ssh options numbers": rig("ssh_options = [22]"),
    "mongod options a number": rig("mongod_options = 5"),
    "sync a number": rig("sync = 17"),
    "sync unknown": rig("sync = 'pin 17'"),
    "sync empty": rig("sync = ''"),
    "cpufreq a list": rig("cpufreq = []"),
    "state a text": rig("state = 'fast'"),
    "state unknown key": rig() + "[device.rpi4.state]\ncoffee = 1\n",
    "state memory a text": rig() + "[device.rpi4.state]\nmemory_mb = 'all'\n",
    "state memory negative": rig() + "[device.rpi4.state]\nmemory_mb = -1\n",
    "storage a text": rig("storage = 'sd'"),
    "medium a number": rig(storage="sd = 5"),
    "medium relative": rig(storage="sd = 'here'"),
    "medium empty": rig(storage="sd = ''"),
    "medium unknown key": rig(storage="sd = { place = '/mnt' }"),
    "medium device": rig(storage="sd = { path = '/mnt', device = 'sda' }"),
    "medium expendable": rig(storage="sd = { path = '/mnt', expendable = 'yes' }"),
    "medium expendable without device": rig(storage="sd = { path = '/mnt', expendable = true }"),
    "deep list": "x = " + "[" * 5000 + "]" * 5000,
    "deep tables": "[" + ".".join(["a"] * 5000) + "]",
    "deep inline": "x = " + "{a = " * 3000 + "1" + "}" * 3000,
    "huge number": "x = " + "9" * 10_000,
    "huge file": "# " + "x" * (2 << 20),
    "key twice": rig("sync = 'none'\nsync = 'none'"),
    "table twice": rig() + "[meter]\nport = 'x'\n",
    "control character": rig(storage="sd = '/mnt/\x07'"),
    "key with a control character": rig(storage='"s\\u0000d" = "/mnt"'),
}


@pytest.mark.parametrize("name", RIGS)
def test_a_wrong_rig_file_is_one_line_that_names_it(places, tmp_path, capsys, name):
    content = RIGS[name]
    path = tmp_path / "rig.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = complaint(capsys, [*DRY, "--rig", str(path), "--out", places["new"]], BAD_INPUT)
    assert "rig.toml" in said and not Path(places["new"]).exists()


@pytest.mark.parametrize("kind", ["directory", "fifo", "device"])
def test_a_rig_file_that_is_no_file_does_not_hang(places, tmp_path, capsys, kind):
    path = tmp_path / "rig"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    assert str(path) in complaint(capsys, [*DRY, "--rig", str(path)], BAD_INPUT)


HEAD = "time (s),current (mA),voltage (V)\n"
ROWS = "".join(f"{number / 1000},{500},{5}\n" for number in range(20))
CSVS: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "no header"),
    "header alone": (HEAD, "no header"),
    "one row": (HEAD + "0,1,5\n", "fewer than two"),
    "binary": (bytes(range(256)) * 40, "no header"),
    "no unit": ("time,current\n0,1\n1,1\n", "unit of time"),
    "no current": ("time (s),voltage (V)\n0,5\n1,5\n", "current or power"),
    "one row with decimal commas": (HEAD.replace(",", ";") + "0,5;1;5\n", "fewer than two"),
    "time stands": (HEAD + "0,1,5\n0,1,5\n", "does not increase"),
    "time goes back": (HEAD + "1,1,5\n0,1,5\n", "does not increase"),
    "far too long": (
        HEAD + "0,1,5\n1e-9,1,5\n2e-9,1,5\n3e-9,1,5\n1e9,1,5\n",
        "it spans 1000000000 s; the limit is 1000000000 s",
    ),
    "negative voltage": (HEAD + ROWS + "0.03,500,-5\n", "line 22: voltage of -5 V"),
    "absurd voltage": (HEAD + ROWS + "0.03,500,5100\n", "line 22: voltage of 5100 V"),
    "absurd current": (HEAD + ROWS + "0.03,5e9,5\n", "line 22: current"),
    "endless line": (HEAD + "1," * 100_000, "longer than"),
    "all empty": (HEAD + "0,,5\n1,,5\n2,,5\n", "fewer than two"),
    "no voltage": ("time (s),current (mA)\n0,1\n1,1\n2,1\n", "--voltage"),
}


@pytest.mark.parametrize("name", CSVS)
def test_a_wrong_csv_file_is_one_line_and_leaves_no_record(places, tmp_path, capsys, name):
    content, expected = CSVS[name]
    path = tmp_path / "trace.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = complaint(capsys, ["import", str(path), "--out", places["new"]], BAD_INPUT)
    assert expected in said and "trace.csv" in said
    assert not Path(places["new"]).exists()


@pytest.mark.parametrize("voltage", ["nan", "inf", "-5", "0", "5,1", "1e9", "", "five"])
@pytest.mark.parametrize("option", ["--voltage"])
def test_a_voltage_that_is_none_is_refused(places, capsys, option, voltage):
    assert option in complaint(
        capsys, ["import", places["file"], "--out", places["new"], f"{option}={voltage}"], BAD_INPUT
    )


PROPERTIES = (
    *("recordcount=-1", "recordcount=x", "operationcount=1e3", "readproportion=-1"),
    *("readproportion=x", "requestdistribution=zipf", "fieldlength=-1", "fieldlength=x", "fieldcount=0"),
    *(
        "scanlengthdistribution=x",
        "maxscanlength=0",
        "insertorder=x",
        "threadcount=x",
        "target=-1",
        "target=x",
    ),
    *("readproprotion=0.5", "fieldlengthdistribution=x", "zeropadding=-1", "maxexecutiontime=x"),
    *("leveldb.cache_size=x", "leveldb.nothing=1", "recordcount=99999999999999999999999", "=1"),
)


@pytest.mark.parametrize("setting", PROPERTIES)
def test_a_wrong_property_is_one_line_before_anything_is_run(places, tmp_path, setting):
    """The loader checks them, engine properties too, before a measurement touches anything."""
    workload = ROOT / "ycsb-workloads/workloada.properties"
    command = [LOADER, "run", "--db", "leveldb", "--path", tmp_path / "new", "--workload", workload]
    ended = subprocess.run(
        [*command, "-p", setting, "--check"], capture_output=True, text=True, timeout=20, check=False
    )
    lines = [line for line in ended.stderr.splitlines() if line.strip()]
    assert ended.returncode == BAD_INPUT and len(lines) == 1, ended.stderr
    assert not (tmp_path / "new").exists()


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    made = tmp_path_factory.mktemp("sound") / "record"
    finished_record(made)
    return made


@pytest.fixture
def record(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "record")
    return tmp_path / "record"


def rewritten(record: Path, change: Any) -> None:
    """run.json with a change, under a checksum that fits: a program wrote it, but not this one."""
    opened = RunRecord.open(record)
    change(opened.document)
    opened.document["digest"] = _digest(opened.document)
    write_json(record / "run.json", opened.document)


RUNS: dict[str, Any] = {
    "phases a text": lambda run: run.update(phases="none"),
    "phases numbers": lambda run: run.update(phases=[1, 2]),
    "phase without a start": lambda run: run["phases"][0].pop("start_board_ns"),
    "phase that starts with a text": lambda run: run["phases"][0].update(start_board_ns="x"),
    "phase beyond 64 bits": lambda run: run["phases"][0].update(start_board_ns=10**30),
    "clock maps a list": lambda run: run.update(clock_maps=[]),
    "notices a text": lambda run: run.update(notices="bad"),
    "found a number": lambda run: run.update(found=1),
    "asked a text": lambda run: run.update(asked="all"),
    "simulated a text": lambda run: run.update(simulated="no"),
    "status unknown": lambda run: run.update(status="fine"),
    "checksums a list": lambda run: run.update(checksums=[]),
    "loader a text": lambda run: run.update(loader="x"),
    "sensor a list": lambda run: run.update(sensor=[]),
    "newer": lambda run: run["schema"].update(version=99),
    "another kind": lambda run: run["schema"].update(name="media"),
    "version a text": lambda run: run["schema"].update(version="x"),
    "no schema": lambda run: run.pop("schema"),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_json_that_no_run_writes_is_one_line(record, capsys, name):
    rewritten(record, RUNS[name])
    before = {name: size for name, size in files(record).items() if not name.endswith("report.html")}
    complaint(capsys, ["report", str(record)], RECORD)
    assert {name: size for name, size in files(record).items() if not name.endswith("report.html")} == before


RESULTS: dict[str, Any] = {
    "a list": [],
    "a number": 5,
    "no schema": {},
    "newer": {"schema": {"name": "result", "version": 99}},
    "another kind": {"schema": {"name": "run", "version": 1}},
    "version infinite": '{"schema": {"name": "result", "version": 1e999}}',
    "deep": "[" * 100_000,
    "not JSON": "{",
    "binary": "\x00\x01",
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_damaged_result_is_reported_and_no_figure_is_printed(record, capsys, name):
    content = RESULTS[name]
    path = record / "result.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    opened = RunRecord.open(record)
    opened.finish(opened.status)
    capsys.readouterr()
    status = main(["report", str(record)])
    said = capsys.readouterr()
    assert "Traceback" not in said.err and "±" not in said.out
    assert status == (RECORD if name == "newer" else 0) and "result.json" in (said.out + said.err).replace("\n", "")


@pytest.mark.parametrize("number", ["text", [1], True, 1e308 * 10, {"a": 1}], ids=str)
@pytest.mark.parametrize("key", ["energy_j", "power_w", "idle_power_w", "duration_s"])
def test_a_number_that_is_none_takes_the_figures_with_it(record, capsys, key, number):
    result = json.loads((record / "result.json").read_text())
    result[key]["value"] = number
    (record / "result.json").write_text(json.dumps(result))
    opened = RunRecord.open(record)
    opened.finish(opened.status)
    capsys.readouterr()
    assert main(["report", str(record)]) == 0
    said = capsys.readouterr()
    assert "±" not in said.out
    assert "result.jsoniscorrupt" in "".join(said.out.split())


def renamed(table: pa.Table) -> pa.Table:
    return table.rename_columns(["x", *table.column_names[1:]])


PARQUETS: dict[str, Any] = {
    f"{name}: {how}": (name, change)
    for name in ("power", "gaps", "operations", "events", "system")
    for how, change in {
        "a column's name": renamed,
        "a column of texts": lambda table: table.set_column(0, table.column_names[0], pa.array(["x"] * len(table))),
        "a column less": lambda table: table.drop_columns([table.column_names[-1]]),
        "no schema version": lambda table: table.replace_schema_metadata(None),
        "another kind": lambda table: table.replace_schema_metadata({"opjoule.schema": '{"name": "x", "version": 1}'}),
    }.items()
}


@pytest.mark.parametrize("name", PARQUETS)
def test_a_parquet_file_that_no_run_writes_is_named(record, capsys, name):
    which, change = PARQUETS[name]
    path = record / f"{which}.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    opened = RunRecord.open(record)
    opened.finish(opened.status)
    capsys.readouterr()
    status = main(["report", str(record)])
    said = capsys.readouterr()
    assert "Traceback" not in said.err and status in (0, RECORD)
    page = (record / "report.html").read_text() if (record / "report.html").exists() else ""
    assert f"{which}.parquet" in page + said.err


def test_a_page_that_cannot_be_written_is_one_line_with_its_path(record, capsys):
    (record / "report.html").mkdir()
    assert "report.html" in complaint(capsys, ["report", str(record)], 1)


def test_a_full_disk_is_one_line_with_path_and_remedy(record, capsys, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "ENOSPC")

    monkeypatch.setattr("os.fsync", full)
    said = complaint(capsys, ["report", str(record)], 1)
    assert f"{record}/report.html: ENOSPC: " in said


def test_a_name_that_is_no_utf8_and_brackets_are_printed_as_they_are(tmp_path, capsys):
    for name in (b"caf\xe9", b"[red]runs[/]"):
        folder = tmp_path / os.fsdecode(name)
        write_json(tmp_path / "x.json", {"name": str(folder)})
        assert json.loads((tmp_path / "x.json").read_text())["name"] == str(folder)
        assert start(["report", str(folder)]) == RECORD
        assert "is not a run record" in capsys.readouterr().err
