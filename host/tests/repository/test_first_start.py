"""Before there is .venv, a misspelt name is refused, --help says how to begin, and nothing is installed."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import first_start
import pytest
from opjoule.base.scripts import Needs
from opjoule.boards.databases import known_databases
from opjoule.boards.profiles import known_profiles
from opjoule.cli import commands
from opjoule.cli.campaign.compared_commands import COMPARE_COMMANDS
from opjoule.cli.campaign.study_cells import STUDY
from opjoule.cli.commands import MODULES, commands_of
from opjoule.cli.measure.options import MEASURE

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The files that are there before any set-up."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "host", folder / "host", ignore=shutil.ignore_patterns("__pycache__", "tests", "fonts"))
    for study in (ROOT / "studies").glob("*/study.toml"):
        (folder / "studies" / study.parent.name).mkdir(parents=True)
        shutil.copy(study, folder / "studies" / study.parent.name)
    return folder


def started(clone, *words):
    return subprocess.run([clone / "host/measure.py", *words], capture_output=True, text=True, check=False, timeout=120)


def test_what_the_launcher_loads_needs_no_package():
    code = "import sys; sys.path.insert(0, sys.argv[1]); import bootstrap, environment, first_start"
    subprocess.run([sys.executable, "-S", "-c", code, str(ROOT / "host")], check=True, timeout=60)


def test_the_names_are_those_of_the_declarations():
    commands, options = first_start.declared()
    assert commands == {*MODULES}
    parsers = [command.parser() for word in MODULES for command in commands_of(word).values()]
    parsers += [command.parser() for command in (MEASURE, STUDY, COMPARE_COMMANDS)]
    declared = {word for parser in parsers for action in parser._actions for word in action.option_strings}
    assert {word for word in options if word.startswith("--")} == {word for word in declared if word.startswith("--")}
    assert first_start.file_names("boards/databases") == sorted(database.name for database in known_databases())
    assert first_start.file_names("boards/profiles") == sorted(known_profiles())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--db leveldbb --device rpi4 --simulate", "measure.py: unknown --db 'leveldbb': did you mean"),
        ("--db=leveldb --device=rpi44", "measure.py: unknown --device 'rpi44': did you mean 'rpi4'?"),
        ("--db leveldb --device rpi4 --simulat", "measure.py: unrecognized arguments: --simulat; did you mean"),
        ("command --device rpi44 -- true", "measure.py: unknown --device 'rpi44': did you mean 'rpi4'?"),
        ("--study s99 --device rpi4", "measure.py: unknown --study 's99': known are s1,"),
        ("recrod --meter x", "measure.py: unknown command 'recrod': "),
        ("compare --befor x", "compare.py: unrecognized arguments: --befor; did you mean '--before'?"),
    ],
)
def test_a_misspelt_name_is_refused_before_anything_is_installed(clone, words, said):
    ended = started(clone, *words.split())
    assert ended.returncode == 2 and ended.stdout == ""
    [line] = ended.stderr.splitlines()
    assert line.startswith(said)
    assert not (clone / ".venv").exists() and not (clone / "build").exists()


@pytest.mark.parametrize("words", [["--help"], ["help"], ["campaign", "-h"], ["--db", "leveldb", "--help"]])
def test_help_says_how_to_begin(clone, words):
    ended = started(clone, *words)
    assert ended.returncode == 0 and ended.stderr == ""
    assert ended.stdout.startswith("usage: measure.py --db NAME --device NAME [options]")
    assert "leveldb" in ended.stdout and "rpi4" in ended.stdout and "campaign" in ended.stdout
    assert "host/measure.py --db leveldb --device rpi4 --simulate" in ended.stdout
    assert not (clone / ".venv").exists()


def test_without_a_word_it_says_how_to_begin_as_an_error(clone):
    ended = started(clone)
    assert ended.returncode == 2 and ended.stdout == ""
    assert ended.stderr == started(clone, "--help").stdout
    assert not (clone / ".venv").exists()


@pytest.mark.parametrize("started_in", ["clone", "link"])
def test_an_unfilled_environment_is_filled_by_the_python_that_made_it(clone, tmp_path, started_in):
    """The Python of .venv starts first, and cannot make its own folder anew."""
    shutil.copytree(clone, tmp_path / "clone")
    (tmp_path / "link").symlink_to(tmp_path / "clone")
    host = tmp_path / "clone/host"
    (host / "bootstrap.py").write_text("import sys\ndef set_up_or_end(needs, program): sys.exit(sys.prefix)\n")
    venv.create(tmp_path / "clone/.venv", symlinks=True, with_pip=False)
    ended = started(tmp_path / started_in, "init")
    assert ended.returncode == 1
    assert ended.stderr.strip() == sys.base_prefix


@pytest.mark.parametrize(
    "words",
    [
        "--db leveldb --device rpi4 --simulate -p recordcount=5",
        "command --device rpi4 -- program --its-own-option",
        "--study s1 --device rpi3,rpi4 --no-signature",
        "restore --device my-board",
        "campaign campaigns/three-engines.toml --dry-run",
    ],
)
def test_what_may_be_right_is_left_to_the_program_in_the_environment(words):
    first_start.check(words.split())


@pytest.mark.parametrize(
    ("words", "needs"),
    [
        ("--db leveldb --device rpi4 --simulate", Needs(loader=True, engines=frozenset({"leveldb"}), simulate=True)),
        (
            "--db=sqlite --device generic-linux --simulate",
            Needs(loader=True, engines=frozenset({"sqlite"}), simulate=True),
        ),
        ("--db leveldb --device rpi4 --simulate --dry-run", Needs(loader=True, engines=frozenset({"leveldb"}))),
        ("--db mongodb --device rpi4 --simulate", Needs()),
        ("command --device rpi4 --simulate -- prog --db leveldb", Needs()),
        ("init", Needs()),
    ],
)
def test_what_a_measurement_needs_in_any_case_is_made_beside_the_environment(words, needs):
    assert first_start.sure_needs(words.split()) == needs
    if needs.loader:
        parsed = commands.parse(words.split()).needs
        assert parsed == needs
