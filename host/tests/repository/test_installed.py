"""`pip install` from the repository: what the wheel holds, and the commands that it gives on any system."""

import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest
from compared_records import made
from opjoule.base.errors import BadInput
from opjoule.cli import installed
from opjoule.cli.commands import MODULES, commands_of
from opjoule.cli.installed import ANALYSIS, PROGRAMS
from opjoule.cli.installed import OF_A_CLONE as CLONE_COMMANDS
from opjoule.cli.runs.options import ACTIONS
from opjoule.results.runs import open_runs

ROOT = Path(__file__).resolve().parents[3]
OTHER_SYSTEM = ROOT / "host/tests/support/other_system.py"
MADE_BY_MACHINES = (
    *(
        "build/lib/opjoule/removed_since.py",
        "host/opjoule.egg-info/PKG-INFO",
        "host/opjoule/.mypy_cache/a.json",
    ),
    *(
        "host/opjoule/cli/__pycache__/start.cpython-311.pyc",
        "host/opjoule/pages/view/.ruff_cache/x",
        "host/opjoule/a.pyc",
    ),
)
ENERGY = """
import sys
import opjoule
assert opjoule.__file__.startswith(sys.argv[1]), opjoule.__file__
run = opjoule.open_run(sys.argv[2])
print(f"{run.energy(run.phase('run')).energy_j.value:.6f}")
"""
OF_A_CLONE = re.compile(r"host/(runs|compare|view)\.py|host/measure\.py (report|verify|view|import|runs|compare)\b")
"""How a clone starts the commands that the installed program has."""
COMMANDS_COMPARED = ["compare", "--device", "rpi4", "--", "sleep 1", "sleep 2"]
TRACE = "time [s],current [A],voltage [V]\n" + "".join(f"{row / 1000},1.0,5.0\n" for row in range(200))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of a clone in which programs have left their files."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE", "CITATION.cff", ".gitignore"):
        shutil.copy(ROOT / name, source)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("host/opjoule", "studies"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in MADE_BY_MACHINES:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("left here")
    before = sorted(source.rglob("*"))
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", out, source]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    assert sorted(source.rglob("*")) == before, "building it leaves nothing in the clone"
    return next(out.iterdir())


@pytest.fixture(scope="module")
def packages(wheel, tmp_path_factory):
    """A folder with the packages that the wheel states as its dependencies, with theirs, and no others."""
    folder = tmp_path_factory.mktemp("packages")
    with zipfile.ZipFile(wheel) as packed:
        metadata = packed.read(next(name for name in packed.namelist() if name.endswith("/METADATA"))).decode()
    wanted = re.findall(r"^Requires-Dist: ([\w-]+)(?!.*extra ==)", metadata, re.MULTILINE)
    assert len(wanted) >= 5
    known = set()
    while wanted:
        distribution = importlib.metadata.distribution(wanted.pop())
        if distribution.name in known:
            continue
        known.add(distribution.name)
        wanted += [re.match(r"[\w-]+", line)[0] for line in distribution.requires or () if ";" not in line]
        for name in {Path(file).parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            (folder / name).symlink_to(distribution.locate_file(name))
    return folder


@pytest.fixture(scope="module")
def environment(wheel, packages, tmp_path_factory):
    """An environment in which the wheel is installed with its dependencies alone."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False)
    python = place / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    site = next(place.glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(f"{packages}\n")
    return place


@pytest.fixture
def folder(tmp_path):
    """A folder with records and a trace, as a user has it."""
    shutil.copytree(ROOT / "runs/example", tmp_path / "runs/example")
    (tmp_path / "trace.csv").write_text(TRACE)
    for storage, joules in (("sd", 3e-5), ("emmc", 2e-5)):
        for number in range(3):
            made(tmp_path / f"runs/media/{storage}-{number}", joules * (1 + number / 100), storage=storage)
    return tmp_path


def ended(command, folder):
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(command, cwd=folder, env=outside, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package_and_none_that_a_program_has_left(wheel):
    files = [path for path in (ROOT / "host/opjoule").rglob("*") if path.is_file()]
    wanted = {path.relative_to(ROOT / "host").as_posix() for path in files if "__pycache__" not in path.parts}
    studies = {
        path.relative_to(ROOT).as_posix()
        for name in ("study.toml", "winners.csv")
        for path in ROOT.glob(f"studies/*/{name}")
    }
    assert len(wanted) > 250 and len(studies) >= 7
    wanted |= {f"opjoule/beside/{path}" for path in (*studies, "CITATION.cff")}
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
        for path in studies:
            assert packed.read(f"opjoule/beside/{path}") == (ROOT / path).read_bytes()
    assert names == wanted


@pytest.mark.slow
def test_a_run_is_analysed_with_the_installed_package_and_its_dependencies_alone(environment, tmp_path):
    command = [environment / "bin/python", "-c", ENERGY, environment, ROOT / "runs/example"]
    analysed = ended(command, tmp_path)
    assert (analysed.returncode, analysed.stdout) == (0, "18.242732\n"), analysed.stderr


COMMAND_LINES = {
    "runs list": "µJ above idle per operation",
    "runs show runs/example": "LevelDB on rpi4",
    "runs note runs/example warm": "runs/example: warm",
    "runs verify runs/example": "as the run left them",
    "runs export runs/example --csv csv --openmetrics prom --perfetto trace": "power-SIMULATED.csv",
    "runs prune runs --simulated": "would delete",
    "compare runs/media --by storage --html page.html --csv compared.csv": "emmc",
    "report runs/example": "runs/example/report.html",
    "verify runs/example": "as the run left them",
    "import trace.csv --out runs/bench --sensor ina219": "200 samples",
}
"""Command lines, each with a part of its answer."""
REFUSED = {
    "runs conclusions runs": "studies with conclusions are s1, s1-dd, s2, s3, s4, s5",
    "runs open trace.csv": "is not a bundle of 'opjoule runs'",
}


@pytest.mark.slow
@pytest.mark.parametrize("system", ["this", "other"])
def test_each_command_of_the_analysis_works_where_it_is_installed(environment, folder, system):
    """Here, and without the modules and functions that Windows' Python lacks."""
    program = [environment / "bin/opjoule"]
    if system == "other":
        program = [environment / "bin/python", "-X", "warn_default_encoding", OTHER_SYSTEM]
    for line, said in (COMMAND_LINES | REFUSED).items():
        answer = ended([*program, *line.split()], folder)
        text = answer.stdout + answer.stderr
        assert "Traceback" not in text and not OF_A_CLONE.search(text), f"{line}: {text}"
        assert said in text and answer.returncode == (2 if line in REFUSED else 0), f"{line}: {text}"
    page = (folder / "page.html").read_text()
    assert "opjoule compare runs/media --by storage" in page and not OF_A_CLONE.search(page)
    assert (folder / "runs/example/report.html").stat().st_size > 100_000
    assert json.loads((folder / "runs/bench/run.json").read_text())["status"] == "complete"


@pytest.mark.slow
def test_the_python_interface_works_without_posix(environment, folder):
    command = [environment / "bin/python", "-X", "warn_default_encoding", OTHER_SYSTEM, "-c", ENERGY]
    analysed = ended([*command, environment, "runs/example"], folder)
    assert (analysed.returncode, analysed.stdout) == (0, "18.242732\n"), analysed.stderr


@pytest.mark.slow
@pytest.mark.parametrize("system", ["this", "other"])
def test_the_installed_program_shows_runs_in_a_browser(environment, folder, system):
    start = [environment / "bin/opjoule"] if system == "this" else [environment / "bin/python", OTHER_SYSTEM]
    with subprocess.Popen([*start, "view"], cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        giving_up = threading.Timer(60, server.kill)
        giving_up.start()
        try:
            address = server.stdout.readline().strip()
            with urllib.request.urlopen(address, timeout=30) as page:
                assert "<title>" in page.read().decode()
        finally:
            giving_up.cancel()
            server.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["runs figures runs", "runs bundle runs --out a.zip", "compare runs/media --by storage --plot a.svg"]
)
def test_a_command_that_lacks_a_library_names_the_extra(environment, folder, line):
    answer = ended([environment / "bin/opjoule", *line.split()], folder)
    [shown] = answer.stderr.splitlines()
    assert shown.startswith("opjoule: ") and "pip install matplotlib" in shown and "[figures]" in shown
    assert answer.returncode == 1


@pytest.mark.parametrize("use", [lambda runs: runs.power, lambda runs: runs.sql("select 1")])
def test_every_use_of_duckdb_names_the_extra(monkeypatch, use):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(BadInput, match=r"pip install duckdb.* \[many\]"):
        use(open_runs(ROOT / "runs/example"))


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["rep"], {"report"}),
        (["me"], {"measure"}),
        (["measure", "--reco"], {"--records"}),
        (["calibrate", "ch"], {"check"}),
        (["calibrate", "check", "--reference-m"], {"--reference-meter"}),
        (["campaign", "worker", "--ri"], {"--rig"}),
        (["runs", ""], {action.name.split()[1] for action in ACTIONS}),
        (["runs", "list", "--s"], {"--status", "--storage", "--sort"}),
        (["report", ""], set()),
        (["compare", "runs", "--ht"], {"--html"}),
    ],
)
def test_bash_completes_commands_actions_and_options(monkeypatch, capsys, typed, completed):
    monkeypatch.setattr(sys, "argv", ["opjoule", "completion"])
    assert installed.main() == 0
    words = shlex.join(["opjoule", *typed])
    script = f"{capsys.readouterr().out}\nCOMP_WORDS=({words}) COMP_CWORD={len(typed)}\n_opjoule\n"
    answer = subprocess.run(
        ["bash", "-c", f'{script}printf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stderr == "" and set(answer.stdout.split()) == completed


def test_the_manual_page_has_every_command_and_no_line_that_steers_by_accident(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["opjoule", "man"])
    assert installed.main() == 0
    page = capsys.readouterr().out
    steering = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert steering == {".TH", ".SH", ".TP", ".B", ".I", ".nf", ".fi"}
    wanted = ["measure", *(name for word in MODULES for name in commands_of(word) if name != "runs")]
    assert all(f".SH opjoule {name}\n" in page for name in wanted)
    assert "\\-\\-openmetrics" in page


@pytest.mark.slow
def test_many_runs_without_duckdb_are_refused_with_the_extras_name(environment, folder):
    code = "import opjoule\ntry:\n    opjoule.open_runs('runs').power\nexcept Exception as error:\n    print(error)"
    answer = ended([environment / "bin/python", "-c", code], folder)
    assert "pip install duckdb" in answer.stdout and answer.stdout.endswith(" [many]\n")


def test_every_command_and_program_is_a_sub_command():
    assert {*MODULES} | {"measure", "validate"} == set(PROGRAMS)


def run_installed(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["opjoule", *words])
    return installed.main()


@pytest.mark.parametrize("name", [*CLONE_COMMANDS, "compare"])
def test_what_needs_a_clone_says_so_in_one_line(monkeypatch, capsys, tmp_path, name):
    monkeypatch.setattr(installed, "IS_CLONE", False)
    monkeypatch.delenv("OPJOULE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    words = COMMANDS_COMPARED if name == "compare" else [name]
    for home, remedy in ((None, "or set OPJOULE_HOME to its folder"), (str(tmp_path), "is none")):
        if home:
            monkeypatch.setenv("OPJOULE_HOME", home)
        assert run_installed(monkeypatch, *words) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith(f"opjoule: {name} needs a clone") and line.endswith(remedy)


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--db", "leveldb"], "write opjoule measure --db"), (["runz"], "did you mean 'runs'"), (["measur"], "'measure'")],
)
def test_a_word_that_is_no_command_is_answered_with_the_right_one(monkeypatch, capsys, words, said):
    assert run_installed(monkeypatch, *words) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize(
    ("words", "carried_out"),
    [
        (["measure", "--db", "leveldb"], ["measure.py", "--db", "leveldb"]),
        (["doctor"], ["measure.py", "doctor"]),
        (["campaign", "worker", "a:1"], ["measure.py", "campaign", "worker", "a:1"]),
        (["validate", "--trials", "2"], ["validate.py", "--trials", "2"]),
        (COMMANDS_COMPARED, ["measure.py", *COMMANDS_COMPARED]),
    ],
)
@pytest.mark.parametrize("found", ["by its name", "from a folder in it"])
def test_a_clone_carries_out_what_the_package_cannot(monkeypatch, tmp_path, words, carried_out, found):
    started = []
    monkeypatch.setattr(os, "execv", lambda script, argv: started.append((script, argv)) or sys.exit(0))
    monkeypatch.delenv("OPJOULE_HOME", raising=False)
    monkeypatch.chdir(tmp_path if found == "by its name" else ROOT / "docs/how-to")
    if found == "by its name":
        monkeypatch.setenv("OPJOULE_HOME", str(ROOT))
    with pytest.raises(SystemExit):
        run_installed(monkeypatch, *words)
    [(script, argv)] = started
    assert script == ROOT / "host" / carried_out[0] and argv == [str(script), *carried_out[1:]]


@pytest.mark.slow
def test_the_installed_program_measures_by_a_clone(environment, tmp_path):
    program = [environment / "bin/opjoule", "measure", "--help"]
    assert ended(program, tmp_path).returncode == 2
    answer = ended(program, ROOT / "docs")
    assert answer.returncode == 0 and answer.stdout.startswith("usage: measure.py"), answer.stderr


@pytest.mark.slow
def test_its_help_names_commands_as_they_are_started_there(environment, folder):
    program = environment / "bin/opjoule"
    general = ended([program], folder)
    assert general.returncode == 0 and all(f"\n  {name} " in general.stdout for name in PROGRAMS)
    for name in (*ANALYSIS, *(action.name for action in ACTIONS)):
        answer = ended([program, *name.split(), "--help"], folder)
        assert answer.stdout.startswith(f"usage: opjoule {name} "), answer.stdout + answer.stderr
        assert not OF_A_CLONE.search(answer.stdout) and ".py " not in answer.stdout, name
