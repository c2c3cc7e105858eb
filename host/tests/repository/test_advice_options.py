"""Every option and every command that a message of the package names is one that some command takes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opjoule.base.scripts import script_name
from opjoule.cli.campaign.compared_commands import COMPARE_COMMANDS
from opjoule.cli.campaign.study_cells import STUDY
from opjoule.cli.commands import MODULES, commands_of
from opjoule.cli.measure.options import MEASURE
from opjoule.cli.options import Parser

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "host" / "opjoule"
PARSERS: dict[str, dict[str, Callable[[], Parser]]] = {"measure.py": {"": MEASURE.parser, "study": STUDY.parser}}
for name, command in ((name, command) for word in MODULES for name, command in commands_of(word).items()):
    script, *words = script_name(name.split()), *name.split()
    PARSERS.setdefault(script, {})[" ".join(words if script == "measure.py" else words[1:])] = command.parser
PARSERS["compare.py"]["commands"] = COMPARE_COMMANDS.parser
OF_OTHERS = re.compile(
    r"\[\"--nojournal\"\]|(?:udevadm|usbipd|pip|git|sha256sum|apt-get|rig-sim|loader)\b[^.;:()]*| -- [^\n]*"
)
"""Commands of other programs, in messages that advise them, mongod's, and a command of the user's behind --."""
OPTION = re.compile(r"(?<![\w-])(?<!var\()--[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
COMMAND = re.compile(r"(?:host/)?\b(measure|calibrate|campaign|runs|view|compare)\.py((?: [^\s'\";,:()|]+)*)")


def messages() -> Iterator[tuple[str, str]]:
    """Where each text of the package stands that is more than a word, and the text; fields of it are ~."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        silent = {id(statement.value) for statement in ast.walk(tree) if isinstance(statement, ast.Expr)}
        inside: set[int] = set()
        for node in ast.walk(tree):
            if id(node) in silent | inside:
                continue
            if isinstance(node, ast.JoinedStr):
                inside |= {id(part) for part in node.values}
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "~" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            if " " in text.strip():
                yield f"{place}:{node.lineno}", text


def options_of(parser: Parser) -> set[str]:
    return {word for action in parser._actions for word in action.option_strings}


def known_options() -> set[str]:
    return {
        word
        for by_command in PARSERS.values()
        for make in by_command.values()
        for word in options_of(make())
        if word.startswith("--")
    }


def unknown_in(text: str, known: set[str]) -> list[str]:
    return [word for word in OPTION.findall(OF_OTHERS.sub("", text)) if word not in known]


@pytest.mark.slow
def test_every_option_that_a_message_names_is_one_of_a_command():
    known = known_options()
    said = list(messages())
    assert len([text for _, text in said if OPTION.search(text)]) > 80, "the walk finds the messages"
    assert [(place, wrong) for place, text in said for wrong in unknown_in(text, known)] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("measure longer (--second 30)", ["--second"]),
        ("state it with --sensors", ["--sensors"]),
        ("one run of each (--repeats)", []),
        ("sudo udevadm control --reload, then --again", []),
        ("a line var(--cpu) of a page", []),
    ],
)
def test_an_option_that_no_command_has_would_be_found(text, wrong):
    assert unknown_in(text, known_options()) == wrong


def wrong_words(script: str, words: list[str]) -> list[str]:
    """What of a command, as a message gives it, the script does not take."""
    by_command = PARSERS[f"{script}.py"]
    first = words[0] if words and words[0] in by_command else ""
    makers = [by_command[first]] + ([by_command["study"]] if script == "measure" and "--study" in words else [])
    makers += [by_command["commands"]] if script == "compare" and {"--", "--device"} & {*words} else []
    known = set().union(*(options_of(make()) for make in makers))
    words = words[: words.index("--")] if "--" in words else words
    wrong = [word for word in words if word.startswith("-") and word.split("=")[0] not in known]
    named = script == "measure" and words and not first and re.fullmatch(r"[a-z][a-z-]+", words[0])
    return wrong + ([words[0]] if named and words[0] not in MODULES else [])


@pytest.mark.slow
def test_every_command_that_a_message_quotes_is_one_with_the_options_that_it_names():
    quoted = [
        (place, match[1], match[2].split())
        for place, text in messages()
        for match in COMMAND.finditer(text.replace("\n", " \n"))
        if (ROOT / "host" / f"{match[1]}.py").exists() and ("host/" in match[0] or "'" in text)
    ]
    assert len(quoted) > 50, "the walk finds the commands"
    assert [
        (place, script, wrong)
        for place, script, words in quoted
        if (wrong := wrong_words(script, [word for word in words if "~" not in word]))
    ] == []
