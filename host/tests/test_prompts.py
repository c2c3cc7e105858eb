"""One class for all questions: defaults, refused answers, the end of the input, and an end on request."""

import io

import pytest
from opjoule.base.errors import BadInput
from opjoule.base.terminal import Prompts, Stopped, line_of_stdin, refusing


def scripted(*answers, **more):
    """A dialogue that is answered from a list, then by nobody; and its questions."""
    left, questions = list(answers), []
    return Prompts(lambda question: questions.append(question) or (left.pop(0) if left else None), **more), questions


def number(answer):
    try:
        return float(answer)
    except ValueError:
        raise BadInput(f"'{answer}' is no number") from None


def test_a_refused_answer_is_asked_for_again_with_its_reason():
    dialogue, questions = scripted("many", "2.5")
    assert dialogue.value("Ohm", number, "1") == 2.5
    assert questions[0] == "Ohm (1): " and questions[1].endswith(f"\n{questions[0]}") and "'many'" in questions[1]


def test_enter_gives_the_default_which_is_checked_like_any_answer():
    assert scripted("")[0].value("Ohm", number, "1") == 1.0
    dialogue, questions = scripted("", "yes")
    assert dialogue.text("Sure", refusing(("yes", "no").__contains__, "odd")) == "yes"
    assert questions[1] == "  '' is odd\nSure: "


def test_the_end_of_the_input_ends_it_and_so_does_a_word_only_where_it_is_said_to():
    with pytest.raises(Stopped):
        scripted("x")[0].value("Ohm", number)
    with pytest.raises(Stopped):
        scripted("STOP", stops=("stop",))[0].answer("Ready?")
    assert scripted("stop")[0].answer("Ready?") == "stop"


def test_a_question_is_shown_where_results_are_not(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("an answer\n"))
    assert line_of_stdin("What? ") == "an answer"
    assert line_of_stdin("What? ") is None
    said = capsys.readouterr()
    assert said.err == "What? What? " and said.out == ""
