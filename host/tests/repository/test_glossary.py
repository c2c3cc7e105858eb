"""The glossary names what there is, and public names keep to its meanings."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "host" / "opjoule"
MODULES = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "studies").rglob("*.py")])
PAGE = ROOT / "docs" / "reference" / "glossary.md"
SECOND = "## Words with a second meaning"
PLACE = re.compile(r"((?:`\w+`(?:, )?)+) in `([\w./-]+)`|`([\w-]+(?:/[\w.-]+)+)`")
"""`Name`, `Name` in `file`, or a `file` alone."""
TERMS = (
    "run, row, entry, meter controller, chip, medium, settle, null engine, study, role, phase, mark, workload, probe, "
    "loader, plan, step, baseline, drain, repeat, figure, quantity, record, session, state, board, harness"
)
HOMES = {
    "session": ["boards/sessions.py"],
    "harness": ["runs/evaluation/repeat_energy.py", "runs/studies/ycsb.py"],
    "record": [
        "runs/record/",
        "cli/record.py",
        "cli/record_commands.py",
        "base/errors.py",
        "pages/report/provenance.py",
    ],
    "journal": ["energy/trace/journal.py", "boards/board_state.py"],
    "state": ["boards/"],
    "board": [
        *(
            "boards/",
            "bench/simulation/",
            "cli/commands.py",
            "cli/rig_commands.py",
            "cli/boards.py",
            "energy/operations/board_files.py",
        ),
        *(
            "runs/evaluation/evidence.py",
            "runs/measuring/supply_path.py",
            "results/recorded.py",
        ),
    ],
}
"""Word -> where public names of the host may bear it, in the glossary's meaning."""
CPP_TYPE = re.compile(r"(?m)^ *(?:class|struct|enum class) (\w+)(?: final)? *[:{]")
CPP_HOMES = {
    "board": ["loader-cpp/board/", "loader-cpp/tests/"],
    **dict.fromkeys(("session", "harness", "record", "journal", "state"), ()),
}
"""The same for types of loader, probe, firmware and simulator."""


def rows(text):
    """(term, meaning, where) of every row of the page's tables."""
    cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [tuple(row) for row in cells if row[0] not in ("term", "word") and not row[0].startswith("---")]


def places(where):
    """(names, file) of one cell; files without a folder above them are those of the package."""
    pairs = []
    for names, inside, alone in PLACE.findall(where):
        file = inside or alone
        top = ROOT if file.split("/")[0] in ("loader-cpp", "firmware", "host") else PACKAGE
        pairs.append((re.findall(r"`(\w+)`", names), top / file))
    return pairs


def public_names(source):
    """(name, its kind) of the public classes and functions of a module, and of what is in its classes."""
    return [
        (node.name, type(node))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    ]


def inside(file):
    """Path from the package, or of a job from the repository's root."""
    return file.relative_to(PACKAGE if file.is_relative_to(PACKAGE) else ROOT).as_posix()


def words(name):
    """`BoardState`, `board_states` -> board, state."""
    return {word.lower().removesuffix("s") for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)}


def second_names():
    """(file, name) of the classes that the page lists with a second meaning."""
    _, _, second = PAGE.read_text().partition(SECOND)
    return {(file, name) for row in rows(second) for names, file in places(row[2]) for name in names}


def cpp_types_against_the_glossary(file, source):
    """Types of a C++ file that bear a word outside the places of its one meaning."""
    inside = file.relative_to(ROOT).as_posix()
    return [
        f"{inside}: {name}: '{word}' means something else (docs/reference/glossary.md)"
        for word, homes in CPP_HOMES.items()
        if not inside.startswith(tuple(homes))
        for name in CPP_TYPE.findall(source)
        if word in words(name)
    ]


def against_the_glossary(file, source):
    """Public names of a module that bear a word outside the places of its one meaning."""
    place = inside(file)
    named = [file.stem, *(name for name, _ in public_names(source) if (file, name) not in second_names())]
    return [
        f"{place}: {name}: '{word.removesuffix('s')}' means something else (docs/reference/glossary.md)"
        for word, homes in HOMES.items()
        if not place.startswith(tuple(homes))
        for name in named
        if word.removesuffix("s") in words(name)
    ]


ROWS = rows(PAGE.read_text())


def test_every_term_has_its_row_and_none_has_two():
    first, _, _ = PAGE.read_text().partition(SECOND)
    terms = [term for term, _, _ in rows(first)]
    assert sorted(set(terms)) == sorted(terms)
    assert set(TERMS.split(", ")) <= set(terms)


@pytest.mark.parametrize("row", ROWS, ids=[f"{term}-{where}" for term, _, where in ROWS])
def test_what_a_term_names_is_in_the_file_that_it_names(row):
    term, meaning, where = row
    assert len(meaning.split(". ")) <= 2 and meaning.endswith("."), f"{term}: two sentences at the most"
    pairs = places(where)
    assert pairs, f"{term}: says not where it lives"
    for names, file in pairs:
        assert file.is_file(), f"{term}: there is no {file.relative_to(ROOT)}"
        for name in names:
            defined = rf"(?m)^(?:class|struct|enum class|def) {name}\b|^{name}(?:: \w+)? ="
            assert re.search(defined, file.read_text()), f"{term}: no {name} in {file.relative_to(ROOT)}"


@pytest.mark.slow
def test_a_class_has_its_name_to_itself():
    """Apart from those that the glossary lists with a second meaning."""
    where = defaultdict(set)
    for file in MODULES:
        for name, kind in public_names(file.read_text()):
            if kind is ast.ClassDef and (file, name) not in second_names():
                where[name].add(inside(file))
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_no_public_name_gives_a_word_another_meaning():
    faults = [line for file in MODULES for line in against_the_glossary(file, file.read_text())]
    assert faults == []


@pytest.mark.parametrize(
    ("file", "source", "name"),
    [
        ("measuring/power.py", "class PowerSession: pass", "PowerSession"),
        ("energy/sums.py", "def add_records(): pass", "add_records"),
        ("meters/serial_session.py", "", "serial_session"),
        ("meters/serial/meter.py", "class Link:\n    def board(self): pass", "board"),
        ("meters/serial/wire.py", "class State: pass", "State"),
        ("bench/simulation/supply.py", "class Harness: pass", "Harness"),
    ],
)
def test_a_name_that_does_is_found(file, source, name):
    [line] = against_the_glossary(PACKAGE / file, source)
    assert line.startswith(f"{file}: {name}: ")
    assert against_the_glossary(PACKAGE / file, "class _Session: pass") == ([line] if not source else [])


def test_no_type_of_the_cpp_code_gives_a_word_another_meaning():
    files = [
        path
        for top in ("loader-cpp", "firmware")
        for suffix in ("cc", "cpp", "h")
        for path in (ROOT / top).rglob(f"*.{suffix}")
    ]
    assert len(files) > 200
    assert [line for path in files for line in cpp_types_against_the_glossary(path, path.read_text())] == []
    source = "class PairSession : public Client {\n};\nenum class State : uint8_t {\n};\n"
    assert len(cpp_types_against_the_glossary(ROOT / "loader-cpp/databases/some.h", source)) == 2
