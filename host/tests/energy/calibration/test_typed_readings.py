"""What a person types of a multimeter: the value, what its last digit is worth, and what is no reading."""

import re

import pytest
from opjoule.base.errors import BadInput
from opjoule.energy.calibration.reference import reading, typed_reference

DIGIT = 12**-0.5


@pytest.mark.parametrize(
    ("text", "unit", "value", "step"),
    [
        ("0.503", "A", 0.503, 1e-3),
        ("503 mA", "A", 0.503, 1e-3),
        ("503.10m", "A", 0.5031, 1e-5),
        ("0,50310", "A", 0.5031, 1e-5),
        ("-0.2 mV", "V", -2e-4, 1e-4),
        ("-.25", "V", -0.25, 1e-2),
        ("5", "V", 5.0, 1.0),
        (" 5.0620 V ", "V", 5.062, 1e-4),
        ("120u", "A", 1.2e-4, 1e-6),
    ],
)
def test_a_reading_is_as_uncertain_as_its_last_digit(text, unit, value, step):
    measured, u = reading(text, unit)
    assert measured == pytest.approx(value, abs=1e-12) and u == pytest.approx(step * DIGIT)


@pytest.mark.parametrize("text", ["", "-", ".", "0.5 V", "half", "1e-3", "0.5.1", "0x10", "nan", "5 kA", "0.5 A A"])
def test_what_is_no_reading_in_ampere_is_refused_in_one_line(text):
    with pytest.raises(BadInput, match=rf"{re.escape(text)}.* in A"):
        reading(text, "A")


def answers(*texts):
    left, questions = list(texts), []

    def ask(question, _):
        questions.append(question)
        return left.pop(0) if left else None

    return ask, questions


def test_volts_over_a_resistor_become_a_current_with_its_digit():
    typed = typed_reference("DMM", current=None, over="0.1,0.1%", voltage="0.05%+1mV")
    ask, questions = answers("50.31m", "5.062")
    (current_a, current_u_a), (voltage_v, _) = typed.ask(ask)
    assert current_a == pytest.approx(0.5031) and current_u_a == pytest.approx(1e-5 / 0.1 * DIGIT)
    assert voltage_v == 5.062
    assert "voltage over the 0.1 ohm [V]" in questions[0] and "board's side" in questions[1]


def test_a_mistyped_answer_is_asked_for_again_with_its_fault():
    typed = typed_reference("DMM", current="0.2%", over=None, voltage=None)
    ask, questions = answers("o.5", "0.5")
    assert typed.ask(ask)[0][0] == 0.5
    assert "'o.5' " in questions[1] and questions[1].endswith("current [A]: ")


def test_an_input_that_ends_leaves_the_point_out():
    typed = typed_reference("DMM", current="0.2%", over=None, voltage="0.1%")
    with pytest.raises(BadInput, match="voltage"):
        typed.ask(answers("0.5")[0])


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({}, "give one of --current and --over"),
        ({"current": "1%", "over": "0.1,1%"}, "give one of --current and --over"),
        ({"over": "0.1,1%"}, "--voltage"),
        ({"over": "R100,1%", "voltage": "1%"}, "write --over OHM,ACCURACY"),
        ({"over": "0.1", "voltage": "1%"}, "write --over OHM,ACCURACY"),
        ({"current": "fine"}, "accuracy 'fine'"),
        ({"current": "1%", "with_meter": True}, "leave out --current and --over"),
    ],
)
def test_a_reference_without_what_must_be_known_of_it_is_refused_in_one_line(stated, words):
    with pytest.raises(BadInput, match=words.replace("(", r"\(")):
        typed_reference("DMM", **{"current": None, "over": None, "voltage": None, **stated})


def test_a_voltmeter_beside_a_reference_meter_gives_the_voltage_and_the_meter_the_current():
    meter = typed_reference("M", current="0.2%+1mA", over=None, voltage="2%").reference
    typed = typed_reference("", current=None, over=None, voltage="0.01%", with_meter=True)
    both = typed.beside(meter)
    assert both.current_u_a(1.0) == pytest.approx(meter.current_u_a(1.0))
    assert both.voltage_u_v(5.0) == pytest.approx(5.0 * 1e-4 / 3**0.5)
    assert typed_reference("", current=None, over=None, voltage=None, with_meter=True) is None
