"""Recorded traces of other programs: units from the header or the user, never guessed; what is missing is a gap."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opjoule.base.errors import BadInput
from opjoule.base.notices import NoticeKind
from opjoule.energy.trace.imported.trace_file import read_trace_file
from opjoule.energy.trace.journal import read_trace
from opjoule.energy.trace.power_trace import Gap

ROOT = Path(__file__).resolve().parents[3]


def file(folder, text):
    path = folder / "trace.csv"
    path.write_text(text)
    return path


def rows(*columns):
    return "".join(",".join(f"{value:.9g}" for value in row) + "\n" for row in zip(*columns, strict=True))


TIME_S = np.arange(1000) * 2e-4
POWERTOOL = "Time (s),Main Avg Current (mA),Main Avg Power (mW),Main Avg Voltage (V)\n"


def test_powertool_units_come_from_its_header(tmp_path):
    for unit, factor in (("mA", 1e3), ("A", 1)):
        text = POWERTOOL.replace("(mA)", f"({unit})") + rows(
            TIME_S, np.full(1000, 0.6 * factor), np.full(1000, 3060), np.full(1000, 5.1)
        )
        trace = read_trace_file(file(tmp_path, text), {})
        assert trace.kind == "powertool"
        assert trace.current_a == pytest.approx(np.full(1000, 0.6))
        assert trace.voltage_v == pytest.approx(np.full(1000, 5.1))
        assert set(np.diff(trace.meter_ns)) == {200_000}


def test_the_main_channel_counts_before_others(tmp_path):
    text = "Time (s),USB Avg Current (mA),Main Avg Current (mA),Main Avg Voltage (V)\n"
    trace = read_trace_file(file(tmp_path, text + rows(TIME_S, TIME_S, np.full(1000, 600.0), np.full(1000, 5.0))), {})
    assert trace.current_a[0] == pytest.approx(0.6)


def test_ppk2_needs_the_supplys_voltage(tmp_path):
    text = "Timestamp(ms),Current(uA),D0-D7\n" + "".join(f"{i * 0.01:.2f},{600000 + i},00000001\n" for i in range(100))
    path = file(tmp_path, text)
    with pytest.raises(BadInput, match="--voltage"):
        read_trace_file(path, {})
    trace = read_trace_file(path, {}, 5.1)
    assert trace.kind == "ppk2"
    assert trace.current_a[:2] == pytest.approx([0.6, 0.600001])
    assert set(np.diff(trace.meter_ns)) == {10_000}
    assert any("not measured" in note for note in trace.notes)


def test_joulescope_files_are_in_base_units(tmp_path):
    text = "#time,current,voltage,power\n" + rows(TIME_S, np.full(1000, 0.5), np.full(1000, 5.0), np.full(1000, 2.5))
    trace = read_trace_file(file(tmp_path, text), {})
    assert trace.kind == "joulescope"
    assert (trace.current_a[0], trace.voltage_v[0]) == (0.5, 5.0)


def test_nan_and_missing_rows_are_gaps(tmp_path):
    current_a = np.full(1000, 0.5)
    current_a[100:110] = np.nan
    keep = (np.arange(1000) < 500) | (np.arange(1000) >= 520)
    text = "time [s];current [A];voltage [V]\n" + rows(TIME_S[keep], current_a[keep], np.full(1000, 5.0)[keep]).replace(
        ",", ";"
    )
    trace = read_trace_file(file(tmp_path, text), {})
    gaps = [part for part in trace.parts() if isinstance(part, Gap)]
    assert [gap.lost_samples for gap in gaps] == [10, 20]
    assert [gap.start_meter_ns for gap in gaps] == [19_900_000, 99_900_000]


def test_pymonsoons_shared_stamps_become_times_again(tmp_path):
    """Its column Time(ms) holds seconds, one stamp for the rows of a packet, and each line ends in a comma."""
    stamps_s = np.repeat(np.arange(0, 300, 3), 3)[:299] * 2e-4
    text = "Time(ms),Main(mA),Main Voltage(V),\n" + "".join(f"{stamp:.6f},600.0,5.1,\n" for stamp in stamps_s)
    trace = read_trace_file(file(tmp_path, text), {})
    assert trace.kind == "pymonsoon"
    assert bool(np.all(np.diff(trace.meter_ns) > 0))
    assert trace.meter_ns[-1] == pytest.approx(stamps_s[-1] * 1e9)
    assert any("row number" in note for note in trace.notes)


def test_any_table_by_a_small_mapping(tmp_path):
    text = "stamp,board,rail\n" + rows(TIME_S * 1e6, np.full(1000, 600.0), np.full(1000, 5100.0))
    path = file(tmp_path, text)
    mapping = {"time": "stamp:us", "current": "board:mA", "voltage": "rail:mV"}
    trace = read_trace_file(path, mapping)
    assert (trace.current_a[0], trace.voltage_v[0]) == pytest.approx((0.6, 5.1))
    with pytest.raises(BadInput, match="unit of time"):
        read_trace_file(path, {})
    with pytest.raises(BadInput, match=r"board.* unit of current"):
        read_trace_file(path, mapping | {"current": "board"})
    with pytest.raises(BadInput, match="no column 'amps'"):
        read_trace_file(path, mapping | {"current": "amps:A"})


def test_power_alone_is_enough_with_a_voltage(tmp_path):
    trace = read_trace_file(file(tmp_path, "t_ms,p_mW\n" + rows(np.arange(50), np.full(50, 2500.0))), {}, 5.0)
    assert trace.current_a * trace.voltage_v == pytest.approx(np.full(50, 2.5))


OFF = np.arange(1000) // 10 % 20 == 0
"""Rows in which the board is off."""


@pytest.mark.parametrize("off_w", [0.0, 0.0004])
@pytest.mark.parametrize("given", ["current (A)", "voltage (V)"])
def test_rows_without_current_or_without_voltage_have_the_power_of_the_file(tmp_path, off_w, given):
    power_w = np.where(OFF, off_w, 2.5)
    on, text = {"current (A)": 0.5, "voltage (V)": 5.0}[given], f"time (s),{given},power (W)\n"
    trace = read_trace_file(file(tmp_path, text + rows(TIME_S, np.where(OFF, 0.0, on), power_w)), {})
    assert trace.current_a * trace.voltage_v == pytest.approx(power_w)
    assert trace.current_a[OFF] == pytest.approx(off_w / 5.0)
    assert trace.voltage_v[~OFF] == pytest.approx(5.0)
    assert [part for part in trace.parts() if isinstance(part, Gap)] == []


def test_a_row_without_a_current_has_the_voltage_of_the_nearest_row(tmp_path):
    text = "time (s),current (A),power (W)\n0,1,4\n1,0,0.5\n2,0,0.5\n3,0,0.5\n4,,5\n5,1,6\n"
    trace = read_trace_file(file(tmp_path, text), {})
    assert trace.voltage_v == pytest.approx([4.0, 4.0, 4.0, 6.0, np.nan, 6.0], nan_ok=True)
    assert any(note.startswith("voltage of 3 rows ") for note in trace.notes)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("time (s),current (A),power (W)\n0,0.5,0\n1,0.5,2500\n2,0.5,2500\n", "line 3: voltage of 5000 V"),
        ("time (s),current (A),power (W)\n0,0,0\n1,0,0\n2,0,0\n", "no row .* voltage"),
        ("time (s),voltage (V),power (W)\n0,0,1\n1,0,1\n2,0,1\n", "no row .* voltage"),
        ("time (s),current (A),power (W)\n0,1,5\n1,0,1e6\n2,1,5\n", "line 3: current of 200000 A"),
        ("time (s),current (A),power (W)\n0,1,\n1,,5\n2,1,\n", "two rows"),
        ("", "no header"),
        ("1,2\n3,4\n", "no header"),
        (POWERTOOL, "no header"),
        (POWERTOOL + "0,1,2,3\nx,1,2,3\n", "trace.csv"),
        (POWERTOOL + "0,1,2,3\n0.2,1,2,3\n0.2,1,2,3\n", "at row 3"),
        (
            "time (s),current (A),voltage (V)\n0,1,5\n1e12,1,5\n2e12,1,5\n",
            r"2e.12 s; .* 1000000000 s",
        ),
        (
            "time (ns),current (A),voltage (V)\n0,1,5\n1,1,5\n1.2,1,5\n",
            "rows 2 and 3 .* 1 ns",
        ),
        (POWERTOOL + "0.1,1,2,3\n", "two rows"),
        (POWERTOOL + "0,1,2,3\n1e-6,1,2,3\n2e-6,1,2,3\n1e6,1,2,3\n", "have no row"),
    ],
)
def test_what_cannot_be_read_is_one_plain_line(tmp_path, text, complaint):
    with pytest.raises(BadInput, match=complaint):
        read_trace_file(file(tmp_path, text), {})


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "opjoule.cli.start", "import", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
    )


@pytest.mark.slow
def test_the_command_makes_a_record_that_the_report_reads(tmp_path):
    text = POWERTOOL + rows(TIME_S, 500 + 100 * np.sin(TIME_S * 50), np.full(1000, 2500), np.full(1000, 5.0))
    path, out = file(tmp_path, text), tmp_path / "record"
    ended = command(path, "--out", out)
    assert ended.returncode == 0, ended.stderr
    assert "1000 samples" in ended.stdout and "Main Avg Current (mA)" in ended.stdout
    assert len(read_trace(out)) == 1000
    contents = json.loads((out / "run.json").read_text())
    assert contents["found"]["imported"]["sensor"] == "monsoon-hvpm"
    assert contents["status"] == "complete"
    again = command(path, "--out", out)
    assert again.returncode == 2 and "already contains" in again.stderr
    reported = subprocess.run(
        [sys.executable, "-m", "opjoule.cli.start", "report", str(out)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
    )
    assert reported.returncode == 0, reported.stderr
    assert (out / "report.html").exists()


def test_rows_at_the_meters_greatest_current_are_clipped_and_reported(tmp_path):
    amperes = np.full(1000, 0.5)
    amperes[400:410] = 6.0
    text = POWERTOOL + rows(TIME_S, amperes * 1e3, np.full(1000, 2500), np.full(1000, 5.0))
    out = tmp_path / "record"
    assert command(file(tmp_path, text), "--out", out).returncode == 0
    assert np.flatnonzero(read_trace(out).clipped).tolist() == list(range(400, 410))
    (fault,) = json.loads((out / "run.json").read_text())["notices"]
    assert fault["kind"] == NoticeKind.CLIPPED
    assert "10 rows " in fault["line"] and "6 A of monsoon-hvpm" in fault["line"]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet='0123456789.,;\t\n"#()[]_ AVWmus time current e-+naN', max_size=200))
def test_any_text_is_a_trace_or_one_plain_refusal(tmp_path, text):
    path = tmp_path / "any.csv"
    path.write_text(text)
    try:
        trace = read_trace_file(path, {}, 5.0)
    except BadInput:
        return
    assert trace.meter_ns.size == trace.current_a.size >= 2
    list(trace.parts())
