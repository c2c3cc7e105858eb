"""A Joulescope's own recordings, read through a stand-in for its maker's library."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from opjoule.base.errors import BadInput
from opjoule.energy.trace.imported import program_files
from opjoule.energy.trace.imported.trace_file import read_trace_file

RATE_HZ = 100_000


def library(columns, rates=(RATE_HZ, RATE_HZ)):
    """Stand-in for pyjls, whose files have these signals: name -> values."""

    class Reader:
        """The calls of pyjls.Reader that are used."""

        def __init__(self, path):
            if path.endswith("damaged"):
                raise RuntimeError("open EMPTY[13]: The target of the operation is empty")
            named = enumerate(columns.items())
            self.signals = {
                number: SimpleNamespace(signal_id=number, name=name, length=values.size, sample_rate=rates[number])
                for number, (name, values) in named
            }

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def fsr(self, signal_id, start, length):
            return list(columns.values())[signal_id][start : start + length].astype(np.float32)

    module = ModuleType("pyjls")
    module.Reader = Reader
    return module


@pytest.fixture
def path(tmp_path):
    """A file that begins as a recording does."""
    made = tmp_path / "recording.jls"
    made.write_bytes(program_files.MAGIC + bytes(8))
    return made


def test_the_mean_power_is_that_of_all_samples(path, monkeypatch):
    """Current and voltage move against each other within a mean, so that their means' product is not the power."""
    amperes = np.where(np.arange(RATE_HZ) % 2, 1.0, 0.2)
    volts = np.where(np.arange(RATE_HZ) % 2, 4.0, 5.0)
    monkeypatch.setitem(sys.modules, "pyjls", library({"current": amperes, "voltage": volts}))
    trace = read_trace_file(path, {})
    assert trace.kind == "joulescope"
    assert trace.current_a.size == 5000
    assert set(np.diff(trace.meter_ns)) == {200_000}
    assert trace.current_a * trace.voltage_v == pytest.approx(np.full(5000, 2.5))
    assert trace.notes == ["means of 20 of its 100000 samples a second"]


def test_samples_that_are_missing_are_no_part_of_a_mean(path, monkeypatch):
    amperes = np.full(RATE_HZ, 0.6)
    amperes[5:9] = amperes[200:240] = np.nan
    monkeypatch.setitem(sys.modules, "pyjls", library({"current": amperes, "voltage": np.full(RATE_HZ, 5.0)}))
    trace = read_trace_file(path, {})
    assert np.flatnonzero(np.isnan(trace.current_a)).tolist() == [10, 11]
    assert trace.current_a[0] == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("module", "complaint"),
    [
        (None, "needs pyjls: .venv/bin/pip install -r host/requirements/joulescope.in"),
        (library({"current": np.ones(99)}), "has 1 of current, 0 of voltage"),
        (library({"current": np.ones(99), "voltage": np.ones(99)}, (1000, 2000)), "1000 and 2000 a second"),
    ],
)
def test_what_cannot_be_read_is_one_plain_line(module, complaint, path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyjls", module)
    with pytest.raises(BadInput, match=complaint):
        read_trace_file(path, {})


def test_a_damaged_file_is_one_plain_line(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyjls", library({}))
    with pytest.raises(BadInput, match="damaged: open EMPTY"):
        read_trace_file(path.rename(path.with_suffix(".damaged")), {})
